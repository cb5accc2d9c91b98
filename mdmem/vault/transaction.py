"""One plan being applied, with the vault's lock held: compare, merge, commit, and go again when raced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdmem.document.document import Document, Limits, UnreadableDocument, parse, parse_text
from mdmem.document.merging.merge import merge
from mdmem.document.text.diff import unified
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.tokens import first_of
from mdmem.errors import AlreadyExists, ConfigInvalid, Conflict, DocumentRefused, FileBusy, PathRefused
from mdmem.vault import config
from mdmem.vault.config import CONFIG_PATH, ConfigChange
from mdmem.vault.files import BUSY_SECONDS, Content, Raced
from mdmem.vault.paths import above, check_folder, check_memory, is_under, join, relative, seen_from
from mdmem.vault.plan import AttachmentChange, Change, EditPlan, Prepared, change_shape
from mdmem.vault.store import (
    MOST_ATTACHED_BYTES,
    FileChange,
    Step,
    Store,
    changed_by,
    hashed,
    new_entry,
)

# How often a program that takes no lock may come in between before we give up.
_RACES = 50
_NAMED = 4  # memories in a representation


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Applied:
    """What a plan did.

    Attributes:
        id: names the change, for `undo`; empty when nothing changed.
        files: the memories that changed, with their hashes before and after.
        merged: the files that had changed since they were read, and were merged.
        ids: of each change that was made, oldest first: several where the plan sums up several.
    """

    id: str
    files: tuple[FileChange, ...]
    merged: tuple[str, ...]
    plan: EditPlan
    ids: tuple[str, ...] = ()

    def __repr__(self) -> str:
        done = [f"{file.did} {file.path}" for file in self.files]
        return f"Applied({self.id!r}, {first_of(done, _NAMED)})"

    def json_shape(self) -> dict[str, Any]:
        """Return what changed, as a JSON object; `diff` shows the plan, even if a file was merged."""
        return change_shape(self.plan, self.files, applied=True, ident=self.id, merged=self.merged)


@dataclass(slots=True, kw_only=True)
class Transaction:
    """A plan on its way to the disk.

    Attributes:
        prepared: the plan, and what each of its changes results in; paths are relative to `namespace`.
        check: refuses a document that has findings which the one before had not.
        may_merge: whether a file that has changed since may be merged.
    """

    prepared: Prepared
    namespace: str
    actor: str
    limits: Limits
    store: Store
    check: Callable[[Document, Document], None]
    may_merge: bool

    def run(self) -> Applied:
        """Apply the plan, as `Vault.apply` says."""
        plan = self.prepared.plan
        gone = _Gone(self.store, self.namespace, plan)
        for _ in range(_RACES):
            merged: list[str] = []
            steps = list(self._make_steps(merged, gone))
            if not steps:
                return Applied(id="", files=(), merged=(), plan=plan)
            if len(steps) > 1:
                # All that need not wait is made before anything goes, so that a memory is always there for a
                # program that takes no lock.
                steps.sort(key=lambda step: step.after is not None and gone.meets(step.path))
            entry = new_entry(self.actor, plan.message, changed_by(steps))
            entry = entry._replace(undoes=plan.undoes, redoes=plan.redoes)
            try:
                with seen_from(self.namespace):
                    self.store.commit(entry, steps)
            except Raced as race:
                # What a program wrote in the instant of the exchange, and what it wrote right after that, on
                # top of ours, are brought together. Then ours has landed already, and must not land twice.
                if not self._absorb_late(race.late, steps) or len(steps) > 1:
                    continue
                merged = [relative(steps[0].path, self.namespace)]
            files = (
                file._replace(path=relative(file.path, self.namespace))
                for file in entry.files
                if file.path != CONFIG_PATH
            )
            made = (entry.id,)
            return Applied(id=entry.id, files=tuple(files), merged=tuple(merged), plan=plan, ids=made)
        raise FileBusy(path=plan.paths[0], seconds=BUSY_SECONDS)

    def compare(self) -> None:
        """Refuse the plan if a file has changed since it was made, and nothing may be merged."""
        for _ in self._make_steps([], _Gone(self.store, self.namespace, self.prepared.plan)):
            pass

    def _read_content(self, path: str, *, exact: bool = False, limit: int = 0) -> Content | None:
        with seen_from(self.namespace):
            return self.store.read(path, limit or self.limits.max_bytes, exact=exact, settled=True)

    def _read_freed(self, path: str, gone: _Gone, back: str = "", limit: int = 0) -> Content | None:
        try:
            return self._read_content(back or path, exact=bool(back), limit=limit)
        except PathRefused:
            if not gone.frees(path):
                raise
            return None

    def _make_steps(self, merged: list[str], gone: _Gone) -> Iterator[Step]:
        for change, planned in zip(self.prepared.plan.changes, self.prepared.afters, strict=True):
            after = planned
            path = join(self.namespace, check_memory(change.path))
            back = join(self.namespace, change.back.spelled) if change.back and change.back.spelled else ""
            limit = MOST_ATTACHED_BYTES if isinstance(change.before, UnreadableDocument) else 0
            now = self._read_freed(path, gone, back, limit)
            base = change.before.data if change.before else None
            if (now.data if now else None) != base:
                after = self._merge_change(change, after, now)
                merged.append(relative(path, self.namespace))
            content = after.data if after else None
            spelled = back or self.store.spelled(path)
            if change.move_to is None:
                if (now.data if now else None) != content:
                    like = self._as_it_was(change.back) if change.back else None
                    yield Step(path=path, before=now, after=content, like=like, spelled=spelled)
            else:
                new = join(self.namespace, check_memory(change.move_to))
                if self._read_freed(new, gone) is not None:
                    raise AlreadyExists(path=change.move_to, remedy="move or delete that one first")
                yield Step(path=new, before=None, after=content, like=now, spelled=self.store.spelled(new))
                yield Step(path=path, before=now, after=None, spelled=spelled)
        for each in self.prepared.plan.attachments:
            yield from self._change_attachment(each, gone)
        if self.prepared.plan.config:
            yield from self._change_config(self.prepared.plan.config)

    def _change_config(self, change: ConfigChange) -> Iterator[Step]:
        """Yield the step that changes the config; where it cannot be changed so, a note says it."""
        now = self.store.read(CONFIG_PATH, config.MAX_BYTES, settled=True)
        data = now.data if now else None
        old, new = change.back or (None, None)
        kept = self.store.kept(old) if old else None
        try:
            if change.back and hashed(data) == new and (kept or not old):
                after = kept.data if kept else None
            else:
                after = change.change((data or b"").decode()).encode()
        except (ConfigInvalid, UnicodeDecodeError) as error:
            if str(error) not in self.store.notes:
                self.store.notes.append(str(error))
            return
        if after != data:
            yield Step(path=CONFIG_PATH, before=now, after=after, spelled=CONFIG_PATH)

    def _change_attachment(self, changed: AttachmentChange, gone: _Gone) -> Iterator[Step]:
        old, new = (join(self.namespace, check_folder(path)) for path in (changed.path, changed.move_to))
        now = self._read_content(old, limit=MOST_ATTACHED_BYTES) if changed.path else None
        actual = hashed(now.data) if now else None
        if changed.path and actual != changed.hash:
            raise Conflict(path=changed.path, base=changed.hash, actual=actual)
        if changed.move_to:
            if self.store.stands(new) and not gone.frees(new):
                raise AlreadyExists(path=changed.move_to, remedy="move or delete that one first")
            data = now.data if now else changed.content
            yield Step(path=new, before=None, after=data, like=now, spelled=self.store.spelled(new))
        if changed.path:
            yield Step(path=old, before=now, after=None, spelled=self.store.spelled(old))

    def _as_it_was(self, back: FileChange) -> Content | None:
        """Return what was deleted, with its permissions and owner; None where it is not kept."""
        kept = self.store.kept(back.before or "")
        return kept._replace(mode=back.mode) if kept and back.mode else kept

    def _merge_change(self, change: Change, after: Document | None, now: Content | None) -> Document | None:
        theirs = parse(change.path, now.data, self.limits) if now else None
        if theirs and after and self.may_merge and change.merge:
            base = change.before or parse(change.path, b"", self.limits)
            result = merge(base, after, theirs)
            if result.text is not None:
                document = parse_text(after.path, result.text, self.limits)
                self.check(theirs, document)
                return document
        if theirs and change.before is None:
            raise AlreadyExists(path=change.path, remedy="read it, and change it with its hash as the base")
        before = change.before.text if change.before else None
        diff = unified(before, theirs.text if theirs else None, change.path)
        raise Conflict(path=change.path, base=change.base, actual=theirs.hash if theirs else None, diff=diff)

    def _absorb_late(self, late: Mapping[str, bytes], steps: Sequence[Step]) -> bool:
        """Merge what came late into the files that it belongs to; return whether all steps have landed.

        Raises:
            Conflict: it cannot be merged; it is kept under the hash that the error carries.
        """
        landed = bool(late)
        for step in steps:
            content = late.get(step.path)
            if content is None or step.before is None or step.path == CONFIG_PATH:  # no memory; made again
                landed = False
                continue
            now = self._merge_late_content(step, content)
            landed = landed and step.after is not None and _holds_change(now, step.before.data, step.after)
        return landed

    def _merge_late_content(self, step: Step, late: bytes) -> bytes:
        """Merge `late` into the file of `step`, and return what stands there then."""
        path = relative(step.path, self.namespace)
        for _ in range(_RACES):
            now = self._read_content(step.path)
            base = step.before.data if step.before else b""
            if now is None or _holds_change(now.data, base, late):
                return now.data if now else b""
            united = self._merge_contents(path, base, now.data, late)
            again = Step(path=step.path, before=now, after=united, spelled=step.spelled)
            entry = new_entry(self.actor, f"keep what another program wrote to {path}", changed_by([again]))
            try:
                with seen_from(self.namespace):
                    self.store.commit(entry, [again])
            except Raced as race:
                self._absorb_late(race.late, [again])
                continue
            return united
        raise FileBusy(path=path, seconds=BUSY_SECONDS)

    def _merge_contents(self, path: str, base: bytes, now: bytes, late: bytes) -> bytes:
        try:
            documents = [parse(path, data, self.limits) for data in (base, now, late)]
            text = merge(*documents).text
        except DocumentRefused:
            text = None
        if text is None:
            diff = unified(now.decode("utf-8", "replace"), late.decode("utf-8", "replace"), path)
            raise Conflict(path=path, base=hashed(late), actual=hashed(now), diff=diff)
        return text.encode()


class _Gone:
    """The files that a plan takes away; their names and those of their folders become free."""

    def __init__(self, store: Store, namespace: str, plan: EditPlan) -> None:
        self._store = store
        # By their casefolded names: some file systems take names that differ in case alone for the same.
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        for path in plan.freed_paths():
            full = join(namespace, check_folder(path))
            self._files[full.casefold()] = full
            for folder in above(full):
                self._folders[folder.casefold()] = folder

    def meets(self, path: str) -> bool:
        name = path.casefold()
        return name in self._folders or not self._files.keys().isdisjoint((name, *above(name)))

    def frees(self, path: str) -> bool:
        """Return whether nothing else is at a path, where a folder is or nothing can be read."""
        inside = (folder for key, folder in self._folders.items() if is_under(key, path.casefold()))
        names = (join(each, name).casefold() for each in (path, *inside) for name in self._store.names(each))
        is_free = self._files.get(path.casefold(), path) == path and self.meets(path)
        return is_free and all(name in self._files or name in self._folders for name in names)


def _holds_change(now: bytes, base: bytes, new: bytes) -> bool:
    """Return whether `now` has every line that `new` added to `base`, and none that it removed."""
    present, old, wanted = (
        Counter(LINE_END.split(data.decode("utf-8", "replace"))) for data in (now, base, new)
    )
    added = all(present[line] >= wanted[line] for line in wanted - old)
    return added and all(present[line] <= wanted[line] for line in old - wanted)
