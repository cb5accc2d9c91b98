"""Completions: what can stand at an offset of a memory in an editor, and what to write for it.

What is being typed is no link yet, so its beginning is looked for in the line before the offset; whether a
link may stand there is what the scanner says.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document import anchor, relink
from mdmem.document.anchor import BLOCK_MARK
from mdmem.document.document import MARKDOWN_SUFFIXES, Document, without_suffix
from mdmem.document.edit import TextEdit, spliced
from mdmem.document.markdown.link import external, percent_decoded
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, in_line
from mdmem.document.tree import LINEAGE
from mdmem.errors import MdmemError, plural
from mdmem.index.links.resolve import resolve, routes, spell_new
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from mdmem.editor.overlay import Overlay
    from mdmem.vault.schema.guide import FieldGuide

MEMORY, HEADING, BLOCK, TAG, KEY, VALUE, FILE = "memory", "heading", "block", "tag", "key", "value", "file"
_WIKILINK = regex(r"(?<!\\)\[\[(?P<target>[^\[\]|#\r\n]*)(?:#(?P<mark>[^\[\]|\r\n]*))?\Z")
_DESTINATION = regex(
    r"\]\((?P<angle><?)(?P<target>[^()<>\s#]*|(?<=<)[^<>#\r\n]*)(?:#(?P<mark>[^()<>\s]*))?\Z"
)
_TAG = regex(r"(?:\A|(?<=[\s(]))#(?P<name>[^\s#,.;:!?()\[\]{}\"'`<>|]*)\Z")
_KEY = regex(r"(?P<indent> *)(?P<key>[\w$.-]*)\Z")
_VALUE = regex(r"(?P<indent> *)(?P<key>[\w$.-]+):[ \t]+(?P<value>.*)\Z")
_ITEM = regex(r"(?P<indent> *)-[ \t]+(?P<value>[^\r\n]*)\Z")
_PARENT = regex(r"(?P<indent> *)(?P<key>[\w$.-]+):[ \t]*(?:#.*)?\Z")
_REST_OF_TARGET = regex(r"[^\[\]|#\\\r\n]*(?=(?:#[^\[\]\r\n]*|\\?\|[^\[\]\r\n]*)?\]\])")
_REST_OF_ANCHOR = regex(r"[^\[\]|\\\r\n]*(?=(?:\\?\|[^\[\]\r\n]*)?\]\])")
_REST_OF_DESTINATION = regex(r"[^()<>\s]*")
_HEADING_MARK = regex(r" {0,3}#{1,6}\Z")
_PLAIN = regex(r"[A-Za-z_][\w./ +-]*(?<! )")
_UNNAMABLE = regex(r"[#|\[\]`]|(?:\A|/)\s|\s(?:/|\Z)")  # in a path that a wikilink is to say
_MARKS = " -_/."  # before a word in a name
_WORST = 4  # rank of a name that fits
_ID_LENGTH = 6
_MOST_SHOWN = 80  # characters of a label, and of a block


class Completion(NamedTuple):
    """Something that can stand there.

    Attributes:
        kind: "memory", "heading", "block", "tag", "key", "value" or "file".
        edit: what to write; its span covers what was typed so far.
        filter: what the editor compares with what was typed.
        documentation: what there is to say, as Markdown; may be empty.
        plan: what has to change elsewhere when it is chosen: a block gets an id.
    """

    label: str
    detail: str
    kind: str
    edit: TextEdit
    filter: str
    documentation: str = ""
    plan: EditPlan | None = None


class Completions(NamedTuple):
    """What fits what was typed, the best first, and how much more does."""

    items: tuple[Completion, ...]
    left_out: int


_NONE = Completions((), 0)


def complete(around: Overlay, document: Document, offset: int, limit: int) -> Completions:
    """Return what can stand at an offset."""
    text = document.text
    offset = max(0, min(offset, len(text)))
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    typing = _Typing(around, document, offset, text[start:offset], limit)
    if offset < document.body_span.start or document.is_json:
        return typing.complete_field()
    if not document.takes_links(offset):
        return _NONE
    return typing.complete_text()


class _Typing:
    """What somebody types in a memory: the line up to the offset."""

    def __init__(self, around: Overlay, document: Document, offset: int, before: str, limit: int) -> None:
        self._around = around
        self._document = document
        self._offset = offset
        self._before = before
        self._limit = limit

    def complete_text(self) -> Completions:
        """Complete a link or a tag of the body."""
        if found := _WIKILINK.search(self._before):
            return self._complete_wikilink(found)
        if found := _DESTINATION.search(self._before):
            return self._complete_destination(found)
        found = _TAG.search(self._before)
        if found and not _HEADING_MARK.fullmatch(self._before):
            return self._complete_tag(found["name"])
        return _NONE

    def _close(self, rest: re.Pattern[str]) -> tuple[int, str]:
        """Return where what is to be replaced of a wikilink ends, and what closes the link then."""
        found = rest.match(self._document.text, self._offset)
        if found is None:
            return self._offset, "]]"
        is_last = self._document.text.startswith("]]", found.end())
        return (found.end() + 2, "]]") if is_last else (found.end(), "")

    # -- wikilinks -----------------------------------------------------------------------------------------

    def _complete_wikilink(self, found: re.Match[str]) -> Completions:
        target, mark, before = found["target"], found["mark"], ""
        if mark is None and target.startswith(BLOCK_MARK):
            target, mark, before = "", target, "#"
        if mark is not None:
            meant = resolve(self._around, target.strip(), self._document.path)
            return self._complete_anchor(meant.path, mark, before)
        end, tail = self._close(_REST_OF_TARGET)
        span = Span(self._offset - len(target), end)
        return self._offer_memories(target, span, lambda path: self._name(path) + tail)

    def _name(self, path: str) -> str:
        if path.endswith(self._around.vault.suffixes):
            return spell_new(self._around, path, self._document.path)
        return path

    def _offer_memories(
        self, typed: str, span: Span, write: Callable[[str], str], *, in_destination: bool = False
    ) -> Completions:
        source, wanted = self._document.path, typed.strip().casefold()
        folder, outlines = source.rpartition("/")[0], self._around.outlines
        fitting: list[list[str]] = [[] for _ in range(_WORST + 1)]
        for path, each in outlines.items():
            if (rank := _rank(wanted, each.called)) is not None and path != source:
                fitting[rank].append(path)

        def distance(path: str) -> tuple[bool, int, int, str]:
            return path.rpartition("/")[0] != folder, path.count("/"), len(path), path

        ordered = (path for paths in fitting for path in nsmallest(self._limit, paths, key=distance))
        namable = (path for path in ordered if in_destination or not _UNNAMABLE.search(path))
        items = []
        for path in islice(namable, self._limit):
            title, called = outlines[path].title, outlines[path].called.strip("\n").split("\n")
            label = _show(title or without_suffix(path.rpartition("/")[2]))
            name = min(
                called, key=lambda each: _rank(wanted, f"\n{each}\n") or 0 if wanted in each else _WORST
            )
            items.append(Completion(label, path, MEMORY, TextEdit(*span, write(path)), name))
        return Completions(tuple(items), sum(map(len, fitting)) - len(items))

    # -- anchors -------------------------------------------------------------------------------------------

    def _complete_anchor(self, path: str | None, mark: str, before: str) -> Completions:
        """Offer the headings and blocks of a memory for an anchor; `before` is to be written before it."""
        target = self._read_target(path)
        if target is None:
            return _NONE
        end, tail = self._close(_REST_OF_ANCHOR)
        span = Span(self._offset - len(mark), end)
        if mark.startswith(BLOCK_MARK):
            return self._offer(mark, self._list_blocks(target, span, before, tail))
        return self._offer(mark, self._list_headings(target, span, tail))

    def _read_target(self, path: str | None) -> Document | None:
        """Return the memory with anchors that is at `path`; None where there is none."""
        with suppress(MdmemError):
            return self._around.read(path) if path and path.endswith(MARKDOWN_SUFFIXES) else None
        return None

    def _offer(self, typed: str, items: Iterable[Completion]) -> Completions:
        wanted = typed.casefold()
        ranked = [
            (rank, n, item)
            for n, item in enumerate(items)
            if (rank := _rank(wanted, f"\n{item.filter.casefold()}\n")) is not None
        ]
        ranked.sort(key=lambda each: each[:2])
        found = tuple(item for _, _, item in ranked[: self._limit])
        return Completions(found, max(0, len(ranked) - self._limit))

    def _list_headings(
        self, target: Document, span: Span, tail: str, *, as_slug: bool = False
    ) -> Iterator[Completion]:
        headings = anchor.headings(target.sections)
        for number, heading in enumerate(headings):
            if way := heading.slug if as_slug else anchor.spell(headings, number):
                edit = TextEdit(*span, way + tail)
                label = _show(anchor.plain(heading.path[-1])) or way
                yield Completion(label, f"line {heading.line}", HEADING, edit, way)

    def _list_blocks(self, target: Document, span: Span, before: str, tail: str) -> Iterator[Completion]:
        """Offer the blocks of a memory; one without an id gets one when it is chosen."""
        seen = set()
        for block in target.blocks:
            seen.add(block.line)
            words = target.text[slice(*block.span)].strip()
            edit = TextEdit(*span, f"{before}{BLOCK_MARK}{block.id}{tail}")
            yield Completion(
                _show(words), f"{BLOCK_MARK}{block.id}", BLOCK, edit, f"{BLOCK_MARK}{block.id} {words}"
            )
        for line in range(1, len(target.lines) + 1):
            words = target.lines.content(line).strip()
            start = target.lines.span(line).start
            if line in seen or not words or start < target.body_span.start:
                continue
            made = self._make_block(target, line, words)
            if made:
                ident, plan = made
                edit = TextEdit(*span, f"{before}{BLOCK_MARK}{ident}{tail}")
                shown = f"{BLOCK_MARK} {words}"
                yield Completion(_show(words), "new block id", BLOCK, edit, shown, plan=plan)

    def _make_block(self, target: Document, line: int, words: str) -> tuple[str, EditPlan] | None:
        """Return the id that a line would get, and the plan for it; None where it can have none."""
        at = target.lines.content_end(line)
        if target.path == self._document.path and target.lines.number(self._offset) == line:
            return None
        if not target.takes_links(at):
            return None
        taken = {block.id for block in target.blocks}
        digest = hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()
        idents = (digest[start : start + _ID_LENGTH] for start in range(0, len(digest) - _ID_LENGTH, 2))
        ident = next((each for each in idents if each not in taken), None)
        if ident is None:
            return None
        edit = TextEdit(at, at, f" {BLOCK_MARK}{ident}")
        change = Change(path=target.path, before=target, edits=(edit,))
        return ident, EditPlan(changes=(change,), message=f"name a block of {target.path}")

    # -- Markdown links ------------------------------------------------------------------------------------

    def _complete_destination(self, found: re.Match[str]) -> Completions:
        typed, mark, is_angle = found["target"], found["mark"], bool(found["angle"])
        rest = _REST_OF_DESTINATION.match(self._document.text, self._offset)
        end = rest.end() if rest else self._offset
        following = self._document.text[end : end + 1]
        tail = "" if following in {")", ">", " ", "\t"} and following else ">)" if is_angle else ")"
        if mark is not None:
            meant = resolve(self._around, percent_decoded(typed), self._document.path, as_path=True)
            span, target = Span(self._offset - len(mark), end), self._read_target(meant.path)
            return (
                self._offer(mark, self._list_headings(target, span, tail, as_slug=True)) if target else _NONE
            )
        span = Span(self._offset - len(typed), end)

        def write(path: str) -> str:
            way = f"/{path}" if typed.startswith("/") else routes(self._around, path, self._document.path)[0]
            if (typed.startswith("./") or external(way)) and not way.startswith("../"):
                way = f"./{way}"
            return relink.destination("", way, in_angles=is_angle) + tail

        bare = posixpath.normpath(percent_decoded(typed)).lstrip("./") if typed else ""
        return self._offer_memories(bare, span, write, in_destination=True)

    # -- tags ----------------------------------------------------------------------------------------------

    def _complete_tag(self, typed: str) -> Completions:
        span = Span(self._offset - len(typed), self._offset)
        items = (
            Completion(f"#{name}", plural(count, "memory"), TAG, TextEdit(*span, name), name)
            for name, count in self._around.tags()
            if name != typed
        )
        return self._offer(typed, items)

    # -- frontmatter ---------------------------------------------------------------------------------------

    def complete_field(self) -> Completions:
        """Complete a key or a value of the frontmatter, or a link in one."""
        front = self._document.frontmatter
        if front.form != "YAML" or not front.inner.start <= self._offset <= front.inner.end:
            return _NONE
        if found := _WIKILINK.search(self._before):
            return self._complete_wikilink(found)
        if found := _VALUE.fullmatch(self._before):
            path = (*self._list_parents(len(found["indent"])), found["key"])
            return self._complete_value(path, found["value"], is_item=False)
        if found := _ITEM.fullmatch(self._before):
            path = self._list_parents(len(found["indent"]) + 1)
            return self._complete_value(path, found["value"], is_item=True) if path else _NONE
        if found := _KEY.fullmatch(self._before):
            return self._complete_key(self._list_parents(len(found["indent"])), found["key"])
        return _NONE

    def _list_parents(self, indent: int) -> tuple[str, ...]:
        """Return the keys above a line that is indented so far, the outermost first."""
        lines = self._document.lines
        parents: list[str] = []
        for number in range(lines.number(self._offset - len(self._before)) - 1, 0, -1):
            found = _PARENT.fullmatch(lines.content(number))
            if found and len(found["indent"]) < indent:
                parents.insert(0, found["key"])
                indent = len(found["indent"])
        return tuple(parents)

    def _leave_line_out(self) -> Document:
        """Return the memory without the line that is typed: YAML may not be able to read it yet."""
        start = self._offset - len(self._before)
        return spliced(self._document, [TextEdit(start, self._document.lines.around(start).end, "")])

    def _complete_key(self, path: tuple[str, ...], typed: str) -> Completions:
        whole = self._leave_line_out()
        guides = self._around.vault.schemas.fields(whole, path)
        node = whole.tree.find(path) if whole.tree else None
        there = {member.key for member in node.members} if node else set()
        line_end = self._document.text[self._offset :].partition("\n")[0].strip()
        tail = "" if line_end.startswith(":") else ": "
        span = Span(self._offset - len(typed), self._offset)
        ordered = sorted(guides.values(), key=lambda guide: not guide.is_required)
        items = (
            Completion(
                guide.name,
                _show_types(guide),
                KEY,
                TextEdit(*span, guide.name + tail),
                guide.name,
                explain(guide),
            )
            for guide in ordered
            if guide.name not in there or guide.name == typed
        )
        return self._offer(typed, items)

    def _complete_value(self, path: tuple[str, ...], typed: str, *, is_item: bool) -> Completions:
        opened = typed.rpartition("[")[2].rpartition(",")[2].lstrip() if typed.startswith("[") else typed
        span = Span(self._offset - len(opened), self._offset)
        if path[-1] in LINEAGE:
            return self._offer_memories(opened, span, lambda memory: self._quote(self._name(memory)))
        schemas = self._around.vault.schemas
        whole = self._leave_line_out()
        guide = schemas.items(whole, path) if is_item else schemas.fields(whole, path[:-1]).get(path[-1])
        values = list(guide.choices or guide.examples) if guide else []
        if path == ("tags",):
            values = [name for name, _ in self._around.tags()]
        elif path == ("$schema",):
            values = [info.name for info in schemas.names()]
        elif path == ("type",):
            kinds = [kind.name for kind in self._around.vault.config.kinds]
            values = list(dict.fromkeys((*kinds, *(info.name for info in schemas.names()))))
        elif path == ("tier",):
            values = [*self._around.vault.config.tiers._fields, "pinned"]
        about = explain(guide) if guide else ""
        items = (
            Completion(_show(shown), "", VALUE, TextEdit(*span, shown), shown, about)
            for value in values
            if not isinstance(value, dict | list) and (shown := self._quote(value)) != opened
        )
        return self._offer(opened, items)

    def _quote(self, value: Any) -> str:
        """Return a value as YAML has it."""
        if isinstance(value, str) and _PLAIN.fullmatch(value) and value not in {"true", "false", "null"}:
            return value
        return json.dumps(value, ensure_ascii=False)


def explain(guide: FieldGuide) -> str:
    """Return what a schema says of a field, as Markdown in which nothing of it means anything."""
    parts = [escaped(guide.description)] if guide.description else []
    if guide.choices:
        parts.append("One of " + ", ".join(f"`{_show(str(each))}`" for each in guide.choices[:20]) + ".")
    elif guide.types:
        parts.append(f"{escaped(_show_types(guide))}.")
    if guide.is_required:
        parts.append("It has to be there.")
    return " ".join(parts)


def _show_types(guide: FieldGuide) -> str:
    return " or ".join(each for each in guide.types if each != "null")


def escaped(text: str) -> str:
    """Return a text as Markdown in which nothing of it means anything."""
    return re.sub(r"([\\`*_{}\[\]<>()#!|&])", r"\\\1", _show(text, 400))


def _show(text: str, most: int = _MOST_SHOWN) -> str:
    """Return a text in one line, without what cannot be seen."""
    return clipped(in_line(" ".join(text.split())), most)


def _rank(wanted: str, called: str) -> int | None:
    """Return how well the best of several names fits, one a line: see `MemoryOutline.called`.

    It is equal, begins so, a word of it does, it holds what is wanted, or its letters in order.
    """
    if wanted not in called:
        letters = iter(called)
        return _WORST if all(letter in letters for letter in wanted) else None
    if f"\n{wanted}" in called:
        return int(f"\n{wanted}\n" not in called)
    return 2 if any(f"{mark}{wanted}" in called for mark in _MARKS) else 3
