"""The content of a memory: what a caller gives and sees of it, and changes of that alone."""

from __future__ import annotations

import json
from typing import Any

from mdmem.errors import EditRefused, Invalid, TextAmbiguous, TextNotFound, Usage
from mdmem.memory.arguments import json_value
from mdmem.text import edit as text_edit
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import TextEdit, splice
from mdmem.text.regex import regex

_PADDING = regex(r"(?:\ufeff|[ \t]*(?:\r\n|\n|\r))*")


def unpadded(text: str) -> str:
    """`text` without blank lines around it, nor a byte-order mark; the first line keeps its indentation."""
    padding = _PADDING.match(text)
    return text[padding.end() if padding else 0 :].rstrip(" \t\r\n")


def as_text(content: Any) -> str:
    """Content as the text that is written, without a final newline.

    Raises:
        Usage: it is blank, or no JSON value.
    """
    given = unpadded(content) if isinstance(content, str) else content
    if given is None or (isinstance(given, str) and not given.strip()):
        raise Usage(problem="there is no content", remedy="to delete the working memory, clear it")
    if isinstance(given, str):
        return given
    return json.dumps(json_value(given), ensure_ascii=False, indent=2)


def shown(document: Document | None) -> str:
    """What a caller sees of a memory: the body of Markdown, or the JSON text, without blank edges."""
    return unpadded(document.body) if document else ""


def with_body(document: Document, body: str) -> Document:
    """A Markdown memory with its frontmatter, and another body."""
    head = document.text[: document.body_span.start]
    newline = document.lines.newline
    gap = "" if not document.frontmatter.present else newline if head[-1] in "\r\n" else newline * 2
    text = head + gap + text_edit.fitted(document, body)
    return parse_text(document.path, text, document.limits)


def appended(document: Document, new: str) -> Document:
    """The document with `new` behind a blank line at its end.

    Raises:
        EditRefused: it is JSON.
    """
    if document.is_json:
        raise EditRefused(
            path=document.path,
            reason="nothing can be appended to JSON",
            remedy="merge members into it, or name the text to replace",
        )
    from mdmem.text.section import append_block  # noqa: PLC0415 - start-up

    return spliced(document, append_block(document, new))


def replaced(document: Document, search: str, new: str) -> Document:
    """The document with the one occurrence of `search` in its body, or in JSON, replaced.

    Raises:
        TextNotFound, TextAmbiguous: it does not occur, or more than once.
    """
    start = document.body_span.start
    body = parse_text(document.path, document.body, document.limits)
    above = document.lines.number(start) - 1
    try:
        edits = text_edit.replace(body, search, text_edit.fitted(document, new))
    except TextAmbiguous as error:
        raise error.but(lines=tuple(line + above for line in error.lines)) from None
    except TextNotFound as error:
        near = tuple(line._replace(line=line.line + above) for line in error.near)
        raise error.but(near=near) from None
    return spliced(document, [TextEdit(start + e.start, start + e.end, e.new) for e in edits])


def spliced(document: Document, edits: list[TextEdit]) -> Document:
    """The document with the edits made."""
    return parse_text(document.path, splice(document.text, edits, document.path), document.limits)


def refuse_unreadable(document: Document) -> None:
    """Refuse JSON that is none, before anything is looked for in it.

    Raises:
        Invalid: with what is wrong.
    """
    if document.is_json and document.tree is None:
        raise Invalid(findings=document.findings)


def is_object(document: Document) -> bool:
    """Whether a memory has fields, or could have: a JSON value that is no object cannot."""
    return not document.is_json or (document.tree is not None and document.tree.kind == "mapping")
