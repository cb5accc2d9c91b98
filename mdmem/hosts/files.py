"""Instruction files of a workspace, and which of them hosts read by themselves.

Nothing is read through a link that leads out of the workspace.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mdmem.diagnostic import Span, is_within
from mdmem.document.frontmatter import locate
from mdmem.document.markdown.blocks import scan
from mdmem.document.text.regex import regex
from mdmem.vault.files import open_regular
from mdmem.vault.paths import above, is_under
from mdmem.vault.walk import tree

AGENTS = "AGENTS.md"
_MOST_BYTES = 4 * 1024 * 1024  # as Claude Code: what is larger is skipped


class Text(NamedTuple):
    """A file that was read: where it is, without links, and its text."""

    real: str
    text: str


class SourceFiles:
    """Reads files for a workspace.

    A link of the workspace that leads out of it is not followed: a repository that was cloned could show any
    file of its user to a model. `hides` says of a place whether it must not be looked at.

    Args:
        workspace: an absolute path without links.
    """

    def __init__(self, workspace: str, hides: Callable[[str], bool] = lambda _: False) -> None:
        self.workspace = workspace
        self._is_hidden = hides

    def read(self, *parts: str) -> Text | None:
        """Read the regular file at a place; None where there is none, or it cannot or must not be read."""
        try:
            place = os.path.normpath(os.path.join(*parts))
            real = os.path.realpath(place)
            leaves = is_under(place, self.workspace) and not is_under(real, self.workspace)
            if leaves or self._is_hidden(real):
                return None
            with open(open_regular(real), "rb") as file:
                if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                    return None
                return Text(real, file.read(_MOST_BYTES).decode("utf-8", "replace"))
        except (OSError, ValueError):
            return None

    def list_below(self, folder: str, suffix: str) -> list[str]:
        """List the files below a folder with names that end in `suffix`, in the order of their paths."""
        places = [
            os.path.join(here, name)
            for here, _, names in tree(folder)
            for name in names
            if name.endswith(suffix)
        ]
        return sorted(places, key=lambda place: place.split(os.sep))


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


def find_imports(text: str) -> list[str]:
    """Find what a Markdown text imports, `@path`; each once, in order.

    Frontmatter, code spans, fences, and HTML comments on lines of their own import nothing.
    """
    if "@" not in text:
        return []
    start = locate(text)[0].end
    outline = scan(text, start)
    code, comments = outline.code, list(_find_comments(text, outline.fences))
    matches = (
        match
        for match in _IMPORT.finditer(text, start)
        if not (is_within(code, match.start()) or is_within(comments, match.start()))
    )
    return list(dict.fromkeys(match[1].replace("\\ ", " ") for match in matches))


def _find_comments(text: str, fences: Sequence[Span]) -> Iterator[Span]:
    """Yield where HTML comments stand on lines of their own, outside of code."""
    at = 0
    while (begin := _COMMENT.search(text, at)) and (end := text.find("-->", begin.end())) >= 0:
        at = end + len("-->")
        if is_within(fences, begin.start()):
            at = begin.end()
        elif _REST_IS_BLANK.match(text, at):
            yield Span(begin.start(), at)


# -- what hosts read --------------------------------------------------------------------------------------


def find_read_by_host(host: str, folder: str, source: SourceFiles) -> frozenset[str]:
    """Find the instruction files that a host certainly reads whole when it starts in a folder.

    Returns absolute paths without links; none for a folder outside of the workspace, or for a host that may
    read none. The user's own files, and the user's settings of the host, are not looked at.

    The folder is an absolute path, or one below the workspace.
    """
    folder = os.path.normpath(os.path.join(source.workspace, folder))
    if host not in _READERS or not is_under(folder, source.workspace):
        return frozenset()
    folders = [one for one in (*reversed(list(above(folder))), folder) if os.path.isdir(one)]
    return frozenset(_READERS[host](folders, source))


# Codex, as of 2026-09.
_CODEX_BYTES = 32 * 1024


def _find_codex(folders: Sequence[str], source: SourceFiles) -> Iterator[str]:
    """Yield at most one file of each folder of the repository, until the budget of bytes is used up."""
    roots = [number for number, one in enumerate(folders) if os.path.lexists(os.path.join(one, ".git"))]
    left = _CODEX_BYTES
    for one in folders[roots[-1] if roots else -1 :]:
        text = source.read(one, "AGENTS.override.md") or source.read(one, AGENTS)
        if text and text.text.strip():
            left -= len(text.text.encode())
            if left >= 0:
                yield text.real


def _find_in_folder(folders: Sequence[str], source: SourceFiles) -> Iterator[str]:
    """Yield the AGENTS.md of the folder itself: whether those above are read depends on settings."""
    if folders and (text := source.read(folders[-1], AGENTS)):
        yield text.real


def _find_copilot(folders: Sequence[str], source: SourceFiles) -> Iterator[str]:
    """Yield those of the folder and of the root of its repository."""
    yield from _find_in_folder(folders, source)
    for one in folders:
        if os.path.lexists(os.path.join(one, ".git")):
            yield from _find_in_folder([one], source)


# Claude Code, as of 2026-11. Where there is no CLAUDE.md, it reads AGENTS.md from 2.1.277 on, but not with
# each provider of models and each setting of `/config`, which nobody tells: only an import is certain.
_MOST_HOPS = 4
_PROJECT_FILES = ("CLAUDE.md", os.path.join(".claude", "CLAUDE.md"), "CLAUDE.local.md")
_PATHS = regex(r"(?<![^\r\n])paths[ \t]*:")


def _find_claude(folders: Sequence[str], source: SourceFiles) -> set[str]:
    """Find the files of each folder down to its own, and the rules about every file, with their imports."""
    found: set[str] = set()
    for one in folders:
        for name in _PROJECT_FILES:
            _take_claude(source, source.read(one, name), found)
    for one in folders:
        for place in source.list_below(os.path.join(one, ".claude", "rules"), ".md"):
            rule = source.read(place)
            if rule and not _PATHS.search(rule.text[slice(*locate(rule.text)[1])]):
                _take_claude(source, rule, found)
    return found


def _take_claude(source: SourceFiles, text: Text | None, found: set[str], hops: int = 0) -> None:
    """Take a file and what it imports; for what is outside of the workspace Claude Code would ask."""
    if text is None or text.real in found:
        return
    found.add(text.real)
    for target in find_imports(text.text) if hops < _MOST_HOPS else ():
        imported = source.read(os.path.dirname(text.real), os.path.expanduser(target))
        if imported and is_under(imported.real, source.workspace):
            _take_claude(source, imported, found, hops + 1)


_READERS: Mapping[str, Callable[[Sequence[str], SourceFiles], Iterable[str]]] = {
    "claude": _find_claude,
    "codex": _find_codex,
    "copilot-cli": _find_copilot,
    "cursor": _find_in_folder,
    "vscode": _find_in_folder,
}
