"""JSON merge patch (RFC 7396): a value that says which members of an object change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdmem.text.document import Document, parse_text
from mdmem.text.edit import splice
from mdmem.text.field import set_field, unset_field


def merged(target: Any, patch: Any) -> Any:
    """What `patch` makes of `target` (RFC 7396, section 2): null removes, objects merge, all else replaces."""
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
    for key, part in patch.items():
        if part is not None:
            edits = set_field(document, [key], merged(document.fields.get(key), part))
        else:
            edits = unset_field(document, [key]) if key in document.fields else []
        if edits:
            text = splice(document.text, edits, document.path)
            document = parse_text(document.path, text, document.limits)
    return document
