"""What a conversation came to: topics, key points, decisions and action items, by a model or by rules.

A model is asked once, for JSON. What it answers is looked at before it counts, and without a sound answer the
rules decide: sentences that say that something was decided, or is still to be done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mdmem.generator import Generator, prompt, structured
from mdmem.sessions.message import Message
from mdmem.sessions.summarise import asked_about, extract, names, sentences, transcript
from mdmem.text.regex import regex
from mdmem.text.sentences import cut_at_sentence
from mdmem.text.tokens import in_line

MOST = 10
"""How many entries one part of an outline has at most."""
_LONGEST = 100  # tokens of an entry
_TARGET = 1_000  # tokens of a model's answer
_DECIDED = regex(
    r"(?i)\b(?:decid\w+|decision|agreed|chose|chosen|settled on|we(?: wi|')ll use|let'?s use|go with)\b"
    r"|决定|选择了|采用|确定"
)
_TO_DO = regex(
    r"(?i)\b(?:todo|to-do|action item|next step|need(?:s)? to|have to|remember to|follow up|"
    r"(?:i|we|you)(?: wi|')ll (?!use))\b|待办|下一步|需要|必须|记得"
)
_QUESTION = regex("[?\uff1f][\"')\\]]*\\Z")
_TOPICS = 8
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
    """What a conversation came to.

    Attributes:
        summary: in one line.
        topics, key_points, decisions, action_items: each entry in one line, and once.
        by: who says so: `rules`, or the name of a model.
        problem: why no model does, where one was asked.
    """

    summary: str = ""
    topics: tuple[str, ...] = ()
    key_points: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    action_items: tuple[str, ...] = ()
    by: str = "rules"
    problem: str = ""


def outline(messages: Sequence[Message], target: int, generator: Generator | None = None) -> Outline:
    """The outline of messages, with a summary of at most `target` tokens."""
    by_rules = _by_rules(messages, target)
    if generator is None:
        return by_rules
    asked = asked_about(transcript(messages), prompt("outline"), _TARGET)
    answer = structured(generator, asked, _TARGET, _SCHEMA)
    if answer.problem:
        return by_rules._replace(problem=answer.problem)
    parts: dict[str, Any] = {name: _distinct(answer.value.get(name, ()))[:MOST] for name in _LISTS}
    return Outline(cut_at_sentence(in_line(answer.value["summary"]), target), **parts, by=answer.by)


def _by_rules(messages: Sequence[Message], target: int) -> Outline:
    decisions: list[str] = []
    to_do: list[str] = []
    counts: Counter[str] = Counter()
    for sentence in sentences(messages):
        if messages[sentence.message].answers:
            continue  # what a tool printed decides nothing
        counts.update(names(sentence.text))
        if not _QUESTION.search(sentence.text):
            if _DECIDED.search(sentence.text):
                decisions.append(sentence.text)
            elif _TO_DO.search(sentence.text):
                to_do.append(sentence.text)
    text = extract(messages, target)
    return Outline(
        summary=text.partition("\n")[0],
        topics=tuple(name for name, _ in counts.most_common(_TOPICS)),
        key_points=_distinct(text.split("\n"))[:MOST],
        decisions=_distinct(decisions)[-MOST:],
        action_items=_distinct(to_do)[-MOST:],
    )


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts in one line each, in order, each once, long ones cut at a sentence."""
    lines = (cut_at_sentence(in_line(text), _LONGEST) for text in texts)
    return tuple(dict.fromkeys(filter(None, lines)))
