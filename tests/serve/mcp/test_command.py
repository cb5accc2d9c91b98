"""The command `mdmem mcp`: what it needs, and what it refuses before it serves."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

from mdmem.cli.main import main
from tests.serve.mcp.conftest import serve_here

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def refused(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> str:
    """What is said of a command that is not begun."""
    assert main(["--vault", str(root), *arguments]) == 2
    out, errors = capsys.readouterr()
    assert not out
    return errors


def test_without_its_package_it_names_the_extra(
    vault_root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pip install '.[mcp]'" in refused(capsys, vault_root, "mcp")


def test_a_port_that_is_taken_is_refused(vault_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot serve on port {port}" in refused(capsys, vault_root, "mcp", "--http", port)


def test_it_ends_with_its_input(vault_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve_here(vault_root, lambda to, answers: (to.close(), answers.read())[1]) == b""
    assert capsys.readouterr() == ("", "")


def test_a_user_that_no_folder_can_name_is_refused(
    vault_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, vault_root, "--user", "..", "mcp")
