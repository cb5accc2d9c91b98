"""The trash: what was overwritten or deleted, kept under its hash, and the log of changes that says when.

Both are bookkeeping under `.mdmem/local`, never in git: deleting them loses the history, no memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mdmem.errors import PathRefused
from mdmem.vault import config, files
from mdmem.vault.mark import believed, signed

_LOG = "log.jsonl"
_CHUNK = 1 << 16
# No content is larger (`config`), and no line of the log: what is was not written here, nor is so much of it.
_MOST_BYTES = 64 * 1024 * 1024
# The log is looked over for a sweep each time that it has grown by this much, so that no counter is needed.
_SWEEP_EVERY = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One memory of a change: the SHA-256 of its bytes before and after; None where it did not exist.

    `spelled`: the path as the disk spells it, where it has several Unicode spellings. `mode`: the permissions
    of what was deleted.
    """

    path: str
    before: str | None
    after: str | None
    spelled: str = ""
    mode: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The memory of a change as a JSON object."""
        more = {key: value for key in ("spelled", "mode") if (value := getattr(self, key))}
        return {"path": self.path, "before": self.before, "after": self.after, **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A change that was applied: its id, when (ISO 8601, UTC), by whom, what, and which files.

    `is_part`: it changed files outside of the namespace as well, which are not named.
    """

    id: str
    time: str
    actor: str
    message: str
    files: tuple[FileChange, ...]
    is_part: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        return {
            "id": self.id,
            "time": self.time,
            "actor": self.actor,
            "message": self.message,
            "files": [changed.as_dict() for changed in self.files],
        }


def entry_from(shape: dict[str, Any]) -> Entry:
    """The inverse of `Entry.as_dict`.

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
    texts += [text for f in changed for text in (f.path, f.before or "", f.after or "", f.spelled)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("an entry holds texts")
    if any(f.spelled and unicodedata.normalize("NFC", f.spelled) != f.path for f in changed):
        raise ValueError("a spelling is of another path")
    return Entry(
        id=shape["id"], time=shape["time"], actor=shape["actor"], message=shape["message"], files=changed
    )


class TrashFolder:
    """The trash of one vault; `path` is its folder, which is made by the first write."""

    def __init__(self, path: str, policy: config.Trash) -> None:
        self.path = path
        self.policy = policy

    def put(self, folder: int, name: str, digest: str) -> None:
        """Move a file into the trash under its hash.

        Raises:
            OSError: it cannot be moved; the file is still where it was.
        """
        kept = os.path.join(self.path, digest)
        try:
            if files.is_folder(kept):  # which came with a repository: nothing here makes one
                os.rename(kept, f"{kept}.{secrets.token_hex(4)}")
            os.rename(name, kept, src_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            content = files.read(folder, name)
            self.keep(content.data, digest, content)
            files.remove(folder, name)

    def keep(self, data: bytes, digest: str, like: files.Content | None = None) -> None:
        """Put a copy of some content into the trash under its hash, with the permissions and owner of `like`.

        Raises:
            OSError: it cannot be written.
        """
        with files.opened(self.path) as trash:
            if self.content(digest) is None:
                files.remove(trash, f"{digest}.part")  # a crash may have left one
                files.write_new(trash, f"{digest}.part", data, like)
                self.put(trash, f"{digest}.part", digest)

    def content(self, digest: str) -> bytes | None:
        """The bytes with this hash; None when they are not kept (any more)."""
        kept = self.kept(digest)
        return kept.data if kept else None

    def kept(self, digest: str) -> files.Content | None:
        """As `content`, with the permissions and the owner that the file had."""
        try:
            with files.opened(self.path) as trash:
                content = files.read(trash, digest, _MOST_BYTES)
        except (FileNotFoundError, PathRefused):
            return None
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EISDIR, errno.EFBIG, errno.ENAMETOOLONG}:
                raise
            return None  # it is not what a change left there
        # It may have come with a repository, or the disk is failing.
        import hashlib  # noqa: PLC0415 - start-up

        return content if hashlib.sha256(content.data).hexdigest() == digest else None

    def record(self, entry: Entry) -> None:
        """Add an entry to the log, and sweep when it is time."""
        line = signed(entry.as_dict()) + b"\n"
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(os.path.join(self.path, _LOG), flags, files.NEW_FILE)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "the log of changes is not a regular file")
            start = status.st_size
            # Where a crash tore the last line, this one begins a new line.
            torn = start > 0 and os.pread(descriptor, 1, start - 1) != b"\n"
            view = memoryview((b"\n" if torn else b"") + line)
            while view:
                view = view[os.write(descriptor, view) :]
            end = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if start // _SWEEP_EVERY != end // _SWEEP_EVERY:
            self.sweep(time.time())

    def entries(self) -> Iterator[Entry]:
        """The log, newest first. A line that a crash tore, or that was not written here, is passed over."""
        last, passed = "", 0
        for line in self._lines():
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                shape = believed(line)
                if shape is None:
                    passed += len(line)
                    if passed > _MOST_BYTES:
                        return
                    continue
                entry = entry_from(shape)
                # A crash after this line, and before the journal's record went, writes the line again.
                if entry.id != last:
                    yield entry
                last = entry.id

    def passed_over(self) -> int:
        """How many lines of the log were not written here, of the newest 64 MiB."""
        size, passed = 0, 0
        for line in self._lines():
            size += len(line)
            if size > _MOST_BYTES:
                break
            passed += bool(line) and believed(line) is None
        return passed

    def _lines(self) -> Iterator[bytes]:
        """The lines of the log, the last first; it is read backwards, and no further than it is asked for."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(os.path.join(self.path, _LOG), flags)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.ENXIO}:
                raise
            return  # a link or a socket
        try:
            status = os.fstat(descriptor)
            rest, end = b"", status.st_size if stat.S_ISREG(status.st_mode) else 0
            while end and len(rest) <= _MOST_BYTES:
                start = max(0, end - max(_CHUNK, len(rest)))
                first, *lines = (os.pread(descriptor, end - start, start) + rest).split(b"\n")
                yield from reversed(lines)
                rest, end = first, start
            yield rest
        finally:
            os.close(descriptor)

    def sweep(self, now: float) -> int:
        """Drop, oldest first, what is older or more than the config allows; how many contents went.

        Args:
            now: seconds since the epoch.
        """
        oldest = now - self.policy.max_days * 86_400
        size, dropped = 0, 0
        replaced = self._replaced_at()
        with os.scandir(self.path) as found:
            contents = [
                (replaced.get(e.name, status.st_mtime), status.st_size, e.name)
                for e in found
                if e.name != _LOG and not e.is_dir(follow_symlinks=False)
                for status in (e.stat(follow_symlinks=False),)
            ]
        for when, length, name in sorted(contents, reverse=True):
            size += length
            if when < oldest or size > self.policy.max_bytes:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))
                dropped += 1
        self._shorten_log(oldest)
        return dropped

    def _replaced_at(self) -> dict[str, float]:
        """When each content was last replaced, in seconds since the epoch: a move keeps a file's old time."""
        times: dict[str, float] = {}
        for entry in self.entries():
            with contextlib.suppress(ValueError):
                when = datetime.fromisoformat(entry.time).timestamp()
                for change in entry.files:
                    if change.before:
                        times.setdefault(change.before, when)
        return times

    def _shorten_log(self, oldest: float) -> None:
        limit = datetime.fromtimestamp(max(oldest, 0), UTC).isoformat(timespec="seconds")
        entries = list(self.entries())
        kept = [entry for entry in entries if entry.time >= limit]
        if len(kept) == len(entries):
            return
        text = b"".join(signed(e.as_dict()) + b"\n" for e in reversed(kept))
        with files.opened(self.path) as trash:
            files.remove(trash, f"{_LOG}.part")
            files.write_new(trash, f"{_LOG}.part", text)
            os.rename(f"{_LOG}.part", _LOG, src_dir_fd=trash, dst_dir_fd=trash)
