"""A conflict about a value says where the value stands in theirs."""

from __future__ import annotations

import pytest

from mdmem.text.document import parse_text
from mdmem.text.merge_conflict import MergeConflict, value_conflict
from mdmem.text.three import Three

TEXT = "---\na: 1\nb:\n  c.d: 2\n---\nbody\n"


@pytest.mark.parametrize(
    ("path", "where", "line"),
    [
        (("a",), "a", 2),
        (("b", "c.d"), r"b.c\.d", 4),
        (("b", "gone"), "b.gone", 4),
        (("x", "y"), "x.y", 2),
        ((), "", 2),
    ],
    ids=["field", "inside", "gone", "nowhere", "all"],
)
def test_it_names_the_value_and_the_line_of_what_is_nearest(
    path: tuple[str, ...], where: str, line: int
) -> None:
    conflict = value_conflict("field", path, parse_text("a.md", TEXT), Three("1", None, "2"))
    assert conflict == MergeConflict(kind="field", where=where, line=line, base="1", ours="", theirs="2")


def test_without_values_it_stands_in_the_first_line() -> None:
    assert value_conflict("field", ("a",), parse_text("a.md", "body\n"), Three("1", "2", None)).line == 1
