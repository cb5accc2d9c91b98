"""The commands of notes, working memory, preferences and rules, and remember, which is of any kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.main import command, group
from mdmem.facade.paths import NEW_NOTE, NEW_RULE, READ_FOLDER

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.memory.preferences import Preference
    from mdmem.memory.rules import Rule
    from mdmem.memory.working import WorkingInfo


_title_option = click.option("--title", help="Put the text below this heading.")
_why_option = click.option("--why", help="Give the reason.")
_json_option = click.option("--json-value", is_flag=True, help="Read VALUE as JSON.")
_about_resource = "Use the memory of this resource."
_resource_option = click.option("--resource-id", "resource", metavar="ID", help=_about_resource)
_ttl_option = options.number_option("--ttl", help="Let it expire in N seconds (0: never); else see config.")


@command("remember", epilog="Example: mdmem remember 'SQLite: one file.' --name db --title Decision")
@options.text_argument("value")
@options.kind_option("kind", default="note", show_default=True)
@click.option("--name", default="", help="Say which one: a note, a thread, CATEGORY/KEY or a heading.")
@_title_option
@_why_option
@_resource_option
@_ttl_option
@_json_option
@options.base_option
@options.change_options
@options.memory_command
def remember_command(memory: Memory, kind: str, name: str, value: str, json_value: bool, **given: Any) -> int:
    """Keep a text: a note, a preference, working or project memory.

    --kind is note, working, preference, project, or a kind of the vault. A note without a name is the log of
    today. A note and project memory grow by it; working memory and a preference are replaced. A preference is
    read as YAML.
    """
    as_yaml = mdmem.read_value if kind == "preference" else str
    content = options.read_json(value) if json_value else as_yaml(value)
    name = options.read_paths(memory).resolve_name(name, kind)
    return options.make_change(memory, lambda m: m.remember(kind, name, content, **given))


@group("notes")
def notes_command() -> None:
    """Keep notes: Markdown under notes/ that grows by sections."""


@notes_command.command("append", epilog="Example: mdmem notes append db 'One file.' --title SQLite")
@options.path_argument("name", NEW_NOTE)
@options.text_argument("content")
@_title_option
@options.verb_command("notes.append")
def notes_append() -> None:
    """Add a text at the end of a note, or make the note of it."""


@notes_command.command("list", hidden=True, epilog="Example: mdmem notes list decisions")
@options.path_argument("within", READ_FOLDER, default="", metavar="[FOLDER]")
@options.read_command
def notes_list(memory: Memory, within: str) -> int:
    """List the notes with their titles."""
    found = memory.notes.list(within)
    what = f"notes{f' in {within}' if within else ''}"
    return render.print_list(found, lambda info: f"{info.path}  {info.title}", what, is_asked=bool(within))


def owner_options(command: Any) -> Any:
    """Declare the options --thread and --resource-id."""
    return options.thread_option(_resource_option(command))


@group("working")
def working_command() -> None:
    """Keep the small state of a thread or a resource."""


@working_command.command("show", epilog="Example: mdmem working show --thread t1 --template working")
@options.begun_thread_option
@_resource_option
@click.option("--template", help="Begin with this template if there is nothing yet.")
@options.variable_option
@options.read_command
def working_show(memory: Memory, **given: Any) -> int:
    """Print the content; the exit code is 1 if there is none, or it has expired."""
    content = memory.working.get(**given)
    if render.is_set("as_json"):
        render.print_json({"content": content})
    elif content:
        print(content)
    owner = given["thread"] or given["resource"]
    return 0 if content else render.say_nothing(f"working memory of {owner}", is_asked=True)


@working_command.command("set", epilog="Example: mdmem working set 'Tests green.' --thread t1 --ttl 60")
@options.text_argument("content")
@owner_options
@_ttl_option
@click.option("--schema", help="Require this schema, and record it.")
@options.base_option
@options.verb_command("working.update")
def working_set() -> None:
    """Set the whole content; make the memory if there is none."""


@working_command.command(
    "find-and-replace", hidden=True, epilog="Example: mdmem working find-and-replace red green --thread t1"
)
@click.argument("search")
@options.text_argument("new")
@owner_options
@_ttl_option
@options.verb_command("working.find_and_replace")
def working_find_and_replace() -> None:
    """Replace a text that occurs once; an empty SEARCH appends, or begins the memory."""


@working_command.command("clear", epilog="Example: mdmem working clear --thread t1")
@options.begun_thread_option
@_resource_option
@options.verb_command("working.clear")
def working_clear() -> None:
    """Delete the working memory; undo brings it back."""


@working_command.command("sweep", hidden=True, epilog="Example: mdmem working sweep --dry-run")
@options.verb_command("working.sweep")
def working_sweep() -> None:
    """Delete all working memory that has expired."""


@working_command.command("list", epilog="Example: mdmem working list")
@options.read_command
def working_list(memory: Memory) -> int:
    """List all working memory."""
    return render.print_list(memory.working.list(), _format_working, "working memory")


def _format_working(info: WorkingInfo) -> str:
    state = "expired" if info.expired else f"expires {info.expires}" if info.expires else ""
    return f"{info.path}  {info.kind} {info.id}  {state}".rstrip()


_POLICIES = click.Choice(["keep-latest", "keep-stronger", "merge"])
_SHARE = click.FloatRange(0, 1)
_hidden_option = click.option(
    "--hidden", is_flag=True, help="Take also what has faded or does not count now."
)


@group("preferences")
def preferences_command() -> None:
    """Keep what a user likes, with a strength that fades until it is confirmed."""


@preferences_command.command("set", epilog="Example: mdmem preferences set ui theme dark --why 'Said so.'")
@click.argument("category")
@click.argument("key")
@click.argument("value")
@click.option("--strength", type=_SHARE, help="Say how much it matters, 0 to 1 (0.7).")
@click.option("--confidence", type=_SHARE, help="Say how sure it is, 0 to 1 (0.8).")
@_why_option
@click.option("--existing", "policy", type=_POLICIES, help="Say what happens to another value.")
@options.base_option
@options.change_command
def preferences_set(category: str, key: str, value: str, **given: Any) -> options.Verb:
    """Record a preference; each time you do, it becomes stronger.

    VALUE is read as YAML in one line. What a number would change, such as 3.10, is a text.
    """
    chosen = {name: each for name, each in given.items() if each is not None}
    content = mdmem.read_value(value)
    return lambda m: m.preferences.set(category, key, content, **chosen)


@preferences_command.command("show", epilog="Example: mdmem preferences show ui theme")
@click.argument("category")
@click.argument("key")
@_hidden_option
@options.read_command
def preferences_show(memory: Memory, category: str, key: str, hidden: bool) -> None:
    """Print a preference with its strength as of now."""
    render.print_list(
        [memory.preferences.get(category, key, hidden=hidden)], _format_preference, "preferences"
    )


@preferences_command.command("list", epilog="Example: mdmem preferences list ui")
@click.argument("category", required=False)
@_hidden_option
@options.read_command
def preferences_list(memory: Memory, category: str | None, hidden: bool) -> int:
    """List the preferences, or those of a category."""
    found = memory.preferences.list(category, hidden=hidden)
    unreadable = memory.preferences.unreadable()
    render.print_remarks(f"left out: {path}: `mdmem check` says why it cannot be read" for path in unreadable)
    what = f"preferences{f' of {category}' if category else ''}"
    return render.print_list(found, _format_preference, what, is_asked=category is not None)


@preferences_command.command("rm", epilog="Example: mdmem preferences rm ui theme")
@click.argument("category")
@click.argument("key")
@options.verb_command("preferences.delete")
def preferences_rm() -> None:
    """Delete a preference; undo brings it back."""


@preferences_command.command("sweep", hidden=True, epilog="Example: mdmem preferences sweep --dry-run")
@options.verb_command("preferences.sweep")
def preferences_sweep() -> None:
    """Delete the preferences that have faded."""


def _format_preference(found: Preference) -> str:
    hidden = f"  ({'faded' if found.state == 'live' else found.state})" if found.hidden else ""
    return f"{found.name}  {found.value}  {found.strength:.2f}{hidden}"


_for_option = options.for_option("for_file")


@group("rules")
def rules_command() -> None:
    """Keep rules: for everyone, for a project, for a user; for all files, or for some."""


@rules_command.command("new", epilog="Example: mdmem rules new style 'Type everything.' --glob '*.py'")
@options.path_argument("name", NEW_RULE)
@options.text_argument()
@options.globs_option
@click.option("--priority", type=int, help="Put rules with a higher number first (0).")
@options.verb_command("rules.add")
def rules_new() -> None:
    """Make a rule; agents are told it from then on.

    With --glob, it is about these files of the workspace, else about all.
    """


@rules_command.command("list", epilog="Example: mdmem rules list --for src/app.py")
@_for_option
@click.option("--disabled", is_flag=True, help="List also those that are turned off or do not count now.")
@options.read_command
def rules_list(memory: Memory, for_file: str | None, disabled: bool) -> int:
    """List the rules, the most important first."""
    found = memory.rules.list(for_file, disabled=disabled)
    return render.print_list(found, _format_rule, _name_rules(for_file), is_asked=for_file is not None)


def _name_rules(for_file: str | None) -> str:
    return f"rules{f' for {os.path.relpath(for_file)}' if for_file else ''}"


def _format_rule(rule: Rule) -> str:
    globs = f"  {', '.join(rule.globs)}" if rule.globs else ""
    states = filter(None, ("" if rule.enabled else "disabled", "" if rule.state == "live" else rule.state))
    state = "".join(f"  ({each})" for each in states)
    title = "" if rule.title == rule.name else f"  {rule.title}"
    return f"{rule.priority:4}  {rule.scope:8} {rule.name}{title}{globs}{state}"


@rules_command.command("text", epilog="Example: mdmem rules text --for src/app.py")
@_for_option
@options.number_option("--max-chars", help="Print at most N characters.")
@options.read_command
def rules_text(memory: Memory, for_file: str | None, max_chars: int | None) -> int:
    """Print the rules as one text, to be given to a model."""
    text = memory.rules.text(for_file, max_chars)
    render.print_text("text", text)
    return 0 if text else render.say_nothing(_name_rules(for_file), is_asked=for_file is not None)
