"""Repositories that a stranger could send: nothing in them runs, hangs, fills memory, or writes elsewhere.

Each is committed, cloned, and then met by every command, by `watch` and by `mcp`. Git carries files, links,
names and a committed `.mdmem/local`; pipes, sparse files, git's own settings and repositories around it come
with an archive or a disk: those are made in the clone (`afterwards`).
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, closing, contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mdmem.cli.main import main
from mdmem.facade.memory import Memory
from mdmem.vault.mark import signed
from tests.end_to_end.test_help import LEAVES
from tests.end_to_end.test_storage_faults import Commands, commands
from tests.serve.mcp.test_stdio import call, lines_of
from tests.speed import is_all, soak_most

MOST_SECONDS, MOST_KILOBYTES = 5.0, 500_000
GIGABYTES = 3 << 30
HANG_SECONDS = 60.0
TEMPLATE = "{% for i in range(10 ** 12) %}x{% endfor %}"
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
    *(("sessions", name) for name in ("list", "check")),
    *(("sessions", name, "apple", "--all") for name in ("grep", "search")),
    ("sessions", "summaries"),
    ("inbox", "list", "--all"),
    ("inbox", "show", "a"),
    *(("results", name) for name in ("list", "references")),
    ("results", "recover", "0" * 8),
    ("sessions", "observations", "mine"),
    ("ls", "--where", "tags=fruit"),
    ("ls", "--long"),
    ("ls", "--tree"),
    ("show", "notes/a.md"),
    ("grep", "apple"),
    ("search", "apple"),
    ("refs",),
    ("backlinks", "notes/a.md"),
    ("check",),
    ("history",),
    ("git", "log"),
    ("git", "log", "notes/a.md"),
    ("git", "commit", "--dry-run"),
    ("git", "revert", "HEAD", "--dry-run"),
    ("git", "revert", "notes/a.md:apple", "--dry-run"),
    ("diff", "notes/a.md"),
    ("git", "log", "notes/a.md#Apple"),
    ("git", "diff"),
    ("git", "diff", "HEAD~1..HEAD"),
    ("git", "blame", "notes/a.md"),
    ("stats",),
    ("status",),
    ("context",),
    ("context", "apple"),
    ("rules", "text"),
    ("preferences", "list"),
    ("working", "list"),
    ("project", "summary"),
    ("project", "sync", "--check"),
    ("schema", "check"),
    ("new", "note", "--print", "--var", "title=Idea"),
    ("hook", "session-start"),
    ("hook", "post-edit"),
    ("hook", "user-prompt"),
    ("graph",),
    ("tags",),
    ("index",),
    ("completion", "bash"),
    ("help", "scopes"),
    ("notes", "list"),
    ("rules", "list"),
    ("preferences", "show", "ui", "theme"),
    ("preferences", "stats"),
    ("working", "show", "--thread", "t1"),
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
            ("edit", "notes/a.md"),
            ("remember", "More.", "--name", "a"),
            ("rules", "new", "more", "Write more."),
            ("prepend", "notes/a.md", "More."),
            ("insert", "notes/b.md", "1", "More."),
            ("delete-lines", "notes/b.md", "1"),
            ("replace", "notes/a.md", "An apple", "One"),
            ("replace", "--in", "notes", "--all", "apple", "pear"),
            ("section", "notes/a.md", "Apple", "More."),
            ("set", "notes/a.md", "tags=[x]"),
            ("unset", "notes/a.md", "tags"),
            ("mv", "notes/a.md", "notes/c.md"),
            ("supersede", "notes/a.md", "notes/b.md"),
            ("contradict", "notes/a.md", "notes/b.md"),
            ("reinstate", "notes/a.md"),
            ("confirm", "notes/a.md", "--source", "s1"),
            ("why", "notes/a.md"),
            ("past", "2999-01-01"),
            ("access", "notes/a.md"),
            ("share", "notes/a.md", "bob", "read"),
            ("unshare", "notes/a.md"),
            ("git", "review"),
            ("duplicates",),
            ("consolidate",),
            ("quality",),
            ("report",),
            ("merge", "notes/a.md", "notes/b.md", "--into", "notes/b.md"),
            ("prune",),
            ("revoke", "s1"),
            ("rm", "-r", "notes"),
            ("new", "note", "notes/n.md", "--var", "title=N"),
            ("today", "More."),
            ("notes", "append", "a", "More."),
            ("notes", "overwrite", "a", "More."),
            ("working", "set", "More.", "--thread", "t1"),
            ("working", "find-and-replace", "green", "red", "--thread", "t1"),
            ("working", "merge", '{"a": 1}', "--resource-id", "r1"),
            ("working", "clear", "--thread", "t1"),
            ("working", "sweep"),
            ("preferences", "set", "ui", "theme", "light"),
            ("preferences", "rm", "ui", "theme"),
            ("preferences", "sweep"),
            ("project", "append", "Decisions", "More."),
            ("project", "step", "One", "done"),
            ("project", "params", "a=1"),
            ("project", "sync"),
            ("import", "obsidian", "notes"),
            ("init", "../more"),
            ("git", "install"),
            ("git", "uninstall"),
        )
    ),
    ("doctor",),
)
# What is run in every repository, as it reads by a way of its own: of the others each is run in a third.
SHARE = 3
FIRST: Sequence[Sequence[str]] = (
    *(("ls",), ("ls", "--where", "tags=fruit"), ("ls", "--tree"), ("show", "notes/a.md"), ("grep", "apple")),
    *(
        ("search", "apple"),
        ("refs",),
        ("check",),
        ("history",),
        ("git", "log"),
        ("git", "diff"),
        ("diff", "notes/a.md"),
    ),
    *(
        ("git", "blame", "notes/a.md"),
        ("context", "apple"),
        ("project", "sync", "--check"),
    ),
    *(
        ("hook", "session-start"),
        ("hook", "post-edit"),
        ("sessions", "search", "apple", "--all"),
        ("doctor",),
    ),
)
# Those that run until somebody ends them, those that write into the settings of other programs, and what git
# runs on files of its own.
OTHERS = {
    *("lsp", "mcp", "watch", "web", "install", "uninstall", "git merge-driver"),
    *(f"store {name}" for name in ("init", "sweep", "copy", "put", "check", "erase")),
    "token new",  # about no vault
}
WRITES: Sequence[Sequence[str]] = (
    ("undo",),  # when nobody here has changed anything
    ("write", "notes/mine.md", "Mine.\n"),
    ("git", "commit"),
    ("append", "notes/mine.md", "More."),
    ("git", "revert", "notes/mine.md:Mine"),
    ("git", "allow", "hooks", "--off"),
    ("undo",),
    ("redo",),
    ("undo",),
    ("rm", "notes/mine.md"),
    ("restore", "notes/mine.md"),
    ("rm", "notes/mine.md"),
    ("restore", "notes/a.md"),  # which nobody here has changed
    ("append", "a.md", "More."),
    ("inbox", "propose", "append", '{"path": "a.md", "text": "Mine."}'),
    ("inbox", "reject", "32704ccfeae6c143"),
    ("inbox", "accept", "32704ccfeae6c143"),
    ("inbox", "sweep"),
)
# In one sweep: each writes its log, and most of them ask it first.
LOGGING: Sequence[Sequence[str]] = (
    *(("sessions", "append", "mine", "user", f"Mine, number {number}.") for number in range(3)),
    ("sessions", "capture", "mine"),
    *(("sessions", name, "mine") for name in ("history", "compact")),
    ("sessions", "expand", "mine", "1"),
    ("sessions", "assemble", "mine", "1000"),
    *(("sessions", name, "mine") for name in ("summarize", "keep")),
    ("sessions", "observe", "mine"),
    ("sessions", "reflect", "mine"),
    ("sessions", "observed", "mine/0-1-1"),
    ("sessions", "delete-observations", "--session", "mine"),
    *(("sessions", name, "mine") for name in ("vacuum", "clear", "rm", "restore")),
    ("sessions", "import", "openai-messages", "/dev/null"),
    ("sessions", "allow-capture", "--off"),
    ("results", "compress", "/dev/null", "--tool", "Bash"),
    ("results", "sweep"),
)
LOGS = "home/work/memories/sessions"
ASKED_FOR = {
    f"home/work/memories/{path}" for path in ("notes/mine.md", "a.md", "inbox", "inbox/32704ccfeae6c143.md")
}


def pace() -> float:
    """How many times slower this machine is than those on which the limit of seconds was set; 1 at least."""
    began = time.process_time()
    sum(number * number for number in range(2_000_000))
    return max(1.0, (time.process_time() - began) / 0.2)


def is_quick(seconds: float) -> bool:
    """Whether a run is within the limit, on a slower machine within as many times more."""
    return not is_all or seconds < MOST_SECONDS or seconds < MOST_SECONDS * pace()


Build = Callable[["Place"], object]


class Place:
    """Where a case is built: a home, in it a repository that a stranger has sent, and a vault in that."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = self.home / "work"
        self.vault = self.work / "memories"
        self.local = self.vault / ".mdmem/local"
        self.marks = folder / "marks"
        self.later: list[Build] = []

    def afterwards(self, build: Build) -> None:
        """Make in the clone what git does not carry."""
        self.later.append(build)

    def free(self, path: str) -> Path:
        """Where something is to stand in the vault: its folder is made, what stood there is gone."""
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        file.unlink(missing_ok=True)
        return file

    def write(self, path: str, text: str | bytes) -> None:
        self.free(path).write_bytes(text if isinstance(text, bytes) else text.encode())

    def link(self, path: str, target: str) -> None:
        """A link; `~` at the beginning of its target is the home."""
        file = self.free(path)
        if target.startswith("~"):
            target = os.path.relpath(f"{self.home}{target[1:]}", file.parent)
        file.symlink_to(target)

    def sparse(self, path: str) -> None:
        def make(place: Place) -> None:
            place.write(path, b"")
            os.truncate(place.vault / path, GIGABYTES)

        self.afterwards(make)

    def pipe(self, path: str) -> None:
        self.afterwards(lambda place: os.mkfifo(place.free(path)))

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.work, check=True, capture_output=True)

    def program(self, name: str) -> str:
        """A program that leaves its name behind."""
        path = self.work / "evil"
        path.write_text(f"#!/bin/sh\ntouch {self.marks}/$1\ncat\n")
        path.chmod(0o755)
        return f"{path} {name}"

    def changed(self, before: Mapping[str, str]) -> set[str]:
        """What is no longer as it was."""
        after = self.state()
        return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}

    def state(self) -> dict[str, str]:
        """Every file that is not local state of the vault, or git's."""
        return dict(self._state(self.folder))

    def _state(self, folder: Path) -> Iterator[tuple[str, str]]:
        try:
            entries = sorted(os.scandir(folder), key=lambda each: each.name)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            return
        for entry in entries:
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

CASES: dict[str, Build] = {}
# Each case of above broke mdmem once. These never did: they are kept because they guard a promise.
GUARDS: dict[str, Build] = {}


def case(build: Build) -> Build:
    CASES[build.__name__.replace("_", " ")] = build
    return build


def guard(build: Build) -> Build:
    GUARDS[build.__name__.replace("_", " ")] = build
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


@contextmanager
def elsewhere(place: Place) -> Iterator[None]:
    """As the stranger, whose key is another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place.folder / "state"))
        yield


@case
def a_record_of_a_change_to_take_back(place: Place) -> None:
    place.write(f".mdmem/local/staging/{STAGED}.many", json.dumps(planted(place)))


@case
def a_record_of_a_change_to_finish(place: Place) -> None:
    place.write(f".mdmem/local/staging/{STAGED}.done", json.dumps(planted(place)))


@case
def a_record_of_one_file(place: Place) -> None:
    told = record(place, ("AGENTS.md", "other\n", "# Agents\n"))
    place.write(f".mdmem/local/staging/{STAGED}.0", "evil\n")
    place.write(f".mdmem/local/staging/{STAGED}.one", json.dumps(told))


@case
def a_record_that_another_machine_signed(place: Place) -> None:
    with elsewhere(place):
        place.write(f".mdmem/local/staging/{STAGED}.many", signed(planted(place)))


@case
def records_of_gigabytes_links_and_pipes(place: Place) -> None:
    place.sparse(f".mdmem/local/staging/{STAGED}.many")
    place.sparse(f".mdmem/local/staging/{STAGED}.0")
    place.link(".mdmem/local/staging/x.one", "/dev/zero")
    place.link(".mdmem/local/staging/x.0", "~/.bashrc")
    place.pipe(".mdmem/local/staging/y.done")
    place.write(".mdmem/local/staging/z.many/z", "")


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
    place.write(f".mdmem/local/trash/{digest('Mine.' + chr(10))}/x", "")
    place.link(f".mdmem/local/trash/{digest('Mine.' + chr(10) + 'More.' + chr(10))}", "~/.bashrc")


@guard
def local_state_that_is_a_link_to_the_home(place: Place) -> None:
    place.link(".mdmem/local", "~")


@guard
def an_index_and_a_trash_that_are_links(place: Place) -> None:
    for name in ("index", "trash", "staging"):
        place.link(f".mdmem/local/{name}", "~")


@guard
def a_lock_that_is_a_pipe(place: Place) -> None:
    place.pipe(".mdmem/local/lock")
    place.pipe(".mdmem/local/index/lock")


@guard
def a_lock_that_is_a_link(place: Place) -> None:
    place.link(".mdmem/local/lock", "~/.bashrc")


@case
def an_index_that_grows_without_end(place: Place) -> None:
    with elsewhere(place):
        memory = Memory(str(place.vault))
        memory.sync()
        folder = memory.index.folder
        memory.index.close()
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 300000000)"
    with closing(sqlite3.connect(f"{folder}/database.sqlite")) as database:
        database.execute("CREATE TABLE more (x)")
        for event in ("INSERT", "UPDATE", "DELETE"):
            filling = f"INSERT INTO more {numbers} SELECT x FROM n"
            database.execute(f"CREATE TRIGGER t{event} BEFORE {event} ON documents BEGIN {filling}; END")
        database.commit()


@case
def mounts_of_what_programs_obey(place: Place) -> None:
    (place.work / ".envrc").write_text("mine\n")
    place.write(".mdmem/config.toml", '[mounts]\n"a.md" = "../.envrc"\n')


@case
def mounts_in_a_home_that_is_a_repository(place: Place) -> None:
    def around(place: Place) -> None:
        shutil.rmtree(place.work / ".git")
        subprocess.run(["git", "init", "--quiet", str(place.home)], check=True)

    place.write(".mdmem/config.toml", '[mounts]\n"a.md" = "../../.bashrc"\n')
    place.afterwards(around)


@case
def a_mount_through_a_link(place: Place) -> None:
    (place.work / ".envrc").write_text("mine\n")
    (place.work / "a.md").symlink_to(".envrc")
    place.write(".mdmem/config.toml", '[mounts]\n"a.md" = "../a.md"\n')


@case
def thousands_of_mounts(place: Place) -> None:
    mounts = "".join(f'"{number}.md" = "../{number}.md"\n' for number in range(40_000))
    place.write(".mdmem/config.toml", f"[mounts]\n{mounts}")


@case
def a_config_of_gigabytes(place: Place) -> None:
    place.sparse(".mdmem/config.toml")


@guard
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
def schemas_that_lead_from_one_to_another(place: Place) -> None:
    place.pipe(".mdmem/schemas/pipe.json")
    place.link(".mdmem/schemas/zero.json", "/dev/zero")
    place.write(".mdmem/schemas/deep.json", "[" * 50_000)
    place.write(".mdmem/schemas/list.json", "[]")
    place.write(".mdmem/schemas/far.json", '{"$ref": "http://127.0.0.1:9/x.json"}')
    for name, to in (("note", "near"), ("near", "far"), ("preference", "pipe"), ("rule", "zero")):
        place.write(f".mdmem/schemas/{name}.json", json.dumps({"$ref": to}))


@case
def a_schema_of_gigabytes(place: Place) -> None:
    place.sparse(".mdmem/schemas/note.json")


@case
def schemas_with_patterns_that_never_end(place: Place) -> None:
    patterns = ("(a|aa)+$", "a*" * 12 + "b", "(a|b|ab)*c", r"(\w|\d)*c", "(.|a)*c")
    fields = {f"k{number}": {"pattern": pattern} for number, pattern in enumerate(patterns)}
    place.write(".mdmem/schemas/note.json", json.dumps({"properties": fields}))
    lines = "".join(f"k{number}: {'a' * 60}?\n" for number in range(len(patterns)))
    place.write("notes/b.md", f"---\n{lines}---\n\n# Pear\n")


@case
def a_schema_that_asks_twice_at_each_level(place: Place) -> None:
    levels = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**levels, "d30": {"required": ["k"]}}}
    place.write(".mdmem/schemas/note.json", json.dumps(schema))


@case
def a_schema_of_all_sections(place: Place) -> None:
    wanted = {"x-body": {"sections": [f"Section {n}" for n in range(100_000)]}}
    place.write(".mdmem/schemas/note.json", json.dumps(wanted))


@guard
def templates_without_end(place: Place) -> None:
    place.write(".mdmem/templates/note.md", TEMPLATE)
    place.write(".mdmem/templates/self.md", "{% include 'self.md' %}")
    place.write(".mdmem/templates/call.md", "{{ ''.__class__.__mro__[1].__subclasses__() }}")
    place.pipe(".mdmem/templates/pipe.md")
    place.link(".mdmem/templates/zero.md", "/dev/zero")


@case
def a_template_of_gigabytes(place: Place) -> None:
    place.sparse(".mdmem/templates/note.md")


@case
def memories_that_are_no_files(place: Place) -> None:
    place.pipe("notes/pipe.md")
    place.link("notes/zero.md", "/dev/zero")
    place.link("notes/passwd.md", "/etc/passwd")
    place.link("notes/loop.md", "loop.md")
    place.link("notes/folder", "~")
    place.sparse("notes/large.md")
    place.sparse("notes/large.json")

    def bind(place: Place) -> None:
        with socket.socket(socket.AF_UNIX) as made, chdir(place.vault / "notes"):
            made.bind("socket.md")

    place.afterwards(bind)


@guard
def memories_with_odd_names(place: Place) -> None:
    names = (
        *("-rf.md", "a\nb.md", "\x1b]0;x\x07.md", "Ä.md", "A\u0308.md", "A.md", "$(touch x).md"),
        "--pre=sh.md",
    )
    for name in (*names, "x" * 250 + ".md"):
        place.write(f"odd/{name}", "An apple.\n")
    (place.vault / os.fsdecode(b"odd/\xff.md")).write_text("An apple.\n")


@guard
def memories_that_grow_when_they_are_read(place: Place) -> None:
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    place.write("notes/laughs.md", f"---\na0: &a0 x\n{laughs}---\n")
    place.write("notes/deep.md", f"---\na: {'[' * 20_000}\n---\n")
    place.write("notes/deep.json", '{"a":' * 50_000)
    place.write("notes/number.json", '{"a": ' + "9" * 1_000_000 + "}")
    place.write("notes/nul.md", b"apple\0" * 1_000)


@case
def a_memory_of_one_key_again_and_again(place: Place) -> None:
    place.write("notes/keys.json", '{"a": 1' + ', "a": 1' * 500_000 + "}")


@case
def a_memory_of_one_line(place: Place) -> None:
    place.write("notes/line.md", "apple " * 500_000 + "\n")


@guard
def memories_of_one_thing_again_and_again(place: Place) -> None:
    for number, unit in enumerate(("#a", "[a](", "a ^b\n\n", "> ", "`code.py#L1` ", "[[b]]")):
        place.write(f"notes/many{number}.md", "apple " + unit * (100_000 // len(unit)))


@guard
def folders_without_end(place: Place) -> None:
    def deepen(place: Place) -> None:
        descriptor = os.open(place.vault / "notes", os.O_RDONLY)
        for _ in range(600):
            os.mkdir("d" * 10, dir_fd=descriptor)
            below = os.open("d" * 10, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        os.close(descriptor)

    place.afterwards(deepen)


@guard
def citations_of_what_cannot_be_read(place: Place) -> None:
    place.pipe("../pipe.py")
    place.sparse("../large.py")
    (place.work / "zero.py").symlink_to("/dev/zero")
    cited = ("pipe.py#L1", "zero.py#L1", "large.py#L1", "../.bashrc#L1", "/etc/passwd#L1", ".git/config#L1")
    place.write("notes/cites.md", "".join(f"`{each}` [x](../../{each})\n" for each in cited))


@guard
def files_of_tools_that_lead_elsewhere(place: Place) -> None:
    place.pipe("../GEMINI.md")
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
    def configure(place: Place) -> None:
        for setting in (
            *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
            *(
                *("diff.external", "core.fsmonitor", "core.pager", "core.sshCommand", "gpg.program"),
                "alias.blame",
            ),
        ):
            place.git("config", setting, place.program(setting))
        place.git("config", "filter.evil.required", "true")
        place.git("config", "log.showSignature", "true")
        os.utime(place.vault / "notes/a.md", (1, 1))

    (place.work / ".gitattributes").write_text("* filter=evil diff=evil\n")
    place.afterwards(configure)


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
    return place


def cloned(base: Place, folder: Path, *builds: Build) -> Place:
    """A clone of what a stranger has committed, with what git does not carry."""
    sent, got = Place(folder / "sent"), Place(folder / "got")
    for place in (sent, got):
        shutil.copytree(base.folder, place.folder, symlinks=True)
    for build in builds:
        build(sent)
    sent.git("add", "--force", "--all")
    sent.git("commit", "--quiet", "--message", "evil")
    shutil.rmtree(got.work)
    subprocess.run(["git", "clone", "--quiet", str(sent.work), str(got.work)], check=True)
    for build in sent.later:
        build(got)
    shutil.rmtree(got.marks)
    got.marks.mkdir()
    return got


@pytest.fixture(scope="module")
def worker(base: Place) -> Iterator[Commands]:
    with commands(base.vault) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, which is removed even where its folders are deeper than Python can go."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


# What can stand side by side in one repository, each of them out of the way of the others.
TOGETHER: Mapping[str, Sequence[str]] = {
    "memories": (
        *("memories that are no files", "memories with odd names", "files of tools that lead elsewhere"),
        *("settings of git that name programs", "schemas that lead from one to another"),
    ),
    "growing": (
        *("memories that grow when they are read", "folders without end", "a template of gigabytes"),
        *("citations of what cannot be read", "rules for globs without end"),
    ),
    "sizes": ("a memory of one key again and again", "a schema of all sections"),
    "lines": ("a memory of one line", "a record of a change to take back", "a log of what never happened"),
    "patterns": ("schemas with patterns that never end", "an index that grows without end"),
    "records": ("a lock that is a pipe", "templates without end", "memories of one thing again and again"),
    "gigabytes": (
        *("records of gigabytes links and pipes", "a log of gigabytes"),
        *("a schema of gigabytes", "a lock that is a link"),
    ),
    "links": ("local state that is a link to the home", "a schema that asks twice at each level"),
    "log": ("a log that is a pipe", "an index and a trash that are links"),
    "config": ("a config of dots and brackets",),  # which `watch` refuses, and `mcp` with each call
}
NAMES = [*CASES, *GUARDS, "memories"]
# Those that reach what nothing else of them does.
OFTEN = (
    *("a record of a change to take back", "a log of what never happened", "a config of gigabytes"),
    *("mounts of what programs obey", "a mount through a link", "memories"),
    "local state that is a link to the home",
)


def builds(name: str) -> list[Build]:
    """What builds a case, or several that stand together."""
    return [(CASES | GUARDS)[each] for each in TOGETHER.get(name, (name,))]


@pytest.mark.parametrize("name", soak_most(NAMES, quick=[*map(NAMES.index, OFTEN)]))
def test_nothing_in_it_runs_hangs_or_writes_elsewhere(
    name: str, base: Place, worker: Commands, folder: Path
) -> None:
    number = NAMES.index(name)
    place = cloned(base, folder, *builds(name))
    before = place.state()
    edited = {"tool_input": {"file_path": str(place.vault / "notes/a.md")}, "cwd": str(place.work)}
    sweep = partial(worker.on(place.vault).sweep, given=json.dumps(edited))
    reading = [*FIRST, *[each for each in READS if each not in FIRST][number % SHARE :: SHARE]]
    logging = LOGGING if number % SHARE == 0 or name.startswith(("a log", "an index", "records")) else ()
    writing = ([each] for each in WRITES) if is_all else (WRITES,)
    for together, allowed in (reading, set()), *((each, ASKED_FOR) for each in (*writing, logging)):
        for arguments, ran in zip(together, sweep(together), strict=True):
            assert is_quick(ran.seconds), (arguments, ran)
            assert ran.kilobytes < MOST_KILOBYTES, (arguments, ran)
        changed = place.changed(before)
        assert {path for path in changed if together is not logging or not path.startswith(LOGS)} <= allowed
    assert os.listdir(place.marks) == []


def sampled(process: int, peak: list[int], ended: threading.Event) -> None:
    """Keep the peak of a process's memory in kilobytes; `wait4` counts what the forked tests had, too."""
    is_last = False
    while not is_last:
        with suppress(OSError):
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
            peak[0] = int(found[1]) if found else peak[0]
        is_last = ended.wait(0.01)


@contextmanager
def serving(place: Place, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A program that serves the vault; what it took is looked at when it has ended."""
    errors = place.folder.parent / "errors"
    before = place.state()
    command = [sys.executable, "-m", "mdmem", "--vault", str(place.vault), *words]
    with open(errors, "w") as to:
        process = subprocess.Popen(
            command,
            cwd=place.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=to,
            encoding="utf-8",
            errors="replace",
        )
    assert process.stdin
    assert process.stdout
    killer = threading.Timer(HANG_SECONDS, process.kill)
    killer.start()
    peak, ended = [0], threading.Event()
    sampler = threading.Thread(target=sampled, args=(process.pid, peak, ended))
    sampler.start()
    try:
        yield process
    finally:
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        killer.cancel()
        ended.set()
        sampler.join()
        process.stdout.close()
    told = errors.read_text()
    assert process.returncode in {0, 2, 130}, told
    assert "Traceback" not in told
    assert is_quick(used.ru_utime + used.ru_stime)
    assert 0 < peak[0] < MOST_KILOBYTES
    assert place.changed(before) <= ASKED_FOR
    assert os.listdir(place.marks) == []


@pytest.mark.parametrize(
    ("name", "number"),
    soak_most(zip(TOGETHER, cycle((signal.SIGTERM, signal.SIGINT)))),
    ids=lambda value: value.name if isinstance(value, signal.Signals) else value,
)
def test_watching_it_runs_hangs_and_writes_nothing(
    name: str, number: signal.Signals, base: Place, folder: Path
) -> None:
    place = cloned(base, folder, *builds(name))
    with serving(place, "watch") as process:
        assert process.stdout
        if name == "config":
            assert process.stdout.read() == ""
            return
        assert process.stdout.readline() == "ready\n"
        place.write("notes/mine.md", "Mine.\n")
        assert any(line == "created  notes/mine.md\n" for line in process.stdout)
        process.send_signal(number)


@pytest.mark.parametrize("name", soak_most(TOGETHER))
def test_serving_it_runs_hangs_and_writes_nothing(name: str, base: Place, folder: Path) -> None:
    place = cloned(base, folder, *builds(name))
    calls = [
        call(1, "ls"),
        call(2, "search", query="apple"),
        call(3, "grep", pattern="(a|aa)+$", regex=True),
        call(4, "show", path="notes/a.md"),
        call(5, "context", query="apple"),
        call(6, "references", path="notes/a.md"),
        {"id": 7, "method": "tools/list"},
    ]
    with serving(place, "mcp") as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(lines_of(*calls).decode())
        process.stdin.flush()
        answered = [json.loads(line)["id"] for line in islice(process.stdout, 1 + len(calls))]
    assert sorted(answered) == list(range(1 + len(calls)))


@pytest.mark.parametrize("name", soak_most(TOGETHER))
def test_serving_the_page_of_it_runs_hangs_and_writes_nothing(name: str, base: Place, folder: Path) -> None:
    place = cloned(base, folder, *builds(name))
    asked = (
        "review",
        "memory?path=notes/a.md",
        "search?query=apple",
        "proposals",
        "overview",
        "list?what=broken",
    )
    with serving(place, "web") as process:
        assert process.stdout
        address, _, token = process.stdout.readline().strip().partition("/#")
        with httpx2.Client(headers={"authorization": f"Bearer {token}"}, timeout=HANG_SECONDS) as client:
            answers = [client.get(f"{address}/api/{question}") for question in asked]
        process.send_signal(signal.SIGTERM)
    assert all(answer.status_code in {200, 400, 404, 503} for answer in answers)


@pytest.mark.parametrize("name", soak_most(TOGETHER))
def test_serving_an_editor_it_runs_hangs_and_writes_nothing(name: str, base: Place, folder: Path) -> None:
    place = cloned(base, folder, *builds(name))
    uri = (place.vault / "notes/a.md").as_uri()
    named, at = {"textDocument": {"uri": uri}}, {"position": {"line": 2, "character": 3}}
    text = (place.vault / "notes/a.md").read_text(errors="replace")
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": text}
    asked: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": {"capabilities": {}, "rootUri": place.vault.as_uri()}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
        *(
            {"id": number, "method": f"textDocument/{question}", "params": {**named, **at}}
            for number, question in enumerate(("definition", "hover", "completion", "documentLink"), 1)
        ),
        {"id": 5, "method": "workspace/symbol", "params": {"query": "a"}},
        {"id": 6, "method": "shutdown"},
    ]
    with serving(place, "lsp") as process:
        assert process.stdin
        assert process.stdout
        for message in asked:
            body = json.dumps({"jsonrpc": "2.0", **message})
            process.stdin.write(f"Content-Length: {len(body)}\r\n\r\n{body}")
        process.stdin.flush()
        answered: set[Any] = set()
        while len(answered) < 7:
            length = int(process.stdout.readline().partition(":")[2])
            while process.stdout.readline().strip():
                pass
            message = json.loads(process.stdout.read(length))
            answered |= {message["id"]} if "method" not in message else set()
    assert answered == set(range(7))


def test_every_command_is_run() -> None:
    tried = {" ".join(words[:count]) for words in (*READS, *WRITES, *LOGGING) for count in (1, 2)}
    assert {name for name in LEAVES if name not in tried} == OTHERS
    assert {*FIRST} <= {*READS}
    together = {name for names in TOGETHER.values() for name in names}
    assert together <= CASES.keys() | GUARDS.keys()


def test_install_into_it_writes_through_no_link(
    base: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def link(place: Place) -> None:
        (place.work / ".mcp.json").symlink_to("../.bashrc")
        (place.work / ".claude").symlink_to("../.config")
        place.pipe("../.vscode")

    place = cloned(base, tmp_path, link)
    before = place.state()
    monkeypatch.chdir(place.work)
    for host in ("claude-code", "vscode"):
        assert main(["install", host, "--local", "--yes"]) == 2, capsys.readouterr()
    assert place.state() == before


def test_what_git_tracks_of_local_state_is_named(base: Place, worker: Commands, tmp_path: Path) -> None:
    """And a clone of it does nothing of what the record in it says."""
    clone = cloned(base, tmp_path, CASES["a record of a change to take back"])
    before = clone.state()
    assert worker.on(clone.vault).run("ls").code == 0
    assert clone.state() == before
    assert "local-tracked" in worker.on(clone.vault).run("doctor").out
