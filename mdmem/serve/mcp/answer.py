"""Calls and answers: what the host has bound, and what a tool gives back, readable and structured.

Answers have a bound. An error is told with the model's next move in terms of the tools.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mdmem import as_json, clipped, estimate
from mdmem.errors import IndexNotReady, MdmemError, PathRefused, Unavailable, Usage, VaultNotFound
from mdmem.facade.paths import PathReader, Role

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory


T = TypeVar("T")

# Hosts warn of answers beyond 10,000 tokens, and a server may be asked for the longer form.
BUDGET = 6_000
AS_JSON = 2  # a list takes about twice the tokens as JSON; the bound holds for both
_CHARACTERS_A_TOKEN = 4
_PATIENCE = 20.0  # seconds that a call waits for the index, where more than _MANY memories are left to read
_MANY = 1_000
_DIGITS = 12  # of a hash: enough to name one content of a vault, a quarter of the tokens of all


class Answer(NamedTuple):
    """The answer of a tool.

    Attributes:
        texts: for a reader, each a block of its own, so that the text of a memory stands alone in one.
        data: the same as a JSON object.
        is_error: whether nothing was done.
    """

    texts: tuple[str, ...]
    data: dict[str, Any]
    is_error: bool = False


def short_hash(digest: str | None) -> str:
    """Shorten a hash for an answer; it can be given back as `base`."""
    return (digest or "")[:_DIGITS]


def fit(items: Iterable[tuple[T, str]], budget: int) -> list[tuple[T, str]]:
    """Return the first items, each with its text, that fit into a budget of tokens; at least one."""
    taken: list[tuple[T, str]] = []
    for item in items:
        budget -= estimate(item[1]) + 1  # what stands between two
        if budget < 0 and taken:
            break
        taken.append(item)
    return taken


def cut_text(text: str, budget: int) -> str:
    """Return the beginning of a text that fits into a budget of tokens; at least one character."""
    most = budget * _CHARACTERS_A_TOKEN
    while most > 1 and estimate(text[:most]) > budget:
        most //= 2
    return text[:most]


def clipped_to(text: str, budget: int) -> str:
    """Return the beginning of a text that fits into a budget of tokens, and how many characters are left."""
    return clipped(text, len(cut_text(text, budget)))


def page_of_lines(
    lines: Iterable[str], count: int, asked: tuple[int, int, int], budget: int, between: str = ""
) -> tuple[dict[str, Any], str]:
    """Take the lines that fit into a budget of tokens; at least one character of the first.

    Args:
        lines: the lines from the first one that is asked for.
        count: how many lines there are from there on.
        asked: the number of that line, how many are wanted (0: as many as fit), and its first column.

    Returns:
        The page as data, and how to go on in words.
    """
    line, limit, column = asked
    taken = [text for _, text in fit(((None, text) for text in islice(lines, limit or None)), budget)]
    cut = 0
    if taken:
        taken[0] = taken[0][column - 1 :]
        piece = cut_text(taken[0], budget) if len(taken) == 1 else taken[0]
        cut = column + len(piece) if piece != taken[0] else 0
        taken[0] = piece
    data: dict[str, Any] = {"line": line, "text": between.join(taken), "left_out": count - len(taken)}
    data["shown"] = len(taken)
    following = line + len(taken)
    if cut:
        data |= {"left_out": data["left_out"] + 1, "next": {"line": following - 1, "column": cut}}
        return data, f"[line {following - 1} is cut: go on with line={following - 1}, column={cut}]"
    if data["left_out"]:
        data["next"] = {"line": following}
        return data, f"[{data['left_out']:,} more lines left out: go on with line={following}]"
    return data, ""


def answer_page(
    data: dict[str, Any],
    blocks: Sequence[str],
    offset: int,
    left_out: int,
    notes: Iterable[str],
    about: str = "",
) -> Answer:
    """Return a page of a list, as JSON and as texts, as an answer that says how to go on."""
    following = offset + len(blocks)
    data["left_out"] = max(0, left_out)
    tail = ""
    if left_out > 0:
        data["next"] = {"offset": following}
        tail = f"[{about}{left_out:,} more left out: go on with offset={following}]"
    notes = list(map(name_tools, notes))
    data |= {"notes": list(map(name_tools, data["notes"]))} if "notes" in data else {}
    return Answer(tuple(filter(None, ("\n".join(blocks) or "nothing found", tail, *notes))), data)


def encodable(value: Any) -> Any:
    """Return a value that UTF-8 can carry: a lone surrogate becomes its escape."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(each) for each in value]
    return value


Tick = Callable[[int, int], None]
"""Reports how many of how many are done, 0 of 0 where that is not known; it raises to end the work."""


def no_tick(_done: int, _total: int) -> None:
    """Report to nobody."""


class RootedReader(PathReader):
    """Reads paths of clients on other machines, for whom `/` is where the memory begins."""

    def resolve(self, text: str, role: Role) -> str:
        """See `PathReader.resolve`."""
        return super().resolve(text.lstrip("/"), role)

    def resolve_name(self, text: str, kind: str) -> str:
        """See `PathReader.resolve_name`."""
        return super().resolve_name(text.lstrip("/"), kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What the host has bound; no argument of a tool leaves it.

    Attributes:
        thread: the only thread that is there, with its session, summary, observations and working memory;
            None for all.
        read_only: whether the tools that change something are left out, and refused.
        budget: about how many tokens an answer may have.
        say: is told warnings and what failed on this machine, where clients are on others and are not.
        notes: what the paths of one call were taken for.
        own: the ids of the changes that this client has made.
    """

    memory: Memory
    thread: str | None = None
    read_only: bool = False
    budget: int = BUDGET
    say: Callable[[str], None] | None = None
    tick: Tick = no_tick
    notes: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.thread is not None and self.memory.thread != self.thread:
            object.__setattr__(self, "memory", self.memory.of_thread(self.thread))

    @property
    def paths(self) -> PathReader:
        """What reads paths, as the command line does in the folder of the namespace."""
        reader = RootedReader if self.say else PathReader
        return reader(self.memory, self.notes.append, self.memory.folder)

    def resolve_thread(self, name: str | None) -> str | None:
        """Return the bound thread, else the one that is named.

        Raises:
            Usage: another one is named.
        """
        if self.thread is not None and name not in {None, "", self.thread}:
            raise Usage(problem=f"the host has bound the thread {self.thread!r}", remedy="name no other one")
        return self.thread or name or None

    def count_uses(self, paths: Iterable[str]) -> None:
        """Count a use of these memories of the scope; a count that cannot be kept is no error."""
        with suppress(MdmemError):
            self.memory.uses.add(path for path in paths if not self.memory.names_shared([path]))

    def sync(self) -> None:
        """Make the index current, and report the progress: what asks the index does so again at no cost.

        Raises:
            IndexNotReady: it takes longer than a client may wait; another process goes on with it.
        """
        began = time.monotonic()

        def report(done: int, of: int) -> None:
            self.tick(done, of)
            if of - done > _MANY and time.monotonic() - began >= _PATIENCE:
                self.memory.service.start_indexing()
                raise IndexNotReady(done=done, of=of)

        self.memory.sync(progress=report)


_MOST = BUDGET  # tokens of a message: the difference of a conflict may be as long as the memory

# The next move where that of the program would be an option of it, or something that no model can do.
_MOVES: Mapping[str, str] = {
    "already-exists": "read it with show and give its hash as base, or add to it with section;"
    " to replace it unread, give overwrite=true",
    "conflict": "read it again with show, make the change to what is there now, and give its hash as base",
    "index-damaged": "nothing is lost: call the tool again; the index is rebuilt",
    "limit-reached": "remove what is not needed any more with rm, then try again",
    "lock-timeout": "call the tool again",
    "pattern-invalid": "to look for the characters themselves, leave regex away",
    "ripgrep-failed": "use search instead, and tell the user that `mdmem doctor` says what is wrong",
    "ripgrep-missing": "use search instead, and tell the user that ripgrep is not installed",
    "ripgrep-too-old": "use search instead, and tell the user that ripgrep is too old",
    "text-ambiguous": "give more of the text around it as old, or say with count how often it stands there"
    " (all: every one)",
    "too-large": "split it into several memories",
}
# What only the user can fix, who has the program.
_OF_THE_USER = (
    *("config-invalid", "extra-missing", "git-failed", "no-repository", "not-utf8", "storage-failed"),
    *("template-failed", "vault-not-found"),
)
# A command of the program in a hint, and the tool that does the same; `{}` is its first argument.
_COMMAND = re.compile(r"`mdmem ([a-z]+(?: --glob)?)(?: ([^`]*))?`")
_TOOLS: Mapping[str, str] = {
    "ls": "ls within={}",
    "ls --glob": "ls globs={}",
    "refs": "ls target={}",
    **{name: f"{name} path={{}}" for name in ("rm", "show", "write")},
    "undo": "undo change={}",
    "redo": "undo with redo=true",
    "set": "write",
    "unset": "replace",
}


_AWAY = "the memory cannot be reached now", "call the tool again later; if it stays so, tell the user"
_NOT_KNOWN = "whether the change was made is not known", "look whether it is there before you make it again"


def describe_error(error: MdmemError, memory: Memory, say: Callable[[str], None] | None = None) -> Answer:
    """Return an error as the answer of a tool; it names no folder of the host.

    Where there is `say`, it is told what the system or the database has said, and the client is not.
    """
    if say and isinstance(error, Unavailable | VaultNotFound):
        say(f"{error.code}: {error.message}")
        texts = _AWAY if error.code != "not-known" else _NOT_KNOWN
        told = dict(zip(("code", "message", "hint"), (error.code, *texts), strict=True))
        return Answer(texts, {"error": told}, is_error=True)
    error = error.for_agent()
    hint = _next_step(error)
    data = {"code": error.code, "message": error.message, "hint": hint, **_error_details(error)}
    if isinstance(error, Unavailable | PathRefused):  # what the system says names folders of the host
        data = {name: _hide_folders(value, memory) for name, value in data.items()}
    data["message"] = clipped_to(data["message"], _MOST)
    return Answer(tuple(filter(None, (data["message"], data["hint"]))), {"error": data}, is_error=True)


def _hide_folders(value: Any, memory: Memory) -> Any:
    for folder in (memory.folder, memory.root, memory.workspace) if isinstance(value, str) else ():
        value = value.replace(f"{folder}/", "").replace(folder, "the memory")
    return value


def _next_step(error: MdmemError) -> str:
    if error.code == "already-exists" and "--" not in error.hint:
        return error.hint  # it is no memory to write that is in the way
    if error.code == "section-not-found":
        return f"{error.hint}; to add a section, call section with where=append and without heading"
    if error.code == "text-ambiguous" and error.values["overlapping"]:
        return error.hint
    if error.code in _OF_THE_USER:
        return f"tell the user: {error.hint}" if error.hint else "tell the user"
    if error.code == "undo-conflict":
        return f"show it and undo it by hand in what is there now; or tell the user: {error.hint}"
    return _MOVES.get(error.code) or name_tools(error.hint)


def name_tools(hint: str) -> str:
    """Return a hint with tools instead of commands; the user is told of a command without a tool."""

    def name_tool(command: re.Match[str]) -> str:
        tool = _TOOLS.get(command[1], f"{command[0]} (tell the user to run it)")
        return tool.format(command[2]) if command[2] or "{}" not in tool else tool.partition(" ")[0]

    return _COMMAND.sub(name_tool, hint.replace(" (-r)", "=true"))


def _error_details(error: MdmemError) -> dict[str, Any]:
    values = error.values
    found: dict[str, Any] = {name: values[name] for name in ("path", "lines") if name in values}
    if error.code == "conflict":
        found["hash"] = short_hash(values["actual"])
    findings = as_json(values.get("findings", ()))
    for finding in findings:
        finding["hint"] = name_tools(finding["hint"])
    return {**found, "findings": findings} if findings else found
