"""Git is set up to merge memories, and what was set up goes without a trace."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from mdmem.errors import Conflict, EditRefused, GitFailed, PathRefused, Usage
from mdmem.review.merge_setup import install, uninstall
from mdmem.vault.folder import init
from tests.speed import examples
from tests.tables import cases

ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org")


def git(folder: Path, *arguments: str) -> str:
    line = ["git", *IDENTITY, *arguments]
    return subprocess.run(
        line, cwd=folder, check=True, capture_output=True, errors="surrogateescape"
    ).stdout.strip()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    init(root / "memories")
    monkeypatch.chdir(root)
    return root


def state(root: Path) -> dict[str, bytes]:
    """Every file of the repository."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def installed(root: Path, vault: str = "memories") -> None:
    install(str(root / vault)).apply()


def uninstalled(root: Path, vault: str = "memories") -> None:
    uninstall(str(root / vault)).apply()


def merged_by(root: Path, *paths: str) -> dict[str, str]:
    """Which driver git takes for files."""
    said = git(root, "check-attr", "-z", "merge", "--", *paths).split("\0")
    return dict(zip(said[::3], said[2::3], strict=False))


def test_memories_and_mounts_get_the_driver_and_nothing_else(work: Path) -> None:
    installed(work)
    ours = ["memories/a.md", "memories/notes/deep/er/é b.md", "memories/data/a.json", "AGENTS.md"]
    others = ["README.md", "notes/memories/a.md", "memories/a.txt", "sub/AGENTS.md", "package.json"]
    assert set(merged_by(work, *ours).values()) == {"mdmem"}
    assert set(merged_by(work, *others).values()) == {"unspecified"}
    assert git(work, "check-attr", "diff", "--", "memories/a.md") == "memories/a.md: diff: markdown"
    assert git(work, "check-attr", "diff", "--", "memories/a.json") == "memories/a.json: diff: unspecified"
    assert "mdmem git merge-driver -- %O %A %B %L %P" in git(work, "config", "merge.mdmem.driver")


def test_it_goes_without_a_trace(work: Path) -> None:
    before = state(work)
    installed(work)
    assert state(work) != before
    uninstalled(work)
    assert state(work) == before


def test_where_the_current_folder_is_gone_no_diff_is_shown(work: Path) -> None:
    setup = install(str(work / "memories"))
    gone = work / "gone"
    gone.mkdir()
    with contextlib.chdir(gone):
        gone.rmdir()
        with pytest.raises(Usage, match="the current folder is gone"):
            setup.diff()


def test_to_set_up_twice_changes_nothing(work: Path) -> None:
    installed(work)
    before = state(work)
    again = install(str(work / "memories"))
    assert not again.changes
    assert again.diff() == ""
    again.apply()
    assert state(work) == before
    uninstalled(work)
    assert not uninstall(str(work / "memories")).changes


@example(b"", b"")
@example(b"* text=auto", b"*.png binary\n")
@example(b"\xff\xfe x\r\n", b"y")
@settings(
    max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    st.lists(st.sampled_from([b"*.a text", b"\n", b"\r\n", b"# x", b" ", b"\xff"]), max_size=6).map(b"".join),
    st.lists(st.sampled_from([b"*.b text", b"\n", b"# y"]), max_size=4).map(b"".join),
)
def test_what_else_stands_in_the_attributes_keeps_its_bytes(work: Path, before: bytes, behind: bytes) -> None:
    file = work / ".gitattributes"
    file.write_bytes(before)
    installed(work)
    assert file.read_bytes().startswith(before)
    assert merged_by(work, "memories/a.md") == {"memories/a.md": "mdmem"}
    uninstalled(work)
    assert file.read_bytes() == before
    if before.endswith(b"\n"):
        installed(work)
        file.write_bytes(file.read_bytes() + behind)
        installed(work)
        uninstalled(work)
        assert (file.read_bytes() if file.exists() else b"") == before + behind
    file.unlink(missing_ok=True)


def test_a_new_mount_is_put_into_the_block_where_it_stands(work: Path) -> None:
    installed(work)
    file = work / ".gitattributes"
    file.write_text(file.read_text() + "*.png binary\n")
    config = work / "memories/.mdmem/config.toml"
    config.write_text(config.read_text().replace("[mounts]", '[mounts]\n"D.md" = "../docs/my notes/D.md"'))
    installed(work)
    assert file.read_text().endswith("# mdmem:end memories\n*.png binary\n")
    assert set(merged_by(work, "docs/my notes/D.md", "AGENTS.md").values()) == {"mdmem"}


@cases("name", ["a b", "a[b]*", 'q"q', "#x", "!x", "back\\slash", "é", "tab\tx", "[attr]x"])
def test_any_folder_is_named_rightly(work: Path, name: str) -> None:
    init(work / name)
    installed(work, name)
    assert merged_by(work, f"{name}/notes/a.md", "memories/a.md", "b/notes/a.md") == {
        f"{name}/notes/a.md": "mdmem",
        "memories/a.md": "unspecified",
        "b/notes/a.md": "unspecified",
    }
    uninstalled(work, name)
    assert not (work / ".gitattributes").exists()


def test_a_vault_at_the_root_of_the_repository(tmp_path: Path, work: Path) -> None:
    del work
    root = tmp_path / "all"
    root.mkdir()
    git(root, "init", "--quiet")
    init(root)
    install(str(root)).apply()
    assert set(merged_by(root, "a.md", "notes/b.json").values()) == {"mdmem"}


def test_two_vaults_share_the_driver(work: Path) -> None:
    init(work / "other")
    before = state(work)
    installed(work)
    installed(work, "other")
    uninstalled(work)
    assert git(work, "config", "merge.mdmem.driver")
    assert merged_by(work, "memories/a.md", "other/a.md") == {
        "memories/a.md": "unspecified",
        "other/a.md": "mdmem",
    }
    uninstalled(work, "other")
    assert state(work) == before


def test_without_a_vault_every_block_is_taken_out(work: Path) -> None:
    init(work / "other")
    before = state(work)
    installed(work)
    installed(work, "other")
    uninstall(str(work), is_vault=False).apply()
    assert state(work) == before


def test_what_an_older_version_has_set_up_is_brought_up_to_date_or_goes(work: Path) -> None:
    before = state(work)
    installed(work)
    now = git(work, "config", "merge.mdmem.driver")
    old = now.replace(' "$s" "$x" "$y"', "").partition("; esac; ")[2]
    git(work, "config", "merge.mdmem.driver", old)
    assert [Path(each.path).name for each in install(str(work / "memories")).changes] == ["config"]
    installed(work)
    assert git(work, "config", "merge.mdmem.driver") == now
    git(work, "config", "merge.mdmem.driver", old)
    uninstalled(work)
    assert state(work) == before


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (("merged common ancestors", "HEAD", "1a2b (it's $(so))"), ("HEAD", "1a2b (it's $(so))")),
        (("", "", ""), ("ours", "theirs")),
        (None, ("ours", "theirs")),
    ],
    ids=["git 2.44", "rerere", "an older git"],
)
def test_markers_get_the_names_that_git_tells(
    work: Path, named: tuple[str, str, str] | None, told: tuple[str, str]
) -> None:
    """The command as git makes it of the driver: names in quotes for the shell, `%%` as one."""
    install(str(work / "memories"), "nowhere").apply()
    values = {"O": "base", "A": "ours", "B": "theirs", "L": "7", "P": "memories/a.md"}
    if named:
        values |= dict(zip("SXY", map(shlex.quote, named), strict=True))
    driver = git(work, "config", "merge.mdmem.driver")
    command = re.sub(r"%(.)", lambda found: values.get(found[1], found[0].replace("%%", "%")), driver)
    for name in ("base", "ours", "theirs"):
        (work / name).write_text(f"{name}\n")
    assert subprocess.run(command, shell=True, cwd=work, check=False, capture_output=True).returncode == 1
    assert (work / "ours").read_text() == f"<<<<<<< {told[0]}\nours\n=======\ntheirs\n>>>>>>> {told[1]}\n"


def test_settings_of_others_stay(work: Path) -> None:
    git(work, "config", "merge.mdmem.recursive", "binary")
    git(work, "config", "merge.other.driver", "true")
    before = state(work)
    installed(work)
    uninstalled(work)
    assert state(work) == before
    git(work, "config", "merge.mdmem.driver", "mine %A")
    with pytest.raises(EditRefused, match="mine %A"):
        install(str(work / "memories"))
    left = uninstall(str(work / "memories"))
    assert not left.changes
    assert "mine %A" in left.notes()[0]


def test_a_program_that_is_not_on_path_is_named_in_full(work: Path) -> None:
    install(str(work / "memories"), "/opt/my tools/100%/mdmem").apply()
    assert "'/opt/my tools/100%%/mdmem' git merge-driver" in git(work, "config", "merge.mdmem.driver")
    installed(work)
    assert "/opt" not in git(work, "config", "merge.mdmem.driver")


def test_work_trees_share_the_config(work: Path, tmp_path: Path) -> None:
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "m")
    other = tmp_path / "linked"
    git(work, "worktree", "add", "--quiet", str(other))
    before = state(work)
    installed(other)
    assert git(work, "config", "--local", "merge.mdmem.name")
    assert (other / ".gitattributes").exists()
    assert not (work / ".gitattributes").exists()
    uninstalled(other)
    assert state(work) == before


def test_a_submodule_has_its_own_config(work: Path, tmp_path: Path) -> None:
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "m")
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(work), "sub")
    before = (outer / ".git/config").read_bytes()
    installed(outer / "sub")
    assert git(outer / "sub", "config", "merge.mdmem.driver")
    assert (outer / ".git/config").read_bytes() == before
    assert merged_by(outer / "sub", "memories/a.md") == {"memories/a.md": "mdmem"}


def test_without_a_work_tree_it_is_refused(tmp_path: Path, work: Path) -> None:
    del work
    alone = tmp_path / "alone"
    init(alone)
    with pytest.raises(GitFailed, match="not in a work tree"):
        install(str(alone))
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", str(bare))
    init(bare / "memories")
    with pytest.raises(GitFailed, match="not in a work tree"):
        install(str(bare / "memories"))


@pytest.mark.parametrize("name", [".gitattributes", ".git/config"])
def test_no_link_is_followed(work: Path, tmp_path: Path, name: str) -> None:
    victim, file = tmp_path / "victim", work / name
    victim.write_bytes(file.read_bytes() if file.exists() else b"mine\n")
    file.unlink(missing_ok=True)
    file.symlink_to(victim)
    before = victim.read_bytes()
    with pytest.raises(PathRefused):
        install(str(work / "memories")).apply()
    assert victim.read_bytes() == before


@pytest.mark.parametrize(
    "text", ["# mdmem:begin memories\n", "# mdmem:end memories\n", "# mdmem:begin a\n# mdmem:begin b\n"]
)
def test_marks_without_a_partner_are_refused(work: Path, text: str) -> None:
    (work / ".gitattributes").write_text(text)
    with pytest.raises(EditRefused, match="mdmem:"):
        install(str(work / "memories"))


@pytest.mark.parametrize("name", [".gitattributes", ".git/config"])
def test_what_has_changed_since_it_was_shown_is_not_written(work: Path, name: str) -> None:
    setup = install(str(work / "memories"))
    with (work / name).open("a") as file:
        file.write("# mine\n")
    before = state(work)
    with pytest.raises(Conflict):
        setup.apply()
    assert state(work) == before


def test_settings_of_the_repository_start_no_program(work: Path) -> None:
    config: dict[str, Any] = {
        "core.fsmonitor": "touch ../ran",
        "core.hooksPath": ".",
        "core.pager": "touch ../ran",
    }
    for name, value in config.items():
        git(work, "config", name, value)
    installed(work)
    uninstalled(work)
    assert not (work.parent / "ran").exists()


def test_what_the_config_takes_for_memories_is_merged_too(work: Path) -> None:
    installed(work)
    assert ".mdx" not in (work / ".gitattributes").read_text()
    (work / "memories/.mdmem/config.toml").write_text('[files]\nsuffixes = [".mdx", ".markdown"]\n')
    installed(work)
    lines = (work / ".gitattributes").read_text().splitlines()
    assert "/memories/**/*.mdx merge=mdmem diff=markdown" in lines
    assert "/memories/**/*.markdown merge=mdmem diff=markdown" in lines
    assert "/memories/**/*.json merge=mdmem" in lines
