"""Waiting for what comes about by itself and tells nobody, with a limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 60.0


def until(is_so: Callable[[], Any]) -> None:
    """Wait until something is so, and fail when it never is."""
    deadline = time.monotonic() + _SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)
