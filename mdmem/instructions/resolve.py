"""What a tool reads for a file."""

from __future__ import annotations

import os

from mdmem.errors import Usage
from mdmem.instructions.found import Resolved
from mdmem.instructions.reading import Reading
from mdmem.instructions.source import Places, Source
from mdmem.instructions.tool import TOOLS


def resolve(for_file: str, tool: str, places: Places, source: Source | None = None) -> Resolved:
    """What `tool` would read for a file, as if it was started in that file's folder. Nothing is written.

    Args:
        for_file: relative to the workspace, or absolute; it need not exist.
        tool: one of `TOOLS`.
        places: where tools look.
        source: files that were read before.

    Raises:
        Usage: there is no such tool, or the file is outside of the workspace.
    """
    if tool not in TOOLS:
        raise Usage(problem=f"there is no tool {tool!r}", remedy=f"it is one of {', '.join(TOOLS)}")
    if "\0" in for_file or not _is_encodable(for_file):
        raise Usage(problem=f"{for_file!r} cannot be the path of a file")
    place = os.path.normpath(os.path.join(places.workspace, for_file))
    file = os.path.relpath(place, places.workspace).replace(os.sep, "/")
    if file == "." or file.startswith("../") or file == "..":
        raise Usage(
            problem=f"{for_file}: not a file of the workspace", remedy=f"name one below {places.workspace}"
        )
    reading = Reading(tool, place, source or Source(places))
    TOOLS[tool].read(reading)
    return Resolved(
        file=places.shown(place),
        tool=tool,
        as_of=TOOLS[tool].as_of,
        files=tuple(reading.files),
        left_out=tuple(reading.left_out),
        findings=reading.findings,
    )


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True
