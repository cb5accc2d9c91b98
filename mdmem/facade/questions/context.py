"""Context: what an agent is given of its memory, as one Markdown text within a budget of tokens.

Parts that change seldom come first, and what they are given does not depend on how much the later ones need,
so that the beginning of the text stays the same from call to call and a prompt cache holds. What they lack,
and fits into what the later ones leave, stands at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, NamedTuple

from mdmem.document.document import Document, parse_text
from mdmem.document.synced_block import block_span
from mdmem.document.text.tokens import counter, fenced, in_line
from mdmem.errors import DocumentRefused, FieldNotFound, MemoryNotFound, PathRefused, Usage, plural
from mdmem.facade.questions.excerpt import (
    Excerpt,
    ExcerptSource,
    cut_excerpt,
    excerpt_hits,
    excerpt_preference,
    join_blocks,
    real_path,
)
from mdmem.facade.scoped import ScopedMemory
from mdmem.hosts.files import SourceFiles
from mdmem.index.hit import Hit
from mdmem.kind import NAMESPACES, OBSERVATION, PREFERENCE, PROJECT, PROJECT_FILE, RULE, WORKING, Kind
from mdmem.memory import content
from mdmem.memory.content import State
from mdmem.memory.preferences import name_of, read_preference
from mdmem.memory.rules import Rule, workspace_path
from mdmem.memory.verbs import conditional
from mdmem.memory.working import Working
from mdmem.vault.paths import above, is_under, join
from mdmem.vault.vault import Vault

Count = Callable[[str], int]

_TEMPLATE = "context"
_CHARACTERS_FOR_A_TOKEN = 128  # the longest token of o200k_base is one of blanks
_LEAST_CHARACTERS = 1_000_000
_LIST_SHARE = 10  # the list of things left out has a tenth of the budget
_LEAST_CUT = 40  # tokens; a shorter beginning of an excerpt is not worth its place
_BETWEEN = 1  # a token for the blank lines around a fence
_MOST_FOUND = 50
_FLAWED = "[its frontmatter cannot be read]"


class _Place(NamedTuple):
    """The place of a part in a context: its name, its title, and its share of the budget."""

    name: str
    title: str
    share: int


_PINNED = _Place("pinned", "Pinned", 15)
_OBSERVED = _Place(OBSERVATION.part, "Conversation memory", 20)
_FOUND = _Place("found", "Found", 20)


def _list_places(kinds: Sequence[Kind]) -> tuple[_Place, ...]:
    """Return the parts that there may be, in the order of the text: what changes seldom stands first."""
    own = [(kind.is_ignored, _Place(kind.part, kind.title, kind.share)) for kind in kinds if kind.title]
    seldom, often = ([place for ignored, place in own if ignored is each] for each in (False, True))
    return (*seldom, _PINNED, *often, _OBSERVED, _FOUND)


class LeftOut(NamedTuple):
    """What a context leaves out of a part.

    Attributes:
        place: where it stands, `path#L10-L23`; empty for passages that were found and not looked at.
        tokens: what it would have cost; 0 where that is not known.
        reason: why, where the budget is not the reason; empty otherwise.
    """

    part: str
    place: str
    tokens: int
    reason: str = ""

    @property
    def line(self) -> str:
        """It in one line."""
        told = [self.place] if self.place else []
        told += [f"{self.tokens:,} tokens"] if self.tokens else []
        return f"{self.part}: " + ", ".join([*told, *([self.reason] if self.reason else [])])


class Part(NamedTuple):
    """A part of a context: its heading, and about what it costs.

    Attributes:
        name: rules, project, preferences, pinned, working, observations, found, or the folder of a kind.
        places: what it gives, as `path#L10-L23`, in the order of the text.
    """

    name: str
    title: str
    places: tuple[str, ...]
    tokens: int


class Context(NamedTuple):
    """What an agent is given of its memory.

    Attributes:
        text: the Markdown; empty where there is nothing to say.
        tokens: what it costs, never more than the budget.
        parts: what is in it, in its order; what a part lacked may come as another one at the end.
        left_out: all that is not, part by part. Where the text has no room to name each, it counts them.
    """

    text: str
    tokens: int
    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]


def context(
    memory: ScopedMemory,
    query: str = "",
    files: Sequence[str] = (),
    thread: str | None = None,
    budget: int = 4000,
    *,
    estimated: bool = False,
    now: datetime | None = None,
    excluded: Collection[str] = (),
    session: str | None = None,
) -> Context:
    """Return the context of a memory; see `Memory.context`.

    Args:
        excluded: files that the reader reads by itself, as absolute paths without links.
        session: give its observations; without it, those of the session of the thread's name.
    """
    if budget < 1:
        raise Usage(problem=f"a budget is 1 token or more, not {budget}", remedy="leave it out for 4,000")
    now = now or datetime.now(UTC)

    def render(values: dict[str, Any]) -> str:
        most = max(_LEAST_CHARACTERS, _CHARACTERS_FOR_A_TOKEN * budget)
        return memory.vault.templates.render(_TEMPLATE, values, now=now, max_chars=most)

    places = _list_places(memory.vault.config.kinds)
    sources = _Sources(memory, now, excluded)
    there = sources.gather(query, files, thread)
    there[_OBSERVED.name] = sources.gather_observed(session or thread or "")
    return _Composer(places, there, counter(estimated=estimated), budget, render).context()


class _Gathered:
    """What there is for a part of a context.

    Attributes:
        unread: what could not be read: place, and reason.
        further: how many more passages fit the query than were looked at.
    """

    def __init__(
        self, excerpts: Iterable[Excerpt] = (), unread: Iterable[tuple[str, str]] = (), further: int = 0
    ) -> None:
        self.excerpts, self.unread, self.further = list(excerpts), list(unread), further


class _Sources:
    """Gathers the parts of a context, each from the layers of the vault that speak to the memory's scope."""

    def __init__(self, memory: ScopedMemory, now: datetime, excluded: Collection[str] = ()) -> None:
        self._memory = memory
        self._now = now
        self._excluded = excluded
        # From everyone's to the scope's own, as `Scope.layers`.
        self._layers = [memory.vault.within(layer) for layer in memory.scope.layers]

    def gather(self, query: str, files: Sequence[str], thread: str | None) -> dict[str, _Gathered]:
        """Return what there is for each part of a context; the arguments are those of `context`."""
        own: dict[str, Callable[[], _Gathered]] = {
            RULE.name: partial(self.gather_rules, files),
            PROJECT.name: partial(self.gather_project, files),
            PREFERENCE.name: self.gather_preferences,
            WORKING.name: _Gathered if thread is None else partial(self.gather_working, thread),
        }
        kinds = [kind for kind in self._memory.vault.config.kinds if kind.title]
        parts = {kind.part: own.get(kind.name, partial(self.gather_kind, kind))() for kind in kinds}
        # What else is pinned stands in the part of its kind only.
        given = {excerpt.path for part in parts.values() for excerpt in part.excerpts}
        parts[_PINNED.name] = pinned = self.gather_pinned()
        pinned.excerpts[:] = [each for each in pinned.excerpts if each.path not in given]
        for part in parts.values():
            part.excerpts[:] = [each for each in part.excerpts if each.path not in self._states]
        parts[_FOUND.name] = self.gather_found(query) if query.strip() else _Gathered()
        layers = self._memory._current_view().layers()  # noqa: SLF001 - of one façade
        flawed = {self._shown_path(view.vault, path) for _, view in layers for path, _ in view.flaws()}
        for name, part in parts.items():
            if not flawed or name == RULE.part:  # a rule says so itself
                continue
            part.excerpts[:] = [
                e._replace(note=f"{e.note} {_FLAWED}".strip()) if e.path in flawed else e
                for e in part.excerpts
            ]
        return parts

    @cached_property
    def _states(self) -> dict[str, State]:
        return self._memory.states()

    def gather_rules(self, files: Sequence[str]) -> _Gathered:
        """List the rules that apply to one of the files, or all: highest priority first.

        One is left out that `project sync` has written into a file that the reader reads by itself.
        """
        gathered, everything = _Gathered(), self._memory.rules.list(disabled=True)
        about = [workspace_path(self._memory.vault, file) for file in files]
        for rule in everything:
            if not rule.enabled or (about and not any(map(rule.applies_to, about))):
                continue
            if self._is_read_already(rule):
                continue
            vault = next(v for v in self._layers if v.namespace == rule.layer)
            path = rule.path[len(join(rule.layer, "x")) - 1 :]
            told = rule.flaw or (f"for {', '.join(rule.globs)}" if rule.globs else "")
            source = self._excerpt_source(vault, path, gathered)
            gathered.excerpts.extend(
                source.whole(note=in_line(told), rank=(-rule.priority,)) if source else []
            )
        known = {rule.path for rule in everything}
        for vault in self._layers:
            for found in vault.walk(RULE.folder):
                if found.path.endswith(".md") and join(vault.namespace, found.path) not in known:
                    self._excerpt_source(vault, found.path, gathered)
        return gathered

    def _is_read_already(self, rule: Rule) -> bool:
        """Return whether a rule stands in the AGENTS.md that the reader reads by itself."""
        if rule.globs or not self._shared_text:
            return False
        from mdmem.hosts.generated import holds_rule  # noqa: PLC0415 - most rules stand in no such file

        return holds_rule(self._shared_text, rule.title, rule.text)

    @cached_property
    def _shared_text(self) -> str:
        """The AGENTS.md of the workspace, where the reader reads it by itself; else an empty text."""
        vault = self._layers[0]
        workspace = os.path.realpath(vault.workspace)
        found = SourceFiles(workspace, vault.hides).read(workspace, PROJECT_FILE) if self._excluded else None
        return found.text if found and found.real in self._excluded else ""

    def gather_project(self, files: Sequence[str]) -> _Gathered:
        """Return the sections of the project memory of every layer, and of the folders around the files.

        The narrower one counts more. What `project sync` has written there is left out: those are the rules,
        which have their own part.
        """
        gathered = _Gathered()
        for number, vault in enumerate(self._layers):
            path = vault.project_file
            shown = self._shown_path(vault, path)
            if document := self._read_memory(vault, path, gathered, shown):
                source = ExcerptSource(document, shown, block_span(document.text))
                gathered.excerpts.extend(source.sections((-number,)))
        if not self._layers[0].namespace:
            self._gather_nested(files, gathered)
        return gathered

    def _gather_nested(self, files: Sequence[str], gathered: _Gathered) -> None:
        """Add the AGENTS.md of each folder of the workspace that holds one of the files."""
        vault = self._layers[0]
        read = SourceFiles(vault.workspace, vault.hides).read
        around = {folder for file in files for folder in above(workspace_path(vault, file) or "")}
        for folder in sorted(around - {""}):
            found = read(vault.workspace, folder, PROJECT_FILE)
            if found is None or is_under(found.real, vault.root) or self._memory.at(found.real):
                continue
            if found.real in self._excluded or not is_under(found.real, vault.workspace):
                continue
            with suppress(DocumentRefused):
                source = ExcerptSource(
                    parse_text(PROJECT_FILE, found.text), in_line(f"{folder}/{PROJECT_FILE}")
                )
                gathered.excerpts.extend(source.sections((-len(self._layers) - folder.count("/"),)))

    def gather_preferences(self) -> _Gathered:
        """Return the preferences by their names, those of a narrower layer over the others."""
        gathered = _Gathered()
        found: dict[str, Excerpt] = {}
        for vault in self._layers:
            for entry in vault.walk(PREFERENCE.folder):
                if name_of(entry.path) is None:
                    continue
                shown = self._shown_path(vault, entry.path)
                try:
                    state = self._states.get(shown, "live")
                    read = read_preference(vault.read(entry.path), self._now, state)
                except MemoryNotFound:
                    continue
                except (DocumentRefused, FieldNotFound, PathRefused) as error:
                    gathered.unread.append((in_line(shown), error.message))
                    continue
                if not read.hidden:
                    found[read.name] = excerpt_preference(read, shown)
        gathered.excerpts.extend(found[name] for name in sorted(found))
        return gathered

    def gather_pinned(self) -> _Gathered:
        """Return what is pinned in each layer and has not expired, by path; everyone's comes first.

        Those of a narrower layer count more.
        """
        gathered = _Gathered()
        layers = [*self._memory._current_view().layers()]  # noqa: SLF001 - of one façade
        for number, (layer, view) in reversed([*enumerate(layers)]):
            for path in (listed.path for listed in conditional(view, (), ["tier=pinned"], "")):
                if layer.name and path.partition("/")[0] in NAMESPACES:
                    continue  # of a scope that is no wider
                shown = self._shown_path(view.vault, path)
                document = self._read_memory(view.vault, path, gathered, shown)
                if document and not content.has_passed(content.expiry_of(document), self._now):
                    gathered.excerpts.extend(ExcerptSource(document, shown).whole(rank=(number,)))
        return gathered

    def gather_kind(self, kind: Kind) -> _Gathered:
        """List the memories of a kind without its own source, unless there are too many to read."""
        gathered = _Gathered()
        met = [
            (vault, found)
            for vault in self._layers
            for found in vault.walk(kind.folder)
            if not found.problem and self._shown_path(vault, found.path) not in self._states
        ]
        newest = sorted(met, key=lambda each: each[1].mtime_ns, reverse=True)[:_MOST_FOUND]
        for vault, found in sorted(newest, key=lambda each: each[1].path):
            shown = self._shown_path(vault, found.path)
            document = self._read_memory(vault, found.path, gathered, shown)
            if document and not content.has_passed(content.expiry_of(document), self._now):
                gathered.excerpts.extend(ExcerptSource(document, shown).whole())
        if len(met) > _MOST_FOUND:
            reason = f"{len(met) - _MOST_FOUND:,} older ones were not looked at: search for them"
            gathered.unread.append((f"{kind.folder}/", reason))
        return gathered

    def gather_working(self, thread: str) -> _Gathered:
        """Return the sections of the working memory of a thread, unless it has expired."""
        gathered, vault = _Gathered(), self._memory.vault
        for info in Working(vault, lambda build: build(), lambda: self._now).list():
            if (info.kind, info.id, info.expired) == ("thread", thread, False):
                source = self._excerpt_source(vault, info.path, gathered)
                gathered.excerpts.extend(source.sections() if source else [])
        return gathered

    def gather_observed(self, session: str) -> _Gathered:
        """Return the newest observations of a session and reflections on them, in the order of time."""
        gathered, vault = _Gathered(), self._memory.vault
        there = session and vault.store.stands(join(vault.namespace, OBSERVATION.folder))
        newest = self._memory.observations.newest(session) if there else None
        for at, each in enumerate(newest.found if newest else ()):
            source = self._excerpt_source(self._memory.vault, each.path, gathered)
            # Reflections first, as they are on more; then the newest.
            gathered.excerpts.extend(source.whole(rank=(-min(1, each.generation), -at)) if source else [])
        if newest and newest.left_out:
            gathered.unread.append((f"{OBSERVATION.folder}/", f"{newest.left_out:,} older ones"))
        return gathered

    def gather_found(self, query: str) -> _Gathered:
        """Return the passages that fit a query, the best first."""
        results = self._memory.search(query, each="passage", limit=_MOST_FOUND)
        hits = [hit for hit in results.hits if not self._is_synced(hit)]
        unread = [("", results.unread_note)] if results.unread else []
        return _Gathered(excerpt_hits(self._memory, hits), unread, further=results.left_out)

    def _is_synced(self, hit: Hit) -> bool:
        """Return whether a passage is of rules that `project sync` wrote into shared memory."""
        if hit.path.casefold() != self._memory.vault.show_path(PROJECT_FILE).casefold():
            return False
        first, last = self._synced_lines
        return first <= hit.line <= last

    @cached_property
    def _synced_lines(self) -> tuple[int, int]:
        with suppress(DocumentRefused, PathRefused):
            top = self._memory.vault.within("")
            document = top.find(top.project_file)
            span = block_span(document.text) if document else None
            if document and span:
                return document.lines.number(span.start), document.lines.number(span.end - 1)
        return 0, 0

    def _shown_path(self, vault: Vault, path: str) -> str:
        return self._memory.vault.show_path(join(vault.namespace, path))

    def _excerpt_source(self, vault: Vault, path: str, gathered: _Gathered) -> ExcerptSource | None:
        shown = self._shown_path(vault, path)
        document = self._read_memory(vault, path, gathered, shown)
        return ExcerptSource(document, shown) if document else None

    def _read_memory(self, vault: Vault, path: str, gathered: _Gathered, shown: str = "") -> Document | None:
        if self._excluded and real_path(vault, path) in self._excluded:
            return None
        try:
            document = vault.find(path)
            _ = document and document.frontmatter  # which may pass a limit
        except (DocumentRefused, PathRefused) as error:
            gathered.unread.append((in_line(shown or path), error.message))
            return None
        return document


@dataclass(slots=True, kw_only=True)
class _PartDraft:
    """A part while it is filled.

    Attributes:
        kept: the excerpts that are in, by their number.
        remainders: what follows those that were cut.
        tokens: what is in costs.
        is_continued: whether a part at the end of the text has what did not fit.
    """

    place: _Place
    there: _Gathered
    costs: list[int]
    kept: dict[int, Excerpt] = field(default_factory=dict)
    remainders: dict[int, Excerpt] = field(default_factory=dict)
    tokens: int = 0
    is_continued: bool = False

    @property
    def in_order(self) -> list[Excerpt]:
        return [self.kept[number] for number in sorted(self.kept)]

    def by_rank(self) -> list[int]:
        """Return the numbers of the excerpts as they are chosen: by rank, then the newest first."""
        excerpts = self.there.excerpts
        order = sorted(range(len(excerpts)), key=lambda number: excerpts[number].day, reverse=True)
        return sorted(order, key=lambda number: excerpts[number].rank)


class _Composer:
    """Puts together a context from what its parts have gathered."""

    def __init__(
        self,
        places: Sequence[_Place],
        gathered: dict[str, _Gathered],
        count: Count,
        budget: int,
        render: Callable[[dict[str, Any]], str],
    ) -> None:
        self._count = count
        self._budget = budget
        self._render = render
        self._further: list[_PartDraft] = []
        self._drafts = [
            _PartDraft(place=place, there=there, costs=list(map(self._cost_of, there.excerpts)))
            for place, there in ((place, gathered[place.name]) for place in places)
        ]

    def context(self) -> Context:
        """Compose the context: what fits by the cost of each excerpt, then less while it is too much."""
        if not any(d.there.excerpts or d.there.unread or d.there.further for d in self._drafts):
            return Context(text="", tokens=0, parts=(), left_out=())
        self._fill_parts()
        slack, order = 0, [draft.place.name for draft in self._drafts]
        while True:
            left_out = [left for draft in self._drafts for left in self._list_left_out(draft)]
            left_out.sort(key=lambda left: order.index(left.part))
            text = self._render_text(left_out)
            tokens = self._count(text)
            if (excess := tokens - self._budget) > 0:
                slack = 2 * slack + excess  # costs are estimates
            if not (self._drop_excerpts(excess) if excess > 0 else self._append_rest(-excess - slack)):
                break
        if tokens > self._budget:
            notes = (
                f"[memory left out: {_count_left_out(left_out)}]\n",
                f"[{len(left_out)} left out]\n",
                "…\n",
            )
            text = next((note for note in notes if self._count(note) <= self._budget), "…")
            tokens = self._count(text)
        parts = tuple(
            Part(
                name=draft.place.name,
                title=draft.place.title,
                places=tuple(excerpt.place for excerpt in draft.in_order),
                tokens=draft.tokens,
            )
            for draft in self._drafts
            if draft.kept
        )
        return Context(text=text, tokens=tokens, parts=parts, left_out=tuple(left_out))

    def _cost_of(self, excerpt: Excerpt) -> int:
        return self._count(excerpt.text if excerpt.together else excerpt.block) + _BETWEEN

    def _head_cost(self, draft: _PartDraft) -> int:
        """Return what a part costs beside its excerpts: its title, and the fence that they share."""
        shared = draft.there.excerpts[0].together
        title = self._count(f"\n## {draft.place.title}\n")
        return title + (self._count(fenced("", shared)) if shared else 0)

    # -- which excerpts -----------------------------------------------------------------------------------

    def _fill_parts(self) -> None:
        """Choose the excerpts that fit; what a part does not use flows on to the next ones."""
        drafts = [draft for draft in self._drafts if draft.there.excerpts]
        frame = self._count(self._render({"parts": [], "left_out": ""}))
        room = self._budget - frame - sum(map(self._head_cost, drafts))
        if sum(sum(draft.costs) for draft in drafts) > room:
            room -= self._budget // _LIST_SHARE
        shares = sum(draft.place.share for draft in drafts)
        allotted = {draft.place.name: max(0, room) * draft.place.share // shares for draft in drafts}
        unused = 0
        for draft in drafts:
            unused += allotted[draft.place.name]
            # Rules come before preferences: they may use the share of these as well, and what is needed for
            # those that are left out is kept for the end of the text.
            lent = allotted.get(PREFERENCE.part, 0) if draft.place.name == RULE.part else 0
            if draft.place.name == PREFERENCE.part:
                unused -= min(unused, self._missing_cost(RULE.part))
            self._fill_part(draft, unused + lent)
            used = max(0, draft.tokens - unused)
            allotted[PREFERENCE.part] = allotted.get(PREFERENCE.part, 0) - used
            unused += used - draft.tokens

    def _missing_cost(self, part: str) -> int:
        """Return what the excerpts of a part cost that nothing is given of yet."""
        draft = next(draft for draft in self._drafts if draft.place.name == part)
        return sum(cost for number, cost in enumerate(draft.costs) if number not in draft.kept)

    def _append_rest(self, rest: int) -> bool:
        """Append parts with what fits into the tokens that are left; return whether any does."""
        for draft in () if self._further else self._drafts[:]:
            numbers = (n for n in draft.by_rank() if n in draft.remainders or n not in draft.kept)
            left = [draft.remainders.get(number, draft.there.excerpts[number]) for number in numbers]
            left = [excerpt for excerpt in left if not self._is_given_elsewhere(draft, excerpt)]
            place = draft.place._replace(title=f"{draft.place.title}, further")
            costs, draft.is_continued = list(map(self._cost_of, left)), True
            self._further.append(_PartDraft(place=place, there=_Gathered(excerpts=left), costs=costs))
            self._drafts.append(self._further[-1])
        before = rest
        for draft in (each for each in self._further if each.costs):
            had, head = draft.tokens, 0 if draft.kept else self._head_cost(draft)
            self._fill_part(draft, had + rest - head)
            rest -= draft.tokens - had + (head if draft.tokens > had else 0)
        return rest < before

    def _fill_part(self, draft: _PartDraft, room: int) -> None:
        for number in draft.by_rank():
            excerpt, cost, left = draft.there.excerpts[number], draft.costs[number], room - draft.tokens
            if number in draft.kept or self._is_given_elsewhere(draft, excerpt):
                continue
            if cost <= left:
                draft.kept[number] = excerpt
                draft.tokens += cost
                continue
            is_cut = cost > room and left >= _LEAST_CUT
            if is_cut and (parted := cut_excerpt(excerpt, left, self._cost_of)):
                draft.kept[number], draft.remainders[number] = parted
                draft.tokens += self._cost_of(parted.kept)

    def _is_given_elsewhere(self, draft: _PartDraft, excerpt: Excerpt) -> bool:
        """Return whether other parts give all lines of a found passage."""
        if draft.place is not _FOUND:
            return False
        lines = {excerpt.first + at for at, line in enumerate(excerpt.text.split("\n")) if line.strip()}
        others = [kept for other in self._drafts if other is not draft for kept in other.kept.values()]
        for kept in others:
            if kept.path == excerpt.path:
                lines.difference_update(range(kept.first, kept.last + 1))
        return not lines

    def _drop_excerpts(self, excess: int) -> bool:
        """Take excerpts out, the last part first, until `excess` tokens are gained; return whether any is."""
        gained = 0
        for draft in reversed(self._drafts):
            order = [number for number in draft.by_rank() if number in draft.kept]
            while order and gained < excess:
                number = order.pop()
                cost = self._cost_of(draft.kept.pop(number))
                draft.remainders.pop(number, None)
                draft.tokens -= cost
                gained += cost
        return gained > 0

    # -- the text -----------------------------------------------------------------------------------------

    def _list_left_out(self, draft: _PartDraft) -> Iterator[LeftOut]:
        name, there = draft.place.name, draft.there
        for number, excerpt in enumerate(() if draft.is_continued else there.excerpts):
            if rest := draft.remainders.get(number):
                yield LeftOut(part=name, place=rest.place, tokens=self._cost_of(rest))
            elif number not in draft.kept and not self._is_given_elsewhere(draft, excerpt):
                yield LeftOut(part=name, place=excerpt.place, tokens=draft.costs[number])
        for place, reason in there.unread:
            yield LeftOut(part=name, place=place, tokens=0, reason=reason)
        if there.further:
            reason = f"{there.further:,} more passages fit: search for them"
            yield LeftOut(part=name, place="", tokens=0, reason=reason)

    def _render_text(self, left_out: Sequence[LeftOut]) -> str:
        parts = [
            {"name": draft.place.name, "title": draft.place.title, "blocks": join_blocks(draft.in_order)}
            for draft in self._drafts
            if draft.kept
        ]
        return self._render({"parts": parts, "left_out": self._name_what_fits(left_out)})

    def _name_what_fits(self, left_out: Sequence[LeftOut]) -> str:
        """List what was left out: items as far as there is room, the others counted by part."""
        if not left_out:
            return ""
        low, high = -1, len(left_out)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._count(_list_left_out(left_out, middle)) <= self._budget // _LIST_SHARE
            low, high = (middle, high) if fits else (low, middle - 1)
        return f"{_count_left_out(left_out)}: raise the budget." if low < 0 else _list_left_out(left_out, low)


def _list_left_out(left_out: Sequence[LeftOut], count: int) -> str:
    """Return the first `count` items of a list, and how many more each part has."""
    others = left_out[count:]
    lines = [left.line for left in left_out[:count]]
    by_part: dict[str, list[LeftOut]] = {}
    for left in others:
        by_part.setdefault(left.part, []).append(left)
    lines += [f"{part}: {_count_left_out(found)}" for part, found in by_part.items()]
    return fenced("\n".join(lines), "left-out")


def _count_left_out(left_out: Sequence[LeftOut]) -> str:
    tokens = sum(left.tokens for left in left_out)
    return f"{plural(len(left_out), 'place')}, about {tokens:,} tokens"
