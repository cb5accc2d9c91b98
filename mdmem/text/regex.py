"""Regular expressions: our own, compiled when they are first used, and those of others, with a time limit.

Python's `re` cannot be stopped once it has begun, and lets no other thread run meanwhile. So a pattern that
somebody else may have written is run by the package `regex`, which can, and reads patterns as `re` does.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, AnyStr, Generic, cast

from mdmem.errors import PatternInvalid, PatternTooSlow

if TYPE_CHECKING:
    from collections.abc import Iterator

    import regex as engine

MOST_CHARACTERS = 10_000
"""How long a pattern of others may be."""
MOST_SECONDS = 1.0
"""How long the patterns of others may take in one call, in seconds of processor time."""
_SECONDS_A_CHARACTER = 2e-7  # ten times what a pattern takes that reads each character once
_SHOWN = 60
_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` returns, in effect; `text` has to be sound, since that is found out later.

    To compile a pattern takes Python up to a millisecond, and after the first use this is as fast as one.
    """
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))


class _Regex(Generic[AnyStr]):
    """Stands for a pattern, and takes over what that can do once it is asked for any of it."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self._flags)
        vars(self).update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


# Such a pattern reads each character at most as often as it is long: it needs no limit, and to ask the clock
# at each of a million matches takes three times as long as to match.
_REPEATS_NOTHING = regex(r"[^*+?{(|\\]{1,16}")


class Allowance:
    """The time that patterns of others may still take in one call, all of them together.

    Args:
        seconds: of processor time; each text that is looked at adds what a harmless pattern needs for it.
    """

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._seconds = seconds
        self._left = seconds

    @contextmanager
    def timeout(self, pattern: engine.Pattern[str], text: str) -> Iterator[float | None]:
        """How long a pattern may look at a text, in the `with` block, as the argument of that name takes it.

        None for a pattern that needs no limit.

        Raises:
            PatternTooSlow: the allowance is used up, or the memory that the package `regex` allows itself.
        """
        allowed = self._left + len(text) * _SECONDS_A_CHARACTER
        began = time.process_time()
        try:
            # It counts processor time, too, and from the first match on to the last.
            yield None if _REPEATS_NOTHING.fullmatch(pattern.pattern) else max(allowed, 0.001)
        except (TimeoutError, MemoryError):
            raise PatternTooSlow(pattern=shortened(pattern.pattern), seconds=self._seconds) from None
        finally:
            self._left = min(self._left, allowed - (time.process_time() - began))

    def matches(self, pattern: engine.Pattern[str], text: str) -> bool:
        """Whether a pattern matches anywhere in a text.

        Raises:
            PatternTooSlow: as `timeout`.
        """
        with self.timeout(pattern, text) as seconds:
            return pattern.search(text, timeout=seconds) is not None


def foreign(text: str, *, lines: bool = False) -> engine.Pattern[str]:
    """A pattern that somebody else wrote, for an `Allowance` to run.

    Args:
        text: in the syntax of the package `regex` in its version 0, which is that of `re` and more.
        lines: whether `^` and `$` match at lines.

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
    r"""A replacement with the groups of a match in the place of `\1` and `\g<name>`.

    Raises:
        PatternInvalid: it names a group that the pattern has not, or ends in a backslash.
    """
    import regex as engine  # noqa: PLC0415 - start-up

    try:
        return match.expand(replacement)
    except (engine.error, ValueError, LookupError, OverflowError) as error:
        raise PatternInvalid(pattern=replacement, reason=f"as the replacement: {error}") from None


def shortened(pattern: str) -> str:
    """A pattern as a message names it."""
    return pattern if len(pattern) <= _SHOWN else pattern[:_SHOWN] + "…"
