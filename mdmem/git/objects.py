"""The objects of a repository, read by one `git cat-file` that stays open."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Self

from mdmem.errors import GitFailed
from mdmem.git.program import command, environment
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from types import TracebackType

OBJECT_ID = regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CHUNK = 1 << 20
_BLOB = re.compile(rb"[0-9a-f]+ blob (?P<size>[0-9]+)\n")
_OTHER_CONTENT = re.compile(rb"(?:[0-9a-f]+ [a-z]+|symlink|dangling|loop|notdir) (?P<size>[0-9]+)\n")


class TooLong(Exception):
    """A blob has more bytes than the reader takes."""


class Objects:
    """Reads files as they were; one process serves all reads. To be used from one thread at a time."""

    def __init__(self, folder: str, limit: int) -> None:
        """Read from the repository at `folder`; a blob of more than `limit` bytes is not kept in memory."""
        self.folder = folder
        self.limit = limit
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a later read starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                # A question that a dead process never took is still in the buffer.
                with suppress(BrokenPipeError):
                    stream.close()

    def blob(self, commit: str, path: str) -> bytes | None:
        """The file `path`, from the root of the repository, as it was in `commit`; None if it was not.

        A symlink is followed as far as it stays inside the commit.

        Raises:
            TooLong: it has more than `limit` bytes.
            GitFailed: git cannot be run, or its answer breaks off.
        """
        if not OBJECT_ID.fullmatch(commit) or "\n" in path or "\0" in path:
            return None  # no name of an object; and one question is one line
        try:
            return self._answer(f"{commit}:{path}".encode("utf-8", "surrogateescape"))
        except (OSError, EOFError) as error:
            self.close()
            reason = str(error) or "its answer broke off"
            raise GitFailed(path=self.folder, action=f"read {path} of {commit[:12]}", reason=reason) from None

    def _answer(self, name: bytes) -> bytes | None:
        to_git, from_git = self._streams()
        to_git.write(name + b"\n")
        to_git.flush()
        header = from_git.readline()
        if not header.endswith(b"\n"):
            raise EOFError
        found = _BLOB.fullmatch(header)
        other = found or _OTHER_CONTENT.fullmatch(header)
        if other is None:
            return None  # "… missing"
        size = int(other["size"])
        content = None
        if found and size <= self.limit:
            content = _kept(from_git, size)
        else:
            _skip(from_git, size)
        if from_git.read(1) != b"\n":
            raise EOFError
        if found and content is None:
            raise TooLong
        return content

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            line = command(["cat-file", "--batch", "--follow-symlinks"])
            if line is None:
                raise FileNotFoundError("git was not found on PATH")
            self._process = subprocess.Popen(  # noqa: S603 - a list, no shell, and nothing of it is given
                line,
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both streams were asked for when the process was started")
        return process.stdin, process.stdout


def _kept(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise EOFError
    return content


def _skip(stream: IO[bytes], size: int) -> None:
    while size:
        chunk = stream.read(min(size, _CHUNK))
        if not chunk:
            raise EOFError
        size -= len(chunk)
