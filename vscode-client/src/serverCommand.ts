/** How to start the language server: the setting, the environments at hand, else PATH. */

import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import * as path from 'node:path';

export interface Surroundings {
  /** The setting `guider.server.command`. */
  readonly setting: readonly string[];
  /** Where the extension itself lies; a development checkout has a `.venv` there. */
  readonly extensionFolder: string;
  /** The folders of the workspace. Nothing in them is started unless they are trusted. */
  readonly folders: readonly string[];
  readonly trusted: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** How it was found, for people. */
  readonly source: string;
}

export interface NotFound {
  /** Every place that was looked at, for people. */
  readonly lookedAt: readonly string[];
}

export function findServer(around: Surroundings): ServerCommand | NotFound {
  const [command, ...args] = around.setting;
  if (command !== undefined) {
    return { command, args, source: 'the setting guider.server.command' };
  }
  const lookedAt: string[] = [];
  for (const { file, source } of candidates(around)) {
    if (isExecutable(file)) {
      return { command: file, args: ['serve'], source };
    }
    lookedAt.push(file);
  }
  return { lookedAt };
}

/** Where a package of this extension carries the server's wheel. */
const WHEELS = path.join('vscode-client', 'out');

/** The command that installs the server that came with the extension; `undefined` where none came with it. */
export function installCommand(extensionFolder: string): string | undefined {
  const folder = path.join(extensionFolder, WHEELS);
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch {
    // not built yet
  }
  const wheel = names.find((name) => /^guider_ls-.*\.whl$/.test(name));
  return wheel === undefined ? undefined : `pipx install --force "${path.join(folder, wheel)}"`;
}

function* candidates(around: Surroundings): Generator<{ file: string; source: string }> {
  const [bin, name] = around.platform === 'win32' ? ['Scripts', 'guider-ls.exe'] : ['bin', 'guider-ls'];
  yield { file: path.join(around.extensionFolder, '.venv', bin, name), source: "the extension's own checkout" };
  for (const folder of around.trusted ? around.folders : []) {
    for (const venv of ['.venv', 'venv']) {
      yield { file: path.join(folder, venv, bin, name), source: `${venv} of the folder` };
    }
  }
  for (const folder of (around.environment['PATH'] ?? around.environment['Path'] ?? '').split(path.delimiter)) {
    // A relative entry would mean whatever folder is open.
    if (path.isAbsolute(folder)) {
      yield { file: path.join(folder, name), source: 'PATH' };
    }
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
