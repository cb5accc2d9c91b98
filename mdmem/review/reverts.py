"""Reverts the last change of a fact, or a commit, in the memories as they are now, as an edit plan.

What was written since stays. Where nothing was, a memory gets the very bytes back that it had.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice

from mdmem.document.document import Document, parse_text
from mdmem.document.edit import between
from mdmem.document.merging.comparison import FactChange, FieldChange
from mdmem.document.merging.reverting import TakenBack, take_back
from mdmem.errors import DocumentRefused, GitRefused, MemoryNotFound, NamedNotFound, RevertRefused, Usage
from mdmem.git.history import Commit, LoggedCommit
from mdmem.review.past import ChangedMemory, FactTarget, find_changes, read_versions, target_of
from mdmem.review.review import find_names, is_same
from mdmem.review.tracked import Tracked, is_chosen
from mdmem.vault.paths import Namespace, check_folder, is_under
from mdmem.vault.plan import AttachmentChange, Change, EditPlan
from mdmem.vault.vault import Vault

_SHORT = 8  # digits of a commit in a message
_MOST_TRIED = 100  # changes that are taken back one by one


def build_revert(
    vault: Vault, what: str, paths: Sequence[str] = (), keep: Sequence[str] = ()
) -> Callable[[], EditPlan]:
    """Return a function that makes the plan from the memories of that time; git is asked before.

    Args:
        what: what `target_of` reads, or a commit.
        paths: only what the commit did to these memories and folders.
        keep: what stays as it is, each as `target_of` reads it.
    """
    target = target_of(what)
    if target and paths:
        raise Usage(problem="a fact and paths exclude each other", remedy="leave out the paths")
    attached: dict[str, tuple[str, bool]] = {}
    with Tracked(vault) as tracked:
        if target:
            versions, message = [_find_last_change(target, tracked, vault)], f"revert {target}"
        else:
            commit = _find_commit(what, tracked)
            only = [check_folder(path) for path in paths]
            logged = _read_files(commit, tracked)
            versions = _find_changed(logged, tracked, vault, only)
            attached = _find_attached(logged, tracked, only)
            # A commit may tell of more than the namespace.
            told = f": {commit.subject}" if vault.wall == Namespace() else ""
            message = f"revert {commit.id[:_SHORT]}{told}"
    kept = [target_of(each) or FactTarget(check_folder(each), "", "") for each in keep]
    return lambda: _make_plan(vault, str(target or what), versions, message, kept, attached)


def _make_plan(
    vault: Vault,
    what: str,
    versions: Sequence[ChangedMemory],
    message: str,
    kept: Sequence[FactTarget],
    attached: Mapping[str, tuple[str, bool]],
) -> EditPlan:
    changes: list[Change] = []
    refused: dict[str, str] = {}
    skipped: list[str] = []
    for target in kept:
        staying = [path for path in attached if target.is_whole and is_under(path, target.path)]
        attached = {path: old for path, old in attached.items() if path not in staying}
        under = [each for each in versions if any(is_under(path, target.path) for path in each[:2])]
        parts = [] if target.is_whole else under
        left = [each.without(target, vault.find(each.path)) for each in parts]
        if left == under and not staying:
            raise NamedNotFound(kind="change", name=str(target), remedy="see them with `mdmem git diff`")
        versions = [*left, *(each for each in versions if each not in under)]
    for version in versions:
        try:
            changes += _take_back(vault, version, refused, skipped)
        except DocumentRefused as error:
            refused[version.path] = error.message
    moves = [*_move_attachments_back(vault, attached, refused)]
    if refused and (changes or moves):
        remedy = f"revert the rest with {' '.join(f'--keep {shlex.quote(name)}' for name in refused)}"
        raise RevertRefused(what=what, reasons=tuple(refused.values()), remedy=remedy)
    if refused or not (changes or moves):
        reasons = [*refused.values()] or skipped or ["nothing that it changed is still there"]
        raise RevertRefused(what=what, reasons=tuple(reasons))
    back = tuple(change._replace(as_it_was=True) for change in changes)
    return EditPlan(changes=back, message=message, left_out=tuple(skipped), attachments=tuple(moves))


def _move_attachments_back(
    vault: Vault, attached: Mapping[str, tuple[str, bool]], refused: dict[str, str]
) -> Iterator[AttachmentChange]:
    """Yield the moves of attachments to where they were; what cannot go there is in `refused`."""
    for path, (old, is_whole) in attached.items():
        digest = dict(vault.attachments(path)).get(path) if vault.store.stands(vault.folder(path)) else None
        if digest is None:
            refused[path] = f"{path}: it was {old}, and is gone"
        elif not is_whole:
            refused[path] = f"{path}: it was {old}, and has changed"
        elif vault.store.stands(vault.folder(old)):
            refused[path] = f"{path}: it was {old}, where something else is now"
        else:
            yield AttachmentChange(path, old, digest)


def _take_back(
    vault: Vault, version: ChangedMemory, refused: dict[str, str], skipped: list[str]
) -> Iterator[Change]:
    """Yield the change that takes back a change of one memory, if there is anything to do.

    What cannot be taken back goes to `refused`, by the name under which it can be kept; the change is
    then of the rest.
    """
    path, before, after = version.path, version.before, version.after
    now = vault.find_around(path)
    move_to = version.old_path if version.old_path != path else None
    if now is None and after:
        skipped.append(f"{path}: it is gone")
    elif now and now.conflicts():
        refused[path] = f"{path}: it has a conflict from a merge: resolve that first"
    elif move_to and vault.find_around(move_to):
        refused[path] = f"{path}: it was {move_to}, where another memory is now"
    elif version.changes is None and is_same(now, before) and not move_to:
        skipped.append(f"{path}: it already is as it was before")
    else:
        none = parse_text(path, "", vault.config.limits)
        documents = before or none, after or none, now or none
        done = take_back(*documents, version.changes)
        if done.refused:
            reasons, done = _find_rest(version, *documents, done)
            refused |= {name: f"{path}: {reason}" for name, reason in reasons.items()}
        skipped += [f"{path}: {reason}" for reason in done.skipped]
        edits = tuple(between(now.text, done.text)) if now else ()
        if now is None:
            yield Change(path=path, before=None, content=done.text.encode(), merge=False)
        elif not (before or version.changes or done.text.strip("\ufeff \t\r\n")):
            yield Change(path=path, before=now, delete=True, merge=False)
        elif edits or move_to:
            yield Change(path=path, before=now, edits=edits, move_to=move_to, merge=False)


def _find_rest(
    version: ChangedMemory, before: Document, after: Document, now: Document, whole: TakenBack
) -> tuple[dict[str, str], TakenBack]:
    """Return the changes that stand in the way, with reasons, and the memory without the others."""
    every = version.list_changes()
    told = {version.path: "; ".join(whole.refused)}
    if len(every) > _MOST_TRIED:
        return told, TakenBack(now.text)
    take, rest = partial(take_back, before, after, now), list[FactChange | FieldChange]()
    for change in (*every, *every):  # one may need a later one
        if change not in rest and not take([*rest, change]).refused:
            rest.append(change)
    left = [change for change in every if change not in rest]
    reasons = {version.name_change(change, now): take([*rest, change]).refused[0] for change in left}
    return reasons or told, take(rest)


def _find_commit(revision: str, tracked: Tracked) -> Commit:
    """Return the commit to take back; refuse a merge."""
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


def _read_files(commit: Commit, tracked: Tracked) -> LoggedCommit:
    """Return a commit with the files of the namespace that it touched."""
    with closing(tracked.history.log(tracked.names, commit.id)) as log:
        logged = next(log, None)
    return logged if logged and logged.commit.id == commit.id else LoggedCommit(commit, ())


def _find_attached(
    logged: LoggedCommit, tracked: Tracked, only: Sequence[str]
) -> dict[str, tuple[str, bool]]:
    """Return the attachments that a commit moved: where each was, and whether it is as it was there."""
    found = {}
    for file in logged.files:
        new, old = tracked.attachment(file.name), tracked.attachment(file.old) if file.old else None
        if new and old and any(is_chosen(path, only) for path in (new, old)):
            is_whole = file.before == file.after and tracked.is_in_file(file.name, file.after)
            found[new] = old, is_whole
    return found


def _find_changed(
    logged: LoggedCommit, tracked: Tracked, vault: Vault, only: Sequence[str]
) -> list[ChangedMemory]:
    """Return what a commit did to memories, or to `only` these, under the names that they have now."""
    found = [*read_versions(logged, tracked)]
    for name in only:
        touched = [path for each in found for path in each[:2]]
        touched += [*filter(None, (tracked.attachment(file.name) for file in logged.files))]
        if not any(is_under(path, name) for path in touched):
            raise MemoryNotFound(path=name)
    found = [
        each
        for each in found
        if (each.before or each.after) and any(is_chosen(path, only) for path in each[:2])
    ]
    for number, each in enumerate(found):
        if each.after and not vault.find_around(each.path):
            path, _ = find_names(each.path, tracked, vault)
            found[number] = each._replace(path=path, old_path=path) if path != each.path else each
    return found


def _find_last_change(target: FactTarget, tracked: Tracked, vault: Vault) -> ChangedMemory:
    """Return the last change of a target, committed or not."""
    path, name = find_names(target.path, tracked, vault)
    versions = _walk_versions(path, name, tracked, vault)
    last = [*islice(versions, 2)]
    if not last or not (target.is_whole or last[-1].commit):
        listed = f"`mdmem history {shlex.quote(target.path)}`"
        remedy = f"{listed} names its changes, and `mdmem undo ID` takes one back"
        raise GitRefused(path=target.path, reason="git has no version of it", remedy=remedy)
    found = last[0] if target.is_whole else next(find_changes(chain(last, versions), target), None)
    if not found:
        remedy = f"list its facts with `mdmem git blame {path}`"
        raise NamedNotFound(kind=f"fact in {path}", name=target.anchor or target.text, remedy=remedy)
    return found._replace(path=path, old_path=found.old_path if target.is_whole else path)


def _walk_versions(path: str, old: str, tracked: Tracked, vault: Vault) -> Iterator[ChangedMemory]:
    """Yield the changes of a memory, newest first: those of the files now, then those in git.

    `old` is its path in the last commit.
    """
    head, now = tracked.head, vault.find(path)
    blob = tracked.list_blobs(head, [old]).get(old)
    last = tracked.document(blob, old) if blob else None
    if path != old or not is_same(now, last):
        yield ChangedMemory(path, old, last, now)
    if head is None:
        return
    with closing(tracked.history.log([tracked.name(old)], head, follow=True)) as log:
        for logged in log:
            if len(logged.commit.parents) <= 1:
                _refuse_cut(logged.commit, tracked)
                yield from read_versions(logged, tracked)
            if any(tracked.path(file.old or file.name) is None for file in logged.files):
                return  # it came from elsewhere
