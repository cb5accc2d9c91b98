"""Frontmatter: the YAML between two `---` lines at the very beginning of a Markdown text.

Nearly all of it is read here, a line at a time: fields of one line, `key: plain`, `key: "quoted"`,
`key: [a, b]`, and `key:` above lines of `- item` or of fields. What is read here is read as
`document.yaml` reads it, places included, several times as fast and without importing a YAML reader. The
patterns take less than YAML does: what they do not match is left to that module.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.tree import Flaw, Member, Node, Parsed, Style, resolve
from mdmem.text.regex import regex

BOM = "\ufeff"
_OPENING = regex(r"---[ \t]*(?:\r\n|\n|\r)")
# That the dashes come first lets the search jump from one to the next.
_CLOSING_LINE = regex(r"---(?<=[\n\r]---)[ \t]*(?:\r\n|\n|\r|\Z)")
# A first line of dashes with no second one is a thematic break unless a key follows it.
_KEY_FOLLOWS = regex(r"""["']?[^\s:#"'][^:\r\n]*:(?:[ \t\r\n]|\Z)""")


class Frontmatter(NamedTuple):
    """The frontmatter of a text.

    Attributes:
        span: both `---` lines and what is between them, line ends included; empty, at the place where
            the body begins, when there is none.
        inner: what is between the two lines.
        node: the parsed mapping; None when there is none, or none that can be read.
        flaws: what is wrong with it.
    """

    span: Span
    inner: Span
    node: Node | None = None
    flaws: tuple[Flaw, ...] = ()

    @property
    def present(self) -> bool:
        """Whether there is frontmatter at all."""
        return self.span.end > self.span.start

    @property
    def values(self) -> dict[str, Any]:
        """The fields by name; empty where they cannot be read."""
        value = self.node.value if self.node else {}
        return value if isinstance(value, dict) else {}


def beginning(text: str) -> int:
    """Return where a text begins: behind its byte-order mark, if it has one."""
    return len(BOM) if text.startswith(BOM) else 0


def locate(text: str) -> tuple[Span, Span]:
    """Return the spans of the frontmatter and of what is between its lines; empty without any."""
    start = beginning(text)
    opening = _OPENING.match(text, start)
    closing = _CLOSING_LINE.search(text, opening.end()) if opening else None
    if not opening or not closing:
        return Span(start, start), Span(start, start)
    following, end = closing.span()
    return Span(start, end), Span(opening.end(), following)


def parse(text: str, *, max_depth: int, max_values: int) -> Frontmatter:
    """Find and parse the frontmatter of a Markdown `text`.

    Raises:
        TooDeep: its values pass a limit.
    """
    span, inner = locate(text)
    start, end = span
    if start == end:
        return Frontmatter(span=span, inner=inner, flaws=_find_unclosed(text, start))

    node, flaws = parse_simple(text, *inner, max_depth=max_depth, max_values=max_values) or _parse_any(
        text, inner, max_depth=max_depth, max_values=max_values
    )
    if node and node.kind == "mapping":
        return Frontmatter(span, inner, node, flaws)
    if node and not (node.kind == "scalar" and node.value is None):
        message, hint = f"frontmatter must be fields, not a {node.kind}", "write `key: value` lines"
        flaws = (*flaws, Flaw(node.span, "frontmatter-not-a-mapping", message, hint, "frontmatter"))
    return Frontmatter(span=span, inner=inner, flaws=flaws)


def _parse_any(text: str, inner: Span, *, max_depth: int, max_values: int) -> Parsed:
    # A third of the start-up of a command that does without it would go into importing a YAML reader.
    from mdmem.document import yaml  # noqa: PLC0415

    return yaml.parse(text[slice(*inner)], inner.start, max_depth=max_depth, max_values=max_values)


def _find_unclosed(text: str, start: int) -> tuple[Flaw, ...]:
    opening = _OPENING.match(text, start)
    if not opening or not _KEY_FOLLOWS.match(text, opening.end()):
        return ()
    message, hint = "the frontmatter that begins here is never closed", "add a line of `---`"
    return (Flaw(Span(start, start + 3), "frontmatter-unclosed", message, hint, "frontmatter"),)


# ------------------------------------------------------------------------------------------- simple YAML


_LONGEST_KEY = 1000  # libyaml takes 1024 characters
_DEEPEST = 8
_LEVELS = 2  # a mapping may hold a list

# What libyaml does not print, what ends a line in YAML 1.1 alone, and byte-order marks.
_UNUSUAL = regex("[\x80-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
# Tabs are control characters, and no pattern takes one. Nothing is given back (`*+`), so time stays linear.
_FIRST = r"""[^\x00-\x20\x7f\-?:,\[\]{}\#&*!|>'"%@`]"""
_KEY = rf"((?!\.){_FIRST}[^\x00-\x1f\x7f:\#]*+)"  # three dots would end the document
_BEGINNING = rf"(?:{_FIRST}|-(?=[0-9A-Za-z.]))"
_PLAIN = rf"({_BEGINNING}[^\x00-\x1f\x7f:\#]*+(?:(?::(?![ \r\n])|(?<![ ])\#)[^\x00-\x1f\x7f:\#]*+)*)"
_PLAIN_IN_FLOW = rf"({_BEGINNING}[^\x00-\x1f\x7f:\#,\[\]{{}}]*+)"
_QUOTED = r""" "([^\x00-\x1f\x7f"\\]*+)" | '([^\x00-\x1f\x7f']*+(?:''[^\x00-\x1f\x7f']*+)*)' """
_END = r"[ ]*+(?:(?<=[ ])\#[^\x00-\x1f\x7f]*+)?\r?\n"
# In each of these the groups 2, 3 and 4 are a scalar: plain, between double quotes, between single ones.
_FIELD = regex(rf"[ ]*+{_KEY}:(?:[ ]++(?:{_PLAIN}|{_QUOTED}|(\[)))?(?(5)|{_END})", re.VERBOSE)
_ENTRY = regex(rf"[ ]*+(-)[ ]++(?:{_PLAIN}|{_QUOTED}){_END}", re.VERBOSE)
_ITEM = regex(rf"([ ]*+)(?:{_PLAIN_IN_FLOW}|{_QUOTED})[ ]*+(?=[,\]])", re.VERBOSE)
_CLOSING = regex(rf"[ ]*+\]({_END})", re.VERBOSE)
_BLANKS = regex(r"(?:[ ]*+(?:\#[^\x00-\x1f\x7f]*+)?\r?\n)*", re.VERBOSE)
_NOTHING, _PLAINLY, _SINGLY, _LISTED = 1, 2, 4, 5  # the last group of a match: what the value is


class _NotSimple(Exception):
    pass


def parse_simple(text: str, start: int, end: int, *, max_depth: int, max_values: int) -> Parsed | None:
    """Return what `yaml.parse` makes of the YAML from `start` to `end`.

    None when it is not certainly simple.
    """
    # There are never more values than characters.
    if end - start > max_values or (not text.isascii() and _UNUSUAL.search(text, start, end)):
        return None
    text = text[:end]
    at = _after_blanks(text, start)
    try:
        return Parsed(_read_mapping(text, at, 0, min(max_depth, _DEEPEST))[0] if at < end else None)
    except _NotSimple:
        return None


def _read_mapping(text: str, at: int, column: int, depth: int) -> tuple[Node, int]:
    """Read the fields from `at` on that begin in `column`; also return where the next line begins."""
    if depth < _LEVELS:
        raise _NotSimple
    members: list[Member] = []
    values: dict[str, Any] = {}
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None:
            behind = _after_blanks(text, at)
            if behind == at:
                raise _NotSimple
            at = behind
            continue
        key, (begin, stop) = field[1], field.span(1)
        if begin - at < column:
            break
        if begin - at > column or key in values or key[-1] == " " or stop - begin > _LONGEST_KEY:
            raise _NotSimple
        shape = field.lastindex
        if shape == _NOTHING:
            node, at = _read_value_below(text, field.end(), stop + 1, column, depth)
        elif shape == _LISTED:
            node, at = _flow_list(text, field.end())
        else:
            node, at = _read_scalar(field), field.end()
        values[key] = node.value
        members.append(Member(key, Span(begin, stop), node))
    whole = Span(members[0].key_span.start, members[-1].node.span.end)
    return Node(values, whole, "mapping", "block", tuple(members)), at


def _after_blanks(text: str, at: int) -> int:
    """Behind the empty lines and comments, if any, that begin at `at`."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _read_scalar(match: re.Match[str]) -> Node:
    shape = match.lastindex or 0
    value = match[shape]
    start, end = match.span(shape)
    if shape == _PLAINLY:
        if value[-1] == " ":
            value = value.rstrip(" ")
            end = start + len(value)
        return Node(resolve(value), Span(start, end), "scalar", "plain")
    if shape == _SINGLY:
        value = value.replace("''", "'")
    style: Style = "single" if shape == _SINGLY else "double"
    return Node(value, Span(start - 1, end + 1), "scalar", style)


def _flow_list(text: str, at: int) -> tuple[Node, int]:
    """Return the list whose opening bracket stands before `at`, and where its line has ended."""
    start = at - 1
    items: list[Node] = []
    while item := _ITEM.match(text, at):
        items.append(_read_scalar(item))
        at = item.end()
        if text[at] == "]":
            break
        at += 1
    closing = _CLOSING.match(text, at)
    if closing is None:
        raise _NotSimple
    return _make_list_node(items, Span(start, closing.start(1)), "flow"), closing.end()


def _read_value_below(text: str, at: int, colon: int, column: int, depth: int) -> tuple[Node, int]:
    """Read the value that stands below a field with none in its line; else null."""
    at = _after_blanks(text, at)
    entry = _ENTRY.match(text, at)
    if entry and entry.start(1) - at >= column:
        return _block_list(text, at, entry)
    field = _FIELD.match(text, at)
    if field and field.start(1) - at > column:
        return _read_mapping(text, at, field.start(1) - at, depth - 1)
    return Node(None, Span(colon, colon), "scalar", "plain"), at


def _block_list(text: str, at: int, entry: re.Match[str] | None) -> tuple[Node, int]:
    """Return the list whose first entry stands in the line at `at`, and where the lines after it begin."""
    start = entry.start(1) if entry else at
    column = start - at
    items = []
    while entry:
        if entry.start(1) - at != column:
            raise _NotSimple
        items.append(_read_scalar(entry))
        at = _after_blanks(text, entry.end())
        entry = _ENTRY.match(text, at)
    return _make_list_node(items, Span(start, items[-1].span.end), "block"), at


def _make_list_node(items: list[Node], span: Span, style: Style) -> Node:
    values = [item.value for item in items]
    return Node(values, span, "list", style, items=tuple(items))
