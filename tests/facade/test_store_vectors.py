"""The vectors that programs keep: alike in a folder and in a database, for whoever else writes them."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import mdmem
from mdmem.errors import DatabaseFailed, NotProvided, Usage
from mdmem.facade.memini import StoredMemory
from mdmem.facade.memory import Memory, erase_store, init_store
from tests.speed import soak_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.vault.postgres_server import Server

DIMS = 3
KEPT = "from tests.facade.test_store_vectors import keep_on; keep_on()"


class Brought:
    """An embedder whose vectors programs bring."""

    name, dims, constants = "brought", DIMS, (0.0, 0.5)

    def reads(self, _text: str) -> bool:
        return False

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        raise AssertionError(f"nothing is to be embedded: {texts}")

    def embed_query(self, text: str) -> Sequence[float]:
        raise AssertionError(f"nothing is to be embedded: {text}")


def make(identifier: str, vector: tuple[float, ...] = (), content: str = "text") -> StoredMemory:
    return StoredMemory(id=identifier, namespace="a/b", content=content, tier="semantic", embedding=vector)


def near(memory: Memory, vector: Sequence[float], k: int = 9) -> list[str]:
    return [each.memory.id for each in memory.store.vector_search("a/b", vector, k=k)]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)


def keep_on() -> None:
    """Store one memory after the other, and say so: the program that is killed."""
    memory = mdmem.open(sys.argv[1], embedder=Brought())
    for number in range(int(sys.argv[2]), 10_000):
        memory.store.upsert(make(f"m{number % 5}", (1.0, number, 0.0), f"text {number}"))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


@pytest.fixture
def both(place: tuple[str, str]) -> Iterator[tuple[Memory, Memory]]:
    memories = [mdmem.open(each, embedder=Brought()) for each in place]
    yield memories[0], memories[1]
    for memory in memories:
        memory.index.close()
        getattr(memory.vault.store, "close", lambda: None)()


class VectorsConformance:
    def test_what_one_server_keeps_is_found_on_the_other(self, both: tuple[Memory, Memory]) -> None:
        one, other = both
        one.store.upsert(make("x", (1, 0, 0)))
        other.store.upsert(make("y", (1, 1, 0)))
        assert near(one, (1, 0.1, 0)) == near(other, (1, 0.1, 0)) == ["x", "y"]
        one.store.upsert(make("x", (0, 0, 1)))
        assert near(other, (1, 0, 0)) == ["y", "x"]
        one.store.upsert(make("y"))
        assert near(other, (1, 0, 0)) == ["x"]
        other.store.delete("a/b", "x")
        assert near(one, (1, 0, 0)) == []

    def test_the_nearest_are_those_of_all_that_may_be_seen(self, both: tuple[Memory, Memory]) -> None:
        """Thousands that nobody may see are nearer than each of these."""
        one, other = both
        chance = random.Random(1)
        kept = {f"k{n}": tuple(chance.uniform(-9, 9) for _ in range(DIMS)) for n in range(40)}
        vectors = one.store._vectors
        assert vectors is not None
        vectors.put({f"gone {n}": (1.0, n / 1e6, 0.0) for n in range(1_200)})
        for key, vector in kept.items():
            one.store.upsert(make(key, vector))
        asked = (1.0, 0.0, 0.0)
        expected = sorted(kept, key=lambda key: -cosine(asked, kept[key]))
        found = other.store.vector_search("a/b", asked, k=7)
        assert [cosine(asked, kept[each.memory.id]) for each in found] == pytest.approx(
            [cosine(asked, kept[key]) for key in expected[:7]], abs=0.02
        )
        assert [each.score for each in found] == pytest.approx(
            [cosine(asked, kept[each.memory.id]) for each in found], abs=0.02
        )
        assert other.store.vector_search("a/b", asked, k=0) == []
        compared = vectors.compare(asked, ["k1", "k2", "none"])
        assert compared == pytest.approx({key: cosine(asked, kept[key]) for key in ("k1", "k2")}, abs=0.02)

    def test_equal_ones_come_by_id_and_only_ones_own(self, both: tuple[Memory, Memory]) -> None:
        one, other = both
        for key in ("b", "\xe9", "a", "B"):
            one.store.upsert(make(key, (2, 2, 0)))
        ann = Memory(other.vault.store, mdmem.Scope(user="ann"), embedder=Brought())
        ann.store.upsert(make("hers", (1, 1, 0)))
        assert near(other, (1, 1, 0)) == ["B", "a", "b", "\xe9"]
        assert near(ann, (1, 1, 0)) == ["hers"]

    @pytest.mark.parametrize(
        "vector", [(1.0, 2.0), (1.0, 2.0, math.nan), (math.inf, 1.0, 1.0), (0.0, 0.0, 0.0)]
    )
    def test_what_is_no_vector_is_refused(
        self, both: tuple[Memory, Memory], vector: tuple[float, ...]
    ) -> None:
        vectors = both[0].store._vectors
        assert vectors is not None
        with pytest.raises(Usage):
            vectors.put({"good": (1, 2, 3), "bad": vector})
        assert vectors.compare((1, 2, 3), ["good", "bad"]) == {}

    @pytest.mark.parametrize("scale", [1e300, 1e-300])
    def test_the_length_of_a_vector_says_nothing(self, both: tuple[Memory, Memory], scale: float) -> None:
        both[0].store.upsert(make("long", (3 * scale, 4 * scale, 0)))
        (found,) = both[1].store.vector_search("a/b", (6, 8, 0))
        assert found.score == pytest.approx(1, abs=0.001)

    def test_reinforce_counts_on_both_servers(self, both: tuple[Memory, Memory]) -> None:
        for memory, moment in zip(both, (1_700_000_000_000, 1_700_000_000_009), strict=True):
            memory.store.upsert(make("x", (1, 0, 0)))
            memory.store.reinforce("a/b", ["x"], moment)
        for memory in both:
            found = memory.store.get("a/b", "x")
            assert (found.access_count, found.last_accessed_at) == (2, 1_700_000_000_009)

    @pytest.mark.parametrize("seed", soak_most(range(20), quick=(0,)))
    def test_a_kill_between_text_and_vector_leaves_what_is_stored_again(
        self, both: tuple[Memory, Memory], place: tuple[str, str], seed: int
    ) -> None:
        chance, done, memory = random.Random(seed), -1, both[1]
        for _ in range(2):
            command = [sys.executable, "-c", KEPT, place[0], str(done + 1)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
                assert process.stdout
                for line in process.stdout:
                    done = int(line)
                    if chance.random() < 0.2:
                        break
                time.sleep(chance.uniform(0, 0.03))
                os.kill(process.pid, signal.SIGKILL)
                done = max([done, *map(int, process.stdout.read().split())])
            last = range(max(0, done - 4), done + 1)
            for number in last:
                texts = {f"text {number}", *([f"text {done + 1}"] if number == done - 4 else [])}
                assert memory.store.get("a/b", f"m{number % 5}").content in texts
            assert {f"m{number % 5}" for number in last} <= set(near(memory, (1, 0, 0)))
            again = f"m{(done + 1) % 5}"  # amid which it was killed
            memory.store.upsert(make(again, (0, 0, 1)))
            assert near(memory, (0, 0, 1), k=1) == [again]
            memory.store.delete("a/b", again)
            assert again not in near(memory, (0, 0, 1))
            memory.store.upsert(make(again, (1, done + 1, 0), f"text {done + 1}"))
            done += 1


class TestFolder(VectorsConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> tuple[str, str]:
        pytest.importorskip("numpy")
        return (mdmem.init(tmp_path / "memories").root,) * 2


class TestTeam(VectorsConformance):
    @pytest.fixture
    def place(self, server: Server) -> tuple[str, str]:
        url = server.url(uuid4().hex)
        init_store(url, dims=DIMS)
        return url, f"{url}&application_name=other"

    def test_with_a_memory_its_vector_is_erased_and_no_other(
        self, both: tuple[Memory, Memory], place: tuple[str, str]
    ) -> None:
        one, other = both
        ann = Memory(one.vault.store, mdmem.Scope(user="ann"), embedder=Brought())
        for memory in (one, ann):
            memory.store.upsert(make("x", (1, 0, 0)))
        one.store.upsert(make("y/z", (0, 1, 0)))
        one.mv("notes/a/b/x.md", "notes/a/b/renamed.md")
        vectors = other.store._vectors, ann.store._vectors
        assert vectors[0]
        assert vectors[1]
        erase_store(place[0], "notes/a/b/renamed.md")
        assert vectors[0].compare((1, 1, 0), ["x", "y/z"]).keys() == {"y/z"}
        erase_store(place[0], "notes/a/b")
        assert vectors[0].compare((1, 1, 0), ["x", "y/z"]) == {}
        assert vectors[1].compare((1, 1, 0), ["x"]).keys() == {"x"}


def test_a_vector_that_fails_does_not_say_that_nothing_was_changed(server: Server) -> None:
    url, key = server.url(uuid4().hex), random.Random(1).randbytes(4_000).hex()
    init_store(url, dims=DIMS)
    memory = mdmem.open(url)
    with pytest.raises(DatabaseFailed, match="the text was changed"):
        memory.store.upsert(make(key, (1, 0, 0)))
    assert memory.store.get("a/b", key).content == "text"
    memory.index.close()
    memory.vault.store.close()  # type: ignore[attr-defined]


def test_without_a_table_vectors_are_named_as_missing(server: Server) -> None:
    url = server.url(uuid4().hex)
    server.ask("DROP TABLE IF EXISTS mdmem.embedding")
    init_store(url)
    memory = mdmem.open(url)
    with pytest.raises(NotProvided, match="no table of vectors"):
        memory.store.upsert(make("x", (1, 0, 0)))
    memory.store.upsert(make("x"))
    memory.store.delete("a/b", "x")
    assert init_store(url, dims=DIMS) is True
    memory.store.upsert(make("x", (1, 0, 0)))
    assert near(memory, (1, 0, 0)) == ["x"]
    with pytest.raises(Usage, match="have 3"):
        init_store(server.url(uuid4().hex), dims=4)
    memory.index.close()
    memory.vault.store.close()  # type: ignore[attr-defined]
