"""The command line: click reads it, and what goes wrong becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from itertools import takewhile

import click

from mdmem.cli.app import app

_BUG = 3
_COMPLETE = "_MDMEM_COMPLETE"  # set by the completion script of a shell


def run(arguments: list[str]) -> int:
    """What click's own `main` does, except that an interrupt and a closed pipe are left to the caller.

    Returns:
        The exit code.
    """
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
    except click.Abort:
        raise KeyboardInterrupt from None
    except OSError:
        raise  # errors of the vault are errors of ours: this is the output
    except Exception as error:  # noqa: BLE001 - the one boundary: what is expected becomes a message, a bug says so
        return failed(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def failed(error: Exception, *, as_json: bool = False) -> int:
    """Say what went wrong; the exit code."""
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
