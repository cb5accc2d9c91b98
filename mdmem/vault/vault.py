"""A vault: a folder of memories, and the one way in which they are read and changed."""

from __future__ import annotations

import contextlib
import errno
import os
import time
import unicodedata
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Diagnostic, told
from mdmem.errors import (
    AlreadyExists,
    ConfigInvalid,
    Conflict,
    FileBusy,
    Invalid,
    LockTimeout,
    MdmemError,
    MemoryNotFound,
    PathRefused,
    TooLarge,
    VaultNotFound,
)
from mdmem.text.document import Document, parse
from mdmem.vault import config, files
from mdmem.vault.config import resolve, workspace_of
from mdmem.vault.files import Content, Place, held
from mdmem.vault.journal import ASIDE, STAGING, pending
from mdmem.vault.paths import Layer, Namespace, check_folder, check_memory, is_under, join, relative
from mdmem.vault.plan import EditPlan, NewNames, Prepared, refuse_repeats

if TYPE_CHECKING:  # what a command does not use is not imported
    from collections.abc import Callable, Iterator, Sequence

    from mdmem.schema import Schemas
    from mdmem.template import Templates
    from mdmem.vault.journal import Journal
    from mdmem.vault.transaction import Applied, Transaction
    from mdmem.vault.trash import Entry, TrashFolder
    from mdmem.vault.walk import Found

LOCK_SECONDS = 10.0
_RECOVER_SECONDS = 3.0  # how long a reader waits for the end of a change of several files
LOCAL = ".mdmem/local"
_LOCAL_FOLDERS = (".mdmem", LOCAL, STAGING, f"{LOCAL}/trash")
_READ_SETTLE_SECONDS = 0.2
_NAMED = 3  # of the memories of a change
_REMEDIES = {
    "user": "change it in the scope of the user alone",
    "project": "change it in the scope of the project",
    "shared": "change it in the scope of everyone",
}
_MOST_OWN_BYTES = 1024 * 1024  # of a schema or a template


class _Own(NamedTuple):
    """The vault's own schemas or templates, and the state of their folder when they were read."""

    state: tuple[tuple[str, int, int], ...]
    texts: dict[str, str]


class Vault:
    """The memories under one namespace of the vault in the folder `root`.

    The namespace is a wall: every path that a method takes or returns is relative to it, and none leaves it.
    What `reads` names besides can be read, under those names, and not be changed. Constructing a vault opens
    nothing; every method reads what is there now. `actor` is who changes it.

    Attributes:
        notes: what had to give in reading, in words, oldest first: each is said once.
    """

    def __init__(
        self, root: str, namespace: str | Namespace = "", actor: str = "", reads: Sequence[Layer] = ()
    ) -> None:
        self.root = os.path.realpath(root)
        self.wall = namespace if isinstance(namespace, Namespace) else Namespace(check_folder(namespace))
        self.namespace = self.wall.folder
        self.reads = reads or (Layer("", self.wall),)
        self.actor = actor
        self.notes: list[str] = []
        self._stuck = False
        self._schemas: tuple[_Own, Schemas] | None = None
        self._templates: tuple[_Own, Templates] | None = None

    # -- what the vault is made of ------------------------------------------------------------------------

    @cached_property
    def config(self) -> config.Config:
        """The config, as it was when it was first needed.

        Raises:
            ConfigInvalid: it cannot be used.
        """
        try:
            with files.opened(self.root, (".mdmem",)) as folder:
                data = files.read(folder, "config.toml", config.MAX_BYTES).data
        except FileNotFoundError:
            return config.Config()
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise ConfigInvalid(path=config.CONFIG_PATH, reason=str(error.strerror)) from None
            raise files.refusal(error, config.CONFIG_PATH, "read it") from None
        return config.parse(data.decode("utf-8", "replace"))

    @cached_property
    def workspace(self) -> str:
        """What the memories talk about: the git root that holds the vault, else its parent folder."""
        return workspace_of(self.root)

    @cached_property
    def mounts(self) -> dict[str, tuple[str, ...]]:
        """The mounted files: path of the vault to names below the workspace."""
        return resolve(self.config.mounts, self.root, self.workspace) if self.config.mounts else {}

    @property
    def schemas(self) -> Schemas:
        """The schemas, the vault's own over the built-in ones; read again when one of them changes.

        Raises:
            ConfigInvalid: the config names a schema that is not there.
        """
        own = self._own("schemas", (".json",))
        if self._schemas is None or self._schemas[0].state != own.state:
            texts = {name.removesuffix(".json"): text for name, text in own.texts.items()}
            self._schemas = own, self._known_schemas(texts)
        return self._schemas[1]

    def _known_schemas(self, own: dict[str, str]) -> Schemas:
        from mdmem.schema import Schemas  # noqa: PLC0415 - start-up

        default = ""
        with contextlib.suppress(ConfigInvalid):  # one that is broken is met wherever more is needed of it
            default = self.config.working.schema
        schemas = Schemas(own, default)
        if default and default not in (names := [info.name for info in schemas.names()]):
            reason = f"[working] schema: there is no schema {default!r}"
            raise ConfigInvalid(path=config.CONFIG_PATH, reason=reason, remedy=f"known: {', '.join(names)}")
        return schemas

    @property
    def templates(self) -> Templates:
        """The templates, the vault's own over the built-in ones; read again when one of them changes."""
        from mdmem.template import Templates  # noqa: PLC0415 - start-up

        own = self._own("templates", (".md", ".json"))
        if self._templates is None or self._templates[0].state != own.state:
            self._templates = own, Templates(own.texts)
        return self._templates[1]

    def _own(self, kind: str, suffixes: tuple[str, ...]) -> _Own:
        known = self._schemas if kind == "schemas" else self._templates
        found: list[Found] = []
        if files.is_folder(os.path.join(self.root, ".mdmem", kind)):
            from mdmem.vault.walk import walk  # noqa: PLC0415 - start-up

            found = list(walk(self.root, (".mdmem", kind), suffixes))
        state = tuple((f.path, f.mtime_ns, f.size) for f in found if not f.problem)
        if known and known[0].state == state:
            return known[0]
        texts: dict[str, str] = {}
        for path, _, _ in state:
            *folders, name = path.split("/")
            shown = f".mdmem/{kind}/{path}"
            with (
                contextlib.suppress(MemoryNotFound),
                files.translated(shown, "read it"),
                files.opened(self.root, (".mdmem", kind, *folders)) as folder,
            ):
                self._refuse_large(shown, files.size(folder, name), _MOST_OWN_BYTES)
                texts[path] = files.read(folder, name).data.decode("utf-8", "replace")
        return _Own(state, texts)

    @cached_property
    def trash(self) -> TrashFolder:
        """What was overwritten and deleted."""
        from mdmem.vault.trash import TrashFolder  # noqa: PLC0415 - start-up

        return TrashFolder(os.path.join(self.root, LOCAL, "trash"), self.config.trash)

    @cached_property
    def journal(self) -> Journal:
        """What makes several files change together."""
        from mdmem.vault.journal import Journal  # noqa: PLC0415 - start-up

        return Journal(self.root, self.place_of, self.trash)

    def place(self, path: str) -> Place:
        """Where the file of a memory is.

        Raises:
            PathRefused: `path` cannot name a memory, or is that of none in this namespace.
        """
        return self.place_of(self._full(check_memory(path)))

    def folder(self, path: str) -> str:
        """A folder of this namespace as the whole vault names it.

        Raises:
            PathRefused: `path` cannot name a folder, or is that of none in this namespace.
        """
        return self._full(check_folder(path))

    def _full(self, path: str) -> str:
        """A path of this namespace as the whole vault names it."""
        layer = self._layer(path)
        if layer:
            problem = f"what begins with {layer.name}: can be shown, and is changed where it belongs"
            raise PathRefused(path=path, reason=problem, remedy=_REMEDIES[layer.name])
        full = join(self.namespace, path)
        if not self.wall.holds(full):
            reason = "what is private to users is no part of what everyone shares"
            raise PathRefused(path=path, reason=reason, remedy="name a memory outside of users/")
        return full

    def _layer(self, path: str) -> Layer | None:
        """What a path belongs to that is read besides this namespace."""
        name, colon, _ = path.partition(":")
        return next((layer for layer in self.reads if colon and layer.name == name), None)

    def shown(self, full: str) -> str:
        """What a path of the whole vault, which may be read here, is called here."""
        return next((each.shown(full) for each in self.reads if each.namespace.holds(full)), full)

    def hides(self, file: str) -> bool:
        """Whether a file, by its absolute path, stands in the vault and outside of all that may be read."""
        if self.wall == Namespace():
            return False
        inside = os.path.relpath(os.path.realpath(file), self.root).replace(os.sep, "/")
        if inside.split("/")[0] == os.pardir:
            return False
        # What is kept in the trash is everyone's.
        return is_under(inside, LOCAL) or not any(layer.namespace.holds(inside) for layer in self.reads)

    def place_of(self, full: str) -> Place:
        """As `place`, of a path that was checked before, as the whole vault names it."""
        mounted = self.mounts.get(full)
        return Place(self.workspace, mounted) if mounted else Place(self.root, tuple(full.split("/")))

    def in_workspace(self, full: str) -> str:
        """The file of a memory, which the whole vault names `full`, seen from the workspace."""
        root, parts = self.place_of(full)
        return os.path.relpath(os.path.join(root, *parts), self.workspace)

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, path: str, *, recovered: bool = False) -> Document:
        """The memory at `path`.

        Args:
            path: of the memory.
            recovered: whether `recover` was called a moment ago.

        Raises:
            MemoryNotFound: there is none; the error names the nearest.
            PathRefused: the path leaves the vault, or is a link, a folder, a device.
            DocumentRefused: its bytes cannot be a memory.
            StorageFailed: the system refused.
        """
        document = self.find(path, recovered=recovered)
        if document is None:
            raise MemoryNotFound(path=path, near=self._near(path))
        return document

    def find(self, path: str, *, recovered: bool = False, spelled: str = "") -> Document | None:
        """As `read`, with None where there is no memory; with `spelled`, only in this Unicode spelling."""
        if not recovered:
            self.recover()
        layer = self._layer(path)
        if layer:
            # One part of a path at least stands behind the colon.
            inside = check_memory(path.partition(":")[2])
            content = Vault(self.root, layer.namespace)._content(inside, _READ_SETTLE_SECONDS)  # noqa: SLF001
            return parse(path, content.data, self.config.limits) if content else None
        content = self._content(path, _READ_SETTLE_SECONDS, spelled=spelled)
        return parse(path, content.data, self.config.limits) if content else None

    def _content(
        self, path: str, settle: float, *, strict: bool = False, spelled: str = ""
    ) -> Content | None:
        """What stands in a file once nobody is writing it; None where there is none.

        After `settle` seconds it is what stands there all the same, or, with `strict`, a FileBusy.
        """
        root, (*folders, name) = self.place(path)
        if spelled:
            *folders, name = join(self.namespace, spelled).split("/")
        try:
            with (
                files.translated(path, "read it"),
                files.opened(root, folders, exact=bool(spelled)) as folder,
            ):
                if not spelled and not name.isascii() and not files.exists(folder, name):
                    name = files.twin_of(folder, name) or name
                self._refuse_large(path, files.size(folder, name))
                content = files.read_settled(folder, name, settle)
                if content is None and strict:
                    raise FileBusy(path=path, seconds=settle)
                return content or files.read(folder, name)
        except MemoryNotFound:
            return None

    def _spelled(self, path: str) -> str:
        """The path of a memory's file as the disk spells it; empty where there is only one spelling."""
        full = join(self.namespace, path)
        if full.isascii() or full in self.mounts:
            return ""
        return "/".join(files.spelled(self.root, full.split("/")))

    def _refuse_large(self, path: str, size: int, most: int | None = None) -> None:
        """Refuse what is no memory before it fills ours."""
        limit = self.config.limits.max_bytes if most is None else most
        if size > limit:
            raise TooLarge(path=path, size=size, limit=limit)

    def _near(self, path: str) -> tuple[str, ...]:
        from difflib import get_close_matches  # noqa: PLC0415 - start-up

        layer = self._layer(path)
        if layer:
            inside = Vault(self.root, layer.namespace)._near(path.partition(":")[2])  # noqa: SLF001
            return tuple(f"{layer.name}:{name}" for name in inside)
        names = [found.path for found in self.walk()]
        tails = {name.rpartition("/")[2]: name for name in names}
        near = get_close_matches(path, names, 2) + get_close_matches(path.rpartition("/")[2], tails, 2)
        return tuple(dict.fromkeys(tails.get(name, name) for name in near))

    def exists(self, path: str) -> bool:
        """Whether there is a memory at `path`."""
        try:
            return self._content(path, 0) is not None
        except TooLarge:
            return True

    def walk(self, namespace: str = "") -> Iterator[Found]:
        """Every memory under `namespace`, sorted by the parts of its path, mounts included.

        Files that look like memories but cannot be one (links, names that are no paths) come with their
        `problem`. Hidden folders are never entered.
        """
        from mdmem.vault.walk import walk  # noqa: PLC0415 - start-up

        self.recover()
        folder = self.folder(namespace)
        parts = tuple(folder.split("/")) if folder else ()
        hides = {each.casefold() for each in self.wall.hides}
        for found in walk(self.root, parts, mounts=self.mounted(folder), hides=hides):
            yield found._replace(path=relative(found.path, self.namespace))

    def mounted(self, folder: str) -> dict[str, str]:
        """The mounts under `folder`, as the whole vault names it: path of the vault to absolute path."""
        return {
            path: os.path.join(self.workspace, *parts)
            for path, parts in self.mounts.items()
            if is_under(path, folder) and self.wall.holds(path)
        }

    def history(self) -> Iterator[Entry]:
        """The changes to memories of this namespace, newest first."""
        depth = self.namespace.count("/") + 1 if self.namespace else 0
        for entry in self.trash.entries():
            inside = tuple(
                replace(
                    change,
                    path=relative(change.path, self.namespace),
                    spelled="/".join(change.spelled.split("/")[depth:]),
                )
                for change in entry.files
                if self.wall.holds(change.path)
            )
            if len(inside) == len(entry.files):
                yield replace(entry, files=inside)
            elif inside:
                # Its message may tell of the others.
                told = ", ".join(change.path for change in inside[:_NAMED])
                more = f" and {len(inside) - _NAMED} more" if len(inside) > _NAMED else ""
                yield replace(entry, files=inside, message=f"change {told}{more}", is_part=True)

    def content(self, digest: str) -> bytes | None:
        """What a memory of this namespace once held, by its hash; None when it is not kept (any more)."""
        known = any(digest in {f.before, f.after} for entry in self.history() for f in entry.files)
        return self.trash.content(digest) if known else None

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
            LockTimeout, FileBusy, StorageFailed: somebody else is in the way.
        """
        prepared = self.prepare(plan)
        with self._writing(), self._discreet():
            self.new_names().refuse(prepared.plan)  # somebody may have made a twin since
            return self._transaction(prepared, may_merge=may_merge).run()

    def transact(self, build: Callable[[], EditPlan]) -> Applied:
        """Apply the plan that `build` makes; where somebody wrote in between, make it again and apply that.

        Raises:
            As `apply`, and what `build` raises.
        """
        with contextlib.suppress(Conflict, AlreadyExists):
            return self.apply(build(), may_merge=False)
        deadline = time.monotonic() + LOCK_SECONDS
        with self._writing(), self._discreet():
            while True:
                # Under the lock only a program that takes none can be in the way, so this soon gets through.
                prepared = self.prepare(build())
                try:
                    return self._transaction(prepared, may_merge=False).run()
                except Conflict:
                    if time.monotonic() > deadline:
                        raise

    @contextlib.contextmanager
    def _discreet(self) -> Iterator[None]:
        """Where an id of the namespace differs in case from that of another, the error does not say which."""
        try:
            yield
        except PathRefused:
            # Where the namespace is there, nothing outside of it was in the way.
            if not self.namespace or os.path.lexists(os.path.join(self.root, self.namespace)):
                raise
            reason = "an id differs only in case from another one, or a link stands in its place"
            raise PathRefused(path=self.namespace, reason=reason, remedy="choose another id") from None

    def prepare(self, plan: EditPlan) -> Prepared:
        """A plan as it would be written, without the secrets that it may not add. Nothing is written.

        Raises:
            Invalid, PathRefused, EditRefused, DocumentRefused: as `apply` would.
        """
        refuse_repeats(plan)
        for path in plan.paths:
            self._full(check_memory(path))
        self.new_names().refuse(plan)
        prepared = Prepared(plan, [change.after(self.config.limits) for change in plan.changes])
        if plan.brings_back:
            return prepared
        prepared = self._screened(prepared)
        findings: list[Diagnostic] = []
        for change, after in zip(plan.changes, prepared.afters, strict=True):
            findings += self._new_findings(change.before, after) if after else ()
        if findings:
            raise Invalid(findings=tuple(told(findings)))
        return prepared

    def new_names(self) -> NewNames:
        """What refuses the new names of one plan that not every system can hold."""

        def stands(full: str) -> bool:
            return full in self.mounts or os.path.lexists(os.path.join(self.root, full))

        def names_in(folder: str) -> list[str]:
            parts = folder.split("/") if folder else ()
            mounted = [path for path in self.mounts if path.rpartition("/")[0] == folder]
            with contextlib.suppress(OSError), files.opened(self.root, parts) as descriptor:
                mounted += os.listdir(descriptor)
            return [unicodedata.normalize("NFC", name.rpartition("/")[2]) for name in mounted]

        return NewNames(self.namespace, stands, names_in)

    def _screened(self, prepared: Prepared) -> Prepared:
        if self.config.secrets.policy == "off":
            return prepared
        from mdmem.vault.screen import screen  # noqa: PLC0415 - start-up

        return screen(prepared, self.config.secrets)

    def check(self, document: Document) -> list[Diagnostic]:
        """Everything that is wrong with a memory: its form, its schema, and the secrets that stand in it."""
        layer = self._layer(document.path)
        if layer:
            # Its schema is chosen by where it stands.
            inside = parse(document.path.partition(":")[2], document.data, document.limits)
            return [
                replace(each, path=document.path) for each in Vault(self.root, layer.namespace).check(inside)
            ]
        found = self.schemas.check(document)
        if self.config.secrets.policy == "off":
            return found
        from mdmem.vault.screen import standing  # noqa: PLC0415 - start-up

        return found + standing(document, self.config.secrets)

    def _new_findings(self, before: Document | None, after: Document) -> list[Diagnostic]:
        """What a change breaks: a memory that is broken already may be changed, not broken further."""
        if before and self.schemas.ignores_difference(before, after):
            found = list(after.body_findings)
        else:
            found = self.schemas.check(after)
        errors = [finding for finding in found if finding.severity == "error"]
        known = {(f.code, f.rule) for f in self.schemas.check(before)} if before and errors else set()
        return [finding for finding in errors if (finding.code, finding.rule) not in known]

    def _refuse_new_findings(self, before: Document | None, after: Document) -> None:
        findings = self._new_findings(before, after)
        if findings:
            raise Invalid(findings=tuple(findings))

    def _transaction(self, prepared: Prepared, *, may_merge: bool) -> Transaction:
        from mdmem.vault.journal import BUSY_SECONDS  # noqa: PLC0415 - start-up
        from mdmem.vault.transaction import Transaction  # noqa: PLC0415 - start-up

        return Transaction(
            plan=prepared.plan,
            afters=prepared.afters,
            namespace=self.namespace,
            actor=self.actor,
            limits=self.config.limits,
            journal=self.journal,
            read=lambda path, spelled: self._content(path, BUSY_SECONDS, strict=True, spelled=spelled),
            spelled=self._spelled,
            check=self._refuse_new_findings,
            may_merge=may_merge,
        )

    # -- the lock, and what a crash left ------------------------------------------------------------------

    @contextlib.contextmanager
    def _lock(self, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Hold the vault's write lock."""
        self._make_local()
        with held(os.path.join(self.root, LOCAL, "lock"), seconds):
            yield

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock, with what a crash left put right."""
        with self._lock():
            self._recover()
            yield

    def _recover(self) -> int:
        with files.translated(LOCAL, "recover"):
            recovered = self.journal.recover()
        if self.journal.aside:
            count = len(self.journal.aside)
            self.note(f"{STAGING}: what was not written here ({count}) was not used; it is in {ASIDE}")
            self.journal.aside.clear()
        return recovered

    def note(self, text: str) -> None:
        """Say something that a reader has to know, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _make_local(self) -> None:
        # Looked at each time: these folders may have come with a repository, and be links.
        ignored = os.path.lexists(os.path.join(self.root, LOCAL, ".gitignore"))
        if ignored and all(files.is_folder(os.path.join(self.root, path)) for path in _LOCAL_FOLDERS):
            return
        try:
            for path in (STAGING, f"{LOCAL}/trash"):
                with files.opened(self.root, path.split("/"), create=True):
                    pass
            with files.opened(self.root, LOCAL.split("/")) as folder:
                if not files.exists(folder, ".gitignore"):
                    with contextlib.suppress(FileExistsError):
                        files.write_new(folder, ".gitignore", b"*\n")
        except OSError as error:
            if not os.path.isdir(self.root):
                raise VaultNotFound(start=self.root) from None
            raise files.refusal(error, LOCAL, "make it") from None

    def local(self, name: str) -> str:
        """The absolute path of a folder for what can be made anew, which git ignores; made when missing.

        Raises:
            PathRefused: a part of it is a link.
            StorageFailed: it cannot be made.
        """
        self._make_local()
        path = f"{LOCAL}/{name}"
        with files.translated(path, "make it"), files.opened(self.root, path.split("/"), create=True):
            return os.path.join(self.root, path)

    def own(self, name: str) -> str:
        """As `local`, a folder in that one which was made here: what came with the files cannot stand in it.

        Raises:
            As `local`.
        """
        from mdmem.vault.mark import name_for  # noqa: PLC0415 - start-up

        with files.translated(name, "make it"), files.opened(self.local(name)) as folder:
            own = name_for(folder)
        return self.local(f"{name}/{own}")

    def enter(self) -> None:
        """As `recover`, in a vault that is there: in one that is gone, to find nothing would be a guess.

        Raises:
            VaultNotFound: the vault's folder is gone.
        """
        if not os.path.isdir(self.root):
            raise VaultNotFound(start=self.root)
        self.recover()

    def recover(self) -> int:
        """Undo or finish what a crash left behind; how many transactions.

        A transaction that another process is in the middle of is waited for when it changes several files:
        nobody reads half of a change. Where that process does not go on, or the vault cannot be written,
        reading goes on, and a note says so.
        """
        found: set[str] = set()
        try:
            with files.translated(LOCAL, "read it"):
                found = pending(self.root)
            if not found:
                self._stuck = False
                return 0
            # Who has waited once does not wait for every file that is read.
            with self._lock(_RECOVER_SECONDS if "many" in found and not self._stuck else 0):
                self._stuck = False
                return self._recover()
        except MdmemError as error:
            if not self._stuck and not (isinstance(error, LockTimeout) and "many" not in found):
                self._stuck = True
                self.note(f"a change that was cut short or goes on may be read in part: {error.message}")
            return 0
