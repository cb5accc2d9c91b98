"""Vectors: where those of passages, and of the memories of programs, are kept and compared.

A vector is kept as whole numbers of 8 bits, and a scale that makes its length 1. A query is rounded alike, so
that every sum is exact: a cosine never depends on what else is kept, or in which order.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from sys import intern
from typing import Any, ClassVar, Protocol

from mdmem.errors import ExtraMissing, IndexDamaged, Usage
from mdmem.index.database import SCHEMA, Database

NAME = "vectors.sqlite"
"""The file, in the folder of the index."""

_ASIDE, _BESIDE = ".damaged", ("-wal", "-shm")  # behind its name
_SCRIPT = """
CREATE TABLE vectors (
    n INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL,
    scale REAL NOT NULL, numbers BLOB NOT NULL, UNIQUE (model, owner, key)
);
CREATE TABLE passages (
    n INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, path TEXT NOT NULL, hash TEXT NOT NULL,
    keys TEXT NOT NULL, ready INTEGER NOT NULL DEFAULT 0, UNIQUE (model, path)
);
CREATE TABLE removals (n INTEGER NOT NULL);
INSERT INTO removals VALUES (random());
CREATE TRIGGER removed AFTER DELETE ON vectors BEGIN UPDATE removals SET n = n + 1; END;
"""
_OWN = "SELECT {} FROM vectors {} WHERE model = ? AND owner = ? AND length(numbers) = ?"
_LARGEST = 127  # of 8 bits with a sign
_CHUNK = 4_096  # vectors that are read, and compared, at once


class Vectors(Protocol):
    """Where vectors of a model, each of `dims` numbers, are kept and compared, by keys that are texts."""

    model: str

    @property
    def dims(self) -> int:
        """How many numbers each has."""

    def put(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Keep vectors; they replace those with the same keys."""

    def remove(self, keys: Iterable[str]) -> None:
        """Forget the vectors with these keys, if there are any."""

    def compare(self, vector: Sequence[float], keys: Collection[str]) -> Mapping[str, float]:
        """Return the cosine, -1 to 1, to each of the keys that has a vector."""

    def nearest(self, vector: Sequence[float], k: int, among: Collection[str]) -> Sequence[tuple[str, float]]:
        """Return the k nearest of some keys with their cosines, the best first, equal ones by key."""


class VectorDatabase(Database):
    """The database of vectors, and of the passages that each memory has; see `Database`."""

    schema: ClassVar = SCHEMA._replace(script=_SCRIPT, version=2)
    indexes: ClassVar = {}


class VectorFile:
    """The database of the vectors of a vault; its file is made when something is first written.

    One object may be used by several threads. A file that is damaged, or of an earlier version, is set aside.

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

    @property
    def exists(self) -> bool:
        """Whether anything is kept."""
        return os.path.exists(self.path)

    def delete(self) -> None:
        """Delete the file, and one that was set aside."""
        with self._guard:
            self._close("", *_BESIDE, _ASIDE)

    def _ask(self, ask: Callable[[VectorDatabase], Any]) -> Any:
        with self._guard:
            if self._database and self._database.replaced:
                self._close()
            try:
                self._database = self._database or VectorDatabase(self.path)
                return ask(self._database)
            except IndexDamaged as error:
                self._close(*_BESIDE)
                os.replace(self.path, self.path + _ASIDE)
                self._notes.append(f"the vectors were set aside, and are made again: {error.reason}")
                return self._ask(ask)

    def _close(self, *suffixes: str) -> None:
        database, self._database = self._database, None
        if database:
            database.close()
        for suffix in suffixes:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path + suffix)


class FolderVectors(Vectors):
    """Vectors in a file beside the index, compared by numpy: see `Vectors`.

    Those of other models are not used, and keys of another `owner` never seen.

    Raises:
        StorageFailed: the system refused.
        ExtraMissing: numpy is not installed.
        Usage: a vector has another number of numbers, is not finite, or is all zero.
    """

    def __init__(self, file: VectorFile, model: str, find_dims: Callable[[], int], owner: str = "") -> None:
        self.model = model
        self._file, self._find_dims, self._owner = file, find_dims, owner
        self._guard = threading.RLock()
        self._dims = self._last = 0
        self._removals: int | None = None  # tells when all is to be read again
        self._rows: dict[str, int] = {}
        self._blocks: list[tuple[Any, Any]] = []  # numbers and scales, of many vectors each
        self._among: tuple[object, int, list[str], Any] = (None, 0, [], None)

    @property
    def dims(self) -> int:
        """See `Vectors`: it is asked when it is first needed."""
        self._dims = self._dims or self._find_dims()
        return self._dims

    def put(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """See `Vectors`."""
        rounded = {key: self._round(vector) for key, vector in vectors.items()}
        rows = [(self.model, self._owner, key, s, numbers.tobytes()) for key, (numbers, s) in rounded.items()]
        insert = "INSERT OR REPLACE INTO vectors (model, owner, key, scale, numbers) VALUES (?, ?, ?, ?, ?)"
        self._file.write(insert, rows)

    def remove(self, keys: Iterable[str]) -> None:
        """See `Vectors`; of every model."""
        if self._file.exists:
            delete = "DELETE FROM vectors WHERE owner = ? AND key = ?"
            self._file.write(delete, [(self._owner, key) for key in keys])

    def compare(self, vector: Sequence[float], keys: Collection[str]) -> Mapping[str, float]:
        """See `Vectors`; only these are read."""
        np = _import_numpy()
        found = self._select("key, scale, numbers", keys)
        numbers = np.frombuffer(b"".join(row[2] for row in found), np.int8).reshape(-1, self.dims)
        scores = self._score(vector, numbers, np.array([row[1] for row in found]))
        return {row[0]: score for row, score in zip(found, scores.tolist(), strict=True)}

    def nearest(self, vector: Sequence[float], k: int, among: Collection[str]) -> Sequence[tuple[str, float]]:
        """See `Vectors`; all are kept in memory, and the same object `among` is looked up once."""
        np = _import_numpy()
        with self._guard:
            self._load()
            if self._among[0] is not among or self._among[1] != self._last:
                pairs = [pair for pair in self._rows.items() if pair[0] in among]
                rows = np.array([row for _, row in pairs], np.intp)
                self._among = among, self._last, [key for key, _ in pairs], rows
            _, _, known, rows = self._among
            blocks = [self._score(vector, *block) for block in self._blocks]
        scores = np.concatenate([np.empty(0), *blocks])[rows]
        least = np.partition(scores, -k)[-k] if 0 < k < len(scores) else -np.inf
        found = [(known[at], float(scores[at])) for at in np.flatnonzero(scores >= least)]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[: max(k, 0)]

    def holds(self, keys: Collection[str]) -> set[str]:
        """Return which of some keys have a vector."""
        return {key for (key,) in self._select("key", keys)}

    def _select(self, what: str, keys: Collection[str]) -> list[Any]:
        listed, found = [*keys], list[Any]()
        for start in range(0, len(listed), _CHUNK):
            some = listed[start : start + _CHUNK]
            query = f"{_OWN.format(what, '')} AND key IN ({', '.join('?' * len(some))})"
            found += self._file.rows(query, (self.model, self._owner, self.dims, *some))
        return found

    def _score(self, vector: Sequence[float], numbers: Any, scales: Any) -> Any:
        np = _import_numpy()
        asked, scale = self._round(vector)
        # No library for matrices: it would start threads, and add up in an order of its own.
        wide = (each.astype(np.int32) for each in (numbers, asked))  # einsum itself would widen them slowly
        return np.einsum("ij,j->i", *wide) * scales * scale

    def _round(self, vector: Sequence[float]) -> tuple[Any, float]:
        np = _import_numpy()
        given = np.asarray(vector, dtype=np.float64)
        most = np.abs(given).max(initial=0.0)
        if given.shape != (self.dims,) or not np.isfinite(most) or not most:
            problem = f"this is no vector of {self.model}: it has {given.size} numbers, or is not finite"
            raise Usage(problem=problem, remedy=f"give {self.dims} finite numbers that are not all zero")
        numbers = np.rint(given / most * _LARGEST).astype(np.int8)
        return numbers, 1 / float(np.sqrt(np.square(numbers.astype(np.float64)).sum()))

    def _load(self) -> None:
        """Read what was kept since the last look; everything, where something was removed."""
        np = _import_numpy()
        kept = self._file.rows("SELECT n, (SELECT max(n) FROM vectors) FROM removals") or [(None, 0)]
        if kept[0][0] != self._removals or not kept[0][1]:
            self._removals, self._last, self._rows, self._blocks = kept[0][0], 0, {}, []
            self._among = (None, 0, [], None)
        query = f"{_OWN.format('n, key, scale, numbers', 'NOT INDEXED')} AND n > ? ORDER BY n LIMIT ?"
        while found := self._file.rows(query, (self.model, self._owner, self.dims, self._last, _CHUNK)):
            count = sum(len(scales) for _, scales in self._blocks)
            self._rows.update((intern(row[1]), count + at) for at, row in enumerate(found))
            numbers = np.frombuffer(b"".join(row[3] for row in found), np.int8).reshape(-1, self.dims)
            scales = np.array([row[2] for row in found])
            if self._blocks and len(self._blocks[-1][1]) < _CHUNK:
                before = self._blocks.pop()
                numbers, scales = np.concatenate([before[0], numbers]), np.concatenate([before[1], scales])
            self._blocks.append((numbers, scales))
            self._last = found[-1][0]
        self._last = max(self._last, kept[0][1] or 0)  # the rest is of others


def _import_numpy() -> Any:
    try:
        import numpy  # noqa: PLC0415, ICN001 - an extra
    except ImportError:
        raise ExtraMissing(extra="semantic", package="numpy") from None
    return numpy
