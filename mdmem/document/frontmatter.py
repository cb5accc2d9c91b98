"""Frontmatter: the fields at the very beginning of a Markdown text.

They are YAML between two lines of `---` (the last may be `...`), TOML between two lines of `+++`, or
a JSON object. What stands between such lines and has no fields is Markdown.

Nearly all of it is read here, a line at a time: fields of one line, `key: plain`, `key: "quoted"`,
`key: [a, b]`, and `key:` above lines of `- item` or of fields. What is read here is read as
`document.yaml` reads it, places included, several times as fast and without importing a YAML reader. The
patterns take less than YAML does: what they do not match is left to that module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from json.decoder import JSONDecoder
from types import MappingProxyType
from typing import Any, NamedTuple

from mdmem.diagnostic import Span, find_toml_place
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.document.tree import Flaw, Member, Node, Parsed, Style, TooDeep, resolve

BOM = "\ufeff"
# Lines before the first field: blank ones, comments, and the mark of a conflict that a merge left.
_BLANKS_BEFORE = r"(?:[ \t]*+(?:(?:\#|<{7})[^\r\n]*+)?(?:\r\n|\n|\r))*+"
_NAME = r"""(?:[\w$-]++|"[^"\r\n]*+"|'[^'\r\n]*+')"""
_OPENING = regex(r"""(?:---|\+\+\+)[ \t]*(?:\r\n|\n|\r)|\{(?=\s*["}])""")
# That the marks come first lets the search jump from one to the next.
_CLOSING_DASHES = regex(r"---(?<=[\n\r]---)[ \t]*(?:\r\n|\n|\r|\Z)")
_CLOSING_DOTS = regex(r"\.\.\.(?<=[\n\r]\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)")
_CLOSING_PLUSES = regex(r"\+\+\+(?<=[\n\r]\+\+\+)[ \t]*(?:\r\n|\n|\r|\Z)")
_LINE_REST = regex(r"[ \t]*(?:\r\n|\n|\r|\Z)")
# What two lines of marks enclose is frontmatter where it is empty, or its first line begins with a name.
_BEGINS_YAML = regex(rf"{_BLANKS_BEFORE}(?:{_NAME}:(?:[ \t\r\n]|\Z)|\Z)")
_BEGINS_TOML = regex(rf"{_BLANKS_BEFORE}[ \t]*+(?:\[|{_NAME}(?:\.{_NAME})*+[ \t]*=|\Z)")
# A first line of dashes with no second one is a thematic break unless a key follows it.
_KEY_FOLLOWS = regex(rf"{_NAME}:(?:[ \t\r\n]|\Z)")
_LONGEST_GUESSED = 64 * 1024  # code points; what is longer is only read where it begins with a name
_HUGE = 2**63
_MOST_DOTS = 32  # in a key of TOML: its reader takes the square of their number
_DOTTED = regex(rf"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){{{_MOST_DOTS}}}""")
_READ_ELSEWHERE = ("title", "tags", "date", "aliases")
_FORMS = {"-": "YAML", "+": "TOML", "{": "JSON"}
_BROKEN = "invalid-yaml"
TEXTS = frozenset(("title", "description", "tags", "tier", "id", "aliases", "type"))
"""The fields that are texts, or lists of texts, whatever a value looks like: `title: 1984`."""


class Frontmatter(NamedTuple):
    """The frontmatter of a text.

    Attributes:
        span: the lines of marks, or a JSON object, and what is between them, line ends included; empty, at
            the place where the body begins, when there is none.
        inner: what is between the two lines; a JSON object.
        node: the mapping; where it cannot be read as a whole, the fields that can. None when there is none,
            and of TOML and JSON.
        form: what it is written in: YAML, TOML or JSON.
        elsewhere: of TOML and JSON, the fields that count.
    """

    span: Span
    inner: Span
    node: Node | None = None
    flaws: tuple[Flaw, ...] = ()
    form: str = "YAML"
    elsewhere: Mapping[str, Any] = MappingProxyType({})

    @property
    def present(self) -> bool:
        """Whether there is frontmatter at all."""
        return self.span.end > self.span.start

    @property
    def values(self) -> dict[str, Any]:
        """The fields by name; those that cannot be read are missing."""
        return self.node.value if self.node else dict(self.elsewhere)

    @property
    def takes_fields(self) -> bool:
        """Whether fields can be set in it, or where there is none."""
        return self.form == "YAML" and not self.flaws

    @property
    def unread(self) -> str:
        """Why some of it cannot be read; empty where all can."""
        return next((flaw.message for flaw in self.flaws if flaw.code in (_BROKEN, "invalid-toml")), "")


def beginning(text: str) -> int:
    """Return where a text begins: behind its byte-order mark, if it has one."""
    return len(BOM) if text.startswith(BOM) else 0


def locate(text: str) -> tuple[Span, Span]:
    """Return the spans of the frontmatter and of the text between its lines; empty ones without any."""
    start = beginning(text)
    opening = _OPENING.match(text, start)
    if not opening:
        return Span(start, start), Span(start, start)
    at, form = opening.end(), text[start]
    if form == "{":
        at, end = start, _find_json_end(text, start)
        closing = _LINE_REST.match(text, end)
        is_fields = end > start
    elif form == "-":
        dashes = _CLOSING_DASHES.search(text, at)
        closing = _CLOSING_DOTS.search(text, at, dashes.start() if dashes else len(text)) or dashes
        is_fields = closing is not None and (
            _BEGINS_YAML.match(text, at, closing.start()) is not None
            or _reads_as_mapping(text, Span(at, closing.start()))
        )
    else:
        closing = _CLOSING_PLUSES.search(text, at)
        is_fields = closing is not None and _BEGINS_TOML.match(text, at, closing.start()) is not None
    if not closing or not is_fields or (form != "-" and closing.end() - start > _LONGEST_GUESSED):
        return Span(start, start), Span(start, start)
    return Span(start, closing.end()), Span(at, closing.start())


def _find_json_end(text: str, start: int) -> int:
    """Return where the JSON object that begins at `start` ends; `start` where it is none."""
    try:
        return JSONDecoder().raw_decode(text[: start + _LONGEST_GUESSED], start)[1]
    except (ValueError, RecursionError):
        return start


def _reads_as_mapping(text: str, inner: Span) -> bool:
    if inner.end - inner.start > _LONGEST_GUESSED:
        return False
    try:
        node, flaws = _parse_yaml(text, inner, max_depth=32, max_values=10_000)
    except TooDeep:
        return True  # which is told where it is read
    return node is not None and node.kind == "mapping" and not any(flaw.code == _BROKEN for flaw in flaws)


def parse(
    text: str, *, max_depth: int, max_values: int, located: tuple[Span, Span] | None = None
) -> Frontmatter:
    """Parse the frontmatter of a Markdown `text`, `located` there already or found first.

    If it is not YAML as a whole, only fields count that can be read alone: they stand at the beginning of a
    line, once, and behind nothing that is left open.

    Raises:
        TooDeep: its values pass a limit.
    """
    span, inner = located or locate(text)
    start, end = span
    if start == end:
        return Frontmatter(span=span, inner=inner, flaws=_find_unclosed(text, start))
    if text[start] != "-":
        return _read_elsewhere(text, span, inner)

    node, flaws = _parse_yaml(text, inner, max_depth=max_depth, max_values=max_values)
    if flaws and any(flaw.code == _BROKEN for flaw in flaws):
        node = _read_sound_fields(text, inner, max_depth=max_depth, max_values=max_values)
    is_mapping = node is not None and node.kind == "mapping"
    return Frontmatter(span, inner, _keep_texts(text, node) if node and is_mapping else None, flaws)


def _parse_yaml(text: str, inner: Span, *, max_depth: int, max_values: int) -> Parsed:
    if simple := parse_simple(text, *inner, max_depth=max_depth, max_values=max_values):
        return simple
    # A third of the start-up of a command that does without it would go into importing a YAML reader.
    from mdmem.document import yaml  # noqa: PLC0415

    return yaml.parse(text[slice(*inner)], inner.start, max_depth=max_depth, max_values=max_values)


def _find_unclosed(text: str, start: int) -> tuple[Flaw, ...]:
    opening = _OPENING.match(text, start) if text.startswith("---", start) else None
    if not opening or not _KEY_FOLLOWS.match(text, opening.end()):
        return ()
    message, hint = "the frontmatter that begins here is never closed", "add a line of `---`"
    return (Flaw(Span(start, start + 3), "frontmatter-unclosed", message, hint, "frontmatter"),)


def _keep_texts(text: str, node: Node) -> Node:
    """Return fields in which those of `TEXTS` hold the text as it is written."""
    misread = [key for key, _, value in node.members if key in TEXTS and _is_misread(value.value)]
    if not misread:
        return node
    members = tuple(
        member._replace(node=_as_written(text, member.node)) if member.key in misread else member
        for member in node.members
    )
    return node._replace(value={member.key: member.node.value for member in members}, members=members)


def _is_misread(value: Any) -> bool:
    return any(map(_is_misread, value)) if isinstance(value, list) else isinstance(value, int | float)


def _as_written(text: str, node: Node) -> Node:
    if node.kind == "list":
        items = tuple(_as_written(text, item) if item.kind == "scalar" else item for item in node.items)
        return node._replace(value=[item.value for item in items], items=items)
    if node.kind != "scalar" or node.anchored or not _is_misread(node.value):
        return node
    return node._replace(value=text[slice(*node.span)])


# ---------------------------------------------------------------------------------------- TOML and JSON


def _read_elsewhere(text: str, span: Span, inner: Span) -> Frontmatter:
    """Read frontmatter that is not YAML: a few of its fields, and these only where they are plain."""
    written, form = text[slice(*inner)], _FORMS[text[span.start]]
    try:
        fields = JSONDecoder().decode(written) if form == "JSON" else _read_toml(written)
    except (ValueError, RecursionError) as error:
        place, at = find_toml_place(written, error), inner
        if place:
            # The message counts from the first field, not from the first line of the memory.
            error = ValueError(str(error).rpartition(" (at ")[0])
            before = sum(map(len, written.split("\n")[: place.line - 1])) + place.line - 1
            start = inner.start + before + place.column - 1
            at = Span(start, start)
        flaw = Flaw(at, "invalid-toml", f"not TOML: {error}", "fix the TOML", "toml")
        return Frontmatter(span, inner, flaws=(flaw,), form=form)
    known = {key: value for key in _READ_ELSEWHERE if (value := _as_plain(fields.get(key))) is not None}
    return Frontmatter(span, inner, form=form, elsewhere=known)


def _read_toml(written: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - start-up

    if _DOTTED.search(written):
        raise ValueError("a key of too many parts")
    return tomllib.loads(written)


def _as_plain(value: Any) -> Any:
    """Return a text, a date as a text, a small number, or a list of these; None for other values."""
    if isinstance(value, list):
        return [plain for item in value if isinstance(plain := _as_plain(item), str)]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and abs(value) < _HUGE:
        return str(value).lower() if isinstance(value, bool) else value
    return value.isoformat() if hasattr(value, "isoformat") else None


# ------------------------------------------------------------------------------------ what can be read of it


_STEM = regex(rf"({_NAME}|[^\r\n:]*+)[ \t]*:(?=[ \t\r\n]|\Z)")
_UNOPENED = regex(r"(?:[ \t]|#|-[ \t\r\n])")  # a line that begins no field
_KEY_BEFORE = rf"""(?:(?:{_NAME}|[^\r\n:"'\[{{]*+)[ \t]*+:[ \t]++)?(?:[!&][^ \t\r\n]*+[ \t]++)*+"""
_OPENED = regex(rf"""^[ \t]*+(?:-[ \t]++)*+{_KEY_BEFORE}(?=["'\[{{])""", re.MULTILINE)
_BRACKET = regex(r""""(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'|[\[\]{}"']""", re.DOTALL)
_BARE_HEADER = regex(r"[ \t]*[|>][-+0-9]*[ \t]*(?:#[^\r\n]*)?[\r\n]*\Z")
_MOST_FIELDS = 500  # that are read one by one


def _read_sound_fields(text: str, inner: Span, *, max_depth: int, max_values: int) -> Node | None:
    """Read each field that can be read by itself; None without any."""
    starts = [
        at
        for at in (inner.start, *(end.end() for end in LINE_END.finditer(text, *inner)))
        if at < inner.end and text[at] not in "\r\n" and not _UNOPENED.match(text, at)
    ]
    found: dict[str, Member | None] = {}
    certain = inner.start  # where nothing is open
    for at, end in pairwise([*starts, inner.end]) if len(starts) <= _MOST_FIELDS else ():
        if at < certain:
            continue
        stem = _STEM.match(text, at, end)
        member = _read_field(text, Span(at, end), max_depth=max_depth, max_values=max_values)
        key = member.key if member else stem[1].strip("\"'") if stem else ""
        found[key] = None if key in found else member
        if member is None:
            certain = _find_open_end(text, Span(at, end), inner.end)
        if stem and _BARE_HEADER.match(text, stem.end(), end):
            break  # what follows may have been meant as its text
    members = tuple(member for member in found.values() if member)
    if not members:
        return None
    values = {member.key: member.node.value for member in members}
    whole = Span(members[0].key_span.start, members[-1].node.span.end)
    return Node(values, whole, "mapping", "block", members)


def _read_field(text: str, lines: Span, *, max_depth: int, max_values: int) -> Member | None:
    try:
        node, flaws = _parse_yaml(text, lines, max_depth=max_depth, max_values=max_values)
    except TooDeep:
        return None
    members = node.members if node and not flaws else ()
    return members[0] if len(members) == 1 else None


def _find_open_end(text: str, lines: Span, end: int) -> int:
    """Return where a quote or bracket that lines leave open is closed; `end` where it never is."""
    for opened in _OPENED.finditer(text, *lines):
        depth, closed = 0, end
        for token in _BRACKET.finditer(text, opened.end(), end):
            if token[0] in "[{":
                depth += 1
            elif token[0] in "]}":
                depth -= 1
            if token[0] in "\"'" or depth <= 0:
                closed = end if token[0] in "\"'" else token.end()
                break
        if closed > lines.end:
            return closed
    return lines.start


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
    """Read YAML as `yaml.parse` does; return None where it is not certainly simple."""
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
    """Return the place behind empty lines and comments."""
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
    """Read the list behind its opening bracket; also return where the next line begins."""
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
    """Read the value below a field that has none in its line; also return where the next line begins."""
    at = _after_blanks(text, at)
    entry = _ENTRY.match(text, at)
    if entry and entry.start(1) - at >= column:
        return _block_list(text, at, entry)
    field = _FIELD.match(text, at)
    if field and field.start(1) - at > column:
        return _read_mapping(text, at, field.start(1) - at, depth - 1)
    return Node(None, Span(colon, colon), "scalar", "plain"), at


def _block_list(text: str, at: int, entry: re.Match[str] | None) -> tuple[Node, int]:
    """Read the list that begins with an entry; also return where the next line begins."""
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
