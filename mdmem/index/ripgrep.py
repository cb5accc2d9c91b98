"""The program ripgrep: find it, run it, parse its output and its failures."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
import sys
from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Sequence
from threading import Thread
from typing import IO, Any, NamedTuple, Self, cast

from mdmem.document.text.regex import regex
from mdmem.errors import MdmemError, PatternInvalid, ProgramFailed, Usage

MINIMUM = (13, 0)
_ERRORS_KEPT = 1 << 20
_VERSION = regex(r"ripgrep ([0-9]+(?:\.[0-9]+)*)")
# Matched at the start of the output only: what follows may quote the pattern.
_BAD_PATTERN = regex(r"(?:rg: )?(?:regex parse error|the literal |compiled regex)", re.IGNORECASE)
_FILE_ERROR = regex(r"(?P<path>.*?): (?P<reason>[^:]*) \(os error (?P<number>[0-9]+)\)\s*", re.DOTALL)
# Bytes of a printed line that are read at once, and the most before its matches: the largest memory has 25 MB
# when all of it is escaped.
_LONG, _LONGEST = 1 << 20, 1 << 26
_BUFFER = 1 << 16  # the size of a pipe
# Where the matches begin, and one of them. No string holds either, because quotes are escaped.
_SUBMATCHES = b'"submatches":['
_SPAN = regex(rb'"start":([0-9]+),"end":([0-9]+)\}')
# Bytes after the first match of a line in which others are listed: more than a hit shows.
_SHOWN = 1 << 14
_INSIDE = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))  # the later bytes of a character
_INSTALL = "pip install 'ripgrep>=14.1,<15'"
_GONE = frozenset((errno.ENOENT, errno.ENOTDIR))
_CASES = {"ignore": "--ignore-case", "smart": "--smart-case", "exact": "--case-sensitive"}


def case_option(case: str) -> str:
    """Return the option that says how letter case counts; raises Usage where it is none of three words."""
    if case not in _CASES:
        raise Usage(problem=f"case is {', '.join(_CASES)}, not {case!r}")
    return _CASES[case]


def program() -> str:
    """Return the absolute path of `rg`: the one installed beside the interpreter, else the first on PATH.

    Raises:
        ProgramFailed: neither is there.
    """
    if sys.executable:
        beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "rg")
        if os.path.isfile(beside) and os.access(beside, os.X_OK):
            return beside
    from shutil import which  # noqa: PLC0415 - start-up

    path = which("rg")
    if path is None:
        raise ProgramFailed(
            code="ripgrep-missing",
            program="ripgrep (rg)",
            reason="it was found neither beside the Python interpreter nor on PATH",
            remedy=f"install it: {_INSTALL}, or your system's package ripgrep",
        )
    return os.path.abspath(path)


def version(program: str) -> tuple[int, ...]:
    """Return the version of `program`, such as (14, 1, 0); empty when it prints none.

    Raises:
        ProgramFailed: it cannot be run.
    """
    with Process([program, "--version"]) as process:
        printed = _VERSION.match(b"".join(process.lines()).decode("utf-8", "replace"))
    return tuple(map(int, printed.group(1).split("."))) if printed else ()


class Process:
    """A running ripgrep; it is ended when the `with` block is left."""

    def __init__(
        self, command: Sequence[str], cwd: str | None = None, given: Iterable[bytes] | None = None
    ) -> None:
        """Start `command` in the folder `cwd`, with `given` on its standard input.

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
            raise _make_failure(command[0], error.strerror or str(error)) from None
        self._errors = b""
        self._fault: BaseException | None = None
        self._feed = None if given is None else Thread(target=self._feed_input, args=(given,), daemon=True)
        if self._feed:
            self._feed.start()
        # A pipe that is not read fills up, and ripgrep would wait for ever.
        self._drain = Thread(target=self._collect_errors, daemon=True)
        self._drain.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._drain.join()
        if self._feed:
            self._feed.join()
        _require_pipe(self._process.stdout).close()
        _require_pipe(self._process.stderr).close()

    def _feed_input(self, given: Iterable[bytes]) -> None:
        with contextlib.suppress(BrokenPipeError), _require_pipe(self._process.stdin) as stream:
            try:
                for data in given:
                    stream.write(data)
            except BrokenPipeError:
                raise
            except BaseException as error:  # noqa: BLE001 - `ended` raises it
                self._fault = error

    def ended(self) -> int:
        """Wait for the end and return the exit code; raise an error of `given`."""
        if self._feed:
            self._feed.join()
        if self._fault:
            raise self._fault
        return self._process.wait()

    def lines(self) -> Iterator[bytes]:
        """Return its output, line by line; of a very long line, only the first matches."""
        stream = _require_pipe(self._process.stdout)
        while line := stream.readline(_LONG):
            yield line if len(line) < _LONG or line.endswith(b"\n") else _read_long_line(line, stream)

    def errors(self) -> str:
        """Wait for the end and return its error output; names that are not UTF-8 are replaced."""
        self._process.wait()
        self._drain.join()
        return self._errors.decode("utf-8", "replace")

    def _collect_errors(self) -> None:
        stream = _require_pipe(self._process.stderr)
        self._errors = stream.read(_ERRORS_KEPT)
        while stream.read(_ERRORS_KEPT):
            pass


def _require_pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("both streams were asked for when the process was started")
    return stream


def _read_long_line(begun: bytes, stream: IO[bytes]) -> bytes:
    """Read the rest of a line; of one with a match, no more than the first matches."""
    line, part, searched, wanted = bytearray(begun), begun, 0, _LONGEST
    while True:
        if wanted == _LONGEST and (at := line.find(_SUBMATCHES, searched)) >= 0:
            # Only the first matches of one line of text are shown; several lines each have their own.
            wanted = sys.maxsize if may_be_several(line[:at]) else 0
        searched = max(0, len(line) - len(_SUBMATCHES))
        if part.endswith(b"\n") or not (part := stream.readline(_LONG)):
            return cast("bytes", line)  # a copy would be as large again
        if len(line) < wanted:
            line += part


def is_whole(printed: bytes) -> bool:
    """Return whether a match has the text of its line, which is dropped when it has many megabytes."""
    return len(printed) < _LONGEST or _SUBMATCHES in printed


def is_match(printed: bytes) -> bool:
    """Return whether a line of `rg --json` is a match, without parsing it."""
    return printed.startswith(b'{"type":"match"')


def message(printed: bytes) -> tuple[str, dict[str, Any]]:
    """Return the kind and data of a line of `rg --json`; an empty kind for a line that is cut off."""
    import json  # noqa: PLC0415 - it is imported by then

    try:
        value = json.loads(printed)
        return value["type"], value["data"]
    except (ValueError, TypeError, LookupError):
        return "", {}


def named(data: dict[str, Any]) -> str:
    """Return the path in a message; a name that is not UTF-8 is spelled as Python does."""
    return os.fsdecode(_decode_bytes(data["path"]))


class Line(NamedTuple):
    r"""A line that matches.

    Attributes:
        number: the line as ripgrep counts, 1-based: only `\n` ends one.
        piece: the number of the line inside that line, 0-based: a lone `\r` ends a line too.
        text: the line without its line end; bytes that are not UTF-8 are replaced.
        spans: what of it matched, in code points, as far as a hit can show.
    """

    number: int
    piece: int
    text: str
    spans: tuple[tuple[int, int], ...]


def matching_lines(printed: bytes) -> Iterator[Line]:
    """Return the lines of a message of kind `match`: one, unless it has lone carriage returns."""
    at = printed.find(_SUBMATCHES)
    # The matches are parsed one by one: a line of megabytes may have millions.
    _, data = message(printed[: at + len(_SUBMATCHES)] + b"]}}" if at >= 0 else printed)
    if not data:
        return
    content = _decode_bytes(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
    spans = _parse_spans(printed, at, len(content))
    start, stop = next(spans, (0, 0))
    begin, number = 0, 0
    while begin <= start:
        end = content.find(b"\r", begin)
        end = len(content) if end < 0 else end
        inside: list[tuple[int, int]] = []
        while begin <= start <= end:
            if not inside or start - begin - inside[0][0] < _SHOWN:
                inside.append((start - begin, min(stop, end) - begin))
            start, stop = next(spans, (-1, -1))
        if inside:
            piece = content[begin:end]
            yield Line(
                data["line_number"], number, piece.decode("utf-8", "replace"), _to_code_points(piece, inside)
            )
        begin, number = end + 1, number + 1


def _parse_spans(printed: bytes, at: int, most: int) -> Iterator[tuple[int, int]]:
    spans = ((min(int(m[1]), most), int(m[2])) for m in _SPAN.finditer(printed, max(at, 0)))
    yield next(spans, (0, 0))  # an anchored pattern may match the line without a span
    yield from spans


def _to_code_points(data: bytes, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Convert spans, which are in order, from bytes to code points."""
    if data.isascii():
        return tuple(spans)
    at = points = 0
    converted = []
    for start, stop in spans:
        if start == stop and data[start : start + 1] in _INSIDE:
            continue  # an empty match between the bytes of a character
        first = points + len(data[at:start].decode("utf-8", "replace"))
        points = first + len(data[start:stop].decode("utf-8", "replace"))
        converted.append((first, points))
        at = stop
    return tuple(converted)


def may_be_several(printed: bytes | bytearray) -> bool:
    """Return whether there may be several `matching_lines`, without parsing."""
    return b"\\r" in printed or b'"bytes":' in printed


def count_lines(printed: bytes) -> int:
    """Count the `matching_lines`."""
    return sum(1 for _ in matching_lines(printed)) if may_be_several(printed) else 1


def _decode_bytes(value: dict[str, str]) -> bytes:
    if "text" in value:
        return value["text"].encode()
    return a2b_base64(value["bytes"])  # what is not UTF-8


def failure(program: str, errors: str, pattern: str) -> MdmemError:
    """Make the error to raise from what `program` printed instead of a summary."""
    if _BAD_PATTERN.match(errors):
        return PatternInvalid(pattern=pattern, reason=_find_reason(errors))
    installed = version(program)
    if installed and installed < MINIMUM:
        reason = f"ripgrep {'.'.join(map(str, installed))} is too old"
        remedy = f"install a newer one: {_INSTALL}"
        return ProgramFailed(code="ripgrep-too-old", program=program, reason=reason, remedy=remedy)
    return _make_failure(program, _find_reason(errors))


def _make_failure(program: str, reason: str) -> ProgramFailed:
    remedy = "see which one is used, and whether it works, with `mdmem doctor`"
    return ProgramFailed(code="ripgrep-failed", program=program, reason=reason, remedy=remedy)


def _find_reason(errors: str) -> str:
    """Return the line with the reason: the last `error:` of a regex report, else the first line."""
    lines = [line.removeprefix("rg: ").strip() for line in errors.splitlines() if line.strip()]
    stated = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (stated[-1:] or lines[:1] or ["it ended without a word"])[0]


def unread(errors: str) -> list[tuple[str, str]]:
    """Return what a search could not read, and why, without files that are gone by now.

    Each has its path as ripgrep names it; empty where it names none.
    """
    unsearched = []
    for error in re.split(r"^rg: ", errors, flags=re.MULTILINE):
        match = _FILE_ERROR.fullmatch(error)
        if match and int(match["number"]) not in _GONE:
            unsearched.append((match["path"], match["reason"]))
        elif not match and error.strip():
            unsearched.append(("", error.strip()))
    return sorted(unsearched)
