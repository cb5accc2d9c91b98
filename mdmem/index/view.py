"""A view: the index of one namespace; no other path goes in or comes out.

Memories are listed by conditions: `type=decision`, `created>=2026-01-01`, `tags=db`, `size>1000`, `!expires`.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, chain, groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from mdmem.document.anchor import AnchorHeading
from mdmem.document.document import Document
from mdmem.document.moment import moment_of, read_date, stamp
from mdmem.document.text.regex import regex
from mdmem.errors import PatternInvalid
from mdmem.index.database import Name, key_of, names_of, stem_keys, tag_key
from mdmem.index.hit import field_text
from mdmem.vault.paths import Layer, MemoryLayout, Namespace, join, nfc

if TYPE_CHECKING:
    from mdmem.index.index import Index
    from mdmem.index.text_index import TextView
    from mdmem.vault.vault import Vault


R = TypeVar("R")
Value: TypeAlias = str | int | float | None
Values: TypeAlias = Sequence[Value]

_CONDITION = regex(r"(?P<key>[^\s=<>!~]+)\s*(?P<operator>!=|<=|>=|=|<|>|~)\s*(?P<value>.*)", re.DOTALL)
_PRESENCE = regex(r"(?P<absent>!?)\s*(?P<key>[^\s=<>!~]+)")
_DAY = regex(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2})?)?")
_DATED = regex(r"[0-9]{4}(?:-|\Z)")
_DATE_LIKE = regex(r"[0-9]{4}-[0-9]")
_TIME = regex(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:]{4,8})(?:[.,]([0-9]+))?([^.,0-9].{0,9})?")
_INTEGER = regex(r"[-+]?[0-9]{1,100}")
_NUMBER = regex(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_REMEDY = "say FIELD=VALUE, or !=, <, <=, >, >=, ~ (contains); FIELD alone: it is there, !FIELD: it is not"


class Condition(NamedTuple):
    """A condition on one field.

    `operator` is one of =, !=, <, <=, >, >=, ~, "" (it is there), "!" (it is not).
    """

    key: str
    operator: str
    value: str

    def holds(self, values: Values) -> bool:
        """Return whether the values of a field fit; of a list, one item is enough.

        `!=` is the opposite of `=`: no item is equal, and a memory without the field fits.
        """
        if self.operator in {"", "!"}:
            return bool(values) is not bool(self.operator)
        if self.operator in {"=", "!="}:
            return any(_is_equal(value, self.value) for value in values) is (self.operator == "=")
        if self.operator == "~":
            return any(self.value.casefold() in field_text(value).casefold() for value in values)
        fits = _ORDERS[self.operator]
        orders = (_compare_values(value, self.value) for value in values if value is not None)
        return any(order is not None and fits(order, 0) for order in orders)


def parse(text: str) -> Condition:
    """Parse a condition.

    Raises:
        PatternInvalid: it is none.
    """
    if comparison := _CONDITION.fullmatch(text.strip()):
        value = comparison["value"].strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if not value and comparison["operator"] in _ORDERS:
            raise PatternInvalid(pattern=text, reason="nothing is given to compare with", remedy=_REMEDY)
        return Condition(comparison["key"], comparison["operator"], value)
    if presence := _PRESENCE.fullmatch(text.strip()):
        return Condition(presence["key"], presence["absent"], "")
    raise PatternInvalid(pattern=text, reason="this is not a condition", remedy=_REMEDY)


def refuse_no_date(conditions: Sequence[Condition], memories: Sequence[Mapping[str, Values]]) -> None:
    """Refuse to compare a field that holds dates with what begins like one and is none, such as `2026-13`.

    Raises:
        PatternInvalid: a condition does.
    """
    for key, sign, value in conditions:
        if sign in {"", "!", "~"} or not _DATE_LIKE.match(value) or _is_date(value):
            continue
        if any(_is_date(field_text(each)) for fields in memories for each in fields.get(key, ())):
            reason = f"{value} is not a date"
            remedy = "a date is 2026, 2026-01 or 2026-01-31, a time 2026-01-31T12:30"
            raise PatternInvalid(pattern=f"{key}{sign}{value}", reason=reason, remedy=remedy)


def _is_date(text: str) -> bool:
    return bool(_DATE_LIKE.match(text) and (read_date(text) or read_date(f"{text}-01")))


def fits(conditions: Sequence[Condition], fields: Mapping[str, Values]) -> bool:
    """Return whether all conditions hold for a memory with these fields."""
    return all(condition.holds(fields.get(condition.key, ())) for condition in conditions)


def sort_order(text: str) -> tuple[str, bool]:
    """Return the field to sort by, and whether a `-` before it puts the largest value first."""
    return text.removeprefix("-"), text.startswith("-")


def sort_key(value: Value) -> tuple[int, float, str]:
    """Return a key that sorts numbers first, then texts, then None."""
    if value is None:
        return 2, 0, ""
    number = _parse_number(value)
    return (1, 0, _as_moment(field_text(value))) if number is None else (0, number, "")


def _is_equal(value: Value, wanted: str) -> bool:
    """Compare numbers by their value, texts without case, times as moments, and dates by their start.

    So `created=2026-03` holds for every day of that month, in UTC.
    """
    if value is None:
        return wanted in {"", "null"}
    if not isinstance(value, str) and (number := _parse_number(wanted)) is not None:
        return _parse_number(value) == number
    text, wanted = _as_moment(field_text(value)), _as_moment(wanted)
    if _DAY.fullmatch(wanted) and text.startswith((f"{wanted}-", f"{wanted}T", f"{wanted} ")):
        return True
    return text.casefold() == wanted.casefold()


def _compare_values(value: Value, wanted: str) -> int | None:
    """Return -1, 0 or 1, as the value is less, equal or greater; None where they have no order.

    Numbers are compared as numbers, times as moments, all else as text without case. Of a date, only the part
    that is wanted counts: `created<=2026-03` includes that month.
    """
    mine, other = _parse_number(value), _parse_number(wanted)
    if mine is not None and other is not None:
        return (mine > other) - (mine < other)
    text, wanted = _as_moment(field_text(value)).casefold(), _as_moment(wanted)
    if _DAY.fullmatch(wanted):
        if not _DATED.match(text):
            return None
        text = text[: len(wanted)]
    elif mine is not None or other is not None:
        return None
    wanted = wanted.casefold()
    return (text > wanted) - (text < wanted)


def _as_moment(text: str) -> str:
    """Return a time as it is in UTC, so that times are in order as texts; without a zone it is UTC already.

    All other texts stay as they are.
    """
    found = _TIME.fullmatch(text)
    moment = moment_of(found[1] + (found[3] or "").strip()) if found else None
    if not (found and moment):
        return text
    fraction = (found[2] or "").rstrip("0")
    return stamp(moment).removesuffix("Z") + (f".{fraction}" if fraction else "")


def _parse_number(value: Value) -> float | None:
    text = field_text(value)
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def _format_time(mtime_ns: int) -> str | None:
    """Return a file's time of change as a text that sorts by it; None where there is no such date."""
    seconds, rest = divmod(mtime_ns, 1_000_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"
    except (OverflowError, ValueError, OSError):
        return None


_HIGHEST = "\U0010ffff"


def _name_by_stem(paths: Iterable[str]) -> dict[Name, list[str]]:
    found: dict[Name, list[str]] = {}
    for path in paths:
        for key in stem_keys(path):
            found.setdefault(("stem", key), []).append(path)
    return found


def _build_wall_condition(wall: Namespace) -> tuple[str, tuple[str, ...]]:
    # SQLite compares texts by their bytes, in which "0" follows "/".
    parts = ["d.path >= ? AND d.path < ?"]
    values = [f"{wall.folder}/", f"{wall.folder}0"] if wall.folder else ["", _HIGHEST]
    each = ["d.path = ? OR d.path >= ? AND d.path < ?"] * len(wall.keeps)
    # SQLite takes an expression that is at most 1,000 deep.
    kept = " OR ".join(f"({' OR '.join(each[n : n + 300])})" for n in range(0, len(each), 300))
    for folder in wall.hides:
        hidden, begins = _build_below_condition(folder)
        parts.append(f"NOT ({hidden}{f' AND NOT ({kept})' if kept else ''})")
        values += begins
        values += [value for path in wall.keeps for value in (path, f"{path}/", f"{path}0")]
    return " AND ".join(parts), tuple(values)


def _build_below_condition(folder: str) -> tuple[str, list[str]]:
    """Build the SQL condition that the memory `d` is below a folder; a part `*` is any one name."""
    if "*" not in folder:
        return "d.path >= ? AND d.path < ?", [f"{folder}/", f"{folder}0"]
    between, conditions, left = f"{folder}/".split("*"), [], "d.path"
    for text in between:
        conditions.append(f"substr({left}, 1, {len(text)}) = ?")
        left = f"substr({left}, {len(text) + 1})"
        left = f"substr({left}, instr({left}, '/'))"
    return " AND ".join(conditions), between


class View:
    """The index of the memories in the namespace of `vault`; paths are relative to it.

    Call `Index.sync` first: a view does not.
    """

    unsaved: Mapping[str, bytes] = MappingProxyType({})
    """Texts of an editor that are not saved, by their files in the workspace: a view has none."""

    def __init__(self, index: Index, vault: Vault) -> None:
        self.index = index
        self.vault = vault
        self.base = base = vault.namespace
        self._wall, self._bounds = _build_wall_condition(vault.wall)
        self._skip = len(base) + 1 if base else 0

    def layers(self) -> Iterator[tuple[Layer, View]]:
        """Yield what its vault reads, each layer with what the index knows of it; the own one comes first."""
        for layer in self.vault.reads:
            yield layer, self._others[layer.name] if layer.name else self

    @cached_property
    def _others(self) -> dict[str, View]:
        reads = (layer for layer in self.vault.reads if layer.name)
        return {layer.name: View(self.index, self.vault.within(layer.namespace)) for layer in reads}

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query; its condition `{inside}` stands before those with `values`."""
        return self.index.rows(query.replace("{inside}", self._wall), (*self._bounds, *values))

    def text(self, ask: Callable[[TextView], R]) -> R:
        """Return the answer to a question about the text of these memories."""
        from mdmem.index.text_index import TextView  # noqa: PLC0415 - start-up

        return self.index.text(lambda text: ask(TextView(text, [self.vault.wall])))

    def part_rows(self, table: str, columns: str, rest: str = "", values: Sequence[Any] = ()) -> list[Any]:
        """Return rows of a table that has several for each memory; in SQL it is `x`, the memory `d`.

        `rest` follows the condition that the memory is inside: further ones, groups, an order.
        """
        query = f"SELECT {columns} FROM {table} AS x JOIN documents AS d ON d.id = x.document"  # noqa: S608
        return self.rows(f"{query} WHERE {{inside}} {rest}", values)

    def _document_rows(self, columns: str, rest: str = "AND d.problem = ''") -> list[Any]:
        return self.rows(f"SELECT {columns} FROM documents AS d WHERE {{inside}} {rest}")  # noqa: S608

    def _list_paths(self, table: str, rest: str, values: Sequence[Any] = ()) -> list[str]:
        rows = self.part_rows(table, "DISTINCT d.path", f"{rest} ORDER BY d.path", values)
        return [self.inside(path) for (path,) in rows]

    def inside(self, path: str) -> str:
        """Return a vault path relative to this view."""
        return path[self._skip :]

    def outside(self, path: str) -> str:
        """Return a path of this view as a vault path."""
        return join(self.base, path)

    def memories(self, keys: Collection[str]) -> Iterator[tuple[str, int, int, dict[str, list[Value]]]]:
        """List every memory: path, bytes, time of change in nanoseconds, and the values of the fields `keys`.

        Where a memory has no such field, `path`, `title`, `size`, `modified` (of its file, in UTC), `date`
        (see `mdmem.index.hit.day_of`) and `tag` (its tags, and those above them) come from the index.
        """
        values: dict[int, dict[str, list[Value]]] = {}
        for key in set(keys):
            rest = "AND x.key = ? ORDER BY x.document, x.n"
            for number, value in self.part_rows("fields", "x.document, x.value", rest, (key,)):
                values.setdefault(number, {}).setdefault(key, []).append(value)
        tags = self._load_all_tags() if "tag" in keys else {}
        columns, rest = (
            "d.id, d.path, d.size, d.mtime_ns, d.title, d.day",
            "AND d.problem = '' ORDER BY d.path",
        )
        for number, path, size, mtime_ns, title, day in self._document_rows(columns, rest):
            known: dict[str, list[Value]] = {"path": [self.inside(path)], "size": [size], "date": [day]}
            if title:
                known["title"] = [title]
            if "modified" in keys:
                known["modified"] = [_format_time(mtime_ns)]
            if number in tags:
                known["tag"] = [*sorted(tags[number])]
            yield self.inside(path), size, mtime_ns, known | values.get(number, {})

    def field_names(self) -> list[str]:
        """List the names of all fields, of nested ones dotted."""
        return [name for (name,) in self.part_rows("fields", "DISTINCT x.key")]

    def _load_all_tags(self) -> dict[int, set[str]]:
        tags: dict[int, set[str]] = {}
        for number, name in self.part_rows("tags", "x.document, x.name"):
            tags.setdefault(number, set()).update(accumulate(name.split("/"), "{}/{}".format))
        return tags

    def states(self, paths: Collection[str] | None = None) -> Iterator[tuple[str, str, str, frozenset[str]]]:
        """List memories: path, id, hash, and the keys that a link to it may have.

        With `paths`, those at or below these, as the whole vault names them.
        """
        query = (
            "SELECT d.path, d.ident, d.hash, group_concat(n.kind || ' ' || n.key, char(10))"
            " FROM documents AS d JOIN names AS n ON n.document = d.id"
            " WHERE {inside} AND d.problem = ''"
        )
        grouped = " GROUP BY d.id"
        if paths is None:
            rows = self.rows(query + grouped)
        else:
            # By number, because SQLite would otherwise read every memory of the namespace.
            below = " AND d.id IN (SELECT id FROM documents WHERE path = ? OR (path >= ? AND path < ?))"
            query += below + grouped
            rows = [row for at in paths for row in self.rows(query, (at, f"{at}/", f"{at}0"))]
        for path, ident, digest, names in rows:
            known = (name.partition(" ") for name in names.split("\n") if " " in name)
            keys = self._list_keys(self.inside(path), ((kind, key) for kind, _, key in known))
            yield self.inside(path), ident, digest, frozenset(keys)

    def tags(self) -> list[tuple[str, int]]:
        """List the tags, each with the number of memories that have it, the most used first."""
        columns, rest = "min(x.name), count(DISTINCT x.document)", "GROUP BY x.key ORDER BY 2 DESC, x.key"
        return self.part_rows("tags", columns, rest)

    def tagged(self, tag: str) -> list[str]:
        """List the memories that have a tag, or one below it (`a/b` is below `a`), by path."""
        key = tag_key(tag.removeprefix("#"))
        at_or_below = "AND (x.key = ? OR (x.key >= ? AND x.key < ?))"
        return self._list_paths("tags", at_or_below, (key, f"{key}/", f"{key}0"))

    def same_ids(self) -> list[tuple[str, list[str]]]:
        """List the ids that several memories have, each with these."""
        rows = self._document_rows("d.ident, d.path", "AND d.ident != '' ORDER BY d.ident, d.path")
        grouped = groupby(rows, key=lambda row: row[0])
        memories = [(ident, [self.inside(path) for _, path in rows]) for ident, rows in grouped]
        return [(ident, paths) for ident, paths in memories if len(paths) > 1]

    def count_memories(self) -> int:
        """Count the memories."""
        ((count,),) = self._document_rows("count(*)")
        return int(count)

    def list_files(self) -> list[str]:
        """List the memories and the files that cannot be read as such, by path."""
        return [self.inside(path) for (path,) in self._document_rows("d.path", "ORDER BY d.path")]

    def ages(self) -> list[tuple[str, str, int]]:
        """List the memories: path, day, and time of change in nanoseconds."""
        rows = self._document_rows("d.path, d.day, d.mtime_ns")
        return [(self.inside(path), day, mtime_ns) for path, day, mtime_ns in rows]

    def problems(self) -> list[tuple[str, str]]:
        """List the files that cannot be read as memories, each with the reason."""
        return [(path, problem) for path, problem, _ in self.damaged() if problem]

    def flaws(self) -> list[tuple[str, str]]:
        """List the memories with frontmatter that cannot all be read, each with the reason."""
        return [(path, flaw) for path, _, flaw in self.damaged() if flaw]

    def damaged(self) -> list[tuple[str, str, str]]:
        """List what cannot all be read: path, why not as a memory, and why not all of its frontmatter."""
        damaged = "AND (d.problem != '' OR d.flaw != '') ORDER BY d.path"
        rows = self._document_rows("d.path, d.problem, d.flaw", damaged)
        return [(self.inside(path), problem, flaw) for path, problem, flaw in rows]

    def seen_files(self) -> dict[str, list[int]]:
        """Return how the file of each memory was when it was indexed: the values of `Seen`."""
        rows = self._document_rows("d.path, d.mtime_ns, d.ctime_ns, d.size, d.inode")
        return {self.inside(path): stamp for path, *stamp in rows}

    @cached_property
    def unread(self) -> dict[Name, list[str]]:
        """The files that cannot be read as memories, by the names that they would have."""
        return _name_by_stem(sorted(self._list_unread()))

    @cached_property
    def gone(self) -> dict[Name, list[str]]:
        """The memories that were moved or deleted, by the names that they had."""
        query = (
            "SELECT d.path FROM (SELECT old AS path FROM moves) AS d"
            " WHERE {inside} AND d.path NOT IN (SELECT path FROM documents) ORDER BY d.path"
        )
        return _name_by_stem(self.inside(path) for (path,) in self.rows(query))

    def _list_unread(self) -> Iterator[str]:
        yield from (path for path, _ in self.problems())
        yield from (path for path in self._list_left_out() if path.endswith(self.vault.suffixes))

    def _list_left_out(self) -> Iterator[str]:
        paths = (self.layout.path_of(file) for file in self.left_out)
        return (path for path in paths if path and self.vault.wall.holds(self.outside(path)))

    @cached_property
    def left_out(self) -> frozenset[str]:
        """What git has and a sparse work tree leaves out, seen from the workspace; none behind the wall."""
        from mdmem.index.code.workspace import Workspace  # noqa: PLC0415 - start-up

        with Workspace.of(self.vault) as workspace:
            files = {file: os.path.join(workspace.root, file) for file in workspace.left_out}
            return frozenset(file for file, place in files.items() if not self.vault.hides(place))

    def moves(self) -> dict[str, str]:
        """Return the memories that other programs moved: old path to new, both inside."""
        query = (
            "SELECT m.old, d.path FROM moves AS m JOIN documents AS d ON d.path = m.new"
            " WHERE {inside} AND m.old NOT IN (SELECT path FROM documents)"
        )
        rows = self.rows(query)
        found = {self.inside(old): self.inside(new) for old, new in rows if self.vault.wall.holds(old)}
        return {**self._find_merged_moves(), **found}

    def _find_merged_moves(self) -> dict[str, str]:
        """Return the moves of linked memories that git merged with changes: the index saw them deleted."""
        query = (
            "SELECT d.path FROM (SELECT old AS path FROM moves WHERE new = '') AS d"
            " WHERE {inside} AND d.path NOT IN (SELECT path FROM documents)"
        )
        deleted = [self.inside(old) for (old,) in self.rows(query) if self.vault.wall.holds(old)]
        linked = [old for old in deleted if self.sources(stem_keys(old))]
        if not linked:
            return {}
        from mdmem.index.code.workspace import Workspace  # noqa: PLC0415 - start-up

        with Workspace.of(self.vault) as workspace:
            renamed = {old: workspace.find_renamed(self.in_workspace(old)) for old in linked}
        found = {old: self.layout.path_of(file) for old, file in renamed.items() if file}
        return {old: new for old, new in found.items() if new}

    def named(self, kind: str, key: str) -> list[str]:
        """List what has the name `key` of this `kind`, by path; see `mdmem.index.links.names.Names`."""
        if kind == "file":
            return self._attachments.get(key, [])
        return self._list_paths("names", "AND x.kind = ? AND x.key = ?", (kind, key))

    @cached_property
    def _attachments(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted({*self.vault.other_files(), *self._list_left_out()}):
            found.setdefault(key_of(path), []).append(path)
        return found

    def sources(self, keys: Iterable[str]) -> list[str]:
        """List the memories that have a link with one of these keys, by path."""
        return sorted({path for key in set(keys) for path in self._list_linking(key)})

    def _list_linking(self, key: str) -> list[str]:
        labelled = self._list_paths("links", "AND x.label = ? AND x.label != ''", (key,))
        return self._list_paths("links", "AND x.key = ?", (key,)) + labelled

    @cached_property
    def all_names(self) -> LoadedNames:
        """All names, loaded at once: for questions about every link."""
        return self.names_with(())

    def names_with(self, others: Iterable[Document], tools: Iterable[tuple[str, str]] = ()) -> LoadedNames:
        """Return all names, and those of memories that are not in the vault yet.

        `tools`: folders of the vault, and the tools that read the notes in them, beside what the config says.
        """
        rows = self.part_rows("names", "x.kind, x.key, d.path", "ORDER BY d.path")
        known = ((kind, key, self.inside(path)) for kind, key, path in rows)
        new = (
            (kind, key, each.path)
            for each in others
            for kind, key in names_of(each.path, each.fields, each.text)
        )
        names = LoadedNames(chain(known, new), self)
        names.layout = self._with_tools(names.layout, tools)
        return names

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is at `path`, in the namespace."""
        return self.vault.wall.holds(self.outside(path)) and self.stands(path)

    @cached_property
    def layout(self) -> MemoryLayout:
        """Where the memories stand on disk, seen from the workspace; those of the past, where they stood."""
        disk, wall = self.vault.disk.original, self.vault.wall
        mounted = {
            self.inside(path): nfc("/".join(parts)) for path, parts in disk.mounts.items() if wall.holds(path)
        }
        folder = nfc(disk.in_workspace(self.base))
        layout = MemoryLayout("" if folder == "." else folder, mounted, self.vault.workspace, {}, {})
        told = (each.rpartition(": ") for each in self.vault.config.links.dialects)
        return self._with_tools(layout, ((place, tool) for place, _, tool in told))

    def _with_tools(self, layout: MemoryLayout, tools: Iterable[tuple[str, str]]) -> MemoryLayout:
        """Return a layout in which tools read the notes of more folders of the vault."""
        known = dict(layout.tools)
        for place, tool in tools:
            folder = nfc(self.vault.disk.original.in_workspace(place or "."))
            folder = "" if folder == "." else folder
            known[folder] = (*known.get(folder, ()), tool)
        return layout._replace(tools=known, kept={})

    def forget_names(self) -> None:
        """Load `all_names`, the names of files and the layout again when they are next needed."""
        for name in ("all_names", "_attachments", "unread", "gone", "left_out", "layout", "_others"):
            self.__dict__.pop(name, None)

    def stands(self, path: str) -> bool:
        """Return whether a file is at `path`, relative to the namespace; `../src/app.py` is beside it.

        What a sparse work tree leaves out is there, too.
        """
        file = os.path.join(self.vault.root, self.base, path)
        if os.path.lexists(file):
            return not self.vault.hides(file)
        # These are none behind the wall.
        return bool(self.left_out) and os.path.relpath(file, self.vault.workspace) in self.left_out

    def keys_of(self, path: str) -> list[str]:
        """List every key that a link to the memory at `path` may have."""
        rows = self.part_rows("names", "x.kind, x.key", "AND d.path = ?", (self.outside(path),))
        return sorted(self._list_keys(path, rows))

    def _list_keys(self, path: str, names: Iterable[tuple[str, str]]) -> set[str]:
        keys = {link_key(kind, name) for kind, name in names}
        return keys.union(stem_keys(self.layout.file_of(path))) if keys else keys

    def anchors(self, path: str) -> Anchors:
        """Return what an anchor can name in the memory at `path`."""
        return self.list_anchors("AND d.path = ?", (self.outside(path),)).get(path, NO_ANCHORS)

    def list_anchors(self, rest: str = "", values: Sequence[Any] = ()) -> dict[str, Anchors]:
        """List what an anchor can name in each memory that has headings or blocks; see `part_rows`."""
        headings: dict[str, list[AnchorHeading]] = {}
        blocks: dict[str, set[str]] = {}
        columns = "d.path, x.line, x.path, x.slug, x.loose, x.level"
        for path, line, titles, *slugs in self.part_rows("sections", columns, f"{rest} ORDER BY x.n", values):
            heading = AnchorHeading(line, tuple(titles.split("\n")), *slugs)
            headings.setdefault(self.inside(path), []).append(heading)
        for path, block in self.part_rows("blocks", "d.path, x.id", rest, values):
            blocks.setdefault(self.inside(path), set()).add(block.casefold())
        return {
            path: Anchors(tuple(headings.get(path, ())), frozenset(blocks.get(path, ())))
            for path in headings.keys() | blocks.keys()
        }

    def links_with(self, key: str) -> list[tuple[str, int, str, str, str, str]]:
        """List the links with a key, their label's included: memory, line, kind, target, anchor and alias."""
        columns = "d.path, x.line, x.kind, x.target, x.anchor, x.alias"
        rows = self.part_rows("links", columns, "AND x.key = ?", (key,))
        if key:
            rows += self.part_rows("links", columns, "AND x.label = ? AND x.label != x.key", (key,))
        return [(self.inside(path), *rest) for path, *rest in rows]

    def titles(self) -> list[tuple[str, int, str]]:
        """List the headings: memory, number in it from 0 on, and title of each, in order."""
        rows = self.part_rows("sections", "d.path, x.n, x.path", "ORDER BY d.path, x.n")
        return [(self.inside(path), number, titles.rpartition("\n")[2]) for path, number, titles in rows]

    def field_values(self, *keys: str) -> dict[str, list[tuple[str, Value]]]:
        """List the values of each field, each with its memory, in the order of the paths."""
        values: dict[str, list[tuple[str, Value]]] = {key: [] for key in keys}
        rest = f"AND x.key IN ({', '.join('?' * len(keys))}) ORDER BY d.path, x.n"
        for key, path, value in self.part_rows("fields", "x.key, d.path, x.value", rest, keys):
            values[key].append((self.inside(path), value))
        return values

    def granted(self, users: Collection[str], path: str) -> list[tuple[str, str | None]]:
        """List the memories that name a user in `access`: the path in the vault, and `access.until`.

        With `path`, list only the memory there.
        """
        until = "(SELECT value FROM fields WHERE document = d.id AND key = 'access.until')"
        rest = f"AND x.key > 'access.' AND x.key < 'access/' AND x.value IN ({', '.join('?' * len(users))})"
        rest += " AND (? = '' OR d.path = ?)"
        values = (*users, path, self.outside(path))
        return self.part_rows("fields", f"DISTINCT d.path, {until}", rest, values)

    def citing(self, paths: Collection[str] | None = None) -> list[str]:
        """List the memories, or those of `paths`, that cite code."""
        return [path for path in self._list_paths("citations", "") if paths is None or path in paths]

    def cited_paths(self) -> list[tuple[str, str, int]]:
        """List what memories cite: the memory, the path as cited, and whether it is that of a link."""
        rows = self.part_rows("citations", "DISTINCT d.path, x.path, x.in_link")
        return [(self.inside(path), cited, in_link) for path, cited, in_link in rows]

    def outward_links(self) -> list[tuple[str, str, str]]:
        """List the links that may lead out of the vault: memory, kind and target of each."""
        kinds = "AND (x.kind = 'field' OR x.target LIKE '%..%' OR x.target LIKE '/%')"
        rows = self.part_rows("links", "DISTINCT d.path, x.kind, x.target", kinds)
        return [(self.inside(path), kind, target) for path, kind, target in rows]

    def first_seen(self, path: str) -> dict[tuple[Any, ...], str]:
        """Return what was first seen of the code a memory cites: by path, first and last line, symbol."""
        columns = "x.path, x.first, x.last, x.symbol, x.seen"
        rows = self.part_rows("citations", columns, "AND d.path = ?", (self.outside(path),))
        return {tuple(cited): seen for *cited, seen in rows}

    def in_workspace(self, path: str) -> str:
        """Return the file of the memory at `path`, relative to the workspace."""
        return self.vault.disk.in_workspace(self.outside(path))

    def file_of(self, path: str) -> str:
        """Return the absolute path of the file of the memory at `path`."""
        place = self.vault.place(path)
        return os.path.join(place.root, *place.parts)

    def read(self, path: str, *, unreadable: bool = False) -> Document:
        """Return the memory at `path`; see `Vault.read`."""
        return self.vault.read(path, unreadable=unreadable)


def link_key(kind: str, name: str) -> str:
    """Return the key of a link that uses a name of this kind; see `mdmem.index.database.keys_of`."""
    return name if kind == "stem" else key_of(name)


class Anchors(NamedTuple):
    """What an anchor can name in a memory: its headings in order, and its block ids, casefolded."""

    headings: tuple[AnchorHeading, ...]
    blocks: frozenset[str]


NO_ANCHORS = Anchors((), frozenset())


class LoadedNames:
    """What there is to link to, in memory: (kind, key, path) of each name; anchors once one is asked for."""

    def __init__(self, names: Iterable[tuple[str, str, str]], view: View) -> None:
        self._view = view
        self.exists = view.exists
        self.layout = view.layout
        self._paths: dict[Name, list[str]] = {}
        for kind, key, path in names:
            self._paths.setdefault((kind, key), []).append(path)

    def named(self, kind: str, key: str) -> Sequence[str]:
        """See `View.named`."""
        return self._view.named(kind, key) if kind == "file" else self._paths.get((kind, key), ())

    def anchors(self, path: str) -> Anchors:
        """Return what an anchor can name in the memory at `path`."""
        return self._anchors.get(path, NO_ANCHORS)

    @cached_property
    def _anchors(self) -> dict[str, Anchors]:
        return self._view.list_anchors()
