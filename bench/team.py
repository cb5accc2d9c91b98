"""A vault in PostgreSQL beside one in a folder, of as many memories, with both on one disk."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import vaults
from table import Row, ratio_row, seconds
from timing import paired, spread

from mdmem.facade.memory import Memory
from mdmem.vault.connection import make_tables, read_address
from mdmem.vault.postgres import PostgresStore
from mdmem.vault.postgres_upkeep import sweep
from mdmem.vault.store import Step, new_entry

sys.path.append(str(Path(__file__).parents[1]))

from tests.vault.postgres_server import Server, served

if TYPE_CHECKING:
    from collections.abc import Callable

    from setting import Setting

_NOTES = 10_000
_AT_ONCE = 1_000  # notes of a change, when the vault is filled
_PAIRS = 100
_STARTS = 3
_MOST_DELAY = 1.0
_OTHERS = 20  # vaults in the same tables
_SMALL = ("head", "version")  # a row for each vault, or one
# What other vaults hold, which nobody asks for.
_FILL = """
INSERT INTO mdmem.content SELECT v, n::text, 'x' FROM {rows};
INSERT INTO mdmem.file SELECT v, n || '.md', '', n::text, 1, 420, 0 FROM {rows};
INSERT INTO mdmem.entry SELECT v, n, n::text, '{{}}' FROM {rows};
INSERT INTO mdmem.touched SELECT v, n || '.md', n FROM {rows};
INSERT INTO mdmem.log SELECT v, n || '.jsonl', n::text, 1, '', '3' FROM {rows};
INSERT INTO mdmem.chunk SELECT v, n::text, 0, '', 'x' FROM {rows};
INSERT INTO mdmem.use SELECT v, n || '.md', '', 1, 1 FROM {rows};
INSERT INTO mdmem.embedding SELECT v, 'store ', n::text, '', '[1,0,0]' FROM {rows}
"""


def measure(setting: Setting) -> list[Row]:
    with served(18, in_memory=False) as server:
        return _measure(setting, server)


def _measure(setting: Setting, server: Server) -> list[Row]:
    notes, root = setting.count(_NOTES), setting.path("folder")
    vaults.make(root, notes, setting.seed)
    folder, team = Memory(root), _fill(setting, server, root)
    for memory in (folder, team):
        memory.sync()
    words = setting.chance("team").sample(vaults.VOCABULARY, _PAIRS)
    for memory in (folder, team):
        for word in words:
            memory.search(word)
    paths = [vaults.path(number) for number in range(notes)]
    verbs: list[tuple[str, float, Callable[[Memory, int], object]]] = [
        ("a look where nothing has changed", 0.1, lambda memory, _: memory.sync()),
        ("a search, warm", 1.0, lambda memory, number: memory.search(words[number % len(words)])),
        ("an append to a note", 1.5, lambda memory, number: memory.append(paths[number], "One more line.")),
        ("a message", 3.0, lambda memory, number: memory.sessions.add("s", "user", f"message {number}")),
    ]
    rows = []
    for what, most, verb in verbs:
        pairs = paired(
            partial(verb, team),
            partial(verb, folder),
            setting.count(_PAIRS),
            warm=5,
        )
        rows.append(ratio_row(f"{what}, {notes:,} memories in PostgreSQL", "in a folder", pairs, most))
    rows.append(_delay(setting, server, team))
    rows.append(_scans(server, team))
    return rows


def _open(setting: Setting, server: Server, name: str, copy: str) -> PostgresStore:
    os.environ["XDG_CACHE_HOME"] = setting.path(copy)
    return PostgresStore(server.url(name))


def _fill(setting: Setting, server: Server, root: str) -> Memory:
    """Make a vault that holds the notes of a folder, among others of as many rows."""
    name = uuid4().hex
    make_tables(read_address(server.url(name)), 3)
    rows = f"generate_series(1, {setting.count(_NOTES)}) n, (SELECT 'v' || generate_series(1, {_OTHERS}) v)"
    server.ask(_FILL.format(rows=f"{rows} AS vaults"))
    store = _open(setting, server, name, "copy")
    paths = [each.relative_to(root).as_posix() for each in Path(root, "notes").rglob("*.md")]
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        with store.writing():
            steps = [Step(path, None, Path(root, path).read_bytes()) for path in some]
            store.commit(new_entry("bench", "fill", ()), steps)
    server.ask("ANALYZE")
    return Memory(store)


def _delay(setting: Setting, server: Server, team: Memory) -> Row:
    """Append on one server while another one without a copy writes."""
    name, delays, fills = team.name.rpartition("=")[2], [], []
    for number in range(_STARTS):
        other = Memory(_open(setting, server, name, f"fresh {number}"))
        begun = time.perf_counter()
        thread = threading.Thread(target=other.append, args=(f"notes/fresh {number}.md", "A line."))
        thread.start()
        longest = 0.0
        while thread.is_alive():
            start = time.perf_counter()
            team.append("notes/beside.md", "One more line.")
            longest = max(longest, time.perf_counter() - start)
        fills.append(time.perf_counter() - begun)
        delays.append(longest)
        other.index.close()
    found = spread(delays)
    return Row(
        what="the longest append while a server without a copy makes its first write",
        ours=found.text(seconds),
        beside=f"that write: {spread(fills).text(seconds)}",
        budget=f"≤ {seconds(_MOST_DELAY)}",
        kept=found.median <= _MOST_DELAY,
    )


def _scans(server: Server, team: Memory) -> Row:
    """Count how often a table was read from end to end, by what every verb asks."""
    server.ask("SELECT pg_stat_reset()")
    store = team.vault.store
    assert isinstance(store, PostgresStore)
    team.append("notes/a.md", "# A line")
    team.undo()
    team.search("line")
    team.mv("notes/beside.md", "notes/b.md")
    team.rm("notes/b.md")
    team.restore("notes/beside.md")
    list(store.entries("notes"))
    team.sessions.add("s", "user", "one more")
    team.sessions.delete("s")
    team.sessions.restore("s")
    team.uses.add(["notes/a.md"])
    team.uses.count_all()
    team.uses.forget("notes/a.md")
    vectors = store.find_vectors("", "store ")
    vectors.put({"a": (1, 0, 0)})
    vectors.nearest((1, 0, 0), 1, {"a"})
    vectors.compare((1, 0, 0), ["a"])
    vectors.remove(["a"])
    team.vault.recover()
    Memory(PostgresStore(f"{store.name}&application_name=compared")).sync()
    sweep(store)
    team.index.close()
    store.close()
    time.sleep(0.1)  # the server counts what a connection did when that ends
    found = dict(server.ask("SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'mdmem'"))
    scanned = {name: count for name, count in found.items() if count and name not in _SMALL}
    return Row(
        what="tables that a statement of these reads from end to end, apart from heads and the version",
        ours=", ".join(f"{name} ({count} times)" for name, count in scanned.items()) or "none",
        beside=f"{len(found)} tables",
        budget="none",
        kept=not scanned,
    )
