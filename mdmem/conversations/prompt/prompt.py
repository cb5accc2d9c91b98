"""What of a conversation goes into a prompt: summaries and messages that fit into a budget.

Tokens are those of `mdmem.document.text.tokens.estimate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from mdmem.conversations.log.conversation import Conversation
from mdmem.conversations.log.message import Message, is_asked, is_of_user, whole_blocks
from mdmem.conversations.log.parts import tokens, tokens_of_text
from mdmem.conversations.log.record import Ranges, RunSummary
from mdmem.document.arguments import check_natural
from mdmem.document.text.tokens import visible

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
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """What of a conversation goes into a prompt.

    Attributes:
        summary: the summaries as XML, with a note; empty without any. It is for the system's part of a
            prompt: nobody said it.
        summaries: their numbers.
        messages: in order; what was asked of a tool comes with what it answered.
        tokens: of the messages, and of the summary as a message of the system.
        left_out: how many messages of the history are neither here nor in a summary that is.
        cut: the numbers of messages that lack their middle.
    """

    summary: str
    summaries: tuple[int, ...]
    messages: tuple[Message, ...]
    tokens: int
    left_out: int
    cut: tuple[int, ...] = ()

    def as_messages(self, system: str = "") -> list[dict[str, Any]]:
        """Return chat messages: one of the system, then the messages with the fields that they came in with.

        Args:
            system: what the message of the system begins with; the summary follows it. It is not counted in
                `tokens`. Where both are empty, there is no such message.
        """
        content = _GAP.join(filter(None, (system, self.summary)))
        first = [{"role": "system", "content": content}] if content else []
        return [*first, *(dict(message.data) for message in self.messages)]


def assemble(
    conversation: Conversation, budget: int, tail: int = TAIL, *, user_first: bool = True
) -> Assembled:
    """Choose the newest messages and the summaries that fit into a budget.

    First comes the latest message of the user, then the last messages, then summaries, the deepest first,
    since they stand for most, then earlier messages. What tools answered since the user's message is cut
    where it does not fit.
    The arguments are those of `Sessions.assemble`.
    """
    check_natural(budget=budget, tail=tail)
    newest, asked = read_newest(conversation, budget)
    prompt = _Prompt(budget, asked)
    others = ([message for message in block if message != asked] for block in whole_blocks(newest))
    blocks = [block for block in others if block]
    earlier = prompt.add_newest(blocks, tail - len(prompt.messages))
    if prompt.is_full and len(earlier) == len(blocks):
        prompt.add_cut(earlier[-1])
    summaries = _choose_summaries(conversation, budget - prompt.tokens)
    text = rendered(summaries)
    prompt.tokens += count_summary_tokens(text)
    earlier = prompt.add_newest(earlier, len(newest))
    if earlier and not prompt.cut:
        prompt.add_cut(earlier[-1])
    messages = sorted(prompt.messages, key=lambda message: message.seq)
    if user_first:
        messages = _begin_with_user(messages)
        seqs = {message.seq for message in messages}
        prompt.tokens -= sum(message.tokens for message in prompt.messages if message.seq not in seqs)
    covered = Ranges.of((each.first, each.last) for each in summaries)
    shown = sum(each.messages for each in summaries) + sum(not covered.holds(each.seq) for each in messages)
    return Assembled(
        summary=text,
        summaries=tuple(each.seq for each in summaries),
        messages=tuple(messages),
        tokens=prompt.tokens,
        left_out=conversation.state.live - shown,
        cut=tuple(message.seq for message in messages if message.seq in prompt.cut),
    )


def count_summary_tokens(text: str) -> int:
    """Estimate the tokens of the summaries' text as a message of the system."""
    return tokens({"role": "system", "content": text}) if text else 0


class _Prompt:
    """Messages within a budget, as they are added; first the latest one of the user, cut if it has to be."""

    def __init__(self, budget: int, asked: Message | None) -> None:
        self.budget, self._asked = budget, asked
        self.tokens = 0
        self.messages: list[Message] = []
        self.cut: set[int] = set()
        self.is_full = False
        if asked and not self._add_block([asked]):
            self._add_abridged([asked])
        self.is_full = False

    def add_newest(self, blocks: Sequence[Sequence[Message]], most: int) -> Sequence[Sequence[Message]]:
        """Add blocks, the last one first, while they fit, up to `most` messages; return the others.

        A block before one that does not fit would have a gap behind it.
        """
        for place in range(len(blocks) - 1, -1, -1):
            most -= len(blocks[place])
            if most < 0 or not self._add_block(blocks[place]):
                return blocks[: place + 1]
        return ()

    def add_cut(self, block: Sequence[Message]) -> None:
        """Add what tools answered to the user's message with as much as fits: else they were asked again."""
        is_behind = self._asked is None or block[-1].seq > self._asked.seq
        if is_behind and any(message.halves for message in block):
            self._add_abridged(block)

    def _add_block(self, block: Sequence[Message]) -> bool:
        size = sum(message.tokens for message in block)
        self.is_full = self.tokens + size > self.budget
        if not self.is_full:
            self.messages += block
            self.tokens += size
        return not self.is_full

    def _add_abridged(self, block: Sequence[Message]) -> None:
        """Add a block; each message that is not only a call gets a share of the tokens that are left."""
        asking = [message for message in block if message.calls and not message.answers]
        cuttable = [message for message in block if message.answers or not message.calls]
        left = self.budget - self.tokens - sum(message.tokens for message in asking)
        shorter: dict[int, Message] = {}
        # The shortest first: what they do not need is for the others.
        for number, message in enumerate(sorted(cuttable, key=lambda each: each.tokens)):
            fitting = message.abridged(left // (len(cuttable) - number))
            if fitting is None:
                return
            left -= fitting.tokens
            shorter[message.seq] = fitting
        if cuttable and self._add_block([shorter.get(message.seq, message) for message in block]):
            self.cut |= {message.seq for message in cuttable if shorter[message.seq] is not message}


def _begin_with_user(messages: Sequence[Message]) -> list[Message]:
    while True:
        start = next((place for place, each in enumerate(messages) if is_of_user(each)), len(messages))
        while 0 < start < len(messages) and messages[start - 1].role in _SYSTEM:
            start -= 1
        whole = [message for block in whole_blocks(messages[start:]) for message in block]
        if len(whole) == len(messages):
            return whole
        messages = whole


def _choose_summaries(conversation: Conversation, budget: int) -> list[RunSummary]:
    chosen = []
    left = budget - count_summary_tokens(_GAP + _WARNING)
    for place in sorted(conversation.state.context, key=lambda each: (-each.depth, -each.last)):
        # Even without its text it takes room: of thousands, those that cannot fit are not read.
        is_small = place.tokens <= left and tokens_of_text(xml(place) + _GAP) <= left
        summary = conversation.summary(place.seq) if is_small else None
        cost = tokens_of_text(xml(summary) + _GAP) if summary else 0
        if summary and cost <= left:
            chosen.append(summary)
            left -= cost
    return sorted(chosen, key=lambda each: each.first)


def rendered(summaries: Sequence[RunSummary]) -> str:
    """Return summaries for a prompt, with a note what they are; empty without any."""
    if not summaries:
        return ""
    condensed = [each for each in summaries if each.of]
    is_heavy = len(condensed) >= _HEAVY or any(each.depth >= _HEAVY for each in condensed)
    return _GAP.join([*map(xml, summaries), _WARNING if is_heavy else _NOTE])


def xml(summary: RunSummary) -> str:
    """Return a summary as XML; what it says is escaped. Its id is the number that `expand` takes."""
    kind = "condensed" if summary.of else "leaf"
    named: dict[str, Any] = {"id": summary.seq, "kind": kind, "depth": summary.depth}
    named["descendant_count"] = summary.messages
    if summary.earliest:
        named["earliest_at"] = summary.earliest
    if summary.latest:
        named["latest_at"] = summary.latest
    attributes = " ".join(f'{name}="{_escape_attribute(str(value))}"' for name, value in named.items())
    lines = [f"<summary {attributes}>", f"<content>\n{_escape_attribute(summary.text)}\n</content>"]
    if summary.of:
        lines += ["<parents>", *(f'<summary_ref id="{seq}"/>' for seq in summary.of), "</parents>"]
    return "\n".join([*lines, "</summary>"])


def _escape_attribute(text: str) -> str:
    return escape(visible(text), {'"': "&quot;", "'": "&apos;"})


def read_newest(conversation: Conversation, budget: int) -> tuple[list[Message], Message | None]:
    """Read the last messages, a little more than fit into a budget, and the latest one of the user."""
    newest: list[Message] = []
    asked: Message | None = None
    read = further = 0
    waiting = Counter[str]()  # answers to calls that were not yet read
    for message in conversation.uncovered_back():
        asked = asked or (message if is_asked(message) else None)
        if read <= budget or (+waiting and further < _LOOK_BACK):
            newest.append(message)
            if read > budget:
                further += 1
            read += message.tokens
            _count_waiting(message, waiting)
        elif asked:
            break
    if asked is None and conversation.state.context:
        asked = next(filter(is_asked, conversation.messages_back()), None)
    return newest[::-1], asked


def _count_waiting(message: Message, waiting: Counter[str]) -> None:
    """Count which answers wait for their calls, before one more message."""
    for half in reversed(message.halves):
        answered = [each for each in half.ids if waiting[each] > 0] if half.kind != "answer" else []
        if answered:
            waiting[answered[0]] -= 1
        elif half.kind != "call" and half.waits:
            waiting[half.ids[0]] += 1
