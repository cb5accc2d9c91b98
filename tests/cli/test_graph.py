"""Graphs: what joins memories, and that no name breaks the languages in which a graph is written."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from hypothesis import example, given, strategies as st

from mdmem.cli.references import format_dot, format_mermaid
from mdmem.index.links.graph import Triple

if TYPE_CHECKING:
    from collections.abc import Sequence

# A name may be anything but half a character, which the index does not hold.
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
) | (
    st.sampled_from(
        ['"', '\\"', "\\", "a\\", "%%{init: {}}%%", "end", "#quot;", "&amp;", "-->", "|", "]", "`x`"]
    )
)
TRIPLES = st.lists(st.builds(Triple, NAMES, NAMES, NAMES), max_size=6)

_STRING = r'"((?:[^"\\]|\\.)*)"'
_DOT_NODE = re.compile(rf"  n(\d+) \[label={_STRING}\];")
_DOT_EDGE = re.compile(rf"  n(\d+) -> n(\d+) \[label={_STRING}\];")
_MERMAID_NODE = re.compile(r'  n(\d+)\["([\w ./:#;-]+)"\]')
_MERMAID_EDGE = re.compile(r'  n(\d+) -->\|"([\w ./:#;-]+)"\| n(\d+)')


def in_one_line(text: str) -> str:
    return re.sub(r"\r\n|[\r\n]", "\n", text)


def of_dot(written: str) -> str:
    """A label as Graphviz shows it."""
    return html.unescape(re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], written))


def of_mermaid(written: str) -> str:
    """A label as Mermaid shows it: its entities are numbers."""
    assert not re.search(r"#(?!\d+;)", written)
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), written)


def read_dot(text: str) -> list[Triple]:
    first, *lines, last = text.split("\n")[:-1]
    assert (first, last) == ("digraph memories {", "}")
    names, triples = {}, []
    for line in lines[2:]:
        if node := _DOT_NODE.fullmatch(line):
            names[node[1]] = of_dot(node[2])
        else:
            edge = _DOT_EDGE.fullmatch(line)
            assert edge, line
            triples.append(Triple(names[edge[1]], of_dot(edge[3]), names[edge[2]]))
    assert len(set(names.values())) <= len(names)
    return triples


def read_mermaid(text: str) -> list[Triple]:
    first, *lines = text.split("\n")[:-1]
    assert first == "flowchart LR"
    names, triples = {}, []
    for line in lines:
        if node := _MERMAID_NODE.fullmatch(line):
            names[node[1]] = of_mermaid(node[2])
        else:
            edge = _MERMAID_EDGE.fullmatch(line)
            assert edge, line
            triples.append(Triple(names[edge[1]], of_mermaid(edge[2]), names[edge[3]]))
    return triples


@given(triples=TRIPLES)
@example(triples=[Triple('a"];n9 -> n9 [label="', "\\", "b\n}\r\n")])
@example(triples=[Triple("&quot;", "links to", "&amp;quot;")])
def test_dot_says_every_triple_whatever_the_names(triples: Sequence[Triple]) -> None:
    expected = [Triple(*map(in_one_line, triple)) for triple in triples]
    assert read_dot(format_dot(triples)) == expected


@given(triples=TRIPLES)
@example(triples=[Triple("#35;", "a|b", 'c"]')])
def test_mermaid_says_every_triple_whatever_the_names(triples: Sequence[Triple]) -> None:
    assert read_mermaid(format_mermaid(triples)) == list(triples)


def test_a_name_is_one_node() -> None:
    triples = [Triple("a.md", "links to", "b.md"), Triple("b.md", "superseded_by", "a.md")]
    assert format_dot(triples) == (
        "digraph memories {\n  rankdir=LR;\n  node [shape=box];\n"
        '  n0 [label="a.md"];\n  n1 [label="b.md"];\n'
        '  n0 -> n1 [label="links to"];\n  n1 -> n0 [label="superseded_by"];\n}\n'
    )
    assert format_mermaid(triples) == (
        'flowchart LR\n  n0["a.md"]\n  n1["b.md"]\n  n0 -->|"links to"| n1\n  n1 -->|"superseded_by"| n0\n'
    )


def test_a_graph_of_nothing_is_a_graph() -> None:
    assert read_dot(format_dot([])) == []
    assert format_mermaid([]) == "flowchart LR\n"
