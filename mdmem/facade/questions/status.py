"""The status: what is here, what waits for somebody, and what is wrong with the setup.

The index and git are asked, and few files are read; `check` and `doctor` look at all.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from mdmem.errors import MdmemError, plural
from mdmem.facade.questions.check import find_hidden
from mdmem.facade.questions.doctor import find_unignored
from mdmem.facade.scoped import ScopedMemory
from mdmem.facade.service import Service
from mdmem.git.repository import Repository
from mdmem.hosts.hosts import find_installed
from mdmem.index.view import View
from mdmem.review.merge_setup import find_missing_driver
from mdmem.review.review import Review
from mdmem.review.tracked import Tracked, describe_ignored
from mdmem.vault.paths import Namespace, Scope

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatus:
    """What is here, and what waits for somebody; a number is None where it cannot be known.

    Attributes:
        root: the absolute path of the vault's folder.
        passed_over: the files of text that are no memories by their names, counted by suffix, and Markdown
            below hidden folders, by the name of the folder.
        uncommitted: memories that differ from the last commit; None also where there is no repository.
        stale: citations of code that has moved, has changed or is gone.
        broken: links that lead nowhere; also those that a comment in the memory silences for `check`, which
            reads it.
        unwritten: links to pages that nobody has written yet, in notes of Obsidian; `broken` has none.
        ambiguous: links that may mean several memories, counted in the same way.
        setup: what is wrong with the setup, and that a merge left conflicts; empty where all is well.
    """

    root: str
    scope: str
    memories: int | None
    passed_over: Mapping[str, int]
    uncommitted: int | None
    proposals: int | None
    stale: int | None
    broken: int | None
    unwritten: int | None
    ambiguous: int | None
    setup: tuple[str, ...]


def find_status(memory: ScopedMemory, service: Service, view: Callable[[], View]) -> MemoryStatus:
    """Return the status of a namespace. What cannot be asked is told in its `setup`, and is no error."""
    wrong: list[str] = []
    view = cache(view)

    def ask(question: Callable[[], T]) -> T | None:
        try:
            return question()
        except MdmemError as error:
            wrong.append(error.message)
            return None

    memories = ask(lambda: view().count_memories())
    uncommitted, unmerged, said = ask(lambda: _count_in_git(memory)) or (None, 0, ())
    if unmerged:
        has = "has" if unmerged == 1 else "have"
        wrong.append(
            f"{plural(unmerged, 'memory')} {has} merge conflicts: `git status` and `mdmem check` say where"
        )
    wrong += said
    proposals = ask(lambda: len(memory.inbox.list()))
    pointing = ask(lambda: Counter(name for name, _ in memory.references.wrong()))
    ask(lambda: wrong.extend(_look_at_setup(memory, service, view())))
    return MemoryStatus(
        root=memory.name,
        scope=_describe_scope(memory.scope),
        memories=memories,
        passed_over=ask(memory.passed_over) or {},
        uncommitted=uncommitted,
        proposals=proposals,
        stale=None if pointing is None else pointing["stale"],
        broken=None if pointing is None else pointing["broken"],
        unwritten=None if pointing is None else pointing["unwritten"],
        ambiguous=None if pointing is None else pointing["ambiguous"],
        setup=tuple(dict.fromkeys((*wrong, *service.remarks))),
    )


def _describe_scope(scope: Scope) -> str:
    resource = f"{scope.resource_type}/{scope.resource_id}" if scope.resource_type else None
    bound = (("user", scope.user), ("project", scope.project), ("resource", resource))
    named = [f"{name} {value}" for name, value in bound if value is not None]
    named += ["shared"] if scope.shared else []
    return ", ".join(named) or "all of it"


def _count_in_git(memory: ScopedMemory) -> tuple[int, int, Sequence[str]] | None:
    """Count the memories that are not as the last commit has them, and those that git could not merge.

    Returns:
        Both numbers, and what is wrong with the setup of git, or differs in the settings of the vault; None
        without a repository.
    """
    repository = Repository.find(memory.root)
    if repository is None:
        return None
    with Tracked(memory.vault, repository) as tracked:
        review = Review(memory.vault, tracked, tracked.head, None)
        count, settings = len(review.find_differing()), review.describe_settings()
        ignored = describe_ignored(tracked, tracked.ignored)
        missing = None if memory.vault.namespace else find_missing_driver(repository)
        said = [f"{each.message}; {each.hint}" for each in (missing, ignored) if each]
        return count, len(tracked.unmerged()), [*said, settings] if settings else said


def _look_at_setup(memory: ScopedMemory, service: Service, view: View) -> Iterator[str]:
    vault = memory.vault
    for refused in (service.capture_refused, service.commit_refused):
        if refused:
            yield f"{refused.message}: {refused.hint}"
    for path, parts in vault.disk.mounts.items():
        if vault.wall.holds(path) and not os.path.exists(os.path.join(vault.workspace, *parts)):
            yield f"no {os.path.join(*parts)} yet: `{shlex.join(('mdmem', 'append', path))} TEXT` makes it"
    for hidden in find_hidden(vault):
        yield f"{hidden.path}: {hidden.message}: {hidden.hint}"
    if vault.wall == Namespace() and (lines := find_unignored(vault)):
        what = "a line" if len(lines) == 1 else f"{len(lines)} lines"
        yield f".gitignore lacks {what} that keep private files out of git: `mdmem doctor --fix` adds them"
    if count := len(view.problems()):
        yield f"{plural(count, 'file')} cannot be read as memories"
    if count := len(view.flaws()):
        yield f"the frontmatter of {plural(count, 'memory')} cannot be read: `mdmem check` says why"
    if not find_installed(memory.root):
        yield "no agent is set up: `mdmem install claude-code`"
