"""What coding tools are written: `mdmem project sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Files

RULE = b"---\nglobs: ['*.py']\n---\n# Python\n\nType everything.\n"


@pytest.fixture
def workspace(files: Files) -> Path:
    return files.root.parent


def test_a_check_fails_until_a_sync_was_made(cli: Cli, files: Files, workspace: Path) -> None:
    files.write("rules/python.md", RULE)
    ended = cli("project", "sync", "--check")
    assert ended.code == 1
    assert "missing .claude/rules/mdmem/python.md\n" in ended.out
    dry = cli.ok("project", "sync", "--dry-run")
    assert "+Type everything." in dry.out
    assert not (workspace / ".claude").exists()
    assert "created .claude/rules/mdmem/python.md\n" in cli.ok("project", "sync").out
    assert "Type everything." in (workspace / ".claude/rules/mdmem/python.md").read_text()
    assert cli.ok("project", "sync", "--check").out == "nothing to change\n"
    files.write("rules/python.md", RULE.replace(b"everything", b"most"))
    assert "outdated .cursor/rules/mdmem/python.mdc\n" in cli("project", "sync", "--check").out
    (files.root / "rules/python.md").unlink()
    assert "deleted .cursor/rules/mdmem/python.mdc\n" in cli.ok("project", "sync").out


def test_only_the_files_of_a_tool(cli: Cli, files: Files, workspace: Path) -> None:
    files.write("rules/python.md", RULE)
    cli.ok("project", "sync", "--host", "cursor")
    assert (workspace / ".cursor").exists()
    assert not (workspace / ".claude").exists()
    assert cli("project", "sync", "--check").code == 1
    assert cli("project", "sync", "--check", "--host", "cursor").code == 0


def test_what_somebody_wrote_is_told_and_left(cli: Cli, files: Files, workspace: Path) -> None:
    files.write("rules/python.md", RULE)
    cli.ok("project", "sync")
    own = workspace / ".cursor/rules/mdmem/python.mdc"
    own.write_text(own.read_text().replace("everything", "most"))
    ended = cli("project", "sync")
    assert ended.code == 1
    assert "edited .cursor/rules/mdmem/python.mdc: its block was changed: take the change into " in ended.out
    ended = cli("project", "sync", "--json", "--check")
    assert (ended.code, ended.json["differences"][0]["state"], ended.json["written"]) == (1, "edited", [])
    assert "most" in own.read_text()


def test_private_memory_is_refused(cli: Cli) -> None:
    assert cli("--user", "alice", "project", "sync").code == 2


def test_what_undo_does_not_touch_is_said(cli: Cli, files: Files, workspace: Path) -> None:
    files.write(".mdmem/config.toml", b'[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
    (workspace / "AGENTS.md").write_text("# Demo\n")
    files.write("rules/python.md", RULE)
    assert not cli("project", "sync", "--check").errors
    ended = cli.ok("project", "sync")
    assert "changed AGENTS.md\n" in ended.out
    assert ended.errors == (
        "undo does not touch .claude/rules/mdmem/python.md, .cursor/rules/mdmem/python.mdc,"
        " .github/instructions/mdmem/python.instructions.md and 2 more: to put back what was there, use git,"
        " or delete the marked blocks\n"
    )
    cli.ok("undo")
    assert (workspace / "AGENTS.md").read_text() == "# Demo\n"
    assert (workspace / "CLAUDE.md").exists()
    assert not cli.ok("project", "sync", "--host", "codex").errors
