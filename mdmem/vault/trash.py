"""The trash: what was overwritten or deleted, kept under its hash, and the log of changes that says when.

What a change wrote is kept as well: once another program has changed it, only here is what it was made from.
It is swept first, and may be lost with the power.

Both are bookkeeping under `.mdmem/local`, never in git: deleting them loses the history, no memory.

A loss of power may take back the move of a content into the trash. The file system moves a name as a whole or
not at all, so the content then still stands where it was taken from. A line of the log is never lost: it is
on the disk before the change that it tells of is made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from mdmem.diagnostic import as_json
from mdmem.document.document import digest as digest_of
from mdmem.document.moment import moment_of
from mdmem.errors import LimitReached, PathRefused
from mdmem.vault import config, files
from mdmem.vault.log import TORN_END, LogFile, lines_back
from mdmem.vault.mark import believed, signed
from mdmem.vault.store import Entry, entry_from

_LOG = "log.jsonl"
# Errors for something under a hash that no change left there; ENOENT for nothing.
_NOT_OURS = {
    *(errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR),
    *(errno.ENXIO, errno.EFBIG, errno.ENAMETOOLONG),
}
# No line of the log is larger; a larger one was not written here.
_MOST_BYTES = config.MOST_BYTES
_LAST = 65_536  # the most bytes of the log behind an entry that is looked for
_PART = ".part"
_COUNT = ".size"  # of the file beside the folder that says how much is in it
_DAY = 86_400
_WRITE = os.O_RDWR | os.O_CREAT


class TrashFolder:
    """The trash of one vault; `path` is its folder, which is made by the first write."""

    def __init__(self, path: str, policy: config.Trash) -> None:
        self.path = path
        self.log = os.path.join(path, _LOG)
        self.policy = policy
        self._added = 0

    def put(self, folder: int, name: str, digest: str) -> None:
        """Move a file into the trash under its hash; on an OSError it is still where it was."""
        target = os.path.join(self.path, digest)
        more = files.size(folder, name)
        try:
            with contextlib.suppress(FileNotFoundError):
                there = os.lstat(target)
                if stat.S_ISDIR(there.st_mode):  # which came with a repository: nothing here makes one
                    os.rename(target, f"{target}.{os.urandom(4).hex()}")
                else:
                    more -= there.st_size
            os.rename(name, target, src_dir_fd=folder)
            self._added += more
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            content = files.read(folder, name)
            self.keep(content.data, digest, content)
            files.remove(folder, name)

    def keep(self, data: bytes, digest: str, like: files.Content | None = None) -> None:
        """Put a copy of some content into the trash under its hash, with the permissions of `like`."""
        with files.opened(self.path) as trash:
            if self.kept(digest) is None:
                files.remove(trash, digest + _PART)  # a crash may have left one
                files.write_new(trash, digest + _PART, data, like)
                self.put(trash, digest + _PART, digest)
                os.fsync(trash)

    def keep_written(self, data: bytes, digest: str, like: files.Content | None) -> None:
        """Put a copy of the content that a change wrote into the trash, without waiting for the disk.

        A copy that cannot be written is left out. Then `undo` can tell fewer later changes apart.
        """
        if self.policy.max_bytes:
            # Written even where it is kept already.
            with contextlib.suppress(OSError), files.opened(self.path) as trash:
                files.write_new(trash, digest, data, like, durable=False)
                self._added += len(data)

    def kept(self, digest: str) -> files.Content | None:
        """Return what has this hash, with the permissions and owner of its file; None when it is not kept."""
        try:
            with files.opened(self.path) as trash:
                content = files.read(trash, digest, _MOST_BYTES)
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
            return None
        # It may have come with a repository, or the disk is failing.
        return content if digest_of(content.data) == digest else None

    def record(self, *entries: Entry) -> None:
        """Add entries to the log; they are on the disk then. Wants other writers of the log kept out."""
        with self._open_log(writing=True) as log:
            log.append([signed(as_json(entry)) for entry in entries])

    def _open_log(self, *, writing: bool) -> contextlib.AbstractContextManager[LogFile]:
        root, name = os.path.split(self.path)
        return LogFile(root, f"{name}/{_LOG}").opened(writing=writing)

    def tells_of(self, entry: Entry) -> bool:
        """Return whether an entry is one of the last of the log."""
        with files.opened_regular(self.log, _WRITE) as log:
            return _place_of(_format_entry(entry), log) is not None

    def take_back(self, entry: Entry) -> None:
        """Take the last entry out of the log, as what it tells of did not happen.

        Behind it may stand what was met while it was tried, with ids that begin with its own. Where another
        change stands there it did happen: its record outlived a loss of power.
        """
        line, its_own = _format_entry(entry), f'"id":"{entry.id}.'.encode()
        # If this fails, a line too many does less harm than a change that is not undone.
        with contextlib.suppress(OSError), files.opened_regular(self.log, _WRITE) as log:
            start = _place_of(line, log)
            if start is not None:
                later = os.pread(log, os.fstat(log).st_size, start + len(line))
                if all(its_own in each for each in later.splitlines()):
                    os.pwrite(log, later, start)
                    os.ftruncate(log, start + len(later))
                    os.fsync(log)

    def entries(self) -> Iterator[Entry]:
        """Yield the log, newest first, without lines that a crash tore or that were not written here."""
        last, passed = "", 0
        for line in self._read_lines():
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                shape = believed(line)
                if shape is None:
                    passed += len(line)
                    if passed > _MOST_BYTES:
                        return
                    continue
                entry = entry_from(shape)
                # After a crash between this line and the journal's record, the line is written again.
                if entry.id != last:
                    yield entry
                last = entry.id

    def passed_over(self) -> int:
        """Return how many lines of the log were not written here, of the newest 64 MiB."""
        size, passed = 0, 0
        for line in self._read_lines():
            size += len(line)
            if size > _MOST_BYTES:
                break
            passed += believed(line) is None and not line.endswith(TORN_END.removesuffix(b"\n"))
        return passed

    def _read_lines(self) -> Iterator[bytes]:
        """Yield the lines of the log, the last first, no further than they are asked for."""
        with (
            contextlib.suppress(PathRefused, LimitReached),  # what stands there came with a repository
            self._open_log(writing=False) as log,
        ):
            for line in lines_back(log, _MOST_BYTES):
                if line.data is None:
                    return
                yield line.data

    def settle(self, entry: Entry) -> None:
        """Keep to the bounds after a change: sweep when there is too much, or once a day.

        About how much there is stands beside the trash, and each sweep counts it again. So an append looks at
        one small file, whatever the trash holds. What the last change replaced stays: `undo` asks for it.
        """
        now = time.time()
        with contextlib.suppress(OSError), files.opened_regular(self.path + _COUNT, _WRITE) as count:
            size, swept_at = _read_counts(count)
            size += self._added
            if size > self.policy.max_bytes or not 0 <= now - swept_at < _DAY:
                self.sweep(now, entry)
            elif self._added:
                self._write_counts(count, size, swept_at)

    def _write_counts(self, file: int, size: int, swept_at: int) -> None:
        # In place, without waiting for the disk: a torn or lost count is counted again.
        os.pwrite(file, b"%20d %20d\n" % (size, swept_at), 0)
        self._added = 0

    def sweep(self, now: float, last: Entry | None = None) -> int:
        """Drop, oldest first, what is older or more than the config allows; how many contents went.

        Of what is more, that which changes wrote and none has replaced goes before all that was replaced.

        Args:
            now: seconds since the epoch.
            last: the last change; what it replaced stays, unless nothing at all is to be kept.
        """
        oldest = now - self.policy.max_days * _DAY
        needed = {file.before for file in last.files} if last and self.policy.max_bytes else set()
        total, size, dropped = 0, 0, 0
        with files.opened(self.path) as trash:
            for name in os.listdir(trash):
                if name.endswith(_PART):
                    files.remove(trash, name)
        with os.scandir(self.path) as found:
            status = {
                e.name: e.stat(follow_symlinks=False)
                for e in found
                if e.name != _LOG and not e.is_dir(follow_symlinks=False)
            }
        entries = list(self.entries())
        times = _find_times(entries)
        contents = [(*times.get(name, (True, s.st_mtime)), s.st_size, name) for name, s in status.items()]
        # More room is made than needed; else each change would sweep a full trash again.
        full = sum(s.st_size for s in status.values()) > self.policy.max_bytes
        most = self.policy.max_bytes - self.policy.max_bytes // 8 if full else self.policy.max_bytes
        for _, when, length, name in sorted(contents, reverse=True):
            size += length
            if name not in needed and (when < oldest or size > most):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))
                dropped += 1
            else:
                total += length
        self._shorten_log(entries, oldest, last)
        with files.opened_regular(self.path + _COUNT, _WRITE) as count:
            self._write_counts(count, total, int(now))
        return dropped

    def _shorten_log(self, entries: Sequence[Entry], oldest: float, last: Entry | None) -> None:
        limit = datetime.fromtimestamp(max(oldest, 0), UTC).isoformat(timespec="seconds")
        kept = [entry for entry in entries if entry.time >= limit or (last and entry.id == last.id)]
        if len(kept) == len(entries):
            return
        with files.opened(self.path) as trash:
            try:
                files.write_new(trash, _LOG + _PART, b"".join(map(_format_entry, reversed(kept))))
                os.rename(_LOG + _PART, _LOG, src_dir_fd=trash, dst_dir_fd=trash)
            finally:
                files.remove(trash, _LOG + _PART)
            os.fsync(trash)


def _find_times(entries: Sequence[Entry]) -> dict[str, tuple[bool, float]]:
    """Return of each content whether it was ever replaced, and when last, else when it was written."""
    times: dict[str, tuple[bool, float]] = {}
    for entry in entries:
        if not (moment := moment_of(entry.time)):
            continue
        when = moment.timestamp()
        for change in entry.files:
            for digest, found in ((change.before, (True, when)), (change.after, (False, when))):
                if digest:
                    times[digest] = max(times.get(digest, found), found)
    return times


def _read_counts(file: int) -> tuple[int, int]:
    """Return the bytes in the trash, and when it was swept in seconds."""
    try:
        size, swept_at = map(int, os.pread(file, 99, 0).split())
    except ValueError:
        return 0, 0
    return size, swept_at


def _format_entry(entry: Entry) -> bytes:
    return signed(as_json(entry)) + b"\n"


def _place_of(line: bytes, log: int) -> int | None:
    """Return where a line begins, if it is one of the last of the log."""
    start = max(os.fstat(log).st_size - len(line) - _LAST, 0)
    place = os.pread(log, len(line) + _LAST, start).rfind(line)
    return start + place if place >= 0 else None
