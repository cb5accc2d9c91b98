"""Vaults to measure in: as many notes as wanted, and always the same ones for a seed."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from itertools import accumulate, product

# 2,197 words of three syllables, the n-th 1/n as frequent as the first (Zipf's law).
_SYLLABLES = ("ba", "co", "di", "fe", "gu", "ha", "ko", "li", "me", "no", "pu", "ra", "si")
VOCABULARY = tuple(map("".join, product(_SYLLABLES, repeat=3)))
_WEIGHTS = tuple(accumulate(1 / rank for rank in range(1, len(VOCABULARY) + 1)))
_TAGS = ("decision", "design", "incident", "meeting", "person", "reading", "tool")
_PER_FOLDER = 100


def make(root: str, notes: int, seed: int, planted: Mapping[str, int] | None = None) -> None:
    """Make a vault in `root` with so many notes, about 1.2 KB each, in folders of 100.

    Args:
        root: the folder; made when it is missing.
        notes: how many.
        seed: which ones.
        planted: words that are not in the vocabulary, each with the number of notes that hold it once.
    """
    rng = random.Random(seed)
    words = _places(rng, notes, planted or {})
    os.makedirs(os.path.join(root, ".mdmem"))
    with open(os.path.join(root, ".mdmem", "config.toml"), "w", encoding="utf-8"):
        pass
    for number in range(notes):
        folder = os.path.join(root, "notes", f"{number // _PER_FOLDER:04}")
        if number % _PER_FOLDER == 0:
            os.makedirs(folder)
        with open(os.path.join(folder, f"{number:06}.md"), "w", encoding="utf-8") as file:
            file.write(note(rng, number, words.get(number, ())))


def note(rng: random.Random, number: int, planted: Sequence[str] = ()) -> str:
    """One note: frontmatter, a title, two to five sections of prose, and `planted` in the last sentence."""
    title = _sentence(rng, 4)[:-1]
    lines = [
        "---",
        f"title: {title}",
        f"tags: [{', '.join(rng.sample(_TAGS, 2))}]",
        f"created: 2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        "---",
        "",
        f"# {title}",
    ]
    for _ in range(rng.randint(2, 5)):
        lines += ["", f"## {_sentence(rng, 2)[:-1]}", ""]
        lines += [_sentence(rng, rng.randint(8, 14)) for _ in range(rng.randint(2, 5))]
    lines += ["", " ".join([f"This was note {number}", *planted]) + "."]
    return "\n".join(lines) + "\n"


def _sentence(rng: random.Random, length: int) -> str:
    return " ".join(rng.choices(VOCABULARY, cum_weights=_WEIGHTS, k=length)).capitalize() + "."


def _places(rng: random.Random, notes: int, planted: Mapping[str, int]) -> dict[int, list[str]]:
    places: dict[int, list[str]] = {}
    for word, count in planted.items():
        for number in rng.sample(range(notes), min(count, notes)):
            places.setdefault(number, []).append(word)
    return places
