"""What a context is made of: excerpts of memories for each of its parts, and what could not be read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from mdmem.agents import generated
from mdmem.diagnostic import Span
from mdmem.errors import DocumentRefused, FieldNotFound, MdmemError, MemoryNotFound, PathRefused
from mdmem.index.hit import day_of, fields_of
from mdmem.kind import PREFERENCE, PROJECT, RULE, WORKING
from mdmem.memory import content
from mdmem.memory.preferences import Preference, name_of, read_preference
from mdmem.memory.rules import workspace_path
from mdmem.memory.working import Working
from mdmem.text.bullets import bullets
from mdmem.text.document import PROJECT_FILE, Document
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex
from mdmem.text.tokens import estimate, fenced, in_line, visible
from mdmem.vault.paths import join
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime

    from mdmem.index.hit import Hit
    from mdmem.kind import Kind
    from mdmem.memory.memory import Memory
    from mdmem.text.document import Document


_INFO = "memory"
_A_BLANK_LINE = 2  # line ends
_DATED = regex(r"[*_`]*([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))(?![0-9])")
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A stretch of a memory, which is given whole or not at all.

    Attributes:
        path: the memory.
        first, last: its lines, 1-based, both included; of an excerpt that is not lines of its memory, both 0.
        text: what stands there, or what it says.
        day: `YYYY-MM-DD`; empty where it is not known.
        note: what else is said of it, behind its place: its heading, or the files that it is about.
        together: excerpts of the same name are put into one fence; empty for one of its own.
        rank: of two excerpts the one of lower rank is given first; at the same rank, the newer one.
    """

    path: str
    first: int
    last: int
    text: str
    day: str = ""
    note: str = ""
    together: str = ""
    rank: tuple[float, ...] = ()

    @property
    def place(self) -> str:
        """Where it stands: `path#L10-L23`, in one line that can be seen."""
        path = in_line(self.path)
        if not self.first:
            return path
        return f"{path}#L{self.first}" + (f"-L{self.last}" if self.last > self.first else "")

    @property
    def block(self) -> str:
        """It in a fence of its own."""
        info = self.together or " ".join(filter(None, (self.place, self.day, self.note)))
        return fenced(self.text, f"{_INFO} {info}")

    def joined(self, other: Excerpt) -> Excerpt | None:
        """Both as one, where the other follows it or stands in it; None where it does not."""
        if self.together or other.together:
            same = self.together == other.together
            return replace(self, text=f"{self.text}\n{other.text}") if same else None
        if self.path != other.path or self.day != other.day or not 0 < self.first <= other.first:
            return None
        if other.last <= self.last:
            return self
        if other.first <= self.last:
            return None
        gap = "\n" * (other.first - self.last)
        is_near = len(gap) <= _A_BLANK_LINE
        return replace(self, last=other.last, text=f"{self.text}{gap}{other.text}") if is_near else None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What there is for a part of a context.

    Attributes:
        excerpts: in the order in which they are given.
        unread: what could not be read: place, and reason.
        further: how many more passages fit the query than were looked at.
    """

    excerpts: list[Excerpt] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    further: int = 0


def blocks(excerpts: Sequence[Excerpt]) -> list[str]:
    """The excerpts in fences, those next to each other in one memory in one, where the first stood."""
    groups: dict[str, list[int]] = {}
    for number, excerpt in enumerate(excerpts):
        groups.setdefault(excerpt.together or excerpt.path, []).append(number)
    found: list[tuple[int, Excerpt]] = []
    for numbers in groups.values():
        run: list[tuple[int, Excerpt]] = []
        for number in sorted(numbers, key=lambda number: excerpts[number].first):
            both = run[-1][1].joined(excerpts[number]) if run else None
            if both:
                run[-1] = min(run[-1][0], number), both
            else:
                run.append((number, excerpts[number]))
        found += run
    return [excerpt.block for _, excerpt in sorted(found, key=itemgetter(0))]


class Cut(NamedTuple):
    """An excerpt that was cut between two lines: what is given of it, and the rest."""

    kept: Excerpt
    rest: Excerpt


def cut(excerpt: Excerpt, fits: Callable[[Excerpt], bool]) -> Cut | None:
    """The beginning of an excerpt that fits, cut before a blank line where one is near.

    Args:
        excerpt: lines of a memory.
        fits: whether an excerpt fits; of a shorter one it holds where it holds of a longer one.

    Returns:
        None where not even its first line fits, or it is not lines of its memory.
    """
    lines = excerpt.text.split("\n")
    if not excerpt.first or len(lines) != excerpt.last - excerpt.first + 1:
        return None
    low, high = 0, len(lines) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(_parted(excerpt, lines, middle).kept) else (low, middle - 1)
    if not low:
        return None
    for count in range(low, low // 2, -1):
        if not lines[count].strip():
            return _parted(excerpt, lines, count)
    return _parted(excerpt, lines, low)


def _parted(excerpt: Excerpt, lines: Sequence[str], count: int) -> Cut:
    last = excerpt.first + count - 1
    rest = replace(excerpt, first=last + 1, text="\n".join(lines[count:]))
    told = f"[cut: the rest is {rest.place}]"
    return Cut(replace(excerpt, last=last, text="\n".join((*lines[:count], told))), rest)


class ExcerptSource:
    """A memory that excerpts are taken from.

    Args:
        vault: what it is read from.
        document: the memory.
        shown: what its path is called; its own path without.
        without: a stretch of it that is left out, because it is given elsewhere.
    """

    def __init__(
        self, vault: Vault, document: Document, shown: str = "", without: Span | None = None
    ) -> None:
        self._document = document
        self._without = without
        self._path = shown or document.path
        self.day = _day(vault, document)

    def whole(self, *, note: str = "", rank: tuple[float, ...] = ()) -> list[Excerpt]:
        """All that it says, as one excerpt; none where it says nothing."""
        return [replace(e, note=note, rank=rank) for e in self._lines(self._document.body_span)]

    def sections(self, rank: tuple[float, ...] = ()) -> list[Excerpt]:
        """Its sections in order; a bullet that begins with a date is an excerpt of that day."""
        document = self._document
        found: list[Excerpt] = []
        start = document.body_span.start
        for section in document.sections:
            found += self._lines(Span(start, section.heading.span.start))
            start = section.heading.span.start
            for bullet in bullets(document, section.own):
                written = _DATED.match(bullet.text)
                if written:
                    found += self._lines(Span(start, bullet.span.start))
                    found += [replace(e, day=written[1]) for e in self._lines(bullet.span)]
                    start = bullet.span.end
        found += self._lines(Span(start, len(document.text)))
        return [replace(excerpt, rank=rank) for excerpt in found]

    def _lines(self, span: Span) -> Iterator[Excerpt]:
        """The lines of a stretch, without the blank ones around it; in two parts where some are left out."""
        if self._without and span.start < self._without.end and self._without.start < span.end:
            before, behind = Span(span.start, self._without.start), Span(self._without.end, span.end)
            for part in (part for part in (before, behind) if part.start < part.end):
                yield from self._lines(part)
            return
        text = self._document.text
        written = text[slice(*span)].rstrip()
        end = span.start + len(written)
        start = end - len(written.lstrip(f"{_BOM} \t\r\n"))
        if start >= end:
            return
        number = self._document.lines.number
        first, last = number(start), number(end - 1)
        begins = self._document.lines.span(first).start
        lines = LINE_END.split(text[begins:end].removeprefix(_BOM))
        yield Excerpt(path=self._path, first=first, last=last, text="\n".join(lines), day=self.day)


def _day(vault: Vault, document: Document) -> str:
    """The day of a memory; see `mdmem.index.hit.day_of`."""
    fields = fields_of(document)
    told = day_of(document.path, fields, None)
    if told:
        return told
    root, parts = vault.place(document.path)
    try:
        return day_of(document.path, fields, os.stat(os.path.join(root, *parts)).st_mtime)
    except OSError:
        return ""


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
    own: dict[str, Callable[[], Gathered]] = {
        RULE.name: partial(sources.rules, files),
        PROJECT.name: sources.project,
        PREFERENCE.name: sources.preferences,
        WORKING.name: Gathered if thread is None else partial(sources.working, thread),
    }
    kinds = [kind for kind in memory.vault.config.kinds if kind.title]
    parts = {kind.part: own.get(kind.name, partial(sources.kind, kind))() for kind in kinds}
    # What is pinned besides stands in the part of its kind only.
    given = {excerpt.path for part in parts.values() for excerpt in part.excerpts}
    pinned = sources.pinned()
    parts["pinned"] = Gathered([each for each in pinned.excerpts if each.path not in given], pinned.unread)
    parts["found"] = sources.found(query) if query.strip() else Gathered()
    return parts


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
        self._layers = [memory.vault.within(layer) for layer in memory.scope.layers]

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
            for found in vault.walk(RULE.folder):
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
                source = ExcerptSource(vault, document, shown, _synced(document))
                gathered.excerpts.extend(source.sections((-number,)))
        return gathered

    def preferences(self) -> Gathered:
        """The preferences by their names, those of a narrower layer over the others; the strongest count."""
        gathered = Gathered()
        found: dict[str, Excerpt] = {}
        for vault in self._layers:
            for entry in vault.walk(PREFERENCE.folder):
                if name_of(entry.path) is None:
                    continue
                shown = self._shown(vault, entry.path)
                try:
                    read = read_preference(vault.read(entry.path), self._now)
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
            if document and not content.has_passed(content.expiry_of(document), self._now):
                gathered.excerpts.extend(ExcerptSource(self._memory.vault, document).whole())
        return gathered

    def kind(self, kind: Kind) -> Gathered:
        """The memories of a kind that has no source of its own, as far as there are not too many to read."""
        gathered = Gathered()
        met = [
            (vault, found) for vault in self._layers for found in vault.walk(kind.folder) if not found.problem
        ]
        newest = sorted(met, key=lambda each: each[1].mtime_ns, reverse=True)[:_MOST_FOUND]
        for vault, found in sorted(newest, key=lambda each: each[1].path):
            shown = self._shown(vault, found.path)
            document = self._read(vault, found.path, gathered, shown)
            if document and not content.has_passed(content.expiry_of(document), self._now):
                gathered.excerpts.extend(ExcerptSource(vault, document, shown).whole())
        if len(met) > _MOST_FOUND:
            reason = f"{len(met) - _MOST_FOUND:,} older ones were not looked at: search for them"
            gathered.unread.append((f"{kind.folder}/", reason))
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
            document = self._memory.vault.within("").find(PROJECT_FILE)
            span = _synced(document) if document else None
            if document and span:
                return document.lines.number(span.start), document.lines.number(span.end - 1)
        return 0, 0

    def _shown(self, vault: Vault, path: str) -> str:
        """What the memory at `path` of a layer is called."""
        return self._memory.vault.shown(join(vault.namespace, path))

    def _source(self, vault: Vault, path: str, gathered: Gathered) -> ExcerptSource | None:
        shown = self._shown(vault, path)
        document = self._read(vault, path, gathered, shown)
        return ExcerptSource(vault, document, shown) if document else None

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
        found = generated.find(document.text)
    except generated.Broken:
        return None
    return found.span if found else None


def _file(vault: Vault, path: str) -> str:
    root, parts = vault.place(path)
    return os.path.realpath(os.path.join(root, *parts))


def _of_preference(read: Preference, shown: str) -> Excerpt:
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
        together=PREFERENCE.folder,
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
            first = next(iter(ExcerptSource(memory.vault, document).sections((rank,))), None)
            excerpt = first and replace(first, path=hit.path, day=hit.date)
        if excerpt and not any(each.place == excerpt.place for each in found):
            found.append(excerpt)
    return found


def quoted(memory: Memory, hits: Sequence[Hit], budget: int, besides: Collection[str] = ()) -> list[str]:
    """The passages of hits in fences, as many as fit into a budget of tokens, estimated; see `passages`."""
    kept: list[Excerpt] = []
    for excerpt in passages(memory, hits, besides):
        left = budget - sum(estimate(each.block) for each in kept)
        if estimate(excerpt.block) <= left:
            kept.append(excerpt)
        elif parted := cut(excerpt, lambda each, left=left: estimate(each.block) <= left):  # type: ignore[misc]
            kept.append(parted.kept)
    return blocks(kept)


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
