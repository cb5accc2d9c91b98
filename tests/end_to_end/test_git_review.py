"""What agents changed is decided by keys on a terminal: files and commit are those that an oracle writes."""

from __future__ import annotations

import random
import shlex
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.cli.screen import on_screen
from tests.git.conftest import VaultTree, set_up

if TYPE_CHECKING:
    from pathlib import Path

MEMORIES, ASKED, ENDED = 12, "[a,x,A,X,e,u,s,c,q,?]", "[c,u,q,?]"


class Line(NamedTuple):
    """A line before and after a change; None where it is not there."""

    before: str | None
    after: str | None

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


class Oracle:
    """Writes memories, what agents make of them, and what is to stand there once each change is decided."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.path = f"notes/n{number:02}.md"
        self.lines = [Line(f"# Notes {number}", f"# Notes {number}"), Line("", "")]
        for fact in range(9):
            said = f"- fact{number}x{fact} says alpha{fact} beta{fact} gamma{number}"
            ways = {1: Line(said, f"{said} now"), 4: Line(said, None), 6: Line(None, said)}
            ways[7] = Line(said, said.replace("says", "said"))
            self.lines.append(ways.get(fact, Line(said, said)))
        self.lines.append(Line(None, f"- the last of {number}"))
        self.keys = [chance.choice("aax") for line in self.lines if line.is_changed]

    def text(self, keys: str | list[str]) -> str:
        """The memory where rows are accepted, or skipped, and rejected by these keys."""
        left = list(keys)
        chosen = [
            (line.before if left.pop(0) == "x" else line.after) if line.is_changed else line.after
            for line in self.lines
        ]
        return "".join(f"{line}\n" for line in chosen if line is not None)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VaultTree:
    set_up(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return VaultTree(tmp_path / "work")


def prepare(tree: VaultTree) -> list[Oracle]:
    chance = random.Random(1)
    oracles = [Oracle(number, chance) for number in range(MEMORIES)]
    for each in oracles:
        tree.note(each.path, each.text("x" * 5))
    tree.commit()
    for each in oracles:
        tree.open("claude").write(each.path, each.text("a" * 5), overwrite=True)
    return oracles


def review(tree: VaultTree, typed: list[tuple[str, str]], *, editor: str = "true") -> str:
    seen = on_screen(
        "--vault", str(tree.root / "memories"), "git", "review", typed=typed, env={"EDITOR": editor}
    )
    assert seen.code == 0, seen.text
    return seen.text


@pytest.mark.parametrize("is_ahead", [False, True], ids=["one by one", "all ahead"])
def test_sixty_changes_are_decided_by_keys(tree: VaultTree, is_ahead: bool) -> None:
    oracles = prepare(tree)
    rows = [row for each in tree.memory.git.review() for row in each.rows]
    assert len(rows) == 5 * MEMORIES
    assert {row.by for row in rows} == {"claude"}
    oracles[3].keys, oracles[4].keys = [*"aaaaa"], [*"xxxxx"]
    oracles[5].keys[2] = "s"  # its memory is not committed
    keys = [key for each in oracles for key in each.keys]
    keys[15:25] = "A", "X"
    keys[2:2] = "a", "u", "x", "u", "?"
    if is_ahead:
        typed = [(ASKED, "".join(keys)), (ENDED, "c"), (ENDED, "q")]
    else:
        typed = [*((ASKED, key) for key in keys), (ENDED, "c"), (ENDED, "q")]
    text = review(tree, typed)
    assert "by claude" in text
    assert "a, x  accept or reject the row" in text
    for each in oracles:
        assert (tree.root / "memories" / each.path).read_text() == each.text(each.keys)
    taken = {each.path for each in oracles if "a" in each.keys and "s" not in each.keys}
    assert {*tree.git("show", "--name-only", "--format=").split()} == {f"memories/{path}" for path in taken}
    assert {*tree.git("log", "-1", "--format=%(trailers:key=Mdmem-Agent,valueonly)").split()} == {"claude"}
    left = tree.memory.git.review()
    assert [each.path for each in left] == [oracles[5].path]


# README: `mdmem git review` asks about each changed fact, and about a new memory whole or by facts; …
def test_an_edit_is_reviewed_and_undone_and_what_is_accepted_is_asked_again(
    tree: VaultTree, tmp_path: Path
) -> None:
    tree.note("notes/a.md", "- one is first\n")
    tree.commit()
    tree.note("notes/a.md", "- one is first\n- two\n")
    script = tmp_path / "editor.py"
    script.write_text("import sys\nfile = open(sys.argv[-1], 'a')\nfile.write('- three\\n')\n")
    editor = shlex.join([sys.executable, str(script)])
    text = review(tree, [(ASKED, "e"), (ASKED, "a"), (ASKED, "u"), (ASKED, "q")], editor=editor)
    assert "three" in text
    assert (tree.root / "memories/notes/a.md").read_text() == "- one is first\n- two\n- three\n"
    review(tree, [(ASKED, "e"), (ASKED, "u"), (ASKED, "\x1b[Aq")], editor=editor)
    assert (tree.root / "memories/notes/a.md").read_text() == "- one is first\n- two\n- three\n"
    text = review(tree, [(ASKED, "A"), (ENDED, "q")])
    assert "2 accepted" in text
    text = review(tree, [(ASKED, "X"), (ENDED, "q")])
    assert (tree.root / "memories/notes/a.md").read_text() == "- one is first\n"
    assert "no changes" in review(tree, [])


def test_a_new_memory_is_decided_fact_by_fact_once_it_is_split(tree: VaultTree) -> None:
    tree.note("notes/a.md", "# A\n")
    tree.commit()
    tree.open("claude").write("notes/b.md", "- one is right\n- two is wrong\n- three is right\n")
    tree.open("claude").write("notes/c.md", "- four is right\n- five is wrong\n")
    new = "[a,x,A,X,p,e,u,s,c,q,?]"
    text = review(
        tree,
        [
            *((new, "p"), (ASKED, "a"), (ASKED, "x"), (ASKED, "u"), (ASKED, "x"), (ASKED, "a")),
            *((new, "p"), (ASKED, "a"), (ASKED, "s"), (ENDED, "c"), (ENDED, "q")),
        ],
    )
    assert "  + - one is right" in text
    assert "3 left here, 0 accepted" in text
    assert text.count("by claude") > 2
    assert "notes/c.md: not accepted: 1 of 2 changes" in text
    assert text.count("that was all, 1 accepted") == 1  # what is split stays so, with what was decided
    assert tree.git("show", "HEAD:memories/notes/b.md") == "- one is right\n- three is right"
    assert tree.git("log", "-1", "--format=%(trailers:key=Mdmem-Agent,valueonly)").strip() == "claude"
    assert [each.path for each in tree.memory.git.review()] == ["notes/c.md"]


def test_what_is_accepted_stays_so_when_a_commit_leaves_its_memory_out(tree: VaultTree) -> None:
    tree.note("notes/a.md", "- one is first\n")
    tree.commit()
    tree.note("notes/a.md", "- one is first\n- two\n- three\n")
    text = review(tree, [(ASKED, "a"), (ASKED, "s"), (ENDED, "c"), (ENDED, "q")])
    assert "1 of 2 changes" in text
    assert text.count("that was all, 1 accepted") == 2


def test_a_refused_decision_is_told_and_asked_again(tree: VaultTree) -> None:
    tree.note("notes/a.md", "- one is first\n")
    tree.commit()
    tree.note("notes/a.md", "- one is first\n- two\n")
    file = tree.root / "memories/notes/a.md"
    editor = f"sh -c 'printf -- \"- other\\n\" > {file}' x"
    text = review(tree, [(ASKED, "e"), (ASKED, "x"), (ASKED, "q")], editor=editor)
    assert "cannot be reverted" in text
    assert file.read_text() == "- other\n"
