"""Every way of saving is seen: what the watcher tells is enough to keep a copy of the vault true."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.index.watch import watcher
from tests.index.watch.conftest import followed, make_root
from tests.programs import needs
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.index.watch.conftest import Following


def run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(list(map(str, command)), cwd=cwd, check=True, capture_output=True, timeout=60)


def in_place(root: Path) -> None:
    with (root / "notes/a.md").open("r+") as file:
        file.write("new")


def truncate_and_write(root: Path) -> None:
    (root / "notes/a.md").write_text("something else\n")


def append(root: Path) -> None:
    run("sh", "-c", "echo more >> a.md", cwd=root / "notes")


def same_size(root: Path) -> None:
    path = root / "notes/a.md"
    status = path.stat()
    path.write_text(path.read_text().upper())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def mapped(root: Path) -> None:
    code = (
        "import mmap,sys;f=open(sys.argv[1],'r+b');m=mmap.mmap(f.fileno(),0);m[:2]=b'XY';m.close();f.close()"
    )
    run(sys.executable, "-c", code, root / "notes/a.md")


def aside(root: Path) -> None:
    (root / "notes/a.md.tmp").write_text("aside")
    os.replace(root / "notes/a.md.tmp", root / "notes/a.md")


def aside_hidden(root: Path) -> None:
    (root / "notes/.a.md.swx").write_text("aside, hidden")
    os.replace(root / "notes/.a.md.swx", root / "notes/a.md")


def aside_elsewhere(root: Path) -> None:
    (root.parent / "tmp.md").write_text("aside, elsewhere")
    os.replace(root.parent / "tmp.md", root / "notes/a.md")


def aside_own_staging(root: Path) -> None:
    (root / ".mdmem/local/staged").write_text("aside, in the vault's own folder")
    os.replace(root / ".mdmem/local/staged", root / "notes/a.md")


def exchange(root: Path) -> None:
    """As mdmem and some SDKs do: both names live all the time."""
    (root / ".mdmem/local/staged").write_text("exchanged")
    code = (
        "import ctypes,sys;l=ctypes.CDLL(None,use_errno=True);"
        "sys.exit(l.renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2))"
    )
    run(sys.executable, "-c", code, root / ".mdmem/local/staged", root / "notes/a.md")


def vim(root: Path, option: str) -> None:
    path = root / "notes/a.md"
    run(
        "vim",
        "-N",
        "-u",
        "NONE",
        "-i",
        "NONE",
        "-es",
        "-c",
        f"set {option}",
        "-c",
        "normal Ovim",
        "-c",
        "wq",
        path,
    )


def vim_backupcopy_yes(root: Path) -> None:
    vim(root, "backup backupcopy=yes")


def vim_backupcopy_no(root: Path) -> None:
    vim(root, "backup backupcopy=no")


def vim_backupcopy_auto(root: Path) -> None:
    vim(root, "writebackup backupcopy=auto")


def as_vim_does(root: Path) -> None:
    """As vim with `backupcopy=no`: it tries with 4913, the note becomes its backup, a new one is made."""
    folder = root / "notes"
    (folder / "4913").touch()
    (folder / "4913").unlink()
    os.rename(folder / "a.md", folder / "a.md~")
    (folder / "a.md").write_text("vim")
    (folder / "a.md").chmod(0o644)
    (folder / "a.md~").unlink()


def as_emacs_does(root: Path) -> None:
    """A lock that is a dangling link, the backup by a rename, then a new file."""
    folder = root / "notes"
    os.symlink("me@host.1", folder / ".#a.md")
    os.rename(folder / "a.md", folder / "a.md~")
    (folder / "a.md").write_text("emacs")
    (folder / ".#a.md").unlink()


def sed(root: Path) -> None:
    run("sed", "-i", "s/text/TEXT/", root / "notes/a.md")


def perl_backup(root: Path) -> None:
    run("perl", "-pi.bak", "-e", "s/text/TEXT/", root / "notes/a.md")


def link_over(root: Path) -> None:
    """A hard link to the new content is made, and renamed over the note."""
    (root.parent / "new").write_text("linked")
    os.link(root.parent / "new", root / "notes/t.md")
    os.replace(root / "notes/t.md", root / "notes/a.md")


def copied_over(root: Path) -> None:
    run("cp", root / "top.md", root / "notes/a.md")


def rename_file(root: Path) -> None:
    os.rename(root / "notes/a.md", root / "notes/z.md")


def rename_to_other_folder(root: Path) -> None:
    run("mv", root / "notes/a.md", root / "data/a.md")


def rename_out_of_being_a_memory(root: Path) -> None:
    os.rename(root / "notes/a.md", root / "notes/a.txt")


def rename_folder(root: Path) -> None:
    os.rename(root / "notes", root / "texts")
    (root / "texts/deep/er/c.md").write_text("written right after")


def rename_folder_twice(root: Path) -> None:
    os.rename(root / "notes", root / "texts")
    (root / "texts/deep/new.md").write_text("in between")
    os.rename(root / "texts", root / "data/texts")
    (root / "data/texts/deep/er/c.md").write_text("at last")


def swap_folders(root: Path) -> None:
    os.rename(root / "notes", root / "x")
    os.rename(root / "data", root / "notes")
    os.rename(root / "x", root / "data")
    (root / "notes/d.json").write_text("{}")
    (root / "data/deep/er/c.md").write_text("swapped")


def hide_folder(root: Path) -> None:
    os.rename(root / "notes", root / ".notes")


def folder_moved_out(root: Path) -> None:
    os.rename(root / "notes", root.parent / "notes")
    (root.parent / "notes/a.md").write_text("no memory any more")


def folder_moved_in(root: Path) -> None:
    tree = root.parent / "tree"
    (tree / "one/two").mkdir(parents=True)
    (tree / "one/two/n.md").write_text("n")
    (tree / "m.md").write_text("m")
    os.rename(tree, root / "notes/tree")
    (root / "notes/tree/one/two/o.md").write_text("o")


def folder_out_and_in(root: Path) -> None:
    os.rename(root / "notes", root.parent / "notes")
    (root.parent / "notes/deep/er/c.md").write_text("changed outside")
    os.rename(root.parent / "notes", root / "back")
    (root / "back/deep/er/e.md").write_text("e")


def new_tree(root: Path) -> None:
    """Folders and files faster than watches can be set."""
    for n in range(30):
        folder = root / "new" / "/".join(f"{n}-{level}" for level in range(8))
        folder.mkdir(parents=True)
        (folder / "n.md").write_text(str(n))
        (folder.parent / "m.md").write_text(str(n))


def copied_tree(root: Path) -> None:
    run("cp", "-r", root / "notes", root / "copy")


def unpacked(root: Path) -> None:
    run("sh", "-c", "tar cf - notes | (mkdir un && cd un && tar xf -)", cwd=root)


def delete(root: Path) -> None:
    (root / "notes/a.md").unlink()


def delete_tree(root: Path) -> None:
    shutil.rmtree(root / "notes")


def delete_and_create(root: Path) -> None:
    (root / "notes/a.md").unlink()
    (root / "notes/a.md").write_text("again")


def delete_and_create_tree(root: Path) -> None:
    shutil.rmtree(root / "notes")
    (root / "notes/deep").mkdir(parents=True)
    (root / "notes/deep/c.md").write_text("again")


def file_becomes_folder(root: Path) -> None:
    (root / "notes/a.md").unlink()
    (root / "notes/a.md").mkdir()
    (root / "notes/a.md/inner.md").write_text("inner")


def folder_becomes_link(root: Path) -> None:
    os.rename(root / "notes", root.parent / "elsewhere")
    os.symlink(root.parent / "elsewhere", root / "notes")


def folder_becomes_file(root: Path) -> None:
    shutil.rmtree(root / "notes")
    (root / "notes").write_text("a file")


def to_a_moved_out_file_then_another(root: Path) -> None:
    os.rename(root / "notes/a.md", root.parent / "a.md")
    (root / "notes/b.md").write_text("must not wait")


def strange_names(root: Path) -> None:
    for name in ("ü.md", "u\u0308x.md", "日本.md", "a\nb.md", "sp ace.md", "q'\"`$.md"):
        (root / "notes" / name).write_text(name)
    Path(os.fsdecode(os.fsencode(root / "notes") + b"/\xff.md")).write_text("not UTF-8")


def hard_link_inside(root: Path) -> None:
    os.link(root / "notes/a.md", root / "data/same.md")
    (root / "data/same.md").write_text("both")


WAYS = [
    in_place, truncate_and_write, append, same_size, mapped, aside, aside_hidden, aside_elsewhere,
    aside_own_staging, exchange, as_vim_does, as_emacs_does, sed, perl_backup, link_over, copied_over,
    rename_file, rename_to_other_folder, rename_out_of_being_a_memory, rename_folder, rename_folder_twice,
    swap_folders, hide_folder, folder_moved_out, folder_moved_in, folder_out_and_in, new_tree, copied_tree,
    unpacked, delete, delete_tree, delete_and_create, delete_and_create_tree, file_becomes_folder,
    folder_becomes_link, folder_becomes_file, to_a_moved_out_file_then_another, strange_names,
    hard_link_inside,
]  # fmt: skip
VIMS = [vim_backupcopy_yes, vim_backupcopy_no, vim_backupcopy_auto]


@cases("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_of_saving_is_seen_and_leaves_the_watches_standing(
    tmp_path: Path, way: Callable[[Path], None]
) -> None:
    """A later write in every folder that is left or new is seen, too."""
    root = make_root(tmp_path)
    with followed(root) as kernel:
        before = dict(kernel.copy.known)
        way(root)
        looks = kernel.until_true()
        assert kernel.copy.known != before
        assert not any(look.everything or look.notices for look in looks)
        assert kernel.watcher.vouches()
        for folder, folders, _ in os.walk(root):
            folders[:] = [name for name in folders if not name.startswith(".")]
            (Path(folder) / "later.md").write_text(folder.encode("utf-8", "replace").decode())
        looks = kernel.until_true()
        assert not any(look.everything for look in looks)


@pytest.mark.parametrize("way", VIMS)
def test_vim_is_seen(kernel: Following, root: Path, way: Callable[[Path], None]) -> None:
    needs("vim")
    way(root)
    kernel.until_true()
    assert (root / "notes/a.md").read_text().startswith("vim\n")


@pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")  # watchdog's own, of its Linux observer
@cases(
    "way",
    [each for each in WAYS if each not in {hard_link_inside, mapped}],
    ids=lambda way: way.__name__,
)
def test_the_observer_of_other_systems_sees_them_too(
    tmp_path: Path, way: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "HAS_INOTIFY", False)
    root = make_root(tmp_path)
    with followed(root) as observer:
        way(root)
        observer.until_true()
        assert not observer.watcher.vouches()
