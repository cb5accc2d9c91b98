"""The strength of a preference: it fades while nobody confirms it, and is computed when it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

DECAY_PER_DAY = 0.01
LEAST_VISIBLE = 0.1
STRONG = 0.7
MEDIUM = 0.4
CONFIRMED = 0.1  # what a value gains each time that it is set again
_DECIMALS = 4
_SECONDS_PER_DAY = 86_400


def decayed(strength: float, updated: datetime | None, now: datetime) -> float:
    """What is left of a strength: `strength * max(0, 1 - 0.01 * days since the update)`.

    This is the linear formula of aster's preferences. It is never applied to its own result, so it makes no
    difference how often it is asked. Without a time nothing fades, and a time to come counts as now.
    """
    if updated is None:
        return strength
    days = max(0.0, (now - updated).total_seconds() / _SECONDS_PER_DAY)
    return rounded(strength * max(0.0, 1 - DECAY_PER_DAY * days))


def confirmed(one: float, other: float) -> float:
    """The strength of a value that had one strength, and is given again with another."""
    return rounded(min(1.0, max(one, other) + CONFIRMED))


def rounded(share: float) -> float:
    """A number from 0 to 1 as it is written, to four decimals."""
    return round(share, _DECIMALS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """How many preferences are strong (0.7 and more), medium (0.4 and more) and weak."""

    strong: int
    medium: int
    weak: int

    def as_dict(self) -> dict[str, Any]:
        """The counts as a JSON object."""
        return {"strong": self.strong, "medium": self.medium, "weak": self.weak}


def bands(strengths: Sequence[float]) -> Bands:
    """The bands that strengths fall into."""
    strong = sum(strength >= STRONG for strength in strengths)
    medium = sum(MEDIUM <= strength < STRONG for strength in strengths)
    return Bands(strong=strong, medium=medium, weak=len(strengths) - strong - medium)
