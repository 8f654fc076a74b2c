import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { findServer, installCommand, type Surroundings } from '../src/serverCommand';

let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'guider ü '));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

function program(...parts: string[]): string {
  const file = path.join(root, ...parts);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, '');
  chmodSync(file, 0o755);
  return file;
}

function around(changes: Partial<Surroundings> = {}): Surroundings {
  return {
    setting: [],
    extensionFolder: path.join(root, 'extension'),
    folders: [path.join(root, 'first'), path.join(root, 'second')],
    trusted: true,
    environment: { PATH: path.join(root, 'bin') },
    platform: 'linux',
    ...changes,
  };
}

function command(changes: Partial<Surroundings> = {}): string | undefined {
  const found = findServer(around(changes));
  return 'command' in found ? [found.command, ...found.args].join(' ') : undefined;
}

test('the setting is used as it is, before anything else', () => {
  program('extension', '.venv', 'bin', 'guider-ls');
  assert.equal(command({ setting: ['python3', '-m', 'guider_ls.cli', 'serve'] }), 'python3 -m guider_ls.cli serve');
});

test("a checkout's own environment comes before the folder's, the folder's before PATH", () => {
  const onPath = program('bin', 'guider-ls');
  assert.equal(command(), `${onPath} serve`);
  const inFolder = program('second', 'venv', 'bin', 'guider-ls');
  assert.equal(command(), `${inFolder} serve`);
  const own = program('extension', '.venv', 'bin', 'guider-ls');
  assert.equal(command(), `${own} serve`);
});

test('nothing of an untrusted folder is started', () => {
  program('first', '.venv', 'bin', 'guider-ls');
  assert.equal(command({ trusted: false }), undefined);
});

test('relative entries of PATH and files that cannot be executed are passed over', () => {
  const file = program('bin', 'guider-ls');
  chmodSync(file, 0o644);
  mkdirSync(path.join(root, 'other', 'guider-ls'), { recursive: true });
  const environment = { PATH: ['.', '', path.join(root, 'bin'), path.join(root, 'other')].join(path.delimiter) };
  assert.equal(command({ environment }), undefined);
});

test('a miss names every place, Windows has its own', () => {
  const found = findServer(around({ folders: [path.join(root, 'first')], platform: 'win32' }));
  assert.ok('lookedAt' in found);
  assert.deepEqual(found.lookedAt, [
    path.join(root, 'extension', '.venv', 'Scripts', 'guider-ls.exe'),
    path.join(root, 'first', '.venv', 'Scripts', 'guider-ls.exe'),
    path.join(root, 'first', 'venv', 'Scripts', 'guider-ls.exe'),
    path.join(root, 'bin', 'guider-ls.exe'),
  ]);
});

test('the command installs the server that came with the extension', () => {
  assert.equal(installCommand(root), undefined);
  program('vscode-client', 'out', 'extension.js');
  assert.equal(installCommand(root), undefined);
  const wheel = program('vscode-client', 'out', 'guider_ls-0.1.0-py3-none-any.whl');
  assert.equal(installCommand(root), `pipx install --force "${wheel}"`);
});
