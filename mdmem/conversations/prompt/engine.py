"""What of a conversation is summarised, what a summary stands for, and how a log follows a host's list.

A *run* is a stretch of messages that no summary in the context covers. It ends beside a call of a tool and
what that answered, never between them. Everything here is computed from the records of a log, and gives a
record to append or a value. Tokens are those of `mdmem.document.text.tokens.estimate`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, islice, takewhile
from typing import Any, NamedTuple

from mdmem.conversations.log.conversation import Conversation
from mdmem.conversations.log.logs import NUMBERS, SessionLogs
from mdmem.conversations.log.message import Message, beside_pairs, count_tokens, is_asked, pairs
from mdmem.conversations.log.record import LogRecord, Ranges, RunSummary
from mdmem.conversations.models.generator import Generator
from mdmem.conversations.prompt.prompt import TAIL, count_summary_tokens, read_newest, rendered
from mdmem.conversations.prompt.summarise import SUMMARY, prompt_of, summarise
from mdmem.document.arguments import check_natural
from mdmem.document.text.tokens import estimate
from mdmem.errors import NamedNotFound, SessionConflict

Clean = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A function that removes secrets from the fields of a message."""

LEAF_MESSAGES, LEAF_TOKENS = 8, 20_000
"""The least messages, or tokens, of a run that is summarised; it ends at about these tokens."""
NEIGHBOURS, PRESSED_NEIGHBOURS = 4, 2
"""How many summaries of one depth become one; and how many where the context is over its budget."""
CONDENSED_TOKENS = 2_000
"""How many tokens these have at least, where it is not."""
THRESHOLD = 0.75
"""The part of a budget from which on a context is compacted."""
MOST_DISCARDED = 20
"""How many summaries in a row may come to nothing because others changed what they stand for."""

_LEAF_TARGET, _CONDENSED_TARGET = 1_200, 2_000  # the most tokens of a summary
_SHARE = 0.35  # of the tokens that a summary stands for
_LEAST_TARGET = 16  # tokens
_FORM = 120  # about how many tokens stand around the text of a summary in a prompt
_EARLIER = 2  # earlier summaries that a model gets to see
_LOOK_AHEAD = 1_000  # messages in which an answer to a call is looked for
_FILLED = ("reasoning", "reasoning_content", "model", "model_name", "created_at")


# -- compacting -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did.

    Attributes:
        summaries: that were made.
        tokens: of the context now: its summaries and the messages that none covers.
        stuck: where that is over the budget, the numbers of the messages and summaries in it.
        discarded: how many summaries came to nothing because others changed what they stood for.
        problems: why a model made no summary that it was asked for.
    """

    summaries: tuple[RunSummary, ...] = ()
    tokens: int = 0
    stuck: tuple[int, ...] = ()
    discarded: int = 0
    problems: tuple[str, ...] = ()


class Stretch(NamedTuple):
    """What one summary is to stand for: messages of a log, or the texts of the summaries `of`.

    `earlier` is what the summaries before it say.
    """

    log: str
    messages: tuple[Message, ...]
    tokens: int
    of: tuple[RunSummary, ...] = ()
    earlier: tuple[str, ...] = ()

    @property
    def depth(self) -> int:
        """Of the summary: one more than that of the deepest that it condenses."""
        return max((each.depth for each in self.of), default=-1) + 1

    @property
    def target(self) -> int:
        """How many tokens the summary may have."""
        most = _CONDENSED_TARGET if self.of else _LEAF_TARGET
        return max(_LEAST_TARGET, min(most, int(self.tokens * _SHARE)))

    @property
    def is_worth_it(self) -> bool:
        """Return whether a summary would be shorter, with what stands around it in a prompt."""
        return self.tokens > self.target + _FORM

    def summary(self, text: str, by: str) -> RunSummary:
        """Return the summary with its text, before it has a number."""
        leaves = not self.of
        return RunSummary(
            seq=0,
            depth=self.depth,
            first=self.messages[0].seq if leaves else self.of[0].first,
            last=self.messages[-1].seq if leaves else self.of[-1].last,
            messages=len(self.messages) if leaves else sum(each.messages for each in self.of),
            of=tuple(each.seq for each in self.of),
            tokens=estimate(text),
            source_tokens=self.tokens if leaves else sum(each.source_tokens for each in self.of),
            earliest=self.messages[0].created_at if leaves else self.of[0].earliest,
            latest=self.messages[-1].created_at if leaves else self.of[-1].latest,
            by=by,
            text=text,
        )


def needs_compaction(tokens: int, budget: int) -> bool:
    """Return whether a context of `tokens` is compacted for a budget."""
    return tokens >= budget * THRESHOLD


def due(conversation: Conversation, budget: int | None = None) -> Stretch | None:
    """Choose what to summarise next; None where nothing is due.

    Without a budget, and first of all with one: the oldest run that is long enough, else summaries that are
    neighbours. Where the context is over its budget, whatever makes it smaller, but for the latest message of
    the user, and the last message with what it answers.
    """
    if budget is not None and not needs_compaction(_count_context(conversation, budget), budget):
        return None
    groups = _group_summaries(conversation)
    stretch = _find_leaf(conversation, TAIL) or _find_condensed(conversation, pick_neighbours(groups))
    if stretch or budget is None:
        return stretch
    over = _count_context(conversation, None) - budget
    if over <= 0:
        return None
    several = next((each for each in groups if len(each) >= PRESSED_NEIGHBOURS), ())
    return (
        _find_condensed(conversation, pick_neighbours(groups, PRESSED_NEIGHBOURS, 0))
        or _find_leaf(conversation, 0, enough=int((over + _FORM) / (1 - _SHARE)))
        or _find_condensed(conversation, several)
        or _find_bridge(conversation)
    )


def compact(
    logs: SessionLogs,
    key: str,
    budget: int | None,
    generator: Generator | None,
    clean: Clean,
) -> Compacted:
    """Summarise until nothing is due; `clean` takes secrets out of a summary."""
    check_natural(budget=budget or 0)
    made: list[RunSummary] = []
    problems: list[str] = []
    discarded = in_a_row = 0
    while in_a_row < MOST_DISCARDED:
        with logs.reading(key) as conversation:
            stretch = due(conversation, budget)
        if stretch is None:
            break
        said = summarise(
            stretch.messages, prompt_of(stretch.depth, stretch.earlier), stretch.target, generator
        )
        draft = stretch.summary(str(clean({"text": said.text})["text"]), said.by)
        summary = logs.commit(key, partial(covering, stretch=stretch, summary=draft))
        if said.problem:
            problems.append(said.problem)
            generator = None  # one that hangs would hang again
        if summary:
            made.append(summary)
        discarded, in_a_row = (discarded, 0) if summary else (discarded + 1, in_a_row + 1)
    with logs.reading(key) as conversation:
        return replace(
            measure_context(conversation, budget),
            summaries=tuple(made),
            discarded=discarded,
            problems=tuple(problems),
        )


def measure_context(conversation: Conversation, budget: int | None) -> Compacted:
    """Measure a context; where it is over the budget, name what it consists of."""
    tokens = _count_context(conversation, None)
    if budget is None or tokens <= budget:
        return Compacted(tokens=tokens)
    summaries = [(each.first, each.seq) for each in conversation.state.context]
    messages = [(each.seq, each.seq) for each in conversation.uncovered_back()]
    return Compacted(tokens=tokens, stuck=tuple(number for _, number in sorted(summaries + messages)))


def _count_context(conversation: Conversation, most: int | None) -> int:
    texts = (conversation.summary(each.seq) for each in conversation.state.context)
    tokens = count_summary_tokens(rendered(list(filter(None, texts))))
    for message in conversation.uncovered_back():
        if most is not None and tokens > most:
            break
        tokens += message.tokens
    return tokens


def _group_summaries(conversation: Conversation) -> list[list[RunSummary]]:
    groups: list[list[RunSummary]] = []
    for summary in conversation.state.context:
        first, last = (groups[-1][-1].last + 1, summary.first - 1) if groups else (0, 0)
        if not groups or (first <= last and next(conversation.messages(first, last), None)):
            groups.append([])
        groups[-1].append(summary)
    return groups


def pick_neighbours(
    groups: Iterable[Sequence[RunSummary]], count: int = NEIGHBOURS, least: int = CONDENSED_TOKENS
) -> Sequence[RunSummary]:
    """Pick the neighbours to condense: of the least depth, the oldest; empty without any."""
    runs = [list(run) for group in groups for _, run in groupby(group, key=lambda each: each.depth)]
    for run in sorted(runs, key=lambda each: each[0].depth):
        for start in range(len(run) - count + 1):
            if sum(each.tokens for each in run[start : start + count]) >= least:
                return run[start : start + count]
    return ()


def _find_condensed(conversation: Conversation, neighbours: Sequence[RunSummary]) -> Stretch | None:
    read = [conversation.summary(each.seq) for each in neighbours]
    summaries = tuple(each for each in read if each)
    if not summaries or len(summaries) < len(read):
        return None
    messages = (Message(each.seq, {"role": SUMMARY, "content": each.text}, each.latest) for each in summaries)
    return _make_stretch(conversation, tuple(messages), summaries)


def _make_stretch(
    conversation: Conversation, messages: tuple[Message, ...], of: tuple[RunSummary, ...] = ()
) -> Stretch:
    start = of[0].first if of else messages[0].seq
    before = [each for each in conversation.state.context if each.last < start]
    earlier = filter(None, (conversation.summary(each.seq) for each in before[-_EARLIER:]))
    tokens = count_tokens(messages)
    return Stretch(conversation.state.log, messages, tokens, of, tuple(each.text for each in earlier))


def _find_leaf(conversation: Conversation, tail: int, enough: int = LEAF_TOKENS) -> Stretch | None:
    """Find the oldest run outside the tail that is worth a summary; without a tail, of any length."""
    for first, last in _find_free_ranges(conversation, tail):
        run = _take_run(conversation, first, last, min(enough, LEAF_TOKENS)) if first <= last else ()
        stretch = _make_stretch(conversation, run) if run else None
        is_long = not tail or len(run) >= LEAF_MESSAGES or (stretch and stretch.tokens >= LEAF_TOKENS)
        if stretch and is_long and stretch.is_worth_it:
            return stretch
    return None


def _find_bridge(conversation: Conversation) -> Stretch | None:
    """Find a run between two summaries, however short: as a summary, it can be condensed with them."""
    context = conversation.state.context
    for first, last in _find_free_ranges(conversation, 0):
        is_between = context and context[0].last < first <= last < context[-1].first
        if is_between and (run := _take_run(conversation, first, last, LEAF_TOKENS)):
            return _make_stretch(conversation, run)
    return None


def _find_free_ranges(conversation: Conversation, tail: int) -> Iterator[tuple[int, int]]:
    """Yield the gaps, as ranges of numbers, without the last messages and the latest one of the user."""
    newest = list(islice(conversation.uncovered_back(), tail or 1))
    if len(newest) < (tail or 1):
        return
    asked = next(filter(is_asked, conversation.uncovered_back()), None)
    behind = conversation.uncovered_back() if asked else ()
    since = list(takewhile(lambda message: message != asked, behind))[::-1]
    end = newest[-1].seq if tail else _find_last_turn(read_newest(conversation, 0)[0], asked)
    for first, last in conversation.gaps:
        limit = min(last, end - 1)
        if asked and first <= asked.seq <= last:
            yield first, min(limit, asked.seq - 1)
            first = _find_whole_start(since, asked)  # noqa: PLW2901 - the rest of the gap
        yield first, limit


def _find_whole_start(since: Sequence[Message], asked: Message) -> int:
    """Return the first number behind the latest message of the user at which no pair is parted."""
    paired = pairs(since)
    before = max(paired.answering, default=-1)
    places = [place for place in beside_pairs(since, paired.joined) if before < place < len(since)]
    return since[places[0]].seq if places else asked.seq + len(since) + 1


def _find_last_turn(newest: Sequence[Message], asked: Message | None) -> int:
    """Find the number from which the last messages belong together, with calls that wait for an answer."""
    paired = pairs(newest)
    waiting = {place for place in paired.calling if asked is None or newest[place].seq > asked.seq}
    joined = [*paired.joined, *((place, len(newest) - 1) for place in waiting)]
    places = [place for place in beside_pairs(newest, joined) if place < len(newest)]
    return newest[places[-1]].seq


def _take_run(conversation: Conversation, first: int, last: int, enough: int) -> tuple[Message, ...]:
    """Take the messages from a number on, until they have enough tokens or reach the last number.

    It ends beside a pair: behind it where that is possible, else before it.
    """
    messages: list[Message] = []
    behind: list[Message] = []
    tokens = 0
    coming = conversation.messages(first)
    for message in coming:
        if message.seq > last or tokens >= enough:
            behind.append(message)
            break
        messages.append(message)
        tokens += message.tokens
    reached = len(messages)
    paired = pairs(messages)
    for message in islice(chain(behind, coming), _LOOK_AHEAD):
        if not paired.is_waiting:
            break
        messages.append(message)
        paired.read([message])
    within = sum(message.seq <= last for message in messages)
    places = [place for place in beside_pairs(messages, paired.joined) if place <= within]
    return tuple(messages[: next((place for place in places if place >= reached), places[-1])])


def covering(
    conversation: Conversation, *, stretch: Stretch, summary: RunSummary
) -> tuple[LogRecord | None, RunSummary | None]:
    """Build the record of a summary, and the summary with its number; None where its messages changed.

    The log of the conversation must be locked.
    """
    state = conversation.state
    if stretch.of:
        is_same = {each.seq for each in stretch.of} <= {each.seq for each in state.context}
    else:
        is_free = state.is_free(summary.first, summary.last)
        is_same = is_free and tuple(conversation.messages(summary.first, summary.last)) == stretch.messages
    if state.log != stretch.log or not is_same:
        return None, None
    summary = summary._replace(seq=state.seq + 1)
    return LogRecord(seq=0, summary=summary), summary


# -- up and down ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """What summaries stand for.

    Attributes:
        summaries: those that were reached and not opened, in order.
        messages: in order.
        tokens: of both.
        left_out: how many messages are neither here nor in these summaries, because of the budget.
        cut: the numbers of messages that lack their middle.
    """

    summaries: tuple[RunSummary, ...]
    messages: tuple[Message, ...]
    tokens: int
    left_out: int
    cut: tuple[int, ...] = ()


def expand(logs: SessionLogs, key: str, ids: Iterable[int], budget: int, depth: int | None) -> Expanded:
    """Open summaries and messages in the order of the ids, as much as fits into a budget."""
    check_natural(budget=budget, depth=depth or 0)
    parts: list[RunSummary | Message] = []
    total = 0
    for number in ids:
        for conversation in logs.with_archive(key):
            if summary := conversation.summary(number):
                parts += _open_summary(conversation, summary, depth)
                total += summary.messages
                break
            if message := conversation.message(number):
                parts.append(message)
                total += 1
                break
        else:
            raise _make_not_found(key, number)
    return within_budget(parts, total, budget)


def _make_not_found(key: str, number: int) -> NamedNotFound:
    return NamedNotFound(kind="message or summary", name=f"{key}#{number}", remedy=NUMBERS)


def _open_summary(
    conversation: Conversation, summary: RunSummary, depth: int | None
) -> Iterator[RunSummary | Message]:
    waiting = [(summary, depth)]
    while waiting:
        each, levels = waiting.pop()
        if levels == 0:
            yield each
        elif each.of:
            below = None if levels is None else levels - 1
            children = map(conversation.summary, reversed(each.of))
            # What others wrote may name itself.
            waiting += [(child, below) for child in children if child and child.seq < each.seq]
        else:
            yield from conversation.standing_for(each)


def within_budget(parts: Iterable[RunSummary | Message], total: int, budget: int) -> Expanded:
    """Take the first parts that fit into a budget, and cut the very first one; `total` counts messages."""
    summaries: list[RunSummary] = []
    messages: list[Message] = []
    cut: list[int] = []
    left = budget
    for part in parts:
        shown: RunSummary | Message | None = part
        if part.tokens > left:
            # Only the very first one: what is behind one that is cut would follow on nothing.
            shown = part.abridged(left) if isinstance(part, Message) and left == budget else None
            if shown:
                cut.append(part.seq)
        if isinstance(shown, Message):
            messages.append(shown)
        elif shown:
            summaries.append(shown)
        left -= shown.tokens if shown else 0
        if shown is not part:
            break
    shown_count = len(messages) + sum(each.messages for each in summaries)
    return Expanded(
        summaries=tuple(summaries),
        messages=tuple(messages),
        tokens=budget - left,
        left_out=total - shown_count,
        cut=tuple(cut),
    )


def above(logs: SessionLogs, key: str, number: int) -> list[RunSummary]:
    """Return the summaries that stand for a message or a summary, the nearest first."""
    is_known = False
    for conversation in logs.with_archive(key):
        if summaries := _find_above(conversation, number):
            return summaries
        is_known = is_known or bool(conversation.summary(number) or conversation.message(number))
    if not is_known:
        raise _make_not_found(key, number)
    return []


def _find_above(conversation: Conversation, number: int) -> list[RunSummary]:
    own = conversation.summary(number)
    first, last = (own.first, own.last) if own else (number, number)
    top = conversation.state.covering(first)
    nodes = [top.seq] if top and last <= top.last else []
    if not nodes:  # what stands for it is no longer in the context
        nodes = [record.summary.seq for record in conversation.records(number) if record.summary]
    lineage: dict[int, RunSummary] = {}
    while nodes:
        node = conversation.summary(nodes.pop())
        if node and number < node.seq not in lineage and node.first <= first and last <= node.last:
            lineage[node.seq] = node
            nodes += node.of
    leaves = [each for each in lineage.values() if not each.of]
    spoken = (each.seq for leaf in leaves for each in conversation.standing_for(leaf))
    if own is None and number not in spoken:  # it had left the history before
        return []
    return sorted(lineage.values(), key=lambda each: (each.depth, each.seq))


# -- the list of a host -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedHistory:
    """What made a log equal to a host's list.

    `seq` is the number of the last message, which the host gives as `expected` the next time.
    """

    kept: int = 0
    dropped: int = 0
    added: int = 0
    amended: int = 0
    seq: int = 0


def sync_history(
    conversation: Conversation,
    given: Sequence[Mapping[str, Any]],
    expected: int | None,
    clean: Clean,
) -> tuple[LogRecord | None, SyncedHistory]:
    """Build the record that makes a history equal to a host's list, and say what it does.

    Args:
        conversation: its log must be locked.
        given: the host's messages, as they are kept.
        expected: the number of the last message that the host knows of; None where it does not say.
        clean: what makes of a message how it would be kept now.
    """
    state = conversation.state
    last = next(conversation.messages_back(), None)
    end = last.seq if last else 0
    if expected is not None and end > expected:
        reason = f"it went on to message {end}, and the host knows it up to {expected}"
        remedy = "read the history, and sync what it says now"
        raise SessionConflict(path=conversation.log.path, reason=reason, remedy=remedy)
    amend: dict[int, Mapping[str, Any]] = {}
    kept, drop = 0, Ranges()
    for message in conversation.messages():
        missing = _find_missing(message.data, given[kept], clean) if kept < len(given) else None
        if missing is None:
            drop = Ranges([(message.seq, state.seq)])
            break
        if missing:
            amend[message.seq] = missing
        kept += 1
        end = message.seq
    added = tuple(given[kept:])
    result = SyncedHistory(
        kept=kept,
        dropped=state.live - kept,
        added=len(added),
        amended=len(amend),
        seq=state.seq + len(added) if added else end if kept else 0,
    )
    if not (drop or added or amend):
        return None, result
    record = conversation.dropping(drop, kept) if drop else LogRecord(seq=0)
    return record._replace(messages=added, amend=amend), result


def _find_missing(
    known: Mapping[str, Any],
    given: Mapping[str, Any],
    clean: Clean,
) -> Mapping[str, Any] | None:
    """Return the fields that a message lacks which is the same otherwise; None where it is another one."""
    passed_over = {name for name in _FILLED if not (given.get(name) and known.get(name))}
    wanted = _write_comparable(given, passed_over)
    # Cleaned only where it has to be: most lists go on as they were.
    if wanted != _write_comparable(known, passed_over) and wanted != _write_comparable(
        clean(known), passed_over
    ):
        return None
    return {name: given[name] for name in _FILLED if given.get(name) and not known.get(name)}


def _write_comparable(data: Mapping[str, Any], passed_over: Container[str]) -> str:
    return json.dumps({name: data[name] for name in sorted(data) if name not in passed_over}, sort_keys=True)
