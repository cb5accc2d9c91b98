"""Conversations found and taken in: exact search, imports, and a hook that keeps what was said.

`measure` is for `run.py sessions`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from machine import environment, installed
from percentiles import clock
from table import Row, ratio_row
from timing import Paired, nothing, paired, program

import mdmem
from mdmem.document import secret
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from setting import Setting

_MESSAGES = 1_000_000
_RARE = 1_000  # messages that hold what is looked for
_IMPORTED = 1_000_000_000  # bytes
_TRANSCRIPT = 50_000_000  # bytes that a hook has kept already
_NEW_LINES = 100
_TIMES = 5
_GREP_MOST, _IMPORT_MOST, _HOOK_MOST = 6.0, 1.5, 14.0
_PEAK_MOST = 100  # MB
_NEEDLE = "the needle of it"
# Not what `getrusage` says: a process begins with the peak of the one that started it.
_PEAK = """
import sys, mdmem
mdmem.open(sys.argv[1]).sessions.import_("openai-messages", sys.argv[2])
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def measure(setting: Setting) -> list[Row]:
    return [*found(setting), hooked(setting), *imported(setting)]


# -- exact search -----------------------------------------------------------------------------------------


def found(setting: Setting) -> list[Row]:
    """A literal and a regular expression in one long log, beside reading and decoding it."""
    memory = Memory(mdmem.init(setting.path("found")).root)
    count = setting.count(_MESSAGES)
    source = setting.path("found.jsonl")
    _write(source, (_message(n, setting.chance("found"), count) for n in range(count)))
    memory.sessions.import_("openai-messages", source, key="long")
    log = _apart(Path(memory.vault.root, "sessions", "long.jsonl"))
    expected = len(range(0, count, max(1, count // _RARE)))

    def literal(_: int) -> None:
        hits = memory.sessions.grep(_NEEDLE, "long")
        if len(hits.hits) + hits.left_out != expected:
            raise RuntimeError(f"{len(hits.hits)} and {hits.left_out} hits, not {expected}")

    def pattern(_: int) -> None:
        if not memory.sessions.grep("ne+dle [a-z]+ it", "long", regex=True).hits:
            raise RuntimeError("nothing was found")

    times, many = max(3, setting.count(_TIMES)), f"{count:,} messages"
    looks = {f"a text on {expected:,} of {many}": literal, f"a regular expression in {many}": pattern}
    return [
        ratio_row(what, "reading and decoding", paired(look, lambda _: _decode(log), times), _GREP_MOST)
        for what, look in looks.items()
    ]


def _apart(log: Path) -> Path:
    """The log with one message in each line, as a session that grew has it."""
    fresh = log.with_suffix(".fresh")
    with log.open("rb") as lines, fresh.open("w", encoding="utf-8") as file:
        for line in lines:
            shape = json.loads(line)
            messages = shape.pop("messages", None)
            if messages is None:
                file.write(_json(shape) + "\n")
            for number, message in enumerate(messages or (), shape["seq"]):
                file.write(_json({"seq": number, "at": shape["at"], "messages": [message]}) + "\n")
    fresh.replace(log)
    return log


def _decode(path: Path) -> None:
    with path.open("rb") as lines:
        for line in lines:
            json.loads(line)


# -- imports ----------------------------------------------------------------------------------------------


def imported(setting: Setting) -> Iterator[Row]:
    """A large file of messages, beside the least that taking it in can be; and how much memory that takes."""
    source, size = setting.path("imported.jsonl"), setting.count(_IMPORTED)
    chance = setting.chance("imported")
    _write(source, _up_to(size, chance))
    roots = (mdmem.init(setting.path(f"imported {number}")).root for number in range(3))
    importing = [sys.executable, "-c", _PEAK]

    def ours(_: int) -> None:
        printed = program([*importing, next(roots), source], environment())(0)
        peaks.append(int(printed) / 1024)

    peaks: list[float] = []
    pairs = paired(ours, lambda _: _taken_in(source, setting.path("least.jsonl")), 2)
    yield ratio_row(
        f"importing {size / 1e6:,.0f} MB",
        "read, decode, look for secrets, encode, write",
        pairs,
        _IMPORT_MOST,
    )
    peak = max(peaks)
    yield Row(
        what="memory at most, of the whole process",
        ours=f"{peak:.0f} MB",
        budget=f"≤ {_PEAK_MOST} MB",
        kept=peak <= _PEAK_MOST,
    )


def _taken_in(source: str, target: str) -> None:
    with open(source, "rb") as lines, open(target, "wb") as file:
        for line in lines:
            text = _json(json.loads(line))
            secret.find(text)
            file.write(text.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


# -- the hook ---------------------------------------------------------------------------------------------


def hooked(setting: Setting) -> Row:
    """`mdmem hook stop` with a transcript that has grown, whole process."""
    root = mdmem.init(setting.path("hooked")).root
    Path(root, ".mdmem", "config.toml").write_text('[sessions]\ncapture = "hooks"\n', encoding="utf-8")
    Memory(root).sessions.allow_capture()
    transcript, chance = setting.path("5e1f.jsonl"), setting.chance("hooked")
    _write(transcript, map(_claude, _up_to(setting.count(_TRANSCRIPT), chance)))
    given = {"session_id": "5e1f", "transcript_path": transcript, "cwd": root, "stop_hook_active": False}
    Memory(root).sessions.import_("claude-code-session", transcript)
    passing = partial(nothing(), 0)
    ours, theirs = [], []
    for _ in range(setting.count(_TIMES * 4)):
        before = _kept(root)
        _write(transcript, map(_claude, (_message(n, chance, 0) for n in range(_NEW_LINES))), mode="a")
        ours.append(clock(partial(_stop, root, given)))
        theirs.append(clock(passing))
        after = _kept(root)
        if after != before + _NEW_LINES:
            raise RuntimeError(f"{after - before} messages were kept, not {_NEW_LINES}")
    what = f"`mdmem hook stop` with {_NEW_LINES} new lines in {os.path.getsize(transcript) / 1e6:.0f} MB"
    return ratio_row(what, "`python -c pass`", Paired(ours=ours, theirs=theirs), _HOOK_MOST)


def _kept(root: str) -> int:
    (session,) = Memory(root).sessions.list()
    return session.messages


def _stop(root: str, given: dict[str, Any]) -> None:
    subprocess.run(
        [installed("mdmem"), "--vault", root, "hook", "stop"],
        env={**environment(), "CLAUDE_PROJECT_DIR": root},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )


def _claude(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": message["role"], "message": message, "uuid": f"{time.monotonic_ns():x}"}


# -- messages ---------------------------------------------------------------------------------------------

_SENTENCE = "which database keeps what was said here and why it is one file that several programs may write"


def _message(number: int, chance: random.Random, of: int) -> dict[str, Any]:
    """A message of some 200 bytes; of `of` messages, 1,000 hold what is looked for."""
    words = chance.choices(_SENTENCE.split(), k=chance.randint(10, 50))
    if of and number % max(1, of // _RARE) == 0:
        words.insert(len(words) // 2, _NEEDLE)
    return {"role": "assistant" if number % 2 else "user", "content": f"{' '.join(words)} {number}"}


def _up_to(size: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """As many messages as take so many bytes."""
    number = 0
    while size > 0:
        message = _message(number, chance, 0)
        yield message
        size -= len(message["content"]) + 40
        number += 1


def _write(path: str, messages: Iterator[dict[str, Any]], mode: str = "w") -> None:
    with open(path, mode, encoding="utf-8") as file:
        file.writelines(_json(message) + "\n" for message in messages)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
