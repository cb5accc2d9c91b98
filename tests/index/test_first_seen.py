"""What was first seen of cited code: kept for as long as the citation stands, wherever its memory goes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from mdmem.index.index import Index
from mdmem.index.references import occurrences
from mdmem.index.source import pin_of
from mdmem.index.view import View

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CITES = "See `src/app.py#L2`.\n"
SEEN = pin_of(["two = 2"])


@pytest.fixture
def root(vault_root: Path) -> Path:
    (vault_root.parent / "src").mkdir()
    (vault_root / "notes").mkdir()
    code(vault_root, "one = 1\ntwo = 2\n")
    note(vault_root, CITES)
    return vault_root


@pytest.fixture
def index(root: Path) -> Iterator[Index]:
    index = Index(str(root))
    index.sync()
    yield index
    index.close()


def code(root: Path, text: str) -> None:
    (root.parent / "src/app.py").write_text(text)


def note(root: Path, text: str, path: str = "notes/a.md") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def seen(index: Index) -> list[str]:
    index.sync()
    return [value for (value,) in index.rows("SELECT seen FROM citations ORDER BY document, n")]


def states(index: Index) -> list[str]:
    index.sync()
    found = occurrences(View(index, index.vault), types=("line_range", "function"))
    return [each.place.state for each in found]


def test_what_is_cited_is_kept_as_it_was_first_seen(root: Path, index: Index) -> None:
    assert seen(index) == [SEEN]
    code(root, "one = 1\ntwo = 3\n")
    note(root, f"# Another day\n\n{CITES}")
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]


@pytest.mark.parametrize("before", ["", "---\nid: x\n---\n"])
def test_it_goes_with_the_memory(root: Path, index: Index, before: str) -> None:
    note(root, before + CITES)
    index.sync()
    code(root, "one = 1\ntwo = 3\n")
    (root / "archive/deep").mkdir(parents=True)
    (root / "notes/a.md").rename(root / "archive/deep/b.md")
    assert seen(index) == [SEEN]
    shutil.move(root / "archive", root / "old")
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]


def test_it_goes_with_a_memory_that_changes_on_the_way_and_has_an_id(root: Path, index: Index) -> None:
    note(root, f"---\nid: x\n---\n{CITES}")
    index.sync()
    code(root, "one = 1\ntwo = 3\n")
    (root / "notes/a.md").unlink()
    note(root, f"---\nid: x\n---\nmore\n\n{CITES}", "notes/b.md")
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]


def test_another_memory_that_cites_the_same_sees_it_as_it_is_now(root: Path, index: Index) -> None:
    code(root, "one = 1\ntwo = 3\n")
    note(root, f"Mine. {CITES}", "notes/b.md")
    assert seen(index) == [SEEN, pin_of(["two = 3"])]
    assert states(index) == ["changed", "unchanged"]


def test_a_citation_that_is_written_anew_is_seen_anew(root: Path, index: Index) -> None:
    code(root, "one = 1\ntwo = 3\n")
    note(root, "Nothing.\n")
    assert seen(index) == []
    note(root, CITES)
    assert seen(index) == [pin_of(["two = 3"])]


def test_code_that_is_not_there_yet_is_seen_when_its_memory_is_taken_in_again(
    root: Path, index: Index
) -> None:
    note(root, "See `src/new.py#L1`, `src/new.py#f` and `src/new.py`.\n", "notes/b.md")
    assert seen(index) == [SEEN, "", "", ""]
    (root.parent / "src/new.py").write_text("def f(): pass\n")
    note(root, "See `src/new.py#L1`, `src/new.py#f` and `src/new.py`.\n\n", "notes/b.md")
    expected = pin_of(["def f(): pass"])
    assert seen(index) == [SEEN, expected, expected, ""]


def test_a_pinned_citation_needs_nothing_of_it(root: Path, index: Index) -> None:
    note(root, f"See `src/app.py#L2` <!-- pin {SEEN} -->.\n")
    code(root, "one = 1\ntwo = 3\n")
    note(root, f"See `src/app.py#L2` <!-- pin {pin_of(['two = 3'])} -->.\n")
    assert states(index) == ["unchanged"]
    note(root, f"Other: `src/app.py#L1` <!-- pin {SEEN} -->.\n")
    assert seen(index) == [""]


def test_citations_that_are_made_to_name_each_others_lines_are_seen_anew(root: Path, index: Index) -> None:
    note(root, "`src/app.py#L1` `src/app.py#L2`\n")
    index.sync()
    code(root, "zero = 0\none = 1\ntwo = 2\n")
    assert states(index) == ["moved", "moved"]
    note(root, "`src/app.py#L2` `src/app.py#L3`\n")
    assert states(index) == ["unchanged", "unchanged"]


def test_a_text_index_that_is_lost_takes_nothing_of_it_along(root: Path, index: Index) -> None:
    code(root, "one = 1\ntwo = 3\n")
    (text,) = root.glob(".mdmem/local/index/*/text")
    shutil.rmtree(text)
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]
