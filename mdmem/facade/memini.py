"""The store of memini, on a vault: for programs that were written for its contract.

Each memory is a note that people and agents read and change like any other. The namespace `a/b` is the folder
`notes/a/b`, without the folders in it. The id is the field `id`, and, encoded, the name of the file; where
another file has that name, or it is too long, the name is a hash of the id. A note without the field has its
name for an id. What a program does not set keeps its bytes. Times are in milliseconds since the epoch, UTC.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from mdmem.document.document import Document, parse_text
from mdmem.document.edit import between, spliced
from mdmem.document.field import unset_field, with_field
from mdmem.document.moment import moment_of, stamp
from mdmem.errors import Conflict, MemoryNotFound, NotProvided, PathRefused, Usage
from mdmem.index.links.lineage import references_in
from mdmem.index.view import View
from mdmem.kind import NOTE
from mdmem.memory import validity
from mdmem.memory.content import utc_now
from mdmem.memory.history import rewriting
from mdmem.vault.paths import check_folder, decode_id, encode_id, join
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from mdmem.facade.questions.past import PastState
    from mdmem.facade.scoped import ScopedMemory
    from mdmem.index.vectors import Vectors

_FOLDER, _MARKDOWN = NOTE.folder, ".md"
_SYNTAX = re.compile('["“”„«»「」『』:*-]')
_NO_ID = re.compile("\0|[\ud800-\udfff]|\\A\\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = ("created_at", "updated_at", "expires_at", "valid_from", "valid_to")
_SHARES = ("importance", "confidence")
_SORTED = ("created", "updated", "importance")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """A memory as programs store it; times are in milliseconds since the epoch, UTC, and None for none.

    Attributes:
        id: one within all namespaces.
        namespace: such as `a/b`; empty for the notes that are in no folder.
        tier: one of the config's tiers, or `pinned`; empty for none.
        metadata: any JSON object.
        importance, confidence: from 0 to 1; None where nothing is said.
        created_at: when it was first stored, which never changes.
        superseded_by, contradicted_by: ids of memories; no `upsert` changes these.
        linked: ids of memories that belong to it.
        embedding: its vector, which stands in no file.
        access_count, last_accessed_at: its use in its namespace, which stands in no file.
    """

    id: str
    namespace: str = ""
    content: str = ""
    tier: str = ""
    level: str = ""
    type: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    importance: float | None = None
    confidence: float | None = None
    created_at: int | None = None
    updated_at: int | None = None
    expires_at: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    superseded_by: str = ""
    contradicted_by: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    embedding: tuple[float, ...] = ()
    access_count: int = 0
    last_accessed_at: int | None = None

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the content in lower case, each run of white space as one space."""
        return sha256(" ".join(self.content.lower().split()).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories are asked for; without anything, all that count now. Times are in milliseconds.

    Attributes:
        tiers, levels, types: one of these; any without.
        tags, metadata: all of these.
        exclude_metadata, exclude_ids: none of these.
        include_expired: also what has expired.
        include_superseded: also what is over, not yet valid, or superseded.
        now: the moment of the question; that of the clock without.
        as_of: ask for what was valid at this moment, whatever took its place since.
        since: only what was stored at this moment or later.
        sort: created, updated or importance, with `-` before it the largest first; by id without.
    """

    tiers: Sequence[str] = ()
    levels: Sequence[str] = ()
    types: Sequence[str] = ()
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    exclude_metadata: Mapping[str, Any] = field(default_factory=dict)
    exclude_ids: Sequence[str] = ()
    include_expired: bool = False
    include_superseded: bool = False
    now: int | None = None
    as_of: int | None = None
    since: int | None = None
    sort: str = ""


_LIVE, _ALL = Filter(), Filter(include_expired=True, include_superseded=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A memory that was found, with the text of the moment that was asked for.

    The higher its `score` the better, among the hits of one search. It is not `exact` where what it said then
    is not certain, and this is the oldest text that is known.
    """

    memory: StoredMemory
    score: float
    exact: bool = True


class Metrics(Protocol):
    """Callbacks for what a store does; each is called in the thread that uses the store."""

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


class VaultStore:
    """The memories of a scope by namespace and id; several threads and processes may use one.

    What takes a namespace and an id raises MemoryNotFound where the namespace has no such memory; what takes
    several ids leaves out those that are not there.

    The namespaces are in the scope of `memory`; `vectors` keeps and compares vectors, and `metrics` is told
    what happens.
    """

    def __init__(
        self, memory: ScopedMemory, *, vectors: Vectors | None = None, metrics: Metrics | None = None
    ) -> None:
        self._memory, self._vault = memory, memory.vault
        self._run, self._view = memory._run_locked, memory._current_view  # noqa: SLF001 - of one façade
        self._vectors = vectors
        self._metrics = metrics or _Silent()  # type: ignore[abstract]  # empty methods are meant

    # -- one memory ---------------------------------------------------------------------------------------

    def upsert(self, memory: StoredMemory) -> None:
        """Store a memory with its vector, or change the one with its id; the bytes of the rest stay.

        Raises:
            Conflict: another namespace has a memory with this id, which stays as it is.
            NotProvided: it has a vector, and there is nowhere to keep one.
            Usage: a value cannot mean anything; or what superseded or contradicted it is another than before.
        """
        if memory.embedding:
            self._require_vectors(memory.embedding)
        self._check(memory)
        applied = self._run(lambda: self._plan_upsert(memory))
        if self._vectors and memory.embedding:
            self._vectors.put({memory.id: memory.embedding})
        elif self._vectors:
            self._vectors.remove([memory.id])
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
        _to_moment(cutoff)
        while True:
            path = self._find_path(namespace, identifier)
            document = self._memory.show(path)
            memory = self._read_stored(path, document)
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
        """Say that another memory has taken the place of one; see `Memory.supersede`."""
        by = self._find_path(namespace, superseded_by)
        self._memory.supersede(self._find_path(namespace, identifier), by, at=_read_moment(at))
        self._metrics.soft_delete()

    def mark_contradicted(self, namespace: str, identifier: str, by: str, at: int | None = None) -> None:
        """Say that one memory speaks against another; see `Memory.contradict`."""
        other = self._find_path(namespace, by)
        self._memory.contradict(self._find_path(namespace, identifier), other, at=_read_moment(at))

    def restore(self, namespace: str, identifier: str) -> None:
        """Let a memory count again: nothing has taken its place, or speaks against it."""
        self._memory.reinstate(self._find_path(namespace, identifier))

    def predecessor_ids(self, namespace: str, identifier: str) -> Sequence[str]:
        """List the ids of the memories that this one has replaced."""
        path = self._find_path(namespace, identifier)
        old = [old for old, new in validity.find_successors(self._view()).items() if new == path]
        return sorted(_id_of(document) for document in map(self._vault.find, old) if document is not None)

    def retier(self, namespace: str, identifier: str, tier: str, expires_at: int | None = None) -> None:
        """Give a memory a tier and an end; without `expires_at`, the one that the config gives the tier."""
        end = None if expires_at is None else _to_moment(expires_at)
        self._memory.retier(self._find_path(namespace, identifier), tier, expires=end)

    def set_confidence(
        self, namespace: str, identifier: str, confidence: float, now: int | None = None
    ) -> None:
        """Say how sure a memory is, from 0 to 1.

        Raises:
            Usage: it is no such number; or the memory has an end or a successor.
        """
        path = self._find_path(namespace, identifier)
        document = self._memory.show(path)
        memory = self._read_stored(path, document)
        if memory.superseded_by or memory.valid_to is not None:
            raise Usage(problem=f"{path} has an end", remedy="restore it first")
        self._check(replace(memory, confidence=confidence))
        fields = {"confidence": confidence, "updated": stamp(_read_moment(now))}
        self._memory.set(path, fields, base=document.hash)

    # -- several memories ---------------------------------------------------------------------------------

    def reinforce(
        self, namespace: str, ids: Iterable[str], accessed_at: int, new_expiry: int | None = None
    ) -> None:
        """Count that memories were used; those that expire live until `new_expiry`, where that is later."""
        moment, paths = _to_moment(accessed_at), self._find_paths(namespace, ids)
        until = None if new_expiry is None else _to_moment(new_expiry)
        for path in paths if until else ():
            with suppress(MemoryNotFound):  # it is gone by now
                self._memory.reinforce(path, until=until)
        self._memory.uses.add(paths, namespace=_find_folder(namespace), at=_to_milliseconds(moment))

    def reassign(self, from_namespace: str, ids: Iterable[str], to_namespace: str) -> int:
        """Move memories to another namespace; return how many."""
        paths = self._find_paths(from_namespace, ids) if from_namespace != to_namespace else []
        if paths:
            self._memory.mv(paths, f"{_find_folder(to_namespace)}/")
        return len(paths)

    def list(self, namespace: str, wanted: Filter = _LIVE, limit: int = 0) -> Sequence[StoredMemory]:
        """List the memories that a filter admits, sorted as it says; 0 is no limit."""
        selected = self._select(namespace, wanted, limit=max(limit, 0))
        return [scored.memory for scored in self._score(dict.fromkeys(selected, 0.0), selected, wanted)]

    def list_expired(self, now: int | None = None, limit: int = 500) -> Sequence[StoredMemory]:
        """List memories of all namespaces that have expired and have a tier, at most `limit`.

        What expires without a tier, such as the note about a passport, is not for a sweeper.
        """
        at, expired = _to_milliseconds(_read_moment(now)), list[str]()
        namespaces, tiers = self.list_namespaces(), validity.list_tiers(self._vault)
        known = replace(_ALL, tiers=tiers, now=at)
        for namespace in namespaces:
            kept = self._select(namespace, replace(known, include_expired=False))
            expired += [path for path in self._select(namespace, known) if path not in kept]
        for tier in tiers:
            live = Filter(tiers=(tier,), now=at)
            self._metrics.active_by_tier(tier, sum(len(self._select(each, live)) for each in namespaces))
        return [self._read_stored(path) for path in expired[: max(limit, 0) or None]]

    def list_namespaces(self) -> Sequence[str]:
        """List the namespaces that hold memories."""
        paths = (file.path for file in self._vault.walk(_FOLDER) if file.path.endswith(_MARKDOWN))
        return sorted({path.rpartition("/")[0][len(_FOLDER) + 1 :] for path in paths})

    def delete_namespace(self, namespace: str) -> int:
        """Delete every memory of a namespace, not of those below it; return how many."""
        selected = self._select(namespace, _ALL)
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
        raise MemoryNotFound(path=f"{_find_folder(namespace)}/{fingerprint}")

    def dedup(self, namespace: str) -> Mapping[str, str]:
        """Let the best of memories with one fingerprint and tier supersede the others.

        The best one does not expire, is the most important, then the one that was stored last. Returns the
        ids that were superseded, each with the id of its successor.
        """
        best, pairs = dict[tuple[str, str], StoredMemory](), dict[str, str]()
        for memory in sorted(self.list(namespace), key=_quality, reverse=True):
            kept = best.setdefault((memory.tier, memory.fingerprint), memory)
            if kept is memory:
                continue
            with suppress(Conflict, MemoryNotFound):  # it was changed meanwhile: it may say something else
                old = self._find_path(namespace, memory.id)
                plan = self._memory.plan.supersede(old, self._find_path(namespace, kept.id))
                if self._read_stored(old, plan.changes[0].before).fingerprint == kept.fingerprint:
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
        selected = self._select(namespace, wanted)
        if not (_check_count(k) and selected and words.strip()):
            return []
        if wanted.as_of is None:
            return self._score(_rank(self._memory, words, namespace, selected, k), selected, wanted)
        texts = self._memory.texts_at(selected, _to_moment(wanted.as_of))
        with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
            for path, state in texts.items():
                file = os.path.join(folder, path)
                os.makedirs(os.path.dirname(file), exist_ok=True)
                with open(file, "wb") as opened:
                    opened.write(state.document.data if state.document else b"")
            then = type(self._memory)(folder)
            scores = _rank(then, words, namespace, selected, k)
            then.index.close()
        return self._score(scores, selected, wanted, texts)

    def vector_search(
        self, namespace: str, vector: Sequence[float], wanted: Filter = _LIVE, k: int = 10
    ) -> Sequence[Scored]:
        """Find the memories with the vectors nearest to this one; raises NotProvided without `Vectors`."""
        vectors = self._require_vectors(vector)
        selected = self._select(namespace, wanted)
        paths = {identifier: path for path, identifier in selected.items()}
        near = vectors.nearest(vector, k, paths) if _check_count(k) and paths else ()
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
            texts = self._memory.texts_at(scores, _to_moment(wanted.as_of))
        hits = []
        for path, score in scores.items():
            state = texts[path] if texts else None
            with suppress(MemoryNotFound):
                memory = self._read_stored(path, state.document if state else None)
                is_exact = not state or state.certainty in ("exact", "git")
                hits.append(Scored(memory=replace(memory, id=selected[path]), score=score, exact=is_exact))
        return hits

    def _read_stored(self, path: str, document: Document | None = None) -> StoredMemory:
        """Read the memory at a path, or what it was in a document of another time."""
        document, folder = document or self._vault.read(path), path.rpartition("/")[0]
        use = self._memory.uses.of(path, folder)
        known: dict[str, Any] = {name: read(document.fields.get(key)) for name, key, read in _VALUES}
        return StoredMemory(
            id=_id_of(document),
            namespace=folder[len(_FOLDER) + 1 :],
            content=_content_of(document),
            superseded_by=next(self._list_ids(document, "superseded_by"), ""),
            contradicted_by=tuple(self._list_ids(document, "contradicted_by")),
            access_count=use.times,
            last_accessed_at=use.last or None,
            **known,
        )

    def _list_ids(self, document: Document, key: str) -> Iterator[str]:
        """Yield the ids of the memories that a field of lineage names; of one that is not there, its name."""
        for text in _read_texts(document.fields.get(key)):
            for reference in references_in(self._view(), document.path, text):
                goal = self._vault.find(reference.goal) if reference.goal else None
                yield _id_of(goal) if goal is not None else reference.name

    def _find_document(self, namespace: str, identifier: str) -> Document | None:
        """Find a memory: by the name that its file has, else by the index."""
        folder = _find_folder(namespace)
        for path in _list_paths(folder, identifier):
            document = self._vault.find(path)
            if document is not None and _id_of(document) == identifier:
                return document
        for path in self._view().named("id", identifier):
            if path.endswith(_MARKDOWN) and path.rpartition("/")[0] == folder:
                return self._vault.find(path)
        return None

    def _find_path(self, namespace: str, identifier: str) -> str:
        document = self._find_document(namespace, identifier)
        if document is None:
            raise MemoryNotFound(path=join(_find_folder(namespace), identifier))
        return document.path

    def _find_paths(self, namespace: str, ids: Iterable[str]) -> Sequence[str]:
        paths = dict[str, None]()
        for identifier in ids:
            with suppress(MemoryNotFound):
                paths[self._find_path(namespace, identifier)] = None
        return list(paths)

    def _select(self, namespace: str, wanted: Filter, limit: int = 0) -> dict[str, str]:
        """Find the memories that a filter admits: their ids by path, sorted as it says; 0 is no limit."""
        key, is_down = wanted.sort.removeprefix("-"), wanted.sort.startswith("-")
        if key and key not in _SORTED:
            raise Usage(problem=f"nothing is sorted by {key!r}", remedy=f"sort by {', '.join(_SORTED)}")
        view, admits = self._view(), _make_test(wanted)
        is_any = wanted.include_superseded or wanted.as_of is not None
        superseded = {} if is_any else validity.find_successors(view)
        listed = _list_rows(view, _find_folder(namespace), (*wanted.metadata, *wanted.exclude_metadata))
        rows = [(path, row) for path, row in listed if path not in superseded and admits(row)]
        rows.sort(key=lambda pair: str(pair[1]["id"]))
        if key:
            rows.sort(key=lambda pair: _sort_value(pair[1].get(key)), reverse=is_down)
        return {path: row["id"] for path, row in rows[: limit or None]}

    def _check(self, memory: StoredMemory) -> None:
        """Refuse a memory with a value that cannot mean anything, or none of the tiers."""
        if memory.tier:
            validity.require_tier(self._vault, memory.tier)
        for name in _SHARES:
            share = getattr(memory, name)
            if share is not None and _read_share(share) is None:
                raise Usage(problem=f"{name} is {share!r}", remedy="give a number from 0 to 1, or None")
        for name in _TIMES:
            _to_moment(getattr(memory, name) or 0)
        if memory.valid_from and memory.valid_to is not None and memory.valid_to < memory.valid_from:
            raise Usage(problem=f"{memory.id} ends before it begins", remedy="change valid_from or valid_to")

    def _plan_upsert(self, memory: StoredMemory) -> EditPlan:
        document = self._find_document(memory.namespace, memory.id)
        known = self._read_stored(document.path, document) if document else StoredMemory(id=memory.id)
        is_same = memory.superseded_by in ("", known.superseded_by)
        if not is_same or memory.contradicted_by not in ((), known.contradicted_by):
            remedy = "call set_superseded or mark_contradicted"
            raise Usage(problem="what ended a memory is not stored with it", remedy=remedy)
        now = _to_milliseconds(utc_now())
        before = document or self._make_blank(memory.namespace, memory.id)
        created = known.created_at if document else memory.created_at or now
        updated = memory.updated_at or (now if document else created)
        after = _with_values(before, replace(memory, created_at=created, updated_at=updated))
        if document:
            return rewriting(before, after, f"store {before.path}")
        change = Change(path=after.path, before=None, content=after.data, merge=False)
        return EditPlan(changes=(change,), message=f"store {after.path}")

    def _make_blank(self, namespace: str, identifier: str) -> Document:
        """Make a memory with nothing but an id, where its file may be."""
        for path in self._view().named("id", identifier):
            document = self._vault.find(path)
            if document is not None and path.startswith(f"{_FOLDER}/") and path.endswith(_MARKDOWN):
                diff = f"the id {identifier!r} is of a memory in another namespace"
                raise Conflict(path=path, base=None, actual=document.hash, diff=diff)
        folder = _find_folder(namespace)
        taken = {file.path.casefold() for file in self._vault.walk(folder)}
        free = [path for path in _list_paths(folder, identifier) if path.casefold() not in taken]
        if not free:
            raise Usage(problem=f"{folder} has other files for the id {identifier!r}", remedy="rename these")
        blank = parse_text(free[0], "---\n---\n", self._vault.config.limits)
        return with_field(blank, ("id",), identifier)

    def _forget(self, identifier: str, path: str) -> None:
        if self._vectors:
            self._vectors.remove([identifier])
        self._memory.uses.forget(path)

    def _require_vectors(self, vector: Sequence[float]) -> Vectors:
        if self._vectors is None:
            raise NotProvided(problem="this store has no Vectors", remedy="give one when it is made")
        if len(vector) != self._vectors.dims or not all(map(math.isfinite, vector)):
            problem = f"this is no vector of the store: it has {len(vector)} numbers"
            raise Usage(problem=problem, remedy=f"give {self._vectors.dims} finite numbers")
        return self._vectors


def _rank(memory: ScopedMemory, words: str, namespace: str, paths: Iterable[str], k: int) -> dict[str, float]:
    """Rank some memories of a namespace by words: their scores by path, the best first."""
    folder = _find_folder(namespace)
    hits = memory.search(words, within=folder, limit=k, any_state=True, words_only=True, only=set(paths)).hits
    return {hit.path: hit.score or 0.0 for hit in hits}


def _quality(memory: StoredMemory) -> tuple[bool, float, int, int, str]:
    importance, times = memory.importance or 0, (memory.updated_at or 0, memory.created_at or 0)
    return memory.expires_at is None, importance, *times, memory.id


def _read_moment(milliseconds: int | None) -> datetime:
    return utc_now() if milliseconds is None else _to_moment(milliseconds)


def _check_count(k: int) -> int:
    if k < 0:
        raise Usage(problem=f"k is {k}", remedy="give how many to find, 0 or more")
    return k


def _to_moment(milliseconds: int) -> datetime:
    with suppress(OverflowError):
        if milliseconds >= 0:
            return _EPOCH + timedelta(milliseconds=milliseconds)
    remedy = "give milliseconds since 1970, 0 or more, and None for never"
    raise Usage(problem=f"{milliseconds} is no time", remedy=remedy)


def _to_milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _find_folder(namespace: str) -> str:
    return join(_FOLDER, check_folder(namespace))


def _list_paths(folder: str, identifier: str) -> Iterator[str]:
    """Yield the paths that the file of an id may have: its name is the id, if it can be, or its hash."""
    if _NO_ID.search(identifier):
        raise Usage(problem=f"{identifier!r} cannot be an id", remedy="give another text")
    with suppress(PathRefused):  # too long a name, or . or ..
        yield join(folder, encode_id(identifier) + _MARKDOWN)
    yield join(folder, sha256(identifier.encode()).hexdigest()[:32] + _MARKDOWN)


def _id_of(document: Document) -> str:
    written = document.fields.get("id")
    is_named = isinstance(written, str | int) and not isinstance(written, bool)
    return (str(written) if is_named else "") or _decode_name(document.path)


def _decode_name(path: str) -> str:
    return decode_id(path.rpartition("/")[2].removesuffix(_MARKDOWN))


def _content_of(document: Document) -> str:
    return document.body.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")


def _with_values(document: Document, memory: StoredMemory) -> Document:
    """Return a document with the values of a memory; fields that have them already keep their bytes."""
    fields = document.fields
    for name, key, read in _VALUES:
        value = getattr(memory, name)
        if read(fields.get(key)) == value:
            continue
        if value in (None, "", (), {}):
            document = spliced(document, unset_field(document, (key,)))
        else:
            written = (
                _write_time(value) if name in _TIMES else list(value) if isinstance(value, tuple) else value
            )
            document = with_field(document, (key,), written)
    if _content_of(document) == memory.content:
        return document
    text = document.text[: document.body_span.start] + memory.content
    if memory.content:
        text += "\r\n" if document.text.endswith("\r\n") else "\n"
    return spliced(document, between(document.text, text))


# -- the values of fields, as they are written and read -----------------------------------------------------


def _write_time(milliseconds: int) -> str:
    """Return a time as it is written: to the second, or to the millisecond where that says more."""
    spec = "milliseconds" if milliseconds % 1000 else "seconds"
    return stamp(_to_moment(milliseconds), spec)


def _read_time(written: Any) -> int | None:
    moment = moment_of(written)
    return None if moment is None else _to_milliseconds(moment)


def _read_text(written: Any) -> str:
    return written if isinstance(written, str) else ""


def _read_texts(written: Any) -> tuple[str, ...]:
    items = written if isinstance(written, list) else [written]
    return tuple(str(item) for item in items if isinstance(item, str | int) and str(item))


def _read_object(written: Any) -> dict[str, Any]:
    return written if isinstance(written, dict) else {}


def _read_share(written: Any) -> float | None:
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    return written if is_number and 0 <= written <= 1 else None


_VALUES: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    *((name, name, _read_text) for name in ("tier", "level", "type", "summary")),
    *((name, name, _read_share) for name in _SHARES),
    *((name, name, _read_texts) for name in ("tags", "linked")),
    ("metadata", "metadata", _read_object),
    *((name, name.removesuffix("_at"), _read_time) for name in _TIMES),
)
"""The values of a memory: the attribute, the key of the field, and what reads the field."""


# -- filters, over what the index has of the fields ----------------------------------------------------------


def _list_rows(view: View, folder: str, metadata: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the memories of a folder by path, each with the values of the fields that a filter may name."""
    inner = View(view.index, view.vault.within(view.outside(folder)))
    keys = {"id", *(key for _, key, _ in _VALUES), *(f"metadata.{key}" for key in metadata)}
    for name, _, _, values in inner.memories(keys):
        if "/" not in name and name.endswith(_MARKDOWN):
            row: dict[str, Any] = {key: items[0] for key, items in values.items() if items}
            row["tags"] = [str(tag) for tag in values.get("tags", ())]
            yield join(folder, name), row | {"id": str(row.get("id") or _decode_name(name))}


def _make_test(wanted: Filter) -> Callable[[Mapping[str, Any]], bool]:
    """Make the test of a row: whether a filter admits it, superseded or not."""
    now = _to_moment(wanted.now) if wanted.now is not None else utc_now()
    moment = now if wanted.as_of is None else _to_moment(wanted.as_of)
    since = None if wanted.since is None else _to_moment(wanted.since)
    is_timed = not wanted.include_superseded or wanted.as_of is not None
    choices = {"tier": wanted.tiers, "level": wanted.levels, "type": wanted.types}

    def admits(row: Mapping[str, Any]) -> bool:
        bounds = validity.bounds_of(row)
        is_expired = bounds.expires is not None and bounds.expires <= moment
        is_over = is_timed and bounds._replace(expires=None).judge(moment) != "live"
        if is_over or (is_expired and not wanted.include_expired) or row["id"] in wanted.exclude_ids:
            return False
        stored = moment_of(row.get("updated")) or moment_of(row.get("created"))
        return (
            (since is None or (stored is not None and stored >= since))
            and all(not choice or row.get(key) in choice for key, choice in choices.items())
            and set(wanted.tags) <= set(row["tags"])
            and all(_is_value(row, key, value) for key, value in wanted.metadata.items())
            and not any(_is_value(row, key, value) for key, value in wanted.exclude_metadata.items())
        )

    return admits


def _is_value(row: Mapping[str, Any], key: str, value: Any) -> bool:
    wanted = str(value).lower() if isinstance(value, bool) else value  # as the index has it
    return value is not None and row.get(f"metadata.{key}") == wanted


def _sort_value(value: Any) -> tuple[bool, float]:
    """Return what sorts a number or a time; what is missing comes first."""
    number = value if isinstance(value, int | float) else _read_time(value)
    return number is not None, number or 0
