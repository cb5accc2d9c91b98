"""The vaults that a server serves, each found upward from the files that an editor opens."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import quote, unquote, urlsplit

import mdmem
from mdmem.editor.editing import Editing, vault_around
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    Concerned = Callable[["ServedVault", tuple[str, ...]], None]

_RETRY_SECONDS = 1.0  # after a vault could not be watched, such as one with a broken config
_logger = logging.getLogger(__name__)


def file_of(uri: str) -> str | None:
    """Return the absolute path that a URI names; None for what is no file of this machine."""
    with suppress(ValueError):
        parts = urlsplit(uri)
        file = unquote(parts.path, errors="surrogateescape")
        is_local = parts.scheme == "file" and parts.netloc.lower() in {"", "localhost"}
        if is_local and file.startswith("/") and "\0" not in file:
            return os.path.normpath(file)
    return None


def uri_of(file: str) -> str:
    """Return the URI of an absolute path."""
    return f"file://{quote(os.fsencode(file))}"


class Progress(Protocol):
    """Shows how far something is."""

    def __call__(self, done: int, total: int) -> None:
        """Show how many of how many are done."""

    def end(self) -> None:
        """Show that it is over."""


class ServedVault(NamedTuple):
    """A vault that is served: its root, and its memories as the editor has them."""

    root: str
    editing: Editing


class Vaults:
    """The vaults, each opened when a file of it is, and watched from then on.

    Args:
        vault: the only one that is served; None to look upward from each file.
        concerned: is told, by a thread of each vault, which open memories are to be checked again.
        progress: returns what is told how far the first look at a vault is.
    """

    def __init__(
        self,
        vault: str | None,
        scope: mdmem.Scope,
        actor: str,
        concerned: Concerned,
        progress: Callable[[], Progress],
    ) -> None:
        self._only = os.path.abspath(os.path.expanduser(vault)) if vault else None
        self._scope = scope
        self._actor = actor
        self._concerned = concerned
        self._progress = progress
        self._served: dict[str, ServedVault] = {}
        self._spelled: dict[str, str] = {}
        self._threads: list[Thread] = []
        self._lock = Lock()
        self._is_stopped = Event()

    def find(self, file: str) -> tuple[ServedVault, str] | None:
        """Return the vault of a memory, and its path there; None for a file that is no memory.

        That is the nearest vault, or another one that mounts the file.
        """
        nearest = self.around(file)
        for vault in dict.fromkeys(filter(None, (nearest, *self.served))):
            try:
                if path := vault.editing.path(file):
                    return vault, path
            except MdmemError:
                if vault is nearest:
                    raise
        return None

    def around(self, file: str) -> ServedVault | None:
        """Return the vault that a file, or a folder's content, belongs to; None without one."""
        root = self._only or vault_around(file)
        return self._serve(root) if root else None

    @property
    def served(self) -> list[ServedVault]:
        """The vaults that were opened and are still there."""
        return [
            each for each in self._served.values() if vault_around(os.path.join(each.root, "")) == each.root
        ]

    def add_folder(self, folder: str) -> None:
        """Serve the vault of a folder that the editor shows, with names of files as it writes them."""
        self._spelled[os.path.realpath(folder)] = folder
        self.around(os.path.join(folder, os.curdir))

    def spell(self, file: str) -> str:
        """Return a file by the name that the editor has for it, where a link leads to one of its folders."""
        for real, spelled in self._spelled.items():
            if file == real or file.startswith(real + os.sep):
                return spelled + file.removeprefix(real)
        return file

    def stop(self) -> None:
        """Stop watching."""
        self._is_stopped.set()
        for vault in self._served.values():
            vault.editing.stop()
        for thread in self._threads:
            thread.join(1.0)

    def _serve(self, root: str) -> ServedVault:
        root = os.path.realpath(root)
        with self._lock:
            if root not in self._served:
                memory = mdmem.open(root, self._scope, actor=self._actor)
                _ = memory.index  # made once, before threads ask for it
                vault = self._served[root] = ServedVault(root, memory.editing())
                thread = Thread(target=self._watch, args=(vault,), name=f"changes of {root}", daemon=True)
                self._threads.append(thread)
                thread.start()
            return self._served[root]

    def _watch(self, vault: ServedVault) -> None:
        """Tell what changes on disk, and go on when that has failed: without it, old findings stay."""
        while not self._is_stopped.is_set():
            progress = self._progress()
            try:
                for paths in vault.editing.changes(progress):
                    progress.end()
                    self._concerned(vault, paths)
            except MdmemError:
                self._is_stopped.wait(_RETRY_SECONDS)
            except Exception:
                _logger.exception("the changes of %s are told again", vault.root)
                self._is_stopped.wait(_RETRY_SECONDS)
            finally:
                progress.end()
