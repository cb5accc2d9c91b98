"""The words by which it is known what a text states: read from files that hold words alone, no patterns."""

from __future__ import annotations

from typing import NamedTuple


class Lexicon(NamedTuple):
    """Words, by what they tell."""

    languages: tuple[str, ...] = ("en", "zh")


def builtin() -> Lexicon:
    """The lexicon that comes with the program."""
    return Lexicon()
