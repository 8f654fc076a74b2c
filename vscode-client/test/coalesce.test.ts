import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coalesce } from '../src/coalesce';

/** A task that counts its runs and ends when told to. */
function controlled() {
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  let running = 0;
  let most = 0;
  const task = async (): Promise<void> => {
    most = Math.max(most, ++running);
    try {
      await new Promise<void>((resolve, reject) => ends.push({ resolve, reject }));
    } finally {
      running--;
    }
  };
  return { task, ends, most: () => most };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('calls during a run share one more run after it', async () => {
  const { task, ends, most } = controlled();
  const run = coalesce(task);
  const calls = [run(), run(), run(), run()];
  ends[0]?.resolve();
  await turn();
  assert.equal(ends.length, 2);
  ends[1]?.resolve();
  await Promise.all(calls);
  assert.equal(ends.length, 2);
  assert.equal(most(), 1);
});

test('a failed run reaches its own callers only', async () => {
  const { task, ends } = controlled();
  const run = coalesce(task);
  const first = run();
  const second = run();
  ends[0]?.reject(new Error('no'));
  await assert.rejects(first, /no/);
  await turn();
  ends[1]?.resolve();
  await second;
  const third = run();
  ends[2]?.resolve();
  await third;
});
