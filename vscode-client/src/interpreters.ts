/** The environments of a folder, for choosing an interpreter. */

import { existsSync } from 'node:fs';
import * as path from 'node:path';

/** Interpreters of the virtual environments that lie in `folder`. */
export function localInterpreters(folder: string, platform: NodeJS.Platform): string[] {
  const python = platform === 'win32' ? path.join('Scripts', 'python.exe') : path.join('bin', 'python');
  return ['.venv', 'venv'].map((venv) => path.join(folder, venv, python)).filter((file) => existsSync(file));
}
