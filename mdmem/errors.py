"""Every exception of mdmem, one tree: an exception means that the operation did not happen.

    MdmemError
    ├── Usage                an argument that cannot mean anything
    ├── NotFound             MemoryNotFound, TextNotFound, SectionNotFound, FieldNotFound, VaultNotFound …
    ├── Refused              PathRefused, TextAmbiguous, SectionAmbiguous, Conflict, Invalid …
    │   └── DocumentRefused  NotUtf8, BinaryContent, TooLarge, TooNested
    └── Unavailable          StorageFailed, SystemFailing, LockTimeout, FileBusy, RipgrepMissing …

Each class says what happened, where, and what to do next, from its fields.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

_MOST_LINES = 20  # that a message names


@dataclass_transform(kw_only_default=True, eq_default=False)
class MdmemError(Exception):
    """The base of all errors of mdmem.

    A class lists its fields like a dataclass, keyword-only, and says by them what happened (`says`) and what
    to do next (`advice`). They are no dataclasses: generating forty classes takes as long as the rest of a
    small command's start.
    """

    code: ClassVar[str] = "error"
    """Names the class for programs and never changes."""
    exit_code: ClassVar[int] = 2
    """What the program ends with."""
    says: ClassVar[str] = "{code}"
    advice: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar"))
        cls.fields = (*cls.fields, *own)

    def __init__(self, **given: Any) -> None:
        super().__init__()
        for name in given:
            if name not in self.fields:
                raise TypeError(f"{type(self).__name__} has no field {name}")
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
        """The same error with other values of some fields."""
        return type(self)(**{**self.values, **changed})

    @property
    def message(self) -> str:
        """What happened, and where."""
        return self.says.format(code=self.code, **self.values)

    @property
    def hint(self) -> str:
        """What to do next; empty when the message says it all."""
        return self.advice.format(**self.values)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only fields do not travel through Exception.args, so a process pool could not return one.
        return _rebuild, (type(self), self.values)

    def as_dict(self) -> dict[str, Any]:
        """The error as a JSON object: `code`, `message`, `hint`, and the fields that are plain values."""
        plain = {name: _plain(value) for name, value in self.values.items()}
        return {"code": self.code, "message": self.message, "hint": self.hint, **plain}


def _rebuild(kind: type[MdmemError], values: dict[str, Any]) -> MdmemError:
    return kind(**values)


class Usage(MdmemError):
    """An argument that cannot mean anything."""

    code: ClassVar[str] = "usage"
    says: ClassVar[str] = "{problem}"
    advice: ClassVar[str] = "{remedy}"
    problem: str
    remedy: str = ""


class WrongType(Usage, TypeError):
    """An argument of a verb that is of a wrong type."""

    code: ClassVar[str] = "wrong-type"


# ---------------------------------------------------------------------------------------------- not found


class NotFound(MdmemError):
    """What was asked for is not there."""

    code: ClassVar[str] = "not-found"
    exit_code: ClassVar[int] = 1


class VaultNotFound(NotFound):
    """No vault at, or above, a folder."""

    code: ClassVar[str] = "vault-not-found"
    exit_code: ClassVar[int] = 2
    says: ClassVar[str] = "no vault found at or above {start}"
    advice: ClassVar[str] = "make one with `mdmem init`, or name one with --vault or MDMEM_VAULT"
    start: str


class MemoryNotFound(NotFound):
    """No memory at a path."""

    code: ClassVar[str] = "memory-not-found"
    says: ClassVar[str] = "{path}: no such memory"
    path: str
    near: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        return f"nearest names: {', '.join(self.near)}" if self.near else "list what there is with `mdmem ls`"


class NearLine(NamedTuple):
    """A line that is almost what was looked for: its 1-based number, its text, and what differs."""

    line: int
    text: str
    differs: str


class TextNotFound(NotFound):
    """The text to replace does not stand in the memory."""

    code: ClassVar[str] = "text-not-found"
    path: str
    old: str
    near: tuple[NearLine, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return f"{self.path}: {_shortened(self.old)} does not occur"

    @property
    def hint(self) -> str:
        if not self.near and not self.left_out:
            return "no line is similar: look at the memory again with `mdmem show`"
        near = [f"  line {n.line}: {_shortened(n.text)} ({n.differs})" for n in self.near]
        told = ["nearest lines:", *near] if near else []
        if self.left_out:
            told += ["these could not be looked into:", *(f"  {each}" for each in self.left_out)]
        return "\n".join(told)


class SectionNotFound(NotFound):
    """No section with this heading or heading path."""

    code: ClassVar[str] = "section-not-found"
    says: ClassVar[str] = "{path}: no section {heading!r}"
    path: str
    heading: str
    near: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        return f"its headings: {'; '.join(self.near)}" if self.near else "the memory has no headings"


class FieldNotFound(NotFound):
    """No such key in the frontmatter or JSON."""

    code: ClassVar[str] = "field-not-found"
    says: ClassVar[str] = "{path}: no field {key!r}"
    path: str
    key: str
    near: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        return f"its fields: {', '.join(self.near)}" if self.near else "it has no fields"


class NamedNotFound(NotFound):
    """No schema, template, rule, preference, change or version of this name."""

    code: ClassVar[str] = "name-not-found"
    says: ClassVar[str] = "no {kind} {name!r}"
    kind: str
    name: str
    near: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        return f"there is: {', '.join(self.near)}" if self.near else f"there is no {self.kind} at all"


# ------------------------------------------------------------------------------------------------ refused


class Refused(MdmemError):
    """The operation is understood and will not be done."""

    code: ClassVar[str] = "refused"


class PathRefused(Refused):
    """A path that leaves its namespace, or names nothing that can be a memory."""

    code: ClassVar[str] = "path-refused"
    says: ClassVar[str] = "{path!r}: {reason}"
    advice: ClassVar[str] = "{remedy}"
    path: str
    reason: str
    remedy: str = ""


class AlreadyExists(Refused):
    """A memory stands where a new one should be made."""

    code: ClassVar[str] = "already-exists"
    says: ClassVar[str] = "{path}: already exists"
    advice: ClassVar[str] = "{remedy}"
    path: str
    remedy: str = ""


class EditRefused(Refused):
    """An edit that cannot be made exactly: empty text, overlap, a line or a value that is not there."""

    code: ClassVar[str] = "edit-refused"
    says: ClassVar[str] = "{path}: {reason}"
    advice: ClassVar[str] = "{remedy}"
    path: str
    reason: str
    remedy: str = ""


class TextAmbiguous(Refused):
    """The text to replace stands a different number of times than expected."""

    code: ClassVar[str] = "text-ambiguous"
    path: str
    old: str
    expected: int
    lines: tuple[int, ...]
    overlapping: bool = False

    @property
    def message(self) -> str:
        where = ", ".join(map(str, self.lines[:_MOST_LINES]))
        times = len(self.lines)
        where += f" and {times - _MOST_LINES} more" if times > _MOST_LINES else ""
        found = f"{times} times, in lines {where}" if times > 1 else f"once, in line {where}"
        return f"{self.path}: {_shortened(self.old)} occurs {found}; expected {self.expected}"

    @property
    def hint(self) -> str:
        if self.overlapping:
            return "the occurrences overlap: give a longer text that stands apart"
        return "give more of the text around it, or say how many there are (--count N, --all)"


class SectionAmbiguous(Refused):
    """A heading that stands more than once."""

    code: ClassVar[str] = "section-ambiguous"
    advice: ClassVar[str] = "give a heading path such as 'Design > Index'"
    path: str
    heading: str
    lines: tuple[int, ...]

    @property
    def message(self) -> str:
        where = ", ".join(map(str, self.lines))
        return f"{self.path}: the heading {self.heading!r} stands {len(self.lines)} times, in lines {where}"


class Conflict(Refused):
    """The memory is no longer what the change was computed from."""

    code: ClassVar[str] = "conflict"
    advice: ClassVar[str] = "read it again, and make the change to what is there now"
    path: str
    base: str | None
    actual: str | None
    diff: str = ""

    @property
    def message(self) -> str:
        seen = f"{self.base[:12]}" if self.base else "absent"
        now = f"{self.actual[:12]}" if self.actual else "absent"
        text = f"{self.path}: changed since it was read (it was {seen}, it is {now})"
        return f"{text}\n{self.diff}".rstrip("\n") if self.diff else text


class UndoRefused(Refused):
    """A change that reached out of the namespace, of which no half is taken back."""

    code: ClassVar[str] = "undo-refused"
    says: ClassVar[str] = "change {change} reached memories outside of this scope as well; nothing was undone"
    advice: ClassVar[str] = "undo it with a scope that holds them all, such as the whole vault"
    change: str


class Invalid(Refused):
    """What would result breaks a schema, or cannot be read; nothing was written."""

    code: ClassVar[str] = "invalid"
    findings: tuple[Any, ...] = ()

    @property
    def message(self) -> str:
        return "\n".join(["the change was refused, nothing was written:", *(f"  {f}" for f in self.findings)])

    @property
    def hint(self) -> str:
        return "\n".join(dict.fromkeys(f.hint for f in self.findings if f.hint))


class ToolRefused(Refused):
    """A command of the memory tool that was not done; `words` is what the model is told."""

    code: ClassVar[str] = "tool-refused"
    says: ClassVar[str] = "{words}"
    words: str


class ConfigInvalid(Refused):
    """`.mdmem/config.toml` cannot be used."""

    code: ClassVar[str] = "config-invalid"
    says: ClassVar[str] = "{path}: {reason}"
    advice: ClassVar[str] = "{remedy}"
    path: str
    reason: str
    remedy: str = ""


class TemplateFailed(Refused):
    """A template that cannot be parsed or rendered."""

    code: ClassVar[str] = "template-failed"
    advice: ClassVar[str] = "{remedy}"
    name: str
    line: int | None
    reason: str
    remedy: str = ""

    @property
    def message(self) -> str:
        where = f"{self.name}:{self.line}" if self.line else self.name
        return f"template {where}: {self.reason}"


class PatternInvalid(Refused):
    """A regular expression or glob that cannot be compiled."""

    code: ClassVar[str] = "pattern-invalid"
    says: ClassVar[str] = "bad pattern {pattern!r}: {reason}"
    advice: ClassVar[str] = "{remedy}"
    pattern: str
    reason: str
    remedy: str = "to look for the characters themselves, leave --regex away"


class PatternTooSlow(Refused):
    """A regular expression that was stopped because it takes too long, or too much memory."""

    code: ClassVar[str] = "pattern-too-slow"
    says: ClassVar[str] = "the pattern {pattern!r} was stopped: it takes more than {seconds:g} s"
    advice: ClassVar[str] = "{remedy}"
    pattern: str
    seconds: float
    remedy: str = "make it simpler: a repeat inside a repeat, such as (a+)+, tries every way to divide a text"


class LimitReached(Refused):
    """A bound of the config would be passed."""

    code: ClassVar[str] = "limit-reached"
    says: ClassVar[str] = "{what}: the limit is {limit}"
    advice: ClassVar[str] = "{remedy}"
    what: str
    limit: int
    remedy: str = ""


class DocumentRefused(Refused):
    """Bytes that cannot be a memory; the file is left as it is."""

    code: ClassVar[str] = "document-refused"
    says: ClassVar[str] = "{path}: this cannot be a memory"
    path: str


class NotUtf8(DocumentRefused):
    """Bytes that are not UTF-8, from the byte at `offset` (0-based) on."""

    code: ClassVar[str] = "not-utf8"
    says: ClassVar[str] = "{path}:{line}: not UTF-8: byte 0x{byte:02x} at offset {offset}"
    advice: ClassVar[str] = "convert the file to UTF-8; mdmem leaves it as it is"
    offset: int
    byte: int
    line: int


class NotEncodable(DocumentRefused):
    """Text that no UTF-8 can carry: a lone surrogate at `offset` (0-based, in characters)."""

    code: ClassVar[str] = "not-encodable"
    says: ClassVar[str] = "{path}: the new text has a lone surrogate at character {offset}"
    advice: ClassVar[str] = "give text that is valid UTF-8"
    offset: int


class BinaryContent(DocumentRefused):
    """A NUL byte at `offset` (0-based): not text."""

    code: ClassVar[str] = "binary"
    says: ClassVar[str] = "{path}: binary content: a NUL byte at offset {offset}"
    advice: ClassVar[str] = "a memory is Markdown or JSON text"
    offset: int


class TooLarge(DocumentRefused):
    """More bytes than `limit`."""

    code: ClassVar[str] = "too-large"
    says: ClassVar[str] = "{path}: {what} has {size:,} bytes; the limit is {limit:,}"
    advice: ClassVar[str] = "split it, or raise the limit in .mdmem/config.toml under [limits]"
    size: int
    limit: int
    what: str = "the file"


class TooNested(DocumentRefused):
    """Values nested deeper, or more of them once aliases are followed, than `limit`."""

    code: ClassVar[str] = "too-nested"
    says: ClassVar[str] = "{path}:{line}: {what}; the limit is {limit:,}"
    advice: ClassVar[str] = "flatten the values"
    limit: int
    what: str
    line: int


class TooManyParts(DocumentRefused):
    """More headings, links, JSON values or the like than `limit`."""

    code: ClassVar[str] = "too-many-parts"
    says: ClassVar[str] = "{path}: there are more than {limit:,} {what}"
    advice: ClassVar[str] = "split it, or raise max_parts in .mdmem/config.toml under [limits]"
    limit: int
    what: str


# -------------------------------------------------------------------------------------------- unavailable


class Unavailable(MdmemError):
    """Something outside the vault is missing or failing; nothing was changed."""

    code: ClassVar[str] = "unavailable"


class StorageFailed(Unavailable):
    """The operating system refused a read or a write: disk full, permission denied, input/output error."""

    code: ClassVar[str] = "storage-failed"
    says: ClassVar[str] = "{path}: cannot {action}: {reason}"
    advice: ClassVar[str] = "nothing was changed; free some space or mend the permissions, and try again"
    path: str
    action: str
    reason: str


class SystemFailing(Unavailable):
    """The operating system has run out of something, or a device fails: it is not about one file.

    What goes on after it would go on with a part of the files, so that only what names each file that it
    leaves out may catch it.
    """

    code: ClassVar[str] = "system-failing"
    says: ClassVar[str] = "{path}: cannot {action}: {reason}"
    advice: ClassVar[str] = "nothing was changed; see to what the system lacks, and try again"
    path: str
    action: str
    reason: str


class LockTimeout(Unavailable):
    """Another process held the vault's write lock for longer than `seconds`."""

    code: ClassVar[str] = "lock-timeout"
    says: ClassVar[str] = "{path}: another process has been writing for {seconds:g} s"
    advice: ClassVar[str] = (
        "try again; the lock ends with the process that holds it, so no file has to be deleted"
    )
    path: str
    seconds: float


class FileBusy(Unavailable):
    """Another program kept the file open for writing for longer than `seconds`."""

    code: ClassVar[str] = "file-busy"
    says: ClassVar[str] = "{path}: another program has had it open for writing for {seconds:g} s"
    advice: ClassVar[str] = (
        "replacing it now could lose what that program writes; close it there, and try again"
    )
    path: str
    seconds: float


class IndexDamaged(Unavailable):
    """The index is not what it was written to be: torn, cut off, of another version, or no index at all."""

    code: ClassVar[str] = "index-damaged"
    says: ClassVar[str] = "{path}: cannot be used as an index: {reason}"
    advice: ClassVar[str] = "nothing is lost: run `mdmem index --rebuild`, or delete the folder"
    path: str
    reason: str


class RipgrepMissing(Unavailable):
    """The program `rg` is neither beside the interpreter nor on PATH."""

    code: ClassVar[str] = "ripgrep-missing"
    says: ClassVar[str] = "ripgrep (rg) was found neither beside the Python interpreter nor on PATH"
    advice: ClassVar[str] = "install it: pip install 'ripgrep>=14.1,<15', or your system's package ripgrep"


class RipgrepTooOld(Unavailable):
    """The `rg` that was found does not know an option that is needed."""

    code: ClassVar[str] = "ripgrep-too-old"
    says: ClassVar[str] = "{program} is {version}, which is too old"
    advice: ClassVar[str] = "install a newer one: pip install 'ripgrep>=14.1,<15'"
    program: str
    version: str


class RipgrepFailed(Unavailable):
    """The program `rg` could not be run, or ended in a way that says nothing about the pattern."""

    code: ClassVar[str] = "ripgrep-failed"
    says: ClassVar[str] = "{program} failed: {reason}"
    advice: ClassVar[str] = "see which one is used, and whether it works, with `mdmem doctor`"
    program: str
    reason: str


class ExtraMissing(Unavailable):
    """A package that only an extra of mdmem brings."""

    code: ClassVar[str] = "extra-missing"
    says: ClassVar[str] = "the package {package!r} is not installed"
    advice: ClassVar[str] = "install the extra that brings it: pip install 'mdmem[{extra}]'"
    extra: str
    package: str


class GitFailed(Unavailable):
    """The program git could not do what it was asked, in a folder that is a repository."""

    code: ClassVar[str] = "git-failed"
    says: ClassVar[str] = "{path}: cannot {action}: {reason}"
    advice: ClassVar[str] = "nothing was changed; see whether `git status` works in that folder"
    path: str
    action: str
    reason: str


def _plain(value: Any) -> Any:
    """A field as JSON has it; findings and near lines become objects."""
    if isinstance(value, NearLine):
        return value._asdict()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.as_dict() if hasattr(value, "as_dict") else value


def _shortened(text: str, most: int = 80) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
