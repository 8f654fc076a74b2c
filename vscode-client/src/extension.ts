import * as vscode from 'vscode';
import { Server } from './client';
import { registerCommands } from './commands';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const output = vscode.window.createOutputChannel('GUIDER', { log: true });
  const started = new Server(context.extensionPath, output);
  server = started;
  const restart = (): void => {
    void started.restart();
  };
  context.subscriptions.push(
    output,
    started,
    registerCommands(started, output),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration('guider.server.command')) {
        restart();
      }
    }),
  );
  restart();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
