"""The index of a vault: its two derived stores, made when they are needed and current when they are asked.

A process that goes on closes the text index when it has not been used for a while.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import normalize

from mdmem.errors import IndexDamaged, LockTimeout, MdmemError, StorageFailed
from mdmem.index.database import DATABASE, LOCK, SOCKET, TEXT, VERSION_FILE, Database, Seen
from mdmem.index.sync import Progress, Sync, Synced, Work
from mdmem.index.voucher import mounted_in, remote_kind
from mdmem.vault import files
from mdmem.vault.paths import is_under
from mdmem.vault.vault import Vault
from mdmem.vault.walk import Look, look, look_at

if TYPE_CHECKING:
    from mdmem.index.sync import Pinning
    from mdmem.index.text_index import TextIndex


class Rest:
    """Closes something that has not been used for some seconds.

    A thread waits for that and ends with it; the next use begins another one. So what is never used again
    costs nothing.

    Args:
        close: closes it, in that thread. A use that comes just then has to open it again.
        seconds: how long it has not been used.
    """

    def __init__(self, close: Callable[[], None], seconds: float) -> None:
        self._close = close
        self._seconds = seconds
        self._used = 0.0
        self._thread: Thread | None = None

    def used(self) -> None:
        """Say that it is used now; not by two threads at once."""
        self._used = time.monotonic()
        if self._thread is None:
            self._thread = Thread(target=self._wait, name="mdmem-rest", daemon=True)
            self._thread.start()

    def _wait(self) -> None:
        while (left := self._used + self._seconds - time.monotonic()) > 0:
            time.sleep(left)
        self._thread = None
        self._close()


R = TypeVar("R")
Told = Callable[[], Collection[str] | None]

# A first run over a very large vault may take minutes; the others wait for it.
_LOCK_SECONDS = 600.0
_STOPPED_SECONDS = 1.0
# From so many paths on, what is known of all files is loaded at once.
_MANY = 500
# So many memories may be left to the question that needs the text index: to read them once more takes less
# than a tenth of a second, and a commit now, for a single one, a fourth of that.
_MOST_PENDING = 50
_REST_SECONDS = 10.0


class Index:
    """The index of the vault at `root`, all namespaces of it.

    Constructing one opens nothing. One object may be used by several threads.

    Attributes:
        notes: what had to give, in words, oldest first: that the index was made anew, or where it stands when
            the vault cannot hold it.
    """

    def __init__(self, root: str, pinning: Pinning | None = None) -> None:
        self.vault = Vault(root)
        self._pinning = pinning
        self.notes = self.vault.notes
        self._guard = threading.RLock()
        self._database: Database | None = None
        self._text: TextIndex | None = None
        self._known: dict[str, tuple[int, int, int, int]] = {}
        self._known_at = -1
        # Paths that have to be looked at, as far as a watcher told; None: every file, as in a new database.
        self._due: set[str] | None = None
        self._told: Told | None = None
        self._rest: Rest | None = None

    # -- opening and closing ------------------------------------------------------------------------------

    @cached_property
    def folder(self) -> str:
        """Where the stores are: in the vault, or in the user's cache where the vault cannot hold them."""
        reason = remote_kind(self.vault.root)
        if not reason:
            try:
                folder = self.vault.disk.own("index")
            except MdmemError as error:
                reason = error.message
            else:
                if os.access(folder, os.W_OK):
                    return folder
                reason = "it is read-only"
        return self._elsewhere(reason)

    def _elsewhere(self, reason: str) -> str:
        """The folder in the user's cache, for this reason."""
        folder = _cache_folder(self.vault.root)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
            raise StorageFailed(path=folder, action="keep the index there", reason=why) from None
        note = f"the index stands in {folder}, not in the vault: {reason}"
        if note not in self.notes:
            self.notes.append(note)
        return folder

    def _locked(self) -> AbstractContextManager[None]:
        """The lock of the index; one process at a time writes to it."""
        if not os.path.isdir(self.folder):
            del self.folder  # somebody has deleted it
        return files.held(os.path.join(self.folder, LOCK), _LOCK_SECONDS, stopped=_STOPPED_SECONDS)

    @property
    def _database_path(self) -> str:
        return os.path.join(self.folder, DATABASE)

    @property
    def _text_path(self) -> str:
        return os.path.join(self.folder, TEXT)

    def _opened(self) -> Database:
        """The database; where another process has made it anew, both stores are opened again."""
        if self._database and self._database.replaced:
            self.close()
        if self._database is None:
            with self._locked():
                self._database = Database(self._database_path)
        return self._database

    def _opened_text(self) -> TextIndex:
        """The text index, which many questions do without; the database is open."""
        if self._text is None:
            from mdmem.index.text_index import TextIndex  # noqa: PLC0415 - start-up

            with self._locked():
                self._text = TextIndex(self._text_path)
        if self._rest:
            self._rest.used()
        return self._text

    def close(self) -> None:
        """Close both stores; the next question opens them again."""
        with self._guard:
            database, self._database = self._database, None
            self._due = None
            self._known_at = -1
            if database:
                database.close()
            self._close_text()

    def rest_when_idle(self, seconds: float = _REST_SECONDS) -> None:
        """Close the text index whenever it was not asked for so many seconds, for a process that goes on.

        As long as it is open, its library looks twice a second whether its files have changed. To open it
        again takes some milliseconds.
        """
        if self._rest is None:
            self._rest = Rest(self._close_text, seconds)

    def _close_text(self) -> None:
        with self._guard:
            text, self._text = self._text, None
            if text:
                text.close()

    def rebuild(self, progress: Progress | None = None) -> Synced:
        """Make both stores anew from the files; see `sync`."""
        with self._guard:
            self._renew(self._made())
            return self.sync(progress=progress)

    def _made(self) -> tuple[int, ...]:
        """What differs once one of the stores has been made anew."""
        return (*_stamp(self._database_path)[:1], *_stamp(os.path.join(self._text_path, VERSION_FILE)))

    def _renew(self, made: tuple[int, ...], *, text_only: bool = False) -> None:
        """Delete the stores, or the text index alone, unless somebody has made one anew since `made`."""
        from shutil import rmtree  # noqa: PLC0415 - start-up

        self.close()
        with self._locked():
            if self._made() == made:
                # The database last: it is what tells the others that all is new.
                rmtree(self._text_path, ignore_errors=True)
                for suffix in () if text_only else ("-wal", "-shm", ""):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self._database_path + suffix)

    def _sound(self, work: Callable[[], R], again: Callable[[], R]) -> R:
        """What `work` returns; where a store is damaged or the vault has no room for it, what `again` does.

        It does so once that store is new, or both stand elsewhere.
        """
        try:
            return self._mended(work, again)
        except (StorageFailed, LockTimeout) as error:
            here = self.__dict__.get("folder")
            if here is None or not is_under(error.path, here) or here == _cache_folder(self.vault.root):
                raise
            self.close()
            reason = error.reason if isinstance(error, StorageFailed) else "its lock is not given back"
            self.__dict__["folder"] = self._elsewhere(reason)
        return self._mended(again, again)

    def _mended(self, work: Callable[[], R], again: Callable[[], R]) -> R:
        made = self._made()
        try:
            return work()
        except IndexDamaged as error:
            # The database is kept where it can be: what was first seen of cited code is nowhere else.
            text_only = error.path == self._text_path
            if not text_only:  # the next sync says so
                self.notes.append(f"the index was made anew: {error.reason}")
        self._renew(made, text_only=text_only)
        try:
            return again()
        except IndexDamaged as error:
            # What is new is not damaged: the system refuses something, such as space.
            raise StorageFailed(path=error.path, action="make the index anew", reason=error.reason) from None

    # -- keeping it current -------------------------------------------------------------------------------

    def sync(
        self,
        paths: Collection[str] | None = None,
        progress: Progress | None = None,
        *,
        texts: bool = True,
        alone: bool = False,
    ) -> Synced:
        """Make the index say what the files say.

        Every file is looked at, unless a watcher tells which may have changed, in this process or another.

        Args:
            paths: only these, memories or folders, as the whole vault names them; all without.
            progress: told how many of how many files are read.
            texts: whether the text index is to be current, too; without it, a few changed memories are left
                to the next sync that needs it.
            alone: ask no other process.

        Raises:
            LockTimeout: another process has been at it for ten minutes.
            StorageFailed: the system refused.
        """
        with self._guard:
            self.vault.recover()
            return self._sound(
                lambda: self._sync(paths, progress, texts=texts, alone=alone),
                lambda: self._sync(None, progress, texts=texts, alone=True),
            )

    def _sync(
        self, paths: Collection[str] | None, progress: Progress | None, *, texts: bool, alone: bool
    ) -> Synced:
        while True:
            database = self._opened()
            where = self._where(paths)
            if where is None and paths is None and not alone and self._has_voucher(database, texts=texts):
                where = self._due = set()
            text = self._opened_text() if texts else None
            if paths is None and where == set() and not _unfinished(database, text):
                return Synced()
            changes, found = database.changes(), self._look(database, where)
            synced = Synced()
            if found.changed or found.gone or _racy(database) or _unfinished(database, text):
                text = text or self._text_for(database, found)  # it takes the lock, too
                with self._locked():
                    if database.replaced:
                        continue
                    if database.changes() != changes:
                        # Whoever held the lock may have done it already.
                        found = self._look(database, [*(met.path for met in found.changed), *found.gone])
                    synced = self._take(database, text, found, progress)
            if where is None or paths is None:
                self._due = set()
            return synced

    def _where(self, paths: Collection[str] | None = None) -> Collection[str] | None:
        """Where to look so that nothing is missed, when `paths` are asked about; None: everywhere."""
        if paths is None:
            told = self._told() if self._told else None
            # Kept until a look has succeeded.
            self._due = None if self._due is None or told is None else self._due | set(told)
        return None if self._due is None else self._due if paths is None else paths

    def _text_for(self, database: Database, found: Look) -> TextIndex | None:
        """The text index, where too much would be left to whoever needs it."""
        ((waiting,),) = database.rows("SELECT count(*) FROM pending")
        many = waiting + len(found.changed) + len(found.gone) > _MOST_PENDING
        return self._opened_text() if many else None

    def _take(
        self, database: Database, text: TextIndex | None, found: Look, progress: Progress | None
    ) -> Synced:
        """Take in what a look found, and with the text index what is not done yet there."""
        if text and _unfinished(database, text) == _LOST:
            self.notes.append("the text index was made anew: it was not the one that the database knows")
            text.clear()
            with database.writing():
                lost = "INSERT OR IGNORE INTO pending SELECT path FROM documents WHERE problem = ''"
                database.write(lost, [()])
                database.set_value("opstamp", 0)
        if text and not database.value("opstamp"):
            with database.writing():
                database.set_value("text", _identity(text))
        read = [met.path for met in found.changed if not met.problem]
        problems = [(met.path, Seen(*met.seen), met.problem) for met in found.changed if met.problem]
        work = Work(read=(*read, *_racy(database)), problems=tuple(problems), gone=tuple(found.gone))
        self._known_at = -1
        try:
            return Sync(self.vault, database, text, self._pinning).run(work, progress)
        except BaseException:
            # Whoever asked has gone, say: what was not committed would be taken in twice by the next run.
            if text:
                text.close()
            raise

    # -- vouching -----------------------------------------------------------------------------------------

    @property
    def is_watched(self) -> bool:
        """Whether somebody tells this object what changes."""
        return self._told is not None

    def follow(self, told: Told) -> None:
        """Look only where a watcher tells that something may have changed.

        Args:
            told: gives the memories and folders, as the whole vault names them, of which it did not tell
                before; None: everything has to be looked at.
        """
        with self._guard:
            self._told, self._due = told, None

    def unfollow(self, told: Told) -> None:
        """Do without it again."""
        with self._guard:
            if self._told == told:
                self._told = None

    def vouches(self, claim: bytes) -> bool:
        """Whether the index is current for another process, which says `claim`; see `mdmem.index.voucher`.

        What a watcher tells is taken in first; where everything would have to be looked at, it is not.

        Raises:
            As `sync`.
        """
        with self._guard:
            database = self._opened()
            texts = claim == self._claim(database, texts=True)
            if not texts and claim != self._claim(database, texts=False):
                return False
            if self._where() is None:
                return False
            self.sync(texts=texts, alone=True)
            return True

    def _has_voucher(self, database: Database, *, texts: bool) -> bool:
        """Whether another process says that the index is current."""
        if self._told:  # it knows as much, and two that asked each other would both wait
            return False
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = [name for name in os.listdir(self.folder) if name.startswith(SOCKET)]
        if not names:
            return False
        from mdmem.index.voucher import ask  # noqa: PLC0415 - start-up

        return ask(self.folder, names, self._claim(database, texts=texts))

    def _claim(self, database: Database, *, texts: bool) -> bytes:
        """What two processes must see alike, so that what is current for one is so for the other."""
        from hashlib import sha256  # noqa: PLC0415 - start-up

        status = os.stat(self.vault.root)
        root = self.vault.root
        mounts = [mount._replace(point=mount.point[len(root) :]) for mount in mounted_in(root)[1]]
        seen = (database.identity, status.st_dev, status.st_ino, self.vault.mounted(""), mounts)
        return sha256(repr((texts, *seen, self.vault.config)).encode("utf-8", "surrogateescape")).digest()

    def _look(self, database: Database, paths: Collection[str] | None) -> Look:
        root, mounts = self.vault.root, self.vault.mounted("")
        if paths is not None and len(paths) < _MANY:
            named = {normalize("NFC", path) for path in paths}
            return look_at(root, named, database.known(named), mounts)
        changes = database.changes()
        if changes != self._known_at:
            self._known, self._known_at = database.known(), changes
        return look(root, self._known, mounts) if paths is None else look_at(root, paths, self._known, mounts)

    # -- asking -------------------------------------------------------------------------------------------

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a query of the database gives; make it current first."""
        return self._asked(lambda database: database.rows(query, values))

    def text(self, ask: Callable[[TextIndex], R]) -> R:
        """What a question to the text index gives; make it current first."""
        return self.both(lambda _, text: ask(text))

    def both(self, ask: Callable[[Database, TextIndex], R]) -> R:
        """As `text`, of a question to both stores."""

        def refreshed(database: Database) -> R:
            text = self._opened_text()
            text.refresh()
            return ask(database, text)

        return self._asked(refreshed)

    def _asked(self, ask: Callable[[Database], R]) -> R:
        def first() -> R:
            before, database = self._database, self._opened()
            # One that somebody has made anew may hold little yet.
            return ask(database) if before in {None, database} else again()

        def again() -> R:
            self._sync(None, None, texts=True, alone=True)
            return ask(self._opened())

        with self._guard:
            return self._sound(first, again)


_LOST = "lost"


def _unfinished(database: Database, text: TextIndex | None) -> str:
    """Whether the text index is not what the database says: its rest is "pending", or it is "lost".

    Where it is not asked for, it may be what it is. Where the database knows of no commit, an index that has
    some was made for another one, unless it is the one that was about to be filled: what only that other one
    knew of would stay in it.
    """
    if not text:
        return ""
    known, there = database.value("opstamp") or 0, text.opstamp
    if database.rows("SELECT 1 FROM pending LIMIT 1"):
        is_ours = known or not there or database.value("text") == _identity(text)
        return "pending" if there >= known and is_ours else _LOST
    return "" if there == known else _LOST


def _identity(text: TextIndex) -> str:
    """What tells a text index from one that takes its place."""
    return str(_stamp(os.path.join(text.folder, VERSION_FILE)))


def _racy(database: Database) -> list[str]:
    """The files that may have been written once more and look the same."""
    return [path for (path,) in database.rows("SELECT path FROM documents WHERE racy")]


def _stamp(path: str) -> tuple[int, int]:
    """What tells a file from another one that takes its place."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


def _cache_folder(root: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 - rare, and start-up

    from platformdirs import user_cache_dir  # noqa: PLC0415 - as above

    return os.path.join(
        user_cache_dir("mdmem", appauthor=False), "index", sha256(root.encode()).hexdigest()[:16]
    )
