"""A model of power loss: of what a change did to the disk, only what was flushed is sure to survive it.

The calls of a change are recorded. For each of its steps, worlds are made in which what was not flushed by
then is lost or kept: names in the order in which they were made (as ext4 keeps it), one alone, all but one;
bytes lost, kept, or zeros in their place. A rename is whole or not at all, as every file system with a
journal has it. In each world the next command must find the memories as before or as after, and must find in
the history what the change took out.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import shutil
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mdmem.errors import MdmemError
from mdmem.facade.memory import Memory
from mdmem.vault import files
from mdmem.vault.mark import believed, signed
from mdmem.vault.plan import Change, EditPlan
from tests.speed import is_all, soak_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

FOLDER = -1
MOST_WORLDS = 60 if is_all else 12  # of a change, before its last call
# How many recoveries are cut short as well, and worlds of each.
RECOVERIES, MOST_AGAIN = (3, 12) if is_all else (1, 6)
NAMES = ("create", "mkdir", "rmdir", "unlink", "rename", "exchange", "link")
BYTES = ("write", "truncate")
CALLS = ("open", "write", "pwrite", "ftruncate", "fsync", "mkdir", "rmdir", "unlink", "rename", "link")

Tree = dict[str, tuple[int, int, bytes] | None]  # a file's number, mode and bytes, by path; None: a folder


class Op(NamedTuple):
    """A call: the names that it changes, or the file, and where in it what is written."""

    kind: str
    paths: tuple[str, ...] = ()
    file: int = 0
    at: int = 0
    data: bytes = b""


class Disk:
    """Names and files below a folder, as they are or as they might be."""

    def __init__(self, names: Mapping[str, int], contents: Mapping[int, tuple[int, bytes]]) -> None:
        self.names = dict(names)
        self.contents = dict(contents)

    @classmethod
    def of(cls, root: str) -> Disk:
        names: dict[str, int] = {}
        contents: dict[int, tuple[int, bytes]] = {}
        for folder, folders, found in os.walk(root):
            names |= dict.fromkeys((os.path.join(folder, name) for name in folders), FOLDER)
            for path in (os.path.join(folder, name) for name in found):
                status = os.stat(path)
                names[path] = status.st_ino
                contents[status.st_ino] = status.st_mode & 0o7777, Path(path).read_bytes()
        return cls(names, contents)

    def do(self, op: Op) -> None:
        if op.kind in {"create", "mkdir"}:
            self.names[op.paths[0]] = op.file
            self.contents.setdefault(op.file, (0o644, b""))
        elif op.kind in {"unlink", "rmdir"}:
            del self.names[op.paths[0]]
        elif op.kind == "rename":
            self.names[op.paths[1]] = self.names.pop(op.paths[0])
        elif op.kind == "link":
            self.names[op.paths[0]] = op.file
        elif op.kind == "exchange":
            one, other = op.paths
            self.names[one], self.names[other] = self.names[other], self.names[one]
        else:
            mode, data = self.contents.get(op.file, (0o644, b""))
            end = data[op.at + len(op.data) :] if op.kind == "write" else b""
            self.contents[op.file] = mode, data[: op.at].ljust(op.at, b"\0") + op.data + end

    def tree(self) -> Tree:
        names = self.names.items()
        return {path: None if file == FOLDER else (file, *self.contents[file]) for path, file in names}


class Recorder:
    """Notes what the calls of the system's file functions do below a folder."""

    def __init__(self, root: str, fails: Callable[[Op], bool] = lambda _: False) -> None:
        self.root = root
        self.fails = fails
        self.ops: list[Op] = []
        self._files: dict[int, int] = {}
        self._os = {name: getattr(os, name) for name in CALLS}

    @contextmanager
    def recording(self) -> Iterator[None]:
        program = files._rename_program
        with pytest.MonkeyPatch.context() as patch:
            for name in self._os:
                patch.setattr(os, name, getattr(self, name))
            found = program()
            if found:
                recorded = found[0], self._rename_flagged(found[1])
                patch.setattr(files, "_rename_program", cache(lambda: recorded))
            yield

    def _note(self, kind: str, *paths: str, file: int = 0, at: int = 0, data: bytes = b"") -> None:
        op = Op(kind, paths, file, at, data)
        if self.fails(op):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if all(path.startswith(self.root) for path in paths):
            self.ops.append(op)

    def _at(self, name: Any, folder: int | None) -> str:
        base = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else os.getcwd()
        return os.path.join(base, os.fsdecode(name))

    def _file(self, descriptor: int) -> int:
        inode = os.fstat(descriptor).st_ino
        return self._files.get(inode, inode)

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        full = self._at(path, dir_fd)
        new = bool(flags & os.O_CREAT) and not os.path.lexists(full)
        assert not flags & os.O_TRUNC, "the model knows no such call"
        descriptor: int = self._os["open"](path, flags, mode, dir_fd=dir_fd)
        if new and full.startswith(self.root):
            self._files[os.fstat(descriptor).st_ino] = -2 - len(self.ops)  # numbers are used again
            self._note("create", full, file=self._file(descriptor))
        return descriptor

    def _is_inside(self, descriptor: int) -> bool:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith(self.root)

    def write(self, descriptor: int, data: Any) -> int:
        if self._is_inside(descriptor):
            flags = int(Path(f"/proc/self/fdinfo/{descriptor}").read_text().split("flags:")[1].split()[0], 8)
            at = os.fstat(descriptor).st_size if flags & os.O_APPEND else os.lseek(descriptor, 0, os.SEEK_CUR)
            self._note("write", file=self._file(descriptor), at=at, data=bytes(data))
        return int(self._os["write"](descriptor, data))

    def pwrite(self, descriptor: int, data: Any, at: int) -> int:
        self._note("write", file=self._file(descriptor), at=at, data=bytes(data))
        return int(self._os["pwrite"](descriptor, data, at))

    def ftruncate(self, descriptor: int, size: int) -> None:
        self._note("truncate", file=self._file(descriptor), at=size)
        self._os["ftruncate"](descriptor, size)

    def fsync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            self._note("sync folder", path)
        else:
            self._note("sync", file=self._file(descriptor))

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._os["mkdir"](path, mode, dir_fd=dir_fd)
        self._note("mkdir", self._at(path, dir_fd), file=FOLDER)

    def rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._os["rmdir"](path, dir_fd=dir_fd)
        self._note("rmdir", self._at(path, dir_fd))

    def unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._os["unlink"](path, dir_fd=dir_fd)
        self._note("unlink", self._at(path, dir_fd))

    def rename(
        self, old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        self._os["rename"](old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        self._note("rename", self._at(old, src_dir_fd), self._at(new, dst_dir_fd))

    def link(
        self,
        old: Any,
        new: Any,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        self._os["link"](
            old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks
        )
        inode = os.stat(new, dir_fd=dst_dir_fd, follow_symlinks=False).st_ino
        self._note("link", self._at(new, dst_dir_fd), file=self._files.get(inode, inode))

    def _rename_flagged(self, function: Any) -> Callable[..., int]:
        def call(one: int, name: bytes, other: int, target: bytes, flag: int) -> int:
            result = int(function(one, name, other, target, flag))
            number = ctypes.get_errno()
            if result == 0:
                exchanged = flag in {files._LINUX_EXCHANGE, files._MACOS_SWAP}
                kind = "exchange" if exchanged else "rename"
                self._note(kind, self._at(name, one), self._at(target, other))
            ctypes.set_errno(number)
            return result

        return call


# ------------------------------------------------------------------------------------------ what may survive


def worlds(disk: Disk, ops: Sequence[Op]) -> Iterator[tuple[Tree, int]]:
    """Every tree that a loss of power may leave after one of the calls; and how many calls there were."""
    for count in range(len(ops) + 1):
        done = ops[:count]
        for names in _surviving(done):
            for fate in ("lost", "kept", "zeros"):
                yield _world(disk, done, names, fate), count


def _surviving(done: Sequence[Op]) -> Iterator[frozenset[int]]:
    """Sets of the calls that change names and may have reached the disk, each with all that it builds on."""
    needs = [_needs(done, number) for number in range(len(done))]
    sure: set[int] = set()
    for number, op in enumerate(done):
        if op.kind == "sync folder":
            inside = (n for n in range(number) if op.paths[0] in map(os.path.dirname, done[n].paths))
            sure |= {need for n in inside if done[n].kind in NAMES for need in needs[n]}
    free = [n for n, op in enumerate(done) if op.kind in NAMES and n not in sure]
    for count in range(len(free) + 1):
        yield frozenset(sure | set(free[:count]))
    for one in free:
        yield frozenset(sure | needs[one])
        yield frozenset(sure | {other for other in free if one not in needs[other]})


def _needs(done: Sequence[Op], number: int) -> set[int]:
    """The call and those that it builds on: of the same names, of folders above, of what is in a folder."""
    found, needs = {number}, [number]
    while needs:
        later = needs.pop()
        for earlier in range(later):
            if (
                earlier not in found
                and done[earlier].kind in NAMES
                and _builds_on(done[later], done[earlier])
            ):
                found.add(earlier)
                needs.append(earlier)
    return found


def _builds_on(later: Op, earlier: Op) -> bool:
    emptied = [f"{path}/" for path in later.paths if later.kind == "rmdir"]
    return any(
        path == other or path.startswith(f"{other}/") or other.startswith(tuple(emptied))
        for path in later.paths
        for other in earlier.paths
    )


def _world(disk: Disk, done: Sequence[Op], names: frozenset[int], fate: str) -> Tree:
    synced = {op.file: number for number, op in enumerate(done) if op.kind == "sync"}
    world = Disk(disk.names, disk.contents)
    for number, op in enumerate(done):
        is_kept = number in names or (op.kind in BYTES and number < synced.get(op.file, -1))
        if is_kept or (op.kind in BYTES and fate == "kept"):
            world.do(op)
        elif op.kind in BYTES and fate == "zeros":
            world.do(op._replace(data=bytes(len(op.data))))
    return world.tree()


def made(root: str, tree: Tree) -> None:
    for entry in os.scandir(root):
        shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
    first: dict[int, str] = {}
    for path, file in sorted(tree.items()):
        if file is None:
            os.mkdir(path)
        elif first.setdefault(file[0], path) != path:
            os.link(first[file[0]], path)
        else:
            Path(path).write_bytes(file[2])
            os.chmod(path, file[1])


# ----------------------------------------------------------------------------------------------- what is done

ONE, TWO, OLD = b"---\ntitle: One\n---\none\n", b"two\n", "20200101T000000000000-0000"


def prepared(root: str) -> None:
    """A vault with some history: a memory was changed, one deleted, and something else long ago."""
    for path, data in {"n/a.md": ONE, "n/b.md": TWO, "only/c.md": b"three\n", "gone.md": b"gone\n"}.items():
        os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
        Path(root, path).write_bytes(data)
    os.makedirs(f"{root}/.mdmem")
    Path(root, ".mdmem/config.toml").write_text("[trash]\nmax_bytes = 60\n")


def lived(root: str) -> None:
    memory = Memory(root)
    memory.append("n/a.md", "more of it")
    memory.rm("gone.md")
    log = Path(memory.vault.disk.trash.log)
    first = believed(log.read_bytes().splitlines()[0])
    assert first
    old = first | {"id": OLD, "time": "2020-01-01T00:00:00.000Z"}
    log.write_bytes(signed(old) + b"\n" + log.read_bytes())


def several(memory: Memory) -> None:
    a, b, c = (memory.show(path) for path in ("n/a.md", "n/b.md", "only/c.md"))
    changes = (
        Change(path="n/a.md", before=a, content=b"other\n"),
        Change(path="n/b.md", before=b, delete=True),
        Change(path="only/c.md", before=c, move_to="moved/c.md"),
        Change(path="new/deep/d.md", before=None, content=b"new\n"),
    )
    memory.apply(EditPlan(changes=changes))


def moved(memory: Memory) -> None:
    change = Change(path="only/c.md", before=memory.show("only/c.md"), move_to="n/c.md")
    memory.apply(EditPlan(changes=(change,)))


CHANGES: dict[str, Sequence[Callable[[Memory], object]]] = {
    "append": [lambda memory: memory.append("n/a.md", "a line")],
    "make": [lambda memory: memory.write("new/deep/d.md", "new\n")],
    "delete": [lambda memory: memory.rm("only/c.md")],
    "move": [moved],
    "several": [several],
    "undo": [lambda memory: memory.undo()],
    "sweep": [
        lambda memory: memory.append("n/a.md", "x" * 40),
        lambda memory: memory.append("n/a.md", "end"),
    ],
}


def memories(root: str) -> dict[str, bytes]:
    """The memories; an empty folder that stays behind is none."""
    found = {}
    for folder, names, paths in os.walk(root):
        names[:] = [name for name in names if name != ".mdmem"]
        for path in (os.path.join(folder, name) for name in paths):
            found[os.path.relpath(path, root)] = Path(path).read_bytes()
    return found


class Trial:
    """Changes of a vault, and what the next command must find wherever the power was lost."""

    def __init__(
        self, root: str, changes: Sequence[Callable[[Memory], object]], fails: Callable[[Op], bool]
    ) -> None:
        self.root = root
        self.states, start = [memories(root)], Disk.of(root).tree()
        for change in changes:
            change(Memory(root))
            self.states.append(memories(root))
        made(root, start)
        self.history = self._history()
        disk, recorder = Disk.of(root), Recorder(root, fails)
        self.failed = False
        self._ends = []
        with recorder.recording():
            for change in changes:
                try:
                    change(Memory(root))
                except MdmemError:
                    self.failed = True
                self._ends.append(len(recorder.ops))
                if self.failed:
                    break
        self.worlds = _sampled(disk, recorder.ops, MOST_WORLDS)

    def _history(self) -> list[str]:
        return [entry.id for entry in Memory(self.root).history() if entry.id != OLD]

    def recovered(self) -> list[Tree]:
        """What may be left when the power is lost again while the next command puts right what it finds."""
        disk, recorder = Disk.of(self.root), Recorder(self.root)
        with recorder.recording():
            Memory(self.root).vault.recover()
        return [tree for tree, _ in _sampled(disk, recorder.ops, MOST_AGAIN)]

    def judge(self, calls: int = 0) -> None:
        """Look at the vault as it was left after so many of the calls."""
        staging = Path(self.root, ".mdmem/local/staging")
        is_known = staging.is_dir() and any(path.suffix in {".one", ".many"} for path in staging.iterdir())
        memory = Memory(self.root)
        memory.vault.recover()
        now, ids = memories(self.root), self._history()
        assert now in self.states
        state, returned = self.states.index(now), sum(calls >= end for end in self._ends)
        assert state == 0 if self.failed and returned else state >= returned
        assert set(self.history) <= set(ids)
        assert not staging.is_dir() or list(staging.iterdir()) == []
        told = len(ids) - len(self.history)
        assert told >= state, "the history does not tell of a change"
        if is_known and len(self._ends) == 1:
            assert told == state, "the history tells of a change that was none"
        if state:
            for path, data in self.states[state - 1].items():
                if now.get(path) != data:
                    assert memory.vault.content(sha256(data).hexdigest()) == data, path


def _sampled(disk: Disk, ops: Sequence[Op], most: int) -> list[tuple[Tree, int]]:
    """All worlds after the last call, and some of those before it."""
    different = {}
    for tree, calls in worlds(disk, ops):
        different[frozenset(tree.items())] = tree, calls  # the more calls, the more they must have kept
    last = [world for world in different.values() if world[1] == len(ops)]
    others = [world for world in different.values() if world[1] < len(ops)]
    return random.Random(1).sample(others, min(most, len(others))) + last


ROWS = [*product(CHANGES, ("first", "later", "plain"), ("done", "refused"))]
# Each change of a vault that has a past; and a large one of a new vault, of a poor disk, and one that fails.
OFTEN = [number for number, row in enumerate(ROWS) if row[1:] == ("later", "done")]
OFTEN += [ROWS.index(("several", *r)) for r in (("first", "done"), ("plain", "done"), ("later", "refused"))]


@pytest.mark.parametrize(("change", "where", "end"), soak_most(ROWS, quick=OFTEN))
def test_a_loss_of_power_leaves_a_change_done_or_not_begun(
    swift: Path, monkeypatch: pytest.MonkeyPatch, change: str, where: str, end: str
) -> None:
    """Also of the first one of a vault, and where the file system cannot exchange two files."""
    if where == "plain":
        monkeypatch.setattr(files, "_rename_program", cache(lambda: None))
    root = str(swift / "v")
    prepared(root)
    if where != "first" or change == "undo":
        lived(root)

    times, steps = iter([True] if end == "refused" else []), list[Op]()

    def fail(op: Op) -> bool:
        """The last step of the change itself cannot be flushed."""
        is_outside = any(not path.startswith(f"{root}/.mdmem") for path in op.paths)
        steps.extend([op] if is_outside and op.kind in {"rename", "exchange", "link", "unlink"} else [])
        return bool(steps) and is_outside and op.kind == "sync folder" and next(times, False)

    trial = Trial(root, CHANGES[change], fail)
    assert trial.failed == (end == "refused")
    assert len(trial.worlds) > 10
    for tree, calls in trial.worlds:
        made(root, tree)
        trial.judge(calls)
    for tree, _ in trial.worlds[:RECOVERIES]:
        made(root, tree)
        for again in trial.recovered():
            made(root, again)
            trial.judge()
