"""What a merge could not decide: the places, and how they are written into the text, for a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mdmem.document.document import Document
from mdmem.document.text.diff import Versions, count_common_lines
from mdmem.document.text.lines import whole_lines
from mdmem.document.tree import KeyPath, dotted

ConflictKind = Literal["lines", "field", "section", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """A place that both sides changed, each in its own way.

    Attributes:
        kind: the same lines, the same field of the frontmatter, a section that one side changed and the other
            removed, or the same JSON value.
        where: the heading path (`Design > Index`) or the dotted key; may be empty.
        line: where it stands in theirs, 1-based.
        base: the text of the place before; empty where there was none. `ours` and `theirs` alike.
        what: what it is about, and what both sides did to it, for a person; empty for fields and JSON.
        reason: what is wrong with a merge of the place, in words that follow "it"; else empty.
    """

    kind: ConflictKind
    where: str
    line: int
    base: str
    ours: str
    theirs: str
    what: str = ""
    reason: str = ""


def value_conflict(
    kind: ConflictKind,
    path: KeyPath,
    theirs: Document,
    texts: Versions[str] | Versions[str | None],
    reason: str = "",
) -> MergeConflict:
    """Return the conflict about the value at `path`, at the line of that or of the nearest value."""
    line = theirs.lines.number(theirs.tree.nearest(path).span.start) if theirs.tree else 1
    before, mine, yours = (text or "" for text in texts)
    return MergeConflict(
        kind=kind, where=dotted(path), line=line, base=before, ours=mine, theirs=yours, reason=reason
    )


class Markers(NamedTuple):
    """How git marks a conflict in a text.

    Attributes:
        size: how many characters a marker has.
        ours, base, theirs: what stands behind the markers.
        shows_base: whether the text before stands between both sides, as `merge.conflictStyle` may ask for.
    """

    size: int = 7
    ours: str = "ours"
    base: str = "base"
    theirs: str = "theirs"
    shows_base: bool = False

    def around(self, base: str, ours: str, theirs: str, newline: str) -> str:
        """Return both sides of a place, whole lines, between markers.

        Lines that both begin or end with stand outside.
        """
        lines, others = _split_lines(ours, newline), _split_lines(theirs, newline)
        head, tail = (0, 0) if self.shows_base else count_common_lines(lines, others)
        before = (
            [self._make_marker("|", self.base, newline), *_split_lines(base, newline)]
            if self.shows_base
            else []
        )
        parts = [
            *lines[:head],
            self._make_marker("<", self.ours, newline),
            *lines[head : len(lines) - tail],
            *before,
            self._make_marker("=", "", newline),
            *others[head : len(others) - tail],
            self._make_marker(">", self.theirs, newline),
            *lines[len(lines) - tail :],
        ]
        return "".join(parts)

    def _make_marker(self, character: str, label: str, newline: str) -> str:
        return f"{character * self.size} {label}".rstrip() + newline


def _split_lines(text: str, newline: str) -> list[str]:
    lines = whole_lines(text, 0, len(text))
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += newline
    return lines


def count_contested(ours: str, theirs: str) -> int:
    """Return how many lines of two sides stand between markers, without those that they share at an end."""
    lines, others = whole_lines(ours), whole_lines(theirs)
    return len(lines) + len(others) - 2 * sum(count_common_lines(lines, others))


@dataclass(slots=True)
class Conflicts:
    """The conflicts of one merge, in the order in which they were found.

    With `markers`, each of them is written into the text.
    """

    markers: Markers | None = None
    found: list[MergeConflict] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.found)

    @property
    def size(self) -> int:
        """How many lines stand between markers, as git counts them."""
        return sum(count_contested(each.ours, each.theirs) for each in self.found)

    def take(self, conflict: MergeConflict, newline: str) -> str:
        """Take a conflict; return what stands in the text for it."""
        self.found.append(conflict)
        return self.marked(conflict.base, conflict.ours, conflict.theirs, newline)

    def marked(self, base: str, ours: str, theirs: str, newline: str) -> str:
        """Return what stands in the text for a conflict that was taken."""
        return self.markers.around(base, ours, theirs, newline) if self.markers else ""
