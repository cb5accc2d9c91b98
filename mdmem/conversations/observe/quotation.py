"""Ask a model what messages state: each statement is a quotation, which has to stand in its message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mdmem.conversations.models.generator import Generator, prompt, structured
from mdmem.conversations.observe.candidate import Candidate
from mdmem.conversations.observe.cues import KINDS, Cues
from mdmem.conversations.observe.extract import candidate_of
from mdmem.diagnostic import Span
from mdmem.document.text.tokens import abridged, estimate, fenced

_SURE = 0.6
_MOST_ASKED, _MOST_ANSWERED = 10_000, 1_000  # tokens of the texts that a model reads, and of its answer
_LONGEST_QUOTE = 1_000  # characters
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["candidates"],
    "properties": {
        "candidates": {
            "type": "array",
            "maxItems": 100,
            "items": {
                "type": "object",
                "required": ["message", "kind", "quote"],
                "properties": {
                    "message": {"type": "integer", "minimum": 1},
                    "kind": {"enum": list(KINDS)},
                    "quote": {"type": "string", "pattern": "\\S", "maxLength": _LONGEST_QUOTE},
                },
            },
        }
    },
}


class Additions(NamedTuple):
    """Candidates of each text with those that a model named, and why it named none."""

    candidates: list[list[Candidate]]
    problem: str = ""


def in_batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the numbers of texts about which a model is asked at once, since they are not too long."""
    batch: list[int] = []
    left = _MOST_ASKED
    for number, text in enumerate(texts):
        left -= estimate(text)
        if batch and left < 0:
            yield batch
            batch, left = [], _MOST_ASKED - estimate(text)
        batch.append(number)
    if batch:
        yield batch


def added_by(
    generator: Generator, texts: Sequence[str], known: Sequence[Sequence[Candidate]], cues: Cues
) -> Additions:
    """Add the candidates that a model names to known ones, in the order of their places.

    A model only adds: its quotations have to stand in the message (blanks and line ends may differ), and
    outside of the known candidates. Without a sound answer, only the known candidates are returned.

    Args:
        generator: asks the model, once.
        texts: what was said; of a very long one the model reads the beginning and the end.
        known: what `extract` found in each.
        cues: they name the preferences.
    """
    said = "\n".join(
        fenced(abridged(text, _MOST_ASKED), f"message {number}") for number, text in enumerate(texts, 1)
    )
    asked = f"{prompt('capture').replace('{target}', str(_MOST_ANSWERED), 1)}\n{said}\n"
    answer = structured(generator, asked, _MOST_ANSWERED, _SCHEMA)
    candidates = [[*each] for each in known]
    for entry in () if answer.problem else answer.value["candidates"]:
        number = entry["message"] - 1
        place = place_of(entry["quote"], texts[number]) if number < len(texts) else None
        if place and not any(
            each.start < place.end and place.start < each.end for each in candidates[number]
        ):
            candidates[number].append(candidate_of(cues, entry["kind"], texts[number], place, "model", _SURE))
    return Additions([sorted(each, key=lambda c: c.start) for each in candidates], answer.problem)


def place_of(quote: str, text: str) -> Span | None:
    """Return where a quotation stands in a text, blanks and line ends aside; None where it does not."""
    place = re.search(r"\s+".join(map(re.escape, quote.split())), text)
    return Span(*place.span()) if place else None
