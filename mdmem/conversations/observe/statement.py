"""What was stated: when two texts say the same, and which messages a memory names as its source.

A bullet names them at its end, any other memory in its field `source`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.document.anchor import slug
from mdmem.document.bullets import bullets
from mdmem.document.document import Document, digest
from mdmem.document.edit import spliced
from mdmem.document.field import set_field
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import unescaped
from mdmem.errors import DocumentRefused, MemoryNotFound
from mdmem.kind import PREFERENCE, RULE
from mdmem.vault.paths import is_under

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.diagnostic import Span
    from mdmem.document.bullets import Bullet
    from mdmem.vault.plan import EditPlan
    from mdmem.vault.vault import Vault

MOST_SOURCES = 100
"""How many messages one memory names: what is said again after that many makes no difference."""

_LONGEST_NAME = 40
_END = ".。!！;；"  # noqa: RUF001 - the ends of Chinese sentences
# What a bullet as `bullet` writes it begins with, and one of the sources that end it.
_DATED = regex(r"(?:[-*+][ \t]+)?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}: )?")
SOURCE = regex(r"(?:[a-z]+|https?:/)/[^\s()]+")


def normal(value: Any) -> str:
    """Fold a value for comparison: a text without case, extra blanks, and the sign that ends its sentence.

    Texts are folded by NFKC; of a bullet that `bullet` has written, only what it says counts. Other values
    are compared as JSON.
    """
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    said, _ = said_in(value)
    return " ".join(unicodedata.normalize("NFKC", said).casefold().split()).rstrip(_END).rstrip()


def name_for(text: str) -> str:
    """Make a file name from a text; texts that are not the same get different names."""
    folded = normal(text)
    words = "-".join(filter(None, slug(folded).split("-")))
    if words.replace("-", " ") == folded and len(words) <= _LONGEST_NAME:
        return words
    hashed = digest(folded.encode("utf-8", "replace"))[:8]
    return f"{words[:_LONGEST_NAME].rstrip('-')}-{hashed}".lstrip("-")


# -- bullets that say where they come from -------------------------------------------------------------------


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
    """Find the bullets of a memory that name sources, with these."""
    if document.is_json:
        return
    for each in bullets(document, document.body_span):
        _, sources = said_in(document.text[slice(*each.head)])
        if sources:
            yield each, sources


# -- the field `source` -----------------------------------------------------------------------------------


def attributed(vault: Vault, plan: EditPlan, sources: Sequence[str]) -> EditPlan:
    """Add sources to the field `source` of every memory that a plan changes: type `conversation`, and ids.

    A memory with a source of another kind stays as it is, and so does one that is not Markdown.
    """
    changes = []
    for change in plan.changes:
        after = change.after(vault.config.limits)
        takes_source = after and not after.is_json and after.frontmatter.takes_fields
        known = sources_of(after) if after and takes_source else None
        new = [each for each in dict.fromkeys(sources) if known is not None and each not in known]
        if after and known is not None and new and len(known) < MOST_SOURCES:
            source = {"type": "conversation", "ids": [*known, *new][:MOST_SOURCES]}
            content = spliced(after, set_field(after, ("source",), source)).data
            changes.append(dataclasses.replace(change, content=content, edits=(), merge=False))
        else:
            changes.append(change)
    return dataclasses.replace(plan, changes=tuple(changes))


def sources_of(document: Document) -> tuple[str, ...] | None:
    """List the messages that a memory names as its source; None where it names something else."""
    source = document.fields.get("source")
    if source is None:
        return ()
    if not isinstance(source, dict) or source.get("type") != "conversation":
        return None
    ids = source.get("ids")
    return tuple(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else ()


# -- what stands in a vault ------------------------------------------------------------------------------


class Standing(NamedTuple):
    """A statement in memory: the memory, and the place of its bullet where it is one of several."""

    document: Document
    span: Span | None = None

    @property
    def sources(self) -> tuple[str, ...] | None:
        """The messages that it names as its source; None where it names something else."""
        if self.span is None:
            return sources_of(self.document)
        return said_in(self.document.text[slice(*self.span)])[1]


def read_memory(vault: Vault, path: str) -> Document | None:
    """Read a memory; None where there is none, or none that can be read."""
    with contextlib.suppress(DocumentRefused, MemoryNotFound):
        document = vault.find(path)
        if document and document.frontmatter.takes_fields:
            return document
    return None


def statements_in(note: Document) -> dict[str, Span]:
    """Find the bullets of a note: the first one of each statement, by its folded text."""
    found: dict[str, Span] = {}
    for each in bullets(note, note.body_span):
        said, _ = said_in(note.text[slice(*each.head)])
        found.setdefault(normal(unescaped(said)), each.head)
    return found


def find_standing(vault: Vault, place: str, said: str) -> Standing | None:
    """Find what says the same as a text.

    Args:
        vault: where to look.
        place: a note, of which each bullet is a statement; a preference; or a folder of preferences or rules.
        said: the text.
    """
    wanted = normal(said)
    if place.endswith(".md") and not is_under(place, PREFERENCE.folder):
        note = read_memory(vault, place)
        span = statements_in(note).get(wanted) if note else None
        return Standing(note, span) if note and span else None
    paths = (
        [place] if place.endswith(".md") else [found.path for found in vault.walk(place) if not found.problem]
    )
    for path in paths:
        document = read_memory(vault, path) if path.endswith(".md") else None
        if document and _stated_by(document) == wanted:
            return Standing(document)
    return None


def _stated_by(document: Document) -> str | None:
    is_rule = is_under(document.path, RULE.folder)
    stated = unescaped(document.body.strip()) if is_rule else document.fields.get("value")
    return normal(stated) if isinstance(stated, str) else None
