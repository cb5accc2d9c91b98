"""What a vault keeps its memories in: the protocol, and the values that go through it.

The vault speaks to its files through a `Store` only. `mdmem.vault.local_store` is the one on a disk; a
database, or an object store with conditional writes, can stand in its place. What any of them must do is in
`tests/vault/store_conformance.py`.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from mdmem.document.document import SUFFIXES, digest
from mdmem.document.moment import stamp
from mdmem.document.text.tokens import in_line
from mdmem.vault.config import Config
from mdmem.vault.files import Content
from mdmem.vault.log import Log
from mdmem.vault.paths import Namespace
from mdmem.vault.walk import Found

MOST_ATTACHED_BYTES = 64 * 1024 * 1024
"""What attachments that are moved together hold at most: all of it is in memory meanwhile."""
_LONGEST_ACTOR = 100  # characters


class Store(Protocol):
    """The files of one vault.

    Paths are those of the whole vault, checked and in NFC (`mdmem.vault.paths`); errors name them so. The
    files below `.mdmem` are read and walked like all others.

    Attributes:
        name: names the vault: its folder, as an absolute path, or a URL.
        root: of a store on a disk its folder, as an absolute path; of another one its name.
        notes: warnings, oldest first, without repeats.
    """

    name: str
    root: str
    notes: list[str]

    @property
    def config(self) -> Config:
        """The config as it is now."""

    def again(self) -> Store:
        """Return what an index of the same files reads."""

    def read(self, path: str, limit: int, *, exact: bool = False, settled: bool = False) -> Content | None:
        """Return what a file holds; None where there is none.

        Args:
            limit: bytes, beyond which nothing is read.
            exact: only in this Unicode spelling.
            settled: never what somebody is in the middle of writing.

        Raises:
            PathRefused: a link, a folder or a device is in its place.
            FileBusy: somebody kept writing it, and it is to be `settled`.
        """

    def walk(self, namespace: Namespace, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[Found]:
        """Return every file of a namespace with one of `suffixes`, by the parts of its path; none is hidden.

        What looks like a memory and cannot be one comes with its `problem`. A namespace below `.mdmem` is
        walked where it is named, and its files may have any name.
        """

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in NFC; none where there is no folder."""

    def stands(self, path: str) -> bool:
        """Return whether there is anything at a path; the empty one is the vault itself."""

    def spelled(self, path: str) -> str:
        """Return a path as the store spells it; empty where there is only one spelling."""

    def recover(self) -> int:
        """Undo or finish what a crash left behind, and wait for a change under way; how many changes.

        Where that cannot be done reading goes on, and one of the `notes` says so.
        """

    def changed_since(self, mark: str) -> tuple[str, Collection[str] | None]:
        """Return a mark of now, and which paths have changed since an earlier one, behind a `recover`.

        Args:
            mark: as it was returned before; empty at first.

        Returns:
            Where the store cannot tell, an empty mark; None where it cannot tell which: any may have.
        """

    def steady(self) -> AbstractContextManager[None]:
        """Let `recover` look only once in the block, for one question that reads many files."""

    def writing(self) -> AbstractContextManager[None]:
        """Keep other writers out, as far as the store can; what a crash left is put right first."""

    def commit(self, entry: Entry, steps: Sequence[Step]) -> None:
        """Compare the base of each step with what is there, and do all steps, or none. Needs `writing`.

        `entry` tells of the steps (`changed_by`), and is one of the `entries` before the first is done; what
        they replace is `kept`. When this returns nothing of it can be lost.

        Raises:
            Raced: a file differs from its base. Its `late` is what somebody wrote over a step that had been
                done already: that is kept as well.
            FileBusy, PathRefused, StorageFailed: a step cannot be done.
        """

    def entries(self, folder: str = "") -> Iterator[Entry]:
        """Return the changes, newest first: those to files in a folder, or all."""

    def kept(self, digest: str) -> Content | None:
        """Return the version with this SHA-256 that a change replaced; None when it is not kept."""

    def log(self, path: str) -> AbstractContextManager[Log]:
        """Return a log as it is now, for reading, without a lock; an empty one if there is none."""

    def appending(self, *paths: str) -> AbstractContextManager[tuple[Log, ...]]:
        """Logs, for reading and writing, with other writers of these logs kept out.

        Nobody waits for changes of memories, and no change of a memory waits for this. Where a crash tore
        the last line of a log, what is added begins a new one.
        """


class Step(NamedTuple):
    """What becomes of one file: its base, and what stands there afterwards; None is nothing.

    A new file has the permissions and owner of `like`. `spelled` is the path as the store spells it, where
    it has several Unicode spellings.
    """

    path: str
    before: Content | None
    after: bytes | None
    like: Content | None = None
    spelled: str = ""


class FileChange(NamedTuple):
    """One memory of a change: the SHA-256 of its bytes before and after; None where it did not exist.

    `spelled`: the path as the store spells it, where it has several Unicode spellings. `mode`: the
    permissions of a deleted file.
    """

    path: str
    before: str | None
    after: str | None
    spelled: str = ""
    mode: int = 0

    @property
    def did(self) -> str:
        """What was done: created, deleted or changed."""
        return "created" if self.before is None else "deleted" if self.after is None else "changed"

    def json_shape(self) -> dict[str, Any]:
        """Return the memory of a change as a JSON object."""
        further = {"spelled": self.spelled, "mode": self.mode}
        said = {name: value for name, value in further.items() if value}
        return {"path": self.path, "before": self.before, "after": self.after, **said}


class Entry(NamedTuple):
    """A change that was applied: its id, when (ISO 8601, UTC), by whom, what, and which files.

    `undoes` and `redoes`: the id of the change that this one took back, or put back. `is_part`: it changed
    files outside of the namespace as well, which are not named. `config`: what it did to the config.
    """

    id: str
    time: str
    actor: str
    message: str
    files: tuple[FileChange, ...]
    undoes: str = ""
    redoes: str = ""
    is_part: bool = False
    config: FileChange | None = None

    @property
    def subject(self) -> str:
        """The id of the change that this one made, took back or put back."""
        return self.undoes or self.redoes or self.id

    def json_shape(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        shape: dict[str, Any] = {"id": self.id, "time": self.time, "actor": self.actor}
        shape |= {"message": self.message, "files": self.files}
        marks = {"undoes": self.undoes, "redoes": self.redoes}
        return shape | {name: value for name, value in marks.items() if value}


def hashed(data: bytes | None) -> str | None:
    """Return the hash of the bytes of a file; None if there is no file."""
    return None if data is None else digest(data)


def changed_by(steps: Sequence[Step]) -> tuple[FileChange, ...]:
    """Return what some steps change, for the entry that tells of them."""
    return tuple(
        FileChange(
            path=step.path,
            before=digest(step.before.data) if step.before else None,
            after=hashed(step.after),
            spelled=step.spelled,
            mode=step.before.mode if step.before and step.after is None else 0,
        )
        for step in steps
    )


def actor_name(given: str) -> str:
    """Return the name of who makes changes, in one line and bounded: a stranger may have given it."""
    name = in_line(given[: _LONGEST_ACTOR + 1])
    return name if len(name) <= _LONGEST_ACTOR else f"{name[: _LONGEST_ACTOR - 1]}…"


def new_entry(actor: str, message: str, changed: tuple[FileChange, ...]) -> Entry:
    """Return the entry of a change that is made now, with an id of its own."""
    now = datetime.now(UTC)
    identifier = f"{now:%Y%m%dT%H%M%S%f}-{os.urandom(2).hex()}"
    time = stamp(now, "milliseconds")
    return Entry(id=identifier, time=time, actor=actor_name(actor), message=message, files=changed)


def entry_from(shape: dict[str, Any]) -> Entry:
    """Return the entry that `as_json` made a shape of; fields that only a newer mdmem knows are left out.

    Raises:
        KeyError, TypeError, ValueError: the shape is another one.
    """
    changed = tuple(
        FileChange(
            path=f["path"],
            before=f["before"],
            after=f["after"],
            spelled=f.get("spelled", ""),
            mode=f.get("mode", 0) & 0o777,
        )
        for f in shape["files"]
    )
    texts = [shape[key] for key in ("id", "time", "actor", "message")]
    marks = {key: shape.get(key, "") for key in ("undoes", "redoes")}
    texts += marks.values()
    texts += [text for f in changed for text in (f.path, f.before or "", f.after or "", f.spelled)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("an entry holds texts")
    if any(f.spelled and unicodedata.normalize("NFC", f.spelled) != f.path for f in changed):
        raise ValueError("a spelling is of another path")
    id_, time, actor, message = texts[:4]
    return Entry(id=id_, time=time, actor=actor, message=message, files=changed, **marks)
