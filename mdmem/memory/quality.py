"""Quality: how good a memory is in five dimensions, each with its terms in words; nothing of it is kept.

What is not known of a memory stays out of the mean. Neither its length nor its age counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mdmem.document.confidence import ConfidenceTerm
from mdmem.memory.content import State

_REPEATED = 0.5  # the consistency of a memory that another one repeats
_BOUNDS = ("valid_from", "valid_to", "expires")


class DimensionScore(NamedTuple):
    """A dimension: the mean of its terms, from 0 to 1; None where nothing is known."""

    name: str
    value: float | None
    terms: tuple[ConfidenceTerm, ...]


class MemoryQuality(NamedTuple):
    """How good a memory is: the mean of the dimensions that are known, by their weights."""

    path: str
    score: float
    dimensions: tuple[DimensionScore, ...]


class Evidence(NamedTuple):
    """What is known of a memory.

    Attributes:
        confidence: how sure it is today; None where it says nothing of itself.
        state: whether it counts.
        against, repeats: what counts and speaks against it, and what says the same.
        links, citations: of each of its links and citations of code, whether it is sound.
        uses: how often it was given to agents; None where nobody counts.
    """

    path: str
    fields: Mapping[str, Any]
    title: str = ""
    day: str = ""
    confidence: float | None = None
    state: State = "live"
    against: Sequence[str] = ()
    repeats: Sequence[str] = ()
    links: Sequence[bool] = ()
    citations: Sequence[bool] = ()
    uses: int | None = None


def judge_memory(known: Evidence, weights: Mapping[str, int]) -> MemoryQuality:
    """Judge a memory; `weights` are those of the dimensions, in percent."""
    found, total, score = list[DimensionScore](), 0, 0.0
    for name, judge in DIMENSIONS.items():
        terms = tuple(judge(known))
        value = sum(each.value for each in terms) / len(terms) if terms else None
        found.append(DimensionScore(name, value, terms))
        if value is not None:
            total, score = total + weights[name], score + value * weights[name]
    return MemoryQuality(known.path, score / total if total else 0.0, tuple(found))


def _judge_accuracy(known: Evidence) -> Iterator[ConfidenceTerm]:
    if known.confidence is not None:
        yield ConfidenceTerm("its confidence today", known.confidence)


def _judge_completeness(known: Evidence) -> Iterator[ConfidenceTerm]:
    parts = {"title": known.title, "source": known.fields.get("source"), "day": known.day}
    for what, is_there in parts.items():
        yield ConfidenceTerm(f"{'a' if is_there else 'no'} {what}", float(bool(is_there)))
    for what, sound in (("links", known.links), ("citations", known.citations)):
        if sound:
            yield ConfidenceTerm(f"{sum(sound)} of {len(sound)} {what} sound", sum(sound) / len(sound))


def _judge_consistency(known: Evidence) -> Iterator[ConfidenceTerm]:
    if known.against:
        yield ConfidenceTerm(f"{', '.join(known.against)} speaks against it", 0.0)
    elif known.repeats:
        yield ConfidenceTerm(f"{', '.join(known.repeats)} says the same", _REPEATED)
    else:
        yield ConfidenceTerm("nothing speaks against it or repeats it", 1.0)


def _judge_timeliness(known: Evidence) -> Iterator[ConfidenceTerm]:
    if known.state != "live" or not known.fields.keys().isdisjoint(_BOUNDS):
        yield ConfidenceTerm(f"it is {known.state}", float(known.state == "live"))
    if sound := known.citations:
        yield ConfidenceTerm(f"{sum(sound)} of {len(sound)} citations unchanged", sum(sound) / len(sound))


def _judge_relevance(known: Evidence) -> Iterator[ConfidenceTerm]:
    if known.uses is not None:
        yield ConfidenceTerm(f"used {known.uses} times", known.uses / (known.uses + 1))


DIMENSIONS: Mapping[str, Callable[[Evidence], Iterator[ConfidenceTerm]]] = {
    "accuracy": _judge_accuracy,
    "completeness": _judge_completeness,
    "consistency": _judge_consistency,
    "timeliness": _judge_timeliness,
    "relevance": _judge_relevance,
}
"""The dimensions, each with what yields its terms."""
