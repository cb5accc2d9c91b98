"""JSON merge patch (RFC 7396): a value that says which members of an object change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mdmem.errors import Usage
from mdmem.memory.content import is_object, refuse_unreadable, spliced

if TYPE_CHECKING:
    from mdmem.text.document import Document


def merged(target: Any, patch: Any) -> Any:
    """What `patch` makes of `target` (RFC 7396, section 2): null removes, objects merge, others replace."""
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
    """A JSON object after a patch; only the members that change are written.

    Raises:
        EditRefused, Usage, NotEncodable, TooLarge, TooNested: as `mdmem.text.field.set_field`.
    """
    from mdmem.text.field import set_field, unset_field  # noqa: PLC0415 - start-up

    for key, part in patch.items():
        if part is not None:
            edits = set_field(document, [key], merged(document.fields.get(key), part))
        else:
            edits = unset_field(document, [key]) if key in document.fields else []
        document = spliced(document, edits)
    return document


def refuse_no_object(document: Document) -> None:
    """Refuse to merge into what is no JSON object.

    Raises:
        Invalid: it is JSON that cannot be read.
        Usage: it is Markdown, or another JSON value.
    """
    refuse_unreadable(document)
    if document.is_json and is_object(document):
        return
    what = "a JSON value that is no object" if document.is_json else "Markdown"
    raise Usage(
        problem=f"{document.path} is {what}: a merge patch changes the members of an object",
        remedy="update it, or clear it first",
    )
