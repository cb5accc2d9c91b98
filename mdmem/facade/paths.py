"""Find which memory or folder an argument names: as the shell reads a path, else as the namespace does.

The shell's reading begins in the current folder, or in the namespace's folder for a server; it counts where
it leads into the namespace. Where both name something, a read takes the shell's and says so, and a write
refuses. A wikilink is the memory that it means.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document.document import EMBEDDED, MARKDOWN_SUFFIXES, NAMED_SUFFIXES
from mdmem.document.markdown.link import percent_decoded
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused
from mdmem.kind import NOTE, PREFERENCE, PROJECT, RULE, WORKING
from mdmem.vault.paths import is_under

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory

_LONGEST = 4096  # of a path that the system takes
_NAMED = 5  # memories in a hint
_MESSAGE = re.compile(r"sessions/(.+)#([0-9]{1,18})", re.DOTALL)
_PATTERN = re.compile(r"[*?]")
_FILE_URI = re.compile(r"file://(?:localhost)?(/[^#]*)", re.IGNORECASE)
_LAYOUT = ("users", "projects", "resources")  # folders that hold namespaces


class Role(NamedTuple):
    """What an argument may name, and for which use.

    Attributes:
        memory, folder, attachment: what it may be.
        writes: whether it is going to be changed: then of several readings none is guessed.
        new: whether it may be made.
        grows: whether it may be made, and is added to or edited where it is there.
        past: whether it may have been deleted.
        outside: whether it may be none of this at all: it becomes None then.
        other: whether it may be something else, such as a URL, which stays as it is.
        message: whether it may be a message of a session, which stays as it is.
        kind: the argument names a memory of this kind, see `resolve_name`; empty for any memory.
    """

    memory: bool = True
    folder: bool = False
    attachment: bool = False
    writes: bool = False
    new: bool = False
    grows: bool = False
    past: bool = False
    outside: bool = False
    other: bool = False
    message: bool = False
    kind: str = ""


READ = Role()
READ_MESSAGE = Role(message=True)
READ_FOLDER = Role(memory=False, folder=True)
READ_ANY = Role(folder=True)
CHECKED = Role(folder=True, outside=True)
WRITE = Role(writes=True)
WRITE_ANY = Role(folder=True, writes=True)
WRITE_FOLDER = Role(memory=False, folder=True, writes=True)
NEW = Role(writes=True, new=True)
GROW = Role(writes=True, new=True, grows=True)
NEW_FOLDER = Role(memory=False, folder=True, writes=True, new=True)
NEW_NOTE = Role(writes=True, new=True, kind=NOTE.name)
NEW_RULE = Role(writes=True, new=True, kind=RULE.name)
READ_OTHER = Role(other=True)
PAST = Role(past=True)
PAST_ANY = Role(folder=True, past=True)
PAST_OTHER = Role(folder=True, past=True, other=True)
PAST_WRITE = Role(writes=True, past=True)
PAST_WRITE_ANY = Role(folder=True, writes=True, past=True)
_MOVED = Role(folder=True, attachment=True, writes=True)
_TARGET = Role(folder=True, writes=True, new=True)


def parse_message(text: str) -> tuple[str, int] | None:
    """Parse the key of a session and the number in it that `sessions/KEY#NUMBER` names; None for others."""
    named = _MESSAGE.fullmatch(text)
    return (named[1], int(named[2])) if named else None


def _is_link(text: str) -> bool:
    return text.startswith(("[[", "![[")) and text.endswith("]]")


def _is_shell_path(text: str) -> bool:
    return text.startswith("/") or not {".", ".."}.isdisjoint(text.split("/"))


class PathReader:
    """Reads paths as people and agents write them.

    Args:
        tell: is told what a path is taken for, where it may mean something else as well.
        here: the folder that relative paths begin at; the current one without.
    """

    def __init__(self, memory: Memory, tell: Callable[[str], None], here: str = "") -> None:
        self._memory = memory
        self._tell = tell
        self._here = here
        # Git and others name files from the workspace, and from the folder that holds the vault.
        self._outer = dict.fromkeys((memory.workspace, os.path.dirname(memory.root)))

    def resolve(self, text: str, role: Role) -> str:
        """Find the path in the namespace that a text means.

        Args:
            text: as it was typed, with the suffix of a memory or without. A read also takes the only one of
                that name elsewhere in the namespace. So does a change of what is there, where the text has
                neither suffix nor folder: with one it says where the memory is.

        Raises:
            PathRefused: it is to be changed, and may mean two; or it leads out of the namespace.
            MemoryNotFound: there is no such memory, and others are called so.
        """
        address = _FILE_URI.match(text)
        if address and not role.other:
            text = percent_decoded(address[1])
        if role.kind or _is_link(text):
            return self.resolve_name(text, role.kind) if role.kind else self._follow_link(text, role)
        layers = {layer.name for layer in self._memory.scope.reads}
        is_message = role.message and parse_message(text)
        is_shared = self._memory.names_shared([text])
        if is_shared and role.writes:
            raise PathRefused(path=text, reason="it is changed in Python alone, by `memory.shared`")
        if not text.strip("/") or text.partition(":")[0] in layers - {""} or is_message or is_shared:
            return text
        readings = self._list_readings(text, role)
        is_by_name = role.new and not role.folder and not text.endswith(self._memory.suffixes)
        standing = [] if is_by_name else [path for path in readings if self.can_name(path, role)]
        if standing:
            return self._choose_reading(text, readings, standing, role)
        if role.new and not is_by_name:
            return self._choose_new(text, readings)
        if role.other or not role.memory:
            return text if role.other else readings[0]
        return self._find_by_name(text, readings, role)

    def find_checked(self, text: str, role: Role) -> str | None:
        """Find the path of a memory or folder that is there; None for any other file."""
        if os.path.isfile(text) and self._find_inside(text) is None:
            return None
        with suppress(MemoryNotFound, PathRefused):
            path = self.resolve(text, role)
            return path if self.can_name(path, role) else None
        return None

    def resolve_name(self, text: str, kind: str) -> str:
        """Find the path of a memory of a kind to make or to add to; else what is its name in their folder.

        Args:
            text: the name, or any form of the path; the suffix may be missing.
            kind: the name of the kind; one that is unknown has the whole namespace. A thread and a heading
                are no paths, and stay as they are.

        Raises:
            PathRefused: it names a memory elsewhere, may mean two, or leads out of the namespace.
            MemoryNotFound: it is a link to nothing.
        """
        if not text or kind in {WORKING.name, PROJECT.name}:
            return text
        folder = next((f"{each.folder}/" for each in self._memory.kinds if each.name == kind), "").lstrip("/")
        readings = [self._follow_link(text, WRITE)] if _is_link(text) else self._list_readings(text, NEW)
        meant = [path for path in readings if path.startswith(folder)]
        if _is_link(text) or _is_shell_path(text):
            if not meant:
                remedy = f"name it: {readings[0]}"
                raise PathRefused(path=text, reason=f"it is not in {folder}", remedy=remedy)
        else:
            names = (path for path in self._list_named(text) if not path.startswith(folder))
            meant += [f"{folder}{name}" for name in names]
        meant = sorted(dict.fromkeys(meant), key=self._count_missing)
        suffix = "" if text.endswith(self._memory.suffixes) else MARKDOWN_SUFFIXES[0]
        standing = [path for path in meant if self.can_name(f"{path}{suffix}", WRITE)]
        is_unclear = standing and len(meant) > 1
        path = self._choose_reading(text, meant, standing, WRITE) if is_unclear else meant[0]
        is_key = kind == PREFERENCE.name and path.endswith(f"/{text.rstrip('/')}")
        return text if is_key else path

    def _list_readings(self, text: str, role: Role) -> list[str]:
        """List what a text may mean, the shell's reading first; refuse what leads out of the namespace."""
        shell = self._find_inside(text)
        mounted = self._find_mounted(text) if shell is None else ""
        if mounted:
            remedy = f"move it away, or name the mounted file {shlex.quote(mounted)}"
            raise PathRefused(path=text, reason="a mount of the same path hides this file", remedy=remedy)
        if _is_shell_path(text):
            rooted = text.strip("/")
            is_rooted = shell is None and text.startswith("/") and not role.writes
            if is_rooted and self.can_name(rooted, role):
                return [rooted]
            if shell is None and not role.other:
                raise self._describe_outside(text)
            # A server's agent stands in the workspace.
            is_here = not self._here or shell is None or self.can_name(shell, role)
            other = () if is_here or not text.startswith("./") else self._list_named(text[2:])
            return list(dict.fromkeys((text if shell is None else shell, *other)))
        here = unicodedata.normalize("NFC", text).removesuffix("/")
        for folder in (self._here, self._memory.folder) if here != text else ():
            files = [os.path.join(folder, each) for each in (text, here)]
            if all(map(os.path.lexists, files)) and not os.path.samefile(*files):
                shown, remedy = text.encode("unicode_escape").decode(), "rename one with your system's `mv`"
                raise PathRefused(
                    path=shown, reason="it is there in another Unicode spelling, too", remedy=remedy
                )
        return list(dict.fromkeys(path for path in (shell, *self._list_named(text)) if path is not None))

    def _list_named(self, text: str) -> list[str]:
        """List what a text means in the namespace, and as a path from the folders around the vault."""
        outer = (self._find_inside(os.path.join(folder, text)) for folder in self._outer)
        here = unicodedata.normalize("NFC", text).removesuffix("/")
        return [here, *(path for path in outer if path is not None)]

    def _choose_new(self, text: str, readings: list[str]) -> str:
        """Choose the reading that needs the fewest new folders; refuse one for another namespace."""
        root = self._memory.root
        for folder in self._outer:
            place = os.path.join(folder, text)
            if folder != root and is_under(place, root) and self._find_inside(place) is None:
                raise self._describe_outside(text)
        return min(readings, key=self._count_missing)

    def _describe_outside(self, text: str) -> PathRefused:
        remedy = "name a memory as in notes/decisions.md, or by its file"
        return PathRefused(path=text, reason=f"it is not below {self._memory.folder}", remedy=remedy)

    def _follow_link(self, link: str, role: Role) -> str:
        """Find the memory that a wikilink means; where it may mean several, a read takes one and says so."""
        found = [path for path in self._memory.references.find(link) if self.can_name(path, role)]
        if not found and role.other:
            return link
        if not found:
            raise MemoryNotFound(path=link)
        if len(found) > 1:
            meant = " or ".join(found[:_NAMED])
            if role.writes:
                reason, remedy = f"it may mean {meant}", f"use {meant}"
                raise PathRefused(code="path-ambiguous", path=link, reason=reason, remedy=remedy)
            self._tell(f"{link} is taken as {found[0]}: it may mean {meant}")
        return found[0]

    def resolve_move(self, source: str, target: str) -> tuple[str, str]:
        """Find what to move, and where to; a target that is a folder ends in a slash."""
        old = self.resolve(source, _MOVED)
        new = self.resolve(target.rstrip("/") or target, _TARGET)
        is_folder = target.endswith("/") or os.path.basename(target) in {".", ".."}
        if is_folder or not new.endswith((*self._memory.suffixes, "/")):
            is_folder = is_folder or os.path.isdir(self._file_of(new))
        return old, f"{new.rstrip('/')}/" if is_folder else new

    def complete(self, begun: str, role: Role) -> list[str]:
        """List the paths that begin so and mean a memory or a folder, each in the form that was begun.

        None begins with a dash unasked: it would be taken as an option.
        """
        paths = [listed.path for listed in self._memory.ls() if not listed.problem]
        folders = {path[:end] for path in paths for end in range(len(path)) if path[end] == "/"}
        wanted = chain(paths if role.memory else (), sorted(folders) if role.folder else ())
        is_inside = bool(self._memory.inside(os.getcwd()))
        completed: list[str] = []
        for path in wanted:
            file = self._file_of(path)
            here = os.path.relpath(file)
            is_first = is_inside or begun.startswith("..")
            forms = [here, path] if is_first else [path, here]
            forms += [file] if here.startswith(os.pardir) else [f"./{here}", file]
            fitting = (
                form for form in forms if form.startswith(begun) and (begun or not form.startswith("-"))
            )
            completed += islice(fitting, 1)
        return completed

    def _find_inside(self, text: str) -> str | None:
        try:
            return self._memory.inside(os.path.join(self._here, text)) if len(text) < _LONGEST else None
        except OSError:
            return None  # the current folder is gone

    def _find_mounted(self, text: str) -> str:
        """Find the file that is mounted over the one that the shell names, seen from the current folder.

        Empty also where the text is the path of the mounted one in the namespace.
        """
        with suppress(OSError, ValueError):
            place = os.path.abspath(os.path.join(self._here, text))
            target = self._memory.mounted_over(place)
            if target and (_is_shell_path(text) or place != self._file_of(text)):
                return os.path.relpath(target, self._here or None)
        return ""

    def _file_of(self, path: str) -> str:
        return os.path.join(self._memory.folder, path)

    def _count_missing(self, path: str) -> int:
        """Count the folders that are to be made for a path, apart from those of the layout."""
        at_home = {*_LAYOUT, *(kind.folder for kind in self._memory.kinds)}
        ends = (end for end, character in enumerate(path[:_LONGEST]) if character == "/")
        folders = {path[:end] for end in ends} - at_home
        return sum(not os.path.isdir(self._file_of(folder)) for folder in folders)

    def _choose_reading(self, text: str, readings: list[str], standing: list[str], role: Role) -> str:
        # Where the shell's could stand as well as not, one of another folder was hardly meant to be changed.
        shell = self._find_inside(text)
        is_far = role.writes and shell is not None and shell not in standing
        if len(standing) == 1 and not (is_far and os.path.isdir(self._file_of(os.path.dirname(shell or "")))):
            return standing[0]
        meant = standing[:2] if len(standing) > 1 else [readings[0], standing[0]]
        one, other = (f"{path or '.'}{'' if path in standing else ' (not there)'}" for path in meant)
        say = f"use {' or '.join(self._spell_for_shell(path) for path in meant)}"
        if role.writes:
            reason = f"it may mean {one} or {other}"
            raise PathRefused(code="path-ambiguous", path=text, reason=reason, remedy=say)
        self._tell(f"{text} is taken as {one}: it may mean {one} or {other}; {say}")
        return meant[0]

    def can_name(self, path: str, role: Role) -> bool:
        """Tell whether a path of the namespace names what its role may be."""
        if not (role.memory if path.endswith(self._memory.suffixes) else role.folder):
            return False
        is_attachment = role.attachment and not path.endswith(self._memory.suffixes)
        if is_attachment and os.path.isfile(self._file_of(path)):
            return True
        try:
            return self._memory.exists(path) or (role.past and bool(self._memory.history(path)))
        except PathRefused:
            return False
        except MdmemError:
            return True  # what it is, is said where it is read

    def _find_by_name(self, text: str, readings: list[str], role: Role) -> str:
        """Find the memory that a text without its suffix names, else the only one of that name anywhere."""
        suffixes = self._memory.suffixes
        endings = ("",) if text.endswith(suffixes) else suffixes
        near = [path + ending for path in readings for ending in endings if path]
        named = [path for path in near if self.can_name(path, role)]
        # A folder that is there is meant itself, though it may hold nothing but attachments.
        is_there = role.folder and any(os.path.isdir(self._file_of(path)) for path in readings if path)
        is_far = not (named or is_there or _is_shell_path(text))
        if is_far:
            paths = [listed.path for listed in self._memory.ls() if not listed.problem]
            if role.writes and role.past:  # nor is one that is there taken for one that was deleted
                paths += [file.path for entry in self._memory.history() for file in entry.files]
            names = dict.fromkeys(paths)
            named = [path for ending in endings for path in names if f"/{path}".endswith(f"/{text}{ending}")]
        is_unclear = len(named) > 1 and (role.writes or is_far)
        is_bare = "/" not in text and not text.endswith(suffixes)
        may_be_far = not role.writes or (is_bare and (role.grows or not role.new))
        if named and (is_unclear or (is_far and not may_be_far)):
            raise MemoryNotFound(path=readings[0], near=tuple(named[:_NAMED]))
        if named:
            if is_far or len(named) > 1:
                self._tell(f"{text} is taken as {named[0]}")
            return named[0]
        if remedy := self._find_remedy(text, role):
            raise MemoryNotFound(path=text, remedy=remedy)
        if role.folder or text.endswith(suffixes):
            return readings[0]
        if any(self.can_name(path, READ_FOLDER) for path in readings):
            remedy = f"list it with `{shlex.join(('mdmem', 'ls', text))}`"
            raise PathRefused(path=text, reason="this is a folder", remedy=remedy)
        return readings[0] if role.writes else (near or readings)[0]

    def _find_remedy(self, text: str, role: Role) -> str:
        """Say what to do with a text that names no memory; empty where only other names help."""
        suffixes = self._memory.suffixes
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
        is_file = bool(EMBEDDED.search(text)) or os.path.isfile(os.path.join(self._memory.workspace, text))
        if not role.writes and is_file and not text.endswith(suffixes):
            return f"`mdmem refs {quoted}` lists the links to a file that is no memory"
        return ""

    def _spell_for_shell(self, path: str) -> str:
        """Spell a path of the namespace so that the shell can mean nothing else."""
        here = os.path.relpath(self._file_of(path), self._here or None)
        return here if here.startswith(os.pardir) else os.path.join(os.curdir, here)
