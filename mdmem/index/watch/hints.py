"""Hints: what may have changed on disk. They say where to look, never what is there."""

from __future__ import annotations

import math
import time
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from mdmem.document.document import ANY_SUFFIXES
from mdmem.document.text.regex import regex
from mdmem.vault.paths import above

# A save is several events: hints are ready when none has come for a while, or the first one is that old.
QUIET_SECONDS = 0.015
LONGEST_SECONDS = 0.08

_SETTINGS = ".mdmem"
_LOCAL = "local"
# A name that holds one of these cannot be a memory's: what changed there is found by looking at its folder.
_UNUSABLE = regex("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def entry_of(folder: str, name: str) -> str | None:
    """Return the path of an entry of a folder of the vault (empty: the vault itself).

    None when it does not count: it is hidden, or mdmem wrote it. Such writes must not come back as events.
    """
    if folder == _SETTINGS and name == _LOCAL:
        return None
    if name.startswith("."):
        return name if name == _SETTINGS and not folder else None
    return f"{folder}/{name}" if folder else name


def counts(path: str) -> bool:
    """Return whether something at a path of the vault can be a hint."""
    above: str | None = ""
    for name in path.split("/"):
        above = None if above is None else entry_of(above, name)
    return above is not None


class Notice(NamedTuple):
    """A warning: `code` names it for programs, `message` says what is not watched, and what to do."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Where to look.

    Attributes:
        paths: of the vault, NFC; a path may be a folder's, and then everything at and below it is meant.
        everything: the whole vault has to be looked at, whatever `paths` says.
        settings: the vault's own config, schemas or templates may have changed.
        code: cited files that may have changed, as they were given to `Watcher.cite`.
        notices: what could not be watched as it should; each is said once.
    """

    paths: frozenset[str] = frozenset()
    everything: bool = False
    settings: bool = False
    code: frozenset[str] = frozenset()
    notices: tuple[Notice, ...] = ()

    def __or__(self, other: Hints) -> Hints:
        return Hints(
            paths=self.paths | other.paths,
            everything=self.everything or other.everything,
            settings=self.settings or other.settings,
            code=self.code | other.code,
            notices=self.notices + other.notices,
        )


class GatheredHints:
    """Hints that are being gathered, with `logs` also of sessions' logs; times are monotonic seconds."""

    def __init__(self, *, logs: bool = False) -> None:
        self._suffixes = (*ANY_SUFFIXES, ".jsonl") if logs else ANY_SUFFIXES
        self.everything = False
        self.settings = False
        self.code: set[str] = set()
        self.notices: list[Notice] = []
        self._first = math.inf
        self._last = -math.inf
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def __bool__(self) -> bool:
        return bool(
            self.everything or self.settings or self._files or self._folders or self.code or self.notices
        )

    def file(self, path: str) -> None:
        """Take a file of the vault, as the disk spells it, if it can be a memory or a setting."""
        if _is_setting(path):
            self.settings = True
        elif not path.endswith(self._suffixes):
            return
        elif path.isascii() and path.isprintable():
            self._files.add(path)
        elif _has_other_name(path):
            self.folder(path.rpartition("/")[0])
        else:
            self._files.add(path)
        self.came()

    def folder(self, path: str) -> None:
        """Everything at and below a path of the vault, as the disk spells it."""
        while _has_other_name(path):
            path = path.rpartition("/")[0]
        if _is_setting(path):
            self.settings = True
        elif path:
            self._folders.add(path)
        else:
            self.everything = True
        self.came()

    def cited(self, path: str) -> None:
        """Take a cited file."""
        self.code.add(path)
        self.came()

    def all(self, notice: Notice | None = None) -> None:
        """Take the whole vault."""
        self.everything = True
        if notice:
            self.notices.append(notice)
        self.came()

    def root(self, root: str, *, was_gone: bool, is_gone: bool) -> None:
        """Take the vault's folder, which went or came back."""
        if is_gone and not was_gone:
            message = f"the vault's folder is gone, and watched again as soon as it is back: {root}"
            self.all(Notice("vault-gone", message))
        elif was_gone and not is_gone:
            self.all(Notice("vault-back", f"the vault's folder is back: {root}"))

    def all_now(self) -> None:
        """Take the whole vault, without waiting for quiet."""
        self.everything = True
        self._first = -math.inf

    def came(self) -> None:
        """Note that a hint came just now."""
        self._last = time.monotonic()
        self._first = min(self._first, self._last)

    @property
    def ready(self) -> float:
        """When it is quiet enough to look."""
        return min(self._last + QUIET_SECONDS, self._first + LONGEST_SECONDS)

    def hints(self) -> Hints:
        """Return what was gathered."""
        paths: frozenset[str] = frozenset()
        if not self.everything:
            # What is below a folder of them is looked at anyway.
            paths = frozenset(p for p in self._files | self._folders if self._folders.isdisjoint(above(p)))
        return Hints(
            paths=paths,
            everything=self.everything,
            settings=self.settings,
            code=frozenset(self.code),
            notices=tuple(dict.fromkeys(self.notices)),
        )


def _has_other_name(path: str) -> bool:
    """Return whether the index may have a file or folder under another name than the disk does."""
    return bool(_UNUSABLE.search(path)) or not unicodedata.is_normalized("NFC", path)


def _is_setting(path: str) -> bool:
    return path == _SETTINGS or path.startswith(_SETTINGS + "/")
