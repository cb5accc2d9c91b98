"""The program `mdmem`: parse, one call of the façade, render."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import NoReturn

import click

from mdmem.cli.app import app

_REFUSED = 2
_BUG = 3
_INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT)
_COMPLETE = "_MDMEM_COMPLETE"  # set by the completion script of a shell


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
    except BrokenPipeError:
        _drop_output()
        return 0  # the reader has seen enough
    except OSError as error:
        if error.errno not in _FULL:
            return _failed(error)
        _drop_output()
        print(f"mdmem: cannot write the output: {error.strerror}", file=sys.stderr)
        return _REFUSED
    return code


def _run(arguments: list[str]) -> int:
    """What click's own `main` does, except that a closed pipe and an error are left to us."""
    instruction = os.environ.get(_COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(app, {}, "mdmem", _COMPLETE, instruction)
    as_json = "--json" in takewhile(lambda argument: argument != "--", arguments)
    try:
        with app.make_context("mdmem", arguments.copy()) as context:
            code = app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except OSError:
        raise  # errors of the vault are errors of ours: this is the output
    except Exception as error:  # noqa: BLE001 - the one boundary: what is expected becomes a message, a bug says so
        return _failed(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    # Else Python complains when it closes what could not be written.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: Exception, *, as_json: bool = False) -> int:
    from mdmem.cli.render import print_error, print_usage
    from mdmem.errors import MdmemError

    if isinstance(error, click.ClickException):
        print_usage(error, as_json=as_json)
        return error.exit_code
    if isinstance(error, MdmemError):
        print_error(error, as_json=as_json)
        return error.exit_code
    import traceback

    traceback.print_exception(error)
    print("mdmem: this is a bug in mdmem; nothing that it was told to do was half done", file=sys.stderr)
    return _BUG
