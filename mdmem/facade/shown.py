"""A text as a page or form shows it, and what becomes of the exact text when somebody changes that."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, pairwise

from mdmem.document.frontmatter import BOM
from mdmem.document.text.diff import hunks
from mdmem.document.text.lines import Lines, whole_lines, with_newline
from mdmem.document.text.tokens import visible

_SPELLED = re.compile(r"<U\+((?:10|[0-9A-F])?[0-9A-F]{4})>")


def exact_name(shown: str) -> str:
    """Return the text that `visible` shows as this one, with the characters that it spells out."""
    return _SPELLED.sub(lambda found: chr(int(found[1], 16)), shown)


class ShownText:
    """A text with what cannot be seen spelled out, lines that end in line feeds, and no byte-order mark."""

    def __init__(self, exact: str) -> None:
        self._mark = BOM if exact.startswith(BOM) else ""
        self._newline = Lines(exact).newline
        self._exact = whole_lines(exact, len(self._mark))
        self._shown = [visible(line) for line in self._exact]
        self._starts = [*accumulate(map(len, self._exact), initial=len(self._mark))]
        self._shown_starts = [*accumulate(map(len, self._shown), initial=0)]
        self.text = "".join(self._shown)

    def find_shown(self, offset: int) -> int:
        """Return where an offset of the exact text is in what is shown, in code points."""
        line = max(0, bisect_right(self._starts, offset) - 1)
        before = self._exact[line][: max(0, offset - self._starts[line])] if line < len(self._exact) else ""
        return self._shown_starts[line] + len(visible(before))

    def take_back(self, changed: str) -> str:
        """Return the exact text that somebody means who has changed what is shown.

        Lines that stay keep every byte. In those that change, a character that was spelled out is meant by
        its spelling, unless that stood there as such.
        """
        lines = whole_lines(with_newline(changed, "\n"))
        found, reached = list[str](), 0
        for hunk in hunks(self._shown, lines):
            gone = "".join(self._exact[hunk.start : hunk.end])
            came = "".join(lines[hunk.new_start : hunk.new_end])
            for letter in {*gone}:
                if (spelled := visible(letter)) != letter and letter not in "\r\n" and spelled not in gone:
                    came = came.replace(spelled, letter)
            found += [*self._exact[reached : hunk.start], came.replace("\n", self._newline)]
            reached = hunk.end
        parts = [*filter(None, found), *self._exact[reached:], ""]
        # A carriage return by itself stays a line end where a line feed follows it now.
        ended = (
            f"{one}\n" if one.endswith("\r") and after[:1] == "\n" else one for one, after in pairwise(parts)
        )
        return self._mark + "".join(ended)
