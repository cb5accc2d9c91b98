"""Every exception of mdmem, one tree: an exception means that the operation did not happen.

    MdmemError
    ├── Usage                an argument that cannot mean anything
    ├── NotFound             MemoryNotFound, TextNotFound, SectionNotFound, FieldNotFound, VaultNotFound …
    ├── Refused              PathRefused, TextAmbiguous, SectionAmbiguous, Conflict, Invalid …
    │   └── DocumentRefused  NotUtf8, BinaryContent, TooLarge, TooNested
    └── Unavailable          StorageFailed, LockTimeout, FileBusy, RipgrepMissing, RipgrepTooOld

Each class says what happened, where, and what to do next, from its fields.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar


@dataclass(kw_only=True, eq=False)
class MdmemError(Exception):
    """The base of all errors of mdmem.

    `code` names the class for programs and never changes; `exit_code` is what the program ends with.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    @property
    def message(self) -> str:
        """What happened, and where."""
        return self.code

    @property
    def hint(self) -> str:
        """What to do next; empty when the message says it all."""
        return ""

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only fields do not travel through Exception.args, so a process pool could not return one.
        return _rebuild, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})

    def as_dict(self) -> dict[str, Any]:
        """The error as a JSON object: `code`, `message`, `hint`, and the fields that are plain values."""
        plain = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"code": self.code, "message": self.message, "hint": self.hint, **plain}


def _rebuild(kind: type[MdmemError], values: dict[str, Any]) -> MdmemError:
    return kind(**values)


@dataclass(kw_only=True, eq=False)
class Usage(MdmemError):
    """An argument that cannot mean anything."""

    code: ClassVar[str] = "usage"
    problem: str
    remedy: str = ""

    @property
    def message(self) -> str:
        return self.problem

    @property
    def hint(self) -> str:
        return self.remedy


# ---------------------------------------------------------------------------------------------- not found


@dataclass(kw_only=True, eq=False)
class NotFound(MdmemError):
    """What was asked for is not there."""

    code: ClassVar[str] = "not-found"
    exit_code: ClassVar[int] = 1


@dataclass(kw_only=True, eq=False)
class VaultNotFound(NotFound):
    """No vault at, or above, a folder."""

    code: ClassVar[str] = "vault-not-found"
    exit_code: ClassVar[int] = 2
    start: str

    @property
    def message(self) -> str:
        return f"no vault found at or above {self.start}"

    @property
    def hint(self) -> str:
        return "make one with `mdmem init`, or name one with --vault or MDMEM_VAULT"


@dataclass(kw_only=True, eq=False)
class MemoryNotFound(NotFound):
    """No memory at a path."""

    code: ClassVar[str] = "memory-not-found"
    path: str
    near: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return f"{self.path}: no such memory"

    @property
    def hint(self) -> str:
        return f"nearest names: {', '.join(self.near)}" if self.near else "list what there is with `mdmem ls`"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearLine:
    """A line that is almost what was looked for: its 1-based number, its text, and what differs."""

    line: int
    text: str
    differs: str


@dataclass(kw_only=True, eq=False)
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


@dataclass(kw_only=True, eq=False)
class SectionNotFound(NotFound):
    """No section with this heading or heading path."""

    code: ClassVar[str] = "section-not-found"
    path: str
    heading: str
    near: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return f"{self.path}: no section {self.heading!r}"

    @property
    def hint(self) -> str:
        return f"its headings: {'; '.join(self.near)}" if self.near else "the memory has no headings"


@dataclass(kw_only=True, eq=False)
class FieldNotFound(NotFound):
    """No such key in the frontmatter or JSON."""

    code: ClassVar[str] = "field-not-found"
    path: str
    key: str
    near: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return f"{self.path}: no field {self.key!r}"

    @property
    def hint(self) -> str:
        return f"its fields: {', '.join(self.near)}" if self.near else "it has no fields"


@dataclass(kw_only=True, eq=False)
class NamedNotFound(NotFound):
    """No schema, template, rule, preference, change or version of this name."""

    code: ClassVar[str] = "name-not-found"
    kind: str
    name: str
    near: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return f"no {self.kind} {self.name!r}"

    @property
    def hint(self) -> str:
        return f"there is: {', '.join(self.near)}" if self.near else f"there is no {self.kind} at all"


# ------------------------------------------------------------------------------------------------ refused


@dataclass(kw_only=True, eq=False)
class Refused(MdmemError):
    """The operation is understood and will not be done."""

    code: ClassVar[str] = "refused"


@dataclass(kw_only=True, eq=False)
class PathRefused(Refused):
    """A path that leaves its namespace, or names nothing that can be a memory."""

    code: ClassVar[str] = "path-refused"
    path: str
    reason: str
    remedy: str = ""

    @property
    def message(self) -> str:
        return f"{self.path!r}: {self.reason}"

    @property
    def hint(self) -> str:
        return self.remedy


@dataclass(kw_only=True, eq=False)
class AlreadyExists(Refused):
    """A memory stands where a new one should be made."""

    code: ClassVar[str] = "already-exists"
    path: str
    remedy: str = ""

    @property
    def message(self) -> str:
        return f"{self.path}: already exists"

    @property
    def hint(self) -> str:
        return self.remedy


@dataclass(kw_only=True, eq=False)
class EditRefused(Refused):
    """An edit that cannot be made exactly: empty text, overlap, a line or a value that is not there."""

    code: ClassVar[str] = "edit-refused"
    path: str
    reason: str
    remedy: str = ""

    @property
    def message(self) -> str:
        return f"{self.path}: {self.reason}"

    @property
    def hint(self) -> str:
        return self.remedy


@dataclass(kw_only=True, eq=False)
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
        where = ", ".join(map(str, self.lines))
        times = len(self.lines)
        found = f"{times} times, in lines {where}" if times > 1 else f"once, in line {where}"
        return f"{self.path}: {_shortened(self.old)} occurs {found}; expected {self.expected}"

    @property
    def hint(self) -> str:
        if self.overlapping:
            return "the occurrences overlap: give a longer text that stands apart"
        return "give more of the text around it, or say how many there are (--count N, --all)"


@dataclass(kw_only=True, eq=False)
class SectionAmbiguous(Refused):
    """A heading that stands more than once."""

    code: ClassVar[str] = "section-ambiguous"
    path: str
    heading: str
    lines: tuple[int, ...]

    @property
    def message(self) -> str:
        where = ", ".join(map(str, self.lines))
        return f"{self.path}: the heading {self.heading!r} stands {len(self.lines)} times, in lines {where}"

    @property
    def hint(self) -> str:
        return "give a heading path such as 'Design > Index'"


@dataclass(kw_only=True, eq=False)
class Conflict(Refused):
    """The memory is no longer what the change was computed from."""

    code: ClassVar[str] = "conflict"
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

    @property
    def hint(self) -> str:
        return "read it again, and make the change to what is there now"


@dataclass(kw_only=True, eq=False)
class Invalid(Refused):
    """What would result breaks a schema, or cannot be read; nothing was written."""

    code: ClassVar[str] = "invalid"
    findings: tuple[Any, ...] = field(default=())

    @property
    def message(self) -> str:
        return "\n".join(["the change was refused, nothing was written:", *(f"  {f}" for f in self.findings)])

    @property
    def hint(self) -> str:
        return "\n".join(dict.fromkeys(f.hint for f in self.findings if f.hint))


@dataclass(kw_only=True, eq=False)
class ConfigInvalid(Refused):
    """`.mdmem/config.toml` cannot be used."""

    code: ClassVar[str] = "config-invalid"
    path: str
    reason: str
    remedy: str = ""

    @property
    def message(self) -> str:
        return f"{self.path}: {self.reason}"

    @property
    def hint(self) -> str:
        return self.remedy


@dataclass(kw_only=True, eq=False)
class SchemaBroken(Refused):
    """A schema that is not a schema, or whose references cannot be found."""

    code: ClassVar[str] = "schema-broken"
    name: str
    reason: str

    @property
    def message(self) -> str:
        return f"schema {self.name!r}: {self.reason}"

    @property
    def hint(self) -> str:
        return "see what is wrong with `mdmem schema check`"


@dataclass(kw_only=True, eq=False)
class TemplateFailed(Refused):
    """A template that cannot be parsed or rendered."""

    code: ClassVar[str] = "template-failed"
    name: str
    line: int | None
    reason: str
    remedy: str = ""

    @property
    def message(self) -> str:
        where = f"{self.name}:{self.line}" if self.line else self.name
        return f"template {where}: {self.reason}"

    @property
    def hint(self) -> str:
        return self.remedy


@dataclass(kw_only=True, eq=False)
class PatternInvalid(Refused):
    """A regular expression or glob that cannot be compiled."""

    code: ClassVar[str] = "pattern-invalid"
    pattern: str
    reason: str
    remedy: str = "to look for the characters themselves, leave --regex away"

    @property
    def message(self) -> str:
        return f"bad pattern {self.pattern!r}: {self.reason}"

    @property
    def hint(self) -> str:
        return self.remedy


@dataclass(kw_only=True, eq=False)
class LimitReached(Refused):
    """A bound of the config would be passed."""

    code: ClassVar[str] = "limit-reached"
    what: str
    limit: int
    remedy: str = ""

    @property
    def message(self) -> str:
        return f"{self.what}: the limit is {self.limit}"

    @property
    def hint(self) -> str:
        return self.remedy


@dataclass(kw_only=True, eq=False)
class DocumentRefused(Refused):
    """Bytes that cannot be a memory; the file is left as it is."""

    code: ClassVar[str] = "document-refused"
    path: str

    @property
    def message(self) -> str:
        return f"{self.path}: this cannot be a memory"


@dataclass(kw_only=True, eq=False)
class NotUtf8(DocumentRefused):
    """Bytes that are not UTF-8, from the byte at `offset` (0-based) on."""

    code: ClassVar[str] = "not-utf8"
    offset: int
    byte: int
    line: int

    @property
    def message(self) -> str:
        return f"{self.path}:{self.line}: not UTF-8: byte 0x{self.byte:02x} at offset {self.offset}"

    @property
    def hint(self) -> str:
        return "convert the file to UTF-8; mdmem leaves it as it is"


@dataclass(kw_only=True, eq=False)
class NotEncodable(DocumentRefused):
    """Text that no UTF-8 can carry: a lone surrogate at `offset` (0-based, in characters)."""

    code: ClassVar[str] = "not-encodable"
    offset: int

    @property
    def message(self) -> str:
        return f"{self.path}: the new text has a lone surrogate at character {self.offset}"

    @property
    def hint(self) -> str:
        return "give text that is valid UTF-8"


@dataclass(kw_only=True, eq=False)
class BinaryContent(DocumentRefused):
    """A NUL byte at `offset` (0-based): not text."""

    code: ClassVar[str] = "binary"
    offset: int

    @property
    def message(self) -> str:
        return f"{self.path}: binary content: a NUL byte at offset {self.offset}"

    @property
    def hint(self) -> str:
        return "a memory is Markdown or JSON text"


@dataclass(kw_only=True, eq=False)
class TooLarge(DocumentRefused):
    """More bytes than `limit`."""

    code: ClassVar[str] = "too-large"
    size: int
    limit: int
    what: str = "the file"

    @property
    def message(self) -> str:
        return f"{self.path}: {self.what} has {self.size:,} bytes; the limit is {self.limit:,}"

    @property
    def hint(self) -> str:
        return "split it, or raise the limit in .mdmem/config.toml under [limits]"


@dataclass(kw_only=True, eq=False)
class TooNested(DocumentRefused):
    """Values nested deeper, or more of them once aliases are followed, than `limit`."""

    code: ClassVar[str] = "too-nested"
    limit: int
    what: str
    line: int

    @property
    def message(self) -> str:
        return f"{self.path}:{self.line}: {self.what}; the limit is {self.limit:,}"

    @property
    def hint(self) -> str:
        return "flatten the values"


# -------------------------------------------------------------------------------------------- unavailable


@dataclass(kw_only=True, eq=False)
class Unavailable(MdmemError):
    """Something outside the vault is missing or failing; nothing was changed."""

    code: ClassVar[str] = "unavailable"


@dataclass(kw_only=True, eq=False)
class StorageFailed(Unavailable):
    """The operating system refused a read or a write: disk full, permission denied, input/output error."""

    code: ClassVar[str] = "storage-failed"
    path: str
    action: str
    reason: str

    @property
    def message(self) -> str:
        return f"{self.path}: cannot {self.action}: {self.reason}"

    @property
    def hint(self) -> str:
        return "nothing was changed; free some space or mend the permissions, and try again"


@dataclass(kw_only=True, eq=False)
class LockTimeout(Unavailable):
    """Another process held the vault's write lock for longer than `seconds`."""

    code: ClassVar[str] = "lock-timeout"
    path: str
    seconds: float

    @property
    def message(self) -> str:
        return f"{self.path}: another process has been writing for {self.seconds:g} s"

    @property
    def hint(self) -> str:
        return "try again; the lock ends with the process that holds it, so no file has to be deleted"


@dataclass(kw_only=True, eq=False)
class FileBusy(Unavailable):
    """Another program kept the file open for writing for longer than `seconds`."""

    code: ClassVar[str] = "file-busy"
    path: str
    seconds: float

    @property
    def message(self) -> str:
        return f"{self.path}: another program has had it open for writing for {self.seconds:g} s"

    @property
    def hint(self) -> str:
        return "replacing it now could lose what that program writes; close it there, and try again"


@dataclass(kw_only=True, eq=False)
class RipgrepMissing(Unavailable):
    """The program `rg` is neither beside the interpreter nor on PATH."""

    code: ClassVar[str] = "ripgrep-missing"

    @property
    def message(self) -> str:
        return "ripgrep (rg) was found neither beside the Python interpreter nor on PATH"

    @property
    def hint(self) -> str:
        return "install it: pip install 'ripgrep>=14.1,<15', or your system's package ripgrep"


@dataclass(kw_only=True, eq=False)
class RipgrepTooOld(Unavailable):
    """The `rg` that was found does not know an option that is needed."""

    code: ClassVar[str] = "ripgrep-too-old"
    program: str
    version: str

    @property
    def message(self) -> str:
        return f"{self.program} is {self.version}, which is too old"

    @property
    def hint(self) -> str:
        return "install a newer one: pip install 'ripgrep>=14.1,<15'"


@dataclass(kw_only=True, eq=False)
class RipgrepFailed(Unavailable):
    """The program `rg` could not be run, or ended in a way that says nothing about the pattern."""

    code: ClassVar[str] = "ripgrep-failed"
    program: str
    reason: str

    @property
    def message(self) -> str:
        return f"{self.program} failed: {self.reason}"

    @property
    def hint(self) -> str:
        return "see which one is used, and whether it works, with `mdmem doctor`"


def _plain(value: Any) -> Any:
    """A field as JSON has it; findings and near lines become objects."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, NearLine):
        return asdict(value)
    return value.as_dict() if hasattr(value, "as_dict") else value


def _shortened(text: str, most: int = 80) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
