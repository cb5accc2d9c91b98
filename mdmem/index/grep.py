"""Exact search: the lines of the memories that match a pattern, found by ripgrep."""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from unicodedata import normalize

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.document import SUFFIXES
from mdmem.errors import PatternInvalid, Usage
from mdmem.index import ripgrep
from mdmem.text.regex import MOST_CHARACTERS, shortened
from mdmem.vault import files, paths
from mdmem.vault.config import MOST_BYTES

if TYPE_CHECKING:  # what hits are made of is imported while ripgrep searches
    from ripgrepy import Ripgrepy

    from mdmem.document.document import Document
    from mdmem.index.hit import Hit
    from mdmem.vault.paths import Namespace

Case = Literal["ignore", "smart", "exact"]

COUNTED = 10_000  # how many further lines are counted behind the last hit of a limited search

# As many lines as one search gathers and sorts. Sorting in ripgrep gives its second thread up, which costs
# a search through 10,000 notes 30 ms: it pays only where there is too much to gather.
GATHERED = 2_000
_GATHERED_BYTES = 8 * 1024 * 1024
# So many of the first matches are looked up in their memories while ripgrep goes on searching.
_READ_EARLY = 100

_CASES = {"ignore": "--ignore-case", "smart": "--smart-case", "exact": "--case-sensitive"}


class Hits(Iterator["Hit"]):
    """The hits of one search, by path (part by part) and line; they can be walked through once.

    The search begins with the first hit that is asked for. It ends, and its process with it, when the hits
    are exhausted, closed or dropped.
    """

    most_counted = COUNTED

    def __init__(self, search: _GrepRun) -> None:
        self._search = search
        self._found = search.hits()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Hit:
        return next(self._found)

    def close(self) -> None:
        """End the search; there are no further hits."""
        self._found.close()

    def counts(self) -> Iterator[tuple[str, int]]:
        """In place of the hits, each memory that has any, by path, and how many; no memory is read for it."""
        return self._search.counts()

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The files and folders that could not be read; complete when the hits are exhausted.

        A search that ended at its limit, or was closed, may not have come as far as them.
        """
        return tuple(self._search.findings)


def grep(
    pattern: str,
    *,
    root: str,
    mounts: Mapping[str, str],
    read: Callable[[str], Document],
    namespace: str = "",
    base: str = "",
    wall: Namespace = paths.EVERYTHING,
    targets: Sequence[str] | None = None,
    only: Collection[str] | None = None,
    regex: bool = False,
    case: Case = "ignore",
    word: bool = False,
    globs: Sequence[str] = (),
    before: int = 0,
    after: int = 0,
    limit: int | None = None,
) -> Hits:
    """Find the lines that match `pattern`: one hit for a line, however often it matches.

    What git ignores is searched too; hidden files and folders never are, and links are not followed. Where
    a memory cannot be read, or is no longer what was searched, its hits have neither heading nor context.

    Args:
        pattern: what to look for within a line.
        root: the absolute path of the vault's folder.
        mounts: vault path → absolute path of the file that stands in for it.
        read: gives the memory at a vault path.
        namespace: the folder of the vault to search.
        base: the folder, `namespace` or one above it, that the paths of hits and findings are relative to.
        wall: what may be searched of it.
        targets: the memories and folders below the namespace to search; all of it without.
        only: the vault paths of the memories that count; all without.
        regex: whether `pattern` is a regular expression (syntax of Rust's regex crate), not the text itself.
        case: how letter case counts; `smart` ignores it unless the pattern has a capital letter.
        word: whether a match must not be part of a longer word.
        globs: which memories to search, relative to the namespace, with ripgrep's meaning: the last one that
            matches decides, `!` excludes, without a slash it is the name that is compared.
        before, after: how many lines to give before and after each hit.
        limit: the most hits to give. The last one then says how many lines were left out; they are
            counted up to 10,000, so that 10,000 means at least as many.

    Raises:
        Usage: an argument that cannot mean anything.
        PathRefused: the namespace is not a path of a vault.
        ProgramFailed: there is no ripgrep.

    The first hit asked for may also raise PatternInvalid (the pattern or a glob) or
    ProgramFailed.
    """
    _check(pattern, globs, min(before, after), limit)
    if case not in _CASES:
        raise Usage(problem=f"case is {', '.join(_CASES)}, not {case!r}")
    if regex and len(pattern) > MOST_CHARACTERS:
        reason = f"it has {len(pattern):,} characters; the most is {MOST_CHARACTERS:,}"
        raise PatternInvalid(pattern=shortened(pattern), reason=reason)
    namespace, base = paths.check_folder(namespace), paths.check_folder(base)
    if not paths.is_under(namespace, base):
        raise Usage(
            problem=f"{namespace!r} is not below {base!r}", remedy="give a base that contains the namespace"
        )
    search = _GrepRun(
        pattern=pattern,
        root=root,
        mounts=mounts,
        read=read,
        namespace=namespace,
        base=base,
        wall=wall,
        targets=targets,
        only=only,
        regex=regex,
        case=case,
        word=word,
        globs=globs,
        before=before,
        after=after,
        limit=limit,
        program=ripgrep.program(),
        findings=[],
    )
    return Hits(search)


def _check(pattern: str, globs: Sequence[str], context: int, limit: int | None) -> None:
    if not pattern:
        raise Usage(problem="the pattern is empty", remedy="say what to look for")
    if any(end in pattern for end in "\r\n"):
        raise Usage(
            problem="the pattern has a line end in it", remedy="a match is within one line: look for one line"
        )
    if not all(map(str.strip, globs)):
        raise Usage(problem="a glob is empty", remedy="leave it away to search all memories")
    for text in (pattern, *globs):
        if "\0" in text or not _encodable(text):
            remedy = "neither a NUL character nor a lone surrogate can be looked for"
            raise Usage(problem=f"{text!r} is not text", remedy=remedy)
    if context < 0:
        raise Usage(problem=f"context is {context}", remedy="give 0 or more lines of context")
    if limit is not None and limit < 1:
        raise Usage(problem=f"limit is {limit}", remedy="give a limit of 1 or more, or none")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Match(NamedTuple):
    """What ripgrep printed about a line that matches, and the parts of the line's vault path.

    `hits` are what it comes to, once its memory has been read, and `lines` those that no hit is made of yet.
    """

    path: tuple[str, ...]
    printed: bytes
    hits: Iterable[Hit] | None = None
    lines: Iterator[ripgrep.Line] = iter(())


_BY_PATH = itemgetter(0)


class _GrepRun(NamedTuple):
    """One search: its arguments as `grep` takes them, and what it found out besides hits."""

    pattern: str
    root: str
    mounts: Mapping[str, str]
    read: Callable[[str], Document]
    namespace: str
    base: str
    wall: Namespace
    targets: Sequence[str] | None
    only: Collection[str] | None
    regex: bool
    case: Case
    word: bool
    globs: Sequence[str]
    before: int
    after: int
    limit: int | None
    program: str
    findings: list[Diagnostic]

    def hits(self) -> Generator[Hit]:
        """The hits, in order."""
        given = 0
        matches = self._matches()
        try:
            for match in self._looked_up(matches):
                for hit in match.hits or ():
                    given += 1
                    if given == self.limit:
                        further = sum(1 for _ in islice(match.lines, COUNTED))
                        left_out = min(COUNTED, further + _count(matches))
                        yield replace(hit, left_out=left_out)
                        return
                    yield hit
        finally:
            matches.close()

    def counts(self) -> Generator[tuple[str, int]]:
        """The memories with hits and how many, in order."""
        # Each file is searched by one thread: what it holds is printed together.
        for path, matches in groupby(self._matches(reads=False), key=_BY_PATH):
            yield (
                paths.relative("/".join(path), self.base),
                sum(ripgrep.count_lines(m.printed) for m in matches),
            )

    def _looked_up(self, matches: Iterator[_Match]) -> Iterator[_Match]:
        """The same matches with their hits; each memory is read once where its matches follow each other."""
        memory = None
        for match in matches:
            if match.hits is not None:
                yield match
                continue
            path = "/".join(match.path)
            if memory is None or memory.path != path:
                from mdmem.index.hit import HitReader  # noqa: PLC0415 - it is imported by then

                memory = HitReader(path, self.read, paths.relative(path, self.base))
            lines = ripgrep.matching_lines(match.printed)
            hits = map(memory.hit, lines, repeat(self.before), repeat(self.after))
            # The one line is looked up now; of the many of a text without line feeds, each when it is given.
            several = ripgrep.may_be_several(match.printed)
            yield match._replace(hits=hits if several else list(hits), lines=lines)

    def _file(self, path: str) -> str:
        return self.mounts.get(path) or os.path.join(self.root, path)

    def _matches(self, *, reads: bool = True) -> Generator[_Match]:
        """The matches, in order: all at once where they are few, else as they are found."""
        mounted = self._mounted()
        gathered = self._gathered(mounted, reads=reads)
        if gathered is not None:
            yield from sorted(gathered, key=_BY_PATH)
            return
        with self._run(mounted, sort="path") as process:
            yield from _merged(self._read(process, mounted), set(mounted.values()))

    def _gathered(self, mounted: Mapping[str, str], *, reads: bool) -> list[_Match] | None:
        """All matches, those of one file in order; None when there are too many."""
        gathered: list[_Match] = []
        size = 0
        with self._run(mounted) as process:
            # Reading memories takes some imports: they are made while ripgrep searches.
            for module in ("json", "mdmem.index.hit", "mdmem.markdown.blocks"):
                importlib.import_module(module)
            found = self._read(process, mounted)
            most = min(_READ_EARLY, self.limit or _READ_EARLY) if reads else 0
            early = islice(self._looked_up(found), most)
            for match in chain(early, found):
                # The last one may be of any size: it is here, and to search again would bring it once more.
                if len(gathered) == GATHERED or size > _GATHERED_BYTES:
                    return None
                gathered.append(match)
                size += len(match.printed)
        return gathered

    def _mounted(self) -> dict[str, str]:
        """The mounted files to search: absolute path → vault path."""
        wanted = [
            path
            for path, file in sorted(self.mounts.items())
            if self._is_wanted(path) and path.endswith(SUFFIXES) and os.path.isfile(file)
        ]
        if wanted and self.globs:
            wanted = self._matching_globs(wanted)
        return {self.mounts[path]: path for path in wanted}

    def _is_wanted(self, path: str) -> bool:
        """Whether a path of the vault is below what is to be searched."""
        return any(paths.is_under(path, each) for each in self._wanted)

    @property
    def _wanted(self) -> Sequence[str]:
        return [self.namespace] if self.targets is None else self.targets

    def _places(self) -> list[str]:
        """What ripgrep is given to search besides mounted files, seen from the namespace, in order."""
        named = set(self._wanted)
        wanted = sorted(
            (each for each in named if not _is_below(each, named)), key=lambda path: path.split("/")
        )
        files_ = [path for path in wanted if path not in self.mounts and _is_file(self.root, path)]
        if files_ and self.globs:
            files_ = self._matching_globs(files_)
        there = [path for path in wanted if path in files_ or _is_folder(self.root, path)]
        return [
            f"./{paths.relative(path, self.namespace)}" if path != self.namespace else "./" for path in there
        ]

    def _matching_globs(self, wanted: list[str]) -> list[str]:
        # A file named on the command line is searched whatever the globs say. So ripgrep is asked about empty
        # files of the same names: only it knows exactly what a glob means to it.
        import tempfile  # noqa: PLC0415 - costs 5 ms, and hardly any search needs it

        with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
            for path in wanted:
                twin = os.path.join(folder, paths.relative(path, self.namespace))
                os.makedirs(os.path.dirname(twin), exist_ok=True)
                os.close(os.open(twin, os.O_CREAT | os.O_WRONLY, 0o600))
            command = [*self._options("--files", "--null"), "--", "./"]
            with ripgrep.Process(command, folder) as process:
                names = b"".join(process.lines()).split(b"\0")
                errors = process.errors()
        if errors:
            raise ripgrep.failure(self.program, errors, self.pattern)
        found = {paths.join(self.namespace, os.fsdecode(name).removeprefix("./")) for name in names}
        return [path for path in wanted if path in found]

    def _run(self, mounted: Mapping[str, str], sort: str = "none") -> ripgrep.Process:
        folder = os.path.join(self.root, self.namespace)
        there = _is_folder(self.root, self.namespace)
        literal = () if self.regex else ("--fixed-strings",)
        words = ("--word-regexp",) if self.word else ()
        options = self._options("--json", "--text", "--crlf", _CASES[self.case], *literal, *words)
        # Mounted files come first, in order; with nothing to search, ripgrep still judges the pattern.
        targets = [*mounted, *(self._places() if there else [])] or [os.devnull]
        # More lines of one file change no hit, and no number of hits that are left out.
        most = () if self.limit is None else (f"--max-count={self.limit + COUNTED}",)
        command = [*options, *most, "--sort", sort, "--", self.pattern, *targets]
        return ripgrep.Process(command, folder if there else None)

    def _options(self, *switches: str) -> list[str]:
        """The program and its options, with the globs: memories only, nothing hidden."""
        narrowed = any(not glob.startswith("!") for glob in self.globs)
        # The last one that matches decides. What is hidden in part only is searched, and left out then.
        wall, base = self.wall, self.namespace
        hides = [each for each in wall.hides if not any(paths.is_under(kept, each) for kept in wall.keeps)]
        hidden = [f"!/{paths.relative(each, base)}/" for each in hides if paths.is_under(each, base)]
        globs = (*(() if narrowed else (f"*{suffix}" for suffix in SUFFIXES)), *self.globs, "!.*", *hidden)
        # ripgrep takes a glob that begins with # for a comment, and would search everything.
        written = (f"--glob=\\{glob}" if glob.startswith("#") else f"--glob={glob}" for glob in globs)
        limit = f"--max-filesize={MOST_BYTES}"
        return [self.program, "--no-config", "--no-ignore", limit, *switches, *written]

    def _read(self, process: ripgrep.Process, mounted: Mapping[str, str]) -> Iterator[_Match]:
        """The matches that ripgrep prints, as it prints them.

        Raises:
            PatternInvalid, ProgramFailed: it gave up.
        """
        parts: tuple[str, ...] = ()
        for printed in process.lines():
            if ripgrep.is_match(printed):
                if parts and ripgrep.is_whole(printed):
                    yield _Match(parts, printed)
                elif parts:
                    path = paths.relative("/".join(parts), self.base)
                    self.findings.append(_unreadable(path, "a line that matches is too long"))
                continue
            kind, data = ripgrep.message(printed)
            if kind == "begin":
                path = self._vault_path(ripgrep.named(data), mounted)
                is_seen = path.endswith(SUFFIXES) and self.wall.holds(path)
                counts = is_seen and (self.only is None or normalize("NFC", path) in self.only)
                parts = tuple(path.split("/")) if counts else ()
            elif kind == "summary":
                self._complain(process.errors(), mounted)
                return
        raise ripgrep.failure(self.program, process.errors(), self.pattern)

    def _vault_path(self, named: str, mounted: Mapping[str, str]) -> str:
        """The vault path of a file as ripgrep names it; empty when a mounted file stands in for it."""
        if named in mounted:
            return mounted[named]
        path = paths.join(self.namespace, named.removeprefix("./"))
        return "" if path in self.mounts else path

    def _complain(self, errors: str, mounted: Mapping[str, str]) -> None:
        for named, reason in ripgrep.unread(errors):
            path = self._vault_path(named, mounted) if named else ""
            if named and not self.wall.holds(path):
                continue
            # A glob may have let other files in; whether they can be read does not matter.
            # What is too deep for the system is a folder: that it is one cannot be asked any more.
            if path.endswith(SUFFIXES) or not named or not os.path.isfile(self._file(path)):
                self.findings.append(_unreadable(paths.relative(path, self.base), reason))
        self.findings.sort(key=lambda finding: finding.path.split("/"))


def ripgrepy(pattern: str, root: str, wall: Namespace) -> Ripgrepy:
    """A `Ripgrepy` that is bound to the memories of a namespace; see `Memory.ripgrep`.

    Args:
        pattern: as `grep` takes it.
        root: the vault's folder.
        wall: the namespace.

    Raises:
        Usage, PathRefused, ProgramFailed: as `grep`.
    """
    from ripgrepy import Ripgrepy  # noqa: PLC0415 - start-up

    _check(pattern, (), 0, None)
    folder = os.path.join(root, wall.folder).rstrip(os.sep) if _is_folder(root, wall.folder) else os.devnull
    bound = Ripgrepy("--", folder, ripgrep.program())
    bound.command += ["--no-config", "--no-ignore", f"--regexp={pattern}"]
    bound.command += [f"--glob=*{suffix}" for suffix in SUFFIXES]

    def run(*given: Any, **named: Any) -> Any:
        # The last of contradicting options counts, so that none given in between does.
        bound.command += ["--no-follow", "--no-hidden", "--no-pre", "--no-search-zip", "--glob=!.*"]
        for path in (os.path.join(root, each) for each in wall.hides):
            # ripgrep compares a path as seen from the current folder where it is below that, else whole.
            near = os.path.relpath(path)
            below = "*" if near == os.curdir else _literal(near)
            bound.command += [f"--glob=!**{_literal(path)}", f"--glob=!/{below}"]
        return Ripgrepy.run(bound, *given, **named)

    bound.run = run
    return bound


def _literal(path: str) -> str:
    """A glob that fits a path and nothing else; a part `*` stands for any one name."""
    parts = ("".join(f"\\{c}" if c in "\\*?[]{}!#" else c for c in part) for part in path.split("/"))
    return "/".join("*" if part == "\\*" else part for part in parts)


def _is_folder(root: str, namespace: str) -> bool:
    """Whether the namespace is a folder that no symbolic link leads to: one could leave the vault."""
    folder = root
    for part in namespace.split("/") if namespace else ():
        folder = os.path.join(folder, part)
        with files.translated(namespace, "look at it"):
            if not files.is_folder(folder):
                return False
    return os.path.isdir(folder)


def _is_below(path: str, folders: Collection[str]) -> bool:
    """Whether one of the folders is above a path."""
    return bool(path) and (
        "" in folders or any(path[:at] in folders for at in range(len(path)) if path[at] == "/")
    )


def _is_file(root: str, path: str) -> bool:
    """Whether a path of the vault is a file that no symbolic link leads to."""
    if not _is_folder(root, path.rpartition("/")[0]):
        return False
    with files.translated(path, "look at it"):
        try:
            return stat.S_ISREG(os.lstat(os.path.join(root, path)).st_mode)
        except FileNotFoundError:
            return False


def _unreadable(path: str, reason: str) -> Diagnostic:
    hint = "see to it that it can be read, and search again"
    return about_file(
        path, "unreadable", f"not searched: {reason}", hint, severity="warning", rule="unreadable"
    )


def _merged(matches: Iterator[_Match], mounted: set[str]) -> Iterator[_Match]:
    """`matches` in order, where those of mounted files come first and the others are in order already."""
    early: list[_Match] = []
    for match in matches:
        if "/".join(match.path) not in mounted:
            import heapq  # noqa: PLC0415 - start-up, and few searches find so much

            return heapq.merge(sorted(early, key=_BY_PATH), chain((match,), matches), key=_BY_PATH)
        early.append(match)
    return iter(sorted(early, key=_BY_PATH))


def _count(matches: Iterator[_Match]) -> int:
    """How many lines `matches` has, or `COUNTED` as soon as there are as many."""
    counted = 0
    for match in matches:
        counted += ripgrep.count_lines(match.printed)
        if counted >= COUNTED:
            break
    return counted
