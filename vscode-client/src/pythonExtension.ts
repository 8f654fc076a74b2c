/** The interpreter that the Python extension has chosen, where that extension is installed. */

import { PVSC_EXTENSION_ID, PythonExtension } from '@vscode/python-extension';
import * as vscode from 'vscode';

/** Longest wait for the Python extension before its choice is left out; a later choice is announced. */
const PATIENCE = 5_000;

export class EditorInterpreter implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  /** Fires when the interpreter of some folder is another one than was told before. */
  readonly onDidChange = this.changed.event;

  private readonly told = new Map<string, string>();
  private subscription: vscode.Disposable | undefined;
  private api: Promise<PythonExtension | undefined> | undefined;

  constructor(private readonly log: vscode.LogOutputChannel) {}

  /** The command of the interpreter for `resource`; empty: none is known. */
  async of(resource: vscode.Uri | undefined): Promise<readonly string[]> {
    const choice = this.resolve(resource);
    const patience = delay(PATIENCE);
    const first = await Promise.race([choice, patience.then(() => undefined)]);
    if (first === undefined) {
      void choice.then((late) => {
        this.tell(resource, late);
      });
    } else {
      this.told.set(key(resource), first);
    }
    return first === undefined || first === '' ? [] : [first];
  }

  /** Interpreters that the Python extension knows of, with a label for people. */
  async known(): Promise<readonly { label: string; path: string }[]> {
    const api = await this.connect();
    return (api?.environments.known ?? []).flatMap((environment) => {
      const file = environment.executable.uri?.fsPath;
      return file === undefined ? [] : [{ label: environment.environment?.name ?? file, path: file }];
    });
  }

  dispose(): void {
    this.subscription?.dispose();
    this.changed.dispose();
  }

  private async resolve(resource: vscode.Uri | undefined): Promise<string> {
    try {
      const api = await this.connect();
      if (api === undefined) {
        return '';
      }
      const environment = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(resource));
      return environment?.executable.uri?.fsPath ?? '';
    } catch (error) {
      this.log.warn(`The Python extension names no interpreter: ${String(error)}`);
      return '';
    }
  }

  private connect(): Promise<PythonExtension | undefined> {
    if (vscode.extensions.getExtension(PVSC_EXTENSION_ID) === undefined) {
      return Promise.resolve(undefined);
    }
    this.api ??= PythonExtension.api().then((api) => {
      this.subscription = api.environments.onDidChangeActiveEnvironmentPath((event) => {
        void this.check(event.resource?.uri);
      });
      return api;
    });
    return this.api;
  }

  /** After a change: of `resource`, or of every resource that was asked for. */
  private async check(resource: vscode.Uri | undefined): Promise<void> {
    const asked = resource === undefined ? [...this.told.keys()] : [key(resource)];
    for (const uri of asked) {
      const folder = uri === '' ? undefined : vscode.Uri.parse(uri);
      this.tell(folder, await this.resolve(folder));
    }
  }

  private tell(resource: vscode.Uri | undefined, choice: string): void {
    const before = this.told.get(key(resource)) ?? '';
    this.told.set(key(resource), choice);
    if (choice !== before) {
      this.log.info(`The Python extension's interpreter is now ${choice}`);
      this.changed.fire();
    }
  }
}

function key(resource: vscode.Uri | undefined): string {
  const folder = resource === undefined ? undefined : vscode.workspace.getWorkspaceFolder(resource);
  return (folder?.uri ?? resource)?.toString() ?? '';
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
