"""One template: which variables it reads, what it renders, and what its failures mean.

Importing this imports Jinja.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NamedTuple

from jinja2 import TemplateError, TemplateNotFound, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.visitor import NodeTransformer

from mdmem.document.text.regex import regex
from mdmem.errors import PathRefused, TemplateFailed
from mdmem.vault.template.sandbox import PARSED_CHARACTER, Exhausted, Sandbox


class Variable(NamedTuple):
    """A variable that a template reads: required if no use has a `default(…)` or asks if it `is defined`."""

    name: str
    required: bool


Lookup = Callable[[str], str | None]
"""Gives the source of another template by its name."""

_MOMENTS = ("now", "today")  # which every template has
_LEAST_WORK = 20_000_000  # a second or two of it
_WORK_FOR_A_CHARACTER = 20
_LONGEST_SOURCE = 200_000  # characters; parsing takes time in proportion
_SIMPLER = "make the template simpler, or give it less"
_EXTEND_BUILTIN = 'to extend the built-in template of the same name, write `{% extends "builtin/…" %}`'


class _Endless(TemplateSyntaxError):
    """A template that extends itself."""


_REMEDIES = (
    (Exhausted, _SIMPLER),
    (SecurityError, "a template can use its variables, the filters and the other templates, nothing else"),
    (UndefinedError, "give the value, or guard it by `default`"),
    (_Endless, _EXTEND_BUILTIN),
    (TemplateSyntaxError, "correct it in .mdmem/templates"),
)
_UNDECODED = regex("[\ud800-\udfff]")  # what the bytes of a file became that are no UTF-8
_MISSING = regex(r"'([^']+)' is undefined")


def variables(name: str, source: str, lookup: Lookup) -> tuple[Variable, ...]:
    """List the variables that a template reads, the required ones first.

    Those of the templates that it extends or includes by a constant name are among them.
    """
    read, optional = set[str](), set[str]()
    with _failing_as(name):
        for other, tree in _parse_all(name, source, lookup):
            optional |= _find_guarded(tree)
            read |= _find_undeclared(tree, other)
    listed = [Variable(name=each, required=each not in optional) for each in read]
    return tuple(sorted(listed, key=lambda variable: (not variable.required, variable.name)))


def refuse_broken(name: str, source: str, lookup: Lookup) -> None:
    """Refuse a template that could not be rendered whatever it is given."""
    load = _make_loader(name, source, lookup)
    sandbox = Sandbox(load, dict.fromkeys(_MOMENTS), _LEAST_WORK)
    with _failing_as(name):
        sandbox.get_template(name)
        _refuse_endless(name, load, sandbox)
        for node in sandbox.parse(source, name).find_all((nodes.Extends, nodes.Include)):
            named = getattr(node, "template", None)
            if getattr(node, "ignore_missing", False) or not isinstance(named, nodes.Const):
                continue
            if load(named.value) is None:
                raise TemplateNotFound(named.value)


def refuse_unread(name: str, source: str, lookup: Lookup, given: Collection[str]) -> None:
    """Refuse variables that a template does not read, unless it names another one by what it computes."""
    read = {*_MOMENTS}
    load = _make_loader(name, source, lookup)
    with _failing_as(name):
        _refuse_endless(name, load, Sandbox(load, {}, _LEAST_WORK))
        for other, tree in _parse_all(name, source, lookup):
            if None in meta.find_referenced_templates(tree):
                return
            read |= _find_undeclared(tree, other)
    for unread in sorted({*given} - read):
        near = ", ".join(get_close_matches(unread, read) or sorted(read - {*_MOMENTS}))
        remedy = f"nearest names: {near}" if near else "it reads none"
        raise TemplateFailed(name=name, line=None, reason=f"it has no variable {unread!r}", remedy=remedy)


def _parse_all(name: str, source: str, lookup: Lookup) -> Iterator[tuple[str, nodes.Template]]:
    """Parse a template, and those that it and they name by a constant; yield each with its name."""
    load = _make_loader(name, source, lookup)
    sandbox = Sandbox(load, dict.fromkeys(_MOMENTS), _LEAST_WORK)
    waiting, seen = [name], set[str]()
    while waiting:
        other = waiting.pop()
        text = None if other in seen else load(other)
        seen.add(other)
        if text is None:
            continue
        sandbox.pay(PARSED_CHARACTER * len(text))
        tree = sandbox.parse(text, other)
        waiting += filter(None, meta.find_referenced_templates(tree))
        yield other, tree


def _refuse_endless(name: str, load: Lookup, sandbox: Sandbox) -> None:
    """Refuse a template that extends itself, or one that does, whatever it is given."""
    other, text, lines = name, load(name), list[int]()
    texts = set[str]()
    while text is not None and text not in texts:
        texts.add(text)
        sandbox.pay(PARSED_CHARACTER * len(text))
        extends = [node for node in sandbox.parse(text, other).body if isinstance(node, nodes.Extends)]
        if not extends or not isinstance(extends[0].template, nodes.Const):
            return
        lines.append(extends[0].lineno)
        other = extends[0].template.value
        text = load(other)
    if text is not None:
        raise _Endless("it extends itself without end", lines[0], name)


def _find_guarded(tree: nodes.Template) -> set[str]:
    uses = [use.node for use in tree.find_all(nodes.Filter) if use.name in ("default", "d")]
    uses += [use.node for use in tree.find_all(nodes.Test) if use.name in ("defined", "undefined")]
    return {use.name for use in uses if isinstance(use, nodes.Name)}


class _BlockOpener(NodeTransformer):
    """Replaces a block by its content, which sees the variables that the template set before."""

    def visit_Block(self, node: nodes.Block) -> nodes.Node:  # noqa: N802 - as Jinja names it
        self.generic_visit(node)
        return nodes.Scope(node.body, lineno=node.lineno, environment=node.environment)


def _find_undeclared(tree: nodes.Template, name: str) -> set[str]:
    try:
        return meta.find_undeclared_variables(_BlockOpener().visit(tree)) - {"super"}
    except TemplateSyntaxError as error:
        error.name = name  # Jinja names no template here
        raise


def render(
    name: str,
    source: str,
    lookup: Lookup,
    *,
    given: Mapping[str, Any],
    values: Mapping[str, Any],
    max_chars: int,
) -> str:
    """Render the template `source`, which finds `values` under global names, to at most `max_chars`."""
    work = max(_LEAST_WORK, _WORK_FOR_A_CHARACTER * max_chars)
    sandbox = Sandbox(_make_loader(name, source, lookup), values, work)
    parts: list[str] = []
    left = max_chars
    with _failing_as(name):
        for variable in given.values():
            sandbox.weighed(variable)
        template = sandbox.get_template(name)
        for part in template.root_render_func(template.new_context(dict(given))):
            left -= len(part)
            if left < 0:
                raise Exhausted(f"it writes more than {max_chars:,} characters")
            parts.append(part)
    return "".join(parts)


def _make_loader(name: str, source: str, lookup: Lookup) -> Lookup:
    def load(other: str) -> str | None:
        try:
            found = source if other == name else lookup(other)
        except PathRefused as error:
            raise SecurityError(error.message) from None
        if found is not None and len(found) > _LONGEST_SOURCE:
            raise Exhausted(f"{other!r} has more than {_LONGEST_SOURCE:,} characters")
        if found is not None and _UNDECODED.search(found):
            raise TemplateError(f"{other!r} is not UTF-8")
        return found

    return load


@contextmanager
def _failing_as(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the sandbox lets a template reach nothing of ours
        where, line = _find_place(error, name)
        reason, remedy = _explain_error(error, running=line is not None)
        raise TemplateFailed(name=where, line=line, reason=reason, remedy=remedy) from None


def _find_place(error: BaseException, name: str) -> tuple[str, int | None]:
    """Return the template and its line in which an error arose: the innermost of those that were running."""
    if isinstance(error, TemplateSyntaxError):
        return error.name or name, error.lineno
    place: tuple[str, int | None] = (name, None)
    step = error.__traceback__
    while step:
        template = step.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            place = (template.name or name, template.get_corresponding_lineno(step.tb_lineno))
        step = step.tb_next
    return place


def _explain_error(error: BaseException, *, running: bool) -> tuple[str, str]:
    """Return the reason and the remedy for an error; `running` where it arose in a template's own line."""
    if isinstance(error, RecursionError) and running:
        return "it calls, includes or extends itself without end", _EXTEND_BUILTIN
    if isinstance(error, RecursionError | MemoryError | SyntaxError):
        return "it is nested too deeply", _SIMPLER
    if isinstance(error, TemplateNotFound):
        names = getattr(error, "templates", [error.name])
        return (
            f"there is no template {' or '.join(map(repr, names))}",
            "see what there is with `mdmem template list`",
        )
    missing = _MISSING.fullmatch(str(error)) if isinstance(error, UndefinedError) else None
    if missing:
        remedy = f"give --var {missing[1]}=…; `mdmem template show` lists all that a template needs"
        return f"missing variable: {missing[1]}", remedy
    reason = getattr(error, "message", None) if isinstance(error, TemplateError) else None
    remedy = next((text for kind, text in _REMEDIES if isinstance(error, kind)), "")
    return reason or f"{type(error).__name__}: {error}", remedy
