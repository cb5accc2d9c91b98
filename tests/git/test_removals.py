"""Which commit took a file away last, and where it went."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.git.history import History, Removal
from mdmem.git.removals import Removals
from mdmem.git.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BODY = "".join(f"line {number}\n" for number in range(20))


def find(tree: Any, names: Iterable[str], file: Path | str = "") -> dict[str, Removal]:
    repository = Repository.find(str(tree.root))
    assert repository
    head = repository.head()
    assert head
    with closing(Removals(History(repository), head, str(file))) as removals:
        return {name: found for name in names if (found := removals.find(name))}


def merge(tree: Any, *names: str) -> str:
    """Merge the branch `side`; the merge itself takes these files away."""
    tree.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    for name in names:
        tree.git("rm", "--quiet", "-f", name)
    tree.git("commit", "--quiet", "--message", "merge")
    return str(tree.git("rev-parse", "HEAD"))


def test_a_file_that_is_deleted_or_renamed_is_found_with_its_commit(tree: Any) -> None:
    for name in ("a.py", "b.py", "ü\n.py", "D", "R100", "0" * 40, "kept.py"):
        tree.write(name, BODY + name)
    tree.commit()
    tree.git("mv", "a.py", "c.py")
    renamed = tree.commit()
    tree.git("rm", "--quiet", "b.py", "ü\n.py", "D", "R100", "0" * 40)
    deleted = tree.commit()
    names = ("a.py", "b.py", "ü\n.py", "D", "R100", "0" * 40, "kept.py", "never.py", "a\udcff")
    gone = dict.fromkeys(names[1:6], Removal(deleted))
    assert find(tree, names) == {"a.py": Removal(renamed, "c.py"), **gone}


def test_the_last_of_several_removals_counts(tree: Any) -> None:
    last = ""
    for _ in range(2):
        tree.write("a.py", BODY)
        tree.commit()
        tree.git("rm", "--quiet", "a.py")
        last = tree.commit()
    assert find(tree, ["a.py"]) == {"a.py": Removal(last)}


def test_what_a_merged_branch_or_the_merge_itself_took_away_was_there(tree: Any) -> None:
    for name in ("side.py", "ours.py", "merge.py", "kept.py"):
        tree.write(name, BODY + name)
    tree.commit()
    tree.git("branch", "side")
    tree.git("rm", "--quiet", "ours.py")
    ours = tree.commit()
    tree.git("checkout", "--quiet", "side")
    tree.git("rm", "--quiet", "side.py")
    side = tree.commit()
    tree.git("checkout", "--quiet", "-")
    merged = merge(tree, "merge.py")
    assert find(tree, ["side.py", "ours.py", "merge.py", "kept.py"]) == {
        "side.py": Removal(side),
        "ours.py": Removal(ours),
        "merge.py": Removal(merged),
    }


def test_what_is_kept_is_gone_on_from_and_thrown_away_when_history_is_another_one(
    tree: Any, tmp_path: Path
) -> None:
    file, names = tmp_path / "removals", [f"{number}.py" for number in range(6)]
    for name in names:
        tree.write(name, BODY + name)
    start = tree.commit()
    for name in names[:3]:
        tree.git("rm", "--quiet", name)
        tree.commit()
        assert find(tree, names, file) == find(tree, names)
    tree.git("reset", "--quiet", "--hard", start)
    tree.git("rm", "--quiet", names[4])
    tree.commit()
    found = find(tree, names, file)
    assert found == find(tree, names)
    assert [*found] == [names[4]]


@pytest.mark.parametrize(
    "damage", [b"no database at all, but a text that is long enough", b"SQLite format 3\0"]
)
def test_a_file_that_is_damaged_or_locked_is_done_without(tree: Any, tmp_path: Path, damage: bytes) -> None:
    tree.write("a.py", BODY)
    tree.commit()
    tree.git("rm", "--quiet", "a.py")
    commit = tree.commit()
    (tmp_path / "removals").write_bytes(damage)
    assert find(tree, ["a.py"], tmp_path / "removals") == {"a.py": Removal(commit)}
    assert find(tree, ["a.py"], tmp_path / "no/folder") == {"a.py": Removal(commit)}
    (tmp_path / "removals").unlink()
    with closing(sqlite3.connect(tmp_path / "removals")) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert find(tree, ["a.py"], tmp_path / "removals") == {"a.py": Removal(commit)}


@pytest.mark.parametrize("seed", range(3))
def test_one_walk_finds_what_a_question_for_each_file_finds(tree: Any, seed: int) -> None:
    """Git is asked about each file alone, with all branches that a merge brought in."""
    rng, names = random.Random(seed), [f"{number}.txt" for number in range(8)]
    for _ in range(12):
        for name in rng.sample(names, 2):
            if (tree.root / name).exists():
                tree.git("rm", "--quiet", name)
            else:
                tree.write(name, f"{name} {rng.random()}\n")
        tree.commit()
    found = find(tree, names)
    for name in names:
        query = ("log", "-1", "--full-history", "--no-renames", "--diff-filter=D", "--format=%H", "--", name)
        asked = str(tree.git(*query))
        assert (found[name].commit if name in found else "") == asked


def test_a_partial_clone_says_what_it_lost_without_the_content_that_it_lacks(
    tree: Any, tmp_path: Path
) -> None:
    tree.write("a.py", BODY)
    tree.write("b.py", BODY + "b")
    tree.commit()
    tree.git("mv", "a.py", "c.py")
    tree.write("c.py", f"{BODY}more\n")
    tree.git("rm", "--quiet", "b.py")
    commit = tree.commit()
    tree.git("rm", "--quiet", "c.py")
    last = tree.commit()
    tree.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    tree.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{tree.root}", str(clone))
    repository = Repository.find(str(clone))
    assert repository
    with closing(Removals(History(repository), last)) as removals:
        assert removals.find("b.py") == Removal(commit)
        assert removals.find("a.py") == Removal(commit)
        assert removals.find("c.py") == Removal(last)
