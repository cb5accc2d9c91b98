"""Where frontmatter begins and ends, and what stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document import frontmatter, yaml
from mdmem.document.frontmatter import Frontmatter, parse_simple
from mdmem.document.tree import Parsed, TooDeep

ROOT = Path(__file__).parents[2]
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
@settings(max_examples=750)
def test_what_is_read_here_is_what_the_whole_parser_reads(block: str) -> None:
    read = simple(block)
    if read is not None:
        assert repr(read) == repr(whole(block))


def test_the_frontmatter_of_real_files_is_read_alike_and_most_of_it_here() -> None:
    texts = [path.read_bytes().decode() for path in sorted(ROOT.rglob("*.md")) if ".venv" not in path.parts]
    found = 0
    for text in texts:
        block, inner = frontmatter.locate(text)
        if block.start == block.end:
            continue
        full = yaml.parse(text[slice(*inner)], inner.start, max_depth=32, max_values=10_000)
        read = parse_simple(text, *inner, max_depth=32, max_values=10_000)
        assert read is None or repr(read) == repr(full)
        found += read is not None
    assert found


def parse(text: str) -> Frontmatter:
    return frontmatter.parse(text, max_depth=32, max_values=10_000)


@pytest.mark.parametrize(
    ("text", "inner", "body", "values"),
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


@pytest.mark.parametrize(
    "text",
    [
        *("", "body\n", "\ufeff", "\ufeffbody", "---", "---\n"),
        *("---\n\nA paragraph behind a thematic break.\n", "---\n\nkey: value, but behind an empty line\n"),
        *("---\n# Heading\n", "---\n- item\n", "----\na: 1\n----\n", " ---\na: 1\n---\n"),
        *("\n---\na: 1\n---\n", "--- x\na: 1\n---\n", "\u2028---\na: 1\n---\n", "---\u2028a: 1\n---\n"),
        *("***\na: 1\n---\n", "```\n---\na: 1\n---\n```\n"),
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


@pytest.mark.parametrize(
    ("inner", "kind"),
    [("- a\n- b\n", "list"), ("[a]\n", "list"), ("just text\n", "scalar"), ("12\n", "scalar")],
)
def test_frontmatter_that_holds_no_fields_is_a_flaw_and_the_body_is_still_known(
    inner: str, kind: str
) -> None:
    text = f"---\n{inner}---\nbody"
    found = parse(text)
    assert text[found.span.end :] == "body"
    assert (found.node, found.values) == (None, {})
    (flaw,) = found.flaws
    assert flaw.code == "frontmatter-not-a-mapping"
    assert kind in flaw.message
    assert text[slice(*flaw.span)] == inner.rstrip("\n")


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
        ["---", "----", "--- ", " ---", "a: 1", "- b", "text", "", "\ufeff", "\n", "\r\n", "\r", "\u2028"]
    ),
    max_size=12,
).map("".join)


@given(PIECES)
@settings(max_examples=600)
def test_the_three_parts_of_a_text_make_it_up_and_parsing_the_body_alone_finds_it_whole(text: str) -> None:
    found = parse(text)
    block = text[slice(*found.span)]
    assert text == text[: found.span.start] + block + text[found.span.end :]
    assert text[: found.span.start] in ("", "\ufeff")
    assert found.span.start <= found.inner.start <= found.inner.end <= found.span.end
    if found.present:
        lines = block.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
        assert (lines[0].rstrip(" \t"), lines[-1].rstrip(" \t")) == ("---", "---")
        assert all(line.rstrip(" \t") != "---" for line in lines[1:-1])
        alone = frontmatter.parse(block, max_depth=32, max_values=10_000)
        assert alone.span == (0, len(block))
