"""Find which memory or folder an argument names: as the shell reads a path, else as the namespace does.

The shell's reading begins in the current folder; it counts where it leads into the namespace. Where both name
something, a read takes the shell's and says so, and a write refuses.
"""

from __future__ import annotations

import os
import shlex
import unicodedata
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from mdmem.cli.render import print_remarks
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem import Memory

SUFFIXES = (".md", ".json")  # of memories
_LONGEST = 4096  # of a path that the system takes
_NAMED = 5  # memories in a hint


class Role(NamedTuple):
    """Says what an argument may name, and what for.

    Attributes:
        memory, folder: what it may be.
        writes: whether it is going to be changed: then nothing is guessed.
        new: whether it may be made.
        past: whether it may have been deleted.
        outside: whether it may be a file that is there and not in the namespace: it is an `OutsideFile` then.
        other: whether it may be something else, such as a URL, which stays as it is.
    """

    memory: bool = True
    folder: bool = False
    writes: bool = False
    new: bool = False
    past: bool = False
    outside: bool = False
    other: bool = False


READ = Role()
READ_FOLDER = Role(memory=False, folder=True)
READ_ANY = Role(folder=True)
CHECKED = Role(folder=True, outside=True)
WRITE = Role(writes=True)
WRITE_ANY = Role(folder=True, writes=True)
WRITE_FOLDER = Role(memory=False, folder=True, writes=True)
NEW = Role(writes=True, new=True)
NEW_FOLDER = Role(memory=False, folder=True, writes=True, new=True)
READ_OTHER = Role(other=True)
PAST = Role(past=True)
PAST_ANY = Role(folder=True, past=True)
PAST_OTHER = Role(folder=True, past=True, other=True)
PAST_WRITE = Role(writes=True, past=True)
_TARGET = Role(folder=True, writes=True, new=True)


class Spelled(str):
    """A path as it was typed, and what it may name."""

    __slots__ = ("role",)
    role: Role

    def __new__(cls, text: str, role: Role) -> Self:
        """Keep a text with its role."""
        spelled = super().__new__(cls, text)
        spelled.role = role
        return spelled


class OutsideFile(str):
    """A file, as it was typed, that is not a memory of the namespace."""

    __slots__ = ()


def resolve_paths(memory: Memory, arguments: dict[str, Any]) -> dict[str, Any]:
    """Replace the paths that were typed by paths of the namespace.

    Raises:
        As `resolve_path`.
    """

    def path_of(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(path_of, value))
        if not isinstance(value, Spelled):
            return value
        is_outside = value.role.outside and os.path.isfile(value) and not _may_be_memory(memory, value)
        return OutsideFile(value) if is_outside else resolve_path(memory, str(value), value.role)

    return {name: path_of(value) for name, value in arguments.items()}


def resolve_path(memory: Memory, text: str, role: Role) -> str:
    """Find the path in the namespace that a text means.

    Args:
        memory: whose paths.
        text: as it was typed.
        role: what it may name. Without a suffix a read also takes the memory of that name, and the only one
            of that name elsewhere in the namespace.

    Raises:
        PathRefused: it is to be changed, and may mean two.
        PathRefused: it begins with `/` or has a part `.` or `..`, and leads out of the namespace.
        MemoryNotFound: there is no such memory, and others are called so.
    """
    if role.other and _is_shell_path(text) and _find_inside(memory, text) is None:
        return text
    readings = _list_readings(memory, text)
    is_name = role.new and not role.folder and not text.endswith(SUFFIXES)
    is_bare = is_name and not _is_shell_path(text)
    if readings and is_bare:
        _find_by_name(memory, text, readings, role)  # which says what is called so
    if not readings or is_bare:
        return text
    standing = [path for path in readings if can_name(memory, path, role)]
    if standing:
        return _choose_reading(memory, text, readings, standing, role)
    if role.other:
        return text
    if role.new:
        here = (path for path in readings if os.path.isdir(_file_of(memory, os.path.dirname(path))))
        return next(here, readings[0])
    return _find_by_name(memory, text, readings, role) if role.memory else readings[0]


def resolve_move(memory: Memory, source: str, target: str) -> tuple[str, str]:
    """Find what to move, and where to; a target that is a folder ends in a slash.

    Raises:
        As `resolve_path`.
    """
    old = resolve_path(memory, source, WRITE_ANY)
    new = resolve_path(memory, target.rstrip("/") or target, _TARGET)
    is_folder = target.endswith("/") or os.path.basename(target) in {".", ".."}
    if is_folder or not (new.endswith(SUFFIXES) or new.endswith("/")):
        is_folder = is_folder or os.path.isdir(_file_of(memory, new))
    return old, f"{new.rstrip('/')}/" if is_folder else new


def complete_path(memory: Memory, begun: str, role: Role) -> list[str]:
    """List the paths that begin so and mean a memory or a folder, each in the form that was begun.

    None begins with a dash unasked: it would be taken as an option.
    """

    def is_fitting(form: str) -> bool:
        return form.startswith(begun) and (begun != "" or not form.startswith("-"))

    paths = [listed.path for listed in memory.ls() if not listed.problem]
    folders = {path[:end] for path in paths for end in range(len(path)) if path[end] == "/"}
    wanted = chain(paths if role.memory else (), sorted(folders) if role.folder else ())
    found = (next(filter(is_fitting, _list_spellings(memory, path, begun)), "") for path in wanted)
    return list(filter(None, found))


def _list_readings(memory: Memory, text: str) -> list[str]:
    """List what a text may mean, the shell's reading first; nothing if it is a path of the namespace.

    Raises:
        PathRefused: only the shell has such paths, and it leads out of the namespace.
    """
    layers = {layer.name for layer in memory.scope.reads}
    if not text.strip("/") or text.partition(":")[0] in layers - {""}:
        return []
    shell = _find_inside(memory, text)
    if _is_shell_path(text):
        if shell is None:
            remedy = "name a memory as in notes/decisions.md, or by its file"
            raise PathRefused(path=text, reason=f"it is not below {memory.folder}", remedy=remedy)
        return [shell]
    given = unicodedata.normalize("NFC", text).removesuffix("/")
    # As git and others name files, wherever the current folder is.
    listed = _find_inside(memory, os.path.join(memory.workspace, text))
    return list(dict.fromkeys(path for path in (shell, given, listed) if path is not None))


def _may_be_memory(memory: Memory, file: str) -> bool:
    """Tell whether a file that the shell names is in the namespace, and has the name of a memory."""
    path = _find_inside(memory, file) if file.endswith(SUFFIXES) else None
    return path is not None and not any(part.startswith(".") for part in path.split("/"))


def _is_shell_path(text: str) -> bool:
    """Tell whether only the shell has such paths."""
    return text.startswith("/") or not {".", ".."}.isdisjoint(text.split("/"))


def _find_inside(memory: Memory, text: str) -> str | None:
    """Find the path in the namespace of a file, seen from the current folder."""
    try:
        fits = len(text) < _LONGEST
        return memory.inside(os.path.join(os.getcwd(), text)) if fits else None
    except OSError:
        return None  # the current folder is gone


def _file_of(memory: Memory, path: str) -> str:
    return os.path.join(memory.folder, path)


def _choose_reading(memory: Memory, text: str, readings: list[str], standing: list[str], role: Role) -> str:
    """Choose one of the readings that name something."""
    first = readings[0]
    # Where the shell's could stand as well as not, one of another folder was hardly meant.
    is_far = first not in standing and os.path.isdir(_file_of(memory, os.path.dirname(first)))
    is_shell = first == _find_inside(memory, text)
    if len(standing) == 1 and not (is_far and is_shell):
        return standing[0]
    meant = standing if len(standing) > 1 else [first, *standing]
    one, other = (f"{path}{'' if path in standing else ' (not there)'}" for path in meant[:2])
    say = f"use {_spell_for_shell(memory, meant[0])} or {_spell_for_shell(memory, meant[1])}"
    if role.writes:
        reason = f"it may mean {one} or {other}"
        raise PathRefused(code="path-ambiguous", path=text, reason=reason, remedy=say)
    print_remarks([f"note: {text} is taken as {standing[0]}: it may mean {one} or {other}; {say}"])
    return standing[0]


def can_name(memory: Memory, path: str, role: Role) -> bool:
    """Tell whether a path of the namespace names what its role may be."""
    if not (role.memory if path.endswith(SUFFIXES) else role.folder):
        return False
    try:
        return memory.exists(path) or (role.past and bool(memory.history(path)))
    except PathRefused:
        return False
    except MdmemError:
        return True  # what it is, is said where it is read


def _find_by_name(memory: Memory, text: str, readings: list[str], role: Role) -> str:
    """Find the memory that a text without its suffix names, else the only one of that name anywhere.

    Raises:
        MemoryNotFound: several are called so; or one is, and it is to be changed.
        PathRefused: it is a folder.
    """
    endings = ("",) if text.endswith(SUFFIXES) else SUFFIXES
    here = [path + ending for path in readings for ending in endings if path]
    found = [path for path in here if can_name(memory, path, role)]
    is_near = bool(found)
    if not found and not _is_shell_path(text):
        paths = [listed.path for listed in memory.ls() if not listed.problem]
        each = ([path for path in paths if f"/{path}".endswith(f"/{text}{ending}")] for ending in endings)
        found = next(filter(None, each), [])
    if not found and (role.folder or role.writes or text.endswith(SUFFIXES)):
        return readings[0]
    if not found:
        if any(can_name(memory, path, READ_FOLDER) for path in readings):
            remedy = f"list it with `{shlex.join(('mdmem', 'ls', text))}`"
            raise PathRefused(path=text, reason="this is a folder", remedy=remedy)
        return readings[0] and readings[0] + SUFFIXES[0]
    if role.writes or not (is_near or len(found) == 1):
        raise MemoryNotFound(path=readings[0], near=tuple(found[:_NAMED]))
    if len(found) > 1:
        print_remarks([f"note: {text} is taken as {found[0]}, not {found[1]}"])
    elif not is_near:
        print_remarks([f"note: {text} is taken as {found[0]}"])
    return found[0]


def _spell_for_shell(memory: Memory, path: str) -> str:
    """Spell a path of the namespace so that the shell can mean nothing else."""
    here = os.path.relpath(_file_of(memory, path), os.getcwd())
    return here if here.startswith(os.pardir) else os.path.join(os.curdir, here)


def _list_spellings(memory: Memory, path: str, begun: str) -> Iterator[str]:
    """List the spellings of a path from the current folder, the likeliest first."""
    if begun.startswith("/"):
        yield _file_of(memory, path)
        return
    here = os.path.relpath(_file_of(memory, path), os.getcwd())
    is_below = not here.startswith(os.pardir)
    if begun.startswith("./"):
        if is_below:
            yield f"./{here}"
        return
    if (is_below and memory.inside(os.getcwd())) or begun.startswith(".."):
        yield here
    shell = _find_inside(memory, path)
    if shell in {None, path} or not memory.exists(str(shell)):
        yield path
    if is_below:
        yield here
        yield f"./{here}"
