"""The floors under the index: the least that each piece of work takes, written by hand, and nothing else.

`python bench/floors.py index ROOT DATABASE` and `sync ROOT DATABASE` are the two that stand beside a whole
process, and so this imports little.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import tantivy

Seen = tuple[int, int, int]
Ask = Callable[[str], object]
LIMIT = 10
_WORD = re.compile(r"\w+")
_FILES = (".md", ".json")
_HEAP_BYTES = 50_000_000


class Changes(NamedTuple):
    """The paths of files that a table does not know, or knows otherwise, and of those that are gone."""

    changed: list[str]
    removed: list[str]


def files(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Every memory below `root` with its status: a bare recursive `scandir`, with a `stat` of each file."""
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(_FILES):
                    yield entry.path, entry.stat(follow_symlinks=False)


def index(root: str, database: str) -> int:
    """Read every file, hash it, and insert its text into FTS5; how many there were."""
    with _opened(database) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5 (path UNINDEXED, hash UNINDEXED, text)")
        connection.executemany("INSERT INTO texts VALUES (?, ?, ?)", _contents(root))
        return int(connection.execute("SELECT count(*) FROM texts").fetchone()[0])


def _contents(root: str) -> Iterator[tuple[str, str, str]]:
    for path, _ in files(root):
        with open(path, "rb") as file:
            data = file.read()
        yield path, hashlib.sha256(data).hexdigest(), data.decode()


def remember(root: str, database: str) -> None:
    """Make the table that `sync` compares with."""
    with _opened(database) as connection:
        connection.execute(
            "CREATE TABLE files (path TEXT PRIMARY KEY, mtime_ns INTEGER, size INTEGER, inode INTEGER)"
        )
        rows = ((path, *_seen(status)) for path, status in files(root))
        connection.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", rows)


def sync(root: str, database: str) -> Changes:
    """Load the table, walk, and compare."""
    return compare(root, table(database))


def table(database: str) -> dict[str, Seen]:
    """What the table says of each file."""
    with _opened(database) as connection:
        rows = connection.execute("SELECT path, mtime_ns, size, inode FROM files")
        return {path: (mtime, size, inode) for path, mtime, size, inode in rows}


def compare(root: str, known: dict[str, Seen]) -> Changes:
    """Walk, and compare with a table that is loaded."""
    changed, met = [], set()
    for path, status in files(root):
        met.add(path)
        if known.get(path) != _seen(status):
            changed.append(path)
    return Changes(changed, [path for path in known if path not in met])


def _seen(status: os.stat_result) -> Seen:
    return status.st_mtime_ns, status.st_size, status.st_ino


class Fts5:
    """OR queries against the table that `index` makes."""

    def __init__(self, database: str) -> None:
        self._connection = sqlite3.connect(database)

    def search(self, query: str) -> list[str]:
        """The paths of the best ten, by BM25."""
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(query))
        statement = f"SELECT path FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT {LIMIT}"
        return [path for (path,) in self._connection.execute(statement, (words,))]


class Tantivy:
    """OR queries against an index of whole files that tantivy makes in `folder`."""

    def __init__(self, root: str, folder: str) -> None:
        import tantivy  # noqa: PLC0415 - the program is a floor without it

        os.makedirs(folder)
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("path", stored=True, tokenizer_name="raw")
        builder.add_text_field("text")
        self._index = tantivy.Index(builder.build(), path=folder)
        writer = self._index.writer(_HEAP_BYTES, 1)
        for path, _, text in _contents(root):
            writer.add_document(tantivy.Document(path=path, text=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher: tantivy.Searcher = self._index.searcher()

    def search(self, query: str) -> list[str]:
        """The paths of the best ten, by BM25; words that follow each other are joined by OR."""
        found = self._searcher.search(self._index.parse_query(query, ["text"]), LIMIT, count=False)
        return [self._searcher.doc(address)["path"][0] for _, address in found.hits]


@contextlib.contextmanager
def _opened(database: str) -> Iterator[sqlite3.Connection]:
    """A connection; what is written through it is one transaction."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            yield connection


def main(arguments: Sequence[str]) -> int:
    what, root, database = arguments
    if what == "index":
        print(index(root, database))
    else:
        changes = sync(root, database)
        print(len(changes.changed), len(changes.removed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
