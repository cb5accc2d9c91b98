"""A source file: its lines, its symbols, and the pin of a part of it."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

from mdmem.index.symbols import Symbols, symbols
from mdmem.text.lines import LINE_END

if TYPE_CHECKING:
    from collections.abc import Sequence

# Without a bound, a pin of n lines costs n hashed lines for every line of the file.
_MOST_HASHED = 1 << 28


def pin_of(lines: Sequence[str]) -> str:
    r"""The pin of lines: 16 hexadecimal digits of the SHA-256 of their UTF-8, each line ended by one `\n`.

    A change of line ends alone does not change a pin; a change of a blank does.
    """
    return _pin("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def _pin(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class Source:
    """The content of a file of the workspace, now or as it was in a commit."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its lines without their ends. A byte that is no UTF-8 is a lone surrogate, and itself in a pin."""
        lines = LINE_END.split(self.data.decode("utf-8", "surrogateescape"))
        return tuple(lines if lines[-1] else lines[:-1])

    @cached_property
    def symbols(self) -> Symbols:
        """What it defines."""
        return symbols(self.path, self.data)

    def cut(self, first: int, last: int) -> tuple[str, ...] | None:
        """The lines `first` to `last`, 1-based and both included; None when not all of them are there."""
        return self.lines[first - 1 : last] if last <= len(self.lines) else None

    def place(self, symbol: str) -> tuple[int, int] | None:
        """The first and the last line of the first definition of `symbol`; None when none is found."""
        found = self.symbols.named(symbol)
        return (found[0].first, found[0].last) if found else None

    def definition(self, symbol: str) -> tuple[str, ...]:
        """The lines of all definitions of `symbol`, one after the other; empty when none is found."""
        found = self.symbols.named(symbol)
        return tuple(line for each in found for line in self.lines[each.first - 1 : each.last])

    def places(self, content: Sequence[str]) -> list[int]:
        """The 1-based lines at which `content` begins; places may overlap."""
        wanted = tuple(content)
        found = []
        at = 0
        last = len(self.lines) - len(wanted)
        while wanted and at <= last:
            try:
                at = self.lines.index(wanted[0], at, last + 1) + 1
            except ValueError:
                break
            if self.lines[at - 1 : at - 1 + len(wanted)] == wanted:
                found.append(at)
        return found

    def pinned_places(self, pin: str, count: int) -> list[int] | None:
        """The 1-based lines at which `count` lines with this pin begin; None when that takes too long."""
        encoded = [f"{line}\n".encode("utf-8", "surrogateescape") for line in self.lines]
        windows = len(encoded) - count + 1
        if windows > 0 and windows * count * (len(self.data) // len(encoded) + 1) > _MOST_HASHED:
            return None
        return [at + 1 for at in range(windows) if _pin(b"".join(encoded[at : at + count])) == pin]
