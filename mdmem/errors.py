"""Every exception of mdmem, one tree: an exception means that the operation did not happen.

    MdmemError
    ├── Usage                an argument that cannot mean anything
    ├── NotFound             MemoryNotFound, TextNotFound, SectionNotFound, FieldNotFound, VaultNotFound …
    ├── Refused              PathRefused, EditRefused, TextAmbiguous, SectionAmbiguous, Conflict, Invalid …
    │   └── DocumentRefused  NotUtf8, BinaryContent, TooLarge, TooNested
    └── Unavailable          StorageFailed, SystemFailing, LockTimeout, NotKnown, FileBusy, ProgramFailed …

Each class says what happened, where, and what to do next, from its fields; one without a docstring means just
what it says.
"""

from __future__ import annotations

import re
import shlex
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

_MOST_LINES = 20  # that a message names
# What ends a line for some reader, other control characters, and bytes of a name that are no UTF-8.
_NOT_SHOWN = "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
_FIRST_BYTE, _BYTES = 0xDC80, 0xDC00  # the surrogates that stand for bytes


def show_name(text: str) -> str:
    """Return a name, or a line with names in it, so that it is one line wherever it is printed."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_NOT_SHOWN, _escape_character, text)


def _escape_character(found: re.Match[str]) -> str:
    code = ord(found[0])
    code -= _BYTES if _FIRST_BYTE <= code < _BYTES + 0x100 else 0
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - of two digits


def plural(count: int, what: str) -> str:
    """Say how many there are of something, as `1 memory` or `2 memories`."""
    if count != 1:
        what = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count:,} {what}"


@dataclass_transform(kw_only_default=True, eq_default=False)
class MdmemError(Exception):
    """The base of all errors of mdmem.

    A class lists its fields like a dataclass, keyword-only, and says by them what happened (`says`) and what
    to do next (`advice`, else the field `remedy`). They are no dataclasses: generating forty classes takes as
    long as the rest of a small command's start.
    """

    code: str = "error"
    """What programs know the error by; it never changes. A class may have several codes."""
    codes: ClassVar[tuple[str, ...]] = ()
    exit_code: ClassVar[int] = 2
    """What the program ends with."""
    says: ClassVar[str] = "{code}"
    advice: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, code: str, codes: tuple[str, ...] = ()) -> None:
        cls.code, cls.codes = code, (code, *codes)
        cls.fields = (*cls.fields, *cls.__annotations__)
        cls.__doc__ = cls.__doc__ or cls.says

    def __init__(self, **given: Any) -> None:
        super().__init__()
        for name, value in given.items():
            if name not in self.fields or (name == "code" and value not in self.codes):
                raise TypeError(f"{type(self).__name__} has no field {name}={value!r}")
        for name in self.fields:
            if name in given:
                setattr(self, name, given[name])
            elif not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs the field {name}")

    @property
    def values(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.fields}

    def but(self, **changed: Any) -> Self:
        """Return the same error with other values of some fields."""
        return type(self)(**{**self.values, **changed})

    @property
    def message(self) -> str:
        """What happened, and where."""
        return self.says.format(**{"code": self.code, **self.values})

    @property
    def hint(self) -> str:
        """What to do next; empty when the message says it all."""
        values = self.values
        return self.advice.format(**values) if self.advice else str(values.get("remedy", ""))

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only fields do not travel through Exception.args, so a process pool could not return one.
        return partial(type(self), **self.values), ()

    def for_agent(self) -> Self:
        """Return the error as an agent is told it; see `Diagnostic.for_agent`."""
        if "findings" not in self.fields:
            return self
        return self.but(findings=tuple(finding.for_agent() for finding in self.values["findings"]))

    def json_shape(self) -> dict[str, Any]:
        """Return the error as a JSON object: `code`, `message`, `hint`, and the fields."""
        return {"code": self.code, "message": self.message, "hint": self.hint, **self.values}


class Usage(MdmemError, code="usage"):
    """An argument that cannot mean anything."""

    says = "{problem}"
    problem: str
    remedy: str = ""


# ---------------------------------------------------------------------------------------------- not found


class NotFound(MdmemError, code="not-found"):
    """What was asked for is not there; a class may have the field `near`, names that come close."""

    exit_code = 1
    nearest = "nearest names"

    @property
    def hint(self) -> str:
        names = show_name(", ".join(self.values.get("near", ())))
        other = f"{self.nearest}: {names}" if names else self.advice.format(**self.values)
        return str(self.values.get("remedy", "")) or other


class VaultNotFound(NotFound, code="vault-not-found"):
    exit_code = 2
    says = "no vault found {where} {start}"
    advice = "make one with `mdmem init`, or name one with --vault or MDMEM_VAULT"
    start: str
    where: str = "at"
    near: tuple[str, ...] = ()
    around: str = ""

    @property
    def hint(self) -> str:
        if "://" in self.start:
            return f"its owner makes it with `mdmem store init {shlex.quote(self.start)}`"
        if self.around:
            name = f"name the vault around it, `--vault {shlex.quote(self.around)}`"
            return f"{name}; --user, --project and --resource choose a folder of it"
        named = " or ".join(f"`--vault {shlex.quote(folder)}`" for folder in self.near)
        return f"there is a vault below: name it with {named}, or MDMEM_VAULT" if named else self.advice


class MemoryNotFound(NotFound, code="memory-not-found"):
    says = "{path}: no such {kind}"
    advice = "list what there is with `mdmem ls`"
    path: str
    kind: str = "memory"
    near: tuple[str, ...] = ()
    remedy: str = ""


class NearLine(NamedTuple):
    """A line that is almost what was looked for: its 1-based number, its text, and what differs.

    `path` is the memory that it stands in, where several were looked into.
    """

    line: int
    text: str
    differs: str
    path: str = ""


class TextNotFound(NotFound, code="text-not-found"):
    """The text to replace does not stand in the memory."""

    path: str
    old: str
    near: tuple[NearLine, ...] = ()
    left_out: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def message(self) -> str:
        return f"{self.path}: {_shorten_text(self.old)} does not occur"

    @property
    def hint(self) -> str:
        near = [
            f"  {f'{n.path}:' if n.path else 'line '}{n.line}: {_shorten_text(n.text)} ({n.differs})"
            for n in self.near
        ]
        unread = [f"  {each}" for each in self.left_out]
        parts = ("nearest lines:", near), ("these could not be looked into:", unread)
        lines = [line for title, part in parts if part for line in (title, *part)]
        none = self.remedy or "no line is similar: look at the memory again with `mdmem show`"
        return "\n".join(lines) or none


class SectionNotFound(NotFound, code="section-not-found"):
    says = "{path}: no section {heading!r}"
    nearest = "its headings, the nearest first"
    advice = "the memory has no headings"
    path: str
    heading: str
    near: tuple[str, ...] = ()
    remedy: str = ""


class FieldNotFound(NotFound, code="field-not-found"):
    says = "{path}: no field {key!r}"
    nearest = "its fields"
    advice = "it has no fields"
    path: str
    key: str
    near: tuple[str, ...] = ()


class NamedNotFound(NotFound, code="name-not-found", codes=("result-not-found",)):
    """No schema, template, rule, preference, change, version or result of this name, or none at all."""

    nearest = "there is"
    advice = "there is no {kind} at all"
    kind: str
    name: str
    near: tuple[str, ...] = ()
    remedy: str = ""
    code: str = "name-not-found"

    @property
    def message(self) -> str:
        """What there is none of."""
        return f"no {self.kind} {self.name!r}" if self.name else f"no {self.kind}"


# ------------------------------------------------------------------------------------------------ refused


class Refused(MdmemError, code="refused"):
    """The operation is understood and will not be done."""


class PathRefused(Refused, code="path-refused", codes=("path-ambiguous",)):
    """A path that leaves the namespace, cannot be one, or may mean two memories."""

    says = "{path!r}: {reason}"
    path: str
    reason: str
    remedy: str = ""
    code: str = "path-refused"


class AlreadyExists(Refused, code="already-exists"):
    says = "{path}: already exists"
    path: str
    remedy: str = ""


class NotAllowed(Refused, code="not-allowed"):
    """What the config of a vault asks for, and the user of this machine has not allowed."""

    says = "{path}: it asks for {what}, which was not allowed on this machine"
    path: str
    what: str
    remedy: str


class NeedsFolder(Refused, code="needs-folder"):
    """What a vault in a database cannot do, as no folder of the user's own holds it."""

    says = "{vault}: {what} needs a vault in a folder, and this one is in a database"
    advice = "give agents the MCP server of this vault, or use a vault in a folder for this"
    vault: str
    what: str


class EditRefused(Refused, code="edit-refused"):
    """An edit that cannot be made exactly: empty text, overlap, a line or a value that is not there."""

    says = "{path}: {reason}"
    path: str
    reason: str
    remedy: str = ""


class TextAmbiguous(Refused, code="text-ambiguous"):
    """The text to replace stands a different number of times than expected.

    `lines` are those of the occurrences in the memory `path`; where `path` is a folder, `counts` says how
    often it occurs in each memory.
    """

    path: str
    old: str
    expected: int
    lines: tuple[int, ...] = ()
    overlapping: bool = False
    counts: tuple[tuple[str, int], ...] = ()

    @property
    def message(self) -> str:
        times = sum(count for _, count in self.counts) or len(self.lines)
        names = [f"{path} ({count})" for path, count in self.counts] or list(map(str, self.lines))
        where = ", ".join(names[:_MOST_LINES])
        where += f" and {len(names) - _MOST_LINES} more" if len(names) > _MOST_LINES else ""
        if self.counts:
            where = f"{len(names)} memories: {where}" if len(names) > 1 else where
        else:
            where = f"lines {where}" if times > 1 else f"line {where}"
        often = f"{times} times" if times > 1 else "once"
        return f"{self.path}: {_shorten_text(self.old)} occurs {often}, in {where}; expected {self.expected}"

    @property
    def hint(self) -> str:
        if self.overlapping:
            return "the occurrences overlap: give a longer text that stands apart"
        if self.counts:
            return "replace them all with --all, or say how many there are with --count N"
        return "give more of the text around it, or say how many there are (--count N, --all)"


class SectionAmbiguous(Refused, code="section-ambiguous"):
    """A heading that stands more than once; `own` are names that mean one of them alone."""

    path: str
    heading: str
    lines: tuple[int, ...]
    own: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        if not self.own:
            return "no heading path tells them apart: change the text under one of them with `replace`"
        return f"name one of them alone: {' or '.join(map(repr, self.own))}"

    @property
    def message(self) -> str:
        where = ", ".join(map(str, self.lines))
        return f"{self.path}: the heading {self.heading!r} stands {len(self.lines)} times, in lines {where}"


class Conflict(Refused, code="conflict"):
    """The memory is no longer what the change was computed from."""

    advice = "read it again, and make the change to what is there now"
    path: str
    base: str | None
    actual: str | None
    diff: str = ""

    @property
    def message(self) -> str:
        was, now = (digest[:8] if digest else "absent" for digest in (self.base, self.actual))
        return f"{self.path}: changed since it was read (it was {was}, it is {now})\n{self.diff}".rstrip("\n")


class SessionConflict(Conflict, code="session-conflict"):
    """A session's log is of another key or version, or holds what the change did not expect."""

    base: str | None = None
    actual: str | None = None
    reason: str
    remedy: str = ""

    @property
    def message(self) -> str:
        return f"{self.path}: {self.reason}"

    @property
    def hint(self) -> str:
        return self.remedy or self.advice


class UndoConflict(Conflict, code="undo-conflict"):
    """A memory has changed since the change that is to be taken back, and the two cannot be told apart.

    `is_alone`: the change was of no other memory.
    """

    reason: str
    before: str | None
    change: str
    is_alone: bool = False

    @property
    def message(self) -> str:
        was, now = (digest[:8] if digest else "absent" for digest in (self.base, self.actual))
        text = f"{self.path}: {self.reason}; nothing was undone (the change left {was}, it is {now})"
        return f"{text}\n{self.diff}".rstrip("\n")

    @property
    def hint(self) -> str:
        path = shlex.quote(self.path)
        # What stands where a memory has to go back to is in its way, whatever it holds.
        before = self.before if self.base or self.is_alone else None
        back = f"`mdmem restore {path} --hash {before[:8]}`" if before else f"`mdmem rm {path}`"
        then = "" if self.is_alone else f", then `mdmem undo {self.change}`"
        return f"see `mdmem diff {path}`; undo it by hand, or give up what is new: {back}{then}"


class UndoRefused(Refused, code="undo-refused"):
    says = "change {change} reached memories outside of this scope as well; nothing was undone"
    advice = "undo it with a scope that holds them all, such as the whole vault"
    change: str


class Invalid(Refused, code="invalid"):
    """What would result breaks a schema, or cannot be read; nothing was written."""

    findings: tuple[Any, ...] = ()

    @property
    def message(self) -> str:
        return "\n".join(["the change was refused, nothing was written:", *(f"  {f}" for f in self.findings)])

    @property
    def hint(self) -> str:
        return "\n".join(dict.fromkeys(f.hint for f in self.findings if f.hint))


class ToolRefused(Refused, code="tool-refused"):
    """A command of the memory tool that was not done; `words` is what the model is told."""

    says = "{words}"
    words: str


class ConfigInvalid(Refused, code="config-invalid"):
    says = "{path}: {reason}"
    path: str
    reason: str
    remedy: str = ""
    line: int | None = None
    column: int | None = None


class GitRefused(Refused, code="git-refused"):
    """What a repository is in the middle of, or would do, so that nothing is committed."""

    says = "{path}: {reason}"
    path: str
    reason: str
    remedy: str = ""


class RevertRefused(Refused, code="revert-refused"):
    """What git knows of a fact or a commit, and cannot be taken back by itself."""

    what: str
    reasons: tuple[str, ...]
    remedy: str = "see `mdmem git diff` and `mdmem git blame`, and edit the memory by hand"

    @property
    def message(self) -> str:
        left = len(self.reasons) - _MOST_LINES
        more = [f"and {left:,} more"] if left > 0 else []
        told = "\n".join(f"  {reason}" for reason in [*self.reasons[:_MOST_LINES], *more])
        return f"{self.what}: cannot be reverted, nothing was written:\n{told}"


class TemplateFailed(Refused, code="template-failed"):
    """A template that cannot be parsed or rendered."""

    name: str
    line: int | None
    reason: str
    remedy: str = ""

    @property
    def message(self) -> str:
        where = f"{self.name}:{self.line}" if self.line else self.name
        return f"template {where}: {self.reason}"


class PatternInvalid(Refused, code="pattern-invalid"):
    says = "bad pattern {pattern!r}: {reason}"
    pattern: str
    reason: str
    remedy: str = "to look for the characters themselves, leave --regex away"


class PatternTooSlow(Refused, code="pattern-too-slow"):
    says = "the pattern {pattern!r} was stopped after {seconds:g} s of processor time"
    pattern: str
    seconds: float
    remedy: str = "make it simpler: a repeat inside a repeat, such as (a+)+, tries every way to divide a text"


class LimitReached(Refused, code="limit-reached"):
    says = "{what}: the limit is {limit}"
    what: str
    limit: int
    remedy: str = ""


class DocumentRefused(Refused, code="document-refused"):
    """Bytes that cannot be a memory; the file is left as it is."""

    says = "{path}: this cannot be a memory"
    path: str

    @property
    def fault(self) -> str:
        """What is wrong with the bytes, without the path and the line."""
        return self.message.removeprefix(self.path).partition(": ")[2]


class VersionRefused(DocumentRefused, code="version-refused"):
    """Bytes of an old version that are no memory, whatever the file holds now."""

    says = "{path}: {version} is no memory: {reason}"
    version: str
    reason: str
    remedy: str


class NotUtf8(DocumentRefused, code="not-utf8"):
    """Bytes that are not UTF-8, from the byte at `offset` (0-based) on."""

    says = "{path}:{line}: not UTF-8: byte 0x{byte:02x} at offset {offset}"
    advice = "convert the file to UTF-8; mdmem leaves it as it is"
    offset: int
    byte: int
    line: int


class NotEncodable(DocumentRefused, code="not-encodable"):
    """Text that no UTF-8 can carry: a lone surrogate at `offset` (0-based, in characters)."""

    says = "{path}: the new text has a lone surrogate at character {offset}"
    advice = "give text that is valid UTF-8"
    offset: int


class BinaryContent(DocumentRefused, code="binary"):
    says = "{path}: binary content: a NUL byte at offset {offset}"
    advice = "a memory is Markdown or JSON text"
    offset: int


class TooLarge(DocumentRefused, code="too-large"):
    says = "{path}: {what} has {size:,} bytes; the limit is {limit:,}"
    advice = "split it, or raise the limit in .mdmem/config.toml under [limits]"
    size: int
    limit: int
    what: str = "the file"


class TooNested(DocumentRefused, code="too-nested"):
    says = "{path}:{line}: {what}; the limit is {limit:,}"
    advice = "flatten the values"
    limit: int
    what: str
    line: int


class TooManyParts(DocumentRefused, code="too-many-parts"):
    says = "{path}: there are more than {limit:,} {what}"
    advice = "split it, or raise max_parts in .mdmem/config.toml under [limits]"
    limit: int
    what: str


# -------------------------------------------------------------------------------------------- unavailable


class Unavailable(MdmemError, code="unavailable"):
    """Something outside the vault is missing or failing; nothing was changed."""


class StorageFailed(Unavailable, code="storage-failed"):
    says = "{path}: cannot {action}: {reason}"
    advice = "nothing was changed; free some space or fix the permissions, and try again"
    path: str
    action: str
    reason: str


CANNOT_READ = (DocumentRefused, MemoryNotFound, StorageFailed)
"""What reading a memory raises, for whoever goes on without it: somebody may have changed or removed it."""


class SystemFailing(Unavailable, code="system-failing"):
    """The operating system has run out of something, or a device fails: it is not about one file.

    What goes on after it would go on with a part of the files, so that only what names each file that it
    leaves out may catch it.
    """

    says = "{path}: cannot {action}: {reason}"
    advice = "nothing was changed; free what the system has run out of, or check the device, and try again"
    path: str
    action: str
    reason: str


class LockTimeout(Unavailable, code="lock-timeout"):
    says = "{path}: another process has been writing for {seconds:g} s"
    advice = "try again; the lock ends with the process that holds it, so no file has to be deleted"
    path: str
    seconds: float


class DatabaseFailed(Unavailable, code="database-failed"):
    says = "{vault}: cannot {action}: {reason}"
    vault: str
    action: str
    reason: str
    remedy: str = "nothing was changed; see whether the database answers, and try again"


class NotKnown(Unavailable, code="not-known"):
    """The one error after which a change may have been made: the database went away amid the last step."""

    says = "{vault}: whether {what} was made is not known: the database went away while it committed"
    advice = "once it answers, look whether the change is there before you make it again"
    vault: str
    what: str


class FileBusy(Unavailable, code="file-busy"):
    says = "{path}: another program has had it open for writing for {seconds:g} s"
    advice = "replacing it now could lose what that program writes; close it there, and try again"
    path: str
    seconds: float


class IndexDamaged(Unavailable, code="index-damaged"):
    says = "{path}: cannot be used as an index: {reason}"
    advice = "nothing is lost: run `mdmem index --rebuild`, or delete the folder"
    path: str
    reason: str


class NotReady(Unavailable, code="not-ready"):
    """What would answer somebody in a hurry is still being made."""


class IndexNotReady(NotReady, code="index-not-ready"):
    says = "the index is being made: {done:,} of {of:,}{left_out}"
    advice = "ask again in a moment"
    done: int
    of: int
    left_out: str = ""


class HistoryNotReady(NotReady, code="history-not-ready"):
    says = "the history in git is being read"
    advice = "ask again in a moment"


class ProgramFailed(
    Unavailable,
    code="program-failed",
    codes=(
        *("ripgrep-missing", "ripgrep-too-old", "ripgrep-failed", "model-failed", "editor-failed"),
        "embedder-failed",
    ),
):
    """A program is missing, cannot be started, is too old, or gave no answer that could be used."""

    says = "{program}: {reason}"
    code: str = "program-failed"
    program: str
    reason: str
    remedy: str


class ExtraMissing(Unavailable, code="extra-missing"):
    says = "the package {package!r} is not installed"
    advice = "it comes with the extra {extra}: pip install '.[{extra}]' in a clone of mdmem"
    extra: str
    package: str


class NotProvided(Unavailable, code="not-provided"):
    says = "{problem}"
    problem: str
    remedy: str


class GitFailed(Unavailable, code="git-failed", codes=("git-silent", "no-repository", "commit-failed")):
    """Git is missing, failed or fell silent, or the folder is in no work tree."""

    says = "{path}: cannot {action}: {reason}"
    path: str
    action: str
    reason: str
    remedy: str = "nothing was changed; see whether `git status` works in that folder"
    code: str = "git-failed"


def _shorten_text(text: str, most: int = 80) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
