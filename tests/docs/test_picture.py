"""The picture of the README: what is printed, the same in each drawing; it runs and fetches nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import picture

DRAWN = picture.PICTURE.read_text()


@pytest.mark.soak
def test_it_is_what_is_printed_to_the_byte() -> None:
    assert picture.draw_picture() == DRAWN


def test_it_says_first_that_no_agent_is_run() -> None:
    first = re.search(r"<text [^>]*line-0[^>]*>(.*?)</text>", DRAWN)
    assert first
    assert first[1].replace("&#160;", " ") == picture.STAND_IN


def test_it_shows_nothing_of_the_moment() -> None:
    assert re.findall(r"\d\d:\d\d:\d\d|/tmp|/home|\d{8}T\d+", DRAWN) == []


def test_it_runs_and_fetches_nothing() -> None:
    assert re.findall(r"<script|<foreignObject|\bon\w+=|@import|@font-face|<image", DRAWN) == []
    assert set(re.findall(r"\w+://[^\s\"')]+", DRAWN)) == {"http://www.w3.org/2000/svg"}
    assert all(each.startswith("#") for each in re.findall(r"(?:url\(|href=)[\"']?([^\"')]*)", DRAWN))


def test_each_line_stands_in_the_last_frame_and_moves_only_where_motion_is_welcome() -> None:
    """All hiding is by animations, and all of these are in the block of those who want motion."""
    style = re.search(r"(?s)<style>(.*)</style>", DRAWN)
    assert style
    still, _, moving = style[1].partition("@media (prefers-reduced-motion: no-preference) {")
    assert not re.search("animation|opacity", still + DRAWN[style.end() :])
    assert set(re.findall(r"animation: \S+ (\w+)", moving)) == {f"{picture.SECONDS}s"}
    begins = [float(each) for each in re.findall(r"([\d.]+)% \{ opacity: 1", moving)]
    assert begins == sorted(begins)
    assert begins[-1] / 100 * picture.SECONDS < picture.SECONDS - 3
