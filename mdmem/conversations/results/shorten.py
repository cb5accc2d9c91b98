"""The short form of a tool's output: whole lines that say most of it, and how many lines are left out where.

Which lines these are depends on the tool: definitions for a file that was read, counts by file for a search,
errors for every other one. A text is never made longer, and no character is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from mdmem.conversations.results.named import COLOUR, defines
from mdmem.document import secret
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import abridged
from mdmem.errors import plural

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
_LONG_LINE = 40_000  # characters of a line; of a longer one only the ends are searched for secrets

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
_READS = regex(r"(?<![a-z])(?:read|view)(?:_(?:text_|many_|multiple_)?files?)?\Z")  # but `read_logs` does not
_SEARCHES = regex(r"(?<![a-z])(?:grep|glob)(?:_search)?\Z")
_HIT = regex(r"((?:[A-Za-z]:)?[^:\r\n]{1,500}):[0-9]{1,9}[:-]")
_COUNTED = regex(r"((?:[A-Za-z]:)?[^:\r\n]{1,500}):([0-9]{1,9})\Z")


class Shortened(NamedTuple):
    """A short form, its gaps (first and last line, 1-based), and the kinds of secrets that it lost."""

    text: str
    gaps: tuple[tuple[int, int], ...] = ()
    secrets: tuple[str, ...] = ()


def shortened(tool: str, text: str, most: int = MOST) -> Shortened:
    """Shorten the output of a tool, and remove secrets of known formats.

    Args:
        tool: its name, in any case, with or without what a server puts before it. `Read`, `view` and
            `read_file` read files, `Grep` and `Glob` search; what any other one has printed may be a log.
        most: characters of the short form, about; at least 200.
    """
    room = min(max(most, _LEAST), len(text) // 2)
    # A key has many lines. Only some of them are shown, and a line alone would not tell that it is one.
    clean = redacted(text) if "PRIVATE KEY" in text else Shortened(text)
    if _SEARCHES.search(tool.lower()):
        short = _shorten_hits(clean.text, room)
    else:
        choose = _choose_definitions if _READS.search(tool.lower()) else _choose_errors
        short = _around_gaps(clean.text, choose, room)
    secrets = tuple(dict.fromkeys(clean.secrets + short.secrets))
    return short._replace(secrets=secrets) if len(short.text) < len(text) else redacted(text)


def redacted(text: str) -> Shortened:
    """Return a text as it is, but for the secrets of known formats in it, coloured ones too."""
    plain = COLOUR.sub(lambda found: " " * len(found[0]), text) if "\x1b" in text else text
    secrets = secret.find(plain)
    for each in reversed(secrets):
        start, end = each.span
        lines = LINE_END.sub("\n", text[start:end]).split("\n")  # each line stays one line
        words = (each.word if len(each.word) <= len(line) else "*" * len(line) for line in lines)
        text = text[:start] + "\n".join(words) + text[end:]
    return Shortened(text, secrets=tuple(dict.fromkeys(each.kind for each in secrets)))


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
    """Yield the numbers of the first and last lines of an output, and of the lines around errors."""
    errors = _lines_with_errors(lines, text)
    if errors:
        yield from _first_and_last(len(lines), _SIDE // 3, _SIDE)
        yield from errors
        for distance in range(1, _AROUND + 1):
            for error in errors:
                yield from (error + distance, error - distance)
    yield from _choose_ends(lines, text)


def _lines_with_errors(lines: Sequence[str], text: str) -> list[int]:
    # A capital is found, or not, fifty times as fast as a word, and a word from the end twice as fast.
    words = [word for word in _ERROR_WORDS if word[0] in text and text.rfind(word) >= 0]
    suspects = sorted({number for word in words for number, line in enumerate(lines) if word in line})
    found: dict[int, None] = {}
    for numbers in (suspects, reversed(suspects)):
        telling = (number for number in numbers if _ERROR.search(lines[number]))
        found.update(dict.fromkeys(islice(telling, _ERRORS)))
    return list(found)


Chooser = Callable[[Sequence[str], str], Iterator[int]]


# -- putting them together ----------------------------------------------------------------------------------


def _around_gaps(text: str, choose: Chooser, room: int) -> Shortened:
    """Return the lines that are chosen while they fit, in order, with what is left out between them."""
    lines = _split_lines(text)
    share = room // max(1, len(lines)) - _MARK - 1
    longest = _LONGEST if len(lines) > _FEW else max(_LONGEST, share // _A_TOKEN)
    taken: dict[int, str] = {}
    kinds: dict[str, None] = {}
    for number in choose(lines, text):
        if number in taken or not 0 <= number < len(lines):
            continue
        clean = _redact_line(lines[number])
        line = abridged(clean.text, longest)
        cost = len(line) + 1 + (0 if number - 1 in taken or number + 1 in taken else _MARK)
        if cost <= room:
            room -= cost
            taken[number] = line
            kinds |= dict.fromkeys(clean.secrets)
    return _join_lines(lines, taken)._replace(secrets=tuple(kinds))


def _redact_line(line: str) -> Shortened:
    """Return a line without secrets. In the middle of a very long one, which is not shown, none is sought."""
    if len(line) <= _LONG_LINE:
        return redacted(line)
    half = _LONG_LINE // 2
    head, tail = redacted(line[:half]), redacted(line[-half:])
    return Shortened(head.text + line[half:-half] + tail.text, secrets=(*head.secrets, *tail.secrets))


def _join_lines(lines: Sequence[str], taken: dict[int, str]) -> Shortened:
    parts: list[str] = []
    gaps: list[tuple[int, int]] = []
    at = 0
    for number in (*sorted(taken), len(lines)):
        if number > at:
            gaps.append((at + 1, number))
            parts.append(f"[{plural(number - at, 'line')} left out: {at + 1}-{number}]")
        if number in taken:
            parts.append(taken[number])
        at = number + 1
    return Shortened("\n".join(parts), tuple(gaps))


# -- searches -----------------------------------------------------------------------------------------------


def _shorten_hits(text: str, room: int) -> Shortened:
    """Shorten hits to the first and last ones, with counts by file; of files alone, by folder."""
    counts: Counter[str] = Counter()
    lines = _split_lines(text)
    for line in lines:
        if hit := _HIT.match(line):
            counts[hit[1]] += 1
        elif counted := _COUNTED.match(line):
            counts[counted[1]] += int(counted[2])
    what = "hits by file"
    if not counts:
        what = "files by folder"
        counts.update(line.rpartition("/")[0] or "." for line in lines if line.strip())
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
    short = _around_gaps(text, _choose_ends, room - sum(len(row) + 1 for row in table))
    return short._replace(text="\n".join([short.text, *table]))
