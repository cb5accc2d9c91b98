"""The façade: one object that gathers every kind of memory of one scope."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.errors import DocumentRefused, MemoryNotFound, StorageFailed, VaultNotFound
from mdmem.memory.globs import matcher
from mdmem.memory.verbs import Build, Verbs
from mdmem.text.document import Document
from mdmem.vault.paths import check_folder, check_memory, join, relative
from mdmem.vault.plan import EditPlan
from mdmem.vault.scope import Scope
from mdmem.vault.trash import Entry
from mdmem.vault.vault import Vault

if TYPE_CHECKING:  # most commands use one of these, or none
    from mdmem.index.grep import Case, Hits
    from mdmem.memory.doctor import Health
    from mdmem.memory.notes import Notes
    from mdmem.memory.preferences import Preferences
    from mdmem.memory.project import Project
    from mdmem.memory.rules import Rules
    from mdmem.memory.working import Working
    from mdmem.vault.transaction import Applied

R = TypeVar("R")


class Kinds(Verbs[R], Generic[R]):
    """The verbs for any memory, and the kinds with their own verbs."""

    def __init__(self, vault: Vault, scope: Scope, run: Callable[[Build], R]) -> None:
        super().__init__(vault, run)
        self.scope = scope

    @cached_property
    def notes(self) -> Notes[R]:
        """The notes."""
        from mdmem.memory.notes import Notes  # noqa: PLC0415 - start-up

        return Notes(self._vault, self._run)

    @cached_property
    def working(self) -> Working[R]:
        """The working memory of threads and resources."""
        from mdmem.memory.working import Working  # noqa: PLC0415 - start-up

        return Working(self._vault, self._run)

    @cached_property
    def preferences(self) -> Preferences[R]:
        """The preferences."""
        from mdmem.memory.preferences import Preferences  # noqa: PLC0415 - start-up

        return Preferences(self._vault, self._run)

    @cached_property
    def project(self) -> Project[R]:
        """The project memory."""
        from mdmem.memory.project import Project  # noqa: PLC0415 - start-up

        return Project(self._vault, self._run)

    @cached_property
    def rules(self) -> Rules:
        """The rules."""
        from mdmem.memory.rules import Rules  # noqa: PLC0415 - start-up

        return Rules(self._vault, self.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A memory in a listing: its path, bytes, and time of change in nanoseconds since the epoch.

    `problem` says why a file that looks like a memory cannot be one; it is empty for a memory.
    """

    path: str
    size: int
    mtime_ns: int
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        shape = {"path": self.path, "size": self.size, "mtime_ns": self.mtime_ns}
        return {**shape, "problem": self.problem} if self.problem else shape


class Memory(Kinds["Applied"]):
    """The memories of one scope of a vault.

    Every path that goes in or comes out is relative to the scope's namespace, and none leaves it. A verb
    that changes something does it at once and says what it did; the same verb of `plan` only returns the
    edit plan.
    """

    def __init__(self, root: str, scope: Scope | None = None, *, actor: str = "") -> None:
        scope = scope or Scope()
        self.vault = Vault(root, scope.namespace, actor)
        super().__init__(self.vault, scope, self.vault.transact)

    @cached_property
    def plan(self) -> Kinds[EditPlan]:
        """The same verbs, which return an edit plan and write nothing."""
        return Kinds(self.vault, self.scope, lambda build: build())

    def apply(self, plan: EditPlan) -> Applied:
        """Do what a plan says, all of it or nothing; see `Vault.apply`."""
        return self.vault.apply(plan)

    def diff(self, plan: EditPlan) -> str:
        """What a plan would change, as a unified diff, once it is checked as `apply` would check it."""
        self.vault.prepare(plan)
        return plan.diff()

    def show(self, path: str) -> Document:
        """The memory at `path`: its bytes, text, hash, fields, headings; see `Vault.read`."""
        return self.vault.read(path)

    def ls(self, within: str = "", *, globs: Sequence[str] = ()) -> list[Listed]:
        """The memories below the folder `within` that fit one of `globs`, in the order of their paths.

        Files that look like memories and cannot be one come with their `problem`.

        Raises:
            MemoryNotFound: nothing is below `within`.
            PatternInvalid: a glob that is none.
        """
        fits, inside = matcher(globs), len(join(check_folder(within), "x")) - 1
        found = list(self.vault.walk(within))
        if within and not found:
            raise MemoryNotFound(path=within)
        return [Listed(**f._asdict()) for f in found if fits(f.path[inside:])]

    def grep(
        self,
        pattern: str,
        *,
        within: str = "",
        globs: Sequence[str] = (),
        regex: bool = False,
        case: Case = "ignore",
        context: int = 0,
        limit: int | None = None,
    ) -> Hits:
        """The lines that match, as they are found, in the order of path and line; see `mdmem.index.grep`."""
        from mdmem.index.grep import grep  # noqa: PLC0415 - start-up

        self.vault.recover()
        base = self.vault.namespace
        folder = join(base, check_folder(within))
        return grep(
            pattern,
            root=self.vault.root,
            mounts=self.vault.mounted(folder),
            read=lambda path: self.vault.read(relative(path, base)),
            namespace=folder,
            base=base,
            globs=globs,
            regex=regex,
            case=case,
            context=context,
            limit=limit,
        )

    def render(self, template: str, variables: Mapping[str, Any] | None = None) -> str:
        """What a template renders to; see `mdmem.template`.

        Raises:
            NamedNotFound, TemplateFailed: it is not there, or cannot be rendered.
        """
        return self.vault.templates.render(template, variables or {}, now=datetime.now(UTC))

    def check(self, paths: Sequence[str] = ()) -> list[Diagnostic]:
        """Everything that is wrong with memories: their form, and their schemas.

        Args:
            paths: memories or folders; all memories without any.

        Raises:
            MemoryNotFound: a path names nothing.
        """
        findings: list[Diagnostic] = []
        for path in paths or ("",):
            for found in self._named(path):
                findings += self._check_one(*found)
        return findings

    def _named(self, path: str) -> Iterator[tuple[str, str]]:
        if path.endswith((".md", ".json")):
            yield path, ""
            return
        met = False
        for found in self.vault.walk(path):
            met = True
            yield found.path, found.problem
        if path and not met:
            raise MemoryNotFound(path=path)

    def _check_one(self, path: str, problem: str) -> list[Diagnostic]:
        if problem:
            return [about_file(path, "not-a-memory", f"left out: {problem}", severity="warning")]
        try:
            return self.vault.schemas.check(self.vault.read(path))
        except (DocumentRefused, StorageFailed) as error:
            return [about_file(path, error.code, error.message, error.hint)]

    def doctor(self) -> Health:
        """What is wrong with the vault itself; see `mdmem.memory.doctor`."""
        from mdmem.memory.doctor import examine  # noqa: PLC0415 - start-up

        return examine(self.vault)

    def history(self, path: str | None = None) -> list[Entry]:
        """The changes to this namespace, newest first; with `path`, those to one memory.

        Raises:
            PathRefused: `path` cannot name a memory.
        """
        name = None if path is None else check_memory(path)
        return [e for e in self.vault.history() if name is None or any(f.path == name for f in e.files)]


def open(  # noqa: A001 - mdmem.open reads as what it does, like gzip.open
    vault: str | os.PathLike[str] | None = None, scope: Scope | None = None, *, actor: str = ""
) -> Memory:
    """The memories of `scope` in a vault.

    Args:
        vault: the vault's folder; without one it is found as the program finds it: from MDMEM_VAULT, then
            upward from the current folder, in folders that are a vault or hold `memories/`.
        scope: whose memory, about what; without one, the whole vault.
        actor: who makes changes, for the history.

    Raises:
        VaultNotFound: no vault there.
    """
    return Memory(find(vault), scope, actor=actor)


def find(vault: str | os.PathLike[str] | None = None) -> str:
    """The absolute path of a vault's folder; see `open`.

    Raises:
        VaultNotFound: no vault there.
    """
    named = os.fspath(vault) if vault is not None else os.environ.get("MDMEM_VAULT")
    if named:
        folder = os.path.abspath(named)
        if not _is_vault(folder):
            raise VaultNotFound(start=folder)
        return folder
    start = folder = os.getcwd()
    while True:
        for candidate in (folder, os.path.join(folder, "memories")):
            if _is_vault(candidate):
                return candidate
        above = os.path.dirname(folder)
        if above == folder:
            raise VaultNotFound(start=start)
        folder = above


def _is_vault(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, ".mdmem", "config.toml"))
