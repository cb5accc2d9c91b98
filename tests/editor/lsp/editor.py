"""An editor that follows the protocol: buffers, saves that ask first, edits that must fit what is there."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.editor.lsp.client import UTF16, Refused, uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.editor.lsp.client import Client

BOM = "\ufeff"
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
LINE_END = re.compile("\r\n|\n|\r")
CONTENT_MODIFIED = -32801


def position_of(text: str, offset: int, encoding: str) -> dict[str, int]:
    codec, size = UNITS[encoding]
    *lines, last = LINE_END.split(text[:offset])
    return {"line": len(lines), "character": len(last.encode(codec)) // size}


def offset_of(text: str, position: dict[str, int], encoding: str) -> int:
    """The offset of a position, which must be one that a text of an editor has."""
    codec, size = UNITS[encoding]
    ends = [0, *(end.end() for end in LINE_END.finditer(text))]
    start = ends[position["line"]]
    line = LINE_END.split(text[start:], maxsplit=1)[0]
    before = line.encode(codec)[: position["character"] * size].decode(codec)
    assert position_of(text, start + len(before), encoding) == position
    return start + len(before)


def span_of(text: str, range_: dict[str, Any], encoding: str) -> tuple[int, int]:
    start, end = (offset_of(text, range_[side], encoding) for side in ("start", "end"))
    return start, end


def edited(text: str, edits: Iterable[dict[str, Any]], encoding: str) -> str:
    """A text with edits, which must be in order and may not overlap."""
    spans = [(*span_of(text, edit["range"], encoding), edit["newText"]) for edit in edits]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans)), spans
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text


@dataclass
class Buffer:
    """What is open: its text, the version that the server knows, and the bytes that it was made from."""

    text: str
    version: int
    seen: bytes | None
    has_mark: bool


class Editor:
    """An editor over a client; what it does to files of which none is open, it does on disk.

    `pause` is what happens elsewhere between an answer and what the editor does with it.
    """

    def __init__(self, client: Client, encoding: str = UTF16) -> None:
        self.client, self.encoding = client, encoding
        self.buffers: dict[Path, Buffer] = {}
        self.refused: list[str] = []
        self.pause: Callable[[], None] = lambda: None

    def open(self, file: Path) -> None:
        data = file.read_bytes()
        text = data.decode()
        self.buffers[file] = Buffer(text.removeprefix(BOM), 1, data, text.startswith(BOM))
        self.show(file)

    def show(self, file: Path) -> None:
        """Tell the server of a buffer that is new."""
        self.client.open(file, self.buffers[file].text)

    def type(self, file: Path, text: str) -> None:
        buffer = self.buffers[file]
        if text != buffer.text:
            buffer.text, buffer.version = text, buffer.version + 1
            self.client.change(file, text, buffer.version)

    def close(self, file: Path) -> None:
        del self.buffers[file]
        self.client.shut(file)

    def save(self, file: Path) -> None:
        """Save a buffer; where the file has moved on meanwhile, ask again, as `:w!` after a warning does."""
        buffer = self.buffers[file]
        while True:
            before = file.read_bytes() if file.exists() else None
            edits = self.ask("willSaveWaitUntil", file, reason=1)
            self.type(file, edited(buffer.text, edits or (), self.encoding))
            buffer.seen = before if edits else buffer.seen
            self.pause()
            if before == (file.read_bytes() if file.exists() else None):
                break
        buffer.seen = (BOM * buffer.has_mark + buffer.text).encode()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(buffer.seen)
        self.client.save(file)

    def ask(self, name: str, file: Path, offset: int | None = None, **more: Any) -> Any:
        place = None if offset is None else position_of(self.text(file), offset, self.encoding)
        return self.client.ask(name, file, place, **more)

    def text(self, file: Path) -> str:
        """The text of a file, as the editor shows it or would."""
        buffer = self.buffers.get(file)
        return buffer.text if buffer else file.read_bytes().decode("utf-8", "replace").removeprefix(BOM)

    def apply(self, edit: dict[str, Any] | None) -> bool:
        """Do what an edit of a workspace says, unless a document of it has changed meanwhile."""
        changes = (edit or {}).get("documentChanges", [])
        for change in changes:
            named = change.get("textDocument")
            buffer = self.buffers.get(file_of(named["uri"])) if named else None
            if named and named["version"] != (buffer.version if buffer else None):
                return False
        for change in changes:
            self._do(change)
        return True

    def _do(self, change: dict[str, Any]) -> None:
        kind = change.get("kind")
        if kind == "create":
            file = file_of(change["uri"])
            assert not file.exists()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        elif kind == "rename":
            self.rename(file_of(change["oldUri"]), file_of(change["newUri"]))
        else:
            assert kind is None
            self._change(file_of(change["textDocument"]["uri"]), change["edits"])

    def _change(self, file: Path, edits: list[dict[str, Any]]) -> None:
        text = edited(self.text(file), edits, self.encoding)
        if file in self.buffers:
            self.type(file, text)
        else:
            mark = BOM if file.read_bytes().startswith(BOM.encode()) else ""
            file.write_bytes((mark + text).encode())

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file or folder, and what is open of it."""
        assert not new.exists()
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
        for file in [each for each in self.buffers if each == old or old in each.parents]:
            buffer = self.buffers.pop(file)
            self.client.shut(file)
            moved = new / file.relative_to(old)
            buffer.version = 1
            self.buffers[moved] = buffer
            self.show(moved)

    def move(self, *pairs: tuple[Path, Path]) -> dict[str, Any] | None:
        """Rename files as a file explorer does: the server is asked first."""
        files = [{"oldUri": uri(old), "newUri": uri(new)} for old, new in pairs]
        edit: dict[str, Any] | None = self.client.request("workspace/willRenameFiles", {"files": files})
        assert self.apply(edit)
        for old, new in pairs:
            self.rename(old, new)
        return edit

    def try_to(self, name: str, file: Path, offset: int | None = None, **more: Any) -> Any:
        """What a question gives, None where the server refuses it, with the reason kept."""
        try:
            return self.ask(name, file, offset, **more)
        except Refused as error:
            self.refused.append(str(error))
            return None


def file_of(given: str) -> Path:
    assert given.startswith("file:///")
    return Path(os.fsdecode(unquote(given.removeprefix("file://"), errors="surrogateescape")))
