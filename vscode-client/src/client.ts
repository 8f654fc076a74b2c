/** Starts, restarts and stops the language server; one for the whole window. */

import { createInterface } from 'node:readline';
import * as vscode from 'vscode';
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions, State } from 'vscode-languageclient/node';
import { coalesce } from './coalesce';
import { ActiveProgram, middleware } from './middleware';
import { EditorInterpreter } from './pythonExtension';
import { RestartPolicy } from './restartPolicy';
import { findServer, installCommand, type NotFound, type ServerCommand } from './serverCommand';
import { endOf, type ServerProcess, startServer } from './serverProcess';
import { type ServerStatus, Status } from './status';

/** Milliseconds that a server is given to end by itself. */
const PATIENCE = 3_000;

export class Server implements vscode.Disposable {
  /** Start the server, or start it anew. Calls during a start are answered by one more start after it. */
  readonly restart = coalesce(() => this.startAnew());

  readonly interpreter: EditorInterpreter;
  private readonly status = new Status();
  private readonly program = new ActiveProgram();
  private running: Running | undefined;

  constructor(
    private readonly extensionFolder: string,
    private readonly output: vscode.LogOutputChannel,
  ) {
    this.interpreter = new EditorInterpreter(output);
    this.interpreter.onDidChange(() => {
      void this.running?.client.sendNotification('workspace/didChangeConfiguration', { settings: null });
    });
  }

  async stop(): Promise<void> {
    const running = this.running;
    this.running = undefined;
    offerCommands(false);
    await running?.stop();
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
      return;
    }
    this.output.info(`Starting ${line(found)} (from ${found.source})`);
    const running: Running = new Running(found, this.output, middleware(this.interpreter, this.program), {
      status: (status) => {
        this.status.update(status);
      },
      working: (working) => {
        if (this.running === running) {
          offerCommands(working);
          if (working) {
            this.status.running();
          }
        }
      },
      failed: (reason) => {
        if (this.running === running) {
          this.reportFailure(found, reason);
        }
      },
    });
    this.running = running;
    await running.start();
  }

  private reportMissing({ lookedAt }: NotFound): void {
    this.output.error(`No guider-ls. Looked at:\n  ${lookedAt.join('\n  ')}`);
    this.status.stopped('guider-ls was not found');
    const message =
      'GUIDER found no language server: guider-ls is neither in an environment of this folder nor on PATH. ' +
      'Install it, or name it in guider.server.command.';
    const install = installCommand(this.extensionFolder);
    void this.report(message, install === undefined ? [] : ['Copy install command'], install);
  }

  private reportFailure(command: ServerCommand, reason: string): void {
    this.output.error(`${line(command)}: ${reason}`);
    this.status.stopped(reason);
    const message = `GUIDER's language server (${command.command}, from ${command.source}) does not run. ${reason}`;
    void this.report(message, ['Restart']);
  }

  private async report(message: string, first: ('Copy install command' | 'Restart')[], install = ''): Promise<void> {
    switch (await vscode.window.showErrorMessage(message, ...first, 'Open settings', 'Show output')) {
      case 'Copy install command':
        await vscode.env.clipboard.writeText(install);
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

interface Listener {
  readonly status: (status: ServerStatus) => void;
  readonly working: (working: boolean) => void;
  /** The server does not run and is not started again by itself; said once. */
  readonly failed: (reason: string) => void;
}

/** One start of the server, with the starts that follow from its crashes. */
class Running {
  readonly client: LanguageClient;
  private process: ServerProcess | undefined;
  private readonly policy = new RestartPolicy();
  private failed = false;

  constructor(
    command: ServerCommand,
    private readonly output: vscode.LogOutputChannel,
    middleware: NonNullable<LanguageClientOptions['middleware']>,
    private readonly listener: Listener,
  ) {
    const start = async () => {
      this.process = await startServer(command);
      return this.process.child;
    };
    this.client = new QuietClient('guider', 'GUIDER', start, {
      documentSelector: [
        { scheme: 'file', language: 'python' },
        { scheme: 'untitled', language: 'python' },
        { notebook: 'jupyter-notebook', language: 'python' },
      ],
      outputChannel: output,
      stdioOptions: { stdout: logLines, stderr: logLines },
      initializationOptions: { status: true, buttons: true, trusted: vscode.workspace.isTrusted },
      initializationFailedHandler: () => false,
      middleware,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          const again = this.policy.crashed(Date.now());
          if (!again) {
            void this.fail('It ended too often.');
          }
          return { action: again ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true };
        },
      },
    });
    this.client.onNotification('guider/status', listener.status);
    this.client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) {
        this.policy.started();
      }
      listener.working(newState === State.Running);
    });
  }

  async start(): Promise<void> {
    try {
      await this.client.start();
    } catch (error) {
      await this.fail(error instanceof Error ? error.message : String(error));
    }
  }

  async stop(): Promise<void> {
    this.failed = true;
    try {
      await this.client.dispose();
    } catch (error) {
      this.output.debug(`The server was not stopped in order: ${String(error)}`);
    }
    if (this.process !== undefined) {
      await endOf(this.process, PATIENCE);
    }
  }

  /** Say once that it does not run: how the process ended, if it did, else `reason`. */
  private async fail(reason: string): Promise<void> {
    if (this.failed) {
      return;
    }
    this.failed = true;
    const timeout = new Promise<string>((resolve) => setTimeout(resolve, PATIENCE, reason));
    this.listener.failed(this.process === undefined ? reason : await Promise.race([this.process.ended, timeout]));
  }
}

/** Leaves it to us to say that the server does not start: the library would add messages of its own. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown, showNotification?: boolean | 'force'): void {
    super.error(message, data, this.isRunning() ? showNotification : false);
  }
}

function line(command: ServerCommand): string {
  return [command.command, ...command.args].join(' ');
}

/** Whether the palette offers the server's commands. */
function offerCommands(offered: boolean): void {
  void vscode.commands.executeCommand('setContext', 'guider.running', offered);
}

/** The server logs on stderr; its lines are notes, not errors. */
function logLines(stream: NodeJS.ReadableStream, output: vscode.LogOutputChannel): void {
  createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => {
    output.info(line);
  });
}
