"""Globs over paths, with exactly the meaning that ripgrep gives to `--glob`: `*.py` fits at any depth.

So `ls`, `replace` and rules choose the same files as `grep`. The rules are those of gitignore, as ripgrep
14.1 reads them (https://docs.rs/globset/0.4/globset/#syntax): a glob with a slash is matched from the top,
one without at any depth; `**` spans folders, `{a,b}` is either (not nested), a slash at the end means folders
only. They compare bytes: `?` is one byte of UTF-8. A `}` that closes nothing, which ripgrep 14.1 passes over
as if it were not there, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from mdmem.errors import PatternInvalid

_REMEDY = "mend the glob; a backslash makes a special character stand for itself"
_ANY = b"[^/]"
_STAR = b"[^/]*"
_AT_ANY_DEPTH = b"(?:/?|.*/)"
_BETWEEN = b"(?:/|/.*/)"
_BELOW = b"/.*"


class _Glob(NamedTuple):
    pattern: re.Pattern[bytes]
    excludes: bool
    folders_only: bool


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path with `/` between its parts fits `globs`; without globs all fit.

    The last glob that fits decides: one that begins with `!` leaves the path out, and with it all below it.
    Where there is a glob without `!`, what none fits is left out.

    Raises:
        PatternInvalid: a glob that ripgrep would refuse.
    """
    if not globs:
        return lambda _: True
    compiled = [found for text in globs if (found := _compiled(text))]
    narrows = not all(one.excludes for one in compiled)

    def fits(path: str) -> bool:
        data = _bytes(path)
        *folders, _ = accumulate(data.split(b"/"), lambda above, name: above + b"/" + name)
        if any(_last(compiled, folder, is_folder=True) is False for folder in folders):
            return False
        found = _last(compiled, data, is_folder=False)
        return not narrows if found is None else found

    return fits


def _last(globs: Sequence[_Glob], path: bytes, *, is_folder: bool) -> bool | None:
    """What the last glob that fits says: True to take the path, False to leave it out; None: none fits."""
    for one in reversed(globs):
        if (is_folder or not one.folders_only) and one.pattern.match(path):
            return not one.excludes
    return None


def _compiled(text: str) -> _Glob | None:
    """One glob; None for blank text, which ripgrep passes over."""
    glob = text if text.endswith("\\ ") else text.rstrip()
    if not glob:
        return None
    excludes = glob.startswith("!")
    escaped = glob.startswith(("\\!", "\\#"))
    glob = glob[excludes or escaped :]
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
        pattern = re.compile(_Translation(glob, text).regex(), re.DOTALL)
    except re.error as error:  # the bytes of a range of letters beyond ASCII, which may run backwards
        raise PatternInvalid(pattern=text, reason=str(error), remedy=_REMEDY) from None
    return _Glob(pattern, excludes, folders_only)


class _Translation:
    """A glob as a regular expression over bytes, built while it is read."""

    def __init__(self, glob: str, written: str) -> None:
        self._glob = glob
        self._written = written
        self._at = 0
        self._parts: list[bytes] = []  # of the innermost sequence: the glob itself, or one of an alternation
        self._outer: list[bytes] | None = None  # what stands before the open `{`
        self._choices: list[list[bytes]] = []
        self._special: dict[str, Callable[[], None]] = {
            "*": self._star,
            "?": lambda: self._parts.append(_ANY),
            "[": self._class,
            "\\": lambda: self._literal(self._take("a backslash stands at the end")),
            "{": self._open,
            ",": self._comma,
            "}": self._close,
        }

    def regex(self) -> bytes:
        """The regular expression, which matches whole paths.

        Raises:
            PatternInvalid: the glob is malformed.
        """
        while self._at < len(self._glob):
            character = self._take()
            if character in self._special:
                self._special[character]()
            else:
                self._literal(character)
        if self._outer is not None:
            raise self._bad("a { is never closed")
        if self._parts == [_AT_ANY_DEPTH]:
            return rb".*\Z"
        return b"".join(_without_retries(self._parts)) + rb"\Z"

    def _take(self, missing: str = "") -> str:
        if self._at == len(self._glob):
            raise self._bad(missing)
        self._at += 1
        return self._glob[self._at - 1]

    def _bad(self, reason: str) -> PatternInvalid:
        return PatternInvalid(pattern=self._written, reason=reason, remedy=_REMEDY)

    def _literal(self, character: str) -> None:
        self._parts.append(re.escape(_bytes(character)))

    def _star(self) -> None:
        before = self._glob[self._at - 2 : self._at - 1] if self._at > 1 else ""
        if not self._glob.startswith("*", self._at):
            self._parts.append(_STAR)
            return
        self._at += 1
        after = self._glob[self._at : self._at + 1]
        if not self._parts:
            alone = after in {"", "/"}
            self._at += alone and after == "/"
            self._parts += [_AT_ANY_DEPTH] if alone else [_STAR, _STAR]
            return
        begins = before == "/" or (self._outer is not None and before in {",", "{"})
        closes = after == "" or (self._outer is not None and after in {",", "}"})
        if not begins or not (closes or after == "/"):
            self._parts += [_STAR, _STAR]
            return
        self._at += not closes
        above = self._parts.pop()  # the slash, which `**` takes in; `**/**` is `**`
        self._parts.append(above if above in {_AT_ANY_DEPTH, _BELOW} else _BELOW if closes else _BETWEEN)

    def _class(self) -> None:
        unclosed = "a [ is never closed"
        negated = self._glob[self._at : self._at + 1] in {"!", "^"}
        self._at += negated
        ranges: list[tuple[str, str]] = []
        is_range = False
        while (character := self._take(unclosed)) != "]" or not ranges:
            if is_range:
                if character < ranges[-1][0]:
                    raise self._bad(f"the range {ranges[-1][0]}-{character} runs backwards")
                ranges[-1] = ranges[-1][0], character
                is_range = False
            elif character == "-" and ranges:
                is_range = True
            else:
                ranges.append((character, character))
        if is_range:
            ranges.append(("-", "-"))
        members = b"".join(map(_range, ranges))
        self._parts.append(b"[" + b"^" * negated + members + b"]")

    def _open(self) -> None:
        if self._outer is not None:
            raise self._bad("a { stands inside another one")
        self._outer, self._parts = self._parts, []

    def _comma(self) -> None:
        if self._outer is None:
            self._literal(",")
        else:
            self._choices.append(self._parts)
            self._parts = []

    def _close(self) -> None:
        if self._outer is None:
            raise self._bad("a } closes nothing")
        choices = [b"".join(parts) for parts in (*self._choices, self._parts)]
        # ripgrep drops an empty choice: `{,x}a` is `xa` alone. What is left empty is a part all the same.
        either = b"|".join(filter(None, choices))
        self._parts = [*self._outer, b"(?:" + either + b")" if either else b""]
        self._outer, self._choices = None, []


def _range(ends: tuple[str, str]) -> bytes:
    first, last = (b"".join(b"\\x%02x" % byte for byte in _bytes(end)) for end in ends)
    return first if first == last else first + b"-" + last


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _without_retries(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The parts, with stars that are followed by another one before the next `/` taken at their first fit.

    The later star takes what the earlier one leaves, so nothing is lost, and `*a*a*a*b` takes no more than
    the square of a name's length. A class may match `/`, so it ends such a run, as an alternation does.
    """
    start = 0
    for at, part in enumerate(parts):
        simple = part == _ANY or not part.startswith((b"[", b"(", b"/"))
        if part == _STAR and parts[start:at] and parts[start] == _STAR:
            yield b"(?>[^/]*?" + b"".join(parts[start + 1 : at]) + b")"
            start = at
        elif part == _STAR or not simple:
            yield from parts[start:at]
            start = at
    yield from parts[start:]
