import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { test } from 'node:test';
import { localInterpreters } from '../src/interpreters';

test("only environments that are there are offered, the folder's .venv first", () => {
  const root = mkdtempSync(path.join(tmpdir(), 'guider '));
  try {
    assert.deepEqual(localInterpreters(root, 'linux'), []);
    const files = ['.venv', 'venv'].map((venv) => path.join(root, venv, 'bin', 'python'));
    for (const file of files.toReversed()) {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, '');
    }
    assert.deepEqual(localInterpreters(root, 'linux'), files);
    assert.deepEqual(localInterpreters(root, 'win32'), []);
  } finally {
    rmSync(root, { recursive: true });
  }
});
