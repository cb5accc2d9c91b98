"""Runs of tools in a conversation: what became of files, and with which line a run failed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from mdmem.conversations.log.message import Message
from mdmem.conversations.log.parts import ToolCall
from mdmem.conversations.observe.prose import CODE, LONGEST, TABLE, without_home
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import in_line
from mdmem.document.tree import encoded

STOPPED = ("The user doesn't want", "[Request interrupted")
"""How the answer of a tool begins that a person stopped."""
_CREATED, _CHANGED, _DELETED, _READ = "created", "changed", "deleted", "read"
_MOST_FILES = 12  # of a kind that are named
_LOOKED_AT = 60  # lines of an output, from either end, in which an error is looked for
_WIDTH = 70  # characters of a line from which on its end may stand in the next one
# What says why something failed, before what says so in other words or where, before what counts seconds.
_WHY = regex(
    r"^(?:\S+:(?:\d+:)*\s+|\S+\(\d+,\d+\): |\[[^\]]*\]\s*|[\d.]+\s)*"
    r"(?:[A-Z]\w*(?:Error|Exception)|[Ee]rror(?: TS\d+|\[\w+\])?|fatal|panic): *\S|\bunknown field\b"
)
_SIGN = regex(
    r"(?i)\berror\b|\bfail|\bnot found\b|no such|denied|undefined|\bcannot\b|\bis not |[\u274c\xd7]"
    r"|^[\w./-]+\.\w+:\d+:.*\s\S"
)
_TIMED = regex(r"\([\d.]+m?s\)$|^FAIL\b")
_NO_MESSAGE = regex(
    r"(?i)^(?:.*[:?]|exit code \d+|error: ?|</?\w+>|\W*[A-Za-z]*\W*|=+ \w+|\[request .*|[+-](?!-- [A-Z]).*"
    r"|\[?process exited with code \d+\]?|[\w.]+\(.*\)"
    r"|(?:echo|printf?|console|throw|raise|return|if|func|def|log|diff)\b.*)$"
)
_FAILED = regex(
    r"(?s)<tool_use_error>|Error\b|Exit code [1-9]|EISDIR|ENOENT|.{0,200}\bexited with code [1-9]"
    r"|.*\n\[?Process exited with code [1-9]\d*\]?\s*\Z"
)
_FRAME = regex(r"(?s)</?tool_use_error>|\A.{0,500}?\nOutput:(?:\n|\Z)")  # what tools say of a run
_PATHS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "relative_path")
_WRITES = regex(r"(?i)(write|create)|(delete|remove)|edit|replace|patch|insert|rename|move|append")
_SEGMENT = regex(r"&&|\|\||[;\n|]")
_WORD = r"[\"']?([^\s\"'&|;<>]+)[\"']?"
_SHELL = regex(rf"(?:git )?(?:(cd|rm|mv|cp) (?:-\S+ )*{_WORD}((?: [^&|;<>]+)?)|(?:.*\s)?>>?\s*{_WORD}.*)\Z")
_PATCHED = regex(r"\*\*\* (Add|Update|Delete) File: ([^\n\\\"]+)")
# What is done with the files that are named, and with the last of them.
_DONE = {
    "rm": (_DELETED, _DELETED),
    "mv": (_DELETED, _CREATED),
    "cp": (_READ, _CREATED),
    "Add": (_CREATED, _CREATED),
    "Update": (_CHANGED, _CHANGED),
    "Delete": (_DELETED, _DELETED),
}
_NO_FILE = regex(r"[*?{}$()<>\s]|^[\d.~/-]*$|^/(?:dev|tmp|proc)/")


class ToolRun(NamedTuple):
    """A run of a tool: its call, the shell command or the file in it, its answer, and why it failed.

    Arguments that are no JSON object stand in `input`.
    """

    seq: int
    name: str
    arguments: Mapping[str, Any]
    command: str
    path: str
    answer: str
    failure: str

    @property
    def is_done(self) -> bool:
        """Return whether it neither failed nor was stopped."""
        return not self.failure and not self.answer.startswith(STOPPED)

    @property
    def what(self) -> str:
        """What was done, in short: the program and its first argument, or the tool and its file."""
        segments = [part.split() for part in _SEGMENT.split(self.command)]
        programs = [words for words in segments if words and words[0] != "cd"]
        return f"`{in_line(' '.join(programs[0][:2]))}`" if programs else in_line(f"{self.name} {self.path}")


def runs(messages: Sequence[Message]) -> Iterator[ToolRun]:
    """Find every run of a tool in messages, in order."""
    called: list[tuple[int, ToolCall]] = []
    answered: dict[int, tuple[str, bool]] = {}
    waiting: dict[str, list[int]] = {}
    for message in messages:
        for call in message.calls:
            waiting.setdefault(call.id, []).append(len(called))
            called.append((message.seq, call))
        for answer in message.answers:
            if places := waiting.get(answer.id):
                answered[places.pop()] = answer.text, '"is_error":true' in encoded(message.data)
    for place, (seq, call) in enumerate(called):
        arguments: Mapping[str, Any] = {"input": call.arguments}
        with suppress(ValueError, RecursionError):
            value = json.loads(call.arguments)
            arguments = value if isinstance(value, Mapping) else arguments
        path = next((each for name in _PATHS if isinstance(each := arguments.get(name), str)), "")
        command = arguments.get("command", arguments.get("cmd"))
        if isinstance(command, list):  # `bash -lc` and a script
            command = str(command[-1]) if command else ""
        if not isinstance(command, str) or "path" in arguments:  # of an editor
            command = ""
        text, is_error = answered.get(place, ("", False))
        failure = _find_failure(text, is_error=is_error, is_shell=bool(command))
        yield ToolRun(seq, call.name, arguments, command, in_line(path), text, failure)


def _find_failure(text: str, *, is_error: bool, is_shell: bool) -> str:
    if text.startswith(STOPPED):
        return ""
    lines = _FRAME.sub("", text).split("\n")
    if is_error or _FAILED.match(text):
        searched = lines if is_shell else lines[:1]
        return next(iter([*errors_in(searched), *_find_messages(searched)]), "")
    return next((line for line in _find_messages(lines[:_LOOKED_AT]) if is_shell and _WHY.match(line)), "")


def errors_in(lines: Sequence[str]) -> list[str]:
    """Find the lines that say what went wrong, whole, each once, the most telling first."""
    errors = dict.fromkeys(line for line in _find_messages(lines) if _WHY.search(line) or _SIGN.search(line))
    return sorted(errors, key=lambda line: (not _WHY.search(line), bool(_TIMED.search(line))))


def _find_messages(lines: Sequence[str]) -> Iterator[str]:
    """Find the lines near both ends of an output that can be read as they stand; wrapped ones are joined."""
    near = lines if len(lines) <= _LOOKED_AT * 2 else [*lines[:_LOOKED_AT], *lines[-_LOOKED_AT:]]
    whole = [""]
    for before, line in zip(["", *near], near, strict=False):
        is_rest = len(before) >= _WIDTH and before[-1] not in ".:;,{}()" and line[:1].islower()
        if is_rest and _WHY.search(whole[-1]) and not _WHY.search(line):
            whole[-1] += f" {line}"
        else:
            whole.append(line)
    for line in map(in_line, whole):
        is_message = 0 < len(line) <= LONGEST // 2
        if is_message and not any(pattern.search(line) for pattern in (TABLE, _NO_MESSAGE, CODE)):
            yield line


def files(found: Sequence[ToolRun], workspace: str) -> Iterator[tuple[str, int]]:
    """Write a line for the files that were created, changed and deleted, with its last message.

    Args:
        found: the runs; of those that failed or were stopped nothing is named.
    """
    done = [(run, path, state) for run in found if run.is_done for path, state in _find_touched(run)]
    named = [(run, without_home(os.path.normpath(path), workspace), state) for run, path, state in done]
    states: dict[str, str] = {}
    places: dict[str, list[int]] = {}
    for run, path, done_with in named:
        whole = {name for _, name, _ in named if name.endswith(f"/{path}") and path[0] not in "/~"}
        name = whole.pop() if len(whole) == 1 else path
        is_known = (name in states or "updated" in run.answer) and not run.command
        state = _CHANGED if done_with == _CREATED and is_known else done_with
        before = states.setdefault(name, state)
        if before == _READ != state:
            places.pop(name, None)
        if state != _READ or before == _READ:
            states[name] = state if _DELETED in {state, before} or before == _READ else before
            places.setdefault(name, []).append(run.seq)
    for state in (_CREATED, _CHANGED, _DELETED):
        kept = [name for name in places if states[name] == state and not _NO_FILE.search(name)]
        most = sorted(kept, key=lambda name: -len(places[name]))[:_MOST_FILES]
        if most:
            is_below = len(most) > 1 and all(name.startswith("~/") for name in most)
            folder = os.path.commonpath([os.path.dirname(name) for name in most]) if is_below else ""
            shown = [
                f"`{in_line(name.removeprefix(f'{folder}/'))}` ({_write_span(places[name])})"
                for name in sorted(most, key=lambda name: places[name][0])
            ]
            if len(kept) > len(most):
                shown.append(f"and {len(kept) - len(most)} more")
            where = f" in `{folder}`" if folder else ""
            yield f"files {state}{where}: {', '.join(shown)}", max(places[most[0]])


def _write_span(seqs: Sequence[int]) -> str:
    return f"#{seqs[0]}" if seqs[0] == seqs[-1] else f"#{seqs[0]} to #{seqs[-1]}"


def _find_touched(run: ToolRun) -> Iterator[tuple[str, str]]:
    for verb, name in _PATCHED.findall(run.command or str(run.arguments.get("input", ""))):
        yield name.strip(), _DONE[verb][0]
    folder = ""
    for segment in map(str.strip, _SEGMENT.split(run.command)):
        if not (found := _SHELL.match(segment)):
            continue
        program, first, others, into = found.groups()
        if program == "cd":
            folder = os.path.join(folder, first)
        else:
            names = [first, *others.replace('"', "").replace("'", "").split()] if program else [into]
            before, last = _DONE[program or "Update"]
            for number, name in enumerate(names, 1):
                yield os.path.join(folder, name), last if number == len(names) else before
    writes = _WRITES.search(run.name) if run.arguments.get("command") not in {"view", "read"} else None
    if run.path and writes:
        yield run.path, _CREATED if writes[1] else _DELETED if writes[2] else _CHANGED
    elif "." in os.path.basename(run.path):  # a folder in which something is looked for was not read
        yield run.path, _READ
