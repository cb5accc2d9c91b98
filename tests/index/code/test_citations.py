"""What became of cited code, asked of real repositories.

Changing citations: to where the code is now in the style that each has, and pinned, and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.diagnostic import Span
from mdmem.document.markdown.inline import Citation
from mdmem.facade.memory import Memory
from mdmem.index.code import citations
from mdmem.index.code.citations import Judgement, locator, path_to, pinned, pinning, repointed
from mdmem.index.code.workspace import LineMap, Source, Workspace, pin_of
from mdmem.index.index import Index
from mdmem.index.view import View
from mdmem.vault.vault import Vault
from tests import speed
from tests.git.conftest import Tree
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from mdmem.vault.plan import EditPlan


NOTE = "memories/notes/a.md"
BLOCK = ["def total(prices):", "    # sums up all that was bought", "    return sum(prices)"]
OTHERS = [f"value_{number} = {number}" for number in range(12)]
FILE = [*OTHERS[:4], *BLOCK, *OTHERS[4:]]  # the block stands in lines 5 to 7


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def cite(written: str, *, line: int = 1, pin: str = "", in_link: bool = False) -> Citation:
    """`path`, `path:3-5`, `path#L3-L5` or `path#symbol`."""
    found = re.fullmatch(r"(?P<path>.*?)(?:(?:#L|:)(?P<a>\d+)(?:-L?(?P<b>\d+))?|#(?P<symbol>.+))?", written)
    assert found is not None
    first = int(found["a"]) if found["a"] else None
    last = int(found["b"]) if found["b"] else first
    empty = Span(0, 0)
    symbol = found["symbol"] or ""
    return Citation(found["path"], first, last, symbol, empty, line, empty, pin, empty, in_link)


class Project(Tree):
    """A workspace with a note that cites code; every question is asked anew."""

    def write(self, path: str, content: str | bytes | list[str]) -> None:
        super().write(path, text(content) if isinstance(content, list) else content)

    def noted(self, path: str, content: str | bytes | list[str]) -> str:
        """Commit a file together with the note that cites it."""
        self.write(path, content)
        self.write(NOTE, "cited\n")
        return self.commit()

    def judge(self, written: str, *, pin: str = "", in_link: bool = False, seen: str = "") -> Judgement:
        with Workspace(str(self.root)) as workspace:
            return citations.judge(workspace, NOTE, cite(written, pin=pin, in_link=in_link), seen)

    def pin(self, written: str) -> str:
        with Workspace(str(self.root)) as workspace:
            return citations.pin_now(workspace, NOTE, cite(written))

    def state(self, written: str, **given: Any) -> str:
        return self.judge(written, **given).state


@pytest.fixture
def plain(tmp_path: Path) -> Project:
    """A workspace without git."""
    (tmp_path / "work").mkdir()
    return Project(tmp_path / "work")


@pytest.fixture
def project(plain: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.org")
    plain.git("init", "--quiet", "--template=", "--initial-branch=main")
    return plain


# ----------------------------------------------------------------------------------- a name, without a folder


@pytest.fixture(params=["plain", "project"])
def any_workspace(request: pytest.FixtureRequest) -> Project:
    """A workspace, with git and without."""
    found: Project = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("written", ["app.py", "app.py:5-7", "app.py#total"])
def test_a_file_of_the_workspace_is_found_by_its_name(any_workspace: Project, written: str) -> None:
    any_workspace.write("deep/src/app.py", FILE)
    any_workspace.write(".gitignore", "vendor/\n")
    any_workspace.write("vendor/app.py", "other\n")
    any_workspace.write(".venv/app.py", "other\n")
    (any_workspace.root / "link").symlink_to("deep")

    judged = any_workspace.judge(written)

    assert (judged.state, judged.path) == ("ok", "deep/src/app.py")
    assert any_workspace.judge(written, pin=any_workspace.pin(written)).state == "unchanged"


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        (["b/app.py", "a/app.py"], "2 files have this name: a/app.py, b/app.py"),
        (
            [f"{n}/app.py" for n in range(7)],
            "7 files have this name: 0/app.py, 1/app.py, 2/app.py, 3/app.py, 4/app.py and 2 others",
        ),
    ],
)
def test_a_name_that_several_files_have_is_ambiguous(plain: Project, others: list[str], reason: str) -> None:
    for path in others:
        plain.write(path, FILE)

    judged = plain.judge("app.py:5-7")

    assert (judged.state, judged.path, judged.reason) == ("ambiguous", "app.py", reason)


def test_only_a_bare_name_is_looked_for_and_only_where_nothing_is(project: Project) -> None:
    project.write("app.py", FILE)
    project.noted("src/app.py", ["other"])
    assert project.judge("app.py").path == "app.py"
    assert project.state("lib/app.py") == "unknown"
    assert project.state("app.js") == "unknown"
    assert project.state("no.py", in_link=True) == "dangling"

    (project.root / "app.py").unlink()
    project.commit()
    judged = project.judge("app.py")
    assert (judged.state, judged.path) == ("gone", "app.py")


@cases("new, state", [("", "gone"), ("old/setup.cfg", "moved")])
def test_a_name_alone_means_no_file_that_was_gone_when_it_was_written(
    project: Project, new: str, state: str
) -> None:
    project.noted("setup.cfg", OTHERS)
    (project.root / "setup.cfg").unlink()
    if new:
        project.write(new, OTHERS)
    project.commit()
    assert project.state("setup.cfg") == state

    project.write(NOTE, "in other words\n")
    assert project.state("setup.cfg") == state  # nobody knows what was there when this was written
    project.commit()
    judged = project.judge("setup.cfg")
    assert (judged.state, judged.path) == (("ok", new) if new else ("unknown", "setup.cfg"))
    assert project.state("setup.cfg", pin="0" * 16) == state.replace("moved", "changed")
    assert project.state("./setup.cfg") == state


@pytest.mark.parametrize("written", ["index.html", "index.html:5-7"])
def test_a_name_alone_means_the_file_beside_the_memory_before_one_that_is_gone(
    project: Project, written: str
) -> None:
    beside = f"{os.path.dirname(NOTE)}/index.html"
    project.write("index.html", OTHERS)
    project.write("other/index.html", OTHERS)
    project.write(beside, FILE)
    project.noted("a.txt", "a\n")
    (project.root / "index.html").unlink()
    project.commit()
    judged = project.judge(written)
    assert judged.state in ("ok", "unchanged")
    assert judged.path == beside


def test_a_name_alone_keeps_meaning_a_file_that_is_gone_when_one_comes_beside_the_memory(
    project: Project,
) -> None:
    project.noted("index.html", OTHERS)
    (project.root / "index.html").unlink()
    project.write(f"{os.path.dirname(NOTE)}/index.html", BLOCK * 3)
    project.commit()
    assert project.state("index.html") == "gone"
    assert project.state("index.html:5-7") == "gone"


def test_a_name_in_another_namespace_is_not_found(plain: Project) -> None:
    plain.write("memories/users/bob/notes/plan.md", "secret\n")
    plain.write("memories/users/alice/notes/own.md", "mine\n")

    alice = Vault(str(plain.root / "memories"), "users/alice")
    with Workspace(str(plain.root), alice.hides) as workspace:
        assert workspace.named("plan.md") == ()
        assert workspace.named("own.md") == ("memories/users/alice/notes/own.md",)


def test_a_name_is_not_looked_for_among_too_many_files(
    plain: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.index.code.workspace.MOST_FILES", 2)
    for path in ("a/app.py", "b.py", "c.py"):
        plain.write(path, FILE)

    assert plain.state("app.py") == "unknown"


# ----------------------------------------------------------------------------------------- lines, with git


def test_lines_that_are_what_they_were_are_unchanged(project: Project) -> None:
    commit = project.noted("src/a.py", FILE)
    project.write("src/a.py", [*FILE[:9], "new", *FILE[9:]])
    against = f"git {commit[:12]}"
    assert project.judge("src/a.py#L5-L7") == Judgement("unchanged", "src/a.py", 5, 7, against=against)
    assert project.state("src/a.py:5-7") == "unchanged"
    assert project.state("src/a.py#L7-L5") == "unchanged"


def test_what_is_older_than_a_shallow_clone_is_unknown(project: Project, tmp_path: Path) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", [line.replace("value_2 = 2", "value_2 = 9") for line in FILE])
    project.commit()
    project.git("clone", "--quiet", "--depth", "1", f"file://{project.root}", str(tmp_path / "clone"))
    cited = cite("a.py:3-4")
    for root, state, count in ((project.root, "changed", 0), (tmp_path / "clone", "unknown", 1)):
        with Workspace(str(root)) as workspace:
            judged = citations.judge(workspace, NOTE, cited, citations.pin_now(workspace, NOTE, cited))
            assert (judged.state, len(workspace.notes)) == (state, count)
    (tmp_path / "clone" / NOTE).write_text("written here\n")
    with Workspace(str(tmp_path / "clone")) as workspace:
        judged = citations.judge(workspace, NOTE, cited, citations.pin_now(workspace, NOTE, cited))
        assert (judged.state, workspace.notes) == ("unchanged", [])


def test_lines_move_with_what_is_written_above_them(project: Project) -> None:
    project.noted("src/a.py", FILE)
    project.write("src/a.py", ["import os", "", *FILE])
    judged = project.judge("src/a.py#L5-L7")
    assert (judged.state, judged.first, judged.last, judged.reason) == ("moved", 7, 9, "now lines 7 to 9")
    assert project.judge("src/a.py#L5").reason == "now line 7"


def test_a_block_that_moved_past_others_is_found_by_its_content(project: Project) -> None:
    project.noted("src/a.py", FILE)
    project.write("src/a.py", [*OTHERS, "", *BLOCK])
    judged = project.judge("src/a.py#L5-L7")
    assert (judged.state, judged.first, judged.last) == ("moved", 14, 16)


def test_a_line_as_common_as_an_else_is_not_looked_for_elsewhere(project: Project) -> None:
    project.noted("a.py", [*OTHERS[:4], "else:", *OTHERS[4:]])
    project.write("a.py", [*OTHERS, "else:"])
    assert project.state("a.py:5") == "gone"


def test_an_old_copy_is_not_what_was_cited(project: Project) -> None:
    project.noted("a.py", [*FILE, *BLOCK])
    project.write("a.py", [*OTHERS, *BLOCK])
    assert project.state("a.py:5-7") == "gone"
    assert project.state("a.py:16-18") == "moved"


def test_of_several_new_copies_the_nearest_counts(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", ["x = 1", *BLOCK, *OTHERS, "y = 1", *BLOCK, "z = 1", *BLOCK])
    assert project.judge("a.py:5-7")[:3] == ("moved", "a.py", 2)


def test_two_places_that_are_as_near_are_ambiguous(project: Project) -> None:
    project.noted("a.py", FILE)
    # It was deleted before line 9; the copies begin in lines 2 and 16.
    project.write("a.py", ["x = 1", *BLOCK, *OTHERS[:10], "y = 1", *BLOCK, *OTHERS[10:]])
    judged = project.judge("a.py:5-7")
    assert judged.reason == "the same lines stand in 2 places: lines 2 to 4, lines 16 to 18"
    assert judged[:4] == ("ambiguous", "a.py", 5, 7)


def test_where_two_places_are_as_near_a_third_one_is_told_as_well(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", ["x = 1", *BLOCK, *OTHERS[:10], "y = 1", *BLOCK, *OTHERS[10:], "z = 1", *BLOCK])
    assert project.judge("a.py:5-7").reason.startswith("the same lines stand in 3 places: ")


def test_lines_of_which_some_are_others_are_changed_and_their_place_is_given(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", ["import os", *OTHERS[:4], BLOCK[0], "    total = 0", *BLOCK[1:], *OTHERS[4:]])
    judged = project.judge("a.py:5-7")
    assert (judged.state, judged.first, judged.last) == ("changed", 6, 9)
    assert judged.reason == "the lines were changed"


@pytest.mark.parametrize(
    "edit", ["    return sum(prices) ", "\treturn sum(prices)", "    return  sum(prices)"]
)
def test_a_blank_is_a_change(project: Project, edit: str) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", [*FILE[:6], edit, *FILE[7:]])
    assert project.state("a.py:5-7") == "changed"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_a_line_end_is_no_change(project: Project, end: str) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", text(FILE).replace("\n", end))
    assert project.state("a.py:5-7") == "unchanged"


def test_the_last_line_may_lose_its_end(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", text(FILE)[:-1])
    assert project.state("a.py:15") == "unchanged"
    assert project.state("a.py:14-15") == "unchanged"


def test_lines_that_were_deleted_are_gone(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", OTHERS)
    judged = project.judge("a.py:5-7")
    assert judged[:5] == ("gone", "a.py", 5, 7, "the lines were deleted")


def test_what_is_compared_is_the_commit_of_the_citing_line(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", ["x = 0", *FILE])
    second = project.commit()
    project.write(NOTE, "cited\nagain\n")
    project.commit()
    with Workspace(str(project.root)) as workspace:
        old = citations.judge(workspace, NOTE, cite("a.py:5-7", line=1))
        new = citations.judge(workspace, NOTE, cite("a.py:6-8", line=2))
    assert (old.state, old.first) == ("moved", 6)
    assert new.state == "unchanged"
    assert second[:12] != new.against


def test_a_line_behind_the_end_of_a_note_has_no_baseline_in_git(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", ["x = 0", *FILE])
    with Workspace(str(project.root)) as workspace:
        assert citations.judge(workspace, NOTE, cite("a.py:5-7", line=9)).state == "ok"


def test_a_note_with_a_lone_carriage_return_has_no_baseline_in_git(project: Project) -> None:
    """Git ends no line there, so its lines are others."""
    project.write("a.py", FILE)
    project.write(NOTE, b"one\rtwo\r\n")
    project.commit()
    project.write(NOTE, b"one\rtwo\r\nthree\rfour\n")
    project.commit()
    project.write("a.py", ["x = 0", *FILE])
    assert project.judge("a.py:5-7") == Judgement("ok", "a.py", 5, 7)


def test_a_citing_line_that_is_not_committed_has_no_baseline_in_git(project: Project) -> None:
    project.write("a.py", FILE)
    project.commit()
    project.write(NOTE, "cited\n")
    assert project.judge("a.py:5-7") == Judgement("ok", "a.py", 5, 7)
    assert project.judge("a.py:14-16")[:5] == ("unknown", "a.py", 14, 16, "the file has 15 lines")


def note_text(number: int) -> str:
    return text([f"cited {each}" for each in range(4)]) + f"unlike any other {number}\n"


@cases("how", ["moved", "staged", "moved with an edit", "to another folder"])
def test_a_memory_that_was_renamed_since_the_commit_keeps_what_it_cited(project: Project, how: str) -> None:
    project.write("memories/notes/other.md", note_text(1))
    project.write(NOTE, note_text(2))
    project.write("a.py", FILE)
    project.commit()
    project.write("a.py", [*FILE[:5], *FILE[6:]])
    new = "moved/b.md" if how == "to another folder" else "memories/notes/b.md"
    (project.root / new).parent.mkdir(exist_ok=True)
    (project.root / NOTE).rename(project.root / new)
    if how == "staged":
        project.git("add", "--all")
    if how == "moved with an edit":
        project.write(new, f"new\n{note_text(2)}")
    with Workspace(str(project.root)) as workspace:
        line = 2 if how == "moved with an edit" else 1
        assert citations.judge(workspace, new, cite("a.py:5-7", line=line)).state == "changed"
        new_line = citations.judge(workspace, new, cite("a.py:5-7", line=1)).state
    assert new_line == ("ok" if how == "moved with an edit" else "changed")


def test_a_new_memory_is_not_taken_for_another_one_that_is_gone(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", [*FILE[:5], *FILE[6:]])
    (project.root / NOTE).unlink()
    project.write("memories/notes/b.md", "says something else\n")
    with Workspace(str(project.root)) as workspace:
        assert citations.judge(workspace, "memories/notes/b.md", cite("a.py:5-6")).state == "ok"


@cases("then, now", [("cited", "cited\nmore\n"), ("cited\n", "    cited\n")])
def test_a_line_that_was_only_ended_or_indented_keeps_what_it_cited(
    project: Project, then: str, now: str
) -> None:
    project.write("a.py", FILE)
    project.write(NOTE, then)
    project.commit()
    project.write("a.py", [*FILE[:5], *FILE[6:]])
    project.commit()
    project.write(NOTE, now)
    project.commit()
    assert project.state("a.py:5-7") == "changed"


def test_lines_that_were_not_there_yet_have_no_baseline_in_git(project: Project) -> None:
    project.noted("a.py", FILE[:3])
    project.write("a.py", FILE)
    assert project.state("a.py:5-7") == "ok"
    assert project.state("b.py:5-7") == "unknown"


# -------------------------------------------------------------------------------------------------- pins


def test_a_pin_is_the_hash_of_the_lines_each_ended_by_one_newline() -> None:
    assert pin_of(["a", "b"]) == pin_of(Source("x", b"a\r\nb").lines)
    assert pin_of([]) == "e3b0c44298fc1c14"
    assert pin_of(["abc"]) == "edeaaff3f1774ad2"
    assert pin_of(Source("x", b"\xff\n").lines) != pin_of(["\ufffd"])


def test_pinned_lines_are_compared_without_git(plain: Project) -> None:
    plain.write("a.py", FILE)
    pin = plain.pin("a.py:5-7")
    assert pin == pin_of(BLOCK)
    assert plain.judge("a.py:5-7", pin=pin) == Judgement("unchanged", "a.py", 5, 7, against="pin")
    plain.write("a.py", [*OTHERS, *BLOCK])
    assert plain.judge("a.py:5-7", pin=pin)[:4] == ("moved", "a.py", 13, 15)
    plain.write("a.py", [*OTHERS, *BLOCK, *BLOCK])
    judged = plain.judge("a.py:5-7", pin=pin)
    assert (judged.state, judged.reason) == (
        "ambiguous",
        "the same lines stand in 2 places: lines 13 to 15, lines 16 to 18",
    )
    plain.write("a.py", OTHERS)
    assert plain.judge("a.py:5-7", pin=pin)[:4] == ("changed", "a.py", 5, 7)
    assert plain.judge("a.py:12-14", pin=pin)[:4] == ("changed", "a.py", 12, 12)
    assert plain.state("a.py:13-15", pin=pin) == "gone"
    assert plain.state("b.py:5-7", pin=pin) == "gone"


def test_a_pin_comes_before_git(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("a.py", [*FILE[:5], "    # another comment", *FILE[6:]])
    assert project.state("a.py:5-7") == "changed"
    assert project.state("a.py:5-7", pin=project.pin("a.py:5-7")) == "unchanged"


def test_git_says_where_pinned_lines_went_when_it_has_them(project: Project) -> None:
    project.write("a.py", FILE)
    project.commit()
    project.write(NOTE, "cited\n")  # not committed: the head has the lines that the pin knows
    pin = project.pin("a.py:5-7")
    project.write("a.py", ["x = 0", *FILE[:4], BLOCK[0], "    total = 0", *BLOCK[1:], *FILE[7:]])
    judged = project.judge("a.py:5-7", pin=pin)
    assert (judged.state, judged.first, judged.last, judged.against) == ("changed", 6, 9, "pin")


def test_a_range_that_is_too_long_to_be_looked_for_is_said(plain: Project) -> None:
    plain.write("a.py", ["some text that is not short at all"] * 20_000)
    pin = pin_of(["other"] * 10_000)
    judged = plain.judge("a.py:1-10000", pin=pin)
    assert judged.state == "changed"
    assert judged.reason.endswith("too many to search for")


def test_a_pinned_file_is_compared_as_a_whole(plain: Project) -> None:
    plain.write("a.py", FILE)
    pin = plain.pin("a.py")
    assert plain.state("a.py", pin=pin) == "unchanged"
    plain.write("a.py", OTHERS)
    assert plain.judge("a.py", pin=pin)[0::4] == ("changed", "the file is not what was pinned")


# -------------------------------------------------------------------------------------------- first seen


def test_without_pin_and_git_it_counts_what_was_seen_first(plain: Project) -> None:
    plain.write("a.py", FILE)
    seen = plain.pin("a.py:5-7")
    assert plain.judge("a.py:5-7", seen=seen).against == "first seen"
    plain.write("a.py", [*OTHERS, *BLOCK])
    assert plain.judge("a.py:5-7", seen=seen)[:4] == ("moved", "a.py", 13, 15)
    assert plain.state("a.py:5-7") == "ok"


def test_what_is_not_there_has_no_pin(plain: Project) -> None:
    plain.write("a.py", FILE)
    plain.write("b.bin", b"\0")
    for written in ("a.py:15-16", "b.py", "b.bin", "a.py#none", "../a.py"):
        assert plain.pin(written) == ""


# ----------------------------------------------------------------------------------------------- renames


def test_lines_are_found_in_the_file_that_the_cited_one_became(project: Project) -> None:
    project.noted("src/a.py", FILE)
    project.git("mv", "src/a.py", "src/b.py")
    judged = project.judge("src/a.py#L5-L7")
    assert judged[:4] == ("moved", "src/b.py", 5, 7)
    assert judged.reason == "the file was renamed to src/b.py"
    project.commit()
    project.write("src/b.py", ["x = 0", *FILE])
    judged = project.judge("src/a.py#L5-L7")
    assert judged[:4] == ("moved", "src/b.py", 6, 8)
    assert judged.reason == "the file was renamed to src/b.py; now lines 6 to 8"
    project.write("src/b.py", OTHERS)
    assert project.judge("src/a.py#L5-L7")[:2] == ("gone", "src/b.py")


def test_renames_are_followed_one_after_the_other_though_the_last_has_little_of_the_first(
    project: Project,
) -> None:
    project.noted("a.py", FILE)
    for number, name in enumerate(("b.py", "c.py", "d.py")):
        project.git("mv", "abc"[number] + ".py", name)
        project.commit()
        project.write(name, [*BLOCK, *(f"other_{number}_{line} = 1" for line in range(20))])
        project.commit()
    judged = project.judge("a.py:5-7")
    assert judged[:4] == ("moved", "d.py", 1, 3)


def test_a_file_that_one_commit_added_and_the_next_deleted_elsewhere_is_found(project: Project) -> None:
    project.noted("a.py", FILE)
    project.write("b.py", FILE)
    project.commit()
    (project.root / "a.py").unlink()
    deletion = project.commit()
    judged = project.judge("a.py:5-7")
    assert judged.state == "gone"
    assert judged.reason == f"the file was deleted in {deletion[:12]}"


def test_a_pin_is_looked_for_in_the_renamed_file(project: Project) -> None:
    project.write("a.py", FILE)
    project.commit()
    pin = project.pin("a.py:5-7")
    project.write("a.py", [*FILE[:2], *FILE])
    project.commit()
    project.git("mv", "a.py", "b.py")
    assert project.judge("a.py:5-7", pin=pin)[:4] == ("moved", "b.py", 7, 9)
    judged = project.judge("a.py:5-7")
    assert judged[:2] == ("unknown", "b.py")
    assert judged.reason == "the file was renamed to b.py, and nothing says what was cited"


def test_a_bare_path_is_there_or_renamed_or_gone(project: Project) -> None:
    project.noted("src/a.py", FILE)
    assert project.judge("src/a.py") == Judgement("ok", "src/a.py")
    assert project.state("src") == "ok"
    project.git("mv", "src/a.py", "b.py")
    assert project.judge("src/a.py")[:2] == ("moved", "b.py")
    (project.root / "b.py").unlink()
    project.git("add", "--all")
    assert project.judge("src/a.py")[:5] == ("gone", "src/a.py", None, None, "there is no such file")
    assert project.state("never.py") == "unknown"


# ----------------------------------------------------------------------------------------------- symbols

SHOP = """\
LIMIT = 10

@cached
def total(prices):
    return sum(prices)

class Box:
    def open(self):
        return True

    @property
    def size(self): return 1

    @size.setter
    def size(self, value): pass
"""


def test_a_symbol_is_unchanged_wherever_it_stands(project: Project) -> None:
    commit = project.noted("shop.py", SHOP)
    project.write("shop.py", "import os\n\n" + SHOP)
    judged = project.judge("shop.py#Box.open")
    assert judged == Judgement("unchanged", "shop.py", 10, 11, against=f"git {commit[:12]}")
    assert project.judge("shop.py#total")[:4] == ("unchanged", "shop.py", 5, 7)
    assert project.state("shop.py#LIMIT") == "unchanged"


def test_a_symbol_is_changed_when_its_lines_or_decorators_are(project: Project) -> None:
    project.noted("shop.py", SHOP)
    project.write("shop.py", SHOP.replace("@cached\n", "").replace("value): pass", "value): self.x = value"))
    assert project.judge("shop.py#total")[:5] == ("changed", "shop.py", 3, 4, "total was changed")
    assert project.state("shop.py#Box.size") == "changed"
    assert project.state("shop.py#Box") == "changed"
    assert project.state("shop.py#Box.open") == "unchanged"


def test_gone_is_only_what_was_seen_once(plain: Project) -> None:
    plain.write("a.py", FILE)
    plain.write("shop.py", SHOP)
    seen = {written: plain.pin(written) for written in ("a.py", "a.py:5-7", "shop.py#total")}
    assert all(seen.values())
    plain.write("a.py", OTHERS[:2])
    plain.write("shop.py", SHOP.replace("def total", "def sum_of"))
    for written, pin in seen.items():
        if written != "a.py":
            assert plain.state(written) == "unknown"
            assert plain.state(written, seen=pin) == plain.state(written, pin=pin) == "gone"
    (plain.root / "a.py").unlink()
    (plain.root / "shop.py").unlink()
    for written, pin in seen.items():
        assert plain.judge(written).reason == "there is no such file"
        assert plain.state(written) == "unknown"
        assert plain.state(written, seen=pin) == plain.state(written, pin=pin) == "gone"


def test_a_symbol_that_the_file_no_longer_defines_is_gone(project: Project) -> None:
    project.noted("shop.py", SHOP)
    project.write("shop.py", SHOP.replace("def total", "def sum_of"))
    assert project.judge("shop.py#total")[0::4] == ("gone", "the file defines no total")


def test_a_symbol_that_was_never_there_is_unknown(project: Project) -> None:
    project.noted("shop.py", SHOP)
    judged = project.judge("shop.py#none")
    assert judged[0::4] == ("unknown", "the file defines no none, and is not known to have done so")


def test_a_symbol_whose_class_has_another_name_moved(project: Project) -> None:
    project.noted("shop.py", SHOP)
    project.write("shop.py", "\n" + SHOP.replace("class Box", "class Crate"))
    judged = project.judge("shop.py#Box.open")
    assert judged[:5] == ("moved", "shop.py", 9, 10, "now Crate.open")
    assert judged.symbol == "Crate.open"


def test_a_symbol_is_found_in_the_renamed_file(project: Project) -> None:
    project.noted("shop.py", SHOP)
    project.git("mv", "shop.py", "store.py")
    assert project.judge("shop.py#total")[:5] == (
        "moved",
        "store.py",
        3,
        5,
        "the file was renamed to store.py",
    )
    project.write("store.py", SHOP.replace("sum(prices)", "sum(prices, 1)").replace("Box", "Crate"))
    assert project.judge("shop.py#total")[:2] == ("changed", "store.py")
    assert project.judge("shop.py#Box.open")[:2] == ("moved", "store.py")
    assert project.judge("shop.py#Box.none")[:2] == ("unknown", "store.py")


def test_without_a_baseline_a_symbol_is_there_or_not(plain: Project) -> None:
    plain.write("shop.py", SHOP)
    assert plain.judge("shop.py#Box.open") == Judgement("ok", "shop.py", 8, 9)
    assert plain.state("shop.py#none") == "unknown"


def test_a_pinned_symbol_is_compared_by_all_its_definitions(plain: Project) -> None:
    plain.write("shop.py", SHOP)
    pin = plain.pin("shop.py#Box.size")
    assert plain.judge("shop.py#Box.size", pin=pin) == Judgement(
        "unchanged", "shop.py", 11, 12, against="pin"
    )
    plain.write("shop.py", SHOP.replace("value): pass", "value): ..."))
    assert plain.state("shop.py#Box.size", pin=pin) == "changed"
    assert plain.state("shop.py#Box.size", seen=pin) == "changed"


def test_what_cannot_be_parsed_is_unknown_and_never_gone(project: Project) -> None:
    project.noted("shop.py", SHOP)
    project.write("notes.zig", "fn total() {}\n")
    project.write("shop.py", SHOP + "def (:\n")
    judged = project.judge("shop.py#total")
    assert judged.state == "unknown"
    assert judged.reason.startswith("it is not valid Python here")
    assert project.judge("notes.zig#total")[0::4] == (
        "unknown",
        "there is no parser for files that end in .zig",
    )


def test_what_cannot_be_parsed_is_unchanged_when_the_file_is(project: Project) -> None:
    project.noted("a.zig", "fn total() {}\n")
    assert project.state("a.zig#total") == "unchanged"


# ---------------------------------------------------------------------------------- files not looked into


@pytest.mark.parametrize("path", ["../secret.py", "src/../../secret.py", "/etc/passwd", ".."])
def test_a_path_that_leaves_the_workspace_is_refused(plain: Project, path: str) -> None:
    (plain.root.parent / "secret.py").write_text("password = 1\n")
    judged = plain.judge(f"{path}:1")
    assert judged[0::4] == ("unknown", "it is outside of the workspace")


def test_a_symlink_is_followed_inside_the_workspace_only(plain: Project) -> None:
    (plain.root.parent / "secret").mkdir()
    (plain.root.parent / "secret" / "a.py").write_text("password = 1\n")
    plain.write("src/a.py", FILE)
    (plain.root / "in.py").symlink_to("src/a.py")
    (plain.root / "out.py").symlink_to("../secret/a.py")
    (plain.root / "folder").symlink_to("../secret")
    (plain.root / "loop.py").symlink_to("loop.py")
    assert plain.state("in.py:5") == "ok"
    for path in ("out.py", "folder/a.py"):
        for written in (path, f"{path}:1", f"{path}#password"):
            assert plain.judge(written)[0::4] == ("unknown", "it is a symlink that leaves the workspace")
            assert plain.pin(written) == ""
    assert plain.state("loop.py:1") == "unknown"


def test_what_is_no_text_is_there_but_has_no_lines(plain: Project) -> None:
    plain.write("a.png", b"\x89PNG\0")
    plain.write("big.py", b"x" * (4 << 20) + b"\n")
    os.mkfifo(plain.root / "pipe")
    (plain.root / "folder").mkdir()
    reasons = {
        "a.png": "it is binary",
        "big.py": "it has more than 4,194,304 bytes",
        "pipe": "it is not a regular file",
        "folder": "it is a folder",
    }
    for path, reason in reasons.items():
        assert plain.state(path) == "ok"
        assert plain.judge(f"{path}:1-2") == Judgement("unknown", path, 1, 2, reason)


def test_lines_are_counted_from_one(plain: Project) -> None:
    plain.write("a.py", FILE)
    assert plain.judge("a.py:0-3")[0::4] == ("unknown", "lines are counted from 1")


@given(path=st.text(max_size=30) | st.text("./a\\\0~:#- ", max_size=12), in_link=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_is_read_outside_of_the_workspace(project: Project, path: str, in_link: bool) -> None:
    if not (project.root / "a").exists():
        project.noted("a", FILE)
    root = os.path.realpath(project.root)
    with Workspace(root) as workspace:
        citation = cite("a")._replace(path=path, in_link=in_link, first=1, last=1)
        judged = citations.judge(workspace, "note.md", citation)
    assert judged.state in {"unknown", "dangling", "gone", "ok"}
    if judged.state == "ok":
        assert os.path.realpath(os.path.join(root, judged.path)).startswith(f"{root}/")


def test_git_that_fails_is_told_and_no_reason_to_fail(project: Project) -> None:
    project.noted("a.py", FILE)
    (project.root / ".git" / "config").write_text("[core\n")
    with Workspace(str(project.root)) as workspace:
        assert citations.judge(workspace, NOTE, cite("a.py:5-7")).state == "ok"
        assert "cannot look at the repository" in workspace.trouble


# ------------------------------------------------------------------------------------ paths and locators


def test_a_link_is_relative_to_its_note_first_and_then_to_the_workspace(project: Project) -> None:
    project.write("src/a.py", FILE)
    project.noted("memories/notes/b.py", OTHERS)
    assert project.judge("b.py:1", in_link=True).path == "memories/notes/b.py"
    assert project.judge("../../src/a.py:1", in_link=True).path == "src/a.py"
    assert project.judge("src/a.py:1", in_link=True).path == "src/a.py"
    assert project.judge("/src/a.py:1", in_link=True).path == "src/a.py"
    assert project.judge("../../../a.py:1", in_link=True).state == "unknown"
    assert project.judge("b.py:1").path == "memories/notes/b.py"
    assert project.judge("notes/b.py:1").state == "unknown"
    project.git("mv", "memories/notes/b.py", "src/c.py")
    assert project.judge("b.py:1", in_link=True)[:2] == ("moved", "src/c.py")


@pytest.mark.parametrize(
    ("path", "in_link", "new"),
    [
        ("src/a.py", False, "lib/b.py"),
        ("src/a.py", True, "lib/b.py"),
        ("/src/a.py", True, "/lib/b.py"),
        ("../../src/a.py", True, "../../lib/b.py"),
        ("./../../src/a.py", True, "../../lib/b.py"),
    ],
)
def test_another_path_is_written_in_the_same_style(
    project: Project, path: str, in_link: bool, new: str
) -> None:
    project.noted("src/a.py", FILE)
    project.git("mv", "-k", "src/a.py", "b.py")
    with Workspace(str(project.root)) as workspace:
        citation = cite(path, in_link=in_link)
        assert path_to(workspace, NOTE, citation, "lib/b.py") == new
        assert path_to(workspace, NOTE, citation, "src/a.py") == path


def test_a_path_beside_its_note_keeps_its_dot(project: Project) -> None:
    project.noted("memories/notes/b.py", OTHERS)
    with Workspace(str(project.root)) as workspace:
        for path, new in (("./b.py", "./deep/c.py"), ("b.py", "deep/c.py")):
            assert path_to(workspace, NOTE, cite(path, in_link=True), "memories/notes/deep/c.py") == new


@cases(
    "written, first, last, expected",
    [
        ("#L10-L23", 34, 47, "#L34-L47"),
        ("#L10-23", 34, 47, "#L34-47"),
        ("#10-23", 34, 47, "#34-47"),
        (":10-23", 34, 47, ":34-47"),
        ("#L10", 34, 34, "#L34"),
        (":10", 34, 34, ":34"),
        ("#L10-L10", 34, 34, "#L34-L34"),
        ("#L10", 34, 36, "#L34-L36"),
        (":10", 34, 36, ":34-36"),
        ("#10", 34, 36, "#34-36"),
        ("#L10,3-L23,9", 34, 47, "#L34,3-L47,9"),
        ("", 34, 47, "#L34-L47"),
        ("#symbol", 34, 34, "#L34"),
    ],
)
def test_a_locator_keeps_its_style(written: str, first: int, last: int, expected: str) -> None:
    assert locator(written, first, last) == expected


# ----------------------------------------------------------------------------------------- many questions


def counting(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Put a git that counts before the real one; tells how often it was started."""
    folder = project.root.parent / "bin"
    folder.mkdir()
    log = folder / "log"
    log.touch()
    script = folder / "git"
    script.write_text(f'#!/bin/sh\necho started >> "{log}"\nexec "{shutil.which("git")}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: len(log.read_text().splitlines())


def test_many_citations_need_few_processes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(NOTE, "".join(f"line {number}\n" for number in range(300)))
    for number in range(5):
        project.write(f"src/{number}.py", FILE)
    project.commit()
    for number in range(5):
        project.write(f"src/{number}.py", ["x = 0", *FILE])
    started = counting(project, monkeypatch)
    with Workspace(str(project.root)) as workspace:
        judged = [
            citations.judge(workspace, NOTE, cite(f"src/{number % 5}.py:5-7", line=number + 1))
            for number in range(300)
        ]
    assert {judgement.state for judgement in judged} == {"moved"}
    assert started() == 5  # the repository, its head, its settings, one blame, one reader of objects


def test_git_is_not_started_where_there_is_no_repository(
    plain: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.write("a.py", FILE)
    started = counting(plain, monkeypatch)
    assert plain.state("a.py:5-7") == "ok"
    assert started() == 0


@pytest.mark.parametrize("folder", ["inside/deep", "../linked"])
def test_the_repository_is_found_above_a_workspace_and_from_a_linked_work_tree(
    project: Project, folder: str
) -> None:
    commit = project.noted("inside/deep/a.py", FILE)
    project.git("worktree", "add", "--quiet", "--detach", "../linked")
    with Workspace(str(project.root / folder)) as workspace:
        assert workspace.head == commit


def test_many_notes_need_few_processes_and_get_the_same_answers(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = [f"memories/notes/{number}.md" for number in range(40 if speed.is_all else 14)]
    project.write("a.py", FILE)
    for note in notes:
        project.write(note, "cited\ncited\n")
    project.commit()
    project.write("a.py", ["x = 0", *FILE])
    project.write(notes[-10], "cited\ncited again\n")
    project.commit()
    project.write(notes[-9], "new\ncited\n")
    project.write("memories/notes/new.md", "cited\n")
    project.write("a.py", ["y = 0", "x = 0", *FILE])
    asked = [
        (note, cite("a.py:5-7", line=line)) for note in (*notes, "memories/notes/new.md") for line in (1, 2)
    ]
    alone = []
    for note, citation in asked:
        with Workspace(str(project.root)) as workspace:
            alone.append(citations.judge(workspace, note, citation))
    started = counting(project, monkeypatch)
    with Workspace(str(project.root)) as workspace:
        together = [citations.judge(workspace, note, citation) for note, citation in asked]
    assert together == alone
    assert {judgement.state for judgement in alone} == {"moved", "ok"}
    assert len({judgement.against for judgement in alone}) == 3
    assert started() <= 16


@pytest.mark.parametrize("digits", ["sha1", "sha256"])
def test_a_content_is_told_by_what_git_calls_it(tmp_path: Path, digits: str) -> None:
    subprocess.run(["git", "init", "-q", f"--object-format={digits}", tmp_path], check=True)
    for data in (b"", b"a\r\n\xff"):
        query = ["git", "hash-object", "--stdin"]
        printed = subprocess.run(query, cwd=tmp_path, input=data, check=True, capture_output=True).stdout
        blob = printed.decode().strip()
        assert Source("a.py", data).is_blob(blob)
        assert not Source("a.py", data + b"x").is_blob(blob)
        assert not Source("a.py", data).is_blob("")


# ------------------------------------------------------------------------------------------- the line map

LINES = st.lists(
    st.sampled_from(["a = 1", "b = 2", "", "return x", "def long_name(parameter):"]), max_size=12
)


@given(old=LINES, new=LINES, data=st.data())
def test_what_a_line_map_calls_moved_is_there(old: list[str], new: list[str], data: st.DataObject) -> None:
    line_map = LineMap(old, new)
    for line in range(1, len(new) + 1):
        was = line_map.old_line(line)
        assert was is None or old[was - 1] == new[line - 1]
    if old:
        first = data.draw(st.integers(1, len(old)))
        last = data.draw(st.integers(first, len(old)))
        moved = line_map.moved(first, last)
        start, end = line_map.successor(first, last)
        assert 1 <= start <= end + 1 <= len(new) + 1
        if moved is not None:
            assert new[moved - 1 : moved + last - first] == old[first - 1 : last]
            assert (start, end) == (moved, moved + last - first)


@given(lines=LINES, data=st.data())
def test_places_are_all_places(lines: list[str], data: st.DataObject) -> None:
    source = Source("a.py", text(lines).encode())
    first = data.draw(st.integers(1, max(1, len(lines))))
    last = data.draw(st.integers(first, max(first, len(lines))))
    content = lines[first - 1 : last]
    expected = [n + 1 for n in range(len(lines)) if content and lines[n : n + len(content)] == content]
    assert source.places(content) == expected
    if content:
        assert source.pinned_places(pin_of(content), len(content)) == expected


CODE = "one = 1\ntwo = 2\nthree = 3\n\n\ndef work(x):\n    return x\n"
SHIFTED = f"zero = 0\n\n{CODE}"


class Work:
    """A workspace with code, and a vault in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "memories"
        self.put({"memories/.mdmem/config.toml": "", "src/app.py": CODE})
        self.vault = Vault(str(self.root))
        self.index = Index(str(self.root), pinning)
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


@cases(
    "has_git, code, before, expected",
    [
        (True, CODE.replace("two = 2", "two = 22"), -1, "changed"),
        (True, CODE.replace("two = 2", "two = 22"), 1, "unchanged"),
        (True, CODE.replace("three = 3", "three = 33"), -1, "unchanged"),
        (False, CODE, -1, "unknown"),
        (False, CODE, 1, "unchanged"),
    ],
)
def test_code_that_was_written_after_its_citation_is_not_taken_for_what_was_cited(
    tmp_path: Path, has_git: bool, code: str, before: int, expected: str
) -> None:
    """`before` says how many seconds before the memory the code was written; both are first seen together."""
    work = Work(tmp_path / "ws")
    if has_git:
        work.commit()
    work.put({"src/app.py": code, "memories/notes/a.md": "`src/app.py#L2`\n"})
    at = (work.root / "notes/a.md").stat().st_mtime
    os.utime(work.folder / "src/app.py", (at - before, at - before))
    work.index.close()
    memory = Memory(str(work.root))
    for _ in range(2):
        assert [place.state for each in memory.references.list() for place in each.places] == [expected]
        shutil.rmtree(work.root / ".mdmem/local")
    memory.references.list()
    work.put({"src/app.py": code.replace("two", "too")})
    assert [place.state for each in memory.references.list() for place in each.places] == ["changed"]


def pin(*lines: str) -> str:
    return f"<!-- pin {pin_of(lines)} -->"


# ------------------------------------------------------------------------------------------------ re-pointing


@cases(
    "before, after",
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
def test_what_moved_is_cited_where_it_is_now_in_the_same_style(
    tmp_path: Path, before: str, after: str
) -> None:
    work = Work(tmp_path / "ws")
    work.note(f"# Äh 😀\r\n\r\nSee {before}.\r\n")
    work.put({"src/app.py": SHIFTED})
    plan = repointed(work.view)
    if before == after:
        assert plan.changes == ()
    else:
        assert work.apply(plan).encode() == f"# Äh 😀\n\nSee {after}.\n".encode()
        assert (work.root / "notes/a.md").read_bytes() == f"# Äh 😀\r\n\r\nSee {after}.\r\n".encode()
    assert repointed(work.view).changes == ()
    work.index.close()


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


REWRITES: dict[str, Callable[[Memory], object]] = {
    "fix": lambda memory: memory.references.fix(),
    "mv": lambda memory: memory.mv("notes/b.md", "notes/c.md"),
    "heading": lambda memory: memory.rename_heading("notes/b.md", "B", "Bee"),
    "block": lambda memory: memory.rename_block("notes/b.md", "f1", "f2"),
    "doctor": lambda memory: memory.doctor(fix=True),
}


def list_stale(memory: Memory) -> list[tuple[str, str]]:
    """The locators that are stale, and how."""
    found = ((each.target, place) for each in memory.references.list() for place in each.places)
    return sorted((said.rpartition("#")[2], at.state) for said, at in found if at.state in citations.STALE)


@cases("how", REWRITES)
def test_what_is_stale_stays_so_where_mdmem_rewrites_its_line(tmp_path: Path, how: str) -> None:
    work = Work(tmp_path / "ws")
    cited = "`src/app.py#L1`, `src/app.py#L2`, `src/app.py#L3`"
    work.note(f"{cited}: [[b]], [[b#B]], [[b#^f1]]\n`src/app.py#L2`\n")
    work.note("# B\n\nfact ^f1\n", "notes/b.md")
    work.commit()
    work.put({"src/app.py": SHIFTED.replace("two = 2", "two = 22")})
    work.commit()
    memory = Memory(str(work.root))
    stale = list_stale(memory)
    assert stale == [("L1", "moved"), ("L2", "changed"), ("L2", "changed"), ("L3", "moved")]
    if how == "doctor":
        (work.root / "notes/b.md").rename(work.root / "notes/c.md")
    REWRITES[how](memory)
    first, second = (work.root / "notes/a.md").read_text().splitlines()
    assert (f"`src/app.py#L2`{pin('two = 2')}, " in first, second) == (True, "`src/app.py#L2`")
    work.commit()
    assert list_stale(memory) == (stale[1:3] if how == "fix" else stale)
    work.index.close()


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
