"""Memories of one scope: its vault, its index, and the questions that read both."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from mdmem.document.arguments import texts_of
from mdmem.document.document import Document
from mdmem.document.text.globs import matcher
from mdmem.errors import MdmemError, MemoryNotFound, NamedNotFound, Usage, plural
from mdmem.facade.kinds import Kinds
from mdmem.facade.lazy import Lazy
from mdmem.kind import Kind
from mdmem.memory.content import LIMITS, State, utc_now
from mdmem.memory.verbs import Build, Listing
from mdmem.vault.folder import hides
from mdmem.vault.paths import (
    Layer,
    Scope,
    StrPath,
    check_folder,
    check_memory,
    is_under,
    join,
    path_text,
    path_texts,
    place_text,
    relative,
)
from mdmem.vault.plan import EditPlan
from mdmem.vault.store import Store
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from ripgrepy import Ripgrepy

    from mdmem.conversations.models.generator import Generator
    from mdmem.conversations.observe.observer import ObservedSession, SessionObservations
    from mdmem.conversations.results.results import ToolResults
    from mdmem.conversations.sessions import Sessions
    from mdmem.document.markdown.inline import Citation
    from mdmem.facade.questions.past import PastCopy, PastState
    from mdmem.facade.questions.uses import Uses
    from mdmem.index.embedder import Embedder
    from mdmem.index.grep import Case, Hits
    from mdmem.index.index import Index
    from mdmem.index.meaning import Meaning
    from mdmem.index.query import Each
    from mdmem.index.search import Results
    from mdmem.index.sync import Progress as FileProgress, Synced
    from mdmem.index.view import View
    from mdmem.memory.sharing import Access
    from mdmem.vault.schema import Schemas
    from mdmem.vault.template.templates import Templates
    from mdmem.vault.transaction import Applied


P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound="ScopedMemory")
Progress = Callable[[str, int, int], None]


def steadily(ask: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Let a question look only once for what other servers have changed."""

    @wraps(ask)
    def asking(memory: M, /, *given: P.args, **named: P.kwargs) -> R:
        with memory.vault.store.steady():
            return ask(memory, *given, **named)

    return asking


class ScopedMemory(Kinds["Applied"]):
    """The memories of one scope of a vault, their index, and what is read of both; see `Memory`."""

    uses: Lazy[Uses] = Lazy(
        "mdmem.facade.questions.uses:Uses", "vault", doc="How often memories were used here."
    )

    results: Lazy[ToolResults] = Lazy(
        "mdmem.conversations.results.results:ToolResults",
        "vault",
        doc="The outputs of tools: their short forms, and all of each.",
    )

    observations: Lazy[SessionObservations] = Lazy(
        "mdmem.conversations.observe.observer:SessionObservations",
        "vault",
        "_apply_built",
        "sessions",
        doc="What stretches of sessions left behind, and what makes it.",
    )

    def __init__(
        self,
        store: Store | str,
        scope: Scope | None = None,
        *,
        actor: str = "",
        thread: str | None = None,
        embedder: str | Embedder | None = None,
    ) -> None:
        scope = scope or Scope()
        self._embedder = embedder
        self.thread = thread
        self.origin: PastCopy | None = None  # the moment that this is a copy of
        self.vault = Vault(store, scope.wall, actor, scope.reads)
        if thread is not None:
            from mdmem.conversations.log.logs import bound_to  # noqa: PLC0415 - start-up

            self.vault = bound_to(thread, self.vault)
        super().__init__(self.vault, scope, self._apply_built, self._current_view)
        self._run_locked, self._moves = partial(self._apply_built, locked=True), True

    def __reduce__(self) -> tuple[Any, ...]:
        # What it has opened stays in this process.
        made = partial(type(self), actor=self.vault.actor, thread=self.thread, embedder=self._embedder)
        return made, (self.vault.store, self.scope)

    @property
    def root(self) -> str:
        """The absolute path of the vault's folder; of a vault in a database, that of this machine's copy."""
        return self.vault.root

    @property
    def name(self) -> str:
        """What names the vault: its folder, as an absolute path, or its URL."""
        return self.vault.name

    @property
    def folder(self) -> str:
        """The absolute path of the namespace's folder, which is made with its first memory."""
        return os.path.join(self.vault.root, self.vault.namespace).rstrip(os.sep)

    @property
    def workspace(self) -> str:
        """What the memories talk about: the git root that holds the vault, else its parent folder."""
        return self.vault.workspace

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the name of a memory ends: `.md`, `.json`, and what `[files] suffixes` in the config names."""
        return self.vault.suffixes

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

    @cached_property
    def plan(self) -> Kinds[EditPlan]:
        """The same verbs, which return an edit plan and write nothing."""
        return Kinds(self.vault, self.scope, lambda build: build(), self._current_view)

    @property
    def meaning(self) -> Meaning | None:
        """What knows other words for the same thing, where the user or the program has set an embedder.

        Raises:
            ConfigInvalid, Usage: the setting is no embedder, or nothing may be sent to it.
        """
        return self._meaning if self.vault.config.search.meaning else None

    @cached_property
    def _meaning(self) -> Meaning | None:
        from mdmem.vault.mark import NONE, named_embedder  # noqa: PLC0415 - start-up

        named = self._embedder or named_embedder()
        if named == NONE:
            return None
        from mdmem.index.embedder import configured_embedder  # noqa: PLC0415 - an extra
        from mdmem.index.meaning import Meaning  # noqa: PLC0415 - as above

        embedder = configured_embedder(named)
        return Meaning(self.index, embedder) if embedder else None

    def _find_meaning(self) -> tuple[Meaning | None, str]:
        """Return `meaning`; where an embedder is set and cannot be used, None and the reason."""
        try:
            return self.meaning, ""
        except MdmemError as error:
            return None, f"words alone: {error.message}"

    @property
    def sessions(self) -> Sessions:
        """The conversations: logs of messages by key."""
        return self._sessions

    def observe(
        self,
        session: str | None = None,
        *,
        all: bool = False,  # noqa: A002 - its name on the command line
        watch: bool = False,
        now: bool = False,
        generator: Generator | None = None,
    ) -> Iterable[ObservedSession]:
        """Observe sessions, and reflect on what was observed, where that is due; see `observations.due`.

        Where another process observes a session already, that one does it.

        Args:
            watch: go on as they grow, for ever, and tell each time; without it, once, before this returns.
            now: observe what is new, however little it is.
            generator: asks a language model; without one, or where it fails, rules decide.

        Raises:
            Usage: neither a session nor all of them, or `now` with `watch`.
        """
        if (session is None) != all:
            raise Usage(
                problem="observe one session, or all of them", remedy="name a session, or ask for all"
            )
        if watch and now:
            raise Usage(
                problem="to observe now and to watch exclude each other", remedy="leave one of them out"
            )
        if watch:
            return self.observations.watch(session, generator)
        if session is None:
            return self.observations.every(generator, now=now)
        return [self.observations.work(session, generator, now=now)]

    def sync(self, *, rebuild: bool = False, progress: FileProgress | None = None) -> Synced:
        """Bring the index up to date; every question does so by itself.

        Args:
            rebuild: read every file again.
            progress: told how many of how many files are read, instead of the `progress` of this object.

        Returns:
            What has changed since the last time, in this namespace.
        """
        self.vault.enter()
        told = self._index_progress(progress)
        synced = self.index.rebuild(told) if rebuild else self.index.sync(progress=told)
        return synced.under(self.vault.wall)

    def apply(self, plan: EditPlan) -> Applied:
        """Do what a plan says, all of it or nothing; see `Vault.apply`. Then it is committed, if wanted."""
        return self._commit_applied(self.vault.apply(plan))

    def prepared(self, plan: EditPlan) -> EditPlan:
        """Return a plan as `apply` would do it: checked, and without the secrets that it may not add."""
        return self.vault.prepare(plan).plan

    def state_folder(self, name: str) -> str:
        """Return the absolute path of a folder in `.mdmem/local`, made when missing; git ignores it.

        Raises:
            PathRefused: it cannot be a name, or a part of it is a link.
            StorageFailed: it cannot be made.
        """
        return self.vault.disk.local(check_folder(name))

    def at(self, file: StrPath) -> str | None:
        """Return the path of the memory that a file on disk, or a link to it, is; None for any other file."""
        if "\0" in path_text(file):
            return None
        path = self.inside(os.path.realpath(file)) or ""
        hidden = any(part.startswith(".") for part in path.split("/"))
        return path if path.endswith(self.suffixes) and not hidden else None

    def inside(self, file: StrPath) -> str | None:
        """Return what a place on disk is called here, whether or not anything is there; None outside.

        None also for a file that a mount of the same path hides.

        The vault's folder, and one of the workspace that it is in, mean all of the namespace: `""`. A link in
        the workspace leads nowhere.
        """
        if "\0" in path_text(file):
            return None
        root, workspace = self.vault.root, self.vault.workspace
        place = os.path.abspath(file)
        if not is_under(place, root):
            place = _resolve_outer_links(place, workspace)
        if place == root or (is_under(root, place) and is_under(place, workspace)):
            return ""
        if is_under(place, root):
            full = unicodedata.normalize("NFC", relative(place, root).replace(os.sep, "/"))
            if self.mounted_over(place):
                return None
        else:
            full = next((path for path, each in self.vault.mounted("").items() if each == place), "")
        return relative(full, self.vault.namespace) if full and self.vault.wall.holds(full) else None

    def mounted_over(self, file: StrPath) -> str | None:
        """Return the absolute path of the file that is mounted over one of the vault; None for others."""
        root, place = self.vault.root, os.path.abspath(file)
        if not is_under(place, root):
            place = _resolve_outer_links(place, self.vault.workspace)
        target = self.vault.mounted("").get(relative(place, root)) if is_under(place, root) else None
        return target if target and hides(target, place) else None

    def in_workspace(self, path: StrPath) -> str:
        """Return the file of a memory, relative to the workspace."""
        return self.vault.disk.in_workspace(join(self.vault.namespace, str(path))).replace(os.sep, "/")

    def exists(self, path: StrPath) -> bool:
        """Return whether a memory stands at `path`, or below the folder that it is."""
        path = path_text(path)
        if path.endswith(self.suffixes):
            return self.vault.exists(path)
        return next(self.vault.walk(path), None) is not None

    def show(self, path: StrPath, *, as_of: datetime | str | None = None) -> Document:
        """Return the memory at `path`: its bytes, text, hash, fields, headings; see `Vault.read`.

        Args:
            as_of: as it was then: a day, a time, or a revision of git, which means what its commit holds;
                `state_at` says how certain that is.

        Raises:
            MemoryNotFound: it is not there, or was not then.
            NamedNotFound: its text of then is not kept.
            DocumentRefused: what is kept is no text.
        """
        self.vault.enter()
        if as_of is None:
            if self.names_shared([path]):
                return self._show_shared(path_text(path))
            return self.vault.read(path_text(path), recovered=True)
        state = self.state_at(path, as_of)
        if state.refused:
            raise state.refused
        if state.certainty == "not kept":
            remedy = "neither the history nor git has it; a revision has only what git tracks"
            raise NamedNotFound(kind=f"state of {state.path} at", name=str(as_of), remedy=remedy)
        if state.document is None:
            remedy = f"it is there now; `mdmem history {state.path}` lists its changes"
            if self.exists(path):
                raise MemoryNotFound(path=state.path, kind=f"memory at {as_of}", remedy=remedy)
            raise MemoryNotFound(path=state.path)
        return state.document

    def state_at(self, path: StrPath, when: datetime | str) -> PastState:
        """Return what a memory said at a moment, and how certain that is; see `mdmem.facade.questions.past`.

        The moment is a day, a time, or a revision of git, which means what its commit holds.

        Raises:
            MemoryNotFound: nothing is known of such a memory.
            Usage: `when` is no moment, or before all that is kept.
        """
        from mdmem.facade.questions.past import find_state, read_when  # noqa: PLC0415 - start-up

        self.vault.enter()
        vault, name = self.vault.locate_layer(path_text(path))
        return find_state(vault, check_memory(name, self.suffixes), read_when(self.vault, when))

    def texts_at(self, paths: Collection[str], when: datetime) -> dict[str, PastState]:
        """Return what memories said at a moment, else the oldest text that is kept of each, as `unsure`."""
        from mdmem.facade.questions.past import find_texts  # noqa: PLC0415 - start-up

        self.vault.enter()
        return {state.path: state for state in find_texts(self.vault, when, paths)}

    def access(self, path: StrPath) -> Access:
        """Return who may use a memory beside its owner; see `share`. Raises as `show`."""
        from mdmem.memory.sharing import read_access  # noqa: PLC0415 - start-up

        return read_access(self.vault.read(path_text(path)))

    def ls(
        self,
        within: StrPath = "",
        *,
        paths: Sequence[StrPath] = (),
        globs: Sequence[str] = (),
        types: Sequence[str] = (),
        where: Sequence[str] = (),
        sort: str = "",
        long: bool = False,
    ) -> Listing:
        """List memories in the order of their paths: below the folder `within`, or among `paths`.

        Files that look like memories and cannot be one come with their `problem`. A field of `where` or
        `sort` that no memory has is in the listing's `unknown`.

        Args:
            globs: a memory has to fit one of them, seen from `within`.
            where: conditions on fields; all have to hold. See `mdmem.index.view`.
            sort: a field to sort by, of the frontmatter or path, title, size, modified, date, tag; with `-`
                before it, the largest value first: `-modified` is what changed last. Memories without it come
                last.
            long: with its day, its type and its title, which are None without it.

        Raises:
            MemoryNotFound: nothing is there.
            PatternInvalid: a glob or a condition that cannot be read.
            Usage: paths and a folder.
        """
        paths, within = path_texts(paths), place_text(within)
        if self.names_shared([within, *paths]):
            return self._ask_shared(ScopedMemory.ls, locals())
        from mdmem.memory.verbs import Listed, Listing, among, conditional, detailed  # noqa: PLC0415 - start-up

        self.vault.enter()
        if paths and within:
            raise Usage(problem="paths and a folder exclude each other", remedy="give paths alone")
        fits, inside = matcher(globs), len(join(check_folder(within), "x")) - 1
        if not (where or sort or types):
            files = list(self.vault.walk(within))
            if within and not files:
                raise MemoryNotFound(path=within, kind="folder or memory")
            named = among((f.path for f in files), paths)
            listed = (Listed(f.path, f.size, f.mtime_ns, f.problem) for f in files if f.path in named)
            memories = Listing(listed, {})
        else:
            view = self._current_view()
            problems = dict(view.problems())
            walked = self.vault.walk("") if problems else iter(())
            unread = [
                Listed(f.path, f.size, f.mtime_ns, problems[f.path]) for f in walked if f.path in problems
            ]
            memories = conditional(view, paths or [within], where, sort, types, unread)
        fitting = [listed for listed in memories if fits(listed.path[inside:])]
        return Listing(detailed(self._current_view(), fitting) if long else fitting, memories.unknown)

    def grep(
        self,
        pattern: str,
        *,
        paths: Sequence[StrPath] = (),
        within: StrPath = "",
        globs: Sequence[str] = (),
        types: Sequence[str] = (),
        where: Sequence[str] = (),
        regex: bool = False,
        case: Case = "ignore",
        word: bool = False,
        context: int = 0,
        before: int | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Hits:
        """Return the lines that match, as they are found, in the order of path and line.

        Args:
            within: only below this folder, from which globs are seen.
            where: only in memories that meet these conditions, as in `ls`.
            globs: which memories; the last one that matches decides, `!` excludes, and without a slash the
                name is compared.
            regex: whether the pattern is a regular expression, not a text.
            case: `ignore`, `exact`, or `smart`: ignored unless the pattern has a capital letter.
            context: lines before and after each hit.
            before, after: instead of `context`.

        Raises:
            MemoryNotFound: a path names nothing.
            Usage: an argument that cannot mean anything; or paths and a folder.
        """
        paths, within = path_texts(paths), place_text(within)
        if self.names_shared([within, *paths]):
            return self._ask_shared(ScopedMemory.grep, locals())
        from mdmem.index.grep import GrepRun, Hits  # noqa: PLC0415 - start-up

        self.vault.enter()
        if paths and within:
            raise Usage(problem="paths and a folder (--in) exclude each other", remedy="give paths alone")
        for path in paths:
            if not self.exists(path):
                raise MemoryNotFound(path=path, kind="folder or memory")
        self._require_place(within)
        base = self.vault.namespace
        folder = self.vault.folder(within)
        targets, wall = list(map(self.vault.folder, paths)) or None, self.vault.wall
        if base in wall.hides:  # what it does not keep takes no time either
            roots = targets or [folder]
            targets = [kept for kept in wall.keeps if any(is_under(kept, each) for each in roots)]
        only, unknown = self._select_memories(types, where)
        search = GrepRun(
            pattern=pattern,
            root=self.vault.root,
            mounts=self.vault.mounted(folder),
            read=lambda path: self.vault.read(relative(path, base), recovered=True),
            judge=self._judge,
            namespace=folder,
            base=base,
            wall=wall,
            suffixes=self.suffixes,
            # Ripgrep is given names as the disk spells them.
            targets=targets and [self.vault.store.spelled(each) or each for each in targets],
            only=only,
            globs=texts_of(globs, "globs"),
            regex=regex,
            case=case,
            word=word,
            before=context if before is None else before,
            after=context if after is None else after,
            limit=limit,
        )
        hits = Hits(search)
        hits.notes = unknown
        return hits

    def state_of(self, path: StrPath) -> str:
        """Return why a memory does not count now, as it says itself, without the index; empty where it does.

        Raises:
            MemoryNotFound: it is not there.
        """
        return self._judge(self.show(path))

    def _judge(self, document: Document) -> str:
        from mdmem.index.hit import fields_of  # noqa: PLC0415 - start-up

        if LIMITS.isdisjoint(fields_of(document)):
            return ""
        from mdmem.memory.validity import state_of  # noqa: PLC0415 - start-up

        return state_of(self.vault, document)

    def _require_place(self, within: str) -> None:
        """Refuse to look for something in a folder or memory that is not there."""
        vault, inside = self.vault.locate_layer(within)
        if not inside:
            return
        is_memory = inside.endswith(self.suffixes) and vault.exists(inside)
        if not is_memory and next(vault.walk(inside), None) is None:
            raise MemoryNotFound(path=within, kind="folder or memory")

    def _select_memories(
        self, types: Sequence[str], where: Sequence[str]
    ) -> tuple[set[str] | None, tuple[str, ...]]:
        """Return the memories of these types that meet conditions, as the vault names them; None: all.

        Returns:
            Also notes about fields that no memory has, and about files that cannot be read.
        """
        from mdmem.memory.verbs import conditional  # noqa: PLC0415 - start-up

        if not (types or where):
            return None, ()
        view = self._current_view()
        listed = conditional(view, (), where, "", types)
        notes = [*listed.unknown.values()]
        if count := len(view.problems()):
            files = plural(count, "file")
            notes.append(f"no condition holds for {files} that cannot be read: `mdmem check` says why")
        return {view.outside(each.path) for each in listed}, tuple(notes)

    def ripgrep(self, pattern: str) -> Ripgrepy:
        """Return a `Ripgrepy` bound to the files of this namespace, to be given options and run.

        It never leaves the folder: hidden files, links and a program to run for each file stay off whatever
        options are added. `grep` knows more: mounted files, headings, dates, and what could not be read.

        Args:
            pattern: a regular expression; it may begin with a dash.

        Raises:
            ProgramFailed: there is no ripgrep.
        """
        from mdmem.index.grep import ripgrepy  # noqa: PLC0415 - start-up

        self.vault.enter()
        return ripgrepy(pattern, self.vault.root, self.vault.wall, self.suffixes)

    @steadily
    def search(
        self,
        query: str,
        *,
        within: StrPath = "",
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
        since: str = "",
        before: str = "",
        limit: int = 10,
        budget: int | None = None,
        each: Each = "memory",
        context: int | None = None,
        explain: bool = False,
        where: Sequence[str] = (),
        any_state: bool = False,
        as_of: str = "",
        words_only: bool = False,
        only: Collection[str] | None = None,
    ) -> Results:
        """Return the passages that fit a query best, of memories that count now.

        Args:
            query: words, `"phrases"`, `prefix*`, `-not`, `tag:` `type:` `path:` `before:` `after:`.
            within: a folder or memory; all without.
            types, tags: only memories with one of the types, and all of the tags.
            since, before: the first day, and the first that is too late: `2026`, `2026-01` or `2026-01-31`.
            limit: the most hits; the first ones are the same for every limit.
            budget: the most tokens of text, estimated; whole passages are left out, and counted.
            each: what is ranked; a memory, or passage, has at most one hit.
            context: the lines of its section to give before and after each hit; its passage without.
            where: conditions on fields, as in `ls`; all have to hold.
            any_state: also give what does not count, with its state.
            as_of: a day or a time: what counted then.
            words_only: search by words alone, where there is an embedder.
            only: search these memories, by their paths; all without.

        Raises:
            Usage: an argument that cannot mean anything.
            MemoryNotFound: nothing is there that `within` names.
            PathRefused: it leaves the namespace.
        """
        if self.names_shared([within]):
            return self._ask_shared(ScopedMemory.search, locals())
        from mdmem.index.query import SearchRequest  # noqa: PLC0415 - start-up
        from mdmem.index.search import search  # noqa: PLC0415 - start-up
        from mdmem.index.view import View  # noqa: PLC0415 - start-up
        from mdmem.memory.validity import find_shown_states, read_moment  # noqa: PLC0415 - start-up

        request = SearchRequest(
            query=query,
            within=place_text(within),
            types=texts_of(types, "types"),
            tags=texts_of(tags, "tags"),
            since=since,
            before=before,
            limit=limit,
            budget=budget,
            each=each,
            context=context,
            explain=explain,
            where=texts_of(where, "where"),
            any_state=any_state,
            as_of=as_of,
        )
        self.vault.enter()
        index, layers = self.index, self.vault.reads[: len(self.scope.searches)]
        self._require_place(request.within)
        index.sync(progress=self._index_progress())
        read = partial(index.vault.read, recovered=True)
        own = View(index, self.vault)
        views = [*islice(own.layers(), len(layers))]
        moment = read_moment(request.as_of or None, utc_now())
        states = find_shown_states(views, moment, is_past=bool(request.as_of))
        wanted, unknown = self._find_wanted(views, request.where)
        meaning, off = (None, "") if words_only else self._find_meaning()
        off = off and f"meaning: {off}"
        if only is not None:
            wanted = {*only} if wanted is None else wanted.intersection(only)

        find = partial(
            search,
            request=request,
            read=read,
            headings=index.headings,
            layers=layers,
            states=states,
            wanted=wanted,
        )
        try:
            results = index.text(partial(find, meaning=meaning))
        except MdmemError as error:
            if meaning is None:
                raise
            results = index.text(find)  # which raises what has nothing to do with the vectors
            off = f"meaning: words alone: {meaning.note_failure(error)}"
        looked_into = [own] if request.within else [view for _, view in views]
        found = [each for view in looked_into for each in view.damaged() if is_under(each[0], request.within)]
        unread = [path for path, problem, _ in found if problem]
        flawed = [path for path, _, flaw in found if flaw]
        results = replace(results, unread=len(unread), flawed=len(flawed))
        wrong = filter(None, [results.unread_note, results.flawed_note, off])
        return replace(results, notes=(*unknown, *wrong, *results.notes))

    def searched_alone(self, within: StrPath = "", *, widely: bool = False) -> str:
        """Say that only the folder of this scope was searched; nothing where that is not so.

        Args:
            within: where it was searched.
            widely: whether wider scopes were searched as well, where `search` does so.
        """
        folder, place = self.scope.namespace, place_text(within)
        if not folder or (widely and len(self.scope.searches) > 1) or self.names_shared([place]):
            return ""
        return f"only {folder}/ was searched"

    def states(self) -> dict[str, State]:
        """Return what does not count now: the state of each such memory, by its path.

        Those of wider scopes are named as they are read here, such as `shared:notes/db.md`.
        """
        return self._find_states_at(utc_now())

    def _find_wanted(
        self, views: Iterable[tuple[Layer, View]], where: Sequence[str]
    ) -> tuple[set[str] | None, tuple[str, ...]]:
        """Return the memories of all layers that meet conditions; None without any.

        Returns:
            Also notes about fields that no memory has.
        """
        from mdmem.memory.verbs import conditional  # noqa: PLC0415 - start-up

        if not where:
            return None, ()
        listings = [(layer, view, conditional(view, (), where, "")) for layer, view in views]
        wanted = {layer.shown(view.outside(each.path)) for layer, view, listed in listings for each in listed}
        unknown = listings[0][2].unknown
        return wanted, tuple(unknown[key] for key in unknown if all(key in of.unknown for *_, of in listings))

    def passed_over(self) -> dict[str, int]:
        """Count the files of text that are no memories by their names, such as `a.mdx`, by suffix.

        Markdown below hidden folders is counted by the name of the folder: `.cursor/`.
        """
        self.vault.enter()
        return self.vault.passed_over()

    def _apply_built(self, build: Build, *, locked: bool = False) -> Applied:
        """Apply the plan that `build` makes, then commit it to git where the config wants that."""
        with self.vault.store.steady():
            applied = self.vault.transact(build, locked=locked)
        return self._commit_applied(applied)

    @cached_property
    def index(self) -> Index:
        """The index of the whole vault; every question that needs it makes it current first."""
        from mdmem.index.index import Index  # noqa: PLC0415 - start-up

        return Index(self.vault.store.again(), _open_pinning, is_hurried=self.vault.is_hurried)

    def _current_view(self, *, texts: bool = False) -> View:
        """Return what the index knows of this namespace, once it is current, its text index with `texts`."""
        from mdmem.index.view import View  # noqa: PLC0415 - start-up

        self.index.sync(texts=texts, progress=self._index_progress())
        return View(self.index, self.vault)

    @property
    def progress(self) -> Progress | None:
        """Told what takes a while, and how much of how much of it is done, from the thread that does it."""
        return self.vault.progress

    @progress.setter
    def progress(self, told: Progress | None) -> None:
        self.vault.progress = told

    def _index_progress(
        self, progress: Callable[[int, int], None] | None = None
    ) -> Callable[[int, int], None] | None:
        """Return the callback for the progress of indexing; all but the owner get a percentage."""
        told = progress or (partial(self.progress, "indexing") if self.progress else None)
        if told is None or self.scope.is_owner:
            return told
        return lambda done, of: told(100 * done // of, 100)

    # -- what `Memory` knows of other users and of git -----------------------------------------------------

    def names_shared(self, paths: Iterable[StrPath]) -> bool:  # noqa: ARG002 - as `Memory` has it
        """Tell whether a path names what another user may share."""
        return False

    def _show_shared(self, path: str) -> Document:
        raise NotImplementedError(path)

    def _ask_shared(self, question: Callable[..., R], asked: dict[str, Any]) -> R:
        raise NotImplementedError(question, asked)

    def _commit_applied(self, applied: Applied) -> Applied:
        return applied


def _open_pinning(vault: Vault) -> AbstractContextManager[Callable[[str, Citation], str]]:
    from mdmem.index.code.citations import pinning  # noqa: PLC0415 - few memories cite code

    return pinning(vault)


def _resolve_outer_links(file: str, workspace: str) -> str:
    """Return an absolute path without the links that stand outside of the workspace.

    A link in it came with the files: it does not decide what is read or written.
    """
    folder, names = os.sep, file.split(os.sep)[1:]
    for number, name in enumerate(names):
        step = os.path.join(folder, name)
        if os.path.islink(step) and not is_under(folder, workspace):
            step = os.path.realpath(step)
        if not os.path.isdir(step) or os.path.islink(step):
            return os.path.join(step, *names[number + 1 :])
        folder = step
    return folder
