"""Link reference definitions, `[label]: destination "title"`.

CommonMark 0.31.2, section 4.7 (https://spec.commonmark.org/0.31.2/#link-reference-definitions).
"""

from __future__ import annotations

from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.text.lines import new
from mdmem.text.regex import regex

_IN_LINE = regex(
    r"\[(?=[^\]]*[^\s\]])([^\[\]\\]{1,999})\]:[ \t]*(<[^<>\\]*>|[^\s<]\S*)"
    r"(?:[ \t]+(?:\"[^\"\\]*\"|'[^'\\]*'))?[ \t]*$"
)
_OVER_LINES = regex(
    r"[ \t]*+(\[((?:[^\[\]\\]++|\\[\s\S])++)\]:[ \t]*+(?:(?:\r\n|\n|\r)[ \t]*+)?"
    r"(<(?:[^<>\\\r\n]++|\\[^\r\n])*+>|(?!<)[^\x00-\x20\x7f]++)"
    r"(?:(?:[ \t]++(?:(?:\r\n|\n|\r)[ \t]*+)?|(?:\r\n|\n|\r)[ \t]*+)"
    r"(?:\"(?:[^\"\\]++|\\[\s\S])*+\"|'(?:[^'\\]++|\\[\s\S])*+'|\((?:[^()\\]++|\\[\s\S])*+\))"
    r"(?=[ \t]*+(?:[\r\n]|\Z)))?+)[ \t]*+(?:\r\n|\n|\r|\Z)"
)
_LONGEST_LABEL = 999
_PARENTHESIS = regex(r"\\[\s\S]|[()]")


class Definition(NamedTuple):
    """A link reference definition, `[label]: destination`.

    Attributes:
        label: between its brackets, as written.
        span: all of it, a line end behind it not included.
        destination: its span, with the `<>` around it where it has them.
    """

    label: str
    span: Span
    destination: Span


def in_line(text: str, start: int, end: int) -> Definition | None:
    """The definition that is all of a line, which goes on from `start` to `end` in `text`."""
    found = _IN_LINE.match(text, start, end)
    if not found or not _is_balanced(found[2]):
        return None
    whole = new(Span, (start, start + len(found[0].rstrip(" \t"))))
    return new(Definition, (found[1], whole, new(Span, found.span(2))))


def leading(content: str, start: int) -> tuple[list[Definition], int]:
    """The definitions that the paragraph `content`, which begins at `start`, begins with; and where they end.

    They may go on over the ends of lines. A footnote, `[^1]: text`, is none.
    """
    definitions = []
    at = 0
    while found := _OVER_LINES.match(content, at):
        label = found[2]
        is_label = len(label) <= _LONGEST_LABEL and label.strip() and not label.startswith("^")
        if not is_label or not _is_balanced(found[3]):
            break
        span, destination = (Span(start + found.start(n), start + found.end(n)) for n in (1, 3))
        definitions.append(Definition(label, span, destination))
        at = found.end()
    while at < len(content) and content[at] in " \t":
        at += 1
    return definitions, start + at


def _is_balanced(destination: str) -> bool:
    """Whether a destination without `<>` closes each parenthesis that it opens, and no other."""
    if destination.startswith("<") or ("(" not in destination and ")" not in destination):
        return True
    depth = 0
    for parenthesis in _PARENTHESIS.findall(destination):
        depth += (parenthesis == "(") - (parenthesis == ")")
        if depth < 0:
            return False
    return depth == 0
