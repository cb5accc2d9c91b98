"""The words by which it is known what a text states: read from files that hold words alone, no patterns.

A file is TOML; what its tables mean stands at the top of `en.toml` beside this. A vault adds words
of its own in `.mdmem/lexicon.toml`; that may be a stranger's, so its size and number have bounds.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Diagnostic, at_line
from mdmem.text.regex import regex
from mdmem.text.tokens import clipped, in_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KINDS = (
    *("preference", "constraint", "style", "audience", "length", "format"),
    *("decision", "fix", "fact", "problem"),
)
"""What a candidate can be."""
PATH = ".mdmem/lexicon.toml"
"""Where a vault has words of its own."""
LANGUAGES = ("en", "zh")
MOST_BYTES = 64 * 1024
"""How large a lexicon of a vault may be."""
MOST_PHRASES = 2_000
"""How many phrases it may have."""
LONGEST = 60
"""Characters that a phrase has at most."""
MOST_WORDS = 10
"""Words that a phrase has at most."""

CLASSES = (
    *("fillers", "joins", "negations", "rejections", "alternatives", "lifted", "hedges", "reported"),
    *(
        "lasting",
        "own",
        "others",
        "subjects",
        "conditions",
        "times",
        "asking",
        "errands",
        "tasks",
        "idle",
        "hollow",
    ),
    *("wishes", "numbers", "units", "bounds"),
)
"""The classes of words that tell how a sentence is meant, or how long a text is to be."""
PARTS = ("cues", "openings", "anyone", "open_anyone")
"""The lists of a kind; each phrase of one is enough."""
AT_HEAD = frozenset({"openings", "open_anyone"})
"""Those whose phrases count where a clause begins alone."""
BY_ANYONE = frozenset({"anyone", "open_anyone"})
"""Those that count from an assistant as well."""

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
_REACH, _MOST_REACH = 6, 30
_MOST_TOLD = 2  # things by one phrase of a vault: each is looked at wherever it stands
_MOST_SAID = 300  # characters of what is wrong
_AT_LINE = regex(r"\(at line ([0-9]+), column [0-9]+\)")
_HAN = "\u3400-\u9fff\uf900-\ufaff"
_TOKEN = regex(rf"[{_HAN}]|[^\W{_HAN}]++(?:['\u2019][^\W_{_HAN}]++)*+")
_NAME = regex(r"[a-z][a-z0-9_-]{0,39}")


class Token(NamedTuple):
    """A word, or a character of Chinese, and where it stands."""

    word: str
    start: int
    end: int


def tokens(text: str, start: int, end: int) -> list[Token]:
    """The words between two places, small and with plain apostrophes."""
    return [
        Token(found[0].casefold().replace("\u2019", "'"), *found.span())
        for found in _TOKEN.finditer(text, start, end)
    ]


class Phrase(NamedTuple):
    """What a phrase tells.

    Attributes:
        part: `word`, `value`, `tag`, `first` or `then`, or one of `PARTS`.
        name: of the class, the kind, the tag or the pair; of a value its category, key and value.
        language: of which it is; empty for those of a vault.
    """

    part: str
    name: str
    language: str


class Pair(NamedTuple):
    """Two lists of phrases that tell a kind together: the second at most `reach` words behind the first."""

    kind: str
    reach: int
    anyone: bool


@dataclass(slots=True)
class PhraseNode:
    """What may follow the words so far, and what these tell themselves."""

    then: dict[str, PhraseNode] = field(default_factory=dict)
    tells: list[Phrase] = field(default_factory=list)


@dataclass(slots=True)
class Lexicon:
    """Words, by what they tell.

    Attributes:
        root: the phrases, word by word.
        pairs: by their names.
        values: category, key and value of a value's name.
        beside: the keys, as "category/key", of which a value counts only beside phrases of their own.
    """

    root: PhraseNode = field(default_factory=PhraseNode)
    pairs: dict[str, Pair] = field(default_factory=dict)
    values: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that can be asked for."""
        return LANGUAGES


class _Broken(Exception):
    """A lexicon that is not as it should be: where, and why."""

    def __init__(self, place: str, reason: str, line: int = 1) -> None:
        super().__init__(clipped(in_line(f"{place}: {reason}" if place else reason), _MOST_SAID))
        self.line = line


@cache
def builtin() -> Lexicon:
    """The lexicon that comes with the program, of all languages."""
    return _of_the_program()


@lru_cache(maxsize=4)
def extended(text: str, path: str = PATH) -> tuple[Lexicon, Diagnostic | None]:
    """The built-in lexicon with a vault's words; where these are broken, it alone, and what is wrong where.

    Args:
        text: of the vault's lexicon.
        path: what a finding names.
    """
    try:
        tables = _toml(text)
        _LexiconReader(Lexicon(), "").read(tables)
    except _Broken as error:
        hint = "the built-in words are used; mend it, or remove it"
        return builtin(), at_line(path, error.line, "lexicon", str(error), hint, severity="warning")
    return _of_the_program(tables), None


def _of_the_program(further: Mapping[str, Any] | None = None) -> Lexicon:
    """The lexicon that comes with the program, and further words."""
    lexicon = Lexicon()
    for language in LANGUAGES:
        _LexiconReader(lexicon, language).read(_tables(language))
    _LexiconReader(lexicon, "").read(further or {})
    return lexicon


@cache
def _tables(language: str) -> dict[str, Any]:
    with open(os.path.join(_DIRECTORY, f"{language}.toml"), encoding="utf-8") as file:
        return tomllib.loads(file.read())


def _toml(text: str) -> dict[str, Any]:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        raise _Broken("", f"it has {size:,} bytes, not at most {MOST_BYTES:,}")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _Broken("", "it is nested too deep") from None
    except ValueError as error:  # not TOML, or a number with thousands of digits
        line = _AT_LINE.search(str(error))
        raise _Broken("", f"it is no TOML: {error}", int(line[1]) if line else 1) from None


class _LexiconReader:
    """Reads tables into a lexicon."""

    def __init__(self, lexicon: Lexicon, language: str) -> None:
        self._lexicon = lexicon
        self._language = language
        self._left = MOST_PHRASES

    def read(self, tables: Mapping[str, Any]) -> None:
        """Add what the tables say.

        Raises:
            _Broken: they say something else, or too much.
        """
        for name, table in tables.items():
            if name == "words":
                self._lists("words", table, CLASSES, lambda part: ("word", part))
            elif name == "tags":
                for tag, phrases in self._table("tags", table):
                    self._name(f"[tags] {tag}", tag)
                    self._phrases(f"[tags] {tag}", phrases, "tag", tag)
            elif name == "keys":
                self._keys(table)
            elif name in KINDS:
                self._kind(name, table)
            else:
                known = ", ".join(("words", "tags", "keys", *KINDS))
                raise _Broken(f"[{name}]", f"there is no such table: {known}")

    def _kind(self, kind: str, table: Any) -> None:
        parts = dict(self._table(kind, table))
        pairs = parts.pop("pairs", [])
        self._lists(kind, parts, PARTS, lambda part: (part, kind))
        if not isinstance(pairs, list):
            raise _Broken(f"[[{kind}.pairs]]", "it is not a list of tables")
        for number, pair in enumerate(pairs, 1):
            place = f"[[{kind}.pairs]] {number}"
            of = dict(self._table(place, pair))
            name = f"{kind} {self._language} {number}"
            reach, anyone = of.pop("reach", _REACH), of.pop("anyone", False)
            if type(reach) is not int or not 1 <= reach <= _MOST_REACH or type(anyone) is not bool:
                raise _Broken(place, f"reach is a number from 1 to {_MOST_REACH}, anyone true or false")
            if of.keys() != {"first", "then"}:
                raise _Broken(place, "it has the lists first and then")
            self._lexicon.pairs[name] = Pair(kind, reach, anyone)
            self._lists(place, of, ("first", "then"), lambda part, name=name: (part, name))

    def _keys(self, tables: Any) -> None:
        if not isinstance(tables, list):
            raise _Broken("[[keys]]", "it is not a list of tables")
        for number, table in enumerate(tables, 1):
            place = f"[[keys]] {number}"
            of = dict(self._table(place, table))
            if not {"category", "key", "values"} <= of.keys() <= {"category", "key", "values", "beside"}:
                raise _Broken(place, "it has category, key, values and perhaps beside")
            for name in ("category", "key"):
                self._name(f"{place} {name}", of[name])
            name = f"{of['category']}/{of['key']}"
            if "beside" in of:
                self._lexicon.beside.add(name)
                self._phrases(f"{place} beside", of["beside"], "beside", name)
            for value, phrases in self._table(f"{place} values", of["values"]):
                if not value or len(value) > LONGEST or in_line(value) != value:
                    raise _Broken(f"{place} values", f"a value is one line of {LONGEST} characters at most")
                whole = f"{name}={value}"
                self._lexicon.values[whole] = of["category"], of["key"], value
                self._phrases(f"{place} {value}", phrases, "value", whole)

    def _lists(self, place: str, table: Any, known: tuple[str, ...], told: Any) -> None:
        for part, phrases in self._table(place, table):
            if part not in known:
                raise _Broken(f"[{place}] {part}", f"there is no such list: {', '.join(known)}")
            self._phrases(f"[{place}] {part}", phrases, *told(part))

    def _table(self, place: str, table: Any) -> Iterator[tuple[str, Any]]:
        if not isinstance(table, dict):
            raise _Broken(place, "it is not a table")
        yield from table.items()

    def _name(self, place: str, value: Any) -> None:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise _Broken(place, "a name has small letters, digits, - and _, 40 at most")

    def _phrases(self, place: str, phrases: Any, part: str, name: str) -> None:
        if not isinstance(phrases, list):
            raise _Broken(place, "it is not a list of phrases")
        for number, phrase in enumerate(phrases, 1):
            self._left -= 1
            if self._left < 0 and not self._language:
                raise _Broken(place, f"there are more than {MOST_PHRASES:,} phrases")
            words = tokens(phrase, 0, LONGEST + 1) if isinstance(phrase, str) else []
            if not words or len(phrase) > LONGEST or len(words) > MOST_WORDS:
                reason = f"a phrase has 1 to {MOST_WORDS} words, and {LONGEST} characters at most"
                raise _Broken(f"{place}, entry {number}", reason)
            node = self._lexicon.root
            for word in words:
                node = node.then.setdefault(word.word, PhraseNode())
            told = Phrase(part, name, self._language)
            if told in node.tells:
                continue
            if sum(not each.language for each in node.tells) >= _MOST_TOLD:
                raise _Broken(f"{place}, entry {number}", f"{phrase!r} tells more than {_MOST_TOLD} things")
            node.tells.append(told)
