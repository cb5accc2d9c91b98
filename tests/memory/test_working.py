"""Working memory in real vaults: its forms, its life, its schemas, and many who share it."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.diagnostic import as_json
from mdmem.document.document import parse
from mdmem.errors import (
    ConfigInvalid,
    Conflict,
    EditRefused,
    Invalid,
    MdmemError,
    MemoryNotFound,
    NamedNotFound,
    NotEncodable,
    PathRefused,
    TemplateFailed,
    TextAmbiguous,
    TextNotFound,
    TooNested,
    Usage,
)
from mdmem.facade.memory import Memory
from mdmem.memory.content import unpadded
from mdmem.memory.working import Working
from mdmem.serve.adapters.memory_tool import Tool
from mdmem.vault.paths import Scope
from mdmem.vault.vault import Vault
from tests import speed
from tests.memory.forking import run_at_once
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mdmem.vault.plan import EditPlan
    from mdmem.vault.transaction import Applied


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = datetime(2025, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def turn(self, seconds: int) -> None:
        self.time += timedelta(seconds=seconds)


STATE = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"enum": ["a"]}}, "required": ["n"]}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
SHORT = {"type": "string", "maxLength": 40}


def make_vault(folder: Path, config: str = "") -> Path:
    root = folder / "memories"
    (root / ".mdmem" / "schemas").mkdir(parents=True)
    (root / ".mdmem" / "templates").mkdir()
    (root / ".mdmem" / "config.toml").write_text(config)
    for name, schema in {"state": STATE, "numbers": NUMBERS, "short": SHORT}.items():
        (root / ".mdmem" / "schemas" / f"{name}.json").write_text(json.dumps(schema))
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_vault(tmp_path)


@pytest.fixture
def vault(root: Path) -> Vault:
    return Vault(str(root))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def working(vault: Vault, clock: Clock) -> Working[Applied]:
    return Working(vault, vault.transact, clock)


@pytest.fixture
def planned(vault: Vault, clock: Clock) -> Working[EditPlan]:
    return Working(vault, lambda build: build(), clock)


@pytest.fixture(scope="module")
def plans() -> Iterator[tuple[Path, Working[EditPlan]]]:
    """The file of thread t, and a working memory that only plans: fast enough for many examples."""
    with tempfile.TemporaryDirectory() as folder:
        root = make_vault(Path(folder))
        (root / "working" / "threads").mkdir(parents=True)
        yield root / "working/threads/t", Working(Vault(str(root)), lambda build: build(), Clock())


def put(root: Path, path: str, content: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root / "working")) for p in (root / "working").rglob("*") if p.is_file())


# -- whose it is ------------------------------------------------------------------------------------------

CALLS: list[Callable[..., Any]] = [
    lambda w, **whose: w.get(**whose),
    lambda w, **whose: w.update("x", **whose),
    lambda w, **whose: w.find_and_replace(None, "x", **whose),
    lambda w, **whose: w.merge({}, **whose),
    lambda w, **whose: w.clear(**whose),
]


@cases("call", CALLS)
@pytest.mark.parametrize("whose", [{}, {"thread": "a", "resource": "a"}, {"thread": "", "resource": ""}])
def test_it_belongs_to_exactly_one(
    working: Working[Applied], call: Callable[..., Any], whose: dict[str, str]
) -> None:
    with pytest.raises(Usage, match="a thread or to a resource"):
        call(working, **whose)


@cases("call", CALLS)
@pytest.mark.parametrize("identifier", ["", ".", "..", "\ud800", "x" * 300])
def test_an_id_that_no_file_can_carry_is_refused(
    root: Path, working: Working[Applied], call: Callable[..., Any], identifier: str
) -> None:
    for whose in ("thread", "resource"):
        with pytest.raises(PathRefused):
            call(working, **{whose: identifier})

    assert not (root / "working").exists()


IDS = [
    *("t1", "a/b", "a%2Fb", "../../evil", "über", "u\u0308ber", "CON", " x ", "x.md", "x.json", ".hidden"),
    *("a\nb", "日本"),
]


@cases("identifier", IDS)
def test_any_id_has_a_file_of_its_own(root: Path, working: Working[Applied], identifier: str) -> None:
    working.update("of the thread", thread=identifier)
    working.update({"of": "the resource"}, resource=identifier)

    assert working.get(thread=identifier) == "of the thread"
    assert json.loads(working.get(resource=identifier)) == {"of": "the resource"}
    assert [(info.kind, info.id) for info in working.list()] == [
        ("thread", identifier),
        ("resource", identifier),
    ]
    assert [name.count("/") for name in files(root)] == [1, 1]
    working.clear(thread=identifier)
    working.clear(resource=identifier)
    assert files(root) == []


def test_ids_that_look_alike_do_not_meet(working: Working[Applied]) -> None:
    for number, identifier in enumerate(IDS):
        working.update(f"number {number}", thread=identifier)

    assert [working.get(thread=i) for i in IDS] == [f"number {n}" for n in range(len(IDS))]
    assert sorted(info.id for info in working.list()) == sorted(IDS)


@given(identifier=st.text(max_size=12))
def test_any_id_stays_in_its_folder(plans: tuple[Path, Working[EditPlan]], identifier: str) -> None:
    try:
        plan = plans[1].update("x", resource=identifier)
    except PathRefused:
        assert identifier in {"", ".", ".."} or len(identifier.encode("utf-8", "replace")) > 80
        return

    for path in plan.paths:
        assert path.startswith("working/resources/")
        assert path.count("/") == 2


# -- update and get ---------------------------------------------------------------------------------------


def test_what_is_not_there_is_empty(root: Path, working: Working[Applied]) -> None:
    assert working.get(thread="t1") == ""
    assert working.get(resource="t1") == ""
    assert not (root / "working").exists()


def test_update_replaces_the_whole_content(root: Path, working: Working[Applied]) -> None:
    applied = working.update("State: tests red.\n", thread="t1")
    assert applied.plan.message == "update working/threads/t1.md"
    working.update("\n\nState: tests green.\n\n", thread="t1")

    assert (root / "working/threads/t1.md").read_bytes() == b"State: tests green.\n"
    assert working.get(thread="t1") == "State: tests green."


@pytest.mark.parametrize("content", ["", " \n\t", None])
def test_blank_content_is_refused(working: Working[Applied], content: str | None) -> None:
    working.update("kept", thread="t1")

    with pytest.raises(Usage, match="clear"):
        working.update(content, thread="t1")

    assert working.get(thread="t1") == "kept"


def test_markdown_keeps_its_frontmatter(root: Path, working: Working[Applied]) -> None:
    fields = "---\r\nid: 'x' # mine\r\nexpires: 2099-01-01\r\n---\r\n"
    file = put(root, "working/threads/t1.md", f"{fields}old\r\n")

    working.update("new\nlines", thread="t1")

    assert file.read_bytes().decode() == f"{fields}\r\nnew\r\nlines\r\n"
    assert working.get(thread="t1") == "new\r\nlines"


def test_content_with_frontmatter_replaces_that_too(root: Path, working: Working[Applied]) -> None:
    file = put(root, "working/threads/t1.md", "---\nid: x\n---\n\nold\n")

    working.update("---\nid: y\nexpires: 2099-01-01\n---\nnew", thread="t1")
    assert file.read_text() == "---\nid: y\nexpires: 2099-01-01\n---\nnew\n"

    working.update("---\nexpires: 2099-01-01\n---\nnew", thread="t1", ttl=0)
    assert "2099" not in file.read_text()


_TEXTS = st.text(alphabet="ab \t\n\r-#:`é\ufeff", max_size=20).filter(unpadded)


@given(old=st.none() | _TEXTS, new=_TEXTS, ttl=st.sampled_from([None, 0, 60]))
@example(old="---\na: 1\n---", new="x", ttl=60)
def test_get_returns_what_update_was_given(
    plans: tuple[Path, Working[EditPlan]], old: str | None, new: str, ttl: int | None
) -> None:
    stem, working = plans
    file = stem.with_suffix(".md")
    file.unlink(missing_ok=True)
    if old is not None:
        file.write_bytes(old.encode())

    try:
        after = working.update(new, thread="t", ttl=ttl).changes[0].after(parse("x.md", b"").limits)
    except EditRefused:
        assert old is not None
        assert old.lstrip("\ufeff").startswith("---") or new.lstrip("\ufeff").startswith("---")
        return

    assert after is not None
    if not parse("x.md", (unpadded(new) + "\n").encode()).frontmatter.present:
        shown = unpadded(after.body)
        wanted = unpadded(new)
        assert shown.replace("\r\n", "\n").replace("\r", "\n") == wanted.replace("\r\n", "\n").replace(
            "\r", "\n"
        )
    assert ("expires" in after.fields) == (ttl == 60)


def test_update_with_a_base_refuses_what_has_moved_on(
    root: Path, vault: Vault, working: Working[Applied]
) -> None:
    working.update("one", thread="t1")
    seen = vault.read("working/threads/t1.md").hash
    working.update("two", thread="t1", base=seen[:12])

    with pytest.raises(Conflict) as caught:
        working.update("three", thread="t1", base=seen)
    assert "-one" in caught.value.diff
    assert working.get(thread="t1") == "two"

    with pytest.raises(MemoryNotFound):
        working.update("x", thread="absent", base=seen)
    assert files(root) == ["threads/t1.md"]


def test_what_was_updated_can_be_restored(root: Path, vault: Vault, working: Working[Applied]) -> None:
    file = put(root, "working/threads/t1.md", "precious")
    working.update("new", thread="t1")

    Memory(vault.root).restore("working/threads/t1.md")

    assert file.read_bytes() == b"precious"


# -- JSON -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [{"a": [1, {"b": "é"}]}, {}, [], [1, None], 0, 1.5, True, False])
def test_a_value_that_is_no_text_becomes_json(root: Path, working: Working[Applied], value: Any) -> None:
    working.update(value, resource="r")

    written = (root / "working/resources/r.json").read_text()
    assert json.loads(written) == value
    assert written.endswith("\n")
    assert working.get(resource="r") == written.strip()


def test_an_object_is_written_for_people(root: Path, working: Working[Applied]) -> None:
    working.update({"name": "é", "list": [1]}, resource="r")

    assert (root / "working/resources/r.json").read_text() == (
        '{\n  "name": "é",\n  "list": [\n    1\n  ]\n}\n'
    )


@cases("value", [{1: 2}, {"a": (1, 2)}, {"a": {1}}, float("nan"), {"a": object()}, b"x"])
def test_what_is_no_json_value_is_refused(root: Path, working: Working[Applied], value: Any) -> None:
    with pytest.raises(Usage, match="not a JSON value"):
        working.update(value, resource="r")

    assert not (root / "working").exists()


def test_a_value_that_contains_itself_is_refused(working: Working[Applied]) -> None:
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(Usage, match="not a JSON value"):
        working.update(circle, resource="r")


def test_a_value_that_no_memory_can_hold_is_refused(root: Path, working: Working[Applied]) -> None:
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]

    with pytest.raises(TooNested):
        working.update(deep, resource="r")
    with pytest.raises(NotEncodable):
        working.update({"a": "\ud800"}, resource="r")

    assert not (root / "working").exists()


def test_where_json_stands_json_text_stays_json(root: Path, working: Working[Applied]) -> None:
    working.update({"a": 1}, thread="t1")
    working.update('{"b":  2}', thread="t1")
    assert (root / "working/threads/t1.json").read_text() == '{"b":  2}\n'

    for broken in ('{"b": 2,}', "[1, 2,]"):
        with pytest.raises(Invalid) as caught:
            working.update(broken, thread="t1")
        assert [finding.code for finding in caught.value.findings] == ["invalid-json"]
    assert working.get(thread="t1") == '{"b":  2}'


@pytest.mark.parametrize("text", ["State: green", "- [ ] a", "[x](y) z"])
def test_where_json_stands_a_text_takes_its_place(root: Path, working: Working[Applied], text: str) -> None:
    working.update({"a": 1, "created": "2025-01-01", "thread": "t1"}, thread="t1", ttl=60)

    working.update(text, thread="t1")

    assert files(root) == ["threads/t1.md"]
    assert working.get(thread="t1") == text
    fields = parse("t1.md", (root / "working/threads/t1.md").read_bytes()).fields
    kept = {"created": "2025-01-01", "thread": "t1"}
    assert fields == {**kept, "expires": "2025-01-31T12:01:00Z", "ttl_seconds": 60}


def test_a_text_does_not_take_the_place_of_json_with_a_schema(root: Path, working: Working[Applied]) -> None:
    working.update({"n": 1}, thread="t1", schema="state")

    with pytest.raises(Invalid):
        working.update("State: green", thread="t1")

    assert files(root) == ["threads/t1.json"]


@pytest.mark.parametrize(
    ("before", "content"),
    [
        ("t1.json", {"step": 2}),
        ("t1.md", "---\nstep: 2\n---\n\nnew"),
        ("t1.md", {"step": 2}),
    ],
)
def test_what_a_memory_says_of_itself_outlives_its_content(
    root: Path, working: Working[Applied], before: str, content: Any
) -> None:
    own = {"created": "2025-01-01", "thread": "t1", "resource": 7}
    fields = {**own, "step": 1, "old": True}
    text = json.dumps(fields) if before.endswith("json") else f"---\n{json.dumps(fields)}\n---\n\nold\n"
    put(root, f"working/threads/{before}", text)

    working.update(content, thread="t1")

    (name,) = files(root)
    assert parse(name, (root / "working" / name).read_bytes()).fields == {"step": 2, **own}


def test_what_the_content_says_of_itself_counts(root: Path, working: Working[Applied]) -> None:
    put(root, "working/threads/t1.json", '{"created": "2025-01-01", "thread": "t1"}')

    working.update({"created": None, "thread": "t2"}, thread="t1")

    assert json.loads(working.get(thread="t1")) == {"created": None, "thread": "t2"}


def test_a_value_takes_the_place_of_markdown(root: Path, vault: Vault, working: Working[Applied]) -> None:
    put(root, "working/threads/t1.md", "old\n")

    working.update({"a": 1}, thread="t1")
    assert files(root) == ["threads/t1.json"]

    Memory(vault.root).undo()
    assert files(root) == ["threads/t1.md"]
    assert working.get(thread="t1") == "old"


def test_two_files_for_one_id_are_refused_but_can_be_cleared(root: Path, working: Working[Applied]) -> None:
    put(root, "working/threads/t1.md", "text")
    put(root, "working/threads/t1.json", "{}")

    for call in CALLS[:-1]:
        with pytest.raises(EditRefused, match=r"\.md and a \.json"):
            call(working, thread="t1")
    assert files(root) == ["threads/t1.json", "threads/t1.md"]

    working.clear(thread="t1")
    assert files(root) == []


def test_a_plan_that_is_new_refuses_when_the_other_form_came_to_be(
    root: Path, vault: Vault, working: Working[Applied], planned: Working[EditPlan]
) -> None:
    plan = planned.update({"a": 1}, thread="t1")
    working.update("text", thread="t1")

    with pytest.raises(MdmemError):
        vault.apply(plan)

    assert files(root) == ["threads/t1.md"]


# -- schemas ----------------------------------------------------------------------------------------------


def test_the_schema_is_recorded_and_holds_from_then_on(root: Path, working: Working[Applied]) -> None:
    working.update({"n": 1}, thread="t1", schema="state")
    before = (root / "working/threads/t1.json").read_text()
    assert json.loads(before) == {"n": 1, "$schema": "state"}

    changes: list[Callable[[], Any]] = [
        lambda: working.update({"n": "x", "s": "b"}, thread="t1"),
        lambda: working.update('{"n": "x", "s": "b"}', thread="t1"),
        lambda: working.merge({"n": "x", "s": "b"}, thread="t1"),
        lambda: working.find_and_replace("1", '"x", "s": "b"', thread="t1"),
    ]
    for change in changes:
        with pytest.raises(Invalid) as caught:
            change()
        assert [f.code for f in caught.value.findings] == ["schema-type", "schema-enum"]
        assert {f.path for f in caught.value.findings} == {"working/threads/t1.json"}
    assert (root / "working/threads/t1.json").read_text() == before

    working.update({"n": 2}, thread="t1")
    assert json.loads(working.get(thread="t1")) == {"n": 2, "$schema": "state"}


def test_a_text_for_a_schema_of_json_is_json(root: Path, working: Working[Applied]) -> None:
    working.update('{"n": 1}', thread="t1", schema="state")
    with pytest.raises(Invalid):
        working.update("n is 1", thread="t2", schema="state")

    assert files(root) == ["threads/t1.json"]


def test_a_schema_of_a_text_makes_markdown(root: Path, working: Working[Applied]) -> None:
    working.update("short", thread="t1", schema="short")
    assert (root / "working/threads/t1.md").read_text() == "---\n$schema: short\n---\n\nshort\n"

    with pytest.raises(Invalid):
        working.update("long " * 20, thread="t1")
    with pytest.raises(Invalid):
        working.find_and_replace(None, "long " * 20, thread="t1")
    assert working.get(thread="t1") == "short"


def test_a_value_without_fields_is_checked_when_its_schema_is_named(
    root: Path, working: Working[Applied]
) -> None:
    working.update([1, 2], thread="t1", schema="numbers")
    assert files(root) == ["threads/t1.json"]

    with pytest.raises(Invalid) as caught:
        working.update([1, "x", "y"], thread="t1", schema="numbers")
    assert [f.code for f in caught.value.findings] == ["schema-type", "schema-type"]
    assert json.loads(working.get(thread="t1")) == [1, 2]
    with pytest.raises(Invalid):
        working.update([1], thread="t1", schema="state")


def test_a_schema_that_is_not_there_is_refused(root: Path, working: Working[Applied]) -> None:
    for content in ("x", {"n": 1}, [1]):
        with pytest.raises(NamedNotFound) as caught:
            working.update(content, thread="t1", schema="stat")
        assert "state" in caught.value.near

    assert not (root / "working").exists()


def test_another_schema_replaces_the_recorded_one(working: Working[Applied]) -> None:
    working.update({"n": 1}, thread="t1", schema="state")
    working.update({"$schema": "working", "x": 1}, thread="t1")
    assert json.loads(working.get(thread="t1")) == {"$schema": "working", "x": 1}

    working.update({"n": 1}, thread="t1", schema="state")
    assert json.loads(working.get(thread="t1"))["$schema"] == "state"


def test_markdown_that_names_a_schema_of_fields_stays_markdown(root: Path, working: Working[Applied]) -> None:
    put(root, "working/threads/t1.md", "---\n$schema: state\nn: 1\n---\nold\n")

    working.update("new", thread="t1")

    assert (root / "working/threads/t1.md").read_text() == "---\n$schema: state\nn: 1\n---\n\nnew\n"


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


def test_a_vault_may_name_a_schema_and_a_template(tmp_path: Path) -> None:
    root = make_vault(tmp_path, '[working]\nschema = "state"\ntemplate = "start"\n')
    put(root, ".mdmem/templates/start.json", '{"n": 0}')
    memory = Memory(str(root))

    assert json.loads(memory.working.get(thread="t1")) == {"n": 0}
    memory.working.update('{"n": 1}', thread="t1")
    changes: list[Callable[[], Any]] = [
        lambda: memory.working.update({"n": "x"}, thread="t1"),
        lambda: memory.working.update("text", thread="t2"),
        lambda: memory.working.merge({"n": None}, thread="t1"),
        lambda: memory.replace("working/threads/t1.json", "1", '"x"'),
    ]
    for change in changes:
        with pytest.raises(Invalid):
            change()

    assert (root / "working/threads/t1.json").read_text() == '{"n": 1}\n'
    assert memory.working.get(resource="r", template="") == ""
    put(root, ".mdmem/config.toml", '[working]\nschema = "stat"\n')
    with pytest.raises(ConfigInvalid, match="there is no schema 'stat'"):
        Memory(str(root)).working.update({"n": 1}, thread="t1")


# -- how long it lives ------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["State", {"a": 1}])
def test_what_has_expired_is_not_returned(
    root: Path, working: Working[Applied], clock: Clock, content: Any
) -> None:
    working.update(content, thread="t1", ttl=60)
    clock.turn(59)
    assert working.get(thread="t1")

    clock.turn(1)
    assert working.get(thread="t1") == ""
    assert len(files(root)) == 1


def test_each_update_begins_a_new_life(root: Path, working: Working[Applied], clock: Clock) -> None:
    working.update("one", thread="t1", ttl=60)
    clock.turn(50)
    working.update("two", thread="t1", ttl=60)
    clock.turn(50)
    assert working.get(thread="t1") == "two"
    assert "expires: 2025-01-31T12:01:50Z" in (root / "working/threads/t1.md").read_text()

    working.find_and_replace("two", "three", thread="t1", ttl=60)
    clock.turn(59)
    assert working.get(thread="t1") == "three"

    working.update("four", thread="t1", ttl=0)
    clock.turn(10**9)
    assert working.get(thread="t1") == "four"
    assert "expires" not in (root / "working/threads/t1.md").read_text()


# Verbs of working memory, and verbs for any memory, that name no ttl: path, content and verb.
SLIDES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "update": ("one", lambda m: m.working.update("two", thread="t")),
    "update with fields": ("one", lambda m: m.working.update("---\na: 1\n---\ntwo", thread="t")),
    "update JSON": ({"a": 1}, lambda m: m.working.update({"b": 1}, thread="t")),
    "update to JSON": ("one", lambda m: m.working.update({"b": 1}, thread="t")),
    "find and replace": ("one", lambda m: m.working.find_and_replace("one", "two", thread="t")),
    "find and append": ("one", lambda m: m.working.find_and_replace("", "two", thread="t")),
    "merge": ({"a": 1}, lambda m: m.working.merge({"b": 2}, thread="t")),
    "append": ("one", lambda m: m.append("working/threads/t.md", "two")),
    "prepend": ("one", lambda m: m.prepend("working/threads/t.md", "two")),
    "insert": ("one", lambda m: m.insert("working/threads/t.md", 5, "two")),
    "delete lines": ("one\ntwo", lambda m: m.delete_lines("working/threads/t.md", 7, 7)),
    "replace": ("one", lambda m: m.replace("working/threads/t.md", "one", "two")),
    "replace in JSON": ({"a": "one"}, lambda m: m.replace("working/threads/t.json", "one", "two")),
    "replace everywhere": ("one", lambda m: m.replace(None, "one", "two", count="all")),
    "section": ("# H\none", lambda m: m.section("working/threads/t.md", "H", "two")),
    "set": ("one", lambda m: m.set("working/threads/t.md", {"a": 1})),
    "set in JSON": ({"a": 1}, lambda m: m.set("working/threads/t.json", {"a": 2})),
    "unset": ("---\na: 1\n---\none", lambda m: m.unset("working/threads/t.md", "a")),
    "write": ("one", lambda m: m.write("working/threads/t.md", "two\n", overwrite=True)),
    "write JSON": ({"a": 1}, lambda m: m.write("working/threads/t.json", '{"b": 2}', overwrite=True)),
    "memory tool": (
        "one",
        lambda m: Tool(m).str_replace("/memories/working/threads/t.md", "one", "two"),
    ),
}


@cases("verb", SLIDES)
@pytest.mark.parametrize("namespace", ["", "users/a"])
def test_the_ttl_that_was_given_slides_on_every_write(tmp_path: Path, verb: str, namespace: str) -> None:
    root = make_vault(tmp_path)
    content, change = SLIDES[verb]
    inside = Memory(str(root), Scope(user="a") if namespace else None)
    inside.working.update(content, thread="t", ttl=3600)
    (file,) = (root / namespace / "working/threads").iterdir()
    old = json.loads(inside.working.get(thread="t"))["expires"] if file.suffix == ".json" else "expires: 2"
    file.write_text(re.sub(r"(expires\W+)\d{4}", r"\g<1>2099", file.read_text()))
    assert old not in file.read_text() or file.suffix == ".md"

    began = datetime.now(UTC).replace(microsecond=0)
    change(inside)

    (file,) = (root / namespace / "working/threads").iterdir()
    fields = parse(file.name, file.read_bytes()).fields
    assert fields["ttl_seconds"] == 3600
    expires = datetime.fromisoformat(fields["expires"])
    assert timedelta(0) <= expires - began - timedelta(seconds=3600) <= timedelta(seconds=100)


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        (lambda m: m.unset("working/threads/t.md", "expires"), {"ttl_seconds": 60}),
        (
            lambda m: m.set("working/threads/t.md", {"expires": "2098-01-01"}),
            {"expires": "2098-01-01", "ttl_seconds": 60},
        ),
        (
            lambda m: m.write("working/threads/t.md", "---\nexpires: 2098-01-01\n---\nx\n", overwrite=True),
            {"expires": "2098-01-01"},
        ),
        (lambda m: m.mv("working/threads/t.md", "notes/t.md"), None),
        (lambda m: m.undo(), {"expires": "2099-01-01", "ttl_seconds": 60}),
        (lambda m: m.rename_tag("old", "new"), {"expires": "2099-01-01", "ttl_seconds": 60}),
        (lambda m: m.working.update("x", thread="t", ttl=0), {}),
    ],
)
def test_who_says_when_it_ends_has_their_way(
    root: Path, verb: Callable[[Any], Any], fields: dict[str, Any] | None
) -> None:
    memory = Memory(str(root))
    text = "---\nexpires: 2099-01-01\nttl_seconds: 60\n---\n\na #old tag\n"
    memory.write("working/threads/t.md", text)
    memory.append("working/threads/t.md", "b")
    put(root, "working/threads/t.md", text)

    verb(memory)

    if fields is None:
        assert (root / "notes/t.md").read_text() == text
    else:
        assert memory.show("working/threads/t.md").fields == fields


def test_without_a_ttl_a_moment_that_was_written_stays(root: Path, working: Working[Applied]) -> None:
    file = put(root, "working/threads/t1.md", "---\nexpires: 2099-01-01\n---\n\none\n")

    working.find_and_replace("one", "two", thread="t1")
    working.update("three", thread="t1")

    assert file.read_text() == "---\nexpires: 2099-01-01\n---\n\nthree\n"


def test_a_clock_that_goes_back_keeps_the_ttl(root: Path, working: Working[Applied], clock: Clock) -> None:
    working.update("one", thread="t1", ttl=60)
    clock.turn(-3600)
    working.update("two", thread="t1")

    fields = parse("x.md", (root / "working/threads/t1.md").read_bytes()).fields
    assert fields == {"expires": "2025-01-31T11:01:00Z", "ttl_seconds": 60}


def test_for_ever_stays_for_ever_whatever_the_config_says(tmp_path: Path, clock: Clock) -> None:
    vault = Vault(str(make_vault(tmp_path, "[working]\nttl_seconds = 60\n")))
    working = Working(vault, vault.transact, clock)

    working.update("one", thread="t1", ttl=0)
    working.find_and_replace("one", "two", thread="t1")
    working.update("three", thread="t1")

    assert vault.read("working/threads/t1.md").fields == {"ttl_seconds": 0}


def test_merging_begins_a_new_life(working: Working[Applied], clock: Clock) -> None:
    working.merge({"a": 1}, thread="t1", ttl=60)
    clock.turn(50)
    working.merge({"b": 2}, thread="t1", ttl=60)

    assert json.loads(working.get(thread="t1")) == {
        "a": 1,
        "b": 2,
        "expires": "2025-01-31T12:01:50Z",
        "ttl_seconds": 60,
    }
    working.merge({"b": None}, thread="t1", ttl=0)
    assert json.loads(working.get(thread="t1")) == {"a": 1}
    working.merge({"expires": "2099-01-01"}, thread="t1")
    assert json.loads(working.get(thread="t1")) == {"a": 1, "expires": "2099-01-01"}


def test_the_config_says_how_long_by_default(tmp_path: Path, clock: Clock) -> None:
    vault = Vault(str(make_vault(tmp_path, "[working]\nttl_seconds = 60\n")))
    working = Working(vault, vault.transact, clock)
    working.update("x", thread="t1")
    working.update({"x": 1}, thread="t2")
    working.update("x", thread="t3", ttl=0)
    working.update({"x": 1, "expires": "2099-01-01"}, thread="t4")
    assert working.get(thread="t5", template="working")
    clock.turn(60)

    assert [(info.id, info.expired) for info in working.list()] == [
        ("t1", True),
        ("t2", True),
        ("t3", False),
        ("t4", False),
        ("t5", True),
    ]
    with pytest.raises(Usage, match="ttl of 0"):
        working.update([1], thread="t6")
    working.update([1], thread="t6", ttl=0)


@pytest.mark.parametrize("ttl", [-1, 1.5, True, 10**12])
def test_a_life_of_no_sense_is_refused(working: Working[Applied], ttl: int) -> None:
    with pytest.raises(Usage):
        working.update("x", thread="t1", ttl=ttl)
    with pytest.raises(Usage):
        working.find_and_replace("", "x", thread="t1", ttl=ttl)
    with pytest.raises(Usage):
        working.merge({"a": 1}, thread="t1", ttl=ttl)


def test_a_life_that_cannot_be_read_does_not_end(root: Path, vault: Vault, working: Working[Applied]) -> None:
    put(root, "working/threads/t1.md", "---\nexpires: soon\n---\n\nx\n")

    assert working.get(thread="t1") == "x"
    assert working.list()[0].expires is None
    assert [f.code for f in vault.schemas.check(vault.read("working/threads/t1.md"))] != []


def test_what_has_expired_counts_as_absent_to_every_verb(
    root: Path, working: Working[Applied], clock: Clock
) -> None:
    for thread in ("a", "b", "c", "d"):
        working.update("secret of old", thread=thread, ttl=1)
    clock.turn(5)

    with pytest.raises(MemoryNotFound):
        working.find_and_replace("secret", "new", thread="a")
    working.find_and_replace(None, "new", thread="a")
    working.merge({"n": 1}, thread="b")
    working.update("new", thread="c")
    assert working.get(thread="d", template="working").startswith("# Working memory")

    assert [working.get(thread=t) for t in "ac"] == ["new", "new"]
    assert json.loads(working.get(thread="b")) == {"n": 1}
    assert files(root) == ["threads/a.md", "threads/b.json", "threads/c.md", "threads/d.md"]
    assert "secret" not in "".join((root / "working" / name).read_text() for name in files(root))


def test_expired_json_gives_way_to_text_unless_its_schema_is_of_json(
    root: Path, working: Working[Applied], clock: Clock
) -> None:
    working.update({"n": 1}, thread="free", ttl=1)
    working.update({"n": 1}, thread="bound", ttl=1, schema="state")
    clock.turn(5)

    working.find_and_replace(None, "text", thread="free")
    assert working.get(thread="free") == "text"
    with pytest.raises(Invalid):
        working.update("text", thread="bound")
    working.update('{"n": 2}', thread="bound")

    assert files(root) == ["threads/bound.json", "threads/free.md"]
    assert json.loads(working.get(thread="bound"))["$schema"] == "state"


# -- find and replace -------------------------------------------------------------------------------------


def test_there_must_be_something_to_replace_in(root: Path, working: Working[Applied]) -> None:
    with pytest.raises(MemoryNotFound, match=r"working/threads/t1\.md"):
        working.find_and_replace("anything", "first", thread="t1")
    put(root, "working/threads/t1.md", "\n")
    with pytest.raises(TextNotFound):
        working.find_and_replace("anything", "first", thread="t1")
    assert (root / "working/threads/t1.md").read_text() == "\n"


@pytest.mark.parametrize("search", [None, ""])
def test_where_nothing_is_the_text_becomes_the_content(working: Working[Applied], search: str | None) -> None:
    working.find_and_replace(search, "first", thread="t1")

    assert working.get(thread="t1") == "first"


@pytest.mark.parametrize("search", [None, ""])
def test_without_a_search_text_nothing_is_overwritten(
    root: Path, working: Working[Applied], search: str | None
) -> None:
    file = put(root, "working/threads/t1.md", "---\na: 1 # c\n---\nfirst")

    working.find_and_replace(search, "\nsecond\n", thread="t1")

    assert file.read_text() == "---\na: 1 # c\n---\nfirst\n\nsecond\n"
    assert working.get(thread="t1") == "first\n\nsecond"


def test_the_text_must_occur_exactly_once(root: Path, working: Working[Applied]) -> None:
    text = "---\nwhat: tests\n---\n\nState: tests green.\nNext: tests.\n"
    file = put(root, "working/threads/t1.md", text)

    working.find_and_replace("State: tests green.", "State: red.", thread="t1")
    assert file.read_text() == text.replace("State: tests green.", "State: red.")
    working.find_and_replace("tests", "docs", thread="t1")
    assert file.read_text() == "---\nwhat: tests\n---\n\nState: red.\nNext: docs.\n"

    file.write_text(text)
    with pytest.raises(TextAmbiguous) as ambiguous:
        working.find_and_replace("tests", "docs", thread="t1")
    assert ambiguous.value.lines == (5, 6)
    with pytest.raises(TextNotFound) as missing:
        working.find_and_replace("state: tests GREEN.", "x", thread="t1")
    assert [(near.line, near.differs) for near in missing.value.near] == [(5, "case")]
    with pytest.raises(TextNotFound):
        working.find_and_replace("what", "x", thread="t1")
    assert file.read_text() == text


def test_overlapping_occurrences_are_ambiguous(working: Working[Applied]) -> None:
    working.update("aaa", thread="t1")

    with pytest.raises(TextAmbiguous):
        working.find_and_replace("aa", "b", thread="t1")


def test_the_result_may_become_empty_and_grow_again(root: Path, working: Working[Applied]) -> None:
    working.update("all of it", thread="t1")

    working.find_and_replace("all of it", "", thread="t1")
    assert working.get(thread="t1") == ""
    assert files(root) == ["threads/t1.md"]

    working.find_and_replace(None, "new", thread="t1")
    assert working.get(thread="t1") == "new"


def test_there_must_be_something_to_append(working: Working[Applied]) -> None:
    working.update("x", thread="t1")

    for thread in ("t1", "absent"):
        with pytest.raises(Usage):
            working.find_and_replace("", " \n", thread=thread)


def test_json_is_changed_as_text_and_stays_json(root: Path, working: Working[Applied]) -> None:
    file = put(root, "working/threads/t1.json", '{"a":  [1,2], "b": "x"}')

    working.find_and_replace("[1,2]", "[3]", thread="t1")
    assert file.read_text() == '{"a":  [3], "b": "x"}'

    with pytest.raises(Invalid) as caught:
        working.find_and_replace("[3]", "[3", thread="t1")
    assert caught.value.findings[0].path == "working/threads/t1.json"
    with pytest.raises(EditRefused, match="nothing can be appended to JSON"):
        working.find_and_replace("", "{}", thread="t1")
    assert file.read_text() == '{"a":  [3], "b": "x"}'


@given(body=st.text(alphabet="ab\n#é", max_size=12), search=st.text(alphabet="ab\n", max_size=2), new=_TEXTS)
@settings(max_examples=examples(150))
def test_replacing_touches_nothing_else(
    plans: tuple[Path, Working[EditPlan]], body: str, search: str, new: str
) -> None:
    stem, working = plans
    file = stem.with_suffix(".md")
    head = "---\na: b\n---\n"
    file.write_bytes((head + body).encode())
    count = sum(body.startswith(search, at) for at in range(len(body))) if search else 0

    try:
        plan = working.find_and_replace(search, new, thread="t")
    except TextNotFound:
        assert count == 0
        return
    except TextAmbiguous:
        assert count > 1
        return

    if not plan.changes:
        assert search == new
        return
    after = plan.changes[0].after(parse("x.md", b"").limits)
    assert after is not None
    if search and body.strip():
        assert count == 1
        start, _, end = body.partition(search)
        assert after.text.startswith(head + start)
        assert after.text.endswith(end)
    else:
        kept = unpadded(body)
        assert kept in after.text
        assert unpadded(new).split("\n")[-1] in after.text
        assert after.text.startswith(head) or not kept


# -- merge ------------------------------------------------------------------------------------------------


def test_merge_changes_members_and_no_other_byte(root: Path, working: Working[Applied]) -> None:
    file = put(root, "working/resources/r.json", '{"a":1,   "b":{"x":1.50, "y":2},"l":[1,2]}')

    working.merge({"a": None, "b": {"y": 3, "z": {"n": None}}, "l": [4]}, resource="r")

    assert file.read_text() == '{"b":{"x":1.50, "y":3,"z":{}},"l":[4]}'
    assert working.merge({"b": {"y": 3}}, resource="r").files == ()


def test_merge_makes_what_is_not_there(root: Path, working: Working[Applied]) -> None:
    working.merge({"a": {"b": None, "c": 1}, "d": None}, resource="new")
    put(root, "working/resources/blank.json", "\n")
    working.merge({"a": 1}, resource="blank")

    assert json.loads(working.get(resource="new")) == {"a": {"c": 1}}
    assert json.loads(working.get(resource="blank")) == {"a": 1}


def test_merge_refuses_what_is_no_object(root: Path, working: Working[Applied]) -> None:
    put(root, "working/resources/text.md", "text")
    put(root, "working/resources/list.json", "[1]")
    put(root, "working/resources/broken.json", '{"a": ')

    for resource, error in {"text": Usage, "list": Usage, "broken": Invalid}.items():
        with pytest.raises(error):
            working.merge({"a": 1}, resource=resource)
    patches: list[Any] = [[1], "x", None, {1: 2}]
    for patch in patches:
        with pytest.raises(Usage):
            working.merge(patch, resource="new")
    assert files(root) == ["resources/broken.json", "resources/list.json", "resources/text.md"]


# -- templates --------------------------------------------------------------------------------------------


def test_a_first_get_renders_the_template_and_writes_it(root: Path, working: Working[Applied]) -> None:
    first = working.get(thread="t1", template="working", variables={"goal": "Ship it."})

    assert "## Goal\n\nShip it." in first
    assert (root / "working/threads/t1.md").read_text() == first + "\n"
    working.find_and_replace("Ship it.", "Shipped.", thread="t1")
    assert "Shipped." in working.get(thread="t1", template="working", variables={"goal": "Other"})
    assert "Shipped." in working.get(thread="t1", template="no such template")


def test_a_template_of_json_makes_json(root: Path, working: Working[Applied]) -> None:
    (root / ".mdmem/templates/state.json").write_text('{"$schema": "state", "n": {{ n }}}')

    assert json.loads(working.get(thread="t1", template="state", variables={"n": 1}))["n"] == 1
    assert files(root) == ["threads/t1.json"]
    with pytest.raises(Invalid):
        working.get(thread="t2", template="state", variables={"n": '"x"'})
    with pytest.raises(Invalid):
        working.get(thread="t2", template="state", variables={"n": "{"})
    with pytest.raises(TemplateFailed):
        working.get(thread="t2", template="state")
    with pytest.raises(NamedNotFound):
        working.get(thread="t2", template="none")
    assert files(root) == ["threads/t1.json"]


def test_a_plan_of_a_first_get_writes_nothing(root: Path, planned: Working[EditPlan]) -> None:
    assert planned.get(thread="t1", template="working").startswith("# Working memory")
    assert not (root / "working").exists()


def test_of_several_first_gets_all_return_the_same(root: Path, clock: Clock) -> None:
    (root / ".mdmem/templates/who.md").write_text("I am {{ name }}.")
    results: list[str] = []
    together = threading.Barrier(4)

    def first_get(name: str) -> None:
        vault = Vault(str(root))
        working = Working(vault, vault.transact, clock)
        together.wait()
        results.append(working.get(thread="t1", template="who", variables={"name": name}))

    threads = [threading.Thread(target=first_get, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(results) == 4
    assert len(set(results)) == 1
    assert (root / "working/threads/t1.md").read_text() == results[0] + "\n"


# -- clear, sweep, list -----------------------------------------------------------------------------------


def test_clear_deletes_and_can_be_restored(root: Path, vault: Vault, working: Working[Applied]) -> None:
    working.update("precious", thread="t1")

    assert [f.path for f in working.clear(thread="t1").files] == ["working/threads/t1.md"]
    assert working.get(thread="t1") == ""
    assert files(root) == []
    assert working.clear(thread="t1").files == ()

    Memory(vault.root).restore("working/threads/t1.md")
    assert working.get(thread="t1") == "precious"


def test_sweep_deletes_all_that_has_expired_at_once(
    root: Path, vault: Vault, working: Working[Applied], clock: Clock
) -> None:
    working.update("x", thread="t1", ttl=10)
    working.update({"x": 1}, resource="r1", ttl=10)
    working.update("x", thread="later", ttl=100)
    working.update("x", thread="ever")
    put(root, "working/threads/broken.md", b"\xff")
    put(root, "working/other.md", "---\nexpires: 2000-01-01\n---\n")
    clock.turn(10)

    applied = working.sweep()

    assert [f.path for f in applied.files] == ["working/threads/t1.md", "working/resources/r1.json"]
    assert applied.plan.message == "sweep 2 expired working memories"
    assert [message.partition(":")[0] for message in applied.plan.left_out] == ["working/threads/broken.md"]
    assert files(root) == ["other.md", "threads/broken.md", "threads/ever.md", "threads/later.md"]
    assert working.sweep().files == ()

    Memory(vault.root).undo()
    assert "threads/t1.md" in files(root)


def test_list_shows_all_there_is(root: Path, working: Working[Applied], clock: Clock) -> None:
    assert working.list() == []
    working.update("xyz", thread="b", ttl=10)
    working.update("x", thread="a/a")
    working.update({}, resource="r")
    put(root, "working/threads/broken.md", b"\xff")
    put(root, "working/threads/folder/x.md", "no id has a file here")
    put(root, "working/threads/%41.md", "no id is written so")
    clock.turn(11)

    assert [(i.kind, i.id, i.path, i.expires, i.expired) for i in working.list()] == [
        ("thread", "a/a", "working/threads/a%2Fa.md", None, False),
        ("thread", "b", "working/threads/b.md", "2025-01-31T12:00:10Z", True),
        ("thread", "broken", "working/threads/broken.md", None, False),
        ("resource", "r", "working/resources/r.json", None, False),
    ]
    assert as_json(working.list()[0]) == {
        "kind": "thread",
        "id": "a/a",
        "path": "working/threads/a%2Fa.md",
        "expires": None,
        "expired": False,
        "size": 2,
    }


def test_a_namespace_is_a_wall(root: Path, clock: Clock) -> None:
    alice, bob = Vault(str(root), "users/alice"), Vault(str(root), "users/alicebob")
    Working(alice, alice.transact, clock).update("hers", thread="t1")
    his = Working(bob, bob.transact, clock)

    assert his.get(thread="t1") == ""
    assert his.list() == []
    assert his.clear(thread="t1").files == ()
    assert Working(alice, alice.transact, clock).get(thread="t1") == "hers"


# -- many at once -----------------------------------------------------------------------------------------

MANY = 4 if speed.is_all else 2
EACH = examples(25)


def write_shared(root: Path, me: str) -> None:
    vault = Vault(str(root))
    working = Working(vault, vault.transact)
    for number in range(EACH):
        name = f"{me}-{number}"
        working.find_and_replace("", f"line {name}", resource="text")
        working.merge({name: number, "by": {me: number}}, resource="json", ttl=3600)
        working.find_and_replace(f"line {name}", f"done {name}.", resource="text")


def test_processes_that_share_a_resource_lose_nothing(root: Path, working: Working[Applied]) -> None:
    assert set(run_at_once(*(partial(write_shared, root, f"p{n}") for n in range(MANY)))) == {0}

    wanted = {f"p{process}-{number}" for process in range(MANY) for number in range(EACH)}
    lines = working.get(resource="text").split("\n\n")
    assert sorted(lines) == sorted(f"done {name}." for name in wanted)
    merged = json.loads((root / "working/resources/json.json").read_text())
    assert merged.pop("by") == {f"p{n}": EACH - 1 for n in range(MANY)}
    assert merged.pop("expires")
    assert merged.pop("ttl_seconds") == 3600
    assert merged == {name: int(name.partition("-")[2]) for name in wanted}


def write_form(root: Path, content: Any) -> None:
    vault = Vault(str(root))
    working = Working(vault, vault.transact)
    for number in range(20):
        with contextlib.suppress(Invalid):  # a text where the other process has put JSON
            working.update(content, thread=f"t{number}")


def test_two_forms_at_once_never_leave_two_files(root: Path, working: Working[Applied]) -> None:
    assert run_at_once(*(partial(write_form, root, content) for content in ({"a": 1}, "text"))) == [0, 0]

    assert len(working.list()) == 20
    assert len({info.id for info in working.list()}) == 20
