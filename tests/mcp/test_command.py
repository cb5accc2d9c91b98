"""The command `mdmem mcp`: what it needs, and what it refuses before it serves."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.mcp.conftest import command

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = (
    "import sys; sys.modules['mcp'] = None; from mdmem.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def test_without_its_package_it_names_the_extra(vault_root: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, "--vault", str(vault_root), "mcp"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "pip install '.[mcp]'" in ended.stderr
    assert not ended.stdout


def test_a_port_that_is_taken_is_refused(vault_root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = subprocess.run(
            command(vault_root, "--http", port), capture_output=True, text=True, timeout=60, check=False
        )
    assert ended.returncode == 2
    assert f"cannot serve on port {port}" in ended.stderr


def test_it_ends_with_its_input(vault_root: Path) -> None:
    ended = subprocess.run(
        command(vault_root), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_user_that_no_folder_can_name_is_refused(vault_root: Path) -> None:
    ended = subprocess.run(
        command(vault_root, scope=("--user", "..")),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert ended.returncode == 2
    assert not ended.stdout
