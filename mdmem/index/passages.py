"""Passages: how a memory is cut for the text index, and which words are indexed.

A passage is a paragraph, or some lines of a longer one, with its heading.

A word is a run of letters and digits in lower case, without accents, reduced to its English stem. The parts
of an identifier, the pairs of neighbouring characters of a text without spaces, and words with signs, such as
`C#`, `.NET`, `1.2.3` and emoji, are appended to the text before it is analyzed. The index and its queries
analyze alike: every change needs another `mdmem.index.text_index.VERSION`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.confidence import confidence_of
from mdmem.document.synced_block import block_span
from mdmem.document.text.regex import regex
from mdmem.errors import MdmemError
from mdmem.index.hit import DATE_FIELDS, MONTHS, day_of, field_text, fields_of, first_text
from mdmem.kind import OBSERVATION

if TYPE_CHECKING:
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
# kana, bopomofo, Han with its extensions; and Hangul: its words carry their particles.
_UNSPACED = regex(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u318f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U000323af]+"
)
# From the sign of a word with one on: `C#`, `C++`, `R&D`, `.NET`, `3.11`. Signs come first, because a search
# for a few characters is fast.
_SIGN = regex(
    r"[#+&.](?:(?<=[A-Za-z0-9][#+])[#+]{0,2}+(?![A-Za-z0-9_#+])|(?<=[A-Za-z0-9]\+)\+(?=[0-9])"
    r"|(?<=\b[A-Za-z]#)(?=[0-9])|(?<=[A-Za-z]&)[A-Za-z]{1,3}+(?![A-Za-z0-9_;=])"
    r"|(?<=\.)(?<![A-Za-z0-9_.)\]]\.)[A-Za-z][A-Za-z0-9]{0,31}+(?![A-Za-z0-9_])"
    r"|(?<=[0-9]\.)[0-9]++(?:\.[0-9]++)*+(?:[-.]?(?:alpha|beta|rc|dev|pre|post|a|b|x)[-.]?[0-9]*+(?!\w))?)"
)
_BEFORE_SIGN = regex(r"[A-Za-z0-9]+\Z")
_DIGITS_BEFORE = regex(r"[0-9]+\Z")
_RELEASE = regex(r"[0-9]+(?:ꔂ[0-9]+)+(?=[ꔂꔄ]?[a-z])")
_FACE = "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
_LOOK = "[\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*+"
_EMOJI = regex(f"{_FACE}{_LOOK}(?:\u200d{_FACE}{_LOOK})*+|[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3")
_MANY_FACES = regex(f"({_FACE}){_LOOK}\u200d?")
# Letters of a rare script stand for signs, because the analyzer makes no words of signs.
_SIGNS = str.maketrans("#+.&-", "ꔀꔁꔂꔃꔄ", "\ufe0f")
_EMOJI_MARK = "ꔅ"
_PLAIN_SIGNS = str.maketrans("ꔀꔁꔂꔃꔄ", "#+.&-")
_CODE_POINT = regex("ꔅ([0-9a-f]+)")
_ANY_SIGN = regex("[ꔀ-ꔅ]")
# Endings of English words: the stem of a word can be shorter than a prefix of it.
_ENDINGS = (
    *("", "e", "s", "ed", "es", "al", "ly", "ing", "ion", "ity"),
    *("ness", "ment", "ation", "ional", "iveness"),
)  # fmt: skip

Run = tuple[str, ...]
_LONGEST_WORD = 8192  # bytes
_LONGEST_BEFORE = 16  # letters and digits


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer of the index, for texts from `written_out`."""
    import tantivy  # noqa: PLC0415 - start-up

    return _start_analyzer().filter(tantivy.Filter.stemmer("english")).build()


def analyzed(*texts: str) -> frozenset[str]:
    """Return the words that the index has of texts which are `written_out`."""
    return frozenset(analyzer().analyze("\n".join(texts)))


@cache
def _unstemmed_analyzer() -> tantivy.TextAnalyzer:
    return _start_analyzer().build()


def _start_analyzer() -> tantivy.TextAnalyzerBuilder:
    import tantivy  # noqa: PLC0415 - start-up

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    builder = builder.filter(
        tantivy.Filter.remove_long(_LONGEST_WORD)
    )  # stemming one of megabytes takes hours
    return builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold())


def signed_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the words with signs in a text, and emoji: start, end, and the word in letters and digits."""
    for sign in _SIGN.finditer(text):
        start, end = sign.span()
        pattern = _DIGITS_BEFORE if text[start + 1 : end][:1].isdigit() else _BEFORE_SIGN
        before = pattern.search(text, max(0, start - _LONGEST_BEFORE), start)
        start = before.start() if before else start
        word = text[start:end].lower().translate(_SIGNS)
        yield start, end, word
        yield from ((start, end, each) for each in _RELEASE.findall(word))
    for emoji in () if text.isascii() else _EMOJI.finditer(text):
        parts = dict.fromkeys((emoji[0], *_MANY_FACES.findall(emoji[0])))
        for word in dict.fromkeys(part.replace("\ufe0f", "") for part in parts):
            yield *emoji.span(), "".join(f"{_EMOJI_MARK}{ord(c):x}" for c in word)


def written_out(text: str) -> str:
    """Append to a text the words with signs in it, the parts of identifiers, and pairs of neighbours."""
    signed = dict.fromkeys(word for *_, word in signed_words(text))
    pairs: list[str] = []
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        signed |= dict.fromkeys(word for *_, word in signed_words(text))
        pairs = [pair for run in _UNSPACED.findall(text) for pair in _pair_neighbours(run)]
    more = [*_split_identifiers(text), *pairs, *signed]
    if pairs:
        text = _UNSPACED.sub(" ", text)
    return f"{text}\n{' '.join(more)}" if more else text


def _split_identifiers(text: str) -> list[str]:
    """Split each identifier with capital letters inside, such as `HTTPServer`: `HTTP Server`."""
    if not _has_humps(text):
        return []
    # Most words are lower case behind their first letter, and have one part.
    humped = dict.fromkeys(word for word in _LETTERS.findall(text) if not word[1:].islower())
    parted = (" ".join(_PARTS.findall(word)) for word in humped)
    return [parts for parts in parted if " " in parts]


def _has_humps(text: str) -> bool:
    cases = text.encode("utf-8", "replace").translate(_CASES)
    return b"aA" in cases or b"AAaa" in cases


def _pair_neighbours(run: str) -> Iterator[str]:
    """Return the pairs of neighbours in a run, and its last character: so each one begins a word."""
    return (run[at : at + 2] for at in range(len(run)))


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order, as the index has them."""
    words: list[str] = []
    for stretch in _split_by_script(text):
        words += _analyze_pairs(stretch) if is_unspaced(stretch) else analyzer().analyze(written_out(stretch))
    return words


def is_signed(word: str) -> bool:
    """Return whether a word of the index is one with signs, or an emoji."""
    return not word.isascii() and _ANY_SIGN.search(word) is not None


def spelled(words: str) -> str:
    """Return words of the index as people write them, with their signs."""
    words = _CODE_POINT.sub(lambda point: chr(int(point[1], 16)), words)
    return words.translate(_PLAIN_SIGNS)


def signs_of(text: str) -> list[str]:
    """Return the words with signs of a text as the index has them."""
    return analyzer().analyze(" ".join(word for *_, word in signed_words(text)))


def runs_of(text: str) -> list[list[Run]]:
    """Return the words of a phrase in a row: for each stretch in one kind of script, the possible runs.

    Words with signs stand behind them, each by itself; of a phrase that is one such word, the parts are left
    out: those of `1.2.3` are not in a row in `v1.2.3`.
    """
    signs: list[list[Run]] = [[(word,)] for word in signs_of(text)]
    if any(end - start == len(text) for start, end, _ in signed_words(text)):
        return signs[:1]
    stretches: list[list[Run]] = []
    for stretch in _split_by_script(text):
        if is_unspaced(stretch):
            runs = [tuple(_analyze_pairs(stretch))]
        else:
            parted = _LETTERS.sub(lambda word: " ".join(_PARTS.findall(word[0])), stretch)
            runs = [*dict.fromkeys(tuple(analyzer().analyze(spelt)) for spelt in (stretch, parted))]
        if runs := [run for run in runs if run]:
            stretches.append(runs)
    return stretches + signs


def beginnings(text: str) -> list[str]:
    """Return the prefix of words as the index has it, then the stems that are shorter than it."""
    beginning = folded(text)
    if not beginning:
        return []
    stems = analyzer().analyze(" ".join(beginning + ending for ending in _ENDINGS))
    return [beginning, *dict.fromkeys(stem for stem in stems if not stem.startswith(beginning))]


def is_unspaced(text: str) -> bool:
    """Return whether a text begins with a character of a script without spaces."""
    return not text.isascii() and bool(_UNSPACED.match(text))


def is_lone(text: str) -> bool:
    """Return whether a text is one character of a script without spaces, which the index has in pairs."""
    return len(text) == 1 and is_unspaced(text)


def folded(text: str) -> str:
    """Return a word in lower case and without accents, not stemmed; empty for what is not one word."""
    words = _unstemmed_analyzer().analyze(unicodedata.normalize("NFKC", text))
    return words[0] if len(words) == 1 else ""


def _split_by_script(text: str) -> Sequence[str]:
    if text.isascii():
        return (text,)
    text = unicodedata.normalize("NFKC", text)
    ends = [0, *(end for run in _UNSPACED.finditer(text) for end in run.span()), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def _analyze_pairs(run: str) -> list[str]:
    """Return the words of a run; of a longer one, without its last character alone."""
    pairs = [pair for pair in _pair_neighbours(run) if len(pair) > 1] or [run]
    return analyzer().analyze(" ".join(pairs))


# Code points. A longer paragraph is cut between two lines; a line longer than MOST is cut between two words,
# or anywhere.
LONG = 600
MOST = 4_000

_GAP = regex(r"[\r\n][ \t\r\n]*[\r\n]")  # also the one line end \r\n
_NEXT_LINE = regex(r"\r\n|\n|\r")
_ESCAPE = regex(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_UNICODE_ESCAPE = 6  # characters
# Fields that are not part of the text.
_NOT_TEXT = frozenset((
    *("title", "tags", "aliases", "type", "id", "confidence", "tier", "access", "$schema"),
    *("created", "date", "updated", "expires", "valid_from", "valid_to"),
))  # fmt: skip
# Nor are, in observations, these fields about their sources.
_OF_SOURCES = frozenset((
    *("session", "log", "from", "to", "generation", "follows", "derived_from"),
    *("tokens", "by", "problem"),
))  # fmt: skip


class Passage(NamedTuple):
    """A stretch of a memory.

    It begins in the 1-based `line`; `lines` is the number of its lines. `heading` has the titles of the
    sections that it is in, outermost first.
    """

    span: Span
    line: int
    lines: int
    heading: tuple[str, ...]
    text: str


class Indexed(NamedTuple):
    """A memory as the text index has it.

    Attributes:
        title: its field `title`, else its first heading, and the name of its file.
        tags: its tags, without `#`, as they are written.
        day: its day as a number such as 20260131; 0 when it has none.
        confidence: how sure it is, see `mdmem.document.confidence`; 1 where it says nothing of itself.
        passages: its passages in order, at least one; its dates are added to the first one.
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


def indexed(document: Document, modified: float | None = None) -> Indexed:
    """Return what the text index keeps of a memory; one that states no day has that of `modified`, a time."""
    tags = (tag.name for tag in document.tags)
    fields = fields_of(document)
    synced = block_span(document.text, edited=False)
    headings = [each for each in document.headings if not synced.start <= each.span.start < synced.end]
    title = field_text(fields.get("title")) or (headings[0].title if headings else "")
    stem = document.path.rpartition("/")[2].rpartition(".")[0]
    day = day_of(document.path, fields)
    passages = list(cut(document))
    if text := dates_text(document.path, fields):
        passages[0] = passages[0]._replace(text=f"{passages[0].text}\n{text}")
    return Indexed(
        path=document.path,
        title=f"{title}\n{stem}",
        headings=tuple(heading.title for heading in headings),
        tags=tuple(dict.fromkeys((*_list_texts(fields.get("tags")), *tags))),
        aliases=_list_texts(fields.get("aliases")),
        type=first_text(fields.get("type")),
        day=int((day or day_of(document.path, {}, modified)).replace("-", "") or 0),
        confidence=1.0 if (sure := confidence_of(fields)) is None else sure,
        text="\n".join(passage.text for passage in passages),
        passages=tuple(passages),
    )


def dates_text(path: str, fields: Mapping[str, Any]) -> str:
    """Return what is indexed of the dates of a memory: as its fields have them, and as people say its day."""
    dates = (*(field_text(fields.get(name)) for name in DATE_FIELDS), _spell_day(day_of(path, fields)))
    return " ".join(filter(None, dates))


def _spell_day(day: str) -> str:
    if not day:
        return ""
    year, month, number = map(int, day.split("-"))
    return f"{number} {MONTHS[month - 1]} {year}"


def cut(document: Document) -> Iterator[Passage]:
    """Cut a memory into passages, in order; an empty memory has an empty one.

    What `project sync` wrote is left out, as long as nobody has changed it: the rules that it is made of are
    memories themselves.
    """
    is_empty, synced = True, block_span(document.text, edited=False)
    for span, heading, text in _cut_stretches(document):
        if synced.start <= span.start < synced.end:
            continue
        is_empty = False
        first = document.lines.number(span.start)
        last = document.lines.number(max(span.start, span.end - 1))
        yield Passage(span, first, last - first + 1, heading, text)
    if is_empty:
        yield Passage(Span(0, 0), 1, 1, (), "")


def _cut_stretches(document: Document) -> Iterator[tuple[Span, tuple[str, ...], str]]:
    text = document.text
    if document.is_json:
        for span in _cut_long(text, 0, len(text)):
            yield span, (), written_out(_ESCAPE.sub(_unescape, text[slice(*span)]))
        return
    yield from _cut_frontmatter(document)
    for region, heading in _split_into_regions(document):
        for span in _split_into_paragraphs(text, region):
            yield span, heading, written_out(text[slice(*span)])


def _cut_frontmatter(document: Document) -> Iterator[tuple[Span, tuple[str, ...], str]]:
    """Cut the frontmatter: the texts of its fields; where not all of it is read, its lines."""
    with suppress(MdmemError):  # it passes a limit
        front = document.frontmatter
        if front.unread or front.form != "YAML":
            for span in _cut_long(document.text, *front.inner):
                yield span, (), written_out(document.text[slice(*span)])
        elif text := "\n".join(_list_field_texts(front.values)):
            yield front.inner, (), written_out(text)


def _split_into_regions(document: Document) -> Iterator[tuple[Span, tuple[str, ...]]]:
    """Split a memory at its headings; a heading without text belongs to the next region."""
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


def _split_into_paragraphs(text: str, region: Span) -> Iterator[Span]:
    """Split a region into paragraphs, the first with its heading, and cut the long ones."""
    at, end = region
    bare = text.startswith("#", at)
    for gap in _GAP.finditer(text, at, end):
        start, stop = gap.span()
        if gap[0] == "\r\n":
            continue
        if bare:
            bare = text.startswith("#", stop)
        elif start > at:
            yield from _cut_long(text, at, start)
            at = stop
    yield from _cut_long(text, at, end)


def _cut_long(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    while end - start > LONG:
        last = start + LONG
        stop = max(text.rfind("\n", start, last), text.rfind("\r", start, last - 1)) + 1
        if not stop:
            # No further than a line may be: to search the rest for each piece of a long line is quadratic.
            most = min(end, start + MOST + 1)
            line_end = _NEXT_LINE.search(text, last, most)
            stop = line_end.end() if line_end else most
        if stop - start > MOST:
            stop = max(text.rfind(" ", last, start + MOST), 0) or start + MOST
        yield Span(start, stop)
        start = stop
    if start < end:
        yield Span(start, end)


def _unescape(escape: re.Match[str]) -> str:
    if escape[0][1] != "u":
        return escape[0][1] if escape[0][1] in '"\\/' else " "
    if len(escape[0]) < _UNICODE_ESCAPE:
        return " "  # one without its end: the passage was cut in it
    character = chr(int(escape[0].removeprefix("\\u"), 16))
    return " " if "\ud800" <= character <= "\udfff" else character


def _list_field_texts(fields: Mapping[str, Any]) -> Iterator[str]:
    skipped = _NOT_TEXT | _OF_SOURCES if fields.get("type") == OBSERVATION.name else _NOT_TEXT
    for name, value in fields.items():
        if name not in skipped:
            yield from _flatten_texts(value)


def _flatten_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _flatten_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _flatten_texts(item)
    elif value is not None:
        yield str(value)


def _list_texts(value: Any) -> tuple[str, ...]:
    return tuple(filter(None, map(field_text, value if isinstance(value, list) else [value])))
