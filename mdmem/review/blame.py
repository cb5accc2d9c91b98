"""Who said what: the facts of a memory, each with the commit that it comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mdmem.diagnostic import Span
from mdmem.document.document import Document
from mdmem.document.merging.comparison import pair_facts
from mdmem.document.text.lines import whole_lines
from mdmem.document.text.regex import regex
from mdmem.document.tree import Member, dotted, same
from mdmem.review.authors import Maker, Steps, list_members, read_log
from mdmem.review.review import find_names
from mdmem.review.tracked import Tracked
from mdmem.vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidFact:
    """A fact or a field of a memory as it is now, and who said it.

    Attributes:
        line, last: the numbers of its first and its last line, 1-based.
        kind: of a fact what it is written as, such as "item"; else "field", or "conflict": what a merge left
            between its markers; the lines of ours are facts, too.
        heading: of a fact, the titles that it stands under; of a field, its key.
        id: of a fact, its block id; empty without.
        text: its words; of a field, as it is written.
        commit: the last one that changed it; None where `note` says why it is not known.
        date: when that was written, in ISO 8601.
        agent: who made the change, as the commit says, or who made changes in it; empty where it does not.
        sure: False where somebody else than `agent` may have changed it: the commit also holds a direct edit
            of the memory, or operations of several agents, or changes outside of the namespace.
        operations: what the commit says was done in it, to this memory or to what it does not name; of
            several, nobody knows which of them changed this fact.
        note: that it is not committed yet, older than what the repository has, or not in it at all.
    """

    path: str
    line: int
    last: int
    kind: str
    heading: tuple[str, ...]
    id: str
    text: str
    commit: str | None = None
    date: str = ""
    author: str = ""
    email: str = ""
    agent: str = ""
    sure: bool = True
    operations: tuple[str, ...] = ()
    note: str = ""


_MARKER = regex(r"([<|=>])\1{6,}")
_NOT_COMMITTED = "not committed yet"
_ELSEWHERE = "in another repository, or in none"
_UNKNOWN = "older than this shallow clone"


def blame(vault: Vault, tracked: Tracked, path: str) -> list[SaidFact]:
    """Return each field and each fact of a memory, with who said it last."""
    now = vault.read(path)
    _, old = find_names(path, tracked, vault)
    name, blob = tracked.name(old), tracked.list_blobs(tracked.head, [old]).get(old, "")
    is_unmerged = "<" * 7 in now.text and path in tracked.unmerged()
    spans = now.conflicts(in_code=is_unmerged)
    settled, numbers = _take_ours(now, spans)
    found = _Blame(vault, tracked, settled, name, blob).said()
    said = [replace(each, line=numbers[each.line], last=numbers[each.last]) for each in found]
    return sorted([*said, *(_describe_conflict(now, span) for span in spans)], key=lambda each: each.line)


def _describe_conflict(document: Document, span: Span) -> SaidFact:
    line, last = map(document.lines.number, span)
    text, note = f"a conflict in lines {line} to {last}", "amid a merge"
    return SaidFact(
        path=document.path, line=line, last=last, kind="conflict", heading=(), id="", text=text, note=note
    )


def _take_ours(document: Document, spans: Sequence[Span]) -> tuple[Document, list[int]]:
    """Return a memory with ours of each conflict alone, and the old numbers of its lines."""
    kept, numbers, side = list[str](), [0], "<"
    for number, line in enumerate(whole_lines(document.text), 1):
        at = document.lines.starts[number - 1]
        marker = _MARKER.match(line) if any(span.start <= at < span.end for span in spans) else None
        side = marker[1] if marker else side
        if not marker and side in {"<", ">"}:
            kept.append(line)
            numbers.append(number)
    return document.with_text("".join(kept)) if spans else document, numbers


class _Blame:
    """Finds who said what in a memory; git calls it `name`, and `blob` is its content in the last commit."""

    def __init__(self, vault: Vault, tracked: Tracked, now: Document, name: str, blob: str) -> None:
        self._now = now
        self._head = tracked.document(blob, now.path) if blob else None
        self._steps = Steps(vault, read_log(vault), now.path, now, self._head)
        self._lines = tracked.repository.blame(name, words=True) if blob else ()
        self._commits = tracked.history.commits(filter(None, self._lines))
        self._partial = tracked.find_partial(self._commits.values())
        self._newest = tracked.history.newest
        self._ends = (
            list(accumulate(len(line) + 1 for line in self._head.text.split("\n"))) if self._head else ()
        )
        self._unknown = _NOT_COMMITTED if tracked.holds(name) else _ELSEWHERE

    def said(self) -> Iterator[SaidFact]:
        number, members = self._now.lines.number, {each.key: each for each in list_members(self._head)}
        for member in list_members(self._now):
            before, (start, end) = members.get(member.key), _member_span(member)
            said = SaidFact(
                path=self._now.path,
                line=number(start),
                last=number(end - 1),
                kind="field",
                heading=(dotted([member.key]),),
                id="",
                text=self._now.text[start:end],
            )
            is_same = before and same(before.node.value, member.node.value)
            span = _member_span(before) if before and is_same else None
            yield self._blame_span(said, self._steps.find_maker((member.key,)), span)
        for fact, was in pair_facts(self._head, self._now):
            told = {name: getattr(fact, name) for name in ("line", "last", "kind", "id", "text")}
            said = SaidFact(path=self._now.path, heading=fact.path, **told)
            span = was.span if was and was.said == fact.said else None
            yield self._blame_span(said, self._steps.find_maker(fact), span)

    def _blame_span(self, said: SaidFact, maker: Maker, span: Span | None) -> SaidFact:
        """Return what was said with its maker and the last commit that touched its span in the head."""
        first, last = (bisect_right(self._ends, at) for at in (span.start, span.end - 1)) if span else (0, -1)
        touched = [self._commits[id_] for id_ in dict.fromkeys(self._lines[first : last + 1]) if id_]
        commit, note = None, _UNKNOWN if span else self._unknown
        if touched:
            latest = max(commit.committed for commit in touched)
            tied = [commit.id for commit in touched if commit.committed == latest]
            commit, note = self._commits[self._newest(tied) if len(tied) > 1 else tied[0]], ""
            said = replace(said, commit=commit.id, date=commit.date, author=commit.author, email=commit.email)
        is_part = commit is not None and commit.id in self._partial
        agent, is_sure, operations = self._steps.name_agents(maker, commit, is_part=is_part)
        return replace(said, note=note, agent=agent, sure=is_sure, operations=operations)


def _member_span(member: Member) -> Span:
    return Span(member.key_span.start, max(member.key_span.end, member.node.span.end))
