"""The verbs of sessions: what each takes, what it answers, and what the config lets be kept."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from mdmem.conversations.log import state as state_module
from mdmem.conversations.log.logs import fits, name_of
from mdmem.conversations.log.record import LogRecord, RunSummary
from mdmem.conversations.log.state import SAME_WITHIN
from mdmem.errors import ConfigInvalid, Invalid, NamedNotFound, SessionConflict, Usage
from mdmem.facade.memory import Memory
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mdmem.conversations.sessions import Sessions

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"


@pytest.fixture
def configured(vault_root: Path) -> Callable[[str], Sessions]:
    def make(text: str) -> Sessions:
        (vault_root / ".mdmem/config.toml").write_text(f"[sessions]\n{text}\n")
        return Memory(str(vault_root)).sessions

    return make


def texts(sessions: Sessions, key: str = "s") -> list[str]:
    return [message.text for message in sessions.history(key)]


def say(sessions: Sessions, said: str, key: str = "s") -> None:
    sessions.extend(key, [{"role": "user", "content": letter} for letter in said])


# -- what is asked for ------------------------------------------------------------------------------------


def test_the_history_since_a_number(sessions: Sessions) -> None:
    say(sessions, "abcde")
    sessions.truncate("s", 3)
    for since, last, expected in (
        (0, None, "cde"),
        (3, None, "de"),
        (5, None, ""),
        (99, None, ""),
        (-9, None, "cde"),
        (1, 2, "de"),
        (4, 2, "e"),
        (0, 0, ""),
        (0, -1, ""),
        (0, 99, "cde"),
    ):
        found = sessions.history("s", limit=last, after=since)
        assert "".join(each.text for each in found) == expected


@cases(
    "verb, arguments",
    [
        ("add", ("s", 5, "x")),
        ("add", ("s", "", "x")),
        ("add", ("s", "user", float("nan"))),
        ("add_message", ("s", "user")),
        ("add_message", ("s", None)),
        ("extend", ("s", [None])),
        ("extend", ("s", ["x"])),
        ("set_history", ("s", [{"content": "no role"}])),
        ("set_summary", ("s", None)),
        ("truncate", ("s", "5")),
        ("history", ("s", 1.5)),
        ("history", ("s", None, "x")),
        ("message", ("s", "one")),
    ],
)
def test_an_argument_that_means_nothing_is_refused(
    sessions: Sessions, verb: str, arguments: tuple[Any, ...], folder: Path
) -> None:
    with pytest.raises((Usage, TypeError, ValueError)):
        getattr(sessions, verb)(*arguments)
    assert not folder.exists()


def test_all_messages_are_added_or_none(sessions: Sessions) -> None:
    say(sessions, "a")
    with pytest.raises(Usage):
        sessions.extend("s", [{"role": "user", "content": "b"}, {"role": 5}])
    with pytest.raises(SessionConflict):
        sessions.extend("s", [{"role": "user", "id": "1"}, {"role": "assistant", "id": "1"}])
    assert texts(sessions) == ["a"]


def test_a_message_that_is_popped_is_given_back(sessions: Sessions) -> None:
    say(sessions, "ab")
    popped = [sessions.pop("s"), sessions.pop("s"), sessions.pop("s")]
    assert [each and each.text for each in popped] == ["b", "a", None]
    assert sessions.message("s", 2).text == "b"


def test_what_is_popped_again_and_again_stays_one_range(sessions: Sessions) -> None:
    say(sessions, "ab")
    for _ in range(20):
        say(sessions, "c")
        sessions.pop("s")
    with sessions.logs.opened("s") as opened:
        assert len(opened.state.dropped) == 1


def test_a_number_that_is_no_messages_is_not_found(sessions: Sessions) -> None:
    say(sessions, "a")
    sessions.set_summary("s", "x")
    for number in (0, 2, 3, -1):
        with pytest.raises(NamedNotFound):
            sessions.message("s", number)


# -- ids --------------------------------------------------------------------------------------------------


def test_an_id_is_known_among_the_last_thousand_messages(sessions: Sessions) -> None:
    first = {"role": "user", "content": "a", "id": "m1"}
    sessions.add_message("s", first)
    sessions.extend("s", [{"role": "user", "content": "x"}] * (SAME_WITHIN - 1))
    assert sessions.add_message("s", first) == 1
    sessions.add("s", "user", "one more")
    assert sessions.add_message("s", first) == SAME_WITHIN + 2
    assert Memory(sessions.logs.vault.root).sessions.add_message("s", first) == SAME_WITHIN + 2


def test_messages_with_ids_are_added_without_reading_what_is_known(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.extend("s", [{"role": "user", "content": "x" * 500, "id": f"{n}"} for n in range(2_000)])
    number = sessions.add_message("s", {"role": "user", "content": "x", "id": "a"})
    monkeypatch.setattr("mdmem.conversations.log.conversation.lines_back", None)
    assert sessions.add_message("s", {"role": "user", "content": "x", "id": "b"})
    assert sessions.add_message("s", {"role": "user", "content": "x", "id": "a"}) == number


def test_messages_without_an_id_are_never_the_same(sessions: Sessions) -> None:
    say(sessions, "aa")
    sessions.extend("s", [{"role": "user", "content": "b", "id": ""}] * 2)
    assert texts(sessions) == ["a", "a", "b", "b"]


# -- other names ------------------------------------------------------------------------------------------


def test_an_alias_works_in_both_directions_and_in_a_row(sessions: Sessions) -> None:
    say(sessions, "a", "old")
    sessions.alias("old", "new")
    sessions.alias("new", "newest")
    assert [sessions.resolve(key) for key in ("old", "new", "newest", "other")] == [*["newest"] * 3, "other"]
    for key in ("old", "new", "newest"):
        say(sessions, "x", key)
    assert texts(sessions, "old") == ["a", "x", "x", "x"]
    sessions.alias("old", "newest")  # it is one already
    for alias, key in (("newest", "old"), ("s", "s")):
        with pytest.raises(Usage):
            sessions.alias(alias, key)
    with pytest.raises(SessionConflict):
        sessions.alias("old", "another")


def test_of_two_sessions_with_messages_none_is_hidden(sessions: Sessions) -> None:
    say(sessions, "ab", "old")
    say(sessions, "c", "new")
    with pytest.raises(SessionConflict, match="messages"):
        sessions.alias("old", "new")
    assert (texts(sessions, "old"), texts(sessions, "new")) == (["a", "b"], ["c"])


def test_a_chain_of_aliases_is_collapsed_when_it_is_made(sessions: Sessions) -> None:
    say(sessions, "a", "end")
    sessions.alias("one", "middle")
    sessions.alias("two", "middle")
    sessions.alias("middle", "end")
    assert {each.key: each.alias_of for each in sessions.list()} == {
        "end": "",
        **dict.fromkeys(("one", "two", "middle"), "end"),
    }
    sessions.delete("middle")
    assert texts(sessions, "one") == ["a"]


def test_an_alias_can_be_a_session_again(sessions: Sessions) -> None:
    say(sessions, "a", "s")
    sessions.alias("t", "s")
    assert (sessions.unalias("t"), sessions.unalias("t"), sessions.unalias("never")) == (True, False, False)
    say(sessions, "b", "t")
    for each in (sessions, Memory(sessions.logs.vault.root).sessions):
        assert (texts(each, "s"), texts(each, "t"), each.resolve("t")) == (["a"], ["b"], "t")


def test_what_an_older_alias_hid_is_read_again(sessions: Sessions) -> None:
    """Aliases of sessions with messages were made once."""
    say(sessions, "ab", "old")
    say(sessions, "c", "new")
    sessions.logs.commit("old", lambda _: (LogRecord(seq=0, alias_of="new"), None))
    assert texts(sessions, "old") == ["c"]
    sessions.alias("old", "new")
    assert sessions.unalias("old")
    assert texts(sessions, "old") == ["a", "b"]


@pytest.mark.parametrize("target", ["longer than the alias", "t"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_session_that_is_taken_over_keeps_numbers_summaries_and_bytes(
    sessions: Sessions, folder: Path, target: str, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_BYTES", 500)
    say(sessions, "abcdefgh", "old")
    sessions.truncate("old", 6)
    sessions.vacuum("old")
    made = RunSummary(0, 0, 3, 4, 2, text="c and d")
    summary = sessions.logs.commit("old", lambda c: (LogRecord(seq=0, summary=made), c.state.seq + 1))
    sessions.set_metadata("old", title="Old", metadata={"of": "old"})
    for letter in "ijklm":
        say(sessions, letter, "old")
    if is_there:
        sessions.set_metadata(target, title="Its own")
    said, lines = sessions.history("old"), (folder / "old.jsonl").read_bytes().splitlines()
    sessions.alias("old", target)
    for each in (sessions, Memory(str(folder.parent)).sessions):
        for key in ("old", target):
            assert each.history(key) == said
            assert each.history(key, limit=3) == said[-3:]
            assert each.message(key, 1).text == "a"  # of the archive
            assert [m.text for m in each.expand(key, [summary]).messages] == ["c", "d"]
            info = each.info(key)
            assert (info.key, info.summaries, info.metadata) == (target, 1, {"of": "old"})
            assert info.title == ("Its own" if is_there else "Old")
    taken = (folder / f"{name_of(target)}.jsonl").read_bytes().splitlines()
    taken, lines = ([line for line in each if b'"messages":[' in line] for each in (taken, lines))
    assert taken == lines
    assert sessions.check() == []
    say(sessions, "n", "old")
    assert texts(sessions, target)[-1] == "n"
    sessions.vacuum(target, purge=True)
    assert [path for path in (folder / ".archive").rglob("*.jsonl") if b'"a"' in path.read_bytes()] == []


def test_a_takeover_that_was_killed_in_the_middle_is_ended(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log stands under both names then, and neither has gone on."""
    say(sessions, "abc", "old")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mdmem.conversations.log.logs.write_header", killed)
        with pytest.raises(KeyboardInterrupt):
            sessions.alias("old", "new")
    for key in ("old", "new"):
        assert texts(sessions, key) == ["a", "b", "c"]
    sessions.alias("old", "new")
    assert sessions.resolve("old") == "new"
    assert texts(sessions, "old") == ["a", "b", "c"]


def test_of_an_alias_only_the_name_is_deleted(sessions: Sessions) -> None:
    say(sessions, "a", "s")
    sessions.alias("t", "s")
    assert sessions.delete("t")
    assert (texts(sessions, "s"), texts(sessions, "t")) == (["a"], [])
    sessions.restore("t")
    assert texts(sessions, "t") == ["a"]


# -- names of messages --------------------------------------------------------------------------------------


def test_a_message_has_one_name_in_three_forms(sessions: Sessions) -> None:
    say(sessions, "abc", "t:1")
    sessions.alias("me#2", "t:1")
    for name in (2, "2", "t:1#2", "me#2#2"):
        assert sessions.message("t:1", name).text == "b"
        assert sessions.message("me#2", name).text == "b"
        assert [each.text for each in sessions.expand("t:1", [name]).messages] == ["b"]
        assert sessions.above("t:1", name) == []
        assert [each.text for each in sessions.history("t:1", after=name)] == ["c"]
        with pytest.raises(SessionConflict):
            sessions.sync("t:1", [], expected=name)


@cases("name", ["t2#2", "#2", "t:1#", "t:1#two", "two", "", "-1", "2.0", "t:1", "\u0662", "9" * 99])
def test_a_name_of_another_session_or_of_none_is_refused(sessions: Sessions, name: str) -> None:
    for key in ("t:1", "t2"):
        sessions.delete(key)
        say(sessions, "abc", key)
    for ask in (
        lambda: sessions.message("t:1", name),
        lambda: sessions.expand("t:1", [name]),
        lambda: sessions.above("t:1", name),
        lambda: sessions.history("t:1", after=name),
        lambda: sessions.sync("t:1", [], expected=name),
    ):
        with pytest.raises(Usage):
            ask()
    assert texts(sessions, "t:1") == ["a", "b", "c"]


# -- what hosts say of a session ----------------------------------------------------------------------------


def test_a_session_has_a_title_and_an_object_of_the_host(sessions: Sessions) -> None:
    say(sessions, "abc")
    assert (sessions.info("s").title, sessions.info("s").metadata) == ("", {})
    sessions.set_metadata("s", title="Databases", metadata={"chat": 17, "tags": ["a"]})
    sessions.set_metadata("s", title="Which database")
    sessions.alias("other", "s")
    sessions.set_metadata("other", metadata={"chat": [18]})
    sessions.truncate("s", 2)
    sessions.vacuum("s")
    sessions.clear("s")
    sessions.delete("s")
    sessions.restore("s")
    for each in (sessions, Memory(sessions.logs.vault.root).sessions):
        for info in (each.info("s"), each.info("other"), each.list()[1]):
            assert (info.key, info.title, info.metadata) == ("s", "Which database", {"chat": [18]})
    sessions.set_metadata("s", title="", metadata={})
    assert (sessions.info("s").title, sessions.info("s").metadata) == ("", {})


def test_metadata_are_json_and_hold_no_secret(sessions: Sessions, folder: Path) -> None:
    for wrong in ({"a": float("nan")}, {1: "a"}, {"a": object()}, ["a"]):
        with pytest.raises(Usage):
            sessions.set_metadata("s", metadata=wrong)  # type: ignore[arg-type]
    assert not folder.exists()
    sessions.set_metadata("s", title=TOKEN, metadata={"token": TOKEN})
    assert TOKEN.encode() not in (folder / "s.jsonl").read_bytes()
    sessions.set_metadata("heartbeat", title="a")
    assert [each.key for each in sessions.list()] == ["s"]


# -- the config -------------------------------------------------------------------------------------------


def test_a_secret_is_taken_out_by_default(sessions: Sessions, folder: Path) -> None:
    sessions.add("s", "user", f"the token {TOKEN} is here")
    sessions.set_summary("s", f"about {TOKEN}")
    sessions.set_history("s", [{"role": "user", "content": TOKEN}])
    assert texts(sessions) == ["REDACTED-github-token"]
    assert TOKEN.encode() not in (folder / "s.jsonl").read_bytes()
    said = {"role": "user", "content": TOKEN, "id": "1"}
    assert sessions.add_message("s", said) == sessions.add_message("s", said)


def test_a_secret_is_refused_or_kept_as_the_config_says(configured: Callable[[str], Sessions]) -> None:
    refusing = configured('secrets = "refuse"')
    for verb, given_ in (("add", ("user", TOKEN)), ("set_summary", (TOKEN,))):
        with pytest.raises(Invalid) as refused:
            getattr(refusing, verb)("s", *given_)
        assert TOKEN not in str(refused.value) + repr(refused.value.values)
    assert refusing.list() == []
    keeping = configured('secrets = "keep"')
    keeping.add(TOKEN, "user", TOKEN)
    assert texts(keeping, TOKEN) == [TOKEN]
    with pytest.raises(ConfigInvalid):
        configured('secrets = "maybe"').add("s", "user", "x")


def test_a_key_with_a_secret_is_refused_and_not_told(sessions: Sessions, vault_root: Path) -> None:
    say(sessions, "a")
    for verb, given_ in (("add", ("user", "x")), ("set_summary", ("x",)), ("alias", ("s",))):
        with pytest.raises(Invalid) as refused:
            getattr(sessions, verb)(f"chat {TOKEN}", *given_)
        assert TOKEN not in str(refused.value) + repr(refused.value.values)
    assert [each.name for each in vault_root.rglob("*ghp_*")] == []


def test_of_ignored_keys_nothing_is_kept(configured: Callable[[str], Sessions]) -> None:
    sessions = configured('ignored = ["heartbeat", "cron:*", "tmp**"]\nstateless = ["s"]')
    for key in ("heartbeat", "cron:1", "tmp", "tmp:a:b"):
        assert sessions.add(key, "user", "x") is None
        assert sessions.extend(key, [{"role": "user"}] * 2) == [None, None]
        sessions.set_summary(key, "x")
        with pytest.raises(Usage):
            sessions.add(key, "", "x")
    for key in ("Heartbeat", "heartbeat2", "cron:1:2", "xtmp", "s"):
        assert sessions.add(key, "user", "x") == 1
    assert len(sessions.list()) == 5


@cases(
    "glob, key, is_one",
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("a*", "ab", True),
        ("a*", "a:b", False),
        ("*a", "ba", True),
        ("**a", "b:a", True),
        ("a**", "a:b\nc", True),
        ("*", "", True),
        ("*:*", "a:b", True),
        ("*:*", "a:b:c", False),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("a?", "ab", False),
        ("***", "a:b", True),
    ],
)
def test_a_glob_is_anchored_and_knows_two_stars(glob: str, key: str, is_one: bool) -> None:
    assert fits(glob, key) == is_one


@given(st.text("a*:", max_size=12), st.text("a:", max_size=40))
def test_any_glob_ends(glob: str, key: str) -> None:
    assert fits(glob, key) in {True, False}
    assert fits("**", key)


# -- quiet ------------------------------------------------------------------------------------------------


def test_quiet_verbs_log_and_answer_with_nothing_of_the_right_type(
    sessions: Sessions, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    (folder / "s.jsonl").write_bytes(b'{"of":"something else"}\n')
    quiet = sessions.quiet
    caplog.set_level(logging.ERROR, "mdmem.conversations")
    no_number: Any = float("nan")
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: quiet.add("s", "user", "x"),
        "add_message": lambda: quiet.add_message("s", {"role": "user"}),
        "set_summary": lambda: quiet.set_summary("s", "x"),
        "truncate": lambda: quiet.truncate("s", no_number),
        "history": lambda: quiet.history("s"),
        "set_history": lambda: quiet.set_history("s", []),
        "summary": lambda: quiet.summary("s"),
        "save": lambda: quiet.save(""),
    }
    answers = {name: call() for name, call in calls.items()}
    assert answers == {
        **dict.fromkeys(("add", "add_message", "set_summary", "truncate", "save")),
        **{name: [] for name in ("history", "set_history")},
        "summary": "",
    }
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [*answers]


def test_quiet_verbs_do_what_the_others_do(sessions: Sessions) -> None:
    assert sessions.quiet.add("s", "user", "x") == 1
    assert [each.text for each in sessions.quiet.history("s")] == ["x"]
    assert sessions.quiet.list() == sessions.list()
    sessions.quiet.close()
    assert not hasattr(sessions.quiet, "compact")


# -- what is there ----------------------------------------------------------------------------------------


def test_a_list_says_what_there_is_beside_what_cannot_be_read(sessions: Sessions, folder: Path) -> None:
    say(sessions, "abc", "b")
    say(sessions, "a", "a")
    sessions.alias("c", "b")
    (folder / "broken.jsonl").write_bytes(b"{}\n")
    (folder / "copy of a.jsonl").write_bytes((folder / "a.jsonl").read_bytes())
    (folder / "notes.md").write_bytes(b"# A memory\n")
    found = sessions.list()
    assert [(each.key, each.messages, each.alias_of) for each in found] == [
        ("a", 1, ""),
        ("b", 3, ""),
        ("c", 0, "b"),
    ]
    assert all(each.bytes and each.created <= each.updated for each in found)
    assert {(each.path, each.code) for each in sessions.check()} == {
        ("sessions/broken.jsonl", "session-conflict"),
        ("sessions/copy of a.jsonl", "session-conflict"),
    }
