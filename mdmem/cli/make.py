"""The commands that make memories and vaults: init, new, import, template, schema."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.findings import print_findings, strict_option
from mdmem.cli.main import Target, command, group
from mdmem.errors import AlreadyExists, Usage, plural
from mdmem.facade.paths import NEW, NEW_FOLDER
from mdmem.kind import FIELD_MEANINGS
from mdmem.memory.importing import FORMATS, find_tools

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory


@command("init", epilog="Example: mdmem init memories")
@click.argument("folder", required=False)
@click.option("--here", is_flag=True, help="Make it in the current folder without asking.")
@options.dry_run_option
@options.json_option
@click.pass_obj
def init_command(target: Target, folder: str | None, here: bool) -> int:
    """Make a vault, a folder of memories.

    It is named memories, unless FOLDER, --vault or MDMEM_VAULT names another. Where a vault is found from the
    current folder already, below the root of a repository, and among the notes of Obsidian or a tool like it,
    this asks first; without a terminal it makes nothing, and the exit code is 2.

    Inside of a git repository, the AGENTS.md at its root is mounted as project memory, unless FOLDER
    has one of its own.
    """
    named, _, _ = target.binding
    if folder and named and os.path.realpath(folder) != os.path.realpath(os.path.expanduser(named)):
        remedy = "give one of them: each names the folder of the vault"
        raise Usage(problem=f"{folder} is not {named}, which --vault or MDMEM_VAULT names", remedy=remedy)
    place = named or folder or "memories"
    try:
        if not (named or folder or here) and not _is_meant_here(mdmem.init(place, dry_run=True)):
            return 1
        made = mdmem.init(place, dry_run=render.is_set("dry_run"))
    except AlreadyExists as error:
        render.print_text("message", f"{error.path.removesuffix('/.mdmem/config.toml')} is a vault already")
        return 0
    if render.is_set("as_json"):
        render.print_json({"applied": not render.is_set("dry_run"), **mdmem.as_json(made)})
    else:
        _print_made(made)
    return 0


def _is_meant_here(planned: Any) -> bool:
    """Ask whether a vault is meant for the current folder, where one above is likelier."""
    here = "`mdmem init --here` makes one here"
    if planned.above:
        problem = f"the vault {planned.above} is found from here already"
        remedy = f"`mdmem status` says what is in it; {here} all the same"
    elif planned.repository:
        problem = f"this is below the root of the repository {planned.repository}"
        root = shlex.quote(os.path.relpath(os.path.join(planned.repository, "memories")))
        remedy = f"`mdmem init {root}` makes a vault at the root, {here}"
    elif tools := find_tools(os.path.dirname(planned.root)):
        problem = f"this folder holds notes of {' and '.join(tools)}"
        remedy = f"`mdmem init .` makes a vault of them where they are, {here}, in memories/"
    else:
        return True
    if render.is_set("dry_run"):
        render.print_remarks([f"note: {problem}: {remedy}"])
        return True
    if render.is_set("as_json") or not options.may_ask():
        raise Usage(problem=f"nothing was made: {problem}", remedy=remedy)
    render.print_remarks([f"{problem}: {remedy}"])
    return click.confirm(f"make the vault {planned.root}?")


def _print_made(made: Any) -> None:
    print(f"{'would make' if render.is_set('dry_run') else 'made'} the vault {made.root}")
    if made.ignored:
        print(f"    .gitignore (lines added: {len(made.ignored)})")
    for path in made.files:
        print(f"    {path}")
    if made.meanings:
        named = "; ".join(f"{name}/ ({meaning})" for name, meaning in made.meanings.items())
        render.print_remarks([f"note: folders with a meaning: {named}: rename what means something else"])
    if made.fields:
        counts = made.fields.items()
        named = "; ".join(f"{name} ({FIELD_MEANINGS[name]}; {plural(n, 'note')})" for name, n in counts)
        render.print_remarks([f"note: fields with a meaning: {named}: rename what means something else"])
    vault = "" if made.is_found else f" --vault {shlex.quote(os.path.relpath(made.root))}"
    for name, meant in made.misnamed.items():
        rename = f"`mdmem{vault} mv {name} {meant}` renames it, and the links to it"
        problem = f"{name}/ differs only in case from {meant}/, to which nothing can be written now"
        render.print_remarks([f"note: {problem}: {rename}"])
    render.print_passed_over(made.passed_over)
    if made.unmounted:
        how = "move it away, and take the # from the mount in .mdmem/config.toml"
        render.print_remarks([f"AGENTS.md is that of the folder; to have {made.unmounted} instead, {how}"])
    if made.unignored:
        lines = "".join(f"\n    {line}" for line in made.unignored)
        render.print_remarks([f".gitignore is no regular file: put one there, with the lines{lines}"])
    if not made.is_found:
        place = shlex.quote(os.path.relpath(made.root))
        render.print_remarks([f"it is not found from here: name it with `--vault {place}`, or MDMEM_VAULT"])


@command("new", epilog="Example: mdmem new decision notes/sqlite.md --var title='Use SQLite'")
@click.argument("template")
@options.path_argument(role=NEW, required=False)
@options.variable_option
@click.option("--print", "only_print", is_flag=True, help="Print the rendered template, and write nothing.")
@options.change_options
@click.pass_obj
def new_command(
    target: Target,
    /,
    template: str,
    path: str | None,
    variables: dict[str, str],
    only_print: bool,
) -> None:
    """Make a memory from a template; the result is validated before it is written.

    TEMPLATE is one that `mdmem template list` lists, such as decision, note or rule. It may be the name of a
    kind: then a PATH without .md or .json is a name in the folder of that kind. `mdmem template show` prints
    the variables of one. --print needs no PATH.
    """
    memory = options.open_memory(target)
    if only_print:
        text = memory.render(template, variables)
        render.print_json({"template": template, "text": text}) if render.is_set("as_json") else print(
            text, end=""
        )
        return
    if path is None:
        raise click.UsageError("Missing argument 'PATH'.")
    if path.endswith(memory.suffixes):
        path = options.resolve_paths(memory, {"path": path})["path"]
    else:
        path = options.read_paths(memory).resolve_name(path, template)
    options.make_change(memory, lambda m: m.new(template, path, variables))


@command("import", epilog="Example: mdmem import mcp-memory memory.jsonl --dry-run")
@click.argument("format", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("source")
@options.path_option("--to", role=NEW_FOLDER, metavar="FOLDER", help="Write to this path.")
@options.verb_command("import_")
def import_command() -> None:
    """Import the memory of another system as notes.

    It is one change, which `mdmem undo` takes back. Conversations are imported by `mdmem sessions import`.

    \b
    mcp-memory    the JSONL file of the MCP memory server: a note for each entity
    basic-memory  a folder of its notes: titles and permalinks become aliases
    claude-code   the notes in ~/.claude/projects/REPOSITORY: names become titles and aliases
    obsidian      a vault, or any folder of notes: as it is

    Every file comes byte for byte, attachments too; nothing is overwritten. A table at the end counts what
    is new and what is left out, with the reason; then the exit code is 1. Links that may mean several
    memories are warnings; `mdmem check` also finds those that lead nowhere.
    """  # noqa: D301 - the backspace is click's mark for lines that stay as they are


@group("template")
def template_command() -> None:
    """Print templates: the vault's own in .mdmem/templates, over the built-in ones."""


@template_command.command("list", epilog="Example: mdmem template list")
@options.read_command
def template_list(memory: Memory) -> None:
    """List the templates."""
    _print_infos(memory.templates.names(), "description")


@template_command.command("show", epilog="Example: mdmem template show decision")
@click.argument("name")
@options.read_command
def template_show(memory: Memory, name: str) -> None:
    """Print a template; the variables that it takes go to standard error."""
    shown = memory.templates.show(name)
    if render.is_set("as_json"):
        render.print_json(shown)
        return
    needs = {True: "required", False: "optional"}
    render.print_remarks(f"{each.name}: {needs[each.required]}" for each in shown.variables)
    print(shown.source, end="")


def _print_infos(infos: Iterable[Any], about: str) -> None:
    for info in infos:
        if render.is_set("as_json"):
            render.print_json({name: getattr(info, name) for name in ("name", "builtin", about)})
        else:
            print(f"{info.name:16} {'built-in' if info.builtin else 'own':9} {getattr(info, about)}".rstrip())


@group("schema")
def schema_command() -> None:
    """Print and check schemas: the vault's own in .mdmem/schemas, over the built-in ones."""


@schema_command.command("list", epilog="Example: mdmem schema list")
@options.read_command
def schema_list(memory: Memory) -> None:
    """List the schemas."""
    _print_infos(memory.schemas.names(), "title")


@schema_command.command("show", epilog="Example: mdmem schema show note")
@click.argument("name")
@options.read_command
def schema_show(memory: Memory, name: str) -> None:
    """Print a schema, which is JSON, as it is written; with --json in one line."""
    text = memory.schemas.show(name)
    if render.is_set("as_json"):
        render.print_json(json.loads(text))
    else:
        print(text.rstrip("\n"))


@schema_command.command("check", epilog="Example: mdmem schema check")
@options.format_option()
@strict_option
@options.read_command
def schema_check(memory: Memory, form: str, strict: bool) -> int:
    """Report what is wrong with the schemas themselves."""
    return print_findings(memory.schemas.lint(), form, memory.in_workspace, strict=strict)
