"""Frontmatter: the YAML between two `---` lines at the very beginning of a Markdown text."""

from __future__ import annotations

from typing import Any, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.tree import Flaw, Node
from mdmem.text.regex import regex

BOM = "\ufeff"
_OPENING = regex(r"---[ \t]*(?:\r\n|\n|\r)")
# That the dashes come first lets the search jump from one to the next.
_CLOSING_LINE = regex(r"---(?<=[\n\r]---)[ \t]*(?:\r\n|\n|\r|\Z)")
# A first line of dashes with no second one is a thematic break unless a key follows it.
_KEY_FOLLOWS = regex(r"""["']?[^\s:#"'][^:\r\n]*:(?:[ \t\r\n]|\Z)""")


class Frontmatter(NamedTuple):
    """The frontmatter of a text.

    Attributes:
        span: both `---` lines and what is between them, line ends included; empty, at the place where
            the body begins, when there is none.
        inner: what is between the two lines.
        node: the parsed mapping; None when there is none, or none that can be read.
        flaws: what is wrong with it.
    """

    span: Span
    inner: Span
    node: Node | None = None
    flaws: tuple[Flaw, ...] = ()

    @property
    def present(self) -> bool:
        """Whether there is frontmatter at all."""
        return self.span.end > self.span.start

    @property
    def values(self) -> dict[str, Any]:
        """The fields by name; empty where they cannot be read."""
        value = self.node.value if self.node else {}
        return value if isinstance(value, dict) else {}


def beginning(text: str) -> int:
    """Return where a text begins: behind its byte-order mark, if it has one."""
    return len(BOM) if text.startswith(BOM) else 0


def locate(text: str) -> tuple[Span, Span]:
    """Return the spans of the frontmatter and of what is between its lines; empty without any."""
    start = beginning(text)
    opening = _OPENING.match(text, start)
    closing = _CLOSING_LINE.search(text, opening.end()) if opening else None
    if not opening or not closing:
        return Span(start, start), Span(start, start)
    following, end = closing.span()
    return Span(start, end), Span(opening.end(), following)


def parse(text: str, *, max_depth: int, max_values: int) -> Frontmatter:
    """Find and parse the frontmatter of a Markdown `text`.

    Raises:
        TooDeep: its values pass a limit.
    """
    span, inner = locate(text)
    start, end = span
    if start == end:
        return Frontmatter(span=span, inner=inner, flaws=_find_unclosed(text, start))

    from mdmem.document import yaml  # noqa: PLC0415 - many memories have no frontmatter

    node, flaws = yaml.parse(text[slice(*inner)], inner.start, max_depth=max_depth, max_values=max_values)
    if node and node.kind == "mapping":
        return Frontmatter(span, inner, node, flaws)
    if node and not (node.kind == "scalar" and node.value is None):
        message, hint = f"frontmatter must be fields, not a {node.kind}", "write `key: value` lines"
        flaws = (*flaws, Flaw(node.span, "frontmatter-not-a-mapping", message, hint, "frontmatter"))
    return Frontmatter(span=span, inner=inner, flaws=flaws)


def _find_unclosed(text: str, start: int) -> tuple[Flaw, ...]:
    opening = _OPENING.match(text, start)
    if not opening or not _KEY_FOLLOWS.match(text, opening.end()):
        return ()
    message, hint = "the frontmatter that begins here is never closed", "add a line of `---`"
    return (Flaw(Span(start, start + 3), "frontmatter-unclosed", message, hint, "frontmatter"),)
