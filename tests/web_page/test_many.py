"""Two hundred changes in sixty memories, decided at twenty keys a second, end as an oracle says."""

from __future__ import annotations

import random
import re
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.waiting import until
from tests.web_page.browsing import MILLISECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.git.conftest import VaultTree
    from tests.web_page.browsing import Visit

pytestmark = pytest.mark.timeout(600)
MEMORIES, CHANGES, LATER = 60, 200, 20
PAUSE = 0.05  # seconds from one key to the next
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty")
READ = """() => {
    const row = document.querySelector(".row.current");
    return [row?.dataset.row ?? "", row?.querySelector(".words")?.textContent ?? "",
        row?.querySelector(".state").textContent];
}"""
WAITING = "() => [...document.querySelectorAll('.row .state')].filter(state => !state.textContent).length"


class Line(NamedTuple):
    """A line before and after a change; None where it is not there. Its token is in no other one."""

    token: str
    before: str | None
    after: str | None


class Oracle:
    """Knows what stands in each memory before and after, and is told which changes are accepted."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.rejected = chance, set[str]()
        self.memories = {f"notes/n{number:02}.md": self.make_lines(number) for number in range(MEMORIES)}
        tokens = [
            line.token for lines in self.memories.values() for line in lines if line.before != line.after
        ]
        for token in chance.sample(tokens, len(tokens) - CHANGES):
            self.keep(token)

    def make_lines(self, number: int) -> list[Line]:
        head = f"# Memory {number}"
        lines = [Line("", head, head), Line("", "", "")]
        for fact in range(8):
            token = f"k{number:02}f{fact}"
            said = f"- {token} says {' '.join(self.chance.sample(WORDS, 5))} {token}"
            ways = [Line(token, said, said), Line(token, said, f"{said} again"), Line(token, said, None)]
            lines.append(ways[(0, 1, 0, 2, 1)[fact % 5]])
        return lines

    def keep(self, token: str) -> None:
        """Let a change be none."""
        for lines in self.memories.values():
            for at, line in enumerate(lines):
                if line.token == token:
                    lines[at] = Line(token, line.before, line.before)

    def add(self, path: str, token: str) -> str:
        """Let an agent add a line."""
        said = f"- {token} came in while others were read"
        self.memories[path].append(Line(token, None, said))
        return said

    def write(self, path: str, *, is_before: bool = False) -> str:
        """The memory as it was, or with what is not rejected."""
        chosen = [
            line.before if is_before or line.token in self.rejected else line.after
            for line in self.memories[path]
        ]
        return "".join(f"{line}\n" for line in chosen if line is not None)


@pytest.mark.parametrize("is_busy", [False, True], ids=["alone", "beside an agent"])
def test_two_hundred_changes_are_decided(
    tree: VaultTree, visits: Callable[..., Visit], is_busy: bool
) -> None:
    oracle = Oracle(random.Random(3))
    for path in oracle.memories:
        tree.note(path, oracle.write(path, is_before=True))
    tree.commit()
    claude = tree.open("claude")
    for path in oracle.memories:
        if oracle.write(path) != (tree.root / "memories" / path).read_text():
            claude.write(path, oracle.write(path), overwrite=True)
    assert sum(len(each.rows) for each in tree.memory.git.review()) == CHANGES
    page = visits()
    page.page.set_default_timeout(4 * MILLISECONDS)  # two hundred decisions are sent one by one
    page.see(".row")
    agent = threading.Thread(target=write_more, args=(tree, oracle))
    if is_busy:
        agent.start()
    keys, decided = decide_all(page, oracle)
    if is_busy:
        agent.join()
        page.wait_for("count => document.querySelectorAll('.row').length >= count", 1)
        more, later = decide_until_quiet(page, oracle, CHANGES + LATER - len(decided))
        keys, decided = keys + more, decided | later
    assert len(decided) == CHANGES + LATER * is_busy
    page.wait_for("() => !document.querySelector('.rejected')")
    page.press("c")
    page.see("h1", "Nothing to review")
    for path in oracle.memories:
        assert (tree.root / "memories" / path).read_text() == oracle.write(path), path
        assert f"{tree.git('show', f'HEAD:memories/{path}')}\n" == oracle.write(path), path
    assert tree.git("rev-list", "--count", "HEAD") == "2"
    assert page.said == []
    if not is_busy:
        assert keys <= 1.3 * CHANGES


def write_more(tree: VaultTree, oracle: Oracle) -> None:
    cursor = tree.open("cursor")
    for number in range(LATER):
        path = f"notes/n{number * 7 % MEMORIES:02}.md"
        cursor.append(path, oracle.add(path, f"later{number:02}"))
        time.sleep(10 * PAUSE)


def decide_all(page: Visit, oracle: Oracle) -> tuple[int, set[str]]:
    """Decide what is in focus, key by key, until nothing waits; return the number of keys, and the tokens."""
    keys, decided, next_at = 0, set[str](), time.monotonic()
    while True:
        row, words, state = page.page.evaluate(READ)
        if not row or state:
            if page.page.evaluate(WAITING) == 0 and not page.page.locator("main > button").count():
                return keys, decided
            key = "j" if row else ""
            until(lambda: page.page.evaluate(WAITING))
        else:
            token = re.search(r"k\d\df\d|later\d\d", words)
            assert token, words
            key = "x" if hash_of(token[0]) % 3 == 0 else "a"
            decided.add(token[0])
            if key == "x":
                oracle.rejected.add(token[0])
        time.sleep(max(0.0, next_at - time.monotonic()))
        next_at = max(next_at, time.monotonic() - PAUSE) + PAUSE
        if key:
            page.press(key)
            keys += 1


def decide_until_quiet(page: Visit, oracle: Oracle, left: int) -> tuple[int, set[str]]:
    keys, decided = 0, set[str]()
    while len(decided) < left:
        page.wait_for("() => [...document.querySelectorAll('.row .state')].some(state => !state.textContent)")
        if page.page.evaluate(READ)[2]:
            page.press("a")
        more, found = decide_all(page, oracle)
        keys, decided = keys + more, decided | found
    return keys, decided


def hash_of(token: str) -> int:
    return sum(map(ord, token))
