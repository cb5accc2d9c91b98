"""No link is ever followed, nothing but files is read, and a replacement is atomic on either branch.

Whether some program has a file open for writing is seen, waited for, and nobody is ever held up by it.

The write lock: one holder at a time, across processes and threads, and free when its holder is gone.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.diagnostic import as_json
from mdmem.document.edit import append
from mdmem.errors import FileBusy, LockTimeout, MdmemError, MemoryNotFound, PathRefused, StorageFailed
from mdmem.vault import files, journal, local_store
from mdmem.vault.files import Raced, attempts, has_writer
from mdmem.vault.plan import Change, EditPlan, edit
from mdmem.vault.vault import Vault
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def opened(path: Path) -> Iterator[int]:
    with files.opened(str(path)) as folder:
        yield folder


def new(path: str, data: bytes = b"new\n") -> EditPlan:
    return EditPlan(changes=(Change(path=path, before=None, content=data),))


def grown(vault: Vault, path: str, text: str = "more") -> EditPlan:
    document = vault.read(path)
    return edit(document, append(document, text), "grow")


def grow(vault: Vault, path: str, text: str = "more") -> None:
    vault.apply(grown(vault, path, text))


@pytest.fixture(params=["exchange", "fallback"])
def branch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both real branches: a system that can exchange two files at once, and one that cannot."""
    if request.param == "fallback":
        monkeypatch.setattr(files, "_rename_program", lambda: None)
    elif files._rename_program() is None:
        pytest.skip("this system cannot exchange files")
    return str(request.param)


# --------------------------------------------------------------------------------- what is no memory


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.md").write_bytes(b"secret\n")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    """A vault full of things that are no memories."""
    root = tmp_path / "vault"
    (root / "notes").mkdir(parents=True)
    (root / "notes/a.md").write_bytes(b"one\n")
    (root / "linked").symlink_to(outside)
    (root / "file.md").symlink_to(outside / "a.md")
    (root / "inner.md").symlink_to("notes/a.md")
    (root / "dangling.md").symlink_to(outside / "made.md")
    (root / "loop").symlink_to("loop")
    (root / "folder.md").mkdir()
    os.mkfifo(root / "fifo.md")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(root, os.O_DIRECTORY)
        server.bind(f"/proc/self/fd/{here}/socket.md" if sys.platform == "linux" else str(root / "socket.md"))
        os.close(here)
    if os.geteuid() == 0:
        os.mknod(root / "device.md", 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
    return root


REFUSED = [
    ("linked/a.md", "symbolic link"),
    ("linked/made.md", "symbolic link"),
    ("loop/a.md", "symbolic link"),
    ("file.md", "symbolic link"),
    ("inner.md", "symbolic link"),
    ("dangling.md", "symbolic link"),
    ("folder.md", "folder"),
    ("notes/a.md/b.md", "file"),
    ("fifo.md", "device"),
    ("socket.md", ""),
    ("device.md", "device"),
]


@cases("path, reason", REFUSED)
def test_what_is_no_plain_file_is_neither_read_nor_written(
    root: Path, outside: Path, path: str, reason: str
) -> None:
    if not os.path.lexists(root / path) and path == "device.md":
        pytest.skip("only root makes devices")
    vault = Vault(str(root))
    kind = (root / path).lstat().st_mode if os.path.lexists(root / path) else None
    for action in (lambda: vault.read(path), lambda: vault.exists(path), lambda: vault.apply(new(path))):
        with pytest.raises((PathRefused, StorageFailed)) as refused:
            action()
        assert as_json(refused.value)["path"] == path
        assert path in str(refused.value)
        assert reason in str(refused.value)
    assert kind == ((root / path).lstat().st_mode if os.path.lexists(root / path) else None)
    assert {each.name: each.read_bytes() for each in outside.iterdir()} == {"a.md": b"secret\n"}


def test_nothing_is_moved_onto_or_through_a_link(root: Path, outside: Path) -> None:
    vault = Vault(str(root))
    for target in ("linked/b.md", "linked/a.md", "file.md", "dangling.md", "folder.md", "fifo.md"):
        change = Change(path="notes/a.md", before=vault.read("notes/a.md"), move_to=target)
        with pytest.raises(MdmemError) as refused:
            vault.apply(EditPlan(changes=(change,)))
        assert target in str(refused.value)
    assert (root / "notes/a.md").read_bytes() == b"one\n"
    assert [each.name for each in outside.iterdir()] == ["a.md"]


def test_a_vault_may_itself_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(root)
    vault = Vault(str(tmp_path / "shortcut"))
    grow(vault, "notes/a.md")
    assert (root / "notes/a.md").read_bytes() == b"one\nmore\n"


def test_the_vaults_own_folder_is_never_reached_through_a_link(tmp_path: Path, outside: Path) -> None:
    """A repository could bring links in `.mdmem/local`: the trash is swept, the log written."""
    for place in ("local", "local/trash", "local/staging"):
        root = tmp_path / place.replace("/", "-")
        (root / ".mdmem" / place).parent.mkdir(parents=True)
        (root / ".mdmem" / place).symlink_to(outside)
        with pytest.raises(PathRefused):
            Vault(str(root)).apply(new("a.md"))
        assert [each.name for each in outside.iterdir()] == ["a.md"]


# --------------------------------------------------------------- a link swapped in at the worst moment

SWAP = """
import os, sys
from mdmem.vault import files
root, one, other, times = sys.argv[1:]
with files.opened(root) as folder:
    print("ready", flush=True)
    for _ in range(int(times)):
        files.exchange((folder, one), (folder, other))
"""


@contextmanager
def swapping(root: Path, one: str, other: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that exchanges two names 2,000 times."""
    if files._rename_program() is None:
        pytest.skip("this system cannot exchange files")
    command = [sys.executable, "-c", SWAP, str(root), one, other, "2000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process


def test_a_folder_that_turns_into_a_link_lets_nothing_out(tmp_path: Path, outside: Path) -> None:
    root = tmp_path / "vault"
    (root / "notes").mkdir(parents=True)
    (root / ".aside").symlink_to(outside)
    written = number = 0
    refused: list[MdmemError] = []
    with swapping(root, "notes", ".aside") as process:
        while process.poll() is None or not written:
            number += 1
            try:
                with files.opened(str(root), ("notes",), create=True) as folder:
                    files.write_new(folder, f"{number}.md", b"x", durable=False)
                written += 1
            except OSError as error:
                refused.append(files.refusal(error, "notes", "write"))
        assert process.returncode == 0
    assert {type(each) for each in refused} <= {PathRefused}
    assert [each.name for each in outside.iterdir()] == ["a.md"]
    assert len(list((root / "notes").iterdir())) == written


@pytest.mark.parametrize(("one", "other"), [("notes", ".aside"), ("notes/a.md", "notes/.aside.md")])
def test_no_change_of_a_vault_goes_through_a_swapped_link(
    tmp_path: Path, outside: Path, one: str, other: str
) -> None:
    """The folder, or the file itself, is a link to the outside every other instant."""
    root = tmp_path / "vault"
    (root / "notes").mkdir(parents=True)
    (root / "notes/a.md").write_bytes(b"")
    (root / other).symlink_to(outside / "a.md" if other.endswith(".md") else outside)
    vault = Vault(str(root))
    written: list[bytes] = []
    refused: set[str] = set()
    number = 0
    with swapping(root, one, other) as process:
        while process.poll() is None or not written:
            number += 1
            line = b"line %d" % number
            try:
                document = vault.read("notes/a.md")
                assert document.data != b"secret\n"
                vault.apply(edit(document, append(document, line.decode()), "grow"))
            except MdmemError as error:
                refused.add(as_json(error)["path"])
            else:
                written.append(line)
        assert process.returncode == 0
    assert {each.name: each.read_bytes() for each in outside.iterdir()} == {"a.md": b"secret\n"}
    assert refused <= {"notes/a.md"}, "a refusal names the memory, never a file of the journal"
    kept = [path.read_bytes() for path in (root / "notes").iterdir() if not path.is_symlink()]
    assert set(written) <= set(b"".join(kept).splitlines())
    vault.recover()
    assert os.listdir(root / ".mdmem/local/staging") == []
    assert sorted(os.listdir(root / "notes")) == sorted(
        ["a.md", ".aside.md"] if other.endswith(".md") else ["a.md"]
    )
    vault.apply(new("notes/last.md"))


# ------------------------------------------------------------------------------- what a replacement keeps


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755, 0o444])
def test_permissions_are_kept(tmp_path: Path, branch: str, mode: int) -> None:
    assert branch
    (tmp_path / "a.md").write_bytes(b"one\n")
    (tmp_path / "a.md").chmod(mode)
    vault = Vault(str(tmp_path))
    grow(vault, "a.md")
    assert (tmp_path / "a.md").stat().st_mode & 0o7777 == mode
    vault.apply(EditPlan(changes=(Change(path="a.md", before=vault.read("a.md"), move_to="b.md"),)))
    assert (tmp_path / "b.md").stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"one\n")
    os.chown(tmp_path / "a.md", 1234, 2345)
    grow(Vault(str(tmp_path)), "a.md")
    status = (tmp_path / "a.md").stat()
    assert (status.st_uid, status.st_gid) == (1234, 2345)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_in_a_shared_folder_the_writer_becomes_the_owner(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"one\n")
    (tmp_path / "a.md").chmod(0o666)
    tmp_path.chmod(0o777)
    child = os.fork()
    if child == 0:
        try:
            os.chdir(tmp_path)
            os.setgid(65534)
            os.setuid(65534)
            with files.opened(".") as folder:
                content = files.read(folder, "a.md")
                files.write_new(folder, "new", b"two\n", content)
                files.exchange((folder, "new"), (folder, "a.md"))
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    status = (tmp_path / "a.md").stat()
    assert (tmp_path / "a.md").read_bytes() == b"two\n"
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (65534, 65534, 0o666)


def test_a_new_file_has_the_permissions_that_the_system_gives(tmp_path: Path) -> None:
    Vault(str(tmp_path)).apply(new("notes/a.md"))
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "notes/a.md").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import errno, os, resource, signal, sys
        from mdmem.vault import files
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with files.opened(sys.argv[1]) as folder:
            try:
                files.write_new(folder, "a.md", b"x" * 5000)
            except OSError as error:
                sys.exit(0 if error.errno == errno.EFBIG and os.listdir(folder) == [] else 1)
    """)
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == 0


# -------------------------------------------------------------------------------------------- other spellings


def test_a_file_that_another_system_named_is_edited_in_place(tmp_path: Path) -> None:
    (tmp_path / "cafe\u0301").mkdir()
    (tmp_path / "cafe\u0301/u\u0308ber.md").write_bytes(b"one\n")
    vault = Vault(str(tmp_path))
    assert [found.path for found in vault.walk()] == ["caf\xe9/\xfcber.md"]
    for path in ("caf\xe9/\xfcber.md", "cafe\u0301/u\u0308ber.md"):
        assert vault.exists(path)
        grow(vault, path)
    vault.apply(new("caf\xe9/new.md"))
    assert sorted(os.listdir(tmp_path)) == [".mdmem", "cafe\u0301"]
    assert sorted(os.listdir(tmp_path / "cafe\u0301")) == ["new.md", "u\u0308ber.md"]
    assert (tmp_path / "cafe\u0301/u\u0308ber.md").read_bytes() == b"one\nmore\nmore\n"
    vault.apply(EditPlan(changes=(Change(path="caf\xe9/\xfcber.md", before=vault.read(path), delete=True),)))
    assert os.listdir(tmp_path / "cafe\u0301") == ["new.md"]


def test_a_new_name_is_written_in_nfc(tmp_path: Path) -> None:
    Vault(str(tmp_path)).apply(new("cafe\u0301/u\u0308ber.md"))
    assert (tmp_path / "caf\xe9/\xfcber.md").read_bytes() == b"new\n"
    assert sorted(os.listdir(tmp_path)) == [".mdmem", "caf\xe9"]


@cases(
    "present, path",
    [
        ("notes/a.md", "notes/A.md"),
        ("notes/a.md", "Notes/b.md"),
        ("notes/stra\xdfe.md", "notes/STRASSE.md"),
        ("notes/\xe9.md", "notes/\xc9.md"),
        ("notes/e\u0301.md", "notes/\xc9.md"),
    ],
)
def test_names_that_differ_only_in_case_are_refused(tmp_path: Path, present: str, path: str) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / present).write_bytes(b"one\n")
    vault = Vault(str(tmp_path))
    with pytest.raises(PathRefused, match="only in case") as refused:
        vault.apply(new(path))
    assert refused.value.path == path
    assert os.listdir(tmp_path / "notes") == [present.partition("/")[2]]
    assert not (tmp_path / "Notes").exists()


def test_two_new_names_of_one_plan_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path))
    plan = EditPlan(
        changes=tuple(Change(path=path, before=None, content=b"x") for path in ("n/a.md", "n/b.md", "n/A.md"))
    )
    with pytest.raises(PathRefused, match="only in case") as refused:
        vault.apply(plan)
    assert refused.value.path == "n/A.md"
    assert not (tmp_path / "n").exists()


def test_case_twins_that_are_there_can_be_read_and_edited(tmp_path: Path) -> None:
    for name in ("a.md", "A.md"):
        (tmp_path / name).write_bytes(name.encode() + b"\n")
    vault = Vault(str(tmp_path))
    grow(vault, "A.md")
    assert (vault.read("a.md").data, vault.read("A.md").data) == (b"a.md\n", b"A.md\nmore\n")


# ------------------------------------------------------------------------------------------ exchange and move


def test_an_exchange_gives_each_the_others_content(tmp_path: Path, branch: str) -> None:
    assert branch
    (tmp_path / "staged").write_bytes(b"new")
    (tmp_path / "target").write_bytes(b"old")
    old = (tmp_path / "target").stat().st_ino
    with opened(tmp_path) as folder:
        files.exchange((folder, "staged"), (folder, "target"))
    assert ((tmp_path / "target").read_bytes(), (tmp_path / "staged").read_bytes()) == (b"new", b"old")
    assert (tmp_path / "staged").stat().st_ino == old, "a program may still write to the old file"
    assert sorted(os.listdir(tmp_path)) == ["staged", "target"]


def test_an_exchange_with_what_is_gone_is_a_race(tmp_path: Path, branch: str) -> None:
    assert branch
    (tmp_path / "staged").write_bytes(b"new")
    with opened(tmp_path) as folder, pytest.raises(Raced):
        files.exchange((folder, "staged"), (folder, "target"))
    assert os.listdir(tmp_path) == ["staged"]


def test_a_move_needs_a_free_name(tmp_path: Path, branch: str) -> None:
    assert branch
    (tmp_path / "source").write_bytes(b"new")
    (tmp_path / "taken").write_bytes(b"old")
    with opened(tmp_path) as folder:
        with pytest.raises(Raced):
            files.move((folder, "source"), (folder, "taken"))
        with pytest.raises(Raced):
            files.move((folder, "gone"), (folder, "free"))
        files.move((folder, "source"), (folder, "free"))
    assert (tmp_path / "free").read_bytes() == b"new"
    assert (tmp_path / "taken").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["free", "taken"]


def test_every_kind_of_change_works_on_either_branch(tmp_path: Path, branch: str) -> None:
    assert branch
    vault = Vault(str(tmp_path))
    vault.apply(new("a.md"))
    grow(vault, "a.md")
    vault.apply(new("b.md"))
    changes = (
        Change(path="a.md", before=vault.read("a.md"), content=b"whole\n"),
        Change(path="b.md", before=vault.read("b.md"), move_to="c/d.md"),
        Change(path="e.md", before=None, content=b"e\n"),
    )
    vault.apply(EditPlan(changes=changes))
    assert {found.path: vault.read(found.path).data for found in vault.walk()} == {
        "a.md": b"whole\n",
        "c/d.md": b"new\n",
        "e.md": b"e\n",
    }
    vault.apply(EditPlan(changes=(Change(path="c/d.md", before=vault.read("c/d.md"), delete=True),)))
    assert not (tmp_path / "c").exists()
    assert os.listdir(tmp_path / ".mdmem/local/staging") == []


# ----------------------------------------------------------------------------------------------------- errors


def test_what_the_system_refuses_is_said_of_the_memory(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path))
    with pytest.raises(MemoryNotFound) as missing:
        vault.read("notes/a.md")
    assert missing.value.path == "notes/a.md"
    with pytest.raises(StorageFailed) as failed, files.translated("a.md", "read it"):
        raise PermissionError(13, "Permission denied")
    assert str(failed.value).startswith("a.md: cannot read it: Permission denied")
    with pytest.raises(PathRefused, match="too long"), files.translated("a.md", "read it"):
        os.stat("x" * 300)


def test_a_file_larger_than_its_status_says_is_read_whole() -> None:
    """Files of /proc say that they have no bytes."""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("there is no /proc here")
    with files.opened("/proc", (str(os.getpid()),)) as folder:
        assert b"VmRSS" in files.read(folder, "status").data


HOLD = """
import sys
from mdmem.vault import files
with files.held(sys.argv[1], 60):
    print("held", flush=True)
    sys.stdin.readline()
"""
COUNT = """
import sys
from mdmem.vault import files
for _ in range(100):
    with files.held(sys.argv[1], 60):
        with open(sys.argv[2]) as file:
            number = int(file.read())
        with open(sys.argv[2], "w") as file:
            file.write(str(number + 1))
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the lock until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        yield process


def test_another_process_is_kept_out_until_the_holder_is_done(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        with pytest.raises(LockTimeout) as refused, files.held(str(path), 0):
            pytest.fail("two hold one lock")
        assert (refused.value.path, refused.value.seconds) == (str(path), 0)
        assert str(path) in str(refused.value)
        process.communicate(b"\n")
        with files.held(str(path), 60):
            assert path.exists()


def test_a_holder_that_is_killed_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        process.kill()
        with files.held(str(path), 60):
            assert path.exists()


def test_no_step_of_several_processes_is_lost(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "lock"), str(counter)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert counter.read_text() == "300"


def test_threads_exclude_each_other_like_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    inside, most, total = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, total
        for _ in range(50):
            with files.held(path, 60):
                inside += 1
                most = max(most, inside)
                total += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, total) == (1, 200)


def test_a_thread_is_kept_out_while_another_holds_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    refusals: list[LockTimeout] = []

    def attempt() -> None:
        with pytest.raises(LockTimeout) as refused, files.held(path, 0.01):
            pytest.fail("two hold one lock")
        refusals.append(refused.value)

    with files.held(path, 0):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert [refusal.seconds for refusal in refusals] == [0.01]


def test_the_lock_is_free_after_an_error_inside(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with pytest.raises(KeyError), files.held(path, 0):
        raise KeyError
    with files.held(path, 0):
        pass


def test_the_file_stays_so_that_everybody_locks_the_same_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with files.held(str(path), 0):
        inode = path.stat().st_ino
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("kind", ["missing folder", "link", "folder"])
def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "missing folder":
        path = tmp_path / "gone" / "lock"
    elif kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
    with pytest.raises(StorageFailed) as refused, files.held(str(path), 0):
        pytest.fail("it was locked")
    assert refused.value.path == str(path)
    assert not os.path.exists(tmp_path / "elsewhere")


# ---------------------------------------------------------------------- files that are open for writing

leased = pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="leases are Linux's")

SAVE = """
import sys, time
print("saving", flush=True)
while True:
    with open(sys.argv[1], "w") as file:
        file.write("x" * 3000)
    time.sleep(0.0003)  # as long as a program may take between two saves
"""
OPEN = """
import os, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
print("open", flush=True)
sys.stdin.readline()
os.write(descriptor, b"late\\n")
"""


def settled(descriptor: int, seconds: float) -> bool:
    return any(not has_writer(descriptor) for _ in attempts(seconds))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.md"
    path.write_bytes(b"one\n")
    return path


@contextmanager
def reading(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the file open for writing; it writes a line and ends when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-c", OPEN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"open\n"
        yield process


@leased
def test_a_file_that_nobody_writes_is_settled_at_once(file: Path) -> None:
    with reading(file) as descriptor, reading(file):
        assert settled(descriptor, 0)


@leased
@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND])
def test_a_descriptor_for_writing_is_seen_until_it_is_closed(file: Path, flags: int) -> None:
    with reading(file) as descriptor:
        held = os.open(file, flags)
        assert not settled(descriptor, 0)
        assert not settled(descriptor, 0.005)
        os.close(held)
        assert settled(descriptor, 0)


@leased
def test_another_process_is_seen_until_it_ends(file: Path) -> None:
    with reading(file) as descriptor, writer(file) as process:
        assert not settled(descriptor, 0)
        process.communicate(b"\n")
        assert settled(descriptor, 60)
    assert file.read_bytes() == b"one\nlate\n"


@leased
def test_it_waits_until_the_writer_is_done(file: Path) -> None:
    held = os.open(file, os.O_WRONLY)
    closing = threading.Timer(0.05, os.close, [held])
    with reading(file) as descriptor:
        closing.start()
        assert settled(descriptor, 60)
    closing.join()


@leased
def test_a_writer_that_comes_afterwards_is_not_held_up(file: Path) -> None:
    with reading(file) as descriptor:
        assert settled(descriptor, 0)
        # While a lease is held, O_NONBLOCK makes this fail with EWOULDBLOCK.
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
        assert not settled(descriptor, 0) or fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_UNLCK


@leased
def test_what_cannot_be_leased_counts_as_settled(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/null")):
        with reading(path) as descriptor:
            assert settled(descriptor, 0)


@leased
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_elses_file_counts_as_settled() -> None:
    with tempfile.NamedTemporaryFile() as owned, writer(Path(owned.name)):
        os.chmod(owned.name, 0o644)
        child = os.fork()
        if child == 0:
            opened = os.open(owned.name, os.O_RDONLY)  # nobody else may look into the folders above
            os.setuid(65534)
            os._exit(0 if settled(opened, 0) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@leased
def test_reading_what_is_settled(file: Path) -> None:
    with files.opened(str(file.parent)) as folder:
        content = files.read_settled(folder, "a.md", 0)
        assert content
        assert content.data == b"one\n"
        with open(file, "ab"):
            assert files.read_settled(folder, "a.md", 0) is None


@leased
def test_a_file_that_is_saved_in_place_again_and_again_is_never_read_half_way(file: Path) -> None:
    file.write_text("x" * 3000)
    with subprocess.Popen([sys.executable, "-c", SAVE, str(file)], stdout=subprocess.PIPE) as saver:
        assert saver.stdout
        assert saver.stdout.readline() == b"saving\n"
        try:
            with files.opened(str(file.parent)) as folder:
                read = [files.read_settled(folder, "a.md", 60) for _ in range(3000)]
        finally:
            saver.kill()
    assert {len(content.data) for content in read if content} == {3000}


@leased
def test_a_change_is_refused_while_a_program_keeps_the_file_open(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (journal, local_store):
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.01)
    vault = Vault(str(file.parent))
    plan = grown(vault, "a.md", "two")
    with open(file, "ab"):
        with pytest.raises(FileBusy) as refused:
            vault.apply(plan)
        assert refused.value.path == "a.md"
        assert refused.value.seconds == 0.01
        assert file.read_bytes() == b"one\n"
    assert vault.apply(plan).files[0].path == "a.md"
    assert file.read_bytes() == b"one\ntwo\n"


@leased
def test_what_a_program_writes_before_it_closes_the_file_is_kept(file: Path) -> None:
    vault = Vault(str(file.parent))
    plan = grown(vault, "a.md", "two")
    with writer(file) as process:
        finish = threading.Timer(0.05, process.communicate, [b"\n"])
        finish.start()
        applied = vault.apply(plan)
        finish.join()
    assert sorted(file.read_bytes().splitlines()) == [b"late", b"one", b"two"]
    assert applied.merged == ("a.md",)


@leased
def test_a_file_that_is_open_for_writing_can_be_read(file: Path) -> None:
    with open(file, "ab"):
        assert Vault(str(file.parent)).read("a.md").data == b"one\n"
