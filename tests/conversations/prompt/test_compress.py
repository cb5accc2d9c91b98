"""Messages made shorter: how much is kept at most, what stays whole, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.conversations.log.message import Message, pairs
from mdmem.conversations.prompt.compress import FEWEST, KEPT, Compressed, compress
from mdmem.errors import Usage
from tests.speed import examples
from tests.tables import cases

LEVELS = ("none", "light", "moderate", "aggressive")
UNITS = ("message", "turn", "session")


def chat(count: int) -> list[Message]:
    """A system's message, and turns of a user and an assistant."""
    said = (
        f"Number {n} was said about topic{n % 7}. It went on. Nothing else mattered then, or so they said."
        for n in range(count - 1)
    )
    roles = ("user", "assistant")
    talk = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    return [Message(n, data) for n, data in enumerate([{"role": "system", "content": "Be brief."}, *talk], 1)]


def roles(done: Compressed) -> list[str]:
    return [message["role"] for message in done.messages]


@cases("level, by", product(LEVELS, UNITS))
def test_a_level_keeps_at_most_its_part(level: str, by: str) -> None:
    """The documented parts were never enforced, and no level meant the moderate one."""
    messages = chat(121)
    done = compress(messages, level, by)
    assert done.before == sum(message.tokens for message in messages)
    assert done.after == sum(Message(0, data).tokens for data in done.messages)
    assert done.ratio <= KEPT[level]
    assert done.ratio > KEPT[level] / 3
    assert done.shortened + done.whole + done.left_out == len(messages)
    assert done.messages[0] == messages[0].data
    assert done.messages[-4:] == tuple(message.data for message in messages[-4:])
    if level == "none":
        assert done.messages == tuple(message.data for message in messages)


@pytest.mark.parametrize("by", UNITS)
def test_few_messages_stay_as_they_are(by: str) -> None:
    few = chat(FEWEST[by] - 1)
    assert compress(few, "aggressive", by).messages == tuple(message.data for message in few)
    assert compress(chat(FEWEST[by]), "aggressive", by).ratio <= 0.3


def test_plain_turns_get_shorter() -> None:
    """A chat of a user and an assistant in turn never shrank by turns."""
    done = compress(chat(49), "moderate", "turn")
    assert len(done.messages) < 49
    assert done.messages[1]["content"].startswith("[2 messages in short]\nuser: ")


def test_a_session_becomes_one_message_before_its_last_turns() -> None:
    done = compress(chat(61), "aggressive", "session")
    assert roles(done) == ["system", "assistant", "user", "assistant", "user", "assistant"]
    assert done.messages[1]["content"].startswith("[56 messages in short]\n")


def test_messages_keep_their_roles_when_each_gets_shorter() -> None:
    done = compress(chat(121), "light", "message")
    assert roles(done)[:3] == ["system", "user", "assistant"]
    assert "in short" not in str(done.messages)


def test_system_messages_come_first_and_whole() -> None:
    messages = [*chat(60), Message(61, {"role": "system", "content": "Also be kind. " * 400})]
    done = compress(messages, "aggressive", "turn")
    assert roles(done) == ["system", "system"]
    assert (done.left_out, done.whole) == (59, 2)


def test_a_model_writes_what_is_kept() -> None:
    done = compress(chat(61), "moderate", "session", lambda *_: "All was said.")
    assert done.messages[1]["content"] == "[56 messages in short]\nAll was said."
    assert compress(chat(61), "moderate", "session", lambda *_: "").problems == ("the answer was blank",)
    failing = compress(chat(100), "moderate", "turn", lambda *_: "")
    assert failing.problems == ("the answer was blank",), "one that fails is asked once"


def test_what_there_is_not_is_refused() -> None:
    for level, by in (("most", "turn"), ("light", "word")):
        with pytest.raises(Usage, match="is none of"):
            compress([], level, by)


TOLD = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system", "call", "tool"]), st.integers(0, 400)),
    min_size=100,
    max_size=140,
)


def messages_of(told: Sequence[tuple[str, int]]) -> list[Message]:
    made: list[dict[str, Any]] = []
    for number, (role, size) in enumerate(told):
        text = "word " * (size // 5)
        if role == "call":
            call = {"id": f"c{number}", "function": {"name": "read", "arguments": text}}
            made += [{"role": "assistant", "tool_calls": [call]}]
            made += [{"role": "tool", "tool_call_id": f"c{number}", "content": text}]
        else:
            made.append({"role": role, "content": text})
    return [Message(number, data) for number, data in enumerate(made, 1)]


@settings(max_examples=examples(25))
@given(TOLD, st.sampled_from(LEVELS), st.sampled_from(UNITS))
def test_property_no_level_is_passed_and_no_pair_parted(
    told: list[tuple[str, int]], level: str, by: str
) -> None:
    messages = messages_of(told)
    done = compress(messages, level, by)
    system = sum(message.tokens for message in messages if message.role == "system")
    assert done.after <= max(done.before * KEPT[level], system)
    assert done.shortened + done.whole + done.left_out == len(messages)
    if level != "none":
        found = pairs(
            [Message(0, data) for data in done.messages if data["role"] != "tool" or "tool_call_id" in data]
        )
        assert not found.calling
        assert not found.answering
