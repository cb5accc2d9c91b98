"""Lines as they are typed in a shell, and copies of a prepared folder to type them in."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from unittest.mock import patch

from mdmem.cli.main import main
from mdmem.vault import files
from mdmem.vault.mark import name_for
from tests import speed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = f'mdmem() {{ {shlex.quote(sys.executable)} -m mdmem "$@"; }}; '
# A function that has this process run the command, and waits for its exit code; its streams stay as they are.
ASKING = """mdmem() {
local code pid=$BASHPID
(values=(); for name in $(compgen -e); do values+=("$name=${!name}"); done
printf '%%s\\0' $pid ${#values[@]} $# "${values[@]}" "$@" >&%d)
read -r -u %d code; return $code; }; """


def run_in_shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line by a shell; its mdmem is the program with --all, and else this process, which is quicker."""
    shell = shutil.which("bash")
    if not shell or speed.is_all or not os.path.isdir("/proc/self/fd"):
        command = [shell or "sh", "-c", PROGRAM + line]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
        )
    (asked, asking), (answers, answering) = os.pipe(), os.pipe()
    process = subprocess.Popen(
        [shell, "-c", ASKING % (asking, answers) + line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(asking, answers),
    )
    os.close(asking)
    os.close(answers)
    with process, ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        reader = stack.enter_context(open(asked, "rb"))
        writer = stack.enter_context(open(answering, "wb", buffering=0))
        printed = pool.submit(process.communicate)
        while pid := _read_word(reader):
            exported, arguments = (int(_read_word(reader)) for _ in range(2))
            environ = dict(_read_word(reader).split("=", 1) for _ in range(exported))
            writer.write(b"%d\n" % _run(pid, environ, [_read_word(reader) for _ in range(arguments)]))
        out, errors = printed.result()
    return subprocess.CompletedProcess(line, process.returncode, out.decode(), errors.decode())


def _read_word(reader: IO[bytes]) -> str:
    word = bytearray()
    while (byte := reader.read(1)) not in (b"", b"\0"):
        word += byte
    return os.fsdecode(bytes(word))


def _run(pid: str, environ: dict[str, str], arguments: list[str]) -> int:
    """Run a command where a process of the shell stands, with its environment and its streams."""
    with contextlib.ExitStack() as stack:
        folder = os.open(".", os.O_RDONLY)
        stack.callback(os.close, folder)
        stack.callback(os.fchdir, folder)  # by its descriptor: the command may remove it
        os.chdir(f"/proc/{pid}/cwd")
        stack.enter_context(patch.dict(os.environ, environ, clear=True))
        for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "a"), ("stderr", "a"))):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            flags = os.O_RDONLY if mode == "r" else os.O_WRONLY | os.O_APPEND
            theirs = os.open(f"/proc/{pid}/fd/{number}", flags)
            os.dup2(theirs, number)
            os.close(theirs)
            stream = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            stack.callback(_close, stream)  # which may fail
            stack.enter_context(patch.object(sys, name, stream))
        return main(arguments)


def _close(stream: Any) -> None:
    with contextlib.suppress(OSError):  # its reader may be gone
        stream.close()


def copy_folder(prepared: Path, copy: Path) -> None:
    """Copy a folder with the vault `memories`, whose own folders are believed in the copy, too."""
    shutil.copytree(prepared, copy, symlinks=True)
    local = Path("memories/.mdmem/local")
    for folder in (each for each in (prepared / local).iterdir() if each.is_dir()):
        copied = copy / local / folder.name
        if (copied / _name_own(folder)).exists():
            (copied / _name_own(folder)).rename(copied / _name_own(copied))


def _name_own(folder: Path) -> str:
    with files.opened(str(folder)) as descriptor:
        return name_for(descriptor)


def run_program(
    arguments: Sequence[str],
    given: str,
    folder: Path,
    environ: Mapping[str, str],
    *,
    is_program: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder; but in this process where `is_program` is false, and --all not given."""
    if is_program or speed.is_all:
        command = [sys.executable, "-m", "mdmem", *arguments]
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=folder,
            env=environ,
        )
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (given.encode(), b"", b"")]
    handler, limit = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, environ, clear=True),
        patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
    ):
        code = main(arguments)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, *limit)
    out, errors = (stream.detach().getvalue().decode() for stream in streams[1:])
    return subprocess.CompletedProcess(arguments, code, out, errors)
