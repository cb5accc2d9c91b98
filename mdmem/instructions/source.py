"""Instruction files on the disk: where they may lie, and reading them without leaving the workspace."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from mdmem.diagnostic import Diagnostic, about_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Instructions are a few kilobytes; what is larger than any limit of a tool is not read to its end.
_MOST_BYTES = 8 * 1024 * 1024
_MANAGED = {"darwin": "/Library/Application Support/ClaudeCode", "win32": r"C:\Program Files\ClaudeCode"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where tools look: all absolute paths without links.

    Attributes:
        workspace: the repository.
        home: the user's home directory.
        managed: the folder in which an administrator puts the instructions of a machine.
        top: the highest folder that is looked into.
        hides: says of a place whether it must not be looked at.
    """

    workspace: str
    home: str
    managed: str
    top: str = "/"
    hides: Callable[[str], bool] = lambda _: False

    @classmethod
    def of(cls, workspace: str, hides: Callable[[str], bool] = lambda _: False) -> Self:
        """The places of this machine and user."""
        home = os.path.realpath(os.path.expanduser("~"))
        return cls(
            workspace=os.path.realpath(workspace),
            home=home,
            managed=_MANAGED.get(sys.platform, "/etc/claude-code"),
            hides=hides,
        )

    def shown(self, place: str) -> str:
        """A path as it is shown: from the workspace, else from the home directory, else absolute."""
        if is_inside(place, self.workspace):
            return _printable(os.path.relpath(place, self.workspace))
        if is_inside(place, self.home):
            return _printable(f"~/{os.path.relpath(place, self.home)}")
        return _printable(place)


def _printable(path: str) -> str:
    """A path that can be printed: bytes that are not UTF-8, and controls, are written with escapes."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_inside(place: str, folder: str) -> bool:
    """Whether a normal path is a folder or below it, by parts."""
    return place == folder or place.startswith(folder.rstrip(os.sep) + os.sep)


class Text(NamedTuple):
    """A file that was read: where it stands, where that leads, as it is shown, its size and text."""

    place: str
    real: str
    path: str
    size: int
    text: str


class Source:
    """The files of some places; each is read once.

    A link of the workspace that leads out of it is refused: a repository that was cloned could show any file
    of its user to a model. `findings` says which were, by path, and what else could not be read.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self.findings: dict[str, Diagnostic] = {}
        self._texts: dict[str, Text | None] = {}
        self._listed: dict[tuple[str, str], list[str]] = {}

    def read(self, place: str) -> Text | None:
        """The regular file at a place; None where there is none, or it must not be read."""
        place = os.path.normpath(place)
        if place not in self._texts:
            self._texts[place] = self._read(place)
        return self._texts[place]

    def first(self, folder: str, names: tuple[str, ...]) -> Text | None:
        """The first of some files of a folder that is there."""
        return next((text for name in names if (text := self.read(os.path.join(folder, name)))), None)

    def below(self, folder: str, suffix: str) -> list[str]:
        """The places below a folder whose names end with `suffix`, in the order of their paths."""
        key = (folder, suffix)
        if key not in self._listed:
            self._listed[key] = sorted(self._below(folder, suffix, set()), key=lambda p: p.split(os.sep))
        return self._listed[key]

    def _below(self, folder: str, suffix: str, above: set[str]) -> Iterator[str]:
        real = self._led(folder)
        if real is None or real in above:
            return
        try:
            names = os.listdir(real)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._report(folder, "unreadable", f"cannot be read: {error.strerror}")
            return
        for name in names:
            place = os.path.join(folder, name)
            if os.path.isdir(place):
                yield from self._below(place, suffix, above | {real})
            elif name.endswith(suffix):
                yield place

    def _led(self, place: str) -> str | None:
        """Where a place leads, unless that is out of the workspace."""
        try:
            real = os.path.realpath(place)
        except (OSError, ValueError):
            return None
        workspace = self.places.workspace
        if is_inside(place, workspace) and not is_inside(real, workspace):
            self._report(
                place, "link-leaves", "a symbolic link that leaves the workspace; it was not followed"
            )
            return None
        return None if self.places.hides(real) else real

    def _report(self, place: str, code: str, message: str) -> None:
        path = self.places.shown(place)
        hint = "put the file itself there, or a link to a file of the workspace" if "link" in code else ""
        self.findings.setdefault(path, about_file(path, code, message, hint))

    def _read(self, place: str) -> Text | None:
        real = self._led(place)
        if real is None:
            return None
        try:
            read = _content(real)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            self._report(place, "unreadable", f"cannot be read: {error.strerror}")
            return None
        if read is None:
            return None
        data, size = read
        if size > _MOST_BYTES:
            self._report(place, "too-large", f"{size:,} bytes; only the first 8 MiB are looked at")
        text = data.decode("utf-8", "replace")
        return Text(place, real, self.places.shown(place), max(size, len(data)), text)


def _content(place: str) -> tuple[bytes, int] | None:
    """The bytes of a regular file, as far as they are read, and its size; None of what is none."""
    # A FIFO would be waited for without O_NONBLOCK.
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES), status.st_size
    finally:
        os.close(descriptor)
