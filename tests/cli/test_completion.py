"""Completion: the scripts for the shells, and what they ask the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Files


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell_without_a_vault(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.chdir(tmp_path)
    script = cli.ok("completion", shell).out
    assert f"_MDMEM_COMPLETE={shell}_complete" in script
    assert cli("completion", "tcsh").code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_takes_the_script(cli: Cli, files: Files) -> None:
    files.write("notes/db.md", b"x\n")
    script = cli.ok("completion", "bash").out
    words = 'COMP_WORDS=(mdmem show no); COMP_CWORD=2; _mdmem_completion mdmem; echo "${COMPREPLY[@]}"'
    beside = os.path.dirname(sys.executable)
    ended = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p mdmem\n{words}"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{beside}:/usr/bin:/bin"},
    )
    assert ended.stderr == ""
    assert ended.stdout == "complete -o nosort -F _mdmem_completion mdmem\nnotes/db.md\n"


def complete(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What bash is told when the last word of `line` is to be completed."""
    words = line.split(" ")
    monkeypatch.setenv("_MDMEM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    ended = cli()
    assert ended.code == 0
    assert ended.errors == ""
    return [answer.partition(",")[2] for answer in ended.out.splitlines() if answer]


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("mdmem show no", ["notes/db.md", "notes/deep/x.md"]),
        ("mdmem show notes/de", ["notes/deep/x.md"]),
        ("mdmem show x", []),
        ("mdmem append a", ["a.md"]),
        ("mdmem mv notes/db", ["notes/db.md"]),
        ("mdmem --user alice show ", ["mine.md"]),
        ("mdmem --resource broken show ", []),
        ("mdmem prep", ["prepend"]),
        ("mdmem notes l", ["list"]),
        ("mdmem show --ha", ["--hash"]),
        ("mdmem check --format ", ["text", "json", "github"]),
    ],
)
def test_words_are_completed(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch, line: str, answers: list[str]
) -> None:
    for path in ("a.md", "notes/db.md", "notes/deep/x.md", "users/alice/mine.md"):
        files.write(path, b"x\n")
    assert complete(cli, monkeypatch, line) == answers


def test_outside_a_vault_there_are_no_paths(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MDMEM_VAULT", raising=False)
    assert complete(cli, monkeypatch, "mdmem show ") == []


# README: `eval "$(mdmem completion bash)"` completes commands and paths. …
def test_the_real_program_completes(cli: Cli, files: Files) -> None:
    files.write("notes/größe.md", b"x\n")
    env = {"_MDMEM_COMPLETE": "zsh_complete", "COMP_WORDS": "mdmem show no", "COMP_CWORD": "2"}
    assert "notes/größe.md" in cli.program(env=env).out
