"""What coding tools read and are written: `mdmem project resolve`, `audit` and `sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Files

RULE = b"---\nglobs: ['*.py']\n---\n# Python\n\nType everything.\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def workspace(files: Files) -> Path:
    return files.root.parent


def test_the_text_is_printed_and_the_files_beside_it(cli: Cli, workspace: Path, home: Path) -> None:
    (workspace / "AGENTS.md").write_text("# Here\n\nUse files.\n")
    (home / ".codex").mkdir()
    (home / ".codex/AGENTS.md").write_text("Be short.\n")
    ended = cli.ok("project", "resolve", "--for", "src/app.py", "--tool", "cursor")
    assert ended.out == "# Here\n\nUse files.\n"
    assert "  1  AGENTS.md  [project] in the workspace  19 of 19 bytes" in ended.errors
    (workspace / ".git").mkdir()
    ended = cli.ok("project", "resolve", "--for", str(workspace / "src/app.py"), "--tool", "codex")
    assert ended.out == "Be short.\n\n# Here\n\nUse files.\n"
    assert "~/.codex/AGENTS.md" in ended.errors


def test_what_is_cut_left_out_or_wrong_is_said(cli: Cli, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / "AGENTS.md").write_text("x" * 40_000)
    (workspace / "CLAUDE.md").write_text("@gone.md\n")
    ended = cli.ok("project", "resolve", "--for", "a.py", "--tool", "codex")
    assert "32,768 of 40,000 bytes, cut: 32,768 bytes in all" in ended.errors
    ended = cli.ok("project", "resolve", "--for", "a.py", "--tool", "claude")
    assert "  -  AGENTS.md" in ended.errors
    assert "CLAUDE.md:1:1: import-fails" in ended.errors


def test_an_answer_as_json_holds_everything(cli: Cli, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use files.\n")
    found = cli.ok("project", "resolve", "--for", "a.py", "--tool", "agents", "--json").json
    assert found["files"] == [
        {
            "path": "AGENTS.md",
            "tool": "agents",
            "scope": "project",
            "reason": "the nearest",
            "bytes": 11,
            "bytes_kept": 11,
            "limit": "",
        }
    ]
    assert (found["file"], found["text"], found["left_out"]) == ("a.py", "Use files.", [])


def test_an_unknown_tool_and_a_file_elsewhere_are_usage_errors(cli: Cli) -> None:
    assert cli("project", "resolve", "--for", "a.py", "--tool", "emacs").code == 2
    assert cli("project", "resolve", "--for", "../a.py", "--tool", "codex").code == 2


# README: `mdmem project audit` compares the tools …
def test_an_audit_lists_costs_and_findings(cli: Cli, workspace: Path) -> None:
    (workspace / "CLAUDE.md").write_text("Only one.\n")
    ended = cli.ok("project", "audit")
    assert (
        "CLAUDE.md:1:1: seen-by-some read by claude, copilot; not by codex, cursor, gemini, agents"
        in ended.out
    )
    assert any(line.split()[:3] == ["3", "tokens", "claude"] for line in ended.out.splitlines())
    found = cli.ok("project", "audit", "--json").json
    assert [finding["code"] for finding in found["findings"]] == ["seen-by-some"]
    assert len(found["costs"]) == 8


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
    cli.ok("project", "sync", "--tool", "cursor")
    assert (workspace / ".cursor").exists()
    assert not (workspace / ".claude").exists()
    assert cli("project", "sync", "--check").code == 1
    assert cli("project", "sync", "--check", "--tool", "cursor").code == 0


def test_what_somebody_wrote_is_told_and_brought_back(cli: Cli, files: Files, workspace: Path) -> None:
    files.write("rules/python.md", RULE)
    cli.ok("project", "sync")
    own = workspace / ".cursor/rules/mdmem/python.mdc"
    own.write_text(own.read_text().replace("everything", "most"))
    ended = cli("project", "sync")
    assert ended.code == 1
    assert "edited .cursor/rules/mdmem/python.mdc: its block was changed: --bring-back" in ended.out
    ended = cli("project", "sync", "--json", "--check")
    assert (ended.code, ended.json["differences"][0]["state"], ended.json["written"]) == (1, "edited", [])
    cli.ok("project", "sync", "--bring-back")
    assert files.read("rules/python.md") == RULE.replace(b"everything", b"most")


def test_private_memory_is_refused(cli: Cli) -> None:
    assert cli("--user", "alice", "project", "sync").code == 2
