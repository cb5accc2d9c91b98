"""What the view of what counts costs a search, lineage as it grows, and a copy of the past."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import vaults
from machine import environment
from table import ratio_row
from timing import paired

from mdmem.facade.memory import Memory
from mdmem.index.query import SearchRequest
from mdmem.index.search import search

if TYPE_CHECKING:
    from setting import Setting
    from table import Row

_NOTES, _DERIVED = 10_000, 10_000
_QUERIES = 20
_PAIRS = 20


def measure(setting: Setting) -> list[Row]:
    return [_live_view(setting), _lineage(setting), _past(setting)]


def _live_view(setting: Setting) -> Row:
    """Searches with the states of a tenth of the memories, beside the same without any state."""
    notes, root = setting.count(_NOTES), setting.path("truth live")
    vaults.make(root, notes, setting.seed)
    for number in range(0, notes, 10):
        fields = ("valid_to: 2020-01-01", "expires: 2020-01-01", "valid_from: 2999-01-01")[number // 10 % 3]
        file = os.path.join(root, vaults.path(number))
        with open(file, encoding="utf-8", newline="") as opened:
            text = opened.read()
        head = "" if text.startswith("---\n") else "---\n"
        vaults.write(file, f"---\n{fields}\n{head}{text.removeprefix('---' + chr(10))}")
    memory = Memory(root)
    memory.sync()
    words = setting.chance("truth").sample(vaults.VOCABULARY, _QUERIES)

    def ask_all(_: int) -> None:
        for word in words:
            memory.index.sync()
            request = SearchRequest(query=word)
            headings = memory.index.headings
            memory.index.text(partial(search, request=request, read=memory.vault.read, headings=headings))

    pairs = paired(lambda _: [memory.search(word) for word in words], ask_all, setting.count(_PAIRS))
    what = f"{_QUERIES} searches of {notes:,} notes, of which a tenth does not count"
    return ratio_row(what, "the same without states", pairs, 1.1)


def _lineage(setting: Setting) -> Row:
    """Ancestors, descendants and sums of a chain and its branches, ten times as long."""
    few = setting.count(_DERIVED)
    asked = [_make_chain(setting.path(f"truth chain {count}"), count) for count in (few * 10, few)]

    def ask(memory: Memory) -> None:
        memory.lineage.descendants("notes/0.md")
        memory.lineage.stats()

    pairs = paired(lambda _: ask(asked[0]), lambda _: ask(asked[1]), 3)
    return ratio_row(f"lineage of {few * 10:,} memories", f"of {few:,}", pairs, 12)


def _make_chain(root: str, count: int) -> Memory:
    vaults.empty(root)
    os.makedirs(os.path.join(root, "notes"))
    for number in range(count):
        parents = [f"notes/{each}.md" for each in (number - 1, number // 2) if 0 <= each < number]
        vaults.write(
            os.path.join(root, f"notes/{number}.md"), f"---\nderived_from: {sorted({*parents})}\n---\nx\n"
        )
    memory = Memory(root)
    memory.sync()
    return memory


def _past(setting: Setting) -> Row:
    """A copy of yesterday, without its index, beside making the index of today."""
    notes, top = setting.count(_NOTES), setting.path("truth past")
    root = os.path.join(top, "memories")
    vaults.make(root, notes, setting.seed)
    now = datetime.now(UTC)
    date = (now - timedelta(days=2)).isoformat()
    env = {**environment(), "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
    names = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*names, "commit", "-qm", "notes"]):
        subprocess.run(["git", *words], cwd=top, env=env, check=True)
    memory = Memory(root)

    def index_cold(_: int) -> None:
        memory.index.close()
        shutil.rmtree(os.path.join(root, ".mdmem/local/index"), ignore_errors=True)
        Memory(root).sync()

    pairs = paired(
        lambda number: memory.past(now - timedelta(days=1, seconds=number)), index_cold, setting.count(3)
    )
    return ratio_row(f"`past` of yesterday on {notes:,} notes in git", "a cold index", pairs, 1.0)
