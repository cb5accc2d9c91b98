"""Imports: `@path` in an instruction file stands for another file, which may import more."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from mdmem.instructions.source import Text, is_inside
from mdmem.text.frontmatter import locate
from mdmem.text.lines import Lines
from mdmem.text.link_parser import LinkParser
from mdmem.text.outline import without_marks
from mdmem.text.regex import regex
from mdmem.text.scan import scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.diagnostic import Span
    from mdmem.instructions.reading import Reading

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
    if outline.texts:
        parser = LinkParser(without_marks(text, outline.marks), outline.texts, Lines(text))
        parser.run()
        yield from (span for span in parser.taken if text[span.start] == "`")


class Importer:
    """Takes files together with what they import, each right behind what imports it, and none twice.

    Args:
        reading: where they go.
        most_hops: how many imports may lead from a file of the tool to one that it takes.
        home: whether `~` is the home directory.
        refusal: why a file outside of the workspace is not taken when one inside imports it.
        most_bytes: the largest file that is taken, and that limit in words.
    """

    def __init__(
        self,
        reading: Reading,
        *,
        most_hops: int,
        home: bool,
        refusal: str,
        most_bytes: tuple[int, str] | None = None,
    ) -> None:
        self._reading = reading
        self._most_hops = most_hops
        self._home = home
        self._refusal = refusal
        self._most_bytes = most_bytes

    def take(self, text: Text, scope: str, reason: str, kept: str) -> None:
        """Take a file, of which `kept` remains, and what it imports."""
        self._reading.take(text, scope, reason, kept=kept)
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
        reading, place = self._reading, self._place(text, one.target)
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
        elif len(above) > self._most_hops:
            message = f"@{one.target} is more than {self._most_hops} imports away; it is not read"
            reading.report(text, "import-too-deep", message, "import it from a file further up", one.at)
            reading.leave(imported, scope, f"{reason}; more than {self._most_hops} imports away")
        elif self._leaves(text, imported):
            reading.leave(imported, scope, f"{reason}; {self._refusal}")
        elif self._most_bytes and imported.size > self._most_bytes[0]:
            reading.leave(imported, scope, f"{reason}; it is skipped", self._most_bytes[1])
        else:
            reading.take(imported, scope, reason)
            self._follow(imported, scope, imported.text, (*above, imported.real))

    def _place(self, text: Text, target: str) -> str | None:
        """The absolute path that is imported: seen from the folder of the file that imports it."""
        if "\0" in target:
            return None
        if self._home and target.startswith("~/"):
            return os.path.normpath(os.path.join(self._reading.places.home, target[2:]))
        return os.path.normpath(os.path.join(os.path.dirname(text.real), target))

    def _leaves(self, text: Text, imported: Text) -> bool:
        workspace = self._reading.places.workspace
        return is_inside(text.real, workspace) and not is_inside(imported.real, workspace)
