"""Context: what an agent is given of its memory, as one Markdown text within a budget of tokens.

Parts that change seldom come first, and what they are given does not depend on how much the later ones need,
so that the beginning of the text stays the same from call to call and a prompt cache holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import Usage
from mdmem.memory.context_sources import Excerpt, Gathered, blocks, cut, gathered
from mdmem.text.tokens import counter, fenced

if TYPE_CHECKING:
    from mdmem.kind import Kind
    from mdmem.memory.memory import Memory

Count = Callable[[str], int]

_TEMPLATE = "context"
_CHARACTERS_FOR_A_TOKEN = 128  # the longest token of o200k_base is one of blanks
_LEAST_CHARACTERS = 1_000_000
_LIST_SHARE = 10  # one part in so many of the budget is for the list of what was left out
_LEAST_CUT = 40  # tokens; a shorter beginning of an excerpt is not worth its place
_BETWEEN = 1  # a token for the blank lines around a fence


class _Place(NamedTuple):
    """The place of a part in a context: its name, its title, and its share of the budget."""

    name: str
    title: str
    share: int


_PINNED = _Place("pinned", "Pinned", 15)
_FOUND = _Place("found", "Found", 20)


def _places(kinds: Sequence[Kind]) -> tuple[_Place, ...]:
    """The parts that there may be, in the order of the text: what changes seldom stands first."""
    own = [(kind.is_ignored, _Place(kind.part, kind.title, kind.share)) for kind in kinds if kind.title]
    seldom, often = ([place for ignored, place in own if ignored is each] for each in (False, True))
    return (*seldom, _PINNED, *often, _FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a context leaves out.

    Attributes:
        part: the part that it belongs to.
        place: where it stands, `path#L10-L23`; empty for passages that were found and not looked at.
        tokens: what it would have cost; 0 where that is not known.
        reason: why, where the budget is not the reason; empty otherwise.
    """

    part: str
    place: str
    tokens: int
    reason: str = ""

    @property
    def line(self) -> str:
        """It in one line."""
        told = [self.place] if self.place else []
        told += [f"{self.tokens:,} tokens"] if self.tokens else []
        return f"{self.part}: " + ", ".join([*told, *([self.reason] if self.reason else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a context.

    Attributes:
        name: rules, project, preferences, pinned, working, found, or the folder of a kind of the vault's own.
        title: its heading.
        places: what it gives, as `path#L10-L23`, in the order of the text.
        tokens: about what it costs.
    """

    name: str
    title: str
    places: tuple[str, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an agent is given of its memory.

    Attributes:
        text: the Markdown; empty where there is nothing to say.
        tokens: what it costs, never more than the budget.
        parts: what is in it, in its order.
        left_out: all that is not, part by part. Where the text has no room to name each, it counts them.
    """

    text: str
    tokens: int
    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]


def context(
    memory: Memory,
    query: str = "",
    files: Sequence[str] = (),
    thread: str | None = None,
    budget: int = 4000,
    *,
    estimated: bool = False,
    now: datetime | None = None,
    besides: Collection[str] = (),
) -> Context:
    """The context of a memory; see `Memory.context`.

    Args:
        memory: whose.
        query, files, thread, budget, estimated: as `Memory.context` takes them.
        now: the moment at which it is made; the present one without.
        besides: files that whoever is told this reads by himself, as absolute paths without links.

    Raises:
        As `Memory.context`.
    """
    if budget < 1:
        raise Usage(problem=f"a budget is 1 token or more, not {budget}", remedy="leave it out for 4,000")
    now = now or datetime.now(UTC)

    def render(values: dict[str, Any]) -> str:
        most = max(_LEAST_CHARACTERS, _CHARACTERS_FOR_A_TOKEN * budget)
        return memory.vault.templates.render(_TEMPLATE, values, now=now, max_chars=most, all_given=True)

    count = counter(estimated=estimated)
    frame = count(render({"parts": [], "left_out": ""}))
    places = _places(memory.vault.config.kinds)
    there = gathered(memory, query, files, thread, now, besides)
    return _Composer(places, there, count, budget, render, frame).context()


@dataclass(slots=True)
class _Filled:
    """A part while it is filled: what is in, by its number; the rests of what was cut; what is in costs."""

    kept: dict[int, Excerpt]
    rests: dict[int, Excerpt]
    tokens: int = 0

    @property
    def in_order(self) -> list[Excerpt]:
        return [self.kept[number] for number in sorted(self.kept)]


class _Composer:
    """Puts together a context of what was gathered.

    Args:
        places: the parts that there may be.
        gathered: what there is for each.
        count: counts tokens.
        budget: the most tokens of the text.
        render: renders the template with the variables `parts` and `left_out`.
        frame: tokens of the template without either.
    """

    def __init__(
        self,
        places: Sequence[_Place],
        gathered: dict[str, Gathered],
        count: Count,
        budget: int,
        render: Callable[[dict[str, Any]], str],
        frame: int,
    ) -> None:
        self._places = places
        self._gathered = gathered
        self._count = count
        self._budget = budget
        self._render = render
        self._frame = frame
        self._costs = {
            place.name: [self._cost(excerpt) for excerpt in gathered[place.name].excerpts] for place in places
        }

    def context(self) -> Context:
        """The context: as much as fits by what each excerpt costs alone, and less while that is too much."""
        if not any(g.excerpts or g.unread or g.further for g in self._gathered.values()):
            return Context(text="", tokens=0, parts=(), left_out=())
        filled = self._filled()
        while True:
            left_out = self._left_out(filled)
            text = self._text(filled, left_out)
            tokens = self._count(text)
            if tokens <= self._budget:
                return self._result(text, tokens, filled, left_out)
            if not self._drop(filled, tokens - self._budget):
                break
        for text in self._shortest(left_out):
            tokens = self._count(text)
            if tokens <= self._budget:
                break
        return self._result(text, tokens, filled, left_out)

    def _cost(self, excerpt: Excerpt) -> int:
        return self._count(excerpt.text if excerpt.together else excerpt.block) + _BETWEEN

    def _head(self, place: _Place) -> int:
        """What a part costs beside its excerpts: its title, and the fence that they share."""
        shared = self._gathered[place.name].excerpts[0].together
        return self._count(f"\n## {place.title}\n") + (self._count(fenced("", shared)) if shared else 0)

    # -- which excerpts -----------------------------------------------------------------------------------

    def _filled(self) -> dict[str, _Filled]:
        """The excerpts that fit; what a part does not use flows on to the next ones."""
        there = [place for place in self._places if self._gathered[place.name].excerpts]
        titles = sum(self._head(place) for place in there)
        room = self._budget - self._frame - titles
        if sum(sum(costs) for costs in self._costs.values()) > room:
            room -= self._budget // _LIST_SHARE
        shares = sum(place.share for place in there)
        filled = {place.name: _Filled({}, {}) for place in self._places}
        unused = 0
        for place in there:
            allotted = max(0, room) * place.share // shares + unused
            filled[place.name] = self._fill(place.name, allotted, filled)
            unused = allotted - filled[place.name].tokens
        return filled

    def _fill(self, name: str, room: int, before: dict[str, _Filled]) -> _Filled:
        """The excerpts of one part that fit into `room`: those of the lowest rank first, then the newest."""
        excerpts, costs = self._gathered[name].excerpts, self._costs[name]
        filled = _Filled({}, {})
        order = sorted(range(len(excerpts)), key=lambda number: excerpts[number].day, reverse=True)
        for number in sorted(order, key=lambda number: excerpts[number].rank):
            if name == "found" and _is_given(excerpts[number], before):
                continue
            left = room - filled.tokens
            if costs[number] <= left:
                filled.kept[number] = excerpts[number]
                filled.tokens += costs[number]
            elif costs[number] > room and left >= _LEAST_CUT:
                parted = cut(excerpts[number], lambda kept, left=left: self._cost(kept) <= left)  # type: ignore[misc]
                if parted:
                    filled.kept[number], filled.rests[number] = parted
                    filled.tokens += self._cost(parted.kept)
        return filled

    def _drop(self, filled: dict[str, _Filled], excess: int) -> bool:
        """Take excerpts out, the last part first, until `excess` tokens are gained; whether any was."""
        gained = 0
        for place in reversed(self._places):
            part = filled[place.name]
            excerpts = self._gathered[place.name].excerpts
            order = sorted(part.kept, key=lambda number: excerpts[number].day, reverse=True)
            order.sort(key=lambda number: excerpts[number].rank)
            while order and gained < excess:
                number = order.pop()
                cost = self._cost(part.kept.pop(number))
                part.rests.pop(number, None)
                part.tokens -= cost
                gained += cost
        return gained > 0

    # -- the text -----------------------------------------------------------------------------------------

    def _left_out(self, filled: dict[str, _Filled]) -> list[LeftOut]:
        left_out = []
        for name, part in filled.items():
            there = self._gathered[name]
            for number, excerpt in enumerate(there.excerpts):
                if number in part.rests:
                    rest = part.rests[number]
                    left_out.append(LeftOut(part=name, place=rest.place, tokens=self._cost(rest)))
                elif number not in part.kept and not (name == "found" and _is_given(excerpt, filled)):
                    cost = self._costs[name][number]
                    left_out.append(LeftOut(part=name, place=excerpt.place, tokens=cost))
            left_out += [LeftOut(part=name, place=p, tokens=0, reason=r) for p, r in there.unread]
            if there.further:
                reason = f"{there.further:,} more passages fit: search for them"
                left_out.append(LeftOut(part=name, place="", tokens=0, reason=reason))
        return left_out

    def _text(self, filled: dict[str, _Filled], left_out: Sequence[LeftOut]) -> str:
        parts = [
            {"name": place.name, "title": place.title, "blocks": blocks(filled[place.name].in_order)}
            for place in self._places
            if filled[place.name].kept
        ]
        return self._render({"parts": parts, "left_out": self._listed(left_out)})

    def _listed(self, left_out: Sequence[LeftOut]) -> str:
        """The list of what was left out: as many items as there is room for, the others counted by part."""
        if not left_out:
            return ""
        low, high = -1, len(left_out)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._count(_list(left_out, middle)) <= self._budget // _LIST_SHARE
            low, high = (middle, high) if fits else (low, middle - 1)
        return f"{_counted(left_out)}: raise the budget." if low < 0 else _list(left_out, low)

    def _shortest(self, left_out: Sequence[LeftOut]) -> list[str]:
        """What is said where the budget has no room for the template, the longest first."""
        told = f"[memory left out: {_counted(left_out)}]\n"
        return [told, f"[{len(left_out)} left out]\n", "…\n" if self._count("…\n") <= self._budget else "…"]

    def _result(
        self, text: str, tokens: int, filled: dict[str, _Filled], left_out: Sequence[LeftOut]
    ) -> Context:
        parts = tuple(
            Part(
                name=place.name,
                title=place.title,
                places=tuple(excerpt.place for excerpt in filled[place.name].in_order),
                tokens=filled[place.name].tokens,
            )
            for place in self._places
            if filled[place.name].kept
        )
        return Context(text=text, tokens=tokens, parts=parts, left_out=tuple(left_out))


def _is_given(excerpt: Excerpt, filled: dict[str, _Filled]) -> bool:
    """Whether another part gives all of these lines."""
    others = (each for name, part in filled.items() if name != "found" for each in part.kept.values())
    return any(
        each.path == excerpt.path and each.first <= excerpt.first and excerpt.last <= each.last
        for each in others
    )


def _list(left_out: Sequence[LeftOut], count: int) -> str:
    """The first `count` items of a list, and how many more each part has."""
    others = left_out[count:]
    lines = [left.line for left in left_out[:count]]
    by_part: dict[str, list[LeftOut]] = {}
    for left in others:
        by_part.setdefault(left.part, []).append(left)
    lines += [f"{part}: {_counted(found)}" for part, found in by_part.items()]
    return fenced("\n".join(lines), "left-out")


def _counted(left_out: Sequence[LeftOut]) -> str:
    count, tokens = len(left_out), sum(left.tokens for left in left_out)
    return f"{count:,} {'place' if count == 1 else 'places'}, about {tokens:,} tokens"
