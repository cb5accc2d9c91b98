"""A vault: a folder of memories, and the one way in which they are read and changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mdmem.diagnostic import Diagnostic, told
from mdmem.document.document import Document, digest, parse, parse_any
from mdmem.document.text.globs import matcher
from mdmem.document.text.tokens import first_of
from mdmem.errors import (
    AlreadyExists,
    ConfigInvalid,
    Conflict,
    EditRefused,
    Invalid,
    MemoryNotFound,
    NeedsFolder,
    PathRefused,
    TooLarge,
    VaultNotFound,
)
from mdmem.vault import config
from mdmem.vault.config import Config, check_names
from mdmem.vault.files import Place
from mdmem.vault.local_store import LOCAL, LocalStore
from mdmem.vault.paths import (
    Layer,
    Namespace,
    check_folder,
    check_memory,
    find_project_file,
    is_under,
    join,
    relative,
    seen_from,
)
from mdmem.vault.plan import EditPlan, NewNames, Prepared, refuse_paths, screen, standing
from mdmem.vault.store import MOST_ATTACHED_BYTES, Entry, Store, actor_name
from mdmem.vault.walk import Found, count_hidden, count_passed_over, list_others

if TYPE_CHECKING:
    from mdmem.vault.schema import Schemas
    from mdmem.vault.template.templates import Templates
    from mdmem.vault.transaction import Applied, Transaction

T = TypeVar("T")
_MOST_TRIES = 1_000  # to change what a program that takes no locks writes again and again
_NAMED = 3  # of the memories of a change
_OUTSIDE = "it belongs to another user or session, which this scope cannot see"
_REMEDIES = {
    "user": "change it in the scope of the user alone",
    "project": "change it in the scope of the project",
    "shared": "change it in the scope of everyone",
}
_MOST_OWN_BYTES = 1024 * 1024  # of a schema or a template
# Who makes the current request: one vault may serve several clients, each in a thread.
_ACTING = ContextVar("acting", default="")
_match_globs = lru_cache(maxsize=8)(matcher)


@contextlib.contextmanager
def acting_for(actor: str) -> Iterator[None]:
    """Let changes meanwhile be made by `actor`, in vaults that were given none."""
    before = _ACTING.set(actor)
    try:
        yield
    finally:
        _ACTING.reset(before)


class Vault:
    """The memories under one namespace of a vault: those of a store, or of the folder that is given for it.

    The namespace is a wall: every path that a method takes or returns is relative to it, and none leaves it.
    What else `reads` names can be read, under those names, and not be changed. Constructing a vault opens
    nothing; every method reads what is there now.

    Attributes:
        progress: told what takes a while, and how much of how much of it is done; None where nobody waits.
        is_hurried: whether a question that would take long is refused instead, as a hook wants it.
    """

    progress: Callable[[str, int, int], None] | None = None
    is_hurried = False

    def __init__(
        self,
        store: Store | str,
        namespace: str | Namespace = "",
        actor: str = "",
        reads: Sequence[Layer] = (),
    ) -> None:
        self.store: Store = LocalStore(store) if isinstance(store, str) else store
        self.wall = namespace if isinstance(namespace, Namespace) else Namespace(check_folder(namespace))
        self.namespace = self.wall.folder
        self.reads = reads or (Layer("", self.wall),)
        self._actor = actor
        self._made: dict[str, tuple[object, Any]] = {}

    def within(self, namespace: str | Namespace) -> Vault:
        """Return the same store, seen from another namespace."""
        return Vault(self.store, namespace)

    # -- what the vault is made of ------------------------------------------------------------------------

    @property
    def actor(self) -> str:
        """Who changes it: the one that was given, else see `acting_for`; empty where nobody is known."""
        return actor_name(self._actor or _ACTING.get())

    @property
    def root(self) -> str:
        """The absolute path of the vault's folder; for a vault in a database, of the copy on this machine."""
        return self.store.root

    @property
    def name(self) -> str:
        """What names the vault: its folder, as an absolute path, or its URL."""
        return self.store.name

    def require_folder(self, what: str) -> None:
        """Refuse what needs a folder of the user's own, where the vault is in a database."""
        if self.disk.is_copy:
            raise NeedsFolder(vault=self.name, what=what)

    @property
    def notes(self) -> list[str]:
        """The warnings of the store, oldest first, without repeats."""
        return self.store.notes

    @property
    def config(self) -> Config:
        """The config as it is now."""
        return self.store.config

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the name of a memory ends, as the config says."""
        return self._sound_config.suffixes

    @property
    def disk(self) -> LocalStore:
        """The store, for what needs files: ripgrep, the index, the watcher, the programs of others."""
        if not isinstance(self.store, LocalStore):
            raise VaultNotFound(start=self.name)
        return self.store

    @property
    def workspace(self) -> str:
        """What the memories talk about: the git root that holds the vault, else its parent folder."""
        return self.disk.workspace

    @property
    def schemas(self) -> Schemas:
        """The schemas, the vault's own over the built-in ones; read again when one of them changes.

        Raises:
            ConfigInvalid: the config names a schema that is not there, or a kind as another schema.
        """
        return self._make_from_own("schemas", (".json",), self._make_schemas)

    def is_data(self, document: Document) -> bool:
        """Return whether nothing in a file is judged, see `Schemas.is_data`."""
        if not document.is_json:
            return False
        try:
            return self.schemas.is_data(document)
        except ConfigInvalid:
            return False

    def is_guest(self, path: str) -> bool:
        """Return whether another tool writes a memory, as the globs `[check] guests` say."""
        vault, inside = self.locate_layer(path)
        guests = self._sound_config.check.guests
        return bool(guests) and _match_globs(guests)(join(vault.namespace, inside))

    def _make_schemas(self, own: dict[str, str]) -> Schemas:
        from mdmem.vault.schema import Schemas  # noqa: PLC0415 - what only reads needs none

        texts = {name.removesuffix(".json"): text for name, text in own.items()}
        schemas = Schemas(texts, self._sound_config.working.schema, self._sound_config.kinds)
        check_names(self._sound_config, "schema", lambda: [info.name for info in schemas.names()])
        return schemas

    @property
    def templates(self) -> Templates:
        """The templates, the vault's own over the built-in ones; read again when one of them changes.

        Raises:
            ConfigInvalid: a kind in the config names a template that is not there, or is named as another.
        """
        return self._make_from_own("templates", (".md", ".json"), self._make_templates)

    def _make_templates(self, own: dict[str, str]) -> Templates:
        from mdmem.vault.template.templates import Templates  # noqa: PLC0415 - as above

        templates = Templates(own)
        check_names(self._sound_config, "template", lambda: [info.name for info in templates.names()])
        return templates

    @property
    def _sound_config(self) -> Config:
        """The config; the default one for one that is broken, which is met wherever more is needed of it."""
        with contextlib.suppress(ConfigInvalid):
            return self.config
        return config.Config()

    def _make_from_own(self, kind: str, suffixes: tuple[str, ...], make: Callable[[dict[str, str]], T]) -> T:
        """Return what is made of own schemas or templates; make it again when they or the config change."""
        folder = f".mdmem/{kind}"
        files = [each for each in self.store.walk(Namespace(folder), suffixes) if not each.problem]
        state = self._sound_config, [(each.path, each.mtime_ns, each.size) for each in files]
        known, made = self._made.get(kind, (None, None))
        if known != state:
            texts = {}
            for each in files:
                content = self.store.read(each.path, _MOST_OWN_BYTES)
                if content:
                    # Bytes that are not UTF-8 are refused where the text is used.
                    texts[relative(each.path, folder)] = content.data.decode("utf-8", "surrogateescape")
            made = make(texts)
            self._made[kind] = state, made
        return cast("T", made)

    def place(self, path: str) -> Place:
        """Return where the file of a memory is."""
        return self.disk.place(self._full_path(check_memory(path, self.suffixes)))

    def folder(self, path: str) -> str:
        """Return a folder of this namespace as the whole vault names it."""
        return self._full_path(check_folder(path))

    def _full_path(self, path: str) -> str:
        layer = self._find_layer(path)
        if layer:
            problem = f"what begins with {layer.name}: can be shown, and is changed where it belongs"
            raise PathRefused(path=path, reason=problem, remedy=_REMEDIES.get(layer.name, ""))
        full = join(self.namespace, path)
        if not self.wall.holds(full):
            raise PathRefused(path=path, reason=_OUTSIDE, remedy="`mdmem ls` names what is")
        return full

    def names_layer(self, path: str) -> bool:
        """Return whether a path names a layer that is read beside this namespace, as `shared:notes/db.md`."""
        return self._find_layer(path) is not None

    def locate_layer(self, path: str) -> tuple[Vault, str]:
        """Return the vault of the layer that a path names, and the path there; else this vault."""
        layer = self._find_layer(path)
        return (self.within(layer.namespace), path.partition(":")[2]) if layer else (self, path)

    def _find_layer(self, path: str) -> Layer | None:
        """Return the layer that the name before the colon of a path means; None without one."""
        name, colon, _ = path.partition(":")
        if name and colon:
            for layer in self.reads:
                if layer.name == name:
                    return layer
        return None

    def show_path(self, full: str) -> str:
        """Return the name here of a path of the whole vault; one that may not be read here is unchanged."""
        return next((each.shown(full) for each in self.reads if each.namespace.holds(full)), full)

    def hides(self, file: str) -> bool:
        """Return whether a file of the vault, by its absolute path, may not be read."""
        if self.wall == Namespace():
            return False
        inside = os.path.relpath(os.path.realpath(file), self.root).replace(os.sep, "/")
        if inside.split("/")[0] == os.pardir:
            return False
        # The trash holds memories of everyone.
        return is_under(inside, LOCAL) or not any(layer.namespace.holds(inside) for layer in self.reads)

    def report_progress(self, doing: str, items: Sequence[T]) -> Iterator[T]:
        """Yield the items, and report to `progress` after each how many are done."""
        for number, item in enumerate(items, 1):
            yield item
            if self.progress:
                self.progress(doing, number, len(items))

    @property
    def project_file(self) -> str:
        """The path of the project memory: `AGENTS.md`; without one, what differs from that only in case."""
        self.recover()
        return find_project_file(self.store.names(self.namespace))

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, path: str, *, recovered: bool = False, unreadable: bool = False) -> Document:
        """Return the memory at `path`.

        Args:
            recovered: whether `recover` was called a moment ago.
            unreadable: also return what cannot be read as a memory, as an `UnreadableDocument`.

        Raises:
            MemoryNotFound: there is none; the error names the nearest.
            PathRefused: the path leaves the vault, or is a link, a folder, a device.
        """
        document = self.find(path, recovered=recovered, unreadable=unreadable)
        if document is None:
            raise MemoryNotFound(path=path, near=self._find_near_names(path))
        return document

    def find(
        self, path: str, *, recovered: bool = False, spelled: str = "", unreadable: bool = False
    ) -> Document | None:
        """See `read`, with None where there is no memory; with `spelled`, only in this Unicode spelling."""
        if not recovered:
            self.recover()
        vault, inside = self.locate_layer(path)
        settings = self.config
        data = vault._read_data(inside, settings, spelled, unreadable=unreadable)  # noqa: SLF001
        parse_found = parse_any if unreadable else parse
        return None if data is None else parse_found(path, data, settings.limits)

    def find_around(self, path: str, *, spelled: str = "", unreadable: bool = False) -> Document | None:
        """See `find`, with None also where a folder or a file is in the way, which a plan may take away."""
        with contextlib.suppress(PathRefused):
            return self.find(path, spelled=spelled, unreadable=unreadable)
        return None

    def _read_data(
        self, path: str, settings: Config, spelled: str = "", *, unreadable: bool = False
    ) -> bytes | None:
        full = self._full_path(check_memory(path, settings.suffixes))
        exact = join(self.namespace, spelled) if spelled else ""
        with seen_from(self.namespace):
            limit = max(settings.limits.max_bytes, MOST_ATTACHED_BYTES if unreadable else 0)
            content = self.store.read(exact or full, limit, exact=bool(exact))
        return content.data if content else None

    def _find_near_names(self, path: str) -> tuple[str, ...]:
        vault, inside = self.locate_layer(path)
        names = {found.path.casefold(): found.path for found in vault.walk()}
        tails = {folded.rpartition("/")[2]: name for folded, name in names.items()}
        wanted = inside.casefold()
        near = [names[each] for each in get_close_matches(wanted, names, 2)]
        near += [tails[each] for each in get_close_matches(wanted.rpartition("/")[2], tails, 2)]
        layer = path.removesuffix(inside)
        return tuple(dict.fromkeys(f"{layer}{name}" for name in near))

    def exists(self, path: str) -> bool:
        """Return whether there is a memory at `path`."""
        self.recover()
        try:
            return self._read_data(path, self.config) is not None
        except TooLarge:
            return True

    def walk(self, namespace: str = "") -> Iterator[Found]:
        """Yield every memory under `namespace`, sorted by the parts of its path, mounts included.

        Files that look like memories but cannot be one (links, names that are no paths) come with their
        `problem`. Hidden folders are never entered.
        """
        self.recover()
        folder = self.folder(namespace)
        for each in self.store.walk(self.wall._replace(folder=folder), self.suffixes):
            yield each._replace(path=relative(each.path, self.namespace))

    def passed_over(self) -> dict[str, int]:
        """See `mdmem.vault.walk.count_passed_over`, and `count_hidden` there."""
        parts = tuple(filter(None, self.namespace.split("/")))
        return count_passed_over(self.other_files()) | count_hidden(self.root, parts, self.wall.holds)

    def other_files(self) -> Iterator[str]:
        """Yield the path of each file that is no memory, in no order; those that are hidden are left out."""
        parts = tuple(filter(None, self.namespace.split("/")))
        for path in list_others(self.root, parts, self.suffixes, self.wall.holds):
            yield relative(path, self.namespace)

    def attachments(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield each file at a path or below it that is no memory, with its hash. Hidden ones are left out.

        Raises:
            PathRefused: one of them is a link or a device.
            EditRefused: together they have more than `MOST_ATTACHED_BYTES`.
        """
        left, suffixes = MOST_ATTACHED_BYTES, self.suffixes
        self.recover()
        full = self.folder(path)
        below = self.store.walk(self.wall._replace(folder=full), ("",)) if self.store.names(full) else ()
        for name in (each.path for each in below) if below else (full,):
            try:
                content = None if name.endswith(suffixes) else self.store.read(name, left)
            except TooLarge:
                reason = (
                    f"what is no memory has more than {MOST_ATTACHED_BYTES:,} bytes, too many to move at once"
                )
                remedy = "move less at once, or with git and then `mdmem doctor --fix`"
                raise EditRefused(path=path, reason=reason, remedy=remedy) from None
            if content:
                left -= len(content.data)
                yield relative(name, self.namespace), digest(content.data)

    def mounted(self, folder: str) -> dict[str, str]:
        """Return the mounts under `folder` of the vault: path in the vault to absolute path."""
        return self.disk.mounted(self.wall._replace(folder=folder or self.namespace))

    def history(self) -> Iterator[Entry]:
        """Yield the changes to memories of this namespace, newest first."""
        depth = self.namespace.count("/") + 1 if self.namespace else 0
        for entry in self.store.entries(self.namespace):
            of_config = next((change for change in entry.files if change.path == config.CONFIG_PATH), None)
            touched = [change for change in entry.files if change is not of_config]
            inside = tuple(
                change._replace(
                    path=relative(change.path, self.namespace),
                    spelled="/".join(change.spelled.split("/")[depth:]),
                )
                for change in touched
                if self.wall.holds(change.path)
            )
            if inside and len(inside) == len(touched):
                yield entry._replace(files=inside, config=of_config)
            elif inside:
                # The message may name files of others.
                told = first_of([change.path for change in inside], _NAMED)
                yield entry._replace(files=inside, message=f"change {told}", is_part=True)

    def content(self, digest: str) -> bytes | None:
        """Return what a memory of this namespace once held, by its hash; None when it is not kept."""
        known = any(digest in {f.before, f.after} for entry in self.history() for f in entry.files)
        kept = self.store.kept(digest) if known else None
        return kept.data if kept else None

    # -- changing -----------------------------------------------------------------------------------------

    def apply(self, plan: EditPlan, *, may_merge: bool = True) -> Applied:
        """Do what a plan says, all of it or nothing.

        Args:
            plan: the changes. Where a file has changed since the plan was made, the two are merged if the
                change allows it and nothing is ambiguous.
            may_merge: False to refuse such a change in every case.

        Raises:
            Invalid: a change would break its schema, with every violation, or add a secret.
            Conflict: a file has changed, and cannot be merged; with the diff.
            AlreadyExists: a new memory stands there already.
            PathRefused: a path that cannot be, or be made.
        """
        prepared = self.prepare(plan)
        with self.store.writing(), self._hide_other_ids():
            self.new_names().refuse(prepared.plan)  # somebody may have made a twin since
            return self._run_prepared(prepared, may_merge=may_merge)

    def transact(self, build: Callable[[], EditPlan], *, locked: bool = False) -> Applied:
        """Apply the plan that `build` makes; where somebody wrote in between, make it again and apply that.

        With `locked`, hold the lock from the start: a plan may depend on memories that it does not change.
        """
        if not locked:
            with contextlib.suppress(Conflict, AlreadyExists):
                return self.apply(build(), may_merge=False)
        tries = _MOST_TRIES
        with self.store.writing(), self._hide_other_ids():
            while True:
                # Only a program that takes no lock can interfere now, so this soon succeeds.
                prepared = self.prepare(build())
                try:
                    return self._run_prepared(prepared, may_merge=False)
                except Conflict:
                    tries -= 1
                    if not tries:
                        raise

    def _run_prepared(self, prepared: Prepared, *, may_merge: bool) -> Applied:
        """Make the change, or those that it sums up. Needs the lock."""
        if isinstance(self.store, LocalStore):
            self.store.journal.report = partial(self.report_progress, "writing")
        transaction = self._make_transaction(prepared, may_merge=may_merge)
        plan = prepared.plan
        if not plan.steps:
            return transaction.run()
        transaction.compare()
        done = [self._make_transaction(self.prepare(each), may_merge=False).run() for each in plan.steps]
        ids = tuple(each.id for each in done if each.id)
        return replace(
            done[-1], id=ids[-1] if ids else "", files=plan.files if ids else (), plan=plan, ids=ids
        )

    @contextlib.contextmanager
    def _hide_other_ids(self) -> Iterator[None]:
        """Let errors not name another id that differs from the namespace's own only in case."""
        try:
            yield
        except PathRefused:
            # If the namespace exists, nothing outside of it was in the way.
            if not self.namespace or self.store.stands(self.namespace):
                raise
            reason = "an id differs only in case from another one, or a link stands in its place"
            raise PathRefused(path=self.namespace, reason=reason, remedy="choose another id") from None

    def prepare(self, plan: EditPlan) -> Prepared:
        """Return a plan as it would be written, without the secrets that it may not add; write nothing."""
        for each in plan.steps or (plan,):
            refuse_paths(each, self.suffixes)
        self._refuse_outside(plan)
        self.new_names().refuse(plan)
        prepared = Prepared(plan, [change.after(self.config.limits) for change in plan.changes])
        if plan.brings_back:
            return prepared
        if self.config.secrets.policy != "off":
            prepared = screen(prepared, self.config.secrets)
        findings: list[Diagnostic] = []
        for change, after in zip(plan.changes, prepared.afters, strict=True):
            if after and not change.as_it_was:
                versions = (change.before,) if change.before else ()
                _refuse_excess(after, *versions)
                findings += self.schemas.find_new(after, *versions)
        if findings:
            raise Invalid(findings=tuple(told(findings)))
        return prepared

    def _refuse_outside(self, plan: EditPlan) -> None:
        """Refuse what is not of this namespace; of shared memories, see `mdmem.facade.sharing`."""
        for path in plan.paths:
            self._full_path(check_folder(path))

    def new_names(self) -> NewNames:
        """Return what refuses the new names of one plan that not every system can hold."""
        return NewNames(self.namespace, self.store.stands, self.store.names)

    def check(self, document: Document) -> list[Diagnostic]:
        """List what is wrong with a memory: its form, its schema, and the secrets that stand in it."""
        layer = self._find_layer(document.path)
        if layer:
            # The place of a memory chooses its schema.
            inside = parse(document.path.partition(":")[2], document.data, document.limits)
            return [each._replace(path=document.path) for each in self.within(layer.namespace).check(inside)]
        found = self.schemas.check(document)
        if self.config.secrets.policy == "off":
            return found
        return found + standing(document, self.config.secrets)

    def _refuse_new_findings(self, before: Document, after: Document) -> None:
        _refuse_excess(after, before)
        findings = self.schemas.find_new(after, before)
        if findings:
            raise Invalid(findings=tuple(findings))

    def _make_transaction(self, prepared: Prepared, *, may_merge: bool) -> Transaction:
        from mdmem.vault.transaction import Transaction  # noqa: PLC0415 - what only reads changes nothing

        return Transaction(
            prepared=prepared,
            namespace=self.namespace,
            actor=prepared.plan.actor or self.actor,
            limits=self.config.limits,
            store=self.store,
            check=self._refuse_new_findings,
            may_merge=may_merge,
        )

    def recover(self) -> int:
        """Undo or finish what a crash left behind; how many changes (see `Store.recover`)."""
        return self.store.recover()

    def enter(self) -> None:
        """See `recover`, in a vault that is there: in one that is gone, to find nothing would be a guess."""
        if not self.store.stands(""):
            raise VaultNotFound(start=self.name)
        self.recover()


def _refuse_excess(after: Document, *before: Document) -> None:
    """Refuse a memory with too many parts to be read, unless one of its versions had too many already."""
    if after.excess and not any(version.excess for version in before):
        raise after.excess
