"""Fixtures that tests of the index share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from mdmem.document.document import ANY_SUFFIXES, Document, Limits, parse_text
from mdmem.errors import MemoryNotFound
from mdmem.index.database import Name, key_of, record
from mdmem.index.links.move import Known
from mdmem.index.links.resolve import Resolution, resolve_link
from mdmem.vault.paths import MemoryLayout
from mdmem.vault.plan import EditPlan, refuse_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Notes:
    """Memories in memory: what a move has to know of them, and what becomes of them by a plan.

    Attributes:
        documents: the memories, by path.
        others: files that are no memories; `../src/app.py` is beside the vault.
        layout: where they stand on disk.
        reads: the paths that were read, in order.
    """

    def __init__(
        self,
        texts: Mapping[str, str] | Sequence[str],
        others: Iterable[str] = (),
        layout: MemoryLayout | None = None,
    ) -> None:
        texts = texts if isinstance(texts, Mapping) else dict.fromkeys(texts, "")
        self.documents = {path: parse_text(path, text) for path, text in texts.items()}
        self.others = tuple(others)
        self.layout = layout or MemoryLayout()
        self.reads: list[str] = []

    @cached_property
    def _names(self) -> dict[str, list[Name]]:
        return {path: record(each, 0).names for path, each in sorted(self.documents.items())}

    @cached_property
    def _keys(self) -> dict[str, set[str]]:
        return {path: {key_of(link.target) for link in each.links} for path, each in self.documents.items()}

    @property
    def texts(self) -> dict[str, str]:
        return {path: document.text for path, document in sorted(self.documents.items())}

    def named(self, kind: str, key: str) -> list[str]:
        if kind == "file":
            return sorted(path for path in self.others if not path.startswith("..") and key_of(path) == key)
        return [path for path, names in self._names.items() if (kind, key) in names]

    def sources(self, keys: Iterable[str]) -> list[str]:
        wanted = set(keys)
        return [path for path, keys_of_links in self._keys.items() if keys_of_links & wanted]

    def exists(self, path: str) -> bool:
        every = (*self.documents, *self.others)
        return any(each == path or each.startswith(f"{path}/") for each in every)

    def read(self, path: str) -> Document:
        self.reads.append(path)
        if path not in self.documents:
            raise MemoryNotFound(path=path)
        return self.documents[path]

    @property
    def known(self) -> Known:
        return Known(
            names=self, sources=self.sources, read=self.read, stands=self.exists, suffixes=ANY_SUFFIXES
        )

    def after(self, plan: EditPlan) -> Notes:
        """The memories as they are when the plan is applied."""
        refuse_paths(plan, ANY_SUFFIXES)
        texts = self.texts
        for change in plan.changes:
            assert change.before is not None
            assert change.before.text == texts.pop(change.path)
        for change in plan.changes:
            made = change.after(Limits())
            assert made is not None
            assert made.path not in texts
            texts[made.path] = made.text
        return Notes(texts, self.others, self.layout)

    def meant(self, path: str) -> list[Resolution]:
        """What each link of a memory means."""
        return [resolve_link(self, link, path) for link in self.documents[path].links]


@pytest.fixture(scope="session")
def notes() -> type[Notes]:
    """Makes memories in memory, of texts by path."""
    return Notes
