"""Additions: what is put into a settings file, whatever form that has."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mdmem.errors import EditRefused

if TYPE_CHECKING:
    from collections.abc import Sequence


class Addition(NamedTuple):
    """A value to put into settings.

    Attributes:
        keys: where: the keys from the outermost on.
        value: the value.
        each: whether it is one more item of the list there, beside those of others.
    """

    keys: tuple[str, ...]
    value: Any
    each: bool = False

    @property
    def nested(self) -> Any:
        """The value as it stands under the last key."""
        return [self.value] if self.each else self.value


class Step(NamedTuple):
    """A stretch of text that was put in at `start`, in code points of the text with the earlier steps."""

    start: int
    text: str


def stepped(text: str, steps: Sequence[Step]) -> str:
    """The text with the steps put in, in their order."""
    for at, new in steps:
        text = text[:at] + new + text[at:]
    return text


def added(settings: Any, additions: Sequence[Addition]) -> Any:
    """What settings are once something is added: what an edit of their text is held against."""
    whole = copy.deepcopy(settings)
    for addition in additions:
        place = whole
        for key in addition.keys[:-1]:
            place = place.setdefault(key, {})
        last = addition.keys[-1]
        if addition.each:
            place.setdefault(last, []).append(addition.value)
        else:
            place[last] = addition.value
    return whole


def at(settings: Any, keys: Sequence[str]) -> Any:
    """The value under some keys; None where there is none."""
    for key in keys:
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings


def refuse(path: str, reason: str, remedy: str = "mend the file, or add what is shown by hand") -> NoReturn:
    """Refuse to edit a settings file."""
    raise EditRefused(path=path, reason=reason, remedy=remedy)
