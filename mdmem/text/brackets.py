"""A JSON object or a flow list of YAML as text: what stands between its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from mdmem.diagnostic import Span
from mdmem.text.tree import Node

K = TypeVar("K")


class Brackets(Generic[K]):
    """The brackets of a collection, and what stands between them and its parts: commas, blanks, line ends.

    Args:
        text: what the collection stands in.
        node: the collection.
        places: where each of its parts stands in `text`, in order.
    """

    def __init__(self, text: str, node: Node, places: Mapping[K, Span]) -> None:
        start, end = node.span
        starts, ends = [place.start for place in places.values()], [place.end for place in places.values()]
        self.gaps = [text[at:to] for at, to in zip([start + 1, *ends], [*starts, end - 1], strict=True)]
        self.commas = dict(zip(list(places)[1:], self.gaps[1:], strict=False))
        self.pair = text[start], text[end - 1]

    def joined(self, other: Brackets[K], parts: Mapping[K, str]) -> str:
        """`parts` laid out as here; what is not known here, as in `other`."""
        opening, closing = self.pair
        if not parts:
            return opening + closing
        lead, *gaps = self.gaps if len(self.gaps) > 1 else other.gaps
        usual = next(iter({**self.commas, **other.commas}.values()), f",{lead or ' '}")
        (_, first), *others = parts.items()
        rest = (self.commas.get(key, usual) + part for key, part in others)
        return "".join([opening, lead, first, *rest, *gaps[-1:], closing])
