"""The past: what memories said at a moment, and how certain that is.

The log of the vault is asked first. It is exact where the content after one change is the content before the
next one, or the content now; else another program has changed the file in between. Then git's newest commit
at or before the moment is taken. What neither knows is unsure, or not kept: today's text never stands for it.
An edit of another program that was taken back before the next change leaves no trace, and is not seen.

A revision of git is no moment: branches and amended commits are not in the order of their times. It means
exactly what its commit holds, without anything that git does not track.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

from mdmem.document.document import Document, digest, parse
from mdmem.document.moment import moment_of, stamp
from mdmem.errors import DocumentRefused, GitFailed, MemoryNotFound, NamedNotFound, Usage
from mdmem.memory.validity import read_moment
from mdmem.review.tracked import Tracked
from mdmem.vault.folder import PAST_MARK
from mdmem.vault.vault import Vault

Certainty: TypeAlias = Literal["exact", "git", "unsure", "unreadable", "not kept"]
"""How certain a past state is: by the log, or by the revision that was asked for; by the newest commit at a
moment; by one side of a gap in the log; kept, but no text; or not at all."""
_REVISION = re.compile(r"HEAD|@|[0-9a-f]{7,40}|\S+[~^@/]\S*")  # what is meant as one, by its looks
_MOST_COPIES = 2
_CONFIG = ".mdmem/config.toml"


class PastState(NamedTuple):
    """What a memory said at a moment: its text then, None where there was none or it is not kept.

    Of one that is unreadable, `refused` says why.
    """

    path: str
    certainty: Certainty
    document: Document | None
    refused: DocumentRefused | None = None


class Then(NamedTuple):
    """A moment, with a time zone; of a revision of git, the id of its commit, too."""

    moment: datetime
    commit: str = ""


class _Around(NamedTuple):
    """The hashes of a memory around a moment: after the last change until then, and before the next one.

    Each in a tuple, which is empty where there is no such change; the hash is None where nothing was there.
    """

    before: tuple[str | None, ...] = ()
    after: tuple[str | None, ...] = ()


def read_when(vault: Vault, when: datetime | str) -> Then:
    """Read what a caller gives: a time, a day, which is its start in UTC, or a revision of git."""
    if not isinstance(when, str):
        return Then(read_moment(when, when))
    known = moment_of(when)
    if known is not None:
        return Then(known)
    # A commit may claim a year that no calendar has.
    problem = f"{when!r} is no moment"
    with contextlib.suppress(GitFailed, ValueError, OverflowError), Tracked(vault) as tracked:
        try:
            commit = tracked.history.resolve(when)
            made = tracked.history.commits([commit])[commit].committed
            return Then(datetime.fromtimestamp(made, UTC), commit)
        except NamedNotFound:
            if _REVISION.fullmatch(when):
                problem = f"git has no revision {when!r}"
    remedy = "give a day, a time such as 2026-01-31T12:30:00Z, or a revision of git"
    raise Usage(problem=problem, remedy=remedy)


def find_states(vault: Vault, then: Then, paths: Collection[str] | None = None) -> Iterator[PastState]:
    """Find what memories of a namespace said at a moment or in a commit, in the order of their paths.

    Args:
        paths: only these; without, all that are known of.
    """
    with Tracked(vault) as tracked:
        if then.commit:
            yield from _find_committed(vault, tracked, then.commit, paths)
            return
        log = _read_log(vault, then.moment)
        blobs = dict[str, str]()
        with contextlib.suppress(GitFailed):
            blobs = tracked.list_blobs(_find_commit(tracked, then.moment))
        known = _list_standing(vault) | log.keys() | blobs.keys()
        for path in sorted(known if paths is None else paths):
            around = log.get(path, _Around())
            try:
                yield _find_state(vault, tracked, path, around, blobs.get(path))
            except DocumentRefused as error:
                yield PastState(path, "unreadable", None, error)


def _find_committed(
    vault: Vault, tracked: Tracked, commit: str, paths: Collection[str] | None
) -> Iterator[PastState]:
    """Find what memories say in a commit; one that git ignores now may have been there unseen."""
    blobs = tracked.list_blobs(commit)
    unseen = _list_standing(vault) - blobs.keys()
    unseen -= tracked.taken if unseen else set()
    for path in sorted(blobs.keys() | unseen if paths is None else paths):
        if path not in blobs:
            yield PastState(path, "not kept" if path in unseen else "exact", None)
            continue
        try:
            document = tracked.document(blobs[path], path)
            yield PastState(path, "exact" if document else "not kept", document)
        except DocumentRefused as error:
            yield PastState(path, "unreadable", None, error)


def _list_standing(vault: Vault) -> set[str]:
    return {each.path for each in vault.walk("") if not each.problem}


def find_texts(vault: Vault, moment: datetime, paths: Collection[str]) -> Iterator[PastState]:
    """Find what memories said at a moment, else the oldest text that is kept of each, as `unsure`."""
    oldest = dict[str, list[str]]()
    for entry in vault.history():
        for file in entry.files:
            oldest.setdefault(file.path, []).extend(filter(None, (file.after, file.before)))
    for state in find_states(vault, Then(moment), paths):
        if state.document is not None:
            yield state
            continue
        with contextlib.suppress(DocumentRefused):
            now = vault.find(state.path)
            kept = (
                _read_content(vault, state.path, each, now) for each in reversed(oldest.get(state.path, []))
            )
            yield PastState(state.path, "unsure", next(filter(None, kept), now))


def _refuse_unkept(vault: Vault, then: Then) -> None:
    if then.commit:
        return
    oldest = min(filter(None, (moment_of(entry.time) for entry in vault.history())), default=None)
    if oldest and oldest <= then.moment:
        return
    with contextlib.suppress(GitFailed), Tracked(vault) as tracked:
        if _find_commit(tracked, then.moment):
            return
    said = f"nothing is kept of the time before {stamp(oldest)}" if oldest else "no past is kept"
    raise Usage(problem=said, remedy="give a later moment" if oldest else "make a change or a commit first")


def _read_log(vault: Vault, moment: datetime) -> dict[str, _Around]:
    """Read the hashes of each memory around a moment."""
    found, suffixes = dict[str, _Around](), vault.suffixes
    for entry in vault.history():
        at = moment_of(entry.time)
        for file in (file for file in entry.files if file.path.endswith(suffixes)):
            around = found.get(file.path, _Around())
            if at is not None and at > moment:
                found[file.path] = around._replace(after=(file.before,))
            elif not around.before:
                found[file.path] = around._replace(before=(file.after,))
    return found


def _find_commit(tracked: Tracked, moment: datetime) -> str | None:
    """Find the newest commit at or before a moment; None without one."""
    asked = ["rev-list", "-1", f"--before={int(moment.timestamp())}", "HEAD", "--"]
    ended = tracked.repository.ask(asked, "find a commit")
    return ended.printed.decode().strip() or None if not ended.status else None


def _find_state(vault: Vault, tracked: Tracked, path: str, around: _Around, blob: str | None) -> PastState:
    """Find what a memory said; a `DocumentRefused` says that what is kept of it is no text."""
    document = None
    with contextlib.suppress(DocumentRefused):
        document = vault.find(path)
    following = around.after or ((document.hash if document else None),)
    is_exact = around.before == following if around.before else around.after == (None,)
    if is_exact and following == (None,):
        return PastState(path, "exact", None)
    if is_exact and (found := _read_content(vault, path, following[0], document)):
        return PastState(path, "exact", found)
    with contextlib.suppress(GitFailed):
        if committed := tracked.document(blob, path) if blob else None:
            is_exact = is_exact and committed.hash == following[0]
            return PastState(path, "exact" if is_exact else "git", committed)
    for wanted in () if is_exact else (*around.before, *around.after):
        found = _read_content(vault, path, wanted, document) if wanted else None
        if found or wanted is None:
            return PastState(path, "unsure", found)
    return PastState(path, "not kept", None)


def _read_content(vault: Vault, path: str, wanted: str | None, now: Document | None) -> Document | None:
    """Read what a memory held, by its hash: from the file of now, else from the trash."""
    if now is not None and now.hash == wanted:
        return now
    kept = vault.store.kept(wanted) if wanted else None
    return parse(path, kept.data, vault.config.limits) if kept else None


def find_state(vault: Vault, path: str, then: Then) -> PastState:
    """Find what one memory said at a moment or in a commit."""
    _refuse_unkept(vault, then)
    (state,) = find_states(vault, then, [path])
    is_known = then.commit or vault.exists(path) or path in _read_log(vault, then.moment)
    if state.certainty == "not kept" and not is_known:
        raise MemoryNotFound(path=path)
    return state


# -- a copy of the vault as it was ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class PastCopy:
    """A copy of the memories that a scope could read at a moment, or that a commit holds.

    Attributes:
        root: its folder, a vault that refuses changes.
        moment: in UTC; of a commit, when it was made.
        unsure: the memories with an uncertain state, each with its certainty.

    The copy is not removed while this object is there.
    """

    root: str
    moment: datetime
    unsure: tuple[tuple[str, str], ...]


def make_past(vault: Vault, layers: Collection[Vault], then: Then) -> PastCopy:
    """Copy what some layers of a vault said then, or open the copy that there is.

    Two copies are kept: the one that was used longest ago goes, unless it is open.
    """
    parent = vault.disk.own("past")
    names = [then.commit or then.moment.isoformat(), *sorted(layer.namespace for layer in layers)]
    root = os.path.join(parent, digest(json.dumps(names).encode())[:16])
    mark = os.path.join(root, PAST_MARK)
    if not os.path.exists(mark):
        _refuse_unkept(vault, then)
        _write_copy(vault, layers, then, root)
    lock = os.open(mark, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_SH)
    os.utime(lock)
    with open(lock, encoding="utf-8", closefd=False) as file:
        unsure = tuple((path, certainty) for path, certainty in json.load(file))
    made = PastCopy(root=root, moment=then.moment, unsure=unsure)
    weakref.finalize(made, os.close, lock)
    _remove_old_copies(parent)
    return made


def _write_copy(vault: Vault, layers: Collection[Vault], then: Then, root: str) -> None:
    """Write a copy beside its place, and move it there when it is whole."""
    staged = tempfile.mkdtemp(prefix=".", dir=os.path.dirname(root))
    try:
        unsure = list[tuple[str, str]]()
        for layer in layers:
            for state in find_states(layer, then):
                path = os.path.join(layer.namespace, state.path)
                if state.certainty in ("unsure", "unreadable", "not kept"):
                    unsure.append((path, state.certainty))
                if state.document is not None:
                    _write_file(staged, path, state.document.data)
        config = b""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(vault.root, _CONFIG), "rb") as file:
            config = file.read()
        _write_file(staged, _CONFIG, config)
        _write_file(staged, PAST_MARK, json.dumps(unsure).encode())
        with contextlib.suppress(OSError):  # somebody else has made the same copy
            os.rename(staged, root)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _write_file(root: str, path: str, data: bytes) -> None:
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(data)


def _remove_old_copies(parent: str) -> None:
    """Remove the copies that were used longest ago, and that nobody has open."""
    with os.scandir(parent) as entries:
        marks = [os.path.join(entry.path, PAST_MARK) for entry in entries if not entry.name.startswith(".")]
    dated = sorted((os.stat(mark).st_mtime_ns, mark) for mark in marks if os.path.exists(mark))
    further = len(dated) - _MOST_COPIES
    for _, mark in dated:
        with contextlib.suppress(OSError), open(mark, "rb") as file:
            if further > 0:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.removesuffix(PAST_MARK))
                further -= 1
