"""Every error says what happened and where, has a stable code, and travels: as JSON and between processes."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from mdmem import errors
from mdmem.diagnostic import Diagnostic, Position, Span, as_json
from mdmem.errors import MdmemError, NearLine, plural
from tests.tables import cases

# What programs know errors by: none of these ever goes.
CODES = {
    *("already-exists", "binary", "commit-failed", "config-invalid", "conflict", "embedder-failed"),
    *("document-refused", "edit-refused", "editor-failed", "extra-missing", "field-not-found"),
    *("file-busy", "git-failed", "git-refused", "git-silent", "history-not-ready"),
    *("index-damaged", "index-not-ready"),
    *("invalid", "limit-reached", "lock-timeout", "memory-not-found", "model-failed"),
    *("name-not-found", "no-repository", "not-allowed", "not-encodable", "not-found"),
    *("not-utf8", "path-ambiguous", "path-refused", "pattern-invalid", "pattern-too-slow"),
    *("refused", "result-not-found", "revert-refused", "ripgrep-failed", "ripgrep-missing"),
    *("ripgrep-too-old", "section-ambiguous", "section-not-found", "session-conflict", "storage-failed"),
    *("system-failing", "template-failed", "text-ambiguous", "text-not-found", "too-large"),
    *("too-many-parts", "too-nested", "tool-refused", "unavailable", "undo-conflict", "undo-refused"),
    *("usage", "vault-not-found", "version-refused"),
}


def family(kind: type[MdmemError]) -> list[type[MdmemError]]:
    return [kind, *(deeper for below in kind.__subclasses__() for deeper in family(below))]


KINDS = sorted(set(family(MdmemError)), key=lambda kind: kind.__name__)
FINDING = Diagnostic(
    path="notes/a.md",
    span=Span(4, 9),
    position=Position(2, 1),
    code="schema",
    message="'x' is too short",
    hint="give at least 3 characters",
)
# What the fields of the errors hold, by name: a field that is new is given an example here.
EXAMPLES: dict[str, Any] = {
    "path": "notes/a.md",
    "first": "notes/a.md",
    "second": "a.md (not there)",
    "column": 5,
    "start": "/srv/project",
    "where": "at or above",
    "around": "",
    "vault": "postgresql://db.example/memories?vault=team",
    "old": "the text that was looked for",
    "left_out": ("notes/c.md: not UTF-8",),
    "heading": "Design > Index",
    "own": ("Design > Index", "Notes > Index"),
    "key": "source.type",
    "kind": "schema",
    "name": "note",
    "is_alone": False,
    "problem": "--limit must be at least 1",
    "remedy": "give a number such as 10",
    "reasons": ("it has changed since",),
    "reason": "it leaves the namespace",
    "expected": 1,
    "lines": (3, 14),
    "overlapping": False,
    "counts": (("notes/a.md", 2),),
    "base": "a" * 64,
    "before": "b" * 64,
    "actual": "b" * 64,
    "hash": "c" * 64,
    "gone": "2026-05-04T10:11:12.000Z",
    "change": "20260504T101112131415-ab12",
    "diff": "--- a\n+++ b\n",
    "findings": (FINDING,),
    "line": 7,
    "pattern": "(",
    "what": "a search with a pattern of 2,000 characters",
    "limit": 1000,
    "offset": 12,
    "byte": 0xE9,
    "size": 5_000_000,
    "action": "write",
    "seconds": 2.5,
    "program": "/usr/bin/rg",
    "extra": "mcp",
    "words": "The path /memories/a.md does not exist",
    "package": "starlette",
    "version": "ripgrep 11.0.1",
    "done": 1_200,
    "of": 3_680,
}
NEAR: dict[str, Any] = {"TextNotFound": (NearLine(line=3, text="almost it", differs="case"),)}


def example(kind: type[MdmemError]) -> MdmemError:
    values = {
        name: kind.code
        if name == "code"
        else NEAR.get(kind.__name__, ("notes/b.md",))
        if name == "near"
        else EXAMPLES[name]
        for name in kind.fields
    }
    return kind(**values)


of_every_kind = cases("error", [example(kind) for kind in KINDS], ids=lambda error: type(error).__name__)


def test_no_two_errors_share_a_code() -> None:
    codes = [code for kind in KINDS for code in kind.codes or (kind.code,)]
    assert sorted(codes) == sorted(set(codes))
    assert set(codes) >= CODES


def test_a_class_of_several_codes_takes_one_of_them_and_keeps_it() -> None:
    silent = errors.GitFailed(code="git-silent", path="a", action="commit", reason="r")
    assert silent.code == pickle.loads(pickle.dumps(silent)).code == silent.but(path="b").code == "git-silent"
    assert as_json(silent)["code"] == "git-silent"
    assert errors.GitFailed(path="a", action="commit", reason="r").code == "git-failed"
    with pytest.raises(TypeError):
        errors.GitFailed(code="git-loud", path="a", action="commit", reason="r")


def test_every_error_is_in_the_module_that_lists_them() -> None:
    assert all(getattr(errors, kind.__name__) is kind for kind in KINDS)


@of_every_kind
def test_a_code_is_words_of_small_letters(error: MdmemError) -> None:
    assert error.code.replace("-", "").isalnum()
    assert error.code == error.code.lower()


@of_every_kind
def test_the_exit_code_says_no_match_or_refused(error: MdmemError) -> None:
    assert error.exit_code in {1, 2}


def test_what_is_not_there_ends_with_1_and_all_else_with_2() -> None:
    with_1 = {kind for kind in KINDS if kind.exit_code == 1}
    assert with_1 == set(family(errors.NotFound)) - {errors.VaultNotFound}


@of_every_kind
def test_a_message_names_what_it_is_about(error: MdmemError) -> None:
    message = str(error)
    assert message.startswith(error.message)
    assert error.hint in message
    for name in ("path", "name", "pattern", "start", "key", "heading", "program", "problem", "what"):
        if name in error.values:
            assert str(error.values[name]) in message, name


@of_every_kind
def test_a_message_has_no_blank_end_and_no_placeholder(error: MdmemError) -> None:
    for text in (error.message, error.hint, str(error)):
        assert text == text.strip()
        assert "None" not in text
    assert error.message


def test_an_error_without_its_optional_fields_still_says_something() -> None:
    for kind in KINDS:
        sparse = kind(**{name: EXAMPLES[name] for name in kind.fields if not hasattr(kind, name)})
        assert sparse.message == sparse.message.strip() != ""
        assert not str(sparse).endswith("\n")


@of_every_kind
def test_an_error_comes_back_from_another_process_as_it_was(error: MdmemError) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(error, protocol))
        assert type(twin) is type(error), protocol
        assert twin.values == error.values, protocol
        assert str(twin) == str(error), protocol


@of_every_kind
def test_a_copied_error_is_the_same(error: MdmemError) -> None:
    assert copy.copy(error).values == error.values
    assert copy.deepcopy(error).values == error.values


@of_every_kind
def test_an_error_can_be_written_as_json_with_its_fields(error: MdmemError) -> None:
    written = json.loads(json.dumps(as_json(error)))
    assert written["code"] == error.code
    assert written["message"] == error.message
    assert written["hint"] == error.hint
    assert set(error.values) <= set(written)


def test_findings_and_near_lines_are_objects_in_json() -> None:
    refused = as_json(errors.Invalid(findings=(FINDING,)))
    assert refused["findings"] == [as_json(FINDING)]
    missing = as_json(example(errors.TextNotFound))
    assert missing["near"] == [{"line": 3, "text": "almost it", "differs": "case", "path": ""}]


def test_an_error_is_raised_and_caught_by_its_base() -> None:
    with pytest.raises(errors.DocumentRefused) as caught:
        raise errors.NotUtf8(path="a.md", offset=2, byte=0xFF, line=1)
    assert isinstance(caught.value, errors.Refused)
    assert str(caught.value).splitlines()[0] == "a.md:1: not UTF-8: byte 0xff at offset 2"


def test_long_texts_are_shortened_in_messages() -> None:
    missing = errors.TextNotFound(path="a.md", old="x" * 10_000)
    assert len(missing.message) < 120
    assert "…" in missing.message
    assert missing.old == "x" * 10_000


def test_an_ambiguous_text_tells_its_lines_and_what_helps() -> None:
    once = errors.TextAmbiguous(path="a.md", old="x", expected=2, lines=(4,))
    assert once.message == "a.md: 'x' occurs once, in line 4; expected 2"
    twice = errors.TextAmbiguous(path="a.md", old="x", expected=1, lines=(4, 9))
    assert twice.message == "a.md: 'x' occurs 2 times, in lines 4, 9; expected 1"
    across = errors.TextAmbiguous(path="notes", old="x", expected=1, counts=(("notes/a.md", 3),))
    assert across.message == "notes: 'x' occurs 3 times, in notes/a.md (3); expected 1"
    assert (
        twice.hint
        != errors.TextAmbiguous(path="a.md", old="x", expected=1, lines=(4, 9), overlapping=True).hint
    )


def test_a_conflict_tells_what_was_and_what_is() -> None:
    conflict = errors.Conflict(path="a.md", base=None, actual="c" * 64, diff="-a\n+b\n")
    assert conflict.message == "a.md: changed since it was read (it was absent, it is cccccccc)\n-a\n+b"
    assert errors.Conflict(path="a.md", base="c" * 64, actual=None).message.endswith("it is absent)")


def test_a_refusal_gathers_every_finding_and_each_hint_once() -> None:
    other = Diagnostic(
        path="b.md", span=Span(0, 0), position=Position(1, 1), code="x", message="m", hint=FINDING.hint
    )
    refused = errors.Invalid(findings=(FINDING, other))
    assert refused.message.splitlines() == [
        "the change was refused, nothing was written:",
        "  notes/a.md:2:1: schema 'x' is too short",
        "  b.md:1:1: x m",
    ]
    assert refused.hint == FINDING.hint


@cases(
    "count, what, said",
    [
        (0, "memory", "0 memories"),
        (1, "memory", "1 memory"),
        (2, "line", "2 lines"),
        (1_200, "older change", "1,200 older changes"),
    ],
)
def test_a_number_of_something_agrees_with_its_noun(count: int, what: str, said: str) -> None:
    assert plural(count, what) == said
