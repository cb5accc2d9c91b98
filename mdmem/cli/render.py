"""Print what a command answers, as text for people and as JSON for programs."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import click

from mdmem.diagnostic import Span
from mdmem.errors import MdmemError, Usage, plural, show_name

if TYPE_CHECKING:
    from mdmem import Applied, Document, EditPlan, Memory, Message
    from mdmem.memory.verbs import Listed


T = TypeVar("T")

NAMED_SUFFIXES = (".mdx", ".markdown", ".mdc")
"""The suffixes of Markdown that count only in a vault that names them in its config."""


def is_set(option: Literal["as_json", "dry_run", "verbose", "yes", "no_pager"]) -> bool:
    """Tell whether the command line has an option that many commands have."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(option))


class Terminal(io.TextIOWrapper):
    """A standard stream that is a terminal: it shows what is printed, and obeys none of it.

    Memories and their names may be a stranger's, and a terminal does what control characters say.
    """

    exact = False
    """Whether everything goes out as it is."""
    held: ClassVar[list[str] | None] = None
    """What was printed to any of these streams while it waits for the pager."""

    def write(self, text: str, /) -> int:
        """Write a text, and make visible what cannot be seen."""
        return self.write_own(self.make_visible(text))

    def make_visible(self, text: str) -> str:
        """Make visible what cannot be seen, and what a terminal would obey."""
        if self.exact:
            return text
        from mdmem import visible

        # A carriage return by itself lets what follows cover what stands before it.
        return visible(text.replace("\r\n", "\n").replace("\r", "<U+000D>"))

    def write_own(self, text: str) -> int:
        """Write a text of the program's own, which may set colours."""
        if Terminal.held is None:
            return super().write(text)
        Terminal.held.append(text)
        return len(text)


def start_paging() -> None:
    """Hold what is printed from now on for the user's pager."""
    # A terminal of a person has a size; few others have one.
    if isinstance(sys.stdout, Terminal) and not is_set("no_pager") and _is_watched(sys.stdout):
        Terminal.held = Terminal.held or []


def stop_paging(*, is_interrupted: bool = False) -> None:
    """Print what is held in the pager; drop it after an interrupt."""
    text, Terminal.held = "".join(Terminal.held or ()), None
    if is_interrupted or not text or not isinstance(sys.stdout, Terminal):
        return
    drop_relative_path()
    # As git: leave what fits a screen without waiting, let colours pass, leave the text on the screen.
    os.environ.setdefault("LESS", "FRX")
    sys.stdout.exact = True  # what is held was made visible
    click.echo_via_pager(text.removesuffix("\n"), color=True)
    sys.stdout.exact = False


def drop_relative_path() -> None:
    """Drop the folders of PATH that are relative: a program there may be a stranger's."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, folders))


_PROGRESS_AFTER = 0.5  # seconds
_BAR = 20  # characters


def show_progress() -> Callable[[str, int, int], None] | None:
    """Return what shows how far a command is, in a line of a terminal that somebody looks at."""
    # Where the output goes to another program, that one may have the terminal.
    errors = sys.stderr
    if not (isinstance(sys.stdout, Terminal) and isinstance(errors, Terminal) and _is_watched(errors)):
        return None
    begun, shown, bar = time.monotonic(), "", click.progressbar(length=0)

    def show(doing: str, done: int, of: int) -> None:
        nonlocal shown, bar
        if (bar.label, bar.length) != (doing, of) or done < bar.pos:
            bar = click.progressbar(length=of, label=doing, show_pos=True, width=_BAR)
        bar.make_step(done - bar.pos)
        line = bar.format_progress_line() if done < of else ""
        if line != shown and time.monotonic() - begun >= _PROGRESS_AFTER:
            shown = line
            io.TextIOWrapper.write(errors, f"\r{line}\x1b[K")  # past what is held
            errors.flush()

    return show


def _is_watched(stream: Terminal) -> bool:
    """Tell whether a terminal has a size, and can erase a line."""
    return os.environ.get("TERM", "dumb") != "dumb" and bool(os.get_terminal_size(stream.fileno()).lines)


def print_json(value: Any) -> None:
    """Print something as a JSON object in one line; of a list each object, of None nothing."""
    if value is None:
        return
    import json

    from mdmem import as_json

    shape = as_json(value)
    for each in shape if isinstance(shape, list) else [shape]:
        line = json.dumps(_spell_numbers(each), ensure_ascii=False, default=str)
        print(line.translate(_LINE_ENDS))


# What some readers of lines take for the end of one, and JSON does not.
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
_MOST_EXACT = 2**53  # beyond it, programs that read numbers as JavaScript does take one for another


def _spell_numbers(shape: Any) -> Any:
    """Replace by texts the numbers that JSON or its readers do not have."""
    if isinstance(shape, dict):
        return {name: _spell_numbers(each) for name, each in shape.items()}
    if isinstance(shape, list):
        return [_spell_numbers(each) for each in shape]
    if isinstance(shape, float) and not isfinite(shape):
        return str(shape)
    return str(shape) if type(shape) is int and abs(shape) > _MOST_EXACT else shape


def print_found(
    found: T, as_text: Callable[[T], object], nothing: str = "", *, is_asked: bool = False
) -> int:
    """Print what was found, as JSON or by `as_text`, else what there is none of; return the exit code."""
    if is_set("as_json"):
        print_json(found)
    elif found or not nothing:
        as_text(found)
    return say_nothing(nothing, is_asked=is_asked) if nothing and not found else 0


def print_list(found: Iterable[T], line: Callable[[T], object], what: str, *, is_asked: bool = False) -> int:
    """Print what was found, each in a line, else what there is none of; return the exit code."""
    is_empty = True
    for each in found:
        print_found(each, lambda one: print(show_name(str(line(one)))))
        is_empty = False
    return say_nothing(what, is_asked=is_asked) if is_empty else 0


def print_text(name: str, text: str) -> None:
    """Print one text, in JSON under a name."""
    if is_set("as_json"):
        print_json({name: text})
    elif text:
        print(text)


def print_error(error: MdmemError, *, as_json: bool) -> None:
    """Print an error: to people on standard error; with --json as an object on standard output too."""
    if as_json:
        print_json({"error": error})
    print(f"mdmem: {error}", file=sys.stderr)


def print_usage(error: click.ClickException, *, as_json: bool) -> None:
    """Print that a command line is wrong, as `print_error` does, below the command's usage."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    context = getattr(error, "ctx", None)
    if context and not as_json:
        print(context.get_usage(), file=sys.stderr)
    remedy = f"see `{context.command_path} --help`" if context else ""
    print_error(Usage(problem=error.format_message(), remedy=remedy), as_json=as_json)


def print_document(document: Document, span: Span | None = None, *, number: bool = False) -> None:
    """Print a memory, or a stretch of it, exactly as it is; its hash goes to standard error."""
    start, end = span or (0, len(document.text))
    text = document.text[start:end]
    if is_set("as_json"):
        print_json({"path": document.path, "hash": document.hash, "fields": document.fields, "text": text})
        return
    print(f"{document.path}  {document.hash[:SHORT]}", file=sys.stderr, flush=True)
    if number and text:
        lines = document.lines
        numbers = range(lines.number(start), lines.number(end - 1) + 1)
        text = "".join(f"{n:6}\t{lines.content(n)}\n" for n in numbers)
    sys.stdout.write(text)
    sys.stdout.flush()


def print_bytes(data: bytes) -> None:
    """Print bytes exactly as they are; on a terminal as text, with all of it visible."""
    if isinstance(sys.stdout, Terminal):
        sys.stdout.write(data.decode("utf-8", "replace"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def print_remarks(lines: Iterable[str]) -> None:
    """Print on standard error, behind the output, lines about it."""
    sys.stdout.flush()
    for line in lines:
        print(line, file=sys.stderr)


def say_nothing(what: str, *, is_asked: bool) -> int:
    """Say on standard error that there is nothing of a kind, such as `memories`; return the exit code.

    It is 1 where that `is_asked` for by its name or by a condition, and not as a list of everything.
    """
    bound = click.get_current_context().find_root().params
    words = {"user": "of user", "project": "in project", "resource": "of resource"}
    where = "".join(f" {said} {bound[name]}" for name, said in words.items() if bound.get(name))
    print_remarks([f"no {what}{where}"])
    return int(is_asked)


def limit_lines(lines: Sequence[str], most: int, more: str = "more") -> list[str]:
    """Return lines, without --verbose the first of them and how many more there are."""
    if is_set("verbose") or len(lines) <= most:
        return [*lines]
    return [*lines[:most], f"and {len(lines) - most:,} {more} (-v names them)"]


def print_some(lines: Sequence[str], most: int, indent: str) -> None:
    """Print lines as `limit_lines` returns them."""
    for line in limit_lines(lines, most):
        print(f"{indent}{line}")


def print_left_out(messages: int) -> None:
    """Print how many messages were left out, unless all are there."""
    print_remarks([f"{messages:,} messages left out"] if messages else [])


SHORT = 8  # digits of a hash that tell versions apart
MANY = 10
"""More memories than this are counted, not named."""


def print_applied(applied: Applied, *, is_warned: bool = False) -> None:
    """Print what a change did: every file with its new hash; of many, without --verbose, how many.

    It `is_warned` where `print_diff` has said already what its plan warns of.
    """
    if is_set("as_json"):
        print_json(applied)
        return
    plan, is_short = applied.plan, len(applied.files) > MANY and not is_set("verbose")
    merged = f", {len(applied.merged):,} merged with a change made meanwhile" if applied.merged else ""
    if not applied.files:
        print(f"nothing to change{f': {plan.message}' if plan.message else ''}")
    elif is_short and not (len(plan.moves) == 1 and plan.links_rewritten):
        attached = len(plan.attachments)
        memories = [plural(_count_changed(plan), "memory")] if plan.changes else []
        moved = [plural(attached, "attachment")] if attached else []
        print(f"changed {', and '.join(memories + moved)}{merged}{_count_followed(plan)} (-v names each)")
    else:
        for old, new in plan.moves.items():
            print(f"moved {old} → {new}{_count_followed(plan) if len(plan.moves) == 1 else ''}")
        if len(plan.moves) > 1 and plan.links_rewritten:
            print(_count_followed(plan).removeprefix(", "))
        named = {*plan.moves, *plan.moves.values()}
        others = [file for file in applied.files if file.path not in named]
        if is_short:
            print(f"changed {plural(len(others), 'memory')}{merged} (-v names each)")
        for file in () if is_short else others:
            merged = "  (merged with a change made meanwhile)" if file.path in applied.merged else ""
            print(f"{file.did} {file.path}  {(file.after or '')[:SHORT]}{merged}".rstrip())
    if not is_warned:
        _print_warnings(plan)


def _count_changed(plan: EditPlan) -> int:
    """Count the memories that change, each once: taking back a move makes one file and deletes the other."""
    made = sum(each.before is None for each in plan.changes)
    gone = sum(each.delete for each in plan.changes)
    return len(plan.changes) - (min(made, gone) if plan.undoes or plan.redoes else 0)


def _count_followed(plan: EditPlan) -> str:
    """Say how many links were rewritten, as `, 3 links rewritten`; nothing where none was."""
    count = plan.links_rewritten
    return f", {plural(count, 'link')} rewritten" if count else ""


def _print_warnings(plan: EditPlan) -> None:
    count = len(plan.left_out)
    print_remarks([f"{count:,} left:"] if count > 1 and not plan.outcomes else [])
    print_remarks(f"left out: {line}" for line in (() if plan.outcomes else plan.left_out))
    for row in plan.outcomes:
        print(f"{row.files:9,}  {row.what}")
        print_some(row.paths, 3, " " * 11)
    links = [each for each in plan.warnings if each.code == "ambiguous-link"]
    others = [each for each in plan.warnings if each.code != "ambiguous-link"]  # a secret is always told
    told, always = ([f"{found}\n    {found.hint}" for found in group] for group in (links, others))
    told = limit_lines(told, MANY, "more ambiguous links")
    print_remarks(f"warning: {line}" for line in (*always, *told))
    gone = "it" if len(plan.changes) == 1 else "what is gone"
    dangling = limit_lines([each.describe(gone) for each in plan.dangling], MANY, "more links")
    print_remarks(f"note: {line}" for line in dangling)


def print_passed_over(counts: Mapping[str, int], suffixes: Sequence[str] = (".md", ".json")) -> None:
    """Print how many files of text end in none of the suffixes of memories, and what to do about it."""
    if counts:
        number = sum(counts.values())
        names = ", ".join(f"{n:,} {'in ' * name.endswith('/')}{name}" for name, n in counts.items())
        if any(name.endswith("/") for name in counts):
            names += " (hidden folders are passed over whole)"
        files = f"{plural(number, 'file')} passed over: {names}"
        ends = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
        named = not counts.keys().isdisjoint(NAMED_SUFFIXES)
        takes = f"{', '.join(NAMED_SUFFIXES[:-1])} and {NAMED_SUFFIXES[-1]}"
        config = f": `[files] suffixes` in .mdmem/config.toml takes {takes}" if named else ""
        remedy = f"rename what is to be one{f', or name its suffix{config}' if named else ''}"
        print_remarks([f"note: {files}; a memory ends in {ends}: {remedy}"])


def print_notes(memory: Memory) -> None:
    """Print on standard error, behind the output, the remarks of the vault and the index."""
    print_remarks(f"note: {remark}" for remark in memory.service.remarks)


def print_diff(plan: EditPlan) -> None:
    """Print what a plan would change."""
    if is_set("as_json"):
        print_json(plan)
        return
    print_hunks(plan.diff())
    _print_warnings(plan)


def print_hunks(diff: str) -> None:
    """Print a unified diff."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in io.StringIO(diff, newline="\n"):
        print_coloured(line, colours.get(line[:1]))


def has_colours() -> bool:
    """Tell whether standard output gets colours: a terminal does, unless the environment says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    is_able = isinstance(sys.stdout, Terminal) and os.environ.get("TERM") != "dumb"
    return is_able or os.environ.get("CLICOLOR_FORCE", "0") not in {"", "0"}


def print_coloured(text: str, colour: str | None) -> None:
    """Print a text, or a line with its end, in a colour where standard output gets colours."""
    screen = sys.stdout if isinstance(sys.stdout, Terminal) else None
    text = screen.make_visible(text) if screen else text
    if colour and has_colours():
        line = text.removesuffix("\n")
        text = click.style(line, fg=colour) + text[len(line) :]
    screen.write_own(text) if screen else sys.stdout.write(text)


def print_long(listed: Sequence[Listed]) -> None:
    """Print a listing in columns: bytes, day, type, path, title."""
    sizes = max((len(str(each.size)) for each in listed), default=0)
    types = max((len(_fill_column(each.type)) for each in listed), default=0)
    for each in listed:
        sys.stdout.write(f"{each.size:{sizes}}  {each.date or '-':10}  {_fill_column(each.type):{types}}  ")
        print_coloured(each.path, "magenta")
        print(f"  {' '.join((each.title or '').split())}".rstrip())


def _fill_column(text: str | None) -> str:
    """Return the value of a column, or a dash, so that columns can be told apart."""
    return "_".join((text or "").split()) or "-"


def format_time(mtime_ns: int) -> str:
    """Return a file's time of change as the clock here shows it, `2024-01-31 12:30`."""
    from datetime import datetime

    try:
        return f"{datetime.fromtimestamp(mtime_ns // 1_000_000_000).astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{'-':16}"


def print_tree(listed: Sequence[Listed], within: str) -> None:
    """Print a listing as the tree of its folders below the folder `within`."""
    tree: dict[str, Any] = {}
    for each in listed:
        folder = tree
        for name in each.path.removeprefix(f"{within}/").split("/"):
            folder = folder.setdefault(name, {})
    print(within or ".")
    _print_branches(tree, "")


def _print_branches(folder: dict[str, Any], above: str) -> None:
    for number, (name, inside) in enumerate(folder.items(), 1):
        fork, beside = ("└── ", "    ") if number == len(folder) else ("├── ", "│   ")
        print(f"{above}{fork}{name}{'/' if inside else ''}")
        _print_branches(inside, above + beside)


def print_head(text: str) -> None:
    """Print the heading of a text in one line: keys and roles may hold line ends."""
    print_coloured(f"{show_name(text)}\n", "cyan")


def print_messages(messages: Iterable[Message]) -> None:
    """Print messages, each with its number, role and time."""
    for message in messages:
        print_head(f"#{message.seq}  {message.role}  {message.created_at}")
        print(message.text, end="\n\n")
