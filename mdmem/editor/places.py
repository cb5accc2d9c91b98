"""Places: what stands at an offset of a memory in an editor, where it leads, and where it is used.

Every span is in code points of the text that it is of. Which memories may be concerned is what the index
says, by the keys of links; what stands there, and where, is read in each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document import anchor
from mdmem.document.anchor import BLOCK_MARK
from mdmem.document.document import ANY_SUFFIXES, Document, without_suffix
from mdmem.document.markdown.blocks import Block, Heading
from mdmem.document.markdown.inline import Citation, Link, Tag
from mdmem.document.text.lines import Lines
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, fenced, first_of, visible
from mdmem.document.tree import Node
from mdmem.editor.completions import escaped, explain
from mdmem.errors import CANNOT_READ, EditRefused, MdmemError, plural
from mdmem.index.code.citations import Judgement, judge
from mdmem.index.code.workspace import Source, Workspace
from mdmem.index.database import key_of, tag_key
from mdmem.index.links import move, rename
from mdmem.index.links.outside import move_files
from mdmem.index.links.references import backlinks, file_beside, file_named
from mdmem.index.links.resolve import PATH_KINDS, has_key, resolve_link
from mdmem.vault.paths import is_under, join, relative
from mdmem.vault.plan import EditPlan
from mdmem.vault.walk import tree

if TYPE_CHECKING:
    from mdmem.editor.overlay import Overlay

LINK, ANCHOR, CITATION, TAG = "link", "anchor", "citation", "tag"
HEADING, BLOCK, ID, KEY, VALUE = "heading", "block", "id", "key", "value"
_MOST_SHOWN = 1_000  # characters of a preview
_MOST_LINES = 24
_NAMED = 5  # of the memories that link to one
_NOWHERE = Span(0, 0)
_TICKS = regex("`+")


class Spot(NamedTuple):
    """A place in a file.

    Attributes:
        path: the memory that it is; empty for any other file.
        span: the place, in the text of `lines`.
        lines: the line table of its text; None where there is none, as of an image.
    """

    file: str
    path: str
    span: Span
    lines: Lines | None


class Element(NamedTuple):
    """What stands at an offset.

    Attributes:
        kind: "link", "anchor", "citation", "tag", "heading", "block", "id", "key" or "value".
        span: what of it has a name: the target of a link, its anchor, a title.
        what: all of it; None in the frontmatter.
    """

    kind: str
    span: Span
    name: str
    what: Link | Citation | Tag | Heading | Block | None = None


class Goal(NamedTuple):
    """Where something leads.

    Attributes:
        spot: what to go to: a title, a block, the lines of code, or a file as a whole.
        whole: all that is meant: the section, with what stands below its title.
    """

    spot: Spot
    whole: Span
    origin: Span


class Hover(NamedTuple):
    """A description of the text in a span, as Markdown without images, HTML and links."""

    span: Span
    text: str


class OutlineItem(NamedTuple):
    """A heading, the span of its section and of its title, and the headings below it."""

    name: str
    span: Span
    name_span: Span
    children: list[OutlineItem]


class NamedPlace(NamedTuple):
    """Something that has a name: a "memory", a "heading" or a "tag"; `container` is where it stands."""

    name: str
    kind: str
    container: str
    spot: Spot


class NamedPlaces(NamedTuple):
    """What was found, and how many more there are."""

    items: tuple[NamedPlace, ...]
    left_out: int


# -- what stands there -------------------------------------------------------------------------------------


def find_standing(document: Document, offset: int) -> Element | None:
    """Return what stands at an offset, or ends there; None for mere text."""
    found = (standing for reach, standing in _list_standings(document) if _is_at(reach, offset))
    standing = next(found, None) or _find_field(document, offset)
    if standing is None or not isinstance(standing.what, Link):
        return standing
    link = standing.what
    is_anchor = link.anchor and _is_at(link.anchor_span, offset) and offset != link.target_span.end
    if is_anchor or not link.target:
        return Element(ANCHOR, link.anchor_span, document.text[slice(*link.anchor_span)], link)
    return standing


def _list_standings(document: Document) -> Iterator[tuple[Span, Element]]:
    """Yield what has a name in a memory, each with the span from which it is reached."""
    text = document.text
    for link in document.links:
        yield link.span, Element(LINK, link.target_span, text[slice(*link.target_span)], link)
    for citation in document.citations:
        yield citation.span, Element(CITATION, citation.span, text[slice(*citation.span)], citation)
    for tag in document.tags:
        mark = text.startswith("#", tag.span.start - 1)
        yield Span(tag.span.start - mark, tag.span.end), Element(TAG, tag.span, tag.name, tag)
    for block in document.blocks:
        yield (
            Span(block.id_span.start - 1, block.id_span.end),
            Element(BLOCK, block.id_span, block.id, block),
        )
    for heading in document.headings:
        span = heading.title_span
        yield Span(heading.span.start, span.end), Element(HEADING, span, text[slice(*span)], heading)


def _is_at(span: Span, offset: int) -> bool:
    return span.start <= offset <= span.end


def _find_field(document: Document, offset: int) -> Element | None:
    """Return the key or the value of a field that stands at an offset."""
    for path, member in document.tree.walk() if document.tree else ():
        name = ".".join(map(str, path))
        if _is_at(member.key_span, offset):
            return Element(KEY, member.key_span, name)
        if _is_scalar_at(member.node, offset):
            return Element(ID if path == ("id",) else VALUE, _trim_quotes(document, member.node), name)
        if member.node.kind == "list" and any(_is_scalar_at(item, offset) for item in member.node.items):
            return Element(VALUE, member.node.span, name)
    return None


def _is_scalar_at(node: Node, offset: int) -> bool:
    return node.kind == "scalar" and node.span.start < node.span.end and _is_at(node.span, offset)


def _trim_quotes(document: Document, node: Node) -> Span:
    is_quoted = document.text[node.span.start] in "\"'" and node.span.end - node.span.start > 1
    return Span(node.span.start + is_quoted, node.span.end - is_quoted)


# -- where it leads ----------------------------------------------------------------------------------------


def find_targets(around: Overlay, document: Document, offset: int) -> list[Goal]:
    """Return where what stands at an offset leads, the likeliest first."""
    standing = find_standing(document, offset)
    if standing is None or standing.what is None:
        return []
    if isinstance(standing.what, Link):
        found = _follow_link(around, document, standing.what)
    elif isinstance(standing.what, Citation):
        spot = _judge_citation(around, document, standing.what)[1]
        found = [(spot, spot.span)] if spot else []
    elif isinstance(standing.what, Tag):
        found = []
    else:
        found = [(spot_in(around, document, standing.span), standing.what.span)]
    origin = standing.what.span if isinstance(standing.what, Link) else standing.span
    return [Goal(spot, whole, origin) for spot, whole in found]


def spot_in(around: Overlay, document: Document, span: Span) -> Spot:
    """Return a place in a memory."""
    return Spot(around.file_of(document.path), document.path, span, document.lines)


def _follow_link(around: Overlay, document: Document, link: Link) -> list[tuple[Spot, Span]]:
    meant = resolve_link(around, link, document.path)
    if meant.rule == "attachment" and meant.path is not None:
        file = os.path.join(around.vault.root, join(around.base, meant.path))
        return [(Spot(file, "", _NOWHERE, None), _NOWHERE)]
    found = []
    for path in meant.candidates:
        with suppress(MdmemError):
            found.append(_find_anchor(around, around.read(path), link.anchor))
    if found or not link.target:
        return found
    beside = (file_beside if link.kind in PATH_KINDS else file_named)(around, document.path, link.target)
    file = os.path.join(around.vault.workspace, beside or "")
    return [(Spot(file, "", _NOWHERE, None), _NOWHERE)] if beside else []


def _find_anchor(around: Overlay, document: Document, mark: str) -> tuple[Spot, Span]:
    """Return what an anchor names in a memory, and all of it; without one, the memory as a whole."""
    target = anchor.find(document, mark) if mark else None
    if target is None:
        return spot_in(around, document, _NOWHERE), _NOWHERE
    titles = (heading.title_span for heading in document.headings if heading.line == target.line)
    content = document.text[slice(*target.span)].rstrip("\r\n")
    block = Span(target.span.start, target.span.start + len(content))
    return spot_in(around, document, block if target.rule == "block" else next(titles, block)), target.span


def _judge_citation(around: Overlay, document: Document, citation: Citation) -> tuple[Judgement, Spot | None]:
    """Return what became of a citation, and where the code is now."""
    seen = around.first_seen(document.path)
    known = seen.get((citation.path, citation.first, citation.last, citation.symbol), "")
    with Workspace.of(around.vault, around.unsaved) as workspace:
        judgement = judge(workspace, around.in_workspace(document.path), citation, known)
        source = workspace.current(judgement.path)
        file = os.path.join(workspace.root, judgement.path)
        if not isinstance(source, Source):
            return judgement, Spot(file, "", _NOWHERE, None) if source and source.inside else None
        lines = Lines(source.data.decode("utf-8", "replace"))
        first, last = judgement.first, judgement.last or judgement.first
        if first is None or last is None or not 1 <= first <= last <= len(lines):
            return judgement, Spot(file, "", _NOWHERE, lines)
        return judgement, Spot(file, "", Span(lines.span(first).start, lines.content_end(last)), lines)


def list_links(around: Overlay, document: Document) -> list[tuple[Span, Spot]]:
    """Return the links and citations of a memory that lead somewhere: the span of each, and where to."""
    found = []
    for link in document.links:
        target = next(iter(_follow_link(around, document, link)), None)
        if target:
            found.append((link.target_span if link.target else link.span, target[0]))
    for citation in document.citations:
        _, spot = _judge_citation(around, document, citation)
        found += [(citation.span, spot)] if spot else []
    return found


# -- where it is used --------------------------------------------------------------------------------------


def find_uses(
    around: Overlay, document: Document, offset: int, *, declaration: bool, is_over: Callable[[], bool]
) -> list[Spot]:
    """Return where what stands at an offset is used: a memory, a heading, a block or a tag.

    In the frontmatter, and where the memory has no heading yet, that is the memory itself.

    Args:
        declaration: also return where it stands itself.
        is_over: whether nobody wants to know any more; it is asked at each link or tag that is looked at.
    """
    standing = find_standing(document, offset)
    if standing and isinstance(standing.what, Tag):
        return list(_find_tagged(around, standing.what.name, is_over))
    if standing and isinstance(standing.what, Link):
        meant = resolve_link(around, standing.what, document.path)
        if meant.path is None:
            return []
        mark = standing.what.anchor if standing.kind == ANCHOR else ""
        path = meant.path
    elif standing and isinstance(standing.what, Block):
        path, mark = document.path, BLOCK_MARK + standing.what.id
    elif standing and isinstance(standing.what, Heading):
        number = document.headings.index(standing.what)
        path, mark = document.path, anchor.headings(document.sections)[number].slug
    elif offset < document.body_span.start or (standing and standing.kind in {ID, KEY, VALUE}):
        path, mark = document.path, ""
    else:
        return []
    found = list(_find_links(around, path, mark, is_over))
    if declaration and path.endswith(around.vault.suffixes):
        with suppress(MdmemError):
            found.append(_find_anchor(around, around.read(path), mark)[0])
    return found


def _find_links(around: Overlay, path: str, mark: str, is_over: Callable[[], bool]) -> Iterator[Spot]:
    """Yield the links to a memory or an attachment; with an anchor, those to what it names."""
    keys = {*around.keys_of(path), key_of(path)}
    fits = _match_anchor(around, path, mark) if mark else None
    itself = (path,) if path.endswith(around.vault.suffixes) else ()
    for source in sorted({*around.sources(keys), *itself}):
        with suppress(*CANNOT_READ):
            document = around.read(source)
            for link in document.links:
                if is_over():
                    return
                if not has_key(link, keys) if link.target else not mark:
                    continue
                if fits and not fits(link.anchor):
                    continue
                if path in resolve_link(around, link, source).candidates:
                    yield spot_in(around, document, link.span)


def _match_anchor(around: Overlay, path: str, mark: str) -> Callable[[str], bool]:
    """Return the test of an anchor: whether it names the same in a memory as `mark`."""
    if mark.startswith(BLOCK_MARK):
        return lambda other: other.casefold() == mark.casefold()
    headings = around.anchors(path).headings
    wanted = anchor.match(headings, mark)

    def fits(other: str) -> bool:
        found = anchor.match(headings, other) if other and not other.startswith(BLOCK_MARK) else None
        return bool(found and wanted and found.indexes[0] == wanted.indexes[0])

    return fits


def _find_tagged(around: Overlay, name: str, is_over: Callable[[], bool] = bool) -> Iterator[Spot]:
    wanted = tag_key(name)
    for path in around.tagged(name):
        with suppress(*CANNOT_READ):
            document = around.read(path)
            for tag in document.tags:
                if is_over():
                    return
                if f"{tag_key(tag.name)}/".startswith(f"{wanted}/"):
                    yield spot_in(around, document, tag.span)


# -- what there is to say ----------------------------------------------------------------------------------


def describe(around: Overlay, document: Document, offset: int) -> Hover | None:
    """Return what there is to say of a link, a citation or a tag."""
    standing = find_standing(document, offset)
    if standing is None:
        return None
    if isinstance(standing.what, Link):
        text = _describe_link(around, document, standing.what)
    elif isinstance(standing.what, Citation):
        text = _describe_citation(around, document, standing.what)
    elif isinstance(standing.what, Tag):
        paths = around.tagged(standing.what.name)
        text = f"{plural(len(paths), 'memory')}: {_name_few(paths)}"
    elif standing.kind in {KEY, VALUE, ID}:
        text = _describe_field(around, document, standing.name)
    else:
        return None
    return Hover(standing.what.span if isinstance(standing.what, Link) else standing.span, text)


def _describe_link(around: Overlay, document: Document, link: Link) -> str:
    meant = resolve_link(around, link, document.path)
    found = _follow_link(around, document, link)
    if not found:
        return f"There is no memory {_code(link.target or document.path)}."
    spot, whole = found[0]
    if not spot.path or spot.lines is None:
        return f"The file {_code(os.path.relpath(spot.file, around.vault.workspace))}."
    sources = list(dict.fromkeys(each.path for each in backlinks(around, spot.path)))
    parts = [_code(spot.path)]
    if meant.ambiguous:
        parts.append(f"It may also mean {_name_few(meant.candidates[1:])}.")
    with suppress(MdmemError):
        target = around.read(spot.path)
        parts.append(_quote(target.text[slice(*whole)] if whole.end else target.body, "markdown"))
    links = f"Linked from {plural(len(sources), 'memory')}: {_name_few(sources)}"
    return "\n\n".join((*parts, links if sources else "Nothing links to it."))


def _describe_citation(around: Overlay, document: Document, citation: Citation) -> str:
    judgement, spot = _judge_citation(around, document, citation)
    against = f" (compared with {judgement.against})" if judgement.against else ""
    reason = f": {escaped(judgement.reason)}" if judgement.reason else ""
    parts = [f"{_code(judgement.path)} is {judgement.state}{against}{reason}."]
    if spot and spot.lines and spot.span.end:
        suffix = os.path.splitext(judgement.path)[1].removeprefix(".")
        parts.append(_quote(spot.lines.text[slice(*spot.span)], suffix))
    return "\n\n".join(parts)


def _describe_field(around: Overlay, document: Document, name: str) -> str:
    path = [int(key) if key.isdecimal() else key for key in name.split(".")]
    guide = around.vault.schemas.fields(document, path[:-1]).get(str(path[-1]))
    return explain(guide) if guide else ""


def _quote(text: str, language: str) -> str:
    lines = clipped(text.strip("\r\n"), _MOST_SHOWN).splitlines()
    more = ["…"] if len(lines) > _MOST_LINES else []
    return fenced("\n".join(lines[:_MOST_LINES] + more), language)


def _code(text: str) -> str:
    """Return a text as code, in which nothing means anything."""
    shown = visible(" ".join(text.split()))
    ticks = "`" * (max(map(len, _TICKS.findall(shown)), default=0) + 1)
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _name_few(paths: list[str] | tuple[str, ...]) -> str:
    return first_of([_code(path) for path in paths], _NAMED)


# -- names -------------------------------------------------------------------------------------------------


def outline(document: Document) -> list[OutlineItem]:
    """Return the headings of a memory, each with those below it."""
    top: list[OutlineItem] = []
    open_items: list[tuple[int, OutlineItem]] = []
    for section in document.sections:
        heading = section.heading
        name = " ".join(anchor.plain(heading.title).split()) or "(empty)"
        item = OutlineItem(name, section.span, heading.title_span, [])
        while open_items and open_items[-1][0] >= heading.level:
            open_items.pop()
        (open_items[-1][1].children if open_items else top).append(item)
        open_items.append((heading.level, item))
    return top


def find_symbols(around: Overlay, query: str, limit: int) -> NamedPlaces:
    """Return the memories, tags and headings, in this order, with all words of a query in their names."""
    words = query.casefold().split()
    found: list[tuple[str, str, str, int]] = []

    def take(name: str, kind: str, path: str, number: int, text: str = "") -> None:
        if all(word in f"{name} {text}".casefold() for word in words):
            found.append((name, kind, path, number))

    for path, each in sorted(around.outlines.items()):
        take(each.title or path.rpartition("/")[2], "memory", path, 0, path)
    for name, _ in around.tags():
        take(f"#{name}", "tag", "", 0)
    for path, number, title in around.titles():
        take(title, "heading", path, number)
    items: list[NamedPlace] = []
    for name, kind, path, number in found[:limit]:
        with suppress(MdmemError, IndexError, StopIteration):
            items.append(_locate_symbol(around, name, kind, path, number))
    return NamedPlaces(tuple(items), max(0, len(found) - limit))


def _locate_symbol(around: Overlay, name: str, kind: str, path: str, number: int) -> NamedPlace:
    if kind == "tag":
        spot = next(_find_tagged(around, name.removeprefix("#")))
        return NamedPlace(name, kind, spot.path, spot)
    if kind == "memory":
        return NamedPlace(name, kind, path, Spot(around.file_of(path), path, _NOWHERE, Lines("")))
    document = around.read(path)
    return NamedPlace(name, kind, path, spot_in(around, document, document.headings[number].title_span))


def find_renamable(around: Overlay, document: Document, offset: int) -> Element | None:
    """Return what stands at an offset and has a name of its own; see `plan_rename`."""
    element = find_standing(document, offset)
    if element is None or element.kind in {CITATION, KEY, VALUE}:
        return None
    if not isinstance(element.what, Link):
        return element
    meant = resolve_link(around, element.what, document.path)
    if meant.path is None or meant.ambiguous or not meant.path.endswith(around.vault.suffixes):
        return None
    if element.kind == LINK:
        return element._replace(name=without_suffix(meant.path.rpartition("/")[2]))
    return element


def plan_rename(around: Overlay, document: Document, offset: int, new: str) -> EditPlan:
    """Return the plan that gives what stands at an offset another name, wherever it is named.

    At a link this is the memory that it leads to, at an anchor the heading or block.

    Args:
        new: the new name; of a memory its file's, with its suffix or without, or a path from the namespace.

    Raises:
        EditRefused: nothing there has a name, the link is ambiguous, or the name cannot be one.
        AlreadyExists, PathRefused: the name is taken, or cannot be that of a memory.
    """
    known, standing = move.known(around), find_standing(document, offset)
    what = standing.what if standing else None
    if standing and standing.kind == ID:
        return rename.rename_id(known, document.path, new)
    if isinstance(what, Heading):
        return rename.retitle_section(known, document.path, document.headings.index(what), new)
    if isinstance(what, Block):
        return rename.rename_block(known, document.path, what.id, new)
    if isinstance(what, Tag):
        tagged = [around.read(path) for path in around.tagged(what.name)]
        return rename.rename_tag(tagged, what.name, new, [name for name, _ in around.tags()])
    if isinstance(what, Link):
        return _rename_target(
            around, document, what, new, of_anchor=standing is not None and standing.kind == ANCHOR
        )
    raise document.refused(
        "nothing that has a name stands here",
        "place the cursor on a link, a heading, a block id, a tag or an id",
    )


def _rename_target(around: Overlay, document: Document, link: Link, new: str, *, of_anchor: bool) -> EditPlan:
    known, meant = move.known(around), resolve_link(around, link, document.path)
    if meant.path is None or not meant.path.endswith(around.vault.suffixes):
        raise document.refused(f"the link to {link.target!r} leads to no memory")
    if meant.ambiguous:
        others = ", ".join(meant.candidates[1:])
        raise document.refused(f"the link to {link.target!r} may also mean {others}", "name its folder first")
    if not of_anchor:
        return move.move(known, {meant.path: _path_for(meant.path, new)})
    target = around.read(meant.path)
    if link.anchor.startswith(BLOCK_MARK):
        return rename.rename_block(known, meant.path, link.anchor, new)
    found = anchor.match(anchor.headings(target.sections), link.anchor)
    if found is None or found.ambiguous:
        raise document.refused(f"{meant.path} has no one heading {link.anchor!r}")
    return rename.retitle_section(known, meant.path, found.indexes[0], new)


def _path_for(path: str, new: str) -> str:
    suffix = next(each for each in ANY_SUFFIXES if path.endswith(each))
    name = new if new.endswith(suffix) else new + suffix
    return name if "/" in name else join(path.rpartition("/")[0], name)


def plan_moves(around: Overlay, moves: Mapping[str, str]) -> EditPlan:
    """Plan the edits of links and citations when an editor moves files or folders.

    The editor moves the files: the plan only has edits. What leaves the namespace, and what comes from
    elsewhere, is not followed.

    Raises:
        EditRefused: a memory would leave the namespace, or a wikilink cannot name the new path.
    """
    root, workspace = os.path.join(around.vault.root, around.base).rstrip(os.sep), around.vault.workspace
    left_out: list[str] = []
    inside = dict(_list_inside(around, root, moves, left_out))
    outside = {
        relative(old, workspace): relative(new, workspace)
        for old, new in moves.items()
        if is_under(old, workspace) and is_under(new, workspace) and not is_under(root, old)
    }
    folders = {
        relative(old, root): relative(new, root)
        for old, new in moves.items()
        if old != root and is_under(old, root) and is_under(new, root) and os.path.isdir(old)
    }
    plan = move_files(around, inside, outside, folders)
    edited = tuple(change._replace(move_to=None) for change in plan.changes if change.edits)
    return plan._replace(changes=edited, left_out=(*plan.left_out, *left_out))


def _list_inside(
    around: Overlay, root: str, moves: Mapping[str, str], left_out: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield the old and the new path of each file that moves; what cannot be read is left out."""
    for old, new in moves.items():
        for file in _list_files(old) if is_under(old, root) and old != root else ():
            path, goal = relative(file, root).replace(os.sep, "/"), new + file[len(old) :]
            if path.endswith(around.vault.suffixes):
                if not is_under(goal, root):
                    reason = "it would leave the memories, and links to it would lead nowhere"
                    raise EditRefused(path=path, reason=reason, remedy="delete it, or move it back")
                try:
                    around.read(path)
                except MdmemError as error:
                    left_out.append(error.message)
                    continue
            if is_under(goal, root):
                yield path, relative(goal, root).replace(os.sep, "/")


def _list_files(place: str) -> Iterator[str]:
    """Yield the files at and below a place; none is hidden."""
    if not os.path.isdir(place):
        yield place
        return
    for folder, folders, names in tree(place):
        folders[:] = (name for name in folders if not name.startswith("."))
        yield from (os.path.join(folder, name) for name in names if not name.startswith("."))
