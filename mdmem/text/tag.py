"""Tags: `#name` in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mdmem.text.regex import regex

if TYPE_CHECKING:
    from mdmem.diagnostic import Span


class Tag(NamedTuple):
    """A tag: `#name` in the body, or one of `tags` in the frontmatter; its name and span have no "#"."""

    name: str
    span: Span
    line: int


# Letters, digits, "_", "-", "/" and what is neither ASCII nor punctuation; not digits alone.
_NEITHER = (
    r"\s\x00-,.:-@\[-^`{-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u200c\u200e-\u206f\u3000-\u303f"
    r"\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_TAG = regex(f"#[0-9/_-]*+[^0-9/_{_NEITHER}-][^{_NEITHER}]*+")


def end(text: str, mark: int, stop: int) -> int:
    """Where the name ends, before `stop`, that stands behind the "#" at `mark`; 0 when none does."""
    found = _TAG.match(text, mark, stop)
    return found.end() if found else 0
