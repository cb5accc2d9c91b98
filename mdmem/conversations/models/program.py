"""Programs that answer as a language model.

The user names one, in the environment or in their own config, or the caller does. A vault names none: it may
be a stranger's.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from itertools import pairwise, takewhile
from typing import IO

from mdmem.document.secret import masked
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, in_line
from mdmem.errors import ConfigInvalid, ProgramFailed, Usage
from mdmem.vault.mark import NONE, config_folder, state_folder, user_settings

VARIABLE = "MDMEM_MODEL"
"""The variable of the environment that names a model."""
_REMEDY = (
    f"give `{NONE}`, or the command line of a program that answers, such as `claude -p` or `llm -m NAME`"
)
_LONGEST_NAME, _LONGEST_COMPLAINT = 100, 300  # characters
_MOST_BYTES = 1 << 20  # of an answer, and of standard error
_PAUSE = 0.05  # seconds between two looks at how much was printed
# What a coding tool sets for what runs inside of it, and refuses to start with.
_OF_HOSTS = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
_MODEL = ("-m", "--model")
_PLAIN = regex(r"[\w.:@][\w.:/@-]{0,59}")


class Program:
    """A program that answers; see `command`."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.__name__ = _name_for_records(words)

    def __call__(self, prompt: str, _most: int, _temperature: float, seconds: float) -> str:
        """Run the program with a prompt as its standard input, and return what it prints.

        Raises:
            ProgramFailed: it is missing or cannot be started, ends with an error, prints nothing, too much or
                what is not UTF-8, or takes longer than `seconds`.
        """
        try:
            status, output, errors = self._run(prompt.encode("utf-8", "backslashreplace"), seconds)
        except (OSError, ValueError) as error:  # ValueError: a lone surrogate in an argument
            raise self._make_error(f"it cannot be started: {error}") from None
        complaint = in_line(errors.decode("utf-8", "replace"))
        quoted = f": {clipped(complaint, _LONGEST_COMPLAINT, around=len(complaint))}" if complaint else ""
        if status:
            how = f"it ended with {status}" if status > 0 else f"it was ended by the signal {-status}"
            raise self._make_error(how + quoted)
        try:
            answer = output.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._make_error(f"its answer is not UTF-8 (byte {error.start})") from None
        if not answer.strip():
            raise self._make_error(f"its answer was blank{quoted}")
        return answer

    @property
    def path(self) -> str:
        """The absolute path of the program; empty where there is none.

        What stands in a relative folder of PATH is none: it would be another one in each folder.
        """
        from shutil import which  # noqa: PLC0415 - seldom asked

        path = which(os.path.expanduser(self.words[0])) or ""
        return path if os.path.isabs(path) else ""

    def _run(self, prompt: bytes, seconds: float) -> tuple[int, bytes, bytes]:
        """Return the exit status, and what went to standard output and to standard error."""
        from tempfile import TemporaryDirectory, TemporaryFile  # noqa: PLC0415 - start-up

        if not (path := self.path):
            raise self._make_error("there is no such program on PATH")
        # Not below /tmp, where anybody may put settings that programs look for in the folders above theirs.
        os.makedirs(state_folder(), mode=0o700, exist_ok=True)
        with (
            TemporaryDirectory(prefix="model-", dir=state_folder(), ignore_cleanup_errors=True) as folder,
            TemporaryFile() as given,
            TemporaryFile() as output,
            TemporaryFile() as errors,
        ):
            given.write(prompt)
            given.seek(0)
            # A model that mdmem asks must not have mdmem ask a model, nor keep the question as a session.
            own = {"PWD": folder, VARIABLE: NONE, "MDMEM_ASKED": "1"}
            process = subprocess.Popen(  # noqa: S603 - a list, no shell; the user names it, and no vault
                [path, *self.words[1:]],
                cwd=folder,
                env={name: text for name, text in os.environ.items() if name not in _OF_HOSTS} | own,
                stdin=given,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # no terminal to ask on, and a group that can be ended
            )
            try:
                deadline = time.monotonic() + seconds
                # One that repeats itself for ever would fill the disk in less than its time.
                while process.poll() is None and max(map(_size_of, (output, errors))) <= _MOST_BYTES:
                    if time.monotonic() > deadline:
                        raise self._make_error(f"it took longer than {seconds:g} seconds")
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=_PAUSE)
            finally:
                with contextlib.suppress(OSError):  # nothing is left
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if max(map(_size_of, (output, errors))) > _MOST_BYTES:
                raise self._make_error(f"it printed more than {_MOST_BYTES:,} bytes")
            output.seek(0)
            errors.seek(0)
            return process.returncode, output.read(), errors.read()

    def _make_error(self, reason: str) -> ProgramFailed:
        return program_failed(self.__name__, in_line(reason))


def _size_of(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def program_failed(program: str, reason: str) -> ProgramFailed:
    """Return the error that a model, which is called so, gave no sound answer."""
    remedy = "see what the program prints by itself, or name another one with MDMEM_MODEL"
    return ProgramFailed(code="model-failed", program=program, reason=reason, remedy=remedy)


def command(line: str) -> Program:
    """Make a generator of a program: the prompt is its standard input, what it prints is the answer.

    The program runs without a shell and a terminal, in an empty folder of its own: in a vault, files of a
    stranger could be the settings that it obeys. Its process group is killed when it ends, when its time is
    over, when it prints more than a megabyte, and on Ctrl-C.

    Args:
        line: the program and its arguments, divided as a shell does: `claude -p`. The program is found on
            PATH, or named by an absolute path.

    Raises:
        Usage: it is empty, not a command line, or names a program by a relative path.
    """
    problem = f"{clipped(in_line(masked(line)), _LONGEST_NAME)!r} names no model"
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise Usage(problem=f"{problem}: {str(error).lower()}", remedy=_REMEDY) from None
    if not words or not words[0] or "\0" in line:
        raise Usage(problem=problem, remedy=_REMEDY)
    if os.sep in words[0] and not os.path.isabs(os.path.expanduser(words[0])):
        problem = f"{problem}: a relative path means another program in each folder"
        raise Usage(problem=problem, remedy="give its absolute path, or put it on PATH and give its name")
    return Program(words)


def _name_for_records(words: tuple[str, ...]) -> str:
    """Return the name, subcommand and model of a program: other arguments may be secret."""
    name = [os.path.basename(words[0]), *takewhile(_PLAIN.fullmatch, words[1:])]
    for before, word in pairwise(("", *words[len(name) :])):
        if before in _MODEL or word in _MODEL or word.startswith("--model="):
            name.append(word)
    return clipped(masked(in_line(" ".join(name))), _LONGEST_NAME)


def configured(model: str | None = None) -> Program | None:
    """Return the model of the caller, else of MDMEM_MODEL, else of the user's own config; None is none.

    That config is `mdmem/config.toml` among the user's (`~/.config` on Linux): `model = "claude -p"`. The
    config of a vault names no model: whoever wrote the vault would decide what runs here.

    Args:
        model: `none`, or a command line as `command` takes it, of a program that is there.

    Raises:
        Usage: there is no such model.
        ConfigInvalid: the config cannot be read.
    """
    line = model if model is not None else os.environ.get(VARIABLE, "").strip() or user_settings().model
    try:
        program = None if line.strip().casefold() == NONE else command(line)
    except Usage as error:
        if model is not None:
            raise
        if os.environ.get(VARIABLE, "").strip():
            raise error.but(problem=f"{VARIABLE}: {error.problem}") from None
        path = config_folder("config.toml")
        raise ConfigInvalid(path=path, reason=f"model: {error.problem}", remedy=error.remedy) from None
    if model is not None and program and not program.path:
        problem = f"there is no model {program.__name__!r}: no program of this name is on PATH"
        raise Usage(problem=problem, remedy=_REMEDY)
    return program
