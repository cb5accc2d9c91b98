"""A message of a conversation, whichever program wrote it: who says what, and which messages are pairs.

What stands in its JSON is told by `mdmem.sessions.parts`. A message is kept as it was given; nothing here
changes one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from mdmem.diagnostic import SECRETS_HINT
from mdmem.document import secret
from mdmem.document.document import digest
from mdmem.document.edit import splice
from mdmem.document.secret import Secret
from mdmem.errors import Usage
from mdmem.sessions.parts import (
    TOOLS,
    Half,
    MessagePart,
    ToolAnswer,
    ToolCall,
    encoded,
    is_plain,
    is_reasoning,
    leaves,
    parts,
    parts_of,
    shortened,
    texts_of,
    tokens_of,
)
from mdmem.text.regex import regex

_TORN = regex("[\ud800-\udbff][\udc00-\udfff]")  # which JSON reads as one character
MOST_DEEP = 100
"""How deeply the values of a message may be nested."""
_SPEAKERS, _SAID = ("user", "assistant", "model"), ("text", "input_text", "output_text", None)
# The fields that hold something to keep even where an assistant says nothing.
_KEPT = ("tool_calls", "tool_call_id", "media", "attachments")
_LINE = "mdmem"  # the field of a log in which it has what the line of a transcript says of its message
# What agents write into the role of the user, where a line begins or right behind another such block: Claude
# Code, Codex and Cursor, as their public histories have it. A block that does not end is one to its end.
_OF_TOOLS = regex(
    r"(?m)(?:^|(?<=>))[ \t]*+(?:# AGENTS\.md instructions[^\n]*+\s++)?(?:"
    r"<(?P<tag>system[-_]reminder|task-notification|(?:local-)?command-\w+|bash-\w+|[\w-]+-hook|ide_\w+"
    r"|persisted-output|environment_context|user_(?:instructions|info|shell_command)|turn_aborted"
    r"|subagent_notification|permissions|INSTRUCTIONS)\b[^<>\n]*+>(?s:.*?)(?:</(?P=tag)[^<>\n]*+>|\Z)"
    r"|\[Request interrupted by user[^\]\n]*+\])"
)


class Message(NamedTuple):
    """A message where it stands in a log.

    Attributes:
        seq: its number in the log, by which `<key>#<seq>` addresses it.
        data: every field, as it was given.
        stored: when it was stored (ISO 8601, UTC).
        line: the `id` and `created_at` that the line of a transcript told of it, and not the message itself.
    """

    seq: int
    data: Mapping[str, Any]
    stored: str = ""
    line: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of(cls, seq: int, written: Mapping[str, Any], stored: str = "") -> Message:
        """Return the message that is written so in a log; the inverse of `written`."""
        line = written.get(_LINE)
        if not line or not isinstance(line, Mapping) or not line.keys() <= {"id", "created_at"}:
            return cls(seq, written, stored)
        return cls(seq, {name: each for name, each in written.items() if name != _LINE}, stored, line)

    @property
    def written(self) -> Mapping[str, Any]:
        """Its fields, and what the line of a transcript told, as a log has them."""
        return {**self.data, _LINE: self.line} if self.line else self.data

    @property
    def role(self) -> str:
        """Who speaks: user, assistant, system, tool; of an item without a role, what its type says."""
        role = self.data.get("role")
        if isinstance(role, str):
            return role
        kind = parts(self.data)[0].kind
        is_model = kind == "call" or is_reasoning(self.data)
        return "tool" if kind == "answer" else "assistant" if is_model else ""

    @property
    def speaker(self) -> str:
        """Who speaks, by the field `name` where that names a person or an agent; else the role."""
        role, name = self.data.get("role"), self.data.get("name")
        is_named = isinstance(name, str) and name.strip() and isinstance(role, str)
        return str(name) if is_named and role not in TOOLS else self.role

    @property
    def id(self) -> str:
        """The id that its writer gave it, or the transcript that it was read from; empty without one."""
        return self._read_field("id")

    @property
    def created_at(self) -> str:
        """When it was said, by what it or its transcript says, else when it was stored (ISO 8601)."""
        return self._read_field("created_at") or self.stored

    def _read_field(self, name: str) -> str:
        values = (self.data.get(name), self.line.get(name))
        return next((each for each in values if isinstance(each, str) and each), "")

    @property
    def text(self) -> str:
        """What it says in words: its content, calls and answers of tools, media by name; no reasoning."""
        return texts_of([self.data])[0]

    @property
    def spoken(self) -> str:
        """What a user or an assistant says in words of their own: no calls of tools, and no answers.

        Nor what a tool wrote into the role of the user, such as `<system-reminder>…</system-reminder>`.
        """
        if self.role not in _SPEAKERS or parts(self.data)[0].kind:
            return ""
        said = _read_words(self.data)
        if self.role == "user" and ("<" in said or "[" in said):
            own = _OF_TOOLS.sub("", said)
            return said if own == said else own.strip()
        return said

    @property
    def searchable(self) -> str:
        """What it is found by: its words, and the names, arguments and answers of tools, each in a line."""
        return self.data["content"] if is_plain(self.data) else "\n".join(filter(None, leaves(self.data)))

    @property
    def reasoning(self) -> str:
        """What a model thought before it answered."""
        return "\n".join(filter(None, leaves(self.data, thoughts=True)))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools in it."""
        return tuple(part.call for part in self._read_parts if part.kind == "call")

    @property
    def answers(self) -> tuple[ToolAnswer, ...]:
        """What tools answered in it."""
        return tuple(part.answer for part in self._read_parts if part.kind == "answer")

    @property
    def halves(self) -> tuple[Half, ...]:
        """What in it calls or answers something in another message."""
        return _halves_of(self._read_parts)

    @property
    def _read_parts(self) -> Sequence[MessagePart]:
        return parts_of([self.data])[0]

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt: its JSON without base64, and some for each picture."""
        return count_tokens([self])[0]

    @property
    def hash(self) -> str:
        """The SHA-256 of what it holds, the order of its fields included."""
        return digest(encoded(self.written).encode("utf-8", "surrogatepass"))

    @property
    def is_transient(self) -> bool:
        """Return whether it is a model's reasoning and nothing else, which no conversation needs again."""
        return (
            self.data.get("role") == "assistant"
            and not is_plain(self.data)
            and not any(self.data.get(name) for name in _KEPT)
            and bool(self.reasoning.strip())
            and not self.text.strip()
        )

    def abridged(self, most: int) -> Message | None:
        """Return the message, or of one of more tokens as much of its texts, without their middle.

        Reasoning and media go first. What makes it half of a pair stays, and so does the shape of an answer.
        None where not even its form fits.
        """
        if self.tokens <= most:
            return self
        data = shortened(self.data, most)
        return None if data is None else self._replace(data=data)


class SpokenLine(NamedTuple):
    """A message in words: who speaks, its role, the words, and whether it calls tools or answers a call."""

    speaker: str
    role: str
    text: str
    is_call: bool
    is_answer: bool


def spoken_lines(messages: Sequence[Message]) -> list[SpokenLine]:
    """Write messages in words."""
    data = [message.data for message in messages]
    kinds = ({part.kind for part in own} for own in parts_of(data))
    return [
        SpokenLine(message.speaker, message.role, text, "call" in kind, "answer" in kind)
        for message, text, kind in zip(messages, texts_of(data), kinds, strict=True)
    ]


def read_messages(rows: Iterable[tuple[int, Mapping[str, Any], str]]) -> list[Message]:
    """Read messages as `Message.of` does, from their numbers, their fields and when they were stored."""
    return [Message.of(*row) for row in rows]


def count_tokens(messages: Iterable[Message]) -> list[int]:
    """Estimate how many tokens each message takes in a prompt."""
    return tokens_of([message.data for message in messages])


def check(data: Any) -> None:
    """Check that a message can be kept so that every field comes back equal.

    Raises:
        Usage: it is not an object, its role is not a text, it has neither a role nor a type, or it holds what
            JSON cannot: NaN, a value of another type, a key that is not a text, values nested too deeply.
    """
    if not isinstance(data, Mapping):
        raise Usage(problem=f"a message is an object with a role, not {type(data).__name__}")
    named = data.get("role") if "role" in data else data.get("type")
    if not isinstance(named, str) or not named:
        raise Usage(problem="the role of a message is a text", remedy='give "user", "assistant" or another')
    if problem := _find_fault(data, 0):
        raise Usage(problem=f"a message cannot hold {problem}")
    try:
        written = encoded(data)
    except ValueError as error:  # NaN, an infinity, or a number of thousands of digits
        raise Usage(problem=f"a message cannot hold this: {error}") from None
    if _TORN.search(written):
        raise Usage(problem="a message cannot hold a character in two halves", remedy="decode it as UTF-16")


def _find_fault(value: Any, depth: int) -> str:
    if depth > MOST_DEEP:
        return f"values nested more than {MOST_DEEP} deep"
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return "a key that is not a text"
        return next(filter(None, (_find_fault(each, depth + 1) for each in value.values())), "")
    if isinstance(value, list):
        return next(filter(None, (_find_fault(each, depth + 1) for each in value)), "")
    return "" if value is None or isinstance(value, str | int | float) else f"a {type(value).__name__}"


def parse_time(text: str) -> datetime | None:
    """Read a time of ISO 8601, UTC without a zone; None where it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _read_words(data: Mapping[str, Any]) -> str:
    content = data.get("content", data.get("parts"))
    blocks = content if isinstance(content, list) else [content]
    spoken = (each for each in blocks if isinstance(each, Mapping) and not is_reasoning(each))
    said = [each.get("text") for each in spoken if each.get("type") in _SAID]
    return (
        content if isinstance(content, str) else "\n\n".join(each for each in said if isinstance(each, str))
    )


def redacted(data: Mapping[str, Any], allow: Sequence[str] = ()) -> tuple[Mapping[str, Any], list[Secret]]:
    """Replace the secrets of a message by their `word`, and return them; `allow` as in `secret.find`.

    Raises:
        Usage: the message is no JSON without them.
    """
    written = encoded(data)
    # The mark that allows secrets counts for its own line, and JSON is all one: here it allows none.
    secrets = secret.find(written.replace(secret.ALLOW_MARK, "-" * len(secret.ALLOW_MARK)), allow=allow)
    if not secrets:
        return data, secrets
    try:
        clean = splice(written, secret.redactions(secrets))
        return json.loads(clean, object_pairs_hook=_number_names), secrets
    except ValueError:
        problem = f"a secret reaches over several values: {secrets[0].kind} {secrets[0].shown}…"
        raise Usage(problem=problem, remedy=SECRETS_HINT) from None


def _number_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        own = name
        while own in made:
            own = f"{name}-{len(made)}"
        made[own] = value
    return made


# -- calls of tools, and what they answered ----------------------------------------------------------------


class Pairs:
    """Which messages call and answer each other, by their places, as they are read in order.

    An id means the last call with it before. `answering` are the messages of which the call is missing.
    """

    def __init__(self) -> None:
        self.joined: list[tuple[int, int]] = []
        self.answering: set[int] = set()
        self._calls: list[tuple[int, Half]] = []
        self._answered: set[int] = set()
        self._waiting: dict[str, list[int]] = {}
        self._count = 0

    def read(self, messages: Iterable[Message]) -> None:
        """Read more messages."""
        for own in parts_of([message.data for message in messages]):
            for half in _halves_of(own):
                call = self._find_call(half)
                if call is not None:
                    self._answered.add(call)
                    self.joined.append((self._calls[call][0], self._count))
                elif half.kind == "answer":
                    self.answering |= {self._count} if half.is_needed else set()
                else:
                    for each in half.ids:
                        self._waiting.setdefault(each, []).append(len(self._calls))
                    self._calls.append((self._count, half))
            self._count += 1

    def _find_call(self, half: Half) -> int | None:
        """Find the last call with an id of an answer that none has answered yet."""
        if half.kind == "call" or not (half.kind or half.refers):
            return None
        for each in half.ids:
            calls = self._waiting.get(each, [])
            while calls:
                if (call := calls.pop()) not in self._answered:
                    return call
        return None

    @property
    def is_waiting(self) -> bool:
        """Return whether an answer may come."""
        return any(half.waits and n not in self._answered for n, (_, half) in enumerate(self._calls))

    @property
    def calling(self) -> set[int]:
        """The messages of which an answer is missing."""
        unanswered = (each for n, each in enumerate(self._calls) if n not in self._answered)
        return {place for place, half in unanswered if half.is_needed}


def pairs(messages: Iterable[Message]) -> Pairs:
    """Return the calls of tools in messages, each with its answer."""
    paired = Pairs()
    paired.read(messages)
    return paired


def _halves_of(message_parts: Sequence[MessagePart]) -> tuple[Half, ...]:
    halves = [half for part in message_parts if (half := part.half)]
    named = [half for half in halves if any(half.ids)]
    # What has no id is half of a pair only where its program gives none.
    return tuple(named if any(half.waits for half in named) else halves)


def beside_pairs(messages: Sequence[Message], joined: Iterable[tuple[int, int]]) -> list[int]:
    """Return the places before, between and behind messages at which no pair is parted."""
    changes = Counter[int]()
    for first, last in joined:
        changes[first + 1] += 1
        changes[last + 1] -= 1
    crossing = accumulate(changes[place] for place in range(len(messages) + 1))
    return [place for place, count in enumerate(crossing) if count == 0]


def whole_blocks(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Return messages without those of which a half is missing, in the smallest groups that part no pair."""
    paired = pairs(messages)
    gone, before = paired.calling | paired.answering, -1
    while len(gone) != before:  # one that loses a partner takes its other partners with it
        before = len(gone)
        gone |= {place for pair in paired.joined if not gone.isdisjoint(pair) for place in pair}
    whole = [message for place, message in enumerate(messages) if place not in gone]
    places = pairwise(beside_pairs(whole, (pairs(whole) if gone else paired).joined))
    return [whole[start:end] for start, end in places]


def is_asked(message: Message) -> bool:
    """Return whether it is what a user said, and not what a tool answered or wrote in the user's name."""
    return is_of_user(message) and (bool(message.spoken.strip()) or not _read_words(message.data).strip())


def is_of_user(message: Message) -> bool:
    """Return whether it has the role of the user, and is not what a tool answered."""
    return message.role == "user" and not any(half.kind == "answer" for half in message.halves)
