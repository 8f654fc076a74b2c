/** The language server's process: started, watched, and ended even if it hangs. */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { ServerCommand } from './serverCommand';

export interface ServerProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** When it has ended: how, with the last line it wrote on stderr; for people. */
  readonly ended: Promise<string>;
}

/** Start the server. Rejects where the program cannot be started at all. */
export function startServer({ command, args }: ServerCommand): Promise<ServerProcess> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'pipe' });
    const ended = new Promise<string>((end) => {
      let tail = '';
      child.stderr.on('data', (chunk: Buffer) => {
        tail = (tail + chunk.toString('utf8')).slice(-2000);
      });
      child.once('close', (code, signal) => {
        const lastLine = tail.trim().split(/\r?\n/).at(-1) ?? '';
        const how = code === null ? `It was ended by ${String(signal)}.` : `It ended with status ${code}.`;
        end(lastLine === '' ? how : `${how} Its last line: ${lastLine}`);
      });
    });
    child.once('spawn', () => {
      resolve({ child, ended });
    });
    child.once('error', reject);
  });
}

/** Wait until the process has ended; kill it after `patience` milliseconds. */
export async function endOf({ child, ended }: ServerProcess, patience: number): Promise<void> {
  const timer = setTimeout(() => child.kill('SIGKILL'), patience);
  await ended;
  clearTimeout(timer);
}
