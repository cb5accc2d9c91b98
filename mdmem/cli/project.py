"""The commands of project memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import group
from mdmem.cli.options import change_command, read_command, read_value, text_argument
from mdmem.cli.render import print_document, print_findings, print_json

if TYPE_CHECKING:
    from mdmem.instructions.found import Found, Resolved
    from mdmem.instructions.sync import Synced
    from mdmem.memory.memory import Memory

_READERS = (
    "codex",
    "claude",
    "cursor",
    "copilot",
    "gemini",
    "agents",
    "copilot-code-review",
    "copilot-cloud-agent",
)
_WRITTEN = ("agents", "claude", "codex", "copilot", "cursor", "gemini")

Verb = Callable[[Any], Any]


@group("project")
def project_command() -> None:
    """Project memory: the AGENTS.md of the namespace; in a repository, the one at its root."""


@project_command.command("load", epilog="Example: mdmem project load")
@read_command
def project_load(memory: Memory, as_json: bool) -> None:
    """Print the project memory exactly as it is; its hash goes to standard error."""
    print_document(memory.project.load(), as_json=as_json)


@project_command.command("summary", epilog="Example: mdmem project summary --max-chars 2000")
@click.option("--max-chars", type=click.IntRange(0), help="At most so many characters.")
@read_command
def project_summary(memory: Memory, max_chars: int | None, as_json: bool) -> None:
    """Print its preferences and decisions."""
    text = memory.project.summary(max_chars)
    if as_json:
        print_json({"summary": text})
    else:
        print(text)


@project_command.command("append", epilog="Example: mdmem project append Decisions 'Use SQLite' --date")
@click.argument("section")
@text_argument("entry")
@click.option("--date", is_flag=True, help="Write today's date before it.")
@change_command
def project_append(section: str, entry: str, date: bool) -> Verb:
    """Add a bullet to a section, which is made if it is not there."""
    return lambda m: m.project.append(section, entry, date=date)


@project_command.command("step", epilog="Example: mdmem project step deploy done 'on Friday'")
@click.argument("id_", metavar="ID")
@click.argument("status")
@click.argument("note", default="")
@click.option("--section", default="Workflow", show_default=True, help="Where it stands.")
@change_command
def project_step(id_: str, status: str, note: str, section: str) -> Verb:
    """Say how a step of the workflow stands."""
    return lambda m: m.project.step(id_, status, note, section=section)


@project_command.command("params", epilog="Example: mdmem project params model=large temperature=0.2")
@click.argument("pairs", nargs=-1, required=True, metavar="NAME=VALUE")
@click.option("--section", default="Parameters", show_default=True, help="Where they stand.")
@change_command
def project_params(pairs: tuple[str, ...], section: str) -> Verb:
    """Record parameters. VALUE is read as YAML."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"{pair!r} is not NAME=VALUE")
        values[name] = read_value(value)
    return lambda m: m.project.params(values, section=section)


@project_command.command("resolve", epilog="Example: mdmem project resolve --for src/app.py --tool codex")
@click.option("--for", "for_file", metavar="FILE", required=True, help="A file of the workspace.")
@click.option("--tool", type=click.Choice(_READERS), required=True, help="Who reads.")
@read_command
def project_resolve(memory: Memory, for_file: str, tool: str, as_json: bool) -> None:
    """Print what a coding tool would read for a file; which files that is goes to standard error."""
    resolved = memory.project.resolve(for_file, tool)
    if as_json:
        print_json(resolved.as_dict())
        return
    _print_read(resolved)
    sys.stderr.flush()
    print(resolved.text)


def _print_read(resolved: Resolved) -> None:
    for number, found in enumerate(resolved.files, 1):
        kept = f"{found.bytes_kept:,} of {found.bytes:,} bytes"
        cut = f", cut: {found.limit}" if found.limit else ""
        print(f"{number:3}  {_about(found)}  {kept}{cut}", file=sys.stderr)
    for found in resolved.left_out:
        print(f"  -  {_about(found)}  not read", file=sys.stderr)
    for finding in resolved.findings:
        print(f"  !  {finding}", file=sys.stderr)
    count = f"{len(resolved.files)} files, about {resolved.tokens:,} tokens"
    print(f"{resolved.tool} for {resolved.file}: {count} (as of {resolved.as_of})\n", file=sys.stderr)


def _about(found: Found) -> str:
    return f"{found.path}  [{found.scope}] {found.reason}"


@project_command.command("audit", epilog="Example: mdmem project audit")
@read_command
def project_audit(memory: Memory, as_json: bool) -> None:
    """Compare what coding tools read: what only some see, what is cut or dead, and what it costs."""
    audit = memory.project.audit()
    if as_json:
        print_json(audit.as_dict())
        return
    for cost in audit.costs:
        kept = f"{cost.bytes_kept:,} of {cost.bytes:,} bytes"
        print(f"{cost.tokens:7,} tokens  {cost.tool:20} {cost.files} files, {kept}, for {cost.file}")
    print_findings(audit.findings, "text")


@project_command.command("sync", epilog="Example: mdmem project sync --dry-run")
@click.option(
    "--tool", "tools", multiple=True, type=click.Choice(_WRITTEN), help="Only its files; repeatable."
)
@click.option("--bring-back", is_flag=True, help="First take what somebody wrote there into the vault.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 when something differs.")
@click.option("--dry-run", is_flag=True, help="Print the diff and write nothing.")
@read_command
def project_sync(
    memory: Memory, tools: tuple[str, ...], bring_back: bool, check: bool, dry_run: bool, as_json: bool
) -> int:
    """Write the project memory and the rules into the files of coding tools, inside marked blocks."""
    synced = memory.project.sync(tools, bring_back=bring_back, check=check or dry_run)
    if as_json:
        print_json(synced.as_dict())
    elif dry_run:
        print(synced.diff(), end="")
    _print_synced(synced, is_silent=as_json or dry_run)
    return int(bool(synced.left) and (check or not dry_run))


def _print_synced(synced: Synced, *, is_silent: bool) -> None:
    for one in synced.differences:
        done = "created" if one.before is None else "deleted" if one.after is None else "changed"
        state = done if one.path in synced.written else one.state
        if not is_silent or not one.is_mended:
            to = sys.stderr if is_silent else sys.stdout
            print(f"{state} {one.path}{f': {one.reason}' if one.reason else ''}", file=to)
    if not synced.differences and not is_silent:
        print("nothing to change")
