"""Repositories that a stranger could send: nothing in them runs, hangs, fills memory, or writes elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from mdmem.memory.memory import Memory
from mdmem.vault.mark import signed
from tests.end_to_end.test_help import LEAVES
from tests.end_to_end.test_storage_faults import Commands, commands

MOST_SECONDS, MOST_KILOBYTES = 5.0, 500_000
GIGABYTES = 3 << 30
STAGED = "20260101T000000000000-abcd"
MEMORIES: Mapping[str, str] = {
    "notes/a.md": "---\ntags: [fruit]\n---\n\n# Apple\n\nAn apple: [[b]], [app](../../src/app.py#L1).\n",
    "notes/b.md": "# Pear\n\nA pear. [[a#Apple]]\n",
    "rules/style.md": "---\nglobs: ['*.py']\n---\n\nWrite short sentences.\n",
    "preferences/ui/theme.md": "---\nvalue: dark\n---\n",
    "working/threads/t1.md": "State: green.\n",
}
READS: Sequence[Sequence[str]] = (
    ("ls",),
    ("ls", "--where", "tags=fruit"),
    ("show", "notes/a.md"),
    ("grep", "apple"),
    ("search", "apple"),
    ("refs",),
    ("backlinks", "notes/a.md"),
    ("check",),
    ("history",),
    ("context",),
    ("rules", "text"),
    ("preferences", "list"),
    ("working", "list"),
    ("project", "load"),
    ("project", "audit"),
    ("project", "sync", "--check"),
    ("schema", "check"),
    ("render", "note", "--var", "title=Idea"),
    ("hook", "session-start"),
    ("hook", "post-edit"),
    ("hook", "user-prompt"),
    ("graph",),
    ("tags",),
    ("index",),
    ("completion", "bash"),
    ("notes", "list"),
    ("notes", "read", "a"),
    ("rules", "list"),
    ("preferences", "get", "ui", "theme"),
    ("preferences", "top"),
    ("preferences", "stats"),
    ("working", "get", "--thread", "t1"),
    ("project", "summary"),
    ("project", "resolve", "--for", "src/app.py"),
    ("schema", "list"),
    ("schema", "show", "note"),
    ("template", "list"),
    ("template", "show", "note"),
    ("tool", '{"command": "view", "path": "/memories"}'),
    *(
        (*words, "--dry-run")
        for words in (
            ("append", "notes/a.md", "More."),
            ("prepend", "notes/a.md", "More."),
            ("insert", "notes/b.md", "1", "More."),
            ("delete-lines", "notes/b.md", "1"),
            ("replace", "notes/a.md", "An apple", "One"),
            ("replace", "--in", "notes", "apple", "pear"),
            ("section", "notes/a.md", "Apple", "More."),
            ("set", "notes/a.md", "tags=[x]"),
            ("unset", "notes/a.md", "tags"),
            ("mv", "notes/a.md", "notes/c.md"),
            ("rm", "notes"),
            ("new", "note", "notes/n.md", "--var", "title=N"),
            ("notes", "append", "a", "More."),
            ("notes", "overwrite", "a", "More."),
            ("working", "update", "More.", "--thread", "t1"),
            ("working", "find-and-replace", "green", "red", "--thread", "t1"),
            ("working", "merge", '{"a": 1}', "--resource", "r1"),
            ("working", "clear", "--thread", "t1"),
            ("working", "sweep"),
            ("preferences", "set", "ui", "theme", "light"),
            ("preferences", "delete", "ui", "theme"),
            ("preferences", "sweep"),
            ("project", "append", "Decisions", "More."),
            ("project", "step", "One", "done"),
            ("project", "params", "a=1"),
            ("project", "sync"),
            ("import", "obsidian", "notes"),
            ("init", "../more"),
        )
    ),
    ("doctor",),
)
# Those that run until somebody ends them, and those that write into the settings of other programs.
OTHERS = {"mcp", "watch", "install", "uninstall"}
WRITES: Sequence[Sequence[str]] = (
    ("write", "notes/mine.md", "Mine.\n"),
    ("append", "notes/mine.md", "More."),
    ("undo",),
    ("rm", "notes/mine.md"),
    ("restore", "notes/mine.md"),
    ("rm", "notes/mine.md"),
    ("restore", "notes/a.md"),  # which nobody here has changed
    ("append", "a.md", "More."),
)
ASKED_FOR = {f"home/work/memories/{path}" for path in ("notes/mine.md", "a.md")}


class Place:
    """Where a case is built: a home, in it a repository that a stranger has sent, and a vault in that."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = self.home / "work"
        self.vault = self.work / "memories"
        self.local = self.vault / ".mdmem/local"
        self.marks = folder / "marks"

    def write(self, path: str, text: str | bytes) -> None:
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def sparse(self, path: str, size: int = GIGABYTES) -> None:
        self.write(path, b"")
        os.truncate(self.vault / path, size)

    def link(self, path: str, target: str | Path) -> None:
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        file.unlink(missing_ok=True)
        file.symlink_to(target)

    def pipe(self, path: str) -> None:
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        os.mkfifo(file)

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.work, check=True, capture_output=True)

    def program(self, name: str) -> str:
        """A program that leaves its name behind."""
        path = self.work / "evil"
        path.write_text(f"#!/bin/sh\ntouch {self.marks}/$1\ncat\n")
        path.chmod(0o755)
        return f"{path} {name}"

    def state(self) -> dict[str, str]:
        """Every file that is not local state of the vault, or git's."""
        return dict(self._state(self.folder))

    def _state(self, folder: Path) -> Iterator[tuple[str, str]]:
        for entry in sorted(os.scandir(folder), key=lambda each: each.name):
            name = os.path.relpath(entry.path, self.folder)
            if name in {"home/work/memories/.mdmem/local", "home/work/.git", "state", "cache"}:
                continue
            if entry.is_symlink():
                yield name, f"link {os.readlink(entry)}"
            elif entry.is_dir():
                yield name, "folder"
                yield from self._state(Path(entry.path))
            elif entry.is_file():
                size = entry.stat().st_size
                small = size < 10_000_000
                yield name, sha256(Path(entry.path).read_bytes()).hexdigest() if small else str(size)
            else:
                yield name, "special"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


# ----------------------------------------------------------------------------------------------- the cases

Build = Callable[[Place], object]
CASES: dict[str, Build] = {}


def case(build: Build) -> Build:
    CASES[build.__name__.replace("_", " ")] = build
    return build


def record(place: Place, *files: tuple[str, str | None, str | None]) -> dict[str, object]:
    """What says that files became something else; what they were is staged."""
    changed = []
    for number, (path, before, after) in enumerate(files):
        place.write(f".mdmem/local/staging/{STAGED}.{number}", before or "planted\n")
        hashes = [None if text is None else digest(text) for text in (before, after)]
        changed.append({"path": path, "before": hashes[0], "after": hashes[1]})
    return {"id": STAGED, "time": "2026-01-01T00:00:00Z", "actor": "", "message": "m", "files": changed}


def planted(place: Place) -> dict[str, object]:
    files = [("AGENTS.md", "evil\n", "# Agents\n"), ("notes/a.md", None, MEMORIES["notes/a.md"])]
    return record(place, *files, ("notes/b.md", "evil\n", MEMORIES["notes/b.md"]))


@case
def a_record_of_a_change_to_take_back(place: Place) -> None:
    place.write(f".mdmem/local/staging/{STAGED}.many", json.dumps(planted(place)))


@case
def a_record_of_a_change_to_finish(place: Place) -> None:
    place.write(f".mdmem/local/staging/{STAGED}.done", json.dumps(planted(place)))


@case
def a_record_that_another_machine_signed(place: Place) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place.folder / "stranger"))
        place.write(f".mdmem/local/staging/{STAGED}.many", signed(planted(place)))


@case
def records_of_gigabytes_links_and_pipes(place: Place) -> None:
    place.sparse(f".mdmem/local/staging/{STAGED}.many")
    place.sparse(f".mdmem/local/staging/{STAGED}.0")
    place.link(".mdmem/local/staging/x.one", "/dev/zero")
    place.link(".mdmem/local/staging/x.0", place.home / ".bashrc")
    place.pipe(".mdmem/local/staging/y.done")
    (place.local / "staging/z.many").mkdir()


@case
def a_log_that_never_ends(place: Place) -> None:
    place.link(".mdmem/local/trash/log.jsonl", "/dev/zero")


@case
def a_log_that_is_a_pipe(place: Place) -> None:
    place.pipe(".mdmem/local/trash/log.jsonl")


@case
def a_log_of_gigabytes(place: Place) -> None:
    place.sparse(".mdmem/local/trash/log.jsonl")


@case
def a_log_of_what_never_happened(place: Place) -> None:
    entry = record(place, ("notes/a.md", "evil\n", MEMORIES["notes/a.md"]))
    place.write(".mdmem/local/trash/log.jsonl", json.dumps(entry) + "\n")
    place.write(f".mdmem/local/trash/{digest('evil' + chr(10))}", "evil\n")


@case
def a_trash_with_folders_and_links_in_it(place: Place) -> None:
    (place.local / "trash" / digest("Mine.\n")).mkdir(parents=True)
    place.link(f".mdmem/local/trash/{digest('Mine.' + chr(10) + 'More.' + chr(10))}", place.home / ".bashrc")


@case
def local_state_that_is_a_link_to_the_home(place: Place) -> None:
    place.link(".mdmem/local", place.home)


@case
def an_index_and_a_trash_that_are_links(place: Place) -> None:
    for name in ("index", "trash", "staging"):
        place.link(f".mdmem/local/{name}", place.home)


@case
def a_lock_that_is_a_pipe(place: Place) -> None:
    place.pipe(".mdmem/local/lock")


@case
def a_lock_that_is_a_link(place: Place) -> None:
    place.link(".mdmem/local/lock", place.home / ".bashrc")


@case
def an_index_that_asks_without_end(place: Place) -> None:
    (place.local / "index/text").mkdir(parents=True)
    with closing(sqlite3.connect(place.local / "index/database.sqlite")) as database:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS path FROM n"
        database.executescript(f"CREATE VIEW documents AS {endless}; PRAGMA user_version = 1;")
    place.write(".mdmem/local/index/database.sqlite-wal", b"x" * 100)
    place.write(".mdmem/local/index/text/meta.json", "[" * 100_000)
    place.pipe(".mdmem/local/index/lock")


@case
def an_index_that_tells_of_other_moves(place: Place) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place.folder / "stranger"))
        memory = Memory(str(place.vault))
        memory.sync()
        folder = memory.index.folder
        memory.index.close()
    with closing(sqlite3.connect(f"{folder}/database.sqlite")) as database:
        database.execute("INSERT INTO moves VALUES ('notes/b.md', 'notes/evil.md')")
        database.execute("UPDATE documents SET path = 'notes/evil.md' WHERE path = 'notes/a.md'")
        database.commit()


@case
def mounts_of_what_programs_obey(place: Place) -> None:
    place.write(".mdmem/config.toml", '[mounts]\n"a.md" = "../../.ssh/authorized_keys"\n')


@case
def mounts_in_a_home_that_is_a_repository(place: Place) -> None:
    shutil.rmtree(place.work / ".git")
    subprocess.run(["git", "init", "--quiet", str(place.home)], check=True)
    place.write(".mdmem/config.toml", '[mounts]\n"a.md" = "../../.bashrc"\n')


@case
def a_mount_through_a_link(place: Place) -> None:
    (place.work / "AGENTS.md").unlink()
    (place.work / "AGENTS.md").symlink_to("../.bashrc")


@case
def thousands_of_mounts(place: Place) -> None:
    mounts = "".join(f'"{number}.md" = "../{number}.md"\n' for number in range(6_000))
    place.write(".mdmem/config.toml", f"[mounts]\n{mounts}")


@case
def a_config_of_gigabytes(place: Place) -> None:
    place.sparse(".mdmem/config.toml")


@case
def a_config_that_is_a_pipe(place: Place) -> None:
    place.pipe(".mdmem/config.toml")


@case
def a_config_of_dots_and_brackets(place: Place) -> None:
    place.write(".mdmem/config.toml", "a" + ".a" * 120_000 + " = 1\n" + "b = " + "[" * 10_000)


@case
def a_config_without_limits(place: Place) -> None:
    place.write(".mdmem/config.toml", f"[limits]\nmax_bytes = {2**62}\nmax_depth = {2**62}\n")
    place.sparse("notes/large.md")


@case
def schemas_that_are_none(place: Place) -> None:
    place.pipe(".mdmem/schemas/pipe.json")
    place.link(".mdmem/schemas/zero.json", "/dev/zero")
    place.write(".mdmem/schemas/deep.json", "[" * 50_000)
    place.write(".mdmem/schemas/list.json", "[]")
    place.write(".mdmem/schemas/far.json", '{"$ref": "http://127.0.0.1:9/x.json"}')


@case
def a_schema_of_gigabytes(place: Place) -> None:
    place.sparse(".mdmem/schemas/note.json")


@case
def templates_without_end(place: Place) -> None:
    place.write(".mdmem/templates/note.md", "{% for i in range(10 ** 12) %}x{% endfor %}")
    place.write(".mdmem/templates/self.md", "{% include 'self.md' %}")
    place.write(".mdmem/templates/call.md", "{{ ''.__class__.__mro__[1].__subclasses__() }}")
    place.pipe(".mdmem/templates/pipe.md")
    place.link(".mdmem/templates/zero.md", "/dev/zero")


@case
def memories_that_are_no_files(place: Place) -> None:
    place.pipe("notes/pipe.md")
    place.link("notes/zero.md", "/dev/zero")
    place.link("notes/passwd.md", "/etc/passwd")
    place.link("notes/loop.md", "loop.md")
    place.link("notes/folder", place.home)
    place.sparse("notes/large.md")
    place.sparse("notes/large.json")
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(place.vault / "notes")
        try:
            made.bind("socket.md")
        finally:
            os.chdir(here)


@case
def memories_with_odd_names(place: Place) -> None:
    names = (
        "-rf.md",
        "a\nb.md",
        "\x1b]0;x\x07.md",
        "Ä.md",
        "A\u0308.md",
        "A.md",
        "$(touch x).md",
        "--pre=sh.md",
    )
    for name in (*names, "x" * 250 + ".md"):
        place.write(f"odd/{name}", "An apple.\n")
    (place.vault / os.fsdecode(b"odd/\xff.md")).write_text("An apple.\n")


@case
def memories_that_grow_when_they_are_read(place: Place) -> None:
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    place.write("notes/laughs.md", f"---\na0: &a0 x\n{laughs}---\n")
    place.write("notes/deep.md", f"---\na: {'[' * 20_000}\n---\n")
    place.write("notes/deep.json", '{"a":' * 50_000)
    place.write("notes/number.json", '{"a": ' + "9" * 1_000_000 + "}")
    place.write("notes/nul.md", b"apple\0" * 1_000)


@case
def citations_of_what_cannot_be_read(place: Place) -> None:
    os.mkfifo(place.work / "pipe.py")
    (place.work / "zero.py").symlink_to("/dev/zero")
    (place.work / "large.py").touch()
    os.truncate(place.work / "large.py", GIGABYTES)
    cited = ("pipe.py#L1", "zero.py#L1", "large.py#L1", "../.bashrc#L1", "/etc/passwd#L1", ".git/config#L1")
    place.write("notes/cites.md", "".join(f"`{each}` [x](../../{each})\n" for each in cited))


@case
def files_of_tools_that_lead_elsewhere(place: Place) -> None:
    os.mkfifo(place.work / "GEMINI.md")
    (place.work / "CLAUDE.md").write_text("@/dev/zero\n@CLAUDE.md\n@~/.bashrc\n")
    (place.work / ".cursor").symlink_to("../.config")
    (place.work / ".github").mkdir()
    (place.work / ".github/copilot-instructions.md").symlink_to("../../.bashrc")


@case
def rules_for_globs_without_end(place: Place) -> None:
    globs = ["{a,b}" * 40, "*" * 5_000, "[" * 5_000, "**/" * 3_000 + "x"]
    place.write("rules/bomb.md", f"---\nglobs: {json.dumps(globs)}\n---\n\nEvil.\n")


@case
def settings_of_git_that_name_programs(place: Place) -> None:
    (place.work / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for setting in (
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
        *("diff.external", "core.fsmonitor", "core.pager", "core.sshCommand", "gpg.program", "alias.blame"),
    ):
        place.git("config", setting, place.program(setting))
    place.git("config", "filter.evil.required", "true")
    place.git("config", "log.showSignature", "true")
    os.utime(place.vault / "notes/a.md", (1, 1))


# ----------------------------------------------------------------------------------------------- the tests


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A repository with a vault as the program makes one, in the home of whoever gets it."""
    place = Place(tmp_path_factory.mktemp("base"))
    place.vault.mkdir(parents=True)
    place.marks.mkdir()
    (place.home / ".ssh").mkdir()
    (place.home / ".config").mkdir()
    for name in (".bashrc", ".ssh/authorized_keys"):
        (place.home / name).write_text("mine\n")
    (place.work / "src").mkdir()
    (place.work / "src/app.py").write_text("one\ntwo\nthree\n")
    (place.work / "AGENTS.md").write_text("# Agents\n")
    place.write(".mdmem/config.toml", '[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
    for path, text in MEMORIES.items():
        place.write(path, text)
    place.git("init", "--quiet")
    place.git("config", "user.name", "a")
    place.git("config", "user.email", "a@example.org")
    place.git("add", "--all")
    place.git("commit", "--quiet", "--message", "m")
    return place


@pytest.fixture(scope="module")
def worker(base: Place) -> Iterator[Commands]:
    with commands(base.vault) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
# README: A vault may be a stranger's: its schemas, templates …
def test_nothing_in_it_runs_hangs_or_writes_elsewhere(
    name: str, base: Place, worker: Commands, tmp_path: Path
) -> None:
    shutil.copytree(base.folder, tmp_path, dirs_exist_ok=True, symlinks=True)
    place = Place(tmp_path)
    CASES[name](place)
    shutil.rmtree(place.marks)
    place.marks.mkdir()
    before = place.state()
    run = worker.on(place.vault).run
    edited = {"tool_input": {"file_path": str(place.vault / "notes/a.md")}, "cwd": str(place.work)}
    for arguments in (*READS, *WRITES):
        ran = run(*arguments, given=json.dumps(edited) if arguments[0] == "hook" else "")
        assert ran.seconds < MOST_SECONDS, (arguments, ran)
        assert ran.kilobytes < MOST_KILOBYTES, (arguments, ran)
        if arguments in WRITES or arguments is READS[-1]:
            after = place.state()
            changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
            assert changed <= (ASKED_FOR if arguments in WRITES else set())
    assert os.listdir(place.marks) == []


def test_every_command_is_run() -> None:
    tried = {" ".join(words[:count]) for words in (*READS, *WRITES) for count in (1, 2)}
    assert {name for name in LEAVES if name not in tried} == OTHERS


def test_install_into_it_writes_through_no_link(base: Place, tmp_path: Path) -> None:
    shutil.copytree(base.folder, tmp_path, dirs_exist_ok=True, symlinks=True)
    place = Place(tmp_path)
    (place.work / ".mcp.json").symlink_to(place.home / ".bashrc")
    (place.work / ".claude").symlink_to(place.home / ".config")
    os.mkfifo(place.work / ".vscode")
    before = place.state()
    program = "import sys; from mdmem.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for host in ("claude-code", "vscode"):
        words = [sys.executable, "-c", program, "install", host, "--project", "--yes"]
        ended = subprocess.run(words, cwd=place.work, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 2, ended
    assert place.state() == before


def test_what_git_tracks_of_local_state_is_named(base: Place, worker: Commands, tmp_path: Path) -> None:
    """And a clone of it does nothing of what the record in it says."""
    shutil.copytree(base.folder, tmp_path, dirs_exist_ok=True, symlinks=True)
    place = Place(tmp_path)
    CASES["a record of a change to take back"](place)
    place.git("add", "--force", "--all")
    place.git("commit", "--quiet", "--message", "evil")
    clone = Place(tmp_path / "clone")
    clone.home.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", str(place.work), str(clone.work)], check=True)
    before = clone.state()
    assert worker.on(clone.vault).run("ls").code == 0
    assert clone.state() == before
    assert "local-tracked" in worker.on(clone.vault).run("doctor").out
