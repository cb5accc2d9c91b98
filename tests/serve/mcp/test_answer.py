"""Answers: bounded, and what is left out is said.

Trouble: every error tells a model its next move in terms of the tools, and nothing of the host.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

import mdmem
from mdmem import errors
from mdmem.cli.main import app
from mdmem.diagnostic import about_file
from mdmem.document.text.tokens import estimate
from mdmem.errors import MdmemError, NearLine
from mdmem.serve.mcp.answer import describe_error, encodable, fit, short_hash
from tests.tables import cases
from tests.test_errors import EXAMPLES, KINDS, example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem.facade.memory import Memory
    from tests.serve.mcp.conftest import Tools


def test_the_first_item_is_always_taken() -> None:
    assert fit([(1, "x" * 1000), (2, "y")], 1) == [(1, "x" * 1000)]


def test_items_are_taken_as_far_as_they_fit() -> None:
    assert [number for number, _ in fit(((n, "x" * 40) for n in range(9)), 36)] == [0, 1, 2]


def test_half_a_character_becomes_its_escape_wherever_it_is() -> None:
    assert encodable({"a\ud800": ["\udfff", ("é", 1)]}) == {"a\\ud800": ["\\udfff", ["é", 1]]}


def test_no_hash_is_short_too() -> None:
    assert short_hash(None) == ""
    assert short_hash("0123456789abcdef") == "0123456789ab"


def sparse(kind: type[MdmemError]) -> MdmemError:
    """An error that says nothing but what it has to."""
    return kind(**{name: EXAMPLES[name] for name in kind.fields if not hasattr(kind, name)})


ERRORS = [*map(example, KINDS), *map(sparse, KINDS)]
COMMANDS = "|".join(app.list_commands(click.Context(app)))
OF_THE_PROGRAM = re.compile(rf"\bmdmem (?:{COMMANDS})\b|(?<![\w-])--[a-z]")
# What no tool does: set-up, health, git, and what coding tools read.
ELSEWHERE = {
    *("cli", "git", "hosts", "imports", "serve"),
    *("doctor.py", "instructions.py", "git.py", "commits.py", "merge_setup.py", "reverts.py"),
}


def speaks_of_the_program(error: MdmemError, memory: Memory) -> bool:
    """Whether a model is told to use a command or an option, which only the user has."""
    data = describe_error(error, memory).data["error"]
    hints = [data["hint"], *(finding["hint"] for finding in data.get("findings", ()))]
    return any(OF_THE_PROGRAM.search(hint) and "tell the user" not in hint for hint in hints)


@cases("error", ERRORS, ids=lambda error: error.code)
def test_no_error_tells_a_model_to_use_the_program(memory: Memory, error: MdmemError) -> None:
    assert describe_error(error, memory).data["error"]["code"] == error.code
    assert not speaks_of_the_program(error, memory)


def remedies() -> Iterator[tuple[str, str, str]]:
    """What any place in the library says to do next: the place, the error, and the text of the source."""
    root = Path(mdmem.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if ELSEWHERE & {*path.relative_to(root).parts}:
            continue
        text, name = path.read_text("utf-8"), path.relative_to(root)
        for node in ast.walk(ast.parse(text)) if re.search("remedy|hint", text) else ():
            where = f"{name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                given = [each.value for each in node.keywords if each.arg in {"remedy", "hint"}]
                yield from (
                    (where, ast.unparse(node.func), text) for text in filter(None, map(literal, given))
                )
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"remedy", "hint"}:
                yield where, "", literal(node.value)


def literal(node: ast.expr) -> str:
    """A text as it stands in the source, with `x` for what is filled in."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)


def test_what_any_place_says_to_do_next_is_told_in_terms_of_the_tools(memory: Memory) -> None:
    tried = 0
    for place, name, text in remedies():
        kind = getattr(errors, name, None)
        if kind is None:
            found = about_file("a.md", "schema", "wrong", text)
            assert not speaks_of_the_program(errors.Invalid(findings=(found,)), memory), place
        assert not speaks_of_the_program(example(kind or errors.EditRefused).but(remedy=text), memory), place
        tried += bool(OF_THE_PROGRAM.search(text))
    assert tried > 5


def test_a_refused_edit_names_the_tool_that_can(tools: Tools) -> None:
    tools("write", path="a.json", content="{}\n")
    refused = tools.error("section", path="a.json", text="more", where="append")
    assert (refused["code"], refused["hint"]) == ("edit-refused", "change its fields with write")


@pytest.mark.parametrize(
    "error",
    [
        errors.MemoryNotFound(path="a.md", near=("b.md",)),
        errors.TextNotFound(path="a.md", old="x", near=(NearLine(3, "y", "case"),)),
        errors.TextAmbiguous(path="a.md", old="aa", expected=1, lines=(1, 1), overlapping=True),
        errors.SectionNotFound(path="a.md", heading="x", near=("Why",)),
    ],
    ids=lambda error: error.code,
)
def test_what_is_near_is_told(memory: Memory, error: MdmemError) -> None:
    assert describe_error(error, memory).data["error"]["hint"].startswith(error.hint)


def test_folders_of_the_host_are_not_told(memory: Memory, vault_root: Path) -> None:
    error = errors.StorageFailed(path=f"{vault_root}/notes/a.md", action="read it", reason="denied")
    answer = describe_error(error, memory)
    assert answer.texts[0] == "notes/a.md: cannot read it: denied"
    assert str(vault_root.parent) not in str(answer)


def test_the_difference_of_a_conflict_is_bounded(tools: Tools, memory: Memory) -> None:
    memory.write("notes/a.md", "x\n" * 50_000)
    base = memory.show("notes/a.md").hash[:12]
    memory.write("notes/a.md", "y\n" * 50_000, overwrite=True)
    answer = tools.box.call("rm", {"path": "notes/a.md", "base": base})
    assert answer.data["error"]["code"] == "conflict"
    assert estimate("\n".join(answer.texts)) < 10_000
    assert "characters left out]" in answer.texts[0]


def test_a_bug_is_told_and_ends_nothing(
    tools: Tools, memory: Memory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(memory, "show", broken)
    told = tools.error("show", path="a.md")
    assert (told["code"], told["message"]) == ("bug", "a bug in mdmem: ZeroDivisionError")
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert tools("ls").data["total"] == 0
