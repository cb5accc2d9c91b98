"""The laws of a clean merge, over edits of foreign files that a seed makes: no code of `merging` judges them.

1. Nothing stands under a stranger. 2. A leaf has no places. 3. What both replaced is a conflict. 4. Unchanged
lines stay, and where git is clean the result is git's. 5. Markers are no facts. 6. Nearly the same is seen by
a person. 7. The verdict has no sides. 8. A conflict is as small as git's.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mdmem import merge_files
from mdmem.document.document import parse_text
from mdmem.document.merging.merge import merge
from tests.document.merging.laws.edits import SCENES, NoPlaceError, make_pair
from tests.document.merging.laws.oracle import (
    Line,
    Version,
    count_between,
    find_broken,
    has_markers,
    has_moved_lines,
    has_twice,
    key,
    merge_by_git,
)
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.document.merging.laws.oracle import Marked, Pair

OFTEN = pytest.mark.parametrize("count", [50, pytest.param(examples(500), marks=[pytest.mark.soak])])
DRIVEN = 4  # of so many merges in process, one is made by the driver as well

REMOVED = (
    "section_removed_and_added_to",
    "subsection_added_below_a_removed_section",
    "item_removed_and_added_to",
    "table_or_leaf_removed_and_added_to",
)
KEPT = (
    "heading_renamed_and_added_to",
    "section_moved_and_added_to",
    "section_moved_and_reworded",
    "heading_taken_out_alone",
    "item_taken_out_alone",
    "added_behind_a_removed_neighbour",
    "nested_and_split",
)
LEAF = ("two_insertions_in_a_leaf", "one_insertion_in_a_leaf", "two_places_of_a_leaf")
MARKED = ("markers_in_the_base", "markers_on_one_side")
ALIKE = (
    "nearly_the_same_added",
    "the_same_added",
    "one_row_or_field_added",
    "one_section_added",
    "titles_nearly_the_same",
)
APART = (
    "independent_things_added",
    "entries_of_one_day_added",
    "two_sections_added",
    "ticked_and_reworded",
    "steps_inserted_by_both",
)
FREE = ("anything", "close_together")
ALL = tuple(SCENES)


class Driven(NamedTuple):
    """What the driver wrote."""

    text: str
    is_clean: bool


def make_pairs(scenes: Sequence[str], count: int) -> Iterator[Pair]:
    for number in range(count):
        try:
            yield make_pair(scenes[number % len(scenes)], f"{scenes[0]} {number}")
        except NoPlaceError:  # no file tried has a place for it
            continue


def merge_by_driver(pair: Pair, folder: Path) -> Driven:
    files = [folder / name for name in ("base", "ours", "theirs")]
    for file, version in zip(files, pair.versions, strict=True):
        file.write_bytes(version.text.encode())
    base, ours, theirs = map(str, files)
    merged = merge_files(base, ours, theirs, "note.md")
    return Driven(files[1].read_bytes().decode(), not merged.conflicts)


def merge_in_process(pair: Pair) -> str | None:
    base, ours, theirs = (parse_text("note.md", version.text) for version in pair.versions)
    return merge(base, ours, theirs).text


def is_same(text: str, other: str) -> bool:
    """Whether two texts are the same, but for blank lines at the end."""
    return text.rstrip("\r\n") == other.rstrip("\r\n")


def show(pair: Pair, text: str | None, *broken: str) -> str:
    versions = zip(("base", "ours", "theirs"), pair.versions, strict=True)
    sources = "".join(f"%% {name}\n{version.text}" for name, version in versions)
    return "\n".join([*broken, pair.name, f"{sources}== got", "CONFLICT" if text is None else text])


def hold_to_laws(pair: Pair, git: Marked, text: str | None) -> None:
    """Hold a merge, None for a conflict, to what its edits ask for; git's own may break laws 1, 3 and 6."""
    if text is None:
        assert pair.must != "clean", show(pair, text)
    elif not (git.is_clean and is_same(text, git.text)):
        broken = find_broken(pair, text)
        assert not broken, show(pair, text, *broken)


def hold_all_to_laws(scenes: Sequence[str], count: int, folder: Path) -> None:
    for number, pair in enumerate(make_pairs(scenes, count)):
        git = merge_by_git(pair)
        if not git.is_clean:
            hold_to_laws(pair, git, merge_in_process(pair))
        if number // len(scenes) % DRIVEN == 0:
            driven = merge_by_driver(pair, folder)
            hold_to_laws(pair, git, driven.text if driven.is_clean else None)


@OFTEN
def test_what_is_added_to_something_that_the_other_side_removed_is_a_conflict(
    tmp_path: Path, count: int
) -> None:
    hold_all_to_laws(REMOVED, count, tmp_path)


@OFTEN
def test_what_is_added_stands_where_its_author_saw_it(tmp_path: Path, count: int) -> None:
    """Also where the other side moved or renamed that, or took out what was around or before it."""
    hold_all_to_laws((*KEPT, *FREE), count, tmp_path)


@OFTEN
def test_two_insertions_at_one_place_of_a_leaf_are_a_conflict(tmp_path: Path, count: int) -> None:
    hold_all_to_laws(LEAF, count, tmp_path)


@OFTEN
def test_what_both_replaced_is_a_conflict(tmp_path: Path, count: int) -> None:
    hold_all_to_laws(("fact_replaced_by_both",), count, tmp_path)


@OFTEN
def test_where_git_is_clean_the_result_is_git_s(tmp_path: Path, count: int) -> None:
    """But where a side moved lines, or something would stand twice."""
    for pair in make_pairs([name for name in ALL if name not in MARKED], count):
        git = merge_by_git(pair)
        if not git.is_clean or has_moved_lines(pair) or has_twice(pair, git.text):
            continue
        driven = merge_by_driver(pair, tmp_path)
        assert driven.is_clean, show(pair, None)
        assert is_same(driven.text, git.text), show(pair, driven.text)


@OFTEN
def test_versions_with_markers_are_merged_as_git_does(tmp_path: Path, count: int) -> None:
    for pair in make_pairs(MARKED, count):
        assert any(has_markers(version.text) for version in pair.versions)
        git, driven = merge_by_git(pair), merge_by_driver(pair, tmp_path)
        assert driven.is_clean == git.is_clean, show(pair, driven.text)
        if git.is_clean:
            assert is_same(driven.text, git.text), show(pair, driven.text)


@OFTEN
def test_what_both_add_nearly_alike_is_a_conflict(tmp_path: Path, count: int) -> None:
    hold_all_to_laws(ALIKE, count, tmp_path)


@OFTEN
def test_what_both_add_that_is_not_alike_is_kept(tmp_path: Path, count: int) -> None:
    hold_all_to_laws(APART, count, tmp_path)


@OFTEN
def test_steps_are_numbered_on(count: int) -> None:
    for pair in make_pairs(("steps_inserted_by_both",), count):
        text = None if merge_by_git(pair).is_clean else merge_in_process(pair)
        if text is not None:
            steps = [version for version in (pair.ours, pair.theirs) if is_numbered_on(version.text, pair)]
            assert len(steps) < 2 or is_numbered_on(text, pair), show(pair, text)


def is_numbered_on(text: str, pair: Pair) -> bool:
    """Whether the lists to which steps were added count one by one."""
    before = set(pair.base.keys.values())
    lines = tuple(Line(at, line) for at, line in enumerate(text.splitlines()))
    version = Version(lines)
    texts = dict(lines)
    added = {n for n, said in version.keys.items() if said not in before}
    for number in added & version.places.keys():
        place = version.places[number]
        steps = [n for n, each in version.places.items() if each.kind == "item" and each.item == place.item]
        near = [(above, below) for above, below in pairwise(steps) if number in {above, below}]
        for above, below in near:
            found = [re.match(r"\s*(\d+)", texts[n]) for n in (above, below)]
            numbers = [int(each[1]) for each in found if each]
            if len(numbers) == 2 and numbers[1] != numbers[0] + 1:
                return False
    return True


@OFTEN
def test_swapped_sides_come_to_the_same_verdict_and_lines(count: int) -> None:
    for pair in make_pairs(ALL, count):
        text, swapped = merge_in_process(pair), merge_in_process(pair.swapped)
        assert (text is None) == (swapped is None), show(pair, text, str(swapped))
        if text is not None and swapped is not None:
            assert count_said(text) == count_said(swapped), show(pair, text, swapped)


def count_said(text: str) -> Counter[str]:
    """How often each line stands in a text, whatever its marker, since steps are numbered on."""
    return Counter(key(line) for line in text.splitlines() if line.strip())


@OFTEN
def test_no_more_lines_stand_between_markers_than_in_git_s_merge(tmp_path: Path, count: int) -> None:
    for pair in make_pairs([name for name in ALL if name not in MARKED], count):
        git = merge_by_git(pair)
        if not git.is_clean:
            driven = merge_by_driver(pair, tmp_path)
            between = count_between(driven.text)
            assert between <= git.between, show(pair, driven.text, f"{between} > {git.between}")
