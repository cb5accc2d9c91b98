"""Set or remove one field of frontmatter or JSON by an exact edit of the text.

Nothing is written but the value itself: comments, order, quoting and indentation of all else stay. Of a list
or mapping that is given a new value, what is equal in both stays as well. The result is parsed again and
compared, value by value, with what was wanted, before an edit is handed out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import groupby, pairwise, takewhile
from typing import Any, NamedTuple

from mdmem.diagnostic import Diagnostic
from mdmem.document import frontmatter, yaml_edit
from mdmem.document.document import Document
from mdmem.document.edit import TextEdit, spliced
from mdmem.document.text.lines import LINE_END
from mdmem.document.tree import INDEX, Flaw, Key, KeyPath, Node, dotted, same, undotted
from mdmem.document.yaml_edit import BlockEdit, FlowEdit, PlainText
from mdmem.errors import DocumentRefused, EditRefused, FieldNotFound, Usage


class TreeEdit:
    """Which parts of a value change, and who writes each; a value is named by its parent and index there."""

    def __init__(self, document: Document) -> None:
        self._flow = FlowEdit(document)
        self._block = BlockEdit(document)

    def change(self, parent: Node, index: int, value: Any) -> list[TextEdit]:
        """Give a value; of a collection, only what differs is written."""
        node = parent.parts[index]
        if same(node.value, value):
            return []
        if node.kind == "mapping" and isinstance(value, dict):
            kept = [n for n, member in enumerate(node.members) if member.key in value]
            if kept and len(node.members) == len(node.value):
                return self._change_mapping(node, kept, value)
        if node.kind == "list" and isinstance(value, list) and node.items and value:
            return self._change_list(node, value)
        return self.rewrite(parent, index, value)

    def rewrite(self, parent: Node, index: int, value: Any) -> list[TextEdit]:
        """Give a value, and write the whole of it."""
        return self._editor_for(parent).replace(parent, index, value)

    def add(self, container: Node, key: str, value: Any) -> list[TextEdit]:
        """Write a new member, or item, behind the last one."""
        return self._editor_for(container).insert(container, len(container.parts) - 1, [(key, value)])

    def remove(self, path: Sequence[tuple[Node, int]]) -> list[TextEdit]:
        """Take away a value, named by every parent from the root on and the index in each."""
        container, index = path[-1]
        if len(container.parts) > 1 or len(path) == 1 or container.style != "block":
            return self._editor_for(container).remove(container, index, index)
        # Block style cannot write an empty collection.
        edits = self.rewrite(*path[-2], [] if container.kind == "list" else {})
        return [*edits, self._block.without_comment(container)]

    def _change_mapping(self, node: Node, kept: Sequence[int], value: dict[str, Any]) -> list[TextEdit]:
        editor = self._editor_for(node)
        edits = []
        for index in kept:
            edits += self.change(node, index, value[node.members[index].key])
        for first, last in _group_runs(n for n in range(len(node.members)) if n not in set(kept)):
            edits += editor.remove(node, first, last)
        added = [(key, part) for key, part in value.items() if key not in node.value]
        return edits + (editor.insert(node, kept[-1], added) if added else [])

    def _change_list(self, node: Node, value: list[Any]) -> list[TextEdit]:
        editor = self._editor_for(node)
        old = node.value
        head = _equal_head(old, value)
        tail = _equal_head(old[head:][::-1], value[head:][::-1])
        gone, come = len(old) - tail, len(value) - tail
        reached = min(gone, come)
        edits = [edit for index in range(head, reached) for edit in self.change(node, index, value[index])]
        if gone > reached:
            edits += editor.remove(node, reached, gone - 1)
        if come > reached:
            edits += editor.insert(node, reached - 1, [("", part) for part in value[reached:come]])
        return edits

    def _editor_for(self, container: Node) -> FlowEdit | BlockEdit:
        return self._block if container.style == "block" else self._flow


def merged(edits: Iterable[TextEdit]) -> list[TextEdit]:
    """Join insertions at one place, and drop edits that do nothing; the order stays."""
    insertions: dict[int, str] = {}
    others = []
    for edit in edits:
        if edit.start < edit.end:
            others.append(edit)
        elif edit.new:
            insertions[edit.start] = insertions.get(edit.start, "") + edit.new
    return sorted([*others, *(TextEdit(at, at, new) for at, new in insertions.items())])


def _equal_head(one: Sequence[Any], other: Sequence[Any]) -> int:
    return sum(1 for _ in takewhile(lambda pair: same(*pair), zip(one, other, strict=False)))


def _group_runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of neighbours in ascending numbers."""
    groups = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return [(run[0], run[-1]) for run in runs]


# Findings that leave it certain where every value stands; all others make an exact edit impossible.
_HARMLESS = frozenset(("duplicate-key", "unknown-tag", "lone-surrogate"))
_LARGEST = 10**3500  # longer integers cannot be read back


def set_field(document: Document, key: str | Sequence[Key], value: Any) -> list[TextEdit]:
    """Return the edits that give the field `key` a value; none when it has that value already.

    A missing field is added behind the last one of its mapping, missing mappings above it are made, and an
    index equal to a list's length appends. Where there is no frontmatter, it is made at the beginning of the
    body, with a blank line behind it unless the body is empty. Empty frontmatter gets a blank line behind the
    field if `unset_field` would otherwise take it for frontmatter that was made.

    A text keeps the quotes of the text that it replaces where they can hold it; block scalars (`|`, `>`) stay
    such for texts of several lines. A collection in brackets stays in brackets; others are written in block
    style.

    Args:
        key: the path of the field, dotted (`source.type`, `tags.0`) or as a sequence of keys. A key of digits
            is an index where its parent is a list.

    Raises:
        EditRefused: the frontmatter or JSON cannot be read, a key on the way stands twice, a value on the way
            is not a mapping or list, others use the value through an alias, or the form is not supported.
        Usage: the key is empty, or the value is no JSON value.
        NotEncodable, TooLarge, TooNested: the result cannot be a memory.
    """
    path = _parse_key(key)
    _check_value(document, value)
    is_text = path[0] in frontmatter.TEXTS and (not path[1:] or str(path[1]).isdigit())
    if not document.is_json and is_text:
        value = _as_texts(value)
    tree = _editable_tree(document)
    if tree is None:
        _refuse_guess(document, path, key)
        value = _nest_value(path, value)
        return _verify_edits(document, [_first_field(document, value)], value)
    chain, missing = _follow_path(document, tree, path)
    edit = TreeEdit(document)
    if not missing:
        if same(chain[-1].node.value, value):
            return []
        place = chain[-2].node, chain[-1].position
        ways = [lambda: edit.change(*place, value), lambda: edit.rewrite(*place, value)]
        return _first_sound(document, ways, _with_value(tree.value, _chain_keys(chain), value))
    _refuse_guess(document, missing, key)
    first, value = _creatable_key(document, chain, missing[0]), _nest_value(missing[1:], value)
    wanted = _with_value(tree.value, (*_chain_keys(chain), first), value)
    if chain[-1].node.kind == "scalar":
        way = partial(edit.rewrite, chain[-2].node, chain[-1].position, {first: value})
    else:
        way = partial(edit.add, chain[-1].node, str(first), value)
    return _first_sound(document, [way], wanted)


def with_field(document: Document, key: str | Sequence[Key], value: Any) -> Document:
    """Return the memory with a field set; see `set_field`."""
    return spliced(document, set_field(document, key, value))


def unset_field(document: Document, key: str | Sequence[Key]) -> list[TextEdit]:
    """Remove the field `key`: its lines with the comments in them, not those around it.

    The parent of a removed last field becomes `{}` or `[]`. Frontmatter that is as `set_field` would have
    made it goes with its last field; other frontmatter without fields stays, empty, as it was before.

    Raises:
        FieldNotFound: there is no such field.
    """
    path = _parse_key(key)
    tree = _editable_tree(document)
    chain, missing = _follow_path(document, tree, path) if tree else ([], path)
    if tree is None or missing:
        raise FieldNotFound(path=document.path, key=dotted(path), near=_name_near_keys(chain))
    is_only = len(path) == len(tree.parts) == 1 and not document.is_json
    if is_only and (edit := _find_unset(document, path)):
        return [edit]
    places = [(above.node, below.position) for above, below in pairwise(chain)]
    return _first_sound(
        document, [lambda: TreeEdit(document).remove(places)], _without_value(tree.value, _chain_keys(chain))
    )


# ------------------------------------------------------------------------------------------- finding the way


class _Step(NamedTuple):
    """A value on the way to a field: its key, and its place among the parts of its parent."""

    node: Node
    key: Key
    position: int


def _parse_key(key: str | Sequence[Key]) -> KeyPath:
    path: KeyPath = undotted(key) if isinstance(key, str) else tuple(key)
    if not key:
        raise Usage(problem="the name of a field is empty", remedy="name it, as in `title` or `source.type`")
    return path


def _editable_tree(document: Document) -> Node | None:
    tree, form = document.tree, document.frontmatter.form
    for flaw in _list_flaws(document):
        if flaw.code not in _HARMLESS:
            what = "JSON" if document.is_json else "frontmatter"
            line = document.lines.number(flaw.span.start)
            hint = "write `{}` into it first" if not document.text.strip("\ufeff \t\r\n") else flaw.hint
            reason = f"line {line}: the {what} cannot be edited: {flaw.message}"
            raise document.refused(reason, hint)
    if form != "YAML":
        raise document.refused(f"the frontmatter is {form}: only YAML can be edited", "edit the text instead")
    if document.is_json and tree and tree.kind == "scalar":
        raise document.refused("the JSON is a single value, without fields")
    return tree


def _follow_path(document: Document, tree: Node, path: KeyPath) -> tuple[list[_Step], KeyPath]:
    """Return the values on the way that are there, from the root on, and the keys that are missing."""
    chain = [_Step(tree, "", 0)]
    for number, key in enumerate(path):
        node = chain[-1].node
        found = _find_part(document, chain, key)
        if node.kind == "alias" and isinstance(node.value, dict | list):
            name = dotted(_chain_keys(chain))
            reason = f"line {_line_of(document, node)}: {name!r} is an alias; its value stands elsewhere"
            raise document.refused(reason, f"set the whole of {name!r}")
        if found is None:
            return chain, path[number:]
        chain.append(found)
    return chain, ()


def _find_part(document: Document, chain: list[_Step], key: Key) -> _Step | None:
    node = chain[-1].node
    if node.kind == "list":
        index = int(key) if isinstance(key, int) or INDEX.fullmatch(key) else -1
        return _Step(node.items[index], index, index) if 0 <= index < len(node.items) else None
    named = [n for n, member in enumerate(node.members) if member.key == str(key)]
    if len(named) > 1:
        name = dotted((*_chain_keys(chain), key))
        lines = ", ".join(str(_line_of(document, node.members[n].node)) for n in named)
        reason = f"the key {name!r} stands {len(named)} times, in lines {lines}"
        raise document.refused(reason, "keep one of them")
    return _Step(node.members[named[0]].node, str(key), named[0]) if named else None


def _refuse_guess(document: Document, missing: KeyPath, key: str | Sequence[Key]) -> None:
    """Refuse an index in a missing value, which may be a list or a mapping."""
    for name, below in pairwise(missing):
        if isinstance(below, int) or (isinstance(key, str) and INDEX.fullmatch(below)):
            reason = f"{name!r} is missing, so {below!r} may be an index or a key"
            raise document.refused(reason, f"set {name!r} to a list or a mapping")


def _creatable_key(document: Document, chain: list[_Step], key: Key) -> Key:
    """Return a missing key as its parent takes it; refuse a parent that takes none."""
    node = chain[-1].node
    where, line = dotted(_chain_keys(chain)) or "the document", _line_of(document, node)
    if node.kind == "mapping":
        return str(key)
    if node.kind == "list":
        count = len(node.items)
        if str(key) == str(count):
            return count
        reason = f"line {line}: {where!r} is a list of {count}: there is no {key!r} in it"
        raise document.refused(reason, f"index {count} appends")
    if node.value is None and node.span.start == node.span.end and not INDEX.fullmatch(str(key)):
        return str(key)
    reason = f"line {line}: {where!r} is a single value: nothing can be put under it"
    raise document.refused(reason, f"set {where!r} to a mapping first")


def _chain_keys(chain: list[_Step]) -> KeyPath:
    return tuple(step.key for step in chain[1:])


def _line_of(document: Document, node: Node) -> int:
    return document.lines.number(node.span.start)


def _name_near_keys(chain: list[_Step]) -> tuple[str, ...]:
    if not chain:
        return ()
    node = chain[-1].node
    keys = [m.key for m in node.members] if node.kind == "mapping" else range(len(node.items))
    return tuple(dotted((*_chain_keys(chain), key)) for key in keys)


# ------------------------------------------------------------------------------------------------ the value


def _check_value(document: Document, value: Any, depth: int = 1) -> None:
    """Refuse what is no JSON value, or cannot be written in this document."""
    if depth > document.limits.max_depth and isinstance(value, dict | list):
        reason = f"the value is nested more deeply than {document.limits.max_depth}"
        raise document.refused(reason, "flatten it")
    if isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                raise Usage(problem=f"a key must be text, not {name!r}")
            _check_value(document, part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_value(document, part, depth + 1)
    elif isinstance(value, float) and document.is_json and not math.isfinite(value):
        raise document.refused(f"JSON has no number {value}", "use null or a text")
    elif isinstance(value, int) and abs(value) >= _LARGEST:
        raise document.refused("a number of more than 3,500 digits", "use a text")
    elif not isinstance(value, str | int | float | None):
        kinds = "text, number, boolean, null, list or mapping"
        raise Usage(problem=f"a field cannot hold a {type(value).__name__}", remedy=f"give a {kinds}")


def _as_texts(value: Any) -> Any:
    """Return a value with the numbers and booleans in it as texts."""
    if isinstance(value, list):
        return [part if isinstance(part, list | dict) else _as_texts(part) for part in value]
    if value is None or isinstance(value, dict):
        return value
    return PlainText(value if isinstance(value, str) else yaml_edit.scalar(value))


def _nest_value(path: KeyPath, value: Any) -> Any:
    for key in reversed(path):
        value = {str(key): value}
    return value


def _with_value(tree: Any, path: Sequence[Key], value: Any) -> Any:
    if not path:
        return value
    key, *others = path
    if isinstance(tree, list):
        at = int(key)
        below = tree[at] if at < len(tree) else None
        return [*tree[:at], _with_value(below, others, value), *tree[at + 1 :]]
    members = tree or {}
    return {**members, str(key): _with_value(members.get(str(key)), others, value)}


def _without_value(tree: Any, path: Sequence[Key]) -> Any:
    *above, last = path
    parent = reduce(lambda value, key: value[key], above, tree)
    if isinstance(parent, list):
        return _with_value(tree, above, [part for index, part in enumerate(parent) if index != last])
    return _with_value(tree, above, {key: part for key, part in parent.items() if key != last})


# ------------------------------------------------------------------------------------------------- the edits


def _first_field(document: Document, fields: dict[str, Any]) -> TextEdit:
    """Write fields where there are none: in empty frontmatter, or in new frontmatter before the body."""
    newline = document.lines.newline
    written = "".join(line + newline for line in yaml_edit.block(fields, BlockEdit(document).dash_offset))
    if not document.frontmatter.present:
        start = document.body_span.start
        apart = newline if document.body else ""
        return TextEdit(start, start, f"---{newline}{written}---{newline}{apart}")
    span, inner = document.frontmatter.span, document.frontmatter.inner
    # An empty line tells it from frontmatter that was made for its one field, and goes with that.
    if document.text[slice(*span)] == f"---{newline}" * 2 and document.body[:1] in {"", newline[0]}:
        written += newline
    return TextEdit(inner.end, inner.end, written)


def _find_unset(document: Document, path: KeyPath) -> TextEdit | None:
    """Return the edit after which setting the field again would make this text; None without one."""
    span, inner = document.frontmatter.span, document.frontmatter.inner
    blank = LINE_END.match(document.body)
    end = document.body_span.start + (blank.end() if blank else 0)
    for edit in TextEdit(span.start, end, ""), TextEdit(*inner, ""):
        with suppress(DocumentRefused, EditRefused):
            left = spliced(document, [edit])
            if with_field(left, path, document.fields[str(path[0])]).text == document.text:
                return edit
    return None


def _first_sound(
    document: Document, ways: Sequence[Callable[[], list[TextEdit]]], wanted: Any
) -> list[TextEdit]:
    for way in ways[:-1]:
        with suppress(EditRefused):
            return _verify_edits(document, merged(way()), wanted)
    return _verify_edits(document, merged(ways[-1]()), wanted)


def _verify_edits(document: Document, edits: list[TextEdit], wanted: Any) -> list[TextEdit]:
    """Return the edits if their text reads as `wanted`, with body and findings as before."""
    result = spliced(document, edits)
    value = result.tree.value if result.tree else {}
    flaws = Counter(flaw.code for flaw in _list_flaws(result)) - Counter(
        flaw.code for flaw in _list_flaws(document)
    )
    body = result.body
    if not document.is_json and not document.frontmatter.present:
        body = body if body == document.body else body.removeprefix(document.lines.newline)
    if same(value, wanted) and not flaws and (document.is_json or body == document.body):
        return edits
    reason = "no edit of this field alone is exact: other fields use its value, or its form is not supported"
    raise document.refused(reason, "edit the text instead")


def _list_flaws(document: Document) -> Sequence[Flaw | Diagnostic]:
    return document.findings if document.is_json else document.frontmatter.flaws
