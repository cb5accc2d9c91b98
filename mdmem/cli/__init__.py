"""The program `mdmem`: parse, one call of the façade, render."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from mdmem.cli.app import app

_BUG = 3
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Returns:
        The exit code: 0 done, 1 a finding or no match, 2 wrong usage or refused, 3 a bug, 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # A name or a text that the terminal's encoding lacks must not end the program.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = app.main(list(arguments) if arguments is not None else None, "mdmem", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; without this Python complains when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the one boundary: what is expected becomes a message, a bug says so
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    from mdmem.cli.render import print_error
    from mdmem.errors import MdmemError

    if isinstance(error, MdmemError):
        print_error(error)
        return error.exit_code
    import traceback

    traceback.print_exception(error)
    print("mdmem: this is a bug in mdmem; nothing that it was told to do was half done", file=sys.stderr)
    return _BUG
