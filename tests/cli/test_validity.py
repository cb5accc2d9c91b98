"""Commands about what counts, and what was: what programs are told of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


def test_a_program_is_told_which_memories_of_the_past_are_not_certain(cli: Cli, files: Files) -> None:
    files.write("notes/before.md", b"there before mdmem\n")
    cli.ok("write", "notes/mine.md", "mine\n")
    done = cli.ok("past", "2999-12-31", "--json")
    told = done.json
    assert told["unsure"] == {"notes/before.md": "not kept"}
    assert Path(told["folder"], "notes/mine.md").read_text() == "mine\n"
    assert not Path(told["folder"], "notes/before.md").exists()
    assert done.errors == "notes/before.md: not kept\n"
