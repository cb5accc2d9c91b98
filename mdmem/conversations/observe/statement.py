"""Statements: what says the same as a text, among the memories that stand in a vault."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.anchor import slug
from mdmem.document.bullets import bullets
from mdmem.document.document import Document, digest
from mdmem.document.source import normal, said_in, sources_of
from mdmem.document.text.tokens import unescaped
from mdmem.errors import DocumentRefused, MemoryNotFound
from mdmem.kind import PREFERENCE, RULE
from mdmem.vault.paths import is_under
from mdmem.vault.vault import Vault

_LONGEST_NAME = 40


def name_for(text: str) -> str:
    """Make a file name from a text; texts that are not the same get different names."""
    folded = normal(text)
    words = "-".join(filter(None, slug(folded).split("-")))
    if words.replace("-", " ") == folded and len(words) <= _LONGEST_NAME:
        return words
    hashed = digest(folded.encode("utf-8", "replace"))[:8]
    return f"{words[:_LONGEST_NAME].rstrip('-')}-{hashed}".lstrip("-")


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
    """Find the statement that says the same as a text.

    Args:
        place: a note (each of its bullets is a statement), a preference, or a folder of preferences or rules.
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
