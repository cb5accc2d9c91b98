"""What cannot be seen in a text, made visible, and text in a fence that it cannot close.

A model reads characters that no person sees: controls, marks that turn the direction of writing, zero-width
characters, and the tags and variation selectors in which whole sentences have been hidden.
"""

from __future__ import annotations

import re

from mdmem.text.lines import with_newline
from mdmem.text.regex import regex

# Controls but for the tab and the line feed; what Unicode 16 calls default-ignorable (DerivedCoreProperties);
# separators of lines and paragraphs; marks of annotations,
# and those that place hieroglyphs.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PICTURE = "\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# Scripts whose letters join, so that a joiner between two of them changes how a word is written: Arabic and
# its kin, those of India, Sinhala, Burmese, Khmer, Mongolian.
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


def visible(text: str) -> str:
    """A text with `<U+202E>` in the place of each character that cannot be seen; lines end in line feeds.

    Joiners and selectors stay where writing needs them: in emoji, and between letters that join.
    """
    return _SHOWN.sub(lambda found: found[1] or f"<U+{ord(found[0]):04X}>", with_newline(text, "\n"))


def in_line(text: str) -> str:
    """A text in one line, with what cannot be seen made visible."""
    return " ".join(visible(text).split())


def fenced(text: str, info: str) -> str:
    """A text as a fenced code block, made visible; the fence is longer than any that stands in it.

    Args:
        text: what stands in the fence.
        info: what stands behind the fence that opens; it becomes one line.
    """
    shown, told = visible(text).strip("\n"), in_line(info)
    # An info string behind backticks may hold none (CommonMark 0.31.2, section 4.5).
    mark = "~" if "`" in told else "`"
    runs = re.findall(f"{mark}+", shown)
    fence = mark * max(_LEAST_FENCE, *(len(run) + 1 for run in runs), 0)
    return f"{fence}{told}\n{shown}\n{fence}"


def clipped(text: str, most: int, around: int = 0) -> str:
    """A text, or of a longer one `most` characters around a place, and how many more there are."""
    if len(text) <= most:
        return text
    start, end, _ = clip(len(text), most, around)
    return f"{_gap(start)}{text[start:end]}{_gap(len(text) - end)}"


def clip(length: int, most: int, around: int) -> tuple[int, int, int]:
    """Of a text of that length, what `clipped` takes: its start, its end, and how much further it stands."""
    start = max(0, min(around - most // 3, length - most))
    return start, start + most, len(_gap(start)) - start


def _gap(count: int) -> str:
    return f"[{count:,} characters left out]" if count else ""
