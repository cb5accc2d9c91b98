"""Reverts the last change of a fact, or a commit, in the memories as they are now, as an edit plan.

What was written since stays. Where nothing was, a memory gets the very bytes back that it had.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import (
    DocumentRefused,
    GitRefused,
    MemoryNotFound,
    NamedNotFound,
    RevertRefused,
    SectionNotFound,
    Usage,
)
from mdmem.memory.tracked import Tracked
from mdmem.merging.comparison import compare
from mdmem.merging.facts import Fact, facts
from mdmem.merging.reverting import take_back
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import between
from mdmem.text.regex import regex
from mdmem.text.section import find_section
from mdmem.vault.paths import Namespace, check_folder, check_memory, is_under
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mdmem.git.history import Commit
    from mdmem.merging.comparison import FactChange
    from mdmem.vault.vault import Vault

_FACT = regex(r"(?s)(?P<path>.+?\.(?:md|json))(?:#(?P<anchor>.+)|:(?P<text>.+))")
_SHORT = 12  # digits of a commit in a message
_BLANKS = regex(r"[ \t\r\n]+")


class FactTarget(NamedTuple):
    """One fact, or a section: the memory, and its `anchor` (`^id` or a heading) or some of its `text`."""

    path: str
    anchor: str
    text: str

    def find(self, document: Document | None) -> tuple[Fact, ...]:
        """The facts of a version that it means; of a heading, what stands under it as well.

        Raises:
            SectionAmbiguous, RevertRefused: it may mean several.
            TooManyParts: the document has more parts than its limit.
        """
        if document is None:
            return ()
        every = facts(document)
        if self.anchor.startswith("^"):
            found = [fact for fact in every if fact.id == self.anchor[1:]]
        elif self.anchor:
            return self._section(document, every)
        else:
            wanted = _BLANKS.sub(" ", self.text).strip(" ")
            found = [fact for fact in every if wanted in fact.said]
            exact = [fact for fact in found if wanted in {fact.said, fact.text}]
            found = exact or found
        if len(found) > 1:
            reasons = [f"line {fact.line}: {fact.text}" for fact in found]
            remedy = "give more of its text, or its block id"
            raise RevertRefused(
                what=f"{self} means {len(found)} facts", reasons=tuple(reasons), remedy=remedy
            )
        return tuple(found)

    def _section(self, document: Document, every: Sequence[Fact]) -> tuple[Fact, ...]:
        try:
            section = find_section(document, self.anchor)
        except SectionNotFound:
            return ()
        return tuple(
            fact for fact in every if section.heading.span.start <= fact.span.start < section.span.end
        )

    def __str__(self) -> str:
        return f"{self.path}#{self.anchor}" if self.anchor else f"{self.path}:{self.text!r}"


def target_of(what: str) -> FactTarget | None:
    """The fact that is named by `MEMORY#^id`, `MEMORY#HEADING` or `MEMORY:TEXT`; None for anything else.

    Raises:
        Usage: it names a whole memory.
        PathRefused: the memory is not a path.
    """
    found = _FACT.fullmatch(what)
    if found:
        text = found["text"] or ""
        if len(text) > len('""') and text[0] == text[-1] == '"':
            text = text[1:-1]
        return FactTarget(check_memory(found["path"]), found["anchor"] or "", text)
    if what.endswith((".md", ".json")):
        remedy = (
            f"name one of its facts, as '{what}#^id', '{what}#Heading' or '{what}:some words', or a commit"
        )
        raise Usage(problem=f"{what!r} is a whole memory", remedy=remedy)
    return None


class _Became(NamedTuple):
    """What one change made of a memory.

    Attributes:
        path: the memory; the old one, too, where it was renamed.
        before, after: None where it is not there.
        changes: what of it is meant; all without.
    """

    path: str
    old_path: str
    before: Document | None
    after: Document | None
    changes: Sequence[FactChange] | None = None

    @property
    def move_to(self) -> str | None:
        """Where the memory has to be moved."""
        return self.old_path if self.old_path != self.path else None


class Reverts:
    """Takes back what git knows of memories; to be used from one thread at a time."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def build(self, what: str, paths: Sequence[str] = ()) -> Callable[[], EditPlan]:
        """What makes the plan from the memories as they are by then; git is asked before this returns.

        Args:
            what: a fact as `target_of` reads it, or a commit.
            paths: only what the commit did to these memories and folders.

        Raises:
            Usage, NamedNotFound, MemoryNotFound, GitFailed, GitRefused, RevertRefused: see `Git.revert`.
        """
        target = target_of(what)
        if target and paths:
            raise Usage(problem="a fact and paths exclude each other", remedy="leave out the paths")
        with Tracked(self._vault) as tracked:
            past = _Past(self._vault, tracked)
            if target:
                versions, message = [past.last_change(target)], f"revert {target}"
            else:
                commit = past.commit(what)
                only = [check_folder(path) for path in paths]
                versions = [*past.changed_by(commit, only)]
                # A commit may tell of more than the namespace.
                told = f": {commit.subject}" if self._vault.wall == Namespace() else ""
                message = f"revert {commit.id[:_SHORT]}{told}"
        return lambda: self._plan(str(target or what), versions, message)

    def _plan(self, what: str, versions: Sequence[_Became], message: str) -> EditPlan:
        changes: list[Change] = []
        refused: list[str] = []
        skipped: list[str] = []
        for version in versions:
            try:
                change = self._reversed(version, refused, skipped)
            except DocumentRefused as error:
                refused.append(error.message)
                continue
            if change:
                changes.append(change)
        if refused or not changes:
            reasons = tuple(refused or skipped or ["nothing that it changed is still there"])
            raise RevertRefused(what=what, reasons=reasons)
        return EditPlan(changes=tuple(changes), message=message, left_out=tuple(skipped))

    def _reversed(self, version: _Became, refused: list[str], skipped: list[str]) -> Change | None:
        """The change that takes back what was done to one memory; None where there is nothing to do."""
        path, now = version.path, self._vault.find(version.path)
        if now is None and version.after is not None:
            skipped.append(f"{path}: it is gone")
            return None
        if version.move_to and self._vault.exists(version.move_to):
            refused.append(f"{path}: it was {version.move_to}, where another memory is now")
            return None
        if version.changes is None and _same(now, version.after):
            return _change(version, now, version.before.text if version.before else "")
        if version.changes is None and _same(now, version.before) and not version.move_to:
            skipped.append(f"{path}: it already is as it was before")
            return None
        empty = parse_text(path, "", self._vault.config.limits)
        done = take_back(version.before or empty, version.after or empty, now or empty, version.changes)
        refused += [f"{path}: {reason}" for reason in done.refused]
        skipped += [f"{path}: {reason}" for reason in done.skipped]
        return _change(version, now, done.text)


def _change(version: _Became, now: Document | None, text: str) -> Change | None:
    """The change that makes a memory say a text; None where it does already."""
    if now is None:
        return Change(path=version.path, before=None, content=text.encode(), merge=False)
    is_whole = version.before is None and version.changes is None
    if is_whole and not _says_anything(parse_text(now.path, text, now.limits)):
        return Change(path=version.path, before=now, delete=True, merge=False)
    edits = tuple(between(now.text, text))
    if not (edits or version.move_to):
        return None
    return Change(path=version.path, before=now, edits=edits, move_to=version.move_to, merge=False)


def _same(one: Document | None, other: Document | None) -> bool:
    return one.data == other.data if one and other else one is other


def _says_anything(document: Document) -> bool:
    return bool(facts(document) or document.fields or (document.is_json and document.text.strip()))


class _Past:
    """The versions of memories that git has."""

    def __init__(self, vault: Vault, tracked: Tracked) -> None:
        self._vault = vault
        self._tracked = tracked

    def commit(self, revision: str) -> Commit:
        """The commit that is to be taken back.

        Raises:
            NamedNotFound: it is none.
            GitRefused: it is a merge, or the oldest that a shallow clone knows.
        """
        identifier = self._tracked.history.resolve(revision)
        commit = self._tracked.history.commits([identifier])[identifier]
        if len(commit.parents) > 1:
            remedy = "name the commit in which it was changed: `mdmem git log`"
            raise GitRefused(path=revision, reason="it is a merge commit", remedy=remedy)
        self._refuse_cut(commit)
        return commit

    def _refuse_cut(self, commit: Commit) -> None:
        if not commit.parents and self._tracked.repository.shallow:
            remedy = "fetch the rest with `git fetch --unshallow`"
            reason = "what was before it is not in this shallow clone"
            raise GitRefused(path=commit.id[:_SHORT], reason=reason, remedy=remedy)

    def changed_by(self, commit: Commit, only: Sequence[str]) -> Iterator[_Became]:
        """What a commit made of memories.

        Raises:
            MemoryNotFound: it did not touch one of `only`, or no memory at all.
        """
        with closing(self._tracked.history.log(self._tracked.names, commit.id)) as found:
            logged = next(found, None)
        files = logged.files if logged and logged.commit.id == commit.id else ()
        named: set[str] = set()
        for file in files:
            path, old_path = self._tracked.path(file.name), self._tracked.path(file.old or file.name)
            if path is None and old_path is None:
                continue
            before, after = self._at(file.before, old_path), self._at(file.after, path)
            shown = path or old_path or ""
            chosen = [name for name in only if is_under(shown, name) or is_under(old_path or shown, name)]
            named.update(chosen)
            if only and not chosen:
                continue
            if before or after:
                yield self._where_now(commit, _Became(shown, old_path or shown, before, after))
        for name in only:
            if name not in named:
                raise MemoryNotFound(path=name)

    def _where_now(self, commit: Commit, version: _Became) -> _Became:
        """The same, with the path that the memory has now, where it was renamed since."""
        if version.after is None or self._vault.exists(version.path):
            return version
        name = self._tracked.name(version.path)
        new = next(
            (each.new for each in self._tracked.repository.renames(commit.id) if each.old == name), None
        )
        path = self._tracked.path(new) if new else None
        return version._replace(path=path, old_path=path) if path and self._vault.exists(path) else version

    def last_change(self, target: FactTarget) -> _Became:
        """What the last change of a fact, committed or not, made of its memory.

        Raises:
            NamedNotFound: no version has such a fact.
            GitRefused: git has no version of the memory.
            RevertRefused: it may be one of several facts.
        """
        met = False
        for before, after in self._pairs(target.path):
            met = True
            found = target.find(after), target.find(before)
            if [*map(_place, found[0])] == [*map(_place, found[1])]:
                continue
            changes = [
                change
                for change in compare(before, after).facts
                if change.after in found[0] or change.before in found[1]
            ]
            if changes:
                return _Became(target.path, target.path, before, after, changes)
        if not met:
            remedy = "`mdmem undo` takes back changes in the history of the vault"
            raise GitRefused(path=target.path, reason="git has no version of it", remedy=remedy)
        remedy = f"list its facts with `mdmem git blame {target.path}`"
        raise NamedNotFound(kind=f"fact in {target.path}", name=target.anchor or target.text, remedy=remedy)

    def _pairs(self, path: str) -> Iterator[tuple[Document | None, Document | None]]:
        """Each version of a memory with the one before, newest first; the files now are the first.

        Nothing for a memory that git never had.
        """
        tracked, name = self._tracked, self._tracked.name(path)
        head = tracked.head
        if head is None:
            return
        now = self._vault.find(path)
        last = self._at(tracked.history.tree(head, [name]).get(name, ""), path)
        with closing(tracked.history.log([name], head, follow=True)) as found:
            for number, (commit, files) in enumerate(found):
                if number == 0 and not _same(now, last):
                    yield last, now
                for file in files if len(commit.parents) <= 1 else ():
                    self._refuse_cut(commit)
                    is_seen = tracked.path(file.old or file.name) is not None
                    yield self._at(file.before, path) if is_seen else None, self._at(file.after, path)
                    if not is_seen:
                        return  # it came from elsewhere

    def _at(self, blob: str, path: str | None) -> Document | None:
        """A memory as a version of it stands in the repository."""
        return self._tracked.document(blob, path) if blob and path is not None else None


def _place(fact: Fact) -> tuple[str, str, str, tuple[str, ...]]:
    return fact.kind, fact.id, fact.text, fact.path
