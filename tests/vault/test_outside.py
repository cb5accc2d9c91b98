"""Files outside of the vault: written whole or not at all, where they are, and nowhere else."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mdmem.errors import Conflict, EditRefused, FileBusy, MdmemError, PathRefused, StorageFailed
from mdmem.vault import config, files, mark, outside
from mdmem.vault.trash import TrashFolder
from tests import speed
from tests.killing import killed
from tests.memory.forking import run_at_once
from tests.speed import soak_most

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW, LATE = b"old\n", b"new\n", b"late\n"
Held = bytes | None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("project", "elsewhere", "kept"):
        (tmp_path / name).mkdir()
    return tmp_path / "project"


def replace(project: Path, path: str, before: Held, after: Held) -> None:
    kept = TrashFolder(str(project.parent / "kept"), config.Trash())
    outside.replace(outside.below(str(project), path), path, before, after, kept, "test")


def kept(project: Path) -> set[bytes]:
    folder = project.parent / "kept"
    return {path.read_bytes() for path in folder.iterdir() if path.name != "log.jsonl"}


@pytest.mark.parametrize(("before", "after"), [(None, NEW), (OLD, NEW), (OLD, None), (OLD, OLD)])
@pytest.mark.parametrize("path", ["a.md", "new/folder/a.md"])
def test_a_file_is_replaced_where_it_holds_what_was_shown(
    project: Path, path: str, before: Held, after: Held
) -> None:
    file = project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if before is not None:
        file.write_bytes(before)
        file.chmod(0o640)
    replace(project, path, before, after)
    assert (file.read_bytes() if file.exists() else None) == after
    assert before is None or after is None or file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(file.parent) == ([file.name] if after else [])
    assert kept(project) == ({before} if before and before != after else set())


def test_missing_folders_are_made(project: Path) -> None:
    replace(project, "new/folder/a.md", None, NEW)
    assert (project / "new/folder/a.md").read_bytes() == NEW


@pytest.mark.parametrize(
    ("before", "after", "now"),
    [(None, NEW, LATE), (OLD, NEW, LATE), (OLD, NEW, None), (OLD, None, LATE)],
)
def test_what_changed_since_it_was_shown_stays(project: Path, before: Held, after: Held, now: Held) -> None:
    if now:
        (project / "a.md").write_bytes(now)
    with pytest.raises(Conflict) as conflict:
        replace(project, "a.md", before, after)
    assert conflict.value.path == "a.md"
    assert {each.name: each.read_bytes() for each in project.iterdir()} == ({"a.md": now} if now else {})


@pytest.mark.parametrize("what", ["file", "folder", "dangling", "fifo", "sparse", "a folder in its place"])
def test_what_is_no_file_of_the_project_is_refused(project: Path, what: str) -> None:
    elsewhere = project.parent / "elsewhere"
    (elsewhere / "a.md").write_bytes(OLD)
    path = "folder/a.md" if what == "folder" else "a.md"
    if what == "folder":
        (project / "folder").symlink_to(elsewhere)
    elif what == "fifo":
        os.mkfifo(project / path)
    elif what == "sparse":
        (project / path).touch()
        os.truncate(project / path, 3 << 30)
    elif what == "a folder in its place":
        (project / path).mkdir()
    else:
        (project / path).symlink_to(elsewhere / ("a.md" if what == "file" else "b.md"))
    with pytest.raises((PathRefused, StorageFailed)):
        outside.read(outside.below(str(project), path), path)
    for before in (OLD, None):
        with pytest.raises((PathRefused, StorageFailed, Conflict, FileBusy)):
            replace(project, path, before, NEW)
    assert {each.name: each.read_bytes() for each in elsewhere.iterdir()} == {"a.md": OLD}


def test_a_link_of_the_user_is_followed_and_one_to_nothing_too(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "dotfiles/a/b.json")
    place = outside.of_user(str(tmp_path / "link"))
    outside.replace(place, "link", None, NEW)
    assert (tmp_path / "dotfiles/a/b.json").read_bytes() == NEW
    assert (tmp_path / "link").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_link_to_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    (tmp_path / "link").symlink_to(tmp_path / "theirs/new.json")
    with pytest.raises(EditRefused, match="another user"):
        outside.of_user(str(tmp_path / "link"))


def test_what_only_looks_like_ours_stays(project: Path) -> None:
    """A name that no process here made may be part of what came with the project."""
    with files.opened(str(project)) as folder:
        name = f".mdmem-{mark.name_for(folder)}"
    planted = {name[:-1] + ("0" if name[-1] != "0" else "1"), ".mdmem-x", ".mdmem-"}
    for each in planted:
        (project / each).write_bytes(LATE)
    replace(project, "a.md", None, NEW)
    assert set(os.listdir(project)) == planted | {"a.md"}


@pytest.mark.parametrize(
    ("before", "after", "plain"),
    soak_most(
        [(*each, plain) for each in ((OLD, NEW), (None, NEW), (OLD, None)) for plain in (False, True)],
        quick=(0, 1, 2, 5),
    ),
)
def test_killed_at_any_step_it_is_old_or_new_and_nothing_is_left(
    tmp_path: Path, before: Held, after: Held, *, plain: bool
) -> None:
    mark.signed({})  # the key is there
    seen: list[Held] = []
    was_killed, fewer = True, 1 if speed.is_all else 7
    while was_killed:
        root = tmp_path / str(len(seen))
        project = root / "project"
        (project / "sub").mkdir(parents=True)
        (root / "kept").mkdir()
        file = project / "sub/a.md"
        if before is not None:
            file.write_bytes(before)
        work = partial(replace, project, "sub/a.md", before, after)
        was_killed = killed(work, len(seen) * fewer + 1, exchanges=not plain)
        now = file.read_bytes() if file.exists() else None
        assert now in {before, after}
        replace(project, "sub/b.md", None, LATE)
        assert set(os.listdir(project / "sub")) == {"b.md"} | ({"a.md"} if now is not None else set())
        assert before is None or now == before or before in kept(project)
        seen.append(now)
    assert (seen[0], seen[-1]) == (before, after)
    assert len(seen) > 5 / fewer


def write_lines(project: Path, me: str) -> None:
    place = outside.below(str(project), "a.md")
    for number in range(10):
        while True:
            now = outside.read(place, "a.md")
            before = now.data if now else None
            with contextlib.suppress(Conflict):
                outside.replace(place, "a.md", before, (before or b"") + f"{me}{number}\n".encode())
                break


def test_processes_lose_no_write(project: Path) -> None:
    """Each adds a line to what it has read, and reads again when somebody else was faster."""
    assert run_at_once(*(partial(write_lines, project, name) for name in "xyz")) == [0] * 3
    lines = (project / "a.md").read_text().split()
    assert sorted(lines) == sorted(f"{name}{number}" for name in "xyz" for number in range(10))
    assert os.listdir(project) == ["a.md"]


def test_a_folder_that_cannot_be_made_is_said(project: Path) -> None:
    (project / "file").write_bytes(OLD)
    with pytest.raises(MdmemError):
        replace(project, "file/a.md", None, NEW)
    assert (project / "file").read_bytes() == OLD
