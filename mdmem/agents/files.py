"""Instruction files: where they may lie, and what a tool takes of each, with the reason.

Reading leaves the workspace nowhere. The header of a rule says which files it is about.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from mdmem.diagnostic import Diagnostic, Span, about_file
from mdmem.errors import MdmemError, PatternInvalid
from mdmem.text import tokens
from mdmem.text.document import parse_text
from mdmem.text.frontmatter import locate
from mdmem.text.globs import matcher
from mdmem.text.lines import LINE_END, Lines
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionFile:
    """An instruction file as a tool sees it.

    Attributes:
        path: relative to the workspace; `~/…` in the home directory; absolute elsewhere.
        tool: whose view this is.
        scope: whom the file speaks to: managed, user, project, local, rule or memory.
        reason: why the tool reads it, or does not.
        bytes: its size.
        bytes_kept: how many bytes of it the tool takes, comments and frontmatter that it drops not counted.
        text: what the tool takes.
        limit: the limit that cut it; empty where none did.
    """

    JSON: ClassVar = ("path", "tool", "scope", "reason", "bytes", "bytes_kept", "limit")

    path: str
    tool: str
    scope: str
    reason: str
    bytes: int
    bytes_kept: int
    text: str = ""
    limit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a tool reads for a file.

    Attributes:
        file: the file that it works on, relative to the workspace.
        tool: its name.
        as_of: when its rules were last compared with what it does: `2026-09`.
        files: what it reads, in its order.
        left_out: files that look as if it read them and that it does not, with the reason.
        findings: what is wrong: imports that fail, links that leave the workspace, patterns that are none.
    """

    JSON: ClassVar = ("file", "tool", "as_of", "tokens", "files", "left_out", "findings", "text")

    file: str
    tool: str
    as_of: str
    files: tuple[InstructionFile, ...]
    left_out: tuple[InstructionFile, ...]
    findings: tuple[Diagnostic, ...]

    @property
    def text(self) -> str:
        """All that is kept, in order, with a blank line between files."""
        return "\n\n".join(found.text.strip("\r\n") for found in self.files if found.text.strip())

    @property
    def tokens(self) -> int:
        """About how many tokens the text is."""
        return tokens.estimate(self.text)


# Instructions are a few kilobytes; what is larger than any limit of a tool is not read to its end.
_MOST_BYTES = 8 * 1024 * 1024
_MANAGED = {"darwin": "/Library/Application Support/ClaudeCode", "win32": r"C:\Program Files\ClaudeCode"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where tools look: all absolute paths without links.

    Attributes:
        workspace: the repository.
        home: the user's home directory.
        managed: the folder in which an administrator puts the instructions of a machine.
        top: the highest folder that is looked into.
        hides: says of a place whether it must not be looked at.
    """

    workspace: str
    home: str
    managed: str
    top: str = "/"
    hides: Callable[[str], bool] = lambda _: False

    @classmethod
    def of(cls, workspace: str, hides: Callable[[str], bool] = lambda _: False) -> Self:
        """The places of this machine and user."""
        home = os.path.realpath(os.path.expanduser("~"))
        return cls(
            workspace=os.path.realpath(workspace),
            home=home,
            managed=_MANAGED.get(sys.platform, "/etc/claude-code"),
            hides=hides,
        )

    def shown(self, place: str) -> str:
        """A path as it is shown: from the workspace, else from the home directory, else absolute."""
        if is_inside(place, self.workspace):
            return _printable(os.path.relpath(place, self.workspace))
        if is_inside(place, self.home):
            return _printable(f"~/{os.path.relpath(place, self.home)}")
        return _printable(place)


def _printable(path: str) -> str:
    """A path that can be printed: bytes that are not UTF-8, and controls, are written with escapes."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_inside(place: str, folder: str) -> bool:
    """Whether a normal path is a folder or below it, by parts."""
    return place == folder or place.startswith(folder.rstrip(os.sep) + os.sep)


class Text(NamedTuple):
    """A file that was read: where it stands, where that leads, as it is shown, its size and text."""

    place: str
    real: str
    path: str
    size: int
    text: str


class SourceFiles:
    """The files of some places; each is read once.

    A link of the workspace that leads out of it is refused: a repository that was cloned could show any file
    of its user to a model. `findings` says which were, by path, and what else could not be read.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self.findings: dict[str, Diagnostic] = {}
        self._texts: dict[str, Text | None] = {}
        self._listed: dict[tuple[str, str], list[str]] = {}

    def read(self, place: str) -> Text | None:
        """The regular file at a place; None where there is none, or it must not be read."""
        place = os.path.normpath(place)
        if place not in self._texts:
            self._texts[place] = self._read(place)
        return self._texts[place]

    def below(self, folder: str, suffix: str) -> list[str]:
        """The places below a folder whose names end with `suffix`, in the order of their paths."""
        key = (folder, suffix)
        if key not in self._listed:
            self._listed[key] = sorted(self._below(folder, suffix, set()), key=lambda p: p.split(os.sep))
        return self._listed[key]

    def texts(self, folder: str, suffix: str) -> Iterator[Text]:
        """The files there, as far as they may and can be read."""
        return filter(None, map(self.read, self.below(folder, suffix)))

    def _below(self, folder: str, suffix: str, above: set[str]) -> Iterator[str]:
        real = self._led(folder)
        if real is None or real in above:
            return
        try:
            names = os.listdir(real)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._report(folder, "unreadable", f"cannot be read: {error.strerror}")
            return
        for name in names:
            place = os.path.join(folder, name)
            if os.path.isdir(place):
                yield from self._below(place, suffix, above | {real})
            elif name.endswith(suffix):
                yield place

    def _led(self, place: str) -> str | None:
        """Where a place leads, unless that is out of the workspace."""
        try:
            real = os.path.realpath(place)
        except (OSError, ValueError):
            return None
        workspace = self.places.workspace
        if is_inside(place, workspace) and not is_inside(real, workspace):
            self._report(
                place, "link-leaves", "a symbolic link that leaves the workspace; it was not followed"
            )
            return None
        return None if self.places.hides(real) else real

    def _report(self, place: str, code: str, message: str) -> None:
        path = self.places.shown(place)
        hint = "put the file itself there, or a link to a file of the workspace" if "link" in code else ""
        self.findings.setdefault(path, about_file(path, code, message, hint))

    def _read(self, place: str) -> Text | None:
        real = self._led(place)
        if real is None:
            return None
        try:
            read = _content(real)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            self._report(place, "unreadable", f"cannot be read: {error.strerror}")
            return None
        if read is None:
            return None
        data, size = read
        if size > _MOST_BYTES:
            self._report(place, "too-large", f"{size:,} bytes; only the first 8 MiB are looked at")
        text = data.decode("utf-8", "replace")
        return Text(place, real, self.places.shown(place), max(size, len(data)), text)


def _content(place: str) -> tuple[bytes, int] | None:
    """The bytes of a regular file, as far as they are read, and its size; None of what is none."""
    # A FIFO would be waited for without O_NONBLOCK.
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES), status.st_size
    finally:
        os.close(descriptor)


# What Claude Code expands the braces of one rule to at most (its documentation, 2026-09).
_MOST_PATTERNS = 1_000
_MOST_PATTERN_BYTES = 4 * 1024 * 1024
_FIELD = regex(r"([A-Za-z]\w*):[ \t]*(.*)")
_ITEM = regex(r"[ \t]*-[ \t]+(.*)")
_BRACES = regex(r"\{([^{}]*)\}")


class Header(NamedTuple):
    """The fields of a rule's frontmatter, and the text behind it."""

    fields: dict[str, Any]
    body: str


def read_header(text: str) -> Header:
    """The header of a rule; one that is no YAML, as `globs: *.py` is none, is read line by line."""
    span, inner = locate(text)
    try:
        frontmatter = parse_text("rule.md", text).frontmatter
    except MdmemError:
        return Header({}, text)
    if span.start == span.end:
        return Header({}, text[span.end :])
    sound = frontmatter.present and not frontmatter.flaws
    return Header(frontmatter.values if sound else _by_line(text[slice(*inner)]), text[span.end :])


def _by_line(written: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    last = ""
    for line in LINE_END.split(written):
        if field := _FIELD.fullmatch(line.rstrip()):
            last, value = field[1], _unquoted(field[2])
            fields[last] = {"true": True, "false": False, "": None}.get(value, value)
        elif (item := _ITEM.fullmatch(line.rstrip())) and last:
            items = fields[last] if isinstance(fields[last], list) else []
            fields[last] = [*items, _unquoted(item[1])]
    return fields


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def braces(glob: str) -> Iterator[str]:
    """The globs without braces that one with braces stands for."""
    pending = [glob]
    while pending:
        one = pending.pop()
        group = _BRACES.search(one)
        if group is None:
            yield one
            continue
        before, after = one[: group.start()], one[group.end() :]
        pending += [before + choice + after for choice in reversed(group[1].split(","))]


def patterns(written: Sequence[str]) -> tuple[str, ...] | None:
    """Globs with their braces expanded; None where that makes more of them than a tool takes."""
    expanded: list[str] = []
    size = 0
    for glob in written:
        for one in braces(glob):
            size += len(one)
            if len(expanded) == _MOST_PATTERNS or size > _MOST_PATTERN_BYTES:
                return None
            expanded.append(one)
    return tuple(expanded)


def matching(written: Sequence[str], path: str, *, anchored: bool = False) -> str | None:
    """The first of some globs that fits a path; None where none does.

    Args:
        written: globs; one that is malformed fits nothing.
        path: from the folder that they are seen from.
        anchored: `*.py` means files of that folder only, not at any depth.
    """
    for glob in written:
        for one in patterns([glob]) or ():
            if _fits(_anchored(one) if anchored else one.removeprefix("./"), path):
                return glob
    return None


def malformed(written: Sequence[str]) -> list[str]:
    """The globs that can fit nothing, because they are malformed or stand for too many patterns."""
    if patterns(written) is None:
        return list(written)
    return [glob for glob in written if not any(map(_compiled, braces(glob)))]


def _anchored(glob: str) -> str:
    return "/" + glob.removeprefix("./").removeprefix("/")


def _fits(glob: str, path: str) -> bool:
    # Alone, a glob that leaves files out would take all others.
    fits = None if glob.startswith("!") else _compiled(glob)
    return fits is not None and fits(path)


@lru_cache(maxsize=4096)
def _compiled(glob: str) -> Any:
    try:
        return matcher([glob]) if glob.strip() else None
    except PatternInvalid:
        return None


class Reading:
    """What `tool` reads for the file at the absolute path `file`, as if it was started in that file's folder.

    Attributes:
        files, left_out: as in `Resolved`.
        loaded: the real paths of what was read, for tools that read nothing twice.
    """

    def __init__(self, tool: str, file: str, source: SourceFiles) -> None:
        self.tool = tool
        self.file = file
        self.folder = os.path.dirname(file)
        self.source = source
        self.files: list[InstructionFile] = []
        self.left_out: list[InstructionFile] = []
        self.loaded: set[str] = set()
        self._findings: dict[tuple[str, str], Diagnostic] = {}

    @property
    def places(self) -> Places:
        """Where tools look."""
        return self.source.places

    def read(self, *parts: str) -> Text | None:
        """The file at the place that these parts make; None where there is none to be read."""
        return self.source.read(os.path.join(*parts))

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """What was found wrong so far."""
        return (*self.source.findings.values(), *self._findings.values())

    def chain(self, top: str) -> list[str]:
        """The folders from `top` down to that of the file, as far as they exist.

        It is the file's folder alone where that is not below `top`.
        """
        if not is_inside(self.folder, top):
            return [self.folder]
        return list(takewhile(os.path.isdir, list(_upward(self.folder, top))[::-1]))

    def repository(self) -> str | None:
        """The nearest folder at or above the file's that holds `.git`."""
        folders = _upward(self.folder, self.places.top)
        return next((folder for folder in folders if os.path.lexists(os.path.join(folder, ".git"))), None)

    def seen_from(self, folder: str) -> str:
        """The path of the file from a folder, for globs."""
        return os.path.relpath(self.file, folder).replace(os.sep, "/")

    def take(
        self,
        text: Text,
        scope: str,
        reason: str,
        *,
        kept: str | None = None,
        cut: tuple[int, str] | None = None,
    ) -> None:
        """Add a file that is read.

        Args:
            text: the file.
            scope, reason: as in `InstructionFile`.
            kept: what the tool takes of it; all without.
            cut: how many bytes are taken, and the limit that says so.
        """
        taken = text.text if kept is None else kept
        size = text.size if kept is None else len(taken.encode())
        limit = ""
        if cut is not None and size > cut[0]:
            size, limit = cut
            taken = taken.encode()[:size].decode("utf-8", "ignore")
        self.loaded.add(text.real)
        self.files.append(self._found(text, scope, reason, size, taken, limit))

    def leave(self, text: Text, scope: str, reason: str, limit: str = "") -> None:
        """Add a file that is not read."""
        self.left_out.append(self._found(text, scope, reason, 0, "", limit))

    def _found(
        self, text: Text, scope: str, reason: str, kept: int, taken: str, limit: str
    ) -> InstructionFile:
        link = "" if text.place == text.real else f"; a link to {self.places.shown(text.real)}"
        linked = link if os.path.islink(text.place) else ""
        return InstructionFile(
            path=text.path,
            tool=self.tool,
            scope=scope,
            reason=reason + linked,
            bytes=text.size,
            bytes_kept=kept,
            text=taken,
            limit=limit,
        )

    def report(self, text: Text, code: str, message: str, hint: str = "", at: int | None = None) -> None:
        """Add a finding about a file; `at` is where in its text, in code points."""
        finding = about_file(text.path, code, message, hint, severity="warning")
        if at is not None:
            finding = replace(finding, span=Span(at, at), position=Lines(text.text).position(at))
        self._findings.setdefault((text.path, f"{code} {message}"), finding)

    def report_malformed(self, text: Text, globs: Sequence[str]) -> None:
        """Add a finding for each glob of a rule that can match nothing."""
        for glob in malformed(globs):
            message = f"the pattern {glob!r} matches nothing: it is malformed, or stands for too many"
            self.report(text, "glob-malformed", message, "mend the pattern")


def _upward(folder: str, top: str) -> Iterator[str]:
    while is_inside(folder, top):
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
