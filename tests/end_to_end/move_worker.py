"""Kills `mdmem mv` at steps that are spread over it, and reports what the next command finds each time.

Run as `move_worker.py ROOT OLD NEW KILLS`; prints a JSON list, one report for each kill, and one for the
command when nobody kills it. A step is a line of the vault's code. Each command runs in a fork of this
process, which has one thread and everything imported.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
from typing import TYPE_CHECKING, Any

from mdmem import index, memory
from mdmem.cli.main import main as mdmem
from mdmem.diagnostic import as_json
from mdmem.facade.memory import Memory
from mdmem.index.index import Index
from mdmem.vault import files, journal, schema, transaction, trash, vault
from mdmem.vault.journal import STAGING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TRACED = {module.__file__ for module in (files, journal, transaction, trash, vault)}
NEVER = 0
TEMPORARY = (".part", "~")

Texts = dict[str, str]


def import_everything() -> None:
    """Import what the commands would each import anew, in each fork."""
    names = [
        f"{floor.__name__}.{module.name}"
        for floor in (index, memory, schema)
        for module in pkgutil.iter_modules(floor.__path__)
    ]
    for name in (*names, "ctypes", "hashlib", "jsonschema"):
        importlib.import_module(name)


def in_fork(work: Callable[[], Any]) -> Any:
    """What `work` returns, done in a fork of this process; None when it was killed.

    Raises:
        RuntimeError: it failed; it has printed why.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(2, 1)  # what the command prints is no report
            os.write(writer, json.dumps(work()).encode())
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        sent = pipe.read()
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        return None
    if ended:
        raise RuntimeError(f"a process ended with {ended}")
    return json.loads(sent)


def moved(root: str, old: str, new: str, kill_at: int) -> int:
    """Run the command, with SIGKILL before the step `kill_at`; how many steps it has."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            seen += 1
            if seen == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    code = mdmem(["--vault", root, "mv", old, new])
    sys.settrace(None)
    if code:
        raise RuntimeError(f"mdmem mv ended with {code}")
    return seen


def texts(root: str) -> Texts:
    """Every file of the vault but its bookkeeping, by path."""
    found: Texts = {}
    for folder, names, names_of_files in os.walk(root):
        names[:] = [name for name in names if name != ".mdmem"]
        for name in names_of_files:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8", newline="") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def look(root: str, old: str, new: str) -> dict[str, Any]:
    """What the doctor, who is the next command, finds and leaves."""
    opened = Memory(root)
    findings = [as_json(finding) for finding in opened.doctor().findings]
    found = texts(root)
    backlinks = opened.references.backlinks(new if new in found else old)
    local = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    return {
        "findings": findings,
        "texts": found,
        "backlinks": sorted({link.path for link in backlinks}),
        "plans": len(opened.history(new)),
        "temporary": [path for path in local if "/staging/" in path or path.endswith(TEMPORARY)],
    }


def restore(root: str, wanted: Texts) -> None:
    """Make every file what it was, and the index current."""
    now = texts(root)
    if now == wanted:
        return
    for path in now.keys() - wanted.keys():
        os.unlink(os.path.join(root, path))
    for path, content in wanted.items():
        if now.get(path) != content:
            with open(os.path.join(root, path), "w", encoding="utf-8", newline="") as file:
                file.write(content)
    in_fork(lambda: settle(root))


def settle(root: str) -> None:
    """Make the index current, and sure of it: the next command reads again what it is not sure of."""
    index = Index(root)
    index.sync()
    while index.rows("SELECT 1 FROM documents WHERE racy"):
        index.sync()


def run(root: str, old: str, new: str, kills: int) -> list[dict[str, Any]]:
    """The reports: that of the command that nobody kills comes first."""
    before = texts(root)
    in_fork(lambda: settle(root))
    in_fork(lambda: moved(root, old, new, NEVER))
    reports = [{"killed": False, "amid": False, **in_fork(lambda: look(root, old, new))}]
    restore(root, before)
    # The first change of a vault has more steps than later ones: it counts what the trash holds.
    steps = in_fork(lambda: moved(root, old, new, NEVER))
    for number in range(kills):
        restore(root, before)
        # Denser towards the end: the changes are made, and their traces cleared away, in the last part.
        at = round(steps * (1 - (1 - number / kills) ** 2)) + 1
        killed = in_fork(lambda at=at: moved(root, old, new, at)) is None  # type: ignore[misc]
        amid = bool(os.listdir(os.path.join(root, STAGING)))
        reports.append({"killed": killed, "amid": amid, **in_fork(lambda: look(root, old, new))})
    return reports


if __name__ == "__main__":
    import_everything()
    json.dump(run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])), sys.stdout)
