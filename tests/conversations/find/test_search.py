"""Ranked search in conversations is never behind their logs, and tells nothing of other sessions."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import mdmem
from mdmem.conversations.find.find import SessionHits
from mdmem.conversations.log.record import LogRecord, RunSummary
from mdmem.conversations.sessions import Sessions
from mdmem.errors import PathRefused, Usage
from mdmem.facade.memory import Memory, open as open_memory
from tests import speed
from tests.speed import examples

WORDS = [f"{first}{second}" for first in ("ba", "do", "gu", "ki") for second in ("ran", "tel", "nos")]


@pytest.fixture
def sessions(memory: Memory) -> Sessions:
    return memory.sessions


def say(sessions: Sessions, key: str, *texts: str) -> None:
    sessions.extend(key, [{"role": "user", "content": text} for text in texts])


def found(hits: SessionHits) -> list[int]:
    return sorted(hit.seq for hit in hits.hits)


def test_the_message_that_fits_best_comes_first(sessions: Sessions) -> None:
    say(sessions, "k", "the weather is fine", "which database stores the weather", "database")
    hits = sessions.search("which database for weather", "k").hits
    assert (hits[0].seq, hits[0].key, hits[0].role) == (2, "k", "user")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_half_of_a_character_keeps_nothing_from_being_found(sessions: Sessions, memory: Memory) -> None:
    """JSON has one where a program has cut a text."""
    half = "\ud83d"
    message = {"role": "user", "name": half, "content": f"Which database {half} should we use?"}
    sessions.extend("cut", [message, {"role": half, "content": "A database."}])
    say(sessions, "whole", "Which database?")
    hits = sessions.search("database", "cut").hits
    assert {hit.seq: hit.snippet for hit in hits} == {1: message["content"], 2: "A database."}
    assert found(sessions.search("database", "whole")) == [1]
    observed = memory.observations.observe("cut")
    assert observed is not None
    assert r"Which database \<U+D83D> should we use?" in memory.show(observed.path).text
    memory.summaries.summarize("cut")
    assert r"Which database \<U+D83D> should we use?" in memory.summaries.text("cut")
    assert sessions.message("cut", 1).data == message


def test_what_was_just_said_is_found(sessions: Sessions, memory: Memory) -> None:
    for number in range(3):
        say(sessions, "k", f"word number{number}")
        assert found(sessions.search(f"number{number}", "k")) == [number + 1]
    say(open_memory(memory.vault.root).sessions, "k", "of another process")
    assert found(sessions.search("process", "k")) == [4]


def test_other_sessions_are_searched_where_none_is_named(sessions: Sessions) -> None:
    say(sessions, "mine", "the word")
    say(sessions, "mine/below", "the word")
    say(sessions, "other", "the word")
    sessions.alias("name", "mine")
    for key in ("mine", "name"):
        assert [hit.key for hit in sessions.search("word", key).hits] == ["mine"]
    assert sorted(hit.key for hit in sessions.search("word", all=True).hits) == [
        "mine",
        "mine/below",
        "other",
    ]
    assert sessions.search("word").hits == sessions.search("word", all=True).hits
    assert sessions.search("word", "nowhere").hits == ()
    with pytest.raises(Usage):
        sessions.search("word", "mine", all=True)
    assert (sessions.count_fitting("word"), sessions.count_fitting("none")) == (3, 0)


def test_what_others_said_does_not_show_in_a_score(sessions: Sessions) -> None:
    say(sessions, "mine", "the word", "another")
    before = sessions.search("word", "mine")
    say(sessions, "other", *["word"] * 30)
    assert sessions.search("word", all=True).left_out > 0
    assert sessions.search("word", "mine") == before


def test_other_namespaces_are_never_searched(tmp_path: Path) -> None:
    root = mdmem.init(tmp_path / "m").root
    users = [open_memory(root, mdmem.Scope(user=user)).sessions for user in ("ann", "bob")]
    for user in users:
        say(user, "k", "the word")
    for user in users:
        assert len(user.search("word", all=True).hits) == 1


def test_words_of_two_characters_and_chinese_are_found(sessions: Sessions) -> None:
    say(sessions, "k", "we go on", "我在日本工作", "other")
    assert found(sessions.search("go", "k")) == [1]
    assert found(sessions.search("日本", "k")) == [2]
    assert found(sessions.search("日", "k")) == [2]


def test_what_tools_are_given_and_answer_is_found(sessions: Sessions) -> None:
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "list the files"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "readme"}
    sessions.add("k", "assistant", [use])
    sessions.add("k", "user", [result])
    assert found(sessions.search("files", "k")) == [1]
    assert found(sessions.search("readme", "k")) == [2]


def test_summaries_are_found_with_their_depth(sessions: Sessions) -> None:
    say(sessions, "k", "a", "b")

    def build(conversation: Any) -> tuple[LogRecord, None]:
        seq = conversation.state.seq + 1
        summary = RunSummary(seq=seq, depth=0, first=1, last=2, messages=2, text="the letters")
        return LogRecord(seq=0, summary=summary), None

    sessions.logs.commit("k", build)
    (hit,) = sessions.search("letters", "k").hits
    assert (hit.seq, hit.role, hit.depth) == (3, "summary", 0)
    assert sessions.search("letters", "k", scope="message").hits == ()


def test_filters_are_as_in_exact_search(sessions: Sessions) -> None:
    for day, role in (("01", "user"), ("02", "assistant")):
        at = f"2026-05-{day}T00:00:00Z"
        sessions.add_message("k", {"role": role, "content": "word", "created_at": at})
    assert found(sessions.search("word", "k", role="user")) == [1]
    assert found(sessions.search("word type:assistant", "k")) == [2]
    assert found(sessions.search("word", "k", since="2026-05-02")) == [2]
    assert found(sessions.search("word", "k", before="2026-05-02")) == [1]
    assert found(sessions.search("word", "k", limit=1)) != []
    assert sessions.search("word", "k", limit=1).left_out == 1
    with pytest.raises(Usage):
        sessions.search("word", "k", limit=0)


def test_one_order_of_messages_whatever_the_limit(sessions: Sessions) -> None:
    """What was dropped since stands between them, and changes nothing."""
    rng = random.Random(22)
    count = 200 if speed.is_all else 60
    for key in ("k", "l"):
        say(sessions, key, *(" ".join(rng.choices(WORDS, k=rng.randint(3, 60))) for _ in range(count)))
        sessions.truncate(key, count * 3 // 4)
    for query in [*map(" ".join, pairwise(WORDS))][:: 1 if speed.is_all else 6]:
        for where in ("k", None):
            most = sessions.search(query, where, all=where is None, limit=200)
            for limit in (1, 5, 10, 50):
                hits = sessions.search(query, where, all=where is None, limit=limit)
                assert hits.hits == most.hits[:limit]
                assert len(hits.hits) + hits.left_out >= len(most.hits)


def test_what_is_no_longer_in_the_history_is_found_only_where_asked(sessions: Sessions) -> None:
    say(sessions, "k", *(f"word {number}" for number in range(60)), "another")
    sessions.truncate("k", 2)
    assert found(sessions.search("word", "k")) == [60]
    assert len(sessions.search("word", "k", dropped=True, limit=100).hits) == 60
    sessions.vacuum("k")
    assert found(sessions.search("word", "k", dropped=True)) == [60]
    say(sessions, "k", "a last word")
    assert len(sessions.search("word", "k").hits) == 2
    sessions.clear("k")
    assert sessions.search("word", "k").hits == ()


def test_races_a_session_made_again_is_indexed_from_its_start(sessions: Sessions) -> None:
    say(sessions, "k", "first", "second", "third")
    assert found(sessions.search("third", "k")) == [3]
    sessions.delete("k")
    assert sessions.search("third", "k").hits == ()
    say(sessions, "k", "fourth", "fifth", "sixth")
    assert found(sessions.search("fourth", "k")) == [1]
    assert sessions.search("third", "k").hits == ()


def test_races_a_log_that_another_program_put_in_the_place_is_indexed_from_its_start(
    memory: Memory, sessions: Sessions
) -> None:
    """Its id and its numbers are the same, and what it says is not."""
    say(sessions, "k", "first", "second")
    assert found(sessions.search("second", "k")) == [2]
    path = Path(memory.vault.root, "sessions", "k.jsonl")
    path.write_text(path.read_text().replace("second", "other"))
    assert found(sessions.search("other", "k")) == [2]
    assert sessions.search("second", "k").hits == ()


@pytest.mark.parametrize("lost", ["positions.json", "text", "all", "damaged"])
def test_an_index_that_is_lost_or_damaged_is_made_anew(memory: Memory, sessions: Sessions, lost: str) -> None:
    say(sessions, "k", "the word")
    assert found(sessions.search("word", "k")) == [1]
    (folder,) = Path(memory.vault.root, ".mdmem/local/sessions_index").iterdir()
    if lost == "all":
        shutil.rmtree(folder.parent)
    elif lost == "text":
        shutil.rmtree(folder / "text")
    elif lost == "damaged":
        (folder / "text" / "meta.json").write_text("{}")
    else:
        (folder / lost).write_text('{"commit": "x"}')
    assert found(sessions.search("word", "k")) == [1]
    say(sessions, "k", "one more word")
    assert found(sessions.search("word", "k")) == [1, 2]


def test_a_process_that_is_killed_while_it_indexes_leaves_nothing_behind(
    memory: Memory, sessions: Sessions
) -> None:
    say(sessions, "k", *(f"word w{number}" for number in range(40)))
    program = (
        "import os, sys; from mdmem.facade.memory import open\n"
        f"os.replace = lambda *_: os.kill(os.getpid(), {signal.SIGKILL.value})\n"
        "open(sys.argv[1]).sessions.search('word', 'k')"
    )
    ended = subprocess.run([sys.executable, "-c", program, memory.vault.root], check=False)
    assert ended.returncode == -signal.SIGKILL
    hits = sessions.search("word", "k", limit=100)
    assert (found(hits), hits.left_out) == (list(range(1, 41)), 0)


def test_what_is_long_is_found_in_all_its_parts(sessions: Sessions) -> None:
    say(sessions, "k", f"{'a b c ' * 3_000} needle {'x' * 20_000} end")
    for word in ("needle", "end"):
        (hit,) = sessions.search(word, "k").hits
        assert word in hit.snippet


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(30))
@given(
    query=st.text(max_size=30)
    | st.sampled_from(['"', "a OR b", "AND", "x*", "-", "(((", "a:b", "NEAR/2", "^"])
)
def test_seed_no_query_is_an_error(sessions: Sessions, query: str) -> None:
    if not sessions.history("k"):
        say(sessions, "k", "auth login", "x")
    assert isinstance(sessions.search(query, "k"), SessionHits)


def test_seed_words_of_a_query_need_not_all_be_there(sessions: Sessions) -> None:
    say(sessions, "k", "auth is on", "login is off", "nothing")
    assert found(sessions.search("auth OR login", "k")) == [1, 2]


def test_one_log_that_cannot_be_read_hides_no_other_one(sessions: Sessions, memory: Memory) -> None:
    sessions.add("a", "user", "a word")
    sessions.add("b", "user", "a word")
    assert len(sessions.search("word", all=True).hits) == 2  # both are indexed
    folder = Path(memory.vault.root, "sessions")
    (folder / "b.jsonl").rename(folder / "away")
    (folder / "b.jsonl").mkdir()
    (folder / "c.jsonl").symlink_to("/dev/zero")
    (folder / "d.jsonl").write_text('{"said": "word"}\n')
    for asked in (sessions.search, sessions.grep):
        found = asked("word", all=True)
        assert [hit.key for hit in found.hits] == ["a"]
        assert any("cannot be read: 3" in note for note in found.notes)
    with pytest.raises(PathRefused):
        sessions.search("word", "b")


def test_logs_that_were_not_written_since_are_not_opened_again(
    sessions: Sessions, audited: list[tuple[str, str]]
) -> None:
    for number in range(20):
        say(sessions, f"k{number}", "the word" if number == 7 else "another")
    assert [hit.key for hit in sessions.search("word", all=True).hits] == ["k7"]
    say(sessions, "k3", "a word")
    audited.clear()
    assert {hit.key for hit in sessions.search("word", all=True).hits} == {"k3", "k7"}
    assert {path for event, path in audited if path.endswith(".jsonl")} == {"k3.jsonl", "k7.jsonl"}
