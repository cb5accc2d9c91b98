"""Four writers of one vault in PostgreSQL; processes, connections and the server are struck at random.

Two of the writers share a copy. Each numbers what it does and reports it before and after: it adds its mark
to three notes at once, or to a conversation, or writes one of two texts over the other. The oracle reads the
tables by SQL of its own, and compares them with what was reported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from table import Row

from mdmem.errors import MdmemError, NotKnown
from mdmem.facade.memory import Memory
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.connection import make_tables, read_address
from mdmem.vault.plan import EditPlan
from mdmem.vault.postgres import PostgresStore
from mdmem.vault.postgres_upkeep import sweep
from mdmem.vault.store import Step, new_entry

sys.path.append(str(Path(__file__).parents[1]))

from tests.vault.postgres_server import Proxy, Server, served

if TYPE_CHECKING:
    from setting import Setting

_SECONDS = 1_200
_COPIES = (0, 0, 1, 2)  # which copy a writer has
_PARTS = "abc"
_GROUP_SECONDS = 5  # after which the writers go on to other notes
_MOST_STOPPED, _MOST_WAIT = 12.0, 20.0
_OFTEN = ("kill", "answer", "sweep")
_FAULTS = (*_OFTEN, *_OFTEN, "stop", "cut", "cut all", "question", "restart")
_MAYBE = {"done", "killed", "not-known"}  # what may have been made
_LOCAL = ".mdmem/local/"
_CONFIG = b"[trash]\nmax_bytes = 20000\n"
_MARK = re.compile(rb"\[(\d+:\d+)\]")


class _Op(NamedTuple):
    """What a writer did: its number, what, where, and what came of it, with the seconds of its clock."""

    mark: str
    what: str
    group: int
    told: str
    begun: float
    ended: float


def write(url: str, writer: int, number: int, deadline: float, reports: str) -> None:
    """Write until the deadline: what each of the processes does that are struck."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    memory, chance = Memory(PostgresStore(url)), random.Random(f"{writer} {number}")
    file = os.open(reports, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while time.monotonic() < deadline:
        number += 1
        what, begun = chance.choice(("several", "several", "log", "flip")), time.monotonic()
        group, told = int(begun / _GROUP_SECONDS), "done"
        _report(file, number, what, group, begun)
        try:
            _change(memory, what, group, f"{writer}:{number}")
        except NotKnown:
            told = "not-known"
        except MdmemError as error:
            told = error.code
        except Exception as error:  # noqa: BLE001 - what no user may see
            told = f"broken {type(error).__name__}: {error}"
        _report(file, number, told, time.monotonic())


def _report(file: int, *values: object) -> None:
    os.write(file, json.dumps(values).encode() + b"\n")


def _change(memory: Memory, what: str, group: int, mark: str) -> None:
    if what == "log":
        memory.sessions.add(f"s{group}", "user", f"[{mark}]")
    elif what == "several":
        plans = [memory.plan.append(f"notes/{group}{part}.md", f"- [{mark}]") for part in _PARTS]
        memory.apply(EditPlan(changes=tuple(change for plan in plans for change in plan.changes)))
    else:
        writer, _, number = mark.partition(":")
        memory.write(f"own/{writer}.md", _flipped(int(number)), overwrite=True)


def _flipped(number: int) -> str:
    return f"# {number % 2}\n\n{'One of two texts, in turn. ' * 40}\n"


class _Team:
    """A server, a vault, and the processes that write to it."""

    def __init__(self, setting: Setting, server: Server, deadline: float) -> None:
        self.setting, self.server, self.deadline = setting, server, deadline
        self.vault, self.chance = uuid4().hex, setting.chance("team-faults")
        self.stops: list[tuple[int, float, float]] = []
        self.struck = Counter[str]()
        os.environ["XDG_CACHE_HOME"] = setting.path("own")
        make_tables(read_address(server.url(self.vault)))
        self.store = PostgresStore(server.url(self.vault))
        with self.store.writing():
            self.store.commit(new_entry("bench", "configure", ()), [Step(CONFIG_PATH, None, _CONFIG)])
        folder = Path(setting.path("proxy"))
        folder.mkdir()
        self.proxy = Proxy(server, folder)
        self.processes = [self._begin(writer) for writer in range(len(_COPIES))]

    def _begin(self, writer: int) -> subprocess.Popen[bytes]:
        reports = self.setting.path(f"reports{writer}")
        done = sum(1 for _ in open(reports, "rb")) if os.path.exists(reports) else 0  # noqa: SIM115
        url = self.server.url(self.vault, host=str(self.proxy.folder))
        words = [url, str(writer), str(done), str(self.deadline), reports]
        env = os.environ | {"XDG_CACHE_HOME": self.setting.path(f"copy{_COPIES[writer]}")}
        return subprocess.Popen([sys.executable, __file__, *words], env=env)

    def strike(self) -> None:
        """Let something go wrong, and go on at once."""
        what, writer = self.chance.choice(_FAULTS), self.chance.randrange(len(_COPIES))
        self.struck[what] += 1
        if what == "kill":
            self.processes[writer].kill()
            self.processes[writer].wait()
            self.processes[writer] = self._begin(writer)
        elif what == "stop":
            seconds = self.chance.uniform(0.1, _MOST_STOPPED)
            threading.Thread(target=self._stop, args=(writer, seconds), daemon=True).start()
        elif what in {"answer", "question"}:
            self.proxy.cuts = what
        elif what == "restart":
            self.server.stop()
            time.sleep(self.chance.uniform(0, 1))
            self.server.begin()
        elif what == "sweep":
            with contextlib.suppress(MdmemError):
                sweep(self.store)
        else:
            few = "ORDER BY random() LIMIT 1" if what == "cut" else ""
            own = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
            found = f"SELECT pid FROM pg_stat_activity WHERE {own} {few}"
            self.server.ask(f"SELECT pg_terminate_backend(pid) FROM ({found}) AS found")

    def _stop(self, writer: int, seconds: float) -> None:
        process, begun = self.processes[writer], time.monotonic()
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
        self.stops.append((writer, begun, time.monotonic()))

    def end(self) -> None:
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGUSR1)  # it prints where it waits
                raise
        self.proxy.close()

    def list_ops(self, writer: int) -> list[_Op]:
        """List what a writer reported; what it was killed amid has no end."""
        ops: dict[int, _Op] = {}
        with open(self.setting.path(f"reports{writer}"), encoding="utf-8") as file:
            for number, *values in map(json.loads, file):
                mark = f"{writer}:{number}"
                if len(values) == 2:
                    ops[number] = ops[number]._replace(told=values[0], ended=values[1])
                else:
                    ops[number] = _Op(mark, values[0], values[1], "killed", values[2], values[2])
        return list(ops.values())

    def waited(self, op: _Op) -> float:
        """Return how long it took, without the time for which its process was stopped."""
        writer = int(op.mark.partition(":")[0])
        own = [(a, b) for number, a, b in self.stops if number == writer]
        return op.ended - op.begun - sum(max(0, min(b, op.ended) - max(a, op.begun)) for a, b in own)

    def read_tables(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return the files and the logs, by path, as the tables have them."""
        files = self.server.ask(
            "SELECT f.path, c.data FROM mdmem.file f JOIN mdmem.content c USING (vault, hash)"
            f" WHERE f.vault = '{self.vault}'"
        )
        logs = self.server.ask(
            "SELECT l.path, string_agg(c.data, '' ORDER BY c.start) FROM mdmem.log l JOIN mdmem.chunk c"
            f" ON c.vault = l.vault AND c.log = l.id WHERE l.vault = '{self.vault}' GROUP BY l.path"
        )
        return dict(files), dict(logs)

    def count_differing_copies(self, held: dict[str, bytes]) -> int:
        """Count the copies that are not what the tables say once they are asked."""
        wrong = 0
        for copy in {*_COPIES}:
            os.environ["XDG_CACHE_HOME"] = self.setting.path(f"copy{copy}")
            store = PostgresStore(self.server.url(self.vault, host=str(self.proxy.folder)))
            os.makedirs(store.root, exist_ok=True)
            store.database = self.store.database  # the proxy is gone
            store.recover()
            root = Path(store.root)
            found = {str(each.relative_to(root)): each for each in root.rglob("*") if each.is_file()}
            own = {path: each.read_bytes() for path, each in found.items() if not path.startswith(_LOCAL)}
            wrong += own != held
        return wrong


def _judge(team: _Team) -> tuple[Counter[str], list[_Op]]:
    """Count what is wrong in the tables, by what was told."""
    files, logs = team.read_tables()
    ops, wrong = [op for writer in range(len(_COPIES)) for op in team.list_ops(writer)], Counter[str]()
    marks = {path: Counter(map(bytes.decode, _MARK.findall(data))) for path, data in (files | logs).items()}
    for writer in range(len(_COPIES)):
        flips = [op for op in team.list_ops(writer) if op.what == "flip"]
        last = max((at for at, op in enumerate(flips) if op.told == "done"), default=len(flips))
        may_be = {_flipped(int(op.mark.partition(":")[2])) for op in flips[last:] if op.told in _MAYBE}
        wrong["lost"] += bool(may_be) and files[f"own/{writer}.md"].decode() not in may_be
    for op in ops:
        if op.what == "several":
            counts = {marks.get(f"notes/{op.group}{part}.md", Counter())[op.mark] for part in _PARTS}
        elif op.what == "log":
            counts = {sum(marks[path][op.mark] for path in logs)}
        else:
            continue
        wrong["half"] += len(counts) > 1
        wrong["doubled"] += max(counts) > 1
        wrong["lost"] += op.told == "done" and min(counts) == 0
        wrong["done though told not"] += op.told not in _MAYBE and max(counts) > 0
    wrong["copies that differ"] += team.count_differing_copies(files | logs)
    wrong["broken"] += sum(op.told.startswith("broken") for op in ops)
    return wrong, ops


def measure(setting: Setting) -> list[Row]:
    with served(18) as server:
        team = _Team(setting, server, time.monotonic() + setting.count(_SECONDS))
        try:
            while time.monotonic() < team.deadline - _MOST_STOPPED:
                time.sleep(team.chance.uniform(0.1, 2))
                team.strike()
            team.end()
        finally:
            for process in team.processes:
                process.kill()
        wrong, ops = _judge(team)
    longest = max(ops, key=team.waited)
    told = Counter("broken" if op.told.startswith("broken") else op.told for op in ops)
    others = (f"{count} {name}" for name, count in told.items() if name != "done")
    struck = ", ".join(f"{count} {name}" for name, count in team.struck.items())
    for op in sorted(ops, key=team.waited)[-5:]:
        print(f"{team.waited(op):.1f} s: {op}", file=sys.stderr)
    wrong += Counter({"waited too long": sum(team.waited(op) > _MOST_WAIT for op in ops)})
    return [
        Row(
            what=f"{len(_COPIES)} writers of a team's vault, {setting.count(_SECONDS):,} seconds of faults",
            ours=", ".join(f"{count} {name}" for name, count in wrong.items() if count) or "nothing wrong",
            beside=", ".join([f"{told['done']:,} done", *others]),
            compared=f"longest wait {team.waited(longest):.1f} s; {struck}",
            budget=f"nothing wrong, ≤ {_MOST_WAIT:.0f} s",
            kept=not any(wrong.values()),
        )
    ]


if __name__ == "__main__":
    given: list[Any] = sys.argv[1:]
    write(given[0], int(given[1]), int(given[2]), float(given[3]), given[4])
