"""Where frontmatter begins and ends, and what stands in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document import frontmatter, yaml
from mdmem.document.frontmatter import Frontmatter, parse_simple
from mdmem.document.text.lines import Lines
from mdmem.document.tree import Parsed, TooDeep
from tests.document.markdown.foreign_texts import texts
from tests.speed import examples, soak_most
from tests.tables import cases

OFFSET = 7


def simple(block: str, max_depth: int = 32, max_values: int = 10_000) -> Parsed | None:
    text = "-" * OFFSET + block + "---\nno: frontmatter\n"
    end = OFFSET + len(block)
    return parse_simple(text, OFFSET, end, max_depth=max_depth, max_values=max_values)


def whole(block: str, max_depth: int = 32, max_values: int = 10_000) -> Parsed | TooDeep:
    try:
        return yaml.parse(block, OFFSET, max_depth=max_depth, max_values=max_values)
    except TooDeep as refusal:
        return refusal


@cases(
    "block",
    [
        *("", "\n", "# comment\n\n", "title: Some words\ntags: [a, b]\ncreated: 2026-01-31\n"),
        *("title: Some words\r\ntags:\r\n  - a\r\n  - b\r\n", "tags:\n- a\n- b\nkey: v\n"),
        "tags:\n\n    - a # why\n\n    # which\n    - 'b'\n    - \"c\"\n",
        "empty:\nnext:   \nlast: # comment\n",
        "double: \"a: # b\"\nsingle: 'it''s'\nempty: \"\"\nboth: ''\n",
        "list: []\nother: [ ]\nlast: [a, ]\nmore: [ a , 'b, c', \"[d]\" ]  # comment\n",
        'related: "[[note#heading|alias]]"\nsource: https://example.com/a#b?c\n',
        "time: 12:30\nno: no\nnull: null\nnumber: -1.5e3\nhex: 0x1F\nnan: .nan\ninf: -.inf\n",
        "source:\n  type: chat\n  ids:\n    - a\n    - b\n  deep:\n    er: 1\nafter: x\n",
        "source:\n  type: chat\n\n# comment\n  ids: [a]\nempty:\n",
        "$schema: note\nLast modified: x\nlast-modified: x\ndc.title: x\nnull: x\n1: x\n",
        "名前: 値\né: ü 😀\n😀: [あ, い]\n",
        'plain: it\'s a "word" with #hash, [brackets] & {braces} - and a dash\n',
    ],
)
def test_what_people_write_is_read_here_as_the_whole_parser_reads_it(block: str) -> None:
    read = simple(block)
    assert read is not None
    assert repr(read) == repr(whole(block))


@cases(
    "block",
    [
        *("a: 1\na: 2\n", "a: &x 1\nb: *x\n", "a: !!str 1\n", "a: |\n  text\n", "a: one\n  two\n"),
        *("a: 'one\n  two'\n", "a: b: c\n", "a: b:\n", 'a: "\\u0041"\n', "a: 'x' y\n"),
        *("a: 'x'# no comment\n", "a: [x, [y]]\n", "a: [x, , y]\n", "a: [b: c]\n", "a: [x\n  , y]\n"),
        *("a: {b: c}\n", "a:\n  - b: c\n", "a:\n  - - b\n", "a:\n  -\n", "a:\n  - b\n - c\n", "a: 1\n- b\n"),
        *("a:\n  b: 1\n c: 2\n", " a: 1\n", "a:\tb\n", "a: b\t\n", "\ta: b\n", "a: 1\rb: 2\n", "? a\n: b\n"),
        *("a : b\n", "'a': b\n", "a: \x00\n", "a: \x7f\n", "a: b\u2028c\n", "a: b\x85c\n", "a: \ufeffb\n"),
        *("a: 1\n...\n", "... a: 1\n", "%YAML 1.2\n", "{a: 1}\n", "- a\n", "text\n", "a: 1"),
        *(f"{'k' * 1025}: v\n", "".join(f"{'  ' * depth}a:\n" for depth in range(40))),
    ],
)
def test_what_is_not_certainly_simple_is_left_to_the_whole_parser(block: str) -> None:
    assert simple(block) is None


def test_what_could_pass_a_limit_is_left_to_the_whole_parser() -> None:
    block = "a: [b, c]\n"
    assert simple(block, max_depth=2) is not None
    assert simple(block, max_depth=1) is None
    assert simple(block, max_values=len(block)) is not None
    assert simple(block, max_values=len(block) - 1) is None


@given(
    st.integers(0, 5), st.integers(0, 30), st.sampled_from(["a: b\n", "a: [b]\n", "a:\n- b\n", "a:\n  b:\n"])
)
def test_nothing_is_read_here_that_the_whole_parser_refuses(depth: int, values: int, block: str) -> None:
    read = simple(block, depth, values)
    assert read is None or repr(read) == repr(whole(block, depth, values))


KEYS = st.one_of(
    st.sampled_from(
        ["a", "b", "tags", "$schema", "a b", "é", "名", "-a", "a ", "'a'", '"a"', "a#b", "a #b", "<<"]
    ),
    st.sampled_from(
        ["- a", "? a", "&a a", "!a a", "---", "...", "1", "~", "a[b]", "a, b", "a:b", "[", "%a", "k" * 999]
    ),
    st.text("ab-?:,[]{}#&*!|>'\"%@` \\\té\x85", min_size=1, max_size=4),
)
SCALARS = st.one_of(
    st.sampled_from(
        [
            *("a", "some words", "12", "-1", "1.5", "0x1f", ".nan", "no", "true", "~", "null", "12:30"),
            "2026-01-31",
        ]
    ),
    st.sampled_from(
        ["'a'", '"a"', "'it''s'", "''", '""', '"\\n"', "'a", 'a"', "'a' b", '"a: b"', "'#'", "'a'#", '"é"']
    ),
    st.sampled_from(
        ["http://a/b#c", "a: b", "a:", "a #b", "a#b", "#a", "a, b", "- a", "-", "-a", "--", "? a", "?a", ":a"]
    ),
    st.sampled_from(
        ["&a a", "*a", "!a", "!!str 1", "|", ">-", "@a", "`a`", "%a", "{a: b}", "{}", "[[a]]", "a]", "a\tb"]
    ),
    st.text("ab-?:,[]{}#&*!|>'\"%@` \\\té\x85\u2028\ufeff\xa0\u3000😀", max_size=5),
)
FLOW = st.builds(
    "[{}{}{}".format,
    st.lists(
        st.builds("{}{}{}".format, st.sampled_from(["", " "]), SCALARS, st.sampled_from(["", " "])),
        max_size=4,
    ).map(",".join),
    st.sampled_from(["", "", "", ",", " "]),
    st.sampled_from(["]", "]", "]", "", "]]", "] x"]),
)
INDENTS = st.sampled_from(["", "", "", "", "  ", "  ", "    ", " ", "\t"])
BEHIND = st.sampled_from(["", "", "", "", " ", "  # why", "#", "\t", " #"])
ENDS = st.sampled_from(["\n"] * 8 + ["\r\n", "\r\n", "\r", "", "\u2028"])
LINES = st.one_of(
    st.builds(
        "{}{}:{}{}{}".format,
        INDENTS,
        KEYS,
        st.sampled_from([" ", " ", "  ", "", "\t"]),
        SCALARS | FLOW,
        BEHIND,
    ),
    st.builds("{}{}:{}".format, INDENTS, KEYS, BEHIND),
    st.builds(
        "{}-{}{}{}".format, INDENTS, st.sampled_from([" ", " ", "  ", "", "\t"]), SCALARS | FLOW, BEHIND
    ),
    st.sampled_from(["", "", "# comment", "  # comment", "   ", "\t", "---", "...", "text", "{}", "\ufeff"]),
)
BLOCKS = st.lists(st.builds("{}{}".format, LINES, ENDS), max_size=6).map("".join)
# Lines that are simple each, in an order that need not be.
ORDERLY = st.lists(
    st.builds(
        "{}{}\n".format,
        INDENTS,
        st.sampled_from(
            ["a:", "b:", "c:", "d: 1", "e: x # k", "f: [x, 1]", "- a", "- b", "# k", "", "g: 'x'", "h: []"]
        ),
    ),
    max_size=8,
).map("".join)


@given(st.one_of(BLOCKS, ORDERLY))
@example("a: [x , y]\n")
@example("a: [-, x]\n")
@example("a: x # y: z\n")
@example(f"a: {'x' * 2000}\n")
@example(f"a:\n- {'x' * 2000}\n")
@example(f"a: [{'x' * 2000}]\n")
@example(f"a: '{'x' * 2000}'\n")
@example(f"{'k' * 999}: v\n")
@example("a:\n  b:\n  - x\n  c: 1\n")
@example("a:\n  b:\n- x\n")
@settings(max_examples=examples(750))
def test_what_is_read_here_is_what_the_whole_parser_reads(block: str) -> None:
    read = simple(block)
    if read is not None:
        assert repr(read) == repr(whole(block))


@pytest.mark.parametrize("more", soak_most([0, 3_000]))
def test_the_frontmatter_of_foreign_files_is_read_alike_and_most_of_it_here(more: int) -> None:
    many = found = 0
    for _, text in texts(more):
        block, inner = frontmatter.locate(text)
        if block.start < block.end:
            read = parse_simple(text, *inner, max_depth=32, max_values=10_000)
            full = yaml.parse(text[slice(*inner)], inner.start, max_depth=32, max_values=10_000)
            assert read is None or repr(read) == repr(full)
            many += 1
            found += read is not None
    assert many / 2 < found < many


def parse(text: str) -> Frontmatter:
    return frontmatter.parse(text, max_depth=32, max_values=10_000)


@cases(
    "text, inner, body, values",
    [
        ("---\na: 1\n---\nbody\n", "a: 1\n", "body\n", {"a": 1}),
        ("\ufeff---\na: 1\n---\nbody", "a: 1\n", "body", {"a": 1}),
        ("---\r\na: 1\r\n---\r\nbody\r\n", "a: 1\r\n", "body\r\n", {"a": 1}),
        ("---\ra: 1\r---\rbody", "a: 1\r", "body", {"a": 1}),
        ("---\na: 1\r\n---\rbody", "a: 1\r\n", "body", {"a": 1}),
        ("---\na: 1\n---", "a: 1\n", "", {"a": 1}),
        ("---\na: 1\n---\n", "a: 1\n", "", {"a": 1}),
        ("--- \t\na: 1\n---\t \nbody", "a: 1\n", "body", {"a": 1}),
        ("---\n---\n", "", "", {}),
        ("---\n---", "", "", {}),
        ("---\n\n---\nbody", "\n", "body", {}),
        ("---\n# comment\n---\nbody", "# comment\n", "body", {}),
        ("---\n{}\n---\nbody", "{}\n", "body", {}),
        ("---\na: |\n  ---\n  x\n---\nbody", "a: |\n  ---\n  x\n", "body", {"a": "---\nx\n"}),
        ("---\na: 1\n---\nb\n\n---\n\nc\n---\n", "a: 1\n", "b\n\n---\n\nc\n---\n", {"a": 1}),
        (
            "---\na: 1\n----: 2\n---x: 3\n---\nb",
            "a: 1\n----: 2\n---x: 3\n",
            "b",
            {"a": 1, "----": 2, "---x": 3},
        ),
        ("---\na: ---\n---\nbody", "a: ---\n", "body", {"a": "---"}),
        ("---\na: 1\n...\nbody\n---\n", "a: 1\n", "body\n---\n", {"a": 1}),
        ("---\r\na: 1\r\n... \t\r\nbody", "a: 1\r\n", "body", {"a": 1}),
        ("---\na: 1\n...", "a: 1\n", "", {"a": 1}),
        ("---\n\n# why\n$schema: x\n---\nbody", "\n# why\n$schema: x\n", "body", {"$schema": "x"}),
        ("---\nLast change: x\n---\nbody", "Last change: x\n", "body", {"Last change": "x"}),
        ("---\n? a\n: b\n---\nbody", "? a\n: b\n", "body", {"a": "b"}),
        ("---\n{a: 1}\n---\nbody", "{a: 1}\n", "body", {"a": 1}),
        ("---\n  a: 1\n---\nbody", "  a: 1\n", "body", {"a": 1}),
        ("---\n'a b': 1\n---\nbody", "'a b': 1\n", "body", {"a b": 1}),
        ("---\n名-_9:\n---\nbody", "名-_9:\n", "body", {"名-_9": None}),
    ],
)
def test_frontmatter_is_what_stands_between_the_first_two_lines_of_dashes(
    text: str, inner: str, body: str, values: dict[str, Any]
) -> None:
    found = parse(text)
    assert found.present
    assert text[slice(*found.inner)] == inner
    assert text[found.span.end :] == body
    assert found.values == values
    assert found.flaws == ()
    assert found.span.start == (1 if text.startswith("\ufeff") else 0)


@cases(
    "text",
    [
        *("", "body\n", "\ufeff", "\ufeffbody", "---", "---\n"),
        *("---\n\nA paragraph behind a thematic break.\n", "---\n\nkey: value, but behind an empty line\n"),
        *("---\n# Heading\n", "---\n- item\n", "----\na: 1\n----\n", " ---\na: 1\n---\n"),
        *("\n---\na: 1\n---\n", "--- x\na: 1\n---\n", "\u2028---\na: 1\n---\n", "---\u2028a: 1\n---\n"),
        *("***\na: 1\n---\n", "```\n---\na: 1\n---\n```\n"),
        *("---\n- a\n- b\n---\n", "---\n[a]\n---\n", "---\njust text\n---\n", "---\n12\n---\nbody"),
        *(
            "---\n\nText of a letter.\n\n---\n\nMore: text.\n",
            "---\nSome words: a: b\n---\n",
            "---\n*a*: b: c\n---\n",
        ),
        *(
            "---\nhttp://a.b/: c: d\n---\n",
            "---\nText\n...\n",
            "---\nWords before: text\n",
            "---\na:b\n---\n",
        ),
        *(
            "+++\nSome text\n+++\n",
            "+++\na: 1\n+++\n",
            "+++\na = 1\n",
            "+++\na = 1\n---\n",
            "++++\na = 1\n++++\n",
        ),
        *(
            "{% raw %}\ntext\n{% endraw %}\n",
            "{{< figure >}}\n",
            "{#id}\n",
            "{\n",
            "{a: 1}\n",
            '{"a": 1} and\n',
        ),
        *(
            '{"a": \n',
            '{"a": 1,}\n',
            " {}\n",
            "\n{}\n",
            "{{date}}\n",
            pytest.param('{"a": "' + "b" * 70_000 + '"}\n', id="long JSON"),
        ),
    ],
)
def test_any_other_beginning_is_the_body(text: str) -> None:
    found = parse(text)
    assert not found.present
    start = 1 if text.startswith("\ufeff") else 0
    assert (found.span, found.inner) == ((start, start), (start, start))
    assert (found.node, found.flaws, found.values) == (None, (), {})


@pytest.mark.parametrize(
    "text", ["---\na: 1\n", "---\ntitle:\n", "\ufeff---\r\n'a b': 1\r\n\r\nbody", "---\na: 1\nb: 2\n----\n"]
)
def test_a_first_line_of_dashes_with_a_key_behind_it_was_meant_to_be_closed(text: str) -> None:
    found = parse(text)
    assert not found.present
    (flaw,) = found.flaws
    assert flaw.code == "frontmatter-unclosed"
    assert text[slice(*flaw.span)] == "---"


@cases(
    "text, values",
    [
        ("---\ntitle: Plan: x\nkind: a\n---\n", {"kind": "a"}),
        ("---\na: 1\nb: c: d\n\n# why\ne:\n  - f\n- g: h\n---\n", {"a": 1}),
        ("---\nb: c: d\ne:\n- f\n---\n", {"e": ["f"]}),
        ("---\r\nb: c: d\r\ne: [1, 2] # x\r\n---\r\n", {"e": [1, 2]}),
        ("---\nb: c: d\ntext\n  more: 1\na: 1\n---\n", {"a": 1}),
        ("---\nb: c: d\na: 1\na: 2\ne: 3\n---\n", {"e": 3}),
        ("---\na: x: y\na: 2\ne: 3\n---\n", {"e": 3}),
        ('---\n"b": c: d\n"e": 3\n\'f\': 4\n---\n', {"e": 3, "f": 4}),
        ('---\na: 1\nb: "c\nd: 2\n---\n', {"a": 1}),
        ('---\na: 1\nb: "c\nd" e\nf: 3\n---\n', {"a": 1, "f": 3}),
        ('---\na: 1\nb c: "d\nd: 2\n---\n', {"a": 1}),
        ("---\na: 1\nb: !!seq &y [d\nd: 2\n---\n", {"a": 1}),
        ("---\na: 1\nb: c: d\nb c: |\ntext\nd: 2\n---\n", {"a": 1, "b c": ""}),
        ("---\n<<<<<<< HEAD\ntitle: a\n=======\ntitle: b\n>>>>>>> x\nd: 2\n---\n", {"d": 2}),
        ("---\na: 1\nb: 'it''s\nd: 2\n---\n", {"a": 1}),
        ("---\na: 1\nb: [c, d\ne: 2\n---\n", {"a": 1}),
        ("---\na: 1\nb: [c, d\ne: 2\n] x\nf: 3\n---\n", {"a": 1, "f": 3}),
        ("---\na: 1\nb: {c: [d}\ne: 2\n---\n", {"a": 1}),
        ("---\na: 1\nb:\n  - 'c\ne: 2\n---\n", {"a": 1}),
        ("---\na: 1\nb: |\nsome text\ne: 2\n---\n", {"a": 1, "b": ""}),
        ("---\na: 1\nb: >- # why\nsome text: x: y\ne: 2\n---\n", {"a": 1, "b": ""}),
        ("---\nb: c: d\ne: |\n  f: g\n  h\ni: 2\n---\n", {"e": "f: g\nh\n", "i": 2}),
        ("---\na: &x 1\nb: *x\nc: d: e\n---\n", {"a": 1}),
        ("---\na: \x01\nb: 2\n---\n", {"b": 2}),
        ("---\nb: c: d\ntitle: 1984\n---\n", {"title": "1984"}),
        ("---\n" + "b: c: d\n" * 501 + "a: 1\n---\n", {}),
    ],
)
def test_of_frontmatter_that_cannot_be_read_the_fields_count_that_can_be_read_alone(
    text: str, values: dict[str, Any]
) -> None:
    found = parse(text)
    assert found.values == values
    assert found.unread
    assert [flaw.code for flaw in found.flaws] == ["invalid-yaml"]
    assert found.span == (0, len(text))


@cases(
    "text, values",
    [
        ('+++\ntitle = "A"\n[params]\nx = 1\n+++\n', {"title": "A"}),
        ('\ufeff+++ \r\ntags = ["a", "b"]\r\nx = "c"\r\n+++\r\n', {"tags": ["a", "b"]}),
        ("+++\ndate = 2023-09-12\n+++\n", {"date": "2023-09-12"}),
        ("+++\ndate = 2023-09-12T10:00:00Z\n+++\n", {"date": "2023-09-12T10:00:00+00:00"}),
        ('+++\n# why\n\naliases = ["/old/"]\n+++\n', {"aliases": ["/old/"]}),
        ('+++\n[extra]\ntitle = "B"\n+++\n', {}),
        ("+++\n+++\n", {}),
        ('{"title": "A", "tags": ["a"], "x": {"y": 1}}\n', {"title": "A", "tags": ["a"]}),
        ('{\n  "title": "A"\n}\n\n', {"title": "A"}),
        ("{}\n", {}),
    ],
)
def test_of_toml_and_json_a_few_fields_are_read(text: str, values: dict[str, Any]) -> None:
    found = parse(text + "body")
    assert found.present
    assert (text + "body")[found.span.end :].lstrip() == "body"
    assert (found.values, found.node, found.flaws) == (values, None, ())
    assert found.form in ("TOML", "JSON")


@cases(
    "inner",
    [
        *("title = A\n", "a = 1\na = 2\n", "[a\n", "a = " + "[" * 5000 + "\n"),
        pytest.param(f"{'a.' * 40}b = 1\n", id="many dots"),
        pytest.param(f"[{'a.' * 40}b]\n", id="many dots in a header"),
        pytest.param(f"c = {{{'a . ' * 40}b = 1}}\n", id="many dots in braces"),
    ],
)
def test_toml_that_cannot_be_read_is_a_flaw(inner: str) -> None:
    found = parse(f"+++\n{inner}+++\n")
    assert (found.values, found.present) == ({}, True)
    assert [flaw.code for flaw in found.flaws] == ["invalid-toml"]


@cases(
    "inner, line, column",
    [
        ('title = "x"\ntags = [a\n', 3, 9),
        ('title = "x"\r\ntags = [a\r\n', 3, 9),
        ("a = 1\na = 2\n", 3, 6),
        ('a = """b\nc\n', 4, 1),
    ],
)
def test_broken_toml_is_told_where_it_stands_in_the_memory(inner: str, line: int, column: int) -> None:
    text = f"+++\n{inner}+++\nText.\n"
    (flaw,) = parse(text).flaws
    assert Lines(text).position(flaw.span.start) == (line, column)
    assert " (at " not in flaw.message


@cases(
    "written, value",
    [
        *(("title: 1984", "1984"), ("title: 007", "007"), ("title: 3.10", "3.10"), ("title: 1e3", "1e3")),
        *(("title: true", "true"), ("title: Yes", "Yes"), ("title: 0x1F", "0x1F"), ("title: .inf", ".inf")),
        *(("title:", None), ("title: null", None), ("title: ~", None), ('title: ""', "")),
        *(("tags: [2024, work]", ["2024", "work"]), ("tags:\n  - 1.10\n  -\n  - a", ["1.10", None, "a"])),
        *(
            ("tags: 7", "7"),
            ("tags: {a: 1}", {"a": 1}),
            ("tags: [[1]]", [[1]]),
            ("tags: [{a: 1}]", [{"a": 1}]),
        ),
        *(
            ("aliases: [1, off]", ["1", "off"]),
            ("tier: 1", "1"),
            ("description: 5 # x", "5"),
            ("id: 01", "01"),
        ),
        *(("other: 1984", 1984), ("created: 1694500000000", 1694500000000), ("title: !!int 5", 5)),
    ],
)
def test_a_text_field_is_the_text_as_it_is_written(written: str, value: Any) -> None:
    (found,) = parse(f"---\n{written}\n---\n").values.values()
    assert repr(found) == repr(value)


def test_empty_braces_are_a_mapping_that_fields_can_be_put_into() -> None:
    node = parse("---\n{}\n---\n").node
    assert node is not None
    assert (node.kind, node.style, node.span) == ("mapping", "flow", (4, 6))


def test_flaws_stand_where_they_are_in_the_whole_text() -> None:
    text = "\ufeff---\nb: ok\na: x: y\n---\nbody"
    found = parse(text)
    assert [(f.code, text[f.span.start :].splitlines()[0]) for f in found.flaws] == [("invalid-yaml", ": y")]
    assert text[found.span.end :] == "body"


def test_spans_of_values_count_from_the_beginning_of_the_text() -> None:
    text = "\ufeff---\r\n😀: a\r\nb: [1, 2]\r\n---\r\nbody"
    node = parse(text).node
    assert node is not None
    assert [text[slice(*m.node.span)] for m in node.members] == ["a", "[1, 2]"]


def test_a_limit_is_passed_at_an_offset_of_the_whole_text() -> None:
    text = "---\na: " + "[" * 40 + "\n---\n"
    with pytest.raises(TooDeep) as caught:
        parse(text)
    assert caught.value.offset == text.index("[") + 31


PIECES = st.lists(
    st.sampled_from(
        [
            "---",
            "----",
            "--- ",
            " ---",
            "...",
            ".... ",
            "+++",
            "{}",
            "b = 1",
            "a: 1",
            "- b",
            "text",
            "",
            "\ufeff",
            "\n",
            "\r\n",
            "\r",
            "\u2028",
        ]
    ),
    max_size=12,
).map("".join)


@given(PIECES)
@settings(max_examples=examples(600))
def test_the_three_parts_of_a_text_make_it_up_and_parsing_the_body_alone_finds_it_whole(text: str) -> None:
    found = parse(text)
    block = text[slice(*found.span)]
    assert text == text[: found.span.start] + block + text[found.span.end :]
    assert text[: found.span.start] in ("", "\ufeff")
    assert found.span.start <= found.inner.start <= found.inner.end <= found.span.end
    if found.present:
        lines = block.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
        marks = lines[0].rstrip(" \t"), lines[-1].rstrip(" \t")
        assert marks in {("---", "---"), ("---", "..."), ("+++", "+++"), ("{}", "{}")}
        assert all(line.rstrip(" \t") not in marks for line in lines[1:-1])
        alone = frontmatter.parse(block, max_depth=32, max_values=10_000)
        assert alone.span == (0, len(block))
