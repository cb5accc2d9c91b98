"""Find the folder of a vault, make it, and resolve the files of the workspace that are mounted in it."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from stat import S_ISREG
from typing import NamedTuple

from mdmem.document.document import MARKDOWN_SUFFIXES, parse_any
from mdmem.errors import AlreadyExists, ConfigInvalid, MdmemError, PathRefused, StorageFailed, VaultNotFound
from mdmem.kind import FIELD_MEANINGS, KINDS, MEANINGS, NAMESPACES, PROJECT_FILE
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH, DEFAULT_TEXT, MOST_BYTES, MOST_MOUNTS, Config
from mdmem.vault.paths import above, absolute, check_memory, find_project_file, is_hidden, is_under, path_text
from mdmem.vault.walk import count_hidden, count_passed_over, list_others, walk

_MOST_ENTRIES = 1_000  # of a folder, in which a vault is looked for
_MOST_NEAR = 5  # vaults that an error names

IGNORE_FILE = ".gitignore"
"""The file of a vault that says what git leaves out of it."""

PAST_MARK = ".mdmem/past.json"
"""The file that marks a folder as a copy of a past state of a vault; such a copy is never changed."""


URL_SCHEMES = ("postgresql://", "postgres://")
"""How the name of a vault in a database begins."""


def name_url(vault: str | os.PathLike[str] | None = None) -> str:
    """Return the URL of a vault, from the argument or MDMEM_VAULT; empty if that is no URL."""
    named = vault if vault is not None else os.environ.get("MDMEM_VAULT", "")
    return named if isinstance(named, str) and named.startswith(URL_SCHEMES) else ""


def find(vault: str | os.PathLike[str] | None = None) -> str:
    """Find a vault, and return the absolute path of its folder; see `mdmem.open`."""
    named = vault if vault is not None else os.environ.get("MDMEM_VAULT")
    start = absolute(named or os.curdir)
    found = _find_in((start,)) if named else find_around(start)
    if found is None:
        near = (os.path.join(named, name) if named else name for name in _list_vaults(start))
        where = "at" if named else "at or above"
        around = next(filter(is_vault, above(start)), "")
        raise VaultNotFound(start=start, where=where, near=tuple(near), around=around)
    return found


def find_around(folder: str) -> str | None:
    """Return the nearest vault: a folder, one above it, or `memories` in one of these; None without one."""
    return _find_in((folder, *above(folder)))


def _find_in(folders: Iterable[str]) -> str | None:
    return next(filter(is_vault, _list_places(folders)), None)


def _list_places(folders: Iterable[str]) -> Iterator[str]:
    """Yield the folders that may be a vault: each of some folders, and `memories` in it."""
    return (place for folder in folders for place in (folder, os.path.join(folder, "memories")))


def _list_vaults(folder: str) -> list[str]:
    """List the first few vaults directly below a folder; look at only some entries of a very large one."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST_ENTRIES))
    except OSError:
        return []
    shown = (name for name in names if name.isprintable() and is_vault(os.path.join(folder, name)))
    return list(islice(shown, _MOST_NEAR))


def workspace_of(root: str) -> str:
    """Return the workspace of a vault: the root of the repository that holds it, which may be its own folder.

    Without a repository it is the folder above the vault.
    """
    parent = os.path.dirname(root)
    return find_git_root(parent) or find_git_root(root) or parent


def find_git_root(folder: str) -> str | None:
    """Return the root of the git repository around a folder, by its `.git`; None without one."""
    roots = (each for each in (folder, *above(folder)) if os.path.exists(os.path.join(each, ".git")))
    return next(roots, None)


def resolve(config: Config, root: str, workspace: str) -> dict[str, tuple[str, ...]]:
    """Return the file of each mount, as the parts of its path below the workspace, with links resolved.

    `root` and `workspace` are paths without links.

    Raises:
        ConfigInvalid: a mount leaves the workspace (perhaps through a link), lies in the vault or in git's
            folder, is hidden, does not have the name of a memory, or means the same file as another mount; or
            there are more than a hundred mounts.
    """
    mounts, suffixes = config.mounts, config.suffixes
    if len(mounts) > MOST_MOUNTS:
        reason = f"[mounts] has {len(mounts):,} files, not at most {MOST_MOUNTS}"
        raise ConfigInvalid(path=CONFIG_PATH, reason=reason)
    resolved: dict[str, tuple[str, ...]] = {}
    for path, target in mounts.items():
        try:
            name = check_memory(path, suffixes)
        except PathRefused as error:
            raise ConfigInvalid(path=CONFIG_PATH, reason=f"[mounts] {error}") from None
        # No file name holds a NUL: the part before it says where the target lies.
        folder, file = os.path.split(os.path.join(root, target.partition("\0")[0]))
        if file == PROJECT_FILE:
            with contextlib.suppress(OSError):
                file = find_project_file(os.listdir(folder))
        file = os.path.realpath(os.path.join(folder, file))
        parts = tuple(os.path.relpath(file, workspace).split(os.sep))
        reason = "leaves the workspace" if "\0" in target else _fault_of_mount(parts, file, root, suffixes)
        if not reason and (parts in resolved.values() or name in resolved):
            reason = "is mounted twice"
        if reason:
            problem = f"[mounts] {name} = {target!r} {reason}"
            raise ConfigInvalid(path=CONFIG_PATH, reason=problem, remedy=f"name a file below {workspace}")
        resolved[name] = parts
    return resolved


def _fault_of_mount(parts: tuple[str, ...], file: str, root: str, suffixes: tuple[str, ...]) -> str:
    """Return why the file at `parts` below the workspace cannot be mounted; empty when it can."""
    if parts[0] in {os.pardir, os.curdir}:
        return "leaves the workspace"
    if file == root or file.startswith(root + os.sep):
        return "lies in the vault itself"
    if ".git" in parts:
        return "lies in git's own folder"
    if any(map(is_hidden, parts)):
        # Programs obey hidden files: .bashrc, .ssh/authorized_keys, .vscode/settings.json.
        return "is hidden, or lies in a hidden folder"
    return "" if parts[-1].endswith(suffixes) else f"does not end in {' or '.join(suffixes)}"


def hides(target: str, file: str) -> bool:
    """Return whether a mount of `target` would cover `file`: another file that has the path of the mount."""
    is_there = os.path.exists(file) and os.path.exists(target)
    return os.path.lexists(file) and not (is_there and os.path.samefile(file, target))


SESSIONS_IGNORED = ("**/sessions/*.jsonl", "**/sessions/.archive/")
"""The files of sessions that git ignores: they are private and grow all the time."""
# Only directly below a namespace: a folder of that name among the notes is somebody's own.
_NAMESPACES = [
    f"/{user}{project}{resource}"
    for user in ("", "users/*/")
    for project in ("", "projects/*/")
    for resource in ("", "resources/*/*/")
]
_IGNORED = [f"{place}{k.folder}/" for k in KINDS if k.is_ignored for place in _NAMESPACES]
_LINES = (*_IGNORED, *SESSIONS_IGNORED)
_GITIGNORE = "".join(f"{line}\n" for line in _LINES)


def find_missing_ignores(root: str) -> tuple[str, ...]:
    """Return our lines that the `.gitignore` of a vault lacks: all of them if that is no regular file.

    A wider line, such as `working/` in an older vault, counts as ours.
    """
    try:
        with files.opened(root) as folder:
            data = files.read(folder, IGNORE_FILE).data
    except OSError:
        return _LINES
    there = {line.rstrip().decode(errors="replace") for line in data.splitlines()}
    return tuple(line for line in _LINES if there.isdisjoint((line, f"{line.rsplit('/', 2)[1]}/")))


def takes_ignores(root: str) -> bool:
    """Return whether lines can be added to the `.gitignore` of a vault; git follows no link there."""
    status = files.status_of(os.path.join(root, IGNORE_FILE))
    return status is None or S_ISREG(status.st_mode)


def add_ignores(root: str, lines: Iterable[str]) -> None:
    """Add lines to the `.gitignore` of a vault, at its end and with its line ends."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    try:
        with (
            files.opened(root) as folder,
            open(files.open_regular(IGNORE_FILE, flags, folder), "a+b") as file,
        ):
            file.seek(0)
            data = file.read()
            end = b"\r\n" if b"\r\n" in data else b"\n"
            file.write(end if data and not data.endswith(b"\n") else b"")
            file.writelines(line.encode() + end for line in lines)
            file.flush()
            os.fsync(file.fileno())
            os.fsync(folder)
    except OSError as error:
        raise files.failure(error, os.path.join(root, IGNORE_FILE), "add lines") from None


class Made(NamedTuple):
    """A vault that was made (or would be).

    Attributes:
        root: the absolute path of its folder.
        files: its new files with their text.
        ignored: the lines that are added to the `.gitignore` that was there.
        unignored: those that it lacks and that cannot be added, as it is a link or a folder.
        passed_over: how many of the text files there are not read as memories, by suffix (see
            `mdmem.vault.walk.count_passed_over`), and how many Markdown files hidden folders hold, by folder.
        meanings: the folders with files whose names say a kind, and what mdmem does with it: see `MEANINGS`.
        fields: the fields of Markdown files there that say what counts (see `FIELD_MEANINGS`), each with how
            many files have it.
        misnamed: the folders with files whose names differ only in case from one that mdmem writes to, and
            that name: nothing can be written there until they are renamed.
        unmounted: the path of the repository's `AGENTS.md` from the folder, if it is not mounted because the
            folder has its own; else empty.
        is_found: whether this vault is found from the current folder when no vault is named.
        above: another vault of the same repository, which commands in the folder above use; else empty.
        repository: the root of the repository; empty without one, or if it is the folder above the vault.
    """

    root: str
    files: dict[str, str]
    ignored: tuple[str, ...]
    unignored: tuple[str, ...]
    passed_over: dict[str, int]
    meanings: dict[str, str]
    fields: dict[str, int]
    misnamed: dict[str, str]
    unmounted: str
    is_found: bool
    above: str
    repository: str


def init(folder: str | os.PathLike[str] = "memories", *, dry_run: bool = False) -> Made:
    """Make a vault. Inside a git repository, the repository's `AGENTS.md` is mounted as project memory.

    A folder that has its own `AGENTS.md` gets no mount, since the mount would hide that file. Files that are
    there stay as they are, but a `.gitignore` gets the lines that it lacks. If the folder holds Markdown, the
    config takes all files for those of other tools (`[check] guests`): what breaks a rule there is a note.

    Raises:
        PathRefused: the folder is a file, is inside a vault, or has a vault in its `memories`.
        Usage: the current folder is gone.
    """
    named = path_text(folder)
    if not named or "\0" in named:
        raise PathRefused(path=named, reason="this cannot be a folder", remedy="name one, such as memories")
    root = os.path.realpath(absolute(named))
    if is_vault(root):
        raise AlreadyExists(
            path=os.path.join(root, CONFIG_PATH), remedy="this folder is a vault already: use it"
        )
    if os.path.lexists(root) and not os.path.isdir(root):
        raise PathRefused(path=root, reason="a file stands there", remedy="name a folder")
    refuse_nested(root)
    workspace = workspace_of(root)
    config, unmounted = DEFAULT_TEXT, ""
    if os.path.isdir(root) and next(walk(root, suffixes=MARKDOWN_SUFFIXES), None):
        config = config.replace("# guests = []", 'guests = ["**"]')
    if root != workspace and os.path.exists(os.path.join(workspace, ".git")):
        file, target = (os.path.join(folder, PROJECT_FILE) for folder in (root, workspace))
        mounted = os.path.relpath(target, root)
        is_own = os.path.lexists(file) and not os.path.islink(file)
        unmounted = mounted if is_own and os.path.exists(target) and hides(target, file) else ""
        mount = f'"{PROJECT_FILE}" = {json.dumps(mounted)}\n'
        config += f"# {mount}" if is_own else mount
    filled = {name for name in MEANINGS if os.path.isdir(root) and next(walk(root, (name,), ("",)), None)}
    meanings = {name: meaning for name, meaning in MEANINGS.items() if name in filled}
    made = {CONFIG_PATH: config}
    ignored: tuple[str, ...] = ()
    unignored: tuple[str, ...] = ()
    if not os.path.lexists(os.path.join(root, IGNORE_FILE)):
        made = {IGNORE_FILE: _GITIGNORE, **made}
    elif takes_ignores(root):
        ignored = find_missing_ignores(root)
    else:
        unignored = _LINES
    is_found = _is_found(root)
    around, repository = os.path.dirname(root), find_git_root(os.path.dirname(root)) or ""
    vault_above = _find_between(around, repository, root)
    if not dry_run:
        if ignored:
            add_ignores(root, ignored)
        _write_files(root, made)
    return Made(
        root=root,
        files=made,
        ignored=ignored,
        unignored=unignored,
        passed_over=count_passed_over(list_others(root)) | count_hidden(root),
        meanings=meanings,
        fields=_count_fields(root) if os.path.isdir(root) else {},
        misnamed=_find_misnamed(root),
        unmounted=unmounted,
        is_found=is_found,
        above=vault_above,
        repository="" if repository == around else repository,
    )


def _count_fields(root: str) -> dict[str, int]:
    """Count the Markdown files with each field that says what counts."""
    counts = Counter[str]()
    for found in walk(root, suffixes=MARKDOWN_SUFFIXES):
        *parts, name = found.path.split("/")
        with contextlib.suppress(OSError, MdmemError), files.opened(root, parts) as folder:
            data = files.read(folder, name, MOST_BYTES).data
            if any(field.encode() in data for field in FIELD_MEANINGS):
                fields = parse_any(found.path, data).fields
                counts.update(field for field in FIELD_MEANINGS if fields.get(field))
    return {field: counts[field] for field in FIELD_MEANINGS if counts[field]}


def _find_misnamed(root: str) -> dict[str, str]:
    """Return the folders that differ only in case from one that mdmem writes to, each with its name."""
    own = {*NAMESPACES, *(kind.folder for kind in KINDS if kind.folder)}
    alike = {name: name.casefold() for name in sorted(os.listdir(root))} if os.path.isdir(root) else {}
    return {
        name: meant
        for name, meant in alike.items()
        if meant in own and name != meant and next(walk(root, (name,), ("",)), None)
    }


def _find_between(folder: str, repository: str, new: str) -> str:
    """Find a vault other than `new`, from a folder up to the root of its repository; empty without one."""
    within = (each for each in (folder, *above(folder)) if not repository or is_under(each, repository))
    return next((place for place in _list_places(within) if place != new and is_vault(place)), "")


def _is_found(root: str) -> bool:
    """Tell whether `find` leads to a vault at `root`, which may not be there yet."""
    named = os.environ.get("MDMEM_VAULT")
    here = absolute(named or os.curdir)
    places = map(os.path.realpath, _list_places((here,) if named else (here, *above(here))))
    return next((place for place in places if place == root or is_vault(place)), None) == root


def refuse_nested(root: str) -> None:
    """Refuse a vault inside another vault: each memory of the inner one would be in both."""
    around = next(filter(is_vault, above(root)), None)
    if around:
        remedy = "use that vault, which is found from here, or make this one outside of it"
        raise PathRefused(path=root, reason=f"it is inside the vault {around}", remedy=remedy)
    inner = os.path.join(root, "memories")
    if is_vault(inner):
        is_empty = next(walk(inner), None) is None
        way_out = f"delete {inner}, which holds no memory" if is_empty else "move it elsewhere"
        remedy = f"use that vault, which is found from {root}, or {way_out}"
        raise PathRefused(path=root, reason=f"the vault {inner} is in it", remedy=remedy)


def is_vault(folder: str) -> bool:
    """Return whether a folder is a vault."""
    return os.path.exists(os.path.join(folder, CONFIG_PATH))


def _write_files(root: str, texts: dict[str, str]) -> None:
    try:
        os.makedirs(root, files.NEW_FOLDER, exist_ok=True)
        for path, text in texts.items():
            *folders, name = path.split("/")
            with files.opened(root, folders, create=True) as folder:
                files.write_new(folder, name, text.encode())
                os.fsync(folder)
    except OSError as error:
        raise StorageFailed(path=root, action="make a vault", reason=error.strerror or str(error)) from None
