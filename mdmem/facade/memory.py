"""The façade: one object with every kind of memory of a scope, and what opens it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from mdmem.diagnostic import Diagnostic
from mdmem.document.arguments import complete_id
from mdmem.document.document import Document
from mdmem.errors import ExtraMissing, MdmemError, Usage
from mdmem.facade.lazy import Lazy
from mdmem.facade.scoped import ScopedMemory, steadily
from mdmem.memory.content import utc_now
from mdmem.memory.history import changed_since, list_changes
from mdmem.vault.folder import find, find_around, is_vault, name_url
from mdmem.vault.local_store import LocalStore
from mdmem.vault.paths import (
    Scope,
    StrPath,
    above,
    absolute,
    check_memory,
    path_text,
    path_texts,
    place_text,
)
from mdmem.vault.plan import EditPlan
from mdmem.vault.store import Entry, FileChange

if TYPE_CHECKING:  # most commands use one of these, or none
    from mdmem.editor.editing import Editing
    from mdmem.facade.instructions import WorkspaceProject
    from mdmem.facade.memini import VaultStore
    from mdmem.facade.questions.context import Context
    from mdmem.facade.questions.doctor import Health
    from mdmem.facade.questions.report import MemoryReport
    from mdmem.facade.questions.statistics import MemorySize, MemoryStats
    from mdmem.facade.questions.status import MemoryStatus
    from mdmem.facade.questions.why import Why
    from mdmem.facade.service import Service
    from mdmem.facade.sharing import Shared
    from mdmem.index.embedder import Embedder
    from mdmem.index.watch.events import Event, Watch
    from mdmem.index.watch.watcher import Keeper, Watcher
    from mdmem.memory.duplicates import DuplicatePair
    from mdmem.memory.quality import MemoryQuality
    from mdmem.vault.postgres import PostgresStore
    from mdmem.vault.postgres_upkeep import ErasedMemory, SweptVault
    from mdmem.vault.transaction import Applied
    from mdmem.vault.transfer import CopiedVault


R = TypeVar("R")


class Memory(ScopedMemory):
    """The memories of one scope of a vault.

    Every path that goes in or comes out is relative to the scope's namespace, and none leaves it. A verb
    that changes something does it at once and says what it did; the same verb of `plan` only returns the
    edit plan. With `thread`, no path is that of another conversation either; see `of_thread`.

    What asks the index raises LockTimeout or StorageFailed where it cannot be made current.
    """

    project: Lazy[WorkspaceProject] = Lazy(
        "mdmem.facade.instructions:WorkspaceProject",
        "vault",
        "_apply_built",
        "_find_states_at",
        doc="The project memory, and what coding tools are told beside it.",
    )

    def __repr__(self) -> str:
        return f"Memory({self.vault.name!r}, {self.scope!r})"

    def of_thread(self, thread: str) -> Memory:
        """Return the same memories, of those that conversations left behind only what is of one thread.

        Its summary, observations and working memory stay, also where it is another name of a session. Those
        of others are neither found nor read nor changed, as if they were another user's.

        Raises:
            Usage, PathRefused: no thread can have this name.
        """
        return Memory(
            self.vault.store, self.scope, actor=self.vault.actor, thread=thread, embedder=self._embedder
        )

    def of_scope(self, scope: Scope) -> Memory:
        """Return the memories of another scope, over the same store and index: for a server of many scopes.

        Raises:
            PathRefused: an id that no file name can carry.
        """
        other = Memory(self.vault.store, scope)
        other.index = self.index
        with suppress(MdmemError):  # a search meets it, and says so
            if meaning := self.meaning:
                other._meaning = meaning
        return other

    @cached_property
    def store(self) -> VaultStore:
        """The notes by namespace and id, for programs that were written for memini's store."""
        from mdmem.facade.memini import VaultStore  # noqa: PLC0415 - start-up

        meaning, _ = self._find_meaning()
        owner = f"store {self.vault.namespace}"
        shared = self.vault.disk.find_vectors(meaning.embedder.name if meaning else "", owner)
        return VaultStore(self, vectors=shared or (meaning.vectors_of(owner) if meaning else None))

    def forget_meaning(self) -> None:
        """Delete all vectors of the vault on this machine, also those that programs keep in `store`."""
        from mdmem.index.vectors import NAME, VectorFile  # noqa: PLC0415 - start-up

        VectorFile(os.path.join(self.index.folder, NAME), []).delete()

    @cached_property
    def service(self) -> Service:
        """What a program that serves the memories looks after: warnings, consent, commits."""
        from mdmem.facade.service import Service  # noqa: PLC0415 - start-up

        return Service(self)

    @cached_property
    def shared(self) -> Shared:
        """What others share with this user: `shared("alice")` is to be used, `shared.list()` lists it."""
        from mdmem.facade.sharing import Shared  # noqa: PLC0415 - start-up

        return Shared(self)

    def names_shared(self, paths: Iterable[StrPath]) -> bool:
        """Tell whether a path names what another user may share, such as `from-alice:notes/db.md`."""
        named = [name for name in map(place_text, paths) if name.startswith("from-")]
        if not named:
            return False
        self.vault.recover()  # another server may have changed the config
        return self.vault.config.sharing.enabled and self.shared.has_layer(*named)

    def _show_shared(self, path: str) -> Document:
        return self.shared.show(path)

    def _ask_shared(self, question: Callable[..., R], asked: dict[str, Any]) -> R:
        return self.shared.ask(question, asked)

    def _commit_applied(self, applied: Applied) -> Applied:
        return self.service.commit_applied(applied)

    @steadily
    def context(
        self,
        query: str = "",
        files: Sequence[StrPath] = (),
        thread: str | None = None,
        budget: int = 4000,
        *,
        estimated: bool = False,
    ) -> Context:
        """Return what an agent needs of its memory, as one Markdown text.

        Rules, project memory, preferences and memories with `tier: pinned`, then the working memory of the
        thread and the passages that fit the query, each in a fence with its place and day. The template is
        `context`, which the vault can replace.

        Args:
            files: give only the rules about these files of the workspace; without any, all rules.
            budget: the most tokens of the text, including the list of things left out.
            estimated: estimate tokens, also where a tokenizer is installed, which takes time to load.

        Raises:
            Usage: the budget is less than 1.
            TemplateFailed: the vault's template cannot be rendered.
        """
        from mdmem.facade.questions.context import context  # noqa: PLC0415 - start-up

        return context(self, query, path_texts(files), thread, budget, estimated=estimated)

    def watch(
        self, callback: Callable[[Event], object] | None = None, *, poll_seconds: float | None = None
    ) -> Watch:
        """Iterate over what happens to memories from now on, whoever changes them; to be closed.

        While it runs, questions to this object need not look at every file.

        Args:
            callback: is called with each event, in a thread of its own, instead of an iteration; see
                `Watch.call`.
            poll_seconds: look at every file this often beside watching; without it, where events do not tell
                everything, as on network file systems.
        """
        self.vault.require_folder("watching files")
        from mdmem.index.watch.events import Watch  # noqa: PLC0415 - start-up

        watch = Watch(
            self._current_view(), lambda path: self.check([path], links=False), poll_seconds=poll_seconds
        )
        if callback:
            watch.call(callback)
        return watch

    def keep_current(self, watcher: Watcher | None = None) -> Keeper:
        """Watch for changes, so that questions look only at what has changed: for a process that goes on.

        Where an embedder is set, the vectors that passages lack are made.

        Args:
            watcher: one that is started; the caller takes its hints. A new one without.

        Returns:
            To be closed.

        Raises:
            NeedsFolder: the vault is in a database, which tells what has changed.
        """
        from mdmem.index.watch.watcher import Keeper  # noqa: PLC0415 - start-up

        meaning, _ = self._find_meaning()
        if meaning:
            meaning.keep_filled()
        self.vault.require_folder("watching files")
        return Keeper(self.index, watcher)

    def editing(self) -> Editing:
        """Return the memories as an editor sees them, unsaved texts included; see `mdmem.editor.editing`."""
        self.vault.require_folder("an editor")
        from mdmem.editor.editing import Editing  # noqa: PLC0415 - start-up

        return Editing(self)

    def doctor(self, *, fix: bool = False, dry_run: bool = False, host: str = "") -> Health:
        """Return what is wrong with the vault itself; see `mdmem.facade.questions.doctor`.

        Args:
            fix: first fix links to memories that other programs have moved, remove what crashes left, add
                what `.gitignore` lacks, and rebuild the index where it is wrong.
            dry_run: with `fix`, fix nothing; the result has the diff.
            host: also run the hooks of this host's settings, and start its server.

        Raises:
            MdmemError: as `Vault.apply`, with `fix`; or settings of the host cannot be read.
        """
        from mdmem.facade.questions import doctor  # noqa: PLC0415 - start-up

        fixed: Applied | EditPlan | None = None
        others: list[str] = []
        if fix:
            others = doctor.fix_ignores(self.vault, dry_run=dry_run)
            build = partial(doctor.fix_vault, self.vault, self._current_view())
            fixed = doctor.plan_fixes(self._current_view()) if dry_run else self._apply_built(build)
        health = doctor.examine(self.vault, self._current_view, fixed, others)
        meaning, state = self._find_meaning()
        if meaning:
            from mdmem.index.text_index import TextView  # noqa: PLC0415 - start-up

            layers = [layer.namespace for layer in self.vault.reads[: len(self.scope.searches)]]
            count = self.index.text(lambda text: TextView(text, layers).passage_count)
            state = meaning.describe_state(layers, count)
        if state:
            health = replace(health, facts={**health.facts, "meaning": state})
        return doctor.examine_host(health, host, self.root) if host else health

    # -- questions: none of them changes a memory ----------------------------------------------------------

    def past(self, when: datetime | str) -> Memory:
        """Return the memories as they were at a moment: every question, and no change; see `origin`.

        Args:
            when: a day, a time, or a revision of git, which means what its commit holds.

        Raises:
            Usage: `when` is no moment, or before all that is kept.
            StorageFailed: there is no room for the copy.
        """
        from mdmem.facade.questions.past import make_past, read_when  # noqa: PLC0415 - start-up

        self.vault.enter()
        layers = [self.vault.within(each.namespace) for each in self.vault.reads]
        made = make_past(self.vault, layers or [self.vault], read_when(self.vault, when))
        memory = Memory(made.root, self.scope, actor=self.vault.actor, embedder="none")
        memory.origin = made
        return memory

    @steadily
    def why(self, path: StrPath) -> Why:
        """Explain a memory: what it rests on, and how sure it is; see `mdmem.facade.questions.why`.

        Raises:
            MemoryNotFound: it is not there.
        """
        from mdmem.facade.questions.why import explain  # noqa: PLC0415 - start-up

        return explain(self, self._current_view(), path_text(path))

    def duplicates(self, within: StrPath = "", path: StrPath | None = None) -> tuple[DuplicatePair, ...]:
        """Find memories that say the same: in a folder, or as the memory at `path` does, among all.

        What cannot be compared is named in `service.remarks`. See `mdmem.memory.duplicates`.

        Raises:
            MemoryNotFound: nothing is there.
        """
        from mdmem.memory.duplicates import ComparedMemories  # noqa: PLC0415 - start-up

        view, folder = self._current_view(texts=path is not None), place_text(within)
        self._require_place(folder if path is None else path_text(path))
        compared = ComparedMemories(view, utc_now(), folder, check_memory(path) if path else "")
        pairs = compared.pairs
        self.vault.notes.extend(f"left out: {each}" for each in compared.reasons)
        return pairs

    def quality(self, paths: Sequence[StrPath] = (), *, below: float = 1.0) -> list[MemoryQuality]:
        """Judge memories and folders, the worst first; only what scores `below`; see `mdmem.memory.quality`.

        Raises:
            MemoryNotFound: a path names nothing.
            Usage: `below` is not from 0 to 1.
        """
        from mdmem.facade.questions.report import list_quality  # noqa: PLC0415 - start-up

        return list_quality(self, self._current_view(), path_texts(paths), below, utc_now())

    def report(self, *, since: datetime | str | None = None) -> MemoryReport:
        """Report what is weak, and the commands that fix it; with `since`, also count it as of then.

        Raises:
            Usage: `since` is no moment, or before all that is kept; see `past`.
        """
        from mdmem.facade.questions.report import make_report  # noqa: PLC0415 - start-up

        before = None if since is None else self.past(since).report().counts
        return make_report(self, self._current_view(), utc_now(), before)

    def render(self, template: str, variables: Mapping[str, Any] | None = None) -> str:
        """Return what a template renders to; see `mdmem.vault.template`.

        Raises:
            NamedNotFound, TemplateFailed: it is not there, or cannot be rendered.
        """
        from datetime import UTC, datetime  # noqa: PLC0415 - start-up

        return self.vault.templates.render(
            template, variables or {}, now=datetime.now(UTC), refuse_unread=True
        )

    @steadily
    def check(self, paths: Sequence[StrPath] = (), *, links: bool = True) -> list[Diagnostic]:
        """Everything that is wrong with memories: form, schema, secrets, links, cited code, ids, lineage.

        Args:
            paths: memories or folders; without any, all memories, the vault's own schemas and templates, and
                files that a mount hides.
            links: whether to look at links, citations and ids, for which the index is made current.

        Raises:
            MemoryNotFound: a path names nothing.
        """
        from mdmem.facade.questions.check import Check  # noqa: PLC0415 - start-up

        self.vault.enter()
        paths = path_texts(paths)
        view = partial(self._current_view, texts=bool(paths))
        findings = Check(self.vault, view).run(paths, links=links)
        if not paths and self.vault.store.stands(".mdmem/lexicon.toml"):
            findings += self.capture.check()
        return findings

    def history(self, path: StrPath | Sequence[StrPath] | None = None) -> list[Entry]:
        """Return the changes to this namespace, newest first.

        With `path`, those to a memory or below a folder, or to any of several.

        Raises:
            PathRefused: `path` cannot name either.
        """
        return list_changes(self.vault, (path,) if isinstance(path, str | os.PathLike) else path or ())

    def diff(self, path: StrPath, *, against: str | None = None) -> str:
        """Return what has changed in a memory, as a unified diff; empty when nothing has.

        Args:
            path: of a memory, which may be gone by now.
            against: the hash of an earlier text, or the id of a change to begin with; without it, the last
                change; see `history`.

        Raises:
            NamedNotFound: mdmem never changed it, has no such change, or no longer keeps that text.
            Usage: a hash of fewer than eight digits.
        """
        return changed_since(self.vault, path_text(path), against)

    def stats(self) -> MemoryStats:
        """Return how much memory there is, by folder and by month."""
        from mdmem.facade.questions.statistics import count_memories  # noqa: PLC0415 - start-up

        self.vault.enter()
        return count_memories(self._current_view(), self.vault)

    def sizes(self) -> list[MemorySize]:
        """List how large each memory is, the largest first, and whether something in it leads nowhere."""
        from mdmem.facade.questions.statistics import list_sizes  # noqa: PLC0415 - start-up

        self.vault.enter()
        return list_sizes(self._current_view(), self.vault)

    def complete_thread(self, thread: str) -> str:
        """Return the thread, a session or one with working memory, that begins so; else what is given.

        Raises:
            Usage: several begin so.
        """
        with suppress(Usage):  # whoever asks for what no session can be called says so
            if self.vault.store.stands(self.sessions.logs.path(thread)):
                return thread
        known = [each.key for each in self.sessions.list()]
        known += [each.id for each in self.working.list() if each.kind == "thread"]
        return complete_id("thread", thread, known)

    @steadily
    def status(self) -> MemoryStatus:
        """Return what is here, what waits for somebody, and what is wrong with the setup.

        See `mdmem.facade.questions.status`. `check` and `doctor` look closer.
        """
        from mdmem.facade.questions.status import find_status  # noqa: PLC0415 - start-up

        self.vault.enter()
        return find_status(self, self.service, self._current_view)

    # -- what the verbs and questions need -----------------------------------------------------------------


def find_vault(folders: Iterable[str], vault: str = "") -> str | None:
    """Return the nearest vault, upward from the first of some folders that has one; None without one.

    Args:
        folders: absolute paths.
        vault: its path, seen from one of these folders or above; empty to find it as `open` does.
    """
    if not vault:
        return next(filter(None, map(find_around, folders)), None)
    places = (os.path.join(each, vault) for folder in folders for each in (folder, *above(folder)))
    return next(filter(is_vault, places), None)


def open(  # noqa: A001 - mdmem.open reads as what it does, like gzip.open
    vault: StrPath | None = None,
    scope: Scope | None = None,
    *,
    actor: str = "",
    embedder: str | Embedder | None = None,
) -> Memory:
    """Return the memories of `scope` in a vault.

    Args:
        vault: the vault's folder, or the URL of one in a database, postgresql://…?vault=NAME; without one it
            is found as the program finds it: from MDMEM_VAULT, then upward from the current folder, in
            folders that are a vault or hold `memories/`.
        scope: the user, project or resource that the memories belong to; without one, the whole vault.
        actor: who makes changes, for the history.
        embedder: what makes vectors, by which `search` knows other words for the same thing: one of the
            program's own, or what `MDMEM_EMBEDDER` may name; that, or the user's own config, without.

    Raises:
        VaultNotFound: no vault there.
        Usage: the current folder is gone, or the URL cannot be one.
        ExtraMissing: a URL needs the extra `postgres`.
    """
    url = name_url(vault)
    store = _open_database(url) if url else find(vault)
    return Memory(store, scope, actor=actor, embedder=embedder)


def init_store(url: str, *, dims: int = 0) -> bool:
    """Make a vault in a PostgreSQL database, and the tables where it has none; return whether it made any.

    Args:
        url: of the vault; one that is there gets a table of vectors, where that is missing.
        dims: how many numbers the vectors of programs have; without it there is no table of them.

    Raises:
        Usage: the URL cannot be one, or the vectors of the database have another number of numbers.
        ExtraMissing: it needs the extra `postgres`.
        AlreadyExists: the vault is there.
        DatabaseFailed: the database refused.
    """
    try:
        from mdmem.vault.connection import make_tables, read_address  # noqa: PLC0415 - an extra
    except ImportError:
        raise ExtraMissing(extra="postgres", package="psycopg") from None
    return make_tables(read_address(url), dims)


def sweep_store(url: str, *, dry_run: bool = False) -> SweptVault:
    """Remove what `[trash]` in the config no longer keeps of the past of a vault in a database."""
    with closing(_open_database(url)) as store:
        from mdmem.vault.postgres_upkeep import sweep  # noqa: PLC0415 - an extra

        return sweep(store, dry_run=dry_run)


def copy_store(source: StrPath, target: StrPath, *, dry_run: bool = False) -> CopiedVault:
    """Copy a vault with its past to a folder or a database; each is named by its folder or its URL.

    Raises:
        VaultNotFound: there is no vault to copy, or none in the database.
    """
    url = name_url(source)
    store = _open_database(url) if url else LocalStore(find(source))
    url = name_url(target)
    to = _open_database(url) if url else LocalStore(absolute(target))
    try:
        from mdmem.vault.transfer import copy  # noqa: PLC0415 - an extra
    except ImportError:
        raise ExtraMissing(extra="postgres", package="psycopg") from None
    with closing(store), closing(to):
        return copy(store, to, dry_run=dry_run)


def put_store(url: str, folder: StrPath, *, dry_run: bool = False) -> tuple[FileChange, ...]:
    """Give a vault in a database the config, schemas and templates of the vault in a folder."""
    with closing(_open_database(url)) as store:
        from mdmem.vault.postgres_upkeep import put  # noqa: PLC0415 - an extra

        return put(store, path_text(folder), dry_run=dry_run)


def check_store(url: str) -> list[Diagnostic]:
    """List what is wrong with a vault in a database, and put this machine's copy of it right."""
    with closing(_open_database(url)) as store:
        from mdmem.vault.postgres_upkeep import check  # noqa: PLC0415 - an extra

        return check(store)


def erase_store(url: str, path: StrPath, *, dry_run: bool = False) -> ErasedMemory:
    """Remove for good what a vault in a database holds and held of a memory, a session or a folder."""
    with closing(_open_database(url)) as store:
        from mdmem.vault.postgres_upkeep import erase  # noqa: PLC0415 - an extra

        return erase(store, path_text(path), dry_run=dry_run)


def _open_database(url: str) -> PostgresStore:
    try:
        from mdmem.vault.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError:
        raise ExtraMissing(extra="postgres", package="psycopg") from None
    return PostgresStore(url)


def list_grants(role: str, *, vectors: bool = False) -> tuple[str, ...]:
    """Return what the owner of the tables grants to the role of the servers, and nothing more, as SQL."""
    from mdmem.vault import connection  # noqa: PLC0415 - an extra

    return connection.list_grants(role, vectors=vectors)
