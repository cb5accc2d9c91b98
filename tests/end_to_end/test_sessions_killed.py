"""Sessions whose writer is killed, or whose disk is full: what was acknowledged is there, all else not."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import mdmem
from mdmem.errors import MdmemError
from mdmem.facade.memory import Memory
from tests.speed import soak_most

NOBODY = 65534  # a user who owns nothing
FULL = """
import resource, signal, sys
from mdmem.errors import MdmemError
from mdmem.facade.memory import Memory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sessions = Memory(sys.argv[1]).sessions
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
acknowledged = refused = 0
for number in range(40):
    try:
        sessions.extend("s", [{"role": "user", "content": f"{number} {part} " + "x" * 50} for part in "ab"])
        acknowledged = number + 1
        assert not refused
    except MdmemError:
        refused += 1
try:
    sessions.truncate("s", 2)
    sessions.vacuum("s")
except MdmemError:
    refused += 1
print(acknowledged, refused)
"""


@pytest.mark.parametrize("room", soak_most([100, 1_000, 3_000], quick=(1,)))
def test_a_full_disk_is_an_error_and_loses_nothing(vault_root: Path, room: int) -> None:
    """No file may have more than `room` bytes."""
    ended = subprocess.run(
        [sys.executable, "-B", "-c", FULL, vault_root, str(room)], capture_output=True, check=True
    )
    acknowledged, refused = map(int, ended.stdout.split())
    assert refused
    sessions = Memory(str(vault_root)).sessions
    said = [message.text[:4].strip() for message in sessions.history("s")]
    assert said == [f"{number} {part}" for number in range(acknowledged) for part in "ab"][-len(said) :]
    assert len(said) in {2, 2 * acknowledged}
    assert sessions.check() == []
    sessions.add("s", "user", "goes on")
    assert sessions.history("s", limit=1)[0].text == "goes on"


@contextlib.contextmanager
def not_root(root: Path) -> Iterator[None]:
    """Do what is inside as a user whom the system refuses something; `root` belongs to them."""
    if os.geteuid():
        yield
        return
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("closed", ["sessions", "sessions/s.jsonl"])
def test_what_may_not_be_written_is_an_error_and_loses_nothing(closed: str) -> None:
    with tempfile.TemporaryDirectory(prefix="mdmem-refused-") as folder:
        root = Path(mdmem.init(Path(folder) / "memories").root)
        Path(folder).chmod(0o755)
        sessions = Memory(str(root)).sessions
        sessions.extend("s", [{"role": "user", "content": letter} for letter in "abc"])
        sessions.truncate("s", 2)
        path = root / closed
        mode = path.stat().st_mode
        with not_root(root):
            path.chmod(0o500 if path.is_dir() else 0o400)
            with pytest.raises(MdmemError):
                sessions.vacuum("s")
            with pytest.raises(MdmemError):
                sessions.delete("s")
            path.chmod(mode)
            assert [message.text for message in sessions.history("s")] == ["b", "c"]
            assert sessions.vacuum("s")
