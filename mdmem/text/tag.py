"""Tags: `#name` in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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
_TAG = re.compile(f"#([0-9/_-]*+[^0-9/_{_NEITHER}-][^{_NEITHER}]*+)")


def spans(text: str, start: int, end: int) -> Iterator[Span]:
    """What may be the name of a tag between `start` and `end`: it stands behind a "#"."""
    return (Span(found.start() + 1, found.end()) for found in _TAG.finditer(text, start, end))
