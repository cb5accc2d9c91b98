"""Listings with conditions: which memories fit, and in which order they come.

The verbs on real vaults: what they write, what they refuse, and how every change is taken back.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.errors import (
    AlreadyExists,
    Conflict,
    DocumentRefused,
    EditRefused,
    FieldNotFound,
    Invalid,
    MdmemError,
    MemoryNotFound,
    NamedNotFound,
    NotEncodable,
    PathRefused,
    PatternInvalid,
    SectionNotFound,
    StorageFailed,
    TemplateFailed,
    TextAmbiguous,
    TextNotFound,
    UndoRefused,
    Usage,
)
from mdmem.index.index import Index
from mdmem.index.view import View
from mdmem.memory.verbs import Verbs
from mdmem.vault.store import MOST_ATTACHED_BYTES, FileChange
from mdmem.vault.vault import Vault
from tests import speed
from tests.memory.forking import run_at_once
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.facade.memory import Memory
    from mdmem.vault.plan import EditPlan
    from mdmem.vault.transaction import Applied


FILES = {
    "notes/a.md": "---\ntype: decision\ncreated: 2026-02-01\nweight: 10\ntags: [db]\n---\n# Alpha\n",
    "notes/b.md": "---\ntype: note\ncreated: 2026-01-01\nweight: 9\nexpires:\n---\nBody #topic/sub and #DB\n",
    "notes/deep/c.md": "---\ntype: decision\nweight: [2, 30]\nsource: {type: user}\npath: zzz\n---\n",
    "other/d.json": '{"type": "decision", "created": "2025-12-31", "pinned": true}',
    "other/2024-05-06.md": "# Zeta\n",
    "bare.md": "no fields\n",
}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    for path, text in FILES.items():
        memory.write(path, text)
    return memory


def listed(
    memory: Memory, *where: str, within: str = "", sort: str = "", globs: tuple[str, ...] = ()
) -> list[str]:
    return [entry.path for entry in memory.ls(within, where=where, sort=sort, globs=globs)]


@cases(
    "where, paths",
    [
        (["type=decision"], ["notes/a.md", "notes/deep/c.md", "other/d.json"]),
        (["type=decision", "created>=2026"], ["notes/a.md"]),
        (["created<2026"], ["other/d.json"]),
        (["weight>9"], ["notes/a.md", "notes/deep/c.md"]),
        (["source.type=user"], ["notes/deep/c.md"]),
        (["pinned=true"], ["other/d.json"]),
        (["expires"], ["notes/b.md"]),
        (["!type"], ["bare.md", "other/2024-05-06.md"]),
        (["title=alpha"], ["notes/a.md"]),
        (["title~zet"], ["other/2024-05-06.md"]),
        (["date=2024"], ["other/2024-05-06.md"]),
        (["path~deep"], []),
        (["path~notes/a"], ["notes/a.md"]),
        (["size<10"], ["other/2024-05-06.md"]),
        (["tag=db"], ["notes/a.md", "notes/b.md"]),
        (["tags=db"], ["notes/a.md"]),
        (["tag=topic"], ["notes/b.md"]),
        (["tag=topic/sub"], ["notes/b.md"]),
        (["tag=sub"], []),
        (["!tag"], ["bare.md", "notes/deep/c.md", "other/2024-05-06.md", "other/d.json"]),
    ],
)
def test_conditions_choose_memories(memory: Memory, where: list[str], paths: list[str]) -> None:
    assert listed(memory, *where) == paths


@cases(
    "sort, paths",
    [
        ("weight", ["notes/deep/c.md", "notes/b.md", "notes/a.md"]),
        ("-weight", ["notes/a.md", "notes/b.md", "notes/deep/c.md"]),
        ("created", ["other/d.json", "notes/b.md", "notes/a.md"]),
        ("-created", ["notes/a.md", "notes/b.md", "other/d.json"]),
        ("expires", []),
        ("-expires", []),
        ("nothing", []),
    ],
)
def test_memories_without_the_field_come_last_in_the_order_of_their_paths(
    memory: Memory, sort: str, paths: list[str]
) -> None:
    rest = sorted(FILES.keys() - set(paths))
    assert listed(memory, sort=sort) == [*paths, *rest]


def test_without_a_field_to_sort_by_the_paths_give_the_order(memory: Memory) -> None:
    assert listed(memory, "type") == ["notes/a.md", "notes/b.md", "notes/deep/c.md", "other/d.json"]
    assert listed(memory, sort="path", within="notes") == ["notes/a.md", "notes/b.md", "notes/deep/c.md"]


def test_a_file_that_cannot_be_read_is_told_of_in_every_listing(memory: Memory) -> None:
    root = Path(memory.root)
    (root / "x").mkdir()
    (root / "x/latin.md").write_bytes(b"# Caf\xe9\n")
    for asked in ({"sort": "-modified"}, {"where": ["size>0"]}, {"types": ["note"]}):
        listed = memory.ls(**asked)
        assert [each.path for each in listed if each.problem] == ["x/latin.md"]
        assert "not UTF-8" in listed[-1].problem
        assert listed[-1].size == len(b"# Caf\xe9\n")
        assert [each.path for each in memory.ls("x", **asked)] == ["x/latin.md"]
        assert [each.path for each in memory.ls(paths=["x/latin.md"], **asked)] == ["x/latin.md"]
        assert not [each for each in memory.ls("notes", **asked) if each.problem]
    assert not [each for each in memory.ls(globs=["*.json"], sort="size") if each.problem]
    note = "no condition holds for 1 file that cannot be read: `mdmem check` says why"
    assert memory.grep("Caf", where=["size>0"]).notes == (note,)


def test_conditions_hold_below_a_folder_and_with_globs(memory: Memory) -> None:
    assert listed(memory, "type=decision", within="notes") == ["notes/a.md", "notes/deep/c.md"]
    assert listed(memory, "type=decision", within="notes/", globs=("*.md", "!deep/*")) == ["notes/a.md"]
    assert listed(memory, "type=decision", globs=("*.json",)) == ["other/d.json"]
    assert listed(memory, "type=note", within="other") == []
    with pytest.raises(MemoryNotFound):
        listed(memory, "type=note", within="note")
    with pytest.raises(PatternInvalid):
        listed(memory, "type decision")


def test_sizes_and_times_are_those_of_the_files(memory: Memory) -> None:
    plain = {entry.path: entry for entry in memory.ls()}
    assert all(plain[entry.path] == entry for entry in memory.ls(sort="-size"))


def test_a_listing_says_which_fields_no_memory_has(memory: Memory) -> None:
    found = memory.ls(where=["Titel", "wieght>1", "zzz!=1"], sort="-titel")
    assert found.unknown == {
        "Titel": "no memory has a field 'Titel'; nearest names: title, state",
        "titel": "no memory has a field 'titel'; nearest names: title, state",
        "wieght": "no memory has a field 'wieght'; nearest names: weight",
        "zzz": "no memory has a field 'zzz'",
    }
    assert memory.ls(where=["!supersedes", "size>0"], sort="modified").unknown.keys() == {"supersedes"}
    assert memory.ls().unknown == {}
    assert memory.search("alpha", where=["wieght"]).notes[0] == found.unknown["wieght"]
    assert memory.grep("alpha", where=["wieght"]).notes == (found.unknown["wieght"],)


def test_the_time_of_change_is_a_field(memory: Memory, tmp_path: Path) -> None:
    os.utime(tmp_path / "memories/notes/b.md", (1_000_000_000, 1_000_000_000))
    assert listed(memory, sort="modified")[0] == "notes/b.md"
    assert listed(memory, sort="-modified")[-1] == "notes/b.md"
    assert listed(memory, "modified<2002") == ["notes/b.md"]


def test_a_listing_is_current_whoever_writes(memory: Memory) -> None:
    assert listed(memory, "type=fresh") == []
    Path(memory.vault.root, "notes/new.md").write_bytes(b"---\ntype: fresh\n---\n")
    assert listed(memory, "type=fresh") == ["notes/new.md"]
    Path(memory.vault.root, "notes/new.md").write_bytes(b"---\ntype: stale\n---\n")
    assert listed(memory, "type=fresh") == []


def test_a_namespace_lists_its_own_memories_alone(tmp_path: Path, memory: Memory) -> None:
    scoped = mdmem.open(tmp_path / "memories", scope=mdmem.Scope(user="alice"))
    scoped.write("notes/a.md", "---\ntype: decision\n---\n")
    other = mdmem.open(tmp_path / "memories", scope=mdmem.Scope(user="alicebob"))
    other.write("notes/z.md", "---\ntype: decision\ntags: [secret]\n---\n")
    assert listed(scoped, "type=decision") == ["notes/a.md"]
    assert listed(scoped, "tag=secret") == []
    assert "users/alice/notes/a.md" in listed(memory, "type=decision")


NOTE = "---\ntitle: A note # kept\ntags: [a]\n---\n# Design\n\nText.\n\n## Index\n\n- one\n\n# Log\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_vault(tmp_path / "memories")


@pytest.fixture
def vault(root: Path) -> Vault:
    return Vault(str(root))


@pytest.fixture
def verbs(vault: Vault) -> Verbs[Applied]:
    return Verbs(vault, vault.transact, viewing(vault))


@pytest.fixture
def planned(vault: Vault) -> Verbs[EditPlan]:
    return Verbs(vault, lambda build: build(), viewing(vault))


def viewing(vault: Vault) -> Callable[[], View]:
    """What gives the verbs a current view of the index."""
    index = Index(vault.root)

    def view() -> View:
        index.sync()
        return View(index, vault)

    return view


def make_vault(folder: Path) -> Path:
    (folder / ".mdmem").mkdir(parents=True)
    (folder / ".mdmem/config.toml").touch()
    return folder


def put(root: Path, path: str, content: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def memories(root: Path) -> dict[str, str]:
    """Every file of the vault that is not bookkeeping, with its bytes."""
    return {
        str(file.relative_to(root)): file.read_bytes().decode("utf-8", "surrogateescape")
        for file in root.rglob("*")
        if file.is_file() and not file.is_relative_to(root / ".mdmem")
    }


# ---------------------------------------------------------------------------------------------- one memory


def test_write_makes_a_memory(root: Path, verbs: Verbs[Applied]) -> None:
    applied = verbs.write("notes/a.md", "# A\r\n")
    assert memories(root) == {"notes/a.md": "# A\r\n"}
    assert [(f.path, f.before) for f in applied.files] == [("notes/a.md", None)]
    assert applied.plan.message == "write notes/a.md"


def test_write_replaces_only_what_the_caller_has_seen_or_says_so(
    root: Path, vault: Vault, verbs: Verbs[Applied]
) -> None:
    put(root, "a.md", "old\n")
    with pytest.raises(AlreadyExists, match=r"a\.md") as caught:
        verbs.write("a.md", "new\n")
    assert "--overwrite" in caught.value.hint
    assert memories(root) == {"a.md": "old\n"}
    verbs.write("a.md", "new\n", base=vault.read("a.md").hash)
    verbs.write("a.md", "newer\n", overwrite=True)
    assert memories(root) == {"a.md": "newer\n"}


def test_write_with_a_base_needs_the_memory(verbs: Verbs[Applied]) -> None:
    with pytest.raises(MemoryNotFound):
        verbs.write("a.md", "x", base="0" * 64)


def test_what_cannot_be_encoded_is_refused(root: Path, verbs: Verbs[Applied]) -> None:
    for verb in (verbs.write, verbs.append):
        with pytest.raises(NotEncodable) as caught:
            verb("a.md", "x\ud800")
        assert caught.value.offset == 1
    assert memories(root) == {}


@cases("path", ["../a.md", "/a.md", "a.txt", ".mdmem/a.md", "notes//a.md", ""])
def test_a_path_that_names_no_memory_is_refused(root: Path, verbs: Verbs[Applied], path: str) -> None:
    calls: list[Callable[[], Applied]] = [
        lambda: verbs.write(path, "x", overwrite=True),
        lambda: verbs.append(path, "x"),
        lambda: verbs.replace(path, "a", "b"),
        lambda: verbs.restore(path),
    ]
    for call in calls:
        with pytest.raises(PathRefused):
            call()
    assert memories(root) == {}


def test_a_path_in_another_unicode_form_is_the_same_memory(root: Path, verbs: Verbs[Applied]) -> None:
    composed, decomposed = "caf\u00e9.md", "cafe\u0301.md"
    verbs.write(composed, "one\n")
    verbs.append(decomposed, "two")
    verbs.restore(decomposed)
    assert memories(root) == {composed: "one\n"}
    assert {f.path for entry in Vault(str(root)).history() for f in entry.files} == {composed}


EDITS: list[tuple[str, Callable[[Verbs[Any]], Any], str]] = [
    ("append", lambda v: v.append("n.md", "end\nof it"), NOTE + "end\nof it\n"),
    ("prepend", lambda v: v.prepend("n.md", "first"), NOTE.replace("# Design", "first\n# Design")),
    ("insert", lambda v: v.insert("n.md", 7, "more"), NOTE.replace("Text.\n", "Text.\nmore\n")),
    ("delete_lines", lambda v: v.delete_lines("n.md", 7, 8), NOTE.replace("Text.\n\n", "")),
    (
        "set one field",
        lambda v: v.set("n.md", {"title": "Another"}),
        NOTE.replace("A note #", "Another #"),
    ),
    (
        "set several fields",
        lambda v: v.set("n.md", {"title": "B", "tags": ["a", "b"], "source.type": "web"}),
        NOTE.replace("A note #", "B #").replace("[a]\n", "[a, b]\nsource:\n  type: web\n"),
    ),
    ("unset", lambda v: v.unset("n.md", "tags"), NOTE.replace("tags: [a]\n", "")),
    (
        "section, replaced",
        lambda v: v.section("n.md", "Design", "New."),
        NOTE.replace("Text.\n\n## Index\n\n- one", "New."),
    ),
    (
        "section, its subsections kept",
        lambda v: v.section("n.md", "Design", "New.", keep_subsections=True),
        NOTE.replace("Text.", "New."),
    ),
    (
        "section, appended to",
        lambda v: v.section("n.md", "Design > Index", "- two", where="append"),
        NOTE.replace("- one", "- one\n- two"),
    ),
    (
        "section, before",
        lambda v: v.section("n.md", "# Log", "Between.", where="before"),
        NOTE.replace("# Log", "Between.\n\n# Log"),
    ),
    ("section, after", lambda v: v.section("n.md", "Log", "End.", where="after"), f"{NOTE}\nEnd.\n"),
    ("replace", lambda v: v.replace("n.md", "Text", "Words"), NOTE.replace("Text", "Words")),
    (
        "replace all",
        lambda v: v.replace("n.md", "e", "E", count="all"),
        NOTE.replace("e", "E"),
    ),
    (
        "replace by a pattern",
        lambda v: v.replace("n.md", r"^- (\w+)$", r"* \1", regex=True),
        NOTE.replace("- one", "* one"),
    ),
]


@cases("call, after", [case[1:] for case in EDITS], ids=[case[0].replace(" ", "-") for case in EDITS])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_an_edit_changes_what_it_says(
    root: Path, verbs: Verbs[Applied], call: Callable[[Verbs[Any]], Any], after: str, newline: str
) -> None:
    put(root, "n.md", NOTE.replace("\n", newline))
    applied = call(verbs)
    assert memories(root) == {"n.md": after.replace("\n", newline)}
    assert [f.path for f in applied.files] == ["n.md"]


def test_fields_of_json_are_set_together(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "a.json", '{\n  "a": {"b": 1},\n  "c": [1]\n}\n')
    verbs.set("a.json", {"a.b": 2, "c": [1, 2], "d": None})
    assert json.loads((root / "a.json").read_text()) == {"a": {"b": 2}, "c": [1, 2], "d": None}
    verbs.unset("a.json", "a.b")
    assert json.loads((root / "a.json").read_text())["a"] == {}


def test_append_makes_a_memory_that_is_not_there(root: Path, verbs: Verbs[Applied]) -> None:
    verbs.append("deep/er/a.md", "one")
    verbs.append("deep/er/a.md", "two\n")
    assert memories(root) == {"deep/er/a.md": "one\ntwo\n"}
    with pytest.raises(EditRefused, match="JSON"):
        verbs.append("a.json", "x")


@cases(
    "call, error",
    [
        (lambda v: v.prepend("gone.md", "x"), MemoryNotFound),
        (lambda v: v.insert("n.md", 99, "x"), EditRefused),
        (lambda v: v.delete_lines("n.md", 1, 1), EditRefused),
        (lambda v: v.set("gone.md", {"a": 1}), MemoryNotFound),
        (lambda v: v.unset("n.md", "nothing"), FieldNotFound),
        (lambda v: v.section("n.md", "Gone", "x"), SectionNotFound),
        (lambda v: v.section("n.md", "Log", "x", where="under"), Usage),
        (lambda v: v.section("n.md", "Design", "```\nopen"), EditRefused),
        (lambda v: v.replace("n.md", "nowhere", "x"), TextNotFound),
        (lambda v: v.replace("n.md", "e", "x"), TextAmbiguous),
        (lambda v: v.replace("n.md", "(", "x", regex=True), PatternInvalid),
        (lambda v: v.replace("n.md", "tags: [a]", "tags: [a"), Invalid),
        (lambda v: v.set("n.md", {"tags": {"a": 3}}), Invalid),
        (lambda v: v.write("n.md", "---\ntags: {a: 3}\n---\n", overwrite=True), Invalid),
    ],
)
def test_what_is_refused_writes_nothing(
    root: Path,
    verbs: Verbs[Applied],
    planned: Verbs[EditPlan],
    call: Callable[[Verbs[Any]], Any],
    error: type[MdmemError],
) -> None:
    put(root, "n.md", NOTE)
    with pytest.raises(error):
        call(verbs)
    assert memories(root) == {"n.md": NOTE}
    if error is not Invalid:
        with pytest.raises(error):
            call(planned)


@pytest.mark.parametrize(
    "call",
    [
        lambda v: v.set("n.md", {}),
        lambda v: v.set("n.md", {"title": "A note"}),
        lambda v: v.append("n.md", ""),
        lambda v: v.section("n.md", "Log", "\n", where="append"),
        lambda v: v.replace("n.md", "Text", "Text"),
        lambda v: v.write("n.md", NOTE, overwrite=True),
        lambda v: v.mv("n.md", "n.md"),
    ],
)
def test_what_changes_nothing_is_no_change(
    root: Path, vault: Vault, verbs: Verbs[Applied], call: Callable[[Verbs[Applied]], Applied]
) -> None:
    put(root, "n.md", NOTE)
    assert (call(verbs).id, list(vault.history())) == ("", [])
    assert memories(root) == {"n.md": NOTE}


# --------------------------------------------------------------------------------------------- many memories


@pytest.fixture(name="tree")
def make_tree(root: Path) -> Path:
    put(root, "a.md", "old a\n")
    put(root, "notes/b.md", "old b, old\r\n")
    put(root, "notes/deep/c.md", "nothing\n")
    put(root, "notes/deep/d.json", '"old d"\n')
    put(root, "notesx/e.md", "old e\n")
    return root


def test_replace_across_memories(tree: Path, verbs: Verbs[Applied]) -> None:
    applied = verbs.replace(None, "old", "new", count="all")
    assert {path: text for path, text in memories(tree).items() if "new" in text} == {
        "a.md": "new a\n",
        "notes/b.md": "new b, new\r\n",
        "notes/deep/d.json": '"new d"\n',
        "notesx/e.md": "new e\n",
    }
    assert (applied.plan.message, applied.plan.left_out) == ("replace 5 occurrences in 4 memories", ())


@cases(
    "within, globs, paths",
    [
        ("notes", (), ["notes/b.md", "notes/deep/d.json"]),
        ("notes/", (), ["notes/b.md", "notes/deep/d.json"]),
        ("notes/deep", (), ["notes/deep/d.json"]),
        ("", ("*.md",), ["a.md", "notes/b.md", "notesx/e.md"]),
        ("", ("notes/**",), ["notes/b.md", "notes/deep/d.json"]),
        ("notes", ("deep/*",), ["notes/deep/d.json"]),
        ("notes", ("!*.json",), ["notes/b.md"]),
    ],
)
@pytest.mark.usefixtures("tree")
def test_replace_across_only_what_is_asked_for(
    planned: Verbs[EditPlan], within: str, globs: tuple[str, ...], paths: list[str]
) -> None:
    plan = planned.replace(None, "old", "new", count="all", within=within, globs=globs)
    assert list(plan.paths) == paths


@pytest.mark.usefixtures("tree")
def test_replace_across_by_a_pattern(verbs: Verbs[Applied]) -> None:
    applied = verbs.replace(None, r"^old (\w)$", r"\1", count=2, regex=True)
    assert [f.path for f in applied.files] == ["a.md", "notesx/e.md"]
    assert applied.plan.message == "replace 2 occurrences in 2 memories"
    assert verbs.replace(None, "nothing", "x").plan.message == "replace 1 occurrence in 1 memory"


@pytest.mark.parametrize("count", [1, 4, 6])
def test_replace_across_wants_as_many_occurrences_in_all_as_expected(
    tree: Path, verbs: Verbs[Applied], count: int
) -> None:
    before = memories(tree)
    with pytest.raises(TextAmbiguous) as caught:
        verbs.replace(None, "old", "new", count=count)
    assert caught.value.message == (
        "every memory: 'old' occurs 5 times, in 4 memories:"
        f" a.md (1), notes/b.md (2), notes/deep/d.json (1), notesx/e.md (1); expected {count}"
    )
    assert "--all" in caught.value.hint
    assert memories(tree) == before
    assert len(verbs.replace(None, "old", "new", count=5).files) == 4


@cases(
    "old, regex, near",
    [
        ("OLD B", False, [("notes/b.md", 1, "case")]),
        ("old\nb", False, [("notes/b.md", 1, "whitespace")]),
        ("O.D A", True, [("a.md", 1, "case")]),
        ("odl", False, []),
        ("o{5}", True, []),
    ],
)
@pytest.mark.usefixtures("tree")
def test_what_is_nowhere_but_for_a_slip_is_told_with_its_place(
    planned: Verbs[EditPlan], old: str, regex: bool, near: list[tuple[str, int, str]]
) -> None:
    with pytest.raises(TextNotFound) as caught:
        planned.replace(None, old, "new", regex=regex)
    assert [(line.path, line.line, line.differs) for line in caught.value.near] == near
    assert "is similar" not in caught.value.hint
    for path, line, differs in near:
        assert f"{path}:{line}: " in caught.value.hint
        assert f"({differs})" in caught.value.hint


def test_a_dry_replace_shows_exactly_what_would_change(tree: Path, planned: Verbs[EditPlan]) -> None:
    before = memories(tree)
    plan = planned.replace(None, "old", "new", count=2, globs=["*.md"], within="notes")
    assert plan.diff() == ("--- a/notes/b.md\n+++ b/notes/b.md\n@@ -1 +1 @@\n-old b, old\r\n+new b, new\r\n")
    assert memories(tree) == before


def test_replace_across_is_all_or_nothing(tree: Path, verbs: Verbs[Applied]) -> None:
    put(tree, "z.md", "---\ntags: [old]\n---\n")
    before = memories(tree)
    with pytest.raises(Invalid, match=r"z\.md"):
        verbs.replace(None, "[old]", "{old: 3}")
    with pytest.raises(Invalid, match=r"z\.md"):
        verbs.replace(None, "old", "]", count="all")
    assert memories(tree) == before


def test_what_cannot_be_looked_into_is_told(tree: Path, verbs: Verbs[Applied]) -> None:
    put(tree, "notes/latin.md", b"old \xe9\n")
    put(tree, "notes/zero.md", b"old \0\n")
    os.symlink(tree / "a.md", tree / "notes/link.md")
    applied = verbs.replace(None, "old", "new", count="all", within="notes")
    assert [f.path for f in applied.files] == ["notes/b.md", "notes/deep/d.json"]
    told = [
        "notes/latin.md:1: not UTF-8: byte 0xe9 at offset 4",
        "notes/link.md: a symbolic link",
        "notes/zero.md: binary content: a NUL byte at offset 4",
    ]
    assert list(applied.plan.left_out) == told
    assert (tree / "a.md").read_text() == "old a\n"

    with pytest.raises(TextNotFound, match="notes: 'old' does not occur") as caught:
        verbs.replace(None, "old", "new", within="notes")
    assert list(caught.value.left_out) == told
    assert told[0] in caught.value.hint


def test_replace_across_an_empty_vault_finds_nothing(verbs: Verbs[Applied]) -> None:
    with pytest.raises(TextNotFound, match="every memory"):
        verbs.replace(None, "a", "b")


@pytest.mark.usefixtures("tree")
def test_replace_across_wants_a_folder_that_is_there(verbs: Verbs[Applied]) -> None:
    with pytest.raises(MemoryNotFound, match="gone: no such folder"):
        verbs.replace(None, "old", "new", count="all", within="gone")
    with pytest.raises(Usage, match=r"a\.md is a memory, not a folder"):
        verbs.replace(None, "old", "new", count="all", within="a.md")


def test_a_memory_moves(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "notes/a.md", "a\n")
    verbs.mv("notes/a.md", "archive/b.md")
    assert memories(root) == {"archive/b.md": "a\n"}


@pytest.mark.parametrize(
    ("source", "target", "paths"),
    [
        ("notes/b.md", "archive/", ["archive/b.md", "notes/deep/c.md", "notes/deep/d.json"]),
        ("notes/b.md", "/", ["b.md", "notes/deep/c.md", "notes/deep/d.json"]),
        ("notes", "archive", ["archive/b.md", "archive/deep/c.md", "archive/deep/d.json"]),
        ("notes/", "archive", ["archive/b.md", "archive/deep/c.md", "archive/deep/d.json"]),
        ("notes/deep", "archive/", ["archive/deep/c.md", "archive/deep/d.json", "notes/b.md"]),
        ("notes/deep", "/", ["deep/c.md", "deep/d.json", "notes/b.md"]),
        ("notes", "notes/old", ["notes/old/b.md", "notes/old/deep/c.md", "notes/old/deep/d.json"]),
    ],
)
def test_memories_move_to_or_into_a_folder(
    tree: Path, verbs: Verbs[Applied], source: str, target: str, paths: list[str]
) -> None:
    before = memories(tree)
    verbs.mv(source, target)
    after = memories(tree)
    assert sorted(after) == sorted(["a.md", *paths, "notesx/e.md"])
    assert sorted(after.values()) == sorted(before.values())


@cases(
    "source, target, error",
    [
        ("a.md", "notesx/e.md", AlreadyExists),
        ("a.md", "archive", PathRefused),
        ("a.md", "../a.md", PathRefused),
        ("gone.md", "b.md", MemoryNotFound),
        ("gone", "archive", MemoryNotFound),
        ("", "archive", Usage),
        ("/", "archive", Usage),
        ("notes", "", PathRefused),
        ("notes", "../notes", PathRefused),
        ("notes/deep", ".hidden", PathRefused),
    ],
)
def test_a_move_that_cannot_be_moves_nothing(
    tree: Path, verbs: Verbs[Applied], source: str, target: str, error: type[MdmemError]
) -> None:
    before = memories(tree)
    with pytest.raises(error):
        verbs.mv(source, target)
    assert memories(tree) == before


def test_a_folder_moves_wholly_or_not_at_all(tree: Path, verbs: Verbs[Applied]) -> None:
    put(tree, "archive/deep/d.json", "1\n")
    before = memories(tree)
    with pytest.raises(AlreadyExists, match=r"archive/deep/d\.json"):
        verbs.mv("notes", "archive")
    assert memories(tree) == before


@pytest.fixture
def attached(root: Path) -> Path:
    """Memories beside attachments, and what points at these in each way."""
    put(root, "notes/a.md", "![[pic.png]] ![x](pic.png) [y](../notes/pic.png) [z](deep/data.csv)\n")
    put(root, "b.md", "[csv](notes/deep/data.csv) ![[notes/pic.png]]\n")
    put(root, "notes/deep/data.csv", "1,2\n")
    (root / "notes/pic.png").write_bytes(b"\x89PNG\0")
    (root / "notes/pic.png").chmod(0o640)
    return root


def attachments(root: Path) -> dict[str, tuple[int, bytes]]:
    found = (file for file in root.rglob("*.*") if file.is_file() and file.suffix in {".png", ".csv"})
    return {str(file.relative_to(root)): (file.stat().st_mode & 0o777, file.read_bytes()) for file in found}


def test_an_attachment_moves_with_what_points_at_it_and_comes_back(
    attached: Path, verbs: Verbs[Applied]
) -> None:
    before, texts = attachments(attached), memories(attached)
    done = verbs.mv("notes/pic.png", "img/")
    assert attachments(attached) == {
        "img/pic.png": (0o640, b"\x89PNG\0"),
        "notes/deep/data.csv": before["notes/deep/data.csv"],
    }
    moved = "![[pic.png]] ![x](../img/pic.png) [y](../img/pic.png) [z](deep/data.csv)\n"
    assert memories(attached)["notes/a.md"] == moved
    assert memories(attached)["b.md"] == "[csv](notes/deep/data.csv) ![[img/pic.png]]\n"
    verbs.undo(done.id)
    assert (attachments(attached), memories(attached)) == (before, texts)


def test_attachments_move_with_their_folder_and_come_back(attached: Path, verbs: Verbs[Applied]) -> None:
    before, texts = attachments(attached), memories(attached)
    done = verbs.mv("notes", "archive/")
    assert attachments(attached) == {f"archive/{path}": each for path, each in before.items()}
    assert {path: text for path, text in memories(attached).items() if path.endswith(".md")} == {
        "archive/notes/a.md": "![[pic.png]] ![x](pic.png) [y](pic.png) [z](deep/data.csv)\n",
        "b.md": "[csv](archive/notes/deep/data.csv) ![[notes/pic.png]]\n",
    }
    assert not (attached / "notes").exists()
    verbs.undo(done.id)
    assert (attachments(attached), memories(attached)) == (before, texts)


def test_a_folder_of_attachments_alone_moves(attached: Path, verbs: Verbs[Applied]) -> None:
    verbs.mv("notes/deep", "data")
    assert set(attachments(attached)) == {"notes/pic.png", "data/data.csv"}
    assert memories(attached)["b.md"] == "[csv](data/data.csv) ![[notes/pic.png]]\n"


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("notes/pic.png", "notes/deep/data.csv", AlreadyExists),
        ("notes/pic.png", "notes/a.md", AlreadyExists),
        ("notes/pic.png", "notes/pic.md", PathRefused),
        ("notes/pic.png", "../pic.png", PathRefused),
        ("notes/pic.png", ".hidden/", PathRefused),
        ("notes/pic.png", "notes/DEEP/pic.png", PathRefused),
        ("notes/link.png", "img/", PathRefused),
        ("notes/gone.png", "img/", MemoryNotFound),
        ("big", "img/", EditRefused),
    ],
)
def test_an_attachment_that_cannot_move_stays(
    attached: Path,
    verbs: Verbs[Applied],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    target: str,
    error: type[MdmemError],
) -> None:
    if source == "big":
        most = MOST_ATTACHED_BYTES if speed.is_all else 1 << 20
        monkeypatch.setattr("mdmem.vault.vault.MOST_ATTACHED_BYTES", most)
        put(attached, "big/a.md", "[b](b.bin)\n")
        for name in ("b.bin", "c.bin"):  # each alone could move
            with (attached / "big" / name).open("wb") as file:
                file.truncate(most // 2 + 1)
    (attached / "notes/link.png").symlink_to("pic.png")
    before, texts = attachments(attached), memories(attached)
    with pytest.raises(error):
        verbs.mv(source, target)
    assert (attachments(attached), memories(attached)) == (before, texts)


def test_a_folder_with_a_link_does_not_move(attached: Path, verbs: Verbs[Applied]) -> None:
    (attached / "notes/link.png").symlink_to("pic.png")
    with pytest.raises(PathRefused, match=r"notes/link\.png"):
        verbs.mv("notes", "archive")
    assert (attached / "notes/link.png").is_symlink()


def test_an_attachment_that_has_changed_since_is_not_moved_back(
    attached: Path, verbs: Verbs[Applied]
) -> None:
    done = verbs.mv("notes/pic.png", "img/")
    (attached / "img/pic.png").write_bytes(b"another")
    with pytest.raises(Conflict, match=r"img/pic\.png"):
        verbs.undo(done.id)
    assert set(attachments(attached)) == {"img/pic.png", "notes/deep/data.csv"}


def test_what_another_program_did_to_an_attachment_is_not_undone(
    attached: Path, verbs: Verbs[Applied], vault: Vault
) -> None:
    """Such an entry is written when a program writes in the instant of a move."""
    verbs.mv("notes/pic.png", "img/")
    entry = next(iter(vault.history()))
    aside = FileChange(path="img/pic.png", before="0" * 64, after="1" * 64)
    vault.disk.trash.record(entry._replace(id=f"{entry.id}.0", files=(aside,)))
    with pytest.raises(Conflict, match=r"img/pic\.png"):
        verbs.undo(f"{entry.id}.0")
    assert set(attachments(attached)) == {"img/pic.png", "notes/deep/data.csv"}


def test_a_plan_shows_where_attachments_move(attached: Path, vault: Vault) -> None:
    plan = Verbs(vault, lambda build: build(), viewing(vault)).mv("notes/pic.png", "img/")
    assert "rename from notes/pic.png\nrename to img/pic.png\n" in plan.diff()
    assert {"img/pic.png", "notes/pic.png"} < {file.path for file in plan.files}
    assert set(attachments(attached)) == {"notes/pic.png", "notes/deep/data.csv"}


@pytest.mark.parametrize(
    ("files", "gone", "dangling"),
    [
        (
            {"a.md": "x\n[[b]] [b](b.md#x)\n\n[b][1]\n\n[1]: b.md\n"},
            ["b.md"],
            [("a.md", 2, ""), ("a.md", 4, ""), ("a.md", 6, "")],
        ),
        ({"a.md": "[[b]]\n", "sub/b.md": "b\n"}, ["b.md"], [("a.md", 1, "sub/b.md")]),
        ({"a.md": "[[b]]\n", "sub/b.md": "b\n"}, ["sub"], [("a.md", 1, "b.md")]),
        ({"a.md": "[[b]]\n", "sub/b.md": "b\n", "too/b.md": "b\n"}, ["b.md"], []),  # `check` tells it still
        ({"a.md": "[[b]]\n", "sub/b.md": "b\n"}, ["b.md", "sub"], [("a.md", 1, "")]),
        ({"a.md": "[[b]]\n"}, ["a.md", "b.md"], []),
        ({"b.md": "[[#x]] [[b]]\n"}, ["b.md"], []),
        (
            {"a.md": "[[one]] [[Bee]]\n", "b.md": "---\nid: one\naliases: [Bee]\n---\n"},
            ["b.md"],
            [("a.md", 1, "")],
        ),
        ({"a.md": "[[gone]] `b.md`\n"}, ["b.md"], []),
        ({"a.md": "---\nsuperseded_by: b.md\n---\n"}, ["b.md"], [("a.md", 2, "")]),
        ({"a.md": "[[b]]\n", "users/al/b.md": ""}, ["b.md"], [("a.md", 1, "")]),
        (
            {"projects/p/a.md": "[[b]]\n", "projects/p/b.md": ""},
            ["projects/p/b.md"],
            [("projects/p/a.md", 1, "b.md")],
        ),
    ],
)
def test_the_links_that_a_deletion_leaves_behind_are_told(
    root: Path,
    verbs: Verbs[Applied],
    files: dict[str, str],
    gone: list[str],
    dangling: list[tuple[str, int, str]],
) -> None:
    for path, text in {"b.md": "b\n", **files}.items():
        put(root, path, text)
    assert list(verbs.rm(gone, recursive=True).plan.dangling) == dangling


def test_a_deletion_does_not_wait_for_an_index_that_cannot_be_made(root: Path, vault: Vault) -> None:
    put(root, "a.md", "[[b]]\n")
    put(root, "b.md", "b\n")

    def view() -> Any:
        raise StorageFailed(path=".mdmem/local", action="write it", reason="the disk is full")

    assert Verbs(vault, vault.transact, view).rm("b.md").plan.dangling == ()


def test_a_move_says_what_moved_and_how_many_links_follow(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "a.md", "[[b]] and [b](b.md)\n")
    put(root, "b.md", "b\n")
    plan = verbs.mv("b.md", "c/d.md").plan
    assert (plan.moves, plan.links_rewritten) == ({"b.md": "c/d.md"}, 2)
    assert verbs.replace("a.md", "and", "or").plan.links_rewritten == 0


def test_a_memory_or_a_folder_is_deleted(tree: Path, verbs: Verbs[Applied]) -> None:
    verbs.rm("a.md")
    (tree / "notes/a picture.png").touch()
    (tree / "notesx/b.png").touch()
    plan = verbs.rm("notes/", recursive=True).plan
    assert plan.left_out == ("notes/: 1 file that is no memory",)
    assert (tree / "notes/a picture.png").exists()
    assert [path for path in memories(tree) if path.endswith(".md")] == ["notesx/e.md"]


@pytest.mark.parametrize(
    ("path", "error"),
    [("gone.md", MemoryNotFound), ("gone", MemoryNotFound), ("", Usage), ("..", PathRefused)],
)
def test_what_is_not_there_cannot_be_deleted(
    tree: Path, verbs: Verbs[Applied], path: str, error: type[MdmemError]
) -> None:
    before = memories(tree)
    with pytest.raises(error):
        verbs.rm(path, recursive=True)
    assert memories(tree) == before


@pytest.mark.parametrize(
    "call", [lambda v: v.rm("notes", recursive=True), lambda v: v.mv("notes", "archive")]
)
def test_a_folder_with_something_that_is_no_memory_stays(
    tree: Path, verbs: Verbs[Applied], call: Callable[[Verbs[Applied]], Applied]
) -> None:
    os.symlink(tree / "a.md", tree / "notes/link.md")
    before = memories(tree)
    with pytest.raises(Usage, match=r"notes/link\.md cannot be moved or deleted: a symbolic link"):
        call(verbs)
    assert memories(tree) == before


@pytest.mark.parametrize(
    "call", [lambda v: v.rm("notes", base="0" * 64), lambda v: v.mv("notes", "x", base="0" * 64)]
)
def test_a_folder_has_no_base(
    tree: Path, verbs: Verbs[Applied], call: Callable[[Verbs[Applied]], Applied]
) -> None:
    before = memories(tree)
    with pytest.raises(Usage, match="a folder, which has no hash"):
        call(verbs)
    assert memories(tree) == before


# ----------------------------------------------------------------------------------------------------- new


def test_new_makes_a_memory_from_a_template(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, ".mdmem/templates/short.md", "# {{ title }}\n")
    verbs.new("short", "notes/a.md", {"title": "Topic"})
    assert memories(root) == {"notes/a.md": "# Topic\n"}


def test_new_makes_nothing_where_it_cannot(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, ".mdmem/templates/short.md", "# {{ title }}\n")
    put(root, "a.md", "a\n")
    with pytest.raises(AlreadyExists, match="another path, or edit"):
        verbs.new("short", "a.md", {"title": "Topic"})
    with pytest.raises(TemplateFailed, match="title"):
        verbs.new("short", "b.md")
    with pytest.raises(NamedNotFound):
        verbs.new("nothing", "b.md")
    assert memories(root) == {"a.md": "a\n"}


@pytest.mark.parametrize(
    ("type_", "path", "warned"),
    [
        ("preference", "notes/a.md", True),
        ("note", "users/a/preferences/ui/theme.md", True),
        ("working", "rules/a.md", True),
        ("rule", "AGENTS.md", True),
        ("note", "notes/a.md", False),
        ("note", "elsewhere/a.md", False),
        ("decision", "rules/a.md", False),
        ("[note]", "notes/a.md", False),
    ],
)
def test_a_template_of_another_kind_than_its_folder_is_a_warning(
    root: Path, type_: str, path: str, warned: bool
) -> None:
    (root / ".mdmem/templates").mkdir(exist_ok=True)
    (root / ".mdmem/templates/typed.md").write_text(f"---\ntype: {type_}\nvalue: 1\n---\n")
    (root / ".mdmem/schemas").mkdir(exist_ok=True)
    for name in ("note", "decision"):
        (root / f".mdmem/schemas/{name}.json").write_text("{}")
    vault = Vault(str(root))

    applied = Verbs(vault, vault.transact, viewing(vault)).new("typed", path)

    assert [f.code for f in applied.plan.warnings] == ["type-misplaced"] * warned
    assert (root / path).exists()


# ------------------------------------------------------------------------------------------------ the base


@pytest.mark.parametrize("length", [8, 12, 64])
def test_a_change_with_the_right_base_is_made(
    root: Path, vault: Vault, verbs: Verbs[Applied], length: int
) -> None:
    put(root, "n.md", NOTE)
    base = vault.read("n.md").hash[:length]
    verbs.replace("n.md", "Text", "Words", base=base.upper())
    assert memories(root) == {"n.md": NOTE.replace("Text", "Words")}


@pytest.mark.parametrize("base", ["", "abc", "1234567"])
def test_a_base_that_is_too_short_is_refused(root: Path, verbs: Verbs[Applied], base: str) -> None:
    put(root, "n.md", NOTE)
    calls: list[Callable[[], Applied]] = [
        lambda: verbs.append("n.md", "x", base=base),
        lambda: verbs.rm("n.md", base=base),
        lambda: verbs.write("n.md", "x", base=base),
    ]
    for call in calls:
        with pytest.raises(Usage, match="8 digits or more"):
            call()
    assert memories(root) == {"n.md": NOTE}


BASED: list[Callable[[Verbs[Any], str], Any]] = [
    lambda v, base: v.write("n.md", "x\n", base=base),
    lambda v, base: v.append("n.md", "x", base=base),
    lambda v, base: v.prepend("n.md", "x", base=base),
    lambda v, base: v.insert("n.md", 7, "x", base=base),
    lambda v, base: v.delete_lines("n.md", 7, 7, base=base),
    lambda v, base: v.set("n.md", {"title": "x"}, base=base),
    lambda v, base: v.unset("n.md", "title", base=base),
    lambda v, base: v.section("n.md", "Log", "x", base=base),
    lambda v, base: v.replace("n.md", "Text", "x", base=base),
    lambda v, base: v.mv("n.md", "m.md", base=base),
    lambda v, base: v.rm("n.md", base=base),
]


@cases("call", BASED)
def test_a_change_with_another_base_is_refused_with_what_changed(
    root: Path, vault: Vault, verbs: Verbs[Applied], planned: Verbs[EditPlan], call: Callable[..., Any]
) -> None:
    put(root, "n.md", NOTE)
    base = vault.read("n.md").hash
    verbs.append("n.md", "since then")
    before = memories(root)
    for some in (verbs, planned):
        with pytest.raises(Conflict) as caught:
            call(some, base[:12])
        error = caught.value
        assert (error.path, error.base, error.actual) == ("n.md", base[:12], vault.read("n.md").hash)
        assert "+since then\n" in error.diff
        assert "-" not in re.sub(r"^(---|@@).*|- one", "", error.diff, flags=re.MULTILINE)
    assert memories(root) == before


def test_a_base_that_was_never_seen_here_has_no_diff(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "n.md", NOTE)
    with pytest.raises(Conflict) as caught:
        verbs.append("n.md", "x", base="0" * 64)
    assert caught.value.diff == ""


# ------------------------------------------------------------------------------------------ restore and undo


def test_a_move_of_what_was_renamed_without_mdmem_says_how_its_links_follow(
    root: Path, verbs: Verbs[Applied]
) -> None:
    (root / "a.md").write_text("A\n")
    (root / "links.md").write_text("[[a]]\n")
    (root / "a.md").rename(root / "b.md")
    with pytest.raises(MemoryNotFound, match=r"renamed to b\.md without mdmem, give it back its name"):
        verbs.mv("a.md", "b.md")
    (root / "b.md").rename(root / "a.md")
    verbs.mv("a.md", "b.md")
    assert (root / "links.md").read_text() == "[[b]]\n"


def test_restore_brings_back_what_was_before_the_last_change(root: Path, verbs: Verbs[Applied]) -> None:
    verbs.write("a.md", "one\n")
    verbs.append("a.md", "two")
    verbs.append("a.md", "three")
    verbs.restore("a.md")
    assert memories(root) == {"a.md": "one\ntwo\n"}
    verbs.restore("a.md")
    assert memories(root) == {"a.md": "one\ntwo\nthree\n"}


def test_restore_brings_back_what_was_deleted(root: Path, verbs: Verbs[Applied]) -> None:
    verbs.write("a.md", "one\n")
    verbs.rm("a.md")
    assert verbs.restore("a.md").plan.message == "restore a.md"
    assert memories(root) == {"a.md": "one\n"}


@pytest.mark.parametrize("call", [lambda v: v.undo(), lambda v: v.restore("a.md")], ids=["undo", "restore"])
def test_what_was_deleted_comes_back_with_its_permissions(
    root: Path, verbs: Verbs[Applied], call: Callable[[Verbs[Applied]], Applied]
) -> None:
    """Also when the same content, with other permissions, went to the trash since then."""
    for name, mode in (("a.md", 0o600), ("b.md", 0o664)):
        put(root, name, "the same\n")
        (root / name).chmod(mode)
    verbs.append("b.md", "more")
    verbs.rm("a.md")
    call(verbs)
    assert (root / "a.md").stat().st_mode & 0o777 == 0o600


def test_a_swept_version_is_passed_over_by_restore(root: Path, verbs: Verbs[Applied]) -> None:
    for text in ("one\n", "two\n", "three\n"):
        verbs.write("a.md", text, overwrite=True)
    two = Vault(str(root)).disk.trash.path + "/" + sha256(b"two\n").hexdigest()
    os.unlink(two)
    verbs.restore("a.md")
    assert memories(root) == {"a.md": "one\n"}


def test_undo_never_takes_back_half_of_a_change_that_crossed_the_namespace(root: Path) -> None:
    whole = Vault(str(root))
    put(root, "users/ann/a.md", "secret plans\n")
    moving = Verbs(whole, whole.transact, viewing(whole))
    change = moving.mv("users/ann/a.md", "users/bob/b.md").id
    ann = Vault(str(root), "users/ann")
    before = memories(root)
    for some in (Verbs(ann, ann.transact, viewing(ann)), Verbs(ann, lambda build: build(), viewing(ann))):
        for named in (None, change):
            with pytest.raises(UndoRefused) as refused:
                some.undo(named)
            assert (refused.value.change, refused.value.exit_code) == (change, 2)
            assert "bob" not in str(refused.value)
            assert "whole vault" in refused.value.hint
    assert memories(root) == before
    moving.undo(change)
    assert memories(root) == {"users/ann/a.md": "secret plans\n"}


def test_restore_by_a_hash(root: Path, verbs: Verbs[Applied]) -> None:
    first = verbs.write("a.md", "one\n").files[0].after
    verbs.append("a.md", "two")
    verbs.append("a.md", "three")
    assert first
    verbs.restore("a.md", hash=first[:8].upper())
    assert memories(root) == {"a.md": "one\n"}
    with pytest.raises(Usage, match="8 digits"):
        verbs.restore("a.md", hash=first[:7])
    with pytest.raises(NamedNotFound) as caught:
        verbs.restore("a.md", hash="0" * 64)
    assert caught.value.near
    assert first[:8] not in caught.value.near


def test_restore_keeps_to_its_memory(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "b.md", "b\n")
    verbs.write("a.md", "one\n")
    verbs.rm("a.md")
    with pytest.raises(NamedNotFound):
        verbs.restore("b.md")
    with pytest.raises(NamedNotFound):
        verbs.restore("b.md", hash=next(iter(Vault(str(root)).history())).files[0].before)
    assert memories(root) == {"b.md": "b\n"}


@pytest.mark.parametrize(
    "call",
    [
        lambda v: v.append("a.md", "x"),
        lambda v: v.write("new.md", "x"),
        lambda v: v.rm("a.md"),
        lambda v: v.rm("notes", recursive=True),
        lambda v: v.mv("a.md", "b/c.md"),
        lambda v: v.mv("notes", "archive/"),
        lambda v: v.replace(None, "old", "new", count="all"),
    ],
    ids=["edit", "creation", "deletion", "deletion of many", "move", "move of many", "edit of many"],
)
def test_undo_takes_a_change_back_and_redo_makes_it_again(
    tree: Path, verbs: Verbs[Applied], call: Callable[[Verbs[Applied]], Applied]
) -> None:
    before = memories(tree)
    done = call(verbs)
    after = memories(tree)
    undone = verbs.undo()
    assert memories(tree) == before
    assert undone.plan.message == f"undo {done.id}: {done.plan.message}"
    redone = verbs.redo()
    assert memories(tree) == after
    assert redone.plan.message == f"redo {done.id}: {done.plan.message}"
    assert verbs.undo().plan.message == undone.plan.message
    assert memories(tree) == before
    assert verbs.undo(undone.id).plan.message == redone.plan.message
    assert memories(tree) == after


def test_undo_of_an_older_change_keeps_what_came_since(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "n.md", NOTE)
    put(root, "b.md", "Text\n")
    done = verbs.replace(None, "Text", "Words", count="all")
    verbs.section("n.md", "Index", "- two", where="append")
    verbs.undo(done.id)
    assert memories(root) == {"n.md": NOTE.replace("- one", "- one\n- two"), "b.md": "Text\n"}


def test_undo_of_what_has_changed_since_is_refused_for_all_of_its_memories(
    root: Path, vault: Vault, verbs: Verbs[Applied]
) -> None:
    put(root, "n.md", NOTE)
    put(root, "b.md", "Text\n")
    done = verbs.replace(None, "Text", "Words", count="all")
    verbs.replace("n.md", "Words.", "Other words.")
    before = memories(root)
    with pytest.raises(Conflict, match=r"n\.md") as caught:
        verbs.undo(done.id)
    assert caught.value.actual == vault.read("n.md").hash
    assert "-Words.\n+Other words.\n" in caught.value.diff
    assert memories(root) == before


@pytest.mark.parametrize(
    ("call", "since"),
    [
        (lambda v: v.write("new.md", "x\n"), ("new.md", "x\ny\n")),
        (lambda v: v.rm("a.md"), ("a.md", "another\n")),
        (lambda v: v.mv("a.md", "b.md"), ("a.md", "another\n")),
        (lambda v: v.append("a.md", "x"), ("a.md", "written by a program that keeps nothing\n")),
    ],
    ids=["creation", "deletion", "move", "edit"],
)
def test_undo_never_destroys_what_another_program_wrote(
    tree: Path,
    verbs: Verbs[Applied],
    call: Callable[[Verbs[Applied]], Applied],
    since: tuple[str, str],
) -> None:
    call(verbs)
    put(tree, *since)
    before = memories(tree)
    with pytest.raises(Conflict) as caught:
        verbs.undo()
    assert caught.value.path == since[0]
    assert memories(tree) == before


def test_there_is_nothing_to_undo(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "a.md", "a\n")
    with pytest.raises(NamedNotFound, match="nothing was changed"):
        verbs.undo()
    with pytest.raises(NamedNotFound, match="nothing-like-it"):
        verbs.undo("nothing-like-it")


def test_undo_means_the_change_that_was_last_when_it_began(root: Path, vault: Vault) -> None:
    """Another change in between makes the plan be built again: it must not be that one that is undone."""
    other = Verbs(vault, vault.transact, viewing(vault))
    other.write("a.md", "a\n")
    mine = other.append("a.md", "mine")

    def run(build: Callable[[], EditPlan]) -> Applied:
        assert build().message.startswith(f"undo {mine.id}:")
        other.write("b.md", "b\n")
        return vault.transact(build)

    Verbs(vault, run, viewing(vault)).undo()
    assert memories(root) == {"a.md": "a\n", "b.md": "b\n"}


def test_a_namespace_sees_and_undoes_only_its_own(root: Path, verbs: Verbs[Applied]) -> None:
    inside = Vault(str(root), "users/alice")
    mine = Verbs(inside, inside.transact, viewing(inside))
    mine.write("notes/a.md", "a\n")
    verbs.write("b.md", "b\n")
    mine.undo()
    assert memories(root) == {"b.md": "b\n"}
    with pytest.raises(NamedNotFound):
        mine.restore("b.md")
    mine.redo()
    with pytest.raises(PathRefused):
        mine.mv("notes/a.md", "../b.md")


NAMES = ("a.md", "b.md", "c/d.md")
STEPS = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(NAMES), st.sampled_from(["x", "y\n", "# Z"])),
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(["p\n", "# Q\n\nr"])),
    st.tuples(st.just("rm"), st.sampled_from([*NAMES, "c"])),
    st.tuples(st.just("mv"), st.sampled_from([*NAMES, "c"]), st.sampled_from([*NAMES, "e/", "e"])),
    st.tuples(st.just("replace"), st.none(), st.sampled_from(["x", "p"]), st.sampled_from(["X", "pp"])),
    st.tuples(st.just("set"), st.sampled_from(NAMES), st.just({"title": "T", "tags": ["a"]})),
)


@given(st.lists(STEPS, min_size=1, max_size=7))
@settings(max_examples=examples(20))
def test_undoing_every_change_gives_every_state_back(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = make_vault(Path(folder, "memories"))
        vault = Vault(str(root))
        view = viewing(vault)
        verbs, planned = Verbs(vault, vault.transact, view), Verbs(vault, lambda build: build(), view)
        states = [memories(root)]
        done: list[Applied] = []
        for name, *arguments in steps:
            options = {"overwrite": True} if name == "write" else {}
            try:
                plan = getattr(planned, name)(*arguments, **options)
                assert memories(root) == states[-1]
                applied = getattr(verbs, name)(*arguments, **options)
            except MdmemError:
                assert memories(root) == states[-1]
                continue
            assert applied.plan.diff() == plan.diff()
            if applied.id:
                done.append(applied)
                states.append(memories(root))
        for applied, state in zip(reversed(done), reversed(states[:-1]), strict=True):
            verbs.undo(applied.id)
            assert memories(root) == state


# ------------------------------------------------------------------------------------ plans, and many writers


MORE: list[tuple[str, Callable[[Verbs[Any]], Any]]] = [
    ("write", lambda v: v.write("new.md", "x\n")),
    ("append to nothing", lambda v: v.append("new.md", "x")),
    ("replace across", lambda v: v.replace(None, "one", "two", count="all")),
    ("mv", lambda v: v.mv("n.md", "m/")),
    ("mv folder", lambda v: v.mv("c", "d")),
    ("rm", lambda v: v.rm("n.md")),
    ("rm folder", lambda v: v.rm("c", recursive=True)),
    ("new", lambda v: v.new("note", "new.md", {"title": "T"})),
    ("restore", lambda v: v.restore("c/one.md")),
    ("undo", lambda v: v.undo()),
]


@pytest.mark.parametrize(
    "call",
    [pytest.param(call, id=name) for name, call in [*((n, c) for n, c, _ in EDITS), *MORE]],
)
def test_a_plan_is_what_the_verb_does_and_writes_nothing(
    root: Path,
    vault: Vault,
    verbs: Verbs[Applied],
    planned: Verbs[EditPlan],
    call: Callable[[Verbs[Any]], Any],
) -> None:
    put(root, "n.md", NOTE)
    verbs.write("c/one.md", "one\n")
    verbs.append("c/one.md", "two")
    before, history = memories(root), list(vault.history())
    plan = call(planned)
    assert (memories(root), list(vault.history())) == (before, history)
    applied = call(verbs)
    assert applied.plan.paths == plan.paths
    assert applied.plan.diff() == plan.diff() != ""
    assert applied.plan.message == plan.message
    results = {change.move_to or change.path: after for change, after in _afters(vault, plan)}
    after = memories(root)
    for path, document in results.items():
        assert after.get(path) == (document.text if document else None)
    assert {path: text for path, text in after.items() if path not in plan.paths} == {
        path: text for path, text in before.items() if path not in plan.paths
    }


def _afters(vault: Vault, plan: EditPlan) -> list[tuple[Any, Any]]:
    return [(change, change.after(vault.config.limits)) for change in plan.changes]


def test_a_plan_can_be_applied_later_to_what_is_there_then(
    root: Path, vault: Vault, planned: Verbs[EditPlan], verbs: Verbs[Applied]
) -> None:
    put(root, "n.md", NOTE)
    plan = planned.section("n.md", "Index", "- two", where="append")
    verbs.replace("n.md", "Text.", "Words.")
    applied = vault.apply(plan)
    assert applied.merged == ("n.md",)
    assert memories(root)["n.md"] == NOTE.replace("Text.", "Words.").replace("- one", "- one\n- two")


def test_a_plan_with_a_base_is_not_merged(
    root: Path, vault: Vault, planned: Verbs[EditPlan], verbs: Verbs[Applied]
) -> None:
    put(root, "n.md", NOTE)
    plan = planned.append("n.md", "end", base=vault.read("n.md").hash)
    verbs.replace("n.md", "Text.", "Words.")
    with pytest.raises(Conflict):
        vault.apply(plan)
    assert memories(root)["n.md"] == NOTE.replace("Text.", "Words.")


def write_log(root: Path, name: str) -> None:
    verbs = mdmem.open(root)
    for number in range(25):
        verbs.append("notes/log.md", f"{name}-{number}")
        verbs.replace("notes/log.md", f"<{name}:{number}>", f"<{name}:{number + 1}>")


def test_processes_that_write_one_memory_lose_nothing(root: Path) -> None:
    names = ["ann", "bob", "cy", "dee"] if speed.is_all else ["ann", "bob"]
    put(root, "notes/log.md", "".join(f"<{name}:0>\n" for name in names))
    assert set(run_at_once(*(partial(write_log, root, name) for name in names))) == {0}
    lines = (root / "notes/log.md").read_text().splitlines()
    assert lines[: len(names)] == [f"<{name}:25>" for name in names]
    assert sorted(lines[len(names) :]) == sorted(f"{name}-{number}" for name in names for number in range(25))
    for name in names:
        mine = [line for line in lines[len(names) :] if line.startswith(f"{name}-")]
        assert mine == [f"{name}-{number}" for number in range(25)]
    assert len(list(Vault(str(root)).history())) == 50 * len(names)


# ------------------------------------------------------------------------------- what cannot be read

UNREADABLE = {
    "nul": ("n.md", b"a\0b"),
    "latin-1": ("n.md", "caf\xe9".encode("latin-1")),
    "utf-16": ("n.md", "text".encode("utf-16")),
    "large": ("n.md", b"x\n" * 2_100_000),
    "json": ("n.json", b'{"a": "\xff"}'),
}


def files_of(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("n*.*") if ".mdmem" not in p.parts}


@pytest.mark.parametrize(("name", "data"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_moved_deleted_and_brought_back_as_it_is(
    root: Path, verbs: Verbs[Applied], name: str, data: bytes
) -> None:
    put(root, f"d/{name}", data)
    put(root, "d/a.md", f"[x]({name})\n")
    before = files_of(root)
    verbs.mv(f"d/{name}", f"e/new{name[1:]}")
    assert files_of(root) == {f"e/new{name[1:]}": data}
    assert (root / "d/a.md").read_text() == f"[x](../e/new{name[1:]})\n"
    verbs.undo()
    verbs.rm(f"d/{name}")
    assert files_of(root) == {}
    verbs.restore(f"d/{name}")
    assert files_of(root) == before
    verbs.mv("d", "f")
    verbs.rm("f", recursive=True)
    verbs.undo(count=2)
    assert files_of(root) == before


def test_what_cannot_be_read_is_never_written(root: Path, verbs: Verbs[Applied]) -> None:
    put(root, "a.md", b"a\0b")
    with pytest.raises(DocumentRefused):
        verbs.append("a.md", "x")
    with pytest.raises(DocumentRefused):
        verbs.set("a.md", {"x": 1})
    with pytest.raises(DocumentRefused):
        verbs.write("b.md", "a\0b")
    with pytest.raises(Conflict):
        verbs.rm("a.md", base="0" * 64)


def test_a_folder_that_moves_names_what_is_hidden_in_it_and_is_refused_as_that_of_a_tool(
    root: Path, verbs: Verbs[Applied]
) -> None:
    folder = root / "notes"
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "a.md").write_text("a\n")
    (folder / "deep/.keep").write_text("")
    (folder / ".vitepress").mkdir()
    with pytest.raises(EditRefused, match=r"notes/\.vitepress: it belongs to VitePress") as refused:
        verbs.mv("notes", "archive")
    assert "move notes with git or the file manager, then run `mdmem doctor --fix`" in refused.value.hint
    assert (folder / "a.md").exists()
    (folder / ".vitepress").rmdir()
    plan = verbs.mv("notes", "archive").plan
    assert plan.left_out == ("notes: hidden, and stays: notes/deep/.keep",)
