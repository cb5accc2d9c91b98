"""Hooks: whole processes, as a host runs them, each answer looked at."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import vaults
from machine import environment, installed
from percentiles import clock
from startup import write_app
from table import Row, ratio_row
from timing import Paired, paired, program

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping

    from setting import Setting

_NOTES = 1_000
_TIMES = 30
_CLONED = 10_000
# Times as long as a click program takes.
_MOST, _MOST_BEHIND_COMMAND = 4.0, 3.0
_PROMPT = 80  # characters
_THREAD = "bench"
# Behind an edit that breaks the schema, too.
_BROKEN = "post-edit, schema broken"
# What an answer has to hold to be one.
_TOLD = {
    "session-start": "additionalContext",
    "user-prompt": "additionalContext",
    "post-edit": "dangling",
    _BROKEN: "schema-maximum",
    "pre-compact": f"threads/{_THREAD}",
    "stop": "block",
}


def measure(setting: Setting) -> list[Row]:
    root = setting.path("hooks")
    vaults.make(root, setting.count(_NOTES), setting.seed)
    memory = Memory(root)
    memory.working.update("Tests are green.", thread=_THREAD)
    memory.project.append("Decisions", "Use SQLite")
    memory.sync()
    memory.index.close()
    chance = setting.chance("hooks")
    script = write_app(setting.path("hooks-click"))
    click = partial(program([sys.executable, script, "--version"], environment()), 0)
    rows = [_row(setting, root, event, chance, click) for event in _TOLD]
    return [*rows, _row_behind_command(setting, root, click), _row_without_index(setting, click)]


def _row_behind_command(setting: Setting, root: str, click: Callable[[], str]) -> Row:
    """A command that has changed nothing, of which nothing is said."""
    given = {"session_id": "bench", "cwd": root, "tool_name": "Bash", "tool_input": {"command": "true"}}
    pairs = paired(lambda _: _answer(root, "post-edit", given), lambda _: click(), setting.count(_TIMES))
    what = f"`mdmem hook post-edit` behind a command, {setting.count(_NOTES):,} notes, whole process"
    return ratio_row(what, "click, 12 commands", pairs, _MOST_BEHIND_COMMAND)


def _row_without_index(setting: Setting, click: Callable[[], str]) -> Row:
    """A session that begins in a clone; nobody makes the index meanwhile, which would take its time."""
    root, notes = setting.path("hooks without an index"), setting.count(_CLONED)
    vaults.make(root, notes, setting.seed)
    Memory(root).working.update("Tests are green.", thread=_THREAD)
    with open(os.path.join(Memory(root).index.folder, "background.lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asked = partial(_asked, root, "session-start", {"session_id": "bench", "cwd": root})
        pairs = paired(lambda _: asked(), lambda _: click(), setting.count(_TIMES))
    what = f"`mdmem hook session-start` in {notes:,} notes without an index, whole process"
    return ratio_row(what, "click, 12 commands", pairs, _MOST)


def _row(setting: Setting, root: str, event: str, chance: random.Random, click: Callable[[], str]) -> Row:
    notes = [os.path.join(folder, name) for folder, _, names in os.walk(f"{root}/notes") for name in names]
    files = (chance.choice(notes) for _ in range(setting.count(_TIMES)))
    ours, theirs = zip(*_durations(root, event, files, click), strict=True)
    what = f"`mdmem hook {event}` in {setting.count(_NOTES):,} notes, whole process"
    return ratio_row(what, "click, 12 commands", Paired(ours=ours, theirs=theirs), _MOST)


def _durations(
    root: str, event: str, files: Iterator[str], click: Callable[[], str]
) -> Iterator[tuple[float, float]]:
    """How long each answer takes, behind an edit that breaks a link, and a click program."""
    for number, path in enumerate(files):
        _edit(path, f"\nSee [[nowhere-{number}]].\n", "confidence: 7\n" if event == _BROKEN else "")
        given = {"session_id": "bench", "cwd": root, "tool_name": "Edit", "tool_input": {"file_path": path}}
        given["prompt"] = _prompt(path)
        if not event.startswith("post-edit"):
            _answer(root, "post-edit", given)
        yield clock(partial(_asked, root, event, given)), clock(click)


def _prompt(path: str) -> str:
    """A prompt that a note fits: the beginning of its longest paragraph."""
    with open(path, encoding="utf-8") as file:
        return max(file.read().split("\n\n")[1:], key=len)[:_PROMPT]


def _edit(path: str, text: str, field: str) -> None:
    with open(path, "r+", encoding="utf-8") as file:
        mark, before = file.readline(), file.read().replace(field or "\0", "")
        file.seek(0)
        file.write(f"{mark}{field}{before}{text}")


def _asked(root: str, event: str, given: Mapping[str, Any]) -> None:
    told = _answer(root, event.partition(",")[0], {**given, "stop_hook_active": False})
    if _TOLD[event] not in told:
        raise RuntimeError(f"mdmem hook {event} answered {told!r}")


def _answer(root: str, event: str, given: Mapping[str, Any]) -> str:
    return subprocess.run(
        [installed("mdmem"), "--vault", root, "hook", event],
        env=environment(),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
