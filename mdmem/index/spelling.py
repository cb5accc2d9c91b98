"""Spelling: what a link has to say to mean a memory, in its own style. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.index.record import key_of
from mdmem.index.resolve import (
    MARKDOWN,
    Names,
    is_path,
    means,
    namespaces,
    nfc,
    resolve,
    resolve_link,
    shortest,
)
from mdmem.text import citation, link as text_link

if TYPE_CHECKING:
    from mdmem.text.inline import Link


def spell(names: Names, link: Link, path: str, source: str, *, was: str = "") -> str:
    """The target that means `path` and nothing else, as a link in the memory `source` would say it.

    A path stays a path: relative or from the root, with or without `./` and `.md`. An identifier keeps its
    number of parts, or stays complete, where that is not ambiguous; else it gets as many more as it needs.

    Args:
        names: what there is to link to.
        link: the link as it is.
        path: a memory, or an attachment.
        source: the memory that the link stands in.
        was: what the link has meant so far.
    """
    if is_path(link) or path not in names.named("stem", key_of(path)):
        return _path(names, link, path, source)
    written = nfc(link.target)
    identifier = _complete(written, path, was or path, source)
    if not (identifier and means(resolve(names, identifier, source), path)):
        identifier = shortest(names, path, source, parts=written.count("/") + 1)
    return identifier + MARKDOWN if written.endswith(MARKDOWN) and path.endswith(MARKDOWN) else identifier


def route(place: str, source: str) -> str:
    """The relative path from the folder of the memory `source` to `place`, which may begin with `..`."""
    folder, parts = source.split("/")[:-1], place.split("/")
    common = 0
    while common < min(len(folder), len(parts) - 1) and folder[common] == parts[common]:
        common += 1
    return "/".join([".."] * (len(folder) - common) + parts[common:]) or "."


def place_from(target: str, source: str) -> str:
    """Where a relative path leads that stands in the memory `source`; it may leave the vault, by `..`."""
    parts = source.split("/")[:-1]
    for part in target.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def is_detour(target: str, before: str, after: str) -> bool:
    """Whether a relative path leads to one place from both, and is the shortest from `before` only."""
    bare = target.removeprefix("./").rstrip("/")
    place = place_from(bare, after)
    return place_from(bare, before) == place and route(place, before) == bare != route(place, after)


def as_written(link: Link, way: str) -> str:
    """A relative path with `./` before it where the link has it, or it would be read as something else."""
    if link.target.endswith("/") and not way.endswith("/"):
        way += "/"
    if way.startswith("../"):
        return way
    marked = link.target.startswith("./") or link.kind in {"wikilink", "field"}
    return f"./{way}" if marked or text_link.external(way) else way


def _path(names: Names, link: Link, path: str, source: str) -> str:
    rooted = link.target.startswith("/")
    whole = "/" + path if rooted else as_written(link, route(path, source))
    bare = whole.removesuffix(MARKDOWN)
    is_code = link.kind != "wikilink" and citation.in_destination(bare, link.anchor)
    if link.target.endswith(MARKDOWN) or bare == whole or is_code:
        return whole
    return bare if means(resolve_link(names, link._replace(target=bare), source), path) else whole


def _complete(written: str, path: str, was: str, source: str) -> str:
    """The complete path, seen from the namespace from which the link's own one is complete; else empty."""
    old = written.removesuffix(MARKDOWN)
    for namespace in namespaces(source) if "/" in old else ():
        if namespace + old == was.removesuffix(MARKDOWN) and path.startswith(namespace):
            return path.removesuffix(MARKDOWN)[len(namespace) :]
    return ""
