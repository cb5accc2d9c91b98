"""The façade: what it finds and opens, what its verbs and plans do, and that a scope is a wall."""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

import mdmem
from mdmem.errors import Conflict, MdmemError, MemoryNotFound, PathRefused, VaultNotFound
from mdmem.facade.memory import Memory
from mdmem.index.grep import Hits
from mdmem.kind import KINDS
from mdmem.memory.verbs import Verbs
from mdmem.vault.folder import find, init
from mdmem.vault.paths import Scope
from mdmem.vault.plan import EditPlan
from mdmem.vault.transaction import Applied
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INDEX = ".mdmem/local/index/"


def everything(root: Path) -> dict[str, bytes]:
    """Every file of a vault, bookkeeping included, but for the index, which a plan may have to make."""
    files = (file for file in root.rglob("*") if file.is_file() and not file.is_symlink())
    found = {file.relative_to(root).as_posix(): file for file in files}
    return {path: file.read_bytes() for path, file in found.items() if not path.startswith(INDEX)}


def memories_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if not path.startswith(".")}


def memories(root: Path) -> dict[str, bytes]:
    return memories_of(everything(root))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def make_root(tmp_path: Path) -> Path:
    root = Path(init(tmp_path / "memories").root)
    for path in (
        "notes/a.md",
        "users/alice/notes/b.md",
        "users/alice/rules/c.md",
        "users/alicebob/notes/d.md",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("# Plan\n\nneedle\n")
    return root


def test_grep_gives_paths_of_the_namespace_and_what_it_could_not_read(root: Path) -> None:
    hits = Memory(str(root), Scope(user="alice")).grep("needle")
    assert isinstance(hits, Hits)
    assert [(hit.path, hit.heading) for hit in hits] == [("notes/b.md", ("Plan",)), ("rules/c.md", ("Plan",))]
    assert hits.findings == ()


def test_grep_within_a_folder_gives_the_same_paths(root: Path) -> None:
    memory = Memory(str(root), Scope(user="alice"))
    assert [hit.path for hit in memory.grep("needle", within="rules")] == ["rules/c.md"]
    assert [hit.path for hit in memory.grep("needle", within="notes", globs=["b.md"])] == ["notes/b.md"]
    with pytest.raises(PathRefused):
        memory.grep("needle", within="../alicebob")


@pytest.mark.parametrize("within", ["nots", "notes/a", "notes/none.md", "users/al", "notes/a.md/x"])
def test_where_nothing_stands_nothing_is_searched(root: Path, within: str) -> None:
    memory = Memory(str(root))
    with pytest.raises(MemoryNotFound, match="no such folder or memory"):
        memory.search("needle", within=within)
    with pytest.raises(MemoryNotFound, match="no such folder or memory"):
        memory.grep("needle", within=within)


def test_one_memory_is_searched(root: Path) -> None:
    memory = Memory(str(root), Scope(user="alice"))
    assert [hit.path for hit in memory.search("needle", within="notes/b.md").hits] == ["notes/b.md"]


def test_grep_says_on_its_last_hit_how_much_it_left_out(root: Path) -> None:
    assert [hit.left_out for hit in Memory(str(root)).grep("needle", limit=3)] == [0, 0, 1]


def test_a_memory_says_where_it_is_and_what_its_vault_has(root: Path, tmp_path: Path) -> None:
    memory = Memory(str(root), Scope(user="alice"))
    assert (memory.root, memory.folder) == (str(root), str(root / "users/alice"))
    assert (Memory(str(root)).folder, memory.workspace) == (str(root), str(tmp_path))
    assert memory.exists("notes/b.md")
    assert not memory.exists("notes/a.md")
    state = Path(memory.state_folder("sessions"))
    assert state.is_dir()
    assert state.is_relative_to(root / ".mdmem/local")
    assert [kind.name for kind in memory.kinds] == [kind.name for kind in KINDS]
    assert "note" in [info.name for info in memory.schemas.names()]
    assert "note" in [info.name for info in memory.templates.names()]


def test_what_had_to_give_is_remarked_once(root: Path) -> None:
    memory = Memory(str(root))
    assert memory.service.remarks == []
    memory.vault.notes.extend(["a link was passed over"] * 2)
    memory.index.notes.extend(["a link was passed over", "the index was rebuilt"])
    assert memory.service.remarks == ["a link was passed over", "the index was rebuilt"]


def test_what_is_printed_of_a_memory_and_a_change_is_short(root: Path) -> None:
    memory = Memory(str(root))
    text = "a secret of many words\n" * 1_000
    plan = memory.plan.write("notes/long.md", text)
    assert repr(plan) == "EditPlan('write notes/long.md', paths: notes/long.md)"
    applied = memory.apply(plan)
    assert repr(applied) == f"Applied({applied.id!r}, created notes/long.md)"
    document = memory.show("notes/long.md")
    assert repr(document) == f"Document('notes/long.md', 23,000 bytes, hash {document.hash[:8]})"
    assert len(repr(plan.changes)) < 400
    for number in range(9):
        memory.write(f"many/{number}.md", "word\n")
    assert repr(memory.rm("many", recursive=True)).endswith("deleted many/3.md and 5 more)")


def test_what_is_listed_of_memories_is_what_a_program_may_use(root: Path) -> None:
    internal = {
        "remarks",
        "commit_left",
        "commit_refused",
        "capture_refused",
        "is_captured",
        "start_background",
    }
    assert internal.isdisjoint(dir(Memory(str(root))))
    assert internal < {*dir(Memory(str(root)).service)}


# ------------------------------------------------------------------------------------------- the public API


def test_every_public_name_loads_when_it_is_asked_for() -> None:
    assert sorted(mdmem.__all__) == mdmem.__all__
    assert {*mdmem._HOMES, "__version__"} == {*mdmem.__all__}
    for name, home in mdmem._HOMES.items():
        assert getattr(mdmem, name) is getattr(sys.modules[home], name)
    with pytest.raises(AttributeError, match="module 'mdmem' has no attribute 'nothing'"):
        mdmem.nothing  # noqa: B018 - it is looked for


def test_help_on_the_package_names_what_is_public() -> None:
    listed = (mdmem.__doc__ or "").partition("What is public")[2]
    assert {*mdmem.__all__} - {*re.findall(r"\w+", listed)} == {"__version__"}


def test_a_vault_is_found_upward(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MDMEM_VAULT", raising=False)
    (tmp_path / "src/deep").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "src/deep", root, root / "users/alice/notes"):
        monkeypatch.chdir(folder)
        assert find() == str(root)
    assert mdmem.open().vault.root == str(root)


def test_a_named_vault_is_the_one_or_none(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = init(tmp_path / "other").root
    monkeypatch.chdir(root)
    monkeypatch.setenv("MDMEM_VAULT", other)
    assert find() == other
    assert find(root) == find(str(root)) == find("../memories") == str(root)
    # A repository is named as well as the vault in it; no other folder above a vault is.
    assert find(tmp_path) == str(root)
    for folder in (tmp_path.parent, root / "notes", tmp_path / "missing"):
        with pytest.raises(VaultNotFound):
            mdmem.open(folder)
        monkeypatch.setenv("MDMEM_VAULT", str(folder))
        with pytest.raises(VaultNotFound):
            mdmem.open()


def test_opening_a_vault_reads_and_writes_nothing(root: Path) -> None:
    (root / ".mdmem/config.toml").write_text("not [ a config")
    before = everything(root)
    memory = mdmem.open(root, Scope(user="carol"), actor="test")
    assert memory.scope.namespace == "users/carol"
    assert memory.plan.scope == memory.scope
    assert memory.notes is memory.notes
    assert everything(root) == before


# -------------------------------------------------------------------------------------------- plans and verbs

DB = "---\ntitle: DB\nold: 1\n---\n# Database\n\nOne file.\n"
VERBS: dict[str, Callable[[Any], Any]] = {
    "write": lambda m: m.write("new.md", "text"),
    "append": lambda m: m.append("db.md", "more"),
    "prepend": lambda m: m.prepend("db.md", "first"),
    "insert": lambda m: m.insert("db.md", 5, "line"),
    "delete_lines": lambda m: m.delete_lines("db.md", 7, 7),
    "set": lambda m: m.set("db.md", {"old": 2, "new": [1]}),
    "unset": lambda m: m.unset("db.md", "old"),
    "section": lambda m: m.section("db.md", "Database", "text"),
    "replace": lambda m: m.replace("db.md", "One", "1"),
    "mv": lambda m: m.mv("db.md", "deep/db.md"),
    "rename_heading": lambda m: m.rename_heading("db.md", "Database", "Data"),
    "rename_block": lambda m: m.rename_block("cites.md", "fact", "truth"),
    "rename_id": lambda m: m.rename_id("cites.md", "other"),
    "rename_tag": lambda m: m.rename_tag("topic", "subject"),
    "references.pin": lambda m: m.references.pin(),
    "references.fix": lambda m: m.references.fix(),
    "rm": lambda m: m.rm("db.md"),
    "clear": lambda m: m.clear(),
    "edit": lambda m: m.edit("db.md", lambda _: [mdmem.TextEdit(0, 0, "x")]),
    "new": lambda m: m.new("note", "new.md", {"title": "New"}),
    "restore": lambda m: m.restore("db.md"),
    "undo": lambda m: m.undo(),
    "redo": lambda m: m.redo(),
    "import_": lambda m: m.import_("mcp-memory", f"{m._vault.root}/../graph.jsonl", to=""),
    "notes.append": lambda m: m.notes.append("db", "text", "T"),
    "notes.today": lambda m: m.notes.today("text"),
    "notes.overwrite": lambda m: m.notes.overwrite("db", "text", "T"),
    "working.update": lambda m: m.working.update("text", thread="t"),
    "working.find_and_replace": lambda m: m.working.find_and_replace("", "text", thread="t"),
    "working.merge": lambda m: m.working.merge({"step": 1}, resource="r"),
    "working.clear": lambda m: m.working.clear(thread="done"),
    "working.sweep": lambda m: m.working.sweep(),
    "preferences.set": lambda m: m.preferences.set("ui", "font", "12"),
    "preferences.delete": lambda m: m.preferences.delete("ui", "old"),
    "preferences.sweep": lambda m: m.preferences.sweep(),
    "supersede": lambda m: m.supersede("db.md", "moved.md", at="2026-01-01"),
    "merge": lambda m: m.merge(["db.md", "moved.md"], "moved.md"),
    "contradict": lambda m: m.contradict("db.md", "moved.md", at="2026-01-01"),
    "reinstate": lambda m: m.reinstate("over.md"),
    "confirm": lambda m: m.confirm("db.md", source="sessions/t1#1"),
    "retier": lambda m: m.retier("db.md", "pinned"),
    "reinforce": lambda m: m.reinforce("over.md", until="2999-01-01"),
    "sweep": lambda m: m.sweep(),
    "share": lambda m: m.share("db.md", "bob", "read"),
    "unshare": lambda m: m.unshare("over.md"),
    "rules.add": lambda m: m.rules.add("style", "Type everything."),
    "project.append": lambda m: m.project.append("Decisions", "Use SQLite"),
    "project.step": lambda m: m.project.step("deploy", "done"),
    "project.params": lambda m: m.project.params({"model": "large"}),
}
PIN_OF_SECOND = f"<!-- pin {sha256(b'second = 2' + bytes([10])).hexdigest()[:16]} -->"


@pytest.fixture
def memory(root: Path) -> Memory:
    return make_memory(root)


def make_memory(root: Path) -> Memory:
    """The memory of dora, in which there is something for every verb."""
    config = root / ".mdmem/config.toml"
    config.write_text(config.read_text().replace("[mounts]\n", "[sharing]\nenabled = true\n\n[mounts]\n"))
    memory = Memory(str(root), Scope(user="dora"))
    (root.parent / "graph.jsonl").write_text('{"type": "entity", "name": "Ada", "entityType": "person"}')
    memory.write("db.md", "before")
    memory.write("db.md", DB, overwrite=True)
    memory.write("working/threads/done.md", "---\nexpires: 2020-01-01T00:00:00Z\n---\nold\n")
    faded = "---\nvalue: x\nstrength: 0.7\nconfidence: 0.8\nupdated: 2001-01-01T00:00:00Z\n---\n"
    memory.write("preferences/ui/old.md", faded)
    over = "valid_to: 2020-01-01\nexpires: 2020-01-01\ntier: episodic\naccess: {read: [bob]}\n"
    memory.write("over.md", f"---\n{over}---\nOver.\n")
    cites = "---\nid: one\ntags: [topic]\n---\nSee [[db#Database]] and `app.py#L1`. ^fact\n"
    memory.write("cites.md", cites)
    memory.write("moved.md", f"Now at `app.py#L1` {PIN_OF_SECOND}, and `app.py#L2`.\n")
    (root.parent / "app.py").write_text("first = 1\nsecond = 2\n")
    memory.append("db.md", "last")
    memory.append("db.md", "too much")
    memory.undo()
    return memory


def test_every_verb_that_changes_something_is_tried_here(memory: Memory) -> None:
    kinds = {"": Verbs} | {f"{name}.": type(getattr(memory, name)) for name in ("notes", "working")}
    further = ("preferences", "project", "references", "rules")
    kinds |= {f"{name}.": type(getattr(memory, name)) for name in further}
    changing = {
        f"{prefix}{name}"
        for prefix, kind in kinds.items()
        for name, verb in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and inspect.signature(verb).return_annotation == "R"
    }
    assert changing == VERBS.keys()


@cases("name", VERBS)
def test_a_plan_writes_nothing_and_says_what_the_verb_then_does(tmp_path: Path, name: str) -> None:
    root = make_root(tmp_path)
    memory = make_memory(root)
    before = everything(root)
    plan = VERBS[name](memory.plan)
    diff = memory.prepared(plan).diff()
    assert isinstance(plan, EditPlan)
    assert plan.changes
    assert diff
    assert everything(root) == before
    applied = memory.apply(plan)
    assert applied.files
    assert {file.path for file in applied.files} <= set(plan.paths)
    planned = memories(root)
    memory.redo() if name == "undo" else memory.undo()
    assert memories(root) == memories_of(before)
    done = VERBS[name](memory) if name != "restore" else memory.redo()
    assert isinstance(done, Applied)
    assert memories(root).keys() == planned.keys()


def test_a_plan_is_refused_where_the_memory_has_moved_on(memory: Memory) -> None:
    plan = memory.plan.replace("db.md", "One", "1")
    memory.replace("db.md", "One", "Two")
    with pytest.raises(Conflict):
        memory.apply(plan)
    assert "Two file." in memory.show("db.md").text


# ----------------------------------------------------------------------------------------------- ls and check


def test_ls_gives_sizes_and_leaves_out_what_is_no_memory(root: Path) -> None:
    (root / "link.md").symlink_to("notes/a.md")
    (root / "other.txt").touch()
    memory = Memory(str(root), Scope(user="alice"))
    assert [(e.path, e.size) for e in memory.ls()] == [("notes/b.md", 15), ("rules/c.md", 15)]
    assert [e.path for e in Memory(str(root)).ls(globs=["a.md", "d.md"])] == [
        "notes/a.md",
        "users/alicebob/notes/d.md",
    ]
    assert [e.path for e in memory.ls("rules", globs=["rules/*"])] == []
    for within in ("nothing", "../alicebob", "/etc", "notes/b.md/x"):
        with pytest.raises((MemoryNotFound, PathRefused)):
            memory.ls(within)


def test_check_gathers_what_is_wrong_with_form_and_schema(root: Path) -> None:
    memory = Memory(str(root), Scope(user="alice"))
    assert memory.check() == []
    folder = root / "users/alice"
    (folder / "a.md").write_bytes(b"---\ntags: {a: 5}\n---\n")
    (folder / "b.md").write_bytes(b"\xff")
    (folder / "c.json").write_bytes(b"{")
    (folder / "d.md").symlink_to("a.md")
    (folder / "notes/e.md").write_bytes(b"---\na: [\n---\n")
    found = {(f.path, f.severity) for f in memory.check()}
    assert found == {
        ("a.md", "error"),
        ("b.md", "error"),
        ("c.json", "error"),
        ("d.md", "warning"),
        ("notes/e.md", "error"),
    }
    assert {f.path for f in memory.check(["a.md", "notes"])} == {"a.md", "notes/e.md"}
    assert memory.check(["rules"]) == []
    for path in ("missing.md", "missing", "../alicebob/notes/d.md", ".mdmem"):
        with pytest.raises((MemoryNotFound, PathRefused)):
            memory.check([path])


def test_the_history_of_a_memory_takes_its_path_in_any_spelling(memory: Memory) -> None:
    memory.write("größe.md", "x")
    assert len(memory.history("größe.md")) == len(memory.history("gro\u0308ße.md")) == 1
    assert memory.history("none.md") == []
    with pytest.raises(PathRefused):
        memory.history("../x.md")


def test_what_is_passed_over_is_counted_behind_the_wall_only(tmp_path: Path) -> None:
    root = Path(mdmem.init(tmp_path / "memories").root)
    for name in ("a.txt", "users/al/b.mdx", "users/bob/c.rst"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n")
    assert mdmem.open(root).passed_over() == {".txt": 1, ".mdx": 1, ".rst": 1}
    assert mdmem.open(root, scope=mdmem.Scope(user="al")).passed_over() == {".mdx": 1}
    assert mdmem.open(root, scope=mdmem.Scope(shared=True)).passed_over() == {".txt": 1}


# --------------------------------------------------------------------------------------------------- the wall

SECRET, NAME = "what only bob knows", "unguessed"
PARTS = st.sampled_from(
    [
        *(
            *("..", ".", "", "/", "~", "users", "bob", "alice", "notes", "secret.md", "secret"),
            *("SECRET.md", "x.md"),
        ),
        *("link", "link.md", "%2e%2e", "..%2f", "\\..\\bob", "bob\0", "alice/../bob", "*", "{bob,x}"),
    ]
)
PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join) | st.text(max_size=12)
READS: list[Callable[[Memory, str], Any]] = [
    lambda m, p: m.show(p).text,
    lambda m, p: m.ls(p),
    lambda m, p: m.ls(globs=[p]),
    lambda m, p: [*m.grep("knows", within=p)],
    lambda m, p: m.search("knows", within=p).hits,
    lambda m, p: m.check([p]),
    lambda m, p: m.history(p),
    lambda m, p: m.notes.read(p).text,
    lambda m, p: m.notes.list(p),
    lambda m, p: m.working.get(thread=p),
    lambda m, p: m.preferences.get(p, p),
    lambda m, p: m.render(p),
    lambda m, p: m.rules.list(p),
    lambda m, p: m.ls(p, where=["size>0"], sort="date"),
    lambda m, p: m.references.list(paths=[p]),
    lambda m, p: m.references.lookup(p),
    lambda m, p: m.references.backlinks(p),
    lambda m, p: m.references.graph(p),
]
WRITES: list[Callable[[Any, str], Any]] = [
    lambda m, p: m.write(p, "x", overwrite=True),
    lambda m, p: m.append(p, "x"),
    lambda m, p: m.replace(p, "bob", "x"),
    lambda m, p: m.replace(None, "bob", "x", count="all", within=p),
    lambda m, p: m.mv("mine.md", p),
    lambda m, p: m.mv(p, "mine/too.md"),
    lambda m, p: m.rm(p),
    lambda m, p: m.new("note", p, {"title": "T"}),
    lambda m, p: m.restore(p),
    lambda m, p: m.undo(p),
    lambda m, p: m.notes.overwrite(p, "x", "T"),
    lambda m, p: m.working.update("x", thread=p),
    lambda m, p: m.preferences.set(p, p, "x"),
    lambda m, p: m.project.append(p, p),
    lambda m, p: m.rename_heading(p, "First", "x"),
    lambda m, p: m.rename_id(p, "x"),
    lambda m, p: m.rename_id("mine.md", p),
    lambda m, p: m.rename_tag(p, "x"),
    lambda m, p: m.references.pin([p]),
    lambda m, p: m.references.fix([p]),
]


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Path, Memory]]:
    """The vault of alice and bob, and alice's memory: with links that lead to bob's."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(init(Path(folder) / "memories").root)
        bob = Memory(str(root), Scope(user="bob"))
        bob.write("notes/secret.md", "first\n")
        bob.write("notes/secret.md", f"bob: {SECRET}\n", overwrite=True)
        bob.write(f"notes/{NAME}.md", f"bob: {SECRET}\n")
        bob.preferences.set("bob", "bob", SECRET)
        alice = Memory(str(root), Scope(user="alice"))
        alice.write("mine.md", "mine\n")
        (root / "users/alice/link").symlink_to("../bob")
        (root / "users/alice/link.md").symlink_to("../bob/notes/secret.md")
        (root / "users/alice/notes").mkdir()
        (root / "users/alice/notes/link").symlink_to("../../bob/notes")
        yield root, alice


def attempt(verb: Callable[..., Any], memory: Any, path: str) -> Any:
    try:
        return verb(memory, path)
    except MdmemError as error:
        return error


@given(path=PATHS)
@example(path=":")
def test_no_path_shows_what_belongs_to_another_user(shared: tuple[Path, Memory], path: str) -> None:
    _, alice = shared
    for verb in READS:
        found = attempt(verb, alice, path)
        told = f"{found}{found!r}{mdmem.as_json(found)}"
        assert SECRET not in told
        assert NAME not in told


@pytest.mark.parametrize("odd", ["\udcff", "a\ud800.md", "x=\udfff", "a\0b", "#\ud800", "\ud800>1"])
def test_what_no_file_can_be_called_is_found_nowhere(memory: Memory, odd: str) -> None:
    """A command line may hold bytes that are no text."""
    reads: list[Callable[[Memory, str], Any]] = [
        *READS,
        lambda m, p: m.ls(where=[p]),
        lambda m, p: m.ls(where=[f"title={p}"], sort=p),
        lambda m, p: m.search(p),
    ]
    writes: list[Callable[[Any, str], Any]] = [
        *WRITES,
        lambda m, p: m.rename_block("cites.md", p, "new"),
        lambda m, p: m.rename_heading("db.md", p, "new"),
        lambda m, p: m.rename_tag("topic", p),
    ]
    for verb in reads:
        assert SECRET not in str(attempt(verb, memory, odd))
    for verb in writes:
        assert isinstance(attempt(verb, memory.plan, odd), EditPlan | MdmemError)


@settings(max_examples=examples(50))
@given(path=PATHS)
def test_no_path_plans_or_makes_a_change_for_another_user(shared: tuple[Path, Memory], path: str) -> None:
    root, alice = shared
    before = {name: data for name, data in memories(root).items() if not name.startswith("users/alice/")}
    for verb in WRITES:
        plan = attempt(verb, alice.plan, path)
        assert SECRET not in (plan.diff() if isinstance(plan, EditPlan) else str(plan))
        if isinstance(plan, EditPlan):
            with contextlib.suppress(MdmemError):
                alice.apply(plan)
                alice.undo()
    after = {name: data for name, data in memories(root).items() if not name.startswith("users/alice/")}
    assert after == before


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (Scope(user="alice"), Scope(user="alicebob")),
        (Scope(user="alice"), Scope(user="alice/../bob")),
        (Scope(user="a"), Scope(user="A%")),
        (Scope(project="p"), Scope(project="p", user="u")),
        (Scope(resource_type="t", resource_id="1"), Scope(resource_type="t", resource_id="11")),
        (Scope(user="u", project="p"), Scope(user="u", project="q")),
    ],
)
def test_what_one_scope_writes_another_never_sees(root: Path, mine: Scope, theirs: Scope) -> None:
    one, other = Memory(str(root), mine), Memory(str(root), theirs)
    one.write("x.md", "text of the one")
    one.preferences.set("ui", "theme", "dark")
    one.working.update("state", thread="t")
    assert not {"x.md"} & {listed.path for listed in other.ls()}
    assert not [*other.grep("text of the one")]
    assert other.preferences.list() == []
    assert other.working.list() == []
    assert other.history() == []
    with pytest.raises(MdmemError):
        other.undo()


def test_a_hit_in_a_field_is_its_line_without_the_other_fields(tmp_path: Path) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "vault").root)
    memory.write(
        "a.md", "---\ndescription: Which engine\ntier: hot\nsource: talk\n---\n# Storage\n\nSQLite.\n"
    )
    (hit,) = memory.search("engine").hits
    assert (hit.line, hit.text, hit.before, hit.after) == (2, "description: Which engine", (), ())
    (hit,) = memory.search("sqlite").hits
    assert (hit.line, hit.text) == (8, "SQLite.")


def test_what_cannot_be_read_is_named_where_it_is_not_searched(vault_root: Path) -> None:
    memory = Memory(str(vault_root))
    memory.write("notes/a.md", "lait\n")
    memory.write("users/ann/notes/b.md", "lait\n")
    (vault_root / "notes/latin.md").write_bytes(b"caf\xe9 lait\n")
    told = "1 file cannot be read, and not be searched: `mdmem check` says why"
    found = memory.search("lait")
    assert (found.unread, found.notes) == (1, (told,))
    assert memory.search("lait", within="users").notes == ()
    assert mdmem.open(vault_root, Scope(user="ann")).search("lait").notes == ()
    assert told in memory.context("lait").text
