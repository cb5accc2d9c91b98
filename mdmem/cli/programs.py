"""Let the user's editor change a text: `VISUAL`, else `EDITOR`, else what click finds.

The user's environment alone names it. Nothing that came with a vault does, and nothing of a vault stands on
its command line but the name of a temporary file, which is ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
from typing import TYPE_CHECKING, Self

import click

from mdmem.cli.render import drop_relative_path
from mdmem.errors import NotUtf8, ProgramFailed, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Iterator


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


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,100}")


class Draft:
    """Keeps a text in a private file outside of the vault, which the user's editor changes.

    What an editor puts beside it stays out of the vault, too. When the draft ends and is not `is_done`, a
    text that was changed is kept, and its place is printed; otherwise the file is removed.

    Args:
        path: of the memory; the file is called like it if its name is a plain one.
        data: what it holds.

    Raises:
        StorageFailed: there is no room for it.
    """

    def __init__(self, path: str, data: bytes) -> None:
        name = os.path.basename(path)
        name = name if _PLAIN_NAME.fullmatch(name) else f"memory{os.path.splitext(name)[1]}"
        self._data = data
        self.is_done = False
        try:
            self._folder = tempfile.mkdtemp(prefix="mdmem-")
            self.file = os.path.join(self._folder, name)
            descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(data)
        except OSError as error:
            reason = error.strerror or str(error)
            raise StorageFailed(path=path, action="make a copy for the editor", reason=reason) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_done or not self.is_changed:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            print(f"your text is kept in {self.file}", file=sys.stderr)

    @property
    def data(self) -> bytes | None:
        """Return what the file holds now; None if it is gone, or is a link or a pipe."""
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.lstat(self.file).st_mode):
                with open(self.file, "rb") as file:
                    return file.read()
        return None

    @property
    def is_changed(self) -> bool:
        """Tell whether the text is another one; that editors end the last line is no change of the user's."""
        now = self.data
        return now is not None and now not in {self._data, self._data + b"\n"[: bool(self._data)]}

    def edit(self) -> str:
        """Let the user's editor change it, and wait for that; return the text then.

        Raises:
            ProgramFailed: there is no editor, or it failed.
            NotUtf8: the text is not UTF-8.
        """
        drop_relative_path()
        try:
            with _leave_interrupts():
                click.edit(filename=self.file)
        except (click.ClickException, ValueError) as error:
            program, _, reason = getattr(error, "message", f"the editor: {error}").partition(": ")
            raise _editor_failed(program, reason) from None
        data = self.data
        if data is None:
            raise _editor_failed("the editor", "it removed the file")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start
            number = data.count(b"\n", 0, at) + 1
            raise NotUtf8(path=self.file, offset=at, byte=data[at], line=number) from None


def _editor_failed(editor: str, reason: str) -> ProgramFailed:
    remedy = "nothing was changed; set VISUAL or EDITOR to an editor that works"
    return ProgramFailed(code="editor-failed", program=editor, reason=reason, remedy=remedy)
