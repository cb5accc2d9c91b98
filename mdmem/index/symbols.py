"""The symbols that a source file defines: functions, classes and variables, with the lines they stand in.

Python is read by `ast`, other languages by `mdmem.index.grammars`. What cannot be parsed is said, so that a
name that is not found there counts as unknown, never as gone.
"""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FUNCTION, CLASS, VARIABLE = "function", "class", "variable"

# A syntax tree takes about a hundred times the space of its source; files this long are generated.
_MOST_BYTES = 1_000_000
_PYTHON = (".py", ".pyi", ".pyw")
_NESTED = ("body", "orelse", "finalbody", "handlers", "cases")


class Symbol(NamedTuple):
    """A definition.

    Attributes:
        name: dotted when it stands in a class, a namespace or the like: "Class.method".
        kind: "function", "class" or "variable". Methods and macros are functions; interfaces, enumerations,
            structures and names of types are classes; constants and fields are variables.
        first, last: its 1-based lines, both included, with its decorators or attributes.
    """

    name: str
    kind: str
    first: int
    last: int


class Symbols(NamedTuple):
    """What a file defines, in order of place.

    Attributes:
        found: the definitions of the module, of its classes and of what nests in them; none inside functions.
        problem: why there may be more than `found`; empty when that is all.
    """

    found: tuple[Symbol, ...]
    problem: str = ""

    def named(self, name: str) -> tuple[Symbol, ...]:
        """The definitions of `name`: several for overloads, a property and its setter, or branches."""
        wanted = name.replace("::", ".").removesuffix("()")
        return tuple(symbol for symbol in self.found if symbol.name == wanted)


def symbols(path: str, data: bytes) -> Symbols:
    """What the file `path` with the content `data` defines; the suffix of its name tells the language."""
    if len(data) > _MOST_BYTES:
        return Symbols((), f"it has more than {_MOST_BYTES:,} bytes, which are not parsed")
    if path.endswith(_PYTHON):
        return _python(data)
    # Few files need it, and it takes a while to load.
    from mdmem.index import grammars  # noqa: PLC0415

    return grammars.symbols(path, data)


def _python(data: bytes) -> Symbols:
    try:
        with warnings.catch_warnings():
            # An invalid escape in a cited file is no business of ours.
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        return Symbols(tuple(_defined(tree.body, "")))
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        return Symbols((), f"it is not valid Python here: {error.msg}{where}")
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, or too deep for the parser
        return Symbols((), f"it cannot be parsed: {str(error) or type(error).__name__}")


def _defined(body: Iterable[ast.AST], within: str) -> Iterator[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _symbol(within + node.name, FUNCTION, node, node.decorator_list)
        elif isinstance(node, ast.ClassDef):
            yield _symbol(within + node.name, CLASS, node, node.decorator_list)
            yield from _defined(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.stmt) and (targets := _targets(node)):
            for name in _names(targets):
                yield _symbol(within + name, VARIABLE, node)
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            for field in _NESTED:
                yield from _defined(getattr(node, field, ()), within)


def _targets(node: ast.stmt) -> Sequence[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AnnAssign):
        return [node.target]
    # `type X = …`, from Python 3.12 on
    return [node.name] if type(node).__name__ == "TypeAlias" else []  # type: ignore[attr-defined]


def _names(targets: Iterable[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Tuple | ast.List):
            yield from _names(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _names([target.value])


def _symbol(name: str, kind: str, node: ast.stmt, decorators: Sequence[ast.expr] = ()) -> Symbol:
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return Symbol(name, kind, first, node.end_lineno or node.lineno)
