"""What others could have written, as texts."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tests import foreign

if TYPE_CHECKING:
    from collections.abc import Iterator


def texts(more: int) -> Iterator[tuple[str, str]]:
    """Path and text of what is UTF-8 in the bundle; or, where these are wanted, in files made of it."""
    for path, data in foreign.more(1, more) if more else foreign.files().items():
        with suppress(UnicodeDecodeError):
            yield path, data.decode()
