"""Fixtures of the command line, for what it shares with the servers."""

from tests.cli.conftest import cli, files

__all__ = ["cli", "files"]
