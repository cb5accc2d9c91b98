"""Vouching: never for what is not known, in one thread, in several, and in a storm of changes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.index.watch import hints as hints_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.index.watch.conftest import Following


WRITER = """
import os, random, sys
root = sys.argv[1]
rng = random.Random(1)
for line in sys.stdin:
    n = int(line)
    path = f"{root}/notes/{n % 7}.md"
    way = rng.randrange(5)
    if way == 0:
        with open(path, "a") as file: file.write(f"{n}\\n")
    elif way == 1:
        with open(path + ".tmp", "w") as file: file.write(f"{n}\\n")
        os.replace(path + ".tmp", path)
    elif way == 2:
        os.makedirs(f"{root}/{n}/deep")
        with open(f"{root}/{n}/deep/x.md", "w") as file: file.write(f"{n}\\n")
    elif way == 3:
        with open(path, "w") as file: file.write(f"{n}\\n")
    else:
        with open(f"{root}/notes/x{n}.md", "w") as file: file.write(f"{n}\\n")
        os.rename(f"{root}/notes/x{n}.md", f"{root}/data/x{n}.md")
    print(n, flush=True)
"""


@contextlib.contextmanager
def writer(root: Path) -> Iterator[Callable[[int], None]]:
    """Another process that changes something, and says when it has."""
    command = [sys.executable, "-c", WRITER, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to, back = process.stdin, process.stdout

        def write(n: int) -> None:
            to.write(f"{n}\n")
            to.flush()
            assert back.readline() == f"{n}\n"

        yield write
        to.close()


def test_a_watcher_never_vouches_for_what_another_process_has_just_changed(
    kernel: Following, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand times: another process writes and says so, and is asked about in the same instant."""
    monkeypatch.setattr(hints_module, "QUIET_SECONDS", 0.0)
    with writer(root) as write:
        for n in range(1000):
            write(n)
            assert not kernel.watcher.vouches()
            while not kernel.watcher.vouches():
                hints = kernel.watcher.hints(0)
                if hints:
                    assert not kernel.watcher.vouches(), "handed out is not yet taken in"
                    kernel.copy.take(hints)
            if n % 100 == 0:
                assert kernel.copy.known == kernel.copy.truth()
    assert kernel.copy.known == kernel.copy.truth()


def test_what_it_vouches_for_is_true_while_another_thread_follows(kernel: Following, root: Path) -> None:
    """A server: one thread takes hints in, another asks. Whenever it vouches, the copy is true."""
    vouched = threading.Event()

    def follow() -> None:
        for hints in kernel.watcher:
            kernel.copy.take(hints)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        with writer(root) as write:
            for n in range(60):
                write(n)
                while not kernel.watcher.vouches():
                    vouched.wait(0.001)
                assert kernel.copy.known == kernel.copy.truth()
    finally:
        kernel.watcher.close()
        thread.join(20)
    assert not thread.is_alive()


STORM = """
import os, random, shutil, sys
root, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
outside = os.path.join(os.path.dirname(root), "outside"); os.makedirs(outside, exist_ok=True)
names = ["a", "b", "c", ".h"]
def some(top=root):
    return os.path.join(rng.choice([top, top, top, outside]), *rng.choices(names, k=rng.randrange(1, 4)))
for n in range(int(sys.argv[3])):
    one, two = some(), some()
    try:
        match rng.randrange(9):
            case 0 | 1: os.makedirs(one)
            case 2 | 3:
                with open(one + ".md", "w") as file: file.write(str(n))
            case 4: os.rename(one, two)
            case 5: os.rename(one + ".md", two + ".md")
            case 6: rng.random() < .3 and shutil.rmtree(one)
            case 7: os.unlink(one + ".md")
            case 8: rng.random() < .2 and os.link(one + ".md", two + ".md")
    except OSError:
        pass
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_changes_ends_in_the_truth(kernel: Following, root: Path, seed: int) -> None:
    """Random folders and files are made, moved, linked and deleted, while hints are taken as they come."""
    command = [sys.executable, "-c", STORM, str(root), str(seed), "2500"]
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            hints = kernel.watcher.hints(0.05)
            if hints:
                kernel.copy.take(hints)
    assert process.returncode == 0
    kernel.until_true()
    for folder, folders, _ in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        (Path(folder) / "later.md").write_text(folder)
    kernel.until_true()
    assert not any(look.notices for look in kernel.copy.looks)
