"""References: what memories point at, and the changes that keep that true."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from mdmem.document.document import parse
from mdmem.errors import MemoryNotFound, Usage
from mdmem.index.code import citations
from mdmem.index.code.citations import (
    AMBIGUOUS,
    BROKEN,
    CHANGED,
    DANGLING,
    GONE,
    MOVED,
    STALE,
    STATES,
    code_of,
)
from mdmem.index.links.graph import Triple, triples
from mdmem.index.links.references import (
    CODE,
    LINKS,
    TYPES,
    Backlink,
    Occurrence,
    Reference,
    ReferenceStats,
    backlinks,
    counted,
    gathered,
    is_named,
    lookup_key,
    occurrences,
)
from mdmem.index.links.resolve import resolve_link
from mdmem.memory.verbs import Build, KindVerbs, R
from mdmem.vault.paths import StrPath, check_folder, check_memory, path_texts
from mdmem.vault.plan import EditPlan
from mdmem.vault.vault import Vault

if TYPE_CHECKING:  # only what looks across memories needs the index
    from mdmem.index.view import View

Wrong: TypeAlias = Literal["stale", "broken", "unwritten", "ambiguous"]

_WRONG: Mapping[str, Wrong] = {DANGLING: "broken", AMBIGUOUS: "ambiguous"}
_STALE_ORDER = (CHANGED, MOVED, GONE)


class References(KindVerbs[R]):
    """What the memories of one scope point at; every question makes the index current first.

    `paths` are memories or folders that it is asked about; None is all of them. Where they name nothing, that
    is `MemoryNotFound`.
    """

    def __init__(self, vault: Vault, run: Callable[[Build], R], view: Callable[[], View]) -> None:
        super().__init__(vault, run)
        self._view = view

    def list(
        self,
        *,
        types: Collection[str] = (),
        states: Collection[str] = (),
        stale: bool = False,
        paths: Collection[StrPath] | None = None,
    ) -> tuple[Reference, ...]:
        """Return what is pointed at, in the order of type and target; what is stale by its state first.

        Args:
            types: only these (`mdmem.index.links.references.TYPES`); all without.
            states: only places in one of these states (`mdmem.index.links.references.STATES`).
            stale: also those to code that has changed, has moved or is gone; without `states`, only those,
                in this order.
            paths: only places in these.

        Raises:
            Usage: there is no such type or state.
        """
        found = gathered(self._find_occurrences(types, states, stale, paths))
        return _sort_stale(found) if stale and not states else found

    def lookup(
        self,
        target: str,
        *,
        types: Collection[str] = (),
        states: Collection[str] = (),
        stale: bool = False,
        paths: Collection[StrPath] | None = None,
    ) -> tuple[Reference, ...]:
        """Return the references to one target; the other arguments are those of `list`.

        Args:
            target: as `list` names it, or as it is written; without its anchor, lines or symbol; without
                `.md`, and without the folders in front; the name of a symbol, or of a tag without its `#`.
        """
        wanted = lookup_key(target)
        asked = self._find_occurrences(types, states, stale, paths)
        found = gathered(each for each in asked if is_named(each, wanted))
        return _sort_stale(found) if stale and not states else found

    def _find_occurrences(
        self,
        types: Collection[str],
        states: Collection[str],
        stale: bool,
        paths: Collection[StrPath] | None,
    ) -> Iterator[Occurrence]:
        _check_names(types, states)
        view, states = self._view(), (*states, *(STALE if stale else ()))
        if states and STALE.issuperset(states):
            types = types or CODE  # nothing else goes stale
        found = occurrences(view, types=types, paths=_find_memories(view, paths))
        return (each for each in found if not states or each.place.state in states)

    def find(self, link: str) -> tuple[str, ...]:
        """Return what a wikilink such as `[[db]]` may mean, the most likely first; empty for other texts."""
        view = self._view()
        links = parse("link.md", link.encode("utf-8", "replace")).links
        whole = [each for each in links if each.kind == "wikilink" and each.target]
        return resolve_link(view, whole[0], "").candidates if len(whole) == 1 else ()

    def wrong(self) -> Iterator[tuple[Wrong, Occurrence]]:
        """Yield what `status` counts as wrong, each as what, in the order of path and line."""
        view = self._view()
        told = {state for state in _WRONG if code_of(state) not in view.vault.config.check.silenced}
        for each in occurrences(view, types=(*LINKS, *CODE)):
            state = each.place.state
            # `check` reports it as a link, and not as a citation.
            is_link = each.type in LINKS or state == DANGLING
            if state in STALE:
                yield "stale", each
            # Where a reference leads is said, and counted, by its definition.
            elif state in told and is_link and each.kind != "reference":
                yield "unwritten" if each.unwritten else _WRONG[state], each

    def stale(self, paths: Collection[StrPath] | None = None) -> tuple[Reference, ...]:
        """Return citations of code that has changed, has moved or is gone since they were written."""
        return self.list(stale=True, paths=paths)

    def broken(self, paths: Collection[StrPath], files: Collection[StrPath]) -> tuple[Occurrence, ...]:
        """References in memories that are wrong, and citations of files that have become stale.

        `files` are those of the workspace, as absolute paths.
        """
        paths = path_texts(paths)
        real = (os.path.realpath(file) for file in path_texts(files) if "\0" not in file)
        names = {os.path.relpath(file, self._vault.workspace) for file in real}
        names = {name for name in names if name.split(os.sep)[0] != os.pardir}
        if not paths and not names:
            return ()
        view = self._view()
        bare = {os.path.basename(name) for name in names}
        cited_paths = view.cited_paths() if names else ()
        citing = {path for path, cited, _ in cited_paths if cited.rpartition("/")[2] in bare}
        is_guest = self._vault.is_guest
        found = [
            o
            for o in (occurrences(view, paths=paths) if paths else ())
            if o.place.state in BROKEN or (o.nowhere and not is_guest(o.place.path))
        ]
        cited = occurrences(view, types=CODE, paths=citing) if citing else ()
        stale = [
            o for o in cited if o.place.state in STALE and (o.target.rpartition("#")[0] or o.target) in names
        ]
        return (*found, *stale)

    def stats(
        self,
        *,
        types: Collection[str] = (),
        states: Collection[str] = (),
        stale: bool = False,
        paths: Collection[StrPath] | None = None,
    ) -> ReferenceStats:
        """Return the references that `list` gives, in numbers."""
        return counted(self.list(types=types, states=states, stale=stale, paths=paths))

    def tags(self) -> tuple[tuple[str, int], ...]:
        """Return the tags, each with the number of memories that have it, the most used first."""
        return tuple(self._view().tags())

    def backlinks(self, path: StrPath) -> tuple[Backlink, ...]:
        """Return the links to a memory, in the order of path and line.

        Raises:
            MemoryNotFound: there is no such memory.
        """
        name = check_memory(path, self._vault.suffixes)
        if not self._vault.exists(name):
            raise MemoryNotFound(path=name)
        return backlinks(self._view(), name)

    def graph(self, within: StrPath = "") -> tuple[Triple, ...]:
        """Return what the memories below the folder `within` are joined to; see `mdmem.index.links.graph`.

        Raises:
            MemoryNotFound: nothing is below `within`.
        """
        view = self._view()
        if within:
            _find_memories(view, [within])
        return triples(view, check_folder(within))

    def pin(self, paths: Collection[StrPath] | None = None, *, accept: bool = False) -> R:
        """Put a pin behind every citation of lines or of a symbol that has none.

        With `accept`, also renew the pins of code that has changed since.
        """

        def build() -> EditPlan:
            view = self._view()
            return citations.pinned(view, _find_memories(view, paths), accept=accept)

        return self._run(build)

    def fix(self, paths: Collection[StrPath] | None = None) -> R:
        """Make every citation of code that has moved say where it is now; with `paths`, in these."""

        def build() -> EditPlan:
            view = self._view()
            return citations.repointed(view, _find_memories(view, paths))

        return self._run(build)


def _sort_stale(found: Iterable[Reference]) -> tuple[Reference, ...]:
    """Put first what has to be read again, then what `fix` re-points, then what is gone."""
    return tuple(sorted(found, key=lambda reference: _STALE_ORDER.index(reference.state)))


def _check_names(types: Collection[str], states: Collection[str]) -> None:
    for what, given, known in (("type", types, TYPES), ("state", states, STATES)):
        for name in given:
            if name not in known:
                problem = f"there is no {what} of references {name!r}"
                raise Usage(problem=problem, remedy=f"say {', '.join(known)}")


def _find_memories(view: View, paths: Collection[StrPath] | None) -> Collection[str] | None:
    if paths is None:
        return None
    found: set[str] = set()
    for path in path_texts(paths):
        name = check_memory(path) if path.endswith(view.vault.suffixes) else check_folder(path)
        below = {inside for inside, *_ in view.states([view.outside(name)] if name else None)}
        if name and not below:
            raise MemoryNotFound(path=path, kind="folder or memory")
        found |= below
    return found
