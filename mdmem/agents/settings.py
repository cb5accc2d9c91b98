"""The settings files of hosts: put our entries in, and take them out again.

Plain JSON is edited by the editor of memories, TOML by tomlkit. JSON with comments is left as it is, and what
to change by hand is said.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from mdmem.document.document import Document, Limits, parse_text
from mdmem.document.edit import splice, spliced
from mdmem.document.field import set_field, unset_field
from mdmem.document.frontmatter import BOM
from mdmem.document.tree import Key, KeyPath
from mdmem.errors import DocumentRefused, EditRefused, ExtraMissing
from mdmem.text.regex import regex
from mdmem.vault import config, files, outside
from mdmem.vault.files import Place
from mdmem.vault.mark import state_folder
from mdmem.vault.trash import TrashFolder

NAME = "mdmem"
"""The name of our entry among the MCP servers of a host."""
SERVERS = ("mcpServers", "mcp_servers", "servers", "context_servers")
HOOKS = "hooks"
_OUR_HOOK = regex(r"\bmdmem\b.* hook [a-z-]+$", re.DOTALL)
_JSON_LIMITS = Limits(max_bytes=64 * 1024 * 1024, max_depth=64)
_MOST_TOML = 256 * 1024  # code points; what tomlkit needs grows with their square


class Addition(NamedTuple):
    """A value to put into settings under some keys; `is_item`: as one more item of the list there."""

    keys: tuple[str, ...]
    value: Any
    is_item: bool = False


class NotPlainJson(Exception):
    """A text that is not JSON, often because it has comments; in words, with the line."""


class SettingsChange(NamedTuple):
    """A change of one settings file.

    Attributes:
        path: the file, as the host names it.
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
    """Compute the change that puts additions into a settings file, instead of what stands there of ours.

    Args:
        path: the file.
        additions: what it is to hold.
        project: the folder of the project that it belongs to, in which no link is followed: it may be a
            stranger's. Without one it is the user's own, who may have made it a link.

    Raises:
        EditRefused: the file cannot be edited, or holds somebody else's entry of our name.
        PathRefused: it is reached by a link.
    """
    before = _read_text(path, project)
    change = SettingsChange(path, project, before, before)
    text = before or ""
    try:
        values = _read_values(path, text)
    except NotPlainJson as error:
        alone: dict[str, Any] = {}
        _put_additions(alone, additions)
        shown = json.dumps(alone, ensure_ascii=False, indent=2)
        return change._replace(by_hand=f"{error}; add this by hand, unless it is there:\n{shown}")
    for addition in additions:
        _refuse_another(path, values, addition)
    ours = _find_ours(values)
    if len(ours) == len(additions) and all(_is_present(values, addition) for addition in additions):
        return change
    return change._replace(after=_add_values(path, _remove_ours(path, text), additions))


def uninstall(path: str, project: str | None = None) -> SettingsChange:
    """Compute the change that takes our entries out of a settings file; as `install`.

    A file in which nothing else stands goes with them.
    """
    before = _read_text(path, project)
    change = SettingsChange(path, project, before, before)
    if before is None or NAME not in before:
        return change
    try:
        after = _remove_ours(path, before)
    except NotPlainJson as error:
        lines = [str(number) for number, line in enumerate(before.splitlines(), 1) if NAME in line]
        remedy = f"take mdmem out by hand, it is named in line {', '.join(lines)}"
        return change._replace(by_hand=f"{error}; {remedy}")
    return change._replace(after=after if after == before or _read_values(path, after) else None)


def write(changes: Sequence[SettingsChange]) -> None:
    """Write changes; each file is replaced at once, and what it held is kept.

    Raises:
        Conflict: a file has changed since it was read.
        FileBusy, StorageFailed: it cannot be written.
    """
    kept = TrashFolder(state_folder("kept"), config.Trash())
    with files.translated(kept.path, "keep what is overwritten"):
        os.makedirs(kept.path, mode=0o700, exist_ok=True)
    for change in changes:
        if change.before != change.after:
            before, after = (
                None if text is None else text.encode() for text in (change.before, change.after)
            )
            place = _locate_settings(change.path, change.project)
            outside.replace(place, change.path, before, after, kept, "install")


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
    program = os.path.basename(str(_value_at(present, ("command",))))
    is_server = program == NAME and _as_list(_value_at(present, ("args",)))[-1:] == ["mcp"]
    is_ours = isinstance(present, list) if is_item else is_server
    if present not in (None, value) and not is_ours:
        reason = f"{'.'.join(keys)} is there already, with another value"
        _refuse_edit(path, reason, "`mdmem uninstall` takes it out")


def _is_present(values: Any, addition: Addition) -> bool:
    present = _value_at(values, addition.keys)
    return addition.value in (present or ()) if addition.is_item else present == addition.value


def _find_ours(values: Any) -> list[KeyPath]:
    ours: list[KeyPath] = [(key, NAME) for key in SERVERS if _value_at(values, (key, NAME)) is not None]
    hooks = _value_at(values, (HOOKS,))
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for index, group in enumerate(_as_list(groups)):
            handlers = _as_list(_value_at(group, (HOOKS,)))
            commands = [_value_at(handler, ("command",)) for handler in handlers]
            if commands and all(isinstance(each, str) and _OUR_HOOK.search(each) for each in commands):
                ours.append((HOOKS, event, index))
    return ours


def _remove_ours(path: str, text: str) -> str:
    """Return a text without our entries, and without what is empty then."""
    while ours := _find_ours(values := _read_values(path, text)):
        keys = ours[0]
        while len(keys) > 1 and len(_value_at(values, keys[:-1])) == 1:
            keys = keys[:-1]
        text = _remove_value(path, text, keys)
    return text


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
        return _edit_toml(path, text, lambda values: _put_additions(values, additions))
    document = _read_json(path, text)
    for keys, value, is_item in additions:
        items = _value_at(document.fields, keys) if is_item else None
        place: KeyPath = keys if items is None else (*keys, len(items))
        new = [value] if is_item and items is None else value
        document = spliced(document, set_field(document, place, new))
    return document.text


def _remove_value(path: str, text: str, keys: KeyPath) -> str:
    if path.endswith(".toml"):
        return _edit_toml(path, text, lambda values: _delete_value(values, keys))
    return splice(text, unset_field(_read_json(path, text), keys), path)


def _put_additions(values: Any, additions: Sequence[Addition]) -> None:
    for (*folders, last), value, is_item in additions:
        place = values
        for key in folders:
            place = place.setdefault(key, {})
        if is_item and last in place:
            place[last].append(value)
        else:
            place[last] = [value] if is_item else value


def _delete_value(values: Any, keys: KeyPath) -> None:
    for key in keys[:-1]:
        values = values[key]
    del values[keys[-1]]


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
            raise NotPlainJson(f"not changed, since it is not plain JSON: {problem}")
    except DocumentRefused as error:
        _refuse_edit(path, f"it cannot be edited: {error.message}")
    return document


def _read_toml(path: str, text: str) -> dict[str, Any]:
    if len(text) > _MOST_TOML:
        _refuse_edit(path, f"it has more than {_MOST_TOML:,} characters")
    try:
        import tomlkit  # noqa: PLC0415 - an extra, for Codex alone
    except ImportError:
        raise ExtraMissing(extra="codex", package="tomlkit") from None
    try:
        # In this order: tomlkit bounds the depth of keys, for which tomllib needs quadratic time.
        tomlkit.parse(text)
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse_edit(path, f"it is not TOML: {error}")


def _edit_toml(path: str, text: str, edit: Callable[[Any], None]) -> str:
    """Edit the values of a text; refused where tomlkit makes something else of it."""
    import tomlkit  # noqa: PLC0415 - as above

    expected, document = _read_toml(path, text), tomlkit.parse(text)
    try:
        edit(expected)
        edit(document)
        after = document.as_string()
        if tomllib.loads(after) == expected:
            return after
    except (LookupError, TypeError, ValueError, AttributeError):
        pass
    _refuse_edit(path, "it is written in a way that tomlkit cannot edit")
