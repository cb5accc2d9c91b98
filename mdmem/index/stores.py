"""The stores of an index: what they are called in its folder."""

from __future__ import annotations

DATABASE = "database.sqlite"
TEXT = "text"
LOCK = "lock"
"""Held by the one process that writes."""

VERSION_FILE = "mdmem-version"
"""In the folder of the text index: made with it, and never written again."""

SOCKET = "vouches-"
"""What the sockets begin with on which processes that watch are asked."""
