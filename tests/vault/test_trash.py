"""What was overwritten stays until the bounds of the config are passed, oldest first."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mdmem.vault import config, files, trash as trash_module
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.trash import Entry, FileChange, TrashFolder, entry_from
from mdmem.vault.vault import Vault

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


def names(trash: TrashFolder) -> set[str]:
    return set(os.listdir(trash.path)) - {"log.jsonl"}


# --------------------------------------------------------------------------------------------------- contents


def test_content_is_kept_under_its_hash(trash: TrashFolder) -> None:
    name = put(trash, b"old\r\n\xff")
    assert trash.content(name) == b"old\r\n\xff"
    assert not (Path(trash.path).parent / "old").exists()


def test_the_same_content_is_kept_once(trash: TrashFolder) -> None:
    assert put(trash, b"old") == put(trash, b"old")
    assert names(trash) == {digest(b"old")}


def test_what_is_not_kept_is_none(trash: TrashFolder, tmp_path: Path) -> None:
    assert trash.content(digest(b"never")) is None
    assert TrashFolder(str(tmp_path / "missing"), config.Trash()).content(digest(b"x")) is None


def test_a_name_that_is_no_hash_of_its_content_gives_nothing(trash: TrashFolder, tmp_path: Path) -> None:
    """The log may be a file that came with somebody else's repository, and its hashes paths."""
    (tmp_path / "secret").write_bytes(b"secret")
    assert trash.content("../secret") is None
    name = put(trash, b"old")
    (Path(trash.path) / name).write_bytes(b"rotten")
    assert trash.content(name) is None


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
    assert trash.content(name) == b"private"
    assert (Path(trash.path) / name).stat().st_mode & 0o777 == 0o600
    assert names(trash) == {name}


# -------------------------------------------------------------------------------------------------------- log


def test_an_entry_comes_back_from_its_json() -> None:
    made = entry(1, b"old")
    assert entry_from(json.loads(json.dumps(made.as_dict()))) == made


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
    with pytest.raises(OSError, match="symbolic links"):
        trash.record(entry(1, None))
    assert (tmp_path / "profile").read_bytes() == b"# mine\n"


# ------------------------------------------------------------------------------------------------------ sweep


def test_a_sweep_drops_what_was_replaced_too_long_ago(trash: TrashFolder) -> None:
    trash.policy = config.Trash(max_days=30)
    old, new = put(trash, b"old", age=31 * DAY, number=1), put(trash, b"new", age=29 * DAY, number=2)
    assert trash.sweep(NOW.timestamp()) == 1
    assert (trash.content(old), trash.content(new)) == (None, b"new")
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
    assert trash.content(name) == b"old"


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


def test_a_sweep_with_the_largest_bounds_drops_nothing(trash: TrashFolder) -> None:
    trash.policy = config.Trash(max_bytes=2**63 - 1, max_days=2**63 - 1)
    put(trash, b"old", age=9999 * DAY)
    assert trash.sweep(NOW.timestamp()) == 0
    assert len(list(trash.entries())) == 1


def test_a_log_that_grows_is_swept_by_itself(trash: TrashFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trash_module, "_SWEEP_EVERY", 64 * 1024)
    trash.policy = config.Trash(max_days=1)
    put(trash, b"old", age=2 * DAY, number=0)
    number = 0
    while names(trash):
        number += 1
        assert number < 2000, "the log grows, and nothing is swept"
        trash.record(entry(number, None, age=2 * DAY))
    assert len(list(trash.entries())) < number


def test_what_a_sweep_kept_can_be_restored_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".mdmem").mkdir()
    (tmp_path / ".mdmem/config.toml").write_text("[trash]\nmax_bytes = 6\n")
    vault = Vault(str(tmp_path))
    contents = [b"one\n", b"two\n", b"three\n"]
    vault.apply(EditPlan(changes=(Change(path="a.md", before=None, content=contents[0]),)))
    for data in contents[1:]:
        change = Change(path="a.md", before=vault.read("a.md"), content=data)
        vault.apply(EditPlan(changes=(change,)))
    assert vault.content(digest(b"one\n")) == b"one\n"
    entries = list(vault.history())
    assert [file.before for each in entries for file in each.files] == [
        digest(b"two\n"),
        digest(b"one\n"),
        None,
    ]
    vault.trash.sweep(datetime.now(UTC).timestamp())
    assert vault.content(digest(b"two\n")) == b"two\n"
    assert vault.content(digest(b"one\n")) is None


# ------------------------------------------------------------------------------- what came with a repository


def test_a_line_that_was_not_written_here_is_passed_over(trash: TrashFolder) -> None:
    put(trash, b"ours")
    log = Path(trash.path) / "log.jsonl"
    ours = log.read_bytes()
    told = json.dumps(next(trash.entries()).as_dict()).encode()
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
    assert trash.content(name) is None
    trash.keep(b"ours", name)
    assert trash.content(name) == b"ours"
