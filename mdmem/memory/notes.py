"""Notes: Markdown below the folder of a kind, which grows by sections, each with a title."""

from __future__ import annotations

import builtins
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from mdmem.document import frontmatter, section
from mdmem.document.arguments import require_text
from mdmem.document.document import ANY_SUFFIXES, MARKDOWN_SUFFIXES, Document, parse, without_suffix
from mdmem.document.edit import TextEdit, splice
from mdmem.document.markdown.blocks import Heading
from mdmem.document.moment import stamp_of
from mdmem.errors import DocumentRefused, EditRefused, MemoryNotFound, Usage
from mdmem.kind import NOTE, Kind
from mdmem.memory import history
from mdmem.memory.content import new_body, unpadded
from mdmem.memory.verbs import Build, KindVerbs, R
from mdmem.vault.paths import StrPath, check_folder, check_memory, is_under, join, path_text
from mdmem.vault.plan import EditPlan, edit
from mdmem.vault.template.filters import escaped, line
from mdmem.vault.vault import Vault
from mdmem.vault.walk import Found

_SUFFIX = ".md"
_DAILY = "daily"  # the folder of the logs of days, and their template
_MARKS = "##"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteInfo:
    """A note in a listing.

    Attributes:
        path: where it is, `notes/…`; the verbs take it as a name.
        title: its field `title`, else its first heading, else its file's name.
        size: bytes.
        mtime_ns: time of change in nanoseconds since the epoch.
    """

    JSON: ClassVar = ("path", "title", "size", "modified")

    path: str
    title: str
    size: int
    mtime_ns: int

    @property
    def modified(self) -> str:
        """The time of change, see `stamp_of`."""
        return stamp_of(self.mtime_ns)


def local_now() -> datetime:
    """Return the local time."""
    return datetime.now().astimezone()


class Notes(KindVerbs[R]):
    """The notes of a namespace, or the memories of another kind that grows as they do.

    A note is named by its path below `notes/`, with or without `.md`; the whole path, as a listing has it,
    means the same note. `base` is the hash that the caller saw, as for `Verbs`.

    The verbs that change something raise `PathRefused`, `Conflict` (with `base`), `Invalid`, and what
    `Vault.apply` raises. `clock` says which time names a section with a blank title.
    """

    def __init__(
        self,
        vault: Vault,
        run: Callable[[Build], R],
        clock: Callable[[], datetime] = local_now,
        kind: Kind = NOTE,
    ) -> None:
        super().__init__(vault, run, clock)
        self._kind = kind

    def append(self, name: StrPath, content: str, title: str | None = None) -> R:
        """Add a text, with a title as a section, at the end of a note; a missing note is made.

        One blank line sets it off from what is there. Where a level-2 heading says the title already, the
        text is added to its section, to the last one of several, before the first subsection.

        Args:
            content: Markdown, kept as it is, without the blank lines around it. Its own headings stay.
            title: what the level-2 heading says, in one line; without it there is no heading. A blank one is
                the local time, `2024-01-31 12:30:00`. A `#` or a block id at its end is escaped, so that it
                reads as given.

        Raises:
            Usage: no name, or no content.
            EditRefused: the note, or the content, ends in a fence or HTML block that is never closed: it
                would swallow what follows.
        """
        path = self._note_path(name)
        return self._add_section(path, *self._read_section(path, content, title))

    def _add_section(self, path: str, title: str, text: str, first: str = "") -> R:
        """Add a text to a section, or at the end of a note; a missing note begins with the text `first`."""

        def build() -> EditPlan:
            # No base is compared here: whoever appends does not mind what was added in between.
            before = self._vault.find(path)
            grown = before or parse(path, history.encoded(path, first), self._vault.config.limits)
            same = [s for s in grown.sections if _is_titled(s.heading, title)] if title else []
            if same:
                edits = section.append_within(grown, same[-1], text)
            else:
                edits = section.append_block(grown, _write_section(title, text))
            _refuse_swallowed(grown, edits)
            if before:
                return edit(before, edits, f"append to {path}")
            return history.creation(path, splice(first, edits), f"append to {path}")

        return self._run(build)

    @property
    def today_path(self) -> str:
        """The path of the log of today, by the local date: `notes/daily/2024-01-31.md`."""
        return self._note_path(f"{_DAILY}/{self._clock():%Y-%m-%d}")

    def today(self, content: str) -> R:
        """Add a section at the end of the log of today, under the local time; see `today_path`.

        A missing log is made from the template `daily`, which is given the `date`.

        Args and errors are those of `append`; and
            TemplateFailed: the vault's own template cannot be rendered, or misses a variable.
        """
        now = self._clock().astimezone()
        day = f"{now:%Y-%m-%d}"
        path = self._note_path(f"{_DAILY}/{day}")
        title, text = self._read_section(path, content, f"{now:%H:%M}")
        # Rendered before anything is built: a plan may be built again under the lock, a template never is.
        templates = self._vault.templates
        first = "" if self._vault.exists(path) else templates.render(_DAILY, {"date": day}, now=now)
        return self._add_section(path, title, text, first)

    def overwrite(
        self, name: StrPath, content: str, title: str | None = None, *, base: str | None = None
    ) -> R:
        """Make a note just one section; its frontmatter stays. Args and errors are those of `append`."""
        path = self._note_path(name)
        new = _write_section(*self._read_section(path, content, title))

        def build() -> EditPlan:
            before = history.find(self._vault, path, base)
            if before is None:
                return history.creation(path, new, f"overwrite {path}")
            return edit(before, [new_body(before, new)], f"overwrite {path}", merge=False)

        return self._run(build)

    def read(self, name: StrPath) -> Document:
        """Return the note of this name; see `Vault.read`.

        Raises:
            MemoryNotFound: there is none; the error names the nearest.
        """
        return self._vault.read(self._note_path(name))

    def list(self, within: StrPath = "") -> builtins.list[NoteInfo]:
        """Return the notes, at any depth, or those below a folder, in the order of their paths.

        A note that cannot be read is listed by its file's name.

        Raises:
            MemoryNotFound: nothing is below `within`.
        """
        folder, own = check_folder(within), self._kind.folder
        folder = folder if is_under(folder, own) else join(own, folder)
        found = [f for f in self._vault.walk(folder) if f.path.endswith(MARKDOWN_SUFFIXES) and not f.problem]
        if within and not found:
            raise MemoryNotFound(path=folder, kind="folder")
        return [info for info in map(self._describe_note, found) if info]

    def _describe_note(self, found: Found) -> NoteInfo | None:
        try:
            title = _title_of(self._vault.read(found.path))
        except DocumentRefused:
            title = ""
        except MemoryNotFound:
            return None
        title = title or without_suffix(found.path.rpartition("/")[2])
        return NoteInfo(path=found.path, title=title, size=found.size, mtime_ns=found.mtime_ns)

    def _note_path(self, name: StrPath) -> str:
        kind, name = self._kind, path_text(name)
        if not name.strip():
            raise Usage(problem=f"a {kind.name} needs a name", remedy="name it, as in `db` or `db/postgres`")
        if name.endswith(".json"):
            raise Usage(problem=f"a {kind.name} is Markdown, and {name!r} is not", remedy="leave .json out")
        path = name if name.endswith(ANY_SUFFIXES) else name + _SUFFIX
        return check_memory(path if is_under(path, kind.folder) else join(kind.folder, path))

    def _read_section(self, path: str, content: str, title: str | None) -> tuple[str, str]:
        """Return what the heading says, if there is one, and the text, ready before any lock is taken."""
        text = unpadded(content)
        if not text.strip():
            raise Usage(problem=f"a {self._kind.name} needs content", remedy="give the text of the section")
        _refuse_open(path, content, 0, "the content")
        if title is None:
            return "", text
        return heading_text(title) or f"{self._clock():%Y-%m-%d %H:%M:%S}", text


def _is_titled(heading: Heading, title: str) -> bool:
    return (heading.level, heading.title) == (len(_MARKS), title)


def _write_section(title: str, text: str) -> str:
    return f"{_MARKS} {title}\n\n{text}\n" if title else f"{text}\n"


def heading_text(title: str) -> str:
    r"""Return a title as it stands behind the marks of a heading: one line that renders as the title reads.

    Runs of whitespace and control characters become one space.
    """
    require_text(title=title)
    return escaped(line("".join(" " if unicodedata.category(c) == "Cc" else c for c in title)))


def _title_of(document: Document) -> str:
    written = document.fields.get("title")
    named = written.strip() if isinstance(written, str) else ""
    return named or next((h.title for h in document.headings if h.title), "")


def _refuse_swallowed(before: Document, edits: list[TextEdit]) -> None:
    """Refuse an append if what stands before its heading would swallow it."""
    after = splice(before.text, edits, before.path)
    if before.text and frontmatter.locate(after)[0] != before.frontmatter.span:
        raise EditRefused(
            path=before.path,
            reason="line 1: the `---` is never closed, so the new section would become frontmatter",
            remedy="close the frontmatter with a line of `---`, or take the first line away",
        )
    _refuse_open(before.path, before.text, before.body_span.start, "the note")


def _refuse_open(path: str, text: str, start: int, what: str) -> None:
    """Refuse a text that ends inside a fence or an HTML block: the next heading would be part of it."""
    if opened := section.find_open(text, start):
        reason = f"{opened} of {what} is never closed: it would swallow the sections behind it"
        raise EditRefused(path=path, reason=reason, remedy="close it first")
