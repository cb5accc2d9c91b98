"""When working memory expires: the field `expires`, and the time that every change gives it anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import Usage
from mdmem.memory import moment
from mdmem.text.edit import TextEdit
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem.text.document import Document, Limits
    from mdmem.vault.plan import Change, EditPlan
    from mdmem.vault.vault import Vault

FIELD = "expires"
TTL = "ttl_seconds"
_WORKING = regex(
    r"(?:users/[^/]+/)?(?:projects/[^/]+/)?(?:resources/[^/]+/[^/]+/)?working/(?:threads|resources)/[^/]+"
)


class Life(NamedTuple):
    """How long a change lets a memory live.

    Attributes:
        until: the moment as it is written; None for ever.
        ttl: the seconds that the memory keeps, for changes to come; None where it keeps none.
    """

    until: str | None
    ttl: int | None = None


def life(ttl: int | None, default: int, now: datetime) -> Life:
    """The life that begins at `now`.

    Args:
        ttl: seconds, which are kept; 0 for ever; None for the default.
        default: seconds; 0 for ever.
        now: with a time zone.

    Raises:
        Usage: the seconds are negative, no whole number, or end behind the year 9999.
    """
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
    return Life(moment.stamp(end), ttl)


def written(document: Document) -> str | None:
    """The field `expires` as it stands in a memory; None where there is none, or none that says a moment."""
    value = document.fields.get(FIELD)
    return value if moment.read(value) else None


def has_passed(expires: str | None, now: datetime) -> bool:
    """Whether the moment that `expires` says has come. What cannot be read never has: a schema reports it."""
    end = moment.read(expires)
    return end is not None and end <= now


def living(document: Document, life: Life) -> Document:
    """`document` with its `expires` and `ttl_seconds` set, or removed, as `life` says; nothing else changes.

    Raises:
        Usage: it should expire, and is JSON that has no place for a field.
        EditRefused: its fields cannot be edited exactly.
    """
    from mdmem.memory.content import is_object, spliced  # noqa: PLC0415 - start-up
    from mdmem.text.field import set_field, unset_field  # noqa: PLC0415 - start-up

    if not is_object(document):
        if life.until is None:
            return document
        raise Usage(
            problem=f"{document.path}: a JSON value that is no object has no place for `expires`",
            remedy="give a ttl of 0, or put the value into an object",
        )
    for name, value in ((FIELD, life.until), (TTL, life.ttl)):
        if value is not None and document.fields.get(name) != value:
            document = spliced(document, set_field(document, name, value))
        elif value is None and name in document.fields:
            document = _without_empty(spliced(document, unset_field(document, name)))
    return document


def _without_empty(document: Document) -> Document:
    """A document without its frontmatter, and the blank line behind it, where nothing stands in that.

    It stays where what follows would be taken for another one.
    """
    from mdmem.memory.content import spliced  # noqa: PLC0415 - start-up

    front = document.frontmatter
    if not front.present or document.text[slice(*front.inner)].strip():
        return document
    body = document.body
    newline = document.lines.newline
    end = front.span.end + len(newline) * body.startswith(newline)
    bare = spliced(document, [TextEdit(front.span.start, end, "")])
    return document if bare.frontmatter.present else bare


def renewed(after: Document, before: Document | None, default: int, now: datetime) -> Document:
    """A memory after a change that names no ttl, with its life begun anew.

    A change that itself sets or removes `expires` has its way. Else the memory lives for as long as its
    `ttl_seconds` says; without one as long as the config says; and without that, its `expires` stays.

    Args:
        after: the memory as the change makes it.
        before: as it was; None where it is new.
        default: the config's seconds; 0 for ever.
        now: with a time zone.
    """
    from mdmem.memory.content import is_object  # noqa: PLC0415 - start-up

    expires = after.fields.get(FIELD)
    is_told = FIELD in after.fields if before is None else expires != before.fields.get(FIELD)
    if is_told or not is_object(after):
        return after
    ttl = kept(after)
    if ttl is None:
        return living(after, life(None, default, now)) if default else after
    if before is not None and FIELD not in before.fields and kept(before) == ttl:
        return after  # somebody has removed `expires`, and meant it
    return living(after, life(ttl, default, now)._replace(ttl=ttl))


def kept(document: Document) -> int | None:
    """The seconds that a memory keeps, as its `ttl_seconds`; None without any that make sense."""
    value = document.fields.get(TTL)
    try:
        life(value if type(value) is int else -1, 0, moment.now())
    except Usage:
        return None
    return value


def carried(after: Document, before: Document, names: Sequence[str]) -> Document:
    """What is written in the place of a memory, with those of its fields that it does not speak of itself."""
    from mdmem.memory.content import is_object, spliced  # noqa: PLC0415 - start-up
    from mdmem.text.field import set_field  # noqa: PLC0415 - start-up

    if not is_object(after):
        return after
    for name in names:
        if name in before.fields and name not in after.fields:
            after = spliced(after, set_field(after, name, before.fields[name]))
    return after


def is_working(path: str) -> bool:
    """Whether a path, relative to any namespace around it, is that of a working memory."""
    return "working/" in path and _WORKING.fullmatch(path) is not None


def sliding(vault: Vault, plan: EditPlan) -> EditPlan:
    """A plan of changes to memories, of which those to working memory begin its life anew.

    Content that takes the place of a working memory, and says nothing of its life, goes on with it.
    """
    if not any(is_working(change.path) for change in plan.changes):
        return plan
    default, now, limits = vault.config.working.ttl_seconds, moment.now(), vault.config.limits
    changes = tuple(_sliding(c, default, now, limits) if is_working(c.path) else c for c in plan.changes)
    return replace(plan, changes=changes)


def _sliding(change: Change, default: int, now: datetime, limits: Limits) -> Change:
    from mdmem.text.edit import between  # noqa: PLC0415 - start-up

    after, before = change.after(limits), change.before
    if after is None or (after.is_json and after.tree is None) or after.frontmatter.flaws:
        return change
    is_whole = change.content is not None
    kept_on = after
    if is_whole and before is not None and FIELD not in after.fields and TTL not in after.fields:
        kept_on = carried(after, before, (TTL, FIELD))
    result = renewed(kept_on, before, default, now)
    if result is after:
        return change
    if is_whole or before is None:
        return replace(change, content=result.data)
    return replace(change, edits=tuple(between(before.text, result.text)))
