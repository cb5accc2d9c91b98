"""Text edits: spans of an original text and what stands there afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mdmem.errors import EditRefused


class TextEdit(NamedTuple):
    """Replace the code points from `start` to `end` (0-based, end exclusive) of the original by `new`."""

    start: int
    end: int
    new: str


def ordered(edits: Iterable[TextEdit], length: int, path: str) -> list[TextEdit]:
    """The edits of a text of `length` code points, first to last.

    Raises:
        EditRefused: two of them overlap, or insert at the same place, or one reaches outside the text.
    """
    result = sorted(edits)
    reached = 0
    for number, edit in enumerate(result):
        if edit.start < reached or edit.end < edit.start or edit.end > length:
            raise EditRefused(path=path, reason="two edits overlap, or one reaches outside the text")
        if number and edit[:2] == result[number - 1][:2]:
            raise EditRefused(path=path, reason="two edits stand at the same place")
        reached = edit.end
    return result


def splice(text: str, edits: Iterable[TextEdit], path: str = "") -> str:
    """`text` with the edits made; everything outside their spans stays as it is.

    Raises:
        EditRefused: as `ordered`.
    """
    parts, reached = [], 0
    for edit in ordered(edits, len(text), path):
        parts += [text[reached : edit.start], edit.new]
        reached = edit.end
    return "".join([*parts, text[reached:]])


def inverse(text: str, edits: Sequence[TextEdit]) -> list[TextEdit]:
    """The edits that turn `splice(text, edits)` back into `text`."""
    result, shift = [], 0
    for edit in ordered(edits, len(text), ""):
        start = edit.start + shift
        result.append(TextEdit(start, start + len(edit.new), text[edit.start : edit.end]))
        shift += len(edit.new) - (edit.end - edit.start)
    return result
