"""Renaming what links and tags name in memories: headings, block ids, ids, tags. Each gives one plan.

As in a move, a link is asked what it means before and after, and written again where the two differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from mdmem.document import anchor, field, relink, section
from mdmem.document.anchor import BLOCK_MARK, AnchorHeading
from mdmem.document.document import Document
from mdmem.document.edit import TextEdit, spliced
from mdmem.document.markdown.blocks import Section
from mdmem.document.markdown.inline import Link
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.errors import EditRefused, FieldNotFound, NamedNotFound, SectionAmbiguous, SectionNotFound
from mdmem.index.database import key_of, keys_of, stem_keys, tag_key
from mdmem.index.links.move import Known, Shift
from mdmem.index.links.names import ChangedNames
from mdmem.index.links.resolve import has_key, resolve_link, turn_links
from mdmem.vault.plan import Change, EditPlan, rewritten

_NESTED = "#"
_NAMED = 10  # of the tags that there are
_BLOCK_ID = regex(r"[A-Za-z0-9-]+")
# What gives a heading an id, or a style, and is not shown: `## Setup {#install}`.
_ATTRIBUTES = regex(r"[ \t]{0,9}\{:?[ \t]*+[.#][^{}]*+\}\Z")
_NOT_IN_IDS = regex(r"[#|\[\]`\r\n]|\A[./\s]|\s\Z")
_NOT_IN_WIKILINKS = regex(r"[#|^\[\]`\\\s]+")

# What the anchor of a link to the memory becomes, and whether it is sure; None when it stays.
_NewAnchor = Callable[[Link, bool], tuple[str, bool] | None]


def rename_heading(known: Known, path: str, old: str, new: str) -> EditPlan:
    """Return the plan that gives a heading another title, and every anchor that named it.

    An anchor keeps its style: the title, or the slug. Anchors of other headings follow where a slug with a
    number changes. An anchor that could mean several headings stays as it is; the plan says so (`left_out`)
    where it means another one by that.

    Args:
        old: its heading, or heading path, as `mdmem.document.section.find_section` reads it; else as a reader
            sees it, its slug (`setup-1`), or the line that it stands in (`L12`).

    Raises:
        EditRefused: the title cannot be one, or stands there already; or no anchor could name it.
    """
    return retitle_section(known, path, _find_heading(known.read(path), old), new)


def _find_heading(document: Document, old: str) -> int:
    try:
        return document.sections.index(section.find_section(document, old))
    except (SectionNotFound, SectionAmbiguous) as error:
        among = anchor.headings(document.sections)
        found = [n for n, each in enumerate(among) if old in {f"L{each.line}", each.slug}]
        found = found or [
            n for n, each in enumerate(among) if old == anchor.plain(_ATTRIBUTES.sub("", each.path[-1]))
        ]
        if len(found) == 1:
            return found[0]
        if isinstance(error, SectionAmbiguous) and len(error.own) < len(error.lines):
            raise error.but(own=tuple(f"L{line}" for line in error.lines)) from None
        raise


def retitle_section(known: Known, path: str, number: int, new: str) -> EditPlan:
    """Return the plan that gives the heading of the section `number`, from 0 on, another title."""
    document = known.read(path)
    sections = document.sections
    edit, after = _retitle_heading(document, number, new.strip())
    before = anchor.headings(sections)
    renamed = _Renamed(path, before, anchor.headings(after), number)
    return _plan_reanchoring(known, document, edit, renamed.anchor, f"rename a heading of {path}")


def rename_block(known: Known, path: str, old: str, new: str) -> EditPlan:
    """Return the plan that gives a block another id, and every anchor that named it; ids without their `^`.

    Raises:
        NamedNotFound: no block has the old id.
        EditRefused: the new id cannot be one, or is taken; or several blocks have the old one.
    """
    document = known.read(path)
    old, new = old.removeprefix(BLOCK_MARK), new.removeprefix(BLOCK_MARK)
    blocks = [block for block in document.blocks if block.id == old]
    if not blocks:
        raise NamedNotFound(kind="block id", name=old, near=tuple(block.id for block in document.blocks))
    if len(blocks) > 1:
        lines = ", ".join(str(block.line) for block in blocks)
        raise EditRefused(path=path, reason=f"the block id ^{old} stands in lines {lines}")
    if not _BLOCK_ID.fullmatch(new):
        remedy = "use letters, digits and hyphens"
        raise EditRefused(path=path, reason=f"{new!r} cannot be a block id", remedy=remedy)
    twin = next((b for b in document.blocks if b.id.casefold() == new.casefold() and b.id != old), None)
    if twin:
        raise EditRefused(path=path, reason=f"the block id ^{twin.id} stands in line {twin.line} already")

    def new_anchor(link: Link, _: bool) -> tuple[str, bool] | None:
        place = anchor.find(document, link.anchor) if link.anchor.startswith(BLOCK_MARK) else None
        means_it = place is not None and place.line == blocks[0].line
        return (BLOCK_MARK + new, not place.ambiguous) if place and means_it else None

    edit = TextEdit(*blocks[0].id_span, new)
    return _plan_reanchoring(known, document, edit, new_anchor, f"rename ^{old} of {path} to ^{new}")


def rename_id(known: Known, path: str, new: str) -> EditPlan:
    """Return the plan that gives a memory another `id`, and every wikilink that used the old one.

    Links that would mean this memory by its new id, and mean another one now, are written as paths.

    Raises:
        FieldNotFound: the memory has no id.
        EditRefused: the new id cannot be one, or another memory has it.
    """
    document = known.read(path)
    old = document.fields.get("id")
    if old is None or isinstance(old, list | dict):
        raise FieldNotFound(path=path, key="id", near=tuple(document.fields))
    if not new or _NOT_IN_IDS.search(new):
        remedy = "leave out # | [ ] and backticks, and do not begin with a dot or slash"
        raise EditRefused(path=path, reason=f"{new!r} cannot be an id that links use", remedy=remedy)
    names = ChangedNames(known.names)
    taken = [other for other in names.named("id", new) if other != path]
    if taken:
        raise EditRefused(path=path, reason=f"{taken[0]} has the id {new!r} already")
    after = ChangedNames(names, lost={("id", str(old)): (path,)}, added={("id", new): (path,)})
    shift = Shift(known, names, after, {}, ids={path: new})
    keys = {key_of(str(old)), key_of(new)}
    edits = (*field.set_field(document, "id", new), *shift.edits(document, path, path, keys))
    changes = [Change(path=path, before=document, edits=edits), *shift.others(keys, [path])]
    message = f"rename the id {old} of {path} to {new}"
    return EditPlan(changes=tuple(changes), message=message, left_out=tuple(shift.left_out))


def rename_tag(documents: Iterable[Document], old: str, new: str, tags: Iterable[str]) -> EditPlan:
    """Plan to rename a tag, and the tags under it (`old/part`), in body and frontmatter.

    Args:
        old, new: the names, with `#` or without.
        tags: every tag that there is.

    Raises:
        NamedNotFound: none of the documents has the tag.
        EditRefused: the new name cannot be a tag where the old one stands, or is taken.
    """
    old, new = old.removeprefix("#"), new.removeprefix("#")
    changes, made = [], set()
    for document in documents:
        edits = [
            TextEdit(*tag.span, renamed)
            for tag in document.tags
            if (renamed := _renamed_tag(tag.name, old, new)) is not None
        ]
        if edits:
            _refuse_other_tags(document, edits, old, new)
            made |= {tag_key(edit.new) for edit in edits}
            changes.append(Change(path=document.path, before=document, edits=tuple(edits)))
    if not changes:
        named = sorted({f"#{tag}" for tag in tags})
        near = get_close_matches(f"#{old}", named) or named[:_NAMED]
        raise NamedNotFound(kind="tag", name=old, near=tuple(near))
    others = (tag for tag in tags if _renamed_tag(tag, old, new) is None)
    taken = sorted(tag for tag in others if tag_key(tag) in made)
    if taken:
        remedy = "rename it to something else, as the two could not be told apart afterwards"
        raise EditRefused(path=f"#{old}", reason=f"there is a tag #{taken[0]} already", remedy=remedy)
    return EditPlan(changes=tuple(changes), message=f"rename the tag #{old} to #{new}")


# ------------------------------------------------------------------------------------------------- headings


class _Renamed:
    """The headings of a memory before and after one of them, by its number, gets another title."""

    def __init__(
        self, path: str, before: Sequence[AnchorHeading], after: Sequence[AnchorHeading], number: int
    ) -> None:
        self._path = path
        self._before = before
        self._after = after
        self._number = number
        self._old = before[number]._replace(path=before[number].path[-1:])

    def anchor(self, link: Link, is_wikilink: bool) -> tuple[str, bool] | None:
        """Return what the anchor of a link becomes, and whether it is sure; None when it stays.

        Raises:
            EditRefused: nothing names the heading without naming another one.
        """
        was = anchor.match(self._before, link.anchor)
        if was is None or link.anchor.startswith(BLOCK_MARK):
            return None
        meant = was.indexes[0]
        now = anchor.match(self._after, link.anchor)
        stays = now is not None and now.indexes[0] == meant and (was.ambiguous or not now.ambiguous)
        if stays and (meant != self._number or was.ambiguous):
            return None
        if was.ambiguous:
            return link.anchor, False
        as_slug = was.rule == "slug" or (
            not is_wikilink and (was.rule == "loose" or link.anchor == self._before[meant].slug)
        )
        return self._spell_title(link.anchor, meant, as_slug=as_slug, tidy=is_wikilink), True

    def _spell_title(self, written: str, meant: int, *, as_slug: bool, tidy: bool) -> str:
        def part(title: str) -> str:
            shown = anchor.plain(title)
            if as_slug:
                return anchor.slug(shown)
            return _NOT_IN_WIKILINKS.sub(" ", shown).strip() if tidy else shown

        titles, slug = self._after[meant].path, self._after[meant].slug
        new = part(self._after[self._number].path[-1])
        parts = [new if anchor.match([self._old], title) else title for title in written.split(_NESTED)]
        above = (_NESTED.join(map(part, titles[-count:])) for count in range(1, len(titles) + 1))
        ways = (_NESTED.join(parts), slug if as_slug else "", *above, slug)
        for way in filter(None, ways):
            meaning = anchor.match(self._after, way)
            if meaning and meaning.indexes == (meant,):
                return way
        reason = f"no anchor could tell the heading {titles[-1]!r} from the others"
        raise EditRefused(path=self._path, reason=reason, remedy="give it another title")


def _retitle_heading(document: Document, number: int, new: str) -> tuple[TextEdit, tuple[Section, ...]]:
    heading, path = document.sections[number].heading, document.sections[number].path
    if new and (attributes := _ATTRIBUTES.search(heading.title)) and not _ATTRIBUTES.search(new):
        new += attributes[0]
    twin = next((s for s in document.sections if s.path == (*path[:-1], new)), None)
    if twin:
        reason = f"the heading {new!r} stands in line {twin.heading.line} already"
        raise EditRefused(path=document.path, reason=reason, remedy="give it another title")
    edit = TextEdit(*heading.title_span, new)
    after = spliced(document, [edit])
    wanted = [h.title for h in document.headings]
    wanted[number] = new
    levels = [h.level for h in document.headings]
    same_ids = [b.id for b in after.blocks] == [b.id for b in document.blocks]
    if not new or [h.title for h in after.headings] != wanted or [h.level for h in after.headings] != levels:
        reason = f"{new!r} cannot be the title of the heading in line {heading.line}"
        raise EditRefused(path=document.path, reason=reason, remedy="give one line of plain text")
    if LINE_END.search(new) or not same_ids:
        reason = f"the heading in line {heading.line} would lose or gain a block id, or a line"
        raise EditRefused(path=document.path, reason=reason, remedy="keep its ^id at the end of the title")
    return edit, after.sections


def _plan_reanchoring(
    known: Known, document: Document, own: TextEdit, new_anchor: _NewAnchor, message: str
) -> EditPlan:
    """Return the plan of the edit `own`, and of the new anchors of all links that it changes."""
    names = ChangedNames(known.names)
    keys = {
        *keys_of(document.path, document.fields, document.text),
        *stem_keys(names.layout.file_of(document.path)),
    }
    left_out: list[str] = []

    def edits_of(path: str, at: Document) -> list[TextEdit]:
        is_own = path == document.path
        edits: dict[int, TextEdit] = {}
        for link in turn_links(names, at, path):
            start = link.anchor_span.start
            if not link.anchor or (is_own and own.start <= start < own.end):
                continue
            if link.target and not has_key(link, keys):
                continue
            meant = resolve_link(names, link, path)
            new = new_anchor(link, relink.is_wikilink(link, at.text)) if meant.path == document.path else None
            if new is None:
                continue
            if meant.ambiguous or not new[1]:
                left_out.append(
                    f"{path}:{link.line}: #{link.anchor} stays as it is, as it could mean several"
                )
            elif new[0] != link.anchor:
                edits[start] = _reanchor_link(path, at, link, new[0])
        return sorted((*edits.values(), own) if is_own else edits.values())

    def read(path: str) -> Document:
        # Its edits were made for this text, whatever has become of its file since.
        return document if path == document.path else known.read(path)

    changes = rewritten(read, {document.path, *known.sources(keys)}, edits_of, left_out)
    return EditPlan(changes=tuple(changes), message=message, left_out=tuple(left_out))


def _reanchor_link(path: str, document: Document, link: Link, new: str) -> TextEdit:
    try:
        return relink.reanchor(link, document.text, new)
    except EditRefused as error:
        raise error.but(path=path) from None


# ---------------------------------------------------------------------------------------------- ids and tags


def _renamed_tag(name: str, old: str, new: str) -> str | None:
    parts, above = name.split("/"), old.split("/")
    if list(map(tag_key, parts[: len(above)])) != list(map(tag_key, above)):
        return None
    return "/".join([new, *parts[len(above) :]])


def _refuse_other_tags(document: Document, edits: Sequence[TextEdit], old: str, new: str) -> None:
    wanted = [_renamed_tag(tag.name, old, new) or tag.name for tag in document.tags]
    after = spliced(document, edits)
    if [tag.name for tag in after.tags] != wanted:
        remedy = "use letters, digits, _ and -, with / between its parts, and not digits alone"
        raise EditRefused(path=document.path, reason=f"{new!r} cannot be a tag here", remedy=remedy)
