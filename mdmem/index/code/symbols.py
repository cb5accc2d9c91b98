"""The symbols that a source file defines: functions, classes and variables, with the lines they stand in.

Python is read by `ast`, other languages by the grammars of tree-sitter (the extra `symbols`): a grammar names
the nodes of its trees, and a table per language says which of them define something. What cannot be parsed is
said, so that a name that is not found there counts as unknown, never as gone.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

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
        found: the definitions in the module, in its classes and in nested classes; none inside functions.
        problem: why there may be more than `found`; empty when that is all.
    """

    found: tuple[Symbol, ...]
    problem: str = ""

    def named(self, name: str) -> tuple[Symbol, ...]:
        """Return the definitions of `name`: several for overloads, a property and its setter, or branches."""
        wanted = name.replace("::", ".").removesuffix("()")
        return tuple(symbol for symbol in self.found if symbol.name == wanted)


def symbols(path: str, data: bytes) -> Symbols:
    """Return what the file `path` with the content `data` defines.

    The suffix of its name tells the language.
    """
    if len(data) > _MOST_BYTES:
        return Symbols((), f"it has more than {_MOST_BYTES:,} bytes, which are not parsed")
    if path.endswith(_PYTHON):
        return _read_python(data)
    return _by_grammar(path, data)


def _read_python(data: bytes) -> Symbols:
    try:
        with warnings.catch_warnings():
            # An invalid escape in a cited file is no business of ours.
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        return Symbols(tuple(_find_defined(tree.body, "")))
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        return Symbols((), f"it is not valid Python here: {error.msg}{where}")
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, or too deep for the parser
        return Symbols((), f"it cannot be parsed: {str(error) or type(error).__name__}")


def _find_defined(body: Iterable[ast.AST], within: str) -> Iterator[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _make_symbol(within + node.name, FUNCTION, node, node.decorator_list)
        elif isinstance(node, ast.ClassDef):
            yield _make_symbol(within + node.name, CLASS, node, node.decorator_list)
            yield from _find_defined(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.stmt) and (targets := _assigned_targets(node)):
            for name in _target_names(targets):
                yield _make_symbol(within + name, VARIABLE, node)
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            for field in _NESTED:
                yield from _find_defined(getattr(node, field, ()), within)


def _assigned_targets(node: ast.stmt) -> Sequence[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AnnAssign):
        return [node.target]
    # `type X = …`, from Python 3.12 on
    return [node.name] if type(node).__name__ == "TypeAlias" else []  # type: ignore[attr-defined]


def _target_names(targets: Iterable[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Tuple | ast.List):
            yield from _target_names(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _target_names([target.value])


def _make_symbol(name: str, kind: str, node: ast.stmt, decorators: Sequence[ast.expr] = ()) -> Symbol:
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return Symbol(name, kind, first, node.end_lineno or node.lineno)


_NAMES = frozenset(
    ("identifier", "field_identifier", "type_identifier", "property_identifier", "qualified_identifier")
)
_CONTAINER = ""
"""The kind of a node that only gives its name to what it holds, such as `impl Type { … }`."""


class _Language(NamedTuple):
    """How to read the trees of a grammar.

    Attributes:
        module: the package that holds the grammar.
        function: what in it returns the grammar.
        defines: the kind of symbol by type of node.
        holds: types of nodes that definitions stand in.
        wraps: types of nodes that belong to the one definition that they hold, such as `export …`.
    """

    module: str
    function: str
    defines: Mapping[str, str]
    holds: frozenset[str]
    wraps: frozenset[str] = frozenset()


def _types(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


def _map_kinds(functions: str, classes: str, variables: str, containers: str = "") -> dict[str, str]:
    listed = ((functions, FUNCTION), (classes, CLASS), (variables, VARIABLE), (containers, _CONTAINER))
    return {node: kind for nodes, kind in listed for node in nodes.split()}


_SCRIPT_WRAPS = _types("export_statement lexical_declaration variable_declaration ambient_declaration")
_JAVASCRIPT = _Language(
    "tree_sitter_javascript",
    "language",
    _map_kinds(
        "function_declaration generator_function_declaration method_definition",
        "class_declaration",
        "variable_declarator field_definition",
    ),
    _types("program class_body"),
    _SCRIPT_WRAPS,
)
_TYPESCRIPT = _Language(
    "tree_sitter_typescript",
    "language_typescript",
    _map_kinds(
        "function_declaration generator_function_declaration function_signature method_definition"
        " method_signature abstract_method_signature",
        "class_declaration abstract_class_declaration interface_declaration enum_declaration"
        " type_alias_declaration internal_module module",
        "variable_declarator public_field_definition property_signature",
    ),
    _types("program class_body interface_body statement_block expression_statement"),
    _SCRIPT_WRAPS,
)
_GO = _Language(
    "tree_sitter_go",
    "language",
    _map_kinds("function_declaration method_declaration", "type_spec type_alias", "var_spec const_spec"),
    _types("source_file var_spec_list"),
    _types("type_declaration var_declaration const_declaration"),
)
_RUST = _Language(
    "tree_sitter_rust",
    "language",
    _map_kinds(
        "function_item function_signature_item macro_definition",
        "struct_item enum_item union_item trait_item type_item mod_item",
        "const_item static_item",
        "impl_item",
    ),
    _types("source_file declaration_list"),
)
_JAVA = _Language(
    "tree_sitter_java",
    "language",
    _map_kinds(
        "method_declaration constructor_declaration compact_constructor_declaration"
        " annotation_type_element_declaration",
        "class_declaration interface_declaration enum_declaration record_declaration"
        " annotation_type_declaration",
        "variable_declarator enum_constant",
    ),
    _types("program class_body interface_body enum_body enum_body_declarations annotation_type_body"),
    _types("field_declaration constant_declaration"),
)
_C = _Language(
    "tree_sitter_c",
    "language",
    _map_kinds(
        "function_definition preproc_function_def",
        "struct_specifier union_specifier enum_specifier type_definition",
        "declaration field_declaration preproc_def",
    ),
    _types(
        "translation_unit field_declaration_list preproc_if preproc_ifdef preproc_else preproc_elif"
        " linkage_specification declaration_list"
    ),
)
_CPP = _Language(
    "tree_sitter_cpp",
    "language",
    {
        **_C.defines,
        **_map_kinds("", "class_specifier alias_declaration concept_definition", "", "namespace_definition"),
    },
    _C.holds,
    _types("template_declaration"),
)

_BY_SUFFIX = {
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), _JAVASCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts"), _TYPESCRIPT),
    ".tsx": _TYPESCRIPT._replace(function="language_tsx"),
    ".go": _GO,
    ".rs": _RUST,
    ".java": _JAVA,
    ".c": _C,
    **dict.fromkeys((".h", ".hh", ".hpp", ".hxx", ".cc", ".cpp", ".cxx"), _CPP),
}


def _by_grammar(path: str, data: bytes) -> Symbols:
    suffix = path[path.rfind(".") :].lower() if "." in path else ""
    language = _BY_SUFFIX.get(suffix)
    if language is None:
        named = f"files that end in {suffix}" if suffix else "files without a suffix"
        return Symbols((), f"there is no parser for {named}")
    try:
        parser = _make_parser(language.module, language.function)
    except ImportError:
        return Symbols((), "its language needs an extra: pip install '.[symbols]' in a clone of mdmem")
    # To a grammar a lone carriage return is a blank; to everything here it ends a line.
    root = parser.parse(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).root_node
    found = tuple(_read_tree(language, root))
    return Symbols(found, "it could be parsed in part only" if root.has_error else "")


@lru_cache(maxsize=16)
def _make_parser(module: str, function: str) -> Any:
    core, grammar = import_module("tree_sitter"), import_module(module)
    return core.Parser(core.Language(getattr(grammar, function)()))


def _read_tree(language: _Language, root: Any) -> Iterator[Symbol]:
    """Yield the definitions below `root`, in order of place; no recursion, since trees may be deep."""
    stack = [(root, "", root)]
    while stack:
        node, within, whole = stack.pop()
        inner = within
        if node.type in language.defines:
            kind = language.defines[node.type]
            names = [within + name for name in _grammars_names(node)]
            if kind:
                yield from (_make_tree_symbol(name, _kind_of(kind, node), node, whole) for name in names)
            if kind == FUNCTION or (kind != VARIABLE and not names):
                continue
            # A variable, or a name for a type, may hold the definition of the type: it qualifies nothing.
            inner = within if kind == VARIABLE or node.type == "type_definition" else f"{names[0]}."
        elif node.type not in language.holds | language.wraps | {"ERROR"}:
            continue
        stack += [
            (child, inner, _find_wrapper(language, node, child, whole))
            for child in reversed(node.named_children)
        ]


def _find_wrapper(language: _Language, node: Any, child: Any, whole: Any) -> Any:
    """Return the node that wraps `child` and nothing else, with the same lines."""
    if node.type not in language.wraps:
        return child
    held = [c for c in node.named_children if c.type in language.defines or c.type in language.wraps]
    return (whole if whole.type in language.wraps else node) if len(held) == 1 else child


def _make_tree_symbol(name: str, kind: str, node: Any, whole: Any) -> Symbol:
    start = whole
    while (before := start.prev_named_sibling) is not None and before.type == "attribute_item":
        start = before
    last, column = max(node.end_point, whole.end_point)
    first = start.start_point.row + 1
    # The end is behind the last character: of a definition that ends its line, in the next line.
    return Symbol(name, kind, first, max(first, last + (column > 0)))


def _kind_of(kind: str, node: Any) -> str:
    """Return the kind; a prototype is a function, which the grammar of C calls a declaration."""
    if kind != VARIABLE:
        return kind
    if any(map(_declares_function, node.children_by_field_name("declarator"))):
        return FUNCTION
    value = node.child_by_field_name("value")
    return FUNCTION if value is not None and value.type in {"arrow_function", "function_expression"} else kind


def _declares_function(declarator: Any) -> bool:
    while declarator is not None and declarator.type == "pointer_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator is not None and declarator.type == "function_declarator"


def _grammars_names(node: Any) -> list[str]:
    if node.type == "impl_item":
        return _node_texts([_find_name(node.child_by_field_name("type"), "type")])
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return []  # `struct point p;` mentions the structure
    receiver = node.child_by_field_name("receiver")  # of a method of Go
    owner = _receiver_name(receiver) if receiver is not None else ""
    named = node.children_by_field_name("name") or node.children_by_field_name("property")
    if not named:
        named = [_find_name(each, "declarator") for each in node.children_by_field_name("declarator")]
    return [owner + name for name in _node_texts(named)]


def _receiver_name(receiver: Any) -> str:
    types = [_find_name(part.child_by_field_name("type"), "type") for part in receiver.named_children]
    return "".join(f"{name}." for name in _node_texts(types)[:1])


def _find_name(node: Any, field: str) -> Any:
    """Return the name inside a type or a declarator: `Vec` in `&Vec<T>`, `name` in `*name[3]`."""
    while node is not None and node.type not in _NAMES:
        node = node.child_by_field_name(field) or next(iter(node.named_children), None)
    return node


def _node_texts(nodes: list[Any]) -> list[str]:
    named = (node for node in nodes if node is not None and not node.type.endswith("_pattern"))
    texts = (node.text.decode("utf-8", "replace").replace("::", ".") for node in named)
    return [text for text in texts if text]
