"""The program says what it refused, took out or let pass, and shows no secret."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

TOKEN = "ghp_" + "".join(random.Random(1).choices(string.ascii_letters, k=36))
WORD = "REDACTED-github-token"


def configure(files: Files, policy: str) -> None:
    files.write(".mdmem/config.toml", f'[secrets]\npolicy = "{policy}"\n'.encode())


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--json"], ["--dry-run", "--json"]])
def test_a_refusal_names_the_line_and_how_to_allow_it(cli: Cli, files: Files, options: list[str]) -> None:
    ended = cli("append", "a.md", f"one\n{TOKEN}", *options)
    assert ended.code == 2
    assert "a.md:2:1: secret this looks like a secret: GitHub token ghp_…" in ended.errors
    assert "mdmem:allow-secret" in ended.errors
    assert TOKEN not in ended.out + ended.errors
    assert "a.md" not in files.everything()


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--json"], ["--dry-run", "--json"]])
def test_what_is_taken_out_is_said(cli: Cli, files: Files, options: list[str]) -> None:
    configure(files, "redact")
    ended = cli.ok("append", "a.md", TOKEN, *options)
    assert TOKEN not in ended.out + ended.errors
    if "--json" in options:
        assert [warning["code"] for warning in ended.json["warnings"]] == ["secret"]
    else:
        assert (
            f"warning: a.md:1:1: secret this looks like a secret: GitHub token ghp_…; {WORD}" in ended.errors
        )
    assert files.everything() == ({} if "--dry-run" in options else {"a.md": f"{WORD}\n".encode()})


def test_what_is_let_pass_is_said(cli: Cli, files: Files) -> None:
    configure(files, "warn")
    ended = cli.ok("append", "a.md", TOKEN)
    assert "warning: a.md:1:1: secret" in ended.errors
    assert files.read("a.md") == f"{TOKEN}\n".encode()


@pytest.mark.parametrize("options", [["--dry-run"], ["--yes"]])
def test_a_replacement_in_many_memories_shows_what_it_takes_out(
    cli: Cli, files: Files, options: list[str]
) -> None:
    configure(files, "redact")
    cli.ok("write", "a.md", "here\n")
    ended = cli.ok("replace", "--glob", "*.md", "--all", "here", TOKEN, *options)
    assert f"+{WORD}" in ended.out
    assert "warning: a.md:1:1" in ended.errors
    assert TOKEN not in ended.out + ended.errors


def test_a_secret_that_stands_there_is_a_warning_of_check(cli: Cli, files: Files) -> None:
    files.write("a.md", f"key: {TOKEN}\n".encode())
    ended = cli.ok("check")
    assert "a.md:1:6: secret this looks like a secret: GitHub token ghp_…" in ended.out
    assert TOKEN not in ended.out
    assert cli.ok("check", "--format", "json").objects[0]["severity"] == "warning"
