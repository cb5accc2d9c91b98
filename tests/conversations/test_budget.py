"""A prompt is never over its budget, and no pair in it is parted, whichever program wrote the messages.

What a prompt takes and which messages belong together is told here by other code: all of it is the JSON of
the messages without the base64 that was put into them, and the ids that stand in it.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.conversations.log.message import Message
from mdmem.conversations.sessions import Sessions
from mdmem.document.text.tokens import estimate
from mdmem.facade.memory import Memory
from tests.speed import examples

EXAMPLES = settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
pytestmark = pytest.mark.timeout(1_800)
KEYS = map("session {:06}".format, itertools.count())
FILE = base64.b64encode(random.Random(1).randbytes(3_000)).decode()
URL = f"data:image/png;base64,{FILE}"
SIGNED = base64.b64encode(random.Random(2).randbytes(600)).decode()
IDS = ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "approval_request_id")

Messages = list[dict[str, Any]]
Turn = Callable[[Callable[[], str], str], Messages]
"""What makes messages of something that gives texts, and of an id."""


# -- messages as programs write them ----------------------------------------------------------------------


def said(role: str) -> Turn:
    return lambda text, _: [{"role": role, "content": text()}]


def chat_call(text: Callable[[], str], name: str) -> Messages:
    calls = [
        {
            "id": f"{name}{n}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": text()})},
        }
        for n in "ab"
    ]
    answers = [
        {"role": "tool", "tool_call_id": f"{name}{n}", "name": "read", "content": text()} for n in "ab"
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *answers]


def chat_custom(text: Callable[[], str], name: str) -> Messages:
    call = {"id": name, "type": "custom", "custom": {"name": "patch", "input": text()}}
    parts = [{"type": "text", "text": text()}]
    return [
        {"role": "assistant", "content": text(), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": parts},
    ]


def chat_legacy(text: Callable[[], str], name: str) -> Messages:
    return [
        {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": text()}},
        {"role": "function", "name": name, "content": text()},
    ]


def chat_media(text: Callable[[], str], _: str) -> Messages:
    parts = [
        {"type": "text", "text": text()},
        {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": FILE, "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{FILE}"}},
    ]
    return [{"role": "user", "name": "Alice", "content": parts}]


def chat_refusal(text: Callable[[], str], _: str) -> Messages:
    return [
        {"role": "assistant", "content": None, "refusal": text()},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": text()}]},
    ]


def anthropic_call(text: Callable[[], str], name: str) -> Messages:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": FILE}}
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": text(), "signature": SIGNED},
                {"type": "text", "text": text()},
                {"type": "tool_use", "id": name, "name": "bash", "input": {"command": text()}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": name,
                    "content": [{"type": "text", "text": text()}, picture],
                }
            ],
        },
    ]


def anthropic_search(text: Callable[[], str], name: str) -> Messages:
    hits = [
        {
            "type": "web_search_result",
            "url": "https://a.example",
            "title": text(),
            "encrypted_content": SIGNED,
        }
        for _ in range(3)
    ]
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": name, "name": "web_search", "input": {"query": text()}},
                {"type": "web_search_tool_result", "tool_use_id": name, "content": hits},
                {"type": "text", "text": text(), "citations": [{"type": "x", "cited_text": text()}]},
            ],
        }
    ]


def anthropic_split(kind: str, result: str) -> Turn:
    """A tool of the server whose answer came in another message."""

    def turn(text: Callable[[], str], name: str) -> Messages:
        told = {
            "type": "code_execution_result",
            "stdout": text(),
            "stderr": "",
            "return_code": 0,
            "content": [],
        }
        return [
            {
                "role": "assistant",
                "content": [
                    {"type": kind, "id": name, "name": "run", "server_name": "s", "input": {"code": text()}}
                ],
            },
            {"role": "assistant", "content": [{"type": result, "tool_use_id": name, "content": told}]},
        ]

    return turn


def anthropic_document(text: Callable[[], str], _: str) -> Messages:
    source = {"type": "base64", "media_type": "application/pdf", "data": FILE}
    plain = {"type": "text", "media_type": "text/plain", "data": text()}
    blocks = [
        {"type": "document", "source": source, "title": text()},
        {"type": "document", "source": plain},
        {"type": "text", "text": text()},
    ]
    return [{"role": "user", "content": blocks}]


def codex_call(call: str, answer: str, asked: str) -> Turn:
    def turn(text: Callable[[], str], name: str) -> Messages:
        action: Any = text()
        if asked == "action":
            action = {"type": "exec", "command": ["bash", "-lc", text()], "env": {"A": text()}}
        return [
            {
                "type": call,
                "id": f"fc_{name}",
                "status": "completed",
                "call_id": name,
                "name": "run",
                asked: action,
            },
            {"type": answer, "call_id": name, "output": text()},
        ]

    return turn


def codex_items(text: Callable[[], str], name: str) -> Messages:
    content = [{"type": "input_text", "text": text()}, {"type": "input_image", "image_url": URL}]
    return [
        {"type": "message", "role": "user", "content": content},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text()}],
            "encrypted_content": SIGNED,
        },
        {
            "type": "web_search_call",
            "id": f"ws_{name}",
            "status": "completed",
            "action": {"type": "search", "query": text()},
        },
        {
            "type": "mcp_call",
            "id": f"mcp_{name}",
            "name": "find",
            "arguments": text(),
            "output": text(),
            "error": None,
        },
        {"type": "image_generation_call", "id": f"ig_{name}", "status": "completed", "result": FILE},
    ]


def codex_screen(text: Callable[[], str], name: str) -> Messages:
    shown = {"type": "computer_screenshot", "image_url": URL}
    return [
        {
            "type": "computer_call",
            "id": f"cu_{name}",
            "call_id": name,
            "action": {"type": "type", "text": text()},
        },
        {"type": "computer_call_output", "call_id": name, "output": shown, "acknowledged_safety_checks": []},
    ]


def codex_shell_by_id(text: Callable[[], str], name: str) -> Messages:
    return [
        {
            "type": "local_shell_call",
            "id": name,
            "status": "completed",
            "action": {"type": "exec", "command": [text()]},
        },
        {"type": "function_call_output", "call_id": name, "output": [{"type": "input_text", "text": text()}]},
    ]


def codex_shell_of_the_api(text: Callable[[], str], name: str) -> Messages:
    return [
        {"type": "local_shell_call", "id": f"lsh_{name}", "call_id": name, "action": {"command": [text()]}},
        {"type": "local_shell_call_output", "id": name, "status": "completed", "output": text()},
    ]


def codex_approval(text: Callable[[], str], name: str) -> Messages:
    return [
        {"type": "mcp_approval_request", "id": name, "server_label": "s", "name": "rm", "arguments": text()},
        {"type": "mcp_approval_response", "approval_request_id": name, "approve": True, "reason": text()},
    ]


def gemini_call(text: Callable[[], str], name: str) -> Messages:
    call = {"functionCall": {"name": name, "args": {"path": text(), "deep": [{"type": "x", "id": text()}]}}}
    answer = {
        "functionResponse": {"name": name, "response": {"output": text(), "status": text(), "n": 12345}}
    }
    return [
        {"role": "model", "parts": [{"text": text(), "thought": True}, {**call, "thoughtSignature": SIGNED}]},
        {"role": "user", "parts": [answer]},
    ]


def gemini_media(text: Callable[[], str], _: str) -> Messages:
    parts = [{"text": text()}, {"inlineData": {"mimeType": "image/png", "data": FILE}}]
    code = [{"executableCode": {"language": "PYTHON", "code": text()}}]
    code.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": text()}})
    return [{"role": "user", "parts": parts}, {"role": "model", "parts": code}]


def bedrock_call(text: Callable[[], str], name: str) -> Messages:
    call = {"toolUse": {"toolUseId": name, "name": "read", "input": {"path": text()}}}
    answer = {
        "toolResult": {"toolUseId": name, "content": [{"json": {"found": text()}}], "status": "success"}
    }
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]


def picoclaw(text: Callable[[], str], name: str) -> Messages:
    call = {"id": name, "type": "function", "name": "read", "arguments": {"path": text()}}
    return [
        {
            "role": "user",
            "content": text(),
            "media": ["media://1", URL],
            "created_at": "2026-01-02T03:04:05Z",
        },
        {
            "role": "assistant",
            "content": text(),
            "tool_calls": [call],
            "reasoning_content": text(),
            "model_name": "m",
        },
        {
            "role": "tool",
            "content": text(),
            "tool_call_id": name,
            "attachments": [{"path": "a", "mime": "b"}],
        },
    ]


def unknown_pair(first: str, second: str) -> Turn:
    """What no program that we know writes; the second refers to the first."""

    def turn(text: Callable[[], str], name: str) -> Messages:
        return [
            {"type": "probe_started", first: name, "payload": {"deep": [{"note": text()}]}},
            {"type": "probe_done", second: name, "data": [text(), {"x": text()}]},
        ]

    return turn


def unknown_content(text: Callable[[], str], _: str) -> Messages:
    return [
        {"role": "user", "content": {"title": text(), "id": text(), "list": [text(), 5, None, True]}},
        {"role": "assistant", "blocks": [{"kind": "say", "words": text()}], "blob": FILE},
        {"type": "note", "body": {"a": {"b": text()}}},
    ]


def many_items(text: Callable[[], str], name: str) -> Messages:
    rows = [{"name": f"row {n}", "size": n, "type": "file"} for n in range(60)]
    return [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": name, "response": {"rows": rows, "said": text()}}}],
        },
    ]


TURNS: list[Turn] = [
    *(said("user"), said("user"), said("assistant"), said("system"), said("developer")),
    *(chat_call, chat_custom, chat_legacy, chat_media, chat_refusal),
    *(anthropic_call, anthropic_search, anthropic_document),
    anthropic_split("server_tool_use", "code_execution_tool_result"),
    anthropic_split("mcp_tool_use", "mcp_tool_result"),
    codex_call("function_call", "function_call_output", "arguments"),
    codex_call("custom_tool_call", "custom_tool_call_output", "input"),
    codex_call("local_shell_call", "local_shell_call_output", "action"),
    *(codex_items, codex_screen, codex_shell_by_id, codex_shell_of_the_api, codex_approval),
    *(gemini_call, gemini_media, bedrock_call, picoclaw),
    *[unknown_pair("call_id", "call_id")] * 2,
    *[unknown_pair("id", "tool_call_id")] * 2,
    *(unknown_content, many_items),
]


# -- the oracle -------------------------------------------------------------------------------------------


def bare(value: Any) -> Any:
    """A value without the base64 that was put into it."""
    if isinstance(value, str):
        return "" if value in (FILE, SIGNED) or value.startswith("data:") else value
    if isinstance(value, list):
        return [bare(each) for each in value]
    return {name: bare(each) for name, each in value.items()} if isinstance(value, dict) else value


def size(messages: Messages) -> int:
    return estimate(json.dumps(bare(messages), ensure_ascii=False))


def ids(value: Any, field: str = "") -> Iterator[str]:
    """The ids in a message; of programs without ids the names of functions, which are given once here."""
    if isinstance(value, list):
        for each in value:
            yield from ids(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            is_id = name in IDS or (
                name == "name" and field in {"functionCall", "functionResponse", "function_call"}
            )
            if (is_id or (name == "name" and value.get("role") == "function")) and isinstance(each, str):
                yield each
            elif name not in {"args", "input", "action", "response"}:
                yield from ids(each, name)


def answered(message: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The ids of the calls that a message answers, and whether it makes them itself."""
    content = message.get("content")
    for each in [message, *(content if isinstance(content, list) else [])]:
        if isinstance(each, dict):
            each = each.get("toolResult", each)  # noqa: PLW2901 - as Bedrock has it
            named = [each[name] for name in ("tool_call_id", "tool_use_id") if name in each]
            named += [each["toolUseId"]] if {"toolUseId", "status"} <= each.keys() else []
            named += (
                [each.get("call_id", each.get("id"))] if str(each.get("type")).endswith("_output") else []
            )
            yield from ((name, "server_tool_use" in str(content)) for name in named)


def words(value: Any) -> Iterator[str]:
    """The texts that were put in, each of which begins with a word of its own."""
    if isinstance(value, str):
        yield from (each for each in value.replace('"', " ").split() if each.startswith("qword"))
    elif isinstance(value, list | dict):
        for each in value if isinstance(value, list) else value.values():
            yield from words(each)


def is_users(message: dict[str, Any]) -> bool:
    written = json.dumps(message)
    return message.get("role") == "user" and not any(
        each in written for each in ("tool_result", "functionResponse", "toolResult")
    )


@pytest.fixture
def sessions(vault_root: Path) -> Sessions:
    return Memory(str(vault_root)).sessions


TEXT = st.tuples(st.text(st.sampled_from('ab \n"\\中é👍{<'), max_size=40), st.integers(0, 120))


def history_of(chosen: list[tuple[int, bool]], texts: list[tuple[str, int]]) -> Messages:
    """Messages of some turns; the first one of a pair may be missing."""
    given, numbers = itertools.cycle(texts), itertools.count()

    def text() -> str:
        said, times = next(given)
        return f"qword{next(numbers)} {said * times}"

    made: Messages = []
    for number, (at, is_torn) in enumerate(chosen):
        turn = TURNS[at](text, f"x{number}y")
        made += turn[1:] if is_torn and len(turn) == 2 else turn
    return made


@EXAMPLES
@given(
    st.lists(
        st.tuples(st.integers(0, len(TURNS) - 1), st.sampled_from([False] * 9 + [True])),
        min_size=1,
        max_size=14,
    ),
    st.lists(TEXT, min_size=1, max_size=6),
    st.one_of(st.integers(0, 400), st.floats(0, 1.3)),
    st.integers(0, 40),
    st.one_of(st.none(), st.integers(0, 2_000)),
    st.booleans(),
)
def test_a_prompt_of_any_messages_keeps_its_budget_and_its_pairs(
    sessions: Sessions,
    chosen: list[tuple[int, bool]],
    texts: list[tuple[str, int]],
    limit: float,
    tail: int,
    compacted: int | None,
    user_first: bool,
) -> None:
    key = next(KEYS)
    given_ = history_of(chosen, texts)
    sessions.extend(key, given_, by_id=False)
    budget = limit if isinstance(limit, int) else int(limit * size(given_))  # or a part of all
    if compacted is not None:
        sessions.compact(key, compacted)
    history = {message.seq: dict(message.data) for message in sessions.history(key)}
    assert list(history.values()) == given_
    prompt = sessions.assemble(key, budget, tail, user_first=user_first)
    shown = prompt.as_messages()
    assert size(shown) <= prompt.tokens <= budget or not (shown or prompt.tokens)
    seqs = [message.seq for message in prompt.messages]
    assert shown[len(shown) - len(seqs) :] == [dict(message.data) for message in prompt.messages]
    for message in prompt.messages:
        assert (dict(message.data) == history[message.seq]) == (message.seq not in prompt.cut)
        assert set(ids(dict(message.data))) == set(ids(history[message.seq]))
    holding: dict[str, set[int]] = {}
    for seq, data in history.items():
        for each in ids(data):
            holding.setdefault(each, set()).add(seq)
    for places in holding.values():
        assert places <= set(seqs) or places.isdisjoint(seqs), places
    for message in prompt.messages:
        if not str(message.data.get("type")).startswith("probe"):
            assert all(len(holding[each]) > 1 or is_own for each, is_own in answered(dict(message.data)))
    if user_first and prompt.messages:
        first = next(data for data in shown if data.get("role") not in ("system", "developer"))
        assert is_users(first)


@EXAMPLES
@given(st.integers(0, len(TURNS) - 1), st.lists(TEXT, min_size=1, max_size=3), st.integers(0, 600))
def test_a_message_of_any_program_is_counted_and_found_within_any_budget(
    at: int, texts: list[tuple[str, int]], budget: int
) -> None:
    for data in history_of([(at, False)], texts):
        message = Message(1, data)
        assert message.tokens >= size([data])
        thought = {"thinking", "summary", "reasoning_content", "encrypted_content"}
        told = [
            part
            for name, each in data.items()
            for part in (each if isinstance(each, list) else [each])
            if name not in thought
            and not (isinstance(part, dict) and (part.get("thought") or "thinking" in part))
        ]
        assert set(words(told)) <= set(words(message.searchable.replace("\\", " ")))
        shorter = message.abridged(budget)
        if shorter:
            assert size([dict(shorter.data)]) <= shorter.tokens <= budget
            assert set(ids(dict(shorter.data))) == set(ids(data))
            assert [each.kind for each in shorter.halves] == [each.kind for each in message.halves]
        else:
            assert message.tokens > budget
