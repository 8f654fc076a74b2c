// The part of the Python extension's API that tells which environment is active; a file holds the answer.
const { readFileSync } = require('node:fs');
const vscode = require('vscode');

const active = () => readFileSync(process.env.STAND_IN_ENVIRONMENT, 'utf8').trim();

exports.activate = (context) => {
  const changed = new vscode.EventEmitter();
  const reread = () => changed.fire({ id: active(), path: active(), resource: undefined });
  context.subscriptions.push(changed, vscode.commands.registerCommand('standin.reread', reread));
  return {
    ready: Promise.resolve(),
    environments: {
      known: [],
      getActiveEnvironmentPath: () => ({ id: active(), path: active() }),
      resolveEnvironment: async ({ path }) => ({ executable: { uri: vscode.Uri.file(path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
