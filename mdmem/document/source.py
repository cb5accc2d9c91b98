"""Sources: which messages a memory says that it comes from, and when two texts say the same.

A bullet names them at its end, any other memory in its field `source`.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from mdmem.document.bullets import Bullet, bullets
from mdmem.document.document import Document
from mdmem.document.moment import DAY
from mdmem.document.text.regex import regex

MOST_SOURCES = 100
"""How many messages one memory names: what is said again after that many makes no difference."""

_END = ".。!！;；"  # noqa: RUF001 - the ends of Chinese sentences
# What a bullet as `bullet` writes it begins with, and one of the sources that end it.
_DATED = regex(rf"(?:[-*+][ \t]+)?(?:{DAY}: )?")
SOURCE = regex(r"(?:[a-z]+|https?:/)/[^\s()]+")


def normal(value: Any) -> str:
    """Fold a value for comparison: a text without case, extra blanks, and the sign that ends its sentence.

    Texts are folded by NFKC, and a bullet of `bullet` counts without its day and sources. Other values are
    compared as JSON.
    """
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    said, _ = said_in(value)
    return " ".join(unicodedata.normalize("NFKC", said).casefold().split()).rstrip(_END).rstrip()


def bullet(day: str, text: str, sources: Sequence[str]) -> str:
    """Write a bullet with its day and its sources: `- 2026-01-31: Use SQLite. (sessions/t1#3)`."""
    return f"- {day}: {text} ({' '.join(sources)})" if sources else f"- {day}: {text}"


def said_in(text: str) -> tuple[str, tuple[str, ...]]:
    """Split a bullet into what it says, without its marker and its day, and its sources."""
    stripped = text.strip()
    begun = _DATED.match(stripped)
    said = stripped[begun.end() :] if begun else stripped
    head, opened, tail = f" {said}".rpartition(" (")
    named = tail[:-1].split(" ")
    if not opened or not said.endswith(")") or not all(map(SOURCE.fullmatch, named)):
        return said, ()
    return head[1:], tuple(named)


def with_sources(text: str, sources: Sequence[str]) -> str:
    """Add sources to a bullet."""
    _, known = said_in(text)
    more = [each for each in sources if each not in known]
    if not more:
        return text
    stripped = text.rstrip()
    end = f"({' '.join(known)})" if known else ""
    head = stripped.removesuffix(end).rstrip()
    return f"{head} ({' '.join([*known, *more])}){text[len(stripped) :]}"


def sourced_bullets(document: Document) -> Iterator[tuple[Bullet, tuple[str, ...]]]:
    """Yield the bullets of a memory that name sources, with these."""
    if document.is_json:
        return
    for each in bullets(document, document.body_span):
        _, sources = said_in(document.text[slice(*each.head)])
        if sources:
            yield each, sources


def sources_of(document: Document) -> tuple[str, ...] | None:
    """List the messages that a memory names as its source; return None where it names something else."""
    source = document.fields.get("source")
    if source is None:
        return ()
    if not isinstance(source, dict) or source.get("type") != "conversation":
        return None
    ids = source.get("ids")
    return tuple(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else ()
