"""The start of a session while there is no index: the few memories that it needs are read themselves.

Their rows, and those of memories that may have taken their place, are in a database in memory. A view asks it
as it asks the index, and gets the same answers about these memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from mdmem.document.markdown.link import percent_decoded
from mdmem.errors import IndexNotReady, MdmemError, NotReady, ProgramFailed
from mdmem.index import ripgrep
from mdmem.index.database import Database, DocumentRow, key_of, stem_keys
from mdmem.index.index import Index
from mdmem.index.sync import Synced, read, understand
from mdmem.kind import KINDS
from mdmem.vault.paths import join, nfc
from mdmem.vault.sqlite import IN_MEMORY
from mdmem.vault.vault import Vault

# Of a kind that a vault declares, and of files that may be meant, no more are read.
_MOST_READ = 400
# Also where it does not stand in the line of its name, or one of both is escaped.
_PINNED = r"(?-i:tier\b.*(?:(?i:pinned)|\\[xuU])|(?:pinned|Pinned|PINNED)[\"'\s,}\]]*$)"
# How a name other than that of the file stands in a memory: in a field, or in a line of a list of names.
_NAMED = r"(?:\b(?:id|alias|aliases|permalink|url|slug|redirect_from|title)[\"']?\s*::?|^\s*(?:-\s|[\"'])).*"
_MOST_ROUNDS = 20


class FileIndex(Index):
    """Answers what a view asks an index about the memories that a session begins with; see the module.

    `refused` says why the index is not ready, where that is known; the attribute also says how many memories
    are not read.
    """

    def __init__(self, vault: Vault, namespaces: Iterable[str], refused: NotReady | None = None) -> None:
        super().__init__(vault.store)
        self._left_out = 0
        self._reads = vault.reads
        self._read: set[str] = set()
        self._layers = [self.vault.within(namespace) for namespace in namespaces]
        self._pinned: Iterator[str] | None = self._grep(_PINNED)
        # While ripgrep is at work; the files are counted, too.
        self._files = Database(IN_MEMORY)
        self.refused = refused or self._refuse()

    def sync(self, *_: object, **__: object) -> Synced:
        """Do nothing: files are read when they are asked for."""
        return Synced()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query; the files are read for the first."""
        if self._pinned:
            begun = [path for layer in self._layers for path in self._list_begun_with(layer)]
            self._read_memories([*self.vault.mounted(""), *begun, *self._pinned])
            self._read_successors()
            self._pinned = None
        return self._files.rows(query, values)

    def _read_memories(self, paths: Iterable[str]) -> None:
        limits, entries = self.vault.config.limits, list[DocumentRow]()
        for path in {*paths} - self._read:
            if file := read(self.vault.disk.place(path), path, limits):
                found = understand(file, limits, texts=False, is_data=self.vault.is_data)
                entries.append(DocumentRow(path, *file[1:4], found.problem, found.record))
            self._read.add(path)
        self._files.replace(entries)

    def _read_successors(self) -> None:
        """Read what may have taken the place of a memory, and that of this one, and so on."""
        asked, query = set[str](), "SELECT DISTINCT value FROM fields WHERE key = 'superseded_by'"
        for _ in range(_MOST_ROUNDS):
            names = {name for (value,) in self._files.rows(query) for name in _list_names(str(value))} - asked
            if not names:
                return
            asked |= names
            keys = {*map(key_of, names)}
            found = (file.path for file in self.vault.walk("") if not file.problem)
            same = [path for path in found if not keys.isdisjoint(stem_keys(path))]
            named = "|".join(re.sub(r"[\\.+*?()|\[\]{}^$#&~-]", r"\\\g<0>", name) for name in sorted(names))
            self._read_memories([*same, *self._grep(f"{_NAMED}(?:{named})")])

    def _grep(self, pattern: str) -> Iterator[str]:
        """List the memories with a line that matches, and begin at once; none without ripgrep."""
        # With two threads: the other work goes on beside them, and on two cores waits less for the end.
        switches = ("--no-config", "--no-messages", "--no-ignore", "--ignore-case", "--threads=2")
        sizes = f"--max-filesize={self.vault.config.limits.max_bytes}"
        globs = (f"--glob=*{suffix}" for suffix in self.vault.suffixes)
        command = (*switches, sizes, *globs, "--files-with-matches", f"--regexp={pattern}", "--", "./")
        with suppress(ProgramFailed):
            return self._list_found(ripgrep.Process([ripgrep.program(), *command], self.vault.root))
        return iter(())

    def _list_found(self, process: ripgrep.Process) -> Iterator[str]:
        found = list[str]()
        with process:
            for line in process.lines():
                path = nfc(line.rstrip(b"\n").decode("utf-8", "replace").removeprefix("./"))
                with suppress(MdmemError):  # no memory can have such a path
                    self.vault.place(path)
                    # Memories of other scopes must not crowd out those that are asked for.
                    found += [path] if any(layer.namespace.holds(path) for layer in self._reads) else []
        yield from self._take_most(sorted(found))

    def _take_most(self, paths: list[str]) -> list[str]:
        """Return as many paths as are read, and let the reason say how many are not."""
        self._left_out += max(0, len(paths) - _MOST_READ)
        if self._left_out and isinstance(self.refused, IndexNotReady):
            left_out = f"; until then {self._left_out:,} memories are not looked at"
            self.refused = self.refused.but(left_out=left_out)
        return paths[:_MOST_READ]

    def _list_begun_with(self, layer: Vault) -> Iterator[str]:
        """Yield the memories of a layer that a context begins with, by their paths in the whole vault."""
        yield join(layer.namespace, layer.project_file)
        for kind in layer.config.kinds:
            walked = layer.walk(kind.folder) if kind.title and kind.folder else ()
            files = sorted((file for file in walked if not file.problem), key=lambda file: -file.mtime_ns)
            paths = [join(layer.namespace, file.path) for file in files]
            yield from paths if kind in KINDS else self._take_most(paths)


def _list_names(written: str) -> Iterator[str]:
    """Yield the last part of each name, path or link in a field."""
    for part in filter(str.strip, re.split(r"[\[\]()<>|#]+", percent_decoded(written))):
        yield part.strip().rstrip("/").rpartition("/")[2].removesuffix(".md")
