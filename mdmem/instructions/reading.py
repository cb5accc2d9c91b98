"""A reading: what one tool takes in for one file, while it is being put together."""

from __future__ import annotations

import os
from itertools import takewhile
from typing import TYPE_CHECKING

from mdmem.diagnostic import Diagnostic, Span, about_file
from mdmem.instructions import header
from mdmem.instructions.found import Found
from mdmem.instructions.source import Places, Source, Text, is_inside
from mdmem.text.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Reading:
    """What `tool` reads for the file at the absolute path `file`, as if it was started in that file's folder.

    Attributes:
        files, left_out: as in `Resolved`.
        loaded: the real paths of what was read, for tools that read nothing twice.
    """

    def __init__(self, tool: str, file: str, source: Source) -> None:
        self.tool = tool
        self.file = file
        self.folder = os.path.dirname(file)
        self.source = source
        self.files: list[Found] = []
        self.left_out: list[Found] = []
        self.loaded: set[str] = set()
        self._findings: dict[tuple[str, str], Diagnostic] = {}

    @property
    def places(self) -> Places:
        """Where tools look."""
        return self.source.places

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
            scope, reason: as in `Found`.
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

    def _found(self, text: Text, scope: str, reason: str, kept: int, taken: str, limit: str) -> Found:
        link = "" if text.place == text.real else f"; a link to {self.places.shown(text.real)}"
        linked = link if os.path.islink(text.place) else ""
        return Found(
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
            position = Lines(text.text).position(at)
            finding = Diagnostic(
                path=text.path,
                span=Span(at, at),
                position=position,
                code=code,
                message=message,
                hint=hint,
                severity="warning",
            )
        self._findings.setdefault((text.path, f"{code} {message}"), finding)

    def report_malformed(self, text: Text, globs: Sequence[str]) -> None:
        """Add a finding for each glob of a rule that can match nothing."""
        for glob in header.malformed(globs):
            message = f"the pattern {glob!r} matches nothing: it is malformed, or stands for too many"
            self.report(text, "glob-malformed", message, "mend the pattern")


def _upward(folder: str, top: str) -> Iterator[str]:
    while is_inside(folder, top):
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
