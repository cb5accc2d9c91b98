"""Durations in seconds: two sides measured in turn, and what is quoted of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from machine import environment

Side = Callable[[int], object]


class Spread(NamedTuple):
    """The median of some values, with the least and the most of them."""

    median: float
    least: float
    most: float

    def text(self, unit: Callable[[float], str]) -> str:
        return f"{unit(self.median)} ({unit(self.least)} to {unit(self.most)})"


def spread(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(median(found), min(found), max(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The durations of both sides; the n-th of one was measured right beside the n-th of the other.

    They are compared pair by pair, so that a load that comes and goes falls on both sides.
    """

    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def ratio(self) -> Spread:
        return spread(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def difference(self) -> Spread:
        return spread(a - b for a, b in zip(self.ours, self.theirs, strict=True))


def paired(ours: Side, theirs: Side, count: int, *, warm: int = 1) -> Paired:
    """Time both sides in turn, `count` pairs, after `warm` pairs that are not counted.

    Each side goes first in every other pair, and is given the number of the pair, from 0.
    """
    durations: list[tuple[float, float]] = []
    for number in range(warm + count):
        if number % 2:
            mine = _time(ours, number)
            durations.append((mine, _time(theirs, number)))
        else:
            other = _time(theirs, number)
            durations.append((_time(ours, number), other))
    counted = durations[warm:]
    return Paired(ours=[mine for mine, _ in counted], theirs=[other for _, other in counted])


def _time(side: Side, number: int) -> float:
    start = time.perf_counter()
    side(number)
    return time.perf_counter() - start


def program(command: Sequence[str], environment: Mapping[str, str]) -> Callable[[int], str]:
    """A side that is a whole process; everything it prints is read through one pipe, and returned.

    Raises:
        RuntimeError: it failed.
    """

    def run(_: int) -> str:
        ended = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        printed = ended.stdout.decode()
        if ended.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}:\n{printed}")
        return printed

    return run


def nothing() -> Callable[[int], str]:
    """A side that is `python -c pass`, whole process: what others are counted in."""
    return program([sys.executable, "-c", "pass"], environment())
