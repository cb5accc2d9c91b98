"""`mdmem mv` of a note that many link to, done and killed: every link is right, and no other byte changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.speed import is_all

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKER = Path(__file__).with_name("move_worker.py")
MEMORY_DISK = "/dev/shm"  # a kill is the same on every disk
OLD, NEW = "notes/hub-old.md", "notes/far/away/hub-new.md"
BACKLINKS, OTHERS, KILLS = (64, 20, 11) if is_all else (16, 5, 8)

# Each way to link to the hub from `notes/n/`, before and after.
STYLES = (
    ("[[hub-old]]", "[[hub-new]]"),
    ("[[hub-old#The hub|hub-old]]", "[[hub-new#The hub|hub-old]]"),
    ("![[hub-old#^fact]]", "![[hub-new#^fact]]"),
    ("[[notes/hub-old]]", "[[notes/far/away/hub-new]]"),
    ("[hub-old](../hub-old.md#the-hub 'T')", "[hub-old](../far/away/hub-new.md#the-hub 'T')"),
    ("![x](<../hub-old.md>)", "![x](<../far/away/hub-new.md>)"),
    ("[x][h]\r\n\r\n[h]: ../hub-old.md 'T'\r\n", "[x][h]\r\n\r\n[h]: ../far/away/hub-new.md 'T'\r\n"),
    ("`[[hub-old]]` [[n/0]] [[hub-old.md]]", "`[[hub-old]]` [[n/0]] [[hub-new.md]]"),
)
HUB = "# The hub\n\n[first]({0}n/0.md) [itself](#the-hub) [[#The hub]] notes/hub-old.md\n\nA fact. ^fact\n"

Texts = dict[str, str]


def vault(number: int) -> Texts:
    """The memories before the move (0), or after it (1)."""
    linking = {
        f"notes/n/{n}.md": f"---\ntags: [t]   # kept\n---\n# {n}\n\nSee {STYLES[n % len(STYLES)][number]}"
        for n in range(BACKLINKS)
    }
    others = {f"notes/other-{n}.md": f"Nothing to change: hub-old {n}\n" for n in range(OTHERS)}
    return {**linking, **others, (OLD, NEW)[number]: HUB.format(("", "../../")[number])}


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """The place for a vault; in memory where there is such a place."""
    place = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mdmem-move-", dir=place) as folder:
        yield Path(folder) / "memories"


@pytest.fixture(scope="module")
def reports(root: Path) -> list[dict[str, Any]]:
    """What the worker found after the move that nobody killed, and after each kill."""
    for path, text in {".mdmem/config.toml": "", **vault(0)}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    command = [sys.executable, str(WORKER), str(root), OLD, NEW, str(KILLS)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found


# README: **Nothing is lost**: …
def test_a_move_is_one_plan_that_changes_every_link_and_no_other_byte(reports: list[dict[str, Any]]) -> None:
    assert reports[0]["texts"] == vault(1)
    assert reports[0]["plans"] == 1
    assert reports[0]["findings"] == []


def test_a_killed_move_leaves_all_as_before_or_all_as_after(reports: list[dict[str, Any]]) -> None:
    killed = [report["texts"] for report in reports if report["killed"]]
    before, after = killed.count(vault(0)), killed.count(vault(1))
    assert before + after == len(killed) == KILLS
    assert before > KILLS // 5
    assert after > KILLS // 10
    assert sum(report["amid"] for report in reports) > KILLS // 3


def test_what_a_killed_move_leaves_is_clean_and_indexed(reports: list[dict[str, Any]]) -> None:
    linking = sorted(f"notes/n/{n}.md" for n in range(BACKLINKS))
    for report in reports:
        assert report["findings"] == []
        assert report["temporary"] == []
        assert report["backlinks"] == linking
