"""What a fact of a memory is."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document.document import Document, Limits, parse
from mdmem.document.merging.facts import Fact, facts
from mdmem.errors import TooManyParts
from tests.speed import examples
from tests.tables import cases

NOTE = """---
title: A
---
# Db

First line
goes on.

- one ^a
  wrapped

  second paragraph
  - nested
    1. deeper
- two

| name | value |
|------|-------|
| x    | 1     |

## Index

> a quote
> - in it

```py
x = 1

y = 2
```
[ref]: other.md

***
[^1]: A note.
"""


def read(text: str) -> tuple[Fact, ...]:
    return facts(document(text))


def document(text: str) -> Document:
    return parse("a.md", text.encode())


def told(text: str) -> list[tuple[str, str]]:
    return [(fact.kind, fact.text) for fact in read(text)]


def test_each_item_row_heading_and_block_is_a_fact() -> None:
    assert told(NOTE) == [
        ("heading", "# Db"),
        ("paragraph", "First line goes on."),
        ("item", "one wrapped"),
        ("paragraph", "second paragraph"),
        ("item", "nested"),
        ("item", "deeper"),
        ("item", "two"),
        ("row", "name | value"),
        ("row", "x | 1"),
        ("heading", "## Index"),
        ("quote", "a quote - in it"),
        ("code", "```py\nx = 1\n\ny = 2\n```"),
        ("definition", "[ref]: other.md"),
        ("footnote", "[^1]: A note."),
    ]


def test_a_fact_has_its_place() -> None:
    found = {fact.text: fact for fact in read(NOTE)}
    one = found["one wrapped"]
    assert (one.id, one.path, one.line, one.last) == ("a", ("Db",), 9, 10)
    assert NOTE[slice(*one.span)] == "- one ^a\n  wrapped"
    by_number = read(NOTE)
    assert [by_number[f.parent].text if f.parent is not None else None for f in by_number[:7]] == [
        None,
        "# Db",
        "# Db",
        "one wrapped",
        "one wrapped",
        "nested",
        "# Db",
    ]
    assert found["## Index"].path == ("Db",)
    assert found["[^1]: A note."].path == ("Db", "Index")


def test_a_block_on_a_later_line_of_an_item_is_a_fact_in_it() -> None:
    found = read("- Deploys go through Ann.\n\n  Never on Fridays.\n\n  > said Bob\n- next\n")
    assert [(fact.kind, fact.text, fact.parent) for fact in found] == [
        ("item", "Deploys go through Ann.", None),
        ("paragraph", "Never on Fridays.", 0),
        ("quote", "said Bob", 0),
        ("item", "next", None),
    ]


def test_items_that_are_indented_by_tabs_are_facts() -> None:
    found = read("- a\n\t- b\n\t- c\n\t\t- d\n- e\n")
    assert [(fact.text, fact.parent) for fact in found] == [
        ("a", None),
        ("b", 0),
        ("c", 0),
        ("d", 2),
        ("e", None),
    ]


def test_a_block_id_is_no_part_of_a_title() -> None:
    assert [(fact.id, fact.text) for fact in read("## Index ^z\n")] == [("z", "## Index")]


def test_a_line_with_a_block_id_is_a_fact() -> None:
    """As `MEMORY#^id` names that line, and no more."""
    found = read("above\none ^a\ntwo ^b\nrest\n")
    assert [(fact.id, fact.text) for fact in found] == [("a", "above one"), ("b", "two"), ("", "rest")]


@cases(
    "one, other",
    [
        ("- a b\n", "* a\n  b\n"),
        ("- a\n", "3. a\n"),
        ("|a|b|\n|-|-|\n", "|  a | b  |\n| :-- | --- |\n"),
        ("| \\| | b |\n|-|-|\n", "|  \\|  |  b|\n|-|-|\n"),
        ("> a\n> b\n", "> a\nb\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("\ufeffa\n", "a\n"),
        ("# A\n", "A\n===\n"),
        ("    x\n     y\n", "\tx\n\t y\n"),
        ("- ```\n  a\n   b\n  ```\n", "1. ```\n   a\n    b\n   ```\n"),
    ],
)
def test_what_lays_a_fact_out_is_no_part_of_its_words(one: str, other: str) -> None:
    assert [text for _, text in told(one)] == [text for _, text in told(other)]


@cases(
    "one, other",
    [
        ("| a | |\n|-|-|\n", "| | a |\n|-|-|\n"),
        ("# A\n", "## A\n"),
        ("```\na\n b\n```\n", "```\na\nb\n```\n"),
        ("- [ ] a\n", "- [x] a\n"),
        ("- ```\n  a\n   b\n  ```\n", "- ```\n  a\n  b\n  ```\n"),
        ("- a\n\n      b\n       c\n", "- a\n\n      b\n      c\n"),
    ],
)
def test_what_says_something_else_differs(one: str, other: str) -> None:
    assert told(one) != told(other)


def test_a_json_memory_has_no_facts_but_its_fields() -> None:
    assert facts(parse("a.json", b'{"a": "- x"}')) == ()


@cases("text", ["", "\n\n", "---\na: 1\n---\n", "---\na: 1\n---", "***\n", "\ufeff"])
def test_what_says_nothing_has_no_facts(text: str) -> None:
    assert read(text) == ()


def test_items_are_bounded() -> None:
    with pytest.raises(TooManyParts):
        facts(parse("a.md", b"- a\n" * 100, Limits(max_parts=30)))


PARTS = st.sampled_from(
    [
        *("- a", "  - b", "- - c", "1. d", "   1) e", "", "", "> f", "> - g", "# h", "## i ^z", "text"),
        *("```", "| a | b |", "|---|---|", "| 1 | 2 |", "[x]: y.md", "[^1]: foot", "    code", "\tcode"),
        *(
            "<div>",
            "<!-- c -->",
            "***",
            "---",
            "===",
            "  more",
            "      deep",
            "x ^id",
            "- k ^k",
            "-",
            "^only",
        ),
        *("- # inner", "- > q", "-     - code", "\u2028", "\x0c", "\xa0", "- \tx"),
    ]
)


@settings(max_examples=examples(400))
@given(st.lists(PARTS, max_size=14), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", "\n"]))
@example(["- - c", "  - b", "- # inner"], "\n", "\n")
def test_each_line_with_text_is_in_one_fact(lines: list[str], newline: str, end: str) -> None:
    """But for rules, which say nothing."""
    text = newline.join(lines) + end
    found = document(text)
    counts = [0] * len(found.lines)
    for fact in facts(found):
        assert fact.span.start == found.lines.span(fact.line).start or fact.line == 1
        assert text[slice(*fact.span)].strip(" \t\r\n")
        for line in range(fact.line, fact.last + 1):
            counts[line - 1] += 1
    assert max(counts, default=0) <= 1
    above = found.lines.number(found.body_span.start) - 1 if found.body else len(counts)
    missed = [found.lines.content(n + 1).strip(" \t") for n, count in enumerate(counts) if not count]
    missed = missed[above - sum(map(bool, counts[:above])) :]
    assert {line.strip("> -*") for line in missed if line} <= {""}, missed


@settings(max_examples=examples(200))
@given(st.lists(PARTS, max_size=14))
def test_facts_stand_in_order_below_their_parents(lines: list[str]) -> None:
    found = read("\n".join(lines))
    assert list(found) == sorted(found, key=lambda fact: fact.span)
    for number, fact in enumerate(found):
        if fact.parent is not None:
            parent = found[fact.parent]
            assert fact.parent < number
            assert parent.kind in ("item", "heading")
