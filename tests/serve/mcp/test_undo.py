"""Undo among several: nobody's change is taken back by another but by its id."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.errors import MdmemError
from tests.serve.mcp.conftest import Tools

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory

TOKEN = re.compile(r"token(\d+)")
FILES = ("notes/a.md", "notes/b.md")
MOVES = ("add", "add", "new", "replace", "undo", "undo", "undo two", "redo", "undo by id")


class Actors:
    """Two servers of clients of one name, and a person on the command line, on one vault.

    Args:
        root: of the vault.
        seed: what they do, and in which order.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._memory = mdmem.open(root)
        self._servers = [Tools(mdmem.open(root, actor="claude-code")) for _ in range(2)]
        self._person = mdmem.open(root, actor="alice")
        self._number = 0
        self._maker: dict[int, int] = {}  # who wrote each token
        self._taker: dict[int, int] = {}  # who took it away last

    def tokens(self) -> set[int]:
        texts = [self._memory.show(each.path).text for each in self._memory.ls()]
        return {int(number) for text in texts for number in TOKEN.findall(text)}

    def act(self) -> None:
        """One of them does something; what is there of the others must be what it was, but by id."""
        who, move = self._random.randrange(3), self._random.choice(MOVES)
        before, self._number = self.tokens(), self._number + 1
        token = f"token{self._number}"
        self._maker[self._number] = who
        target = self._random.choice(FILES)
        if move == "add":
            self._do(who, "section", path=target, text=f"- {token}", where="append")
        elif move == "new":
            self._do(who, "write", path=f"notes/{token}.md", content=f"{token}\n")
        elif move == "replace":
            own = sorted(each for each in before if self._maker[each] == who)
            if own:  # in its own line
                old = f"token{self._random.choice(own)}"
                for path in self._memory.ls():
                    if re.search(rf"\b{old}\b", self._memory.show(path.path).text):
                        self._do(who, "replace", path=path.path, old=f"{old}\n", new=f"{old}\n{token}\n")
        elif move == "undo by id":
            for change in self._random.sample(self._memory.history(), min(1, len(self._memory.history()))):
                self._do(who, "undo", change=change.id)
        else:
            self._do(who, "undo", count=1 + (move == "undo two"), redo=move == "redo")
        gone, new = before - self.tokens(), self.tokens() - before
        if move != "undo by id":
            assert {self._maker[each] for each in gone} <= {who}, move
            assert {self._taker.get(each, who) for each in new} <= {who}, move
        self._taker |= dict.fromkeys(gone, who)

    def _do(self, who: int, verb: str, **given: object) -> None:
        if who < 2:
            self._servers[who].box.call(verb, given)
            return
        try:
            if verb == "section":
                self._person.append(str(given["path"]), str(given["text"]))
            elif verb == "undo" and given.pop("redo", False):
                self._person.redo(count=1)
            else:
                getattr(self._person, verb)(**given)
        except MdmemError:
            pass  # it may be refused, and changes nothing then


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 500), marks=pytest.mark.soak)], ids=len)
def test_nobody_takes_back_what_another_did_but_by_id(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        mdmem.init(tmp_path / str(seed))
        actors = Actors(tmp_path / str(seed), seed)
        for _ in range(14):
            actors.act()


def test_undo_of_a_memory_that_is_gone_names_the_tool_that_brings_it_back(
    tools: Tools, memory: Memory
) -> None:
    made = memory.write("notes/a.md", "one\n")
    deleted = memory.rm("notes/a.md")
    assert f"undo change={deleted.id} brings it back" in tools("undo", change=made.id).texts[0]


def test_a_server_undoes_its_own_changes_newest_first_and_else_says_whose_the_last_is(
    vault_root: Path,
) -> None:
    one, two = (Tools(mdmem.open(vault_root, actor="claude-code")) for _ in range(2))
    one("write", path="a.md", content="a\n")
    one("write", path="b.md", content="b\n")
    last = two("write", path="c.md", content="c\n").data["change"]
    assert "undo" in one("undo").texts[0]
    assert not (vault_root / "b.md").exists()
    one("undo")
    assert not (vault_root / "a.md").exists()
    refused = one.error("undo")
    assert refused["message"] == "no change of yours to take back"
    assert refused["hint"] == (
        f"the last one is by claude-code ({last}): write c.md; undo change={last} takes it back"
    )
    one("undo", change=last)
    assert not (vault_root / "c.md").exists()
    assert two.error("undo")["code"] == "name-not-found"
    one("undo", redo=True)
    assert (vault_root / "c.md").exists()
    assert one.error("undo")["code"] == "name-not-found"  # what it has put back is the other's
    two("undo")
    assert not (vault_root / "c.md").exists()
