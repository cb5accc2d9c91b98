"""Field edits: the cases of tests/data/field, what holds for any document, and forms that are rare.

Of any frontmatter and JSON that people do write, only the field changes and nothing is refused; of rare YAML
an edit is exact or refused by name, never wrong, never a crash.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document import yaml_edit
from mdmem.document.document import Document, Limits, parse_text
from mdmem.document.edit import TextEdit, splice
from mdmem.document.field import set_field, unset_field
from mdmem.document.tree import same
from mdmem.errors import (
    DocumentRefused,
    EditRefused,
    FieldNotFound,
    MdmemError,
    NotEncodable,
    TooLarge,
    TooNested,
    Usage,
)
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _pytest.mark.structures import ParameterSet

    from mdmem.document.tree import Key, KeyPath, Node

CASES = Path(__file__).parents[1] / "data" / "field"
WHOLE = {"json": "a.json", "notes": "a.md"}  # the other files hold what stands between the two `---`


def _cases() -> Iterator[ParameterSet]:
    for file in sorted(CASES.glob("*.txt")):
        text = file.read_text(encoding="utf-8")
        chunks = text.removeprefix("%% ").removesuffix("\n").split("\n%% ")
        for title, old, new in zip(chunks[::3], chunks[1::3], chunks[2::3], strict=True):
            command, before = _chunk(old)
            _, after = _chunk(new)
            yield pytest.param(file.stem, command, before, after, id=f"{file.stem}: {title}")


def _chunk(chunk: str) -> tuple[str, str]:
    """A chunk's first line, and the text below it; `%` at the end stands for no line end."""
    head, below, text = chunk.partition("\n")
    return head, text.removesuffix("%") if text.endswith("%") or not below else f"{text}\n"


def _edited(path: str, text: str, command: str) -> str:
    verb, key, *value = command.split(" ", 2)
    document = parse_text(path, text)
    name = json.loads(key) if key.startswith("[") else key
    edits = set_field(document, name, json.loads(value[0])) if verb == "set" else unset_field(document, name)
    return splice(text, edits)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@cases("theme, command, before, after", list(_cases()))
def test_case(theme: str, command: str, before: str, after: str, newline: str) -> None:
    if theme not in WHOLE:
        before, after = (f"---\n{inner}---\nbody\n" for inner in (before, after))
    if "\n" not in before and newline != "\n":
        return  # nothing says which line end the text has
    for mark in ("", "\ufeff"):
        text, wanted = (mark + part.replace("\n", newline) for part in (before, after))
        assert _edited(WHOLE.get(theme, "a.md"), text, command) == wanted


def _set(text: str, key: Any, value: Any, path: str = "a.md") -> list[TextEdit]:
    return set_field(parse_text(path, text), key, value)


@cases(
    "yaml, value",
    [
        *(("a: 'x'", "x"), ("a:", None), ("a: ~", None), ("a: 0x10", 16), ("a: 1.0", 1.0)),
        *(("a: .nan", float("nan")), ("a: [b, {c: d}]", ["b", {"c": "d"}]), ("b: &x [1]\na: *x", [1])),
    ],
)
def test_a_field_that_has_the_value_is_not_touched(yaml: str, value: Any) -> None:
    assert _set(f"---\n{yaml}\n---\n", "a", value) == []


@cases("old, new", [("1", 1.0), ("1", True), ("1.0", 1), ("'1'", 1), ("null", ""), ("0", False)])
def test_values_of_another_type_are_another_value(old: str, new: Any) -> None:
    text = f"---\na: {old}\n---\n"
    fields = parse_text("a.md", splice(text, _set(text, "a", new))).fields
    assert repr(fields["a"]) == repr(new)


def test_only_the_bytes_of_the_value_are_in_the_edit() -> None:
    text = "---\na: 'old'  # why\n---\n"
    assert _set(text, "a", "new") == [TextEdit(text.index("'"), text.index("  #"), "'new'")]


def test_non_ascii_text_is_written_as_it_is() -> None:
    text = "---\nü: 'ö'\n---\n"
    assert splice(text, _set(text, "ü", "日本 😀")) == "---\nü: '日本 😀'\n---\n"
    assert splice('{"ü": "ö"}', _set('{"ü": "ö"}', "ü", "日本", "a.json")) == '{"ü": "日本"}'


@cases(
    "text, reason",
    [
        ("---\na: [1\n---\n", "the frontmatter cannot be edited"),
        ("---\na: b: c\nd: 1\n---\n", "the frontmatter cannot be edited"),
        ('+++\na = "b"\n+++\n', "the frontmatter is TOML"),
        ('{"a": "b"}\n\nText\n', "the frontmatter is JSON"),
        ("---\na: 1\nbody\n", "never closed"),
        ("---\n? [x]\n: 1\na: 1\n---\n", "a key must be"),
        ("---\na: 1\na: 2\n---\n", "'a' stands 2 times, in lines 2, 3"),
        ("---\na: &x 1\nb: *x\n---\n", "other fields use its value"),
        ("---\na:\n  - &x 1\n  - 2\nb: *x\n---\n", "other fields use its value"),
        ("---\n? a\n: 1\n---\n", "cannot be edited exactly"),
    ],
)
def test_frontmatter_that_cannot_be_edited_exactly_is_refused(text: str, reason: str) -> None:
    document = parse_text("notes/a.md", text)
    with pytest.raises(EditRefused) as of_set:
        set_field(document, "a", "x")
    with pytest.raises(EditRefused) as of_unset:
        unset_field(document, "a")
    for error in (of_set.value, of_unset.value):
        assert reason in error.reason
        assert error.path == "notes/a.md"
        assert error.remedy


@cases(
    "text, reason",
    [
        ("", "a value is missing"),
        (" \n", "a value is missing"),
        ('{"a": 1', "missing"),
        ('"text"', "a single value"),
        ('{"a": 1, "a": 2}', "stands 2 times"),
    ],
)
def test_json_that_cannot_be_edited_exactly_is_refused(text: str, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason):
        _set(text, "a", "x", "a.json")


def test_an_empty_json_file_is_refused_with_a_hint() -> None:
    with pytest.raises(EditRefused) as error:
        _set("\ufeff \n", "a", 1, "a.json")
    assert "`{}`" in error.value.remedy


@cases(
    "key, reason",
    [
        ("text.k", "'text' is a single value"),
        ("none.k", "'none' is a single value"),
        ("list.k", "'list' is a list of 2: there is no 'k'"),
        ("list.3", "'list' is a list of 2: there is no '3'"),
        (("list", -1), "there is no -1"),
        ("list.0.k", "'list.0' is a single value"),
        ("new.0", "'new' is missing, so '0' may be an index or a key"),
        (("new", 0), "'new' is missing"),
        ("empty.0", "'empty' is a single value"),
        ("alias.k", "'alias' is an alias"),
        ("map.k", "other fields use its value"),
        ("map.new", "other fields use its value"),
    ],
)
def test_a_way_that_leads_nowhere_is_refused(key: Any, reason: str) -> None:
    text = "---\ntext: x\nnone: ~\nempty:\nlist: [1, 2]\nmap: &m\n  k: 1\nalias: *m\n---\n"
    with pytest.raises(EditRefused) as error:
        _set(text, key, "x")
    assert reason in error.value.reason


def test_a_text_of_digits_in_a_sequence_is_a_key() -> None:
    text = splice("", _set("", ("years", "2024"), "x"))
    assert parse_text("a.md", text).fields == {"years": {"2024": "x"}}


def test_an_aliased_value_may_change_once_its_alias_has_a_value_of_its_own() -> None:
    text = "---\na: &x 1\nb: *x\n---\n"
    text = splice(text, _set(text, "b", 2))
    assert splice(text, _set(text, "a", 3)) == "---\na: 3\nb: 2\n---\n"


def test_an_alias_goes_together_with_its_anchor() -> None:
    text = "---\na:\n  b: &x 1\n  c: *x\nd: 1\n---\n"
    assert splice(text, unset_field(parse_text("a.md", text), "a")) == "---\nd: 1\n---\n"


@pytest.mark.parametrize(
    ("key", "near"),
    [("b", ("a", "list", "map")), ("map.x", ("map.k\\.l",)), ("list.2", ("list.0", "list.1")), ("a.b", ())],
)
def test_removing_what_is_not_there_names_what_is(key: Any, near: tuple[str, ...]) -> None:
    text = "---\na: 1\nlist: [1, 2]\nmap: {k.l: 1}\n---\n"
    with pytest.raises(FieldNotFound) as error:
        unset_field(parse_text("a.md", text), key)
    assert (error.value.key, error.value.near) == (key, near)


@pytest.mark.parametrize("text", ["", "body\n", "---\n---\n", "---\n# c\n---\n"])
def test_nothing_can_be_removed_where_there_are_no_fields(text: str) -> None:
    with pytest.raises(FieldNotFound) as error:
        unset_field(parse_text("a.md", text), "a")
    assert error.value.near == ()


@cases("value", [b"x", {1, 2}, {1: "x"}, [("a",)], object()])
def test_what_is_no_json_value_is_refused(value: Any) -> None:
    with pytest.raises(Usage):
        _set("---\na: 1\n---\n", "a", value)


@pytest.mark.parametrize("key", ["", (), []])
def test_a_field_needs_a_name(key: Any) -> None:
    document = parse_text("a.md", "---\na: 1\n---\n")
    with pytest.raises(Usage):
        set_field(document, key, 1)
    with pytest.raises(Usage):
        unset_field(document, key)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_that_json_has_not_are_refused(value: Any) -> None:
    with pytest.raises(EditRefused, match="JSON has no number"):
        _set("{}", "a", value, "a.json")


def test_a_number_too_long_to_be_read_back_is_refused() -> None:
    for path in ("a.md", "a.json"):
        with pytest.raises(EditRefused, match="digits"):
            _set("{}" if path == "a.json" else "", "a", 10**5000, path)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(EditRefused, match="nested"):
        _set("", "a", value)


def test_frontmatter_that_would_be_too_large_is_refused() -> None:
    document = parse_text("a.md", "---\na: 1\n---\n", Limits(max_frontmatter_bytes=100))
    with pytest.raises(TooLarge):
        set_field(document, "a", "x" * 100)


def test_many_blanks_behind_the_head_of_a_block_take_no_endless_search() -> None:
    text = "---\na: |" + " \t" * 300_000 + "\n  b\n---\n"
    assert splice(text, set_field(parse_text("a.md", text, Limits(max_frontmatter_bytes=1 << 20)), "a", "c"))


# ----------------------------------------------------------------------------------------------- any document

QUICK = settings(max_examples=examples(120))

AWKWARD = [
    *("", " ", "yes", "NO", "null", "~", "12:30", "0o17", "012", "1e3", "1_000", "0b1", "2024-01-02"),
    *("2024-01-02T10:00:00Z", "---", "...", "a: b", "a #b", "#a", "- a", "a:", "it's", '"q"', "\\"),
    *("line\nline\n", "line\n\nline", " lead\nline\n", "a\r\nb", "a\u2028b", "a\u0085b", "\ufeff"),
    *("tab\there", "\x00\x07\x7f", "😀", "{}", "[a]", "*a", "&a", "!a", "%a", "@a", "`a`", "<<", "=", "?"),
    *("a, b", "---\nkey: 1\n---\n"),
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
        names = ["a", "b", "kind", "x.y", "é", "two words", "yes", "1", "q: q", "-d", "0"]
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
        assert result.body in (document.body, document.lines.newline + document.body)


@pytest.mark.parametrize("path", ["a.md", "a.json"])
@given(st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2))
@settings(max_examples=examples(20))
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


# ------------------------------------------------------------------------------------------------- rare forms

# What stands in frontmatter that other tools write: fields of one line and of several, in the ways of each.
FOREIGN = [
    *(
        "title: A note\n",
        'title: "A: note"\n',
        "title: 'It''s'\n",
        "title:\n",
        "title: 1984\n",
        "title:   A  # why\n",
    ),
    *(
        "tags: [a, b]\n",
        "tags: a, b\n",
        "tags:\n  - a\n  - b\n",
        "tags:\n- a\n- b\n",
        "tags:\n  - a\n  -\n",
        "tags: []\n",
    ),
    *(
        "tags: [2024, 3.10]\n",
        "tags: [\n  a,\n  b,\n]\n",
        'tags: ["#a", "b/c"]\n',
        "aliases:\n  - 'A'\n",
        "aliases: ~\n",
    ),
    *(
        "created: 1694500000000\n",
        "created: 2023-09-12T10:00:00+02:00\n",
        "date: [[2023-09-12]]\n",
        "date: {{date}}\n",
    ),
    *(
        'up: "[[Parent]]"\n',
        "up: [[Parent]]\n",
        "cssclasses: [wide]\n",
        "publish: true\n",
        "draft: no\n",
        "weight: 010\n",
    ),
    *(
        "menu:\n  main:\n    weight: 1\n",
        "params: {a: 1, b: [c]}\n",
        "layout: post\npermalink: /a/:b/\n",
        "slug: /\n",
    ),
    *(
        "text: |\n  one\n\n  two\n",
        "text: >-\n  one\n  two\n",
        "text: one\n  two\n",
        "# only a comment\n",
        "\n",
    ),
    *(
        "sidebar_position: 3\nid: intro\n",
        "hide:\n  - toc # why\n",
        "Last change: x\n",
        "'a b': 1\n",
        "名前: 値\n",
        "confidence: high\n",
    ),
]
SHAPES = [
    pytest.param(fence, start, fields, id=f"{number}-{style}")
    for number, fields in enumerate(FOREIGN)
    for style, (fence, start) in enumerate([("---\n", ""), ("...\n", ""), ("--- \n", "\ufeff")])
]


@cases("fence, start, fields", SHAPES)
def test_of_foreign_frontmatter_only_the_field_changes(fence: str, start: str, fields: str) -> None:
    for newline in ("\n", "\r\n"):
        none = ""
        for before, after in (("", fields), (fields, "")):
            old, new, none = (
                f"{start}---\n{before}{field}{after}{fence}\nText.\n".replace("\n", newline)
                for field in ("kind: old # why\n", "kind: 'it''s' # why\n", "")
            )
            assert splice(old, _set(old, "kind", "it's")) in (new, new.replace("'it''s'", "it's"))
            assert splice(old, unset_field(parse_text("a.md", old), "kind")) == none
        added = splice(none, _set(none, "kind", 1))
        assert added == f"{start}---\n{fields}kind: 1\n{fence}\nText.\n".replace("\n", newline)
        assert splice(added, unset_field(parse_text("a.md", added), "kind")) == none


@cases(
    "body",
    [
        *(
            "",
            "Text.\n",
            "# A\r\n\r\nText.\r\n",
            "\ufeffText.\n",
            "\nText.",
            "---\n\nText.\n\n---\n",
            "---\n- a\n---\n",
        ),
        *(
            "{% raw %}\nText.\n",
            "{{< figure >}}\n",
            "+++\nText.\n+++\n",
            "{#id}\n",
            "***\nText.\n",
            "---\nText.\n",
        ),
    ],
)
def test_a_field_is_set_and_removed_where_there_was_no_frontmatter(body: str) -> None:
    made = splice(body, _set(body, "kind", "x"))
    fields, _, rest = made.replace("\r\n", "\n").partition("kind: x\n---\n")
    assert fields.removeprefix("\ufeff") == "---\n"
    assert rest.removeprefix("\n") == body.replace("\r\n", "\n").removeprefix("\ufeff")
    assert splice(made, unset_field(parse_text("a.md", made), "kind")) == body


@cases(
    "text, left",
    [
        ("---\nkind: x\n---\nText.\n", "---\n---\nText.\n"),
        ("---\n# c\nkind: x\n---\n\nText.\n", "---\n# c\n---\n\nText.\n"),
        ("---\nkind:  x\n---\n\nText.\n", "---\n---\n\nText.\n"),
        ("---\nkind: x\nother: y\n---\n\nText.\n", "---\nother: y\n---\n\nText.\n"),
    ],
)
def test_frontmatter_that_somebody_else_made_stays_empty(text: str, left: str) -> None:
    assert splice(text, unset_field(parse_text("a.md", text), "kind")) == left


FRAGMENTS = [
    *("? a\n: b\n", "? c\n", "? - x\n: y\n", "d: &x 1\n", "e: *x\n", "f: &y\n  g: 1\n"),
    *("h: &z\n- i\n- &w j\n", "k: *y\n", "l: [*z, &v m, n: o]\n", "&k p: q\n", "*k : r\n", "s: !!str 5\n"),
    *("t: !tag\n  u: 1\n", "v: plain\n  over\n\n  lines # c\n", "w:\n  below # c\n", 'x: "double\n  over"\n'),
    *("y: |2\n    z\n\n\n", "z: >+\n  z\n\n", "aa:   \n", "- stray\n", "bb: {a, b: , 'c':1, ? d, e}\n"),
    *("cc: [\n  a, # c1, d\n  b\n  # c2\n]\n", "dd: {\n  a: 1, # c1\n  b: 2, # c2\n}\n"),
    *("ee: # c\n\n    # c\n  - - 1\n    - 2\n  -\n    ff: 1\n  - &q\n    gg: 1\n", "hh: |  # c\n"),
    *("ii: ''\n", "jj: x\u2028y\n", "kk: |\n  \u00a0\n", "\tll: 1\n", "mm: -\n", "%nn: 1\n"),
    *("# only a comment\n", "...\n", "oo: 1\r\n", "d: twice\n"),
]
KEYS = [
    *("a", "b", "c", "d", "e", "f", "f.g", "h", "h.0", "h.1", "h.2", "k", "k.g", "l", "l.0", "l.1", "l.2"),
    *("l.2.n", "l.3", "p", "s", "t", "t.u", "v", "w", "x"),
    *("y", "z", "aa", "aa.q", "bb", "bb.a", "bb.b", "bb.q"),
    *("cc", "cc.0", "cc.1", "cc.2", "dd", "dd.a", "dd.b", "dd.q", "ee", "ee.0", "ee.0.1", "ee.1", "ee.1.ff"),
    *("ee.2.gg", "ee.3", "hh", "ii", "jj", "kk", "ll", "mm", "oo", "new", "new.q"),
]
VALUES: list[Any] = [
    *("text", "a\nb\n", None, 5, [], {}, [1, "b"], ["i", "j", "k"], {"g": 2}, {"q": [{"r": []}]}),
]


def _read(document: Document) -> bool:
    try:
        return not {flaw.code for flaw in document.frontmatter.flaws} - {"duplicate-key", "unknown-tag"}
    except DocumentRefused:
        return False


@settings(max_examples=examples(400))
@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6),
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
)
def test_an_edit_of_rare_yaml_is_exact_or_refused(fragments: list[str], key: Any, value: Any) -> None:
    document = parse_text("a.md", "---\n" + "".join(fragments) + "---\nbody\n")
    if not _read(document):
        return
    try:
        result = parse_text("a.md", splice(document.text, set_field(document, key, value)))
    except EditRefused:
        pass
    else:
        node = result.tree and result.tree.find(key.split("."))
        assert node is not None
        assert same(node.value, value)
        assert result.body in (document.body, f"\n{document.body}")
        assert _read(result)
    try:
        result = parse_text("a.md", splice(document.text, unset_field(document, key)))
    except (EditRefused, FieldNotFound):
        return
    others = {name: part for name, part in document.fields.items() if name != key.split(".")[0]}
    assert same({name: part for name, part in result.fields.items() if name in others}, others)


@settings(max_examples=examples(300))
@given(st.text("---\n\r:#-[]{},'\"&*!|>? ab\t01.", max_size=40), st.sampled_from(["a", "b", "a.b", "0"]))
def test_whatever_the_frontmatter_is_only_known_errors_are_raised(yaml: str, key: Any) -> None:
    for path, text in (("a.md", f"---\n{yaml}\n---\n"), ("a.md", yaml), ("a.json", yaml)):
        document = parse_text(path, text)
        with suppress(MdmemError):
            after = parse_text(path, splice(document.text, set_field(document, key, ["x"])))
            node = after.tree and after.tree.find(key.split("."))
            assert node is not None
            assert node.value == ["x"]
        with suppress(MdmemError):
            after = parse_text(path, splice(document.text, unset_field(document, key)))
            assert after.tree is None or after.tree.find(key.split(".")) is None


def test_the_blank_lines_of_a_nested_text_go_with_its_field() -> None:
    document = parse_text("a.md", "---\na:\n  - b: |+\n      text\n\nc: 1\n---\n")
    assert splice(document.text, unset_field(document, ("a",))) == "---\nc: 1\n---\n"
