"""The commands that read: show, ls, grep, check, doctor, search, context."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.main import command
from mdmem.cli.options import format_option, path_argument, read_command
from mdmem.cli.render import print_coloured, print_document, print_findings, print_json

if TYPE_CHECKING:
    from mdmem import Hit, Memory


@command("show", epilog="Example: mdmem show notes/db.md --section Decision")
@path_argument()
@click.option("--section", "heading", metavar="HEADING", help="Only this section.")
@click.option("--number", "-n", is_flag=True, help="Number the lines.")
@click.option("--hash", "only_hash", is_flag=True, help="Print the hash alone.")
@read_command
def show_command(
    memory: Memory, path: str, heading: str | None, number: bool, only_hash: bool, as_json: bool
) -> None:
    """Print a memory exactly as it is; its hash goes to standard error."""
    document = memory.show(path)
    if only_hash:
        print(document.hash)
        return
    span = None
    if heading is not None:
        from mdmem import find_section

        span = find_section(document, heading).span
    print_document(document, span, number=number, as_json=as_json)


@command("ls", epilog="Example: mdmem ls notes --where 'created>=2026-01' --sort -created")
@click.argument("within", default="", metavar="[FOLDER]")
@click.option("--glob", "globs", multiple=True, help="Only memories that fit.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Only memories of which this is true.")
@click.option("--sort", default="", metavar="FIELD", help="Sort by a field; -FIELD: the largest first.")
@read_command
def ls_command(memory: Memory, as_json: bool, **options: Any) -> None:
    """List the memories below a folder.

    A CONDITION is FIELD=VALUE, or with !=, <, <=, >, >=, ~ (contains); FIELD alone: it is there; !FIELD: it
    is not. Fields may be dotted; path, title, size, date and tag need no field.
    """
    listed = memory.ls(**options)
    if as_json:
        print_json(listed)
        return
    for entry in listed:
        if entry.problem:
            print(f"left out: {entry.path}: {entry.problem}", file=sys.stderr)
        else:
            print(entry.path)


@command("grep", epilog="Example: mdmem grep --in notes --regex 'SQL(ite)?' -C 1 --limit 20")
@click.argument("pattern")
@click.option("--in", "within", default="", metavar="NAMESPACE", help="Only below this folder.")
@click.option("--glob", "globs", multiple=True, help="Only memories that fit.")
@click.option(
    "--regex", is_flag=True, help="PATTERN is a regular expression; otherwise it is looked for as it is."
)
@click.option("--case", type=click.Choice(["ignore", "smart", "exact"]), default="ignore", show_default=True)
@click.option("--context", "-C", type=click.IntRange(0), default=0, help="Lines around each hit.")
@click.option("--limit", type=click.IntRange(1), help="At most so many hits.")
@read_command
def grep_command(memory: Memory, as_json: bool, **options: Any) -> int:
    """Find the lines that match, each with its heading and date, in the order of path and line.

    What could not be searched is named on standard error, behind them.
    """
    hits = memory.grep(**options)
    above = None
    for hit in hits:
        if as_json:
            # One object a line: the first can be read before the last is found.
            print_json(hit, in_line=True)
            above = hit
            continue
        if above is None or (hit.path, hit.heading) != (above.path, above.heading):
            title = f"  # {' > '.join(hit.heading)}" if hit.heading else ""
            sys.stdout.write("\n" if above else "")
            print_coloured(hit.path, "magenta")
            print(f"  {hit.date}{title}")
        above = hit
        _print_lines(hit)
        if hit.left_out:
            remedy = "raise --limit, or narrow with --in or --glob"
            print(f"{hit.left_out} more left out: {remedy}", file=sys.stderr)
    for finding in hits.findings:
        print(f"{finding.path or '.'}: {finding.message}", file=sys.stderr)
    return 0 if above else 1


def _print_lines(hit: Hit) -> None:
    for number, line in enumerate(hit.before, hit.line - len(hit.before)):
        print(f"{number}-{line}")
    print_coloured(str(hit.line), "green")
    print(f":{hit.text}")
    for number, line in enumerate(hit.after, hit.line + 1):
        print(f"{number}-{line}")


@command("check", epilog="Example: mdmem check notes --format github")
@click.argument("paths", nargs=-1)
@format_option
@read_command
def check_command(memory: Memory, paths: tuple[str, ...], form: str, as_json: bool) -> int:
    """Report everything that is wrong with memories, as `path:line:column: code message`."""
    return print_findings(memory.check(paths), "json" if as_json else form)


@command("doctor", epilog="Example: mdmem doctor --fix")
@click.option("--fix", is_flag=True, help="First put right what is safe: links to what was moved, leftovers.")
@read_command
def doctor_command(memory: Memory, fix: bool, as_json: bool) -> int:
    """Report what is wrong with the vault itself; what a crash left is put right first."""
    health = memory.doctor(fix=fix)
    if as_json:
        print_json(health)
        return int(any(finding.severity == "error" for finding in health.findings))
    for name, value in health.facts.items():
        print(f"{name}: {value}")
    code = print_findings(health.findings, "text")
    count = len(health.findings)
    print(f"{count} finding{'' if count == 1 else 's'}" if count else "clean")
    return code


@command("search", epilog="Example: mdmem search which database --in notes --limit 5")
@click.argument("words", nargs=-1, required=True)
@click.option("--in", "within", default="", metavar="NAMESPACE", help="Only below this folder.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only memories of one of these types.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only memories with all of these tags.")
@click.option("--since", default="", metavar="DATE", help="Only memories from this day, month or year on.")
@click.option("--before", default="", metavar="DATE", help="Only memories before it.")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="At most so many hits.")
@click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="Whole passages, of so many tokens.")
@click.option("--context", "-C", type=click.IntRange(0), help="Lines around each hit; else its passage.")
@click.option("--passages", is_flag=True, help="Rank passages, not memories: one may have several hits.")
@click.option("--explain", is_flag=True, help="Say how each score was made.")
@read_command
def search_command(
    memory: Memory, words: tuple[str, ...], passages: bool, as_json: bool, **options: Any
) -> int:
    """Find the memories that fit best, each with its best lines in context.

    Any of WORDS may be there; "some words" have to be, in this order. Also begin*, tag:, type:, path:,
    after:, before:, and -without: put -- before words that begin with a dash, or all in quotes.

    With a user and a project, what is wider is found as well: it is named user:…, project:… or shared:…, as
    `show` takes it.
    """
    from mdmem import SearchRequest

    results = memory.search(
        SearchRequest(query=" ".join(words), each="passage" if passages else "memory", **options)
    )
    code = 0 if results.hits else 1
    if as_json:
        print_json(results)
        return code
    for number, hit in enumerate(results.hits):
        title = f"  [{' > '.join(hit.heading)}]" if hit.heading else ""
        sys.stdout.write("\n" if number else "")
        print_coloured(f"{hit.path}:{hit.line}", "magenta")
        print(f"{title}  {hit.date}")
        _print_lines(hit)
        for part in results.explanations[number] if results.explanations else ():
            print(f"    {part.value:8.3f}  {part.of} {part.word}".rstrip())
    sys.stdout.flush()
    if results.left_out:
        tokens = results.left_out_tokens
        beyond = f", about {tokens:,} tokens of it beyond the budget" if tokens else ""
        remedy = "raise --budget" if tokens else "raise --limit, or narrow with --in, --type or --tag"
        print(f"{results.left_out:,} more fit{beyond}: {remedy}", file=sys.stderr)
    for note in results.notes:
        print(f"note: {note}", file=sys.stderr)
    return code


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
