"""The git program, run so that it asks nothing, locks nothing, and reaches no network.

A path stands behind `--` and is taken literally; a revision is an object id or a name that git resolved.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from shutil import which
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import GitFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS = 10.0
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
    # Which paths mean what is ours to say.
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
_MOST_COMPLAINED = 1 << 16  # bytes that are read of what hooks say
NO_WORK_TREE = "/"  # a folder that no stranger writes to


@lru_cache(maxsize=8)
def program(path: str | None = None) -> str | None:
    """The absolute path of git, found on `path` (default: PATH); None where there is none."""
    found = which("git", path=path)
    return os.path.abspath(found) if found else None


def environment(
    given: Mapping[str, str] | None = None, *, own: str = "", tree: str = NO_WORK_TREE
) -> dict[str, str]:
    """What git is run with: `given` (default: that of this process), made quiet and local.

    With `own`, the folder of git's own files, it sees that repository, and `tree` as its work tree.
    """
    environ = dict(os.environ if given is None else given)
    for name in _OF_A_HOOK:
        environ.pop(name, None)
    return environ | _SETTINGS | ({"GIT_DIR": own, "GIT_WORK_TREE": tree} if own else {})


def command(arguments: Sequence[str]) -> list[str] | None:
    """The argument list that runs git with `arguments`; None where there is no git."""
    git = program(os.environ.get("PATH"))
    return None if git is None else [git, *_OPTIONS, *arguments]


class Ended(NamedTuple):
    """What a run of git left: its exit status, what it printed, and what it complained about."""

    status: int
    printed: bytes
    errors: str

    @property
    def reason(self) -> str:
        """The line in which it says why; the marks `fatal:` and `error:` are left out."""
        said = [line.strip() for line in self.errors.splitlines() if line.strip()]
        stated = [line for line in said if line.startswith(("fatal: ", "error: "))]
        first = (stated or said or [f"it ended with {self.status} and no message"])[0]
        return first.removeprefix("fatal: ").removeprefix("error: ")


def run(arguments: Sequence[str], folder: str, action: str, own: str = "") -> Ended:
    """Run git in `folder` and wait for it.

    Args:
        arguments: behind `git`; a path among them stands behind `--`.
        folder: where it runs; with `own` the work tree.
        action: what is being tried, for the error: "read the history".
        own: git's own folder, where that is known.

    Raises:
        GitFailed: there is no git, it cannot be started, or it takes longer than ten seconds.
    """
    line = command(arguments)
    if line is None:
        raise GitFailed(path=folder, action=action, reason="git was not found on PATH")
    try:
        ended = subprocess.run(  # noqa: S603 - a list, no shell; paths stand behind --
            line,
            cwd=folder,
            env=environment(own=own, tree=folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"git took longer than {_SECONDS:g} s"
        raise GitFailed(path=folder, action=action, reason=reason) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise GitFailed(path=folder, action=action, reason=str(error)) from None
    return Ended(ended.returncode, ended.stdout, ended.stderr.decode("utf-8", "replace"))


def run_as_user(
    arguments: Sequence[str],
    folder: str,
    action: str,
    *,
    given: bytes = b"",
    settings: Mapping[str, str] | None = None,
    seconds: float,
) -> Ended:
    """Run git as its user does: with hooks, filters, signing, attributes and file names as patterns.

    What hooks print goes to files, so that nobody waits for what they leave running.

    Args:
        arguments: behind `git`.
        folder: where it runs.
        action: as `run`.
        given: what it reads from standard input.
        settings: of the environment, besides.
        seconds: after which it is told to end.

    Raises:
        GitFailed: there is no git, it cannot be started, or it takes too long.
    """
    git = program(os.environ.get("PATH"))
    if git is None:
        raise GitFailed(path=folder, action=action, reason="git was not found on PATH")
    environ = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    environ |= _ASK_NOBODY | dict(settings or {})
    try:
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as said,
        ):
            stdin.write(given)
            stdin.seek(0)
            line = [git, "--no-pager", *(part for each in _OF_A_USER for part in ("-c", each)), *arguments]
            status = _waited_for(
                subprocess.Popen(line, cwd=folder, env=environ, stdin=stdin, stdout=out, stderr=said),  # noqa: S603 - as above
                seconds,
            )
            if status is None:
                reason = f"git, or what it started, took longer than {seconds:g} s"
                raise GitFailed(path=folder, action=action, reason=reason)
            out.seek(0)
            said.seek(0)
            complained = said.read(_MOST_COMPLAINED).decode("utf-8", "replace")
            return Ended(status, out.read(), complained)
    except (OSError, ValueError) as error:
        raise GitFailed(path=folder, action=action, reason=str(error)) from None


def _waited_for(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit status; None for a process that had to be ended. It is gone in any case."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # An interrupt reaches git, too. It takes its locks away when it is not killed.
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_TO_END_SECONDS)
            process.kill()
            process.wait()
