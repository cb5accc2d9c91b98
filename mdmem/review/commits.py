"""Commits of memories: their files, their messages, and commits that mdmem makes by itself.

A commit takes the memories of the namespace, its mounted files and, at the top, the vault's settings. Its
trailers name the changes of the vault's own history since the last commit:

    Mdmem-Op: append to notes/db.md        what was done
    Mdmem-Id: 20260801T120000123456-1f2e   the change, as `mdmem history` and `mdmem undo` name it
    Mdmem-Also: notes/app.md               what it changed without naming it, as by a link
    Mdmem-Agent: claude                    who made the change, if that is known

An `Mdmem-Op` without an id is a direct edit beside them. A commit of direct edits alone has none.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from mdmem.document.document import Document
from mdmem.document.text.tokens import first_of
from mdmem.errors import (
    DocumentRefused,
    GitRefused,
    MdmemError,
    MemoryNotFound,
    NotAllowed,
    StorageFailed,
    Usage,
)
from mdmem.git.commit import IGNORED, Pending, PendingKind, WorkTree
from mdmem.git.history import AGENT, ALSO, ID, OP, SESSION, one_line, with_trailers
from mdmem.git.repository import Repository
from mdmem.review.authors import Steps, follow, follow_all, read_log
from mdmem.review.decisions import Decisions
from mdmem.review.review import Review
from mdmem.review.tracked import NAMES_A_MEMORY, Tracked, is_chosen
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.mark import allow, is_allowed
from mdmem.vault.paths import check_folder, is_under
from mdmem.vault.plan import standing
from mdmem.vault.store import MOST_ATTACHED_BYTES, Entry
from mdmem.vault.vault import Vault

_Files = Mapping[str, Pending]
_Led = tuple[Entry, str, list[str]]
_Attached = Mapping[str, Entry]

_SECONDS = 300.0  # that hooks and signing may be silent, where somebody waits and may interrupt
_SECONDS_ALONE = 60.0
_MOST_OPERATIONS = 200  # that a message names
_MOST_ALSO = 20  # memories that it names of an operation
_MOST_UNTRACKED = 4
_LONGEST_LINE = 72
_SETTINGS = re.compile(r"\.gitignore|\.mdmem/(?!local/).+", re.DOTALL)
_SETTING = "a setting of the vault, which a review does not commit: `mdmem git commit` does"
_DONE = {"added": "Add", "changed": "Change", "removed": "Remove"}


class CommittedFile(NamedTuple):
    """A file in a commit, and what became of it."""

    path: str
    kind: PendingKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A commit of memories, or what would go into one.

    Attributes:
        commit: its id; None where none was made, for a dry run or since nothing has changed.
        branch: the branch that it is on; empty when the head is detached.
        message: its whole message; empty when nothing has changed.
        files: the memories in it.
        settings: the files of the vault itself in it: its config, schemas, templates and `.gitignore`.
        attachments: other files in it, which mdmem moved, made or deleted.
        left_out: what has changed and is not in it, each with the reason.
        ignored: how many memories git ignores.
        notes: what should be known about it.
    """

    commit: str | None
    branch: str
    message: str
    files: tuple[CommittedFile, ...]
    settings: tuple[CommittedFile, ...] = ()
    attachments: tuple[CommittedFile, ...] = ()
    left_out: tuple[str, ...] = ()
    ignored: int = 0
    notes: tuple[str, ...] = ()

    def json_shape(self) -> dict[str, Any]:
        """Return the commit as a JSON object."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"applied": self.commit is not None, **fields}


class Commits:
    """Makes commits of the memories of one namespace."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def commit(
        self,
        message: str = "",
        *,
        only: Sequence[str] = (),
        accepted: Mapping[str, Sequence[str]] | None = None,
        session: str = "",
        hooks: bool = False,
        dry_run: bool = False,
        is_alone: bool = False,
    ) -> Committed:
        """Commit the memories that have changed, are new, or are gone; see `Git.commit`.

        With `is_alone` nobody waits: settings go with `only`, which may name memories that are not there.
        """
        chosen = [check_folder(path) for path in only]
        if only and accepted is not None:
            raise Usage(problem="`only` and `accepted` exclude each other", remedy="leave out one of them")
        repository = Repository.around(self._vault.root)
        tree = WorkTree(repository, self._vault.root)
        tree.refuse(hooks=hooks or is_allowed("hooks", repository.top))
        seconds = _SECONDS_ALONE if is_alone else _SECONDS
        lock = os.path.join(self._vault.disk.local("git"), "commit.lock")
        held = nullcontext() if dry_run else files.held(lock, seconds)
        with held, Tracked(self._vault, repository) as tracked:
            most = self._vault.config.limits.max_bytes
            pending = tree.pending(
                tracked.names, lambda name: MOST_ATTACHED_BYTES if tracked.attachment(name) else most
            )
            named = ((tracked.attachment(each.name), each) for each in pending if each.why_not != IGNORED)
            others = {path: each for path, each in named if path is not None}
            found = {path: each for each in pending if (path := tracked.path(each.name)) is not None}
            chosen += self._other_names(tracked, found, chosen)
            found = {path: each for path, each in found.items() if is_chosen(path, chosen)}
            not_accepted: list[str] = []
            if accepted is not None:
                whole, not_accepted = Decisions(self._vault, tracked).find_accepted(accepted)
                found = {path: found[path] for path in whole if path in found}
            for path in chosen if not is_alone else ():
                stands = self._vault.store.stands(self._vault.folder(path))
                if not stands and not any(is_under(each, path) for each in found):
                    raise MemoryNotFound(path=path)
            inside = ((repository.path(each.name) or "", each) for each in pending)
            settings = {path: each for path, each in inside if _SETTINGS.fullmatch(path)}
            if not self._vault.namespace and accepted is None and (is_alone or not only):
                found |= settings
            elif not self._vault.namespace and accepted is not None:
                not_accepted += [f"{path}: {_SETTING}" for path, each in settings.items() if not each.why_not]
            taken = {path: each for path, each in found.items() if not each.why_not}
            memories = {path: each for path, each in taken.items() if not _SETTINGS.fullmatch(path)}
            notes = self._find_secrets(tracked, memories)
            attached = self._find_attached(tracked, others, memories, chosen if accepted is None else None)
            if accepted is None and not is_alone:
                rest = [path for path in others if path not in attached and is_chosen(path, chosen)]
                notes += _describe_untracked(repository, {path: others[path] for path in rest})
            found |= {path: others[path] for path in attached}
            taken |= {path: others[path] for path in attached if not others[path].why_not}
            text = self._make_message(message, tracked, memories, attached, session) if taken else ""
            branch, made = repository.branch(), None
            if taken and not dry_run:
                made = tree.commit(list(taken.values()), text, seconds)
            left = {path: each.why_not for path, each in found.items() if each.why_not}
            left_out = [f"{path}: {why_not}" for path, why_not in left.items() if why_not != IGNORED]
            outside = tracked.find_outside(chosen) if accepted is None else ()
            left_out += [f"{path}: in another repository, or in none" for path in outside]
            left_out += not_accepted
        note = f"the head is detached: keep the commit with `git branch NAME {(made or '')[:12]}`"
        return Committed(
            commit=made,
            branch=branch.removeprefix("refs/heads/"),
            message=text,
            files=tuple(CommittedFile(path, each.kind) for path, each in memories.items()),
            settings=tuple(CommittedFile(path, taken[path].kind) for path in taken if path in settings),
            attachments=tuple(CommittedFile(path, taken[path].kind) for path in taken if path in attached),
            left_out=tuple(left_out),
            ignored=sum(left[path] == IGNORED for path in left if not _SETTINGS.fullmatch(path)),
            notes=(*notes, *((note,) if made and not branch else ())),
        )

    def _find_attached(
        self, tracked: Tracked, others: _Files, memories: _Files, chosen: Sequence[str] | None
    ) -> dict[str, Entry]:
        """Find the files that are no memories and are as mdmem left them, each with its last change.

        They go where a memory of the same change goes, or where they are `chosen`, with what they were called
        before. One that git never had stays out of it when it is moved.
        """
        log, made = read_log(self._vault), dict[str, tuple[Entry, set[str]]]()
        gone = {path for path, each in others.items() if each.kind == "removed"}
        for path, (names, steps) in follow_all(log, others).items():
            each = others[path]
            if bool(steps[0][1].after) != (each.kind != "removed"):
                continue
            was_known = len(names) == 1 or not steps[-1][1].before or not gone.isdisjoint(names)
            if was_known if each.kind != "changed" else tracked.holds_content(each.name, steps[0][1].after):
                made[path] = steps[0][0], {*names}
        taken = {
            path
            for path, (entry, _) in made.items()
            if any(file.path in memories for file in entry.files)
            or (chosen is not None and is_chosen(path, chosen))
        }
        taken |= {path for path, (_, names) in made.items() if names & taken}
        taken |= {name for path in taken for name in made[path][1] if name in made}
        return {path: entry for path, (entry, _) in made.items() if path in taken}

    def _find_secrets(self, tracked: Tracked, taken: _Files) -> list[str]:
        """Tell the secrets that a commit brings in, which other programs wrote."""
        config, told = self._vault.config.secrets, list[str]()
        for path, each in taken.items() if config.policy != "off" else ():
            now = _read(self._vault.find, path)
            before = _read(tracked.document, each.blob, path) if now and each.blob else None
            known = Counter(found.rule for found in standing(before, config)) if before else Counter[str]()
            for found in standing(now, config) if now else ():
                if known[found.rule]:
                    known[found.rule] -= 1
                else:
                    told.append(f"{found}: `mdmem check` says what to do")
        return told

    def _other_names(self, tracked: Tracked, found: _Files, chosen: Sequence[str]) -> list[str]:
        """List both names of renamed memories: half of a rename would lose the memory."""
        if not chosen or not {"added", "removed"} <= {each.kind for each in found.values()}:
            return []
        pairs = Review(self._vault, tracked, tracked.head, None).find_pairs()
        both = [pair[:2] for pair in pairs if pair.old and pair.new]
        return [path for pair in both if any(is_chosen(each, chosen) for each in pair) for path in pair]

    def allow(self, what: str, *, off: bool = False) -> str:
        """Let the vault do something for the user of this machine; see `Git.allow`."""
        if what not in {"commit", "hooks"}:
            raise Usage(problem=f"`commit` or `hooks` can be allowed, not {what!r}")
        root = self._vault.root
        allow(what, root if what == "commit" else Repository.around(root).top, allowed=not off)
        obstacle = self._find_obstacle() if what == "commit" and not off else None
        return f"nothing will be committed by itself: {_explain(obstacle)}" if obstacle else ""

    def refused(self) -> MdmemError | None:
        """Return why nothing is committed by itself, where the config asks for that; None otherwise."""
        asked = f'[git] commit = "{self._vault.config.git.commit}"'
        if self._vault.config.git.commit == "off":
            return None
        if not is_allowed("commit", self._vault.root):
            remedy = "if you want that, run `mdmem git allow commit`"
            return NotAllowed(path=CONFIG_PATH, what=f"{asked}: changes go to git", remedy=remedy)
        return self._find_obstacle()

    def _find_obstacle(self) -> MdmemError | None:
        try:
            repository = Repository.around(self._vault.root)
            if repository.holds_more_than(Tracked(self._vault.within(""), repository).names):
                reason = "[git] commit is for a repository of memories, and this one has other files as well"
                return GitRefused(path=CONFIG_PATH, reason=reason, remedy="commit with `mdmem git commit`")
        except MdmemError as error:
            return error
        return None

    def by_itself(self, only: Sequence[str] = ()) -> str:
        """Commit what has changed, or `only` these memories, where the config wants it and it may be.

        No error is raised, as the change itself stands. Return a word about what was not committed, and why.
        """
        try:
            if error := self.refused():
                raise error
            made = self.commit(only=only, is_alone=True)
        except MdmemError as error:
            return f"nothing was committed: {_explain(error)}"
        return "; ".join([*(f"not committed: {each}" for each in made.left_out if only), *made.notes])

    def _make_message(
        self, text: str, tracked: Tracked, taken: _Files, attached: _Attached, session: str
    ) -> str:
        led, direct = self._find_explaining(tracked, taken, attached)
        trailers: list[tuple[str, str]] = []
        for entry, actor, changed in led[-_MOST_OPERATIONS:]:
            trailers += [(OP, entry.message.strip() or "change"), (ID, entry.id)]
            trailers += [(ALSO, other) for other in _list_others(entry.message, [*dict.fromkeys(changed)])]
            trailers += [(AGENT, actor)] if actor.strip() else []
        if trailers:
            # Else it would seem that the operations made these changes, too.
            trailers += [(OP, f"edit {path} directly") for path in direct[:_MOST_OPERATIONS]]
        trailers += [(SESSION, session)] if session.strip() else []
        operations = [*dict.fromkeys(one_line(each.message) for each, *_ in led if each.message.strip())]
        return with_trailers(text.strip() or _default_message(taken, attached, operations), trailers)

    def _find_explaining(
        self, tracked: Tracked, taken: _Files, attached: _Attached
    ) -> tuple[list[_Led], list[str]]:
        """Return the changes that led from the head, and the memories that were edited directly.

        The changes are in order of time, each with its actor and the memories that it changed. A change that
        brought back what others had made has no actor.
        """
        heads = {path: _read(tracked.document, each.blob, path) for path, each in taken.items() if each.blob}
        is_removed = any(each.kind == "removed" for each in taken.values())
        log, known = read_log(self._vault), cache(tracked.history.change_ids)
        led: dict[str, _Led] = {}
        direct = []
        for path, each in taken.items():
            now, names = _read(self._vault.find_around, path), [path]
            if is_removed and each.kind == "added":
                [*follow(log, names)]  # it may have been moved
            head = next((heads[name] for name in names if name in heads), None)
            is_direct = False
            for maker in Steps(self._vault, log, path, now, head).find_changers(known):
                is_direct |= maker.is_direct
                back = maker.came_by
                if back and all(entry.id in known() for entry in maker.entries):
                    led.setdefault(back.id, (back, "", []))[2].append(path)
                for entry in maker.entries:
                    led.setdefault(entry.id, (entry, entry.actor, []))[2].append(path)
            if is_direct:
                direct.append(path)
        for entry in attached.values():
            if entry.id not in led and entry.id not in known():
                led[entry.id] = entry, entry.actor, []
        return [led[id_] for id_ in sorted(led)], direct


def _explain(error: MdmemError) -> str:
    return error.message + (f" ({error.hint})" if error.hint else "")


def _list_others(operation: str, changed: Sequence[str]) -> list[str]:
    """List the memories that an operation changed and does not name, or their number."""
    if not NAMES_A_MEMORY.search(operation):
        return []  # that may be about any
    others = [path for path in changed if path not in operation]
    return others if len(others) <= _MOST_ALSO else [f"{len(others):,} memories"]


def _read(read: Callable[..., Document | None], *given: str) -> Document | None:
    with suppress(DocumentRefused, StorageFailed):
        return read(*given)
    return None


def _describe_untracked(repository: Repository, left: _Files) -> list[str]:
    """Say which files that are no memories git does not know, and how they are added."""
    names = [each.name for each in left.values() if each.is_new and not each.why_not]
    if not names:
        return []
    added = " ".join(map(shlex.quote, names[:_MOST_UNTRACKED]))
    paths = first_of([path for path, each in left.items() if each.name in names], _MOST_UNTRACKED)
    command = f"git -C {shlex.quote(repository.top)} add {added}"
    return [f"new to git, no memories, and not in the commit: {paths}; `{command}` adds them"]


def _default_message(taken: _Files, attached: _Attached, operations: Sequence[str]) -> str:
    if len(operations) == 1:
        return one_line(operations[0][:1].upper() + operations[0][1:], _LONGEST_LINE)
    if not taken:
        what = first_of([*attached], 2) or "the settings of the vault"
        return one_line(f"Change {what}", _LONGEST_LINE)
    kinds = {each.kind for each in taken.values()}
    paths = " and ".join(taken) if len(taken) <= 2 else f"{len(taken):,} memories"  # noqa: PLR2004
    subject = one_line(f"{_DONE[kinds.pop()] if len(kinds) == 1 else 'Change'} {paths}", _LONGEST_LINE)
    told, more = operations[:_MOST_OPERATIONS], len(operations) - _MOST_OPERATIONS
    told = [*told, f"and {more:,} more"] if more > 0 else told
    return "\n- ".join([f"{subject}\n", *told]) if told else subject
