"""What differs between texts: hunks of two, regions of versions, and the unified diff that git prints."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
K = TypeVar("K", bound=Hashable)


class Versions(NamedTuple, Generic[T]):
    """A thing in the base and on both sides."""

    base: T
    ours: T
    theirs: T

    def map(self, of: Callable[[T], U]) -> Versions[U]:
        """Return the result of `of` for each."""
        return Versions(of(self.base), of(self.ours), of(self.theirs))

    def paired(self, other: Versions[U], of: Callable[[T, U], V]) -> Versions[V]:
        """Return the result of `of` for each with its partner in `other`."""
        return Versions(*map(of, self, other))

    @property
    def swapped(self) -> Versions[T]:
        """The same with the sides swapped."""
        return Versions(self.base, self.theirs, self.ours)

    def agreed(self) -> tuple[T] | None:
        """Return what it becomes, when at most one side changed it or both did equally."""
        if self.ours in (self.base, self.theirs):
            return (self.theirs,)
        return (self.ours,) if self.theirs == self.base else None


def complete(versions: Versions[T | None]) -> Versions[T] | None:
    """Return the same versions, or None when one of them is missing."""
    base, ours, theirs = versions
    return None if base is None or ours is None or theirs is None else Versions(base, ours, theirs)


def merged_order(keys: Versions[list[K]]) -> list[K] | None:
    """Return all keys of both sides in one order, or None when both sides moved them, each in its own way.

    A side that moved keys gives the order, else theirs; the other side's own keys follow what they followed.
    """
    shared = set(keys.base).intersection(keys.ours, keys.theirs)
    kept = keys.map(lambda side: [key for key in side if key in shared])
    if not kept.agreed():
        return None
    if kept.theirs == kept.base != kept.ours:
        return placed(keys.ours, keys.theirs)
    return placed(keys.theirs, keys.ours)


def placed(order: Sequence[K], other: Sequence[K]) -> list[K]:
    """Add the keys that only `other` has, behind their predecessor and what `order` added there."""
    known, shared = set(order), set(other)
    behind: dict[K | None, list[K]] = {}
    anchor: K | None = None
    for key in other:
        if key in known:
            anchor = key
        else:
            behind.setdefault(anchor, []).append(key)
    result: list[K] = []
    pending = behind.get(None, [])
    for key in order:
        if key in shared:
            result += pending
            pending = behind.get(key, [])
        result.append(key)
    return result + pending


# difflib compares every pair of equal lines, so repeated lines cost their product. Behind this many pairs
# a stretch counts as replaced whole: still a true diff, only a coarser one.
_MOST_PAIRS = 40_000
_HEADING = regex(r" {0,3}#{1,6}[ \t]")
_MUST_QUOTE = regex(r'[\x00-\x1f\x7f"\\]')


class Hunk(NamedTuple):
    """Lines `start` to `end` before (0-based, end exclusive) are lines `new_start` to `new_end` after."""

    start: int
    end: int
    new_start: int
    new_end: int


def shared(before: str, after: str) -> tuple[int, int]:
    """Return how many code points two texts share at their beginning, and at the end of the rest.

    Both are of whole lines; one line more, at either end, may be alike, too.
    """
    shorter = min(len(before), len(after))
    head = _longest_alike(shorter, lambda start, end: before[start:end] == after[start:end])
    tail = _longest_alike(
        shorter - head,
        lambda start, end: (
            before[len(before) - end : len(before) - start] == after[len(after) - end : len(after) - start]
        ),
    )
    # What follows a carriage return may be a line feed in one of them.
    whole = head - 1 if before.endswith("\r", 0, head) else head
    head = max(before.rfind(end, 0, whole) for end in "\r\n") + 1
    ending = LINE_END.search(before, len(before) - tail)
    return head, len(before) - ending.end() if ending else 0


def _longest_alike(most: int, alike: Callable[[int, int], bool]) -> int:
    """Return how many characters, at most `most`, are alike; `alike` compares one stretch."""
    start = 0
    while start < most:
        middle = (start + most + 1) // 2
        if alike(start, middle):
            start = middle
        else:
            most = middle - 1
    return start


def hunks(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """Return what turns the lines `before` into `after`, in order.

    At least one equal line parts two hunks.
    """
    found = []
    old = new = 0
    for start, new_start, size in [*matches(before, after), (len(before), len(after), 0)]:
        if old < start or new < new_start:
            found.append(Hunk(old, start, new, new_start))
        old, new = start + size, new_start + size
    return found


# A character of a script without blanks between words, a word, or a mark; and the blanks between.
_WORD = regex(
    r"[ \t\r\n]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\w \t\r\n]"
)


class Word(NamedTuple):
    """A stretch of words: `mark` is "-" if it was removed, "+" if it was added, else empty."""

    mark: str
    text: str


def words(before: str, after: str) -> list[Word]:
    """Return what turns one text into another, word by word; what is not marked stands in both."""
    if not (before and after):
        return [Word("-" if before else "+", before or after)] if before or after else []
    old, new = _WORD.findall(before), _WORD.findall(after)
    joined: list[Hunk] = []
    for hunk in hunks(old, new):
        last = joined[-1] if joined else None
        # A blank between two changed words is not a word that stayed.
        if last and not "".join(old[last.end : hunk.start]).strip(" \t\r\n"):
            joined[-1] = Hunk(last.start, hunk.end, last.new_start, hunk.new_end)
        else:
            joined.append(hunk)
    found, reached = [], 0
    for hunk in joined:
        found.append(Word("", "".join(old[reached : hunk.start])))
        found.append(Word("-", "".join(old[hunk.start : hunk.end])))
        found.append(Word("+", "".join(new[hunk.new_start : hunk.new_end])))
        reached = hunk.end
    return [word for word in [*found, Word("", "".join(old[reached:]))] if word.text]


def regions(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], *, apart: bool = False
) -> Iterator[Versions[slice]]:
    """Yield where `ours` or `theirs` differ from `base`, in order, as ranges of lines.

    Changes that touch are one.

    This is diff3 (Khanna, Kunal and Pierce, "A Formal Investigation of Diff3", 2007), with touching changes
    taken together, as git does; `apart`, only those that change the same lines, or insert at the same place.
    """
    queues = deque(hunks(base, ours)), deque(hunks(base, theirs))
    shifts = [0, 0]
    while any(queues):
        start, end, *_ = min(queue[0] for queue in queues if queue)
        before = tuple(shifts)
        growing = True
        while growing:
            growing = False
            for side, queue in enumerate(queues):
                while queue and (queue[0][:2] == (start, end) or queue[0].start < end + (not apart)):
                    hunk = queue.popleft()
                    end = max(end, hunk.end)
                    shifts[side] = hunk.new_end - hunk.end
                    growing = True
        changed = (slice(start + was, end + now) for was, now in zip(before, shifts, strict=True))
        yield Versions(slice(start, end), *changed)


def matches(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Stretches of equal lines as (place before, place after, length), in order.

    Lines that stand once in both texts are the anchors (patience diff, Bram Cohen): they keep repeated lines,
    such as blank ones, from being matched across the text. difflib fills in between them.
    """
    found: list[tuple[int, int, int]] = []
    head, tail = count_common_lines(before, after)
    found.append((0, 0, head))
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    last_old = last_new = 0
    budget = _MOST_PAIRS
    for at_old, at_new in [*_find_anchors(old, new), (len(old), len(new))]:
        gap_old, gap_new = old[last_old:at_old], new[last_new:at_new]
        if gap_old and gap_new:
            filled, spent = _match_between(gap_old, gap_new, budget)
            budget -= spent
            found += [(head + last_old + i, head + last_new + j, size) for i, j, size in filled]
        found.append((head + at_old, head + at_new, 1 if at_old < len(old) else tail))
        last_old, last_new = at_old + 1, at_new + 1
    return [match for match in found if match[2]]


def count_common_lines(before: Sequence[Hashable], after: Sequence[Hashable]) -> tuple[int, int]:
    """Return how many lines two texts begin with alike, and how many of the others they end with alike."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    left = shorter - head
    tail = next((n for n in range(left) if before[-1 - n] != after[-1 - n]), left)
    return head, tail


def _find_anchors(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places of lines that stand once in both texts, in the same order."""
    once, once_after = (
        {line for line, count in Counter(lines).items() if count == 1} for lines in (before, after)
    )
    places = {line: number for number, line in enumerate(after) if line in once_after}
    pairs = [(number, places[line]) for number, line in enumerate(before) if line in once and line in places]
    return [pairs[number] for number in increasing([place for _, place in pairs])]


def increasing(numbers: Sequence[int]) -> list[int]:
    """Return the places of a longest increasing subsequence of `numbers`, by patience sorting."""
    tops: list[int] = []
    top_places: list[int] = []
    previous: list[int | None] = []
    for place, number in enumerate(numbers):
        pile = bisect_left(tops, number)
        previous.append(top_places[pile - 1] if pile else None)
        tops[pile : pile + 1] = [number]
        top_places[pile : pile + 1] = [place]
    chain = []
    at = top_places[-1] if top_places else None
    while at is not None:
        chain.append(at)
        at = previous[at]
    return chain[::-1]


def _match_between(
    before: Sequence[Hashable], after: Sequence[Hashable], budget: int
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the matches between two anchors, and their cost of the `budget` of pairs."""
    head, tail = count_common_lines(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    counts = Counter(new)
    pairs = sum(counts[line] for line in old)
    middle: list[tuple[int, int, int]] = []
    if 0 < pairs <= budget:
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        middle = [(head + i, head + j, size) for i, j, size in blocks]
    ends = (len(before) - tail, len(after) - tail, tail)
    return [(0, 0, head), *middle, ends], pairs if middle else 0


# ------------------------------------------------------------------------------------------- unified diff


def unified(
    before: str | None, after: str | None, path: str, *, new_path: str | None = None, context: int = 3
) -> str:
    r"""Return the unified diff of two texts, as git prints it; empty when nothing differs.

    `git apply` takes it: only `\n` ends a line here, as in git, so a carriage return stays in its line.

    Args:
        before, after: None where there is no file.
        path: the file, from the folder that the diff is applied in.
        new_path: its new name, when it is renamed.
    """
    renamed = new_path if new_path not in (None, path) else None
    if before == after and not renamed:
        return ""
    old, new = before or "", after or ""
    start, tail = _shared_around(old, new, context)
    old_lines, new_lines = (
        _split_lines(old[start : len(old) - tail]),
        _split_lines(new[start : len(new) - tail]),
    )
    groups = _group_hunks(hunks(old_lines, new_lines), context)
    parts = []
    if renamed or not groups:
        parts += _extended_header(before, after, path, renamed or path)
    if groups:
        parts.append(f"--- {_format_name('a', path) if before is not None else '/dev/null'}\n")
        parts.append(f"+++ {_format_name('b', renamed or path) if after is not None else '/dev/null'}\n")
    above, title, reached = old.count("\n", 0, start), "", 0
    places = list(accumulate((len(line) + 1 for line in old_lines), initial=start))
    for group in groups:
        if path.endswith((".md", ".mdx", ".markdown", ".mdc")):
            place = places[max(0, group[0].start - context)]
            title, reached = _heading_above(old, reached, place) or title, place
        parts += _format_hunk(group, old_lines, new_lines, context, above, title)
    return "".join(parts)


def _shared_around(before: str, after: str, context: int) -> tuple[int, int]:
    """Return what `shared` does, without the context of changes; only line feeds end a line here."""
    head, tail = shared(before, after)
    end = len(before) - tail
    for _ in range(context + 1):  # one for that which may have been cut at a carriage return
        head = before.rfind("\n", 0, max(0, head - 1)) + 1
        end = before.find("\n", end) + 1 or len(before)
    return head, len(before) - end


def _split_lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _group_hunks(found: list[Hunk], context: int) -> list[list[Hunk]]:
    groups: list[list[Hunk]] = []
    for hunk in found:
        if groups and hunk.start - groups[-1][-1].end <= 2 * context:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return groups


def _format_hunk(
    group: list[Hunk], old: Sequence[str], new: Sequence[str], context: int, above: int, title: str
) -> list[str]:
    first, last = group[0], group[-1]
    lead = min(context, first.start)
    trail = min(context, len(old) - last.end)
    at, end = first.start - lead, last.end + trail
    old_range = _format_range(above + at, above + end)
    new_range = _format_range(above + first.new_start - lead, above + last.new_end + trail)
    parts = [f"@@ -{old_range} +{new_range} @@{title}\n"]
    for hunk in group:
        parts += [f" {line}\n" for line in old[at : hunk.start]]
        parts += [f"-{line}\n" for line in old[hunk.start : hunk.end]]
        parts += [f"+{line}\n" for line in new[hunk.new_start : hunk.new_end]]
        at = hunk.end
    return [*parts, *(f" {line}\n" for line in old[at:end])]


def _format_range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return f"{start + 1}"
    return f"{start + 1 if count else start},{count}"


def _heading_above(text: str, start: int, end: int) -> str:
    """Return the last heading between two lines, as git shows it for files with `diff=markdown`."""
    mark = text.rfind("#", start, end)
    while mark >= 0:
        line = text.rfind("\n", start, mark) + 1 or start
        if _HEADING.match(text, line):
            written = text[line : text.find("\n", line)].rstrip()
            return f" {written[:80]}"
        mark = text.rfind("#", start, line)
    return ""


def _extended_header(before: str | None, after: str | None, path: str, new_path: str) -> list[str]:
    """Return git's extended header: a rename, or an empty file created or deleted."""
    parts = [f"diff --git {_quote_name(f'a/{path}')} {_quote_name(f'b/{new_path}')}\n"]
    if before is None:
        return [*parts, "new file mode 100644\n"]
    if after is None:
        return [*parts, "deleted file mode 100644\n"]
    return [*parts, f"rename from {_quote_name(path)}\n", f"rename to {_quote_name(new_path)}\n"]


def _format_name(prefix: str, path: str) -> str:
    name = _quote_name(f"{prefix}/{path}")
    # The tab says where a name with spaces ends, since a date may follow it in other programs' diffs.
    return f"{name}\t" if " " in path else name


def _quote_name(name: str) -> str:
    if not _MUST_QUOTE.search(name):
        return name
    escaped = _MUST_QUOTE.sub(
        lambda m: f"\\{m.group()}" if m.group() in '"\\' else f"\\{ord(m.group()):03o}", name
    )
    return f'"{escaped}"'
