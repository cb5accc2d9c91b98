"""Fixes: what an editor offers to do about what it shows, each as a plan that was checked.

A fix that would be refused, or that would not end its finding, is not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import SECRETS, Diagnostic, Span
from mdmem.document import anchor, edit as text_edit, field, relink
from mdmem.document.anchor import BLOCK_MARK
from mdmem.document.document import Document, is_json, without_suffix
from mdmem.document.edit import TextEdit, spliced
from mdmem.document.tree import KeyPath
from mdmem.errors import MdmemError
from mdmem.facade.questions.check import SILENCING, find_silenced
from mdmem.index.code.citations import pinned, repointed
from mdmem.index.database import key_of, stem_keys
from mdmem.index.links import move
from mdmem.index.links.resolve import (
    MARKDOWN,
    Resolution,
    is_path,
    place_meant,
    resolve_link,
    shortest,
    spell,
)
from mdmem.vault.paths import check_memory, join
from mdmem.vault.plan import Change, EditPlan, edit

if TYPE_CHECKING:
    from mdmem.document.markdown.inline import Link
    from mdmem.editor.overlay import Overlay
    from mdmem.vault.schema.guide import FieldGuide

QUICK, EXTRACT = "quickfix", "refactor.extract"
_MOST_OFFERED = 10  # memories that a link may mean
_NEAR, _LIKE = 3, 0.6  # names that are like another one: how many, and how much
_LONGEST_NAME = 60
_WORDS = 6  # first words of a text, which name a new memory


class Fix(NamedTuple):
    """Something that can be done.

    Attributes:
        code: of the finding that it ends; empty for what is no finding.
        kind: "quickfix" or "refactor.extract".
        is_preferred: whether it is the one to take where nobody is asked.
    """

    title: str
    plan: EditPlan
    code: str
    kind: str = QUICK
    is_preferred: bool = False


def list_fixes(
    around: Overlay,
    document: Document,
    span: Span,
    shown: Collection[Span],
    findings: Iterable[Diagnostic],
) -> Iterator[Fix]:
    """Yield what can be done about the findings that meet a span or are `shown`, and with what it selects."""
    near = [
        found
        for found in findings
        if found.span in shown or (found.span.start <= span.end and span.start <= found.span.end)
    ]
    offered = (fix for found in near for fix in _Fixing(around, document, found).list_fixes())
    for fix in (*offered, *_extract(around, document, span)):
        try:
            yield fix._replace(plan=around.vault.prepare(fix.plan).plan)
        except MdmemError:
            continue


class _Fixing:
    """What can be done about one finding of a memory."""

    def __init__(self, around: Overlay, document: Document, found: Diagnostic) -> None:
        self._around = around
        self._document = document
        self._found = found

    def list_fixes(self) -> Iterator[Fix]:
        """Yield the fixes, those that are sure first."""
        code = self._found.code
        if code in {"dangling-link", "ambiguous-link"}:
            link = next(filter(self._is_about, self._document.links), None)
            if link:
                fix = self._fix_dangling if code == "dangling-link" else self._fix_ambiguous
                yield from fix(link, resolve_link(self._around, link, self._document.path))
        elif code.startswith("schema-") or code == "unknown-tier":
            yield from self._fix_field()
        elif code.startswith("citation-"):
            yield from self._fix_citation()
        if code != SECRETS and not self._document.is_json:
            edits = self._silence(code)
            if code in find_silenced(spliced(self._document, edits)):
                yield self._edit(f"Silence {code} in this memory", edits)

    def _is_about(self, link: Link) -> bool:
        return link.kind != "reference" and self._found.span in (link.target_span, link.anchor_span)

    def _edit(self, title: str, edits: Iterable[TextEdit], *, is_preferred: bool = False) -> Fix:
        plan = edit(self._document, tuple(edits), title)
        return Fix(title, plan, self._found.code, is_preferred=is_preferred)

    def _try(self, title: str, make: Callable[[], TextEdit]) -> Iterator[Fix]:
        """Yield the fix that rewrites a link, unless the new target cannot be written there."""
        try:
            made = make()
        except MdmemError:
            return
        yield self._edit(title, [made])

    # -- links ---------------------------------------------------------------------------------------------

    def _fix_dangling(self, link: Link, meant: Resolution) -> Iterator[Fix]:
        if meant.path is not None:
            yield from self._fix_anchor(link, meant.path)
            return
        yield from self._follow_moves(link)
        yield from self._name_nearest(link)
        yield from self._create_target(link)

    def _follow_moves(self, link: Link) -> Iterator[Fix]:
        moved = self._around.moves()
        if not moved:
            return
        plan = move.repair(move.known(self._around), moved)
        here = [change for change in plan.changes if change.path == self._document.path]
        edits = [each for change in here for each in change.edits if each.start == link.target_span.start]
        if edits:
            yield self._edit(f"Link to {edits[0].new}, where it has moved", edits, is_preferred=True)
            if len(plan.changes) > 1 or len(here[0].edits) > 1:
                title = "Change all links to what other programs have moved"
                yield Fix(title, plan._replace(message=title), self._found.code)

    def _name_nearest(self, link: Link) -> Iterator[Fix]:
        wanted = stem_keys(link.target)[0]
        names: dict[str, list[str]] = {}
        for path in sorted(self._around.outlines):
            if path != self._document.path:
                names.setdefault(stem_keys(path)[0], []).append(path)
        for name in get_close_matches(wanted, names, _NEAR, _LIKE):
            for path in names[name][:_NEAR]:
                yield from self._try(f"Link to {path}", partial(self._retarget, link, path))

    def _retarget(self, link: Link, path: str) -> TextEdit:
        target = spell(self._around, link, path, self._document.path)
        return relink.retarget(link, self._document.text, target)

    def _create_target(self, link: Link) -> Iterator[Fix]:
        source, target = self._document.path, link.target
        if is_path(link):
            place = place_meant(self._around, link, source)
        else:
            place = target if "/" in target else join(source.rpartition("/")[0], target)
        if not place or target.endswith("/"):
            return
        path = place if place.endswith(self._around.vault.suffixes) else place + MARKDOWN
        try:
            check_memory(path)
        except MdmemError:
            return
        title = without_suffix(path.rpartition("/")[2])
        content = b"{}\n" if is_json(path) else f"# {title}\n".encode()
        if not self._around.exists(path):
            change = Change(path=path, before=None, content=content)
            plan = EditPlan(changes=(change,), message=f"create {path}")
            yield Fix(f"Create {path}", plan, self._found.code)

    def _fix_anchor(self, link: Link, path: str) -> Iterator[Fix]:
        """Name the nearest heading or block, or make the heading."""
        target = self._around.read(path)
        if link.anchor.startswith(BLOCK_MARK):
            near = get_close_matches(link.anchor[1:], [block.id for block in target.blocks], _NEAR, _LIKE)
            ways = [BLOCK_MARK + each for each in near]
        else:
            ways = self._list_near_headings(link, target)
        for way in ways:
            made = partial(relink.reanchor, link, self._document.text, way)
            yield from self._try(f"Link to #{way}", made)
        if not link.anchor.startswith(BLOCK_MARK) and not target.is_json:
            edits = _add_block(target, f"## {link.anchor}")
            title = f"Add the heading {link.anchor} to {path}"
            if anchor.find(spliced(target, edits), link.anchor):
                yield Fix(title, edit(target, edits, title), self._found.code)

    def _list_near_headings(self, link: Link, target: Document) -> list[str]:
        headings = anchor.headings(target.sections)
        titles: dict[str, list[int]] = {}
        for number, heading in enumerate(headings):
            titles.setdefault(anchor.plain(heading.path[-1]), []).append(number)
        near = get_close_matches(link.anchor, titles, _NEAR, _LIKE)
        near = near or [title for title in titles if anchor.loose(link.anchor) in anchor.loose(title)][:_NEAR]
        is_slug = not relink.is_wikilink(link, self._document.text)
        numbers = [number for title in near for number in titles[title]]
        ways = (headings[n].slug if is_slug else anchor.spell(headings, n) for n in numbers)
        return [way for way in ways if way][:_NEAR]

    def _fix_ambiguous(self, link: Link, meant: Resolution) -> Iterator[Fix]:
        for path in meant.candidates[:_MOST_OFFERED]:
            yield from self._try(f"Link to {path}", partial(self._choose, link, path))

    def _choose(self, link: Link, path: str) -> TextEdit:
        if is_path(link):
            return self._retarget(link, path)
        return relink.retarget(link, self._document.text, shortest(self._around, path, self._document.path))

    # -- fields --------------------------------------------------------------------------------------------

    def _fix_field(self) -> Iterator[Fix]:
        """Yield the change of a field that ends the finding and causes no other, if there is only one."""
        found, made = self._found, dict[str, Fix]()
        for title, edits in self._list_changes(_read_path(found.rule, found.code)):
            try:
                after = spliced(self._document, edits)
                now = self._around.vault.schemas.check(after)
            except MdmemError:
                continue
            before = {(f.code, f.rule) for f in self._around.vault.schemas.check(self._document)}
            if all((f.code, f.rule) != (found.code, found.rule) for f in now) and all(
                (f.code, f.rule) in before for f in now
            ):
                made.setdefault(after.text, self._edit(title, edits, is_preferred=True))
        if len(made) == 1:
            yield from made.values()

    def _list_changes(self, path: KeyPath) -> Iterator[tuple[str, list[TextEdit]]]:
        document = self._document
        if not path or not document.tree:
            return
        schemas = self._around.vault.schemas
        guides = schemas.fields(document, path[:-1])
        guide, node = guides.get(str(path[-1])), document.tree.find(path)
        if guide and self._found.code == "unknown-tier":
            guide = guide._replace(choices=(*self._around.vault.config.tiers._fields, "pinned"))
        name = ".".join(map(str, path))
        if node is None:
            for value in _list_sure(guide) if guide else ():
                yield f"Add {name}: {value}", self._set_field(path, value)
        elif guide is None:
            member = next((m for where, m in document.tree.walk() if where == path), None)
            near = get_close_matches(str(path[-1]), guides, 1, _LIKE)
            if member and near:
                yield f"Call it {near[0]}", [TextEdit(*member.key_span, near[0])]
        else:
            for value in _list_alike(guide, node.value):
                yield f"Make {name} {value}", self._set_field(path, value)

    def _set_field(self, path: KeyPath, value: Any) -> list[TextEdit]:
        """Return the edits that set a field; none where that cannot be done exactly."""
        try:
            return field.set_field(self._document, path, value)
        except MdmemError:
            return []

    # -- citations, and what is silenced -------------------------------------------------------------------

    def _fix_citation(self) -> Iterator[Fix]:
        citation = next((c for c in self._document.citations if c.span == self._found.span), None)
        if citation is None:
            return
        reach = Span(citation.span.start, max(citation.span.end, citation.pin_span.end))
        path = self._document.path
        for title, plan in (
            ("Cite the lines where they are now", repointed(self._around, {path})),
            ("It still holds: pin what it cites now", pinned(self._around, {path}, accept=True)),
        ):
            made = [e for c in plan.changes for e in c.edits if reach.start <= e.start and e.end <= reach.end]
            if made:
                yield self._edit(title, made, is_preferred=self._found.code == "citation-moved")
                return

    def _silence(self, code: str) -> list[TextEdit]:
        """Return the edits that silence a code: in the comment that is there, or in a new one at the end."""
        found = SILENCING.search(self._document.text, self._document.body_span.start)
        if found:
            return [TextEdit(found.end(1), found.end(1), f" {code}" if found[1] else code)]
        return _add_block(self._document, f"<!-- mdmem: silence {code} -->")


def _add_block(document: Document, text: str) -> list[TextEdit]:
    """Return the edits that add a block at the end of a memory, with a blank line before it."""
    last = document.lines.content(len(document.lines)) if len(document.lines) else ""
    return text_edit.append(document, f"\n{text}" if last.strip() else text)


def _read_path(rule: str, code: str) -> KeyPath:
    """Return the path of the field that a finding is about."""
    if code == "unknown-tier":
        return ("tier",)
    pointer = rule.partition(":/")[2].rpartition(":")[0]
    keys = (key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")) if pointer else ()
    return tuple(int(key) if key.isdecimal() else key for key in keys)


def _list_sure(guide: FieldGuide) -> list[Any]:
    """List the values of a field that is missing, where there is one only."""
    return (
        list(guide.choices) if len(guide.choices) == 1 else list(guide.examples[:1] if guide.choices else ())
    )


def _list_alike(guide: FieldGuide, value: Any) -> Iterator[Any]:
    """Yield what a value may have been meant to be."""
    words = {str(choice).casefold(): choice for choice in guide.choices}
    if near := get_close_matches(str(value).casefold(), words, 1, _LIKE):
        yield words[near[0]]
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
        yield int(value)
    if "string" in guide.types and isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    if "array" in guide.types and not isinstance(value, list | dict) and value is not None:
        yield [value]
    if "boolean" in guide.types and str(value).casefold() in {"yes", "no", "on", "off"}:
        yield str(value).casefold() in {"yes", "on"}
    if isinstance(value, str) and value.count("/") == 2:  # noqa: PLR2004 - year, month and day
        yield "-".join(part.zfill(2) for part in value.split("/"))


# -- a memory of its own -------------------------------------------------------------------------------------


def _extract(around: Overlay, document: Document, span: Span) -> Iterator[Fix]:
    """Yield the fix that makes the selected lines a memory of their own, and leaves a link to it.

    Not where something is cut in two by that, or a link would mean something else.
    """
    # An editor with a block as its cursor always has one character selected.
    if span.end - span.start <= 1 or span.start < document.body_span.start or document.is_json:
        return
    lines = document.lines
    chosen = Span(lines.around(span.start).start, lines.around(span.end - 1).end)
    text = document.text[slice(*chosen)].strip("\r\n")
    if not text.strip() or _is_cut(document, chosen) or _is_linked(around, document, chosen):
        return
    path = _name_extract(around, document, text)
    if path is None:
        return
    newline = lines.newline
    link = f"[[{without_suffix(path.rpartition('/')[2])}]]{newline}"
    changes = (
        Change(path=document.path, before=document, edits=(TextEdit(*chosen, link),)),
        Change(path=path, before=None, content=f"{text}{newline}".encode()),
    )
    title = f"Extract to {path}"
    yield Fix(title, EditPlan(changes=changes, message=title), "", EXTRACT)


def _is_cut(document: Document, chosen: Span) -> bool:
    """Return whether a selection holds a part only of a link, a fence or a definition that is used."""
    spans = [*document.fences, *(link.span for link in document.links)]
    spans += [citation.span for citation in document.citations]
    is_split = any(
        each.start < chosen.end
        and chosen.start < each.end
        and not (chosen.start <= each.start and each.end <= chosen.end)
        for each in spans
    )
    kinds = {"reference", "definition"}
    return is_split or any(
        link.kind in kinds and chosen.start <= link.span.start < chosen.end for link in document.links
    )


def _is_linked(around: Overlay, document: Document, chosen: Span) -> bool:
    """Return whether anchors lead into a selection, or out of it into the rest of its memory."""
    inside = [b.id for b in document.blocks if chosen.start <= b.span.start < chosen.end]
    headings = any(chosen.start <= h.span.start < chosen.end for h in document.headings)
    for source in {document.path, *around.sources(around.keys_of(document.path))}:
        try:
            links = around.read(source).links
        except MdmemError:
            continue
        for link in links:
            is_chosen = source == document.path and chosen.start <= link.span.start < chosen.end
            if not link.anchor or resolve_link(around, link, source).path != document.path:
                continue
            is_block = link.anchor.removeprefix(BLOCK_MARK) in inside
            if is_chosen or is_block or (headings and not link.anchor.startswith(BLOCK_MARK)):
                return True
    return False


def _name_extract(around: Overlay, document: Document, text: str) -> str | None:
    """Return a free path beside a memory, named by the first line of a text."""
    words = anchor.plain(text.split("\n", 1)[0].strip("#>*-+ \t\r")).split()[:_WORDS]
    stem = anchor.slug(" ".join(words))[:_LONGEST_NAME].strip("-") or "extract"
    folder = document.path.rpartition("/")[0]
    for number in range(1, 100):
        name = stem if number == 1 else f"{stem}-{number}"
        path = join(folder, name + MARKDOWN)
        if not around.named("stem", key_of(path)) and not around.exists(path):
            return path
    return None
