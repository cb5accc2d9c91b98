"""One plan being applied, with the vault's lock held: compare, merge, commit, and go again when raced."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mdmem.errors import AlreadyExists, Conflict, DocumentRefused, FileBusy
from mdmem.text.diff import unified
from mdmem.text.document import Document, Limits, parse, parse_text
from mdmem.text.lines import LINE_END
from mdmem.text.merge import merge
from mdmem.vault import files
from mdmem.vault.files import Content, Raced
from mdmem.vault.journal import BUSY_SECONDS, Journal, Step
from mdmem.vault.paths import check_memory, join, relative
from mdmem.vault.trash import Entry, FileChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mdmem.vault.plan import Change, EditPlan

# How often a program that takes no lock may come in between before we give up.
_RACES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a plan did.

    Attributes:
        id: names the change, for `undo`; empty when nothing changed.
        files: the memories that changed, with their hashes before and after.
        merged: the paths whose file had changed since it was read, and was merged.
        plan: the plan that was applied.
    """

    id: str
    files: tuple[FileChange, ...]
    merged: tuple[str, ...]
    plan: EditPlan

    def as_dict(self) -> dict[str, Any]:
        """What changed, as a JSON object."""
        changed = [{"path": f.path, "before": f.before, "after": f.after} for f in self.files]
        return {
            "id": self.id,
            "message": self.plan.message,
            "files": changed,
            "merged": list(self.merged),
            "left_out": list(self.plan.left_out),
            "warnings": [finding.as_dict() for finding in self.plan.warnings],
        }


@dataclass(slots=True, kw_only=True)
class Transaction:
    """A plan on its way to the disk.

    Attributes:
        plan: the plan; its paths are relative to `namespace`.
        afters: what each of its changes results in.
        journal: what makes the steps happen together.
        read: the settled content of a memory's file, in a certain spelling where one is given; None where
            there is none.
        spelled: the path of a memory's file as the disk spells it, as the whole vault names it.
        check: refuses a document that has findings which the one before had not.
        may_merge: whether a file that has changed since may be merged.
    """

    plan: EditPlan
    afters: Sequence[Document | None]
    namespace: str
    actor: str
    limits: Limits
    journal: Journal
    read: Callable[[str, str], Content | None]
    spelled: Callable[[str], str]
    check: Callable[[Document | None, Document], None]
    may_merge: bool

    def run(self) -> Applied:
        """Apply the plan, as `Vault.apply` says."""
        for _ in range(_RACES):
            merged: list[str] = []
            steps = _in_order(list(self._steps(merged)))
            if not steps:
                return Applied(id="", files=(), merged=(), plan=self.plan)
            entry = self._entry(steps, self.plan.message)
            try:
                self._commit(entry, steps)
            except Raced as race:
                # What a program wrote in the instant of the exchange, and what it wrote right after that, on
                # top of ours, are brought together. Then ours has landed already, and must not land twice.
                if self._absorb(race.late, steps) and len(steps) == 1:
                    shown = self._shown(entry)
                    return Applied(id=entry.id, files=shown, merged=(steps[0].path,), plan=self.plan)
                continue
            return Applied(id=entry.id, files=self._shown(entry), merged=tuple(merged), plan=self.plan)
        raise FileBusy(path=self.plan.paths[0], seconds=BUSY_SECONDS)

    def _commit(self, entry: Entry, steps: Sequence[Step]) -> None:
        try:
            self.journal.commit(entry, steps)
        except FileBusy as error:
            raise FileBusy(path=relative(error.path, self.namespace), seconds=error.seconds) from None
        except OSError as error:
            raise files.refusal(error, steps[0].path, "write it") from None

    def _entry(self, steps: Sequence[Step], message: str) -> Entry:
        changed = tuple(
            FileChange(
                path=join(self.namespace, step.path),
                before=_hash(step.before.data if step.before else None),
                after=_hash(step.after),
                spelled=step.spelled,
                mode=step.before.mode if step.before and step.after is None else 0,
            )
            for step in steps
        )
        return new_entry(self.plan.actor or self.actor, message, changed)

    def _shown(self, entry: Entry) -> tuple[FileChange, ...]:
        return tuple(replace(file, path=relative(file.path, self.namespace)) for file in entry.files)

    def _steps(self, merged: list[str]) -> Iterator[Step]:
        """The steps of all changes, computed against what is on the disk now."""
        for change, prepared in zip(self.plan.changes, self.afters, strict=True):
            after = prepared
            path = check_memory(change.path)
            back = change.back.spelled if change.back else ""
            now = self.read(path, back)
            base = change.before.data if change.before else None
            if (now.data if now else None) != base:
                after = self._merge(change, after, now)
                merged.append(path)
            content = after.data if after else None
            spelled = join(self.namespace, back) if back else self.spelled(path)
            if change.move_to is None:
                if (now.data if now else None) != content:
                    like = self._as_it_was(change.back) if change.back else None
                    yield Step(path=path, before=now, after=content, like=like, spelled=spelled)
            elif self.read(change.move_to, "") is not None:
                raise AlreadyExists(path=change.move_to, remedy="move or delete that one first")
            else:
                new = check_memory(change.move_to)
                yield Step(path=new, before=None, after=content, like=now, spelled=self.spelled(new))
                yield Step(path=path, before=now, after=None, spelled=spelled)

    def _as_it_was(self, back: FileChange) -> Content | None:
        """What was deleted, with its permissions and owner; None where it is not kept."""
        kept = self.journal.trash.kept(back.before or "")
        return kept._replace(mode=back.mode) if kept and back.mode else kept

    def _merge(self, change: Change, after: Document | None, now: Content | None) -> Document | None:
        """The change made to what is on the disk now, or a refusal that shows what became of it."""
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

    def _absorb(self, late: Mapping[str, bytes], steps: Sequence[Step]) -> bool:
        """See to it that what came late is in the file that it belongs to; whether all steps have landed.

        Raises:
            Conflict: it cannot be merged; it is kept in the trash, under the hash that the error carries.
        """
        landed = bool(late)
        self._set_aside(late, steps)
        for step in steps:
            content = late.get(join(self.namespace, step.path))
            if content is None or step.before is None:
                landed = False
                continue
            now = self._unite(step, content)
            landed = landed and step.after is not None and _holds(now, step.before.data, step.after)
        return landed

    def _set_aside(self, late: Mapping[str, bytes], steps: Sequence[Step]) -> None:
        """Keep what came late: its writer may have read ours in between, and overwrite its own with that."""
        for step in steps:
            data = late.get(join(self.namespace, step.path))
            if data is not None:
                entry = self._entry([step], f"set aside what another program wrote to {step.path}")
                kept = replace(entry.files[0], before=_hash(data))
                with files.translated(step.path, "keep what another program wrote"):
                    self.journal.trash.keep(data, hashlib.sha256(data).hexdigest())
                    self.journal.trash.record(replace(entry, files=(kept,)))

    def _unite(self, step: Step, late: bytes) -> bytes:
        """Merge `late` into what stands in the file of `step`; what stands there then."""
        for _ in range(_RACES):
            now = self.read(step.path, "")
            base = step.before.data if step.before else b""
            if now is None or _holds(now.data, base, late):
                return now.data if now else b""
            united = self._united(step.path, base, now.data, late)
            again = Step(path=step.path, before=now, after=united, spelled=step.spelled)
            entry = self._entry([again], f"keep what another program wrote to {step.path}")
            try:
                self._commit(entry, [again])
            except Raced as race:
                self._absorb(race.late, [again])
                continue
            return united
        raise FileBusy(path=step.path, seconds=BUSY_SECONDS)

    def _united(self, path: str, base: bytes, now: bytes, late: bytes) -> bytes:
        try:
            documents = [parse(path, data, self.limits) for data in (base, now, late)]
            text = merge(*documents).text
        except DocumentRefused:
            text = None
        if text is None:
            diff = unified(now.decode("utf-8", "replace"), late.decode("utf-8", "replace"), path)
            raise Conflict(path=path, base=_hash(late), actual=_hash(now), diff=diff)
        return text.encode()


def _in_order(steps: list[Step]) -> list[Step]:
    """The steps, with those last that make a name again which another step takes away in another case.

    Where names that differ only in case are one, the old one has to go first. All others come first, so that
    a memory is always there for a program that takes no lock.
    """
    gone = {step.path.casefold() for step in steps if step.after is None}
    return sorted(steps, key=lambda step: step.after is not None and step.path.casefold() in gone)


def _holds(now: bytes, base: bytes, new: bytes) -> bool:
    """Whether `now` has every line that `new` added to `base`, and none that it removed."""
    present, old, wanted = (
        Counter(LINE_END.split(data.decode("utf-8", "replace"))) for data in (now, base, new)
    )
    added = all(present[line] >= wanted[line] for line in wanted - old)
    return added and all(present[line] <= wanted[line] for line in old - wanted)


def _hash(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def new_entry(actor: str, message: str, changed: tuple[FileChange, ...]) -> Entry:
    """The entry of a change that is made now, with an id of its own."""
    now = datetime.now(UTC)
    identifier = f"{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(2)}"
    time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Entry(id=identifier, time=time, actor=actor, message=message, files=changed)
