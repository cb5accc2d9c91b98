"""Paths of a vault: what one may look like, how an id becomes a file name, and the namespace of a scope.

A path is relative to the vault, with `/` between its parts. Nothing here looks at a disk.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from mdmem.document.arguments import texts_of
from mdmem.document.document import ANY_SUFFIXES, NAMED_SUFFIXES, SUFFIXES
from mdmem.document.text.regex import regex
from mdmem.errors import MdmemError, PathRefused, Usage
from mdmem.kind import PROJECT_FILE

StrPath: TypeAlias = str | os.PathLike[str]
"""What a verb takes for a path; `path_text` makes a text of it."""
MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255  # the most that ext4, APFS and NTFS all carry
is_hidden = re.compile(r"\.|node_modules\Z").match
"""Whether a name keeps a file or folder out of a vault; npm packages bring notes along."""

_CONTROL = regex("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NOT_PORTABLE = regex(r'[<>:"|?*]|[. ]$|^ ')
# Names of devices, with or without a suffix (Win32 file naming conventions).
_RESERVED = regex(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?", re.IGNORECASE)
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
# What an id may hold that a file name may not: `%` itself, separators, what Windows forbids, controls.
_ENCODED_IN_IDS = regex('[%/\\\\<>:"|?*\x00-\x1f\x7f-\x9f]')


def path_text(path: StrPath) -> str:
    """Return a path as text."""
    text: object = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"expected str or os.PathLike, not {type(path).__name__}")
    return text


def place_text(path: StrPath) -> str:
    """See `path_text`, for a folder or memory to look in: a slash before it is the root of the namespace."""
    return path_text(path).lstrip("/")


def find_project_file(names: Iterable[str]) -> str:
    """Return the name of the project memory among those in a folder: `AGENTS.md`, else in another case."""
    found = sorted(name for name in names if name.casefold() == PROJECT_FILE.casefold())
    return found[0] if found and PROJECT_FILE not in found else PROJECT_FILE


def path_texts(paths: Iterable[StrPath]) -> tuple[str, ...]:
    """Return several paths as texts."""
    return tuple(map(path_text, texts_of(paths, "paths")))


def check_folder(path: StrPath) -> str:
    """Return a folder's path in normal form: NFC, without a slash at its end; empty for the vault itself.

    Raises:
        PathRefused: it is absolute, too long, or has a part that is empty, hidden, `.`, `..`, or holds a
            backslash, a control character or an escape for one of these.
    """
    path = path_text(path)
    return _check_path(path.removesuffix("/")) if path not in {"", "/"} else ""


def check_memory(path: StrPath, suffixes: tuple[str, ...] = ANY_SUFFIXES, *, usual: str = SUFFIXES[0]) -> str:
    """Return a memory's path in normal form (NFC).

    Args:
        suffixes: how its name may end: in a vault as its config says.
        usual: the suffix that is proposed to whoever gives none.

    Raises:
        PathRefused: as `check_folder`, or it does not end so.
    """
    path = _check_path(path_text(path))
    if path.endswith(suffixes):
        return path
    name = path.rstrip(" .")  # no name of a file ends so on every system
    stem, dot, ending = name.rpartition(".")
    suffix = f"{dot}{ending.lower()}"
    meant = stem + suffix if suffix in suffixes else name + usual
    reason, remedy = "a memory's name ends in .md or .json", f"try {meant}"
    named = next(filter(path.endswith, NAMED_SUFFIXES), "")
    if named:
        reason += f", and in {named} only where the vault's config names it"
        remedy = f"name {named} in `[files] suffixes` of .mdmem/config.toml, or {remedy}"
    raise PathRefused(path=path, reason=reason, remedy=remedy)


def nfc(text: str) -> str:
    """Return a text in the form in which names are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@lru_cache(maxsize=4096)
def _check_path(path: str) -> str:
    path = nfc(path)
    reason = _find_fault(path)
    if reason:
        remedy = "give a path inside the vault, such as notes/decisions.md"
        raise PathRefused(path=path, reason=reason, remedy=remedy)
    return path


def _find_fault(path: str) -> str:
    if _CONTROL.search(path):
        return "a path has no control characters"
    if "\\" in path:
        return "parts of a path are separated by /, not by a backslash"
    if path.startswith("/"):
        return "a path is relative to the vault"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"a path has at most {MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_fault_of_part, path.split("/"))), "")


def _fault_of_part(part: str) -> str:
    if not part:
        return "a path has no empty part"
    if part in {".", ".."}:
        return "a path has no part . or .."
    if is_hidden(part):
        return "hidden files and folders are not memories"
    if len(part.encode()) > MAX_NAME_BYTES:
        return f"a name has at most {MAX_NAME_BYTES} bytes"
    return "an escape stands for a character that no path may have" if _is_smuggling(part) else ""


def _is_smuggling(part: str) -> bool:
    """Return whether `part`, if somebody decoded its escapes, would name another place."""
    if "%" not in part:
        return False
    decoded = decode_id(part)
    if decoded in {".", ".."}:
        return True
    dangerous = decoded.startswith(".") or bool(re.search("[/\\\\\x00-\x1f\x7f]", decoded))
    # An id has one spelling with escapes. That one is harmless; any other is a trick.
    names = (part, *(part.removesuffix(suffix) for suffix in ANY_SUFFIXES))
    return dangerous and not any(map(is_encoded, names))


def is_encoded(name: str) -> bool:
    """Tell whether a name is the one that `encode_id` gives to an id."""
    identifier = decode_id(name)
    return identifier not in {"", ".", ".."} and _encode_identifier(identifier) == name


def unportable(part: str) -> tuple[str, str]:
    """Return why not every system can hold or show a name, and what to do; both empty when every one can."""
    if _RESERVED.fullmatch(part):
        return f"{part!r} is the name of a device on Windows", "rename it"
    if _NOT_PORTABLE.search(part):
        reason = f"{part!r} cannot be a name on every system"
        return reason, 'leave out < > : " | ? * and spaces or dots at the end'
    if any(map(_is_invisible, part)):
        return "a name has no invisible characters", "leave them out"
    return "", ""


def encode_id(identifier: str, *, most: int | None = MAX_NAME_BYTES - max(map(len, SUFFIXES))) -> str:
    """Return the file name for an id: the id itself where a file name can carry it, else with %-escapes.

    Reversible (`decode_id`) and one to one: two ids never share a name.

    Raises:
        PathRefused: the id is empty, `.` or `..`, cannot be encoded, or its name has over `most` bytes.
    """
    if identifier in {"", ".", ".."} or re.search("[\ud800-\udfff]", identifier):
        raise PathRefused(path=identifier, reason="this cannot be an id", remedy="give a name")
    name = _encode_identifier(identifier)
    if most is not None and len(name.encode()) > most:
        raise PathRefused(path=identifier, reason="an id that long has no file name", remedy="shorten it")
    return name


def _encode_identifier(identifier: str) -> str:
    name = _escape_identifier(identifier, ascii_only=False)
    # Names are compared in NFC, where two ids may be equal, and a mark may join the escape before it: then
    # the id is written in ASCII.
    stable = unicodedata.is_normalized("NFC", identifier) and unicodedata.is_normalized("NFC", name)
    return name if stable else _escape_identifier(identifier, ascii_only=True)


def _escape_identifier(identifier: str, *, ascii_only: bool) -> str:
    name = "".join(
        character
        if (character.isascii() or not ascii_only)
        and not _ENCODED_IN_IDS.match(character)
        and not _is_invisible(character)
        else _escape_character(character)
        for character in identifier
    )
    if name[0] in ". " or _RESERVED.fullmatch(name):
        name = _escape_character(name[0]) + name[1:]
    return name[:-1] + _escape_character(name[-1]) if name[-1] in ". " else name


def _is_invisible(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) in {"Cf", "Zl", "Zp"}


def _escape_character(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def decode_id(name: str) -> str:
    """Return the id that `encode_id` turned into `name`."""
    data = _ESCAPE.sub(
        lambda escape: bytes.fromhex(escape[1].decode()), name.encode("utf-8", "surrogateescape")
    )
    return data.decode("utf-8", "replace")


def absolute(path: StrPath) -> str:
    """Return a path of the system as an absolute one; `~` is the home folder."""
    try:
        return os.path.abspath(os.path.expanduser(path))
    except FileNotFoundError:
        remedy = "`cd` to another folder, or name the vault by its absolute path"
        raise Usage(problem="the current folder is gone", remedy=remedy) from None


def above(path: str) -> Iterator[str]:
    """Yield the folders above a path, from the nearest to the root: `/`, or the empty path of a vault."""
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def is_under(path: str, namespace: str) -> bool:
    """Return whether `path` is `namespace` or below it: `users/alice` is not above `users/alicebob`."""
    return not namespace or path == namespace or path.startswith(namespace + "/")


def join(namespace: str, path: str) -> str:
    """Return `path`, seen from `namespace`, as the whole vault names it."""
    return f"{namespace}/{path}" if namespace and path else namespace or path


def relative(path: str, namespace: str) -> str:
    """Return `path`, which is under `namespace`, as seen from there."""
    return path[len(namespace) + 1 :] if namespace else path


@contextmanager
def seen_from(namespace: str) -> Iterator[None]:
    """Let an error about a memory in a namespace name it as the namespace does."""
    try:
        yield
    except MdmemError as error:
        path = error.values.get("path")
        if not namespace or not isinstance(path, str) or not is_under(path, namespace) or path == namespace:
            raise
        raise error.but(path=relative(path, namespace)) from None


USERS = "users"
"""The folder at the top of a vault that holds what is private to one user each."""


class Namespace(NamedTuple):
    """A folder of the vault, without some folders in it: the wall around what a scope sees.

    Attributes:
        folder: as the whole vault names it; empty for the vault itself.
        hides: the folders in it that do not belong to it; a part `*` stands for any one name.
        keeps: what stands in these and belongs to it all the same: memories, and folders.
    """

    folder: str = ""
    hides: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()

    def holds(self, path: str) -> bool:
        """Return whether a memory or folder belongs to it, by its path as the whole vault names it."""
        if not is_under(path, self.folder):
            return False
        # Some file systems take names that differ in case alone for the same.
        if not self.hides or not _match_below(self.hides).match(path.casefold()):
            return True
        kept, around = _index_kept(self.keeps)
        return path in around or any(each in kept for each in (path, *above(path)))


EVERYTHING = Namespace()
"""All that is in a vault."""


@lru_cache(maxsize=64)
def _index_kept(keeps: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(keeps), frozenset(folder for kept in keeps for folder in above(kept))


@lru_cache(maxsize=256)
def _match_below(folders: tuple[str, ...]) -> re.Pattern[str]:
    fitting = (re.escape(folder.casefold()).replace(r"\*", "[^/]+") for folder in folders)
    return regex(rf"(?:{'|'.join(fitting)})(?:/|\Z)")


class MemoryLayout(NamedTuple):
    """Where the memories of a namespace stand on disk, where some of them are mounted.

    Attributes:
        folder: of the namespace, seen from the workspace.
        mounted: the files of mounted memories, seen from the workspace, by the paths of these.
        root: the workspace; empty where nothing of it is to be looked at.
        tools: the tools that the config says folders are written for, seen from the workspace.
        kept: what `mdmem.index.links.dialect` has found in its folders.
    """

    folder: str = ""
    mounted: Mapping[str, str] = MappingProxyType({})
    root: str = ""
    tools: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    kept: dict[str, Any] = {}  # noqa: RUF012 - nothing is kept of an empty root

    def file_of(self, path: str) -> str:
        """Return the file of the memory at `path`, seen from the workspace."""
        return self.mounted.get(path) or join(self.folder, path)

    def path_of(self, file: str) -> str | None:
        """Return the path in the namespace of the memory at `file`; None outside of it."""
        for path, mounted in self.mounted.items():
            if mounted == file:
                return path
        path = relative(file, self.folder) if is_under(file, self.folder) else ""
        return path if path and path not in self.mounted else None


class Layer(NamedTuple):
    """A namespace that a scope reads: its own one, or a shared one, whose paths have its name and a colon."""

    name: str = ""
    namespace: Namespace = Namespace()

    def shown(self, path: str) -> str:
        """Return a path of the whole vault as the scope names it."""
        inside = relative(path, self.namespace.folder)
        return f"{self.name}:{inside}" if self.name else inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory, about what.

    Attributes:
        user: private to this user, unless `shared`.
        project: about this project.
        resource_type, resource_id: about this resource; both or neither.
        shared: for every user, whoever the user is.

    Raises:
        Usage: only one of `resource_type` and `resource_id`.
    """

    user: str | None = None
    project: str | None = None
    resource_type: str | None = None
    resource_id: str | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("user", "project", "resource_type", "resource_id"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise TypeError(f"Scope() {name} must be str or None, not {type(value).__name__}")
        if not isinstance(self.shared, bool):
            raise TypeError(f"Scope() shared must be bool, not {type(self.shared).__name__}")
        if (self.resource_type is None) != (self.resource_id is None):
            raise Usage(problem="a resource has a type and an id", remedy="give both, or neither")

    @property
    def namespace(self) -> str:
        """The folder of this scope, relative to the vault; empty for the vault itself."""
        parts: list[str] = []
        if self.user is not None and not self.shared:
            parts += [USERS, encode_id(self.user)]
        if self.project is not None:
            parts += ["projects", encode_id(self.project)]
        if self.resource_type is not None and self.resource_id is not None:
            parts += ["resources", encode_id(self.resource_type), encode_id(self.resource_id)]
        return "/".join(parts)

    @property
    def layers(self) -> tuple[str, ...]:
        """The namespaces that speak to this scope, from everyone's to its own, without repeats."""
        project = Scope(project=self.project, shared=True)
        user = Scope(user=self.user, shared=self.shared)
        return tuple(dict.fromkeys(("", project.namespace, user.namespace, self.namespace)))

    @property
    def is_owner(self) -> bool:
        """Whether nothing is bound: the owner of the files, who sees everything."""
        return self == Scope()

    @property
    def wall(self) -> Namespace:
        """What belongs to this scope."""
        folder = self.namespace
        return Namespace(folder, () if folder or self.is_owner else (USERS,))

    @property
    def reads(self) -> tuple[Layer, ...]:
        """What can be shown: its own namespace, then those of its user, of the project, and of everyone."""
        if self.is_owner:
            return (Layer("", self.wall),)
        layers = [Layer("", self.wall), Layer("shared", Scope(shared=True).wall)]
        if self.project is not None:
            layers.insert(1, Layer("project", Scope(project=self.project, shared=True).wall))
        if self.user is not None and not self.shared:
            folder = Scope(user=self.user).namespace
            layers.insert(1, Layer("user", Namespace(folder, (f"{folder}/projects", f"{folder}/resources"))))
        folders = [layer.namespace.folder for layer in layers]
        return tuple(layer for n, layer in enumerate(layers) if layer.namespace.folder not in folders[:n])

    @property
    def searches(self) -> tuple[Layer, ...]:
        """What search looks through: all of `reads` with a user and a project, else its own namespace."""
        return self.reads if self.user is not None and self.project is not None else self.reads[:1]
