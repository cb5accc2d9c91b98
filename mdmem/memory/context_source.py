"""What a context is made of: the excerpts of each of its parts, and what could not be read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from mdmem.errors import DocumentRefused, FieldNotFound, MdmemError, MemoryNotFound, PathRefused
from mdmem.instructions import block
from mdmem.memory import expiry, preference
from mdmem.memory.excerpt import Excerpt, Gathered, Source
from mdmem.memory.rules import workspace_path
from mdmem.memory.working import Working
from mdmem.text.document import PROJECT_FILE, Document
from mdmem.text.tokens import in_line, visible
from mdmem.vault.paths import join
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from mdmem.diagnostic import Span
    from mdmem.index.hit import Hit
    from mdmem.memory.memory import Memory

_MOST_FOUND = 50
_PINNED = "tier=pinned"


def gathered(
    memory: Memory,
    query: str,
    files: Sequence[str],
    thread: str | None,
    now: datetime,
    besides: Collection[str] = (),
) -> dict[str, Gathered]:
    """What there is for each part of a context.

    Args:
        memory, query, files, thread, now: as `context.context` takes them.
        besides: files that whoever is told this reads by himself, as absolute paths without links.
    """
    sources = Sources(memory, now, besides)
    found = {"rules": sources.rules(files), "project": sources.project()}
    found["preferences"] = sources.preferences()
    found["pinned"] = sources.pinned()
    found["working"] = sources.working(thread) if thread is not None else Gathered()
    found["found"] = sources.found(query) if query.strip() else Gathered()
    return _without_repeats(found)


def _without_repeats(found: dict[str, Gathered]) -> dict[str, Gathered]:
    """The same, where a memory that is pinned besides stands in its own part only."""
    own = {e.path for name in ("rules", "project", "preferences", "working") for e in found[name].excerpts}
    pinned = found["pinned"]
    kept = [excerpt for excerpt in pinned.excerpts if excerpt.path not in own]
    return {**found, "pinned": Gathered(kept, pinned.unread)}


class Sources:
    """Gathers the parts of a context, each from the layers of the vault that speak to the memory's scope.

    Args:
        memory: whose.
        now: the moment at which memories expire and preferences have faded.
        besides: files that are left out; see `gathered`.
    """

    def __init__(self, memory: Memory, now: datetime, besides: Collection[str] = ()) -> None:
        self._memory = memory
        self._now = now
        self._besides = besides
        # From everyone's to the scope's own, as `Scope.layers`.
        self._layers = [Vault(memory.vault.root, layer) for layer in memory.scope.layers]

    def rules(self, files: Sequence[str]) -> Gathered:
        """The rules that apply to one of the files, or without files all: the highest priority first."""
        gathered, everything = Gathered(), self._memory.rules.list(disabled=True)
        about = [workspace_path(self._memory.vault, file) for file in files]
        for rule in everything:
            if not rule.enabled or (about and not any(map(rule.applies_to, about))):
                continue
            vault = next(v for v in self._layers if v.namespace == rule.layer)
            path = rule.path[len(join(rule.layer, "x")) - 1 :]
            told = f"for {', '.join(rule.globs)}" if rule.globs else ""
            source = self._source(vault, path, gathered)
            gathered.excerpts.extend(
                source.whole(note=in_line(told), rank=(-rule.priority,)) if source else []
            )
        known = {rule.path for rule in everything}
        for vault in self._layers:
            for found in vault.walk("rules"):
                if found.path.endswith(".md") and join(vault.namespace, found.path) not in known:
                    self._source(vault, found.path, gathered)
        return gathered

    def project(self) -> Gathered:
        """The sections of the project memory of every layer; where not all fit, the narrower layer counts.

        What `project sync` has written there is left out: those are the rules, which have their own part.
        """
        gathered = Gathered()
        for number, vault in enumerate(self._layers):
            shown = self._shown(vault, PROJECT_FILE)
            document = (
                self._read(vault, PROJECT_FILE, gathered, shown) if vault.exists(PROJECT_FILE) else None
            )
            if document:
                source = Source(vault, document, shown, _synced(document))
                gathered.excerpts.extend(source.sections((-number,)))
        return gathered

    def preferences(self) -> Gathered:
        """The preferences by their names, those of a narrower layer over the others; the strongest count."""
        gathered = Gathered()
        found: dict[str, Excerpt] = {}
        for vault in self._layers:
            for entry in vault.walk(preference.FOLDER):
                if preference.name_of(entry.path) is None:
                    continue
                shown = self._shown(vault, entry.path)
                try:
                    read = preference.read(vault.read(entry.path), self._now)
                except MemoryNotFound:
                    continue
                except (DocumentRefused, FieldNotFound, PathRefused) as error:
                    gathered.unread.append((in_line(shown), error.message))
                    continue
                if not read.hidden:
                    found[read.name] = _of_preference(read, shown)
        gathered.excerpts.extend(found[name] for name in sorted(found))
        return gathered

    def pinned(self) -> Gathered:
        """The memories whose `tier` is `pinned` and that have not expired, by their paths."""
        gathered = Gathered()
        for listed in self._memory.ls(where=[_PINNED]):
            document = self._read(self._memory.vault, listed.path, gathered)
            if document and not expiry.has_passed(expiry.written(document), self._now):
                gathered.excerpts.extend(Source(self._memory.vault, document).whole())
        return gathered

    def working(self, thread: str) -> Gathered:
        """The sections of the working memory of a thread, unless it has expired."""
        gathered, vault = Gathered(), self._memory.vault
        for info in Working(vault, lambda build: build(), lambda: self._now).list():
            if (info.kind, info.id, info.expired) == ("thread", thread, False):
                source = self._source(vault, info.path, gathered)
                gathered.excerpts.extend(source.sections() if source else [])
        return gathered

    def found(self, query: str) -> Gathered:
        """The passages that fit a query, the best first."""
        results = self._memory.search(query, each="passage", limit=_MOST_FOUND)
        hits = [hit for hit in results.hits if not self._is_synced(hit)]
        return Gathered(passages(self._memory, hits), further=results.left_out)

    def _is_synced(self, hit: Hit) -> bool:
        """Whether a passage is one of rules, which `project sync` has written into what everyone shares."""
        if hit.path != self._memory.vault.shown(PROJECT_FILE):
            return False
        first, last = self._synced_lines
        return first <= hit.line <= last

    @cached_property
    def _synced_lines(self) -> tuple[int, int]:
        with suppress(DocumentRefused, PathRefused):
            document = Vault(self._memory.vault.root).find(PROJECT_FILE)
            span = _synced(document) if document else None
            if document and span:
                return document.lines.number(span.start), document.lines.number(span.end - 1)
        return 0, 0

    def _shown(self, vault: Vault, path: str) -> str:
        """What the memory at `path` of a layer is called."""
        return self._memory.vault.shown(join(vault.namespace, path))

    def _source(self, vault: Vault, path: str, gathered: Gathered) -> Source | None:
        shown = self._shown(vault, path)
        document = self._read(vault, path, gathered, shown)
        return Source(vault, document, shown) if document else None

    def _read(self, vault: Vault, path: str, gathered: Gathered, shown: str = "") -> Document | None:
        if self._besides and _file(vault, path) in self._besides:
            return None
        try:
            document = vault.read(path)
            _ = document.frontmatter  # which may pass a limit
        except MemoryNotFound:
            return None
        except (DocumentRefused, PathRefused) as error:
            gathered.unread.append((in_line(shown or path), error.message))
            return None
        return document


def _synced(document: Document) -> Span | None:
    """What `project sync` has written into a project memory."""
    try:
        found = block.find(document.text)
    except block.Broken:
        return None
    return found.span if found else None


def _file(vault: Vault, path: str) -> str:
    root, parts = vault.place(path)
    return os.path.realpath(os.path.join(root, *parts))


def _of_preference(read: preference.Preference, shown: str) -> Excerpt:
    value = (
        read.value if isinstance(read.value, str) else json.dumps(read.value, ensure_ascii=False, default=str)
    )
    told = f"- {read.name}: {in_line(value)}" + (f" ({in_line(read.why)})" if read.why else "")
    day = f"{read.updated:%Y-%m-%d}" if read.updated else ""
    text = f"{told}  [{', '.join(filter(None, (in_line(shown), day)))}]"
    return Excerpt(
        path=shown,
        first=0,
        last=0,
        text=visible(text),
        day=day,
        together=preference.FOLDER,
        rank=(-read.strength,),
    )


def passages(memory: Memory, hits: Sequence[Hit], besides: Collection[str] = ()) -> list[Excerpt]:
    """The passages of hits, in their order; instead of fields, what the memory says first.

    Args:
        memory: whose.
        hits: where they were found.
        besides: files that are left out; see `gathered`.
    """
    found: list[Excerpt] = []
    read: dict[str, Document | None] = {}
    for rank, hit in enumerate(hits):
        if besides and _file(memory.vault, hit.path) in besides:
            continue
        excerpt: Excerpt | None = _of_hit(hit, rank)
        if not hit.heading and hit.path not in read:
            read[hit.path] = _read(memory, hit.path)
        document = None if hit.heading else read[hit.path]
        if document and hit.line < document.lines.number(document.body_span.start):
            first = next(iter(Source(memory.vault, document).sections((rank,))), None)
            excerpt = first and replace(first, path=hit.path, day=hit.date)
        if excerpt and not any(each.place == excerpt.place for each in found):
            found.append(excerpt)
    return found


def _read(memory: Memory, path: str) -> Document | None:
    try:
        return memory.show(path)
    except MdmemError:
        return None


def _of_hit(hit: Hit, rank: int) -> Excerpt:
    lines = (*hit.before, hit.text, *hit.after)
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    first = hit.line - len(hit.before)
    return Excerpt(
        path=hit.path,
        first=first,
        last=first + len(lines) - 1,
        text="\n".join(lines),
        day=hit.date,
        note=f"({in_line(' > '.join(hit.heading))})" if hit.heading else "",
        rank=(rank,),
    )
