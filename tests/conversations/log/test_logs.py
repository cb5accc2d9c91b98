"""Whose which log is: no two keys share one, none leaves its namespace; and the archive."""

from __future__ import annotations

import gc
import hashlib
import os
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.conversations.log.logs import name_of
from mdmem.conversations.log.record import LogHeader, write_header
from mdmem.errors import (
    AlreadyExists,
    LimitReached,
    MdmemError,
    NamedNotFound,
    PathRefused,
    SessionConflict,
    Usage,
)
from mdmem.facade.memory import Memory
from mdmem.vault.paths import Scope
from tests import speed
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mdmem.conversations.sessions import Sessions

KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)
LONG = "x" * 500
HASHED = f"{'x' * 100}~{hashlib.sha256(LONG.encode()).hexdigest()}"
ALIKE = (
    *("a:b", "a_b", "a/b", "a\\b", "a%3Ab", "A:b", "a: b", " a:b", "a:b ", ".a", "a.", "a", "A"),
    *("\u00e9", "e\u0301", "\u00c9", "\u00e9%", "\ufb01", "fi", "CON", "con", "%43ON", "nul.jsonl"),
    *("a\0", "a\n", "~", "-rf", "$HOME", "\u202ea", "a.jsonl", ".a.jsonl.new"),
    *("../../etc/passwd", "/etc/passwd", ".archive", ".archive/a", "..."),
    *(LONG, LONG + "y", HASHED, "\u00e9" * 150, "\u5b57" * 100),
)


@pytest.fixture
def deleted(sessions: Sessions) -> Sessions:
    sessions.add("s", "user", "a")
    sessions.delete("s")
    return sessions


def test_keys_that_look_alike_have_logs_of_their_own(sessions: Sessions, folder: Path) -> None:
    for key in ALIKE:
        sessions.add(key, "user", key)
        sessions.truncate(key, 0)
        sessions.add(key, "user", f"{key} again")
        sessions.vacuum(key)
    cold = Memory(str(folder.parent)).sessions
    assert {key: [each.text for each in cold.history(key)] for key in ALIKE} == {
        key: [f"{key} again"] for key in ALIKE
    }
    assert sorted(each.key for each in cold.list()) == sorted(ALIKE)
    assert cold.check() == []
    above = folder.parent
    assert {each.relative_to(above).parts[0] for each in above.rglob("*")} == {".mdmem", "sessions"}


@given(KEYS, KEYS)
def test_no_two_keys_share_a_name_and_none_is_a_path(one: str, other: str) -> None:
    try:
        name = name_of(one)
    except Usage:
        assert one in {".", ".."}
        return
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name.encode()) <= 200
    for each in (other, name, f"{one}x", one.upper(), one[:-1]):
        if each not in {one, "", ".", ".."}:
            assert name_of(each) != name or each.encode() == one.encode()


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KEYS.filter(lambda key: key not in {".", ".."}))
def test_any_key_keeps_its_messages(sessions: Sessions, key: str) -> None:
    sessions.add(key, "user", key)
    assert sessions.history(key)[-1].text == key
    sessions.clear(key)
    sessions.vacuum(key, purge=True)
    assert sessions.history(key) == []


@cases("key", ["", ".", "..", "\ud800", None, 5, b"s", ["s"]])
def test_an_impossible_key_is_refused_by_every_verb(sessions: Sessions, key: Any, vault_root: Path) -> None:
    for verb, *arguments in (
        ("add", "user", "x"),
        ("add_message", {"role": "user"}),
        ("extend", []),
        ("set_history", []),
        ("set_summary", "x"),
        ("truncate", 1),
        ("pop",),
        ("clear",),
        ("history",),
        ("message", 1),
        ("summary",),
        ("alias", "s"),
        ("resolve",),
        ("delete",),
        ("restore",),
        ("vacuum",),
        ("save",),
    ):
        with pytest.raises(Usage if isinstance(key, str) else TypeError):
            getattr(sessions, verb)(key, *arguments)
    assert not (vault_root / "sessions").exists()


def test_sessions_of_other_scopes_are_out_of_reach(vault_root: Path) -> None:
    """The same key in each: four sessions, and no name of one leads to another."""
    scopes = (None, Scope(user="alice"), Scope(user="alicebob"), Scope(user="alice", project="p"))
    own = {scope: Memory(str(vault_root), scope).sessions for scope in scopes}
    for number, sessions in enumerate(own.values()):
        sessions.add("s", "user", f"{number}")
    for number, sessions in enumerate(own.values()):
        assert [each.text for each in sessions.history("s")] == [f"{number}"]
        assert [each.key for each in sessions.list()] == ["s"]
        for key in ("../../sessions/s", "users/alice/sessions/s", "../s"):
            assert sessions.history(key) == []
    assert {each.relative_to(vault_root).as_posix() for each in vault_root.rglob("*.jsonl")} == {
        "sessions/s.jsonl",
        "users/alice/sessions/s.jsonl",
        "users/alicebob/sessions/s.jsonl",
        "users/alice/projects/p/sessions/s.jsonl",
    }


def test_a_log_that_says_it_is_an_alias_leads_nowhere_else(vault_root: Path, folder: Path) -> None:
    """What came with the files names a key and not a path."""
    alice = Memory(str(vault_root), Scope(user="alice")).sessions
    Memory(str(vault_root)).sessions.add("s", "user", "of everybody")
    alice.add("t", "user", "x")
    log = vault_root / "users/alice/sessions/t.jsonl"
    with open(log, "ab") as file:
        file.write(b'{"seq":2,"at":"","alias_of":"../../../sessions/s"}\n')
    assert alice.history("t") == []
    alice.add("t", "user", "own")
    assert [each.text for each in Memory(str(vault_root)).sessions.history("s")] == ["of everybody"]
    assert [each.name for each in folder.iterdir()] == ["s.jsonl"]


def test_aliases_that_go_round_in_a_circle_are_refused(sessions: Sessions, folder: Path) -> None:
    for one, other in ("ab", "ba"):
        sessions.add(one, "user", "x")
        with open(folder / f"{one}.jsonl", "ab") as file:
            file.write(b'{"seq":2,"at":"","alias_of":"%s"}\n' % other.encode())
    for verb in (sessions.history, sessions.resolve, sessions.pop):
        with pytest.raises(SessionConflict):
            verb("a")


# -- the archive ------------------------------------------------------------------------------------------


def test_a_deleted_session_comes_back_once(deleted: Sessions) -> None:
    assert deleted.history("s") == []
    deleted.restore("s")
    assert [each.text for each in deleted.history("s")] == ["a"]
    with pytest.raises(NamedNotFound):
        deleted.restore("s")


def test_what_was_deleted_last_comes_back_first(deleted: Sessions) -> None:
    deleted.add("s", "user", "b")
    with pytest.raises(AlreadyExists):
        deleted.restore("s")
    deleted.delete("s")
    deleted.restore("s")
    assert [each.text for each in deleted.history("s")] == ["b"]


def test_what_a_vacuum_left_out_is_answered_until_it_is_purged(sessions: Sessions, folder: Path) -> None:
    sessions.extend("s", [{"role": "user", "content": letter} for letter in "abc"])
    sessions.truncate("s", 1)
    sessions.vacuum("s")
    assert sessions.message("s", 1).text == "a"
    sessions.vacuum("s", purge=True)
    assert [*(folder / ".archive/s").iterdir()] == []
    with pytest.raises(NamedNotFound):
        sessions.message("s", 1)
    assert sessions.message("s", 3).text == "c"


def test_the_archive_answers_for_its_own_log_alone(sessions: Sessions) -> None:
    """A session that was made again has other messages under the same numbers."""
    sessions.extend("s", [{"role": "user", "content": letter} for letter in "abc"])
    sessions.truncate("s", 1)
    sessions.vacuum("s")
    sessions.delete("s")
    sessions.extend("s", [{"role": "user", "content": letter} for letter in "xy"])
    sessions.pop("s")
    sessions.vacuum("s")
    assert [sessions.message("s", number).text for number in (1, 2)] == ["x", "y"]
    with pytest.raises(NamedNotFound):
        sessions.message("s", 3)


def test_purging_takes_what_was_deleted_as_well(deleted: Sessions) -> None:
    deleted.vacuum("s", purge=True)
    with pytest.raises(NamedNotFound):
        deleted.restore("s")


def test_a_line_that_is_too_long_changes_nothing(sessions: Sessions, folder: Path) -> None:
    (folder.parent / ".mdmem/config.toml").write_text("[sessions]\nmax_line_bytes = 300\n")
    small = Memory(str(folder.parent)).sessions
    small.add("s", "user", "a")
    before = (folder / "s.jsonl").read_bytes()
    with pytest.raises(LimitReached):
        small.add("s", "user", "x" * 300)
    assert (folder / "s.jsonl").read_bytes() == before
    assert [each.text for each in sessions.history("s")] == ["a"]


def test_what_is_remembered_has_a_bound(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdmem.conversations.log.logs._MOST_KNOWN", 3)
    for number in range(10):
        sessions.add(f"{number}", "user", "x")
    assert [each.messages for each in sessions.list()] == [1] * 10
    assert len(sessions.logs._known) == 3
    sessions.close()
    assert sessions.history("0")[0].text == "x"


@pytest.mark.parametrize(
    "place", ["sessions", "sessions/s.jsonl", "sessions/.archive", "sessions/.archive/s"]
)
def test_links_in_the_place_of_a_log_or_a_folder_are_refused(vault_root: Path, place: str) -> None:
    outside = vault_root.parent / "outside"
    outside.mkdir()
    (outside / "s.jsonl").write_bytes(b"")
    sessions = Memory(str(vault_root)).sessions
    path = vault_root / place
    if "archive" in place:
        sessions.add("s", "user", "x")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(outside / "s.jsonl" if place.endswith("jsonl") else outside, path)
    with pytest.raises(MdmemError):
        (sessions.delete if "archive" in place else sessions.pop)("s")
    assert [(each.name, each.read_bytes()) for each in outside.iterdir()] == [("s.jsonl", b"")]


def test_what_is_bound_to_a_thread_reads_no_session_of_others(sessions: Sessions, vault_root: Path) -> None:
    for key in ("a", "other"):
        sessions.add(key, "user", "a word")
    sessions.alias("a", "mine")
    sessions.alias("b", "mine")
    bound = Memory(str(vault_root)).of_thread("a").sessions
    assert {each.key for each in bound.list()} == {"a", "mine"}
    for found in (bound.grep("word", all=True), bound.search("word", all=True)):
        assert {hit.key for hit in found.hits} == {"mine"}
    assert len(bound.history("a")) == 1
    for ask in (bound.history, bound.delete, lambda key: bound.add(key, "user", "more")):
        with pytest.raises(PathRefused, match="another thread"):
            ask("other")


# -- large logs -------------------------------------------------------------------------------------------

HUGE = 40 << 30  # bytes, of which a disk holds next to nothing


@pytest.mark.parametrize("is_written_behind", [False, True])
def test_a_sparse_log_is_read_and_written_beside_its_hole(
    sessions: Sessions, folder: Path, is_written_behind: bool
) -> None:
    for number in range(9):
        sessions.add("s", "user", f"word {number}")
    sessions.add("small", "user", "a word")
    os.truncate(folder / "s.jsonl", HUGE)
    cold = Memory(str(folder.parent)).sessions
    if is_written_behind:
        assert cold.add("s", "user", "word 9") == 10
        cold = Memory(str(folder.parent)).sessions
    said = [f"word {number}" for number in range(9 + is_written_behind)]
    assert [each.text for each in cold.history("s", limit=3)] == said[-3:]
    assert [each.text for each in cold.history("s")] == said
    assert [(each.key, each.messages) for each in cold.list()] == [("s", len(said)), ("small", 1)]
    assert cold.message("s", 4).text == "word 3"
    for found in (
        cold.grep("word", all=True),
        cold.search("word", all=True),
        cold.grep("w.r", all=True, regex=True),
    ):
        assert [hit.key for hit in found.hits] == ["small"]
        assert [note for note in found.notes if "sessions/s.jsonl" in note and "max_log_bytes" in note]
    assert [(each.path, each.code, each.severity) for each in cold.check()] == [
        ("sessions/s.jsonl", "log-too-large", "warning")
    ]
    assert cold.check(fix=True) == cold.check()
    assert (folder / "s.jsonl").stat().st_size >= HUGE  # nobody asked for it
    assert cold.check("s", fix=True) == []
    assert (folder / "s.jsonl").stat().st_size < 10_000
    assert [each.text for each in cold.history("s")] == said
    assert len(cold.grep("word", "s").hits) == len(said)


def test_a_log_of_nothing_but_a_hole_is_neither_read_nor_written(sessions: Sessions, folder: Path) -> None:
    folder.mkdir()
    (folder / "s.jsonl").touch()
    os.truncate(folder / "s.jsonl", HUGE)
    assert sessions.list() == []
    for ask in (lambda: sessions.history("s"), lambda: sessions.add("s", "user", "a")):
        with pytest.raises(SessionConflict, match=r"s\.jsonl"):
            ask()
    assert [each.code for each in sessions.check()] == ["log-too-large"]
    assert [each.code for each in sessions.check("s")] == ["session-conflict"]


@pytest.fixture
def large(vault_root: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    """The sessions of a vault where logs above 20,000 bytes are large; snapshots stand in them."""
    monkeypatch.setattr("mdmem.conversations.log.state.SNAPSHOT_BYTES", 4_000)
    monkeypatch.setattr("mdmem.conversations.log.logs._LEAST_END", 0)
    (vault_root / ".mdmem/config.toml").write_text("[sessions]\nmax_log_bytes = 20000\n")
    return Memory(str(vault_root)).sessions


def test_of_a_large_log_only_the_end_is_read_unasked(
    large: Sessions, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, more = (1_200, "") if speed.is_all else (200, " and more" * 25)
    for number in range(count):
        said = [{"role": "user", "content": f"word {number}{more}"}]
        large.extend("s", said if number % 100 == 0 else said * 20)
    large.add("small", "user", "a word")
    size, read = (folder / "s.jsonl").stat().st_size, list[int]()
    pread = os.pread

    def counted(descriptor: int, count: int, at: int) -> bytes:
        data = pread(descriptor, count, at)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    looks: dict[str, Any] = {
        "list": lambda cold: [each.problem for each in cold.list()],
        "info": lambda cold: cold.info("s").problem,
        "history": lambda cold: cold.history("s", limit=2)[0].role,
        "add": lambda cold: cold.add("s", "user", "more") and "",
        "grep": lambda cold: [hit.key for hit in cold.grep("word", all=True).hits],
        "search": lambda cold: [hit.key for hit in cold.search("word", all=True).hits],
        "check": lambda cold: [each.code for each in cold.check()],
    }
    told = {}
    for name, look in looks.items():
        read.clear()
        told[name] = look(Memory(str(folder.parent)).sessions)
        assert sum(read) < size / 3, name
    assert told == {
        "list": ["", ""],
        "info": "",
        "history": "user",
        "add": "",
        "grep": ["small"],
        "search": ["small"],
        "check": ["log-too-large"],
    }
    asked = Memory(str(folder.parent)).sessions
    assert asked.check("s") == []
    assert asked.search("word", "s", limit=1).hits


def test_a_large_log_whose_end_says_too_little_is_named_and_mended(large: Sessions, folder: Path) -> None:
    """As another program leaves one: without snapshots."""
    folder.mkdir()
    lines = [
        b'{"seq":%d,"at":"","messages":[{"role":"user","content":"%d"}]}' % (n, n) for n in range(1, 3_000)
    ]
    header = write_header(LogHeader("abc", "s"))
    (folder / "s.jsonl").write_bytes(b"".join(line + b"\n" for line in (header, *lines)))
    (info,) = large.list()
    assert (info.key, info.messages) == ("s", 0)
    assert "sessions/s.jsonl" in info.problem
    for ask in (
        lambda: large.add("s", "user", "a"),
        lambda: large.history("s", limit=1),
        lambda: large.info("s"),
    ):
        with pytest.raises(LimitReached) as refused:
            ask()
        assert "sessions check" in refused.value.hint
    assert len(large.history("s")) == 2_999
    large.close()
    assert [each.code for each in large.check("s")] == ["limit-reached"]
    assert large.check("s", fix=True) == []
    cold = Memory(str(folder.parent)).sessions
    assert cold.history("s", limit=1)[0].text == "2999"
    assert (cold.add("s", "user", "3000") or 0) > 2_999


def test_a_long_log_is_checked_compacted_and_mended_line_by_line(
    sessions: Sessions, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held of a line that was read is some bytes at most."""
    folder.mkdir()
    few, many = 4_000, 8_000  # both far above what is read, and what Python keeps of freed tuples, at once
    if not speed.is_all:
        few, many = 2_400, 3_200
        monkeypatch.setattr("mdmem.vault.log.CHUNK", 1 << 12)
        for name in ("vault.log._BLOCK_LINES", "diagnostic.MOST_TOLD"):
            monkeypatch.setattr(f"mdmem.{name}", 50)
    for count in (1, few, many):
        with open(folder / f"{count}.jsonl", "wb") as file:
            file.write(write_header(LogHeader("abc", f"{count}")) + b"\n")
            for number in range(1, count + 1):
                said = b'{"role":"%s","content":"message %d"}' % (b"user", number)
                file.write(b'{"seq":%d,"at":"2026-05-04T10:00:00Z","messages":[%s]}\n' % (number, said))
            file.write(b"junk\n" * count)
    asks: list[Callable[[str], Any]] = [
        sessions.check,
        sessions.info,
        *([lambda key: sessions.compact(key, 10**6)] if speed.is_all else []),
        lambda key: sessions.check(key, fix=True),
    ]
    for ask in asks:
        ask("1")  # what is imported and cached for the first time does not count
    tracemalloc.start()
    try:
        for ask in asks:
            peaks = []
            for count in (few, many):
                sessions.close()
                gc.collect()  # one in between would let what Python keeps of freed tuples count twice
                gc.disable()
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                ask(f"{count}")
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
            assert peaks[1] - peaks[0] < 60 * (many - few)
    finally:
        gc.enable()
        tracemalloc.stop()
    assert len(sessions.history(f"{many}")) == many
