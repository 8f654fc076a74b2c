/**
 * Wrap `task` so that it never runs twice at once: calls during a run are answered by one more run after it.
 */
export function coalesce(task: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const run = (): Promise<void> => {
    current = task().finally(() => {
      current = undefined;
    });
    return current;
  };
  return () => {
    if (current === undefined) {
      return run();
    }
    next ??= current
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return run();
      });
    return next;
  };
}
