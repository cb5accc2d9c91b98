"""The program `mdmem`: parse, one call of the façade, render."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from mdmem.cli.target import Plain, plain

_REFUSED = 2
_INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT)


def program() -> NoReturn:
    """Be the program: run it, and end this process with its exit code."""
    # It is over before collecting garbage would pay, and importing sets collections off.
    gc.disable()
    code = main(sys.argv[1:])
    # Taking the interpreter down, object by object, takes a tenth of what a search does, and closing a
    # database waits for the disk. A vault survives the end of a process at any moment.
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the program with `arguments`, until all that it prints is out.

    Returns:
        The exit code: 0 done, 1 a finding or no match, 2 wrong usage or refused, 3 a bug, 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # A name or a text that the terminal's encoding lacks must not end the program.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
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
        if error.errno not in _FULL:
            from mdmem.cli.line import failed

            return failed(error)
        _drop_output()
        print(f"mdmem: cannot write the output: {error.strerror}", file=sys.stderr)
        return _REFUSED
    return code


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
