"""Makes edits of notes as people and agents make them, and keeps the number of each line."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from merge_oracle import DELIMITER, FENCE, HEADING, ITEM, PREFIX, Line, Pair, Place, Version, key, width

_WORD = re.compile(r"[^\W\d_]{4,}")
_OTHER_PROSE = re.compile(
    r"<| {0,3}(?:=+|-+)\s*$"
)  # HTML and underlined headings, which the oracle does not read
_LEAST_LINES, _MOST_LINES, _LONGEST_LINE = 8, 400, 2_000
_OFTEN = {
    "reword": 8,
    "add_last_item": 5,
    "add_item": 4,
    "remove": 3,
    "move_item": 3,
    "add_row": 3,
    "field": 3,
}
_SELDOM = {
    "tick",
    "remove_section",
    "columns",
    "renumber",
    "bullets",
    "rewrite_list",
    "footnote",
    "reflow",
    "code",
}


def prepared(text: str) -> Version | None:
    """A note whose lines all differ, or None for one with what the oracle does not read."""
    texts = text.removeprefix("\ufeff").rstrip().splitlines()
    if not _LEAST_LINES <= len(texts) <= _MOST_LINES or max(map(len, texts)) > _LONGEST_LINE or "\r" in text:
        return None
    note = Version([Line(number, line) for number, line in enumerate(texts, 1)])
    lines, known, above = note.lines[: note.front], {""}, ""
    for line in note.lines[note.front :]:
        place, said = note.places.get(line.number), line.text
        if place and place.kind not in {"code", "html", "rule"} and not DELIMITER.match(said):
            if _OTHER_PROSE.match(said) or (width(said) > 3 and not above and place.parent is None):
                return None
            if key(said) in known or not re.search(r"\w", key(said)):
                bar = " |" if said.rstrip().endswith("|") else ""
                said = f"{said.rstrip().removesuffix('|').rstrip()} n{line.number}{bar}"
        elif place and above and _OTHER_PROSE.match(said):
            return None
        known.add(key(said))
        lines.append(Line(line.number, said))
        above = said
    made = Version(lines)
    return made if len(made.keys) > 3 and made.fields is not None else None


def pairs(notes: list[tuple[str, Version]], chance: random.Random, *, close: bool) -> Iterator[Pair]:
    """Pairs of edits, without end: each of one to three edits, in the same few lines if `close`."""
    while True:
        name, base = chance.choice(notes)
        near = chance.choice(list(base.keys)) if close else None
        ours, theirs = (Editor(base, side, chance, near) for side in ("ours", "theirs"))
        ours.edit(chance.randint(1, 3))
        theirs.edit(chance.randint(1, 3))
        # A line that both added is one line.
        said = {
            key(line.text): line.number for line in ours.version.lines if line.number >= 10_000 and line.text
        }
        both = [Line(said.get(key(t), n) if n >= 20_000 else n, t) for n, t in theirs.version.lines]
        other = Version(both, theirs.version.moved, theirs.version.reshaped)
        yield Pair(name, base, ours.version, other, (*ours.done, *theirs.done))


class Editor:
    """Edits one note, near one of its lines or anywhere. An edit that finds no place raises LookupError."""

    def __init__(self, base: Version, side: str, chance: random.Random, near: int | None) -> None:
        self.version, self.side, self.chance, self.near = base, side, chance, near
        self.numbers = count(10_000 if side == "ours" else 20_000)
        self.vocabulary = _WORD.findall(" ".join(base.keys.values())) or ["words"]
        self.done: list[str] = []

    def edit(self, times: int, names: Iterable[str] = ()) -> None:
        known = [*names] or [
            name for name in EDITS for _ in range(_OFTEN.get(name, 1 if name in _SELDOM else 2))
        ]
        for _ in range(100):
            name, before = self.chance.choice(known), self.version.text
            try:
                getattr(self, name)()
            except LookupError:
                continue
            if self.version.text != before:
                self.done.append(f"{self.side}: {name}")
            if len(self.done) == times:
                return

    # ---------------------------------------------------------------------------------------- places

    @property
    def lines(self) -> list[Line]:
        return self.version.lines

    def text(self, at: int) -> str:
        return self.lines[at].text

    def place(self, at: int) -> Place:
        return self.version.places[self.lines[at].number]

    def at(self, *kinds: str, where: Callable[[str, Place], object] = lambda *_: True) -> int:
        """The index of a line of that sort, near to where the edits are."""
        places = self.version.places
        found = [
            at
            for at, (number, text) in enumerate(self.lines)
            if (place := places.get(number))
            and place.kind in kinds
            and where(text, place)
            and not DELIMITER.match(text)
        ]
        if self.near is None:
            return self.chance.choice(found)
        middle = min(range(len(self.lines)), key=lambda at: abs(self.lines[at].number - (self.near or 0)))
        found = sorted((at for at in found if abs(at - middle) < 12), key=lambda at: abs(at - middle))
        return self.chance.choice(found[:3])

    def end(self, at: int) -> int:
        """The index behind an item with all that stands in it, a section, or a block."""
        number, place, behind = self.lines[at].number, self.place(at), at + 1
        own = HEADING.match(self.text(at))
        for index in range(at + 1, len(self.lines)):
            each = self.version.places.get(self.lines[index].number)
            if each is None:
                continue
            other = HEADING.match(self.text(index)) if each.kind == "heading" else None
            if place.kind == "heading" and own:
                inside = not other or len(other[1]) > len(own[1])
            else:
                inside = (
                    number in self.version.chain(each) if place.kind == "item" else each.block == place.block
                )
            if not inside:
                break
            behind = index + 1
        return behind

    def siblings(self, at: int) -> list[int]:
        """The indexes of the items of a list, or of the rows of a table with its head."""
        group = self.version.group(self.lines[at].number)
        return [index for index, line in enumerate(self.lines) if line.number in group]

    # ---------------------------------------------------------------------------------------- changes

    def put(self, at: int, *texts: str, instead: int = 0) -> None:
        added = [Line(next(self.numbers), text) for text in texts]
        self.become([*self.lines[:at], *added, *self.lines[at + instead :]])

    def become(self, lines: list[Line], moved: Iterable[Line] = (), reshaped: Iterable[int] = ()) -> None:
        while lines and not lines[-1].text:
            lines.pop()
        numbers = {line.number for line in moved if line.text.strip()}
        self.version = Version(lines, self.version.moved | numbers, self.version.reshaped | {*reshaped})

    def change(self, texts: dict[int, str], reshaped: Iterable[int] = ()) -> None:
        """Write other texts at indexes."""
        lines = [line._replace(text=texts.get(at, line.text)) for at, line in enumerate(self.lines)]
        self.become(lines, reshaped=reshaped)

    def move(self, start: int, end: int, to: int, text: str, gap: tuple[str, ...] = ()) -> None:
        """Move lines in front of the index `to`, the first with another text."""
        moved = [self.lines[start]._replace(text=text), *self.lines[start + 1 : end]]
        rest = [(at, line) for at, line in enumerate(self.lines) if not start <= at < end]
        added = [Line(next(self.numbers), each) for each in gap]
        before, behind = (
            [line for at, line in rest if (at < to) == is_before] for is_before in (True, False)
        )
        made = [*before, *moved, *added, *behind]
        if [line.number for line in made] != [line.number for line in self.lines]:
            passed = self.lines[end:to] if to > start else self.lines[to:start]
            # Of two things that change places, either may be the one that moved.
            kind, places = self.place(start).kind, self.version.places
            ones, others = (
                sum(n in places and places[n].kind == kind for n, _ in each) for each in (moved, passed)
            )
            self.become(made, moved=[*moved, *passed] if others <= ones else moved)

    def word(self) -> str:
        return f"{self.side}{next(self.numbers)}"

    def sentence(self) -> str:
        words = [self.chance.choice(self.vocabulary).lower() for _ in range(self.chance.randint(3, 9))]
        return f"{' '.join([words[0].capitalize(), *words[1:]])} {self.word()}."

    def beside(self, at: int) -> str:
        """The marker of an item behind that one, with its indentation."""
        lead, marker = _item(self.text(at)).group(1, 2)
        return f"{lead}{int(marker[:-1]) + 1 if marker[:-1] else ''}{marker[-1]} "

    def below(self, at: int) -> str:
        """The indentation of what stands in an item."""
        lead, marker = _item(self.text(at)).group(1, 2)
        has_tabs = any(line.text.startswith("\t") for line in self.lines)
        return lead + ("\t" if has_tabs else " " * (len(marker) + 1))

    # ---------------------------------------------------------------------------------------- edits

    def reword(self) -> None:
        at = self.at("item", "text", "quote")
        text = self.text(at)
        lead = (m[0] if (m := PREFIX.match(text)) else "") + "".join(re.findall(r"(?<=^- )\[.\] ", text))
        words = text[len(lead) :].split(" ")
        # Outside of links: who leads a link elsewhere and who rewords its line have not changed the same.
        some = self.chance.choice([n for n in range(len(words)) if not _is_open(" ".join(words[:n]))])
        replaced = self.chance.randint(0, 2)
        replaced *= not re.search(r"[][()]", " ".join(words[some : some + replaced]))
        words[some : some + replaced] = [self.word()]
        self.change({at: lead + " ".join(words)})

    def tick(self) -> None:
        at = self.at("item", where=lambda text, _: "[ ] " in text)
        self.change({at: self.text(at).replace("[ ]", "[x]", 1)})

    def add_item(self) -> None:
        at = self.at("item")
        self.put(self.end(at), self.beside(at) + self.sentence())

    def add_last_item(self) -> None:
        last = self.siblings(self.at("item"))[-1]
        self.put(self.end(last), self.beside(last) + self.sentence())

    def add_child(self) -> None:
        at = self.at("item")
        number, lines = self.lines[at].number, range(at, self.end(at))
        children = [
            n for n in lines if (p := self.version.places.get(self.lines[n].number)) and p.parent == number
        ]
        items = [n for n in children if self.place(n).kind == "item"]
        self.put(self.end(at), (self.beside(items[-1]) if items else f"{self.below(at)}- ") + self.sentence())

    def continue_item(self) -> None:
        at = self.at("item")
        self.put(at + len(self.version.block(self.lines[at].number)), self.below(at) + self.sentence())

    def remove(self) -> None:
        at = self.at(
            "item", "text", "row", "quote", where=lambda _, place: place.kind != "row" or place.group
        )
        start, end = at, at + 1
        if self.place(at).kind == "row" and self.place(at).group == self.lines[at].number:
            raise LookupError
        if self.place(at).kind != "row":
            start = next(n for n, line in enumerate(self.lines) if line.number == self.place(at).block)
            end = self.end(start)
        is_apart = start > 0 and end < len(self.lines) and not self.text(end) and not self.text(start - 1)
        self.put(start, instead=end - start + is_apart)

    def remove_section(self) -> None:
        at = self.at("heading", where=lambda _, place: place.heading is not None)
        end = self.end(at)
        if end - at < len(self.lines) / 3:
            self.put(at, instead=end - at + (end < len(self.lines) and not self.text(end)))

    def move_section(self) -> None:
        at = self.at("heading", where=lambda _, place: place.heading is not None)
        level, end = self.text(at).split(" ")[0], self.end(at)
        others = [n for n, (_, text) in enumerate(self.lines) if text.split(" ")[0] == level]
        # Before the section behind it, it stands where it stood.
        others = [n for n in others if n < at or any(text for _, text in self.lines[end:n])]
        others = [n for n in others if self.place(n).kind == "heading"]
        self.move(at, end, self.chance.choice(others), self.text(at), gap=("",))

    def move_item(self) -> None:
        at = self.at("item")
        end, depth = self.end(at), width(self.text(at))
        items = [
            n for n, line in enumerate(self.lines) if line.number in self.version.items and not at <= n < end
        ]
        others = [n for n in items if width(self.text(n)) == depth]
        if self.chance.random() < 0.7:
            others = [n for n in others if n in self.siblings(at)]
        other = self.chance.choice(others)
        own, marker = _item(self.text(at)), _item(self.text(other))[2]
        text = self.text(at)
        if own[2][-1] != marker[-1]:
            text = f"{own[1]}{marker}{own[3]}{text[own.end() :]}"
        self.move(at, end, self.end(other), text)

    def indent_item(self) -> None:
        at = self.at("item")
        if (siblings := self.siblings(at))[0] != at:
            above = siblings[siblings.index(at) - 1]
            own = _item(self.text(at))
            more = self.below(above).removeprefix(own[1])
            texts = {n: more + self.text(n) for n in range(at, self.end(at)) if self.text(n)}
            texts[at] = re.sub(r"\d+", "1", texts[at], count=1) if own[2][:-1] else texts[at]
            self.change(texts)

    def rename_heading(self) -> None:
        at = self.at("heading")
        words = self.text(at).rstrip().split(" ")
        self.change({at: " ".join([*words[: self.chance.randint(1, len(words))], self.word()])})

    def put_below_heading(self) -> None:
        at = self.at("heading")
        is_apart = at + 1 < len(self.lines) and not self.text(at + 1)
        self.put(at + 1 + is_apart, self.sentence(), "")

    def add_row(self) -> None:
        at = self.at("row", where=lambda text, _: "|" in text)
        rows = self.siblings(at)
        to = rows[-1] if self.chance.random() < 0.6 else max(at, rows[1])
        self.put(to + 1, _row([self.sentence() for _ in _cells(self.text(rows[0]))]))

    def change_row(self) -> None:
        at = self.at("row")
        values = _cells(self.text(at))
        values[self.chance.randrange(len(values))] += f" {self.word()}"
        self.change({at: _row(values)})

    def columns(self) -> None:
        rows = self.siblings(self.at("row"))
        table = {row: _cells(self.text(row)) for row in rows}
        most = len(table[rows[0]])
        first, insert = self.chance.randrange(most), most < 2 or self.chance.random() < 0.6
        if {len(values) for values in table.values()} != {most}:
            return
        for row, values in table.items():
            if insert:
                values.insert(first, "---" if row == rows[1] else self.word())
            else:
                values[first], values[first - 1] = values[first - 1], values[first]
        self.change({row: _row(values) for row, values in table.items()}, [self.lines[rows[0]].number])

    def renumber(self) -> None:
        items = self.siblings(self.at("item", where=lambda text, _: text.lstrip()[0].isdigit()))
        first = _item(self.text(items[0]))[0] + self.sentence()
        self.change({n: re.sub(r"\d+", lambda m: str(int(m[0]) + 1), self.text(n), count=1) for n in items})
        self.put(items[0], first)

    def bullets(self) -> None:
        at = self.at("item", where=lambda text, _: text.lstrip()[0] in "-*")
        other = "*" if self.text(at).lstrip()[0] == "-" else "-"
        self.change({n: re.sub(r"[-*]", other, self.text(n), count=1) for n in self.siblings(at)})

    def rewrite_list(self) -> None:
        items = self.siblings(self.at("item", where=lambda text, _: not width(text)))
        if 1 < len(items) < 8:
            new = [f"{n}. {self.sentence()}" for n in range(1, 4)]
            self.put(items[0], *new, instead=self.end(items[-1]) - items[0])

    def quote(self) -> None:
        if self.chance.random() < 0.7:
            at = self.at("quote")
            self.put(self.end(at), f"{self.text(at).partition('>')[0]}> {self.sentence()}")
        else:
            at = self.at("text", where=lambda _, place: place.parent is None)
            self.put(self.end(at), "", f"> {self.sentence()}")

    def footnote(self) -> None:
        at = self.at("text")
        used = [int(n) for n in re.findall(r"\[\^(\d+)\]", self.version.text)]
        label = f"[^{max(used, default=0) + 1}]"
        self.change({at: f"{self.text(at)}{label}"})
        gap = [] if self.place(len(self.lines) - 1).kind == "definition" else [""]
        self.put(len(self.lines), *gap, f"{label}: {self.sentence()}")

    def field(self) -> None:
        kinds = (r"\w+: \[.+\]$", r" *- \S", r"\w+: [\w ]+$", r"---$")
        kind = self.chance.choice(kinds)
        at = self.chance.choice([n for n in range(1, self.version.front) if re.match(kind, self.text(n))])
        if kind == kinds[0]:
            self.change({at: f"{self.text(at)[:-1]}, {self.word()}]"})
        elif kind == kinds[1]:
            self.put(at + 1, f"{self.text(at).split('-')[0]}- {self.word()}")
        elif kind == kinds[2]:
            self.change({at: f"{self.text(at)} {self.word()}"})
        else:
            self.put(at, f"{self.word()}: {self.word()}")

    def reflow(self) -> None:
        at = self.at("text", where=lambda text, _: len(text.split(" ")) > 8 and not width(text))
        words = self.text(at).split(" ")
        half = self.chance.choice([n for n in range(len(words) // 2, len(words)) if _WORD.match(words[n])])
        self.change({at: " ".join(words[:half])})
        self.put(at + 1, " ".join(words[half:]))

    def add_section(self) -> None:
        section = (f"## {self.sentence()[:-1]}", "", self.sentence())
        if self.chance.random() < 0.5:
            self.put(len(self.lines), "", *section)
        else:
            self.put(self.at("heading", where=lambda text, _: text.startswith("## ")), *section, "")

    def add_paragraph(self) -> None:
        at = self.at("text", where=lambda _, place: place.parent is None)
        self.put(
            self.end(at) if self.near or self.chance.random() < 0.7 else len(self.lines), "", self.sentence()
        )

    def add_line(self) -> None:
        at = self.at("text")
        text = self.text(at)
        self.put(at + 1, text[: len(text) - len(text.lstrip())] + self.sentence())

    def code(self) -> None:
        at = self.at("code", where=lambda text, _: FENCE.match(text))
        number = self.place(at).block
        start = next(n for n, line in enumerate(self.lines) if line.number == number)
        lead = self.text(start)[: len(self.text(start)) - len(self.text(start).lstrip())]
        self.put(self.end(start) - 1, f"{lead}run {self.word()}")


EDITS = [*vars(Editor)][[*vars(Editor)].index("reword") :]
EDITS = [name for name in EDITS if not name.startswith("_")]


def _item(text: str) -> re.Match[str]:
    match = ITEM.match(text)
    assert match
    return match


def _is_open(text: str) -> bool:
    return any(text.count(one) != text.count(other) for one, other in ("[]", "()"))


def _row(values: Iterable[str]) -> str:
    return f"| {' | '.join(values)} |"


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", text.strip().removeprefix("|").removesuffix("|"))]
