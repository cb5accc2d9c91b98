"""An Obsidian vault is taken in byte for byte; links that lead nowhere or to several are named.

Claude Code's memory folder is taken in as it is: names become titles and aliases, types stay.

A folder of basic-memory is taken in as it is: only what its links call a note is added, as aliases.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

import mdmem
from mdmem.errors import NamedNotFound, Usage
from mdmem.facade.memory import Memory, open as open_memory
from mdmem.vault.plan import Outcome
from tests import speed
from tests.killing import killed
from tests.tables import cases

TOKEN = b"AKIA" + b"QWERTYUIOPASDF23\n"
HOME = """\
---
aliases: [Start]
---
[[Daily]] and [[Twin]] and ![[picture.png]]
[here](sub/Other%20note.md) but [[Nowhere]]
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for path, text in {
        "Home.md": HOME,
        "Daily.md": "[[Start]]\r\n",
        "a/Twin.md": "one\n",
        "b/Twin.md": "two\n",
        "sub/Other note.md": "[[Home#Nothing|home]]\n",
        "picture.png": "not really",
        ".obsidian/app.json": "{}",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return root


def test_notes_are_taken_as_they_are_and_unclear_links_are_found(memory: Memory, source: Path) -> None:
    applied = memory.import_("obsidian", str(source), to="notes/vault")
    assert {file.path for file in applied.files} == {
        f"notes/vault/{name}"
        for name in ("Home.md", "Daily.md", "a/Twin.md", "b/Twin.md", "sub/Other note.md", "picture.png")
    }
    for name in ("Home.md", "Daily.md", "picture.png"):
        assert Path(memory.root, f"notes/vault/{name}").read_bytes() == (source / name).read_bytes()
    assert applied.plan.outcomes == (
        Outcome("new memories", 5),
        Outcome("new attachments", 1),
        Outcome("passed over: hidden", 1, (".obsidian/",)),
    )
    assert applied.plan.left_out == ()
    unclear = memory.references.list(states=("dangling", "ambiguous"))
    assert {each.target for each in unclear} >= {"Nowhere"}


def test_links_that_will_mean_several_memories_are_warnings_of_the_plan_and_of_the_import(
    memory: Memory, source: Path
) -> None:
    memory.write("notes/mine/Daily.md", "stands there already\n")
    (source / "sub/Other note.md").write_text("[[Twin#one]] [t][] [there](../b/Twin.md)\n\n[t]: ../a/Twin\n")
    plan = memory.plan.import_("obsidian", str(source), to="notes/vault")
    warnings = [(found.path, found.position.line, found.message) for found in plan.warnings]
    assert warnings == [
        ("notes/vault/Home.md", 4, "it may also mean notes/vault/b/Twin.md"),
        ("notes/vault/sub/Other note.md", 1, "it may also mean notes/vault/b/Twin.md"),
    ]
    applied = memory.import_("obsidian", str(source), to="notes/vault")
    assert applied.plan.warnings == plan.warnings
    assert {str(found) for found in memory.check()} >= {str(found) for found in plan.warnings[:1]}
    assert memory.import_("obsidian", str(source), to="notes/vault").plan.warnings == ()


def test_links_that_are_silenced_are_not_warned_of(memory: Memory, source: Path) -> None:
    config = Path(memory.root, ".mdmem", "config.toml")
    config.write_text('[check]\nsilenced = ["ambiguous-link"]\n')
    assert open_memory(memory.root).plan.import_("obsidian", str(source)).warnings == ()


def test_a_plan_reports_the_same_and_writes_nothing(memory: Memory, source: Path) -> None:
    before = memory.ls()
    plan = memory.plan.import_("obsidian", str(source))
    assert len(plan.changes) == 5
    assert memory.ls() == before


# Whatever is wrong with a file, or unusual about its name.
ODD = {
    "deep.md": b"---\na: " + b"[" * 40 + b"]" * 40 + b"\n---\n[[Home]]\n",
    "large frontmatter.md": b"---\na: " + b"x" * 70_000 + b"\n---\n",
    "large.md": b"x" * 5_000_000,
    "latin.md": b"caf\xe9\n",
    "nul.md": b"a\0b\n",
    "empty.md": b"",
    "mark.md": b"\xef\xbb\xbf---\r\ntitle: A\r\n---\r\nno line end",
    "unreadable.md": b"---\ntitle: Plan: elephants\n---\n",
    "mapping.md": b"---\ntags: {a: 3}\ncreated: [1]\nsource: 7\n---\n",
    "schema.md": b"---\n$schema: https://example.org/none\n---\n",
    "broken.json": b'{"a": ',
    "graph.canvas": b'{"nodes": []}',
    "what?.md": b"a name that Windows cannot hold\n",
    "con.md": b"reserved\n",
    "trailing. /a.md": b"a folder that Windows cannot hold\n",
    "Home.mdx": b"import x from 'y'\n",
    "rules/one.md": b"---\nglobs: 7\n---\n",
    "data": b"\x89PNG\0",
    "data.d/x.bin": b"\xff\xfe",
}


@pytest.mark.parametrize("form", ["obsidian", "basic-memory", "claude-code"])
def test_every_file_comes_as_it_is_and_goes_and_comes_again(
    memory: Memory, tmp_path: Path, form: str
) -> None:
    for name, data in ODD.items():
        (tmp_path / "odd" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "odd" / name).write_bytes(data)
    if form == "basic-memory":
        (tmp_path / "odd/mark.md").unlink()  # its title becomes an alias
    given = {path.relative_to(tmp_path / "odd"): path.read_bytes() for path in files(tmp_path / "odd")}
    to = Path(memory.root, "notes/x")
    applied = memory.import_(form, str(tmp_path / "odd"), to="notes/x")
    assert applied.plan.left_out == ()
    assert {path.relative_to(to): path.read_bytes() for path in files(to)} == given
    assert memory.import_(form, str(tmp_path / "odd"), to="notes/x").files == ()
    memory.undo()
    assert not to.exists()
    memory.redo()
    assert {path.relative_to(to): path.read_bytes() for path in files(to)} == given
    memory.undo(count=2)
    assert not to.exists()


def test_of_a_folder_around_the_vault_the_vault_is_passed_over(memory: Memory, source: Path) -> None:
    memory.write("a.md", "mine\n")
    folder = os.path.relpath(memory.root, source.parent).split("/")[0]
    applied = memory.import_("obsidian", source.parent, to="all")
    assert Outcome("passed over: this vault", 1, (f"{folder}/",)) in applied.plan.outcomes
    assert Outcome("new memories", 5) in applied.plan.outcomes
    assert not applied.plan.left_out
    assert not Path(memory.root, "all", folder).exists()
    with pytest.raises(Usage, match="this vault itself"):
        memory.import_("obsidian", memory.root, to="all")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_cannot_be_held_is_left_out_by_its_reason(memory: Memory, source: Path, tmp_path: Path) -> None:
    for name in ("a\nb.md", "a\\b.md", "a\x9b.png", "a\udcff.md"):
        (source / name).write_text("no path of a vault\n")
    (source / "link.md").symlink_to(source / "Home.md")
    (source / "elsewhere").symlink_to(tmp_path)
    os.mkfifo(source / "pipe.md")
    with (source / "film.mp4").open("wb") as film:
        film.truncate(64 * 1024 * 1024 + 1)
    memory.write("notes/Home.md", "mine\n")
    Path(memory.root, "notes/picture.png").write_bytes(b"mine")
    plan = memory.import_("obsidian", str(source)).plan
    assert {row.what.removeprefix("left out: "): row.paths for row in plan.outcomes if row.paths} == {
        "it is a link": ("elsewhere/", "link.md"),
        "it is not a regular file": ("pipe.md",),
        "it has more than 67,108,864 bytes": ("film.mp4",),
        "a path has no control characters": ("notes/a\\x0ab.md", "notes/a\\x9b.png", "notes/a\\xff.md"),
        "parts of a path are separated by /, not by a backslash": ("notes/a\\b.md",),
        "another file stands there; move it, or import --to another folder": (
            "notes/Home.md",
            "notes/picture.png",
        ),
        "passed over: hidden": (".obsidian/",),
    }
    assert memory.show("notes/Home.md").text == "mine\n"


@pytest.mark.parametrize(
    ("policy", "name", "data", "left"),
    [
        ("refuse", "a.md", TOKEN, "notes/a.md:1: it holds a secret"),
        ("refuse", "a.md", TOKEN + b"\xff", "notes/a.md:1: it holds a secret"),
        ("redact", "a.md", TOKEN, ""),
        ("redact", "a.md", TOKEN + b"\0", "notes/a.md:1: it holds a secret"),
        ("warn", "a.md", TOKEN, ""),
        ("off", "a.md", TOKEN, ""),
        ("refuse", f"{TOKEN.decode().strip()}.md", b"", "notes/REDACTED"),
    ],
)
def test_a_secret_is_left_out_where_the_config_refuses_it(
    memory: Memory, source: Path, policy: str, name: str, data: bytes, left: str
) -> None:
    Path(memory.root, ".mdmem/config.toml").write_text(f'[secrets]\npolicy = "{policy}"\n')
    (source / name).write_bytes(data)
    plan = open_memory(memory.root).import_("obsidian", str(source)).plan
    assert len(plan.changes) == 5 + (not left)
    assert "".join(plan.left_out).startswith(left)
    assert TOKEN.decode().strip() not in "".join(plan.left_out)


FEEDBACK = """\
---
name: terse-answers
description: No summary at the end of an answer
type: feedback
modified: 2026-03-01T10:00:00Z
---

The user reads the diff. See [[user-role]].
"""
ROLE = """\
---
name: user-role
description: Who the user is
metadata:
  type: user
---

Writes Go.
"""


@pytest.fixture
def claude_code_memory(tmp_path: Path) -> Memory:
    return open_memory(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def claude_code_source(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "-home-me-app" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- [Answers](feedback_terse.md)\n")
    (folder / "feedback_terse.md").write_text(FEEDBACK)
    (folder / "user_role.md").write_text(ROLE)
    (folder.parent / "session.jsonl").write_text("{}\n")
    return folder


@pytest.mark.parametrize("of_repository", [True, False])
def test_its_files_keep_what_they_say_and_links_lead_where_they_led(
    claude_code_memory: Memory, claude_code_source: Path, *, of_repository: bool
) -> None:
    named = claude_code_source.parent if of_repository else claude_code_source
    applied = claude_code_memory.import_("claude-code", str(named), to="notes/claude")
    assert applied.plan.left_out == ()
    feedback = claude_code_memory.show("notes/claude/feedback_terse.md")
    assert feedback.body == FEEDBACK.rpartition("---\n")[2]
    assert {name: feedback.fields[name] for name in ("type", "title", "aliases", "modified", "name")} == {
        "type": "feedback",
        "title": "terse-answers",
        "aliases": ["terse-answers"],
        "modified": "2026-03-01T10:00:00Z",
        "name": "terse-answers",
    }
    assert claude_code_memory.show("notes/claude/user_role.md").fields["type"] == "user"
    found = {r.target: r.state for r in claude_code_memory.references.list(types=["note"])}
    assert found == {"notes/claude/feedback_terse.md": "ok", "notes/claude/user_role.md": "ok"}
    assert claude_code_memory.check() == []


def test_the_same_again_changes_nothing(claude_code_memory: Memory, claude_code_source: Path) -> None:
    claude_code_memory.import_("claude-code", str(claude_code_source))
    assert not claude_code_memory.import_("claude-code", str(claude_code_source)).files


BREWING = """\
---
title: Coffee Brewing Methods
type: note
tags: [coffee, brewing]  # two
permalink: main/coffee/coffee-brewing-methods
created: 2024-01-31
---

# Coffee Brewing Methods

## Observations
- [method] Pour over gives more clarity #brewing (personal experience)

## Relations
- requires [[Proper Grinding]]
- relates_to [[main/beans/origins]]
"""


@pytest.fixture
def basic_memory_memory(tmp_path: Path) -> Memory:
    return open_memory(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def basic_memory_source(tmp_path: Path) -> Path:
    root = tmp_path / "basic-memory"
    for path, text in {
        "coffee/Coffee Brewing Methods.md": BREWING,
        "coffee/grinding.md": "---\ntitle: Proper Grinding\ntype: Technique\naliases: grind\n---\n\nx\n",
        "beans/origins.md": "---\ntitle: origins\npermalink: main/beans/origins\n---\nBeans\n",
        "plain.md": "no frontmatter\r\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return root


def test_a_note_keeps_every_byte_but_gets_its_names(
    basic_memory_memory: Memory, basic_memory_source: Path
) -> None:
    applied = basic_memory_memory.import_("basic-memory", str(basic_memory_source))
    assert applied.plan.left_out == ()
    brewing = basic_memory_memory.show("notes/coffee/Coffee Brewing Methods.md")
    assert brewing.fields["aliases"] == ["main/coffee/coffee-brewing-methods"]
    without = [
        line
        for line in brewing.text.splitlines()
        if "aliases" not in line and line != ("  - main/coffee/coffee-brewing-methods")
    ]
    assert without == BREWING.splitlines()
    assert basic_memory_memory.show("notes/plain.md").data == b"no frontmatter\r\n"
    assert basic_memory_memory.show("notes/coffee/grinding.md").fields["aliases"] == [
        "grind",
        "Proper Grinding",
    ]
    assert basic_memory_memory.check() == []


def test_links_by_title_and_by_permalink_resolve(
    basic_memory_memory: Memory, basic_memory_source: Path
) -> None:
    basic_memory_memory.import_("basic-memory", str(basic_memory_source))
    found = {
        r.target: {place.state for place in r.places}
        for r in basic_memory_memory.references.list(types=["note"])
    }
    assert found == {"notes/coffee/grinding.md": {"ok"}, "notes/beans/origins.md": {"ok"}}


def test_the_same_again_changes_nothing_and_undo_takes_it_back(
    basic_memory_memory: Memory, basic_memory_source: Path
) -> None:
    applied = basic_memory_memory.import_("basic-memory", str(basic_memory_source), to="notes/bm")
    assert len(applied.files) == 4
    assert not basic_memory_memory.import_("basic-memory", str(basic_memory_source), to="notes/bm").files
    basic_memory_memory.undo(applied.id)
    assert not [listed for listed in basic_memory_memory.ls() if listed.path.startswith("notes/bm")]


def test_a_link_is_left_out_and_the_rest_is_taken(
    basic_memory_memory: Memory, basic_memory_source: Path
) -> None:
    (basic_memory_source / "picture.png").write_bytes(b"\x89PNG")
    (basic_memory_source / "latin.md").write_bytes(b"caf\xe9\n")
    (basic_memory_source / "bad.md").write_text("---\ntags: {a: 3}\n---\n")
    (basic_memory_source / "what?.md").write_text("a name that not every system can hold\n")
    (basic_memory_source / "link.md").symlink_to(basic_memory_source / "plain.md")
    (basic_memory_source / ".obsidian").mkdir()
    (basic_memory_source / ".obsidian" / "app.md").write_text("hidden\n")
    applied = basic_memory_memory.import_("basic-memory", str(basic_memory_source))
    assert applied.plan.left_out == ("link.md: it is a link",)
    assert len(applied.files) == 8


def test_what_differs_from_what_stands_there_is_left_out(
    basic_memory_memory: Memory, basic_memory_source: Path
) -> None:
    basic_memory_memory.write("notes/plain.md", "mine\n")
    applied = basic_memory_memory.import_("basic-memory", str(basic_memory_source))
    assert len(applied.plan.left_out) == 1
    assert basic_memory_memory.show("notes/plain.md").text == "mine\n"


def test_working_memory_that_stands_in_the_other_form_is_not_doubled(
    basic_memory_memory: Memory, basic_memory_source: Path
) -> None:
    basic_memory_memory.working.update({"mine": 1}, thread="plain")
    applied = basic_memory_memory.import_("basic-memory", str(basic_memory_source), to="working/threads")
    (reason,) = applied.plan.left_out
    assert reason.startswith("working/threads/plain.md: working/threads/plain.json stands there for the same")
    assert not basic_memory_memory.exists("working/threads/plain.md")


def test_of_two_spellings_of_one_name_one_is_taken_and_names_of_other_case_are_names_of_their_own(
    basic_memory_memory: Memory, basic_memory_source: Path
) -> None:
    for name in ("caf\u00e9.md", "cafe\u0301.md", "Coffee/other.md", "Plain.md"):
        (basic_memory_source / name).parent.mkdir(exist_ok=True)
        (basic_memory_source / name).write_text(name)
    if any(len(list(basic_memory_source.glob(twins))) == 1 for twins in ("caf*.md", "[cC]offee", "*lain.md")):
        pytest.skip("this file system does not tell them apart")
    applied = basic_memory_memory.import_("basic-memory", str(basic_memory_source))
    same = "another file has the same name, in another Unicode spelling"
    assert applied.plan.left_out == (f"notes/caf\u00e9.md: {same}",)
    assert len(applied.files) == 7


@pytest.mark.parametrize("form", ["basic-memory", "claude-code", "obsidian"])
def test_an_import_of_nothing_is_no_match_and_says_what_was_looked_for(
    basic_memory_memory: Memory, tmp_path: Path, form: str
) -> None:
    source = tmp_path / "empty"
    (source / ".hidden").mkdir(parents=True)
    (source / ".hidden/a.md").write_text("a\n")
    with pytest.raises(NamedNotFound, match="no note in") as missing:
        basic_memory_memory.import_(form, str(source))
    assert missing.value.exit_code == 1
    looked = "looked for files that end in .md or .json, in it and below, not hidden"
    assert missing.value.hint == f"{looked}\n  .hidden/: passed over: hidden"
    for number in range(7):
        (source / f"{number}.md").symlink_to(source / ".hidden/a.md")
    with pytest.raises(NamedNotFound) as missing:
        basic_memory_memory.import_(form, str(source))
    assert missing.value.hint.splitlines()[2:4] == ["  0.md: it is a link", "  1.md: it is a link"]
    assert missing.value.hint.endswith(" and 3 more")


def test_a_folder_that_is_not_there_is_refused(basic_memory_memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(Usage, match="no such folder"):
        basic_memory_memory.import_("basic-memory", str(tmp_path / "none"))
    with pytest.raises(Usage, match="mcp-memory, basic-memory"):
        basic_memory_memory.import_("other", str(tmp_path))


def test_progress_is_told(basic_memory_memory: Memory, basic_memory_source: Path) -> None:
    told: list[tuple[str, int, int]] = []
    basic_memory_memory.progress = lambda *each: told.append(each)
    basic_memory_memory.plan.import_("basic-memory", str(basic_memory_source))
    basic_memory_memory.import_("basic-memory", str(basic_memory_source))
    assert [done for doing, *done in told if doing == "writing"] == [[number, 5] for number in range(1, 6)]
    told = told[:12]
    phases = ("reading", "importing", "checking")
    assert told == [(doing, number, 4) for doing in phases for number in (1, 2, 3, 4)]


@cases(
    "form, marker, taken, tool",
    [
        ("obsidian", ".obsidian/app.json", "", "Obsidian"),
        ("obsidian", ".obsidian/app.json", "sub", "Obsidian"),
        ("basic-memory", ".obsidian/app.json", "", "Obsidian"),
        ("claude-code", "memory/.obsidian/app.json", "", "Obsidian"),
        ("obsidian", ".foam/templates/x.md", "", "Foam"),
        ("obsidian", "dendron.yml", "notes", "Dendron"),
        ("obsidian", "hugo.toml", "content", "Hugo"),
        ("obsidian", "hugo.toml", "", "Hugo"),
        ("obsidian", "docs/.vitepress/config.js", "", "VitePress"),
        ("obsidian", "mkdocs.yml", "docs", "MkDocs"),
        ("obsidian", "logseq/config.edn", "", "Logseq"),
    ],
)
def test_what_is_imported_is_read_as_the_tool_reads_it_that_it_was_written_for(
    tmp_path_factory: pytest.TempPathFactory, form: str, marker: str, taken: str, tool: str
) -> None:
    """Also where what tells the tool is hidden, or stands above the folder that is imported."""
    root = tmp_path_factory.mktemp("tool")
    folder = "memory" if form == "claude-code" else "docs" if marker.startswith("docs/") else taken
    for path in (marker, f"source/{folder}/a.md"):
        file = root / "source" / path if path == marker else root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("", "utf-8")
    mdmem.init(root / "to/memories")
    memory = open_memory(root / "to/memories")
    memory.import_(form, root / "source" / taken, to="notes/x")
    inside = "/docs" if marker.startswith("docs/") else ""
    assert memory.doctor().facts[f"notes in memories/notes/x{inside}"] == tool


def test_a_name_of_several_notes_means_to_an_imported_vault_what_it_meant_to_obsidian(
    memory: Memory, tmp_path: Path
) -> None:
    texts = {"z/Twin.md": "", "a/long/Twin.md": "", "Twin two.md": "", "Home.md": "[[Twin]] [[Nowhere]]\n"}
    for path, text in {**texts, ".obsidian/app.json": "{}"}.items():
        (tmp_path / "vault" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / path).write_text(text, "utf-8")
    memory.write("notes/mine/Twin.md", "stands there already\n")
    assert memory.plan.import_("obsidian", tmp_path / "vault", to="notes/vault").warnings == ()
    assert memory.import_("obsidian", tmp_path / "vault", to="notes/vault").plan.warnings == ()
    assert memory.references.backlinks("notes/vault/z/Twin.md")[0].path == "notes/vault/Home.md"
    assert [(found.code, found.severity) for found in memory.check()] == [("dangling-link", "note")]


def test_an_undone_import_leaves_every_byte_of_the_config_as_it_was(memory: Memory, source: Path) -> None:
    config = Path(memory.root, ".mdmem/config.toml")
    before = config.read_bytes()
    memory.import_("obsidian", source, to="notes/vault")
    told = config.read_bytes()
    assert told != before
    for _ in range(2):
        memory.undo()
        assert config.read_bytes() == before
        memory.redo()
        assert config.read_bytes() == told


def test_an_undone_import_takes_its_own_words_out_of_a_config_that_was_edited_since(
    memory: Memory, source: Path
) -> None:
    config = Path(memory.root, ".mdmem/config.toml")
    first = memory.import_("obsidian", source, to="notes/one")
    memory.import_("obsidian", source, to="notes/two")
    config.write_text(config.read_text("utf-8") + "\n[search]\nmeaning = false # mine\n", "utf-8")
    memory.undo(first.id)
    read = open_memory(memory.root).vault.config
    assert read.check.guests == ("notes/two/**",)
    assert read.links.dialects == ("notes/two: Obsidian",)
    assert config.read_text("utf-8").endswith("meaning = false # mine\n")
    memory.redo()
    assert set(open_memory(memory.root).vault.config.check.guests) == {"notes/one/**", "notes/two/**"}


def test_what_the_config_says_of_an_imported_folder_follows_it(memory: Memory, source: Path) -> None:
    config = Path(memory.root, ".mdmem/config.toml")
    (source / "expires.md").write_text("---\nexpires: never\n---\nx\n", "utf-8")
    memory.import_("obsidian", source, to="notes/o[b]s")
    memory.import_("obsidian", source, to="notes/o[b]s2")
    told = config.read_bytes()
    memory.mv("notes/o[b]s", "notes/wiki")
    read = open_memory(memory.root).vault.config
    assert read.check.guests == ("notes/wiki/**", r"notes/o\[b\]s2/**")
    assert read.links.dialects == ("notes/wiki: Obsidian", "notes/o[b]s2: Obsidian")
    assert not [each for each in memory.check() if each.severity == "error"]
    memory.mv("notes", "pages")
    assert open_memory(memory.root).vault.config.check.guests == ("pages/wiki/**", r"pages/o\[b\]s2/**")
    memory.undo(count=2)
    assert config.read_bytes() == told
    bob = open_memory(memory.root, scope=mdmem.Scope(user="bob"))
    bob.import_("obsidian", source, to="notes/o[b]s")
    bob.mv("notes", "wiki")
    guests = open_memory(memory.root).vault.config.check.guests
    assert guests == (r"notes/o\[b\]s/**", r"notes/o\[b\]s2/**", r"users/bob/wiki/o\[b\]s/**")


def test_an_import_that_is_killed_tells_the_config_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "source/.obsidian").mkdir(parents=True)
    (tmp_path / "source/a.md").write_text("# A\n", "utf-8")

    def take(name: str) -> None:
        open_memory(tmp_path / name).import_("obsidian", tmp_path / "source", to="notes")

    found, was_killed, stop = [], True, 1
    mdmem.init(tmp_path / "unharmed")
    take("unharmed")  # what it imports, the processes have
    while was_killed:
        mdmem.init(tmp_path / str(stop))
        was_killed = killed(partial(take, str(stop)), stop)
        memory = open_memory(tmp_path / str(stop))
        names = {each.path for each in memory.ls()}
        config = memory.vault.config
        found.append(("notes/a.md" in names, bool(config.links.dialects), bool(config.check.guests)))
        stop += 9 if speed.is_all else 30
    assert set(found) == {(False, False, False), (True, True, True)}


def test_a_scope_takes_back_its_import_and_is_not_told_of_the_config(memory: Memory, source: Path) -> None:
    config = Path(memory.root, ".mdmem/config.toml")
    before = config.read_bytes()
    bob = open_memory(memory.root, scope=mdmem.Scope(user="bob"))
    applied = bob.import_("obsidian", source, to="notes/vault")
    assert "users/bob/notes/vault: Obsidian" in open_memory(memory.root).vault.config.links.dialects
    (entry,) = bob.history()
    assert {each.path for each in entry.files} == {each.path for each in applied.files}
    assert ".mdmem/config.toml" not in str(mdmem.as_json(entry))
    bob.undo()
    assert config.read_bytes() == before
