"""Full disks, missing permissions and read-only file systems: refused clearly, with the vault as it was."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

WORKER = Path(__file__).with_name("command_worker.py")
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
MOST_LEFT = 60  # pages, or files: more than any of the commands needs

NOTE = "---\ntitle: Database\ntags: [db]\n---\n\n# Database\n\n## Decision\n\nMySQL, for now.\n\n## Why\n\nHabit.\n"
FILES = {
    ".mdmem/config.toml": "",
    "AGENTS.md": "# Project\n\n## Decisions\n\n- MySQL\n\n## Workflow\n\n## Parameters\n",
    "notes/db.md": NOTE,
    "notes/old.md": "# Old\n\nMySQL as well.\n",
    "notes/more/deep.md": "MySQL, once more.\n",
    "working/threads/t1.md": "State: red.\n",
    "working/threads/gone.md": "---\nexpires: 2001-01-01T00:00:00Z\n---\n\nLong ago.\n",
    "working/resources/r1.json": '{"step": 1}\n',
    "preferences/ui/theme.md": "---\nvalue: light\nstrength: 0.7\n---\n",
    "preferences/ui/faded.md": "---\nvalue: old\nstrength: 0.2\nupdated: 2001-01-01T00:00:00Z\n---\n",
    "rules/style.md": "---\npriority: 1\n---\n\nWrite short sentences.\n",
}
ASTER = json.dumps({"preferences": {"ui": {"size": {"value": "big"}}}})
CHANGES: Mapping[str, Sequence[str]] = {
    "write": ("write", "notes/new.md", "New.\n"),
    "write in a new folder": ("write", "notes/a/b/c/new.md", "New.\n"),
    "write over": ("write", "notes/db.md", "New.\n", "--overwrite"),
    "append": ("append", "notes/db.md", "More."),
    "prepend": ("prepend", "notes/db.md", "First."),
    "insert": ("insert", "notes/db.md", "7", "Between."),
    "delete-lines": ("delete-lines", "notes/db.md", "10"),
    "set": ("set", "notes/db.md", "title=Storage"),
    "unset": ("unset", "notes/db.md", "tags"),
    "section": ("section", "notes/db.md", "Decision", "SQLite."),
    "mv": ("mv", "notes/old.md", "archive/older.md"),
    "mv a folder": ("mv", "notes", "archive"),
    "rm": ("rm", "notes/old.md"),
    "rm a folder": ("rm", "notes"),
    "replace": ("replace", "notes/db.md", "MySQL", "SQLite"),
    "replace in many": ("replace", "--in", "notes", "MySQL", "SQLite"),
    "restore": ("restore", "notes/db.md"),
    "undo": ("undo",),
    "new": ("new", "note", "notes/made.md", "--var", "title=Idea"),
    "notes append": ("notes", "append", "db", "One file.", "--title", "SQLite"),
    "notes overwrite": ("notes", "overwrite", "db", "One file.", "--title", "SQLite"),
    "working update": ("working", "update", "State: green.", "--thread", "t1"),
    "working find-and-replace": ("working", "find-and-replace", "red", "green", "--thread", "t1"),
    "working merge": ("working", "merge", '{"step": 2}', "--resource", "r1"),
    "working clear": ("working", "clear", "--thread", "t1"),
    "working sweep": ("working", "sweep"),
    "preferences set": ("preferences", "set", "ui", "theme", "dark"),
    "preferences delete": ("preferences", "delete", "ui", "theme"),
    "preferences sweep": ("preferences", "sweep"),
    "preferences import-aster": ("preferences", "import-aster", ASTER),
    "project append": ("project", "append", "Decisions", "SQLite"),
    "project step": ("project", "step", "deploy", "done"),
    "project params": ("project", "params", "model=large"),
}
READS: Sequence[Sequence[str]] = (
    ("show", "notes/db.md"),
    ("ls",),
    ("grep", "mysql"),
    ("check",),
    ("doctor",),
    ("history",),
    ("notes", "list"),
    ("notes", "read", "db"),
    ("rules", "list"),
    ("rules", "text"),
    ("working", "list"),
    ("working", "get", "--thread", "t1"),
    ("preferences", "list"),
    ("preferences", "stats"),
    ("project", "summary"),
    ("project", "load"),
    ("schema", "check"),
    ("template", "list"),
    ("render", "note", "--var", "title=Idea"),
)

State = dict[str, bytes]


class Ran(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    errors: str

    @property
    def error(self) -> str:
        """The code of the error that it printed as JSON."""
        code: str = json.loads(self.out)["error"]["code"]
        return code


class Commands:
    """A process that runs commands of mdmem on the vault in `folder`; see `command_worker.py`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.pid = process.pid
        self._process = process
        self._folder = folder

    def run(self, *arguments: str, limit: int | None = None) -> Ran:
        assert self._process.stdin
        assert self._process.stdout
        order = {"arguments": ["--vault", str(self._folder), *arguments], "given": "", "limit": limit}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        ran = Ran(**json.loads(self._process.stdout.readline()))
        assert ran.code in {0, 1, 2}, ran
        assert "Traceback" not in ran.errors
        return ran


@contextmanager
def commands(folder: Path, *, before: Sequence[str] = (), user: int | None = None) -> Iterator[Commands]:
    """A worker; `before` are the first words of its command line, and `user` is who it runs as."""
    command = [*before, sys.executable, str(WORKER), *([str(user)] if user else [])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield Commands(process, folder)
        process.communicate()


def mounting(script: str, *arguments: str) -> list[str]:
    """The first words of a command line that runs the rest where `script` has mounted something."""
    words = ["unshare", "--mount", *([] if IS_ROOT else ["--user", "--map-root-user"])]
    words += ["sh", "-c", f'{script} && n={len(arguments)} && shift $n && exec "$@"', "sh", *arguments]
    tried = shutil.which("unshare") and subprocess.run([*words, "true"], check=False, capture_output=True)
    if tried and tried.returncode == 0:
        return words
    reason = f"nothing can be mounted here: {tried.stderr.decode() if tried else 'there is no unshare'}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


# ------------------------------------------------------------------------------------------------ the vault


def fill(root: Path, files: Mapping[str, bytes]) -> None:
    """Make the folder hold exactly these files."""
    for entry in os.scandir(root):
        shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def everything(root: Path) -> State:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def memories(root: Path) -> State:
    return {path: data for path, data in everything(root).items() if not path.startswith(".mdmem/")}


def timeless(state: State) -> dict[str, str]:
    """The texts, with 0 for every digit: a date does not tell two states apart."""
    return {path: re.sub(r"\d", "0", data.decode()) for path, data in state.items()}


def assert_nothing_lost(before: State, root: Path) -> None:
    """Every content of before is in a memory, or in the trash under its hash."""
    here = set(memories(root).values())
    for path, data in before.items():
        kept = root / ".mdmem/local/trash" / hashlib.sha256(data).hexdigest()
        assert data in here or kept.read_bytes() == data, f"{path} is lost"


def assert_sound(root: Path, worker: Commands) -> None:
    """The next command finds a vault in order, and no temporary file is left."""
    ran = worker.run("doctor")
    assert ran.code == 0, ran
    assert ran.out.endswith("clean\n")
    staging = root / ".mdmem/local/staging"
    assert not staging.exists() or list(staging.iterdir()) == []


# --------------------------------------------------------------------------------------------- a full disk


class Disk(NamedTuple):
    """A small disk that holds a vault: where the test sees it, and a worker to which it is mounted."""

    root: Path
    worker: Commands
    files: State


@pytest.fixture(scope="module", params=["size=512k", "size=100m,nr_inodes=120"])
def disk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    """A disk with few pages, and one with few files, with a vault that has a history."""
    mounted = tmp_path_factory.mktemp("disk")
    script = f'mount -t tmpfs -o {request.param} tmpfs "$1" && mkdir "$1/vault"'
    with commands(mounted / "vault", before=mounting(script, str(mounted))) as worker:
        # A vault that is asked for is there as soon as the worker answers.
        assert worker.run("ls").code == 2
        root = Path(f"/proc/{worker.pid}/root{mounted}/vault")
        fill(root, {path: text.encode() for path, text in FILES.items()})
        assert worker.run("append", "notes/db.md", "A line with a history.").code == 0
        yield Disk(root, worker, everything(root))


@contextmanager
def nearly_full(root: Path, left: int) -> Iterator[None]:
    """Fill the disk, but for `left` pages or files, whichever there are fewer of."""
    filler = root.parent / "filler"
    filler.mkdir()
    status = os.statvfs(root)
    if status.f_bavail < status.f_favail * 4:
        (filler / "pages").write_bytes(b"\0" * (status.f_bavail - left) * status.f_bsize)
    else:
        for number in range(os.statvfs(root).f_favail - left):
            (filler / str(number)).touch()
    try:
        yield
    finally:
        shutil.rmtree(filler)


@pytest.mark.parametrize("name", CHANGES)
def test_a_full_disk_refuses_a_change_until_there_is_enough_space(disk: Disk, name: str) -> None:
    fill(disk.root, disk.files)
    before = memories(disk.root)
    assert disk.worker.run(*CHANGES[name]).code == 0
    after = memories(disk.root)
    assert after != before
    refused = 0
    for left in range(MOST_LEFT):
        fill(disk.root, disk.files)
        with nearly_full(disk.root, left):
            ran = disk.worker.run(*CHANGES[name], "--json")
            now = memories(disk.root)
            assert disk.worker.run("show", "rules/style.md").code == 0
        assert timeless(now) == timeless(after if ran.code == 0 else before)
        assert_nothing_lost(before, disk.root)
        assert_sound(disk.root, disk.worker)
        assert timeless(memories(disk.root)) == timeless(now)
        if ran.code == 0:
            break
        assert ran.error == "storage-failed"
        assert "No space left on device" in ran.errors
        refused += 1
    else:
        pytest.fail("it is refused with a lot of space")
    assert refused
