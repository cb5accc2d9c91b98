"""The commands of results: outputs of tools, in short and whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.main import group
from mdmem.cli.options import read_command
from mdmem.cli.render import print_bytes, print_each, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem import Memory, ResultReference

_HASH = "HASH"


def session_option(command: Any) -> Any:
    """The option --session."""
    return click.option("--session", metavar="KEY", help="Only what this session has stored.")(command)


def type_option(command: Any) -> Any:
    """The option --type."""
    help_text = "Only file_path, url, class, function, variable or line_range."
    return click.option("--type", metavar="TYPE", help=help_text)(command)


@group("results")
def results_command() -> None:
    """Results: outputs of tools, each in short, and whole when it is asked for."""


@results_command.command("compress", epilog="Example: mdmem results compress --tool Bash build.log")
@click.argument("output", type=click.File("rb"), default="-")
@click.option(
    "--tool", required=True, metavar="NAME", help="Whose output it is: Bash, Read, Grep, WebFetch …"
)
@click.option("--session", metavar="KEY", help="The session that it belongs to.")
@read_command
def results_compress(memory: Memory, output: Any, tool: str, session: str | None, as_json: bool) -> None:
    """Store the output of a tool, from a file or standard input, and print its short form.

    How to get the rest, and what had to give, comes on standard error.
    """
    done = memory.results.compress(tool, output.read(), session)
    if as_json:
        print_json(done)
        return
    print(done.summary)
    sys.stdout.flush()  # before what follows
    for told in (done.rest, *done.warnings):
        print(told, file=sys.stderr)


@results_command.command("recover", epilog="Example: mdmem results recover a376dc05a0db --lines 10-20")
@click.argument("hash_", metavar=_HASH)
@click.option("--lines", metavar="A-B", help="Only these lines, from 1 on.")
@session_option
@read_command
def results_recover(
    memory: Memory, hash_: str, lines: str | None, session: str | None, as_json: bool
) -> None:
    """Print all of an output, byte for byte, by its hash or 8 digits of it or more."""
    data = memory.results.recover(hash_, lines, session)
    if as_json:
        from base64 import b64encode

        print_json({"base64": b64encode(data).decode()})
    else:
        print_bytes(data)


@results_command.command("can-recover", epilog="Example: mdmem results can-recover a376dc05a0db")
@click.argument("hash_", metavar=_HASH)
@session_option
@read_command
def results_can_recover(memory: Memory, hash_: str, session: str | None, as_json: bool) -> int:
    """Say whether an output is kept, and when it was swept; the exit code is 1 when it is not kept."""
    found = memory.results.can_recover(hash_, session)
    if as_json:
        print_json(found)
    elif found.gone:
        print(f"swept at {found.gone}")
    else:
        print("kept" if found else "not kept")
    return 0 if found else 1


@results_command.command("list", epilog="Example: mdmem results list --tool Bash")
@session_option
@click.option("--tool", metavar="NAME", help="Only those of this one.")
@read_command
def results_list(memory: Memory, session: str | None, tool: str | None, as_json: bool) -> None:
    """List the outputs that are kept, the oldest first: bytes, when, hash, tool, session."""
    print_each(
        memory.results.list(session, tool),
        lambda r: f"{r.size:12,}  {r.created}  {r.hash[:16]}  {r.tool}  {r.session}".rstrip(),
        as_json=as_json,
    )


@results_command.command("references", epilog="Example: mdmem results references --type url --recent 10")
@type_option
@session_option
@click.option("--tool", metavar="NAME", help="Only what this one printed.")
@click.option("--recent", type=click.IntRange(0), metavar="N", help="Those used last, the last one first.")
@read_command
def results_references(memory: Memory, as_json: bool, **asked: Any) -> None:
    """List what outputs name: how often, type, name."""
    _print_references(memory.results.references(**asked), as_json=as_json)


@results_command.command("lookup", epilog="Example: mdmem results lookup app.py")
@click.argument("target")
@type_option
@session_option
@read_command
def results_lookup(memory: Memory, as_json: bool, **asked: Any) -> int:
    """Find what outputs name so, or a path that ends so; the exit code is 1 when there is nothing."""
    found = memory.results.lookup(**asked)
    _print_references(found, as_json=as_json)
    return 0 if found else 1


@results_command.command("mark", epilog="Example: mdmem results mark src/app.py")
@click.argument("target")
@type_option
@session_option
@read_command
def results_mark(memory: Memory, as_json: bool, **asked: Any) -> None:
    """Count a reference as used now, so that others are swept before it."""
    _print_references(memory.results.mark(**asked), as_json=as_json)


@results_command.command("stats", epilog="Example: mdmem results stats")
@session_option
@read_command
def results_stats(memory: Memory, session: str | None, as_json: bool) -> None:
    """Print in numbers what is kept, and what it names."""
    stats = memory.results.stats(session)
    if as_json:
        print_json(stats)
        return
    print(f"{stats.outputs:7,}  outputs, {stats.bytes:,} bytes")
    print(f"{stats.total:7,}  references, {stats.added:,} of them of the last hour")
    for type_, count in stats.by_type.items():
        print(f"{count:7,}  {type_}")
    if stats.most_used:
        print("\nmost used:")
    _print_references(stats.most_used, as_json=False)


@results_command.command("sweep", epilog="Example: mdmem results sweep --max-age 7")
@click.option("--max-age", type=click.FloatRange(0), metavar="DAYS", help="Else max_days of the config.")
@read_command
def results_sweep(memory: Memory, max_age: float | None, as_json: bool) -> None:
    """Remove outputs and references that nobody has used for so many days."""
    done = memory.results.sweep(max_age)
    if as_json:
        print_json(done)
    else:
        print(f"{done.outputs:,} outputs and {done.references:,} references were removed", file=sys.stderr)


def _print_references(found: Iterable[ResultReference], *, as_json: bool) -> None:
    print_each(found, lambda r: f"{r.count:7,}  {r.type:10}  {r.value}", as_json=as_json)
