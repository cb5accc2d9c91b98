"""Catastrophic patterns through the program, schemas and the server: each ends, and the stopped are named."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from machine import environment, installed
from protocol import READY, START
from table import Row, milliseconds, seconds

import mdmem

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping

    from setting import Setting

_PATTERNS = 200
_MOST = 5.0  # seconds: 1 of processor time in each, and the start of a process
_MOST_OTHERS = 0.1
_REPLACE = ("replace", "--regex", "--all", "--dry-run", "--json")
_REPEATED = 40
# `{x}` is what is repeated, `{n}` how often. First those that textbooks warn of …
_FAMILIES = (
    *("({x}+)+$", "({x}*)*$", "(({x}+)+)+$", "({x}+{x}+)+$", "({x}+)+!", "(?:{x}?){{{n}}}{x}{{{n}}}$"),
    *("(.*{x}){{{n}}}!", "(?={x}*$|({x}+)+$)!", "({x}*)*\\1$", "^(?:({x}+)\\1?)+$", "({x}+)*?({x}+)*?$"),
    *("(?:(?:{x}*)*)*$", "({x}+|{x}+{x})+$", "(?<=({x}|{x})*)!$", "(?:{x}{{1,3}})+$", "(\\w+\\s?)+$"),
    # … and those that the package `regex` does not see through.
    *(
        "({x}|{x})*$",
        "({x}|{x}{x})+$",
        "({x}{{1,{n}}}){{1,{n}}}$",
        "(?:{x}|(?:{x}{x})+)+$",
        "(?:({x})|({x}))+$",
    ),
    *("({x}|{x}{x}|{x}{x}{x})*$", "(?:{x}{x}|{x})+?$", "((?:{x}|{x}{x})+)+$", "(?:({x}|{x}{x})+,?)+$"),
    *(
        "^\\s*({x}|{x}{x})+$",
        "(?:(?:{x}|{x}{x})(?:{x}|{x}{x}))+$",
        "({x}|{x}{x})+(?!.)",
        "(?:{x}|{x}{x}){{10,}}$",
    ),
)
_ATOMS = ("a", "[a-z]", "\\w", ".", "(?:a)", "[^!]", "(?:a|b)", "\\S", "[ab]", "(?i:A)")


class Tried(NamedTuple):
    """What came of a pattern: how long it took, whether it was stopped, and whether that is told soundly."""

    duration: float
    stopped: bool
    sound: bool


def patterns(chance: random.Random, count: int) -> Iterator[str]:
    """Catastrophic patterns, each another one."""
    known: set[str] = set()
    while len(known) < count:
        family, atom = chance.choice(_FAMILIES), chance.choice(_ATOMS)
        known.add(family.format(x=atom, n=chance.randint(10, 60)))
    yield from sorted(known)


def measure(setting: Setting) -> list[Row]:
    count = setting.count(_PATTERNS)
    every = list(patterns(setting.chance("hostile-patterns"), count))
    root = setting.path("memories")
    mdmem.init(root)
    text = "a" * _REPEATED + " " + "a" * _REPEATED + "?"
    mdmem.open(root).write("notes/a.md", f"---\ntype: hostile\nk: {text}\n{text}: 1\n---\n{text}\n")
    schemas = Path(root, ".mdmem", "schemas")
    schemas.mkdir(exist_ok=True)

    def schema(keyword: str, pattern: str) -> Tried:
        contents = {"pattern": {"properties": {"k": {"pattern": pattern}}}}
        contents["patternProperties"] = {"patternProperties": {pattern: {"type": "string"}}}
        (schemas / "hostile.json").write_text(json.dumps(contents[keyword]))
        return _run(root, pattern, "check", "notes/a.md", "--json")

    ways: Mapping[str, Callable[[str], Tried]] = {
        "`replace --regex`": lambda pattern: _run(
            root,
            pattern,
            "replace",
            "--regex",
            "--all",
            "--dry-run",
            "--json",
            "--",
            "notes/a.md",
            pattern,
            "x",
        ),
        "`grep --regex`": lambda pattern: _run(root, pattern, "grep", "--regex", "--json", "--", pattern),
        "`check`, `pattern` of a schema": lambda pattern: schema("pattern", pattern),
        "`check`, `patternProperties`": lambda pattern: schema("patternProperties", pattern),
    }
    rows = [_row(f"{count} catastrophic patterns: {way}", map(tried, every)) for way, tried in ways.items()]
    (schemas / "hostile.json").unlink()
    return [*rows, *_served(root, every)]


def _run(root: str, pattern: str, *arguments: str) -> Tried:
    began = time.perf_counter()
    done = subprocess.run(
        [installed("mdmem"), "--vault", root, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return _tried(
        time.perf_counter() - began, pattern, done.stdout + done.stderr, done.returncode in {0, 1, 2}
    )


def _tried(duration: float, pattern: str, told: str, is_sound: bool) -> Tried:
    stopped = "was stopped" in told
    named = json.dumps(repr(pattern))[2:-2] in told
    return Tried(duration, stopped, is_sound and "Traceback" not in told and (named or not stopped))


def _row(what: str, tried: Iterator[Tried]) -> Row:
    every = list(tried)
    slowest = max(each.duration for each in every)
    stopped, unsound = sum(each.stopped for each in every), sum(not each.sound for each in every)
    return Row(
        what=what,
        ours=f"the slowest {seconds(slowest)}",
        beside=f"{stopped} stopped and named, {len(every) - stopped - unsound} answered, {unsound} otherwise",
        budget=f"≤ {seconds(_MOST)}, 0 otherwise",
        kept=slowest <= _MOST and not unsound,
    )


def _served(root: str, every: list[str]) -> list[Row]:
    server = _Server(root)
    tried = [server.replace(pattern) for pattern in every]
    waits = server.waits
    server.end()
    return [
        _row(f"{len(every)} catastrophic patterns: the tool `replace`", iter(tried)),
        Row(
            what=f"{len(waits):,} other calls of the server meanwhile",
            ours=f"the slowest {milliseconds(max(waits))}",
            budget=f"≤ {milliseconds(_MOST_OTHERS)}",
            kept=max(waits) <= _MOST_OTHERS,
        ),
    ]


class _Server:
    """A server on standard input and output, asked for something else while a pattern runs."""

    def __init__(self, root: str) -> None:
        self.waits: list[float] = []
        self._number = 0
        self._process = subprocess.Popen(
            [installed("mdmem"), "--vault", root, "mcp"],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(START)
        self._answers({0})
        self._send(READY)

    def replace(self, pattern: str) -> Tried:
        began = time.perf_counter()
        arguments = {"path": "notes/a.md", "old": pattern, "new": "x", "regex": True, "dry_run": True}
        asked = self._call("replace", arguments)
        while True:
            other, start = self._call("ls", {}), time.perf_counter()
            answer = self._answers({other, asked})
            if answer["id"] == asked:
                break
            self.waits.append(time.perf_counter() - start)
            time.sleep(0.005)
        duration = time.perf_counter() - began
        self._answers({other})
        return _tried(duration, pattern, json.dumps(answer), "result" in answer)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _call(self, name: str, arguments: dict[str, Any]) -> int:
        self._number += 1
        params = {"name": name, "arguments": arguments}
        self._send({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params})
        return self._number

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _answers(self, numbers: set[int]) -> dict[str, Any]:
        """The next answer to one of these requests."""
        assert self._process.stdout
        while True:
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            if answer.get("id") in numbers:
                return answer
