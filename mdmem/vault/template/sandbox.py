"""The environment that templates run in: what they may touch, and how much they may do.

A template may come with a repository that somebody else wrote, so it is given nothing to reach for, and every
value that it makes is paid for out of a fixed amount of work before anything is done with the value. Work is
counted and not timed: the same template ends the same way on every machine. Jinja's own sandbox bounds none
of this: a text doubled forty times by `a ~ a`, or two nested loops, would take the process with them.

What is paid for: each value by its size as if written out (a list that stands twice inside another counts
twice), each turn of a loop, each call and each template loaded. A parsed template is changed before it is
compiled, so that nothing in it goes unpaid; its code is kept, though every rendering has an environment of
its own.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from datetime import date, datetime, time, timedelta
from types import CodeType
from typing import TYPE_CHECKING, Any

from jinja2 import (
    Environment,
    FunctionLoader,
    StrictUndefined,
    TemplateRuntimeError,
    Undefined,
    nodes,
)
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.exceptions import SecurityError, TemplateAssertionError
from jinja2.filters import FILTERS
from jinja2.runtime import BlockReference, Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from mdmem.vault.template import filters

if TYPE_CHECKING:
    from jinja2.environment import Template

DICT_VIEWS = (KeysView, ValuesView, ItemsView)
LEAVES = (float, type(None), date, time, timedelta, Undefined)
LISTS = (list, tuple, *DICT_VIEWS)
VALUES = (str, int, dict, range, *LISTS, *LEAVES)

_FILTERS = """
    abs capitalize count d default dictsort first float groupby indent int items join last length list lower
    map max min reject rejectattr replace reverse round select selectattr sort string title trim truncate
    unique upper urlencode wordcount
"""
ALLOWED_FILTERS = frozenset(_FILTERS.split())
# Their result, or their time, grows with the product of the sizes of their arguments.
_PRODUCTS = frozenset(("indent", "join", "replace", "round", "tojson", "trim"))

_DATE_PARTS = "year month day hour minute second date time isoformat weekday isoweekday isocalendar"
_LOOP = "index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle changed"
_ATTRIBUTES: tuple[tuple[type | tuple[type, ...], frozenset[str]], ...] = (
    (dict, frozenset(("get", "items", "keys", "values"))),
    (tuple, frozenset(("grouper", "list"))),  # what groupby gives
    ((date, time), frozenset(_DATE_PARTS.split())),
    (LoopContext, frozenset(_LOOP.split())),
    (BlockReference, frozenset(("super",))),
)


def is_readable(owner: Any, attribute: str) -> bool:
    """Return whether a template may read this attribute, of those that Jinja's own sandbox lets it read."""
    listed = next((names for kind, names in _ATTRIBUTES if isinstance(owner, kind)), None)
    # What remains is a namespace: the template itself made its attributes.
    return attribute in listed if listed is not None else not isinstance(owner, (*VALUES, type))


# Parts of Jinja that templates do not have, with what to write instead.
_NOT_OFFERED: dict[type[nodes.Node], str] = {
    nodes.Macro: "macros are not offered: write a loop, or include a template",
    nodes.CallBlock: "`call` is not offered: write a block, or include a template",
    nodes.Import: "imports are not offered: include or extend the template",
    nodes.FromImport: "imports are not offered: include or extend the template",
    nodes.ScopedEvalContextModifier: "autoescape is not offered: memories are not HTML",
    **dict.fromkeys(
        (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow),
        "arithmetic is not offered: join texts with `~`",
    ),
}


def _refuse_what_is_not_offered(tree: nodes.Template, name: str | None) -> None:
    suspects: tuple[type[nodes.Node], ...] = (*_NOT_OFFERED, nodes.For)
    for node in tree.find_all(suspects):
        reason = _NOT_OFFERED.get(type(node))
        if isinstance(node, nodes.For) and node.recursive:
            reason = "`recursive` is not offered: write a loop in the loop"
        if reason:
            raise TemplateAssertionError(reason, node.lineno, name)


_MOST = 64


class _Compiled(BytecodeCache):
    """The code of templates by their names and sources, for as long as this process runs."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        if len(self._codes) >= _MOST:
            self._codes.clear()
        self._codes[bucket.key, bucket.checksum] = bucket.code


COMPILED = _Compiled()
"""What this process has compiled."""


# Filters that we insert; no template can write their names.
WEIGHED, JOINED, COUNTED = "(weighed)", "(joined)", "(counted)"
# Beyond 61 bits one can write any number of integers that have the same hash, and a set or a mapping of them
# takes time by the square of their number.
MOST_BITS = 64


class _Metering(NodeTransformer):
    """Puts our filters where Jinja compiles to Python operators that it has no hook for."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def _filter_node(self, name: str, node: nodes.Node) -> nodes.Filter:
        values = {"lineno": node.lineno, "environment": self._environment}
        return nodes.Filter(node, name, [], [], None, None, **values)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:  # noqa: N802 - as Jinja names it, like those below
        self.generic_visit(node)
        for pair in node.items:
            # A key is hashed, and hashing a tuple visits everything in it.
            pair.key = self._filter_node(WEIGHED, pair.key)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return self._filter_node(WEIGHED, node) if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        node.expr = self._filter_node(WEIGHED, node.expr)
        for operand in node.ops:
            operand.expr = self._filter_node(WEIGHED, operand.expr)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        values = {"lineno": node.lineno, "environment": self._environment}
        return self._filter_node(JOINED, nodes.List(node.nodes, **values))

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802
        self.generic_visit(node)
        node.iter = self._filter_node(COUNTED, node.iter)
        return node


_NODE, _TURN, _CALL, _LOAD = 16, 20, 200, 400  # what a value, a loop's turn, a call, a template cost at least
PARSED_CHARACTER = 10  # what parsing a source costs for each of its characters
_DEEPEST = 32
_SCANNED_LINE = 80  # what finding the headings of a text costs for each of its lines

_JINJA: Mapping[str, Any] = FILTERS
_TESTS: Mapping[str, Any] = TESTS
_GIVEN_BY_JINJA = ("_loop_vars", "_block_vars")  # to every call
_IDENTITY_TESTS = ("callable", "defined", "none", "sameas", "undefined")


class Exhausted(TemplateRuntimeError):
    """A template that would do or write more than it may."""


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment for one rendering; it is not used again, since its work, in characters, is spent."""

    def __init__(self, load: Callable[[str], str | None], values: Mapping[str, Any], work: int) -> None:
        self.work = work
        super().__init__(
            loader=FunctionLoader(functools.partial(self._load_source, load)),
            undefined=StrictUndefined,
            optimized=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
            bytecode_cache=COMPILED,
        )
        self.globals = {"range": range, "namespace": Namespace, **values}
        self.finalize = self._write_value
        own: dict[str, Callable[..., Any]] = {
            "date": filters.format_date,
            "heading": filters.heading,
            "line": filters.line,
            "listed": filters.listed,
            "slug": filters.slug,
            "time": filters.format_time,
            "under": self._put_under,
            "yaml": filters.to_yaml,
            "tojson": _dump_json,
        }
        functions = {name: _JINJA[name] for name in ALLOWED_FILTERS} | own
        self.filters = {
            name: self._pay_for(function, missing=name not in own, by_product=name in _PRODUCTS)
            for name, function in functions.items()
        }
        self.filters |= {WEIGHED: self.weighed, JOINED: self._join_values, COUNTED: self._count_values}
        self.tests = {n: t if n in _IDENTITY_TESTS else self._pay_for(t) for n, t in _TESTS.items()}

    def pay(self, amount: int) -> None:
        """Take `amount` from the work that is left."""
        self.work -= amount
        if self.work < 0:
            raise Exhausted("it does more work than a template may")

    def weighed(self, value: Any, *, missing: bool = True) -> Any:
        """Pay for the size of a value, and return it; without `missing`, nothing in it may be undefined."""
        waiting: list[tuple[Any, int]] = [(value, 1)]
        while waiting:
            part, depth = waiting.pop()
            if depth > _DEEPEST:
                raise Exhausted(f"its values are nested more than {_DEEPEST} deep")
            if isinstance(part, str):
                self.pay(_NODE + len(part))
            elif isinstance(part, int):
                _check_bits(part.bit_length())
                self.pay(_NODE)
            elif isinstance(part, Undefined) and not missing:
                str(part)  # raises an error that names the missing value
            elif isinstance(part, LEAVES):
                self.pay(_NODE)
            elif isinstance(part, range):
                self.pay(_NODE * len(part))
            elif isinstance(part, dict):
                self.pay(_NODE)
                waiting += [(inner, depth + 1) for item in part.items() for inner in item]
            elif isinstance(part, LISTS):
                self.pay(_NODE)
                waiting += [(inner, depth + 1) for inner in part]
            else:
                raise SecurityError(f"a {type(part).__name__} is not a value that a template can use here")
        return value

    # ------------------------------------------------------------------------ what a template may touch

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may read `attr` of `obj`: only what is listed, whatever Python offers."""
        return super().is_safe_attribute(obj, attr, value) and is_readable(obj, attr)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """`obj.attribute`; `strftime`, which could make something large, is ours."""
        self.pay(1)
        if isinstance(obj, date | time) and attribute == "strftime":
            return functools.partial(filters.strftime, obj)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """`obj[argument]`."""
        self.weighed(argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> None:
        """`str.format` is not offered, as no method of a text is."""

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call `function`, and pay for its arguments and its result."""
        self.pay(_CALL)
        named = {name: value for name, value in kwargs.items() if name not in _GIVEN_BY_JINJA}
        for argument in (*args, *named.values()):
            self._paid_if_plain(argument)
        return self._paid_if_plain(super().call(context, function, *args, **kwargs))

    def _paid_if_plain(self, value: Any) -> Any:
        # Namespaces and blocks are passed on as they are; no operation looks into them.
        return self.weighed(value) if isinstance(value, VALUES) else value

    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> Template:  # noqa: A002 - as in the base class
        """Return the template of that name, loaded by this environment."""
        self.pay(_LOAD)
        return super().get_template(name, parent, globals)

    def select_template(self, names: Any, parent: str | None = None, globals: Any = None) -> Template:  # noqa: A002 - as in the base class
        """Return the first template that there is, of several names."""
        self.pay(_LOAD)
        return super().select_template(names, parent, globals)

    def _load_source(self, load: Callable[[str], str | None], name: str) -> str | None:
        source = load(name)
        self.pay(PARSED_CHARACTER * len(source or ""))
        return source

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _refuse_what_is_not_offered(tree, name)
        return tree

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        tree = _Metering(self).visit(source)
        return super()._generate(tree, name, filename, defer_init)

    # ------------------------------------------------------------------------- what a template may make

    def _pay_product(self, value: Any, others: Iterable[Any]) -> None:
        """Pay for the size of a value, times the largest of other sizes or numbers."""
        times = [abs(each) if isinstance(each, int) else self._measure(each) for each in others]
        self.pay(self._measure(value) * max([1, *times]))

    def _measure(self, value: Any) -> int:
        if isinstance(value, str):
            return len(value)
        before = self.work
        self.weighed(value)
        return before - self.work

    def _write_value(self, value: Any) -> str:
        self.weighed(value, missing=False)
        return value if isinstance(value, str) else str(self.weighed(str(value)))

    def concat(self, parts: Iterable[str]) -> str:
        """Return what a block or `{% set %}` has written, as one text."""
        found = list(parts)
        self.pay(sum(map(len, found)))
        return "".join(found)

    def _join_values(self, values: list[Any]) -> str:
        return self.concat(map(self._write_value, values))

    def _count_values(self, values: Any) -> Iterator[Any]:
        for value in self.weighed(values):
            self.pay(_TURN)
            yield value

    def _pay_for(
        self, function: Callable[..., Any], *, missing: bool = True, by_product: bool = False
    ) -> Callable[..., Any]:
        """Return a filter or test that pays for its arguments and its result; an iterator becomes a list.

        With `missing` false, it fails on a missing value before it is called.
        """
        first = 1 if hasattr(function, "jinja_pass_arg") else 0

        @functools.wraps(function)
        def paid(*args: Any, **kwargs: Any) -> Any:
            values = [*args[first:], *kwargs.values()]
            for value in values:
                self.weighed(value, missing=missing)
            if by_product and values:
                self._pay_product(values[0], values[1:])
            result = function(*args, **kwargs)
            return self.weighed(list(result) if isinstance(result, Iterator) else result)

        return paid

    def _put_under(self, text: Any, level: int) -> str:
        text = str(text)
        self.pay(len(text) + _SCANNED_LINE * text.count("\n"))
        return filters.under(text, level)


def _check_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise Exhausted(f"a number has more than {MOST_BITS} bits")


def _dump_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_to_json)


def _to_json(value: Any) -> Any:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, (*DICT_VIEWS, range)):
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
