"""Servers that several tests share, each with a vault whose files a test replaces."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import mdmem
from tests.editor.lsp.client import UTF16, Client
from tests.editor.lsp.editor import Editor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Desk:
    """An editor beside a workspace with a vault."""

    def __init__(self, client: Client, folder: Path, encoding: str) -> None:
        self.client, self.folder = client, folder
        self.root = folder / "memories"
        self.editor = Editor(client, encoding)
        self._config = (self.root / ".mdmem/config.toml").read_bytes()

    def clear(self) -> None:
        """Close everything, and leave an empty vault."""
        for file in list(self.editor.buffers):
            self.editor.close(file)
        for place in (*self.folder.iterdir(), *self.root.iterdir()):
            if place != self.root and place.name not in {".mdmem", ".gitignore"}:
                shutil.rmtree(place) if place.is_dir() else place.unlink()
        shutil.rmtree(self.root / ".mdmem/schemas", ignore_errors=True)
        if (self.root / ".mdmem/config.toml").read_bytes() != self._config:
            (self.root / ".mdmem/config.toml").write_bytes(self._config)
            probe = self.write("probe.md", "[[none]]\n")
            self.editor.open(probe)
            self.client.codes(probe, ["dangling-link"])  # which the config silenced, maybe
            self.editor.close(probe)
            probe.unlink()
        # Once this is answered, nothing more is told of what was closed.
        self.client.ask("hover", self.folder / "none", {"line": 0, "character": 0})
        self.client.diagnostics.clear()
        self.client.told.clear()

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def read(self, path: str) -> str:
        return self.editor.text(self.root / path)


def make_desk(folder: Path, encoding: str, client: Client) -> Desk:
    mdmem.init(folder / "memories")
    client.initialize(folder, [encoding])
    return Desk(client, folder, encoding)


class Desks(dict[str, Desk]):
    """A server for each encoding, started when it is asked for."""

    def __init__(self, make_folder: Callable[[str], Path]) -> None:
        self._make_folder = make_folder

    def __missing__(self, encoding: str) -> Desk:
        folder = self._make_folder(encoding)
        self[encoding] = make_desk(folder, encoding, Client(cwd=folder))
        return self[encoding]


@pytest.fixture(scope="package")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Desk]]:
    """A server for each encoding."""
    found = Desks(tmp_path_factory.mktemp)
    yield found
    for desk in found.values():
        assert desk.client.close() == 0
        assert desk.client.errors == ""


@pytest.fixture
def desk(desks: dict[str, Desk]) -> Desk:
    """One of them, emptied."""
    found = desks[UTF16]
    found.clear()
    return found
