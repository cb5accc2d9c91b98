"""YAML as a tree: YAML 1.2 values, exact places, and nothing that can hurt."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import assume, example, given, settings, strategies as st

from mdmem.diagnostic import Span
from mdmem.document import tree
from mdmem.document.tree import Flaw, Member, Node, Parsed, TooDeep
from mdmem.document.yaml import parse
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_yaml(text: str, offset: int = 0, max_depth: int = 32, max_values: int = 10_000) -> Parsed:
    return parse(text, offset, max_depth=max_depth, max_values=max_values)


def root(text: str) -> Node:
    """The root of a text that has no flaws."""
    node, flaws = read_yaml(text)
    assert flaws == ()
    assert node is not None
    return node


def value(text: str) -> Any:
    return root(text).value


def codes(text: str) -> list[str]:
    return [flaw.code for flaw in read_yaml(text).flaws]


def written(text: str, *path: str | int) -> str:
    """What stands at the span of the value at `path`."""
    node = root(text).find(path)
    assert node is not None
    return text[slice(*node.span)]


def parts(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts:
        yield from parts(part)


# ----------------------------------------------------------------------------------------- plain scalars


@cases(
    "text, expected",
    [
        *(("no", "no"), ("yes", "yes"), ("on", "on"), ("Off", "Off"), ("y", "y"), ("12:30", "12:30")),
        *(("12:30:45", "12:30:45"), ("2024-01-31", "2024-01-31")),
        *(("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"), ("1_000", "1_000"), ("0b11", "0b11")),
        *(("<<", "<<"), ("=", "="), ("012", 12), ("-012", -12), ("+12", 12), ("0", 0), ("0o14", 12)),
        *(("0x1F", 31), ("-0x1F", "-0x1F"), ("0o8", "0o8"), ("0x", "0x"), ("1e3", 1000.0), ("1.", 1.0)),
        *((".5", 0.5), ("-.5e-1", -0.05), ("+1.5E+2", 150.0), ("1e", "1e"), ("e1", "e1"), (".", ".")),
        *(("1.2.3", "1.2.3"), ("\u0661", "\u0661"), (".inf", math.inf), ("+.Inf", math.inf)),
        *(("-.INF", -math.inf), (".iNf", ".iNf"), ("inf", "inf"), ("nan", "nan"), ("~", None)),
        *(("null", None), ("Null", None), ("NULL", None), ("nULL", "nULL"), ("true", True), ("True", True)),
        *(("TRUE", True), ("false", False), ("tRUE", "tRUE"), ("None", "None")),
    ],
)
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text: str, expected: object) -> None:
    found = value(f"key: {text}")["key"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number(text: str) -> None:
    assert math.isnan(value(f"key: {text}")["key"])


def test_nothing_written_is_null() -> None:
    assert value("a:\nb: # comment\nc:\n") == {"a": None, "b": None, "c": None}


@pytest.mark.parametrize("text", ["9" * 3501, "0x" + "f" * 3501, "0o" + "7" * 3501])
def test_an_integer_that_python_could_not_write_down_stays_text(text: str) -> None:
    assert value(f"key: {text}")["key"] == text


@pytest.mark.parametrize("text", ["9" * 3500, "0x" + "f" * 3500, "0o" + "7" * 3500])
def test_the_longest_integers_can_be_written_down(text: str) -> None:
    found = value(f"key: {text}")["key"]
    assert json.loads(json.dumps(found)) == found


@cases("quoted", ['"no"', "'12'", '"null"', "'true'", '""', "'~'"])
def test_quoted_scalars_are_text(quoted: str) -> None:
    assert value(f"key: {quoted}")["key"] == quoted[1:-1]


@cases(
    "text, expected",
    [("!!str 12", "12"), ("! 12", "12"), ("!!int '12'", 12), ('!!null ""', None), ("!!float 1.5", 1.5)],
)
def test_core_tags_decide_what_a_scalar_is(text: str, expected: object) -> None:
    assert value(f"key: {text}")["key"] == expected


def test_keys_are_text_as_written() -> None:
    assert value("1: a\nno: b\n~: c\n1.50: d\n") == {"1": "a", "no": "b", "~": "c", "1.50": "d"}


def test_a_merge_key_is_a_key_like_any_other() -> None:
    assert value("a: &a {x: 1}\nb:\n  <<: *a\n")["b"] == {"<<": {"x": 1}}


# ------------------------------------------------------------------------------------------------- places


def test_spans_of_scalars_in_every_style() -> None:
    text = """plain: two words   # comment
single: 'it''s'  # comment
double: "a \\"b\\""
lines: one
  two
empty:
flow: [a, 'b', {c: d}]  # comment
"""
    assert written(text, "plain") == "two words"
    assert written(text, "single") == "'it''s'"
    assert written(text, "double") == '"a \\"b\\""'
    assert written(text, "lines") == "one\n  two"
    assert written(text, "empty") == ""
    assert written(text, "flow") == "[a, 'b', {c: d}]"
    assert written(text, "flow", 2) == "{c: d}"
    assert written(text, "flow", 2, "c") == "d"
    node = root(text).child("empty")
    assert node is not None
    assert text[: node.span.start].endswith("empty:")


def test_spans_of_block_collections_end_with_their_last_value() -> None:
    text = "a:\n  - 1 # one\n  - 2\n  # behind\nb:\n  c: x\n\n  d:\n\n# end\n"
    assert written(text, "a") == "- 1 # one\n  - 2"
    assert written(text, "b") == "c: x\n\n  d:"
    assert text[slice(*root(text).span)] == text[: text.index("\n\n# end")]


def test_spans_of_keys_cover_them_as_written() -> None:
    text = 'plain: 1\n\'single\': 2\n"dou\\x62le" : 3\n? explicit\n: 4\nflow: {in: 5, "json":6}\n'
    keys = {m.key: text[slice(*m.key_span)] for _, m in root(text).walk()}
    assert keys == {
        "plain": "plain",
        "single": "'single'",
        "double": '"dou\\x62le"',
        "explicit": "explicit",
        "flow": "flow",
        "in": "in",
        "json": '"json"',
    }


@cases(
    "block, expected, span",
    [
        ("|\n  a\n  b\n", "a\nb\n", "|\n  a\n  b"),
        ("|-\n  a\n\n\n", "a", "|-\n  a"),
        ("|+\n  a\n\n\n", "a\n\n\n", "|+\n  a"),
        (">\n  a\n  b\n\n  c\n", "a b\nc\n", ">\n  a\n  b\n\n  c"),
        ("|2\n   a\n", " a\n", "|2\n   a"),
        ("| # why\n  a # not why\n", "a # not why\n", "| # why\n  a # not why"),
        ("|\n  a  \n", "a  \n", "|\n  a  "),
        ("|\n  a\u2028\n", "a\u2028\n", "|\n  a\u2028"),
        ("|\n", "", "|"),
        ("|\n\n\n", "", "|"),
        ("|\r\n  a\r\n  b\r\n\r\n", "a\nb\n", "|\r\n  a\r\n  b"),
    ],
)
def test_block_scalars_end_with_their_last_line_that_is_not_blank(
    block: str, expected: str, span: str
) -> None:
    text = f"key: {block}# comment\nnext: 1\n"
    assert value(text) == {"key": expected, "next": 1}
    assert written(text, "key") == span


def test_a_block_scalar_at_the_end_of_the_text_needs_no_line_end() -> None:
    assert written("key: |\n  a", "key") == "|\n  a"
    assert value("key: |\n  a") == {"key": "a"}


def test_the_style_and_kind_of_every_value_is_told() -> None:
    text = "p: x\ns: 'x'\nd: \"x\"\nl: |\n  x\nf: >\n  x\nq: [x]\nm: {x: y}\nb:\n- x\na: &n x\nr: *n\n"
    found = {m.key: (m.node.kind, m.node.style, m.node.anchored) for m in root(text).members}
    assert found == {
        "p": ("scalar", "plain", False),
        "s": ("scalar", "single", False),
        "d": ("scalar", "double", False),
        "l": ("scalar", "literal", False),
        "f": ("scalar", "folded", False),
        "q": ("list", "flow", False),
        "m": ("mapping", "flow", False),
        "b": ("list", "block", False),
        "a": ("scalar", "plain", True),
        "r": ("alias", "plain", False),
    }


def test_an_anchor_and_a_tag_are_part_of_the_span() -> None:
    text = "a: &x !!str 12\nb: !!seq\n- 1\nc: *x\n"
    assert written(text, "a") == "&x !!str 12"
    assert written(text, "b") == "!!seq\n- 1"
    assert written(text, "c") == "*x"


def test_offsets_count_code_points_and_begin_where_the_yaml_does() -> None:
    text = "😀: 👩‍👩‍👧 # 𐐷\né: 𐐷y\n"
    node = read_yaml(text, 10).node
    assert node is not None
    before = "-" * 10
    assert [(before + text)[slice(*m.node.span)] for m in node.members] == ["👩‍👩‍👧", "𐐷y"]
    assert [(before + text)[slice(*m.key_span)] for m in node.members] == ["😀", "é"]


@pytest.mark.parametrize("inside", ["\x85", "\u2028", "\u2029", "\U00100000"])
def test_only_line_feed_and_carriage_return_end_a_line(inside: str) -> None:
    lines = [
        f"# k{inside}x: 1",
        f"a: b {inside} c{inside}d",
        f'q: "b {inside} c"',
        f"s: 'b{inside}'",
        f"{inside}k: v",
    ]
    text = "\n".join(lines)
    assert value(text) == {
        "a": f"b {inside} c{inside}d",
        "q": f"b {inside} c",
        "s": f"b{inside}",
        f"{inside}k": "v",
    }
    assert written(text, "a") == f"b {inside} c{inside}d"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_read(end: str) -> None:
    text = end.join(["a: 1", "b:", "  - x", "  - y", ""])
    assert value(text) == {"a": 1, "b": ["x", "y"]}
    assert written(text, "b", 1) == "y"


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        ["no", "12:30", "- a", "a: b", "# c", "a # b", " a ", "'", '"', "|", "&a", "*a", "", "\n", "a\n\n"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text("abc é😀:#'\"", max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


class _Core(yaml.SafeLoader):
    """The pure Python loader with scalars resolved as in YAML 1.2: the reference for values."""

    def construct_plain(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return {key.value: self.construct_plain(item) for key, item in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [self.construct_plain(item) for item in node.value]
        assert isinstance(node, yaml.ScalarNode)
        resolved = node.style is None or node.tag.rsplit(":")[-1] in ("null", "bool", "int", "float")
        return tree.resolve(node.value) if resolved else node.value


def reference(text: str) -> Any:
    loader = _Core(text)
    try:
        node = loader.get_single_node()
        return loader.construct_plain(node) if node else None
    finally:
        loader.dispose()


DUMPS = st.fixed_dictionaries(
    {
        "default_flow_style": st.booleans(),
        "default_style": st.sampled_from([None, "'", '"']),
        "indent": st.integers(2, 6),
        "width": st.sampled_from([20, 80]),
        "allow_unicode": st.booleans(),
    }
)


@given(VALUES, DUMPS)
def test_values_are_those_of_another_loader_and_spans_hold_what_gives_them(
    data: Any, options: dict[str, Any]
) -> None:
    text = yaml.safe_dump(data, sort_keys=False, **options)
    assume(not any(character in text for character in "\x85\u2028\u2029\ufeff"))
    assume("? " not in text)
    parsed = read_yaml(text)
    assume(parsed.node is not None)
    assert parsed.node is not None
    assert parsed.node.value == reference(text)
    for node in parts(parsed.node):
        if node.style not in ("block", "literal", "folded") and node.kind != "alias":
            alone = read_yaml(text[slice(*node.span)]).node
            assert (alone.value if alone else None) == node.value


COMMENTED = st.lists(
    st.sampled_from(
        ["a: 1", "b: [x, y]  # k", "c:", "  - v # k", "  # k", "# k", "", "d: |\n    text", "e: 'q' # k"]
    ),
    max_size=8,
)


@given(COMMENTED)
def test_no_comment_ends_a_span_and_no_blank_surrounds_one(lines: list[str]) -> None:
    text = "\n".join(lines)
    node = read_yaml(text).node
    for part in parts(node) if node else ():
        span = text[slice(*part.span)]
        assert span == span.strip()
        if part.style not in ("literal", "folded"):
            assert not span.split("\n")[-1].endswith("# k")
            assert not span.startswith("#")


# ------------------------------------------------------------------------------------- aliases and limits


def test_an_alias_has_the_value_of_its_anchor_and_its_own_place() -> None:
    text = "a: &n {x: 1}\nb: *n\nc: [*n, *n]\n"
    assert value(text) == {"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}, {"x": 1}]}
    assert written(text, "c", 1) == "*n"


def test_an_anchor_may_be_given_again_and_the_last_one_counts() -> None:
    assert value("a: &n 1\nb: *n\nc: &n 2\nd: *n\n") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_an_alias_without_an_anchor_is_a_flaw_where_it_stands() -> None:
    parsed = read_yaml("tags: ok\nlink: *name\n")
    assert parsed.node is None
    (flaw,) = parsed.flaws
    assert (flaw.code, flaw.span.start) == ("invalid-yaml", 15)
    assert "*name" in flaw.message


@pytest.mark.parametrize(
    "text", ["&a [*a]", "a: &a {b: {c: *a}}", "&a\n- x\n- *a\n", "x: &a 1\ny: &a [*a]\n"]
)
def test_an_alias_that_contains_itself_is_refused(text: str) -> None:
    with pytest.raises(TooDeep) as caught:
        read_yaml(text)
    assert caught.value.what == "an alias contains itself"
    assert caught.value.offset == text.index("*")


def laughs(width: int, height: int) -> str:
    lines = [f"a0: &a0 [{', '.join(['lol'] * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, height)]
    return "\n".join(lines)


def test_a_billion_laughs_are_refused_before_they_are_expanded() -> None:
    text = laughs(10, 10)
    with pytest.raises(TooDeep) as caught:
        read_yaml(text)
    assert caught.value.limit == 10_000
    assert text.startswith("*a", caught.value.offset)


def test_what_aliases_repeat_counts_and_what_is_written_once_counts_once() -> None:
    # The mapping, its three keys, two lists of two, and an alias of one of them.
    text = "a: &a [1, 2]\nb: [3, 4]\nc: *a\n"
    assert read_yaml(text, max_values=13).node is not None
    with pytest.raises(TooDeep):
        read_yaml(text, max_values=12)


def test_values_nested_deeply_count_once_however_deep_they_are() -> None:
    text = "[" * 30 + ", ".join(["x"] * 9_000) + "]" * 30
    assert read_yaml(text).flaws == ()


def test_depth_is_counted_through_aliases() -> None:
    chain = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 12))])
    assert read_yaml(chain, max_depth=13).node is not None
    with pytest.raises(TooDeep) as caught:
        read_yaml(chain, max_depth=12)
    assert chain.startswith("*a10", caught.value.offset)


@cases("unit", ["[", "{", "{a: ", "- ", "? ", "[a, ", "[{a: "])
@pytest.mark.parametrize("times", [33, 10_000, 500_000])
def test_nesting_is_refused_at_the_limit_however_deep_it_goes(unit: str, times: int) -> None:
    with pytest.raises(TooDeep) as caught:
        read_yaml(unit * times)
    assert caught.value.limit == 32


def test_deep_block_mappings_are_refused_at_the_limit() -> None:
    text = "".join("  " * n + "a:\n" for n in range(200))
    with pytest.raises(TooDeep) as caught:
        read_yaml(text)
    assert text[: caught.value.offset].count("\n") == 32


def test_the_deepest_nesting_allowed_is_read() -> None:
    text = "[" * 32 + "x" + "]" * 32
    assert read_yaml(text).flaws == ()
    with pytest.raises(TooDeep):
        read_yaml(f"[{text}]")


# -------------------------------------------------------------------------------------------------- flaws


def test_duplicate_keys_are_flaws_at_the_second_key_and_the_last_value_counts() -> None:
    text = "a: 1\nb:\n  c.d: 1\n  'c.d': 2\na: 3\n"
    parsed = read_yaml(text)
    assert parsed.node is not None
    assert parsed.node.value == {"a": 3, "b": {"c.d": 2}}
    assert [(f.code, text[slice(*f.span)], f.rule) for f in parsed.flaws] == [
        ("duplicate-key", "'c.d'", r"b.c\.d"),
        ("duplicate-key", "a", "a"),
    ]


@pytest.mark.parametrize("key", ["[x, y]", "{x: 1}", "&n {x: [1, {y: 2}]}"])
@cases("held", ["v", "[v, {w: 1}]", "{w: [1]}", ""])
def test_a_key_that_is_no_scalar_is_a_flaw_and_is_left_out(key: str, held: str) -> None:
    text = f"a: 1\n? {key}\n: {held}\nb: 2\n"
    parsed = read_yaml(text)
    assert parsed.node is not None
    assert parsed.node.value == {"a": 1, "b": 2}
    (flaw,) = parsed.flaws
    assert (flaw.code, text[slice(*flaw.span)]) == ("complex-key", key)


@cases(
    "text",
    [
        *("a: !foo x", "a: !foo [x]", "a: !foo {x: 1}", "a: !!binary x", "a: !!python/name:os.system ''"),
        "!!set {x}",
    ],
)
def test_an_unknown_tag_is_a_flaw(text: str) -> None:
    assert codes(text) == ["unknown-tag"]


def test_an_unknown_tag_is_named_as_it_is_written() -> None:
    (flaw,) = read_yaml("a: !!timestamp 2024-01-31").flaws
    assert flaw.message == "unknown YAML tag !!timestamp"


@cases(
    "text, at",
    [
        *(("a: b: c\n", 4), ("a: 1\n b: 2\n", 7), ("a: [1, 2\nb: 3\n", 10), ("a: @x\n", 3)),
        *(("globs: *.py\n", 8), ("é😀: ok\na: `x`\n", 10), ("\ta: 1\n", 0), ("a: 'x\n", 6), ("a: 1\nb\n", 7)),
        *(("a: %x", 3), ('a: "\\q"', 4)),
    ],
)
def test_invalid_yaml_is_a_flaw_with_its_place_and_no_tree(text: str, at: int) -> None:
    parsed = read_yaml(text, 100)
    assert parsed.node is None
    (flaw,) = parsed.flaws
    assert flaw.code == "invalid-yaml"
    assert flaw.span.start == 100 + at
    assert flaw.message


@cases(
    "text, expected",
    [
        ('{"": {"{{": null}}', {"": {"{{": None}}),
        ('{"{{": {a: 1}}', {"{{": {"a": 1}}),
        ('["{{", "}}"]', ["{{", "}}"]),
        ("{{ title }}", "{{ title }}"),
        ("[{{a}}, {b: {{c}}}]", ["{{a}}", {"b": "{{c}}"}]),
    ],
)
def test_braces_in_quotes_are_no_placeholder(text: str, expected: object) -> None:
    parsed = parse(f"key: {text}\n", max_depth=32, max_values=100)
    assert (parsed.node and parsed.node.value, parsed.flaws) == ({"key": expected}, ())


@cases("control", ["\x00", "\x01", "\x08", "\x0b", "\x0c", "\x1b", "\x7f", "\x80", "\ufffe", "\uffff"])
def test_a_control_character_is_a_flaw_where_it_stands(control: str) -> None:
    parsed = read_yaml(f"é😀: ok\nkey: a{control}b\n")
    assert parsed.node is None
    assert [(f.code, f.span.start) for f in parsed.flaws] == [("invalid-yaml", 13)]


def test_a_second_document_is_a_flaw_and_the_first_one_is_read() -> None:
    parsed = read_yaml("a: 1\n--- # more\nb: 2\n")
    assert parsed.node is not None
    assert parsed.node.value == {"a": 1}
    assert [(f.code, f.span.start) for f in parsed.flaws] == [("invalid-yaml", 5)]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "   "])
def test_no_value_is_no_flaw(text: str) -> None:
    assert read_yaml(text) == Parsed(None, ())


@pytest.mark.parametrize("key", ["k" * 1025, f'"{"k" * 1025}"'])
def test_a_key_longer_than_the_1024_characters_of_yaml_is_a_flaw(key: str) -> None:
    assert codes(f"{key}: v") == ["invalid-yaml"]
    assert value(f"{key[:500]}{key[-1]}: v") is not None


YAMLISH = st.lists(
    st.sampled_from(
        [
            *"abc:-?[]{},#&*!|>'\"%@`~\t\r\n \\012\x00\x85\u2028\ufeff😀",
            ": ",
            "- ",
            "\n  ",
            "---\n",
            "...\n",
            "&a ",
            "*a ",
            "<<: ",
            "!!x ",
        ]
    ),
    max_size=40,
).map("".join)


@given(st.one_of(st.text(), YAMLISH))
@example("? \n? \n")
@example("a: &a\nb: *a")
@example("- &a\n- *a")
@settings(max_examples=examples(300))
def test_any_text_is_a_tree_or_flaws_with_spans_inside_it(text: str) -> None:
    try:
        node, flaws = read_yaml(text, 7, max_depth=6, max_values=60)
    except TooDeep as refusal:
        node, flaws = None, (Flaw(Span(refusal.offset, refusal.offset), "too-deep", refusal.what),)
    for flaw in flaws:
        assert 7 <= flaw.span.start <= flaw.span.end <= 7 + len(text)
    if node is None:
        return
    members: list[Member] = [member for _, member in node.walk()]
    for span in (*(p.span for p in parts(node)), *(m.key_span for m in members)):
        assert 7 <= span.start <= span.end <= 7 + len(text)
    for part in parts(node):
        inner = part.parts
        assert all(part.span.start <= i.span.start and i.span.end <= part.span.end for i in inner)
        assert all(a.span.end <= b.span.start for a, b in pairwise(inner))


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), max_size=20),
        st.text('\u2028\u2029\x85\ufeff a\n\t"\\/', max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(JSON_VALUES, st.sampled_from([None, 2]))
def test_json_is_yaml(data: Any, indent: int | None) -> None:
    """All but raw characters that YAML forbids (DEL, C1 controls, noncharacters): those are flaws."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    parsed = read_yaml(text)
    if parsed.node is None:
        assert [f.message for f in parsed.flaws] == ["a control character is not allowed in YAML"]
    else:
        assert parsed == Parsed(parsed.node, ())
        assert parsed.node.value == data


def test_a_json_key_longer_than_1024_characters_is_a_flaw() -> None:
    assert codes(json.dumps({"k" * 1030: 1})) == ["invalid-yaml"]
