"""Exact search in conversations: what holds a text or matches a pattern, and nothing of other sessions."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.conversations.find.find import SessionHits, parse_last, snippet
from mdmem.conversations.log.record import LogRecord, RunSummary
from mdmem.conversations.sessions import Sessions
from mdmem.errors import PatternInvalid, Usage
from mdmem.facade.memory import Memory
from tests.speed import examples
from tests.tables import cases


@pytest.fixture
def sessions(memory: Memory) -> Sessions:
    return memory.sessions


def say(sessions: Sessions, key: str, *texts: str) -> None:
    sessions.extend(
        key,
        [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)],
    )


def found(hits: SessionHits) -> list[int]:
    return [hit.seq for hit in hits.hits]


def summarise(sessions: Sessions, key: str, first: int, last: int, text: str, **more: Any) -> int:
    """Put a summary into a log, in the place of messages; its number."""

    def build(conversation: Any) -> tuple[LogRecord, int]:
        seq = conversation.state.seq + 1
        fields = {"depth": 0, "messages": last - first + 1, **more}
        return LogRecord(seq=0, summary=RunSummary(seq=seq, first=first, last=last, text=text, **fields)), seq

    return sessions.logs.commit(key, build)


@pytest.mark.parametrize("regex", [False, True])
def test_a_hit_says_where_who_when_and_what(sessions: Sessions, *, regex: bool) -> None:
    message = {"role": "user", "content": "Which\ndatabase?", "created_at": "2026-05-04T10:00:00Z"}
    sessions.add_message("k", message)
    (hit,) = sessions.grep("database", "k", regex=regex).hits
    assert (hit.key, hit.seq, hit.role, hit.time) == ("k", 1, "user", "2026-05-04T10:00:00Z")
    assert (hit.snippet, hit.depth) == ("Which database?", None)


@pytest.mark.parametrize("regex", [False, True])
def test_the_newest_come_first_and_the_others_are_counted(sessions: Sessions, *, regex: bool) -> None:
    for number in range(10):
        say(sessions, "k", f"a word {number}", "another")
    hits = sessions.grep("word", "k", limit=3, regex=regex)
    assert (found(hits), hits.left_out) == ([19, 17, 15], 7)


@pytest.mark.parametrize("regex", [False, True])
def test_other_sessions_are_searched_only_where_all_are_asked_for(sessions: Sessions, *, regex: bool) -> None:
    say(sessions, "mine", "the word")
    say(sessions, "other", "the word of another")
    assert [hit.key for hit in sessions.grep("word", "mine", regex=regex).hits] == ["mine"]
    assert {hit.key for hit in sessions.grep("word", all=True, regex=regex).hits} == {"other", "mine"}
    assert sessions.grep("word", "nowhere", regex=regex) == SessionHits(hits=())
    for key, every in ((None, False), ("mine", True)):
        with pytest.raises(Usage, match="one session, or all of them"):
            sessions.grep("word", key, all=every, regex=regex)


def test_of_all_sessions_the_newest_hits_come_first(sessions: Sessions) -> None:
    for key, day in (("a", "03"), ("b", "01"), ("c", "02")):
        at = f"2026-05-{day}T00:00:00Z"
        sessions.add_message(key, {"role": "user", "content": "word", "created_at": at})
    sessions.alias("d", "a")
    hits = sessions.grep("word", all=True, limit=2)
    assert ([hit.key for hit in hits.hits], hits.left_out) == (["a", "c"], 1)
    assert [hit.key for hit in sessions.grep("word", "d").hits] == ["a"]


def test_many_sessions_are_searched_by_one_ripgrep(
    sessions: Sessions, audited: list[tuple[str, str]]
) -> None:
    for number in range(20):
        say(sessions, f"k{number}", "another" if number % 10 else 'a "word"')
    audited.clear()
    assert {hit.key for hit in sessions.grep('A "WORD"', all=True).hits} == {"k0", "k10"}
    assert [event for event, _ in audited].count("subprocess.Popen") == 1


def test_what_tools_are_given_and_answer_is_found(sessions: Sessions) -> None:
    function = {"name": "read_file", "arguments": '{"path": "src/app.py"}'}
    sessions.extend(
        "k",
        [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": function}]},
            {"role": "tool", "tool_call_id": "c", "content": "def answer"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": 'ls "x"'}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": "out\nput"}],
                    }
                ],
            },
            {"type": "function_call", "name": "shell", "arguments": '{"cmd": 7}', "call_id": "f"},
            {"type": "function_call_output", "call_id": "f", "output": {"stdout": "seven"}},
        ],
    )
    asked = {"app.py": [1], "read_file": [1], "answer": [2], 'ls "x"': [3], "Bash": [3], "put": [4]}
    asked |= {"shell": [5], "seven": [6]}
    for pattern, expected in asked.items():
        assert found(sessions.grep(pattern, "k")) == expected, pattern
        assert found(sessions.grep(re.escape(pattern), "k", regex=True)) == expected, pattern


def test_what_only_the_form_of_the_log_holds_is_not_found(sessions: Sessions) -> None:
    say(sessions, "k", "a\tb", 'say "hi"')
    for pattern in ("content", "messages", "seq", "\\t", '\\"', "tool_use"):
        assert found(sessions.grep(pattern, "k")) == [], pattern


def test_the_case_counts_as_asked(sessions: Sessions) -> None:
    say(sessions, "k", "Straße ÜBER", "straße über")
    for regex in (False, True):
        assert found(sessions.grep("über", "k", regex=regex)) == [2, 1]
        assert found(sessions.grep("über", "k", regex=regex, case="exact")) == [2]
        assert found(sessions.grep("ÜBER", "k", regex=regex, case="smart")) == [1]
        assert found(sessions.grep("über", "k", regex=regex, case="smart")) == [2, 1]


def test_words_of_two_characters_and_chinese_are_found(sessions: Sessions) -> None:
    say(sessions, "k", "we go on", "我在日本工作")
    assert found(sessions.grep("go", "k")) == [1]
    assert found(sessions.grep("日本", "k")) == [2]
    assert found(sessions.grep("日.工", "k", regex=True)) == [2]


@cases(
    "pattern",
    ['"', "\\", "'", "a OR b", "NEAR(x)", "*", "-", "--", "-e", "%_", "(", "[", "x\ny", "\u2028", "{}", "\t"],
)
def test_seed_hostile_queries_are_texts_like_others(sessions: Sessions, pattern: str) -> None:
    sessions.delete("k")
    say(sessions, "k", f"before {pattern} behind", "nothing")
    assert found(sessions.grep(pattern, "k")) == [1]


def test_what_cannot_be_looked_for_is_refused(sessions: Sessions) -> None:
    say(sessions, "k", "a")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"pattern": ""}, "the pattern is empty"),
        ({"pattern": "a\0"}, "is not text"),
        ({"pattern": "\ud800"}, "is not text"),
        ({"pattern": "a" * 100_000}, "a pattern has at most"),
        ({"limit": 0}, "limit is 0"),
        ({"case": "odd"}, "case is ignore"),
        ({"scope": "odd"}, "scope is both"),
        ({"last": "soon"}, "a span is 2h"),
        ({"since": "soon"}, "since is a time"),
        ({"before": "soon"}, "before is a time"),
        ({"since": "2026-01-01", "last": "2h"}, "say the same"),
    ]
    for asked, reason in wrong:
        with pytest.raises(Usage, match=reason):
            sessions.grep(**{"pattern": "a", "key": "k", **asked})
    with pytest.raises(PatternInvalid):
        sessions.grep("(", "k", regex=True)


def test_seed_parse_last_duration() -> None:
    spans = {"2h": timedelta(hours=2), "3d": timedelta(days=3), "1w": timedelta(days=7)}
    spans |= {"1m": timedelta(days=30), " 2H ": timedelta(hours=2)}
    assert {text: parse_last(text) for text in spans} == spans
    for text in ("", "h", "2", "2y", "-2h", "2.5h", "2h3d", "9999999d"):
        with pytest.raises(Usage):
            parse_last(text)


@pytest.mark.parametrize("regex", [False, True])
def test_seed_filters_by_role_and_time(sessions: Sessions, *, regex: bool) -> None:
    now = datetime.now(UTC)
    for hours, role in ((100, "user"), (3, "assistant"), (1, "user")):
        at = (now - timedelta(hours=hours)).isoformat()
        sessions.add_message("k", {"role": role, "content": "word", "created_at": at})
    sessions.add_message("k", {"role": "user", "content": "word", "created_at": "yesterday"})

    def those(**asked: Any) -> list[int]:
        return found(sessions.grep("word", "k", regex=regex, **asked))

    assert those(role="user") == [4, 3, 1]
    assert those(last="2h") == [3]
    assert those(last="1d") == [3, 2]
    assert those(since=(now - timedelta(hours=4)).isoformat()) == [3, 2]
    assert those(before=(now - timedelta(hours=2)).replace(tzinfo=None).isoformat()) == [2, 1]
    assert those(since="2020-01-01", before="2020-01-02") == []


@pytest.mark.parametrize("regex", [False, True])
def test_summaries_are_found_with_their_depth(sessions: Sessions, *, regex: bool) -> None:
    say(sessions, "k", "a word", "b", "c", "d")
    leaf = summarise(sessions, "k", 1, 2, "a word about it", latest="2026-05-04T10:00:00Z")
    condensed = summarise(sessions, "k", 1, 4, "the word again", depth=1, of=(leaf,))

    def at(scope: Any) -> list[tuple[int, int | None]]:
        hits = sessions.grep("word", "k", scope=scope, regex=regex).hits
        return [(hit.seq, hit.depth) for hit in hits]

    assert at("both") == [(condensed, 1), (leaf, 0), (1, None)]
    assert at("summary") == [(condensed, 1), (leaf, 0)]
    assert at("message") == [(1, None)]
    (hit,) = sessions.grep("about", "k", regex=regex).hits
    assert (hit.role, hit.time) == ("summary", "2026-05-04T10:00:00Z")


@pytest.mark.parametrize("regex", [False, True])
def test_what_is_no_longer_in_the_history_is_found_only_where_asked(
    sessions: Sessions, *, regex: bool
) -> None:
    say(sessions, "k", "word a", "word b", "word c")
    summarise(sessions, "k", 1, 2, "word d")
    sessions.truncate("k", 1)

    def at(*, dropped: bool) -> list[int]:
        return found(sessions.grep("word", "k", dropped=dropped, regex=regex))

    assert (at(dropped=False), at(dropped=True)) == ([3], [4, 3, 2, 1])
    sessions.vacuum("k")
    assert at(dropped=False) == [3]
    assert sorted(at(dropped=True)) == [1, 2, 3, 4]
    sessions.vacuum("k", purge=True)
    assert at(dropped=True) == [3]
    sessions.clear("k")
    assert at(dropped=False) == []


def test_seed_a_cleared_conversation_shows_nothing(sessions: Sessions) -> None:
    say(sessions, "k", "word")
    summarise(sessions, "k", 1, 1, "word")
    sessions.clear("k")
    assert sessions.grep("word", "k") == SessionHits(hits=())


@pytest.mark.parametrize("regex", [False, True])
def test_one_word_in_many_messages_of_one_line_is_counted_by_message(
    sessions: Sessions, *, regex: bool
) -> None:
    say(sessions, "k", *["word and word\nand word"] * 50)
    hits = sessions.grep("word", "k", regex=regex)
    assert (found(hits), hits.left_out) == (list(range(50, 30, -1)), 30)


def test_a_line_that_is_no_record_is_passed_over(memory: Memory, sessions: Sessions) -> None:
    say(sessions, "k", "a word")
    with Path(memory.vault.root, "sessions", "k.jsonl").open("ab") as file:
        file.write(b'a word\n\xff\0word\n{"word')
    for regex in (False, True):
        assert found(sessions.grep("word", "k", regex=regex)) == [1]
    say(sessions, "k", "another word")
    for regex in (False, True):
        assert len(sessions.grep("word", "k", regex=regex).hits) == 2


def test_a_log_that_is_written_anew_while_it_is_searched_is_searched_as_it_was(
    memory: Memory, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(sessions, "k", "a", "b" * 20_000, "the word")
    real = os.stat

    def replaced(path: Any, *rest: Any, **more: Any) -> Any:
        if str(path).endswith("k.jsonl"):
            Path(memory.vault.root, "fresh").write_bytes(b"x" * 30 + Path(path).read_bytes())
            Path(memory.vault.root, "fresh").replace(path)
        return real(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", replaced)
        assert found(sessions.grep("word", "k")) == [3]


def test_a_snippet_is_one_line_around_what_was_found_and_never_long() -> None:
    text = "a" * 500 + "\n\nword " + "b" * 500
    shown = snippet(text, text.index("word"))
    assert shown.startswith("…aaa")
    assert shown.endswith("bbb…")
    assert "a word b" in shown
    assert len(shown) <= 242
    assert snippet("short", 0) == "short"


def spoken(messages: list[str]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in messages]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(
    messages=st.lists(st.text(max_size=30), min_size=1, max_size=8),
    pattern=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=3),
    is_taken=st.booleans(),
)
def test_a_literal_is_found_where_python_finds_it(
    sessions: Sessions, messages: list[str], pattern: str, *, is_taken: bool
) -> None:
    if is_taken:
        messages = [*messages, f"x{pattern}y"]
    sessions.set_history("k", spoken(messages))
    numbers = {message.seq: message.text for message in sessions.history("k")}
    wanted = [seq for seq, text in numbers.items() if pattern in text]
    assert found(sessions.grep(pattern, "k", case="exact")) == wanted[::-1]


def test_a_log_of_others_with_deep_values_stops_no_search(sessions: Sessions) -> None:
    sessions.add("s", "user", "needle")
    path = Path(sessions.logs.vault.root, "sessions", "s.jsonl")
    for depth in (300, 700, 950):
        value = '{"a":' * depth + '"needle"' + "}" * depth
        with path.open("a") as file:
            file.write(f'{{"seq":2,"at":"","messages":[{{"role":"user","content":{value}}}]}}\n')
    for regex in (False, True):
        assert [hit.seq for hit in sessions.grep("needle", "s", regex=regex).hits] == [1]
    assert [hit.seq for hit in sessions.search("needle", "s").hits] == [1]
    assert [message.seq for message in sessions.assemble("s", 500).messages] == [1]
