"""Memories that end in .mdx, .markdown or .mdc: as any other where the config names the suffix, else none."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import mdmem
from mdmem.cli.main import main
from mdmem.errors import AlreadyExists, ConfigInvalid, PathRefused, ToolRefused
from mdmem.serve.adapters.memory_tool import Tool
from tests.git.conftest import SETTINGS
from tests.programs import needs
from tests.speed import examples
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mdmem.facade.memory import Memory

BOTH = (".mdx", ".markdown", ".mdc")
NAMES_THE_KEY = "`[files] suffixes` of .mdmem/config.toml"
LIMIT = 20.0


def configure(root: Path, suffixes: Iterable[str]) -> None:
    """Write the config of a vault, which names these suffixes."""
    (root / ".mdmem").mkdir(parents=True, exist_ok=True)
    quoted = ", ".join(f'"{suffix}"' for suffix in suffixes)
    (root / ".mdmem/config.toml").write_text(f"[files]\nsuffixes = [{quoted}]\n")


def fill(root: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def texts(root: Path) -> dict[str, str]:
    """What all files hold but mdmem's own."""
    files = {str(file.relative_to(root)): file for file in sorted(root.rglob("*.*")) if file.is_file()}
    return {path: file.read_text() for path, file in files.items() if not path.startswith(".")}


def listed(memory: Memory) -> list[str]:
    return [each.path for each in memory.ls()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a vault that takes both suffixes."""
    configure(tmp_path / "ws/memories", BOTH)
    return tmp_path / "ws/memories"


@pytest.fixture
def pages(root: Path) -> Memory:
    return mdmem.open(root)


# ------------------------------------------------------------------------------------------- what is typed


class Row(NamedTuple):
    """A command about `notes/page` with its suffix ({s}), and what it prints where the config names that.

    `without` is the exit code where it does not: then nothing of the page is printed.
    """

    typed: str
    prints: str
    without: int
    code: int = 0


PAGE = "---\ntitle: Sails\n---\n# Page\n\nSQLite, see [[plain]].\n\n<Card title='x'>\n  <b>b</b>\n</Card>\n"
ROWS = [
    Row("ls", "notes/page{s}", 0),
    Row("ls notes/page{s}", "notes/page{s}", 1),
    Row("ls --glob '*{s}'", "notes/page{s}", 1),
    Row("ls --where title=Sails", "notes/page{s}", 1),
    Row("ls --long", "notes/page{s}", 0),
    Row("show notes/page{s}", "# Page", 1),
    Row("show page", "# Page", 1),
    Row("show notes/page{s} --section Page", "SQLite, see", 1),
    Row("grep SQLite", "notes/page{s}", 1),
    Row("grep SQLite notes/page{s}", "SQLite, see", 2),
    Row("grep SQLite -t md", "notes/page{s}", 1),
    Row("grep SQLite -t json", "", 1, code=1),
    Row("search sqlite", "notes/page{s}", 1),
    Row("search title:sails", "notes/page{s}", 1),
    Row("backlinks notes/plain.md", "notes/page{s}:6", 1),
    Row("backlinks notes/page{s}", "notes/plain.md:1", 1),
    Row("refs", "notes/page{s}", 0),
    Row("graph", "notes/page{s}", 0),
    Row("check notes/page{s}", "", 0),
    Row("append notes/page{s} more", "changed notes/page{s}", 2),
    Row("prepend notes/page{s} first", "changed notes/page{s}", 2),
    Row("insert notes/page{s} 4 line", "changed notes/page{s}", 2),
    Row("replace notes/page{s} SQLite Postgres", "changed notes/page{s}", 2),
    Row("replace --in notes --all SQLite Postgres", "changed notes/page{s}", 1),
    Row("section notes/page{s} Page more --append", "changed notes/page{s}", 2),
    Row("set notes/page{s} title=Oars", "changed notes/page{s}", 2),
    Row("unset notes/page{s} title", "changed notes/page{s}", 2),
    Row("write notes/page{s} text --overwrite", "changed notes/page{s}", 2),
    Row("write notes/new{s} text", "created notes/new{s}", 2),
    Row("new note notes/new{s} --var title=T", "created notes/new{s}", 2),
    Row("mv notes/plain.md notes/new{s}", "moved notes/plain.md → notes/new{s}", 2),
    Row("rm notes/page{s}", "deleted notes/page{s}", 1),
    Row("rm -r notes", "deleted notes/page{s}", 0),
    Row("history notes/page{s}", "", 1, code=1),
    Row("notes list", "notes/page{s}", 0),
    Row("notes append page{s} more --title T", "changed notes/page{s}", 2),
]
EACH = [pytest.param(row, suffix, id=f"{row.typed}-{suffix}") for row in ROWS for suffix in BOTH]


def run(typed: str, root: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["--vault", str(root), *shlex.split(typed)])
    return code, *capfd.readouterr()


@cases("row, suffix", EACH)
def test_each_verb_takes_them_where_the_config_names_them(
    row: Row, suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    configure(root := tmp_path / "memories", BOTH)
    fill(root, {f"notes/page{suffix}": PAGE, "notes/plain.md": "[[page]] and SQL\n"})
    code, printed, errors = run(row.typed.replace("{s}", suffix), root, capfd)
    assert code == row.code, errors
    assert row.prints.replace("{s}", suffix) in printed


@cases("row, suffix", EACH)
def test_no_verb_sees_or_writes_them_without_the_config(
    row: Row, suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    configure(root := tmp_path / "memories", [each for each in BOTH if each != suffix])
    fill(root, {f"notes/page{suffix}": PAGE, "notes/plain.md": "[[page]] and SQL\n"})
    code, printed, errors = run(row.typed.replace("{s}", suffix), root, capfd)
    assert code == row.without, errors
    assert f"page{suffix}" not in printed
    assert "SQLite" not in printed
    assert texts(root).pop(f"notes/page{suffix}") == PAGE
    assert f"notes/new{suffix}" not in texts(root)
    if code == 2 and row.prints.startswith(("changed", "created", "moved")):
        assert NAMES_THE_KEY in errors


def test_a_config_names_no_other_suffix(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for other in (".txt", ".md", "mdx", ""):
        configure(root, [other])
        with pytest.raises(ConfigInvalid) as refused:
            listed(mdmem.open(root))
        assert "line 2: [files] suffixes is a list of none, some or all of" in refused.value.reason
        assert '".mdx", ".markdown"' in refused.value.reason
    assert run("ls", root, capfd)[0] == 2


def test_what_is_passed_over_is_told_with_the_key_that_takes_it(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(root, {"a.mdx": "a\n", "b.markdown": "b\n", "c.txt": "c\n"})
    taken = ": `[files] suffixes` in .mdmem/config.toml takes .mdx, .markdown and .mdc\n"
    for suffixes, says in (((), "3 files"), ((".mdx",), "2 files"), (BOTH, "1 file")):
        configure(root, suffixes)
        ends = [".md", ".json", *suffixes]
        told = run("check", root, capfd)[2]
        assert told.startswith(f"note: {says} passed over: ")
        assert f"a memory ends in {', '.join(ends[:-1])} or {ends[-1]}: rename" in told
        assert told.endswith(taken) is (suffixes != BOTH)
        assert sum(mdmem.open(root).passed_over().values()) == int(says[0])


# -------------------------------------------------------------------------------------------------- links


def test_the_name_of_a_link_means_md_before_mdx_before_markdown(root: Path, pages: Memory) -> None:
    fill(root, {"from.md": "[[a]] [p](a) [[a.mdx]] [q](a.markdown)\n"})
    for path in ("deep/a.markdown", "a.markdown", "a.mdx", "a.md"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("# A\n")
        found = [path for path in ("a.md", "a.mdx", "a.markdown") if (root / path).exists()]
        first = found[0] if found else path
        by_name = [each.line for each in pages.references.backlinks(first)]
        assert by_name, path
    assert len(pages.references.backlinks("a.md")) == 2
    assert len(pages.references.backlinks("a.mdx")) == 1
    assert len(pages.references.backlinks("a.markdown")) == 1
    assert pages.references.backlinks("deep/a.markdown") == ()


def test_two_of_one_suffix_are_ambiguous_as_ever(root: Path, pages: Memory) -> None:
    fill(root, {"x/a.mdx": "", "y/a.mdx": "", "from.markdown": "[[a]]\n"})
    (finding,) = pages.check()
    assert (finding.path, finding.code) == ("from.markdown", "ambiguous-link")


@pytest.mark.parametrize("suffix", BOTH)
def test_links_follow_both_ways_and_keep_their_style(suffix: str, root: Path, pages: Memory) -> None:
    before = {
        "n/to.md": f"[[page]] [[page{suffix}]] [[n/page#A|x]] [a](page) [b](./page{suffix}#a) [c](/n/page)\n",
        f"n/page{suffix}": "# A\n\n[[to]] [t](to.md) [o](../other.markdown#b)\n",
        "other.markdown": f"# B\n\n![](n/page{suffix})\n",
    }
    fill(root, before)
    pages.mv(f"n/page{suffix}", f"far/new{suffix}")
    assert texts(root) == {
        f"far/new{suffix}": "# A\n\n[[to]] [t](../n/to.md) [o](../other.markdown#b)\n",
        "n/to.md": f"[[new]] [[new{suffix}]] [[far/new#A|x]] [a](../far/new) [b](./../far/new{suffix}#a)"
        " [c](/far/new)\n",
        "other.markdown": f"# B\n\n![](far/new{suffix})\n",
    }
    assert pages.check() == []
    pages.undo()
    assert texts(root) == before
    pages.mv("n/", "m")
    assert pages.check() == []
    pages.rename_heading(f"m/page{suffix}", "A", "Z")
    assert texts(root)["m/to.md"].count("#Z") == 1
    assert pages.check() == []


def test_a_link_says_the_suffix_where_its_name_would_mean_another(root: Path, pages: Memory) -> None:
    fill(root, {"a.mdx": "# X\n", "b.md": "# B\n", "from.md": "[[a]] [x](a)\n"})
    pages.mv("b.md", "a.md")
    assert texts(root)["from.md"] == "[[a.mdx]] [x](a.mdx)\n"
    pages.rm("a.md")
    pages.mv("a.mdx", "a.md")
    assert texts(root)["from.md"] == "[[a.md]] [x](a.md)\n"
    assert pages.check() == []


def test_a_new_name_without_a_suffix_is_refused_with_the_one_that_it_had(pages: Memory) -> None:
    pages.write("a.mdx", "# A\n")
    with pytest.raises(PathRefused, match="a memory's name ends in") as refused:
        pages.mv("a.mdx", "b")
    assert refused.value.hint == "try b.mdx"


def test_an_editor_renames_them_under_their_suffix(root: Path, pages: Memory) -> None:
    fill(root, {"a.mdx": "# A\n\n[[b]]\n", "b.md": "[[a]] [[a]]\n"})
    assert pages.at(root / "a.mdx") == "a.mdx"
    editing = pages.editing()
    editing.open("a.mdx", "# A\n\n[[b]] [[]]\n")
    assert [goal.spot.path for goal in editing.targets("a.mdx", 7)] == ["b.md"]
    editing.open("b.md", "[[a]] [[]]\n")
    assert [spot.path for spot in editing.uses("b.md", 2)] == ["b.md"]
    assert [each.edit.new for each in editing.completions("b.md", 8).items] == ["a]]"]
    plan = editing.rename("b.md", 2, "c")
    assert plan.changes[0].move_to == "c.mdx"
    configure(root, ())
    unnamed = mdmem.open(root)
    assert unnamed.at(root / "a.mdx") is None
    assert unnamed.editing().uses("b.md", 2) == []


# ------------------------------------------------------------------------------------- a config that changes


def test_a_config_that_is_changed_counts_from_the_next_command_on(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(root, {"a.mdx": "SQLite [[b]]\n", "b.md": "SQLite [[a]]\n", "c.markdown": "SQLite\n"})
    for suffixes in (BOTH, (), (".mdx",), (".markdown",), BOTH):
        configure(root, suffixes)
        there = sorted(["b.md", *(name for name in ("a.mdx", "c.markdown") if Path(name).suffix in suffixes)])
        assert run("ls", root, capfd)[1].split() == there
        assert run("ls --where path~.", root, capfd)[1].split() == there
        assert sorted(run("grep SQLite --files-with-matches", root, capfd)[1].split()) == there
        found = run("search sqlite --json", root, capfd)[1]
        assert [name for name in ("a.mdx", "b.md", "c.markdown") if name in found] == there
        assert ("there is no memory 'a'" in run("check", root, capfd)[1]) is (".mdx" not in suffixes)


def test_a_process_that_goes_on_takes_a_config_that_changes_as_commands_do(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(root, {"a.mdx": "SQLite\n", "b.md": "SQLite\n"})
    memory = mdmem.open(root)
    keeper = memory.keep_current()
    try:
        until(lambda: memory.index.is_watched)
        for suffixes in ((), BOTH, ()):
            configure(root, suffixes)
            there = [*(["a.mdx"] if suffixes else []), "b.md"]
            assert run("ls --where size>0", root, capfd)[1].split() == there
            assert [each.path for each in memory.ls(where=["size>0"])] == there
            assert sorted(hit.path for hit in memory.search("sqlite").hits) == there
            assert [
                name for name in ("a.mdx", "b.md") if name in run("search sqlite", root, capfd)[1]
            ] == there
    finally:
        keeper.close()
        memory.index.close()


def test_an_editor_takes_a_config_that_is_changed(root: Path) -> None:
    configure(root, ())
    fill(root, {"a.mdx": "# A\n", "b.md": "[[a]]\n"})
    memory = mdmem.open(root)
    editing = memory.editing()
    editing.open("b.md", "[[a]]\n")
    changes = editing.changes()
    next(changes)
    assert [finding.code for finding in editing.check("b.md")] == ["dangling-link"]
    for suffixes, codes in ((BOTH, []), ((), ["dangling-link"])):
        configure(root, suffixes)
        assert "b.md" in next(changes)
        assert [finding.code for finding in editing.check("b.md")] == codes
        assert memory.at(root / "a.mdx") == ("a.mdx" if suffixes else None)
    editing.stop()
    assert next(changes, None) is None
    memory.index.close()


def test_a_watch_tells_of_them(root: Path) -> None:
    fill(root, {"a.mdx": "# A\n", "b.md": "[[a]]\n"})
    memory = mdmem.open(root)
    with memory.watch() as watch:

        def told(kind: str) -> str:
            while event := watch.next(LIMIT):
                if event.kind == kind:
                    return event.path
            return "nothing"

        assert told("ready") == ""
        fill(root, {"c.markdown": "# C\n"})
        assert told("created") == "c.markdown"
        fill(root, {"a.mdx": "# B\n"})
        assert told("changed") == "a.mdx"
        (root / "c.markdown").unlink()
        assert told("deleted") == "c.markdown"
        (root / "a.mdx").unlink()
        assert told("dangling") == "b.md"
    memory.index.close()


def test_what_was_edited_under_another_config_is_not_undone(root: Path) -> None:
    fill(root, {"a.mdx": "one\n", "b.mdx": "two\n"})
    memory = mdmem.open(root)
    memory.append("a.mdx", "more")
    configure(root, ())
    with pytest.raises(PathRefused, match="only where the vault's config names it"):
        mdmem.open(root).undo()
    configure(root, BOTH)
    mdmem.open(root).rm("b.mdx")
    configure(root, ())
    with pytest.raises(PathRefused):
        mdmem.open(root).restore("b.mdx")
    mdmem.open(root).undo()  # what was deleted comes back as a file
    assert texts(root) == {"a.mdx": "one\nmore\n", "b.mdx": "two\n"}


def test_without_the_config_they_move_as_attachments(root: Path) -> None:
    configure(root, ())
    fill(root, {"n/a.mdx": "# A\n", "n/b.md": "# B\n", "c.md": "[a](n/a.mdx) [[n/a.mdx]]\n"})
    memory = mdmem.open(root)
    memory.mv("n", "m")
    assert texts(root) == {"c.md": "[a](m/a.mdx) [[m/a.mdx]]\n", "m/a.mdx": "# A\n", "m/b.md": "# B\n"}
    memory.undo()
    assert (root / "n/a.mdx").read_text() == "# A\n"


# ---------------------------------------------------------------------------------- walls, git, other doors


@pytest.mark.parametrize("suffix", BOTH)
def test_a_wall_stands_around_them(suffix: str, root: Path) -> None:
    name = f"page{suffix}"
    fill(
        root,
        {
            f"users/bob/notes/{name}": "sqlite of bob\n",
            f"users/al/notes/{name}": "sqlite of al [[page]]\n",
            f"projects/demo/notes/{name}": "sqlite of demo\n",
            f"notes/{name}": "sqlite of all\n",
        },
    )
    al = mdmem.open(root, mdmem.Scope(user="al"))
    assert listed(al) == [f"notes/{name}"]
    assert [hit.text for hit in al.grep("sqlite")] == ["sqlite of al [[page]]"]
    assert [hit.path for hit in al.search("sqlite").hits] == [f"notes/{name}"]
    assert al.check() == []
    for path in (f"../bob/notes/{name}", f"users/bob/notes/../notes/{name}"):
        with pytest.raises(PathRefused):
            al.show(path)
    shared = mdmem.open(root, mdmem.Scope(project="demo", shared=True))
    assert listed(shared) == [f"notes/{name}"]
    both = mdmem.open(root, mdmem.Scope(user="al", project="demo"))
    assert {f"shared:notes/{name}", f"project:notes/{name}"} <= {
        hit.path for hit in both.search("sqlite").hits
    }
    assert both.show(f"shared:notes/{name}").text == "sqlite of all\n"


def test_git_reviews_them_where_the_config_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("git")
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "repository/memories"
    configure(root, BOTH)
    fill(root, {"a.mdx": "# A\n\n- one\n", "b.markdown": "# B\n"})

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=root.parent, check=True, capture_output=True, text=True
        )
        return done.stdout

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "m")
    memory = mdmem.open(root)
    memory.append("a.mdx", "- two")
    (change,) = memory.git.diff("HEAD")
    assert change.path == "a.mdx"
    assert [each.text for each in memory.git.blame("a.mdx")][-1:] == ["two"]
    memory.git.commit("c")
    assert [each.path for each in next(iter(memory.git.log())).memories] == ["a.mdx"]
    memory.git.revert("a.mdx:two")
    assert (root / "a.mdx").read_text() == "# A\n\n- one\n"
    git("add", "--all")
    git("commit", "--quiet", "--message", "r")
    fill(root, {"a.mdx": "# A\n\n- one\n- three\n"})
    configure(root, [".markdown"])
    unnamed = mdmem.open(root)
    assert [each.path for each in unnamed.git.diff("HEAD")] == [".mdmem"]
    assert all(each.path != "a.mdx" for commit in unnamed.git.log() for each in commit.memories)


def test_the_memory_tool_keeps_their_names(root: Path, pages: Memory) -> None:
    tool = Tool(pages)
    tool.call({"command": "create", "path": "/memories/a.mdx", "file_text": "# A\n"})
    assert "a.mdx" in tool.call({"command": "view", "path": "/memories"})
    tool.call({"command": "rename", "old_path": "/memories/a.mdx", "new_path": "/memories/b.mdx"})
    assert texts(root) == {"b.mdx": "# A\n"}
    configure(root, ())
    tool = Tool(mdmem.open(root))
    with pytest.raises(ToolRefused):
        tool.call({"command": "view", "path": "/memories/b.mdx"})
    tool.call({"command": "create", "path": "/memories/c.mdx", "file_text": "# C\n"})
    assert texts(root) == {"b.mdx": "# A\n", "c.mdx.md": "# C\n"}


def test_an_import_takes_what_the_vault_takes(tmp_path: Path, root: Path) -> None:
    fill(tmp_path / "Obsidian", {"a.mdx": "# A\n", "b.md": "[[a]]\n"})
    configure(root, ())
    plan = mdmem.open(root).plan.import_("obsidian", tmp_path / "Obsidian")
    assert ([each.path for each in plan.changes], [each.move_to for each in plan.attachments]) == (
        ["notes/b.md"],
        ["notes/a.mdx"],
    )
    configure(root, BOTH)
    mdmem.open(root).import_("obsidian", tmp_path / "Obsidian")
    assert texts(root) == {"notes/a.mdx": "# A\n", "notes/b.md": "[[a]]\n"}


def test_a_mount_may_end_so_where_the_config_names_it(tmp_path: Path) -> None:
    root = tmp_path / "ws/memories"
    mount = '[mounts]\n"page.mdx" = "../docs/page.mdx"\n'
    fill(tmp_path / "ws", {"docs/page.mdx": "# P\n"})
    configure(root, BOTH)
    with (root / ".mdmem/config.toml").open("a") as file:
        file.write(mount)
    memory = mdmem.open(root)
    assert listed(memory) == ["page.mdx"]
    assert [hit.path for hit in memory.grep("P")] == ["page.mdx"]
    memory.append("page.mdx", "more")
    assert (tmp_path / "ws/docs/page.mdx").read_text() == "# P\nmore\n"
    (root / ".mdmem/config.toml").write_text(mount)
    with pytest.raises(ConfigInvalid, match="only where the vault's config names it"):
        listed(mdmem.open(root))


def test_two_that_differ_in_their_suffix_are_two_memories(root: Path, pages: Memory) -> None:
    for suffix in (".md", *BOTH):
        pages.write(f"a{suffix}", f"{suffix}\n")
    with pytest.raises(AlreadyExists):
        pages.write("a.mdx", "again\n")
    assert listed(pages) == ["a.markdown", "a.md", "a.mdc", "a.mdx"]
    pages.rm("a.md")
    assert texts(root) == {f"a{suffix}": f"{suffix}\n" for suffix in BOTH}


# ---------------------------------------------------------------------------------------------- any tree

STEMS = st.sampled_from(["a", "b", ".h", "a.md", "a.mdx", "é", "MD"])
ENDS = st.sampled_from([".md", ".mdx", ".markdown", ".json", ".MDX", ".txt", "", ".md.mdx", ".mdx.md"])
FOLDERS = st.lists(st.sampled_from(["n", "m.mdx", ".git", "p"]), max_size=2)
TREES = st.lists(st.tuples(FOLDERS, STEMS, ENDS), max_size=12)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(TREES, st.sets(st.sampled_from(BOTH)))
def test_ls_and_the_index_find_what_a_walk_finds(
    names: list[tuple[list[str], str, str]], suffixes: set[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        configure(root, sorted(suffixes))
        for folders, stem, end in names:
            file = root.joinpath(*folders, stem + end)
            if not any(above.is_file() for above in file.parents) and not file.is_dir():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("{}\n")
        ends = (".md", ".json", *suffixes)
        expected = sorted(
            os.path.relpath(os.path.join(above, name), root)
            for above, _, names_ in os.walk(root)
            for name in names_
            if name.endswith(ends)
            and not any(part.startswith(".") for part in Path(above, name).relative_to(root).parts)
        )
        memory = mdmem.open(root)
        assert sorted(listed(memory)) == expected
        assert sorted(each.path for each in memory.ls(where=["size>0"])) == expected
        assert sorted({hit.path for hit in memory.grep("{}")}) == expected
        memory.index.close()
