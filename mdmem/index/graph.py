"""Graphs: triples, and how Graphviz and Mermaid write them. Pure: any text may be a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterable

# What stands for itself in a label of Mermaid; anything else might begin an entity, a directive, or HTML.
_NOT_PLAIN = regex(r"[^\w ./:-]")


class Triple(NamedTuple):
    """A memory is joined to something.

    Attributes:
        subject: the memory.
        predicate: "links to", "embeds", "cites", "tagged", or the dotted name of the field that says so.
        object: a memory, a file, `#tag`; of a link that leads nowhere, its target as written.
    """

    subject: str
    predicate: str
    object: str


def dot(triples: Iterable[Triple]) -> str:
    """A digraph in the DOT language, see https://graphviz.org/doc/info/lang.html."""
    nodes, edges = _numbered(triples)
    lines = ["digraph memories {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  n{number} [label={_quoted(name)}];" for name, number in nodes.items()]
    lines += [f"  n{start} -> n{end} [label={_quoted(name)}];" for start, name, end in edges]
    return "".join(f"{line}\n" for line in (*lines, "}"))


def mermaid(triples: Iterable[Triple]) -> str:
    """A flowchart in the language of Mermaid, see https://mermaid.js.org/syntax/flowchart.html."""
    nodes, edges = _numbered(triples)
    lines = ["flowchart LR"]
    lines += [f'  n{number}["{_coded(name)}"]' for name, number in nodes.items()]
    lines += [f'  n{start} -->|"{_coded(name)}"| n{end}' for start, name, end in edges]
    return "".join(f"{line}\n" for line in lines)


def _numbered(triples: Iterable[Triple]) -> tuple[dict[str, int], list[tuple[int, str, int]]]:
    """The numbers of what the triples join, in order of appearance, and what joins them."""
    nodes: dict[str, int] = {}

    def number(name: str) -> int:
        return nodes.setdefault(name, len(nodes))

    edges = [(number(triple.subject), triple.predicate, number(triple.object)) for triple in triples]
    return nodes, edges


def _quoted(text: str) -> str:
    r"""A label of DOT: in it `\` begins an escape and `&` an entity, and a line ends by an escape."""
    escaped = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"\r\n|[\r\n]", r"\\n", escaped) + '"'


def _coded(text: str) -> str:
    """A label of Mermaid, with entities in the place of all that means something there."""
    return _NOT_PLAIN.sub(lambda found: f"#{ord(found[0])};", text)
