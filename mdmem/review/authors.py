"""Who made the rows of a memory, its facts and fields, by the changes in the history of its vault.

Who moves a row, or brings it back by an undo, a redo, a restore or a revert, has not made it. What differs
between one change and the next was edited directly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from copy import copy
from functools import cache, cached_property, partial
from itertools import islice, tee
from typing import Any, NamedTuple

from mdmem.document.document import Document, parse
from mdmem.document.merging.comparison import Comparison, FactChange, FieldChange, compare, pair_facts
from mdmem.document.merging.facts import Fact
from mdmem.document.outline import without_marker
from mdmem.document.text.lines import whole_lines, with_newline
from mdmem.document.tree import KeyPath, Member
from mdmem.errors import DocumentRefused
from mdmem.git.history import AGENT, ALSO, ID, OP, Commit
from mdmem.review.tracked import NAMES_A_MEMORY, agent_of
from mdmem.vault.store import Entry, FileChange
from mdmem.vault.vault import Vault

_MOST_ENTRIES = 10_000  # of the history that are looked at
_MOST_READ = 4_000_000  # bytes of old versions of a memory
_RETURNS = ("undo ", "redo ", "restore ", "revert ")


class Maker(NamedTuple):
    """Who made a row.

    Attributes:
        entries: the change that did; several where what was between them is not kept any more.
        is_direct: whether it was a direct edit, or may have been.
        came_by: the change that brought it back last; None without.
        earlier: the changes that had made it before a direct edit did, such as a merge in git.
    """

    entries: tuple[Entry, ...] = ()
    is_direct: bool = False
    came_by: Entry | None = None
    earlier: tuple[Entry, ...] = ()


def _is_return(entry: Entry) -> bool:
    """Return whether a change, by its words, brings back what was there before."""
    return entry.message.startswith(_RETURNS)


def _name_row(change: FactChange) -> tuple[str, str, tuple[str, ...]]:
    return change.kind, change.fact.said, change.fact.path


def _list_rows(head: Document | None, version: _Version) -> set[tuple[str, str, tuple[str, ...]]]:
    with suppress(DocumentRefused):  # it has more parts than its limit
        return {_name_row(each) for each in compare(head, version.document).facts}
    return set()


def list_members(document: Document | None) -> tuple[Member, ...]:
    """Return the fields of a memory; none where they cannot be read."""
    with suppress(DocumentRefused):
        return document.tree.members if document and document.tree else ()
    return ()


class _Version:
    """A memory at some time; without a document it is not there."""

    def __init__(self, document: Document | None) -> None:
        self.document = document
        self.hash = document.hash if document else None

    @cached_property
    def lines(self) -> list[tuple[int, str]]:
        """The indentation of each line, and its words without the marker: read much faster than facts."""
        lines = whole_lines(self.read_text() or "")
        return [
            (len(line) - len(line.lstrip(" \t")), " ".join(without_marker(line).split())) for line in lines
        ]

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(said for _, said in self.lines)

    def has_line(self, line: str, count: int) -> bool:
        return self.counts[line] >= count

    def read_value(self, key: KeyPath) -> str | None:
        with suppress(DocumentRefused):
            tree = self.document.tree if self.document else None
            found = tree.find(key) if tree else None
            return repr(found.value) if found else None
        return None

    def read_text(self) -> str | None:
        return with_newline(self.document.text, "\n") if self.document else None


class _PastStep(NamedTuple):
    """What changed a version to the next one; `before` is None where it is not kept any more."""

    before: _Version | None
    entries: tuple[Entry, ...]
    is_direct: bool


def read_log(vault: Vault) -> Iterator[Entry]:
    """Return the history of a vault, newest first; a copy of it begins again, and nothing is read twice."""
    return tee(islice(vault.history(), _MOST_ENTRIES), 1)[0]


def follow(log: Iterator[Entry], names: list[str]) -> Iterator[tuple[Entry, FileChange]]:
    """Yield the changes of a memory; each name that it had before is added to `names`."""
    for entry in copy(log):
        for file in [file for file in entry.files if file.path == names[-1]]:
            former = _Formers(entry).find(file)
            names += [former.path] if former else []
            yield entry, file._replace(before=former.before) if former else file


def follow_all(
    log: Iterator[Entry], paths: Iterable[str]
) -> dict[str, tuple[list[str], list[tuple[Entry, FileChange]]]]:
    """Return of each of some files that changed its names, last first, and its changes, as `follow` has them.

    The history is read once, however many they are.
    """
    found = {path: ([path], list[tuple[Entry, FileChange]]()) for path in paths}
    called = {path: [path] for path in found}  # who had a name by the time of an entry
    for entry in copy(log) if found else ():
        formers = _Formers(entry)
        for file, who in [(file, called[file.path]) for file in entry.files if file.path in called]:
            former = formers.find(file)
            for path in who:
                names, changes = found[path]
                names += [former.path] if former else []
                changes.append((entry, file._replace(before=former.before) if former else file))
            if former:
                called[file.path] = [path for path in called[file.path] if path not in who]
                called[former.path] = [*called.get(former.path, ()), *who]
    return {path: each for path, each in found.items() if each[1]}


class _Formers:
    """Says what the new files of a change were before it moved them."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def find(self, file: FileChange) -> FileChange | None:
        if file.before or not file.after:
            return None
        only, by_hash = self._gone
        return only or by_hash.get(file.after)

    @cached_property
    def _gone(self) -> tuple[FileChange | None, dict[str | None, FileChange]]:
        gone = [each for each in self._entry.files if not each.after]
        is_only = len(gone) == 1 and "move " in self._entry.message  # its links may have been changed along
        return gone[0] if is_only else None, {each.before: each for each in reversed(gone)}


class Steps:
    """The changes that led to a version of a memory, newest first.

    Attributes:
        names: what the memory was called, last first, and
        ids: those of the changes, both as far as was looked.
    """

    def __init__(
        self, vault: Vault, log: Iterator[Entry], path: str, now: Document | None, head: Document | None
    ) -> None:
        self.names, self.ids = [path], set[str]()
        self._vault, self._log, self._now, self._head = vault, log, _Version(now), _Version(head)
        (self._steps,), self._left = tee(self._read_steps(), 1), _MOST_READ
        self._pair_facts = cache(lambda version: dict(pair_facts(version.document, now)))
        self._list_rows = cache(partial(_list_rows, head))

    def find_maker(self, row: Fact | KeyPath) -> Maker:
        """Find who made a fact of the version, or a field, by its key."""
        ask = self._has_fact if isinstance(row, Fact) else _Version.read_value
        return self._find_maker(ask, row, goes_on=True)

    def find_row_maker(self, change: FactChange | FieldChange | None) -> Maker:
        """Find who made a row that differs from the last commit; without a row, the whole text."""
        if change is None:
            return self._find_maker(_Version.read_text)
        if isinstance(change, FieldChange):
            return self._find_maker(_Version.read_value, change.key)
        old, new = change.before, change.after
        if new and not (old and old.said == new.said):
            return self.find_maker(new)
        row = _name_row(change)
        return self._find_maker(lambda version: version is self._now or row in self._list_rows(version))

    def find_mover(self) -> Maker:
        """Find who gave the memory its name."""
        names = self.names[:1]
        for entry, file in follow(self._log, names):
            if not file.before or len(names) > 1:
                return Maker(() if _is_return(entry) else (entry,), is_direct=len(names) == 1)
        return Maker((), is_direct=True)

    def find_changers(self, known: Callable[[], Collection[str]]) -> Iterator[Maker]:
        """Find who made each difference from the last commit; `known` are the ids of committed changes."""
        made: list[Entry] = []
        for step in copy(self._steps):
            made += step.entries
            if step.is_direct or len({each.actor for each in made}) > 1 or any(map(_is_return, step.entries)):
                break
            if step.before is self._head:
                yield Maker(tuple(made))  # one actor made all that differs
                return
        for is_row, ask, *given in dict.fromkeys(self._ask_of_differences()):
            yield self._find_maker(ask, *given, known=() if is_row else known())

    def _ask_of_differences(self) -> Iterator[tuple[Any, ...]]:
        """Yield for each difference from the last commit whether it is a row, and what to ask about it."""
        now, head = self._now, self._head
        found = compare(head.document, now.document) if now.document else Comparison()
        for change in found.facts:
            old, new = change.before, change.after
            if old and new and old.said == new.said:
                yield False, self._read_order
                continue
            came = self._count_lines(new, now, head)
            went = self._count_lines(old, head, now)
            if not came and not went:
                yield False, _Version.read_text
            for line, count in came:
                yield True, _Version.has_line, line, count
            for line, count in went if len(went) > len(came) else ():  # else others are in their place
                yield False, _Version.has_line, line, count
        for each in found.fields:
            yield ((True, _Version.read_value, each.key[:1]) if each.key else (False, _Version.read_text))
        # One that was only moved differs in its name alone.
        if not (found.facts or found.fields) and now.read_text() != head.read_text():
            yield False, _Version.read_text

    def _find_maker(
        self, ask: Callable[..., object], *given: object, known: Collection[str] = (), goes_on: bool = False
    ) -> Maker:
        """Find the change that gave versions the answer of this one, before any is `known`.

        Behind a direct edit that did, the search `goes_on` for the changes that had done so earlier.
        """
        answer, found = ask(self._now, *given), None
        came_by, is_there = None, True
        for step in copy(self._steps):
            if any(entry.id in known for entry in step.entries):
                break
            was_there = step.before is not None and ask(step.before, *given) == answer
            if is_there and not was_there:
                makers = tuple(entry for entry in step.entries if not _is_return(entry))
                if found and makers:
                    return found._replace(earlier=makers)
                if not found and (makers or (step.is_direct and not step.entries)):
                    found = Maker(makers, step.is_direct, came_by)
                    if makers or not goes_on:
                        return found
                came_by = came_by or next(iter(step.entries), None)
            is_there = was_there
        return found or Maker((), came_by is None, came_by)

    def _has_fact(self, version: _Version, fact: Fact) -> bool:
        own = [said for _, said in self._now.lines[fact.line - 1 : fact.last]]
        told = {(self._now.counts[line], version.counts[line]) for line in own}
        if version is self._now or told in ({(1, 1)}, {(1, 0)}):
            return (1, 0) not in told
        earlier = self._pair_facts(version).get(fact)  # a line stands twice, or was cut otherwise
        return earlier is not None and earlier.said == fact.said

    def _read_order(self, version: _Version) -> list[tuple[int, str]]:
        """Return the lines that were in the last commit, too."""
        common = self._now.counts.keys() & self._head.counts.keys() - {""}
        return [each for each in version.lines if each[1] in common]

    def _count_lines(self, fact: Fact | None, more: _Version, less: _Version) -> list[tuple[str, int]]:
        """Return the lines of a fact that one version has more often than another, with their counts."""
        own = more.lines[fact.line - 1 : fact.last] if fact else ()
        return [(line, n + 1) for _, line in own if line for n in range(less.counts[line], more.counts[line])]

    def _read_steps(self) -> Iterator[_PastStep]:
        reached, is_direct = self._now.hash, False
        entries: list[Entry] = []
        for entry, file in follow(self._log, self.names):
            self.ids.add(entry.id)
            is_direct = is_direct or file.after != reached
            for reached, more in ((file.after, []), (file.before, [entry])):
                entries += more
                if (entries or is_direct) and (before := self._find_version(reached)):
                    yield _PastStep(before, tuple(entries), is_direct)
                    entries, is_direct = [], False
        if entries or is_direct:
            yield _PastStep(None, tuple(entries), is_direct)

    def _find_version(self, digest: str | None) -> _Version | None:
        if digest == self._head.hash:
            return self._head
        if digest is None:
            return _Version(None)
        kept = self._vault.store.kept(digest) if self._left > 0 else None
        self._left -= len(kept.data) if kept else 0
        with suppress(DocumentRefused):
            return _Version(parse(self.names[-1], kept.data, self._vault.config.limits)) if kept else None
        return None

    def name_agents(
        self, maker: Maker, commit: Commit | None, *, is_part: bool
    ) -> tuple[str, bool, tuple[str, ...]]:
        """Return who made a row, whether that is sure, and by which operations.

        Args:
            commit: what git names for the row, if any; it tells of changes made elsewhere.
            is_part: whether the commit also changes what is outside of the namespace.
        """
        if maker.entries:
            done = [(entry.message, entry.actor) for entry in maker.entries]
        elif is_part or not commit:
            return agent_of(commit, is_part=True) if commit else "", not commit, ()
        else:
            done = self._list_operations(commit, {entry.id for entry in maker.earlier})
        agents = dict.fromkeys(agent for _, agent in done)
        is_sure = len(agents) <= 1 and not (maker.entries and maker.is_direct)
        return ", ".join(filter(None, agents)), is_sure, tuple(told for told, _ in done)

    def _list_operations(self, commit: Commit, made: Collection[str]) -> list[tuple[str, str]]:
        """List what the changes `made` did in a commit, else what others did, each with its agent."""
        done: list[dict[str, list[str]]] = []
        for key, value in commit.trailers:
            done += [defaultdict(list)] if key == OP else []
            if done:
                done[-1][key].append(value)
        # What names no memory may be about any; a memory may have been called otherwise then.
        concerned = [each for each in done if any(map(self._may_concern, each[OP] + each[ALSO]))] or done
        own = [each for each in concerned if not {*made}.isdisjoint(each[ID])]
        others = own or [each for each in concerned if self.ids.isdisjoint(each[ID])]
        told = [(each[OP][0], ", ".join(each[AGENT])) for each in others]
        return [each for each in told if not each[0].startswith(_RETURNS)]

    def _may_concern(self, told: str) -> bool:
        return any(name in told for name in self.names) or not NAMES_A_MEMORY.search(told)
