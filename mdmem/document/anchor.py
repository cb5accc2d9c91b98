"""Anchors: how a link names a heading or a block, and which one it means.

Slugs follow github-slugger 2 (https://github.com/Flet/github-slugger), which gives a heading the anchor that
GitHub gives it. Editors disagree about slugs, so an anchor is also compared by its letters and digits alone.
What no heading has for its anchor may be another place that has a name: see `find`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.document import Document
from mdmem.document.markdown import blocks
from mdmem.document.markdown.blocks import Section
from mdmem.document.text.regex import regex

BLOCK_MARK = "^"
_NESTED = "#"
_NOT_LOOSE = regex(r"[^a-z0-9]")
_NOT_IN_WIKILINKS = regex(r"[#|^\[\]`\\\s]+")
_SPACES = regex(r"\s+")
_CIRCLED = regex("[\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]")
_MAY_BE_MARKED = regex(r"[\\`\[<&_*]")
_NUMBERED = regex(r"(.+)[-_]([1-9][0-9]{0,5})")
_UNNAMED, _KEPT = regex(r"_([1-9][0-9]{0,5})"), regex(r"[A-Za-z0-9_]")
# Lines as git hosts and editors name them, and where a quotation of the text begins.
_LINE = regex(r"L?([1-9][0-9]{0,8})(?:[,C][0-9]+)?(?:-L?[1-9][0-9]{0,8}(?:[,C][0-9]+)?)?")
_QUOTED_TEXT = ":~:"
_TOP = "top"
_OF_GITHUB = "user-content-"  # with which the ids of a page begin there
_IN_LINE = regex(r"[^\n]+")
_COMMENT = regex(r"<!--(?:(?!-->)[\s\S])*+")
# No quadratic search: a tag ends before the next "<", braces before the next brace or line.
_TAG = regex(r"<[A-Za-z][\w:.-]*+((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')++)")
_BRACES = regex(r"\{([^{}\n]++)\}")
_NAME = regex(
    r"(?<![^\s:/*])(?:#|(?:id|name)\s*+=\s*+\{?)(?:\"([^\"]++)\"|'([^']++)'|([^\s\"'`={}<>*]++))",
    re.IGNORECASE,
)
_TITLES = (
    regex(rf"^(?:[ \t>]|{blocks.LIST_MARKER}[ \t])*+#{{1,6}}[ \t]++([^\n]+)", re.MULTILINE),
    regex(r"^[ \t>*+-]*+([^\s>][^\n]*)\n[ \t>]*+(?:=++|-++)[ \t]*+$", re.MULTILINE),
    regex(r"<h[1-6]\b[^<>\n]{0,500}>([^\n]{1,500}?)</h[1-6]>", re.IGNORECASE),
    regex(r"^((?:[^\s:][^\n]*+\n){1,8}+)\n?[ ]{0,3}[:~][ \t]++\S", re.MULTILINE),  # terms, and what is one
)
_BEHIND_TITLE = regex(r"(?<![ \t#])[ \t]*+(?:\{[^{}]*+\}|#++)[ \t]*+\Z")


class AnchorHeading(NamedTuple):
    """A heading as anchors see it; `path` has the titles from the outermost heading down to its own."""

    line: int
    path: tuple[str, ...]
    slug: str
    loose: str
    level: int


class Match(NamedTuple):
    """The headings that an anchor may mean, by their indexes; the first one is taken.

    `rule` says how they were found: "title", "slug" or "loose".
    """

    rule: str
    indexes: tuple[int, ...]

    @property
    def ambiguous(self) -> bool:
        """Whether the anchor may mean several."""
        return len(self.indexes) > 1


class AnchorTarget(NamedTuple):
    """What an anchor names: a section, or the line of a block.

    Attributes:
        rule: how it was found: "title", "slug", "loose", "block", or "place" for what is neither.
        lines: the lines of all that the anchor may mean; the first one is taken.
    """

    rule: str
    span: Span
    line: int
    lines: tuple[int, ...]

    @property
    def ambiguous(self) -> bool:
        """Whether the anchor may mean several."""
        return len(self.lines) > 1


# ---------------------------------------------------------------------------------------------------- keys


def slug(text: str) -> str:
    """Return the slug of a heading's text, before it is made unique in its document."""
    return "".join(filter(_stays_in_slug, text.lower())).replace(" ", "-")


@cache
def _stays_in_slug(character: str) -> bool:
    category = unicodedata.category(character)
    # Letters in circles and squares are symbols, but alphabetic: PropList.txt, Other_Alphabetic.
    return (
        category[0] in "LM"
        or category in {"Nd", "Nl", "Pc"}
        or character in " -"
        or bool(_CIRCLED.match(character))
    )


def keys(titles: Iterable[str]) -> list[tuple[str, str]]:
    """Return the slugs and loose keys of headings, given as written: the second `setup` is `setup-1`."""
    used: dict[str, int] = {}
    made = []
    for title in titles:
        letters = title.replace(" ", "")
        if letters.isascii() and letters.isalnum():  # as in most: nothing is marked, and nothing is left out
            plain_slug, key = title.lower().replace(" ", "-"), letters.lower()
        else:
            plain_slug, key = slug(plain(title)), loose(title)
        found = plain_slug
        while found in used:
            used[plain_slug] += 1
            found = f"{plain_slug}-{used[plain_slug]}"
        used[found] = 0
        made.append((found, key))
    return made


def loose(text: str) -> str:
    """Return the loose key of an anchor or a title: its letters and digits, NFKC and casefolded."""
    text = plain(text)
    if text.isascii():
        return _NOT_LOOSE.sub("", text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).replace(" ", "")
    return folded if folded.isalnum() else "".join(filter(str.isalnum, folded))


def plain(title: str) -> str:
    """Return the text of a heading as a renderer shows it: without code, link and emphasis marks."""
    return blocks.shown_text(title) if _MAY_BE_MARKED.search(title) else title


def _collapse_blanks(title: str) -> str:
    return _SPACES.sub(" ", title).strip()


def spell(among: Sequence[AnchorHeading], number: int) -> str | None:
    """Return what a wikilink says to name one heading: its title, with those above it, or its slug."""
    titles = [_NOT_IN_WIKILINKS.sub(" ", plain(title)).strip() for title in among[number].path]
    for way in (*(_NESTED.join(titles[-count:]) for count in range(1, len(titles) + 1)), among[number].slug):
        found = match(among, way)
        if found and found.indexes == (number,):
            return way
    return None


# ------------------------------------------------------------------------------------------------- finding


def headings(sections: Sequence[Section]) -> list[AnchorHeading]:
    """Return the headings of a document's sections, in order."""
    found = keys([section[0].title for section in sections])
    return [
        AnchorHeading(heading.line, path, unique, key, heading.level)
        for (heading, path, _, _), (unique, key) in zip(sections, found, strict=True)
    ]


def match(among: Sequence[AnchorHeading], anchor: str) -> Match | None:
    """Return the headings that an anchor names: by title, then slug, then loosely.

    `H1#H2` is a heading under another one, when no title has that `#` in it; where there is none, it is what
    Obsidian finds.
    """
    if not anchor:
        return None
    written, key = _collapse_blanks(anchor), loose(anchor)
    nested = (
        [part for part in map(_collapse_blanks, anchor.split(_NESTED)) if part] if _NESTED in anchor else []
    )
    ways = (
        ("title", lambda h: written in _title_spellings(h.path[-1])),
        ("title", lambda h: bool(nested) and _is_nested(h, nested, _same_title)),
        ("slug", lambda h: anchor == h.slug),
        ("slug", lambda h: bool(nested) and _is_nested(h, nested, _same_slug)),
        ("loose", lambda h: bool(key) and key == h.loose),
    )
    for rule, fits in ways:
        found = tuple(index for index, heading in enumerate(among) if fits(heading))
        if found:
            return Match(rule, found)
    walked = _walk_down(among, nested)
    if walked is not None:
        return Match("loose", (walked,))
    numbered = _NUMBERED.fullmatch(anchor)  # the second of a title, as some generators of sites name it
    if numbered:
        key, number = loose(numbered[1]), int(numbered[2])
        found = tuple(index for index, heading in enumerate(among) if key and key == heading.loose)
        return Match("loose", found[number : number + 1]) if number < len(found) else None
    if unnamed := _UNNAMED.fullmatch(anchor):  # the first of those without a letter that MkDocs keeps
        titles = ((index, heading.path[-1]) for index, heading in enumerate(among))
        found = tuple(index for index, title in titles if not _KEPT.search(title))
        return Match("loose", found[int(unnamed[1]) - 1 :][:1]) if int(unnamed[1]) <= len(found) else None
    return None


def find(document: Document, anchor: str) -> AnchorTarget | None:
    """Return the section or block of a document that an anchor (without its `#`) names, or None."""
    if anchor.startswith(BLOCK_MARK):
        return _find_block(document, anchor.removeprefix(BLOCK_MARK))
    found = match(headings(document.sections), anchor)
    if found is None:
        bare = anchor.rpartition(_OF_GITHUB)[2] if anchor.startswith(_OF_GITHUB) else ""
        return _find_place(document, anchor) or (find(document, bare) if bare else None)
    sections = [document.sections[index] for index in found.indexes]
    lines = tuple(section.heading.line for section in sections)
    return AnchorTarget(found.rule, sections[0].span, lines[0], lines)


def _find_place(document: Document, anchor: str) -> AnchorTarget | None:
    """Return the line of an anchor that is no heading of a section and no block."""
    lines, bare = document.lines, anchor.partition(_QUOTED_TEXT)[0]
    cited = _LINE.fullmatch(bare)
    if bare.casefold() == _TOP or anchor.startswith(_QUOTED_TEXT):
        number = 1
    elif cited and int(cited[1]) <= len(lines):
        number = int(cited[1])
    else:
        places = _find_places(document.text, document.body_span.start, document.code)
        at = places.get(bare.casefold(), places.get(loose(bare)))
        if at is None:
            return None
        number = lines.number(at)
    return AnchorTarget("place", lines.span(number) if len(lines) else Span(0, 0), number, (number,))


@lru_cache(maxsize=8)  # many links lead into one memory
def _find_places(text: str, start: int, code: tuple[Span, ...]) -> dict[str, int]:
    """Return the places with a name in the body, outside of code, and where each stands.

    These are the `id` and `name` of tags and of attributes in braces (`{#id}`, `{: #id}`), headings inside of
    lists, quotes and other blocks, and the terms of definition lists.
    """
    parts, at = [], 0
    for begin, end in (Span(0, start), *code):
        parts += [text[at:begin], _blank_out(text[max(at, begin) : end])]
        at = max(at, end)
    body = "".join((*parts, text[at:])).replace("\r\n", " \n").replace("\r", "\n")
    body = _COMMENT.sub(lambda found: _blank_out(found[0]), body)
    places: dict[str, int] = {}
    for tag in (*_TAG.finditer(body), *_BRACES.finditer(body)):
        for found in _NAME.finditer(tag[1]):
            places.setdefault(next(filter(None, found.groups())).casefold(), tag.start())
    for found in (each for titles in _TITLES for each in titles.finditer(body)):
        for title in text[slice(*found.span(1))].splitlines():
            shown = plain(_BEHIND_TITLE.sub("", title.strip()))
            for key in filter(None, (slug(shown), loose(shown))):
                places.setdefault(key, found.start(1))
    return places


def _blank_out(text: str) -> str:
    return _IN_LINE.sub(lambda line: " " * len(line[0]), text)


def _find_block(document: Document, identifier: str) -> AnchorTarget | None:
    same = [block for block in document.blocks if block.id == identifier]
    found = same or [block for block in document.blocks if block.id.casefold() == identifier.casefold()]
    lines = tuple(block.line for block in found)
    return AnchorTarget("block", found[0].span, lines[0], lines) if found else None


# Every link into a memory asks for each of its headings.
@lru_cache(maxsize=1 << 12)
def _title_spellings(title: str) -> frozenset[str]:
    return frozenset((_collapse_blanks(title), _collapse_blanks(plain(title))))


def _same_title(title: str, part: str) -> bool:
    return part in _title_spellings(title)


def _same_slug(title: str, part: str) -> bool:
    return part == slug(plain(title))


def _is_nested(heading: AnchorHeading, parts: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    """Return whether the last part names the heading, and the others, in order, headings above it."""
    *above, own = heading.path
    if not same(own, parts[-1]):
        return False
    titles = iter(above)
    return all(any(same(title, part) for title in titles) for part in parts[:-1])


def _walk_down(among: Sequence[AnchorHeading], parts: Sequence[str]) -> int | None:
    """Return the heading that Obsidian finds: each part is the next deeper heading with its letters.

    Those between may be left out, and a section may have ended: `A#C` is found in `# A`, `# B`, `## C`.
    """
    wanted, level = [loose(part) for part in parts], 0
    for number, heading in enumerate(among):
        if wanted and heading.level > level and wanted[0] and heading.loose == wanted[0]:
            level = heading.level
            del wanted[0]
            if not wanted:
                return number
    return None
