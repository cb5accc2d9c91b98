"""Violations of a schema as findings: where each stands, what is wrong, and what would be accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mdmem.diagnostic import Diagnostic, Span
from mdmem.schema import wording
from mdmem.schema.body import Body, Shortfall
from mdmem.text.document import Document
from mdmem.text.parsed import Flaw
from mdmem.text.tree import Key, dotted

if TYPE_CHECKING:  # jsonschema takes longer to import than most commands take to run
    from jsonschema import ValidationError

_ABOUT_THE_KEY = ("additionalProperties", "unevaluatedProperties", "propertyNames")


def explain(document: Document, schema: str, errors: Iterable[ValidationError]) -> Iterator[Diagnostic]:
    """The errors that the schema of this name found in `document`, as findings."""
    for error in errors:
        for leaf in _narrowed(error):
            yield document.diagnose(_flaw(document, schema, leaf))


def start(document: Document) -> Span:
    """The place of what the memory lacks as a whole: where its fields begin, or, without any, its body."""
    if document.tree:
        at = document.tree.span.start
    elif document.frontmatter.present:
        at = document.frontmatter.span.start
    else:
        at = document.body_span.start
    return Span(at, at)


def _narrowed(error: ValidationError) -> list[ValidationError]:
    """The errors to tell instead of "fits no alternative": those of the alternative that was meant.

    Alternatives of another type than the value are out. When all that is left object to the value itself,
    the error stays whole, and is told with what each of them accepts.
    """
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return [error]
    branches = _fitting_branches(error)
    if all(len(branch) == 1 and _is_about_the_value(branch[0]) for branch in branches):
        return [error]
    best = min(branches, key=_distance)
    return [leaf for each in best for leaf in _narrowed(each)]


def _fitting_branches(error: ValidationError) -> list[list[ValidationError]]:
    branches: dict[Key, list[ValidationError]] = {}
    for each in error.context:
        # An alternative that is `false` gives an error without a path.
        branches.setdefault(each.schema_path[0] if each.schema_path else -1, []).append(each)
    fitting = [b for b in branches.values() if not any(e.validator == "type" and not e.path for e in b)]
    return fitting or list(branches.values())


def _is_about_the_value(error: ValidationError) -> bool:
    return not error.path and error.validator in ("type", "enum", "const", "format", "pattern")


def _distance(branch: list[ValidationError]) -> tuple[int, int]:
    # A `const` or `enum` that differs tells alternatives apart: `kind: a` is not a failed `kind: b`.
    return sum(error.validator in ("const", "enum") for error in branch), len(branch)


def _flaw(document: Document, schema: str, error: ValidationError) -> Flaw:
    keyword = str(error.validator or "false")
    path = tuple(error.absolute_path)
    rules = error.schema if isinstance(error.schema, dict) else {}
    span = _place(document, path, keyword, isinstance(error.instance, Body))
    field = _field(document, path, isinstance(error.instance, Body))
    code = keyword
    value: Any = error.validator_value
    if keyword == "required":
        path = (*path, str(value))
        message, hint = _missing(path, rules)
    elif keyword == "dependentRequired":
        name, other = value
        path = (*path, other)
        message, hint = (
            f"{_quoted(path)} is missing: {field} has `{name}`",
            f"add `{wording.printable(other)}`",
        )
    elif keyword in ("additionalProperties", "unevaluatedProperties"):
        message, hint = f"{field} is not a field of this schema", _known(path, rules)
    elif keyword == "false":
        message, hint = f"{field} is not allowed", "take it out"
    elif keyword == "x-body":
        code, path = "body", ("x-body", value.section or "maxBytes")
        message, hint = _body(value)
    else:
        wanted, code = _wanted(error)
        what = f"the key {field}" if keyword == "propertyNames" else field
        shown = wording.shown(path[-1] if keyword == "propertyNames" else error.instance)
        message, hint = f"{what} must be {wanted}, not {shown}", f"accepted: {wanted}{_example(error)}"
    rule = f"{schema}:{_pointer(path)}:{keyword}"
    return Flaw(span, f"schema-{code}", f"{message} (schema {schema})", hint, rule)


def _wanted(error: ValidationError) -> tuple[str, str]:
    """What would be accepted, and the keyword that says so."""
    keyword = str(error.validator)
    if error.context:
        branches = _fitting_branches(error) if keyword != "propertyNames" else [list(error.context)]
        wanted = [_wanted(each) for branch in branches for each in branch]
        codes = {code for _, code in wanted}
        one = len(codes) == 1 and keyword != "propertyNames"
        return wording.either(words for words, _ in wanted), codes.pop() if one else keyword
    rules = error.schema if isinstance(error.schema, dict) else {}
    return wording.accepted(keyword, error.validator_value, rules), keyword


def _example(error: ValidationError) -> str:
    """An example of what would be accepted, from the nearest schema around that has one for this value."""
    at: Any = error
    while at is not None:
        rules = at.schema if isinstance(at.schema, dict) else {}
        if at.absolute_path == error.absolute_path and rules.get("examples"):
            return wording.example(rules["examples"])
        at = at.parent
    return ""


def _missing(path: tuple[Key, ...], rules: dict[str, Any]) -> tuple[str, str]:
    about = rules.get("properties", {}).get(path[-1])
    about = about if isinstance(about, dict) else {}
    description = about.get("description")
    why = f": {wording.printable(description).rstrip('.')}" if isinstance(description, str) else ""
    return f"{_quoted(path)} is missing", f"add {_quoted(path)}{why}{wording.example(about.get('examples'))}"


def _known(path: tuple[Key, ...], rules: dict[str, Any]) -> str:
    names = list(rules.get("properties", ()))
    from difflib import get_close_matches  # noqa: PLC0415 - start-up

    near = get_close_matches(str(path[-1]), names, n=1)
    if near:
        return f"did you mean `{wording.printable(near[0])}`? otherwise take it out"
    listed = ", ".join(f"`{wording.printable(name)}`" for name in names)
    return f"the fields of this schema: {listed}" if names else "take it out"


def _body(shortfall: Shortfall) -> tuple[str, str]:
    if shortfall.section:
        title = wording.printable(shortfall.section)
        return f"the body has no section `{title}`", f"add a heading `## {title}`"
    message = f"the body has {shortfall.size:,} bytes; the most is {shortfall.limit:,}"
    return message, "shorten it, or move a part to another memory"


def _place(document: Document, path: tuple[Key, ...], keyword: str, in_body: bool) -> Span:
    if in_body or keyword == "x-body":
        at = document.body_span.start
        return Span(at, at)
    if document.tree is None:
        return start(document)
    node = document.tree.nearest(path)
    if keyword in ("required", "dependentRequired"):
        return Span(node.span.start, node.span.start)
    if path and keyword in (*_ABOUT_THE_KEY, "false"):
        parent = document.tree.nearest(path[:-1])
        member = parent.member(str(path[-1]))
        return member.key_span if member else node.span
    return node.span


def _field(document: Document, path: tuple[Key, ...], in_body: bool) -> str:
    if path:
        return _quoted(path)
    if in_body:
        return "the body"
    return "the value" if document.is_json else "the frontmatter"


def _quoted(path: tuple[Key, ...]) -> str:
    return f"`{wording.printable(dotted(path))}`"


def _pointer(path: tuple[Key, ...]) -> str:
    """The path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)
