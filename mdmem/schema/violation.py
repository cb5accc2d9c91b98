"""Violations of a schema as findings: where each stands, what is wrong, and what would be accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mdmem.diagnostic import Diagnostic, Span
from mdmem.schema import wording
from mdmem.schema.body import Body, Shortfall
from mdmem.text.document import Document
from mdmem.text.parsed import Flaw
from mdmem.text.tree import KeyPath, dotted

_ABOUT_THE_KEY = ("additionalProperties", "unevaluatedProperties", "propertyNames")


class Violation(NamedTuple):
    """Something in a value that a schema does not accept.

    Attributes:
        keyword: the keyword that says so; "false" for the schema `false`.
        wanted: what the keyword wants; of several things the one that is missing.
        value: what stands there.
        schema: the schema that the keyword stands in; empty for `false`.
        path: where the value stands.
        branches: where none of several schemas accepts the value, what each of them does not accept.
    """

    keyword: str
    wanted: Any
    value: Any
    schema: dict[str, Any]
    path: KeyPath
    branches: tuple[tuple[Violation, ...], ...] = ()


# A violation behind those that it is a branch of, the outermost first.
_Leaf = tuple[Violation, ...]


def explain(document: Document, schema: str, violations: Iterable[Violation]) -> Iterator[Diagnostic]:
    """What the schema of this name does not accept of `document`, as findings."""
    for each in violations:
        for leaf in _narrowed((each,)):
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


def _narrowed(leaf: _Leaf) -> list[_Leaf]:
    """The violations to tell instead of "fits no alternative": those of the alternative that was meant.

    Alternatives of another type than the value are out. When all that is left object to the value itself,
    the violation stays whole, and is told with what each of them accepts.
    """
    whole = leaf[-1]
    if whole.keyword not in ("anyOf", "oneOf") or not whole.branches:
        return [leaf]
    branches = _fitting_branches(whole)
    if all(len(branch) == 1 and _is_about_the_value(branch[0], whole) for branch in branches):
        return [leaf]
    best = min(branches, key=_distance)
    return [found for each in best for found in _narrowed((*leaf, each))]


def _fitting_branches(whole: Violation) -> list[tuple[Violation, ...]]:
    """The branches that are about values of this type; all where none is."""
    fitting = [
        branch
        for branch in whole.branches
        if not any(each.keyword == "type" and each.path == whole.path for each in branch)
    ]
    return fitting or list(whole.branches)


def _is_about_the_value(each: Violation, whole: Violation) -> bool:
    return each.path == whole.path and each.keyword in ("type", "enum", "const", "format", "pattern")


def _distance(branch: tuple[Violation, ...]) -> tuple[int, int]:
    # A `const` or `enum` that differs tells alternatives apart: `kind: a` is not a failed `kind: b`.
    return sum(each.keyword in ("const", "enum") for each in branch), len(branch)


def _flaw(document: Document, schema: str, leaf: _Leaf) -> Flaw:
    keyword, value, instance, rules, path, _ = leaf[-1]
    span = _place(document, path, keyword, isinstance(instance, Body))
    field = _field(document, path, isinstance(instance, Body))
    code = keyword
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
        wanted, code = _wanted(leaf[-1])
        what = f"the key {field}" if keyword == "propertyNames" else field
        shown = wording.shown(path[-1] if keyword == "propertyNames" else instance)
        message, hint = f"{what} must be {wanted}, not {shown}", f"accepted: {wanted}{_example(leaf)}"
    rule = f"{schema}:{_pointer(path)}:{keyword}"
    return Flaw(span, f"schema-{code}", f"{message} (schema {schema})", hint, rule)


def _wanted(violation: Violation) -> tuple[str, str]:
    """What would be accepted, and the keyword that says so."""
    keyword = violation.keyword
    if violation.branches:
        branches = _fitting_branches(violation) if keyword != "propertyNames" else violation.branches
        wanted = [_wanted(each) for branch in branches for each in branch]
        codes = {code for _, code in wanted}
        one = len(codes) == 1 and keyword != "propertyNames"
        return wording.either(words for words, _ in wanted), codes.pop() if one else keyword
    return wording.accepted(keyword, violation.wanted, violation.schema), keyword


def _example(leaf: _Leaf) -> str:
    """An example of what would be accepted, from the nearest schema around that has one for this value."""
    for around in reversed(leaf):
        if around.path == leaf[-1].path and around.schema.get("examples"):
            return wording.example(around.schema["examples"])
    return ""


def _missing(path: KeyPath, rules: dict[str, Any]) -> tuple[str, str]:
    about = rules.get("properties", {}).get(path[-1])
    about = about if isinstance(about, dict) else {}
    description = about.get("description")
    why = f": {wording.printable(description).rstrip('.')}" if isinstance(description, str) else ""
    return f"{_quoted(path)} is missing", f"add {_quoted(path)}{why}{wording.example(about.get('examples'))}"


def _known(path: KeyPath, rules: dict[str, Any]) -> str:
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


def _place(document: Document, path: KeyPath, keyword: str, in_body: bool) -> Span:
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


def _field(document: Document, path: KeyPath, in_body: bool) -> str:
    if path:
        return _quoted(path)
    if in_body:
        return "the body"
    return "the value" if document.is_json else "the frontmatter"


def _quoted(path: KeyPath) -> str:
    return f"`{wording.printable(dotted(path))}`"


def _pointer(path: KeyPath) -> str:
    """The path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)
