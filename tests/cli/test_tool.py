"""`mdmem tool`: commands of a model in, answers out, both JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_one_command_is_an_argument(cli: Cli, files: Files) -> None:
    files.write("notes/db.md", "ü\n".encode())
    ended = cli.ok("tool", '{"command": "view", "path": "/memories/notes/db.md"}')
    text = "Here's the content of /memories/notes/db.md with line numbers:\n     1\tü\n     2\t"
    assert lines(ended.data) == [{"content": text, "is_error": False}]


# README: `mdmem tool` does the same six commands …
def test_each_line_is_a_command_and_a_failed_one_ends_nothing(cli: Cli, files: Files) -> None:
    commands = [
        {"command": "create", "path": "/memories/a.md", "file_text": "one\n"},
        {"command": "create", "path": "/memories/a.md", "file_text": "two\n"},
        {"command": "delete", "path": "/memories/a.md"},
    ]
    given = b"\n".join(json.dumps(command).encode() for command in commands) + b"\n\nnonsense\n[]\n"
    ended = cli("tool", stdin=given)
    assert ended.code == 1
    assert [each["is_error"] for each in lines(ended.data)] == [False, True, False, True, True]
    assert lines(ended.data)[1]["content"] == "File /memories/a.md already exists"
    assert lines(ended.data)[4]["content"] == "The command is not a JSON object."
    assert not files.everything()


def test_the_namespace_is_what_the_model_sees(cli: Cli, files: Files) -> None:
    files.write("users/alice/a.md", b"one\n")
    ended = cli.ok("--user", "alice", "tool", '{"command": "view", "path": "/memories"}')
    assert lines(ended.data)[0]["content"].endswith("4B\t/memories/a.md")
