"""The rules of the house: its rooms, what a module may import and where, and what it may be called."""

from __future__ import annotations

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1] / "mdmem"
# The rooms: each imports those above it here, and none below.
ROOMS = (
    *("document", "vault", "git", "index", "memory", "conversations", "review", "hosts"),
    *("facade", "serve", "editor", "web", "cli"),
)
# The one import that goes up: `Memory.editing()`.
DOOR_UP = ("facade.memory", "editor.editing")
# What front ends are: they ask the façade.
FRONT_ENDS = ("cli", "web", "serve", "editor.lsp")
MEANINGLESS = {"base", "common", "core", "helper", "helpers", "manager", "misc", "util", "utils"}

# Words and phrases that make a sentence one to be read twice, and that have plain ones.
PHRASES = re.compile(
    r"\b(mend(s|ed|ing)?|anew|lapsed|besides|in place of|so many|of which (nobody|none)|had to give"
    r"|says? what the files say|nor inside of)\b",
    re.IGNORECASE,
)

# Doors: what a command or a name of the library does not use is not imported there. They are the public
# names of `mdmem`, and the properties and questions of the façade.
DOORS = {"", "facade.kinds", "facade.memory", "facade.scoped"}
# The modules that import each heavy package: all others ask these.
HEAVY = {
    "anthropic": {"serve.adapters.anthropic"},
    "deepagents": {"serve.adapters.deepagents"},
    "jinja2": {"vault.template.rendering", "vault.template.sandbox"},
    "jsonschema": {"vault.schema.meter", "vault.schema.validator"},
    "psycopg": {"vault.connection", "vault.postgres"},
    "psycopg_pool": {"vault.connection"},
    "regex": {"document.text.regex"},
    "tantivy": {"index.passages", "index.scoring", "index.text_index"},
    "toktok": {"document.text.tokens"},
    "tree_sitter": {"index.code.symbols"},
    "yaml": {"document.yaml", "document.yaml_edit"},
}
# What front ends may import besides the façade.
BESIDES = {
    "kind": "the table of the kinds says which choices a tool has",
}
# The modules apart from the doors that import something inside a function: why, and what.
INLINE = {
    "serve.adapters.dialect": ("few files are named by addresses", {"urllib.parse"}),
    "serve.adapters.hooks": (
        "most events need no context, start no process, and warn of nothing",
        {"facade.background", "facade.questions.context", "facade.questions.excerpt", "logging"},
    ),
    "document.outline": ("few memories have code in what is compared", {"textwrap"}),
    "facade.questions.context": ("few rules stand in a file that the host reads", {"hosts.generated"}),
    "hosts.settings": ("an extra: Codex alone has settings in TOML", {"tomlkit"}),
    "hosts.hosts": ("VS Code's folder alone differs between systems", {"platformdirs"}),
    "index.code.workspace": (
        "many workspaces have no repository, and few citations lead nowhere",
        {"git.history", "git.removals", "git.repository", "index.ripgrep"},
    ),
    "facade.questions.check": (
        "most memories have neither lineage nor an end, and are checked without what is beside them",
        {
            "memory.proposal",
            "index.code.workspace",
            "index.links.dialect",
            "index.links.lineage",
            "index.links.references",
            "memory.content",
            "memory.duplicates",
            "memory.validity",
        },
    ),
    "index.grep": ("few searches need these", {"heapq", "index.hit", "ripgrepy"}),
    "index.index": (
        "a search of a current index needs none",
        {"hashlib", "index.worker", "platformdirs", "shutil"},
    ),
    "index.ripgrep": ("what only lists runs no ripgrep", {"json", "shutil"}),
    "index.search": ("most searches find something", {"difflib"}),
    "index.view": ("few links lead nowhere", {"index.code.workspace"}),
    "index.sync": ("a sync that finds nothing to do indexes nothing", {"hashlib"}),
    "review.git": (
        "repositories are seldom set up, and what asks git commits and reverts nothing",
        {"review.commits", "review.decisions", "review.merge_setup", "review.reverts"},
    ),
    "memory.history": ("few changes are undone behind later ones", {"document.merging.merge"}),
    "facade.service": (
        "few vaults ask for conversations to be kept, or for commits, and few hooks find no index",
        {
            *("index.code.cited_path", "facade.background", "index.unindexed", "conversations.log.logs"),
            *("review.commits", "review.review", "review.tracked"),
            *("document.properties", "memory.validity", "vault.template.templates"),
        },
    ),
    "facade.instructions": (
        "most commands are about no tool's files",
        {"hosts.files", "hosts.hosts", "hosts.sync"},
    ),
    "conversations.observe.observations": ("few observations are opened", {"conversations.prompt.engine"}),
    "conversations.observe.observer": ("few sessions are observed as they grow", {"index.watch.watcher"}),
    "memory.validity": ("few memories are superseded", {"index.links.lineage"}),
    "memory.verbs": (
        "most changes move, import and end nothing, and most commands ask no index",
        {
            "index.view",
            "index.code.citations",
            "index.links.dialect",
            "index.links.lineage",
            "index.links.move",
            "index.links.outside",
            "index.links.resolve",
            "index.links.rename",
            "memory.duplicates",
            "memory.importing",
            "memory.provenance",
            "memory.sharing",
            "memory.validity",
        },
    ),
    "conversations.models.program": ("most commands ask no model", {"shutil", "tempfile"}),
    "vault.schema.formats": ("few schemas use these formats", {"ipaddress", "urllib.parse"}),
    "vault.schema.schemas": (
        "schemas are checked seldom, and only who fills in a memory asks what fields there are",
        {"vault.schema.guide", "vault.schema.lint"},
    ),
    "facade.background": ("what only starts it captures nothing", {"conversations.log.logs"}),
    "vault.schema.validator": ("few schemas have `multipleOf`", {"fractions"}),
    "conversations.sessions": (
        "most verbs only add and read",
        {
            *("conversations.find.find", "conversations.find.search", "conversations.prompt.compress"),
            *("conversations.prompt.engine", "conversations.prompt.prompt"),
            "conversations.transcripts.importing",
        },
    ),
    "conversations.transcripts.keeping": (
        "most messages have a role",
        {"conversations.transcripts.transcripts"},
    ),
    "document.markdown.blocks": ("what only lists parses no Markdown", {"pyromark"}),
    "document.markdown.link": ("few memories have character references", {"html.entities"}),
    "document.document": (
        "what a document consists of is parsed when it is asked for",
        {
            *(
                "frontmatter",
                "frontmatter.default_handlers",
                "hashlib",
                "document.markdown.blocks",
                "document.markdown.inline",
            ),
            "document.properties",
        },
    ),
    "document.frontmatter": ("hardly any frontmatter is TOML", {"tomllib"}),
    "vault.config": ("a vault with the default config needs neither", {"difflib", "tomllib"}),
    "vault.files": ("reading needs none", {"ctypes"}),
    "vault.mark": (
        "most commands prove nothing to another process, and most users have no config of their own",
        {"hashlib", "hmac", "platformdirs", "tomllib"},
    ),
    "index.embedder": (
        "each embedder needs its own packages, and none needs those of another",
        {
            *("fastembed", "hashlib", "http.client", "importlib.util", "index.wordpiece"),
            *("numpy", "onnxruntime", "statistics", "urllib.parse"),
        },
    ),
    "index.vectors": ("an extra, and only what compares vectors needs it", {"numpy"}),
    "vault.vault": (
        "what only reads needs neither schemas nor templates, and changes nothing",
        {"vault.schema", "vault.template.templates", "vault.transaction"},
    ),
    "index.watch.watcher": (
        "each system has its own watch, and cannot import the other",
        {"index.watch.inotify", "index.watch.observer"},
    ),
}


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Import(NamedTuple):
    """An import: of which module, where, and whether it is inside of a function, or for types alone."""

    module: str
    line: int
    is_inline: bool
    is_typing: bool


@pytest.fixture(scope="module", autouse=True)
def forget() -> Iterator[None]:
    """Drop what was parsed, which takes 70 MB, behind the last of these tests."""
    yield
    for kept in (modules, all_imports, definitions):
        kept.cache_clear()


@cache
def modules() -> dict[str, ast.Module]:
    """Every module, by its name without that of the package."""
    found = {}
    gc.disable()  # which would look through all that is parsed so far, again and again
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    gc.enable()
    return found


def lines(name: str) -> int:
    path = ROOT.joinpath(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return len(path.read_text(encoding="utf-8").splitlines())


def called(node: ast.expr) -> str:
    """The name that an expression ends with, if it is one."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


@cache
def all_imports(name: str) -> tuple[Import, ...]:
    """Every import of a module; ours without the package's name."""
    found: list[Import] = []

    def visit(node: ast.AST, *, is_inline: bool = False, is_typing: bool = False) -> None:
        where = is_inline, is_typing
        if isinstance(node, ast.If):
            is_typing |= called(node.test) == "TYPE_CHECKING"
        elif isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, *where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.partition(".")[0] != "mdmem":
                found.append(Import(module, node.lineno, *where))
            else:
                ours = [f"{module}.{alias.name}".removeprefix("mdmem.") for alias in node.names]
                own = module.removeprefix("mdmem").removeprefix(".")
                found.extend(Import(one if one in modules() else own, node.lineno, *where) for one in ours)
        elif isinstance(node, ast.Call) and called(node.func).endswith("import_module"):
            named = (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))
            found.extend(Import(str(one).removeprefix("mdmem."), node.lineno, *where) for one in named)
        elif isinstance(node, ast.Call) and called(node.func) == "Lazy":
            (path,) = (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))
            module = str(path).partition(":")[0].removeprefix("mdmem.")
            found.append(Import(module, node.lineno, is_inline=True, is_typing=is_typing))
        elif isinstance(node, FUNCTIONS):
            is_inline = True
        for child in ast.iter_child_nodes(node):
            visit(child, is_inline=is_inline, is_typing=is_typing)

    visit(modules()[name])
    return tuple(found)


def imports(name: str) -> list[Import]:
    """The imports of a module that are made when the program runs."""
    return [each for each in all_imports(name) if not each.is_typing]


@cache
def definitions() -> list[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every class and function, with the name of its module."""
    return [
        (name, node)
        for name, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, DEFINED)
    ]


def room_of(name: str) -> str:
    return name.partition(".")[0]


def folder_of(name: str) -> str:
    """The folder of a room that a module stands in; empty where it stands in the room itself."""
    _, *inner = name.split(".")
    return inner[0] if len(inner) > 1 or (inner and is_package(name)) else ""


def is_package(name: str) -> bool:
    return ROOT.joinpath(*name.split(".")).is_dir()


def ours(name: str) -> set[str]:
    """The modules of mdmem that one imports, for types and inside of functions, too, but for the door."""
    found = {each.module for each in all_imports(name) if each.module in modules()} - {"", name}
    return found - {DOOR_UP[1]} if name == DOOR_UP[0] else found


def is_front_end(name: str) -> bool:
    return any(f"{name}.".startswith(f"{each}.") for each in FRONT_ENDS)


def test_the_house_has_its_rooms_and_at_most_six_files_beside_them() -> None:
    rooms = {each.name for each in ROOT.iterdir() if each.is_dir() and each.name != "__pycache__"}
    assert rooms == set(ROOMS)
    assert len([each for each in ROOT.iterdir() if each.is_file()]) <= 6


def test_imports_go_down_between_the_rooms() -> None:
    """What stands beside the rooms is below them all, but for the program and the public names."""
    order = {room: number for number, room in enumerate(ROOMS, 1)}
    up = {
        (name, other)
        for name in modules()
        for other in ours(name)
        if name not in {"", "__main__"}
        if order.get(room_of(other), 0) > order.get(room_of(name), 0)
    }
    assert up == set()


def test_no_two_folders_of_a_room_import_each_other() -> None:
    between = {
        (room_of(name), folder_of(name), folder_of(other))
        for name in modules()
        for other in ours(name)
        if room_of(name) == room_of(other) and folder_of(name) and folder_of(other)
    }
    assert [(room, a, b) for room, a, b in between if a < b and (room, b, a) in between] == []


def find_circle(graph: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Find a way through a graph that ends where it began; empty without one."""
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return tuple(error.args[1])
    return ()


def test_imports_go_round_in_no_circle() -> None:
    """Those of types and inside functions count; the package's own names are doors to all that is below."""
    assert find_circle({name: ours(name) for name in modules() if name}) == ()


def test_a_class_name_is_unique() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for name, node in definitions():
        if isinstance(node, ast.ClassDef):
            where[node.name].append(name)
    assert {each: found for each, found in where.items() if len(found) > 1} == {}


def test_inline_imports_stand_at_the_doors_only() -> None:
    """Besides the heavy packages, the modules that wrap them, and what `INLINE` gives a reason for."""
    wrapping = set[str]().union(*HEAVY.values())
    found: dict[str, set[str]] = defaultdict(set)
    for name in modules():
        for each in imports(name):
            is_heavy = each.module in wrapping or each.module.partition(".")[0] in HEAVY
            if each.is_inline and not is_heavy and name not in DOORS and name.partition(".")[0] != "cli":
                found[name].add(each.module)
    assert found == {name: what for name, (_why, what) in INLINE.items()}


def test_each_heavy_package_is_imported_by_its_modules_alone() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for name in modules():
        for each in imports(name):
            package = each.module.partition(".")[0]
            if package in HEAVY:
                found[package].add(name)
    assert found == HEAVY


def test_no_name_means_nothing() -> None:
    parts = {part for name in modules() for part in name.split(".")}
    assert not parts & MEANINGLESS


def test_sentences_are_plain() -> None:
    """In docstrings, comments, messages, help and documentation: none of the words that have plainer ones."""
    texts = [*ROOT.rglob("*.py"), *ROOT.rglob("*.txt"), *ROOT.parent.glob("docs/*.md")]
    texts += [ROOT.parent / name for name in ("README.md", "AGENTS.md")]
    found = {
        f"{path.relative_to(ROOT.parent)}: {match[0]}"
        for path in texts
        for match in PHRASES.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_front_ends_reach_through_the_facade_for_nothing() -> None:
    """Neither for its vault, nor for what that is made of: what they need has a name there."""
    reached = {
        name
        for name, module in modules().items()
        if is_front_end(name)
        for node in ast.walk(module)
        # `self.vault` is what a command line names.
        if isinstance(node, ast.Attribute) and node.attr == "vault" and ast.unparse(node) != "self.vault"
        # What a language server serves is a vault of its own.
        if room_of(name) != "editor" or ast.unparse(node).endswith("memory.vault")
    }
    assert reached == set()


def test_front_ends_speak_to_the_facade_alone() -> None:
    """Types included: what they are given has a name there."""
    near = {"errors", "diagnostic", *BESIDES}
    rooms = {"facade", "editor", "memory", "review", "conversations"}
    below = {
        (name, other)
        for name in modules()
        if is_front_end(name)
        for other in ours(name)
        if not (is_front_end(other) or other in near or room_of(other) in rooms)
    }
    assert below == set()
