"""The commands of sessions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

TURNS = b'{"role": "user", "content": "one"}\n\n{"role": "assistant", "content": "two", "n": 1}\n'


def extend(turns: bytes) -> None:
    """Add messages to the session `t`."""
    Memory("memories").sessions.extend("t", [json.loads(line) for line in turns.splitlines() if line])


def texts(cli: Cli, *asked: str) -> list[str]:
    return [each["data"]["content"] for each in cli("sessions", "history", *asked, "--json").objects]


def test_messages_are_added_and_printed(cli: Cli, files: Files) -> None:
    assert cli.ok("sessions", "append", "t:1", "user", "Which database?").out == "1\n"
    assert cli.ok("sessions", "append", "t:1", "assistant", stdin=b"SQLite.\n").out == "2\n"
    assert list(files.everything()) == ["sessions/t%3A1.jsonl"]
    printed = cli.ok("sessions", "history", "t:1").out.split("\n")
    assert printed[0].startswith("#1  user  20")
    assert (printed[1], printed[4]) == ("Which database?", "SQLite.")
    (last,) = cli.ok("sessions", "history", "t:1", "--limit", "1", "--json").objects
    assert (last["seq"], last["data"]) == (2, {"role": "assistant", "content": "SQLite.\n"})
    assert texts(cli, "t:1", "--after", "1") == ["SQLite.\n"]
    assert cli("sessions", "history", "none").code == 1


def test_messages_leave_the_history_and_stay_in_the_log(cli: Cli) -> None:
    extend(TURNS * 3)
    cli.ok("sessions", "clear", "t")
    assert texts(cli, "t") == []
    assert "one" in cli.ok("sessions", "expand", "t", "1").out
    assert cli.ok("sessions", "vacuum", "t", "--json").json["written"]
    assert cli.ok("sessions", "expand", "t", "1", "--json").json["messages"][0]["data"]["content"] == "one"
    refused = cli("sessions", "vacuum", "t", "--purge")
    assert refused.code == 2
    assert refused.errors.endswith("--purge is for good, and nobody can be asked\nsay --yes\n")
    assert cli.ok("sessions", "expand", "t", "1").out
    cli.ok("sessions", "vacuum", "t", "--purge", "--yes")
    assert cli("sessions", "expand", "t", "1").code == 1


def test_a_dry_run_of_a_session_says_what_would_be_done_and_does_nothing(cli: Cli, files: Files) -> None:
    extend(TURNS)
    before = files.everything()
    assert cli.ok("sessions", "clear", "t", "--dry-run") == (0, b"", "would clear 2 messages of t\n")
    assert cli.ok("sessions", "rm", "t", "--dry-run").errors == "would delete t\n"
    assert cli.ok("sessions", "rm", "t", "--dry-run", "--json").json == {
        "applied": False,
        "key": "t",
        "deleted": True,
    }
    assert cli("sessions", "rm", "u", "--dry-run") == (1, b"", "no session u\n")
    assert "as it is" in cli.ok("sessions", "vacuum", "t", "--dry-run").errors
    assert files.everything() == before
    assert cli.ok("sessions", "clear", "t").errors.endswith("still find it all with --dropped\n")
    cleared = files.everything()
    said = cli.ok("sessions", "vacuum", "t", "--purge", "--dry-run").errors
    assert said == "would rewrite the log of t, and purge the archive of it\n"
    assert files.everything() == cleared
    cli.ok("sessions", "rm", "t")
    deleted = files.everything()
    assert cli.ok("sessions", "restore", "t", "--dry-run").errors == "would restore t\n"
    assert cli("sessions", "restore", "u", "--dry-run").code == 1
    assert files.everything() == deleted


@pytest.mark.parametrize(
    "arguments",
    [
        ["clear", "u"],
        ["clear", "u", "--dry-run"],
        ["vacuum", "u"],
        ["vacuum", "u", "--dry-run"],
        ["vacuum", "u", "--purge"],
        ["vacuum", "u", "--json"],
        ["compact", "u"],
        ["compact", "u", "--json"],
    ],
)
def test_a_session_that_is_not_there_is_not_said_to_be_done(
    cli: Cli, files: Files, arguments: list[str]
) -> None:
    extend(TURNS)
    before = files.everything()
    assert cli("sessions", *arguments) == (1, b"", "no session u\n")
    assert files.everything() == before


def test_a_deleted_session_is_purged_from_the_archive(cli: Cli) -> None:
    extend(TURNS)
    cli.ok("sessions", "rm", "t")
    assert cli("sessions", "vacuum", "t").errors == "no session t\n"
    cli.ok("sessions", "vacuum", "t", "--purge", "--yes")
    assert cli("sessions", "vacuum", "t", "--purge", "--yes").errors == "no session t\n"
    assert cli("sessions", "restore", "t").code == 1


def test_what_brings_a_deleted_session_back_is_said_and_does_it(cli: Cli) -> None:
    Memory("memories").sessions.add("t 1", "user", "one")
    said = cli.ok("sessions", "rm", "t 1").errors
    assert said == "done: `mdmem sessions restore 't 1'` brings it back\n"
    cli.ok("sessions", "restore", "t 1")
    assert texts(cli, "t 1") == ["one"]


def test_a_purge_asks_on_a_terminal(cli: Cli) -> None:
    extend(TURNS)
    cli.ok("sessions", "clear", "t")
    cli.ok("sessions", "vacuum", "t")
    question = "remove for good what the archive has of t? [y/N]: "
    code, seen = cli.on_terminal("sessions", "vacuum", "t", "--purge", question=question, answer="n\n")
    assert code == 1
    assert "nothing was changed" in seen
    assert "one" in cli.ok("sessions", "expand", "t", "1").out
    code, _ = cli.on_terminal("sessions", "vacuum", "t", "--purge", question=question, answer="y\n")
    assert code == 0
    assert cli("sessions", "expand", "t", "1").code == 1


def test_messages_are_named_by_number_or_with_their_session(cli: Cli) -> None:
    extend(TURNS)
    for name in ("1", "t#1"):
        assert "one" in cli.ok("sessions", "expand", "t", name).out
        assert texts(cli, "t", "--after", name) == ["two"]
    assert cli("sessions", "expand", "t", "u#1").code == 2
    assert cli("sessions", "expand", "t", "one").code == 2


def test_a_damaged_log_is_mended_and_a_title_listed(cli: Cli) -> None:
    extend(TURNS)
    Memory("memories").sessions.set_metadata("t", title="Numbers")
    with open("memories/sessions/t.jsonl", "ab") as file:
        file.write(b'{"seq":77777777,"at":"","messages":[{"role":"user","content":"three"}]}\n')
    assert "77777777" in cli("sessions", "check", "t").out
    cli.ok("sessions", "check", "--fix")
    assert cli.ok("sessions", "check", "t", "--json").out == ""
    assert texts(cli, "t") == ["one", "two", "three"]
    assert cli.ok("sessions", "list").out.endswith("  t  Numbers\n")


def test_a_session_is_listed_with_the_day_of_its_last_message(cli: Cli, tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "one needle", "created_at": "2024-05-01T10:00:00+02:00"},
        {"role": "assistant", "content": "two needles", "created_at": "2024-05-02T10:00:00Z"},
    ]
    (tmp_path / "old.json").write_text(json.dumps(said))
    cli.ok("sessions", "import", "openai-messages", str(tmp_path / "old.json"))
    assert cli.ok("sessions", "list").out.split()[1] == "2024-05-02T10:00:00.000Z"
    assert cli.ok("sessions", "list", "--json").json["created"] <= "2024-05-02T10:00:00.000Z"


def test_a_search_that_finds_little_says_how_many_messages_fit_and_how_to_ask(cli: Cli) -> None:
    extend(b'{"role": "user", "content": "the needle is here"}\n' * 2)
    for number in range(3):
        told = cli("search", "which", "needle")
        assert told.code == (0 if number else 1)
        assert (
            "at most 2 messages of conversations fit: `mdmem sessions search 'which needle'`" in told.errors
        )
        cli.ok("write", f"notes/{number}.md", "A needle.\n")
    assert "conversations" not in cli.ok("search", "needle").errors
    assert "the needle is here" in cli.ok("sessions", "search", "which needle").out
    assert "conversations" not in cli("search", "nothing").errors


def test_a_session_is_listed_deleted_and_brought_back(cli: Cli) -> None:
    extend(TURNS)
    Memory("memories").sessions.alias("me", "t")
    listed = [line.split() for line in cli.ok("sessions", "list").out.splitlines()]
    assert [(line[0], *line[2:]) for line in listed] == [("0", "me", "→", "t"), ("2", "t")]
    assert [each["alias_of"] for each in cli.ok("sessions", "list", "--json").objects] == ["t", ""]
    assert cli.ok("sessions", "rm", "t", "--json").json == {
        "applied": True,
        "key": "t",
        "deleted": True,
    }
    assert cli("sessions", "rm", "t").code == 1
    assert cli("sessions", "history", "me").code == 1
    cli.ok("sessions", "restore", "t")
    assert texts(cli, "me") == ["one", "two"]
    assert cli("sessions", "restore", "t").code == 1


def test_a_session_that_was_deleted_before_another_of_its_key_is_brought_back_as_is_said(cli: Cli) -> None:
    for text in ("one", "two"):
        Memory("memories").sessions.add("t 1", "user", text)
        cli.ok("sessions", "rm", "t 1")
    Memory("memories").sessions.add("t 1", "user", "three")
    refused = cli("sessions", "restore", "t 1")
    assert "then `mdmem sessions restore 't 1' --older 1`" in refused.errors
    cli.ok("sessions", "rm", "t 1")
    cli.ok("sessions", "restore", "t 1", "--older", "1")
    assert texts(cli, "t 1") == ["two"]
    cli.ok("sessions", "rm", "t 1")
    cli.ok("sessions", "restore", "t 1", "--older", "2")
    assert texts(cli, "t 1") == ["one"]
    cli.ok("sessions", "rm", "t 1")
    assert "of this key, 3 are in the archive" in cli("sessions", "restore", "t 1", "--older", "3").errors


@pytest.mark.parametrize("key", ["", ".", ".."])
def test_an_impossible_key_is_refused(cli: Cli, key: str) -> None:
    assert cli("sessions", "append", key, "user", "text").code == 2


def test_conversations_of_another_program_are_taken_in(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "chat.jsonl"
    source.write_bytes(TURNS)
    asked = ("sessions", "import", "openai-messages", str(source))
    assert cli.ok(*asked, "--key", "t").out == "      2  t\n"
    assert texts(cli, "t") == ["one", "two"]
    with source.open("ab") as file:
        file.write(b"{\n")
    again = cli(*asked, "--key", "t", "--rename", "--json")
    (session,) = again.json["sessions"]
    assert session == {"key": "t", "path": str(source), "messages": 0, "format": "openai-messages"}
    assert again.json["left_out"] == [f"{source}: entry 3: not JSON"]
    assert (again.code, source.exists()) == (1, False)
    assert cli("sessions", "import", "word", str(source)).code == 2


def test_what_is_imported_is_looked_at_and_said(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "chat.jsonl"
    source.write_bytes(TURNS)
    assert cli.ok("sessions", "import", str(source)).out == "      2  chat  (openai-messages)\n"
    assert cli.ok("sessions", "import", "--format", "openai-messages", str(source)).out == "      0  chat\n"
    refused = cli("sessions", "import", "--format", "codex-session", str(source))
    assert (refused.code, refused.out) == (1, "")
    assert "it has the format openai-messages, and not codex-session" in refused.errors


def test_a_line_that_is_no_record_is_told(cli: Cli, files: Files) -> None:
    extend(TURNS)
    assert cli.ok("sessions", "check").out == ""
    files.write("sessions/t.jsonl", files.read("sessions/t.jsonl") + b"{}\n")
    told = cli("sessions", "check", "t")
    assert told.code in {0, 1}
    assert told.out.startswith("sessions/t.jsonl:3:1: ")
    assert cli("sessions", "check", "--json").objects[0]["line"] == 3


def test_what_was_said_is_found_exactly_and_ranked(cli: Cli) -> None:
    extend(TURNS)
    cli.ok("sessions", "append", "other", "user", "one more")
    for verb in ("grep", "search"):
        found = cli.ok("sessions", verb, "one", "t", "--role", "user")
        assert found.out.startswith("t#1  user  20")
        assert found.out.endswith("\none\n\n")
        (hit,) = cli.ok("sessions", verb, "one", "t", "--json").objects
        assert (hit["key"], hit["seq"], hit["snippet"]) == ("t", 1, "one")
        assert len(cli.ok("sessions", verb, "one", "--all", "--json").objects) == 2
        (first,) = cli.ok("sessions", verb, "one", "--all", "--limit", "1", "--json").objects
        assert first["left_out"] == 1
        more = cli.ok("sessions", verb, "one", "--all", "--limit", "1").errors
        assert more == f"{'at most ' * (verb == 'search')}1 more\n"  # search has not read it
        assert cli("sessions", verb, "three", "t").code == 1
        assert cli("sessions", verb, "one").code == (2 if verb == "grep" else 0)


LONG = b"".join(b'{"role": "user", "content": "turn %d %s"}\n' % (n, b"x" * 1_000) for n in range(40))


def test_a_context_is_compacted_assembled_and_opened_again(cli: Cli) -> None:
    extend(LONG)
    done = cli.ok("sessions", "compact", "t")
    assert done.out.startswith("#41  summary of 8 messages, #1 to #8, by extract\nuser: turn")
    assert " tokens\n" in done.errors
    assembled = cli.ok("sessions", "assemble", "t", "2000", "--tail", "4")
    assert assembled.out.startswith('<summary id="41" kind="leaf"')
    assert "#40  user" in assembled.out
    assert "messages left out" in assembled.errors
    assert cli.ok("sessions", "assemble", "t", "20000", "--json").json["summaries"] == [41]
    opened = cli.ok("sessions", "expand", "t", "41")
    assert "#1  user" in opened.out
    assert opened.errors == ""
    assert "7 messages left out" in cli.ok("sessions", "expand", "t", "41", "--budget", "300").errors
    assert cli.ok("sessions", "expand", "t", "41", "--depth", "0", "--json").json["summaries"][0]["seq"] == 41
    assert cli("sessions", "expand", "t", "99").code == 1


def test_what_is_too_large_for_a_budget_is_named(cli: Cli) -> None:
    extend(LONG[: LONG.index(b"\n")])
    assert "over the budget with #1\n" in cli.ok("sessions", "compact", "t", "--budget", "10").errors
    assert cli.ok("sessions", "compact", "t", "--budget", "10", "--json").json["stuck"] == [1]


def test_a_session_is_summarized_and_kept_as_a_note(cli: Cli, files: Files) -> None:
    extend(TURNS)
    assert "+# t" in cli.ok("sessions", "summarize", "t", "--dry-run").out
    cli.ok("sessions", "summarize", "t")
    assert cli.ok("sessions", "summaries").out == "sessions/t.md  2 messages, up to #2\n"
    assert cli.ok("sessions", "summaries", "--json").json["through"] == 2
    assert b"# t\n\n## Summary\n\nuser said: one (#" in files.read("sessions/t.md")
    cli.ok("sessions", "keep", "t", "--to", "talk")
    assert b"> one" in files.read("notes/talk.md")
    cli.ok("rm", "sessions/t.md")
    assert cli.ok("sessions", "summaries").out == ""


def program(folder: Path, text: str) -> str:
    """The command line of a program that stands for a model."""
    path = folder / "model.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_is_asked_where_the_command_line_or_the_environment_names_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = b"".join(b'{"role": "user", "content": "turn %d about SQLite"}\n' % at for at in range(100))
    extend(turns)
    model = program(tmp_path, "cat > /dev/null; echo SQLite it is.")
    printed = cli.ok("sessions", "compact", "t", "--budget", "1000", "--model", model)
    assert "by model.sh\nSQLite it is." in printed.out
    monkeypatch.setenv("MDMEM_MODEL", program(tmp_path, """echo '{"summary": "SQLite it is."}'"""))
    cli.ok("sessions", "summarize", "t")
    assert "SQLite it is." in cli.ok("show", "sessions/t.md").out
    cli.ok("sessions", "append", "t", "user", "We decided to use files.")
    cli.ok("sessions", "summarize", "t", "--model", "none")
    assert "We decided to use files." in cli.ok("show", "sessions/t.md").out


def test_why_no_model_answered_is_said_and_the_rules_do_it(cli: Cli, tmp_path: Path) -> None:
    turns = b"".join(b'{"role": "user", "content": "turn %d about SQLite"}\n' % at for at in range(100))
    extend(turns)
    model = program(tmp_path, "echo the quota is used up >&2; exit 1")
    done = cli.ok("sessions", "compact", "t", "--budget", "1000", "--model", model)
    assert "by extract" in done.out
    assert "without the model: model.sh: it ended with 1: the quota is used up\n" in done.errors
    cli.ok("sessions", "summarize", "t", "--model", model)
    fields = cli.ok("show", "sessions/t.md", "--json").json["fields"]
    assert (fields["by"], fields["problem"]) == ("rules", "model.sh: it ended with 1: the quota is used up")
    unknown = cli("sessions", "compact", "t", "--model", "gpt-5")
    assert unknown.code == 2
    assert "`claude -p`" in unknown.errors


def test_a_dry_run_asks_no_model(cli: Cli, tmp_path: Path) -> None:
    extend(TURNS + b'{"role": "user", "content": "I prefer dark mode."}\n')
    model = program(tmp_path, f"cat >> {tmp_path}/asked; echo SQLite it is.")
    diff = cli.ok("sessions", "summarize", "t", "--model", model, "--dry-run").out
    assert "+by: rules\n" in diff
    dry = ("sessions", "capture", "t", "--policy", "apply", "--dry-run")
    asked, unasked = (re.sub(r"T[\d:]+Z", "", cli.ok(*dry, *more).out) for more in (["--model", model], []))
    assert asked == unasked
    assert not (tmp_path / "asked").exists()
    cli.ok("sessions", "summarize", "t", "--model", model)
    assert (tmp_path / "asked").exists()


def test_a_key_or_a_role_with_line_ends_forges_no_line(cli: Cli) -> None:
    key, role = "a\n      9  2026-01-01  forged", "user\n#7  user"
    cli("sessions", "append", key, role, "hello")
    assert len(cli("sessions", "list").out.splitlines()) == 1
    assert cli("sessions", "history", key).out.splitlines()[1] == "hello"
    assert cli("sessions", "grep", "hello", key).out.splitlines()[1] == "hello"
    assert cli("sessions", "search", "hello", "--all").out.splitlines()[1] == "hello"


@pytest.mark.parametrize("asked", [("expand", "t", "9"), ("restore", "t")])
def test_what_is_not_there_is_not_said_to_be_nowhere(cli: Cli, asked: tuple[str, ...]) -> None:
    cli.ok("sessions", "append", "t", "user", "hello")
    cli.ok("sessions", "append", "other", "user", "hello")
    cli.ok("sessions", "rm", "other")
    told = cli("sessions", *asked)
    assert told.code == 1
    assert "at all" not in told.errors


# ---------------------------------------------------------------------------------- what sessions come to

DECIDED = "We decided on SQLite, and weighed it for a while against all the others. " * 60


def test_what_is_not_due_says_how_much_of_it_is_there(cli: Cli) -> None:
    assert cli.ok("sessions", "observe", "--all").errors == "no sessions\n"
    for key in ("a", "b"):
        cli.ok("sessions", "append", key, "user", "Which database? One file.")
    (one,) = Memory("memories").observations.waiting("a")
    assert (one.session, one.needed) == ("a", 1_000)
    assert 0 < one.tokens < 20
    said = f"not yet: {one.tokens} of 1,000 tokens of messages\n"
    how = (
        "--now` does not wait; `[observation] message_tokens` in .mdmem/config.toml says how many it takes\n"
    )
    assert cli.ok("sessions", "observe", "a") == (0, b"", f"{said}`mdmem sessions observe a {how}")
    of_all = f"a: {said}b: {said}`mdmem sessions observe --all {how}"
    assert cli.ok("sessions", "observe", "--all") == (0, b"", of_all)
    cli.ok("sessions", "append", "b", "user", DECIDED)
    observed = cli.ok("sessions", "observe", "--all")
    assert observed.out.startswith("created observations/b/")
    assert observed.errors == f"a: {said}`mdmem sessions observe --all {how}"


def test_what_is_asked_for_now_does_not_wait(cli: Cli) -> None:
    cli.ok("sessions", "append", "a", "user", "We decided to use SQLite. Please always back it up.")
    assert cli.ok("sessions", "observe", "a", "--now").out.startswith("created observations/a/")
    assert cli.ok("sessions", "observe", "a", "--now").errors == "nothing new was said\n"
    assert "exclude each other" in cli("sessions", "observe", "a", "--now", "--watch").errors


def test_what_is_due_is_observed_and_printed(cli: Cli) -> None:
    cli.ok("sessions", "append", "t:1", "user", DECIDED)
    (line,) = cli.ok("sessions", "observe", "t:1").out.splitlines()
    path = line.removeprefix("created ")
    assert path.startswith("observations/t%3A1/")
    assert cli.ok("sessions", "observe", "--all", "--json") == (0, b"", "t:1: nothing new was said\n")
    assert cli.ok("sessions", "observations", "t:1").out.startswith(
        f"{path}  observation of #1 to #1, by extract\n"
    )
    assert "We decided on SQLite" in cli.ok("sessions", "observed", path).out
    assert "We decided on SQLite" in cli.ok("sessions", "observed", path.rpartition("-1-")[0]).out
    assert cli("sessions", "observed", "t:1/none").code == 1
    assert [each["path"] for each in cli.ok("sessions", "observations", "t:1", "--json").objects] == [path]
    assert cli("sessions", "observe").code == cli("sessions", "observe", "t:1", "--all").code == 2


def test_observations_are_made_listed_and_removed(cli: Cli) -> None:
    reflect = ("sessions", "reflect", "t", "--model", "head -c 40")
    assert cli(*reflect).code == 1
    assert "only a model makes a reflection" in cli("sessions", "reflect", "t").errors
    for text in ("We take SQLite.", "It is one file."):
        cli.ok("sessions", "append", "t", "user", text)
        Memory("memories").observations.observe("t")
    assert cli.ok("sessions", "observations", "t", "--limit", "1").out.count("observation of") == 1
    assert "reflection 1 of #1 to #3" in cli.ok(*reflect).out
    assert "reflection 2" in cli.ok(*reflect, "--meta").out
    assert (
        "--- a/observations" in cli.ok("sessions", "delete-observations", "--session", "t", "--dry-run").out
    )
    cli.ok("sessions", "delete-observations", "--session", "t")
    assert cli("sessions", "observations", "t", "--json") == (1, b"", "no observations of t\n")
    cli.ok("undo")
    assert len(cli.ok("sessions", "observations", "t", "--json").objects) == 2
    assert cli("sessions", "delete-observations").code == 2
    assert cli("sessions", "delete-observations", "t/none-1-1").code == 1


def test_what_goes_wrong_is_told_and_is_the_exit_code(cli: Cli) -> None:
    cli.ok("sessions", "append", "t", "user", DECIDED)
    Path("memories/observations").write_text("no folder\n")
    ended = cli("sessions", "observe", "t")
    assert ended.code == 1
    assert "observations" in ended.errors


@pytest.mark.parametrize(("policy", "outcome"), [("inbox", "proposed"), ("apply", "kept")])
def test_a_session_is_captured_where_a_policy_says_so(cli: Cli, policy: str, outcome: str) -> None:
    cli.ok("sessions", "append", "t", "user", "I prefer dark mode.")
    off = cli("sessions", "capture", "t")
    assert off.code == 1
    assert "policy is off" in off.errors
    assert "statements" not in off.errors
    dry = cli.ok("sessions", "capture", "t", "--policy", policy, "--dry-run")
    assert outcome in dry.out
    assert "dark" in dry.out
    told = cli.ok("sessions", "capture", "t", "--policy", policy, "--json").json
    assert [each["outcome"] for each in told["items"]] == [outcome]
    again = cli("sessions", "capture", "t", "--policy", policy)
    assert (again.code, again.errors) == (1, "no statements in t since the last time\n")
    assert cli("sessions", "capture", "t", "--policy", "all").code == 2


def test_a_session_is_named_by_the_beginning_of_its_key(cli: Cli) -> None:
    for key in ("3f2a9c01-one", "3f2b0000-two"):
        cli.ok("sessions", "append", key, "user", "one")
        cli.ok("working", "set", "State: green.", "--thread", key)
    cli.ok("working", "set", "State: red.", "--thread", "other")
    assert texts(cli, "3f2a") == ["one"]
    assert cli.ok("working", "show", "--thread", "oth").out == "State: red.\n"
    assert "State: green." in cli.ok("context", "--thread", "3f2b").out
    refused = cli("sessions", "clear", "3f2")
    assert refused.code == 2
    assert "2 threads begin with '3f2': 3f2a9c01-one, 3f2b0000-two" in refused.errors
    cli.ok("sessions", "rm", "3f2a")
    assert cli("sessions", "history", "3f2a9c01-one").code == 1
    cli.ok("sessions", "append", "3f2b", "user", "new")  # a new session is what it is called
    assert texts(cli, "3f2b") == ["new"]


def test_what_is_allowed_is_what_the_config_asks_for(cli: Cli) -> None:
    assert cli("sessions", "allow-capture").errors == (
        "allowed here: hooks do what .mdmem/config.toml asks for\n"
    )
    assert cli("sessions", "allow-capture", "--off").errors == "no longer allowed here\n"
