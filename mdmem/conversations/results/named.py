"""Find the files, line ranges, URLs, functions, classes and variables that a tool's output names.

An output is untrusted and may be of any length: every pattern runs in linear time, and only the first and the
last 8,000 characters are searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document import secret
from mdmem.document.markdown import citation, inline
from mdmem.document.markdown.blocks import Scan
from mdmem.document.text.lines import Lines
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import in_line
from mdmem.index.code.symbols import CLASS, FUNCTION, VARIABLE

# As `mdmem.index.links.references` calls them, which takes long to import.
URL, FILE, LINES = "url", "file_path", "line_range"
TYPES = (FILE, URL, CLASS, FUNCTION, VARIABLE, LINES)
"""The types of references, the most telling first."""
MOST, LONGEST, CONTEXT = 100, 500, 120
"""How many references of one output are kept; characters of a name, and of the line that it stands in."""
COLOUR = regex(r"\x1b\[[0-9;:]{0,30}[A-Za-z]")
"""What colours a terminal; its last letter is no part of the word behind it."""

_END = 8_000  # characters searched at the beginning and at the end
_TRAILING = ".,;:!?'\"`)]}>*_"
_ROOTS = regex(r"~?/(?:bin|boot|etc|home|lib|lib64|mnt|opt|private|root|run|sbin|srv|tmp|usr|var|Users)/")
# The beginning of a line of code, behind what Read or Grep put before it: `12→`, `  12:`, `src/app.py:12:`.
_BEGIN = (
    r"(?m)^(?:[^\s:]{1,300}:[0-9]{1,9}[:-]|[ \t]{0,20}[0-9]{1,9}(?:\u2192|\t|[ \t]?[|:]))?[ \t]*+"
    r"(?:(?:export|default|declare|public|private|protected|internal|static|abstract|final|sealed|async|unsafe"
    r"|extern|pub(?:\([a-z: ]{1,40}\))?|inline|virtual|override|data|open)[ \t]{1,20}){0,6}"
)
_NOT_PROSE = r"(?!(?:of|is|has|in|and|or|for|to|that|which|was|are|the|a|an|with|from|not)\b)"
_NAME, _CAPITAL = rf"{_NOT_PROSE}([^\W\d][\w$]{{0,199}}+)", r"([A-Z][\w$]{0,199}+)"
_DEF = r"(?:def|func(?:tion)?\*?|fn|fun|sub|macro_rules!)[ \t]{1,20}(?:\([^()\n]{0,100}\)[ \t]{0,20})?"
_CALL = r"(?=[(<\[{]|[ \t]{1,20}(?:{|\([^()\n]{0,200}\)[ \t]{0,20}[{:=-]))"
_TYPE = r"(?:class|interface|struct|enum|trait|record|protocol|namespace)[ \t]{1,20}"
_BODY = r"(?=[ \t]{0,20}(?:[:({<\[;]|extends\b|implements\b|where\b))"
_ALIAS = rf"(?:type|typedef)[ \t]{{1,20}}{_NAME}(?=[ \t]{{1,20}}(?:struct|interface|=))"
_IMPL = rf"impl(?:<[^<>\n]{{0,100}}>)?[ \t]{{1,20}}{_NAME}"
_LET = rf"(?:const|let|var|val)[ \t]{{1,20}}(?:mut[ \t]{{1,20}})?{_NAME}(?=[ \t]{{0,20}}[:=])"
_CONSTANT = r"([A-Z_][A-Z0-9_]{1,199}+)(?=[ \t]{0,20}(?::[^=\n]{0,80})?=(?!=))"
_NUMBER = "([1-9][0-9]{0,8}+)"
_WINDOWS = r"[A-Za-z]:[\\/](?:[^\\/:*?\"<>|\s]{1,255}[\\/]){0,60}[^\\/:*?\"<>|\s]{0,255}"
_DEFINITIONS = (
    (FUNCTION, regex(rf"{_BEGIN}{_DEF}{_NAME}{_CALL}")),
    (CLASS, regex(rf"{_BEGIN}(?:{_TYPE}(?:{_NAME}{_BODY}|{_CAPITAL}(?=[ \t]*+$))|{_ALIAS}|{_IMPL})")),
)
# Each row: a type and a pattern. The last group is the name; for paths the groups are path, first line and
# last line. Bare paths come last. Within a line, a definition has to look unlike prose.
_TABLE = (
    (FUNCTION, regex(r'File "[^"\n]{1,500}", line [0-9]{1,9}, in ([^\W\d]\w{0,199})')),
    (FILE, regex(r'File "([^"\n]{1,500})", line ([0-9]{1,9})')),
    (FILE, regex(rf"(?<![^\W_])({_WINDOWS})")),
    *_DEFINITIONS,
    (VARIABLE, regex(rf"{_BEGIN}(?:{_LET}|{_CONSTANT})")),
    (FUNCTION, regex(rf"\b{_DEF}{_NAME}(?=[(<])")),
    (CLASS, regex(rf"\b{_TYPE}{_CAPITAL}(?=[ \t]?[({{:])")),
    (LINES, regex(rf"(?<![\w./~@$+%\\:-])([\w.@+$%~/-]++)(?:(?::|#L){_NUMBER}(?:-L?{_NUMBER})?)?")),
)  # fmt: skip


class NamedReference(NamedTuple):
    """A path, a path with `#L10-L23`, a URL or a name in an output, and a line that has it."""

    type: str
    value: str
    context: str = ""


class Named(NamedTuple):
    """References without repeats, how many more there are, and how many characters were not looked at."""

    references: tuple[NamedReference, ...]
    left_out: int = 0
    unread: int = 0


def named(text: str, most: int = MOST) -> Named:
    """Find what the output of a tool names."""
    unread = max(0, len(text) - 2 * _END)
    if unread:  # without the words that are cut
        text = "\n".join((*text[:_END].rsplit(None, 1)[:1], *text[-_END:].split(None, 1)[1:]))
    text = COLOUR.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    places: dict[str, dict[str, int]] = {kind: {} for kind in TYPES}
    for kind, name, start in _names_in(text):
        value = name.rstrip(_TRAILING) if kind in {FILE, URL} else name
        if value and len(value) <= LONGEST:
            places[kind].setdefault(value, start)
    found = [(kind, value, start) for kind, values in places.items() for value, start in values.items()]
    clean = secret.masked if secret.find(text) else str
    references = []
    for kind, value, start in found[:most]:
        line = text[max(0, start - CONTEXT) : start].rpartition("\n")[2] + text[start : start + LONGEST]
        context = in_line(clean(line.partition("\n")[0])[:CONTEXT])
        references.append(NamedReference(kind, clean(value), context))
    return Named(tuple(dict.fromkeys(references)), len(found) - len(references), unread)


def _names_in(text: str) -> Iterator[tuple[str, str, int]]:
    words = "\n".join(word for word in text.split() if "://" in word or "www." in word)
    scanned = inline.scan(words, Scan(texts=(Span(0, len(words)),)), Lines(words), len(words) + 1)
    urls = sorted({each.url for each in scanned.urls}, key=len, reverse=True)
    yield from sorted(((URL, url, text.find(url)) for url in urls), key=lambda each: each[2])
    for url in urls:
        text = text.replace(url, " " * len(url))
    for kind, pattern in _TABLE:
        for match in pattern.finditer(text):
            if kind not in {FILE, LINES}:
                yield kind, match[match.lastindex or 0], match.start()
            elif kind == FILE or _looks_like_file(match[1].rstrip(_TRAILING)):
                path, first, last = (*match.groups(""), "", "")[:3]
                yield FILE, path, match.start()
                if first:
                    lines = f"{first}-L{last}" if last and last != first else first
                    yield LINES, f"{path}#L{lines}", match.start()
        if kind == FILE:
            text = pattern.sub(lambda match: " " * len(match[0]), text)


def _looks_like_file(path: str) -> bool:
    if not path.startswith(("/", "~")):
        return citation.in_code(path) is not None
    name = path.rpartition("/")[2]
    has_suffix = "." in name.strip(".") and any(map(str.isalpha, name))
    return not path.startswith(("/dev/", "/proc/", "/sys/")) and bool(has_suffix or _ROOTS.match(path))


def defines(line: str) -> bool:
    """Return whether a line of code, with or without its number before it, defines a function or a type."""
    return any(pattern.match(line[:LONGEST]) for _, pattern in _DEFINITIONS)
