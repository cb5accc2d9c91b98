"""Make messages shorter for a prompt: message by message, turn by turn, or all that is old as one.

The log stays as it is. Messages of the system come first, whole, and the last turns stay whole. Calls and
answers of tools become words where they are made shorter, so that no half of a pair is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mdmem.conversations.log.message import Message, count_tokens, is_asked
from mdmem.conversations.models.generator import Generator
from mdmem.conversations.prompt.summarise import prompt_of, summarise
from mdmem.document.text.tokens import estimate
from mdmem.errors import Usage

KEPT = MappingProxyType({"none": 1.0, "light": 0.7, "moderate": 0.5, "aggressive": 0.3})
"""The part of the tokens that is kept at most, by level."""
FEWEST = MappingProxyType({"message": 100, "turn": 20, "session": 50})
"""From how many messages on a conversation is made shorter, by unit."""
_FORM = Message(0, {"role": "assistant", "content": ""}).tokens  # of a message without words
_LEAST = 8  # tokens that are worth a message
_LAST_TURNS = 2  # that stay whole if they take at most half of the tokens to keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Messages that were made shorter, and by how much.

    Attributes:
        messages: as a model takes them; those made of others have a role and a content alone.
        before, after: tokens.
        shortened: messages that were made shorter, or became part of another one.
        whole: messages that are as they were.
        left_out: messages for which there was no room.
        problems: why a model made no summary that it was asked for.
    """

    messages: tuple[Mapping[str, Any], ...]
    before: int
    after: int
    shortened: int = 0
    whole: int = 0
    left_out: int = 0
    problems: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """The part of the tokens that is left."""
        return self.after / self.before if self.before else 1.0


def compress(
    messages: Sequence[Message], level: str = "moderate", by: str = "turn", generator: Generator | None = None
) -> Compressed:
    """Make messages shorter, as `Sessions.compress`. Messages of the system stay, even over the limit."""
    for value, known in ((level, KEPT), (by, FEWEST)):
        if value not in known:
            raise Usage(problem=f"{value!r} is none of {', '.join(known)}")
    before = count_tokens(messages)
    if level == "none" or len(messages) < FEWEST[by]:
        data = tuple(message.data for message in messages)
        return Compressed(messages=data, before=before, after=before, whole=len(data))
    made = [message for message in messages if message.role == "system"]
    allowed = int(before * KEPT[level]) - count_tokens(made)
    units, last = _part_units([message for message in messages if message.role != "system"], by, allowed // 2)
    allowed -= count_tokens(last)
    waiting = sum(count_tokens(unit) for unit in units)
    problems: list[str] = []
    whole, left_out = len(made) + len(last), 0
    for unit in units:
        tokens = count_tokens(unit)
        shorter, problem = _shorten_unit(unit, max(allowed, 0) * tokens // waiting, generator)
        if problem:
            problems.append(problem)
            generator = None  # one that hangs would hang again
        waiting -= tokens
        if shorter:
            made.append(shorter)
            allowed -= shorter.tokens
            if shorter is unit[0]:
                whole += 1
        else:
            left_out += len(unit)
    made += last
    return Compressed(
        messages=tuple(message.data for message in made),
        before=before,
        after=count_tokens(made),
        shortened=len(messages) - whole - left_out,
        whole=whole,
        left_out=left_out,
        problems=tuple(problems),
    )


def _part_units(messages: Sequence[Message], by: str, most: int) -> tuple[list[list[Message]], list[Message]]:
    """Part messages into what becomes one message each, and the last turns, which fit into tokens."""
    turns: list[list[Message]] = []
    for message in messages:
        if not turns or is_asked(message):
            turns.append([])
        turns[-1].append(message)
    last: list[Message] = []
    for _ in turns[-_LAST_TURNS:]:
        most -= count_tokens(turns[-1])
        if most < 0:
            break
        last[:0] = turns.pop()
    if by == "turn":
        return turns, last
    old = [message for turn in turns for message in turn]
    return ([[message] for message in old] if by == "message" else [old] if old else []), last


def _shorten_unit(
    unit: Sequence[Message], most: int, generator: Generator | None
) -> tuple[Message | None, str]:
    """Make one message of at most `most` tokens of some; and why no model wrote it."""
    role = unit[0].role if len({message.role for message in unit}) == 1 else "assistant"
    is_plain = len(unit) == 1 and not unit[0].calls and not unit[0].answers
    if is_plain and unit[0].tokens <= most:
        return unit[0], ""
    label = f"[{len(unit)} messages in short]\n" if len(unit) > 1 else "[a message in short]\n"
    label = "" if is_plain else label
    target = most - _FORM - estimate(label)
    if target < _LEAST:
        return None, ""
    said = summarise(unit, prompt_of(0), target, generator)
    text = said.text.removeprefix(f"{role}: ") if is_plain else label + said.text
    data = {"role": role if role in {"user", "assistant"} else "assistant", "content": text}
    # As JSON a text may take more than it has.
    return Message(unit[0].seq, data, unit[0].stored).abridged(most), said.problem
