"""What a memory lends to the hits in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mdmem.errors import MemoryNotFound, NotUtf8
from mdmem.index.hit_reader import HitReader
from mdmem.index.ripgrep import Line
from mdmem.text.document import Document, parse_text

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "# Plan\n\nwhy\nneedle\nend\n"


def reader(text: str, path: str = "users/a/2026-03-04.md") -> HitReader:
    return HitReader(path, "/nowhere", lambda read: parse_text(read, text), "2026-03-04.md")


def test_a_hit_has_the_path_that_is_shown_and_what_the_memory_lends() -> None:
    hit = reader(TEXT).hit(Line(4, 0, "needle", ((0, 6),)), 1)
    assert (hit.path, hit.line, hit.heading, hit.date) == ("2026-03-04.md", 4, ("Plan",), "2026-03-04")
    assert (hit.text, hit.matches, hit.before, hit.after) == ("needle", ((0, 6),), ("why",), ("end",))


def test_a_memory_is_read_once_at_its_vault_path() -> None:
    read = []

    def noted(path: str) -> Document:
        read.append(path)
        return parse_text(path, TEXT)

    memory = HitReader("users/a/x.md", "/nowhere", noted, "x.md")
    assert [memory.hit(Line(n, 0, "", ()), 0).path for n in (1, 2)] == ["x.md", "x.md"]
    assert read == ["users/a/x.md"]


def test_a_line_that_was_changed_meanwhile_is_lent_nothing() -> None:
    hit = reader(TEXT).hit(Line(4, 0, "needle before", ()), 1)
    assert (hit.line, hit.text, hit.heading, hit.before) == (4, "needle before", (), ())


@pytest.mark.parametrize(
    "error", [MemoryNotFound(path="a.md"), NotUtf8(path="a.md", offset=0, byte=0xFF, line=1)], ids=repr
)
def test_a_memory_that_cannot_be_read_has_hits_all_the_same(tmp_path: Path, error: Exception) -> None:
    def refused(_: str) -> Document:
        raise error

    hit = HitReader("a.md", str(tmp_path / "gone.md"), refused, "a.md").hit(Line(2, 1, "needle", ()), 1)
    assert (hit.line, hit.text, hit.heading, hit.date) == (3, "needle", (), "")


def test_lone_carriage_returns_count_as_line_ends() -> None:
    memory = reader("a\rb\nneedle\rneedle\n")
    assert [memory.hit(Line(2, piece, "needle", ()), 1).line for piece in (0, 1)] == [3, 4]
    assert memory.hit(Line(2, 1, "needle", ()), 1).before == ("needle",)
