import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOf, startServer } from '../src/serverProcess';

function script(code: string) {
  return startServer({ command: process.execPath, args: ['-e', code], source: 'a test' });
}

test('a program that is not there is an error with its name', async () => {
  await assert.rejects(startServer({ command: '/no such/guider-ls', args: [], source: 'a test' }), /no such\/guider-ls/);
});

test('the end tells the status and the last words', async () => {
  const { ended } = await script("console.error('first\\nno module named x\\n'); process.exitCode = 3");
  assert.equal(await ended, 'It ended with status 3. Its last line: no module named x');
});

test('a silent end is told too', async () => {
  assert.equal(await (await script('')).ended, 'It ended with status 0.');
});

test('a process that does not end is killed', async () => {
  const server = await script('setInterval(() => {}, 1000)');
  await endOf(server, 10);
  assert.equal(await server.ended, 'It was ended by SIGKILL.');
});
