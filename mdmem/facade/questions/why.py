"""Explain a memory: what it rests on, and how sure it is, term by term."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document import confidence as rules
from mdmem.document.confidence import ConfidenceTerm
from mdmem.document.document import Document
from mdmem.document.source import said_in, sourced_bullets
from mdmem.errors import DocumentRefused, GitFailed, MdmemError, NeedsFolder
from mdmem.index.hit import day_of, fields_of
from mdmem.index.links.lineage import CONTRADICTED, find_references
from mdmem.memory import provenance, validity
from mdmem.memory.content import utc_now

if TYPE_CHECKING:
    from mdmem.facade.questions.uses import Use
    from mdmem.facade.scoped import ScopedMemory
    from mdmem.index.view import View
    from mdmem.review.tracked import MemoryCommit


class SourcedBullet(NamedTuple):
    """A bullet that names its sources: its 1-based line, its text, and the sources."""

    line: int
    text: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What a memory rests on.

    Attributes:
        state: whether it counts now: "live", or why not; see `mdmem.memory.content.State`.
        confidence: how sure it is, from 0 to 1; None if it does not say.
        today: `confidence` as it has faded since the memory was confirmed, updated or written.
        terms: the terms that add up to `confidence`, before the sum is limited to 0 to 1.
        successor: the memory that replaced it; empty without one.
        predecessors: the memories that it replaced.
        ancestors: the memories that it was derived from, directly or through others, nearest first.
        commit: the last commit that touched it; None without git.
        uses: how often it was given to agents, as this machine knows; None where it cannot be read.
    """

    path: str
    state: str
    confidence: float | None
    today: float | None
    terms: tuple[ConfidenceTerm, ...]
    sources: tuple[str, ...]
    bullets: tuple[SourcedBullet, ...]
    successor: str
    predecessors: tuple[str, ...]
    ancestors: tuple[str, ...]
    contradicted_by: tuple[str, ...]
    commit: MemoryCommit | None
    uses: Use | None


def explain(memory: ScopedMemory, view: View, path: str, now: datetime | None = None) -> Why:
    """Explain a memory of a view; the view has to be current."""
    moment = now or utc_now()
    document = memory.vault.read(path)
    fields, path = fields_of(document), document.path
    successors = validity.find_successors(view)
    half_life = memory.vault.config.confidence.half_life_days
    against = find_references(view, CONTRADICTED)
    return Why(
        path=path,
        state=validity.find_states(view, moment).get(path, "live"),
        confidence=rules.confidence_of(fields),
        today=provenance.today(path, fields, day_of(path, fields), moment, half_life),
        terms=rules.terms_of(fields),
        sources=rules.sources_of(fields),
        bullets=tuple(_list_bullets(document)),
        successor=successors.get(path, ""),
        predecessors=tuple(old for old, new in successors.items() if new == path),
        ancestors=memory.lineage.ancestors(path),
        contradicted_by=tuple(each.goal or each.name for each in against if each.path == path),
        commit=_find_commit(memory, path),
        uses=_read_uses(memory, path),
    )


def _list_bullets(document: Document) -> list[SourcedBullet]:
    with contextlib.suppress(DocumentRefused):
        return [
            SourcedBullet(bullet.line, said_in(bullet.text)[0], sources)
            for bullet, sources in sourced_bullets(document)
        ]
    return []


def _read_uses(memory: ScopedMemory, path: str) -> Use | None:
    with contextlib.suppress(MdmemError):
        return memory.uses.of(path)
    return None


def _find_commit(memory: ScopedMemory, path: str) -> MemoryCommit | None:
    with contextlib.suppress(GitFailed, NeedsFolder):
        return next(iter(memory.git.log(path, limit=1)), None)
    return None
