"""What the tree of a document has, and that it loses no byte."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document.document import Limits, parse_text
from mdmem.document.outline import Margin, TreeNode, read_tree
from mdmem.errors import TooManyParts
from tests.speed import examples

LINES = st.sampled_from(
    [
        *(
            "- a",
            "  - b",
            "- - c",
            "1. d",
            "   1) e",
            "",
            "",
            "> f",
            "> - g",
            "# h",
            "## i ^z",
            "text",
            "```",
        ),
        *("| a | b |", "|---|---|", "| 1 | 2 |", "  | q |", "  |---|", "[x]: y.md", "  [y]: z", "[^1]: foot"),
        *("    code", "\tcode", "<div>", "<!-- c -->", "<!--", "-->", "***", "---", "===", "  more", "^only"),
        *(
            "      deep",
            "x ^id",
            "- k ^k",
            "-",
            "- # inner",
            "- > q",
            "-     - code",
            "\u2028",
            "\x0c",
            "\xa0",
        ),
        *("- \tx", "\t- t", "\t\t- u", "    para", "  ", "\t", "- ```", "1. | a |", "漢字", "\U0001f600"),
    ]
)
NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])
ENDS = st.sampled_from(["", "\n", "\r\n", "\r", "\n\n"])
STARTS = st.sampled_from(["", "\ufeff", "---\na: 1\n---\n", "---\r\na: 1\r\n---"])


def show(node: TreeNode, depth: int = 0) -> list[str]:
    """The tree below a node, a line for each node."""
    own = f"{'  ' * depth}{node.kind} {node.words!r}" if node.line and node.kind != "list" else node.kind
    own = own if own.startswith(" ") else "  " * depth + own
    return [own, *(line for child in node.children for line in show(child, depth + 1))]


def tree(text: str) -> list[str]:
    return show(read_tree(parse_text("a.md", text)).root)[1:]


def test_sections_are_flat_and_hold_blocks_in_order() -> None:
    assert tree("above\n\n# A\n\n- a\n  1. b\n\n     c\n\n## B\n\n| x | y |\n|--|--|\n| 1 | 2 |\n") == [
        "  section",
        "    paragraph 'above'",
        "  section 'A'",
        "    list",
        "      item 'a'",
        "        list",
        "          item 'b'",
        "            paragraph 'c'",
        "  section 'B'",
        "    table 'x | y'",
        "      row '1 | 2'",
    ]


def test_lists_that_are_indented_by_tabs_hold_each_child() -> None:
    assert tree("- a\n\t- b\n\t- c\n\t\t- d\n- e\n") == [
        "  section",
        "    list",
        "      item 'a'",
        "        list",
        "          item 'b'",
        "          item 'c'",
        "            list",
        "              item 'd'",
        "      item 'e'",
    ]


def test_quotes_footnotes_and_code_hold_no_nodes() -> None:
    assert tree("> - a\n> - b\n\n[^1]: - c\n    - d\n\n```\n- e\n```\n") == [
        "  section",
        "    quote '> - a\\n> - b'",
        "    footnote '[^1]: - c\\n- d'",
        "    code '```\\n- e\\n```'",
    ]


def test_a_section_knows_its_path_and_the_section_above() -> None:
    sections = read_tree(parse_text("a.md", "# A\n\n### B\n\n## C\n\n# D\n")).root.children
    assert [(each.level, each.path) for each in sections] == [
        (0, ()),
        (1, ("A",)),
        (3, ("A", "B")),
        (2, ("A", "C")),
        (1, ("D",)),
    ]
    assert [sections.index(each.above) if each.above else None for each in sections] == [None, 0, 1, 1, 0]


def test_a_list_has_the_blank_lines_above_its_first_item() -> None:
    nodes = {node.kind: node for node in read_tree(parse_text("a.md", "text\n\n- a\n")).nodes}
    assert (nodes["list"].lead, nodes["item"].lead) == ("\n", "")


def test_markers_ids_and_labels_are_apart_from_words() -> None:
    text = "## T ^t\n\n3)  one ^i\n\n[^N]: foot\n\n[A  b]: x.md\n"
    found = [(n.kind, n.marker, n.words, n.id, n.label) for n in read_tree(parse_text("a.md", text)).nodes]
    assert [each for each in found if each[0] not in {"root", "list"}][1:] == [
        ("section", "##", "T", "t", ""),
        ("item", "3)  ", "one", "i", ""),
        ("footnote", "", "[^N]: foot", "", "^n"),
        ("definition", "", "[A  b]: x.md", "", "a b"),
    ]


def test_a_line_that_ends_in_a_block_id_ends_a_paragraph() -> None:
    assert tree("above\none ^a\nrest\n")[1:] == ["    paragraph 'above\\none'", "    paragraph 'rest'"]


def test_lines_of_an_item_are_shifted_to_another_margin() -> None:
    """What is lazily indented, and blank lines, stay."""
    text = "  - b\n\n    c\nlazy\n"
    assert Margin("", 2).shifted(text, Margin("    ", 3)) == "       - b\n\n         c\nlazy\n"


def test_nodes_are_bounded() -> None:
    with pytest.raises(TooManyParts):
        read_tree(parse_text("a.md", "- a\n" * 100, Limits(max_parts=30)))


@settings(max_examples=examples(600))
@given(STARTS, st.lists(LINES, max_size=14), NEWLINES, ENDS)
@example("", ["- - c", "  - b", "- # inner"], "\n", "\n")
@example("", ["- a", "\t- b", "\t- c"], "\n", "")
@example("\ufeff", ["- a", "  - b"], "\r", "\r")
def test_the_tree_has_every_byte_and_each_line_once(
    start: str, lines: list[str], newline: str, end: str
) -> None:
    text = start + newline.join(lines) + end
    document = parse_text("a.md", text)
    found = read_tree(document)
    assert found.source == document.body
    counts = [0] * len(document.lines)
    reached = 0
    for node in found.nodes:
        assert bool(node.head.strip(" \t\r\n")) == (
            node.kind not in {"root", "list"} and (node.kind != "section" or node.level > 0)
        )
        assert node.kind != "list" or node.children
        if node.head:
            assert node.line > reached, "in order"
            reached = node.last
            span = slice(document.lines.span(node.line).start, document.lines.span(node.last).end)
            assert text[span].endswith(node.head)
            for line in range(node.line, node.last + 1):
                counts[line - 1] += 1
    first = document.lines.number(document.body_span.start) if document.body else len(counts) + 1
    for number, count in enumerate(counts[first - 1 :], first):
        assert count == 1 or not document.lines.content(number).strip(" \t\ufeff"), number
        assert count <= 1
