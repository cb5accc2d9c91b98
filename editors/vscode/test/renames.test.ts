import assert from "node:assert/strict";
import { test } from "node:test";
import { changesLinks, isDestination } from "../src/renames.ts";

const always = { enabled: "always", include: ["**/*.{md,markdown}", "**/*.{png,jpg}"], enableForDirectories: true };

test("VS Code changes links to what its setting includes", () => {
    assert.ok(changesLinks(always, "/w/notes/a.md", false));
    assert.ok(changesLinks({ ...always, enabled: "prompt" }, "/w/notes/🦊.png", false));
    assert.ok(changesLinks(always, "/w/notes", true));
    assert.ok(!changesLinks(always, "/w/src/app.py", false));
    assert.ok(!changesLinks({ ...always, enableForDirectories: false }, "/w/notes", true));
    assert.ok(!changesLinks({ ...always, enabled: "never" }, "/w/notes/a.md", false));
});

test("destinations of Markdown links are VS Code's", () => {
    for (const before of ["[a](", "🦊 [[a]] and [b](", "![a](<", "[a](../", "[a]: ", "  [a b]: <"]) {
        assert.ok(isDestination(before), before);
    }
});

test("all other links are mdmem's", () => {
    for (const before of ["[[", "see [a](b.md) and [[", "`", "[a](b.md) `", 'related: "[[', "[a](b.md) ![["]) {
        assert.ok(!isDestination(before), before);
    }
});
