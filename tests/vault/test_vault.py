"""A vault: every change through one plan, all of it or nothing, and a namespace that nothing leaves."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.diagnostic import as_json
from mdmem.document.document import parse
from mdmem.document.edit import TextEdit, append, replace
from mdmem.errors import (
    AlreadyExists,
    BinaryContent,
    Conflict,
    EditRefused,
    Invalid,
    LockTimeout,
    MdmemError,
    MemoryNotFound,
    NotUtf8,
    PathRefused,
    StorageFailed,
    TooLarge,
    TooManyParts,
)
from mdmem.vault import local_store
from mdmem.vault.journal import STAGING
from mdmem.vault.plan import Change, EditPlan, edit, together
from mdmem.vault.vault import Vault, acting_for
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VALID = b"---\ntitle: A\n---\n\n# One\n\nfirst\n\n# Two\n\nsecond\n"
INVALID = b"---\nconfidence: 7\ntags: {a: 3}\n---\n\nbody\n"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def new(path: str, data: bytes = b"new\n") -> EditPlan:
    return EditPlan(changes=(Change(path=path, before=None, content=data),))


def removal(vault: Vault, path: str) -> EditPlan:
    return EditPlan(changes=(Change(path=path, before=vault.read(path), delete=True),))


def move(vault: Vault, path: str, target: str) -> EditPlan:
    return EditPlan(changes=(Change(path=path, before=vault.read(path), move_to=target),))


def grown(vault: Vault, path: str, text: str, *, merge: bool = True) -> EditPlan:
    document = vault.read(path)
    return edit(document, append(document, text), f"append to {path}", merge=merge)


def tree(root: str | Path) -> dict[str, bytes]:
    """Every file of a vault but its bookkeeping."""
    top = Path(root)
    found = (path for path in top.rglob("*") if path.is_file() and "local" not in path.parts)
    return {str(path.relative_to(top)): path.read_bytes() for path in found}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    root = tmp_path / "vault"
    (root / "notes").mkdir(parents=True)
    (root / "notes/a.md").write_bytes(VALID)
    return Vault(str(root), actor="ann")


# --------------------------------------------------------------------------------------- each kind of change


def test_a_memory_is_made_edited_moved_and_deleted(vault: Vault) -> None:
    made = vault.apply(new("n/b.md", b"one\n"))
    assert [(f.path, f.before, f.after) for f in made.files] == [("n/b.md", None, digest(b"one\n"))]
    changed = vault.apply(grown(vault, "n/b.md", "two"))
    assert [(f.path, f.before, f.after) for f in changed.files] == [
        ("n/b.md", digest(b"one\n"), digest(b"one\ntwo\n"))
    ]
    moved = vault.apply(move(vault, "n/b.md", "m/c.md"))
    assert [(f.path, f.before is None, f.after is None) for f in moved.files] == [
        ("m/c.md", True, False),
        ("n/b.md", False, True),
    ]
    assert not vault.exists("n/b.md")
    assert vault.read("m/c.md").data == b"one\ntwo\n"
    vault.apply(removal(vault, "m/c.md"))
    assert tree(vault.root) == {"notes/a.md": VALID}
    assert sorted(os.listdir(vault.root)) == [".mdmem", "notes"], "empty folders are left behind"
    history = list(vault.history())
    assert [entry.id for entry in history[1:]] == [moved.id, changed.id, made.id]
    assert {entry.actor for entry in history} == {"ann"}
    assert vault.content(digest(b"one\ntwo\n")) == b"one\ntwo\n"
    assert json.loads(json.dumps(as_json(moved)))["files"][0]["path"] == "m/c.md"


def test_a_memory_is_moved_and_edited_at_once(vault: Vault) -> None:
    document = vault.read("notes/a.md")
    edits = tuple(replace(document, "first", "FIRST"))
    vault.apply(EditPlan(changes=(Change(path="notes/a.md", before=document, edits=edits, move_to="b.md"),)))
    assert tree(vault.root) == {"b.md": VALID.replace(b"first", b"FIRST")}


def test_the_actor_of_a_plan_stands_over_that_of_the_vault(vault: Vault) -> None:
    vault.apply(EditPlan(changes=new("b.md").changes, actor="bot", message="why"))
    (entry,) = vault.history()
    assert (entry.actor, entry.message) == ("bot", "why")


def test_who_makes_a_change_is_one_line(tmp_path: Path) -> None:
    """The one that is given, that of the plan, and the one for whom it is made, where none is given."""
    vault = Vault(str(tmp_path), actor="ada\nMdmem-Agent: bob")
    with acting_for("somebody else"):
        vault.apply(new("a.md"))
    vault.apply(EditPlan(changes=new("b.md").changes, actor="bot\t\u202e" + "x" * 200))
    other = Vault(str(tmp_path))
    with acting_for("c\r\nd"):
        other.apply(new("c.md"))
    other.apply(new("d.md"))
    made = [entry.actor for entry in other.history()]
    assert made == ["", "c d", "bot <U+202E>" + "x" * 87 + "…", "ada Mdmem-Agent: bob"]


@pytest.mark.parametrize("changes", [(), "same content", "no edits"])
def test_a_plan_that_changes_nothing_writes_nothing(vault: Vault, changes: object) -> None:
    document = vault.read("notes/a.md")
    status = os.stat(f"{vault.root}/notes/a.md")
    plan = {
        "same content": EditPlan(changes=(Change(path="notes/a.md", before=document, content=VALID),)),
        "no edits": EditPlan(changes=(Change(path="notes/a.md", before=document),)),
    }.get(str(changes), EditPlan(changes=()))
    applied = vault.apply(plan)
    assert (applied.id, applied.files) == ("", ())
    assert os.stat(f"{vault.root}/notes/a.md").st_ino == status.st_ino
    assert list(vault.history()) == []


def test_an_empty_memory_can_be_made(vault: Vault) -> None:
    applied = vault.apply(new("empty.md", b""))
    assert applied.files[0].after == digest(b"")
    assert vault.read("empty.md").data == b""


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfa\r\nb\r\n", b"a\rb\rc", b"a\r\nb\nc\r", b"no newline"])
def test_every_byte_that_is_not_edited_is_kept(vault: Vault, data: bytes) -> None:
    (Path(vault.root) / "b.md").write_bytes(data)
    document = vault.read("b.md")
    assert document.data == data
    at = document.text.index("b") if "b" in document.text else 0
    vault.apply(edit(document, [TextEdit(at, at + 1, "XX")], "edit"))
    text = document.text
    assert vault.read("b.md").data == (text[:at] + "XX" + text[at + 1 :]).encode()
    for path, target in (("b.md", "c.md"), ("c.md", "d.md")):
        vault.apply(move(vault, path, target))
    assert vault.read("d.md").data == (text[:at] + "XX" + text[at + 1 :]).encode()


# -------------------------------------------------------------------------------------- conflicts and merges


def test_a_memory_that_changed_in_the_same_place_is_a_conflict_with_the_difference(vault: Vault) -> None:
    document = vault.read("notes/a.md")
    theirs = VALID.replace(b"first", b"theirs")
    (Path(vault.root) / "notes/a.md").write_bytes(theirs)
    with pytest.raises(Conflict) as refused:
        vault.apply(edit(document, replace(document, "first", "ours"), "edit"))
    conflict = refused.value
    assert (conflict.path, conflict.base, conflict.actual) == ("notes/a.md", digest(VALID), digest(theirs))
    assert "-first" in conflict.diff
    assert "+theirs" in conflict.diff
    assert "notes/a.md" in str(conflict)
    assert tree(vault.root) == {"notes/a.md": theirs}
    assert list(vault.history()) == []


def test_appends_of_two_are_merged(vault: Vault) -> None:
    ours, theirs = grown(vault, "notes/a.md", "ours"), grown(vault, "notes/a.md", "theirs")
    assert vault.apply(theirs).merged == ()
    assert vault.apply(ours).merged == ("notes/a.md",)
    assert vault.read("notes/a.md").data == VALID + b"theirs\nours\n"


def test_edits_of_different_sections_are_merged(vault: Vault) -> None:
    document = vault.read("notes/a.md")
    plans = [
        edit(document, replace(document, old, new), "edit")
        for old, new in (("first", "1st"), ("second", "2nd"), ("title: A", "title: B"))
    ]
    merged = [vault.apply(plan).merged for plan in plans]
    assert merged == [(), ("notes/a.md",), ("notes/a.md",)]
    expected = VALID.replace(b"first", b"1st").replace(b"second", b"2nd").replace(b"title: A", b"title: B")
    assert vault.read("notes/a.md").data == expected


@pytest.mark.parametrize("refuses", ["the change", "the caller"])
def test_what_may_not_be_merged_is_a_conflict(vault: Vault, refuses: str) -> None:
    ours = grown(vault, "notes/a.md", "ours", merge=refuses != "the change")
    vault.apply(grown(vault, "notes/a.md", "theirs"))
    with pytest.raises(Conflict):
        vault.apply(ours, may_merge=refuses != "the caller")
    assert vault.read("notes/a.md").data == VALID + b"theirs\n"


def test_a_line_that_both_moved_is_a_conflict(vault: Vault) -> None:
    """Line by line nothing touches, and the line would stand twice."""
    file = Path(vault.root) / "notes/w.md"
    file.write_bytes(b"w0\nw1\nw2\n")
    document = vault.read("notes/w.md")
    ours = edit(document, replace(document, "w1\nw2\n", "w2\nw1\n"), "move")
    theirs = b"w0\nw2\nw1\nn0 n1\n"
    file.write_bytes(theirs)
    with pytest.raises(Conflict):
        vault.apply(ours)
    assert file.read_bytes() == theirs


def test_a_memory_that_is_gone_is_a_conflict(vault: Vault) -> None:
    plan, gone = grown(vault, "notes/a.md", "more"), removal(vault, "notes/a.md")
    vault.apply(gone)
    for late in (plan, gone):
        with pytest.raises(Conflict) as refused:
            vault.apply(late)
        assert refused.value.actual is None
        assert "absent" in str(refused.value)
    assert not vault.exists("notes/a.md")


def test_what_changed_is_not_deleted(vault: Vault) -> None:
    gone = removal(vault, "notes/a.md")
    vault.apply(grown(vault, "notes/a.md", "more"))
    with pytest.raises(Conflict):
        vault.apply(gone)
    assert vault.exists("notes/a.md")


def test_what_changed_is_merged_while_it_moves(vault: Vault) -> None:
    document = vault.read("notes/a.md")
    change = Change(
        path="notes/a.md", before=document, edits=tuple(replace(document, "first", "1st")), move_to="b.md"
    )
    vault.apply(grown(vault, "notes/a.md", "theirs"))
    assert vault.apply(EditPlan(changes=(change,))).merged == ("notes/a.md",)
    assert tree(vault.root) == {"b.md": VALID.replace(b"first", b"1st") + b"theirs\n"}


def test_a_merge_that_would_break_the_schema_is_refused(vault: Vault) -> None:
    """Each side is sound by itself: together they are not."""
    own = Path(vault.root) / ".mdmem/schemas"
    own.mkdir(parents=True)
    rule = {"properties": {"tags": {"maxItems": 2}}}
    (own / "note.json").write_text(json.dumps(rule))
    data = b"---\ntags:\n  - a\n---\n"
    (Path(vault.root) / "notes/t.md").write_bytes(data)
    document = vault.read("notes/t.md")
    ours, theirs = (
        edit(document, replace(document, "  - a\n", f"  - a\n  - {tag}\n"), "tag") for tag in ("b", "c")
    )
    vault.apply(theirs)
    with pytest.raises((Invalid, Conflict)):
        vault.apply(ours)
    assert vault.read("notes/t.md").data == data.replace(b"- a\n", b"- a\n  - c\n")


@pytest.mark.parametrize("how", ["make", "move"])
def test_what_exists_is_not_overwritten(vault: Vault, how: str) -> None:
    vault.apply(new("b.md", b"mine\n"))
    plan = new("b.md", b"other\n") if how == "make" else move(vault, "notes/a.md", "b.md")
    with pytest.raises(AlreadyExists) as refused:
        vault.apply(plan, may_merge=False)
    assert refused.value.path == "b.md"
    assert refused.value.hint
    assert tree(vault.root) == {"notes/a.md": VALID, "b.md": b"mine\n"}


def test_two_who_make_the_same_memory_by_appending_both_stay(vault: Vault) -> None:
    vault.apply(new("log.md", b"one\n"))
    assert vault.apply(new("log.md", b"two\n")).merged == ("log.md",)
    assert vault.read("log.md").data == b"one\n\ntwo\n"


def test_transact_makes_its_plan_again_when_somebody_was_faster(vault: Vault) -> None:
    calls = 0

    def build() -> EditPlan:
        nonlocal calls
        calls += 1
        plan = grown(vault, "notes/a.md", f"ours {calls}")
        if calls == 1:
            Vault(vault.root).apply(grown(vault, "notes/a.md", "theirs"))
        return plan

    assert vault.transact(build).merged == ()
    assert vault.read("notes/a.md").data == VALID + b"theirs\nours 2\n"


def test_transact_builds_under_the_lock_even_after_another_process_died(vault: Vault) -> None:
    """What it left behind is put right before the plan is made again, not waited for."""
    calls = 0

    def build() -> EditPlan:
        nonlocal calls
        calls += 1
        plan = grown(vault, "notes/a.md", "ours")
        if calls == 1:
            (Path(vault.root) / "notes/a.md").write_bytes(VALID + b"theirs\n")
            os.makedirs(f"{vault.root}/{STAGING}", exist_ok=True)
            (Path(vault.root) / STAGING / "x.many").write_bytes(b"torn")
        return plan

    vault.transact(build)
    assert vault.read("notes/a.md").data == VALID + b"theirs\nours\n"


def test_threads_lose_no_append(vault: Vault) -> None:
    def work(name: str) -> None:
        mine = Vault(vault.root)
        for number in range(10):
            mine.transact(partial(grown, mine, "notes/a.md", f"{name}{number}"))

    threads = [threading.Thread(target=work, args=[name]) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = vault.read("notes/a.md").text.removeprefix(VALID.decode()).splitlines()
    assert sorted(lines) == sorted(f"{name}{number}" for name in "abcd" for number in range(10))
    assert len(list(vault.history())) == 40


# -------------------------------------------------------------------------------------------------- validity


def test_a_change_that_breaks_the_schema_is_refused_with_every_violation(vault: Vault) -> None:
    document = vault.read("notes/a.md")
    with pytest.raises(Invalid) as refused:
        vault.apply(EditPlan(changes=(Change(path="notes/a.md", before=document, content=INVALID),)))
    findings = refused.value.findings
    assert {(f.path, f.position.line) for f in findings} == {("notes/a.md", 2), ("notes/a.md", 3)}
    assert "confidence" in str(refused.value)
    assert "tags" in str(refused.value)
    assert tree(vault.root) == {"notes/a.md": VALID}
    assert list(vault.history()) == []


def test_the_violations_of_all_memories_of_a_plan_are_reported_together(vault: Vault) -> None:
    plan = together([new("b.md", INVALID), new("c.md"), new("d.md", INVALID)], "three")
    with pytest.raises(Invalid) as refused:
        vault.apply(plan)
    assert {f.path for f in refused.value.findings} == {"b.md", "d.md"}
    assert len(refused.value.findings) == 4
    assert tree(vault.root) == {"notes/a.md": VALID}


def test_what_is_broken_already_can_be_changed_but_not_broken_further(vault: Vault) -> None:
    (Path(vault.root) / "b.md").write_bytes(b"---\nconfidence: 7\n---\n\nbody\n")
    vault.apply(grown(vault, "b.md", "more"))
    document = vault.read("b.md")
    for worse in ("confidence: 7\ntags: [[3]]", "confidence: 7\nexpires: never"):
        with pytest.raises(Invalid) as refused:
            vault.apply(edit(document, replace(document, "confidence: 7", worse), "worse"))
        assert len(refused.value.findings) == 1
    vault.apply(edit(document, replace(document, "confidence: 7", "confidence: 0.7"), "fixed"))
    assert vault.read("b.md").data == b"---\nconfidence: 0.7\n---\n\nbody\nmore\n"
    document = vault.read("b.md")
    with pytest.raises(Invalid):
        vault.apply(edit(document, replace(document, "0.7", "8"), "broken again"))


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"a\0b", BinaryContent), (b"\xff", NotUtf8), (b"x" * (4 * 1024 * 1024 + 1), TooLarge)],
)
def test_what_cannot_be_a_memory_is_neither_written_nor_read(
    vault: Vault, data: bytes, error: type[MdmemError]
) -> None:
    with pytest.raises(error, match=r"^b\.md"):
        vault.apply(new("b.md", data))
    (Path(vault.root) / "b.md").write_bytes(data)
    with pytest.raises(error, match=r"^b\.md"):
        vault.read("b.md")


def test_a_file_of_any_size_is_refused_before_it_is_read(vault: Vault) -> None:
    """A sparse file takes no room on the disk, and more memory than there is."""
    with open(f"{vault.root}/big.md", "wb") as file:
        try:
            file.truncate(1 << 42)
        except OSError:
            pytest.skip("this file system has no files of this size")
    for action in (lambda: vault.read("big.md"), lambda: vault.apply(new("big.md"))):
        with pytest.raises(TooLarge) as refused:
            action()
        assert (refused.value.path, refused.value.size) == ("big.md", 1 << 42)
    assert vault.exists("big.md")


def test_json_must_be_json(vault: Vault) -> None:
    with pytest.raises(Invalid):
        vault.apply(new("a.json", b"{"))
    vault.apply(new("a.json", b'{"a": 1}'))
    assert vault.read("a.json").fields == {"a": 1}


# -------------------------------------------------------------------------------------- all of it or nothing


@pytest.mark.parametrize("last", ["invalid", "conflict", "exists", "hidden", "twin", "gone", "link", "same"])
def test_when_the_last_change_is_refused_none_is_made(vault: Vault, tmp_path: Path, last: str) -> None:
    (Path(vault.root) / "link").symlink_to(tmp_path)
    document = vault.read("notes/a.md")
    stale = parse("notes/a.md", b"what it was\n")
    bad = {
        "invalid": Change(path="z.md", before=None, content=INVALID),
        "conflict": Change(path="notes/a.md", before=stale, content=b"x\n", merge=False),
        "exists": Change(path="notes/a.md", before=None, content=b"x\n", merge=False),
        "hidden": Change(path=".mdmem/config.toml", before=None, content=b""),
        "twin": Change(path="notes/A.md", before=None, content=b"x\n"),
        "gone": Change(path="z.md", before=stale, delete=True),
        "link": Change(path="link/z.md", before=None, content=b"x\n"),
        "same": Change(path="b.md", before=None, content=b"x\n"),
    }[last]
    changes = [
        Change(path="b.md", before=None, content=b"b\n"),
        Change(path="c/c.md", before=None, content=b"c"),
    ]
    if bad.path != "notes/a.md":
        changes.append(Change(path="notes/a.md", before=document, delete=True))
    with pytest.raises(MdmemError) as refused:
        vault.apply(EditPlan(changes=(*changes, bad)))
    assert bad.path in str(refused.value)
    assert getattr(refused.value, "path", bad.path) == bad.path
    assert tree(vault.root) == {"notes/a.md": VALID}
    assert not (Path(vault.root) / "c").exists()
    assert list(vault.history()) == []


@pytest.mark.parametrize(
    "paths",
    [
        [("a.md", None), ("a.md", None)],
        [("x.md", "a.md"), ("a.md", None)],
        [("x.md", "a.md"), ("y.md", "a.md")],
        [("a.md", "a.md")],
        [("\xe9.md", None), ("e\u0301.md", None)],
    ],
)
def test_a_plan_changes_every_memory_at_most_once(vault: Vault, paths: list[tuple[str, str | None]]) -> None:
    changes = (Change(path=path, before=None, content=b"x", move_to=target) for path, target in paths)
    with pytest.raises(EditRefused, match="at most once") as refused:
        vault.apply(EditPlan(changes=tuple(changes)))
    assert refused.value.path in {"a.md", "\xe9.md"}
    assert tree(vault.root) == {"notes/a.md": VALID}


@cases("path", ["../x.md", "/x.md", "con.md", "a?.md", "x.txt", "notes", "", "a\u200b.md"])
def test_a_name_that_no_memory_can_have_is_not_made(vault: Vault, path: str) -> None:
    for plan in (new(path), move(vault, "notes/a.md", path)):
        if path or plan.changes[0].before is None:
            with pytest.raises(PathRefused) as refused:
                vault.apply(plan)
            assert refused.value.path == path
    assert tree(vault.root) == {"notes/a.md": VALID}


def test_a_name_that_is_there_is_edited_whatever_windows_says(vault: Vault) -> None:
    (Path(vault.root) / "con.md").write_bytes(b"one\n")
    vault.apply(grown(vault, "con.md", "two"))
    assert vault.read("con.md").data == b"one\ntwo\n"


# --------------------------------------------------------------------------------------------- the namespace

SECRET = b"bob's secret\n"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A vault with what belongs to alice, to bob, to alicebob, and to everybody."""
    root = tmp_path / "shared"
    for path in ("users/bob/notes/secret.md", "users/alicebob/secret.md", "secret.md", "users/bob.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        Vault(str(root)).apply(new(path, SECRET + path.encode()))
    bob = Vault(str(root), "users/bob")
    bob.apply(grown(bob, "notes/secret.md", "more"))
    Vault(str(root), "users/alice").apply(new("notes/mine.md", b"mine\n"))
    (root / "users/alice/link.md").symlink_to("../bob/notes/secret.md")
    (root / "users/alice/folder").symlink_to("../bob")
    return root


TOKENS = st.sampled_from(
    [
        *(
            *("..", "../", "/", "users/", "bob", "alice", "notes/", "secret.md", "../bob/notes/secret.md"),
            "%2e%2e",
        ),
        *(
            *("%2E%2E%2F", "\\", "..\\", "link.md", "folder/", ".", "./", "\0", "secret", ".md", "~", "//"),
            ".mdmem/",
        ),
    ]
)


@given(st.lists(TOKENS, max_size=7).map("".join))
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
# README: **Nothing is stale, cut or guessed in silence**, and an agent that is bound to one user …
def test_no_path_reads_lists_or_changes_what_is_outside_the_namespace(shared: Path, path: str) -> None:
    alice = Vault(str(shared), "users/alice")
    before = tree(shared)
    for action in (
        lambda: alice.read(path).text,
        lambda: alice.exists(path),
        lambda: [found.path for found in alice.walk(path)],
        lambda: alice.apply(new(path, b"hers\n")),
        lambda: alice.apply(
            EditPlan(changes=(Change(path=path, before=parse("a.md", b"x\n"), delete=True),))
        ),
        lambda: alice.apply(move(alice, "notes/mine.md", path)),
    ):
        try:
            result = action()
        except MdmemError as error:
            result = [str(error), *getattr(error, "near", ())]
            named = result[1:]
        else:
            named = result if isinstance(result, list) else []
        assert "bob's" not in str(result)
        assert all(os.path.lexists(shared / "users/alice" / name) for name in named)
    after = tree(shared)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert all(name.startswith("users/alice/") for name in changed)
    for name in changed:
        if name != "users/alice/notes/mine.md":
            (shared / name).unlink()
    (shared / "users/alice/notes").mkdir(exist_ok=True)
    (shared / "users/alice/notes/mine.md").write_bytes(b"mine\n")


def test_a_namespace_sees_its_own_and_nothing_else(shared: Path) -> None:
    alice = Vault(str(shared), "users/alice")
    assert [(found.path, bool(found.problem)) for found in alice.walk()] == [
        ("link.md", True),
        ("notes/mine.md", False),
    ]
    assert [f.path for entry in alice.history() for f in entry.files][-1] == "notes/mine.md"
    everything = {found.path for found in Vault(str(shared)).walk()}
    assert {"secret.md", "users/bob/notes/secret.md", "users/alice/notes/mine.md"} <= everything


def test_a_name_in_other_case_is_the_nearest(vault: Vault) -> None:
    for path in ("notes/n1.md", "notes/n2.md", "notes/n3.md", "notes/db.md"):
        vault.apply(new(path))
    with pytest.raises(MemoryNotFound) as missing:
        vault.read("notes/DB.md")
    assert missing.value.near[0] == "notes/db.md"


def test_nearest_names_come_from_the_namespace_only(shared: Path) -> None:
    with pytest.raises(MemoryNotFound) as missing:
        Vault(str(shared), "users/alice").read("notes/secret.md")
    assert missing.value.path == "notes/secret.md"
    assert all("secret" not in name for name in missing.value.near)
    with pytest.raises(MemoryNotFound) as missing:
        Vault(str(shared), "users/bob").read("secret.md")
    assert missing.value.near == ("notes/secret.md",)


def test_the_past_of_another_namespace_stays_there(shared: Path) -> None:
    alice, bob = (Vault(str(shared), f"users/{name}") for name in ("alice", "bob"))
    old = digest(SECRET + b"users/bob/notes/secret.md")
    assert bob.content(old) == SECRET + b"users/bob/notes/secret.md"
    assert alice.content(old) is None
    assert all("secret" not in f.path and "bob" not in f.path for e in alice.history() for f in e.files)


def test_a_change_that_touched_two_namespaces_shows_each_its_part(tmp_path: Path) -> None:
    Vault(str(tmp_path)).apply(together([new("users/alice/a.md"), new("users/bob/b.md")], "both"))
    for name, path in (("alice", "a.md"), ("bob", "b.md")):
        (entry,) = Vault(str(tmp_path), f"users/{name}").history()
        assert [f.path for f in entry.files] == [path]


@cases("namespace", ["..", "users/..", "/etc", "users/%2e%2e", ".mdmem", "a\\b", "users//x"])
def test_a_namespace_that_leaves_the_vault_is_refused(tmp_path: Path, namespace: str) -> None:
    with pytest.raises(PathRefused):
        Vault(str(tmp_path), namespace)


def test_a_namespace_that_is_a_link_shows_nothing(shared: Path) -> None:
    linked = Vault(str(shared), "users/alice/folder")
    assert list(linked.walk()) == []
    with pytest.raises(PathRefused):
        linked.read("notes/secret.md")


@pytest.mark.parametrize("error", ["conflict", "exists", "twin", "invalid"])
def test_errors_name_the_path_as_the_namespace_sees_it(tmp_path: Path, error: str) -> None:
    (tmp_path / "users/alice/notes").mkdir(parents=True)
    (tmp_path / "users/alice/notes/a.md").write_bytes(VALID)
    alice = Vault(str(tmp_path), "users/alice")
    change = {
        "conflict": Change(path="notes/a.md", before=parse("a.md", b"x"), content=b"y", merge=False),
        "exists": Change(path="notes/a.md", before=None, content=b"y", merge=False),
        "twin": Change(path="notes/A.md", before=None, content=b"y"),
        "invalid": Change(path="notes/b.md", before=None, content=INVALID),
    }[error]
    with pytest.raises(MdmemError) as refused:
        alice.apply(EditPlan(changes=(change,)))
    assert change.path in str(refused.value)
    assert "users/" not in str(refused.value)


# ---------------------------------------------------------------------------------------- what it is made of


def test_the_walk_of_a_vault_is_in_order_and_leaves_its_own_folder_out(vault: Vault) -> None:
    for path in ("z.md", "b/c.json", "b.md"):
        vault.apply(new(path, b"{}" if path.endswith("json") else b"x"))
    assert [found.path for found in vault.walk()] == ["b/c.json", "b.md", "notes/a.md", "z.md"]
    assert [found.path for found in vault.walk("notes")] == ["notes/a.md"]
    assert list(vault.walk("nothing")) == []


def test_own_schemas_are_read_again_when_they_change(vault: Vault) -> None:
    own = Path(vault.root) / ".mdmem/schemas"
    own.mkdir(parents=True)
    known = vault.schemas
    assert vault.schemas is known
    vault.apply(new("notes/one.md"))
    (own / "note.json").write_text(json.dumps({"required": ["title"]}))
    with pytest.raises(Invalid, match="title"):
        vault.apply(new("notes/two.md"))
    (own / "note.json").write_text(json.dumps({"required": ["description"]}))
    with pytest.raises(Invalid, match="description"):
        vault.apply(new("notes/two.md"))
    (own / "note.json").unlink()
    vault.apply(new("notes/two.md"))


def test_own_templates_are_read_again_when_they_change(vault: Vault) -> None:
    own = Path(vault.root) / ".mdmem/templates"
    own.mkdir(parents=True)
    (own / "mine.md").write_text("one")
    templates = vault.templates
    assert vault.templates is templates
    names = {info.name for info in vault.templates.names()}
    (own / "other.md").write_text("two")
    assert {info.name for info in vault.templates.names()} - names == {"other"}


def test_a_link_among_the_own_schemas_is_not_followed(vault: Vault, tmp_path: Path) -> None:
    own = Path(vault.root) / ".mdmem/schemas"
    own.mkdir(parents=True)
    (tmp_path / "outside.json").write_text(json.dumps({"required": ["title"]}))
    (own / "note.json").symlink_to(tmp_path / "outside.json")
    vault.apply(new("notes/two.md"))
    assert vault.exists("notes/two.md")


@pytest.mark.parametrize("place", [".mdmem", ".mdmem/local", ".mdmem/local/staging"])
def test_a_file_where_the_vaults_own_folder_should_be_is_said(vault: Vault, place: str) -> None:
    (Path(vault.root) / place).parent.mkdir(parents=True, exist_ok=True)
    (Path(vault.root) / place).write_bytes(b"")
    assert [found.path for found in vault.walk()] == ["notes/a.md"] if place != ".mdmem" else True
    with pytest.raises(PathRefused) as refused:
        vault.apply(new("b.md"))
    assert refused.value.path.startswith(".mdmem")
    assert not vault.exists("b.md") if place != ".mdmem" else True


def test_a_constructor_opens_nothing(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path / "missing"))
    assert not (tmp_path / "missing").exists()
    assert list(vault.walk()) == []
    with pytest.raises(MemoryNotFound):
        vault.read("a.md")


def test_reading_writes_nothing(vault: Vault) -> None:
    vault.read("notes/a.md")
    assert list(vault.walk())
    assert list(vault.history()) == []
    assert vault.recover() == 0
    assert os.listdir(vault.root) == ["notes"]


def test_the_local_folder_keeps_itself_out_of_git(vault: Vault) -> None:
    vault.apply(new("b.md"))
    assert (Path(vault.root) / ".mdmem/local/.gitignore").read_text() == "*\n"


def test_the_limits_of_the_config_apply(vault: Vault) -> None:
    (Path(vault.root) / ".mdmem").mkdir()
    (Path(vault.root) / ".mdmem/config.toml").write_text("[limits]\nmax_bytes = 60\n")
    with pytest.raises(TooLarge) as refused:
        vault.apply(new("b.md", b"x" * 61))
    assert (refused.value.path, refused.value.limit) == ("b.md", 60)
    vault.apply(new("b.md", b"x" * 60))


@pytest.mark.parametrize("part", [b"# a\n", b"[[a]] ", b"x\n" * 9])
def test_a_change_after_which_a_memory_cannot_be_read_is_refused(vault: Vault, part: bytes) -> None:
    (Path(vault.root) / ".mdmem").mkdir()
    (Path(vault.root) / ".mdmem/config.toml").write_text("[limits]\nmax_parts = 5\n")
    vault.apply(new("b.md", b"fact\n"))
    before = vault.read("b.md")
    more = (part * 6).decode()
    with pytest.raises(TooManyParts, match=r"b\.md: there are more than"):
        vault.apply(edit(before, append(before, more), "more"))
    with pytest.raises(TooManyParts):
        vault.apply(new("c.md", part * 6))
    assert vault.read("b.md").data == before.data
    assert not vault.exists("c.md")


def test_a_memory_that_could_not_be_read_before_may_change(vault: Vault) -> None:
    (Path(vault.root) / ".mdmem").mkdir()
    (Path(vault.root) / ".mdmem/config.toml").write_text("[limits]\nmax_parts = 5\n")
    (Path(vault.root) / "b.md").write_text("# a\n" * 9)
    before = vault.read("b.md")
    vault.apply(edit(before, [TextEdit(0, 4, "")], "less"))
    assert vault.read("b.md").data == b"# a\n" * 8


# -------------------------------------------------------------------------- others in the middle of a change

HALFWAY = """
import hashlib, json, os, sys
from mdmem.diagnostic import as_json
from mdmem.vault.mark import signed
from mdmem.vault.store import Entry, FileChange
from mdmem.vault.vault import Vault

vault = Vault(sys.argv[1])
digest = lambda data: hashlib.sha256(data).hexdigest()
staging = os.path.join(vault.root, ".mdmem/local/staging")
files = tuple(FileChange(path=p, before=digest(b"old\\n"), after=digest(b"new\\n")) for p in ("1.md", "2.md"))
entry = Entry(id="x", time="2024-01-01T00:00:00.000Z", actor="", message="", files=files)

def write(path, data):
    with open(path, "wb") as file:
        file.write(data)

with vault.disk.locked(10):
    write(f"{staging}/x.many", signed(as_json(entry)))
    write(f"{staging}/x.0", b"old\\n")
    write(f"{staging}/x.1", b"new\\n")
    write(f"{vault.root}/1.md", b"new\\n")
    print("halfway", flush=True)
    if sys.stdin.readline() != "on\\n":
        os._exit(1)
    os.rename(f"{staging}/x.1", f"{vault.root}/2.md")
    for name in ("x.many", "x.0"):
        os.unlink(f"{staging}/{name}")
"""


@pytest.fixture
def halfway(tmp_path: Path) -> Iterator[tuple[Vault, subprocess.Popen[bytes]]]:
    """Another process that has changed the first of two files, and holds the lock until it may go on."""
    for name in ("1.md", "2.md"):
        (tmp_path / name).write_bytes(b"old\n")
    with subprocess.Popen(
        [sys.executable, "-c", HALFWAY, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"halfway\n"
        yield Vault(str(tmp_path)), process
        process.kill()


Halfway = tuple[Vault, "subprocess.Popen[bytes]"]


def test_nobody_reads_half_of_a_change(halfway: Halfway, monkeypatch: pytest.MonkeyPatch) -> None:
    vault, process = halfway
    with monkeypatch.context() as patch:
        patch.setattr(local_store, "LOCK_SECONDS", 0.05)
        with pytest.raises(LockTimeout):
            vault.apply(new("3.md"))
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(vault.read(name).data for name in ("1.md", "2.md")))
    reader.start()
    process.communicate(b"on\n")
    reader.join()
    assert read == [b"new\n", b"new\n"]


def test_who_is_stopped_halfway_stops_no_reader(halfway: Halfway) -> None:
    """What is read may be half of its change, which a note says; it is waited for only once."""
    vault, process = halfway
    os.kill(process.pid, signal.SIGSTOP)
    assert [vault.read(name).data for name in ("1.md", "2.md")] == [b"new\n", b"old\n"]
    assert len(list(vault.walk())) == 2
    (note,) = vault.notes
    assert note.startswith("an unfinished change may be read in part: ")
    assert note.endswith("/.mdmem/local/lock: another process has been writing for 3 s")


def test_who_died_halfway_is_not_waited_for(halfway: Halfway) -> None:
    vault, process = halfway
    process.kill()
    process.wait()
    assert [vault.read(name).data for name in ("1.md", "2.md")] == [b"old\n", b"old\n"]
    assert os.listdir(Path(vault.root) / STAGING) == []


def test_a_change_of_one_file_is_not_waited_for_by_readers(tmp_path: Path) -> None:
    """It is one exchange: what a reader sees is the old file, or the new one."""
    vault, other = Vault(str(tmp_path)), Vault(str(tmp_path))
    vault.apply(new("a.md"))
    with other.disk.locked(10):
        (tmp_path / STAGING / "x.one").write_text("{")
        assert vault.read("a.md").data == b"new\n"
        assert (tmp_path / STAGING / "x.one").exists()


# ------------------------------------------------------------------------------------------ read-only vaults


def as_nobody(root: Path, check: Callable[[Vault], bool], unreadable: str = "") -> bool:
    """`check` as a user who may write nothing, and read all but `unreadable`."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    for folder, _, names in os.walk(root):
        os.chmod(folder, 0o555)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444 if name != unreadable else 0o400)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(root)
            os.setgid(65534)
            os.setuid(65534)
            vault = Vault("/")
            vault.disk.root = "."  # the folders above belong to the test, and nobody may enter them
            status = 0 if check(vault) else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def denied(path: str, action: Callable[[], object]) -> bool:
    with pytest.raises(StorageFailed, match="Permission denied") as refused:
        action()
    return path in refused.value.path


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize(
    "check",
    [
        lambda vault: vault.read("notes/a.md").data == VALID,
        lambda vault: [found.path for found in vault.walk()][-1] == "notes/a.md",
        lambda vault: vault.exists("notes/a.md") and not vault.exists("notes/none.md"),
        lambda vault: len(list(vault.history())) <= 1 and vault.recover() == 0,
        lambda vault: len(vault.prepare(grown(vault, "notes/a.md", "more")).afters) == 1,
        lambda vault: denied(".mdmem", lambda: vault.apply(grown(vault, "notes/a.md", "more"))),
    ],
    ids=["read", "walk", "exists", "history", "prepare", "apply"],
)
def test_a_vault_that_may_not_be_written_can_be_read(
    vault: Vault, check: Callable[[Vault], bool], *, used: bool
) -> None:
    if used:
        vault.apply(new("b.md"))
    assert as_nobody(Path(vault.root), check)


def test_a_memory_that_may_not_be_read_is_named(vault: Vault) -> None:
    (Path(vault.root) / "notes/b.md").write_bytes(b"x")
    assert as_nobody(
        Path(vault.root), lambda vault: denied("notes/b.md", lambda: vault.read("notes/b.md")), "b.md"
    )


# ------------------------------------------------------------------------------------------- any plan at all

TEXTS = st.text(alphabet="ab\n# -\r\ufeff", max_size=8).map(str.encode)
NAMES = st.sampled_from(["a.md", "b.md", "n/a.md", "n/b.md", "n/m/c.md", "A.md"])
CHANGES = st.lists(st.tuples(NAMES, st.sampled_from(["write", "delete", "move"]), TEXTS, NAMES), max_size=4)


@given(st.lists(CHANGES, min_size=1, max_size=4))
@settings(max_examples=examples(60))
def test_any_plan_is_made_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, plans: list[list[tuple[str, str, bytes, str]]]
) -> None:
    root = tmp_path_factory.mktemp("vault")
    vault = Vault(str(root))
    for plan in plans:
        before = tree(root)
        expected, changes = dict(before), []
        for path, kind, data, target in plan:
            document = vault.read(path) if path in before else None
            if kind == "write":
                changes.append(Change(path=path, before=document, content=data, merge=False))
                expected[path] = data
            elif document and kind == "delete":
                changes.append(Change(path=path, before=document, delete=True))
                expected.pop(path, None)
            elif document:
                changes.append(Change(path=path, before=document, move_to=target))
                expected[target] = expected.pop(path, b"")
        try:
            applied = vault.apply(EditPlan(changes=tuple(changes)))
        except MdmemError:
            assert tree(root) == before
        else:
            assert tree(root) == expected
            touched = {
                name for name in before.keys() | expected.keys() if before.get(name) != expected.get(name)
            }
            assert {f.path for f in applied.files} >= touched
            for file in applied.files:
                assert file.before is None or vault.content(file.before) is not None
        assert not any(os.listdir(root / STAGING)) if (root / STAGING).exists() else True
