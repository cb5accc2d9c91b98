"""The store of memini, on a vault: for programs that were written for its contract.

Each memory is a note that people and agents read and change like any other; see `mdmem.memory.stored`. Times
are in milliseconds since the epoch, UTC. Vectors are kept by whoever gives a `Vectors`.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from mdmem.errors import Conflict, MemoryNotFound, NotProvided, Usage
from mdmem.facade.memory import Memory
from mdmem.memory.content import stamp, utc_now
from mdmem.memory.stored import Filter, StoredMemory, in_namespace, to_milliseconds, to_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from mdmem.facade.past import PastState

__all__ = ["Filter", "Metrics", "Scored", "StoredMemory", "VaultStore", "Vectors"]

_SYNTAX = re.compile('["“”„«»「」『』:*-]')
_LIVE, _ALL = Filter(), Filter(include_expired=True, include_superseded=True)


class Vectors(Protocol):
    """Where the vectors of memories, each of `dims` numbers, are kept and compared."""

    dims: int

    def put(self, identifier: str, vector: Sequence[float]) -> None:
        """Keep the vector of a memory; it replaces another one."""

    def remove(self, identifier: str) -> None:
        """Forget the vector of a memory, if there is one."""

    def nearest(
        self, vector: Sequence[float], k: int, admits: Callable[[str], bool]
    ) -> Iterable[tuple[str, float]]:
        """Return the ids of the k nearest of those that are admitted, the best first, with their scores."""


class Metrics(Protocol):
    """What is told of what a store does, in whatever thread uses it."""

    def upsert(self, op: str, tier: str) -> None:
        """One memory was stored: `op` is `insert` or `update`."""

    def delete(self) -> None:
        """One memory was deleted."""

    def soft_delete(self) -> None:
        """One memory was superseded."""

    def sweep_expired(self, tier: str) -> None:
        """One memory was deleted because it had expired."""

    def active_by_tier(self, tier: str, n: int) -> None:
        """This number of memories of a tier counts now: told whenever `list_expired` is called."""

    def dedup_tombstoned(self, n: int) -> None:
        """This number of memories was superseded as repetitions by one call of `dedup`."""


class _Silent(Metrics):
    """Metrics that nobody wants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A memory that was found, with the text of the moment that was asked for.

    The higher its `score` the better, among the hits of one search. It is not `exact` where what it said then
    is not certain, and this is the oldest text that is known.
    """

    memory: StoredMemory
    score: float
    exact: bool = True


class VaultStore:
    """The memories of a scope by namespace and id; several threads and processes may use one.

    What takes a namespace and an id raises MemoryNotFound where the namespace has no such memory; what takes
    several ids leaves out those that are not there.

    Args:
        memory: the vault, and the scope that the namespaces are in.
        vectors: keeps and compares vectors.
        metrics: is told what happens.
    """

    def __init__(
        self, memory: Memory, *, vectors: Vectors | None = None, metrics: Metrics | None = None
    ) -> None:
        self._memory = memory
        self._stored = memory.stored
        self._vectors = vectors
        self._metrics = metrics or _Silent()  # type: ignore[abstract]  # empty methods are meant

    # -- one memory ---------------------------------------------------------------------------------------

    def upsert(self, memory: StoredMemory) -> None:
        """Store a memory with its vector, or change the one with its id; the bytes of the rest stay.

        The moment when it was first stored never changes, nor do what took its place or speaks against it.

        Raises:
            Conflict: another namespace has a memory with this id, which stays as it is.
            NotProvided: it has a vector, and there is nowhere to keep one.
            Usage: a value cannot mean anything.
        """
        if memory.embedding:
            self._require_vectors(memory.embedding)
        applied = self._stored.upsert(memory)
        if self._vectors and memory.embedding:
            self._vectors.put(memory.id, memory.embedding)
        elif self._vectors:
            self._vectors.remove(memory.id)
        is_new = any(change.before is None for change in applied.plan.changes)
        self._metrics.upsert("insert" if is_new else "update", memory.tier)

    def get(self, namespace: str, identifier: str) -> StoredMemory:
        """Return a memory, without its vector."""
        return self._read_stored(self._find_path(namespace, identifier))

    def delete(self, namespace: str, identifier: str) -> None:
        """Delete a memory; `Memory.restore` and `undo` bring it back."""
        path = self._find_path(namespace, identifier)
        self._memory.rm(path)
        self._forget(identifier, path)
        self._metrics.delete()

    def delete_if_expired_before(self, namespace: str, identifier: str, cutoff: int) -> None:
        """Delete a memory if it still expires at `cutoff` or earlier; else it is not found."""
        to_moment(cutoff)
        while True:
            path = self._find_path(namespace, identifier)
            document = self._memory.show(path)
            memory = self._stored.at(path, document)
            if memory.expires_at is None or memory.expires_at > cutoff:
                raise MemoryNotFound(path=path)
            with suppress(Conflict):  # it was changed meanwhile: look again
                self._memory.rm(path, base=document.hash)
                break
        self._forget(identifier, path)
        self._metrics.sweep_expired(memory.tier)

    def set_superseded(
        self, namespace: str, identifier: str, superseded_by: str, at: int | None = None
    ) -> None:
        """Say that another memory has taken the place of one, which ends at `at` unless it has an end.

        Raises:
            Usage: it is the memory itself, leads back to it, or another one took its place before.
        """
        by = self._find_path(namespace, superseded_by)
        self._memory.supersede(self._find_path(namespace, identifier), by, at=_moment(at))
        self._metrics.soft_delete()

    def mark_contradicted(self, namespace: str, identifier: str, by: str, at: int | None = None) -> None:
        """Say that one memory speaks against another, which ends at `at` unless it has an end."""
        other = self._find_path(namespace, by)
        self._memory.contradict(self._find_path(namespace, identifier), other, at=_moment(at))

    def restore(self, namespace: str, identifier: str) -> None:
        """Let a memory count again: nothing has taken its place, or speaks against it."""
        self._memory.reinstate(self._find_path(namespace, identifier))

    def predecessor_ids(self, namespace: str, identifier: str) -> Sequence[str]:
        """List the ids of the memories whose place one has taken."""
        return self._stored.predecessors(self._find_path(namespace, identifier))

    def retier(self, namespace: str, identifier: str, tier: str, expires_at: int | None = None) -> None:
        """Give a memory a tier and an end; without `expires_at`, the one that the config gives the tier."""
        end = None if expires_at is None else to_moment(expires_at)
        self._memory.retier(self._find_path(namespace, identifier), tier, expires=end)

    def set_confidence(
        self, namespace: str, identifier: str, confidence: float, now: int | None = None
    ) -> None:
        """Say how sure a memory is, from 0 to 1.

        Raises:
            Usage: it is no such number; or the memory has an end or a successor.
            Conflict: it was changed meanwhile.
        """
        path = self._find_path(namespace, identifier)
        document = self._memory.show(path)
        memory = self._stored.at(path, document)
        if memory.superseded_by or memory.valid_to is not None:
            raise Usage(problem=f"{path} has an end", remedy="restore it first")
        self._stored.check(replace(memory, confidence=confidence))
        fields = {"confidence": confidence, "updated": stamp(_moment(now))}
        self._memory.set(path, fields, base=document.hash)

    # -- several memories ---------------------------------------------------------------------------------

    def reinforce(
        self, namespace: str, ids: Iterable[str], accessed_at: int, new_expiry: int | None = None
    ) -> None:
        """Count that memories were used; those that expire live until `new_expiry`, where that is later."""
        moment, paths = to_moment(accessed_at), self._find_paths(namespace, ids)
        until = None if new_expiry is None else to_moment(new_expiry)
        for path in paths if until else ():
            with suppress(MemoryNotFound):  # it is gone by now
                self._memory.reinforce(path, until=until)
        self._memory.uses.add(paths, namespace=in_namespace(namespace), at=to_milliseconds(moment))

    def reassign(self, from_namespace: str, ids: Iterable[str], to_namespace: str) -> int:
        """Move memories to another namespace; return how many."""
        paths = self._find_paths(from_namespace, ids) if from_namespace != to_namespace else []
        if paths:
            self._memory.mv(paths, f"{in_namespace(to_namespace)}/")
        return len(paths)

    def list(self, namespace: str, wanted: Filter = _LIVE, limit: int = 0) -> Sequence[StoredMemory]:
        """List the memories that a filter admits, sorted as it says; 0 is no limit."""
        selected = self._stored.select(namespace, wanted, limit=max(limit, 0))
        return [scored.memory for scored in self._score(dict.fromkeys(selected, 0.0), selected, wanted)]

    def list_expired(self, now: int | None = None, limit: int = 500) -> Sequence[StoredMemory]:
        """List memories of all namespaces that have expired and have a tier, at most `limit`.

        What expires without a tier, such as the note about a passport, is not for a sweeper.
        """
        stored, at, expired = self._stored, to_milliseconds(_moment(now)), list[str]()
        namespaces = stored.namespaces()
        known = replace(_ALL, tiers=stored.tiers, now=at)
        for namespace in namespaces:
            kept = stored.select(namespace, replace(known, include_expired=False))
            expired += [path for path in stored.select(namespace, known) if path not in kept]
        for tier in stored.tiers:
            live = Filter(tiers=(tier,), now=at)
            self._metrics.active_by_tier(tier, sum(len(stored.select(each, live)) for each in namespaces))
        return [self._read_stored(path) for path in expired[: max(limit, 0) or None]]

    def list_namespaces(self) -> Sequence[str]:
        """List the namespaces that hold memories."""
        return self._stored.namespaces()

    def delete_namespace(self, namespace: str) -> int:
        """Delete every memory of a namespace, not of those below it; return how many."""
        selected = self._stored.select(namespace, _ALL)
        if selected:
            self._memory.rm(list(selected))
        for path, identifier in selected.items():
            self._forget(identifier, path)
        return len(selected)

    def get_by_fingerprint(self, namespace: str, tier: str, fingerprint: str) -> StoredMemory:
        """Return a memory of a tier that counts now and has this fingerprint, or raise MemoryNotFound."""
        for memory in self.list(namespace, Filter(tiers=(tier,))):
            if memory.fingerprint == fingerprint:
                return memory
        raise MemoryNotFound(path=f"{in_namespace(namespace)}/{fingerprint}")

    def dedup(self, namespace: str) -> Mapping[str, str]:
        """Let the best of memories with one fingerprint and tier supersede the others.

        The best one does not expire, is the most important, then the one that was stored last.

        Returns:
            The ids that were superseded, each with the id of its successor.
        """
        best, pairs = dict[tuple[str, str], StoredMemory](), dict[str, str]()
        for memory in sorted(self.list(namespace), key=_quality, reverse=True):
            kept = best.setdefault((memory.tier, memory.fingerprint), memory)
            if kept is memory:
                continue
            with suppress(Conflict, MemoryNotFound):  # it was changed meanwhile: it may say something else
                old = self._find_path(namespace, memory.id)
                plan = self._memory.plan.supersede(old, self._find_path(namespace, kept.id))
                if self._stored.at(old, plan.changes[0].before).fingerprint == kept.fingerprint:
                    self._memory.apply(plan)
                    pairs[memory.id] = kept.id
        self._metrics.dedup_tombstoned(len(pairs))
        return pairs

    # -- search -------------------------------------------------------------------------------------------

    def keyword_search(
        self, namespace: str, query: str, wanted: Filter = _LIVE, k: int = 10
    ) -> Sequence[Scored]:
        """Find the memories that fit some words best; nothing in them is an operator.

        With `as_of` of the filter, the words are looked for in the texts of then.
        """
        words = _SYNTAX.sub(" ", query)
        selected = self._stored.select(namespace, wanted)
        if not (_check_count(k) and selected and words.strip()):
            return []
        if wanted.as_of is None:
            return self._score(_rank(self._memory, words, namespace, selected, k), selected, wanted)
        texts = self._memory.texts_at(selected, to_moment(wanted.as_of))
        with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
            for path, state in texts.items():
                file = os.path.join(folder, path)
                os.makedirs(os.path.dirname(file), exist_ok=True)
                with open(file, "wb") as opened:
                    opened.write(state.document.data if state.document else b"")
            then = Memory(folder)
            scores = _rank(then, words, namespace, selected, k)
            then.index.close()
        return self._score(scores, selected, wanted, texts)

    def vector_search(
        self, namespace: str, vector: Sequence[float], wanted: Filter = _LIVE, k: int = 10
    ) -> Sequence[Scored]:
        """Find the memories whose vectors are nearest to one.

        Raises:
            NotProvided: there are no vectors.
            Usage: the vector is of another length than theirs.
        """
        vectors = self._require_vectors(vector)
        selected = self._stored.select(namespace, wanted)
        paths = {identifier: path for path, identifier in selected.items()}
        near = vectors.nearest(vector, k, paths.__contains__) if _check_count(k) and paths else ()
        return self._score({paths[identifier]: score for identifier, score in near}, selected, wanted)

    # -- the store itself ---------------------------------------------------------------------------------

    def ping(self) -> None:
        """Verify that the vault can be read; raises Unavailable where it cannot."""
        self._memory.sync()

    def close(self) -> None:
        """Close the index; it is opened again when it is needed."""
        self._memory.index.close()

    def _score(
        self,
        scores: Mapping[str, float],
        selected: Mapping[str, str],
        wanted: Filter,
        texts: Mapping[str, PastState] | None = None,
    ) -> Sequence[Scored]:
        """Return memories by path with their scores; what is gone by now is left out."""
        if wanted.as_of is not None and texts is None:
            texts = self._memory.texts_at(scores, to_moment(wanted.as_of))
        hits = []
        for path, score in scores.items():
            state = texts[path] if texts else None
            with suppress(MemoryNotFound):
                memory = replace(self._read_stored(path, state), id=selected[path])
                is_exact = not state or state.certainty in ("exact", "git")
                hits.append(Scored(memory=memory, score=score, exact=is_exact))
        return hits

    def _read_stored(self, path: str, state: PastState | None = None) -> StoredMemory:
        memory = self._stored.at(path, state.document if state else None)
        use = self._memory.uses.of(path, in_namespace(memory.namespace))
        return replace(memory, access_count=use.times, last_accessed_at=use.last or None)

    def _find_path(self, namespace: str, identifier: str) -> str:
        return self._stored.find_path(namespace, identifier)

    def _find_paths(self, namespace: str, ids: Iterable[str]) -> Sequence[str]:
        paths = dict[str, None]()
        for identifier in ids:
            with suppress(MemoryNotFound):
                paths[self._find_path(namespace, identifier)] = None
        return list(paths)

    def _forget(self, identifier: str, path: str) -> None:
        if self._vectors:
            self._vectors.remove(identifier)
        self._memory.uses.forget(path)

    def _require_vectors(self, vector: Sequence[float]) -> Vectors:
        if self._vectors is None:
            raise NotProvided(problem="this store has no Vectors", remedy="give one when it is made")
        if len(vector) != self._vectors.dims or not all(map(math.isfinite, vector)):
            problem = f"this is no vector of the store: it has {len(vector)} numbers"
            raise Usage(problem=problem, remedy=f"give {self._vectors.dims} finite numbers")
        return self._vectors


def _rank(memory: Memory, words: str, namespace: str, paths: Iterable[str], k: int) -> dict[str, float]:
    """Rank some memories of a namespace by words: their scores by path, the best first."""
    folder = in_namespace(namespace)
    hits = memory.search(words, within=folder, limit=k, any_state=True, only=set(paths)).hits
    return {hit.path: hit.score or 0.0 for hit in hits}


def _quality(memory: StoredMemory) -> tuple[bool, float, int, int, str]:
    importance, times = memory.importance or 0, (memory.updated_at or 0, memory.created_at or 0)
    return memory.expires_at is None, importance, *times, memory.id


def _moment(milliseconds: int | None) -> datetime:
    return utc_now() if milliseconds is None else to_moment(milliseconds)


def _check_count(k: int) -> int:
    if k < 0:
        raise Usage(problem=f"k is {k}", remedy="give how many to find, 0 or more")
    return k
