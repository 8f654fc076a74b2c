/** Starts, restarts and stops the language server; one for the whole window. */

import { createInterface } from 'node:readline';
import * as vscode from 'vscode';
import { CloseAction, ErrorAction, LanguageClient, State } from 'vscode-languageclient/node';
import { coalesce } from './coalesce';
import { ActiveProgram, middleware } from './middleware';
import { EditorInterpreter } from './pythonExtension';
import { RestartPolicy } from './restartPolicy';
import { findServer, type NotFound, type ServerCommand } from './serverCommand';
import { type ServerStatus, Status } from './status';

const INSTALL = 'pipx install guider-ls';

export class Server implements vscode.Disposable {
  /** Start the server, or start it anew. Calls during a start are answered by one more start after it. */
  readonly restart = coalesce(() => this.startAnew());

  readonly interpreter: EditorInterpreter;
  private readonly status = new Status();
  private readonly program = new ActiveProgram();
  private client: LanguageClient | undefined;

  constructor(
    private readonly extensionFolder: string,
    private readonly output: vscode.LogOutputChannel,
  ) {
    this.interpreter = new EditorInterpreter(output);
    this.interpreter.onDidChange(() => {
      void this.client?.sendNotification('workspace/didChangeConfiguration', { settings: null });
    });
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await setRunning(false);
    try {
      await client?.dispose();
    } catch (error) {
      this.output.warn(`Stopping the server: ${String(error)}`);
    }
  }

  dispose(): void {
    this.status.dispose();
    this.program.dispose();
    this.interpreter.dispose();
  }

  private async startAnew(): Promise<void> {
    await this.stop();
    this.status.starting();
    const found = findServer({
      setting: vscode.workspace.getConfiguration('guider').get<string[]>('server.command', []),
      extensionFolder: this.extensionFolder,
      folders: (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
      trusted: vscode.workspace.isTrusted,
      environment: process.env,
      platform: process.platform,
    });
    if ('lookedAt' in found) {
      this.reportMissing(found);
    } else {
      await this.start(found);
    }
  }

  private async start(found: ServerCommand): Promise<void> {
    const line = [found.command, ...found.args].join(' ');
    this.output.info(`Starting ${line} (from ${found.source})`);
    const policy = new RestartPolicy();
    const client: LanguageClient = new LanguageClient(
      'guider',
      'GUIDER',
      { command: found.command, args: [...found.args] },
      {
        documentSelector: [
          { scheme: 'file', language: 'python' },
          { scheme: 'untitled', language: 'python' },
        ],
        outputChannel: this.output,
        stdioOptions: { stdout: logLines, stderr: logLines },
        initializationOptions: { status: true, trusted: vscode.workspace.isTrusted },
        initializationFailedHandler: () => false,
        middleware: middleware(this.interpreter, this.program),
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => {
            if (policy.crashed(Date.now())) {
              return { action: CloseAction.Restart, handled: true };
            }
            if (this.client === client) {
              this.reportFailure(line, 'It ended by itself.');
            }
            return { action: CloseAction.DoNotRestart, handled: true };
          },
        },
      },
    );
    client.onNotification('guider/status', (status: ServerStatus) => {
      this.status.update(status);
    });
    client.onDidChangeState(({ newState }) => {
      if (this.client === client && newState === State.Running) {
        policy.started();
        this.status.running();
      }
      void setRunning(this.client === client && newState === State.Running);
    });
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.reportFailure(line, error instanceof Error ? error.message : String(error));
    }
  }

  private reportMissing({ lookedAt }: NotFound): void {
    this.output.error(`No guider-ls. Looked at:\n  ${lookedAt.join('\n  ')}`);
    this.status.stopped('guider-ls was not found');
    const message =
      'GUIDER found no language server: guider-ls is neither in an environment of this folder nor on PATH. ' +
      `Install it (${INSTALL}), or name it in guider.server.command.`;
    void this.report(message, 'Copy install command');
  }

  private reportFailure(line: string, reason: string): void {
    this.output.error(`${line}: ${reason}`);
    this.status.stopped(reason);
    void this.report(`GUIDER's language server did not run: ${line}. ${reason}`, 'Restart');
  }

  private async report(message: string, first: 'Copy install command' | 'Restart'): Promise<void> {
    switch (await vscode.window.showErrorMessage(message, first, 'Open settings', 'Show output')) {
      case 'Copy install command':
        await vscode.env.clipboard.writeText(INSTALL);
        break;
      case 'Restart':
        await this.restart();
        break;
      case 'Open settings':
        await vscode.commands.executeCommand('workbench.action.openSettings', 'guider.server.command');
        break;
      case 'Show output':
        this.output.show();
        break;
    }
  }
}

/** Whether the server's commands are offered in the palette. */
function setRunning(running: boolean): Thenable<unknown> {
  return vscode.commands.executeCommand('setContext', 'guider.running', running);
}

/** The server logs on stderr; its lines are notes, not errors. */
function logLines(stream: NodeJS.ReadableStream, output: vscode.LogOutputChannel): void {
  createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => {
    output.info(line);
  });
}
