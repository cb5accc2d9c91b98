"""A vault of Markdown files that others wrote: everything can be read, and only what is asked for changes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import re
import stat
import sys
import unicodedata
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import click
import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.cli.main import app, main
from mdmem.errors import DocumentRefused
from mdmem.facade.memory import Memory
from tests import foreign, speed
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

MOST = 700
NO_TEXT = "odd/" + os.fsdecode(b"\xff\xfe.md")

LONG = "# Long\n\n" + "A line of a long memory, with some words in it.\n" * 100_000
ODD: Mapping[str, bytes] = {
    "empty.md": b"",
    "one-newline.md": b"\n",
    "no-final-newline.md": b"# Title\n\nThe last line",
    "crlf.md": b"# Title\r\n\r\nFirst.\r\nSecond.\r\n",
    "bom.md": b"\xef\xbb\xbf# Title\n\nText.\n",
    "bom-crlf.md": b"\xef\xbb\xbf# Title\r\n\r\nText.\r\nwithout an end",
    "mixed-ends.md": b"one\ntwo\r\nthree\rfour\n",
    "only-cr.md": b"# Title\rone\rtwo\r",
    "other-separators.md": "a\u2028b\u2029c\u0085d\x0b\x0ce\n".encode(),
    "bom-in-the-middle.md": "a\ufeffb\n".encode(),
    "not-utf8.md": "Grüße\n".encode("latin-1"),
    "utf16.md": "# Title\n".encode("utf-16"),
    "binary.md": bytes(range(256)) * 4,
    "huge.md": LONG.encode() + b"x" * 100,
    "one-long-line.md": b"word " * 20_000,
    "frontmatter.md": b"---\n# a comment\ntitle:   'Old'   # why\ntags: [a,  b]\nno: 12:30\n---\n\nBody.\n",
    "frontmatter-crlf.md": b"---\r\ntitle: Old\r\n---\r\n\r\nBody.\r\n",
    "frontmatter-open.md": b"---\ntitle: Old\n\nBody.\n",
    "frontmatter-broken.md": b"---\ntitle: [a, b\nx: {\n---\n\nBody.\n",
    "frontmatter-tabs.md": b"---\na:\n\tb: 1\n---\nBody.\n",
    "frontmatter-twice.md": b"---\na: 1\na: 2\n---\n---\nb: 1\n---\n",
    "frontmatter-list.md": b"---\n- a\n- b\n---\nBody.\n",
    "frontmatter-alias.md": b"---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\nBody.\n",
    "frontmatter-bomb.md": b"---\na: &a [x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (n, n, b", ".join([b"*%c" % (n - 1)] * 9)) for n in range(98, 110))
    + b"---\n",
    "frontmatter-object.md": b"---\na: !!python/object:os.system 1\n---\nBody.\n",
    "frontmatter-wrong.md": b"---\ntags: 7\nconfidence: high\nexpires: soon\n$schema: nowhere\n---\nBody.\n",
    "toml.md": b"+++\ntitle = 'x'\n+++\nBody.\n",
    "fences.md": b"```\n# no heading\n```\n~~~~\n````\n# none\n",
    "deep.md": b"> " * 3_000 + b"x\n" + b"- " * 3_000 + b"y\n",
    "links.md": b"[[a]] [[../x]] ![[b.png]] [c](d.md#e) [f]: <g h>\n[i](javascript:x) src/a.py#L1-L2 ^id\n",
    "template.md": b"{{ x }} {% for %} {# y #}\n",
    "with space.md": b"# With space\n",
    "100% sure.md": b"# Percent\n",
    "%2e%2e%2fup.md": b"# An escape\n",
    "ünïcødé 日本語 🎉.md": "# Grüße\n".encode(),
    "u\u0308.md": b"# Decomposed\n",
    "-dash.md": b"# A dash\n",
    "quote'\" $x `y` ;.md": b"# Quotes\n",
    "a:b|c?.md": b"# Not for Windows\n",
    "con.md": b"# A device, on Windows\n",
    "line\nbreak.md": b"# A line break\n",
    "UPPER.MD": b"# Another suffix\n",
    "broken.json": b'{"a": [1, 2',
    "twice.json": b'{"a": 1, "a": 2}\n',
    "deep.json": b"[" * 50_000,
    "numbers.json": b"[1e999, -0.0, 123456789012345678901234567890, NaN]\n",
    "text.json": b'"\\ud800"\n',
    "folder.md/inside.md": b"# In a folder with a suffix\n",
    ".hidden.md": b"# Hidden\n",
    ".git/config.md": b"# Hidden as well\n",
}


class Ran(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    errors: str


def run(root: Path, *arguments: str, given: bytes = b"") -> Ran:
    """Run a command as the program does. It must end as documented, whatever it meets."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    with patch.multiple(sys, stdin=stdin, stdout=out, stderr=errors):
        code = main(["--vault", str(root), *arguments])
    ran = Ran(code, _printed(out), _printed(errors))
    assert ran.code in {0, 1, 2}, ran
    assert "Traceback" not in ran.errors
    return ran


def _printed(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.detach()
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "replace")


def hashes(root: Path) -> dict[str, str]:
    """Every file but the vault's bookkeeping, by path, with the hash of its bytes."""
    found = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        for entry in os.scandir(root / folder):
            path = folder + entry.name
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode):
                now = about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
                found[path] = _digest(entry.path, now)
            elif stat.S_ISDIR(about.st_mode) and entry.name != ".mdmem":
                folders.append(f"{path}/")
    return found


@functools.cache
def _digest(path: str, _now: tuple[int, ...]) -> str:
    """The hash of a file's bytes: read once, as no write leaves the time of the last change as it was."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


# ------------------------------------------------------------------------------------------------- the tree


def quick_files() -> dict[str, bytes]:
    """Of the bundle, each third file, and all that are rare."""
    bundle = foreign.files().items()
    return {p: data for n, (p, data) in enumerate(bundle) if n % 3 == 0 or p.startswith("shapes/")}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault of others' files; with --all, they are thousands."""
    root = tmp_path_factory.mktemp("foreign") / "memories"
    found = foreign.files() | dict(foreign.more(0, MOST)) if speed.is_all else quick_files()
    files = {f"tree/{path}": data for path, data in found.items()}
    files |= {f"odd/{name}": data for name, data in ODD.items()}
    files["AGENTS.md"] = max((data for data in found.values() if _is_text(data)), key=len)
    for number, data in enumerate(sorted(set(found.values()))[::100]):
        files |= {f"{folder}/{number}.md": data for folder in ("notes", "rules", "preferences/ui", "inbox")}
        files |= {f"working/threads/{number}.md": data, f"users/alice/notes/{number}.md": data}
    files[".mdmem/config.toml"] = b""
    for path, data in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    with contextlib.suppress(OSError):
        (root / NO_TEXT).write_bytes(b"# A name that is no text\n")
    (root / "odd/link.md").symlink_to("crlf.md")
    (root / "odd/dangling.md").symlink_to("nowhere.md")
    (root / "odd/outside").symlink_to("/")
    os.mkfifo(root / "odd/pipe.md")
    return root


def _is_text(data: bytes) -> bool:
    with contextlib.suppress(UnicodeDecodeError):
        return bool(data.decode()) and b"\0" not in data
    return False


# -------------------------------------------------------------------------------------------------- reading

READS: Sequence[Sequence[str]] = (
    ("ls",),
    *(("git", name) for name in ("log", "diff")),
    ("git", "blame", "odd/crlf.md"),
    ("why", "odd/crlf.md"),
    *((name,) for name in ("access", "duplicates", "quality", "report")),
    ("git", "review"),
    ("past", "2999-01-01"),
    *(("sessions", name) for name in ("list", "check")),
    ("sessions", "history", "t"),
    *(("sessions", name, "license", "--all") for name in ("grep", "search")),
    ("sessions", "assemble", "t", "1000"),
    ("sessions", "expand", "t", "1"),
    ("sessions", "summaries"),
    ("inbox", "list", "--all"),
    ("inbox", "show", "0"),
    *(("results", name) for name in ("list", "references", "sweep")),
    ("results", "recover", "0" * 8),
    ("sessions", "observations", "t"),
    ("sessions", "observed", "t"),
    ("ls", "tree", "--glob", "*.md", "--json"),
    ("ls", "--where", "title~license", "--sort", "-size"),
    ("ls", "--long"),
    ("ls", "--tree"),
    ("search", "license of the software", "--limit", "50"),
    ("search", '"title', "-x", "tag:", "path:odd", "(", "--explain", "--passages", "--json"),
    ("tool", '{"command": "view", "path": "/memories"}'),
    ("index",),
    ("index", "--rebuild", "--json"),
    ("refs",),
    ("refs", "LICENSE"),
    ("refs", "--kind", "url", "--stats", "--json"),
    ("refs", "--stale", "--in", "odd"),
    ("backlinks", "odd/crlf.md"),
    ("tags",),
    ("graph",),
    ("graph", "--format", "mermaid", "--in", "odd"),
    ("grep", "the", "--limit", "50"),
    ("grep", "--regex", r"^#+ \w+", "--context", "2", "--json"),
    ("grep", "--case", "exact", "Title", "--in", "odd"),
    ("grep", "--", "-dash"),
    ("grep", "ü"),
    ("check",),
    ("check", "odd", "--format", "github"),
    ("check", "--json"),
    ("doctor",),
    ("doctor", "--json"),
    ("doctor", "--fix"),
    ("history",),
    ("diff", "odd/crlf.md"),
    ("stats",),
    ("status",),
    ("notes", "list"),
    ("rules", "list", "--disabled"),
    ("rules", "text", "--for", "src/app.py"),
    ("working", "list"),
    ("working", "show", "--thread", "0"),
    ("preferences", "list", "--hidden"),
    ("preferences", "show", "ui", "0"),
    ("hook", "post-edit"),
    ("project", "summary", "--max-chars", "500"),
    ("--user", "alice", "notes", "list"),
    ("schema", "list"),
    ("schema", "show", "note"),
    ("schema", "check"),
    ("template", "list"),
    ("template", "show", "note"),
    ("context", "install", "--thread", "0", "--for", "src/app.py"),
    ("new", "note", "--print", "--var", "title=Idea"),
    ("show", "odd/bom-crlf.md", "--section", "Title"),
    ("show", "odd/mixed-ends.md", "--number"),
)


@pytest.mark.timeout(600)
@cases("arguments", READS, ids=" ".join)
def test_a_command_that_reads_changes_nothing(tree: Path, arguments: Sequence[str]) -> None:
    before = hashes(tree)
    run(tree, *arguments)
    assert hashes(tree) == before


def test_every_file_is_listed_and_what_cannot_be_a_memory_says_why(tree: Path) -> None:
    memory = Memory(str(tree))
    listed = {entry.path: entry.problem for entry in memory.ls()}
    problems = {path for path, problem in listed.items() if problem}
    assert problems == {
        "odd/%2e%2e%2fup.md",
        "odd/dangling.md",
        "odd/line\\x0abreak.md",
        "odd/link.md",
        "odd/pipe.md",
        *(["odd/\\xff\\xfe.md"] if (tree / NO_TEXT).exists() else []),
    }
    assert problems <= {finding.path for finding in memory.doctor().findings}
    on_disk = {path for path in hashes(tree) if path.endswith((".md", ".json"))}
    on_disk = {unicodedata.normalize("NFC", p) for p in on_disk if not re.search(r"(^|/)\.", p)}
    assert set(listed) - problems == on_disk - {NO_TEXT, "odd/line\nbreak.md", "odd/%2e%2e%2fup.md"}


def test_every_memory_is_read_byte_by_byte_or_refused(tree: Path) -> None:
    memory = Memory(str(tree))
    refused = set()
    for path in (entry.path for entry in memory.ls() if not entry.problem):
        file = tree / path
        data = (file if file.exists() else tree / "odd/u\u0308.md").read_bytes()
        try:
            document = memory.show(path)
        except DocumentRefused:
            refused.add(path)
            continue
        assert document.data == data
        assert document.text.encode() == data
        assert document.hash == hashlib.sha256(data).hexdigest()
    odd = {path for path in refused if path.startswith("odd/")}
    assert odd == {f"odd/{name}.md" for name in ("not-utf8", "utf16", "binary", "huge")}
    assert not any(_is_text((tree / path).read_bytes()) for path in refused - odd)


def test_grep_finds_what_stands_there(tree: Path) -> None:
    """The paths and lines are those that a plain search over the bytes finds."""
    memory = Memory(str(tree))
    found = {(hit.path, hit.line) for hit in memory.grep("License", case="exact", within="tree")}
    expected = set()
    for entry in memory.ls("tree"):
        data = (tree / entry.path).read_bytes()
        if b"License" in data and _is_text(data):
            lines = re.split(r"\r\n|\n|\r", data.decode())
            expected |= {(entry.path, n) for n, line in enumerate(lines, 1) if "License" in line}
    assert expected
    assert found == expected


# ------------------------------------------------------------------------------------------------- dry runs

TARGETS = (
    "odd/bom-crlf.md",
    "odd/frontmatter.md",
    "odd/empty.md",
    "odd/not-utf8.md",
    "odd/frontmatter-broken.md",
)
DRY: Mapping[str, Sequence[str]] = {
    "append": ("append", "PATH", "More."),
    "git commit": ("git", "commit"),
    "git revert": ("git", "revert", "HEAD"),
    "prepend": ("prepend", "PATH", "First."),
    "insert": ("insert", "PATH", "1", "Between."),
    "delete-lines": ("delete-lines", "PATH", "1"),
    "set": ("set", "PATH", "title=New"),
    "unset": ("unset", "PATH", "title"),
    "edit": ("edit", "PATH"),
    "section": ("section", "PATH", "Title", "New text."),
    "write": ("write", "PATH", "New.", "--overwrite"),
    "mv": ("mv", "PATH", "moved/to.md"),
    "rm": ("rm", "PATH"),
    "replace": ("replace", "PATH", "Text", "Words"),
    "restore": ("restore", "PATH"),
    "undo": ("undo",),
    "redo": ("redo",),
    "remember": ("remember", "One file."),
    "rules new": ("rules", "new", "style", "Type everything."),
    "supersede": ("supersede", "PATH", "AGENTS.md"),
    "contradict": ("contradict", "PATH", "AGENTS.md"),
    "reinstate": ("reinstate", "PATH"),
    "confirm": ("confirm", "PATH"),
    "revoke": ("revoke", "sessions/t1"),
    "prune": ("prune",),
    "consolidate": ("consolidate",),
    "share": ("share", "PATH", "bob", "read"),
    "unshare": ("unshare", "PATH"),
    "merge": ("merge", "PATH", "AGENTS.md", "--into", "AGENTS.md"),
    "new": ("new", "note", "notes/made.md", "--var", "title=Idea"),
    "today": ("today", "One", "file."),
    "notes append": ("notes", "append", "0", "One file.", "--title", "SQLite"),
    "working set": ("working", "set", "Green.", "--thread", "0"),
    "working find-and-replace": ("working", "find-and-replace", "the", "a", "--thread", "0"),
    "working clear": ("working", "clear", "--thread", "0"),
    "working sweep": ("working", "sweep"),
    "preferences set": ("preferences", "set", "ui", "0", "dark"),
    "preferences rm": ("preferences", "rm", "ui", "0"),
    "preferences sweep": ("preferences", "sweep"),
    "project append": ("project", "append", "Decisions", "SQLite"),
    "init": ("init", "another"),
    "refs": ("refs", "--pin"),
    "import": ("import", "obsidian", "."),
    "install": ("install", "cursor"),
    "uninstall": ("uninstall", "cursor"),
    "git install": ("git", "install"),
    "git uninstall": ("git", "uninstall"),
    "project sync": ("project", "sync"),
    "doctor": ("doctor", "--fix"),
    "results sweep": ("results", "sweep", "--max-age", "0"),
    **{f"sessions {name}": ("sessions", name, "t") for name in ("clear", "rm", "restore", "vacuum")},
    "sessions capture": ("sessions", "capture", "t"),
    "inbox propose": ("inbox", "propose", "append", '{"path": "notes/0.md", "text": "More."}'),
    "inbox accept": ("inbox", "accept", "0"),
    "inbox reject": ("inbox", "reject", "0"),
    "inbox sweep": ("inbox", "sweep"),
    "sessions delete-observations": ("sessions", "delete-observations", "--session", "t"),
    "sessions keep": ("sessions", "keep", "t"),
    "sessions summarize": ("sessions", "summarize", "t"),
}
NEED_A_SERVER = {f"store {name}" for name in ("init", "sweep", "copy", "put", "check", "erase")}
# Those that write logs, which are no memories.
LOGGING = {f"sessions {name}" for name in ("append", "import", "compact", "allow-capture")} | {
    *("git allow", "git merge-driver", "results compress"),
    *("sessions observe", "sessions reflect"),
}


def commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command of the program, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, f"{prefix}{name} ")
        elif found:
            yield f"{prefix}{name}", found


def test_every_command_is_tried_on_the_tree() -> None:
    changing = {name for name, found in commands(app) if any(p.name == "dry_run" for p in found.params)}
    assert changing - NEED_A_SERVER == set(DRY)
    words = [" ".join(arguments) for arguments in READS]
    reading = (
        {name for name, _ in commands(app)}
        - changing
        - {"completion", "help", "watch", "lsp", "mcp", "web", "token new"}
        - LOGGING
        - NEED_A_SERVER
    )
    assert {name for name in reading if not any(name in each for each in words)} == set()


@pytest.mark.timeout(600)
@cases("name", DRY)
def test_a_dry_run_changes_nothing(tree: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.parent)
    before = hashes(tree)
    arguments = DRY[name]
    for target in TARGETS if "PATH" in arguments else ("",):
        run(tree, *(target if word == "PATH" else word for word in arguments), "--dry-run")
    assert hashes(tree) == before
    assert not (tree.parent / "another").exists()


def test_a_dry_run_over_all_files_changes_nothing(tree: Path) -> None:
    before = hashes(tree)
    assert run(tree, "replace", "--in", "tree", "--all", "the", "THE", "--dry-run").code == 0
    assert run(tree, "mv", "tree/obsidian", "to", "--dry-run").code == 0
    assert hashes(tree) == before


# -------------------------------------------------------------------------------------------------- changes


class Edit(NamedTuple):
    """A command, and what the files that it names hold afterwards; None: the file is gone."""

    arguments: Sequence[str]
    expected: Mapping[str, bytes | None]


EDITS: Sequence[Edit] = (
    Edit(
        ("append", "odd/no-final-newline.md", "More."),
        {"odd/no-final-newline.md": b"# Title\n\nThe last line\nMore.\n"},
    ),
    Edit(
        ("append", "odd/bom-crlf.md", "One.\nTwo."),
        {"odd/bom-crlf.md": b"\xef\xbb\xbf# Title\r\n\r\nText.\r\nwithout an end\r\nOne.\r\nTwo.\r\n"},
    ),
    Edit(("append", "odd/empty.md", "First."), {"odd/empty.md": b"First.\n"}),
    Edit(
        ("insert", "odd/crlf.md", "3", "Between."),
        {"odd/crlf.md": b"# Title\r\n\r\nFirst.\r\nBetween.\r\nSecond.\r\n"},
    ),
    Edit(("delete-lines", "odd/mixed-ends.md", "2"), {"odd/mixed-ends.md": b"one\nthree\rfour\n"}),
    Edit(
        ("replace", "odd/other-separators.md", "d", "D"),
        {"odd/other-separators.md": "a\u2028b\u2029c\u0085D\x0b\x0ce\n".encode()},
    ),
    Edit(
        ("replace", "odd/bom-in-the-middle.md", "b", "c"), {"odd/bom-in-the-middle.md": "a\ufeffc\n".encode()}
    ),
    Edit(
        ("set", "odd/frontmatter.md", "title=New"),
        {"odd/frontmatter.md": ODD["frontmatter.md"].replace(b"'Old'", b"'New'")},
    ),
    Edit(
        ("unset", "odd/frontmatter.md", "no"),
        {"odd/frontmatter.md": ODD["frontmatter.md"].replace(b"no: 12:30\n", b"")},
    ),
    Edit(
        ("set", "odd/frontmatter-crlf.md", "title=New"),
        {"odd/frontmatter-crlf.md": b"---\r\ntitle: New\r\n---\r\n\r\nBody.\r\n"},
    ),
    Edit(
        ("set", "odd/bom.md", "title=New"),
        {"odd/bom.md": b"\xef\xbb\xbf---\ntitle: New\n---\n\n# Title\n\nText.\n"},
    ),
    Edit(("section", "odd/bom.md", "Title", "New."), {"odd/bom.md": b"\xef\xbb\xbf# Title\n\nNew.\n"}),
    Edit(
        ("mv", "odd/with space.md", "odd/moved here.md"),
        {"odd/with space.md": None, "odd/moved here.md": ODD["with space.md"]},
    ),
    Edit(("append", "odd/100% sure.md", "Yes."), {"odd/100% sure.md": b"# Percent\nYes.\n"}),
    Edit(("append", "odd/ü.md", "Yes."), {"odd/u\u0308.md": b"# Decomposed\nYes.\n"}),
    Edit(("append", "odd/con.md", "Yes."), {"odd/con.md": b"# A device, on Windows\nYes.\n"}),
    Edit(("append", "odd/a:b|c?.md", "Yes."), {"odd/a:b|c?.md": b"# Not for Windows\nYes.\n"}),
    Edit(("rm", "odd/-dash.md"), {"odd/-dash.md": None}),
    Edit(("rm", "odd/folder.md/inside.md"), {"odd/folder.md/inside.md": None}),
    Edit(("write", "odd/made.md", "New."), {"odd/made.md": b"New."}),
)


def assert_changed(root: Path, edit: Edit, before: Mapping[str, str]) -> None:
    """The files that an edit names hold what is expected, no other has changed; undo takes it all back."""
    ran = run(root, *edit.arguments)
    assert ran.code == 0, ran
    digests = {path: hashlib.sha256(d).hexdigest() for path, d in edit.expected.items() if d is not None}
    gone = {path for path, data in edit.expected.items() if data is None}
    for path, data in edit.expected.items():
        assert data is None or (root / path).read_bytes() == data
    assert hashes(root) == {p: digest for p, digest in before.items() if p not in gone} | digests
    assert run(root, "undo").code == 0
    assert hashes(root) == before


@cases("edit", EDITS, ids=lambda edit: " ".join(edit.arguments).replace("\n", " "))
def test_exactly_what_is_asked_for_changes(tree: Path, edit: Edit) -> None:
    assert_changed(tree, edit, hashes(tree))


def test_foreign_files_change_as_bytes_do(tree: Path) -> None:
    """The same edits on files of the tree, compared with what a plain edit of their bytes gives."""
    memory, alone = Memory(str(tree)), []
    before = hashes(tree)
    every = {p: (tree / p).read_bytes() for p in before if p.startswith("tree/") and p.isascii()}
    texts = {p: data for p, data in every.items() if _is_text(data) and b"e" in data and b"\r" not in data}
    for path in sorted(texts)[:: len(texts) // 5]:
        data = texts[path]
        end = data if data.endswith(b"\n") else data + b"\n"
        assert_changed(tree, Edit(("append", path, "# More"), {path: end + b"# More\n"}), before)
        if not (memory.show(path).links or memory.references.backlinks(path)):
            moved = {path: None, "elsewhere/moved.md": data}
            assert_changed(tree, Edit(("mv", path, "elsewhere/moved.md"), moved), before)
            alone.append(path)
        replaced = {path: data.replace(b"e", b"E")}
        assert_changed(tree, Edit(("replace", path, "e", "E", "--all"), replaced), before)
    assert alone


def test_a_replacement_in_many_files_changes_all_that_hold_the_text(tree: Path) -> None:
    before = hashes(tree)
    expected: dict[str, bytes | None] = {}
    for path in before:
        data = (tree / path).read_bytes()
        if path.startswith("tree/") and _is_text(data) and b"License" in data:
            expected[path] = data.replace(b"License", b"Licence")
    assert expected
    edit = Edit(("replace", "--in", "tree", "--all", "License", "Licence"), expected)
    assert_changed(tree, edit, before)


# ------------------------------------------------------------------------------------------ arbitrary bytes

PIECES = [
    "---\n",
    "# A\n",
    "title: x\n",
    "```\n",
    "\r\n",
    "\r",
    "\ufeff",
    "- [",
    "tags: [a, *b]\n",
    "a",
    "\n",
]
PIECES += ["!!binary x", "&a *a", "{", "}", '"a": ', "[[x]]", " ^id", "\u2028", "value: 1\n", "- [ ] b\n"]
TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)
CONTENT = TEXT.map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=200)


@pytest.fixture(scope="module")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("small") / "memories"
    (root / ".mdmem").mkdir(parents=True)
    (root / ".mdmem" / "config.toml").touch()
    for path in ("notes", "rules", "preferences/ui", "working/threads", "working/resources"):
        (root / path).mkdir(parents=True)
    return root


@settings(max_examples=speed.examples(25))
@given(content=CONTENT)
@example(content=b"---\n? [a, b]\n: c\n---\n")
def test_no_content_breaks_a_command(small_root: Path, content: bytes) -> None:
    paths = ["AGENTS.md", "notes/x.md", "rules/x.md", "preferences/ui/x.md", "working/threads/x.md"]
    paths += ["working/resources/x.json", "x.json"]
    for path in paths:
        (small_root / path).write_bytes(content)
    for arguments in (
        *(("show", path) for path in paths),
        ("check",),
        ("grep", "a"),
        ("notes", "list"),
        ("rules", "text"),
        ("preferences", "list", "--hidden"),
        ("project", "summary"),
        ("working", "show", "--thread", "x"),
        ("working", "show", "--resource-id", "x"),
        ("append", "notes/x.md", "More.", "--dry-run"),
        ("set", "notes/x.md", "title=New", "--dry-run"),
        ("set", "x.json", "a.b=1", "--dry-run"),
        ("unset", "notes/x.md", "title", "--dry-run"),
        ("section", "notes/x.md", "A", "New.", "--dry-run"),
        ("replace", "notes/x.md", "a", "b", "--all", "--dry-run"),
        ("project", "append", "A", "New.", "--dry-run"),
        ("preferences", "set", "ui", "x", "dark", "--dry-run"),
        ("working", "merge", '{"a": null}', "--resource-id", "x", "--dry-run"),
        ("working", "set", "New.", "--thread", "x", "--dry-run"),
        ("notes", "append", "x", "New.", "--dry-run"),
    ):
        run(small_root, *arguments)
    assert all((small_root / path).read_bytes() == content for path in paths)
