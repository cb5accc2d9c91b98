"""git: the log, the diff and the blame of one memory among 10,000 and 1,000 commits, beside git's own.

The budget is on the call in a process that runs already. Of the whole process, which is mostly the start of
Python, three ratios are told: plain, and without what a click program or `mdmem show` takes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from machine import environment, installed
from startup import write_app
from table import Row, milliseconds, ratio, ratio_row
from timing import Paired, paired, program, spread

import mdmem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from setting import Setting

_MOST = 3.0
_PAIRS = 12
_NOTES, _COMMITS, _HOT = 10_000, 1_000, 50
_HOUR = 3600
_WORDS = (
    *("agent", "backup", "branch", "build", "cache", "client", "config", "database", "deploy", "design"),
    *("index", "journal", "language", "limit", "lock", "merge", "model", "option", "parser", "query"),
)


def measure(setting: Setting) -> list[Row]:
    root = setting.path("git")
    notes, commits = setting.count(_NOTES), setting.count(_COMMITS)
    _make(setting, root, notes, commits)
    git = shutil.which("git") or "git"
    name = "memories/notes/0.md"
    base = "HEAD~10"
    memory = mdmem.open(f"{root}/memories")
    asked: dict[str, tuple[Callable[[], object], list[str]]] = {
        "log notes/0.md": (lambda: memory.git.log("notes/0.md"), ["log", "--follow", "--", name]),
        f"diff {base}..HEAD --in notes/0.md": (
            lambda: memory.git.diff(f"{base}..HEAD", ["notes/0.md"]),
            ["diff", f"{base}..HEAD", "--", name],
        ),
        f"diff {base} --in notes/0.md": (
            lambda: memory.git.diff(base, ["notes/0.md"]),
            ["diff", base, "--", name],
        ),
        f"diff {base}": (lambda: memory.git.diff(base), ["diff", base]),
        "blame notes/0.md": (lambda: memory.git.blame("notes/0.md"), ["blame", "--", name]),
    }
    mdmem_program = [installed("mdmem"), "--vault", f"{root}/memories"]
    shown = program([*mdmem_program, "show", "notes/0.md"], environment())
    nothing = program([sys.executable, write_app(setting.path("git-click")), "--version"], environment())
    rows = []
    for ours, (call, theirs) in asked.items():
        what = f"`git {ours}` in {notes:,} notes and {commits:,} commits"
        beside = program([git, "-C", root, "--no-pager", *theirs], environment())
        count = setting.count(_PAIRS)
        called = paired(lambda _, call=call: call(), beside, count)  # type: ignore[misc]
        if name in theirs:
            rows.append(ratio_row(f"{what}, the call", f"`git {theirs[0]}`", called, _MOST))
        mine = program([*mdmem_program, "git", *ours.split()], environment())
        starts = [paired(mine, start, count) for start in (shown, nothing)]
        rows.append(_row(what, theirs[0], paired(mine, beside, count), *starts))
    return rows


def _row(what: str, command: str, pairs: Paired, shown: Paired, nothing: Paired) -> Row:
    """The whole process, which has no budget."""
    theirs = spread(pairs.theirs)
    without_show, without_click = (start.difference.median / theirs.median for start in (shown, nothing))
    show, click = (milliseconds(spread(start.theirs).median) for start in (shown, nothing))
    return Row(
        what=f"{what}, whole process",
        ours=spread(pairs.ours).text(milliseconds),
        beside=f"`git {command}`: {theirs.text(milliseconds)}",
        compared=f"{ratio(pairs.ratio.median)}; {ratio(without_click)} without a click program ({click}), "
        f"{ratio(without_show)} without `mdmem show` ({show})",
    )


def _make(setting: Setting, root: str, notes: int, commits: int) -> None:
    os.makedirs(root)
    chance = setting.chance("git")

    def fact() -> str:
        return f"- {' '.join(chance.choices(_WORDS, k=10))} {chance.randrange(10**6)}\n"

    texts = {
        f"memories/notes/{n}.md": f"---\ntitle: Note {n}\n---\n# Note {n}\n\n"
        + "".join(fact() for _ in range(8))
        for n in range(notes)
    }

    def stream() -> Iterator[bytes]:
        for number in range(commits):
            when = f"A <a@example.org> {1_700_000_000 + number * _HOUR} +0000"
            message = f"Change {number}\n\nMdmem-Op: append\nMdmem-Agent: claude\n"
            yield f"commit refs/heads/main\ncommitter {when}\ndata {len(message)}\n{message}\n".encode()
            changed = [f"memories/notes/{chance.randrange(min(_HOT, notes))}.md" for _ in range(2)]
            for name in changed:
                texts[name] += fact()
            for name in texts if not number else changed:
                text = texts[name]
                yield f"M 100644 inline {name}\ndata {len(text)}\n{text}\n".encode()

    for arguments in (["init", "--quiet", "--initial-branch=main"], ["fast-import", "--quiet"]):
        given = b"".join(stream()) if arguments[0] == "fast-import" else b""
        subprocess.run(["git", "-C", root, *arguments], input=given, check=True)
    mdmem.init(f"{root}/memories")
    subprocess.run(["git", "-C", root, "reset", "--quiet", "--hard"], check=True)
