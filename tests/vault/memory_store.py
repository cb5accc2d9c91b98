"""A store in memory: what a vault needs of any store, without a disk."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from mdmem.document.document import SUFFIXES, digest
from mdmem.errors import PathRefused, TooLarge
from mdmem.vault.config import CONFIG_PATH, Config, parse
from mdmem.vault.files import Content, Raced
from mdmem.vault.log import TORN_END
from mdmem.vault.paths import Namespace, is_under
from mdmem.vault.store import Entry, Step
from mdmem.vault.walk import Found


class MemoryStore:
    """The files of a vault in a dictionary; each change counts as one more moment."""

    def __init__(self) -> None:
        self.name = self.root = "in memory"
        self.notes: list[str] = []
        self._files: dict[str, tuple[int, bytes]] = {}
        self._kept: dict[str, bytes] = {}
        self._entries: list[Entry] = []
        self._lock = threading.RLock()
        self._moment = 0

    @property
    def config(self) -> Config:
        content = self.read(CONFIG_PATH, 1 << 20)
        return parse(content.data.decode()) if content else Config()

    def again(self) -> MemoryStore:
        return self

    def put(self, path: str, data: bytes | None) -> None:
        self._moment += 1
        if data is None:
            self._files.pop(path, None)
        else:
            self._files[path] = self._moment, data

    def read(self, path: str, limit: int, *, exact: bool = False, settled: bool = False) -> Content | None:
        del exact, settled  # every name has one spelling, and nothing is written in parts
        if path not in self._files:
            return None
        moment, data = self._files[path]
        if len(data) > limit:
            raise TooLarge(path=path, size=len(data), limit=limit)
        return _content(data, moment)

    def walk(self, namespace: Namespace, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[Found]:
        own = namespace.folder.startswith(".")
        met = {path: stored for path, stored in self._files.items() if own or not path.startswith(".")}
        for path, (moment, data) in sorted(met.items(), key=lambda item: item[0].split("/")):
            if namespace.holds(path) and path.endswith(suffixes):
                yield Found(path, len(data), moment)

    def names(self, folder: str) -> list[str]:
        start = f"{folder}/" if folder else ""
        inside = (path[len(start) :] for path in self._files if path.startswith(start))
        return list(dict.fromkeys(name.partition("/")[0] for name in inside))

    def stands(self, path: str) -> bool:
        return not path or any(is_under(each, path) for each in self._files)

    def spelled(self, path: str) -> str:
        assert unicodedata.is_normalized("NFC", path)
        return ""

    def recover(self) -> int:
        return 0

    @contextmanager
    def steady(self) -> Iterator[None]:
        yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._lock:
            yield

    def commit(self, entry: Entry, steps: Sequence[Step]) -> None:
        with self._lock:
            for step in steps:
                now = self._files.get(step.path)
                if (now[1] if now else None) != (step.before.data if step.before else None):
                    raise Raced(step.path)
            gone = {step.path for step in steps if step.after is None}
            left = self._files.keys() - gone
            for path in (step.path for step in steps if step.before is None):
                if any(each != path and (is_under(each, path) or is_under(path, each)) for each in left):
                    raise PathRefused(path=path, reason="a file and a folder cannot have one name")
            for step in steps:
                if step.before:
                    self._kept[digest(step.before.data)] = step.before.data
                self.put(step.path, step.after)
            self._entries.append(entry)

    def entries(self, folder: str = "") -> Iterator[Entry]:
        entries = reversed(self._entries)
        return (each for each in entries if any(is_under(file.path, folder) for file in each.files))

    def changed_since(self, mark: str) -> tuple[str, None]:
        return mark, None

    def kept(self, digest: str) -> Content | None:
        return _content(self._kept[digest], 0) if digest in self._kept else None

    @contextmanager
    def log(self, path: str) -> Iterator[MemoryLog]:
        yield MemoryLog(self, path)

    @contextmanager
    def appending(self, *paths: str) -> Iterator[tuple[MemoryLog, ...]]:
        with self._lock:
            yield tuple(MemoryLog(self, path) for path in paths)


class MemoryLog:
    def __init__(self, store: MemoryStore, path: str) -> None:
        self.path = path
        self.identity: tuple[int, ...] = (id(store),)
        self.holes: Sequence[tuple[int, int]] = ()
        self._data = store._files.get(path, (0, b""))[1]
        self.size = len(self._data)
        self._store = store

    def read(self, start: int, end: int) -> bytes:
        return self._data[max(start, 0) : end]

    def append(self, lines: Sequence[bytes]) -> None:
        if any(b"\n" in line for line in lines):
            raise ValueError("a line must not contain a line end")
        torn = TORN_END if lines and self._data and not self._data.endswith(b"\n") else b""
        self._put(self.path, self._data + torn + b"".join(line + b"\n" for line in lines))

    def put_aside(self, path: str, lines: Iterable[bytes] | None = None) -> None:
        fresh = None if lines is None else b"".join(line + b"\n" for line in lines)
        if self._data:
            self._store.put(path, self._data)
        self._put(self.path, fresh)

    def bring_back(self, path: str) -> None:
        self._put(self.path, self._store._files[path][1])
        self.purge(path)

    def purge(self, path: str) -> None:
        self._store.put(path, None)

    def _put(self, path: str, data: bytes | None) -> None:
        self._store.put(path, data)
        self._data = data or b""
        self.size = len(self._data)


def _content(data: bytes, moment: int) -> Content:
    return Content(data, 0o644, 0, 0, (moment, len(data), moment, moment))
