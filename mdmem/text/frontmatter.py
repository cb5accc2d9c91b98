"""Frontmatter: the YAML between two `---` lines at the very beginning of a Markdown text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mdmem.diagnostic import Span
from mdmem.text import yaml_tree
from mdmem.text.parsed import Flaw
from mdmem.text.tree import Node

BOM = "\ufeff"
_OPENING = re.compile(r"---[ \t]*(?:\r\n|\n|\r)")
_CLOSING = re.compile(r"(?:(?<=\n)|(?<=\r))---[ \t]*(?:\r\n|\n|\r|\Z)")
# A first line of dashes with no second one is a thematic break unless a key follows it.
_KEY_FOLLOWS = re.compile(r"""["']?[^\s:#"'][^:\r\n]*:(?:[ \t\r\n]|\Z)""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontmatter:
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


def parse(text: str, *, max_depth: int, max_values: int) -> Frontmatter:
    """Find and parse the frontmatter of a Markdown `text`.

    Raises:
        TooDeep: its values pass a limit.
    """
    start = len(BOM) if text.startswith(BOM) else 0
    opening = _OPENING.match(text, start)
    if not opening:
        return Frontmatter(span=Span(start, start), inner=Span(start, start))
    closing = _CLOSING.search(text, opening.end())
    if not closing:
        return _unclosed(text, start, opening.end())
    span, inner = Span(start, closing.end()), Span(opening.end(), closing.start())
    parsed = yaml_tree.parse(text[slice(*inner)], inner.start, max_depth=max_depth, max_values=max_values)
    node, flaws = parsed.node, parsed.flaws
    if node and node.kind != "mapping" and not (node.kind == "scalar" and node.value is None):
        message = f"frontmatter must be fields (`key: value`), not a {node.kind}"
        flaw = Flaw(node.span, "frontmatter-not-a-mapping", message, "write `key: value` lines", "frontmatter")
        return Frontmatter(span=span, inner=inner, flaws=(*flaws, flaw))
    return Frontmatter(span=span, inner=inner, node=node if node and node.members else None, flaws=flaws)


def _unclosed(text: str, start: int, inner_start: int) -> Frontmatter:
    here = Span(start, start)
    if not _KEY_FOLLOWS.match(text, inner_start):
        return Frontmatter(span=here, inner=here)
    message = "the frontmatter that begins here is never closed"
    flaw = Flaw(Span(start, start + 3), "frontmatter-unclosed", message, "add a line of `---`", "frontmatter")
    return Frontmatter(span=here, inner=here, flaws=(flaw,))
