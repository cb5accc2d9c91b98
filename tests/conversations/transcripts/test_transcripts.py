"""Whose conversation a file is, is known by looking; what does not fit is refused with the reason."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mdmem.conversations.transcripts.importing import SessionImport
from mdmem.errors import Usage
from mdmem.facade.memory import Memory
from tests.tables import cases

Write = Callable[..., Path]
AT = "2026-05-04T10:00:00.000Z"
CLAUDE = {"type": "user", "uuid": "u1", "timestamp": AT, "message": {"role": "user", "content": "hello"}}
CODEX = {
    "type": "response_item",
    "timestamp": AT,
    "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
}
GEMINI = {"id": "g1", "type": "user", "timestamp": AT, "content": [{"text": "hello"}]}
OPENCODE = {
    "info": {"id": "msg_1", "role": "user", "time": {"created": 1777888800000}},
    "parts": [{"type": "text", "text": "hello"}],
}
OPENAI = {"role": "user", "content": "hello", "timestamp": AT}
ONE = {
    "claude-code-session": CLAUDE,
    "codex-session": CODEX,
    "gemini-cli-session": GEMINI,
    "opencode-session": OPENCODE,
    "openai-messages": OPENAI,
}


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    folder = tmp_path / "source"
    folder.mkdir()

    def write_file(text: str | bytes, name: str = "t.jsonl") -> Path:
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def said(memory: Memory, done: SessionImport) -> list[tuple[str, str, str]]:
    """Who says what, and when, in the history of the only session."""
    (session,) = done.sessions
    history = memory.sessions.history(session.key)
    return [(message.role, message.spoken or message.text, message.created_at) for message in history]


@cases("form", ONE)
def test_a_format_is_known_by_looking(memory: Memory, write: Write, form: str) -> None:
    path = write(lines(ONE[form]), f"{form}.jsonl")
    done = memory.sessions.import_(str(path))
    assert [each.format for each in done.sessions] == [form]
    assert (said(memory, done), done.left_out) == ([("user", "hello", AT)], ())
    again = memory.sessions.import_(str(path), format=form)
    assert ([each.messages for each in again.sessions], again.left_out) == ([0], ())


@cases("form, named", [(form, named) for form in ONE for named in [*ONE, "picoclaw"] if form != named])
def test_a_file_of_another_format_is_refused(memory: Memory, write: Write, form: str, named: str) -> None:
    if {form, named} == {"openai-messages", "picoclaw"}:
        return
    path = write(lines(ONE[form]), f"{form}-{named}.jsonl")
    done = memory.sessions.import_(named, str(path))
    assert done.sessions == ()
    assert done.left_out == (f"{path}: it has the format {form}, and not {named}",)
    assert memory.sessions.list() == []


SIDE = {**CLAUDE, "isSidechain": True, "agentId": "a1"}
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}
SILENT: dict[str, tuple[list[Any], str]] = {
    "of an agent": ([SIDE, {**SIDE, "uuid": "u2"}], "it belongs to a subagent: "),
    "of a title": ([{"type": "summary", "summary": "x", "leafUuid": "u9"}, SNAPSHOT], "nobody says anything"),
    "of events": ([{"type": "event_msg", "payload": {"type": "token_count"}}], "nobody says anything"),
    "of no messages": ([{"info": {"id": "s"}, "messages": []}], "nobody says anything"),
    "of a log of prompts": (
        [[{"sessionId": "g", "type": "user", "message": "hi"}]],
        "nothing in it is of a ",
    ),
}


@cases("name", SILENT)
def test_a_file_in_which_nobody_says_anything_is_left_out_with_the_reason(
    memory: Memory, write: Write, name: str
) -> None:
    values, reason = SILENT[name]
    path = write(lines(*values), f"{name}.jsonl")
    done = memory.sessions.import_(str(path))
    assert (done.sessions, len(done.left_out)) == ((), 1)
    assert done.left_out[0].startswith(f"{path}: {reason}")


def test_the_files_of_agents_are_counted_and_what_stands_beside_them_is_taken(
    memory: Memory, write: Write
) -> None:
    folder = write(lines(*[SNAPSHOT] * 30, CLAUDE, {**SIDE, "uuid": "u2"}), "whole.jsonl").parent
    for number in range(3):
        write(lines(SIDE), f"agent-{number}.jsonl")
    for messages in (1, 0):
        done = memory.sessions.import_(str(folder))
        assert [(each.key, each.messages) for each in done.sessions] == [("claude-code:whole", messages)]
        (reason,) = done.left_out
        assert reason.startswith(f"{folder}: it belongs to a subagent")
        assert reason.endswith(" (3 files)")


@cases("form", ["claude-code-session", "codex-session"])
def test_one_document_where_lines_belong_is_said(memory: Memory, write: Write, form: str) -> None:
    for name, text in {
        "a.json": json.dumps([ONE[form]], indent=1),
        "b.jsonl": json.dumps([ONE[form]]),
    }.items():
        path = write(text, name)
        for named in (None, form):
            done = memory.sessions.import_(str(path), format=named)
            assert done.left_out == (
                f"{path}: it is one JSON document, and {form} has a line for each message",
            )


@cases("name, indent", [(name, indent) for name in ("a.json", "a.jsonl") for indent in (None, 2)])
def test_a_document_is_one_whatever_its_file_is_called(
    memory: Memory, write: Write, name: str, indent: int | None
) -> None:
    gemini = {"sessionId": "s1", "projectHash": "h", "messages": [GEMINI]}
    opencode = {"info": {"id": "ses_1"}, "messages": [OPENCODE]}
    documents = {"gemini-cli:s1": gemini, "opencode:ses_1": opencode, name[0]: [OPENAI]}
    for key, document in documents.items():
        done = memory.sessions.import_(str(write(json.dumps(document, indent=indent), name)))
        assert [each.key for each in done.sessions] == [key]
        assert said(memory, done) == [("user", "hello", AT)]
        memory.sessions.delete(key)


@cases("form", ONE)
def test_a_mark_at_the_beginning_is_passed_over(memory: Memory, write: Write, form: str) -> None:
    path = write(b"\xef\xbb\xbf" + lines(ONE[form]).encode(), f"mark-{form}.jsonl")
    done = memory.sessions.import_(str(path))
    assert (said(memory, done), done.left_out) == ([("user", "hello", AT)], ())


def test_what_powershell_redirects_is_read(memory: Memory, write: Write) -> None:
    path = write(json.dumps({"info": {"id": "s"}, "messages": [OPENCODE]}).encode("utf-16"), "a.json")
    assert said(memory, memory.sessions.import_(str(path))) == [("user", "hello", AT)]


TIMES: dict[str, list[Any]] = {
    "timestamp": [AT, 1777888800, 1777888800000, "1777888800.000"],
    "created_at": [1777888800],
    "createdAt": [AT, 1777888800000],
    "created": [1777888800],
    "time": [{"created": 1777888800000}, AT],
    "ts": [1777888800.0],
}


@cases("name, value", [(name, value) for name, values in TIMES.items() for value in values])
def test_a_time_is_found_in_any_field(memory: Memory, write: Write, name: str, value: Any) -> None:
    path = write(lines({"role": "user", "content": "hello", name: value}))
    done = memory.sessions.import_(str(path), key=f"{name}-{value}")
    assert said(memory, done) == [("user", "hello", AT)]
    assert memory.sessions.history(f"{name}-{value}")[0].data[name] == value


def test_files_that_are_packed_are_said_once(memory: Memory, write: Write) -> None:
    write(b"(\xb5/\xfd", "rollout-1.jsonl.zst")
    packed = write(b"(\xb5/\xfd", "rollout-2.jsonl.zst")
    for form in (None, "codex-session", "openai-messages"):
        done = memory.sessions.import_(str(packed.parent), format=form)
        assert done.left_out == (f"{packed.parent}: packed by zstd (2); unpack it first, with `zstd -d`",)
        assert memory.sessions.import_(str(packed), format=form).left_out


def test_nothing_that_is_known_is_refused(memory: Memory, write: Write) -> None:
    path = write(lines({"a": 1}, {"b": 2}))
    for form in (None, *ONE):
        done = memory.sessions.import_(str(path), format=form)
        assert (done.sessions, len(done.left_out)) == ((), 1)
        assert "nothing in it is of a known format" in done.left_out[0]


def test_several_paths_and_a_format_before_them_or_beside_them(memory: Memory, write: Write) -> None:
    first, second = write(lines(CLAUDE), "a.jsonl"), write(lines(CODEX), "b.jsonl")
    done = memory.sessions.import_(str(first), str(second))
    assert [each.key for each in done.sessions] == ["claude-code:a", "codex:b"]
    again = memory.sessions.import_("claude-code-session", str(first), str(second))
    assert ([each.key for each in again.sessions], len(again.left_out)) == (["claude-code:a"], 1)
    for name, near in {"claude-code": "claude-code-session", "codex": "codex-session"}.items():
        with pytest.raises(Usage, match=f"nearest names: {near}"):
            memory.sessions.import_(name, str(first))
    with pytest.raises(Usage, match="there is no such file"):
        memory.sessions.import_(str(first), "c.jsonl")
    with pytest.raises(Usage, match="a key is for one file"):
        memory.sessions.import_(str(first), str(second), key="k")


def test_messages_of_programs_may_be_added_by_hand(memory: Memory) -> None:
    answer = {"id": "g2", "type": "gemini", "content": "hi", "model": "m", "timestamp": AT}
    memory.sessions.extend("k", [GEMINI, answer, OPENCODE])
    history = memory.sessions.history("k")
    assert [(each.role, each.spoken, each.created_at) for each in history] == [
        ("user", "hello", AT),
        ("assistant", "hi", AT),
        ("user", "hello", AT),
    ]
    assert [each.id for each in history] == ["g1", "g2", "msg_1"]


@cases(
    "message",
    [
        {"type": "user", "text": "hello"},
        {"type": "info", "id": "i", "content": "Update available"},
        {"info": {"id": "m"}, "parts": []},
        {"info": {"role": "user"}, "parts": [{"type": "step-start"}]},
        CLAUDE,
    ],
)
def test_a_message_without_a_speaker_is_refused(memory: Memory, message: Any) -> None:
    with pytest.raises(Usage, match="the role of a message is a text"):
        memory.sessions.extend("k", [message])


# -- Claude Code: the queue, and what was taken back ---------------------------------------------------------


def claude(number: int, role: str, text: Any, parent: int | None = None, **more: Any) -> dict[str, Any]:
    """A line, behind the one before where no other parent is given."""
    own = f"u{number}"
    return {
        "type": role,
        "uuid": own,
        "parentUuid": f"u{number - 1 if parent is None else parent}",
        "timestamp": at(number),
        "sessionId": "s",
        "message": {"role": role, "id": f"m{number}", "content": text},
        **more,
    }


def at(number: int) -> str:
    return f"2026-05-04T10:00:{number:02}.000Z"


def queued(operation: str, number: int, **more: Any) -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, "timestamp": at(number), **more}


def attached(number: int, prompt: Any, **more: Any) -> dict[str, Any]:
    attachment = {"type": "queued_command", "commandMode": "prompt", "prompt": prompt, **more}
    line = claude(number, "attachment", "")
    return {name: value for name, value in line.items() if name != "message"} | {"attachment": attachment}


def take_in(memory: Memory, path: Path, *values: Any) -> list[tuple[str, str, str]]:
    path.write_text(lines(*values))
    done = memory.sessions.import_(str(path))
    assert done.left_out == ()
    return [(role[0], text, time[17:19]) for role, text, time in said(memory, done)]


BEGIN = [
    {**claude(1, "user", "go"), "parentUuid": None},
    claude(2, "assistant", [{"type": "text", "text": "on it"}]),
]
WENT = [("u", "go", "01"), ("a", "on it", "02")]
BLOCKS = [{"type": "text", "text": "and B"}]
QUEUES: dict[str, tuple[list[Any], list[tuple[str, str, str]]]] = {
    "waits": ([queued("enqueue", 3, content="and B")], [("u", "and B", "03")]),
    "waits, as blocks": ([queued("enqueue", 3, content=BLOCKS)], [("u", "and B", "03")]),
    "went into the turn, of an older version": (
        [queued("enqueue", 3, content="and B"), queued("remove", 4)],
        [("u", "and B", "03")],
    ),
    "went into the turn": (
        [
            queued("enqueue", 3, content="and B"),
            queued("remove", 4, content="and B"),
            attached(5, "and B", origin={"kind": "human"}),
        ],
        [("u", "and B", "05")],
    ),
    "as blocks": ([attached(5, BLOCKS)], [("u", "and B", "05")]),
    "was sent behind the turn": (
        [queued("enqueue", 3, content="and B"), queued("dequeue", 4), claude(5, "user", "and B")],
        [("u", "and B", "05")],
    ),
    "was taken out again": (
        [queued("enqueue", 3, content="and B"), queued("popAll", 4, content="and B")],
        [],
    ),
    "two of the same": (
        [
            queued("enqueue", 3, content="more"),
            queued("enqueue", 4, content="more"),
            attached(5, "more"),
            queued("remove", 6),
        ],
        [("u", "more", "04"), ("u", "more", "05")],
    ),
    "a notice of a task": (
        [
            queued("enqueue", 3, content="<task-notification>\n<task-id>b</task-id>\n</task-notification>"),
            attached(4, "<task-notification>b</task-notification>", commandMode="task-notification"),
            attached(5, "look here", origin={"kind": "peer"}),
            attached(6, "look here", isMeta=True),
        ],
        [],
    ),
}


@cases("name", QUEUES)
def test_what_was_typed_while_claude_code_worked_is_there_once(
    memory: Memory, write: Write, name: str
) -> None:
    told, expected = QUEUES[name]
    found = take_in(memory, write("", f"{name}.jsonl"), *BEGIN, *told)
    assert sorted(found[2:]) == expected
    assert found[:2] == WENT


@cases("name", QUEUES)
def test_what_was_typed_is_there_once_whenever_it_is_imported(
    memory: Memory, write: Write, name: str
) -> None:
    told, expected = QUEUES[name]
    path, found = write("", f"grown {name}.jsonl"), list[tuple[str, str, str]]()
    for end in range(2, 2 + len(told) + 1):
        found = take_in(memory, path, *[*BEGIN, *told][:end])
    assert sorted(each[:2] for each in found[2:]) == [each[:2] for each in expected]


ANSWER = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
FORKS: dict[str, tuple[list[Any], str]] = {
    "a prompt in the place of another": (
        [
            claude(3, "user", "C"),
            claude(4, "assistant", "D"),
            claude(5, "user", "E", 2),
            claude(6, "assistant", "F"),
        ],
        "go|on it|E|F",
    ),
    "twice": (
        [
            claude(3, "user", "C"),
            claude(4, "user", "D", 2),
            claude(5, "assistant", "E"),
            claude(6, "user", "F", 2),
        ],
        "go|on it|F",
    ),
    "behind a line that says nothing": (
        [
            claude(3, "system", "", subtype="turn_duration"),
            claude(4, "user", "C"),
            claude(5, "assistant", "D"),
            claude(6, "user", "E", 3),
        ],
        "go|on it|E",
    ),
    "the first prompt": (
        [
            claude(3, "user", "C"),
            {**claude(4, "user", "D"), "parentUuid": None},
            claude(5, "assistant", "E"),
        ],
        "D|E",
    ),
    "another answer": ([claude(3, "assistant", "other", 1)], "go|other"),
    "a further part of a response": (
        [claude(3, "assistant", "more", 1, message={"role": "assistant", "id": "m2", "content": "more"})],
        "go|on it|more",
    ),
    "answers of tools that ran beside each other": (
        [
            claude(3, "assistant", [{"type": "tool_use", "id": "t1", "name": "A", "input": {}}]),
            claude(4, "assistant", [{"type": "tool_use", "id": "t2", "name": "B", "input": {}}]),
            claude(5, "user", ANSWER, 3),
            claude(6, "user", [{**ANSWER[0], "tool_use_id": "t2"}], 4),
            claude(7, "assistant", "done", 5),
        ],
        (
            "go|on it|[tool_use: A, args: {}]|[tool_use: B, args: {}]|[tool_result for t1: ok]"
            "|[tool_result for t2: ok]|done"
        ),
    ),
    "a parent that is not there": ([claude(3, "user", "C", 40)], "go|on it|C"),
    "the same line again": ([*BEGIN, claude(3, "user", "C")], "go|on it|C"),
    "the same line again, at another time": (
        [{**BEGIN[1], "timestamp": at(9)}, claude(3, "user", "C")],
        "go|on it|C",
    ),
}


@cases("name", FORKS)
def test_turns_that_were_taken_back_are_marked_and_in_no_prompt(
    memory: Memory, write: Write, name: str
) -> None:
    told, expected = FORKS[name]
    values = [*BEGIN, *told]
    for form in ("at once", "grown"):
        path = write("", f"{form} {name}.jsonl")
        for end in range(2, len(values) + 1) if form == "grown" else [len(values)]:
            path.write_text(lines(*values[:end]))
            memory.sessions.import_(str(path))
        key = f"claude-code:{form} {name}"
        assert "|".join(each.text for each in memory.sessions.history(key)) == expected
        prompt = memory.sessions.assemble(key, 10_000)
        assert "|".join(each.text for each in prompt.messages) == expected
        unique = {each["uuid"] for each in values if each["type"] != "system"}
        everything = memory.sessions.grep(".", key, regex=True, dropped=True, limit=100)
        assert len(everything.hits) == len(unique)
        assert memory.sessions.check(key) == []
        assert memory.sessions.info(key).messages == expected.count("|") + 1


def test_a_prompt_that_is_taken_back_a_hundred_times_leaves_one_range(memory: Memory, write: Write) -> None:
    forks = [claude(number, "user", f"try {number}", 2) for number in range(3, 103)]
    path = write(lines(*BEGIN, *forks), "s.jsonl")
    memory.sessions.import_(str(path))
    key = "claude-code:s"
    assert [each.text for each in memory.sessions.history(key)] == ["go", "on it", "try 102"]
    with memory.sessions.logs.reading(key) as conversation:
        assert len(conversation.state.dropped) == 1


def test_where_no_line_names_a_parent_nothing_is_taken_back(memory: Memory, write: Write) -> None:
    roles = ("user", "assistant") * 3
    values = [claude(number, role, f"{number}") | {"parentUuid": None} for number, role in enumerate(roles)]
    memory.sessions.import_(str(write(lines(*values), "n.jsonl")))
    assert [each.text for each in memory.sessions.history("claude-code:n")] == list("012345")


@cases("seed", range(12))
def test_whatever_is_rewound_what_is_left_is_the_branch_that_went_on(
    memory: Memory, write: Write, seed: int
) -> None:
    chance, values, branch = random.Random(seed), list[dict[str, Any]](), list[tuple[str, str]]()
    for number in range(1, 40):
        prompts = [place for place, (_, text) in enumerate(branch) if text.startswith("p")]
        is_chained = any(value["parentUuid"] for value in values)
        if prompts and is_chained and chance.random() < 0.25:  # to the place before an earlier prompt
            del branch[chance.choice(prompts) :]
        parent = branch[-1][0] if branch else None
        goes_on = parent == f"u{number - 1}" and chance.random() < 0.6  # only a prompt begins another branch
        role, letter = ("assistant", "a") if goes_on else ("user", "p")
        values.append({**claude(number, role, f"{letter}{number}"), "parentUuid": parent})
        branch.append((f"u{number}", values[-1]["message"]["content"]))
    for form in ("at once", "grown"):
        path = write("", f"{form} {seed}.jsonl")
        ends = sorted(chance.sample(range(1, len(values)), 6)) if form == "grown" else []
        for end in [*ends, len(values)]:
            path.write_text(lines(*values[:end]))
            memory.sessions.import_(str(path))
        history = memory.sessions.history(f"claude-code:{form} {seed}")
        assert [each.text for each in history] == [text for _, text in branch]


# -- Codex, Gemini CLI, opencode ---------------------------------------------------------------------------


def codex(number: int, role: str, text: str) -> dict[str, Any]:
    content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
    payload = {"type": "message", "role": role, "content": content}
    return {"type": "response_item", "timestamp": at(number), "payload": payload}


def rolled_back(turns: int) -> dict[str, Any]:
    payload = {"type": "thread_rolled_back", "num_turns": turns}
    return {"type": "event_msg", "timestamp": at(50), "payload": payload}


CONTEXT = codex(1, "user", "<environment_context>\n<cwd>/w</cwd>\n</environment_context>")
TURNS = [
    CONTEXT,
    codex(2, "user", "A"),
    codex(3, "assistant", "a"),
    codex(4, "user", "B"),
    codex(5, "assistant", "b"),
]
ROLLBACKS: dict[str, tuple[list[Any], str]] = {
    "one": ([rolled_back(1), codex(6, "user", "C")], "A|a|C"),
    "two": ([rolled_back(2), codex(6, "user", "C")], "C"),
    "more than there are": ([rolled_back(9)], ""),
    "none": ([rolled_back(0)], "A|a|B|b"),
    "one after another": (
        [rolled_back(1), codex(6, "user", "C"), rolled_back(2), codex(7, "user", "D")],
        "D",
    ),
    "a notice is no turn": ([codex(6, "user", "<turn_aborted>x</turn_aborted>"), rolled_back(1)], "A|a"),
}


@cases("name", ROLLBACKS)
def test_a_rollback_of_codex_takes_turns_back(memory: Memory, write: Write, name: str) -> None:
    told, expected = ROLLBACKS[name]
    values = [*TURNS, *told]
    for form in ("at once", "grown"):
        path = write("", f"{form} {name}.jsonl")
        for end in range(1, len(values) + 1) if form == "grown" else [len(values)]:
            path.write_text(lines(*values[:end]))
            for _ in range(2):
                memory.sessions.import_(str(path))
        history = memory.sessions.history(f"codex:{form} {name}")
        assert "|".join(each.spoken for each in history if each.spoken) == expected
        assert memory.sessions.message(f"codex:{form} {name}", 2).text == "A"


def gemini(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": f"g{number}", "timestamp": at(number), "type": kind, "content": content, **more}


CALL = {
    "id": "c1",
    "name": "read_file",
    "args": {"path": "a"},
    "result": [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "text of a"}}}],
}


THOUGHT = {"subject": "Hm", "description": "a it is"}


def test_a_session_of_gemini_cli_becomes_what_was_said(memory: Memory, write: Write) -> None:
    messages = [
        gemini(1, "info", "Update available"),
        gemini(2, "user", [{"text": "Read a"}]),
        gemini(
            3,
            "gemini",
            "",
            thoughts=[{"subject": "Hm", "description": "a it is"}],
            toolCalls=[CALL],
            model="m",
        ),
        gemini(4, "gemini", "It says text."),
    ]
    header = {"sessionId": "s", "projectHash": "h", "kind": "main"}
    again = [
        {"$set": {"lastUpdated": at(9)}},
        {"$set": {"messages": [*messages[1:3], gemini(4, "gemini", "…")]}},
    ]
    forms = {
        "document.json": json.dumps({**header, "messages": messages}),
        "lines.jsonl": lines(
            header, messages[0], messages[1], gemini(3, "gemini", ""), *messages[2:], *again
        ),
    }
    for name, text in forms.items():
        done = memory.sessions.import_(str(write(text, name)))
        assert done.left_out == ()
        asked, called, told = memory.sessions.history("gemini-cli:s")
        assert [asked.spoken, told.spoken, told.role] == ["Read a", "It says text.", "assistant"]
        assert called.calls == (("c1", "read_file", '{"path":"a"}'),)
        assert called.answers == (("c1", "text of a"),)
        assert (called.reasoning, called.data["model"], called.id) == ("Hm\na it is", "m", "g3")
        memory.sessions.delete("gemini-cli:s")


def test_a_message_that_grows_is_there_once(memory: Memory, write: Write) -> None:
    path = write("", "session.jsonl")
    header = {"sessionId": "s", "projectHash": "h"}
    steps = [
        [gemini(1, "user", "Read a"), gemini(2, "gemini", "")],
        [gemini(2, "gemini", "I read.", toolCalls=[{**CALL, "result": None}])],
        [gemini(2, "gemini", "I read.", toolCalls=[CALL]), gemini(3, "user", "Thanks")],
        [{"$rewindTo": "g3"}, gemini(4, "user", "Read b")],
    ]
    for count in range(1, 5):
        path.write_text(lines(header, *(each for step in steps[:count] for each in step)))
        for _ in range(2):
            assert memory.sessions.import_(str(path)).left_out == ()
    history = memory.sessions.history("gemini-cli:s")
    assert [each.spoken for each in history] == ["Read a", "I read.", "Read b"]
    assert history[1].answers == (("c1", "text of a"),)


def test_an_export_of_opencode_becomes_what_was_said(memory: Memory, write: Write) -> None:
    def message(number: int, role: str, *parts: Any) -> dict[str, Any]:
        time = {"created": 1777888800000 + number * 1000}
        return {
            "info": {"id": f"m{number}", "role": role, "time": time, "modelID": "x"},
            "parts": list(parts),
        }

    state = {"status": "completed", "input": {"path": "a"}, "output": "text of a"}
    messages = [
        message(
            1,
            "user",
            {"type": "text", "text": "Read @a"},
            {"type": "text", "text": "Called the Read tool", "synthetic": True},
        ),
        message(
            2,
            "assistant",
            {"type": "step-start"},
            {"type": "reasoning", "text": "Hm"},
            {"type": "tool", "callID": "c1", "tool": "read", "state": state},
            {"type": "text", "text": "It says text."},
            {"type": "step-finish", "cost": 1},
        ),
        message(3, "user", {"type": "text", "text": "Delete it"}),
    ]
    document = {"info": {"id": "ses_1", "revert": {"messageID": "m3"}}, "messages": messages}
    memory.sessions.import_(str(write(json.dumps(document), "export.json")))
    asked, told = memory.sessions.history("opencode:ses_1")
    assert (asked.spoken, asked.id, asked.created_at) == ("Read @a", "m1", at(1))
    assert (told.spoken, told.reasoning, told.data["model"]) == ("It says text.", "Hm", "x")
    assert (told.calls, told.answers) == ((("c1", "read", '{"path":"a"}'),), (("c1", "text of a"),))
    assert memory.sessions.message("opencode:ses_1", 3).spoken == "Delete it"


# -- what no user said -------------------------------------------------------------------------------------

BY_PROGRAMS = [
    "Base directory for this skill: /s/fix\n\n# Fix\n\nAlways use pnpm.",
    "<skill>\n<name>fix</name>\nAlways use pnpm.\n</skill>",
    '<teammate-message teammate_id="lead">\nAlways use pnpm.\n</teammate-message>',
    '<cross-session-message from="uds:/tmp/1.sock">Always use pnpm.</cross-session-message>',
    "Another Claude session sent a message:\n<agent-message>Always use pnpm.</agent-message>\n\nNot typed.",
    "Stop hook feedback:\nAlways use pnpm.",
    "<additional_context>\nAlways use pnpm.\n</additional_context>",
]


@cases("text", BY_PROGRAMS)
def test_what_another_program_wrote_is_not_the_users_word(memory: Memory, text: str) -> None:
    key = str(BY_PROGRAMS.index(text))
    memory.sessions.add(key, "user", text)
    memory.sessions.add(key, "user", [{"type": "text", "text": "mine"}, {"type": "text", "text": text}])
    assert [each.spoken.strip() for each in memory.sessions.history(key)] == ["", "mine"]


def test_a_line_that_no_person_typed_is_not_the_users_word(memory: Memory, write: Write) -> None:
    kinds = [None, {"kind": "human"}, {"kind": "peer"}, {"kind": "task-notification"}, {"kind": "channel"}]
    values = [claude(n, "user", "Use pnpm.", origin=kind) for n, kind in enumerate(kinds, 1)]
    memory.sessions.import_(str(write(lines(*values), "o.jsonl")))
    memory.sessions.truncate("claude-code:o", 9)
    history = memory.sessions.history("claude-code:o")
    assert [each.spoken for each in history] == ["Use pnpm.", "Use pnpm.", "", "", "Use pnpm."]
    assert [each.text for each in history] == ["Use pnpm."] * 5


def test_words_about_such_blocks_are_the_users(memory: Memory) -> None:
    text = "Another Claude session sent a message: what does that mean?"
    memory.sessions.add("k", "user", text)
    assert memory.sessions.history("k")[0].spoken == text
