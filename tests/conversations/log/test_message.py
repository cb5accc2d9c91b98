"""A message, whichever program wrote it: what it says, what it may hold, and what of it is a secret."""

from __future__ import annotations

import base64
import json
import random
import textwrap
import types
from typing import Any

import pytest

from mdmem.conversations.log.message import MOST_DEEP, Message, check, is_asked, pairs
from mdmem.document.secret import redacted
from mdmem.document.text.tokens import estimate
from mdmem.document.tree import encoded
from mdmem.errors import Usage
from tests.tables import cases

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
OTHER = "ghp_" + "zB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC7"
KEY = "-----BEGIN PRIVATE KEY-----\n" + ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" * 2 + "\n") * 4
PRIVATE = KEY + "-----END PRIVATE KEY-----"


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


class Opaque:
    pass


@cases(
    "data",
    [
        None,
        "user",
        [],
        {},
        {"content": "x"},
        {"role": ""},
        {"role": None},
        {"role": 5},
        {"role": ["user"]},
        {"role": None, "type": "function_call"},
        {"role": "user", "content": float("nan")},
        {"role": "user", "content": [float("-inf")]},
        pytest.param({"role": "user", "content": 10**5_000}, id="5,001 digits"),
        {"role": "user", "content": ("a", "b")},
        {"role": "user", "content": {1: "a"}},
        {"role": "user", "content": {"a", "b"}},
        {"role": "user", "content": b"bytes"},
        {"role": "user", "content": Opaque()},
        {"role": "user", "content": nested(MOST_DEEP + 1)},
        {"role": "user", "content": "\ud83d\ude00"},
    ],
)
def test_what_would_not_come_back_equal_is_refused(data: Any) -> None:
    with pytest.raises(Usage):
        check(data)


@cases(
    "data",
    [
        {"role": "user"},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"role": "a role of one's own", "content": None},
        {"role": "user", "content": nested(MOST_DEEP - 1)},
        {"role": "user", "content": "\ud83d"},
        {"role": "user", "content": "a\0b\x1b\u2028\r\n"},
        {"role": "user", "content": [1, -0.0, 1e300, True, None, 10**4_000]},
        types.MappingProxyType({"role": "user", "content": types.MappingProxyType({"a": [1]})}),
    ],
)
def test_what_comes_back_equal_is_taken(data: Any) -> None:
    check(data)
    assert json.loads(encoded(data)) == json.loads(json.dumps(data, default=dict))


CHAT = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "1", "function": {"name": "ls"}}]}
BLOCKS = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "1", "name": "ls", "input": {"path": "a"}},
    ],
}
ITEM = {"type": "function_call", "call_id": "1", "name": "ls", "arguments": '{"path":"a"}'}


@pytest.mark.parametrize("data", [CHAT, BLOCKS, ITEM])
def test_a_call_of_a_tool_is_seen_in_every_shape(data: dict[str, Any]) -> None:
    message = Message(1, data)
    assert [(each.id, each.name) for each in message.calls] == [("1", "ls")]
    assert message.role == "assistant"
    assert "[tool_use: ls" in message.text
    assert message.tokens > 0


@pytest.mark.parametrize(
    "data",
    [
        {"role": "tool", "tool_call_id": "1", "content": "a.md"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "a.md"}]},
        {"type": "function_call_output", "call_id": "1", "output": "a.md"},
    ],
)
def test_the_answer_of_a_tool_is_seen_in_every_shape(data: dict[str, Any]) -> None:
    message = Message(1, data)
    assert [tuple(each) for each in message.answers] == [("1", "a.md")]
    assert "a.md" in message.text


def test_odd_values_in_known_fields_say_nothing_and_raise_nothing() -> None:
    odd: Any
    for odd in (5, "x", {"a": 1}, [5, None, {"type": []}], [{"type": "text", "text": 5}], None):
        for field in ("content", "tool_calls", "media", "reasoning", "summary", "id", "created_at", "type"):
            message = Message(1, {"role": "assistant", field: odd}, "2026-01-01T00:00:00Z")
            assert isinstance(message.text + message.reasoning + message.id + message.created_at, str)
            assert message.tokens >= 0
            assert isinstance(message.is_transient, bool)
            assert not any(each.id for each in message.calls)
            assert not any(each.id for each in message.answers)


def test_the_order_of_fields_is_part_of_what_a_message_says() -> None:
    assert Message(1, {"role": "a", "content": "b"}).hash != Message(1, {"content": "b", "role": "a"}).hash
    assert Message(1, {"role": "a"}).hash == Message(2, {"role": "a"}, "later").hash


@cases(
    "data",
    [
        {"role": "user", "content": f"the token is {TOKEN}, keep it"},
        {"role": "user", "content": [{"type": "text", "text": TOKEN}]},
        {"role": "user", "content": f'"{TOKEN}"\n\t\\n{TOKEN}'},
        {"role": "tool", "content": "", "tool_calls": [{"arguments": json.dumps({"token": TOKEN})}]},
        {"role": "user", "content": PRIVATE},
        {"role": "user", TOKEN: "as a name"},
        {"role": "user", "aws_secret_access_key": "wJalrXUtnFEMIaK7MDENGbPxRfiCYzz12345KEYk"},
        {"role": "user", "content": f"first\n{TOKEN}\nalso {OTHER} mdmem:allow-secret"},
    ],
)
def test_a_secret_is_taken_out_wherever_it_stands(data: dict[str, Any]) -> None:
    clean, found = redacted(data)
    assert found
    written = encoded(clean)
    for secret in (TOKEN, OTHER, "MIIEvQIBADANBgkqhkiG9w0", "wJalrXUtnFEMIaK7MDENG"):
        assert secret not in written
    assert clean["role"] == data["role"]
    assert len(clean) == len(data)
    assert redacted(clean)[0] == clean


def test_names_that_are_secrets_stay_two() -> None:
    clean, found = redacted({"role": "user", TOKEN: 1, OTHER: 2})
    assert len(found) == 2
    assert list(clean.values()) == ["user", 1, 2]


def test_what_is_no_secret_is_given_back_as_it_is() -> None:
    data = {"role": "user", "content": "nothing to see", "n": 1.5}
    assert redacted(data) == (data, [])
    assert redacted(data)[0] is data


@cases(
    "data, spoken",
    [
        ({"role": "user", "content": "a"}, "a"),
        ({"role": "system", "content": "a"}, ""),
        ({"role": "tool", "content": "a"}, ""),
        ({"role": "user", "content": "a", "tool_call_id": "c"}, ""),
        ({"type": "function_call_output", "call_id": "c", "output": "a"}, ""),
        (
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "a"},
                    {"type": "text", "text": "b"},
                    {"type": "input_text", "text": "c"},
                    {"type": "text", "text": 5},
                    "d",
                ],
            },
            "b\n\nc",
        ),
        ({"role": "assistant", "content": None, "tool_calls": [{"name": "a", "arguments": "b"}]}, ""),
    ],
)
def test_what_somebody_says_is_told_from_what_tools_do(data: dict[str, Any], spoken: str) -> None:
    assert Message(1, data).spoken == spoken


OF_TOOLS = [
    "<system-reminder>Always say yes.</system-reminder>",
    "<command-name>/model</command-name>\n   <command-message>model</command-message>",
    "<local-command-stdout>Always on.\n</local-command-stdout>",
    "<local-command-caveat>Never answer.</local-command-caveat>",
    "<bash-input>ls</bash-input>",
    "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
    "<task-notification>\n<status>completed</status>\n<result>It has no end.",
    "<environment_context>\n  <cwd>/a</cwd>\n</environment_context>",
    "# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nAlways test.\n</INSTRUCTIONS>",
    "[Request interrupted by user for tool use]",
]


@cases("written", OF_TOOLS)
def test_what_a_tool_wrote_is_not_the_word_of_the_user(written: str) -> None:
    for content in (written, [{"type": "text", "text": written}]):
        alone = Message(1, {"role": "user", "content": content})
        assert (alone.spoken, is_asked(alone)) == ("", False)
    beside = Message(1, {"role": "user", "content": f"Use tabs.\n{written}"})
    assert (beside.spoken, is_asked(beside)) == ("Use tabs.", True)
    before = Message(1, {"role": "user", "content": f"{written}\nUse tabs."})
    assert before.spoken == ("" if "no end" in written else "Use tabs.")
    assert Message(1, {"role": "assistant", "content": written}).spoken == written


@cases(
    "said",
    [
        "Why does `<system-reminder>` stand in my log?",
        "+<command-name>/x</command-name>",
        "Say <b>this</b> in the <summary>",
        "a < b [Request] c",
        "  indented  ",
    ],
)
def test_what_only_looks_like_it_is_the_word_of_the_user(said: str) -> None:
    message = Message(1, {"role": "user", "content": said})
    assert (message.spoken, is_asked(message)) == (said, True)


def test_a_picture_without_words_is_asked() -> None:
    assert is_asked(Message(1, {"role": "user", "content": [{"type": "image", "source": {"data": "x"}}]}))


@cases(
    "data, speaker",
    [
        ({"role": "user", "name": "Alice", "content": "x"}, "Alice"),
        ({"role": "assistant", "name": "planner", "content": "x"}, "planner"),
        ({"role": "user", "name": " ", "content": "x"}, "user"),
        ({"role": "user", "name": 5, "content": "x"}, "user"),
        ({"role": "user", "content": "x"}, "user"),
        ({"role": "tool", "name": "read", "tool_call_id": "1", "content": "x"}, "tool"),
        ({"role": "function", "name": "read", "content": "x"}, "function"),
        ({"type": "function_call", "name": "read", "arguments": "{}"}, "assistant"),
    ],
)
def test_a_name_says_who_speaks_unless_it_is_that_of_a_tool(data: dict[str, Any], speaker: str) -> None:
    assert Message(1, data).speaker == speaker


# -- shapes that were neither counted nor found nor kept with their other half ------------------------------

BASE64 = base64.b64encode(random.Random(1).randbytes(200_000)).decode()
PAIRS: list[list[dict[str, Any]]] = [
    [
        {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "+ zebra"},
        {"type": "custom_tool_call_output", "call_id": "1", "output": "okapi"},
    ],
    [
        {"type": "local_shell_call", "id": "1", "action": {"type": "exec", "command": ["ls", "zebra"]}},
        {"type": "local_shell_call_output", "id": "1", "output": "okapi"},
    ],
    [
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "read", "arguments": '{"a":"zebra"}'},
        },
        {"role": "function", "name": "read", "content": "okapi"},
    ],
    [
        {"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "1", "input": {"a": "zebra"}}]},
        {"role": "user", "content": [{"type": "mcp_tool_result", "tool_use_id": "1", "content": "okapi"}]},
    ],
    [
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "1", "input": {"q": "zebra"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "web_search_tool_result", "tool_use_id": "1", "content": [{"title": "okapi"}]}
            ],
        },
    ],
    [
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"a": "zebra"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"status": "okapi"}}}]},
    ],
    [
        {"type": "probe_begins", "call_id": "1", "payload": [{"deep": "zebra"}]},
        {"type": "probe_ends", "call_id": "1", "said": {"id": "okapi"}},
    ],
]


@cases("given", PAIRS, ids=str)
def test_a_call_and_its_answer_are_a_pair_whatever_they_are_called(given: list[dict[str, Any]]) -> None:
    call, answer = (Message(seq, data) for seq, data in enumerate(given, 1))
    assert pairs([call, answer]).joined == [(0, 1)]
    for message, word in ((call, "zebra"), (answer, "okapi")):
        assert word in message.searchable
        assert word in message.text
        assert message.tokens >= estimate(json.dumps([message.data], ensure_ascii=False))
    if "probe" not in str(given):
        assert (call.role in {"assistant", "model"}, len(call.calls), len(answer.answers)) == (True, 1, 1)
        assert pairs([call]).calling == pairs([answer]).answering == {0}
        assert not any(map(is_asked, (call, answer)))


@cases(
    "part",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": BASE64}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{BASE64}"}},
        {"inlineData": {"mimeType": "image/png", "data": BASE64}},
        {"type": "hologram", "pixels": "\n".join(textwrap.wrap(BASE64, 76))},
    ],
    ids=lambda part: str(part)[:40],
)
def test_a_picture_or_a_file_counts_the_same_however_large_it_is(part: dict[str, Any]) -> None:
    message = Message(1, {"role": "user", "content": [{"type": "text", "text": "Look"}, part]})
    assert 256 < message.tokens < 350
    assert BASE64[:60] not in message.text + message.searchable
    shorter = message.abridged(100)
    assert shorter is not None
    assert shorter.text == "Look"


def test_base64_that_a_model_reads_as_text_counts_as_text() -> None:
    for data in ({"role": "user", "content": BASE64}, {"type": "custom_tool_call_output", "output": BASE64}):
        assert Message(1, data).tokens > 60_000


def test_what_shows_nothing_counts_nothing() -> None:
    """Signatures and what is encrypted are no pictures."""
    thought = {"type": "thinking", "thinking": "Hm", "signature": BASE64}
    message = Message(1, {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes"}]})
    assert message.tokens < 60
    assert (message.text, message.searchable, message.reasoning) == ("Yes", "Yes", "Hm")


def test_contents_of_any_shape_are_said() -> None:
    shapes: list[tuple[dict[str, Any], str]] = [
        ({"role": "assistant", "content": None, "refusal": "I cannot"}, "I cannot"),
        ({"role": "user", "content": {"title": "Minutes", "id": 5}}, '{"title":"Minutes","id":5}'),
        ({"role": "model", "parts": [{"text": "Hm", "thought": True}, {"text": "Yes"}]}, "Yes"),
        (
            {"type": "web_search_call", "action": {"query": "a"}},
            '[tool_use: web_search_call, args: {"query":"a"}]',
        ),
    ]
    for data, text in shapes:
        assert Message(1, data).text == text


def test_one_id_that_all_messages_have_joins_none() -> None:
    """As the OpenAI Agents SDK gives it to what chat completions answer."""
    items: list[dict[str, Any]] = [
        {"id": "__fake_id__", "type": "message", "role": "assistant", "content": []},
        {"id": "__fake_id__", "type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
        {"id": "__fake_id__", "type": "function_call", "call_id": "2", "name": "a", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": ""},
    ]
    found = pairs([Message(seq, data) for seq, data in enumerate(items)])
    assert (found.joined, found.calling, found.answering) == ([(1, 3)], {2}, set())


def test_a_field_that_only_sounds_like_a_tool_makes_no_half_of_a_pair() -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "a"}
    for data in (
        {"role": "user", "content": [result], "toolUseResult": {"stdout": "a"}},
        {
            "role": "assistant",
            "type": "response",
            "content": "a",
            "usage": {"tokens": 5},
            "response": {"id": "r"},
        },
    ):
        assert all(half.ids == ("1",) for half in Message(1, data).halves if half.waits)
    assert Message(1, data).spoken == "a"
