"""Passages: how a memory is cut for the text index, and what of a text can be searched for.

A passage is a paragraph, or some lines of a longer one, with the heading that it stands under.

A word is a run of letters and digits in lower case, without accents, cut down to its English stem. An
identifier is found by its parts, too, and a text without spaces by its pairs of neighbouring characters: they
are written out behind the text before it is taken apart. The index and its queries take texts apart in the
same way: every change of that needs another `mdmem.index.text_index.VERSION`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Span
from mdmem.index.hit import day_of, fields_of
from mdmem.kind import OBSERVATION
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import tantivy

    from mdmem.document.document import Document


# Letters of ASCII by their case, all else a space.
_CASES = bytes(
    ord("A") if chr(code) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" else ord("a" if chr(code).islower() else " ")
    for code in range(128)
).ljust(256)
_LETTERS = regex(r"(?<![A-Za-z])[A-Za-z]{3,64}(?![A-Za-z])")
_PARTS = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z]{2})|[A-Z]")
# Scripts that are written without spaces between words (Unicode 15.1, blocks): Thai and Lao, Myanmar, Khmer,
# kana, bopomofo, Han with its extensions; and Hangul, whose words carry their particles.
_UNSPACED = regex(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u318f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U000323af]+"
)
# What an English word may go on with: the stem of a longer word can be shorter than a beginning of it.
_ENDINGS = (
    "",
    "e",
    "s",
    "ed",
    "es",
    "al",
    "ly",
    "ing",
    "ion",
    "ity",
    "ness",
    "ment",
    "ation",
    "ional",
    "iveness",
)

Run = tuple[str, ...]


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """What takes a text apart that was written out."""
    import tantivy  # noqa: PLC0415 - start-up

    return _folding().filter(tantivy.Filter.stemmer("english")).build()


@cache
def _unstemmed() -> tantivy.TextAnalyzer:
    return _folding().build()


def _folding() -> tantivy.TextAnalyzerBuilder:
    import tantivy  # noqa: PLC0415 - start-up

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    return builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold())


# -- what is indexed --------------------------------------------------------------------------------------


def is_plain(text: str) -> bool:
    """Whether a text, and any stretch of it, is the same written out."""
    if _has_humps(text):
        return False
    return text.isascii() or (unicodedata.is_normalized("NFKC", text) and not _UNSPACED.search(text))


def written_out(text: str) -> str:
    """A text with what its words are found by besides, behind it."""
    found: list[str] = []
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        found = [pair for run in _UNSPACED.findall(text) for pair in _pairs(run)]
    more = _humps(text) + found
    if found:
        text = _UNSPACED.sub(" ", text)
    return f"{text}\n{' '.join(more)}" if more else text


def _humps(text: str) -> list[str]:
    """The parts of each identifier that is written with capital letters inside: `HTTP Server`."""
    if not _has_humps(text):
        return []
    # Most words are lower case behind their first letter, and have one part.
    humped = dict.fromkeys(word for word in _LETTERS.findall(text) if not word[1:].islower())
    parted = (" ".join(_PARTS.findall(word)) for word in humped)
    return [parts for parts in parted if " " in parts]


def _has_humps(text: str) -> bool:
    cases = text.encode("utf-8", "replace").translate(_CASES)
    return b"aA" in cases or b"AAaa" in cases


def _pairs(run: str) -> Iterator[str]:
    """The pairs of neighbours in a run, and its last character: each character so begins a word."""
    return (run[at : at + 2] for at in range(len(run)))


# -- what is asked for ------------------------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """The words that a text is found by, in order, as the index has them."""
    found: list[str] = []
    for stretch in _stretches(text):
        found += _pairs_of(stretch) if is_unspaced(stretch) else analyzer().analyze(written_out(stretch))
    return found


def runs_of(text: str) -> list[list[Run]]:
    """The words of a phrase in a row: for each stretch of it in one kind of script, the runs it may be."""
    found: list[list[Run]] = []
    for stretch in _stretches(text):
        if is_unspaced(stretch):
            found.append([run for run in [tuple(_pairs_of(stretch))] if run])
            continue
        parted = _LETTERS.sub(lambda word: " ".join(_PARTS.findall(word[0])), stretch)
        runs = dict.fromkeys(tuple(analyzer().analyze(each)) for each in (stretch, parted))
        found.append([run for run in runs if run])
    return [runs for runs in found if runs]


def beginnings(text: str) -> list[str]:
    """What the words that begin so begin with in the index; behind it, stems that are shorter than it."""
    beginning = folded(text)
    if not beginning:
        return []
    stems = analyzer().analyze(" ".join(beginning + ending for ending in _ENDINGS))
    return [beginning, *dict.fromkeys(stem for stem in stems if not stem.startswith(beginning))]


def is_unspaced(text: str) -> bool:
    """Whether a text begins with a character of a script without spaces."""
    return not text.isascii() and bool(_UNSPACED.match(text))


def is_lone(text: str) -> bool:
    """Whether a text is one character of a script without spaces, which the index has in pairs only."""
    return len(text) == 1 and is_unspaced(text)


def folded(text: str) -> str:
    """A word in lower case and without accents, not cut down; empty for what is not one word."""
    found = _unstemmed().analyze(unicodedata.normalize("NFKC", text))
    return found[0] if len(found) == 1 else ""


def _stretches(text: str) -> Sequence[str]:
    """A text, parted where scripts with and without spaces meet."""
    if text.isascii():
        return (text,)
    text = unicodedata.normalize("NFKC", text)
    ends = [0, *(end for run in _UNSPACED.finditer(text) for end in run.span()), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def _pairs_of(run: str) -> list[str]:
    """The words of a run, as the index has them; of a longer one, without its last character alone."""
    pairs = [pair for pair in _pairs(run) if len(pair) > 1] or [run]
    return analyzer().analyze(" ".join(pairs))


# Code points. A paragraph or list that is longer is cut between two lines; a line that is longer than the
# most is cut between two words, or anywhere.
LONG = 600
MOST = 4_000

_END = r"(?:\r\n|\n|\r)"
_GAP = regex(rf"{_END}(?:[ \t]*{_END})+")
# The same where all lines end so; it begins with one character, which makes it ten times faster.
_PLAIN_GAP = regex(r"\n[ \t]*\n(?:[ \t]*\n)*")
_NEXT_LINE = regex(_END)
_ESCAPE = regex(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_UNICODE_ESCAPE = 6  # characters
# Fields that are searched otherwise, or are no text of the memory.
_NOT_TEXT = frozenset((
    *("title", "tags", "aliases", "type", "id", "confidence", "tier", "access", "$schema"),
    *("created", "date", "updated", "expires", "valid_from", "valid_to"),
))  # fmt: skip
# Nor is what observations say of their sources.
_OF_SOURCES = frozenset((
    *("session", "log", "from", "to", "generation", "follows", "derived_from"),
    *("tokens", "by", "problem"),
))  # fmt: skip
_DATES = ("created", "date", "updated")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)  # fmt: skip
_CERTAIN = 1.0


class Passage(NamedTuple):
    """A stretch of a memory.

    Attributes:
        span: where it stands.
        line: the 1-based line in which it begins.
        lines: how many lines it is.
        heading: the titles of the sections that it stands in, outermost first.
        text: what can be found in it.
    """

    span: Span
    line: int
    lines: int
    heading: tuple[str, ...]
    text: str


class Indexed(NamedTuple):
    """What the text index keeps of a memory.

    Attributes:
        path: of the memory, as the whole vault names it.
        title: its field `title`, else its first heading, and the name of its file.
        headings: the titles of its sections.
        tags: its tags, without `#`, as they are written.
        aliases: its field `aliases`.
        type: its field `type`.
        day: its day as a number such as 20260131; 0 when it has none.
        confidence: its field `confidence`, 0 to 1; 1 when it has none.
        text: its whole text.
        passages: its passages in order, one at least; its dates stand in the first one, too.
    """

    path: str
    title: str
    headings: tuple[str, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    type: str
    day: int
    confidence: float
    text: str
    passages: tuple[Passage, ...]


def indexed(document: Document, modified: float | None = None, tags: Sequence[str] | None = None) -> Indexed:
    """What the text index keeps of a memory.

    Args:
        document: the memory.
        modified: when its file was, in seconds since the epoch: the day of a memory that tells none.
        tags: the names of its tags, where they are known: finding them is half of the work.
    """
    if tags is None:
        tags = [tag.name for tag in document.tags]
    fields = fields_of(document)
    headings = document.headings
    title = _text(fields.get("title")) or (headings[0].title if headings else "")
    told = day_of(document.path, fields, None)
    passages = list(cut(document))
    dates = " ".join(filter(None, (*_dates(fields), _in_words(told))))
    if dates:
        passages[0] = passages[0]._replace(text=f"{passages[0].text}\n{dates}")
    return Indexed(
        path=document.path,
        title=f"{title}\n{_name(document.path)}",
        headings=tuple(heading.title for heading in headings),
        tags=tuple(dict.fromkeys((*_texts(fields.get("tags")), *tags))),
        aliases=_texts(fields.get("aliases")),
        type=_text(fields.get("type")),
        day=int((told or day_of(document.path, {}, modified)).replace("-", "") or 0),
        confidence=_confidence(fields.get("confidence")),
        text="\n".join(passage.text for passage in passages),
        passages=tuple(passages),
    )


def _dates(fields: Mapping[str, Any]) -> list[str]:
    return [_text(fields[name]) for name in _DATES if name in fields]


def _in_words(day: str) -> str:
    """A day as one asks for it: `8 May 2023`."""
    if not day:
        return ""
    year, month, number = map(int, day.split("-"))
    return f"{number} {_MONTHS[month - 1]} {year}"


def cut(document: Document) -> Iterator[Passage]:
    """The passages of a memory, in order; an empty one when it says nothing."""
    found = False
    for span, heading, text in _passage_stretches(document):
        found = True
        first = document.lines.number(span.start)
        last = document.lines.number(max(span.start, span.end - 1))
        yield Passage(span, first, last - first + 1, heading, text)
    if not found:
        yield Passage(Span(0, 0), 1, 1, (), "")


def _passage_stretches(document: Document) -> Iterator[tuple[Span, tuple[str, ...], str]]:
    """The span, heading and text of each passage."""
    text = document.text
    if document.is_json:
        for span in _shortened(text, 0, len(text)):
            yield span, (), written_out(_unescaped(text[slice(*span)]))
        return
    told = "\n".join(_values(fields_of(document)))
    if told:
        yield document.frontmatter.inner, (), written_out(told)
    plain = is_plain(text)
    gaps = _GAP if "\r" in text else _PLAIN_GAP
    for region, heading in _regions(document):
        for span in _paragraphs(text, region, gaps):
            passage = text[slice(*span)]
            yield span, heading, passage if plain else written_out(passage)


def _regions(document: Document) -> Iterator[tuple[Span, tuple[str, ...]]]:
    """What stands before the first heading, then each heading with what stands under it before the next.

    A heading with nothing under it says little: it counts to what follows it.
    """
    text, sections = document.text, document.sections
    start, end = document.body_span
    first = sections[0].span.start if sections else end
    if start < first:
        yield Span(start, first), ()
    start = first
    for section in sections:
        own = section.own
        if own.end == end or not text[slice(*own)].isspace():
            yield Span(start, own.end), section.path
            start = own.end


def _paragraphs(text: str, region: Span, gaps: re.Pattern[str]) -> Iterator[Span]:
    """The paragraphs of a region, a heading with the first one under it, the long ones cut."""
    at, end = region
    # A heading alone says little: the gap behind it ends no passage.
    bare = text.startswith("#", at)
    for gap in gaps.finditer(text, at, end):
        start, stop = gap.span()
        if bare:
            bare = text.startswith("#", stop)
        elif start > at:
            yield from _shortened(text, at, start)
            at = stop
    yield from _shortened(text, at, end)


def _shortened(text: str, start: int, end: int) -> Iterator[Span]:
    """A stretch without the blank at its ends, cut between lines where it is long, or inside one."""
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    while end - start > LONG:
        # No further than a line may be: a look at the rest of a long one for each piece of it is quadratic.
        most = min(end, start + MOST + 1)
        stop = _last_line_end(text, start, start + LONG) or _line_end(text, start + LONG, most)
        if stop - start > MOST:
            stop = max(text.rfind(" ", start + LONG, start + MOST), 0) or start + MOST
        yield Span(start, stop)
        start = stop
    if start < end:
        yield Span(start, end)


def _last_line_end(text: str, start: int, end: int) -> int:
    return max(text.rfind("\n", start, end), text.rfind("\r", start, end - 1)) + 1


def _line_end(text: str, start: int, end: int) -> int:
    found = _NEXT_LINE.search(text, start, end)
    return found.end() if found else end


def _unescaped(text: str) -> str:
    """JSON without the escapes of its strings: the letter of a line end is no part of a word."""
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(escape: re.Match[str]) -> str:
    if escape[0][1] != "u":
        return escape[0][1] if escape[0][1] in '"\\/' else " "
    if len(escape[0]) < _UNICODE_ESCAPE:
        return " "  # one without its end: the passage was cut in it
    character = chr(int(escape[0].removeprefix("\\u"), 16))
    return " " if "\ud800" <= character <= "\udfff" else character


def _values(fields: Mapping[str, Any]) -> Iterator[str]:
    """The texts in the fields that are part of what a memory says."""
    passed_over = _NOT_TEXT | _OF_SOURCES if fields.get("type") == OBSERVATION.name else _NOT_TEXT
    for name, value in fields.items():
        if name not in passed_over:
            yield from _leaves(value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield str(value)


def _name(path: str) -> str:
    """The name of the file, without its suffix."""
    return path.rpartition("/")[2].rpartition(".")[0]


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value)


def _texts(value: Any) -> tuple[str, ...]:
    """A field that is a list of texts, or one text."""
    given = value if isinstance(value, list) else [value]
    return tuple(filter(None, map(_text, given)))


def _confidence(value: Any) -> float:
    """A field that is a number from 0 to 1; anything else says nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _CERTAIN
    return float(value) if 0 <= value <= 1 else _CERTAIN
