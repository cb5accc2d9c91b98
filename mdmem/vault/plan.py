"""The edit plan: every change to memories, as a value, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mdmem.diagnostic import Diagnostic
from mdmem.errors import EditRefused, PathRefused
from mdmem.text.document import Document, Limits, parse, parse_text
from mdmem.text.edit import TextEdit, ordered, splice
from mdmem.vault.paths import check_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of one memory: edits, or new content, or deletion, or a move (with or without edits).

    Attributes:
        path: the memory, as the vault names it.
        before: the document that the change was computed from; None: the memory must not exist.
        edits: spans of `before` and what stands there afterwards.
        content: all of the new bytes.
        delete: the memory goes.
        move_to: its new path.
        merge: when the file has changed since `before` was read, merge three-way where that is
            unambiguous; otherwise refuse at once.
    """

    path: str
    before: Document | None
    edits: tuple[TextEdit, ...] = ()
    content: bytes | None = None
    delete: bool = False
    move_to: str | None = None
    merge: bool = True

    @property
    def base(self) -> str | None:
        """The SHA-256 of the bytes that the change was computed from; None: the memory must not exist."""
        return self.before.hash if self.before else None

    def after(self, limits: Limits) -> Document | None:
        """The document that results, None for a deletion.

        Raises:
            DocumentRefused: the new bytes cannot be a memory.
            EditRefused: the edits overlap.
        """
        path = self.move_to or self.path
        if self.delete:
            return None
        if self.content is not None:
            return parse(path, self.content, limits)
        if self.before is None:
            return parse(path, b"", limits)
        if not self.edits:
            return parse(path, self.before.data, limits)
        return parse_text(path, splice(self.before.text, self.edits, path), limits)

    def as_dict(self) -> dict[str, Any]:
        """The change as a JSON object; offsets count code points of the text with the hash `base`."""
        shape: dict[str, Any] = {"path": self.path, "base": self.base}
        if self.delete:
            shape["delete"] = True
        elif self.content is not None:
            shape["content"] = self.content.decode("utf-8", "replace")
        elif self.edits and self.before:
            edits = ordered(self.edits, len(self.before.text), self.path)
            shape["edits"] = [edit._asdict() for edit in edits]
        if self.move_to:
            shape["move_to"] = self.move_to
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan:
    """Changes that happen together or not at all.

    Attributes:
        changes: at most one for every memory.
        message: what changes, for the history and for git.
        actor: who asked for it.
        left_out: memories that the plan would have to look into and could not, each with the reason.
        warnings: what was found in it that does not refuse it, such as secrets that were taken out.
        brings_back: it restores what stood there before. That is not checked against schemas: what was
            deleted can be restored, whatever it was.
    """

    changes: tuple[Change, ...]
    message: str = ""
    actor: str = ""
    left_out: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    brings_back: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that the plan touches, in order, without repeats."""
        touched = (path for c in self.changes for path in (c.path, c.move_to) if path)
        return tuple(dict.fromkeys(touched))

    def diff(self) -> str:
        """The plan as one unified diff; empty when nothing would change.

        Raises:
            DocumentRefused, EditRefused: as `Change.after`.
        """
        from mdmem.text.diff import unified  # noqa: PLC0415 - start-up

        parts = []
        for change in self.changes:
            after = change.after(change.before.limits if change.before else Limits())
            parts.append(
                unified(
                    change.before.text if change.before else None,
                    after.text if after else None,
                    change.path,
                    new_path=change.move_to,
                )
            )
        return "".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        changes = [change.as_dict() for change in self.changes]
        return {"message": self.message, "actor": self.actor, "changes": changes}


class Prepared(NamedTuple):
    """A plan as it will be written, and what each of its changes results in; None where it deletes."""

    plan: EditPlan
    afters: Sequence[Document | None]


def edit(document: Document, edits: Sequence[TextEdit], message: str, *, merge: bool = True) -> EditPlan:
    """A plan of edits to one memory."""
    change = Change(path=document.path, before=document, edits=tuple(edits), merge=merge)
    return EditPlan(changes=(change,) if edits else (), message=message)


def together(plans: Iterable[EditPlan], message: str) -> EditPlan:
    """One plan of the changes of several."""
    return EditPlan(changes=tuple(change for plan in plans for change in plan.changes), message=message)


def refuse_twins(plan: EditPlan) -> None:
    """Refuse a plan that names a memory twice, or makes two whose names differ only in case.

    Raises:
        EditRefused, PathRefused: it does.
    """
    seen: set[str] = set()
    made: dict[str, str] = {}
    for change in plan.changes:
        for path in filter(None, (change.path, change.move_to)):
            name = check_memory(path)
            if name in seen:
                raise EditRefused(path=name, reason="a plan changes every memory at most once")
            seen.add(name)
        if change.before is None or change.move_to:
            name = check_memory(change.move_to or change.path)
            twin = made.setdefault(name.casefold(), name)
            if twin != name:
                reason = f"differs only in case from {twin!r}, which the same plan makes"
                raise PathRefused(path=name, reason=reason, remedy="give it another name")
