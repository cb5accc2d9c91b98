"""Files that no event tells of, which are looked at: mounts, cited code, memories with several names."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.index.watch import watcher
from tests.waiting import until

if TYPE_CHECKING:
    from tests.index.watch.conftest import Follow, Following


@pytest.fixture(autouse=True)
def _poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.05)


def test_a_write_through_another_name_outside_is_seen(follow: Follow, root: Path) -> None:
    os.link(root / "notes/a.md", root.parent / "outside.md")
    with follow(root) as following:
        (root.parent / "outside.md").write_text("through the other name")
        assert not following.watcher.vouches()
        looks = following.until_true()
        assert looks[0].paths == {"notes/a.md"}


def test_a_write_through_a_name_that_is_made_later_is_seen(follow: Follow, root: Path) -> None:
    with follow(root) as following:
        assert following.watcher.pending() is not None
        os.link(root / "notes/a.md", root.parent / "outside.md")
        (root.parent / "outside.md").write_text("through the other name")
        until(lambda: not following.watcher.vouches())
        following.until_true()
        (root.parent / "outside.md").write_text("and again")
        assert not following.watcher.vouches()
        following.until_true()


def test_a_name_made_beside_a_mounted_file_is_seen(follow: Follow, root: Path) -> None:
    agents = root.parent / "AGENTS.md"
    agents.write_text("agents")
    with follow(root, AGENTS__md=agents) as following:
        os.link(agents, root.parent / "CLAUDE.md")
        (root.parent / "CLAUDE.md").write_text("claude")
        following.until_true()
        (root.parent / "CLAUDE.md").write_text("claude again")
        following.until_true()
        assert not any(look.everything for look in following.copy.looks[1:])


def test_a_mounted_file_is_seen_however_it_is_saved(follow: Follow, root: Path) -> None:
    agents = root.parent / "AGENTS.md"
    with follow(root, AGENTS__md=agents) as following:
        for change in (
            lambda: agents.write_text("new"),
            lambda: agents.write_text("in place"),
            lambda: os.replace(shutil.copy(root / "top.md", root.parent / "t"), agents),
            agents.unlink,
            lambda: agents.write_text("again"),
            lambda: os.rename(agents, root.parent / "OTHER.md"),
        ):
            change()
            looks = following.until_true()
            assert looks[0].paths == {"AGENTS.md"}
        (root.parent / "unrelated.md").write_text("x")
        assert following.watcher.vouches()


def test_a_mounted_file_survives_moves_of_its_folder(follow: Follow, root: Path) -> None:
    docs = root.parent / "docs" / "deep"
    docs.mkdir(parents=True)
    (docs / "AGENTS.md").write_text("agents")
    with follow(root, AGENTS__md=docs / "AGENTS.md") as following:
        os.rename(root.parent / "docs", root.parent / "gone")
        following.until_true()
        assert "AGENTS.md" not in following.copy.known
        os.rename(root.parent / "gone", root.parent / "docs")
        following.until_true()
        (docs / "AGENTS.md").write_text("back")
        following.until_true()
        shutil.rmtree(root.parent / "docs")
        following.until_true()
        docs.mkdir(parents=True)
        (docs / "AGENTS.md").write_text("anew")
        following.until_true()
        assert following.copy.known["AGENTS.md"] == sha256(b"anew").hexdigest()
        assert not any(look.everything for look in following.copy.looks[1:])


def test_cited_code_is_told_apart(following: Following, root: Path) -> None:
    source = root.parent / "src"
    source.mkdir()
    files = [str(source / name) for name in ("a.py", "b.py")]
    for file in files:
        Path(file).write_text("x = 1\n")
    following.watcher.cite(files)
    Path(files[0]).write_text("x = 2\n")
    assert following.code() == {files[0]}
    (source / "c.py").write_text("nobody cites it")
    os.replace(source / "c.py", files[1])
    assert following.code() == {files[1]}
    Path(files[1]).unlink()
    assert following.code() == {files[1]}
    following.watcher.cite(files[1:])
    Path(files[0]).write_text("no longer cited")
    Path(files[1]).write_text("again")
    assert following.code() == {files[1]}


def test_cited_code_follows_its_folders(kernel: Following, root: Path) -> None:
    file = root.parent / "src/package/deep/a.py"
    kernel.watcher.cite([str(file)])
    file.parent.mkdir(parents=True)
    file.write_text("comes with its folders")
    assert kernel.code() == {str(file)}
    kernel.rest()
    for change in (
        lambda: os.rename(root.parent / "src", root.parent / "lib"),
        lambda: os.rename(root.parent / "lib", root.parent / "src"),
        lambda: file.write_text("written"),
        lambda: os.rename(file.parent, root.parent / "elsewhere"),
        lambda: shutil.copytree(root.parent / "elsewhere", file.parent),
        lambda: file.write_text("written again"),
        lambda: shutil.rmtree(root.parent / "src"),
    ):
        change()
        assert kernel.code() == {str(file)}
        kernel.rest()


def test_a_cited_file_inside_the_vault_is_both(kernel: Following, root: Path) -> None:
    (root / "notes/run.py").touch()
    cited = {str(root / "notes/a.md"), str(root / "notes/run.py")}
    kernel.watcher.cite(cited)
    (root / "notes/a.md").write_text("x")
    (root / "notes/run.py").write_text("x")
    looks = [kernel.take()]
    while not looks[-1].code:
        looks.append(kernel.take())
    assert frozenset().union(*(look.paths for look in looks)) == {"notes/a.md"}
    assert looks[-1].code == cited


def test_code_behind_a_link_is_seen(kernel: Following, root: Path) -> None:
    (root.parent / "real").mkdir()
    os.symlink(root.parent / "real", root.parent / "link")
    kernel.watcher.cite([str(root.parent / "link/a.py")])
    (root.parent / "real/a.py").write_text("x")
    assert kernel.code() == {str(root.parent / "link/a.py")}


@pytest.mark.parametrize("name", ["src", "src/a.py"])
def test_code_that_a_link_replaces_is_seen(kernel: Following, root: Path, name: str) -> None:
    file, place, real = root.parent / "src/a.py", root.parent / name, root.parent / "real"
    file.parent.mkdir()
    file.write_text("x")
    kernel.watcher.cite([str(file)])
    os.rename(place, real)
    assert kernel.code() == {str(file)}
    os.symlink(real, place)
    assert kernel.code() == {str(file)}
    (real / "a.py" if real.is_dir() else real).write_text("through the link")
    assert kernel.code() == {str(file)}
