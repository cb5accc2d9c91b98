"""The built-in schemas, templates and prompts: files inside the wheel, or at the top of a checkout."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def builtin_folder(name: str) -> str:
    """Return the absolute path of the built-in folder `schemas` or `templates`."""
    installed = os.path.join(_PACKAGE, name)
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), name)
