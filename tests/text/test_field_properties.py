"""Properties of field edits: of random frontmatter and JSON only the field changes, nothing is refused."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.errors import NotEncodable, TooNested
from mdmem.text import yaml_edit
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import splice
from mdmem.text.field import set_field, unset_field
from mdmem.text.tree import same

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.text.tree import Key, KeyPath, Node

QUICK = settings(max_examples=120)

AWKWARD = [
    "",
    " ",
    "yes",
    "NO",
    "null",
    "~",
    "12:30",
    "0o17",
    "012",
    "1e3",
    "1_000",
    "0b1",
    "2024-01-02",
    "2024-01-02T10:00:00Z",
    "---",
    "...",
    "a: b",
    "a #b",
    "#a",
    "- a",
    "a:",
    "it's",
    '"q"',
    "\\",
    "line\nline\n",
    "line\n\nline",
    " lead\nline\n",
    "a\r\nb",
    "a\u2028b",
    "a\u0085b",
    "\ufeff",
    "tab\there",
    "\x00\x07\x7f",
    "😀",
    "{}",
    "[a]",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "`a`",
    "<<",
    "=",
    "?",
    "a, b",
    "---\nkey: 1\n---\n",
]
texts = st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


class _Style:
    """Draws how a value is written as YAML; every comment has a number of its own."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.comments = 0

    def flip(self, chances: int = 3) -> bool:
        return bool(self.draw(st.integers(0, chances)) == 0)

    def comment(self) -> str:
        self.comments += 1
        return f"# c{self.comments};"

    def behind(self) -> str:
        return f" {self.comment()}" if self.flip() else ""

    def between(self, indent: int) -> list[str]:
        lines = []
        if self.flip():
            lines.append(" " * indent + self.comment())
        if self.flip(5):
            lines.append("")
        return lines

    def key(self) -> str:
        names = ["a", "b", "title", "x.y", "é", "two words", "yes", "1", "q: q", "-d", "0"]
        return str(self.draw(st.sampled_from(names)))

    def mapping(self, indent: int, depth: int, first: str = "") -> list[str]:
        """The lines of a block mapping; `first` takes the place of the first line's indentation."""
        lines: list[str] = []
        names = self.draw(st.lists(st.builds(self.key), min_size=1, max_size=4, unique=True))
        for number, name in enumerate(names):
            if number:
                lines += self.between(indent)
            lead = first if first and not number else " " * indent
            written = json.dumps(name, ensure_ascii=False) if self.flip() else yaml_edit.scalar(name)
            lines += self.value(f"{lead}{written}:", indent, depth, listed=False)
        return lines

    def listing(self, indent: int, depth: int, first: str = "") -> list[str]:
        lines: list[str] = []
        for number in range(self.draw(st.integers(1, 3))):
            if number:
                lines += self.between(indent)
            lead = first if first and not number else " " * indent
            lines += self.value(f"{lead}-", indent, depth, listed=True)
        return lines

    def value(self, lead: str, indent: int, depth: int, *, listed: bool) -> list[str]:
        kinds = ["scalar", "scalar", "scalar", "block scalar", "flow", "lines"]
        kind = self.draw(st.sampled_from(kinds + (["mapping", "list", "mapping", "list"] if depth else [])))
        below = indent + self.draw(st.sampled_from([2, 2, 4]))
        if kind == "scalar":
            return [f"{lead} {self.scalar()}".rstrip() + self.behind()]
        if kind == "block scalar":
            mark = self.draw(st.sampled_from(["|", "|-", ">", ">-", "|+"]))
            inner = self.draw(
                st.sampled_from([["x"], ["x", "", "y # no comment"], ["x: 1", "- y"], ["x", ""]])
            )
            return [f"{lead} {mark}{self.behind()}", *(" " * below + line if line else "" for line in inner)]
        if kind == "lines":
            return [f"{lead} 'two", " " * below + f"lines'{self.behind()}"]
        if kind == "flow":
            return self.flow(lead, below)
        if listed and self.flip(1):
            build = self.mapping if kind == "mapping" else self.listing
            return build(len(lead) + 1, depth - 1, first=f"{lead} ")
        if kind == "mapping":
            inside = self.mapping(below, depth - 1)
        else:
            inside = self.listing(indent if not listed and self.flip(1) else below, depth - 1)
        return [lead + self.behind(), *self.between(below), *inside]

    def scalar(self) -> str:
        text = self.draw(
            st.sampled_from(["", "x", "a b", "null", "~", "5", "-0.5", "true", "2024-01-02", "no", "12:30"])
        )
        quotes = self.draw(st.sampled_from(["", "", "'", '"']))
        return f"{quotes}{text}{quotes}"

    def flow(self, lead: str, below: int) -> list[str]:
        atom = st.sampled_from(["x", "'y'", '"z, z"', "1", "[]", "[x, y]", "{k: v}"])
        items = self.draw(st.lists(atom, max_size=3))
        opening, closing = "[]"
        if self.flip(1):
            opening, closing = "{}"
            items = [f"k{n}: {item}" for n, item in enumerate(items)]
        if items and self.flip():
            trailing = "," if self.flip() else ""
            last = len(items) - 1
            inside = [f"{item}{',' if n < last else trailing}{self.behind()}" for n, item in enumerate(items)]
            lines = [" " * below + line for line in inside]
            return [f"{lead} {opening}", *lines, f"{' ' * below}{closing}{self.behind()}"]
        return [f"{lead} {opening}{', '.join(items)}{closing}{self.behind()}"]


@st.composite
def markdown(draw: Any) -> Document:
    style = _Style(draw)
    lines = [
        "---",
        *style.between(0),
        *style.mapping(0, 2),
        *style.between(0),
        "---",
        *draw(st.sampled_from(BODIES)),
    ]
    newline = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    document = parse_text("a.md", mark + "".join(line + newline for line in lines))
    assert document.frontmatter.flaws == ()
    assert document.tree is not None
    return document


BODIES: list[list[str]] = [[], [""], ["# Title", "", "text"], ["---", "x"]]


@st.composite
def json_text(draw: Any) -> Document:
    value = draw(st.one_of(st.dictionaries(texts, values, max_size=4), st.lists(values, max_size=3)))
    indent = draw(st.sampled_from([None, None, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", " : ")]))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    return parse_text("a.json", mark + (text + "\n").replace("\n", newline))


documents = st.one_of(markdown(), json_text())


def _paths(node: Node, path: KeyPath = ()) -> list[KeyPath]:
    keys: Iterable[Key] = [m.key for m in node.members] if node.kind == "mapping" else range(len(node.items))
    found = [] if not path else [path]
    for key, below in zip(keys, node.parts, strict=True):
        found += _paths(below, (*path, key))
    return found


def _tree(document: Document) -> Node:
    assert document.tree is not None
    return document.tree


def _made(document: Document, edits: Any) -> Document:
    result = parse_text(document.path, splice(document.text, edits), document.limits)
    assert result.body == document.body or document.is_json
    return result


def _changed(tree: Any, path: KeyPath, value: Any) -> Any:
    if not path:
        return value
    if isinstance(tree, list):
        index = int(path[0])
        below = tree[index] if index < len(tree) else None
        return [*tree[:index], _changed(below, path[1:], value), *tree[index + 1 :]]
    return {**tree, path[0]: _changed(tree.get(path[0]), path[1:], value)}


def _comments(text: str) -> set[str]:
    return set(re.findall(r"# c\d+;", text))


def _lines_around(document: Document, path: KeyPath) -> tuple[str, str]:
    """The text above the lines that a field stands in, and below them."""
    parent = _tree(document).find(path[:-1])
    node = _tree(document).find(path)
    assert parent is not None
    assert node is not None
    lines = document.lines
    start = node.span.start
    if member := parent.member(str(path[-1])) if parent.kind == "mapping" else None:
        start = member.key_span.start
    elif parent.style == "block":
        before = parent.items[int(path[-1]) - 1].span.end if path[-1] else parent.span.start
        dash = re.compile(r"(?:^|[\r\n]|(?<=- )) *-(?=[ \r\n])").search(document.text, before)
        start = dash.end() - 1 if dash and path[-1] else before
    first = lines.span(lines.number(start))
    last = lines.span(lines.number(max(node.span.end, first.start)))
    return document.text[: first.start], document.text[last.end :].lstrip("\r\n ")


@QUICK
@given(documents, values, st.data())
def test_setting_a_field_changes_that_value_and_nothing_else(
    document: Document, value: Any, data: st.DataObject
) -> None:
    paths = _paths(_tree(document))
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    edits = set_field(document, path, value)
    result = _made(document, edits)
    assert same(_tree(result).value, _changed(_tree(document).value, path, value))
    assert set_field(result, path, value) == []
    old = _tree(document).find(path)
    assert old is not None
    above, below = _lines_around(document, path)
    assert result.text.endswith(below)
    if old.kind == "scalar":
        assert result.text.startswith(above)
        assert _comments(result.text) == _comments(document.text)
    else:
        line_end = document.text.find(document.lines.newline, old.span.end)
        inside = _comments(document.text[old.span.start : line_end])
        assert _comments(result.text) >= _comments(document.text) - inside
    back = _made(result, set_field(result, path, old.value))
    assert same(_tree(back).value, _tree(document).value)
    if document.lines.uniform and not document.is_json:
        assert set(re.findall(r"\r\n|\r|\n", result.text)) <= {document.lines.newline}


@QUICK
@given(documents, texts, values, st.data())
def test_adding_a_field_keeps_every_line_that_was_there(
    document: Document, key: Any, value: Any, data: st.DataObject
) -> None:
    places = [(place, _tree(document).find(place)) for place in [(), *_paths(_tree(document))]]
    containers = [(place, node) for place, node in places if node and node.kind in ("mapping", "list")]
    where, container = data.draw(st.sampled_from(containers))
    name: Any = len(container.items) if container.kind == "list" else key
    if name in [m.key for m in container.members]:
        return
    path = (*where, name)
    edits = set_field(document, path, value)
    result = _made(document, edits)
    assert same(_tree(result).value, _changed(_tree(document).value, path, value))
    assert _comments(result.text) == _comments(document.text)
    assert all(edit.start == edit.end for edit in edits) or not container.parts
    again = _made(result, unset_field(result, path))
    assert same(_tree(again).value, _tree(document).value)


@QUICK
@given(documents, st.data())
def test_removing_a_field_keeps_everything_else(document: Document, data: st.DataObject) -> None:
    paths = _paths(_tree(document))
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    result = _made(document, unset_field(document, path))
    parent = _tree(document).find(path[:-1])
    assert parent is not None
    if parent.kind == "list":
        rest: Any = [v for n, v in enumerate(parent.value) if n != path[-1]]
    else:
        rest = {k: v for k, v in parent.value.items() if k != path[-1]}
    wanted = _changed(_tree(document).value, path[:-1], rest)
    assert same(result.tree.value if result.tree else {}, wanted)
    above, below = _lines_around(document, path)
    if len(parent.parts) > 1:
        assert result.text.endswith(below)
    own_lines = set(re.findall(r"^ *(# c\d+;)", above + "\n" + below, re.MULTILINE))
    assert own_lines <= _comments(result.text)


@given(texts, st.sampled_from(["plain", "single", "double", "literal", "folded", "flow"]))
@example("---", "plain")
@example("a\n", "literal")
@example("a\n ", "literal")
def test_any_text_can_be_written_in_place_of_any_other(text: str, style: str) -> None:
    written = {
        "plain": "old",
        "single": "'old'",
        "double": '"old"',
        "literal": "|\n  old\n  er",
        "folded": ">\n  old\n  er",
        "flow": "[a, b]",
    }[style]
    document = parse_text("a.md", f"---\nbefore: 1\nkey: {written}\n# own\nafter: 2\n---\nbody\n")
    path = ("key", 1) if style == "flow" else ("key",)
    result = _made(document, set_field(document, path, text))
    node = _tree(result).find(path)
    assert node is not None
    assert node.value == text
    listed = _made(document, set_field(document, "key", [text, {text: text}]))
    assert listed.fields["key"] == [text, {text: text}]


@QUICK
@given(values)
def test_any_value_can_be_the_first_field_of_a_note(value: Any) -> None:
    for text in (
        "",
        "body\n",
        "\nbody\n",
        "---\n---\nbody\n",
        "---\n# c\n---\n",
        "\ufeff# T\r\n",
        "---\n\nx\n",
    ):
        document = parse_text("a.md", text)
        result = parse_text("a.md", splice(text, set_field(document, "key", value)))
        assert same(result.fields, {"key": value})
        assert result.body.removeprefix(document.lines.newline) == document.body.removeprefix(
            document.lines.newline
        )


@pytest.mark.parametrize("path", ["a.md", "a.json"])
@given(st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2))
@settings(max_examples=20)
def test_a_lone_surrogate_is_refused_by_name(path: str, text: str) -> None:
    document = parse_text(path, '{"a": 1}' if path == "a.json" else "---\na: 1\n---\n")
    for value in (text, [text], {text: 1}):
        with pytest.raises(NotEncodable):
            set_field(document, "a", value)


def test_numbers_of_yaml_round_trip() -> None:
    document = parse_text("a.md", "---\na: 1\n---\n")
    for value in (1e16, 5e-324, -0.0, math.inf, -math.inf, math.nan, 10**300, 1e300):
        assert same(_made(document, set_field(document, "a", value)).fields["a"], value)


def test_a_result_that_passes_a_limit_is_refused_as_such() -> None:
    document = parse_text("a.md", "---\na: 1\n---\n")
    deep: Any = 1
    for _ in range(31):
        deep = [deep]
    assert _made(document, set_field(document, "a", deep)).fields["a"] == deep
    with pytest.raises(TooNested):
        set_field(document, "a", [deep])
