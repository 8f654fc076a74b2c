/** Whether a server that ended by itself is started again: only after it once worked, and not for ever. */

const WINDOW = 3 * 60_000;
const MOST = 3;

export class RestartPolicy {
  private worked = false;
  private crashes: number[] = [];

  started(): void {
    this.worked = true;
  }

  /** Count a crash at `now` (milliseconds); the answer is whether to start again. */
  crashed(now: number): boolean {
    this.crashes = [...this.crashes.filter((then) => now - then < WINDOW), now];
    return this.worked && this.crashes.length <= MOST;
  }
}
