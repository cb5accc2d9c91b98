"""The machine that tests run on is none of their business: they read their own folders and the checkout.

An audit hook refuses what a test or a fixture opens or lists anywhere else. It sees this process alone, and
neither names that are relative to a descriptor or to the current folder.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

CHECKOUT = Path(__file__).parents[1]

_EVENTS = frozenset(("open", "os.listdir", "os.scandir"))
# The libraries of Python, and what is installed, which may stand inside of the checkout.
_LIBRARIES = tuple(
    f"{folder}/"
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    for path in (sysconfig.get_path(name), sysconfig.get_path(name, vars={"base": sys.base_prefix}))
    for folder in dict.fromkeys((path, os.path.realpath(path)))
)
# What the system gives to every program, and what git and the locale are read from.
_SYSTEM = (
    *("/proc/", "/dev/", "/sys/", "/usr/share/zoneinfo/", "/usr/lib/locale/", "/usr/share/locale/"),
    *("/etc/localtime/", "/etc/gitconfig/", "/usr/share/git-core/"),
)
# Texts that come with a package, by which a test would depend on what happens to be installed.
_TEXTS = (".md", ".markdown", "/METADATA")
_IMPORTING = ("<frozen importlib", "<frozen zipimport", os.path.join("importlib", "metadata"))

_own: tuple[str, ...] = ()
_is_watching = False


class ReadsTheMachine(BaseException):
    """A test has opened or listed what is neither its own nor of the checkout.

    No `except Exception` takes it for an error that it knows.
    """


def allow(*folders: str | Path) -> None:
    """Let tests read these folders, and the checkout."""
    global _own  # noqa: PLW0603 - an audit hook is given nothing
    every = [str(path) for path in (CHECKOUT, *folders)]
    _own = tuple(f"{path}/" for path in dict.fromkeys((*every, *map(os.path.realpath, every))))


@contextmanager
def watched() -> Iterator[None]:
    """Refuse to read what is not the tests', in this process, meanwhile."""
    global _is_watching  # noqa: PLW0603 - an audit hook cannot be removed
    before, _is_watching = _is_watching, True
    try:
        yield
    finally:
        _is_watching = before


def _refuse_the_machine(event: str, args: tuple[Any, ...]) -> None:
    if not _is_watching or event not in _EVENTS or not isinstance(args[0], str | bytes | os.PathLike):
        return
    path = os.fsdecode(args[0])
    if (
        path.startswith("/")
        and not _is_allowed(f"{os.path.normpath(path)}/", event)
        and os.path.lexists(path)
    ):
        raise ReadsTheMachine(f"{event} {path}: a test reads its own folders and the checkout")


def _is_allowed(path: str, event: str) -> bool:
    if path.startswith(_LIBRARIES):
        is_plain = event == "open" and not path[:-1].endswith(_TEXTS)
        return is_plain or _is_importing(sys._getframe())
    return path.startswith((*_own, *_SYSTEM)) or _is_importing(sys._getframe())


def _is_importing(frame: FrameType | None) -> bool:
    while frame:
        if any(part in frame.f_code.co_filename for part in _IMPORTING):
            return True
        frame = frame.f_back
    return False


sys.addaudithook(_refuse_the_machine)
