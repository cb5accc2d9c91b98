"""Sync: make the index say what the files say, by reading only what has changed.

A file is as it was when its times, size and inode are. Where its times are so close to the moment at which it
was read that a later write could have left the same ones, it is read again, as git does with its index
(racy-git.txt in git's technical documentation).
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from mdmem.index.database import Database, Entry, Seen
from mdmem.index.first_seen import FirstSeen
from mdmem.index.hit import day_of
from mdmem.index.reading import MOST_TOGETHER, Folder, Read, Understood, read, retold, understand
from mdmem.index.synced import Progress, Synced, moves

if TYPE_CHECKING:  # many runs do without
    from mdmem.index.passage import Indexed
    from mdmem.index.text import TextIndex
    from mdmem.vault.vault import Vault

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

    def __init__(self, vault: Vault, database: Database, text: TextIndex | None) -> None:
        self._vault = vault
        self._database = database
        self._text = text
        self._first = not database.rows("SELECT 1 FROM documents LIMIT 1")
        self._pending = {path for (path,) in database.rows("SELECT path FROM pending")} if text else set()
        self._first_seen = FirstSeen(vault, database, is_new=self._first)
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

    def _take(
        self,
        reads: Iterable[Read],
        gone: Sequence[str],
        *,
        more: bool = False,
    ) -> None:
        """Write what was read to both stores, and forget what is `gone` by then."""
        entries: list[Entry] = []
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

    def _entry(self, read: Read, found: Understood) -> Entry:
        """The rows of a file; what cannot be read as a memory has a problem instead of a record."""
        made = found.record
        if made and made.citations:
            marks = made.summary.ident, read.hash
            made = made._replace(citations=self._first_seen.taken(read.path, marks, made.citations))
        return Entry(read.path, read.seen, read.racy, read.hash, found.problem, made)

    def _note(self, old: _Old | None, entry: Entry) -> None:
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
        entries: list[Entry],
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
        old.problem or old.dated or old.day == day_of(read.path, {}, read.modified)
    )
