"""The resolver: which memory a link means. Pure: all that it knows comes through `Names`.

A Markdown destination, and a wikilink that begins with `.` or `/`, is a path: relative to the folder of the
memory that it stands in, or to the base namespace after `/`. It may leave `.md` out, never `.json`, and its
`..` never leave the base namespace.

A mounted memory stands elsewhere on disk than its path says. A relative Markdown destination in one, or to
one, is read from where the file stands first, as git hosts and editors read it, and from the path only where
nothing of the base namespace is found so.

Where `.md` may be left out, so may `.mdx` and `.markdown`, in this order: `db` is `db.md` where there is one.

Any other wikilink is an identifier. It means, in this order:

1. the memory with exactly this `id`;
2. memories whose path ends in these parts (`db`, `notes/db`, `notes/db.md`);
3. memories with this alias;
4. an attachment with this path, seen from the memory's folder or from the base namespace;
5. attachments whose path ends in these parts (`pic.png`, `img/pic.png`), where the last has a dot.

What is another user's is not among them, unless the whole path is given: `[[db]]` in a memory for everyone
never means what one user calls so. Upper and lower case count, except where nothing is found that way. Among
several, those in the namespace of the memory that the link stands in come before those in the namespaces
around it (the user's, the project's shared one, everything), and a path of two parts or more that is
complete, seen from one of them, is the only one. What is left is ambiguous. Its winner is one in the same
folder, else the one with the fewest parts, else the first by code points: a read takes it and says so, a
write refuses. Titles name nothing.

The other way round, `spell` says what a link has to say to mean a memory, in its own style.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mdmem.document.document import ANY_SUFFIXES, MARKDOWN_SUFFIXES, without_suffix
from mdmem.index.database import alias_key, key_of
from mdmem.markdown import citation, link as text_link
from mdmem.text.regex import regex
from mdmem.vault.paths import nfc
from mdmem.vault.plan import LinkPlace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mdmem.index.view import View
    from mdmem.markdown.inline import Link
    from mdmem.vault.paths import MemoryLayout


MARKDOWN = MARKDOWN_SUFFIXES[0]
PATH_KINDS = frozenset(("markdown", "reference", "definition"))
_USERS = "users/"
# The namespaces that a path lies in (`mdmem.vault.paths.Scope.namespace`).
_NAMESPACE = regex(
    r"(?P<user>users/[^/]+/)?(?P<project>projects/[^/]+/)?(?P<resource>resources/[^/]+/[^/]+/)?"
)


class Names(Protocol):
    """What there is to link to in the base namespace; all paths are relative to that."""

    @property
    def layout(self) -> MemoryLayout:
        """Where the memories stand on disk."""
        ...

    def named(self, kind: str, key: str) -> Sequence[str]:
        """Return the memories that a link can call `key`, or the attachments.

        `kind` is "stem" (`key` as `stem_keys`), "id" (exactly) or "alias" (`key` as `alias_key`), and of
        attachments "file" (`key` as `key_of`).
        """
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or folder stands at `path`, be it a memory or not."""
        ...


class Resolution(NamedTuple):
    """What a link means.

    Attributes:
        path: the memory, or the attachment; None when there is none.
        candidates: all that it may mean, the winner first.
        rule: how it was found: "self", "path", "id", "suffix", "alias", "attachment"; "" when it was not.
        is_from_disk: whether it is a path that was read from where the file stands, and not from its path.
    """

    path: str | None
    candidates: tuple[str, ...]
    rule: str
    is_from_disk: bool = False

    @property
    def ambiguous(self) -> bool:
        """Whether it may mean several."""
        return len(self.candidates) > 1


NOTHING = Resolution(None, (), "")


def resolve_link(names: Names, link: Link, source: str) -> Resolution:
    """Return what a link in the memory `source` means."""
    return resolve(names, link.target, source, as_path=link.kind in PATH_KINDS)


def resolve(names: Names, target: str, source: str, *, as_path: bool = False) -> Resolution:
    """Return what a target means in the memory `source`.

    Args:
        names: what there is to link to.
        target: decoded, without its anchor; "" is the memory itself.
        source: the memory that it stands in.
        as_path: read it as a Markdown destination: it is a path even when it begins with neither `.` nor `/`.
    """
    target = nfc(target)
    if not target:
        return Resolution(source, (source,), "self")
    if as_path or target[0] in "./":
        is_folder = target.endswith("/")
        beside = _place_on_disk(names, target, source) if as_path else None
        found = _find_at(names, beside, is_folder=is_folder) if beside is not None else NOTHING
        if found.path is not None:
            return found._replace(is_from_disk=True)
        place = place_of(target, source)
        return _find_at(names, place, is_folder=is_folder) if place is not None else NOTHING
    return _find_by_identifier(names, target, source)


class _Remaining:
    """The names as they are once some memories are gone."""

    def __init__(self, names: Names, gone: Collection[str]) -> None:
        self._names = names
        self._gone = gone

    def named(self, kind: str, key: str) -> Sequence[str]:
        return [path for path in self._names.named(kind, key) if path not in self._gone]

    def exists(self, path: str) -> bool:
        return path not in self._gone and self._names.exists(path)

    @property
    def layout(self) -> MemoryLayout:
        return self._names.layout


def find_dangling(view: View, gone: frozenset[str]) -> list[LinkPlace]:
    """Return the links of other memories that lead nowhere, or elsewhere, once these are gone.

    They are in the order of path and line. What was ambiguous and still is, is left out.
    """
    remaining, found = _Remaining(view, gone), set[LinkPlace]()
    for key in {key for path in gone for key in view.keys_of(path)}:
        for source, line, kind, target, *_ in view.links_with(key):
            if not target or source in gone:
                continue
            as_path = kind in PATH_KINDS
            before = resolve(view, target, source, as_path=as_path)
            if gone.isdisjoint(before.candidates):
                continue
            now = resolve(remaining, target, source, as_path=as_path)
            if now.path not in before.candidates or not now.ambiguous:
                found.add(LinkPlace(source, line, now.path or ""))
    return sorted(found)


def is_path(link: Link) -> bool:
    """Return whether a link's target is a path, and no identifier."""
    return link.kind in PATH_KINDS or link.target[:1] in {".", "/"}


def place_of(target: str, source: str) -> str | None:
    """Return where a path in the memory `source` leads; None when it leaves the base namespace."""
    parts = [] if target.startswith("/") else source.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def place_meant(names: Names, link: Link, source: str) -> str | None:
    """Return where the path of a link leads, be something there or not; None when it leaves the namespace."""
    beside = _place_on_disk(names, link.target, source) if link.kind in PATH_KINDS else None
    return place_of(link.target, source) if beside is None else beside


def _place_on_disk(names: Names, target: str, source: str) -> str | None:
    """Return where a relative path leads from where the file of `source` stands.

    None where that is not in the namespace, or where neither end is mounted: then the paths say the same.
    """
    layout = names.layout
    if not layout.mounted or target.startswith("/"):
        return None
    place = layout.path_of(place_from(target, layout.file_of(source)))
    return place if place is not None and not layout.mounted.keys().isdisjoint((source, place)) else None


def shortest(names: Names, path: str, source: str, *, parts: int = 1) -> str:
    """Return the shortest identifier that means the memory `path` and nothing else, in the memory `source`.

    Args:
        names: what there is to link to.
        path: a memory.
        source: the memory in which it is to be named.
        parts: how many parts of the path it has at least, where the path has this many.

    Returns:
        An identifier without `.md`; where every one is ambiguous, a path that begins with `/`. Other
        suffixes of Markdown stay where the name without it means another memory.
    """
    bare = without_suffix(path)
    spellings = (bare,) if path in {bare, bare + MARKDOWN} else (bare, path)
    for segments in (spelling.split("/") for spelling in spellings):
        for count in range(min(max(parts, 1), len(segments)), len(segments) + 1):
            identifier = "/".join(segments[-count:])
            if means(resolve(names, identifier, source), path):
                return identifier
    return "/" + spellings[-1]


def means(resolution: Resolution, path: str | None) -> bool:
    """Return whether it is `path`, and nothing else."""
    return resolution.path == path and not resolution.ambiguous


def namespaces(path: str) -> list[str]:
    """List the namespaces around `path`, its own first, each with a slash at its end or empty.

    The order is that of `mdmem.vault.paths.Scope.layers`, from the inside.
    """
    found = _NAMESPACE.match(path)
    if not found or not found[0]:
        return [""]
    user, project, resource = (found[name] or "" for name in ("user", "project", "resource"))
    return list(dict.fromkeys((user + project + resource, user + project, user, project, "")))


def _find_at(names: Names, place: str, *, is_folder: bool) -> Resolution:
    """Return what stands at a place; without its suffix, a memory may be meant."""
    known: list[tuple[str, Sequence[str]]] = []
    if place and not is_folder:
        if place.endswith(ANY_SUFFIXES):
            known.append((place, names.named("stem", key_of(place))))
        # Whichever suffix of Markdown it has, a memory has one key without it.
        longer = names.named("stem", key_of(place + MARKDOWN))
        known += [(place + suffix, longer) for suffix in MARKDOWN_SUFFIXES]
    for spelling, paths in known:
        if spelling in paths:
            return Resolution(spelling, (spelling,), "path")
    if names.exists(place):
        return Resolution(place, (place,), "attachment")
    for spelling, paths in known:
        found = tuple(sorted(path for path in paths if _fold_case(path) == _fold_case(spelling)))
        if found:
            return Resolution(found[0], found, "path")
    return NOTHING


def _spell_target(target: str) -> tuple[str, ...]:
    """Return the names of the memory that a target may mean, the likelier first."""
    complete = (target,) if target.endswith(ANY_SUFFIXES) else ()
    return (*complete, *(target + suffix for suffix in MARKDOWN_SUFFIXES))


def _find_by_identifier(names: Names, target: str, source: str) -> Resolution:
    found = _drop_walled(names.named("id", target), source)
    if found:
        return _rank_candidates(found, source, "id")
    if not target.endswith("/"):
        paths = _drop_walled(names.named("stem", key_of(target)), source, target)
        for folded in (False, True):
            for spelling in _spell_target(target):
                found = _ending_with(paths, spelling, folded=folded)
                if found:
                    return _rank_candidates(found, source, "suffix", spelling, folded=folded)
    found = _drop_walled(names.named("alias", alias_key(target)), source)
    if found:
        return _rank_candidates(found, source, "alias")
    for start in ("", "/"):
        place = place_of(start + target, source)
        if place and names.exists(place):
            return Resolution(place, (place,), "attachment")
    return _find_attachment(names, target, source)


def _find_attachment(names: Names, target: str, source: str) -> Resolution:
    """Return the attachment whose path ends in the parts of a target."""
    may_be = "." in target.rpartition("/")[2] and not target.endswith(ANY_SUFFIXES)
    paths = _drop_walled(names.named("file", key_of(target)), source) if may_be else ()
    for folded in (False, True):
        found = _ending_with(paths, target, folded=folded)
        if found:
            return _rank_candidates(found, source, "attachment", target, folded=folded)
    return NOTHING


def _drop_walled(paths: Sequence[str], source: str, target: str = "") -> tuple[str, ...]:
    """Return the paths without those of other users; the whole path as `target` names one all the same."""
    if not any(path.startswith(_USERS) for path in paths):
        return tuple(paths)
    around, whole = namespaces(source), _fold_case(without_suffix(target))

    def is_within_reach(path: str) -> bool:
        user = _NAMESPACE.match(path)
        is_walled = user is not None and bool(user["user"]) and user["user"] not in around
        return not is_walled or _fold_case(without_suffix(path)) == whole

    return tuple(filter(is_within_reach, paths))


def _rank_candidates(
    candidates: tuple[str, ...], source: str, rule: str, spelling: str = "", *, folded: bool = False
) -> Resolution:
    """Return the candidates of the nearest namespace that has any, the best first."""
    if len(candidates) == 1:
        return Resolution(candidates[0], candidates, rule)
    whole = spelling if "/" in spelling else ""
    found = _arrange_candidates(candidates, tuple(namespaces(source)), whole, folded=folded)
    beside = found.by_folder.get(source.rpartition("/")[0], ())
    ordered = (*beside, *(path for path in found.ordered if path not in beside)) if beside else found.ordered
    return Resolution(ordered[0], ordered, rule)


class _Arranged(NamedTuple):
    """Candidates without regard to the folder of the link: the best first, and by their folders."""

    ordered: tuple[str, ...]
    by_folder: dict[str, dict[str, None]]


# A name that every folder has, such as README, is asked for from each of them: what does not depend on the
# folder is found out once.
@lru_cache(maxsize=256)
def _ending_with(paths: tuple[str, ...], spelling: str, *, folded: bool) -> tuple[str, ...]:
    """Return those of the paths that end in these parts."""
    as_is = _fold_case if folded else str
    ending = "/" + as_is(spelling)
    return tuple(path for path in paths if ("/" + as_is(path)).endswith(ending))


@lru_cache(maxsize=256)
def _arrange_candidates(
    candidates: tuple[str, ...], around: tuple[str, ...], whole: str, *, folded: bool
) -> _Arranged:
    """Return those in the nearest of the namespaces `around`; only the complete ones where one is `whole`."""
    as_is = _fold_case if folded else str
    complete = {as_is(namespace + whole) for namespace in around} if whole else set()
    found = [path for path in candidates if as_is(path) in complete] or candidates
    ordered = sorted(dict.fromkeys(_nearest_of(found, around)), key=lambda path: (path.count("/"), path))
    by_folder: dict[str, dict[str, None]] = {}
    for path in ordered:
        by_folder.setdefault(path.rpartition("/")[0], {})[path] = None
    return _Arranged(tuple(ordered), by_folder)


def _nearest_of(paths: Sequence[str], around: Iterable[str]) -> list[str]:
    """Return those of the paths that lie in the first namespace that holds any."""
    return next(filter(None, ([path for path in paths if path.startswith(n)] for n in around)))


def _fold_case(text: str) -> str:
    return text.casefold()


def spell(
    names: Names, link: Link, path: str, source: str, *, was: str = "", is_from_disk: bool = True
) -> str:
    """Return the target that means `path` and nothing else, as a link in the memory `source` would say it.

    A path stays a path: relative or from the root, with or without `./` and `.md`. An identifier keeps its
    number of parts, or stays complete, where that is not ambiguous; else it gets as many more as it needs.

    Args:
        names: what there is to link to.
        link: the link as it is.
        path: a memory, or an attachment.
        source: the memory that the link stands in.
        was: what the link has meant so far.
        is_from_disk: whether a relative path from or to a mounted memory is one from where its file stands.
    """
    if is_path(link):
        return _spell_path(names, link, path, source, was or path, is_from_disk=is_from_disk)
    written = nfc(link.target)
    if path not in names.named("stem", key_of(path)):
        bare = written.rstrip("/")
        ways: tuple[str, ...] = (path, route(path, source))
        if bare != (was or path):
            is_route = bare == route(was or path, source)
            ways = ways[::-1] if is_route else (shortest(names, path, source, parts=bare.count("/") + 1),)
        fitting = (way + written[len(bare) :] for way in ways if means(resolve(names, way, source), path))
        return next(fitting, "") or _spell_path(names, link, path, source, was or path)
    identifier = _complete_path(written, path, was or path, source)
    if not (identifier and means(resolve(names, identifier, source), path)):
        identifier = shortest(names, path, source, parts=written.count("/") + 1)
    suffix = _suffix_of(path)
    if _says_suffix(written, was or path) and not identifier.endswith(suffix):
        return identifier + suffix
    return identifier


def route(place: str, source: str) -> str:
    """Return the relative path from the folder of `source` to `place`; it may begin with `..`."""
    folder, parts = source.split("/")[:-1], place.split("/")
    common = 0
    while common < min(len(folder), len(parts) - 1) and folder[common] == parts[common]:
        common += 1
    return "/".join([".."] * (len(folder) - common) + parts[common:]) or "."


def routes(names: Names, path: str, source: str, *, is_from_disk: bool = True) -> tuple[str, ...]:
    """Return the relative paths to `path` in a Markdown destination in the memory `source`, the better first.

    There are two where one of them is mounted: from where the file stands, and from its path in the vault.
    """
    layout, way = names.layout, route(path, source)
    if layout.mounted.keys().isdisjoint((source, path)):
        return (way,)
    beside = route(layout.file_of(path), layout.file_of(source))
    return (beside, way) if is_from_disk else (way, beside)


def place_from(target: str, source: str) -> str:
    """Return where a relative path leads that stands in the memory `source`.

    It may leave the vault, by `..`.
    """
    parts = source.split("/")[:-1]
    for part in target.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def is_detour(target: str, before: str, after: str) -> bool:
    """Return whether a relative path leads to one place from both, and is the shortest from `before` only."""
    bare = target.removeprefix("./").rstrip("/")
    place = place_from(bare, after)
    return place_from(bare, before) == place and route(place, before) == bare != route(place, after)


def as_written(link: Link, way: str) -> str:
    """Put `./` before a relative path where the link has it, or where it would be misread."""
    if link.target.endswith("/") and not way.endswith("/"):
        way += "/"
    if way.startswith("../"):
        return way
    marked = link.target.startswith("./") or link.kind in {"wikilink", "field"}
    return f"./{way}" if marked or text_link.external(way) else way


def _spell_path(
    names: Names, link: Link, path: str, source: str, was: str, *, is_from_disk: bool = False
) -> str:
    if link.target.startswith("/"):
        whole = "/" + path
    elif link.kind in PATH_KINDS:
        ways = [as_written(link, way) for way in routes(names, path, source, is_from_disk=is_from_disk)]
        fitting = (way for way in ways if means(resolve_link(names, link._replace(target=way), source), path))
        whole = next(fitting, ways[0])
    else:
        whole = as_written(link, route(path, source))
    bare = without_suffix(whole)
    is_code = link.kind != "wikilink" and citation.in_destination(bare, link.anchor)
    if _says_suffix(link.target, was) or bare == whole or is_code:
        return whole
    return bare if means(resolve_link(names, link._replace(target=bare), source), path) else whole


def _complete_path(written: str, path: str, was: str, source: str) -> str:
    """Return the complete path, seen from the namespace from which the link's own one is complete.

    Else empty.
    """
    old = without_suffix(written) if _says_suffix(written, was) else written
    for namespace in namespaces(source) if "/" in old else ():
        if namespace + old == without_suffix(was) and path.startswith(namespace):
            return without_suffix(path)[len(namespace) :]
    return ""


def _suffix_of(path: str) -> str:
    """Return the suffix of Markdown of a path; empty for one that has none."""
    return path[len(without_suffix(path)) :]


def _says_suffix(written: str, path: str) -> bool:
    """Return whether a target ends in the suffix of Markdown of the memory that it means."""
    suffix = _suffix_of(path)
    return bool(suffix) and written.endswith(suffix)
