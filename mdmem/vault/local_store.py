"""The store of a vault that is a folder on a disk.

Folders are opened one by one and no link is followed; a lock for the whole vault keeps other writers out;
several files change together through the journal, and what they held goes to the trash. Git ignores
`.mdmem/local`: indexes, locks, staging and the trash.
"""

from __future__ import annotations

import contextlib
import os
import time
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mdmem.document.document import SUFFIXES, digest
from mdmem.errors import (
    ConfigInvalid,
    EditRefused,
    FileBusy,
    LockTimeout,
    MdmemError,
    StorageFailed,
    SystemFailing,
    TooLarge,
    VaultNotFound,
)
from mdmem.vault import config, files
from mdmem.vault.config import Config
from mdmem.vault.files import BUSY_SECONDS, Content, Place
from mdmem.vault.folder import PAST_MARK, resolve, workspace_of
from mdmem.vault.journal import ASIDE, STAGING, Journal, pending
from mdmem.vault.log import LogFile
from mdmem.vault.mark import name_for
from mdmem.vault.paths import Namespace, is_under
from mdmem.vault.store import Entry, Step
from mdmem.vault.trash import TrashFolder
from mdmem.vault.uses import FolderUses, UseTable
from mdmem.vault.walk import Found, walk

if TYPE_CHECKING:
    from mdmem.vault.postgres_vectors import PostgresVectors

LOCK_SECONDS = 10.0
_RECOVER_SECONDS = 3.0  # how long a reader waits for the end of a change of several files
_READ_SETTLE_SECONDS = 0.2
_TICK_NS = 20_000_000  # within which a file can change again, and its times stay
LOCAL = ".mdmem/local"
_TRASH, _LOG_LOCKS = f"{LOCAL}/trash", f"{LOCAL}/logs"
_LOCAL_FOLDERS = (".mdmem", LOCAL, STAGING, _TRASH)


class LocalStore:
    """The `Store` of a folder, and of what its config mounts. Constructing it opens nothing.

    `is_copy`: whether the folder follows what is elsewhere, and is not the user's own.
    """

    is_copy = False

    def __init__(self, root: str) -> None:
        self.name = self.root = os.path.realpath(root)
        self._config_file = f"{self.root}/{config.CONFIG_PATH}"
        self._config: Config | None = None
        self._config_stamp: tuple[int, ...] | None = None
        self.notes: list[str] = []
        self._has_given_up = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Open files are not passed to another process.
        return type(self), (self.name,)

    def again(self) -> LocalStore:
        """Return the same files, read as if they had not been before."""
        return LocalStore(self.root)

    @property
    def config(self) -> Config:
        """See `Store.config`: the file is read again once it has changed."""
        known, stamp = self._config, self._stamp_config()
        if known is not None and stamp == self._config_stamp:
            return known
        try:
            read = self._read_config()
        except (StorageFailed, SystemFailing):  # a change that is made already must not fail for it
            if known is None:
                raise
            return known
        if read != known:
            for made in ("mounts", "trash", "journal"):
                vars(self).pop(made, None)
        is_recent = bool(stamp) and time.time_ns() - stamp[0] < _TICK_NS
        self._config, self._config_stamp = read, None if is_recent else stamp
        return read

    def _stamp_config(self) -> tuple[int, ...]:
        """Return what changes with the file of the config; empty if there is none."""
        status = files.status_of(self._config_file)
        return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino) if status else ()

    def _read_config(self) -> Config:
        place = Place(self.root, tuple(config.CONFIG_PATH.split("/")))
        try:
            content = self._read_place(place, config.CONFIG_PATH, config.MAX_BYTES)
        except TooLarge as error:
            reason = f"it has more than {error.limit:,} bytes"
            raise ConfigInvalid(path=config.CONFIG_PATH, reason=reason) from None
        try:
            read = config.parse(content.data.decode("utf-8")) if content else Config()
        except UnicodeDecodeError as error:
            reason = f"it is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}"
            raise ConfigInvalid(path=config.CONFIG_PATH, reason=reason) from None
        for found in read.unknown:
            self._add_note(f"{found.path}:{found.position.line}: {found.message} ({found.hint})")
        return read

    # -- where files are ----------------------------------------------------------------------------------

    @cached_property
    def workspace(self) -> str:
        """What the memories talk about: the git root that holds the vault, else its parent folder."""
        return workspace_of(self.root)

    @cached_property
    def mounts(self) -> dict[str, tuple[str, ...]]:
        """The mounted files: path of the vault to names below the workspace; a copy of the past has none."""
        is_mounted = self.config.mounts and not self._is_past_copy
        return resolve(self.config, self.root, self.workspace) if is_mounted else {}

    @property
    def _is_past_copy(self) -> bool:
        return os.path.lexists(os.path.join(self.root, PAST_MARK))

    @cached_property
    def original(self) -> LocalStore:
        """The store that this is a copy of the past of; this one, where it is no such copy."""
        root, local, _ = self.root.rpartition(f"/{LOCAL}/")
        return LocalStore(root) if local and self._is_past_copy else self

    def mounted(self, namespace: Namespace) -> dict[str, str]:
        """Return the mounts in a namespace: path of the vault to absolute path."""
        return {
            path: os.path.join(self.workspace, *parts)
            for path, parts in self.mounts.items()
            if namespace.holds(path)
        }

    def place(self, path: str) -> Place:
        """Return where a file is on disk: in the vault, or where it is mounted from."""
        # The vault's own files are never mounted, and are read even with a broken config.
        mounted = None if path.startswith(".") else self.mounts.get(path)
        return Place(self.workspace, mounted) if mounted else Place(self.root, tuple(path.split("/")))

    def in_workspace(self, path: str) -> str:
        """Return the path of a memory's file relative to the workspace."""
        root, parts = self.place(path)
        return os.path.normpath(os.path.join(_relate(root, self.workspace), *parts))

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, path: str, limit: int, *, exact: bool = False, settled: bool = False) -> Content | None:
        """See `Store.read`; wait briefly for a file that is being written."""
        place = Place(self.root, tuple(path.split("/"))) if exact else self.place(path)
        return self._read_place(place, path, limit, exact=exact, settled=settled)

    def _read_place(
        self, place: Place, path: str, limit: int, *, exact: bool = False, settled: bool = False
    ) -> Content | None:
        *folders, name = place.parts
        with files.translated(path, "read it"):
            try:
                with files.opened(place.root, folders, exact=exact) as folder:
                    name = name if exact else files.spelled_in(folder, name)
                    size = files.size(folder, name)
                    if size > limit:
                        raise TooLarge(path=path, size=size, limit=limit)
                    seconds = BUSY_SECONDS if settled else _READ_SETTLE_SECONDS
                    content = files.read_settled(folder, name, seconds)
                    if content is None and settled:
                        raise FileBusy(path=path, seconds=seconds)
                    return content or files.read(folder, name)
            except FileNotFoundError:
                return None

    def walk(self, namespace: Namespace, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[Found]:
        """See `Store.walk`, mounted files included."""
        parts = tuple(namespace.folder.split("/")) if namespace.folder else ()
        mounts = {} if namespace.folder.startswith(".") else self.mounted(namespace)
        return walk(self.root, parts, suffixes, mounts, namespace.holds if namespace.hides else None)

    def names(self, folder: str) -> list[str]:
        """See `Store.names`."""
        parts = folder.split("/") if folder else ()
        names = [path for path in self.mounts if path.rpartition("/")[0] == folder]
        with contextlib.suppress(OSError), files.opened(self.root, parts) as descriptor:
            names += os.listdir(descriptor)
        return [unicodedata.normalize("NFC", name.rpartition("/")[2]) for name in names]

    def stands(self, path: str) -> bool:
        """See `Store.stands`."""
        return os.path.lexists(os.path.join(self.root, path)) or path in self.mounts

    def spelled(self, path: str) -> str:
        """See `Store.spelled`."""
        if path.isascii() or path in self.mounts:
            return ""
        return "/".join(files.spelled(self.root, path.split("/")))

    # -- changing -----------------------------------------------------------------------------------------

    @cached_property
    def trash(self) -> TrashFolder:
        """What was overwritten and deleted."""
        return TrashFolder(os.path.join(self.root, _TRASH), self.config.trash)

    @cached_property
    def journal(self) -> Journal:
        """What makes several files change together."""
        return Journal(self.root, self.place, self.trash)

    def commit(self, entry: Entry, steps: Sequence[Step]) -> None:
        """See `Store.commit`."""
        self._refuse_past_copy(steps[0].path)
        try:
            self.journal.commit(entry, steps)
        except OSError as error:
            raise files.refusal(error, steps[0].path, "write it") from None

    def _refuse_past_copy(self, path: str) -> None:
        if self._is_past_copy:
            reason = "this is a read-only copy of a past state of the vault"
            raise EditRefused(path=path, reason=reason, remedy="change the vault itself")

    def entries(self, folder: str = "") -> Iterator[Entry]:
        """See `Store.entries`."""
        entries = self.trash.entries()
        return (each for each in entries if any(is_under(file.path, folder) for file in each.files))

    def kept(self, digest: str) -> Content | None:
        """See `Store.kept`."""
        return self.trash.kept(digest)

    @property
    def uses(self) -> UseTable:
        """The counts of use."""
        return FolderUses(lambda: self.own("uses"))

    def find_vectors(self, model: str, owner: str) -> PostgresVectors | None:  # noqa: ARG002 - of a database
        """Return the vectors that programs keep here; None where they stand beside the index."""
        return None

    # -- logs ---------------------------------------------------------------------------------------------

    def log(self, path: str) -> contextlib.AbstractContextManager[LogFile]:
        """See `Store.log`."""
        return LogFile(self.root, path).opened(writing=False)

    @contextlib.contextmanager
    def appending(self, *paths: str) -> Iterator[tuple[LogFile, ...]]:
        """See `Store.appending`: each log has a lock of its own; they are taken in sorted order."""
        self._refuse_past_copy(paths[0])
        self._make_local()
        with files.translated(LOCAL, "make it"), files.opened(self.root, _LOG_LOCKS.split("/"), create=True):
            pass
        with contextlib.ExitStack() as stack:
            for path in sorted(set(paths)):
                lock = os.path.join(self.root, _LOG_LOCKS, f"{digest(path.encode())}.lock")
                stack.enter_context(files.held(lock, LOCK_SECONDS))
            yield tuple(stack.enter_context(LogFile(self.root, path).opened(writing=True)) for path in paths)

    def changed_since(self, mark: str) -> tuple[str, Collection[str] | None]:  # noqa: ARG002 - of the protocol
        """See `Store.changed_since`: programs that write files tell nobody."""
        return "", None

    def steady(self) -> contextlib.AbstractContextManager[None]:
        """See `Store.steady`: to look costs next to nothing."""
        return contextlib.nullcontext()

    # -- the lock, and what a crash left ------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self, seconds: float) -> Iterator[None]:
        """Hold the vault's write lock."""
        self._make_local()
        with files.held(os.path.join(self.root, LOCAL, "lock"), seconds):
            yield

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """See `Store.writing`."""
        with self.locked(LOCK_SECONDS):
            self._recover_journal()
            yield

    def close(self) -> None:
        """Do nothing: no file stays open."""

    @contextlib.contextmanager
    def pinned(self, *, compares: bool = False) -> Iterator[Iterator[Entry]]:  # noqa: ARG002 - of a copy
        """Keep the memories as they are; yield their changes, as `entries` does."""
        with self.writing():
            yield self.entries()

    def recover(self) -> int:
        """See `Store.recover`.

        Wait up to 3 seconds for another process that is changing several files, so that nobody reads half of
        a change. If it does not finish, or the vault cannot be written, reading goes on, and a note says so.
        """
        kinds: set[str] = set()
        try:
            with files.translated(LOCAL, "read it"):
                kinds = pending(self.root)
            if not kinds:
                self._has_given_up = False
                return 0
            # Wait only once, not for every file that is read.
            with self.locked(_RECOVER_SECONDS if "many" in kinds and not self._has_given_up else 0):
                self._has_given_up = False
                return self._recover_journal()
        except MdmemError as error:
            if not self._has_given_up and not (isinstance(error, LockTimeout) and "many" not in kinds):
                self._has_given_up = True
                self._add_note(f"an unfinished change may be read in part: {error.message}")
            return 0

    def _recover_journal(self) -> int:
        with files.translated(LOCAL, "recover"):
            recovered = self.journal.recover()
        if self.journal.aside:
            count = len(self.journal.aside)
            self._add_note(
                f"{STAGING}: files that this vault did not write here ({count}) are not used; see {ASIDE}"
            )
            self.journal.aside.clear()
        if self.journal.stayed:
            self._add_note(
                "an interrupted change was undone, but not where another program has written since: "
                "`mdmem history` has each such file as a change, which `mdmem undo ID` takes back"
            )
            self.journal.stayed.clear()
        return recovered

    def _add_note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # -- what can be made again ----------------------------------------------------------------------------

    def _make_local(self) -> None:
        # Checked each time: the folders may have come with a repository, and be links.
        ignored = os.path.lexists(os.path.join(self.root, LOCAL, ".gitignore"))
        if ignored and all(files.is_folder(os.path.join(self.root, path)) for path in _LOCAL_FOLDERS):
            return
        try:
            for path in (STAGING, _TRASH):
                with files.opened(self.root, path.split("/"), create=True):
                    pass
            with files.opened(self.root, LOCAL.split("/")) as folder:
                if not files.exists(folder, ".gitignore"):
                    with contextlib.suppress(FileExistsError):
                        files.write_new(folder, ".gitignore", b"*\n")
        except OSError as error:
            if not os.path.isdir(self.root):
                raise VaultNotFound(start=self.root) from None
            raise files.refusal(error, LOCAL, "make it") from None

    def local(self, name: str) -> str:
        """Make a folder in `.mdmem/local` if missing, and return its absolute path."""
        self._make_local()
        path = f"{LOCAL}/{name}"
        with files.translated(path, "make it"), files.opened(self.root, path.split("/"), create=True):
            return os.path.join(self.root, path)

    def own(self, name: str) -> str:
        """See `local`; its name cannot be guessed, so that a copied vault cannot bring its contents."""
        with files.translated(name, "make it"), files.opened(self.local(name)) as folder:
            own = name_for(folder)
        return self.local(f"{name}/{own}")


# Each memory with a citation asks this, always about the same few folders.
@lru_cache
def _relate(root: str, workspace: str) -> str:
    return os.path.relpath(root, workspace)
