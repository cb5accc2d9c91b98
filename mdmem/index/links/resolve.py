"""The resolver: which memory a link means. Pure: all that it knows comes through `Names`.

A Markdown destination, and a wikilink that begins with `.` or `/`, is a path: relative to the folder of the
memory that it stands in, or to the base namespace after `/`. It may leave `.md` out, never `.json`, and its
`..` never leave the base namespace.

A mounted memory stands elsewhere on disk than its path says. A relative Markdown destination in one, or to
one, is read from where the file stands first, as git hosts and editors read it, and from the path only where
nothing of the base namespace is found so.

Where `.md` may be left out, so may `.mdx`, `.markdown` and `.mdc`, in this order: `db` is `db.md` where
there is one. Behind a slash at its end a path is an address: `db/` is the folder, or the index in it, or
`db.md`. After `/` a path may also begin at the repository, where that leads into the base namespace.

Any other wikilink is an identifier. It means, in this order:

1. the memory with exactly this `id`;
2. memories with a path that ends in these parts (`db`, `notes/db`, `notes/db.md`);
3. memories with this alias;
4. an attachment with this path, seen from the memory's folder or from the base namespace;
5. attachments with a path that ends in these parts (`pic.png`, `img/pic.png`), where the last has a dot.

In a tool that has wikilinks of its own, which knows no `id`, that comes last.

What is another user's is not among them, unless the whole path is given: `[[db]]` in a memory for everyone
never means what one user calls so. Upper and lower case count, except where nothing is found that way. Among
several, those in the namespace of the memory that the link stands in come before those in the namespaces
around it (the user's, the project's shared one, everything), and a path of two parts or more that is
complete, seen from one of them, is the only one. What is left is ambiguous. Its winner is one in the same
folder, else the one with the fewest parts, else the first by code points: a read takes it and says so, a
write refuses. Titles name nothing.

Where `mdmem.index.links.dialect` knows the tool that a note is written for, a path is also read as that tool
reads it: from the folders of its site, from the address at which a page is served, as an address that a page
says of itself. What the path says by itself comes behind that, and where both are there, the link is
ambiguous. Of several notes of a name, that one is meant which the tool takes.

The other way round, `spell` says what a link has to say to mean a memory, in its own style.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from posixpath import commonprefix, normpath
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.document import ANY_SUFFIXES, MARKDOWN_SUFFIXES, NAMED_SUFFIXES, Document, without_suffix
from mdmem.document.markdown import citation, link as text_link
from mdmem.document.markdown.link import Link
from mdmem.document.text.regex import regex
from mdmem.index.code.cited_path import join_path
from mdmem.index.database import INDEX_NAMES, address_key, alias_key, drop_numbers, key_of, label_key
from mdmem.index.links.dialect import (
    ABSOLUTE,
    BY_NAME,
    LABEL_FIRST,
    MOUNTS,
    NO_SITE,
    PAGES,
    RELATIVE,
    SITE,
    UNWRITTEN,
    Site,
    begins_as_served,
    drop_twins,
    find_site,
    is_note_of,
    is_served_at,
    journal_stems,
    list_page_names,
    list_places,
    list_roots,
    may_be_served,
    place_in,
)
from mdmem.index.links.names import ChangedNames, Names
from mdmem.vault.paths import is_under, join, nfc, relative
from mdmem.vault.plan import LinkPlace

if TYPE_CHECKING:
    from mdmem.index.view import View


MARKDOWN = MARKDOWN_SUFFIXES[0]
QUIET_KINDS = frozenset(("html", "import"))
"""Links that may lead nowhere: to what a site makes of its files, or of no file at all."""

PATH_KINDS = frozenset(("markdown", "reference", "definition", "ref", *QUIET_KINDS))
_USERS = "users/"
# The namespaces that a path lies in (`mdmem.vault.paths.Scope.namespace`).
_NAMESPACE = regex(
    r"(?P<user>users/[^/]+/)?(?P<project>projects/[^/]+/)?(?P<resource>resources/[^/]+/[^/]+/)?"
)


# The address of a post by its day; what Dendron writes before the vault of a note.
_POST = regex(r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})/[^/]+/?\Z")
_DAY = regex(r"(?:_posts/)?([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})-(?=[^/]+\Z)")
_SCHEME = "dendron://"
_DENDRON_VAULT = regex(rf"{_SCHEME}[^/]*/")
_ABOVE = regex(r"\A(?:\.\./)*(?:\.\.\Z)?")
# Files that a site makes pages of, and that are no memories.
_MADE = (".html", ".js", ".jsx", ".ts", ".tsx", ".astro", ".adoc", ".rst", ".ipynb", ".org")


class Resolution(NamedTuple):
    """What a link means.

    Attributes:
        path: the memory, or the attachment; None when there is none.
        candidates: all that it may mean, the winner first.
        rule: how it was found: "self", "path", "id", "suffix", "alias", "address", "attachment"; "" when it
            was not.
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


def kept_link(kind: str, target: str, anchor: str = "", alias: str = "") -> Link:
    """Make a link from its row in the index: what it says, without its places."""
    nowhere, behind = Span(0, 0), Span(1, 1 + len(alias))
    alias = alias if kind == "wikilink" else ""
    return Link(kind, False, nowhere, 0, target, nowhere, anchor, nowhere, alias, behind)  # noqa: FBT003


def without_places(names: Names, link: Link, source: str) -> Link:
    """Return what of a link in the memory `source` decides which memory it means."""
    is_label = _may_be_label(link) and LABEL_FIRST in find_site(names.layout, source).traits
    return kept_link(link.kind, link.target, "", link.alias if is_label else "")


def resolve_link(names: Names, link: Link, source: str) -> Resolution:
    """Return what a link in the memory `source` means."""
    turned = turn_link(names, link, source)
    if turned.kind == "block":
        found = drop_walled(names.named("block", alias_key(turned.target)), source)
        return Resolution(found[0], found, "id") if found else NOTHING
    meant = resolve(
        names, turned.target, source, as_path=turned.kind in PATH_KINDS, is_reference=turned.kind == "ref"
    )
    is_either = turned is link and meant.path and _may_be_label(link)
    if is_either and LABEL_FIRST in find_site(names.layout, source).traits:  # of one tool of several
        other = resolve(names, _swap_halves(link).target, source)
        return meant._replace(candidates=tuple(dict.fromkeys((*meant.candidates, *other.candidates))))
    return meant


def turn_link(names: Names, link: Link, source: str) -> Link:
    """Return a wikilink with its target first, where the tool of the memory `source` says the label first.

    Where the notes are those of another tool as well, the half that alone names something is the target.
    """
    site = find_site(names.layout, source) if _may_be_label(link) else NO_SITE
    if LABEL_FIRST not in site.traits:
        return link
    swapped = _swap_halves(link)
    is_sure = len(site.tools) == 1 or (
        resolve(names, link.target, source).path is None
        and resolve(names, swapped.target, source).path is not None
    )
    return swapped if is_sure else link


def turn_links(names: Names, document: Document, source: str) -> Sequence[Link]:
    """Return the links of a document, each as `turn_link`."""
    return [turn_link(names, link, source) for link in document.links]


def has_key(link: Link, keys: Collection[str]) -> bool:
    """Return whether a link has one of these keys, by its target or by its label."""
    label = label_key(link.kind, link.alias)
    return key_of(link.target) in keys or (bool(label) and label in keys)


def _may_be_label(link: Link) -> bool:
    return link.kind == "wikilink" and bool(link.alias) and link.target_span.start < link.alias_span.start


def _swap_halves(link: Link) -> Link:
    target, mark, anchor = link.alias.partition("#")
    said = f"{link.target}#{link.anchor}" if link.anchor else link.target
    start, end = link.alias_span
    middle = start + len(target)
    return link._replace(
        target=target,
        target_span=Span(start, middle),
        anchor=anchor,
        anchor_span=Span(middle + len(mark), end),
        alias=said,
        alias_span=Span(link.target_span.start, link.anchor_span.end),
    )


def resolve(
    names: Names, target: str, source: str, *, as_path: bool = False, is_reference: bool = False
) -> Resolution:
    """Return what a target means in the memory `source`.

    Args:
        target: decoded, without its anchor; "" is the memory itself.
        as_path: read it as a Markdown destination: it is a path even when it begins with neither `.` nor `/`.
        is_reference: it is that of a shortcode, which may also begin at the root, or be a name.
    """
    target = nfc(target)
    if not target:
        return Resolution(source, (source,), "self")
    if not as_path and target.startswith(_SCHEME):
        vault, _, target = target[len(_SCHEME) :].partition("/")
        found = _find_by_identifier(names, target, source)
        inside = tuple(path for path in found.candidates if f"/{vault}/" in f"/{path}")
        return found._replace(path=inside[0], candidates=inside) if inside else found
    if not (as_path or target[0] in "./"):
        return _find_by_identifier(names, target, source)
    is_folder = target.endswith("/")
    beside = _place_on_disk(names, target, source) if as_path else None
    found = _find_at(names, beside, is_folder=is_folder) if beside is not None else NOTHING
    if found.path is not None:
        return found._replace(is_from_disk=True)
    place = place_of(target, source)
    found = _find_at(names, place, is_folder=is_folder) if place is not None else NOTHING
    if found.path and target.endswith(MARKDOWN_SUFFIXES) and target[0] not in "/@" and not is_reference:
        return found
    site = find_site(names.layout, source)
    site = site if as_path or BY_NAME in site.traits else NO_SITE
    if place and target[0] == "/" and not is_served_at(site, names.layout.file_of(place), target):
        found = NOTHING
    places = [*_list_places(names, site, target, source, is_reference=is_reference)]
    look = _find_page_at if SITE in site.traits else partial(_find_at, is_folder=is_folder)
    hits = [hit for each in dict.fromkeys(places) if (hit := look(names, each)).path is not None]
    if found.path is not None:
        hits.append(found)
    # What may be served at the top stands behind what is there.
    hits = [hit for hit in hits if not may_be_served(site, names.layout, hit.path)] or hits[:1]
    pages = [hit for hit in hits if hit.rule == "path"]
    if SITE in site.traits and not target.endswith(MARKDOWN_SUFFIXES):
        said = _find_by_address(names, site, target, source, places, is_served=bool(pages))
        pages = [*pages[:1], *([Resolution(said[0], said, "address")] if said else ())]
    may_be_name = is_reference and not ("Jekyll" in site.traits and target.endswith(ANY_SUFFIXES))
    if not pages and not hits and (may_be_name or BY_NAME in site.traits) and target[0] not in "/@":
        pages = [_find_by_name(names, site, target, source)]
    # Of files, only those that several roots have are told.
    pages = pages or (hits if target[0] in "/@" else hits[:1]) or [NOTHING]
    several = (path for hit in (pages[:1] if is_reference else pages) for path in hit.candidates)
    return pages[0]._replace(candidates=drop_twins(site, tuple(dict.fromkeys(several))))


def _find_by_name(names: Names, site: Site, target: str, source: str) -> Resolution:
    """Return what a path names that leads nowhere from its memory, where `..` stops at the site's folder."""
    if target[0] == ".":
        top = place_in(names.layout, site.folder) or ""
        inside = _ABOVE.sub("", place_from(target, relative(source, top)))
        found = _find_at(names, join(top, inside), is_folder=target.endswith("/"))
        if found.path is not None:
            return found
        target = inside
    return _find_by_identifier(names, target, source) if target else NOTHING


def leads_to_route(names: Names, link: Link, source: str) -> bool:
    """Return whether a link that leads to no file may lead to a page that a site makes of something else.

    It may not if the tool itself would report the link: to a note, to what a shortcode names, or to an
    address in a folder with known pages only.
    """
    site, target = find_site(names.layout, source), nfc(link.target)
    if "Docusaurus" in site.traits and "/i18n/" in f"/{source}":  # what is not translated is as it was
        return True
    if LABEL_FIRST in site.traits and "*" in target:  # all the notes that fit
        return True
    if SITE not in site.traits or link.kind == "ref" or target.endswith(MARKDOWN_SUFFIXES):
        return False
    is_checked = "MkDocs" in site.traits or ("Astro" in site.traits and link.embed and target[0] == ".")
    if is_checked and target[0] not in "/@" and "." in target.rpartition("/")[2]:
        return False
    above = {place.rpartition("/")[0] for place in _list_places(names, site, target, source)}
    is_page = "Docusaurus" in site.traits and (target[0] != "/" or target.startswith(("/docs/", "/blog/")))
    if is_page and _POST.search(target):
        return False
    named = () if is_page else site.roots  # right below a root may be anything
    roots = {place_in(names.layout, folder) for start, folder in named if start == "/"}
    is_known = None not in roots and any(map(names.exists, above - roots - {""}))
    return not (is_known and site.generated.isdisjoint((*target.strip("/").split("/"), "*")))


def _list_places(
    names: Names, site: Site, target: str, source: str, *, is_reference: bool = False
) -> Iterator[str]:
    is_note = target.endswith(ANY_SUFFIXES)
    bare = target.removesuffix("index.html").removesuffix(".html") if SITE in site.traits else target
    is_loose = is_note and "Docusaurus" in site.traits and target[0] != "."
    if target[0] in "/@" or is_reference or is_loose:
        whole = bare if target[0] in "/@" else f"/{bare}"
        yield from list_places(site, names.layout, whole, source)
        if is_reference and "Jekyll" in site.traits and not is_note:  # a post, by its folder and its name
            folder, _, name = bare.strip("/").rpartition("/")
            for post in (f"{folder}/_posts/{name}", f"_posts/{folder}/{name}"):
                yield from list_places(site, names.layout, f"/{post.lstrip('/')}", source)
    elif MOUNTS in site.traits and (place := place_of(bare, source)) is not None:
        file = names.layout.file_of(place)
        for start, folder in site.roots:
            if is_under(file, folder):  # what is mounted stands beside it in the site
                yield from list_places(site, names.layout, start + relative(file, folder), source)
    if target[0] not in "/@" and SITE in site.traits and not is_note:
        address = page_of(source)
        # An address of Docusaurus has no slash at its end.
        is_bare = "Docusaurus" in site.traits
        starts = (source, address, f"{address}/_") if is_bare else (f"{address}/_", source)
        places = (place_of(bare, start.lstrip("/")) for start in starts)
        yield from (place for place in places if place is not None)


def page_of(path: str) -> str:
    """Return where a page is served: at its path without suffix, an index at its folder."""
    folder, _, name = path.rpartition("/")
    stem = without_suffix(name)
    return folder if stem in INDEX_NAMES else join(folder, stem)


def address_of(path: str) -> str:
    """Return where a page is served, if its name begins with a day, or with a number that orders it."""
    page, is_dated = _DAY.subn(r"\1/\2/\3/", page_of(path))
    return page if is_dated else drop_numbers(page)


def _dash(path: str) -> str:
    return page_of(path).replace(" ", "-").lower()


def _post_of(path: str) -> str:
    return without_suffix(path).replace("_posts/", "", 1)


def _find_page_at(names: Names, place: str) -> Resolution:
    bares = [join(place, name) for name in INDEX_NAMES]
    if place:
        bares.insert(0, place)
    ways = [
        place,
        *(bare + suffix for bare in bares for suffix in MARKDOWN_SUFFIXES),
        join(place, "README.md"),
    ]
    known = {path for key in {*map(key_of, bares[: 1 if place else 2])} for path in names.named("stem", key)}
    if names.exists(ways[-1]):
        known.add(ways[-1])
    for as_is in (str, str.casefold):
        found = {as_is(path): path for path in known}
        page = next((found[as_is(way)] for way in ways if as_is(way) in found), None)
        if page:
            return Resolution(page, (page,), "path")
    if names.exists(place):
        return Resolution(place, (place,), "attachment")
    made = [place + suffix for suffix in (*NAMED_SUFFIXES, *_MADE)]
    file = next(filter(names.exists, made if names.exists(place.rpartition("/")[0]) else ()), None)
    return Resolution(file, (file,), "attachment") if file else NOTHING


def _find_by_address(
    names: Names, site: Site, target: str, source: str, places: Iterable[str], *, is_served: bool
) -> tuple[str, ...]:
    """Return the pages of a site that say this address of themselves.

    Where no page `is_served` there by its path, also those that have it by their day, number or other name.
    """
    layout, roots = names.layout, [*list_roots(site, names.layout, source)]
    keys = [address_key(place) for place in (*places, *((target,) if target[0] == "/" else ()))]
    for place in map(layout.file_of, places):
        inside = ((start, relative(place, folder)) for start, folder in roots if is_under(place, folder))
        keys += [address_key(begin + rest) for start, rest in inside for begin in (start, "/")]
    keys, last, day = list(dict.fromkeys(keys)), key_of(target), _POST.search(target)
    named = [path for key in keys for path in names.named("address", key)]
    if is_served:
        return _keep_of_site(names, site, named, source, target)
    if "Hugo" in site.traits:
        named += [path for key in keys for path in names.named("dashed", key)]
        forms = (alias_key(form) for key in keys for form in (key, f"{key}/", key.lstrip("/")))
        named += [path for form in forms for path in names.named("alias", form)]
    if "Docusaurus" in site.traits:
        folders = {place.rpartition("/")[0] for place in places}
        named += [path for path in names.named("id", last) if path.rpartition("/")[0] in folders]
        named += [path for key in keys for path in names.named("numbered", drop_numbers(key))]
    posts = names.named("post", last) if target[0] == "/" or day else ()
    written = f"-{'-'.join(day.groups())}-" if day else ""
    dated = [path for path in posts if written in f"-{path.replace('/', '-')}"]
    above = target[: day.start()].strip("/") if day else ""
    named += sorted(dated, key=lambda path: f"/{above}/" not in f"/{path}")
    return _keep_of_site(names, site, named, source, target)


def _keep_of_site(
    names: Names, site: Site, paths: Iterable[str], source: str, address: str = "."
) -> tuple[str, ...]:
    found, file_of = drop_walled([*dict.fromkeys(paths)], source), names.layout.file_of
    own = [path for path in found if find_site(names.layout, path).folder == site.folder]
    return tuple(path for path in own if begins_as_served(site, file_of(path), address))


def find_dangling(view: View, gone: frozenset[str]) -> list[LinkPlace]:
    """Return the links of other memories that lead nowhere, or elsewhere, once these are gone.

    They are in the order of path and line. What was ambiguous and still is, is left out.
    """
    remaining, found = ChangedNames(view, gone=gone), set[LinkPlace]()
    for key in {key for path in gone for key in view.keys_of(path)}:
        for source, line, *row in view.links_with(key):
            link = kept_link(*row)
            if not link.target or source in gone:
                continue
            before = resolve_link(view, link, source)
            if gone.isdisjoint(before.candidates):
                continue
            now = resolve_link(remaining, link, source)
            if now.path not in before.candidates or not now.ambiguous:
                found.add(LinkPlace(source, line, now.path or ""))
    return sorted(found)


def is_path(link: Link) -> bool:
    """Return whether a link's target is a path, and no identifier."""
    return link.kind in PATH_KINDS or link.target[:1] in {".", "/"}


def place_of(target: str, source: str) -> str | None:
    """Return where a path in the memory `source` leads; None outside the namespace."""
    place = join_path("" if target.startswith("/") else source.rpartition("/")[0], target.lstrip("/"))
    return "" if place == "." else place


def place_from(target: str, source: str) -> str:
    """Return where a relative path leads that stands in the memory `source`.

    It may leave the vault, by `..`.
    """
    place = normpath(f"./{source.rpartition('/')[0]}/{target}")
    return "" if place == "." else place


def place_meant(names: Names, link: Link, source: str) -> str | None:
    """Return where the path of a link leads, be something there or not; None when it leaves the namespace."""
    beside = _place_on_disk(names, link.target, source) if link.kind in PATH_KINDS else None
    return place_of(link.target, source) if beside is None else beside


def _place_on_disk(names: Names, target: str, source: str) -> str | None:
    """Return where a relative path leads from the file of `source`; None where neither end is mounted."""
    layout = names.layout
    if not layout.mounted or target.startswith("/"):
        return None
    place = layout.path_of(place_from(target, layout.file_of(source)))
    return place if place is not None and not layout.mounted.keys().isdisjoint((source, place)) else None


def shortest(names: Names, path: str, source: str, *, parts: int = 1) -> str:
    """Return the shortest identifier that means the memory `path` and nothing else, in the memory `source`.

    It has no `.md`, and as many parts of the path as `parts` says, or more; where each is ambiguous, it is
    the path behind `/`. Other suffixes of Markdown stay where the name without it means another memory.
    """
    bare = without_suffix(path)
    spellings = (bare,) if path in {bare, bare + MARKDOWN} else (bare, path)
    for segments in (spelling.split("/") for spelling in spellings):
        for count in range(min(max(parts, 1), len(segments)), len(segments) + 1):
            identifier = "/".join(segments[-count:])
            if means(resolve(names, identifier, source), path):
                return identifier
    return "/" + spellings[-1]


def spell_new(names: Names, path: str, source: str) -> str:
    """Return what a new wikilink in `source` says to mean `path`, in the form that Obsidian is set to."""
    site, way = find_site(names.layout, source), without_suffix(route(path, source))
    if RELATIVE in site.config and means(resolve(names, way, source), path):
        return way
    top = place_in(names.layout, site.folder) or ""
    is_whole = ABSOLUTE in site.config and is_under(path, top)
    return shortest(names, path, source, parts=relative(path, top).count("/") + 1 if is_whole else 1)


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
    bares = (place, *(f"{place}/{name}".lstrip("/") for name in INDEX_NAMES)) if is_folder else (place,)
    exists, pages = names.exists(place), _list_pages(names, bares) if is_folder else ()
    if pages and (not exists or pages[-1].startswith(f"{place}/".lstrip("/"))):
        return Resolution(pages[0], pages, "path")
    if exists:
        return Resolution(place, (place,), "attachment")
    for spelling, paths in known:
        found = tuple(sorted(path for path in paths if path.casefold() == spelling.casefold()))
        if found:
            return Resolution(found[0], found, "path")
    # Where a vault does not take them for memories, they are files.
    pages = tuple(bare + suffix for bare in filter(None, bares) for suffix in NAMED_SUFFIXES)
    page = next(filter(names.exists, pages), None)
    if page:
        return Resolution(page, (page,), "attachment")
    return NOTHING


def _list_pages(names: Names, bares: Iterable[str]) -> tuple[str, ...]:
    found = []
    for bare in filter(None, bares):
        known = names.named("stem", key_of(bare + MARKDOWN))
        found += [bare + suffix for suffix in MARKDOWN_SUFFIXES if bare + suffix in known][:1]
    return tuple(found)


def _find_by_identifier(names: Names, target: str, source: str) -> Resolution:
    is_foreign = UNWRITTEN in find_site(names.layout, source).traits
    ways = (_find_called, _find_by_id) if is_foreign else (_find_by_id, _find_called)
    found = (way(names, target, source) for way in ways)
    return next((each for each in found if each.path is not None), NOTHING)


def _find_by_id(names: Names, target: str, source: str) -> Resolution:
    found = drop_walled(names.named("id", target), source)
    return _rank_candidates(names, found, source, "id") if found else NOTHING


def _find_called(names: Names, target: str, source: str) -> Resolution:
    if not target.endswith("/"):
        paths = drop_walled(names.named("stem", key_of(target)), source, target)
        complete = (target,) if target.endswith(ANY_SUFFIXES) else ()
        spellings = (*complete, *(target + suffix for suffix in MARKDOWN_SUFFIXES))
        meant = _find_ending(names, paths, spellings, source, "suffix")
        if meant.path is not None:
            return meant
    layout, named = names.layout, names.named("alias", alias_key(target))
    # What Hugo calls so are addresses.
    found = drop_walled([path for path in named if "Hugo" not in find_site(layout, path).tools], source)
    found = found or _find_page(names, target, source)
    if found:
        return _rank_candidates(names, found, source, "alias")
    may_be = "." in target.rpartition("/")[2] or UNWRITTEN not in find_site(layout, source).traits
    for start in ("", "/") if may_be else ():  # these tools link to no folder
        place = place_of(start + target, source)
        if place and names.exists(place):
            return Resolution(place, (place,), "attachment")
    may_be = "." in target.rpartition("/")[2] and not target.endswith(ANY_SUFFIXES)
    paths = drop_walled(names.named("file", key_of(target)), source) if may_be else ()
    return _find_ending(names, paths, (target,), source, "attachment")


def _find_page(names: Names, target: str, source: str) -> tuple[str, ...]:
    site = find_site(names.layout, source)
    if PAGES not in site.traits:
        return ()
    days = (path for stem in journal_stems(site, target) for path in names.named("stem", key_of(stem)))
    return _keep_of_site(names, site, (*names.named("page", alias_key(target)), *days), source)


def _find_ending(
    names: Names, paths: tuple[str, ...], spellings: tuple[str, ...], source: str, rule: str
) -> Resolution:
    """Return what ends in the first of some spellings that fits, with its case, else without."""
    is_cased = len(paths) < 2 or "Obsidian" not in find_site(names.layout, source).traits  # noqa: PLR2004
    for folded in (False, True) if is_cased else (True,):
        for spelling in spellings:
            if found := _ending_with(paths, spelling, folded=folded):
                return _rank_candidates(names, found, source, rule, spelling, folded=folded)
    return NOTHING


def drop_walled(paths: Sequence[str], source: str, target: str = "") -> tuple[str, ...]:
    """Return the paths without those of other users; the whole path as `target` names one all the same."""
    if not any(path.startswith(_USERS) for path in paths):
        return tuple(paths)
    around, whole = namespaces(source), without_suffix(target).casefold()

    def is_within_reach(path: str) -> bool:
        user = _NAMESPACE.match(path)
        is_walled = user is not None and bool(user["user"]) and user["user"] not in around
        return not is_walled or without_suffix(path).casefold() == whole

    return tuple(filter(is_within_reach, paths))


def _rank_candidates(
    names: Names, found: tuple[str, ...], source: str, rule: str, spelling: str = "", *, folded: bool = False
) -> Resolution:
    """Return those found in the tool's own vault, of the nearest namespace that has any, the best first."""
    site = find_site(names.layout, source) if len(found) > 1 else NO_SITE
    if UNWRITTEN in site.traits:
        file_of = names.layout.file_of
        found = tuple(path for path in found if is_note_of(site, file_of(path))) or found
    if len(found) == 1:
        return Resolution(found[0], found, rule)
    whole = spelling if "/" in spelling else ""
    arranged = _arrange_candidates(found, tuple(namespaces(source)), whole, folded=folded)
    if "Obsidian" in site.traits and spelling and source:  # what somebody names is in no note
        near, top = source.rpartition("/")[0].casefold(), place_in(names.layout, site.folder) or ""
        whole, every = join(top, spelling).casefold(), arranged.folded
        among = [whole] if whole in every else [path for path in every if path.startswith(near)] or every
        least = min(map(len, among))
        taken = {path for path in among if len(path) == least}
        pairs = zip(arranged.ordered, every, strict=True)
        best = tuple(path for path, as_compared in pairs if as_compared in taken)
        return Resolution(best[0], best, rule)
    beside = arranged.by_folder.get(source.rpartition("/")[0], ())
    ordered = (
        (*beside, *(path for path in arranged.ordered if path not in beside)) if beside else arranged.ordered
    )
    return Resolution(ordered[0], ordered, rule)


class _Arranged(NamedTuple):
    """Candidates without regard to the folder of the link: the best first, casefolded, by their folders."""

    ordered: tuple[str, ...]
    folded: tuple[str, ...]
    by_folder: dict[str, dict[str, None]]


# A name that every folder has, such as README, is asked for from each of them: what does not depend on the
# folder is found out once.
@lru_cache(maxsize=256)
def _ending_with(paths: tuple[str, ...], spelling: str, *, folded: bool) -> tuple[str, ...]:
    as_is = str.casefold if folded else str
    ending = "/" + as_is(spelling)
    return tuple(path for path in paths if ("/" + as_is(path)).endswith(ending))


@lru_cache(maxsize=256)
def _arrange_candidates(
    candidates: tuple[str, ...], around: tuple[str, ...], whole: str, *, folded: bool
) -> _Arranged:
    as_is = str.casefold if folded else str
    complete = {as_is(namespace + whole) for namespace in around} if whole else set()
    found = [path for path in candidates if as_is(path) in complete] or candidates
    nearest = next(filter(None, ([path for path in found if path.startswith(n)] for n in around)))
    ordered = sorted(set(nearest), key=lambda path: (path.count("/"), path))
    by_folder: dict[str, dict[str, None]] = {}
    for path in ordered:
        by_folder.setdefault(path.rpartition("/")[0], {})[path] = None
    return _Arranged(tuple(ordered), tuple(map(str.casefold, ordered)), by_folder)


def spell(
    names: Names,
    link: Link,
    path: str,
    source: str,
    *,
    was: str = "",
    here: str = "",
    is_from_disk: bool = True,
) -> str:
    """Return the target that means `path` and nothing else, as a link in the memory `source` would say it.

    A path stays a path: relative or from the root, with or without `./` and `.md`. An identifier keeps its
    number of parts, or stays complete, where that is not ambiguous; else it gets as many more as it needs.

    Args:
        path: a memory, or an attachment.
        was: what the link has meant so far.
        here: the memory that the link stood in, where that has moved.
        is_from_disk: whether a relative path from or to a mounted memory is one from where its file stands.
    """
    written = nfc(link.target)
    scheme = _DENDRON_VAULT.match(written)
    if scheme and not is_path(link):
        inner = link._replace(target=written[scheme.end() :])
        return scheme[0] + spell(names, inner, path, source, was=was)
    if is_path(link):
        return _spell_path(names, link, path, source, was or path, here or source, is_from_disk=is_from_disk)
    if path not in names.named("stem", key_of(path)):
        bare = written.rstrip("/")
        ways: tuple[str, ...] = (path, route(path, source))
        if bare != (was or path):
            is_route = bare == route(was or path, source)
            ways = ways[::-1] if is_route else (shortest(names, path, source, parts=bare.count("/") + 1),)
        fitting = (way + written[len(bare) :] for way in ways if means(resolve(names, way, source), path))
        return next(fitting, "") or _spell_path(names, link, path, source, was or path, here or source)
    site, was = find_site(names.layout, source), was or path
    if PAGES in site.traits:
        old, new = list_page_names(site, was), list_page_names(site, path)
        at = next((n for n, name in enumerate(old) if name.casefold() == written.casefold()), 0)
        page = _keep_case(new[min(at, len(new) - 1)], written, old[at])
        if means(resolve(names, page, source), path):
            return page
    identifier = _complete_path(names, written, path, was, source)
    if not (identifier and means(resolve(names, identifier, source), path)):
        identifier = shortest(names, path, source, parts=written.count("/") + 1)
    suffix = _suffix_of(path)
    if _says_suffix(written, was) and not identifier.endswith(suffix):
        identifier += suffix
    cased = _keep_case(identifier, written, was)
    return cased if cased == identifier or means(resolve(names, cased, source), path) else identifier


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


def is_way(names: Names, link: Link, path: str, source: str) -> bool:
    """Return whether a link is the way from `source` to `path`, and to be that, not a name that is found."""
    site, said = find_site(names.layout, source), link.target.removeprefix("./")
    is_chosen = site.traits & {BY_NAME, SITE} and (link.target[:1] == "." or RELATIVE in site.config)
    return bool(is_chosen) and without_suffix(route(path, source)) == without_suffix(said)


def is_detour(target: str, before: str, after: str) -> bool:
    """Return whether a relative path leads to one place from both, and is the shortest from `before` only."""
    bare = target.removeprefix("./").rstrip("/")
    place = place_from(bare, after)
    return place_from(bare, before) == place and route(place, before) == bare != route(place, after)


def as_written(link: Link, way: str) -> str:
    """Put `./` before a relative path where the link has it, or where it would be misread."""
    if link.target.endswith("/") and not way.endswith("/"):
        way += "/"
    if way.startswith("../"):  # a mark that is kept is there when the way leads down again
        return f"./{way}" if link.target.startswith("./") and link.kind in PATH_KINDS else way
    marked = link.target.startswith("./") or link.kind in {"wikilink", "field"}
    return f"./{way}" if marked or text_link.external(way) else way


def _spell_path(
    names: Names, link: Link, path: str, source: str, was: str, here: str, *, is_from_disk: bool = False
) -> str:
    for way in _list_ways(names, link, path, source, was, here):
        if means(resolve_link(names, link._replace(target=way), source), path):
            return way
    if link.target.endswith("/") and path.endswith(ANY_SUFFIXES):
        link = link._replace(target=link.target.rstrip("/"))
    if link.target.startswith("/"):
        whole = f"/{path}"
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


def _list_ways(names: Names, link: Link, path: str, source: str, was: str, here: str) -> Iterator[str]:
    """Yield what a path may say in the way in which it has said `was` in the memory `here`.

    A path from a root stays one from the same root, a name a name, an address one from that of the page.
    """
    layout, site, written = names.layout, find_site(names.layout, here), nfc(link.target)
    ends = written[len(written.rstrip("/")) :] or ".html" * written.endswith(".html")
    said, forms = written.removesuffix(ends), (str, without_suffix, page_of, address_of, _dash, _post_of)
    old, new = layout.file_of(was), layout.file_of(path)
    is_loose = link.kind == "ref" or ("Docusaurus" in site.traits and place_from(said, here) != was)
    for start, folder in list_roots(site, layout, here):
        begin = start if written.startswith(start) else start.lstrip("/") if is_loose else None
        if begin is not None and is_under(old, folder) and is_under(new, folder):
            rest = relative(old, folder)
            fitting = (form for form in forms if begin + form(rest) == said)
            yield from (begin + form(relative(new, folder)) + ends for form in fitting)
    if written[0] in "/@":
        return
    for seen_from, now in ((here, source), (f"{page_of(here)}/_", f"{page_of(source)}/_")):
        form = next((f for f in forms[1:] if route(f(was), seen_from) == said.removeprefix("./")), None)
        if form:
            if ends or seen_from != here or form not in forms[:2]:
                yield as_written(link, route(form(path), now) + ends)
            break
    is_clamped = said.startswith("../") and without_suffix(place_from(said, here)) != without_suffix(was)
    if is_clamped and BY_NAME in site.traits:
        whole = relative(path, place_in(layout, site.folder) or "")
        yield "../" * said.count("../") + (whole if _says_suffix(said, was) else without_suffix(whole))
    is_name = f"/{was}".endswith((f"/{said}", f"/{said}{MARKDOWN}"))
    if is_name and not is_way(names, link, was, here) and (BY_NAME in site.traits or link.kind == "ref"):
        parts, suffix = said.count("/") + 1, _suffix_of(path) if _says_suffix(said, was) else ""
        if whole := _complete_path(names, said, path, was, source):
            yield whole + suffix
        yield "/".join(without_suffix(path).split("/")[-parts:]) + suffix
        yield shortest(names, path, source, parts=parts) + suffix


def _complete_path(names: Names, written: str, path: str, was: str, source: str) -> str:
    """Return the whole path, seen from a namespace or the tool's folder, where the old one was whole."""
    old = without_suffix(written) if _says_suffix(written, was) else written
    top = place_in(names.layout, find_site(names.layout, source).folder)
    for folder in (*namespaces(source), *([f"{top}/"] if top else ())) if "/" in old else ():
        if folder + old == without_suffix(was) and path.startswith(folder):
            return without_suffix(path)[len(folder) :]
    return ""


def _keep_case(identifier: str, written: str, was: str) -> str:
    """Return an identifier with its parts in the case in which `written` has those of `was`."""
    parts = identifier.split("/")
    said = zip(
        reversed(written.split("/")), reversed(was.removesuffix(_suffix_of(was)).split("/")), strict=False
    )
    for number, (part, old) in enumerate(said, 1):
        stem = part.removesuffix(_suffix_of(was)) if number == 1 else part
        if number > len(parts) or stem.casefold() != old.casefold():
            break
        new = parts[-number]
        shared = len(commonprefix((old, new))) if len(stem) == len(old) else 0
        if shared:
            parts[-number] = stem[:shared] + new[shared:]
        elif new and part[0] != old[0] and stem[1:] == old[1:]:
            parts[-number] = (new[0].upper() if part[0].isupper() else new[0].lower()) + new[1:]
    return "/".join(parts)


def _suffix_of(path: str) -> str:
    return path[len(without_suffix(path)) :]


def _says_suffix(written: str, path: str) -> bool:
    suffix = _suffix_of(path)
    return bool(suffix) and written.endswith(suffix)
