"""What a conversation came to: topics, key points, decisions and action items, by a model or by rules.

A model is asked once, for JSON. What it answers is looked at before it counts, and without a sound answer the
rules decide (`mdmem.conversations.observe.events`). Nothing is said twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from mdmem.conversations.log.message import Message
from mdmem.conversations.models.generator import Generator, prompt, structured
from mdmem.conversations.observe.events import ASKED, DECIDED, OPEN, events
from mdmem.conversations.prompt.summarise import names, transcript, write_request
from mdmem.document.markdown.sentences import cut_at_sentence
from mdmem.document.text.tokens import in_line

MOST = 10
"""How many entries one part of an outline has at most."""
_LONGEST = 100  # tokens of an entry
_TARGET = 1_000  # tokens of a model's answer
_TOPICS = 8
_TOPIC = "topics"
_LISTS = ("topics", "key_points", "decisions", "action_items")
_SCHEMA = {
    "type": "object",
    "required": ["summary"],
    "properties": {
        "summary": {"type": "string", "pattern": "\\S"},
        **{name: {"type": "array", "items": {"type": "string"}} for name in _LISTS},
    },
}


class Outline(NamedTuple):
    """What a conversation came to, each entry in one line.

    `by` says who found it, `problem` why no model did.
    """

    summary: str = ""
    topics: tuple[str, ...] = ()
    key_points: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    action_items: tuple[str, ...] = ()
    by: str = "rules"
    problem: str = ""


def outline(
    messages: Sequence[Message], target: int, generator: Generator | None = None, workspace: str = ""
) -> Outline:
    """Return the outline of messages.

    Args:
        messages: at least one.
        target: the most tokens of a model's summary, or of all that rules find.
        generator: asks a model; without one, or where it fails, rules decide.
        workspace: the folder below which rules write paths without it.
    """
    if generator is None:
        return _outline_by_rules(messages, target, workspace)
    asked = write_request(transcript(messages), prompt("outline"), _TARGET)
    answer = structured(generator, asked, _TARGET, _SCHEMA)
    if answer.problem:
        return _outline_by_rules(messages, target, workspace)._replace(problem=answer.problem)
    summary = cut_at_sentence(in_line(answer.value["summary"]), target)
    seen = {summary}
    parts: dict[str, Any] = {}
    # What stands in several parts stays in the one that says most about it.
    for name in reversed(_LISTS):
        lines = (cut_at_sentence(in_line(text), _LONGEST) for text in answer.value.get(name, ()))
        entries = dict.fromkeys(filter(None, lines))
        parts[name] = tuple(entry for entry in entries if name == _TOPIC or entry not in seen)[:MOST]
        seen.update(parts[name])
    return Outline(summary, **parts, by=answer.by)


def _outline_by_rules(messages: Sequence[Message], target: int, workspace: str) -> Outline:
    found = events(messages, target, workspace)
    asked = min(found, key=lambda event: event.kind != ASKED, default=None)
    others = [event for event in found if event is not asked]
    counts = Counter(chain.from_iterable(names(event.quote) for event in found))
    return Outline(
        summary=asked.text if asked else "",
        topics=tuple(name for name, _ in counts.most_common(_TOPICS)),
        key_points=tuple(event.text for event in others if event.kind not in {DECIDED, OPEN}),
        decisions=tuple(event.text for event in others if event.kind == DECIDED),
        action_items=tuple(event.text for event in others if event.kind == OPEN and event.quote),
    )
