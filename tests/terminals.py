"""Reading what a program prints on a terminal."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 60.0  # seconds


def read_terminal(terminal: int) -> Iterator[bytes]:
    """Yield what is printed on a terminal until nobody has it open, or a limit has passed."""
    until, ends = time.monotonic() + _PATIENCE, 0
    # Linux may tell of the end before it hands over what was printed right before: only a second end is one.
    while ends < 2 and select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux reports the end of a terminal as an error, other systems as the end of a file
            part = b""
        ends = 0 if part else ends + 1
        if part:
            yield part
