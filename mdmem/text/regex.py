"""Regular expressions that are compiled when they are first used: a command uses few of those it imports."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast

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


CLASS = regex(r"\[\^?(?P<inside>\]?(?:\\.|[^\]\\])*)(?:\]|\\?\Z)", re.DOTALL)
"""A class of characters in an expression: `[a-z]`."""
ATOM = regex(rf"\\.|{CLASS.pattern}", re.DOTALL)
"""An escape in an expression, or a class."""
_DOUBTFUL = regex(r"\\.|(?P<mark>\[|--|&&|~~|\|\|)", re.DOTALL)


def doubtful(pattern: str) -> str:
    """What in a class of `pattern` Python says it will come to read in another way; or nothing."""
    for token in ATOM.finditer(pattern):
        for found in _DOUBTFUL.finditer(token.group("inside") or ""):
            if found.group("mark"):
                return str(found.group("mark"))
    return ""
