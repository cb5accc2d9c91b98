"""Answers: what a tool gives back, readable and structured, within a bound."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mdmem.text.tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")

# Hosts warn of answers beyond 10,000 tokens, and an answer stands in both forms.
BUDGET = 6_000
MOST_BUDGET = 25_000
_CHARACTERS_A_TOKEN = 4
DIGITS = 12  # of a hash: enough to name one content of a vault, a quarter of the tokens of all


class Answer(NamedTuple):
    """What a tool says.

    Attributes:
        texts: for a reader, each a block of its own, so that the text of a memory stands alone in one.
        data: the same as a JSON object.
        is_error: whether nothing was done.
    """

    texts: tuple[str, ...]
    data: dict[str, Any]
    is_error: bool = False


def short(digest: str | None) -> str:
    """A hash as it is shown; it can be given back as `base`."""
    return (digest or "")[:DIGITS]


def within(items: Iterable[tuple[T, str]], budget: int) -> list[tuple[T, str]]:
    """The first items, each with its text, that fit into so many tokens; the first one always does."""
    taken: list[tuple[T, str]] = []
    for item in items:
        budget -= estimate(item[1])
        if budget < 0 and taken:
            break
        taken.append(item)
    return taken


def beginning(text: str, budget: int) -> str:
    """The beginning of a text that fits into so many tokens, a character at least."""
    most = budget * _CHARACTERS_A_TOKEN
    while most > 1 and estimate(text[:most]) > budget:
        most //= 2
    return text[:most]


def page(items: Sequence[T], offset: int, limit: int) -> tuple[list[T], int]:
    """The items of a page, and how many there are behind it."""
    taken = list(islice(items, offset, offset + limit))
    return taken, max(0, len(items) - offset - len(taken))


def encodable(value: Any) -> Any:
    """A value of which every text can be sent: half a character becomes its escape."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(each) for each in value]
    return value
