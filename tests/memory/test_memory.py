"""The façade: every path that goes in or comes out is relative to the namespace of its scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.errors import PathRefused
from mdmem.index.grep import Hits
from mdmem.memory.memory import Memory
from mdmem.vault.init import init
from mdmem.vault.scope import Scope


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(init(tmp_path / "memories").root)
    for path in (
        "notes/a.md",
        "users/alice/notes/b.md",
        "users/alice/rules/c.md",
        "users/alicebob/notes/d.md",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("# Plan\n\nneedle\n")
    return root


def test_grep_gives_paths_of_the_namespace_and_what_it_could_not_read(root: Path) -> None:
    hits = Memory(str(root), Scope(user="alice")).grep("needle")
    assert isinstance(hits, Hits)
    assert [(hit.path, hit.heading) for hit in hits] == [("notes/b.md", ("Plan",)), ("rules/c.md", ("Plan",))]
    assert hits.findings == ()


def test_grep_within_a_folder_gives_the_same_paths(root: Path) -> None:
    memory = Memory(str(root), Scope(user="alice"))
    assert [hit.path for hit in memory.grep("needle", within="rules")] == ["rules/c.md"]
    assert [hit.path for hit in memory.grep("needle", within="notes", globs=["b.md"])] == ["notes/b.md"]
    with pytest.raises(PathRefused):
        memory.grep("needle", within="../alicebob")


def test_grep_says_on_its_last_hit_how_much_it_left_out(root: Path) -> None:
    assert [hit.left_out for hit in Memory(str(root)).grep("needle", limit=3)] == [0, 0, 1]
