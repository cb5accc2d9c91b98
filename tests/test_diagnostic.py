"""A finding is a value: it is compared, printed in the form that editors read, and written as JSON."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import pytest

from mdmem.diagnostic import Diagnostic, Position, Span, as_json, told
from mdmem.errors import show_name
from tests.tables import cases

FINDING = Diagnostic(
    path="notes/a.md",
    span=Span(10, 14),
    position=Position(2, 5),
    code="duplicate-key",
    message="the key 'a' stands twice",
    hint="keep one of them",
    rule="a",
)


def test_a_finding_is_printed_as_path_line_column_code_and_message() -> None:
    assert str(FINDING) == "notes/a.md:2:5: duplicate-key the key 'a' stands twice"


def test_a_name_is_one_line_wherever_it_is_shown_and_stays_as_it_is_where_it_is_one() -> None:
    ends = "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    assert len(show_name(ends).splitlines()) == 1
    assert show_name("a\x1b[31m\u2028\udcff\ud800") == r"a\x1b[31m\u2028\xff\ud800"
    for name in ("notes/a b.md", "Bücher/Ø.md", "日本.md", "a\u202eb", r"a\x"):
        assert show_name(name) == name


def test_a_finding_is_an_error_without_hint_or_rule_unless_it_says_otherwise() -> None:
    bare = Diagnostic(path="a.md", span=Span(0, 0), position=Position(1, 1), code="x", message="m")
    assert (bare.severity, bare.hint, bare.rule) == ("error", "", "")


def test_a_finding_is_an_object_in_json() -> None:
    assert json.loads(json.dumps(as_json(FINDING))) == {
        "path": "notes/a.md",
        "line": 2,
        "column": 5,
        "start": 10,
        "end": 14,
        "code": "duplicate-key",
        "severity": "error",
        "message": "the key 'a' stands twice",
        "hint": "keep one of them",
    }


def test_equal_findings_are_one_in_a_set_and_come_back_from_another_process() -> None:
    assert {FINDING, FINDING._replace()} == {FINDING}
    assert FINDING._replace(severity="warning") != FINDING
    assert pickle.loads(pickle.dumps(FINDING)) == FINDING


@cases("name", FINDING._fields)
def test_a_finding_cannot_be_changed(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(FINDING, name, "another")


def test_of_very_many_findings_the_first_are_told_and_how_many_more_there_are() -> None:
    findings = [FINDING._replace(rule=str(number), severity="warning") for number in range(1_001)]
    assert told(findings[:-1]) == findings[:-1]
    *first, last = told([*findings, FINDING])
    assert first == findings[:1_000]
    assert (last.code, last.severity, last.message) == ("more", "error", "2 more findings are left out")


class Pair(NamedTuple):
    one: int
    two: tuple[str, ...]


@dataclass(frozen=True)
class Shaped:
    """A class of which JSON has other members than fields."""

    JSON: ClassVar = ("name", "twice")
    name: str
    hidden: int = 0

    @property
    def twice(self) -> str:
        return self.name * 2


def test_values_are_objects_of_their_fields_or_of_what_their_class_names() -> None:
    found = as_json({"pair": Pair(1, ("a",)), "shaped": [Shaped("x")], "findings": (FINDING,), "none": None})
    assert found["pair"] == {"one": 1, "two": ["a"]}
    assert found["shaped"] == [{"name": "x", "twice": "xx"}]
    assert found["findings"][0]["code"] == FINDING.code
    assert found["none"] is None
