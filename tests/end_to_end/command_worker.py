"""Runs commands of mdmem in forks of this process, where the file system or the user is a special one.

Run as `command_worker.py [USER]`: with USER, a number, as that user and group. Each line on standard input is
a list of orders, `{"arguments": […], "given": "…", "limit": BYTES, "short": […]}`, which one fork runs in
turn. For each order it prints `{"code": …, "out": …, "errors": …, "seconds": …, "kilobytes": …}`: of
processor, and of memory at most since the fork, with the programs that it ran. `given` is the command's
standard input; with a limit no file can grow over so many bytes; and while a file is opened whose name is in
`short`, no file can be opened: another process has just taken the last. A command that hangs is killed, and
its code is -9, and that of those after it.
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
from functools import partial
from typing import TYPE_CHECKING, Any

import mdmem
from mdmem.cli.main import main
from mdmem.document.text.tokens import counter

if TYPE_CHECKING:
    from collections.abc import Iterator

HANG_SECONDS = 60.0
EVERYONE = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
KILLED = json.dumps({"code": -9, "out": "", "errors": "killed: it hung", "seconds": 0, "kilobytes": 0})


def run(arguments: list[str], given: str, limit: int | None, short: list[str]) -> dict[str, Any]:
    """What a command returns and prints."""
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    out = sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    if limit is not None:
        sys.dont_write_bytecode = True  # half of a module would be left for all who come later
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    if short:
        sys.addaudithook(partial(_be_short, short, resource.getrlimit(resource.RLIMIT_NOFILE)))
    code = main(arguments)
    return {"code": code, "out": _text(out), "errors": _text(errors)}


def _be_short(names: list[str], usual: tuple[int, int], event: str, given: tuple[Any, ...]) -> None:
    if event in {"open", "os.listdir", "os.scandir"}:
        is_named = str(given[0]).rpartition("/")[2] in names
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, usual[1]) if is_named else usual)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def answer(order: dict[str, Any]) -> str:
    """Run what is ordered: what it returns and prints, and what it took."""
    before = _processor()
    try:
        told = run(**order)
    except BaseException as error:  # noqa: BLE001 - the report names whatever came out
        told = {"code": -1, "out": "", "errors": repr(error)}
    most = max(resource.getrusage(who).ru_maxrss for who in EVERYONE)
    return json.dumps({**told, "seconds": _processor() - before, "kilobytes": most})


def _processor() -> float:
    used = map(resource.getrusage, EVERYONE)
    return sum(each.ru_utime + each.ru_stime for each in used)


def in_fork(orders: list[dict[str, Any]]) -> Iterator[str]:
    """Run what is ordered, and say after each what `answer` says."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            for order in orders:
                print(answer(order), file=pipe, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        for left in reversed(range(len(orders))):
            killer = threading.Timer(HANG_SECONDS, os.kill, (child, signal.SIGKILL))
            killer.start()
            told = pipe.readline()
            killer.cancel()
            if not left:
                os.wait4(child, 0)  # until then, the space of what it has removed is not free
            yield told.rstrip("\n") or KILLED


def serve() -> None:
    # All modules first: another user may not be allowed to read them.
    for module in pkgutil.walk_packages(mdmem.__path__, "mdmem."):
        # The SDKs of other packages take seconds, and none of the commands here uses one.
        if not module.name.endswith("__main__") and not module.name.startswith(
            ("mdmem.serve.adapters.", "mdmem.editor.lsp.", "mdmem.serve.mcp.")
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
    counter()("")  # a tokenizer loads its vocabulary with the first text
    gc.freeze()  # a collection would copy the memory that the forks share
    if sys.argv[1:]:
        os.setgroups([])
        os.setgid(int(sys.argv[1]))
        os.setuid(int(sys.argv[1]))
        os.chdir("/")
    for line in sys.stdin:
        for told in in_fork(json.loads(line)):
            sys.stdout.write(told + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve()
