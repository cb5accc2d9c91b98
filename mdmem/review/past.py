"""A fact or a section of a memory, as a person names it, and the commits that changed it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import NamedTuple

from mdmem.document.document import Document
from mdmem.document.merging.comparison import FactChange, FieldChange, compare, follow_facts, pair_facts
from mdmem.document.merging.facts import Fact, facts
from mdmem.document.section import find_section
from mdmem.document.text.regex import regex
from mdmem.document.tree import KeyPath, dotted, undotted
from mdmem.errors import RevertRefused, SectionNotFound
from mdmem.git.history import LoggedCommit
from mdmem.review.authors import list_members
from mdmem.review.tracked import Tracked
from mdmem.vault.paths import check_memory

_FACT = regex(
    r'(?s)(?P<path>.+?\.(?:mdx?|markdown|json))(?:#(?P<anchor>.+)|:"(?P<quoted>.+)"|:(?P<text>.+))?'
)
_MOST_NAMED = 60  # characters of a fact that is named by all of its words


class FactTarget(NamedTuple):
    """What a person names: a memory, or by `anchor` (`^id` or a heading) or `text` a part of it.

    The text is the key of a field, the number of a line, or some words of a fact.
    """

    path: str
    anchor: str
    text: str

    @property
    def is_whole(self) -> bool:
        """Whether all of the memory is meant."""
        return not (self.anchor or self.text)

    def find(self, document: Document | None, *, by_line: bool = False) -> list[Fact]:
        """Find the facts of a version that it means; of a section, what stands under its heading as well.

        With `by_line` the text may be the number of a line.

        Raises:
            SectionAmbiguous, RevertRefused: it may mean several.
            TooManyParts: the document has more parts than its limit.
        """
        if document is None:
            return []
        every = facts(document)
        line = int(self.text) if by_line and self.text.isdecimal() else 0
        if found := [fact for fact in every if fact.line <= line <= fact.last]:
            return found
        if self.anchor.startswith("^"):
            found = [fact for fact in every if fact.id == self.anchor[1:]]
        elif self.anchor:
            with suppress(SectionNotFound):
                line = find_section(document, self.anchor).heading.line
                return _list_section(document, [fact for fact in every if fact.line == line])
            return []
        else:
            wanted = " ".join(self.text.split())
            found = [fact for fact in every if wanted in fact.said]
            found = [
                fact for fact in found if wanted in {fact.said, fact.text, fact.text.lstrip("# ")}
            ] or found
        if len(found) > 1:
            raise RevertRefused(
                what=f"{self} means {len(found)} facts",
                reasons=tuple(f"line {fact.line}: {fact.text}" for fact in found),
                remedy=f"give more of its text, its block id, or its line, as '{self.path}:{found[0].line}'",
            )
        return found

    def find_key(self, document: Document | None) -> KeyPath:
        """Return the key of the field of a version that it means; empty where it means none."""
        key = undotted(self.text) if self.text and list_members(document) else ()
        if not key or not document or not document.tree or not document.tree.find(key):
            return ()
        return key if all(self.text != fact.said for fact in facts(document)) else ()

    def __str__(self) -> str:
        return self.path + (f"#{self.anchor}" if self.anchor else f":{self.text!r}" if self.text else "")


def _list_section(document: Document | None, found: list[Fact]) -> list[Fact]:
    """List a heading that was found with all under it; else what was found."""
    if not document or not found or found[0].kind != "heading":
        return found
    every = facts(document)
    level, after = found[0].text.index(" "), every[every.index(found[0]) + 1 :]
    return [found[0], *takewhile(lambda fact: fact.kind != "heading" or fact.text.index(" ") > level, after)]


def target_of(what: str) -> FactTarget | None:
    """Return what is named by `MEMORY`, `MEMORY#^id`, `MEMORY#HEADING` or `MEMORY:TEXT`; None for others.

    Raises:
        PathRefused: the memory is not a path.
    """
    found = _FACT.fullmatch(what)
    if found:
        path, anchor, quoted, text = found.groups()
        return FactTarget(check_memory(path), anchor or "", quoted or text or "")
    return None


class ChangedMemory(NamedTuple):
    """A memory before and after a change, None where it is not there.

    `old_path` is its path before, which differs after a rename. All that differs is meant, or some `changes`.
    The files now have no `commit`.
    """

    path: str
    old_path: str
    before: Document | None
    after: Document | None
    commit: LoggedCommit | None = None
    changes: Sequence[FactChange | FieldChange] | None = None

    def list_changes(self) -> Sequence[FactChange | FieldChange]:
        """List the changes that are meant."""
        found = compare(self.before, self.after)
        return [*found.facts, *found.fields] if self.changes is None else self.changes

    def without(self, target: FactTarget, now: Document | None) -> ChangedMemory:
        """Return the change without what is named, in what the memory says now or in either version."""
        changes = self.list_changes()
        for document in (now, self.after, self.before):
            key = target.find_key(document)
            named = [] if key else target.find(document, by_line=document is now)
            if document is now:
                named = [was for fact, was in pair_facts(self.after, now) if was and fact in named]
            left = [each for each in changes if not _is_about(each, named, key)]
            if len(left) < len(changes):
                return self._replace(changes=left)
        return self

    def name_change(self, change: FactChange | FieldChange, now: Document) -> str:
        """Return the name by which a change can be told apart in what the memory says now."""
        if isinstance(change, FieldChange):
            return f"{self.path}:{dotted(change.key)}"
        pairs = pair_facts(self.after, now)
        stands = next((fact for fact, was in pairs if was and was == change.after), None)
        said = max((stands or change.fact).said.split("\n"), key=len)
        if change.fact.id:
            return f"{self.path}#^{change.fact.id}"
        is_telling = len(said) <= _MOST_NAMED and [fact.said for fact in facts(now)].count(said) == 1
        return f"{self.path}:{stands.line if stands and not is_telling else said}"


def _is_about(change: FactChange | FieldChange, named: Collection[Fact], key: KeyPath) -> bool:
    if isinstance(change, FieldChange):
        return bool(key) and change.key[: len(key)] == key[: len(change.key)]
    return change.before in named or change.after in named


def read_versions(logged: LoggedCommit, tracked: Tracked) -> Iterator[ChangedMemory]:
    """Yield what a commit made of memories of the namespace.

    Raises:
        DocumentRefused: one of them is no memory.
    """
    for file in logged.files:
        old, new = tracked.find_paths(file)
        before = tracked.document(file.before, old) if old else None
        after = tracked.document(file.after, new) if new else None
        if old or new:
            yield ChangedMemory(new or old, old or new, before, after, logged)


def find_changes(versions: Iterable[ChangedMemory], target: FactTarget) -> Iterator[ChangedMemory]:
    """Yield the changes of a target among those of its memory, newest first, also under older names.

    Each has in `changes` those that are about the target.

    Raises:
        SectionAmbiguous, RevertRefused: it may mean several.
        TooManyParts: a version has more parts than its limit.
    """
    meant: list[Fact] = []  # in the version `seen`
    key: KeyPath = ()
    seen: Document | None = None
    is_section = target.anchor[:1] not in {"", "^"}
    for number, version in enumerate(versions):
        before, after = version.before, version.after
        if not meant:
            key = key or target.find_key(after)
            meant = target.find(after, by_line=number == 0)
        elif after and seen and after.text != seen.text:
            meant = [fact for now, fact in pair_facts(after, seen) if fact and now in meant]
            meant = _list_section(after, meant) if is_section else meant
        found, earlier = follow_facts(before, after, meant)
        if not meant:
            earlier = target.find(before)
        elif is_section:
            earlier = _list_section(before, earlier)
        key = key or (() if meant or earlier else target.find_key(before))
        named = set() if key else {*meant, *earlier}
        every: list[FactChange | FieldChange] = [*found.facts, *found.fields]
        changes = [each for each in every if _is_about(each, named, key)]
        heads = [each for each in found.facts if each in changes and each.fact.kind == "heading"]
        for head in heads if target.text else ():
            document = before if head.kind == "removed" else after if head.kind == "added" else None
            below = _list_section(document, [head.fact])[1:]
            changes += [each for each in found.facts if each.kind == head.kind and each.fact in below]
        if changes:
            yield version._replace(changes=changes)
        meant, seen = earlier, before
