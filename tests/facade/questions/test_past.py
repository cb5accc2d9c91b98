"""What memories said at a moment, and how certain that is."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import shlex
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem import Memory
from mdmem.errors import EditRefused, MemoryNotFound, NamedNotFound, Usage, VersionRefused
from mdmem.vault.paths import Scope
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


def last_time(memory: Memory) -> datetime:
    """When the last change was made; the next one is made in another millisecond."""
    at = datetime.fromisoformat(memory.history()[0].time)
    while datetime.now(UTC) - at < timedelta(milliseconds=2):
        pass
    return at


def test_what_mdmem_wrote_is_exact_at_every_moment(memory: Memory) -> None:
    memory.write("notes/a.md", "one\n")
    first = last_time(memory)
    memory.replace("notes/a.md", "one", "two")
    second = last_time(memory)
    memory.rm("notes/a.md")
    third = last_time(memory)

    states = [memory.state_at("notes/a.md", at) for at in (first, second, third)]
    assert [each.certainty for each in states] == ["exact"] * 3
    assert [each.document and each.document.text for each in states] == ["one\n", "two\n", None]
    assert memory.show("notes/a.md", as_of=first).text == "one\n"
    with pytest.raises(MemoryNotFound):
        memory.show("notes/a.md", as_of=third)


def test_an_edit_of_another_program_makes_the_time_between_unsure(memory: Memory) -> None:
    memory.write("notes/a.md", "one\n")
    first = last_time(memory)
    Path(memory.root, "notes/a.md").write_text("theirs\n")
    memory.append("notes/a.md", "two")

    state = memory.state_at("notes/a.md", first)
    assert state.certainty == "unsure"
    assert state.document
    assert state.document.text == "one\n"  # what the change wrote is kept, and others came at some time after


def test_todays_text_never_stands_for_another_day(memory: Memory) -> None:
    memory.write("notes/b.md", "b\n")
    Path(memory.root, "notes/a.md").write_text("theirs\n")

    assert memory.state_at("notes/a.md", last_time(memory)).certainty == "not kept"
    with pytest.raises(NamedNotFound, match="neither the history nor git has it"):
        memory.show("notes/a.md", as_of=last_time(memory))


def git(folder: Path, *arguments: str, date: str = "2026-03-01T00:00:00Z") -> None:
    env = {**os.environ, "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *names, *arguments], cwd=folder, env=env, check=True, capture_output=True)


def test_git_says_what_the_log_does_not(memory: Memory, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    note = Path(memory.root, "notes/a.md")
    note.parent.mkdir(exist_ok=True)
    for month, text in ((1, "one\n"), (2, "two\n")):
        note.write_text(text)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", text.strip(), date=f"2026-0{month}-01T00:00:00Z")
    note.write_text("three\n")

    state = memory.state_at("notes/a.md", "2026-01-15")
    assert (state.certainty, state.document and state.document.text) == ("git", "one\n")
    assert memory.show("notes/a.md", as_of="HEAD~1").text == "one\n"
    assert memory.show("notes/a.md", as_of="2026-02-01").text == "two\n"
    with pytest.raises(Usage, match="kept"):
        memory.state_at("notes/a.md", "2025-12-31")


@pytest.fixture
def branched(tmp_path: Path) -> Memory:
    """A vault in git, on main; the branch `other` was committed later, and both after all changes."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/a.md", "one\n")
    memory.write("AGENTS.md", "# Main\n", overwrite=True)
    commit_all(tmp_path)
    git(tmp_path, "switch", "--quiet", "-c", "other")
    memory.write("notes/a.md", "on other\n", overwrite=True)
    memory.write("notes/b.md", "new\n")
    memory.write("AGENTS.md", "# Other\n", overwrite=True)
    commit_all(tmp_path)
    git(tmp_path, "switch", "--quiet", "main")
    return memory


def test_a_revision_means_what_its_commit_holds(branched: Memory) -> None:
    for revision, texts in (
        ("other", ["on other\n", "new\n", "# Other\n"]),
        ("other~1", ["one\n", None, "# Main\n"]),
    ):
        states = [branched.state_at(path, revision) for path in ("notes/a.md", "notes/b.md", "AGENTS.md")]
        assert [each.certainty for each in states] == ["exact"] * 3
        assert [each.document and each.document.text for each in states] == texts
    with pytest.raises(MemoryNotFound):
        branched.show("notes/b.md", as_of="main")


def test_the_copy_of_a_revision_is_its_commit(branched: Memory) -> None:
    other, main = branched.past("other"), branched.past("main")
    assert [each.path for each in other.ls()] == ["AGENTS.md", "notes/a.md", "notes/b.md"]
    assert [each.path for each in main.ls()] == ["AGENTS.md", "notes/a.md"]
    assert (other.show("notes/a.md").text, main.show("notes/a.md").text) == ("on other\n", "one\n")
    assert other.show("AGENTS.md").text == "# Other\n"
    assert other.origin
    assert other.origin.unsure == ()


def test_an_amended_commit_says_what_it_holds(branched: Memory, tmp_path: Path) -> None:
    branched.write("notes/a.md", "never committed\n", overwrite=True)
    git(tmp_path, "commit", "-q", "--amend", "-m", "again", date="2098-01-01T00:00:00Z")
    assert branched.show("notes/a.md", as_of="HEAD").text == "one\n"
    git(tmp_path, "commit", "-qam", "early", date="2001-01-01T00:00:00Z")
    assert branched.show("notes/a.md", as_of="HEAD").text == "never committed\n"


def test_a_commit_does_not_keep_what_git_ignores(branched: Memory) -> None:
    branched.working.update("Now.", thread="t1")
    path = next(each.path for each in branched.ls("working"))

    assert branched.state_at(path, "HEAD").certainty == "not kept"
    with pytest.raises(NamedNotFound, match="only what git tracks"):
        branched.show(path, as_of="HEAD")
    past = branched.past("HEAD")
    assert past.origin
    assert past.origin.unsure == ((path, "not kept"),)


@cases("data", [b"\xff\xfe\x00", b"# Caf\xe9\n", b"x" * 5_000_000])
def test_what_a_commit_holds_and_is_no_text_is_said_to_be_there(
    data: bytes, branched: Memory, tmp_path: Path
) -> None:
    Path(branched.root, "notes/bytes.md").write_bytes(data)
    commit_all(tmp_path)
    Path(branched.root, "notes/bytes.md").write_bytes(b"Text.\n")
    at = datetime.now(UTC) + timedelta(seconds=1)
    branched.write("notes/later.md", "Later.\n", overwrite=True)
    for when in ("HEAD", at):
        assert branched.state_at("notes/bytes.md", when).certainty == "unreadable"
        with pytest.raises(VersionRefused, match="git has as") as refused:
            branched.show("notes/bytes.md", as_of=when)
        command = shlex.split(refused.value.hint.split("`")[1])
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout == data
    past = branched.past("HEAD")
    assert past.origin
    assert ("notes/bytes.md", "unreadable") in past.origin.unsure


@pytest.mark.parametrize("when", ["", "yesterday", "--output=x", "2026-13-01", "HEAD"])
def test_what_is_no_moment_is_refused_with_what_would_be_one(memory: Memory, when: str) -> None:
    memory.write("notes/a.md", "one\n")
    with pytest.raises(Usage, match="is no moment"):
        memory.past(when)


@pytest.mark.parametrize("when", ["HEAD~9", "HEAD^^^", "0123abcd", "main@{9}", "origin/none"])
def test_a_revision_that_git_does_not_have_is_called_so(branched: Memory, when: str) -> None:
    with pytest.raises(Usage, match="git has no revision"):
        branched.past(when)
    with pytest.raises(Usage, match="is no moment"):
        branched.past("yesterday")


def test_a_memory_that_is_newer_than_a_revision_was_not_there_then(branched: Memory, tmp_path: Path) -> None:
    commit_all(tmp_path)
    branched.write("notes/newer.md", "new\n")
    with pytest.raises(MemoryNotFound, match="no such memory at HEAD") as refused:
        branched.show("notes/newer.md", as_of="HEAD")
    assert refused.value.hint == "it is there now; `mdmem history notes/newer.md` lists its changes"
    with pytest.raises(MemoryNotFound) as refused:
        branched.show("notes/never.md", as_of="HEAD")
    assert refused.value.message == "notes/never.md: no such memory"


def test_a_moment_before_all_that_is_kept_is_refused_with_the_earliest(memory: Memory) -> None:
    memory.write("notes/a.md", "one\n")
    with pytest.raises(Usage, match=f"{last_time(memory):%Y-%m-%d}"):
        memory.past("2001-01-01")


def test_every_question_works_in_the_past_and_no_change_does(memory: Memory) -> None:
    memory.write("notes/a.md", "The database is Postgres.\n")
    then = last_time(memory)
    memory.replace("notes/a.md", "Postgres", "SQLite")
    memory.write("notes/b.md", "later\n")
    past = memory.past(then)

    assert [each.path for each in past.ls()] == ["notes/a.md"]
    assert [hit.text for hit in past.search("database").hits] == ["The database is Postgres."]
    assert past.origin
    assert past.origin.unsure == ()
    for change in (
        lambda: past.append("notes/a.md", "x"),
        past.undo,
        lambda: past.sessions.add("t1", "user", "x"),
    ):
        with pytest.raises((EditRefused, NamedNotFound)):
            change()
    assert past.show("notes/a.md").text == "The database is Postgres.\n"
    assert memory.search("SQLite").hits


def test_a_scope_sees_its_own_past_and_no_other(tmp_path: Path) -> None:
    root = mdmem.init(tmp_path / "memories").root
    mine, theirs = (mdmem.open(root, Scope(user=name)) for name in ("ann", "bob"))
    mine.write("notes/a.md", "mine\n")
    theirs.write("notes/b.md", "theirs\n")
    past = mine.past(last_time(theirs))

    assert [each.path for each in past.ls()] == ["notes/a.md"]
    assert not list(Path(past.root).rglob("b.md"))


def test_a_mounted_file_is_a_plain_one_in_the_past(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.write("AGENTS.md", "# Then\n", overwrite=True)
    then = last_time(memory)
    memory.write("AGENTS.md", "# Now\n", overwrite=True)
    past = memory.past(then)

    assert past.show("AGENTS.md").text == "# Then\n"
    assert Path(past.root, "AGENTS.md").is_file()


def test_two_copies_are_kept_and_an_open_one_stays(memory: Memory) -> None:
    moments = []
    for number in range(4):
        memory.write(f"notes/{number}.md", "x\n")
        moments.append(last_time(memory))
    first = memory.past(moments[0])
    roots = []
    for at in moments[1:]:
        roots.append(memory.past(at).root)
        gc.collect()

    assert os.path.isdir(first.root)
    assert [os.path.isdir(root) for root in roots] == [False, False, True]
    assert memory.past(moments[0]).root == first.root


TEXTS = st.sampled_from(["a\n", "b\n", "c c\n", ""])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "outside", "rm", "gone", "mv", "undo", "commit"]), st.integers(0, 2), TEXTS
    ),
    min_size=1,
    max_size=14,
)


def do_step(memory: Memory, top: Path, step: tuple[str, int, str], *, has_outside: bool) -> None:
    """Do one step of a story, if it can be done."""
    kind, number, text = step
    path, other = f"notes/{number}.md", f"notes/{(number + 1) % 3}.md"
    file = Path(memory.root, path)
    does: dict[str, Callable[[], object]] = {
        "write": lambda: memory.write(path, text, overwrite=True),
        "rm": lambda: memory.rm(path),
        "mv": lambda: memory.mv(path, other),
        "undo": memory.undo,
        "commit": lambda: commit_all(top),
        "outside": lambda: write_outside(file) if has_outside else None,
        "gone": lambda: delete_outside(file) if has_outside else None,
    }
    with contextlib.suppress(mdmem.MdmemError):
        does[kind]()


def write_outside(file: Path) -> None:
    """Write what nobody has written before: what is taken back unseen leaves no trace in any log."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"outside {time.monotonic_ns()}\n")


def delete_outside(file: Path) -> None:
    if file.exists() and not file.read_text().startswith("outside"):
        file.unlink()


def commit_all(top: Path) -> None:
    git(top, "add", "-A")
    git(top, "commit", "--allow-empty", "-qm", "x", date=datetime.now(UTC).isoformat())


def read_notes(memory: Memory) -> dict[str, str]:
    return {f"notes/{each.name}": each.read_text() for each in Path(memory.root, "notes").glob("*.md")}


@given(steps=STEPS, has_outside=st.booleans())
@settings(max_examples=examples(12), deadline=None)
def test_nothing_that_is_called_exact_is_wrong(
    steps: list[tuple[str, int, str]], has_outside: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And without edits of other programs, all is exact."""
    top = tmp_path_factory.mktemp("past")
    git(top, "init", "--quiet")
    memory = mdmem.open(mdmem.init(top / "memories").root)
    Path(memory.root, "notes").mkdir(exist_ok=True)
    seen: list[tuple[datetime, dict[str, str]]] = []
    for step in steps:
        do_step(memory, top, step, has_outside=has_outside)
        now = datetime.now(UTC)
        while datetime.now(UTC) - now < timedelta(milliseconds=3):
            pass
        seen.append((now + timedelta(milliseconds=1), read_notes(memory)))
    logged = {file.path for entry in memory.history() for file in entry.files}
    oldest = min((datetime.fromisoformat(entry.time) for entry in memory.history()), default=None)
    for (at, held), path in itertools.product(seen, sorted(logged)):
        if oldest and at > oldest:
            state = memory.state_at(path, at)
            assert has_outside or state.certainty == "exact"
            if state.certainty == "exact":
                assert (state.document.text if state.document else None) == held.get(path)
