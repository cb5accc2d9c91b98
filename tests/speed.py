"""How much of the tests runs: `pytest` runs the quick part, `pytest --all` everything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark import ParameterSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_QUICK_SHARE = 4
_LEAST = 5

is_all = False  # set by `conftest.py` before the first test is collected


def examples(count: int) -> int:
    """Return how many examples a property draws.

    Args:
        count: with `--all`; a quarter of them without. `MDMEM_TEST_EXAMPLES` overrules both.
    """
    quick = max(min(count, _LEAST), count // _QUICK_SHARE)
    return int(os.environ.get("MDMEM_TEST_EXAMPLES") or (count if is_all else quick))


def soak_most(rows: Iterable[Any], quick: Collection[int] = (0,)) -> list[Any]:
    """Mark all rows of a `pytest.mark.parametrize` as soak tests but some.

    Args:
        rows: the values, as `parametrize` takes them.
        quick: the 0-based numbers of the rows that run without `--all`.
    """
    listed = list(rows)
    assert set(quick) <= set(range(len(listed)))
    return [row if number in quick else _mark_soak(row) for number, row in enumerate(listed)]


def _mark_soak(row: Any) -> Any:
    if isinstance(row, ParameterSet):
        return pytest.param(*row.values, id=row.id, marks=(*row.marks, pytest.mark.soak))
    return pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.soak)
