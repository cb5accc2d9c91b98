"""The vectors that programs keep for memories of a vault in PostgreSQL: a table of pgvector."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from mdmem.errors import DatabaseFailed, NotProvided, Usage
from mdmem.vault.connection import DIMS, Connections

_FETCHED = 500  # keys that are streamed at once
_PUT = """
INSERT INTO mdmem.embedding VALUES (%s, %s, %s, %s, %s::{0}.vector)
ON CONFLICT (vault, owner, key, model) DO UPDATE SET numbers = excluded.numbers
"""
_REMOVE = "DELETE FROM mdmem.embedding WHERE vault = %s AND owner = %s AND key = ANY(%s)"
_COMPARE = """
SELECT key, 1 - (numbers OPERATOR({0}.<=>) %s::{0}.vector) FROM mdmem.embedding
WHERE vault = %s AND owner = %s AND model = %s
"""
_NEAREST = "DECLARE near NO SCROLL CURSOR FOR {} ORDER BY 2 DESC, 1"


class PostgresVectors:
    """Vectors of a vault in a database, compared exactly by it: see `Vectors`.

    Raises:
        NotProvided: it has no table of vectors.
        Usage: a vector has another number of numbers, is not finite, or is all zero.
    """

    def __init__(self, database: Connections, model: str, owner: str) -> None:
        self.model = model
        self._database, self._vault, self._owner = database, database.address.vault, owner

    @cached_property
    def _type(self) -> tuple[int, str]:
        with self._database.translated("read its vectors"):
            rows = self._database.ask(DIMS, [])
        if not rows:
            problem = f"{self._database.address.shown}: the database has no table of vectors"
            raise NotProvided(problem=problem, remedy="make it: see `mdmem store init --help`")
        dims, name = rows[0]
        return dims, name

    @property
    def dims(self) -> int:
        """See `Vectors`."""
        return self._type[0]

    def put(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """See `Vectors`."""
        own = self._vault, self._owner
        # Always in the same order, so that two servers cannot block each other for ever.
        rows = [(*own, key, self.model, self._write(vectors[key])) for key in sorted(vectors)]
        self._change("keep vectors", _PUT, rows)

    def _change(self, action: str, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        statement = statement.format(self._type[1])

        def run() -> None:
            with self._database.begun() as connection:
                connection.cursor().executemany(statement, rows)
                connection.execute("COMMIT")

        try:
            with self._database.translated(action):
                self._database.repeat(run)  # to do it twice does no harm
        except DatabaseFailed as error:
            remedy = "the text was changed; see whether the database answers, and store the memory again"
            raise error.but(remedy=remedy) from None

    def remove(self, keys: Iterable[str]) -> None:
        """See `Vectors`; of every model."""
        with contextlib.suppress(NotProvided):
            self._change("forget vectors", _REMOVE, [(self._vault, self._owner, [*keys])])

    def compare(self, vector: Sequence[float], keys: Collection[str]) -> Mapping[str, float]:
        """See `Vectors`."""
        query, values = f"{_COMPARE.format(self._type[1])} AND key = ANY(%s)", self._name_own(vector)
        with self._database.translated("compare vectors"):
            return dict(self._database.ask(query, [*values, [*keys]]))

    def nearest(self, vector: Sequence[float], k: int, among: Collection[str]) -> Sequence[tuple[str, float]]:
        """See `Vectors`: the database streams keys, the nearest first, until enough of those are there."""
        query, values = _NEAREST.format(_COMPARE.format(self._type[1])), self._name_own(vector)
        found: list[tuple[str, float]] = []
        with self._database.translated("compare vectors"), self._database.begun() as connection:
            connection.execute(query, values)
            while len(found) < k and (rows := connection.execute(f"FETCH {_FETCHED} FROM near").fetchall()):
                found += [(key, cosine) for key, cosine in rows if key in among]
        return found[: max(k, 0)]

    def _name_own(self, vector: Sequence[float]) -> list[object]:
        return [self._write(vector), self._vault, self._owner, self.model]

    def _write(self, vector: Sequence[float]) -> str:
        """Write a vector as pgvector reads it; its length, which says nothing, never runs over."""
        most = max(map(abs, vector), default=0.0)
        if len(vector) != self.dims or not all(map(math.isfinite, vector)) or not most:
            problem = f"this is no vector of the vault: it has {len(vector)} numbers, or is not finite"
            raise Usage(problem=problem, remedy=f"give {self.dims} finite numbers that are not all zero")
        return str([float(number / most) for number in vector])
