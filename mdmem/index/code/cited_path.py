"""Cited paths: which files of the workspace a citation may name, without a look at any of them."""

from __future__ import annotations

import posixpath
from functools import lru_cache


def candidates(citing: str, path: str, *, in_link: bool) -> list[str]:
    """Return the files that a cited path may name, from the workspace, the likelier first."""
    return list(_find_candidates(posixpath.dirname(citing), path, in_link))


@lru_cache(maxsize=1 << 12)  # the same files are cited again and again
def _find_candidates(folder: str, path: str, in_link: bool) -> tuple[str, ...]:
    if not in_link:
        possible = [join_path("", path)]
    elif path.startswith("/"):
        possible = [join_path("", path.lstrip("/"))]
    else:
        possible = [join_path(folder, path), join_path("", path)]
    return tuple(dict.fromkeys(place for place in possible if place is not None))


def join_path(folder: str, path: str) -> str | None:
    """Return `path` of `folder` as seen from the workspace, in normal form; None when it leaves that."""
    if path.startswith("/"):
        return None
    normal = posixpath.normpath(posixpath.join(folder, path))
    return None if normal == ".." or normal.startswith("../") else normal
