"""Vectors are kept, compared and forgotten as a dictionary would, whoever else writes the file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.errors import Usage
from mdmem.index.vectors import FolderVectors, VectorFile
from tests import speed

if TYPE_CHECKING:
    from collections.abc import Sequence

pytest.importorskip("numpy")

DIMS = 3
KEYS = st.sampled_from(["a", "b", "c", "d", "é", " "])
VECTORS = st.tuples(*[st.integers(-9, 9)] * DIMS).filter(any)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 1), st.dictionaries(KEYS, VECTORS, max_size=3)),
        st.tuples(st.just("remove"), st.integers(0, 1), st.lists(KEYS, max_size=2)),
    ),
    max_size=8,
)


def open_vectors(folder: Path, model: str = "m", owner: str = "o") -> FolderVectors:
    return FolderVectors(VectorFile(str(folder / "vectors.sqlite"), []), model, lambda: DIMS, owner)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)


@settings(max_examples=speed.examples(400), deadline=None)
@given(steps=STEPS, asked=VECTORS, among=st.sets(KEYS), k=st.integers(0, 4))
def test_two_who_write_one_file_see_what_a_dictionary_holds(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, object]],
    asked: tuple[int, ...],
    among: set[str],
    k: int,
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    both = [open_vectors(folder), open_vectors(folder)]
    others = open_vectors(folder, "other"), open_vectors(folder, owner="other")
    held: dict[str, tuple[int, ...]] = {}
    for what, which, value in steps:
        if what == "put":
            both[which].put(value)  # type: ignore[arg-type]
            held.update(value)  # type: ignore[call-overload]
        else:
            both[which].remove(value)  # type: ignore[arg-type]
            for key in value:  # type: ignore[attr-defined]
                held.pop(key, None)
        for vectors in both:
            found = vectors.compare(asked, sorted(among))
            assert found.keys() == among & held.keys()
            assert all(abs(found[key] - cosine(asked, held[key])) < 0.02 for key in found)
    for vectors in both:
        near = vectors.nearest(asked, k, among)
        every = vectors.compare(asked, sorted(among))
        assert near == sorted(every.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
        assert vectors.holds(among) == among & held.keys()
    assert not any(each.holds(held) for each in others)


def test_a_cosine_is_the_same_whatever_else_is_kept(tmp_path: Path) -> None:
    alone, beside = (tmp_path / name for name in ("alone", "beside"))
    alone.mkdir()
    beside.mkdir()
    kept = {str(n): (n % 7 - 3.0, n % 5 + 0.1, 1 / (n + 1)) for n in range(50)}
    open_vectors(alone).put(kept)
    more = open_vectors(beside)
    more.put({f"other {n}": (1.0, n / 7, -0.3) for n in range(20_000)})
    more.put(kept)
    asked = (0.3, -0.2, 0.77)
    assert open_vectors(alone).compare(asked, [*kept]) == more.compare(asked, [*kept])
    assert open_vectors(alone).nearest(asked, 9, kept) == more.nearest(asked, 9, kept)


@pytest.mark.parametrize(
    "vector", [(1.0, 2.0), (1.0, 2.0, math.nan), (math.inf, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 2.0, 3.0, 4.0)]
)
def test_what_is_no_vector_is_refused_and_nothing_is_kept(tmp_path: Path, vector: tuple[float, ...]) -> None:
    vectors = open_vectors(tmp_path)
    with pytest.raises(Usage, match="no vector of m"):
        vectors.put({"good": (1.0, 2.0, 3.0), "bad": vector})
    assert not vectors.holds(["good", "bad"])
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("written", [b"no database", b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_damaged_file_is_set_aside_and_made_again(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "vectors.sqlite").write_bytes(written)
    notes: list[str] = []
    vectors = FolderVectors(VectorFile(str(tmp_path / "vectors.sqlite"), notes), "m", lambda: DIMS)
    assert vectors.compare((1, 0, 0), ["a"]) == {}
    vectors.put({"a": (1, 0, 0)})
    assert vectors.compare((1, 0, 0), ["a"]) == {"a": pytest.approx(1)}
    assert (tmp_path / "vectors.sqlite.damaged").read_bytes() == written
    (note,) = notes
    assert "set aside" in note


def test_to_ask_makes_no_file_and_a_deleted_one_is_missed(tmp_path: Path) -> None:
    vectors = open_vectors(tmp_path)
    assert vectors.nearest((1, 0, 0), 3, ["a"]) == []
    vectors.remove(["a"])
    assert [*tmp_path.iterdir()] == []
    vectors.put({"a": (1, 0, 0)})
    VectorFile(str(tmp_path / "vectors.sqlite"), []).delete()
    assert [*tmp_path.iterdir()] == []
    assert not vectors.holds(["a"])
    vectors.put({"b": (1, 0, 0)})
    assert vectors.holds(["a", "b"]) == {"b"}
