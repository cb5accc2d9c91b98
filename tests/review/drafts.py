"""Memories and edits of them as agents and people make them, by a seed; each fact has words of its own."""

from __future__ import annotations

import random
import re

_WORDS = (
    *("sqlite", "index", "lock", "journal", "vault", "note", "agent", "merge", "link", "trash", "cache"),
    *("query", "token", "path", "disk", "backup", "branch", "client", "design", "editor", "model", "parser"),
)
_NEWLINES = ("\n", "\n", "\n", "\r\n")
_HEAD = re.compile(r"#+ ")


class Draft:
    """A memory that is written and edited, in lines.

    Attributes:
        lines: of the body.
        fields: of the frontmatter.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._count = chance, 0
        self.fields: dict[str, str] = {}
        self.lines: list[str] = []
        self.newline, self.bom, self.is_ended = chance.choice(_NEWLINES), chance.random() < 0.1, True
        for key in ("title", "owner", "tags")[: chance.randrange(4)]:
            self.fields[key] = self._make_value(key)
        if chance.random() < 0.1:
            self.fields["confidence"] = "7"  # which its schema refuses
        for number in range(chance.randint(1, 3)):
            self.lines += [f"{'#' * chance.randint(1, 2)} Section {number} {self.say(1)}", ""]
            for _ in range(chance.randint(1, 2)):
                self.lines += [*self._make_block(), ""]
        self.lines.pop()
        self.is_ended = chance.random() < 0.8

    def say(self, least: int = 4) -> str:
        """Words with a number that stands nowhere else."""
        self._count += 1
        words = self._chance.choices(_WORDS, k=self._chance.randint(least, least + 5))
        return f"{' '.join(words)} no{self._count}"

    def _make_value(self, key: str) -> str:
        said = self.say(1)
        return f"[{', '.join(said.split())}]" if key == "tags" else said

    def _make_block(self) -> list[str]:
        kind = self._chance.randrange(5)
        if kind == 0:
            return [self.say()]
        if kind == 1:
            return ["| key | value |", "| --- | --- |", *(f"| {self.say(1)} | {self.say(1)} |" for _ in "ab")]
        items = []
        for _ in range(self._chance.randint(2, 5)):
            items.append(self._make_item())
            items += [f"  {self._make_item()}"] * (self._chance.random() < 0.2)
        return items

    def _make_item(self) -> str:
        return f"- {self.say()}" + f" ^f{self._count}" * (self._chance.random() < 0.1)

    @property
    def data(self) -> bytes:
        """The bytes of the memory."""
        front = ["---", *(f"{key}: {value}" for key, value in self.fields.items()), "---"]
        lines = [*(front if self.fields else ()), *self.lines]
        text = self.newline.join(lines) + self.newline * self.is_ended
        return ("\ufeff" * self.bom + text).encode()

    def _list_items(self) -> list[int]:
        return [at for at, line in enumerate(self.lines) if line.startswith("- ")]

    def edit(self) -> None:
        """Make one change of any kind."""
        chance, ways = self._chance, [self._add, self._add, self._reword, self._reword, self._drop]
        ways += [self._move, self._swap, self._add_section, self._set, self._add_child, self._rename_heading]
        if chance.random() < 0.08:
            ways = [self._convert]
        while not chance.choice(ways)():
            pass

    def _add(self) -> bool:
        at = self._list_items()
        if at:
            place = self._end_of_item(self._chance.choice(at))
            self.lines.insert(place, self._make_item())
        else:
            self.lines += ["", self.say()]
        return True

    def _end_of_item(self, at: int) -> int:
        at += 1
        while at < len(self.lines) and self.lines[at].startswith("  "):
            at += 1
        return at

    def _add_child(self) -> bool:
        at = self._list_items()
        if at:
            self.lines.insert(self._end_of_item(self._chance.choice(at)), f"  {self._make_item()}")
        return bool(at)

    def _reword(self) -> bool:
        at = [at for at, line in enumerate(self.lines) if len(line.split()) > 4 and not _HEAD.match(line)]
        if not at:
            return False
        place = self._chance.choice(at)
        words = self.lines[place].split(" ")
        middle = [n for n, word in enumerate(words) if word in _WORDS]
        if not middle:
            return False
        words[self._chance.choice(middle)] = f"{self._chance.choice(_WORDS)}{self._count}s"
        self._count += 1
        self.lines[place] = " ".join(words)
        return True

    def _drop(self) -> bool:
        at = self._list_items()
        if len(at) < 2:
            return False
        place = self._chance.choice(at)
        del self.lines[place : self._end_of_item(place)]
        return True

    def _take_item(self) -> list[str] | None:
        at = self._list_items()
        if len(at) < 3:
            return None
        place = self._chance.choice(at)
        end = self._end_of_item(place)
        taken, self.lines[place:end] = self.lines[place:end], []
        return taken

    def _move(self) -> bool:
        if taken := self._take_item():
            place = self._end_of_item(self._chance.choice(self._list_items()))
            self.lines[place:place] = taken
        return bool(taken)

    def _swap(self) -> bool:
        pairs = [at for at in self._list_items() if at + 1 in self._list_items()]
        if pairs:
            at = self._chance.choice(pairs)
            self.lines[at : at + 2] = self.lines[at + 1], self.lines[at]
        return bool(pairs)

    def _add_section(self) -> bool:
        heads = [at for at, line in enumerate(self.lines) if _HEAD.match(line)]
        made = [f"## Added {self.say(1)}", "", *self._make_block()]
        if heads and self._chance.random() < 0.5:
            at = self._chance.choice(heads)
            self.lines[at:at] = [*made, ""]
        else:
            self.lines += ["", *made]
        return True

    def _rename_heading(self) -> bool:
        heads = [at for at, line in enumerate(self.lines) if _HEAD.match(line)]
        at = self._chance.choice(heads)
        words = self.lines[at].split(" ")
        words[-2:-1] = [self._chance.choice(_WORDS)]
        self.lines[at] = " ".join(words)
        return True

    def _set(self) -> bool:
        key = self._chance.choice(("title", "owner", "status", "tags"))
        if "confidence" in self.fields and self._chance.random() < 0.5:
            self.fields["confidence"] = "0.7"
        elif key in self.fields and self._chance.random() < 0.4:
            del self.fields[key]
        else:
            self.fields[key] = self._make_value(key)
        return True

    def _convert(self) -> bool:
        """Change what no fact says, as an editor does."""
        way = self._chance.randrange(3)
        if way == 0:
            self.newline = "\n" if self.newline == "\r\n" else "\r\n"
        elif way == 1:
            self.bom = not self.bom
        else:
            self.is_ended = not self.is_ended
        return True
