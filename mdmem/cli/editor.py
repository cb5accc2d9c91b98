"""Let the user's editor change a text: `VISUAL`, else `EDITOR`, else what click finds.

The user's environment alone names it. Nothing that came with a vault does, and nothing of a vault stands on
its command line but the suffix of a temporary file, which is ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from mdmem.cli.render import drop_relative_path
from mdmem.errors import MdmemError, ProgramFailed, Usage

if TYPE_CHECKING:
    from mdmem import Applied, Memory

_TAKES_LINE = re.compile(r"(?:^|/)(?:n?vim?|nano|emacs(?:client)?|micro|kak|joe)(?: |$)")


@contextlib.contextmanager
def _leave_interrupts() -> Iterator[None]:
    """Leave an interrupt to the program that has the terminal meanwhile."""
    # A handler means nothing to a program that is started; to ignore a signal would be inherited.
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def edit_data(path: str, data: bytes, line: int = 1) -> bytes:
    """Let the user's editor change a text, in a private file outside of the vault, and wait for that.

    Args:
        path: of the memory; its suffix tells the editor the language.
        line: the 1-based line to open it at, in editors that are known to take one.

    Raises:
        Usage: none is named, and there is no terminal for another one.
        ProgramFailed: there is no editor, or it failed.
    """
    is_named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not is_named and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Usage(problem="an editor needs a terminal, and this is none", remedy="set EDITOR to a program")
    drop_relative_path()
    try:
        with _leave_interrupts():
            place = f" +{line}" if line > 1 and _TAKES_LINE.search(is_named or "") else ""
            editor = f"{is_named}{place}" if place else None
            edited = click.edit(data, editor=editor, extension=os.path.splitext(path)[1])
    except (click.ClickException, OSError, ValueError) as error:
        reason = error.message if isinstance(error, click.ClickException) else str(error)
        remedy = "nothing was changed; set VISUAL or EDITOR to an editor that works"
        raise ProgramFailed(
            code="editor-failed", program="the editor", reason=reason, remedy=remedy
        ) from None
    # That editors end the last line is no change of the user's.
    return data if edited is None or (data and edited == data + b"\n") else edited


def edit_memory(memory: Memory, path: str, line: int = 1) -> Applied | None:
    """Let the user's editor change a memory; a text that is refused is kept in a file, and told of."""
    before = memory.show(path)
    data = edit_data(path, before.data, line)
    if data == before.data:
        return None
    try:
        return memory.write(path, data.decode("utf-8"), base=before)
    except (MdmemError, UnicodeDecodeError) as error:
        keep_data(path, data)
        if isinstance(error, MdmemError):
            raise
        raise Usage(problem=f"the text is not UTF-8 (byte {error.start})") from None


def keep_data(path: str, data: bytes) -> None:
    """Keep a text of the user's in a private file, and print its place."""
    with tempfile.NamedTemporaryFile(prefix="mdmem-", suffix=os.path.splitext(path)[1], delete=False) as file:
        file.write(data)
    print(f"your text is kept in {file.name}", file=sys.stderr)
