"""Extract what the user of an agent wishes to last: preferences, constraints, decisions, facts.

A sentence counts if it begins with a cue of `cues.toml`, as such wishes do, or if the part behind a semicolon
does. Questions, code, quotations, pasted documents and outputs of programs are passed over. People mostly
tell an agent about the task at hand, so little is taken; a model can find the rest
(`mdmem.conversations.observe.quotation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from mdmem.conversations.observe.candidate import LONGEST_VALUE, Candidate
from mdmem.conversations.observe.cues import Cues, builtin_cues
from mdmem.diagnostic import Span
from mdmem.document.document import parse_text
from mdmem.document.markdown import blocks
from mdmem.document.markdown.blocks import IMAGE, LINK
from mdmem.document.markdown.sentences import sentences
from mdmem.document.outline import read_tree
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, in_line

MOST_READ = 1_500
"""Characters of the longest message that is read: longer ones are pasted, or describe a task."""

_USERS = ("user", "human")
_SURE = 0.8
_MOST_ITEMS = 5  # a list of more items was pasted
_LEAST_WORDS = 3  # of a sentence that says something
_NO_TEXT = regex("[\0\ud800-\udfff]")  # which no memory may hold
_BLACK = regex(r"\S")
_WORD = regex(r"[\u3040-\u9fff]|[^\W_\u3040-\u9fff]+")
# What ends a question, or introduces what follows.
_OPEN = regex(r"[?\uff1f\u5417\u5462\u4e48:\uff1a][^\w`]*\Z")
_CLAUSE = regex(r";\s+|\uff1b\s*")
# Lines that a program wrote: markup, prompts and what a shell prints, dates, numbered lines, traces.
_PRINTED = regex(
    r"(?m)^[ \t]*(?:<[a-z/!]|[+$%\u2500-\u257f]|\[?[0-9]+[-:/][0-9]|[0-9]+[\t|]|at .+:[0-9]"
    r"|File \"|Traceback )"
)
_QUOTED = regex(
    r"\"[^\"\n]{1,400}\"|\u201c[^\u201d\n]{1,400}\u201d|\u300c[^\u300d\n]{1,400}\u300d"
    r"|(?<!\w)['\u2018](?=\S)[^'\u2019\n]{1,200}['\u2019](?!\w)"
)


def extract(text: str, speaker: str = "user", cues: Cues | None = None) -> list[Candidate]:
    """Extract what a message states, in order; of two wishes for one preference the last.

    Args:
        text: what was said; `left_out` tells whether it is too long.
        speaker: only what a user says counts.
        cues: those of a vault; without them the built-in ones.
    """
    if not is_user(speaker) or left_out(text):
        return []
    known = cues or builtin_cues()
    if known.sets_role(text):
        return []
    found = [
        candidate_of(known, kind, text, Span(span.start + start, span.end), f"cue: {cue}")
        for sentence, span in _spoken_sentences(text)
        for start, kind, cue in _find_wish(known, sentence)
    ]
    last = {(each.category, each.key): each for each in found if each.key}
    return [each for each in found if not each.key or last[each.category, each.key] is each]


def is_user(speaker: str) -> bool:
    """Return whether a role is that of the user."""
    return speaker.casefold() in _USERS


def left_out(text: str) -> int:
    """Count the characters of a text that `extract` does not look at: all of one that is too long."""
    return len(text) if len(text) > MOST_READ else 0


def candidate_of(cues: Cues, kind: str, text: str, span: Span, why: str, sure: float = _SURE) -> Candidate:
    """Return the candidate that quotes a part of a text."""
    quote = text[slice(*span)]
    category, _, key = cues.key_of(quote).partition("/") if kind == "preference" else ("", "", "")
    return Candidate(
        kind=kind,
        category=category,
        key=key,
        value=clipped(in_line(quote), LONGEST_VALUE),
        quote=quote,
        start=span.start,
        end=span.end,
        confidence=sure,
        why=why,
    )


def _find_wish(cues: Cues, sentence: str) -> Iterator[tuple[int, str, str]]:
    for start in (0, *(found.end() for found in _CLAUSE.finditer(sentence))):
        kind, cue = cues.cue_of(sentence[start:])
        if kind and len(_WORD.findall(sentence, start)) >= _LEAST_WORDS:
            yield start, kind, cue
            return


def _spoken_sentences(text: str) -> Iterator[tuple[str, Span]]:
    """Yield the sentences of a message that ask nothing, quotations blanked, and where each stands in it."""
    for start, end in _typed_parts(text):
        clean = _blank_quotations(text[start:end])
        for span in sentences(clean):
            sentence = clean[slice(*span)]
            if not _OPEN.search(sentence) and len(_WORD.findall(sentence)) >= _LEAST_WORDS:
                yield sentence, Span(start + span.start, start + span.end)


def _typed_parts(text: str) -> Iterator[Span]:
    """Yield the paragraphs and items of a message that were typed, as far as their form tells.

    Long lists are pasted, and so is what follows a heading.
    """
    document = parse_text("message.md", _NO_TEXT.sub("?", text))
    nodes = list(takewhile(lambda node: not node.level, read_tree(document).nodes))
    is_listing = sum(node.kind == "item" for node in nodes) > _MOST_ITEMS
    for node in nodes:
        if node.kind == "paragraph" or (node.kind == "item" and not node.is_code and not is_listing):
            start = document.lines.span(node.line).start + len(node.marker)
            end = document.lines.span(node.last).end
            if not _PRINTED.search(text[start:end]):
                yield Span(start, end)


def _blank_quotations(text: str) -> str:
    """Return a text of the same length with `_` for each letter of code, quotations and addresses."""
    for mark in blocks.inlines(text, 0, len(text)):
        if mark.kind not in (LINK, IMAGE):
            text = text[: mark.start] + _BLACK.sub("_", text[mark.start : mark.end]) + text[mark.end :]
    return _QUOTED.sub(lambda quoted: _BLACK.sub("_", quoted[0]), text)
