"""grep: the whole process in a vault of 10,000 notes, beside ripgrep with the same question."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import vaults
from machine import environment, installed
from table import Row, difference_row
from timing import nothing, paired, program, spread

from mdmem.index import ripgrep

if TYPE_CHECKING:
    from setting import Setting

_MOST = 6  # times as long as Python takes to do nothing
_PAIRS = 20
_NOTES = 10_000
_LIMIT = 20
_PLANTED = {"quetzalcoatl": 3, "xylophone": 100}
_RIPGREP = ("--no-config", "--no-ignore", "--fixed-strings", "--ignore-case", "--line-number", "--no-heading")


def measure(setting: Setting) -> list[Row]:
    root = setting.path("grep")
    notes = setting.count(_NOTES)
    vaults.make(root, notes, setting.seed, _PLANTED)
    return [
        _question(
            setting, root, f"`mdmem grep{limited}` in {notes:,} notes, {hits} matching lines", word, limited
        )
        for word, hits in _PLANTED.items()
        for limited in ("", f" --limit {_LIMIT}")
    ]


def _question(setting: Setting, root: str, what: str, word: str, limited: str) -> Row:
    environ = environment()
    command = [installed("mdmem"), "--vault", root, "grep", word]
    theirs = program([ripgrep.program(), *_RIPGREP, "--", word, root], environ)
    _compare(program([*command, "--json"], environ)(0), theirs(0), root)
    pairs = paired(program([*command, *limited.split()], environ), theirs, setting.count(_PAIRS))
    passing = spread(paired(nothing(), theirs, setting.count(_PAIRS)).ours).median
    return difference_row(f"{what}, whole process", "`rg`", pairs, _MOST * passing)


def _compare(ours: str, theirs: str, root: str) -> None:
    """Refuse to time two programs that answer differently.

    Raises:
        RuntimeError: they do.
    """
    hits = map(json.loads, ours.splitlines())
    mine = {(os.path.join(root, hit["path"]), str(hit["line"])) for hit in hits}
    others = {tuple(line.split(":", 2)[:2]) for line in theirs.splitlines()}
    if mine != others:
        raise RuntimeError(f"mdmem and rg disagree about {sorted(mine ^ others)[:5]}")
