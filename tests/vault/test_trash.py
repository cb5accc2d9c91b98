"""What was overwritten stays until the bounds of the config are passed, oldest first."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import socket
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.diagnostic import as_json
from mdmem.errors import PathRefused
from mdmem.vault import config, files
from mdmem.vault.mark import signed
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.store import Entry, FileChange, entry_from
from mdmem.vault.trash import TrashFolder
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry(number: int, before: bytes | None, *, age: timedelta = timedelta()) -> Entry:
    time = (NOW - age).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    changed = FileChange(path=f"{number}.md", before=digest(before) if before else None, after=None)
    return Entry(id=f"id-{number}", time=time, actor="ann", message=f"change {number}", files=(changed,))


@pytest.fixture
def trash(tmp_path: Path) -> TrashFolder:
    (tmp_path / "trash").mkdir()
    return TrashFolder(str(tmp_path / "trash"), config.Trash())


@contextmanager
def folder_of(path: Path) -> Iterator[int]:
    with files.opened(str(path)) as folder:
        yield folder


def put(trash: TrashFolder, data: bytes, *, age: timedelta = timedelta(), number: int = 0) -> str:
    """Put content into the trash, and log that it was replaced `age` ago."""
    source = Path(trash.path).parent
    (source / "old").write_bytes(data)
    with folder_of(source) as folder:
        trash.put(folder, "old", digest(data))
    trash.record(entry(number, data, age=age))
    return digest(data)


def content(trash: TrashFolder, digest: str) -> bytes | None:
    kept = trash.kept(digest)
    return kept.data if kept else None


def names(trash: TrashFolder) -> set[str]:
    return set(os.listdir(trash.path)) - {"log.jsonl"}


# --------------------------------------------------------------------------------------------------- contents


def test_content_is_kept_under_its_hash(trash: TrashFolder) -> None:
    name = put(trash, b"old\r\n\xff")
    assert content(trash, name) == b"old\r\n\xff"
    assert not (Path(trash.path).parent / "old").exists()


def test_the_same_content_is_kept_once(trash: TrashFolder) -> None:
    assert put(trash, b"old") == put(trash, b"old")
    assert names(trash) == {digest(b"old")}


def test_what_is_not_kept_is_none(trash: TrashFolder, tmp_path: Path) -> None:
    assert content(trash, digest(b"never")) is None
    assert content(TrashFolder(str(tmp_path / "missing"), config.Trash()), digest(b"x")) is None


def test_a_name_that_is_no_hash_of_its_content_gives_nothing(trash: TrashFolder, tmp_path: Path) -> None:
    """The log may be a file that came with somebody else's repository, and its hashes paths."""
    (tmp_path / "secret").write_bytes(b"secret")
    assert content(trash, "../secret") is None
    name = put(trash, b"old")
    (Path(trash.path) / name).write_bytes(b"rotten")
    assert content(trash, name) is None


def test_content_from_another_file_system_keeps_its_permissions(trash: TrashFolder) -> None:
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == Path(trash.path).stat().st_dev:
        pytest.skip("there is no second file system here")
    source = shared / f"mdmem-test-{os.getpid()}.md"
    name = digest(b"private")
    # What a crash in the middle of an earlier copy left behind.
    (Path(trash.path) / f"{name}.part").write_bytes(b"priv")
    try:
        source.write_bytes(b"private")
        source.chmod(0o600)
        with folder_of(shared) as folder:
            trash.put(folder, source.name, name)
        assert not source.exists()
    finally:
        source.unlink(missing_ok=True)
    assert content(trash, name) == b"private"
    assert (Path(trash.path) / name).stat().st_mode & 0o777 == 0o600
    assert names(trash) == {name}


# -------------------------------------------------------------------------------------------------------- log


def test_an_entry_comes_back_from_its_json() -> None:
    made = entry(1, b"old")
    assert entry_from(json.loads(json.dumps(as_json(made)))) == made


def test_an_entry_of_a_newer_mdmem_is_read_without_what_is_new_in_it() -> None:
    made = entry(1, b"old")
    shape = json.loads(json.dumps(as_json(made)))
    shape["host"] = shape["files"][0]["kind"] = "new"
    assert entry_from(shape) == made


def test_an_entry_gives_a_file_no_more_than_permissions() -> None:
    shape = json.loads(json.dumps(as_json(entry(1, b"old"))))
    shape["files"][0]["mode"] = 0o104755
    assert entry_from(shape).files[0].mode == 0o755


def test_the_log_is_read_newest_first(trash: TrashFolder) -> None:
    made = [entry(number, None) for number in range(3)]
    for each in made:
        trash.record(each)
    assert list(trash.entries()) == made[::-1]


def test_there_is_no_log_before_the_first_change(trash: TrashFolder) -> None:
    assert list(trash.entries()) == []


@pytest.mark.parametrize(
    "torn", [b'{"id": "x", "ti', b"\n\n", b"\0" * 40, b"[]\n", b"3\n", b'{"id": "x"}\n', b"\xff\xfe\n"]
)
def test_a_torn_line_is_passed_over_and_harms_no_other(trash: TrashFolder, torn: bytes) -> None:
    trash.record(entry(1, None))
    with open(os.path.join(trash.path, "log.jsonl"), "ab") as log:
        log.write(torn)
    trash.record(entry(2, None))
    assert [each.id for each in trash.entries()] == ["id-2", "id-1"]


def test_an_entry_that_was_logged_twice_is_one(trash: TrashFolder) -> None:
    """A crash after the log was written, and before the journal's record went, writes it again."""
    for number in (1, 2, 2):
        trash.record(entry(number, None))
    assert [each.id for each in trash.entries()] == ["id-2", "id-1"]


def test_the_log_is_never_written_through_a_link(trash: TrashFolder, tmp_path: Path) -> None:
    (tmp_path / "profile").write_bytes(b"# mine\n")
    os.symlink(tmp_path / "profile", os.path.join(trash.path, "log.jsonl"))
    with pytest.raises(PathRefused, match="symbolic link"):
        trash.record(entry(1, None))
    assert (tmp_path / "profile").read_bytes() == b"# mine\n"


# ------------------------------------------------------------------------------------------------------ sweep


def test_a_sweep_drops_what_was_replaced_too_long_ago(trash: TrashFolder) -> None:
    trash.policy = config.Trash(max_days=30)
    old, new = put(trash, b"old", age=31 * DAY, number=1), put(trash, b"new", age=29 * DAY, number=2)
    assert trash.sweep(NOW.timestamp()) == 1
    assert (content(trash, old), content(trash, new)) == (None, b"new")
    assert [each.id for each in trash.entries()] == ["id-2"]


def test_a_sweep_drops_the_oldest_when_there_is_too_much(trash: TrashFolder) -> None:
    """When each was replaced counts, not when its file was written."""
    trash.policy = config.Trash(max_bytes=10)
    kept = [put(trash, b"%04d" % age, age=age * DAY, number=age) for age in (3, 1, 2, 4)]
    assert trash.sweep(NOW.timestamp()) == 2
    assert names(trash) == {kept[1], kept[2]}
    assert len(list(trash.entries())) == 4


def test_content_that_was_replaced_again_is_as_young_as_the_last_time(trash: TrashFolder) -> None:
    trash.policy = config.Trash(max_days=30)
    name = put(trash, b"old", age=40 * DAY, number=1)
    put(trash, b"old", age=2 * DAY, number=2)
    assert trash.sweep(NOW.timestamp()) == 0
    assert content(trash, name) == b"old"


def test_content_that_no_entry_names_goes_by_the_time_of_its_file(trash: TrashFolder) -> None:
    trash.policy = config.Trash(max_days=30)
    for data, age in ((b"old", 31 * DAY), (b"new", 29 * DAY)):
        path = Path(trash.path) / digest(data)
        path.write_bytes(data)
        os.utime(path, (0, (NOW - age).timestamp()))
    assert trash.sweep(NOW.timestamp()) == 1
    assert names(trash) == {digest(b"new")}


def test_a_sweep_of_nothing_drops_nothing(trash: TrashFolder) -> None:
    put(trash, b"old", age=DAY)
    assert trash.sweep(NOW.timestamp()) == 0
    assert len(names(trash)) == 1


def test_a_sweep_removes_a_part_that_a_crash_left(trash: TrashFolder, tmp_path: Path) -> None:
    part = tmp_path / "trash" / f"{digest(b'cut off')}.part"
    part.write_bytes(b"cut")
    assert trash.sweep(NOW.timestamp()) == 0
    assert not part.exists()


def test_a_sweep_with_the_largest_bounds_drops_nothing(trash: TrashFolder) -> None:
    trash.policy = config.Trash(max_bytes=2**63 - 1, max_days=2**63 - 1)
    put(trash, b"old", age=9999 * DAY)
    assert trash.sweep(NOW.timestamp()) == 0
    assert len(list(trash.entries())) == 1


class Swept(TrashFolder):
    """Counts its sweeps."""

    sweeps = 0

    def sweep(self, now: float, last: Entry | None = None) -> int:
        self.sweeps += 1
        return super().sweep(now, last)


@pytest.fixture
def swept(tmp_path: Path) -> Swept:
    (tmp_path / "trash").mkdir()
    return Swept(str(tmp_path / "trash"), config.Trash(max_bytes=10_000))


def change(trash: TrashFolder, number: int, size: int) -> str:
    """Make a change that replaces `size` bytes."""
    data = b"%06d" % number + bytes(size - 6)
    made = entry(number, data)._replace(time=datetime.now(UTC).isoformat(timespec="milliseconds"))
    source = Path(trash.path).parent
    (source / "old").write_bytes(data)
    trash.record(made)
    with folder_of(source) as folder:
        trash.put(folder, "old", digest(data))
    trash.settle(made)
    return digest(data)


def held(trash: TrashFolder) -> int:
    return sum(path.stat().st_size for path in Path(trash.path).iterdir() if path.name != "log.jsonl")


@pytest.mark.parametrize("processes", [1, 40])
def test_the_bound_is_kept_after_every_change(swept: Swept, processes: int) -> None:
    """And a full trash is not looked over for each; the newest contents are those that stay."""
    made, sweeps = [], 0
    for number in range(200):
        if number % (200 // processes) == 0:
            sweeps, swept = sweeps + swept.sweeps, Swept(swept.path, swept.policy)
        made.append(change(swept, number, 200))
        assert held(swept) <= 10_000
    assert sweeps + swept.sweeps < 40
    assert set(made[-40:]) <= names(swept) <= set(made)


def test_what_the_last_change_replaced_stays_however_much_it_is(swept: Swept) -> None:
    first, large = change(swept, 1, 200), change(swept, 2, 30_000)
    assert names(swept) == {large}
    small = change(swept, 3, 200)
    assert names(swept) == {small}
    assert first not in names(swept)
    swept.policy = config.Trash(max_bytes=0)
    change(swept, 4, 200)
    assert names(swept) == set()


def test_what_was_written_goes_before_what_was_replaced(swept: Swept) -> None:
    replaced = change(swept, 1, 6000)
    wrote = digest(b"w" * 6000)
    made = entry(2, None)
    made = made._replace(
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        files=(made.files[0]._replace(after=wrote),),
    )
    swept.record(made)
    swept.keep_written(b"w" * 6000, wrote, None)
    assert content(swept, wrote) == b"w" * 6000
    swept.settle(made)
    assert names(swept) == {replaced}


def test_nothing_that_was_written_is_kept_where_nothing_is_to_be(swept: Swept) -> None:
    swept.policy = config.Trash(max_bytes=0)
    swept.keep_written(b"w", digest(b"w"), None)
    assert names(swept) == set()


@pytest.mark.parametrize("count", [None, b"", b"1", b"x y\n", b"7 7\n", b"-1 9999999999999\n", b"9" * 200])
def test_a_count_that_is_wrong_is_counted_anew(swept: Swept, count: bytes | None) -> None:
    change(swept, 1, 9000)
    number = Path(swept.path + ".size")
    if count is None:
        number.unlink()
    else:
        number.write_bytes(count)
    kept = change(swept, 2, 9000)
    assert names(swept) == {kept}


def test_what_is_too_old_goes_once_a_day_and_so_do_leftovers(swept: Swept) -> None:
    swept.policy = config.Trash(max_days=30)
    old = change(swept, 1, 200)
    late = entry(1, None)._replace(time=(datetime.now(UTC) - 31 * DAY).isoformat())
    for path in (Path(swept.path) / old, Path(swept.path) / "x.part"):
        path.touch()
        os.utime(path, (0, (datetime.now(UTC) - 31 * DAY).timestamp()))
    (Path(swept.path) / "log.jsonl").write_bytes(signed(as_json(late)) + b"\n")
    size, day = Path(swept.path + ".size").read_text().split()
    kept, before = change(swept, 2, 200), swept.sweeps
    assert {kept, old, "x.part"} == names(swept), "it was swept a moment ago"
    Path(swept.path + ".size").write_text(f"{size} {int(day) - 90_000}")
    kept = change(swept, 3, 200)
    assert swept.sweeps == before + 1
    assert not {old, "x.part"} & names(swept)
    assert [each.id for each in swept.entries()] == ["id-3", "id-2"]


def test_an_entry_is_taken_back_from_the_last_of_the_log(trash: TrashFolder) -> None:
    one, two, three = (entry(number, None) for number in (1, 2, 3))
    met = two._replace(id=f"{two.id}.0.abcdef01")
    for each in (one, two):
        trash.record(each)
    trash.take_back(three)
    trash.record(met)
    assert trash.tells_of(two)
    trash.take_back(one)
    assert list(trash.entries()) == [met, two, one], "another change came after it"
    trash.take_back(two)
    assert not trash.tells_of(two)
    assert list(trash.entries()) == [met, one]
    trash.take_back(met)
    trash.take_back(met)
    assert list(trash.entries()) == [one]


def test_what_a_sweep_kept_can_be_restored_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".mdmem").mkdir()
    (tmp_path / ".mdmem/config.toml").write_text("[trash]\nmax_bytes = 6\n")
    vault = Vault(str(tmp_path))
    vault.apply(EditPlan(changes=(Change(path="a.md", before=None, content=b"one\n"),)))
    for data in (b"two\n", b"three\n"):
        change = Change(path="a.md", before=vault.read("a.md"), content=data)
        vault.apply(EditPlan(changes=(change,)))
    replaced = [file.before for each in vault.history() for file in each.files]
    assert replaced == [digest(b"two\n"), digest(b"one\n"), None]
    assert vault.content(digest(b"two\n")) == b"two\n"
    assert vault.content(digest(b"one\n")) is None


# ------------------------------------------------------------------------------- what came with a repository


def test_a_line_that_was_not_written_here_is_passed_over(trash: TrashFolder) -> None:
    put(trash, b"ours")
    log = Path(trash.path) / "log.jsonl"
    ours = log.read_bytes()
    told = json.dumps(as_json(next(trash.entries()))).encode()
    log.write_bytes(told + b"\n" + ours + ours.replace(b'"time":"2', b'"time":"3') + b"[]\n" + told + b"\n")
    assert len(list(trash.entries())) == 1
    assert trash.passed_over() == 4


@pytest.mark.parametrize("kind", ["/dev/zero", "fifo", "sparse", "socket", "folder", "one line"])
def test_a_log_that_is_none_stops_nobody(trash: TrashFolder, kind: str) -> None:
    log = Path(trash.path) / "log.jsonl"
    if kind == "fifo":
        os.mkfifo(log)
    elif kind == "folder":
        log.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(log))
    elif kind == "/dev/zero":
        log.symlink_to(kind)
    else:
        with log.open("wb") as file:
            file.write(b"[" * 100_000 if kind == "one line" else b"")
            file.truncate(3 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert list(trash.entries()) == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def test_a_log_is_read_backwards_whatever_the_lengths_of_its_lines(trash: TrashFolder) -> None:
    lengths = (1, 65_000, 3, 200_000, 65_536, 10)
    for number, length in enumerate(lengths):
        entry = Entry(id=str(number), time="2024-01-01T00:00:00Z", actor="", message="x" * length, files=())
        trash.record(entry)
    assert [len(entry.message) for entry in trash.entries()] == list(reversed(lengths))


@pytest.mark.parametrize("kind", ["folder", "other content", "sparse", "link"])
def test_what_stands_under_a_hash_and_is_not_its_content_is_replaced(trash: TrashFolder, kind: str) -> None:
    name = digest(b"ours")
    kept = Path(trash.path) / name
    if kind == "folder":
        (kept / "more").mkdir(parents=True)
    elif kind == "link":
        kept.symlink_to("/dev/zero")
    else:
        kept.write_bytes(b"theirs")
        os.truncate(kept, 3 << 30 if kind == "sparse" else 6)
    assert content(trash, name) is None
    trash.keep(b"ours", name)
    assert content(trash, name) == b"ours"
