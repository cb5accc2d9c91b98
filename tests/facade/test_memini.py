"""The store of memini on a vault: what its own conformance suite asks of a driver, and what it does not."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.errors import Conflict, MdmemError, MemoryNotFound, NotProvided, ProgramFailed, Usage
from mdmem.facade.memini import Filter, StoredMemory, VaultStore
from mdmem.facade.memory import Memory
from tests import speed
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

HOUR = 3_600_000
NOW = 1_700_000_000_000
"""A moment in the past: 2023-11-14T22:13:20Z, in milliseconds."""


class Near:
    """Vectors in a dictionary, compared by their cosine."""

    model, dims = "near", 2

    def __init__(self) -> None:
        self.kept: dict[str, Sequence[float]] = {}

    def put(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.kept.update(vectors)

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.kept.pop(key, None)

    def compare(self, vector: Sequence[float], keys: Collection[str]) -> Mapping[str, float]:
        def score(other: Sequence[float]) -> float:
            return sum(a * b for a, b in zip(vector, other, strict=True)) / (
                math.hypot(*vector) * math.hypot(*other)
            )

        return {key: score(self.kept[key]) for key in keys if key in self.kept}

    def nearest(self, vector: Sequence[float], k: int, among: Collection[str]) -> Sequence[tuple[str, float]]:
        compared = self.compare(vector, among)
        return sorted(compared.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


class Toy:
    """An embedder whose vectors programs bring."""

    name, dims, constants = "toy", 2, (0.0, 0.5)

    def reads(self, _text: str) -> bool:
        return True

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [(1.0, float(len(text))) for text in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        return self.embed_documents([text])[0]


class Told:
    """Metrics that remember what they are told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def upsert(self, op: str, tier: str) -> None:
        self.calls.append(("upsert", op, tier))

    def delete(self) -> None:
        self.calls.append(("delete",))

    def soft_delete(self) -> None:
        self.calls.append(("soft_delete",))

    def sweep_expired(self, tier: str) -> None:
        self.calls.append(("sweep_expired", tier))

    def active_by_tier(self, tier: str, n: int) -> None:
        self.calls.append(("active_by_tier", tier, n))

    def dedup_tombstoned(self, n: int) -> None:
        self.calls.append(("dedup_tombstoned", n))


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    root = tmp_path / "memories"
    root.mkdir()
    return Memory(str(root))


@pytest.fixture(params=["a dictionary", "the folder"])
def store(memory: Memory, request: pytest.FixtureRequest) -> VaultStore:
    if request.param == "a dictionary":
        return VaultStore(memory, vectors=Near())
    pytest.importorskip("numpy")
    return Memory(memory.root, embedder=Toy()).store


def make(identifier: str, content: str = "", **values: Any) -> StoredMemory:
    given = {"namespace": "a/b", "tier": "semantic", **values}
    return StoredMemory(id=identifier, content=content or f"what {identifier} says", **given)


def ids(found: Iterable[Any]) -> list[str]:
    return [getattr(each, "memory", each).id for each in found]


def keep(store: VaultStore, *memories: StoredMemory) -> None:
    for each in memories:
        store.upsert(each)


def test_upsert_get_delete(store: VaultStore) -> None:
    given = make(
        "m1",
        "The database is Postgres.\n\n- in Frankfurt\n",
        level="explicit",
        type="note",
        summary="which database",
        tags=("db", "infra"),
        metadata={"author": "ann", "n": 3, "deep": {"list": [1, "two"]}, "is_good": True},
        importance=0.8,
        confidence=0.5,
        created_at=NOW,
        updated_at=NOW + 1,
        expires_at=NOW + HOUR + 7,
        valid_from=NOW - HOUR,
        valid_to=NOW + HOUR,
        linked=("m2", "m3"),
    )
    store.upsert(given)
    assert store.get("a/b", "m1") == given
    for namespace in ("a", "a/b/c", ""):
        with pytest.raises(MemoryNotFound):
            store.get(namespace, "m1")
    store.delete("a/b", "m1")
    for _ in range(2):
        with pytest.raises(MemoryNotFound):
            store.delete("a/b", "m1")
    assert store.list_namespaces() == []


def test_update_in_place_keeps_created_at_and_the_bytes_of_the_rest(
    store: VaultStore, memory: Memory
) -> None:
    keep(store, make("m1", "old", created_at=NOW, tags=("a",)))
    path = "notes/a/b/m1.md"
    memory.set(path, {"mine": "stays # as it is"})
    before = memory.show(path).text
    store.upsert(make("m1", "new", created_at=NOW + HOUR, updated_at=NOW + 5, tags=("a",)))
    after = memory.show(path).text
    assert store.get("a/b", "m1").created_at == NOW
    assert store.get("a/b", "m1").content == "new"
    updated = "updated: 2023-11-14T22:13:20Z\n"
    assert after == before.replace("\nold\n", "\nnew\n").replace(updated, updated.replace("20Z", "20.005Z"))


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf---\r\nid: m1\r\nother: [1,  2]  # kept\r\n---\r\nOne.\r\n\r\nTwo.\r\n",
        b"---\nother: {a: 1}\n---\n\n# A title\n\ntext without an end",
        b"---\ntags: one  # not a list\nconfidence: high\ncreated: 2024-01-31\nlinked: b\n---\ntext\n",
        b"no frontmatter at all\n",
        b"",
    ],
)
def test_a_note_of_others_is_a_memory_and_keeps_its_bytes(
    store: VaultStore, memory: Memory, data: bytes
) -> None:
    place = Path(memory.folder, "notes/a/b/m1.md")
    place.parent.mkdir(parents=True)
    place.write_bytes(data)
    found = store.get("a/b", "m1")
    assert (
        found.content.splitlines() == memory.show("notes/a/b/m1.md").body.removeprefix("\ufeff").splitlines()
    )
    store.upsert(replace(found, importance=0.5))
    assert store.get("a/b", "m1").content == found.content
    changed = memory.show("notes/a/b/m1.md").data
    for line in data.splitlines(keepends=True):
        assert line in changed
    store.upsert(replace(found, importance=0.5, content="three\n\nlines\n"))
    assert store.get("a/b", "m1").content == "three\n\nlines\n"


def test_cross_namespace_upsert_is_refused_and_changes_nothing(store: VaultStore, memory: Memory) -> None:
    keep(store, make("m1"))
    before = memory.show("notes/a/b/m1.md").data
    with pytest.raises(Conflict, match="another namespace"):
        store.upsert(make("m1", "stolen", namespace="c"))
    assert memory.show("notes/a/b/m1.md").data == before
    assert store.list_namespaces() == ["a/b"]


def test_vector_ranking_is_filtered_before_k(store: VaultStore) -> None:
    keep(
        store,
        make("east", embedding=(1.0, 0.0)),
        make("north", embedding=(0.0, 1.0), tier="working"),
        make("between", embedding=(1.0, 1.0)),
        make("without"),
    )
    assert ids(store.vector_search("a/b", (1.0, 0.1))) == ["east", "between", "north"]
    assert ids(store.vector_search("a/b", (1.0, 0.1), Filter(tiers=("working",)), k=1)) == ["north"]
    assert ids(store.vector_search("other", (1.0, 0.1))) == []
    with pytest.raises(Usage, match="it has 3 numbers"):
        store.vector_search("a/b", (1.0, 0.0, 0.0))


def test_vectorless_row_loses_its_stale_vector_and_is_found_by_words(store: VaultStore) -> None:
    keep(store, make("m1", "postgres", embedding=(1.0, 0.0)))
    store.upsert(make("m1", "postgres"))
    assert store.vector_search("a/b", (1.0, 0.0)) == []
    assert ids(store.keyword_search("a/b", "postgres")) == ["m1"]
    with pytest.raises(Usage):
        store.upsert(make("m2", embedding=(1.0,)))
    with pytest.raises(MemoryNotFound):
        store.get("a/b", "m2")


def test_without_vectors_they_are_named_as_missing(memory: Memory) -> None:
    store = VaultStore(memory)
    for ask in (
        lambda: store.vector_search("a/b", (1.0, 0.0)),
        lambda: store.upsert(make("m1", embedding=(1.0, 0.0))),
    ):
        with pytest.raises(NotProvided, match="no Vectors"):
            ask()
    assert store.list_namespaces() == []


def test_while_the_embedder_is_down_no_vector_is_lost(memory: Memory) -> None:
    pytest.importorskip("numpy")
    store = Memory(memory.root, embedder="http://127.0.0.1:9/v1#m").store
    store.upsert(make("m1"))
    with pytest.raises(ProgramFailed, match="Connection refused"):
        store.upsert(make("m2", embedding=(1.0, 0.0)))
    assert ids(store.list("a/b")) == ["m1"]


def test_keyword_search_finds_every_script(store: VaultStore) -> None:
    keep(
        store,
        make("latin", "The café in Zürich closes early."),
        make("russian", "База данных переехала в Москву."),
        make("chinese", "数据库在法兰克福。"),
        make("other", "Nothing of this.", namespace="a"),
    )
    for query, found in {
        "café": "latin",
        "zürich": "latin",
        "москву": "russian",
        "数据库": "chinese",
    }.items():
        assert ids(store.keyword_search("a/b", query)) == [found], query
    assert ids(store.keyword_search("a", "café")) == []
    assert store.keyword_search("a/b", "café", k=0) == []
    scores = [each.score for each in store.keyword_search("a/b", "café Москву")]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 2


@cases(
    "query",
    [
        *(
            '"',
            '"""',
            "-",
            "*",
            "tag:",
            "type:x",
            "-postgres",
            'NEAR("a" "b")',
            "a AND (b OR",
            "'; DROP TABLE x;--",
        ),
        *("", "   ", "\0", "\ud800", "\n\t", "path:notes/", "before:2000", "[[", "%_", "x" * 5_000, "🤷‍♀️"),
    ],
    ids=ascii,
)
def test_keyword_hostile_queries_are_plain_words(store: VaultStore, query: str) -> None:
    keep(store, make("m1", "postgres"))
    assert ids(store.keyword_search("a/b", query)) in ([], ["m1"])
    assert ids(store.keyword_search("a/b", f"{query} postgres")) == ["m1"]


def test_filters_take_tags_metadata_and_ids_and_an_exclusion_frees_the_slot(store: VaultStore) -> None:
    keep(
        store,
        make("m1", "word", tags=("x", "y"), metadata={"author": "ann", "ok": True}),
        make("m2", "word", tags=("x",), metadata={"author": "bob", "ok": False}),
        make("m3", "word", tier="working", metadata={"n": 3}),
    )

    def found(**values: Any) -> list[str]:
        wanted = Filter(**values)
        listed, searched = ids(store.list("a/b", wanted)), ids(store.keyword_search("a/b", "word", wanted))
        assert listed == sorted(searched)
        return listed

    assert found() == ["m1", "m2", "m3"]
    assert found(tiers=("working", "episodic")) == ["m3"]
    assert found(tags=("x",)) == ["m1", "m2"]
    assert found(tags=("x", "y")) == ["m1"]
    assert found(metadata={"author": "ann"}) == ["m1"]
    assert found(metadata={"ok": False}) == ["m2"]
    assert found(metadata={"n": 3}) == ["m3"]
    assert found(exclude_metadata={"author": "ann"}) == ["m2", "m3"]
    assert found(exclude_ids=("m1",)) == ["m2", "m3"]
    assert found(exclude_ids=(), exclude_metadata={}, metadata={}, tags=(), tiers=()) == ["m1", "m2", "m3"]
    first = ids(store.keyword_search("a/b", "word", k=1))
    assert len(store.keyword_search("a/b", "word", Filter(exclude_ids=first), k=1)) == 1


def test_level_filter_and_memory_type_filter(store: VaultStore) -> None:
    keep(
        store, make("m1", level="explicit", type="note"), make("m2", level="deduced", type="fact"), make("m3")
    )
    assert ids(store.list("a/b", Filter(levels=("deduced",)))) == ["m2"]
    assert ids(store.list("a/b", Filter(types=("note", "fact")))) == ["m1", "m2"]


def test_set_superseded_and_predecessor_ids_of_a_merge(store: VaultStore) -> None:
    keep(store, make("old"), make("older"), make("new"))
    store.set_superseded("a/b", "old", "new", NOW)
    store.set_superseded("a/b", "older", "new")
    assert ids(store.list("a/b")) == ["new"]
    assert ids(store.list("a/b", Filter(include_superseded=True))) == ["new", "old", "older"]
    assert store.predecessor_ids("a/b", "new") == ["old", "older"]
    assert store.get("a/b", "old").superseded_by == "new"
    assert store.get("a/b", "old").valid_to == NOW
    store.upsert(replace(store.get("a/b", "old"), content="changed"))
    assert store.get("a/b", "old").superseded_by == "new"
    with pytest.raises(MemoryNotFound):
        store.set_superseded("a/b", "gone", "new")


def test_a_successor_that_cannot_be_is_refused(store: VaultStore, memory: Memory) -> None:
    keep(store, make("m1"), make("m2"), make("m3"))
    store.set_superseded("a/b", "m1", "m2", NOW)
    before = [memory.show(f"notes/a/b/m{number}.md").data for number in (1, 2, 3)]
    for old, by in (("m2", "m2"), ("m2", "m1"), ("m1", "m3"), ("m2", "gone")):
        with pytest.raises((Usage, MemoryNotFound)):
            store.set_superseded("a/b", old, by)
    assert [memory.show(f"notes/a/b/m{number}.md").data for number in (1, 2, 3)] == before
    with pytest.raises(Usage, match="set_superseded"):
        store.upsert(make("m3", superseded_by="m1"))


def test_restore_clears_both_exits(store: VaultStore) -> None:
    keep(store, make("m1"), make("m2"), make("m3"))
    store.set_superseded("a/b", "m1", "m2", NOW)
    store.mark_contradicted("a/b", "m3", "m2", NOW)
    assert ids(store.list("a/b")) == ["m2"]
    store.restore("a/b", "m1")
    store.restore("a/b", "m3")
    assert ids(store.list("a/b")) == ["m1", "m2", "m3"]
    assert store.get("a/b", "m3").contradicted_by == ()


def test_mark_contradicted_names_who_and_ends_it(store: VaultStore) -> None:
    keep(store, make("m1"), make("m2"))
    store.mark_contradicted("a/b", "m1", "m2", NOW)
    assert store.get("a/b", "m1").contradicted_by == ("m2",)
    assert store.get("a/b", "m1").valid_to == NOW
    assert ids(store.keyword_search("a/b", "says")) == ["m2"]


def test_reinforce_counts_and_moves_only_an_expiry_that_is_there(store: VaultStore, memory: Memory) -> None:
    keep(store, make("durable"), make("short", tier="working", expires_at=NOW + HOUR))
    before = memory.show("notes/a/b/durable.md").data
    store.reinforce("a/b", ["durable", "short", "gone"], NOW, NOW + 2 * HOUR)
    store.reinforce("a/b", ["short"], NOW + 5, NOW)
    assert memory.show("notes/a/b/durable.md").data == before
    durable, short = store.get("a/b", "durable"), store.get("a/b", "short")
    assert (durable.expires_at, durable.access_count, durable.last_accessed_at) == (None, 1, NOW)
    assert (short.expires_at, short.access_count, short.last_accessed_at) == (NOW + 2 * HOUR, 2, NOW + 5)


def test_delete_if_expired_before_spares_what_was_reinforced(store: VaultStore) -> None:
    keep(store, make("m1", tier="working", expires_at=NOW + HOUR), make("durable"))
    listed = store.list_expired(NOW + 2 * HOUR)
    assert ids(listed) == ["m1"]
    for identifier, cutoff in (("m1", NOW), ("durable", NOW + 9 * HOUR), ("gone", NOW)):
        with pytest.raises(MemoryNotFound):
            store.delete_if_expired_before("a/b", identifier, cutoff)
    store.reinforce("a/b", ["m1"], NOW, NOW + 3 * HOUR)
    with pytest.raises(MemoryNotFound):
        store.delete_if_expired_before("a/b", "m1", NOW + 2 * HOUR)
    store.delete_if_expired_before("a/b", "m1", NOW + 3 * HOUR)
    with pytest.raises(MemoryNotFound):
        store.delete_if_expired_before("a/b", "m1", NOW + 3 * HOUR)


def test_list_expired_is_of_all_namespaces_and_of_what_has_a_tier(store: VaultStore) -> None:
    keep(
        store,
        make("m1", tier="working", expires_at=NOW),
        make("m2", tier="episodic", expires_at=NOW - 1, namespace="c"),
        make("passport", tier="", expires_at=NOW - 1),
        make("later", tier="working", expires_at=NOW + 1),
    )
    assert sorted(ids(store.list_expired(NOW))) == ["m1", "m2"]
    assert len(store.list_expired(NOW, limit=1)) == 1


def test_filter_now_is_the_clock_of_the_caller(store: VaultStore) -> None:
    keep(store, make("m1", expires_at=NOW + HOUR))
    assert ids(store.list("a/b", Filter(now=NOW))) == ["m1"]
    assert ids(store.list("a/b", Filter(now=NOW + HOUR))) == []
    assert ids(store.list("a/b")) == []
    assert ids(store.list("a/b", Filter(include_expired=True))) == ["m1"]


def test_reassign_moves_and_skips_what_is_not_there(store: VaultStore) -> None:
    keep(store, make("m1", embedding=(1.0, 0.0)), make("m2"), make("m3"))
    store.set_superseded("a/b", "m2", "m1")
    assert store.reassign("a/b", ["m1", "gone", "m1"], "c/d") == 1
    assert store.reassign("a/b", ["m1"], "c/d") == 0
    assert ids(store.list("c/d")) == ["m1"]
    assert ids(store.vector_search("c/d", (1.0, 0.0))) == ["m1"]
    assert store.get("a/b", "m2").superseded_by == "m1"
    assert store.list_namespaces() == ["a/b", "c/d"]


def test_retier_sets_the_tier_and_its_end(store: VaultStore) -> None:
    keep(store, make("m1"))
    store.retier("a/b", "m1", "episodic", NOW + HOUR)
    assert (store.get("a/b", "m1").tier, store.get("a/b", "m1").expires_at) == ("episodic", NOW + HOUR)
    store.retier("a/b", "m1", "procedural")
    assert (store.get("a/b", "m1").tier, store.get("a/b", "m1").expires_at) == ("procedural", None)
    with pytest.raises(Usage, match="a tier is"):
        store.retier("a/b", "m1", "eternal")


def test_temporal_as_of_asks_what_was_valid(store: VaultStore) -> None:
    keep(
        store,
        make("old", "the office is in Bonn", valid_from=NOW, valid_to=NOW + HOUR),
        make("new", "the office is in Berlin", valid_from=NOW + HOUR),
        make("open", "the office has a cat"),
        make("short", "the office is closed", tier="working", valid_from=NOW, expires_at=NOW + 5),
    )
    store.set_superseded("a/b", "old", "new", NOW + HOUR)

    def found(moment: int, query: str = "office") -> list[str]:
        return sorted(ids(store.keyword_search("a/b", query, Filter(as_of=moment))))

    assert found(NOW - 1) == ["open"]
    assert found(NOW) == ["old", "open", "short"]
    assert found(NOW + 5) == ["old", "open"]
    assert found(NOW + HOUR) == ["new", "open"]
    assert sorted(ids(store.list("a/b", Filter(as_of=NOW)))) == ["old", "open", "short"]
    assert {each.exact for each in store.keyword_search("a/b", "office", Filter(as_of=NOW))} == {False}


def test_as_of_across_an_edit_finds_the_text_of_then(store: VaultStore, clock: Callable[[], int]) -> None:
    keep(store, make("m1", "the database is Postgres"), make("m2", "the weather"))
    then = clock()
    store.upsert(make("m1", "the database is MySQL"))
    assert ids(store.keyword_search("a/b", "postgres")) == []
    (hit,) = store.keyword_search("a/b", "postgres", Filter(as_of=then))
    assert (hit.memory.content, hit.exact) == ("the database is Postgres", True)
    assert ids(store.keyword_search("a/b", "mysql", Filter(as_of=then))) == []
    (first, _) = store.list("a/b", Filter(as_of=then))
    assert first.content == "the database is Postgres"
    before_all = store.keyword_search("a/b", "postgres", Filter(as_of=NOW))
    assert [(each.memory.id, each.exact) for each in before_all] == [("m1", False)]


@pytest.fixture
def clock() -> Callable[[], int]:
    """Returns a moment after all that was done, and before all that is done next."""

    def tick() -> int:
        # The log has seconds: the next one has to begin.
        begun = time.time_ns() // 10**9
        until(lambda: time.time_ns() // 10**9 > begun)
        return time.time_ns() // 10**6

    return tick


def test_set_confidence_refuses_a_closed_row(store: VaultStore) -> None:
    keep(store, make("m1"), make("m2"))
    store.set_confidence("a/b", "m1", 0.25, NOW)
    assert (store.get("a/b", "m1").confidence, store.get("a/b", "m1").updated_at) == (0.25, NOW)
    store.set_superseded("a/b", "m1", "m2")
    for identifier, confidence in (("m1", 0.5), ("m2", 1.5), ("m2", math.nan), ("m2", -0.1)):
        with pytest.raises(Usage):
            store.set_confidence("a/b", identifier, confidence)
    assert store.get("a/b", "m1").confidence == 0.25


def test_get_by_fingerprint_is_by_tier_and_of_what_counts(store: VaultStore) -> None:
    keep(store, make("m1", "The  Database\nis POSTGRES"), make("m2", "other"))
    same = make("x", "the database is postgres").fingerprint
    assert store.get_by_fingerprint("a/b", "semantic", same).id == "m1"
    with pytest.raises(MemoryNotFound):
        store.get_by_fingerprint("a/b", "working", same)
    store.set_superseded("a/b", "m1", "m2")
    with pytest.raises(MemoryNotFound):
        store.get_by_fingerprint("a/b", "semantic", same)


def test_dedup_keeps_the_best_and_never_crosses_tiers(store: VaultStore) -> None:
    keep(
        store,
        make("a", "same", importance=0.2, updated_at=NOW),
        make("b", "Same", importance=0.9, updated_at=NOW),
        make("c", " same ", importance=0.9, updated_at=NOW + 1),
        make("d", "same", tier="working", expires_at=4 * NOW),
        make("e", "other"),
    )
    assert store.dedup("a/b") == {"a": "c", "b": "c"}
    assert ids(store.list("a/b")) == ["c", "d", "e"]
    assert store.dedup("a/b") == {}


def test_list_sort_and_limit(store: VaultStore) -> None:
    keep(
        store,
        make("m1", created_at=NOW + 2, updated_at=NOW + 10, importance=0.9),
        make("m2", created_at=NOW, updated_at=NOW + 30),
        make("m3", created_at=NOW + 1, updated_at=NOW + 20, importance=0.1),
    )
    assert ids(store.list("a/b")) == ["m1", "m2", "m3"]
    assert ids(store.list("a/b", Filter(sort="created"))) == ["m2", "m3", "m1"]
    assert ids(store.list("a/b", Filter(sort="-updated"))) == ["m2", "m3", "m1"]
    assert ids(store.list("a/b", Filter(sort="-importance"), limit=2)) == ["m1", "m3"]
    assert ids(store.list("a/b", limit=-1)) == ["m1", "m2", "m3"]
    with pytest.raises(Usage, match="sort by"):
        store.list("a/b", Filter(sort="size"))


def test_list_recency_window_is_inclusive(store: VaultStore) -> None:
    keep(store, make("m1", updated_at=NOW), make("m2", updated_at=NOW - 1))
    assert ids(store.list("a/b", Filter(since=NOW))) == ["m1"]


def test_delete_namespace_spares_those_below_and_list_namespaces(store: VaultStore, memory: Memory) -> None:
    keep(store, make("m1"), make("m2"), make("m3", namespace="a/b/c"), make("m4", namespace=""))
    memory.write("rules/style.md", "Be brief.\n")
    assert store.list_namespaces() == ["", "a/b", "a/b/c"]
    assert store.delete_namespace("a/b") == 2
    assert store.delete_namespace("a/b") == 0
    assert store.list_namespaces() == ["", "a/b/c"]


IDS = [
    *(
        "Abc",
        "abc",
        "a/b",
        "..",
        ".",
        ".hidden",
        "a b",
        "é",
        "e\u0301",
        "数据",
        "x" * 400,
        "y" * 400,
        "con",
        "a.md",
    ),
    *(
        "-rf",
        "%41",
        "A",
        "a:b",
        "a\nb",
        "\\",
        "*",
        "'",
        '"',
        "#",
        "[[x]]",
        "true",
        "1",
        "~",
        "a" * 255,
        "🤷‍♀️",
    ),
]


def test_any_id_can_be_stored(store: VaultStore) -> None:
    """Also those that differ in case alone, in their Unicode form alone, or are too long for a name."""
    keep(store, *(make(each, f"content of {number}") for number, each in enumerate(IDS)))
    assert sorted(ids(store.list("a/b"))) == sorted(IDS)
    for number, each in enumerate(IDS):
        assert store.get("a/b", each).content == f"content of {number}"
    store.set_superseded("a/b", "Abc", "abc", NOW)
    assert store.get("a/b", "Abc").superseded_by == "abc"


def test_bad_input_is_refused_and_nothing_is_written(store: VaultStore, memory: Memory) -> None:
    keep(store, make("m1"))
    before = {each.path: memory.show(each.path).data for each in memory.ls()}
    bad: list[Callable[[], object]] = [
        lambda: store.upsert(make("m1", tier="eternal")),
        lambda: store.upsert(make("m1", importance=2)),
        lambda: store.upsert(make("m1", confidence=-0.1)),
        lambda: store.upsert(make("m1", expires_at=-1)),
        lambda: store.upsert(make("m1", created_at=10**18)),
        lambda: store.upsert(make("m1", valid_from=NOW, valid_to=NOW - 1)),
        lambda: store.upsert(make("")),
        lambda: store.upsert(make("a\0b")),
        lambda: store.upsert(make("\ud800")),
        lambda: store.upsert(make("m2", "\ud800")),
        lambda: store.upsert(make("m2", namespace="../x")),
        lambda: store.upsert(make("m2", namespace="/x")),
        lambda: store.upsert(make("m2", namespace=".mdmem")),
        lambda: store.keyword_search("a/b", "x", k=-1),
        lambda: store.list("a/b", Filter(as_of=-5)),
        lambda: store.reinforce("a/b", ["m1"], -1),
        lambda: store.delete_if_expired_before("a/b", "m1", -1),
    ]
    for number, call in enumerate(bad):
        with pytest.raises(MdmemError):
            call()
        assert {each.path: memory.show(each.path).data for each in memory.ls()} == before, number


def test_concurrent_access_in_threads_loses_nothing(store: VaultStore) -> None:
    workers, each = (8, 25) if speed.is_all else (4, 7)
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for number in range(each):
                identifier = f"{worker}-{number}"
                store.upsert(make(identifier))
                store.reinforce("a/b", [identifier], NOW)
                if number % 2:
                    store.delete("a/b", identifier)
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    left = [f"{worker}-{number}" for worker in range(workers) for number in range(0, each, 2)]
    assert sorted(ids(store.list("a/b"))) == sorted(left)


WORK = """
import contextlib, sys
from mdmem.facade.memini import StoredMemory, VaultStore
from mdmem.errors import Conflict
from mdmem.facade.memory import Memory
root, worker = sys.argv[1:]
store = VaultStore(Memory(root))
for number in range(10):
    store.upsert(StoredMemory(id=f"{worker}-{number}", namespace="a/b", content="x"))
    with contextlib.suppress(Conflict):
        store.upsert(StoredMemory(id="contested", namespace=f"of {worker}", content="x"))
"""


def test_concurrent_access_in_processes_loses_nothing_and_one_gets_a_contested_id(memory: Memory) -> None:
    count = 4 if speed.is_all else 2
    command = [sys.executable, "-c", WORK, memory.root]
    workers = [subprocess.Popen([*command, str(each)]) for each in range(count)]
    assert [each.wait(timeout=60) for each in workers] == [0] * count
    store = VaultStore(memory)
    assert sorted(ids(store.list("a/b"))) == sorted(f"{w}-{n}" for w in range(count) for n in range(10))
    assert len([each for each in store.list_namespaces() if each.startswith("of ")]) == 1


def test_metrics_are_told_each_outcome(memory: Memory) -> None:
    told = Told()
    store = VaultStore(memory, metrics=told)
    keep(store, make("m1"), make("m1", "new"), make("m2", "new"), make("m3", tier="working", expires_at=NOW))
    store.dedup("a/b")
    store.list_expired(NOW)
    store.delete_if_expired_before("a/b", "m3", NOW)
    store.delete("a/b", "m1")
    assert told.calls[:4] == [
        ("upsert", "insert", "semantic"),
        ("upsert", "update", "semantic"),
        ("upsert", "insert", "semantic"),
        ("upsert", "insert", "working"),
    ]
    assert ("dedup_tombstoned", 1) in told.calls
    assert ("active_by_tier", "semantic", 1) in told.calls
    assert told.calls[-2:] == [("sweep_expired", "working"), ("delete",)]


def test_ping_and_close(store: VaultStore) -> None:
    keep(store, make("m1"))
    store.ping()
    store.close()
    assert ids(store.keyword_search("a/b", "says")) == ["m1"]


def test_counts_are_those_of_the_namespace_that_asked_and_stand_in_no_file(
    store: VaultStore, memory: Memory
) -> None:
    keep(store, make("m1"))
    before = memory.show("notes/a/b/m1.md").data
    store.reinforce("a/b", ["m1"], NOW)
    memory.uses.add(["notes/a/b/m1.md"], namespace="other", at=NOW + 5)
    assert store.get("a/b", "m1").access_count == 1
    assert memory.uses.of("notes/a/b/m1.md") == (2, NOW + 5)
    assert memory.show("notes/a/b/m1.md").data == before
    store.delete("a/b", "m1")
    assert memory.uses.of("notes/a/b/m1.md") == (0, 0)
