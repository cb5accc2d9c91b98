"""What stands behind a wall cannot be told from an order, a score, a count, a time or a message (law 8)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings, strategies as st

import mdmem
from mdmem.diagnostic import as_json
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused
from tests import speed
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MDMEM = Path(sys.executable).with_name("mdmem")
ALICE = mdmem.Scope(user="alice")
DEMO = mdmem.Scope(user="alice", project="demo")
SHARED = mdmem.Scope(shared=True)
SCOPES = (ALICE, DEMO, SHARED)

# What two notes that are equal but for one word, and some others, hold of them: what the other writes decides
# how rare each is.
WORDS = (
    "database",
    "backup",
    "server",
    "lunch",
    "zebra",
    "databse",
    "sqlite",
    "café",
    "数据库",
    "configParser",
)
OWN = {
    "notes/one.md": "database server lunch",
    "notes/two.md": "backup server zebra",
    "notes/three.md": "# Database\n\nbackup [[nowhere]] [[one]] #db\n\nzebra lunch server sqlite",
    "notes/four.md": "---\nid: four\ntags: [db]\n---\n" + "database backup.\n\n" * 20,
}
# More that fit equally than are looked into: which of them are must not depend on how the index stores them.
OWN |= {f"notes/many/{number}.md": "the same item" for number in range(40)}
COMMON = {
    "AGENTS.md": "# Everyone\n\nThe server is `src/app.py`.",
    "notes/shared.md": "database of everyone [[three]]",
    "projects/demo/notes/plan.md": "sqlite backup of the project",
    "rules/one.md": "Keep backups.",
}
OWNERS = {"": COMMON, "users/alice": OWN, "users/alice/projects/demo": {"notes/own.md": "database lunch"}}

# One query of each kind: a typing mistake, several words, a prefix, what many hold, fields.
QUICK = ("databse", "database backup", "data* -zebra", "item", "datbase sqlte", "type:secret", "tag:private")

texts = st.lists(st.sampled_from((*WORDS, "\n\n", "\n# Title\n", "#db ", "[[one]]", "[[four]]")), max_size=60)
others = st.dictionaries(
    st.sampled_from(
        (
            *(
                *("notes/one.md", "notes/two.md", "notes/zebra.md", "notes/nowhere.md", "notes/Ones.md"),
                "a/b/c.md",
            ),
            *("AGENTS.md", "rules/secret.md", "preferences/ui/theme.md", "projects/demo/notes/plan.md"),
        )
    ),
    st.tuples(
        texts, st.sampled_from(("", "---\nid: four\n---\n", "---\ntype: secret\ntags: [private]\n---\n"))
    ),
    max_size=7,
)


def made(folder: Path, other: dict[str, tuple[list[str], str]]) -> Path:
    """A vault in which alice, her project and everyone have what they always have, and bob what he wrote."""
    root = folder / "memories"
    mdmem.init(str(root))
    bob = {path: head + " ".join(words) for path, (words, head) in other.items()}
    owners = {"users/bob": bob, **OWNERS}
    for owner, memories in owners.items():
        for path, text in memories.items():
            file = root / owner / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            os.utime(file, (1_750_000_000, 1_750_000_000))
    return root


def asked(memory: mdmem.Memory) -> Iterable[tuple[str, Callable[[], Any]]]:
    """Every question that a scope can ask, by name."""
    queries = [
        *WORDS[:6],
        "database backup",
        "backup database server",
        '"server lunch"',
        "data* -zebra",
        "item",
    ]
    queries += ["same item", "datbase sqlte", "type:secret", "tag:private", "tag:db", "path:notes", "-zebra"]
    queries += ["zebras AND the lunch", "数据库 café parse config"]
    limits: tuple[tuple[Literal["memory", "passage"], int], ...] = (
        ("memory", 1),
        ("memory", 20),
        ("passage", 3),
    )
    for query in queries if speed.is_all else QUICK:
        for each, limit in limits:
            search = partial(memory.search, query, each=each, limit=limit, explain=True)
            yield f"search {query!r} {each} {limit}", search
    for word in (*WORDS, "e"):
        yield f"grep {word}", lambda w=word: [as_json(h) for h in memory.grep(w, limit=3)]  # type: ignore[misc]
        yield f"bob {word}", lambda w=word: memory.show(f"notes/{w}.md")  # type: ignore[misc]
    yield "ls", lambda: [as_json(each) for each in memory.ls()]
    yield "ls sorted", lambda: [as_json(each) for each in memory.ls(where=["path"], sort="-size")]
    yield "tags", memory.references.tags
    yield "references", lambda: [as_json(each) for each in memory.references.list()]
    yield "stats", lambda: as_json(memory.references.stats())
    yield "graph", memory.references.graph
    yield "check", lambda: [str(finding) for finding in memory.check()]
    yield "check three", lambda: [str(finding) for finding in memory.check(["notes/three.md"])]
    yield "duplicates", lambda: [as_json(each) for each in memory.duplicates()]
    yield "quality", lambda: [as_json(each) for each in memory.quality()]
    yield "report", lambda: as_json(memory.report())
    yield "doctor", lambda: as_json(memory.doctor())
    yield "context", lambda: as_json(memory.context("database backup", budget=20_000, estimated=True))
    yield "rules", memory.rules.text
    yield "preferences", memory.preferences.list
    yield "history", lambda: [(e.message, [f.path for f in e.files]) for e in memory.history()]
    yield "rebuilt", lambda: memory.sync(rebuild=True)
    for path in (
        "notes/nope.md",
        "notes/zebra.md",
        "users/bob/notes/one.md",
        "../bob/notes/one.md",
        "shared:x.md",
    ):
        verbs: tuple[Callable[[str], object], ...] = (memory.show, memory.references.backlinks, memory.ls)
        for verb in (*verbs, memory.restore, memory.rm):
            yield f"{verb} {path}".partition(" of ")[0] + path, partial(verb, path)
    yield "mv", lambda: memory.plan.mv("notes/one.md", "users/bob/notes/one.md").changes
    yield "undo", lambda: memory.undo("20250101")


def told(root: Path, scope: mdmem.Scope) -> dict[str, str]:
    """What a scope is answered, without the place of the vault."""
    memory = mdmem.open(root, scope)
    answers = {}
    for name, ask in asked(memory):
        try:
            answer = repr(ask())
        except MdmemError as error:
            answer = f"{error.code}: {error} {error.hint} {sorted(error.values.items(), key=str)}"
        answers[name] = answer.replace(str(root.parent), "")
    memory.index.close()
    return answers


def answers(other: dict[str, tuple[list[str], str]]) -> list[dict[str, str]]:
    """What each scope is answered in a vault in which bob has written this."""
    place = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with tempfile.TemporaryDirectory(prefix="mdmem-", dir=place) as folder:
        root = made(Path(folder), other)
        return [told(root, scope) for scope in SCOPES]


@pytest.fixture(scope="module")
def without_others() -> list[dict[str, str]]:
    return answers({})


LOUD = {"notes/zebra.md": (["zebra", "database", "\n\n"] * 30, "---\nid: four\ntags: [private]\n---\n")}


# Each example asks all scopes everything.
@settings(
    max_examples=3,
    suppress_health_check=[HealthCheck.too_slow],
    phases=tuple(Phase) if speed.is_all else [Phase.explicit],
)
@example(other=LOUD | {"rules/secret.md": (["databse", "item"] * 50, ""), "notes/Ones.md": (["sqlite"], "")})
@given(other=others)
def test_nothing_that_another_user_writes_changes_an_answer(
    without_others: list[dict[str, str]], other: dict[str, tuple[list[str], str]]
) -> None:
    assert answers(other) == without_others


def test_what_another_user_repeats_changes_nothing_of_what_is_found_to_say_the_same(tmp_path: Path) -> None:
    """Of the words that two notes have in common, bob makes the rarest the most common."""
    both, own = ([f"{word}{number}x" for number in range(60)] for word in ("both", "own"))
    notes = {"notes/a.md": both + own[:30], "notes/b.md": both}
    notes |= {f"notes/other/{number}.md": own[29::-1] for number in range(25)}

    def ask(folder: Path, others: int) -> list[str]:
        root = folder / "memories"
        mdmem.init(str(root))
        bob = {f"notes/{number}.md": both[::-1] for number in range(others)}
        for owner, memories in (("alice", notes), ("bob", bob)):
            for path, words in memories.items():
                file = root / "users" / owner / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(" ".join(words))
                os.utime(file, (1_750_000_000, 1_750_000_000))
        memory = mdmem.open(root, ALICE)
        found = [str(finding) for finding in memory.check(["notes/a.md"])]
        assert sum("says the same" in each for each in found) == 1
        answers = (
            memory.duplicates(path="notes/a.md"),
            memory.duplicates(),
            memory.quality(),
            memory.report(),
        )
        return [*found, *map(repr, answers), *(each.path for each in memory.consolidate().files)]

    assert ask(tmp_path / "alone", 0) == ask(tmp_path / "beside", 200)


# -- what a change says that crossed a wall -----------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A vault in which the owner has moved and changed what belongs to several."""
    root = made(
        tmp_path, {"notes/secret.md": (["zebra"], ""), "notes/plan.md": (["x", "[[/notes/shared]]"], "")}
    )
    owner = mdmem.open(root)
    owner.mv("users/bob/notes/secret.md", "users/alice/notes/given.md")
    owner.replace(None, "zebra", "okapi", count="all")
    owner.mv("notes/shared.md", "users/bob/notes/taken.md")
    return root


@pytest.mark.parametrize("scope", SCOPES, ids=["user", "project", "shared"])
def test_history_tells_of_a_change_that_crossed_a_wall_only_what_is_within(
    root: Path, scope: mdmem.Scope
) -> None:
    entries = [json.dumps(as_json(entry)) for entry in mdmem.open(root, scope).history()]
    assert bool(entries) == (scope != DEMO)
    assert not re.search("bob|secret|taken", "".join(entries))
    assert len(list(mdmem.open(root).history())) == 3


def test_what_a_change_within_a_wall_says_stays(root: Path) -> None:
    alice = mdmem.open(root, ALICE)
    alice.mv("notes/one.md", "notes/uno.md")
    assert alice.history()[0].message == "move notes/one.md to notes/uno.md"


def test_an_id_that_differs_in_case_from_another_is_refused_without_its_name(root: Path) -> None:
    with pytest.raises(PathRefused) as refused:
        mdmem.open(root, mdmem.Scope(user="BOB")).notes.append("x", "y")
    assert "bob" not in str(refused.value) + refused.value.hint
    with pytest.raises(PathRefused, match=r"'notes/one\.md'"):
        mdmem.open(root, ALICE).write("notes/One.md", "x")


# -- the top of the vault without its users -----------------------------------------------------------------


@cases(
    "path, verb",
    product(
        ["users/bob/notes/new.md", "Users/bob/notes/plan.md", "users/bob"],
        ["show", "ls", "grep", "append", "rm", "mv", "write", "backlinks", "check"],
    ),
)
def test_a_shared_scope_refuses_what_users_have_whether_it_is_there_or_not(
    root: Path, path: str, verb: str
) -> None:
    memory = mdmem.open(root, SHARED)
    before = (root / "users/bob/notes/plan.md").read_bytes()
    calls: dict[str, Callable[[], Any]] = {
        "ls": lambda: memory.ls(path),
        "grep": lambda: list(memory.grep("x", within=path)),
        "append": lambda: memory.append(path, "x"),
        "mv": lambda: memory.mv("AGENTS.md", f"{path.removesuffix('.md')}.md"),
        "write": lambda: memory.write(path, "x", overwrite=True),
        "backlinks": lambda: memory.references.backlinks(path),
        "check": lambda: memory.check([path]),
    }
    with pytest.raises(PathRefused):
        calls.get(verb, lambda: getattr(memory, verb)(path))()
    assert (root / "users/bob/notes/plan.md").read_bytes() == before
    assert not (root / "users/bob/notes/new.md").exists()


def test_no_scope_is_the_owner_who_sees_everything(root: Path) -> None:
    owner = mdmem.open(root)
    assert {path.split("/")[1] for path in (each.path for each in owner.ls("users"))} == {"alice", "bob"}
    assert owner.search("path:users/bob").hits
    assert not mdmem.open(root, SHARED).search("path:users").hits


# -- what is shared with a scope ----------------------------------------------------------------------------


@pytest.fixture
def layered(tmp_path: Path) -> Path:
    root = tmp_path / "memories"
    mdmem.init(str(root))
    spaces = ("users/alice/projects/demo", "users/alice", "projects/demo", "", "users/bob")
    for namespace in (*spaces, "users/alice/projects/other"):
        file = root / namespace / "notes/db.md"
        file.parent.mkdir(parents=True)
        file.write_text("---\ncreated: 2026-01-01\n---\nWhere the database stands.\n")
    return root


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (DEMO, ["notes/db.md", "user:notes/db.md", "project:notes/db.md", "shared:notes/db.md"]),
        (
            ALICE,
            ["notes/db.md", "projects/demo/notes/db.md", "projects/other/notes/db.md"],
        ),
        (mdmem.Scope(project="demo"), ["notes/db.md"]),
        (SHARED, ["notes/db.md", "projects/demo/notes/db.md"]),
    ],
    ids=["user and project", "user", "project", "shared"],
)
def test_search_and_context_find_what_is_shared_behind_what_is_own(
    layered: Path, scope: mdmem.Scope, expected: list[str]
) -> None:
    memory = mdmem.open(layered, scope)
    found = [hit.path for hit in memory.search("database").hits]
    assert found[0] == expected[0]
    shared = [path for path in found if path != "shared:projects/demo/notes/db.md"]
    assert shared == expected
    given = memory.context("database", estimated=True).text
    for path in found:
        assert memory.show(path).path == path
        assert f"{path}#L" in given
    assert {listed.path for listed in memory.ls()} == {path for path in expected if ":" not in path}


def test_what_is_shared_can_be_shown_and_not_changed(layered: Path) -> None:
    memory = mdmem.open(layered, DEMO)
    rule = layered / "rules/broken.md"
    rule.parent.mkdir()
    rule.write_text("---\npriority: high\n---\nx\n")
    (finding,) = memory.check(["project:notes/db.md", "shared:rules/broken.md"])
    assert (finding.path, finding.code) == ("shared:rules/broken.md", "schema-type")
    with pytest.raises(MemoryNotFound, match=r"nearest names: shared:notes/db\.md"):
        memory.show("shared:notes/dbs.md")
    before = {file: file.read_bytes() for file in layered.rglob("*.md")}
    changes: list[Callable[[], Any]] = [
        lambda: memory.append("shared:notes/db.md", "x"),
        lambda: memory.write("project:notes/db.md", "x", overwrite=True),
        lambda: memory.write("project:notes/new.md", "x"),
        lambda: memory.replace("shared:notes/db.md", "Where", "There"),
        lambda: memory.set("user:notes/db.md", {"a": 1}),
        lambda: memory.rm("shared:notes/db.md"),
        lambda: memory.mv("shared:notes/db.md", "notes/mine.md"),
        lambda: memory.mv("notes/db.md", "project:notes/yours.md"),
    ]
    for change in changes:
        with pytest.raises(PathRefused, match="is changed where it belongs"):
            change()
    assert {file: file.read_bytes() for file in layered.rglob("*.md")} == before


def test_a_search_can_be_narrowed_to_a_layer(layered: Path) -> None:
    memory = mdmem.open(layered, DEMO)
    assert [h.path for h in memory.search("database", within="project:notes").hits] == ["project:notes/db.md"]
    assert [h.path for h in memory.search("database", within="notes").hits] == ["notes/db.md"]
    assert [h.path for h in memory.search("database path:shared:notes").hits] == ["shared:notes/db.md"]


def test_an_agent_is_served_what_everyone_shares_where_no_scope_is_given(
    layered: Path, tmp_path: Path
) -> None:
    """The command that `install` writes, run: what users have is not to be reached through it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MDMEM_")} | {
        "HOME": str(tmp_path),
        "PATH": f"{MDMEM.parent}{os.pathsep}{os.environ['PATH']}",
    }
    project = tmp_path / "project"
    subprocess.run(["git", "init", "--quiet", project], check=True)

    def run(*arguments: str) -> str:
        command = [str(MDMEM), "--vault", str(layered), *arguments]
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    run("install", "claude-code", "--yes")
    served = json.loads((project / ".mcp.json").read_text())["mcpServers"]["mdmem"]["args"]
    assert served[-2:] == ["--shared", "mcp"]
    assert "users" not in run("--shared", "ls")
    run("--user", "alice", "install", "claude-code", "--yes")
    served = json.loads((project / ".mcp.json").read_text())["mcpServers"]["mdmem"]["args"]
    assert served[-3:] == ["--user", "alice", "mcp"]


# -- a search that finds nothing ----------------------------------------------------------------------------


def test_a_search_that_finds_nothing_says_so_with_the_nearest_words_that_may_be_seen(root: Path) -> None:
    command = [str(MDMEM), "--vault", str(root), "--user", "alice", "search", "databsse"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    only = "note: only users/alice/ was searched; --shared searches what everybody shares\n"
    assert done.stderr == f"note: nothing was found; the nearest words are: database\n{only}"
    mdmem.open(root, mdmem.Scope(user="bob")).write("notes/new.md", "quagga")
    assert mdmem.open(root, ALICE).search("quaga").notes == ("nothing was found",)
    assert mdmem.open(root).search("quaga").notes == ("nothing was found; the nearest words are: quagga",)
