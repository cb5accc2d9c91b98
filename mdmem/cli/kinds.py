"""The commands of notes, working memory, preferences and rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli.main import group
from mdmem.cli.options import (
    Verb,
    base_option,
    change_command,
    read_command,
    read_value,
    read_variables,
    text_argument,
    variable_options,
)
from mdmem.cli.render import print_document, print_each, print_json, print_text

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory
    from mdmem.memory.preferences import Preference
    from mdmem.memory.rules import Rule
    from mdmem.memory.working import WorkingInfo


_title_option = click.option("--title", help="The heading of the section; without one, the local time.")


@group("notes")
def notes_command() -> None:
    """Notes: Markdown under notes/ that grows by sections."""


@notes_command.command("append", epilog="Example: mdmem notes append db 'One file.' --title SQLite")
@click.argument("name")
@text_argument("content")
@_title_option
@change_command
def notes_append(**given: Any) -> Verb:
    """Add a section at the end of a note, which is made if it is not there."""
    return lambda m: m.notes.append(**given)


@notes_command.command("overwrite", epilog="Example: mdmem notes overwrite db 'One file.' --title SQLite")
@click.argument("name")
@text_argument("content")
@_title_option
@base_option
@change_command
def notes_overwrite(**given: Any) -> Verb:
    """Make a note just one section; its frontmatter stays."""
    return lambda m: m.notes.overwrite(**given)


@notes_command.command("read", epilog="Example: mdmem notes read db")
@click.argument("name")
@read_command
def notes_read(memory: Memory, name: str, as_json: bool) -> None:
    """Print a note exactly as it is; its hash goes to standard error."""
    print_document(memory.notes.read(name), as_json=as_json)


@notes_command.command("list", epilog="Example: mdmem notes list decisions")
@click.argument("within", default="", metavar="[FOLDER]")
@read_command
def notes_list(memory: Memory, within: str, as_json: bool) -> None:
    """List the notes with their titles."""
    print_each(memory.notes.list(within), lambda info: f"{info.path}\t{info.title}", as_json=as_json)


def owner_options(command: Any) -> Any:
    """The options --thread and --resource."""
    command = click.option("--resource", metavar="ID", help="The memory of this resource.")(command)
    return click.option("--thread", metavar="ID", help="The memory of this thread.")(command)


def ttl_option(command: Any) -> Any:
    """The option --ttl."""
    help_text = "How long it lives from now; 0: for ever. Without it, the config decides."
    return click.option("--ttl", type=click.IntRange(0), metavar="SECONDS", help=help_text)(command)


@group("working")
def working_command() -> None:
    """Working memory: the small state of a thread or a resource."""


@working_command.command("get", epilog="Example: mdmem working get --thread t1 --template working")
@owner_options
@click.option("--template", help="What to begin with, where there is nothing yet.")
@variable_options
@read_command
def working_get(
    memory: Memory, pairs: tuple[str, ...], from_stdin: bool, as_json: bool, **options: Any
) -> int:
    """Print the content; nothing, and exit code 1, where there is none or it has expired."""
    variables = read_variables(pairs, from_stdin=from_stdin)
    content = memory.working.get(variables=variables, **options)
    if as_json:
        print_json({"content": content})
    elif content:
        print(content)
    return 0 if content else 1


@working_command.command(
    "update", epilog="Example: mdmem working update 'Tests green.' --thread t1 --ttl 3600"
)
@text_argument("content")
@owner_options
@ttl_option
@click.option("--schema", help="The schema that it must fit; it is recorded.")
@base_option
@change_command
def working_update(**given: Any) -> Verb:
    """Replace the whole content."""
    return lambda m: m.working.update(**given)


@working_command.command(
    "find-and-replace", epilog="Example: mdmem working find-and-replace red green --thread t1"
)
@click.argument("search")
@text_argument("new", may_be_empty=True)
@owner_options
@ttl_option
@change_command
def working_find_and_replace(**given: Any) -> Verb:
    """Replace a text that occurs once; an empty SEARCH appends, and begins where nothing is yet."""
    return lambda m: m.working.find_and_replace(**given)


@working_command.command("merge", epilog="""Example: mdmem working merge '{"step": 2}' --resource r1""")
@text_argument("patch")
@owner_options
@ttl_option
@change_command
def working_merge(patch: str, **given: Any) -> Verb:
    """Change members of a JSON memory by a JSON merge patch; null removes one."""
    try:
        members = json.loads(patch)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"the patch is not JSON: {error}") from None
    return lambda m: m.working.merge(members, **given)


@working_command.command("clear", epilog="Example: mdmem working clear --thread t1")
@owner_options
@change_command
def working_clear(**given: Any) -> Verb:
    """Delete it; undo brings it back."""
    return lambda m: m.working.clear(**given)


@working_command.command("sweep", epilog="Example: mdmem working sweep --dry-run")
@change_command
def working_sweep() -> Verb:
    """Delete all working memory that has expired."""
    return lambda m: m.working.sweep()


@working_command.command("list", epilog="Example: mdmem working list")
@read_command
def working_list(memory: Memory, as_json: bool) -> None:
    """List all working memory."""
    print_each(memory.working.list(), _working_line, as_json=as_json)


def _working_line(info: WorkingInfo) -> str:
    state = "expired" if info.expired else f"expires {info.expires}" if info.expires else ""
    return f"{info.kind}\t{info.id}\t{info.path}\t{state}".rstrip()


_POLICIES = click.Choice(["keep-latest", "keep-stronger", "merge"])
_SHARE = click.FloatRange(0, 1)


@group("preferences")
def preferences_command() -> None:
    """Preferences: what a user likes, with a strength that fades until it is confirmed."""


@preferences_command.command("set", epilog="Example: mdmem preferences set ui theme dark --why 'Said so.'")
@click.argument("category")
@click.argument("key")
@click.argument("value")
@click.option("--strength", type=_SHARE, help="How much it matters, 0 to 1 (0.7).")
@click.option("--confidence", type=_SHARE, help="How sure it is, 0 to 1 (0.8).")
@click.option("--why", help="The reason.")
@click.option("--policy", type=_POLICIES, help="What happens to another value that stands there.")
@base_option
@change_command
def preferences_set(category: str, key: str, value: str, **given: Any) -> Verb:
    """Say what is preferred; saying it again makes it stronger. VALUE is read as YAML."""
    options = {name: each for name, each in given.items() if each is not None}
    content = read_value(key, value)
    return lambda m: m.preferences.set(category, key, content, **options)


@preferences_command.command("get", epilog="Example: mdmem preferences get ui theme")
@click.argument("category")
@click.argument("key")
@click.option("--hidden", is_flag=True, help="Also one that has faded.")
@read_command
def preferences_get(memory: Memory, category: str, key: str, hidden: bool, as_json: bool) -> None:
    """Print a preference with its strength as of now."""
    found = memory.preferences.get(category, key, hidden=hidden)
    print_each([found], _preference_line, as_json=as_json)


@preferences_command.command("list", epilog="Example: mdmem preferences list ui")
@click.argument("category", required=False)
@click.option("--hidden", is_flag=True, help="Also those that have faded.")
@read_command
def preferences_list(memory: Memory, category: str | None, hidden: bool, as_json: bool) -> None:
    """List the preferences, or those of a category."""
    print_each(memory.preferences.list(category, hidden=hidden), _preference_line, as_json=as_json)


@preferences_command.command("top", epilog="Example: mdmem preferences top 5")
@click.argument("count", type=click.IntRange(0), default=10)
@read_command
def preferences_top(memory: Memory, count: int, as_json: bool) -> None:
    """List the strongest preferences."""
    print_each(memory.preferences.top(count), _preference_line, as_json=as_json)


@preferences_command.command("stats", epilog="Example: mdmem preferences stats")
@read_command
def preferences_stats(memory: Memory, as_json: bool) -> None:
    """Print how many there are, where, and how strong."""
    stats = memory.preferences.stats()
    if as_json:
        print_json(stats)
        return
    for name, value in mdmem.as_json(stats).items():
        shown = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        print(f"{name}: {shown}")


@preferences_command.command("delete", epilog="Example: mdmem preferences delete ui theme")
@click.argument("category")
@click.argument("key")
@change_command
def preferences_delete(**given: Any) -> Verb:
    """Delete a preference; undo brings it back."""
    return lambda m: m.preferences.delete(**given)


@preferences_command.command("sweep", epilog="Example: mdmem preferences sweep --dry-run")
@change_command
def preferences_sweep() -> Verb:
    """Delete the preferences that have faded; --dry-run proposes it."""
    return lambda m: m.preferences.sweep()


def _preference_line(found: Preference) -> str:
    hidden = "  (faded)" if found.hidden else ""
    return f"{found.name}\t{found.value}\t{found.strength:.2f}{hidden}"


_for_option = click.option(
    "--for", "for_file", metavar="FILE", help="Only rules that apply to this file of the workspace."
)


@group("rules")
def rules_command() -> None:
    """Rules: what holds for everyone, for a project, for a user; for all files, or for some."""


@rules_command.command("list", epilog="Example: mdmem rules list --for src/app.py")
@_for_option
@click.option("--disabled", is_flag=True, help="Also those that are switched off.")
@read_command
def rules_list(memory: Memory, for_file: str | None, disabled: bool, as_json: bool) -> None:
    """List the rules, the most important first."""
    print_each(memory.rules.list(for_file, disabled=disabled), _rule_line, as_json=as_json)


def _rule_line(rule: Rule) -> str:
    globs = f"  {', '.join(rule.globs)}" if rule.globs else ""
    state = "" if rule.enabled else "  (disabled)"
    return f"{rule.priority:4}  {rule.scope:8} {rule.name}  {rule.title}{globs}{state}"


@rules_command.command("text", epilog="Example: mdmem rules text --for src/app.py")
@_for_option
@click.option("--max-chars", type=click.IntRange(0), help="At most so many characters.")
@read_command
def rules_text(memory: Memory, for_file: str | None, max_chars: int | None, as_json: bool) -> None:
    """Print the rules as one text, to be given to a model."""
    print_text("text", memory.rules.text(for_file, max_chars), as_json=as_json)
