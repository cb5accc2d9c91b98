"""Whatever a crash leaves in the staging folder, the vault is as before the change or as after it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.diagnostic import as_json
from mdmem.errors import MdmemError, PathRefused
from mdmem.facade.memory import Memory
from mdmem.vault import config, files
from mdmem.vault.files import Raced
from mdmem.vault.journal import ASIDE, STAGING
from mdmem.vault.mark import signed
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.store import Entry, FileChange, Step
from mdmem.vault.trash import TrashFolder
from mdmem.vault.vault import Vault
from tests import speed
from tests.killing import killed
from tests.programs import needs_readers
from tests.speed import examples, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

ID = "20240101T000000000000-abcd"
OLD, NEW = b"old\n", b"new\n"


def digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def made(tmp_path: Path) -> Vault:
    """An empty vault that has been written to before."""
    root = tmp_path / "vault"
    root.mkdir()
    vault = Vault(str(root))
    with vault.disk.locked(10):
        pass
    return vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return made(tmp_path)


def staging(vault: Vault) -> Path:
    return Path(vault.root) / STAGING


def put(vault: Vault, path: str, data: bytes | None) -> None:
    if data is not None:
        file = Path(vault.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def memories(vault: Vault) -> dict[str, bytes]:
    root = Path(vault.root)
    found = (path for path in root.rglob("*") if path.is_file() and ".mdmem" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def entry(*changes: tuple[str, bytes | None, bytes | None], id: str = ID) -> Entry:  # noqa: A002 - its name
    changed = tuple(FileChange(path=path, before=digest(b), after=digest(a)) for path, b, a in changes)
    return Entry(id=id, time="2024-01-01T00:00:00.000Z", actor="ann", message="crashed", files=changed)


def leave(vault: Vault, kind: str, made: Entry, staged: dict[int, bytes | None]) -> None:
    """What a crash leaves: the record, and the staged files."""
    (staging(vault) / f"{made.id}.{kind}").write_bytes(signed(as_json(made)))
    for number, data in staged.items():
        if data is not None:
            (staging(vault) / f"{made.id}.{number}").write_bytes(data)


def recovered(vault: Vault) -> list[str]:
    """Recover by reading, as the next command does; the ids that are in the log then."""
    assert vault.recover() == 1
    assert os.listdir(staging(vault)) == []
    assert vault.recover() == 0
    return [each.id for each in vault.history()]


# ------------------------------------------------------------------------------- one file: `.one` and `.done`

# What the step is; what target and staged file hold when the crash comes; what must stand there afterwards.
REPLACE, CREATE, DELETE = (OLD, NEW), (None, NEW), (OLD, None)


@cases(
    "step, target, staged, kind, expected, logged",
    [
        (REPLACE, OLD, None, "one", OLD, False),
        (REPLACE, OLD, b"ne", "one", OLD, False),  # torn while it was staged
        (REPLACE, OLD, NEW, "one", OLD, False),
        (REPLACE, NEW, OLD, "one", NEW, True),
        (REPLACE, NEW, None, "one", NEW, True),  # what was taken out is in the trash already
        (REPLACE, NEW, OLD, "done", NEW, True),
        (REPLACE, NEW, None, "done", NEW, True),
        (CREATE, None, None, "one", None, False),
        (CREATE, None, NEW, "one", None, False),
        (CREATE, NEW, None, "one", NEW, True),
        (CREATE, NEW, None, "done", NEW, True),
        (DELETE, OLD, None, "one", OLD, False),
        (DELETE, None, OLD, "one", None, True),
        (DELETE, None, None, "one", None, True),
        (DELETE, None, OLD, "done", None, True),
    ],
)
def test_a_change_of_one_file_is_finished_when_it_happened_and_undone_otherwise(
    tmp_path: Path,
    step: tuple[bytes | None, bytes | None],
    target: bytes | None,
    staged: bytes | None,
    kind: str,
    expected: bytes | None,
    *,
    logged: bool,
) -> None:
    vault = made(tmp_path)
    put(vault, "notes/a.md", target)
    leave(vault, kind, entry(("notes/a.md", *step)), {0: staged})
    assert recovered(vault) == ([ID] if logged else [])
    assert memories(vault) == ({} if expected is None else {"notes/a.md": expected})
    if logged and staged is not None:
        assert vault.content(digest(OLD) or "") == OLD
    if expected is None:
        assert not (Path(vault.root) / "notes").exists(), "an empty folder is left behind"


# ---------------------------------------------------------------------------------------- several: `.many`

STEPS = (("r.md", OLD, NEW), ("new/c.md", None, NEW), ("d.md", OLD, None))


def stand(vault: Vault, done: int) -> dict[int, bytes | None]:
    """The vault after the first `done` of the steps; what the staged files hold then."""
    staged: dict[int, bytes | None] = {}
    for number, (path, before, after) in enumerate(STEPS):
        put(vault, path, after if number < done else before)
        staged[number] = before if number < done else after
    return staged


@pytest.mark.parametrize("done", range(4))
def test_a_change_of_several_files_is_undone(vault: Vault, done: int) -> None:
    leave(vault, "many", entry(*STEPS), stand(vault, done))
    assert recovered(vault) == []
    assert memories(vault) == {"r.md": OLD, "d.md": OLD}
    assert not (Path(vault.root) / "new").exists()


@pytest.mark.parametrize("swept", range(4))
def test_a_change_of_several_files_that_is_done_is_finished(vault: Vault, swept: int) -> None:
    staged = stand(vault, 3)
    for number in range(swept):
        staged[number] = None
    leave(vault, "done", entry(*STEPS), staged)
    assert recovered(vault) == [ID]
    assert memories(vault) == {"r.md": NEW, "new/c.md": NEW}
    if not swept:
        assert vault.content(digest(OLD) or "") == OLD


def test_a_crash_before_anything_was_staged_changes_nothing(vault: Vault) -> None:
    stand(vault, 0)
    leave(vault, "many", entry(*STEPS), {})
    assert recovered(vault) == []
    assert memories(vault) == {"r.md": OLD, "d.md": OLD}


def test_what_was_logged_before_the_crash_is_not_logged_twice(vault: Vault) -> None:
    made = entry(*STEPS)
    leave(vault, "done", made, stand(vault, 3))
    vault.disk.trash.record(made)
    assert recovered(vault) == [ID]


def test_several_crashes_are_put_right_together(vault: Vault) -> None:
    put(vault, "a.md", NEW)
    put(vault, "b.md", NEW)
    leave(vault, "many", entry(("a.md", OLD, NEW), ("x.md", None, NEW), id="1-a"), {0: OLD, 1: NEW})
    leave(vault, "one", entry(("b.md", OLD, NEW), id="2-b"), {0: OLD})
    assert vault.recover() == 2
    assert memories(vault) == {"a.md": OLD, "b.md": NEW}
    assert [each.id for each in vault.history()] == ["2-b"]


@given(st.lists(st.tuples(st.sampled_from([REPLACE, CREATE, DELETE]), st.booleans()), min_size=2, max_size=5))
@settings(max_examples=examples(60))
def test_any_change_of_several_files_is_undone_wherever_it_stopped(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[tuple[bytes | None, bytes | None], bool]],
) -> None:
    """Steps are undone one by one, so a crash during the undoing is undone like any other."""
    vault = Vault(str(tmp_path_factory.mktemp("vault")))
    with vault.disk.locked(10):
        pass
    changes = [(f"f{number}/a.md", *step) for number, (step, _) in enumerate(steps)]
    staged = {}
    for number, ((before, after), happened) in enumerate(steps):
        put(vault, f"f{number}/a.md", after if happened else before)
        staged[number] = before if happened else after
    leave(vault, "many", entry(*changes), staged)
    assert recovered(vault) == []
    assert memories(vault) == {path: before for path, before, _ in changes if before is not None}


# ------------------------------------------------------------- what others wrote between the crash and now

LATE = b"late\n"


@pytest.mark.parametrize(
    ("step", "staged", "kind", "expected"),
    [
        (REPLACE, OLD, "many", LATE),  # somebody replaced ours: theirs is the newest
        (REPLACE, NEW, "many", LATE),
        (REPLACE, OLD, "done", LATE),
        (CREATE, None, "many", LATE),
        (CREATE, NEW, "many", LATE),
        (DELETE, OLD, "many", LATE),  # somebody made it anew
        (DELETE, OLD, "done", LATE),
    ],
)
def test_what_was_written_since_stays(
    vault: Vault, step: tuple[bytes | None, bytes | None], staged: bytes | None, kind: str, expected: bytes
) -> None:
    put(vault, "a.md", LATE)
    leave(vault, kind, entry(("a.md", *step), ("b.md", None, NEW)), {0: staged, 1: NEW})
    recovered(vault)
    assert (Path(vault.root) / "a.md").read_bytes() == expected
    if staged == OLD:
        assert (Path(vault.disk.trash.path) / (digest(OLD) or "")).read_bytes() == OLD


def part(step: tuple[bytes | None, bytes | None]) -> FileChange:
    return FileChange(path="a.md", before=digest(step[0]), after=digest(step[1]))


@pytest.mark.parametrize(
    ("step", "staged", "now", "stays"),
    [
        (REPLACE, OLD, LATE, True),
        (REPLACE, OLD, None, True),  # another program has deleted what holds our half
        (REPLACE, NEW, LATE, False),  # the step was not done
        (REPLACE, OLD, OLD, False),  # another program has undone it
        (CREATE, None, LATE, True),
        (CREATE, None, None, False),
        (CREATE, NEW, LATE, False),
        (DELETE, OLD, LATE, True),
        (DELETE, None, LATE, False),
    ],
)
def test_a_step_that_another_program_has_written_over_is_told_of_and_in_the_history(
    vault: Vault,
    step: tuple[bytes | None, bytes | None],
    staged: bytes | None,
    now: bytes | None,
    *,
    stays: bool,
) -> None:
    """The note names no file: who reads it may not see that one."""
    made = entry(("a.md", *step), ("b.md", None, NEW))
    put(vault, "a.md", now)
    vault.disk.trash.record(made)
    leave(vault, "many", made, {0: staged, 1: NEW})
    assert len(recovered(vault)) == stays
    assert memories(vault) == ({"a.md": now} if now else {})
    assert [each.files for each in vault.history()] == [(part(step),)] * stays
    assert ["an interrupted change" in note for note in vault.notes] == [True] * stays
    assert not any("a.md" in note for note in vault.notes)
    assert not stays or step[0] is None or vault.content(digest(OLD) or "") == OLD


@pytest.mark.parametrize("step", [REPLACE, CREATE])
def test_a_change_of_one_file_that_another_program_has_written_over_is_in_the_history(
    vault: Vault, step: tuple[bytes | None, bytes | None]
) -> None:
    made = entry(("a.md", *step))
    put(vault, "a.md", LATE)
    vault.disk.trash.record(made)
    leave(vault, "one", made, {})
    assert recovered(vault) == [ID]
    assert memories(vault) == {"a.md": LATE}


def test_what_another_program_wrote_into_a_file_that_was_taken_out_is_in_the_history(vault: Vault) -> None:
    made = entry(("a.md", OLD, None), ("b.md", None, NEW))
    put(vault, "a.md", LATE)
    vault.disk.trash.record(made)
    leave(vault, "many", made, {0: b"theirs\n", 1: NEW})
    recovered(vault)
    assert next(vault.history()).message == "set aside what another program wrote"
    assert vault.content(digest(b"theirs\n") or "") == b"theirs\n"


def test_a_step_that_stays_is_in_the_history_once_however_often_recovery_is_killed(tmp_path: Path) -> None:
    def again(root: str) -> None:
        Vault(root).recover()

    for stop in range(1, 500, 1 if speed.is_all else 9):
        (tmp_path / str(stop)).mkdir()
        vault = made(tmp_path / str(stop))
        steps = entry(("a.md", OLD, NEW), ("b.md", OLD, NEW), ("n/c.md", None, NEW))
        for path in ("a.md", "b.md", "n/c.md"):
            put(vault, path, LATE)
        vault.disk.trash.record(steps)
        leave(vault, "many", steps, {0: OLD, 1: OLD})
        was_killed = killed(partial(again, vault.root), stop)
        vault.recover()
        assert os.listdir(staging(vault)) == []
        assert sorted(each.files[0].path for each in vault.history()) == ["a.md", "b.md", "n/c.md"]
        if not was_killed:
            return
    pytest.fail("it never ended")


def test_half_of_a_change_that_a_killed_process_left_below_another_programs_words_can_be_undone(
    tmp_path: Path,
) -> None:
    """An editor has saved more below our half before anybody recovers; each note has a link to `a.md`."""
    linked = {f"{name}.md": f"See [[a]].\n\nThis is {name}.\n".encode() for name in "xyz"}

    def move(root: Path) -> None:
        Memory(str(root)).mv("a.md", "b.md")

    def begun(name: str) -> Path:
        root = laid(tmp_path / name, {"a.md": b"# A\n", **linked})
        Memory(str(root)).ls()
        return root

    move(begun("unharmed"))  # what it imports, the processes have
    halves: set[int] = set()
    for stop in range(1, 500, 1 if speed.is_all else 4):
        root = begun(str(stop))
        if not killed(partial(move, root), stop):
            break
        is_pending = any(name.endswith(".many") for name in os.listdir(root / STAGING))
        half = [name for name in linked if b"[[b]]" in (root / name).read_bytes()] if is_pending else []
        for name in half:
            with (root / name).open("ab") as file:
                file.write(LATE)
        memory = Memory(str(root))
        found = memory.ls()
        assert not half or (root / "a.md").exists()
        assert len(found) == 1 + len(linked)
        assert all((root / name).read_bytes().endswith(b"\nlate\n") for name in half)
        told = [note for note in memory.vault.notes if "interrupted change" in note]
        assert len(told) == bool(half)
        parts = [entry for entry in memory.history() if entry.message.startswith("part of")]
        assert sorted(entry.files[0].path for entry in parts) == half
        for entry in parts:
            memory.undo(entry.id)
        assert all((root / name).read_bytes() == linked[name] + LATE for name in half)
        halves.add(len(half))
    assert halves >= ({0, 1, 2, 3} if speed.is_all else {0, 3})


def test_what_stands_in_a_staged_file_and_nobody_expected_goes_to_the_trash(vault: Vault) -> None:
    put(vault, "a.md", NEW)
    leave(vault, "done", entry(("a.md", OLD, NEW)), {0: LATE})
    assert recovered(vault) == [ID]
    assert (Path(vault.disk.trash.path) / (digest(LATE) or "")).read_bytes() == LATE


# -------------------------------------------------------------------------- half steps of other systems


@pytest.mark.parametrize("kind", ["one", "many", "done"])
def test_a_replacement_that_stopped_between_its_two_renames(vault: Vault, kind: str) -> None:
    """Without `renameat2` the old file is kept by a second name, then replaced, then renamed."""
    put(vault, "a.md", NEW)
    leave(vault, kind, entry(("a.md", OLD, NEW)), {})
    (staging(vault) / f"{ID}.0~").write_bytes(OLD)
    assert recovered(vault) == ([] if kind == "many" else [ID])
    assert memories(vault) == {"a.md": OLD if kind == "many" else NEW}
    assert kind == "many" or vault.content(digest(OLD) or "") == OLD


@pytest.mark.parametrize("kind", ["one", "many"])
def test_a_replacement_that_stopped_before_its_first_rename(vault: Vault, kind: str) -> None:
    put(vault, "a.md", OLD)
    leave(vault, kind, entry(("a.md", OLD, NEW)), {0: NEW})
    os.link(Path(vault.root) / "a.md", staging(vault) / f"{ID}.0~")
    assert recovered(vault) == []
    assert memories(vault) == {"a.md": OLD}
    assert (Path(vault.root) / "a.md").stat().st_nlink == 1, "the trash holds the memory itself"


@pytest.mark.parametrize(
    ("step", "kind", "expected"),
    [
        (CREATE, "one", NEW),
        (CREATE, "many", None),
        (DELETE, "one", OLD),
        (DELETE, "many", OLD),
    ],
)
def test_a_move_that_stopped_while_the_file_had_both_names(
    vault: Vault, step: tuple[bytes | None, bytes | None], kind: str, expected: bytes | None
) -> None:
    data = step[0] or step[1]
    put(vault, "n/a.md", data)
    leave(vault, kind, entry(("n/a.md", *step)), {})
    os.link(Path(vault.root) / "n/a.md", staging(vault) / f"{ID}.0")
    assert recovered(vault) == ([ID] if kind == "one" and step == CREATE else [])
    assert memories(vault) == ({} if expected is None else {"n/a.md": expected})
    assert expected is None or (Path(vault.root) / "n/a.md").stat().st_nlink == 1


def change(root: Path, kind: str) -> None:
    vault = Vault(str(root))
    changes = [Change(path="a.md", before=vault.read("a.md"), content=b"new a\n")]
    if kind == "many":
        changes += [
            Change(path="b.md", before=vault.read("b.md"), move_to="n/b.md"),
            Change(path="c.md", before=None, content=b"new c\n"),
        ]
    vault.apply(EditPlan(changes=tuple(changes)))


@pytest.mark.parametrize("kind", ["one", "many"])
def test_a_process_killed_where_nothing_can_be_exchanged_leaves_all_or_nothing(
    tmp_path: Path, kind: str
) -> None:
    """SIGKILL before each call of the system of the branch for other systems."""
    befores = {"a.md": b"old a\n", "b.md": b"old b\n"}
    afters = {"a.md": b"new a\n", "b.md": b"old b\n"}
    if kind == "many":
        afters = {"a.md": b"new a\n", "n/b.md": b"old b\n", "c.md": b"new c\n"}

    def before(name: str) -> Path:
        (tmp_path / name).mkdir()
        vault = made(tmp_path / name)
        for path, data in befores.items():
            put(vault, path, data)
        return Path(vault.root)

    change(before("unharmed"), kind)  # what it imports, the processes have
    seen: list[bool] = []
    was_killed = True
    while was_killed:
        stop = len(seen) * (1 if speed.is_all else 10) + 1
        root = before(str(stop))
        was_killed = killed(partial(change, root, kind), stop, exchanges=False)
        vault = Vault(str(root))
        vault.recover()
        assert os.listdir(staging(vault)) == []
        found = memories(vault)
        assert found in (befores, afters)
        assert len(list(vault.history())) == (found == afters)
        seen.append(found == afters)
    assert seen == sorted(seen), "it was undone after it had been done"
    assert False in seen
    assert seen[-1]
    assert len(seen) > 3


# ------------------------------------------------------------- a folder becomes a file, and a file a folder

FILES = {"a.md": b"a\n", "n/b.md": b"b\n", "c.md": b"c\n"}
FOLDERS = {"a.md/x.md": b"a\n", "a.md/s.md/y.md": b"y\n", "n/b.md/b.md": b"new\n", "c.md": b"C\n"}


def turn(root: Path, befores: dict[str, bytes], afters: dict[str, bytes]) -> None:
    """Make one set of memories of another, in one plan."""
    vault = Vault(str(root))
    changes = [
        Change(
            path=path,
            before=vault.read(path) if path in befores else None,
            content=afters.get(path),
            delete=path not in afters,
            merge=False,
        )
        for path in (befores | afters)
    ]
    vault.apply(EditPlan(changes=tuple(changes)))


def laid(folder: Path, befores: dict[str, bytes]) -> Path:
    """A vault of these memories."""
    folder.mkdir()
    vault = made(folder)
    for path, data in befores.items():
        put(vault, path, data)
    return Path(vault.root)


@pytest.mark.parametrize(
    ("befores", "afters", "exchanges"),
    soak_most(
        [
            (FOLDERS, FILES, True),
            (FILES, FOLDERS, True),
            (FOLDERS, FILES, False),
            (FILES, FOLDERS, False),
        ],
        quick=(0, 1),
    ),
)
def test_a_process_killed_while_files_and_folders_change_places_leaves_all_or_nothing(
    tmp_path: Path, befores: dict[str, bytes], afters: dict[str, bytes], *, exchanges: bool
) -> None:
    """SIGKILL before each call of the system, and then while what recovers from that is at work."""
    turn(laid(tmp_path / "unharmed", befores), befores, afters)
    stride, again_stride = (1, 40) if speed.is_all else (29, 37)
    seen: list[bool] = []
    was_killed = True
    while was_killed:
        root = laid(tmp_path / str(len(seen)), befores)
        was_killed = killed(partial(turn, root, befores, afters), len(seen) * stride + 1, exchanges=exchanges)
        again = len(seen) % again_stride + 1
        while killed(lambda: Vault(str(root)).recover() * 0, again, exchanges=exchanges):  # noqa: B023
            again += again_stride
        vault = Vault(str(root))
        vault.recover()
        assert os.listdir(staging(vault)) == []
        found = memories(vault)
        assert found in (befores, afters)
        assert len(list(vault.history())) == (found == afters)
        seen.append(found == afters)
    assert seen == sorted(seen), "it was undone after it had been done"
    assert not seen[0]
    assert seen[-1]
    assert len(seen) > 3


@pytest.mark.parametrize(("befores", "afters"), [(FILES, FOLDERS), (FOLDERS, FILES)])
def test_where_a_file_is_in_the_way_of_the_last_step_all_are_taken_back(
    tmp_path: Path, befores: dict[str, bytes], afters: dict[str, bytes]
) -> None:
    """Also where the steps before have put files in the places of folders, or the other way round."""
    vault = Vault(str(laid(tmp_path / "vault", befores)))
    contents = {path: vault.store.read(path, 100) for path in befores}
    gone = [Step(path, contents[path], None) for path in befores if path not in afters]
    new = [Step(path, contents.get(path), data) for path, data in afters.items()]
    put(vault, "z/z.md", LATE)
    steps = [*gone, *new, Step("z/z.md", None, NEW)]
    made = entry(*((s.path, s.before.data if s.before else None, s.after) for s in steps))
    with vault.disk.locked(10), pytest.raises(Raced):
        vault.disk.journal.commit(made, steps)
    assert memories(vault) == {**befores, "z/z.md": LATE}
    assert os.listdir(staging(vault)) == []
    assert list(vault.history()) == []


@pytest.mark.parametrize("name", ["other.md", ".hidden", "s/other.txt"])
def test_a_folder_that_holds_more_than_the_change_takes_away_is_no_file(vault: Vault, name: str) -> None:
    put(vault, "a.md/x.md", OLD)
    put(vault, f"a.md/{name}", LATE)
    before = memories(vault)
    content = vault.store.read("a.md/x.md", 100)
    steps = [Step("a.md/x.md", content, None), Step("a.md", None, NEW)]
    with vault.disk.locked(10), pytest.raises(PathRefused, match="it is a folder"):
        vault.disk.journal.commit(entry(("a.md/x.md", OLD, None), ("a.md", None, NEW)), steps)
    assert memories(vault) == before
    assert os.listdir(staging(vault)) == []
    with pytest.raises(PathRefused, match=r"'a\.md': it is a folder"):
        turn(Path(vault.root), {"a.md/x.md": OLD}, {"a.md": NEW})
    assert memories(vault) == before


# ----------------------------------------------------------------------- what is torn, unknown, or a trick


def set_aside(vault: Vault) -> set[str]:
    """Recover by reading; what was moved out of the way, unread, of which a note tells."""
    assert vault.recover() == 0
    assert os.listdir(staging(vault)) == []
    assert list(vault.history()) == []
    assert os.listdir(vault.disk.trash.path) == []
    assert any("did not write here" in note for note in vault.notes)
    return set(os.listdir(Path(vault.root) / ASIDE))


@pytest.mark.parametrize("kind", ["one", "many", "done"])
@cases("torn", [b"", b"{", b'{"id": "x"}', b"\xff\xfe", b"[" * 100_000, b"null", b"[]"])
def test_a_torn_record_is_cleared_away(tmp_path: Path, kind: str, torn: bytes) -> None:
    vault = made(tmp_path)
    put(vault, "a.md", OLD)
    (staging(vault) / f"{ID}.{kind}").write_bytes(torn)
    (staging(vault) / f"{ID}.0").write_bytes(NEW)
    assert set_aside(vault) == {f"{ID}.0"} | ({f"{ID}.{kind}"} if torn else set())
    assert memories(vault) == {"a.md": OLD}


def test_what_no_record_tells_of_is_kept_aside(vault: Vault) -> None:
    names = {"x.0", "y", ".hidden", "note.md", "z.0~"}
    found: set[str] = set()
    for content in (b"one", b"another"):
        for name in names:
            (staging(vault) / name).write_bytes(content)
        found = set_aside(vault)
    assert {(Path(vault.root) / ASIDE / name).read_bytes() for name in names} == {b"one"}
    assert len(found) == 2 * len(names)


def test_what_is_no_file_in_the_staging_folder_stops_nobody(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    for name in ("link", f"{ID}.many", f"{ID}.0"):
        (staging(vault) / name).symlink_to(tmp_path / "secret")
    (staging(vault) / "folder.many").mkdir()
    os.mkfifo(staging(vault) / "fifo.done")
    put(vault, "a.md", OLD)
    assert vault.read("a.md").data == OLD
    vault.apply(EditPlan(changes=(Change(path="b.md", before=None, content=NEW),)))
    assert memories(vault) == {"a.md": OLD, "b.md": NEW}
    assert os.listdir(staging(vault)) == []
    vault.disk.trash.policy = config.Trash(max_bytes=0)
    vault.disk.trash.sweep(0)
    assert (tmp_path / "secret").read_bytes() == b"secret"


def shaped(**values: object) -> dict[str, object]:
    return {"id": ID, "time": "2024-01-01T00:00:00.000Z", "actor": "", "message": "", "files": [], **values}


@pytest.mark.parametrize("kind", ["one", "many", "done"])
@cases(
    "path",
    [
        *("../outside/a.md", "/etc/a.md", "notes/../../outside/a.md", ".mdmem/other.toml", "", ".", "a//b"),
        "../../x.md",
    ],
)
def test_a_record_cannot_reach_out_of_the_vault(tmp_path: Path, kind: str, path: str) -> None:
    """Also where it carries our mark: a path in a record is checked like any other."""
    vault = made(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_bytes(NEW)
    put(vault, "a.md", OLD)
    for before, after in (REPLACE, CREATE, DELETE):
        change = {"path": path, "before": digest(before), "after": digest(after)}
        record = shaped(files=[change, {"path": "a.md", "before": digest(OLD), "after": None}])
        (staging(vault) / f"{ID}.{kind}").write_bytes(signed(record))
        (staging(vault) / f"{ID}.0").write_bytes(b"planted\n")
        assert set_aside(vault)
        assert memories(vault) == {"a.md": OLD}
        assert {each.name: each.read_bytes() for each in outside.iterdir()} == {"a.md": NEW}
    assert sorted(os.listdir(tmp_path)) == ["outside", "vault"]


@pytest.mark.parametrize("kind", ["one", "many", "done"])
@cases(
    "record",
    [
        shaped(id="../../../outside/x", files=[{"path": "a.md", "before": digest(OLD), "after": None}]),
        shaped(id="another", files=[{"path": "a.md", "before": digest(OLD), "after": None}]),
        shaped(id=7, files=[{"path": "a.md", "before": digest(OLD), "after": None}]),
        shaped(files=[{"path": 5, "before": None, "after": None}]),
        shaped(files=[{"path": "a.md", "before": 5, "after": None}]),
        shaped(files=[["a.md"]]),
        shaped(files=["a.md"]),
        shaped(files="a.md"),
        shaped(files=None),
        shaped(),
        shaped(time=3, files=[{"path": "a.md", "before": digest(OLD), "after": None}]),
    ],
)
def test_a_record_that_is_none_of_ours_does_nothing(
    tmp_path: Path, kind: str, record: dict[str, object]
) -> None:
    vault = made(tmp_path)
    put(vault, "a.md", OLD)
    (staging(vault) / f"{ID}.{kind}").write_bytes(signed(record))
    assert set_aside(vault) == {f"{ID}.{kind}"}
    assert memories(vault) == {"a.md": OLD}
    assert sorted(os.listdir(tmp_path)) == ["vault"]


def planted(shape: dict[str, object], how: str) -> bytes:
    """A record that is sound, and was written by somebody else."""
    ours = signed(shape)
    if how == "unsigned":
        return json.dumps(shape).encode()
    if how == "changed":
        return ours.replace(b"a.md", b"b.md")
    if how == "guessed":
        return ours[:-34] + b"0" * 32 + b'"}'
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as elsewhere:
        patch.setenv("XDG_STATE_HOME", elsewhere)
        return signed(shape)


@pytest.mark.parametrize("kind", ["one", "many", "done"])
@cases("how", ["unsigned", "changed", "guessed", "another machine"])
@pytest.mark.parametrize("step", [(OLD, None), (OLD, NEW), (NEW, OLD)])
def test_what_came_with_the_files_changes_no_memory(
    tmp_path: Path, kind: str, how: str, step: tuple[bytes, bytes | None]
) -> None:
    vault = made(tmp_path)
    put(vault, "a.md", OLD)
    put(vault, "b.md", OLD)
    (staging(vault) / f"{ID}.{kind}").write_bytes(planted(as_json(entry(("a.md", *step))), how))
    (staging(vault) / f"{ID}.0").write_bytes(step[0])
    assert set_aside(vault) == {f"{ID}.{kind}", f"{ID}.0"}
    assert memories(vault) == {"a.md": OLD, "b.md": OLD}


def test_the_log_is_asked_as_often_for_a_thousand_planted_records_as_for_one(vault: Vault) -> None:
    asked = 0

    class Counting(TrashFolder):
        def entries(self) -> Iterator[Entry]:
            nonlocal asked
            asked += 1
            return super().entries()

    vault.disk.journal.trash = Counting(vault.disk.trash.path, vault.disk.trash.policy)
    for number in range(1_000):
        (staging(vault) / f"{number}.one").write_bytes(b"{}")
    assert len(set_aside(vault)) == 1_000
    assert asked <= 2


@pytest.mark.parametrize("name", [f"{ID}.many", f"{ID}.0"])
def test_a_record_of_gigabytes_is_not_read(vault: Vault, name: str) -> None:
    with open(staging(vault) / name, "wb") as file:
        file.truncate(3 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert set_aside(vault) == {name}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("obstacle", ["link", "file"])
def test_a_folder_that_became_something_else_since_the_crash_is_left_alone(
    vault: Vault, tmp_path: Path, obstacle: str
) -> None:
    """The other files of the change are put right all the same, and nothing is lost."""
    root, outside = Path(vault.root), tmp_path / "outside"
    outside.mkdir()
    if obstacle == "link":
        (root / "gone").symlink_to(outside)
    else:
        (root / "gone").write_bytes(b"")
    put(vault, "a.md", NEW)
    leave(vault, "many", entry(("gone/b.md", OLD, None), ("a.md", OLD, NEW)), {0: b"its\n", 1: OLD})
    assert recovered(vault) == []
    assert (root / "a.md").read_bytes() == OLD
    assert list(outside.iterdir()) == []
    assert (Path(vault.disk.trash.path) / (digest(b"its\n") or "")).read_bytes() == b"its\n"


def test_a_name_that_would_be_refused_today_is_recovered_beside_its_twin(vault: Vault) -> None:
    """What was there before the crash comes back, whatever else has its name in another case by now."""
    put(vault, "GONE/con.md", NEW)
    leave(vault, "many", entry(("gone/con.md", OLD, None), ("b.md", None, NEW)), {0: OLD, 1: NEW})
    assert recovered(vault) == []
    assert memories(vault) == {"GONE/con.md": NEW, "gone/con.md": OLD}


# -------------------------------------------------------------------------------------- while it is committed


def steps(vault: Vault) -> tuple[Entry, list[Step]]:
    put(vault, "a.md", OLD)
    with files.opened(vault.root) as folder:
        content = files.read(folder, "a.md")
    made = entry(("a.md", OLD, NEW), ("n/b.md", None, NEW))
    return made, [Step(path="a.md", before=content, after=NEW), Step(path="n/b.md", before=None, after=NEW)]


def test_a_change_that_is_committed_is_in_the_log_and_its_old_content_in_the_trash(vault: Vault) -> None:
    made, todo = steps(vault)
    with vault.disk.locked(10):
        vault.disk.journal.commit(made, todo)
    assert memories(vault) == {"a.md": NEW, "n/b.md": NEW}
    assert os.listdir(staging(vault)) == []
    assert list(vault.history()) == [made]
    assert vault.content(digest(OLD) or "") == OLD


@pytest.mark.parametrize("late", ["changed", "gone", "made"])
def test_a_commit_that_was_overtaken_changes_nothing(vault: Vault, late: str) -> None:
    """Another program wrote between the comparison and the commit."""
    made, todo = steps(vault)
    if late == "changed":
        put(vault, "a.md", LATE)
    elif late == "gone":
        (Path(vault.root) / "a.md").unlink()
    else:
        put(vault, "n/b.md", LATE)
    before = memories(vault)
    with vault.disk.locked(10), pytest.raises(Raced):
        vault.disk.journal.commit(made, todo)
    assert memories(vault) == before
    assert os.listdir(staging(vault)) == []
    assert list(vault.history()) == []


def test_a_commit_that_met_a_link_changes_nothing(vault: Vault, tmp_path: Path) -> None:
    made, todo = steps(vault)
    (Path(vault.root) / "a.md").unlink()
    (Path(vault.root) / "a.md").symlink_to(tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_bytes(OLD)
    with vault.disk.locked(10), pytest.raises(PathRefused) as refused:
        vault.disk.journal.commit(made, todo)
    assert refused.value.path == "a.md"
    assert os.path.islink(Path(vault.root) / "a.md")
    assert os.listdir(staging(vault)) == []
    assert not (Path(vault.root) / "n").exists()


@pytest.mark.parametrize("several", [False, True])
def test_a_change_that_cannot_be_logged_is_not_made(vault: Vault, *, several: bool) -> None:
    """What the log does not tell of could not be found again."""
    log = Path(vault.disk.trash.path) / "log.jsonl"
    log.mkdir()
    put(vault, "a.md", OLD)
    changes = [Change(path="a.md", before=vault.read("a.md"), content=NEW, merge=False)]
    changes += [Change(path="n/b.md", before=None, content=NEW)] if several else []
    with pytest.raises(PathRefused, match=r"trash/log\.jsonl': it is a folder"):
        vault.apply(EditPlan(changes=tuple(changes)))
    assert memories(vault) == {"a.md": OLD}
    assert os.listdir(staging(vault)) == []
    log.rmdir()
    applied = vault.apply(EditPlan(changes=tuple(changes)))
    assert [each.id for each in vault.history()] == [applied.id]
    assert vault.content(digest(OLD) or "") == OLD


def test_a_change_of_more_files_than_can_be_open_at_once(vault: Vault) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    names = [f"notes/{number}.md" for number in range(150)]
    plan = EditPlan(changes=tuple(Change(path=name, before=None, content=NEW) for name in names))
    here = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (here + 60, hard))
    try:
        vault.apply(plan)
        changes = tuple(Change(path=name, before=vault.read(name), move_to=f"moved/{name}") for name in names)
        vault.apply(EditPlan(changes=changes))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sorted(memories(vault)) == sorted(f"moved/{name}" for name in names)


FULL = """
import signal, resource, sys
from mdmem.errors import StorageFailed
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.vault import Vault

vault = Vault(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
before = vault.read("a.md")
plan = EditPlan(changes=(
    Change(path="a.md", before=before, content=b"small"),
    Change(path="n/b.md", before=None, content=b"x" * 100_000),
))
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    vault.apply(plan)
except StorageFailed as error:
    assert error.path == "n/b.md", error
    assert "File too large" in str(error), error
else:
    sys.exit("it was written")
"""


def test_a_full_disk_changes_nothing_and_names_the_file(vault: Vault) -> None:
    put(vault, "a.md", OLD)
    subprocess.run([sys.executable, "-B", "-c", FULL, vault.root], check=True)
    assert memories(vault) == {"a.md": OLD}
    assert os.listdir(staging(vault)) == []
    assert not (Path(vault.root) / "n").exists()


@pytest.mark.parametrize("missing", ["staging", "trash", ".gitignore", "lock", "."])
def test_what_is_local_can_be_deleted_at_any_time(vault: Vault, missing: str) -> None:
    put(vault, "a.md", OLD)
    vault.apply(EditPlan(changes=(Change(path="a.md", before=vault.read("a.md"), content=NEW),)))
    subprocess.run(["rm", "-rf", "--", f"{vault.root}/.mdmem/local/{missing}".removesuffix("/.")], check=True)
    assert vault.read("a.md").data == NEW
    list(vault.history())
    vault.apply(EditPlan(changes=(Change(path="a.md", before=vault.read("a.md"), content=OLD),)))
    assert memories(vault) == {"a.md": OLD}
    assert (Path(vault.root) / ".mdmem/local/.gitignore").read_text() == "*\n"


def test_a_journal_that_cannot_be_read_is_said(vault: Vault) -> None:
    needs_readers()
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    put(vault, "a.md", OLD)
    (Path(vault.root) / ".mdmem/local").chmod(0o700)
    for path in (vault.root, f"{vault.root}/.mdmem", f"{vault.root}/a.md"):
        os.chmod(path, 0o755)
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(MdmemError):
            os.chdir(vault.root)
            vault.disk.root = "."
            os.setuid(65534)
            is_read = vault.read("a.md").data == OLD
            status = 0 if is_read and ".mdmem/local: cannot read it" in vault.notes[0] else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
