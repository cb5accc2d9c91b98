"""Runs of tools: which call an answer belongs to, in every form, and what a run names."""

from __future__ import annotations

import json
from typing import Any

from mdmem.conversations.log.message import Message
from mdmem.conversations.observe.runs import ToolRun, errors_in, files, runs
from tests.tables import cases


def found(*data: dict[str, Any]) -> list[ToolRun]:
    return list(runs([Message(number, each) for number, each in enumerate(data, 1)]))


def call(identifier: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": identifier, "function": {"name": name, "arguments": json.dumps(arguments)}}


def test_an_answer_belongs_to_the_last_call_of_its_id() -> None:
    told = found(
        {
            "role": "assistant",
            "tool_calls": [call("a", "Bash", command="x y"), call("b", "Bash", command="z")],
        },
        {"role": "tool", "tool_call_id": "b", "content": "Exit code 1\nz broke"},
        {"role": "tool", "tool_call_id": "a", "content": "fine"},
        {"role": "assistant", "tool_calls": [call("a", "Bash", command="x y")]},
        {"role": "tool", "tool_call_id": "a", "content": "Exit code 2\nx broke"},
        {"role": "assistant", "tool_calls": [call("c", "Bash", command="waits")]},
    )
    assert [(run.seq, run.what, run.failure) for run in told] == [
        (1, "`x y`", ""),
        (1, "`z`", "z broke"),
        (4, "`x y`", "x broke"),
        (6, "`waits`", ""),
    ]


def test_blocks_and_items_are_read_as_well() -> None:
    told = found(
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "Edit", "input": {"path": "a.py"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "It is closed.", "is_error": True}
            ],
        },
        {
            "type": "function_call",
            "call_id": "b",
            "name": "shell",
            "arguments": '{"command": ["bash", "-lc", "make it"]}',
        },
        {"type": "function_call_output", "call_id": "b", "output": "ok"},
    )
    assert [(run.what, run.failure, run.is_done) for run in told] == [
        ("Edit a.py", "It is closed.", False),
        ("`make it`", "", True),
    ]


def test_arguments_that_are_no_object_are_kept_as_they_are() -> None:
    (run,) = found(
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "[1"}}]}
    )
    assert run.arguments == {"input": "[1"}


@cases(
    "lines, first",
    [
        (["a.ts(1,2): error TS2322: no", "npm error code 2"], "a.ts(1,2): error TS2322: no"),
        (["=> ERROR [build 3/6] RUN npm ci", "Error: failed to build"], "Error: failed to build"),
        (["  File x", "KeyError: 'a'"], "KeyError: 'a'"),
        (["| error: a | b |", "error: c"], "error: c"),
        (['echo "Error: no"', "all is well"], None),
    ],
)
def test_of_the_lines_that_tell_an_error_the_first_says_why(lines: list[str], first: str | None) -> None:
    assert next(iter(errors_in(lines)), None) == first


def test_a_short_path_that_ends_one_other_is_the_same_file() -> None:
    home = "/home/" + "bob/p"
    told = found(
        {"role": "assistant", "tool_calls": [call("a", "Write", file_path=f"{home}/src/a.py")]},
        {"role": "assistant", "tool_calls": [call("b", "Edit", file_path="src/a.py")]},
        {"role": "assistant", "tool_calls": [call("c", "Read", file_path="./src/a.py")]},
        {"role": "assistant", "tool_calls": [call("d", "Read", file_path="b.py")]},
    )
    assert list(files(told, "")) == [
        ("files created: `~/p/src/a.py` (#1 to #2)", 2),
    ]
