"""Vectors: where those of passages, and of the memories of programs, are kept and compared.

A vector is kept as whole numbers of 8 bits, and a scale that makes its length 1. A query is rounded alike, so
that every sum is exact: a cosine never depends on what else is kept, or in which order.
"""

from __future__ import annotations

import contextlib
import os
import threading
from sys import intern
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mdmem.errors import IndexDamaged, Usage
from mdmem.index.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

NAME = "vectors.sqlite"
"""The file, in the folder of the index."""

_ASIDE, _BESIDE = ".damaged", ("-wal", "-shm")  # behind its name
_SCHEMA = """
CREATE TABLE vectors (
    n INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL,
    scale REAL NOT NULL, numbers BLOB NOT NULL, UNIQUE (model, owner, key)
);
CREATE TABLE passages (
    model TEXT NOT NULL, path TEXT NOT NULL, hash TEXT NOT NULL, keys TEXT NOT NULL,
    PRIMARY KEY (model, path)
) WITHOUT ROWID;
CREATE TABLE removals (n INTEGER NOT NULL);
INSERT INTO removals VALUES (0);
CREATE TRIGGER removed AFTER DELETE ON vectors BEGIN UPDATE removals SET n = n + 1; END;
"""
_LARGEST = 127  # of 8 bits with a sign
_CHUNK = 4_096  # vectors that are read, and compared, at once


class Vectors(Protocol):
    """Where vectors of a model, each of `dims` numbers, are kept and compared, by keys that are texts."""

    model: str
    dims: int

    def put(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Keep vectors; they replace those with the same keys."""

    def remove(self, keys: Iterable[str]) -> None:
        """Forget the vectors with these keys, if there are any."""

    def compare(self, vector: Sequence[float], keys: Collection[str]) -> Mapping[str, float]:
        """Return the cosine, -1 to 1, to each of the keys that has a vector."""

    def nearest(self, vector: Sequence[float], k: int, among: Collection[str]) -> Sequence[tuple[str, float]]:
        """Return the k nearest of some keys with their cosines, the best first, equal ones by key."""


class VectorDatabase(Database):
    """The database of vectors, and of which passages memories have; see `Database`."""

    schema: ClassVar = _SCHEMA
    version: ClassVar = 1
    indexes: ClassVar = {}


class VectorFile:
    """The database of the vectors of a vault; its file is made when something is first written.

    One object may be used by several threads. A file that is damaged, or of another version, is set aside.

    Args:
        path: of the file, in a folder that was made here.
        notes: takes the warnings.

    Raises:
        StorageFailed: the system refused; raised by each method.
    """

    def __init__(self, path: str, notes: list[str]) -> None:
        self.path, self._notes = path, notes
        self._guard = threading.RLock()
        self._database: VectorDatabase | None = None

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query; none where there is no file."""
        found: list[Any] = self._ask(lambda each: each.rows(query, values)) if self.exists else []
        return found

    def write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values, in one transaction."""
        listed = [tuple(row) for row in rows]

        def write(database: VectorDatabase) -> None:
            with database.writing():
                database.write(statement, listed)

        if listed:
            self._ask(write)

    def stamp(self) -> object:
        """Return what differs after the file was changed, by whichever process; None where there is none."""
        return self._ask(lambda each: (each.identity, each.changes(), each.written)) if self.exists else None

    @property
    def exists(self) -> bool:
        """Whether anything is kept."""
        return os.path.exists(self.path)

    def delete(self) -> None:
        """Delete the file, and one that was set aside."""
        with self._guard:
            self._close()
            for suffix in ("", *_BESIDE, _ASIDE):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path + suffix)

    def _ask(self, ask: Callable[[VectorDatabase], Any]) -> Any:
        with self._guard:
            if self._database and self._database.replaced:
                self._close()
            try:
                return ask(self._open())
            except IndexDamaged as error:
                self._close()
                for suffix in _BESIDE:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self.path + suffix)
                os.replace(self.path, self.path + _ASIDE)
                self._notes.append(f"the vectors were set aside, and are made again: {error.reason}")
                return ask(self._open())

    def _open(self) -> VectorDatabase:
        self._database = self._database or VectorDatabase(self.path)
        return self._database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database:
            database.close()


class FolderVectors(Vectors):
    """Vectors in a file beside the index, compared by numpy: see `Vectors`.

    Args:
        file: keeps them.
        model: whose they are; those of others are not used.
        dims: how many numbers each has.
        owner: tells apart who uses the file: keys of others are never seen.

    Raises:
        StorageFailed: the system refused.
        Usage: a vector has another number of numbers, is not finite, or is all zero.
    """

    def __init__(self, file: VectorFile, model: str, dims: int, owner: str = "") -> None:
        self.model, self.dims = model, dims
        self._file, self._owner = file, owner
        self._guard = threading.RLock()
        self._stamp: object = None
        self._last = self._count = 0
        self._removals = -1
        self._rows: dict[str, int] = {}
        self._among: tuple[object, object, Any] = (None, None, None)

    def put(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """See `Vectors`."""
        rows = []
        for key, vector in vectors.items():
            numbers, scale = self._round(vector)
            rows.append((self.model, self._owner, key, scale, numbers.tobytes()))
        insert = "INSERT OR REPLACE INTO vectors (model, owner, key, scale, numbers) VALUES (?, ?, ?, ?, ?)"
        self._file.write(insert, rows)

    def remove(self, keys: Iterable[str]) -> None:
        """See `Vectors`; of every model."""
        if self._file.exists:
            delete = "DELETE FROM vectors WHERE owner = ? AND key = ?"
            self._file.write(delete, [(self._owner, key) for key in keys])

    def compare(self, vector: Sequence[float], keys: Collection[str]) -> Mapping[str, float]:
        """See `Vectors`."""
        with self._guard:
            self._load()
            known = [key for key in keys if key in self._rows]
            scores = self._score(vector, [self._rows[key] for key in known])
        return dict(zip(known, scores.tolist(), strict=True))

    def nearest(self, vector: Sequence[float], k: int, among: Collection[str]) -> Sequence[tuple[str, float]]:
        """See `Vectors`; the same object `among` is looked up once."""
        import numpy as np  # noqa: PLC0415 - an extra

        with self._guard:
            self._load()
            if self._among[0] is not among or self._among[1] != self._stamp:
                known = sorted((key for key in among if key in self._rows), key=self._rows.__getitem__)
                self._among = among, self._stamp, (known, np.array([self._rows[key] for key in known]))
            known, rows = self._among[2]
            scores = self._score(vector, rows)
        if 0 < k < len(scores):
            least = np.partition(scores, -k)[-k]
            pairs = [(known[at], float(scores[at])) for at in np.flatnonzero(scores >= least)]
        else:
            pairs = list(zip(known, scores.tolist(), strict=True))
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[: max(k, 0)]

    def holds(self, keys: Iterable[str]) -> set[str]:
        """Return which of some keys have a vector."""
        with self._guard:
            self._load()
            return {key for key in keys if key in self._rows}

    def _score(self, vector: Sequence[float], rows: Any) -> Any:
        """Return the cosines of a vector to those in some rows: sums of whole numbers, times two scales."""
        import numpy as np  # noqa: PLC0415 - an extra

        asked, scale = self._round(vector)
        wide, scores = asked.astype(np.int32), np.empty(len(rows))
        for start in range(0, len(rows), _CHUNK):
            some = rows[start : start + _CHUNK]
            # No library for matrices: it would start threads, and add up in an order of its own.
            products = np.einsum("ij,j->i", self._matrix[some], wide)
            scores[start : start + _CHUNK] = products * self._scales[some] * scale
        return scores

    def _round(self, vector: Sequence[float]) -> tuple[Any, float]:
        """Round a vector to whole numbers of 8 bits, and return the scale that makes its length 1."""
        import numpy as np  # noqa: PLC0415 - an extra

        given = np.asarray(vector, dtype=np.float64)
        most = np.abs(given).max(initial=0.0)
        if given.shape != (self.dims,) or not np.isfinite(most) or not most:
            problem = f"this is no vector of {self.model}: it has {given.size} numbers, or is not finite"
            raise Usage(problem=problem, remedy=f"give {self.dims} finite numbers that are not all zero")
        numbers = np.rint(given / most * _LARGEST).astype(np.int8)
        return numbers, 1 / float(np.sqrt(np.square(numbers.astype(np.float64)).sum()))

    def _load(self) -> None:
        """Read what was kept since the last look; everything, where something was removed."""
        import numpy as np  # noqa: PLC0415 - an extra

        stamp = self._file.stamp()
        if stamp == self._stamp and stamp is not None:
            return
        removals = next((n for (n,) in self._file.rows("SELECT n FROM removals")), 0)
        is_other = stamp is None or self._stamp is None or stamp[0] != self._stamp[0]  # type: ignore[index]
        ours = (self.model, self._owner)
        if is_other or removals != self._removals:
            count = "SELECT count(*) FROM vectors WHERE model = ? AND owner = ?"
            most = next((most for (most,) in self._file.rows(count, ours)), 0)
            self._last, self._count, self._rows = 0, 0, {}
            self._matrix, self._scales = np.empty((most, self.dims), np.int8), np.empty(most)
        query = (
            "SELECT n, key, scale, numbers FROM vectors NOT INDEXED"
            " WHERE model = ? AND owner = ? AND n > ? AND length(numbers) = ? ORDER BY n LIMIT ?"
        )
        while found := self._file.rows(query, (*ours, self._last, self.dims, _CHUNK)):
            start, end = self._count, self._count + len(found)
            if end > len(self._matrix):
                most = end + end // 8  # room for more, so that not each new one copies all
                self._matrix = np.concatenate(
                    [self._matrix[:start], np.empty((most - start, self.dims), np.int8)]
                )
                self._scales = np.concatenate([self._scales[:start], np.empty(most - start)])
            numbers = np.frombuffer(b"".join(row[3] for row in found), np.int8)
            self._matrix[start:end] = numbers.reshape(-1, self.dims)
            self._scales[start:end] = [row[2] for row in found]
            self._rows.update((intern(row[1]), start + at) for at, row in enumerate(found))
            self._last, self._count = found[-1][0], end
        self._stamp, self._removals = stamp, removals
