"""A search by meaning: what is ready equals the files, and a namespace is a wall to it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.facade.memory import Memory
from mdmem.index import meaning as meanings, text_index
from mdmem.vault.paths import EVERYTHING
from tests import speed
from tests.index import test_one_order as order
from tests.toy import GROUPS, ToyEmbedder
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mdmem.index.meaning import Meaning
    from mdmem.index.search import Results

pytest.importorskip("numpy")

WORDS = [*" ".join(GROUPS).split(), "red", "green", "blue", "loud", "quiet", "river", "harbour"]


def make_memory(folder: Path, embedder: Any, **scope: Any) -> Memory:
    (folder / ".mdmem").mkdir(parents=True, exist_ok=True)
    (folder / ".mdmem/config.toml").touch()
    return Memory(str(folder), mdmem.Scope(**scope), embedder=embedder)


def meaning_of(memory: Memory) -> Meaning:
    assert memory.meaning
    return memory.meaning


def fill(memory: Memory) -> int:
    memory.sync()
    return meaning_of(memory).fill()


@pytest.fixture(scope="module")
def fill_until_killed() -> Iterator[Callable[[Memory, int, Path], int]]:
    """Fills in a process that is killed when it has made so many vectors, and returns how it ended."""
    arguments = [sys.executable, "-m", "tests.index.meaning_worker"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        told, said = process.stdin, process.stdout

        def run(memory: Memory, after: int, log: Path) -> int:
            told.write(json.dumps([memory.root, after, str(log)]) + "\n")
            told.flush()
            return int(said.readline())

        yield run
        told.close()


def held(memory: Memory) -> dict[str, list[int]]:
    """What is ready: the memories that have a passage, by its key, where that has a vector."""
    meaning = meaning_of(memory)
    memories = meaning.find_memories([EVERYTHING])
    return {key: sorted(memories[key]) for key in meaning.vectors.holds(memories)}


def write(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")


def said(rng: random.Random, paragraphs: int) -> str:
    return "\n\n".join(" ".join(rng.choices(WORDS, k=5)) for _ in range(paragraphs)) + "\n"


def found(results: Results) -> list[tuple[str, int]]:
    return [(hit.path, hit.line) for hit in results.hits]


# -- what is found ----------------------------------------------------------------------------------------


def test_other_words_for_the_same_thing_are_found_and_never_counted(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, ToyEmbedder())
    write(tmp_path, "notes/car.md", "# One\n\nThe automobile stands here.\n\nNothing else.\n")
    write(tmp_path, "notes/vehicle.md", "The car.\n")
    write(tmp_path, "notes/other.md", "A river.\n")
    fill(memory)
    results = memory.search("vehicle", limit=1)
    assert (found(results), results.left_out, results.notes) == ([("notes/vehicle.md", 1)], 0, ())
    results = memory.search("vehicle", explain=True)
    assert found(results) == [("notes/vehicle.md", 1), ("notes/car.md", 1)]
    for hit, parts in zip(results.hits, results.explanations, strict=True):
        assert hit.score == pytest.approx(sum(part.value for part in parts), abs=1e-4)
        assert [part.of for part in parts].count("meaning") == 1
    assert found(memory.search("vehicle", words_only=True)) == [("notes/vehicle.md", 1)]
    assert ("notes/car.md", 1) in found(memory.search("vehicle", each="passage"))


@pytest.mark.parametrize("query", ["tag:odd", '"the car"', "veh*", "-river", "path:notes/", "日本の車です"])
def test_what_has_no_words_that_are_read_is_as_without(tmp_path: Path, query: str) -> None:
    embedder = ToyEmbedder()
    memory = make_memory(tmp_path, embedder)
    write(tmp_path, "notes/car.md", "---\ntags: [odd]\n---\nThe car, an automobile.\n\n日本の車です。\n")
    write(tmp_path, "notes/vehicle.md", "A vehicle.\n\n日本\n")
    fill(memory)
    for each in ("memory", "passage"):
        results = memory.search(query, each=each, explain=True)
        plain = memory.search(query, each=each, explain=True, words_only=True)
        notes = tuple(note for note in results.notes if "does not read" not in note)
        assert replace(results, notes=notes) == plain
        assert (results.notes != notes) is not query.isascii()
    assert embedder.asked == []


def test_filters_and_states_hold_for_what_meaning_finds(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, ToyEmbedder())
    for number in range(80):
        write(tmp_path, f"notes/n{number}.md", f"The automobile {number}.\n")
    write(tmp_path, "notes/right.md", "---\ntype: decision\n---\nA vehicle, a dog, a river.\n")
    write(tmp_path, "notes/old.md", "---\ntype: decision\nexpires: 2020-01-01\n---\nA vehicle.\n")
    fill(memory)
    results = memory.search("car", types=["decision"])
    assert (found(results), results.notes) == ([("notes/right.md", 4)], ())
    assert len(memory.search("car", limit=500).hits) == text_index.BLOCK
    paths = [hit.path for hit in memory.search("car", any_state=True, types=["decision"]).hits]
    assert paths == ["notes/old.md", "notes/right.md"]


def test_one_order_at_every_limit_with_meaning(tmp_path: Path) -> None:
    """What words find is counted alike at every limit; what meaning adds stands in the same order."""
    library = order.make_library(tmp_path / "memories", 0)
    memory = Memory(str(library.root), order.SCOPE, embedder=ToyEmbedder())
    fill(memory)
    added = 0
    for ask in library.asked[:: 20 // speed.examples(4)]:
        if "budget" in ask.narrowed:
            continue
        answers = [memory.search(ask.query, each=ask.each, limit=n, **ask.narrowed) for n in order.LIMITS]
        plain = memory.search(ask.query, each=ask.each, limit=5_000, words_only=True, **ask.narrowed)
        every = memory.search(ask.query, each=ask.each, limit=5_000, **ask.narrowed)
        known = set(found(plain))
        added += len(every.hits) > len(plain.hits)
        for results in answers:
            shown = found(results)
            assert shown == found(every)[: len(shown)], ask
            if ask.each == "memory":
                paths = {path for path, _ in known}
                counted = sum(path in paths for path, _ in shown) + results.left_out
                assert counted == len(plain.hits), ask
    assert added


# -- what is ready ----------------------------------------------------------------------------------------


def test_vectors_are_those_of_a_filling_from_nothing_whatever_happens(
    tmp_path: Path, fill_until_killed: Callable[[Memory, int, Path], int]
) -> None:
    for seed in range(speed.examples(12)):
        rng = random.Random(seed)
        folder = tmp_path / f"v{seed}"
        memory = make_memory(folder, ToyEmbedder())
        for _ in range(14):
            change(rng, folder)
            kind = rng.randrange(6)
            if kind == 0:
                memory.search(" ".join(rng.choices(WORDS, k=2)))
            elif kind == 1:
                fill(memory)
            elif kind == 2:
                memory.sync(rebuild=True)
            elif kind == 3:
                memory = make_memory(folder, ToyEmbedder(rng.choice(["toy", "other"])))
            elif kind == 4:
                fill_until_killed(memory, rng.randrange(1, 9), tmp_path / "log")
            beside = make_memory(folder, ToyEmbedder(meaning_of(memory).embedder.name))
            assert count_ready(memory) == count_ready(beside) == count_by_hand(memory), seed
        memory = make_memory(folder, ToyEmbedder())
        fill(memory)
        ready = held(memory)
        assert fill(memory) == 0
        count = meaning_of(memory).file.rows("SELECT count(*) FROM vectors")
        memory.forget_meaning()
        fresh = make_memory(folder, ToyEmbedder())
        fill(fresh)
        assert held(fresh) == ready, seed
        assert count == [(len(ready),)]


def count_ready(memory: Memory) -> int:
    memory.sync()
    return meaning_of(memory).count_ready([EVERYTHING])


def count_by_hand(memory: Memory) -> int:
    memories = meaning_of(memory).find_memories([EVERYTHING])
    none = len(memories.get("-", ()))  # for those that are empty
    return none + sum(len(memories[key]) for key in held(memory))


def change(rng: random.Random, folder: Path) -> None:
    paths = sorted(folder.glob("**/notes/*.md"))
    place = rng.choice(["", "users/a/", "users/b/", "projects/p/"]) + f"notes/{rng.randrange(6)}.md"
    kind = rng.randrange(4)
    if kind == 0 and paths:
        rng.choice(paths).unlink()
    elif kind == 1 and paths:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        rng.choice(paths).rename(folder / place)
    else:
        write(folder, place, said(rng, rng.randrange(4)))


def test_of_what_a_killed_filling_has_made_nothing_is_made_again(
    tmp_path: Path, fill_until_killed: Callable[[Memory, int, Path], int]
) -> None:
    memory = make_memory(tmp_path / "vault", ToyEmbedder())
    for number in range(24):
        write(tmp_path / "vault", f"notes/{number}.md", f"car {number}\n")
    memory.sync()
    log = tmp_path / "log"
    kills = 0
    while ended := fill_until_killed(memory, 2, log):
        assert ended == -signal.SIGKILL
        kills += 1
    made = log.read_text().splitlines()
    assert kills == 11  # each amid the third passage
    assert len(set(made)) == 24
    assert max(map(made.count, made)) == 2
    assert len(held(memory)) == 24


def test_a_move_inside_of_the_wall_and_a_changed_field_make_no_vectors_and_an_edit_makes_its_own(
    tmp_path: Path,
) -> None:
    embedder = ToyEmbedder()
    memory = make_memory(tmp_path, embedder)
    memory.write("notes/a.md", "---\ntitle: T\n---\nA car.\n\nA dog.\n\nA river.\n")
    memory.write("users/u/notes/b.md", "A car.\n")
    assert fill(memory) == 4
    memory.mv("notes/a.md", "notes/deep/b.md")
    memory.set("notes/deep/b.md", {"tags": ["x"], "title": "Another"})
    assert fill(memory) == 0
    memory.replace("notes/deep/b.md", "A dog.", "A hound.")
    assert fill(memory) == 1
    memory.mv("notes/deep/b.md", "users/u/notes/c.md")
    assert fill(memory) == 2  # the third stands behind that wall already
    assert embedder.given[4:] == ["A hound.", "A hound.", "A river."]


def test_a_search_makes_what_its_first_block_lacks_up_to_24(tmp_path: Path) -> None:
    embedder = ToyEmbedder()
    memory = make_memory(tmp_path, embedder)
    for number in range(30):
        write(tmp_path, f"notes/{number:02}.md", f"car {number}\n")
    results = memory.search("car", limit=1)
    assert len(embedder.given) == 24
    assert results.notes == ("meaning: 6 of 30 passages are not ready: `mdmem index --meaning`",)
    assert memory.search("car", limit=1).notes == ()
    assert len(embedder.given) == 30


def test_the_namespaces_are_filled_in_turn(tmp_path: Path) -> None:
    embedder = ToyEmbedder()
    memory = make_memory(tmp_path, embedder)
    for number in range(3):
        for user in "ab":
            write(tmp_path, f"users/{user}/notes/{number}.md", f"{user} {'car ' * (number + 1)}\n")
    fill(memory)
    assert [text[0] for text in embedder.given] == [*"ababab"]


def test_a_server_fills_in_the_background_and_again_when_somebody_has_asked(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, ToyEmbedder())
    write(tmp_path, "notes/a.md", "A car.\n")
    with closing(memory.keep_current()):
        assert memory.service.remarks == []
        until(lambda: len(held(memory)) == 1)
        write(tmp_path, "notes/b.md", "A dog.\n")
        memory.search("river")
        until(lambda: len(held(memory)) == 2)


def test_a_filling_gives_way_while_it_looks_at_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.index.meaning._AT_ONCE", 1)
    memory, asked = make_memory(tmp_path, ToyEmbedder()), list[int]()
    for number in range(3):
        write(tmp_path, f"notes/{number}.md", f"A car {number}.\n")
    fill(memory)

    def ask() -> bool:
        write(tmp_path, "notes/new.md", f"A dog {len(asked)}.\n")  # each look finds another text
        asked.append(len(memory.search("dog").hits))
        return True

    assert meaning_of(memory).fill(may_go_on=ask) == 0
    assert asked == [4, 4, 4, 4]
    fill(memory)
    assert len(held(memory)) == 4


def test_no_passage_goes_elsewhere_before_a_filling_has_said_how_many_go_where(tmp_path: Path) -> None:
    embedder = ToyEmbedder()
    embedder.is_local = False
    memory = make_memory(tmp_path, embedder)
    write(tmp_path, "notes/a.md", "A car.\n")
    note = "meaning: 1 of 1 passages are not ready: `mdmem index --meaning`"
    assert memory.search("car").notes == (note,)
    said: list[str] = []
    assert meaning_of(memory).fill(begin=said.append, may_go_on=lambda: False) == 0
    assert said == [f"meaning: 1 passages of {memory.root} go to toy, on another machine"]
    assert embedder.given == []
    assert make_memory(tmp_path, embedder).search("car").notes == ()
    assert embedder.given == ["A car."]


class Picky(ToyEmbedder):
    """Takes no text that is bad, until it is told to."""

    refused = "bad"

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if any(self.refused in text for text in texts):
            self.given += texts
            raise ValueError("no such text")
        return super().embed_documents(texts)


def test_what_an_embedder_refuses_is_named_once_and_passed_over(tmp_path: Path) -> None:
    embedder = Picky()
    memory = make_memory(tmp_path, embedder)
    for name in "abc":
        write(tmp_path, f"notes/{name}.md", f"The car {'bad' if name == 'a' else name}.\n")
    memory.sync()
    refused: list[tuple[str, str]] = []
    assert meaning_of(memory).fill(refuse=lambda *said: refused.append(said)) == 2
    assert refused == [("notes/a.md", "toy: ValueError: no such text")]
    count = len(embedder.given)
    notes = ("meaning: 1 of 3 passages are not ready: `mdmem index --meaning`",)
    assert memory.search("car").notes == notes
    assert len(embedder.given) == count
    again = make_memory(tmp_path, embedder)
    assert again.search("car").notes == ("meaning: toy: ValueError: no such text", *notes)
    assert again.search("car").notes == notes
    embedder.refused = "none"
    assert fill(make_memory(tmp_path, embedder)) == 1
    assert memory.search("car").notes == ()


def test_a_server_tries_again_what_was_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanings, "_RETRY_SECONDS", 0.05)
    embedder = Picky()
    memory = make_memory(tmp_path, embedder)
    write(tmp_path, "notes/a.md", "A bad car.\n")
    write(tmp_path, "notes/b.md", "A dog.\n")
    with closing(memory.keep_current()):
        until(lambda: len(held(memory)) == 1)
        embedder.refused = "none"
        until(lambda: len(held(memory)) == 2)


def test_who_has_the_vault_open_in_an_editor_fills_it(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, ToyEmbedder())
    write(tmp_path, "notes/a.md", "A car.\n")
    editing = memory.editing()
    thread = threading.Thread(target=list, args=(editing.changes(),))
    thread.start()
    until(lambda: len(held(memory)) == 1)
    editing.stop()
    thread.join()


def test_what_fails_leaves_words_alone_with_the_reason_and_is_tried_later(tmp_path: Path) -> None:
    embedder = ToyEmbedder()
    memory = make_memory(tmp_path, embedder)
    write(tmp_path, "notes/a.md", "A car.\n")
    plain = memory.search("car", words_only=True)

    def fail(text: str) -> Sequence[float]:  # noqa: ARG001 - as it is called
        embedder.asked.append("failed")
        raise OSError("no model here")

    embedder.embed_query = fail  # type: ignore[method-assign]
    for _ in range(2):
        results = memory.search("car")
        assert results.notes == ("meaning: words alone: toy: OSError: no model here",)
        assert replace(results, notes=()) == plain
    assert embedder.asked == ["failed"]


def test_a_file_of_vectors_that_cannot_be_opened_leaves_words_alone(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, ToyEmbedder())
    write(tmp_path, "notes/a.md", "A car.\n")
    plain = memory.search("car", words_only=True)
    Path(meaning_of(memory).file.path).mkdir()
    for _ in range(2):
        results = memory.search("car")
        assert results.notes[0].startswith("meaning: words alone: ")
        assert "vectors.sqlite" in results.notes[0]
        assert replace(results, notes=()) == plain


def test_a_vault_can_only_turn_it_off_and_then_nothing_is_kept(tmp_path: Path) -> None:
    embedder = ToyEmbedder()
    memory = make_memory(tmp_path, embedder)
    (tmp_path / ".mdmem/config.toml").write_text("[search]\nmeaning = false\n")
    write(tmp_path, "notes/a.md", "A car.\n")
    assert memory.search("car").notes == ()
    assert (memory.meaning, embedder.given, embedder.asked) == (None, [], [])
    assert not [*tmp_path.rglob("vectors.sqlite")]


# -- the wall ---------------------------------------------------------------------------------------------

WALLS: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "user": ({"user": "a"}, "users/a/", "users/b/"),
    "project": ({"project": "p"}, "projects/p/", "projects/q/"),
    "resource": ({"resource_type": "t", "resource_id": "1"}, "resources/t/1/", "resources/t/2/"),
}


def ask_all(memory: Memory, asked: Sequence[str]) -> list[Any]:
    answers: list[Any] = []
    for query in asked:
        answers.append(memory.search(query, limit=3, explain=True))
        answers.append(memory.search(query, each="passage", limit=3, explain=True))
    answers.append(memory.doctor().facts["meaning"])
    return answers


@pytest.mark.parametrize("name", WALLS)
def test_meaning_wall_hides_what_another_namespace_holds_and_fills(tmp_path: Path, name: str) -> None:
    scope, own, other = WALLS[name]
    rng = random.Random(name)
    texts = [said(rng, 3) for _ in range(70)]
    asked = [" ".join(rng.choices(WORDS, k=2)) for _ in range(speed.examples(40))]

    def answer(folder: str, others: Sequence[str], by: Callable[[Memory], object]) -> list[Any]:
        root = tmp_path / folder / "memories"
        for number, text in enumerate(texts[:40]):
            write(root, f"{own}notes/{number}.md", text)
        for number, text in enumerate(others):
            write(root, f"{other}notes/{number}.md", text)
        make_memory(root, ToyEmbedder())
        by(make_memory(root, ToyEmbedder()))
        return ask_all(make_memory(root, ToyEmbedder(), **scope), asked)

    alone = answer("alone", (), fill)
    assert answer("beside", texts, fill) == alone
    assert answer("the same", texts[:40], fill) == alone
    nothing = answer("nothing ready", (), lambda _: None)

    def fill_other(memory: Memory) -> None:
        """Only the other one has its vectors."""
        hidden = list(Path(memory.root, own).rglob("*.md"))
        kept = {path: path.read_bytes() for path in hidden}
        for path in hidden:
            path.unlink()
        fill(memory)
        for path, data in kept.items():
            path.write_bytes(data)

    assert answer("other ready", texts[:40], fill_other) == nothing


def test_meaning_wall_hides_what_another_thread_left_behind(tmp_path: Path) -> None:
    def answer(folder: str, *others: str) -> list[Any]:
        root = tmp_path / folder / "memories"
        memory = make_memory(root, ToyEmbedder())
        memory.working.update("The automobile stands at the harbour.", thread="one")
        for number, text in enumerate(others):
            memory.working.update(text, thread=f"other{number}")
        return ask_all(make_memory(root, ToyEmbedder()).of_thread("one"), ["car", "harbour", "vehicle dog"])

    assert answer("beside", "The automobile stands at the harbour.", "A car.") == answer("alone")


def test_meaning_wall_takes_nothing_of_another_as_ready(tmp_path: Path) -> None:
    """The same passage behind another wall has a vector of its own."""
    embedder = ToyEmbedder()
    memory = make_memory(tmp_path, embedder)
    write(tmp_path, "users/a/notes/x.md", "A car.\n")
    assert fill(memory) == 1
    write(tmp_path, "users/b/notes/y.md", "A car.\n")
    alone = make_memory(tmp_path, embedder, user="b")
    assert alone.search("river").notes[0].startswith("meaning: 1 of 1 passages are not ready")
    assert fill(memory) == 1
