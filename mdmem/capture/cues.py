"""The cues that sentences worth keeping begin with: the built-in table, and what a vault adds to it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.text.regex import regex
from mdmem.text.tokens import clipped, in_line

KINDS = ("preference", "constraint", "decision", "fact")
"""What can be stated."""
PATH = ".mdmem/lexicon.toml"
"""Where a vault has cues of its own."""
MOST_BYTES, LONGEST = 64 * 1024, 60
"""How large that file may be, and how many characters a phrase in it may have."""

_NEAR = 10  # words that "..." stands for, at most
_MOST_LEAD = 4  # phrases of `lead` before a cue
_BETWEEN = r"[\s*_]+"  # between two words of a phrase, which may stand out
_AT_LINE = regex(r"\(at line ([0-9]+), column [0-9]+\)")
_LONGEST_REASON = 300  # characters
_PHRASE = {"type": "string", "pattern": r"^(?!.*\.\.\..*\.\.\.).*\S", "maxLength": LONGEST}  # "..." once
_PHRASES = {"type": "array", "items": _PHRASE}
_CUES = {
    "type": "object",
    "properties": {"cues": _PHRASES},
    "required": ["cues"],
    "additionalProperties": False,
}
# They are looked for at each place of a sentence, where "..." would take the square of its length.
_WORDS = {"type": "array", "items": {**_PHRASE, "pattern": r"^(?!.*\.\.\.).*\S"}}
_KEY = "[a-z][a-z0-9_-]{0,39}"
_KEYS = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_KEY}/{_KEY}$"},
    "additionalProperties": _WORDS,
}
_SCHEMA = {
    "type": "object",
    "properties": {**dict.fromkeys(KINDS, _CUES), "keys": _KEYS},
    "additionalProperties": False,
}


class Cues:
    """The cues of each kind, the words that make a sentence momentary, and those that name a preference.

    Args:
        tables: as `cues.toml` has them.
    """

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._verbs = "|".join(map(re.escape, tables["verbs"]))
        before = rf"\W*(?:(?:{self._join_patterns(tables['lead'])})\W*){{0,{_MOST_LEAD}}}"
        self._cues = {
            kind: re.compile(f"{before}(?P<cue>{self._join_patterns(tables[kind]['cues'])})", re.IGNORECASE)
            for kind in KINDS
        }
        self._momentary = re.compile(self._join_patterns(tables["momentary"]), re.IGNORECASE)
        self._keys = {
            key: re.compile(self._join_patterns(words), re.IGNORECASE)
            for key, words in tables["keys"].items()
            if words
        }

    def cue_of(self, sentence: str) -> tuple[str, str]:
        """Return the kind of a sentence and the cue that tells it; both are empty where none does."""
        plain = sentence.replace("\u2019", "'")
        for kind, pattern in self._cues.items():
            cue = pattern.match(plain)
            if cue and not self._momentary.search(plain):
                return kind, in_line(cue["cue"])
        return "", ""

    def key_of(self, text: str) -> str:
        """Return which preference a text is about, as "category/key"; empty where its words do not say."""
        return next((key for key, pattern in self._keys.items() if pattern.search(text)), "")

    def _join_patterns(self, phrases: Iterable[str]) -> str:
        return "|".join(map(self._phrase_pattern, phrases))

    def _phrase_pattern(self, phrase: str) -> str:
        """Return the pattern of a phrase: of whole words, except in Chinese, where nothing parts words."""
        special = {"...": rf"[^\s:;]+(?:\s+[^\s:;]+){{0,{_NEAR - 1}}}?", "<verb>": f"(?:{self._verbs})"}
        words = [special.get(word) or re.escape(word) for word in phrase.split()]
        begins = r"(?<!\w)" if phrase.strip()[0].isascii() else ""
        ends = r"(?!\w)" if phrase.strip()[-1].isascii() else ""
        return f"{begins}{_BETWEEN.join(words)}{ends}"


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
    try:
        own = tomllib.loads(text)
    except RecursionError:
        return builtin_cues(), _make_finding("it is nested too deeply")
    except ValueError as error:  # not TOML, or a number of thousands of digits
        line = _AT_LINE.search(str(error))
        return builtin_cues(), _make_finding(f"it is not TOML: {error}", int(line[1]) if line else 1)
    from mdmem.schema.validator import fault  # noqa: PLC0415 - jsonschema is needed here alone

    problem = fault(_SCHEMA, own)
    if problem:
        return builtin_cues(), _make_finding(problem)
    tables = _builtin_tables()
    for kind in KINDS:
        tables[kind]["cues"] += own.get(kind, {"cues": []})["cues"]
    tables["keys"] = {**own.get("keys", {}), **tables["keys"], **own.get("keys", {})}
    return Cues(tables), None


def _builtin_tables() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "cues.toml"), "rb") as file:
        return tomllib.load(file)


def _make_finding(reason: str, line: int = 1) -> Diagnostic:
    hint = "the built-in cues are used; correct the file, or remove it"
    return about_file(
        PATH, "lexicon", clipped(in_line(reason), _LONGEST_REASON), hint, line=line, severity="warning"
    )
