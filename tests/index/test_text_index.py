"""The text index: what is committed is found, by every process, and what is damaged is said to be."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tantivy
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.document.document import parse_text
from mdmem.errors import IndexDamaged, StorageFailed
from mdmem.index.passages import Indexed, indexed
from mdmem.index.text_index import TextIndex, folders_of, key_of, schema, tag_terms, wholes_query
from tests.speed import soak_most

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5


def memory(path: str, text: str) -> Indexed:
    return indexed(parse_text(path, text))


def found(index: TextIndex, word: str, name: str = "whole") -> list[str]:
    hits = index.best(tantivy.Query.term_query(schema(), name, word), 100)
    return sorted(index.paths_at(address for _, address in hits))


@pytest.fixture
def index(tmp_path: Path) -> TextIndex:
    return TextIndex(str(tmp_path / "text"))


def test_a_new_index_is_empty_and_its_number_is_0(index: TextIndex) -> None:
    assert index.opstamp == 0
    assert index.paths() == []
    assert index.count(wholes_query()) == 0


def test_what_is_added_is_found_once_it_is_committed(index: TextIndex) -> None:
    index.add(memory("notes/a.md", "# Alpha\n\nbeta\n\ngamma\n"))
    assert found(index, "beta") == []
    index.commit()
    assert found(index, "beta") == ["notes/a.md"]
    assert index.paths() == ["notes/a.md"]
    assert index.count(wholes_query()) == 1


@given(
    st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=4), min_size=1, max_size=12),
    st.lists(st.sampled_from("abcdefghz"), min_size=1, max_size=60),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_told_which_searches_a_passage_matches(
    tmp_path_factory: pytest.TempPathFactory, texts: list[set[str]], words: list[str]
) -> None:
    index = TextIndex(str(tmp_path_factory.mktemp("text")))
    for number, text in enumerate(texts):
        index.add(memory(f"{number}.md", " ".join(f"{letter}1" for letter in sorted(text))))
    index.commit()
    searches = [tantivy.Query.term_query(schema(), "text", f"{letter}1") for letter in words]
    keys = [key_of(f"{number}.md") for number in range(0, len(texts), 2)]
    found = {place.key: numbers for place, numbers in index.find_matching(searches, keys).items()}
    expected = {
        key_of(f"{number}.md"): tuple(n for n, letter in enumerate(words) if letter in text)
        for number, text in enumerate(texts)
        if number % 2 == 0 and not text.isdisjoint(words)
    }
    assert found == expected


def test_a_number_grows_with_each_commit_and_is_on_disk(index: TextIndex) -> None:
    numbers = [index.opstamp]
    for text in ("one", "two", "three"):
        index.remove("notes/a.md")
        index.add(memory("notes/a.md", text))
        numbers.append(index.commit())
    assert numbers == sorted(set(numbers))
    assert TextIndex(index.folder).opstamp == numbers[-1]


def test_a_memory_is_replaced_with_all_its_passages(index: TextIndex) -> None:
    index.add(memory("notes/a.md", "one\n\ntwo\n\nthree\n"))
    index.add(memory("notes/b.md", "one\n"))
    index.commit()
    index.remove("notes/a.md")
    index.add(memory("notes/a.md", "four\n"))
    index.commit()
    assert found(index, "one") == ["notes/b.md"]
    assert index.searcher().num_docs == 2


def test_what_is_removed_is_gone_and_what_was_never_there_is_no_error(index: TextIndex) -> None:
    index.add(memory("notes/a.md", "one\n"))
    index.commit()
    index.remove("notes/a.md")
    index.remove("notes/b.md")
    index.commit()
    assert index.paths() == []


def test_an_empty_memory_is_kept(index: TextIndex) -> None:
    index.add(memory("notes/a.md", ""))
    index.commit()
    assert index.paths() == ["notes/a.md"]


def test_another_object_sees_a_commit_when_it_looks_again(index: TextIndex) -> None:
    other = TextIndex(index.folder)
    assert other.paths() == []
    index.add(memory("notes/a.md", "one\n"))
    index.commit()
    other.refresh()
    assert other.paths() == ["notes/a.md"]


def test_a_writer_is_given_back_so_that_another_may_write(index: TextIndex) -> None:
    other = TextIndex(index.folder)
    index.add(memory("notes/a.md", "one\n"))
    with pytest.raises(StorageFailed) as caught:
        other.add(memory("notes/b.md", "two\n"))
    assert caught.value.reason == "another process is writing it"
    index.commit()
    other.add(memory("notes/b.md", "two\n"))
    other.commit()
    assert other.paths() == ["notes/a.md", "notes/b.md"]


def test_what_is_not_committed_is_dropped_when_it_is_closed(index: TextIndex) -> None:
    index.add(memory("notes/a.md", "one\n"))
    index.close()
    index.commit()
    assert index.paths() == []


def test_a_cleared_index_is_as_new(index: TextIndex) -> None:
    index.add(memory("notes/a.md", "one\n"))
    index.commit()
    index.clear()
    assert (index.opstamp, index.paths()) == (0, [])
    index.add(memory("notes/b.md", "two\n"))
    index.commit()
    assert index.paths() == ["notes/b.md"]


LATE = """
import contextlib, os, sys
while True:
    with contextlib.suppress(FileNotFoundError):
        os.close(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY))
"""


def test_a_folder_of_a_later_version_is_refused_and_stays_as_it_is(index: TextIndex) -> None:
    version = Path(index.folder) / "mdmem-version"
    later = str(int(version.read_text()) + 1)
    version.write_text(later)
    with pytest.raises(StorageFailed, match="a later version of mdmem"):
        TextIndex(index.folder)
    assert version.read_text() == later


def test_a_lock_that_is_taken_late_does_not_keep_it_from_being_made_anew(tmp_path: Path) -> None:
    """A thread of tantivy's does so now and then, where a machine has a lot to do."""
    folder = tmp_path / "text"
    TextIndex(str(folder))
    with subprocess.Popen([sys.executable, "-c", LATE, str(folder / ".tantivy-meta.lock")]) as late:
        try:
            for _ in range(100):
                made = TextIndex(str(folder))
                made.clear()
                assert made.opstamp == 0
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            late.kill()


def test_many_small_commits_leave_few_segments(index: TextIndex) -> None:
    for number in range(40):
        index.add(memory(f"notes/{number}.md", "one\n"))
        index.commit()
    assert index.searcher().num_segments < 10


def test_a_folder_of_another_version_is_damage(index: TextIndex) -> None:
    (Path(index.folder) / "mdmem-version").write_text("0")
    with pytest.raises(IndexDamaged) as caught:
        TextIndex(index.folder)
    assert caught.value.path == index.folder
    assert "version is 0" in caught.value.reason


def test_a_folder_of_something_else_is_damage(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    with pytest.raises(IndexDamaged):
        TextIndex(str(tmp_path))


def _put(path: Path, data: bytes) -> None:
    """Put another file in the place: the text index maps its own, and of those nothing can go."""
    aside = path.with_name("aside")
    aside.write_bytes(data)
    aside.replace(path)


def _cut(path: Path) -> None:
    _put(path, path.read_bytes()[: path.stat().st_size // 2])


def _fill(path: Path) -> None:
    _put(path, bytes(path.stat().st_size))


@pytest.mark.parametrize("damage", [Path.unlink, _cut, _fill])
@pytest.mark.parametrize(
    "suffix", soak_most(["meta.json", "term", "idx", "pos", "fast", "store", "fieldnorm"], quick=(0, 1))
)
def test_a_damaged_file_is_said_and_never_crashes(
    index: TextIndex, suffix: str, damage: Callable[[Path], None]
) -> None:
    index.add(memory("notes/a.md", "one two\n\nthree\n"))
    index.commit()
    index.close()
    for path in Path(index.folder).glob(f"*{suffix}"):
        damage(path)
    with pytest.raises(IndexDamaged):
        _use(index.folder)


def _use(folder: str) -> None:
    index = TextIndex(folder)
    for address in (
        address for _, address in index.best(tantivy.Query.phrase_query(schema(), "text", ["one", "two"]), 9)
    ):
        index.paths_at([address])
    if index.count(wholes_query()) != 1:
        raise IndexDamaged(path=folder, reason="it lost what it held")


WRITER = """
import sys
from mdmem.index.passages import indexed
from mdmem.index.text_index import TextIndex
from mdmem.document.document import parse_text
index = TextIndex(sys.argv[1])
number = 0
while True:
    for path in ("notes/a.md", "notes/b.md", f"notes/{number % 50}.md"):
        index.remove(path)
        index.add(indexed(parse_text(path, f"one\\n\\ntwo {number}\\n")))
    print(index.commit(more=number % 3 == 0), flush=True)
    number += 1
"""


def test_a_killed_writer_leaves_a_sound_index_and_no_lock(tmp_path: Path) -> None:
    folder, rng = str(tmp_path / "text"), random.Random(1)
    TextIndex(folder)
    for _ in range(ROUNDS):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE, text=True)
        assert writer.stdout
        committed = [int(writer.stdout.readline()) for _ in range(rng.randint(1, 6))]
        writer.send_signal(signal.SIGKILL)
        committed += [
            int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")
        ]
        writer.wait()
        writer.stdout.close()
        index = TextIndex(folder)
        assert index.opstamp >= committed[-1]
        paths = index.paths()
        assert len(paths) == len(set(paths))
        assert index.searcher().num_docs == 2 * len(paths)
        index.remove("notes/a.md")
        index.commit()
        assert "notes/a.md" not in index.paths()


def test_a_copied_index_answers_as_well(index: TextIndex, tmp_path: Path) -> None:
    index.add(memory("notes/a.md", "one\n"))
    index.commit()
    shutil.copytree(index.folder, tmp_path / "copy")
    assert TextIndex(str(tmp_path / "copy")).paths() == ["notes/a.md"]


def test_terms_for_filters_are_every_folder_above_and_the_thing_itself() -> None:
    assert folders_of("users/al/notes/a.md") == ["users", "users/al", "users/al/notes", "users/al/notes/a.md"]
    assert tag_terms("#Area/Sub") == ["area", "area/sub"]
    assert key_of("notes/a.md") != key_of("notes/b.md")
    assert 0 <= key_of("notes/a.md") < 2**63
