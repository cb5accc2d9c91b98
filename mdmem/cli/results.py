"""The commands of results: outputs of tools, in short and whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.main import group

if TYPE_CHECKING:
    from mdmem import Memory


def tool_option(*, required: bool = False) -> Callable[[options.F], options.F]:
    """Declare the option --tool: what printed an output."""
    about = "Name the tool that printed it: Bash, Read, Grep, WebFetch …"
    return click.option("--tool", metavar="NAME", required=required, help=about)


@group("results")
def results_command() -> None:
    """Keep outputs of tools: print each in short, and whole on demand."""


@results_command.command("compress", epilog="Example: mdmem results compress --tool Bash build.log")
@click.argument("output", type=click.File("rb"), default="-")
@tool_option(required=True)
@options.session_option
@options.read_command
def results_compress(memory: Memory, output: Any, tool: str, session: str | None) -> None:
    """Store the output of a tool, from a file or standard input, and print its short form.

    It keeps the beginning, the end and the lines around errors; for Read and view, definitions instead of
    errors; for Grep and Glob, a count of hits by file. Standard error says how to get the rest, and what was
    left out.
    """
    done = memory.results.compress(tool, output.read(), session)
    render.print_found(done, lambda _: print(done.summary))
    if not render.is_set("as_json"):
        render.print_remarks((done.rest, *done.warnings))


@results_command.command("recover", epilog="Example: mdmem results recover a376dc05a0db --lines 10-20")
@click.argument("hash_", metavar="HASH")
@click.option("--lines", metavar="A-B", help="Print only the lines A to B; the first is 1.")
@options.session_option
@options.read_command
def results_recover(memory: Memory, hash_: str, lines: str | None, session: str | None) -> None:
    """Print a whole output, byte for byte, by its hash or the first 8 digits of it."""
    data = memory.results.recover(hash_, lines, session)
    if render.is_set("as_json"):
        from base64 import b64encode

        render.print_json({"base64": b64encode(data).decode()})
    else:
        render.print_bytes(data)


@results_command.command("list", epilog="Example: mdmem results list --tool Bash")
@options.session_option
@tool_option()
@options.read_command
def results_list(memory: Memory, session: str | None, tool: str | None) -> int:
    """List the stored outputs, the oldest first: bytes, time, hash, tool, session."""
    return render.print_list(
        memory.results.list(session, tool),
        lambda r: f"{r.size:12,}  {r.created}  {r.hash[: render.SHORT]}  {r.tool}  {r.session}".rstrip(),
        "outputs",
        is_asked=bool(session or tool),
    )


@results_command.command("references", epilog="Example: mdmem results references --limit 10")
@options.kind_option("type")
@options.session_option
@tool_option()
@options.limit_option()
@options.read_command
def results_references(memory: Memory, **given: Any) -> int:
    """List what outputs name: how often, kind, name; with --limit those that were named last.

    KIND is file_path, url, class, function, variable or line_range.
    """
    found = memory.results.references(**given)
    is_asked = any(given[name] for name in ("type", "session", "tool"))
    return render.print_list(
        found, lambda r: f"{r.count:7,}  {r.type:10}  {r.value}", "references", is_asked=is_asked
    )


@results_command.command("sweep", hidden=True, epilog="Example: mdmem results sweep --max-age 7")
@click.option(
    "--max-age",
    type=click.FloatRange(0),
    metavar="DAYS",
    help="Keep what was used within N days (default: max_days of the config).",
)
@options.dry_run_option
@options.read_command
def results_sweep(memory: Memory, max_age: float | None) -> None:
    """Remove outputs and references that nobody has used for some days."""
    dry_run = render.is_set("dry_run")
    done = memory.results.sweep(max_age, dry_run=dry_run)
    would = "would be" if dry_run else "were"
    removed = f"{done.outputs:,} outputs and {done.references:,} references {would} removed"
    if render.is_set("as_json"):
        render.print_json({"applied": not dry_run, **mdmem.as_json(done)})
    else:
        render.print_remarks([removed])
