"""Trees of Markdown that others could have written: a bundle of fixed files, and more made of it.

The bundle is `tests/data/foreign`, with a folder for each kind of tree: `obsidian`, `dendron`, `logseq`,
`hugo`, `jekyll`, `docusaurus`, `mkdocs`, `readmes`, `agents`, `languages` and `shapes`. All of it was
written for these tests. `shapes` holds what is rare in any one tree: other line ends, other encodings, odd
frontmatter, lists in quotes. So a test meets the same files on every machine.
"""

from __future__ import annotations

import hashlib
import random
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_T = TypeVar("_T")

BUNDLE = Path(__file__).parent / "data" / "foreign"

_SMALLEST, _TIMES = 200, 100  # the sizes of what is made: from 200 characters to a hundred times as many
_LONGEST = 4_000
_HEAD = re.compile(r"\A\ufeff?(---\r?\n.*?^---[ \t]*\r?\n)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_BLOCK = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1[^\n]*$|(?:^[^\n]+\n?)+", re.MULTILINE | re.DOTALL)
_PROSE = re.compile(r"[A-Za-z][^\n]{40}")
_ITEM = re.compile(r"^[ \t]*[-*+] [^\n]+$", re.MULTILINE)


def files() -> dict[str, bytes]:
    """Read every file of the bundle: its bytes by its path, sorted."""
    every = BUNDLE.glob("[!.]*/**/*")
    paths = (path for path in every if path.is_file() and path.parent.name != "cases")
    return dict(sorted((path.relative_to(BUNDLE).as_posix(), path.read_bytes()) for path in paths))


def more(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Make files of the parts of the bundle's: a path for each, and its bytes, no two of them the same.

    A seed gives the same files in every version of Python, since numbers are drawn by `random()` alone.
    """
    rng = random.Random(str(seed))  # as a number, -1 would be the seed 1
    folders, seen = list(_folders()), set()
    for number in range(count):
        folder = _pick(rng, folders)
        data = _data(rng, folder)
        while (digest := hashlib.sha256(data).digest()) in seen:
            data = _data(rng, folder)
        seen.add(digest)
        yield f"more/{folder}/{number}-{_pick(rng, _folders()[folder].stems)}.md", data


# ------------------------------------------------------------------------------------------------ the parts


class _Parts(NamedTuple):
    """What the files of one folder are made of: their names, and the pieces of those that are UTF-8."""

    stems: list[str]
    heads: list[str]
    sections: list[str]
    blocks: list[str]
    items: list[str]


@cache
def _folders() -> dict[str, _Parts]:
    found: dict[str, _Parts] = {}
    for path, data in files().items():
        parts = found.setdefault(path.partition("/")[0], _Parts([], [], [], [], []))
        parts.stems.append(Path(path).stem)
        if data not in _odd():
            _take_apart(data.decode(), parts)
    return found


def _take_apart(text: str, parts: _Parts) -> None:
    if head := _HEAD.match(text):
        parts.heads.append(head[1])
        text = text[head.end() :]
    parts.sections.extend(_useful(_HEADING.split(text)))
    parts.blocks.extend(_useful(block[0] for block in _BLOCK.finditer(text)))
    parts.items.extend(_useful(_ITEM.findall(text)))


def _useful(pieces: Iterable[str]) -> Iterator[str]:
    stripped = (piece.strip("\r\n") for piece in pieces)
    return (piece for piece in stripped if piece and len(piece) <= _LONGEST)


@cache
def _odd() -> list[bytes]:
    """The files that are no UTF-8."""
    return [data for data in files().values() if data.decode("utf-8", "replace").encode() != data]


# ---------------------------------------------------------------------------------------------- what is made


def _data(rng: random.Random, folder: str) -> bytes:
    data = _text(rng, folder).encode()
    chance = rng.random()
    if chance < 0.08:
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    elif chance < 0.11:
        data = b"\xef\xbb\xbf" + data
    elif chance < 0.15:
        data = data.rstrip()
    elif chance < 0.155:
        data = _pick(rng, _odd()) + data
    return data


def _text(rng: random.Random, folder: str) -> str:
    own, other = _folders()[folder], _folders()[_pick(rng, list(_folders()))]
    length = _SMALLEST * _TIMES ** ((rng.random() + rng.random()) / 2)
    pieces: list[str] = []
    while length > 0:
        pieces.append(_piece(rng, own if rng.random() < 0.8 else other))
        length -= len(pieces[-1])
    heads = own.heads or other.heads
    head = _pick(rng, heads) if heads and rng.random() < 0.6 else ""
    return head + "\n\n".join(pieces) + "\n"


def _piece(rng: random.Random, parts: _Parts) -> str:
    chance = rng.random()
    if chance < 0.35:
        return _pick(rng, parts.sections)
    if chance < 0.45:
        return "\n".join(_pick(rng, parts.items) for _ in range(2 + int(rng.random() * 7)))
    block = _pick(rng, parts.blocks)
    if chance < 0.6 and _PROSE.match(block):
        return " ".join(sorted(block.split(" "), key=lambda _: rng.random()))
    return block


def _pick(rng: random.Random, things: Sequence[_T]) -> _T:
    return things[int(rng.random() * len(things))]
