"""Regular expressions: our own, compiled when they are first used, and those of others, with a time limit.

Python's `re` cannot be stopped once it has begun, and lets no other thread run meanwhile. The package `regex`
can be stopped, and reads patterns as `re` does, so it runs the patterns of others.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, AnyStr, Generic, TypeVar, cast

from mdmem.errors import PatternInvalid, PatternTooSlow

if TYPE_CHECKING:
    import regex as engine

T = TypeVar("T")

MOST_CHARACTERS = 10_000
"""How long a pattern of others may be."""
MOST_SECONDS = 1.0
"""How long the patterns of others may take for one memory, in seconds of processor time."""
_SECONDS_A_CHARACTER = 2e-7  # ten times what a pattern takes that reads each character once
_QUICK_SECONDS = 5e-5  # ten times what a harmless pattern takes for a short text
_GROWTH, _MUCH = 4, 8
_BLOCKING_SECONDS = 0.06  # that other threads may have to wait
_TRIES = 4  # with as much time, where others took it
_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a stand-in for `re.compile(text, flags)` that compiles at its first use; `text` must be sound.

    To compile a pattern takes Python up to a millisecond. After the first use this is as fast as a pattern.
    """
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))


class _Regex(Generic[AnyStr]):
    """A pattern that is compiled when it is first used."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = _compile(self.pattern, self._flags)
        vars(self).update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


# Python's repeats that give nothing back match too much before 3.11.5 (gh-106052).
_IS_SOUND = sys.version_info >= (3, 11, 5)


def _compile(text: AnyStr, flags: int) -> Any:
    if _IS_SOUND:
        return re.compile(text, flags)
    import regex as engine  # noqa: PLC0415 - start-up

    return engine.compile(text, sum(getattr(engine, str(flag.name)) for flag in re.RegexFlag(flags)))


# Such a pattern reads each character at most as often as it is long: it needs no limit, and to ask the clock
# at each of a million matches takes three times as long as to match.
_REPEATS_NOTHING = regex(r"[^*+?{(|\\]{1,16}")


class Allowance:
    """The time that patterns of others may take for one memory, all of them together.

    A pause of the machine refuses nothing: a match that was stopped is tried again with more time from the
    allowance, until nothing is left.

    `seconds` are of processor time, beside what harmless patterns need.
    """

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._seconds = seconds
        self._left = seconds

    def run(self, pattern: engine.Pattern[str], text: str, match: Callable[..., T]) -> T:
        """Return what `match` returns, which looks for a pattern in a text.

        Args:
            text: the text; its length says what a harmless pattern needs.
            match: is called, maybe several times, with the arguments `timeout` and `concurrent` that the
                methods of a pattern have.

        Raises:
            PatternTooSlow: the allowance is used up, or the memory that the package `regex` allows itself.
        """
        if _REPEATS_NOTHING.fullmatch(pattern.pattern):
            return match(timeout=None, concurrent=None)
        harmless = _QUICK_SECONDS + len(text) * _SECONDS_A_CHARACTER
        more, tries = 0.0, _TRIES
        while True:
            given, began = harmless + more, time.thread_time()
            try:
                # Without the lock of Python it waits for other threads again and again, and that counts, too.
                return match(timeout=given, concurrent=given > _BLOCKING_SECONDS and tries == _TRIES)
            except TimeoutError:
                tries -= 1
                # It counts the time of all threads.
                if tries and time.thread_time() - began < given / 2:
                    continue
                more, tries = self._take_seconds(_GROWTH * given), _TRIES
            except MemoryError:
                more = 0.0
            if not more:
                raise PatternTooSlow(pattern=shortened(pattern.pattern), seconds=self._seconds)

    def _take_seconds(self, wanted: float) -> float:
        """Take seconds of the allowance, or all of it when little more is left."""
        taken = wanted if _MUCH * wanted < self._left else self._left
        self._left -= taken
        return taken

    def matches(self, pattern: engine.Pattern[str], text: str) -> bool:
        """Return whether a pattern matches anywhere in a text."""
        return self.run(pattern, text, partial(pattern.search, text)) is not None


def foreign(text: str, *, lines: bool = False) -> engine.Pattern[str]:
    """Return a pattern that somebody else wrote, for an `Allowance` to run.

    Args:
        text: in the syntax of the package `regex` in its version 0, which is that of `re` and more.
        lines: `^` and `$` match at lines.

    Raises:
        PatternInvalid: it cannot be compiled, or is too long.
    """
    import regex as engine  # noqa: PLC0415 - start-up

    if len(text) > MOST_CHARACTERS:
        reason = f"it has {len(text):,} characters; the most is {MOST_CHARACTERS:,}"
        raise PatternInvalid(pattern=shortened(text), reason=reason)
    flags = engine.VERSION0 | (engine.MULTILINE if lines else 0)
    try:
        return engine.compile(text, flags)
    # What it does not expect in a pattern it has ended with errors of many kinds.
    except (engine.error, RecursionError, ValueError, ArithmeticError, LookupError, TypeError) as error:
        raise PatternInvalid(pattern=shortened(text), reason=str(error)) from None


def expanded(match: engine.Match[str], replacement: str) -> str:
    r"""Return a replacement with the groups of a match in the place of `\1` and `\g<name>`.

    Raises:
        PatternInvalid: it names a group that the pattern lacks, or ends in a backslash.
    """
    import regex as engine  # noqa: PLC0415 - start-up

    try:
        return match.expand(replacement)
    except (engine.error, ValueError, LookupError, OverflowError) as error:
        raise PatternInvalid(pattern=replacement, reason=f"as the replacement: {error}") from None


def shortened(text: str, most: int = 60) -> str:
    """Return a pattern, or another text, as a message names it."""
    return text if len(text) <= most else text[:most] + "…"
