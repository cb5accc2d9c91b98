"""A document: the original bytes of a memory, and what is parsed from them when it is asked for."""

from __future__ import annotations

from bisect import bisect
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Diagnostic, Related, Span, is_within
from mdmem.document import frontmatter
from mdmem.document.text.lines import MOST_PARTS, Lines
from mdmem.document.text.regex import regex
from mdmem.document.tree import LINEAGE, Flaw, Node, Parsed, TooDeep, parse_json
from mdmem.errors import BinaryContent, EditRefused, NotEncodable, NotUtf8, TooLarge, TooManyParts, TooNested

if TYPE_CHECKING:
    from frontmatter import Post

    from mdmem.document.markdown import blocks, inline


SUFFIXES = (".md", ".json")
"""How the name of a memory ends in every vault; a config may name others of Markdown."""
MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown", ".mdc")
"""Those of Markdown: where a name without one may mean several memories, the earlier one counts."""
NAMED_SUFFIXES = MARKDOWN_SUFFIXES[1:]
"""Those that count only if the config of a vault names them."""
ANY_SUFFIXES = (*MARKDOWN_SUFFIXES, ".json")
EMBEDDED = regex(
    r"(?i)\.(?:png|jpe?g|gif|svg|webp|avif|bmp|mp[34]|m4a|wav|ogg|flac|mov|webm|pdf|canvas|csv|txt)\Z"
)
"""How the name of a file ends that notes show and link to."""
_CONFLICT_MARKER = regex(r"(?:\A\ufeff?|(?<=[\r\n]))(<{7,}|={7,}|>{7,})(?=[ \r\n]|\Z)[^\r\n]*")


def is_json(path: str) -> bool:
    """Return whether the memory at `path` is JSON; otherwise it is Markdown."""
    return path.endswith(".json")


def without_suffix(path: str) -> str:
    """Return a path without its suffix of Markdown; one without such a suffix stays."""
    stem, dot, end = path.rpartition(".")
    return stem if f"{dot}{end}" in MARKDOWN_SUFFIXES else path


class Limits(NamedTuple):
    """How large a memory may be: bytes of the file and of its frontmatter, depth and number of values.

    `max_parts` is how many headings, links (with tags, citations and URLs), block ids or JSON values a memory
    may have, of each; of paragraphs, three times as many.
    """

    max_bytes: int = 4 * 1024 * 1024
    max_frontmatter_bytes: int = 64 * 1024
    max_depth: int = 32
    max_values: int = 10_000
    max_parts: int = MOST_PARTS


DEFAULT_LIMITS = Limits()


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes, 64 hexadecimal digits."""
    import hashlib  # noqa: PLC0415 - it loads OpenSSL, and what only lists or searches needs none

    return hashlib.sha256(data).hexdigest()


# Not slotted: its parsed parts are cached in the instance the first time that they are needed.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Document:
    """A memory as it was read: `data` is exactly what stands in the file, `text` the same decoded.

    UTF-8 decodes one to one, so a span of `text` names a stretch of `data`. A byte-order mark stays in
    `text` as its first character.
    """

    path: str
    data: bytes
    text: str
    limits: Limits = DEFAULT_LIMITS

    def __repr__(self) -> str:
        return f"Document({self.path!r}, {len(self.data):,} bytes, hash {self.hash[:8]})"

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the bytes, 64 hexadecimal digits."""
        return digest(self.data)

    @property
    def is_json(self) -> bool:
        """Whether this is a JSON memory; otherwise it is Markdown."""
        return is_json(self.path)

    def with_text(self, text: str) -> Document:
        """Return the memory with another text, which is not checked."""
        return replace(self, text=text, data=text.encode())

    @property
    def post(self) -> Post:
        """A copy of the fields and the body, in the form of the package python-frontmatter; never written."""
        from frontmatter import Post  # noqa: PLC0415 - start-up
        from frontmatter.default_handlers import YAMLHandler  # noqa: PLC0415 - start-up

        post = Post(self.body.strip(), YAMLHandler())
        # Not as keywords: a field may be called as one of its arguments.
        post.metadata = deepcopy(dict(self.fields))
        return post

    @cached_property
    def lines(self) -> Lines:
        """The line table."""
        return Lines(self.text)

    @cached_property
    def _located(self) -> tuple[Span, Span]:
        return frontmatter.locate(self.text)

    @cached_property
    def frontmatter(self) -> frontmatter.Frontmatter:
        """The frontmatter; of a JSON memory, an absent one.

        Raises:
            TooNested, TooLarge: it passes a limit.
        """
        if self.is_json:
            start = frontmatter.beginning(self.text)
            return frontmatter.Frontmatter(span=Span(start, start), inner=Span(start, start))
        limit = self.limits.max_frontmatter_bytes
        if len(self.data) > limit:
            block, _ = self._located
            size = len(self.text[slice(*block)].encode())
            if size > limit:
                raise TooLarge(path=self.path, size=size, limit=limit, what="the frontmatter")
        try:
            depth, values = self.limits.max_depth, self.limits.max_values
            return frontmatter.parse(self.text, max_depth=depth, max_values=values, located=self._located)
        except TooDeep as error:
            raise self._too_nested(error) from None

    @cached_property
    def _parsed_json(self) -> Parsed:
        start = frontmatter.beginning(self.text)
        try:
            return parse_json(
                self.text, start, max_depth=self.limits.max_depth, max_values=self.limits.max_parts
            )
        except TooManyParts as error:
            raise error.but(path=self.path) from None
        except TooDeep as error:
            raise self._too_nested(error) from None

    def _too_nested(self, error: TooDeep) -> TooNested:
        line = self.lines.number(error.offset)
        return TooNested(path=self.path, limit=error.limit, what=error.what, line=line)

    @property
    def tree(self) -> Node | None:
        """The mapping of frontmatter in YAML, or the JSON value; None when there is none, or it is unread.

        Of frontmatter that cannot be read as a whole, the fields that can.
        """
        return self._parsed_json.node if self.is_json else self.frontmatter.node

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the frontmatter, or of a JSON object; empty where there are none."""
        if not self.is_json:
            return self.frontmatter.values
        value = self.tree.value if self.tree else {}
        return value if isinstance(value, dict) else {}

    @cached_property
    def body_span(self) -> Span:
        """What follows the frontmatter; of a JSON memory, everything."""
        # Not that of `frontmatter`: it may pass a limit, which is no matter to the body.
        start = frontmatter.beginning(self.text) if self.is_json else self._located[0].end
        return Span(start, len(self.text))

    @property
    def body(self) -> str:
        """The text that follows the frontmatter."""
        return self.text[slice(*self.body_span)]

    @cached_property
    def _scan_blocks(self) -> blocks.Scan:
        from mdmem.document.markdown import blocks  # noqa: PLC0415 - start-up

        if self.is_json:
            return blocks.Scan()
        start, end = self.body_span
        line = self.lines.number(start) if start < end else 1
        try:
            return blocks.scan(self.text, start, line, self.limits.max_parts)
        except TooManyParts as error:
            raise error.but(path=self.path) from None

    @property
    def headings(self) -> tuple[blocks.Heading, ...]:
        """The headings of the body, in order."""
        return self._scan_blocks.headings

    @cached_property
    def sections(self) -> tuple[blocks.Section, ...]:
        """The section of each heading, in order."""
        from mdmem.document.markdown import blocks  # noqa: PLC0415 - start-up

        return blocks.sections(self.headings, len(self.text))

    @property
    def blocks(self) -> tuple[blocks.Block, ...]:
        """The lines that carry a block id, in order."""
        return self._scan_blocks.blocks

    def takes_links(self, offset: int) -> bool:
        """Return whether a link could stand at an offset of the body: in text, and not in code or HTML."""
        from mdmem.document.markdown.blocks import CODE, HTML  # noqa: PLC0415 - start-up

        scanned, text = self._scan_blocks, self.text
        at = bisect(scanned.texts, (offset, len(text))) - 1
        if at < 0 or text[scanned.texts[at].end : offset].strip(" \t"):
            return False
        opaque = (mark for mark in scanned.marks if mark.kind in {CODE, HTML})
        return not any(mark.start < offset < mark.end for mark in opaque)

    @property
    def fences(self) -> tuple[Span, ...]:
        """The spans of fenced code."""
        return self._scan_blocks.fences

    @property
    def code(self) -> tuple[Span, ...]:
        """The spans of code, fenced and in texts, in order."""
        return self._scan_blocks.code

    @cached_property
    def _scan_inline(self) -> inline.Inline:
        from mdmem.document import properties  # noqa: PLC0415 - start-up
        from mdmem.document.markdown import inline  # noqa: PLC0415 - start-up

        text, lines = self.text, self.lines
        if self.is_json:
            names_others = any(f'"{key}"' in text for key in LINEAGE)  # if not, it need not be parsed
            tree = self.tree if names_others else None
            return inline.Inline(properties.lineage(text, tree, lines) if tree else ())
        outline = self._scan_blocks
        try:
            found = inline.scan(text, outline, lines, self.limits.max_parts)
        except TooManyParts as error:
            raise error.but(path=self.path) from None
        front = self.frontmatter
        node = front.node
        if not node:
            tags = properties.quoted_tags(text, front.inner, front.elsewhere, lines)
            return found._replace(tags=tags + found.tags) if tags else found
        links, urls = properties.links(text, node, lines)
        tags = properties.tags(text, node, lines)
        return inline.Inline(links + found.links, found.citations, tags + found.tags, urls + found.urls)

    @cached_property
    def excess(self) -> TooManyParts | None:
        """Why the parts of the body cannot be read; None where they can."""
        if self.is_json or len(self.text) <= self.limits.max_parts:  # each part takes a character
            return None
        try:
            _ = self._scan_blocks, self._scan_inline
        except TooManyParts as error:
            return error
        return None

    @property
    def links(self) -> tuple[inline.Link, ...]:
        """The links to memories and attachments, in order; those of the frontmatter come first.

        Of a JSON memory, what its `superseded_by` and `derived_from` name.
        """
        return self._scan_inline.links

    @property
    def citations(self) -> tuple[inline.Citation, ...]:
        """The citations of code in the body, in order."""
        return self._scan_inline.citations

    @property
    def tags(self) -> tuple[inline.Tag, ...]:
        """The tags of the frontmatter and of the body, in order."""
        return self._scan_inline.tags

    @property
    def urls(self) -> tuple[inline.Url, ...]:
        """The URLs, in order."""
        return self._scan_inline.urls

    @cached_property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The faults of the document itself, whatever its schema says."""
        flaws = self._parsed_json.flaws if self.is_json else self.frontmatter.flaws
        return (*map(self.diagnose, flaws), *self.body_findings)

    @property
    def body_findings(self) -> tuple[Diagnostic, ...]:
        """The findings that a change of the body alone can bring about."""
        twins = [] if self.is_json else self._twin_blocks()
        return tuple(map(self.diagnose, [*map(self._conflict_flaw, self.conflicts()), *twins]))

    def conflicts(self, *, in_code: bool = False) -> list[Span]:
        """Find the conflicts that a merge left, each from git's first marker to its last.

        With `in_code` also those in code, which may be examples.
        """
        found: list[Span] = []
        start, size, is_divided = 0, 0, False
        for marker in _CONFLICT_MARKER.finditer(self.text) if "<" * 7 in self.text else ():
            sign, length = marker[1][0], len(marker[1])
            if sign == "<":
                start, size, is_divided = marker.start(1), length, False
            elif length == size and sign == "=":
                is_divided = True
            elif length == size and is_divided:
                found.append(Span(start, marker.end()))
                size = 0
        if not found or in_code:
            return found
        return [each for each in found if not is_within(self.code, each.start)]

    def _conflict_flaw(self, span: Span) -> Flaw:
        first, last = map(self.lines.number, span)
        message = f"a merge left a conflict in lines {first} to {last}"
        hint = "keep what is right of both sides, and remove git's markers"
        return Flaw(span, "conflict-markers", message, hint, "conflict-markers")

    def diagnose(self, flaw: Flaw, related: tuple[Related, ...] = ()) -> Diagnostic:
        """Return a flaw of this document's text as a finding."""
        position = self.lines.position(flaw.span.start)
        return Diagnostic(path=self.path, position=position, related=related, **flaw._asdict())

    def refused(self, reason: str, remedy: str = "") -> EditRefused:
        """Return the error about an edit of this memory that cannot be made exactly."""
        return EditRefused(path=self.path, reason=reason, remedy=remedy)

    def _twin_blocks(self) -> list[Flaw]:
        if self.text.count("^") < 2:  # noqa: PLR2004 - twins are two; most memories need no scan for this
            return []
        seen: set[str] = set()
        twins = []
        for block in self.blocks:
            if block.id in seen:
                message = f"the block id ^{block.id} stands twice"
                twins.append(Flaw(block.id_span, "duplicate-block-id", message, "rename one", block.id))
            seen.add(block.id)
        return twins


def parse(path: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Document:
    """Read the bytes of the memory at `path`; its suffix says whether they are Markdown or JSON.

    Raises:
        TooLarge, BinaryContent, NotUtf8: they cannot be a memory.
    """
    if len(data) > limits.max_bytes:
        raise TooLarge(path=path, size=len(data), limit=limits.max_bytes)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line = Lines(f"{before}?").number(len(before))
        raise NotUtf8(path=path, offset=error.start, byte=data[error.start], line=line) from None
    if "\0" in text:
        raise BinaryContent(path=path, offset=data.index(0))
    return Document(path=path, data=data, text=text, limits=limits)


class UnreadableDocument(Document):
    """A file that cannot be read as a memory: without text it is moved, deleted and brought back as it is."""


def parse_any(path: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Document:
    """Read bytes as `parse` does; return an `UnreadableDocument` for what cannot be a memory."""
    try:
        return parse(path, data, limits)
    except (TooLarge, NotUtf8, BinaryContent):
        return UnreadableDocument(path=path, data=data, text="", limits=limits)


def parse_text(path: str, text: str, limits: Limits = DEFAULT_LIMITS) -> Document:
    """Read a text that is to become the memory at `path`, as `parse` does.

    Raises:
        NotEncodable: a lone surrogate.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotEncodable(path=path, offset=error.start) from None
    return parse(path, data, limits)
