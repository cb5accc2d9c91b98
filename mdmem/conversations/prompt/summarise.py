"""Summaries of messages: by a language model that the caller brings, else of their own sentences.

What was said is data: a model gets it in a fence that it cannot close, and `extract` never reads a prompt.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from mdmem.conversations.log.message import Message
from mdmem.conversations.models.generator import Generator, Reply, prompt as builtin, reply
from mdmem.document.markdown.sentences import cut_at_sentence, sentences
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import abridged, estimate, fenced, in_line
from mdmem.index.query import stop_words

EXTRACT = "extract"
"""Who made a summary that is made of sentences of the messages."""

SUMMARY = "summary"
"""The role of a message that is itself a summary of others."""

_ROOM = 2  # times the target that an answer may take: one that is cut off would say less than a long one
_SHORTER = 2  # times shorter is the target of the second try
_MOST_READ = 50_000  # tokens of one message: of a longer one, its beginning and end
_MOST_TOLD = 1_000  # tokens of a call of a tool, or of its answer, in a prompt

_BETWEEN = "\n\n"
_EARLIER = "For orientation, what was said before it, which your summary does not repeat:"


Rules = Callable[[Sequence[Message], int], str]
"""A function of messages and a number of tokens that makes a summary without a model."""


class Summarised(NamedTuple):
    """A summary: its text, who made it (the name of the generator, or `extract`), and why no model did.

    `asked` and `answered` are estimates of the tokens that a model was asked and gave, in all of its tries.
    """

    text: str
    by: str
    problem: str = ""
    asked: int = 0
    answered: int = 0


def prompt_of(depth: int, earlier: Sequence[str] = ()) -> str:
    """Write what a model is asked for a summary of a depth; `earlier` are the summaries just before it."""
    asked = builtin(("leaf", "condensed", "lasting")[min(depth, 2)])
    if not earlier:
        return asked
    return f"{asked}\n{_EARLIER}\n{fenced(_BETWEEN.join(earlier), 'earlier')}\n"


def summarise(
    messages: Sequence[Message],
    prompt: str,
    target: int,
    generator: Generator | None = None,
    rules: Rules | None = None,
) -> Summarised:
    """Summarise messages in at most `target` tokens, by a model where it gives an answer, else by rules.

    Args:
        prompt: what a model is asked; the first `{target}` in it becomes the number of tokens.
        generator: asks the model, a second time for a shorter summary where the first one is too long. Where
            that is too long as well, the shorter one is cut at a sentence.
        rules: what makes the summary without a model; `extract` without.
    """
    rules = rules or extract
    if generator is None:
        return Summarised(rules(messages, target), EXTRACT)
    conversation = transcript(messages)
    tries: list[Reply] = []
    for tokens in (target, max(1, target // _SHORTER)):
        tries.append(reply(generator, write_request(conversation, prompt, tokens), tokens * _ROOM))
        if tries[-1].problem or estimate(tries[-1].value) <= target:
            break
    last = tries[-1]
    cost = sum(each.asked for each in tries), sum(each.answered for each in tries)
    if last.problem:
        return Summarised(rules(messages, target), EXTRACT, last.problem, *cost)
    text = min((each.value for each in tries), key=estimate)
    return Summarised(cut_at_sentence(text, target), last.by, "", *cost)


def write_request(conversation: str, prompt: str, target: int) -> str:
    """Return the prompt, and below it a transcript in a fence that it cannot close."""
    return f"{prompt.replace('{target}', str(target), 1)}\n{fenced(conversation, 'conversation')}\n"


def transcript(messages: Sequence[Message]) -> str:
    """Write messages for a model to read: who speaks, the words, and short calls and answers of tools."""
    return _BETWEEN.join(f"{label(each)}: {abridged(each.text, most_told(each))}" for each in messages)


def label(message: Message) -> str:
    """Return who speaks, in one line."""
    return in_line(message.speaker) or "item"


def most_told(message: Message) -> int:
    """Return the most tokens of a message that a transcript has."""
    return _MOST_TOLD if any(message.kinds) else _MOST_READ


# -- without a model --------------------------------------------------------------------------------------

_LONGEST = 240  # characters of a sentence
_HAN = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = regex(rf"[{_HAN}]+|[^\W_{_HAN}]+(?:[\u2019'][^\W_{_HAN}]+)*")
_PATH = regex(r"[\w.~-]*+/[\w./-]++|\w++\.[a-z]{1,4}\b|`[^`]++`")
_NAME = regex(r"[A-Z](?<=[\w,;:)] .)\w++|\b\w+[A-Z_]\w++")
_CUE = regex(
    r"\b(?:because|decid\w+|decision|agree[ds]?|must|never|always|should|need(?:s|ed)?|prefer\w*|instead|"
    r"important|remember|todo|next|plan\w*|deadline|fail\w*|error|bug|fix(?:ed|es)?|found|result|cause[ds]?|"
    r"finally|conclu\w+|chose|choose|want(?:s|ed)?|works?)\b"
    r"|决定|因为|所以|必须|不要|总是|应该|需要|喜欢|重要|记住|待办|下一步|计划|截止|失败|错误|修复|发现|结果|"
    r"原因|最后|结论|选择|希望|完成"
)
_DISTINCT = 1.5  # what a word counts for that is part of a name, a path or a number
# Chosen on five conversations of LoCoMo (bench/retrieval.py --sessions): powers of a word's rarity and of a
# sentence's tokens; what a stop word counts for.
_RARE, _LONG, _COMMON = 1.5, 0.7, 0.2
_CUED, _AT_A_SIDE, _OF_A_TOOL = 1.25, 1.2, 0.5  # times what a sentence counts for


class Sentence(NamedTuple):
    """A sentence: its message, its own weight, and its words with theirs."""

    message: int
    text: str
    weight: float
    words: dict[str, float]
    tokens: int


def extract(messages: Sequence[Message], target: int) -> str:
    """Pick the sentences that say most in `target` tokens at most, in order, each once, after who speaks.

    A sentence counts for what is rare in it and not said yet, more where it holds names, paths, numbers or
    words such as "decided", and where it begins or ends the messages.
    """
    # What begins a line; a summary says itself who spoke.
    heads = ["" if each.role == SUMMARY else f"{label(each)}: " for each in messages]
    costs = {head: estimate(f"{head} ") for head in {*heads, ""}}
    found = _find_sentences(messages)
    chosen: list[int] = []
    speaking: set[int] = set()
    left = target
    for index in by_worth(found):
        said = found[index]
        # With what stands before and behind it. A text costs no more than its parts, but for one a cut.
        cost = said.tokens + costs["" if said.message in speaking else heads[said.message]] + 1
        if cost <= left:
            chosen.append(index)
            speaking.add(said.message)
            left -= cost
    if chosen:
        kept = groupby((found[index] for index in sorted(chosen)), key=lambda each: heads[each.message])
        return "\n".join(head + " ".join(each.text for each in said) for head, said in kept)
    words = max((each.text for each in found), key=len, default="")
    return abridged(words or f"[{len(messages)} messages without words]", target)


def _find_sentences(messages: Sequence[Message]) -> list[Sentence]:
    """Return the sentences of messages, each in one line and once, with what they weigh."""
    # No character costs as much as four tokens: what is shorter needs no look.
    long = _MOST_READ // 4
    said = [message.text for message in messages]
    texts = [text if len(text) <= long else abridged(text, _MOST_READ) for text in said]
    found = ((place, text, span) for place, text in enumerate(texts) for span in sentences(text, _LONGEST))
    unique: dict[str, tuple[int, str, dict[str, float]]] = {}
    for place, whole, span in found:
        text = in_line(whole[slice(*span)])
        folded = text.casefold()
        words = {} if folded in unique else _weigh_words(text)
        if words:
            unique[folded] = place, text, words
    weights = [_OF_A_TOOL if "answer" in message.kinds else 1.0 for message in messages]
    for place in {0, len(messages) - 1} if messages else ():
        weights[place] *= _AT_A_SIDE
    return [
        Sentence(place, text, weights[place] * (_CUED if _CUE.search(folded) else 1), words, estimate(text))
        for folded, (place, text, words) in unique.items()
    ]


def sentence_of(message: int, text: str, weight: float) -> Sentence:
    """Return a sentence with its words."""
    return Sentence(message, text, weight, _weigh_words(text), estimate(text))


def _weigh_rarity(sentences: Sequence[Sentence]) -> dict[str, float]:
    counts = Counter(chain.from_iterable(each.words for each in sentences))
    rarity = {word: math.log((1 + len(sentences)) / count) ** _RARE for word, count in counts.items()}
    return rarity | {word: rarity[word] * _COMMON for word in stop_words() & rarity.keys()}


def names(text: str) -> list[str]:
    """Find the names in a sentence: paths, code, and words with capital letters in them."""
    return [found[0].strip("`") for pattern in (_PATH, _NAME) for found in pattern.finditer(text)]


def _weigh_words(text: str) -> dict[str, float]:
    """Weigh the words of a sentence; of Chinese, Japanese and Korean every two characters."""
    named = chain(_PATH.finditer(text), _NAME.finditer(text))
    marked = {place for found in named for place in range(*found.span())}
    words: dict[str, float] = {}
    for found in _WORD.finditer(text):
        word = found[0].casefold()
        weight = _DISTINCT if found.start() in marked or word[0].isdigit() else 1.0
        if "\u3040" <= word[0] <= "\ud7af":
            words |= {word[at : at + 2]: weight for at in range(max(1, len(word) - 1))}
        elif words.get(word, 0.0) < weight:
            words[word] = weight
    return words


def by_worth(sentences: Sequence[Sentence], long: float = _LONG) -> Iterator[int]:
    """Yield the places of sentences, the most worth for its tokens first, given those before it."""
    rarity = _weigh_rarity(sentences)
    said: set[str] = set()

    def worth(index: int) -> float:
        each = sentences[index]
        new: float = sum(
            rarity.get(word, 0.0) * weight for word, weight in each.words.items() if word not in said
        )
        return new * each.weight / math.pow(each.tokens + 1, long)

    ranked = [(-worth(index), index) for index in range(len(sentences))]
    heapq.heapify(ranked)
    while ranked:
        _, index = heapq.heappop(ranked)
        # What was said meanwhile can only make a sentence worth less.
        value = -worth(index)
        if ranked and value > ranked[0][0]:
            heapq.heappush(ranked, (value, index))
        elif value < 0:
            said |= sentences[index].words.keys()
            yield index
