"""The commands of git: what they print of a history, and with which exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.git.conftest import Tree, set_up

if TYPE_CHECKING:
    from pathlib import Path

OLD = "---\ntags: [a]\n---\n# Db\n\n- SQLite is one file.\n- See [[old]] first.\n- It goes away.\n\n## Why\n"
NEW = (
    "---\ntags: [b]\n---\n# Db\n\n- SQLite is a file.\n- See [[new]] first.\n- Other words here.\n\n## Why\n"
)


@pytest.fixture
def tree(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    set_up(monkeypatch)
    monkeypatch.chdir(tmp_path)
    tree = Tree(tmp_path)
    tree.git("init", "--quiet", "--initial-branch=main")
    cli.ok("init")
    tree.write("memories/notes/db.md", OLD)
    tree.git("add", "--all")
    tree.git("commit", "--quiet", "--message", "Begin\n\nMdmem-Op: write notes/db.md\nMdmem-Agent: claude")
    return tree


def test_a_diff_is_printed_by_heading_with_its_words(cli: Any, tree: Tree) -> None:
    assert cli.ok("git", "diff", "--exit-code").out == ""
    tree.write("memories/notes/db.md", NEW)
    found = cli.ok("git", "diff")
    assert found.out.splitlines() == [
        "notes/db.md",
        '  ~ tags: ["[-a-]{+b+}"]',
        "  # Db",
        "  ~ SQLite is [-one-]{+a+} file.  (?)",
        "  @ See [[[-old-]{+new+}]] first.",
        "  - It goes away.",
        "  + Other words here.",
    ]
    assert cli("git", "diff", "--exit-code").code == 1
    assert cli("git", "diff", "HEAD", "--in", "notes", "--exit-code").code == 1
    rows = cli.ok("git", "diff", "--json").objects
    assert [row["change"] for row in rows] == [
        "field-changed",
        "fact-reworded",
        "links-repointed",
        "fact-removed",
        "fact-added",
    ]
    assert (rows[1]["sure"], rows[2]["sure"], rows[1]["heading"]) == (False, True, ["Db"])


def test_what_became_of_a_memory_is_said_first(cli: Any, tree: Tree) -> None:
    tree.git("mv", "memories/notes/db.md", "memories/notes/store.md")
    tree.write("memories/notes/new.md", "# New\n\n- one\n")
    assert cli.ok("git", "diff").out.splitlines() == [
        "notes/new.md  added",
        "  + # New",
        "  + one",
        "",
        "notes/store.md  renamed from notes/db.md",
    ]


def test_a_long_stretch_that_stays_is_cut(cli: Any, tree: Tree) -> None:
    words = " ".join(f"word{number}" for number in range(100))
    tree.write("memories/notes/db.md", f"begin {words} end\n")
    tree.git("commit", "--quiet", "--all", "--message", "m")
    tree.write("memories/notes/db.md", f"start {words} end\n")
    (line,) = cli.ok("git", "diff").out.splitlines()[1:]
    assert line.startswith("  ~ [-begin-]{+start+} word0 ")
    assert "…" in line
    assert len(line) < 250


def test_a_log_is_printed_with_who_and_what(cli: Any, tree: Tree) -> None:
    found = cli.ok("git", "log")
    assert found.out.splitlines() == [
        f"{tree.git('rev-parse', 'HEAD')[:12]}  2026-01-01T00:00:00+00:00  claude (A)",
        "    Begin",
        "    operation: write notes/db.md",
        "    A notes/db.md",
    ]
    assert cli.ok("git", "log", "--json").json["agent"] == "claude"
    assert cli.ok("git", "log", "notes/db.md#Why", "-n", "1").out == found.out
    assert cli("git", "log", "notes/none.md").code == 1
    assert cli("git", "log", "notes/db.md#Nothing").code == 1


# README: In a repository, mdmem shows what an agent has learnt as facts: …
def test_blame_is_printed_fact_by_fact(cli: Any, tree: Tree) -> None:
    tree.write("memories/notes/db.md", NEW)
    head = tree.git("rev-parse", "HEAD")[:12]
    lines = cli.ok("git", "blame", "notes/db.md").out.splitlines()
    assert lines[:4] == [
        "------------  not committed yet  2: tags: [b]",
        f"{head}  2026-01-01  claude (A)  4: # Db",
        "      write notes/db.md",
        "------------  not committed yet  6: SQLite is a file.",
    ]
    assert [said["commit"] is None for said in cli.ok("git", "blame", "notes/db.md", "--json").objects] == [
        *(True, False, True, True, True, False)
    ]


def test_of_several_operations_in_a_commit_none_is_said_to_have_made_a_fact(cli: Any, tree: Tree) -> None:
    tree.write("memories/notes/two.md", "- One.\n- Two.\n")
    done = [f"Mdmem-Op: append to notes/two.md\nMdmem-Agent: {agent}" for agent in ("claude", "codex")]
    head = tree.commit("m\n\n" + "\n".join(done))[:12]
    assert cli.ok("git", "blame", "notes/two.md").out.splitlines() == [
        f"{head}  2026-01-01  claude, codex (A)  1: One.",
        "      by one or more of 2 operations:",
        "      append to notes/two.md",
        "      append to notes/two.md",
        f"{head}  2026-01-01  claude, codex (A)  2: Two.",
    ]


def test_a_vault_in_no_repository_is_refused(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.ok("init")
    for arguments in (["log"], ["diff"], ["diff", "HEAD"]):
        ended = cli("git", *arguments)
        assert ended.code == 2
        assert "not in a work tree of git" in ended.errors
