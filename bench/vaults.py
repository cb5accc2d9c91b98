"""Vaults to measure in: as many notes as wanted, and always the same ones for a seed.

A note depends on the seed, its number and the number of notes alone, so that one more is made without the
others. Every link in it leads to a note, heading or block that is there, and every citation to code.
"""

from __future__ import annotations

import os
import random
import shutil
from itertools import accumulate, product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

NOTES = "notes"
_TAGS = ("decision", "design", "incident", "meeting", "person", "reading", "tool")
PER_FOLDER = 100
_LATIN_BYTES = 7
_MODULES = 20
_FUNCTIONS = 8
_FUNCTION_LINES = 6


class _Script(NamedTuple):
    """2,197 words of three syllables each, what stands between two, and what ends a sentence."""

    words: Sequence[str]
    space: str
    stop: str

    def some(self, rng: random.Random, length: int) -> list[str]:
        """Words, the n-th of all 1/n as frequent as the first (Zipf's law)."""
        return rng.choices(self.words, cum_weights=_WEIGHTS, k=length)

    def sentence(self, rng: random.Random, length: int) -> str:
        """A sentence about as long, in bytes, as one of so many Latin words."""
        words = self.some(rng, max(2, length * _LATIN_BYTES // len((self.words[0] + self.space).encode())))
        return self.space.join(words).capitalize() + self.stop


def _script(syllables: str, space: str = " ", stop: str = ".") -> _Script:
    return _Script(tuple(map("".join, product(syllables.split(), repeat=3))), space, stop)


_LATIN = _script("ba co di fe gu ha ko li me no pu ra si")
VOCABULARY = _LATIN.words
_WEIGHTS = tuple(accumulate(1 / rank for rank in range(1, len(VOCABULARY) + 1)))
# Every fifth note is in another script: the notes whose number ends so, of twenty.
_OTHERS = {
    2: _script("bá cö dî fé gü hà kø lí mê ñó pü rå šį"),
    6: _script("ба ко ди фе гу ха жо ли ме но пу ра щи"),  # noqa: RUF001 - they are Cyrillic
    10: _script("天 地 人 山 水 火 木 金 日 月 大 小 中", "", "。"),
    14: _script("あ カ さ タ な ハ ま ヤ 記 憶 検 索 語", "", "。"),
    18: _script("가 나 다 라 마 바 사 아 자 차 카 타 하"),
}


def empty(root: str, config: str = "") -> str:
    """Make a vault without memories in `root`, in the place of what is there; the folder again."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(os.path.join(root, ".mdmem"))
    write(os.path.join(root, ".mdmem", "config.toml"), config)
    return root


def make(root: str, notes: int, seed: int, planted: Mapping[str, int] | None = None) -> None:
    """Make a vault in `root` with so many notes, about 1.2 KB each, in folders of 100.

    The code that they cite goes into `src`, beside the vault.

    Args:
        root: the folder; made when it is missing.
        notes: how many.
        seed: which ones.
        planted: words that are not in the vocabulary, each with the number of notes that hold it once.
    """
    words = _places(random.Random(seed), notes, planted or {})
    empty(root)
    for number in range(notes):
        if number % PER_FOLDER == 0:
            os.makedirs(os.path.join(root, os.path.dirname(path(number))))
        write(os.path.join(root, path(number)), note(seed, number, notes, words.get(number, ())))
    source = os.path.join(os.path.dirname(root), "src")
    os.makedirs(source, exist_ok=True)
    for number in range(_MODULES):
        write(os.path.join(source, f"{_module(number)}.py"), _code(number))


def write(file: str, text: str) -> None:
    with open(file, "w", encoding="utf-8", newline="") as opened:
        opened.write(text)


def path(number: int) -> str:
    """Where the note stands in its vault."""
    return f"{NOTES}/{number // PER_FOLDER:04}/{_stem(number)}.md"


def title(seed: int, number: int) -> str:
    return _script_of(number).sentence(random.Random(f"title {seed} {number}"), 4)[:-1]


def note(seed: int, number: int, notes: int, planted: Sequence[str] = ()) -> str:
    """One note: frontmatter, a title, two to four sections of prose, and `planted` in the last sentence."""
    rng = random.Random(f"note {seed} {number}")
    script, heading = _script_of(number), title(seed, number)
    lines = [
        "---",
        f"title: {heading}",
        f"tags: [{', '.join(rng.sample(_TAGS, 2))}]",
        f"created: 2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    ]
    if rng.random() < 0.25:
        lines.append(f'related: "[[{_stem(rng.randrange(notes))}]]"')
    lines += ["---", "", f"# {heading}"]
    definitions: list[str] = []
    for _ in range(rng.randint(2, 4)):
        lines += ["", f"## {script.sentence(rng, 2)[:-1]}", ""]
        lines += [script.sentence(rng, rng.randint(8, 14)) for _ in range(rng.randint(2, 4))]
        made = _Links(rng, seed, number, rng.randrange(notes), script, definitions)
        lines.append(f"{script.sentence(rng, 3)[:-1]} {rng.choice(_KINDS)(made)}{script.stop}")
    lines += _rarely(rng, script)
    lines += ["", f"{' '.join([f'This was note {number}', *planted])}. ^{_block(number)}"]
    if definitions:
        lines += ["", *definitions]
    return "\n".join(lines) + "\n"


def queries(seed: int, count: int) -> list[str]:
    """Questions of two to five different words: their scripts and words are as frequent as in the notes."""
    rng = random.Random(f"queries {seed}")
    return [" ".join(_question(rng, _script_of(rng.randrange(20)))) for _ in range(count)]


def _question(rng: random.Random, script: _Script) -> list[str]:
    length = rng.randint(2, 5)
    found: dict[str, None] = {}
    while len(found) < length:
        found.update(dict.fromkeys(script.some(rng, 1)))
    return list(found)


class _Links(NamedTuple):
    """What a link from the note `number` to the note `to` is made of; references add to `definitions`."""

    rng: random.Random
    seed: int
    number: int
    to: int
    script: _Script
    definitions: list[str]

    def words(self) -> str:
        return self.script.space.join(self.script.some(self.rng, 2))

    def relative(self) -> str:
        return os.path.relpath(path(self.to), os.path.dirname(path(self.number)))

    def heading(self) -> str:
        return title(self.seed, self.to)

    def lines(self) -> tuple[str, int, int]:
        """A module, and the first and last line of one of its functions."""
        number, function = self.rng.randrange(_MODULES), self.rng.randrange(_FUNCTIONS)
        first = 3 + function * _FUNCTION_LINES
        return f"src/{_module(number)}.py", first, first + 3

    def referred(self) -> str:
        label = f"ref-{len(self.definitions) + 1}"
        self.definitions.append(f"[{label}]: {self.relative()}")
        return f"[{self.words()}][{label}]"

    def cited(self, form: str) -> str:
        module, first, last = self.lines()
        return form.format(module, first, last)


_KINDS: tuple[Callable[[_Links], str], ...] = (
    lambda to: f"[[{_stem(to.to)}]]",
    lambda to: f"[[{_stem(to.to)}]]",
    lambda to: f"[[{_stem(to.to)}|{to.words()}]]",
    lambda to: f"[[{path(to.to).removesuffix('.md')}]]",
    lambda to: f"[[{_stem(to.to)}#{to.heading()}]]",
    lambda to: f"[[{_stem(to.to)}#^{_block(to.to)}]]",
    lambda to: f"![[{_stem(to.to)}#^{_block(to.to)}]]",
    lambda to: f"[{to.words()}]({to.relative()})",
    lambda to: f"[{to.words()}]({to.relative()}#{to.heading().lower().replace(' ', '-')})",
    _Links.referred,
    lambda to: to.cited("`{0}#L{1}-L{2}`"),
    lambda to: to.cited("`{0}:{1}-{2}`"),
    lambda to: to.cited("`{0}`"),
    lambda to: to.cited(f"[{to.words()}](../../../{{0}}#L{{1}}-L{{2}})"),
    lambda to: f"`src/{_module(to.to % _MODULES)}.py#{_function(to.to % _FUNCTIONS)}`",
)


def _rarely(rng: random.Random, script: _Script) -> Iterator[str]:
    """A tag, a URL, and a fence with what would be a link and a tag outside it: each in some notes."""
    if rng.random() < 0.5:
        yield from ("", f"{script.sentence(rng, 2)[:-1]} #{rng.choice(_TAGS)}{script.stop}")
    if rng.random() < 0.2:
        yield from ("", f"<https://example.com/{'/'.join(_LATIN.some(rng, 2))}>")
    if rng.random() < 0.2:
        name = rng.choice(VOCABULARY)
        yield from ("", "```python", f"def {name}(value):", f"    return value  # [[{name}]] #{name}", "```")


def _stem(number: int) -> str:
    return f"{number:06}"


def _block(number: int) -> str:
    return f"note-{number}"


def _script_of(number: int) -> _Script:
    return _OTHERS.get(number % 20, _LATIN)


def _module(number: int) -> str:
    return f"module_{VOCABULARY[number * 31]}"


def _function(number: int) -> str:
    return f"find_{VOCABULARY[number * 17]}"


def _code(module: int) -> str:
    """A module: from its third line on, a function every six lines."""
    lines = [f'"""Module {module}."""', ""]
    for number in range(_FUNCTIONS):
        name = _function(number)
        lines += [f"def {name}(value: int) -> int:", f'    """{name}, of {module}."""']
        lines += [f"    found = value + {module}", f"    return found * {number}", "", ""]
    return "\n".join(lines[:-2]) + "\n"


def _places(rng: random.Random, notes: int, planted: Mapping[str, int]) -> dict[int, list[str]]:
    places: dict[int, list[str]] = {}
    for word, count in planted.items():
        for number in rng.sample(range(notes), min(count, notes)):
            places.setdefault(number, []).append(word)
    return places
