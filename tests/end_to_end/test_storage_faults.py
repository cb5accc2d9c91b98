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
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.programs import needs_readers
from tests.speed import is_all, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WORKER = Path(__file__).with_name("command_worker.py")
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
MOST_LEFT = 60  # pages, or files: more than any of the commands needs
EXAMINED_EVERY = 4 if is_all else 24  # the doctor makes the index anew, which takes longer than the rest
STRIDE = 2 if is_all else 3  # of commands, and of the space that is left

NOTE = "---\ntitle: Database\ntags: [db]\n---\n\n# Database\n\n## Decision\n\nMySQL, for now.\n"
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
CHANGES: Mapping[str, Sequence[str]] = {
    "write": ("write", "notes/new.md", "New.\n"),
    "write in a new folder": ("write", "notes/a/b/c/new.md", "New.\n"),
    "write over": ("write", "notes/db.md", "New.\n", "--overwrite"),
    "append": ("append", "notes/db.md", "More."),
    "prepend": ("prepend", "notes/db.md", "First."),
    "insert": ("insert", "notes/db.md", "7", "Between."),
    "delete-lines": ("delete-lines", "notes/db.md", "8"),
    "set": ("set", "notes/db.md", "title=Storage"),
    "unset": ("unset", "notes/db.md", "tags"),
    "section": ("section", "notes/db.md", "Decision", "SQLite."),
    "mv": ("mv", "notes/old.md", "archive/older.md"),
    "mv a folder": ("mv", "notes", "archive"),
    "rm": ("rm", "notes/old.md"),
    "rm a folder": ("rm", "-r", "notes"),
    "replace": ("replace", "notes/db.md", "MySQL", "SQLite"),
    "replace in many": ("replace", "--in", "notes", "--all", "MySQL", "SQLite"),
    "restore": ("restore", "notes/db.md"),
    "undo": ("undo",),
    "new": ("new", "note", "notes/made.md", "--var", "title=Idea"),
    "notes append": ("notes", "append", "db", "One file.", "--title", "SQLite"),
    "working set": ("working", "set", "State: green.", "--thread", "t1"),
    "working find-and-replace": ("working", "find-and-replace", "red", "green", "--thread", "t1"),
    "working clear": ("working", "clear", "--thread", "t1"),
    "working sweep": ("working", "sweep"),
    "preferences set": ("preferences", "set", "ui", "theme", "dark"),
    "preferences rm": ("preferences", "rm", "ui", "theme"),
    "preferences sweep": ("preferences", "sweep"),
    "project append": ("project", "append", "Decisions", "SQLite"),
}
READS: Sequence[Sequence[str]] = (
    ("show", "notes/db.md"),
    ("ls",),
    ("grep", "mysql"),
    ("search", "mysql"),
    ("refs",),
    ("ls", "--where", "title=Database"),
    ("check",),
    ("doctor",),
    ("history",),
    ("notes", "list"),
    ("rules", "list"),
    ("rules", "text"),
    ("working", "list"),
    ("working", "show", "--thread", "t1"),
    ("preferences", "list"),
    ("project", "summary"),
    ("schema", "check"),
    ("template", "list"),
    ("new", "note", "--print", "--var", "title=Idea"),
)

State = dict[str, bytes]


class Ran(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    errors: str
    seconds: float
    kilobytes: int

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

    def on(self, folder: Path) -> Commands:
        """The same process, for another vault."""
        return Commands(self._process, folder)

    def run(
        self, *arguments: str, limit: int | None = None, given: str = "", short: Sequence[str] = ()
    ) -> Ran:
        (ran,) = self.sweep([arguments], limit=limit, given=given, short=short)
        return ran

    def sweep(
        self,
        commands: Sequence[Sequence[str]],
        *,
        limit: int | None = None,
        given: str = "",
        short: Sequence[str] = (),
    ) -> Iterator[Ran]:
        """Run commands in turn in one process; what each returned."""
        assert self._process.stdin
        assert self._process.stdout
        told = {"given": given, "limit": limit, "short": short}
        vault = ["--vault", str(self._folder)]
        orders = [{"arguments": [*vault, *arguments], **told} for arguments in commands]
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        lines = [self._process.stdout.readline() for _ in orders]
        for arguments, line in zip(commands, lines, strict=True):
            ran = Ran(**json.loads(line))
            assert ran.code in {0, 1, 2}, (arguments, ran)
            assert "Traceback" not in ran.errors
            yield ran


@contextmanager
def commands(folder: Path, *, before: Sequence[str] = (), user: int | None = None) -> Iterator[Commands]:
    """A worker; `before` are the first words of its command line, and `user` is who it runs as."""
    if user:
        needs_readers()
    command = [*before, sys.executable, str(WORKER), *([str(user)] if user else [])]
    pipe = subprocess.PIPE
    # Where the index goes when the vault cannot hold it, and the key; both are of whoever runs the commands.
    with tempfile.TemporaryDirectory(prefix="mdmem-home-") as home:
        environment = {**os.environ, "XDG_CACHE_HOME": home}
        if user is not None:
            os.chown(home, user, user)
            environment["XDG_STATE_HOME"] = home
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
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
    found: State = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".mdmem"]
        paths = (Path(folder, name) for name in files)
        found |= {str(path.relative_to(root)): path.read_bytes() for path in paths if path.is_file()}
    return found


def timeless(state: State) -> dict[str, str]:
    """The texts, with 0 for every digit: a date does not tell two states apart."""
    return {path: re.sub(r"\d", "0", data.decode()) for path, data in state.items()}


def assert_nothing_lost(before: State, root: Path) -> None:
    """Every content of before is in a memory, or in the trash under its hash."""
    here = set(memories(root).values())
    for path, data in before.items():
        kept = root / ".mdmem/local/trash" / hashlib.sha256(data).hexdigest()
        assert data in here or kept.read_bytes() == data, f"{path} is lost"


def assert_sound(root: Path, worker: Commands, *, examined: bool = True) -> None:
    """The next command (when `examined`, the doctor) finds a vault in order; no temporary file is left."""
    ran = worker.run("doctor" if examined else "ls")
    assert ran.code == 0, ran
    assert not examined or ran.out.endswith("clean\n")
    staging = root / ".mdmem/local/staging"
    assert not staging.exists() or list(staging.iterdir()) == []


# --------------------------------------------------------------------------------------------- a full disk


class Disk(NamedTuple):
    """A small disk that holds a vault: where the test sees it, and a worker to which it is mounted."""

    root: Path
    worker: Commands
    files: State


class Mounted(NamedTuple):
    """A worker to which a disk with few pages and one with few files are mounted, and a folder read-only."""

    worker: Commands
    disks: Sequence[Path]
    fixed: Path


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    *disks, fixed = (tmp_path_factory.mktemp(name) for name in ("pages", "files", "fixed"))
    script = 'mount -t tmpfs -o size=1m tmpfs "$1" && mount -t tmpfs -o size=100m,nr_inodes=120 tmpfs "$2"'
    script += ' && mkdir "$1/vault" "$2/vault" && mount --bind "$3" "$3" && mount -o remount,bind,ro "$3"'
    with commands(fixed, before=mounting(script, *map(str, (*disks, fixed)))) as worker:
        yield Mounted(worker, disks, fixed)


@pytest.fixture(scope="module", params=[0, 1], ids=["pages", "files"])
def disk(request: pytest.FixtureRequest, mounted: Mounted) -> Disk:
    """A disk with few pages, or one with few files, with a vault that has a history."""
    folder = mounted.disks[request.param] / "vault"
    worker = mounted.worker.on(folder)
    # A vault that is asked for is there as soon as the worker answers.
    assert worker.run("ls").code == 2
    root = Path(f"/proc/{worker.pid}/root{folder}")
    fill(root, {path: text.encode() for path, text in FILES.items()})
    assert worker.run("append", "notes/db.md", "A line with a history.").code == 0
    return Disk(root, worker, everything(root))


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


@cases("name", CHANGES if is_all else ("write in a new folder", "mv a folder"))
def test_a_full_disk_refuses_a_change_until_there_is_enough_space(disk: Disk, name: str) -> None:
    fill(disk.root, disk.files)
    before = memories(disk.root)
    assert disk.worker.run(*CHANGES[name]).code == 0
    after = memories(disk.root)
    assert after != before
    refused = 0
    for left in (0, *range(1 + len(name) % 2, MOST_LEFT, 2 * STRIDE)):
        fill(disk.root, disk.files)
        with nearly_full(disk.root, left):
            ran = disk.worker.run(*CHANGES[name], "--json")
            now = memories(disk.root)
            examined = ran.code == 0 or left % EXAMINED_EVERY == 0
            assert not examined or disk.worker.run("show", "rules/style.md").code == 0
        assert timeless(now) == timeless(after if ran.code == 0 else before)
        assert_sound(disk.root, disk.worker, examined=examined)
        assert_nothing_lost(before, disk.root)
        assert timeless(memories(disk.root)) == timeless(now)
        if ran.code == 0:
            break
        assert ran.error == "storage-failed"
        assert "No space left on device" in ran.errors
        refused += 1
    else:
        pytest.fail("it is refused with a lot of space")
    assert refused


def test_a_vault_on_a_full_disk_is_searched_all_the_same(disk: Disk) -> None:
    elsewhere = 0
    for left in range(0, 3 * MOST_LEFT, 4 if is_all else 44):
        fill(disk.root, disk.files)
        shutil.rmtree(disk.root / ".mdmem/local/index", ignore_errors=True)
        with nearly_full(disk.root, left):
            found = disk.worker.run("search", "deep once more")
            assert found.code == 0
            assert "notes/more/deep.md" in found.out
        assert disk.worker.run("search", "deep once more").errors == ""
        if not re.search(r"^note: the index stands in \S+, not in the vault: .", found.errors):
            assert found.errors == ""
            break
        elsewhere += 1
    else:
        pytest.fail("the index has no room with a lot of space")
    assert elsewhere


# --------------------------------------------------------------------------------------- other refusals


@pytest.fixture
def root() -> Iterator[Path]:
    """A vault with a history, in a folder that every user may enter; it belongs to the user of `worker`."""
    folder = Path(tempfile.mkdtemp(prefix="mdmem-faults-"))
    folder.chmod(0o755)
    vault = folder / "vault"
    vault.mkdir()
    fill(vault, {path: text.encode() for path, text in FILES.items()})
    give(vault)
    yield vault
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def give(root: Path, owner: int = NOBODY) -> None:
    """Let everything belong to the user of `worker`; no user but root runs as somebody else."""
    if IS_ROOT:
        for path in (root, *root.rglob("*")):
            os.chown(path, owner, owner)


@pytest.fixture(scope="module")
def bound() -> Iterator[Commands]:
    """A worker of a user whom permissions bind."""
    with commands(Path("/"), user=NOBODY if IS_ROOT else None) as worker:
        yield worker


@pytest.fixture
def worker(root: Path, bound: Commands) -> Commands:
    """The same, on a vault in which it has made a change."""
    worker = bound.on(root)
    assert worker.run("append", "notes/db.md", "A line with a history.").code == 0
    return worker


def chmod(folder: Path, *, folders: int, files: int) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(folders if path.is_dir() else files)


def assert_refused(worker: Commands, *arguments: str, reason: str = "Permission denied") -> None:
    ran = worker.run(*arguments, "--json")
    assert (ran.code, ran.error) == (2, "storage-failed"), ran
    assert reason in ran.errors
    assert "nothing was changed" in ran.errors


def test_grep_ends_with_an_error_where_a_memory_may_not_be_read(root: Path, worker: Commands) -> None:
    (root / "notes/other.md").write_text("x marks it\n")
    give(root)
    (root / "notes/db.md").chmod(0)
    for pattern in ("marks", "nothing like this"):
        ran = worker.run("grep", pattern)
        assert ran.code == 2
        assert "notes/db.md: not searched" in ran.errors
    assert worker.run("grep", "-q", "marks").code == 0


def test_a_vault_that_may_only_be_read_can_be_read(root: Path, worker: Commands) -> None:
    reads = READS[::STRIDE]
    free = [*worker.sweep(reads)]
    chmod(root, folders=0o555, files=0o444)
    for arguments, before, seen in zip(reads, free, worker.sweep(reads), strict=True):
        assert before.code == 0
        # What it says besides is where the index stands.
        note = re.compile(r"^.*the index stands in \S+, not in the vault: it is read-only\n", re.MULTILINE)
        said = seen._replace(out=note.sub("", seen.out), errors=note.sub("", seen.errors))
        assert said[:3] == before[:3], arguments
        assert bool(note.search(seen.errors)) == (
            arguments[0] in {"check", "doctor", "search", "refs"} or "--where" in arguments
        )


def test_a_vault_that_may_only_be_read_is_not_changed(root: Path, worker: Commands) -> None:
    before = everything(root)
    chmod(root, folders=0o555, files=0o444)
    changes = [*CHANGES.values()][::STRIDE]
    assert {ran.code for ran in worker.sweep([[*arguments, "--dry-run"] for arguments in changes])} == {0}
    for arguments in changes:
        assert_refused(worker, *arguments)
    root.parent.chmod(0o555)
    assert_refused(worker.on(root.parent / "another"), "init", reason="Permission denied")
    root.parent.chmod(0o755)
    assert everything(root) == before


@pytest.mark.parametrize(
    "folder",
    soak_most(["notes", ".mdmem/local/staging", ".mdmem/local/trash", ".mdmem/local"], quick=(0,)),
)
def test_a_folder_that_may_not_be_written_to_refuses_what_needs_it(
    root: Path, worker: Commands, folder: str
) -> None:
    before = memories(root)
    (root / folder).chmod(0o555)
    for name in ("append", "mv", "rm", "notes append", "replace in many"):
        ran = worker.run(*CHANGES[name], "--json")
        assert ran.code == 0 or ran.error == "storage-failed"
        if folder == "notes":
            assert ran.code == 2
        (root / folder).chmod(0o755)
        now = memories(root)
        assert (now == before) == (ran.code == 2)
        assert_sound(root, worker)
        assert_nothing_lost(before, root)
        if ran.code == 0:
            assert worker.run("undo").code == 0
            assert memories(root) == before
        (root / folder).chmod(0o555)


def test_the_other_folders_can_be_written_to(root: Path, worker: Commands) -> None:
    (root / "notes").chmod(0o555)
    assert worker.run("append", "rules/style.md", "And few.").code == 0
    assert worker.run("write", "other/new.md", "New.\n").code == 0


def test_a_memory_that_may_not_be_read_is_named_and_hinders_no_other(root: Path, worker: Commands) -> None:
    (root / "notes/old.md").chmod(0)
    for arguments in (("show", "notes/old.md"), ("append", "notes/old.md", "More."), ("rm", "-r", "notes")):
        ran = worker.run(*arguments, "--json")
        assert (ran.code, ran.error) == (2, "storage-failed")
        assert "notes/old.md: cannot read it: Permission denied" in ran.errors
    assert "notes/old.md" in worker.run("ls").out
    assert "MySQL, once more." in worker.run("grep", "mysql").out
    checked = worker.run("check")
    assert checked.code == 1
    assert "notes/old.md" in checked.out
    replaced = worker.run("replace", "--in", "notes", "--all", "MySQL", "SQLite")
    assert replaced.code == 0
    assert "left out: notes/old.md" in replaced.errors
    assert (root / "notes/db.md").read_text().count("SQLite") == 1
    (root / "notes/old.md").chmod(0o644)
    assert (root / "notes/old.md").read_text() == FILES["notes/old.md"]


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file away")
def test_a_lock_that_belongs_to_somebody_else_is_named(root: Path, worker: Commands) -> None:
    before = memories(root)
    lock = root / ".mdmem/local/lock"
    os.chown(lock, 0, 0)
    lock.chmod(0o600)
    assert_refused(worker, "append", "notes/db.md", "More.")
    assert str(lock) in worker.run("append", "notes/db.md", "More.").errors
    assert memories(root) == before
    assert worker.run("show", "notes/db.md").code == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file away")
def test_a_memory_of_somebody_else_is_changed_where_the_folder_allows_it(
    root: Path, worker: Commands
) -> None:
    note = root / "notes/db.md"
    os.chown(note, 0, 0)
    note.chmod(0o644)
    before = note.read_bytes()
    assert worker.run("append", "notes/db.md", "More.").code == 0
    assert note.read_bytes() == before + b"More.\n"
    assert note.stat().st_mode & 0o777 == 0o644
    assert worker.run("undo").code == 0
    assert note.read_bytes() == before
    assert_sound(root, worker)


@pytest.mark.parametrize("limit", soak_most([0, 100, 600, 2_000, 100_000], quick=(1,)))
def test_a_limit_on_the_size_of_files_is_kept_to(root: Path, worker: Commands, limit: int) -> None:
    """EFBIG, which is what a quota or `ulimit -f` says, at each of the files that a change writes."""
    big = "A line of a big memory.\n" * 50
    (root / "notes/db.md").write_text(big)
    before = memories(root)
    for name in ("append", "write in a new folder", "replace in many", "rm"):
        ran = worker.run(*CHANGES[name], "--json", limit=limit)
        now = memories(root)
        assert (now == before) == (ran.code == 2)
        if ran.code:
            assert ran.error == "storage-failed"
            assert "File too large" in ran.errors
        assert_sound(root, worker)
        assert_nothing_lost(before, root)
        before = memories(root)
        assert before == now


def test_a_file_system_that_is_mounted_read_only_can_be_read(mounted: Mounted) -> None:
    fill(mounted.fixed, {path: text.encode() for path, text in FILES.items()})
    before, worker = everything(mounted.fixed), mounted.worker
    changes = [CHANGES[name] for name in sorted(CHANGES.keys() - {"restore", "undo"})[::STRIDE]]
    assert {ran.code for ran in worker.sweep(READS[::STRIDE])} <= {0, 1}
    assert {ran.code for ran in worker.sweep([[*arguments, "--dry-run"] for arguments in changes])} == {0}
    for arguments in changes:
        assert_refused(worker, *arguments, reason="Read-only file system")
    assert everything(mounted.fixed) == before


# ------------------------------------------------------------------------------------ no file left to open


@pytest.fixture
def linked(root: Path, bound: Commands) -> Commands:
    """Works on a vault whose memories link to each other, with a schema; beside it is a folder to import."""
    schema = '{"type": "object", "properties": {"title": {"type": "string"}}}'
    texts = {f"notes/{name}.md": f"---\ntitle: {name}\n---\n\nMySQL, see [[a]].\n" for name in "abc"}
    texts |= {".mdmem/config.toml": "", ".mdmem/schemas/notes.json": schema}
    fill(root, {path: text.encode() for path, text in texts.items()})
    for name in "xyz":
        (root.parent / "from" / f"{name}s").mkdir(parents=True)
        (root.parent / "from" / f"{name}s" / f"{name}.md").write_text("MySQL\n")
    give(root.parent)
    worker = bound.on(root)
    assert worker.run("search", "mysql").code == 0
    return worker


@pytest.mark.parametrize(
    ("short", "arguments"),
    [
        ("b.md", ["replace", "--in", "notes", "--all", "MySQL", "SQLite", "--yes"]),
        ("notes", ["replace", "--in", "", "--all", "MySQL", "SQLite", "--yes"]),
        ("b.md", ["mv", "notes/a.md", "notes/other.md"]),
        ("notes.json", ["set", "notes/a.md", "title=[no, text]"]),
        ("y.md", ["import", "obsidian", "{}/from"]),
        ("ys", ["import", "obsidian", "{}/from"]),
    ],
)
def test_a_change_of_many_files_never_goes_on_with_some_of_them(
    root: Path, linked: Commands, short: str, arguments: list[str]
) -> None:
    before = memories(root)
    ended = linked.run(*(each.format(root.parent) for each in arguments), short=[short])
    assert (ended.code, memories(root)) == (2, before), ended
    assert "Too many open files" in ended.errors
    assert "nothing was changed" in ended.errors


def test_a_memory_that_could_not_be_opened_once_is_found_later(root: Path, linked: Commands) -> None:
    with (root / "notes/b.md").open("a") as file:
        file.write("A needle.\n")
    for _ in range(2):
        assert linked.run("search", "needle", short=["b.md"]).code == 2
    ended = linked.run("search", "needle")
    assert (ended.code, "notes/b.md" in ended.out) == (0, True)
    checked = linked.run("check", short=["b.md"])
    assert checked.code == 1
    assert "notes/b.md:1:1: system-failing" in checked.out
