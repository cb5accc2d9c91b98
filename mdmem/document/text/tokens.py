"""Text for a language model: how many tokens it is, with nothing hidden in it, fenced, clipped.

A model reads characters that no person sees: controls, marks that turn the direction of writing, and
zero-width characters. Whole sentences have been hidden in tags and variation selectors.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence

from mdmem.document.text.lines import with_newline
from mdmem.document.text.regex import regex

# What a byte is to a tokenizer: a letter, a digit, a blank, another control, a sign that is often repeated,
# any other, and of UTF-8 the byte that continues a character, or begins one in some scripts.
_KINDS = (
    *(b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789", b" ", bytes(range(32))),
    *(b"-=*_#~.", b"!\"$%&'()+,/:;<>?@[\\]^`{|}\x7f", bytes(range(0x80, 0xC0))),
    bytes(range(0xC0, 0xCE)),  # Latin letters with accents
    bytes(range(0xCE, 0xD5)),  # Greek, Cyrillic
    bytes(range(0xD5, 0xE0)),  # Hebrew, Arabic
    bytes([0xE0]),  # scripts of India and South-East Asia
    bytes([0xE1]),  # Georgian, Ethiopic, Khmer; Vietnamese
    bytes([0xE2, *range(0xEA, 0xEE)]),  # dashes, arrows, lines of tables; Hangul
    bytes([*range(0xE3, 0xEA), 0xEE, 0xEF]),  # Kana, Han
    bytes(range(0xF0, 0x100)),  # pictures, letters of mathematics, rare and old scripts
)
# Thirds of a token that a byte of each kind costs behind each kind. A tokenizer divides a text where a word,
# a number or a run of signs begins, and knows most words whole; so the costs are those of beginnings. They
# are near to those of o200k_base for prose in thirty languages, code, and outputs of tools. A text costs no
# less than any part of it, and at most one token for each cut more than all parts together: the first byte of
# a part costs as much as behind a sign, and at most three thirds less than behind anything else.
#          a U D blank control - ! more | accents, Cyrillic, Hebrew, India, Georgian, Hangul, Han, pictures
_COSTS = (
    "0223633200000000",  # a
    "2223633200000000",  # A
    "4418155400000000",  # 1
    "0000200000000000",  # a blank
    "4444044444444444",  # another control
    "0003502400000000",  # a sign that is often repeated
    "0003522400000000",  # any other
    "0000000000001001",  # the rest of a character
    *("2222222222222222", "1113111111111111", "1112111111111111", "2222222222222222"),  # accents to India
    *("4444444444444444", "3334333333333333", "2225222222222222", "8888888888888888"),  # Georgian to pictures
)
_LEFT = bytes(next(kind for kind, of in enumerate(_KINDS) if byte in of) for byte in range(256))
_RIGHT = bytes(kind << 4 for kind in _LEFT)
# A cost is as many bits as it has thirds.
_BITS = bytes((1 << int(_COSTS[pair >> 4][pair & 15])) - 1 for pair in range(256))
# Three consonants together, the last two not the same, stand in few words, and in what is drawn: a token
# more. The same one again is a quarter.
_CONSONANT = bytes(byte in b"bcdfghjklmnpqrstvwxz" for byte in range(256))
_THIRDS = 3
_A_TOKEN = 8  # blanks that are one, at most; of other characters half as many
_VOCABULARY = "o200k_base"  # of OpenAI's models; no vocabulary of Claude's is published


def estimate(text: str) -> int:
    """About how many tokens a text is: one for a word of English and the blank before it."""
    data = b"(" + text.encode("utf-8", "surrogatepass")
    # All bytes at once, as one number: Python has no quicker way to look at pairs.
    left, right = _number(data[:-1], _LEFT), _number(data[1:], _RIGHT)
    thirds = _number((left | right).to_bytes(len(data), "little")[:-1], _BITS).bit_count()
    changes = (number := int.from_bytes(data, "little")) ^ number >> 8
    for bits in (4, 2, 1):  # then the lowest bit of a byte says whether the next one differs
        changes |= changes >> bits
    consonants = _number(data, _CONSONANT)
    hard = consonants & consonants >> 8 & consonants >> 16 & changes >> 8
    doubled = consonants & ~changes
    tokens = thirds / _THIRDS + hard.bit_count() + doubled.bit_count() / 4
    return math.ceil(max(tokens, (2 * len(text) - text.count(" ")) / _A_TOKEN))


def _number(data: bytes, table: bytes) -> int:
    """Return the bytes as a number, each replaced as a table says."""
    return int.from_bytes(data.translate(table), "little")


def counter(*, estimated: bool = False) -> Callable[[str], int]:
    """Return what counts tokens: a tokenizer if one is installed (extra `tokens`), else `estimate`.

    `estimated`: take `estimate` in every case; loading a tokenizer takes half a second.
    """
    if estimated:
        return estimate
    try:
        import toktok  # noqa: PLC0415 - it is optional, and takes half a second
    except ImportError:
        return estimate

    def count(text: str) -> int:
        # One thread: starting more costs longer than counting. What is no UTF-8 is never in a memory.
        return int(toktok.batch_count([text.encode(errors="replace").decode()], _VOCABULARY, 1)[0])

    return count


# Controls but for the tab and the line feed; what Unicode 16 calls default-ignorable (DerivedCoreProperties);
# separators of lines and paragraphs; marks of annotations, and those that place hieroglyphs; halves of a
# character, as JSON has them where somebody cut it, which no UTF-8 can carry.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PICTURE = "\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# Scripts with letters that join: a joiner between two letters changes how a word is written. They are Arabic
# and its kin, the scripts of India, Sinhala, Burmese, Khmer, Mongolian.
_JOINING = "\u0620-\u06ff\u0750-\u077f\u08a0-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u1820-\u18aa"
# One of these at a place where people write it is kept; a second one behind it is not.
_WRITTEN = (
    rf"(?<=[{_PICTURE}])[\ufe0e\ufe0f]",
    "(?<=[0-9#*])\ufe0f(?=\u20e3)",
    rf"(?<=[{_PICTURE}])\u200d(?=[{_PICTURE}])",
    rf"(?<=[{_PICTURE}]\ufe0f)\u200d(?=[{_PICTURE}])",
    rf"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])",
)
_SHOWN = regex(rf"({'|'.join(_WRITTEN)})|[{_HIDDEN}]")
_LEAST_FENCE = 3
_JOINER = "\u200d"


def visible(text: str) -> str:
    """Write `<U+202E>` for each character that cannot be seen, and line feeds for line ends.

    Joiners and selectors stay where writing needs them: in emoji, and between letters that join.
    """
    if text.isascii() and text.replace("\n", "").isprintable():  # as most is
        return text
    return _SHOWN.sub(lambda found: found[1] or f"<U+{ord(found[0]):04X}>", with_newline(text, "\n"))


def in_line(text: str) -> str:
    """Return a text in one line, with what cannot be seen made visible."""
    return " ".join(visible(text).split())


# What would be a link, a tag, HTML or a block of its own where a sentence stands; a number is no tag.
_MARKUP = regex(r"[\[<\\]|#(?![0-9]++(?![\w/-]))|\A[-+*>=|~]|\A`(?=``)|\A[0-9]+(?=[.)])")
_ESCAPE = regex(r"\\([!-/:-@\[-`{-~])")  # CommonMark 0.31.2, section 2.4


def plain(text: str) -> str:
    """Return a sentence of others as Markdown that says just that."""
    return _MARKUP.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", text)


def unescaped(text: str) -> str:
    """Return what a sentence of Markdown says: the inverse of `plain`."""
    return _ESCAPE.sub(r"\1", text)


def fenced(text: str, info: str) -> str:
    """Return a text as a fenced code block, made visible; the fence is longer than any that stands in it.

    `info` stands behind the opening fence, in one line.
    """
    shown, told = visible(text).strip("\n"), in_line(info)
    # An info string behind backticks may hold none (CommonMark 0.31.2, section 4.5).
    mark = "~" if "`" in told else "`"
    runs = re.findall(f"{mark}+", shown)
    fence = mark * max(_LEAST_FENCE, *(len(run) + 1 for run in runs), 0)
    return f"{fence}{told}\n{shown}\n{fence}"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def clipped(text: str, most: int, around: int = 0) -> str:
    """Return a text, or of a longer one `most` characters around a place, and how many more there are."""
    if len(text) <= most:
        return text
    start, end, _ = clip(len(text), most, around)
    return f"{gap(start)}{text[start:end]}{gap(len(text) - end)}"


def clip(length: int, most: int, around: int) -> tuple[int, int, int]:
    """Return the start and end of the part that `clipped` takes, and how far it moves there."""
    start = max(0, min(around - most // 3, length - most))
    return start, start + most, len(gap(start)) - start


def abridged(text: str, most: int, measure: Callable[[str], int] = estimate) -> str:
    """Shorten a text of more than `most` tokens to its beginning, its end, and how much is between.

    It is cut between characters as people see them. Where not even the gap fits, the beginning alone stays.
    """
    if len(text) <= most * _A_TOKEN and measure(text) <= most:
        return text
    sizes = range(min(len(text), max(most, 0) * _A_TOKEN) + 1)
    around_gap = bisect_right(sizes, most, key=lambda kept: measure(_around_gap(text, kept))) - 1
    if around_gap > 0:
        return _around_gap(text, around_gap)
    return text[: _cut_place(text, bisect_right(sizes, most, key=lambda kept: measure(text[:kept])) - 1)]


def _around_gap(text: str, kept: int) -> str:
    """Return about as many characters as are kept, half of them from each end."""
    start, end = _cut_place(text, kept - kept // 2), len(text) - kept // 2
    while end < len(text) and _cut_place(text, end) < end:
        end += 1
    return f"{text[:start]}{gap(end - start)}{text[end:]}"


def _cut_place(text: str, at: int) -> int:
    """Return the first place that parts no signs of one character."""
    at = max(at, 0)
    while 0 < at < len(text) and (_is_joined(text[at]) or text[at - 1] == _JOINER):
        at -= 1
    return at


def _is_joined(sign: str) -> bool:
    """Return whether a sign belongs to the character before it: an accent, a joiner, a skin tone."""
    return unicodedata.category(sign)[0] == "M" or sign == _JOINER or "\U0001f3fb" <= sign <= "\U0001f3ff"


def gap(count: int) -> str:
    """Return what stands for this many characters that are left out; nothing for none."""
    return f"[{count:,} characters left out]" if count else ""
