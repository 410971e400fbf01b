// Starts `weir lsp` for open Weir files, and stops it with the editor. Runs the tests that code lenses offer.

const { commands, ProcessExecution, Task, tasks, TaskScope, Uri, workspace } = require('vscode')
const { LanguageClient } = require('vscode-languageclient/node')

let client

function activate(context) {
  const command = workspace.getConfiguration('weir').get('command')
  context.subscriptions.push(commands.registerCommand('weir.runTest', (uri, name) => runTest(command, uri, name)))
  client = new LanguageClient(
    'weir',
    'Weir',
    { command, args: ['lsp'] },
    { documentSelector: [{ language: 'weir' }] },
  )
  return client.start()
}

async function runTest(command, uri, name) {
  await workspace.saveAll(false)
  const execution = new ProcessExecution(command, ['test', Uri.parse(uri).fsPath, '--filter', name, '--exact'])
  return tasks.executeTask(new Task({ type: 'weir', name }, TaskScope.Workspace, name, 'weir', execution))
}

function deactivate() {
  return client && client.stop()
}

module.exports = { activate, deactivate }
