"""The index: where it stands, how it gets over damage, and who may use it at the same time."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.document.document import digest
from mdmem.errors import MdmemError, StorageFailed
from mdmem.index.index import Index
from mdmem.index.sync import Synced
from mdmem.index.text_index import TextIndex
from tests import speed
from tests.programs import needs_readers
from tests.speed import soak_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


IS_ROOT = os.geteuid() == 0
NOBODY = 65534
STORES = ".mdmem/local/index"


def own(root: Path) -> Path:
    """The folder of the stores, once there is one."""
    (folder,) = (root / STORES).iterdir()
    return folder


@pytest.fixture
def root(vault_root: Path) -> Path:
    (vault_root / "notes").mkdir()
    for name in "abc":
        (vault_root / f"notes/{name}.md").write_text(f"# {name}\n[[{name}]]\n")
    return vault_root


@pytest.fixture
def index(root: Path) -> Iterator[Index]:
    index = Index(str(root))
    yield index
    index.close()


def paths(index: Index) -> tuple[list[str], list[str]]:
    """What both stores hold."""
    documents = [path for (path,) in index.rows("SELECT path FROM documents ORDER BY path")]
    return documents, index.text(lambda text: text.paths())


@pytest.mark.parametrize("store", ["database.sqlite", "text/mdmem-version"])
def test_an_index_of_a_later_version_stays_as_it_is_and_another_one_answers(root: Path, store: str) -> None:
    with closing(Index(str(root))) as index:
        index.sync()
    newer = own(root) / store
    if newer.suffix:
        with closing(sqlite3.connect(newer)) as connection:
            connection.execute("PRAGMA user_version = 1000")
    else:
        newer.write_text("1000")
    before = newer.read_bytes()
    for _ in range(2):
        with closing(Index(str(root))) as older:
            older.sync()
            assert paths(older) == (["notes/a.md", "notes/b.md", "notes/c.md"],) * 2
            assert "a later version of mdmem has written it (1000, not " in " ".join(older.notes)
    assert newer.read_bytes() == before


def test_headings_are_known_of_the_content_that_was_indexed_alone(root: Path, index: Index) -> None:
    text = "# A\n\n## B\n\ntext\n\n# C\n"
    (root / "notes/a.md").write_text(text)
    (root / "notes/bare.md").write_text("text\n")
    index.sync()
    assert index.headings("notes/a.md", digest(text.encode())) == [(1, ("A",)), (3, ("A", "B")), (7, ("C",))]
    assert index.headings("notes/a.md", digest(b"another text")) is None
    assert index.headings("notes/bare.md", digest(b"text\n")) == []
    assert index.headings("notes/nowhere.md", "") is None


def both(*names: str) -> tuple[list[str], list[str]]:
    here = [f"notes/{name}.md" for name in names]
    return here, here


# ---------------------------------------------------------------------------------------- opening and closing


def test_making_one_opens_nothing(root: Path) -> None:
    Index(str(root))
    assert not (root / ".mdmem/local").exists()


def test_it_stands_in_the_vault_and_git_ignores_it(root: Path, index: Index) -> None:
    index.sync()
    assert index.folder == str(own(root))
    assert index.notes == []
    assert (root / ".mdmem/local/.gitignore").read_text() == "*\n"


def test_a_question_opens_what_was_closed(index: Index) -> None:
    index.sync()
    index.close()
    index.close()
    assert paths(index) == both("a", "b", "c")
    assert index.sync() == Synced()


def test_nothing_is_left_open(index: Index) -> None:
    def opened() -> list[str]:
        links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
        found = [os.readlink(link) for link in links if os.path.lexists(link)]
        return [path for path in found if path.startswith(index.vault.root) and STORES in path]

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("what is open cannot be asked here")
    index.sync()
    assert opened()
    index.close()
    assert opened() == []


def test_deleting_it_all_changes_no_answer(root: Path, index: Index) -> None:
    index.sync()
    index.close()
    before = paths(index)
    shutil.rmtree(root / ".mdmem/local")
    again = Index(str(root))
    assert again.sync().created == tuple(before[0])
    assert paths(again) == before
    assert again.notes == []
    again.close()


def test_a_rebuild_says_everything_again(index: Index) -> None:
    index.sync()
    told: list[tuple[int, int]] = []
    assert index.rebuild(lambda done, total: told.append((done, total))).created == tuple(
        both("a", "b", "c")[0]
    )
    assert told == [(3, 3)]
    assert paths(index) == both("a", "b", "c")
    assert index.notes == []


# --------------------------------------------------------------------------------------------------- damage


def test_what_a_run_that_was_given_up_had_read_is_not_taken_in_twice(root: Path, index: Index) -> None:
    """As when a client goes away while the index is made for its question."""
    for number in range(150):
        (root / f"notes/{number}.md").write_text("needle\n")

    def give_up(_done: int, _total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        index.sync(progress=give_up)
    index.sync()
    documents, _ = paths(index)
    assert index.text(lambda text: text.searcher().num_docs) == len(documents) == 153


def stores(root: Path) -> list[Path]:
    return sorted(path for path in (root / STORES).rglob("*") if path.is_file() and path.name != "lock")


def put(path: Path, data: bytes) -> None:
    """Put another file in the place: the text index maps its own, and of those nothing can go."""
    aside = path.with_name("aside")
    aside.write_bytes(data)
    aside.replace(path)


def cut(path: Path) -> None:
    put(path, path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    put(path, random.Random(7).randbytes(path.stat().st_size))


def empty(path: Path) -> None:
    put(path, b"")


@pytest.mark.parametrize("harm", soak_most([cut, garble, empty, Path.unlink], quick=(0, 3)))
def test_whichever_file_is_damaged_the_answers_are_right(root: Path, harm: Callable[[Path], None]) -> None:
    first = Index(str(root))
    first.sync()
    first.close()
    names = [path.name for path in stores(root)]
    for number, name in enumerate(names):
        path = next(
            (p for p in stores(root) if p.name == name), stores(root)[min(number, len(stores(root)) - 1)]
        )
        harm(path)
        index = Index(str(root))
        index.sync()
        assert paths(index) == both("a", "b", "c"), path
        assert index.text(lambda text: text.searcher().num_docs) == 3
        assert len(index.notes) <= 1
        index.close()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("database.sqlite", b"no database " * 500),
        ("text/meta.json", b"{"),
        ("text/meta.json", b"[]"),
        ("text/mdmem-version", b"0"),
        ("text/mdmem-version", b"\xff"),
    ],
)
def test_what_is_not_ours_is_made_anew_with_a_word_about_it(root: Path, name: str, content: bytes) -> None:
    index = Index(str(root))
    index.sync()
    index.close()
    (own(root) / name).write_bytes(content)
    index.sync()
    assert paths(index) == both("a", "b", "c")
    assert len(index.notes) == 1
    assert "rebuilt" in index.notes[0]
    index.close()


@pytest.mark.parametrize("harm", [garble, cut, empty])
def test_damage_that_a_question_meets_is_no_wrong_answer(
    root: Path, index: Index, harm: Callable[[Path], None]
) -> None:
    """It was whole when it was opened; the question is answered from one that is new and current."""
    index.sync()
    index.close()
    index.rows("SELECT 1")
    for path in stores(root):
        if path.parent.name == "text" and path.name != "mdmem-version":
            harm(path)
    assert index.text(lambda text: text.paths()) == both("a", "b", "c")[0]
    assert paths(index) == both("a", "b", "c")


def test_a_damaged_text_index_leaves_the_database_as_it_is(root: Path, index: Index) -> None:
    """What was first seen of cited code, and where memories went, is nowhere else."""
    index.sync()
    (root / "notes/a.md").rename(root / "notes/d.md")
    index.sync()
    index.close()
    (own(root) / "text/meta.json").write_bytes(b"{")
    index.sync()
    assert paths(index) == both("b", "c", "d")
    assert index.rows("SELECT old, new FROM moves") == [("notes/a.md", "notes/d.md")]


def test_what_does_not_need_the_text_index_leaves_a_few_memories_to_what_does(root: Path) -> None:
    with closing(Index(str(root))) as asked:
        assert asked.sync(texts=False).created == ("notes/a.md", "notes/b.md", "notes/c.md")
        assert not (own(root) / "text").exists()
    with closing(Index(str(root))) as index:
        index.sync()
        assert paths(index) == both("a", "b", "c")
        (root / "notes/a.md").unlink()
        (root / "notes/d.md").write_text("# d\n")
        assert index.sync(texts=False) == Synced(created=("notes/d.md",), removed=("notes/a.md",))
        assert paths(index) == (both("b", "c", "d")[0], both("a", "b", "c")[1])
        assert index.sync() == Synced()
        assert paths(index) == both("b", "c", "d")


def test_a_text_index_whose_database_was_deleted_is_not_taken_for_that_of_the_new_one(root: Path) -> None:
    with closing(Index(str(root))) as index:
        index.sync()
    (own(root) / "database.sqlite").unlink()
    (root / "notes/a.md").unlink()
    with closing(Index(str(root))) as index:
        index.sync(texts=False)
        index.sync()
        assert paths(index) == both("b", "c")


def test_many_memories_are_taken_into_the_text_index_at_once(root: Path) -> None:
    names = [f"n{number:02}" for number in range(60)]
    with closing(Index(str(root))) as index:
        for few in (names[:30], names[30:]):
            for name in few:
                (root / f"notes/{name}.md").write_text(f"# {name}\n")
            index.sync(texts=False)
        assert index.rows("SELECT * FROM pending") == []
        assert paths(index) == both("a", "b", "c", *names)


def test_a_store_that_stays_damaged_is_an_error(index: Index) -> None:
    index.sync()
    with pytest.raises(MdmemError, match="no such table"):
        index.rows("SELECT * FROM nowhere")
    assert paths(index) == both("a", "b", "c")


# ----------------------------------------------------------------------------------- where it cannot be kept


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("part", [".mdmem/local/index", ".mdmem/local"])
def test_a_link_in_its_place_is_not_followed(root: Path, cache: Path, tmp_path: Path, part: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / part).parent.mkdir(exist_ok=True)
    (root / part).symlink_to(tmp_path / "elsewhere")
    index = Index(str(root))
    index.sync()
    assert paths(index) == both("a", "b", "c")
    assert Path(index.folder).is_relative_to(cache)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert len(index.notes) == 1
    assert index.folder in index.notes[0]
    index.close()


def test_the_caches_of_two_vaults_are_two(root: Path, cache: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "other")
    (tmp_path / "other/notes/a.md").unlink()
    indexes = []
    for each in (root, tmp_path / "other"):
        (each / ".mdmem/local").symlink_to(tmp_path)
        indexes.append(Index(str(each)))
    assert [len(index.sync().created) for index in indexes] == [3, 2]
    assert [len(index.sync().created) for index in indexes] == [0, 0]
    assert indexes[0].folder != indexes[1].folder
    for index in indexes:
        index.close()
    assert cache.exists()


def test_where_it_can_be_kept_nowhere_that_is_said(root: Path, cache: Path) -> None:
    (root / ".mdmem/local").symlink_to(root)
    cache.write_text("a file in the place of the cache")
    with pytest.raises(StorageFailed, match=str(cache)):
        Index(str(root)).sync()


ASK = """
import encodings.ascii, importlib, json, os, pkgutil, sys
import mdmem, platformdirs.unix
for module in pkgutil.walk_packages(mdmem.__path__, "mdmem."):  # another user may read none of it later
    if module.name.split(".")[1] in {"document", "index", "markdown", "text", "vault"}:
        importlib.import_module(module.name)
from mdmem.index.index import Index
root, user = sys.argv[1], int(sys.argv[2])
if user:
    os.setgroups([]), os.setgid(user), os.setuid(user)
for _ in range(2):
    index = Index(root)
    synced = index.sync()
    print(json.dumps([len(synced.created), index.text(lambda text: text.paths()), index.folder, index.notes]))
    index.close()
"""


def told(command: Sequence[str], root: Path, cache: Path, user: int) -> list[list[Any]]:
    """What another process is told, twice."""
    own = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(cache))
    ran = subprocess.run(
        [*command, sys.executable, "-c", ASK, str(root), str(user)],
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, with a vault and a place for a cache that belongs to nobody."""
    needs_readers()
    folder = Path(tempfile.mkdtemp(prefix="mdmem-index-"))
    (folder / "vault/.mdmem").mkdir(parents=True)
    (folder / "vault/.mdmem/config.toml").touch()
    (folder / "vault/a.md").write_text("# A\n")
    (folder / "cache").mkdir()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    if IS_ROOT:
        os.chown(folder / "cache", NOBODY, NOBODY)
    yield folder
    (folder / "vault/.mdmem").chmod(0o755)
    (folder / "vault").chmod(0o755)
    shutil.rmtree(folder)


def test_a_vault_that_may_not_be_written_to_is_searched_from_the_cache(open_folder: Path) -> None:
    vault, cache = open_folder / "vault", open_folder / "cache"
    for folder in (vault / ".mdmem", vault):
        folder.chmod(0o555)
    before = sorted(vault.rglob("*"))
    first, second = told([], vault, cache, NOBODY if IS_ROOT else 0)
    assert (first[0], second[0]) == (1, 0)
    assert first[1] == second[1] == ["a.md"]
    assert first[2].startswith(str(cache))
    assert [first[2] in note for note in first[3]] == [True]
    assert first[3] == second[3]
    assert sorted(vault.rglob("*")) == before


def test_an_index_that_somebody_else_keeps_there_is_left_alone(open_folder: Path) -> None:
    if not IS_ROOT:
        pytest.skip("only root can be two users")
    vault, cache = open_folder / "vault", open_folder / "cache"
    with closing(Index(str(vault))) as mine:
        mine.sync()
        assert mine.folder == str(own(vault))
    first, second = told([], vault, cache, NOBODY)
    assert first[1] == second[1] == ["a.md"]
    assert first[2].startswith(str(cache))


def test_a_read_only_file_system_is_searched_from_the_cache(open_folder: Path) -> None:
    vault, cache = open_folder / "vault", open_folder / "cache"
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    words = ["unshare", "--mount", *([] if IS_ROOT else ["--user", "--map-root-user"]), "sh", "-c", script]
    tried = shutil.which("unshare") and subprocess.run([*words, str(vault), "true"], check=False)
    if not tried or tried.returncode:
        pytest.skip("nothing can be mounted here")
    first, second = told([*words, str(vault)], vault, cache, 0)
    assert (first[0], second[0]) == (1, 0)
    assert first[1] == second[1] == ["a.md"]
    assert first[2].startswith(str(cache))
    assert len(first[3]) == 1


# ----------------------------------------------------------------------------------- several at the same time


def test_one_that_another_process_made_anew_is_opened_again(root: Path, index: Index) -> None:
    index.sync()
    other = Index(str(root))
    other.rebuild()
    (root / "notes/d.md").write_text("d")
    assert index.sync().created == ("notes/d.md",)
    assert paths(index) == paths(other) == both("a", "b", "c", "d")
    assert index.notes == other.notes == []
    other.close()


def test_one_that_is_deleted_while_it_is_open_is_made_anew(root: Path, index: Index) -> None:
    index.sync()
    for path in (STORES, ".mdmem/local"):
        shutil.rmtree(root / path)
        assert paths(index) == both("a", "b", "c")
        shutil.rmtree(root / path)
        index.sync()
        assert paths(index) == both("a", "b", "c")
    assert index.notes == []


def test_whoever_is_stopped_while_it_writes_stops_nobody(root: Path) -> None:
    program = (
        "from mdmem.index.index import Index\n"
        f"index = Index({str(root)!r})\nindex.sync()\n"
        "with index._lock_index(): print('locked', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"locked\n"
        holder.send_signal(signal.SIGSTOP)
        try:
            (root / "notes/d.md").write_text("new")
            asked = Index(str(root))
            asked.sync()
            assert paths(asked) == both("a", "b", "c", "d")
            assert asked.notes == [
                f"the index stands in {asked.folder}, not in the vault: its lock is not given back"
            ]
        finally:
            holder.kill()


def test_one_that_came_with_the_files_is_not_used(root: Path, index: Index, tmp_path: Path) -> None:
    """Neither in the place where it stood elsewhere, nor below the name that one has here by chance."""
    index.sync()
    (own(root) / "database.sqlite-wal").unlink(missing_ok=True)
    index.close()
    shutil.copytree(root, tmp_path / "copy")
    with closing(sqlite3.connect(own(tmp_path / "copy") / "database.sqlite")) as planted:
        planted.execute("UPDATE documents SET path = 'planted.md' WHERE path = 'a.md'")
        planted.commit()
    copy = Index(str(tmp_path / "copy"))
    copy.sync()
    assert paths(copy) == both("a", "b", "c")
    assert Path(copy.folder).name != own(root).name
    assert len(os.listdir(tmp_path / "copy" / STORES)) == 2


def test_a_question_to_one_that_another_process_is_making_anew_waits_for_it(root: Path, index: Index) -> None:
    index.sync()
    for path in stores(root):
        path.unlink()
    other = Index(str(root))
    assert other.rows("SELECT path FROM documents") == []
    assert len(index.rows("SELECT path FROM documents")) == 3
    other.close()


def test_of_a_new_one_everything_is_looked_at_whatever_is_named(root: Path, index: Index) -> None:
    """Who names paths believes that the rest is known."""
    assert index.sync(["notes/a.md"]).created == tuple(both("a", "b", "c")[0])
    other = Index(str(root))
    other.close()
    index._delete_stores(index._stamp_stores())
    assert len(index.sync(["notes/a.md"]).created) == 3


def test_threads_may_ask_at_once(root: Path, index: Index) -> None:
    found: list[Any] = []
    steps = 8 if speed.is_all else 4

    def ask(number: int) -> None:
        for step in range(steps):
            (root / f"notes/{number}-{step}.md").write_text(f"{number} {step}")
            index.sync()
            documents, texts = paths(index)
            found.append(f"notes/{number}-{step}.md" in documents)
            found.append(f"notes/{number}-{step}.md" in texts)
            if step == number:
                index.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * (8 * steps)
    assert index.notes == []


def test_two_objects_of_one_process_see_each_others_work(root: Path, index: Index) -> None:
    index.sync()
    other = Index(str(root))
    for step in range(5):
        (root / f"notes/{step}.md").write_text("x")
        first, second = (index, other) if step % 2 else (other, index)
        assert first.sync().created == (f"notes/{step}.md",)
        assert second.sync() == Synced()
        assert paths(first) == paths(second)
    other.close()


# --------------------------------------------------------------------------------------------------- watching


def test_a_watcher_that_tells_what_changed_spares_a_look_at_the_rest(root: Path, index: Index) -> None:
    told: list[list[str] | None] = [None]
    index.follow(tell := told.pop)
    index.sync()
    for name in "def":
        (root / f"notes/{name}.md").write_text(name)
    told[:] = [[]]
    assert index.sync() == Synced()
    told[:] = [["notes/d.md"]]
    assert index.sync().created == ("notes/d.md",)
    assert index.sync(["notes/e.md"]).created == ("notes/e.md",)
    told[:] = [None]  # it does not know
    assert index.sync().created == ("notes/f.md",)
    (root / "notes/g.md").write_text("g")
    index.unfollow(tell)
    assert index.sync().created == ("notes/g.md",)


def test_what_was_told_is_looked_at_until_that_succeeds(
    root: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[str] | None] = [None]
    index.follow(told.pop)
    index.sync()
    (root / "notes/d.md").write_text("d")

    def full(_: object, **__: object) -> int:
        raise StorageFailed(path="elsewhere", action="write the index", reason="No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(TextIndex, "commit", full)
        told[:] = [["notes/d.md"]]
        with pytest.raises(StorageFailed):
            index.sync()
    told[:] = [[]]
    index.sync()
    assert paths(index) == both("a", "b", "c", "d")


def test_an_index_that_is_new_is_looked_at_whole_whatever_is_told(root: Path, index: Index) -> None:
    index.follow(list)
    assert len(index.sync().created) == 3
    assert len(index.rebuild().created) == 3
    index.close()
    (root / "notes/d.md").write_text("d")
    assert index.sync().created == ("notes/d.md",)
    other = Index(str(root))
    other.rebuild()
    (root / "notes/e.md").write_text("e")
    assert index.sync().created == ("notes/e.md",)
    other.close()


def test_a_text_index_that_is_lost_is_made_anew_whatever_is_told(root: Path, index: Index) -> None:
    index.sync()
    index.follow(list)
    shutil.rmtree(own(root) / "text")
    index.sync()
    assert paths(index) == both("a", "b", "c")


@pytest.mark.soak
def test_a_vault_that_is_deleted_at_any_instant_of_a_sync_is_no_bug(root: Path) -> None:
    instants = range(1, 10_000)
    assert any(not delete_amid_sync(root, instant) for instant in instants)


def test_a_vault_that_is_deleted_as_its_index_was_opened_is_no_bug(root: Path) -> None:
    assert delete_amid_sync(root, 1, os.stat, "database.py")


def delete_amid_sync(root: Path, instant: int, *at: Any) -> bool:
    """Delete the vault before the given call to the system, or one out of a file; say whether it came."""
    copy = root.with_name("deleted")
    shutil.copytree(root, copy)
    calls = 0

    def delete(frame: Any, event: str, call: Any) -> None:
        nonlocal calls
        if event != "c_call" or (at and (call, os.path.basename(frame.f_code.co_filename)) != at):
            return
        name = getattr(call, "__qualname__", "")
        if getattr(call, "__module__", "") in {"posix", "_io", "fcntl"} or name.startswith(
            ("Connection", "Index")
        ):
            calls += 1
            if calls == instant:
                sys.setprofile(None)
                shutil.rmtree(copy, ignore_errors=True)

    with closing(Index(str(copy))) as index, suppress(MdmemError):
        sys.setprofile(delete)
        try:
            index.sync()
        finally:
            sys.setprofile(None)
    shutil.rmtree(copy, ignore_errors=True)
    return calls >= instant
