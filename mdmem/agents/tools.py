"""The coding tools: for each one, which instruction files it reads for a file, in which order, and how much.

Written from the tools' documentation and sources at the date in `as_of`. When a tool changes, its class is
what has to be corrected, and its rows in `tests/data/instructions`.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from mdmem.agents import files
from mdmem.agents.claude import Claude, Importer, read_settings
from mdmem.agents.files import Places, Reading, Resolved, SourceFiles
from mdmem.errors import Usage
from mdmem.text.globs import globs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem.agents.files import Text


AGENTS = "AGENTS.md"


class ToolReader(Protocol):
    """A tool: its name, when its rules were compared with it, and how many lines of a file it advises."""

    name: str
    as_of: str
    most_lines: int | None = None

    def read(self, reading: Reading) -> None:
        """Take what the tool reads."""


def _where(reading: Reading, folder: str) -> str:
    shown = reading.places.shown(folder)
    return "in the workspace" if shown == "." else f"in {shown}"


def _take(reading: Reading, scope: str, reason: str, *place: str) -> None:
    """Take the file at a place, where there is one."""
    text = reading.read(*place)
    if text:
        reading.take(text, scope, reason)


def _take_first(reading: Reading, texts: Sequence[Text | None], scope: str, reason: str) -> None:
    """Take the first file that is there, and leave the others."""
    found = [text for text in texts if text]
    for text in found[:1]:
        reading.take(text, scope, reason)
    for text in found[1:]:
        reading.leave(text, scope, f"{found[0].path} is read instead")


def _take_nearest(reading: Reading) -> bool:
    """Take the `AGENTS.md` that is nearest to the file, and leave those above it; whether there is one."""
    nearest = None
    for folder in reversed(reading.chain(reading.places.workspace)):
        text = reading.read(folder, AGENTS)
        if text and nearest is None:
            nearest = text
            reading.take(text, "project", "the nearest")
        elif text and nearest:
            reading.leave(text, "project", f"{nearest.path} is nearer")
    return nearest is not None


class Agents(ToolReader):
    """Any tool that does no more than the description of AGENTS.md asks for (agents.md)."""

    name = "agents"
    as_of = "2026-09"

    def read(self, reading: Reading) -> None:
        """Take the nearest file."""
        _take_nearest(reading)


class Codex(ToolReader):
    """OpenAI's Codex, which reads once for each session, from the root of the repository down."""

    name = "codex"
    as_of = "2026-09"

    _OVERRIDE = "AGENTS.override.md"
    _MOST_BYTES = 32 * 1024

    def read(self, reading: Reading) -> None:
        """Take the user's file, then at most one of each folder, until the budget of bytes is used up."""
        home = os.path.join(reading.places.home, ".codex")
        settings = read_settings(reading, _toml, os.path.join(home, "config.toml"))
        texts = [reading.read(home, name) for name in (self._OVERRIDE, AGENTS)]
        written = [text for text in texts if text and text.text.strip()]
        _take_first(reading, written, "user", "the user's, for every project; not counted")
        most = settings.get("project_doc_max_bytes")
        limit = most if isinstance(most, int) and most >= 0 else self._MOST_BYTES
        fallbacks = settings.get("project_doc_fallback_filenames")
        more = [n for n in fallbacks if isinstance(n, str)] if isinstance(fallbacks, list) else []
        names = (self._OVERRIDE, AGENTS, *more)
        left = limit
        for folder in reading.chain(reading.repository() or reading.folder):
            text = self._one(reading, folder, names)
            if text:
                reading.take(text, "project", _where(reading, folder), cut=(left, f"{limit:,} bytes in all"))
                left -= reading.files[-1].bytes_kept

    def _one(self, reading: Reading, folder: str, names: tuple[str, ...]) -> Text | None:
        """The file of a folder that counts."""
        texts = [reading.read(folder, name) for name in names]
        found = list(dict.fromkeys(text for text in texts if text))
        for text in found[1:]:
            reading.leave(text, "project", f"{found[0].path} is read instead")
        if found and not found[0].text.strip():
            reading.leave(found[0], "project", "it is empty")
            return None
        return found[0] if found else None


class Cursor(ToolReader):
    """Cursor. Team and user rules are in its settings, not in files."""

    name = "cursor"
    as_of = "2026-09"
    most_lines = 500

    def read(self, reading: Reading) -> None:
        """Take the rules that apply, then the `AGENTS.md` files, then the legacy file."""
        folders = reading.chain(reading.places.workspace)
        for folder in folders:
            rules = os.path.join(folder, ".cursor", "rules")
            for text in reading.source.texts(rules, ".mdc"):
                self._rule(reading, text, folder)
            for text in reading.source.texts(rules, ".md"):
                reading.leave(text, "rule", "a rule is named .mdc; this file is ignored")
        for folder in folders:
            _take(reading, "project", _where(reading, folder), folder, AGENTS)
        _take(reading, "project", "the legacy file of rules", reading.places.workspace, ".cursorrules")

    def _rule(self, reading: Reading, text: Text, folder: str) -> None:
        fields, body = files.read_header(text.text)
        written = globs_of(fields.get("globs"))
        reading.report_malformed(text, written)
        glob = files.matching(written, reading.seen_from(folder))
        if fields.get("alwaysApply") is True:
            reading.take(text, "rule", "always applied", kept=body)
        elif glob:
            reading.take(text, "rule", f"a rule for {glob}", kept=body)
        elif written:
            reading.leave(text, "rule", f"a rule for {', '.join(written)}")
        elif fields.get("description"):
            reading.leave(text, "rule", "the agent decides by its description")
        else:
            reading.leave(text, "rule", "only when it is named in the chat")


class Copilot(ToolReader):
    """GitHub Copilot; `agent` is one of its agents that some instructions exclude."""

    as_of = "2026-09"

    _REVIEW = "code-review"
    _REVIEW_CHARACTERS = 4_000

    def __init__(self, agent: str = "") -> None:
        self.name = f"copilot-{agent}" if agent else "copilot"
        self._agent = agent

    def read(self, reading: Reading) -> None:
        """Take the personal file, those for the path, the repository's, and the agents' files."""
        github = os.path.join(reading.places.workspace, ".github")
        personal = os.path.join(reading.places.home, ".copilot")
        _take(reading, "user", "the user's, for every project", personal, "copilot-instructions.md")
        for text in reading.source.texts(os.path.join(github, "instructions"), ".instructions.md"):
            self._for_path(reading, text)
        _take(reading, "project", "for the whole repository", github, "copilot-instructions.md")
        if not _take_nearest(reading):
            texts = [reading.read(reading.places.workspace, name) for name in ("CLAUDE.md", "GEMINI.md")]
            _take_first(reading, texts, "project", "there is no AGENTS.md")
        if self._agent == self._REVIEW:
            self._cut(reading)

    def _for_path(self, reading: Reading, text: Text) -> None:
        fields, body = files.read_header(text.text)
        written = globs_of(fields.get("applyTo"))
        excluded = globs_of(fields.get("excludeAgent"))
        reading.report_malformed(text, written)
        glob = files.matching(written, reading.seen_from(reading.places.workspace), anchored=True)
        if self._agent in excluded:
            reading.leave(text, "rule", f"it excludes the agent {self._agent}")
        elif glob:
            reading.take(text, "rule", f"a rule for {glob}", kept=body)
        else:
            reason = f"a rule for {', '.join(written)}" if written else "without applyTo it is for no file"
            reading.leave(text, "rule", reason)

    def _cut(self, reading: Reading) -> None:
        """Cut every file to what a code review reads of it."""
        for number, found in enumerate(reading.files):
            if len(found.text) > self._REVIEW_CHARACTERS:
                text = found.text[: self._REVIEW_CHARACTERS]
                limit = f"{self._REVIEW_CHARACTERS:,} characters a file"
                kept = len(text.encode())
                reading.files[number] = replace(found, text=text, bytes_kept=kept, limit=limit)


class Gemini(ToolReader):
    """Gemini CLI."""

    name = "gemini"
    as_of = "2026-09"

    _HOPS = 5

    def read(self, reading: Reading) -> None:
        """Take the user's file, then those of each folder from the top down, each with what it imports."""
        importer = Importer(
            reading,
            most_hops=self._HOPS,
            home=False,
            refusal="outside the workspace: Gemini CLI does not read it",
        )
        home = os.path.join(reading.places.home, ".gemini")
        names = self._names(reading, home)
        for folder in (home, *reading.chain(reading.places.top)):
            is_user = folder == home
            scope = "user" if is_user else "project"
            reason = "the user's, for every project" if is_user else _where(reading, folder)
            for name in names:
                text = reading.read(folder, name)
                if text and text.real in reading.loaded:
                    reading.leave(text, scope, f"{reason}; it was read before")
                elif text:
                    importer.take(text, scope, reason, text.text)

    def _names(self, reading: Reading, home: str) -> tuple[str, ...]:
        """What its files are called: the workspace's settings count before the user's."""
        workspace = os.path.join(reading.places.workspace, ".gemini", "settings.json")
        for place in (workspace, os.path.join(home, "settings.json")):
            context = read_settings(reading, json.loads, place).get("context")
            written = context.get("fileName") if isinstance(context, dict) else None
            names = [written] if isinstance(written, str) else written if isinstance(written, list) else []
            sound = tuple(n for n in names if isinstance(n, str) and n and "/" not in n and "\0" not in n)
            if sound:
                return sound
        return ("GEMINI.md",)


def _toml(text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most tools have no settings in TOML

    return tomllib.loads(text)


TOOLS: dict[str, ToolReader] = {
    tool.name: tool
    for tool in (
        Codex(),
        Claude(),
        Cursor(),
        Copilot(),
        Gemini(),
        Agents(),
        Copilot("code-review"),
        Copilot("cloud-agent"),
    )
}


def resolve(for_file: str, tool: str, places: Places, source: SourceFiles | None = None) -> Resolved:
    """What `tool` would read for a file, as if it was started in that file's folder. Nothing is written.

    Args:
        for_file: relative to the workspace, or absolute; it need not exist.
        tool: one of `TOOLS`.
        places: where tools look.
        source: files that were read before.

    Raises:
        Usage: there is no such tool, or the file is outside of the workspace.
    """
    if tool not in TOOLS:
        raise Usage(problem=f"there is no tool {tool!r}", remedy=f"it is one of {', '.join(TOOLS)}")
    if "\0" in for_file or not _is_encodable(for_file):
        raise Usage(problem=f"{for_file!r} cannot be the path of a file")
    place = os.path.normpath(os.path.join(places.workspace, for_file))
    file = os.path.relpath(place, places.workspace).replace(os.sep, "/")
    if file == "." or file.startswith("../") or file == "..":
        raise Usage(
            problem=f"{for_file}: not a file of the workspace", remedy=f"name one below {places.workspace}"
        )
    reading = Reading(tool, place, source or SourceFiles(places))
    TOOLS[tool].read(reading)
    return Resolved(
        file=places.shown(place),
        tool=tool,
        as_of=TOOLS[tool].as_of,
        files=tuple(reading.files),
        left_out=tuple(reading.left_out),
        findings=reading.findings,
    )


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True
