"""Instruction files of a workspace, and which of them Claude Code and Codex read by themselves.

Nothing is read through a link that leads out of the workspace.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.document.frontmatter import locate
from mdmem.errors import PatternInvalid
from mdmem.markdown.blocks import CODE, scan
from mdmem.text.globs import globs_of, matcher
from mdmem.text.regex import regex
from mdmem.vault.files import open_regular
from mdmem.vault.paths import above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mdmem.diagnostic import Span

AGENTS = "AGENTS.md"
# Instructions are a few kilobytes; what is larger than any limit of a tool is not read to its end.
_MOST_BYTES = 8 * 1024 * 1024


def _is_inside(place: str, folder: str) -> bool:
    """Return whether a normal path is a folder or below it, by parts."""
    return place == folder or place.startswith(folder.rstrip(os.sep) + os.sep)


class Text(NamedTuple):
    """A file that was read: where it stands, where that leads, its size in bytes, and its text."""

    place: str
    real: str
    size: int
    text: str


class SourceFiles:
    """Reads files for a workspace, each once.

    A link of the workspace that leads out of it is not followed: a repository that was cloned could show any
    file of its user to a model.

    Args:
        workspace: an absolute path without links.
        hides: says of a place whether it must not be looked at.
    """

    def __init__(self, workspace: str, hides: Callable[[str], bool] = lambda _: False) -> None:
        self.workspace = workspace
        self._is_hidden = hides
        self._texts: dict[str, Text | None] = {}

    def read(self, *parts: str) -> Text | None:
        """Read the regular file at a place; None where there is none, or it cannot or must not be read."""
        place = os.path.normpath(os.path.join(*parts))
        if place not in self._texts:
            self._texts[place] = self._read_text(place)
        return self._texts[place]

    def list_below(self, folder: str, suffix: str) -> list[str]:
        """List the places below a folder whose names end with `suffix`, in the order of their paths."""
        places: list[str] = []
        seen: set[str | None] = {None}
        for here, folders, names in os.walk(folder, followlinks=True):
            real = self._follow_links(here)
            if real in seen:
                folders.clear()
            else:
                seen.add(real)
                places += [os.path.join(here, name) for name in names if name.endswith(suffix)]
        return sorted(places, key=lambda place: place.split(os.sep))

    def _follow_links(self, place: str) -> str | None:
        try:
            real = os.path.realpath(place)
        except (OSError, ValueError):
            return None
        leaves = _is_inside(place, self.workspace) and not _is_inside(real, self.workspace)
        return None if leaves or self._is_hidden(real) else real

    def _read_text(self, place: str) -> Text | None:
        real = self._follow_links(place)
        if real is None:
            return None
        try:
            with open(open_regular(real), "rb") as file:
                size, data = os.fstat(file.fileno()).st_size, file.read(_MOST_BYTES)
        except (OSError, ValueError):
            return None
        return Text(place, real, max(size, len(data)), data.decode("utf-8", "replace"))


# -- globs and imports ------------------------------------------------------------------------------------

# As many as Claude Code expands the braces of one rule to (its documentation, 2026-09).
_MOST_PATTERNS = 1_000
_MOST_PATTERN_CHARACTERS = 4 * 1024 * 1024
_BRACES = regex(r"\{([^{}]*)\}")


def expand_braces(globs: Sequence[str]) -> list[str] | None:
    """Return the globs without braces that some stand for; None where they are more than a tool takes."""
    expanded: list[str] = []
    for glob in globs:
        pieces = enumerate(_BRACES.split(glob))  # every second one is what stands in braces
        choices = [piece.split(",") if number % 2 else [piece] for number, piece in pieces]
        count = len(expanded) + math.prod(map(len, choices))
        if count > _MOST_PATTERNS or count * len(glob) > _MOST_PATTERN_CHARACTERS:
            return None
        expanded += map("".join, itertools.product(*choices))
    return expanded


_IMPORT = regex(r"(?<!\S)@((?:[^\s\\]|\\ )+)")
_COMMENT = regex(r"(?<![^\r\n]) {0,3}<!--")
_REST_IS_BLANK = regex(r"[ \t]*(?:[\r\n]|\Z)")


def find_imports(text: str, *, in_comments: bool = True) -> list[str]:
    """Find what a Markdown text imports, `@path`, outside of code spans and fences; each once, in order.

    `in_comments`: also in HTML comments on lines of their own.
    """
    if "@" not in text:
        return []
    outline = scan(text, locate(text)[0].end)
    marked = [(mark.start, mark.end) for mark in outline.marks if mark.kind == CODE]
    code = sorted([*outline.fences, *marked])
    comments = [] if in_comments else list(_find_comments(text, outline.fences))
    matches = (
        match
        for match in _IMPORT.finditer(text)
        if not (_is_within(code, match.start()) or _is_within(comments, match.start()))
    )
    return list(dict.fromkeys(match[1].replace("\\ ", " ") for match in matches))


def _find_comments(text: str, fences: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield where HTML comments stand on lines of their own, outside of code."""
    at = 0
    while (begin := _COMMENT.search(text, at)) and (end := text.find("-->", begin.end())) >= 0:
        at = end + len("-->")
        if _is_within(fences, begin.start()):
            at = begin.end()
        elif _REST_IS_BLANK.match(text, at):
            yield begin.start(), at


def _is_within(spans: Sequence[Span | tuple[int, int]], at: int) -> bool:
    """Return whether a place is in one of some spans, which are in order and apart."""
    number = bisect_right(spans, (at, sys.maxsize)) - 1
    return number >= 0 and at < spans[number][1]


# -- what hosts read --------------------------------------------------------------------------------------

_MANAGED = {"darwin": "/Library/Application Support/ClaudeCode", "win32": r"C:\Program Files\ClaudeCode"}


class Surroundings(NamedTuple):
    """Where hosts look outside of a workspace, as absolute paths without links.

    The home directory, the folder of what an administrator puts on a machine, and the highest folder of all.
    """

    home: str
    managed: str
    top: str = "/"


def find_read_by_host(
    host: str, folder: str, source: SourceFiles, around: Surroundings | None = None
) -> frozenset[str]:
    """Find the instruction files that a host, `claude` or `codex`, reads whole when it starts in a folder.

    Returns absolute paths without links; none for a folder outside of the workspace. `around`: where else
    hosts look, on this machine and for this user by default.
    """
    around = around or Surroundings(
        os.path.realpath(os.path.expanduser("~")), _MANAGED.get(sys.platform, "/etc/claude-code")
    )
    folder = os.path.normpath(os.path.join(source.workspace, folder))
    if not _is_inside(folder, source.workspace):
        return frozenset()
    if host == "codex":
        return frozenset(_find_codex(folder, source, around))
    return frozenset(_Claude(source, around).find(folder))


def _read_settings(source: SourceFiles, loads: Callable[[str], Any], *parts: str) -> dict[str, Any]:
    """Read settings; empty where there are none, or none that can be read."""
    text = source.read(*parts)
    try:
        value = loads(text.text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _list_folders(folder: str, top: str) -> list[str]:
    """List the folders from `top` down to `folder`, as far as they exist."""
    folders = [folder, *above(folder)]
    return [one for one in reversed(folders) if _is_inside(one, top) and os.path.isdir(one)]


# Codex, as of 2026-09.
_OVERRIDE = "AGENTS.override.md"
_CODEX_BYTES = 32 * 1024


def _find_codex(folder: str, source: SourceFiles, around: Surroundings) -> Iterator[str]:
    """Yield the user's file, then at most one of each folder, until the budget of bytes is used up."""
    import tomllib  # noqa: PLC0415 - Codex alone has settings in TOML

    home = os.path.join(around.home, ".codex")
    settings = _read_settings(source, tomllib.loads, home, "config.toml")
    texts = [source.read(home, name) for name in (_OVERRIDE, AGENTS)]
    yield from [text.real for text in texts if text and text.text.strip()][:1]
    most = settings.get("project_doc_max_bytes")
    left = most if isinstance(most, int) and most >= 0 else _CODEX_BYTES
    fallbacks = settings.get("project_doc_fallback_filenames")
    more = [name for name in fallbacks if isinstance(name, str)] if isinstance(fallbacks, list) else []
    folders = _list_folders(folder, around.top)
    root = next((one for one in folders[::-1] if os.path.lexists(os.path.join(one, ".git"))), folder)
    for one in (one for one in folders if _is_inside(one, root)):
        texts = [source.read(one, name) for name in (_OVERRIDE, AGENTS, *more)]
        text = next(filter(None, texts), None)
        if text and text.text.strip():
            if text.size <= left:
                yield text.real
            left = max(0, left - text.size)


# Claude Code 2.1.277, of 2026-09, which is the first to read AGENTS.md.
_CLAUDE_BYTES = 4 * 1024 * 1024
_MOST_HOPS = 4
_PROJECT_FILES = ("CLAUDE.md", os.path.join(".claude", "CLAUDE.md"))
_PATHS = regex(r"(?<![^\r\n])paths[ \t]*:")


class _Claude:
    """Finds what Claude Code reads: managed, user, each folder down to its own, rules, with their imports."""

    def __init__(self, source: SourceFiles, around: Surroundings) -> None:
        self._source = source
        self._around = around
        self._read: set[str] = set()
        self._excludes = list(self._find_excludes())

    def find(self, folder: str) -> set[str]:
        source, around = self._source, self._around
        home = os.path.join(around.home, ".claude")
        folders = _list_folders(folder, around.top)
        self._take_text(source.read(around.managed, "CLAUDE.md"), is_managed=True)
        self._take_text(source.read(home, "CLAUDE.md"))
        texts = (source.read(one, name) for one in folders for name in _PROJECT_FILES)
        # In the home directory the second one is the user's own file.
        has_own = any(text and text.place != os.path.join(home, "CLAUDE.md") for text in texts)
        for one in folders:
            for name in (*(_PROJECT_FILES if has_own else (AGENTS,)), "CLAUDE.local.md"):
                self._take_text(source.read(one, name))
        for one in (around.home, *(one for one in folders if one != around.home)):
            for place in source.list_below(os.path.join(one, ".claude", "rules"), ".md"):
                self._take_rule(source.read(place))
        return self._read

    def _take_text(self, text: Text | None, *, is_managed: bool = False) -> None:
        if text and text.size <= _CLAUDE_BYTES and text.real not in self._read:
            path = text.place.lstrip("/")
            if is_managed or not any(excludes(path) for excludes in self._excludes):
                self._follow_imports(text, find_imports(text.text, in_comments=False))

    def _take_rule(self, text: Text | None) -> None:
        """Take a rule that is about every file; one with `paths` is read when such a file is."""
        if text and text.size <= _CLAUDE_BYTES and text.real not in self._read:
            header, inner = locate(text.text)
            if not _PATHS.search(text.text[slice(*inner)]):
                self._follow_imports(text, find_imports(text.text[header.end :], in_comments=False))

    def _follow_imports(self, text: Text, imports: Sequence[str], hops: int = 0) -> None:
        """Take a file and what it imports."""
        self._read.add(text.real)
        for target in imports if hops < _MOST_HOPS else ():
            is_home = target.startswith("~/")
            folder = self._around.home if is_home else os.path.dirname(text.real)
            imported = self._source.read(folder, target[2:] if is_home else target)
            if imported and imported.real not in self._read and imported.size <= _CLAUDE_BYTES:
                # It asks its user once before it reads what is outside of the workspace.
                workspace = self._source.workspace
                if _is_inside(imported.real, workspace) or not _is_inside(text.real, workspace):
                    self._follow_imports(imported, find_imports(imported.text), hops + 1)

    def _find_excludes(self) -> Iterator[Callable[[str], bool]]:
        """Yield what says whether `claudeMdExcludes` leaves out a path from the root."""
        for parts in (
            (self._around.managed, "managed-settings.json"),
            (self._around.home, ".claude", "settings.json"),
            (self._source.workspace, ".claude", "settings.json"),
            (self._source.workspace, ".claude", "settings.local.json"),
        ):
            settings = _read_settings(self._source, json.loads, *parts)
            for glob in globs_of(settings.get("claudeMdExcludes")):
                with contextlib.suppress(PatternInvalid):
                    yield matcher([glob if glob.startswith(("/", "**")) else f"/{glob}"])
