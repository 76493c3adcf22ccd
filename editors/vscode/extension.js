// Start `troth lsp` for the folders that are open, and show what it says.
"use strict";
const vscode = require("vscode");
const { CloseAction, LanguageClient } = require("vscode-languageclient/node");
const { find, serverArguments, whyNot, INSTALL } = require("./find");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("troth");
  const folders = (vscode.workspace.workspaceFolders || []).map((one) => one.uri.fsPath);
  const command = find(vscode.workspace.isTrusted ? folders : [], settings.get("path"));
  if (!command) {
    vscode.window.showWarningMessage(`Troth is not installed here. ${INSTALL}`);
    return;
  }
  client = new Client(command, settings.get("log"));
  const started = client;
  await started.start().catch(() => undefined);
  started.serves = started.isRunning();
  if (started.serves || started !== client) return;
  client = undefined;
  vscode.window.showWarningMessage(`Troth does not start here. ${await whyNot(command)} (${command})`);
}

// Until it serves, what goes wrong is said once, by us and with its reason: the library would start it five times, and
// say that it crashed. A server that ends while it is started again makes `start` return as if all were well.
class Client extends LanguageClient {
  constructor(command, log) {
    super(
      "troth",
      "Troth",
      { command, args: serverArguments(log) },
      {
        documentSelector: [{ language: "python" }, { notebook: "*", language: "python" }],
        initializationOptions: { showReferences: true },
        synchronize: { configurationSection: "troth" },
        initializationFailedHandler: () => false,
        errorHandler: {
          error: (...problem) => this.usual.error(...problem),
          closed: () => (this.serves ? this.usual.closed() : { action: CloseAction.DoNotRestart, handled: true }),
        },
      },
    );
    this.serves = false;
    this.usual = this.createDefaultErrorHandler();
  }

  error(message, data, show) {
    super.error(message, data, this.serves ? show : false);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) await running.stop();
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("troth.restart", restart),
    // The project's own troth may be started from now on.
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    // All other settings are taken over by the running server.
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("troth.path") || change.affectsConfiguration("troth.log")) return restart();
    }),
    // The lens sends plain JSON; VS Code wants its own objects.
    vscode.commands.registerCommand("troth.showReferences", (uri, position, locations) =>
      vscode.commands.executeCommand(
        "editor.action.showReferences",
        vscode.Uri.parse(uri),
        client.protocol2CodeConverter.asPosition(position),
        locations.map((one) => client.protocol2CodeConverter.asLocation(one)),
      ),
    ),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
