"""A verb has one name: what the command line and MCP have, Python has under the same name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from mdmem import errors
from mdmem.cli.main import app
from mdmem.conversations.observe.capture import Capture
from mdmem.conversations.observe.observer import SessionObservations
from mdmem.conversations.observe.summaries import Summaries
from mdmem.conversations.results.results import ToolResults
from mdmem.conversations.sessions import Sessions
from mdmem.facade.instructions import WorkspaceProject
from mdmem.facade.memory import Memory
from mdmem.index.query import SearchRequest
from mdmem.memory.inbox import Inbox
from mdmem.memory.notes import Notes
from mdmem.memory.preferences import Preferences
from mdmem.memory.references import References
from mdmem.memory.rules import Rules
from mdmem.memory.verbs import Verbs
from mdmem.memory.working import Working
from mdmem.review.git import Git
from mdmem.serve.mcp.verbs import search
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS: dict[str, type] = {
    "notes": Notes,
    "working": Working,
    "preferences": Preferences,
    "project": WorkspaceProject,
    "rules": Rules,
    "references": References,
    "sessions": Sessions,
    "summaries": Summaries,
    "git": Git,
    "inbox": Inbox,
    "capture": Capture,
    "results": ToolResults,
    "observations": SessionObservations,
}

# Commands that are called otherwise than their verb.
CALLED = {
    "index": "sync",  # what people know it by
    "backlinks": "references.backlinks",  # too often used for two words
    "tags": "references.tags",
    "graph": "references.graph",
    "today": "notes.today",  # typed every day
    "import": "import_",  # a word of Python's own
    "sessions.import": "sessions.import_",
    # One word for each thing on the command line; Python has the words of mappings and lists.
    "preferences.rm": "preferences.delete",
    "preferences.show": "preferences.get",
    "rules.new": "rules.add",
    "sessions.append": "sessions.add",
    "sessions.rm": "sessions.delete",
    "working.set": "working.update",
    "working.show": "working.get",
    # What sessions come to is asked where sessions are.
    "sessions.summarize": "summaries.summarize",
    "sessions.keep": "summaries.keep",
    "sessions.summaries": "summaries.list",
    "sessions.observe": "observe",
    "sessions.reflect": "observations.reflect",
    "sessions.observations": "observations.list",
    "sessions.observed": "observations.expand",
    "sessions.delete_observations": "observations.delete",
    "sessions.capture": "capture.run",
}

REFS = ("list", "lookup", "stale", "stats", "pin", "fix")
"""The verbs of references that are one command, `refs`."""

# Commands that are no verbs, with the reason.
ONLY_CLI = {
    "tool": "mdmem.serve.adapters.memory_tool.Tool: commands of a model, in its words",
    "lsp": "a front end: `memory.editing()` for editors",
    "web": "a front end: the review, in a browser",
    "mcp": "a front end: the same verbs as tools of the Model Context Protocol",
    "refs": "one command for most of what references are asked",
    "init": "mdmem.init: there is no memory to open yet",
    "hook": "what a host's hook is answered",
    "install": "about the settings of a host",
    "git.merge_driver": "mdmem.merge_files: what git runs, on files of its own",
    "uninstall": "as install",
    "store.init": "mdmem.facade.memory.init_store: as init",
    "store.sweep": "mdmem.facade.memory.sweep_store: it is about a database, and opens no memory",
    "store.copy": "mdmem.facade.memory.copy_store: as store.sweep",
    "store.put": "mdmem.facade.memory.put_store: as store.sweep",
    "store.check": "mdmem.facade.memory.check_store: as store.sweep",
    "store.erase": "mdmem.facade.memory.erase_store: as store.sweep",
    "token.new": "mdmem.serve.mcp.access.make_token: about the file of a server",
    "completion": "about the shell",
    "help": "what the program says of itself",
    "template.list": "memory.vault.templates.names: templates are no memories",
    "template.show": "memory.vault.templates.show",
    "schema.list": "memory.vault.schemas.names: schemas are no memories",
    "schema.show": "memory.vault.schemas.show",
    "schema.check": "memory.vault.schemas.lint",
}

# Where an argument of a command has no parameter of its name: what it stands for, or why it is there.
ARGUMENTS: dict[str, dict[str, str]] = {
    "set": {"assignments": "fields", "json_value": "fields"},
    "replace": {"arguments": "path, old, new", "every": "count", "yes": "is about the terminal"},
    "rm": {"yes": "is about the terminal"},
    "sessions.vacuum": {"yes": "is about the terminal"},
    "mv": {"arguments": "source, target", "what": "rename_heading, rename_block, rename_id, rename_tag"},
    "grep": {
        "owner": "within",
        "given": "pattern",
        "literal": "regex",
        "shown": "chooses what is printed",
        "grouped": "chooses how it is printed",
        "same": "what it does anyway, for fingers that know grep",
    },
    "search": {
        "owner": "within",
        "words": "query",
        "passages": "each",
        "grouped": "chooses how it is printed",
    },
    "sync": {
        "meaning": "is the verb meaning.fill",
        "fetch": "is the verb meaning.fetch",
        "remove": "is the verb forget_meaning",
    },
    "context": {"words": "query"},
    "references.graph": {"form": "chooses how it is printed"},
    "edit": {"yes": "is about the terminal"},
    "ls": {
        "owner": "within",
        "newest": "sort",
        "tree": "chooses how it is printed",
        "same": "what it does anyway, for fingers that know ls",
    },
    "remember": {"json_value": "value"},
    "undo": {"limit": "count"},
    "redo": {"limit": "count"},
    "new": {"only_print": "is the verb render"},
    "show": {
        "owner": "path",
        "heading": "chooses what is printed",
        "number": "chooses what is printed",
        "only_hash": "chooses what is printed",
    },
    "check": {
        "form": "chooses how it is printed",
        "notes": "chooses what is printed",
        "strict": "is about the exit code",
    },
    "doctor": {"strict": "as of check"},
    "sessions.check": {"strict": "as of check"},
    **{
        name: {"yes": "asks, where Python gives what is to be applied"}
        for name in ("git.install", "git.uninstall")
    },
    "inbox.accept": {"ids": "id"},
    "inbox.reject": {"ids": "id"},
    "history": {"limit": "chooses how much is printed"},
    "git.log": {"target": "path, anchor", "oneline": "chooses how it is printed"},
    "git.diff": {"given": "revisions, paths", "exit_code": "chooses the exit code"},
    "git.commit": {"same": "what it does anyway, for fingers that know git"},
}
# What people type where it is not the name in Python: keywords, repeatable options, flags for a choice.
SPELLED = {
    "given": {"--regexp"},
    "regex": {"--regex", "--extended-regexp", "--perl-regexp"},
    "literal": {"--fixed-strings"},
    "case": {"--case", "--ignore-case", "--case-sensitive", "--smart-case"},
    "word": {"--word-regexp"},
    "after": {"--after", "--after-context"},
    "before": {"--before", "--before-context"},
    "shown": {"--files-with-matches", "--only-matching", "--quiet"},
    "grouped": {"--heading"},
    "words_only": {"--words"},  # of `search`, whose argument is words
    "heading": {"--section"},  # of `show`: --heading groups hits
    "same": {"--all", "--line-number", "--recursive"},
    "within": {"--in"},
    "owner": {"--from"},
    "for_file": {"--for"},
    "files": {"--for"},
    "globs": {"--glob"},
    "every": {"--all"},
    "where": {"--replace", "--append", "--insert-before", "--insert-after", "--where"},
    "types": {"--type", "--kind"},
    "type": {"--kind"},  # of what outputs name
    "tags": {"--tag"},
    "tools": {"--host"},
    "states": {"--state"},
    "strategies": {"--strategy"},
    "paths": {"--in"},
    "sources": {"--source"},
    "only_print": {"--print"},
    "form": {"--format"},
    "generator": {"--model"},  # a function in Python, a program on the command line
    "variables": {"--var"},
    "port": {"--http"},
    "project": {"--local"},
    "resource": {"--resource-id"},
    "policy": {"--policy", "--existing"},
    "scope": {"--part"},  # of a search in sessions
    "as_json": {"--json"},
}

# What only people may leave away.
ONLY_CLI_DEFAULTS = {
    ("access", "path"): "without one, what others share is listed: the verb shared.list",
    ("diff", "path"): "without one, it is said what shows all changes",
    ("delete_lines", "last"): "one line is most often meant",
    ("grep", "pattern"): "-e gives it as well",
    ("new", "path"): "--print needs none",
    ("notes.today", "content"): "without it, the log is printed",
    ("remember", "kind"): "a note is most often meant",
    ("remember", "name"): "the log of today needs none",
}

# Commands without --json.
NO_JSON = {
    "completion": "prints a script",
    "help": "prints a text for people",
    "hook": "prints what the host reads",
    "tool": "prints nothing else",
    "lsp": "speaks JSON",
    "mcp": "speaks JSON",
    "web": "prints the address of a page",
}

# Commands that change nothing, and so have no --dry-run.
READS = {
    *(
        "access",
        "check",
        "completion",
        "context",
        "diff",
        "duplicates",
        "git.blame",
        "git.diff",
        "git.log",
        "grep",
        "help",
        "history",
    ),
    *("inbox.list", "inbox.show", "ls", "notes.list", "observations.expand", "observations.list"),
    *("preferences.get", "preferences.list", "project.summary", "references.backlinks", "references.graph"),
    *("quality", "report"),
    *("references.tags", "results.list", "results.recover", "results.references", "rules.list", "rules.text"),
    *("schema.check", "schema.list", "schema.show", "search", "sessions.assemble", "sessions.expand"),
    *("sessions.grep", "sessions.history", "sessions.list", "sessions.search", "show", "stats", "status"),
    *(
        "store.check",
        "summaries.list",
        "template.list",
        "template.show",
        "watch",
        "why",
        "working.get",
        "working.list",
    ),
}
# Commands that change something and have no --dry-run, with the reason.
NO_DRY_RUN = {
    "store.init": "what is there already is never changed",
    "token.new": "it prints lines, and changes no file",
    "hook": "a host waits for its answer, and nobody reads a diff",
    "lsp": "the editor makes the changes",
    "web": "each decision of the page is undone there",
    "mcp": "each of its tools that changes something has dry_run",
    "tool": "a model gives commands, which have no such member",
    "git.merge_driver": "git gives it files of its own",
    "git.review": "each decision is asked for, and undone by a key",
    "git.allow": "it notes a consent, and changes no memory",
    "sessions.allow_capture": "as git.allow",
    "sync": "it makes the index, and changes no memory",
    "past": "it makes a copy, and changes no memory",
    "results.compress": "its output is the short form; what it keeps is no memory",
    "sessions.add": "it only adds what was typed",
    "sessions.import_": "it only adds to conversations",
    "sessions.compact": "it may ask a model, and expand gives back every message",
    "sessions.check": "without --fix it says what is damaged",
    "observe": "it asks a model, and undo takes back the memories that it makes",
    "observations.reflect": "as observe",
}


def commands(group: click.Group = app, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name}.")
        else:
            yield prefix + name.replace("-", "_"), command


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    return {name: f for name, f in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


CLI = {CALLED.get(name, name): command for name, command in commands()}
API = methods(Memory) | {f"{k}.{name}": f for k, kind in KINDS.items() for name, f in methods(kind).items()}
BOTH = sorted(CLI.keys() & API.keys())


def makes_a_change(name: str) -> bool:
    """Whether a verb returns what was applied, or the plan of it: the type variable of its class."""
    # The façade has these itself: a log is to be settled first, and the config says who wrote what.
    applied = {"R", "Applied"} if name in {"observations.delete", "import_"} else {"R"}
    return inspect.signature(API[name]).return_annotation in applied


def names(command: click.Command) -> set[str]:
    # An underscore at the end keeps the name of a builtin free.
    return {p.name.rstrip("_") for p in command.params if p.name} - {"help", "raw", "empty"}


def test_every_command_has_a_verb() -> None:
    assert CLI.keys() - API.keys() == ONLY_CLI.keys()


def test_every_kind_is_compared() -> None:
    groups = {name.partition(".")[0] for name in CLI if "." in name}
    assert groups - {"template", "schema", "store", "token"} == KINDS.keys()


@cases("name", BOTH)
def test_arguments_have_the_names_of_parameters(name: str) -> None:
    parameters = inspect.signature(API[name]).parameters.keys() - {"self"}
    listed = ARGUMENTS.get(name, {})
    arguments = names(CLI[name]) - {"as_json", "dry_run", "verbose"}
    assert arguments - parameters == listed.keys()


def test_refs_takes_all_that_its_verbs_take() -> None:
    verbs = [API[f"references.{name}"] for name in REFS]
    taken = {parameter for verb in verbs for parameter in inspect.signature(verb).parameters} - {"self"}
    assert taken == names(CLI["refs"]) - {"stats", "pin", "fix", "dry_run", "as_json", "verbose"}


@cases("made", [SearchRequest, search])
def test_a_search_has_one_list_of_arguments(made: Callable[..., Any]) -> None:
    """What the index and a model are asked has the names and defaults of `Memory.search`."""
    parameters = inspect.signature(Memory.search).parameters
    for name, each in inspect.signature(made).parameters.items():
        if name not in {"call", "offset"}:  # what a server knows, and how it gives pages
            assert each.default == parameters[name].default, name


@cases("name", sorted(CLI))
def test_what_people_type_is_the_name_of_the_argument(name: str) -> None:
    for parameter in CLI[name].params:
        assert parameter.name is not None
        typed = {option for option in parameter.opts if option.startswith("--")}
        expected = SPELLED.get(parameter.name, {f"--{parameter.name.rstrip('_').replace('_', '-')}"})
        assert typed <= expected


@cases("name", BOTH)
def test_what_may_be_left_away_may_be_left_away_on_both_sides(name: str) -> None:
    parameters = inspect.signature(API[name]).parameters
    for argument in CLI[name].params:
        parameter = parameters.get((argument.name or "").rstrip("_"))
        reads_standard_input = isinstance(argument, click.Argument) and argument.default == "-"
        excepted = reads_standard_input or (name, argument.name) in ONLY_CLI_DEFAULTS
        if parameter is not None and not excepted:
            has_default = parameter.default is not inspect.Parameter.empty
            assert argument.required != has_default, argument.name


@cases("name", sorted(CLI))
def test_every_command_has_json_and_every_change_a_dry_run(name: str) -> None:
    options = names(CLI[name])
    assert ("as_json" in options) == (name not in NO_JSON)
    assert not (name in API and makes_a_change(name) and "dry_run" not in options)


def test_what_has_no_dry_run_changes_nothing_or_has_a_reason() -> None:
    without = {name for name, command in CLI.items() if "dry_run" not in names(command)}
    assert without == READS | NO_DRY_RUN.keys()


def test_the_verbs_of_a_plan_are_those_that_change_something() -> None:
    changing = {name for name in API if makes_a_change(name)}
    assert {name for name in changing if "." not in name} == methods(Verbs).keys() | {
        "consolidate",
        "prune",
        "remember",
        "revoke",
    }
    assert {"notes.append", "working.sweep", "preferences.set", "project.step"} <= changing
    assert not {"show", "ls", "grep", "rules.list", "working.get"} & changing


def test_every_change_that_takes_a_base_takes_it_by_this_name() -> None:
    for name in BOTH:
        if "base" in inspect.signature(API[name]).parameters:
            assert "base" in names(CLI[name])


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [errors.MdmemError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and " " not in code for code in codes)
    assert {kind.exit_code for kind in kinds} <= {1, 2}
