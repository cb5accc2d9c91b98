"""Globs over paths, with exactly the meaning that ripgrep gives to `--glob`: `*.py` fits at any depth.

So `ls`, `replace` and rules choose the same files as `grep`. The rules are those of gitignore, as ripgrep
14.1 reads them (https://docs.rs/globset/0.4/globset/#syntax): a glob with a slash is matched from the top,
one without at any depth; `**` spans folders, `{a,b}` is either (not nested), a slash at the end means folders
only. They compare bytes: `?` is one byte of UTF-8. A `}` that closes nothing, which ripgrep 14.1 passes over
as if it were not there, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from mdmem.document.arguments import texts_of
from mdmem.document.text.regex import regex, shortened
from mdmem.errors import PatternInvalid

_COMMA = regex(r",(?![^{]{0,1000}\})")  # not one that parts the choices of `{a,b}`
_REMEDY = "fix the glob; a backslash makes a special character stand for itself"
_ANY = b"[^/]"
_STAR = b"[^/]*"
_AT_ANY_DEPTH = b"(?:/?|.*/)"
_BETWEEN = b"(?:/|/.*/)"
_BELOW = b"/.*"
_WILD = {"*": _STAR, "?": _ANY}
_TOKEN = regex(r"\*\*|\[(?P<negation>[!^]|(?![!^]))(?P<members>.[^\]]*)\]|\\.|.", re.DOTALL)
_MEMBER = regex(".(?:-.)*", re.DOTALL)  # of a class: a character, or a range, which may go on
_UNCLOSED = {"[": "a [ is never closed", "\\": "a backslash stands at the end"}
_LOOPS = (_STAR, _AT_ANY_DEPTH, _BETWEEN, _BELOW)
_MOST_CHARACTERS = 4096
_MOST_LOOPS = 2  # a regular expression tries the power of a path's length, one for each


class _Either(NamedTuple):
    choices: tuple[Sequence[_Part], ...]


_Part = bytes | _Either


class _Glob(NamedTuple):
    fits: Callable[[bytes], object]
    excludes: bool
    folders_only: bool


def globs_of(value: Any) -> tuple[str, ...]:
    """Return the globs that a field gives: a list of them, or a text with commas between them."""
    parts = _COMMA.split(value) if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else []
    return tuple(part.strip() for part in parts if isinstance(part, str) and part.strip())


def escaped(path: str) -> str:
    """Return a glob that matches a path and nothing else; a part `*` stands for any one name."""
    parts = ("".join(f"\\{c}" if c in "\\*?[]{}!#" else c for c in part) for part in path.split("/"))
    return "/".join("*" if part == "\\*" else part for part in parts)


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return whether a path with `/` between its parts fits `globs`; without globs all fit.

    The last glob that fits decides: one that begins with `!` leaves the path out, and with it all below it.
    Where there is a glob without `!`, what none fits is left out.

    Raises:
        PatternInvalid: a glob that ripgrep would refuse.
    """
    if not globs:
        return lambda _: True
    compiled = [found for text in texts_of(globs, "globs") if (found := _compile_glob(text))]
    narrows = not all(one.excludes for one in compiled)
    excludes = any(one.excludes for one in compiled)

    def fits(path: str) -> bool:
        data = _encode_text(path)
        if excludes:
            *folders, _ = accumulate(data.split(b"/"), lambda above, name: above + b"/" + name)
            if any(_last_match(compiled, folder, is_folder=True) is False for folder in folders):
                return False
        found = _last_match(compiled, data, is_folder=False)
        return not narrows if found is None else found

    return fits


def _last_match(globs: Sequence[_Glob], path: bytes, *, is_folder: bool) -> bool | None:
    """Return whether the last glob that fits takes a path, or leaves it out; None if none fits."""
    for one in reversed(globs):
        if (is_folder or not one.folders_only) and one.fits(path):
            return not one.excludes
    return None


def _compile_glob(text: str) -> _Glob | None:
    """Compile a glob; return None for blank text, which ripgrep passes over."""
    glob = text if text.endswith("\\ ") else text.rstrip()
    if not glob:
        return None
    if len(glob) > _MOST_CHARACTERS:
        reason = f"it has {len(glob):,} characters; the most is {_MOST_CHARACTERS:,}"
        raise PatternInvalid(pattern=shortened(glob), reason=reason, remedy=_REMEDY)
    excludes = glob.startswith("!")
    escaped = glob.startswith(("\\!", "\\#"))
    if excludes or escaped:
        glob = glob[1:]
    anchored = glob.startswith("/")
    if not escaped:
        glob = glob.removeprefix("/")
    folders_only = glob.endswith("/")
    if folders_only:
        glob = glob[:-1].removesuffix("\\")
    if not anchored and "/" not in glob and glob != "**":
        glob = f"**/{glob}"
    if glob.endswith("/**"):
        glob += "/*"  # what is in the folder, not the folder itself
    try:
        fits = _make_matcher(_Translation(glob, text).parts())
    except re.error as error:  # the bytes of a range of letters beyond ASCII, which may run backwards
        raise PatternInvalid(pattern=text, reason=str(error), remedy=_REMEDY) from None
    return _Glob(fits, excludes, folders_only)


def _make_matcher(parts: Sequence[_Part]) -> Callable[[bytes], object]:
    if list(parts) == [_AT_ANY_DEPTH]:
        parts = [b".*"]
    pattern = regex(b"".join(map(_regex_of, parts)) + rb"\Z", re.DOTALL)
    if _count_loops(parts) <= _MOST_LOOPS:
        return pattern.match
    return lambda path: len(path) in _reachable_places(parts, path, {0})


def _regex_of(part: _Part) -> bytes:
    if isinstance(part, bytes):
        return part
    return b"(?:" + b"|".join(b"".join(map(_regex_of, parts)) for parts in part.choices) + b")"


def _count_loops(parts: Sequence[_Part]) -> int:
    return sum(
        part in _LOOPS if isinstance(part, bytes) else 1 + sum(map(_count_loops, part.choices))
        for part in parts
    )


def _reachable_places(parts: Sequence[_Part], path: bytes, places: set[int]) -> set[int]:
    """Return where parts of a glob can end in a path, if they begin at one of these places."""
    for part in parts:
        if not places:
            break
        if isinstance(part, _Either):
            places = {end for choice in part.choices for end in _reachable_places(choice, path, places)}
            continue
        begun = {at + 1 for at in places if path.startswith(b"/", at)}
        if part == _STAR:
            places = _to_next_slash(path, places)
        elif part == _AT_ANY_DEPTH:
            places = places | begun | _behind_slashes(path, min(places))
        elif part == _BETWEEN:
            places = begun | _behind_slashes(path, min(begun, default=len(path)))
        elif part == _BELOW:
            places = set(range(min(begun, default=len(path) + 1), len(path) + 1))
        else:
            match = regex(part, re.DOTALL).match
            places = {found.end() for at in places if (found := match(path, at))}
    return places


def _to_next_slash(path: bytes, places: set[int]) -> set[int]:
    reached: set[int] = set()
    for at in sorted(places):
        if at not in reached:
            end = path.find(b"/", at)
            reached.update(range(at, (len(path) if end == -1 else end) + 1))
    return reached


def _behind_slashes(path: bytes, start: int) -> set[int]:
    return {at + 1 for at in range(start, len(path)) if path.startswith(b"/", at)}


class _Translation:
    def __init__(self, glob: str, written: str) -> None:
        self._glob = glob
        self._written = written
        self._parts: list[_Part] = []  # of the innermost sequence: the glob itself, or one of an alternation
        self._outer: list[_Part] | None = None  # what stands before the open `{`
        self._choices: list[list[_Part]] = []

    def parts(self) -> list[_Part]:
        at = 0
        while token := _TOKEN.match(self._glob, at):
            at = self._add_stars(token) if token[0] == "**" else self._add_token(token)
        if self._outer is not None:
            raise self._make_error("a { is never closed")
        return self._parts

    def _make_error(self, reason: str) -> PatternInvalid:
        return PatternInvalid(pattern=self._written, reason=reason, remedy=_REMEDY)

    def _add_token(self, token: re.Match[str]) -> int:
        """Add what a token stands for; return where it ends."""
        sign = token[0]
        if sign in _UNCLOSED:
            raise self._make_error(_UNCLOSED[sign])
        if sign == "{":
            self._open_choices()
        elif sign == "}":
            self._close_choices()
        elif sign == "," and self._outer is not None:
            self._choices.append(self._parts)
            self._parts = []
        elif token["members"]:
            members = b"".join(map(_byte_range, self._read_ranges(token["members"])))
            self._parts.append((b"[^" if token["negation"] else b"[") + members + b"]")
        else:
            self._parts.append(_WILD.get(sign) or re.escape(_encode_text(sign[-1])))
        return token.end()

    def _add_stars(self, token: re.Match[str]) -> int:
        """Add `**`, which takes in the slashes around it; return where it ends."""
        before, end = self._glob[token.start() - 1 : token.start()], token.end()
        after = self._glob[end : end + 1]
        if not self._parts:
            self._parts += [_AT_ANY_DEPTH] if after in {"", "/"} else [_STAR, _STAR]
            return end + (after == "/")
        begins = before == "/" or (self._outer is not None and before in {",", "{"})
        closes = after == "" or (self._outer is not None and after in {",", "}"})
        if not begins or not (closes or after == "/"):
            self._parts += [_STAR, _STAR]
            return end
        above = self._parts.pop()  # the slash, which `**` takes in; `**/**` is `**`
        self._parts.append(above if above in {_AT_ANY_DEPTH, _BELOW} else _BELOW if closes else _BETWEEN)
        return end if closes else end + 1

    def _read_ranges(self, members: str) -> list[tuple[str, str]]:
        ranges: list[tuple[str, str]] = []
        for member in _MEMBER.finditer(members):
            first, least = member[0][0], min(member[0][::2])
            if least < first:
                raise self._make_error(f"the range {first}-{least} runs backwards")
            ranges.append((first, member[0][-1]))
        return ranges

    def _open_choices(self) -> None:
        if self._outer is not None:
            raise self._make_error("a { stands inside another one")
        self._outer, self._parts = self._parts, []

    def _close_choices(self) -> None:
        if self._outer is None:
            raise self._make_error("a } closes nothing")
        # ripgrep drops an empty choice: `{,x}a` is `xa` alone. What is left empty is a part all the same.
        choices = tuple(parts for parts in (*self._choices, self._parts) if parts and parts != [b""])
        self._parts = [*self._outer, _Either(choices) if choices else b""]
        self._outer, self._choices = None, []


def _byte_range(ends: tuple[str, str]) -> bytes:
    first, last = (b"".join(b"\\x%02x" % byte for byte in _encode_text(end)) for end in ends)
    return first if first == last else first + b"-" + last


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
