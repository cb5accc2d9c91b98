"""Settings files of hosts: read, changed in the text, and taken back byte for byte.

What was put in where is kept in a receipt outside those files, in the user's state folder: strict JSON has no
place for marks. A file that has changed since, or has no receipt here, is edited by what stands in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.agents.settings_formats import (
    Addition,
    Insertion,
    JsonSettings,
    TomlSettings,
    added,
    at,
    refuse,
    stepped,
)
from mdmem.errors import Conflict, EditRefused, MemoryNotFound, StorageFailed
from mdmem.text.regex import regex
from mdmem.vault import config, outside
from mdmem.vault.mark import state_folder
from mdmem.vault.trash import TrashFolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.vault.files import Place

NAME = "mdmem"
"""What our entry is called among the MCP servers of a host."""
SERVERS = ("mcpServers", "mcp_servers", "servers", "context_servers")
HOOKS = "hooks"
_KEPT = "kept"  # the folder of what was overwritten, among the user's state
_OUR_HOOK = regex(r"\bmdmem\b.* hook [a-z-]+$", re.DOTALL)


class Receipt(NamedTuple):
    """What was put into a file: the steps, whether the file was made, and the folders made for it."""

    steps: tuple[Insertion, ...] = ()
    made: bool = False
    folders: tuple[str, ...] = ()


class SettingsChange(NamedTuple):
    """A change of one settings file.

    Attributes:
        path: the file, as the host names it.
        place: where the file that is written is: another one where `path` is a link of the user's.
        before, after: its text; None where there is no file.
        receipt: what takes it back later; None when it is taken back now.
        folders: folders to make before, or, when it is taken back, to remove where they are empty.
    """

    path: str
    place: Place
    before: str | None
    after: str | None
    receipt: Receipt | None
    folders: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The absolute path of the file that is written."""
        return os.path.join(self.place.root, *self.place.parts)


def install(
    path: str, additions: Sequence[Addition], receipt: Receipt | None, project: str | None = None
) -> SettingsChange | None:
    """The change that puts additions into a settings file; None when they stand there already.

    Args:
        path: the file.
        additions: what it is to hold.
        receipt: what was put into it before.
        project: the folder of the project that it belongs to, in which no link is followed: it may be a
            stranger's. Without one it is the user's own, who may have made it a link.

    Raises:
        EditRefused: the file cannot be read as what it should be, or holds another entry of our name.
        PathRefused: it is reached by a link.
    """
    place = _place(path, project)
    before = _read(path, place)
    clean = _taken_back(path, before, receipt.steps) if receipt and before is not None else before
    old = _parsed(path, clean or "")
    missing = [each for each in additions if not _stands(path, old.value, each)]
    made = (receipt.made if receipt and before is not None else before is None) and not clean
    steps = tuple(old.added(missing))
    after = stepped(clean or "", steps)
    if not _holds(path, after, added(old.value, missing)):
        refuse(path, "it is written in a way that cannot be added to")
    if after == before:
        return None
    folders = tuple(missing_folders(os.path.join(place.root, *place.parts)))
    kept = receipt.folders if receipt else ()
    return SettingsChange(path, place, before, after, Receipt(steps, made, folders or kept), folders)


def uninstall(path: str, receipt: Receipt | None, project: str | None = None) -> SettingsChange | None:
    """The change that takes our entries out of a settings file; None when there are none. See `install`."""
    place = _place(path, project)
    before = _read(path, place)
    if before is None or not _ours(_parsed(path, before).value):
        return None
    known = receipt or Receipt()
    clean = _taken_back(path, before, known.steps)
    gone = known.made and not _parsed(path, clean).value and not _remarks(clean)
    return SettingsChange(path, place, before, None if gone else clean, None, known.folders)


def write(changes: Sequence[SettingsChange]) -> None:
    """Write changes: each file at once, and none when one cannot be written.

    Raises:
        EditRefused: a file has changed since it was read.
        StorageFailed: the system refused.
    """
    done: list[SettingsChange] = []
    try:
        for change in changes:
            _write(change)
            done.append(change)
    except BaseException:
        for change in reversed(done):
            with contextlib.suppress(Exception):
                _write(change._replace(before=change.after, after=change.before))
        raise


def clear(path: str, project: str | None) -> None:
    """Clear away what a killed process left beside a settings file that needs no change."""
    place = _place(path, project)
    with contextlib.suppress(MemoryNotFound):  # not even its folder is there
        content = outside.read(place, path)
        data = content.data if content else None
        outside.replace(place, path, data, data, _kept())


def missing_folders(target: str) -> Iterator[str]:
    """The folders that have to be made for a file, the outermost first."""
    folder = os.path.dirname(target)
    if not os.path.lexists(folder):
        yield from missing_folders(folder)
        yield folder


def _write(change: SettingsChange) -> None:
    before, after = (None if text is None else text.encode() for text in (change.before, change.after))
    try:
        outside.replace(change.place, change.path, before, after, _kept(), "install")
    except Conflict:
        refuse(change.path, "it has changed meanwhile", "run the command again")
    except OSError as error:
        reason, folder = error.strerror or str(error), state_folder(_KEPT)
        raise StorageFailed(path=folder, action="keep what is overwritten", reason=reason) from None
    for made in reversed(change.folders) if after is None else ():
        with contextlib.suppress(OSError):
            os.rmdir(made)


def _kept() -> TrashFolder:
    folder = state_folder(_KEPT)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return TrashFolder(folder, config.Trash())


def _place(path: str, project: str | None) -> Place:
    return outside.below(project, os.path.relpath(path, project)) if project else outside.of_user(path)


# -- what stands in a file --------------------------------------------------------------------------------


def _read(path: str, place: Place) -> str | None:
    content = outside.read(place, path)
    try:
        return None if content is None else content.data.decode("utf-8")
    except UnicodeDecodeError as error:
        return refuse(path, f"it is not UTF-8 at byte {error.start}")


def _parsed(path: str, text: str) -> JsonSettings | TomlSettings:
    return TomlSettings(path, text) if path.endswith(".toml") else JsonSettings(path, text)


def _stands(path: str, settings: Any, addition: Addition) -> bool:
    there = at(settings, addition.keys)
    if addition.each:
        return isinstance(there, list) and addition.value in there
    if there is not None and there != addition.value:
        name = ".".join(addition.keys)
        refuse(path, f"{name} is there already, with another value", "`mdmem uninstall` takes it out")
    return there is not None


def _holds(path: str, text: str, wanted: Any) -> bool:
    with contextlib.suppress(EditRefused):
        return bool(_parsed(path, text).value == wanted)
    return False


def _remarks(text: str) -> bool:
    """Whether anything but braces and blanks stands in the text of empty settings."""
    return bool(text.translate(str.maketrans("", "", "{} \t\r\n")))


# -- taking back ------------------------------------------------------------------------------------------


def _ours(settings: Any) -> list[tuple[tuple[str, ...], int | None]]:
    """Where our entries stand: the keys of a member, or of a list with an index; the last first."""
    found: list[tuple[tuple[str, ...], int | None]] = [
        ((servers, NAME), None) for servers in SERVERS if at(settings, (servers, NAME)) is not None
    ]
    hooks = at(settings, (HOOKS,))
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for index, group in enumerate(groups if isinstance(groups, list) else ()):
            commands = [at(each, ("command",)) for each in at(group, (HOOKS,)) or ()]
            if commands and all(isinstance(each, str) and _OUR_HOOK.search(each) for each in commands):
                found.append(((HOOKS, event), index))
    return found[::-1]


def _taken_back(path: str, text: str, steps: Sequence[Insertion]) -> str:
    """The text without what was put in: by the steps where they still fit, else by what stands in it."""
    wanted = _without_ours(_parsed(path, text).value)
    for attempt in (_unstepped(text, steps), _untold(text, steps)):
        with contextlib.suppress(EditRefused):
            if attempt is not None and _pruned(_parsed(path, attempt).value) == wanted:
                return attempt
    clean = _cut_out(path, text)
    if _pruned(_parsed(path, clean).value) != wanted:
        refuse(path, "our entries cannot be told from the rest", "take `mdmem` out of it by hand")
    return clean


def _unstepped(text: str, steps: Sequence[Insertion]) -> str | None:
    """The text before the steps, where nothing in front of them has changed."""
    for start, new in reversed(steps):
        if not text.startswith(new, start):
            return None
        text = text[:start] + text[start + len(new) :]
    return text if steps else None


def _untold(text: str, steps: Sequence[Insertion]) -> str | None:
    """The text without what the steps put in, wherever each stands once."""
    for _, new in reversed(steps):
        if text.count(new) != 1:
            return None
        text = text.replace(new, "")
    return text if steps else None


def _cut_out(path: str, text: str) -> str:
    settings = _parsed(path, text)
    if isinstance(settings, TomlSettings):
        return settings.without(lambda value: bool(_ours(value)))
    while ours := _ours(settings.value):
        text = settings.without(*ours[0])
        settings = JsonSettings(path, text)
    return text


def _without_ours(settings: Any) -> Any:
    whole = json.loads(json.dumps(settings, default=str)) if _ours(settings) else settings
    for keys, index in _ours(settings):
        place = at(whole, keys[:-1])
        if index is None:
            del place[keys[-1]]
        else:
            del place[keys[-1]][index]
    return _pruned(whole)


def _pruned(settings: Any) -> Any:
    """Settings without what is empty among servers and hooks: that may come and go with our entries."""
    whole = json.loads(json.dumps(settings, default=str))
    hooks = at(whole, (HOOKS,))
    for event in [event for event, groups in hooks.items() if not groups] if isinstance(hooks, dict) else ():
        del hooks[event]
    for key in (*SERVERS, HOOKS):
        if key in whole and not whole[key]:
            del whole[key]
    return whole
