"""Runs: the lines that the line scanner takes at once, where no container, fence or HTML block is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.text.regex import regex

if TYPE_CHECKING:
    import re

# How a line begins that can only be text: with a word, emphasis, code, a number, an autolink, or a link that
# is no definition.
_PLAIN = (
    r"(?:[^ \t#>`~\-+*_=<0-9\[\r\n]"
    r"|\*{1,2}(?=[^\s*])|_{1,2}(?=[^\s_])|`{1,2}(?=[^`\r\n])|[0-9]++(?=[^0-9.)])"
    r"|<(?=[A-Za-z][A-Za-z0-9+.-]*+:)|\[(?=\[|[^\[\]\\\r\n]*+\](?!:)))"
)


def _run(end: str, other: str) -> re.Pattern[str]:
    """The pattern of a run.

    It is a heading (group 2; 3: its marks, 4: the rest) and lines of text (6), with blank lines before (1),
    between (5) and behind (7) them. Most texts are but some of these.

    Args:
        end: what ends a line.
        other: the other characters.
    """
    blank = rf"((?:[ \t]*+{end})++)?+"
    return regex(
        rf"{blank}((#{{1,6}})(?:[ \t]++|(?={end}|\Z))({other}*+)(?:{end}|\Z))?+{blank}"
        rf"(?:({_PLAIN}{other}*+(?:{end}(?:{_PLAIN}|\[){other}*+)*+)(?:{end}|\Z){blank})?+"
    )


# That any character but one goes on is found out twice as fast as that any but two does.
OF_ANY, OF_LINE_FEEDS = _run(r"(?:\r\n|\n|\r)", r"[^\r\n]"), _run(r"\n", r"[^\n]")
BEFORE, HEADING, MARK, TITLE, _, TEXT, BEHIND = range(1, 8)
# An item of a list outside of other containers that begins with a line of text (2), perhaps a task.
ITEM = regex(rf"([-+*] |[0-9]{{1,9}}[.)] )((?:{_PLAIN}|\[[ xX\[])[^\r\n]*+)(?:\r\n|\n|\r|\Z)")
