"""What was stated: whether two texts say the same, and which messages a memory names as its source.

A bullet names them at its end, any other memory in its field `source`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import DocumentRefused, MemoryNotFound
from mdmem.text.anchor import slug
from mdmem.text.bullets import bullets
from mdmem.text.document import Document, digest
from mdmem.text.edit import spliced
from mdmem.text.field import set_field
from mdmem.text.regex import regex
from mdmem.text.tokens import unescaped

if TYPE_CHECKING:
    from mdmem.diagnostic import Span
    from mdmem.vault.plan import Change
    from mdmem.vault.vault import Vault
    from mdmem.vault.walk import Found

MOST_SOURCES = 100
"""How many messages one memory names: what is said again after that many makes no difference."""

_LONGEST_NAME = 40
_LONGEST_TEXT = 10_000  # characters of what is compared
_MOST_KEPT = 2_000  # bullets of which it is remembered what they say
_END = ".。!！;；"  # noqa: RUF001 - the ends of Chinese sentences
# What a bullet as `bullet` writes it begins with, and one of the sources that end it.
_DATED = regex(r"(?:[-*+][ \t]+)?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}: )?")
SOURCE = regex(r"[a-z]+/[^\s()]+")

_IN_ORDER = 0.8  # of the words of both, those that stand in one order
_SLIP = 0.88  # of the letters of two words
_LEAST_LETTERS = 5
_FILLING = frozenset(("a", "an", "the", "please", "just", *"请了的吧呢啊"))
_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Chinese characters
_WORD = regex(rf"[{_SIGNS}]|[^{_SIGNS}]+")
_ENDS = ".,;:!?\"'()[]<>«»“”‘’。，、；：！？（）「」…"  # noqa: RUF001 - those of Chinese text


# -- the same in other words ------------------------------------------------------------------------------


def normal(value: Any) -> str:
    """A value as it is compared: a text without case, doubled blanks, and the sign that ends its sentence.

    Texts are folded by NFKC; of a bullet that `bullet` has written, what it says counts. Other values are
    compared as JSON.
    """
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    said, _ = said_in(value)
    return " ".join(unicodedata.normalize("NFKC", said).casefold().split()).rstrip(_END)


def say_the_same(one: str, other: str) -> bool:
    """Whether two texts of one kind say the same.

    They do where they are equal once folded, or where both have the same words, four of five in one order
    (`difflib`, ratio 0.8), leaving articles and the like out. Words of five letters and more may differ by a
    slip (ratio 0.88, the same first letter). So "use 2 spaces" and "use 4 spaces" differ, and so do texts of
    which one says "not".
    """
    return _are_alike(_folded(one), _folded(other))


class _Folded(NamedTuple):
    """A text as it is compared: normal, and by its words."""

    normal: str
    words: list[str]


def _folded(text: str) -> _Folded:
    return _Folded(normal(text), _words(text))


def _are_alike(one: _Folded, other: _Folded) -> bool:
    """Whether two texts say the same; see `say_the_same`."""
    if one.normal == other.normal:
        return True
    first, second = one.words, other.words
    if not first or len(first) != len(second) or not all(map(_may_slip, set(first) ^ set(second))):
        return False
    left, right = (sorted((a - b).elements()) for a, b in _both(Counter(first), Counter(second)))
    if not all(map(_is_slip, left, right)):
        return False
    # What differs by a slip counts as the same word.
    spelled = dict(zip(right, left, strict=True))
    second = [spelled.get(word, word) for word in second]
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= _IN_ORDER


def _both(one: Counter[str], other: Counter[str]) -> tuple[tuple[Counter[str], Counter[str]], ...]:
    return (one, other), (other, one)


def _may_slip(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS and word.isalpha()


def _is_slip(one: str, other: str) -> bool:
    if not (_may_slip(one) and _may_slip(other) and one[0] == other[0]):
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _SLIP


def _words(text: str) -> list[str]:
    """The words of a text, folded; of text without blanks between words, the characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    parts = (part.strip(_ENDS) for word in folded.split() for part in _WORD.findall(word))
    return [part for part in parts if part and part not in _FILLING]


def name_for(text: str) -> str:
    """A name for a file that says this; what is cut off stands for itself as a hash."""
    words = "-".join(filter(None, slug(normal(text)).split("-")))
    if words and len(words) <= _LONGEST_NAME:
        return words
    return (
        f"{words[:_LONGEST_NAME].rstrip('-')}-{digest(normal(text).encode('utf-8', 'replace'))[:8]}".lstrip(
            "-"
        )
    )


# -- bullets that say where they come from -------------------------------------------------------------------


def bullet(day: str, text: str, sources: Sequence[str]) -> str:
    """A bullet with its day and its sources: `- 2026-01-31: Use SQLite. (sessions/t1#3)`."""
    return f"- {day}: {text} ({' '.join(sources)})" if sources else f"- {day}: {text}"


def said_in(text: str) -> tuple[str, tuple[str, ...]]:
    """What a bullet says, without its marker and its day; and its sources."""
    stripped = text.strip()
    begun = _DATED.match(stripped)
    said = stripped[begun.end() :] if begun else stripped
    head, opened, tail = f" {said}".rpartition(" (")
    named = tail[:-1].split(" ")
    if not opened or not said.endswith(")") or not all(map(SOURCE.fullmatch, named)):
        return said, ()
    return head[1:], tuple(named)


def with_sources(text: str, sources: Sequence[str]) -> str:
    """A bullet with further sources."""
    _, known = said_in(text)
    more = [each for each in sources if each not in known]
    if not more:
        return text
    stripped = text.rstrip()
    end = f"({' '.join(known)})" if known else ""
    head = stripped.removesuffix(end).rstrip()
    return f"{head} ({' '.join([*known, *more])}){text[len(stripped) :]}"


def stated_in(text: str) -> str:
    """What a bullet says, read as Markdown."""
    return unescaped(said_in(text)[0])


# -- the field `source` -----------------------------------------------------------------------------------


def attributed(change: Change, sources: Sequence[str], after: Document | None) -> Change:
    """A change that also says where the value was said, in the field `source`: type `conversation`, and ids.

    A memory with a source of another kind stays as it is, and so does one that is not Markdown.
    """
    if after is None or after.is_json or after.frontmatter.flaws:
        return change
    known = sources_of(after)
    new = [each for each in dict.fromkeys(sources) if known is not None and each not in known]
    if known is None or not new or len(known) >= MOST_SOURCES:
        return change
    source = {"type": "conversation", "ids": [*known, *new][:MOST_SOURCES]}
    return dataclasses.replace(
        change, content=spliced(after, set_field(after, ("source",), source)).data, edits=(), merge=False
    )


def sources_of(document: Document) -> tuple[str, ...] | None:
    """The messages that a memory names as its source; None where it names something else."""
    source = document.fields.get("source")
    if source is None:
        return ()
    if not isinstance(source, dict) or source.get("type") != "conversation":
        return None
    ids = source.get("ids")
    return tuple(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else ()


# -- what stands in a vault ------------------------------------------------------------------------------


class Standing(NamedTuple):
    """What says something: a memory, its value or the text of its bullet, and the place of that one."""

    document: Document
    text: str
    span: tuple[int, int] | None = None


def readable(vault: Vault, path: str) -> Document | None:
    """A memory; None where there is none, or none that can be read."""
    with contextlib.suppress(DocumentRefused, MemoryNotFound):
        document = vault.find(path)
        if document and not document.frontmatter.flaws:
            return document
    return None


class FolderTexts:
    """What the memories of folders say, each read again only where its file is another one.

    `text_of` gives what counts of a memory; None where nothing does.
    """

    def __init__(self, vault: Vault, text_of: Callable[[Document], object]) -> None:
        self._vault = vault
        self._text_of = text_of
        self._known: dict[str, dict[str, tuple[Found, _Folded | None]]] = {}

    def that_say(self, folder: str, said: str) -> Iterator[Standing]:
        """The Markdown memories in a folder that say the same as a text."""
        known, wanted = self._known.get(folder, {}), _folded(said)
        now = self._known[folder] = {}
        for met in self._vault.walk(folder):
            if not met.problem and met.path.endswith(".md"):
                kept = known.get(met.path)
                now[met.path] = kept if kept and kept[0] == met else (met, self._read(met.path))
        alike = [path for path, (_, folded) in now.items() if folded and _are_alike(folded, wanted)]
        for document in filter(None, (readable(self._vault, path) for path in alike)):
            yield Standing(document, str(self._text_of(document)))

    def _read(self, path: str) -> _Folded | None:
        document = readable(self._vault, path)
        text = self._text_of(document) if document else None
        # What is captured is shorter by far.
        return _folded(text) if isinstance(text, str) and len(text) <= _LONGEST_TEXT else None


class NoteTexts:
    """What the bullets of notes say, those of each read again only where it is another text."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, list[tuple[Span, str]]]] = {}

    def said(self, document: Document) -> list[tuple[Span, str]]:
        """Where each bullet stands, and what it says."""
        known, said = self._known.get(document.path, ("", []))
        if known != document.hash:
            heads = [each.head for each in bullets(document, document.body_span)]
            said = [(head, _stated(document.text[slice(*head)])) for head in heads]
            self._known[document.path] = document.hash, said
        return said

    def that_say(self, document: Document | None, said: str) -> Iterator[Standing]:
        """The bullets of a memory that say the same as a text."""
        wanted = _folded(said)
        for head, text in self.said(document) if document else ():
            if document and _are_alike(_kept(text), wanted):
                yield Standing(document, document.text[slice(*head)], head)


# A note of many bullets is read again behind each that is added.
_stated, _kept = lru_cache(_MOST_KEPT)(stated_in), lru_cache(_MOST_KEPT)(_folded)
