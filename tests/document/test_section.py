"""Edits of a section change that section, and nothing else of the document."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings, strategies as st
from markdown_it import MarkdownIt

from mdmem.document.document import Document, parse, parse_text
from mdmem.document.edit import TextEdit, splice
from mdmem.document.section import (
    append_block,
    append_to_section,
    find_section,
    insert_after_section,
    insert_before_section,
    replace_section,
)
from mdmem.errors import EditRefused, MdmemError, SectionAmbiguous, SectionNotFound
from tests.speed import examples
from tests.tables import cases

DATA = Path(__file__).parents[1] / "data" / "section"
Verb = Callable[[Document, str, str], list[TextEdit]]
VERBS: dict[str, Verb] = {
    "append": append_to_section,
    "replace": replace_section,
    "replace_own": lambda document, heading, new: replace_section(
        document, heading, new, keep_subsections=True
    ),
    "before": insert_before_section,
    "after": insert_after_section,
}


def done(document: Document, edits: list[TextEdit]) -> Document:
    return parse_text(document.path, splice(document.text, edits))


# ---------------------------------------------------------------------------------------------- cases


def stored(name: str) -> list[tuple[str, str]]:
    text = (DATA / f"{name}.md").read_text()
    return re.findall(r"^%% case ([^\n]*)\n(.*?)(?=^%% case |\Z)", text, re.MULTILINE | re.DOTALL)


def parts(case: str) -> dict[str, str]:
    """The parts of a case by their names; the blank line before the next case belongs to none."""
    found = dict(re.findall(r"^%% ([^\n]*)\n(.*?)(?=^%% |\Z)", case, re.MULTILINE | re.DOTALL))
    last = list(found)[-1]
    found[last] = found[last].removesuffix("\n\n") + "\n" if found[last].endswith("\n\n") else found[last]
    for key in [key for key in found if key.endswith(" (no final newline)")]:
        found[key.removesuffix(" (no final newline)")] = found.pop(key).removesuffix("\n")
    return found


def run(case: str, newline: str = "\n") -> tuple[Document, dict[str, str]]:
    found = parts(case)
    document = parse_text("n.md", found["document"].replace("\n", newline))
    verb, heading = next(key for key in found if key.partition(" ")[0] in VERBS).split(" ", 1)
    return done(document, VERBS[verb](document, heading, found[f"{verb} {heading}"])), found


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@cases(
    "case",
    [
        pytest.param(case, id=f"{name}: {title}")
        for name in ("append", "replace", "around")
        for title, case in stored(name)
    ],
)
def test_case(case: str, newline: str) -> None:
    after, found = run(case, newline)
    assert after.text == found["result"].replace("\n", newline)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@cases("case", [pytest.param(case, id=title) for title, case in stored("refused")])
def test_a_refusal_says_why(case: str, newline: str) -> None:
    with pytest.raises(MdmemError) as caught:
        run(case, newline)
    assert str(caught.value).startswith("n.md: ")
    assert parts(case)["refused"].removesuffix("\n") in str(caught.value)
    assert caught.value.hint


# ------------------------------------------------------------------------------------- how one is found

NESTED = """\
# Design

## Index

# Notes

## Index

### Deep

## A > B

# A

## B

# *Marked* `title`

Set in
two lines
===
"""


@cases(
    "heading, line",
    [
        *(("Design", 1), ("  # Design ", 1), ("# Design #", 1), ("Design > Index", 3), ("Design>Index", 3)),
        *(("Notes > Index", 7), ("## Notes > Index", 7), ("Index > Deep", 9), ("Notes > Index > Deep", 9)),
        *(("Notes > A > B", 11), ("*Marked* `title`", 17), ("Set in two lines", 19)),
        ("# Set in two lines", 19),
    ],
)
def test_a_section_is_found_by_title_path_or_marks(heading: str, line: int) -> None:
    assert find_section(parse_text("n.md", NESTED), heading).heading.line == line


def test_a_title_with_a_separator_is_found_by_its_letters() -> None:
    document = parse_text("n.md", "# Cause > effect\n\n# a>b\n")
    assert find_section(document, "Cause > effect").heading.line == 1
    assert find_section(document, "a>b").heading.line == 3
    assert find_section(document, "a > b").heading.line == 3


@pytest.mark.parametrize(("heading", "lines"), [("Index", (3, 7)), ("## Index", (3, 7)), ("A > B", (11, 15))])
def test_a_heading_that_means_several_is_ambiguous(heading: str, lines: tuple[int, ...]) -> None:
    with pytest.raises(SectionAmbiguous) as caught:
        find_section(parse_text("n.md", NESTED), heading)
    assert (caught.value.heading, caught.value.lines) == (heading, lines)


@cases(
    "heading, near",
    [
        ("design", ("Design",)),
        ("INDEX", ("Index",)),
        ("Indexes", ("Index",)),
        ("NOTEZ", ("Notes",)),
        ("### Index", ("Index",)),
        ("Desing > Index", ("Design > Index", "Notes > Index", "Design")),
    ],
)
def test_a_heading_that_is_not_there_is_answered_with_the_headings_nearest_first(
    heading: str, near: tuple[str, ...]
) -> None:
    with pytest.raises(SectionNotFound) as caught:
        find_section(parse_text("n.md", NESTED), heading)
    assert caught.value.near[: len(near)] == near
    assert len(caught.value.near) >= 5  # all that there are


def test_with_nothing_near_the_headings_are_named() -> None:
    with pytest.raises(SectionNotFound) as caught:
        find_section(parse_text("n.md", NESTED), "Unlike all")
    assert caught.value.near[:3] == ("Design", "Index", "Notes")


@cases("text", ["", "---\na: 1\n---\n", "```\n# A\n```\n", "    # A\n", "> # A\n"])
def test_where_there_are_no_headings_there_are_no_sections(text: str) -> None:
    with pytest.raises(SectionNotFound) as caught:
        find_section(parse_text("n.md", text), "A")
    assert caught.value.near == ()
    assert "no headings" in caught.value.hint


def test_json_has_no_sections() -> None:
    with pytest.raises(SectionNotFound):
        append_to_section(parse("n.json", b'"# A\\n"'), "A", "x")


def test_a_long_heading_that_is_not_there_is_not_compared_letter_by_letter() -> None:
    text = "".join(f"# {'ab' * 2_000}{number}\n" for number in range(500))
    with pytest.raises(SectionNotFound) as caught:
        find_section(parse_text("n.md", text), "ba" * 20_000)
    assert len(caught.value.near) == 20


# ----------------------------------------------------------------------------------- what is left alone


@pytest.mark.parametrize("verb", ["append", "before", "after"])
@pytest.mark.parametrize("new", ["", "\n", " \t\r\n \n"])
def test_nothing_but_blanks_adds_nothing(verb: str, new: str) -> None:
    assert VERBS[verb](parse_text("n.md", "# A\n\ntext\n"), "A", new) == []


def test_lines_that_end_differently_stay_and_new_ones_are_verbatim() -> None:
    document = parse_text("n.md", "# A\r\n\r\nold\n# B\r\n")
    assert done(document, append_to_section(document, "A", "x\ny")).text == (
        "# A\r\n\r\nold\r\n\r\nx\ny\n# B\r\n"
    )


def test_a_byte_order_mark_stays_first() -> None:
    document = parse_text("n.md", "\ufeff# A\n")
    assert done(document, insert_before_section(document, "A", "new")).text == "\ufeffnew\n\n# A\n"


def test_frontmatter_that_passes_a_limit_is_no_hindrance() -> None:
    head = f"---\nkey: {'[' * 40 + ']' * 40}\n---\n"
    document = parse_text("n.md", f"{head}# A\n")
    assert done(document, append_to_section(document, "A", "new")).text == f"{head}# A\n\nnew\n"
    assert done(document, append_block(document, "new")).text == f"{head}# A\n\nnew\n"


# --------------------------------------------------------------------------------------- append_block


@cases(
    "before, after",
    [
        ("", "new\n"),
        ("\n \n", "new\n"),
        ("text", "text\n\nnew\n"),
        ("text\n", "text\n\nnew\n"),
        ("text\n\n\n", "text\n\nnew\n"),
        ("text  \n", "text  \n\nnew\n"),
        ("---\na: 1\n---\n", "---\na: 1\n---\n\nnew\n"),
        ("---\na: 1\n---", "---\na: 1\n---\n\nnew\n"),
        ("---\na: 1\n---\n\n\n", "---\na: 1\n---\n\nnew\n"),
        ("---\r\na: 1\r\n---\r\ntext", "---\r\na: 1\r\n---\r\ntext\r\n\r\nnew\r\n"),
        ("\ufeff", "\ufeffnew\n"),
    ],
)
def test_a_block_is_appended_behind_one_blank_line(before: str, after: str) -> None:
    document = parse_text("n.md", before)
    assert done(document, append_block(document, "\n\nnew\n\n")).text == after
    assert append_block(document, "\n \n") == []


# ----------------------------------------------------------------------------------------- properties

LINES = st.sampled_from(
    [
        "", "text", "text  ", "more text", "- item", "  - nested", "1. one", "2. two", "  indented",
        "    code", "> quote", "---", "===", "***", "```", "~~~ py", "  ```", "<div>", "</div>",
        "<!-- open", "-->", "<!-- closed -->", "[a]: /url", "\ttab", "#tag", "^id",
    ]
)  # fmt: skip
HEADINGS = st.sampled_from(["# A", "## B", "### C", "# D ##", "E\n===", "F f\n---", "  ## G"])
DOCUMENTS = st.tuples(
    st.sampled_from(["", "---\na: 1\n---\n", "\ufeff"]),
    st.lists(LINES | HEADINGS, max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\n", "\n\n"]),
).map(lambda t: (t[0] + "\n".join(t[1]) + t[3]).replace("\n", t[2]))
TEXTS = st.lists(LINES, min_size=1, max_size=5).map("\n".join)


def own(document: Document) -> list[str]:
    """What stands under each heading, without blank lines around it."""
    return [
        re.sub(r"\A(?:[ \t]*[\r\n])+|(?:[\r\n]+[ \t]*)+\Z", "", document.text[slice(*section.own)])
        for section in document.sections
    ]


def titles(document: Document) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in document.headings]


def oracle(text: str) -> list[str]:
    """The headings outside of lists and quotes that markdown-it-py finds."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [
        f"{token.tag} {tokens[number + 1].content}"
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


def bare(new: str, newline: str) -> str:
    return re.sub(r"\A(?:[ \t]*\n)+|(?:\n[ \t]*)+\Z", "", new).replace("\n", newline)


def drawn(text: str, number: int) -> tuple[Document, int, str]:
    """A document, a section of it that can be named without doubt, and its name with its level."""
    document = parse_text("n.md", text)
    assume(document.sections and document.lines.uniform)
    number %= len(document.sections)
    heading = document.sections[number].heading
    assume(titles(document).count((heading.level, heading.title)) == 1)
    return document, number, f"{'#' * heading.level} {heading.title}"


@given(text=DOCUMENTS, new=TEXTS, number=st.integers(0, 9))
@example(text="# A\n\n- x\n  ```\n# D ##", new="text", number=0)
@settings(max_examples=examples(100))
def test_an_append_ends_its_section_and_changes_no_other(text: str, new: str, number: int) -> None:
    document, number, name = drawn(text, number)
    wanted = bare(new, document.lines.newline)
    assume(wanted.strip() and not parse_text("n.md", f"# x\n\n{new}").headings[1:])
    try:
        after = done(document, append_to_section(document, name, new))
    except EditRefused:
        return
    assert titles(after) == titles(document)
    before_texts, after_texts = own(document), own(after)
    assert after_texts[number].startswith(before_texts[number])
    assert after_texts[number].endswith(wanted)
    assert after_texts[:number] + after_texts[number + 1 :] == (
        before_texts[:number] + before_texts[number + 1 :]
    )
    assert after.frontmatter.span == document.frontmatter.span
    assert oracle(after.body) == oracle(document.body)


@given(text=DOCUMENTS, new=TEXTS, number=st.integers(0, 9), keep=st.booleans())
@settings(max_examples=examples(200))
def test_a_replaced_section_is_exactly_the_new_text(text: str, new: str, number: int, keep: bool) -> None:
    document, number, name = drawn(text, number)
    wanted = bare(new, document.lines.newline)
    assume(not parse_text("n.md", f"# x\n\n{new}").headings[1:])
    try:
        after = done(document, replace_section(document, name, new, keep_subsections=keep))
    except EditRefused:
        return
    section = document.sections[number]
    gone = [
        n
        for n, s in enumerate(document.sections)
        if n > number and s.heading.span.start < section.span.end and not keep
    ]
    left = [n for n in range(len(document.sections)) if n not in gone]
    assert titles(after) == [titles(document)[n] for n in left]
    expected = [wanted if n == number else own(document)[n] for n in left]
    assert own(after) == expected
    before = document.text[: section.heading.span.end]
    assert after.text.startswith(before)


@given(text=DOCUMENTS, new=TEXTS, number=st.integers(0, 9), behind=st.booleans())
@settings(max_examples=examples(100))
def test_an_insertion_lengthens_the_text_above_it_and_changes_no_other(
    text: str, new: str, number: int, behind: bool
) -> None:  # fmt: skip
    document, number, name = drawn(text, number)
    wanted = bare(new, document.lines.newline)
    assume(wanted.strip() and not parse_text("n.md", f"# x\n\n{new}").headings[1:])
    try:
        edits = (insert_after_section if behind else insert_before_section)(document, name, new)
        after = done(document, edits)
    except EditRefused:
        return
    assert titles(after) == titles(document)
    ((start, end, added),) = edits
    assert (start, added.replace("\r\n", "\n").replace("\r", "\n").strip("\n")) == (end, bare(new, "\n"))
    before_texts, after_texts = own(document), own(after)
    changed = [n for n, (a, b) in enumerate(zip(before_texts, after_texts, strict=True)) if a != b]
    last = max(
        n for n, s in enumerate(document.sections) if s.span.start < document.sections[number].span.end
    )
    expected = last if behind else number - 1
    assert changed == ([expected] if expected >= 0 else [])
    assert oracle(after.body) == oracle(document.body)


PLAIN = LINES.filter(lambda line: not line.strip().startswith(("```", "~~~", "<")))


@given(
    # A heading that is indented may fall into a list: that is a reason, too.
    lines=st.lists((PLAIN | HEADINGS).filter(lambda line: not re.match(r" {1,3}[^ -]", line)), max_size=12),
    new=st.lists(PLAIN, min_size=1, max_size=5).map("\n".join),
    number=st.integers(0, 9),
)
@settings(max_examples=examples(200))
def test_an_append_is_refused_only_for_code_html_and_frontmatter(
    lines: list[str], new: str, number: int
) -> None:
    document, _, name = drawn("\n".join(["# First", *lines]), number)
    after = done(document, append_to_section(document, name, new))
    wanted = bare(new, "\n")
    # It may read as if it stood across the end of a section before: it is there, and nothing went.
    assert wanted in after.text
    assert len(after.text) >= len(document.text) + len(wanted) or not wanted.strip()


SYNCED = """# Project

## Decisions

- a

<!-- mdmem:begin e3b0c442.8b58ff10 from memories/rules/, by `mdmem project sync` -->
## commits

One purpose.
<!-- mdmem:end -->
"""


@pytest.mark.parametrize(
    ("edit", "text", "made"),
    [
        (append_to_section, "- b", "- a\n- b\n\n<!--"),
        (replace_section, "- b", "## Decisions\n\n- b\n\n<!--"),
        (insert_after_section, "## New\n\nb", "- a\n\n## New\n\nb\n\n<!--"),
    ],
)
def test_a_section_ends_before_the_block_that_is_synced(
    edit: Callable[[Document, str, str], list[TextEdit]], text: str, made: str
) -> None:
    document = parse_text("AGENTS.md", SYNCED)
    changed = splice(SYNCED, edit(document, "Decisions", text))
    assert made in changed
    assert changed.partition("<!--")[2] == SYNCED.partition("<!--")[2]
