"""Conversations of other programs are taken in once, whole, and behind what a session holds already."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from mdmem.conversations.transcripts.importing import SessionImport
from mdmem.conversations.transcripts.transcripts import transcripts
from mdmem.document.text.tokens import estimate
from mdmem.errors import LockTimeout, StorageFailed, Usage
from mdmem.facade.memory import Memory, open as open_memory

TOKEN = "ghp_" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def said(*texts: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)
    ]


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def legacy(folder: Path, name: str, messages: Any, **more: Any) -> Path:
    """A session as picoclaw kept it first: one JSON document."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"key": name, "messages": messages, **more}, indent=2))
    return path


def picoclaw(folder: Path, name: str, messages: list[Any], **meta: Any) -> Path:
    """A session as picoclaw keeps it: JSON lines, and beside them what they are."""
    path = folder / f"{name}.jsonl"
    path.write_text(lines(*messages))
    (folder / f"{name}.meta.json").write_text(json.dumps({"key": name, "skip": 0, **meta}))
    return path


def take_in(memory: Memory, source: Path, form: str = "picoclaw", **how: Any) -> SessionImport:
    return memory.sessions.import_(form, str(source), **how)


def counts(done: SessionImport) -> dict[str, int]:
    return {each.key: each.messages for each in done.sessions}


def texts(memory: Memory, key: str) -> list[Any]:
    return [message.data["content"] for message in memory.sessions.history(key)]


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# -- the migration of picoclaw, as its own tests have it --------------------------------------------------


def test_seed_migration_basic(memory: Memory, source: Path) -> None:
    legacy(source, "test", said("hello", "hi"), summary="A greeting.")
    assert counts(take_in(memory, source)) == {"test": 2}
    assert [message.data for message in memory.sessions.history("test")] == said("hello", "hi")
    assert memory.sessions.summary("test") == "A greeting."


def test_seed_migration_with_tool_calls(memory: Memory, source: Path) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    messages = [
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
        {"role": "tool", "content": "found", "tool_call_id": "call_1"},
    ]
    legacy(source, "tools", messages)
    take_in(memory, source)
    asked, answered = memory.sessions.history("tools")
    assert [asked.data, answered.data] == messages
    assert asked.calls == (("call_1", "search", '{"q": "x"}'),)
    assert answered.answers == (("call_1", "found"),)


def test_seed_migration_multiple_files(memory: Memory, source: Path) -> None:
    for number in range(3):
        legacy(source, f"session-{number}", said(f"message {number}"))
    assert counts(take_in(memory, source)) == {f"session-{number}": 1 for number in range(3)}
    assert [texts(memory, f"session-{number}") for number in range(3)] == [
        [f"message {number}"] for number in range(3)
    ]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('{"key": "bad", "messages": [{"role": "user"', "not JSON"),
        ('{"key": "bad", "messages": []} more', "not JSON"),
        ('{"key": "bad"}', "it has no list of messages"),
        ('{"key": "bad", "messages": 3}', "it has no list of messages"),
        ("", "not JSON"),
        ('{"messages": [1e999]}', "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_seed_migration_invalid_json(memory: Memory, source: Path, written: str, reason: str) -> None:
    legacy(source, "good", said("kept"))
    (source / "bad.json").write_text(written)
    done = take_in(memory, source, rename=True)
    assert counts(done) == {"good": 1}
    (told,) = done.left_out
    assert told.startswith(f"{source / 'bad.json'}: {reason}")
    assert files(source) == ["bad.json", "good.json.migrated"]
    assert [each.key for each in memory.sessions.list()] == ["good"]


def test_seed_migration_renames_files(memory: Memory, source: Path) -> None:
    legacy(source, "old", said("a"))
    picoclaw(source, "new", said("b"))
    take_in(memory, source, rename=True)
    assert files(source) == ["new.jsonl.migrated", "new.meta.json.migrated", "old.json.migrated"]
    again = take_in(memory, source, rename=True)
    assert (again.sessions, again.left_out) == ((), ())


def test_a_file_is_not_renamed_over_another_one(memory: Memory, source: Path) -> None:
    legacy(source, "old", said("a"))
    (source / "old.json.migrated").write_text("the first one")
    done = take_in(memory, source, rename=True)
    assert done.left_out == (f"{source / 'old.json'}: not renamed: there is old.json.migrated already",)
    assert (source / "old.json.migrated").read_text() == "the first one"


def test_seed_migration_idempotent(memory: Memory, source: Path) -> None:
    legacy(source, "old", said("a", "b"), summary="s")
    picoclaw(source, "new", said("c", "d"), summary="t")
    take_in(memory, source)
    logs = {path: path.read_bytes() for path in Path(memory.vault.root, "sessions").iterdir()}
    assert counts(take_in(memory, source)) == {"new": 0, "old": 0}
    assert {path: path.read_bytes() for path in logs} == logs


def test_seed_migration_colon_in_key(memory: Memory, source: Path) -> None:
    path = legacy(source, "telegram_123", said("from telegram"))
    path.write_text(path.read_text().replace("telegram_123", "telegram:123"))
    legacy(source, "telegram_1234", said("another"))
    assert counts(take_in(memory, source)) == {"telegram:123": 1, "telegram_1234": 1}
    assert texts(memory, "telegram:123") == ["from telegram"]
    assert memory.sessions.history("telegram_123") == []


def test_seed_migration_retry_after_crash(memory: Memory, source: Path) -> None:
    """The messages were taken in, and the process ended before the file was renamed."""
    legacy(source, "retry", said("one", "two"), summary="s")
    take_in(memory, source)
    memory.sessions.add("retry", "user", "three")
    done = take_in(memory, source, rename=True)
    assert (counts(done), done.left_out) == ({"retry": 0}, ())
    assert texts(memory, "retry") == ["one", "two", "three"]
    assert files(source) == ["retry.json.migrated"]


def test_seed_migration_nonexistent_dir(memory: Memory, source: Path) -> None:
    with pytest.raises(Usage, match="there is no such file or folder"):
        take_in(memory, source / "nowhere")
    assert memory.sessions.list() == []


def test_seed_migration_skips_meta_json_files(memory: Memory, source: Path) -> None:
    picoclaw(source, "session", said("a"))
    (source / "other.meta.json").write_text(
        '{"key": "other", "messages": [{"role": "user", "content": "x"}]}'
    )
    done = take_in(memory, source)
    assert (counts(done), done.left_out) == ({"session": 1}, ())


def test_seed_migration_does_not_overwrite_newer_history(memory: Memory, source: Path) -> None:
    """The legacy file survives, or comes back, when the session has long gone on."""
    path = legacy(source, "k", said("one", "two"), summary="of the file")
    take_in(memory, source)
    memory.sessions.set_history("k", said("newer"))
    memory.sessions.set_summary("k", "newer")
    done = take_in(memory, source)
    assert counts(done) == {"k": 0}
    path.write_text(json.dumps({"key": "k", "messages": said("of another day"), "summary": "of the file"}))
    done = take_in(memory, source)
    assert done.sessions == ()
    assert "has messages that this file lacks, and that are newer" in done.left_out[0]
    assert (texts(memory, "k"), memory.sessions.summary("k")) == (["newer"], "newer")


# -- picoclaw's second form -------------------------------------------------------------------------------


def test_what_picoclaw_skips_is_in_the_log_and_not_in_the_history(memory: Memory, source: Path) -> None:
    picoclaw(source, "k", said("a", "b", "c", "d"), skip=2, summary="a and b")
    assert counts(take_in(memory, source)) == {"k": 4}
    assert texts(memory, "k") == ["c", "d"]
    assert memory.sessions.list()[0].messages == 2
    assert memory.sessions.message("k", 1).text == "a"
    assert memory.sessions.summary("k") == "a and b"


def test_a_log_that_picoclaw_compacted_is_recognised(memory: Memory, source: Path) -> None:
    picoclaw(source, "k", said("a", "b", "c", "d"), skip=2)
    take_in(memory, source)
    picoclaw(source, "k", [*said("a", "b", "c", "d")[2:], {"role": "user", "content": "e"}], skip=0)
    assert counts(take_in(memory, source)) == {"k": 1}
    assert texts(memory, "k") == ["c", "d", "e"]


def test_a_damaged_line_is_named_and_the_others_are_taken_in(memory: Memory, source: Path) -> None:
    path = picoclaw(source, "k", said("a"))
    with path.open("ab") as file:
        file.write(b'{"role": "us\n\xff\n[]\n{"role": ""}\n\n' + lines(*said("b")).encode() + b'{"role": "u')
    done = take_in(memory, source)
    assert counts(done) == {"k": 2}
    assert [told.partition(": ")[2] for told in done.left_out] == [
        "entry 2: not JSON",
        "entry 3: not UTF-8",
        "entry 4: no message: it has no role",
        "entry 5: no message: it has no role",
    ]


def test_without_the_file_beside_them_lines_are_the_session_of_their_name(
    memory: Memory, source: Path
) -> None:
    picoclaw(source, "k", said("a"))
    (source / "k.meta.json").write_text("{")
    take_in(memory, source)
    assert texts(memory, "k") == ["a"]


def test_aliases_lead_to_the_session_unless_they_are_one(memory: Memory, source: Path) -> None:
    memory.sessions.add("taken", "user", "mine")
    picoclaw(source, "k", said("a"), aliases=["telegram:1", "taken", "k"])
    for _ in range(2):
        done = take_in(memory, source)
        assert [told.rpartition(".jsonl: ")[2] for told in done.left_out] == [
            "'taken' is another session, and no alias of 'k'"
        ]
    assert memory.sessions.resolve("telegram:1") == "k"
    assert texts(memory, "taken") == ["mine"]


# -- Claude Code, Codex, chat completions -----------------------------------------------------------------


def claude(kind: str, content: Any, number: int, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, "usage": {"input_tokens": 3}}
    return {
        "type": kind,
        "message": message,
        "uuid": f"u{number}",
        "timestamp": f"2026-05-04T10:00:{number:02}.000Z",
        "cwd": "/work",
        **more,
    }


def test_a_transcript_of_claude_code_becomes_what_was_said(memory: Memory, source: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "README.md"}
    path = source / "0a1b.jsonl"
    path.write_text(
        lines(
            {"type": "file-history-snapshot", "snapshot": {}},
            claude("user", "What is here?", 1),
            claude("user", "<local-command-caveat>", 2, isMeta=True),
            claude("assistant", [{"type": "thinking", "thinking": "hm"}], 3),
            claude("assistant", [use], 4),
            claude("user", "do it", 5, isSidechain=True),
            claude("user", [result], 6, toolUseResult={"stdout": "README.md"}),
            {"type": "summary", "summary": "Files"},
        )
    )
    assert counts(take_in(memory, source, "claude-code-session")) == {"claude-code:0a1b": 3}
    first, asked, answered = memory.sessions.history("claude-code:0a1b")
    assert first.data == {"role": "user", "content": "What is here?"}
    assert (first.id, first.created_at) == ("u1", "2026-05-04T10:00:01.000Z")
    assert (asked.calls[0].name, answered.answers[0].text) == ("Bash", "README.md")


def test_a_rollout_of_codex_becomes_what_was_said(memory: Memory, source: Path) -> None:
    folder = source / "2026" / "05" / "04"
    folder.mkdir(parents=True)
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
    words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}

    def item(kind: str, payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-05-04T10:00:00.000Z", "type": kind, "payload": payload}

    (folder / "rollout-2026-05-04T10-00-00-77.jsonl").write_text(
        lines(
            item("session_meta", {"id": "77", "cwd": "/work", "instructions": "x"}),
            item("response_item", words),
            item("event_msg", {"type": "user_message", "message": "hello"}),
            item("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "…"}),
            item("response_item", call),
            item("response_item", {"type": "function_call_output", "call_id": "c1", "output": "ok"}),
        )
    )
    take_in(memory, source, "codex-session")
    first, asked, answered = memory.sessions.history("codex:77")
    assert first.text == "hello"
    assert (asked.data, asked.created_at) == (call, "2026-05-04T10:00:00.000Z")
    assert (asked.role, answered.role, answered.answers[0].text) == ("assistant", "tool", "ok")


def test_a_patch_of_codex_is_counted_found_and_kept_with_its_output(memory: Memory, source: Path) -> None:
    """A prompt of 60 tokens had 13,759, and neither search found what was patched."""
    patch = "*** Begin Patch\n+the zebrafish swims\n" + "+a line of code\n" * 3_000
    shell = {"type": "exec", "command": ["bash", "-lc", "ls quokka"]}
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
        {"type": "local_shell_call", "call_id": "c0", "status": "completed", "action": shell},
        {"type": "function_call_output", "call_id": "c0", "output": "one wombat"},
        {
            "type": "custom_tool_call",
            "call_id": "c1",
            "name": "apply_patch",
            "input": patch,
            "status": "completed",
        },
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Success, said the axolotl"},
        {"type": "web_search_call", "action": {"type": "search", "query": "numbat"}},
    ]
    time = "2026-05-04T10:00:00.000Z"
    path = source / "rollout-1.jsonl"
    path.write_text(lines(*({"timestamp": time, "type": "response_item", "payload": item} for item in items)))
    (key,) = counts(take_in(memory, path, "codex-session"))
    for place, word in enumerate(("Fix", "quokka", "wombat", "zebrafish", "axolotl", "numbat"), 1):
        assert [hit.seq for hit in memory.sessions.grep(word, key).hits] == [place]
        assert [hit.seq for hit in memory.sessions.grep(word, key, regex=True).hits] == [place]
        assert [hit.seq for hit in memory.sessions.search(word, key).hits] == [place]
    for budget in (60, 150, 400, 14_000, 40_000):
        prompt = memory.sessions.assemble(key, budget)
        assert estimate(json.dumps(prompt.as_messages())) <= prompt.tokens <= budget
        seqs = {message.seq for message in prompt.messages}
        assert {2, 3} <= seqs or seqs.isdisjoint({2, 3})
        assert {4, 5} <= seqs or seqs.isdisjoint({4, 5})
        assert 1 in seqs
    assert memory.sessions.assemble(key, 40_000).as_messages() == items


def test_what_the_line_of_a_transcript_says_is_no_field_of_the_message(memory: Memory, source: Path) -> None:
    """A prompt had an `id` and a `created_at` that no model takes; a host's own are the message's."""
    (source / "a.jsonl").write_text(lines(claude("user", "What is here?", 1)))
    take_in(memory, source, "claude-code-session")
    key = "claude-code:a"
    own = {"role": "user", "content": "x", "id": "m1", "created_at": "2026-05-04T10:00:09Z"}
    memory.sessions.add_message(key, own)
    expected = [{"role": "user", "content": "What is here?"}, own]
    memory.sessions.alias("other", key)
    memory.sessions.truncate(key, 5)
    for _ in range(2):
        assert memory.sessions.assemble(key, 1_000).as_messages() == expected
        first = memory.sessions.message(key, 1)
        assert (first.id, first.created_at) == ("u1", "2026-05-04T10:00:01.000Z")
        memory.sessions.add(key, "user", "dropped")
        memory.sessions.pop(key)
        memory.sessions.vacuum(key)


def test_a_rollout_of_an_older_codex_is_read_too(memory: Memory, source: Path) -> None:
    words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    path = source / "rollout.jsonl"
    path.write_text(lines({"id": "5", "instructions": None}, {"record_type": "state"}, words))
    done = take_in(memory, path, "codex-session")
    assert (counts(done), done.left_out) == ({"codex:5": 1}, ())


@pytest.mark.parametrize("name", ["chat.json", "chat.jsonl"])
def test_messages_of_chat_completions_come_as_list_or_as_lines(
    memory: Memory, source: Path, name: str
) -> None:
    messages = [*said("a", "b"), {"role": "user", "content": [{"type": "text", "text": "ü\u2028"}], "n": 1.5}]
    path = source / name
    path.write_text(
        lines(*messages).rstrip("\n") if name.endswith("l") else f"\ufeff {json.dumps(messages)}\n"
    )
    assert counts(take_in(memory, path, "openai-messages", key="k")) == {"k": 3}
    assert [message.data for message in memory.sessions.history("k")] == messages


# -- again, and after it grew -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["list", "lines"])
def test_of_a_transcript_that_grew_only_the_new_part_is_added(
    memory: Memory, source: Path, form: str
) -> None:
    path = source / ("k.json" if form == "list" else "k.jsonl")
    for count in (2, 2, 3, 3, 6):
        messages = said(*"abcdef"[:count])
        path.write_text(json.dumps(messages) if form == "list" else lines(*messages))
        take_in(memory, path, "openai-messages")
        assert texts(memory, "k") == list("abcdef"[:count])


def test_the_start_of_a_transcript_is_not_read_again(memory: Memory, source: Path) -> None:
    """What stands before the last entry may even be no messages any more."""
    path = source / "k.jsonl"
    path.write_text(lines(*said("a", "b")))
    take_in(memory, path, "openai-messages")
    written = path.read_bytes()
    path.write_bytes(
        b"#" * written.index(b"\n") + written[written.index(b"\n") :] + lines(*said("c")).encode()
    )
    done = take_in(memory, path, "openai-messages")
    assert (counts(done), done.left_out) == ({"k": 1}, ())


def test_a_transcript_that_was_written_anew_is_recognised(memory: Memory, source: Path) -> None:
    path = source / "k.jsonl"
    path.write_text(lines(*said("a", "b", "a", "b")))
    take_in(memory, path, "openai-messages")
    path.write_text("\n" * 9 + lines(*said("a", "b", "a", "b", "c")))
    assert counts(take_in(memory, path, "openai-messages")) == {"k": 1}
    assert texts(memory, "k") == ["a", "b", "a", "b", "c"]
    moved = path.rename(source / "moved.jsonl")
    assert counts(take_in(memory, moved, "openai-messages", key="k")) == {"k": 0}
    assert texts(memory, "k") == ["a", "b", "a", "b", "c"]


def test_what_was_dropped_and_vacuumed_does_not_come_back(memory: Memory, source: Path) -> None:
    path = source / "k.jsonl"
    path.write_text(lines(*said("a", "b")))
    take_in(memory, path, "openai-messages")
    memory.sessions.clear("k")
    assert counts(take_in(memory, path, "openai-messages")) == {"k": 0}
    memory.sessions.vacuum("k", purge=True)
    path.write_text(lines(*said("a", "b", "c")))
    assert counts(take_in(memory, path, "openai-messages")) == {"k": 1}
    assert texts(memory, "k") == ["c"]


def test_a_session_that_was_deleted_is_taken_in_from_its_start(memory: Memory, source: Path) -> None:
    path = source / "k.jsonl"
    path.write_text(lines(*said("a", "b")))
    take_in(memory, path, "openai-messages")
    memory.sessions.delete("k")
    assert counts(take_in(memory, path, "openai-messages")) == {"k": 2}


def test_what_is_later_by_its_own_time_goes_behind_other_messages(memory: Memory, source: Path) -> None:
    memory.sessions.add_message(
        "k", {"role": "user", "content": "mine", "created_at": "2026-05-04T10:00:05Z"}
    )
    path = source / "t.jsonl"
    path.write_text(lines(claude("user", "later", 9)))
    assert counts(take_in(memory, path, "claude-code-session", key="k")) == {"k": 1}
    path.rename(source / "other.jsonl").write_text(lines(claude("user", "earlier", 1)))
    assert take_in(memory, source / "other.jsonl", "claude-code-session", key="k").sessions == ()
    assert texts(memory, "k") == ["mine", "later"]


def test_a_line_is_a_commit_with_the_place_that_was_reached(
    memory: Memory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.conversations.transcripts.importing._LINE", 100)
    path = source / "k.jsonl"
    path.write_text(lines(*said(*"abcdefghij")))
    take_in(memory, path, "openai-messages")
    log = Path(memory.vault.root, "sessions", "k.jsonl").read_text()
    written = list(map(json.loads, log.splitlines()))[1:]
    assert len(written) > 3
    for line in written:
        (place,) = line["cursors"].values()
        assert path.read_bytes()[place["start"] : place["end"]].decode() == lines(line["messages"][-1])


# -- bad input, and others ----------------------------------------------------------------------------------


def test_no_link_and_no_device_is_read(memory: Memory, source: Path) -> None:
    real = source.parent / "real.jsonl"
    real.write_text(lines(*said("a")))
    (source / "link.jsonl").symlink_to(real)
    os.mkfifo(source / "pipe.jsonl")
    done = take_in(memory, source, "openai-messages")
    assert done.sessions == ()
    assert [told.rpartition(": ")[2] for told in done.left_out] == [
        "it is a symbolic link",
        "it is not a regular file",
    ]


def test_what_is_asked_wrongly_is_refused(memory: Memory, source: Path) -> None:
    with pytest.raises(Usage, match="a format is one of picoclaw"):
        take_in(memory, source, "word")
    with pytest.raises(Usage, match="a key is for one file"):
        take_in(memory, source, key="k")


def test_secrets_are_treated_as_in_all_that_is_added(memory: Memory, source: Path) -> None:
    config = Path(memory.vault.root, ".mdmem", "config.toml")
    path = source / "k.jsonl"
    escaped = f'{{"role": "user", "content": "it is \\u0067{TOKEN[1:]}"}}\n'
    path.write_text(lines(*said(f"my token is {TOKEN}")) + escaped)
    for how, kept in (("redact", 2), ("refuse", 0), ("keep", 2)):
        config.write_text(f'[sessions]\nsecrets = "{how}"\n')
        fresh = open_memory(memory.vault.root)
        assert counts(take_in(fresh, path, "openai-messages", key=how)) == {how: kept}
        held = "".join(texts(fresh, how))
        assert (TOKEN in held) is (how == "keep")


def test_a_key_of_which_nothing_is_kept_is_left_out(memory: Memory, source: Path) -> None:
    legacy(source, "heartbeat", said("a"))
    done = take_in(memory, source)
    assert done.sessions == ()
    assert "the config keeps nothing of 'heartbeat'" in done.left_out[0]


def test_values_that_no_message_can_hold_are_left_out(memory: Memory, source: Path) -> None:
    deep = {"role": "user", "content": "x", "deep": json.loads("[" * 101 + "]" * 101)}
    path = source / "k.jsonl"
    path.write_text(lines(*said("a")) + '{"role": "user", "n": NaN}\n' + lines(deep))
    done = take_in(memory, path, "openai-messages")
    assert counts(done) == {"k": 1}
    assert ["not JSON" in done.left_out[0], "more than 100 deep" in done.left_out[1]] == [True, True]


def test_reasons_are_counted_beyond_the_first_hundred(memory: Memory, source: Path) -> None:
    path = source / "k.jsonl"
    path.write_text("{\n" * 250 + lines(*said("a")))
    done = take_in(memory, path, "openai-messages")
    assert (len(done.left_out), done.left_out[-1]) == (101, f"{path}: 150 more")


def test_a_disk_that_refuses_ends_the_import_and_the_next_one_goes_on(
    memory: Memory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.conversations.transcripts.importing._LINE", 60)
    path = source / "k.jsonl"
    path.write_text(lines(*said(*"abcdefgh")))
    synced = os.fsync
    left = [12]

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        synced(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageFailed):
            take_in(memory, path, "openai-messages")
    kept = texts(memory, "k")
    assert 0 < len(kept) < 8
    assert counts(take_in(memory, path, "openai-messages")) == {"k": 8 - len(kept)}
    assert texts(memory, "k") == list("abcdefgh")


def test_a_hook_waits_for_no_long_file_and_the_next_one_reads_on(
    memory: Memory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(memory.vault.root, ".mdmem", "config.toml").write_text('[sessions]\ncapture = "hooks"\n')
    monkeypatch.setattr("mdmem.conversations.transcripts.importing._LINE", 100)
    monkeypatch.setattr("mdmem.conversations.transcripts.importing.HOOK_SECONDS", -1.0)
    path = source / "5e1f.jsonl"
    path.write_text(lines(*(claude("user", str(number), number) for number in range(10))))
    sessions = open_memory(memory.vault.root).sessions
    sessions.allow_capture()
    for number in range(1, 10):
        sessions.capture("claude-code-session", str(path))
        assert texts(memory, "claude-code:5e1f") == list(map(str, range(number)))


def test_a_hook_does_not_wait_for_another_import_and_imports_the_next_time(
    memory: Memory, source: Path
) -> None:
    Path(memory.vault.root, ".mdmem", "config.toml").write_text('[sessions]\ncapture = "hooks"\n')
    path = source / "5e1f.jsonl"
    path.write_text(lines(claude("user", "hello", 1)))
    sessions = open_memory(memory.vault.root).sessions
    sessions.allow_capture()
    with sessions.logs.alone("importing", "claude-code:5e1f", 0.0), pytest.raises(LockTimeout):
        sessions.capture("claude-code-session", str(path))
    assert sessions.capture("claude-code-session", str(path)) == "claude-code:5e1f"
    assert texts(memory, "claude-code:5e1f") == ["hello"]


def test_two_processes_that_import_at_once_add_each_message_once(memory: Memory, source: Path) -> None:
    path = source / "k.jsonl"
    path.write_text(lines(*said(*map(str, range(2_000)))))
    program = (
        "import sys; from mdmem.facade.memory import open\n"
        "import mdmem.conversations.transcripts.importing as importing\n"
        "importing._LINE = 2_000\n"
        "open(sys.argv[1]).sessions.import_('openai-messages', sys.argv[2])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, memory.vault.root, str(path)]) for _ in range(2)
    ]
    assert [process.wait(60) for process in running] == [0, 0]
    assert texts(memory, "k") == list(map(str, range(2_000)))


texts_of_any_kind = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts_of_any_kind,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts_of_any_kind, inner, max_size=4),
    max_leaves=8,
)
messages_of_any_form = st.lists(
    st.builds(
        lambda role, more: {"role": role, "content": "c", **more},
        st.sampled_from(["user", "assistant", "tool"]),
        st.dictionaries(texts_of_any_kind.filter(lambda name: name != "role"), values, max_size=3),
    ),
    max_size=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(messages=[{"role": "user", "content": "c", "": "0"}], ascii_only=False)
@given(messages=messages_of_any_form, ascii_only=st.booleans())
def test_every_field_of_a_document_comes_back_equal(
    source: Path, messages: list[Any], *, ascii_only: bool
) -> None:
    path = source / "chat.json"
    path.write_text(json.dumps(messages, ensure_ascii=ascii_only), encoding="utf-8")
    left_out: list[str] = []
    (transcript,) = transcripts("openai-messages", str(path), 1_000_000, left_out)
    assert ([entry.message for entry in transcript.read(0, 1)], left_out) == (messages, [])


def test_a_document_that_would_fill_the_memory_is_left_out(memory: Memory, source: Path) -> None:
    """Values of a few bytes take a hundred times as many when they are read."""
    (source / "many.json").write_text("[" + "[]," * 1_000_001 + "[]]")
    done = take_in(memory, source, "openai-messages")
    assert (done.sessions, "more than 1,000,000 values" in done.left_out[0]) == ((), True)
