"""What a session begins with, while there is no index: the few memories that it is about are read themselves.

They stand in a database in memory, with those that may have taken their place. So a view asks the same
questions of it as of the index, and gets the same answers about these memories.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mdmem.document.document import SUFFIXES
from mdmem.errors import MdmemError, ProgramFailed
from mdmem.index import ripgrep
from mdmem.index.database import IN_MEMORY, Database, DocumentRow, key_of, stem_keys
from mdmem.index.index import Index
from mdmem.index.sync import Synced, read, understand
from mdmem.kind import KINDS
from mdmem.markdown.link import percent_decoded
from mdmem.text.regex import regex
from mdmem.vault.paths import join, nfc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mdmem.kind import Kind
    from mdmem.vault.vault import Vault

# Of a kind that a vault declares, and of files that may be meant, no more are read.
_MOST_READ = 400
_PINNED = r"\btier\b.*pinned"
# How a name other than that of the file stands in a memory: in a field, or in a line of a list of names.
_NAMED = r"(?:\b(?:id|alias|aliases|permalink|url|slug|redirect_from|title)[\"']?\s*::?|^\s*(?:-\s|[\"'])).*"
_META = regex(r"[\\.+*?()|\[\]{}^$#&~-]")
_MARKS = regex(r"[\[\]()<>|#]+")
_MOST_ROUNDS = 20


class FileIndex(Index):
    """Answers what `View` asks an index about the memories that a session begins with; see the module.

    Args:
        vault: whose memories, with the layers that it reads.
        namespaces: of the layers.
    """

    def __init__(self, vault: Vault, namespaces: Iterable[str]) -> None:
        super().__init__(vault.root)
        self._files = Database(IN_MEMORY)
        self._read: set[str] = set()
        self._layers = [self.vault.within(namespace) for namespace in namespaces]
        self._pinned: Iterator[str] | None = self._grep(_PINNED)

    def sync(self, *_: object, **__: object) -> Synced:
        """Do nothing: the files were read a moment ago."""
        return Synced()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query; the files are read for the first."""
        if self._pinned:
            pinned, self._pinned = self._pinned, None
            self._read_memories(self.vault.mounted(""))
            for layer in self._layers:
                self._read_memories(_list_begun_with(layer))
            self._read_memories(pinned)
            self._read_successors()
        return self._files.rows(query, values)

    def _read_memories(self, paths: Iterable[str]) -> None:
        limits, entries = self.vault.config.limits, list[DocumentRow]()
        for path in dict.fromkeys(paths):
            if path in self._read:
                continue
            self._read.add(path)
            if file := read(self.vault.disk.place(path), path, limits):
                found = understand(file, limits, texts=False, is_data=self.vault.is_data)
                entries.append(
                    DocumentRow(path, file.seen, file.racy, file.hash, found.problem, found.record)
                )
        self._files.replace(entries)

    def _read_successors(self) -> None:
        """Read what may have taken the place of a memory, and that of this one, and so on."""
        asked, query = set[str](), "SELECT DISTINCT value FROM fields WHERE key = 'superseded_by'"
        for _ in range(_MOST_ROUNDS):
            names = {part for (value,) in self.rows(query) for part in _list_names(str(value))} - asked
            if not names or len(self._read) > _MOST_READ * _MOST_ROUNDS:
                return
            asked |= names
            keys = {*map(key_of, names)}
            found = (file.path for file in self.vault.walk("") if not file.problem)
            self._read_memories([path for path in found if not keys.isdisjoint(stem_keys(path))])
            last = "|".join(_META.sub(r"\\\g<0>", name) for name in sorted(names))
            self._read_memories(self._grep(f"{_NAMED}(?:{last})"))

    def _grep(self, pattern: str) -> Iterator[str]:
        """List the memories with a line that matches, and begin at once; none without ripgrep."""
        # With one thread: the other work goes on beside it.
        switches = ("--no-config", "--no-messages", "--no-ignore", "--ignore-case", "--threads=1")
        sizes = f"--max-filesize={self.vault.config.limits.max_bytes}"
        globs = (f"--glob=*{suffix}" for suffix in self.vault.suffixes)
        command = (*switches, sizes, *globs, "--files-with-matches", f"--regexp={pattern}", "--", "./")
        try:
            return self._list_found(ripgrep.Process([ripgrep.program(), *command], self.vault.root))
        except ProgramFailed:
            return iter(())

    def _list_found(self, process: ripgrep.Process) -> Iterator[str]:
        found = list[str]()
        with process:
            for line in process.lines():
                path = nfc(line.rstrip(b"\n").decode("utf-8", "replace").removeprefix("./"))
                with suppress(MdmemError):  # no memory can have such a path
                    self.vault.place(path)
                    found.append(path)
        yield from sorted(found)[:_MOST_READ]


def _list_begun_with(layer: Vault) -> Iterator[str]:
    """Yield what has a part of a context in a layer, by its paths in the whole vault."""
    yield join(layer.namespace, layer.project_file)
    for kind in layer.config.kinds:
        if kind.title and kind.folder:
            found = (file for file in layer.walk(kind.folder) if not file.problem)
            newest = sorted(found, key=lambda file: file.mtime_ns, reverse=True)
            yield from (join(layer.namespace, file.path) for file in newest[: _most_of(kind)])


def _most_of(kind: Kind) -> int | None:
    return None if kind in KINDS else _MOST_READ


def _list_names(written: str) -> Iterator[str]:
    """Yield the last parts of what a field may name, be it a name, a path or a link."""
    for part in filter(str.strip, _MARKS.split(percent_decoded(written))):
        yield part.strip().rstrip("/").rpartition("/")[2].removesuffix(SUFFIXES[0])
