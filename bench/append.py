"""A durable append to a note, warm: beside the same bytes written, flushed and renamed by hand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from table import Row, difference_row
from timing import paired

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from setting import Setting

_MOST = 0.001
_PAIRS = 400
_WARM = 20
_LINE = "One more line, that says something about something."
_FRONTMATTER = "---\ntitle: A note\ntags: [decision, tool]\ncreated: 2026-05-04\n---\n\n"
_PROSE = "A sentence of the note that is there already, about one thing or another.\n"


def measure(setting: Setting) -> list[Row]:
    return [
        _appends(setting, "1 KB, with frontmatter", 1024, _FRONTMATTER),
        _appends(setting, "4 KB, without frontmatter", 4096, ""),
    ]


def _appends(setting: Setting, what: str, size: int, frontmatter: str) -> Row:
    """Append once to each of many notes: none grows, and none has to be put back in between."""
    count = _WARM + setting.count(_PAIRS)
    root, plain = setting.path(f"append {what}"), setting.path(f"plain {what}")
    notes = os.path.join(root, "notes")
    os.makedirs(os.path.join(root, ".mdmem"))
    texts = [_text(size, frontmatter, number) for number in range(count)]
    for folder in (notes, plain):
        _make(folder, texts)
    os.sync()

    memory = Memory(root)
    wanted = [f"{text}{_LINE}\n".encode() for text in texts]
    pairs = paired(
        lambda number: memory.append(f"notes/{number}.md", _LINE),
        lambda number: replace(plain, f"{number}.md", wanted[number]),
        count - _WARM,
        warm=_WARM,
    )
    for folder in (notes, plain):
        _expect(folder, wanted)
    return difference_row(
        f"append to a note, durable, warm ({what})", "write, fsync, rename, fsync", pairs, _MOST
    )


def _text(size: int, frontmatter: str, number: int) -> str:
    """A note of `size` bytes; no two are alike, or the trash would keep only one of them."""
    start = f"{frontmatter}This is note {number}.\n"
    rest = size - len(start) - 1
    return start + (_PROSE * (rest // len(_PROSE) + 1))[:rest] + "\n"


def _make(folder: str, texts: Sequence[str]) -> None:
    os.makedirs(folder)
    for number, text in enumerate(texts):
        with open(os.path.join(folder, f"{number}.md"), "w", encoding="utf-8") as file:
            file.write(text)


def _expect(folder: str, wanted: Sequence[bytes]) -> None:
    for number, data in enumerate(wanted):
        with open(os.path.join(folder, f"{number}.md"), "rb") as file:
            if file.read() != data:
                raise RuntimeError(f"{file.name} is not what was to be written")


def replace(folder: str, name: str, data: bytes) -> None:
    """The least that a durable write can be: write beside, flush, rename, flush the folder."""
    aside = os.path.join(folder, f"{name}.new")
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    os.write(file, data)
    os.fsync(file)
    os.close(file)
    os.rename(aside, os.path.join(folder, name))
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)
