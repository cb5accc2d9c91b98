"""Durations of many calls, of which the median and the slowest twentieth are quoted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from table import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Percentiles(NamedTuple):
    """The median, and what 95 of 100 do not exceed; in seconds."""

    p50: float
    p95: float

    def text(self) -> str:
        return f"p50 {milliseconds(self.p50)}, p95 {milliseconds(self.p95)}"


def percentiles(durations: Iterable[float]) -> Percentiles:
    """By the nearest rank: each is one of the durations, none is computed between two."""
    ordered = sorted(durations)
    return Percentiles(_rank(ordered, 50), _rank(ordered, 95))


def clock(work: Callable[[], object]) -> float:
    """How many seconds a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _rank(ordered: Sequence[float], percent: int) -> float:
    return ordered[-(-len(ordered) * percent // 100) - 1]
