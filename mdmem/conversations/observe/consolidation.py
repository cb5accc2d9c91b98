"""Consolidation: changes that make one memory of several, drafted for somebody to accept.

Nothing is changed here, and nothing that is drafted deletes a memory: one that is superseded stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from mdmem.conversations.log.message import Message
from mdmem.conversations.models.generator import Generator, prompt, reply, structured
from mdmem.conversations.observe.quotation import place_of
from mdmem.conversations.prompt.summarise import summarise
from mdmem.document.document import Document, digest
from mdmem.document.text.tokens import abridged, clipped, estimate, fenced
from mdmem.errors import DocumentRefused, Usage
from mdmem.memory.duplicates import ComparedMemories, DuplicatePair, find_alone, find_own_blocks
from mdmem.memory.proposal import id_of
from mdmem.memory.upkeep import ProposalDraft

_FEW_BLOCKS = 3  # that a memory may have alone, and be merged without a model
_MOST_ASKED, _MOST_ANSWERED, _SUMMARY = 10_000, 500, 800  # tokens of a text, of an answer, of a summary
_NEARLY = 0.25  # of the runs of words of a block that is said otherwise
_MOST_LINES, _LONGEST_LINE = 20, 120  # lines that a reason names, and characters of a quotation
_QUOTE = {"type": "string", "maxLength": 1000}
_VERDICT: dict[str, Any] = {
    "type": "object",
    "required": ["verdict", "first", "second"],
    "properties": {
        "verdict": {"enum": ["same", "update", "other", "unsure"]},
        "first": _QUOTE,
        "second": _QUOTE,
    },
}


class MemoryGroup(NamedTuple):
    """The paths of memories that may become one, and for two of them how they are alike."""

    paths: Sequence[str]
    pair: DuplicatePair | None = None


class ConsolidationStrategy(Protocol):
    """A way to make one memory of several; a program may bring its own. `asks` says if it needs a model."""

    name: str
    asks: bool

    def groups(self, memories: ComparedMemories) -> Iterable[MemoryGroup]:
        """Yield the groups that may become one memory, the best first."""
        ...

    def draft(self, documents: Sequence[Document], generator: Generator | None) -> ProposalDraft | str:
        """Draft the change of a group, the oldest first; else say why a model gave none, or nothing."""
        ...


class RedundancyStrategy:
    """What one memory says and another one holds: by rules, and by a model where each says much alone."""

    name, asks = "redundant", False

    def groups(self, memories: ComparedMemories) -> Iterator[MemoryGroup]:
        """Yield the pairs that say the same."""
        return (MemoryGroup(pair.paths, pair) for pair in memories.pairs)

    def draft(self, documents: Sequence[Document], generator: Generator | None) -> ProposalDraft | str:
        """Supersede a memory if another holds all its blocks; merge two if the newer lacks few."""
        older, newer = documents
        for old, by in ((older, newer), (newer, older)):
            if not find_own_blocks(old, by):
                reason = f"{by.path} holds every block of it"
                return _draft("supersede", documents, reason, old=old.path, by=by.path)
        own = find_own_blocks(older, newer, _NEARLY), find_own_blocks(newer, older, _NEARLY)
        if not own[0]:
            reason = _describe_alone(older, newer)
            return _draft("supersede", documents, reason, old=older.path, by=newer.path)
        # Beside other blocks, or where the heading is gone, the newer one mostly says it otherwise.
        places = [{part.path[-1] if part.level > 1 else "" for part, _ in blocks} for blocks in own]
        is_added = places[0] <= {"", *(each.title for each in newer.headings)} - places[1]
        if is_added and len(own[0]) <= _FEW_BLOCKS:
            reason = f"they say the same but for {len(own[0])} blocks, which the newer one takes over"
            return _draft_merge(documents, reason, newer.path, None)
        if generator is None:
            return ""
        asked = _write_request("merge", documents, sum(estimate(each.body) for each in documents))
        answer = reply(generator, asked, 2 * estimate(asked))
        reason = f"they say much of the same; {answer.by} made one text of both"
        return answer.problem or _draft_merge(documents, reason, newer.path, f"{answer.value}\n")


class ConflictStrategy:
    """What a newer memory says otherwise: a model finds it, and shows it by words of both."""

    name, asks = "conflict", True

    def groups(self, memories: ComparedMemories) -> Iterator[MemoryGroup]:
        """Yield the pairs that share words which few memories hold, and do not say the same anyway."""
        known = {frozenset(pair.paths) for pair in memories.pairs}
        alike = memories.find_alike(memories.paths, size=1, least=1, most=0.0)
        return (MemoryGroup(pair.paths) for pair in alike if frozenset(pair.paths) not in known)

    def draft(self, documents: Sequence[Document], generator: Generator | None) -> ProposalDraft | str:
        """Supersede the older memory by the newer, where that says the same or otherwise."""
        asked = _write_request("conflict", documents, _MOST_ANSWERED)
        answer = structured(generator, asked, _MOST_ANSWERED, _VERDICT) if generator else None
        if answer is None or answer.problem:
            return answer.problem if answer else ""
        older, newer = documents
        said = {"same": "says the same", "update": "says otherwise"}.get(answer.value["verdict"])
        quotes = [answer.value[name] for name in ("first", "second")]
        pairs = zip(quotes, documents, strict=True)
        if not said or not all(quote.split() and place_of(quote, each.body) for quote, each in pairs):
            return ""
        shown = " / ".join(clipped(" ".join(quote.split()), _LONGEST_LINE) for quote in quotes)
        reason = f"the newer one {said}, as {answer.by} finds: {shown}"
        return _draft("supersede", documents, reason, old=older.path, by=newer.path)


class SummaryStrategy:
    """A summary of the memories in a folder that somebody names, made as that of a conversation."""

    name, asks = "summary", False

    def groups(self, memories: ComparedMemories) -> Iterator[MemoryGroup]:
        """Yield the memories below the folder as one group."""
        if not memories.within:
            raise Usage(problem="a summary needs a folder", remedy="name the folder of the memories")
        if len(memories.paths) > 1:
            yield MemoryGroup(memories.paths)

    def draft(self, documents: Sequence[Document], generator: Generator | None) -> ProposalDraft | str:
        """Merge the memories into a new one that holds the summary."""
        told = [
            Message(number, {"role": "user", "name": each.path, "content": each.body})
            for number, each in enumerate(documents, 1)
        ]
        made = summarise(told, prompt("memories"), _SUMMARY, generator)
        name = digest("".join(each.hash for each in documents).encode())[:8]
        into = f"{documents[0].path.rpartition('/')[0]}/summary-{name}.md".removeprefix("/")
        text = f"# Summary of {len(told)} memories\n\n{made.text}\n"
        reason = f"a summary of {len(told)} memories, by {made.by}"
        return made.problem or _draft_merge(documents, reason, into, text)


STRATEGIES: dict[str, ConsolidationStrategy] = {
    each.name: each for each in (RedundancyStrategy(), ConflictStrategy(), SummaryStrategy())
}
"""The strategies that come along, by name."""


class ConsolidationDrafts(NamedTuple):
    """What to change at once, and what to propose; and in words, what was left out."""

    accepted: Sequence[ProposalDraft]
    proposed: Sequence[ProposalDraft]
    left_out: Sequence[str]


def draft_changes(
    memories: ComparedMemories,
    strategies: Sequence[str | ConsolidationStrategy],
    limit: int,
    generator: Generator | None,
    known: Collection[str],
    accept: str,
) -> ConsolidationDrafts:
    """Draft the changes that make one memory of several; none touches what another one rests on.

    Args:
        strategies, limit, generator, accept: as for `Memory.consolidate`.
        known: the ids of proposals that wait or were rejected.
    """
    if limit < 1 or accept not in ("", "same"):
        problem = f"{accept!r} cannot be accepted at once" if accept else f"the limit is {limit}"
        raise Usage(problem=problem, remedy="accept `same`, or nothing; the limit is 1 or more")
    asked = strategies or ("redundant", *(["conflict"] if generator else []))
    drafts, accepted, changed, kept = list[ProposalDraft](), list[ProposalDraft](), set[str](), set[str]()
    problems, waiting = list[str](), 0
    for strategy in [_find_strategy(each, generator) for each in asked]:
        tries = limit if strategy.asks else -1
        for group in strategy.groups(memories):
            is_same = accept == "same" and group.pair is not None and group.pair.is_same
            if not is_same and (len(drafts) >= limit or not tries):
                waiting += 1
                continue
            tries -= 1
            documents = memories.read(*group.paths)
            draft: ProposalDraft | str = ""
            with suppress(DocumentRefused):  # a part of one is too large
                draft = strategy.draft(documents, generator) if documents else ""
            if isinstance(draft, str):
                if not draft:
                    continue
                problems.append(f"{strategy.name}: {draft}: nothing more was asked")
                break
            by = {draft.arguments["by"]} if "by" in draft.arguments else set()
            touched = {*group.paths} - by
            if touched & (changed | kept) or by & changed:
                continue
            if is_same or not any(each in known for each in _list_ids(draft)):
                (accepted if is_same else drafts).append(draft)
            changed |= touched
            kept |= by
    if waiting:
        problems.append(f"{waiting:,} more: accept or reject these, and consolidate again")
    return ConsolidationDrafts(accepted, drafts, (*memories.reasons, *problems))


def _find_strategy(given: str | ConsolidationStrategy, generator: Generator | None) -> ConsolidationStrategy:
    found = STRATEGIES.get(given) if isinstance(given, str) else given
    if found is None or (found.asks and generator is None):
        problem = f"the strategy {given} asks a model" if found else f"there is no strategy {given!r}"
        raise Usage(
            problem=problem, remedy=f"a strategy is {', '.join(STRATEGIES)}; name a model for one that asks"
        )
    return found


def _draft(verb: str, documents: Sequence[Document], reason: str, **arguments: object) -> ProposalDraft:
    bases = {each.path: each.hash for each in documents}
    return ProposalDraft(verb, {**arguments, "bases": bases}, reason)


def _draft_merge(documents: Sequence[Document], reason: str, into: str, content: str | None) -> ProposalDraft:
    paths = [each.path for each in documents]
    return _draft("merge", documents, reason, paths=paths, into=into, content=content)


def _list_ids(draft: ProposalDraft) -> list[str]:
    """List the ids of a draft, and of the one that keeps the other memory: which is newer may change."""
    given, back = draft.arguments, {"old": "by", "by": "old"}
    turned = {name: given[back.get(name, name)] for name in given} if draft.verb == "supersede" else given
    return [id_of(draft.verb, each) for each in (given, turned)]


def _describe_alone(old: Document, by: Document) -> str:
    """Say what would no longer count."""
    lines = find_alone(old, by)
    named = "; ".join(lines[:_MOST_LINES])
    more = f" and {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
    return f"{by.path} says nearly the same; only in the old one: {named}{more}"


def _write_request(name: str, documents: Sequence[Document], most: int) -> str:
    texts = [abridged(each.body, _MOST_ASKED) for each in documents]
    fences = (fenced(text, f"memory {number}") for number, text in enumerate(texts, 1))
    return "\n".join((prompt(name).replace("{target}", str(most), 1), *fences, ""))
