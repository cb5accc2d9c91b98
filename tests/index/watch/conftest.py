"""A copy of a vault that is kept by the watcher's hints alone, and watchers to keep it by."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.index.watch import watcher as watcher_module
from mdmem.index.watch.watcher import Watcher

if TYPE_CHECKING:
    from mdmem.index.watch.hints import Hints

LIMIT = 20.0
# Where the watcher cannot vouch for silence, so many seconds of it have to do.
QUIET = 0.1
NOTES = ("notes/a.md", "notes/b.md", "notes/deep/er/c.md", "data/d.json", "top.md")

Follow = Callable[..., AbstractContextManager["Following"]]


class Copy:
    """What an index holds: the hash of every memory. It looks only where hints send it."""

    def __init__(self, root: Path, mounts: dict[str, str]) -> None:
        self.root = str(root)
        self.mounts = mounts
        self.known: dict[str, str] = {}
        self.looks: list[Hints] = []

    def take(self, hints: Hints) -> None:
        self.looks.append(hints)
        if hints.everything:
            self.known = self.truth()
        for path in hints.paths:
            for known in [known for known in self.known if is_at(known, path)]:
                del self.known[known]
            self.known |= self.truth(path)

    def truth(self, only: str = "") -> dict[str, str]:
        """The hash of every memory at and below a path: what a look at the files finds."""
        places: dict[str, str] = {}
        top, *below = [self.root, *filter(None, only.split("/"))]
        for name in below:
            if os.path.islink(top) or not os.path.isdir(top) or name[0] == ".":
                break
            top = os.path.join(top, name)
        else:
            places = self.below(top, only)
        places |= {path: file for path, file in self.mounts.items() if is_at(path, only)}
        found = {}
        for path, file in places.items():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                found[path] = sha256(Path(file).read_bytes()).hexdigest()
        return found

    def below(self, top: str, path: str) -> dict[str, str]:
        if not os.path.isdir(top):
            return {path: top} if is_memory(path) else {}
        if os.path.islink(top):
            return {}
        places = {}
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name[0] != "."]
            inside = folder[len(self.root) + 1 :]
            for name in filter(is_memory, names):
                path = f"{inside}/{name}" if inside else name
                places[unicodedata.normalize("NFC", path)] = os.path.join(folder, name)
        return places


def is_memory(path: str) -> bool:
    return not path.rpartition("/")[2].startswith(".") and path.endswith((".md", ".json"))


def is_at(path: str, only: str) -> bool:
    return not only or path == only or path.startswith(only + "/")


class Following:
    """A watcher, and the copy that is kept by its hints."""

    def __init__(self, watcher: Watcher, copy: Copy) -> None:
        self.watcher = watcher
        self.copy = copy

    def take(self, limit: float = LIMIT) -> Hints:
        """The next hints, taken in; fails when there are none in time."""
        hints = self.watcher.hints(limit)
        assert hints is not None, f"no more hints; the last ones were {self.copy.looks[-3:]}"
        self.copy.take(hints)
        return hints

    def rest(self) -> list[Hints]:
        """Take what is still on its way; it ends as soon as the watcher vouches that nothing is."""
        first = len(self.copy.looks)
        while (hints := self.watcher.hints(0)) or not self.watcher.vouches():
            hints = hints or self.watcher.hints(QUIET)
            if hints is None:
                break
            self.copy.take(hints)
        return self.copy.looks[first:]

    def until_true(self) -> list[Hints]:
        """Take hints until the copy is what the files are, and nothing is on its way any more."""
        end = time.monotonic() + LIMIT
        looks = self.rest()
        while self.copy.known != self.copy.truth():
            assert not self.watcher.vouches(), "it vouched for what is not true"
            looks += [self.take(end - time.monotonic()), *self.rest()]
        return looks

    def code(self) -> frozenset[str]:
        """The cited files that the next hints are about, and nothing else."""
        hints = self.take()
        assert not hints.paths
        assert not hints.everything
        return hints.code


@contextlib.contextmanager
def followed(root: Path, poll_seconds: float | None = None, **mounts: Path) -> Iterator[Following]:
    """A watcher that is open, whose first look is taken; `mounts` have `__` for the dot of their names."""
    files = {name.replace("__", "."): str(path) for name, path in mounts.items()}
    before = {*threading.enumerate()}
    with Watcher(str(root), mounts=files, poll_seconds=poll_seconds) as watcher:
        following = Following(watcher, Copy(root, files))
        # The first hints: where the vault is polled, there is no end to those behind it.
        if not following.take().notices and poll_seconds is None:
            following.rest()
        yield following
    assert not {*threading.enumerate()} - before


@pytest.fixture
def follow() -> Follow:
    return followed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def make_root(tmp_path: Path) -> Path:
    root = (tmp_path / "workspace" / "memories").resolve()
    for name in NOTES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}\n")
    for name in ("local/index", "schemas", "templates"):
        (root / ".mdmem" / name).mkdir(parents=True)
    (root / ".mdmem" / "config.toml").touch()
    return root


@pytest.fixture(params=["kernel", "observer"])
def following(
    root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Following]:
    """The same behaviour is asked of both ways to watch: Linux's own, and the one for other systems."""
    if request.param == "observer":
        monkeypatch.setattr(watcher_module, "HAS_INOTIFY", False)
    with followed(root) as following:
        yield following


@pytest.fixture
def kernel(root: Path) -> Iterator[Following]:
    with followed(root) as following:
        yield following
