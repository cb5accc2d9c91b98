"""A tree of over a thousand Markdown files that others wrote: every command leaves every other byte alone."""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.cli import main

LEAST = 1000
ODD = {
    "odd/bom.md": b"\xef\xbb\xbf---\ntitle: BOM\n---\n\n# Bom\n",
    "odd/crlf.md": b"---\r\ntitle: CRLF # kept\r\n---\r\n\r\n# Dos\r\n\r\ntext\r\n",
    "odd/cr.md": b"# Mac\rtext\r",
    "odd/no-end.md": b"# No end\n\nlast line",
    "odd/empty.md": b"",
    "odd/blank.md": b"\n\n\n",
    "odd/binary.md": b"# \0\x01",
    "odd/latin.md": b"# caf\xe9\n",
    "odd/unclosed.md": b"---\ntitle: never closed\n\n# Body\n",
    "odd/invalid.md": b"---\ntitle: [\n---\n\n# Body\n",
    "odd/list.md": b"---\n- a\n---\n\n# Body\n",
    "odd/numbers.md": b"---\ntitle: 2024\ntags: 7\ncreated: yesterday\n---\n\n# Body\n",
    "odd/separator.md": "# A\u2028B\f\n\n```\n# no heading\n".encode(),
    "odd/with space & 100%.md": b"# Name\n",
    "odd/\u00fcml\u00e4ut.md": b"# Name\n",
    "odd/data.json": b'{\n\t"b" : 1,\n\t"a": [1,2 ,3]\n}',
    "odd/broken.json": b'{"a": ',
}
READING = [
    ["ls"],
    ["ls", "odd", "--glob", "*.md"],
    ["grep", "the", "--limit", "50"],
    ["grep", "--regex", r"^#+\s", "--context", "1", "--limit", "20"],
    ["grep", "license", "--case", "smart", "--json"],
    ["check"],
    ["check", "--format", "github"],
    ["check", "odd", "--json"],
    ["doctor"],
    ["history"],
    ["notes", "list"],
    ["rules", "list"],
    ["rules", "text", "--for", "src/app.py"],
    ["working", "list"],
    ["preferences", "list"],
    ["preferences", "stats"],
    ["project", "summary"],
    ["schema", "list"],
    ["schema", "check"],
    ["template", "list"],
    ["template", "show", "note"],
    ["render", "note", "--var", "title=A"],
    ["show", "odd/crlf.md"],
    ["show", "odd/bom.md", "--json"],
]
# Every command that changes something, on files that others wrote: first only tried, then done, then undone.
CHANGING = [
    ["append", "odd/crlf.md", "more"],
    ["append", "odd/no-end.md", "more"],
    ["prepend", "odd/bom.md", "more"],
    ["insert", "odd/crlf.md", "5", "more"],
    ["delete-lines", "odd/cr.md", "2"],
    ["replace", "odd/crlf.md", "text", "prose"],
    ["set", "odd/crlf.md", "title=Other"],
    ["set", "odd/numbers.md", "confidence=0.5"],
    ["set", "odd/data.json", "b=2"],
    ["unset", "odd/data.json", "a"],
    ["section", "odd/bom.md", "Bom", "more", "--append"],
    ["mv", "odd/blank.md", "odd/moved.md"],
    ["rm", "odd/invalid.md"],
    ["write", "odd/empty.md", "now something", "--overwrite"],
    ["new", "note", "odd/new.md", "--var", "title=New"],
    ["notes", "append", "made", "text"],
    ["project", "append", "Decisions", "an entry"],
    ["working", "update", "state", "--thread", "t"],
    ["preferences", "set", "ui", "theme", "dark"],
]


def foreign_texts() -> Iterator[bytes]:
    """Texts of others: what is installed, the documentation of the machine, then sections of these."""
    folders = [
        sysconfig.get_paths()["purelib"],
        sysconfig.get_paths()["stdlib"],
        "/usr/share/doc",
        "/usr/lib",
    ]
    whole: list[bytes] = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in {".md", ".markdown"} or path.name in {"METADATA", "README.rst", "copyright"}:
                try:
                    data = path.read_bytes()
                except OSError:
                    continue
                if len(data) < 1_000_000:
                    whole.append(data)
            if len(whole) >= 2 * LEAST:
                break
    yield from whole
    for data in whole:
        yield from (b"#" + part for part in data.split(b"\n#")[1:])


def write_tree(root: Path) -> None:
    (root / ".mdmem").mkdir(parents=True)
    (root / ".mdmem/config.toml").touch()
    seen: set[bytes] = set()
    for text in foreign_texts():
        digest = hashlib.sha256(text).digest()
        if digest not in seen:
            path = root / f"foreign/{len(seen) % 40}/{len(seen)}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
            seen.add(digest)
        if len(seen) >= LEAST + 200:
            break
    for name, data in ODD.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)


def contents(root: Path) -> dict[str, bytes]:
    """Every file but the vault's own bookkeeping, with its bytes."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".mdmem"]
        for name in names:
            path = Path(folder) / name
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("foreign") / "memories"
    write_tree(root)
    return root


def run(root: Path, *arguments: str) -> int:
    return main(["--vault", str(root), *arguments])


def test_there_are_over_a_thousand_files_of_others(tree: Path) -> None:
    assert len(contents(tree)) > LEAST


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_changes_no_byte(tree: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(tree)
    assert run(tree, *command) in {0, 1}
    assert "Traceback" not in capsys.readouterr().err
    assert contents(tree) == before


def test_every_file_is_shown_exactly_or_refused(
    tree: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    before = contents(tree)
    refused = set()
    for path, data in before.items():
        code = run(tree, "show", path)
        out = capfdbinary.readouterr().out
        if code == 0:
            assert out == data, path
        else:
            refused.add(path)
    unreadable = {path for path, data in before.items() if not readable(data)}
    assert refused == unreadable
    assert contents(tree) == before


def readable(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize("command", CHANGING, ids=" ".join)
def test_a_change_changes_what_it_names_and_undo_brings_every_byte_back(
    tree: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(tree)
    assert run(tree, *command, "--dry-run") == 0
    assert capsys.readouterr().out
    assert contents(tree) == before

    assert run(tree, *command) == 0
    after = contents(tree)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert 1 <= len(changed) <= 2
    for path in changed & before.keys() & after.keys():
        assert differs_in_one_stretch(before[path], after[path])

    assert run(tree, "undo") == 0
    assert contents(tree) == before


def shared(one: bytes, other: bytes) -> int:
    """How many bytes two contents begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def differs_in_one_stretch(before: bytes, after: bytes) -> bool:
    """Whether only one stretch of at most some 40 bytes was put in, taken out or replaced."""
    lead = shared(before, after)
    tail = shared(before[lead:][::-1], after[lead:][::-1])
    return len(before) - lead - tail <= 40 and len(after) - lead - tail <= 40


def test_replacing_across_the_tree_changes_each_occurrence_and_nothing_else(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(tree)
    assert run(tree, "replace", "--in", "foreign", "--glob", "*.md", "License", "Licence") == 0
    capsys.readouterr()
    after = contents(tree)
    for path, data in before.items():
        wanted = (
            data.replace(b"License", b"Licence") if path.startswith("foreign") and readable(data) else data
        )
        assert after[path] == wanted, path
    assert run(tree, "undo") == 0
    assert contents(tree) == before


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=400)
    | st.text(alphabet="-#>\n\r: a`[]{}&*^\u2028\x00", max_size=200).map(str.encode)
)
def test_arbitrary_bytes_as_a_file_never_crash_a_command(
    data: bytes, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path_factory.mktemp("bytes")
    (root / ".mdmem").mkdir()
    (root / ".mdmem/config.toml").touch()
    for path in (
        "notes/a.md",
        "notes/a.json",
        "AGENTS.md",
        "rules/r.md",
        "preferences/ui/a.md",
        "working/threads/t.md",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    before = contents(root)
    for command in READING:
        assert run(root, *command) in {0, 1, 2}, command
    for path in ("notes/a.md", "notes/a.json"):
        for changing in (
            ["show", path],
            ["append", path, "x"],
            ["prepend", path, "x"],
            ["insert", path, "1", "x"],
            ["delete-lines", path, "1"],
            ["replace", path, "a", "b"],
            ["set", path, "title=x"],
            ["unset", path, "title"],
            ["section", path, "a", "x"],
            ["mv", path, "notes/b" + path[-5:].lstrip("s/a")],
        ):
            assert run(root, *changing, *([] if changing[0] == "show" else ["--dry-run"])) in {0, 1, 2}, (
                changing
            )
    assert contents(root) == before
    assert "Traceback" not in capsys.readouterr().err
