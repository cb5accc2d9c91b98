"""Reverts the last change of a fact, or a commit, in the memories as they are now, as an edit plan.

What was written since stays. Where nothing was, a memory gets the very bytes back that it had.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mdmem.document.document import Document, parse_text
from mdmem.document.edit import between
from mdmem.errors import (
    DocumentRefused,
    GitRefused,
    MemoryNotFound,
    NamedNotFound,
    RevertRefused,
    Usage,
)
from mdmem.merging.comparison import compare
from mdmem.merging.reverting import take_back
from mdmem.review.past import ChangedMemory, FactTarget, read_version, target_of
from mdmem.review.tracked import Tracked
from mdmem.vault.paths import Namespace, check_folder, is_under
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mdmem.git.history import Commit
    from mdmem.vault.vault import Vault

_SHORT = 8  # digits of a commit in a message


class Reverts:
    """Takes back what git knows of memories; to be used from one thread at a time."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def build(self, what: str, paths: Sequence[str] = ()) -> Callable[[], EditPlan]:
        """Build what makes the plan from the memories as they are by then; git is asked before.

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
            if target:
                versions, message = [_find_last_change(target, tracked, self._vault)], f"revert {target}"
            else:
                commit = _find_commit(what, tracked)
                versions = _find_changed(commit, tracked, self._vault, [check_folder(path) for path in paths])
                # A commit may tell of more than the namespace.
                told = f": {commit.subject}" if self._vault.wall == Namespace() else ""
                message = f"revert {commit.id[:_SHORT]}{told}"
        return lambda: self._make_plan(str(target or what), versions, message)

    def _make_plan(self, what: str, versions: Sequence[ChangedMemory], message: str) -> EditPlan:
        changes: list[Change] = []
        refused: list[str] = []
        skipped: list[str] = []
        for version in versions:
            try:
                changes += self._take_back(version, refused, skipped)
            except DocumentRefused as error:
                refused.append(error.message)
        if refused or not changes:
            reasons = refused or skipped or ["nothing that it changed is still there"]
            raise RevertRefused(what=what, reasons=tuple(reasons))
        return EditPlan(changes=tuple(changes), message=message, left_out=tuple(skipped))

    def _take_back(self, version: ChangedMemory, refused: list[str], skipped: list[str]) -> Iterator[Change]:
        """Yield the change that takes back what was done to one memory, if there is anything to do."""
        path, before, after = version.path, version.before, version.after
        now = self._vault.find(path)
        move_to = version.old_path if version.old_path != path else None
        if now is None and after:
            skipped.append(f"{path}: it is gone")
        elif now and now.conflicts():
            refused.append(f"{path}: a conflict of git's stands in it: settle that first")
        elif move_to and self._vault.exists(move_to):
            refused.append(f"{path}: it was {move_to}, where another memory is now")
        elif version.changes is None and _is_same(now, before) and not move_to:
            skipped.append(f"{path}: it already is as it was before")
        else:
            none = parse_text(path, "", self._vault.config.limits)
            done = take_back(before or none, after or none, now or none, version.changes)
            refused += [f"{path}: {reason}" for reason in done.refused]
            skipped += [f"{path}: {reason}" for reason in done.skipped]
            edits = tuple(between(now.text, done.text)) if now else ()
            if now is None:
                yield Change(path=path, before=None, content=done.text.encode(), merge=False)
            elif not (before or version.changes or done.text.strip("\ufeff \t\r\n")):
                yield Change(path=path, before=now, delete=True, merge=False)
            elif edits or move_to:
                yield Change(path=path, before=now, edits=edits, move_to=move_to, merge=False)


def _is_same(one: Document | None, other: Document | None) -> bool:
    return one.data == other.data if one and other else one is other


def _find_commit(revision: str, tracked: Tracked) -> Commit:
    """Find the commit that is to be taken back, and refuse merges."""
    identifier = tracked.history.resolve(revision)
    commit = tracked.history.commits([identifier])[identifier]
    if len(commit.parents) > 1:
        remedy = "name the commit in which it was changed: `mdmem git log`"
        raise GitRefused(path=revision, reason="it is a merge commit", remedy=remedy)
    _refuse_cut(commit, tracked)
    return commit


def _refuse_cut(commit: Commit, tracked: Tracked) -> None:
    if not commit.parents and tracked.repository.shallow:
        remedy = "fetch the rest with `git fetch --unshallow`"
        reason = "what was before it is not in this shallow clone"
        raise GitRefused(path=commit.id[:_SHORT], reason=reason, remedy=remedy)


def _find_changed(commit: Commit, tracked: Tracked, vault: Vault, only: Sequence[str]) -> list[ChangedMemory]:
    """Find what a commit made of memories, or of `only`, each under the name that it has now."""
    with closing(tracked.history.log(tracked.names, commit.id)) as log:
        logged = next(log, None)
    files = logged.files if logged and logged.commit.id == commit.id else ()
    found = [version for file in files if (version := read_version(file, tracked))]
    for name in only:
        if not any(is_under(path, name) for each in found for path in each[:2]):
            raise MemoryNotFound(path=name)
    found = [
        each
        for each in found
        if (each.before or each.after)
        and (not only or any(is_under(path, name) for name in only for path in each[:2]))
    ]
    renamed = {each.old: each.new for each in tracked.repository.renames(commit.id)} if found else {}
    for number, each in enumerate(found):
        if each.after and not vault.exists(each.path):
            path = tracked.path(renamed.get(tracked.name(each.path), ""))
            if path and vault.exists(path):
                found[number] = each._replace(path=path, old_path=path)
    return found


def _find_last_change(target: FactTarget, tracked: Tracked, vault: Vault) -> ChangedMemory:
    """Find what the last change of a fact, committed or not, made of its memory."""
    met = False
    for version in _walk_versions(target.path, tracked, vault):
        met, before, after = True, version.before, version.after
        found = target.find(after), target.find(before)
        if [fact[:4] for fact in found[0]] != [fact[:4] for fact in found[1]]:
            every = compare(before, after).facts
            changes = [each for each in every if each.after in found[0] or each.before in found[1]]
            if changes:
                return ChangedMemory(target.path, target.path, before, after, changes)
    if not met:
        remedy = "`mdmem undo` takes back changes in the history of the vault"
        raise GitRefused(path=target.path, reason="git has no version of it", remedy=remedy)
    remedy = f"list its facts with `mdmem git blame {target.path}`"
    raise NamedNotFound(kind=f"fact in {target.path}", name=target.anchor or target.text, remedy=remedy)


def _walk_versions(path: str, tracked: Tracked, vault: Vault) -> Iterator[ChangedMemory]:
    """Walk the changes of a memory that git has, newest first; that of the files now is the first."""
    name, head, now = tracked.name(path), tracked.head, vault.find(path)
    if head is None:
        return
    blob = tracked.history.tree(head, [name]).get(name)
    last = tracked.document(blob, path) if blob else None
    with closing(tracked.history.log([name], head, follow=True)) as log:
        for number, (commit, files) in enumerate(log):
            if number == 0 and not _is_same(now, last):
                yield ChangedMemory(path, path, last, now)
            for file in files if len(commit.parents) <= 1 else ():
                _refuse_cut(commit, tracked)
                version = read_version(file, tracked)
                if version:
                    yield version
                if tracked.path(file.old or file.name) is None:
                    return  # it came from elsewhere
