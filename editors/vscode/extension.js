// Starts `ampc lsp` for models of ampc.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = function () {
    const command = vscode.workspace.getConfiguration("ampc").get("path");
    client = new LanguageClient("ampc", "ampc", { command, args: ["lsp"] }, { documentSelector: [{ language: "amp" }] });
    return client.start().catch((why) => {
        vscode.window.showErrorMessage(`${why} The setting ampc.path names the program.`);
    });
};

exports.deactivate = () => client && client.isRunning() && client.stop();
