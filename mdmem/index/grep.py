"""Exact search: the lines of the memories that match a pattern, found by ripgrep."""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.document import SUFFIXES, Document
from mdmem.document.text.globs import escaped, matcher
from mdmem.document.text.regex import MOST_CHARACTERS, shortened
from mdmem.errors import PatternInvalid, Usage
from mdmem.index import ripgrep
from mdmem.vault import files, paths, walk
from mdmem.vault.config import MOST_BYTES
from mdmem.vault.paths import Namespace

if TYPE_CHECKING:
    from ripgrepy import Ripgrepy

    from mdmem.index.hit import Hit

Case = Literal["ignore", "smart", "exact"]

COUNTED = 10_000  # the most further lines that a limited search counts

# The most lines that are gathered and sorted here. To sort, ripgrep uses one thread only, which costs 30 ms
# in 10,000 notes.
GATHERED = 2_000
_GATHERED_BYTES = 8 * 1024 * 1024


class Hits(Iterator["Hit"]):
    """The hits of one search, by path (part by part) and line; they can be iterated once.

    The search starts with the first hit. It ends, and its process with it, when the hits are exhausted,
    closed or dropped.
    """

    most_counted = COUNTED
    notes: tuple[str, ...] = ()
    """Remarks on the question, such as a field that no memory has."""
    prefix = ""  # of all paths: the name of a layer, and a colon

    def __init__(self, search: GrepRun) -> None:
        self._search = search
        self._hits = search.hits()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Hit:
        hit = next(self._hits)
        return hit._replace(path=f"{self.prefix}{hit.path}") if self.prefix else hit

    def close(self) -> None:
        """End the search; there are no further hits."""
        self._hits.close()

    def counts(self) -> Iterator[tuple[str, int]]:
        """Count the hits of each memory instead, by path, without reading any memory."""
        return ((f"{self.prefix}{path}", count) for path, count in self._search.counts())

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The files and folders that could not be read; complete when the hits are exhausted.

        A search that ended at its limit, or was closed, may lack some.
        """
        return tuple(each._replace(path=f"{self.prefix}{each.path}") for each in self._search.findings)


def _check_arguments(pattern: str, globs: Sequence[str], context: int, limit: int | None) -> None:
    if not pattern:
        raise Usage(problem="the pattern is empty", remedy="say what to look for")
    if any(end in pattern for end in "\r\n"):
        raise Usage(
            problem="the pattern has a line end in it", remedy="a match is within one line: look for one line"
        )
    if not all(map(str.strip, globs)):
        raise Usage(problem="a glob is empty", remedy="leave it away to search all memories")
    for text in (pattern, *globs):
        if "\0" in text or text.encode(errors="replace").decode() != text:
            remedy = "neither a NUL character nor a lone surrogate can be looked for"
            raise Usage(problem=f"{text!r} is not text", remedy=remedy)
    if context < 0:
        raise Usage(problem=f"context is {context}", remedy="give 0 or more lines of context")
    if limit is not None and limit < 1:
        raise Usage(problem=f"limit is {limit}", remedy="give a limit of 1 or more, or none")


class _Match(NamedTuple):
    """What ripgrep printed about a line that matches, and the parts of its vault path."""

    path: tuple[str, ...]
    printed: bytes


_BY_PATH = itemgetter(0)


@dataclass(slots=True, kw_only=True)
class GrepRun:
    """One search for the lines that match `pattern`: one hit for a line, however often it matches.

    What git ignores is searched too; hidden files and folders never are, and links are not followed. Where
    a memory cannot be read, or has changed since, its hits have neither heading nor context.

    What is not named here is said at `Memory.grep`.

    Attributes:
        mounts: vault path → absolute path of the mounted file.
        read: returns the memory at a vault path.
        judge: returns the state of a memory, empty where it counts.
        namespace: the folder of the vault to search.
        base: the folder, `namespace` or one above it, that the paths of hits and findings are relative to.
        wall: what may be searched of it.
        targets: the memories and folders below the namespace to search; all of it without.
        only: the vault paths of the memories that count; all without.
        globs: relative to the namespace, with ripgrep's meaning.
        limit: the most hits to give. The last one then says how many lines were left out; 10,000 means at
            least as many.
        findings: what could not be read.

    Raises:
        Usage: an argument is invalid.
        PatternInvalid: a glob is invalid.
        PathRefused: the namespace is not a path of a vault.
        ProgramFailed: there is no ripgrep.

    The first hit may also raise PatternInvalid (the pattern) or ProgramFailed.
    """

    pattern: str
    root: str
    mounts: Mapping[str, str]
    read: Callable[[str], Document]
    judge: Callable[[Document], str] = lambda _: ""
    namespace: str = ""
    base: str = ""
    wall: Namespace = paths.EVERYTHING
    suffixes: tuple[str, ...] = SUFFIXES
    targets: Sequence[str] | None = None
    only: Collection[str] | None = None
    regex: bool = False
    case: Case = "ignore"
    word: bool = False
    globs: Sequence[str] = ()
    before: int = 0
    after: int = 0
    limit: int | None = None
    findings: list[Diagnostic] = field(init=False, default_factory=list)
    _searched: Sequence[str] = field(init=False)
    _matches_globs: Callable[[str], bool] = field(init=False)
    _case_option: str = field(init=False)
    _program: str = field(init=False)

    def __post_init__(self) -> None:
        _check_arguments(self.pattern, self.globs, min(self.before, self.after), self.limit)
        self._case_option = ripgrep.case_option(self.case)
        if self.regex and len(self.pattern) > MOST_CHARACTERS:
            reason = f"it has {len(self.pattern):,} characters; the most is {MOST_CHARACTERS:,}"
            raise PatternInvalid(pattern=shortened(self.pattern), reason=reason)
        self.namespace, self.base = paths.check_folder(self.namespace), paths.check_folder(self.base)
        if not paths.is_under(self.namespace, self.base):
            problem = f"{self.namespace!r} is not below {self.base!r}"
            raise Usage(problem=problem, remedy="give a base that contains the namespace")
        self._searched = [self.namespace] if self.targets is None else self.targets
        self._matches_globs, self._program = matcher(self.globs), ripgrep.program()

    def hits(self) -> Generator[Hit]:
        """Find the hits, in order."""
        matches = self._find_matches()
        try:
            for count, (hit, rest) in enumerate(self._read_hits(matches), 1):
                if count == self.limit:
                    further = sum(1 for _ in islice(rest, COUNTED))
                    yield hit._replace(left_out=min(COUNTED, further + _count_up_to_most(matches)))
                    return
                yield hit
        finally:
            matches.close()

    def counts(self) -> Generator[tuple[str, int]]:
        """Count the hits of each memory, in order."""
        # One thread searches a file: its matches follow each other.
        for path, matches in groupby(self._find_matches(), key=_BY_PATH):
            count = sum(ripgrep.count_lines(match.printed) for match in matches)
            yield paths.relative("/".join(path), self.base), count

    def _read_hits(self, matches: Iterable[_Match]) -> Iterator[tuple[Hit, Iterator[ripgrep.Line]]]:
        from mdmem.index.hit import HitReader  # noqa: PLC0415 - it is imported by then

        memory = None
        for match in matches:
            path = "/".join(match.path)
            if memory is None or memory.path != path:
                memory = HitReader(path, self.read, paths.relative(path, self.base), judge=self.judge)
            # A text without line feeds may have many lines in one match: each hit is made when it is needed.
            lines = ripgrep.matching_lines(match.printed)
            for line in lines:
                yield memory.matched_hit(line, self.before, self.after), lines

    def _find_matches(self) -> Generator[_Match]:
        mounted = self._select_mounted_files()
        gathered = self._gather_matches(mounted)
        if gathered is not None:
            yield from sorted(gathered, key=_BY_PATH)
            return
        with self._start_ripgrep(mounted, sort="path") as process:
            yield from _merge_mounted(self._parse_output(process, mounted), set(mounted.values()))

    def _gather_matches(self, mounted: Mapping[str, str]) -> list[_Match] | None:
        """Return all matches, those of one file in order; None when there are too many."""
        gathered: list[_Match] = []
        size = 0
        with self._start_ripgrep(mounted) as process:
            # Reading memories takes some imports: they are made while ripgrep searches.
            for module in ("json", "mdmem.index.hit", "mdmem.document.markdown.blocks"):
                importlib.import_module(module)
            for match in self._parse_output(process, mounted):
                # The last one may have any size: it is in memory already.
                if len(gathered) == GATHERED or size > _GATHERED_BYTES:
                    return None
                gathered.append(match)
                size += len(match.printed)
        return gathered

    def _select_mounted_files(self) -> dict[str, str]:
        """Return the mounted files to search: absolute path → vault path."""
        return {
            file: path
            for path, file in sorted(self.mounts.items())
            if any(paths.is_under(path, searched) for searched in self._searched)
            and path.endswith(self.suffixes)
            and self._fits_globs(path)
            and os.path.isfile(file)
        }

    def _list_targets(self) -> list[str]:
        named = set(self._searched)
        highest = (path for path in named if named.isdisjoint(paths.above(path)))
        wanted = sorted(highest, key=lambda path: path.split("/"))
        targets = [
            path
            for path in wanted
            if _is_folder(self.root, path)
            or (path not in self.mounts and self._fits_globs(path) and _is_file(self.root, path))
        ]
        return [
            f"./{paths.relative(path, self.namespace)}" if path != self.namespace else "./"
            for path in targets
        ]

    def _fits_globs(self, path: str) -> bool:
        """Return whether globs choose a file; ripgrep searches one that is named whatever they say."""
        return self._matches_globs(paths.relative(path, self.namespace))

    def _start_ripgrep(self, mounted: Mapping[str, str], sort: str = "none") -> ripgrep.Process:
        folder = os.path.join(self.root, self.namespace)
        there = _is_folder(self.root, self.namespace)
        literal = () if self.regex else ("--fixed-strings",)
        words = ("--word-regexp",) if self.word else ()
        options = self._build_options("--json", "--text", "--crlf", self._case_option, *literal, *words)
        # Mounted files come first, in order; with nothing to search, ripgrep still checks the pattern.
        targets = [*mounted, *(self._list_targets() if there else [])] or [os.devnull]
        # Further lines of one file change neither hits nor counts.
        most = () if self.limit is None else (f"--max-count={self.limit + COUNTED}",)
        command = [*options, *most, "--sort", sort, "--", self.pattern, *targets]
        return ripgrep.Process(command, folder if there else None)

    def _build_options(self, *switches: str) -> list[str]:
        """Return the program and its options, with the globs: memories only, nothing hidden."""
        narrowed = any(not glob.startswith("!") for glob in self.globs)
        # The last one that matches decides. A folder that is hidden in part is searched, and filtered later.
        wall, base = self.wall, self.namespace
        hides = [path for path in wall.hides if not any(paths.is_under(kept, path) for kept in wall.keeps)]
        hidden = [f"!/{paths.relative(path, base)}/" for path in hides if paths.is_under(path, base)]
        globs = (
            *(() if narrowed else (f"*{suffix}" for suffix in self.suffixes)),
            *self.globs,
            "!.*",
            "!node_modules",
            *hidden,
        )
        # ripgrep takes a glob that begins with # for a comment, and would search everything.
        written = (f"--glob=\\{glob}" if glob.startswith("#") else f"--glob={glob}" for glob in globs)
        limit = f"--max-filesize={MOST_BYTES}"
        return [self._program, "--no-config", "--no-ignore", limit, *switches, *written]

    def _parse_output(self, process: ripgrep.Process, mounted: Mapping[str, str]) -> Iterator[_Match]:
        parts: tuple[str, ...] = ()
        for printed in process.lines():
            if ripgrep.is_match(printed):
                if parts and ripgrep.is_whole(printed):
                    yield _Match(parts, printed)
                elif parts:
                    path = paths.relative("/".join(parts), self.base)
                    self.findings.append(_report_unreadable(path, "a line that matches is too long"))
                continue
            kind, data = ripgrep.message(printed)
            if kind == "begin":
                path = self._to_vault_path(ripgrep.named(data), mounted)
                is_seen = path.endswith(self.suffixes) and self.wall.holds(path)
                path = walk.name_file(self.root, path) if is_seen else ""
                counts = is_seen and (self.only is None or path in self.only)
                parts = tuple(path.split("/")) if counts else ()
            elif kind == "summary":
                self._report_unread(process.errors(), mounted)
                return
        raise ripgrep.failure(self._program, process.errors(), self.pattern)

    def _to_vault_path(self, named: str, mounted: Mapping[str, str]) -> str:
        """Return the vault path of a file as ripgrep names it; empty when a mounted file replaces it."""
        if named in mounted:
            return mounted[named]
        path = paths.join(self.namespace, named.removeprefix("./"))
        return "" if path in self.mounts else path

    def _report_unread(self, errors: str, mounted: Mapping[str, str]) -> None:
        for named, reason in ripgrep.unread(errors):
            path = self._to_vault_path(named, mounted) if named else ""
            if named and not self.wall.holds(path):
                continue
            # A glob may have let other files in, which may be unreadable. A path too deep for the system is
            # a folder.
            file = self.mounts.get(path) or os.path.join(self.root, path)
            if path.endswith(self.suffixes) or not named or not os.path.isfile(file):
                self.findings.append(_report_unreadable(paths.relative(path, self.base), reason))
        self.findings.sort(key=lambda finding: finding.path.split("/"))


def ripgrepy(pattern: str, root: str, wall: Namespace, suffixes: tuple[str, ...]) -> Ripgrepy:
    """Make a `Ripgrepy` that is bound to the memories of a namespace; see `Memory.ripgrep`."""
    from ripgrepy import Ripgrepy  # noqa: PLC0415 - start-up

    _check_arguments(pattern, (), 0, None)
    folder = os.path.join(root, wall.folder).rstrip(os.sep) if _is_folder(root, wall.folder) else os.devnull
    bound = Ripgrepy("--", folder, ripgrep.program())
    bound.command += ["--no-config", "--no-ignore", f"--regexp={pattern}"]
    bound.command += [f"--glob=*{suffix}" for suffix in suffixes]

    def run(*args: Any, **named: Any) -> Any:
        # The last of contradicting options counts: these come last.
        bound.command += ["--no-follow", "--no-hidden", "--no-pre", "--no-search-zip", "--glob=!.*"]
        for path in (os.path.join(root, folder) for folder in wall.hides):
            # ripgrep compares a path as seen from the current folder where it is below that, else whole.
            near = os.path.relpath(path)
            below = "*" if near == os.curdir else escaped(near)
            bound.command += [f"--glob=!**{escaped(path)}", f"--glob=!/{below}"]
        return Ripgrepy.run(bound, *args, **named)

    bound.run = run
    return bound


def _is_folder(root: str, namespace: str) -> bool:
    """Whether the namespace is a folder without symbolic links in its path, which could leave the vault."""
    folder = root
    for part in namespace.split("/") if namespace else ():
        folder = os.path.join(folder, part)
        with files.translated(namespace, "look at it"):
            if not files.is_folder(folder):
                return False
    return os.path.isdir(folder)


def _is_file(root: str, path: str) -> bool:
    if not _is_folder(root, path.rpartition("/")[0]):
        return False
    with files.translated(path, "look at it"):
        try:
            return stat.S_ISREG(os.lstat(os.path.join(root, path)).st_mode)
        except FileNotFoundError:
            return False


def _report_unreadable(path: str, reason: str) -> Diagnostic:
    hint = "see to it that it can be read, and search again"
    return about_file(
        path, "unreadable", f"not searched: {reason}", hint, severity="warning", rule="unreadable"
    )


def _merge_mounted(matches: Iterator[_Match], mounted: set[str]) -> Iterator[_Match]:
    """Sort matches; those of mounted files come first, and the others are sorted already."""
    early: list[_Match] = []
    for match in matches:
        if "/".join(match.path) not in mounted:
            import heapq  # noqa: PLC0415 - start-up; few searches find that many

            return heapq.merge(sorted(early, key=_BY_PATH), chain((match,), matches), key=_BY_PATH)
        early.append(match)
    return iter(sorted(early, key=_BY_PATH))


def _count_up_to_most(matches: Iterator[_Match]) -> int:
    """Count the lines of `matches`, up to at least `COUNTED`."""
    counted = 0
    for match in matches:
        counted += ripgrep.count_lines(match.printed)
        if counted >= COUNTED:
            break
    return counted
