"""A search by meaning in a vault of 100,000 passages, with the model of the extra `semantic`.

The passages get drawn vectors, not their own, which would take half an hour; queries get those of the model.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import vaults
from table import Row, milliseconds

from mdmem.facade.memory import Memory
from mdmem.vault.folder import init

if TYPE_CHECKING:
    from collections.abc import Sequence

    from setting import Setting

_NOTES, _PASSAGES = 10_000, 10
_KILLS = 200
_MOST_MORE, _MOST_PROCESSOR, _MOST_MEGABYTES = 0.05, 0.5, 300
_SERVED = (
    "import sys, time; from mdmem.facade.memory import Memory\n"
    "memory = Memory(sys.argv[1], embedder='minilm'); keeper = memory.keep_current()\n"
    "for query in sys.argv[3:]: memory.search(query, words_only=sys.argv[2] == 'words')\n"
    "most = open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]\n"
    "print(time.process_time(), int(most) / 1024)"
)


def measure(setting: Setting) -> list[Row]:
    root, rng = setting.path("memories"), setting.chance("meaning")
    count = _write(root, setting.count(_NOTES), rng)
    memory = Memory(root, embedder="minilm")
    memory.sync()
    _draw_vectors(memory, rng)
    times = setting.count(100)
    known = [" ".join(rng.sample(vaults.VOCABULARY[:60], 3)) for _ in range(times)]
    unknown = [f"unheard{number} words{number}" for number in range(times)]
    rows = []
    with closing(memory.keep_current()):
        for what, queries in (("a full first block", known), ("a scan", unknown)):
            memory.search(queries[0])
            words, meaning = _percentiles(memory, queries)
            more = meaning - words
            rows.append(
                Row(
                    what=f"search by meaning, {count:,} passages, {what}, p95",
                    ours=milliseconds(meaning),
                    beside=f"words: {milliseconds(words)}",
                    compared=f"+ {milliseconds(more)}",
                    budget=f"≤ + {milliseconds(_MOST_MORE)}",
                    kept=more <= _MOST_MORE,
                )
            )
    rows += _measure_process(root, [known[0], unknown[0]], count)
    return [*rows, _kill_fillings(setting)]


def _kill_fillings(setting: Setting) -> Row:
    """Kill what makes the vectors of a vault, again and again, and look at what is made twice."""
    root, log, rng = setting.path("killed"), setting.path("made"), setting.chance("kills")
    count, made, again = _write(root, setting.count(1_000), rng), set[str](), [0]
    kills, wanted = 0, setting.count(_KILLS)
    command = [sys.executable, os.path.join(os.path.dirname(__file__), "fill_worker.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin
        assert worker.stdout
        ended = ""
        while ended != "0":
            after = rng.randrange(1, count // wanted) if kills < wanted else -1
            worker.stdin.write(f"{json.dumps([root, log, after, rng.uniform(0, 0.003)])}\n")
            worker.stdin.flush()
            ended = worker.stdout.readline().strip()
            kills += ended == f"{-signal.SIGKILL}"
            with open(log, encoding="utf-8") as file:
                texts = file.read().splitlines()
            os.truncate(log, 0)
            again.append(sum(text in made for text in texts))
            made.update(texts)
        worker.stdin.close()
    return Row(
        what=f"kill -9 while the vectors of {count:,} passages are made, {kills} times",
        ours=f"{max(again)} made again after a kill",
        beside=f"{sum(again)} in all",
        budget="≤ 1",
        kept=max(again) <= 1 and len(made) == count and kills >= wanted,
    )


def _write(root: str, notes: int, rng: random.Random) -> int:
    init(root)
    os.makedirs(os.path.join(root, "notes"), exist_ok=True)
    for number in range(notes):
        said = (" ".join(rng.choices(vaults.VOCABULARY, k=25)) for _ in range(_PASSAGES))
        with open(os.path.join(root, "notes", f"{number}.md"), "w", encoding="utf-8") as file:
            file.write("\n\n".join(said) + "\n")
    return notes * _PASSAGES


def _draw_vectors(memory: Memory, rng: random.Random) -> None:
    meaning = memory.meaning
    assert meaning
    paths = [path for (path,) in memory.index.rows("SELECT path FROM documents")]
    for start in range(0, len(paths), 200):
        keys = {key for each in meaning.keys(paths[start : start + 200]).values() for key in each}
        meaning.vectors.put({key: [rng.gauss(0, 1) for _ in range(meaning.vectors.dims)] for key in keys})


def _percentiles(memory: Memory, queries: Sequence[str]) -> tuple[float, float]:
    """The 95th percentiles of searches by words alone, and with meaning, in turn."""
    took: tuple[list[float], list[float]] = [], []
    for query in queries:
        for seconds, words_only in zip(took, (True, False), strict=True):
            before = time.perf_counter()
            memory.search(query, words_only=words_only)
            seconds.append(time.perf_counter() - before)
    words, meaning = (sorted(seconds)[int(len(seconds) * 0.95)] for seconds in took)
    return words, meaning


def _measure_process(root: str, queries: Sequence[str], count: int) -> list[Row]:
    def run(how: str, queries: Sequence[str]) -> tuple[float, float]:
        command = [sys.executable, "-c", _SERVED, root, how, *queries]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return float(told[0]), float(told[1])

    runs = sorted((run("meaning", queries[:1])[0], run("words", queries[:1])[0]) for _ in range(3))
    (ours, theirs), megabytes, less = runs[1], run("meaning", queries)[1], run("words", queries)[1]
    return [
        Row(
            what=f"search by meaning, {count:,} passages, a fresh process, processor time",
            ours=milliseconds(ours),
            beside=f"words: {milliseconds(theirs)}",
            compared=f"+ {milliseconds(ours - theirs)}",
            budget=f"≤ + {milliseconds(_MOST_PROCESSOR)}",
            kept=ours - theirs <= _MOST_PROCESSOR,
        ),
        Row(
            what=f"memory of a process that serves {count:,} passages by meaning",
            ours=f"{megabytes:.0f} MB",
            beside=f"words: {less:.0f} MB",
            budget=f"≤ {_MOST_MEGABYTES} MB",
            kept=megabytes <= _MOST_MEGABYTES,
        ),
    ]
