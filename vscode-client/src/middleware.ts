/** What the client adds to the messages between editor and server. */

import * as vscode from 'vscode';
import type { LanguageClientOptions } from 'vscode-languageclient/node';
import type { EditorInterpreter } from './pythonExtension';

type Middleware = NonNullable<LanguageClientOptions['middleware']>;

/** The program in the active editor: a Python file, or a notebook as a whole. */
export function programInEditor(): vscode.Uri | undefined {
  const notebook = vscode.window.activeNotebookEditor?.notebook;
  if (notebook !== undefined) {
    return notebook.notebookType === 'jupyter-notebook' ? notebook.uri : undefined;
  }
  const document = vscode.window.activeTextEditor?.document;
  return document?.languageId === 'python' ? document.uri : undefined;
}

/** The program that a command without argument means: the active editor's, else the last one that was. */
export class ActiveProgram implements vscode.Disposable {
  private last: vscode.Uri | undefined;
  private readonly subscription: vscode.Disposable;

  constructor() {
    const remember = (): void => {
      this.last = programInEditor() ?? this.last;
    };
    remember();
    this.subscription = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor(remember),
      vscode.window.onDidChangeActiveNotebookEditor(remember),
    );
  }

  get uri(): vscode.Uri | undefined {
    return this.last;
  }

  dispose(): void {
    this.subscription.dispose();
  }
}

export function middleware(interpreter: EditorInterpreter, program: ActiveProgram): Middleware {
  return {
    workspace: {
      configuration: async (params, token, next) => {
        const answers = await next(params, token);
        if (!Array.isArray(answers)) {
          return answers;
        }
        return Promise.all(
          answers.map(async (answer: unknown, index) => {
            const item = params.items[index];
            if (item?.section !== 'guider' || typeof answer !== 'object') {
              return answer;
            }
            const resource = item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri);
            return { ...answer, editorInterpreter: await interpreter.of(resource) };
          }),
        );
      },
    },
    executeCommand: async (command, args: unknown[], next) => {
      const uri = args.length === 0 ? program.uri : undefined;
      if (command === 'guider.trainAndLocalize' && !(await savePrograms())) {
        return undefined;
      }
      return next(command, uri === undefined ? args : [uri.toString()]) as Promise<unknown>;
    },
  };
}

/** Save what would run: Python runs the files on the disk. Answers whether all were saved. */
async function savePrograms(): Promise<boolean> {
  const unsaved = vscode.workspace.textDocuments.filter(
    (document) => document.isDirty && document.languageId === 'python' && document.uri.scheme === 'file',
  );
  const saved = await Promise.all(unsaved.map((document) => document.save()));
  return saved.every(Boolean);
}
