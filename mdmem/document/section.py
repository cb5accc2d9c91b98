"""Edits of one section, found by its heading or its heading path.

Markdown reads a line by the lines above it. So an edit is refused if it would change the headings outside of
it, or if its text would stand in code or HTML that is never closed.
"""

from __future__ import annotations

from difflib import get_close_matches

from mdmem.diagnostic import Span
from mdmem.document import frontmatter
from mdmem.document.document import Document
from mdmem.document.edit import TextEdit, fitted, splice
from mdmem.document.markdown import blocks
from mdmem.document.markdown.blocks import Heading, Section
from mdmem.document.outline import MARKER, TreeNode, read_tree
from mdmem.document.synced_block import BEGIN
from mdmem.document.text.lines import LINE_END, Lines
from mdmem.document.text.regex import regex
from mdmem.errors import SectionAmbiguous, SectionNotFound
from mdmem.kind import PROJECT_FILE

SEPARATOR = " > "
_MARKS = regex(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?")
_BLANK_LINES = regex(r"(?:[ \t]*(?:\r\n|\n|\r))+")
_COMMENT = regex(r"(?:\A|[\r\n]) {0,3}(?=<!--)")
_MOST_NAMED = 20
_MOST_TRIED = 5  # of equal headings, for a name of their own
_LONGEST_COMPARED = 200  # code points; comparing is quadratic in them
_PROBE = "\n\n# probe"
_VERBATIM_MARKS = ("```", "~~~", "<")  # without one of these, a text ends in nothing that is open


def find_section(document: Document, heading: str, *, folded: bool = False) -> Section:
    """Find the section with this heading: a title (`Index`) or a path (`Design > Index`).

    Upper and lower case differ, unless `folded`. Marks (`## Index`) say the level of the heading.

    Raises:
        SectionNotFound: no such section; it carries the headings that there are, the nearest first.
        SectionAmbiguous: more than one; it carries their lines, and what means one of them alone.
    """
    found = _find_all(document, heading, folded=folded)
    if not found:
        raise SectionNotFound(
            path=document.path, heading=heading, near=_name_near_headings(document, heading)
        )
    if len(found) > 1:
        lines = tuple(s.heading.line for s in found)
        own = tuple(filter(None, (_name_alone(document, s, folded=folded) for s in found[:_MOST_TRIED])))
        raise SectionAmbiguous(path=document.path, heading=heading, lines=lines, own=own)
    return found[0]


def _find_all(document: Document, heading: str, *, folded: bool) -> list[Section]:
    level, wanted = _split_marks(heading)
    sections = [s for s in document.sections if level in (None, s.heading.level)]
    fold = str.casefold if folded else str
    title, path = fold(wanted), fold(_normalize_path(wanted))
    return [s for s in sections if fold(s.heading.title) == title or path in map(fold, _heading_paths(s))]


def _name_alone(document: Document, section: Section, *, folded: bool) -> str:
    """Return the heading path that names this section alone, with marks if need be; else nothing."""
    path = SEPARATOR.join(section.path)
    names = (path, f"{'#' * section.heading.level} {path}")
    return next((name for name in names if len(_find_all(document, name, folded=folded)) == 1), "")


def _heading_paths(section: Section) -> set[str]:
    return {_normalize_path(SEPARATOR.join(section.path[start:])) for start in range(len(section.path))}


def _normalize_path(path: str) -> str:
    return SEPARATOR.join(part.strip() for part in path.split(SEPARATOR.strip()))


def _split_marks(heading: str) -> tuple[int | None, str]:
    """Split a heading into the level that its marks say, None without marks, and its title."""
    marks = _MARKS.fullmatch(heading.strip())
    return (len(marks[1]), marks[2].strip()) if marks else (None, heading.strip())


def _name_near_headings(document: Document, heading: str) -> tuple[str, ...]:
    _, wanted = _split_marks(heading)
    is_path = SEPARATOR.strip() in wanted
    names = [SEPARATOR.join(s.path) if is_path else s.heading.title for s in document.sections]
    near = [name for name in names if name.casefold() == wanted.casefold()]
    if len(wanted) <= _LONGEST_COMPARED:
        folded = {name.casefold(): name for name in names}
        near += (folded[name] for name in get_close_matches(wanted.casefold(), folded))
    return tuple(dict.fromkeys([*near, *names]))[:_MOST_NAMED]


def replace_section(
    document: Document, heading: str, new: str, *, keep_subsections: bool = False
) -> list[TextEdit]:
    """Replace what stands under a heading, down to the next heading of its level or above.

    The heading and the blank lines around its text stay. With `keep_subsections` only the text before the
    first subsection is replaced.

    Raises:
        EditRefused: the new text begins with the heading itself, or would swallow the headings behind it.
    """
    section = find_section(document, heading)
    region = section.own if keep_subsections else Span(section.heading.span.end, section.span.end)
    region = end_before_block(document, region)
    content = _trim_blank_lines(document.text, region)
    new = _fit_block(document, new)
    _refuse_own_heading(document, section.heading, new)
    if content.start == content.end:
        return _verify_edit(document, section, _block_at(document, region.start, new)) if new else []
    if not new:
        end = document.lines.around(content.end).end
        return _verify_edit(document, section, TextEdit(region.start, end, ""))
    return _verify_edit(document, section, TextEdit(content.start, content.end, new))


def append_to_section(document: Document, heading: str, new: str) -> list[TextEdit]:
    """Add text at the end of a section's own text, before its first subsection.

    A list item joins a list, without a blank line unless its items are set apart by one; anything else is
    set off by a blank line.

    Raises:
        EditRefused: the text would stand in code or HTML that is never closed, or swallow the headings
            behind it.
    """
    return append_within(document, find_section(document, heading), new)


def append_within(document: Document, section: Section, new: str) -> list[TextEdit]:
    """Add text at the end of a section that was found, as `append_to_section` does."""
    content = _trim_blank_lines(document.text, end_before_block(document, section.own))
    new = _fit_block(document, new)
    if not new:
        return []
    if content.start == content.end:
        return _verify_edit(document, section, _block_at(document, section.own.start, new))
    added = _gap_before_appended(document, section, content, new) + new
    return _verify_edit(document, section, TextEdit(content.end, content.end, added))


def insert_before_section(document: Document, heading: str, new: str) -> list[TextEdit]:
    """Insert text before a section's heading, set off by blank lines."""
    section = find_section(document, heading)
    return _set_off(document, section, section.heading.span.start, new)


def insert_after_section(document: Document, heading: str, new: str) -> list[TextEdit]:
    """Insert text behind a section and its subsections, set off by blank lines."""
    section = find_section(document, heading)
    return _set_off(document, section, end_before_block(document, section.span).end, new)


def append_block(document: Document, new: str) -> list[TextEdit]:
    """Add text at the end of the document, set off by exactly one blank line.

    A body of nothing but blank lines counts as empty: its blank lines give way to the text. What stands
    above is not looked at: in code that is never closed the text is code.
    """
    content = _trim_blank_lines(document.text, document.body_span)
    newline = document.lines.newline
    new = _fit_block(document, new)
    if not new:
        return []
    start = document.body_span.start
    if content.start == content.end:
        return [TextEdit(start, len(document.text), _below_frontmatter(document) + new + newline)]
    return [TextEdit(content.end, len(document.text), newline * 2 + new + newline)]


# ------------------------------------------------------------------------------------ where the text goes


def end_before_block(document: Document, region: Span) -> Span:
    """Return a region up to the block of `project sync`, if that begins in it.

    Markdown counts the block to the section above, and the next sync writes all behind its mark again.
    """
    found = document.path.casefold() == PROJECT_FILE.casefold() and BEGIN.search(
        document.text, region.start, region.end
    )
    return Span(region.start, found.start()) if found else region


def _fit_block(document: Document, new: str) -> str:
    new = fitted(document, new)
    return new[slice(*_trim_blank_lines(new, Span(0, len(new))))]


def _trim_blank_lines(text: str, region: Span) -> Span:
    blank = _BLANK_LINES.match(text, region.start, region.end)
    start = blank.end() if blank else region.start
    end = start + len(text[start : region.end].rstrip(" \t\r\n"))
    if end <= start:
        return Span(region.start, region.start)
    # Blanks at the end of the last line belong to that line.
    ending = LINE_END.search(text, end, region.end)
    return Span(start, ending.start() if ending else region.end)


def _gap_before_appended(document: Document, section: Section, content: Span, new: str) -> str:
    """Return a line end between an item and the list that ends a section, a blank line between all else."""
    newline = document.lines.newline
    last = _last_node(document, section, content) if MARKER.match(new) else None
    if last is None or last.kind != "list":
        return newline * 2
    is_apart = len(last.children) > 1 and last.children[-1].lead
    return newline * 2 if is_apart else newline


def _last_node(document: Document, section: Section, content: Span) -> TreeNode:
    nodes = read_tree(document).root.children
    node = next(each for each in nodes if each.line == section.heading.line)
    last_line = document.lines.number(content.end - 1)
    return next((each for each in reversed(node.children) if each.line <= last_line), node)


def _block_at(document: Document, at: int, new: str) -> TextEdit:
    """Return an insertion at a line boundary, one blank line away from its neighbours."""
    text, newline = document.text, document.lines.newline
    before, after = text[document.body_span.start : at], text[at:]
    if not before:
        lead = _below_frontmatter(document)
    elif before[-1] not in "\r\n":
        lead = newline * 2
    else:
        lead = "" if _ends_blank(before) else newline
    tail = newline if not after or _BLANK_LINES.match(after) else newline * 2
    return TextEdit(at, at, lead + new + tail)


def _set_off(document: Document, section: Section, at: int, new: str) -> list[TextEdit]:
    new = _fit_block(document, new)
    return _verify_edit(document, section, _block_at(document, at, new)) if new else []


def _below_frontmatter(document: Document) -> str:
    """Return the line ends that part the frontmatter from a text right behind it."""
    block = document.text[slice(*frontmatter.locate(document.text)[0])]
    newline = document.lines.newline
    return "" if not block else newline if block[-1] in "\r\n" else newline * 2


def _ends_blank(text: str) -> bool:
    body = text[:-2] if text.endswith("\r\n") else text[:-1]
    return not body or not body[max(body.rfind("\n"), body.rfind("\r")) + 1 :].strip(" \t")


# ------------------------------------------------------------------------------------ what it would change


def _refuse_own_heading(document: Document, heading: Heading, new: str) -> None:
    first = next(iter(blocks.scan(new).headings), None)
    if first and first.span.start == 0 and (first.level, first.title) == (heading.level, heading.title):
        raise document.refused(
            f"the new text begins with the heading {heading.title!r}, which stays",
            "give only what stands under it",
        )


def _verify_edit(document: Document, section: Section, edit: TextEdit) -> list[TextEdit]:
    """Return the edit, with a blank line more if need be; refuse it if it changes text around it."""
    above = document.text[: edit.start]
    if edit.start >= section.own.start and (opened := find_open(above, document.body_span.start)):
        reason = f"{opened} is never closed: the new text would be a part of it"
        raise document.refused(reason, "close it first")
    # Before a setext heading, or behind HTML that a blank line ends, the new text needs a blank line more.
    for tail in ("", document.lines.newline):
        tried = edit._replace(new=edit.new + tail)
        text = splice(document.text, [tried])
        if frontmatter.locate(text)[0].end != document.body_span.start:
            raise document.refused(
                "the frontmatter would not end where it does, since a `---` is in the new text",
                "write the line as `***`",
            )
        after = blocks.scan(text, document.body_span.start)
        _refuse_open_fence(document, tried, after)
        if _keeps_headings(document, tried, after):
            return [tried]
    raise document.refused(
        "the headings behind the new text would become a part of it",
        "close the code or HTML that it opens, and write headings without blanks before their marks",
    )


def _keeps_headings(document: Document, edit: TextEdit, after: blocks.Scan) -> bool:
    reached = edit.start + len(edit.new)
    shift = reached - edit.end
    above = [_shifted_key(h, 0) for h in document.headings if h.span.start < edit.start]
    below = [_shifted_key(h, shift) for h in document.headings if h.span.start >= edit.end]
    return above == [_shifted_key(h, 0) for h in after.headings if h.span.start < edit.start] and below == [
        _shifted_key(h, 0) for h in after.headings if h.span.start >= reached
    ]


def _shifted_key(heading: Heading, shift: int) -> tuple[int, int, str]:
    return heading.span.start + shift, heading.level, heading.title


def _refuse_open_fence(document: Document, edit: TextEdit, after: blocks.Scan) -> None:
    begins = edit.start + len(edit.new) - len(edit.new.lstrip("\r\n"))
    fence = next((f for f in after.fences if f.start < edit.start and f.end > begins), None)
    if fence and edit.new:
        line = document.lines.number(fence.start)
        raise document.refused(
            f"the fence in line {line} is never closed: the new text would be a part of it", "close it first"
        )


def find_open(text: str, start: int = 0) -> str:
    """Return what is open at the end of a Markdown text with its body at `start`; else nothing.

    What is appended to the text would be a part of it.
    """
    if not any(mark in text for mark in _VERBATIM_MARKS):
        return ""
    probed = blocks.scan(text + _PROBE, start)
    if probed.headings and probed.headings[-1].span.start == len(text) + 2:
        return ""
    fence = next((span for span in probed.fences if span.end > len(text)), None)
    if fence:
        return f"the fence in line {Lines(text).number(fence.start)}"
    comment = _COMMENT.search(text, max(0, text.rfind("-->")))
    return f"the comment in line {Lines(text).number(comment.end())}" if comment else "HTML above"
