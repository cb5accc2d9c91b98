"""The commands of working memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import group
from mdmem.cli.options import (
    base_option,
    change_command,
    read_command,
    read_variables,
    text_argument,
    variable_options,
)
from mdmem.cli.render import print_json

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory

Verb = Callable[[Any], Any]


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
    memory: Memory,
    thread: str | None,
    resource: str | None,
    template: str | None,
    pairs: tuple[str, ...],
    from_stdin: bool,
    as_json: bool,
) -> int:
    """Print the content; nothing, and exit code 1, where there is none or it has expired."""
    variables = read_variables(pairs, from_stdin=from_stdin)
    content = memory.working.get(thread=thread, resource=resource, template=template, variables=variables)
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
def working_update(
    content: str,
    thread: str | None,
    resource: str | None,
    ttl: int | None,
    schema: str | None,
    base: str | None,
) -> Verb:
    """Replace the whole content."""
    owner = {"thread": thread, "resource": resource}
    return lambda m: m.working.update(content, **owner, ttl=ttl, schema=schema, base=base)


@working_command.command(
    "find-and-replace", epilog="Example: mdmem working find-and-replace red green --thread t1"
)
@click.argument("search")
@text_argument("new", may_be_empty=True)
@owner_options
@ttl_option
@change_command
def working_find_and_replace(
    search: str, new: str, thread: str | None, resource: str | None, ttl: int | None
) -> Verb:
    """Replace a text that occurs once; an empty SEARCH appends, and begins where nothing is yet."""
    return lambda m: m.working.find_and_replace(search, new, thread=thread, resource=resource, ttl=ttl)


@working_command.command("merge", epilog="""Example: mdmem working merge '{"step": 2}' --resource r1""")
@text_argument("patch")
@owner_options
@ttl_option
@change_command
def working_merge(patch: str, thread: str | None, resource: str | None, ttl: int | None) -> Verb:
    """Change members of a JSON memory by a JSON merge patch; null removes one."""
    try:
        members = json.loads(patch)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"the patch is not JSON: {error}") from None
    return lambda m: m.working.merge(members, thread=thread, resource=resource, ttl=ttl)


@working_command.command("clear", epilog="Example: mdmem working clear --thread t1")
@owner_options
@change_command
def working_clear(thread: str | None, resource: str | None) -> Verb:
    """Delete it; undo brings it back."""
    return lambda m: m.working.clear(thread=thread, resource=resource)


@working_command.command("sweep", epilog="Example: mdmem working sweep --dry-run")
@change_command
def working_sweep() -> Verb:
    """Delete all working memory that has expired."""
    return lambda m: m.working.sweep()


@working_command.command("list", epilog="Example: mdmem working list")
@read_command
def working_list(memory: Memory, as_json: bool) -> None:
    """List all working memory."""
    infos = memory.working.list()
    if as_json:
        print_json([info.as_dict() for info in infos])
        return
    for info in infos:
        state = "expired" if info.expired else f"expires {info.expires}" if info.expires else ""
        print(f"{info.kind}\t{info.id}\t{info.path}\t{state}".rstrip())
