"""What is changed in a parsed template before it is compiled, so that nothing in it goes unpaid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateAssertionError
from jinja2.visitor import NodeTransformer

# Filters that are put into a template; none can write their names.
WEIGHED, JOINED, COUNTED = "(weighed)", "(joined)", "(counted)"
# Beyond 61 bits one can write any number of integers that have the same hash, and a set or a mapping of them
# takes time by the square of their number.
MOST_BITS = 64


class Metering(NodeTransformer):
    """Puts our filters where Jinja compiles to Python operators that it has no hook for."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._replacements: dict[type[nodes.Node], Callable[[Any], nodes.Node]] = {
            nodes.Const: self._const,
            nodes.List: self._weighed,
            nodes.Tuple: self._tuple,
            nodes.Dict: self._dict,
            nodes.Getitem: self._item,
            nodes.Compare: self._compare,
            nodes.Concat: self._concat,
            nodes.For: self._for,
            nodes.ScopedEvalContextModifier: self._refused,
        }

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """The node that stands in for `node`, once what is in it was visited."""
        replacement = self._replacements.get(type(node))
        visited = self.generic_visit(node, *args, **kwargs)
        return replacement(visited) if replacement else visited

    def _filter(self, name: str, node: nodes.Node) -> nodes.Filter:
        values = {"lineno": node.lineno, "environment": self._environment}
        return nodes.Filter(node, name, [], [], None, None, **values)

    def _const(self, node: nodes.Const) -> nodes.Const:
        if isinstance(node.value, int) and node.value.bit_length() > MOST_BITS:
            raise TemplateAssertionError(f"a number of more than {MOST_BITS} bits", node.lineno)
        return node

    def _weighed(self, node: nodes.Expr) -> nodes.Expr:
        return node if isinstance(node, nodes.Const) else self._filter(WEIGHED, node)

    def _tuple(self, node: nodes.Tuple) -> nodes.Expr:
        return self._weighed(node) if node.ctx == "load" else node

    def _dict(self, node: nodes.Dict) -> nodes.Expr:
        for pair in node.items:
            # A key is hashed, and a tuple's hash goes through all that is in it.
            pair.key = self._weighed(pair.key)
        return self._weighed(node)

    def _item(self, node: nodes.Getitem) -> nodes.Expr:
        return self._weighed(node) if isinstance(node.arg, nodes.Slice) else node

    def _compare(self, node: nodes.Compare) -> nodes.Expr:
        node.expr = self._weighed(node.expr)
        for operand in node.ops:
            operand.expr = self._weighed(operand.expr)
        return node

    def _concat(self, node: nodes.Concat) -> nodes.Expr:
        values = {"lineno": node.lineno, "environment": self._environment}
        return self._filter(JOINED, nodes.List(node.nodes, **values))

    def _for(self, node: nodes.For) -> nodes.For:
        node.iter = self._filter(COUNTED, node.iter)
        return node

    def _refused(self, node: nodes.ScopedEvalContextModifier) -> nodes.Node:
        raise TemplateAssertionError("autoescape is not offered: memories are not HTML", node.lineno)
