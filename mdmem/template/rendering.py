"""One template: which variables it reads and can do without, what it renders, and what its failures mean.

Importing this imports Jinja.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from jinja2 import (
    TemplateError,
    TemplateNotFound,
    TemplateRuntimeError,
    TemplateSyntaxError,
    UndefinedError,
    meta,
    nodes,
)
from jinja2.exceptions import SecurityError

from mdmem.errors import PathRefused, TemplateFailed
from mdmem.template.sandbox import PARSED_CHARACTER, Exhausted, Sandbox
from mdmem.text.regex import regex

Load = Callable[[str], nodes.Template | None]
_MOST_READ = 200  # templates that one template may name, each counted as often as it is read anew
_NAMED = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable that a template reads.

    Attributes:
        name: its name.
        required: whether some use of it is not guarded by `default(…)` or `is defined`.
        default: the value, or the name of the value, that stands in for it; None when there is none.
    """

    name: str
    required: bool
    default: str | None


def read_by(name: str, load: Load) -> tuple[Variable, ...]:
    """The variables that a template and those that it extends and includes read.

    The required ones come first, each group in order of first use. Names that are computed while rendering
    cannot be followed.

    Args:
        name: the template's name.
        load: gives the tree of a template by its name, or None when there is no such template.

    Raises:
        TemplateSyntaxError: one of the templates uses what there is not.
        TemplateRuntimeError: it names too many others.
    """
    reader = _VariableReader(load)
    reader.template(name, _Scope())
    read = [
        Variable(name=name, required=use.required, default=use.default)
        for name, use in reader.uses.items()
        if name in reader.undeclared
    ]
    return tuple(sorted(read, key=lambda variable: not variable.required))


@dataclass(slots=True)
class _Use:
    required: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known at a place of a template.

    `bound` are the names that the template itself sets, `known` the variables that were found to be
    defined. Sets are never changed in place.
    """

    bound: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()

    def binding(self, names: Iterable[str]) -> _Scope:
        return replace(self, bound=self.bound.union(names))

    def knowing(self, names: Iterable[str]) -> _Scope:
        return replace(self, known=self.known.union(names))


@dataclass(slots=True)
class _VariableReader:
    load: Load
    uses: dict[str, _Use] = field(default_factory=dict)
    undeclared: set[str] = field(default_factory=set)
    _read: set[tuple[str, _Scope, frozenset[str]]] = field(default_factory=set)
    _replaced: frozenset[str] = frozenset()

    def template(self, name: str, scope: _Scope) -> None:
        """Read a template, unless there is none or it was read with the same names known."""
        tree = self.load(name)
        if tree is None or (name, scope, self._replaced) in self._read:
            return
        self._read.add((name, scope, self._replaced))
        if len(self._read) > _MOST_READ:
            raise TemplateRuntimeError(f"it extends or includes more than {_MOST_READ} templates")
        self.undeclared |= _undeclared(tree, name)
        parents = list(tree.find_all(nodes.Extends))
        # What stands outside the blocks of a template that extends another is never written.
        body = [n for n in tree.body if not (parents and isinstance(n, nodes.Output))]
        scope = self._statements(body, scope)
        outer = self._replaced
        self._replaced |= {b.name for b in tree.find_all(nodes.Block) if not _calls_super(b)}
        for parent in parents:
            self._follow(parent, scope)
        self._replaced = outer

    def _follow(
        self, node: nodes.Extends | nodes.Include | nodes.Import | nodes.FromImport, scope: _Scope
    ) -> None:
        for name in _constant_names(node.template):
            self.template(name, scope)

    def _statements(self, body: Iterable[nodes.Node], scope: _Scope) -> _Scope:
        for node in body:
            scope = self._statement(node, scope)
        return scope

    def _statement(self, node: nodes.Node, scope: _Scope) -> _Scope:
        """Read a statement; what is known behind it."""
        if isinstance(node, nodes.If):
            return self._if(node, scope)
        if isinstance(node, nodes.Assign):
            self._expression(node.node, scope)
            return scope.binding(_stored(node.target))
        if isinstance(node, nodes.AssignBlock):
            self._expression(node.filter, scope)
            self._statements(node.body, scope)
            return scope.binding(_stored(node.target))
        if isinstance(node, nodes.Macro):
            self._function(node, scope)
            return scope.binding([node.name])
        if isinstance(node, _NAMED):
            return self._named(node, scope)
        self._nested(node, scope)
        return scope

    def _nested(self, node: nodes.Node, scope: _Scope) -> None:
        """Read a statement behind which nothing more is known than before it."""
        if isinstance(node, nodes.For):
            self._for(node, scope)
        elif isinstance(node, nodes.CallBlock):
            self._expression(node.call, scope)
            self._function(node, scope)
        elif isinstance(node, nodes.With):
            for value in node.values:
                self._expression(value, scope)
            self._statements(node.body, scope.binding(n for t in node.targets for n in _stored(t)))
        elif isinstance(node, nodes.Block):
            if node.name not in self._replaced:
                self._statements(node.body, scope)
        elif isinstance(node, nodes.FilterBlock):
            self._expression(node.filter, scope)
            self._statements(node.body, scope)
        else:
            self._expression(node, scope)

    def _if(self, node: nodes.If, scope: _Scope) -> _Scope:
        ends = []
        for branch in (node, *node.elif_):
            self._expression(branch.test, scope)
            true, false = _facts(branch.test)
            ends.append(self._statements(branch.body, scope.knowing(true)))
            scope = scope.knowing(false)
        ends.append(self._statements(node.else_, scope))
        # A name that is known to be given in one branch, and set in the other, is safe behind both.
        safe = frozenset.intersection(*(end.bound | end.known for end in ends))
        bound = frozenset().union(*(end.bound for end in ends))
        return _Scope(bound=safe & bound, known=safe - bound)

    def _for(self, node: nodes.For, scope: _Scope) -> None:
        self._expression(node.iter, scope)
        inner = scope.binding(_stored(node.target))
        self._expression(node.test, inner)
        self._statements(node.body, inner)
        self._statements(node.else_, scope)

    def _function(self, node: nodes.Macro | nodes.CallBlock, scope: _Scope) -> None:
        for default in node.defaults:
            self._expression(default, scope)
        self._statements(node.body, scope.binding(argument.name for argument in node.args))

    def _named(
        self, node: nodes.Extends | nodes.Include | nodes.Import | nodes.FromImport, scope: _Scope
    ) -> _Scope:
        self._expression(node.template, scope)
        if not isinstance(node, nodes.Extends) and node.with_context:
            self._follow(node, scope)
        if isinstance(node, nodes.Import):
            return scope.binding([node.target])
        if isinstance(node, nodes.FromImport):
            return scope.binding(n if isinstance(n, str) else n[1] for n in node.names)
        return scope

    def _expression(self, node: nodes.Node | None, scope: _Scope) -> None:
        if node is None:
            return
        guarded = _guarded(node)
        if guarded:
            name, default = guarded
            self._use(name, scope.knowing([name]), default)
            for argument in node.iter_child_nodes(exclude=("node",)):
                self._expression(argument, scope)
        elif isinstance(node, nodes.Name):
            self._use(node.name, scope, None)
        elif isinstance(node, nodes.And | nodes.Or):
            true, false = _facts(node.left)
            self._expression(node.left, scope)
            self._expression(node.right, scope.knowing(true if isinstance(node, nodes.And) else false))
        elif isinstance(node, nodes.CondExpr):
            true, false = _facts(node.test)
            self._expression(node.test, scope)
            self._expression(node.expr1, scope.knowing(true))
            self._expression(node.expr2, scope.knowing(false))
        else:
            for child in node.iter_child_nodes():
                self._expression(child, scope)

    def _use(self, name: str, scope: _Scope, default: str | None) -> None:
        if name in scope.bound:
            return
        use = self.uses.setdefault(name, _Use())
        use.required = use.required or name not in scope.known
        use.default = default if use.default is None else use.default


def _undeclared(tree: nodes.Template, name: str) -> set[str]:
    try:
        return meta.find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        error.name = name  # Jinja names no template here
        raise


def _guarded(node: nodes.Node) -> tuple[str, str | None] | None:
    """The variable that `x|default(…)` or `x is defined` guards, and what stands in for it."""
    if isinstance(node, nodes.Filter) and node.name in ("default", "d") and isinstance(node.node, nodes.Name):
        return node.node.name, _written(_default(node))
    if isinstance(node, nodes.Test) and node.name in ("defined", "undefined"):
        return (node.node.name, None) if isinstance(node.node, nodes.Name) else None
    return None


def _default(node: nodes.Filter) -> nodes.Expr:
    named = [pair.value for pair in node.kwargs if pair.key == "default_value"]
    return next(iter([*node.args, *named]), nodes.Const(""))


def _written(node: nodes.Expr) -> str | None:
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Const):
        return str(node.value)
    return str([]) if isinstance(node, nodes.List) and not node.items else None


def _facts(test: nodes.Node) -> tuple[set[str], set[str]]:
    """The variables that are defined where `test` is true, and where it is false."""
    if isinstance(test, nodes.Not):
        true, false = _facts(test.node)
        return false, true
    if isinstance(test, nodes.And | nodes.Or):
        (left_true, left_false), (right_true, right_false) = _facts(test.left), _facts(test.right)
        if isinstance(test, nodes.And):
            return left_true | right_true, left_false & right_false
        return left_true & right_true, left_false | right_false
    guarded = _guarded(test)
    if not guarded:
        return set(), set()
    if isinstance(test, nodes.Test):
        return ({guarded[0]}, set()) if test.name == "defined" else (set(), {guarded[0]})
    return ({guarded[0]} if isinstance(test, nodes.Filter) and _is_empty(_default(test)) else set()), set()


def _is_empty(node: nodes.Expr) -> bool:
    if isinstance(node, nodes.Const):
        return not node.value
    return isinstance(node, nodes.List | nodes.Tuple | nodes.Dict) and not node.items


def _stored(target: nodes.Node) -> set[str]:
    if isinstance(target, nodes.Name):
        return {target.name}
    return {name.name for name in target.find_all(nodes.Name)}


def _calls_super(block: nodes.Block) -> bool:
    return any(name.name == "super" for name in block.find_all(nodes.Name))


def _constant_names(node: nodes.Expr) -> list[str]:
    parts = node.items if isinstance(node, nodes.List | nodes.Tuple) else [node]
    return [part.value for part in parts if isinstance(part, nodes.Const) and isinstance(part.value, str)]


Lookup = Callable[[str], str | None]

_LEAST_WORK = 20_000_000  # a second or two of it
_WORK_FOR_A_CHARACTER = 20
_LONGEST_SOURCE = 200_000  # characters; parsing takes time in proportion
# Whatever a template makes Python raise is the template's failure; the sandbox lets it reach nothing else.
_FAILURES = (
    TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
_SIMPLER = "make the template simpler, or give it less"
_EXTEND_BUILTIN = 'to extend the built-in template of the same name, write `{% extends "builtin/…" %}`'
_REMEDIES = (
    (Exhausted, _SIMPLER),
    (SecurityError, "a template can use its variables, the filters and the other templates, nothing else"),
    (UndefinedError, "give the value, or guard it by `default`"),
)
_MISSING = regex(r"'([^']+)' is undefined")


def variables(name: str, source: str, lookup: Lookup) -> tuple[Variable, ...]:
    """The variables that the template `source` reads.

    Raises:
        TemplateFailed: it, or one that it extends or includes, cannot be parsed.
    """
    load = _loader(name, source, lookup)
    sandbox = Sandbox(load, {"now": None, "today": None}, _LEAST_WORK)

    @cache
    def tree(other: str) -> nodes.Template | None:
        try:
            found = load(other)
        except SecurityError:  # a refused name is reported where it is used, with its line
            found = None
        sandbox.pay(PARSED_CHARACTER * len(found or ""))
        return None if found is None else sandbox.parse(found, other)

    with _failing_as(name):
        return read_by(name, tree)


def render(
    name: str,
    source: str,
    lookup: Lookup,
    *,
    given: Mapping[str, Any],
    values: Mapping[str, Any],
    max_chars: int,
) -> str:
    """Render the template `source`.

    Args:
        name: its name.
        source: its text.
        lookup: gives the source of another template by its name.
        given: its variables.
        values: what it finds under global names.
        max_chars: how long the result may be.

    Raises:
        TemplateFailed: it cannot be parsed or rendered.
    """
    work = max(_LEAST_WORK, _WORK_FOR_A_CHARACTER * max_chars)
    sandbox = Sandbox(_loader(name, source, lookup), values, work)
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


def _loader(name: str, source: str, lookup: Lookup) -> Lookup:
    def load(other: str) -> str | None:
        try:
            found = source if other == name else lookup(other)
        except PathRefused as error:
            raise SecurityError(error.message) from None
        if found is not None and len(found) > _LONGEST_SOURCE:
            raise Exhausted(f"{other!r} has more than {_LONGEST_SOURCE:,} characters")
        return found

    return load


@contextmanager
def _failing_as(name: str) -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        where, line = _place(error, name)
        reason, remedy = _explained(error, running=line is not None)
        raise TemplateFailed(name=where, line=line, reason=reason, remedy=remedy) from None


def _place(error: BaseException, name: str) -> tuple[str, int | None]:
    """The template and its line in which an error arose: the innermost of those that were running."""
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


def _explained(error: BaseException, *, running: bool) -> tuple[str, str]:
    """The reason and the remedy for an error; `running` where it arose in a template's own line."""
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
        return f"missing variable: {missing[1]}", f"give --var {missing[1]}=…"
    reason = getattr(error, "message", None) if isinstance(error, TemplateError) else None
    remedy = next((text for kind, text in _REMEDIES if isinstance(error, kind)), "")
    return reason or f"{type(error).__name__}: {error}", remedy
