"""Hooks where the index is not there yet: nobody waits for it, and what needs no query is said anyway."""

from __future__ import annotations

import fcntl
import io
import json
import os
import random
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.cli.main import main
from mdmem.errors import IndexNotReady
from mdmem.facade import background
from mdmem.facade.questions.context import context
from tests import speed
from tests.git.conftest import SETTINGS
from tests.serve.mcp.conftest import Tools
from tests.speed import soak_most
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


EVENTS = ("session-start", "user-prompt", "post-edit", "post-tool", "pre-compact", "stop")
MOST = 400  # files that a hook reads
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def hook(root: Path, event: str, **given: Any) -> Any:
    """What a hook says, in this process; nothing goes wrong."""
    told = {"session_id": "5e1f", "cwd": str(root.parent), **given}
    kept = [io.BytesIO(data) for data in (json.dumps(told).encode(), b"", b"")]
    streams = [io.TextIOWrapper(each, encoding="utf-8") for each in kept]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        for name in ("signal", "alarm"):
            patch.setattr(signal, name, lambda *_: None)  # the alarm is that of the test
        patch.setenv("CLAUDE_PROJECT_DIR", str(root.parent))
        assert main(["--vault", str(root), "hook", event]) == 0
    assert kept[2].getvalue() == b""
    said = kept[1].getvalue().decode()
    return json.loads(said) if said.startswith("{") else said


def fill(root: Path, count: int) -> None:
    """Write that many notes, and what a session begins with."""
    for path, text in {
        "rules/style.md": "---\npriority: 2\n---\n# Style\n\nType it.\n",
        "preferences/ui/theme.md": "---\nvalue: dark\n---\n",
        "AGENTS.md": "# Project\n\nUse pnpm.\n",
        "working/threads/5e1f.md": "Tests are green.\n",
        "notes/pinned.md": "---\ntier: pinned\n---\nThe port is 5199.\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    for number in range(count):
        text = f"# Note {number}\n\nThe walrus {number} sings at dawn, see [[n{number + 1}]].\n"
        (root / f"notes/n{number}.md").write_text(text, encoding="utf-8")


def kept(root: Path, name: str) -> Path:
    """A file of the index."""
    return Path(mdmem.open(root).index.folder, name)


@contextmanager
def locked(root: Path, name: str = "lock") -> Iterator[None]:
    """Hold a lock of the index, as another process does."""
    with kept(root, name).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def given_for(root: Path, event: str) -> dict[str, Any]:
    note = str(root / "notes/n1.md")
    given: dict[str, dict[str, Any]] = {
        "session-start": {},
        "user-prompt": {"prompt": "Where does the walrus 3 sing at dawn?"},
        "post-edit": {"tool_name": "Edit", "tool_input": {"file_path": note}},
        "post-tool": {"tool_name": "Bash", "tool_response": "short"},
        "pre-compact": {},
        "stop": {"stop_hook_active": False},
    }
    return given[event]


def text_of(said: Any) -> str:
    return said["hookSpecificOutput"]["additionalContext"] if "hookSpecificOutput" in said else ""


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """No process is started; what would have been started."""
    started: list[Any] = []
    monkeypatch.setattr(background, "_start_process", lambda _, given: started.append(given))
    return started


def make_unready(root: Path, state: str, count: int) -> Any:
    """Make the index one that is not ready, for as long as the context is open."""
    fill(root, count)
    if state == "no index":
        return locked(root, "other")
    mdmem.open(root).sync()
    if state == "lock held":
        (root / "notes/new.md").write_text("# New\n")
        return locked(root)
    for number in range(count):
        with open(root / f"notes/n{number}.md", "a", encoding="utf-8") as file:
            file.write("More.\n")
    return locked(root, "other")


@pytest.mark.parametrize(
    ("state", "count"),
    soak_most(
        [
            *(("no index", MOST + 1), ("lock held", 5), ("stale", MOST + 1)),
            *(("no index", 3_680), ("lock held", 3_680), ("stale", 3_000)),
        ],
        quick=(0, 1, 2),
    ),
)
def test_no_event_waits_for_an_index_that_is_not_ready(
    vault_root: Path, quiet: list[Any], state: str, count: int
) -> None:
    with make_unready(vault_root, state, count):
        (vault_root / "notes/n1.md").write_text("---\nconfidence: 7\n---\nSee [[nowhere]].\n")
        said = {event: hook(vault_root, event, **given_for(vault_root, event)) for event in EVENTS}
    begun = text_of(said["session-start"])
    for part in ("Type it.", "dark", "Use pnpm.", "Tests are green.", "The port is 5199."):
        assert part in begun
    word = said["session-start"]["systemMessage"]
    assert word.startswith("mdmem: the index is being made: 0 of ")
    assert said["user-prompt"] == "", "a person is told once in a session"
    assert said["post-edit"]["decision"] == "block"
    assert "confidence" in said["post-edit"]["reason"], "the file alone is checked"
    assert "nowhere" not in said["post-edit"]["reason"], "what it points at is not"
    assert "working/threads/5e1f.md" in said["pre-compact"]
    assert said["stop"]["decision"] == "block"
    assert quiet == [{"indexes": True}] * 3, "by each event that asked the index"


def test_a_session_begins_with_the_same_text_before_and_behind_the_build(vault_root: Path) -> None:
    fill(vault_root, MOST + 1)
    before = hook(vault_root, "session-start")
    until(lambda: mdmem.open(vault_root).index.rows("SELECT 1 FROM documents LIMIT 1"))
    mdmem.open(vault_root).sync()  # it waits for whoever is at it
    behind = hook(vault_root, "session-start")
    assert text_of(before) == text_of(behind) != ""
    assert "systemMessage" in before
    assert "systemMessage" not in behind
    found = hook(vault_root, "user-prompt", **given_for(vault_root, "user-prompt"))
    assert "The walrus 3 sings" in text_of(found)


def test_a_session_is_told_how_many_memories_are_not_looked_at_without_an_index(
    vault_root: Path, quiet: list[Any]
) -> None:
    fill(vault_root, MOST + 1)
    (vault_root / ".mdmem/config.toml").write_text(
        '[kinds.adr]\nfolder = "decisions"\nschema = "note"\ntemplate = "note"\n', encoding="utf-8"
    )
    (vault_root / "decisions").mkdir()
    for number in range(MOST + 2):
        (vault_root / f"decisions/d{number}.md").write_text(f"# Decision {number}\n")
        (vault_root / f"notes/p{number}.md").write_text("---\ntier: pinned\n---\nPinned.\n")
    told = hook(vault_root, "session-start")["systemMessage"]
    assert told.endswith("; until then 5 memories are not looked at"), told
    assert quiet


@pytest.mark.parametrize("event", ["user-prompt", "post-edit"])
def test_a_small_vault_is_indexed_by_the_hook_itself(vault_root: Path, quiet: list[Any], event: str) -> None:
    fill(vault_root, 5)
    (vault_root / "notes/n1.md").write_text("See [[nowhere]].\n")
    said = text_of(hook(vault_root, event, **given_for(vault_root, event)))
    assert ("nowhere" if event == "post-edit" else "walrus 3") in said
    assert quiet == []


def test_a_command_waits_where_a_hook_does_not(vault_root: Path) -> None:
    fill(vault_root, MOST + 1)
    memory = mdmem.open(vault_root)
    memory.vault.is_hurried = True
    with pytest.raises(IndexNotReady, match=r"0 of 406"):
        memory.search("walrus")
    assert memory.service.not_ready
    assert mdmem.open(vault_root).search("walrus").hits


# -- the same text with and without an index ----------------------------------------------------------------

DAYS = ("2026-01-01", "2026-12-01")
NAMES = ("a", "b", "c", "d", "e", "Übung", "x.y")
LINKS = ("{}", "[[{}]]", "{}.md", "rules/{}.md", "[it]({}.md)", "notes/{}", "/rules/{}", "id-{}", "Al {}")


def fields_of(draw: random.Random, name: str) -> dict[str, Any]:
    """Some fields of those that say whether a memory counts, or what it is called."""
    possible: dict[str, Any] = {
        "expires": draw.choice(DAYS),
        "valid_from": draw.choice(DAYS),
        "valid_to": draw.choice(DAYS),
        "enabled": draw.choice([True, False]),
        "tier": draw.choice(["pinned", "short", "PINNED"]),
        "superseded_by": draw.choice(LINKS).format(draw.choice(NAMES)),
        "contradicted_by": "notes/a.md",
        "id": f"id-{draw.choice([name, name, 'a'])}",
        "aliases": [f"al {name}", "other"],
        "priority": draw.randrange(5),
    }
    return {key: value for key, value in possible.items() if draw.random() < 0.3}


def fill_at_random(root: Path, seed: int) -> None:
    """Write memories of every kind, in the namespaces of everyone, of a project and of users."""
    draw = random.Random(seed)
    spaces = ("", "projects/p", "users/u", "users/u/projects/p", "users/other")
    for space in spaces:
        for name in NAMES:
            places = [f"rules/{name}.md", f"preferences/ui/{name}.md", f"notes/{name}.md"]
            for place in places:
                if draw.random() < 0.4:
                    continue
                fields = fields_of(draw, name)
                fields |= {"value": name} if place.startswith("pref") else {}
                head = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
                head += "broken: [\n" if draw.random() < 0.1 else ""
                file = root / space / place
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"---\n{head}---\n# {name} in {space}\n\nSay {name}.\n", encoding="utf-8")
        (root / space / "AGENTS.md").write_text(f"# Project {space}\n\nUse {space}.\n")
        if draw.random() < 0.5:
            (root / space / "working/threads").mkdir(parents=True)
            (root / space / "working/threads/t.md").write_text("---\nexpires: 2026-12-01\n---\nGo on.\n")


@pytest.mark.parametrize("first", soak_most(range(0, 50, 5)))
def test_the_files_say_what_the_index_says(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + (5 if speed.is_all else 2)):
        root = tmp_path / str(seed)
        mdmem.init(root)
        fill_at_random(root, seed)
        require_same(root)


def require_same(root: Path, *, may_be_empty: bool = False) -> None:
    """Require that a session begins with the same, whether there is an index or not, in every scope."""
    for scope in (
        mdmem.Scope(),
        mdmem.Scope(shared=True),
        mdmem.Scope(user="u"),
        mdmem.Scope(user="u", project="p"),
    ):
        memory, files = mdmem.open(root, scope), mdmem.open(root, scope)
        files.service.read_files()
        said = [context(each, thread="t", budget=4_000, estimated=True, now=NOW) for each in (memory, files)]
        assert said[0] == said[1]
        assert said[0].text or may_be_empty
        assert memory.states() == {**memory.states(), **files.states()}


WRITTEN = json.loads((Path(__file__).parents[2] / "data/first_minute.json").read_text(encoding="utf-8"))


@cases("memories", [*WRITTEN.values()])
def test_the_files_say_so_however_it_is_written(tmp_path: Path, memories: dict[str, str]) -> None:
    root = tmp_path / "memories"
    mdmem.init(root)
    for path, text in memories.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode("utf-8", "surrogateescape"))
    require_same(root, may_be_empty=True)


def test_what_another_user_pins_takes_nobody_s_place(tmp_path: Path) -> None:
    """Also where it is more than is read without an index, and its names come first."""
    root = tmp_path / "memories"
    mdmem.init(root)
    for number in range(MOST + 1):
        other = root / f"users/a/notes/{number}.md"
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("---\ntier: pinned\n---\nTheirs.\n")
    own = root / "users/u/notes/z.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\ntier: pinned\n---\nThe port is 5199.\n")
    memory = mdmem.open(root, mdmem.Scope(user="u"))
    memory.service.read_files()
    text = context(memory, budget=4_000, estimated=True, now=NOW).text
    assert "The port is 5199." in text
    assert "Theirs" not in text


# -- the process that makes the index -----------------------------------------------------------------------


def build(root: Path) -> subprocess.Popen[bytes]:
    """Start the process that a hook starts."""
    command = [sys.executable, "-m", "mdmem", "--vault", str(root), "hook", "background"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b'{"indexes": true}')
    process.stdin.close()
    return process


def indexed(root: Path) -> dict[str, int]:
    """The memories that the index has, with the number of each."""
    with closing(sqlite3.connect(kept(root, "database.sqlite"))) as it:
        return dict(it.execute("SELECT path, id FROM documents"))


def count_of(root: Path) -> int:
    """How many memories the count in the file says; 0 without it."""
    try:
        return int(kept(root, "count").read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return 0


def test_the_count_of_a_killed_process_goes_with_the_next_run(vault_root: Path) -> None:
    fill(vault_root, 1)
    kept(vault_root, "count").write_bytes(b"%10d %10d" % (1_200, 3_680))
    mdmem.open(vault_root).sync()
    assert count_of(vault_root) == 0


def test_two_hosts_at_once_let_the_index_be_made_once(vault_root: Path, quiet: list[Any]) -> None:
    fill(vault_root, MOST + 1)
    with locked(vault_root, "background.lock"):
        assert "systemMessage" in hook(vault_root, "session-start")
        assert "systemMessage" in hook(vault_root, "session-start", session_id="another")
        assert build(vault_root).wait() == 0
        assert quiet == []
        assert not kept(vault_root, "database.sqlite").exists()
    hook(vault_root, "session-start")
    assert quiet == [{"indexes": True}]


@pytest.mark.parametrize("least", soak_most(range(500, 2_500, 100)))
def test_the_next_process_goes_on_where_one_was_killed(vault_root: Path, least: int) -> None:
    fill(vault_root, least + 600)
    with build(vault_root) as process:
        until(lambda: count_of(vault_root) >= least + 100)
        process.kill()
    before = indexed(vault_root)
    assert least - 500 < len(before) < least + 600
    assert build(vault_root).wait() == 0
    after = indexed(vault_root)
    assert before.items() <= after.items(), "what was committed is not read again"
    assert len(after) == least + 605
    assert count_of(vault_root) == 0
    assert mdmem.open(vault_root).search(f"walrus {least}", limit=1).hits[0].path == f"notes/n{least}.md"


def test_the_person_is_told_how_far_it_is(vault_root: Path, quiet: list[Any]) -> None:
    fill(vault_root, MOST + 1)
    with locked(vault_root):
        kept(vault_root, "count").write_bytes(b"%10d %10d" % (1_200, 3_680))
        said = hook(vault_root, "user-prompt", **given_for(vault_root, "user-prompt"))
    assert said == {"systemMessage": "mdmem: the index is being made: 1,200 of 3,680"}
    assert quiet


def test_who_waits_for_the_process_is_told_how_far_it_is(vault_root: Path) -> None:
    fill(vault_root, 1)
    told: list[tuple[int, int]] = []

    def stop(done: int, of: int) -> None:
        told.append((done, of))
        raise KeyboardInterrupt

    with locked(vault_root):
        kept(vault_root, "count").write_bytes(b"%10d %10d" % (1_200, 3_680))
        with pytest.raises(KeyboardInterrupt):
            mdmem.open(vault_root).sync(progress=stop)
    assert told == [(1_200, 3_680)]


def test_a_server_makes_the_index_current_at_its_start_or_has_that_done(
    vault_root: Path, quiet: list[Any]
) -> None:
    fill(vault_root, 5)
    mdmem.open(vault_root).service.begin_indexing()
    assert "notes/n4.md" in indexed(vault_root)
    assert quiet == []
    fill(vault_root, MOST + 6)
    mdmem.open(vault_root).service.begin_indexing()
    assert "notes/n5.md" not in indexed(vault_root), "it is stale, and is left to the process"
    assert quiet == [{"indexes": True}]
    shutil.rmtree(kept(vault_root, "count").parent)
    mdmem.open(vault_root).service.begin_indexing()
    assert quiet == [{"indexes": True}] * 2


def test_a_tool_does_not_wait_for_longer_than_a_client(
    vault_root: Path, quiet: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(vault_root, 200)
    tools = Tools(mdmem.open(vault_root))
    with monkeypatch.context() as patch:
        patch.setattr("mdmem.serve.mcp.answer._PATIENCE", 0)
        patch.setattr("mdmem.serve.mcp.answer._MANY", 0)
        refused = tools.error("search", query="walrus")
    assert refused["code"] == "index-not-ready"
    assert refused["message"].startswith("the index is being made: ")
    assert quiet == [{"indexes": True}]
    assert tools("search", query="walrus 7").data["hits"], "the next call is answered"


# -- git's history ------------------------------------------------------------------------------------------


def run_git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def test_a_history_that_takes_long_is_left_to_the_process_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "memories"
    run_git(tmp_path, "init", "--quiet")
    mdmem.init(root)
    for name in ("gone.py", "kept.py"):
        (tmp_path / name).write_text("x = 1\n" * 9)
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "--quiet", "--message", "add")
    run_git(tmp_path, "rm", "--quiet", "gone.py")
    run_git(tmp_path, "commit", "--quiet", "--message", "remove")
    (root / "notes").mkdir()
    note = root / "notes/n1.md"
    note.write_text("See `gone.py#L1`, `kept.py#L1` and [it](../../gone.py).\n")
    given = given_for(root, "post-edit")
    waiting = tmp_path / "waiting"
    os.mkfifo(waiting)
    git = tmp_path / "bin/git"
    git.parent.mkdir()
    git.write_text(f"""#!/bin/sh
for word; do [ "$word" = --diff-filter=DR ] && read -r go < {shlex.quote(str(waiting))}; done
exec {shutil.which("git")} "$@"
""")
    git.chmod(0o755)
    with monkeypatch.context() as patch, locked(root, "background.lock"):
        patch.setenv("PATH", f"{git.parent}{os.pathsep}{os.environ['PATH']}")
        said = hook(root, "post-edit", **given)
        begun = hook(root, "session-start", session_id="5e20")
    waiting.write_text("go\n")
    assert "the history in git is being read" in begun["systemMessage"]
    assert "references were not looked at: the history in git is being read" in text_of(said)
    assert build(root).wait() == 0
    assert Path(mdmem.open(root).vault.disk.own("history"), "removals.sqlite").exists()
    assert "the file was deleted in" in text_of(hook(root, "post-edit", **given))
