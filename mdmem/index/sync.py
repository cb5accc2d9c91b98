"""Sync: make the index say what the files say, by reading only what has changed.

A file is as it was when its times, size and inode are. Where its times are so close to the moment at which it
was read that a later write could have left the same ones, it is read again, as git does with its index
(racy-git.txt in git's technical documentation).

What the index first saw of cited code is the baseline of citations without a pin that git does not know. It
is kept with the citation for as long as that stands in its memory, also when the memory moves. It is the one
thing in the index that the files do not say: who needs it for good writes pins (`mdmem refs --pin`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from mdmem.document.document import Limits, parse
from mdmem.errors import DocumentRefused, MemoryNotFound, PathRefused, TooLarge
from mdmem.index.database import Database, DocumentRow, Record, Row, Seen, kept_citation, record
from mdmem.index.hit import day_of
from mdmem.vault import files
from mdmem.vault.paths import Namespace, relative
from mdmem.vault.walk import changed_at, fault

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mdmem.index.passages import Indexed
    from mdmem.index.text_index import TextIndex
    from mdmem.markdown.inline import Citation
    from mdmem.vault.vault import Vault


Progress = Callable[[int, int], None]
"""Is told how many of how many files are done."""


class Synced(NamedTuple):
    """What a sync found: paths of memories, in order.

    `moved` are pairs of old and new path, told by a unique id or by equal content; those paths are in neither
    `created` nor `removed`.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    def under(self, wall: Namespace) -> Synced:
        """What of it is in a namespace, by the paths that it has there.

        A memory that moved over that wall is created or removed.
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
    """Which memories that are gone have become which new ones: old path to new path.

    Args:
        gone, created: id (may be empty) and hash of each, by path. A pair is told by its id, else by its
            content, and only where no other memory has the same.
    """
    found: dict[str, str] = {}
    for part in (0, 1):
        old = _unique({path: told[part] for path, told in gone.items() if path not in found})
        new = _unique({path: told[part] for path, told in created.items() if path not in found.values()})
        found |= {old[mark]: new[mark] for mark in old.keys() & new.keys()}
    return found


def _unique(marks: Mapping[str, str]) -> dict[str, str]:
    """The paths by their marks, without empty marks and those that two paths have."""
    count = Counter(marks.values())
    return {mark: path for path, mark in marks.items() if mark and count[mark] == 1}


_Cited: TypeAlias = tuple[Any, ...]
Pinning: TypeAlias = "Callable[[Vault], AbstractContextManager[Callable[[str, Citation], str]]]"
"""In a context: what the code that a citation names is now, given the citing file and the citation."""


class FirstSeen:
    """Puts what is first seen into the rows of citations; a context, which ends what it had to open.

    `is_new` says that the database holds nothing yet.
    """

    def __init__(
        self, vault: Vault, database: Database, pinning: Pinning | None, *, is_new: bool = False
    ) -> None:
        self._vault = vault
        self._pinning = pinning
        self._opened = contextlib.ExitStack()
        self._database = database
        self._is_new = is_new
        self._pins: dict[_Cited, str] = {}
        self._gone: dict[str, list[tuple[_Cited, str]]] = {}
        self._pinned: Callable[[str, Citation], str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def keep(self, path: str, marks: Iterable[str]) -> None:
        """Keep what was seen by a memory that goes: one with the same id, or the same content, may come."""
        known = self._known(path)
        if known:
            self._gone.update(dict.fromkeys(filter(None, marks), known))

    def taken(self, path: str, marks: Iterable[str], rows: list[Row]) -> list[Row]:
        """The rows of a memory's citations, each with what was first seen of it."""
        if self._is_new:
            return [(*row[:-1], self._look(path, row)) for row in rows]
        known = self._known(path) or next((self._gone[mark] for mark in marks if mark in self._gone), [])
        kept = _kept(known, [row[4:8] for row in rows])
        return [(*row[:-1], seen or self._look(path, row)) for row, seen in zip(rows, kept, strict=True)]

    def _known(self, path: str) -> list[tuple[_Cited, str]]:
        query = (
            "SELECT c.path, c.first, c.last, c.symbol, c.seen FROM citations AS c"
            " JOIN documents AS d ON d.id = c.document WHERE d.path = ? ORDER BY c.n"
        )
        return [(tuple(cited), seen) for *cited, seen in self._database.rows(query, (path,))]

    def _look(self, path: str, row: Row) -> str:
        """What a citation's code says now; many memories cite the same."""
        *_, cited, first, last, symbol, pin, in_link, _ = row
        if pin or not (first or symbol):
            return ""
        name = cited, first, last, symbol, path.rpartition("/")[0] if in_link else None
        if name not in self._pins:
            self._pins[name] = self._pin(path, row)
        return self._pins[name]

    def _pin(self, path: str, row: tuple[Any, ...]) -> str:
        if self._pinning is None:
            return ""
        if self._pinned is None:
            self._pinned = self._opened.enter_context(self._pinning(self._vault))
        _, line, _, _, cited, first, last, symbol, _, in_link, _ = row
        citation = kept_citation(cited, first, last, symbol, line=line or 0, in_link=bool(in_link))
        return self._pinned(self._vault.disk.in_workspace(path), citation)


def _kept(known: list[tuple[_Cited, str]], cited: list[_Cited]) -> list[str]:
    """What was first seen of each citation by those that are `known`; empty for one that is new."""
    if [each[0] for each, _ in known] == [each[0] for each in cited]:
        # The same files in the same order: one that names other lines now was made to, by whoever saw them.
        return [seen if each == before else "" for (before, seen), each in zip(known, cited, strict=True)]
    seen_of = dict(known)
    return [seen_of.get(each, "") for each in cited]


# Linux stamps files with a clock that ticks every 4 to 10 ms; some file systems count whole seconds only.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_COARSE_NS = 1_000_000


MOST_TOGETHER = 100
"""How many files a folder to read from may name at once."""


class Folder(NamedTuple):
    """A folder to read from.

    Attributes:
        root, parts: where it is: the names `parts` below the absolute path `root`.
        files: of each file, the path in the vault and the name in the folder.
    """

    root: str
    parts: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


class Read(NamedTuple):
    """A file that was read.

    Attributes:
        path: in the vault.
        seen: what it was like before it was read.
        racy: whether it may be written once more and look the same.
        hash: the SHA-256 of its bytes; empty when they were not read.
        data: its bytes.
        problem: why it is not a memory; empty when that is not known yet.
    """

    path: str
    seen: Seen
    racy: bool
    hash: str
    data: bytes
    problem: str = ""


class Understood(NamedTuple):
    """What a file says, for each store that asks; with a `problem` there is neither."""

    record: Record | None
    indexed: Indexed | None
    problem: str = ""


def read(folder: Folder, limits: Limits) -> list[Read | None]:
    """Read the files of a folder; None for those that are gone.

    Raises:
        StorageFailed: the folder cannot be opened.
    """
    try:
        place = "/".join(folder.parts) or folder.root
        with files.translated(place, "open it"), files.opened(folder.root, folder.parts) as descriptor:
            return [_file(descriptor, path, name, limits.max_bytes) for path, name in folder.files]
    except (MemoryNotFound, PathRefused):
        # It is gone, or something else stands there, which is never followed.
        return [None] * len(folder.files)


def understand(read: Read, limits: Limits, *, texts: bool = True) -> Understood:
    """Parse what was read, for the text index where `texts` are wanted."""
    if read.problem:
        return Understood(None, None, read.problem)
    try:
        document = parse(read.path, read.data, limits)
        found = record(document, read.seen.modified)
        if not texts:
            return Understood(found, None)
        from mdmem.index.passages import indexed  # noqa: PLC0415 - start-up

        return Understood(found, indexed(document, read.seen.modified))
    except DocumentRefused as error:
        return Understood(None, None, error.message)


def retold(read: Read, limits: Limits, tags: Sequence[str]) -> Indexed:
    """What the text index keeps of a memory that was understood before, and has the same `tags`."""
    from mdmem.index.passages import indexed  # noqa: PLC0415 - start-up

    return indexed(parse(read.path, read.data, limits), read.seen.modified, tags)


def _file(folder: int, path: str, name: str, most: int) -> Read | None:
    now = time.time_ns()
    try:
        name = files.spelled_in(folder, name)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    seen = Seen(changed_at(status), status.st_ctime_ns, status.st_size, status.st_ino)
    racy = _is_racy(seen, now)
    problem = fault(status)
    if not problem and seen.size > most:
        problem = TooLarge(path=path, size=seen.size, limit=most).message
    if problem:
        return Read(path, seen, racy, "", b"", problem)
    try:
        content = files.read(folder, name)
    except FileNotFoundError:
        return None
    except PathRefused as error:
        return Read(path, seen, racy, "", b"", error.message)
    except OSError as error:
        if error.errno in files.EXHAUSTED:
            raise  # it would stay unread until it changes
        return Read(path, seen, racy, "", b"", files.refusal(error, path, "read it").message)
    from hashlib import sha256  # noqa: PLC0415 - start-up

    racy = racy or content.stamp != files.stamp(status)
    return Read(path, seen, racy, sha256(content.data).hexdigest(), content.data)


def _is_racy(seen: Seen, now: int) -> bool:
    """Whether a file may be written once more and look the same; `now` is before it was read."""
    changed = max(seen.mtime_ns, seen.ctime_ns)
    tick = _COARSE_TICK_NS if seen.mtime_ns % _COARSE_NS == 0 else _TICK_NS
    return changed > now - tick


# So many memories are committed at once: what an interrupted first run has done is kept.
_BATCH = 5_000
# From so many files on, looking for circles in memory takes a tenth of the time.
_MANY = 1_000


class Work(NamedTuple):
    """What has to be done.

    Attributes:
        read: paths to read: new ones, and those that are not as they were.
        problems: files that are no memories, as they look, with the reason.
        gone: known paths where nothing stands any more.
    """

    read: tuple[str, ...] = ()
    problems: tuple[tuple[str, Seen, str], ...] = ()
    gone: tuple[str, ...] = ()


class _Old(NamedTuple):
    """What the database holds of a file."""

    hash: str
    problem: str
    day: str
    dated: bool
    ident: str


class _Left(NamedTuple):
    """A memory that is gone; one that came may be it, elsewhere."""

    path: str
    old: _Old


class Sync:
    """One run, under the lock of the index: it reads files, and writes what they say to both stores.

    The database is written first, and notes whose text is still to come. What a crash leaves in between, or a
    run without the text index, is read again by the next run.
    """

    def __init__(
        self, vault: Vault, database: Database, text: TextIndex | None, pinning: Pinning | None = None
    ) -> None:
        self._vault = vault
        self._database = database
        self._text = text
        self._first = not database.rows("SELECT 1 FROM documents LIMIT 1")
        self._pending = {path for (path,) in database.rows("SELECT path FROM pending")} if text else set()
        self._first_seen = FirstSeen(vault, database, pinning, is_new=self._first)
        # What became of memories: their id and hash, by path.
        self._created: dict[str, tuple[str, str]] = {}
        self._gone: dict[str, tuple[str, str]] = {}
        self._changed: list[str] = []
        # By hash and name of the file: what only moved to another folder keeps its rows.
        self._left: dict[tuple[str, str], _Left] = {}

    def run(self, work: Work, progress: Progress | None = None) -> Synced:
        """Take in what a look found; `progress` is told how many of how many files are done."""
        if self._text and self._pending:
            self._text.sweep()
        todo = {*work.read, *self._pending} - {path for path, *_ in work.problems}
        # What is read as well as gone may be back by then; what is gone when it is read comes to this list.
        gone = sorted(set(work.gone) - todo)
        try:
            with (
                self._database.filling() if self._first else contextlib.nullcontext(),
                _uncollected() if len(todo) >= _MANY else contextlib.nullcontext(),
                self._first_seen,
            ):
                for path in work.gone:
                    if old := self._old(path):
                        self._first_seen.keep(path, (old.ident, old.hash))
                        if path not in todo and not old.problem:
                            self._left[old.hash, _name(path)] = _Left(path, old)
                problems = (
                    Read(path, seen, racy=False, hash="", data=b"", problem=why)
                    for path, seen, why in work.problems
                )
                found = self._reads(sorted(todo), gone, progress)
                reads = chain(problems, found)
                for rest in range(len(work.problems) + len(todo), -1, -_BATCH):
                    more = rest > _BATCH
                    self._take(islice(reads, _BATCH if more else None), () if more else gone, more=more)
        except BaseException:
            # What is not committed would be with the next run, which takes in the same memories.
            if self._text:
                self._text.close()
            raise
        return self._result()

    def _old(self, path: str) -> _Old | None:
        if self._first:
            return None
        query = "SELECT hash, problem, day, dated, ident FROM documents WHERE path = ?"
        rows = self._database.rows(query, (path,))
        return _Old(*rows[0]) if rows else None

    # -- reading ------------------------------------------------------------------------------------------

    def _reads(self, paths: Sequence[str], gone: list[str], progress: Progress | None) -> Iterator[Read]:
        """The files that are there; the others are added to `gone`."""
        limits, done = self._vault.config.limits, 0
        for folder in self._folders(paths):
            for (path, _), found in zip(folder.files, read(folder, limits), strict=True):
                if found is None:
                    gone.append(path)
                else:
                    yield found
            done += len(folder.files)
            if progress:
                progress(done, len(paths))

    def _folders(self, paths: Sequence[str]) -> Iterator[Folder]:
        """The files at `paths` by their folders, not too many at once."""
        places = ((path, self._vault.disk.place(path)) for path in paths)
        for (root, parts), group in groupby(places, key=lambda each: (each[1].root, each[1].parts[:-1])):
            named = [(path, place.parts[-1]) for path, place in group]
            for start in range(0, len(named), MOST_TOGETHER):
                yield Folder(root, parts, tuple(named[start : start + MOST_TOGETHER]))

    # -- writing ------------------------------------------------------------------------------------------

    def _take(self, reads: Iterable[Read], gone: Sequence[str], *, more: bool) -> None:
        """Write what was read to both stores, and forget what is `gone` by then."""
        entries: list[DocumentRow] = []
        same: list[tuple[str, Read]] = []
        texts: list[str] = []
        for each in reads:
            old = self._old(each.path)
            is_same = old is not None and _is_as_it_was(old, each)
            if is_same:
                same.append((each.path, each))
                if each.path not in self._pending:
                    continue
            elif old is None and (left := self._came_from(each)):
                same.append((left.path, each))
                texts += (left.path, each.path)
                continue
            found = understand(each, self._vault.config.limits, texts=self._text is not None)
            if not is_same:
                entries.append(self._entry(each, found))
                self._note(old, entries[-1])
            texts.append(each.path)
            self._take_text(each.path, found.indexed)
        for path in gone:
            old = self._old(path)
            if old and not old.problem:
                self._gone[path] = old.ident, old.hash
            self._take_text(path, None)
        self._write(entries, same, gone, [*texts, *gone], more=more)

    def _came_from(self, read: Read) -> _Left | None:
        """Where a memory stood whose rows it keeps, and whose text is taken in; None for any other one."""
        left = self._left.get((read.hash, _name(read.path)))
        if left is None or not _is_as_it_was(left.old, read):
            return None
        if self._text:
            tags = self._database.tags(left.path)
            self._take_text(left.path, None)
            self._take_text(read.path, retold(read, self._vault.config.limits, tags))
        del self._left[read.hash, _name(read.path)]
        self._gone[left.path] = self._created[read.path] = left.old.ident, read.hash
        return left

    def _take_text(self, path: str, indexed: Indexed | None) -> None:
        """Take what a memory says in the place of what it said; None for one that is gone."""
        if self._text is None:
            return
        if not self._first:
            self._text.remove(path)
        if indexed:
            self._text.add(indexed)

    def _entry(self, read: Read, found: Understood) -> DocumentRow:
        """The rows of a file; what cannot be read as a memory has a problem instead of a record."""
        made = found.record
        if made and made.citations:
            marks = made.summary.ident, read.hash
            made = made._replace(citations=self._first_seen.taken(read.path, marks, made.citations))
        return DocumentRow(read.path, read.seen, read.racy, read.hash, found.problem, made)

    def _note(self, old: _Old | None, entry: DocumentRow) -> None:
        """Note what became of a memory."""
        was, summary = old is not None and not old.problem, entry.record.summary if entry.record else None
        if summary and was:
            self._changed.append(entry.path)
        elif summary:
            self._created[entry.path] = summary.ident, entry.hash
        elif old and was:
            self._gone[entry.path] = old.ident, old.hash

    def _write(
        self,
        entries: list[DocumentRow],
        same: list[tuple[str, Read]],
        gone: Sequence[str],
        texts: Sequence[str],
        *,
        more: bool,
    ) -> None:
        database = self._database
        if not (entries or same or texts):
            return
        with database.writing():
            for path, read in same:
                database.see(path, read.path, read.seen, racy=read.racy)
            database.replace(entries)
            database.forget(gone)
            database.write("INSERT OR IGNORE INTO pending VALUES (?)", [(path,) for path in texts])
        if texts and self._text:
            opstamp = self._text.commit(more=more)
            with database.writing():
                database.write("DELETE FROM pending WHERE path = ?", [(path,) for path in texts])
                database.set_value("opstamp", opstamp)

    # -- what came of it ----------------------------------------------------------------------------------

    def _result(self) -> Synced:
        moved = moves(self._gone, self._created)
        if moved or self._created:
            with self._database.writing():
                self._database.note_moves(moved, self._created)
        return Synced(
            created=tuple(sorted(self._created.keys() - moved.values())),
            changed=tuple(sorted(self._changed)),
            removed=tuple(sorted(self._gone.keys() - moved.keys())),
            moved=tuple(sorted(moved.items())),
        )


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for circles: what is parsed has none, and there is a lot of it."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_as_it_was(old: _Old, read: Read) -> bool:
    """Whether nothing that the index holds has changed; the day of a memory may be that of its file."""
    if not read.hash:
        return (old.hash, old.problem) == ("", read.problem)
    return old.hash == read.hash and bool(
        old.problem or old.dated or old.day == day_of(read.path, {}, read.seen.modified)
    )
