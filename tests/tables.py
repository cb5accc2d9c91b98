"""Tables of cases: one test that runs each row as a subtest."""

from __future__ import annotations

import inspect
import reprlib
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark import ParameterSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path


def cases(
    names: str, rows: Iterable[Any], *, ids: Callable[[Any], Any] | Sequence[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for each row, as `pytest.mark.parametrize` does, in subtests of one test.

    A row that fails does not stop the next one. Each has a `tmp_path` and a `monkeypatch` of its own; other
    fixtures are those of the test, and the rows share them.

    Args:
        names: of the arguments, separated by commas.
        rows: the values; a tuple for several names, or a `pytest.param` with an id.
        ids: what a row is called, or what makes a name from a value; the values themselves without.
    """
    given = [name.strip() for name in names.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        fixtures = [p for name, p in inspect.signature(test).parameters.items() if name not in given]
        table = list(_read_rows(rows, len(given), ids))

        def run_rows(subtests: pytest.Subtests, **shared: Any) -> None:
            assert table
            for number, (name, values) in enumerate(table):
                with subtests.test(name), pytest.MonkeyPatch.context() as patch:
                    own = _renew_fixtures(shared, number, patch)
                    test(**dict(zip(given, values, strict=True)), **own)

        run_rows.__name__, run_rows.__qualname__, run_rows.__doc__ = (
            test.__name__,
            test.__qualname__,
            test.__doc__,
        )
        run_rows.__module__ = test.__module__
        every = [inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY), *fixtures]
        every = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in every]
        run_rows.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        run_rows.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
        return run_rows

    return decorate


def _read_rows(rows: Iterable[Any], count: int, ids: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    for number, row in enumerate(rows):
        name = None
        if isinstance(row, ParameterSet):
            name, values = row.id, row.values
        else:
            values = (row,) if count == 1 else tuple(row)
        if name is None and ids is not None:
            name = "-".join(str(ids(value)) for value in values) if callable(ids) else ids[number]
        told = "-".join(map(_name_value, values)) if name is None else str(name)
        yield told.encode("utf-8", "backslashreplace").decode(), values  # no half of a character


def _name_value(value: object) -> str:
    return value if isinstance(value, str) else reprlib.repr(value)


def _renew_fixtures(shared: dict[str, Any], number: int, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    own = dict(shared)
    if "monkeypatch" in own:
        own["monkeypatch"] = patch
    if "tmp_path" in own:
        folder: Path = own["tmp_path"] / f"row-{number}"
        folder.mkdir()
        own["tmp_path"] = folder
    return own
