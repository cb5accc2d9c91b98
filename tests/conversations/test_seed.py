"""What the session store of the seeds promised, and each thing in which it failed."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from mdmem.errors import SessionConflict, Usage
from mdmem.facade.memory import Memory
from tests import speed

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.conversations.sessions import Sessions

THOUGHT = {"role": "assistant", "content": " ", "reasoning_content": "Let me think."}


def texts(sessions: Sessions, key: str) -> list[str]:
    return [message.text for message in sessions.history(key)]


def add(sessions: Sessions, key: str, said: str) -> None:
    """One message for each letter."""
    for letter in said:
        sessions.add(key, "user", letter)


def data(sessions: Sessions, key: str) -> list[dict[str, object]]:
    return [dict(message.data) for message in sessions.history(key)]


# -- adding and reading -----------------------------------------------------------------------------------


def test_basic_roundtrip(sessions: Sessions) -> None:
    sessions.add("s", "user", "hello")
    sessions.add("s", "assistant", "hi")
    found = sessions.history("s")
    assert [(each.role, each.text, each.seq) for each in found] == [
        ("user", "hello", 1),
        ("assistant", "hi", 2),
    ]


def test_a_message_makes_its_session(sessions: Sessions, folder: Path) -> None:
    sessions.add_message("new", {"role": "user", "content": "x"})
    assert [each.key for each in sessions.list()] == ["new"]
    assert (folder / "new.jsonl").exists()


def test_tool_calls_and_their_ids_come_back(sessions: Sessions) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
    given: list[dict[str, object]] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "data", "tool_call_id": "c1"},
    ]
    sessions.extend("s", given)
    assert data(sessions, "s") == given
    asked, answered = sessions.history("s")
    assert [(each.id, each.name) for each in asked.calls] == [("c1", "read")]
    assert [(each.id, each.text) for each in answered.answers] == [("c1", "data")]


def test_the_name_of_the_model_is_kept(sessions: Sessions) -> None:
    given = {"role": "assistant", "content": "x", "model_name": "m-1", "reasoning_content": "r"}
    sessions.add_message("s", given)
    assert data(sessions, "s") == [given]


def test_a_transient_thought_is_not_added(sessions: Sessions) -> None:
    sessions.add("s", "user", "q")
    assert sessions.add_message("s", THOUGHT) is None
    sessions.add("s", "assistant", "a")
    assert texts(sessions, "s") == ["q", "a"]


def test_a_transient_thought_is_not_put_in_the_history(sessions: Sessions) -> None:
    assert sessions.set_history("s", [{"role": "user", "content": "q"}, THOUGHT]) == [1, None]
    assert texts(sessions, "s") == ["q"]


@pytest.mark.parametrize("kept", ["tool_calls", "media", "attachments", "tool_call_id"])
def test_a_thought_with_something_to_keep_is_kept(sessions: Sessions, kept: str) -> None:
    sessions.add_message("s", {**THOUGHT, kept: "x" if kept == "tool_call_id" else ["x"]})
    assert len(sessions.history("s")) == 1


def test_a_session_that_is_not_there_is_empty(sessions: Sessions, folder: Path) -> None:
    assert (sessions.history("none"), sessions.summary("none"), sessions.pop("none")) == ([], "", None)
    sessions.truncate("none", 3)
    sessions.clear("none")
    assert not sessions.vacuum("none")
    assert not sessions.delete("none")
    assert sessions.list() == []
    assert not folder.exists()


def test_messages_are_in_the_order_of_adding_whatever_their_clocks_say(sessions: Sessions) -> None:
    for letter, hour in zip("abc", ("03", "01", "02"), strict=True):
        said = {"role": "user", "content": letter, "created_at": f"2026-01-01T{hour}:00:00Z"}
        sessions.add_message("s", said)
    assert texts(sessions, "s") == ["a", "b", "c"]


def test_a_summary_is_set_twice(sessions: Sessions) -> None:
    add(sessions, "s", "a")
    sessions.set_summary("s", "first")
    assert sessions.summary("s") == "first"
    sessions.set_summary("s", "second")
    assert sessions.summary("s") == "second"
    assert texts(sessions, "s") == ["a"]


def test_created_at_is_set_where_it_is_missing(sessions: Sessions) -> None:
    add(sessions, "s", "a")
    (message,) = sessions.history("s")
    assert message.created_at.endswith("Z")
    assert "created_at" not in message.data


def test_created_at_is_kept_where_it_is_given(sessions: Sessions) -> None:
    sessions.add_message("s", {"role": "user", "content": "a", "created_at": "2001-02-03T04:05:06+07:00"})
    assert sessions.history("s")[0].created_at == "2001-02-03T04:05:06+07:00"


# -- taking out of the history ----------------------------------------------------------------------------


def test_the_last_messages_are_kept(sessions: Sessions) -> None:
    add(sessions, "s", "abcdefghij")
    sessions.truncate("s", 4)
    assert texts(sessions, "s") == list("ghij")


@pytest.mark.parametrize("keep", [0, -1])
def test_none_is_kept(sessions: Sessions, keep: int) -> None:
    add(sessions, "s", "abc")
    sessions.truncate("s", keep)
    assert texts(sessions, "s") == []


def test_more_are_kept_than_there_are(sessions: Sessions, folder: Path) -> None:
    add(sessions, "s", "abc")
    before = (folder / "s.jsonl").read_bytes()
    sessions.truncate("s", 10)
    assert (folder / "s.jsonl").read_bytes() == before


def test_a_history_replaces_all(sessions: Sessions) -> None:
    add(sessions, "s", "abc")
    sessions.set_history("s", [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}])
    assert texts(sessions, "s") == ["x", "y"]


def test_a_history_begins_anew_after_a_truncation(sessions: Sessions) -> None:
    add(sessions, "s", "abcde")
    sessions.truncate("s", 1)
    sessions.set_history("s", [{"role": "user", "content": letter} for letter in "xyz"])
    assert texts(sessions, "s") == ["x", "y", "z"]
    sessions.truncate("s", 2)
    assert texts(sessions, "s") == ["y", "z"]


def test_keeping_the_last_counts_what_is_there_and_not_a_counter(sessions: Sessions, folder: Path) -> None:
    """A line of another process, of which this one knows nothing yet (a stale count)."""
    add(sessions, "s", "abc")
    add(Memory(str(folder.parent)).sessions, "s", "de")
    sessions.truncate("s", 2)
    assert texts(sessions, "s") == ["d", "e"]


def test_keeping_the_last_does_not_count_transient_thoughts(sessions: Sessions) -> None:
    add(sessions, "s", "ab")
    sessions.add_message("s", THOUGHT)
    add(sessions, "s", "c")
    sessions.truncate("s", 2)
    assert texts(sessions, "s") == ["b", "c"]


# -- vacuum -----------------------------------------------------------------------------------------------


def test_a_vacuum_removes_what_was_truncated(sessions: Sessions, folder: Path) -> None:
    add(sessions, "s", "abcdef")
    sessions.truncate("s", 2)
    assert sessions.vacuum("s")
    assert texts(sessions, "s") == ["e", "f"]
    assert b'"content":"a"' not in (folder / "s.jsonl").read_bytes()


def test_a_vacuum_with_nothing_to_do_does_nothing(sessions: Sessions, folder: Path) -> None:
    add(sessions, "s", "abc")
    before = (folder / "s.jsonl").read_bytes()
    assert not sessions.vacuum("s")
    assert (folder / "s.jsonl").read_bytes() == before
    sessions.truncate("s", 1)
    assert (sessions.vacuum("s"), sessions.vacuum("s")) == (True, False)


def test_a_message_is_added_after_a_vacuum(sessions: Sessions) -> None:
    add(sessions, "s", "abcdefgh")
    sessions.truncate("s", 2)
    sessions.vacuum("s")
    add(sessions, "s", "i")
    assert texts(sessions, "s") == ["g", "h", "i"]


# -- several at once, and crashes -------------------------------------------------------------------------


def test_a_partial_line_is_passed_over(sessions: Sessions, folder: Path) -> None:
    add(sessions, "s", "ab")
    with open(folder / "s.jsonl", "ab") as file:
        file.write(b'{"seq":3,"at":"2026-01-01T00:00:00Z","messages":[{"role":"us')
    assert texts(Memory(str(folder.parent)).sessions, "s") == ["a", "b"]


def test_another_instance_reads_the_same(sessions: Sessions, folder: Path) -> None:
    add(sessions, "s", "abc")
    sessions.set_summary("s", "sum")
    sessions.truncate("s", 2)
    other = Memory(str(folder.parent)).sessions
    assert (texts(other, "s"), other.summary("s")) == (["b", "c"], "sum")


def together(*works: object) -> None:
    """Run each in a thread of its own, and raise what one of them raised."""
    failures: list[BaseException] = []

    def run(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - it is raised in the test
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_add_and_read_at_once(sessions: Sessions) -> None:
    """10 threads of 20 messages each, and one that reads all the time."""
    done = threading.Event()

    def read() -> None:
        count = 0
        while not done.is_set():
            found = sessions.history("s")
            assert len(found) >= count
            assert [each.seq for each in found] == list(range(1, len(found) + 1))
            count = len(found)

    def write() -> None:
        add(sessions, "s", "abcdefghijklmnopqrst")

    reader = threading.Thread(target=read)
    reader.start()
    together(*[write] * 10)
    done.set()
    reader.join()
    assert len(sessions.history("s")) == 200


def test_summaries_and_truncations_race_with_messages(sessions: Sessions) -> None:
    def write() -> None:
        for number in range(50):
            sessions.add("s", "user", f"{number}")

    def truncate() -> None:
        for number in range(10):
            sessions.set_summary("s", f"summary {number}")
            sessions.truncate("s", 5)

    together(write, truncate)
    said = [int(text) for text in texts(sessions, "s")]
    assert said == list(range(50))[-len(said) :]
    assert len(said) >= 5
    assert sessions.summary("s") == "summary 9"


def test_sessions_are_isolated(sessions: Sessions) -> None:
    add(sessions, "one", "ab")
    add(sessions, "two", "c")
    sessions.set_summary("one", "of one")
    sessions.clear("two")
    assert (texts(sessions, "one"), texts(sessions, "two")) == (["a", "b"], [])
    assert sessions.summary("two") == ""


# -- other names ------------------------------------------------------------------------------------------


def test_a_session_is_found_by_its_alias(sessions: Sessions) -> None:
    add(sessions, "sk_v1_main", "ab")
    sessions.alias("agent:main", "sk_v1_main")
    assert sessions.resolve("agent:main") == "sk_v1_main"
    assert texts(sessions, "agent:main") == ["a", "b"]
    add(sessions, "agent:main", "c")
    assert texts(sessions, "sk_v1_main") == ["a", "b", "c"]


def test_an_alias_is_found_beside_a_broken_log(sessions: Sessions, folder: Path) -> None:
    add(sessions, "canonical", "a")
    sessions.alias("x:y", "canonical")
    (folder / "broken.jsonl").write_bytes(b'{"key": "x:y"')
    (folder / "worse.jsonl").write_bytes(b'{"key": 5}\n\xff\n')
    assert sessions.resolve("x:y") == "canonical"
    assert [each.key for each in sessions.list()] == ["canonical", "x:y"]


def test_an_alias_does_not_overwrite_a_history(sessions: Sessions) -> None:
    add(sessions, "alias", "ab")
    sessions.set_summary("alias", "of the alias")
    add(sessions, "canonical", "c")
    with pytest.raises(SessionConflict):
        sessions.alias("alias", "canonical")
    assert (texts(sessions, "canonical"), sessions.summary("canonical")) == (["c"], "")
    assert (texts(sessions, "alias"), sessions.summary("alias")) == (["a", "b"], "of the alias")


def test_an_alias_gives_its_messages_to_an_empty_session(sessions: Sessions) -> None:
    sessions.add_message("alias", {"role": "user", "content": "a", "created_at": "2026-01-01T00:00:00Z"})
    add(sessions, "alias", "b")
    sessions.set_summary("alias", "of the alias")
    said = [each.created_at for each in sessions.history("alias")]
    sessions.alias("alias", "canonical")
    assert (texts(sessions, "canonical"), sessions.summary("canonical")) == (["a", "b"], "of the alias")
    assert [each.created_at for each in sessions.history("canonical")] == said


def test_save_refuses_a_key_that_is_a_path(sessions: Sessions) -> None:
    for key in ("", ".", ".."):
        with pytest.raises(Usage):
            sessions.save(key)
    sessions.save("../../etc/passwd")  # a name like any other: what a path means is written in escapes


# -- what the seeds lost ----------------------------------------------------------------------------------


def test_the_message_after_a_torn_line_is_not_lost(sessions: Sessions, folder: Path) -> None:
    """1: a new line was glued to the fragment, and both were lost."""
    add(sessions, "s", "a")
    with open(folder / "s.jsonl", "ab") as file:
        file.write(b'{"seq":2,"at":"')
    add(sessions, "s", "b")
    assert texts(Memory(str(folder.parent)).sessions, "s") == ["a", "b"]


def test_a_line_of_many_megabytes_does_not_end_a_session(sessions: Sessions) -> None:
    """2: a line of over 10 MiB could be written, and nothing read any more."""
    large = "x" * ((11 if speed.is_all else 2) << 20)
    sessions.add("s", "user", large)
    add(sessions, "s", "b")
    assert texts(sessions, "s") == [large, "b"]
    sessions.truncate("s", 1)
    assert texts(sessions, "s") == ["b"]


@pytest.mark.parametrize("step", ["write", "link", "rename"])
def test_a_vacuum_that_ends_midway_brings_nothing_back(
    sessions: Sessions, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """3: what had been truncated was there again, for good."""
    add(sessions, "s", "abcd")
    sessions.truncate("s", 1)

    def refuse(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mdmem.vault.files.write_new" if step == "write" else f"os.{step}", refuse)
        with pytest.raises(KeyboardInterrupt):
            sessions.vacuum("s")
    other = Memory(str(folder.parent)).sessions
    assert texts(other, "s") == ["d"]
    assert other.vacuum("s")
    assert texts(other, "s") == ["d"]


def test_what_is_said_twice_with_an_id_is_stored_once(sessions: Sessions) -> None:
    """4: a broken file of counts made a stored message look refused, and the retry doubled it."""
    said = {"role": "user", "content": "a", "id": "m1"}
    assert [sessions.add_message("s", said) for _ in range(3)] == [1, 1, 1]
    with pytest.raises(SessionConflict):
        sessions.add_message("s", {**said, "content": "b"})
    assert texts(sessions, "s") == ["a"]


def test_keys_that_look_alike_share_nothing(sessions: Sessions) -> None:
    """6: a:b, a_b and a/b were one file; empty keys, . and .. were taken."""
    keys = ("a:b", "a_b", "a/b", "a\\b", "a%3Ab", "A:B")
    for key in keys:
        sessions.add(key, "user", key)
    assert {key: texts(sessions, key) for key in keys} == {key: [key] for key in keys}
    assert sorted(each.key for each in sessions.list()) == sorted(keys)


def test_lines_that_are_no_records_stay_in_the_archive(sessions: Sessions, folder: Path) -> None:
    """6: compaction dropped corrupt bytes for good."""
    add(sessions, "s", "ab")
    with open(folder / "s.jsonl", "ab") as file:
        file.write(b"\xff what a crash left\n")
    sessions.truncate("s", 1)
    sessions.vacuum("s")
    (archived,) = (folder / ".archive" / "s").iterdir()
    assert b"\xff what a crash left\n" in archived.read_bytes()


def test_a_log_tells_its_key_and_its_version(sessions: Sessions, folder: Path) -> None:
    """6: no version, no id, no key; a name was all."""
    add(sessions, "s", "a")
    header = json.loads((folder / "s.jsonl").read_bytes().splitlines()[0])
    assert {**header, "log": ""} == {"seq": 0, "log": "", "key": "s", "version": 1, "vacuumed": 0}
    (folder / "t.jsonl").write_bytes((folder / "s.jsonl").read_bytes())
    with pytest.raises(SessionConflict):
        sessions.history("t")
