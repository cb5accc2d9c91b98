"""The staging folder: where the files of a change stand until it is done, with the record that says so.

See `mdmem.vault.journal`, which writes here. That nothing is pending is asked before every reading.
"""

from __future__ import annotations

import os

STAGING = ".mdmem/local/staging"
ASIDE = ".mdmem/local/aside"  # what stood there, and was not written here


def pending(root: str) -> set[str]:
    """The kinds of records that stand there: `one`, `many`, `done`, or others' names.

    Args:
        root: the absolute path of the vault's folder.
    """
    try:
        return {name.rpartition(".")[2] for name in os.listdir(os.path.join(root, STAGING))}
    except (FileNotFoundError, NotADirectoryError):
        return set()
