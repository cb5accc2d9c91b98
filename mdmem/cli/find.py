"""The commands that read: show, ls, check, doctor, context."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem import as_json
from mdmem.cli import options, render
from mdmem.cli.findings import exit_code, print_findings, strict_option
from mdmem.cli.main import Target, command
from mdmem.errors import MdmemError, MemoryNotFound, plural, show_name
from mdmem.facade.paths import CHECKED, READ_ANY, READ_MESSAGE, parse_message

_NAMED = 5  # of the files that are skipped

if TYPE_CHECKING:
    from mdmem import Memory


@command("show", epilog="Example: mdmem show notes/db.md --section Decision")
@options.path_argument(role=READ_MESSAGE, nargs=-1, required=True, metavar="PATH…")
@options.from_option
@click.option("--section", "heading", metavar="HEADING", help="Print only the section under this heading.")
@click.option("--number", "-n", is_flag=True, help="Number the lines.")
@click.option("--only-hash", is_flag=True, help="Print only the hash.")
@click.option("--as-of", metavar="WHEN", help="Answer as of this day or time.")
@options.json_option
@click.pass_obj
def show_command(target: Target, /, path: tuple[str, ...], owner: str | None, **asked: Any) -> int:
    """Print memories exactly as they are.

    Their hashes go to standard error. --as-of prints them as they were at a day, a time, or a revision of
    git. A PATH such as sessions/t1#7 is a message of a session.
    """
    if any(map(parse_message, path)) and any(value not in {None, False} for value in asked.values()):
        raise click.UsageError("a message of a session is printed whole: show it without options")
    render.start_paging()
    memory, code = options.open_memory(target), 0
    layer = "" if owner is None else memory.shared.name(owner)
    for each in (f"{layer}{name}" for name in path):
        try:
            _show_memory(memory, options.read_paths(memory).resolve(each, READ_MESSAGE), **asked)
        except MdmemError as error:
            if len(path) == 1:
                raise  # so that no pager holds it
            code = error.exit_code
            render.print_error(error, as_json=render.is_set("as_json"))
    render.print_notes(memory)
    return code


def _show_memory(
    memory: Memory, path: str, *, heading: str | None, number: bool, only_hash: bool, as_of: str | None
) -> None:
    if message := parse_message(path):
        render.print_found(memory.sessions.message(*message), lambda found: render.print_messages([found]))
        return
    document = memory.show(path, as_of=as_of)
    if as_of is not None and (state := memory.state_at(path, as_of)).certainty != "exact":
        render.print_remarks([f"{state.path}: {state.certainty}"])
    if only_hash:
        found = {"path": document.path, "hash": document.hash}
        render.print_found(found, lambda found: print(found["hash"]))
        return
    span = None
    if heading is not None:
        from mdmem import find_section

        span = find_section(document, heading).span
    render.print_document(document, span, number=number)


@command("ls", epilog="Example: mdmem ls notes --where 'created>=2026-01' --sort -created")
@options.path_argument("paths", READ_ANY, nargs=-1, metavar="[PATH]…")
@options.from_option
@options.globs_option
@options.type_option()
@options.where_option
@click.option("--sort", default="", metavar="FIELD", help="Sort by a field; -FIELD: the largest first.")
@click.option("--newest", "-t", is_flag=True, help="List what changed last first, with its time.")
@click.option("--long", "-l", is_flag=True, help="Print columns: bytes, day, type, path, title.")
@click.option("--tree", is_flag=True, help="Print a tree of the folders.")
@click.option(*("-1", "-R", "--recursive", "same"), is_flag=True, help="Change nothing: this is the default.")
@options.read_command
def ls_command(
    memory: Memory,
    paths: tuple[str, ...],
    tree: bool,
    newest: bool,
    same: bool,  # noqa: ARG001 - it is so anyway
    **given: Any,
) -> int:
    """List memories, by folder, field or date.

    PATHs are folders and memories; without one, all are listed. A CONDITION is FIELD=VALUE, or with !=, <,
    <=, >, >=, ~ (contains); FIELD alone: it is there; !FIELD: it is not. Fields may be dotted; path, title,
    size, modified, date and tag need no field. The exit code is 1 when paths, globs or conditions leave
    nothing.
    """
    if newest:
        if given["sort"]:
            raise click.UsageError("-t and --sort exclude each other: -t is --sort -modified, with times")
        given["sort"] = "-modified"
    # Of one folder, globs are seen from there.
    within = paths[0].strip("/") if len(paths) == 1 and not paths[0].endswith(memory.suffixes) else ""
    listed = memory.ls(within, paths=() if within else paths, **given)
    memories = [entry for entry in listed if not entry.problem]
    if render.is_set("as_json"):
        render.print_json([*listed])
    elif tree or given["long"]:
        render.print_tree(memories, within) if tree else render.print_long(memories)
    else:
        for entry in memories:
            print(f"{render.format_time(entry.mtime_ns)}  {entry.path}" if newest else entry.path)
    render.print_remarks(f"left out: {entry.path}: {entry.problem}" for entry in listed if entry.problem)
    render.print_remarks(f"note: {sentence}" for sentence in listed.unknown.values())
    is_asked = bool(paths or given["globs"] or given["types"] or given["where"])
    return 0 if memories else render.say_nothing("memories", is_asked=is_asked)


@command("check", epilog="Example: mdmem check notes --no-links --format github")
@options.path_argument("paths", CHECKED, nargs=-1)
@click.option("--links/--no-links", default=True, help="Check links, too.  [default: yes]")
@click.option("--notes", is_flag=True, help="List every finding on a terminal, each note too.")
@options.format_option()
@strict_option
@options.read_command
def check_command(
    memory: Memory, paths: tuple[str | None, ...], links: bool, notes: bool, form: str, strict: bool
) -> int:
    """Report what is wrong with memories.

    Each finding is a line `path:line:column: code message`. It may be about the form of a memory, its schema,
    secrets, links that lead nowhere or to several memories, sources, ids that several memories have, and
    cited code that has changed; without PATHS also about the vault's own schemas and templates, and files
    that a mount hides. Errors come first. A terminal gets 20 findings of a code, and the number of the
    others. A note is nothing wrong: mdmem cannot read something in another tool's file, or nobody has written
    a page yet. Standard error says what to do, and `mdmem help CODE` explains a code. The exit code is 1 when
    a finding is an error. A PATH that is no memory and no folder of the vault is skipped with a note: git
    names such files, and deleted ones; a FOLDER/ that is not there is refused. With github and sarif, paths
    begin at the root of the repository.
    """
    memories = [path for path in paths if path is not None]
    given = click.get_current_context().params["paths"]
    for name, path in zip(given, paths, strict=True):
        if path is None and name.endswith("/") and not os.path.isdir(name):  # git names no folder
            raise MemoryNotFound(path=name, kind="folder")
    if skipped := [name for name, path in zip(given, paths, strict=True) if path is None]:
        files = plural(len(skipped), "file")
        names = show_name(", ".join(skipped[:_NAMED]))
        render.print_remarks([f"note: {files} skipped, as no memory here: {names}"])
    found = memory.check(memories, links=links) if memories or not paths else []
    code = print_findings(found, form, memory.in_workspace, strict=strict, notes=notes)
    if not paths:
        render.print_passed_over(memory.passed_over(), memory.suffixes)
    return code


@command("doctor", epilog="Example: mdmem doctor --fix")
@options.fix_option
@options.dry_run_option
@strict_option
@click.option("--host", default="", metavar="NAME", help="Name a host, such as codex.")
@options.read_command
def doctor_command(memory: Memory, fix: bool, strict: bool, host: str) -> int:
    """Report what is wrong with the vault itself, and repair first what a crash left.

    With --host, each hook in the settings of the host is run as the host does, and the server is started: a
    line says what the agent gets.

    The exit code is 1 when one of the findings is an error, not a warning.
    """
    dry_run = render.is_set("dry_run")
    health = memory.doctor(fix=fix, dry_run=dry_run, host=host)
    if render.is_set("as_json"):
        render.print_json({"applied": fix and not dry_run, **as_json(health)})
        return exit_code(health.findings, strict=strict)
    for name, value in health.facts.items():
        print(f"{'would be ' * (dry_run and name == 'fixed')}{name}: {value}")
    render.print_hunks(health.diff)
    if not health.findings:
        print("clean")
    return print_findings(health.findings, strict=strict)


@command("context", epilog="Example: mdmem context which database --for src/app.py --thread t1 --budget 2000")
@click.argument("words", metavar="[QUERY]...", nargs=-1)
@options.for_option("files", multiple=True)
@options.begun_thread_option
@options.budget_option(4_000, least=1)
@click.option("--estimated", is_flag=True, help="Estimate tokens, even where a tokenizer is installed.")
@options.read_command
def context_command(memory: Memory, words: tuple[str, ...], **given: Any) -> None:
    """Print what an agent should know, as one Markdown text.

    It holds rules, project memory, preferences, pinned notes, the working memory of a thread, and passages
    that fit QUERY. What is too much for the budget is listed at the end, with its tokens. A hook gives this
    text to an agent when a session begins: `mdmem help hook`.
    """
    render.print_found(memory.context(" ".join(words), **given), _print_context)


def _print_context(found: Any) -> None:
    sys.stdout.write(found.text)
    left_out = f", {len(found.left_out):,} left out" if found.left_out else ""
    is_short = any(not left.reason for left in found.left_out)
    render.print_remarks([f"{found.tokens:,} tokens{left_out}{': raise --budget' if is_short else ''}"])


@command("access", hidden=True, epilog="Example: mdmem access users/alice/notes/db.md")
@options.path_argument(required=False)
@options.read_command
def access_command(memory: Memory, path: str | None) -> int:
    """Print who may use a memory beside its owner; without PATH, what other users share with you."""
    if path is None:
        return render.print_list(memory.shared.list(), lambda g: f"{g.level:5}  {g.path}", "shared memories")
    access = memory.access(path)
    users = [f"{level:5}  {user}\n" for user, level in access.users.items()]
    render.print_found(access, lambda _: sys.stdout.write("".join(users)))
    render.print_remarks(filter(None, (access.until and f"until {access.until}", access.problem)))
    return 0
