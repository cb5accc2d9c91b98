"""Programs that ask a language model: which one the user has chosen, and how it is run and ended.

The user's environment and config name one, or the caller does. A vault names none: it may be a stranger's.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import IO

from mdmem.errors import ConfigInvalid, ModelFailed, Usage
from mdmem.text.regex import regex
from mdmem.text.secret import masked
from mdmem.text.tokens import clipped, in_line
from mdmem.vault.mark import config_folder, state_folder

VARIABLE = "MDMEM_MODEL"
"""The variable of the environment that names a model."""
NONE = "none"
"""Names no model."""
_KNOWN = f"give `{NONE}`, or the command line of a program that answers, such as `claude -p` or `llm -m NAME`"
_LONGEST_NAME = 100  # characters
_MOST_BYTES = 1 << 20  # of an answer
_MOST_ERRORS = 4096  # bytes of what it complained about, its end
_MOST_QUOTED = 300  # characters
_PART = 1 << 16
_PAUSE = 0.05  # seconds between two looks whether it has ended
_GRACE = 1.0  # seconds in which it may end by itself, and its children with it
_ROUNDS = 10
_ENDED_BY = 128  # and the number of a signal is the exit code that a shell gives
# Set for a program that is asked: marks all that it starts.
_MARK = "MDMEM_ASKED"
# What a coding tool sets for what runs inside of it, and refuses to start with.
_OF_HOSTS = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
_PLAIN = regex(r"[\w.:/@-]{1,60}")


class Program:
    """A program that answers; see `command`."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.__name__ = _called(words)

    def __repr__(self) -> str:
        return f"command({self.__name__!r})"

    def __call__(self, prompt: str, _most: int, _temperature: float, seconds: float) -> str:
        """What the program prints, given a prompt.

        Raises:
            ModelFailed: it is missing or cannot be started, ends with an error, prints nothing, too much or
                what is not UTF-8, or takes longer than `seconds`.
        """
        with _ended_in_order():
            status, printed, errors = self._ran(prompt.encode("utf-8", "backslashreplace"), seconds)
        said = in_line(errors.decode("utf-8", "replace"))
        quoted = f": {clipped(said, _MOST_QUOTED, around=len(said))}" if said else ""
        if status:
            how = f"it ended with {status}" if status > 0 else f"it was ended by the signal {-status}"
            raise self._failed(how + quoted)
        try:
            answer = printed.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._failed(f"its answer is not UTF-8 (byte {error.start})") from None
        if not answer.strip():
            raise self._failed(f"its answer was blank{quoted}")
        return answer

    @property
    def path(self) -> str:
        """The absolute path of the program; empty where there is none."""
        from shutil import which  # noqa: PLC0415 - seldom asked

        name = os.path.expanduser(self.words[0])
        # A folder of PATH that is empty or relative means another one wherever it is asked.
        folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
        return which(name, path=os.pathsep.join(folders)) or ""

    def _ran(self, given: bytes, seconds: float) -> tuple[int, bytes, bytes]:
        """Its exit status, what it printed, and the end of what it complained about."""
        path = self.path
        if not path:
            raise self._failed("there is no such program on PATH")
        mark = os.urandom(16).hex()
        process = pipes = None
        try:
            folder = _empty_folder()
            # A model that mdmem asks must not have mdmem ask a model.
            environment = {**os.environ, "PWD": folder, VARIABLE: NONE, _MARK: mark}
            for name in _OF_HOSTS:
                environment.pop(name, None)
            process = subprocess.Popen(  # noqa: S603 - a list, no shell; the user names it, and no vault
                [path, *self.words[1:]],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # No terminal to ask on, and a group that can be ended with all that is in it.
                start_new_session=True,
            )
            pipes = Pipes(process, given)
            self._exchange(pipes, seconds)
            return process.returncode, bytes(pipes.printed), bytes(pipes.errors)
        except (OSError, ValueError) as error:  # ValueError: a lone surrogate in an argument
            _end(process, mark)
            raise self._failed(f"it cannot be started: {error}") from None
        except BaseException:  # an interrupt as well, which may come before there is a process to know
            _end(process, mark)
            raise
        finally:
            if pipes:
                pipes.close()

    def _exchange(self, pipes: Pipes, seconds: float) -> None:
        """Give it the prompt and take what it prints, until it has ended and nothing more is there."""
        until = time.monotonic() + seconds
        while True:
            has_ended = pipes.process.poll() is not None
            if has_ended:
                # What it left behind may hold the pipes open for ever.
                _signal(pipes.process, signal.SIGKILL)
            left = until - time.monotonic()
            was_ready = pipes.step(0 if has_ended else max(0.0, min(_PAUSE, left)))
            if has_ended and not was_ready:
                return
            if len(pipes.printed) > _MOST_BYTES:
                raise self._failed(f"it printed more than {_MOST_BYTES:,} bytes")
            if left < 0:
                raise self._failed(f"it took longer than {seconds:g} seconds")

    def _failed(self, reason: str) -> ModelFailed:
        return ModelFailed(program=self.__name__, reason=in_line(reason))


class Pipes:
    """What goes to a running program and comes from it, as soon as it is ready.

    Attributes:
        process: the program, with all three pipes.
        printed: what it printed.
        errors: the end of what it complained about.
    """

    def __init__(self, process: subprocess.Popen[bytes], given: bytes) -> None:
        self.process = process
        self.printed = bytearray()
        self.errors = bytearray()
        self._left = memoryview(given)
        self._selector = selectors.DefaultSelector()
        self._streams = (_pipe(process.stdin), _pipe(process.stdout), _pipe(process.stderr))
        steps = (self._give, self._take_printed, self._take_errors)
        for stream, step in zip(self._streams, steps, strict=True):
            os.set_blocking(stream.fileno(), False)
            is_given = stream is process.stdin
            self._selector.register(
                stream.fileno(), selectors.EVENT_WRITE if is_given else selectors.EVENT_READ, (stream, step)
            )

    def close(self) -> None:
        """Let go of all three."""
        self._selector.close()
        for stream in self._streams:
            stream.close()

    def step(self, seconds: float) -> bool:
        """Wait for at most `seconds` until something is ready, and do it; False where nothing was."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            stream, step = key.data
            with contextlib.suppress(BlockingIOError):
                if not step(key.fd):
                    self._selector.unregister(key.fd)
                    stream.close()
        return bool(ready)

    def _give(self, descriptor: int) -> bool:
        """Give more of the prompt; False where that is all of it, or nobody reads it any more."""
        with contextlib.suppress(BrokenPipeError):
            self._left = self._left[os.write(descriptor, self._left[:_PART]) :]
            return len(self._left) > 0
        return False

    def _take_printed(self, descriptor: int) -> bool:
        taken = os.read(descriptor, _PART)
        self.printed += taken
        return bool(taken)

    def _take_errors(self, descriptor: int) -> bool:
        taken = os.read(descriptor, _PART)
        self.errors[:] = (self.errors + taken)[-_MOST_ERRORS:]
        return bool(taken)


def command(line: str) -> Program:
    """A program as a generator: the prompt is its standard input, what it prints is the answer.

    The program runs without a shell and without a terminal, with the environment of this process, in an empty
    folder of the user's own: in a vault, files of a stranger could be the settings that it obeys. How long
    its answer may be, the prompt says; a temperature is not passed on. It is ended, and whatever it has
    started, when its time is over, when it prints more than a megabyte, when we are interrupted; and what it
    leaves behind when it ends. A program inside of it that uses mdmem has no model.

    Args:
        line: the program and its arguments, divided as a shell does: `claude -p`. The program is found on
            PATH, or named by an absolute path.

    Raises:
        Usage: it is empty, not a command line, or names a program by a relative path.
    """
    shown = f"{clipped(in_line(masked(line)), _LONGEST_NAME)!r} names no model"
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise Usage(problem=f"{shown}: {str(error).lower()}", remedy=_KNOWN) from None
    if not words or not words[0] or "\0" in line:
        raise Usage(problem=shown, remedy=_KNOWN)
    if os.sep in words[0] and not os.path.isabs(os.path.expanduser(words[0])):
        problem = f"{shown}: a relative path means another program in each folder"
        raise Usage(problem=problem, remedy="give its absolute path, or put it on PATH and give its name")
    return Program(words)


def _called(words: tuple[str, ...]) -> str:
    """What a program is called in a record: itself, a command of it, and the model that it is told to use.

    Other arguments may be secret, or tell of this machine.
    """
    name = [os.path.basename(words[0])]
    rest = list(words[1:])
    while rest and not rest[0].startswith(("-", os.sep)) and _PLAIN.fullmatch(rest[0]):
        name.append(rest.pop(0))
    for word, following in pairwise([*rest, ""]):
        if word in {"-m", "--model"} and following:
            name += [word, following]
        elif word.startswith("--model="):
            name.append(word)
    return clipped(masked(in_line(" ".join(name))), _LONGEST_NAME)


def _empty_folder() -> str:
    """Where programs run: a folder below the user's own, in which they find nothing and leave nothing.

    Raises:
        OSError: it cannot be made, or something is in it.
    """
    folder = state_folder("model")
    # Not to be written to, so that one run leaves no settings for the next.
    os.makedirs(folder, mode=0o500, exist_ok=True)
    if os.listdir(folder):
        raise OSError(f"the folder in which it would run must be empty: {folder}")
    return folder


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("all three were asked for when the process was started")
    return stream


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Have what would end this process at once raise an exception, so that no program stays behind."""
    numbers: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        ours = (signal.SIGTERM, signal.SIGHUP)
        numbers = [number for number in ours if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in numbers:
            signal.signal(number, _leave)
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(_ENDED_BY + number)


def _end(process: subprocess.Popen[bytes] | None, mark: str) -> None:
    """End a program and what it has started, as far as anybody knows of it."""
    try:
        if process and process.poll() is None:
            _signal(process, signal.SIGTERM)
            _wait(process)
    finally:
        if process:
            _signal(process, signal.SIGKILL)
            _wait(process)
        for _ in range(_ROUNDS):
            escaped = _marked(mark)
            for number in escaped:
                with contextlib.suppress(OSError):
                    os.kill(number, signal.SIGKILL)
            if not escaped:
                break


def _wait(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to all that is left of the group of a program."""
    with contextlib.suppress(OSError):  # nothing is
        os.killpg(process.pid, number)


def _marked(mark: str) -> list[int]:
    """The processes whose environment has a mark, also those that left the group; none where nobody tells."""
    found = []
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if f"{_MARK}={mark}".encode() in file.read():
                    found.append(int(name))
    return found


# -- which one --------------------------------------------------------------------------------------------

_MOST_CONFIG = 16 * 1024  # bytes


def configured(model: str | None = None) -> Program | None:
    """The model of the caller, else of the variable MDMEM_MODEL, else of the user's own config; None is none.

    That config is `mdmem/config.toml` among the user's (`~/.config` on Linux): `model = "claude -p"`. The
    config of a vault names no model: whoever wrote the vault would decide what runs here.

    Args:
        model: `none`, or a command line as `command` takes it, of a program that is there.

    Raises:
        Usage: there is no such model.
        ConfigInvalid: the config cannot be read.
    """
    if model is not None:
        program = _program(model)
        if program and not program.path:
            problem = f"there is no model {program.__name__!r}: no program of this name is on PATH"
            raise Usage(problem=problem, remedy=_KNOWN)
        return program
    line = os.environ.get(VARIABLE, "").strip()
    if line:
        try:
            return _program(line)
        except Usage as error:
            raise error.but(problem=f"{VARIABLE}: {error.problem}") from None
    path = config_folder("config.toml")
    try:
        return _program(_config(path))
    except Usage as error:
        raise ConfigInvalid(path=path, reason=f"model: {error.problem}", remedy=error.remedy) from None


def _program(line: str) -> Program | None:
    return None if line.strip().casefold() == NONE else command(line)


def _config(path: str) -> str:
    """What the user's config says of a model; `none` where there is no such file, or nothing in it.

    Raises:
        ConfigInvalid: it is not a file, too large, not TOML, or says something else.
    """
    try:
        # Not to wait for a FIFO's writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = os.read(descriptor, _MOST_CONFIG + 1) if is_file else b""
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return NONE
    except OSError as error:
        raise ConfigInvalid(path=path, reason=f"it cannot be read: {error.strerror}") from None
    if not is_file:
        raise ConfigInvalid(path=path, reason="it is not a file")
    if len(data) > _MOST_CONFIG:
        raise ConfigInvalid(path=path, reason=f"it has more than {_MOST_CONFIG:,} bytes")
    import tomllib  # noqa: PLC0415 - few users have a config

    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(path=path, reason=f"not TOML: {error}") from None
    remedy = f'write model = "{NONE}", or model = "claude -p"'
    unknown = sorted(table.keys() - {"model"})
    if unknown:
        raise ConfigInvalid(path=path, reason=f"unknown: {in_line(', '.join(unknown))}", remedy=remedy)
    model = table.get("model", NONE)
    if not isinstance(model, str):
        raise ConfigInvalid(path=path, reason="model is a string", remedy=remedy)
    return model
