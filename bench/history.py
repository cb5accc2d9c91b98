"""Citations of files that are gone, or never were, in a repository with a long history."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from typing import TYPE_CHECKING

from machine import environment, installed
from percentiles import clock
from table import Row, ratio_row
from timing import Paired

import mdmem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from setting import Setting

_COMMITS = 5_000
_CITED = 450
_FILES = 400
_PARTS = 9  # commits that take the cited files away
_TIMES = 10
_MOST = 1.5


def measure(setting: Setting) -> list[Row]:
    ours, theirs = (setting.path(name) for name in ("with", "without"))
    for root in (ours, theirs):
        _make_repository(root, setting.count(_COMMITS))
        _make_vault(f"{root}/memories", _CITED if root == ours else 0)
    what = (
        f"{{}}, {_CITED} citations of files that never were and {_CITED} of files that were, {{:,}} commits"
    )
    rows = []
    for name, line in {"check": ["check"], "status": ["status"], "post-edit": ["hook", "post-edit"]}.items():
        pairs = [
            [clock(partial(_run, root, line)) for root in (ours, theirs)]
            for _ in range(setting.count(_TIMES))
        ]
        durations = Paired(ours=[pair[0] for pair in pairs], theirs=[pair[1] for pair in pairs])
        rows.append(ratio_row(what.format(name, setting.count(_COMMITS)), "without them", durations, _MOST))
    return rows


def _run(root: str, line: list[str]) -> None:
    note = f"{root}/memories/notes/0.md"
    given = {"session_id": "bench", "cwd": root, "tool_name": "Edit", "tool_input": {"file_path": note}}
    with open(note, "a", encoding="utf-8") as file:
        file.write("More.\n")
    done = subprocess.run(
        [installed("mdmem"), "--vault", f"{root}/memories", *line],
        env=environment(),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise RuntimeError(done.stderr)


def _make_vault(root: str | Path, cited: int) -> None:
    mdmem.init(root)
    memory = mdmem.open(root)
    for number in range(10):
        names = range(number, cited, 10)
        lines = [f"- `lib/never{at}.py#L3` and `old/was{at}.py#L1`\n" for at in names]
        memory.write(f"notes/{number}.md", f"# Note {number}\n\n{''.join(lines)}")
    memory.sync()


def _make_repository(root: str, commits: int) -> None:
    os.makedirs(root)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    data = "".join(_commit(number, commits) for number in range(commits))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=data, text=True, check=True)
    subprocess.run(["git", "checkout", "--quiet", "-f", "main"], cwd=root, check=True)


def _commit(number: int, commits: int) -> str:
    """Return a commit in the language of `git fast-import`."""
    lines = [
        "commit refs/heads/main",
        f"committer A <a@example.org> {1_700_000_000 + number} +0000",
        "data 0",
    ]
    lines += [f"M 644 inline src/{number % _FILES}.py", *_content(f"x = {number}\n")]
    if number == 0:
        for at in range(_CITED):
            lines += [f"M 644 inline old/was{at}.py", *_content(f"y = {at}\nz = {at * at}\n")]
    lines += [f"D old/was{at}.py" for at in _removed_in(number, commits)]
    return "\n".join((*lines, ""))


def _removed_in(number: int, commits: int) -> Iterator[int]:
    part, rest = divmod(number, commits // (_PARTS + 1))
    if rest == 0 and 0 < part <= _PARTS:
        yield from range(part - 1, _CITED, _PARTS)


def _content(text: str) -> tuple[str, str]:
    return f"data {len(text)}", text
