"""The report: how good the memories of a namespace are, what is weak, and the command that fixes it."""

from __future__ import annotations

import posixpath
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeAlias

from mdmem.errors import Usage
from mdmem.facade.scoped import ScopedMemory
from mdmem.index.code.citations import AMBIGUOUS, CHANGED, DANGLING, MOVED, STALE
from mdmem.index.hit import day_of
from mdmem.index.links.lineage import CONTRADICTED, find_references
from mdmem.index.links.references import CODE, LINKS, Occurrence, occurrences
from mdmem.index.view import View
from mdmem.memory import provenance, validity
from mdmem.memory.duplicates import ComparedMemories, is_compared
from mdmem.memory.quality import Evidence, MemoryQuality, judge_memory
from mdmem.memory.verbs import among

_WORST = 5  # memories that are named, of each of as many kinds
_BROKEN = (DANGLING, AMBIGUOUS)
_REWRITTEN = ("wikilink", "markdown")
_ENDED = "ended and still linked"
KINDS = ("duplicate", "contradicted", _ENDED, "stale", "broken", AMBIGUOUS, "doubtful", "unsourced", "unused")
"""What a memory can be that is weak."""
Remedy: TypeAlias = Callable[[], tuple[str, str]]
"""Tells what is wrong with a memory, and the command that fixes it or shows more."""


class WeakMemory(NamedTuple):
    """A memory, the kind of its problem, the problem in words, and the command that fixes it."""

    path: str
    kind: str
    problem: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """What is weak in a namespace: how many memories count, and their mean quality.

    Attributes:
        counts: how many memories are weak, by kind; see `KINDS`.
        before: the same at an earlier moment; None where none was asked for.
        worst: of the five kinds with the most memories, the five worst each.
    """

    memories: int
    quality: float
    counts: dict[str, int]
    before: dict[str, int] | None
    worst: tuple[WeakMemory, ...]


class _Survey:
    """What is known of the memories of a namespace, from the index and their texts."""

    def __init__(self, memory: ScopedMemory, view: View, now: datetime) -> None:
        self._view, self._now, self._pairs = view, now, ComparedMemories(view, now).pairs
        self._states = validity.find_states(view, now)
        repeats, against = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for pair in self._pairs:
            repeats[pair.path].append(pair.other)
            repeats[pair.other].append(pair.path)
        for each in find_references(view, CONTRADICTED):
            against[each.path] += [each.goal] if each.goal and each.goal not in self._states else []
        self._links, self._code = (defaultdict[str, list["Occurrence"]](list) for _ in range(2))
        for found in occurrences(view, types=(*LINKS, *CODE)):
            is_link = found.type in LINKS or found.place.state == DANGLING
            (self._links if is_link else self._code)[found.place.path].append(found)
        half_life, uses = view.vault.config.confidence.half_life_days, memory.uses.count_all()
        self.known = {
            path: Evidence(
                path=path,
                fields=fields,
                title=title,
                day=day_of(path, fields),
                confidence=provenance.today(path, fields, day, now, half_life),
                state=self._states.get(path, "live"),
                against=against[path],
                repeats=repeats[path],
                links=[each.place.state not in _BROKEN for each in self._links[path]],
                citations=[each.place.state not in STALE for each in self._code[path]],
                uses=uses.get(path, 0) if uses else None,
            )
            for path, fields, title, day in provenance.list_memories(view)
            if is_compared(path)
        }

    def judge(self) -> Iterator[MemoryQuality]:
        weights = self._view.vault.config.quality._asdict()
        return (judge_memory(each, weights) for each in self.known.values())

    def find_weak(self) -> Iterator[tuple[str, str, Remedy]]:
        doubtful = dict(provenance.find_doubtful(self._view, self._now))
        for pair in self._pairs:
            merge = _write_command(f"merge --into={shlex.quote(pair.other)}", pair.path, pair.other)
            yield "duplicate", pair.path, partial(_tell, f"{pair.other} says the same", merge)
        for path, each in self.known.items():
            told = {
                "contradicted": ", ".join(each.against) or (each.state == "contradicted" and each.state),
                "doubtful": path in doubtful and f"its confidence is {doubtful[path]:.2f} today",
                "unsourced": not each.fields.get("source") and "it names no source",
                "unused": each.uses == 0 and "it was never given to an agent",
            }
            for kind, problem in told.items():
                if problem and (each.state == "live" or kind == "contradicted"):
                    yield kind, path, partial(_tell, problem, _write_command("why", path))
            if each.state == "live":
                yield from self._find_astray(path)

    def _find_astray(self, path: str) -> Iterator[tuple[str, str, Remedy]]:
        for place in self._links[path]:
            goal = place.target.partition("#")[0]
            if goal in self._states or place.place.state in _BROKEN:
                kind = AMBIGUOUS if place.place.state == AMBIGUOUS else "broken"
                kind = _ENDED if goal in self._states else kind
                yield kind, path, partial(self._fix_link, place, goal)
        for place in self._code[path]:
            if place.place.state in STALE:
                yield "stale", path, partial(_fix_citation, place)

    def _fix_link(self, place: Occurrence, goal: str) -> tuple[str, str]:
        """Tell of a link that is broken or ambiguous, or leads to what has ended, and how it leads on."""
        document, line = self._view.read(place.place.path), place.place.line
        on_line = (each for each in document.links if each.line == line and each.kind in _REWRITTEN)
        link = next((each for each in on_line if place.written.startswith(each.target)), None)
        if link is None:
            return f"line {line}: {place.place.detail}", _write_command("check", document.path)
        written, target = document.text[slice(*link.span)], document.text[slice(*link.target_span)]
        ended, new = self._states.get(goal), link.alias or link.target
        goal = validity.find_successors(self._view).get(goal, "") if ended else goal
        if goal and place.place.state != DANGLING:
            here = posixpath.dirname(document.path) or "."
            name = goal.removesuffix(".md") if link.kind == "wikilink" else posixpath.relpath(goal, here)
            new = written.replace(target, name, 1)
        problem = f"line {line}: {place.target} is {ended}" if ended else f"line {line}: {place.place.detail}"
        return problem, _write_command("replace --all", document.path, written, new)


def _fix_citation(place: Occurrence) -> tuple[str, str]:
    """Tell of a citation that is stale: it is updated, pinned as it is now, or no citation any more."""
    path, state = shlex.quote(place.place.path), place.place.state
    commands = {MOVED: f"mdmem refs --fix --in={path}", CHANGED: f"mdmem refs --pin --accept --in={path}"}
    name = posixpath.splitext(posixpath.basename(place.written.partition("#")[0]))[0]
    gone = _write_command("replace --all", place.place.path, place.written, f"{name} (gone)")
    return f"line {place.place.line}: {place.target} {state}", commands.get(state, gone)


def _write_command(verb: str, *arguments: str) -> str:
    """Write a command that runs as it stands: no name or text that begins with a dash is an option."""
    end = "-- " if any(each.startswith("-") for each in arguments) else ""
    return f"mdmem {verb} {end}{shlex.join(arguments)}"


def _tell(problem: str, command: str) -> tuple[str, str]:
    return problem, command


def list_quality(
    memory: ScopedMemory, view: View, paths: Sequence[str], below: float, now: datetime
) -> list[MemoryQuality]:
    """List how good memories are, the worst first; see `Memory.quality`."""
    if not 0 <= below <= 1:
        raise Usage(problem=f"a score is from 0 to 1, not {below:g}")
    survey = _Survey(memory, view, now)
    wanted = among(survey.known, paths)
    found = (each for each in survey.judge() if each.path in wanted and (each.score < below or below == 1))
    return sorted(found, key=lambda each: (each.score, each.path))


def make_report(
    memory: ScopedMemory, view: View, now: datetime, before: dict[str, int] | None
) -> MemoryReport:
    """Report what is weak; `before` is the count of each kind at another moment."""
    survey = _Survey(memory, view, now)
    weak, scores = {kind: dict[str, Remedy]() for kind in KINDS}, dict[str, float]()
    for kind, path, remedy in survey.find_weak():
        weak[kind].setdefault(path, remedy)
    for path, score, _ in survey.judge():
        scores[path] = score
    live = [scores[path] for path, each in survey.known.items() if each.state == "live"]
    largest = sorted(KINDS, key=lambda kind: -len(weak[kind]))[:_WORST]
    ranked = {kind: sorted(weak[kind], key=lambda path: (scores.get(path, 0), path)) for kind in largest}
    return MemoryReport(
        memories=len(live),
        quality=sum(live) / len(live) if live else 0.0,
        counts={kind: len(found) for kind, found in weak.items()},
        before=before,
        worst=tuple(
            WeakMemory(path, kind, *weak[kind][path]()) for kind in largest for path in ranked[kind][:_WORST]
        ),
    )
