"""Field edits case by case; the cases are files in tests/data/field."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.errors import EditRefused, FieldNotFound, TooLarge, Usage
from mdmem.text.document import Limits, parse_text
from mdmem.text.edit import TextEdit, splice
from mdmem.text.field import set_field, unset_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark.structures import ParameterSet

CASES = Path(__file__).parents[1] / "data" / "field"
WHOLE = {"json": "a.json", "notes": "a.md"}  # the other files hold what stands between the two `---`


def _cases() -> Iterator[ParameterSet]:
    for file in sorted(CASES.glob("*.txt")):
        text = file.read_text(encoding="utf-8")
        chunks = text.removeprefix("%% ").removesuffix("\n").split("\n%% ")
        for title, given, wanted in zip(chunks[::3], chunks[1::3], chunks[2::3], strict=True):
            command, before = _chunk(given)
            _, after = _chunk(wanted)
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
@pytest.mark.parametrize(("theme", "command", "before", "after"), list(_cases()))
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


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        *(("a: 'x'", "x"), ("a:", None), ("a: ~", None), ("a: 0x10", 16), ("a: 1.0", 1.0)),
        *(("a: .nan", float("nan")), ("a: [b, {c: d}]", ["b", {"c": "d"}]), ("b: &x [1]\na: *x", [1])),
    ],
)
def test_a_field_that_has_the_value_is_not_touched(yaml: str, value: Any) -> None:
    assert _set(f"---\n{yaml}\n---\n", "a", value) == []


@pytest.mark.parametrize(
    ("old", "new"), [("1", 1.0), ("1", True), ("1.0", 1), ("'1'", 1), ("null", ""), ("0", False)]
)
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\na: [1\n---\n", "the frontmatter cannot be edited"),
        ("---\n- a\n---\n", "not a list"),
        ("---\na: 1\nbody\n", "never closed"),
        ("---\n? [x]\n: 1\na: 1\n---\n", "a key must be"),
        ("---\na: 1\na: 2\n---\n", "'a' stands 2 times, in lines 2, 3"),
        ("---\na: &x 1\nb: *x\n---\n", "line 2: the value has the anchor &x, and line 3 uses it"),
        ("---\na:\n  - &x 1\n  - 2\nb: *x\n---\n", "the anchor &x"),
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


@pytest.mark.parametrize(
    ("text", "reason"),
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


@pytest.mark.parametrize(
    ("key", "reason"),
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
        ("map.k", "the anchor &m"),
        ("map.new", "the anchor &m"),
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


@pytest.mark.parametrize("value", [b"x", {1, 2}, {1: "x"}, [("a",)], object()])
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
    text = "---\na: |" + " \t" * 30_000 + "\n  b\n---\n"
    began = time.process_time()
    assert splice(text, set_field(parse_text("a.md", text), "a", "c"))
    assert time.process_time() - began < 2
