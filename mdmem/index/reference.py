"""A reference: something that memories point at, and every place where they do."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mdmem.index.state import STATES
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

NOTE, HEADING, BLOCK, TAG, URL = "note", "heading", "block", "tag", "url"
FILE, LINES, FUNCTION, CLASS, VARIABLE = "file_path", "line_range", "function", "class", "variable"
SYMBOL = "symbol"  # of a file that cannot be parsed
TYPES = (NOTE, HEADING, BLOCK, TAG, URL, FILE, LINES, FUNCTION, CLASS, VARIABLE, SYMBOL)
SYMBOLS = (FUNCTION, CLASS, VARIABLE, SYMBOL)
CODE = (FILE, LINES, *SYMBOLS)
_CITED_LINES = regex(
    r"(?P<path>[^#]+)(?:#L?|:)(?P<first>[1-9][0-9]{0,8})(?:-L?(?P<last>[1-9][0-9]{0,8}))?", re.IGNORECASE
)


class Place(NamedTuple):
    """Where a reference stands, and what became of it, as seen from there.

    Attributes:
        path: the memory.
        line: the 1-based line.
        state: one of `STATES`.
        detail: why, in words; empty when all is well.
    """

    path: str
    line: int
    state: str
    detail: str = ""


class Occurrence(NamedTuple):
    """One reference at one place; `day` is the memory's, `written` the target as it stands there."""

    type: str
    target: str
    place: Place
    day: str
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Something that memories point at.

    Attributes:
        type: one of `TYPES`.
        target: what is pointed at: a memory with its anchor, a URL, `#tag`, a file with its lines or symbol.
        places: where, in the order of path and line.
        first_seen: the day of the earliest memory that points at it, `YYYY-MM-DD`.
        last_seen: the day of the latest.
    """

    JSON: ClassVar = ("type", "target", "state", "count", "first_seen", "last_seen", "places")

    type: str
    target: str
    places: tuple[Place, ...]
    first_seen: str
    last_seen: str

    @property
    def state(self) -> str:
        """The worst state of its places."""
        return min((place.state for place in self.places), key=STATES.index)

    @property
    def count(self) -> int:
        """In how many places it is pointed at."""
        return len(self.places)

    @property
    def memories(self) -> tuple[str, ...]:
        """The memories that point at it."""
        return tuple(dict.fromkeys(place.path for place in self.places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """References in numbers: how many different ones, how many places, and both by type and by state."""

    total: int
    places: int
    by_type: Mapping[str, int]
    by_state: Mapping[str, int]
    most_cited: tuple[tuple[str, int], ...]

    def json_shape(self) -> dict[str, Any]:
        """The numbers as a JSON object."""
        shape = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            **shape,
            "most_cited": [{"target": target, "count": count} for target, count in self.most_cited],
        }


class Backlink(NamedTuple):
    """A link to a memory: where it stands, as what, with which anchor, and whether it is ambiguous."""

    path: str
    line: int
    kind: str
    anchor: str
    alias: str
    ambiguous: bool


def shown_lines(first: int | None, last: int | None) -> str:
    """Lines as a target names them: `#L3`, `#L3-L9`; empty without any."""
    if first is None:
        return ""
    return f"#L{first}" if last in {None, first} else f"#L{first}-L{last}"


def lookup_key(target: str) -> str:
    """A target in the form in which references are compared; lines are written as `list` writes them."""
    key = target.removeprefix("./")
    cited = _CITED_LINES.fullmatch(key)
    if cited and "://" not in key:
        first, last = int(cited["first"]), int(cited["last"] or cited["first"])
        key = f"{cited['path']}{shown_lines(first, last)}"
    return key.casefold()


def is_named(occurrence: Occurrence, wanted: str) -> bool:
    """Whether what stands there can be looked up by a key."""
    if not wanted:
        return False
    names = occurrence.target.casefold(), occurrence.written.casefold()
    if wanted in names or occurrence.type == URL:
        return wanted in names
    if occurrence.type == TAG:
        return wanted == names[0].removeprefix("#")
    for name in names:
        path, _, part = name.partition("#")
        ends = [path, name] if occurrence.type != HEADING else [path]
        if any(f"/{end}".endswith((f"/{wanted}", f"/{wanted}.md")) for end in ends):
            return True
        if part == wanted and occurrence.type in SYMBOLS:
            return True
    return False


def gathered(found: Iterable[Occurrence]) -> tuple[Reference, ...]:
    """One reference for each type and target."""
    by_target: dict[tuple[int, str], list[Occurrence]] = {}
    for each in found:
        by_target.setdefault((TYPES.index(each.type), each.target), []).append(each)
    return tuple(
        Reference(
            type=same[0].type,
            target=target,
            places=tuple(sorted(each.place for each in same)),
            first_seen=min(each.day for each in same),
            last_seen=max(each.day for each in same),
        )
        for (_, target), same in sorted(by_target.items())
    )


def counted(found: Collection[Reference]) -> Stats:
    """References in numbers; of those in most places, ten."""
    by_count = sorted(
        ((each.target, len(each.places)) for each in found), key=lambda pair: (-pair[1], pair[0])
    )
    return Stats(
        total=len(found),
        places=sum(len(each.places) for each in found),
        by_type=dict(sorted(Counter(each.type for each in found).items())),
        by_state=dict(sorted(Counter(each.state for each in found).items())),
        most_cited=tuple(by_count[:10]),
    )
