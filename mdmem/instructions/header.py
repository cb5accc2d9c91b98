"""The header of a rule: its fields, and the globs that say which files it is about."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import MdmemError, PatternInvalid
from mdmem.text.document import parse_text
from mdmem.text.frontmatter import locate
from mdmem.text.globs import matcher
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What Claude Code expands the braces of one rule to at most (its documentation, 2026-09).
_MOST_PATTERNS = 1_000
_MOST_PATTERN_BYTES = 4 * 1024 * 1024
_COMMA = regex(r",(?![^{]{0,1000}\})")  # not one that parts the choices of `{a,b}`
_FIELD = regex(r"([A-Za-z]\w*):[ \t]*(.*)")
_ITEM = regex(r"[ \t]*-[ \t]+(.*)")
_BRACES = regex(r"\{([^{}]*)\}")


class Header(NamedTuple):
    """The fields of a rule's frontmatter, and the text behind it."""

    fields: dict[str, Any]
    body: str


def read(text: str) -> Header:
    """The header of a rule; one that is no YAML, as `globs: *.py` is none, is read line by line."""
    span, inner = locate(text)
    try:
        frontmatter = parse_text("rule.md", text).frontmatter
    except MdmemError:
        return Header({}, text)
    if span.start == span.end:
        return Header({}, text[span.end :])
    sound = frontmatter.present and not frontmatter.flaws
    return Header(frontmatter.values if sound else _by_line(text[slice(*inner)]), text[span.end :])


def _by_line(written: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    last = ""
    for line in LINE_END.split(written):
        if field := _FIELD.fullmatch(line.rstrip()):
            last, value = field[1], _unquoted(field[2])
            fields[last] = {"true": True, "false": False, "": None}.get(value, value)
        elif (item := _ITEM.fullmatch(line.rstrip())) and last:
            items = fields[last] if isinstance(fields[last], list) else []
            fields[last] = [*items, _unquoted(item[1])]
    return fields


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def globs(value: Any) -> tuple[str, ...]:
    """The globs that a field gives: a list of them, or a text with commas between them."""
    parts = _COMMA.split(value) if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else []
    return tuple(part.strip() for part in parts if isinstance(part, str) and part.strip())


def braces(glob: str) -> Iterator[str]:
    """The globs without braces that one with braces stands for."""
    pending = [glob]
    while pending:
        one = pending.pop()
        group = _BRACES.search(one)
        if group is None:
            yield one
            continue
        before, after = one[: group.start()], one[group.end() :]
        pending += [before + choice + after for choice in reversed(group[1].split(","))]


def patterns(written: Sequence[str]) -> tuple[str, ...] | None:
    """Globs with their braces expanded; None where that makes more of them than a tool takes."""
    expanded: list[str] = []
    size = 0
    for glob in written:
        for one in braces(glob):
            size += len(one)
            if len(expanded) == _MOST_PATTERNS or size > _MOST_PATTERN_BYTES:
                return None
            expanded.append(one)
    return tuple(expanded)


def matching(written: Sequence[str], path: str, *, anchored: bool = False) -> str | None:
    """The first of some globs that fits a path; None where none does.

    Args:
        written: globs; one that is malformed fits nothing.
        path: from the folder that they are seen from.
        anchored: `*.py` means files of that folder only, not at any depth.
    """
    for glob in written:
        for one in patterns([glob]) or ():
            if _fits(_anchored(one) if anchored else one.removeprefix("./"), path):
                return glob
    return None


def malformed(written: Sequence[str]) -> list[str]:
    """The globs that can fit nothing, because they are malformed or stand for too many patterns."""
    if patterns(written) is None:
        return list(written)
    return [glob for glob in written if not any(map(_compiled, braces(glob)))]


def _anchored(glob: str) -> str:
    return "/" + glob.removeprefix("./").removeprefix("/")


def _fits(glob: str, path: str) -> bool:
    # Alone, a glob that leaves files out would take all others.
    fits = None if glob.startswith("!") else _compiled(glob)
    return fits is not None and fits(path)


@lru_cache(maxsize=4096)
def _compiled(glob: str) -> Any:
    try:
        return matcher([glob]) if glob.strip() else None
    except PatternInvalid:
        return None
