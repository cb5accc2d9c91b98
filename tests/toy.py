"""An embedder for tests: words of one group are the same to it, and it counts what it is given."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = (
    "car automobile vehicle",
    "money invoice bill payment",
    "doctor physician clinic",
    "dog puppy hound",
)
MEANT = {word: group.split()[0] for group in GROUPS for word in group.split()}


class ToyEmbedder:
    """Each word adds one to a number of 32; it reads what is ASCII."""

    constants = (0.05, 0.1)
    is_local = True

    def __init__(self, name: str = "toy", dims: int = 32) -> None:
        self.name, self.dims = name, dims
        self.given: list[str] = []
        self.asked: list[str] = []

    def reads(self, text: str) -> bool:
        return text.isascii()

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.given += texts
        return [self._make(text) for text in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        self.asked.append(text)
        return self._make(text)

    def _make(self, text: str) -> list[float]:
        numbers = [0.0] * self.dims
        numbers[0] = 0.01
        for word in re.findall("[a-z]+", text.lower()):
            meant = MEANT.get(word, word)
            numbers[blake2b(meant.encode(), digest_size=2).digest()[0] % self.dims] += 1
        return numbers
