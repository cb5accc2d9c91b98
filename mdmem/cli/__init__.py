"""The program `mdmem`: parse, one call of the façade, render."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_INTERRUPTED = 130


def program() -> NoReturn:
    """Be the program, and end this process; an interrupt while it is loaded is no error either."""
    # It is over before collecting garbage would pay, and importing sets collections off.
    gc.disable()
    sys.unraisablehook = _end_process
    try:
        from mdmem.cli.main import program as run

        run()
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made, up to Python 3.11
            os._exit(_INTERRUPTED)
        raise


def _end_process(unraisable: UnraisableHookArgs) -> None:
    """End the process where an interrupt came in a callback of Python's own, which would swallow it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        os._exit(_INTERRUPTED)
    sys.__unraisablehook__(unraisable)
