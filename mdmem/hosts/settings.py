"""The settings files of hosts: put our entries in, and take them out again.

Plain JSON is edited by the editor of memories, TOML by tomlkit. JSON with comments is left as it is, and what
to change by hand is said. Each change is logged with the bytes that it replaced, so that taking it out
restores them where nobody has touched the file since. Otherwise the entries alone are taken out.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tomllib
from collections.abc import Sequence
from itertools import takewhile
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from mdmem.document.document import Document, Limits, parse_text
from mdmem.document.edit import splice, spliced
from mdmem.document.field import set_field, unset_field
from mdmem.document.frontmatter import BOM
from mdmem.document.text.lines import Lines, with_newline
from mdmem.document.text.regex import regex
from mdmem.document.tree import Key, KeyPath
from mdmem.errors import Conflict, DocumentRefused, EditRefused, ExtraMissing, MemoryNotFound, StorageFailed
from mdmem.vault import config, outside
from mdmem.vault.files import Place
from mdmem.vault.mark import state_folder
from mdmem.vault.paths import above
from mdmem.vault.store import hashed
from mdmem.vault.trash import TrashFolder

NAME = "mdmem"
"""The name of our entry among the MCP servers of a host."""
SERVERS = ("mcpServers", "mcp_servers", "servers", "context_servers", "mcp")
HOOKS = "hooks"
VERSION = ("version",)
"""Where some files of hooks say their version, which is not ours to take out."""
_OUR_HOOK = regex(r"\bmdmem\b.* hook [a-z-]+(?: --host [a-z-]+)?$", re.DOTALL)
_JSON_LIMITS = Limits(max_bytes=64 * 1024 * 1024, max_depth=64)
_MOST_TOML = 256 * 1024  # code points; what tomlkit needs grows with their square


class Addition(NamedTuple):
    """A value to put into settings under some keys; `is_item`: as one more item of the list there."""

    keys: tuple[str, ...]
    value: Any
    is_item: bool = False


class ByHand(Exception):
    """A text that only people can edit, in words: JSON with comments, or TOML without the program for it."""


class SettingsChange(NamedTuple):
    """A change of one settings file.

    Attributes:
        project: the folder of the project that it belongs to; None for a file of the user.
        before, after: its text; None where there is no file. Both are equal where nothing is to be done.
        by_hand: why it is left as it is, and what people have to change in it; else empty.
    """

    path: str
    project: str | None
    before: str | None
    after: str | None
    by_hand: str = ""


def install(path: str, additions: Sequence[Addition], project: str | None = None) -> SettingsChange:
    """Compute the change that puts additions into a settings file, and takes older ones of ours out.

    Args:
        project: the folder of the project that it belongs to, in which no link is followed: it may be a
            stranger's. Without one it is the user's own, who may have made it a link.

    Raises:
        EditRefused: the file cannot be edited, or holds somebody else's entry of our name.
        PathRefused: it is reached by a link.
    """
    before = _read_text(path, project)
    change = SettingsChange(path, project, before, before)
    try:
        values = _read_values(path, before or "")
    except ByHand as error:
        text = json.dumps(_with_additions({}, additions), ensure_ascii=False, indent=2)
        if path.endswith(".toml"):
            text = "".join(map(_format_toml, additions))
        return change._replace(by_hand=f"{error}; add this by hand, unless it is there:\n{text}")
    for addition in additions:
        _refuse_another(path, values, addition)
    ours = _find_ours(values)
    if len(ours) == sum(each.keys != VERSION for each in additions) and all(
        _is_present(values, addition) for addition in additions
    ):
        return change
    clean = _take_out(path, before) if before and ours else before
    return change._replace(after=_add_values(path, clean or "", additions))


def uninstall(path: str, project: str | None = None) -> SettingsChange:
    """Compute the change that takes our entries out of a settings file; as `install`."""
    before = _read_text(path, project)
    change = SettingsChange(path, project, before, before)
    if before is None or NAME not in before:
        return change
    try:
        return change._replace(after=_take_out(path, before))
    except ByHand as error:
        lines = [str(number) for number, line in enumerate(before.splitlines(), 1) if NAME in line]
        remedy = f"take mdmem out by hand, it is named in line {', '.join(lines)}"
        return change._replace(by_hand=f"{error}; {remedy}")


def write(changes: Sequence[SettingsChange]) -> None:
    """Write changes, and remove what a killed process left beside the files.

    Each file is replaced at once, and none when one cannot be.

    Raises:
        EditRefused: a file has changed since it was read.
        StorageFailed: the system refused.
    """
    done: list[SettingsChange] = []
    try:
        for change in changes:
            _write_settings(change)
            done.append(change)
    except BaseException:
        for change in reversed(done):
            with contextlib.suppress(Exception):
                _write_settings(change._replace(before=change.after, after=change.before))
        raise


def _write_settings(change: SettingsChange) -> None:
    before, after = (None if text is None else text.encode() for text in (change.before, change.after))
    place, log = _locate_settings(change.path, change.project), _open_log()
    try:
        os.makedirs(log.path, mode=0o700, exist_ok=True)
        outside.replace(place, change.path, before, after, log, "install")
    except MemoryNotFound:
        return  # not even its folder is there, and nothing is to be written
    except Conflict:
        _refuse_edit(change.path, "it has changed meanwhile", "run the command again")
    except OSError as error:
        reason, action = error.strerror or str(error), "keep what is overwritten"
        raise StorageFailed(path=log.path, action=action, reason=reason) from None
    top = change.project or os.path.realpath(os.path.expanduser("~"))
    emptied = above(os.path.join(place.root, *place.parts)) if before and after is None else ()
    with contextlib.suppress(OSError):  # the first folder that holds something
        for folder in takewhile(lambda folder: folder != top, emptied):
            os.rmdir(folder)


def _open_log() -> TrashFolder:
    return TrashFolder(state_folder("kept"), config.Trash())


def _locate_settings(path: str, project: str | None) -> Place:
    return outside.below(project, os.path.relpath(path, project)) if project else outside.of_user(path)


def _read_text(path: str, project: str | None) -> str | None:
    content = outside.read(_locate_settings(path, project), path)
    try:
        return None if content is None else content.data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _refuse_edit(path, f"it is not UTF-8 at byte {error.start}")


# -- our entries ------------------------------------------------------------------------------------------


def _refuse_another(path: str, values: Any, addition: Addition) -> None:
    keys, value, is_item = addition
    present = _value_at(values, keys)
    # What an earlier `install` wrote may name another vault, or another place of the program.
    command, arguments = _value_at(present, ("command",)), _as_list(_value_at(present, ("args",)))
    words = [*(command if isinstance(command, list) else [command]), *arguments]
    is_server = os.path.basename(str(words[0] if words else "")) == NAME and words[-1] == "mcp"
    is_ours = isinstance(present, list) if is_item else is_server
    if present not in (None, value) and not is_ours:
        reason = f"{'.'.join(keys)} is there already, with another value"
        _refuse_edit(path, reason, "`mdmem uninstall` takes it out")


def _is_present(values: Any, addition: Addition) -> bool:
    present = _value_at(values, addition.keys)
    return addition.value in (present or ()) if addition.is_item else present == addition.value


def find_entries(path: str, project: str | None) -> list[tuple[KeyPath, Any]]:
    """List our entries in a settings file, each with the keys that lead to it."""
    text = _read_text(path, project) or ""
    try:
        values = tomllib.loads(text) if path.endswith(".toml") else _read_values(path, text)
    except (ByHand, tomllib.TOMLDecodeError) as error:
        _refuse_edit(path, str(error))
    return [(keys, _value_at(values, keys)) for keys in reversed(_find_ours(values))]


def _find_ours(values: Any) -> list[KeyPath]:
    """Find the paths of our entries, the last one first."""
    found: list[KeyPath] = [
        (servers, NAME) for servers in SERVERS if _value_at(values, (servers, NAME)) is not None
    ]
    hooks = _value_at(values, (HOOKS,))
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for index, group in enumerate(_as_list(groups)):
            handlers = _as_list(_value_at(group, (HOOKS,))) or [group]
            commands = [_value_at(each, ("command",)) or _value_at(each, ("bash",)) for each in handlers]
            if commands and all(isinstance(each, str) and _OUR_HOOK.search(each) for each in commands):
                found.append((HOOKS, event, index))
    return found[::-1]


def _take_out(path: str, text: str) -> str | None:
    """Return a text as it was before `install`, None for no file; without our entries if it has changed."""
    log = _open_log()
    changes = [change for entry in log.entries() for change in entry.files if change.path == path]
    was_there = bool(changes) and changes[-1].before is not None
    digest = hashed(text.encode())
    for change in changes:  # newest first; one `install` may have followed another
        if change.after != digest:
            continue
        if change.before is None:
            return None
        kept = log.kept(change.before)
        if kept is None:
            break
        digest, text = change.before, kept.data.decode()
        if not _find_ours(_read_values(path, text)):
            return text
    while ours := _find_ours(values := _read_values(path, text)):
        keys = ours[0]
        # What would be empty without it goes with it.
        while len(keys) > 1 and len(_value_at(values, keys[:-1])) == 1:
            keys = keys[:-1]
        if path.endswith(".toml"):
            text = _remove_from_toml(path, text, keys)
        else:
            text = splice(text, unset_field(_read_json(path, text), keys), path)
    # A file of our entries alone, which a teammate may have committed, goes with them.
    is_left = bool(text.strip()) if path.endswith(".toml") else bool(values.keys() - {*VERSION})
    return text if is_left or was_there else None


# -- formats ----------------------------------------------------------------------------------------------


def _read_values(path: str, text: str) -> dict[str, Any]:
    if path.endswith(".toml"):
        return _read_toml(path, text)
    tree = _read_json(path, text).tree
    if tree is None or tree.kind != "mapping":
        _refuse_edit(path, "its value is not an object")
    return dict(tree.value)


def _add_values(path: str, text: str, additions: Sequence[Addition]) -> str:
    if path.endswith(".toml"):
        return _add_to_toml(path, text, additions)
    document = _read_json(path, text)
    for keys, value, is_item in additions:
        if keys == VERSION and _value_at(document.fields, keys) == value:
            continue
        items = _value_at(document.fields, keys) if is_item else None
        place: KeyPath = keys if items is None else (*keys, len(items))
        new = [value] if is_item and items is None else value
        document = spliced(document, set_field(document, place, new))
    return document.text


def _with_additions(values: dict[str, Any], additions: Sequence[Addition]) -> dict[str, Any]:
    whole = copy.deepcopy(values)
    for addition in additions:
        place = whole
        for key in addition.keys[:-1]:
            place = place.setdefault(key, {})
        if addition.is_item:
            place.setdefault(addition.keys[-1], []).append(addition.value)
        else:
            place[addition.keys[-1]] = addition.value
    return whole


def _value_at(values: Any, keys: Sequence[Key]) -> Any:
    """Return the value under some keys; None where there is none."""
    for key in keys:
        if isinstance(values, list) and isinstance(key, int):
            values = values[key]
        else:
            values = values.get(key) if isinstance(values, dict) else None
    return values


def _as_list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else []


def _refuse_edit(path: str, reason: str, remedy: str = "change the file by hand") -> NoReturn:
    raise EditRefused(path=path, reason=reason, remedy=remedy)


def _read_json(path: str, text: str) -> Document:
    try:
        document = parse_text(path, text if text.strip(f"{BOM} \t\r\n") else "{}\n", _JSON_LIMITS)
        if document.tree is None:
            flaw = document.findings[0]
            problem = f"it has comments, or a mistake (line {flaw.position.line}: {flaw.message})"
            raise ByHand(f"not changed, since it is not plain JSON: {problem}")
    except DocumentRefused as error:
        _refuse_edit(path, f"it cannot be edited: {error.message}")
    return document


def _import_tomlkit() -> ModuleType:
    try:
        import tomlkit  # noqa: PLC0415 - an extra, for Codex alone
    except ImportError:
        raise ByHand(f"not changed: {ExtraMissing(extra='codex', package='tomlkit')}") from None
    return tomlkit


def _format_toml(addition: Addition) -> str:
    """Return an addition as a table, also where tomlkit is missing: of JSON, all but the colons is TOML."""
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False, separators=(', ', ' = '))}\n"
        for key, value in addition.value.items()
    ]
    name = ".".join(addition.keys)
    text = (f"[[{name}]]\n" if addition.is_item else f"[{name}]\n") + "".join(lines)
    return text.replace("\x7f", "\\u007f") + "\n"


def _read_toml(path: str, text: str) -> dict[str, Any]:
    if len(text) > _MOST_TOML:
        _refuse_edit(path, f"it has more than {_MOST_TOML:,} characters")
    tomlkit = _import_tomlkit()
    try:
        # In this order: tomlkit bounds the depth of keys, for which tomllib needs quadratic time.
        tomlkit.parse(text.removeprefix(BOM))
        return tomllib.loads(text.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        _refuse_edit(path, f"it is not TOML: {error}")


def _add_to_toml(path: str, text: str, additions: Sequence[Addition]) -> str:
    # Tables are written behind all others: where tables of one name stand apart, tomlkit would move them.
    expected = _with_additions(_read_toml(path, text), additions)
    body = text.removeprefix(BOM)
    gap = ("" if not body or body.endswith("\n") else "\n") + ("\n" if body.strip() else "")
    tables = gap + _import_tomlkit().dumps(_with_additions({}, additions))
    after = text + with_newline(tables, Lines(text).newline)
    with contextlib.suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(after.removeprefix(BOM)) == expected:
            return after
    _refuse_edit(path, "it is written in a way that cannot be added to")


def _remove_from_toml(path: str, text: str, keys: Sequence[Key]) -> str:
    expected = _read_toml(path, text)
    body = text.removeprefix(BOM)
    try:
        del _value_at(expected, keys[:-1])[keys[-1]]
        settings = container = _import_tomlkit().parse(body)
        for key in keys[:-1]:
            container = container[key]
        is_exact = settings.as_string() == body
        del container[keys[-1]]
        after = settings.as_string()
        if is_exact and tomllib.loads(after) == expected:
            return f"{BOM}{after}" if text.startswith(BOM) else str(after)
    except (LookupError, TypeError, ValueError):
        pass  # tomlkit cannot edit each form, such as parts of one table that stand apart
    _refuse_edit(path, "tomlkit cannot take our entry out exactly", "take what belongs to mdmem out by hand")
