"""The edit plan: every change to memories, as a value, before anything is written.

What none may bring into a vault stands here as well: names that not every system can hold, and secrets.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from mdmem.diagnostic import SECRETS, SECRETS_HINT, Diagnostic, Severity, about_file
from mdmem.document import secret
from mdmem.document.document import Document, Limits, UnreadableDocument, parse, parse_any, parse_text
from mdmem.document.edit import TextEdit, between, inverse, splice
from mdmem.document.secret import Secret
from mdmem.document.text.diff import unified
from mdmem.document.text.tokens import first_of
from mdmem.errors import CANNOT_READ, EditRefused, Invalid, PathRefused
from mdmem.kind import NAMESPACES
from mdmem.vault.config import CONFIG_PATH, ConfigChange, Secrets
from mdmem.vault.paths import check_folder, check_memory, decode_id, is_under, join, relative, unportable
from mdmem.vault.store import FileChange

# The limits of the vault are checked when a plan is prepared, not when it is shown.
_NAMED = 4  # paths in a representation
_ANY_SIZE = Limits(max_bytes=sys.maxsize)


class Change(NamedTuple):
    """What becomes of one memory: edits, or new content, or deletion, or a move (with or without edits).

    Attributes:
        path: the memory, as the vault names it.
        before: the document that the change was computed from; None: the memory must not exist.
        merge: when the file has changed since `before` was read, merge three-way where that is
            unambiguous; otherwise refuse at once.
        back: the deletion that it takes back: the file gets the spelling and the permissions that it had,
            also beside a file with another Unicode spelling of its name.
        as_it_was: the content stood there before, or elsewhere: it may be what cannot be read as a memory, or
            breaks its schema, and have a name that would be refused.
    """

    path: str
    before: Document | None
    edits: tuple[TextEdit, ...] = ()
    content: bytes | None = None
    delete: bool = False
    move_to: str | None = None
    merge: bool = True
    back: FileChange | None = None
    as_it_was: bool = False

    def __repr__(self) -> str:
        return f"Change({self.path!r}, delete={self.delete}, move_to={self.move_to!r})"

    @property
    def base(self) -> str | None:
        """The SHA-256 of the bytes that the change was computed from; None: the memory must not exist."""
        return self.before.hash if self.before else None

    def after(self, limits: Limits) -> Document | None:
        """Return the document that results, None for a deletion."""
        path = self.move_to or self.path
        if self.delete:
            return None
        if self.content is not None:
            return (parse_any if self.as_it_was else parse)(path, self.content, limits)
        if self.before is None:
            return parse(path, b"", limits)
        if not self.edits:
            is_unreadable = isinstance(self.before, UnreadableDocument)
            return (parse_any if is_unreadable else parse)(path, self.before.data, limits)
        return parse_text(path, splice(self.before.text, self.edits, path), limits)


class AttachmentChange(NamedTuple):
    """An attachment that moves as it is: its path, its new one, and the SHA-256 of its bytes.

    Without a path it is made of `content`; without a new one it is deleted.
    """

    path: str
    move_to: str
    hash: str
    content: bytes | None = None


class Outcome(NamedTuple):
    """A row about an import: what became of how many files, and the paths of those that are not taken."""

    what: str
    files: int
    paths: tuple[str, ...] = ()


class LinkPlace(NamedTuple):
    """Where a link stands: the memory and the line, as they are before the plan.

    `leads_to` is what it leads to after it; empty for nothing.
    """

    path: str
    line: int
    leads_to: str = ""

    def describe(self, gone: str) -> str:
        """Say that the link means, or may have meant, what is gone."""
        if self.leads_to:
            return f"{self.path}:{self.line} may have meant {gone}, and leads to {self.leads_to} now"
        return f"{self.path}:{self.line} links to {gone}"


class EditPlan(NamedTuple):
    """Changes that happen together or not at all.

    Attributes:
        changes: at most one for every memory.
        message: what changes, for the history and for git.
        actor: who asked for it.
        left_out: what the plan would have to look into and could not, or leaves where it is, in words.
        warnings: what was found in it that does not refuse it, such as secrets that were taken out.
        brings_back: it restores what stood there before. That is checked against neither schemas nor the
            rule for new names: what was deleted can be restored, whatever it was, and whatever its name.
        attachments: what it moves, makes or deletes that is no memory.
        outcomes: what became of all files of an import, in rows.
        dangling: links of other memories that lead nowhere, or elsewhere, once it has deleted what they name.
        undoes, redoes: the id of the change that it takes back, or puts back.
        made_at: when what it takes back was changed (ISO 8601, UTC); empty for any other plan.
        newer: which changes by others are newer than what it takes back, and stay, in words.
        config: what changes in the config of the vault with it.
        steps: the plans that it sums up. They are applied one after the other, each as a change of its own;
            none is begun where a file is not as the first that changes it expects.
    """

    changes: tuple[Change, ...]
    message: str = ""
    actor: str = ""
    left_out: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    brings_back: bool = False
    attachments: tuple[AttachmentChange, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    dangling: tuple[LinkPlace, ...] = ()
    undoes: str = ""
    redoes: str = ""
    made_at: str = ""
    newer: str = ""
    config: ConfigChange | None = None
    steps: tuple[EditPlan, ...] = ()

    def __repr__(self) -> str:
        return f"EditPlan({self.message!r}, paths: {first_of(self.paths, _NAMED)})"

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that the plan touches, in order, without repeats."""
        touched: list[str | None] = []
        for change in self.changes:
            touched += (change.path, change.move_to)
        for attachment in self.attachments:
            touched += (attachment.path, attachment.move_to)
        return tuple(dict.fromkeys(filter(None, touched)))

    @property
    def moves(self) -> dict[str, str]:
        """What moves, memories and attachments: old path to new path."""
        moves = {each.path: each.move_to for each in self.changes if each.move_to}
        return moves | {each.path: each.move_to for each in self.attachments if each.path and each.move_to}

    def freed_paths(self) -> Iterator[str]:
        """Yield the paths that a move or the deletion of a memory leaves free."""
        for change in self.changes:
            if change.delete or change.move_to:
                yield change.path
        for attachment in self.attachments:
            if attachment.path and attachment.move_to:
                yield attachment.path

    @property
    def links_rewritten(self) -> int:
        """How many links and citations follow what moves."""
        edits = (edit for each in self.changes if self.moves for edit in each.edits)
        return sum(not edit.new.startswith("<!-- pin ") for edit in edits)

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The memories that would change, and the attachments, with their hashes before and after."""
        changed = []
        for change in self.changes:
            after = change.after(_ANY_SIZE)
            base, new = change.base, after.hash if after else None
            if change.move_to:
                changed.append(FileChange(path=change.move_to, before=None, after=new))
                changed.append(FileChange(path=change.path, before=base, after=None))
            elif base != new:
                changed.append(FileChange(path=change.path, before=base, after=new))
        for each in self.attachments:
            changed += [FileChange(path=each.move_to, before=None, after=each.hash)] if each.move_to else []
            changed += [FileChange(path=each.path, before=each.hash, after=None)] if each.path else []
        return tuple(changed)

    def json_shape(self) -> dict[str, Any]:
        """Return what would change, as a JSON object."""
        return change_shape(self, self.files, applied=False)

    def diff(self) -> str:
        """Return the plan as one unified diff; empty when nothing would change."""
        parts = []
        for change in self.changes:
            after = change.after(_ANY_SIZE)
            old, new = change.before.text if change.before else None, after.text if after else None
            parts.append(unified(old, new, change.path, new_path=change.move_to))
        for path, move_to, *_ in self.attachments:
            old, new = "" if path else None, "" if move_to else None
            parts.append(unified(old, new, path or move_to, new_path=move_to or None))
        return "".join(parts)


def change_shape(
    plan: EditPlan, files: Sequence[FileChange], *, applied: bool, ident: str = "", merged: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a change as a JSON object, which has the same members whether it was made or is only planned."""
    return {
        "applied": applied,
        "id": ident,
        "message": plan.message,
        "files": [{"path": f.path, "before": f.before, "after": f.after} for f in files],
        "merged": merged,
        "left_out": plan.left_out,
        **({"outcomes": plan.outcomes} if plan.outcomes else {}),
        "warnings": plan.warnings,
        "links_rewritten": plan.links_rewritten,
        "dangling": plan.dangling,
        "diff": plan.diff(),
    }


class Prepared(NamedTuple):
    """A plan as it will be written, and what each of its changes results in; None where it deletes."""

    plan: EditPlan
    afters: Sequence[Document | None]


def edit(document: Document, edits: Sequence[TextEdit], message: str, *, merge: bool = True) -> EditPlan:
    """Return a plan of edits to one memory."""
    change = Change(path=document.path, before=document, edits=tuple(edits), merge=merge)
    return EditPlan(changes=(change,) if edits else (), message=message)


def rewritten(
    read: Callable[[str], Document],
    paths: Iterable[str],
    edits_of: Callable[[str, Document], Sequence[TextEdit]],
    left_out: list[str],
) -> list[Change]:
    """Return the changes of the memories at `paths` that have edits; unreadable ones are left out."""
    changes = []
    for path in sorted(paths):
        try:
            document = read(path)
            edits = edits_of(path, document)
        except CANNOT_READ as error:
            left_out.append(error.message)
            continue
        if edits:
            changes.append(Change(path=path, before=document, edits=tuple(edits)))
    return changes


def deletion(document: Document) -> Change:
    """Return the change that deletes a memory, as it was read."""
    return Change(path=document.path, before=document, delete=True, merge=False)


def together(plans: Iterable[EditPlan], message: str) -> EditPlan:
    """Return one plan of the changes of several."""
    return EditPlan(changes=tuple(change for plan in plans for change in plan.changes), message=message)


def refuse_paths(plan: EditPlan, suffixes: tuple[str, ...]) -> None:
    """Refuse a plan that names a file twice, or what cannot be one, or makes a memory of an attachment."""
    names = []
    for change in plan.changes:
        names.append(check_memory(change.path, suffixes))
        if change.move_to:
            names.append(check_memory(change.move_to, suffixes))
    for attachment in plan.attachments:
        for path in filter(None, (attachment.path, attachment.move_to)):
            if check_folder(path).endswith(suffixes):
                reason = "an attachment does not become a memory by its name"
                raise PathRefused(path=path, reason=reason, remedy="make the memory with `mdmem write`")
            names.append(check_folder(path))
    for name, times in Counter(names).items():
        if times > 1:
            raise EditRefused(path=name, reason="a plan changes every file at most once")


class NewNames:
    """The one rule about new names: every system can hold them, and tell them from those that stand.

    New is what a plan makes and what neither stands there nor is brought back. A memory that is moved takes
    along the names that it keeps, and may differ from its old ones in case alone. So whatever stands under a
    name that would be refused today can be changed, renamed, moved with its folder, deleted and brought back.
    It judges the names of one plan, by `stands` and `names` of the store.
    """

    def __init__(
        self, namespace: str, stands: Callable[[str], bool], names_in: Callable[[str], Iterable[str]]
    ) -> None:
        self._namespace = namespace
        self._stands = stands
        self._names_in = names_in
        self._folders: dict[str, dict[str, list[str]]] = {}
        self._made: dict[str, tuple[str, str]] = {}

    def refuse(self, plan: EditPlan) -> None:
        """Refuse a plan with a new name that not every system can hold, or that has a twin."""
        for change in () if plan.brings_back else plan.changes:
            if (change.before is None or change.move_to) and not change.as_it_was:
                source = check_memory(change.path)
                self._refuse_name(check_memory(change.move_to or source), source if change.move_to else "")
        for each in () if plan.brings_back else plan.attachments:
            if each.path and each.move_to:
                self._refuse_name(check_folder(each.move_to), check_folder(each.path))

    def _refuse_name(self, path: str, old: str) -> None:
        """Refuse the name of a file that is made, or was `old` before."""
        parts = join(self._namespace, path).split("/")
        source = join(self._namespace, old).split("/") if old else []
        first = self._first_new(parts)
        if first == len(parts):
            return
        kept = _shared_end(parts, source)
        bound = len(self._namespace.split("/")) if self._namespace else 0
        for part in parts[max(first, bound) : len(parts) - kept]:
            reason, remedy = unportable(part)
            if reason:
                raise PathRefused(path=path, reason=reason, remedy=remedy)
        twin = self._find_case_twin(parts, first, source) or self._made_twin(parts, first, source, kept)
        if twin and is_under(twin, self._namespace):
            reason = f"differs only in case from {relative(twin, self._namespace)!r}, which exists"
            remedy = "use the name that exists, or another one"
            if self._stands(twin) and len(twin.split("/")) < len(parts):
                command = ("mdmem", "mv", relative(twin, self._namespace), self._spell(twin, parts))
                remedy = f"`{shlex.join(command)}` renames what exists, or use its name"
            raise PathRefused(path=path, reason=reason, remedy=remedy)
        if twin and "/" not in twin and parts[0] in NAMESPACES:
            reason = f"{parts[0]}/ differs only in case from another folder"
            raise PathRefused(path=path, reason=reason, remedy=f"without a scope, rename that to {parts[0]}")
        if twin:
            # Nobody in the namespace may learn what is beside it.
            reason = "the scope that it is in differs only in case from another one"
            raise PathRefused(path=path, reason=reason, remedy="name the user, project or resource otherwise")

    def _spell(self, twin: str, parts: list[str]) -> str:
        return relative("/".join(parts[: len(twin.split("/"))]), self._namespace)

    def _first_new(self, parts: list[str]) -> int:
        """Return how many of the names, from the first on, stand there."""
        for count in range(len(parts)):
            if self._stands("/".join(parts[: count + 1])):
                continue
            folder = "/".join(parts[:count])
            if parts[count] not in self._find_alike(folder, parts[count]):
                return count
        return len(parts)

    def _find_alike(self, folder: str, name: str) -> list[str]:
        """Return the names in a folder that are `name`, or differ from it only in case."""
        if folder not in self._folders:
            names = self._folders[folder] = {}
            for present in self._names_in(folder):
                names.setdefault(present.casefold(), []).append(present)
        return self._folders[folder].get(name.casefold(), [])

    def _find_case_twin(self, parts: list[str], first: int, source: list[str]) -> str:
        """Return what stands there and differs only in case from the first new name; empty for none."""
        for name in self._find_alike("/".join(parts[:first]), parts[first]):
            twin = [*parts[:first], name]
            if source[: len(twin)] != twin:  # else it is what is renamed
                return "/".join(twin)
        return ""

    def _made_twin(self, parts: list[str], first: int, source: list[str], kept: int) -> str:
        """Return what the plan makes as well and differs only in case; empty for a pair that stands."""
        for count in range(first + 1, len(parts) + 1):
            made = "/".join(parts[:count])
            after = len(parts) - count
            was = "/".join(source[: len(source) - after]) if after < kept else ""
            twin, twin_was = self._made.setdefault(made.casefold(), (made, was))
            if twin != made and (not was or was.casefold() != twin_was.casefold()):
                return twin
        return ""


def _shared_end(parts: list[str], source: list[str]) -> int:
    pairs = zip(reversed(parts), reversed(source), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


# -- secrets -----------------------------------------------------------------------------------------------


def screen(prepared: Prepared, config: Secrets) -> Prepared:
    """Return a plan without the secrets that it would add, or with a warning for each, as the config says.

    What stood in one of its memories before is not added, and may move among them. A new name can only be
    refused: nobody would find a memory under another one.

    Raises:
        Invalid: the config says so, or a new name holds a secret; no message holds one.
    """
    before = [change.before for change in prepared.plan.changes if change.before]
    stood = [text for document in before for text in (document.text, *_read_path(document.path))]
    pairs = list(zip(prepared.plan.changes, prepared.afters, strict=True))
    findings: list[Diagnostic] = []
    for change, after in pairs:
        if after and (change.before is None or change.move_to):
            findings += _find_in_new_name(change.move_to or change.path, stood, config)
    if findings and config.policy == "redact":
        raise Invalid(findings=tuple(findings))
    for number, (change, after) in enumerate(pairs):
        found = _find_added_secrets(change, after, stood, config.allow) if after else []
        if found and after:
            if config.policy == "redact":
                pairs[number] = _redact_change(change, after, found)
                found = _place_after_removal(found)
            document = pairs[number][1] or after
            findings += [_describe_secret(document, each, config.policy) for each in found]
    if findings and config.policy == "refuse":
        # Without the schema's findings: they would quote the secret.
        raise Invalid(findings=tuple(findings))
    if not findings:
        return prepared
    warnings = tuple(dict.fromkeys([*prepared.plan.warnings, *findings]))
    plan = prepared.plan._replace(changes=tuple(change for change, _ in pairs), warnings=warnings)
    return Prepared(plan, [after for _, after in pairs])


def standing(document: Document, config: Secrets) -> list[Diagnostic]:
    """Return the secrets that stand in a memory or its name, as warnings."""
    named = _in_name(document.path, (), config)
    found = secret.find(document.text, allow=config.allow)
    return [
        *(_about_name(document.path, each, "warning") for each in named),
        *(_describe_secret(document, each, "check") for each in found),
    ]


def _read_path(path: str) -> tuple[str, ...]:
    """Return what a path says: as it is written, and without the escapes of an id."""
    return tuple(dict.fromkeys((path, decode_id(path))))


def _in_name(path: str, stood: Sequence[str], config: Secrets) -> list[Secret]:
    """Return the secrets in a path that did not stand before, without repeats."""
    secrets = {
        each.digest: each
        for text in _read_path(path)
        for each in secret.find(text, allow=config.allow)
        if not any(text[slice(*each.span)] in other for other in stood)
    }
    return list(secrets.values())


def _find_in_new_name(path: str, stood: Sequence[str], config: Secrets) -> Iterator[Diagnostic]:
    severity: Severity = "warning" if config.policy == "warn" else "error"
    for each in _in_name(path, stood, config):
        yield _about_name(_redact_path(path), each, severity)


def _redact_path(path: str) -> str:
    return path if not any(map(secret.find, _read_path(path))) else secret.masked(decode_id(path))


def _about_name(path: str, found: Secret, severity: Severity) -> Diagnostic:
    message = f"this name looks like it holds a secret: {found.kind} {found.shown}…"
    hint = f"{SECRETS_HINT}; to allow it, add {found.digest!r} to [secrets] allow in {CONFIG_PATH}"
    return about_file(path, SECRETS, message, hint, severity=severity, rule=found.digest)


def _find_added_secrets(
    change: Change, after: Document, stood: Sequence[str], allow: Sequence[str]
) -> list[Secret]:
    spans = None
    if change.before and change.content is None:
        spans = [(edit.start, edit.end) for edit in inverse(change.before.text, change.edits)]
    found = secret.find(after.text, spans, allow)
    return [each for each in found if not any(after.text[slice(*each.span)] in text for text in stood)]


def _redact_change(change: Change, after: Document, found: Sequence[Secret]) -> tuple[Change, Document]:
    text = splice(after.text, secret.redactions(found), after.path)
    document = parse_text(after.path, text, after.limits)
    if change.before is None or change.content is not None:
        return change._replace(content=document.data), document
    return change._replace(edits=tuple(between(change.before.text, text))), document


def _place_after_removal(found: Sequence[Secret]) -> list[Secret]:
    """Return the secrets, each where its `word` stands once they are taken out."""
    result, shift = [], 0
    for each in found:
        start, end = each.span
        span = each.span._replace(start=start + shift, end=start + shift + len(each.word))
        result.append(each._replace(span=span))
        shift = span.end - end
    return result


def _describe_secret(document: Document, found: Secret, policy: str) -> Diagnostic:
    """Return a secret as a finding that does not give it away."""
    outcome = {
        "redact": f"; {found.word} is written instead",
        "warn": "; it is written all the same",
    }
    return Diagnostic(
        path=document.path if policy == "check" else _redact_path(document.path),
        span=found.span,
        position=document.lines.position(found.span.start),
        code=SECRETS,
        message=found.told + outcome.get(policy, ""),
        hint=(
            f"{SECRETS_HINT}; to allow it, write "
            f"{secret.ALLOW_MARK} in its line, or add {found.digest!r} to [secrets] allow in {CONFIG_PATH}"
        ),
        severity="error" if policy == "refuse" else "warning",
        rule=found.digest,
    )
