"""Text edits: spans of an original text and what stands there afterwards; and the verbs that make them."""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, islice
from operator import eq, gt
from typing import Any, Literal, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.document import Document, parse_text
from mdmem.document.frontmatter import BOM, beginning
from mdmem.document.markdown import blocks
from mdmem.document.text.diff import hunks, shared
from mdmem.document.text.lines import LINE_END, whole_lines, with_newline
from mdmem.document.text.regex import Allowance, expanded, foreign, regex
from mdmem.errors import EditRefused, MdmemError, NearLine, TextAmbiguous, TextNotFound, TooManyParts

_CRLF = regex(r"\r\n")
# The beginning of a line that no block of its own begins, and that of one which may stand in a list or quote.
_WORDS = regex(rf"(?![>|]|(?:#{{1,6}}|{blocks.LIST_MARKER})[ \t]|```|~~~|---)\S")
_CONTAINER = regex(rf"[ \t>]|{blocks.LIST_MARKER}[ \t]")
# More edits of one memory are made as one.
_MOST_EDITS = 10_000
# What helps where a pattern matches nowhere.
NO_MATCH = "no line matches the pattern: try it with `mdmem grep --regex`"


class TextEdit(NamedTuple):
    """Replace the code points from `start` to `end` (0-based, end exclusive) of the original by `new`."""

    start: int
    end: int
    new: str


def ordered(edits: Iterable[TextEdit], length: int, path: str) -> list[TextEdit]:
    """Return the edits of a text of `length` code points, first to last.

    Raises:
        EditRefused: two of them overlap, or insert at the same place, or one reaches outside the text.
    """
    result = sorted(edits)
    reached = 0
    for number, edit in enumerate(result):
        if edit.start < reached or edit.end < edit.start or edit.end > length:
            raise EditRefused(path=path, reason="two edits overlap, or one reaches outside the text")
        if number and edit[:2] == result[number - 1][:2]:
            raise EditRefused(path=path, reason="two edits stand at the same place")
        reached = edit.end
    return result


def splice(text: str, edits: Iterable[TextEdit], path: str = "") -> str:
    """`text` with the edits made; everything outside their spans stays as it is."""
    parts, reached = [], 0
    for edit in ordered(edits, len(text), path):
        parts += [text[reached : edit.start], edit.new]
        reached = edit.end
    return "".join([*parts, text[reached:]])


def spliced(document: Document, edits: Iterable[TextEdit]) -> Document:
    """Return the memory with the edits made."""
    return parse_text(document.path, splice(document.text, edits, document.path), document.limits)


def inverse(text: str, edits: Sequence[TextEdit]) -> list[TextEdit]:
    """Return the edits that turn `splice(text, edits)` back into `text`."""
    result: list[TextEdit] = []
    shift = 0
    for edit in ordered(edits, len(text), ""):
        start, old = edit.start + shift, text[edit.start : edit.end]
        if result and result[-1].end == start:
            # Edits that touch become one: two deletions side by side would be insertions at one place.
            start, old = result[-1].start, result.pop().new + old
        result.append(TextEdit(start, edit.start + shift + len(edit.new), old))
        shift += len(edit.new) - (edit.end - edit.start)
    return result


def fitted(document: Document, new: str) -> str:
    """`new` with the document's line ends, where all its lines end alike and `new` has plain newlines."""
    lines = document.lines
    return with_newline(new, lines.newline) if lines.uniform and "\r" not in new else new


def replace(
    document: Document, old: str, new: str, *, count: int | Literal["all"] = 1, regex: bool = False
) -> list[TextEdit]:
    r"""Replace text that occurs exactly as often as expected.

    Args:
        old: the literal text, in which `\n` is whatever ends lines there; with `regex`, a pattern of the
            package `regex`, which are those of Python's `re` and more; `^` and `$` match at lines.
        new: what stands there afterwards; with `regex`, `\1` and `\g<name>` stand for groups.
        count: how often `old` must occur; "all" for every occurrence, at least one.
        regex: read `old` as a pattern; it sees every line end as `\n`, and no byte-order mark.

    Raises:
        EditRefused: `old` is empty, or the pattern matches the empty text.
        TextNotFound: no occurrence; it carries the nearest lines and what differs.
        TextAmbiguous: another number of occurrences, or occurrences that overlap.
        PatternInvalid: the pattern cannot be compiled, or `new` names a group that it lacks.
        PatternTooSlow: the pattern takes too long.
    """
    found = find_replacements(document, old, new, regex=regex)
    if not found.starts:
        near = find_slips(document, old, regex=True) if regex else nearest(document, old)
        raise TextNotFound(path=document.path, old=old, near=near, remedy=NO_MATCH if regex else "")
    if count != "all" and count != len(found.starts):
        lines = tuple(map(document.lines.number, found.starts))
        raise TextAmbiguous(path=document.path, old=old, expected=count, lines=lines)
    return found.as_edits(document.text)


class Replacements(NamedTuple):
    """The occurrences of a text, first to last: where each starts and ends, and what replaces it."""

    starts: array[int]
    ends: array[int]
    texts: list[str]

    def as_edits(self, text: str) -> list[TextEdit]:
        """Return the edits of `text` that replace all of them."""
        starts, ends, texts = self
        if len(starts) <= _MOST_EDITS:
            return list(map(TextEdit, starts, ends, texts))
        gaps = zip(texts, ends, starts[1:], strict=False)
        changed = "".join([f"{each}{text[end:start]}" for each, end, start in gaps])
        return [TextEdit(starts[0], ends[-1], changed + texts[-1])]


def find_replacements(document: Document, old: str, new: str, *, regex: bool = False) -> Replacements:
    """Find every occurrence of `old`, and what replaces it; arguments and errors are as of `replace`."""
    if not old:
        raise document.refused("the text to replace is empty", "say what to replace")
    find_matches = _find_regex_matches if regex else _find_literal_matches
    found = find_matches(document, old, new)
    if any(map(gt, found.ends, found.starts[1:])):
        lines = tuple(map(document.lines.number, found.starts))
        raise TextAmbiguous(path=document.path, old=old, expected=len(lines), lines=lines, overlapping=True)
    return found


def _find_occurrences(text: str, old: str) -> Iterator[int]:
    at = text.find(old)
    while at != -1:
        yield at
        # One further, not len(old): occurrences that overlap make "exactly once" a guess.
        at = text.find(old, at + 1)


def _find_literal_matches(document: Document, old: str, new: str) -> Replacements:
    any_end = "\n" in old and "\r" not in old and "\r" in document.text
    text = with_newline(document.text, "\n") if any_end else document.text
    starts = array("l", _find_occurrences(text, old))
    ends = array("l", (at + len(old) for at in starts))
    if not any_end:
        return Replacements(starts, ends, [fitted(document, new)] * len(starts))
    starts, ends = (_to_places(document.text, each) for each in (starts, ends))
    texts = [_with_line_ends(document, new, Span(*span)) for span in zip(starts, ends, strict=True)]
    return Replacements(starts, ends, texts)


def _to_places(text: str, places: array[int]) -> array[int]:
    """Return where places of a text with line feeds alone are in the text itself."""
    pairs = [match.start() - number for number, match in enumerate(_CRLF.finditer(text))]
    return array("l", [at + bisect_left(pairs, at) for at in places]) if pairs else places


def _find_regex_matches(document: Document, old: str, new: str) -> Replacements:
    pattern = foreign(old, lines=True)
    # For a pattern only a line feed ends a line, so `$` would never match before a carriage return.
    text = document.text.removeprefix(BOM)
    plain = with_newline(text, "\n")
    has_groups = "\\" in new

    def match(**limits: Any) -> tuple[array[int], array[int], list[str]]:
        starts, ends, texts = array("l"), array("l"), []
        matches = pattern.finditer(plain, **limits)
        while some := list(islice(matches, _MOST_EDITS)):
            starts.fromlist([match.start() for match in some])
            ends.fromlist([match.end() for match in some])
            if any(map(eq, starts[-len(some) :], ends[-len(some) :])):
                raise document.refused("the pattern matches the empty text", "make it longer")
            texts += [expanded(match, new) for match in some] if has_groups else [new] * len(some)
        return starts, ends, texts

    starts, ends, texts = Allowance().run(pattern, plain, match)
    starts, ends = (_to_places(text, each) for each in (starts, ends))
    if len(text) < len(document.text):
        starts, ends = (array("l", [at + len(BOM) for at in each]) for each in (starts, ends))
    if has_groups or "\n" in new or "\r" in new:
        spans = map(Span, starts, ends)
        texts = [_with_line_ends(document, text, span) for text, span in zip(texts, spans, strict=True)]
    return Replacements(starts, ends, texts)


def _with_line_ends(document: Document, text: str, span: Span) -> str:
    """Return the replacement of a match with the line ends of the match, else of the document.

    Of several kinds each line has the one of its place; the last one goes on behind that.
    """
    ends = LINE_END.findall(document.text, *span)
    if not ends or "\n" not in text or "\r" in text:
        return fitted(document, text)
    rest = iter(ends)
    return LINE_END.sub(lambda _: next(rest, ends[-1]), text)


def insert(document: Document, line: int, new: str) -> list[TextEdit]:
    """Insert lines behind line `line` (1-based); 0 is before the first line of a text without frontmatter.

    Raises:
        EditRefused: there is no such line, or it is inside the frontmatter.
    """
    lines = document.lines
    if not 0 <= line <= len(lines):
        raise document.refused(f"there is no line {line}", f"lines 0 to {len(lines)} can be named")
    start = document.body_span.start
    at = lines.span(line).end if line else 0
    if at < start and document.frontmatter.present:
        last = lines.number(start - 1)
        raise document.refused(
            f"line {line} is in the frontmatter, which ends in line {last}", "change fields with `mdmem set`"
        )
    return _lines_at(document, max(at, start), new)


def append(document: Document, new: str) -> list[TextEdit]:
    """Add lines at the end; a missing final line end is added first.

    Words behind a list or a quote get a blank line before them: Markdown would read them as part of its last
    paragraph.
    """
    _refuse_json(document, "append to")
    if _would_continue(document, new):
        new = document.lines.newline + fitted(document, new)
    return _lines_at(document, len(document.text), new)


def _would_continue(document: Document, new: str) -> bool:
    """Tell whether words at the end would belong to the last paragraph of a list or a quote."""
    if not _WORDS.match(new) or not _ends_in_container(document):
        return False
    above = document.text if document.text.endswith(("\r", "\n")) else document.text + "\n"
    with contextlib.suppress(TooManyParts):
        for name, opens, _, start, end in blocks.events(above + new, document.body_span.start):
            if opens and name in {blocks.LIST, blocks.QUOTE} and start < len(above) < end:
                return True
    return False


def _ends_in_container(document: Document) -> bool:
    """Tell whether a line behind the last blank one is indented, or has the mark of a list or a quote."""
    for number in range(len(document.lines), 0, -1):
        line = document.lines.content(number)
        if not line.strip():
            return False
        if _CONTAINER.match(line.removeprefix(BOM)):
            return True
    return False


def prepend(document: Document, new: str) -> list[TextEdit]:
    """Add lines at the beginning of the body, behind the frontmatter."""
    _refuse_json(document, "prepend to")
    return _lines_at(document, document.body_span.start, new)


def delete_lines(document: Document, first: int, last: int) -> list[TextEdit]:
    """Delete the lines `first` to `last` (1-based, both included).

    Raises:
        EditRefused: there are no such lines, or they cut the frontmatter in two.
    """
    lines = document.lines
    if not 1 <= first <= last <= len(lines):
        raise document.refused(
            f"there are no lines {first} to {last}", f"lines 1 to {len(lines)} can be named"
        )
    start, end = lines.span(first).start, lines.span(last).end
    block = document.frontmatter.span
    if block.start < end and start < block.end and not (start <= block.start and block.end <= end):
        inner = document.frontmatter.inner
        if start < inner.start or end > inner.end:
            raise document.refused(
                "these lines hold one of the frontmatter's two `---` lines",
                "delete the whole frontmatter, or fields with `mdmem unset`",
            )
    return [TextEdit(max(start, block.start), end, "")]


def _refuse_json(document: Document, action: str) -> None:
    if document.is_json:
        raise document.refused(f"cannot {action} JSON text", "change its fields with `mdmem set`")


def _lines_at(document: Document, at: int, new: str) -> list[TextEdit]:
    """Return the insertion of whole lines at the end of a line."""
    if new == "":
        return []
    text, newline = document.text, document.lines.newline
    new = fitted(document, new)
    is_open = at > beginning(text) and text[at - 1] not in "\r\n"
    before = newline if is_open else ""
    after = "" if new[-1] in "\r\n" else newline
    return [TextEdit(at, at, before + new + after)]


def between(before: str, after: str) -> list[TextEdit]:
    """Return the edits, line by line, that turn `before` into `after`."""
    head, tail = shared(before, after)
    old, new = (whole_lines(text, head, len(text) - tail) for text in (before, after))
    starts = list(accumulate(map(len, old), initial=head))
    return [
        TextEdit(starts[hunk.start], starts[hunk.end], "".join(new[hunk.new_start : hunk.new_end]))
        for hunk in hunks(old, new)
    ]


_MOST = 3
_SIMILAR = 0.6  # SequenceMatcher's own threshold for a close match
# Comparing is quadratic in the length of lines, so only their beginnings are compared, and only the lines
# that a cheaper bound puts first.
_LONGEST_COMPARED = 200  # code points
_MOST_COMPARED = 20
_MOST_LINES = 20_000


def nearest(document: Document, old: str) -> tuple[NearLine, ...]:
    """Return at most three lines that are almost `old`, best first: those of `find_slips`, else similar ones.

    Similar lines are compared with the first line of `old`.
    """
    if slips := find_slips(document, old):
        return slips
    wanted = next((line for line in LINE_END.sub("\n", old).split("\n") if line.strip()), "")
    return _find_similar_lines(wanted, _list_lines(document))


def find_slips(document: Document, old: str, *, regex: bool = False) -> tuple[NearLine, ...]:
    """Return at most three lines in which `old` stands but for a slip.

    The smallest slips are tried first: line ends, a newline at the edge, whitespace, case, both. A pattern is
    tried without case only.
    """
    if regex:
        with contextlib.suppress(MdmemError):
            starts = find_replacements(document, f"(?i){old}", "", regex=True).starts
            found_in = map(document.lines.number, starts[:_MOST])
            return _name_lines("case", found_in, _list_lines(document))
        return ()
    if "".join(old.split()).casefold() not in "".join(document.text.split()).casefold():
        return ()  # which is told much faster than any slip
    lines = _list_lines(document)
    ended = [*lines, ""] if document.text.endswith(("\n", "\r")) else lines
    wanted = LINE_END.sub("\n", old)
    spaced, words = " ".join(old.split()), [word for line in lines for word in line.split()]
    of_words = [number for number, line in enumerate(lines, 1) for _ in line.split()]
    by_line, by_word = (ended, "\n", range(1, len(lines) + 1)), (words, " ", of_words)
    slips: tuple[tuple[str, str, tuple[list[str], str, Sequence[int]]], ...] = (
        ("line ends", wanted, by_line),
        ("a trailing newline", wanted.strip("\n"), by_line),
        ("whitespace", spaced, by_word),
        ("case", wanted.casefold(), by_line),
        ("whitespace and case", spaced.casefold(), by_word),
    )
    for differs, needle, (parts, separator, numbers) in slips:
        searched = [part.casefold() for part in parts] if "case" in differs else parts
        found = _find_places(needle, searched, separator)
        if found:
            return _name_lines(differs, (numbers[place] for place in found), lines)
    return ()


def _list_lines(document: Document) -> list[str]:
    return [document.lines.content(number) for number in range(1, len(document.lines) + 1)]


def _name_lines(differs: str, numbers: Iterable[int], lines: Sequence[str]) -> tuple[NearLine, ...]:
    return tuple(
        NearLine(line=number, text=lines[number - 1], differs=differs) for number in dict.fromkeys(numbers)
    )


def _find_places(needle: str, parts: Sequence[str], separator: str) -> list[int]:
    """Return the places of the parts in which `needle` begins, which may go on in the next parts."""
    if not needle:
        return []
    joined = separator.join(parts)
    ends = list(accumulate(len(part) + 1 for part in parts))
    found: list[int] = []
    at = joined.find(needle)
    while at != -1 and len(found) < _MOST:
        place = bisect_right(ends, at)
        found.append(place)
        at = joined.find(needle, ends[place])
    return found


def _find_similar_lines(wanted: str, lines: Sequence[str]) -> tuple[NearLine, ...]:
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted.strip()[:_LONGEST_COMPARED])
    bounds = []
    for number, line in enumerate(lines[:_MOST_LINES], 1):
        matcher.set_seq1(line.strip()[:_LONGEST_COMPARED])
        if matcher.real_quick_ratio() >= _SIMILAR and (bound := matcher.quick_ratio()) >= _SIMILAR:
            bounds.append((-bound, number))
    scored = []
    for _, number in sorted(bounds)[:_MOST_COMPARED]:
        matcher.set_seq1(lines[number - 1].strip()[:_LONGEST_COMPARED])
        scored.append((-matcher.ratio(), number))
    best = sorted(score for score in scored if -score[0] >= _SIMILAR)[:_MOST]
    return _name_lines("similar words", (number for _, number in best), lines)
