"""Whatever happens to the files and to the processes, the index is what a rebuild would make."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, example, given, settings, strategies as st

import mdmem
from mdmem.errors import MdmemError
from mdmem.index.index import Index
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKER = Path(__file__).with_name("index_worker.py")
PARTS = ("names", "fields", "sections", "blocks", "links", "citations", "tags", "urls")
# What is seen of the files themselves, and what was first seen of cited code, is history: no file says it.
FORGOTTEN = {"citations": {"seen"}}
NAMES = ("a.md", "b.md", "c.json", "Ä.md", "bad name?.md", "deep/a.md", "deep/er/d.md", "other/b.md")
WORDS = (
    *("alpha", "beta", "日本語", "café", "parse_config"),
    *("[[a]]", "[[deep/a|A]]", "[x](../b.md#one)", "#tag"),
)
LINES = (
    *("# One", "## Two ^id", "---", "id: x1", "title: T", "tags: [a, b]", "```", "`src/app.py#L1-L2`"),
    *("<https://example.org>", "", "{"),
)


def rows_of(index: Index) -> dict[str, list[Any]]:
    """Everything that the index says, with paths instead of numbers."""
    columns = "path, hash, problem, title, type, day, dated, ident"
    found = {"documents": index.rows(f"SELECT {columns} FROM documents ORDER BY path")}
    for part in PARTS:
        names = [row[1] for row in index.rows(f"PRAGMA table_info({part})")]
        kept = [f'x."{name}"' for name in names if name not in {"document", *FORGOTTEN.get(part, ())}]
        query = f"SELECT d.path, {', '.join(kept)} FROM {part} AS x JOIN documents AS d ON d.id = x.document"
        found[part] = sorted(index.rows(query), key=repr)
        orphans = index.rows(f"SELECT count(*) FROM {part} WHERE document NOT IN (SELECT id FROM documents)")
        assert orphans == [(0,)]
    found["texts"] = sorted(index.text(lambda text: text.paths()))
    found["passages"] = [index.text(lambda text: text.searcher().num_docs)]
    found["pending"] = index.rows("SELECT path FROM pending")
    return found


def rebuilt(root: Path, folder: Path) -> dict[str, list[Any]]:
    """What an index says that is made of nothing but the files."""
    index = Index(str(root))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    index.__dict__["folder"] = str(folder)
    index.sync()
    found = rows_of(index)
    index.close()
    return found


class Life:
    """What can happen to a vault, chosen by chance."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.chance = chance
        self.memory = mdmem.open(root)
        self.steps: list[Callable[[], object]] = [
            self.save, self.save, self.save, self.save_aside, self.save_alike, self.append, self.replace,
            self.move, self.move_folder, self.move_outside, self.copy, self.delete, self.remove, self.undo,
            self.crash, self.tear, self.link, self.touch,
        ]  # fmt: skip

    def text(self) -> str:
        lines = []
        for _ in range(self.chance.randint(0, 9)):
            some = self.chance.choices(WORDS, k=self.chance.randint(1, 5))
            lines.append(self.chance.choice((self.chance.choice(LINES), " ".join(some))))
        return self.chance.choice(("\n", "\r\n")).join(lines)

    def some_path(self) -> Path:
        path = self.root / "notes" / self.chance.choice(NAMES)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def some_file(self) -> Path:
        files = [path for path in self.root.glob("notes/**/*") if path.is_file()]
        return self.chance.choice(files) if files else self.some_path()

    def name_of(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def save(self) -> None:
        self.some_path().write_text(self.text())

    def save_aside(self) -> None:
        path = self.some_path()
        aside = path.with_name("aside.tmp")
        aside.write_text(self.text())
        aside.replace(path)

    def save_alike(self) -> None:
        """Another content of the same length, with the time of the one before."""
        path = self.some_file()
        if path.exists():
            status = path.stat()
            path.write_bytes(bytes(self.chance.sample(path.read_bytes(), status.st_size)))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def append(self) -> None:
        self.memory.append(self.name_of(self.some_file()), self.text())

    def replace(self) -> None:
        self.memory.replace(None, "alpha", self.chance.choice(WORDS), count="all")

    def move(self) -> None:
        self.memory.mv(self.name_of(self.some_file()), self.name_of(self.some_path()))

    def move_folder(self) -> None:
        self.memory.mv("notes/deep", f"notes/moved{self.chance.randint(1, 3)}")

    def move_outside(self) -> None:
        source = self.chance.choice((self.some_file(), self.root / "notes" / "deep"))
        if source.exists():
            shutil.move(source, self.root / "notes" / f"{self.chance.randint(1, 9)}{source.suffix}")

    def copy(self) -> None:
        source, target = self.some_file(), self.some_path()
        if source.exists() and not (target.exists() and source.samefile(target)):
            shutil.copy2(source, target)

    def delete(self) -> None:
        self.memory.rm(self.name_of(self.some_file()))

    def remove(self) -> None:
        self.some_file().unlink(missing_ok=True)

    def undo(self) -> None:
        self.memory.undo()

    def link(self) -> None:
        path = self.some_path()
        path.unlink(missing_ok=True)
        path.symlink_to(self.root / "notes" / "a.md")

    def touch(self) -> None:
        """Another day: that of a memory that tells none is its file's."""
        path = self.some_file()
        if path.exists():
            os.utime(path, (86_400 * self.chance.randint(1, 9),) * 2)

    def tear(self) -> None:
        """A store is cut off, garbled or gone."""
        self.memory.index.close()
        stores = [path for path in self.root.glob(".mdmem/local/index/**/*") if path.is_file()]
        for path in self.chance.sample(stores, min(len(stores), 2)):
            if path.name != "lock":
                how = self.chance.randrange(3)
                # As another file: of one that is mapped, as those of the text index are, no byte can go.
                data = path.read_bytes()
                path.unlink()
                if how == 1:
                    path.write_bytes(data[: len(data) // 2])
                elif how == 2:
                    path.write_bytes(self.chance.randbytes(len(data)))

    def crash(self) -> None:
        """A process that makes the index current is killed."""
        for _ in range(3):
            self.save()
        with subprocess.Popen(
            [sys.executable, str(WORKER), str(self.root)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout
            process.stdout.readline()
            until = time.monotonic() + self.chance.random() * 0.02
            while time.monotonic() < until:
                pass
            process.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """What is refused changes nothing: by mdmem, or by the system where a link leads to itself."""
    try:
        with contextlib.suppress(MdmemError, UnicodeDecodeError):
            yield
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 14))
@example(seed=13, steps=6)  # a link to itself, and a process that saves there
@settings(
    deadline=None, max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# README: Delete the index, and the next question makes it again.
def test_the_index_is_what_a_rebuild_would_make(tmp_path: Path, seed: int, steps: int) -> None:
    root = tmp_path / "memories"
    shutil.rmtree(root, ignore_errors=True)
    mdmem.init(root)
    life = Life(root, random.Random(seed))
    for _ in range(steps):
        step = life.chance.choice(life.steps)
        with refused():
            step()
        life.memory.sync()
        found = rows_of(life.memory.index)
        assert found["pending"] == []
        assert found == rebuilt(root, tmp_path / "rebuilt"), step
    life.memory.index.close()
