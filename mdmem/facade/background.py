"""The process that hooks start and do not wait for: it works on a session, or makes the index.

A hook has to answer at once, so it only starts this. One process at a time is at a session: it observes it,
and captures what was stated. It looks once more when it is done, so that whoever comes meanwhile neither
waits nor has to come again. One process at a time makes the index.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mdmem.document.document import digest
from mdmem.errors import LockTimeout, MdmemError, Usage
from mdmem.vault import files

if TYPE_CHECKING:
    from mdmem.conversations.models.generator import Generator
    from mdmem.facade.scoped import ScopedMemory

EVENT = "background"
"""The event of `mdmem hook` that does the work."""
_KEY, _INDEXES = "session_key", "indexes"
_INDEX_LOCK = "background.lock"
_SCOPE = ("MDMEM_USER", "MDMEM_PROJECT")  # which the command line says instead


def start(memory: ScopedMemory, session: str) -> bool:
    """Let another process observe and capture a session, where that is due, and do not wait for it.

    It is done where the config wants it; the caller has seen that the user allows it. Only this program is
    run, from a folder that holds no program of others.

    Returns:
        Whether one was started, or is at it already.
    """
    is_observed = memory.vault.config.observation.enabled and memory.observations.due(session)
    if not (is_observed or memory.capture.due(session)):
        return False
    key = memory.sessions.resolve(session)
    try:
        with _hold_session(memory, key):
            pass
    except LockTimeout:
        return True  # it looks once more when it is done
    _start_process(memory, {_KEY: key})
    return True


def start_indexing(memory: ScopedMemory) -> None:
    """Let another process make the index current, unless one does so already, and do not wait for it."""
    with contextlib.suppress(MdmemError, OSError):  # where it cannot start, whoever asks next makes it
        with _hold_indexing(memory):
            pass
        _start_process(memory, {_INDEXES: True})


def _start_process(memory: ScopedMemory, given: Mapping[str, object]) -> None:
    process = subprocess.Popen(  # noqa: S603 - a list, no shell, and nothing of it names a program
        [sys.executable, "-m", "mdmem", *_scope_options(memory), "hook", EVENT],
        cwd=os.sep,
        env={name: value for name, value in os.environ.items() if name not in _SCOPE},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with contextlib.suppress(BrokenPipeError):  # it has ended already
        process.stdin.write(json.dumps(given).encode())  # type: ignore[union-attr]  # it was asked for
        process.stdin.close()  # type: ignore[union-attr]
    # Where this process goes on for longer, it is the one to be told of the end of that one.
    threading.Thread(target=process.wait, daemon=True).start()


def work(memory: ScopedMemory, given: Mapping[str, object], generator: Generator | None) -> None:
    """Observe and capture a session, until nothing is said meanwhile, or make the index.

    Nothing is done where another process does it.

    Args:
        given: what `start` or `start_indexing` has handed on.
        generator: asks the model of the user's own config; without one, rules decide.

    Raises:
        Usage: no session is named.
    """
    if given.get(_INDEXES):
        with contextlib.suppress(LockTimeout), _hold_indexing(memory):
            memory.index.sync()
            memory.references.stale()  # for which the history is read, and kept
        return
    from mdmem.conversations.log.logs import capture_refused  # noqa: PLC0415 - what starts this needs none

    key = given.get(_KEY)
    if not isinstance(key, str):
        raise Usage(problem=f"{_KEY} names no session", remedy="hooks start this by themselves")
    if capture_refused(memory.vault):
        return  # a config comes with the files, and can only ask
    seen: int | None = None
    while (last := _last_number(memory, key)) != seen:
        seen = last
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(_hold_session(memory, key))
            except LockTimeout:
                return
            if memory.vault.config.observation.enabled:
                memory.observe(key, generator=generator)
            memory.capture.run(key, generator=generator)


def _last_number(memory: ScopedMemory, key: str) -> int:
    newest = memory.sessions.history(key, limit=1)
    return newest[0].seq if newest else 0


def _hold_session(memory: ScopedMemory, key: str) -> contextlib.AbstractContextManager[object]:
    """Hold the lock of whoever is at a session; LockTimeout where another process has it."""
    name = digest(memory.sessions.logs.path(key).encode())
    return files.held(os.path.join(memory.state_folder(EVENT), f"{name}.lock"), 0)


def _hold_indexing(memory: ScopedMemory) -> contextlib.AbstractContextManager[object]:
    return files.held(os.path.join(memory.index.folder, _INDEX_LOCK), 0)


def _scope_options(memory: ScopedMemory) -> list[str]:
    scope = memory.scope
    resource = f"{scope.resource_type}/{scope.resource_id}" if scope.resource_type else None
    given = {"vault": memory.name, "user": scope.user, "project": scope.project, "resource": resource}
    named = [f"--{name}={value}" for name, value in given.items() if value is not None]
    return [*named, *(["--shared"] if scope.shared else []), f"--actor={memory.vault.actor}"]
