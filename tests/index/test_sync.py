"""Sync: what it reads, what it leaves alone, what it says of memories, and how it gets over a crash."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.errors import StorageFailed
from mdmem.index import text as text_module
from mdmem.index.database import Seen
from mdmem.index.index import Index
from mdmem.index.resolve import resolve
from mdmem.index.sync import Sync, Work
from mdmem.index.synced import Synced, moves
from mdmem.index.view import View
from mdmem.vault.paths import Namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

IS_ROOT = os.geteuid() == 0
NOBODY = 65534
PARTS = ("names", "fields", "sections", "blocks", "links", "citations", "tags", "urls")
DAY = 86_400
Rows = dict[str, list[Any]]


@pytest.fixture
def root(vault_root: Path) -> Path:
    return vault_root


@pytest.fixture
def index(root: Path) -> Iterator[Index]:
    index = Index(str(root))
    yield index
    index.close()


def put(root: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())


def rows_of(index: Index, *, without: str = "") -> Rows:
    """All rows about documents, with paths instead of numbers."""
    columns = "path, hash, problem, title, type, day, dated, ident"
    found = {
        "documents": index.rows(f"SELECT {columns} FROM documents WHERE path != ? ORDER BY path", (without,))
    }
    for part in PARTS:
        query = (
            f"SELECT d.path, x.* FROM {part} AS x JOIN documents AS d ON d.id = x.document WHERE d.path != ?"
        )
        found[part] = sorted(((path, *row) for path, _, *row in index.rows(query, (without,))), key=repr)
    found["texts"] = [path for path in index.text(lambda text: text.paths()) if path != without]
    return found


def texts(index: Index) -> list[str]:
    return index.text(lambda text: text.paths())


def passages(index: Index) -> int:
    return index.text(lambda text: text.searcher().num_docs)


def settled(index: Index) -> None:
    """Sync until no clock is in doubt."""
    while index.rows("SELECT 1 FROM documents WHERE racy"):
        index.sync()


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


def test_what_was_created_changed_and_removed_is_said(root: Path, index: Index) -> None:
    put(root, {"a.md": "a", "deep/b.md": "b", "c.json": "{}", "d.txt": "no memory", ".hidden.md": "x"})
    assert index.sync() == Synced(created=("a.md", "c.json", "deep/b.md"))
    assert index.sync() == Synced()
    put(root, {"a.md": "other", "e.md": "e"})
    (root / "c.json").unlink()
    assert index.sync() == Synced(created=("e.md",), changed=("a.md",), removed=("c.json",))
    assert texts(index) == ["a.md", "deep/b.md", "e.md"]
    assert index.sync() == Synced()


def test_progress_is_told_up_to_the_last_file(root: Path, index: Index) -> None:
    put(root, {f"{n}.md": "x" for n in range(12)})
    told: list[tuple[int, int]] = []
    index.sync(progress=lambda done, total: told.append((done, total)))
    assert told == [(12, 12)]
    told.clear()
    settled(index)
    index.sync(progress=lambda done, total: told.append((done, total)))
    assert told == []


def test_what_was_only_touched_is_not_taken_in_again(
    root: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"a.md": "created: no\n", "2024-01-31.md": "dated by its name\n", "b.md": "b"})
    index.sync()
    before = rows_of(index)
    paths = added(monkeypatch)
    for name in ("a.md", "2024-01-31.md"):
        status = (root / name).stat()
        os.utime(root / name, ns=(status.st_atime_ns, status.st_mtime_ns - 1_000))
    assert index.sync() == Synced()
    assert (
        index.rows("SELECT mtime_ns FROM documents WHERE path = 'a.md'")[0][0]
        == (root / "a.md").stat().st_mtime_ns
    )
    assert paths == []
    assert rows_of(index) == before


def test_the_day_of_an_undated_memory_is_that_of_its_file(root: Path, index: Index) -> None:
    put(root, {"a.md": "x", "b.md": "---\ncreated: 2020-02-02\n---\n"})
    index.sync()
    for name in ("a.md", "b.md"):
        os.utime(root / name, (5 * DAY, 5 * DAY))
    assert index.sync() == Synced(changed=("a.md",))
    assert index.rows("SELECT path, day FROM documents ORDER BY path") == [
        ("a.md", "1970-01-06"),
        ("b.md", "2020-02-02"),
    ]


def doubt(index: Index, root: Path, path: str) -> None:
    """Let a file look as it was when it was read, so shortly before that no clock can tell."""
    status = (root / path).lstat()
    seen = Seen(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    index._opened().see(path, path, seen, racy=True)


# README: Before it answers, it compares the size, times and number …
def test_a_file_that_is_written_again_and_looks_the_same_is_seen(root: Path, index: Index) -> None:
    """As git's index, a sync reads again what was written so shortly before it that no clock can tell."""
    put(root, {"a.md": "one", "b.md": "b"})
    settled_sync(index)
    for word in ("two", "six", "ten"):
        put(root, {"a.md": word})
        doubt(index, root, "a.md")
        assert index.sync() == Synced(changed=("a.md",))
    doubt(index, root, "a.md")
    assert index.sync() == Synced()
    settled(index)
    assert index.rows("SELECT path FROM documents WHERE racy") == []


def test_a_file_that_is_gone_and_back_by_the_time_it_is_read_has_changed(root: Path, index: Index) -> None:
    """Some programs save by deleting and making it anew; it was in doubt, too, so it is read as well."""
    put(root, {"a.md": "before"})
    index.sync()
    database, text = index._opened(), index._opened_text()
    put(root, {"a.md": "after"})
    assert Sync(index.vault, database, text).run(Work(read=("a.md",), gone=("a.md",))) == Synced(
        changed=("a.md",)
    )
    assert index.sync() == Synced()
    assert texts(index) == ["a.md"]


# ----------------------------------------------------------------------------------------- only what changed


def test_adding_a_memory_changes_no_other_ones_rows(root: Path, index: Index) -> None:
    files = {
        f"notes/{n}.md": f"# H{n}\n[[new]] [[{n + 1}]] `a.py#L1` #tag <https://e.org/{n}>\n" for n in range(9)
    }
    put(root, files)
    index.sync()
    before = rows_of(index)
    numbers = index.rows("SELECT id, path FROM documents ORDER BY id")
    put(root, {"notes/new.md": "---\naliases: [h1]\nid: x\n---\n[[1]] #tag\n"})
    assert index.sync() == Synced(created=("notes/new.md",))
    assert rows_of(index, without="notes/new.md") == before
    assert index.rows("SELECT id, path FROM documents ORDER BY id")[:-1] == numbers


# README: **Never stale.** A question first makes the index current …
def test_only_what_changed_is_taken_in(root: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, {f"{n}.md": "x" for n in range(9)})
    index.sync()
    paths = added(monkeypatch)
    put(root, {"3.md": "y", "new.md": "[[3]]"})
    index.sync()
    assert sorted(paths) == ["3.md", "new.md"]


def test_a_forward_link_finds_its_target_when_that_appears(root: Path, index: Index) -> None:
    view = View(index, index.vault)
    put(root, {"a.md": "[[Later]] [[other name]]\n"})
    index.sync()
    assert resolve(view, "Later", "a.md").path is None
    put(root, {"deep/Later.md": "---\naliases: [Other Name]\n---\n"})
    index.sync()
    assert resolve(view, "Later", "a.md").path == "deep/Later.md"
    assert resolve(view, "other name", "a.md").path == "deep/Later.md"
    assert view.sources(["later"]) == ["a.md"]
    (root / "deep/Later.md").unlink()
    index.sync()
    assert resolve(view, "Later", "a.md").path is None


def test_of_what_is_named_nothing_else_is_looked_at(root: Path, index: Index) -> None:
    put(root, {f"{folder}/{name}.md": "x" for folder in "ab" for name in "xy"})
    settled_sync(index)
    put(root, {f"{folder}/{name}.md": "changed" for folder in "ab" for name in "xyz"})
    assert index.sync(["a/x.md", "nowhere.md", "b/z.md"]) == Synced(created=("b/z.md",), changed=("a/x.md",))
    assert index.sync(["a"]) == Synced(created=("a/z.md",), changed=("a/y.md",))
    while index.rows("SELECT 1 FROM documents WHERE racy"):  # which is looked at once more, named or not
        index.sync(["a"])
    shutil.rmtree(root / "a")
    assert index.sync(["b/x.md"]) == Synced(changed=("b/x.md",))
    assert index.sync(["a"]) == Synced(removed=("a/x.md", "a/y.md", "a/z.md"))
    assert index.sync() == Synced(changed=("b/y.md",))


def settled_sync(index: Index) -> None:
    index.sync()
    settled(index)


# ----------------------------------------------------------------------------------------------------- moves


def test_a_memory_that_moves_is_known_by_its_content(root: Path, index: Index) -> None:
    put(root, {"a.md": "unlike any other", "b.md": "b"})
    index.sync()
    (root / "deep").mkdir()
    (root / "a.md").rename(root / "deep/c.md")
    assert index.sync() == Synced(moved=(("a.md", "deep/c.md"),))
    (root / "deep/c.md").rename(root / "d.md")
    assert index.sync() == Synced(moved=(("deep/c.md", "d.md"),))
    view = View(index, index.vault)
    assert view.moves() == {"a.md": "d.md", "deep/c.md": "d.md"}


RICH = """---
id: kept
tags: [db, Café]
---
# Head

See [[b]], `src/app.py#L1` and <https://example.org>. #inline/tag ^block
"""


def test_what_moves_to_another_folder_keeps_its_rows_and_is_found_there_alone(
    root: Path, index: Index
) -> None:
    put(root, {"old/rich.md": RICH, "old/data.json": '{"say": "quince"}', "old/empty.md": "", "b.md": "b"})
    settled_sync(index)
    numbers = dict(index.rows("SELECT path, id FROM documents"))
    (root / "old").rename(root / "new")
    names = ("data.json", "empty.md", "rich.md")
    assert index.sync() == Synced(moved=tuple((f"old/{name}", f"new/{name}") for name in names))
    now = dict(index.rows("SELECT path, id FROM documents"))
    assert [now[f"new/{name}"] for name in names] == [numbers[f"old/{name}"] for name in names]
    memory = mdmem.open(root)
    for question in ("inline", "tag:inline/tag", "tag:café", "head", "src", "kept path:new", "tag:db"):
        found = memory.search(question).hits
        assert {hit.path for hit in found} == ({"new/rich.md"} if question != "kept path:new" else set())
    assert [hit.path for hit in memory.search("quince").hits] == ["new/data.json"]
    before = rows_of(index)
    index.rebuild()
    assert rows_of(index) == before


def test_one_of_several_twins_that_moves_is_indexed_once(root: Path, index: Index) -> None:
    put(root, {"a/x.md": "same", "b/x.md": "same", "c/x.md": "same"})
    settled_sync(index)
    shutil.rmtree(root / "a")
    (root / "b").rename(root / "d")
    assert index.sync() == Synced(created=("d/x.md",), removed=("a/x.md", "b/x.md"))
    before = rows_of(index)
    assert before["texts"] == ["c/x.md", "d/x.md"]
    index.rebuild()
    assert rows_of(index) == before


def test_a_memory_that_moves_and_changes_is_known_by_its_id(root: Path, index: Index) -> None:
    put(root, {"a.md": "---\nid: one\n---\nfirst\n", "b.md": "b"})
    index.sync()
    (root / "a.md").unlink()
    put(root, {"c.md": "---\nid: one\n---\nsecond\n"})
    assert index.sync() == Synced(moved=(("a.md", "c.md"),))


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
    root: Path, index: Index, before: dict[str, str], after: dict[str, str]
) -> None:
    put(root, before)
    index.sync()
    for path in before:
        (root / path).unlink()
    put(root, after)
    assert index.sync() == Synced(created=tuple(sorted(after)), removed=tuple(sorted(before)))
    assert View(index, index.vault).moves() == {}


def test_an_id_says_more_than_content() -> None:
    gone = {"a": ("x", "h1"), "b": ("", "h2"), "e": ("", "h3")}
    created = {"c": ("x", "h2"), "d": ("", "h1"), "f": ("", "h3")}
    assert moves(gone, created) == {"a": "c", "e": "f"}
    assert moves({}, created) == moves(gone, {}) == {}


def test_a_path_that_is_taken_again_leads_nowhere_else(root: Path, index: Index) -> None:
    put(root, {"a.md": "the first"})
    index.sync()
    (root / "a.md").rename(root / "b.md")
    index.sync()
    view = View(index, index.vault)
    put(root, {"a.md": "another one"})
    index.sync()
    assert view.moves() == {}
    (root / "a.md").unlink()
    index.sync()
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


def problems(index: Index) -> dict[str, str]:
    return dict(View(index, index.vault).problems())


def test_a_file_that_cannot_be_a_memory_is_known_with_its_reason_until_it_can(
    root: Path, index: Index
) -> None:
    (root / ".mdmem/config.toml").write_text("[limits]\nmax_bytes = 100\n")
    put(root, {"bad.md": b"\xff", "big.md": "x" * 101, "good.md": "x"})
    (root / "link.md").symlink_to("good.md")
    os.mkfifo(root / "fifo.md")
    assert index.sync() == Synced(created=("good.md",))
    assert problems(index).keys() == {"bad.md", "big.md", "link.md", "fifo.md"}
    assert problems(index)["link.md"] == "a symbolic link"
    assert texts(index) == ["good.md"]
    for name in ("bad.md", "big.md", "link.md", "fifo.md"):
        (root / name).unlink()
        put(root, {name: f"now {name}"})
    assert index.sync() == Synced(created=("bad.md", "big.md", "fifo.md", "link.md"))
    assert problems(index) == {}
    put(root, {"good.md": b"\xfe", "bad.md": "x" * 200})
    assert index.sync() == Synced(removed=("bad.md", "good.md"))
    assert problems(index).keys() == {"good.md", "bad.md"}
    (root / "good.md").unlink()
    assert index.sync() == Synced()
    assert problems(index).keys() == {"bad.md"}


def test_a_memory_in_doubt_that_has_become_a_link_is_told_as_any_link(root: Path, index: Index) -> None:
    put(root, {"a.md": "x", "b.md": "y"})
    index.sync()
    doubt(index, root, "a.md")
    (root / "a.md").unlink()
    (root / "a.md").symlink_to("b.md")
    assert index.sync() == Synced(removed=("a.md",))
    assert problems(index) == {"a.md": "a symbolic link"}


def test_a_folder_in_doubt_that_has_become_a_link_is_not_followed(
    root: Path, index: Index, tmp_path: Path
) -> None:
    put(root, {"deep/a.md": "x"})
    put(tmp_path / "elsewhere", {"a.md": "a secret", "b.md": "another"})
    index.sync()
    doubt(index, root, "deep/a.md")
    shutil.rmtree(root / "deep")
    (root / "deep").symlink_to(tmp_path / "elsewhere")
    assert index.sync() == Synced(removed=("deep/a.md",))
    assert texts(index) == []


def test_names_in_another_unicode_spelling_are_one_memory(root: Path, index: Index) -> None:
    nfc, nfd = (unicodedata.normalize(form, "Größe.md") for form in ("NFC", "NFD"))
    put(root, {nfd: "x"})
    assert index.sync() == Synced(created=(nfc,))
    (root / nfd).rename(root / nfc)
    assert index.sync() == Synced()
    assert texts(index) == [nfc]


# ---------------------------------------------------------------------------------------------- permissions

SYNC = """
import encodings.ascii, importlib, os, pkgutil, sys
import mdmem
for module in pkgutil.walk_packages(mdmem.__path__, "mdmem."):
    if not module.name.startswith(("mdmem.__main__", "mdmem.adapters.", "mdmem.mcp.")):
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
    folder = Path(tempfile.mkdtemp(prefix="mdmem-sync-"))
    try:
        put(folder, {".mdmem/config.toml": "", "deep/a.md": "a", "other/b.md": "b"})
        folder.chmod(0o755)
        if IS_ROOT:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        command = [sys.executable, "-c", SYNC, str(folder), *([str(NOBODY)] if IS_ROOT else [])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
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
        shutil.rmtree(folder)


# --------------------------------------------------------------------------------------------------- crashes

CRASH = """
import os, signal, sys
from mdmem.index import sync
from mdmem.index.index import Index

def kill_before(frame, event, argument):
    if frame.f_code.co_filename != sync.__file__ or frame.f_code.co_name != "_write":
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


def crash(root: Path, before: str) -> None:
    """Kill a process that syncs before a line of `Sync._write`."""
    ended = subprocess.run([sys.executable, "-c", CRASH, str(root), before], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize("before", [*BETWEEN, "database.replace(entries)", "database.forget(gone)"])
def test_a_crash_between_the_two_stores_heals(root: Path, index: Index, before: str) -> None:
    put(root, {"same.md": "same", "a.md": "one", "gone.md": "gone"})
    settled_sync(index)
    index.close()
    put(root, {"a.md": "two\n\n# Two\n", "new.md": "new"})
    (root / "gone.md").unlink()
    crash(root, before)
    index.sync()
    assert index.notes == []
    assert texts(index) == ["a.md", "new.md", "same.md"]
    assert index.rows("SELECT path FROM pending") == []
    other = Index(str(root))
    other.rebuild()
    expected = rows_of(other), passages(other)
    assert (rows_of(index), passages(index)) == expected
    other.close()


@pytest.mark.parametrize("before", BETWEEN)
def test_a_first_run_that_crashes_is_gone_on_with(root: Path, index: Index, before: str) -> None:
    put(root, {f"{n}.md": f"# {n}" for n in range(5)})
    crash(root, before)
    index.sync()
    assert texts(index) == [f"{n}.md" for n in range(5)]
    assert passages(index) == 5


def test_what_a_crash_left_undone_and_is_gone_by_then_is_forgotten(root: Path, index: Index) -> None:
    put(root, {"a.md": "a", "b.md": "b", "c.md": "c"})
    crash(root, BETWEEN[1])
    for name in ("a.md", "b.md"):
        (root / name).unlink()
    (root / "b.md").symlink_to("c.md")
    index.sync()
    assert texts(index) == ["c.md"]
    assert problems(index) == {"b.md": "a symbolic link"}
    assert index.rows("SELECT path FROM pending") == []


# --------------------------------------------------------------------------------- a text index that is lost


def text_of(root: Path) -> Path:
    (text,) = root.glob(".mdmem/local/index/*/text")
    return text


def lose(root: Path) -> None:
    shutil.rmtree(text_of(root))


def older(root: Path) -> None:
    """Another text index, of another vault, in the place of ours."""
    text = text_of(root)
    lose(root)
    put(root.parent / "other", {".mdmem/config.toml": "", "b.md": "b"})
    other = Index(str(root.parent / "other"))
    other.sync()
    other.close()
    shutil.copytree(text_of(root.parent / "other"), text)


@pytest.mark.parametrize("how", [lose, older])
@pytest.mark.parametrize("crashed", [False, True])
def test_a_lost_text_index_is_made_anew_with_a_word_about_it(
    root: Path, index: Index, how: Callable[[Path], None], crashed: bool
) -> None:
    put(root, {f"{name}.md": name for name in "abc"})
    settled_sync(index)
    index.close()
    if crashed:
        put(root, {"d.md": "d"})
        crash(root, BETWEEN[0])
    how(root)
    index.sync()
    assert texts(index) == [f"{name}.md" for name in ("abcd" if crashed else "abc")]
    assert ["the text index was made anew" in note for note in index.notes] == [True]
    index.sync()
    assert len(index.notes) == 1


def test_a_text_index_that_is_lost_while_it_is_open_is_made_anew(root: Path, index: Index) -> None:
    put(root, {"a.md": "a", "b.md": "b"})
    settled_sync(index)
    assert texts(index) == ["a.md", "b.md"]
    lose(root)
    index.sync()
    assert texts(index) == ["a.md", "b.md"]
    assert len(index.notes) == 1


def test_a_sync_is_whole_when_it_fails(root: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stops it, the next one goes on from there."""
    put(root, {"a.md": "a"})
    index.sync()
    put(root, {"b.md": "b", "a.md": "changed"})

    def full(_: object, **__: object) -> int:
        raise StorageFailed(path="x", action="write the index", reason="No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(text_module.TextIndex, "commit", full)
        with pytest.raises(StorageFailed, match="No space left"):
            index.sync()
    index.sync()
    assert texts(index) == ["a.md", "b.md"]
    assert index.rows("SELECT path FROM pending") == []
    assert passages(index) == 2


def test_what_is_seen_is_kept_as_it_is_told(root: Path, index: Index) -> None:
    put(root, {"a.md": "a"})
    index.sync()
    status = (root / "a.md").stat()
    assert Seen(*index.rows("SELECT mtime_ns, ctime_ns, size, inode FROM documents")[0]) == Seen(
        status.st_mtime_ns, status.st_ctime_ns, 1, status.st_ino
    )


def test_a_first_run_that_is_called_off_leaves_no_memory_twice(root: Path, index: Index) -> None:
    put(root, {f"{folder}/{name}.md": "apple" for folder in "xyz" for name in "abc"})

    def called_off(done: int, _: int) -> None:
        if done > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.sync(progress=called_off)
    index.sync()
    assert len(index.text(lambda text: text.paths())) == 9
