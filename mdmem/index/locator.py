"""The place that a citation names, and how another place is written in the same style."""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING, Any

from mdmem.index.resolve import PATH_KINDS, place_of
from mdmem.text.document import SUFFIXES
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mdmem.index.view import View
    from mdmem.index.workspace import Workspace
    from mdmem.text.inline import Citation

_LOCATOR = regex(
    r"(?P<mark>[#:]L?)\d+(?P<column>,\d+)?(?:(?P<to>-L?)\d+(?P<last_column>,\d+)?)?",
    re.ASCII | re.IGNORECASE,
)


def lines_of(citation: Citation) -> tuple[int, int] | None:
    """The first and the last line that are cited, 1-based, in this order; None without any."""
    if citation.first is None:
        return None
    last = citation.first if citation.last is None else citation.last
    return min(citation.first, last), max(citation.first, last)


def path_of(workspace: Workspace, citing: str, citation: Citation) -> str | None:
    """The cited file, from the workspace; None for a path that leaves it.

    The destination of a link is taken relative to the memory first, and then, like any other citation, to the
    workspace; "/" in front of it stands for the workspace. What exists comes first, then what git says
    existed. A name without a folder that is neither is the one file of that name in the workspace.
    """
    found = _candidates(citing, citation.path, in_link=citation.in_link)
    named = namesakes(workspace, citation) or ()
    if len(named) == 1:
        return named[0]
    if len(found) > 1:
        for path in found:
            if workspace.current(path) is not None:
                return path
        for path in found:
            if workspace.follow(path).existed:
                return path
    return found[-1] if found else None


def namesakes(workspace: Workspace, citation: Citation) -> tuple[str, ...] | None:
    """The files in other folders that a name without one may mean; as `Workspace.named`.

    None are where the workspace itself has a file of that name, or git says that it had.
    """
    name = citation.path
    if (
        citation.in_link
        or "/" in name
        or workspace.current(name) is not None
        or workspace.follow(name).existed
    ):
        return ()
    return workspace.named(name)


def _candidates(citing: str, path: str, *, in_link: bool) -> list[str]:
    if not in_link:
        possible = [_joined("", path)]
    elif path.startswith("/"):
        possible = [_joined("", path.lstrip("/"))]
    else:
        possible = [_joined(posixpath.dirname(citing), path), _joined("", path)]
    return list(dict.fromkeys(each for each in possible if each is not None))


def _joined(folder: str, path: str) -> str | None:
    """`path` as seen from `folder`, from the workspace and in normal form; None when it leaves that."""
    if path.startswith("/"):
        return None
    normal = posixpath.normpath(posixpath.join(folder, path))
    return None if normal == ".." or normal.startswith("../") else normal


def files_of(view: View, memories: Collection[str] | None = None) -> dict[str, set[str]]:
    """The files that memories point at and that are none: code, images. Also where one would be, if it came.

    Args:
        view: the index, as it is.
        memories: only these; all without.

    Returns:
        Absolute paths by memory; one that points at no file is left out.
    """
    found: dict[str, set[str]] = {}
    root, workspace = os.path.join(view.vault.root, view.base), view.vault.workspace
    with view.workspace() as looked_at:
        for path, cited, in_link in _rows(view, "citations", "x.path, x.in_link", memories):
            files = _candidates(view.in_workspace(path), cited, in_link=bool(in_link))
            is_bare = not in_link and "/" not in cited
            if is_bare and not os.path.lexists(os.path.join(workspace, cited)):
                files += looked_at.named(cited) or ()
            for file in files:
                found.setdefault(path, set()).add(os.path.join(workspace, file))
    for path, target, kind in _rows(view, "links", "x.target, x.kind", memories):
        if not posixpath.splitext(target)[1] or target.endswith(SUFFIXES):
            continue
        places = {
            os.path.join(root, place) for start in ("", "/") if (place := place_of(start + target, path))
        }
        if kind in PATH_KINDS and (place := place_of(target, view.in_workspace(path))):
            places.add(os.path.join(workspace, place))
        found.setdefault(path, set()).update(places)
    return found


def _rows(
    view: View, table: str, columns: str, memories: Collection[str] | None
) -> Iterator[tuple[Any, ...]]:
    """Rows of what memories point at, each behind the path of its memory."""
    query = (
        f"SELECT DISTINCT d.path, {columns} FROM {table} AS x JOIN documents AS d ON d.id = x.document"  # noqa: S608
        " WHERE {inside}"
    )
    if memories is None:
        found = view.rows(query)
    else:
        each = (view.rows(f"{query} AND d.path = ?", (view.outside(path),)) for path in memories)
        found = [row for rows in each for row in rows]
    return ((view.inside(path), *rest) for path, *rest in found)


def path_to(workspace: Workspace, citing: str, citation: Citation, new: str) -> str:
    """The path that cites the file `new`, from the workspace, in the style in which `citation` has its own.

    It is decoded: in a link it is still to be escaped.
    """
    cited = path_of(workspace, citing, citation)
    if cited == new:
        return citation.path
    folder = posixpath.dirname(citing)
    if not citation.in_link:
        return new
    if citation.path.startswith("/"):
        return f"/{new}"
    if cited != _joined(folder, citation.path):
        return new
    path = posixpath.relpath(new, folder or ".")
    return f"./{path}" if citation.path.startswith("./") and not path.startswith("../") else path


def locator(written: str, first: int, last: int) -> str:
    """A locator of the lines `first` to `last` in the style of `written`: `#L34-L47`, `#L34-47`, `:34-47`.

    Columns stay: lines that only moved have the same.
    """
    style = _LOCATOR.fullmatch(written)
    if style is None:
        return f"#L{first}" if first == last else f"#L{first}-L{last}"
    start = f"{style['mark']}{first}{style['column'] or ''}"
    if first == last and style["to"] is None:
        return start
    to = style["to"] or ("-L" if style["mark"][1:] else "-")
    return f"{start}{to}{last}{style['last_column'] or ''}"
