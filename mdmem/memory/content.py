"""The content of a memory: what a caller gives and sees of it, and how long working memory lives.

Members of a JSON object change by a merge patch (RFC 7396). Moments are written as in RFC 3339, in UTC, to
the second. The life of a working memory is in its field `expires`, which every change sets again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from mdmem.document import edit as text_edit
from mdmem.document.arguments import json_value
from mdmem.document.document import Document, Limits, parse_text
from mdmem.document.edit import TextEdit, between, spliced
from mdmem.document.field import unset_field, with_field
from mdmem.document.moment import moment_of, stamp
from mdmem.document.section import append_block
from mdmem.document.text.regex import regex
from mdmem.errors import EditRefused, Invalid, TextAmbiguous, TextNotFound, Usage
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.vault import Vault

_PADDING = regex(r"(?:\ufeff|[ \t]*(?:\r\n|\n|\r))*")


def unpadded(text: str) -> str:
    """Remove blank lines around a text, and a byte-order mark; the first line keeps its indentation."""
    padding = _PADDING.match(text)
    return text[padding.end() if padding else 0 :].rstrip(" \t\r\n")


def as_text(content: Any) -> str:
    """Return content as the text that is written, without a final newline."""
    given = unpadded(content) if isinstance(content, str) else content
    if given is None or (isinstance(given, str) and not given.strip()):
        raise Usage(problem="there is no content", remedy="to delete the working memory, clear it")
    if isinstance(given, str):
        return given
    return json.dumps(json_value(given), ensure_ascii=False, indent=2)


def content_of(document: Document | None) -> str:
    """Return what a caller sees of a memory: the body of Markdown, or the JSON text, without blank edges."""
    return unpadded(document.body) if document else ""


def new_body(document: Document, body: str) -> TextEdit:
    """Return the edit that gives a Markdown memory another body, a blank line behind its frontmatter."""
    start, newline = document.body_span.start, document.lines.newline
    gap = ""
    if body and document.frontmatter.present:
        gap = newline if document.text[start - 1] in "\r\n" else newline * 2
    return TextEdit(start, len(document.text), gap + text_edit.fitted(document, body))


def appended(document: Document, new: str) -> Document:
    """Return the document with `new` behind a blank line at its end."""
    if document.is_json:
        raise EditRefused(
            path=document.path,
            reason="nothing can be appended to JSON",
            remedy="merge members into it, or name the text to replace",
        )
    return spliced(document, append_block(document, new))


def replaced(document: Document, search: str, new: str) -> Document:
    """Return the document with the one occurrence of `search` in its body, or in JSON, replaced."""
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


def refuse_unreadable(document: Document) -> None:
    """Refuse JSON that cannot be read, before anything is looked for in it."""
    if document.is_json and document.tree is None:
        raise Invalid(findings=document.findings)


def is_object(document: Document) -> bool:
    """Return whether a memory has fields, or could have: a JSON value that is not an object cannot."""
    return not document.is_json or (document.tree is not None and document.tree.kind == "mapping")


def merged(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396, section 2): null removes, objects merge, others replace."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, part in patch.items():
        if part is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), part)
    return result


def patched(document: Document, patch: Mapping[str, Any]) -> Document:
    """Return a JSON object after a patch; only the members that change are written."""
    for key, part in patch.items():
        if part is not None:
            document = with_field(document, [key], merged(document.fields.get(key), part))
        elif key in document.fields:
            document = spliced(document, unset_field(document, [key]))
    return document


def refuse_no_object(document: Document) -> None:
    """Refuse to merge into what is not a JSON object."""
    refuse_unreadable(document)
    if document.is_json and is_object(document):
        return
    what = "a JSON value that is not an object" if document.is_json else "Markdown"
    raise Usage(
        problem=f"{document.path} is {what}: a merge patch changes the members of an object",
        remedy="update it, or clear it first",
    )


def utc_now() -> datetime:
    """Return the present moment, in UTC."""
    return datetime.now(UTC)


EXPIRES = "expires"
TTL = "ttl_seconds"
# Nothing says of a memory without these that it does not count.
LIMITS = frozenset({"valid_from", "valid_to", EXPIRES, "superseded_by"})
_WORKING = regex(
    r"(?:users/[^/]+/)?(?:projects/[^/]+/)?(?:resources/[^/]+/[^/]+/)?working/(?:threads|resources)/[^/]+"
)


class Life(NamedTuple):
    """How long a memory lives: the moment as it is written, and the seconds that it keeps, if any."""

    until: str | None
    ttl: int | None = None


def life(ttl: int | None, default: int, now: datetime) -> Life:
    """Return the life that begins now, in seconds: `ttl`, which is kept, else `default`; 0 for ever."""
    seconds = default if ttl is None else ttl
    if type(seconds) is not int or seconds < 0:
        raise Usage(problem=f"a ttl is a whole number of seconds, not {ttl!r}", remedy="give 0 for ever")
    if not seconds:
        # Kept where the config would say otherwise the next time.
        return Life(None, 0 if default else None)
    try:
        # Written in whole seconds, so a second that has begun counts: nothing lives too short.
        end = now + timedelta(seconds=seconds, microseconds=999_999)
    except OverflowError:
        problem = f"a ttl of {seconds} seconds ends behind the year 9999"
        raise Usage(problem=problem, remedy="give 0 for ever") from None
    return Life(stamp(end), ttl)


def expiry_of(document: Document) -> str | None:
    """Return the field `expires` as it is written; None where it says no moment."""
    value = document.fields.get(EXPIRES)
    return value if moment_of(value) else None


def has_passed(expires: str | None, now: datetime) -> bool:
    """Return whether the moment that `expires` says has come; what cannot be read never has."""
    end = moment_of(expires)
    return end is not None and end <= now


State: TypeAlias = Literal["live", "superseded", "contradicted", "over", "expired", "not yet"]
"""contradicted: over, and something speaks against it; over: past `valid_to`; expired: past `expires`;
not yet: before `valid_from`.
"""
StatesAt: TypeAlias = "Callable[[datetime], Mapping[str, State]]"
"""Find what does not count at a moment, by its name here; this asks the index."""


def make_judge(find: StatesAt, now: datetime) -> Callable[[Document, str], State]:
    """Return what tells whether a memory counts now, by its document and its name here.

    States are found once, and only for a memory with a field that may say that it does not.
    """
    found = cache(find)
    return lambda document, path: (
        "live" if LIMITS.isdisjoint(document.fields) else found(now).get(path, "live")
    )


def with_life(document: Document, life: Life) -> Document:
    """Set or remove the `expires` and `ttl_seconds` of a document, as `life` says."""
    if not is_object(document):
        if life.until is None:
            return document
        raise Usage(
            problem=f"{document.path}: a JSON value that is not an object has no place for `expires`",
            remedy="give a ttl of 0, or put the value into an object",
        )
    for name, value in ((EXPIRES, life.until), (TTL, life.ttl)):
        if value is not None and document.fields.get(name) != value:
            document = with_field(document, name, value)
        elif value is None and name in document.fields:
            document = without_empty_frontmatter(spliced(document, unset_field(document, name)))
    return document


def without_empty_frontmatter(document: Document) -> Document:
    """Return a document without its frontmatter, and the blank line behind it, where nothing stands in that.

    It stays where what follows would be taken for another one.
    """
    front = document.frontmatter
    if not front.present or document.text[slice(*front.inner)].strip():
        return document
    end, newline = front.span.end, document.lines.newline
    if document.body.startswith(newline):
        end += len(newline)
    bare = spliced(document, [TextEdit(front.span.start, end, "")])
    return document if bare.frontmatter.present else bare


def renewed(after: Document, before: Document | None, default: int, now: datetime) -> Document:
    """Return a memory after a change that names no ttl, with its life begun again.

    A change that itself sets or removes `expires` has its way. Else the memory lives for as long as its
    `ttl_seconds` says; without one as long as the config says (`default`); without that, `expires` stays.
    """
    expires = after.fields.get(EXPIRES)
    is_told = EXPIRES in after.fields if before is None else expires != before.fields.get(EXPIRES)
    if is_told or not is_object(after):
        return after
    ttl = ttl_of(after)
    if ttl is None:
        return with_life(after, life(None, default, now)) if default else after
    if before is not None and EXPIRES not in before.fields and ttl_of(before) == ttl:
        return after  # somebody has removed `expires`, and meant it
    return with_life(after, life(ttl, default, now)._replace(ttl=ttl))


def ttl_of(document: Document) -> int | None:
    """Return the seconds that a memory keeps, as its `ttl_seconds`; None without any that make sense."""
    value = document.fields.get(TTL)
    try:
        life(value if type(value) is int else -1, 0, utc_now())
    except Usage:
        return None
    return value


def with_fields_of(after: Document, before: Document, names: Sequence[str]) -> Document:
    """Return what replaces a memory, with the fields of it that the new text does not name."""
    if not is_object(after):
        return after
    for name in names:
        if name in before.fields and name not in after.fields:
            after = with_field(after, name, before.fields[name])
    return after


def with_life_of(after: Document, before: Document) -> Document:
    """Return what replaces a memory, with its life, unless the new text says when it expires."""
    return after if EXPIRES in after.fields else with_fields_of(after, before, (TTL, EXPIRES))


def is_working(path: str) -> bool:
    """Return whether a path, relative to any namespace around it, is that of a working memory."""
    return "working/" in path and _WORKING.fullmatch(path) is not None


def sliding(vault: Vault, plan: EditPlan) -> EditPlan:
    """Let the changes of a plan to working memories begin their lives again.

    Content that takes the place of a working memory, and says nothing of its life, goes on with it.
    """
    if not any(is_working(change.path) for change in plan.changes):
        return plan
    default, now, limits = vault.config.working.ttl_seconds, utc_now(), vault.config.limits
    changes = tuple(_renew_change(c, default, now, limits) if is_working(c.path) else c for c in plan.changes)
    return plan._replace(changes=changes)


def _renew_change(change: Change, default: int, now: datetime, limits: Limits) -> Change:
    after, before = change.after(limits), change.before
    if after is None or (after.is_json and after.tree is None) or not after.frontmatter.takes_fields:
        return change
    is_whole = change.content is not None
    whole = with_life_of(after, before) if is_whole and before else after
    result = renewed(whole, before, default, now)
    if result is after:
        return change
    if is_whole or before is None:
        return change._replace(content=result.data)
    return change._replace(edits=tuple(between(before.text, result.text)))
