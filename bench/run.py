"""Measures mdmem against its budgets and prints one Markdown table: `python bench/run.py [MEASUREMENT…]`.

Ends with 1 when the median of a measurement misses its budget.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import append
import crash
import git
import history
import hooks
import hostile_patterns
import inbox_crash
import index
import large
import long
import lsp
import machine
import meaning
import moving
import observation
import oracle
import order
import order_crash
import protocol
import ranked
import results
import search
import serving
import sessions
import sessions_crash
import sharing_crash
import startup
import team
import team_faults
import team_soak
import truth
import truth_crash
import watching
import web
import writers
from setting import Setting
from table import Row, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MEASUREMENTS: dict[str, Callable[[Setting], list[Row]]] = {
    "startup": startup.measure,
    "grep": search.measure,
    "append": append.measure,
    "writers": writers.measure,
    "index": index.measure,
    "ranked": ranked.measure,
    "serving": serving.measure,
    "watching": watching.measure,
    "hooks": hooks.measure,
    "git": git.measure,
    "history": history.measure,
    "web": web.measure,
    "moving": moving.measure,
    "protocol": protocol.measure,
    "oracle": oracle.measure,
    "crash": crash.measure,
    "sessions": sessions.measure,
    "sessions-crash": sessions_crash.measure,
    "inbox-crash": inbox_crash.measure,
    "sharing-crash": sharing_crash.measure,
    "order": order.measure,
    "order-crash": order_crash.measure,
    "results": results.measure,
    "observation": observation.measure,
    "truth": truth.measure,
    "truth-crash": truth_crash.measure,
    "lsp": lsp.measure,
    "lsp-fuzz": lsp.measure_messages,
}
# Minutes, gigabytes, and a part of another one: only when it is named.
_ON_REQUEST = {
    "large": large.measure,
    "long": long.measure,
    "meaning": meaning.measure,
    "observation-crash": observation.crash,
    "hostile-patterns": hostile_patterns.measure,
    "team": team.measure,
    "team-faults": team_faults.measure,
    "team-soak": team_soak.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    before, started = machine.load(), time.monotonic()
    rows: list[Row] = []
    # One folder for all, removed at the end: ext4 makes files slowly where many were deleted lately.
    with tempfile.TemporaryDirectory(prefix="mdmem-bench-", dir=given.folder) as folder:
        described = machine.description(folder)
        for name in given.measurements or _MEASUREMENTS:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            own = os.path.join(folder, name)
            os.mkdir(own)
            measure = {**_MEASUREMENTS, **_ON_REQUEST}[name]
            rows += measure(Setting(folder=own, seed=given.seed, quick=given.quick))
    minutes = (time.monotonic() - started) / 60
    facts = [
        *described,
        f"load {before} before and {machine.load()} after, {minutes:.1f} minutes, seed {given.seed}",
        "both sides in turn, compared pair by pair: the median (the least to the most)",
    ]
    if given.quick:
        facts.append("tried out with a twentieth of the counts: these figures say nothing")
    print("\n".join(f"- {fact}" for fact in facts), end="\n\n")
    print(markdown(rows), flush=True)
    missed = [row.what for row in rows if row.kept is False]
    for what in missed:
        print(f"over budget: {what}", file=sys.stderr)
    return 1 if missed else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure mdmem against its budgets.")
    names = ", ".join([*_MEASUREMENTS, *_ON_REQUEST])
    request = ", ".join(_ON_REQUEST)
    usage = f"{names}; without any, all but {request}"
    parser.add_argument("measurements", nargs="*", metavar="MEASUREMENT", help=usage)
    parser.add_argument("--folder", help="where the temporary files go, and so on which disk")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="for the same run again")
    parser.add_argument("--quick", action="store_true", help="try out, with a twentieth of the counts")
    given = parser.parse_args(arguments)
    for name in given.measurements:
        if name not in {**_MEASUREMENTS, **_ON_REQUEST}:
            parser.error(f"there is no measurement {name!r}: {names}")
    return given


if __name__ == "__main__":
    sys.exit(main())
