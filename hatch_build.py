"""Puts the man pages into the wheel; they are made from the text of the help, which is nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface[Any]):
    """Writes the pages before a wheel is built, and removes them after it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatch's signature
        """Say which files go where."""
        sys.path.insert(0, self.root)
        from mdmem.cli.help import pages  # noqa: PLC0415 - the program as it is built
        from mdmem.cli.main import app  # noqa: PLC0415

        self._folder = TemporaryDirectory(prefix="mdmem-man-")
        for name, text in pages(app):
            page = Path(self._folder.name, name)
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="ascii")
            build_data["shared_data"][str(page)] = f"share/man/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove them."""
        self._folder.cleanup()
