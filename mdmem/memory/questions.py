"""What is asked of the memories of one scope: listed, found, shown, checked."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mdmem.arguments import texts_of
from mdmem.diagnostic import Diagnostic, about_file, told
from mdmem.errors import DocumentRefused, MemoryNotFound, StorageFailed, SystemFailing, Usage
from mdmem.kind import PROPOSAL, kind_at
from mdmem.memory.history import changed_since
from mdmem.memory.kinds import Kinds
from mdmem.text.document import SUFFIXES, Document
from mdmem.text.globs import matcher
from mdmem.text.tree import LINEAGE
from mdmem.vault.paths import (
    Scope,
    StrPath,
    check_folder,
    check_memory,
    is_under,
    join,
    path_text,
    path_texts,
    relative,
)
from mdmem.vault.vault import Vault

if TYPE_CHECKING:  # most commands use one of these, or none
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ripgrepy import Ripgrepy

    from mdmem.index.grep import Case, Hits
    from mdmem.index.index import Index
    from mdmem.index.query import Each, SearchRequest
    from mdmem.index.search import Results
    from mdmem.index.view import View
    from mdmem.memory.statistics import MemoryStats
    from mdmem.memory.verbs import Build, Listed
    from mdmem.text.inline import Citation
    from mdmem.vault.store import Entry
    from mdmem.vault.transaction import Applied


Progress = Callable[[str, int, int], None]


def _pinning(vault: Vault) -> AbstractContextManager[Callable[[str, Citation], str]]:
    from mdmem.code.citations import pinning  # noqa: PLC0415 - few memories cite code

    return pinning(vault)


def _unlinked(file: str, workspace: str) -> str:
    """An absolute path without the links that stand outside of the workspace.

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


class Questions(Kinds["Applied"]):
    """The verbs, and every question about the memories of one scope of a vault; none changes a memory."""

    def __init__(
        self, root: str, scope: Scope | None = None, *, actor: str = "", thread: str | None = None
    ) -> None:
        scope = scope or Scope()
        self.thread = thread
        self.vault = Vault(root, scope.wall, actor, scope.reads)
        if thread is not None:
            from mdmem.sessions.logs import bound_to  # noqa: PLC0415 - start-up

            self.vault = bound_to(thread, self.vault)
        super().__init__(self.vault, scope, self._transact, self._current)
        self._words: list[str] = []

    def _transact(self, build: Build, *, locked: bool = False) -> Applied:
        """Apply the plan that `build` makes, then commit it to git where the config wants that."""
        return self._committed(self.vault.transact(build, locked=locked))

    def _committed(self, applied: Applied) -> Applied:
        if applied.files and self.vault.config.git.commit == "auto":
            from mdmem.memory.commits import Commits  # noqa: PLC0415 - few vaults want it

            word = Commits(self.vault).by_itself([file.path for file in applied.files])
            self._words += [word] if word else []
        return applied

    @cached_property
    def index(self) -> Index:
        """The index of the whole vault; every question that needs it makes it current first."""
        from mdmem.index.index import Index  # noqa: PLC0415 - start-up

        return Index(self.vault.root, _pinning)

    def _current(self) -> View:
        """What the index knows of this namespace, once it is current."""
        from mdmem.index.view import View  # noqa: PLC0415 - start-up

        self.index.sync(texts=False, progress=self._told())
        return View(self.index, self.vault)

    @property
    def progress(self) -> Progress | None:
        """Told what takes a while, and how much of how much of it is done, from the thread that does it."""
        return self.vault.progress

    @progress.setter
    def progress(self, told: Progress | None) -> None:
        self.vault.progress = told

    def _told(self, progress: Callable[[int, int], None] | None = None) -> Callable[[int, int], None] | None:
        """What is told how far indexing is: the callback of a caller, else the `progress`.

        How many files there are is for the owner to know.
        """
        told = progress or (partial(self.progress, "indexing") if self.progress else None)
        if told is None or self.scope.is_owner:
            return told
        return lambda done, of: told(100 * done // of, 100)

    def at(self, file: StrPath) -> str | None:
        """The path of the memory that a file on disk, or a link to it, is; None for any other file."""
        if "\0" in path_text(file):
            return None
        path = self.inside(os.path.realpath(file)) or ""
        hidden = any(part.startswith(".") for part in path.split("/"))
        return path if path.endswith(SUFFIXES) and not hidden else None

    def inside(self, file: StrPath) -> str | None:
        """What a place on disk is called here, whether or not anything is there; None outside.

        The vault's folder, and one of the workspace that it is in, mean all of the namespace: `""`. A link in
        the workspace leads nowhere.
        """
        if "\0" in path_text(file):
            return None
        root, workspace = self.vault.root, self.vault.workspace
        place = os.path.abspath(file)
        if not is_under(place, root):
            place = _unlinked(place, workspace)
        if place == root or (is_under(root, place) and is_under(place, workspace)):
            return ""
        if is_under(place, root):
            full = unicodedata.normalize("NFC", relative(place, root).replace(os.sep, "/"))
        else:
            full = next((path for path, each in self.vault.mounted("").items() if each == place), "")
        return relative(full, self.vault.namespace) if full and self.vault.wall.holds(full) else None

    def in_workspace(self, path: StrPath) -> str:
        """The file of a memory, from the workspace on, as programs that know nothing of vaults call it."""
        return self.vault.disk.in_workspace(join(self.vault.namespace, str(path))).replace(os.sep, "/")

    def exists(self, path: StrPath) -> bool:
        """Whether a memory stands at `path`, or below the folder that it is."""
        path = path_text(path)
        if path.endswith(SUFFIXES):
            return self.vault.exists(path)
        return next(self.vault.walk(path), None) is not None

    def show(self, path: StrPath) -> Document:
        """The memory at `path`: its bytes, text, hash, fields, headings; see `Vault.read`."""
        self.vault.enter()
        return self.vault.read(path_text(path), recovered=True)

    def ls(
        self,
        within: StrPath = "",
        *,
        paths: Sequence[StrPath] = (),
        globs: Sequence[str] = (),
        where: Sequence[str] = (),
        sort: str = "",
        long: bool = False,
    ) -> list[Listed]:
        """The memories that fit, in the order of their paths: below the folder `within`, or among `paths`.

        Files that look like memories and cannot be one come with their `problem`, except with conditions.

        Args:
            within: a folder; everything without.
            paths: only these memories and folders.
            globs: a memory has to fit one of them, seen from `within`.
            where: conditions on fields, all of which have to hold; see `mdmem.index.view`.
            sort: a field to sort by; with `-` before it, the largest value first. Memories without it come
                last.
            long: with its day, its type and its title.

        Raises:
            MemoryNotFound: nothing is there.
            PatternInvalid: a glob or a condition that cannot be read.
            Usage: paths and a folder.
        """
        from mdmem.memory.verbs import Listed, among, conditional, detailed  # noqa: PLC0415 - start-up

        self.vault.enter()
        paths, within = path_texts(paths), path_text(within)
        if paths and within:
            raise Usage(problem="paths and a folder exclude each other", remedy="give paths alone")
        fits, inside = matcher(globs), len(join(check_folder(within), "x")) - 1
        if not (where or sort):
            met = list(self.vault.walk(within))
            if within and not met:
                raise MemoryNotFound(path=within)
            named = among((f.path for f in met), paths)
            found = [Listed(f.path, f.size, f.mtime_ns, f.problem) for f in met if f.path in named]
        else:
            found = conditional(self._current(), paths or [within], where, sort)
        fitting = [listed for listed in found if fits(listed.path[inside:])]
        return detailed(self._current(), fitting) if long else fitting

    def grep(
        self,
        pattern: str,
        *,
        paths: Sequence[StrPath] = (),
        within: StrPath = "",
        globs: Sequence[str] = (),
        types: Sequence[str] = (),
        regex: bool = False,
        case: Case = "ignore",
        word: bool = False,
        context: int = 0,
        before: int | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Hits:
        """The lines that match, as they are found, in the order of path and line; see `mdmem.index.grep`.

        Args:
            pattern: what to look for.
            paths: only in these memories and folders.
            within: only below this folder, from which globs are seen.
            types: only in memories of one of these types.
            globs, regex, case, word, limit: as `mdmem.index.grep` takes them.
            context: lines before and after each hit.
            before, after: in place of `context`.

        Raises:
            MemoryNotFound: a path names nothing.
            Usage: an argument that cannot mean anything; or paths and a folder.
            As `mdmem.index.grep.grep`.
        """
        from mdmem.index.grep import grep  # noqa: PLC0415 - start-up

        self.vault.enter()
        paths, within = path_texts(paths), path_text(within)
        if paths and within:
            raise Usage(problem="paths and a folder (--in) exclude each other", remedy="give paths alone")
        for path in paths:
            if not self.exists(path):
                raise MemoryNotFound(path=path)
        base = self.vault.namespace
        folder = self.vault.folder(within)
        targets = list(map(self.vault.folder, paths))
        return grep(
            pattern,
            root=self.vault.root,
            mounts=self.vault.mounted(folder),
            read=lambda path: self.vault.read(relative(path, base), recovered=True),
            namespace=folder,
            base=base,
            wall=self.vault.wall,
            # Ripgrep is given names as the disk spells them.
            targets=[self.vault.store.spelled(each) or each for each in targets] or None,
            only=self._of_types(types) if types else None,
            globs=texts_of(globs, "globs"),
            regex=regex,
            case=case,
            word=word,
            before=context if before is None else before,
            after=context if after is None else after,
            limit=limit,
        )

    def _of_types(self, types: Sequence[str]) -> set[str]:
        """The memories of one of these types, as the whole vault names them."""
        view, wanted = self._current(), {name.casefold() for name in texts_of(types, "types")}
        return {
            view.outside(path)
            for path, _, _, fields in view.memories({"type"})
            if not wanted.isdisjoint(str(value).casefold() for value in fields.get("type", ()))
        }

    def ripgrep(self, pattern: str) -> Ripgrepy:
        """All of ripgrep for the files of this namespace: a `Ripgrepy`, to be given more options and run.

        It never leaves the folder: hidden files, links and a program to run for each file stay off whatever
        options are added. `grep` knows more: mounted files, headings, dates, and what could not be read.

        Args:
            pattern: a regular expression; it may begin with a dash.

        Raises:
            ProgramFailed: there is no ripgrep.
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
        budget: int | None = None,
        each: Each = "memory",
        context: int | None = None,
        explain: bool = False,
    ) -> Results:
        """The passages that fit a query best.

        Args:
            query: what to look for; or a `SearchRequest` that says all, and nothing besides.
            within, types, tags, since, before: as `SearchRequest`, and so are
            limit, budget, each, context, explain.

        Raises:
            Usage: an argument that cannot mean anything.
            PathRefused: `within` leaves the namespace.
            LockTimeout, StorageFailed: the index cannot be made current.
        """
        from mdmem.index.query import SearchRequest  # noqa: PLC0415 - start-up
        from mdmem.index.search import search  # noqa: PLC0415 - start-up

        request = SearchRequest(
            query="" if isinstance(query, SearchRequest) else query,
            within=path_text(within),
            types=texts_of(types, "types"),
            tags=texts_of(tags, "tags"),
            since=since,
            before=before,
            limit=limit,
            budget=budget,
            each=each,
            context=context,
            explain=explain,
        )
        if isinstance(query, SearchRequest):
            if request != SearchRequest(query=""):
                raise Usage(problem="a SearchRequest says all that is asked", remedy="leave the rest out")
            request = query
        index, layers = self.index, self.vault.reads[: len(self.scope.searches)]
        self.vault.enter()
        index.sync(progress=self._told())
        read = partial(index.vault.read, recovered=True)
        return index.both(
            lambda database, text: search(text, request, read=read, headings=database.headings, layers=layers)
        )

    def render(self, template: str, variables: Mapping[str, Any] | None = None) -> str:
        """What a template renders to; see `mdmem.template`.

        Raises:
            NamedNotFound, TemplateFailed: it is not there, or cannot be rendered.
        """
        from datetime import UTC, datetime  # noqa: PLC0415 - start-up

        return self.vault.templates.render(template, variables or {}, now=datetime.now(UTC))

    def check(self, paths: Sequence[StrPath] = (), *, links: bool = True) -> list[Diagnostic]:
        """Everything that is wrong with memories: form, schema, secrets, links, and what they came from.

        Args:
            paths: memories or folders; all memories without any.
            links: whether to look at links, for which the index is made current.

        Raises:
            MemoryNotFound: a path names nothing.
            LockTimeout, StorageFailed: the index cannot be made current.
        """
        self.vault.enter()
        findings: list[Diagnostic] = []
        related: set[str] = set()
        met: list[str] = []
        paths = path_texts(paths)
        for path in paths or ("",):
            for found in self.vault.counted("checking", list(self._named(path))):
                met.append(found[0])
                findings += self._check_one(*found, related)
        if not paths and self.vault.store.stands(".mdmem/lexicon.toml"):
            findings += self.capture.check()
        if related:
            from mdmem.links.graph import astray  # noqa: PLC0415 - start-up

            findings += astray(self._current(), related)
        if links and met:
            from mdmem.links.references import LINKS, occurrences, unresolved  # noqa: PLC0415 - start-up

            view = self._current()
            told = {(each.path, each.position.line, each.code) for each in findings}
            leading = unresolved(view, occurrences(view, types=LINKS, paths=met if paths else None))
            # What a memory came from is told already, with its place in the frontmatter.
            findings += (each for each in leading if (each.path, each.position.line, each.code) not in told)
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

                found += judge(document, self.vault)
            return told(found)
        except (DocumentRefused, StorageFailed, SystemFailing) as error:
            return [about_file(path, error.code, error.message, error.hint)]

    def history(self, path: StrPath | Sequence[StrPath] | None = None) -> list[Entry]:
        """The changes to this namespace, newest first; with `path`, those to one memory or any of several.

        Raises:
            PathRefused: `path` cannot name a memory.
        """
        given = (path,) if isinstance(path, str | os.PathLike) else path or ()
        names = {check_memory(name) for name in given}
        return [e for e in self.vault.history() if not names or any(f.path in names for f in e.files)]

    def diff(self, path: StrPath, *, since: str | None = None) -> str:
        """What has changed in a memory, as a unified diff; empty when nothing has.

        Args:
            path: of a memory, which may be gone by now.
            since: the hash of what it was, or the id of a change, which counts; without it, the last change;
                see `history`.

        Raises:
            NamedNotFound: it was never changed through mdmem, or not so, or what it was is not kept any more.
            Usage: a hash of fewer than eight digits.
        """
        return changed_since(self.vault, path_text(path), since)

    def stats(self) -> MemoryStats:
        """How much memory there is, by folder and by month; see `mdmem.memory.statistics`.

        Raises:
            LockTimeout, StorageFailed: the index cannot be made current.
        """
        from mdmem.memory.statistics import counted  # noqa: PLC0415 - start-up

        self.vault.enter()
        return counted(self._current(), self.vault)
