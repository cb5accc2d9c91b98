"""The inbox: what is proposed changes nothing until somebody accepts it, and then once."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.errors import (
    Conflict,
    EditRefused,
    LimitReached,
    MdmemError,
    NamedNotFound,
    PathRefused,
    TextNotFound,
    Usage,
)
from mdmem.memory.inbox import Inbox
from mdmem.memory.proposal import VERBS, id_of
from tests import speed
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mdmem import Applied, Memory

EXAMPLES = examples(200)
DARK = {"category": "ui", "key": "theme", "value": "dark"}
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HEAD = "---\ntype: proposal\n---\n"


@pytest.fixture
def memory(vault_root: Path) -> Memory:
    return mdmem.open(vault_root)


def configured(root: Path, text: str) -> Memory:
    (root / ".mdmem/config.toml").write_text(text, encoding="utf-8")
    return mdmem.open(root)


def id_in(applied: Applied) -> str:
    return next(f.path for f in applied.files if f.path.startswith("inbox/"))[len("inbox/") : -len(".md")]


def later(memory: Memory, days: float) -> Inbox[Applied]:
    """The inbox as it is so many days from now."""
    clock = lambda: datetime.now(UTC) + timedelta(days=days)  # noqa: E731
    return Inbox(memory.vault, memory.vault.transact, memory._find_verb, clock=clock)


def state(root: Path) -> dict[str, bytes]:
    every = [path for path in root.rglob("*") if path.is_file() and ".mdmem" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in every}


def proposal(root: Path, text: str, name: str = "odd") -> str:
    (root / "inbox").mkdir(exist_ok=True)
    text = text if text.startswith("---") else f"{HEAD}{text}"
    (root / f"inbox/{name}.md").write_text(text, encoding="utf-8")
    return name


def fenced(value: Any) -> str:
    return f"```json\n{value if isinstance(value, str) else json.dumps(value)}\n```\n"


def test_a_proposal_is_shown_accepted_once_and_undone(memory: Memory, vault_root: Path) -> None:
    made = memory.inbox.propose("preferences.set", DARK, reason="said so", sources=["sessions/t1#3"])
    name = id_in(made)
    assert name == id_of("preferences.set", DARK)
    assert memory.preferences.list() == []
    (found,) = memory.inbox.list()
    assert (found.id, found.status, found.verb, found.reason) == (name, "open", "preferences.set", "said so")
    assert (found.sources, found.problem, found.target) == (("sessions/t1#3",), "", "ui theme")
    shown = memory.inbox.show(name)
    assert "+value: dark" in shown.diff
    before = state(vault_root)
    memory.inbox.accept(name, base=shown.hash)
    assert memory.inbox.list() == []
    assert memory.preferences.get("ui", "theme").value == "dark"
    assert memory.show("preferences/ui/theme.md").fields["source"] == {
        "type": "conversation",
        "ids": ["sessions/t1#3"],
    }
    with pytest.raises(NamedNotFound, match="no proposal"):
        memory.inbox.accept(name)
    memory.undo()
    assert state(vault_root) == before
    assert memory.check() == []


CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "notes.append": ({"name": "db", "content": "More.", "title": "T"}, "notes/db.md"),
    "notes.overwrite": ({"name": "db", "content": "All."}, "notes/db.md"),
    "preferences.set": (DARK, "preferences/ui/theme.md"),
    "preferences.delete": ({"category": "ui", "key": "font"}, "preferences/ui/font.md"),
    "project.append": ({"section": "Decisions", "entry": "SQLite"}, "AGENTS.md"),
    "write": ({"path": "rules/a.md", "content": "---\nenabled: false\n---\nA.\n"}, "rules/a.md"),
    "new": ({"template": "note", "path": "n", "variables": {"title": "N"}}, "notes/n.md"),
    "append": ({"path": "notes/db.md", "text": "- b"}, "notes/db.md"),
    "prepend": ({"path": "notes/db.md", "text": "first"}, "notes/db.md"),
    "replace": ({"path": "notes/db.md", "old": "One", "new": "A"}, "notes/db.md"),
    "section": ({"path": "notes/db.md", "heading": "Database", "text": "x"}, "notes/db.md"),
    "set": ({"path": "notes/db.md", "fields": {"title": "D"}}, "notes/db.md"),
    "unset": ({"path": "notes/db.md", "key": "tags"}, "notes/db.md"),
    "rm": ({"path": "notes/db.md"}, "notes/db.md"),
    "supersede": ({"old": "notes/db.md", "by": "preferences/ui/font.md"}, "notes/db.md"),
    "merge": (
        {"paths": ["notes/db.md", "preferences/ui/font.md"], "into": "notes/db.md"},
        "notes/db.md preferences/ui/font.md",
    ),
}


@cases("verb", VERBS)
def test_each_verb_of_the_list_is_proposed_accepted_and_undone(tmp_path: Path, verb: str) -> None:
    (tmp_path / ".mdmem").mkdir()
    (tmp_path / ".mdmem/config.toml").touch()
    memory = mdmem.open(tmp_path)
    memory.write("notes/db.md", "---\ntags: [a]\n---\n\n# Database\n\nOne file.\n")
    memory.preferences.set("ui", "font", "mono")
    arguments, path = CALLS[verb]
    name = id_in(memory.inbox.propose(verb, arguments))
    before = state(tmp_path)
    applied = memory.inbox.accept(name)
    assert {file.path for file in applied.files} == {*path.split(), f"inbox/{name}.md"}
    memory.undo()
    assert state(tmp_path) == before
    memory.inbox.reject(name)
    memory.undo()
    assert state(tmp_path) == before
    memory.inbox.propose(verb, arguments)
    assert state(tmp_path) == before, "it waits already"
    assert [each for each in memory.check() if each.severity == "error"] == []


def test_a_dry_run_of_each_writes_nothing(memory: Memory, vault_root: Path) -> None:
    name = id_in(memory.inbox.propose("preferences.set", DARK))
    before = state(vault_root)
    plans = memory.plan.inbox
    assert (
        '+    "value": "light"'
        in memory.prepared(plans.propose("preferences.set", {**DARK, "value": "light"})).diff()
    )
    assert "+value: dark" in memory.prepared(plans.accept(name)).diff()
    assert "+status: rejected" in memory.prepared(plans.reject(name)).diff()
    assert plans.sweep().changes == ()
    assert state(vault_root) == before


# -- accepted when things have changed ----------------------------------------------------------------------


def test_it_is_accepted_as_things_stand_or_says_why_it_no_longer_fits(memory: Memory) -> None:
    memory.write("notes/db.md", "One file.\n")
    name = id_in(memory.inbox.propose("replace", {"path": "notes/db.md", "old": "One", "new": "A"}))
    memory.append("notes/db.md", "More.")
    assert "-One file.\n+A file.\n More." in memory.inbox.show(name).diff
    memory.write("notes/db.md", "Two files.\n", overwrite=True)
    assert "'One'" in memory.inbox.show(name).problem or "One" in memory.inbox.show(name).problem
    with pytest.raises(TextNotFound):
        memory.inbox.accept(name)
    assert memory.show("notes/db.md").text == "Two files.\n"
    assert [each.id for each in memory.inbox.list()] == [name]
    memory.write("notes/db.md", "One more.\n", overwrite=True)
    memory.inbox.accept(name)
    assert memory.show("notes/db.md").text == "A more.\n"


def test_what_was_shown_is_accepted_or_nothing(memory: Memory) -> None:
    name = id_in(memory.inbox.propose("preferences.set", DARK))
    shown = memory.inbox.show(name)
    memory.replace(shown.path, '"dark"', '"pink"')
    for verb in (memory.inbox.accept, memory.inbox.reject):
        with pytest.raises(Conflict, match="pink"):
            verb(name, base=shown.hash)
    assert memory.preferences.list() == []
    memory.inbox.accept(name, base=memory.inbox.show(name).hash[:8])
    assert memory.preferences.get("ui", "theme").value == "pink"


def test_what_would_change_nothing_is_refused(memory: Memory) -> None:
    memory.project.append("Decisions", "SQLite")
    with pytest.raises(EditRefused, match="nothing would change"):
        memory.inbox.propose("project.append", {"section": "Decisions", "entry": "SQLite"})
    name = id_in(memory.inbox.propose("project.append", {"section": "Decisions", "entry": "WAL"}))
    memory.project.append("Decisions", "WAL")
    assert "nothing would change" in memory.inbox.show(name).problem
    with pytest.raises(EditRefused, match="nothing would change"):
        memory.inbox.accept(name)


PROCESSES = 4 if speed.is_all else 2
PROCESS = """
import sys
import mdmem
from mdmem.errors import MdmemError
memory = mdmem.open(sys.argv[1])
sys.stdin.read(1)
for verb, *arguments in eval(sys.argv[2]):
    try:
        getattr(memory.inbox, verb)(*arguments)
        print("done")
    except MdmemError as error:
        print(error.code)
"""


def together(root: Path, *calls: tuple[Any, ...]) -> list[list[str]]:
    """What several processes print that do the same at once."""
    command = [sys.executable, "-c", PROCESS, str(root), repr(calls)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    for one in running:
        assert one.stdin
        one.stdin.write("x")
        one.stdin.flush()
    return [one.communicate()[0].split() for one in running]


def test_processes_that_propose_or_accept_the_same_make_one_change(memory: Memory, vault_root: Path) -> None:
    names = [
        id_in(memory.inbox.propose("notes.append", {"name": "db", "content": f"{number}.", "title": "T"}))
        for number in range(8)
    ]
    calls = [("propose", "preferences.set", DARK), *(("accept", name) for name in names)]
    proposed, *accepted = zip(*together(vault_root, *calls), strict=True)
    assert proposed == ("done",) * PROCESSES
    for number, outcomes in enumerate(accepted):
        assert sorted(outcomes) == ["done", *["name-not-found"] * (PROCESSES - 1)]
        assert memory.show("notes/db.md").text.count(f"\n{number}.\n") == 1
    assert [each.arguments for each in memory.inbox.list(all=True)] == [DARK]


# -- the same, and what was rejected ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "one", "other"),
    [
        ("preferences.set", DARK, {**DARK, "value": "  DARK. ", "strength": 0.3}),
        ("notes.append", {"name": "db", "content": "Use it."}, {"name": "notes/db.md", "content": "use  it"}),
        (
            "append",
            {"path": "notes/d.md", "text": "- 2026-01-01: Use it. (sessions/a#1)"},
            {"path": "notes/d.md", "text": "- 2026-02-02: use it (sessions/b#2 sessions/b#3)"},
        ),
    ],
)
def test_the_same_said_otherwise_is_one_proposal_with_both_sources(
    memory: Memory, verb: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    memory.inbox.propose(verb, one, sources=["sessions/a#1"])
    memory.inbox.propose(verb, other, sources=["sessions/b#2", "sessions/a#1"])
    memory.inbox.propose(verb, other, sources=["sessions/b#2"])
    (found,) = memory.inbox.list()
    assert found.sources == ("sessions/a#1", "sessions/b#2")
    assert found.arguments == one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({**DARK, "value": "light"}, DARK),
        ({**DARK, "key": "font"}, DARK),
        ({**DARK, "value": 1}, {**DARK, "value": True}),
        ({**DARK, "value": ["a"]}, {**DARK, "value": "a"}),
    ],
)
def test_others_are_others(memory: Memory, one: dict[str, Any], other: dict[str, Any]) -> None:
    for each in (one, other):
        memory.inbox.propose("preferences.set", each)
    assert len(memory.inbox.list()) == 2


def test_a_replacement_that_differs_in_case_alone_is_another_one(memory: Memory) -> None:
    memory.write("notes/a.md", "sqlite\n")
    for new in ("SQLite", "SQLITE"):
        memory.inbox.propose("replace", {"path": "notes/a.md", "old": "sqlite", "new": new})
    assert len(memory.inbox.list()) == 2


def test_what_was_rejected_is_not_proposed_again(memory: Memory, vault_root: Path) -> None:
    name = id_in(memory.inbox.propose("preferences.set", DARK, sources=["sessions/a#1"]))
    memory.inbox.reject(name)
    before = state(vault_root)
    assert memory.inbox.list() == []
    assert [each.status for each in memory.inbox.list(all=True)] == ["rejected"]
    applied = memory.inbox.propose("preferences.set", {**DARK, "value": "Dark"}, sources=["sessions/b#1"])
    assert applied.files == ()
    assert "rejected" in applied.plan.message
    with pytest.raises(EditRefused, match="rejected"):
        memory.inbox.accept(name)
    later(memory, 1000).sweep()
    assert state(vault_root) == before


# -- what expires, and how many wait -------------------------------------------------------------------------


def test_what_lapsed_is_swept_and_comes_back_by_undo(memory: Memory, vault_root: Path) -> None:
    name = id_in(memory.inbox.propose("preferences.set", DARK))
    assert memory.inbox.sweep().files == ()
    before = state(vault_root)
    future = later(memory, 31)
    assert future.list() == []
    assert [each.status for each in future.list(all=True)] == ["expired"]
    with pytest.raises(EditRefused, match="expired"):
        future.accept(name)
    assert [file.path for file in future.sweep().files] == [f"inbox/{name}.md"]
    assert memory.inbox.list(all=True) == []
    memory.undo()
    assert state(vault_root) == before
    future.propose("preferences.set", DARK)
    assert [each.id for each in future.list()] == [name], "proposed again, it waits again"


def test_no_more_wait_than_the_config_allows(vault_root: Path) -> None:
    memory = configured(vault_root, "[capture]\nmax_open = 2\nexpires_days = 0\n")
    ids = [id_in(memory.inbox.propose("preferences.set", {**DARK, "value": value})) for value in ("a", "b")]
    with pytest.raises(LimitReached, match="the limit is 2"):
        memory.inbox.propose("preferences.set", {**DARK, "value": "c"})
    memory.inbox.reject(ids[0])
    memory.inbox.propose("preferences.set", {**DARK, "value": "c"})
    assert all(each.expires is None for each in memory.inbox.list())


# -- what is refused ----------------------------------------------------------------------------------------

WRONG: list[tuple[Any, Any, type[MdmemError], str]] = [
    ("mv", {"source": "a.md", "target": "b.md"}, Usage, "'mv' cannot be proposed"),
    ("apply", {}, Usage, "cannot be proposed"),
    ("inbox.accept", {"id": "x"}, Usage, "cannot be proposed"),
    ("__class__", {}, Usage, "cannot be proposed"),
    ("append", {"path": "a.md"}, Usage, "it is not as `required` says"),
    ("append", {"path": "a.md", "text": 5}, Usage, "text is not as `type` says"),
    ("append", {"path": "a.md", "text": "x", "actor": "me"}, Usage, "`additionalProperties`"),
    (
        "replace",
        {"path": "a.md", "old": "(a+)+$", "new": "b", "regex": True},
        Usage,
        "`additionalProperties`",
    ),
    ("replace", {"path": None, "old": "a", "new": "b"}, Usage, "path is not as `type` says"),
    ("append", {"path": "../a.md", "text": "x"}, PathRefused, "no part"),
    ("append", {"path": "/etc/a.md", "text": "x"}, PathRefused, "relative"),
    ("append", {"path": ".mdmem/config.md", "text": "x"}, PathRefused, "hidden"),
    ("append", {"path": "notes/%2e%2e/a.md", "text": "x"}, PathRefused, "escape"),
    ("append", {"path": "shared:notes/a.md", "text": "x"}, PathRefused, "a wider scope"),
    ("append", {"path": "user:notes/a.md", "text": "x"}, PathRefused, "a wider scope"),
    ("append", {"path": "notes/a.txt", "text": "x"}, PathRefused, "ends in"),
    ("notes.append", {"name": "../../a", "content": "x"}, PathRefused, "no part"),
    ("new", {"template": "note", "path": "../a"}, PathRefused, "no part"),
    ("rm", {"path": "notes"}, PathRefused, "ends in"),
    ("rm", {"path": "inbox/a.md"}, PathRefused, "another proposal"),
    ("write", {"path": "Inbox/a.md", "content": "x"}, PathRefused, "another proposal"),
    ("set", {"path": "users/u/inbox/a.md", "fields": {"status": "open"}}, PathRefused, "another proposal"),
    ("new", {"template": "note", "path": "inbox/a.md"}, PathRefused, "another proposal"),
    ("preferences.set", {**DARK, "category": ".."}, PathRefused, "cannot be an id"),
    ("preferences.set", {**DARK, "strength": 7}, Usage, "from 0 to 1"),
    ("preferences.set", {**DARK, "policy": "mine"}, Usage, "a policy is"),
]


@cases("verb, arguments, error, message", WRONG)
def test_what_is_not_in_the_list_or_leads_elsewhere_is_refused(
    memory: Memory, vault_root: Path, verb: Any, arguments: Any, error: type[MdmemError], message: str
) -> None:
    with pytest.raises(error, match=message):
        memory.inbox.propose(verb, arguments)
    name = proposal(vault_root, fenced({"verb": verb, "arguments": arguments}))
    before = state(vault_root)
    for refusing in (lambda: memory.inbox.accept(name), lambda: memory.plan.inbox.accept(name)):
        with pytest.raises(MdmemError, match=message):
            refusing()
    assert message in memory.inbox.show(name).problem or error is not None
    assert memory.inbox.show(name).problem
    assert state(vault_root) == before


HOSTILE: list[tuple[str, str, int]] = [
    ("", "no fence", 3),
    ("text only\n", "no fence", 4),
    ("```json\n{}\n```\n", "cannot be proposed", 5),
    ("```json\n[1]\n```\n", "not an object", 5),
    ("```json\n{\n```\n", "missing", 6),
    ("```json\n{}\n", "never closed", 4),
    (f"```json\n{'[' * 100_000}\n```\n", "nested too deeply", 5),
    ('```json\n{"a":\n```\n', "a value is missing", 6),
    (fenced({"verb": "rm", "arguments": {"path": "a.md"}}) * 2, "2 fences", 7),
    (fenced('{"verb": "rm", "verb": "write", "arguments": {}}'), "stands twice", 5),
    (fenced('{\n"verb": "rm",\n"arguments": {"path": "a.md", "path": "b.md"}}'), "stands twice", 7),
    (fenced('{"verb": "rm",\n"arguments": []}'), "arguments of rm do not fit", 5),
    (fenced('{"verb": ["rm"],\n"arguments": {}}'), "cannot be proposed", 5),
    (fenced('{"verb": "rm",\n"arguments": {"path": "inbox/b.md"}}'), "another proposal", 5),
    (fenced('{"verb": "rm", "arguments": {"path": "a.md"},\n"also": 1}'), "means nothing", 5),
    (fenced('{"verb": "append", "arguments": {"path": "a.md", "text": "\\ud800"}}'), "lone surrogate", 5),
    (
        f"---\ntype: proposal\nstatus: done\n---\n{fenced({'verb': 'rm', 'arguments': {'path': 'a.md'}})}",
        "status",
        3,
    ),
]


@cases("text, message, line", HOSTILE)
def test_check_says_what_is_wrong_and_where_and_nothing_is_accepted(
    memory: Memory, vault_root: Path, text: str, message: str, line: int
) -> None:
    memory.write("a.md", "x\n", overwrite=True)
    name = proposal(vault_root, text)
    before = state(vault_root)
    found = [each for each in memory.check() if message in each.message]
    assert found, memory.check()
    assert (found[0].path, found[0].severity) == (f"inbox/{name}.md", "error")
    assert found[0].position.line == line
    with pytest.raises(EditRefused):
        memory.inbox.accept(name)
    (listed,) = memory.inbox.list()
    assert message in memory.inbox.show(name).problem or listed.problem
    assert state(vault_root) == before


def test_a_proposal_of_megabytes_is_judged_like_any_other(memory: Memory, vault_root: Path) -> None:
    size = (3 if speed.is_all else 1) << 20
    large = {"verb": "append", "arguments": {"path": "a.md", "text": "x" * size}}
    proposal(vault_root, fenced(large), "large")
    many = {"verb": "preferences.set", "arguments": {**DARK, "value": list(range(400_000))}}
    proposal(vault_root, fenced(many), "many")
    proposal(vault_root, "x" * (5 << 20), "more")
    found = {each.id: each.problem for each in memory.inbox.list()}
    assert found["large"] == ""
    assert "values" in found["many"]
    assert found.keys() == {"large", "many"}
    assert "too-large" in {each.code for each in memory.check(["inbox/more.md"])}
    memory.inbox.accept("large")
    assert len(memory.show("a.md").data) > size


def test_a_proposal_that_is_no_file_or_no_proposal_stays_where_it_is(
    memory: Memory, vault_root: Path
) -> None:
    proposal(vault_root, "---\ntype: note\n---\nAbout the inbox.\n", "about")
    (vault_root / "inbox/link.md").symlink_to("about.md")
    (vault_root / "inbox/x.json").write_text("{}\n")
    assert memory.inbox.list(all=True) == []
    assert [each.path for each in memory.check()] == ["inbox/link.md"]
    with pytest.raises(EditRefused, match="not a proposal"):
        memory.inbox.accept("about")
    with pytest.raises(MdmemError):
        memory.inbox.accept("link")
    with pytest.raises(MdmemError):
        memory.inbox.accept("../notes/x")


def test_a_secret_is_taken_out_with_a_warning(memory: Memory) -> None:
    applied = memory.inbox.propose(
        "notes.append", {"name": "db", "content": f"the token is {TOKEN}"}, reason=f"said {TOKEN}"
    )
    assert [each.code for each in applied.plan.warnings] == ["secret", "secret"]
    text = memory.show(applied.files[0].path).text
    assert TOKEN not in text
    assert text.count("REDACTED-github-token") == 2
    again = memory.inbox.propose("notes.append", {"name": "db", "content": f"the token is {TOKEN}"})
    assert again.files == ()


def test_what_cannot_be_seen_is_written_so_that_it_can(memory: Memory) -> None:
    text = "a\u202eb \U000e0041 \u200b 中文 \x1b[31m\n```\n```\n"
    name = id_in(memory.inbox.propose("notes.append", {"name": "db", "content": text, "title": "T"}))
    written = memory.show(f"inbox/{name}.md").text
    assert all(each == "\n" or each.isprintable() for each in written)
    assert "中文" in written
    assert memory.inbox.show(name).arguments["content"] == text


def test_a_context_says_nothing_of_what_is_only_proposed(memory: Memory) -> None:
    memory.write("notes/db.md", "The database is SQLite.\n")
    memory.inbox.propose("append", {"path": "notes/db.md", "text": "The database is Postgres."})
    assert "SQLite" in memory.context("database").text
    assert "Postgres" not in memory.context("database").text
    assert memory.search("Postgres").hits == ()
    asked = memory.search("Postgres type:proposal").hits
    assert [hit.path for hit in asked] == [memory.inbox.list()[0].path]


# -- a namespace is a wall ----------------------------------------------------------------------------------


def test_a_proposal_stays_in_its_namespace(vault_root: Path) -> None:
    alice = mdmem.open(vault_root, mdmem.Scope(user="alice"))
    bob = mdmem.open(vault_root, mdmem.Scope(user="bob"))
    name = id_in(alice.inbox.propose("preferences.set", DARK))
    assert bob.inbox.list() == []
    with pytest.raises(NamedNotFound):
        bob.inbox.accept(name)
    alice.inbox.accept(name)
    assert (vault_root / "users/alice/preferences/ui/theme.md").exists()
    everyone = mdmem.open(vault_root, mdmem.Scope(shared=True))
    with pytest.raises(PathRefused):
        everyone.inbox.propose("append", {"path": "users/alice/notes/a.md", "text": "x"})


_PARTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "notes",
        "inbox",
        "INBOX",
        "users",
        "u",
        "a.md",
        ".mdmem",
        "a:b",
        "shared:x",
        "%2e%2e",
        "\\",
        "~",
    ]
)
_PATHS = st.lists(_PARTS | st.text(max_size=5), max_size=5).map("/".join)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=EXAMPLES)
@given(
    verb=st.sampled_from([*VERBS]),
    path=_PATHS,
    rest=st.dictionaries(
        st.sampled_from(sorted({name for each in VERBS.values() for name in each.arguments})),
        _VALUES,
        max_size=4,
    ),
)
def test_no_argument_ever_leaves_the_namespace_or_reaches_the_inbox(
    tmp_path_factory: pytest.TempPathFactory, verb: str, path: str, rest: dict[str, Any]
) -> None:
    root = _vault(tmp_path_factory)
    memory = mdmem.open(root, mdmem.Scope(user="u"))
    known = VERBS[verb]
    needed = dict.fromkeys((*known.target, *known.value), "x")
    arguments = {**needed, **rest, **({known.path: path} if known.path else {})}
    outside = {name: data for name, data in state(root).items() if not name.startswith("users/u/")}
    stranger = root / "users/u/inbox/stranger.md"
    stranger.write_text(HEAD + fenced({"verb": verb, "arguments": arguments}), encoding="utf-8")
    calls: list[Callable[[], Applied]] = [
        lambda: memory.inbox.accept("stranger"),
        lambda: memory.inbox.propose(verb, arguments),
    ]
    for call in calls:
        try:
            changed = [file.path for file in call().files]
        except MdmemError:
            continue
        assert [each for each in changed if each.startswith("inbox/")][1:] == []
        memory.undo()
    assert {n: d for n, d in state(root).items() if not n.startswith("users/u/")} == outside


_ROOTS: list[Path] = []


def _vault(factory: pytest.TempPathFactory) -> Path:
    if not _ROOTS:
        root = factory.mktemp("wall") / "memories"
        for name in (".mdmem", "users/u/inbox", "users/v/notes", "notes"):
            (root / name).mkdir(parents=True)
        (root / ".mdmem/config.toml").touch()
        for name in ("users/v/notes/a.md", "notes/a.md", "a.md"):
            (root / name).write_text("x\n")
        _ROOTS.append(root)
    return _ROOTS[0]


def test_an_inbox_that_was_read_sees_what_others_did_to_it(memory: Memory, vault_root: Path) -> None:
    memory.write("notes/db.md", "One.\n")
    for text in ("Two.", "Three.", "Four."):
        memory.inbox.propose("append", {"path": "notes/db.md", "text": text})
    first, second, third = memory.inbox.list()
    other = mdmem.open(vault_root)
    other.inbox.reject(first.id)
    file = vault_root / second.path
    file.write_text(file.read_text().replace(second.arguments["text"], "Five.").replace("Five.", "Nine."))
    (vault_root / third.path).unlink()
    assert [each.arguments["text"] for each in memory.inbox.list()] == ["Nine."]
    assert [each.status for each in memory.inbox.list(all=True)] == ["rejected", "open"]
    other.inbox.propose("append", {"path": "notes/db.md", "text": "Ten."})
    assert len(memory.inbox.list()) == 2
