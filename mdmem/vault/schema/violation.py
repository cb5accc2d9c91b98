"""Violations: where a memory breaks its schema, what is wrong there, and what would be accepted."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeAlias

from mdmem.diagnostic import Diagnostic, Span
from mdmem.document.document import Document
from mdmem.document.text.tokens import first_of
from mdmem.document.tree import Flaw, KeyPath, dotted
from mdmem.vault.schema.catalog import BODY
from mdmem.vault.schema.formats import FORMATS

Error: TypeAlias = Any  # jsonschema's ValidationError; its stub says that any attribute may be unset

_MOST_CHARACTERS = 60
_MOST_CHOICES = 20
_MOST_NAMES = 100  # that are compared with a key
_LONGEST_NAME = 32
_CHARACTERS_A_STEP = 1000  # of the text in which the place of a value is searched
_MOST_FINDINGS = 1000
_MOST_BITS = 128  # of a number that is written out; Python refuses to write very long ones
_MISSING = ("required", "dependentRequired")
_UNDESCRIBED = ("additionalProperties", "unevaluatedProperties")
_SIMPLE = ("type", "enum", "const", "format", "pattern")
_EXACT = ("const", "enum", "anyOf", "oneOf")
_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
}
# What a keyword accepts, in words that follow "must be".
_PHRASES = {
    "minimum": "a number of at least {}",
    "maximum": "a number of at most {}",
    "exclusiveMinimum": "a number of more than {}",
    "exclusiveMaximum": "a number of less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "a string of at least {} characters",
    "maxLength": "a string of at most {} characters",
    "minItems": "a list of at least {} items",
    "maxItems": "a list of at most {} items",
    "minProperties": "a mapping of at least {} fields",
    "maxProperties": "a mapping of at most {} fields",
    "uniqueItems": "a list without repeated items",
    "contains": "a list with an item that fits the schema's `contains`",
    "minContains": "a list of at least {} items that fit `contains`",
    "maxContains": "a list of at most {} items that fit `contains`",
    "items": "a list of at most {prefix} items",
    "unevaluatedItems": "a list of no more items than the schema's `unevaluatedItems` accepts",
    "const": "{}",
    "not": "something else: the schema rules this value out",
    "oneOf": "one alternative of the schema only: several fit",
}


def explain(
    document: Document, schema: str, errors: Iterable[Error], count: Callable[[int], None]
) -> Iterator[Diagnostic]:
    """Explain the errors of a validator as findings; of very many, the first.

    Args:
        count: is called with the steps of each finding, before they are taken; may raise.
    """
    chosen = (each for error in errors for each in _choose_alternative(error))
    searched = (document.tree.span.end if document.tree else 0) // _CHARACTERS_A_STEP
    for each in islice(chosen, _MOST_FINDINGS):
        count(searched)
        yield document.diagnose(_describe_error(document, schema, each))
    left_out = sum(1 for _ in chosen)
    if left_out:
        message = f"{left_out:,} more violations of the schema {schema} are left out"
        flaw = Flaw(locate_start(document), "schema-more", message, "fix the others first", f"{schema}::more")
        yield document.diagnose(flaw)


def _choose_alternative(error: Error) -> list[Error]:
    """Choose what to report where a value fits no alternative: the errors of the one that was meant.

    Alternatives for another type are left out. When those that are left are about the value itself, the
    error stays whole, and says what each of them accepts.
    """
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return [error]
    groups: dict[Any, list[Error]] = defaultdict(list)
    for inner in error.context:
        groups[inner.relative_schema_path[0]].append(inner)
    alternatives = list(groups.values())
    fitting = [
        group
        for group in alternatives
        if not any(e.validator == "type" and not e.relative_path for e in group)
    ] or alternatives
    if all(
        len(group) == 1 and group[0].validator in _SIMPLE and not group[0].relative_path for group in fitting
    ):
        return [error]
    # A different `const` or `enum` means another alternative: `kind: a` is not a failed `kind: b`.
    meant = min(fitting, key=lambda group: (sum(e.validator in ("const", "enum") for e in group), len(group)))
    return [chosen for inner in meant for chosen in _choose_alternative(inner)]


def _describe_error(document: Document, schema: str, error: Error) -> Flaw:
    path, wanted = tuple(error.absolute_path), error.validator_value
    keyword = "false" if _is_forbidden(error) else str(error.validator)
    span, field = _locate_error(document, path, error), _name_field(document, path, error)
    code = keyword
    if keyword in _MISSING:
        path = (*path, wanted)
        message = f"{_quote_path(path)} is missing"
        hint = f"add {_quote_path(path)}{_describe_field(error, wanted)}"
    elif keyword in _UNDESCRIBED:
        message, hint = f"{field} is not a field of this schema", _suggest_field(path, error.schema)
    elif keyword == "false":
        message, hint = f"{field} is not allowed", "remove it"
    elif keyword == BODY:
        part, message, hint = wanted
        code, path = "body", (keyword, part)
    elif keyword == "propertyNames":
        accepted, _ = _describe_accepted(error)
        message, hint = f"the key {field} must be {accepted}, not {show(path[-1])}", f"accepted: {accepted}"
    else:
        accepted, code = _describe_accepted(error)
        show_value = _show_exactly if code in _EXACT else show
        message = f"{field} must be {accepted}, not {show_value(error.instance)}"
        hint = f"accepted: {accepted}{_show_example(error.schema)}"
    pointer = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)
    rule = f"{schema}:{pointer}:{keyword}"
    return Flaw(span, f"schema-{code}", f"{message} (schema {schema})", hint, rule)


def _describe_accepted(error: Error) -> tuple[str, str]:
    """Describe what would be accepted; return that and the keyword that says so."""
    keyword, value = str(error.validator), error.validator_value
    if error.context:
        inner = dict(map(_describe_accepted, error.context))
        return _list_words(inner, " or "), keyword if len({*inner.values()}) > 1 else inner.popitem()[1]
    if keyword == "type" and (value != "string" or error.schema.get("format") not in FORMATS):
        names = [value] if isinstance(value, str) else value
        return _list_words((_TYPES[name] for name in names), " or "), keyword
    if keyword in ("type", "format"):
        return FORMATS[error.schema["format"]].means, keyword
    if keyword == "enum":
        return ("one of " if len(value) > 1 else "") + _list_words(map(_show_exactly, value)), keyword
    if keyword == "pattern":
        return f"a string that matches {shorten(value)}", keyword
    shown, prefix = _show_exactly(value), len(error.schema.get("prefixItems", ()))
    return _PHRASES[keyword].format(shown, prefix=prefix), keyword


def _describe_field(error: Error, name: str) -> str:
    schema = error.schema.get("properties", {}).get(name)
    if not isinstance(schema, dict):
        return ""
    description = schema.get("description")
    why = f": {escape(description).rstrip('.')}" if isinstance(description, str) else ""
    return why + _show_example(schema)


def _suggest_field(path: KeyPath, schema: dict[str, Any]) -> str:
    names = list(schema.get("properties", ()))
    # Comparing two names takes time by the product of their lengths.
    short = [name for name in names[:_MOST_NAMES] if len(name) <= _LONGEST_NAME]
    near = get_close_matches(str(path[-1])[:_LONGEST_NAME], short, n=1)
    if near:
        return f"did you mean `{escape(near[0])}`? otherwise remove it"
    known = _list_words(f"`{shorten(name)}`" for name in names)
    return f"the fields of this schema: {known}" if names else "remove it"


def locate_start(document: Document) -> Span:
    """Locate what a memory lacks as a whole: where its fields begin, or, without any, its body."""
    span = document.frontmatter.span if document.frontmatter.present else document.body_span
    at = (document.tree.span if document.tree else span).start
    return Span(at, at)


def _is_body(document: Document, error: Error) -> bool:
    is_text = isinstance(error.instance, str) and not error.absolute_path and not document.is_json
    return is_text or error.validator == BODY


def _is_forbidden(error: Error) -> bool:
    """Return whether the schema is `false` there."""
    return error.validator == "not" and error.validator_value is True


def _locate_error(document: Document, path: KeyPath, error: Error) -> Span:
    if _is_body(document, error):
        return Span(document.body_span.start, document.body_span.start)
    if document.tree is None:
        return locate_start(document)
    node = document.tree.nearest(path)
    if error.validator in _MISSING:
        return Span(node.span.start, node.span.start)
    is_about_key = path and (_is_forbidden(error) or error.validator in (*_UNDESCRIBED, "propertyNames"))
    member = document.tree.nearest(path[:-1]).member(str(path[-1])) if is_about_key else None
    return member.key_span if member else node.span


def _name_field(document: Document, path: KeyPath, error: Error) -> str:
    if path:
        return _quote_path(path)
    if _is_body(document, error):
        return "the body"
    return "the value" if document.is_json else "the frontmatter"


def _quote_path(path: KeyPath) -> str:
    return f"`{escape(dotted(path))}`"


def escape(text: str) -> str:
    """Escape what cannot be printed: control characters, lone surrogates, line ends."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shorten(text: str) -> str:
    """Return the beginning of `text`, printable."""
    return escape(text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…")


def show(value: Any) -> str:
    """Show a value in a message: short, on one line."""
    if isinstance(value, str):
        return f'"{shorten(value)}"'
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "a mapping"
    if value is None:
        return "empty"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "a very large number"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _show_exactly(value: Any) -> str:
    """Show a value as `show` does; a short list or mapping as JSON, so that it differs from another one."""
    with suppress(ValueError):  # a number that Python does not write out
        text = escape(json.dumps(value, ensure_ascii=False, default=str))
        return text if isinstance(value, list | dict) and len(text) <= _MOST_CHARACTERS else show(value)
    return show(value)


def _show_example(schema: dict[str, Any]) -> str:
    """Show the first of a schema's `examples` as JSON; nothing when it has none, or a long one."""
    try:
        text = escape(json.dumps(schema["examples"][0], ensure_ascii=False))
    except (LookupError, ValueError):  # no example, or a number that Python does not write out
        return ""
    return f", for example {text}" if len(text) <= _MOST_CHARACTERS else ""


def _list_words(words: Iterable[str], between: str = ", ") -> str:
    return first_of([*dict.fromkeys(words)], _MOST_CHOICES, between)
