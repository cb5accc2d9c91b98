"""The program ripgrep: where it is, running it, what it prints, and what its failures mean."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
import sys
from binascii import a2b_base64
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self, cast

from mdmem.errors import MdmemError, PatternInvalid, ProgramFailed, Usage
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MINIMUM = (13, 0)
_ERRORS_KEPT = 1 << 20
_VERSION = regex(r"ripgrep ([0-9]+(?:\.[0-9]+)*)")
# The start of what ripgrep says; what follows may quote the pattern, so it must not be searched.
_BAD_GLOB = regex(r"(?:rg: )?error parsing glob '(?P<glob>.*)': (?P<reason>.*)", re.DOTALL)
_BAD_PATTERN = regex(r"(?:rg: )?(?:regex parse error|the literal |compiled regex)", re.IGNORECASE)
_FILE_ERROR = regex(r"(?P<path>.*?): (?P<reason>[^:]*) \(os error (?P<number>[0-9]+)\)\s*", re.DOTALL)
# Bytes of a printed line that are read at once, and the most that stand before its matches: a memory that is
# as large as is allowed has 25 MB, all of it escapes.
_LONG, _LONGEST = 1 << 20, 1 << 26
_BUFFER = 1 << 16  # what a pipe holds
# Where the matches begin, and one of them. No string holds either: there, quotes are escaped.
_SUBMATCHES = b'"submatches":['
_SPAN = regex(rb'"start":([0-9]+),"end":([0-9]+)\}')
# Bytes behind the first match of a line in which others are told: more than a hit shows.
_SHOWN = 1 << 14
_INSIDE = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))  # of a character, behind its first byte
_INSTALL = "pip install 'ripgrep>=14.1,<15'"
_GONE = frozenset((errno.ENOENT, errno.ENOTDIR))


def program() -> str:
    """The absolute path of `rg`: the one installed beside the interpreter, else the first on PATH.

    Raises:
        ProgramFailed: neither is there.
    """
    if sys.executable:
        beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "rg")
        if os.path.isfile(beside) and os.access(beside, os.X_OK):
            return beside
    from shutil import which  # noqa: PLC0415 - start-up

    found = which("rg")
    if found is None:
        raise ProgramFailed(
            code="ripgrep-missing",
            program="ripgrep (rg)",
            reason="it was found neither beside the Python interpreter nor on PATH",
            remedy=f"install it: {_INSTALL}, or your system's package ripgrep",
        )
    return os.path.abspath(found)


def version(program: str) -> tuple[int, ...]:
    """The version that `program` gives, such as (14, 1, 0); empty when it gives none.

    Raises:
        ProgramFailed: it cannot be run.
    """
    with Process([program, "--version"]) as process:
        said = _VERSION.match(b"".join(process.lines()).decode("utf-8", "replace"))
    return tuple(map(int, said.group(1).split("."))) if said else ()


class Process:
    """A running ripgrep, ended and waited for when the `with` block is left, however it is left."""

    def __init__(
        self, command: Sequence[str], cwd: str | None = None, given: Iterable[bytes] | None = None
    ) -> None:
        """Start `command` in the folder `cwd`, and give it `given` on its standard input.

        Raises:
            Usage: the command is longer than the system allows.
            ProgramFailed: it cannot be started.
        """
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a list, no shell; the pattern stands behind --
                command,
                bufsize=_BUFFER,
                cwd=cwd,
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise Usage(problem="the pattern is too long", remedy="search for a part of it") from None
            raise _failed(command[0], error.strerror or str(error)) from None
        self._errors = b""
        self._fault: BaseException | None = None
        self._feed = None if given is None else Thread(target=self._give, args=(given,), daemon=True)
        if self._feed:
            self._feed.start()
        # A pipe that nobody reads fills up, and ripgrep would wait for ever.
        self._drain = Thread(target=self._keep_errors, daemon=True)
        self._drain.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._drain.join()
        if self._feed:
            self._feed.join()
        _pipe(self._process.stdout).close()
        _pipe(self._process.stderr).close()

    def _give(self, given: Iterable[bytes]) -> None:
        with contextlib.suppress(BrokenPipeError), _pipe(self._process.stdin) as stream:
            try:
                for data in given:
                    stream.write(data)
            except BrokenPipeError:
                raise
            except BaseException as error:  # noqa: BLE001 - it is raised where the answer is read
                self._fault = error

    def ended(self) -> int:
        """Its exit code, once it has read and printed everything.

        Raises:
            What went wrong where `given` was made.
        """
        if self._feed:
            self._feed.join()
        if self._fault:
            raise self._fault
        return self._process.wait()

    def lines(self) -> Iterator[bytes]:
        """What it prints, line by line, as it prints it.

        Of a line of text that matches very often, the first matches are enough: those beyond are not kept.
        """
        stream = _pipe(self._process.stdout)
        while line := stream.readline(_LONG):
            yield line if len(line) < _LONG or line.endswith(b"\n") else _long_line(line, stream)

    def errors(self) -> str:
        """What it complained about; waits for its end. Names that are not UTF-8 come out replaced."""
        self._process.wait()
        self._drain.join()
        return self._errors.decode("utf-8", "replace")

    def _keep_errors(self) -> None:
        stream = _pipe(self._process.stderr)
        self._errors = stream.read(_ERRORS_KEPT)
        while stream.read(_ERRORS_KEPT):
            pass


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("both streams were asked for when the process was started")
    return stream


def _long_line(begun: bytes, stream: IO[bytes]) -> bytes:
    """All of a line that began so; of one that tells of a match, as much as is looked at."""
    line, part, looked, wanted = bytearray(begun), begun, 0, _LONGEST
    while True:
        if wanted == _LONGEST and (at := line.find(_SUBMATCHES, looked)) >= 0:
            # Of one line of text, those behind the first matches are not shown. Of several, each has its own.
            wanted = sys.maxsize if may_be_several(line[:at]) else 0
        looked = max(0, len(line) - len(_SUBMATCHES))
        if part.endswith(b"\n") or not (part := stream.readline(_LONG)):
            return cast("bytes", line)  # a copy would be as large again
        if len(line) < wanted:
            line += part


def is_whole(printed: bytes) -> bool:
    """Whether what tells of a match has the text of its line; one of many megabytes is not kept."""
    return len(printed) < _LONGEST or _SUBMATCHES in printed


def is_match(printed: bytes) -> bool:
    """Whether a line of `rg --json` tells of a match; that is seen without parsing it."""
    return printed.startswith(b'{"type":"match"')


def message(printed: bytes) -> tuple[str, dict[str, Any]]:
    """The kind and the data of a line of `rg --json`; an empty kind for a line that is none.

    Such a line is cut off because ripgrep was killed, or comes from another program: no summary follows.
    """
    import json  # noqa: PLC0415 - it is imported by then

    try:
        value = json.loads(printed)
        return value["type"], value["data"]
    except (ValueError, TypeError, LookupError):
        return "", {}


def named(data: dict[str, Any]) -> str:
    """The path in a message, as ripgrep was given or found it; what is not UTF-8 comes out replaced."""
    return _bytes(data["path"]).decode("utf-8", "replace")


class Line(NamedTuple):
    r"""A line that matches.

    Attributes:
        number: the line as ripgrep counts, 1-based: it takes only `\n` for the end of one.
        piece: which of the lines inside that line, 0-based: a lone `\r` ends a line too.
        text: the line without its line end; what is not UTF-8 comes out replaced.
        spans: what of it matched, in code points; those that a hit can show.
    """

    number: int
    piece: int
    text: str
    spans: tuple[tuple[int, int], ...]


def matching_lines(printed: bytes) -> Iterator[Line]:
    """The lines that a message of kind `match` tells of: one, unless lone carriage returns part it."""
    at = printed.find(_SUBMATCHES)
    # The matches are read one by one: a line of megabytes may have millions.
    _, data = message(printed[: at + len(_SUBMATCHES)] + b"]}}" if at >= 0 else printed)
    if not data:
        return
    content = _bytes(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
    found = _spans(printed, at, len(content))
    start, stop = next(found, (0, 0))
    begin, number = 0, 0
    while begin <= start:
        end = content.find(b"\r", begin)
        end = len(content) if end < 0 else end
        inside: list[tuple[int, int]] = []
        while begin <= start <= end:
            if not inside or start - begin - inside[0][0] < _SHOWN:
                inside.append((start - begin, min(stop, end) - begin))
            start, stop = next(found, (-1, -1))
        if inside:
            piece = content[begin:end]
            yield Line(data["line_number"], number, piece.decode("utf-8", "replace"), _points(piece, inside))
        begin, number = end + 1, number + 1


def _spans(printed: bytes, at: int, most: int) -> Iterator[tuple[int, int]]:
    """What matched, in bytes of the line; at most `most` is where one begins."""
    # An anchored pattern may match the line and, out of its surroundings, nothing in it.
    spans = ((min(int(m[1]), most), int(m[2])) for m in _SPAN.finditer(printed, max(at, 0)))
    first = next(spans, (0, 0))
    yield first
    yield from spans


def _points(data: bytes, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same spans in code points; they are in order."""
    if data.isascii():
        return tuple(spans)
    at = points = 0
    found = []
    for start, stop in spans:
        if start == stop and data[start : start + 1] in _INSIDE:
            continue  # nothing, and that between the bytes of a character
        first = points + len(data[at:start].decode("utf-8", "replace"))
        points = first + len(data[start:stop].decode("utf-8", "replace"))
        found.append((first, points))
        at = stop
    return tuple(found)


def may_be_several(printed: bytes | bytearray) -> bool:
    """Whether there may be more than one of `matching_lines`; that is seen without parsing it."""
    return b"\\r" in printed or b'"bytes":' in printed


def count_lines(printed: bytes) -> int:
    """How many `matching_lines` there are; a message that cannot hold several is not parsed."""
    return sum(1 for _ in matching_lines(printed)) if may_be_several(printed) else 1


def _bytes(value: dict[str, str]) -> bytes:
    if "text" in value:
        return value["text"].encode()
    return a2b_base64(value["bytes"])  # what is not UTF-8


def failure(program: str, errors: str, pattern: str) -> MdmemError:
    """Why a search ended before it began: what `program` complained about, as an error to raise."""
    glob = _BAD_GLOB.match(errors)
    if glob:
        return PatternInvalid(pattern=glob["glob"], reason=glob["reason"].strip(), remedy="mend the glob")
    if _BAD_PATTERN.match(errors):
        return PatternInvalid(pattern=pattern, reason=_reason(errors))
    found = version(program)
    if found and found < MINIMUM:
        reason = f"ripgrep {'.'.join(map(str, found))} is too old"
        remedy = f"install a newer one: {_INSTALL}"
        return ProgramFailed(code="ripgrep-too-old", program=program, reason=reason, remedy=remedy)
    return _failed(program, _reason(errors))


def _failed(program: str, reason: str) -> ProgramFailed:
    remedy = "see which one is used, and whether it works, with `mdmem doctor`"
    return ProgramFailed(code="ripgrep-failed", program=program, reason=reason, remedy=remedy)


def _reason(errors: str) -> str:
    """The line that says it: the last `error:` of a regex report, else the first one; never the advice."""
    lines = [line.removeprefix("rg: ").strip() for line in errors.splitlines() if line.strip()]
    stated = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (stated[-1:] or lines[:1] or ["it ended without a word"])[0]


class Unsearched(NamedTuple):
    """A file or folder that could not be searched; `path` as ripgrep names it, empty when it names none."""

    path: str
    reason: str


def unread(errors: str) -> list[Unsearched]:
    """What a search that went through could not read, by path. What has vanished meanwhile is not missed."""
    result = []
    for said in re.split(r"^rg: ", errors, flags=re.MULTILINE):
        found = _FILE_ERROR.fullmatch(said)
        if found and int(found["number"]) not in _GONE:
            result.append(Unsearched(found["path"], found["reason"]))
        elif not found and said.strip():
            result.append(Unsearched("", said.strip()))
    return sorted(result)
