"""What other users share with a user: read as a layer, such as `from-alice:notes/db.md`, or as memories.

The wall around it holds what is granted and nothing else. So neither an answer nor its time tells what is not
granted, or no longer, from what is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, cast

from mdmem.document.document import Document
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused, Usage
from mdmem.facade.scoped import ScopedMemory
from mdmem.index.view import View
from mdmem.kind import kind_at
from mdmem.memory import sharing
from mdmem.memory.content import has_passed, utc_now
from mdmem.memory.verbs import Listing, Verbs
from mdmem.vault import paths
from mdmem.vault.config import Config
from mdmem.vault.plan import EditPlan, Prepared
from mdmem.vault.store import Entry
from mdmem.vault.transaction import Applied
from mdmem.vault.vault import Vault
from mdmem.vault.walk import Found

_PREFIX = "from-"
T = TypeVar("T")


class Grant(NamedTuple):
    """A memory that another user, its owner, shares; its path is as `show` takes it."""

    owner: str
    level: str
    path: str
    until: str


class Shared:
    """What other users share with the user of a memory."""

    def __init__(self, memory: ScopedMemory) -> None:
        self.memory = memory
        self.user = "" if memory.scope.shared else memory.scope.user or ""

    def __call__(self, owner: str) -> SharedMemory:
        """Return what a user shares with this one; raises Usage where none is bound, or sharing is off."""
        self.name(owner)
        return SharedMemory(self, GrantedVault(self, owner))

    def name(self, owner: str) -> str:
        """Return what the paths of a user's layer begin with, such as `from-alice:`; raises as a call."""
        if not self.user:
            raise Usage(problem="memories are shared with a user", remedy="bind one to the scope")
        sharing.require_sharing(self.memory.vault)
        return f"{_PREFIX}{paths.encode_id(owner)}:"

    def list(self, owner: str | None = None, path: str = "") -> list[Grant]:
        """List what any user, or one, shares with this one now: all, or a memory of it; raises as a call."""
        self.name(owner or self.user)
        memory, now, grants = self.memory, utc_now(), []
        memory.vault.enter()
        vault = memory.vault.within(paths.Scope(user=owner).namespace)
        view = View(memory._current_view().index, vault)  # noqa: SLF001 - of one façade
        for full, until in view.granted((self.user, sharing.EVERYONE), path):
            of = sharing.find_owner(full)
            if of is None or of == self.user or has_passed(until, now):
                continue
            with suppress(MdmemError):  # what cannot be read grants nothing, and its owner is told
                access = sharing.read_access(vault.read(view.inside(full), recovered=True))
                if level := access.level_of(self.user, now):
                    inside = paths.relative(full, paths.USERS).replace("/", ":", 1)
                    grants.append(Grant(of, level, f"{_PREFIX}{inside}", access.until))
        return sorted(grants)

    def has_layer(self, *places: str) -> bool:
        """Tell whether a path names the layer of a user, who has one such name."""
        names = (paths.nfc(path).removeprefix(_PREFIX).partition(":") for path in places)
        return bool(self.user) and any(colon and paths.is_encoded(name) for name, colon, _ in names)

    def show(self, path: str) -> Document:
        """Return the memory of a layer that a path names; see `Memory.show`."""
        layer, _, inside = paths.nfc(path).partition(":")
        vault = self._open_layer(layer)
        vault.recover(inside)
        return vault.read(paths.nfc(path), recovered=True)

    def _open_layer(self, name: str) -> GrantedVault:
        return GrantedVault(self, paths.decode_id(name.removeprefix(_PREFIX)), name)

    def ask(self, question: Callable[..., T], asked: dict[str, Any]) -> T:
        """Return the answer of a layer to a question of `Memory`, asked about places that name it."""
        places = [paths.nfc(paths.place_text(path)) for path in (asked["within"], *asked.get("paths", ()))]
        layers = {path.partition(":")[0] for path in places if path}
        if len(layers) > 1:
            raise Usage(problem="what one user shares is read at a time", remedy="name its paths alone")
        (layer,) = layers
        memory = self.bind(self._open_layer(layer))
        del asked["self"]
        asked["within"], *others = (path.partition(":")[2] for path in places)
        try:
            found: Any = question(memory, **asked | ({"paths": others} if others else {}))
        except MemoryNotFound as error:
            raise error.but(path=f"{layer}:{error.path}") from None
        if isinstance(found, Listing):
            found = Listing((e._replace(path=f"{layer}:{e.path}") for e in found), found.unknown)
        elif "pattern" in asked:
            found.prefix = f"{layer}:"
        return cast("T", found)

    def bind(self, vault: GrantedVault) -> ScopedMemory:
        """Return what asks and changes a vault of granted memories, with the index of all."""
        bound = type(self.memory)(self.memory.root, self.memory.scope, embedder="none")
        bound.vault = bound._vault = vault  # noqa: SLF001 - of one façade
        bound.index = self.memory.index
        return bound


class GrantedVault(Vault):
    """The memories that one user shares with another; all else, and what they said before, is not there."""

    def __init__(self, shared: Shared, owner: str, name: str = "") -> None:
        """Give the memories of `owner` the name of their layer; without one, the names they have there."""
        folder = paths.Scope(user=owner).namespace
        self._shared, self._owner, self._name = shared, owner, name
        super().__init__(shared.memory.vault.store, paths.Namespace(folder, (folder,)), shared.user)

    def recover(self, path: str = "") -> int:
        """See `Vault.recover`; also read again what is shared, or one memory of it alone."""
        granted = (grant.path.partition(":")[2] for grant in self._shared.list(self._owner, path))
        keeps = tuple(paths.join(self.namespace, path) for path in granted)
        self.wall = self.wall._replace(keeps=keeps)
        self.reads = (paths.Layer(self._name, self.wall),)
        return super().recover()

    def locate_layer(self, path: str) -> tuple[Vault, str]:
        """See `Vault.locate_layer`."""
        return self, path.partition(":")[2] if self.names_layer(path) else path

    def _read_data(
        self, path: str, settings: Config, spelled: str = "", *, unreadable: bool = False
    ) -> bytes | None:
        with suppress(PathRefused):
            return super()._read_data(path, settings, spelled, unreadable=unreadable)
        return None

    def walk(self, namespace: str = "") -> Iterator[Found]:
        """See `Vault.walk`."""
        with suppress(PathRefused):
            yield from super().walk(namespace)

    def history(self) -> Iterator[Entry]:
        """Yield nothing."""
        return iter(())

    def _refuse_outside(self, plan: EditPlan) -> None:
        for path in plan.paths:
            if path not in plan.moves.values() and not self.wall.holds(paths.join(self.namespace, path)):
                raise MemoryNotFound(path=path)
        for old, new, before in ((c.path, c.move_to, c.before) for c in plan.changes if c.move_to):
            if before:  # else an error about the new name would tell what is there
                self._refuse_beyond(before, None)
            # Else one could become a rule, which agents obey. Some file systems take Rules/ for rules/.
            kinds = [[kind_at(each, self.config.kinds) for each in (p, p.casefold())] for p in (old, new)]
            if kinds[0] != kinds[1]:
                raise PathRefused(path=new, reason="a memory of another user stays among its kind")

    def _run_prepared(self, prepared: Prepared, *, may_merge: bool) -> Applied:  # noqa: ARG002 - see below
        # While the lock is held, a grant is what the file says; nothing is merged into what was not seen.
        for change, after in zip(prepared.plan.changes, prepared.afters, strict=True):
            now = self.find(change.path, recovered=True)
            if now is None:
                raise MemoryNotFound(path=change.path)
            self._refuse_beyond(now, None if change.move_to else after)
        plan = prepared.plan._replace(actor="")  # it is the user, whoever made the plan
        return super()._run_prepared(prepared._replace(plan=plan), may_merge=False)

    def _refuse_beyond(self, now: Document, after: Document | None) -> None:
        """Refuse a change beyond what a memory grants now; `after` is None where it is deleted or moved."""
        level = sharing.read_access(now).level_of(self._shared.user, utc_now())
        if not level:
            raise MemoryNotFound(path=now.path)
        is_owned = after is None or sharing.changes_owned(now, after)
        if level == sharing.READ or (is_owned and level != sharing.FULL):
            reason = f"it is shared to {level}, and this takes {sharing.FULL if is_owned else sharing.WRITE}"
            raise PathRefused(path=now.path, reason=reason, remedy="ask its owner")


class SharedMemory(Verbs[Applied]):
    """What one user shares with another: verbs and questions of `Memory`; each reads the grants again.

    `write` leaves `access`, `id`, `until`, `expires`, `valid_to`, `superseded_by` and `tier` as they are;
    `full` changes these, too, deletes, shares, and moves within the kind of the memory. `search` is by words
    alone.
    """

    def __init__(self, shared: Shared, vault: GrantedVault) -> None:
        bound = shared.bind(vault)
        super().__init__(vault, bound._apply_built, bound._current_view)  # noqa: SLF001 - of one façade
        self.plan = Verbs[EditPlan](vault, lambda build: build(), self._view)
        self.ls, self.grep, self.search = bound.ls, bound.grep, bound.search
        self.apply, self.access = bound.apply, bound.access

    def show(self, path: paths.StrPath) -> Document:
        """Return the memory at a path as it is now; see `Memory.show`."""
        return self._vault.read(paths.path_text(path))
