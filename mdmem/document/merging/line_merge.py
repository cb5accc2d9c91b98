"""Three versions of some lines, merged as git does: what only one side changed is taken from it.

Changes of both sides that touch are a conflict, and so are two insertions at one place, unless they are the
same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mdmem.document.merging.conflict import count_contested
from mdmem.document.text.diff import Versions, regions
from mdmem.document.text.lines import whole_lines

# A conflict between markers of some size; what stands in the base may be missing.
_MARKED = (
    r"(?ms)^<{{{0}}}(?!<)[^\n]*\n(?P<ours>.*?)(?:^\|{{{0}}}(?!\|)[^\n]*\n(?P<base>.*?))?"
    r"^={{{0}}}(?!=)[^\n]*\n(?P<theirs>.*?)^>{{{0}}}(?!>)[^\n]*\n"
)


class Piece(NamedTuple):
    """A stretch of a merged text.

    Attributes:
        text: what it came to; of a conflict, nothing.
        sides: of a conflict, what stands there in each version.
        line: of a conflict, the place of its first line in theirs, 0-based.
    """

    text: str
    sides: Versions[str] | None = None
    line: int = 0


LineMerge = Callable[[Versions[str]], list[Piece]]


def merge_texts(texts: Versions[str]) -> list[Piece]:
    """Merge three texts by lines.

    Where a line would stand more often or less often than both changes say, all is one conflict.
    """
    lines = texts.map(whole_lines)
    return _merge_regions(lines, _join_regions(lines.base, regions(*lines)), _refuse_both)


def _join_regions(base: Sequence[str], changed: Iterable[Versions[slice]]) -> Iterator[Versions[slice]]:
    """Yield changed regions, joined if only blank lines part them: additions slide over these."""
    last: Versions[slice] | None = None
    for region in changed:
        if last and not "".join(base[last.base.stop : region.base.start]).strip(" \t\r\n"):
            last = last.paired(region, lambda above, below: slice(above.start, below.stop))
        else:
            if last:
                yield last
            last = region
    if last:
        yield last


def _refuse_both(_ours: str, _theirs: str) -> bool:
    return False


def merge_loose_lines(
    lines: Versions[list[str]], may_join: Callable[[str, str], bool] = _refuse_both, last: int = 1
) -> list[Piece]:
    """Merge three versions of some lines that stand on their own, as `merge_texts` does.

    Lines may be added right beside others that are changed. Two insertions at one place are both kept if
    `may_join` allows that; the one of the side `last` stands behind the other.
    """
    found = list(regions(*lines, apart=True))
    for above, below in pairwise(found):
        are_changed = lines.base[above.base] and lines.base[below.base]
        if above.base.stop == below.base.start and (are_changed or (_has_grown(above) and _has_grown(below))):
            found = list(regions(*lines))
            break
    return _merge_regions(lines, found, may_join, last)


def _has_grown(region: Versions[slice]) -> bool:
    sizes: Versions[int] = region.map(lambda part: part.stop - part.start)
    return max(sizes) > sizes.base


def _merge_regions(
    lines: Versions[list[str]],
    changed: Iterable[Versions[slice]],
    may_join: Callable[[str, str], bool],
    last: int = 1,
) -> list[Piece]:
    found: list[Piece] = []
    reached = 0
    for region in changed:
        found.append(Piece("".join(lines.base[reached : region.base.start])))
        reached = region.base.stop
        texts = lines.paired(region, lambda side, part: "".join(side[part]))
        agreed = texts.agreed()
        if agreed:
            found.append(Piece(agreed[0]))
        elif not texts.base and may_join(texts.ours, texts.theirs):
            found.append(Piece(texts[3 - last] + texts[last]))
        else:
            found.append(Piece("", texts, region.theirs.start))
    found.append(Piece("".join(lines.base[reached:])))
    if is_clean(found):
        counts = lines.map(_count_lines)
        after = _count_lines(whole_lines(join_lines(piece.text for piece in found)))
        most = counts.ours | counts.theirs
        if not after <= most or not all(is_in_limits(line, counts, after) for line in counts.base):
            return [Piece("", lines.map("".join))]
    return found


def _count_lines(lines: list[str]) -> Counter[str]:
    return Counter(line for line in lines if line.strip(" \t\r\n"))


def read_marked(text: str, size: int, theirs: str) -> list[Piece]:
    """Return a merge that stands in a text, with conflicts between markers of `size` characters.

    Args:
        text: as `git merge-file` prints it; no line of its versions begins with just `size` of one sign.
        theirs: the version below the `=` of each conflict.
    """
    found: list[Piece] = []
    reached = seen = 0
    for place in re.finditer(_MARKED.format(size), text):
        base, ours, yours = (place[each] or "" for each in Versions._fields)
        at = max(theirs.find(yours, seen), seen)
        found.append(Piece(text[reached : place.start()]))
        found.append(Piece("", Versions(base, ours, yours), len(whole_lines(theirs, 0, at))))
        reached, seen = place.end(), at + len(yours)
    return [*found, Piece(text[reached:])]


def is_clean(pieces: Iterable[Piece]) -> bool:
    """Return whether a merge has no conflict."""
    return all(piece.sides is None for piece in pieces)


def count_contested_lines(pieces: Iterable[Piece]) -> int:
    """Return how many lines stand between markers."""
    return sum(count_contested(piece.sides.ours, piece.sides.theirs) for piece in pieces if piece.sides)


def join_lines(parts: Iterable[str]) -> str:
    r"""Join whole lines; behind a line that ends in `\r`, an empty one ends in `\r`, too."""
    joined = [""]
    for part in filter(None, parts):
        is_half = joined[-1].endswith("\r") and part.startswith("\n")
        joined.append("\r" + part[1:] if is_half else part)
    return "".join(joined)


def is_in_limits(line: str, counts: Versions[Counter[str]], after: Counter[str]) -> bool:
    """Return whether a line stands as often in a merge as both changes say, which may be the same change."""
    base, ours, theirs = counts.map(lambda each: each[line])
    two = ours + theirs - base
    one = min(ours, theirs) if min(ours, theirs) < base else max(ours, theirs)
    if min(ours, theirs) < base < max(ours, theirs):
        one = two
    return min(one, two) <= after[line] <= max(one, two)
