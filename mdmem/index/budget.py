"""Budgets: the hits of a search that fit into so many tokens, each whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mdmem.text.tokens import estimate

if TYPE_CHECKING:
    from mdmem.index.hit import Hit
    from mdmem.index.search import Results


def within_budget(results: Results, tokens: int) -> Results:
    """The hits that fit into a budget, the best first; one that does not fit leaves its room to later ones.

    Args:
        results: what was found.
        tokens: about how many may be used, see `mdmem.text.tokens`.
    """
    kept: list[int] = []
    left, out = tokens, 0
    for number, hit in enumerate(results.hits):
        cost = tokens_of(hit)
        if cost <= left:
            kept.append(number)
            left -= cost
        else:
            out += cost
    count = len(results.hits) - len(kept)
    hits = [replace(results.hits[number], left_out=0) for number in kept]
    left_out = results.left_out + count
    if hits and left_out:
        hits[-1] = replace(hits[-1], left_out=left_out)
    return replace(
        results,
        hits=tuple(hits),
        left_out=left_out,
        left_out_tokens=out,
        explanations=tuple(results.explanations[number] for number in kept) if results.explanations else (),
        held=tuple(results.held[number] for number in kept) if results.held else (),
    )


def tokens_of(hit: Hit) -> int:
    """About how many tokens a hit takes: where it is, its date, and its lines."""
    place = f"{hit.path}:{hit.line} {' > '.join(hit.heading)} {hit.date}"
    return estimate("\n".join((place, *hit.before, hit.text, *hit.after, "")))
