"""What a command prints, as text for people and as JSON for programs."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import ExitStack

    from mdmem.diagnostic import Diagnostic, Span
    from mdmem.errors import MdmemError
    from mdmem.index.grep import Hits
    from mdmem.index.hit import Hit
    from mdmem.index.reference import Backlink, Reference, Stats
    from mdmem.index.search import Results
    from mdmem.index.synced import Progress
    from mdmem.memory.memory import Memory
    from mdmem.text.document import Document
    from mdmem.vault.plan import EditPlan
    from mdmem.vault.transaction import Applied


class Terminal(io.TextIOWrapper):
    """A standard stream that is a terminal: what is printed is shown, and never obeyed.

    Memories and their names may be a stranger's, and a terminal does what control characters say.
    """

    exact = False
    """Whether everything goes out as it is."""

    def write(self, text: str, /) -> int:
        """Write a text with what cannot be seen made visible."""
        return self.write_own(text if self.exact else _shown(text))

    def write_own(self, text: str) -> int:
        """Write a text of the program's own, which may move the cursor and set colours."""
        return super().write(text)


def _shown(text: str) -> str:
    from mdmem.text.tokens import visible

    # A carriage return by itself lets what follows cover what stands before it.
    return visible(text.replace("\r\n", "\n").replace("\r", "<U+000D>"))


_GITHUB_LEVELS = {"error": "error", "warning": "warning"}


def print_json(value: Any) -> None:
    """Print one JSON value."""
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_error(error: MdmemError, *, as_json: bool) -> None:
    """Print an error: to people on standard error; with --json as an object on standard output too."""
    if as_json:
        print_json({"error": error.as_dict()})
    print(f"mdmem: {error}", file=sys.stderr)


def print_usage(error: click.ClickException, *, as_json: bool) -> None:
    """Print that a command line cannot be understood, as `print_error` does, below the command's usage."""
    from mdmem.errors import Usage

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    context = getattr(error, "ctx", None)
    if context and not as_json:
        print(context.get_usage(), file=sys.stderr)
    remedy = f"see `{context.command_path} --help`" if context else ""
    print_error(Usage(problem=error.format_message(), remedy=remedy), as_json=as_json)


def print_document(
    document: Document, span: Span | None = None, *, number: bool = False, as_json: bool
) -> None:
    """Print a memory, or a stretch of it, exactly as it is; its hash goes to standard error."""
    start, end = span or (0, len(document.text))
    text = document.text[start:end]
    if as_json:
        print_json({"path": document.path, "hash": document.hash, "fields": document.fields, "text": text})
        return
    print(f"{document.path}  {document.hash}", file=sys.stderr, flush=True)
    if number and text:
        lines = document.lines
        shown = range(lines.number(start), lines.number(end - 1) + 1)
        text = "".join(f"{n:6}\t{lines.content(n)}\n" for n in shown)
    sys.stdout.write(text)
    sys.stdout.flush()


def print_applied(applied: Applied, *, as_json: bool) -> None:
    """Print what a change did: every file with its new hash, and how to take it back."""
    if as_json:
        print_json(applied.as_dict())
        return
    if not applied.files:
        print(f"nothing to change{f': {applied.plan.message}' if applied.plan.message else ''}")
    for file in applied.files:
        merged = "  (merged with a change made meanwhile)" if file.path in applied.merged else ""
        verb = "created" if file.before is None else "deleted" if file.after is None else "changed"
        print(f"{verb} {file.path}  {file.after or ''}{merged}".rstrip())
    _print_asides(applied.plan)


def _print_asides(plan: EditPlan) -> None:
    """Say on standard error what a plan could not look into, and what was found in it."""
    for line in plan.left_out:
        print(f"left out: {line}", file=sys.stderr)
    for finding in plan.warnings:
        print(f"warning: {finding}\n    {finding.hint}", file=sys.stderr)


def print_notes(memory: Memory) -> None:
    """Say on standard error, behind the output, what had to give in the vault and in the index."""
    used = memory.index.notes if "index" in vars(memory) else []
    for note in dict.fromkeys((*memory.vault.notes, *used)):
        sys.stdout.flush()
        print(f"note: {note}", file=sys.stderr)


def print_diff(diff: str, plan: EditPlan, *, as_json: bool) -> None:
    """Print what a plan would change."""
    if as_json:
        warnings = [finding.as_dict() for finding in plan.warnings]
        print_json(
            {"plan": plan.as_dict(), "diff": diff, "left_out": list(plan.left_out), "warnings": warnings}
        )
        return
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in io.StringIO(diff, newline="\n"):
        _print_coloured(line, colours.get(line[:1]))
    _print_asides(plan)


def _print_coloured(text: str, colour: str | None) -> None:
    """Print a text, or a line with its end, in a colour where standard output is a terminal."""
    if colour and isinstance(sys.stdout, Terminal):
        shown = text if sys.stdout.exact else _shown(text)
        line = shown.removesuffix("\n")
        sys.stdout.write_own(click.style(line, fg=colour) + shown[len(line) :])
    else:
        sys.stdout.write(text)


def print_hits(hits: Hits, *, as_json: bool) -> int:
    """Print hits as they come, as ripgrep does, under their heading and date; how many there were.

    What could not be searched is named on standard error, behind them.
    """
    count = 0
    above: tuple[str, tuple[str, ...]] = ("", ())
    for hit in hits:
        count += 1
        if as_json:
            import json

            # One object a line: the first can be read before the last is found.
            print(json.dumps(hit.as_dict(), ensure_ascii=False))
            continue
        here = (hit.path, hit.heading)
        if here != above:
            title = f"  # {' > '.join(hit.heading)}" if hit.heading else ""
            sys.stdout.write("" if count == 1 else "\n")
            _print_coloured(hit.path, "magenta")
            print(f"  {hit.date}{title}")
        above = here
        _print_lines(hit)
        if hit.left_out:
            print(
                f"{hit.left_out} more left out: raise --limit, or narrow with --in or --glob", file=sys.stderr
            )
    for finding in hits.findings:
        print(f"{finding.path or '.'}: {finding.message}", file=sys.stderr)
    return count


def _print_lines(hit: Hit) -> None:
    for number, line in enumerate(hit.before, hit.line - len(hit.before)):
        print(f"{number}-{line}")
    _print_coloured(str(hit.line), "green")
    print(f":{hit.text}")
    for number, line in enumerate(hit.after, hit.line + 1):
        print(f"{number}-{line}")


def print_results(results: Results, *, as_json: bool) -> None:
    """Print ranked hits, the best first, each with its best lines in context and how its score was made.

    What was left out, and what of the query was not used, is said on standard error.
    """
    if as_json:
        print_json(results.as_dict())
        return
    for number, hit in enumerate(results.hits):
        title = f"  [{' > '.join(hit.heading)}]" if hit.heading else ""
        sys.stdout.write("\n" if number else "")
        _print_coloured(f"{hit.path}:{hit.line}", "magenta")
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


def print_references(found: Iterable[Reference], *, as_json: bool) -> None:
    """Print references, one line for each place."""
    if as_json:
        print_json([reference.as_dict() for reference in found])
        return
    for reference in found:
        for place in reference.places:
            line = f"{reference.type:10} {reference.target}  {place.state}  {place.path}:{place.line}"
            print(f"{line}  {place.detail}".rstrip())


def print_stats(stats: Stats, *, as_json: bool) -> None:
    """Print references in numbers."""
    if as_json:
        print_json(stats.as_dict())
        return
    print(f"{stats.total:,} references in {stats.places:,} places")
    for title, counts in (("by type", stats.by_type), ("by state", stats.by_state)):
        print(f"{title}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
    for target, count in stats.most_cited:
        print(f"{count:5}  {target}")


def print_backlinks(found: Iterable[Backlink], *, as_json: bool) -> None:
    """Print links to a memory, as `path:line` with the anchor that they name and their text."""
    if as_json:
        print_json([backlink._asdict() for backlink in found])
        return
    for path, line, _, anchor, alias, ambiguous in found:
        named = f"  #{anchor}" if anchor else ""
        told = "  (ambiguous: it may mean another one)" if ambiguous else ""
        print(f"{path}:{line}{named}{f'  {alias}' if alias else ''}{told}")


def print_findings(findings: Iterable[Diagnostic], form: str) -> int:
    """Print findings as text, JSON or GitHub annotations; the exit code that they ask for."""
    found = list(findings)
    if form == "json":
        print_json([finding.as_dict() for finding in found])
    for finding in found if form != "json" else ():
        if form == "github":
            print(_annotation(finding))
            continue
        print(finding if finding.severity == "error" else f"{finding} (warning)")
        if finding.hint:
            print(f"    {finding.hint}")
    return int(any(finding.severity == "error" for finding in found))


def _annotation(finding: Diagnostic) -> str:
    """A workflow command of GitHub Actions, which shows the finding at its line."""
    line, column = finding.position
    path = _escaped(finding.path).replace(",", "%2C").replace(":", "%3A")
    level = _GITHUB_LEVELS[finding.severity]
    text = _escaped(f"{finding.message}{f' ({finding.hint})' if finding.hint else ''}")
    return f"::{level} file={path},line={line},col={column},title={finding.code}::{text}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def progress_bar(stack: ExitStack, label: str) -> Progress | None:
    """A bar on standard error, which begins with the first progress and ends with `stack`; on a terminal."""
    if not sys.stderr.isatty():
        return None
    bar: Any = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            # It moves the cursor, and nothing in it is of a memory.
            bar = stack.enter_context(click.progressbar(length=total, label=label, file=sys.__stderr__))
        bar.update(done - bar.pos)

    return show
