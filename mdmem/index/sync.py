"""Sync: update the index from the files, by reading only those that have changed.

A file counts as unchanged if its times, size and inode are the same. If it was read so soon after a write
that a later write could leave the same times, it is read again. Git does the same (racy-git.txt in git's
documentation).

What the index first saw of cited code is the baseline of citations that neither a pin nor git knows. It is
kept with the citation, also when the memory moves. It is the one thing in the index that the files do not
hold; pins (`mdmem refs --pin`) keep it for good.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mdmem.document.document import Document, Limits, parse
from mdmem.document.markdown.citation import Citation
from mdmem.errors import DocumentRefused, MemoryNotFound, PathRefused, TooLarge
from mdmem.index.database import CitationRow, Database, DocumentRow, Record, Seen, record
from mdmem.index.hit import day_of
from mdmem.vault import files
from mdmem.vault.paths import Namespace, relative
from mdmem.vault.walk import Found, changed_at, find_file_problem

if TYPE_CHECKING:
    from mdmem.index.passages import Indexed
    from mdmem.index.text_index import TextIndex
    from mdmem.vault.vault import Vault


Progress = Callable[[int, int], None]
"""Called with the number of files that are done, and of all."""


class Synced(NamedTuple):
    """The paths of memories that a sync found changed, in order.

    `moved` are pairs of old and new path, paired by a unique id or by equal content; these are neither in
    `created` nor in `removed`.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    def under(self, wall: Namespace) -> Synced:
        """Return the changes in a namespace, with paths relative to it.

        A memory that moved across its border is created or removed.
        """

        def inside(paths: Iterable[str]) -> tuple[str, ...]:
            return tuple(sorted(relative(path, wall.folder) for path in paths if wall.holds(path)))

        moved = [pair for pair in self.moved if all(map(wall.holds, pair))]
        crossed = [pair for pair in self.moved if pair not in moved]
        return Synced(
            created=inside((*self.created, *(new for _, new in crossed))),
            changed=inside(self.changed),
            removed=inside((*self.removed, *(old for old, _ in crossed))),
            moved=tuple((relative(old, wall.folder), relative(new, wall.folder)) for old, new in moved),
        )


def moves(gone: Mapping[str, tuple[str, str]], created: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Pair memories that are gone with new ones: old path to new path.

    Args:
        gone, created: id (may be empty) and hash of each, by path. A pair has the same id, else the same
            content, and only where no other memory has it.
    """
    pairs: dict[str, str] = {}
    for part in (0, 1):
        old = _keep_unique({path: marks[part] for path, marks in gone.items() if path not in pairs})
        new = _keep_unique(
            {path: marks[part] for path, marks in created.items() if path not in pairs.values()}
        )
        pairs |= {old[mark]: new[mark] for mark in old.keys() & new.keys()}
    return pairs


def _keep_unique(marks: Mapping[str, str]) -> dict[str, str]:
    count = Counter(marks.values())
    return {mark: path for path, mark in marks.items() if mark and count[mark] == 1}


_Cited: TypeAlias = tuple[Any, ...]
Pinning: TypeAlias = "Callable[[Vault], AbstractContextManager[Callable[[str, Citation], str]]]"
"""Opens a context. Its function takes the citing file and a citation, and returns a pin of the cited code."""


class FirstSeen(contextlib.ExitStack):
    """Fills in what is first seen in the rows of citations; a context, which closes what it opened.

    `is_new` says that the database holds nothing yet.
    """

    def __init__(
        self, vault: Vault, database: Database, pinning: Pinning | None, *, is_new: bool = False
    ) -> None:
        super().__init__()
        self._vault = vault
        self._pinning = pinning
        self._database = database
        self._is_new = is_new
        self._pins: dict[_Cited, str] = {}
        self._gone: dict[str, list[tuple[_Cited, str]]] = {}
        self._pinned: Callable[[str, Citation], str] | None = None

    def keep(self, path: str, marks: Iterable[str]) -> None:
        """Keep what a memory that is gone has seen, for one with the same id or content."""
        if known := self._list_first_seen(path):
            self._gone.update(dict.fromkeys(filter(None, marks), known))

    def taken(self, path: str, marks: Iterable[str], rows: list[CitationRow]) -> list[CitationRow]:
        """Return the rows of a memory's citations, each with what was first seen of it."""
        known = [] if self._is_new else self._list_first_seen(path)
        known = known or next((self._gone[mark] for mark in marks if mark in self._gone), [])
        seen = _carry_over_seen(known, [row.cited for row in rows])
        return [
            row._replace(seen=old or self._look_up_pin(path, row))
            for row, old in zip(rows, seen, strict=True)
        ]

    def _list_first_seen(self, path: str) -> list[tuple[_Cited, str]]:
        query = (
            "SELECT c.path, c.first, c.last, c.symbol, c.seen FROM citations AS c"
            " JOIN documents AS d ON d.id = c.document WHERE d.path = ? ORDER BY c.n"
        )
        return [(tuple(cited), seen) for *cited, seen in self._database.rows(query, (path,))]

    def _look_up_pin(self, path: str, row: CitationRow) -> str:
        """Return the pin of a citation's code; many memories cite the same files."""
        if row.pin or self._pinning is None:
            return ""
        _, first, _, symbol = row.cited
        is_whole = first is None and not symbol
        key = row.cited, (path.rpartition("/")[0] if row.in_link else None) if is_whole else path
        if key not in self._pins:
            self._pinned = self._pinned or self.enter_context(self._pinning(self._vault))
            citation = Citation(*row.cited, line=row.line, in_link=row.in_link)
            self._pins[key] = self._pinned(self._vault.disk.in_workspace(path), citation)
        return self._pins[key]


def _carry_over_seen(known: list[tuple[_Cited, str]], cited: list[_Cited]) -> list[str]:
    """Return what was first seen of each citation; empty for one that is not in `known`."""
    if [before[0] for before, _ in known] == [now[0] for now in cited]:
        # The same files in the same order: other lines were written by an author who saw them.
        return [seen if now == before else "" for (before, seen), now in zip(known, cited, strict=True)]
    seen_by_citation = dict(known)
    return [seen_by_citation.get(citation, "") for citation in cited]


# Linux stamps files with a clock that ticks every 4 to 10 ms; some file systems have whole seconds only.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_COARSE_NS = 1_000_000


class Read(NamedTuple):
    """A file that was read.

    Attributes:
        seen: its status before it was read.
        racy: whether it may be written again with the same times.
        hash: the SHA-256 of its bytes; empty when they were not read.
        problem: why it is not a memory; empty when that is not known yet.
    """

    path: str
    seen: Seen
    racy: bool = False
    hash: str = ""
    data: bytes = b""
    problem: str = ""


class Understood(NamedTuple):
    """A parsed file, for each store; with a `problem` there is neither."""

    record: Record | None
    indexed: Indexed | None
    problem: str = ""


Parsed: TypeAlias = tuple[Read, Understood]


def read(place: files.Place, path: str, limits: Limits) -> Read | None:
    """Read the file of a memory; None where it is gone.

    Raises:
        StorageFailed: its folder cannot be opened.
    """
    *folders, name = place.parts
    try:
        with (
            files.translated("/".join(folders) or place.root, "open it"),
            files.opened(place.root, folders) as folder,
        ):
            return _read_file(folder, path, name, limits.max_bytes)
    except (MemoryNotFound, PathRefused):
        return None  # its folder is gone, or is a link, which is never followed


def understand(
    read: Read, limits: Limits, *, texts: bool = True, is_data: Callable[[Document], bool] = lambda _: False
) -> Understood:
    """Parse a file, also for the text index with `texts`; `is_data` says what `record` does."""
    if read.problem:
        return Understood(None, None, read.problem)
    try:
        document = parse(read.path, read.data, limits)
        rows = record(document, read.seen.modified, is_data=is_data(document))
        if not texts:
            return Understood(rows, None)
        from mdmem.index.passages import indexed  # noqa: PLC0415 - start-up

        return Understood(rows, indexed(document, read.seen.modified))
    except DocumentRefused as error:
        return Understood(None, None, error.message)


def read_and_parse(vault: Vault, path: str, *, texts: bool) -> Parsed | None:
    """Read and parse a memory, and keep none of its bytes; None where it is gone."""
    limits = vault.config.limits
    file = read(vault.disk.place(path), path, limits)
    parsed = file and understand(file, limits, texts=texts, is_data=vault.is_data)
    return (file._replace(data=b""), parsed) if file and parsed else None


def _read_file(folder: int, path: str, name: str, most: int) -> Read | None:
    now = time.time_ns()
    try:
        name = files.spelled_in(folder, name)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    seen = Seen(changed_at(status), status.st_ctime_ns, status.st_size, status.st_ino)
    racy = _is_racy(seen, now)
    problem = find_file_problem(status)
    if not problem and seen.size > most:
        problem = TooLarge(path=path, size=seen.size, limit=most).message
    if problem:
        return Read(path, seen, racy, problem=problem)
    try:
        content = files.read(folder, name)
    except FileNotFoundError:
        return None
    except PathRefused as error:
        return Read(path, seen, racy, problem=error.message)
    except OSError as error:
        if error.errno in files.EXHAUSTED:
            raise  # it would stay unread until it changes
        return Read(path, seen, racy, problem=files.refusal(error, path, "read it").message)
    from hashlib import sha256  # noqa: PLC0415 - start-up

    racy = racy or content.stamp != files.stamp(status)
    return Read(path, seen, racy, sha256(content.data).hexdigest(), content.data)


def _is_racy(seen: Seen, now: int) -> bool:
    """Whether a file may be written again with the same times; `now` is before it was read."""
    changed = max(seen.mtime_ns, seen.ctime_ns)
    tick = _COARSE_TICK_NS if seen.mtime_ns % _COARSE_NS == 0 else _TICK_NS
    return changed > now - tick


# Memories that are committed at once: an interrupted first run keeps them.
_BATCH = 500
_STEP = 100  # files after which progress is reported
# With more files, the garbage collector would take a tenth of the time.
_MANY = 1_000


class Work(NamedTuple):
    """The work of a run: paths to read, files that are no memories, known paths without a file."""

    read: Sequence[str] = ()
    problems: Sequence[Found] = ()
    gone: Sequence[str] = ()


class _Old(NamedTuple):
    """The row of a file in the database."""

    hash: str
    problem: str
    day: str
    dated: bool
    ident: str


class Sync:
    """One run, under the lock of the index: it reads files and updates both stores.

    The database is written first, with a list of the memories that lack their text. After a crash, or a run
    without the text index, the next run reads these again.
    """

    def __init__(
        self,
        vault: Vault,
        database: Database,
        text: TextIndex | None,
        pinning: Pinning | None = None,
        read_many: Callable[..., Iterator[Parsed | None]] | None = None,
    ) -> None:
        self._vault = vault
        self._database = database
        self._text = text
        self._read_many = read_many
        self._first = not database.rows("SELECT 1 FROM documents LIMIT 1")
        self._pending = {path for (path,) in database.rows("SELECT path FROM pending")} if text else set()
        self._first_seen = FirstSeen(vault, database, pinning, is_new=self._first)
        # The id and hash of memories, by path.
        self._created: dict[str, tuple[str, str]] = {}
        self._gone: dict[str, tuple[str, str]] = {}
        self._changed: list[str] = []

    def run(self, work: Work, progress: Progress | None = None) -> Synced:
        """Do the work, and report the progress."""
        if self._text and self._pending:
            self._text.sweep()
        todo = {*work.read, *self._pending} - {file.path for file in work.problems}
        # A file that is to be read may be back by then; one that is gone when it is read is added.
        gone = sorted(set(work.gone) - todo)
        try:
            with (
                self._database.filling() if self._first else contextlib.nullcontext(),
                _pausing_collector() if len(todo) >= _MANY else contextlib.nullcontext(),
                self._first_seen,
                contextlib.closing(self._read_files(sorted(todo), gone, progress)) as files,
            ):
                for path in work.gone:
                    if old := self._find_indexed(path):
                        self._first_seen.keep(path, (old.ident, old.hash))
                unread = (Read(each.path, Seen(*each.seen), problem=each.problem) for each in work.problems)
                reads = chain(zip(unread, repeat(None)), files)
                for rest in range(len(work.problems) + len(todo), -1, -_BATCH):
                    more = rest > _BATCH
                    self._process_batch(
                        islice(reads, _BATCH if more else None), () if more else gone, more=more
                    )
        except BaseException:
            # The next run adds the same memories: what is not committed must not be.
            if self._text:
                self._text.close()
            raise
        return self._summarise_run()

    def _find_indexed(self, path: str) -> _Old | None:
        if self._first:
            return None
        query = "SELECT hash, problem, day, dated, ident FROM documents WHERE path = ?"
        rows = self._database.rows(query, (path,))
        return _Old(*rows[0]) if rows else None

    def _read_files(
        self, paths: Sequence[str], gone: list[str], progress: Progress | None
    ) -> Generator[tuple[Read, Understood | None]]:
        vault, limits = self._vault, self._vault.config.limits
        alone = (read(vault.disk.place(path), path, limits) for path in paths)
        files: Iterator[tuple[Read, Understood | None] | None] = (each and (each, None) for each in alone)
        if self._read_many:
            files = self._read_many(vault, paths, texts=self._text is not None)
        for count, (path, file) in enumerate(zip(paths, files, strict=True), 1):
            if file:
                yield file
            else:
                gone.append(path)
            if progress and (count % _STEP == 0 or count == len(paths)):
                progress(count, len(paths))

    def _process_batch(
        self, reads: Iterable[tuple[Read, Understood | None]], gone: Sequence[str], *, more: bool
    ) -> None:
        """Write what was read to both stores, and remove what is `gone`."""
        entries: list[DocumentRow] = []
        same: list[Read] = []
        texts: list[str] = []
        for file, parsed in reads:
            old = self._find_indexed(file.path)
            is_same = old is not None and _is_as_it_was(old, file)
            if is_same:
                same.append(file)
                if file.path not in self._pending:
                    continue
            understood = parsed or understand(
                file, self._vault.config.limits, texts=self._text is not None, is_data=self._vault.is_data
            )
            if not is_same:
                entries.append(self._make_row(file, understood))
                self._note_change(old, entries[-1])
            texts.append(file.path)
            self._update_text(file.path, understood.indexed)
        for path in gone:
            old = self._find_indexed(path)
            if old and not old.problem:
                self._gone[path] = old.ident, old.hash
            self._update_text(path, None)
        self._write_batch(entries, same, gone, [*texts, *gone], more=more)

    def _update_text(self, path: str, indexed: Indexed | None) -> None:
        if self._text is None:
            return
        if not self._first:
            self._text.remove(path)
        if indexed:
            self._text.add(indexed)

    def _make_row(self, read: Read, understood: Understood) -> DocumentRow:
        rows = understood.record
        if rows and rows.citations:
            marks = rows.summary.ident, read.hash
            rows = rows._replace(citations=self._first_seen.taken(read.path, marks, rows.citations))
        return DocumentRow(read.path, read.seen, read.racy, read.hash, understood.problem, rows)

    def _note_change(self, old: _Old | None, entry: DocumentRow) -> None:
        was_memory = old is not None and not old.problem
        if entry.record and was_memory:
            self._changed.append(entry.path)
        elif entry.record:
            self._created[entry.path] = entry.record.summary.ident, entry.hash
        elif old and was_memory:
            self._gone[entry.path] = old.ident, old.hash

    def _write_batch(
        self,
        entries: list[DocumentRow],
        same: list[Read],
        gone: Sequence[str],
        texts: Sequence[str],
        *,
        more: bool,
    ) -> None:
        database = self._database
        if not (entries or same or texts):
            return
        with database.writing():
            for file in same:
                database.see(file.path, file.seen, racy=file.racy)
            database.replace(entries)
            database.forget(gone)
            database.write("INSERT OR IGNORE INTO pending VALUES (?)", [(path,) for path in texts])
        if texts and self._text:
            opstamp = self._text.commit(more=more)
            with database.writing():
                database.write("DELETE FROM pending WHERE path = ?", [(path,) for path in texts])
                database.set_value("opstamp", opstamp)

    def _summarise_run(self) -> Synced:
        moved = moves(self._gone, self._created)
        removed = sorted(self._gone.keys() - moved.keys())
        if moved or removed or self._created:
            with self._database.writing():
                self._database.note_moves(moved, self._created, removed)
        return Synced(
            created=tuple(sorted(self._created.keys() - moved.values())),
            changed=tuple(sorted(self._changed)),
            removed=tuple(removed),
            moved=tuple(sorted(moved.items())),
        )


@contextlib.contextmanager
def _pausing_collector() -> Iterator[None]:
    """Pause the garbage collector: parsed memories have no reference cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _is_as_it_was(old: _Old, read: Read) -> bool:
    """Whether all that is indexed is unchanged, also the day, which may be that of the file."""
    if not read.hash:
        return (old.hash, old.problem) == ("", read.problem)
    return old.hash == read.hash and bool(
        old.problem or old.dated or old.day == day_of(read.path, {}, read.seen.modified)
    )
