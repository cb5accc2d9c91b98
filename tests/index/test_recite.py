"""Changing citations: to where the code is now in the style that each has, and pinned, and nothing else."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from mdmem.index.index import Index
from mdmem.index.recite import pinned, repointed
from mdmem.index.source import pin_of
from mdmem.index.view import View
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mdmem.vault.plan import EditPlan

CODE = "one = 1\ntwo = 2\nthree = 3\n\n\ndef work(x):\n    return x\n"
SHIFTED = f"zero = 0\n\n{CODE}"


class Work:
    """A workspace with code, and a vault in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "memories"
        self.put({"memories/.mdmem/config.toml": "", "src/app.py": CODE})
        self.vault = Vault(str(self.root))
        self.index = Index(str(self.root))
        self.view = View(self.index, self.vault)

    def put(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)

    def note(self, text: str, path: str = "notes/a.md") -> None:
        self.put({f"memories/{path}": text})
        self.index.sync()

    def apply(self, plan: EditPlan) -> str:
        """What the note says once a plan is applied."""
        self.vault.apply(plan)
        self.index.sync()
        return (self.root / "notes/a.md").read_text()

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self) -> None:
        if not (self.folder / ".git").exists():
            self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    work = Work(tmp_path / "ws")
    yield work
    work.index.close()


def pin(*lines: str) -> str:
    return f"<!-- pin {pin_of(lines)} -->"


# ------------------------------------------------------------------------------------------------ re-pointing


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("`src/app.py#L2`", "`src/app.py#L4`"),
        ("`src/app.py#L2-L3`", "`src/app.py#L4-L5`"),
        ("`src/app.py#L2-3`", "`src/app.py#L4-5`"),
        ("`src/app.py:2`", "`src/app.py:4`"),
        ("`src/app.py:2-3`", "`src/app.py:4-5`"),
        ("[two](../../src/app.py#L2)", "[two](../../src/app.py#L4)"),
        ("[two](<../../src/app.py#L2>)", "[two](<../../src/app.py#L4>)"),
        ("[two](/src/app.py#L2 'title')", "[two](/src/app.py#L4 'title')"),
        ("[two](src/app.py#L2)", "[two](src/app.py#L4)"),
        ("a `src/app.py#L1` b `src/app.py#L3` c", "a `src/app.py#L3` b `src/app.py#L5` c"),
        ("`src/app.py#work`", "`src/app.py#work`"),
        ("`src/app.py`", "`src/app.py`"),
    ],
)
def test_what_moved_is_cited_where_it_is_now_in_the_same_style(work: Work, before: str, after: str) -> None:
    work.note(f"# Äh 😀\r\n\r\nSee {before}.\r\n")
    work.put({"src/app.py": SHIFTED})
    plan = repointed(work.view)
    if before == after:
        assert plan.changes == ()
    else:
        assert work.apply(plan).encode() == f"# Äh 😀\n\nSee {after}.\n".encode()
        assert (work.root / "notes/a.md").read_bytes() == f"# Äh 😀\r\n\r\nSee {after}.\r\n".encode()
    assert repointed(work.view).changes == ()


def test_a_pin_stays_what_it_is_when_its_lines_move(work: Work) -> None:
    work.note(f"See `src/app.py#L2` {pin('two = 2')}.\n")
    work.put({"src/app.py": SHIFTED})
    assert work.apply(repointed(work.view)) == f"See `src/app.py#L4` {pin('two = 2')}.\n"


def test_a_file_that_git_says_was_renamed_is_cited_by_its_new_name(work: Work) -> None:
    lines = "See `src/app.py#L2`, [x](../../src/app.py#L1), `src/app.py` and `src/app.py#work`.\n"
    work.note(lines)
    work.commit()
    work.git("mv", "src/app.py", "src/my app.py")
    work.commit()
    found = work.apply(repointed(work.view))
    assert "[x](../../src/my%20app.py#L1)" in found
    assert "src/app.py" not in found
    assert repointed(work.view).changes == ()


def test_a_symbol_that_was_renamed_is_cited_by_its_new_name(work: Work) -> None:
    work.put({"src/app.py": "class Old:\n    def run(self):\n        return 1\n\n    x = 2\n"})
    work.note("See `src/app.py#Old.run`.\n")
    work.commit()
    work.put({"src/app.py": "class New:\n    def run(self):\n        return 1\n\n    x = 2\n"})
    assert work.apply(repointed(work.view)) == "See `src/app.py#New.run`.\n"


def test_what_changed_is_gone_or_ambiguous_stays_as_it_is(work: Work) -> None:
    work.note("`src/app.py#L2` `src/gone.py#L1` `src/app.py#nothing` `src/app.py#L99`\n")
    work.put({"src/app.py": CODE.replace("two = 2", "two = 22")})
    assert repointed(work.view).changes == ()
    work.put({"src/app.py": f"x\ntwo = 2\n{'y' * 9}\ntwo = 2\n"})
    assert "L2`" in (work.root / "notes/a.md").read_text()


def test_only_the_named_memories_are_changed_and_what_cannot_be_read_is_left_out(work: Work) -> None:
    work.note("`src/app.py#L2`\n")
    work.note("`src/app.py#L2`\n", "notes/b.md")
    work.put({"src/app.py": SHIFTED})
    assert repointed(work.view, ["notes/b.md"]).paths == ("notes/b.md",)
    (work.root / "notes/b.md").write_bytes(b"\xff")
    plan = repointed(work.view)
    assert [change.path for change in plan.changes] == ["notes/a.md"]
    assert [text.startswith("notes/b.md") for text in plan.left_out] == [True]


# --------------------------------------------------------------------------------------------------- pinning


def test_a_pin_is_put_right_behind_each_citation_of_lines_or_symbols(work: Work) -> None:
    work.note(
        "a `src/app.py#L2-L3`, [x](../../src/app.py#L1) and `src/app.py#work`; `src/app.py`, `src/x.py#L1`\n"
    )
    found = work.apply(pinned(work.view))
    assert found == (
        f"a `src/app.py#L2-L3`{pin('two = 2', 'three = 3')}, [x](../../src/app.py#L1){pin('one = 1')} and"
        f" `src/app.py#work`{pin('def work(x):', '    return x')}; `src/app.py`, `src/x.py#L1`\n"
    )
    assert pinned(work.view).changes == ()
    assert pinned(work.view, accept=True).changes == ()


def test_what_has_changed_is_pinned_anew_only_when_that_is_accepted(work: Work) -> None:
    work.note(f"See `src/app.py#L2` {pin('two = 2')}.\n")
    work.put({"src/app.py": CODE.replace("two = 2", "two = 22")})
    assert pinned(work.view).changes == ()
    assert work.apply(pinned(work.view, accept=True)) == f"See `src/app.py#L2` {pin('two = 22')}.\n"


def test_what_has_changed_and_moved_is_accepted_where_it_is_now(work: Work) -> None:
    """Else it would be other lines that somebody has read."""
    work.note("See `src/app.py#L2` and [x](../../src/app.py#L2).\n")
    work.commit()
    work.put({"src/app.py": SHIFTED.replace("two = 2", "two = 22")})
    work.commit()
    found = work.apply(pinned(work.view, accept=True))
    assert found == f"See `src/app.py#L4`{pin('two = 22')} and [x](../../src/app.py#L4){pin('two = 22')}.\n"


def test_what_moved_is_not_pinned_before_it_is_cited_where_it_is(work: Work) -> None:
    work.note("See `src/app.py#L2`.\n")
    work.put({"src/app.py": SHIFTED})
    assert pinned(work.view, accept=True).changes == ()
    work.apply(repointed(work.view))
    assert work.apply(pinned(work.view)) == f"See `src/app.py#L4`{pin('two = 2')}.\n"
