"""The façade: one object that gathers every kind of memory of one scope."""

from __future__ import annotations

import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mdmem.errors import Usage
from mdmem.memory.kinds import Kinds
from mdmem.memory.questions import Questions
from mdmem.vault.folder import find
from mdmem.vault.paths import Scope, StrPath, check_folder, path_texts

if TYPE_CHECKING:  # most commands use one of these, or none
    from collections.abc import Iterable, Sequence

    from mdmem.errors import MdmemError, NotAllowed
    from mdmem.generator import Generator
    from mdmem.index.sync import Progress, Synced
    from mdmem.kind import Kind
    from mdmem.memory.capture import Capture
    from mdmem.memory.context import Context
    from mdmem.memory.doctor import Health
    from mdmem.memory.instructions import WorkspaceProject
    from mdmem.memory.observer import ObservedSession, SessionObservations
    from mdmem.results.results import ToolResults
    from mdmem.schema import Schemas
    from mdmem.sessions.sessions import Sessions
    from mdmem.template.templates import Templates
    from mdmem.vault.plan import EditPlan
    from mdmem.vault.transaction import Applied
    from mdmem.watch.events import Watch
    from mdmem.watch.watcher import Keeper


class Memory(Questions):
    """The memories of one scope of a vault.

    Every path that goes in or comes out is relative to the scope's namespace, and none leaves it. A verb
    that changes something does it at once and says what it did; the same verb of `plan` only returns the
    edit plan. With `thread`, no path is that of another conversation either; see `of_thread`.
    """

    def __repr__(self) -> str:
        return f"Memory({self.vault.root!r}, {self.scope!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # What it has opened stays in this process.
        return partial(Memory, actor=self.vault.actor, thread=self.thread), (self.vault.root, self.scope)

    def of_thread(self, thread: str) -> Memory:
        """The same memories, of those that conversations left behind only what is of one thread.

        Its summary, observations and working memory stay, also where it is another name of a session. Those
        of others are neither found nor read nor changed, as if they were another user's.

        Raises:
            Usage, PathRefused: no thread can have this name.
        """
        return Memory(self.root, self.scope, actor=self.vault.actor, thread=thread)

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
        """What had to give in the vault, the index and git so far, in words, each once."""
        of_index = self.index.notes if "index" in vars(self) else []
        return list(dict.fromkeys((*self.vault.notes, *of_index, *self._words)))

    @property
    def capture_refused(self) -> NotAllowed | None:
        """Why hooks keep and observe no conversations, where the config asks for that; None otherwise."""
        config = self.vault.config
        if not (config.sessions.capture or config.observation.enabled or self.is_captured):
            return None
        from mdmem.sessions.logs import capture_refused  # noqa: PLC0415 - start-up

        return capture_refused(self.vault)

    @property
    def is_captured(self) -> bool:
        """Whether the config asks for what is stated, and for outputs of tools, to be kept."""
        return self.vault.config.capture.policy != "off"

    @property
    def commit_refused(self) -> MdmemError | None:
        """Why nothing is committed to git by itself, where the config asks for that; None otherwise."""
        if self.vault.config.git.commit == "off":
            return None
        from mdmem.memory.commits import Commits  # noqa: PLC0415 - few vaults want it

        return Commits(self.vault).refused()

    def commit_left(self) -> str:
        """Commit to git what a session or a server leaves, where the config asks for that and it may be.

        Returns:
            A word about what was not committed, and why; no error is raised.
        """
        if self.vault.config.git.commit == "off":
            return ""
        from mdmem.memory.commits import Commits  # noqa: PLC0415 - few vaults want it

        return Commits(self.vault).by_itself()

    @cached_property
    def plan(self) -> Kinds[EditPlan]:
        """The same verbs, which return an edit plan and write nothing."""
        return Kinds(self.vault, self.scope, lambda build: build(), self._current)

    @cached_property
    def project(self) -> WorkspaceProject:
        """The project memory, and what coding tools are told beside it."""
        from mdmem.memory.instructions import WorkspaceProject  # noqa: PLC0415 - start-up

        return WorkspaceProject(self.vault, self._transact)

    @cached_property
    def capture(self) -> Capture[Applied]:
        """What is stated in sessions, and where it goes."""
        return self._capture(partial(self._transact, locked=True), moves=True)

    @property
    def sessions(self) -> Sessions:
        """The conversations: logs of messages by key."""
        return self._sessions

    @cached_property
    def results(self) -> ToolResults:
        """The outputs of tools: their short forms, and all of each."""
        from mdmem.results.results import ToolResults  # noqa: PLC0415 - start-up

        return ToolResults(self._vault)

    @cached_property
    def observations(self) -> SessionObservations:
        """What stretches of sessions left behind, and what makes it."""
        from mdmem.memory.observer import SessionObservations  # noqa: PLC0415 - start-up

        return SessionObservations(self.vault, self._transact, self.sessions)

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

        observer = Observer(self.vault, self._transact, self.sessions)
        if watch:
            return observer.watch(session, generator)
        return observer.every(generator) if session is None else [observer.work(session, generator)]

    def start_background(self, session: str) -> bool:
        """Let another process observe and capture a session; see `mdmem.memory.background.start`."""
        if not (self.vault.config.observation.enabled or self.is_captured):
            return False
        from mdmem.memory.background import start  # noqa: PLC0415 - few vaults want it

        return start(self, session)

    def sync(self, *, rebuild: bool = False, progress: Progress | None = None) -> Synced:
        """Make the index say what the files say; every question does so by itself.

        Args:
            rebuild: make it anew, whatever it says.
            progress: told how many of how many files are read, in place of the `progress` of this object.

        Returns:
            What has changed since the last time, in this namespace.

        Raises:
            LockTimeout, StorageFailed: it cannot be done now.
        """
        self.vault.enter()
        told = self._told(progress)
        synced = self.index.rebuild(told) if rebuild else self.index.sync(progress=told, alone=True)
        return synced.under(self.vault.wall)

    def apply(self, plan: EditPlan) -> Applied:
        """Do what a plan says, all of it or nothing; see `Vault.apply`. Then it is committed, if wanted."""
        return self._committed(self.vault.apply(plan))

    def prepared(self, plan: EditPlan) -> EditPlan:
        """A plan as `apply` would do it: checked, and without the secrets that it may not add."""
        return self.vault.prepare(plan).plan

    def state_folder(self, name: str) -> str:
        """The absolute path of a folder for what can be made anew, made when missing; git ignores it.

        Raises:
            PathRefused: it cannot be a name, or a part of it is a link.
            StorageFailed: it cannot be made.
        """
        return self.vault.disk.local(check_folder(name))

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

        return context(self, query, path_texts(files), thread, budget, estimated=estimated)

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

        return Watch(self._current(), lambda path: self.check([path], links=False), poll_seconds=poll_seconds)

    def keep_current(self) -> Keeper:
        """Watch for changes, so that questions look only at what has changed: for a process that goes on.

        While it runs, questions of other processes need not look at every file either.

        Returns:
            To be closed.
        """
        from mdmem.watch.watcher import Keeper  # noqa: PLC0415 - start-up

        self.index.rest_when_idle()
        return Keeper(self.index)

    def doctor(self, *, fix: bool = False) -> Health:
        """What is wrong with the vault itself; see `mdmem.memory.doctor`.

        Args:
            fix: first mend links to memories that other programs have moved, remove what crashes left, and
                make the index anew where it is wrong.

        Raises:
            As `Vault.apply`, with `fix`.
        """
        from mdmem.memory.doctor import examine, mend  # noqa: PLC0415 - start-up

        mended = self._transact(lambda: mend(self.vault, self._current())) if fix else None
        return examine(self.vault, self._current, mended)


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
