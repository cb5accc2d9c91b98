"""What a command prints, as text for people and as JSON for programs."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import ExitStack

    from mdmem import Applied, Document, EditPlan, Memory, Message
    from mdmem.diagnostic import Diagnostic, Span
    from mdmem.errors import MdmemError


T = TypeVar("T")


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
    from mdmem import visible

    # A carriage return by itself lets what follows cover what stands before it.
    return visible(text.replace("\r\n", "\n").replace("\r", "<U+000D>"))


_GITHUB_LEVELS = {"error": "error", "warning": "warning"}


def print_json(value: Any, *, in_line: bool = False) -> None:
    """Print one JSON value, or in one line one of several."""
    import json

    from mdmem.diagnostic import as_json

    print(json.dumps(as_json(value), ensure_ascii=False, indent=None if in_line else 2, default=str))


def print_each(found: Iterable[T], line: Callable[[T], object], *, as_json: bool) -> None:
    """Print what was found, each in a line of its own."""
    if as_json:
        print_json(found)
        return
    for each in found:
        print(" ".join(str(line(each)).splitlines()))


def print_text(name: str, text: str, *, as_json: bool) -> None:
    """Print one text, in JSON under a name."""
    if as_json:
        print_json({name: text})
    else:
        print(text)


def print_error(error: MdmemError, *, as_json: bool) -> None:
    """Print an error: to people on standard error; with --json as an object on standard output too."""
    if as_json:
        print_json({"error": error})
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


def print_bytes(data: bytes) -> None:
    """Print bytes exactly as they are; on a terminal, as the text that they are, with all of it visible."""
    if isinstance(sys.stdout, Terminal):
        sys.stdout.write(data.decode("utf-8", "replace"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def print_applied(applied: Applied, *, as_json: bool) -> None:
    """Print what a change did: every file with its new hash, and how to take it back."""
    if as_json:
        print_json(applied)
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
    for note in memory.remarks:
        sys.stdout.flush()
        print(f"note: {note}", file=sys.stderr)


def print_diff(diff: str, plan: EditPlan, *, as_json: bool) -> None:
    """Print what a plan would change."""
    if as_json:
        print_json({"plan": plan, "diff": diff, "left_out": plan.left_out, "warnings": plan.warnings})
        return
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in io.StringIO(diff, newline="\n"):
        print_coloured(line, colours.get(line[:1]))
    _print_asides(plan)


def print_coloured(text: str, colour: str | None) -> None:
    """Print a text, or a line with its end, in a colour where standard output is a terminal."""
    if colour and isinstance(sys.stdout, Terminal):
        shown = text if sys.stdout.exact else _shown(text)
        line = shown.removesuffix("\n")
        sys.stdout.write_own(click.style(line, fg=colour) + shown[len(line) :])
    else:
        sys.stdout.write(text)


def print_head(text: str) -> None:
    """Print what stands above a text, in one line: keys and roles may hold line ends."""
    print_coloured(" ".join(text.splitlines()) + "\n", "cyan")


def print_messages(messages: Iterable[Message]) -> None:
    """Print what was said, with the number, the speaker and the time of each message."""
    for message in messages:
        print_head(f"#{message.seq}  {message.role}  {message.created_at}")
        print(message.text, end="\n\n")


def print_findings(findings: Iterable[Diagnostic], form: str) -> int:
    """Print findings as text, JSON or GitHub annotations; the exit code that they ask for."""
    found = list(findings)
    if form == "json":
        print_json(found)
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


def progress_bar(stack: ExitStack, label: str) -> Callable[[int, int], None] | None:
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
