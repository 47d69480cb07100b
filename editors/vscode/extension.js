// Starts `prsl lsp`. Without `npm install`, the extension only colors texts.

const vscode = require("vscode");

let client;

exports.activate = async () => {
  let languageclient;
  try {
    languageclient = require("vscode-languageclient/node");
  } catch {
    return;
  }
  const command = vscode.workspace.getConfiguration("prsl").get("command", "prsl");
  const server = { command, args: ["lsp"] };
  client = new languageclient.LanguageClient("prsl", "prsl", server, { documentSelector: [{ language: "prsl" }] });
  await client.start();
};

exports.deactivate = () => client?.stop();
