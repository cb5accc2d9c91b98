"""Reading: what becomes of a file of the vault, whatever stands there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.index.reading import Folder, Read, read, understand
from mdmem.text.document import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

IS_ROOT = os.geteuid() == 0
NOBODY = 65534
LIMITS = Limits()


def one(file: Path, path: str = "", limits: Limits = LIMITS) -> Read | None:
    folder = Folder(str(file.parent), (), ((path or file.name, file.name),))
    (found,) = read(folder, limits)
    return found


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
    assert found.modified == pytest.approx(status.st_mtime)
    understood = understand(found, LIMITS)
    assert understood.record
    assert understood.indexed
    assert understood.record.summary.title == "Title"


def test_files_of_a_folder_come_in_order_with_none_for_those_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    for name in ("a.md", "c.md"):
        (tmp_path / "deep/er" / name).write_text(name)
    named = tuple((f"deep/er/{name}", name) for name in ("a.md", "b.md", "c.md"))
    found = read(Folder(str(tmp_path), ("deep", "er"), named), LIMITS)
    assert [each and each.path for each in found] == ["deep/er/a.md", None, "deep/er/c.md"]


@pytest.mark.parametrize("made", ["nothing", "file", "link", "dangling"])
def test_where_the_folder_is_gone_all_are_gone_and_nothing_is_followed(tmp_path: Path, made: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.md").write_text("a secret")
    place = tmp_path / "root" / "deep"
    place.parent.mkdir()
    if made == "file":
        place.touch()
    elif made != "nothing":
        place.symlink_to(tmp_path / ("other" if made == "link" else "none"))
    named = (("deep/a.md", "a.md"), ("deep/b.md", "b.md"))
    assert read(Folder(str(place.parent), ("deep",), named), LIMITS) == [None, None]


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


@pytest.mark.parametrize(
    ("name", "data"),
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
from mdmem.index.reading import Folder, read, understand
from mdmem.text.document import Limits
if len(sys.argv) > 3:
    os.setgroups([]), os.setgid(int(sys.argv[3])), os.setuid(int(sys.argv[3]))
try:
    parts = tuple(filter(None, sys.argv[2].split("/")))
    (found,) = read(Folder(sys.argv[1], parts, (("a.md", "a.md"),)), Limits())
    print("problem", understand(found, Limits()).problem)
except StorageFailed as error:
    print("refused", error.message)
"""


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="mdmem-reading-"))
    folder.chmod(0o755)
    (folder / "deep").mkdir()
    (folder / "deep/a.md").write_text("x")
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
