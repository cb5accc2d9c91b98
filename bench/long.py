"""Memories as large as is allowed, each as hard to read as can be: every command, seconds and memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from machine import environment, installed
from table import Row, seconds

import mdmem
from mdmem.document.document import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from setting import Setting

_MOST_SECONDS = 2.0
_MOST_BYTES = 300 * 10**6
_STOPPED_AFTER = 60.0
_ROOM = 4_096  # bytes that the commands which add something find left
_FINE = (0, 1, 2)
# Frames around what is repeated until the memory is full: all of it one line, or as many as can be.
_LINE = "start {} needle\n"
_LINES = "start\n\n{}\nneedle\n"
_VALUE = '{{"needle": "{}"}}'
_VALUES = '{{"needle": [{}1]}}'
_SHAPES: Mapping[str, tuple[str, str]] = {
    "words": (_LINE, "lorem ipsum "),
    "one word": (_LINE, "x"),
    "wikilinks": (_LINE, "[[other]]"),
    "links": (_LINE, "[a](other.md) "),
    "links among words": (_LINE, "[a](other.md) and words that go on behind it, "),
    "half links": (_LINE, "[a]("),
    "citations": (_LINE, "`code.py#L1` "),
    "URLs": (_LINE, "https://example.org/a?b=c "),
    "tags": (_LINE, " #a"),
    "tags in each other": (_LINE, "#a"),
    "backticks": (_LINE, "` `` "),
    "HTML": (_LINE, "<a "),
    "emphasis": (_LINE, "*a_"),
    "backslashes": (_LINE, "\\"),
    "quotes in quotes": (_LINE, "> "),
    "lists in lists": (_LINE, "- "),
    "cells": (_LINE, "| a "),
    "Chinese": (_LINE, "記憶體是文件"),
    "combining marks": (_LINE, "e\u0301\u0323"),
    "one heading": ("# {} needle\n", "a "),
    "headings": (_LINES, "# a\n"),
    "bullets": (_LINES, "- a\n"),
    "paragraphs": (_LINES, "a\n\n"),
    "block ids": (_LINES, "a ^b\n\n"),
    "definitions": (_LINES, "[a]: b\n\n"),
    "quoted lines": (_LINES, "> a\n"),
    "carriage returns": (_LINES, "a\r"),
    "a JSON string": (_VALUE, "a "),
    "JSON escapes": (_VALUE, "\\u0041"),
    "JSON numbers": (_VALUES, "1,"),
    "JSON objects": (_VALUES, '{"a":1},'),
    "duplicate keys": ('{{"needle":1{}}}', ',"a":1'),
    "nested lists": ("{} needle", "["),
}
_QUICK = ("words", "tags", "duplicate keys")

# Two ways at once: what is appended meets what another program saved meanwhile.
_MERGED = """
import sys, mdmem
root, path = sys.argv[1:]
memory = mdmem.open(root)
plan = memory.plan.append(path, "appended")
with open(f"{root}/{path}", "r+", newline="") as file:
    text = file.read().replace("start", "stirs", 1)
    file.seek(0)
    file.write(text)
try:
    memory.apply(plan)
except mdmem.MdmemError as error:
    sys.exit(f"{error}"[:200])
"""


class Run(NamedTuple):
    """What a process took, with those that it started: seconds of the clock, and bytes; how it ended."""

    elapsed: float
    most: int
    code: int = 0


def measure(setting: Setting) -> list[Row]:
    worst: dict[str, tuple[Run, str, str]] = {}
    for shape in _QUICK if setting.quick else _SHAPES:
        for command, run in _runs(setting.path(shape.replace(" ", "-")), shape):
            slow, slow_shape, big_shape = worst.get(command, (Run(0, 0), "", ""))
            worst[command] = (
                Run(max(slow.elapsed, run.elapsed), max(slow.most, run.most)),
                shape if run.elapsed > slow.elapsed else slow_shape,
                shape if run.most > slow.most else big_shape,
            )
    return [_row(command, *found) for command, found in worst.items()]


def _row(command: str, run: Run, slowest: str, biggest: str) -> Row:
    return Row(
        what=f"`{command}`, {DEFAULT_LIMITS.max_bytes:,} bytes, the worst of {len(_SHAPES)} kinds",
        ours=f"{seconds(run.elapsed)} ({slowest}), {run.most / 10**6:.0f} MB ({biggest})",
        budget=f"≤ {seconds(_MOST_SECONDS)}, {_MOST_BYTES // 10**6} MB",
        kept=run.elapsed <= _MOST_SECONDS and run.most <= _MOST_BYTES,
    )


def _runs(folder: str, shape: str) -> Iterator[tuple[str, Run]]:
    """Every command in turn on a vault with one such memory; what one changes, the next takes back."""
    root, path = _made(folder, shape)
    program = [installed("mdmem"), "--vault", root]
    last = Run(0, 0)
    for name, arguments, given in _commands(path, root):
        if name != "undo" or last.code == 0:  # a change that was refused needs none
            last = _run([*program, *arguments], given, folder)
            yield name, last
    python = os.path.join(os.path.dirname(program[0]), "python")
    root, path = _made(f"{folder}-merged", shape)
    yield "an append that is merged", _run([python, "-c", _MERGED, root, path], "", folder)


def _made(folder: str, shape: str) -> tuple[str, str]:
    root = os.path.join(folder, "memories")
    mdmem.init(root)
    os.makedirs(f"{root}/notes")
    frame, unit = _SHAPES[shape]
    count = (DEFAULT_LIMITS.max_bytes - _ROOM - len(frame)) // len(unit.encode())
    path = "notes/long.json" if frame in {_VALUE, _VALUES} or frame.startswith("{{") else "notes/long.md"
    for name, text in ((path, frame.format(unit * count)), ("notes/other.md", "# Other\n\nneedle\n")):
        with open(f"{root}/{name}", "w", encoding="utf-8", newline="") as file:
            file.write(text)
    with open(f"{folder}/code.py", "w", encoding="utf-8") as file:
        file.write("a = 1\n" * 100)
    return root, path


def _commands(path: str, root: str) -> Iterator[tuple[str, Sequence[str], str]]:
    """Name, arguments and standard input of each; a name that is empty is not measured."""
    name = os.path.basename(path)
    edited = {"tool_name": "Edit", "cwd": root, "tool_input": {"file_path": f"{root}/{path}"}}
    for arguments in (
        ["index"],
        ["grep", "needle", "-C", "2"],
        ["grep", "a", "--limit", "20"],
        ["search", "needle"],
        ["search", "--passages", "--explain", "lorem needle"],
        ["context", "needle"],
        ["ls"],
        ["ls", "--where", "tag=a"],
        ["show", path],
        ["show", "--section", "a", path],
        ["check"],
        ["refs"],
        ["refs", "--stats"],
        ["refs", "--pin", "--dry-run"],
        ["backlinks", "notes/other.md"],
        ["tags"],
        ["graph"],
        ["doctor"],
        ["rules", "text"],
        ["notes", "list"],
        ["working", "list"],
        ["hook", "session-start"],
        ["hook", "post-edit"],
        ["tool", json.dumps({"command": "view", "path": f"/memories/{path}"})],
        ["mv", path, f"notes/elsewhere-{name}", "--dry-run"],
        ["mv", "notes/other.md", "notes/another.md", "--dry-run"],
        ["mv", "--what", "tag", "a", "b", "--dry-run"],
        ["replace", path, "needle", "found", "--dry-run"],
    ):
        told = " ".join(each for each in arguments if len(each) < 30 and each not in {path, name})
        yield told, arguments, json.dumps(edited) if arguments[0] == "hook" else ""
    for arguments in (
        ["append", path, "appended"],
        ["prepend", path, "prepended"],
        ["insert", path, "1", "inserted"],
        ["delete-lines", path, "1"],
        ["replace", path, "needle", "found"],
        ["replace", "--all", path, "a", "b"],
        ["replace", "--all", "--regex", path, "[a]", "b"],
        ["section", path, "a", "text", "--append"],
        ["set", path, "k=v"],
        ["notes", "append", name, "text"],
        ["rm", path],
    ):
        yield " ".join(each for each in arguments if each not in {path, name}), arguments, ""
        yield "undo", ["undo"], ""
    yield "history", ["history", path], ""
    yield "restore", ["restore", path], ""
    yield "index --rebuild", ["index", "--rebuild"], ""


def _run(command: Sequence[str], given: str, folder: str) -> Run:
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
        source.write(given.encode())
        source.seek(0)
        start = time.monotonic()
        process = subprocess.Popen(
            command, env=environment(), cwd=folder, stdin=source, stdout=subprocess.DEVNULL, stderr=errors
        )
        stop = threading.Timer(_STOPPED_AFTER, process.kill)
        stop.start()
        # Of this process and those that it waited for, and not of all that were ever started here.
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.monotonic() - start
        stop.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        told = errors.read().decode()
        # Refused is fine; a command that there is not says nothing of any memory.
        is_fine = process.returncode in _FINE and not told.startswith("Usage:")
        if not is_fine and elapsed < _STOPPED_AFTER:
            raise RuntimeError(f"{command} ended with {process.returncode}:\n{told[-2000:]}")
        return Run(elapsed, usage.ru_maxrss * 1024, process.returncode)
