"""The index of a vault: its two derived stores, created when they are needed."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from unicodedata import normalize

from mdmem.document.document import NAMED_SUFFIXES
from mdmem.errors import IndexDamaged, IndexNotReady, LockTimeout, MdmemError, NotReady, StorageFailed
from mdmem.index.database import DATABASE, LOCK, TEXT, VERSION, VERSION_FILE, Database
from mdmem.index.hit import Heading
from mdmem.index.mounts import remote_kind
from mdmem.index.sync import Pinning, Progress, Sync, Synced, Work
from mdmem.vault import files
from mdmem.vault.config import Config
from mdmem.vault.paths import is_under
from mdmem.vault.store import Store
from mdmem.vault.vault import Vault
from mdmem.vault.walk import Look, compare_files, compare_paths, count_files

if TYPE_CHECKING:
    from mdmem.index.text_index import TextIndex


P = ParamSpec("P")
R = TypeVar("R")
ChangedPaths = Callable[[], Collection[str] | None]

# A first run over a very large vault may take minutes; other processes wait for it.
_LOCK_SECONDS = 600.0
_STOPPED_SECONDS = 1.0
# Who is in a hurry waits for a short write, and reads no more files than this.
_HURRIED_SECONDS = 0.2
_MOST_HURRIED = 400
_COUNT = "count"
_MANY = 1_500  # files; of fewer, other processes take longer to start than they save
# Memories that may be left to the next question to the text index: to read them again takes less than 0.1 s.
_MOST_PENDING = 50


class _Stamp(NamedTuple):
    """What differs after one of the stores was replaced: device or time, and inode, of a file of each."""

    database: tuple[int, int]
    text: tuple[int, int]


def _repairing(ask: Callable[Concatenate[Index, P], R]) -> Callable[Concatenate[Index, P], R]:
    """Let a question of an index repair a store that is damaged or has no room, and ask again."""

    @wraps(ask)
    def asking(self: Index, /, *given: P.args, **named: P.kwargs) -> R:
        rebuilt: set[str] = set()
        with self._guard:
            while True:
                stamp = self._stamp_stores()
                self._close_replaced(stamp)
                try:
                    return ask(self, *given, **named)
                except (IndexDamaged, StorageFailed, LockTimeout) as error:
                    self._repair(error, stamp, rebuilt)

    return asking


class Index:
    """The index of a vault, all namespaces of it.

    Constructing one opens nothing. One object may be used by several threads.

    Args:
        store: the files of the vault, or its folder.
        pinning: says what cited code is like where the index first sees it.
        is_hurried: raise NotReady rather than wait for another process or read many files, and look for
            changes only once.

    Attributes:
        notes: warnings, oldest first: that the index was rebuilt, or is not in the vault.
        refused: why it was not ready, once it was not; it is not asked again then.
    """

    def __init__(
        self, store: Store | str, pinning: Pinning | None = None, *, is_hurried: bool = False
    ) -> None:
        self.vault = Vault(store)
        self._pinning = pinning
        self._is_hurried = self.vault.is_hurried = is_hurried
        self._progress: Progress | None = None  # of the sync that goes on
        self.refused: NotReady | None = None
        self.notes = self.vault.notes
        self._guard = threading.RLock()
        self._database: Database | None = None
        self._text: TextIndex | None = None
        self._is_behind = False  # a store was made again, or the config has changed, since the last sync
        self._config: Config | None = None
        self._known: dict[str, tuple[int, int, int, int]] = {}
        self._known_at = -1
        # The paths to look at, from a watcher; None: every file.
        self._due: set[str] | None = None
        # One in a hurry looks at every file once, as if nothing had changed since.
        self._changed_paths: ChangedPaths | None = tuple if is_hurried else None

    def _below(self, folder: str) -> str:
        """Return the folder of the stores: a config with other kinds of files has a folder of its own.

        So a process that still has the old config does not disturb the others.
        """
        own = "".join(suffix for suffix in NAMED_SUFFIXES if suffix in self.vault.suffixes)
        return os.path.join(folder, own[1:]) if own else folder

    @cached_property
    def folder(self) -> str:
        """The folder of the stores: in the vault, or in the user's cache where the vault cannot hold them."""
        reason = remote_kind(self.vault.root)
        if not reason:
            try:
                folder = self._below(self.vault.disk.own("index"))
            except MdmemError as error:
                reason = error.message
            else:
                with contextlib.suppress(OSError):
                    os.makedirs(folder, exist_ok=True)
                if os.access(folder, os.W_OK):
                    return folder
                reason = "it is read-only"
        return self._use_cache_folder(reason)

    def _use_cache_folder(self, reason: str) -> str:
        folder = self._below(_cache_folder(self.vault.root))
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
            raise StorageFailed(path=folder, action="keep the index there", reason=why) from None
        note = f"the index stands in {folder}, not in the vault: {reason}"
        if note not in self.notes:
            self.notes.append(note)
        return folder

    @contextlib.contextmanager
    def _lock_index(self) -> Iterator[None]:
        if not os.path.isdir(self.folder):
            del self.folder  # it was deleted
        seconds, path = _LOCK_SECONDS, os.path.join(self.folder, LOCK)
        if self._is_hurried:
            seconds = 0 if self._read_count() else _HURRIED_SECONDS
        try:
            with files.held(path, seconds, stopped=_STOPPED_SECONDS, waits=self._report_other):
                yield
        except LockTimeout as error:
            raise self._refuse() if self._is_hurried else error from None

    def _report_other(self) -> None:
        count = self._read_count() if self._progress else None
        if self._progress and count:
            self._progress(*count)

    @property
    def is_missed(self) -> bool:
        """Whether there is no index, and to make one takes long."""
        if os.path.exists(self._database_path):
            return False
        return count_files(self.vault.root, self.vault.suffixes, _MOST_HURRIED) > _MOST_HURRIED

    @cached_property
    def _file_count(self) -> int:
        return count_files(self.vault.root, self.vault.suffixes)

    def _refuse(self) -> IndexNotReady:
        done, of = self._read_count() or (0, self._file_count)
        return IndexNotReady(done=done, of=of)

    def _read_count(self) -> tuple[int, int] | None:
        """Read the progress of a long run of any process: memories done, and all; None without a run."""
        with contextlib.suppress(OSError, ValueError), open(os.path.join(self.folder, _COUNT), "rb") as file:
            done, of = map(int, file.read(64).split())
            return done, of
        return None

    def _keep_count(self, paths: Sequence[str]) -> Progress:
        """Return a function that writes the progress to a file, which others read without the lock."""
        all_, progress = len({*self._known, *paths}), self._progress

        def report(done: int, of: int) -> None:
            with contextlib.suppress(OSError):  # written over, so that nobody finds it empty
                place = os.open(os.path.join(self.folder, _COUNT), os.O_WRONLY | os.O_CREAT, files.NEW_FILE)
                with open(place, "wb", buffering=0) as file:
                    file.write(b"%10d %10d" % (max(0, all_ - of) + done, max(all_, of)))
            if progress:
                progress(done, of)

        return report

    @property
    def _database_path(self) -> str:
        return os.path.join(self.folder, DATABASE)

    @property
    def _text_path(self) -> str:
        return os.path.join(self.folder, TEXT)

    def _open_database(self) -> Database:
        if self._database is None:
            with self._lock_index():
                self._database = Database(self._database_path)
        return self._database

    def _open_text_index(self) -> TextIndex:
        if self._text is None:
            from mdmem.index.text_index import TextIndex  # noqa: PLC0415 - start-up

            with self._lock_index():
                self._text = TextIndex(self._text_path)
        return self._text

    def close(self) -> None:
        """Close both stores; the next question opens them again."""
        with self._guard:
            database, self._database = self._database, None
            self._due = None
            self._known_at = -1
            if database:
                database.close()
            text, self._text = self._text, None
            if text:
                text.close()

    def rebuild(self, progress: Progress | None = None) -> Synced:
        """Delete both stores and make them from the files; see `sync`."""
        with self._guard:
            self._delete_stores(self._stamp_stores())
            return self.sync(progress=progress)

    def _stamp_stores(self) -> _Stamp:
        status = files.status_of(self._database_path, follows=True)
        database = (status.st_dev, status.st_ino) if status else (0, 0)
        return _Stamp(database, _stamp_file(os.path.join(self._text_path, VERSION_FILE)))

    def _close_replaced(self, stamp: _Stamp) -> None:
        """Close both stores where another process has replaced the database; it may hold little yet."""
        if self._database and self._database.identity != stamp.database:
            self.close()
            self._is_behind = True

    def _delete_stores(self, stamp: _Stamp, *, text_only: bool = False) -> None:
        """Delete the stores, or the text index alone, unless they were replaced since `stamp`."""
        from shutil import rmtree  # noqa: PLC0415 - start-up

        self.close()
        with self._lock_index():
            if self._stamp_stores() == stamp:
                # The database last: other processes see by it that both are new.
                rmtree(self._text_path, ignore_errors=True)
                for suffix in () if text_only else ("-wal", "-shm", ""):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self._database_path + suffix)

    def _repair(
        self, error: IndexDamaged | StorageFailed | LockTimeout, stamp: _Stamp, rebuilt: set[str]
    ) -> None:
        """Delete a damaged store, or use the user's cache where the vault has no room; else raise the error.

        `stamp` is of the stores that gave the error; those in the folders `rebuilt` were repaired already.
        """
        self._is_behind = True
        if isinstance(error, IndexDamaged):
            if self.folder not in rebuilt:
                rebuilt.add(self.folder)
                # The database is kept where possible: the first state of cited code is nowhere else.
                text_only = error.path == self._text_path
                if not text_only:  # the next sync says so
                    self.notes.append(f"the index was rebuilt: {error.reason}")
                self._delete_stores(stamp, text_only=text_only)
                return
            # A new store is not damaged: the system refuses something, such as space.
            error = StorageFailed(path=error.path, action="rebuild the index", reason=error.reason)
        here, cache = self.__dict__.get("folder"), self._below(_cache_folder(self.vault.root))
        if here is None or not is_under(error.path, here) or here == cache:
            raise error from None
        self.close()
        reason = error.reason if isinstance(error, StorageFailed) else "its lock is not given back"
        self.__dict__["folder"] = self._use_cache_folder(reason)

    @_repairing
    def sync(
        self,
        paths: Collection[str] | None = None,
        progress: Progress | None = None,
        *,
        texts: bool = True,
    ) -> Synced:
        """Update the index from the files.

        It compares every file, unless a watcher knows which have changed, in this process or another.

        Args:
            paths: only these vault paths of memories or folders; all without.
            progress: called with the number of files read, and of all to read.
            texts: whether to update the text index; without it, a few changed memories are left to the next
                sync with it.

        Raises:
            LockTimeout: another process has held the lock for ten minutes.
            StorageFailed: the system refused.
            NotReady: that would take long, and the caller is in a hurry.
        """
        if self.refused:
            raise self.refused
        self._progress = progress
        self.vault.recover()
        self._follow_config()
        try:
            if self._is_hurried and self.is_missed:
                raise self._refuse()
            return self._sync_stores(None if self._is_behind else paths, progress, texts=texts)
        except NotReady as error:
            self.refused = error if self._is_hurried else None
            raise

    def _follow_config(self) -> None:
        """Where the config has changed, look for the stores and at every file again."""
        before, self._config = self._config, self.vault.config
        if before is not None and before != self._config:
            self.close()
            vars(self).pop("folder", None)
            self._is_behind = True

    def _sync_stores(
        self, paths: Collection[str] | None, progress: Progress | None, *, texts: bool
    ) -> Synced:
        while True:
            database = self._open_database()
            where, mark = self._list_due_paths(database, paths)
            text = self._open_text_index() if texts else None
            if paths is None and where == set() and not _compare_stores(database, text):
                return Synced()
            changes = database.changes()
            look = self._find_changes(database, where, changes)
            if where and (look.changed or look.gone):
                # Of a file that was moved amid this look, only one that begins later sees both ends.
                look = self._find_changes(database, where, database.changes())
            synced = Synced()
            if look.changed or look.gone or _list_racy_paths(database) or _compare_stores(database, text):
                text = self._prepare_run(database, text, len(look.changed) + len(look.gone))
                with self._lock_index():
                    if database.replaced:
                        self.close()
                        continue
                    if (now := database.changes()) != changes:
                        # The process that held the lock may have done it already.
                        again = [*(file.path for file in look.changed), *look.gone]
                        look = self._find_changes(database, again, now)
                    synced = self._write_changes(database, text, look, progress)
                    if mark:
                        database.set_value("mark", mark)
            if (where is None or paths is None) and not mark:
                self._due = set()
            self._is_behind = False
            return synced

    def _prepare_run(self, database: Database, text: TextIndex | None, changed: int) -> TextIndex | None:
        """Return the text index, if it is to be updated, before a run that reads `changed` files."""
        ((pending,),) = database.rows("SELECT count(*) FROM pending")
        if not text and pending + changed > _MOST_PENDING:
            text = self._open_text_index()  # before the lock, which it takes, too
        if self._is_hurried:
            if _compare_stores(database, text) == _LOST:
                ((pending,),) = database.rows("SELECT count(*) FROM documents")
            if pending + changed + len(_list_racy_paths(database)) > _MOST_HURRIED:
                raise self._refuse()
        return text

    def _list_due_paths(
        self, database: Database, paths: Collection[str] | None = None
    ) -> tuple[Collection[str] | None, str]:
        """Return where to look for changes of `paths`, or of all; None: everywhere. Then the store's mark."""
        if paths is None:
            changed = self._changed_paths() if self._changed_paths else None
            # Kept until a look has succeeded.
            self._due = None if self._due is None or changed is None else self._due | set(changed)
        if self._due is not None:
            return (self._due if paths is None else paths), ""
        mark, where = self.vault.store.changed_since(database.value("mark") or "")
        return where, mark

    def _write_changes(
        self, database: Database, text: TextIndex | None, look: Look, progress: Progress | None
    ) -> Synced:
        if text and _compare_stores(database, text) == _LOST:
            self.notes.append("the text index was rebuilt: it was not the one that the database knows")
            text.clear()
            with database.writing():
                lost = "INSERT OR IGNORE INTO pending SELECT path FROM documents WHERE problem = ''"
                database.write(lost, [()])
                database.set_value("opstamp", 0)
        if text and not database.value("opstamp"):
            with database.writing():
                database.set_value("text", _identify_text_index(text))
        read = [file.path for file in look.changed if not file.problem] + _list_racy_paths(database)
        work = Work(read, [file for file in look.changed if file.problem], look.gone)
        self._known_at = -1
        try:
            many: Callable[..., Any] | None = None
            if len(read) >= _MANY:
                from mdmem.index.worker import read_with_workers as many  # noqa: PLC0415 - few are
            told = self._keep_count(read) if len(read) > _MOST_HURRIED else progress
            return Sync(self.vault, database, text, self._pinning, many).run(work, told)
        except BaseException:
            # For example an interrupt: the next run would add what was not committed once more.
            if text:
                text.close()
            raise
        finally:
            with contextlib.suppress(OSError):  # also that of a run that was killed
                os.unlink(os.path.join(self.folder, _COUNT))

    @property
    def is_watched(self) -> bool:
        """Whether a watcher tells this object what changes."""
        return self._changed_paths is not None

    def follow(self, changed_paths: ChangedPaths) -> None:
        """Look only where a watcher saw changes since it was last asked; at everything where it says None."""
        with self._guard:
            self._changed_paths, self._due = changed_paths, None

    def unfollow(self, changed_paths: ChangedPaths) -> None:
        """Stop following a watcher."""
        with self._guard:
            if self._changed_paths == changed_paths:
                self._changed_paths = None

    def _find_changes(self, database: Database, paths: Collection[str] | None, changes: int) -> Look:
        root, mounts, suffixes = self.vault.root, self.vault.mounted(""), self.vault.suffixes
        if paths is not None and "" not in paths:
            named = {normalize("NFC", path) for path in paths}
            return compare_paths(root, named, database.known(named), mounts, suffixes)
        if changes != self._known_at:
            self._known, self._known_at = database.known(), changes
        return compare_files(root, self._known, mounts, suffixes)

    def _open_current(self) -> Database:
        """Open the database, and fill it where it was made again since the last sync."""
        if self._is_behind:
            self._sync_stores(None, None, texts=True)
        return self._open_database()

    @_repairing
    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query of the database; `sync` first."""
        return self._open_current().rows(query, values)

    def headings(self, path: str, digest: str) -> Sequence[Heading] | None:
        """Return the indexed headings of a memory, in order; None where the index has not this content."""
        query = (
            "SELECT s.line, s.path FROM documents AS d LEFT JOIN sections AS s ON s.document = d.id"
            " WHERE d.path = ? AND d.hash = ? ORDER BY s.n"
        )
        rows = self.rows(query, (path, digest))
        return [(line, tuple(titles.split("\n"))) for line, titles in rows if line] if rows else None

    @_repairing
    def stamp(self) -> object:
        """Return what differs after something was written to the database, by whichever process."""
        database = self._open_current()
        return database.identity, database.changes(), database.written

    @_repairing
    def text(self, ask: Callable[[TextIndex], R]) -> R:
        """Return the answer of the text index to a question; `sync` first."""
        self._open_current()
        text = self._open_text_index()
        text.refresh()
        return ask(text)


_LOST = "lost"


def _compare_stores(database: Database, text: TextIndex | None) -> str:
    """Compare the text index with the database: it is current (""), "pending" or "lost".

    It is lost when it belongs to another database: it has commits that this database does not know, and this
    database did not begin to fill it.
    """
    if not text:
        return ""
    known, there = database.value("opstamp") or 0, text.opstamp
    if database.rows("SELECT 1 FROM pending LIMIT 1"):
        is_ours = known or not there or database.value("text") == _identify_text_index(text)
        return "pending" if there >= known and is_ours else _LOST
    return "" if there == known else _LOST


def _identify_text_index(text: TextIndex) -> str:
    return str(_stamp_file(os.path.join(text.folder, VERSION_FILE)))


def _list_racy_paths(database: Database) -> list[str]:
    """List the files that may have been written again with the same times."""
    return [path for (path,) in database.rows("SELECT path FROM documents WHERE racy")]


def _stamp_file(path: str) -> tuple[int, int]:
    status = files.status_of(path, follows=True)
    return (status.st_ino, status.st_mtime_ns) if status else (0, 0)


def _cache_folder(root: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 - rare, and start-up

    from platformdirs import user_cache_dir  # noqa: PLC0415 - as above

    # An older mdmem, for which the index in the vault is too new, has its own beside that of a newer one.
    name = f"{sha256(root.encode()).hexdigest()[:16]}-{VERSION}"
    return os.path.join(user_cache_dir("mdmem", appauthor=False), "index", name)
