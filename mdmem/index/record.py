"""A record: the rows of the database that say what one memory holds. Pure: a document in, rows out."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mdmem.diagnostic import Span
from mdmem.index.hit import day_of
from mdmem.text import anchor
from mdmem.text.citation import Citation
from mdmem.text.document import SUFFIXES, Document

if TYPE_CHECKING:
    from collections.abc import Mapping

Scalar: TypeAlias = str | int | float | None
Row: TypeAlias = tuple[Scalar, ...]

_LARGEST = 2**63 - 1  # SQLite's integers
_NOWHERE = Span(0, 0)


class Summary(NamedTuple):
    """What is kept of a memory as a whole.

    Attributes:
        title: its field `title`, else its first heading; empty without either.
        type: its field `type`.
        day: see `mdmem.index.hit.day_of`.
        dated: whether the memory itself says its day, so that the time of the file does not count.
        ident: its field `id`.
    """

    title: str
    type: str
    day: str
    dated: bool
    ident: str


class Record(NamedTuple):
    """The rows of one memory, each without the number of its document.

    Attributes:
        summary: of the memory as a whole.
        names: (kind, key): what a link can call it.
        fields: (n, key, value): the scalars of its fields by dotted keys, items of lists one by one.
        sections: (n, line, level, path, slug, loose); the path's titles on lines of their own.
        blocks: (n, id, line).
        links: (n, line, start, end, kind, embed, target, key, anchor, alias).
        citations: (n, line, start, end, path, first, last, symbol, pin, in_link, seen); what was first seen
            there is put in later, see `mdmem.index.sync`.
        tags: (n, line, start, name, key).
        urls: (n, line, start, url).
    """

    summary: Summary
    names: list[Row]
    fields: list[Row]
    sections: list[Row]
    blocks: list[Row]
    links: list[Row]
    citations: list[Row]
    tags: list[Row]
    urls: list[Row]


def record(document: Document, modified: float) -> Record:
    """What the database keeps of a memory.

    Args:
        document: the memory.
        modified: when its file was, in seconds since the epoch.

    Raises:
        TooNested, TooLarge: its fields cannot be read.
    """
    fields = document.fields
    headings = document.headings
    return Record(
        _summary(document.path, fields, headings[0].title if headings else "", modified),
        _names(document.path, fields),
        _fields(fields),
        _sections(document),
        [(n, block.id, block.line) for n, block in enumerate(document.blocks)],
        [
            (n, line, start, end, kind, embed, target, key_of(target), to, alias)
            for n, (kind, embed, (start, end), line, target, _, to, _, alias, _) in enumerate(document.links)
        ],
        [
            (n, c.line, *c.span, c.path, c.first, c.last, c.symbol, c.pin, c.in_link, "")
            for n, c in enumerate(document.citations)
        ],
        [(n, tag.line, tag.span.start, tag.name, tag_key(tag.name)) for n, tag in enumerate(document.tags)],
        [(n, url.line, url.span.start, url.url) for n, url in enumerate(document.urls)],
    )


def kept_citation(
    path: str,
    first: int | None = None,
    last: int | None = None,
    symbol: str = "",
    *,
    line: int = 0,
    pin: str = "",
    in_link: bool,
) -> Citation:
    """A citation as the database keeps it: what it cites, without where its parts stand."""
    return Citation(
        path=path,
        first=first,
        last=last,
        symbol=symbol,
        span=_NOWHERE,
        line=line,
        locator_span=_NOWHERE,
        pin=pin,
        pin_span=_NOWHERE,
        in_link=in_link,
    )


def key_of(target: str) -> str:
    """The key under which a link's target is looked up: its last part, without `.md`, NFC and casefolded."""
    last = target.rpartition("/")[2]
    last = last.removesuffix(SUFFIXES[0])
    return last.casefold() if last.isascii() else unicodedata.normalize("NFC", last).casefold()


def tag_key(name: str) -> str:
    """The key under which a tag is looked up: tags that differ only in case are one."""
    return name.casefold()


def keys_of(path: str, fields: Mapping[str, Any]) -> list[str]:
    """Every key that the target of a link to a memory may have."""
    return list(
        dict.fromkeys(key_of(path if kind == "stem" else str(key)) for kind, key in _names(path, fields))
    )


def _summary(path: str, fields: Mapping[str, Any], heading: str, modified: float) -> Summary:
    told = day_of(path, fields, None)
    day = told or day_of(path, {}, modified)
    get = fields.get
    return Summary(_text(get("title")) or heading, _text(get("type")), day, bool(told), _text(get("id")))


def _names(path: str, fields: Mapping[str, Any]) -> list[Row]:
    names: list[Row] = [("stem", key_of(path))]
    if ident := _text(fields.get("id")):
        names.append(("id", ident))
    given = fields.get("aliases")
    if given is None:
        return names
    aliases = map(_text, given if isinstance(given, list) else [given])
    names += [("alias", alias_key(alias)) for alias in aliases if alias]
    return list(dict.fromkeys(names))


def alias_key(alias: str) -> str:
    """The key of an alias, or of a target that may be one: NFC and casefolded, whole."""
    return alias.casefold() if alias.isascii() else unicodedata.normalize("NFC", alias).casefold()


def _sections(document: Document) -> list[Row]:
    sections = document.sections
    return [
        (n, line, section[0].level, "\n".join(path), slug, loose)
        for n, (section, (line, path, slug, loose)) in enumerate(
            zip(sections, anchor.headings(sections), strict=True)
        )
    ]


def _fields(fields: Mapping[str, Any]) -> list[Row]:
    """The scalars of the fields, each with its dotted key."""
    rows: list[Row] = []
    for key, value in fields.items():
        _add(rows, _storable(str(key)), value)
    return rows


def _add(rows: list[Row], key: str, value: Any) -> None:
    if isinstance(value, str):
        rows.append((len(rows), key, _storable(value)))
    elif isinstance(value, dict):
        for name, item in value.items():
            _add(rows, f"{key}.{_storable(str(name))}", item)
    elif isinstance(value, list):
        for item in value:
            _add(rows, key, item)
    elif isinstance(value, bool):
        rows.append((len(rows), key, "true" if value else "false"))
    elif isinstance(value, int) and abs(value) > _LARGEST:
        rows.append((len(rows), key, str(value)))
    else:
        rows.append((len(rows), key, value))


def _text(value: Any) -> str:
    """A field that is to be a text; what is a list or a mapping is none."""
    if value is None or isinstance(value, list | dict):
        return ""
    return _storable(value if isinstance(value, str) else str(value))


def _storable(text: str) -> str:
    """A text that SQLite can hold: JSON may escape half of a character, which no UTF-8 can say."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
