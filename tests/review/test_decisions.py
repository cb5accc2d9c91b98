"""What differs from the last commit is decided row by row; git's blobs, and who was seen to write, judge."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.errors import RevertRefused, Usage
from mdmem.serve.adapters.hooks import answer
from tests.git.conftest import VaultTree, set_up
from tests.review.drafts import Draft
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mdmem.review.decisions import Reviewed, ReviewedRow

OFTEN = pytest.mark.parametrize(
    "count", [3, pytest.param(examples(60), marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
BATCH = 10  # memories in one commit
MOVED = {"fact-moved", "fact-reordered"}


class Desk(VaultTree):
    """A vault in a repository, of which somebody reviews what differs from the last commit.

    Attributes:
        split: the new memories that are split.
    """

    split: Sequence[str] = ()

    def read(self, path: str) -> bytes:
        return (self.root / "memories" / path).read_bytes()

    def put(self, path: str, data: bytes | None) -> None:
        """Edit a memory directly; without data remove it."""
        file = self.root / "memories" / path
        if data is None:
            file.unlink()
        else:
            self.write(f"memories/{path}", data)

    def committed(self, path: str, text: str) -> None:
        self.note(path, text)
        self.commit()

    def find(self, path: str) -> Reviewed | None:
        found = [each for each in self.memory.git.review(split=self.split) if each.path == path]
        return found[0] if found else None

    def rows(self, path: str) -> tuple[ReviewedRow, ...]:
        found = self.find(path)
        return found.rows if found else ()

    def said(self, path: str) -> list[tuple[str, str]]:
        return [(row.change, str(row.after or row.before)) for row in self.rows(path)]

    def reject(self, path: str, *rows: ReviewedRow) -> str:
        return self.memory.git.reject(path, [row.row for row in rows]).id

    def names(self, path: str) -> list[str]:
        """The rows that are left, by a review of the one memory."""
        try:
            found = self.memory.git.review([path], split=self.split)
            return [row.row for each in found for row in each.rows]
        except mdmem.errors.MemoryNotFound:
            return []

    def list_files(self, *paths: str) -> dict[str, bytes]:
        return {path: self.read(path) for path in paths if (self.root / "memories" / path).exists()}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    set_up(monkeypatch)
    return Desk(tmp_path / "desk")


# ------------------------------------------------------------------------------------------- any order


class Refusals:
    """How often a row was refused alone, and how often some could be taken back in no way."""

    def __init__(self) -> None:
        self.rows = self.alone = self.stuck = 0


def reject_in_turn(desk: Desk, paths: Sequence[str], names: Sequence[str], seen: Refusals) -> Iterator[str]:
    """Reject rows one by one, those that are refused again later; yield each change.

    `paths` are the name of the memory, and the one that it had: a rejected rename gives that back.
    """
    left, tried = list(names), list[str]()
    while left and left != tried:
        left, tried = [], left
        for name in tried:
            path = next((path for path in paths if name in desk.names(path)), "")
            if not path:
                continue
            try:
                yield desk.memory.git.reject(path, [name]).id
            except RevertRefused:
                seen.alone += 1
                left.append(name)
    seen.stuck += bool(left)


@OFTEN
def test_any_rows_in_any_order_give_the_same_and_all_give_what_git_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    set_up(monkeypatch)
    seen = Refusals()
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        check_batch(Desk(tmp_path / str(first)), numbers, seen)
    assert seen.alone <= 1 + seen.rows / 500, vars(seen)
    assert seen.stuck <= 1 + seen.rows / 1000, vars(seen)


@pytest.mark.parametrize(
    "count", [2, pytest.param(examples(16), marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
def test_any_parts_of_a_new_memory_in_any_order_give_the_same_and_all_give_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    set_up(monkeypatch)
    seen = Refusals()
    for first in range(0, count, BATCH):
        desk = Desk(tmp_path / str(first))
        desk.committed("notes/a.md", "# A\n")
        numbers = range(first, min(first + BATCH, count))
        drafts = {f"notes/n{number}.md": Draft(random.Random(number)) for number in numbers}
        for path, draft in drafts.items():
            desk.put(path, draft.data)
        desk.split = [*drafts]
        reviewed = desk.memory.git.review(split=desk.split)
        assert [each.path for each in reviewed] == sorted(drafts)
        for each in reviewed:
            assert len(each.rows) > 1
            check_memory(desk, each, {}, seen)
        now = desk.list_files(*drafts)
        desk.memory.git.commit(accepted={each.path: [row.row for row in each.rows] for each in reviewed})
        assert desk.list_files(*drafts) == now
        assert desk.memory.git.review() == []
    assert seen.alone <= 1 + seen.rows / 500, vars(seen)
    assert seen.stuck <= 1 + seen.rows / 1000, vars(seen)


def check_batch(desk: Desk, numbers: Sequence[int], seen: Refusals) -> None:
    drafts = {f"notes/n{number}.md": Draft(random.Random(number)) for number in numbers}
    for path, draft in drafts.items():
        desk.put(path, draft.data)
    desk.commit()
    base = desk.list_files(*drafts)
    for path, draft in drafts.items():
        chance = random.Random(path)
        for _ in range(chance.randint(1, 6)):
            draft.edit()
        desk.put(path, draft.data)
        if chance.random() < 0.15:  # else they stay where they are
            desk.memory.mv(path, path.replace("notes/", "moved/"))
        elif chance.random() < 0.1:
            desk.put(path, None)
        assert desk.git("show", f"HEAD:memories/{path}").encode().strip() == base[path].strip()
    for each in desk.memory.git.review():
        check_memory(desk, each, base, seen)
    reviewed = desk.memory.git.review()
    paths = [path for each in reviewed for path in (each.path, each.old_path or each.path)]
    now = desk.list_files(*paths)
    accepted = {each.path: [row.row for row in each.rows] for each in reviewed}
    done = desk.memory.git.commit(accepted=accepted)
    assert {file.path for file in done.files} == {*paths}
    assert desk.list_files(*paths) == now
    assert desk.memory.git.review() == []


def check_memory(desk: Desk, found: Reviewed, base: dict[str, bytes], seen: Refusals) -> None:
    paths = [found.path, *filter(None, [found.old_path])]
    base = {path: data for path, data in base.items() if path in paths and found.kind != "new"}
    now, chance = desk.list_files(*paths), random.Random(found.path)
    names = [row.row for row in found.rows]
    seen.rows += len(names)
    assert len(set(names)) == len(names)
    some = chance.sample(names, chance.randint(1, len(names)))
    changes = list(reject_in_turn(desk, paths, some, seen))
    one_by_one = desk.list_files(*paths)
    rest = [row for each in desk.memory.git.review() if each.path in paths for row in each.rows]
    for change in reversed(changes):
        desk.memory.undo(change)
    assert desk.list_files(*paths) == now
    try:
        whole = desk.memory.git.reject(found.path, some).id
    except RevertRefused:
        assert one_by_one != base
        seen.stuck += 1
    else:
        at_once = desk.list_files(*paths)
        # What comes back beside facts that moved may stand before or behind them, one that took the place of
        # another elsewhere leaves a move to be decided, and of fields that come and go each may stand first.
        is_moved = any(row.change in MOVED or row.key for row in (*found.rows, *rest))
        if is_moved:
            at_once, one_by_one = sort_lines(at_once), sort_lines(one_by_one)
        assert at_once == one_by_one
        desk.memory.undo(whole)
    assert desk.list_files(*paths) == now
    changes = []
    while left := [name for path in dict.fromkeys(paths) for name in desk.names(path)]:
        chance.shuffle(left)
        more = list(reject_in_turn(desk, paths, left[:1], seen))
        for name in left[1:] if not more else ():
            more = more or list(reject_in_turn(desk, paths, [name], seen))
        changes += more or [desk.memory.git.reject(found.path, left).id]
    assert desk.list_files(*paths) == base
    for change in reversed(changes):
        desk.memory.undo(change)
    assert desk.list_files(*paths) == now


def sort_lines(files: dict[str, bytes]) -> dict[str, bytes]:
    return {
        path: b"\n".join(sorted(filter(None, data.replace(b"\r\n", b"\n").split(b"\n"))))
        for path, data in files.items()
    }


# --------------------------------------------------------------------------------------- what is a row


def test_a_memory_that_is_new_or_gone_is_one_row(desk: Desk) -> None:
    desk.committed("notes/a.md", "# A\n\n- one\n")
    desk.put("notes/a.md", None)
    desk.note("notes/b.md", "# B\n\n- two is here\n")
    assert desk.said("notes/a.md") == [("memory-removed", "# A\n\n- one\n")]
    assert desk.said("notes/b.md") == [("memory-added", "# B\n\n- two is here\n")]
    kinds = {each.path: each.kind for each in desk.memory.git.review()}
    assert kinds == {"notes/a.md": "removed", "notes/b.md": "new"}
    removed, added = desk.rows("notes/a.md"), desk.rows("notes/b.md")
    desk.reject("notes/a.md", *removed)
    gone = desk.reject("notes/b.md", *added)
    assert desk.read("notes/a.md") == b"# A\n\n- one\n"
    assert desk.memory.git.review() == []
    desk.memory.undo(gone)
    desk.note("notes/b.md", "# B\n\n- other words\n")
    with pytest.raises(RevertRefused, match="are other ones by now"):
        desk.reject("notes/b.md", *added)


def test_a_new_memory_can_be_split_into_its_facts_and_fields(desk: Desk) -> None:
    desk.committed("notes/a.md", "# A\n")
    text = "---\ntitle: B\n---\n# B\n\n- two is here\n- three is wrong\n"
    desk.open("claude").write("notes/b.md", text)
    whole = desk.rows("notes/b.md")
    desk.split = ["notes/b.md"]
    parts = desk.rows("notes/b.md")
    assert {row.by for row in parts} == {"claude"}
    said = [("field-added", "B"), ("fact-added", "# B"), ("fact-added", "two is here")]
    assert desk.said("notes/b.md") == [*said, ("fact-added", "three is wrong")]
    desk.reject("notes/b.md", parts[-1])
    assert desk.read("notes/b.md").decode() == text.replace("- three is wrong\n", "")
    left = desk.rows("notes/b.md")
    assert [row.row for row in left] == [row.row for row in parts[:-1]]  # a decision outlives that of another
    with pytest.raises(RevertRefused, match="are other ones by now"):
        desk.reject("notes/b.md", *whole)
    done = desk.memory.git.commit(accepted={"notes/b.md": [row.row for row in left[:-1]]})
    assert (done.commit, done.left_out) == (None, ("notes/b.md: not accepted: 1 of 3 changes",))
    gone = desk.reject("notes/b.md", left[1], left[0])  # with its heading goes what stands under it
    assert desk.list_files("notes/b.md") == {}
    desk.memory.undo(gone)
    desk.memory.git.commit(accepted={"notes/b.md": [row.row for row in left]})
    assert desk.memory.git.review() == []


def test_a_new_json_memory_is_split_into_its_keys(desk: Desk) -> None:
    desk.committed("notes/a.md", "# A\n")
    desk.note("notes/b.json", '{"one": 1, "two": {"three": 3}, "four": 4}\n')
    desk.split = ["notes/b.json"]
    one, two, four = desk.rows("notes/b.json")
    assert (one.key, two.key, four.key) == ("one", "two", "four")
    desk.reject("notes/b.json", two)
    assert desk.read("notes/b.json") == b'{"one": 1, "four": 4}\n'
    desk.reject("notes/b.json", one)
    desk.reject("notes/b.json", four)
    assert desk.list_files("notes/b.json") == {}


def test_a_renamed_memory_moves_back_with_its_links(desk: Desk) -> None:
    desk.note("notes/b.md", "See [a](a.md).\n")
    base = b"# A\n\n- one is first\n- two is second\n\nSee [b](b.md).\n"
    desk.committed("notes/a.md", base.decode())
    desk.memory.mv("notes/a.md", "old/c.md")
    desk.memory.replace("old/c.md", "one is", "one was")
    found = desk.find("old/c.md")
    assert found
    assert (found.kind, found.old_path) == ("renamed", "notes/a.md")
    rename, *rows = found.rows
    assert [row.change for row in rows] == ["fact-reworded", "links-repointed"]
    moved = desk.reject("old/c.md", rename)
    assert desk.read("notes/a.md") == base.replace(b"one is", b"one was")
    assert [each.path for each in desk.memory.git.review()] == ["notes/a.md"]
    assert desk.rows("notes/a.md")[0].row == rows[0].row  # a decision survives a rename
    desk.memory.undo(moved)
    desk.reject("old/c.md", *found.rows)
    assert desk.read("notes/a.md") == base
    assert desk.memory.git.review() == []


def pictures(desk: Desk) -> dict[str, bytes]:
    memories = desk.root / "memories"
    return {str(file.relative_to(memories)): file.read_bytes() for file in memories.rglob("*.png")}


@cases("link", ["![p](pic.png)", "![[pic.png]]", "![[notes/trip/pic.png]]"])
@pytest.mark.parametrize("tracked", [True, False])
def test_an_attachment_goes_back_with_the_memory_that_was_moved_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str, tracked: bool
) -> None:
    set_up(monkeypatch)
    desk = Desk(tmp_path / "".join(filter(str.isalnum, link)))
    desk.write("memories/notes/trip/pic.png", b"p\0")
    desk.write("memories/notes/trip/other.png", b"o\0")
    if tracked:
        desk.git("add", "memories/notes/trip")
    desk.note("notes/b.md", "![[notes/trip/pic.png]]\n")
    desk.committed("notes/trip/a.md", f"one\n\n{link}\n")
    desk.memory.mv("notes/trip", "notes/tour")
    rows = desk.rows("notes/tour/a.md")
    assert desk.memory.plan.git.reject("notes/tour/a.md", [rows[0].row]).left_out == (
        "notes/tour/other.png stays, which was notes/trip/other.png: `mdmem mv` moves it back",
    )
    done = desk.reject("notes/tour/a.md", rows[0])
    assert pictures(desk) == {"notes/trip/pic.png": b"p\0", "notes/tour/other.png": b"o\0"}
    assert desk.read("notes/trip/a.md") == f"one\n\n{link}\n".encode()
    assert desk.memory.git.review() == []
    assert desk.memory.check() == []
    desk.memory.undo(done)
    desk.reject("notes/tour/a.md", *rows)
    assert (len(pictures(desk)), desk.memory.git.review()) == (2, [])
    assert desk.memory.check() == []


def test_an_attachment_goes_back_with_the_link_to_it(desk: Desk) -> None:
    base = b"one\n\n![p](att/pic.png) ![q](att/q.png)\n"
    for name in ("pic", "q"):
        desk.write(f"memories/notes/att/{name}.png", name.encode())
    desk.git("add", "memories/notes/att")
    desk.note("notes/b.md", "![[notes/att/pic.png]] ![[notes/att/q.png]]\n")
    desk.committed("notes/a.md", base.decode())
    desk.memory.mv("notes/att", "notes/media")
    desk.write("memories/notes/att/q.png", b"another")
    (row,) = desk.rows("notes/a.md")
    done = desk.reject("notes/a.md", row)
    assert desk.read("notes/a.md") == base
    assert desk.read("notes/b.md") == b"![[notes/att/pic.png]] ![[notes/media/q.png]]\n"
    assert sorted(pictures(desk)) == ["notes/att/pic.png", "notes/att/q.png", "notes/media/q.png"]
    desk.memory.undo(done)
    assert sorted(pictures(desk)) == ["notes/att/q.png", "notes/media/pic.png", "notes/media/q.png"]


def test_rows_of_a_renamed_memory_go_beside_its_name_and_with_it(desk: Desk) -> None:
    base = b"# A\n\n- one is first\n- two\n- three is third\n- four\n- five\n\nSee [b](b.md).\n"
    desk.note("notes/b.md", "B\n")
    desk.committed("notes/a.md", base.decode())
    desk.memory.mv("notes/a.md", "old/c.md")
    desk.memory.replace("old/c.md", "one is", "one was")
    desk.memory.replace("old/c.md", "three is", "three was")
    rename, one, three, _link = desk.rows("old/c.md")
    desk.reject("old/c.md", one)
    assert b"one is" in desk.read("old/c.md")
    desk.reject("old/c.md", rename, three)
    assert desk.read("notes/a.md") == base


def test_what_is_written_beside_a_row_leaves_it_and_other_words_do_not(desk: Desk) -> None:
    desk.committed("notes/a.md", "# A\n\n- one is first\n- two is second\n")
    desk.note("notes/a.md", "# A\n\n- one was first\n- two is second\n")
    (row,) = desk.rows("notes/a.md")
    desk.note("notes/a.md", "# A of all\n\n- zero\n- one was first\n- two is second\n")
    assert row.row in desk.names("notes/a.md")
    desk.note("notes/a.md", "# A\n\n- one has been first\n- two is second\n")
    with pytest.raises(RevertRefused, match="1 of its changes are gone"):
        desk.reject("notes/a.md", row)
    desk.note("notes/a.md", "# A\n\n- one was first\n- two is second\n")
    desk.commit()
    with pytest.raises(RevertRefused):
        desk.reject("notes/a.md", row)


def test_equal_rows_are_none_of_them_where_their_number_has_changed(desk: Desk) -> None:
    desk.committed("notes/a.md", "# A\n\n- one\n")
    desk.note("notes/a.md", "# A\n\n- one\n- same\n- same\n")
    first, second = desk.rows("notes/a.md")
    assert first.row != second.row
    desk.note("notes/a.md", "# A\n\n- one\n- same\n")
    assert not {first.row, second.row} & {*desk.names("notes/a.md")}


def test_with_a_heading_an_item_or_a_table_goes_what_was_added_in_it(desk: Desk) -> None:
    base = "# A\n\n- one\n"
    desk.committed("notes/a.md", base)
    table = "| k | v |\n| --- | --- |\n| a | b |\n"
    for added in ("\n## B\n\n- two\n  - three\n\nText.\n", "- two\n  - three\n", f"\n{table}"):
        desk.note("notes/a.md", base + added)
        first, *others = desk.rows("notes/a.md")
        assert others
        desk.reject("notes/a.md", first)
        assert desk.read("notes/a.md").decode() == base


def test_a_heading_stays_with_all_that_was_added_in_it_where_it_has_other_facts(desk: Desk) -> None:
    base = "# A\n\n- one is first\n- two is second\n\n# C\n\n- three is third\n"
    desk.committed("notes/a.md", base)
    moved = base.replace("- one is first\n", "") + "\n## B\n\n- new is here\n- one is first\n"
    desk.note("notes/a.md", moved)
    rows = {str(row.after): row for row in desk.rows("notes/a.md")}
    with pytest.raises(RevertRefused, match="'## B' stays, as other facts are under it now"):
        desk.reject("notes/a.md", rows["## B"])
    desk.reject("notes/a.md", rows["## B"], rows["one is first"])
    assert desk.read("notes/a.md").decode() == base


def test_what_comes_back_behind_an_item_leaves_it_what_was_added_in_it(desk: Desk) -> None:
    base = "# A\n\n- one is first\n- two is second\n- three is third\n"
    desk.committed("notes/a.md", base)
    desk.note("notes/a.md", "# A\n\n- one is first\n  - added in one\n- three is third\n")
    (removed,) = (row for row in desk.rows("notes/a.md") if row.change == "fact-removed")
    desk.reject("notes/a.md", removed)
    now = "# A\n\n- one is first\n  - added in one\n- two is second\n- three is third\n"
    assert desk.read("notes/a.md").decode() == now
    desk.reject("notes/a.md", *desk.rows("notes/a.md"))
    assert desk.read("notes/a.md").decode() == base


def test_a_row_in_an_item_outlives_that_the_item_is_moved_back(desk: Desk) -> None:
    base = "# A\n\n- one is first\n- two is second\n\n# B\n\n- three is third\n"
    desk.committed("notes/a.md", base)
    moved = "# A\n\n- two is second\n\n# B\n\n- three is third\n- one is first\n  - added in one\n"
    desk.note("notes/a.md", moved)
    rows = {row.change: row for row in desk.rows("notes/a.md")}
    assert rows.keys() == {"fact-moved", "fact-added"}
    desk.reject("notes/a.md", rows["fact-moved"])
    assert desk.names("notes/a.md") == [rows["fact-added"].row]
    desk.reject("notes/a.md", rows["fact-added"])
    assert desk.read("notes/a.md").decode() == base


def test_proposals_are_left_out_and_a_conflict_is_only_told(desk: Desk) -> None:
    desk.committed("notes/a.md", "- one\n")
    desk.memory.inbox.propose("append", {"path": "notes/a.md", "text": "- two"})
    assert desk.memory.git.review() == []
    desk.git("checkout", "--quiet", "-b", "other")
    desk.committed("notes/a.md", "- one is first\n")
    desk.git("checkout", "--quiet", "main")
    desk.committed("notes/a.md", "- one was first\n")
    with pytest.raises(Exception, match="non-zero"):
        desk.git("merge", "other")
    found = desk.find("notes/a.md")
    assert found
    assert (found.kind, {row.change for row in found.rows}) == ("conflict", {"conflict"})
    with pytest.raises(RevertRefused, match="amid a merge"):
        desk.reject("notes/a.md", *found.rows)


def test_what_cannot_be_read_is_a_row_as_a_whole(desk: Desk) -> None:
    desk.committed("notes/a.md", "- one\n")
    desk.put("notes/a.md", b"\xff\xfe")
    desk.put("notes/b.md", b"\xff\xfe")
    assert [row.change for row in desk.rows("notes/a.md")] == ["not-compared"]
    desk.reject("notes/a.md", *desk.rows("notes/a.md"))
    desk.reject("notes/b.md", *desk.rows("notes/b.md"))
    assert desk.read("notes/a.md") == b"- one\n"
    assert desk.memory.git.review() == []
    desk.note("notes/a.md", "---\ntitle: [\n---\n- one\n- two\n")
    fact, source = desk.rows("notes/a.md")
    assert (source.kind, fact.kind) == ("source", "item")
    desk.reject("notes/a.md", source)
    assert desk.read("notes/a.md") == b"- one\n- two\n"


def test_json_is_decided_by_its_keys(desk: Desk) -> None:
    base = b'{"a": {"b": 1, "c": [1, 2]}, "d": "x"}\n'
    desk.committed("notes/a.json", base.decode())
    desk.put("notes/a.json", b'{"a": {"b": 2, "c": [1, 3]}, "e": "y"}\n')
    rows = {row.key: row for row in desk.rows("notes/a.json")}
    assert rows.keys() == {"a.b", "a.c", "d", "e"}
    desk.reject("notes/a.json", rows["a.b"], rows["d"])
    assert b'"b": 1' in desk.read("notes/a.json")
    assert b'"d": "x"' in desk.read("notes/a.json")
    desk.reject("notes/a.json", rows["a.c"], rows["e"])
    assert desk.read("notes/a.json") == base


def test_a_row_that_is_unknown_or_none_is_refused(desk: Desk) -> None:
    desk.committed("notes/a.md", "- one\n")
    for rows in ([], ["0" * 16]):
        with pytest.raises(RevertRefused):
            desk.memory.git.reject("notes/a.md", rows)
    desk.note("notes/a.md", "- one\n- two\n")
    for rows in ([], ["0" * 16], [desk.rows("notes/a.md")[0].row, "0" * 16]):
        with pytest.raises(RevertRefused, match=r"1 of its changes|no change"):
            desk.memory.git.reject("notes/a.md", rows)
    plan = desk.memory.plan.git.reject("notes/a.md", [desk.rows("notes/a.md")[0].row])
    assert "-- two" in plan.diff()
    assert desk.read("notes/a.md") == b"- one\n- two\n"


# --------------------------------------------------------------------------------------------- commit


def test_commit_accepted_takes_the_memories_of_which_every_row_is_accepted(desk: Desk) -> None:
    for name in "abcd":
        desk.note(f"notes/{name}.md", f"- {name} is here\n")
    desk.write("src/x.py", "1\n")
    desk.commit()
    for name in "abcd":
        desk.note(f"notes/{name}.md", f"- {name} is here\n- more of {name}\n")
    desk.write("src/x.py", "2\n")
    desk.git("add", "src/x.py", "memories/notes/c.md")
    desk.note("notes/c.md", "- c is here\n- even more of c\n")  # half of it is staged
    accepted = {each.path: [row.row for row in each.rows] for each in desk.memory.git.review()}
    del accepted["notes/d.md"]
    desk.note("notes/b.md", "- b is here\n- more of b\n- an agent in between\n")
    done = desk.memory.git.commit("m", accepted={**accepted, "notes/none.md": ["0"]})
    assert [file.path for file in done.files] == ["notes/a.md"]
    assert [told.partition(":")[0] for told in done.left_out] == ["notes/c.md", "notes/b.md", "notes/none.md"]
    assert desk.git("show", "--name-only", "--format=") == "memories/notes/a.md"
    assert desk.git("diff", "--cached", "--name-only").split() == ["memories/notes/c.md", "src/x.py"]
    with pytest.raises(Usage, match="exclude each other"):
        desk.memory.git.commit(only=["notes"], accepted={})
    assert desk.memory.git.commit(accepted={}).commit is None
    (row,) = desk.rows("notes/d.md")
    assert desk.memory.git.commit(accepted={"notes/d.md": [row.row]}, dry_run=True).commit is None
    assert desk.memory.git.commit(accepted={"notes/d.md": [row.row]}).files[0].path == "notes/d.md"


def test_commit_accepted_takes_both_names_and_what_is_gone_and_nothing_amid_a_merge(desk: Desk) -> None:
    desk.note("notes/a.md", "- a is here\n- and stays\n")
    desk.committed("notes/b.md", "- b is here\n")
    desk.memory.mv("notes/a.md", "notes/c.md")
    desk.put("notes/b.md", None)
    accepted = {each.path: [row.row for row in each.rows] for each in desk.memory.git.review()}
    desk.memory.git.commit(accepted=accepted)
    assert desk.git("status", "--porcelain") == ""
    desk.git("checkout", "--quiet", "-b", "other")
    desk.committed("notes/c.md", "- a was here\n")
    desk.git("checkout", "--quiet", "main")
    desk.committed("notes/c.md", "- a will be here\n")
    with pytest.raises(Exception, match="non-zero"):
        desk.git("merge", "other")
    (row,) = desk.rows("notes/c.md")
    with pytest.raises(mdmem.errors.GitRefused):
        desk.memory.git.commit(accepted={"notes/c.md": [row.row]})


# ---------------------------------------------------------------------------------------- who did it


class Model:
    """Knows who wrote each line of a memory last, and who took one away; nobody is who edits directly."""

    def __init__(self, desk: Desk, chance: random.Random) -> None:
        self.desk, self.chance, self.count = desk, chance, 0
        self.words = {name: self.say(name) for name in map("fact{}".format, range(6))}
        self.writer = dict.fromkeys(self.words, "")
        self.remover: dict[str, str] = {}
        self.past: list[tuple[str, dict[str, str], dict[str, str], dict[str, str]]] = []
        desk.committed(PATH, self.text)
        self.base = dict(self.words)

    def say(self, name: str) -> str:
        return f"{name} of{name} with{name} and{name} v{self.count}"

    @property
    def text(self) -> str:
        return "# A\n\n" + "".join(f"- {words}\n" for words in self.words.values())

    def step(self) -> None:
        way = self.chance.choice(["add", "add", "reword", "reword", "remove", "undo", "redo"])
        if way in {"undo", "redo"}:
            if self.past:
                self.take_back(redone=way == "redo")
            return
        actor = self.chance.choice(["claude", "codex", "ada", ""])
        before = dict(self.words), dict(self.writer), dict(self.remover)
        self.count += 1
        name = self.chance.choice([*self.words])
        if way == "remove" and len(self.words) > 2:
            del self.words[name], self.writer[name]
            self.remover[name] = actor
        elif way == "reword":
            self.words[name] = self.say(name)
            self.writer[name] = actor
        else:
            name = f"more{self.count}"
            self.words[name], self.writer[name] = self.say(name), actor
        if actor:
            made = self.desk.open(actor).write(PATH, self.text, overwrite=True).id
            self.past.append((made, *before))
        else:
            self.desk.note(PATH, self.text)
            self.past.clear()  # what is undone behind a direct edit is merged with it

    def take_back(self, *, redone: bool) -> None:
        made, words, writer, remover = self.past.pop()
        self.desk.open("ada").undo(made)
        if redone:
            self.past.append((self.desk.open("ada").redo().id, words, writer, remover))
            return
        self.words, self.writer, self.remover = words, writer, remover

    def expect(self) -> dict[str, str]:
        differing = {name for name, words in self.words.items() if self.base.get(name) != words}
        gone = {name: self.remover[name] for name in self.base.keys() - self.words.keys()}
        return {name: self.writer[name] for name in differing} | gone


PATH = "notes/a.md"


@pytest.mark.parametrize("count", [6, pytest.param(examples(300), marks=[pytest.mark.soak])])
def test_each_row_is_by_who_made_it_and_blame_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    set_up(monkeypatch)
    for number in range(count):
        desk = Desk(tmp_path / str(number))
        model = Model(desk, random.Random(number))
        for _ in range(12):
            model.step()
        rows = [
            row for row in desk.rows(PATH) if row.change in {"fact-added", "fact-reworded", "fact-removed"}
        ]
        assert {str(row.after or row.before).split(" ")[0]: row.by for row in rows} == model.expect(), number
        history = {entry.id: entry for entry in desk.memory.history()}
        for row in rows:
            assert not row.by or (history[row.change_id].actor, history[row.change_id].time) == (
                row.by,
                row.date,
            )
        desk.memory.git.commit()
        # Who edited directly is nobody, and blame marks whom the commit names as a guess.
        said = {each.text.split(" ")[0]: each.agent * each.sure for each in desk.memory.git.blame(PATH)[1:]}
        assert said == model.writer, number


def test_a_rename_a_removal_and_a_new_memory_are_by_who_made_them(desk: Desk) -> None:
    for name in "abc":
        desk.note(f"notes/{name}.md", f"- {name} is here\n- {name} stays\n")
    desk.commit()
    desk.open("claude").mv("notes/a.md", "notes/d.md")
    desk.open("codex").rm("notes/b.md")
    desk.put("notes/c.md", None)
    desk.open("ada").append("notes/e.md", "- new")
    desk.note("notes/f.md", "- direct\n")
    by = {each.path: {row.change: row.by for row in each.rows} for each in desk.memory.git.review()}
    assert by == {
        "notes/b.md": {"memory-removed": "codex"},
        "notes/c.md": {"memory-removed": ""},
        "notes/d.md": {"memory-renamed": "claude"},
        "notes/e.md": {"memory-added": "ada"},
        "notes/f.md": {"memory-added": ""},
    }
    desk.open("ada").undo(next(iter(desk.memory.history())).id)
    desk.put("notes/g.md", desk.read("notes/d.md"))
    desk.put("notes/d.md", None)
    assert {row.by for row in desk.rows("notes/g.md")} == {""}


def test_a_field_is_by_who_set_it_also_beside_one_of_the_same_mapping(desk: Desk) -> None:
    desk.committed(PATH, "---\nsource:\n  type: a\n  ids: [x]\n---\n- one\n")
    desk.open("claude").set(PATH, {"source.type": "b"})
    desk.open("codex").set(PATH, {"source.ids": ["y"]})
    desk.open("ada").set(PATH, {"title": "T"})
    assert {row.key: row.by for row in desk.rows(PATH)} == {
        "source.type": "claude",
        "source.ids": "codex",
        "title": "ada",
    }


def test_a_move_is_by_who_moved(desk: Desk) -> None:
    desk.committed(
        PATH, "# A\n\n- one is first\n- two is second\n\n# B\n\n- three is third\n- four is last\n"
    )
    text = desk.read(PATH).decode()
    moved = text.replace("- one is first\n", "") + "- one is first\n"
    desk.open("claude").write(PATH, moved, overwrite=True)
    desk.open("codex").append(PATH, "- five is new")
    swapped = desk.read(PATH).decode().replace("- three is third\n", "") + "- three is third\n"
    desk.open("ada").write(PATH, swapped, overwrite=True)
    assert {row.change: row.by for row in desk.rows(PATH)} == {
        "fact-moved": "claude",
        "fact-added": "codex",
        "fact-reordered": "ada",
    }


def test_a_rejected_row_leaves_the_others_to_who_made_them(desk: Desk) -> None:
    desk.committed(PATH, "# A\n\n- one is first\n")
    desk.open("claude").append(PATH, "- said by claude")
    desk.open("claude").append(PATH, "- also said by claude")
    ada = desk.open("ada")
    ada.git.reject(PATH, [desk.rows(PATH)[0].row])
    assert [(row.after, row.by) for row in desk.rows(PATH)] == [("also said by claude", "claude")]
    desk.memory.git.commit()
    desk.memory.append("notes/z.md", "- z")
    said = {each.text: (each.agent, each.sure) for each in desk.memory.git.blame(PATH)}
    assert said["also said by claude"] == ("claude", True)
    assert "ada" not in desk.git("log", "-1", "--format=%(trailers:key=Mdmem-Agent,valueonly)")


def test_a_session_that_stops_is_told_once_how_many_memories_wait(desk: Desk) -> None:
    given = {"session_id": "s", "stop_hook_active": False}
    desk.note(PATH, "- one\n")
    assert answer(desk.memory, "stop", given) is None  # there is no commit to compare with
    desk.commit()
    assert answer(desk.memory, "stop", given) is None
    desk.open("claude").append(PATH, "- two")
    desk.memory.inbox.propose("append", {"path": PATH, "text": "- three"})
    told = {"systemMessage": "mdmem: 1 memory waits for a review: `mdmem git review`"}
    assert answer(desk.memory, "stop", given) == told
    assert answer(desk.memory, "stop", given) is None
    assert answer(desk.memory, "stop", {**given, "session_id": "t"}) == told
    desk.note("notes/b.md", "- b\n")
    told = {"systemMessage": "mdmem: 2 memories wait for a review: `mdmem git review`"}
    assert answer(desk.memory, "stop", given) == told
