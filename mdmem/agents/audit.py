"""The tools compared: what one reads and another does not, what is cut, what is dead, what it all costs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mdmem.agents import generated
from mdmem.agents.files import Places, SourceFiles, malformed, matching, read_header
from mdmem.agents.generated import IMPORTERS
from mdmem.agents.tools import AGENTS, TOOLS, resolve
from mdmem.diagnostic import Diagnostic, about_file
from mdmem.git.program import program, run
from mdmem.text import tokens
from mdmem.text.globs import globs_of
from mdmem.text.lines import Lines
from mdmem.text.regex import regex
from mdmem.vault.walk import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mdmem.agents.files import InstructionFile, Resolved

# Variants of one tool are not compared with it.
_COMPARED = tuple(name for name in TOOLS if not name.startswith("copilot-"))
_NAMES = frozenset(
    [
        *(AGENTS, "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"),
        *(".cursorrules", "copilot-instructions.md"),
    ]
)
_NOT_ENTERED = frozenset([".git", ".hg", ".venv", "node_modules", "__pycache__"])
_PARAGRAPHS = regex(r"(?<![ \t])(?:[ \t]*+(?:\r\n|\n|\r)){2,}")
_SHORTEST_PARAGRAPH = 80  # characters; shorter ones are the same by chance


class _Rules(NamedTuple):
    """Where rules with globs stand: folder, ending of names, field, whether `*.py` is of one folder only."""

    folder: str
    suffix: str
    field: str
    anchored: bool = False


_RULES = (
    _Rules(".claude/rules", ".md", "paths"),
    _Rules(".cursor/rules", ".mdc", "globs"),
    _Rules(".github/instructions", ".instructions.md", "applyTo", anchored=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a tool reads for `file`, of all files that were looked at the one for which it reads most.

    `files` counts instruction files, `tokens` is estimated.
    """

    tool: str
    file: str
    files: int
    bytes: int
    bytes_kept: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The costs of every tool, and what was found, in the order of paths."""

    costs: tuple[Cost, ...]
    findings: tuple[Diagnostic, ...]


class Advice(NamedTuple):
    """What `sync` would do, so that it is never advised to do what it refuses.

    Attributes:
        mended: the files that it would write.
        left: those that it would leave as they are, each with the reason.
        is_mounted: whether the AGENTS.md of the workspace is the project memory.
        command: how to run it.
        is_known: whether it was asked what it would do.
    """

    mended: frozenset[str] = frozenset()
    left: Mapping[str, str] = {}
    is_mounted: bool = True
    command: str = "run `mdmem project sync`"
    is_known: bool = False

    def about(self, path: str, others: Sequence[str]) -> str:
        """What to do about a file that some tools do not read."""
        if path in self.left:
            return self.left[path]
        if path != AGENTS:
            place = AGENTS if self.is_mounted else "the project memory (`mdmem project append`)"
            return f"put what all have to know in {place}, and {self.command}"
        if not self.is_known:
            return self.command
        importers = [IMPORTERS[tool][0] for tool in others if tool in IMPORTERS]
        left = next((f"{name}: {self.left[name]}" for name in importers if name in self.left), "")
        if left or self.mended.intersection(importers):
            return left or self.command
        if self.is_mounted:
            return "their settings name other files: let them name this one"
        return f"make it the project memory (in .mdmem/config.toml, under [mounts]), and {self.command}"


def audit(places: Places, advice: Advice) -> Audit:
    """Compare what every tool reads for the files of a workspace. Nothing is written.

    Each folder with instructions is looked at through one of its files, each rule through the first file that
    it is about.

    Args:
        places: where tools look.
        advice: what `sync` would do.

    Raises:
        GitFailed: git cannot list the files of the workspace.
    """
    source = SourceFiles(places)
    listed = [
        path for path in _files(places.workspace) if not places.hides(os.path.join(places.workspace, path))
    ]
    rules = list(_rules_with_globs(source, listed))
    files = _samples(listed, [file for *_, file in rules if file])
    read = {tool: [resolve(file, tool, places, source) for file in files] for tool in TOOLS}
    all_read = [resolved for several in read.values() for resolved in several]
    findings = [
        *(finding for resolved in all_read for finding in resolved.findings),
        *_dead(source, [(path, glob) for path, glob, file in rules if file is None]),
        *_unequal({tool: read[tool] for tool in _COMPARED}, source, advice),
        *_cut(all_read),
        *_too_long(all_read),
        *_duplicates([resolved for tool in _COMPARED for resolved in read[tool]]),
    ]
    unique = {(f.path, f.code, f.message): f for f in findings}
    ordered = sorted(unique.values(), key=lambda f: (f.path, f.position, f.code, f.message))
    return Audit(costs=tuple(_cost(read[tool]) for tool in TOOLS), findings=tuple(ordered))


def _files(workspace: str) -> list[str]:
    """The files of a workspace that git does not ignore, or without git all, as paths with `/`."""
    if os.path.lexists(os.path.join(workspace, ".git")) and program(os.environ.get("PATH")):
        asked = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        ended = run(asked, workspace, "list the files")
        if not ended.status:
            return sorted(filter(None, os.fsdecode(ended.printed).split("\0")))
    found = []
    for folder, folders, names in tree(workspace):
        folders[:] = [name for name in folders if name not in _NOT_ENTERED]
        inside = os.path.relpath(folder, workspace)
        found += [name if inside == "." else f"{inside}/{name}" for name in names]
    return sorted(path.replace(os.sep, "/") for path in found)


def _rules_with_globs(source: SourceFiles, listed: Sequence[str]) -> Iterator[tuple[str, str, str | None]]:
    """The globs of all rules, each with its rule and the first file that it fits; None where it fits none."""
    workspace = source.places.workspace
    for kind in _RULES:
        mark = f"{kind.folder}/"
        tops = {path[: path.index(mark)] for path in listed if mark in path and path.endswith(kind.suffix)}
        for top in sorted(top for top in tops if not top or top.endswith("/")):
            below = [path.removeprefix(top) for path in listed if path.startswith(top)]
            for text in source.texts(os.path.join(workspace, top, kind.folder), kind.suffix):
                globs = globs_of(read_header(text.text).fields.get(kind.field))
                for glob in (g for g in globs if g not in malformed(globs)):
                    fits = (p for p in below if matching([glob], p, anchored=kind.anchored))
                    first = next(fits, None)
                    yield text.path, glob, None if first is None else top + first


def _samples(listed: Sequence[str], more: Sequence[str]) -> list[str]:
    """A file of the workspace and of each folder with instructions, and `more`."""
    folders = {""}
    for path in listed:
        folder, _, name = path.rpartition("/")
        if name in _NAMES:
            folders.add(folder.removesuffix(".claude").removesuffix(".github").rstrip("/"))
        folders.update(path[: path.index(kind.folder)].rstrip("/") for kind in _RULES if kind.folder in path)
    samples = []
    for folder in sorted(folders):
        inside = (p for p in listed if p.rpartition("/")[0] == folder and p.rpartition("/")[2] not in _NAMES)
        samples.append(next(inside, f"{folder}/*".lstrip("/")))
    return list(dict.fromkeys([*samples, *more]))


def _cost(read: Sequence[Resolved]) -> Cost:
    dearest = max(read, key=lambda resolved: resolved.tokens)
    return Cost(
        tool=dearest.tool,
        file=dearest.file,
        files=len(dearest.files),
        bytes=sum(found.bytes for found in dearest.files),
        bytes_kept=sum(found.bytes_kept for found in dearest.files),
        tokens=dearest.tokens,
    )


def _finding(path: str, code: str, message: str, hint: str) -> Diagnostic:
    return about_file(path, code, message, hint, severity="warning")


def _dead(source: SourceFiles, dead: Sequence[tuple[str, str]]) -> Iterator[Diagnostic]:
    """The globs that fit no file; of a rule that `sync` wrote for several tools, once."""
    told = set()
    for path, glob in dead:
        text = _text(source, path)
        key = glob, path if _own_words(text) else generated.inside(text)
        if key not in told:
            told.add(key)
            hint = "mend the pattern, or take the rule away"
            yield _finding(path, "glob-dead", f"no file of the workspace fits {glob!r}", hint)


def _text(source: SourceFiles, path: str) -> str:
    text = source.read(os.path.join(source.places.workspace, path))
    return text.text if text else ""


def _own_words(text: str) -> str:
    """What a file says beside its header, and what `sync` wrote there for one tool of what all are told."""
    return generated.outside(read_header(text).body).strip()


def _unequal(read: dict[str, list[Resolved]], source: SourceFiles, advice: Advice) -> Iterator[Diagnostic]:
    """Files of the workspace that only some tools read, in that place or as a copy."""
    said: dict[str, set[str]] = {tool: set() for tool in read}
    shared: dict[str, str] = {}
    for tool, several in read.items():
        for found in (found for resolved in several for found in resolved.files if found.bytes_kept):
            words = _own_words(_text(source, found.path))
            said[tool].add(words)
            if words and found.scope != "local" and not found.path.startswith(("~", "/")):
                shared[found.path] = words
    for path, words in shared.items():
        readers = [tool for tool in read if words in said[tool]]
        others = [tool for tool in read if words not in said[tool]]
        if others:
            message = f"read by {', '.join(readers)}; not by {', '.join(others)}"
            yield _finding(path, "seen-by-some", message, advice.about(path, others))


def _cut(read: Sequence[Resolved]) -> Iterator[Diagnostic]:
    kept: dict[tuple[str, str], InstructionFile] = {}
    for found in (found for resolved in read for found in (*resolved.files, *resolved.left_out)):
        key = found.path, found.tool
        if found.limit and (key not in kept or found.bytes_kept < kept[key].bytes_kept):
            kept[key] = found
    for (path, tool), found in kept.items():
        message = f"{tool} keeps {found.bytes_kept:,} of {found.bytes:,} bytes: {found.limit}"
        yield _finding(path, "instructions-cut", message, "shorten it, or the files above it")


def _too_long(read: Sequence[Resolved]) -> Iterator[Diagnostic]:
    for resolved in read:
        most = TOOLS[resolved.tool].most_lines
        for found in resolved.files:
            count = len(Lines(found.text))
            if most and count >= most:
                message = f"{count:,} lines; {resolved.tool} follows less than {most:,} best"
                yield _finding(found.path, "instructions-long", message, "split it into rules for some files")


def _duplicates(read: Sequence[Resolved]) -> Iterator[Diagnostic]:
    """Paragraphs that a tool reads twice, in two files."""
    told: set[tuple[str, str]] = set()
    for resolved in read:
        owner: dict[str, str] = {}
        for found in resolved.files:
            twice: dict[str, list[str]] = {}
            for paragraph in set(map(str.strip, _PARAGRAPHS.split(found.text))):
                if len(paragraph) >= _SHORTEST_PARAGRAPH:
                    other = owner.setdefault(paragraph, found.path)
                    if other != found.path:
                        twice.setdefault(other, []).append(paragraph)
            for other, paragraphs in twice.items():
                if (found.path, other) not in told:
                    told.add((found.path, other))
                    cost = tokens.estimate("\n\n".join(paragraphs))
                    message = (
                        f"{len(paragraphs)} paragraphs of it stand in {other} too; {resolved.tool} reads both"
                    )
                    hint = f"keep them in one of the files: about {cost:,} tokens less"
                    yield _finding(found.path, "instructions-twice", message, hint)
