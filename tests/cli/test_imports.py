"""The command that imports: what it did, what it left out, and how to take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Files

GRAPH = (
    b'{"type":"entity","name":"Ada","entityType":"person","observations":["Wrote the first program"]}\n{\n'
)


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "memory.jsonl").write_bytes(GRAPH)
    return str(tmp_path / "memory.jsonl")


# README: `mdmem import mcp-memory|basic-memory|claude-code|obsidian|aster SOURCE` …
def test_an_import_is_printed_and_undone_by_its_id(cli: Cli, files: Files, source: str) -> None:
    before = files.everything()
    ended = cli.ok("import", "mcp-memory", source, "--json")
    assert [file["path"] for file in ended.json["files"]] == ["notes/Ada.md"]
    assert ended.json["left_out"] == [f"{source}:2: this is not JSON"]
    assert b"- Wrote the first program\n" in files.read("notes/Ada.md")
    assert "nothing to change: import 0 from mcp-memory, 1 stand there already" in (
        cli.ok("import", "mcp-memory", source).out
    )
    cli.ok("undo", ended.json["id"])
    assert files.everything() == before


def test_a_dry_run_prints_the_diff_and_writes_nothing(cli: Cli, files: Files, source: str) -> None:
    before = files.everything()
    ended = cli.ok("import", "mcp-memory", source, "--to", "graph", "--dry-run")
    assert "+++ b/graph/Ada.md" in ended.out
    assert f"left out: {source}:2: this is not JSON" in ended.errors
    assert files.everything() == before


def test_the_kinds_of_aster_go_to_their_own_folders(cli: Cli, files: Files, tmp_path: Path) -> None:
    (tmp_path / "aster").mkdir()
    (tmp_path / "aster/alice.json").write_text('[{"Category": "ui", "Key": "theme", "Value": "dark"}]')
    source = str(tmp_path / "aster")
    assert "+++ b/users/alice/preferences/ui/theme.md" in cli.ok("import", "aster", source, "--dry-run").out
    ended = cli.ok("import", "aster", source, "--to", "users/bob", "--json")
    assert [file["path"] for file in ended.json["files"]] == ["users/bob/preferences/ui/theme.md"]
    assert b"value: dark\n" in files.read("users/bob/preferences/ui/theme.md")


def test_an_unknown_format_is_wrong_usage(cli: Cli, source: str) -> None:
    ended = cli("import", "evernote", source)
    assert ended.code == 2
    assert "mcp-memory" in ended.errors


def test_a_source_that_is_not_there_is_wrong_usage(cli: Cli) -> None:
    ended = cli("import", "basic-memory", "nowhere")
    assert ended.code == 2
    assert "nowhere: there is no such folder" in ended.errors
