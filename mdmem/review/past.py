"""A fact or a section of a memory, as a person names it, and the commits that changed it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document.document import ANY_SUFFIXES
from mdmem.document.section import SEPARATOR, find_section
from mdmem.errors import DocumentRefused, MdmemError, RevertRefused, SectionNotFound, Usage
from mdmem.merging.comparison import pair_facts
from mdmem.merging.facts import Fact, facts
from mdmem.text.regex import regex
from mdmem.vault.paths import check_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mdmem.document.document import Document
    from mdmem.git.history import LoggedCommit, TouchedFile
    from mdmem.merging.comparison import FactChange
    from mdmem.review.tracked import Tracked

_FACT = regex(r'(?s)(?P<path>.+?\.(?:mdx?|markdown|json))(?:#(?P<anchor>.+)|:"(?P<quoted>.+)"|:(?P<text>.+))')
_BLANKS = regex(r"[ \t\r\n]+")


class FactTarget(NamedTuple):
    """One fact, or a section: the memory, and its `anchor` (`^id` or a heading) or some of its `text`."""

    path: str
    anchor: str
    text: str

    def find(self, document: Document | None) -> list[Fact]:
        """Find the facts of a version that it means; of a heading, what stands under it as well.

        Raises:
            SectionAmbiguous, RevertRefused: it may mean several.
            TooManyParts: the document has more parts than its limit.
        """
        if document is None:
            return []
        every = facts(document)
        if self.anchor.startswith("^"):
            found = [fact for fact in every if fact.id == self.anchor[1:]]
        elif self.anchor:
            with suppress(SectionNotFound):
                section = find_section(document, self.anchor)
                start, end = section.heading.span.start, section.span.end
                return [fact for fact in every if start <= fact.span.start < end]
            return []
        else:
            wanted = _BLANKS.sub(" ", self.text).strip(" ")
            found = [fact for fact in every if wanted in fact.said]
            found = [fact for fact in found if wanted in {fact.said, fact.text}] or found
        if len(found) > 1:
            raise RevertRefused(
                what=f"{self} means {len(found)} facts",
                reasons=tuple(f"line {fact.line}: {fact.text}" for fact in found),
                remedy="give more of its text, or its block id",
            )
        return found

    def __str__(self) -> str:
        return f"{self.path}#{self.anchor}" if self.anchor else f"{self.path}:{self.text!r}"


def target_of(what: str) -> FactTarget | None:
    """Return the fact that is named by `MEMORY#^id`, `MEMORY#HEADING` or `MEMORY:TEXT`.

    None for anything else.

    Raises:
        Usage: it names a whole memory.
        PathRefused: the memory is not a path.
    """
    found = _FACT.fullmatch(what)
    if found:
        path, anchor, quoted, text = found.groups()
        return FactTarget(check_memory(path), anchor or "", quoted or text or "")
    if what.endswith(ANY_SUFFIXES):
        remedy = f"name one of its facts, as '{what}#^id', '{what}#Heading' or '{what}:words', or a commit"
        raise Usage(problem=f"{what!r} is a whole memory", remedy=remedy)
    return None


class ChangedMemory(NamedTuple):
    """A memory before and after a change, None where it is not there; of the facts in it, all or `changes`.

    `old_path` is the one before, which differs where the change renamed it.
    """

    path: str
    old_path: str
    before: Document | None
    after: Document | None
    changes: Sequence[FactChange] | None = None


def read_version(file: TouchedFile, tracked: Tracked) -> ChangedMemory | None:
    """Read what a commit made of a file; None for one that is no memory of the namespace."""
    path, old_path = tracked.path(file.name), tracked.path(file.old or file.name)
    if path is None and old_path is None:
        return None
    before = tracked.document(file.before, old_path) if file.before and old_path is not None else None
    after = tracked.document(file.after, path) if file.after and path is not None else None
    return ChangedMemory(path or old_path or "", old_path or path or "", before, after)


def find_touching(
    log: Iterable[LoggedCommit], target: FactTarget, tracked: Tracked
) -> Iterator[LoggedCommit]:
    """Yield the commits of a memory, newest first, that changed a fact or section, whatever it was called.

    Raises:
        SectionNotFound: no version of the memory has it.
        GitFailed: git cannot read one.
    """
    is_known, called = False, target
    for logged in log:
        before, after = _read_versions(logged, tracked)
        now, was = (_find_called(version, called, target) for version in (after, before))
        if now and before and after and not was:
            earlier = next((old for fact, old in pair_facts(before, after) if fact == now[0]), None)
            called = _name_fact(target.path, earlier) if earlier else called
            was = _find_called(before, called, target)
        is_known = is_known or bool(now or was)
        if [fact.said for fact in now] != [fact.said for fact in was]:
            yield logged
    if not is_known:
        remedy = "no commit has it: see what the memory says with `mdmem show`"
        raise SectionNotFound(path=target.path, heading=target.anchor, remedy=remedy)


def _read_versions(logged: LoggedCommit, tracked: Tracked) -> tuple[Document | None, Document | None]:
    """Return the memory before a commit, and in it; None where it is not there, or is no memory."""
    before = after = None
    for file in logged.files:
        with suppress(DocumentRefused):
            if version := read_version(file, tracked):
                before, after = version.before or before, version.after or after
    return before, after


def _find_called(version: Document | None, *names: FactTarget) -> list[Fact]:
    """Return what the first of some names means in a version."""
    for name in names:
        with suppress(MdmemError):
            if found := name.find(version):
                return found
    return []


def _name_fact(path: str, fact: Fact) -> FactTarget:
    """Name a fact by its words, or a section by its headings."""
    if fact.kind != "heading":
        return FactTarget(path, "", fact.said)
    marks, _, title = fact.text.partition(" ")
    return FactTarget(path, f"{marks} {SEPARATOR.join((*fact.path, title))}", "")
