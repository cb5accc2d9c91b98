"""The cues that sentences worth keeping begin with: the built-in table, and what a vault adds to it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Any

from mdmem.diagnostic import Diagnostic, about_file, find_toml_place
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, in_line

KINDS = ("preference", "constraint", "decision", "fact")
"""What can be stated."""
PATH = ".mdmem/lexicon.toml"
"""Where a vault has cues of its own."""
MOST_BYTES, LONGEST = 64 * 1024, 60
"""How large that file may be, and how many characters a phrase in it may have."""

_NEAR = 10  # words that "..." stands for, at most; twice as many signs where nothing parts words
_MOST_LEAD = 4  # phrases of `lead` before a cue
_BETWEEN = r"[\s*_]+"  # between two words of a phrase, which may stand out
# Signs put before each word of a sentence that no <things> hold, or that is a <verb>.
_VAGUE, _VERB = "\1", "\2"
_SIGNS = regex(f"[{_VAGUE}{_VERB}]+")
_NAMED = {"<number>": r"(?:[0-9]+|[a-d](?!\w)|[一二三四五六七八九十])", "<verb>": rf"{_VERB}[\w'-]+"}
_BEFORE, _APART = regex(rf"[^\w{_VAGUE}]*"), regex(r"\W*")
_UNSIGNED = str.maketrans("\u0131", "i", f"'{_VAGUE}{_VERB}\u0307")  # the letters i of Turkish are one
_WORDS_IN = rf"[^\s:;]+(?:\s+[^\s:;]+){{0,{_NEAR - 1}}}?"
_SIGNS_IN = rf"[^:;,\uff1a\uff1b\uff0c]{{1,{2 * _NEAR}}}?"
_THING = rf"{_VERB}?[^\s:;{_VAGUE}{_VERB}]+"
_THINGS = rf"{_THING}(?:\s+{_THING}){{0,3}}?(?![^\s:;,.!])"
_UNSPACED = regex(r"[\u3040-\u9fff]")
_PART, _BLANKS = regex(r"(<\w+>)|\.\.\.,?"), regex(r"[\s*_,]+")
_TOKEN = regex(r"(?<![\w-])[A-Za-z][\w'-]*")
_LONGEST_REASON = 300  # characters
_FREE = r"(?:\.\.\.|<things>)"
_PHRASE = {"type": "string", "pattern": rf"^(?!.*{_FREE}.*{_FREE}).*\S", "maxLength": LONGEST}  # once
_CLOSED = {"type": "object", "additionalProperties": False}
_CUES = {**_CLOSED, "properties": {"cues": {"type": "array", "items": _PHRASE}}, "required": ["cues"]}
# They are looked for at each place of a sentence, where "..." would take the square of its length.
_WORDS = {"type": "array", "items": {**_PHRASE, "pattern": rf"^(?!.*{_FREE}).*\S"}}
_KEY = "[a-z][a-z0-9_-]{0,39}"
_KEYS = {"type": "object", "propertyNames": {"pattern": f"^{_KEY}/{_KEY}$"}, "additionalProperties": _WORDS}
_SCHEMA = {**_CLOSED, "properties": {**dict.fromkeys(KINDS, _CUES), "keys": _KEYS}}


class Cues:
    """The cues of each kind, the words that make a sentence momentary, and those that name a preference."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._keys = tuple(tables["keys"])
        self._lists = {**tables, **tables["keys"], **{kind: tables[kind]["cues"] for kind in KINDS}}
        self._lists |= {f"<{name}>": words for name, words in tables["words"].items()}
        self._signs = {word.replace("'", ""): _VAGUE for word in tables["vague"] + tables["pointing"]}
        self._signs |= {word.replace("'", ""): _VERB for word in tables["verb"]}
        # To compile all phrases takes longer than all else, and few of them have their words in a sentence.
        self._standing, self._compiled = lru_cache(128)(self._list_standing), lru_cache(1_000)(self._compile)
        self._longest = cache(self._list_longest)

    def cue_of(self, sentence: str) -> tuple[str, str]:
        """Return the kind of a sentence and the cue that tells it; both are empty where none does."""
        plain = sentence.replace("\u2019", "'")
        marked = _TOKEN.sub(lambda it: self._signs.get(it[0].casefold().replace("'", ""), "") + it[0], plain)
        places = dict.fromkeys(self._find_places(marked))
        for kind in KINDS:
            cue = next((found for place in places for found in self._find(kind, marked, place)), None)
            if cue and not self._is_momentary(plain, marked, cue.end()):
                return kind, in_line(_SIGNS.sub("", cue[0]).rstrip(".,!"))
        return "", ""

    def sets_role(self, message: str) -> bool:
        """Return whether a message sets up one conversation."""
        return any(self._find("role", message))

    def key_of(self, text: str) -> str:
        """Return which preference a text is about, as "category/key"; empty where its words do not say."""
        return next((key for key in self._keys if any(self._find(key, text))), "")

    def _find_places(self, text: str, start: int = 0, leads: int = _MOST_LEAD) -> Iterator[int]:
        """Yield where a cue may begin: behind as many phrases of `lead` as can be, and then behind fewer."""
        for place in range(next(_BEFORE.finditer(text, start)).end(), start - 1, -1):
            for lead in self._find("lead", text, place) if leads else ():
                yield from self._find_places(text, lead.end(), leads - 1)
            yield place

    def _is_momentary(self, plain: str, marked: str, end: int) -> bool:
        """Return whether a sentence counts for now alone, or points at something behind its cue."""
        places = range(end, next(_APART.finditer(marked, end)).end() + 1)
        pointing = (found for place in places for found in self._find("pointing", marked, place))
        found = chain(pointing, self._find("momentary", plain))
        return any(not any(self._find("here", each.string, each.start())) for each in found)

    def _find(self, name: str, text: str, place: int | None = None) -> Iterator[re.Match[str]]:
        """Yield what the phrases of a list match in a text, or at one place of it the longest first."""
        folded = _fold(text)
        for phrase in self._standing(name, folded):
            has_lists = self._lists.keys() & _split_phrase(phrase)[1]
            pattern = self._compiled(phrase, folded if has_lists else "")
            yield from filter(None, pattern.finditer(text) if place is None else [pattern.match(text, place)])

    def _list_longest(self, name: str) -> list[tuple[str, str]]:
        phrases = sorted(self._lists[name], key=len, reverse=True)
        return [(_split_phrase(phrase)[0][0], phrase) for phrase in phrases]

    def _compile(self, phrase: str, text: str) -> re.Pattern[str]:
        return re.compile(self._phrase_pattern(phrase, text), re.IGNORECASE)

    def _stands(self, text: str, phrase: str) -> bool:
        """Return whether the words of a phrase stand in a folded text, wherever."""
        literals, names = _split_phrase(phrase)
        return all(map(text.__contains__, literals)) and all(
            name not in self._lists or self._standing(name, text) for name in names
        )

    def _list_standing(self, name: str, text: str) -> list[str]:
        return [each for longest, each in self._longest(name) if longest in text and self._stands(text, each)]

    def _phrase_pattern(self, phrase: str, text: str) -> str:
        """Return the pattern of a phrase: of whole words, except in Chinese, where nothing parts words."""
        words, is_spaced = phrase.split(), not _UNSPACED.search(phrase)
        near = _WORDS_IN if is_spaced else _SIGNS_IN
        free = {"...": near, "...,": rf"{near}(?<=,)", "<things>": _THINGS}
        parts = [free.get(word) or self._word_pattern(word, text) for word in words]
        if not is_spaced:
            return (r"[\s*_]*" if words[0] == "..." else r"[\s*_,\uff0c]*").join(parts)
        gaps = [_BETWEEN if free.keys() & {*pair} else f",?{_BETWEEN}" for pair in pairwise(words)]
        return rf"(?<!\w){''.join(map(''.join, zip(parts, [*gaps, ''], strict=True)))}(?!\w|-\w)"

    def _word_pattern(self, word: str, text: str) -> str:
        """Return the pattern of a word as people write it: behind a sign, without apostrophes."""
        typed = re.escape(word).replace("'", "'?")
        named = _PART.sub(lambda name: self._named_pattern(name[0], text) or name[0], typed)
        return f"[{_VAGUE}{_VERB}]?{named}"

    def _named_pattern(self, name: str, text: str) -> str:
        """Return the pattern of the phrases of a list that stand in a text, the longest first."""
        standing = self._standing(name, text) if name in self._lists else ()
        patterns = "|".join(self._phrase_pattern(each, text) for each in standing)
        return f"(?:{patterns})" if patterns else _NAMED.get(name, "")


@lru_cache(8)
def _fold(text: str) -> str:
    """Return a text without signs, in which what a pattern takes for the same is the same."""
    return _BLANKS.sub(" ", text.casefold().translate(_UNSIGNED))


@lru_cache(4_000)
def _split_phrase(phrase: str) -> tuple[list[str], list[str]]:
    """Return what a folded text has to hold of a phrase, the longest first, and the names in it."""
    parts = _PART.split("...".join(phrase.split()) if _UNSPACED.search(phrase) else phrase)
    return sorted(map(_fold, parts[::2]), key=len, reverse=True), [each for each in parts[1::2] if each]


@cache
def builtin_cues() -> Cues:
    """Return the cues that come with the program."""
    return Cues(_builtin_tables())


@lru_cache(maxsize=4)
def extended_cues(text: str) -> tuple[Cues, Diagnostic | None]:
    """Return the built-in cues with a vault's own; or without them, and what is wrong with these.

    Args:
        text: of the vault's `PATH`: `[keys]`, and a table for each kind with a list `cues`.
    """
    from mdmem.vault.schema.validator import fault  # noqa: PLC0415 - jsonschema is needed here alone

    own, place, hint = {}, None, "the built-in cues are used; correct the file, or remove it"
    try:
        own = tomllib.loads(text)
        problem = fault(_SCHEMA, own)
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:  # not TOML, or a number of thousands of digits
        problem, place = f"it is not TOML: {error}", find_toml_place(text, error)
    if problem:
        (line, column), reason = place or (1, 1), clipped(in_line(problem), _LONGEST_REASON)
        found = about_file(PATH, "lexicon", reason, hint, line=line, column=column, severity="warning")
        return builtin_cues(), found
    tables = _builtin_tables()
    for kind in KINDS:
        tables[kind]["cues"] += own.get(kind, {"cues": []})["cues"]
    tables["keys"] = {**own.get("keys", {}), **tables["keys"], **own.get("keys", {})}
    return Cues(tables), None


def _builtin_tables() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "cues.toml"), "rb") as file:
        return tomllib.load(file)
