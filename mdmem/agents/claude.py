"""Claude Code: `CLAUDE.md` files with imports, rules with `paths`, and its own memory.

An import, `@path`, stands for another file, which may import more.
"""

from __future__ import annotations

import json
import os
import re
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.agents import files
from mdmem.agents.files import Text, is_inside
from mdmem.diagnostic import Span
from mdmem.text.blocks import CODE, scan
from mdmem.text.frontmatter import locate
from mdmem.text.globs import globs_of
from mdmem.text.lines import Lines
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mdmem.agents.files import Reading, Text


_IMPORT = regex(r"(?<!\S)@((?:[^\s\\]|\\ )+)")
_LOOKS_LIKE_A_FILE = regex(r"[./~]")


class Import(NamedTuple):
    """An import as it is written: what stands behind the `@`, and where that sign is in the text."""

    target: str
    at: int


def imports(text: str) -> list[Import]:
    """The imports of a Markdown text, without those in code spans and fences."""
    if "@" not in text:
        return []
    code = sorted(_code(text))
    found = (Import(m[1].replace("\\ ", " "), m.start()) for m in _IMPORT.finditer(text))
    return [one for one in found if not is_within(code, one.at)]


def is_within(spans: Sequence[Span], at: int) -> bool:
    """Whether a place is in one of some spans, which are in order and apart."""
    number = bisect_right(spans, (at, sys.maxsize)) - 1
    return number >= 0 and at < spans[number].end


def _code(text: str) -> Iterator[Span]:
    outline = scan(text, locate(text)[0].end)
    yield from outline.fences
    yield from (Span(mark.start, mark.end) for mark in outline.marks if mark.kind == CODE)


class Importer(NamedTuple):
    """Takes files together with what they import, each right behind what imports it, and none twice.

    Attributes:
        reading: where they go.
        most_hops: how many imports may lead from a file of the tool to one that it takes.
        home: whether `~` is the home directory.
        refusal: why a file outside of the workspace is not taken when one inside imports it.
        most_bytes: the largest file that is taken, and that limit in words.
    """

    reading: Reading
    most_hops: int
    home: bool
    refusal: str
    most_bytes: tuple[int, str] | None = None

    def take(self, text: Text, scope: str, reason: str, kept: str) -> None:
        """Take a file, of which `kept` remains, and what it imports."""
        self.reading.take(text, scope, reason, kept=kept)
        self._follow(text, scope, kept, (text.real,))

    def _follow(self, text: Text, scope: str, kept: str, above: tuple[str, ...]) -> None:
        targets = dict.fromkeys(one.target for one in imports(kept))
        # What is kept may have lost comments: the place in the file is that of the import as it is written.
        places = {one.target: one.at for one in reversed(imports(text.text))} if targets else {}
        lines = Lines(text.text)
        for target in targets:
            one = Import(target, places.get(target, 0))
            self._import(text, scope, one, f"imported by {text.path}:{lines.number(one.at)}", above)

    def _import(self, text: Text, scope: str, one: Import, reason: str, above: tuple[str, ...]) -> None:
        reading, place = self.reading, self._place(text, one.target)
        imported = reading.source.read(place) if place else None
        if imported is None:
            if place and reading.places.shown(place) in reading.source.findings:
                return
            if _LOOKS_LIKE_A_FILE.search(one.target):
                message = f"@{one.target} imports no file"
                reading.report(text, "import-fails", message, "mend the path, or put it in backticks", one.at)
        elif imported.real in above:
            message = f"@{one.target} imports a file that leads here; it is read once"
            reading.report(text, "import-cycle", message, "leave one of the imports away", one.at)
        elif imported.real in reading.loaded:
            reading.leave(imported, scope, f"{reason}; it was read before")
        elif len(above) > self.most_hops:
            message = f"@{one.target} is more than {self.most_hops} imports away; it is not read"
            reading.report(text, "import-too-deep", message, "import it from a file further up", one.at)
            reading.leave(imported, scope, f"{reason}; more than {self.most_hops} imports away")
        elif self._leaves(text, imported):
            reading.leave(imported, scope, f"{reason}; {self.refusal}")
        elif self.most_bytes and imported.size > self.most_bytes[0]:
            reading.leave(imported, scope, f"{reason}; it is skipped", self.most_bytes[1])
        else:
            reading.take(imported, scope, reason)
            self._follow(imported, scope, imported.text, (*above, imported.real))

    def _place(self, text: Text, target: str) -> str | None:
        """The absolute path that is imported: seen from the folder of the file that imports it."""
        if "\0" in target:
            return None
        if self.home and target.startswith("~/"):
            return os.path.normpath(os.path.join(self.reading.places.home, target[2:]))
        return os.path.normpath(os.path.join(os.path.dirname(text.real), target))

    def _leaves(self, text: Text, imported: Text) -> bool:
        workspace = self.reading.places.workspace
        return is_inside(text.real, workspace) and not is_inside(imported.real, workspace)


_MOST_BYTES = 4 * 1024 * 1024
_MEMORY_LINES = 200
_MEMORY_BYTES = 25_000
_HOPS = 4
_COMMENT = regex(r"(?<![^\r\n]) {0,3}<!--")
_REST_IS_BLANK = regex(r"[ \t]*(?:\r\n|\n|\r|\Z)")


class Claude:
    """As of Claude Code 2.1.277, which is the first to read `AGENTS.md`."""

    name = "claude"
    as_of = "2026-09"
    most_lines: int | None = 200

    def read(self, reading: Reading) -> None:
        """Take what Claude Code reads: managed, user, each folder down to the file, rules, its memory."""
        _Session(reading).run()


class _Session:
    """One reading of Claude Code."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._importer = Importer(
            reading,
            most_hops=_HOPS,
            home=True,
            refusal="outside the workspace: Claude Code asks once before it reads it",
            most_bytes=(_MOST_BYTES, "4 MiB"),
        )
        self._excludes = list(_excludes(reading))

    def run(self) -> None:
        reading, places = self._reading, self._reading.places
        home = os.path.join(places.home, ".claude")
        self._file(os.path.join(places.managed, "CLAUDE.md"), "managed", "managed by the administrator")
        self._file(os.path.join(home, "CLAUDE.md"), "user", "the user's, for every project")
        folders = reading.chain(places.top)
        native = not any(self._project_files(folder) for folder in folders)
        for folder in folders:
            for text in self._project_files(folder):
                self._take(text, "project", self._where(folder))
            if native:
                reason = f"{self._where(folder)}; no CLAUDE.md is on the path"
                self._file(os.path.join(folder, "AGENTS.md"), "project", reason)
            self._file(os.path.join(folder, "CLAUDE.local.md"), "local", self._where(folder))
        if not native:
            self._leave_agents(folders)
        self._rules(os.path.join(home, "rules"), places.workspace, "user")
        for folder in folders:
            if folder != places.home:
                self._rules(os.path.join(folder, ".claude", "rules"), folder, "project")
        self._memory()

    def _project_files(self, folder: str) -> list[Text]:
        names = ("CLAUDE.md", os.path.join(".claude", "CLAUDE.md"))
        # In the home directory the second one is the user's own file.
        texts = [self._reading.read(folder, name) for name in names]
        return [text for text in texts if text and text.place != self._user_file]

    @property
    def _user_file(self) -> str:
        return os.path.join(self._reading.places.home, ".claude", "CLAUDE.md")

    def _where(self, folder: str) -> str:
        return f"in {_shown(self._reading, folder)}, on the way to the file"

    def _file(self, place: str, scope: str, reason: str) -> None:
        text = self._reading.source.read(place)
        if text:
            self._take(text, scope, reason)

    def _take(self, text: Text, scope: str, reason: str) -> None:
        reading = self._reading
        if text.size > _MOST_BYTES:
            reading.leave(text, scope, f"{reason}; over 4 MiB, so it is skipped", "4 MiB")
        elif text.real in reading.loaded:
            reading.leave(text, scope, f"{reason}; it was read before")
        elif scope != "managed" and files.matching(self._excludes, text.place.lstrip("/")):
            reading.leave(text, scope, f"{reason}; claudeMdExcludes leaves it out")
        else:
            self._importer.take(text, scope, reason, without_comments(text.text))

    def _leave_agents(self, folders: list[str]) -> None:
        for folder in folders:
            text = self._reading.read(folder, "AGENTS.md")
            if text and text.real not in self._reading.loaded:
                self._reading.leave(text, "project", "there is a CLAUDE.md on the path, and none imports it")

    def _rules(self, folder: str, seen_from: str, scope: str) -> None:
        for text in self._reading.source.texts(folder, ".md"):
            self._rule(text, seen_from, scope)

    def _rule(self, text: Text, seen_from: str, scope: str) -> None:
        reading = self._reading
        fields, body = files.read_header(text.text)
        written = globs_of(fields.get("paths"))
        if not written:
            self._take_rule(text, body, scope, "a rule without paths")
            return
        sound = () if files.patterns(written) is None else written
        reading.report_malformed(text, written)
        glob = files.matching(sound, reading.seen_from(seen_from))
        if glob:
            self._take_rule(text, body, scope, f"a rule for {glob}")
        else:
            reading.leave(text, "rule", f"a rule for {', '.join(written)}")

    def _take_rule(self, text: Text, body: str, scope: str, reason: str) -> None:
        if text.size > _MOST_BYTES or text.real in self._reading.loaded:
            self._take(text, "rule", reason)
        else:
            shown = reason if scope == "project" else f"{reason}, of the user"
            self._importer.take(text, "rule", shown, without_comments(body))

    def _memory(self) -> None:
        """Its own memory of the repository: the first lines of the index; topic files are read on demand."""
        reading = self._reading
        root = reading.repository() or reading.places.workspace
        folder = re.sub(r"[^A-Za-z0-9]", "-", root)
        text = reading.read(reading.places.home, ".claude", "projects", folder, "memory", "MEMORY.md")
        if text:
            lines = Lines(text.text)
            end = lines.span(_MEMORY_LINES).end if len(lines) > _MEMORY_LINES else len(text.text)
            size = len(text.text[:end].encode())
            limit = (size, "200 lines") if size < _MEMORY_BYTES else (_MEMORY_BYTES, "25 KB")
            reading.take(text, "memory", "its own memory of this repository", cut=limit)


def _excludes(reading: Reading) -> Iterator[str]:
    """The globs of `claudeMdExcludes`, which are absolute, as paths from the root."""
    places = reading.places
    for place in (
        os.path.join(places.managed, "managed-settings.json"),
        os.path.join(places.home, ".claude", "settings.json"),
        os.path.join(places.workspace, ".claude", "settings.json"),
        os.path.join(places.workspace, ".claude", "settings.local.json"),
    ):
        settings = read_settings(reading, json.loads, place)
        for glob in globs_of(settings.get("claudeMdExcludes")):
            yield glob if glob.startswith(("/", "**")) else f"/{glob}"


def read_settings(reading: Reading, loads: Callable[[str], Any], place: str) -> dict[str, Any]:
    """The settings in a file that `loads` reads; empty where there is none, or none that can be read."""
    text = reading.source.read(place)
    try:
        value = loads(text.text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def without_comments(text: str) -> str:
    """A Markdown text without the HTML comments that stand on lines of their own, outside of code."""
    if "<!--" not in text:
        return text
    fences = scan(text, locate(text)[0].end).fences
    parts, kept, at = [], 0, 0
    while (begin := _COMMENT.search(text, at)) and (end := text.find("-->", begin.end())) >= 0:
        at = end + len("-->")
        blank = _REST_IS_BLANK.match(text, at)
        if is_within(fences, begin.start()):
            at = begin.end()
        elif blank:
            parts.append(text[kept : begin.start()])
            at = kept = blank.end()
    return "".join([*parts, text[kept:]])


def _shown(reading: Reading, folder: str) -> str:
    shown = reading.places.shown(folder)
    return "the workspace" if shown == "." else shown
