"""What a command prints, as text for people and as JSON for programs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mdmem import Applied, Document, EditPlan, Memory, Message
    from mdmem.cli.programs import Pager
    from mdmem.diagnostic import Span
    from mdmem.errors import MdmemError
    from mdmem.memory.verbs import Listed


T = TypeVar("T")


class Terminal(io.TextIOWrapper):
    """A standard stream that is a terminal: what is printed is shown, and never obeyed.

    Memories and their names may be a stranger's, and a terminal does what control characters say.
    """

    exact = False
    """Whether everything goes out as it is."""
    pager: ClassVar[Pager | None] = None
    """Takes all that is written to any of these streams, where there is one."""
    status: ClassVar[Status | None] = None
    """What is shown until something is written to any of these streams."""

    def write(self, text: str, /) -> int:
        """Write a text with what cannot be seen made visible."""
        return self.write_own(text if self.exact else _shown(text))

    def write_own(self, text: str) -> int:
        """Write a text of the program's own, which may move the cursor and set colours."""
        if Terminal.status:
            Terminal.status.end()
        return Terminal.pager.write(self, text) if Terminal.pager else self.write_now(text)

    def write_now(self, text: str) -> int:
        """As `write_own`, past the pager."""
        return super().write(text)


class Status:
    """What a command that takes a while says on a terminal until it prints something: one line, then erased.

    It is told what is done, and how much of it; else it says for how long.
    """

    def __init__(self, stream: Terminal) -> None:
        from threading import Event, Lock, Thread

        self._stream = stream
        self._begun = time.monotonic()
        self._told: tuple[str, int, int] | None = None
        self._is_shown = False
        self._is_over = Event()
        self._lock = Lock()
        Thread(target=self._show, name="mdmem-status", daemon=True).start()

    def __call__(self, doing: str, done: int, of: int) -> None:
        """Take note of how far it is."""
        self._told = (doing, done, of)

    def _show(self) -> None:
        shown = ""
        while not self._is_over.wait(_STATUS_EVERY):
            line = self._line(time.monotonic() - self._begun)
            if line == shown:
                continue
            shown = line
            with self._lock, contextlib.suppress(OSError):
                if not self._is_over.is_set():
                    self._is_shown = True
                    self._stream.write_now(f"\r{line}\x1b[K")
                    self._stream.flush()

    def _line(self, seconds: float) -> str:
        """What is to be seen so many seconds after it began."""
        doing, done, of = self._told or ("", 0, 0)
        if done < of and seconds >= _STATUS_SOON:
            return f"{doing} {bar(done / of, 30):30} {100 * done // of:3}%"
        return f"working, {seconds:.0f} s" if seconds >= _STATUS_LATE else ""

    def end(self) -> None:
        """Erase it, for good."""
        with self._lock, contextlib.suppress(OSError):
            Terminal.status = None
            self._is_over.set()
            if self._is_shown:
                self._is_shown = False
                self._stream.write_now("\r\x1b[K")
                self._stream.flush()


_STATUS_EVERY = 0.1  # seconds
_STATUS_SOON, _STATUS_LATE = 0.5, 1.0  # seconds: with something told, without


def show_status() -> Status | None:
    """Begin to say how far the command is, on a terminal that somebody looks at."""
    stream = sys.stderr
    # Where the output goes to another program, that one may have the terminal.
    if not (isinstance(sys.stdout, Terminal) and isinstance(stream, Terminal) and is_watched(stream)):
        return None
    Terminal.status = Terminal.status or Status(stream)
    return Terminal.status


def is_watched(stream: Terminal) -> bool:
    """Whether a terminal has a size, as that of a person has and few others, and can erase a line."""
    return os.environ.get("TERM", "dumb") != "dumb" and bool(os.get_terminal_size(stream.fileno()).lines)


def go_on() -> None:
    """Neither hold anything back for a pager nor say what takes so long: this goes on until it is stopped."""
    if Terminal.status:
        Terminal.status.end()
    if Terminal.pager:
        Terminal.pager.release()


_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int) -> str:
    """A bar that is a share of so many columns; any share but nothing can be seen."""
    if not _can_draw():
        return "#" * max(share > 0, round(share * width))
    eighths = max(share > 0, round(share * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _shown(text: str) -> str:
    from mdmem import visible

    # A carriage return by itself lets what follows cover what stands before it.
    return visible(text.replace("\r\n", "\n").replace("\r", "<U+000D>"))


def print_json(value: Any) -> None:
    """Print something as a JSON object in one line; of a list each object, of None nothing."""
    if value is None:
        return
    from mdmem import as_json

    _print_line(as_json(value))


def _print_line(shape: Any) -> None:
    import json

    if isinstance(shape, list):
        for each in shape:
            _print_line(each)
        return
    line = json.dumps(_exact(shape), ensure_ascii=False, default=str)
    print(line.translate(_LINE_ENDS))


# What some readers of lines take for the end of one, and JSON does not.
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
_MOST_EXACT = 2**53  # beyond it, programs that read numbers as JavaScript does take one for another


def _exact(shape: Any) -> Any:
    """A JSON value in which numbers that JSON or its readers have not are texts."""
    if isinstance(shape, dict):
        return {name: _exact(each) for name, each in shape.items()}
    if isinstance(shape, list):
        return [_exact(each) for each in shape]
    if isinstance(shape, float) and not isfinite(shape):
        return str(shape)
    return str(shape) if type(shape) is int and abs(shape) > _MOST_EXACT else shape


def print_each(found: Iterable[T], line: Callable[[T], object], *, as_json: bool) -> None:
    """Print what was found, each in a line of its own."""
    for each in found:
        if as_json:
            print_json(each)
        else:
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
    document: Document,
    span: Span | None = None,
    *,
    number: bool = False,
    as_json: bool,
) -> None:
    """Print a memory, or a stretch of it, exactly as it is; its hash goes to standard error."""
    start, end = span or (0, len(document.text))
    text = document.text[start:end]
    if as_json:
        found = {"path": document.path, "hash": document.hash, "fields": document.fields, "text": text}
        print_json(found)
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


MANY = 10
"""More memories than this are counted, not named."""


def print_applied(applied: Applied, *, as_json: bool, verbose: bool = False) -> None:
    """Print what a change did: every file with its new hash; of many, unless `verbose`, in numbers."""
    if as_json:
        print_json(applied)
        return
    if not applied.files:
        print(f"nothing to change{f': {applied.plan.message}' if applied.plan.message else ''}")
    elif len(applied.files) > MANY and not verbose:
        print(_counted(applied))
    else:
        for path, verb, digest in _done(applied):
            merged = "  (merged with a change made meanwhile)" if path in applied.merged else ""
            print(f"{verb} {path}  {digest}{merged}".rstrip())
    _print_asides(applied.plan)


def _done(applied: Applied) -> Iterator[tuple[str, str, str]]:
    """What became of each file: its path, a verb, its new hash."""
    for file in applied.files:
        verb = "created" if file.before is None else "deleted" if file.after is None else "changed"
        yield file.path, verb, file.after or ""


def _counted(applied: Applied) -> str:
    """What a change did, in numbers."""
    moves = {change.path: change.move_to for change in applied.plan.changes if change.move_to}
    targets = set(moves.values())
    counts = Counter(
        "moved" if path in targets else verb for path, verb, _ in _done(applied) if path not in moves
    )
    told = ", ".join(f"{verb} {count:,}" for verb, count in sorted(counts.items()))
    merged = f", {len(applied.merged):,} merged with a change made meanwhile" if applied.merged else ""
    return f"{told} {'memory' if counts.total() == 1 else 'memories'}{merged} (-v names each)"


def memories(count: int) -> str:
    """So many memories, in words."""
    return f"{count:,} {'memory' if count == 1 else 'memories'}"


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
        print_json(plan)
        return
    print_hunks(diff)
    _print_asides(plan)


def print_hunks(diff: str) -> None:
    """Print a unified diff."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in io.StringIO(diff, newline="\n"):
        print_coloured(line, colours.get(line[:1]))


def has_colours() -> bool:
    """Whether standard output gets colours: a terminal does, unless the environment says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    is_able = isinstance(sys.stdout, Terminal) and os.environ.get("TERM") != "dumb"
    return is_able or os.environ.get("CLICOLOR_FORCE", "0") not in {"", "0"}


def print_coloured(text: str, colour: str | None) -> None:
    """Print a text, or a line with its end, in a colour where standard output gets colours."""
    screen = sys.stdout if isinstance(sys.stdout, Terminal) else None
    if screen and not screen.exact:
        text = _shown(text)
    if colour and has_colours():
        line = text.removesuffix("\n")
        text = click.style(line, fg=colour) + text[len(line) :]
    screen.write_own(text) if screen else sys.stdout.write(text)


# What a tree is drawn with: at a branch, at the last one, beside the branches of each.
_LINES = ("├── ", "└── ", "│   ", "    ")
_ASCII = ("|-- ", "`-- ", "|   ", "    ")


def print_long(listed: Sequence[Listed]) -> None:
    """Print a listing in columns: bytes, day, type, path, title."""
    sizes = max((len(str(each.size)) for each in listed), default=0)
    types = max((len(_word(each.type)) for each in listed), default=0)
    for each in listed:
        sys.stdout.write(f"{each.size:{sizes}}  {each.date or '-':10}  {_word(each.type):{types}}  ")
        print_coloured(each.path, "magenta")
        print(f"  {' '.join((each.title or '').split())}".rstrip())


def _word(text: str | None) -> str:
    """A value of a column; a dash where there is none, so that the columns can be told apart."""
    return "_".join((text or "").split()) or "-"


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
    fork, last, through, under = _LINES if _can_draw() else _ASCII
    for number, (name, inside) in enumerate(folder.items(), 1):
        is_last = number == len(folder)
        print(f"{above}{last if is_last else fork}{name}{'/' if inside else ''}")
        _print_branches(inside, above + (under if is_last else through))


def _can_draw() -> bool:
    """Whether the user's locale has more than ASCII."""
    import locale

    return locale.getencoding().casefold().replace("-", "") == "utf8"


def print_head(text: str) -> None:
    """Print what stands above a text, in one line: keys and roles may hold line ends."""
    print_coloured(" ".join(text.splitlines()) + "\n", "cyan")


def print_messages(messages: Iterable[Message]) -> None:
    """Print what was said, with the number, the speaker and the time of each message."""
    for message in messages:
        print_head(f"#{message.seq}  {message.role}  {message.created_at}")
        print(message.text, end="\n\n")
