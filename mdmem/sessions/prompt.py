"""What of a conversation goes into a prompt: summaries and messages that fit into a budget.

Tokens are those of `mdmem.text.tokens.estimate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from mdmem.arguments import check_natural
from mdmem.sessions.conversation import Conversation
from mdmem.sessions.message import Message, answered, is_asked, whole_blocks
from mdmem.sessions.record import Ranges, RunSummary
from mdmem.text.tokens import estimate, visible

TAIL = 32
"""How many of the last messages come before the summaries, and are not summarised without need."""

_LOOK_BACK = 1_000  # messages in which the call is looked for that one answers
_HEAVY = 2  # a depth, or a number of condensed summaries, from which on the note is a warning
_NOTE = "Each summary stands for earlier messages: expand its id to read them."
_WARNING = (
    "These summaries are heavily compressed. Before you state a fact, a number, a path or a decision from "
    "one, expand its id and read it there."
)
_GAP = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """What of a conversation goes into a prompt.

    Attributes:
        summary: the summaries as XML, with a note; empty without any. It is for the system's part of a
            prompt: nobody said it.
        summaries: their numbers.
        messages: in order; what was asked of a tool comes with what it answered.
        tokens: of the summary and the messages.
        left_out: how many messages of the history are neither here nor in a summary that is.
        cut: the numbers of messages of which the middle is left out.
    """

    summary: str
    summaries: tuple[int, ...]
    messages: tuple[Message, ...]
    tokens: int
    left_out: int
    cut: tuple[int, ...] = ()


def assembled(conversation: Conversation, budget: int, tail: int = TAIL) -> Assembled:
    """The newest messages and the summaries that fit into a budget; the log is read from its end.

    First comes the latest message of the user, then the last messages, then summaries, the deepest first,
    since they stand for most, then earlier messages.

    Args:
        conversation: to read.
        budget: tokens.
        tail: how many messages come before the summaries.

    Raises:
        Usage: one of these is negative.
    """
    check_natural(budget=budget, tail=tail)
    newest, asked = newest_of(conversation, budget)
    prompt = _Prompt(budget)
    if asked:
        prompt.add_asked(asked)
    others = ([message for message in block if message != asked] for block in whole_blocks(newest))
    blocks = [block for block in others if block]
    earlier = prompt.add_newest(blocks, tail - len(prompt.messages))
    summaries = _fitting(conversation, budget - prompt.tokens)
    text = rendered(summaries)
    prompt.tokens += estimate(text)
    prompt.add_newest(earlier, len(newest))
    messages = sorted(prompt.messages, key=lambda message: message.seq)
    covered = Ranges.of((each.first, each.last) for each in summaries)
    told = sum(each.messages for each in summaries) + sum(not covered.holds(each.seq) for each in messages)
    return Assembled(
        summary=text,
        summaries=tuple(each.seq for each in summaries),
        messages=tuple(messages),
        tokens=prompt.tokens,
        left_out=conversation.state.live - told,
        cut=tuple(prompt.cut),
    )


class _Prompt:
    """Messages within a budget, as they are added."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.tokens = 0
        self.messages: list[Message] = []
        self.cut: list[int] = []

    def add_asked(self, message: Message) -> None:
        """Add the latest message of the user, cut if it has to be."""
        if not self._add([message]):
            self._add_abridged([message])

    def add_newest(self, blocks: Sequence[Sequence[Message]], most: int) -> Sequence[Sequence[Message]]:
        """Add blocks, the last one first, as long as they fit and are `most` messages; gives the others.

        Of the very last one, what tools answered is cut rather than left out: else they were asked again.
        There are no others where one does not fit, since what is before it would follow on nothing.
        """
        count = 0
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place]
            if count + len(block) > most:
                return blocks[: place + 1]
            if not self._add(block):
                is_last = not any(each.seq > block[0].seq for each in self.messages)
                if is_last and any(map(answered, block)):
                    self._add_abridged(block)
                return ()
            count += len(block)
        return ()

    def _add(self, block: Sequence[Message]) -> bool:
        tokens = sum(message.tokens for message in block)
        if self.tokens + tokens > self.budget:
            return False
        self.messages += block
        self.tokens += tokens
        return True

    def _add_abridged(self, block: Sequence[Message]) -> None:
        """Add a block of which each message that is not a call has its share of what is left."""
        told = [message for message in block if not message.calls]
        left = self.budget - self.tokens - sum(message.tokens for message in block if message.calls)
        shorter: dict[int, Message] = {}
        # The shortest first: what they do not need is for the others.
        for number, message in enumerate(sorted(told, key=lambda each: each.tokens)):
            fitting = message.abridged(left // (len(told) - number))
            if fitting is None:
                return
            left -= fitting.tokens
            shorter[message.seq] = fitting
        if told and self._add([shorter.get(message.seq, message) for message in block]):
            self.cut += [message.seq for message in told if shorter[message.seq] is not message]


def _fitting(conversation: Conversation, budget: int) -> list[RunSummary]:
    """The summaries in the context that fit into a budget, in order; the deepest, then the latest first."""
    chosen = []
    left = budget - estimate(_GAP + _WARNING)
    for place in sorted(conversation.state.context, key=lambda each: (-each.depth, -each.last)):
        # Even without its text it takes room: of thousands, those that cannot fit are not read.
        is_small = place.tokens <= left and estimate(xml(place) + _GAP) <= left
        summary = conversation.summary(place.seq) if is_small else None
        cost = estimate(xml(summary) + _GAP) if summary else 0
        if summary and cost <= left:
            chosen.append(summary)
            left -= cost
    return sorted(chosen, key=lambda each: each.first)


def rendered(summaries: Sequence[RunSummary]) -> str:
    """Summaries for a prompt, with a note what they are; empty without any."""
    if not summaries:
        return ""
    condensed = [each for each in summaries if each.of]
    is_heavy = len(condensed) >= _HEAVY or any(each.depth >= _HEAVY for each in condensed)
    return _GAP.join([*map(xml, summaries), _WARNING if is_heavy else _NOTE])


def xml(summary: RunSummary) -> str:
    """A summary as XML; what it says is escaped. Its id is the number that `expand` takes."""
    kind = "condensed" if summary.of else "leaf"
    named: dict[str, Any] = {"id": summary.seq, "kind": kind, "depth": summary.depth}
    named["descendant_count"] = summary.messages
    named |= {"earliest_at": summary.earliest} if summary.earliest else {}
    named |= {"latest_at": summary.latest} if summary.latest else {}
    attributes = " ".join(f'{name}="{_escaped(str(value))}"' for name, value in named.items())
    lines = [f"<summary {attributes}>", f"<content>\n{_escaped(summary.text)}\n</content>"]
    if summary.of:
        lines += ["<parents>", *(f'<summary_ref id="{seq}"/>' for seq in summary.of), "</parents>"]
    return "\n".join([*lines, "</summary>"])


def _escaped(text: str) -> str:
    return escape(visible(text), {'"': "&quot;", "'": "&apos;"})


def newest_of(conversation: Conversation, budget: int) -> tuple[list[Message], Message | None]:
    """The last messages, a little more than fit into a budget; and the latest one of the user."""
    newest: list[Message] = []
    asked: Message | None = None
    tokens = further = 0
    waiting = Counter[str]()  # answers of which the call was not yet read
    for message in conversation.uncovered_back():
        asked = asked or (message if is_asked(message) else None)
        if tokens <= budget or (+waiting and further < _LOOK_BACK):
            newest.append(message)
            further += tokens > budget
            tokens += message.tokens
            waiting.update(answered(message))
            waiting.subtract(call.id for call in message.calls if waiting[call.id] > 0)
        elif asked:
            break
    if asked is None and conversation.state.context:
        asked = next(filter(is_asked, conversation.messages_back()), None)
    return newest[::-1], asked
