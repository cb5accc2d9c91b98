"""The database: what is known of every memory of a vault, in one SQLite file that can be deleted any time.

A record is the rows that say what one memory holds. Nothing in it is resolved: a link is kept with the key of
its target, and a memory with the keys that it can be called by. So adding a memory changes no other memory's
rows, and a link finds its target when that appears.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mdmem.diagnostic import Span
from mdmem.document import anchor
from mdmem.document.document import SUFFIXES, Document
from mdmem.errors import IndexDamaged, StorageFailed
from mdmem.index.hit import day_of
from mdmem.markdown.citation import Citation
from mdmem.vault.paths import nfc

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


DATABASE = "database.sqlite"
TEXT = "text"
LOCK = "lock"
"""Held by the one process that writes."""

VERSION_FILE = "mdmem-version"
"""In the folder of the text index: made with it, and never written again."""

SOCKET = "vouches-"
"""What the sockets begin with on which processes that watch are asked."""


VERSION = 2
# Who writes holds the lock of the index; a reader waits for the end of a checkpoint at most.
BUSY_SECONDS = 5.0
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_CACHE_KIB = 8 * 1024

# What belongs to a document has its number first, and is deleted with it.
_PARTS = {
    "names": "kind TEXT, key TEXT, PRIMARY KEY (document, kind, key)",
    "fields": "n INTEGER, key TEXT, value, PRIMARY KEY (document, n)",
    "sections": "n INTEGER, line INTEGER, level INTEGER, path TEXT, slug TEXT, loose TEXT,"
    " PRIMARY KEY (document, n)",
    "blocks": "n INTEGER, id TEXT, line INTEGER, PRIMARY KEY (document, n)",
    "links": 'n INTEGER, line INTEGER, start INTEGER, "end" INTEGER, kind TEXT, embed INTEGER, target TEXT,'
    " key TEXT, anchor TEXT, alias TEXT, PRIMARY KEY (document, n)",
    "citations": 'n INTEGER, line INTEGER, start INTEGER, "end" INTEGER, path TEXT, first INTEGER,'
    " last INTEGER, symbol TEXT, pin TEXT, in_link INTEGER, seen TEXT, PRIMARY KEY (document, n)",
    "tags": "n INTEGER, line INTEGER, start INTEGER, name TEXT, key TEXT, PRIMARY KEY (document, n)",
    "urls": "n INTEGER, line INTEGER, start INTEGER, url TEXT, PRIMARY KEY (document, n)",
}
# Made behind a first run, in which they would slow every row.
_INDEXES = {
    "names_by_key": "names (kind, key)",
    "fields_by_key": "fields (key)",
    "links_by_key": "links (key)",
    "citations_by_path": "citations (path)",
    "tags_by_key": "tags (key)",
}
_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
    mtime_ns INTEGER, ctime_ns INTEGER, size INTEGER, inode INTEGER, racy INTEGER,
    hash TEXT, problem TEXT, title TEXT, type TEXT, day TEXT, dated INTEGER, ident TEXT
);
CREATE INDEX documents_racy ON documents (id) WHERE racy;
CREATE TABLE pending (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE moves (old TEXT PRIMARY KEY, new TEXT) WITHOUT ROWID;
{"".join(f"CREATE TABLE {n} (document INTEGER, {c}) WITHOUT ROWID;" for n, c in _PARTS.items())}
PRAGMA user_version = {VERSION};
"""


class Seen(NamedTuple):
    """A file as it was when it was indexed; times in nanoseconds since the epoch, size in bytes."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int

    @property
    def modified(self) -> float:
        """When it was modified, in seconds since the epoch."""
        return self.mtime_ns / 1e9


class DocumentRow(NamedTuple):
    """A document's row: `problem` says why a file cannot be read as a memory, and is empty when it can."""

    path: str
    seen: Seen
    racy: bool
    hash: str
    problem: str
    record: Record | None


class Database:
    """The database in the file `path`, which is made when it is missing or of another version.

    One object may be used by several threads, one at a time.

    Attributes:
        identity: what tells its file from another one that is made anew.

    Raises:
        IndexDamaged: the file is no database, or not one of ours.
        StorageFailed: the system refused.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if _is_emptied(path):
            raise IndexDamaged(path=path, reason="somebody has emptied it")
        with _translated(path):
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            with _translated(path):
                self._set_up()
        except BaseException:
            self._connection.close()
            raise
        status = os.stat(path)
        self.identity = status.st_dev, status.st_ino

    def _set_up(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version == VERSION:
            # A first fill that was killed has left none.
            self._make_indexes()
            return
        if version or self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise IndexDamaged(path=self.path, reason=f"its version is {version}, not {VERSION}")
        self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        self._make_indexes()

    def _make_indexes(self) -> None:
        made = "".join(f"CREATE INDEX IF NOT EXISTS {n} ON {c};" for n, c in _INDEXES.items())
        with _translated(self.path):
            self._connection.executescript(made)

    @property
    def replaced(self) -> bool:
        """Whether another file stands under the path by now, or an empty one: the index was made anew."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return True
        return (status.st_dev, status.st_ino) != self.identity or not status.st_size

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    # -- reading ------------------------------------------------------------------------------------------

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a query gives; none where it asks for what no file can say (half of a character)."""
        with _translated(self.path), contextlib.suppress(UnicodeEncodeError):
            return self._connection.execute(query, values).fetchall()
        return []

    def known(self, paths: Collection[str] | None = None) -> dict[str, tuple[int, int, int, int]]:
        """What each file was like when it was indexed, as the values of `Seen`, by its path.

        Args:
            paths: only those at or below these.
        """
        query = "SELECT path, mtime_ns, ctime_ns, size, inode FROM documents"
        if paths is None:
            found = self.rows(query)
        else:
            at_or_below = f"{query} WHERE path = ? OR (path >= ? AND path < ?)"
            found = [row for at in paths for row in self.rows(at_or_below, (at, f"{at}/", f"{at}0"))]
        return {path: (mtime, ctime, size, inode) for path, mtime, ctime, size, inode in found}

    def headings(self, paths: Sequence[str]) -> dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]]:
        """The headings of memories as they were indexed, by path and hash.

        Each comes with its line and the titles of the sections that it stands in, its own the last; in order.
        """
        marks = ", ".join("?" * len(paths))
        query = (
            "SELECT d.path, d.hash, s.line, s.path FROM documents AS d LEFT JOIN sections AS s"  # noqa: S608 - marks
            f" ON s.document = d.id WHERE d.path IN ({marks}) ORDER BY d.id, s.n"
        )
        found: dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]] = {}
        for path, digest, line, titles in self.rows(query, paths):
            headings = found.setdefault((path, digest), [])
            if line:
                headings.append((line, tuple(titles.split("\n"))))
        return found

    def tags(self, path: str) -> list[str]:
        """The tags of a memory as it was indexed, in order."""
        query = (
            "SELECT t.name FROM tags AS t JOIN documents AS d ON d.id = t.document"
            " WHERE d.path = ? ORDER BY t.n"
        )
        return [name for (name,) in self.rows(query, (path,))]

    def changes(self) -> int:
        """A number that differs when another connection has changed the database."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def value(self, key: str) -> Any:
        """A value of the table `meta`; None without it."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return found[0][0] if found else None

    # -- writing ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """What is written inside happens together, or not at all."""
        with _translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """A first run: the indexes over the rows are made at its end, all at once."""
        with _translated(self.path):
            self._connection.executescript("".join(f"DROP INDEX IF EXISTS {name};" for name in _INDEXES))
        try:
            yield
        finally:
            self._make_indexes()

    def set_value(self, key: str, value: Any) -> None:
        """Set a value of the table `meta`."""
        self.write("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(key, value)])

    def write(self, statement: str, rows: Iterable[Row]) -> None:
        """Run a statement for each row of values."""
        with _translated(self.path):
            self._connection.executemany(statement, rows)

    def replace(self, entries: Sequence[DocumentRow]) -> None:
        """Put the rows of each document in the place of those that it had."""
        numbers = self._numbers([entry.path for entry in entries])
        self._drop_parts([number for number, is_new in numbers if not is_new])
        parts: dict[str, list[Row]] = {name: [] for name in _PARTS}
        documents: list[Row] = []
        for entry, (number, _) in zip(entries, numbers, strict=True):
            summary = entry.record.summary if entry.record else ("", "", "", False, "")
            documents.append(
                (number, entry.path, *entry.seen, entry.racy, entry.hash, entry.problem, *summary)
            )
            if entry.record:
                for name, rows in zip(_PARTS, entry.record[1:], strict=True):
                    if rows:
                        parts[name] += [(number, *row) for row in rows]
        for name, rows in {"documents": documents, **parts}.items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                self.write(f"INSERT OR REPLACE INTO {name} VALUES ({marks})", rows)  # noqa: S608 - our names

    def see(self, path: str, now: str, seen: Seen, *, racy: bool) -> None:
        """Note where a file is `now`, and what it is like, whose content is as it was at `path`."""
        statement = (
            "UPDATE documents SET path = ?, mtime_ns = ?, ctime_ns = ?, size = ?, inode = ?, racy = ?"
            " WHERE path = ?"
        )
        self.write(statement, [(now, *seen, racy, path)])

    def forget(self, paths: Sequence[str]) -> None:
        """Delete the rows of documents."""
        found = (self.rows("SELECT id FROM documents WHERE path = ?", (path,)) for path in paths)
        numbers = [rows[0][0] for rows in found if rows]
        self._drop_parts(numbers)
        self.write("DELETE FROM documents WHERE id = ?", [(number,) for number in numbers])

    def note_moves(self, moved: Mapping[str, str], taken: Iterable[str] = ()) -> None:
        """Note where memories have gone, so that links to the old paths can be mended later.

        Args:
            moved: old path to new.
            taken: paths at which another memory stands now: they mean that one, also when it is gone again.
        """
        self.write("DELETE FROM moves WHERE old = ?", [(path,) for path in (*moved.values(), *taken)])
        self.write("UPDATE moves SET new = ? WHERE new = ?", [(new, old) for old, new in moved.items()])
        self.write("INSERT OR REPLACE INTO moves VALUES (?, ?)", moved.items())

    def _numbers(self, paths: Sequence[str]) -> list[tuple[int, bool]]:
        """The number of each document, and whether it is a new one."""
        free = self.rows("SELECT coalesce(max(id), 0) + 1 FROM documents")[0][0]
        numbers = []
        for path in paths:
            found = self.rows("SELECT id FROM documents WHERE path = ?", (path,)) if free > 1 else []
            if found:
                numbers.append((found[0][0], False))
            else:
                numbers.append((free, True))
                free += 1
        return numbers

    def _drop_parts(self, numbers: Sequence[int]) -> None:
        for name in _PARTS if numbers else ():
            self.write(f"DELETE FROM {name} WHERE document = ?", [(n,) for n in numbers])  # noqa: S608 - as above


def _is_emptied(path: str) -> bool:
    """Whether a database has lost its content to another program, while some process had it open.

    To SQLite it is a new one, which it cannot set up as long as that process has a lock on it.
    """
    with contextlib.suppress(FileNotFoundError):
        return not os.stat(path).st_size and any(os.path.exists(path + s) for s in ("-wal", "-shm"))
    return False


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    """What SQLite refuses, in our words."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _DAMAGE:
            raise IndexDamaged(path=path, reason=str(error)) from None
        raise StorageFailed(path=path, action="use the index", reason=str(error)) from None


Scalar: TypeAlias = str | int | float | None
Row: TypeAlias = tuple[Scalar, ...]

_LARGEST = 2**63 - 1  # SQLite's integers
_NOWHERE = Span(0, 0)


class Summary(NamedTuple):
    """What is kept of a memory as a whole.

    Attributes:
        title: its field `title`, else its first heading; empty without either.
        type: its field `type`.
        day: see `mdmem.index.hit.day_of`.
        dated: whether the memory itself says its day, so that the time of the file does not count.
        ident: its field `id`.
    """

    title: str
    type: str
    day: str
    dated: bool
    ident: str


class Record(NamedTuple):
    """The rows of one memory, each without the number of its document.

    Attributes:
        summary: of the memory as a whole.
        names: (kind, key): what a link can call it.
        fields: (n, key, value): the scalars of its fields by dotted keys, items of lists one by one.
        sections: (n, line, level, path, slug, loose); the path's titles on lines of their own.
        blocks: (n, id, line).
        links: (n, line, start, end, kind, embed, target, key, anchor, alias).
        citations: (n, line, start, end, path, first, last, symbol, pin, in_link, seen); what was first seen
            there is put in later, see `mdmem.index.sync`.
        tags: (n, line, start, name, key).
        urls: (n, line, start, url).
    """

    summary: Summary
    names: list[Row]
    fields: list[Row]
    sections: list[Row]
    blocks: list[Row]
    links: list[Row]
    citations: list[Row]
    tags: list[Row]
    urls: list[Row]


def record(document: Document, modified: float) -> Record:
    """What the database keeps of a memory.

    Args:
        document: the memory.
        modified: when its file was, in seconds since the epoch.

    Raises:
        TooNested, TooLarge: its fields cannot be read.
    """
    fields = document.fields
    headings = document.headings
    return Record(
        _summary(document.path, fields, headings[0].title if headings else "", modified),
        _names(document.path, fields),
        _fields(fields),
        _sections(document),
        [(n, block.id, block.line) for n, block in enumerate(document.blocks)],
        [
            (n, line, start, end, kind, embed, target, key_of(target), to, alias)
            for n, (kind, embed, (start, end), line, target, _, to, _, alias, _) in enumerate(document.links)
        ],
        [
            (n, c.line, *c.span, c.path, c.first, c.last, c.symbol, c.pin, c.in_link, "")
            for n, c in enumerate(document.citations)
        ],
        [(n, tag.line, tag.span.start, tag.name, tag_key(tag.name)) for n, tag in enumerate(document.tags)],
        [(n, url.line, url.span.start, url.url) for n, url in enumerate(document.urls)],
    )


def kept_citation(
    path: str,
    first: int | None = None,
    last: int | None = None,
    symbol: str = "",
    *,
    line: int = 0,
    pin: str = "",
    in_link: bool,
) -> Citation:
    """A citation as the database keeps it: what it cites, without where its parts stand."""
    return Citation(
        path=path,
        first=first,
        last=last,
        symbol=symbol,
        span=_NOWHERE,
        line=line,
        locator_span=_NOWHERE,
        pin=pin,
        pin_span=_NOWHERE,
        in_link=in_link,
    )


def key_of(target: str) -> str:
    """The key under which a link's target is looked up: its last part, without `.md`, NFC and casefolded."""
    last = target.rpartition("/")[2]
    last = last.removesuffix(SUFFIXES[0])
    return nfc(last).casefold()


def tag_key(name: str) -> str:
    """The key under which a tag is looked up: tags that differ only in case are one."""
    return name.casefold()


def keys_of(path: str, fields: Mapping[str, Any]) -> list[str]:
    """Every key that the target of a link to a memory may have."""
    return list(
        dict.fromkeys(key_of(path if kind == "stem" else str(key)) for kind, key in _names(path, fields))
    )


def _summary(path: str, fields: Mapping[str, Any], heading: str, modified: float) -> Summary:
    told = day_of(path, fields, None)
    day = told or day_of(path, {}, modified)
    get = fields.get
    return Summary(_text(get("title")) or heading, _text(get("type")), day, bool(told), _text(get("id")))


def _names(path: str, fields: Mapping[str, Any]) -> list[Row]:
    names: list[Row] = [("stem", key_of(path))]
    if ident := _text(fields.get("id")):
        names.append(("id", ident))
    given = fields.get("aliases")
    if given is None:
        return names
    aliases = map(_text, given if isinstance(given, list) else [given])
    names += [("alias", alias_key(alias)) for alias in aliases if alias]
    return list(dict.fromkeys(names))


def alias_key(alias: str) -> str:
    """The key of an alias, or of a target that may be one: NFC and casefolded, whole."""
    return nfc(alias).casefold()


def _sections(document: Document) -> list[Row]:
    sections = document.sections
    return [
        (n, line, section[0].level, "\n".join(path), slug, loose)
        for n, (section, (line, path, slug, loose)) in enumerate(
            zip(sections, anchor.headings(sections), strict=True)
        )
    ]


def _fields(fields: Mapping[str, Any]) -> list[Row]:
    """The scalars of the fields, each with its dotted key."""
    rows: list[Row] = []
    for key, value in fields.items():
        _add(rows, _storable(str(key)), value)
    return rows


def _add(rows: list[Row], key: str, value: Any) -> None:
    if isinstance(value, str):
        rows.append((len(rows), key, _storable(value)))
    elif isinstance(value, dict):
        for name, item in value.items():
            _add(rows, f"{key}.{_storable(str(name))}", item)
    elif isinstance(value, list):
        for item in value:
            _add(rows, key, item)
    elif isinstance(value, bool):
        rows.append((len(rows), key, "true" if value else "false"))
    elif isinstance(value, int) and abs(value) > _LARGEST:
        rows.append((len(rows), key, str(value)))
    else:
        rows.append((len(rows), key, value))


def _text(value: Any) -> str:
    """A field that is to be a text; what is a list or a mapping is none."""
    if value is None or isinstance(value, list | dict):
        return ""
    return _storable(value if isinstance(value, str) else str(value))


def _storable(text: str) -> str:
    """A text that SQLite can hold: JSON may escape half of a character, which no UTF-8 can say."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
