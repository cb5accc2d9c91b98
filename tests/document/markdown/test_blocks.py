"""Blocks: cases as files, places inside lines, and markdown-it-py as the oracle."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings, strategies as st
from markdown_it import MarkdownIt

from mdmem.document.markdown.blocks import Heading, scan, sections, without_quotes
from mdmem.document.text.lines import Lines
from tests import speed
from tests.document.markdown import foreign_texts
from tests.speed import examples, soak_most
from tests.tables import cases

DATA = Path(__file__).parents[2] / "data" / "blocks"

# Level, first and last line (1-based), and title.
Found = tuple[int, int, int, str]


def headings(text: str) -> list[Found]:
    lines = Lines(text)
    found = scan(text).headings
    return [(h.level, h.line, lines.number(h.span.end - 1), h.title.strip()) for h in found]


def fences(text: str) -> list[tuple[int, int]]:
    lines = Lines(text)
    return [(lines.number(fence.start), lines.number(fence.end - 1)) for fence in scan(text).fences]


class Oracle:
    """The headings outside of lists and quotes, and the fences, that markdown-it-py finds."""

    _parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table").disable("inline")

    def __init__(self, text: str) -> None:
        tokens = self._parser.parse(text)
        self.headings: list[Found] = []
        self.fences: list[tuple[int, int]] = []
        for number, token in enumerate(tokens):
            first, end = token.map or (0, 0)
            if token.type == "heading_open" and token.level == 0:
                title = " ".join(line.strip() for line in tokens[number + 1].content.split("\n"))
                self.headings.append((int(token.tag[1:]), first + 1, end, title))
            elif token.type == "fence":
                self.fences.append((first + 1, end))


# ------------------------------------------------------------------------------------------ cases as files


def described(text: str) -> dict[str, list[str]]:
    found = scan(text)
    return {
        "headings": [f"{h.line}: {'#' * h.level} {h.title}" for h in found.headings],
        "fences": [f"{first}-{last}" for first, last in fences(text)],
        "blocks": [f"{b.line}: {b.id}" for b in found.blocks],
    }


@cases("path", sorted(DATA.glob("*.md")), ids=lambda path: path.stem)
def test_files_are_scanned_as_expected(path: Path) -> None:
    text = path.read_bytes().decode()
    assert described(text) == json.loads(path.with_suffix(".expected").read_text("utf-8"))


@cases("path", sorted(DATA.glob("*.md")), ids=lambda path: path.stem)
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_files_are_scanned_alike_whatever_ends_their_lines(path: Path, end: str) -> None:
    text = path.read_bytes().decode()
    assert described(text.replace("\n", end)) == described(text)


@cases("path", sorted(DATA.glob("*.md")), ids=lambda path: path.stem)
def test_the_oracle_finds_the_same_in_the_files(path: Path) -> None:
    text = path.read_bytes().decode()
    oracle = Oracle(text)
    assert headings(text) == oracle.headings
    assert fences(text) == oracle.fences


# -------------------------------------------------------------------------------------------------- oracle


LINES = [
    *("# h", "## h ##", "#", "# #", "#x", "###### six", "####### seven", "  # in", "    # code", "\t# tab"),
    *("#\ttab\t#\t", "h #", "# a \\#", "# a#", "# a ## b", "\\# no", "# a ^id", "text ^id", "###  ###"),
    *("===", "---", "--", "-", "=", "  ===", "    ===", "=== x", "--- -", "\t---"),
    *("- - -", "***", "* * *", "_ _ _", "+++", "--- x", "-\t-\t-"),
    *("```", "````", "~~~", "~~~~~", "``` py", "~~~ a`b", "```a`b", "   ```", "    ```", "``", "``` ```"),
    *("- ", "-", "- a", "* a", "+ a", "+", "1. a", "2. a", "1) a", "10. a", "1234567890. a", "01. a", "1."),
    *("-\ta", "-     a", "  - a", "    - a", "- # h", "- ```", "- > a", "- - a", "-   # x", "- a\n\n  # b"),
    *("-\n\n  a", "  a", "   a", "    a", "     a", "\ta", "  \ta", "      a"),
    *("  # h", "  ```", "  ---", "   ---", "  ~~~"),
    *("> a", ">a", ">", "> # q", "> ```", "> - a", "> ---", ">\ta", ">  # x", "> <div>", "> ==="),
    *(
        *("<div>", "</div>", "<!-- c", "-->", "<!-- c -->", "<!-->", "<!--->", "<?php", "?>", "<![CDATA["),
        "<![cdata[",
    ),
    *("]]>", "<!X", ">x", "<pre>", "</pre>", "<foo>", "</foo>", "<foo a='b' c>", "<foo a=b", "<foo a='b'c>"),
    *(
        *("<script>x</script>", "<SCRIPT>", "<b>x</b>", "<divx>", "<div/", "<div/>", "<h1", "<a href=x/>"),
        "< div>",
    ),
    *("[a]: /x", "[a]: /x 'y'", "[a]: <x y>", "[a] text", "[a]:", "a | b", "| - | - |", "*a*", "`a`"),
    *("text", "more text", "a\\", "a  ", "", "", "", "   ", "\t"),
]
# Known differences to markdown-it-py, and why they stay:
# - what follows a definition: it is part of the same paragraph until that ends (as in the reference
#   implementation), so that HTML, an indented line or a number that begins no list does not interrupt it;
#   markdown-it-py has the paragraph begin anew.
# - `<pre>` up to `</script>` or the other way around: any of the end tags ends the block there, its own here.
# - a quote, and a line indented by four or more: markdown-it-py takes an indented `>` for the mark of an open
#   quote, and loses its way behind an indented line that continues a paragraph in two quotes. Section 5.1 of
#   CommonMark has neither.
# - white space that is neither a space nor a tab is stripped from titles there and kept here: titles are
#   stripped before they are compared.
# - a line of one cell above a line of hyphens: a table of one column there; here and in the parser of GitHub,
#   which looks for headings first, it is a heading.
_DEFINITION_GOES_ON = re.compile(r"\[a\]:.*\n(?=.*\S)")
_ONE_CELL = re.compile(r"(?m)^[ \t>]*(?:\|[^|\n]*\|?|[^|\n]*\|)[ \t]*\n[ \t>]*-+[ \t]*$")
_INDENTED_LINE = re.compile(r"(?m)^ {0,3}(?: {4}|\t)")


def agreed(text: str) -> bool:
    """Whether `text` has none of the known differences."""
    if (
        _DEFINITION_GOES_ON.search(text)
        or _ONE_CELL.search(text)
        or ("pre>" in text and "script>" in text.lower())
    ):
        return False
    return not (">" in text and _INDENTED_LINE.search(text))


@pytest.mark.parametrize("more", soak_most([0, 3_000]))
def test_foreign_texts_have_the_headings_and_fences_of_the_oracle(more: int) -> None:
    compared = 0
    for path, text in foreign_texts.texts(more):
        if agreed(text.replace("\r\n", "\n")):
            oracle = Oracle(text)
            assert headings(text) == oracle.headings, path
            assert fences(text) == oracle.fences, path
            compared += 1
    assert compared > 300


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=8))
@settings(max_examples=examples(400))
def test_tricky_lines_have_the_headings_and_fences_of_the_oracle(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    assume(agreed(text))
    oracle = Oracle(text)
    assert headings(text) == oracle.headings
    assert fences(text) == oracle.fences


TOKENS = [
    *("\n", "\n", "\n", "\n", " ", " ", "  ", "    ", "\t"),
    *("#", "##", "-", "--", "---", "=", "===", ">", "- ", "* ", "1. ", "2. ", "10) ", "+", "***", "___", "_"),
    *("```", "~~~", "`", "\\", "a", "b", "[a]: /u\n", "^a"),
    *(
        *("<", "<!--", "-->", "<div>", "</div>", "<b>", "<x y='1'>", "<?", "?>", "<!A", "<![CDATA[", "]]>"),
        "<pre>",
    ),
]


@given(st.lists(st.sampled_from(TOKENS), min_size=2, max_size=24))
@example(["- ", "\n", "\n", "  ", "#", " ", "a"])
@example(["> ", "a", "\n", "==="])
@settings(max_examples=examples(500))
def test_tricky_characters_have_the_headings_and_fences_of_the_oracle(tokens: list[str]) -> None:
    text = "".join(tokens) + "\n"
    assume(agreed(text))
    oracle = Oracle(text)
    assert headings(text) == oracle.headings
    assert fences(text) == oracle.fences


@pytest.mark.parametrize(
    "text",
    [
        "> > a\n    - lazy text\n===\n---\n",
        "> a\n    > code\n",
    ],
)
def test_where_the_oracle_errs_an_indented_line_is_still_no_mark_of_a_quote(text: str) -> None:
    assert not agreed(text)
    assert (headings(text), fences(text)) == ([], [])


# ------------------------------------------------------------------------------------------------- headings


@cases(
    "text, title",
    [
        ("# a", "a"),
        ("#\ta\t", "a"),
        ("#   a   ##   ", "a"),
        ("# a #b", "a #b"),
        ("# a\\#", "a\\#"),
        ("# a ### #", "a ###"),
        ("# #", ""),
        ("##", ""),
        ("### ###", ""),
        ("# # a", "# a"),
        ("   # a", "a"),
        ("# [[link]] `code`", "[[link]] `code`"),
        ("# 😀 \u00a0é", "😀 \u00a0é"),
        ("# a\x0cb\u2028c", "a\x0cb\u2028c"),
        ("a\n===", "a"),
        ("  a  \n  b\t\n--- ", "a b"),
    ],
)
def test_a_title_is_what_is_written_without_the_marks(text: str, title: str) -> None:
    (heading,) = scan(text).headings
    assert heading.title == title
    written = text[slice(*heading.title_span)]
    assert " ".join(line.strip(" \t") for line in written.split("\n")) == title
    assert heading.span == (0, len(text))


def test_the_span_of_a_heading_has_all_its_lines_with_their_ends() -> None:
    text = "p\r\n\r\n# A\r\nTwo\r\nlines\r\n---\r\nend"
    atx, setext = scan(text).headings
    assert text[slice(*atx.span)] == "# A\r\n"
    assert text[slice(*setext.span)] == "Two\r\nlines\r\n---\r\n"
    assert text[slice(*setext.title_span)] == "Two\r\nlines"
    assert (setext.title, setext.line, setext.level) == ("Two lines", 4, 2)


def test_an_underlined_title_may_begin_with_a_hash() -> None:
    (heading,) = scan("[a]: /b\n    # code\n===\n").headings
    assert (heading.title, heading.level) == ("# code", 1)


def test_scanning_can_begin_anywhere_and_tells_places_of_the_whole_text() -> None:
    text = "---\n# no: heading\n---\n# Yes ^id\n```\n"
    start = text.index("# Yes")
    found = scan(text, start, 4)
    assert [(h.title, h.line, h.span.start) for h in found.headings] == [("Yes ^id", 4, start)]
    assert [(b.id, b.line) for b in found.blocks] == [("id", 4)]
    assert [text[slice(*fence)] for fence in found.fences] == ["```\n"]


@cases("blank", ["\x0c", "\u00a0", "\u2028", "\x85", "\u3000"])
def test_only_spaces_and_tabs_make_a_blank_line(blank: str) -> None:
    assert [found[:3] for found in headings(f"a\n{blank}\nb\n===\n")] == [(1, 1, 4)]
    assert [h.title for h in scan(f"#{blank}a\n").headings] == []


def test_letters_that_only_look_alike_open_no_html_block() -> None:
    """Ignoring case folds U+017F to `s` and U+212A to `k` unless it is told not to."""
    assert [h.title for h in scan("<\u017fcript>\n# a\n").headings] == ["a"]
    assert [h.title for h in scan("<lin\u212a>\n# a\n").headings] == ["a"]


# ------------------------------------------------------------------------------------------------ block ids


@cases(
    "line, id_",
    [
        ("text ^id", "id"),
        ("- item ^a-1", "a-1"),
        ("> quote ^q", "q"),
        ("^alone", "alone"),
        ("# Title ^t", "t"),
        ("text\t^id \t", "id"),
        ("  - [ ] task ^T9", "T9"),
        ("| cell | ^c", "c"),
        ("a^2 ^id", "id"),
    ],
)
def test_a_block_id_ends_its_line(line: str, id_: str) -> None:
    text = f"before\n\n{line}\nafter\n"
    (block,) = scan(text).blocks
    assert block.id == text[slice(*block.id_span)] == id_
    assert text[slice(*block.span)] == f"{line}\n"
    assert block.line == 3


@cases(
    "text",
    [
        *("a^2", "x^id", "text ^id more", "text ^", "text ^a_b", "text ^é", "[^note]", "text [^1]"),
        *("```\ncode ^id\n```", "- ```\n  code ^id\n  ```", "    code ^id", "<!--\ncomment ^id\n-->"),
        *("<div>\nhtml ^id\n</div>", "text ^id\u2028"),
    ],
)
def test_what_is_no_block_id(text: str) -> None:
    assert scan(text).blocks == ()


# ------------------------------------------------------------------------------------- texts, definitions


def texts(text: str) -> list[str]:
    found = scan(text)
    return [without_quotes(text, found.quotes)[slice(*span)] for span in found.texts]


@cases(
    "text, expected",
    [
        ("a\nb\n\nc", ["a\nb", "c"]),
        ("# A #\n## \nb\n===\nc", ["A", "b", "c"]),
        ("- a\n  b\n- c\n\n  d\n1. e\n", ["a\n  b", "c", "d", "e"]),
        ("- [ ] a\n- **b** c\n- - d\n- # e\n", ["[ ] a", "**b** c", "d", "e"]),
        ("> a\n> b\nc\n", ["a\n  b\nc"]),
        ("> - a\n>   b\n", ["a\n    b"]),
        ("a\n```\nb\n```\nc\n    d\n\n    e\n<div>\nf\n</div>\n\ng\n***\n", ["a", "c\n    d", "g"]),
        ("[a]: /b\nc\n\n[d]:\n/e\n'f'\ng\n", ["c", "g"]),
        ("[^1]: [[note]]\n[^2]: a note\n\n    more\n", ["[[note]]", "a note", "more"]),
        ("|a|b|\n|-|-|\n| `c|d` | e |\n", ["a", "b", " `c", "d` "]),
        ("", []),
    ],
)
def test_texts_are_what_paragraphs_and_headings_hold_without_the_marks_around_them(
    text: str, expected: list[str]
) -> None:
    assert texts(text) == expected
    assert [t.replace("\r\n", "\n") for t in texts(text.replace("\n", "\r\n"))] == expected


@given(st.lists(st.sampled_from(LINES), max_size=12))
@settings(max_examples=examples(300))
def test_texts_are_apart_and_in_order_and_none_is_in_a_fence(lines: list[str]) -> None:
    found = scan("\n".join(lines))
    for spans in (found.texts, found.quotes, found.fences, tuple(d.span for d in found.definitions)):
        ends = [0, *(span.end for span in spans)]
        assert all(end <= span.start < span.end for end, span in zip(ends, spans, strict=False))
    verbatim = [*found.fences, *(d.span for d in found.definitions)]
    assert not any(a.start < b.end and b.start < a.end for a in found.texts for b in verbatim)


@cases(
    "text, label, destination",
    [
        ("[a]: /b", "a", "/b"),
        ("  [a b]:\t<c d> 'e' \n", "a b", "<c d>"),
        ("> [a]: /b (c)\n", "a", "/b"),
        ("- [a]: /b\n", "a", "/b"),
        ("[a]:\n  /b\n  'c\n  d'\n", "a", "/b"),
        ("> [a]:\n> /b\n", "a", "/b"),
        ("[a\\]]: /b(c)\n", "a\\]", "/b(c)"),
    ],
)
def test_a_definition_has_a_label_and_a_destination(text: str, label: str, destination: str) -> None:
    (definition,) = scan(text).definitions
    assert definition.label == label
    assert text[slice(*definition.destination)] == destination
    assert text[slice(*definition.span)] == text.strip(" >-\n\t").replace("- ", "")
    assert scan(text).texts == ()


@cases("text", ["a\n[a]: /b", "[a]:", "[a]: b)", "[ ]: /b", "[a]: /b c", "[a]:\n\n/b", "    [a]: /b"])
def test_what_is_no_definition(text: str) -> None:
    assert scan(text).definitions == ()


# ------------------------------------------------------------------------------------------------- sections


def test_a_section_reaches_to_the_next_heading_of_its_level_or_above() -> None:
    text = "intro\n# A\na\n### C\nc\n## B\nb\n# D\n"
    found = sections(scan(text).headings, len(text))
    assert [(s.path, text[slice(*s.span)], text[slice(*s.own)]) for s in found] == [
        (("A",), "# A\na\n### C\nc\n## B\nb\n", "a\n"),
        (("A", "C"), "### C\nc\n", "c\n"),
        (("A", "B"), "## B\nb\n", "b\n"),
        (("D",), "# D\n", ""),
    ]


def test_a_text_without_headings_has_no_sections() -> None:
    assert sections((), 10) == ()


@given(st.lists(st.sampled_from(LINES), max_size=12))
@settings(max_examples=examples(300))
def test_headings_and_what_stands_under_them_make_the_text_up(lines: list[str]) -> None:
    text = "\n".join(lines)
    found: tuple[Heading, ...] = scan(text).headings
    parts = sections(found, len(text))
    first = found[0].span.start if found else len(text)
    assert text == text[:first] + "".join(text[p.heading.span.start : p.own.end] for p in parts)
    for number, part in enumerate(parts):
        inside = [s for s in parts if part.span.start <= s.heading.span.start < part.span.end]
        assert inside[0] is part
        assert all(s.heading.level > part.heading.level for s in inside[1:])
        assert all(s.path[: len(part.path)] == part.path for s in inside)
        following = parts[number + len(inside) :]
        assert not following or following[0].heading.level <= part.heading.level
        assert part.path[-1] == part.heading.title


# ------------------------------------------------------------------------------------------ hostile texts

N = 100_000 if speed.is_all else 25_000
HOSTILE = {
    "#": "#" * (4 * N),
    "# lines": "#\n" * (N // 2),
    "closing #": "# a" + " #" * (2 * N) + "b",
    "blanks in a heading": "# a" + " " * (4 * N) + "b",
    "backticks": "`" * (4 * N) + "x`",
    "<": "<" * (4 * N),
    "< lines": "<a\n" * (7 * N // 10),
    "attributes": "<a" + " b=c" * N + "<",
    "attributes without values": "<a" + " b" * (2 * N) + "\x01",
    "blanks in a tag": "<a" + " " * (4 * N) + "!",
    "break": "- " * (2 * N) + "x",
    "underline": "a\n" + "=" * (4 * N) + "x",
    "quotes": ">" * (2 * N) + "\n" + "> a\n" * (N // 2),
    "items": "- " * N + "\n" * (2 * N),
    "definition": "[" + "a" * (4 * N) + "]: " + "x" * (4 * N) + " y",
    "title of a definition": "[a]: x '" + "y " * (2 * N),
    "block ids": "a" + " ^a" * (13 * N // 10) + " b",
    "blanks behind a block id": "a ^a" + " " * (4 * N) + "!",
    "one paragraph": "a\n" * N + "===\n",
    "lines that no deep quote begins": ">" * (2 * N) + "a\n" + "a\n" * (2 * N),
    "lines that no deep item begins": "- " * N + "a\n" + "a\n" * (2 * N),
    "blanks": " " * (4 * N) + "x",
    "tabs": "\t" * (4 * N) + "x",
    "comments": "<!--\n" * (8 * N // 10),
}
HEADING_LINES = {
    "# lines": list(range(1, N // 2 + 1)),
    "closing #": [1],
    "blanks in a heading": [1],
    "one paragraph": [1],
}


@cases("name", HOSTILE)
def test_work_grows_with_the_length_of_a_hostile_text_and_no_faster(name: str) -> None:
    """Where it grew with the square, these would take hours."""
    assert [heading.line for heading in scan(HOSTILE[name]).headings] == HEADING_LINES.get(name, [])
