"""The commands of git: what they print of a history, and with which exit code."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.cli.git import print_change
from mdmem.review.review import MemoryChange
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
        "  ~ SQLite is [-one-]{+a+} file.",
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
    assert (rows[1]["sure"], rows[2]["sure"], rows[1]["heading"]) == (True, True, ["Db"])


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


def test_the_words_that_changed_are_marked_between_equal_ones(cli: Any, tree: Tree) -> None:
    tree.write("memories/a.json", json.dumps({"a": "one 数据库 two"}, ensure_ascii=False))
    tree.git("add", "--all")
    tree.git("commit", "--quiet", "--message", "m")
    tree.write("memories/a.json", json.dumps({"a": "1 数据库 2"}, ensure_ascii=False))
    (line,) = cli.ok("git", "diff").out.splitlines()[1:]
    assert line.startswith('  ~ a: "[-one')
    assert "+} 数据库 [-" in line


def test_where_a_fact_has_moved_is_said(cli: Any, tree: Tree) -> None:
    facts = ["Deploys go through Ann.", "Never on a Friday at all.", "Rollbacks are for Bob."]
    one, two, three = (f"- {fact}\n" for fact in facts)
    tree.write("memories/notes/db.md", f"# Db\n\n{one}{two}{three}\n# Rest\n\n- other\n")
    tree.git("commit", "--quiet", "--all", "--message", "m")
    tree.write("memories/notes/db.md", f"# Db\n\n{one}  {two}\n# Rest\n\n- other\n  {three}")
    assert cli.ok("git", "diff").out.splitlines() == [
        "notes/db.md",
        "  # Db",
        "  > Never on a Friday at all.  (now under 'Deploys go through Ann.')",
        "  # Rest",
        "  > Rollbacks are for Bob.  (from Db, now under 'other')",
    ]


def test_what_has_another_order_is_reordered(capsys: pytest.CaptureFixture[str]) -> None:
    print_change(
        MemoryChange(path="a.md", change="fact-reordered", kind="item", before="Stop it.", after="Stop it.")
    )
    assert capsys.readouterr().out == "  reordered  Stop it.\n"


def test_a_memory_amid_a_merge_says_so(cli: Any, tree: Tree) -> None:
    tree.write("memories/notes/db.md", "- a\n<<<<<<< ours\n- o\n=======\n- t\n>>>>>>> theirs\n")
    assert "  (amid a merge: a conflict in lines 2 to 6)" in cli.ok("git", "diff").out.splitlines()
    row = next(row for row in cli.ok("git", "diff", "--json").objects if row["change"] == "conflict")
    assert (row["path"], row["line"], row["last"]) == ("notes/db.md", 2, 6)


def test_a_log_is_printed_with_who_and_what(cli: Any, tree: Tree) -> None:
    found = cli.ok("git", "log")
    assert found.out.splitlines() == [
        f"{tree.git('rev-parse', 'HEAD')[:8]}  2026-01-01T00:00:00+00:00  claude (A)",
        "    Begin",
        "    operation: write notes/db.md",
        "    A notes/db.md",
    ]
    assert cli.ok("git", "log", "--json").json["agent"] == "claude"
    assert cli.ok("git", "log", "notes/db.md#Why", "-n", "1").out == found.out
    assert cli("git", "log", "notes/none.md").code == 1
    assert cli("git", "log", "notes/db.md#Nothing").code == 1


def test_blame_is_printed_fact_by_fact(cli: Any, tree: Tree) -> None:
    tree.write("memories/notes/db.md", NEW)
    head = tree.git("rev-parse", "HEAD")[:8]
    assert cli.ok("git", "blame", "notes/db.md").out.splitlines() == [
        "--------  -           not committed yet   2  tags: [b]",
        f"{head}  2026-01-01  claude (A)          4  # Db",
        "--------  -           not committed yet   6  SQLite is a file.",
        "--------  -           not committed yet   7  See [[new]] first.",
        "--------  -           not committed yet   8  Other words here.",
        f"{head}  2026-01-01  claude (A)         10  ## Why",
    ]
    assert [said["commit"] is None for said in cli.ok("git", "blame", "notes/db.md", "--json").objects] == [
        *(True, False, True, True, True, False)
    ]


def test_the_operations_of_a_commit_are_printed_once_below_the_facts(cli: Any, tree: Tree) -> None:
    tree.write("memories/notes/two.md", "- One.\n- Two.\n")
    done = [f"Mdmem-Op: append to notes/two.md\nMdmem-Agent: {agent}" for agent in ("claude", "codex")]
    head = tree.commit("m\n\n" + "\n".join([*done, "Mdmem-Op: edit notes/two.md directly"]))[:8]
    facts = [
        f"{head}  2026-01-01  claude, codex? (A)  {line}  {text}." for line, text in ((1, "One"), (2, "Two"))
    ]
    assert cli.ok("git", "blame", "notes/two.md").out.splitlines() == facts
    assert cli.ok("git", "blame", "-v", "notes/two.md").out.splitlines() == [
        *facts,
        "",
        f"{head}  2026-01-01  claude, codex? (A)",
        "    append to notes/two.md",
        "    append to notes/two.md",
        "    edit notes/two.md directly",
    ]
    said = cli.ok("git", "blame", "notes/two.md", "--json").objects[0]
    assert (said["agent"], said["sure"], len(said["operations"])) == ("claude, codex", False, 3)


def test_the_name_of_what_stands_in_the_way_is_what_keep_takes(cli: Any, tree: Tree) -> None:
    tree.write("memories/notes/db.md", NEW)
    tree.commit()
    tree.write("memories/notes/db.md", NEW.replace("SQLite is a file.", "SQLite is a small file."))
    refused = cli("git", "revert", "HEAD")
    assert refused.code == 2
    said = [line for line in refused.errors.splitlines() if line.startswith("  notes")]
    assert len(said) == 1
    assert said[0].endswith("now it reads 'SQLite is a small file.'")
    options = shlex.split(refused.errors.splitlines()[-1].partition(" with ")[2])
    assert options == ["--keep", "notes/db.md:SQLite is a small file."]
    cli.ok("git", "revert", "HEAD", *options)
    text = (tree.root / "memories/notes/db.md").read_text()
    assert text == OLD.replace("SQLite is one file.", "SQLite is a small file.")
    cli.ok("git", "revert", "notes/db.md:small file", "--dry-run")
    cli.ok("git", "revert", "notes/db.md:tags", "--dry-run")
    assert cli("git", "revert", "HEAD", "--keep", "notes/db.md:nothing of it").code == 1


@pytest.mark.usefixtures("tree")
def test_who_made_what_is_not_committed_yet_is_told(cli: Any) -> None:
    cli.ok("--actor", "ada", "append", "notes/db.md", "Said by Ada.")
    (line,) = [
        line for line in cli.ok("git", "blame", "-v", "notes/db.md").out.splitlines() if "Said by" in line
    ]
    assert line.startswith("--------  -           ada, not committed yet  ")
    assert cli.ok("git", "blame", "-v", "notes/db.md").out.splitlines()[-2:] == [
        "--------  -           ada, not committed yet",
        "    append to notes/db.md",
    ]


def test_to_allow_commits_says_where_none_will_be_made(cli: Any, tree: Tree) -> None:
    tree.git("rm", "-r", "--quiet", "--cached", ".")
    tree.git("add", "memories")
    assert cli.ok("git", "allow", "commit").errors == ""
    tree.write("src/a.py", "a\n")
    tree.git("add", "src")
    said = cli.ok("git", "allow", "commit").errors
    assert said.startswith("nothing will be committed by itself: ")
    assert said.count("\n") == 1
    assert "this one has other files as well (commit with `mdmem git commit`)" in said
    assert cli.ok("git", "allow", "commit", "--json").json == {"what": "commit", "allowed": True}


def test_the_lines_of_a_fact_stand_below_its_words(cli: Any, tree: Tree) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    tree.write("memories/notes/db.md", f"{words}\n\n```\nx = 1\ny = 2\n```\n")
    head = tree.commit()[:8]
    above = f"{head}  2026-01-01  A  "
    assert cli.ok("git", "blame", "notes/db.md").out.splitlines() == [
        f"{above}1  {words}",
        f"{above}3  ```",
        *(" " * len(f"{above}3  ") + line for line in ("x = 1", "y = 2", "```")),
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
