"""What is printed: for people without a program's noise, for programs without people's prose."""

from __future__ import annotations

import json
import os
import pty
import sys
import termios
import time
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import click
import pytest
from hypothesis import given, strategies as st

from mdmem.cli import render
from mdmem.cli.main import app
from mdmem.cli.render import (
    Terminal,
    print_applied,
    print_error,
    print_json,
    show_progress,
)
from mdmem.diagnostic import Position
from mdmem.errors import MemoryNotFound
from mdmem.vault.plan import AttachmentChange, EditPlan
from mdmem.vault.store import FileChange
from mdmem.vault.transaction import Applied
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli, Files


def test_a_change_says_what_it_did_and_could_not_look_into(capsys: pytest.CaptureFixture[str]) -> None:
    files = (
        FileChange(path="new.md", before=None, after="a" * 64),
        FileChange(path="both.md", before="b" * 64, after="c" * 64),
        FileChange(path="old.md", before="d" * 64, after=None),
    )
    plan = EditPlan(changes=(), left_out=("x.md: not UTF-8",))
    print_applied(Applied(plan=plan, id="1", files=files, merged=("both.md",)))
    out, errors = capsys.readouterr()
    assert out.splitlines() == [
        f"created new.md  {'a' * 8}",
        f"changed both.md  {'c' * 8}  (merged with a change made meanwhile)",
        "deleted old.md",
    ]
    assert errors == "left out: x.md: not UTF-8\n"


@pytest.mark.parametrize(("count", "said"), [(1, "changed 1 attachment"), (2, "changed 2 attachments")])
def test_attachments_that_moved_are_counted(
    capsys: pytest.CaptureFixture[str], count: int, said: str
) -> None:
    files = tuple(FileChange(path=f"{number}.md", before=None, after="a" * 64) for number in range(11))
    moved = tuple(AttachmentChange(f"{number}.png", f"b/{number}.png", "c" * 64) for number in range(count))
    print_applied(Applied(plan=EditPlan(changes=(), attachments=moved), id="1", files=files, merged=()))
    assert f"{said} (-v" in capsys.readouterr().out


def test_json_is_one_object_a_line_and_keeps_every_letter(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"ü": ["数据库", "a\nb"]})
    assert capsys.readouterr().out == '{"ü": ["数据库", "a\\nb"]}\n'
    print_json([{"a": 1}, Position(1, 2)])
    assert capsys.readouterr().out == '{"a": 1}\n{"line": 1, "column": 2}\n'
    print_json([])
    print_json(None)
    assert capsys.readouterr().out == ""


def test_no_reader_of_json_takes_a_number_for_another(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"n": [2**53, 2**53 + 1, -(2**64), True, 0.5], "x": float("inf"), "y": float("nan")})
    expected = {"n": [2**53, str(2**53 + 1), str(-(2**64)), True, 0.5], "x": "inf", "y": "nan"}
    assert json.loads(capsys.readouterr().out) == expected


@given(
    st.recursive(
        st.text() | st.integers() | st.floats(), lambda t: st.lists(t) | st.dictionaries(st.text(), t)
    )
)
def test_what_is_printed_as_json_is_strict_json_in_one_line(value: Any) -> None:
    with redirect_stdout(StringIO()) as out:
        print_json({"value": value})
    (line,) = out.getvalue().splitlines()
    assert json.loads(line, parse_constant=pytest.fail).keys() == {"value"}


def test_an_error_is_for_people_and_with_json_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    error = MemoryNotFound(path="a.md", near=("b.md",))
    print_error(error, as_json=False)
    assert capsys.readouterr() == ("", "mdmem: a.md: no such memory\nnearest names: b.md\n")
    print_error(error, as_json=True)
    out, errors = capsys.readouterr()
    assert '"code": "memory-not-found"' in out
    assert errors.startswith("mdmem: ")


# ------------------------------------------------------------------------------------- what takes a while


@contextmanager
def screen(term: str = "xterm") -> Iterator[Callable[[str], str]]:
    """Standard error is a terminal of a person; what waits until a text is to be seen there."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    seen = ""

    def until(text: str) -> str:
        nonlocal seen
        while text not in seen:
            seen += os.read(ours, 4096).decode()
        return seen

    with open(theirs, "wb") as file, pytest.MonkeyPatch.context() as patch:
        stream = Terminal(file, "utf-8", line_buffering=True)
        patch.setattr(sys, "stderr", stream)
        patch.setattr(sys, "stdout", stream)
        patch.setenv("TERM", term)
        patch.setattr(render, "_PROGRESS_AFTER", 0)
        yield until
        stream.detach()
    os.close(ours)


def test_what_takes_a_while_says_how_far_it_is_until_it_is_done() -> None:
    with screen() as until:
        progress = show_progress()
        assert progress is not None
        progress("indexing", 1, 4)
        progress("indexing", 4, 4)
        sys.stderr.write("printed\n")
        bar = "indexing  [#####---------------]  1/4"
        assert until("printed\r\n") == f"\r{bar}\x1b[K\r\x1b[Kprinted\r\n"


def test_what_takes_a_while_says_what_is_left_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    with screen() as until:
        monkeypatch.setattr(time, "time", lambda: now)
        progress = show_progress()
        assert progress is not None
        for done in (1_200, 1_840):
            progress("indexing", done, 3_680)
            now += 10
        assert "1840/3680  00:00:" in until("1840/3680  00:00:")


def test_what_is_done_at_once_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen() as until:
        monkeypatch.setattr(render, "_PROGRESS_AFTER", 3_600)
        progress = show_progress()
        assert progress is not None
        progress("indexing", 1, 4)
        sys.stderr.write("printed\n")
        assert until("printed\r\n") == "printed\r\n"


def test_where_no_line_can_be_erased_nothing_is_said() -> None:
    with screen("dumb") as until:
        assert show_progress() is None
        sys.stderr.write("x\n")
        assert until("x\r\n") == "x\r\n"


def test_where_the_output_goes_to_another_program_nothing_is_said() -> None:
    with screen(), redirect_stdout(StringIO()):
        assert show_progress() is None


@pytest.mark.usefixtures("capsys")
def test_into_a_pipe_nothing_is_said() -> None:
    assert show_progress() is None


# ------------------------------------------------------------------------------------------------- colours

COLOURED = "\x1b[35mnotes/db.md\x1b[0m"


@pytest.mark.parametrize(
    ("variables", "is_coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "CLICOLOR_FORCE": "1"}, True),
        ({"TERM": "xterm", "CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_a_terminal_has_colours_unless_the_environment_says_no(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_coloured: bool
) -> None:
    files.write("notes/db.md", b"# Database\n")
    for name in ("NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code, seen = cli.on_terminal("--no-pager", "grep", "database")
    assert code == 0
    assert (COLOURED in seen) == is_coloured
    assert ("\x1b" in seen) == is_coloured


@pytest.mark.parametrize(("force", "is_coloured"), [("1", True), ("0", False), ("", False)])
def test_a_pipe_has_colours_where_they_are_forced(
    cli: Cli, files: Files, force: str, is_coloured: bool
) -> None:
    files.write("notes/db.md", b"# Database\n")
    env = {"CLICOLOR_FORCE": force, "NO_COLOR": "", "TERM": "dumb"}
    assert (b"\x1b[35m" in cli("grep", "database", env=env).data) == is_coloured
    assert b"\x1b" not in cli("grep", "database", "--json", env=env).data


@pytest.mark.parametrize("columns", ["1", "10", "40", "100000", "x", "-5", "0"])
def test_no_width_is_an_error(cli: Cli, files: Files, columns: str) -> None:
    files.write("notes/db.md", b"# Database\n\n[[gone]]\n")
    env = {"COLUMNS": columns, "LINES": columns}
    for arguments in (["--help"], ["help", "json"], ["grep", "database"], ["check"], ["ls", "--long"]):
        ended = cli(*arguments, env=env)
        assert ended.code == 0, ended.errors
        assert ended.out


# What prints a list, or what was found: with which words of an empty vault, the exit code, what it says.
NOTHING = [
    ("ls", 0, "memories"),
    ("ls --where path~x", 1, "memories"),
    ("ls --glob x", 1, "memories"),
    ("grep x", 1, "matches"),
    ("history", 0, "changes"),
    ("history x.md", 1, "changes of x.md"),
    ("tags", 0, "tags"),
    ("graph", 0, "links, citations or tags"),
    ("refs", 0, "references"),
    ("refs x.md", 1, "references"),
    ("refs --state dangling", 1, "references"),
    ("refs --stale", 0, "stale citations"),
    ("notes list", 0, "notes"),
    ("working list", 0, "working memory"),
    ("working show --thread x", 1, "working memory of x"),
    ("preferences list", 0, "preferences"),
    ("preferences list x", 1, "preferences of x"),
    ("rules list", 0, "rules"),
    ("rules list --for x", 1, "rules for x"),
    ("rules text", 0, "rules"),
    ("rules text --for x", 1, "rules for x"),
    ("sessions list", 0, "sessions"),
    ("sessions history x", 1, "messages of x"),
    ("sessions assemble x 100", 1, "messages of x"),
    ("sessions grep x --all", 1, "matches"),
    ("sessions search x --all", 1, "matches"),
    ("sessions rm x", 1, "session x"),
    ("sessions summaries", 0, "summaries"),
    ("sessions observations x", 1, "observations of x"),
    ("results list", 0, "outputs"),
    ("results list --tool x", 1, "outputs"),
    ("results references", 0, "references"),
    ("results references --kind url", 1, "references"),
    ("inbox list", 0, "proposals"),
    ("sessions capture x --policy apply", 1, "session x"),
]


@cases("typed, code, what", NOTHING, ids=[typed for typed, *_ in NOTHING])
def test_of_nothing_is_said_what_there_is_none_of(cli: Cli, typed: str, code: int, what: str) -> None:
    ended = cli(*typed.split())
    assert ended.code == code, ended.errors
    assert f"no {what}" in ended.errors.splitlines()
    assert not ended.out or typed == "graph"  # an empty graph is a graph
    as_json = cli(*typed.split(), "--json")
    assert as_json.code == code
    assert f"no {what}" in as_json.errors.splitlines()
    assert all(isinstance(each, dict) for each in as_json.objects)


def test_every_list_is_in_the_table() -> None:
    context = click.Context(app)
    groups = {name: app.get_command(context, name) for name in app.list_commands(context)}
    lists = {
        f"{name} list"
        for name, each in groups.items()
        if isinstance(each, click.Group) and "list" in each.commands
    }
    never_empty = {"template list", "schema list"}
    assert lists - never_empty <= {" ".join(typed.split()[:2]) for typed, *_ in NOTHING}
