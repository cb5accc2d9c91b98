import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { findProgram, runProgram } from "../src/program.ts";

const root = mkdtempSync(join(tmpdir(), "mdmem-"));
const workspace = join(root, "workspace");
const planted = join(workspace, ".venv/bin");
const installed = join(root, "bin");
const place = { setting: "", path: "", folders: [workspace], isTrusted: false };

function make(folder: string, script = "exit 9", mode = 0o755): string {
    mkdirSync(folder, { recursive: true });
    const file = join(folder, "mdmem");
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, mode);
    return file;
}

beforeEach(() => {
    rmSync(root, { recursive: true, force: true });
    make(planted);
    make(installed);
});
after(() => rmSync(root, { recursive: true, force: true }));

test("the setting counts before PATH", () => {
    const other = make(join(root, "other"));
    assert.equal(findProgram({ ...place, setting: other, path: installed }), other);
});

test("a setting that is not there, or not absolute, starts nothing else", () => {
    assert.equal(findProgram({ ...place, setting: join(root, "gone"), path: installed }), undefined);
    assert.equal(findProgram({ ...place, setting: "bin/mdmem", path: installed }), undefined);
});

test("only absolute entries of PATH count", () => {
    assert.equal(findProgram({ ...place, path: `:.:.venv/bin:${installed}` }), join(installed, "mdmem"));
    assert.equal(findProgram({ ...place, path: ":.:.venv/bin" }), undefined);
});

test("what cannot be run is passed over", () => {
    make(join(root, "text"), "", 0o644);
    mkdirSync(join(root, "folder/mdmem"), { recursive: true });
    const path = ["text", "folder", "bin"].map((name) => join(root, name)).join(":");
    assert.equal(findProgram({ ...place, path }), join(installed, "mdmem"));
});

test("one inside of the workspace needs trust, by whatever way it is named", () => {
    const linked = join(root, "linked");
    symlinkSync(planted, linked);
    for (const path of [planted, linked, join(installed, "../workspace/.venv/bin")]) {
        assert.equal(findProgram({ ...place, path }), undefined);
        assert.equal(findProgram({ ...place, setting: join(path, "mdmem") }), undefined);
        assert.ok(findProgram({ ...place, path, isTrusted: true }));
    }
    const shortcut = join(root, "shortcut");
    symlinkSync(workspace, shortcut);
    assert.equal(findProgram({ ...place, path: planted, folders: [shortcut] }), undefined);
    assert.equal(findProgram({ ...place, path: join(shortcut, ".venv/bin"), folders: [shortcut] }), undefined);
});

test("a trusted workspace's own comes before PATH", () => {
    assert.equal(findProgram({ ...place, path: installed, isTrusted: true }), join(planted, "mdmem"));
    assert.equal(findProgram({ ...place, path: installed }), join(installed, "mdmem"));
});

test("words reach the program as they are", async () => {
    const program = make(installed, 'for word; do printf \'"%s"\\n\' "$word"; done');
    assert.deepEqual(await runProgram(program, ["$(touch x)", "a b", "; exit 3", "*"]), ["$(touch x)", "a b", "; exit 3", "*"]);
});

test("nothing found is no failure", async () => {
    assert.deepEqual(await runProgram(make(installed, "exit 1"), []), []);
});

test("what mdmem says is what is told", async () => {
    const told = make(installed, 'echo \'{"error": {"message": "no such memory", "hint": "look"}}\'; exit 1');
    await assert.rejects(runProgram(told, []), { message: "no such memory: look" });
    await assert.rejects(runProgram(make(installed, "echo broken >&2; exit 3"), []), { message: "broken" });
    await assert.rejects(runProgram(make(installed, "echo text"), []), { message: "mdmem has printed what is no JSON" });
});

test("a search that nobody waits for is ended", async () => {
    const aborted = new AbortController();
    const running = runProgram(make(installed, "exec sleep 60"), [], aborted.signal);
    aborted.abort();
    await assert.rejects(running);
});
