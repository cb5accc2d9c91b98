"""The vaults that a server serves, each found upward from the files that an editor opens."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import mdmem
from mdmem.errors import MdmemError
from mdmem.facade.editing import vault_around

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.facade.editing import Editing

    Concerned = Callable[["ServedVault", tuple[str, ...]], None]
    Progress = Callable[[int, int], None]


def file_of(uri: str) -> str | None:
    """Return the absolute path that a URI names; None for what is no file of this machine."""
    with suppress(ValueError):
        parts = urlsplit(uri)
        file = unquote(parts.path, errors="surrogateescape")
        if parts.scheme == "file" and parts.netloc in {"", "localhost"} and file.startswith("/"):
            return os.path.normpath(file) if "\0" not in file else None
    return None


def uri_of(file: str) -> str:
    """Return the URI of an absolute path."""
    return f"file://{quote(os.fsencode(file))}"


class ServedVault(NamedTuple):
    """A vault that is served: its root, and its memories as the editor has them."""

    root: str
    editing: Editing


class Vaults:
    """The vaults, each opened when a file of it is, and watched from then on.

    Args:
        vault: the only one that is served; None to look upward from each file.
        scope: whose memories they are.
        actor: who changes them.
        concerned: is told, by a thread of each vault, which open memories are to be checked again.
        progress: returns what is told how far the first look at a vault is.
    """

    def __init__(
        self,
        vault: str | None,
        scope: mdmem.Scope,
        actor: str,
        concerned: Concerned,
        progress: Callable[[], Progress | None],
    ) -> None:
        self._only = os.path.realpath(vault) if vault else None
        self._scope = scope
        self._actor = actor
        self._concerned = concerned
        self._progress = progress
        self._served: dict[str, ServedVault] = {}
        self._threads: list[Thread] = []
        self._lock = Lock()

    def find(self, file: str) -> tuple[ServedVault, str] | None:
        """Return the vault of a memory, and its path there; None for a file that is no memory."""
        vault = self.around(file)
        path = vault.editing.path(file) if vault else None
        return (vault, path) if vault and path else None

    def around(self, file: str) -> ServedVault | None:
        """Return the vault that a file, or a folder's content, belongs to; None without one."""
        root = self._only or vault_around(file)
        return self._serve(root) if root else None

    @property
    def served(self) -> list[ServedVault]:
        """The vaults that were opened."""
        return list(self._served.values())

    def stop(self) -> None:
        """Stop watching."""
        for vault in self.served:
            vault.editing.stop()
        for thread in self._threads:
            thread.join(1.0)

    def _serve(self, root: str) -> ServedVault | None:
        with self._lock:
            if root not in self._served:
                try:
                    memory = mdmem.open(root, self._scope, actor=self._actor)
                    _ = memory.index  # made once, before threads ask for it
                except MdmemError:
                    return None
                vault = self._served[root] = ServedVault(root, memory.editing())
                thread = Thread(target=self._watch, args=(vault,), name=f"changes of {root}", daemon=True)
                self._threads.append(thread)
                thread.start()
            return self._served[root]

    def _watch(self, vault: ServedVault) -> None:
        for paths in vault.editing.changes(self._progress()):
            self._concerned(vault, paths)
