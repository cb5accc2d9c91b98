"""The git program, run so that it asks nothing, locks nothing, and reaches no network.

A path stands behind `--` and is taken literally; a revision is an object id or a name that git resolved.
"""

from __future__ import annotations

import io
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from shutil import which
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from mdmem.errors import GitFailed

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What a repository can make git wait for or read without end (a pipe, a device, a file of gigabytes) is not
# looked for: git is ended when it prints nothing for so long, and has so much memory.
_SILENT_SECONDS = 60.0
_TICK_SECONDS = 1.0
_MOST_MEMORY = 2 << 20  # KiB of data; what git maps of its packs does not count
# Set before git starts: later could be too late.
_LIMITED = ("/bin/sh", "-c", f'ulimit -S -d {_MOST_MEMORY} 2> /dev/null; exec "$@"', "git")
_MOST_COMPLAINED = 1 << 24  # bytes, such as warnings about each line of a file that never ends
_LONGEST_REASON = 4_000  # characters that are told of the output of a hook
_LONGEST_COMPLAINT = 1 << 16  # bytes of it that are read
# A hook is run with these set. They would turn every command to the hook's repository, or to half an index.
_OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_CONFIG",
    # How paths are read is ours to say.
    *(f"GIT_{kind}_PATHSPECS" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE")),
)
_SETTINGS = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # A partial clone would fetch what it lacks; no protocol of this name exists, so git may use none.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
# What a repository's settings could make git run or read. Those that only a work tree or a network needs
# (filters, submodules, hooks of a checkout, ssh) are never reached: `Repository` shows git no work tree.
_OFF = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "log.showSignature=false",
    "mailmap.file=/dev/null",
    "mailmap.blob=",
)
_OPTIONS = ("--no-pager", "-c", "core.quotePath=false", *(part for name in _OFF for part in ("-c", name)))
# What a commit is made with: the user's own settings hold, so that git takes files as it does for its user.
# What it starts gets the user's environment, but for what would have somebody asked.
_OF_A_USER = ("core.fsmonitor=false", "i18n.commitEncoding=UTF-8", "diff.orderFile=/dev/null")
_ASK_NOBODY = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":"}
_TO_END_SECONDS = 5.0  # that git has to take its locks away, once it is told to end
NO_WORK_TREE = "/"  # a folder that no stranger writes to


def program() -> str | None:
    """Return the absolute path of git, found on PATH; None where there is none."""
    path = which("git")
    return os.path.abspath(path) if path else None


def environment(*, own: str = "", tree: str = NO_WORK_TREE) -> dict[str, str]:
    """Return the environment of this process, made quiet and local.

    With `own`, the folder of git's own files, git sees that repository, and `tree` as its work tree.
    """
    return _own_environment() | _SETTINGS | ({"GIT_DIR": own, "GIT_WORK_TREE": tree} if own else {})


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}


def command(arguments: Sequence[str]) -> list[str]:
    """Return the argument list that runs git with `arguments`."""
    git = program()
    if git is None:
        raise FileNotFoundError("git was not found on PATH")
    return [git, *_OPTIONS, *arguments]


class Ended(NamedTuple):
    """What a run of git left: its exit status, what it printed, and what it complained about."""

    status: int
    printed: bytes
    errors: str

    @property
    def reason(self) -> str:
        """The line in which it says why; the marks `fatal:` and `error:` are left out."""
        complaints = [line.strip() for line in self.errors.splitlines() if line.strip()]
        stated = [line for line in complaints if line.startswith(("fatal: ", "error: "))]
        first = (stated or complaints or [f"it ended with {self.status} and no message"])[0]
        return first.removeprefix("fatal: ").removeprefix("error: ")

    @property
    def complaint(self) -> str:
        """All that it and what it started complained about, or the beginning of it."""
        complaints = self.errors.strip() or f"it ended with {self.status} and no message"
        return complaints if len(complaints) <= _LONGEST_REASON else complaints[:_LONGEST_REASON] + " …"

    def require(self, path: str, action: str) -> bytes:
        """Return what git printed; raise `GitFailed` if it ended with an error."""
        if self.status:
            raise GitFailed(path=path, action=action, reason=self.reason)
        return self.printed


class GitProcess(io.RawIOBase):
    """A run of git as the stream of its output; closing the stream ends git.

    Reading raises `TimeoutError` if git prints nothing, neither output nor errors, for `seconds` (default: a
    minute). The time between two reads does not count. Git reads `stdin`, which is a pipe for `ask`.
    """

    def __init__(
        self,
        line: Sequence[str],
        folder: str,
        environ: Mapping[str, str],
        *,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        seconds: float = 0,
    ) -> None:
        super().__init__()
        self._seconds = seconds or _SILENT_SECONDS
        # A file, not a pipe: a program that a hook leaves running would keep a pipe open.
        self._errors = _open_scratch()
        try:
            self.popen = subprocess.Popen(  # noqa: S603 - the shell is given no word of anybody; paths stand behind --
                [*_LIMITED, *line],
                cwd=folder,
                env=environ,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
            )
        except BaseException:
            self._errors.close()
            super().close()
            raise
        self._printed = cast("IO[bytes]", self.popen.stdout).fileno()
        self._poll = select.poll()
        self._poll.register(self._printed, select.POLLIN)

    def readable(self) -> bool:
        """It is read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what git prints next; 0 at its end."""
        tick = min(_TICK_SECONDS, self._seconds)
        silent, complained = 0.0, 0
        # Ticks are counted, not time, so that a paused machine does no harm.
        while not self._poll.poll(tick * 1000):
            before, complained = complained, os.fstat(self._errors.fileno()).st_size
            silent = silent + tick if complained == before else 0.0
            if complained > _MOST_COMPLAINED:
                raise TimeoutError(
                    f"git printed more than {_MOST_COMPLAINED:,} bytes of errors, and was ended"
                )
            if silent >= self._seconds:
                words = f"git, or what it started, printed nothing for {self._seconds:g} s, and was ended"
                raise TimeoutError(words)
        return os.readv(self._printed, [buffer])

    def ask(self, question: bytes) -> None:
        """Write to its standard input, which is a pipe."""
        cast("IO[bytes]", self.popen.stdin).write(question)

    def ended(self) -> Ended:
        """Read to the end, and wait for git."""
        with self:
            printed = self.readall()
            # Git closes its output as it ends; waiting with a limit would sleep each time.
            status = self.popen.wait()
            complaints = os.pread(self._errors.fileno(), _LONGEST_COMPLAINT, 0)
        return Ended(status, printed, complaints.decode("utf-8", "replace"))

    def close(self) -> None:
        """End git where it has not ended; it takes its locks away when it is not killed."""
        if self.closed:
            return
        super().close()
        if self.popen.poll() is None:
            self.popen.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(_TO_END_SECONDS)
            self.popen.kill()
            self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self._errors):
            if stream is not None:
                stream.close()


def _open_scratch(content: bytes = b"") -> IO[bytes]:
    """Return a file without a name; in memory where the system can, as the disk may be full."""
    if sys.platform == "linux":
        file: IO[bytes] = os.fdopen(os.memfd_create("git"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever gets it closes it
    file.write(content)
    file.seek(0)
    return file


@contextmanager
def failing(folder: str, action: str) -> Iterator[None]:
    """Turn errors of git into `GitFailed`: not found, not started, or silent for too long."""
    try:
        yield
    except TimeoutError as error:
        remedy = "nothing was changed; a file there may have no end, or a program that git started waits"
        raise GitFailed(
            code="git-silent", path=folder, action=action, reason=str(error), remedy=remedy
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise GitFailed(path=folder, action=action, reason=str(error)) from None


def run(arguments: Sequence[str], folder: str, action: str, own: str = "", given: bytes = b"") -> Ended:
    """Run git in `folder` and wait for it.

    Args:
        arguments: a path among them stands behind `--`.
        folder: where it runs; with `own` the work tree.
        action: what is being tried, for the error: "read the history".
        own: git's own folder, where that is known.
        given: what it reads from standard input.
    """
    with failing(folder, action), _open_scratch(given) as stdin:
        return GitProcess(command(arguments), folder, environment(own=own, tree=folder), stdin=stdin).ended()


def run_as_user(
    arguments: Sequence[str],
    folder: str,
    action: str,
    *,
    given: bytes = b"",
    settings: Mapping[str, str] | None = None,
    seconds: float = 0,
) -> Ended:
    """Run git as its user does: with hooks, filters, signing, attributes and file names as patterns.

    Args:
        given: what it reads from standard input.
        settings: of the environment, in addition.
        seconds: how long git, and what it starts, may be silent; by default as `run`.
    """
    environ = _own_environment() | _ASK_NOBODY | dict(settings or {})
    options = [part for each in _OF_A_USER for part in ("-c", each)]
    with failing(folder, action), _open_scratch(given) as stdin:
        line = [command([])[0], "--no-pager", *options, *arguments]
        return GitProcess(line, folder, environ, stdin=stdin, seconds=seconds).ended()
