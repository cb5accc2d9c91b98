"""A durable append to a note, warm: beside the same bytes written, flushed and renamed by hand."""

from __future__ import annotations

import os

from mdmem.memory.memory import Memory
from setting import Setting
from table import Row, ratio_row
from timing import paired

_MOST = 1.5
_PAIRS = 400
_WARM = 20
_LINE = "One more line, that says something about something."
_FRONTMATTER = "---\ntitle: A note\ntags: [decision, tool]\ncreated: 2026-05-04\n---\n\n"
_PROSE = "A sentence of the note that is there already, about one thing or another.\n"


def measure(setting: Setting) -> list[Row]:
    return [
        _appends(setting, "1 KB, with frontmatter", _FRONTMATTER + _prose(1024 - len(_FRONTMATTER))),
        _appends(setting, "4 KB, without frontmatter", _prose(4096)),
    ]


def _prose(size: int) -> str:
    return (_PROSE * (size // len(_PROSE) + 1))[: size - 1] + "\n"


def _appends(setting: Setting, what: str, text: str) -> Row:
    """Append once to each of many notes: none grows, and none is put back in between, which the disk would notice."""
    count = setting.count(_PAIRS)
    root, plain = setting.path(f"append {what}"), setting.path(f"plain {what}")
    os.makedirs(os.path.join(root, ".mdmem"))
    for folder in (os.path.join(root, "notes"), plain):
        _make(folder, _WARM + count, text)
    os.sync()

    memory = Memory(root)
    data = f"{text}{_LINE}\n".encode()
    pairs = paired(
        lambda number: memory.append(f"notes/{number}.md", _LINE),
        lambda number: replace(plain, f"{number}.md", data),
        count,
        warm=_WARM,
    )
    for number in range(_WARM + count):
        for file in (os.path.join(root, "notes", f"{number}.md"), os.path.join(plain, f"{number}.md")):
            _expect(file, data)
    return ratio_row(f"append to a note, durable, warm ({what})", "write, fsync, rename, fsync", pairs, _MOST)


def _make(folder: str, count: int, text: str) -> None:
    os.makedirs(folder)
    for number in range(count):
        with open(os.path.join(folder, f"{number}.md"), "w", encoding="utf-8") as file:
            file.write(text)


def _expect(path: str, data: bytes) -> None:
    with open(path, "rb") as file:
        if file.read() != data:
            raise RuntimeError(f"{path} is not what was to be written")


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
