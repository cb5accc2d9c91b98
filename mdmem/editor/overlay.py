"""An overlay: the index of a namespace, in which texts that are open in an editor replace those on disk.

The rows of open memories are left out of each answer, and those that the open texts would have are added.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.document import anchor
from mdmem.document.document import Document, Limits, parse_any, parse_text, without_suffix
from mdmem.errors import DocumentRefused, MemoryNotFound, NotEncodable
from mdmem.index.database import Name, Record, record, tag_key
from mdmem.index.view import NO_ANCHORS, Anchors, R, Value, View
from mdmem.vault.paths import is_under

if TYPE_CHECKING:
    from mdmem.index.index import Index
    from mdmem.vault.vault import Vault


class Opened:
    """A text that is open in an editor, parsed when that is needed; `refused` says why it is no memory."""

    def __init__(
        self, path: str, text: str, limits: Limits, is_data: Callable[[Document], bool] = lambda _: False
    ) -> None:
        self.text = text
        self._is_data = is_data
        self.refused: DocumentRefused | None = None
        self._document: Document | None = None
        try:
            self._document = parse_text(path, text, limits)
        except DocumentRefused as error:
            self.refused = error

    @cached_property
    def record(self) -> Record | None:
        """The rows that the index would have of it; None where it could have none."""
        try:
            found = self._document
            return record(found, 0.0, is_data=self._is_data(found)) if found else None
        except DocumentRefused as error:
            self.refused = error
            return None

    @property
    def document(self) -> Document | None:
        """The memory that it is; None where it cannot be one."""
        return self._document if self.record else None


class MemoryOutline(NamedTuple):
    """A memory as the index saw it last.

    Attributes:
        hash: of its bytes; empty for one that is open.
        called: all that somebody may call it, the name of its file first, casefolded: one a line, and a line
            end in front and behind.
    """

    hash: str
    title: str
    names: tuple[Name, ...]
    called: str

    @classmethod
    def of(cls, path: str, digest: str, title: str, names: Iterable[Name]) -> MemoryOutline:
        """Return that of a memory."""
        known = tuple(names)
        stem = without_suffix(path.rpartition("/")[2])
        others = (key for kind, key in known if kind != "stem")
        called = "\n".join((stem, path, title, *others)).casefold()
        return cls(digest, title, known, f"\n{called}\n")


class Memories:
    """What the index says of all memories of a namespace, kept while it stays the same.

    Several threads may use one.
    """

    def __init__(self) -> None:
        self.outlines: dict[str, MemoryOutline] = {}
        self.by_name: dict[Name, tuple[str, ...]] = {}
        self._stamp: object = None
        self._touched: set[str] = set()
        self._changed: set[Name] = set()
        self._lock = Lock()

    def take_changes(self) -> tuple[set[str], set[Name]]:
        """Return the memories that have come, gone or changed since this was asked last, and their names."""
        with self._lock:
            found = self._touched, self._changed
            self._touched, self._changed = set(), set()
            return found

    def refresh(self, view: View) -> None:
        """Look again, where the index has changed; `view` is of all memories, without anything open."""
        with self._lock:
            stamp = view.index.stamp()
            if stamp != self._stamp:
                self._look_again(view)
                self._stamp = stamp

    def _look_again(self, view: View) -> None:
        query = (
            "SELECT d.path, d.hash, d.title FROM documents AS d WHERE {inside} AND d.problem = ''"
            " ORDER BY d.path"
        )
        known = self.outlines
        now = {view.inside(path): (digest, title) for path, digest, title in view.rows(query)}
        touched = {path for path, each in now.items() if path not in known or known[path].hash != each[0]}
        touched |= known.keys() - now.keys()
        names: dict[str, list[Name]] = {}
        few = "AND d.path = ?" if len(touched) <= _FEW else ""
        for values in [(view.outside(path),) for path in touched] if few else [()]:
            for path, kind, key in view.part_rows("names", "d.path, x.kind, x.key", few, values):
                names.setdefault(view.inside(path), []).append((kind, key))
        outlines = {path: each for path, each in known.items() if path not in touched}
        changed = {name for path in touched & known.keys() for name in known[path].names}
        arrived: dict[Name, set[str]] = {}
        for path in touched & now.keys():
            outlines[path] = MemoryOutline.of(path, *now[path], names.get(path, ()))
            for name in outlines[path].names:
                arrived.setdefault(name, set()).add(path)
        changed |= arrived.keys()
        named = dict(self.by_name)
        for name in changed:
            stay = {path for path in named.get(name, ()) if path not in touched}
            named[name] = tuple(sorted(stay | arrived.get(name, set())))
        self.outlines, self.by_name = outlines, named
        self._touched |= touched
        self._changed |= changed


_FEW = 100


class Overlay(View):
    """A view with the open memories of an editor; call `Memories.refresh` first, as `Index.sync`."""

    def __init__(self, index: Index, vault: Vault, known: Memories, opened: Mapping[str, Opened]) -> None:
        super().__init__(index, vault)
        self.opened = opened
        self._known = known
        self._saved = View(index, vault)
        marks = ", ".join("?" * len(opened))
        self._wall += f" AND d.path NOT IN ({marks})"
        self._bounds += tuple(map(self.outside, opened))

    @cached_property
    def unsaved(self) -> Mapping[str, bytes]:  # type: ignore[override]
        """What stands in the editor, by the file, relative to the workspace."""
        documents = (each.document for each in self.opened.values())
        return {self.in_workspace(d.path): d.data for d in documents if d}

    @property
    def outlines(self) -> dict[str, MemoryOutline]:
        """Every memory by path, in no order."""
        mine = {
            path: MemoryOutline.of(path, "", each.summary.title, each.names)
            for path, each in self._records.items()
        }
        known = self._known.outlines
        return {**{path: each for path, each in known.items() if path not in self.opened}, **mine}

    @cached_property
    def _records(self) -> dict[str, Record]:
        return {path: each.record for path, each in sorted(self.opened.items()) if each.record}

    def _open_rows(self, part: Callable[[Record], Iterable[R]]) -> Iterator[tuple[str, R]]:
        """Yield the rows that the open texts would have in a table, each behind the path of its memory."""
        for path, each in self._records.items():
            for row in part(each):
                yield path, row

    @cached_property
    def _open_names(self) -> dict[Name, list[str]]:
        found: dict[Name, list[str]] = {}
        for path, name in self._open_rows(lambda each: each.names):
            found.setdefault(name, []).append(path)
        return found

    @property
    def all_names(self) -> Overlay:  # type: ignore[override]
        """The names, which are loaded already."""
        return self

    def named(self, kind: str, key: str) -> list[str]:
        """See `View.named`."""
        if kind == "file":
            return super().named(kind, key)
        found = [path for path in self._known.by_name.get((kind, key), ()) if path not in self.opened]
        mine = self._open_names.get((kind, key))
        return sorted((*found, *mine)) if mine else found

    def _list_unread(self) -> Iterator[str]:
        yield from super()._list_unread()
        yield from (path for path, each in self.opened.items() if not each.record)

    def sources(self, keys: Iterable[str]) -> list[str]:
        """List the memories that have a link with one of these keys, by path."""
        keys = set(keys)
        mine = (path for path, link in self._open_rows(lambda each: each.links) if link.has_key(keys))
        return sorted({*super().sources(keys), *mine})

    def links_with(self, key: str) -> list[tuple[str, int, str, str, str, str]]:
        """List the links with a key: memory, line, kind, target, anchor and alias of each."""
        mine = [
            (path, link.line, link.kind, link.target, link.anchor, link.alias)
            for path, link in self._open_rows(lambda each: each.links)
            if link.has_key((key,))
        ]
        return [*super().links_with(key), *mine]

    def titles(self) -> list[tuple[str, int, str]]:
        """List the headings: memory, number in it from 0 on, and title of each, in order."""
        rows = self._open_rows(lambda each: each.sections)
        mine = [(path, section.n, section.path.rpartition("\n")[2]) for path, section in rows]
        return sorted((*super().titles(), *mine)) if mine else super().titles()

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is at `path`, in the namespace."""
        return path in self._open_places or super().exists(path)

    def stands(self, path: str) -> bool:
        """Return whether a file is at `path`, relative to the namespace."""
        return path in self._open_places or super().stands(path)

    @cached_property
    def _open_places(self) -> set[str]:
        return {place for path in self.opened for place in accumulate(path.split("/"), "{}/{}".format)}

    def read(self, path: str, *, unreadable: bool = False) -> Document:
        """Return the memory at `path`, as it is in the editor or on disk; see `Vault.read`."""
        opened = self.opened.get(path)
        if opened is None:
            return super().read(path, unreadable=unreadable)
        if opened.document is not None:
            return opened.document
        if unreadable and not isinstance(opened.refused, NotEncodable):
            return parse_any(path, opened.text.encode(), self.vault.config.limits)
        raise opened.refused or MemoryNotFound(path=path)

    def keys_of(self, path: str) -> list[str]:
        """List every key that a link to the memory at `path` may have."""
        if path not in self.opened:
            return super().keys_of(path)
        mine = self._records.get(path)
        return sorted(self._list_keys(path, mine.names)) if mine else []

    def anchors(self, path: str) -> Anchors:
        """Return what an anchor can name in the memory at `path`."""
        if path not in self.opened:
            return super().anchors(path)
        if path not in self._records:
            return NO_ANCHORS
        document = self.read(path)
        blocks = frozenset(block.id.casefold() for block in document.blocks)
        return Anchors(tuple(anchor.headings(document.sections)), blocks)

    def tags(self) -> list[tuple[str, int]]:
        """List the tags, each with the number of memories that have it, the most used first."""
        found = {tag_key(name): (name, count) for name, count in super().tags()}
        for each in self._records.values():
            names: dict[str, str] = {}
            for tag in each.tags:
                names[tag.key] = min(tag.name, names.get(tag.key, tag.name))
            for key, name in names.items():
                old, count = found.get(key, (name, 0))
                found[key] = min(old, name), count + 1
        return sorted(found.values(), key=lambda tag: (-tag[1], tag_key(tag[0])))

    def tagged(self, tag: str) -> list[str]:
        """List the memories that have a tag, or one below it, by path."""
        wanted = tag_key(tag.removeprefix("#"))
        mine = {path for path, each in self._open_rows(lambda each: each.tags) if is_under(each.key, wanted)}
        return sorted((*super().tagged(tag), *mine))

    def field_values(self, *keys: str) -> dict[str, list[tuple[str, Value]]]:
        """List the values of each field, each with its memory, in the order of the paths."""
        values = super().field_values(*keys)
        for path, field in self._open_rows(lambda each: each.fields):
            if field.key in values:
                insort(values[field.key], (path, field.value), key=itemgetter(0))
        return values

    def cited_paths(self) -> list[tuple[str, str, int]]:
        """List what memories cite: the memory, the path as cited, and whether it is that of a link."""
        mine = [(path, row.path, row.in_link) for path, row in self._open_rows(lambda each: each.citations)]
        return [*super().cited_paths(), *mine]

    def outward_links(self) -> list[tuple[str, str, str]]:
        """List the links that may lead out of the vault: memory, kind and target of each."""
        mine = [(path, row.kind, row.target) for path, row in self._open_rows(lambda each: each.links)]
        return [*super().outward_links(), *mine]

    def first_seen(self, path: str) -> dict[tuple[Any, ...], str]:
        """Return what was first seen of the code a memory cites, when it was saved last."""
        return self._saved.first_seen(path)

    def citing(self, paths: Collection[str] | None = None) -> list[str]:
        """List the memories, or those of `paths`, that cite code."""
        mine = (path for path, each in self._records.items() if each.citations)
        return sorted((*super().citing(paths), *(p for p in mine if paths is None or p in paths)))
