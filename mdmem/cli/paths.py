"""Find which memory or folder an argument names: as the shell reads a path, else as the namespace does.

The shell's reading begins in the current folder; it counts where it leads into the namespace. Where both name
something, a read takes the shell's and says so, and a write refuses.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from mdmem.cli.render import NAMED_SUFFIXES, print_remarks
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused

if TYPE_CHECKING:
    from mdmem import Memory

_LONGEST = 4096  # of a path that the system takes
_NAMED = 5  # memories in a hint
_MESSAGE = re.compile(r"sessions/(.+)#([0-9]{1,18})", re.DOTALL)
_PATTERN = re.compile(r"[*?]")
# What notes show and link to.
_EMBEDDED = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|pdf|mp[34]|csv|txt)\Z", re.IGNORECASE)


class Role(NamedTuple):
    """What an argument may name, and for which use.

    Attributes:
        memory, folder, attachment: what it may be.
        writes: whether it is going to be changed: then nothing is guessed.
        new: whether it may be made.
        past: whether it may have been deleted.
        outside: whether it may be none of this at all: it becomes None then.
        other: whether it may be something else, such as a URL, which stays as it is.
        message: whether it may be a message of a session, which stays as it is.
    """

    memory: bool = True
    folder: bool = False
    attachment: bool = False
    writes: bool = False
    new: bool = False
    past: bool = False
    outside: bool = False
    other: bool = False
    message: bool = False


READ = Role()
READ_MESSAGE = Role(message=True)
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
PAST_WRITE_ANY = Role(folder=True, writes=True, past=True)
_MOVED = Role(folder=True, attachment=True, writes=True)
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


class BegunThread(str):
    """The id of a thread that is there, or the beginning of one, as it was typed."""

    __slots__ = ()


def resolve_paths(memory: Memory, arguments: dict[str, Any]) -> dict[str, Any]:
    """Replace the paths that were typed by paths of the namespace.

    Raises:
        As `resolve_path`.
    """

    def path_of(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(path_of, value))
        if isinstance(value, BegunThread):
            return memory.complete_thread(str(value))
        if not isinstance(value, Spelled):
            return value
        return (_find_checked if value.role.outside else resolve_path)(memory, value, value.role)

    return {name: path_of(value) for name, value in arguments.items()}


def _find_checked(memory: Memory, text: str, role: Role) -> str | None:
    """Find the path of what is there; None for what is no memory and no folder of the namespace."""
    is_other = os.path.isfile(text) and _find_inside(memory, text) is None
    with suppress(MemoryNotFound, PathRefused):
        path = "" if is_other else resolve_path(memory, text, role)
        return None if is_other or not can_name(memory, path, role) else path
    return None


def resolve_path(memory: Memory, text: str, role: Role) -> str:
    """Find the path in the namespace that a text means.

    Args:
        memory: whose paths.
        text: as it was typed, with the suffix of a memory or without. A read also takes the only one of
            that name elsewhere in the namespace.
        role: what it may name.

    Raises:
        PathRefused: it is to be changed, and may mean two; or it leads out of the namespace.
        MemoryNotFound: there is no such memory, and others are called so.
    """
    layers = {layer.name for layer in memory.scope.reads}
    is_message = role.message and parse_message(text)
    if not text.strip("/") or text.partition(":")[0] in layers - {""} or is_message:
        return text
    readings = _list_readings(memory, text, role)
    if role.new and not role.folder and not text.endswith(memory.suffixes):
        return _find_by_name(memory, text, readings, role)
    standing = [path for path in readings if can_name(memory, path, role)]
    if standing:
        return _choose_reading(memory, text, readings, standing, role)
    if role.other:
        return text
    if role.new:
        return next((path for path in readings if _has_folder(memory, path)), readings[0])
    return _find_by_name(memory, text, readings, role) if role.memory else readings[0]


def resolve_name(memory: Memory, text: str, folder: str = "") -> str:
    """Find the path in the namespace, without its suffix, of a memory to make, by its name in a folder.

    Raises:
        PathRefused: it leads out of the namespace.
    """
    readings = _list_readings(memory, text, NEW)
    below = [path for path in readings if path.startswith(f"{folder}/")]
    name = readings[0] if _is_shell_path(text) else text.removesuffix("/")
    return next((path for path in below if _has_folder(memory, path)), below[0] if below else name)


def _list_readings(memory: Memory, text: str, role: Role) -> list[str]:
    """List what a text may mean, the shell's reading first; refuse what leads out of the namespace."""
    shell = _find_inside(memory, text)
    mounted = _find_mounted(memory, text) if shell is None else ""
    if mounted:
        remedy = f"move it away, or name the mounted file {shlex.quote(mounted)}"
        raise PathRefused(path=text, reason="a mount of the same path hides this file", remedy=remedy)
    if _is_shell_path(text):
        rooted = text.strip("/")
        if shell is None and text.startswith("/") and not role.writes and can_name(memory, rooted, role):
            return [rooted]
        if shell is None and not role.other:
            remedy = "name a memory as in notes/decisions.md, or by its file"
            raise PathRefused(path=text, reason=f"it is not below {memory.folder}", remedy=remedy)
        return [text if shell is None else shell]
    here = unicodedata.normalize("NFC", text).removesuffix("/")
    for folder in ("", memory.folder) if here != text else ():
        files = [os.path.join(folder, each) for each in (text, here)]
        if all(map(os.path.lexists, files)) and not os.path.samefile(*files):
            shown, remedy = text.encode("unicode_escape").decode(), "rename one with your system's `mv`"
            raise PathRefused(
                path=shown, reason="it is there in another Unicode spelling, too", remedy=remedy
            )
    # As git and others name files, wherever the current folder is.
    listed = _find_inside(memory, os.path.join(memory.workspace, text))
    return list(dict.fromkeys(path for path in (shell, here, listed) if path is not None))


def parse_message(text: str) -> tuple[str, int] | None:
    """Parse the key of a session and the number in it that `sessions/KEY#NUMBER` names; None for others."""
    named = _MESSAGE.fullmatch(text)
    return (named[1], int(named[2])) if named else None


def resolve_move(memory: Memory, source: str, target: str) -> tuple[str, str]:
    """Find what to move, and where to; a target that is a folder ends in a slash.

    Raises:
        As `resolve_path`.
    """
    old = resolve_path(memory, source, _MOVED)
    new = resolve_path(memory, target.rstrip("/") or target, _TARGET)
    is_folder = target.endswith("/") or os.path.basename(target) in {".", ".."}
    if is_folder or not new.endswith((*memory.suffixes, "/")):
        is_folder = is_folder or os.path.isdir(_file_of(memory, new))
    return old, f"{new.rstrip('/')}/" if is_folder else new


def complete_path(memory: Memory, begun: str, role: Role) -> list[str]:
    """List the paths that begin so and mean a memory or a folder, each in the form that was begun.

    None begins with a dash unasked: it would be taken as an option.
    """
    paths = [listed.path for listed in memory.ls() if not listed.problem]
    folders = {path[:end] for path in paths for end in range(len(path)) if path[end] == "/"}
    wanted = chain(paths if role.memory else (), sorted(folders) if role.folder else ())
    is_inside = bool(memory.inside(os.getcwd()))
    completed: list[str] = []
    for path in wanted:
        file = _file_of(memory, path)
        here = os.path.relpath(file)
        is_first = is_inside or begun.startswith("..")
        forms = [here, path] if is_first else [path, here]
        forms += [file] if here.startswith(os.pardir) else [f"./{here}", file]
        fitting = (form for form in forms if form.startswith(begun) and (begun or not form.startswith("-")))
        completed += islice(fitting, 1)
    return completed


def _is_shell_path(text: str) -> bool:
    """Tell whether only the shell has such paths."""
    return text.startswith("/") or not {".", ".."}.isdisjoint(text.split("/"))


def _find_inside(memory: Memory, text: str) -> str | None:
    """Find the path in the namespace of a file, seen from the current folder."""
    try:
        return memory.inside(os.path.join(os.getcwd(), text)) if len(text) < _LONGEST else None
    except OSError:
        return None  # the current folder is gone


def _find_mounted(memory: Memory, text: str) -> str:
    """Find the file that is mounted over the one that the shell names, seen from the current folder.

    Empty also where the text is the path of the mounted one in the namespace.
    """
    with suppress(OSError, ValueError):
        target = memory.mounted_over(text)
        if target and (_is_shell_path(text) or os.path.abspath(text) != _file_of(memory, text)):
            return os.path.relpath(target)
    return ""


def _file_of(memory: Memory, path: str) -> str:
    return os.path.join(memory.folder, path)


def _has_folder(memory: Memory, path: str) -> bool:
    return os.path.isdir(_file_of(memory, os.path.dirname(path)))


def _choose_reading(memory: Memory, text: str, readings: list[str], standing: list[str], role: Role) -> str:
    # Where the shell's could stand as well as not, one of another folder was hardly meant to be changed.
    shell = _find_inside(memory, text)
    is_far = role.writes and shell is not None and shell not in standing and _has_folder(memory, shell)
    if len(standing) == 1 and not is_far:
        return standing[0]
    meant = standing[:2] if len(standing) > 1 else [readings[0], standing[0]]
    one, other = (f"{path}{'' if path in standing else ' (not there)'}" for path in meant)
    say = f"use {' or '.join(_spell_for_shell(memory, path) for path in meant)}"
    if role.writes:
        reason = f"it may mean {one} or {other}"
        raise PathRefused(code="path-ambiguous", path=text, reason=reason, remedy=say)
    print_remarks([f"note: {text} is taken as {one}: it may mean {one} or {other}; {say}"])
    return meant[0]


def can_name(memory: Memory, path: str, role: Role) -> bool:
    """Tell whether a path of the namespace names what its role may be."""
    if not (role.memory if path.endswith(memory.suffixes) else role.folder):
        return False
    if role.attachment and os.path.isfile(_file_of(memory, path)) and not path.endswith(memory.suffixes):
        return True
    try:
        return memory.exists(path) or (role.past and bool(memory.history(path)))
    except PathRefused:
        return False
    except MdmemError:
        return True  # what it is, is said where it is read


def _find_by_name(memory: Memory, text: str, readings: list[str], role: Role) -> str:
    """Find the memory that a text without its suffix names, else the only one of that name anywhere."""
    suffixes = memory.suffixes
    endings = ("",) if text.endswith(suffixes) else suffixes
    near = [path + ending for path in readings for ending in endings if path]
    named = [path for path in near if can_name(memory, path, role)]
    is_far = not named and not _is_shell_path(text)
    if is_far:
        paths = [listed.path for listed in memory.ls() if not listed.problem]
        named = [path for ending in endings for path in paths if f"/{path}".endswith(f"/{text}{ending}")]
    is_unclear = len(named) > 1 and (role.writes or is_far)
    if named and (is_unclear or (role.writes and is_far)):
        raise MemoryNotFound(path=readings[0], near=tuple(named[:_NAMED]))
    if named:
        print_remarks([f"note: {text} is taken as {named[0]}"] if is_far or len(named) > 1 else [])
        return named[0]
    if remedy := _find_remedy(memory, text, role):
        raise MemoryNotFound(path=text, remedy=remedy)
    if role.folder or text.endswith(suffixes):
        return readings[0]
    if any(can_name(memory, path, READ_FOLDER) for path in readings):
        remedy = f"list it with `{shlex.join(('mdmem', 'ls', text))}`"
        raise PathRefused(path=text, reason="this is a folder", remedy=remedy)
    return readings[0] if role.writes else (near or readings)[0]


def _find_remedy(memory: Memory, text: str, role: Role) -> str:
    """Say what to do with a text that names no memory; empty where only other names help."""
    suffixes = memory.suffixes
    quoted = shlex.quote(text)
    if role.message and parse_message(message := f"sessions/{text}"):
        return f"`mdmem show {shlex.quote(message)}` shows a message of a session"
    if not role.new and _PATTERN.search(text):
        return f"`mdmem ls --glob {quoted}` lists what fits a pattern"
    may_differ = role.folder or not role.writes  # what is only written says so itself
    if may_differ and text.endswith(NAMED_SUFFIXES) and not text.endswith(suffixes):
        return f"name {text[text.rindex('.') :]} in `[files] suffixes` of .mdmem/config.toml"
    if not role.writes and text.startswith("#") and not text.endswith(suffixes):
        return f"`mdmem refs {quoted}` lists where a tag stands"
    is_file = bool(_EMBEDDED.search(text)) or os.path.isfile(os.path.join(memory.workspace, text))
    if not role.writes and is_file and not text.endswith(suffixes):
        return f"`mdmem refs {quoted}` lists the links to a file that is no memory"
    return ""


def _spell_for_shell(memory: Memory, path: str) -> str:
    """Spell a path of the namespace so that the shell can mean nothing else."""
    here = os.path.relpath(_file_of(memory, path), os.getcwd())
    return here if here.startswith(os.pardir) else os.path.join(os.curdir, here)
