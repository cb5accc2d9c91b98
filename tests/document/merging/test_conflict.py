"""A conflict stands in the text as git writes it: markers of one size, and both sides between them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from mdmem.document.merging.conflict import Markers

if TYPE_CHECKING:
    from pathlib import Path

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "=======\n"]), max_size=6).map("".join)


@pytest.mark.parametrize("style", [[], ["--diff3"]])
@pytest.mark.parametrize("size", [7, 12])
def test_a_conflict_is_written_as_git_writes_it(tmp_path: Path, size: int, style: list[str]) -> None:
    texts = {"ours": "x\no\ny\n", "base": "x\nb\ny\n", "theirs": "x\nt1\nt2\ny\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    labels = [part for name in texts for part in ("-L", name)]
    git = ["git", "merge-file", "-p", *style, f"--marker-size={size}", *labels]
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [*git, *texts], cwd=tmp_path, capture_output=True, text=True, env=alone, check=False
    )
    markers = Markers(size=size, shows_base=bool(style))
    marked = markers.around("b\n", "o\n", "t1\nt2\n", "\n")
    assert done.stdout == f"x\n{marked}y\n"
    assert done.returncode == 1


def test_lines_that_both_sides_have_alike_stand_outside() -> None:
    marked = Markers().around("- x\n- y\n", "- a\n- o\n- z\n", "- a\n- t\n- z\n", "\n")
    assert marked == "- a\n<<<<<<< ours\n- o\n=======\n- t\n>>>>>>> theirs\n- z\n"


def test_a_side_without_a_final_line_end_gets_the_one_of_the_text() -> None:
    marked = Markers(ours="HEAD", theirs="").around("", "a", "b", "\r\n")
    assert marked == "<<<<<<< HEAD\r\na\r\n=======\r\nb\r\n>>>>>>>\r\n"


@given(LINES, LINES, LINES, st.booleans())
def test_each_side_can_be_read_back(base: str, ours: str, theirs: str, shows_base: bool) -> None:
    marked = Markers(size=9, shows_base=shows_base).around(base, ours, theirs, "\n").splitlines(keepends=True)
    start, middle, end = (
        marked.index(line) for line in ("<<<<<<<<< ours\n", "=========\n", ">>>>>>>>> theirs\n")
    )
    behind = marked.index("||||||||| base\n") if shows_base else middle
    assert "".join(marked[:start] + marked[start + 1 : behind] + marked[end + 1 :]) == ours
    assert "".join(marked[:start] + marked[middle + 1 : end] + marked[end + 1 :]) == theirs
