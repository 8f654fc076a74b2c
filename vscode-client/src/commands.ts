/** The commands that are the client's own; the others are the server's. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Server } from './client';
import { localInterpreters } from './interpreters';

export function registerCommands(server: Server, output: vscode.LogOutputChannel): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand('guider.restart', () => server.restart()),
    vscode.commands.registerCommand('guider.showOutput', () => {
      output.show();
    }),
    vscode.commands.registerCommand('guider.selectInterpreter', () => selectInterpreter(server)),
  );
}

interface Choice extends vscode.QuickPickItem {
  /** What to write into the setting: a path, nothing (found by itself), or a file that is yet to be chosen. */
  readonly interpreter: string | undefined | typeof BROWSE;
}

const BROWSE = Symbol('browse');

async function selectInterpreter(server: Server): Promise<void> {
  const folder = await chooseFolder();
  const settings = vscode.workspace.getConfiguration('guider', folder);
  const current = settings.get<string | string[]>('interpreter', '');
  const shown = typeof current === 'string' ? current : current.join(' ');
  const choice = await vscode.window.showQuickPick(choices(server, folder), {
    title: 'The Python that has the Keras of this project',
    placeHolder: shown === '' ? 'Now: found by GUIDER' : `Now: ${shown}`,
    matchOnDescription: true,
  });
  if (choice === undefined) {
    return;
  }
  let interpreter = choice.interpreter;
  if (interpreter === BROWSE) {
    const files = await vscode.window.showOpenDialog({ title: 'Python interpreter', openLabel: 'Select' });
    interpreter = files?.[0]?.fsPath;
    if (interpreter === undefined) {
      return;
    }
  }
  const target = folder === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.WorkspaceFolder;
  await settings.update('interpreter', interpreter, target);
}

async function chooseFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const active = vscode.window.activeTextEditor?.document.uri;
  const folder = active === undefined ? undefined : vscode.workspace.getWorkspaceFolder(active);
  const folders = vscode.workspace.workspaceFolders ?? [];
  return folder ?? (folders.length > 1 ? vscode.window.showWorkspaceFolderPick() : folders[0]);
}

async function choices(server: Server, folder: vscode.WorkspaceFolder | undefined): Promise<Choice[]> {
  const local = folder === undefined ? [] : localInterpreters(folder.uri.fsPath, process.platform);
  const known = (await server.interpreter.known()).filter((environment) => !local.includes(environment.path));
  return [
    {
      label: '$(sparkle) Let GUIDER find it',
      description: "the Python extension's choice, an environment in the folder, else PATH",
      interpreter: undefined,
    },
    ...local.map((file) => ({
      label: path.basename(path.dirname(path.dirname(file))),
      description: file,
      interpreter: file,
    })),
    ...known.map((environment) => ({
      label: environment.label,
      description: environment.path,
      interpreter: environment.path,
    })),
    { label: '$(folder) Browse…', interpreter: BROWSE },
  ];
}
