"""The short form of a tool's output: whole lines that say most of it, and how many lines are left out where.

Which lines these are depends on the tool: definitions for a file that was read, errors for a program that
ran, counts by file for a search. A text is never made longer, and no character is cut.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document import secret
from mdmem.document.secret import Secret
from mdmem.results.named import COLOUR, defines
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex
from mdmem.text.tokens import abridged

_LEAST = 200  # characters of a short form that may be asked for
MOST = 6_000
"""How many characters a short form has at most, about; that of a text of less than twice as many has half."""

_LONGEST = 60  # tokens of a line where there are many
_FEW = 12  # lines that share the room, where there are no more
_A_TOKEN = 4  # characters
_SIDE = 15  # lines at the beginning and at the end
_READ_SIDE = 20
_DEFINITIONS = 60
_FILES = 12  # files, or folders, that are counted by name
_AROUND = 2  # lines before and behind an error
_ERRORS = 12  # places with errors from the beginning, and as many from the end
_MARK = 60  # characters that telling of a gap takes, at most
_MOST_HTML = 1_000_000  # characters of a page that are read
_REACH = 120  # lines around one that is shown in which a secret may begin or end
_LONG_LINE = 40_000  # characters of a line of which the beginning and the end alone are looked at for secrets

_ERROR = regex(
    r"(?<!\b0 )(?<!\bno )(?<!\bNo )(?<!without )(?:"
    r"(?<![tT])[Ee]rrors?\b|\bERRORS?\b|\b(?:[Ff]ailed|FAILED|[Ff]ailures?|FAILURES?|FAIL)\b|[Ee]xceptions?\b"
    r"|\bTraceback\b|\b(?:fatal|FATAL)\b|\bpanic(?:ked)?\b|\b[Ss]egmentation fault\b|\bcommand not found\b"
    r"|\b[Pp]ermission denied\b|\bNo such file\b)(?!: 0\b|s?=0\b)"
)
_ERROR_WORDS = (
    *("rror", "ERROR", "ailed", "FAIL", "ailure", "xception", "Traceback", "fatal", "FATAL", "panic"),
    *("egmentation fault", "command not found", "ermission denied", "No such file"),
)
_HIT = regex(r"((?:[A-Za-z]:)?[^:\r\n]{1,500}):[0-9]{1,9}[:-]")
_COUNTED = regex(r"((?:[A-Za-z]:)?[^:\r\n]{1,500}):([0-9]{1,9})\Z")


class Shortened(NamedTuple):
    """A short form.

    Attributes:
        text: the short form; the text itself, where that is no longer.
        gaps: the first and the last line of each run that is left out, 1-based.
        secrets: whose secrets were taken out of it, each kind once.
    """

    text: str
    gaps: tuple[tuple[int, int], ...] = ()
    secrets: tuple[str, ...] = ()


def shortened(tool: str, text: str, most: int = MOST) -> Shortened:
    """Return the short form of what a tool has printed, without secrets of known formats.

    Args:
        tool: its name, in any case, with or without what a server puts before it; the output of one that is
            not known is shortened to its beginning and end.
        text: the output.
        most: characters of the short form, about; at least 200.
    """
    name = re.split(r"[^a-z]+", tool.lower())[-1]
    room = min(max(most, _LEAST), len(text) // 2)
    if name in {"webfetch", "fetch"} and (page := _text_of_page(text)):
        short = _around_gaps(_split_lines(page), page, _choose_ends, room, page_of=len(text))
    elif name in {"grep", "glob"}:
        short = _shorten_hits(_split_lines(text), text, room)
    else:
        short = _around_gaps(_split_lines(text), text, _CHOOSERS.get(name, _choose_ends), room)
    return short if len(short.text) < len(text) else redacted(text)


def redacted(text: str) -> Shortened:
    """Return a text as it is, but for the secrets of known formats in it."""
    found = _find_secrets(text)
    return Shortened(_replace_secrets(text, found), secrets=_kinds_of(found))


def _split_lines(text: str) -> list[str]:
    lines = LINE_END.split(text) if "\r" in text else text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


# -- which lines are taken, the most telling first ----------------------------------------------------------


def _first_and_last(count: int, first: int, last: int) -> Iterator[int]:
    """Yield the first and the last lines, in turn from outside, so that what has no room is in the middle."""
    for number in range(max(first, last)):
        if number < min(first, count):
            yield number
        if number < min(last, count):
            yield count - 1 - number


def _choose_ends(lines: Sequence[str], _text: str) -> Iterator[int]:
    return _first_and_last(len(lines), _SIDE, _SIDE)


def _choose_definitions(lines: Sequence[str], _text: str) -> Iterator[int]:
    """Yield the beginning and the end of a file, then what it defines between them, far apart first."""
    yield from _first_and_last(len(lines), _READ_SIDE, _READ_SIDE)
    found = [number for number, line in enumerate(lines) if line and defines(line)]
    step = len(found) // _DEFINITIONS + 1
    for start in range(step):
        yield from found[start::step]


def _choose_errors(lines: Sequence[str], text: str) -> Iterator[int]:
    """Yield the beginning and the end of what a program printed, and what is around errors."""
    errors = _lines_with_errors(lines, text)
    if errors:
        yield from _first_and_last(len(lines), _SIDE // 3, _SIDE)
        yield from errors
        for distance in range(1, _AROUND + 1):
            for error in errors:
                yield from (error + distance, error - distance)
    yield from _choose_ends(lines, text)


def _lines_with_errors(lines: Sequence[str], text: str) -> list[int]:
    """Return the first lines and the last ones that tell of an error."""
    # A capital is found, or not, fifty times as fast as a word, and a word from the end twice as fast.
    told = [word for word in _ERROR_WORDS if word[0] in text and text.rfind(word) >= 0]
    suspects = sorted({number for word in told for number, line in enumerate(lines) if word in line})
    found: dict[int, None] = {}
    for numbers in (suspects, reversed(suspects)):
        telling = (number for number in numbers if _ERROR.search(lines[number]))
        found.update(dict.fromkeys(islice(telling, _ERRORS)))
    return list(found)


Chooser = Callable[[Sequence[str], str], Iterator[int]]
_CHOOSERS: dict[str, Chooser] = {
    "read": _choose_definitions,
    "view": _choose_definitions,
    "bash": _choose_errors,
    "shell": _choose_errors,
    "exec": _choose_errors,
}


# -- putting them together ----------------------------------------------------------------------------------


def _around_gaps(
    lines: Sequence[str], text: str, choose: Chooser, room: int, *, page_of: int = 0
) -> Shortened:
    """Return the lines that are chosen while they fit, in order, with what is left out between them."""
    each = room // max(1, len(lines)) - _MARK - 1
    longest = _LONGEST if len(lines) > _FEW else max(_LONGEST, each // _A_TOKEN)
    taken: dict[int, str] = {}
    for number in choose(lines, text):
        if number in taken or not 0 <= number < len(lines):
            continue
        line = abridged(lines[number], longest)
        cost = len(line) + 1 + (0 if number - 1 in taken or number + 1 in taken else _MARK)
        if cost <= room:
            room -= cost
            taken[number] = line
    secrets = _secrets_by_line(lines, sorted(taken), _REACH if "PRIVATE KEY" in text else 0)
    for number, found in secrets.items():
        if number in taken:
            taken[number] = abridged(_replace_secrets(lines[number], found), longest)
    short = _join_lines(lines, taken, page_of)
    return short._replace(secrets=_kinds_of(each for number in taken for each in secrets.get(number, ())))


def _secrets_by_line(lines: Sequence[str], shown: Sequence[int], reach: int) -> dict[int, list[Secret]]:
    """Return the secrets in lines that are shown, by line, with places in it.

    They are looked for in whole lines: of a secret that is cut, nothing would tell that it is one.

    Args:
        lines: of the output.
        shown: which lines are shown, in order.
        reach: how many lines around them a secret may begin or end in.
    """
    found: dict[int, list[Secret]] = {}
    for number in shown:
        if len(lines[number]) > _LONG_LINE:
            found[number] = _at_ends(lines[number], _LONG_LINE // 2)
    for first, behind in _group_runs(shown, reach):
        around = [line if len(line) <= _LONG_LINE else "" for line in lines[max(0, first) : behind]]
        secrets = _find_secrets("\n".join(around))
        starts = list(accumulate((len(line) + 1 for line in around), initial=0)) if secrets else []
        for each in secrets:
            here = bisect_right(starts, each.span.start) - 1
            while here < len(around) and starts[here] < each.span.end:
                start, end = max(each.span.start, starts[here]), min(each.span.end, starts[here + 1] - 1)
                if start < end:
                    span = Span(start - starts[here], end - starts[here])
                    found.setdefault(max(0, first) + here, []).append(each._replace(span=span))
                here += 1
    return found


def _group_runs(numbers: Sequence[int], reach: int) -> Iterator[tuple[int, int]]:
    """Yield runs of numbers, widened by `reach`: the first number, and the one behind the last."""
    first = behind = 0
    for number in numbers:
        if number - reach > behind:
            if behind:
                yield first, behind
            first = number - reach
        elif not behind:
            first = number - reach
        behind = number + reach + 1
    if behind:
        yield first, behind


def _at_ends(line: str, size: int) -> list[Secret]:
    """Find the secrets at both ends of a very long line, the rest of which is not shown."""
    behind = len(line) - size
    at_end = (
        each._replace(span=Span(each.span.start + behind, each.span.end + behind))
        for each in _find_secrets(line[behind:])
    )
    return [*_find_secrets(line[:size]), *at_end]


def _find_secrets(text: str) -> list[Secret]:
    """Return the secrets in a text, coloured ones too."""
    return secret.find(COLOUR.sub(lambda found: " " * len(found[0]), text) if "\x1b" in text else text)


def _replace_secrets(text: str, secrets: Sequence[Secret]) -> str:
    """Return a text with a word in the place of each secret, which is no longer than that."""
    for each in sorted(secrets, key=lambda found: found.span.start, reverse=True):
        start, end = each.span
        word = each.word if len(each.word) <= end - start else "*" * (end - start)
        text = text[:start] + word + text[end:]
    return text


def _kinds_of(secrets: Iterable[Secret]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.kind for each in secrets))


def _join_lines(lines: Sequence[str], taken: dict[int, str], page_of: int) -> Shortened:
    told: list[str] = []
    gaps: list[tuple[int, int]] = []
    at = 0
    for number in (*sorted(taken), len(lines)):
        if number > at:
            gaps.append((at + 1, number))
            told.append(_describe_gap(at + 1, number, numbered=not page_of))
        if number in taken:
            told.append(taken[number])
        at = number + 1
    if page_of:
        read = f"the first {_MOST_HTML:,} of " if page_of > _MOST_HTML else ""
        told.append(f"[text of {read}{page_of:,} characters, without tags]")
        return Shortened("\n".join(told))
    return Shortened("\n".join(told), tuple(gaps))


def _describe_gap(first: int, last: int, *, numbered: bool) -> str:
    count = last - first + 1
    told = f"{count:,} line{'s' if count > 1 else ''} left out"
    return f"[{told}: {first}-{last}]" if numbered else f"[{told}]"


# -- searches -----------------------------------------------------------------------------------------------


def _shorten_hits(lines: Sequence[str], text: str, room: int) -> Shortened:
    """Shorten hits to the first and last ones, with counts by file; of files alone, by folder."""
    counts: Counter[str] = Counter()
    clean = _split_lines(redacted(text).text) if "PRIVATE KEY" in text else lines
    for line in clean:
        if hit := _HIT.match(line):
            counts[hit[1]] += 1
        elif counted := _COUNTED.match(line):
            counts[counted[1]] += int(counted[2])
    what = "hits by file"
    if not counts:
        what = "files by folder"
        counts.update(line.rpartition("/")[0] or "." for line in clean if line.strip())
    table, left = [f"[{what}: {counts.total():,} in {len(counts):,}]"], counts.total()
    space = room // 3
    for name, count in counts.most_common(_FILES):
        row = f"{count:7,}  {abridged(redacted(name[:_LONG_LINE]).text, _LONGEST)}"
        space -= len(row) + 1
        if space < 0:
            break
        table.append(row)
        left -= count
    if left:
        table.append(f"{left:7,}  in {len(counts) - len(table) + 1:,} more")
    told = "\n".join(table)
    short = _around_gaps(lines, text, _choose_ends, room - len(told) - 1)
    return short._replace(text=f"{short.text}\n{told}")


# -- pages --------------------------------------------------------------------------------------------------

# The parser of the standard library takes minutes for some texts of 100 KB (`<a ` again and again). What is a
# tag here goes to the next angle bracket, so that each character is read once.
_TAG = regex(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})(?![A-Za-z0-9])[^<>]*>|<[!?/][^<>]*>")
_TITLE = regex(r"(?i)<title(?:\s[^<>]{0,200})?>([^<>]{0,1000})</title")
_IS_PAGE = regex(r"(?i)<(?:!doctype\s+html|html|head|body|title|div|p|table|article|main)[\s>]")
_BLOCKS = frozenset(
    re.findall(
        r"\S+",
        "address article aside blockquote br dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header hr"
        " html li main nav ol p pre section table td th title tr ul",
    )
)
_SILENT = ("script", "style", "noscript", "template", "svg", "title")


def _text_of_page(text: str) -> str:
    """Return the title of a page and its text; empty for what is no page."""
    if not _IS_PAGE.search(text, 0, 10_000):
        return ""
    text = text[:_MOST_HTML]
    title = _TITLE.search(text)
    told = [" ".join(html.unescape(title[1]).split())] if title else []
    body = _TAG.sub(lambda tag: "\n" if (tag[2] or "").lower() in _BLOCKS else " ", _visible_html(text))
    paragraphs = (" ".join(line.split()) for line in html.unescape(body).splitlines())
    told += [line for line in paragraphs if line]
    return "\n".join(told)


def _visible_html(text: str) -> str:
    """Return a page without its comments, and without elements whose text nobody sees."""
    parts, at = [], 0
    lower = text.lower() if len(text.lower()) == len(text) else text
    for start, end in _hidden_spans(lower):
        parts.append(text[at:start])
        at = end
    return " ".join([*parts, text[at:]])


def _hidden_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where comments and silent elements begin and end; one that does not end goes on to the end."""
    at = 0
    opening = re.compile(rf"<(!--|(?:{'|'.join(_SILENT)})(?=[\s>]))")
    while found := opening.search(text, at):
        closing = "--" if found[1] == "!--" else f"</{found[1]}"
        end = text.find(closing, found.end())
        end = text.find(">", end) if end >= 0 else end
        at = len(text) if end < 0 else end + 1
        yield found.start(), at
