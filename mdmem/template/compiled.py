"""Compiled templates: every rendering has an environment of its own, but the code of a template is kept."""

from __future__ import annotations

from types import CodeType

from jinja2.bccache import Bucket, BytecodeCache

_MOST = 64


class _Compiled(BytecodeCache):
    """The code of templates by their names and sources, for as long as this process runs."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its code, where it is there."""
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        if len(self._codes) >= _MOST:
            self._codes.clear()
        self._codes[bucket.key, bucket.checksum] = bucket.code


COMPILED = _Compiled()
"""What this process has compiled."""
