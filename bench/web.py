"""The page: what the review, the search and the overview of a served vault take beside the same questions in
this process, how large their answers are, and what a server takes that nobody asks.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import vaults
from machine import environment, installed
from table import Row, difference_row, ratio_row
from timing import paired
from watcher import Watching

import mdmem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from setting import Setting

_NOTES, _CHANGED, _NEW, _ROWS = 10_000, 120, 6, 594
_PAIRS, _SEARCHES = 12, 60
_MOST_TIMES, _MOST_CARDS, _MOST_OVERVIEW, _MOST_LONGER = 2.0, 150_000, 250_000, 0.020
_IDLE_SECONDS, _MOST_IDLE = 60, 0.2


class Client(NamedTuple):
    """What asks a server, as the page does."""

    place: str
    token: str

    def ask(self, question: str, **given: Any) -> bytes:
        headers = {"Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection(self.place)
        connection.request("GET", f"/api/{question}?{urlencode(given)}", headers=headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status != http.client.OK:
            raise RuntimeError(data.decode())
        return data


def measure(setting: Setting) -> list[Row]:
    root = _make(setting)
    memory = mdmem.open(root)
    memory.sync()
    with _serving(root) as (client, process):
        cards = client.ask("review")
        count = setting.count(_PAIRS)
        first = paired(lambda _: client.ask("review"), lambda _: memory.git.diff(), count)
        asked = vaults.queries(setting.seed, setting.count(_SEARCHES))
        client.ask("changes", since=0)  # its watch has begun
        with Watching(memory):
            found = paired(
                lambda number: client.ask("search", query=asked[number % len(asked)]),
                lambda number: memory.search(asked[number % len(asked)], limit=20, context=0),
                len(asked),
            )
        overview = client.ask("overview")
        idle = _measure_idle(client, process, 3 if setting.quick else _IDLE_SECONDS)
    told = json.loads(cards)
    changed, notes = len(told["memories"]) + told["left"], setting.count(_NOTES)
    what = f"{told['rows']:,} rows in {changed:,} of {notes:,} notes"
    return [
        ratio_row(f"the page, {what}: the first cards", "`git.diff`", first, _MOST_TIMES),
        _size_row("the page: the answer with the first cards", cards, _MOST_CARDS),
        difference_row("the page: a search", "`search`", found, _MOST_LONGER),
        _size_row("the page: the answer with the overview", overview, _MOST_OVERVIEW),
        Row(
            what=f"the page: processor time of a server that waits with a page for {_IDLE_SECONDS} s",
            ours=f"{idle:.2f} s",
            budget=f"≤ {_MOST_IDLE} s",
            kept=idle <= _MOST_IDLE,
        ),
    ]


def _size_row(what: str, answer: bytes, most: int) -> Row:
    kept = len(answer) <= most
    return Row(what=what, ours=f"{len(answer) / 1000:.0f} KB", budget=f"≤ {most // 1000} KB", kept=kept)


def _measure_idle(client: Client, process: subprocess.Popen[str], seconds: float) -> float:
    """Measure the processor time of a server while a page waits for changes that do not come."""
    number, until = json.loads(client.ask("changes", since=-1))["number"], time.monotonic() + seconds
    before = _read_ticks(process.pid)
    while time.monotonic() < until:
        client.ask("changes", since=number)
    return (_read_ticks(process.pid) - before) / os.sysconf("SC_CLK_TCK")


def _read_ticks(pid: int) -> int:
    """The processor time of a process, its own and the system's for it, in ticks (proc(5))."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@contextmanager
def _serving(root: str) -> Iterator[tuple[Client, subprocess.Popen[str]]]:
    command = [installed("mdmem"), "--vault", root, "web"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=environment())
    try:
        assert process.stdout is not None
        address, _, token = process.stdout.readline().strip().partition("/#")
        yield Client(address.removeprefix("http://"), token), process
    finally:
        process.terminate()
        process.communicate()


def _make(setting: Setting) -> str:
    """Make a repository with notes of which agents have changed some since the last commit."""
    root, notes = setting.path("web/memories"), setting.count(_NOTES)
    os.makedirs(os.path.dirname(root))
    vaults.make(root, notes, setting.seed)
    own = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for arguments in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*own, "commit", "--quiet", "--message", "Notes"],
    ):
        subprocess.run(["git", "-C", os.path.dirname(root), *arguments], check=True)
    agents = [mdmem.open(root, actor=name) for name in ("claude", "codex", "ada")]
    changed = min(_CHANGED, notes)
    for number in range(setting.count(_ROWS)):
        text = f"- {vaults.title(setting.seed, number)} {number}"
        agents[number % 3].append(vaults.path(number % changed * (notes // changed)), text)
    for number in range(_NEW):
        agents[number % 3].write(f"notes/new/{number}.md", f"# New {number}\n")
    return root
