"""A finding about content: where it stands, its code, what is wrong, what would be accepted."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from mdmem.errors import MdmemError, show_name

Severity = Literal["error", "warning", "note"]
_TOML_PLACE = r"\(at (?:line (\d+), column (\d+)|end of document)\)\Z"
SECRETS = "secret"
SECRETS_HINT = "leave it out, or name where it is kept"


def as_json(value: Any) -> Any:
    """Return a value of any kind as JSON has it: an object of the fields of a dataclass or a named tuple.

    A class with other members in its object says so: `JSON` names the fields and properties, `json_shape()`
    gives the members. What is neither, nor a collection, stays as it is.
    """
    kind = type(value)
    if hasattr(kind, "json_shape"):
        return as_json(value.json_shape())
    names = (
        getattr(kind, "JSON", None)
        or getattr(kind, "_fields", None)
        or getattr(kind, "__dataclass_fields__", None)
    )
    if names:
        return {name: as_json(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, list | tuple) else value


class Span(NamedTuple):
    """A stretch of a text: `start` and `end` as 0-based offsets in code points, end exclusive."""

    start: int
    end: int


def is_within(spans: Sequence[Span], at: int) -> bool:
    """Return whether a place is in one of some spans, which are in order and apart."""
    number = bisect_right(spans, (at, sys.maxsize)) - 1
    return number >= 0 and at < spans[number][1]


class Position(NamedTuple):
    """A place in a text: 1-based line, 1-based column in code points."""

    line: int
    column: int


class Related(NamedTuple):
    """A place that a finding is also about: the memory, the span in it, and what stands there, in words."""

    path: str
    span: Span
    message: str


def find_toml_place(text: str, error: Exception) -> Position | None:
    """Return where a text is not TOML, by what `tomllib` says of it; None where it names no place."""
    place = re.search(_TOML_PLACE, str(error))
    if place and place[1]:
        return Position(int(place[1]), int(place[2]))
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n")) if place else None


class Diagnostic(NamedTuple):
    """One finding in one memory.

    Attributes:
        path: the memory, as the vault names it.
        span: what it is about, in code points of the decoded text.
        position: where `span` starts.
        code: names the kind of finding for programs and never changes.
        message: what is wrong.
        hint: what would be accepted, or what to do; may be empty.
        severity: an error refuses a change that would bring it about; a warning does not, and a note is
            nothing wrong: something else has changed, and the memory may have to.
        rule: which part of a schema or document it is about, stable while lines move: two findings
            with the same `path`, `code` and `rule` are the same finding before and after an edit.
        related: other places that it is about.
    """

    path: str
    span: Span
    position: Position
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"
    rule: str = ""
    related: tuple[Related, ...] = ()

    def __str__(self) -> str:
        place = f"{self.path}:{self.position.line}:{self.position.column}"
        return show_name(f"{place}: {self.code} {self.message}")

    def for_agent(self) -> Diagnostic:
        """Return the finding as an agent is told it: not how a person would let a secret pass."""
        return self._replace(hint=SECRETS_HINT) if self.code == SECRETS else self

    def json_shape(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {
            "path": self.path,
            "line": self.position.line,
            "column": self.position.column,
            "start": self.span.start,
            "end": self.span.end,
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
        }


def about_file(
    path: str,
    code: str,
    message: str,
    hint: str = "",
    *,
    line: int = 1,
    column: int = 1,
    severity: Severity = "error",
    rule: str = "",
) -> Diagnostic:
    """Return a finding about a file as a whole, or about a place in it; the first line and column are 1."""
    return Diagnostic(
        path=path,
        span=Span(0, 0),
        position=Position(line, column),
        code=code,
        message=message,
        hint=hint,
        severity=severity,
        rule=rule,
    )


def about_error(error: MdmemError, path: str) -> Diagnostic:
    """Return an error as a finding about a file, at the line and column that the error names."""
    line, column = (error.values.get(name) or 1 for name in ("line", "column"))
    return about_file(path, error.code, error.message, error.hint, line=line, column=column)


MOST_TOLD = 1_000
"""How many findings of one memory are told."""


def told(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings of one memory; behind the first `MOST_TOLD`, one that says how many more there are."""
    rest = iter(findings)
    found = list(islice(rest, MOST_TOLD))
    following = next(rest, None)
    if following is None:
        return found
    severities = [following.severity, *(finding.severity for finding in rest)]
    return [
        *found,
        following._replace(
            code="more",
            message=f"{len(severities):,} more findings are left out",
            hint="fix these first",
            severity="error" if "error" in severities else "warning",
        ),
    ]
