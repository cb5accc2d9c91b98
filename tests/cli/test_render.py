"""What is printed: for people without a program's noise, for programs without people's prose."""

from __future__ import annotations

from typing import Any

import pytest

from mdmem.cli.render import print_applied, print_error, print_findings, print_json
from mdmem.diagnostic import Diagnostic, Position, Span
from mdmem.errors import MemoryNotFound
from mdmem.vault.plan import EditPlan
from mdmem.vault.store import FileChange
from mdmem.vault.transaction import Applied


def finding(**changes: Any) -> Diagnostic:
    fields: dict[str, Any] = {
        "path": "notes/a.md",
        "span": Span(0, 1),
        "position": Position(3, 7),
        "code": "bad-type",
        "message": "tags is not a list",
        "hint": "write [a]",
        **changes,
    }
    return Diagnostic(**fields)


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("text", "notes/a.md:3:7: bad-type tags is not a list\n    write [a]\n"),
        ("github", "::error file=notes/a.md,line=3,col=7,title=bad-type::tags is not a list (write [a])\n"),
    ],
)
def test_a_finding(capsys: pytest.CaptureFixture[str], form: str, printed: str) -> None:
    assert print_findings([finding()], form) == 1
    assert capsys.readouterr().out == printed


def test_an_annotation_stays_in_one_line_and_one_property(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([finding(path="a,b:c%\n.md", message="one\r\ntwo: 50%", hint="")], "github")
    assert capsys.readouterr().out == (
        "::error file=a%2Cb%3Ac%25%0A.md,line=3,col=7,title=bad-type::one%0D%0Atwo: 50%25\n"
    )


def test_warnings_are_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_findings([finding(severity="warning", hint="")], "text") == 0
    assert capsys.readouterr().out == "notes/a.md:3:7: bad-type tags is not a list (warning)\n"
    assert print_findings([finding(severity="warning"), finding()], "json") == 1


def test_a_change_says_what_it_did_and_could_not_look_into(capsys: pytest.CaptureFixture[str]) -> None:
    files = (
        FileChange(path="new.md", before=None, after="a" * 64),
        FileChange(path="both.md", before="b" * 64, after="c" * 64),
        FileChange(path="old.md", before="d" * 64, after=None),
    )
    plan = EditPlan(changes=(), left_out=("x.md: not UTF-8",))
    print_applied(Applied(plan=plan, id="1", files=files, merged=("both.md",)), as_json=False)
    out, errors = capsys.readouterr()
    assert out.splitlines() == [
        f"created new.md  {'a' * 64}",
        f"changed both.md  {'c' * 64}  (merged with a change made meanwhile)",
        "deleted old.md",
    ]
    assert errors == "left out: x.md: not UTF-8\n"


def test_json_is_readable_and_keeps_every_letter(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"ü": ["数据库"]})
    assert capsys.readouterr().out == '{\n  "ü": [\n    "数据库"\n  ]\n}\n'


def test_an_error_is_for_people_and_with_json_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    error = MemoryNotFound(path="a.md", near=("b.md",))
    print_error(error, as_json=False)
    assert capsys.readouterr() == ("", "mdmem: a.md: no such memory\nnearest names: b.md\n")
    print_error(error, as_json=True)
    out, errors = capsys.readouterr()
    assert '"code": "memory-not-found"' in out
    assert errors.startswith("mdmem: ")
