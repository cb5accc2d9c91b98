"""Where a measurement ran: the machine in words, the environment of its processes, its programs."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

import mdmem
from mdmem.index import ripgrep

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOUNTS = "/proc/self/mounts"
# Each of these changes what is measured: PYTHONDONTWRITEBYTECODE alone makes every start two to three times
# slower, PYTHONUNBUFFERED every print a system call, and MDMEM_* names another vault or scope.
_REMOVED = ("PYTHON", "MDMEM_", "RIPGREP_")


def environment() -> dict[str, str]:
    """The environment of the processes that are measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_REMOVED)}


def installed(name: str) -> str:
    """The absolute path of a program that is installed beside the interpreter."""
    return os.path.join(os.path.dirname(os.path.abspath(sys.executable)), name)


def description(folder: str) -> list[str]:
    """The machine, a line each: processors, programs, the disk of `folder`, what the environment lacks."""
    taken = sorted(set(os.environ) - set(environment()))
    rg = ".".join(map(str, ripgrep.version(ripgrep.program())))
    lines = [
        f"{os.cpu_count()} cores ({_processor()}), {_memory()}",
        f"mdmem {mdmem.__version__}, ripgrep {rg}",
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}",
        f"files on {_file_system(folder)}",
    ]
    return [*lines, f"removed from the environment of every process: {', '.join(taken) or 'nothing'}"]


def load() -> str:
    """The load of the last minute: how many processes wanted a core at once."""
    return f"{os.getloadavg()[0]:.1f}"


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GB of memory"


def _file_system(folder: str) -> str:
    """The type of the file system that holds `folder`."""
    best, kind = "", "an unknown file system"
    place = os.path.realpath(folder)
    for line in _lines(_MOUNTS):
        _, mounted, found, *_ = line.split()
        inside = os.path.join(place, "").startswith(os.path.join(mounted, ""))
        if inside and len(mounted) >= len(best):
            best, kind = mounted, found
    return kind


def _lines(path: str) -> Iterator[str]:
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            yield from file
