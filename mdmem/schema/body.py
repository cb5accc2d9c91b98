"""The keyword `x-body`: what the Markdown below the fields must have.

    "x-body": {"sections": ["Context", "Decision"], "maxBytes": 20000}

Each of `sections` must be the title of a heading, of any level, in whatever case; `maxBytes` bounds the body
in bytes of UTF-8. The keyword speaks about the memory as a whole: below the top of it, and in a JSON memory,
which has no body, it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mdmem.text.document import Document

KEYWORD = "x-body"


class Fields(dict[str, Any]):
    """The fields of a Markdown memory as a validator gets them: with the document that they stand in."""

    document: Document

    def __init__(self, fields: dict[str, Any], document: Document) -> None:
        super().__init__(fields)
        self.document = document


class Body(str):
    """The body of a Markdown memory as a validator gets it, where the schema is about a text."""

    __slots__ = ("document",)
    document: Document

    @classmethod
    def of(cls, document: Document) -> Body:
        """The body of `document`."""
        # The blank lines around it belong to the layout of the file, not to the text that a schema is about.
        body = cls(document.body.strip("\r\n"))
        body.document = document
        return body


class Shortfall(NamedTuple):
    """What a body lacks: a section of this title, or (`section` empty) a size of at most `limit` bytes."""

    section: str = ""
    size: int = 0
    limit: int = 0


def shortfalls(document: Document, wanted: dict[str, Any]) -> Iterator[Shortfall]:
    """What the body of `document` lacks of what `x-body` wants."""
    titles = {_folded(heading.title) for heading in document.headings}
    for section in wanted.get("sections", ()):
        if _folded(section) not in titles:
            yield Shortfall(section=section)
    limit = wanted.get("maxBytes")
    size = len(document.body.encode("utf-8"))
    if limit is not None and size > limit:
        yield Shortfall(size=size, limit=limit)


def faults(wanted: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with the value of the keyword: where in it, and what it should be."""
    if not isinstance(wanted, dict):
        yield (), '`x-body` must be a mapping such as {"sections": ["Context"], "maxBytes": 20000}'
        return
    for key in sorted(wanted.keys() - {"sections", "maxBytes"}):
        yield (key,), f"`x-body` has `sections` and `maxBytes`; it knows no `{key}`"
    sections = wanted.get("sections", [])
    if not isinstance(sections, list) or not all(isinstance(s, str) and s.strip() for s in sections):
        yield ("sections",), "`x-body.sections` must be a list of heading titles"
    limit = wanted.get("maxBytes", 0)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        yield ("maxBytes",), "`x-body.maxBytes` must be a whole number of bytes, 0 or more"


def _folded(title: str) -> str:
    return " ".join(title.split()).casefold()
