"""What the façade takes: paths of any kind, dates. A wrong argument is an error, and nothing is written."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import enum
import functools
import inspect
import math
import os
import pickle
import pydoc
import shutil
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import frontmatter
import pytest

import mdmem
from mdmem.conversations.observe.candidate import Candidate
from mdmem.document.arguments import complete_id, json_value
from mdmem.errors import MdmemError, Usage, VaultNotFound
from mdmem.vault.plan import EditPlan
from tests import speed
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mdmem.facade.memory import Memory

ANY: Any = mdmem  # what no type checker would let pass
NOTE = "---\ntitle: x\n---\n\n# H\n\ntext ^b1\n"


class Fake:
    """A path-like object whose path is none."""

    def __fspath__(self) -> Any:
        return 5


class Colour(str, enum.Enum):  # noqa: UP042 - the form of which `str()` is not the value
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE
WRONG: list[Any] = [
    *(None, "", 0, -1, 10**30, 1.5, math.nan, math.inf, b"x", True, [], (), {}, {"a"}, [1], [None], object()),
    *("\0", "\udcff", "a\nb", "x" * 5000, "~/x", "..", "/etc/passwd", "*", "[", "(", Path("notes/a.md")),
    *(
        dt.date(2026, 1, 1),
        CYCLE,
        {1: 2},
        {"a": 1},
        range(3),
        print,
        Fake(),
        Exception(),
        mdmem.Scope(),
        type,
    ),
]
GOOD: dict[str, Any] = {
    "path": "notes/a.md",
    "source": "notes/a.md",
    "target": "notes/c.md",
    "name": "a",
    "for_file": "x.py",
    "content": "c",
    "text": "t",
    "line": 1,
    "first": 1,
    "last": 1,
    "fields": {"title": "y"},
    "key": "title",
    "kind": "note",
    "heading": "H",
    "old": "text",
    "by": "notes/b.md",
    "into": "notes/b.md",
    "tier": "working",
    "new": "more",
    "template": "note",
    "format": "obsidian",
    "pattern": "x",
    "query": "x",
    "category": "ui",
    "value": "v",
    "thread": "t",
    "search": "s",
    "patch": {"a": 1},
    "section": "Decisions",
    "entry": "e",
    "id": "s1",
    "status": "done",
    "values": {"a": 1},
    "folder": ".",
    "host": "codex",
    "tool": "codex",
    "file": "a.md",
    "link": "[[a]]",
    "files": (),
    "paths": (),
    "change": lambda _: [],
    "drafts": (),
    "when": "2999-01-01",
    "candidate": Candidate(kind="fact", value="v", quote="v", start=0, end=1, confidence=0.5, why="said"),
    "session": "t",
    "data": {},
    "seq": 1,
    "verb": "append",
    "user": "v",
    "level": "read",
    "arguments": {"path": "notes/a.md", "text": "t"},
    "scope": mdmem.Scope(user="u"),
}
KINDS = (
    "notes",
    "working",
    "preferences",
    "project",
    "references",
    "rules",
    "inbox",
    "capture",
    "observations",
)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    mdmem.init(tmp_path / "memories")
    memory = mdmem.open(tmp_path / "memories", mdmem.Scope(user="u"))
    memory.write("notes/a.md", NOTE)
    memory.write("data.json", '{"a": 1}\n')
    return memory


def verbs(memory: Memory) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for prefix, kind in (("", memory), *((f"{name}.", getattr(memory, name)) for name in KINDS)):
        methods = inspect.getmembers(kind, inspect.ismethod)
        found |= {prefix + name: verb for name, verb in methods if not name.startswith("_")}
    return found


# What Python itself raises where a value is of another type than a verb works with.
PYTHON = (TypeError, AttributeError, ValueError)
# Arguments that are a text in a file: what is no text is refused, but None where a verb gives a default.
TEXTS = {"StrPath", "str", "str | None"}


def arguments_of(memory: Memory) -> Iterator[tuple[str, str, str, Callable[..., Any]]]:
    """Each argument of each verb: names, annotation, and a call of the verb with a value for it.

    Verbs that change something make a plan.
    """
    good = {**GOOD, "plan": memory.plan.write("other.md", "x")}
    for name, verb in verbs(memory).items():
        signature = inspect.signature(verb)
        given = {p: good[p] for p, each in signature.parameters.items() if each.default is each.empty}
        given |= {"thread": "t"} if "thread" in signature.parameters else {}
        if signature.return_annotation == "R":
            kind, _, last = name.rpartition(".")
            verb = getattr(getattr(memory.plan, kind) if kind else memory.plan, last)  # noqa: PLW2901
        for argument, each in signature.parameters.items():
            if argument not in {"progress", "change"} and name != "watch":
                call = functools.partial(calling, verb, given, argument)
                yield name, argument, each.annotation, call


def calling(verb: Callable[..., Any], given: dict[str, Any], argument: str, value: Any) -> Any:
    found = verb(**{**given, argument: value})
    if isinstance(found, mdmem.Keeper):
        found.close()
    return list(found) if verb.__name__ == "grep" else found


def texts_in(memory: Memory) -> dict[str, str]:
    return {each.path: memory.show(each.path).text for each in memory.ls()}


def test_a_wrong_argument_of_any_verb_is_an_error_of_ours_or_of_python_and_nothing_is_written(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # what is imported from `..` is little
    memory.apply(memory.plan.append("notes/a.md", "a line"))
    before, refused = texts_in(memory), 0
    fewer = 1 if speed.is_all else 10
    for number, (_, _, _, call) in enumerate(arguments_of(memory)):
        for wrong in WRONG[number % fewer :: fewer]:  # each with some of the arguments
            try:
                call(wrong)
            except (MdmemError, *PYTHON):
                refused += 1
    assert refused > 1_000 / fewer
    assert texts_in(memory) == before


@cases("wrong", [5, 1.5, True, b"x", [1], {"a": 1}, print], ids=repr)
def test_what_is_no_text_never_gets_into_a_plan_as_one(memory: Memory, wrong: Any) -> None:
    passed = []
    for name, argument, annotation, call in arguments_of(memory):
        if annotation in TEXTS and f"{name}.{argument}" not in UNUSED:
            with contextlib.suppress(MdmemError, *PYTHON):
                found = call(wrong)
                if isinstance(found, EditPlan) and memory.prepared(found).changes:
                    passed.append((name, argument))
    assert passed == []


# What is not looked at with the other arguments that the test gives.
UNUSED = {"replace.within"}


@cases(
    "call, message",
    [
        (lambda m: m.append(None, "x"), "os.PathLike"),
        (lambda m: m.show(b"a.md"), "expected str or os.PathLike, not bytes"),
        (lambda m: m.append(Fake(), "x"), "__fspath__"),
        (lambda m: m.mv([b"a.md"], "b/"), "expected str or os.PathLike, not bytes"),
        (lambda m: m.plan.notes.append(5, "x"), "os.PathLike"),
        (lambda m: m.ls(globs="*.md"), "globs is a collection of texts, not one: write ['*.md']"),
        (lambda m: list(m.grep("x", globs="*.md")), "globs is a collection of texts"),
        (lambda m: list(m.grep("x", types="note")), "types is a collection of texts"),
        (lambda m: m.ls(where="type=note"), "where is a collection of texts"),
        (lambda m: m.search("x", tags="db"), "tags is a collection of texts"),
        (lambda m: m.check("notes/a.md"), "paths is a collection of texts"),
        (
            lambda m: m.inbox.propose("rm", {"path": "notes/a.md"}, sources="s"),
            "sources is a collection of texts",
        ),
        (lambda m: m.references.list(paths="notes"), "paths is a collection of texts"),
        (lambda m: m.project.step(5, "done"), "id must be str, not int"),
        (lambda m: m.sessions.set_summary("s", None), "text must be str, not NoneType"),
        (lambda m: m.sessions.set_metadata("s", title=5), "title must be str, not int"),
        (lambda _: ANY.init(None), "os.PathLike"),
        (lambda _: ANY.open(5), ""),
        (lambda _: ANY.Scope(user=5), "Scope() user must be str or None, not int"),
        (lambda _: ANY.Scope(shared="no"), "Scope() shared must be bool, not str"),
    ],
)
def test_a_wrong_type_is_named(memory: Memory, call: Callable[[Any], Any], message: str) -> None:
    before = texts_in(memory)
    with pytest.raises(TypeError) as caught:
        call(memory)
    assert message in str(caught.value)
    assert texts_in(memory) == before


def test_a_path_may_be_path_like_wherever_a_path_goes(memory: Memory, tmp_path: Path) -> None:
    memory.append(Path("notes/b.md"), "text")
    memory.mv(Path("notes/b.md"), Path("notes/c.md"))
    assert memory.show(Path("notes/c.md")).path == "notes/c.md"
    assert [each.path for each in memory.ls(Path("notes"))] == ["notes/a.md", "notes/c.md"]
    assert [hit.path for hit in memory.grep("text", within=Path("notes"))] == ["notes/a.md", "notes/c.md"]
    assert memory.search("text", within=Path("notes")).hits
    assert memory.check([Path("notes/a.md")]) == []
    assert memory.check({"notes/a.md"}) == memory.check(p for p in ["notes/a.md"]) == []  # type: ignore[arg-type]
    memory.notes.append(Path("deep/d"), "text")
    assert memory.notes.read(Path("deep/d.md")).path == "notes/deep/d.md"
    assert memory.references.backlinks(Path("notes/a.md")) == ()
    assert memory.rules.list(Path("src/app.py")) == []
    (tmp_path / "from").mkdir()
    (tmp_path / "from/x.md").write_text("x\n")
    assert memory.import_("obsidian", tmp_path / "from", to=Path("taken")).files[0].path == "taken/x.md"
    assert memory.history(Path("notes/a.md"))
    memory.rm(Path("notes/c.md"))
    memory.restore(Path("notes/c.md"))


def test_a_home_folder_is_meant_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert mdmem.init("~/mine").root == str(tmp_path / "mine")
    assert mdmem.open("~/mine").vault.root == str(tmp_path / "mine")


@pytest.mark.parametrize("folder", ["", "\0"])
def test_a_vault_needs_a_folder(folder: str) -> None:
    with pytest.raises(MdmemError):
        mdmem.init(folder)


# -------------------------------------------------------------------------------------------------- values

UTC = dt.UTC
EAST = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (dt.date(2026, 1, 31), "2026-01-31"),
        (dt.datetime(2026, 1, 31, 12, 30, tzinfo=UTC), "2026-01-31T12:30:00Z"),
        (dt.datetime(2026, 1, 31, 12, 30, 5, 7, tzinfo=EAST), "2026-01-31T12:30:05.000007+02:00"),
        (dt.datetime(2026, 1, 31, 12, 30), "2026-01-31T12:30:00"),  # noqa: DTZ001 - as it was given
    ],
)
def test_a_date_is_written_as_iso_8601_has_it(memory: Memory, value: dt.date, written: str) -> None:
    memory.set("notes/a.md", {"created": value, "list": [value]})
    assert f"\ncreated: {written}\n" in memory.show("notes/a.md").text
    assert memory.show("notes/a.md").fields["list"] == [written]
    memory.set("data.json", {"a": value})
    assert memory.show("data.json").text == f'{{"a": "{written}"}}\n'
    memory.preferences.set("ui", "day", value)
    assert memory.preferences.get("ui", "day").value == written
    memory.working.update({"when": value}, resource="r")
    memory.working.merge({"then": value}, resource="r")
    assert memory.working.get(resource="r").count(f'"{written}"') == 2
    memory.project.params({"day": value})
    assert f"day: {written}" in memory.project.load().text


@cases("value", [math.nan, math.inf, -math.inf, 10**4000, b"x", (1,), {1: 2}, object(), CYCLE])
def test_what_json_cannot_hold_is_refused(memory: Memory, value: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: memory.set("notes/a.md", {"title": value}),
        lambda: memory.set("data.json", {"a": [value]}),
        lambda: memory.preferences.set("ui", "theme", value),
        lambda: memory.working.update([value], thread="t"),
        lambda: memory.working.merge({"a": value}, resource="r"),
        lambda: memory.project.params({"a": value}),
    ]
    for call in calls:
        with pytest.raises(Usage, match="not a JSON value"):
            call()
    assert memory.show("notes/a.md").text == NOTE


def test_values_of_subclasses_are_what_they_hold() -> None:
    given = OrderedDict(a=Colour.RED, b=Number.ONE, c=True)
    assert repr(json_value(given)) == "{'a': 'red', 'b': 1, 'c': True}"


# ------------------------------------------------------------------------------------------ what Python shows


def test_the_public_names_are_shown() -> None:
    listed = [name for name in dir(mdmem) if not name.startswith("_")]
    assert listed == sorted(set(mdmem.__all__) - {"__version__"})
    assert all(hasattr(mdmem, name) for name in mdmem.__all__)
    told = pydoc.plain(pydoc.render_doc(mdmem))
    assert all(f" {name}(" in told for name in ("open", "init"))
    assert all(f"class {name}(" in told for name in listed if name[0].isupper() and name != "Hit")
    assert (Path(mdmem.__file__).parent / "py.typed").exists()


def test_to_list_the_names_loads_nothing() -> None:
    program = "import sys, mdmem; before = set(sys.modules); dir(mdmem); print(set(sys.modules) - before)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"


def test_a_memory_shows_its_folder_and_scope(memory: Memory) -> None:
    assert repr(memory) == f"Memory({memory.vault.root!r}, {memory.scope!r})"
    assert "user='u'" in repr(memory)


def test_a_memory_in_use_goes_to_another_process(memory: Memory) -> None:
    assert memory.search("text").hits
    assert memory.plan.scope == memory.scope
    sent = pickle.loads(pickle.dumps(mdmem.open(memory.vault.root, memory.scope, actor="a")))
    assert sent.vault.actor == "a"
    for other in (sent, pickle.loads(pickle.dumps(memory)), copy.copy(memory)):
        assert repr(other) == repr(memory)
        assert other.show("notes/a.md").hash == memory.show("notes/a.md").hash


def test_when_the_vault_is_gone_it_is_said(memory: Memory) -> None:
    shutil.rmtree(memory.vault.root)
    for name in ("show", "append", "write", "ls", "grep", "search", "sync", "check"):
        verb = verbs(memory)[name]
        given = {p: GOOD[p] for p, e in inspect.signature(verb).parameters.items() if e.default is e.empty}
        with pytest.raises(VaultNotFound):
            verb(**given)
    assert not os.path.exists(memory.vault.root)


# ------------------------------------------------------------------------------------ other packages' objects


def test_a_memory_is_a_post_of_python_frontmatter(memory: Memory) -> None:
    text = "---\ntitle: x\nno: no\nday: 2026-01-31\ncontent: c\nhandler: h\n---\n\nbody\n"
    memory.write("post.md", text)
    document = memory.show("post.md")
    post = document.post
    assert isinstance(post, frontmatter.Post)
    assert post.content == "body"
    assert post.metadata == document.fields
    assert post["title"] == "x"
    post["title"] = "another"
    assert document.fields["title"] == document.post["title"] == "x"
    assert memory.show("data.json").post.metadata == {"a": 1}


@pytest.fixture
def walled(tmp_path: Path, memory: Memory) -> Path:
    """A vault with what ripgrep must not show: another user, hidden and local files, and links out of it."""
    root = Path(memory.vault.root)
    (tmp_path / "outside.md").write_text("needle outside\n")
    for path in (
        ".hidden.md",
        ".mdmem/local/x.md",
        "users/u/.hidden.md",
        "users/u2/a.md",
        "users/u/[a]/#b.md",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("needle\n")
    (root / "users/u/link.md").symlink_to(tmp_path / "outside.md")
    (root / "users/u/folder").symlink_to(tmp_path)
    (root / "shared.md").write_text("needle\n")
    return root


def found(ripgrep: Any, root: str | Path) -> set[str]:
    lines = ripgrep.with_filename().run().as_string.splitlines()
    return {os.path.relpath(line.rpartition(":")[0], root) for line in lines}


@pytest.mark.parametrize("unbound", [False, True])
@cases("folder", [".", "..", "users", "users/u", "/"])
def test_ripgrep_is_bound_to_the_namespace(
    walled: Path, monkeypatch: pytest.MonkeyPatch, folder: str, unbound: bool
) -> None:
    def ripgrep(scope: mdmem.Scope) -> Any:
        bound = mdmem.open(walled, scope).ripgrep("needle")
        return bound.follow().hidden().unrestricted().unrestricted().glob("**") if unbound else bound

    monkeypatch.chdir(walled / folder)
    assert found(ripgrep(mdmem.Scope(user="u")), walled) == {"users/u/[a]/#b.md"}
    assert found(ripgrep(mdmem.Scope(shared=True)), walled) == {"shared.md"}
    assert found(ripgrep(mdmem.Scope(user="nobody")), walled) == set()
    assert len(found(ripgrep(mdmem.Scope()), walled)) == 3


def test_no_pattern_is_an_option_of_ripgrep(walled: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "models.program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    memory = mdmem.open(walled)
    memory.write("dash.md", "a --pre=x line\n")
    assert found(memory.ripgrep("--pre"), walled) == {"dash.md"}
    memory.ripgrep(f"--pre={program}").run()
    memory.ripgrep("needle").pre(str(program)).run()
    assert not ran.exists()
    for pattern in ("", "a\nb", "\0"):
        with pytest.raises(Usage):
            memory.ripgrep(pattern)


def test_a_limit_takes_no_more_memory_than_there_are_memories(memory: Memory) -> None:
    assert len(memory.search("text", limit=10**18).hits) == 1
    assert len(memory.search("-nothing", limit=2**40, each="passage").hits) == 2


@pytest.mark.parametrize(("given", "found"), [("ab1", "ab1x"), ("ab", "ab"), ("q", "q"), ("", "")])
def test_an_id_is_completed_where_one_begins_so(given: str, found: str) -> None:
    assert complete_id("thread", given, ["ab", "ab1x", "b"]) == found


def test_an_id_that_several_begin_with_is_refused_with_these() -> None:
    with pytest.raises(Usage) as refused:
        complete_id("thread", "a", [f"a{number}" for number in range(7)])
    assert str(refused.value) == "7 threads begin with 'a': a0, a1, a2, a3, a4, …\ngive more of it"
