"""Words: what of a text can be searched for. The index and its queries take texts apart in the same way.

A word is a run of letters and digits in lower case, without accents, cut down to its English stem. An
identifier is found by its parts, too, and a text without spaces by its pairs of neighbouring characters: they
are written out behind the text before it is taken apart.

Every change of what becomes of a text needs another `mdmem.index.text.VERSION`.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from mdmem.text.regex import regex

if TYPE_CHECKING:  # a text is written out without it
    from collections.abc import Iterator, Sequence

    import tantivy

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
