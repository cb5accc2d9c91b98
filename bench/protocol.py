"""The server of the Model Context Protocol: tools in tokens, start, searches, an idle one, hostile calls."""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hostile
import vaults
from machine import environment, installed
from percentiles import clock, percentiles
from table import Row, milliseconds, ratio_row
from timing import nothing, paired, program

import mdmem
from mdmem.serve.mcp.answer import Bound
from mdmem.serve.mcp.tools import TOOLS, Toolbox

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from setting import Setting

_MOST_TOKENS = 2_500
VOCABULARY = "o200k_base"
_MOST_TIMES = 1.5
_PAIRS = 15
_IDLE_SECONDS = 20
# Until the watcher has begun, and the server closed what it has not been asked for a while.
_REST_SECONDS = 12
_CALLS = 100_000
_NOTES = 6_000
_QUERIES = 200
_MOST_P50 = 0.010
_MOST_PASSES = 16
_SECRET = "the secret beyond the wall"
START = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Served:
    """A server on standard input and output, which has answered `initialize`."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask(START)

    def ask(self, *messages: dict[str, Any]) -> dict[str, Any]:
        """Send messages, and read the next answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def tools(self) -> list[dict[str, Any]]:
        """The tools that it offers, as it sends them."""
        answer = self.ask(READY, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        found: list[dict[str, Any]] = answer["result"]["tools"]
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def ticks(self) -> int:
        return ticks_of(self.process.pid)


def ticks_of(process: int) -> int:
    """The processor time that a process has taken, in hundredths of a second (proc(5))."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def measure(setting: Setting) -> list[Row]:
    root = setting.path("served")
    mdmem.init(root)
    mdmem.open(root).write("notes/a.md", "# A\n\nwords\n")
    notes = setting.count(_NOTES)
    large = setting.path("asked")
    vaults.make(large, notes, setting.seed)
    mdmem.open(large).sync()
    searches = rows_of(setting, large, notes)
    return [_tools(root), _ready(setting, root), *searches, _idle(setting, root), _hostile(setting)]


def rows_of(setting: Setting, root: str, notes: int) -> list[Row]:
    """Searches of a server in a vault that has been indexed, and of programs beside it."""
    served = _served(root)
    questions = vaults.queries(setting.seed, setting.count(_QUERIES))
    rows = [_asked(served, notes, questions), _beside(setting, root, notes, questions)]
    served.end()
    return rows


def _asked(served: Served, notes: int, questions: Sequence[str]) -> Row:
    """Over the protocol, each question new, as soon as the server has seen that nothing has changed."""
    first = [clock(partial(_search, served, question)) for question in questions[:2]]
    found = percentiles(clock(partial(_search, served, question)) for question in questions[2:])
    return Row(
        what=f"search through a server that is asked again, {notes:,} notes, {len(questions)} questions",
        ours=f"{found.text()}; the first two {' and '.join(map(milliseconds, first))}",
        budget=f"p50 ≤ {milliseconds(_MOST_P50)}" if notes <= _NOTES else "",
        kept=found.p50 <= _MOST_P50 if notes <= _NOTES else None,
    )


def _search(served: Served, question: str) -> None:
    call = {"name": "search", "arguments": {"query": question}}
    answer = served.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    if answer["result"]["isError"]:
        raise RuntimeError(str(answer))


def _beside(setting: Setting, root: str, notes: int, questions: Sequence[str]) -> Row:
    """Another process each time, while the server runs."""
    command = [installed("mdmem"), "--vault", root, "search", "--limit", "10", "--json", "--"]
    asked = [question for question in questions if question.isascii()]
    pairs = paired(
        lambda number: program([*command, asked[number % len(asked)]], environment())(number),
        nothing(),
        setting.count(_PAIRS),
    )
    what = f"`mdmem search` in {notes:,} notes beside a running server, whole process"
    return ratio_row(what, "`python -c pass`", pairs, _MOST_PASSES)


def listed(command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, int]:
    """How many tools a server lists, and in how many tokens: as they are sent, as JSON without blanks."""
    served = Served(command, variables)
    tools = served.tools()
    served.end()
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    toktok = importlib.import_module("toktok")
    return len(tools), int(toktok.batch_count([text], VOCABULARY, 1)[0])


def _served(root: str) -> Served:
    return Served(_command(root), environment())


def _command(root: str) -> list[str]:
    return [installed("mdmem"), "--vault", root, "mcp"]


def _tools(root: str) -> Row:
    tools, tokens = listed(_command(root), environment())
    return Row(
        what="the list of all tools, as it is sent",
        ours=f"{tokens:,} tokens of {VOCABULARY}, {tools} tools",
        budget=f"≤ {_MOST_TOKENS:,}",
        kept=tokens <= _MOST_TOKENS,
    )


def _ready(setting: Setting, root: str) -> Row:
    """From the start of the process to its answer to `initialize`."""
    theirs = program([sys.executable, "-c", "import mcp"], environment())
    pairs = paired(lambda _: _served(root).end(), theirs, setting.count(_PAIRS))
    return ratio_row("`mdmem mcp` until it has answered", "`import mcp`", pairs, _MOST_TIMES)


def _idle(setting: Setting, root: str) -> Row:
    """What a server takes that has been asked, and keeps its index current."""
    served = _served(root)
    call = {"name": "search", "arguments": {"query": "words"}}
    served.ask(READY, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    seconds = setting.count(_IDLE_SECONDS)
    time.sleep(_REST_SECONDS)
    before = served.ticks
    time.sleep(seconds)
    taken = served.ticks - before
    served.end()
    return Row(
        what=f"processor time of an idle server in {seconds} s, while it watches",
        ours=f"{taken / os.sysconf('SC_CLK_TCK') * 1000:.0f} ms",
        budget="0",
        kept=not taken,
    )


def _hostile(setting: Setting) -> Row:
    """Calls made up from the schemas of the tools, in this process."""
    world = Path(setting.path("hostile"))
    world.mkdir()
    hostile.make_world(world, _SECRET)
    beyond = ("memories/users/alice/", "memories/.mdmem/local/")
    before = hostile.snapshot(world, besides=beyond)
    bound = Bound(memory=mdmem.open(world / "memories", mdmem.Scope(user="alice")))
    box, draw = Toolbox(bound), random.Random(setting.seed)
    codes: Counter[str] = Counter()
    told = 0
    for _ in range(setting.count(_CALLS)):
        tool = draw.choice(TOOLS)
        answer = box.call(tool.name, hostile.arguments(draw, tool, world))
        codes[answer.data.get("error", {}).get("code", "done")] += 1
        told += _SECRET in str(answer)
    touched = before != hostile.snapshot(world, besides=beyond)
    return Row(
        what=f"{codes.total():,} hostile calls of tools",
        ours=f"{codes['bug']} crashes, {told} secrets told, {'some' if touched else 'no'} other file touched",
        beside=f"{codes['done']:,} done, {codes.total() - codes['done']:,} refused",
        budget="0, 0, no",
        kept=not (codes["bug"] or told or touched),
    )
