"""The commands that read: show, ls, check, doctor, context."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.findings import exit_code, print_findings, strict_option
from mdmem.cli.main import command
from mdmem.cli.options import format_option, path_argument, read_command, verbose_option
from mdmem.cli.paths import CHECKED, READ_ANY, SUFFIXES, OutsideFile
from mdmem.cli.render import print_document, print_json, print_long, print_tree

if TYPE_CHECKING:
    from mdmem import Memory


@command("show", epilog="Example: mdmem show notes/db.md --heading Decision")
@path_argument(nargs=-1, required=True, metavar="PATH…")
@click.option("--heading", metavar="HEADING", help="Only the section under this heading.")
@click.option("--number", "-n", is_flag=True, help="Number the lines.")
@click.option("--hash", "only_hash", is_flag=True, help="Print the hash alone.")
@read_command
def show_command(
    memory: Memory, path: tuple[str, ...], heading: str | None, number: bool, only_hash: bool, as_json: bool
) -> None:
    """Print memories exactly as they are, one after the other; their hashes go to standard error."""
    for document in [memory.show(each) for each in path]:
        if only_hash:
            print(document.hash)
            continue
        span = None
        if heading is not None:
            from mdmem import find_section

            span = find_section(document, heading).span
        print_document(document, span, number=number, as_json=as_json)


# What ls has, and `mdmem ls` does otherwise.
_OTHERWISE = {
    "-a -A --all": "hidden files are not memories, and all others are listed",
    "-d --directory": "--tree shows the folders",
    "-r --reverse": "use --sort -path",
    "-S": "use --sort -size",
    "-t": "use --sort -date",
    "-n --limit": "pipe the lines through `head`",
}


@command(
    "ls", otherwise=_OTHERWISE, epilog="Example: mdmem ls notes --where 'created>=2026-01' --sort -created"
)
@path_argument("paths", READ_ANY, nargs=-1, metavar="[PATH]…")
@click.option("--glob", "-g", "globs", multiple=True, help="Only memories that fit.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Only memories of which this is true.")
@click.option("--sort", default="", metavar="FIELD", help="Sort by a field; -FIELD: the largest first.")
@click.option("--long", "-l", is_flag=True, help="Print columns: bytes, day, type, path, title.")
@click.option("--tree", is_flag=True, help="Print a tree of the folders.")
@click.option(
    *("-1", "-R", "--recursive", "same"), is_flag=True, help="Accepted without effect: this is the default."
)
@read_command
def ls_command(
    memory: Memory,
    paths: tuple[str, ...],
    tree: bool,
    same: bool,  # noqa: ARG001 - it is so anyway
    as_json: bool,
    **options: Any,
) -> None:
    """List memories: all, or those that PATHs name, which are folders and memories.

    A CONDITION is FIELD=VALUE, or with !=, <, <=, >, >=, ~ (contains); FIELD alone: it is there; !FIELD: it
    is not. Fields may be dotted; path, title, size, date and tag need no field.
    """
    # Of one folder, globs are seen from there.
    within = paths[0].strip("/") if len(paths) == 1 and not paths[0].endswith(SUFFIXES) else ""
    listed = memory.ls(within, paths=() if within else paths, **options)
    if as_json:
        print_json(listed)
        return
    memories = [entry for entry in listed if not entry.problem]
    if tree or options["long"]:
        print_tree(memories, within) if tree else print_long(memories)
    else:
        for entry in memories:
            print(entry.path)
    sys.stdout.flush()
    for entry in listed:
        if entry.problem:
            print(f"left out: {entry.path}: {entry.problem}", file=sys.stderr)


@command("check", epilog="Example: mdmem check notes --no-links --format github")
@path_argument("paths", CHECKED, nargs=-1)
@click.option("--links/--no-links", default=True, help="Whether to look at links, too.  [default: yes]")
@format_option
@verbose_option
@strict_option
@read_command
def check_command(
    memory: Memory, paths: tuple[str, ...], links: bool, form: str, as_json: bool, **how: bool
) -> int:
    """Report everything that is wrong with memories, as `path:line:column: code message`.

    That is their form, their schema, secrets, links that lead nowhere or to several memories, and what they
    say they came from. On a terminal findings are in groups; in a pipe each is one line, and what to do about
    them stands on standard error. The exit code is 1 when one of them is an error, not a warning. Files that
    are not memories of the vault, which git and its hooks may name, are skipped. With github and sarif,
    paths begin at the root of the repository.
    """
    memories = [path for path in paths if not isinstance(path, OutsideFile)]
    if len(memories) < len(paths):
        print(f"note: {_number(len(paths) - len(memories))} skipped: not in the vault", file=sys.stderr)
    found = memory.check(memories, links=links) if memories or not paths else []
    return print_findings(found, "json" if as_json else form, memory.in_workspace, **how)


def _number(files: int) -> str:
    return f"{files:,} file{'' if files == 1 else 's'}"


@command("doctor", epilog="Example: mdmem doctor --fix")
@click.option("--fix", is_flag=True, help="First put right what is safe: links to what was moved, leftovers.")
@verbose_option
@strict_option
@read_command
def doctor_command(memory: Memory, fix: bool, as_json: bool, **how: bool) -> int:
    """Report what is wrong with the vault itself; what a crash left is put right first.

    The exit code is 1 when one of the findings is an error, not a warning.
    """
    health = memory.doctor(fix=fix)
    if as_json:
        print_json(health)
        return exit_code(health.findings, strict=how["strict"])
    for name, value in health.facts.items():
        print(f"{name}: {value}")
    if not health.findings:
        print("clean")
    return print_findings(health.findings, "text", **how)


@command("context", epilog="Example: mdmem context which database --for src/app.py --thread t1 --budget 2000")
@click.argument("words", metavar="[QUERY]...", nargs=-1)
@click.option(
    "--for", "files", multiple=True, metavar="FILE", help="Only rules that apply to this file; repeatable."
)
@click.option("--thread", metavar="ID", help="Also the working memory of this thread.")
@click.option(
    "--budget", type=click.IntRange(1), default=4000, show_default=True, help="At most so many tokens."
)
@click.option("--estimated", is_flag=True, help="Estimate tokens, even where a tokenizer is installed.")
@read_command
def context_command(memory: Memory, words: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Print what an agent should know, as one Markdown text.

    Rules, project memory, preferences, pinned notes, the working memory of a thread, and passages that fit
    QUERY. What did not fit is listed at the end of the text, with its cost.
    """
    found = memory.context(" ".join(words), **options)
    if as_json:
        print_json(found)
        return
    sys.stdout.write(found.text)
    sys.stdout.flush()
    left_out = f", {len(found.left_out):,} left out: raise --budget" if found.left_out else ""
    print(f"{found.tokens:,} tokens{left_out}", file=sys.stderr)
