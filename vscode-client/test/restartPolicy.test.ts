import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestartPolicy } from '../src/restartPolicy';

test('a server that never worked is not started again', () => {
  assert.equal(new RestartPolicy().crashed(0), false);
});

test('three crashes in three minutes are forgiven, the fourth is not', () => {
  const policy = new RestartPolicy();
  policy.started();
  assert.deepEqual([0, 1000, 2000, 3000].map((now) => policy.crashed(now)), [true, true, true, false]);
});

test('old crashes are forgotten', () => {
  const policy = new RestartPolicy();
  policy.started();
  assert.ok([0, 100_000, 200_000, 300_000, 400_000].every((now) => policy.crashed(now)));
});
