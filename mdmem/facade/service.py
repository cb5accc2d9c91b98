"""What a program that serves memories to others looks after beside them: warnings, consent, commits."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError, NotAllowed, NotReady
from mdmem.facade.lazy import Lazy
from mdmem.kind import PROPOSAL, kind_at
from mdmem.vault.files import status_of
from mdmem.vault.vault import acting_for

if TYPE_CHECKING:
    from mdmem.facade.scoped import ScopedMemory
    from mdmem.review.commits import Commits
    from mdmem.vault.transaction import Applied

Seen = dict[str, list[int]]


class Service:
    """What front ends ask of memories that they serve; see `Memory.service`."""

    _commits: Lazy[Commits] = Lazy("mdmem.review.commits:Commits", "_vault", doc="What commits to git.")

    def __init__(self, memory: ScopedMemory) -> None:
        self._memory = memory
        self._vault = memory.vault
        self._words: list[str] = []

    @property
    def remarks(self) -> list[str]:
        """Warnings of the vault, the index and git so far, oldest first, without repeats."""
        of_index = self._memory.index.notes if "index" in vars(self._memory) else []
        return list(dict.fromkeys((*self._vault.notes, *of_index, *self._words)))

    @property
    def capture_refused(self) -> NotAllowed | None:
        """Why hooks keep and observe no conversations, where the config asks for that; None otherwise."""
        config = self._vault.config
        if not (config.sessions.capture or config.observation.enabled or self.is_captured):
            return None
        from mdmem.conversations.log.logs import capture_refused  # noqa: PLC0415 - start-up

        return capture_refused(self._vault)

    @property
    def is_captured(self) -> bool:
        """Whether the config asks for what is stated, and for outputs of tools, to be kept."""
        return self._vault.config.capture.policy != "off"

    @property
    def commit_refused(self) -> MdmemError | None:
        """Why nothing is committed to git by itself, where the config asks for that; None otherwise."""
        return self._commits.refused() if self._vault.config.git.commit != "off" else None

    def commit_left(self) -> str:
        """Commit to git what a session or a server leaves, where the config asks for that and it may be.

        Returns:
            A word about what was not committed, and why; no error is raised.
        """
        return self._commits.by_itself() if self._vault.config.git.commit != "off" else ""

    def count_waiting(self) -> int:
        """Count the memories to be reviewed; 0 where git cannot say, or has no commit to compare with."""
        from mdmem.review.review import Review  # noqa: PLC0415 - few hooks ask
        from mdmem.review.tracked import Tracked  # noqa: PLC0415 - as above

        with suppress(MdmemError), Tracked(self._vault) as tracked:
            if tracked.head:
                found = Review(self._vault, tracked, tracked.head, None).find_differing()
                return sum(kind_at(pair.path) is not PROPOSAL for pair in found)
        return 0

    def commit_applied(self, applied: Applied) -> Applied:
        """Commit a change to git, where the config asks for each to be, and return it."""
        if applied.files and self._vault.config.git.commit == "auto":
            suffixes = self._vault.suffixes
            word = self._commits.by_itself([f.path for f in applied.files if f.path.endswith(suffixes)])
            self._words += [word] if word else []
        return applied

    def acting_for(self, actor: str) -> AbstractContextManager[None]:
        """Let changes meanwhile be made by `actor`, such as a client that named itself, if none was given."""
        return acting_for(actor)

    def require_folder(self, what: str) -> None:
        """Raise NeedsFolder where the vault is in a database: it has no folder of the user's own."""
        self._vault.require_folder(what)

    def hurry(self) -> None:
        """Let questions raise NotReady from now on, where the index cannot answer at once."""
        self._vault.is_hurried = True

    @property
    def not_ready(self) -> NotReady | None:
        """Why the index did not answer somebody in a hurry; None where it did, or was not asked."""
        return self._memory.index.refused if "index" in vars(self._memory) else None

    def begin_session(self) -> None:
        """Make the index current; where it is not ready, let `context` read the files that it needs."""
        self._vault.recover()
        with suppress(NotReady):
            if not self._memory.index.is_missed:
                self._memory.index.sync(texts=False)
                return
        self.read_files()

    def read_files(self) -> None:
        """Let `context` without a query read the files that it needs."""
        from mdmem.index.unindexed import FileIndex  # noqa: PLC0415 - few wait for an index

        self._memory.index = FileIndex(self._vault, self._memory.scope.layers, self.not_ready)
        # Needed next; they are imported while ripgrep is at work.
        from mdmem.document import properties  # noqa: F401, PLC0415
        from mdmem.facade import background  # noqa: F401, PLC0415
        from mdmem.memory import validity  # noqa: F401, PLC0415
        from mdmem.vault.template import rendering, templates  # noqa: F401, PLC0415

    def start_indexing(self) -> None:
        """Let another process make the index current."""
        from mdmem.facade.background import start_indexing  # noqa: PLC0415 - as below

        start_indexing(self._memory)

    def begin_indexing(self) -> bool:
        """Make the index current, or where that takes long let another process do so; no error is raised.

        Returns:
            Whether it is current.
        """
        hurried = type(self._memory)(self._vault.store, self._memory.scope)
        hurried.vault.is_hurried = True
        with suppress(MdmemError):  # the first question meets it, and says so
            try:
                hurried.sync()
            except NotReady:
                self.start_indexing()
            else:
                return True
            finally:
                hurried.index.close()
        return False

    @property
    def figures(self) -> Mapping[str, float]:
        """What the store has counted since it was opened, by name; nothing of a folder."""
        return getattr(self._vault.store, "figures", {})

    def start_background(self, session: str) -> bool:
        """Let another process observe and capture a session; see `mdmem.facade.background.start`."""
        if not (self._vault.config.observation.enabled or self.is_captured) or self.capture_refused:
            return False
        from mdmem.facade.background import start  # noqa: PLC0415 - few vaults want it

        return start(self._memory, session)

    def find_changed(
        self, folder: str, session: str, edited: Collection[str] = ()
    ) -> tuple[list[str], float]:
        """Return the memories and cited files that differ from when a session last looked, and when it did.

        At its first look, none does. What other sessions have edited meanwhile is not among them; what an
        editor has saved is.

        Args:
            folder: where sessions keep what they have seen.
            session: the session, as a part of a file name.
            edited: the files that the session has just changed, as absolute paths; others are told of them.
        """
        place, own = os.path.join(folder, f"seen.{session}"), os.path.join(folder, f"edited.{session}")
        before = _load_seen(place)
        now = _look_at_files(self._memory, before)
        since = os.stat(place).st_mtime_ns if before else 0
        _keep_seen(place, now)
        if edited:
            _keep_seen(
                own, _load_seen(own) | {file: _stamp_file(file) for file in map(os.path.realpath, edited)}
            )
        changed = {file for file in before if before[file] != now.get(file)}
        changed |= {file for file in now if before and file not in before and self._memory.at(file)}
        for entry in os.scandir(folder) if changed else ():
            if entry.name.startswith("edited.") and entry.path != own and entry.stat().st_mtime_ns >= since:
                changed -= {
                    file for file, seen in _load_seen(entry.path).items() if seen == now.get(file, [])
                }
        return sorted(changed), since / 1e9


def _look_at_files(memory: ScopedMemory, before: Seen) -> Seen:
    """Return the stamps of all memories and of the files that they cite; without an index, the old ones."""
    vault = memory.vault
    mounted, root = vault.mounted(""), os.path.join(vault.root, vault.namespace)
    try:
        view = memory._current_view()  # noqa: SLF001 - of one façade
        memories, cited = view.seen_files(), view.cited_paths()
    except MdmemError:
        memories = {each.path: list(each.seen) for each in vault.walk() if not each.problem}
        view, cited = None, []
    seen = {mounted.get(path) or os.path.join(root, path): stamp for path, stamp in memories.items()}
    if view is None:
        return before | seen
    from mdmem.index.code.cited_path import candidates  # noqa: PLC0415 - start-up

    # Only what a link names depends on the folder that the memory is in.
    for citing, name, in_link in {(path if in_link else "", name, in_link) for path, name, in_link in cited}:
        for each in candidates(view.in_workspace(citing) if citing else "", name, in_link=bool(in_link)):
            file = os.path.join(vault.workspace, each)
            if file not in seen and (found := _stamp_file(file)):
                seen[file] = found
    return seen


def _stamp_file(file: str) -> list[int]:
    found = status_of(file, follows=True)
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino] if found else []


def _load_seen(place: str) -> Seen:
    try:
        with open(place, "rb") as file:
            kept = json.load(file)
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _keep_seen(place: str, seen: Seen) -> None:
    staged = f"{place}.{os.getpid()}"
    with open(staged, "w", encoding="utf-8") as file:
        file.write(json.dumps(seen))  # which takes a quarter of the time of `dump`
    os.replace(staged, place)
