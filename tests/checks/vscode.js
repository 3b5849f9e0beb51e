// editors/vscode in node, where `vscode` is a stand-in for VS Code's API: the extension is activated, its client starts
// `ampc lsp`, and what it registers is asked about a model.
//
//     node vscode.js EXTENSION AMPC MODEL
//
// Where EXTENSION has no client library (npm install), only what it would start is looked at. A line "pass WHAT" or
// "FAIL WHAT: why" for each check.
"use strict";
const fs = require("fs");
const Module = require("module");
const path = require("path");
const url = require("url");

const [extension, ampc, model] = process.argv.slice(2).map((name) => path.resolve(name));

function check(what, good, why) {
    console.log(good ? `pass VS Code: ${what}` : `FAIL VS Code: ${what}: ${JSON.stringify(why)}`);
}

// ---- what is pure data in VS Code's API

class Position {
    constructor(line, character) {
        Object.assign(this, { line, character });
    }
}
class Range {
    constructor(a, b, c, d) {
        const places = typeof a === "number" ? [new Position(a, b), new Position(c, d)] : [a, b];
        [this.start, this.end] = places;
    }
}
class Uri {
    constructor(href) {
        this.href = href;
        this.scheme = href.split(":")[0];
        this.fsPath = this.scheme === "file" ? url.fileURLToPath(href) : "";
        this.path = this.fsPath;
    }
    static file(name) {
        return new Uri(url.pathToFileURL(name).href);
    }
    static parse(href) {
        return new Uri(href);
    }
    toString() {
        return this.href;
    }
}
class Disposable {
    constructor(dispose) {
        this.dispose = dispose || (() => {});
    }
}
class EventEmitter {
    constructor() {
        this.listeners = new Set();
        this.event = (listener, self) => {
            const heard = self ? listener.bind(self) : listener;
            this.listeners.add(heard);
            return new Disposable(() => this.listeners.delete(heard));
        };
    }
    fire(event) {
        for (const listener of this.listeners) listener(event);
    }
    dispose() {
        this.listeners.clear();
    }
}
class CancellationTokenSource {
    constructor() {
        this.emitter = new EventEmitter();
        this.token = { isCancellationRequested: false, onCancellationRequested: this.emitter.event };
    }
    cancel() {
        this.token.isCancellationRequested = true;
        this.emitter.fire();
    }
    dispose() {}
}

// A class that keeps its arguments by the names of its fields.
const record = (...fields) =>
    class {
        constructor(...values) {
            fields.forEach((field, i) => { if (values[i] !== undefined) this[field] = values[i]; });
        }
    };
const numbered = (...names) => Object.fromEntries(names.map((name, i) => [name, i]));

// ---- what does something: documents that are open, and what was registered

const opened = new EventEmitter(), closed = new EventEmitter();
const registered = {}, diagnostics = new Map(), said = [];
const documents = [];
const never = () => new Disposable();
const settings = { ampc: { path: ampc } };

// An API whose other events never happen.
const api = (members) =>
    new Proxy(members, {
        get: (from, name) => (name in from || !/^on(Did|Will)/.test(String(name)) ? from[name] : never),
    });

const vscode = {
    version: "1.96.2",
    Position, Range, Uri, Disposable, EventEmitter, CancellationTokenSource,
    CancellationError: class extends Error {},
    Location: record("uri", "range"),
    Diagnostic: record("range", "message", "severity"),
    DiagnosticRelatedInformation: record("location", "message"),
    DiagnosticSeverity: numbered("Error", "Warning", "Information", "Hint"),
    DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
    MarkdownString: class {
        constructor(value = "") {
            this.value = value;
        }
        appendCodeblock(text, language) {
            this.value += `\n\`\`\`${language}\n${text}\n\`\`\`\n`;
            return this;
        }
    },
    Hover: record("contents", "range"),
    InlayHint: record("position", "label", "kind"),
    InlayHintLabelPart: record("value"),
    InlayHintKind: { Type: 1, Parameter: 2 },
    CompletionItem: record("label", "kind"),
    CompletionList: record("items", "isIncomplete"),
    CompletionItemKind: numbered("Text", "Method", "Function", "Constructor", "Field", "Variable", "Class", "Interface",
        "Module", "Property", "Unit", "Value", "Enum", "Keyword"),
    CompletionItemTag: { Deprecated: 1 },
    DocumentSymbol: record("name", "detail", "kind", "range", "selectionRange"),
    SymbolInformation: record("name", "kind", "containerName", "location"),
    SymbolKind: numbered("File", "Module", "Namespace", "Package", "Class", "Method", "Property", "Field"),
    SymbolTag: { Deprecated: 1 },
    SnippetString: record("value"),
    TextEdit: record("range", "newText"),
    CodeAction: record("title", "kind"), CodeLens: record("range", "command"), DocumentLink: record("range", "target"),
    CallHierarchyItem: record("kind", "name", "detail", "uri", "range", "selectionRange"),
    TypeHierarchyItem: record("kind", "name", "detail", "uri", "range", "selectionRange"),
    CodeActionKind: new Proxy({}, { get: (_, name) => ({ value: String(name) }) }),
    TextDocumentSaveReason: { Manual: 1, AfterDelay: 2, FocusOut: 3 },
    FoldingRangeKind: {}, ProgressLocation: {}, ViewColumn: {}, CompletionTriggerKind: {},
    env: { appName: "a stand-in for VS Code", language: "en" },
    languages: {
        createDiagnosticCollection: () => ({
            set: (uri, found) => diagnostics.set(uri.toString(), found),
            delete: () => {}, clear: () => {}, dispose: () => {},
        }),
        match: (selector, document) =>
            [].concat(selector).some((filter) => (filter.language || filter) === document.languageId) ? 10 : 0,
    },
    workspace: api({
        textDocuments: documents, workspaceFolders: undefined, notebookDocuments: [], isTrusted: true,
        onDidOpenTextDocument: opened.event, onDidCloseTextDocument: closed.event,
        getConfiguration: (section) => ({ get: (name, other) => (settings[section] || {})[name] ?? other }),
        createFileSystemWatcher: () => api({ dispose: () => {} }),
    }),
    window: api({
        visibleTextEditors: [], activeTextEditor: undefined, tabGroups: api({ all: [] }),
        createOutputChannel: () => ({
            append: (text) => said.push(text), appendLine: (text) => said.push(text), show: () => {}, dispose: () => {},
        }),
        showErrorMessage: async (text) => void said.push(text),
        showWarningMessage: async (text) => void said.push(text),
        showInformationMessage: async (text) => void said.push(text),
    }),
    commands: { registerCommand: never, executeCommand: async () => {} },
};
for (const what of ["Hover", "InlayHints", "Definition", "DocumentSymbol", "CompletionItem"])
    vscode.languages[`register${what}Provider`] = (selector, provider) => {
        registered[what] = provider;
        return new Disposable();
    };

const LIBRARY = "vscode-languageclient/node";
const has_library = fs.existsSync(path.join(extension, "node_modules", "vscode-languageclient"));
const asked = []; // of the library, where it is not there

class NoClient {
    constructor(...how) {
        asked.push(...how);
    }
    async start() {
        asked.push("start");
    }
    isRunning() {
        return asked.includes("start");
    }
    async stop() {
        asked.push("stop");
    }
}

const load = Module._load;
Module._load = (name, ...rest) => {
    if (name === "vscode") return vscode;
    return name === LIBRARY && !has_library ? { LanguageClient: NoClient } : load(name, ...rest);
};

// ---- a document, as VS Code has it

function open(name, text) {
    const lines = text.split("\n");
    const document = {
        uri: Uri.file(name), fileName: name, languageId: "amp", version: 1, isClosed: false, lineCount: lines.length,
        getText: () => text, lineAt: (line) => ({ text: lines[line] }),
    };
    documents.push(document);
    opened.fire(document);
    return document;
}

function place(document, text) {
    const before = document.getText().slice(0, document.getText().indexOf(text)).split("\n");
    return new Position(before.length - 1, before[before.length - 1].length);
}

async function wait(condition) {
    for (let i = 0; i < 200 && !condition(); i++) await new Promise((done) => setTimeout(done, 50));
    return condition();
}

// ---- checks

const entry = require(path.join(extension, JSON.parse(fs.readFileSync(path.join(extension, "package.json"))).main));

async function check_start() {
    await entry.activate({ subscriptions: [] });
    await entry.deactivate();
    const [id, name, server, client, ...rest] = asked;
    check("the client has a name", id === "ampc" && name === "ampc", asked);
    check("it starts the server", server.command === ampc && server.args.join() === "lsp", server);
    check("for models", JSON.stringify(client.documentSelector) === '[{"language":"amp"}]', client);
    check("and ends it", rest.join() === "start,stop", rest);
}

async function check_missing() {
    settings.ampc.path = path.join(extension, "no-such-program");
    await entry.activate({ subscriptions: [] });
    check("without the program the setting is named", /no-such-program.*ENOENT.*ampc\.path/.test(said.join(" ")), said);
    await entry.deactivate();
    settings.ampc.path = ampc;
    said.length = 0;
}

async function check_server() {
    const text = fs.readFileSync(model, "utf8");
    const document = open(model, text);
    await entry.activate({ subscriptions: [] });
    check("the extension is activated", true);
    const is_offered = await wait(() => Object.keys(registered).length === 5);
    check("what is offered is registered", is_offered, Object.keys(registered));

    const { token } = new CancellationTokenSource();
    const uri = document.uri.toString();
    const is_told = await wait(() => diagnostics.has(uri));
    check("a model has no errors", is_told && !diagnostics.get(uri).length, [...diagnostics, said]);

    const hints = await registered.InlayHints.provideInlayHints(document, new Range(0, 0, 1000, 0), token);
    const labels = hints.map((hint) => hint.label);
    check("hints have shape and dtype", labels.includes(": f16[N, 512]"), labels);
    const hover = await registered.Hover.provideHover(document, place(document, "relu"), token);
    check("a hover has the reason", JSON.stringify(hover).includes("because min-cast.policy:"), hover);
    const symbols = await registered.DocumentSymbol.provideDocumentSymbols(document, token);
    check("symbols of the file", JSON.stringify(symbols).includes('"mlp"'), symbols);
    const from = place(document, "HIDDEN)");
    const definition = await registered.Definition.provideDefinition(document, from, token);
    check("a definition", [].concat(definition)[0].range.start.line === place(document, "HIDDEN =").line, definition);
    const items = await registered.CompletionItem.provideCompletionItems(document, place(document, "relu"), token, {});
    check("completion", JSON.stringify(items).includes("softmax"), items);

    const wrong = open(model + ".wrong.amp", text.replace("relu(", "rleu("));
    const found = () => diagnostics.get(wrong.uri.toString()) || [];
    check("an error is told", await wait(() => found().length) && found()[0].message.includes("rleu"), found());
    check("at its place", found()[0]?.range.start.line === place(wrong, "rleu").line, found());
    check("nobody was told of a failure", !said.join("").match(/fail|couldn't|crash/i), said);
    await entry.deactivate();
    check("the extension is deactivated", true);
}

async function main() {
    if (!has_library) return check_start();
    await check_missing();
    await check_server();
}

main().then(() => check("the checks end", true), (why) => check("the checks end", false, why.stack || why))
    .finally(() => process.exit());
