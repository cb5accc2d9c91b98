"""What the index first saw of cited code: the baseline of citations without a pin that git does not know.

It is kept with the citation for as long as that stands in its memory, also when the memory moves. It is the
one thing in the index that the files do not say: who needs it for good writes pins (`mdmem refs --pin`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

from mdmem.index.record import Row, kept_citation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from mdmem.index.database import Database
    from mdmem.vault.vault import Vault

_Cited: TypeAlias = tuple[Any, ...]


class FirstSeen:
    """Puts what is first seen into the rows of citations; a context, which ends what it had to open.

    `is_new` says that the database holds nothing yet.
    """

    def __init__(self, vault: Vault, database: Database, *, is_new: bool = False) -> None:
        self._vault = vault
        self._database = database
        self._is_new = is_new
        self._pins: dict[_Cited, str] = {}
        self._gone: dict[str, list[tuple[_Cited, str]]] = {}
        self._workspace: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._workspace is not None:
            self._workspace.close()

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

    def _pin(self, path: str, row: Row) -> str:
        from mdmem.index.citations import pin as pin_now  # noqa: PLC0415 - only where code is cited
        from mdmem.index.workspace import Workspace  # noqa: PLC0415 - as above

        _, line, _, _, cited, first, last, symbol, _, in_link, _ = row
        if self._workspace is None:
            self._workspace = Workspace(self._vault.workspace)
        citation = kept_citation(
            str(cited),
            _number(first),
            _number(last),
            str(symbol),
            line=int(line or 0),
            in_link=bool(in_link),
        )
        return pin_now(self._workspace, self._vault.disk.in_workspace(path), citation)


def _kept(known: list[tuple[_Cited, str]], cited: list[_Cited]) -> list[str]:
    """What was first seen of each citation by those that are `known`; empty for one that is new."""
    if [each[0] for each, _ in known] == [each[0] for each in cited]:
        # The same files in the same order: one that names other lines now was made to, by whoever saw them.
        return [seen if each == before else "" for (before, seen), each in zip(known, cited, strict=True)]
    seen_of = dict(known)
    return [seen_of.get(each, "") for each in cited]


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
