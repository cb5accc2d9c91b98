"""The blocks of a Markdown text: headings, sections, fences, block ids and where text is, with their places.

pulldown-cmark reads the text (CommonMark 0.31.2, tables and footnotes of GitHub), through pyromark. It tells
where each block and each construct inside of one stands, but not the places of their parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.text.lines import LINE_END, MOST_PARTS
from mdmem.document.text.regex import regex
from mdmem.errors import TooManyParts

if TYPE_CHECKING:
    from pyromark import Markdown

_ATX = regex(r"(#{1,6})(?:[ \t]+|(?=\n)|\Z)")
_BLOCK_ID = regex(r"\^([A-Za-z0-9-]++)[ \t]*+(?=\n|\Z)")
_QUOTE_MARKS = regex(r"(?<=\n)[ \t]*+>[ \t>]*+")
LIST_MARKER = r"(?:[-+*]|[0-9]{1,9}[.)])"
"""The pattern of the bullet or number of an item, without blanks."""
_CONTAINER_MARKS = regex(rf"(?:\A|(?<=\n))[ \t]*+(?:(?:>|{LIST_MARKER}(?=[ \t]))[ \t]*+)+")
_DEFINITION = regex(
    r"(\[((?:[^\[\]\\]++|\\[\s\S])++)\]:[ \t]*+(?:\n[ \t]*+)?(<(?:[^<>\\\n]++|\\[^\n])*+>|[^\x00-\x20\x7f]++)"
    r"(?:(?:[ \t]++(?:\n[ \t]*+)?|\n[ \t]*+)"
    r"(?:\"(?:[^\"\\]++|\\[\s\S])*+\"|'(?:[^'\\]++|\\[\s\S])*+'|\((?:[^()\\]++|\\[\s\S])*+\))"
    r"(?=[ \t]*+(?:\n|\Z)))?+)[ \t]*+(?:\n|\Z)"
)
_FOOTNOTE = "^"
# The parser takes these for blanks, or for another character; in CommonMark they are neither.
_ODD = str.maketrans("\0\x0b\x0c", "\x01\x01\x01")
# So deep in its line a mark opens no container any more. What the parser does in a line grows with how many
# containers are open, and short texts need no look.
_DEEP = 100
_MAY_BE_DEEP = 10_000
_DEEP_LINE = regex(rf"\n(?=[ \t>+*.)0-9-]{{{_DEEP}}})")
_NESTED = regex(rf"[ \t]*+(?:(?:>|{LIST_MARKER}(?=[ \t]))[ \t]*+)*+")
_NO_BLANK = regex(r"[^ \t]")
# What the parser makes a node of, and how many of them there may be for each part: of a hundred characters
# of notes six are such ones, in the densest fourteen.
_NODES = "\n[]*_`<&\\|!"
_NODES_A_PART = 8
_PARAGRAPHS = 3  # times as many as of other parts
_TABS_BEHIND = regex(r"(?<=[`~])\t[ \t]*+(?=\n|\Z)")
_COMMAS = bytes.maketrans(b"?\x02", b",?")

# As the parser names them, but for fences and autolinks.
CODE, HTML, AUTOLINK, LINK, IMAGE = "Code", "InlineHtml", "Autolink", "Link", "Image"
_LINKS = {LINK, IMAGE}
_AUTOLINKS = ("Autolink", "Email")
_PHRASES = {"Emphasis", "Strong", *_LINKS}
ITEM, HEAD, ROW, QUOTE = "Item", "TableHead", "TableRow", "BlockQuote"
PARAGRAPH, HEADING, RULE, CODE_BLOCK = "Paragraph", "Heading", "Rule", "CodeBlock"
_CONTAINERS = {QUOTE, ITEM, "FootnoteDefinition"}
LIST, TABLE = "List", "Table"
_CELL, _FENCE, _HTML = "TableCell", "Fence", "HtmlBlock"
_BLOCKS = {*_CONTAINERS, LIST, TABLE, HEAD, ROW, PARAGRAPH, HEADING, CODE_BLOCK, _HTML, RULE}
_LEAVES = {PARAGRAPH, HEADING, TABLE, RULE, CODE_BLOCK, _HTML}
_WITH_IDS = {PARAGRAPH, HEADING, TABLE}
_BEFORE_ID = ("", " ", "\t", "\n")


class Heading(NamedTuple):
    """A heading.

    Attributes:
        level: 1 to 6.
        title: its text, without the marks around it; its lines joined by a space.
        span: all its lines, line ends included.
        title_span: the title as written, of all its lines.
    """

    level: int
    title: str
    span: Span
    line: int
    title_span: Span


class Section(NamedTuple):
    """A heading and what stands under it.

    Attributes:
        path: the titles from the outermost heading down to this one.
        span: from the heading to the next heading of its level or above.
        own: what stands under the heading before any other heading.
    """

    heading: Heading
    path: tuple[str, ...]
    span: Span
    own: Span


class Block(NamedTuple):
    """A line that carries a block id, ` ^id`: `span` is the line, `id_span` the id without its caret."""

    id: str
    span: Span
    line: int
    id_span: Span


class Definition(NamedTuple):
    """A link reference definition, `[label]: destination`.

    The label is as written, the span without a line end; `destination` has the `<>` around it, if any.
    """

    label: str
    span: Span
    destination: Span


class Mark(NamedTuple):
    """What stands in a text and is more than words.

    Attributes:
        kind: `CODE`, `HTML`, `AUTOLINK` (with its `<>`), `LINK` or `IMAGE`.
        form: of a link or an image "Inline", "Reference", "Collapsed" or "Shortcut"; of an autolink
            "Autolink" or "Email"; of the others "".
        close: of a link or an image, where what stands in its text ends: its bracket closes there or behind.
    """

    kind: str
    start: int
    end: int
    form: str
    close: int


class Scan(NamedTuple):
    """What the scanner found, each in order of place.

    Attributes:
        headings: those outside of lists and quotes.
        blocks: the lines that carry a block id.
        fences: the spans of fenced code, fences included.
        texts: where links and the like may stand: the span of each paragraph, heading's title and cell.
        marks: what was found in them; a link stands before what its text holds.
        quotes: what stands in such a span and is no text: the marks of quotes before lines of a paragraph.
    """

    headings: tuple[Heading, ...] = ()
    blocks: tuple[Block, ...] = ()
    fences: tuple[Span, ...] = ()
    texts: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()
    quotes: tuple[Span, ...] = ()
    definitions: tuple[Definition, ...] = ()
    html: tuple[Span, ...] = ()

    @property
    def code(self) -> tuple[Span, ...]:
        """The spans of code, fenced and in texts, in order."""
        marks = (Span(mark.start, mark.end) for mark in self.marks if mark.kind == CODE)
        return tuple(sorted((*self.fences, *marks)))


class _Leaf(NamedTuple):
    """A block that holds no others, or a cell, and whether it is in a container and in a quote."""

    kind: str
    start: int
    end: int
    level: int
    nested: bool
    quoted: bool


def scan(text: str, start: int = 0, line: int = 1, most: int = MOST_PARTS) -> Scan:
    """Scan `text` from `start` (where 1-based line `line` begins) to its end.

    Raises:
        TooManyParts: there are more than `most` headings or the like.
    """
    clean = _clean_text(text, start, most)
    reader = _Reader(clean, most)
    return _Outliner(text, clean, start, line, most).outline(reader)


def inlines(text: str, start: int, end: int) -> list[Mark]:
    """Scan what stands between two places of a text that is all words and links."""
    while start < end and text[start] in " \t\r\n":
        start += 1
    return [
        Mark(kind, start + begin, start + stop, form, start + close)
        for kind, begin, stop, form, close in _Reader(
            _clean_text(text[start:end], 0, MOST_PARTS), MOST_PARTS
        ).marks
    ]


def shown_text(title: str) -> str:
    """Return the text of a heading as a renderer shows it; of an image nothing."""
    parts: list[str] = []
    images = 0
    event: Any
    for event in _make_parser().events(f"# {LINE_END.sub(' ', title)} #"):
        if "Start" in event:
            images += IMAGE in event["Start"]
        elif "End" in event:
            images -= event["End"] == IMAGE
        elif not images:
            parts += [event[kind] for kind in ("Text", CODE) if kind in event]
    return "".join(parts)


def without_quotes(text: str, quotes: Sequence[Span]) -> str:
    """Replace the marks of quotes by spaces, so that no offset changes."""
    parts, at = [], 0
    for start, end in quotes:
        parts += [text[at:start], " " * (end - start)]
        at = end
    return "".join((*parts, text[at:]))


def events(text: str, start: int = 0, most: int = MOST_PARTS) -> Iterator[tuple[str, bool, bool, int, int]]:
    """Yield the beginnings and ends of the blocks in `text` from `start` on, in order.

    Each is the name of the block, as the parser names it, whether it begins and whether it ends, and where it
    stands. Blocks in quotes and in footnotes are among them, and definitions are not.
    """
    clean = _clean_text(text, start, most)
    event: Any
    for event, place in _make_parser().events_with_range(_for_parser(clean)):
        opens, closes = "Start" in event, "End" in event
        tag = event["Start" if opens else "End"] if opens or closes else event
        name = tag if isinstance(tag, str) else next(iter(tag))
        if name in _BLOCKS:
            at = place["start"]
            # The parser begins a list that is indented by a tab at the end of the line above.
            at += clean.startswith("\n", at)
            yield name, not closes, not opens, at, place["end"]


def sections(headings: Sequence[Heading], end: int) -> tuple[Section, ...]:
    """Return the section of each heading, in order; the last ones reach to `end`."""
    stops = [end] * len(headings)
    paths: list[tuple[str, ...]] = []
    open_: list[int] = []
    for number, (level, title, (start, _), _, _) in enumerate(headings):
        while open_ and headings[open_[-1]].level >= level:
            stops[open_.pop()] = start
        paths.append((*paths[open_[-1]], title) if open_ else (title,))
        open_.append(number)
    found = []
    following = end
    for number in range(len(headings) - 1, -1, -1):
        heading = headings[number]
        start, under = heading[2]
        whole, own = Span(start, stops[number]), Span(under, following)
        found.append(Section(heading, paths[number], whole, own))
        following = start
    return tuple(reversed(found))


# ------------------------------------------------------------------------------------------------- parsing


def _clean_text(text: str, start: int, most: int) -> str:
    """Return `text` from `start` on for the parser, behind line feeds, so that offsets stay."""
    clean = text[start:]
    if "\r" in clean:
        clean = clean.replace("\r\n", " \n").replace("\r", "\n")
    if "\x0c" in clean or "\x0b" in clean or "\0" in clean:
        clean = clean.translate(_ODD)
    nodes = most * _NODES_A_PART
    if len(clean) > nodes and sum(map(clean.count, _NODES)) > nodes:
        raise TooManyParts(path="", limit=nodes, what="lines and marks of Markdown")
    if len(clean) > _MAY_BE_DEEP:
        clean = _limit_nesting(clean)
    return "\n" * start + clean


def _limit_nesting(clean: str) -> str:
    """Replace marks by letters where they would open a container deeper than is read."""
    parts, done = [], 0
    for at in (0, *(found.end() for found in _DEEP_LINE.finditer(clean))):
        found = _NESTED.match(clean, at)
        if found and found.end() - at > _DEEP:
            parts += [clean[done : at + _DEEP], _NO_BLANK.sub("x", clean[at + _DEEP : found.end()])]
            done = found.end()
    return "".join((*parts, clean[done:])) if parts else clean


@cache
def _make_parser() -> Markdown:
    from pyromark import Markdown, Options  # noqa: PLC0415 - start-up

    return Markdown(options=Options.ENABLE_TABLES | Options.ENABLE_FOOTNOTES)


class _Reader:
    """Reads the leaves and the marks in them from the events of the parser."""

    def __init__(self, clean: str, most: int) -> None:
        self.leaves: list[_Leaf] = []
        self.marks: list[Mark] = []
        self._links: list[int] = []  # the numbers of the links that are open
        self._depth = self._quotes = 0
        self._inside = False  # of a leaf
        self._bare: Any = None  # where it begins, when it is an item's own text: the parser does not tell
        self._before: Any = None
        self._most = {HEADING: most, _FENCE: most, LINK: most, PARAGRAPH: most * _PARAGRAPHS}
        self._left = dict(self._most)
        self._read_events(_for_parser(clean))

    def _read_events(self, clean: str) -> None:
        event: Any
        for event, place in _make_parser().events_with_range(clean):
            if "Text" in event:
                pass
            elif "Start" in event or "End" in event:
                tag = event["Start"] if "Start" in event else event["End"]
                name = tag if isinstance(tag, str) else next(iter(tag))
                if name in _LINKS:
                    self._add_link(name, tag, place)
                elif name not in _PHRASES:
                    self._open_block(name, tag, place, starts="Start" in event)
                    continue
            elif CODE in event:
                self.marks.append(Mark(CODE, place["start"], place["end"], "", 0))
            elif HTML in event:
                self.marks.append(Mark(HTML, place["start"], place["end"], "", 0))
            elif event == RULE:
                self._open_block(RULE, "", place, starts=True)
                self._inside = False
                continue
            if not self._inside:
                self._inside = True
                self._bare = place
            self._before = place

    def _open_block(self, name: str, tag: Any, place: Any, *, starts: bool) -> None:
        if self._bare:
            self._add_leaf(PARAGRAPH, self._bare["start"], self._before["end"], 0)
            self._bare = None
            self._inside = False
        if name in _CONTAINERS:
            self._depth += 1 if starts else -1
            if name == QUOTE:
                self._quotes += 1 if starts else -1
        elif name in _LEAVES:
            self._inside = starts
            if starts:
                level = int(tag[name]["level"][1]) if name == HEADING else 0
                kind = _FENCE if name == CODE_BLOCK and tag[name] != "Indented" else name
                self._add_leaf(kind, place["start"], place["end"], level)
        elif starts and name == _CELL:
            self._add_leaf(_CELL, place["start"], place["end"], 0)

    def _add_leaf(self, kind: str, start: int, end: int, level: int) -> None:
        if kind in self._left:
            self._count_part(kind)
        self.leaves.append(_Leaf(kind, start, end, level, self._depth > 0, self._quotes > 0))

    def _count_part(self, kind: str) -> None:
        self._left[kind] -= 1
        if self._left[kind] < 0:
            raise TooManyParts(path="", limit=self._most[kind], what=f"{kind.lower()}s")

    def _add_link(self, name: str, tag: Any, place: Any) -> None:
        marks, links, start = self.marks, self._links, place["start"]
        if tag != name:
            form = tag[name]["link_type"]
            kind = AUTOLINK if form in _AUTOLINKS else name
            self._count_part(LINK)
            links.append(len(marks))
            marks.append(Mark(kind, start, place["end"], form, start))
        elif self._before["start"] > start:  # something stands in its text
            number = links.pop()
            marks[number] = Mark(*marks[number][:4], self._before["end"])
        else:
            links.pop()


def _for_parser(clean: str) -> str:
    """Return the text in ASCII, as the parser reads it aright: its offsets, which count bytes, are ours then.

    CommonMark gives no other character a meaning, except for emphasis, which is not read.
    """
    if "`\t" in clean or "~\t" in clean:  # a tab behind a fence keeps it from closing
        clean = _TABS_BEHIND.sub(lambda found: " " * len(found[0]), clean)
    clean = clean.replace("]\\[", "]\\,")  # an escaped bracket is taken for that of a label
    if clean.isascii():
        return clean
    data = clean.replace("\x02", "\x01").replace("?", "\x02").encode("ascii", "replace")
    return data.translate(_COMMAS).decode("ascii")


class _Outliner:
    """Finds the parts of leaves in `clean`, the text for the parser, which begins at line `line`."""

    def __init__(self, text: str, clean: str, start: int, line: int, most: int) -> None:
        self._text = text
        self._clean = clean
        self._start = start
        self._most = most
        self._first = self._counted = start, line
        self._headings: list[Heading] = []
        self._fences: list[Span] = []
        self._texts: list[Span] = []
        self._quotes: list[Span] = []
        self._definitions: list[Definition] = []
        self._html: list[Span] = []

    def outline(self, reader: _Reader) -> Scan:
        clean, at = self._clean, self._start
        for leaf in reader.leaves:
            kind, start, end, *_ = leaf
            if kind == _CELL:
                if start < end:  # a row may have fewer than the table
                    self._texts.append(Span(start, end))
                continue
            self._add_definitions(at, start)
            at = end
            if kind == PARAGRAPH:
                self._add_text(start, end, quoted=leaf.quoted)
            elif kind == HEADING:
                self._add_heading(leaf)
            elif kind == _FENCE:
                self._fences.append(Span(*self._whole_lines(start, end)))
            elif kind == _HTML:
                self._html.append(Span(start, end))
        self._add_definitions(at, len(clean))
        blocks = self._find_block_ids(reader.leaves) if clean.find("^", self._start) >= 0 else []
        for what, found in (("block ids", blocks), ("definitions", self._definitions)):
            if len(found) > self._most:
                raise TooManyParts(path="", limit=self._most, what=what)
        return Scan(
            headings=tuple(self._headings),
            blocks=tuple(blocks),
            fences=tuple(self._fences),
            texts=tuple(self._texts),
            marks=tuple(reader.marks),
            quotes=tuple(self._quotes),
            definitions=tuple(self._definitions),
            html=tuple(self._html),
        )

    def _line_number(self, at: int) -> int:
        """Return the number of the line at `at`, which only grows."""
        counted, line = self._counted
        line += self._clean.count("\n", counted, at)
        self._counted = at, line
        return line

    def _whole_lines(self, start: int, end: int) -> tuple[int, int]:
        clean = self._clean
        if clean[end - 1] != "\n":
            end = clean.find("\n", end) + 1 or len(clean)
        return max(clean.rfind("\n", 0, start) + 1, self._start), end

    def _add_text(self, start: int, end: int, *, quoted: bool) -> None:
        clean = self._clean
        while end > start and clean[end - 1] in " \t\n":
            end -= 1
        if start < end:
            self._texts.append(Span(start, end))
            if quoted and clean.find("\n", start, end) >= 0:
                self._quotes += [Span(*found.span()) for found in _QUOTE_MARKS.finditer(clean, start, end)]

    def _add_heading(self, leaf: _Leaf) -> None:
        clean, (_, start, end, level, nested, quoted) = self._clean, leaf
        while clean[end - 1] in " \t\n":
            end -= 1
        atx = None if "\n" in clean[start:end] else _ATX.match(clean, start)
        if atx:
            start = atx.end()
            title = clean[start:end]
            closed = title.rstrip("#")
            if closed[-1:] in ("", " ", "\t"):
                title = closed.rstrip(" \t")
            end = start + len(title)
        else:
            end = clean.rfind("\n", start, end)
            while clean[end - 1] in " \t":
                end -= 1
        self._add_text(start, end, quoted=quoted)
        if not nested:
            span = Span(*self._whole_lines(leaf.start, leaf.end))
            title = self._text[start:end]
            if not atx:
                title = " ".join(line.strip(" \t") for line in LINE_END.split(title))
            written = Span(start, end)
            self._headings.append(Heading(level, title, span, self._line_number(span.start), written))

    def _add_definitions(self, start: int, end: int) -> None:
        """Add the definitions between two leaves, where else only marks of containers stand."""
        if self._clean.find("[", start, end) < 0:
            return
        gap = _CONTAINER_MARKS.sub(lambda found: " " * len(found[0]), self._clean[start:end])
        at = gap.find("[")
        while at >= 0:
            found = _DEFINITION.match(gap, at)
            if found and not found[2].startswith(_FOOTNOTE):
                span, destination = (Span(start + found.start(n), start + found.end(n)) for n in (1, 3))
                self._definitions.append(Definition(found[2], span, destination))
                at = gap.find("[", found.end())
            else:
                line_end = gap.find("\n", at)
                at = gap.find("[", line_end) if line_end >= 0 else -1

    def _find_block_ids(self, leaves: Sequence[_Leaf]) -> list[Block]:
        clean, found = self._clean, []
        self._counted = self._first
        within = [leaf for leaf in leaves if leaf.kind in _WITH_IDS]
        number, last = 0, len(within) - 1
        for id_ in _BLOCK_ID.finditer(clean, self._start):
            at = id_.start()
            while number < last and within[number].end <= at:
                number += 1
            if (
                clean[at - 1 : at] in _BEFORE_ID
                and within
                and within[number].start <= at < within[number].end
            ):
                span = Span(*self._whole_lines(at, at + 1))
                found.append(Block(id_[1], span, self._line_number(span.start), Span(*id_.span(1))))
        return found
