"""Runs commands of mdmem, each in a fork of this process, where the file system or the user is a special one.

Run as `command_worker.py [USER]`: with USER, a number, as that user and group. For each line on standard
input, `{"arguments": […], "given": "…", "limit": BYTES}`, it prints `{"code": …, "out": …, "errors": …,
"seconds": …, "kilobytes": …}`: of processor, and of memory at most, with the programs that the command ran.
`given` is the command's standard input; with a limit no file can grow over so many bytes. A command that
hangs is killed, and its code is -9.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import signal
import sys
import threading
from typing import Any

import mdmem
from mdmem.cli.main import main

HANG_SECONDS = 20.0


def run(arguments: list[str], given: str, limit: int | None) -> dict[str, Any]:
    """What a command returns and prints."""
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    out = sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    code = main(arguments)
    return {"code": code, "out": _text(out), "errors": _text(errors)}


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def in_fork(order: dict[str, Any]) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer = json.dumps(run(**order))
        except BaseException as error:  # noqa: BLE001 - the report names whatever came out
            answer = json.dumps({"code": -1, "out": "", "errors": repr(error)})
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writer)
    killer = threading.Timer(HANG_SECONDS, os.kill, (child, signal.SIGKILL))
    killer.start()
    with os.fdopen(reader, encoding="utf-8") as pipe:
        answer = pipe.read()
    _, _, used = os.wait4(child, 0)
    killer.cancel()
    told = json.loads(answer or '{"code": -9, "out": "", "errors": "killed: it hung"}')
    return json.dumps({**told, "seconds": used.ru_utime + used.ru_stime, "kilobytes": used.ru_maxrss})


def serve() -> None:
    # All modules first: another user may not be allowed to read them.
    for module in pkgutil.walk_packages(mdmem.__path__, "mdmem."):
        # The SDKs of other packages take seconds, and none of the commands here uses one.
        if not module.name.endswith("__main__") and not module.name.startswith(
            ("mdmem.adapters.", "mdmem.mcp.")
        ):
            importlib.import_module(module.name)
    for name in (
        "ctypes",
        "difflib",
        "hashlib",
        "hmac",
        "jsonschema",
        "jinja2",
    ):  # imported when they are used
        importlib.import_module(name)
    gc.freeze()  # a collection would copy the memory that the forks share
    if sys.argv[1:]:
        os.setgroups([])
        os.setgid(int(sys.argv[1]))
        os.setuid(int(sys.argv[1]))
        os.chdir("/")
    for line in sys.stdin:
        answer = in_fork(json.loads(line))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
