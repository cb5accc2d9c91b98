"""The program `mdmem`: parse, one call of the façade, render."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from mdmem.cli.target import Plain, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

_REFUSED = 2
_INTERRUPTED = 130
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
# What a full disk, a limit, a terminal that is gone and a reader that is too slow say of the output.
_UNWRITABLE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EBADF,
    errno.ENXIO,
    errno.EAGAIN,
)


def program() -> NoReturn:
    """Be the program: run it, and end this process with its exit code."""
    # It is over before collecting garbage would pay, and importing sets collections off.
    gc.disable()
    _prepare_streams()
    code = main(sys.argv[1:])
    # Taking the interpreter down, object by object, takes a tenth of what a search does, and closing a
    # database waits for the disk. A vault survives the end of a process at any moment.
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the program with `arguments`, until all that it prints is out.

    Returns:
        The exit code: 0 done, 1 a finding or no match, 2 wrong usage or refused, 3 a bug, 130 interrupted.
    """
    try:
        code = _run([*arguments])
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 0  # the reader has seen enough
    except OSError as error:
        if error.errno in _EXHAUSTED:
            print(f"mdmem: the system has run out of something: {error}", file=sys.stderr)
            return _REFUSED
        if error.errno not in _UNWRITABLE or error.filename is not None:
            from mdmem.cli.line import failed

            return failed(error)
        _drop_output()
        with contextlib.suppress(OSError):  # it may be standard error that cannot be written
            told = f"cannot write the output: {error.strerror}; a change that was made stands"
            print(f"mdmem: {told}", file=sys.stderr)
        return _REFUSED
    return code


def _prepare_streams() -> None:
    """Make the standard streams such that nothing printed is lost, refused, or obeyed by a terminal."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It is closed, and the next file to be opened would take its number.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the end
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        kind: type[io.TextIOWrapper[Any]] = io.TextIOWrapper
        if stream.isatty():
            from mdmem.cli.render import Terminal

            kind = Terminal
        elif isinstance(stream.buffer, io.BufferedWriter):
            # A name or a text that the locale's encoding lacks must not end the program.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
            continue
        # With PYTHONUNBUFFERED, Python would not notice that only a part of a text was written.
        file = open(stream.fileno(), "wb", closefd=False)  # noqa: SIM115 - until the end
        setattr(sys, name, kind(file, "utf-8", "backslashreplace", line_buffering=True))


def _run(arguments: list[str]) -> int:
    match plain(arguments):
        case Plain(target, ("hook", event)) if not event.startswith("-"):
            from mdmem.cli.answer import answer

            return answer(target, event)
    from mdmem.cli.line import run

    return run(arguments)


def _drop_output() -> None:
    # Else Python complains when it closes what could not be written.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
