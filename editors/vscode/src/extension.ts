/** Starts `mdmem lsp`, and offers what an editor has no question for: templates and search. */

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import { LanguageClient, type Middleware } from "vscode-languageclient/node";
import { findProgram, runProgram } from "./program.ts";
import { changesLinks, isDestination, type LinkUpdates } from "./renames.ts";

const MARKDOWN = { scheme: "file", language: "markdown" };
const SELECTOR = [
    MARKDOWN,
    { scheme: "file", pattern: "**/*.mdx" },
    { scheme: "file", language: "json" },
];
const CONFIG = join(".mdmem", "config.toml");
const FEW = 20;

let client: LanguageClient | undefined;
let starting: Promise<void> = Promise.resolve();
let output: vscode.LogOutputChannel;

export function activate(context: vscode.ExtensionContext): Promise<void> {
    output = vscode.window.createOutputChannel("mdmem", { log: true });
    context.subscriptions.push(
        output,
        showFindings(),
        vscode.commands.registerCommand("mdmem.new", () => attempt(makeMemory)),
        vscode.commands.registerCommand("mdmem.search", () => attempt(searchMemories)),
        vscode.commands.registerCommand("mdmem.references", () =>
            vscode.commands.executeCommand("references-view.findReferences"),
        ),
        vscode.workspace.onDidGrantWorkspaceTrust(restart),
        vscode.workspace.onDidChangeWorkspaceFolders(restart),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (event.affectsConfiguration("mdmem.path")) {
                void restart();
            }
        }),
    );
    return restart();
}

export async function deactivate(): Promise<void> {
    await client?.stop();
}

// ------------------------------------------------------------------------------------------- the server

/** Start the mdmem that may be started now, in place of the one that runs. */
function restart(): Promise<void> {
    starting = starting.then(async () => {
        const program = locateProgram();
        if (client && client.name === program) {
            return;
        }
        await client?.stop().catch((error: unknown) => output.warn(String(error)));
        client = undefined;
        if (!program) {
            void explainMissing();
            return;
        }
        output.info(`starts ${program} lsp`);
        const started = new LanguageClient(
            "mdmem",
            program,
            { command: program, args: ["lsp"] },
            { documentSelector: SELECTOR, outputChannel: output, middleware },
        );
        try {
            await started.start();
            client = started;
        } catch (error) {
            output.error(String(error));
            const told = "mdmem does not start. Does it have its language server, the extra lsp?";
            void vscode.window.showErrorMessage(told, "Show Log").then((chosen) => chosen && output.show());
        }
    });
    return starting;
}

function locateProgram(): string | undefined {
    return findProgram({
        setting: vscode.workspace.getConfiguration("mdmem").get("path", ""),
        path: process.env["PATH"] ?? "",
        folders: listFolders(),
        isTrusted: vscode.workspace.isTrusted,
    });
}

function listFolders(): string[] {
    return (vscode.workspace.workspaceFolders ?? []).map((each) => each.uri.fsPath);
}

async function explainMissing(): Promise<void> {
    const told = "There is no mdmem to start. Install it with its extra lsp, or set where it is.";
    const setting = "Open Setting";
    if ((await vscode.window.showWarningMessage(told, setting)) === setting) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "mdmem.path");
    }
}

// ------------------------------------------------------------------------------------------- renames

const middleware: Middleware = {
    workspace: {
        async willRenameFiles(event, next) {
            const edit = (await next(event)) as vscode.WorkspaceEdit | null;
            if (!edit || !(await isSharedRename(event))) {
                return edit;
            }
            const kept = new vscode.WorkspaceEdit();
            for (const [uri, edits] of edit.entries()) {
                const document = await vscode.workspace.openTextDocument(uri);
                kept.set(uri, edits.filter((each) => !isDestination(readBefore(document, each.range.start))));
            }
            return kept;
        },
    },
};

function readBefore(document: vscode.TextDocument, position: vscode.Position): string {
    return document.getText(new vscode.Range(position.with({ character: 0 }), position));
}

/** Whether VS Code changes Markdown links after this rename, too. */
async function isSharedRename(event: vscode.FileWillRenameEvent): Promise<boolean> {
    for (const { oldUri, newUri } of event.files) {
        const updates = vscode.workspace.getConfiguration("markdown", newUri).get<LinkUpdates>("updateLinksOnFileMove");
        const { type } = await vscode.workspace.fs.stat(oldUri);
        if (updates && changesLinks(updates, newUri.fsPath, type === vscode.FileType.Directory)) {
            return true;
        }
    }
    return false;
}

// ------------------------------------------------------------------------------------------- findings

/** Show how many findings the file in front has. */
function showFindings(): vscode.Disposable {
    const item = vscode.languages.createLanguageStatusItem("mdmem.findings", MARKDOWN);
    item.name = "mdmem";
    item.command = { command: "workbench.actions.view.problems", title: "Show" };
    const update = (): void => {
        const uri = vscode.window.activeTextEditor?.document.uri;
        const found = uri ? vscode.languages.getDiagnostics(uri).filter((each) => each.source === "mdmem") : [];
        const isBad = found.some((each) => each.severity <= vscode.DiagnosticSeverity.Warning);
        item.severity = isBad ? vscode.LanguageStatusSeverity.Warning : vscode.LanguageStatusSeverity.Information;
        item.text = found.length === 1 ? "mdmem: 1 finding" : `mdmem: ${found.length || "no"} findings`;
    };
    update();
    return vscode.Disposable.from(
        item,
        vscode.languages.onDidChangeDiagnostics(update),
        vscode.window.onDidChangeActiveTextEditor(update),
    );
}

// ------------------------------------------------------------------------------------------- commands

async function attempt(command: (run: Run, root: string) => Promise<void>): Promise<void> {
    const program = locateProgram();
    if (!program) {
        return explainMissing();
    }
    const root = await chooseVault();
    if (!root) {
        return;
    }
    try {
        await command((words, signal) => runProgram(program, ["--vault", root, ...words], signal), root);
    } catch (error) {
        void vscode.window.showErrorMessage(`mdmem: ${(error as Error).message}`);
    }
}

type Run = (words: readonly string[], signal?: AbortSignal) => Promise<unknown[]>;

/** Return the vault around the file in front, else that of the workspace; whoever has several is asked. */
async function chooseVault(): Promise<string | undefined> {
    const active = vscode.window.activeTextEditor?.document.uri;
    const around = active?.scheme === "file" ? findAround(dirname(active.fsPath)) : undefined;
    if (around) {
        return around;
    }
    const configs = await vscode.workspace.findFiles(`**/${CONFIG}`, "**/node_modules/**", FEW);
    const below = configs.map((each) => dirname(dirname(each.fsPath)));
    const above = listFolders().map(findAround).filter((each) => each !== undefined);
    const found = [...new Set([...above, ...below])].sort();
    if (!found.length) {
        void vscode.window.showInformationMessage("There is no vault here. Make one by: mdmem init");
    }
    return found.length > 1 ? vscode.window.showQuickPick(found, { title: "Which vault?" }) : found[0];
}

function findAround(folder: string): string | undefined {
    const found = [folder, join(folder, "memories")].find((each) => existsSync(join(each, CONFIG)));
    return found ?? (dirname(folder) === folder ? undefined : findAround(dirname(folder)));
}

interface Template {
    name: string;
    description: string;
}

interface Shown {
    variables: { name: string; required: boolean }[];
}

interface Planned {
    files: { path: string }[];
}

async function makeMemory(run: Run, root: string): Promise<void> {
    const templates = (await run(["template", "list", "--json"])) as Template[];
    const chosen = await vscode.window.showQuickPick(
        templates.map(({ name, description }) => ({ label: name, detail: description })),
        { title: "Template", matchOnDetail: true },
    );
    if (!chosen) {
        return;
    }
    const path = await ask("Path in the vault", "notes/name.md");
    if (!path) {
        return;
    }
    const words: string[] = [];
    const [shown] = (await run(["template", "show", chosen.label, "--json"])) as Shown[];
    for (const { name } of shown?.variables.filter((each) => each.required) ?? []) {
        const value = await ask(name);
        if (value === undefined) {
            return;
        }
        words.push("--var", `${name}=${value}`);
    }
    const [made] = (await run(["new", "--json", ...words, "--", chosen.label, path])) as Planned[];
    for (const file of made?.files ?? []) {
        await vscode.window.showTextDocument(vscode.Uri.file(join(root, file.path)));
    }
}

function ask(title: string, placeHolder = ""): Thenable<string | undefined> {
    return vscode.window.showInputBox({ title, placeHolder, ignoreFocusOut: true });
}

interface Hit {
    path: string;
    line: number;
    heading: string[];
    text: string;
}

type HitItem = vscode.QuickPickItem & { hit: Hit };

/** Search while words are typed: a search that is not finished by the next letter is given up. */
async function searchMemories(run: Run, root: string): Promise<void> {
    const list = vscode.window.createQuickPick<HitItem>();
    list.title = "Search memories";
    let running = new AbortController();
    list.onDidChangeValue(async (value) => {
        running.abort();
        const { signal } = (running = new AbortController());
        list.busy = Boolean(value.trim());
        const words = ["search", "--json", "--limit", String(FEW), "--", value];
        const hits = value.trim() ? await run(words, signal).catch(() => []) : [];
        if (!signal.aborted) {
            list.items = (hits as Hit[]).map(describeHit);
            list.busy = false;
        }
    });
    list.onDidAccept(async () => {
        const [item] = list.selectedItems;
        list.hide();
        if (item) {
            const start = new vscode.Position(item.hit.line - 1, 0);
            const selection = new vscode.Range(start, start);
            await vscode.window.showTextDocument(vscode.Uri.file(join(root, item.hit.path)), { selection });
        }
    });
    list.onDidHide(() => {
        running.abort();
        list.dispose();
    });
    list.show();
}

function describeHit(hit: Hit): HitItem {
    // What mdmem has found is shown, whether or not the list thinks that it fits.
    return {
        hit,
        label: hit.path,
        description: hit.heading.join(" › "),
        detail: hit.text.trim(),
        alwaysShow: true,
    };
}
