"""Whose which log is: no two keys share one, none leaves its namespace; and the archive."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.errors import (
    AlreadyExists,
    LimitReached,
    MdmemError,
    NamedNotFound,
    PathRefused,
    SessionConflict,
    Usage,
)
from mdmem.memory.memory import Memory
from mdmem.sessions.logs import name_of
from mdmem.vault.paths import Scope

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.sessions.sessions import Sessions

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


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KEYS.filter(lambda key: key not in {".", ".."}))
def test_any_key_keeps_its_messages(sessions: Sessions, key: str) -> None:
    sessions.add(key, "user", key)
    assert sessions.history(key)[-1].text == key
    sessions.clear(key)
    sessions.vacuum(key, purge=True)
    assert sessions.history(key) == []


@pytest.mark.parametrize("key", ["", ".", "..", "\ud800", None, 5, b"s", ["s"]])
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
        with pytest.raises(Usage):
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
    monkeypatch.setattr("mdmem.sessions.logs._MOST_KNOWN", 3)
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
    for key in ("a", "b", "mine", "other"):
        sessions.add(key, "user", "a word")
    sessions.alias("a", "b")
    sessions.alias("b", "mine")
    bound = Memory(str(vault_root)).of_thread("a").sessions
    assert {each.key for each in bound.list()} == {"a", "b", "mine"}
    for found in (bound.grep("word", all=True), bound.search("word", all=True)):
        assert "mine" in {hit.key for hit in found.hits} <= {"a", "b", "mine"}
    assert len(bound.history("a")) == 1
    for ask in (bound.history, bound.delete, lambda key: bound.add(key, "user", "more")):
        with pytest.raises(PathRefused, match="another thread"):
            ask("other")
