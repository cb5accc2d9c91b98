"""Who said what: the facts of a memory, each with the commit that it comes from."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate, compress
from typing import TYPE_CHECKING

from mdmem.diagnostic import Span
from mdmem.document.tree import dotted, same
from mdmem.errors import DocumentRefused
from mdmem.git.history import AGENT, ALSO, OP
from mdmem.merging.comparison import pair_facts
from mdmem.merging.facts import facts
from mdmem.review.tracked import NAMES_A_MEMORY, agent_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem.document.document import Document
    from mdmem.document.tree import Member
    from mdmem.git.history import Commit
    from mdmem.review.tracked import Tracked
    from mdmem.vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidFact:
    """A fact or a field of a memory as it is now, and who said it.

    Attributes:
        path: the memory.
        line, last: the numbers of its first and its last line, 1-based.
        kind: of a fact what it is written as, such as "item"; else "field".
        heading: of a fact, the titles that it stands under; of a field, its key.
        id: of a fact, its block id; empty without.
        text: its words; of a field, as it is written.
        commit: the last one that changed it; None where `note` says why it is not known.
        date: when that was written, in ISO 8601.
        author, email: who wrote it.
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


_NOT_COMMITTED = "not committed yet"
_ELSEWHERE = "in another repository, or in none"
_UNKNOWN = "older than this shallow clone"


def blame(vault: Vault, tracked: Tracked, path: str) -> list[SaidFact]:
    """Return each field and each fact of a memory, with who said it last.

    Raises:
        As `Git.blame`.
    """
    now = vault.read(path)
    name = tracked.name(path)
    blob = tracked.history.tree(tracked.head, [name]).get(name) if tracked.head else None
    return list(_Blame(tracked, now, name, blob or "").said())


class _Blame:
    """Says who said what in a memory, which git calls `name`; `blob` is what the last commit has, if any."""

    def __init__(self, tracked: Tracked, now: Document, name: str, blob: str) -> None:
        self._now = now
        self._head = tracked.document(blob, now.path) if blob else None
        self._lines = tracked.repository.blame(name, words=True) if blob else ()
        self._commits = tracked.history.commits(filter(None, self._lines))
        self._partial = tracked.find_partial(self._commits.values())
        self._newest = tracked.history.newest
        self._ends = (
            list(accumulate(len(line) + 1 for line in self._head.text.split("\n"))) if self._head else ()
        )
        self._unknown = _NOT_COMMITTED if tracked.holds(name) else _ELSEWHERE

    def said(self) -> Iterator[SaidFact]:
        """Yield each field and each fact, in order."""
        for member in _list_members(self._now):
            yield self._blame_field(member)
        known = (
            pair_facts(self._head, self._now) if self._head else [(fact, None) for fact in facts(self._now)]
        )
        for fact, before in known:
            said = SaidFact(
                path=self._now.path,
                line=fact.line,
                last=fact.last,
                kind=fact.kind,
                heading=fact.path,
                id=fact.id,
                text=fact.text,
            )
            yield self._blame_span(said, before.span if before and before.said == fact.said else None)

    def _blame_field(self, member: Member) -> SaidFact:
        start, end = _member_span(member)
        said = SaidFact(
            path=self._now.path,
            line=self._now.lines.number(start),
            last=self._now.lines.number(end - 1),
            kind="field",
            heading=(dotted([member.key]),),
            id="",
            text=self._now.text[start:end],
        )
        found = (each for each in (_list_members(self._head) if self._head else ()) if each.key == member.key)
        before = next((each for each in found if same(each.node.value, member.node.value)), None)
        return self._blame_span(said, _member_span(before) if before else None)

    def _blame_span(self, said: SaidFact, span: Span | None) -> SaidFact:
        """Return what was said, with the last commit that touched a stretch of the last version."""
        if span is None:
            return replace(said, note=self._unknown)
        first, last = (bisect_right(self._ends, at) for at in (span.start, span.end - 1))
        touched = [self._commits[id_] for id_ in dict.fromkeys(self._lines[first : last + 1]) if id_]
        if not touched:
            return replace(said, note=_UNKNOWN)
        latest = max(commit.committed for commit in touched)
        tied = [commit.id for commit in touched if commit.committed == latest]
        commit = self._commits[self._newest(tied) if len(tied) > 1 else tied[0]]
        is_part, concerned = commit.id in self._partial, _operations_on(commit, self._now.path)
        agents = dict.fromkeys(agent for _, agent in concerned)
        return replace(
            said,
            commit=commit.id,
            date=commit.date,
            author=commit.author,
            email=commit.email,
            agent=", ".join(filter(None, agents))
            if agents and not is_part
            else agent_of(commit, is_part=is_part),
            sure=not is_part and len(agents) <= 1,
            operations=() if is_part else tuple(operation for operation, _ in concerned),
        )


def _operations_on(commit: Commit, path: str) -> list[tuple[str, str]]:
    """List the operations of a commit on a memory, each with its agent."""
    done: list[tuple[str, str]] = []
    concerned: list[bool] = []
    for key, value in commit.trailers:
        concerns = path in value or not NAMES_A_MEMORY.search(value)
        if key == OP:
            done.append((value, ""))
            concerned.append(concerns)
        elif key == ALSO and done:
            concerned[-1] |= concerns
        elif key == AGENT and done:
            done[-1] = (done[-1][0], value)
    # A memory may have been called otherwise then: where none is left, all may concern it.
    return list(compress(done, concerned)) or done


def _list_members(document: Document) -> tuple[Member, ...]:
    try:
        return document.tree.members if document.tree else ()
    except DocumentRefused:
        return ()


def _member_span(member: Member) -> Span:
    return Span(member.key_span.start, max(member.key_span.end, member.node.span.end))
