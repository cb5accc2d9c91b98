"""A process that keeps an index current looks only at what has changed, and finds all of that."""

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
from mdmem.vault.folder import init
from tests import speed
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEPER = r"""
import sys
from mdmem.facade.memory import Memory
memory = Memory(sys.argv[1])
keeper = memory.keep_current()
print("ready", flush=True)
for line in sys.stdin:
    if line == "certain\n":  # whether the watch knows all that has changed up to now
        memory.sync()
        print(memory.index.is_watched and keeper._watcher.vouches(), flush=True)
    else:
        print(*[hit.path for hit in memory.search(line).hits], sep="\t", flush=True)
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
        return [each for each in self._line().split("\t") if each]

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


def watching(keeper: Kept) -> None:
    """Wait until the watch knows all that has changed."""
    until(lambda: keeper.search("certain") == ["True"])


def test_whatever_was_written_before_the_question_is_found(root: Path) -> None:
    """Again and again, in the same instant; each save is another way to write, and none is looked for."""
    with kept(root) as keeper:
        watching(keeper)
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
            assert keeper.search(word) == search(root, word) == [str(path.relative_to(root))]
            if n % 4 == 3:
                shutil.rmtree(path.parent.parent)
                assert keeper.search(word) == []
            if n % 20 == 0:
                watching(keeper)
        watching(keeper)


def test_a_config_that_changes_is_followed(root: Path) -> None:
    """A file that it mounts is found, and its later changes; no longer once it is not mounted."""
    config, mounted = root / ".mdmem/config.toml", root.parent / "AGENTS.md"
    mounted.write_text("# Project\n\nzqone\n")
    with kept(root) as keeper:
        watching(keeper)
        config.write_text('[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
        assert keeper.search("zqone") == search(root, "zqone") == ["AGENTS.md"]
        watching(keeper)
        mounted.write_text("# Project\n\nzqtwo\n")
        assert keeper.search("zqtwo") == ["AGENTS.md"]
        config.write_text('[files]\nsuffixes = [".mdx"]\n')
        (root / "notes/new.mdx").write_text("zqone\n")
        assert keeper.search("zqone") == search(root, "zqone") == ["notes/new.mdx"]
        assert keeper.search("zqtwo") == []


def test_two_keep_one_index_and_either_may_be_killed(root: Path) -> None:
    with kept(root) as one, kept(root) as two:
        watching(one)
        assert one.search("words") == two.search("words")
        one.process.kill()
        one.process.wait()
        watching(two)
        (root / "notes/a.md").write_text("zqa\n")
        assert search(root, "zqa") == two.search("zqa") == ["notes/a.md"]


def test_a_vault_that_was_moved_is_not_taken_for_what_stands_in_its_place(root: Path) -> None:
    with kept(root) as keeper:
        watching(keeper)
        aside = root.with_name("aside")
        shutil.copytree(root, root.with_name("other"), ignore=shutil.ignore_patterns("local"))
        root.rename(aside)
        (aside / "notes/a.md").write_text("zqmoved\n")
        assert search(aside, "zqmoved") == ["notes/a.md"]
        root.with_name("other").rename(root)
        (root / "notes/b.md").write_text("zqplace\n")
        assert search(root, "zqplace") == keeper.search("zqplace") == ["notes/b.md"]
        assert keeper.search("zqmoved") == []


def test_a_vault_that_is_removed_and_made_anew_is_not_taken_for_the_old_one(root: Path) -> None:
    with kept(root) as keeper:
        watching(keeper)
        shutil.rmtree(root)
        init(root)
        (root / "notes").mkdir(exist_ok=True)
        (root / "notes/new.md").write_text("zqnew\n")
        assert search(root, "zqnew") == keeper.search("zqnew") == ["notes/new.md"]
        assert search(root, "words") == keeper.search("words") == []


def test_an_index_that_was_deleted_or_made_anew_is_made_current(root: Path) -> None:
    with kept(root) as keeper:
        watching(keeper)
        other = Memory(str(root))
        other.sync(rebuild=True)
        other.index.close()
        (root / "notes/a.md").write_text("zqanew\n")
        assert search(root, "zqanew") == keeper.search("zqanew") == ["notes/a.md"]
        shutil.rmtree(root / ".mdmem/local")
        (root / "notes/b.md").write_text("zqgone\n")
        assert search(root, "zqgone") == keeper.search("zqgone") == ["notes/b.md"]


@pytest.mark.parametrize("what", ["watches", "instances"])
def test_where_the_system_gives_out_no_more_watches_everything_is_looked_at(root: Path, what: str) -> None:
    alone = ["unshare", "--user", "--map-root-user"]
    tried = (
        shutil.which("unshare")
        and not subprocess.run([*alone, "true"], check=False, capture_output=True).returncode
    )
    if not tried:
        pytest.skip("this system has no user namespaces for everyone")
    limit = f'echo {int(what == "watches")} > /proc/sys/user/max_inotify_{what} && exec "$@"'
    with kept(root, *alone, "sh", "-c", limit, "sh") as keeper:
        assert keeper.search("words")
        (root / "notes/late.md").write_text("zqlate\n")
        assert search(root, "zqlate") == keeper.search("zqlate") == ["notes/late.md"]
        assert keeper.search("certain") == ["False"]


MOUNTED = """
import subprocess, sys
from pathlib import Path
from tests.index.watch.test_keeper import *
root = Path(sys.argv[1])
with kept(root) as keeper:
    watching(keeper)
    subprocess.run(["mount", "-t", "tmpfs", "none", root / "notes"], check=True)
    assert search(root, "words") == keeper.search("words") == []
    watching(keeper)
    (root / "notes/new.md").write_text("zqnew\\n")
    assert search(root, "zqnew") == keeper.search("zqnew") == ["notes/new.md"]
    watching(keeper)
    subprocess.run(["umount", root / "notes"], check=True)
    assert len(search(root, "words")) == len(keeper.search("words")) == 3
    watching(keeper)
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


def test_more_changes_than_the_queue_holds_are_found(root: Path) -> None:
    with kept(root) as keeper:
        watching(keeper)
        most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        for n in range(most + 100):
            os.chmod(root / f"notes/{'ab'[n % 2]}.md", 0o600)
        (root / "notes/late.md").write_text("zqlate\n")
        assert keeper.search("zqlate") == ["notes/late.md"]
        watching(keeper)


def test_what_the_kernel_tells_nobody_is_found_by_another_process(root: Path) -> None:
    """A name that was made elsewhere after the file was seen: what is written through it is no event."""
    with kept(root) as keeper:
        watching(keeper)
        elsewhere = root.parent / "elsewhere.md"
        os.link(root / "notes/a.md", elsewhere)
        elsewhere.write_text("zquntold\n")
        assert search(root, "zquntold") == ["notes/a.md"]
        assert keeper.search("zquntold") == ["notes/a.md"]


def test_it_ends_with_its_index_and_leaves_nothing(root: Path) -> None:
    memory = Memory(str(root))
    for _ in range(2):
        keeper = memory.keep_current()
        until(lambda: memory.index.is_watched)
        keeper.close()
        assert not memory.index.is_watched
        (root / "notes/a.md").write_text("zqafter\n")
        assert [hit.path for hit in memory.search("zqafter").hits] == ["notes/a.md"]
    memory.index.close()
