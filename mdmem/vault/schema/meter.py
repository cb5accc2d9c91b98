"""Meter: counts the steps of judging one memory by a schema, and stops at the most.

Steps are counted instead of timed, so that a memory is judged the same way on every machine, however busy.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from jsonschema import FormatChecker
from jsonschema.exceptions import FormatError

from mdmem.document.document import Document
from mdmem.document.text.regex import MOST_SECONDS, Allowance, shortened
from mdmem.errors import PatternTooSlow
from mdmem.vault.schema.formats import FORMATS, expression

if TYPE_CHECKING:
    from regex import Pattern


MOST_STEPS = 300_000
"""The most steps for one memory: a step takes 3 to 7 µs on a slow processor, all of them 1 to 2 s."""
STEP = 400
"""Characters that are compared or written in the time of a step."""
VALUE = 32
"""Characters that a value counts for, in addition to its own."""
_COMPILE_STEPS = 20  # for each pattern, and one for each of its characters
_PATTERN_STEPS = 10  # for each match; a harmless one takes less
_PATTERN_CHARACTERS = 25  # that a pattern reads in a step
_MOST_CHARACTERS = 1_000_000  # of a text that a pattern is matched against: it may take 150 bytes for each


class Unchecked(Exception):
    """A value cannot be judged by a schema; the text says why, in words that follow "cannot be checked: "."""


class Meter(FormatChecker):
    """Counts the steps of one judgement.

    It is a format checker because jsonschema passes that on to every validator that it derives from another.

    Attributes:
        document: the Markdown memory that is judged, if it is one.
        value: what of it is judged.
        left: steps that are left.
        depth: keywords that are being evaluated inside each other.
    """

    def __init__(self, document: Document | None = None) -> None:
        super().__init__(())
        self.document = document
        self.value: Any = None
        self.depth = 0
        self.left = MOST_STEPS
        self._sizes: dict[int, int] = {}
        self._compiled: dict[str, Pattern[str]] = {}
        self._patterns = Allowance(MOST_SECONDS)

    def count(self, steps: int) -> None:
        """Count steps; raises Unchecked when none are left."""
        self.left -= steps
        if self.left < 0:
            raise Unchecked(f"it takes more than {MOST_STEPS:,} steps")

    def size(self, value: Any) -> int:
        """Return the characters to compare in a value of a memory or schema."""
        if isinstance(value, str):
            return VALUE + len(value)
        if isinstance(value, int):
            return VALUE + value.bit_length()
        if id(value) not in self._sizes and isinstance(value, list | dict):
            parts = chain.from_iterable(value.items()) if isinstance(value, dict) else value
            self._sizes[id(value)] = VALUE + sum(map(self.size, parts))
        return self._sizes.get(id(value), VALUE)

    def matches(self, pattern: str, text: str) -> bool:
        """Return whether a pattern of a schema matches anywhere in a text."""
        if len(text) > _MOST_CHARACTERS:
            raise Unchecked(f"a text of more than {_MOST_CHARACTERS:,} characters has a `pattern`")
        self.count(_PATTERN_STEPS + len(text) // _PATTERN_CHARACTERS)
        try:
            return self._patterns.matches(self.compile_pattern(pattern), text)
        except PatternTooSlow as error:
            raise Unchecked(error.but(pattern=shortened(pattern)).message) from None

    def compile_pattern(self, pattern: str) -> Pattern[str]:
        """Compile a pattern of a schema; raise `PatternInvalid` if it is not one."""
        if pattern not in self._compiled:
            self.count(_COMPILE_STEPS + len(pattern))
            self._compiled[pattern] = expression(pattern)
        return self._compiled[pattern]

    def check(self, instance: object, format: str) -> None:  # noqa: A002 - jsonschema's name
        """Raise FormatError for a text that does not have a format; an unknown one accepts everything."""
        if format in FORMATS and isinstance(instance, str):
            self.count(_COMPILE_STEPS + len(instance) if format == "regex" else len(instance) // STEP)
            if not FORMATS[format].accepts(instance):
                raise FormatError("")
