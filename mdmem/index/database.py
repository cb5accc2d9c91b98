"""The database: the rows of every memory of a vault, in one SQLite file that can be deleted any time.

Links are not resolved in it: a link is kept with the key of its target, a memory with its names. So adding
a memory changes no other memory's rows, and a link finds its target when that appears.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, TypeAlias

from mdmem.document import anchor
from mdmem.document.document import NAMED_SUFFIXES, SUFFIXES, Document, without_suffix
from mdmem.document.markdown.link import Link, percent_decoded
from mdmem.document.text.regex import regex
from mdmem.document.tree import LINEAGE
from mdmem.index.hit import MONTHS, day_of, field_text, first_text
from mdmem.vault.files import status_of
from mdmem.vault.paths import nfc
from mdmem.vault.sqlite import IN_MEMORY, Schema, open_connection, translated

DATABASE = "database.sqlite"
TEXT = "text"
LOCK = "lock"
"""Held by the one process that writes."""

VERSION_FILE = "mdmem-version"
"""In the folder of the text index: made with it, and never written again."""


INDEX_NAMES = ("index", "_index")
"""What a memory is called that a site shows at the address of its folder."""

VERSION = 8

# What belongs to a document has its number first, and is deleted with it.
_PARTS = {
    "names": "kind TEXT, key TEXT, PRIMARY KEY (document, kind, key)",
    "fields": "n INTEGER, key TEXT, value, PRIMARY KEY (document, n)",
    "sections": "n INTEGER, line INTEGER, level INTEGER, path TEXT, slug TEXT, loose TEXT,"
    " PRIMARY KEY (document, n)",
    "blocks": "n INTEGER, id TEXT, line INTEGER, PRIMARY KEY (document, n)",
    "links": 'n INTEGER, line INTEGER, start INTEGER, "end" INTEGER, kind TEXT, embed INTEGER, target TEXT,'
    " key TEXT, anchor TEXT, alias TEXT, label TEXT, PRIMARY KEY (document, n)",
    "citations": 'n INTEGER, line INTEGER, start INTEGER, "end" INTEGER, path TEXT, first INTEGER,'
    " last INTEGER, symbol TEXT, pin TEXT, in_link INTEGER, seen TEXT, PRIMARY KEY (document, n)",
    "tags": "n INTEGER, line INTEGER, start INTEGER, name TEXT, key TEXT, PRIMARY KEY (document, n)",
    "urls": "n INTEGER, line INTEGER, start INTEGER, url TEXT, PRIMARY KEY (document, n)",
}
# Made after a first run, in which they would slow every row.
_INDEXES = {
    "names_by_key": "names (kind, key)",
    "fields_by_key": "fields (key)",
    "links_by_key": "links (key)",
    "links_by_label": "links (label) WHERE label != ''",
    "citations_by_path": "citations (path)",
    "tags_by_key": "tags (key)",
    "documents_unread": "documents (path) WHERE problem != ''",
    "documents_flawed": "documents (path) WHERE flaw != ''",
}
_SCRIPT = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
    mtime_ns INTEGER, ctime_ns INTEGER, size INTEGER, inode INTEGER, racy INTEGER,
    hash TEXT, problem TEXT, title TEXT, type TEXT, day TEXT, dated INTEGER, ident TEXT,
    flaw TEXT
);
CREATE INDEX documents_racy ON documents (id) WHERE racy;
CREATE TABLE pending (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE moves (old TEXT PRIMARY KEY, new TEXT) WITHOUT ROWID;
{"".join(f"CREATE TABLE {n} (document INTEGER, {c}) WITHOUT ROWID;" for n, c in _PARTS.items())}
"""
# Writers hold the lock of the index; a reader waits for a checkpoint at most.
_BUSY_SECONDS = 5.0
_PRAGMAS = ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -8192")  # KiB
SCHEMA = Schema("use the index", _SCRIPT, VERSION, _PRAGMAS, _BUSY_SECONDS, is_derived=True)


class Seen(NamedTuple):
    """A file as it was when it was indexed; times in nanoseconds since the epoch, size in bytes."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int

    @property
    def modified(self) -> float:
        """The time of modification, in seconds since the epoch."""
        return self.mtime_ns / 1e9


class DocumentRow(NamedTuple):
    """A document's row: `problem` says why a file is not a memory, and is empty when it is."""

    path: str
    seen: Seen
    racy: bool
    hash: str
    problem: str
    record: Record | None


class Database:
    """The database in the file `path`, which is created when it is missing; or in no file, `IN_MEMORY`.

    One object may be used by several threads, one at a time.

    Attributes:
        identity: device and inode of its file.
        schema, indexes: what it is made of; those of another database in a class derived from this.

    Raises:
        IndexDamaged: the file is no database, or one of an earlier version.
        StorageFailed: the system refused, or a later version of mdmem has written it.
    """

    schema: ClassVar = SCHEMA
    indexes: ClassVar = _INDEXES

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection = open_connection(path, self.schema)
        try:
            self._make_indexes()  # a first fill that was killed has left none
            with self._translated():
                status = os.stat(path if path != IN_MEMORY else os.devnull)
        except BaseException:
            self._connection.close()
            raise
        self.identity = status.st_dev, status.st_ino

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self.path, self.schema)

    def _make_indexes(self) -> None:
        statements = "".join(f"CREATE INDEX IF NOT EXISTS {n} ON {c};" for n, c in self.indexes.items())
        with self._translated():
            self._connection.executescript(statements)

    @property
    def replaced(self) -> bool:
        """Whether another process has deleted or replaced the file."""
        status = status_of(self.path, follows=True)
        return status is None or (status.st_dev, status.st_ino) != self.identity

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query; none when a value is a lone surrogate, which no file can hold."""
        with self._translated(), contextlib.suppress(UnicodeEncodeError):
            return self._connection.execute(query, values).fetchall()
        return []

    def known(self, paths: Collection[str] | None = None) -> dict[str, tuple[int, int, int, int]]:
        """Return the values of `Seen` of each indexed file, by its path: of all, or at or below `paths`."""
        query = "SELECT path, mtime_ns, ctime_ns, size, inode FROM documents"
        if paths is None:
            rows = self.rows(query)
        else:
            at_or_below = f"{query} WHERE path = ? OR (path >= ? AND path < ?)"
            rows = [row for at in paths for row in self.rows(at_or_below, (at, f"{at}/", f"{at}0"))]
        return {path: (mtime, ctime, size, inode) for path, mtime, ctime, size, inode in rows}

    def changes(self) -> int:
        """Return a number that differs after another connection has changed the database."""
        return int(self.rows("PRAGMA data_version")[0][0])

    @property
    def written(self) -> int:
        """How many rows this connection has written."""
        return self._connection.total_changes

    def value(self, key: str) -> Any:
        """Return a value of the table `meta`; None without it."""
        rows = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Run what is inside as one transaction."""
        with self._translated():
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
        """Drop the indexes over the rows during a first run, and make them at its end."""
        with self._translated():
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
        with self._translated():
            self._connection.executemany(statement, rows)

    def replace(self, entries: Sequence[DocumentRow]) -> None:
        """Replace the rows of each document."""
        numbers = self._assign_numbers([entry.path for entry in entries])
        self._drop_parts([number for number, is_new in numbers if not is_new])
        parts: dict[str, list[Row]] = {name: [] for name in _PARTS}
        documents: list[Row] = []
        for entry, (number, _) in zip(entries, numbers, strict=True):
            summary = entry.record.summary if entry.record else ("", "", "", False, "", "")
            documents.append(
                (number, entry.path, *entry.seen, entry.racy, entry.hash, entry.problem, *summary)
            )
            if entry.record:
                for name in _PARTS:
                    parts[name] += [(number, *row) for row in getattr(entry.record, name)]
        for name, rows in {"documents": documents, **parts}.items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                self.write(f"INSERT OR REPLACE INTO {name} VALUES ({marks})", rows)  # noqa: S608 - our names

    def see(self, path: str, seen: Seen, *, racy: bool) -> None:
        """Update the times of a file with unchanged content."""
        statement = (
            "UPDATE documents SET mtime_ns = ?, ctime_ns = ?, size = ?, inode = ?, racy = ? WHERE path = ?"
        )
        self.write(statement, [(*seen, racy, path)])

    def forget(self, paths: Sequence[str]) -> None:
        """Delete the rows of documents."""
        query = "SELECT id FROM documents WHERE path = ?"
        numbers = [number for path in paths for (number,) in self.rows(query, (path,))]
        self._drop_parts(numbers)
        self.write("DELETE FROM documents WHERE id = ?", [(number,) for number in numbers])

    def note_moves(
        self, moved: Mapping[str, str], taken: Iterable[str] = (), deleted: Iterable[str] = ()
    ) -> None:
        """Note where memories have moved, old path to new, so that links to the old paths can be fixed later.

        Links to a path that is `taken` by a new memory mean that, also after it is deleted. What is `deleted`
        is noted, as moved to nowhere, where a link may mean it.
        """
        self.write("DELETE FROM moves WHERE old = ?", [(path,) for path in (*moved.values(), *taken)])
        self.write("UPDATE moves SET new = ? WHERE new = ?", [(new, old) for old, new in moved.items()])
        self.write("INSERT OR REPLACE INTO moves VALUES (?, ?)", moved.items())
        is_linked = "EXISTS (SELECT 1 FROM links WHERE key = ?2 OR (label != '' AND label = ?2))"
        pairs = [(path, key) for path in deleted for key in stem_keys(path)]
        self.write(f"INSERT OR REPLACE INTO moves SELECT ?1, '' WHERE {is_linked}", pairs)

    def _assign_numbers(self, paths: Sequence[str]) -> list[tuple[int, bool]]:
        """Return the number of each document, and whether it is a new one."""
        free = self.rows("SELECT coalesce(max(id), 0) + 1 FROM documents")[0][0]
        numbers = []
        for path in paths:
            rows = self.rows("SELECT id FROM documents WHERE path = ?", (path,)) if free > 1 else []
            numbers.append((rows[0][0], False) if rows else (free, True))
            free += not rows
        return numbers

    def _drop_parts(self, numbers: Sequence[int]) -> None:
        for name in _PARTS if numbers else ():
            self.write(f"DELETE FROM {name} WHERE document = ?", [(n,) for n in numbers])  # noqa: S608 - as above


Scalar: TypeAlias = str | int | float | None
Row: TypeAlias = tuple[Scalar, ...]
Name: TypeAlias = tuple[str, str]
"""A kind, and the key of that kind; see `mdmem.index.links.names.Names`."""

_LARGEST = 2**63 - 1  # SQLite's integers
# What names a memory, leads to others, or says whether it counts.
_COUNTING = frozenset((
    *("id", "aliases", "tier", "access", "confidence", "expires", "valid_from", "valid_to", *LINEAGE),
))  # fmt: skip


class Summary(NamedTuple):
    """A memory as a whole.

    Attributes:
        title: its field `title`, else its first heading; empty without either.
        day: see `mdmem.index.hit.day_of`.
        dated: whether the day is written in the memory; else it is that of the file.
        flaw: why some of its frontmatter cannot be read; empty where all can.
    """

    title: str
    type: str
    day: str
    dated: bool
    ident: str
    flaw: str = ""


class FieldRow(NamedTuple):
    """A scalar of the fields, by its dotted key; items of lists are rows one by one."""

    n: int
    key: str
    value: Scalar


class SectionRow(NamedTuple):
    """A heading; `path` has the titles of the sections that it is in, one a line."""

    n: int
    line: int
    level: int
    path: str
    slug: str
    loose: str


class BlockRow(NamedTuple):
    """A block with an id."""

    n: int
    id: str
    line: int


class LinkRow(NamedTuple):
    """A link; `label` is the key that the alias of a wikilink would have as its target."""

    n: int
    line: int
    start: int
    end: int
    kind: str
    embed: bool
    target: str
    key: str
    anchor: str
    alias: str
    label: str

    def has_key(self, keys: Collection[str]) -> bool:
        """Return whether the link has one of some keys, or may have it by its label."""
        return self.key in keys or bool(self.label and self.label in keys)


class CitationRow(NamedTuple):
    """A citation; `seen` is filled in by `mdmem.index.sync`."""

    n: int
    line: int
    start: int
    end: int
    path: str
    first: int | None
    last: int | None
    symbol: str
    pin: str
    in_link: bool
    seen: str = ""

    @property
    def cited(self) -> tuple[str, int | None, int | None, str]:
        """What is cited: the path, the first and the last line, and the symbol."""
        return self.path, self.first, self.last, self.symbol


class TagRow(NamedTuple):
    """A tag."""

    n: int
    line: int
    start: int
    name: str
    key: str


class UrlRow(NamedTuple):
    """A URL."""

    n: int
    line: int
    start: int
    url: str


class Record(NamedTuple):
    """The rows of one memory, each without the number of its document."""

    summary: Summary
    names: list[Name]
    fields: list[FieldRow]
    sections: list[SectionRow]
    blocks: list[BlockRow]
    links: list[LinkRow]
    citations: list[CitationRow]
    tags: list[TagRow]
    urls: list[UrlRow]


def record(document: Document, modified: float, *, is_data: bool = False) -> Record:
    """Make the rows of a memory.

    Args:
        modified: in seconds since the epoch.
        is_data: whether no field of it names it, points at others or says whether it counts.

    Raises:
        TooNested, TooLarge: its fields cannot be read.
    """
    fields, headings, sections = document.fields, document.headings, document.sections
    if is_data:
        fields = {key: value for key, value in fields.items() if key not in _COUNTING}
    scalars: list[FieldRow] = []
    for key, value in fields.items():
        _add_scalars(scalars, _replace_surrogates(str(key)), value)
    return Record(
        summary=_make_summary(document, fields, headings[0].title if headings else "", modified),
        names=names_of(document.path, fields, "" if is_data else document.text),
        fields=scalars,
        sections=[
            SectionRow(n, line, level, "\n".join(path), slug, loose)
            for n, (line, path, slug, loose, level) in enumerate(anchor.headings(sections))
        ],
        blocks=[BlockRow(n, block.id, block.line) for n, block in enumerate(document.blocks)],
        links=[_link_row(n, link) for n, link in enumerate(() if is_data else document.links)],
        citations=[
            CitationRow(n, c.line, *c.span, c.path, c.first, c.last, c.symbol, c.pin, c.in_link)
            for n, c in enumerate(document.citations)
        ],
        tags=[
            TagRow(n, tag.line, tag.span.start, tag.name, tag_key(tag.name))
            for n, tag in enumerate(document.tags)
        ],
        urls=[UrlRow(n, url.line, url.span.start, url.url) for n, url in enumerate(document.urls)],
    )


def _link_row(n: int, link: Link) -> LinkRow:
    key, label = key_of(link.target), label_key(link.kind, link.alias)
    return LinkRow(
        n, link.line, *link.span, link.kind, link.embed, link.target, key, link.anchor, link.alias, label
    )


def key_of(target: str) -> str:
    """Return the key of a link's target: its last part, without `.md` or `.html`, NFC and casefolded."""
    last = target.rstrip("/").rpartition("/")[2]
    return alias_key(last.removesuffix(SUFFIXES[0]).removesuffix(".html"))


def label_key(kind: str, alias: str) -> str:
    """Return the key that the alias of a wikilink has where the tool says it first; else empty."""
    return key_of(alias.partition("#")[0]) if alias and kind == "wikilink" else ""


def stem_keys(path: str) -> tuple[str, ...]:
    """Return the keys that a link to a memory may have by its path: without its suffix first.

    A memory with another suffix than .md has one more key, with the suffix. The index of a folder also has
    the key of the folder.
    """
    bare = without_suffix(path)
    folder, _, name = bare.rpartition("/")
    keys = (
        key_of(bare) if path.endswith(NAMED_SUFFIXES) else "",
        key_of(path),
        key_of(folder) if name in INDEX_NAMES else "",
    )
    return tuple(filter(None, keys))


def tag_key(name: str) -> str:
    """Return the key of a tag: tags that differ only in case are one."""
    return name.casefold()


def keys_of(path: str, fields: Mapping[str, Any], text: str = "") -> list[str]:
    """Return every key that the target of a link to a memory may have."""
    names = names_of(path, fields, text)
    return list(dict.fromkeys(key if kind == "stem" else key_of(key) for kind, key in names))


def _make_summary(document: Document, fields: Mapping[str, Any], heading: str, modified: float) -> Summary:
    path = document.path
    written = day_of(path, fields)
    day = written or day_of(path, {}, modified)
    title, ident = (_field_text(fields.get(name)) for name in ("title", "id"))
    type_, flaw = _replace_surrogates(first_text(fields.get("type"))), document.frontmatter.unread
    return Summary(title or heading, type_, day, bool(written), ident, flaw)


def names_of(path: str, fields: Mapping[str, Any], text: str = "") -> list[Name]:
    """Return what links may call a memory: the kind and the key of each name; some stand in its `text`."""
    names: list[Name] = [("stem", key) for key in stem_keys(path)]
    if ident := _field_text(fields.get("id")):
        names.append(("id", ident))
    aliases = fields.get("aliases")
    texts = map(_field_text, aliases if isinstance(aliases, list) else [aliases])
    names += [("alias", alias_key(text)) for text in texts if text]
    for field in fields.keys() & _ADDRESSES:
        values = fields[field] if isinstance(fields[field], list) else [fields[field]]
        names += [("address", key) for each in values for key in _list_addresses(path, field, each)]
    if path.endswith("_category_.json") and isinstance(fields.get("link"), dict):  # a page of Docusaurus
        names += [("address", key) for key in _list_addresses(path, "slug", fields["link"].get("slug"))]
    names += [(kind, alias_key(name)) for kind, name in _list_other_names(path, text)]
    return list(dict.fromkeys(names))


_ADDRESSES = frozenset(("permalink", "url", "slug", "redirect_from"))
_LONGEST_ADDRESS = 1024
# Of Logseq: a property of a page in its first lines, or of a block; what its files and Jekyll's are called.
_PROPERTY = regex(r"(?:\A|\n)[ \t-]*(title|alias|id)::[ \t]+([^\r\n]{1,400})")
_DATED_POST = regex(r"(?:.*/)?[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}[-/](.+)")
_NUMBER = regex(r"(?:(?<=/)|\A)[0-9]+[ _.-]+(?=[^\d\s_.-])")
_JOURNAL = regex(r"([0-9]{4})[_-](0[1-9]|1[0-2])[_-]0?([1-3]?[0-9])")
_NTH = {1: "st", 2: "nd", 3: "rd"}
_FIRST_LINES = 1000


def address_key(address: str) -> str:
    """Return the form in which addresses are compared: without `/`, `.html` or the index at its end."""
    return alias_key(address.rstrip("/").removesuffix("/index.html").removesuffix(".html"))


def drop_numbers(path: str) -> str:
    """Return a path without the numbers that put the pages and folders of Docusaurus in order."""
    return _NUMBER.sub("", path)


def _list_addresses(path: str, field: str, value: Any) -> Iterator[str]:
    """Yield the addresses that a field says: behind `/`, of the site; else from the folder of the memory."""
    said = value.removeprefix("./") if isinstance(value, str) else ""
    if len(said) > _LONGEST_ADDRESS or ":" in said or not said or not {".", ".."}.isdisjoint(said.split("/")):
        return
    folder, _, name = without_suffix(path).rpartition("/")
    is_relative = field == "slug" and not said.startswith("/")
    starts = (folder, folder.rpartition("/")[0]) if name in INDEX_NAMES else (folder,)
    for start in starts if is_relative else ("",):
        yield address_key(f"{start}/{said.strip('/')}".removeprefix("/" if is_relative else ""))


def _list_other_names(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the names that only some tools give: "page", "block", "post", "numbered", "dashed"."""
    bare = without_suffix(path)
    folder, _, name = bare.rpartition("/")
    last, page = folder.rpartition("/")[2], folder if name in INDEX_NAMES else bare
    if "___" in name or "%" in name:
        yield "page", percent_decoded(name.replace("___", "/"))
    if last == "pages" and "." in name:
        yield "page", percent_decoded(name.replace(".", "/"))
    if last == "journals" and (day := _JOURNAL.fullmatch(name)):
        yield "page", f"{MONTHS[int(day[2]) - 1][:3]} {day[3]}{nth(int(day[3]))}, {day[1]}"
    if "_posts" in path or "blog/" in path:
        post = _DATED_POST.fullmatch(page)
        yield from (("post", found) for found in post.groups()) if post else ()
    if page != (unnumbered := drop_numbers(page)):
        yield "numbered", address_key(unnumbered)
    if " " in page:
        yield "dashed", address_key(page.replace(" ", "-"))
    for said in _PROPERTY.finditer(text) if "::" in text else ():
        if said[1] == "id":
            yield "block", said[2].strip()
        elif said.start() < _FIRST_LINES:
            names = said[2].split(",") if said[1] == "alias" else [said[2]]
            yield from (("page", page) for each in names if (page := each.strip(" []#")))


def nth(number: int) -> str:
    """Return what stands behind the number of a day: `st` of `1st`."""
    return "th" if number // 10 == 1 else _NTH.get(number % 10, "th")


def alias_key(alias: str) -> str:
    """Return the key of an alias, or of a target that may be one: NFC and casefolded, whole."""
    return nfc(alias).casefold()


def _add_scalars(rows: list[FieldRow], key: str, value: Any) -> None:
    if isinstance(value, str):
        rows.append(FieldRow(len(rows), key, _replace_surrogates(value)))
    elif isinstance(value, dict):
        for name, item in value.items():
            _add_scalars(rows, f"{key}.{_replace_surrogates(str(name))}", item)
    elif isinstance(value, list):
        for item in value:
            _add_scalars(rows, key, item)
    elif isinstance(value, bool):
        rows.append(FieldRow(len(rows), key, "true" if value else "false"))
    elif isinstance(value, int) and abs(value) > _LARGEST:
        rows.append(FieldRow(len(rows), key, str(value)))
    else:
        rows.append(FieldRow(len(rows), key, value))


def _field_text(value: Any) -> str:
    return _replace_surrogates(field_text(value))


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates: JSON may escape one, and SQLite cannot hold it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
