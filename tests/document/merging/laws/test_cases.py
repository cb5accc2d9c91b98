"""Merges that broke a law once, and those that a law must leave clean, in process and by a real `git merge`.

A case is a file of `tests/data/laws`: the three versions, and the text that they come to, or `conflict`.
`swapped` is the text with the sides swapped, where it is another one. `merged by git` is one that only a
merge by git need find, and `merged or conflict` one that nobody need find: any other clean text is wrong.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.document.document import parse_text
from mdmem.document.merging.merge import merge
from tests.end_to_end.test_git_merge import Edited, answering, diverged, install
from tests.speed import is_all, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = sorted((Path(__file__).parents[3] / "data" / "laws").glob("*.md"))
SECTION = re.compile(r"^%% ([\w ]+)\n(.*?)(?=^%% |\Z)", re.MULTILINE | re.DOTALL)
CASES = {file.stem: dict(SECTION.findall(file.read_text())) for file in FILES}
VERDICTS = ("merged", "merged by git", "merged or conflict")
NEWLINES = {"lf": "\n", "crlf": "\r\n"}
# Through git each takes a tenth of a second.
MERGED = CASES if is_all else dict(list(CASES.items())[::40])


def read_text(parts: dict[str, str], name: str, newline: str) -> str:
    return parts[name].replace("\n", newline)


def find_wanted(parts: dict[str, str], newline: str, *, is_swapped: bool, by_git: bool) -> set[str | None]:
    """The texts that the merge may come to; None is a conflict."""
    if "conflict" in parts:
        return {None}
    names = ("swapped",) * is_swapped + VERDICTS
    name = next(name for name in names if name in parts)
    may_conflict = "merged or conflict" in parts or ("merged by git" in parts and not by_git)
    return {read_text(parts, name, newline), *([None] if may_conflict else [])}


@pytest.mark.parametrize("newline", soak_most(NEWLINES.values()), ids=NEWLINES)
@cases("name", CASES)
def test_a_merge_comes_to_the_text_of_the_case_or_to_a_conflict(name: str, newline: str) -> None:
    parts = CASES[name]
    base, ours, theirs = (
        parse_text("note.md", read_text(parts, side, newline)) for side in ("base", "ours", "theirs")
    )
    for is_swapped, sides in ((False, (ours, theirs)), (True, (theirs, ours))):
        text = merge(base, *sides).text
        assert text in find_wanted(parts, newline, is_swapped=is_swapped, by_git=False)


def list_memories(side: str) -> Iterator[tuple[str, str]]:
    for folder, newline in NEWLINES.items():
        for name, parts in MERGED.items():
            yield f"memories/notes/{folder}/{name}.md", read_text(parts, side, newline)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_swapped", soak_most([False, True]), ids=["ours", "swapped"])
def test_one_merge_by_git_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_swapped: bool
) -> None:
    """All cases are memories of one repository; what conflicts leaves the others merged."""
    names = ("base", "theirs", "ours") if is_swapped else ("base", "ours", "theirs")
    base, ours, theirs = (dict(list_memories(name)) for name in names)
    edited = [
        {path: Edited(text, frozenset(), frozenset()) for path, text in side.items()}
        for side in (ours, theirs)
    ]
    made = diverged(tmp_path / "work", base, *edited)
    install(made.root, monkeypatch)
    with answering(made.root, tmp_path / "bin") as path:
        made.git("merge", "--quiet", "--no-edit", "theirs", path=path, check=False)
    conflicts, wrong = made.conflicts(), {}
    for folder, newline in NEWLINES.items():
        for name, parts in MERGED.items():
            file = f"memories/notes/{folder}/{name}.md"
            text = None if file in conflicts else (made.root / file).read_bytes().decode()
            if text not in find_wanted(parts, newline, is_swapped=is_swapped, by_git=True):
                wrong[file] = text
    assert not wrong


def test_each_case_has_one_verdict() -> None:
    for name, parts in CASES.items():
        verdicts = parts.keys() & {*VERDICTS, "conflict"}
        assert len(verdicts) == 1, name
        assert parts.keys() - verdicts == {"base", "ours", "theirs"} | (parts.keys() & {"swapped"}), name
