"""The rows that measurements give, and the Markdown table that they become."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from timing import Paired, Spread, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = ("what", "mdmem", "beside it", "ratio or difference", "budget", "kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table; `kept` says whether the budget was, None where there is none."""

    what: str
    ours: str
    beside: str = ""
    compared: str = ""
    budget: str = ""
    kept: bool | None = None

    def cells(self) -> tuple[str, ...]:
        verdict = {True: "yes", False: "**no**", None: ""}[self.kept]
        return self.what, self.ours, self.beside, self.compared, self.budget, verdict


def ratio_row(what: str, beside: str, pairs: Paired, most: float | None) -> Row:
    """A row whose budget is a ratio: as many times as long, at most; None where there is no budget."""
    row = _compared(
        what, beside, pairs, pairs.ratio.text(ratio), f"≤ {ratio(most or 0)}", pairs.ratio, most or 0
    )
    return row if most else replace(row, budget="", kept=None)


def difference_row(what: str, beside: str, pairs: Paired, most: float) -> Row:
    """A row whose budget is a difference: so many seconds longer, at most."""
    compared = f"+ {pairs.difference.text(milliseconds)}; ratio {ratio(pairs.ratio.median)}"
    return _compared(what, beside, pairs, compared, f"≤ + {milliseconds(most)}", pairs.difference, most)


def _compared(
    what: str, beside: str, pairs: Paired, compared: str, budget: str, measured: Spread, most: float
) -> Row:
    return Row(
        what=what,
        ours=spread(pairs.ours).text(milliseconds),
        beside=f"{beside}: {spread(pairs.theirs).text(milliseconds)}",
        compared=compared,
        budget=budget,
        kept=measured.median <= most,
    )


def markdown(rows: Sequence[Row]) -> str:
    lines = [_HEADER, ("---",) * len(_HEADER), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def milliseconds(duration: float) -> str:
    value = duration * 1000
    return f"{value:.2f} ms" if abs(value) < 10 else f"{value:.0f} ms"


def seconds(duration: float) -> str:
    return f"{duration:.2f} s"


def ratio(value: float) -> str:
    return f"{value:.2f}"
