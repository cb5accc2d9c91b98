"""A process that keeps an index current vouches for others, which find all that was written before."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.facade.memory import Memory
from mdmem.index.database import SOCKET
from mdmem.index.index import Index
from mdmem.vault.folder import init
from tests import speed
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEPER = """
import sys
from mdmem.facade.memory import Memory
memory = Memory(sys.argv[1])
keeper = memory.keep_current()
print("ready", flush=True)
for line in sys.stdin:
    print(*[hit.path for hit in memory.search(line).hits], flush=True)
keeper.close()
memory.index.close()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(init(tmp_path / "ws/memories").root)
    for name in "abc":
        (root / "notes").mkdir(exist_ok=True)
        (root / f"notes/{name}.md").write_text(f"# {name}\n\nwords of {name}\n")
    return root


class Kept:
    """A process that keeps the index of a vault current, and answers questions to itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert self._line() == "ready"

    def search(self, query: str) -> list[str]:
        assert self.process.stdin
        self.process.stdin.write(query + "\n")
        self.process.stdin.flush()
        return self._line().split()

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: stat.read_text().rpartition(") ")[2][0] == "T")


@contextmanager
def kept(root: Path, *before: str) -> Iterator[Kept]:
    command = [*before, sys.executable, "-c", KEEPER, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Kept(process)
        finally:
            process.kill()


def namespace(*more: str) -> list[str]:
    """What begins a command that has a user namespace of its own, and may change what is in it."""
    alone = ["unshare", "--user", "--map-root-user", *more]
    tried = shutil.which("unshare") and subprocess.run([*alone, "true"], check=False, capture_output=True)
    if not tried or tried.returncode:
        pytest.skip("this system has no user namespaces for everyone")
    return alone


def search(root: Path, query: str) -> list[str]:
    """What an object finds that has opened nothing before, as a new process has not."""
    memory = Memory(str(root))
    with closing(memory.index):
        return [hit.path for hit in memory.search(query).hits]


def is_vouched_for(root: Path) -> bool:
    """Whether a new process would be spared the look at every file."""
    with closing(Index(str(root))) as index:
        return index._has_voucher(index._open_database(), texts=True)


def vouching(root: Path) -> None:
    """Wait until somebody vouches; the first who ask may come before it knows everything."""
    until(lambda: is_vouched_for(root))


def test_whatever_was_written_before_the_question_is_found(root: Path) -> None:
    """Again and again, in the same instant; each save is another way to write, and none is looked for."""
    with kept(root):
        vouching(root)
        for n in range(120 if speed.is_all else 24):
            path, word = root / f"notes/{n % 5}.md", f"zq{n}x"
            match n % 4:
                case 0:
                    path.write_text(f"{word}\n")
                case 1:
                    path.with_suffix(".tmp").write_text(f"{word}\n")
                    path.with_suffix(".tmp").replace(path)
                case 2:
                    with path.open("a") as file:
                        file.write(f"{word}\n")
                case _:
                    path = root / f"new {n}/deep/{n}.md"
                    path.parent.mkdir(parents=True)
                    path.write_text(f"{word}\n")
            assert search(root, word) == [str(path.relative_to(root))]
            if n % 4 == 3:
                shutil.rmtree(path.parent.parent)
                assert search(root, word) == []
            if n % 20 == 0:
                vouching(root)
        assert is_vouched_for(root)


def test_a_question_to_the_process_itself_looks_at_what_has_changed(root: Path) -> None:
    with kept(root) as keeper:
        vouching(root)
        for n in range(20):
            (root / f"notes/{n}.md").write_text(f"zq{n}x\n")
            assert keeper.search(f"zq{n}x") == [f"notes/{n}.md"]


def test_nobody_is_believed_who_was_killed(root: Path) -> None:
    with kept(root) as keeper:
        vouching(root)
        keeper.process.kill()
        keeper.process.wait()
        (root / "notes/late.md").write_text("zqlate\n")
        assert search(root, "zqlate") == ["notes/late.md"]
        assert not is_vouched_for(root)


def test_one_that_is_stopped_holds_up_nobody(root: Path) -> None:
    with kept(root) as keeper:
        vouching(root)
        keeper.stop()
        (root / "notes/late.md").write_text("zqlate\n")
        assert search(root, "zqlate") == ["notes/late.md"]
        keeper.process.send_signal(signal.SIGCONT)
        vouching(root)


def test_of_two_either_is_enough(root: Path) -> None:
    with kept(root) as one, kept(root) as two:
        vouching(root)
        assert one.search("words") == two.search("words")
        one.process.kill()
        one.process.wait()
        vouching(root)
        (root / "notes/a.md").write_text("zqa\n")
        assert search(root, "zqa") == two.search("zqa") == ["notes/a.md"]


def test_it_does_not_vouch_for_a_vault_that_was_moved(root: Path) -> None:
    """Neither when another one stands in its place: its socket has gone along with the folder."""
    with kept(root):
        vouching(root)
        aside = root.with_name("aside")
        shutil.copytree(root, root.with_name("other"), ignore=shutil.ignore_patterns("local"))
        root.rename(aside)
        (aside / "notes/a.md").write_text("zqmoved\n")
        assert search(aside, "zqmoved") == ["notes/a.md"]
        assert not is_vouched_for(aside)
        root.with_name("other").rename(root)
        (aside / "notes/a.md").write_text("zqlater\n")
        assert search(aside, "zqlater") == ["notes/a.md"]
        assert not is_vouched_for(aside)
        (root / "notes/b.md").write_text("zqplace\n")
        assert search(root, "zqplace") == ["notes/b.md"]


def test_a_vault_that_is_removed_and_made_anew_is_not_taken_for_the_old_one(root: Path) -> None:
    with kept(root):
        vouching(root)
        shutil.rmtree(root)
        init(root)
        (root / "notes").mkdir(exist_ok=True)
        (root / "notes/new.md").write_text("zqnew\n")
        assert search(root, "zqnew") == ["notes/new.md"]
        assert search(root, "words") == []


def test_what_the_process_was_not_told_is_no_reason_to_vouch(root: Path) -> None:
    """Its config is the one that it began with: another one may mount files that it does not watch."""
    with kept(root):
        vouching(root)
        (root.parent / "README.md").write_text("zqmounted\n")
        config = root / ".mdmem/config.toml"
        config.write_text(config.read_text().replace("[mounts]", '[mounts]\n"README.md" = "../README.md"'))
        assert search(root, "zqmounted") == ["README.md"]
        assert not is_vouched_for(root)


def test_an_index_that_was_deleted_or_made_anew_is_made_current(root: Path) -> None:
    with kept(root) as keeper:
        vouching(root)
        other = Memory(str(root))
        other.sync(rebuild=True)
        other.index.close()
        (root / "notes/a.md").write_text("zqanew\n")
        assert search(root, "zqanew") == keeper.search("zqanew") == ["notes/a.md"]
        shutil.rmtree(root / ".mdmem/local")
        (root / "notes/b.md").write_text("zqgone\n")
        assert search(root, "zqgone") == keeper.search("zqgone") == ["notes/b.md"]


@pytest.mark.parametrize("what", ["watches", "instances"])
def test_where_the_system_gives_out_no_more_watches_nobody_vouches(root: Path, what: str) -> None:
    alone = ["unshare", "--user", "--map-root-user"]
    tried = (
        shutil.which("unshare")
        and not subprocess.run([*alone, "true"], check=False, capture_output=True).returncode
    )
    if not tried:
        pytest.skip("this system has no user namespaces for everyone")
    limit = f'echo {int(what == "watches")} > /proc/sys/user/max_inotify_{what} && exec "$@"'
    with kept(root, *alone, "sh", "-c", limit, "sh") as keeper:
        until(lambda: [*(root / ".mdmem/local").glob(f"index/*/{SOCKET}*")])
        assert keeper.search("words")
        (root / "notes/late.md").write_text("zqlate\n")
        assert search(root, "zqlate") == keeper.search("zqlate") == ["notes/late.md"]
        assert not is_vouched_for(root)


MOUNTED = """
import subprocess, sys
from pathlib import Path
from tests.index.watch.test_keeper import *
root = Path(sys.argv[1])
with kept(root) as keeper:
    vouching(root)
    subprocess.run(["mount", "-t", "tmpfs", "none", root / "notes"], check=True)
    assert search(root, "words") == keeper.search("words") == []
    vouching(root)
    (root / "notes/new.md").write_text("zqnew\\n")
    assert search(root, "zqnew") == keeper.search("zqnew") == ["notes/new.md"]
    vouching(root)
    subprocess.run(["umount", root / "notes"], check=True)
    assert len(search(root, "words")) == len(keeper.search("words")) == 3
    vouching(root)
    aside = root.with_name("aside")
    shutil.copytree(root, aside, ignore=shutil.ignore_patterns("local"))
    (aside / "notes/a.md").write_text("zqover\\n")
    subprocess.run(["mount", "--bind", aside, root], check=True)
    assert search(root, "zqover") == keeper.search("zqover") == ["notes/a.md"]
"""


def test_what_is_mounted_in_the_vault_is_looked_at(root: Path) -> None:
    """No event tells that something else is there now."""
    command = [*namespace("--mount"), sys.executable, "-c", MOUNTED, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_more_changes_than_the_queue_holds_are_found_and_then_vouched_for(root: Path) -> None:
    with kept(root):
        vouching(root)
        most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        for n in range(most + 100):
            os.chmod(root / f"notes/{'ab'[n % 2]}.md", 0o600)
        (root / "notes/late.md").write_text("zqlate\n")
        assert search(root, "zqlate") == ["notes/late.md"]
        vouching(root)


def test_what_the_kernel_tells_nobody_is_found_by_an_explicit_sync(root: Path) -> None:
    """A name that was made elsewhere after the file was seen: what is written through it is no event."""
    with kept(root):
        vouching(root)
        elsewhere = root.parent / "elsewhere.md"
        os.link(root / "notes/a.md", elsewhere)
        elsewhere.write_text("zquntold\n")
        command = [sys.executable, "-m", "mdmem", "--vault", str(root), "index"]
        subprocess.run(command, check=True, capture_output=True)
        assert search(root, "zquntold") == ["notes/a.md"]


def test_it_ends_with_its_index_and_leaves_nothing(root: Path) -> None:
    memory = Memory(str(root))
    for _ in range(2):
        keeper = memory.keep_current()
        until(lambda: is_vouched_for(root))
        keeper.close()
        assert not memory.index.is_watched
        assert not is_vouched_for(root)
        (root / "notes/a.md").write_text("zqafter\n")
        assert [hit.path for hit in memory.search("zqafter").hits] == ["notes/a.md"]
    memory.index.close()


def test_a_watch_vouches_too(root: Path) -> None:
    memory = Memory(str(root))
    with memory.watch() as watch:
        assert watch.next(20)
        vouching(root)
        (root / "notes/a.md").write_text("zqwatched\n")
        assert search(root, "zqwatched") == ["notes/a.md"]
    assert not is_vouched_for(root)
    memory.index.close()
