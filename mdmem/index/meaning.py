"""Meaning: how near the passages of memories are to a query that uses other words.

A passage has its vector under a key that holds its wall: a hash of the namespace, of the thread where that is
a wall, and of the text. So nobody sees what is ready from what others have, and a move inside of the wall
makes no vector. Which passages a memory has is kept by its path and hash, beside the vectors.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from sys import intern
from typing import TYPE_CHECKING, Any

from mdmem.document import secret
from mdmem.document.document import Document
from mdmem.errors import LockTimeout, MdmemError, ProgramFailed, Usage
from mdmem.index.embedder import (
    QUERY_SECONDS,
    Embedder,
    FastEmbedder,
    embed_safely,
    measure_constants,
    unrelated_sentences,
)
from mdmem.index.passages import cut
from mdmem.index.text_index import key_of
from mdmem.index.vectors import NAME, FolderVectors, VectorFile
from mdmem.kind import NAMESPACES, OBSERVATION, SESSION_SUMMARY
from mdmem.vault import files
from mdmem.vault.paths import EVERYTHING, Namespace

if TYPE_CHECKING:
    from mdmem.index.index import Index

_MOST_AT_ONCE = 24  # passages that a search makes vectors of
_NO_VECTOR = "-"  # the key of a passage that gets none: empty, of another language, or with a secret
_OWNER = "passages"
_KEEP = "INSERT OR REPLACE INTO passages (model, path, hash, keys) VALUES (?, ?, ?, ?)"
# Instead of a path: no memory is called so. No passage goes elsewhere before `fill` has said which go where.
_CONSTANTS, _BEGUN = ":constants", ":begun"
_LOCK = "meaning.lock"
_AT_ONCE = 500  # memories that are looked up
_DOCUMENT_SECONDS = 30.0
_RETRY_SECONDS = 60.0
_IDLE_SECONDS = 1.0


class _Seen:
    """What namespaces hold, as long as the index and the kept passages are the same.

    Attributes:
        ready: how many passages have a vector, or get none.
        lacking: how often the namespaces hold each of the other passages, by its key.
        last: the last vector that was looked for among these.
        memories: the keys of the memories that have a passage, by its key; None until it is asked for.
    """

    def __init__(self, stamp: object) -> None:
        self.stamp = stamp
        self.ready = self.last = 0
        self.lacking = Counter[str]()
        self.memories: dict[str, tuple[int, ...]] | None = None


class Meaning:
    """Makes and keeps the vectors of the passages of a vault, and compares them with queries.

    One object may be used by several threads.
    """

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self.embedder = embedder
        self._is_local = bool(getattr(embedder, "is_local", False))
        self._index = index
        self.file = VectorFile(os.path.join(index.folder, NAME), index.notes)
        self.vectors = self.vectors_of(_OWNER)
        self._failed: tuple[float, str] = (0.0, "")
        self._refused: dict[str, float] = {}  # the keys of passages, and when these are tried again
        self._guard = threading.Lock()
        self._seen = _Seen(None)
        self._constants = embedder.constants
        self._asked = time.monotonic()
        self._is_due = threading.Event()
        self._filler: threading.Thread | None = None

    def vectors_of(self, owner: str) -> FolderVectors:
        """Return the vectors of whoever has some in the same file, of the size that the embedder makes."""
        return FolderVectors(self.file, self.embedder.name, lambda: self.embedder.dims, owner)

    def _find_constants(self, seconds: float) -> tuple[float, float]:
        """Return the constants of the embedder; where it has none, measure them in some seconds, once."""
        if self._constants is None:
            kept = self._find_kept(_CONSTANTS)
            if not kept:
                vectors = embed_safely(self.embedder, unrelated_sentences(), seconds=seconds)
                kept = "{} {}".format(*measure_constants(vectors))
                self.file.write(_KEEP, [(self.embedder.name, _CONSTANTS, "", kept)])
            low, spread = map(float, kept.split())
            self._constants = low, spread
        return self._constants

    def _find_kept(self, path: str) -> str:
        query = "SELECT keys FROM passages WHERE model = ? AND path = ?"
        return next((keys for (keys,) in self.file.rows(query, (self.embedder.name, path))), "")

    def ask(self, text: str, layers: Sequence[Namespace]) -> Nearness | str:
        """Return how near the passages of some namespaces are to a query; or why words alone are searched."""
        self._asked = time.monotonic()
        self._is_due.set()
        if not self.embedder.reads(text):
            return f"meaning: {self.embedder.name} does not read this language: words alone"
        if not self._is_local and secret.find(text):
            return "meaning: the query holds a secret, which is not sent: words alone"
        until, reason = self._failed
        if time.monotonic() >= until:
            try:
                (vector,) = embed_safely(self.embedder, [text], seconds=QUERY_SECONDS, is_query=True)
                return Nearness(self, vector, self._find_constants(QUERY_SECONDS), layers)
            except MdmemError as error:
                reason = self.note_failure(error)
        return f"meaning: words alone: {reason}"

    def note_failure(self, error: MdmemError) -> str:
        """Keep the reason why the embedder is not asked for a minute, and return it."""
        self._failed = time.monotonic() + _RETRY_SECONDS, error.message
        return error.message

    def keys(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """Return the keys of the passages of memories, by path; of those that are gone none."""
        among = f"path IN ({', '.join('?' * len(paths))})"
        hashes = dict(self._index.rows(f"SELECT path, hash FROM documents WHERE {among}", paths))  # noqa: S608 - marks
        query = f"SELECT path, hash, keys FROM passages WHERE model = ? AND {among}"  # noqa: S608 - as above
        kept = self.file.rows(query, (self.embedder.name, *paths))
        found = {path: keys.split() for path, has, keys in kept if has == hashes.get(path)}
        rows = []
        for path in paths:
            if path not in found and (passages := self._cut(path, hashes.get(path))):
                found[path] = [key for key, _ in passages]
                rows.append((self.embedder.name, path, hashes[path], " ".join(found[path])))
        self.file.write(_KEEP, rows)
        return found

    def _cut(self, path: str, known: str | None) -> list[tuple[str, str]]:
        document = self._index.vault.find(path) if known else None
        if document is None or document.hash != known:
            return []
        wall = find_wall(path)
        return [(self._key(wall, text), text) for text in texts_of(document)]

    def _key(self, wall: str, text: str) -> str:
        if not text.strip() or not self.embedder.reads(text) or (not self._is_local and secret.find(text)):
            return _NO_VECTOR
        return blake2b(f"{wall}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def prepare(
        self, paths: Sequence[str], keys: Mapping[str, Sequence[str]], held: Collection[str]
    ) -> Collection[str]:
        """Make some of the vectors that memories lack, in the order of `paths`; return their keys."""
        if not self._is_local and not self._find_kept(_BEGUN):
            return ()
        lacking = self._list_lacking(paths, keys, {*held, _NO_VECTOR})
        if texts := {key: text for _, key, text in islice(lacking, _MOST_AT_ONCE)}:
            self._embed(texts, QUERY_SECONDS)
        return texts.keys()

    def _list_lacking(
        self, paths: Sequence[str], keys: Mapping[str, Sequence[str]], held: set[str]
    ) -> Iterator[tuple[str, str, str]]:
        """Yield the path, key and text of passages that lack a vector, and add the keys to what is held."""
        for path in paths:
            if not held.issuperset(keys.get(path, ())):
                for (known,) in self._index.rows("SELECT hash FROM documents WHERE path = ?", (path,)):
                    for key, text in self._cut(path, known):
                        if key not in held and self._refused.get(key, 0.0) <= time.monotonic():
                            held.add(key)
                            yield path, key, text

    def _embed(self, texts: Mapping[str, str], seconds: float) -> None:
        """Make and keep the vectors of texts, by their keys; where that fails, not again for a minute."""
        try:
            given = embed_safely(self.embedder, [*texts.values()], seconds=seconds)
        except MdmemError:
            until = time.monotonic() + _RETRY_SECONDS
            self._refused = self._refused | dict.fromkeys(texts, until)  # another thread may read it
            raise
        self.vectors.put(dict(zip(texts, given, strict=True)))

    def count_ready(self, layers: Sequence[Namespace]) -> int:
        """Count the passages of some namespaces that have a vector, or get none."""
        return self._look(layers).ready

    def find_memories(self, layers: Sequence[Namespace]) -> Mapping[str, tuple[int, ...]]:
        """Find the keys of the memories of some namespaces that have a passage, by its key."""
        seen = self._look(layers)
        if seen.memories is None:
            found: dict[str, tuple[int, ...]] = {}
            for path, _, keys in self._list_kept(layers, "keys"):
                own = (key_of(path),)
                for key in map(intern, keys.split()):  # the vectors have the same texts
                    found[key] = found[key] + own if key in found else own
            seen.memories = found
        return seen.memories

    def _look(self, layers: Sequence[Namespace]) -> _Seen:
        """Find what namespaces hold; while vectors are made, only new ones are looked at."""
        last = self.file.rows("SELECT max(n), (SELECT n FROM removals) FROM passages")
        stamp = tuple(layers), self._index.stamp(), last
        seen, partial = self._seen, list[tuple[str, str, list[str]]]()
        if seen.stamp != stamp:
            seen = _Seen(stamp)
            # Of a memory that was ready, the keys are not read: that takes most of the time.
            for path, has, ready, keys in self._list_kept(layers, "ready, iif(ready, '', keys)"):
                seen.ready += ready
                if not ready:
                    partial.append((path, has, keys.split()))
                    seen.lacking.update(partial[-1][-1])
            seen.ready += seen.lacking.pop(_NO_VECTOR, 0)
        if seen.lacking:
            query = "SELECT n, key FROM vectors WHERE n > ? AND model = ? AND owner = ? ORDER BY n"
            made = self.file.rows(query, (seen.last, self.embedder.name, _OWNER))
            with self._guard:
                seen.ready += sum(seen.lacking.pop(key, 0) for _, key in made)
                seen.last = made[-1][0] if made else seen.last
        update = "UPDATE passages SET ready = ? WHERE model = ? AND path = ? AND hash = ?"
        whole = [each for each in partial if seen.lacking.keys().isdisjoint(each[-1])]
        self.file.write(update, [(len(keys), self.embedder.name, path, has) for path, has, keys in whole])
        self._seen = seen
        return seen

    def _list_kept(self, layers: Sequence[Namespace], columns: str) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT path, hash, {columns} FROM passages WHERE model = ?"  # noqa: S608 - ours
        kept = {row[0]: row for row in self.file.rows(query, (self.embedder.name,))}
        for path, known in self._index.rows("SELECT path, hash FROM documents WHERE problem = ''"):
            row = kept.get(path)
            if row and row[1] == known and any(layer.holds(path) for layer in layers):
                yield row

    def fill(
        self,
        tell: Callable[[int, int], None] = lambda *_: None,
        may_go_on: Callable[[], bool] = lambda: True,
        begin: Callable[[str], None] = lambda _: None,
        refuse: Callable[[str, str], None] = lambda *_: None,
    ) -> int:
        """Make the vectors that passages lack, of each namespace in turn, and forget those that none has.

        Args:
            tell: called with the number of vectors that are made, and of all to make.
            may_go_on: asked before each, where no leaves the rest, and while all passages are looked at,
                where it can only wait.
            begin: called with a sentence before the first passage is sent: how many, from where, to where.
            refuse: called with the path of each passage that the embedder refuses, and why; the next filling
                tries it again.

        Returns:
            How many were made.

        Raises:
            LockTimeout: another process does so.
        """
        with files.held(os.path.join(self._index.folder, _LOCK), 0):
            self._find_constants(_DOCUMENT_SECONDS)
            now, keys = time.monotonic(), self._sweep(may_go_on)
            self._refused = {key: until for key, until in self._refused.items() if until > now}
            wanted = {key for each in keys.values() for key in each} - {_NO_VECTOR}
            held, walls = {*self.vectors.holds(wanted), _NO_VECTOR}, dict[str, list[str]]()
            count, done = len(wanted - held), 0
            if count:
                begin(f"meaning: {count:,} passages of {self._index.vault.root} go to {self._place}")
                self.file.write(_KEEP, [(self.embedder.name, _BEGUN, "", _BEGUN)])
            for path in keys:
                walls.setdefault(find_wall(path), []).append(path)
            turns = deque(self._list_lacking(paths, keys, held) for paths in walls.values())
            while turns and may_go_on():
                if lacking := next(turns[0], None):
                    done += self._make_vector(*lacking, refuse)
                    tell(done, count)
                    turns.rotate(-1)
                else:
                    turns.popleft()
            self.count_ready([EVERYTHING])  # what is ready now need not be counted again
            return done

    def _make_vector(self, path: str, key: str, text: str, refuse: Callable[[str, str], None]) -> bool:
        """Make the vector of a passage; return False where it is refused, though others are not."""
        try:
            self._embed({key: text}, _DOCUMENT_SECONDS)
        except ProgramFailed as error:
            embed_safely(self.embedder, unrelated_sentences()[:1], seconds=_DOCUMENT_SECONDS)
            refuse(path, error.message)
            return False
        return True

    def _sweep(self, may_go_on: Callable[[], bool]) -> dict[str, list[str]]:
        """Return the keys of all passages, by path, and forget the vectors that none of them has."""
        paths = [path for (path,) in self._index.rows("SELECT path FROM documents WHERE problem = ''")]
        # Before the passages are looked at: a search keeps those that it makes a vector of first.
        kept = self.file.rows("SELECT model, key FROM vectors WHERE owner = ?", (_OWNER,))
        keys: dict[str, list[str]] = {}
        for start in range(0, len(paths), _AT_ONCE):
            may_go_on()  # it may wait: all of this takes as long as many searches
            keys |= self.keys(paths[start : start + _AT_ONCE])
        wanted, own = {key for each in keys.values() for key in each}, self.embedder.name
        listed = self.file.rows("SELECT model, path FROM passages WHERE hash != ''")
        gone = [(model, path) for model, path in listed if model != own or path not in keys]
        # Before their vectors: what stands there as ready has them.
        self.file.write("DELETE FROM passages WHERE model = ? AND path = ?", gone)
        old = [(model, key) for model, key in kept if model != own or key not in wanted]
        self.file.write(f"DELETE FROM vectors WHERE owner = '{_OWNER}' AND model = ? AND key = ?", old)  # noqa: S608 - ours
        return keys

    def fetch(self) -> str:
        """Let the embedder fetch its model when that is first used, and say what and how much that is."""
        if not isinstance(self.embedder, FastEmbedder):
            raise Usage(problem=f"{self.embedder.name} fetches nothing")
        self.embedder.fetches = True
        return f"{self.embedder.name}: {self.embedder.size} are fetched, unless they are there"

    @property
    def _place(self) -> str:
        is_near = self._is_local or getattr(self.embedder, "is_loopback", False)
        return f"{self.embedder.name}, on {'this' if is_near else 'another'} machine"

    def describe_state(self, layers: Sequence[Namespace], count: int) -> str:
        """Say what makes the vectors, where, and how many of the `count` passages of namespaces are ready."""
        try:
            embed_safely(self.embedder, ["text"], seconds=QUERY_SECONDS, is_query=True)
            return f"{self._place}: {self.count_ready(layers):,} of {count:,} passages are ready"
        except MdmemError as error:
            return f"{self._place}: {error.message}"

    def keep_filled(self) -> None:
        """Fill in the background, a passage at a time, only when nobody has asked for a second."""
        if self._filler is None:
            self._asked = time.monotonic()  # who starts a server asks it soon
            self._filler = threading.Thread(target=self._run_filler, name="mdmem-meaning", daemon=True)
            self._filler.start()

    def _run_filler(self) -> None:
        def wait() -> bool:
            while (left := self._asked + _IDLE_SECONDS - time.monotonic()) > 0:
                time.sleep(left)
            return time.monotonic() >= self._failed[0]

        filled: object = None
        while True:
            self._is_due.clear()
            try:
                wait()
                self._index.sync(texts=False)
                stamp = self._index.stamp()
                if stamp != filled and (self._is_local or self._find_kept(_BEGUN)):
                    self.fill(may_go_on=wait)  # nobody is told: it may be about what they must not know of
                    filled = None if self._refused or not wait() else stamp
            except LockTimeout:
                pass  # another process does so
            except MdmemError:
                time.sleep(_RETRY_SECONDS)
            self._is_due.wait(_RETRY_SECONDS)


class Nearness:
    """How near passages are to one query."""

    def __init__(
        self,
        meaning: Meaning,
        vector: Sequence[float],
        constants: tuple[float, float],
        layers: Sequence[Namespace],
    ) -> None:
        self._meaning, self._vector, self._layers = meaning, vector, layers
        self._low, self._spread = constants
        self._failures: list[str] = []

    def of_memories(self, paths: Sequence[str]) -> dict[str, dict[int, float]]:
        """Return how near the passages of memories are, above 0, by path and ordinal."""
        keys, vectors = self._meaning.keys(paths), self._meaning.vectors
        cosines = {**vectors.compare(self._vector, {key for each in keys.values() for key in each})}
        try:
            cosines |= vectors.compare(self._vector, self._meaning.prepare(paths, keys, cosines))
        except MdmemError as error:
            self._failures.append(f"meaning: {error.message}")
        near = {key: self._judge(cosine) for key, cosine in cosines.items()}
        return {
            path: {ordinal: near[key] for ordinal, key in enumerate(each) if near.get(key)}
            for path, each in keys.items()
        }

    def nearest(self, most: int, among: Collection[int] | None = None) -> list[int]:
        """Return the keys of the memories with the `most` nearest passages, in order, of some or of all."""
        passages: Mapping[str, tuple[int, ...]] = self._meaning.find_memories(self._layers)
        if among is not None:
            passages = {key: own for key, own in passages.items() if any(each in among for each in own)}
        found = self._meaning.vectors.nearest(self._vector, most, passages)
        near = (own for key, cosine in found if self._judge(cosine) for own in sorted(passages[key]))
        return list(dict.fromkeys(near))

    def list_notes(self, passages: int) -> list[str]:
        """List what was left out, and how many of all passages that the namespaces hold are not ready."""
        lacking = passages - self._meaning.count_ready(self._layers)
        note = f"meaning: {lacking:,} of {passages:,} passages are not ready: `mdmem index --meaning`"
        return [*self._failures, *([note] if lacking > 0 else [])]

    def _judge(self, cosine: float) -> float:
        return max(0.0, (cosine - self._low) / self._spread - 1)


def find_wall(path: str) -> str:
    """Return the wall around a memory: the folder of its namespace, or of the thread that left it."""
    parts, at = path.split("/"), 0
    while at < len(parts) and parts[at] in NAMESPACES:
        at += NAMESPACES[parts[at]]
    inner = parts[at : at + 1]
    if inner in ([SESSION_SUMMARY.folder], [OBSERVATION.folder]):
        at += 2
    elif parts[at : at + 2] == ["working", "threads"]:
        at += 3
    return "/".join(parts[:at])


def texts_of(document: Document) -> Iterator[str]:
    """Yield the text of each passage of a memory, as it is compared."""
    body = document.body_span.start
    for passage in cut(document):
        is_plain = not document.is_json and passage.span.start >= body
        yield document.text[slice(*passage.span)] if is_plain else passage.text
