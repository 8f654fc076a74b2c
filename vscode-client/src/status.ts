/** The language status item (beside the language in the status bar): what GUIDER knows about the program in the editor. */

import * as vscode from 'vscode';
import { programInEditor } from './middleware';

export type State = 'idle' | 'running' | 'ranked' | 'no-signal' | 'no-target' | 'error' | 'untrusted';

/** The server's notification `guider/status`. */
export interface ServerStatus {
  readonly state: State;
  readonly text: string;
  readonly detail: string;
  readonly uri: string | null;
}

const COMMANDS: Record<State, vscode.Command> = {
  idle: { title: 'Localize', command: 'guider.localize' },
  running: { title: 'Cancel', command: 'guider.cancel' },
  ranked: { title: 'Show report', command: 'guider.showReport' },
  'no-signal': { title: 'Show report', command: 'guider.showReport' },
  'no-target': { title: 'Train and localize', command: 'guider.trainAndLocalize' },
  error: { title: 'Show engine log', command: 'guider.showLog' },
  untrusted: { title: 'Manage trust', command: 'workbench.trust.manage' },
};

export class Status implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem('guider', { language: 'python' });
  private readonly byUri = new Map<string, ServerStatus>();
  private general: ServerStatus | undefined;
  private readonly subscriptions: vscode.Disposable;

  constructor() {
    this.item.name = 'GUIDER';
    this.subscriptions = vscode.Disposable.from(
      this.item,
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.refresh();
      }),
      vscode.window.onDidChangeActiveNotebookEditor(() => {
        this.refresh();
      }),
      vscode.workspace.onDidCloseTextDocument((document) => this.byUri.delete(document.uri.toString())),
      vscode.workspace.onDidCloseNotebookDocument((notebook) => this.byUri.delete(notebook.uri.toString())),
    );
  }

  starting(): void {
    this.reset();
    this.show('GUIDER: starting', '', undefined, vscode.LanguageStatusSeverity.Information, true);
  }

  /** The server is not there; `text` says why. */
  stopped(text: string): void {
    this.reset();
    const restart = { title: 'Restart', command: 'guider.restart' };
    this.show('GUIDER: not running', text, restart, vscode.LanguageStatusSeverity.Error, false);
  }

  running(): void {
    this.refresh();
  }

  update(status: ServerStatus): void {
    if (status.uri === null) {
      this.general = status;
    } else {
      this.byUri.set(vscode.Uri.parse(status.uri).toString(), status);
    }
    this.refresh();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private reset(): void {
    this.byUri.clear();
    this.general = undefined;
  }

  private refresh(): void {
    const active = programInEditor()?.toString();
    const status = (active === undefined ? undefined : this.byUri.get(active)) ?? this.general;
    if (status === undefined) {
      this.show('GUIDER', '', COMMANDS.idle, vscode.LanguageStatusSeverity.Information, false);
      return;
    }
    const severity =
      status.state === 'error' ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
    this.show(status.text || 'GUIDER', plain(status.detail), COMMANDS[status.state], severity, status.state === 'running');
  }

  private show(
    text: string,
    detail: string,
    command: vscode.Command | undefined,
    severity: vscode.LanguageStatusSeverity,
    busy: boolean,
  ): void {
    this.item.text = text;
    this.item.detail = detail;
    this.item.command = command;
    this.item.severity = severity;
    this.item.busy = busy;
  }
}

/** The status item shows plain text: Markdown's emphasis and escapes would stand there as they are. */
function plain(markdown: string): string {
  return markdown.replace(/\\([^\w\s])|[*`]/g, '$1').replace(/\s*\n\s*/g, ' · ').trim();
}
