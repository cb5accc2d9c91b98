"""The filters that templates have beside Jinja's: values into Markdown and YAML that nothing can break."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import Any

from mdmem.document import anchor, yaml_edit
from mdmem.document.edit import TextEdit, splice
from mdmem.document.markdown.blocks import Heading, scan
from mdmem.document.text.lines import with_newline
from mdmem.document.text.regex import regex

_LONGEST_KEY = 1000  # YAML allows 1,024 characters, quotes included, for a key in one line
_DEEPEST_HEADING = 6
_LEADING_MARKS = regex(r"\A(?:#+\s*)+")
_CLOSING_MARKS = regex(r"(?:\A|(?<= ))(#+)\Z")
_BLOCK_ID = regex(r"(?:\A|(?<= ))\^(?=[A-Za-z0-9-]+\Z)")
_BLANK_START = regex(r"\A(?:[ \t]*\n)+")
_ATX = regex(r" {0,3}(?P<marks>#{1,6})(?=[ \t]|$)", re.MULTILINE)
_FENCE = regex(r" {0,3}(`{3,}|~{3,})")
_HTML_ENDS = (">", "-->", "?>", "]]>", "</pre>")  # CommonMark 0.31.2, section 4.6, kinds 1 to 5
# Plain directives only: C libraries take a width after `%`, and write that many characters.
_DIRECTIVES = regex(r"(?:[^%]|%[-_0^#]?[A-Za-z%])*+", re.DOTALL)


def to_yaml(value: Any) -> str:
    """Return a value as YAML in one line that readers of YAML 1.1 and 1.2 take for the same value.

    ISO dates stand plain, as people write them; a reader of YAML 1.1 may take them for dates.

    Raises:
        TypeError: a value, or a key, that YAML frontmatter has no form for.
        ValueError: a key that is too long.
    """
    return yaml_edit.inline(_plain_value(value))


def _plain_value(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_check_key(key): _plain_value(part) for key, part in value.items()}
    if isinstance(value, Iterable):
        return [_plain_value(part) for part in value]
    raise TypeError(f"a {type(value).__name__} cannot be written as YAML")


def _check_key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key must be a text, not {key!r}")
    if len(key) > _LONGEST_KEY:
        raise ValueError(f"a key may have {_LONGEST_KEY:,} characters, not {len(key):,}")
    return key


def line(value: Any) -> str:
    """Return a text in one line: every run of whitespace becomes one space."""
    return " ".join(str(value).split())


def heading(value: Any) -> str:
    """Return a text that is safe behind the marks of a heading, and stays what it says.

    It is one line, without leading `#`, and escaped. It is `Untitled` if nothing is left.
    """
    return escaped(_LEADING_MARKS.sub("", line(value))) or "Untitled"


def escaped(title: str) -> str:
    """Return a title with a backslash before a closing run of `#` and before a block id at its end.

    Markdown and mdmem would take them for marks (CommonMark 0.31.2, section 4.2).
    """
    return _BLOCK_ID.sub(r"\\^", _CLOSING_MARKS.sub(r"\\\1", title))


def under(value: Any, level: int) -> str:
    """Move the headings of a text below a heading of `level` (0 to 5) that stands before the text.

    If one heading of the text is of that level or above, all its headings become deeper by the same number of
    levels. An open fence or HTML block is closed. Blank lines around the text are removed.
    """
    text = _BLANK_START.sub("", with_newline(str(value), "\n")).rstrip()
    found = scan(text)
    shift = level + 1 - min((h.level for h in found.headings), default=level + 1)
    if shift > 0:
        text = splice(text, [_deepen_heading(text, part, shift) for part in found.headings])
    return _close_blocks(text)


def _deepen_heading(text: str, part: Heading, shift: int) -> TextEdit:
    marks = "#" * min(part.level + shift, _DEEPEST_HEADING)
    atx = _ATX.match(text, part.span.start)
    if atx:
        return TextEdit(atx.start("marks"), atx.end("marks"), marks)
    title = _CLOSING_MARKS.sub(r"\\\1", line(part.title))
    end = "\n" if text.endswith("\n", *part.span) else ""
    return TextEdit(*part.span, f"{marks} {title}".rstrip() + end)


def _close_blocks(text: str) -> str:
    if not text or _is_closed(text):
        return text
    fences = scan(text).fences
    mark = _FENCE.match(text, fences[-1].start) if fences else None
    ends = [mark[1], *_HTML_ENDS] if mark else _HTML_ENDS
    return next((closed for end in ends if _is_closed(closed := f"{text}\n{end}")), text)


def _is_closed(text: str) -> bool:
    after = f"{text}\n\n"
    return any(h.span.start == len(after) for h in scan(f"{after}# after").headings)


def slug(value: Any) -> str:
    """Return a text as GitHub writes a heading's anchor: lower case, hyphens for spaces, no punctuation."""
    return anchor.slug(line(value))


def listed(value: Any) -> list[Any]:
    """Return a list as it is; a text split at its commas; nothing as an empty list."""
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, Iterable) else [value]


def format_date(value: Any, layout: str = "%Y-%m-%d") -> str:
    """Return a date, or its ISO text, by the directives of `strftime`."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, date):
        raise TypeError(f"a {type(value).__name__} is not a date")
    return strftime(value, layout)


def format_time(value: Any, layout: str = "%H:%M") -> str:
    """Return a time of day, or its ISO text, by the directives of `strftime`."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value) if "-" in value else time.fromisoformat(value)
    if not isinstance(value, datetime | time):
        raise TypeError(f"a {type(value).__name__} has no time of day")
    return strftime(value, layout)


def strftime(value: date | time, layout: str) -> str:
    """`value` by `layout`."""
    if not _DIRECTIVES.fullmatch(layout):
        raise ValueError(f"the layout {layout[:40]!r} has more than directives such as %Y")
    return value.strftime(layout)
