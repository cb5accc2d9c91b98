"""The façade: one object that gathers every kind of memory of one scope."""

from __future__ import annotations

import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mdmem.arguments import checked
from mdmem.diagnostic import Diagnostic, about_file, told
from mdmem.errors import DocumentRefused, MemoryNotFound, StorageFailed, SystemFailing, Usage
from mdmem.kind import PROPOSAL, kind_at
from mdmem.memory.kinds import Kinds
from mdmem.text.document import SUFFIXES, Document
from mdmem.text.globs import matcher
from mdmem.text.tree import LINEAGE
from mdmem.vault.config import find
from mdmem.vault.paths import Scope, StrPath, check_folder, check_memory, is_under, join, relative
from mdmem.vault.vault import Vault

if TYPE_CHECKING:  # most commands use one of these, or none
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ripgrepy import Ripgrepy

    from mdmem.errors import NotAllowed
    from mdmem.generator import Generator
    from mdmem.index.grep import Case, Hits
    from mdmem.index.index import Index
    from mdmem.index.query import Each, SearchRequest
    from mdmem.index.search import Results
    from mdmem.index.sync import Progress, Synced
    from mdmem.index.view import View
    from mdmem.kind import Kind
    from mdmem.memory.capture import Capture
    from mdmem.memory.context import Context
    from mdmem.memory.doctor import Health
    from mdmem.memory.instructions import WorkspaceProject
    from mdmem.memory.observer import ObservedSession, SessionObservations
    from mdmem.memory.verbs import Listed
    from mdmem.results.results import ToolResults
    from mdmem.schema import Schemas
    from mdmem.sessions.sessions import Sessions
    from mdmem.template.templates import Templates
    from mdmem.text.inline import Citation
    from mdmem.vault.plan import EditPlan
    from mdmem.vault.store import Entry
    from mdmem.vault.transaction import Applied
    from mdmem.watch.events import Watch
    from mdmem.watch.watcher import Keeper


def _pinning(vault: Vault) -> AbstractContextManager[Callable[[str, Citation], str]]:
    from mdmem.code.citations import pinning  # noqa: PLC0415 - few memories cite code

    return pinning(vault)


class Memory(Kinds["Applied"]):
    """The memories of one scope of a vault.

    Every path that goes in or comes out is relative to the scope's namespace, and none leaves it. A verb
    that changes something does it at once and says what it did; the same verb of `plan` only returns the
    edit plan.
    """

    def __init__(self, root: str, scope: Scope | None = None, *, actor: str = "") -> None:
        scope = scope or Scope()
        self.vault = Vault(root, scope.wall, actor, scope.reads)
        super().__init__(self.vault, scope, self.vault.transact, self._current)

    def __repr__(self) -> str:
        return f"Memory({self.vault.root!r}, {self.scope!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # What it has opened stays in this process.
        return partial(Memory, actor=self.vault.actor), (self.vault.root, self.scope)

    @property
    def root(self) -> str:
        """The absolute path of the vault's folder."""
        return self.vault.root

    @property
    def folder(self) -> str:
        """The absolute path of the namespace's folder, which is made with its first memory."""
        return os.path.join(self.vault.root, self.vault.namespace).rstrip(os.sep)

    @property
    def workspace(self) -> str:
        """What the memories talk about: the git root that holds the vault, else its parent folder."""
        return self.vault.workspace

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of memory, the built-in ones first.

        Raises:
            ConfigInvalid: the config cannot be read.
        """
        return self.vault.config.kinds

    @property
    def schemas(self) -> Schemas:
        """The schemas, the vault's own over the built-in ones."""
        return self.vault.schemas

    @property
    def templates(self) -> Templates:
        """The templates, the vault's own over the built-in ones."""
        return self.vault.templates

    @property
    def remarks(self) -> list[str]:
        """What had to give in the vault and in the index so far, in words, each once."""
        of_index = self.index.notes if "index" in vars(self) else []
        return list(dict.fromkeys((*self.vault.notes, *of_index)))

    @property
    def capture_refused(self) -> NotAllowed | None:
        """Why hooks keep and observe no conversations, where the config asks for that; None otherwise."""
        if not (self.vault.config.sessions.capture or self.vault.config.observation.enabled):
            return None
        from mdmem.sessions.logs import capture_refused  # noqa: PLC0415 - start-up

        return capture_refused(self.vault)

    @cached_property
    def plan(self) -> Kinds[EditPlan]:
        """The same verbs, which return an edit plan and write nothing."""
        return Kinds(self.vault, self.scope, lambda build: build(), self._current)

    @cached_property
    def project(self) -> WorkspaceProject:
        """The project memory, and what coding tools are told beside it."""
        from mdmem.memory.instructions import WorkspaceProject  # noqa: PLC0415 - start-up

        return WorkspaceProject(self.vault, self.vault.transact)

    @cached_property
    def capture(self) -> Capture[Applied]:
        """What is stated in sessions, and where it goes."""
        return self._capture(moves=True)

    @cached_property
    def sessions(self) -> Sessions:
        """The conversations: logs of messages by key."""
        from mdmem.sessions.sessions import Sessions  # noqa: PLC0415 - start-up

        return Sessions(self._vault)

    @cached_property
    def results(self) -> ToolResults:
        """The outputs of tools: their short forms, and all of each."""
        from mdmem.results.results import ToolResults  # noqa: PLC0415 - start-up

        return ToolResults(self._vault)

    @cached_property
    def observations(self) -> SessionObservations:
        """What stretches of sessions left behind, and what makes it."""
        from mdmem.memory.observer import SessionObservations  # noqa: PLC0415 - start-up

        return SessionObservations(self.vault, self.vault.transact, self.sessions)

    def observe(
        self,
        session: str | None = None,
        *,
        all: bool = False,  # noqa: A002 - its name on the command line
        watch: bool = False,
        generator: Generator | None = None,
    ) -> Iterable[ObservedSession]:
        """Observe sessions, and reflect on what was observed, where that is due; see `observations.due`.

        Where another process observes a session already, that one does it.

        Args:
            session: the key of one.
            all: every session of the namespace.
            watch: go on as they grow, for ever, and tell each time; without it, once, before this returns.
            generator: asks a language model; without one, or where it fails, rules decide.

        Raises:
            Usage: neither a session nor all of them.
        """
        if (session is None) != all:
            raise Usage(problem="observe one session, or all of them", remedy="give a session, or all")
        from mdmem.memory.observer import Observer  # noqa: PLC0415 - start-up

        observer = Observer(self.vault, self.vault.transact, self.sessions)
        if watch:
            return observer.watch(session, generator)
        return observer.every(generator) if session is None else [observer.work(session, generator)]

    def start_observing(self, session: str) -> bool:
        """Let another process observe a session, where anything is due, for a hook that does not wait.

        It is done where the config wants it, and the user has allowed what hooks keep.

        Returns:
            Whether one was started, or is at it already.
        """
        wanted = self.vault.config.observation.enabled and not self.capture_refused
        if not wanted or not self.observations.due(session):
            return False
        from mdmem.memory.observer import Observer, start  # noqa: PLC0415 - start-up

        observer = Observer(self.vault, self.vault.transact, self.sessions)
        start(observer, self.vault, self.scope, self.sessions.resolve(session))
        return True

    @cached_property
    def index(self) -> Index:
        """The index of the whole vault; every question that needs it makes it current first."""
        from mdmem.index.index import Index  # noqa: PLC0415 - start-up

        return Index(self.vault.root, _pinning)

    def _current(self) -> View:
        """What the index knows of this namespace, once it is current."""
        from mdmem.index.view import View  # noqa: PLC0415 - start-up

        self.index.sync(texts=False)
        return View(self.index, self.vault)

    def sync(self, *, rebuild: bool = False, progress: Progress | None = None) -> Synced:
        """Make the index say what the files say; every question does so by itself.

        Args:
            rebuild: make it anew, whatever it says.
            progress: told how many of how many files are read.

        Returns:
            What has changed since the last time, in this namespace.

        Raises:
            LockTimeout, StorageFailed: it cannot be done now.
        """
        self.vault.enter()
        if progress and not self.scope.is_owner:
            # How many files there are is for the owner to know.
            each, progress = progress, lambda done, of: each(100 * done // of, 100)
        synced = self.index.rebuild(progress) if rebuild else self.index.sync(progress=progress, alone=True)
        return synced.under(self.vault.wall)

    def apply(self, plan: EditPlan) -> Applied:
        """Do what a plan says, all of it or nothing; see `Vault.apply`."""
        return self.vault.apply(plan)

    def diff(self, plan: EditPlan) -> str:
        """What a plan would change, as a unified diff, once it is checked as `apply` would check it."""
        return self.prepared(plan).diff()

    def prepared(self, plan: EditPlan) -> EditPlan:
        """A plan as `apply` would do it: checked, and without the secrets that it may not add."""
        return self.vault.prepare(plan).plan

    def at(self, file: StrPath) -> str | None:
        """The path of the memory that a file on disk, or a link to it, is; None for any other file."""
        if "\0" in file:
            return None
        real = os.path.realpath(file)
        if is_under(real, self.vault.root):
            full = os.path.relpath(real, self.vault.root).replace(os.sep, "/")
        else:
            mounted = (
                path for path, place in self.vault.mounted("").items() if os.path.realpath(place) == real
            )
            full = next(mounted, "")
        hidden = any(part.startswith(".") for part in full.split("/"))
        if hidden or not full.endswith(SUFFIXES) or not self.vault.wall.holds(full):
            return None
        return relative(full, self.vault.namespace)

    def exists(self, path: StrPath) -> bool:
        """Whether a memory stands at `path`."""
        return self.vault.exists(path)

    def state_folder(self, name: str) -> str:
        """The absolute path of a folder for what can be made anew, made when missing; git ignores it.

        Raises:
            PathRefused: it cannot be a name, or a part of it is a link.
            StorageFailed: it cannot be made.
        """
        return self.vault.disk.local(check_folder(name))

    def show(self, path: StrPath) -> Document:
        """The memory at `path`: its bytes, text, hash, fields, headings; see `Vault.read`."""
        self.vault.enter()
        return self.vault.read(path, recovered=True)

    def ls(
        self,
        within: StrPath = "",
        *,
        globs: Sequence[str] = (),
        where: Sequence[str] = (),
        sort: str = "",
    ) -> list[Listed]:
        """The memories below the folder `within` that fit, in the order of their paths.

        Files that look like memories and cannot be one come with their `problem`, except with conditions.

        Args:
            within: a folder; everything without.
            globs: a memory has to fit one of them, seen from `within`.
            where: conditions on fields, all of which have to hold; see `mdmem.index.view`.
            sort: a field to sort by; with `-` before it, the largest value first. Memories without it come
                last.

        Raises:
            MemoryNotFound: nothing is below `within`.
            PatternInvalid: a glob or a condition that cannot be read.
        """
        from mdmem.memory.verbs import Listed, conditional  # noqa: PLC0415 - start-up

        self.vault.enter()
        fits, inside = matcher(globs), len(join(check_folder(within), "x")) - 1
        if not (where or sort):
            met = list(self.vault.walk(within))
            if within and not met:
                raise MemoryNotFound(path=within)
            return [Listed(f.path, f.size, f.mtime_ns, f.problem) for f in met if fits(f.path[inside:])]
        found = conditional(self._current(), check_folder(within), where, sort)
        return [listed for listed in found if fits(listed.path[inside:])]

    def grep(
        self,
        pattern: str,
        *,
        within: StrPath = "",
        globs: Sequence[str] = (),
        regex: bool = False,
        case: Case = "ignore",
        context: int = 0,
        limit: int | None = None,
    ) -> Hits:
        """The lines that match, as they are found, in the order of path and line; see `mdmem.index.grep`."""
        from mdmem.index.grep import grep  # noqa: PLC0415 - start-up

        self.vault.enter()
        base = self.vault.namespace
        folder = self.vault.folder(within)
        return grep(
            pattern,
            root=self.vault.root,
            mounts=self.vault.mounted(folder),
            read=lambda path: self.vault.read(relative(path, base), recovered=True),
            namespace=folder,
            base=base,
            hides=self.vault.wall.hides,
            globs=globs,
            regex=regex,
            case=case,
            context=context,
            limit=limit,
        )

    def ripgrep(self, pattern: str) -> Ripgrepy:
        """All of ripgrep for the files of this namespace: a `Ripgrepy`, to be given more options and run.

        It never leaves the folder: hidden files, links and a program to run for each file stay off whatever
        options are added. `grep` knows more: mounted files, headings, dates, and what could not be read.

        Args:
            pattern: a regular expression; it may begin with a dash.

        Raises:
            RipgrepMissing: there is no ripgrep.
        """
        from mdmem.index.grep import ripgrepy  # noqa: PLC0415 - start-up

        self.vault.enter()
        return ripgrepy(pattern, self.vault.root, self.vault.wall)

    def search(
        self,
        query: str | SearchRequest,
        *,
        within: StrPath = "",
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
        since: str = "",
        before: str = "",
        limit: int = 10,
        depth: int = 0,
        budget: int | None = None,
        each: Each = "memory",
        context: int | None = None,
        explain: bool = False,
    ) -> Results:
        """The passages that fit a query best.

        Args:
            query: what to look for; or a `SearchRequest` that says all, and nothing besides.
            within, types, tags, since, before: as `SearchRequest`, and so are
            limit, depth, budget, each, context, explain.

        Raises:
            Usage: an argument that cannot mean anything.
            PathRefused: `within` leaves the namespace.
            LockTimeout, StorageFailed: the index cannot be made current.
        """
        from mdmem.index.query import SearchRequest  # noqa: PLC0415 - start-up
        from mdmem.index.search import search  # noqa: PLC0415 - start-up

        request = SearchRequest(
            query="" if isinstance(query, SearchRequest) else query,
            within=within,
            types=types,
            tags=tags,
            since=since,
            before=before,
            limit=limit,
            depth=depth,
            budget=budget,
            each=each,
            context=context,
            explain=explain,
        )
        if isinstance(query, SearchRequest):
            if request != SearchRequest(query=""):
                raise Usage(problem="a SearchRequest says all that is asked", remedy="leave the rest out")
            request = query
        index, layers = self.index, self.scope.searches
        self.vault.enter()
        index.sync()
        read = partial(index.vault.read, recovered=True)
        return index.both(
            lambda database, text: search(text, request, read=read, headings=database.headings, layers=layers)
        )

    def context(
        self,
        query: str = "",
        files: Sequence[StrPath] = (),
        thread: str | None = None,
        budget: int = 4000,
        *,
        estimated: bool = False,
    ) -> Context:
        """What an agent needs of its memory, as one Markdown text; see `mdmem.memory.context`.

        Rules, project memory, preferences and memories with `tier: pinned`, then the working memory of the
        thread and the passages that fit the query, each in a fence with its place and day. The template is
        `context`, which the vault can replace.

        Args:
            query: what to look for; nothing without one.
            files: give only the rules about these files of the workspace; without any, all rules.
            thread: whose working memory to give; none without.
            budget: the most tokens of the text, the list of what was left out included.
            estimated: estimate tokens, also where a tokenizer is installed, which takes time to load.

        Raises:
            Usage: the budget is less than 1.
            TemplateFailed: the vault's template cannot be rendered.
            LockTimeout, StorageFailed: the index cannot be made current.
        """
        from mdmem.memory.context import context  # noqa: PLC0415 - start-up

        return context(self, query, files, thread, budget, estimated=estimated)

    def watch(self, *, poll_seconds: float | None = None) -> Watch:
        """What happens to memories from now on, whoever changes them: an iterator of events, to be closed.

        While it runs, questions to this object need not look at every file; those of other processes neither.

        Args:
            poll_seconds: look at every file this often beside watching; without it, where events do not tell
                everything, as on network file systems.

        Raises:
            LockTimeout, StorageFailed: as `sync`.
        """
        from mdmem.watch.events import Watch  # noqa: PLC0415 - start-up

        return Watch(self._current(), lambda path: self.check([path]), poll_seconds=poll_seconds)

    def keep_current(self) -> Keeper:
        """Watch for changes, so that questions look only at what has changed: for a process that goes on.

        While it runs, questions of other processes need not look at every file either.

        Returns:
            To be closed.
        """
        from mdmem.watch.watcher import Keeper  # noqa: PLC0415 - start-up

        self.index.rest_when_idle()
        return Keeper(self.index)

    def render(self, template: str, variables: Mapping[str, Any] | None = None) -> str:
        """What a template renders to; see `mdmem.template`.

        Raises:
            NamedNotFound, TemplateFailed: it is not there, or cannot be rendered.
        """
        from datetime import UTC, datetime  # noqa: PLC0415 - start-up

        return self.vault.templates.render(template, variables or {}, now=datetime.now(UTC))

    def check(self, paths: Sequence[StrPath] = ()) -> list[Diagnostic]:
        """Everything that is wrong with memories: form, schema, secrets, and what they say they came from.

        Args:
            paths: memories or folders; all memories without any.

        Raises:
            MemoryNotFound: a path names nothing.
        """
        self.vault.enter()
        findings: list[Diagnostic] = []
        related: set[str] = set()
        for path in paths or ("",):
            for found in self._named(path):
                findings += self._check_one(*found, related)
        if not paths and self.vault.store.stands(".mdmem/lexicon.toml"):
            findings += self.capture.check()
        if related:
            from mdmem.links.graph import astray  # noqa: PLC0415 - start-up

            findings += astray(self._current(), related)
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

    def _check_one(self, path: str, problem: str, related: set[str]) -> list[Diagnostic]:
        """What is wrong with one memory; with fields of lineage it is put into `related`."""
        if problem:
            return [about_file(path, "not-a-memory", f"left out: {problem}", severity="warning")]
        try:
            document = self.vault.read(path)
            related.update(path for key in LINEAGE if document.fields.get(key))
            found = self.vault.check(document)
            if kind_at(path) is PROPOSAL:
                from mdmem.memory.proposal import judge  # noqa: PLC0415 - start-up

                found += judge(document, self._builds, self.vault)
            return told(found)
        except (DocumentRefused, StorageFailed, SystemFailing) as error:
            return [about_file(path, error.code, error.message, error.hint)]

    def doctor(self, *, fix: bool = False) -> Health:
        """What is wrong with the vault itself; see `mdmem.memory.doctor`.

        Args:
            fix: first mend links to memories that other programs have moved, remove what crashes left, and
                make the index anew where it is wrong.

        Raises:
            As `Vault.apply`, with `fix`.
        """
        from mdmem.memory.doctor import examine, mend  # noqa: PLC0415 - start-up

        mended = self.vault.transact(lambda: mend(self.vault, self._current())) if fix else None
        return examine(self.vault, self._current, mended)

    def history(self, path: StrPath | None = None) -> list[Entry]:
        """The changes to this namespace, newest first; with `path`, those to one memory.

        Raises:
            PathRefused: `path` cannot name a memory.
        """
        name = None if path is None else check_memory(path)
        return [e for e in self.vault.history() if name is None or any(f.path == name for f in e.files)]


@checked
def open(  # noqa: A001 - mdmem.open reads as what it does, like gzip.open
    vault: StrPath | None = None, scope: Scope | None = None, *, actor: str = ""
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
