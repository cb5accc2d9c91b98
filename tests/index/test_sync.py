"""What was first seen of cited code: kept for as long as the citation stands, wherever its memory goes.

Reading: what becomes of a file of the vault, whatever stands there.

Sync: what it reads, what it leaves alone, what it says of memories, and how it gets over a crash.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.document.document import Limits
from mdmem.errors import StorageFailed
from mdmem.index import text_index as text_module
from mdmem.index.code.citations import pinning
from mdmem.index.code.workspace import pin_of
from mdmem.index.database import Seen
from mdmem.index.index import Index
from mdmem.index.links.references import occurrences
from mdmem.index.links.resolve import resolve
from mdmem.index.sync import Read, Sync, Synced, Work, moves, read, understand
from mdmem.index.view import View
from mdmem.vault.files import Place
from mdmem.vault.paths import Namespace
from tests.programs import needs_readers
from tests.speed import soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


CITES = "See `src/app.py#L2`.\n"
SEEN = pin_of(["two = 2"])


@pytest.fixture
def root(vault_root: Path) -> Path:
    (vault_root.parent / "src").mkdir()
    (vault_root / "notes").mkdir()
    code(vault_root, "one = 1\ntwo = 2\n")
    note(vault_root, CITES)
    return vault_root


@pytest.fixture
def index(root: Path) -> Iterator[Index]:
    index = Index(str(root), pinning)
    index.sync()
    yield index
    index.close()


def code(root: Path, text: str) -> None:
    (root.parent / "src/app.py").write_text(text)


def note(root: Path, text: str, path: str = "notes/a.md") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def seen(index: Index) -> list[str]:
    index.sync()
    return [value for (value,) in index.rows("SELECT seen FROM citations ORDER BY document, n")]


def states(index: Index) -> list[str]:
    index.sync()
    found = occurrences(View(index, index.vault), types=("line_range", "function"))
    return [each.place.state for each in found]


def test_what_is_cited_is_kept_as_it_was_first_seen(root: Path, index: Index) -> None:
    assert seen(index) == [SEEN]
    code(root, "one = 1\ntwo = 3\n")
    note(root, f"# Another day\n\n{CITES}")
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]


@pytest.mark.parametrize("before", ["", "---\nid: x\n---\n"])
def test_it_goes_with_the_memory(root: Path, index: Index, before: str) -> None:
    note(root, before + CITES)
    index.sync()
    code(root, "one = 1\ntwo = 3\n")
    (root / "archive/deep").mkdir(parents=True)
    (root / "notes/a.md").rename(root / "archive/deep/b.md")
    assert seen(index) == [SEEN]
    shutil.move(root / "archive", root / "old")
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]


def test_it_goes_with_a_memory_that_changes_on_the_way_and_has_an_id(root: Path, index: Index) -> None:
    note(root, f"---\nid: x\n---\n{CITES}")
    index.sync()
    code(root, "one = 1\ntwo = 3\n")
    (root / "notes/a.md").unlink()
    note(root, f"---\nid: x\n---\nmore\n\n{CITES}", "notes/b.md")
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]


def test_another_memory_that_cites_the_same_sees_it_as_it_is_now(root: Path, index: Index) -> None:
    code(root, "one = 1\ntwo = 3\n")
    note(root, f"Mine. {CITES}", "notes/b.md")
    assert seen(index) == [SEEN, pin_of(["two = 3"])]
    assert states(index) == ["changed", "unchanged"]


def test_a_citation_that_is_written_anew_is_seen_anew(root: Path, index: Index) -> None:
    code(root, "one = 1\ntwo = 3\n")
    note(root, "Nothing.\n")
    assert seen(index) == []
    note(root, CITES)
    assert seen(index) == [pin_of(["two = 3"])]


def test_code_that_is_not_there_yet_is_seen_when_its_memory_is_taken_in_again(
    root: Path, index: Index
) -> None:
    note(root, "See `src/new.py#L1`, `src/new.py#f` and `src/new.py`.\n", "notes/b.md")
    assert seen(index) == [SEEN, "", "", ""]
    (root.parent / "src/new.py").write_text("def f(): pass\n")
    note(root, "See `src/new.py#L1`, `src/new.py#f` and `src/new.py`.\n\n", "notes/b.md")
    expected = pin_of(["def f(): pass"])
    assert seen(index) == [SEEN, expected, expected, expected]


def test_a_pinned_citation_needs_nothing_of_it(root: Path, index: Index) -> None:
    note(root, f"See `src/app.py#L2` <!-- pin {SEEN} -->.\n")
    code(root, "one = 1\ntwo = 3\n")
    note(root, f"See `src/app.py#L2` <!-- pin {pin_of(['two = 3'])} -->.\n")
    assert states(index) == ["unchanged"]
    note(root, f"Other: `src/app.py#L1` <!-- pin {SEEN} -->.\n")
    assert seen(index) == [""]


def test_citations_that_are_made_to_name_each_others_lines_are_seen_anew(root: Path, index: Index) -> None:
    note(root, "`src/app.py#L1` `src/app.py#L2`\n")
    index.sync()
    code(root, "zero = 0\none = 1\ntwo = 2\n")
    assert states(index) == ["moved", "moved"]
    note(root, "`src/app.py#L2` `src/app.py#L3`\n")
    assert states(index) == ["unchanged", "unchanged"]


def test_a_text_index_that_is_lost_takes_nothing_of_it_along(root: Path, index: Index) -> None:
    code(root, "one = 1\ntwo = 3\n")
    (text,) = root.glob(".mdmem/local/index/*/text")
    shutil.rmtree(text)
    assert seen(index) == [SEEN]
    assert states(index) == ["changed"]


IS_ROOT = os.geteuid() == 0
NOBODY = 65534
LIMITS = Limits()


def one(file: Path, path: str = "", limits: Limits = LIMITS) -> Read | None:
    return read(Place(str(file.parent), (file.name,)), path or file.name, limits)


def settle(file: Path) -> None:
    """Wait until the clock of the system has ticked since the file was changed."""
    while time.time_ns() < file.stat().st_ctime_ns + 30_000_000:
        pass


def test_a_file_is_read_with_what_it_was_like(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"# Title\r\ntext\n")
    status = file.stat()
    found = one(file)
    assert found
    assert (found.path, found.data, found.problem) == ("a.md", b"# Title\r\ntext\n", "")
    assert found.hash == sha256(found.data).hexdigest()
    assert found.seen == (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    assert found.seen.modified == pytest.approx(status.st_mtime)
    understood = understand(found, LIMITS)
    assert understood.record
    assert understood.indexed
    assert understood.record.summary.title == "Title"


@cases("made", ["nothing", "file", "link", "dangling"])
def test_where_the_folder_is_gone_the_file_is_gone_and_nothing_is_followed(tmp_path: Path, made: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.md").write_text("a secret")
    place = tmp_path / "root" / "deep"
    place.parent.mkdir()
    if made == "file":
        place.touch()
    elif made != "nothing":
        place.symlink_to(tmp_path / ("other" if made == "link" else "none"))
    assert read(Place(str(place.parent), ("deep", "a.md")), "deep/a.md", LIMITS) is None


# ----------------------------------------------------------------------------------- clocks that cannot tell


def test_a_file_that_was_changed_just_now_may_change_again_and_look_the_same(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("x")
    os.utime(file, (1, 1))  # its entry was changed all the same
    found = one(file)
    assert found
    assert found.racy


def test_a_file_that_has_settled_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("x")
    os.utime(file, ns=(1, 1_600_000_000_123_456_789))
    settle(file)
    found = one(file)
    assert found
    assert not found.racy


def test_on_a_clock_of_seconds_a_file_takes_longer_to_settle(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("x")
    os.utime(file, (1_600_000_000, 1_600_000_000))
    settle(file)
    found = one(file)
    assert found
    assert found.racy


def test_a_file_of_the_future_never_settles(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("x")
    later = time.time_ns() + 3600 * 10**9 + 123_456
    os.utime(file, ns=(later, later))
    settle(file)
    found = one(file)
    assert found
    assert found.racy


# ----------------------------------------------------------------------------------- what cannot be a memory


def problem_of(found: Read | None, limits: Limits = LIMITS) -> str:
    assert found
    understood = understand(found, limits)
    assert understood.record is None
    assert understood.indexed is None
    return understood.problem


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"x" * 101)
    limits = Limits(max_bytes=100)
    found = one(file, limits=limits)
    assert found
    assert (found.data, found.hash) == (b"", "")
    assert "101" in problem_of(found, limits)
    file.write_bytes(b"x" * 100)
    at_the_limit = one(file, limits=limits)
    assert at_the_limit
    assert understand(at_the_limit, limits).record


@cases(
    "name, data",
    [
        ("a.md", b"\xff\xfe\x00binary"),
        ("a.md", b"caf\xe9\n"),
        ("a.md", b"nul \0 byte\n"),
        ("a.json", b"{broken"),
        ("a.json", b""),
        ("a.md", b"---\na: [" + b"[" * 3_000 + b"\n---\n"),
        ("a.json", b"[" * 50_000 + b"]" * 50_000),
    ],
)
def test_what_cannot_be_parsed_has_a_hash_and_a_reason_or_is_taken(
    tmp_path: Path, name: str, data: bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    found = one(file)
    assert found
    assert found.hash == sha256(data).hexdigest()
    understood = understand(found, LIMITS)
    assert (understood.record is None) == (understood.indexed is None) == bool(understood.problem)
    if b"\xff" in data or b"\xe9" in data:
        assert "UTF-8" in understood.problem


def test_what_is_no_file_is_a_problem_and_nothing_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.md")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "real.txt").write_text("secret")
    (tmp_path / "link.md").symlink_to("real.txt")
    other = "not a regular file"
    for name, problem in (("fifo.md", other), ("folder.md", other), ("link.md", "a symbolic link")):
        found = one(tmp_path / name)
        assert found
        assert found.data == b""
        assert problem_of(found) == problem


def test_a_name_is_found_in_any_unicode_spelling(tmp_path: Path) -> None:
    nfc, nfd = (unicodedata.normalize(form, "Größe.md") for form in ("NFC", "NFD"))
    (tmp_path / nfd).write_text("as others spell it")
    found = one(tmp_path / nfc, nfc)
    assert found
    assert (found.path, found.data) == (nfc, b"as others spell it")
    (tmp_path / nfc).write_text("as we do")
    again = one(tmp_path / nfc, nfc)
    assert again
    assert again.data == b"as we do"


# ----------------------------------------------------------------------------------------------- permissions

READER = """
import os, sys
from mdmem.errors import StorageFailed
from mdmem.index.sync import read, understand
from mdmem.vault.files import Place
from mdmem.document.document import Limits
if len(sys.argv) > 3:
    os.setgroups([]), os.setgid(int(sys.argv[3])), os.setuid(int(sys.argv[3]))
try:
    parts = (*filter(None, sys.argv[2].split("/")), "a.md")
    found = read(Place(sys.argv[1], parts), "a.md", Limits())
    print("problem", understand(found, Limits()).problem)
except StorageFailed as error:
    print("refused", error.message)
"""


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that every user may enter."""
    needs_readers()
    folder = Path(tempfile.mkdtemp(prefix="mdmem-reading-"))
    (folder / "deep").mkdir()
    (folder / "deep/a.md").write_text("x")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    yield folder
    (folder / "deep").chmod(0o755)
    shutil.rmtree(folder)


def told(root: Path, parts: str) -> str:
    """What a user whom permissions bind is told."""
    command = [sys.executable, "-c", READER, str(root), parts, *([str(NOBODY)] if IS_ROOT else [])]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_file_that_may_not_be_read_is_a_problem(closed: Path) -> None:
    (closed / "deep/a.md").chmod(0)
    assert told(closed, "deep") == "problem a.md: cannot read it: Permission denied\n"


def test_a_folder_that_may_not_be_entered_is_an_error_and_nothing_is_gone(closed: Path) -> None:
    (closed / "deep").chmod(0)
    assert told(closed, "deep").startswith("refused deep: cannot open it: Permission denied")


PARTS = ("names", "fields", "sections", "blocks", "links", "citations", "tags", "urls")
DAY = 86_400
Rows = dict[str, list[Any]]


@pytest.fixture
def sync_root(vault_root: Path) -> Path:
    return vault_root


@pytest.fixture
def sync_index(sync_root: Path) -> Iterator[Index]:
    sync_index = Index(str(sync_root))
    yield sync_index
    sync_index.close()


def put(sync_root: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        (sync_root / path).parent.mkdir(parents=True, exist_ok=True)
        (sync_root / path).write_bytes(content if isinstance(content, bytes) else content.encode())


def rows_of(sync_index: Index, *, without: str = "") -> Rows:
    """All rows about documents, with paths instead of numbers."""
    columns = "path, hash, problem, title, type, day, dated, ident"
    found = {
        "documents": sync_index.rows(
            f"SELECT {columns} FROM documents WHERE path != ? ORDER BY path", (without,)
        )
    }
    for part in PARTS:
        query = (
            f"SELECT d.path, x.* FROM {part} AS x JOIN documents AS d ON d.id = x.document WHERE d.path != ?"
        )
        found[part] = sorted(((path, *row) for path, _, *row in sync_index.rows(query, (without,))), key=repr)
    found["texts"] = [path for path in sync_index.text(lambda text: text.paths()) if path != without]
    return found


def texts(sync_index: Index) -> list[str]:
    return sync_index.text(lambda text: text.paths())


def passages(sync_index: Index) -> int:
    return sync_index.text(lambda text: text.searcher().num_docs)


def settled(sync_index: Index) -> None:
    """Sync until no clock is in doubt."""
    while sync_index.rows("SELECT 1 FROM documents WHERE racy"):
        sync_index.sync()


def added(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths whose text is taken in from now on."""
    paths: list[str] = []
    add = text_module.TextIndex.add

    def watched(self: text_module.TextIndex, memory: Any) -> None:
        paths.append(memory.path)
        add(self, memory)

    monkeypatch.setattr(text_module.TextIndex, "add", watched)
    return paths


# ---------------------------------------------------------------------------------------- what became of them


def test_what_was_created_changed_and_removed_is_said(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "a", "deep/b.md": "b", "c.json": "{}", "d.txt": "no memory", ".hidden.md": "x"})
    assert sync_index.sync() == Synced(created=("a.md", "c.json", "deep/b.md"))
    assert sync_index.sync() == Synced()
    put(sync_root, {"a.md": "other", "e.md": "e"})
    (sync_root / "c.json").unlink()
    assert sync_index.sync() == Synced(created=("e.md",), changed=("a.md",), removed=("c.json",))
    assert texts(sync_index) == ["a.md", "deep/b.md", "e.md"]
    assert sync_index.sync() == Synced()


def test_progress_is_told_up_to_the_last_file(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {f"{n}.md": "x" for n in range(12)})
    told: list[tuple[int, int]] = []
    sync_index.sync(progress=lambda done, total: told.append((done, total)))
    assert told == [(12, 12)]
    told.clear()
    settled(sync_index)
    sync_index.sync(progress=lambda done, total: told.append((done, total)))
    assert told == []


def test_what_was_only_touched_is_not_taken_in_again(
    sync_root: Path, sync_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(sync_root, {"a.md": "created: no\n", "2024-01-31.md": "dated by its name\n", "b.md": "b"})
    sync_index.sync()
    before = rows_of(sync_index)
    paths = added(monkeypatch)
    for name in ("a.md", "2024-01-31.md"):
        status = (sync_root / name).stat()
        os.utime(sync_root / name, ns=(status.st_atime_ns, status.st_mtime_ns - 1_000))
    assert sync_index.sync() == Synced()
    assert (
        sync_index.rows("SELECT mtime_ns FROM documents WHERE path = 'a.md'")[0][0]
        == (sync_root / "a.md").stat().st_mtime_ns
    )
    assert paths == []
    assert rows_of(sync_index) == before


def test_the_day_of_an_undated_memory_is_that_of_its_file(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "x", "b.md": "---\ncreated: 2020-02-02\n---\n"})
    sync_index.sync()
    for name in ("a.md", "b.md"):
        os.utime(sync_root / name, (5 * DAY, 5 * DAY))
    assert sync_index.sync() == Synced(changed=("a.md",))
    assert sync_index.rows("SELECT path, day FROM documents ORDER BY path") == [
        ("a.md", "1970-01-06"),
        ("b.md", "2020-02-02"),
    ]


def doubt(sync_index: Index, sync_root: Path, path: str) -> None:
    """Let a file look as it was when it was read, so shortly before that no clock can tell."""
    status = (sync_root / path).lstat()
    seen = Seen(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    sync_index._open_database().see(path, seen, racy=True)


def test_a_file_that_is_written_again_and_looks_the_same_is_seen(sync_root: Path, sync_index: Index) -> None:
    """As git's index, a sync reads again what was written so shortly before it that no clock can tell."""
    put(sync_root, {"a.md": "one", "b.md": "b"})
    settled_sync(sync_index)
    for word in ("two", "six", "ten"):
        put(sync_root, {"a.md": word})
        doubt(sync_index, sync_root, "a.md")
        assert sync_index.sync() == Synced(changed=("a.md",))
    doubt(sync_index, sync_root, "a.md")
    assert sync_index.sync() == Synced()
    settled(sync_index)
    assert sync_index.rows("SELECT path FROM documents WHERE racy") == []


def test_a_file_that_is_gone_and_back_by_the_time_it_is_read_has_changed(
    sync_root: Path, sync_index: Index
) -> None:
    """Some programs save by deleting and making it anew; it was in doubt, too, so it is read as well."""
    put(sync_root, {"a.md": "before"})
    sync_index.sync()
    database, text = sync_index._open_database(), sync_index._open_text_index()
    put(sync_root, {"a.md": "after"})
    assert Sync(sync_index.vault, database, text).run(Work(read=("a.md",), gone=("a.md",))) == Synced(
        changed=("a.md",)
    )
    assert sync_index.sync() == Synced()
    assert texts(sync_index) == ["a.md"]


# ----------------------------------------------------------------------------------------- only what changed


def test_adding_a_memory_changes_no_other_ones_rows(sync_root: Path, sync_index: Index) -> None:
    files = {
        f"notes/{n}.md": f"# H{n}\n[[new]] [[{n + 1}]] `a.py#L1` #tag <https://e.org/{n}>\n" for n in range(9)
    }
    put(sync_root, files)
    sync_index.sync()
    before = rows_of(sync_index)
    numbers = sync_index.rows("SELECT id, path FROM documents ORDER BY id")
    put(sync_root, {"notes/new.md": "---\naliases: [h1]\nid: x\n---\n[[1]] #tag\n"})
    assert sync_index.sync() == Synced(created=("notes/new.md",))
    assert rows_of(sync_index, without="notes/new.md") == before
    assert sync_index.rows("SELECT id, path FROM documents ORDER BY id")[:-1] == numbers


def test_only_what_changed_is_taken_in(
    sync_root: Path, sync_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(sync_root, {f"{n}.md": "x" for n in range(9)})
    sync_index.sync()
    paths = added(monkeypatch)
    put(sync_root, {"3.md": "y", "new.md": "[[3]]"})
    sync_index.sync()
    assert sorted(paths) == ["3.md", "new.md"]


def test_a_forward_link_finds_its_target_when_that_appears(sync_root: Path, sync_index: Index) -> None:
    view = View(sync_index, sync_index.vault)
    put(sync_root, {"a.md": "[[Later]] [[other name]]\n"})
    sync_index.sync()
    assert resolve(view, "Later", "a.md").path is None
    put(sync_root, {"deep/Later.md": "---\naliases: [Other Name]\n---\n"})
    sync_index.sync()
    assert resolve(view, "Later", "a.md").path == "deep/Later.md"
    assert resolve(view, "other name", "a.md").path == "deep/Later.md"
    assert view.sources(["later"]) == ["a.md"]
    (sync_root / "deep/Later.md").unlink()
    sync_index.sync()
    assert resolve(view, "Later", "a.md").path is None


def test_of_what_is_named_nothing_else_is_looked_at(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {f"{folder}/{name}.md": "x" for folder in "ab" for name in "xy"})
    settled_sync(sync_index)
    put(sync_root, {f"{folder}/{name}.md": "changed" for folder in "ab" for name in "xyz"})
    assert sync_index.sync(["a/x.md", "nowhere.md", "b/z.md"]) == Synced(
        created=("b/z.md",), changed=("a/x.md",)
    )
    assert sync_index.sync(["a"]) == Synced(created=("a/z.md",), changed=("a/y.md",))
    while sync_index.rows("SELECT 1 FROM documents WHERE racy"):  # which is looked at once more, named or not
        sync_index.sync(["a"])
    shutil.rmtree(sync_root / "a")
    assert sync_index.sync(["b/x.md"]) == Synced(changed=("b/x.md",))
    assert sync_index.sync(["a"]) == Synced(removed=("a/x.md", "a/y.md", "a/z.md"))
    assert sync_index.sync() == Synced(changed=("b/y.md",))


def settled_sync(sync_index: Index) -> None:
    sync_index.sync()
    settled(sync_index)


# ----------------------------------------------------------------------------------------------------- moves


def test_a_memory_that_moves_is_known_by_its_content(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "unlike any other", "b.md": "b"})
    sync_index.sync()
    (sync_root / "deep").mkdir()
    (sync_root / "a.md").rename(sync_root / "deep/c.md")
    assert sync_index.sync() == Synced(moved=(("a.md", "deep/c.md"),))
    (sync_root / "deep/c.md").rename(sync_root / "d.md")
    assert sync_index.sync() == Synced(moved=(("deep/c.md", "d.md"),))
    view = View(sync_index, sync_index.vault)
    assert view.moves() == {"a.md": "d.md", "deep/c.md": "d.md"}


def test_a_move_over_a_wall_is_told_to_whom_both_sides_belong(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "unlike any other", "users/al/b.md": "nor is this"})
    sync_index.sync()
    (sync_root / "a.md").rename(sync_root / "users/al/a.md")
    (sync_root / "users/al/b.md").rename(sync_root / "users/al/c.md")
    sync_index.sync()
    own = mdmem.open(sync_root, scope=mdmem.Scope(user="al"))
    assert View(sync_index, own.vault).moves() == {"b.md": "c.md"}
    told = {"a.md": "users/al/a.md", "users/al/b.md": "users/al/c.md"}
    assert View(sync_index, sync_index.vault).moves() == told


RICH = """---
id: kept
tags: [db, Café]
---
# Head

See [[b]], `src/app.py#L1` and <https://example.org>. #inline/tag ^block
"""


def test_what_moves_to_another_folder_is_found_there_alone(sync_root: Path, sync_index: Index) -> None:
    put(
        sync_root,
        {"old/rich.md": RICH, "old/data.json": '{"say": "quince"}', "old/empty.md": "", "b.md": "b"},
    )
    settled_sync(sync_index)
    (sync_root / "old").rename(sync_root / "new")
    names = ("data.json", "empty.md", "rich.md")
    assert sync_index.sync() == Synced(moved=tuple((f"old/{name}", f"new/{name}") for name in names))
    memory = mdmem.open(sync_root)
    for question in ("inline", "tag:inline/tag", "tag:café", "head", "src", "kept path:new", "tag:db"):
        found = memory.search(question).hits
        assert {hit.path for hit in found} == ({"new/rich.md"} if question != "kept path:new" else set())
    assert [hit.path for hit in memory.search("quince").hits] == ["new/data.json"]
    before = rows_of(sync_index)
    sync_index.rebuild()
    assert rows_of(sync_index) == before


def test_one_of_several_twins_that_moves_is_indexed_once(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a/x.md": "same", "b/x.md": "same", "c/x.md": "same"})
    settled_sync(sync_index)
    shutil.rmtree(sync_root / "a")
    (sync_root / "b").rename(sync_root / "d")
    assert sync_index.sync() == Synced(created=("d/x.md",), removed=("a/x.md", "b/x.md"))
    before = rows_of(sync_index)
    assert before["texts"] == ["c/x.md", "d/x.md"]
    sync_index.rebuild()
    assert rows_of(sync_index) == before


def test_a_memory_that_moves_and_changes_is_known_by_its_id(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "---\nid: one\n---\nfirst\n", "b.md": "b"})
    sync_index.sync()
    (sync_root / "a.md").unlink()
    put(sync_root, {"c.md": "---\nid: one\n---\nsecond\n"})
    assert sync_index.sync() == Synced(moved=(("a.md", "c.md"),))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a.md": "same", "b.md": "same"}, {"c.md": "same"}),
        ({"a.md": "same"}, {"c.md": "same", "d.md": "same"}),
        ({"a.md": "---\nid: x\n---\n1", "b.md": "---\nid: x\n---\n2"}, {"c.md": "---\nid: x\n---\n3"}),
        ({"a.md": "one"}, {"c.md": "two"}),
    ],
)
def test_where_it_is_not_certain_nothing_has_moved(
    sync_root: Path, sync_index: Index, before: dict[str, str], after: dict[str, str]
) -> None:
    put(sync_root, before)
    sync_index.sync()
    for path in before:
        (sync_root / path).unlink()
    put(sync_root, after)
    assert sync_index.sync() == Synced(created=tuple(sorted(after)), removed=tuple(sorted(before)))
    assert View(sync_index, sync_index.vault).moves() == {}


def test_an_id_says_more_than_content() -> None:
    gone = {"a": ("x", "h1"), "b": ("", "h2"), "e": ("", "h3")}
    created = {"c": ("x", "h2"), "d": ("", "h1"), "f": ("", "h3")}
    assert moves(gone, created) == {"a": "c", "e": "f"}
    assert moves({}, created) == moves(gone, {}) == {}


def test_a_path_that_is_taken_again_leads_nowhere_else(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "the first"})
    sync_index.sync()
    (sync_root / "a.md").rename(sync_root / "b.md")
    sync_index.sync()
    view = View(sync_index, sync_index.vault)
    put(sync_root, {"a.md": "another one"})
    sync_index.sync()
    assert view.moves() == {}
    (sync_root / "a.md").unlink()
    sync_index.sync()
    assert view.moves() == {}


def test_what_moves_over_the_wall_of_a_namespace_comes_or_goes() -> None:
    synced = Synced(
        created=("x.md",),
        changed=("users/al/c.md", "users/albert/c.md"),
        moved=(("a.md", "users/al/a.md"), ("users/al/b.md", "b.md"), ("users/al/d.md", "users/al/e.md")),
    )
    assert synced.under(Namespace("users/al")) == Synced(("a.md",), ("c.md",), ("b.md",), (("d.md", "e.md"),))
    assert synced.under(Namespace()) == synced


# -------------------------------------------------------------------------------------------------- problems


def problems(sync_index: Index) -> dict[str, str]:
    return dict(View(sync_index, sync_index.vault).problems())


def test_a_file_that_cannot_be_a_memory_is_known_with_its_reason_until_it_can(
    sync_root: Path, sync_index: Index
) -> None:
    (sync_root / ".mdmem/config.toml").write_text("[limits]\nmax_bytes = 100\n")
    put(sync_root, {"bad.md": b"\xff", "big.md": "x" * 101, "good.md": "x"})
    (sync_root / "link.md").symlink_to("good.md")
    os.mkfifo(sync_root / "fifo.md")
    assert sync_index.sync() == Synced(created=("good.md",))
    assert problems(sync_index).keys() == {"bad.md", "big.md", "link.md", "fifo.md"}
    assert problems(sync_index)["link.md"] == "a symbolic link"
    assert texts(sync_index) == ["good.md"]
    for name in ("bad.md", "big.md", "link.md", "fifo.md"):
        (sync_root / name).unlink()
        put(sync_root, {name: f"now {name}"})
    assert sync_index.sync() == Synced(created=("bad.md", "big.md", "fifo.md", "link.md"))
    assert problems(sync_index) == {}
    put(sync_root, {"good.md": b"\xfe", "bad.md": "x" * 200})
    assert sync_index.sync() == Synced(removed=("bad.md", "good.md"))
    assert problems(sync_index).keys() == {"good.md", "bad.md"}
    (sync_root / "good.md").unlink()
    assert sync_index.sync() == Synced()
    assert problems(sync_index).keys() == {"bad.md"}


def test_a_memory_in_doubt_that_has_become_a_link_is_told_as_any_link(
    sync_root: Path, sync_index: Index
) -> None:
    put(sync_root, {"a.md": "x", "b.md": "y"})
    sync_index.sync()
    doubt(sync_index, sync_root, "a.md")
    (sync_root / "a.md").unlink()
    (sync_root / "a.md").symlink_to("b.md")
    assert sync_index.sync() == Synced(removed=("a.md",))
    assert problems(sync_index) == {"a.md": "a symbolic link"}


def test_a_folder_in_doubt_that_has_become_a_link_is_not_followed(
    sync_root: Path, sync_index: Index, tmp_path: Path
) -> None:
    put(sync_root, {"deep/a.md": "x"})
    put(tmp_path / "elsewhere", {"a.md": "a secret", "b.md": "another"})
    sync_index.sync()
    doubt(sync_index, sync_root, "deep/a.md")
    shutil.rmtree(sync_root / "deep")
    (sync_root / "deep").symlink_to(tmp_path / "elsewhere")
    assert sync_index.sync() == Synced(removed=("deep/a.md",))
    assert texts(sync_index) == []


def test_names_in_another_unicode_spelling_are_one_memory(sync_root: Path, sync_index: Index) -> None:
    nfc, nfd = (unicodedata.normalize(form, "Größe.md") for form in ("NFC", "NFD"))
    put(sync_root, {nfd: "x"})
    assert sync_index.sync() == Synced(created=(nfc,))
    (sync_root / nfd).rename(sync_root / nfc)
    assert sync_index.sync() == Synced()
    assert texts(sync_index) == [nfc]


# ---------------------------------------------------------------------------------------------- permissions

SYNC = """
import encodings.ascii, importlib, os, pkgutil, sys
import mdmem
for module in pkgutil.walk_packages(mdmem.__path__, "mdmem."):  # another user may read none of it later
    if module.name.split(".")[1] in {"document", "index", "markdown", "text", "vault"}:
        importlib.import_module(module.name)
from mdmem.errors import StorageFailed
from mdmem.index.index import Index
if len(sys.argv) > 2:
    os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
index = Index(sys.argv[1])
for line in sys.stdin:
    try:
        synced = index.sync(eval(line))
        print(sorted(synced.created + synced.removed), index.text(lambda text: text.paths()), flush=True)
    except StorageFailed as error:
        print("refused", error.message, flush=True)
"""


def test_a_folder_that_cannot_be_read_stops_nothing_and_its_memories_stay() -> None:
    needs_readers()
    above = Path(tempfile.mkdtemp(prefix="mdmem-sync-"))
    folder = above / "vault"
    try:
        put(folder, {".mdmem/config.toml": "", "deep/a.md": "a", "other/b.md": "b"})
        if IS_ROOT:
            for path in (above, *above.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        command = [sys.executable, "-c", SYNC, str(folder), *([str(NOBODY)] if IS_ROOT else [])]
        own = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(above))
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | own
        ) as process:
            assert process.stdin
            assert process.stdout

            def ask(paths: str) -> str:
                assert process.stdin
                assert process.stdout
                process.stdin.write(f"{paths}\n")
                process.stdin.flush()
                return process.stdout.readline()

            assert ask("None") == "['deep/a.md', 'other/b.md'] ['deep/a.md', 'other/b.md']\n"
            for mode in (0o000, 0o300, 0o600):  # not listed, and not entered
                (folder / "deep").chmod(mode)
                for paths in ("None", "['deep/a.md']", "['deep']", "['other/b.md', 'deep/a.md']"):
                    assert ask(paths) == "[] ['deep/a.md', 'other/b.md']\n", (mode, paths)
                (folder / "other/b.md").write_text(f"b {mode}")
                assert ask("None") == "[] ['deep/a.md', 'other/b.md']\n"
            (folder / "deep").chmod(0o755)
            assert ask("None") == "[] ['deep/a.md', 'other/b.md']\n"
            process.stdin.close()
    finally:
        (folder / "deep").chmod(0o755)
        shutil.rmtree(above)


# --------------------------------------------------------------------------------------------------- crashes

CRASH = """
import os, signal, sys
from mdmem.index import sync
from mdmem.index.index import Index

def kill_before(frame, event, argument):
    if frame.f_code.co_filename != sync.__file__ or frame.f_code.co_name != "_write_batch":
        return None
    if event == "line" and WANTED in lines[frame.f_lineno - 1]:
        os.kill(os.getpid(), signal.SIGKILL)
    return kill_before

WANTED = sys.argv[2]
lines = open(sync.__file__).read().splitlines()
index = Index(sys.argv[1])
index.rows("SELECT 1")
sys.settrace(kill_before)
index.sync()
"""
BETWEEN = ("opstamp = self._text.commit", "DELETE FROM pending", 'set_value("opstamp"')


def crash(sync_root: Path, before: str) -> None:
    """Kill a process that syncs before a line of `Sync._write_batch`."""
    ended = subprocess.run([sys.executable, "-c", CRASH, str(sync_root), before], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "before", soak_most([*BETWEEN, "database.replace(entries)", "database.forget(gone)"], quick=(1,))
)
def test_a_crash_between_the_two_stores_heals(sync_root: Path, sync_index: Index, before: str) -> None:
    put(sync_root, {"same.md": "same", "a.md": "one", "gone.md": "gone"})
    settled_sync(sync_index)
    sync_index.close()
    put(sync_root, {"a.md": "two\n\n# Two\n", "new.md": "new"})
    (sync_root / "gone.md").unlink()
    crash(sync_root, before)
    sync_index.sync()
    assert sync_index.notes == []
    assert texts(sync_index) == ["a.md", "new.md", "same.md"]
    assert sync_index.rows("SELECT path FROM pending") == []
    other = Index(str(sync_root))
    other.rebuild()
    expected = rows_of(other), passages(other)
    assert (rows_of(sync_index), passages(sync_index)) == expected
    other.close()


@pytest.mark.parametrize("before", soak_most(BETWEEN))
def test_a_first_run_that_crashes_is_gone_on_with(sync_root: Path, sync_index: Index, before: str) -> None:
    put(sync_root, {f"{n}.md": f"# {n}" for n in range(5)})
    crash(sync_root, before)
    sync_index.sync()
    assert sync_index.notes == []
    assert texts(sync_index) == [f"{n}.md" for n in range(5)]
    assert passages(sync_index) == 5


def test_another_text_index_is_not_taken_for_the_one_that_a_crash_left(
    sync_root: Path, sync_index: Index
) -> None:
    put(sync_root, {"a.md": "a"})
    crash(sync_root, BETWEEN[1])
    older(sync_root)
    sync_index.sync()
    assert len(sync_index.notes) == 1
    assert texts(sync_index) == ["a.md"]


def test_what_a_crash_left_undone_and_is_gone_by_then_is_forgotten(
    sync_root: Path, sync_index: Index
) -> None:
    put(sync_root, {"a.md": "a", "b.md": "b", "c.md": "c"})
    crash(sync_root, BETWEEN[1])
    for name in ("a.md", "b.md"):
        (sync_root / name).unlink()
    (sync_root / "b.md").symlink_to("c.md")
    sync_index.sync()
    assert texts(sync_index) == ["c.md"]
    assert problems(sync_index) == {"b.md": "a symbolic link"}
    assert sync_index.rows("SELECT path FROM pending") == []


# --------------------------------------------------------------------------------- a text index that is lost


def text_of(sync_root: Path) -> Path:
    (text,) = sync_root.glob(".mdmem/local/index/*/text")
    return text


def lose(sync_root: Path) -> None:
    shutil.rmtree(text_of(sync_root))


def older(sync_root: Path) -> None:
    """Another text index, of another vault, in the place of ours."""
    text = text_of(sync_root)
    lose(sync_root)
    put(sync_root.parent / "other", {".mdmem/config.toml": "", "b.md": "b"})
    other = Index(str(sync_root.parent / "other"))
    other.sync()
    other.close()
    shutil.copytree(text_of(sync_root.parent / "other"), text)


@pytest.mark.parametrize(("how", "crashed"), soak_most(product([lose, older], [False, True]), quick=(0, 2)))
def test_a_lost_text_index_is_made_anew_with_a_word_about_it(
    sync_root: Path, sync_index: Index, how: Callable[[Path], None], crashed: bool
) -> None:
    put(sync_root, {f"{name}.md": name for name in "abc"})
    settled_sync(sync_index)
    sync_index.close()
    if crashed:
        put(sync_root, {"d.md": "d"})
        crash(sync_root, BETWEEN[0])
    how(sync_root)
    sync_index.sync()
    assert texts(sync_index) == [f"{name}.md" for name in ("abcd" if crashed else "abc")]
    (note,) = sync_index.notes
    assert "the text index was rebuilt" in note
    sync_index.sync()
    assert sync_index.notes == [note]


def test_a_text_index_that_is_lost_while_it_is_open_is_made_anew(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "a", "b.md": "b"})
    settled_sync(sync_index)
    assert texts(sync_index) == ["a.md", "b.md"]
    lose(sync_root)
    sync_index.sync()
    assert texts(sync_index) == ["a.md", "b.md"]
    assert len(sync_index.notes) == 1


def test_a_sync_is_whole_when_it_fails(
    sync_root: Path, sync_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stops it, the next one goes on from there."""
    put(sync_root, {"a.md": "a"})
    sync_index.sync()
    put(sync_root, {"b.md": "b", "a.md": "changed"})

    def full(_: object, **__: object) -> int:
        raise StorageFailed(path="x", action="write the index", reason="No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(text_module.TextIndex, "commit", full)
        with pytest.raises(StorageFailed, match="No space left"):
            sync_index.sync()
    sync_index.sync()
    assert texts(sync_index) == ["a.md", "b.md"]
    assert sync_index.rows("SELECT path FROM pending") == []
    assert passages(sync_index) == 2


def test_what_is_seen_is_kept_as_it_is_told(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {"a.md": "a"})
    sync_index.sync()
    status = (sync_root / "a.md").stat()
    assert Seen(*sync_index.rows("SELECT mtime_ns, ctime_ns, size, inode FROM documents")[0]) == Seen(
        status.st_mtime_ns, status.st_ctime_ns, 1, status.st_ino
    )


def test_a_first_run_that_is_called_off_leaves_no_memory_twice(sync_root: Path, sync_index: Index) -> None:
    put(sync_root, {f"{folder}/{name}.md": "apple" for folder in "xyz" for name in "abc"})

    def called_off(done: int, _: int) -> None:
        if done > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sync_index.sync(progress=called_off)
    sync_index.sync()
    assert len(sync_index.text(lambda text: text.paths())) == 9


@pytest.mark.parametrize("seconds", [15_032_385_535, 1 << 40, -(1 << 40), 1 << 62])
def test_a_time_that_no_database_has_room_for_is_no_time(
    sync_root: Path, sync_index: Index, seconds: int
) -> None:
    """A file that was unpacked may carry any; it is indexed, and found as it was the next time."""
    (sync_root / "a.md").write_text("# One\n")
    os.utime(sync_root / "a.md", ns=(seconds * 10**9,) * 2)
    assert sync_index.sync().created == ("a.md",)
    assert not any(sync_index.sync())
