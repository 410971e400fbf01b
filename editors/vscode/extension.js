// Starts `weir lsp` for open Weir files, and stops it with the editor.

const { workspace } = require('vscode')
const { LanguageClient } = require('vscode-languageclient/node')

let client

function activate() {
  const command = workspace.getConfiguration('weir').get('command')
  client = new LanguageClient(
    'weir',
    'Weir',
    { command, args: ['lsp'] },
    { documentSelector: [{ language: 'weir' }] },
  )
  return client.start()
}

function deactivate() {
  return client && client.stop()
}

module.exports = { activate, deactivate }
