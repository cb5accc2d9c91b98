"""The programs of the user that commands run: the pager and the editor.

The user's environment alone names them. Nothing that came with a vault does, and nothing of a vault stands on
their command lines but the name of a temporary file, which is ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Self

from mdmem.cli.render import Terminal, is_watched
from mdmem.errors import EditorFailed, NotUtf8, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PAGERS = ("MDMEM_PAGER", "PAGER")
# Git's: quit where it fits on one screen, let colours pass, leave the screen as it is.
_LESS = "FRX"
# What only a shell understands; git asks one for these as well.
_FOR_A_SHELL = re.compile(r"[|&;<>()$`*?\[#~%\n]|\A\w+=|\A:")


def command_line(line: str, *arguments: str) -> list[str]:
    """The argument list that runs a command line of the user's environment with more arguments.

    A shell runs it where it holds what only a shell understands; the arguments are never part of its text.

    Raises:
        OSError: there is no such program.
    """
    with contextlib.suppress(ValueError):  # a quote that is never closed: the shell says so
        words = [] if _FOR_A_SHELL.search(line) else shlex.split(line)
        if words:
            program = shutil.which(words[0], path=_path())
            if program is None:
                raise FileNotFoundError(f"there is no program {words[0]!r}")
            return [program, *words[1:], *arguments]
    return ["/bin/sh", "-c", f'{line} "$@"', line, *arguments]


def _path() -> str:
    """The folders of PATH. One that is empty or relative may be a stranger's, and is left out."""
    return os.pathsep.join(filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep)))


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """An interrupt is for the program that has the terminal meanwhile.

    One that is handled here means what it always does in a program that is started, unlike one that is
    ignored.
    """
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


# ---------------------------------------------------------------------------------------------- the pager


class Pager:
    """Holds what is printed to a terminal, and gives it to a program once it is more than a screen.

    What never gets so long is printed as if there were none.

    Args:
        line: the command line of the program.
        streams: the standard streams that are the terminal.
        size: of the terminal.
    """

    def __init__(self, line: str, streams: Sequence[Terminal], size: os.terminal_size) -> None:
        self._line = line
        self._streams = streams
        self._size = size
        self._held: list[tuple[Terminal, str]] = []
        self._rows = self._column = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._terminals: dict[int, int] = {}

    def write(self, stream: Terminal, text: str) -> int:
        """Print a text to one of the streams, now or later."""
        if self._process is not None:
            return stream.write_now(text)
        self._held.append((stream, text))
        if not self._fits(text):
            self._start()
        return len(text)

    def _fits(self, text: str) -> bool:
        """Whether all is still on one screen, this text included."""
        most, width = self._size.lines, self._size.columns or 80
        if len(text) > most * width:
            return False
        *whole, rest = text.split("\n")
        for line in whole:
            self._rows += 1 + max(0, self._column + len(line) - 1) // width
            self._column = 0
        self._column += len(rest)
        return self._rows + self._column // width < most

    def _start(self) -> None:
        # One that runs mdmem itself must not start another, and that one the next.
        environ = {**os.environ, "PATH": _path(), "LESS": os.environ.get("LESS", _LESS), _PAGERS[0]: ""}
        try:
            line = command_line(self._line)
            process = subprocess.Popen(line, stdin=subprocess.PIPE, env=environ)  # noqa: S603 - the user's own
        except OSError as error:
            self._held.insert(0, (self._streams[-1], f"note: no pager: {error}\n"))
            self.release()
            return
        self._process = process
        if process.stdin is None:
            raise AssertionError("its standard input was asked for when it was started")
        os.environ.setdefault("COLUMNS", str(self._size.columns))  # a pipe has no width
        with process.stdin as pipe:
            for stream in self._streams:
                self._terminals[stream.fileno()] = os.dup(stream.fileno())
                os.dup2(pipe.fileno(), stream.fileno())
        self._write_held()

    def _write_held(self) -> None:
        held, self._held = self._held, []
        for stream, text in held:
            stream.write_now(text)

    def release(self) -> None:
        """Print what is held, and hold nothing any more."""
        Terminal.pager = None
        self._write_held()

    def end(self) -> None:
        """Print what is held; where there is a program, wait until the reader has ended it."""
        if self._process is None:
            self.release()
            return
        Terminal.pager = None
        with _deaf():
            for stream in self._streams:
                try:
                    stream.flush()
                except OSError:  # the reader has seen enough, and the rest is for nobody
                    null = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(null, stream.fileno())
                    os.close(null)
                    stream.flush()
            # The program waits for the end of the pipe, which is the last of its copies.
            for descriptor, terminal in self._terminals.items():
                os.dup2(terminal, descriptor)
                os.close(terminal)
            self._process.wait()


def start_paging() -> None:
    """Let the user's pager show what is printed from now on, where that is more than a screen."""
    if not isinstance(sys.stdout, Terminal) or Terminal.pager or not is_watched(sys.stdout):
        return
    line = next((os.environ[name].strip() for name in _PAGERS if name in os.environ), "less")
    if line not in {"", "cat"}:
        streams = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, Terminal)]
        Terminal.pager = Pager(line, streams, os.get_terminal_size(sys.stdout.fileno()))


# --------------------------------------------------------------------------------------------- the editor


_EDITORS = ("VISUAL", "EDITOR")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,100}")


class Draft:
    """A text in a file of its own, which the user's editor changes: no part of a vault, and nobody else's.

    What an editor puts beside it stays out of the vault as well. Where it is left and not `done`, a text that
    was changed is kept, and its place is said; otherwise the file goes.

    Args:
        path: of the memory; the file is called like it where its name is a plain one.
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
        """What the file holds now; None where it is gone, or is a link or a pipe."""
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.lstat(self.file).st_mode):
                with open(self.file, "rb") as file:
                    return file.read()
        return None

    @property
    def is_changed(self) -> bool:
        """Whether there is another text; that editors end the last line is no change of the user's."""
        now = self.data
        return now is not None and now not in {self._data, self._data + b"\n"[: bool(self._data)]}

    def edit(self) -> str:
        """Let the user's editor change it, and wait for that; the text then.

        Raises:
            EditorFailed: there is none, or it says that it has failed.
            NotUtf8: the text is not UTF-8.
        """
        names = _EDITORS if os.environ.get("TERM", "dumb") != "dumb" else _EDITORS[1:]
        line = next((os.environ[name] for name in names if os.environ.get(name, "").strip()), "vi")
        try:
            words = command_line(line, self.file)
            with _deaf():
                code = subprocess.run(words, env={**os.environ, "PATH": _path()}, check=False).returncode  # noqa: S603 - as above
        except OSError as error:
            raise EditorFailed(program=line, reason=f"it cannot be started: {error}") from None
        if code:
            raise EditorFailed(program=line, reason=f"it ended with {code}")
        data = self.data
        if data is None:
            raise EditorFailed(program=line, reason="it removed the file")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start
            number = data.count(b"\n", 0, at) + 1
            raise NotUtf8(path=self.file, offset=at, byte=data[at], line=number) from None
