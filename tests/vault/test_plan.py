"""An edit plan is a value: what it would result in, its diff and its JSON, with nothing written.

What a change adds is looked through for secrets; none is written, told or kept against the config.
"""

from __future__ import annotations

import json
import random
import string
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.diagnostic import as_json
from mdmem.document.document import Document, Limits, parse
from mdmem.document.edit import TextEdit, splice
from mdmem.document.secret import ALLOW_MARK
from mdmem.errors import BinaryContent, EditRefused, Invalid, NotEncodable, PathRefused, TooLarge
from mdmem.facade.memory import Memory, open as open_memory
from mdmem.vault.plan import Change, EditPlan, NewNames, edit, together
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = Limits()
A = parse("a.md", b"\xef\xbb\xbfone\r\ntwo\r\n")
B = parse("b.md", b"one\n")


def test_edits_keep_every_byte_around_them() -> None:
    change = Change(path="a.md", before=A, edits=(TextEdit(1, 4, "ONE"),))
    after = change.after(LIMITS)
    assert after
    assert after.data == b"\xef\xbb\xbfONE\r\ntwo\r\n"
    assert change.base == A.hash


@cases(
    "change, data",
    [
        (Change(path="a.md", before=A), A.data),
        (Change(path="a.md", before=A, delete=True), None),
        (Change(path="a.md", before=A, content=b"new"), b"new"),
        (Change(path="a.md", before=A, content=b""), b""),
        (Change(path="a.md", before=None, content=b"new"), b"new"),
        (Change(path="a.md", before=None), b""),
        (Change(path="a.md", before=A, move_to="b/c.md"), A.data),
        (Change(path="b.md", before=B, move_to="c.md", edits=(TextEdit(0, 3, "1"),)), b"1\n"),
        (Change(path="b.md", before=B, move_to="c.md", content=b"new"), b"new"),
    ],
)
def test_what_a_change_results_in(change: Change, data: bytes | None) -> None:
    after = change.after(LIMITS)
    assert (after.data if after else None) == data
    if after:
        assert after.path == (change.move_to or change.path)


def test_what_cannot_be_a_memory_is_refused() -> None:
    with pytest.raises(BinaryContent):
        Change(path="a.md", before=None, content=b"a\0").after(LIMITS)
    with pytest.raises(TooLarge):
        Change(path="a.md", before=None, content=b"12345").after(Limits(max_bytes=4))
    with pytest.raises(NotEncodable):
        Change(path="b.md", before=B, edits=(TextEdit(0, 0, "\ud800"),)).after(LIMITS)
    with pytest.raises(EditRefused, match="overlap"):
        Change(path="b.md", before=B, edits=(TextEdit(0, 2, ""), TextEdit(1, 3, ""))).after(LIMITS)
    with pytest.raises(EditRefused, match="outside"):
        Change(path="b.md", before=B, edits=(TextEdit(0, 99, ""),)).after(LIMITS)


def test_a_plan_names_every_path_once() -> None:
    plan = EditPlan(
        changes=(
            Change(path="a.md", before=A, move_to="x/a.md"),
            Change(path="b.md", before=B, delete=True),
            Change(path="c.md", before=None, content=b"c"),
        )
    )
    assert plan.paths == ("a.md", "x/a.md", "b.md", "c.md")
    assert EditPlan(changes=()).paths == ()
    assert EditPlan(changes=()).diff() == ""


def test_the_diff_of_every_kind_of_change() -> None:
    plan = EditPlan(
        changes=(
            Change(path="b.md", before=B, edits=(TextEdit(0, 3, "1"),)),
            Change(path="gone.md", before=parse("gone.md", b"bye\n"), delete=True),
            Change(path="new.md", before=None, content=b"hi\n"),
            Change(path="from.md", before=parse("from.md", b"same\n"), move_to="to.md"),
            Change(path="same.md", before=parse("same.md", b"same\n"), content=b"same\n"),
        )
    )
    diff = plan.diff()
    for line in ("-one", "+1", "-bye", "+hi"):
        assert f"\n{line}\n" in diff
    assert diff.index("b.md") < diff.index("gone.md") < diff.index("new.md") < diff.index("to.md")
    assert "from.md" in diff
    assert "/dev/null" in diff
    assert "same.md" not in diff


def test_a_plan_is_json() -> None:
    plan = EditPlan(
        changes=(
            Change(path="b.md", before=B, edits=(TextEdit(3, 4, "!"), TextEdit(0, 1, "O"))),
            Change(path="c.md", before=None, content=b"caf\xc3\xa9"),
            Change(path="d.md", before=B, delete=True),
            Change(path="e.md", before=B, move_to="f.md"),
        ),
        message="four",
        actor="ann",
    )
    shape = json.loads(json.dumps(as_json(plan)))
    assert (shape["applied"], shape["id"], shape["message"]) == (False, "", "four")
    assert shape["diff"] == plan.diff()
    after = parse("b.md", splice(B.text, plan.changes[0].edits, "b.md").encode(), LIMITS).hash
    assert shape["files"] == [
        {"path": "b.md", "before": B.hash, "after": after},
        {"path": "c.md", "before": None, "after": parse("c.md", b"caf\xc3\xa9", LIMITS).hash},
        {"path": "d.md", "before": B.hash, "after": None},
        {"path": "f.md", "before": None, "after": B.hash},
        {"path": "e.md", "before": B.hash, "after": None},
    ]


def test_a_plan_of_any_size_is_shown() -> None:
    """Whether it may be so large is for the vault to say, which knows its config."""
    plan = EditPlan(changes=(Change(path="a.md", before=None, content=b"x" * (LIMITS.max_bytes + 1)),))
    assert len(plan.diff()) > LIMITS.max_bytes
    assert as_json(plan)["files"][0]["after"]


def test_a_plan_of_no_edits_changes_nothing() -> None:
    assert edit(B, [], "nothing").changes == ()
    plan = edit(B, [TextEdit(0, 0, "x")], "one", merge=False)
    assert plan.changes[0].merge is False
    assert together([plan, edit(A, [TextEdit(0, 0, "x")], "two")], "both").paths == ("b.md", "a.md")
    assert together([], "none").changes == ()


@given(
    st.text(alphabet="ab\r\n\ufeffé\U0001f600", max_size=12),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.text("xy\n", max_size=3)), max_size=4),
)
@settings(max_examples=examples(400))
def test_the_json_of_a_change_says_what_it_does(text: str, edits: list[tuple[int, int, str]]) -> None:
    """Whoever applies the edits of the JSON to the text with the hash `base` gets the same bytes."""
    before: Document = parse("a.md", text.encode())
    change = Change(path="a.md", before=before, edits=tuple(TextEdit(*each) for each in edits))
    try:
        after = change.after(LIMITS)
    except EditRefused:
        return
    assert after
    written = as_json(change).get("edits", [])
    assert splice(text, [TextEdit(**each) for each in written]).encode() == after.data


# -------------------------------------------------------------------------------------------------- new names


def refused(standing: list[str], plan: list[str], namespace: str = "") -> str:
    """Why a plan is refused beside files that stand there; empty when it is not. `a > b` is a move."""
    paths = {"/".join(path.split("/")[:count]) for path in standing for count in range(1, 9)}

    def names_in(folder: str) -> list[str]:
        return [path.rpartition("/")[2] for path in paths if path.rpartition("/")[0] == folder]

    moves = [each.partition(" > ") for each in plan]
    changes = tuple(
        Change(path=old, before=replace(A, path=old), move_to=new) if new else Change(path=old, before=None)
        for old, _, new in moves
    )
    try:
        NewNames(namespace, paths.__contains__, names_in).refuse(EditPlan(changes=changes))
    except PathRefused as error:
        return error.reason
    NewNames(namespace, paths.__contains__, names_in).refuse(EditPlan(changes=changes, brings_back=True))
    return ""


@cases(
    "standing, plan",
    [
        ([], ["notes/a.md", "notes/b.md", "Other/a.md"]),
        (["con.md", "aux/a?.md"], ["con.md", "aux/a?.md", "aux/b.md"]),
        (["n/E.md"], ["n/E.md > n/e.md"]),
        (["n/E.md", "n/x.md"], ["n/E.md > N/E.md", "n/x.md > N/x.md"]),
        (["n/E.md", "n/e.md"], ["n/E.md > old/E.md", "n/e.md > old/e.md"]),
        (["n/E/a.md", "n/e/b.md"], ["n/E/a.md > old/E/a.md", "n/e/b.md > old/e/b.md"]),
        (["n/con.md", "n/a?/aux.md"], ["n/con.md > old/con.md", "n/a?/aux.md > old/a?/aux.md"]),
        (["n/con.md"], ["n/con.md > con.md"]),
        (["Q&A: why?.md"], ["Q&A: why?.md > QA.md"]),
    ],
)
def test_what_stands_may_be_changed_renamed_and_moved_whatever_its_name(
    standing: list[str], plan: list[str]
) -> None:
    assert refused(standing, plan) == ""


@cases(
    "standing, plan, reason",
    [
        ([], ["notes/con.md"], "device"),
        ([], ["a?/b.md"], "every system"),
        (["aux/a.md"], ["aux/nul.md"], "device"),
        (["a.md"], ["a.md > b?.md"], "every system"),
        (["a.md"], ["a.md > con/a.md"], "device"),
        (["con.md"], ["con.md > nul.md"], "device"),
        (["n/E.md"], ["n/e.md"], "from 'n/E.md', which"),
        (["Notes/a.md"], ["notes/b.md"], "from 'Notes', which"),
        ([], ["n/a.md", "n/A.md"], "from 'n/a.md', which"),
        ([], ["n/a.md", "N/b.md"], "from 'n', which"),
        (["n/E.md", "x.md"], ["x.md > n/e.md"], "from 'n/E.md', which"),
        (["n/E.md", "n/e.md", "o/E.md"], ["n/e.md > o/e.md"], "from 'o/E.md', which"),
        (["n/a.md", "m/A.md"], ["n/a.md > o/a.md", "m/A.md > o/A.md"], "from 'o/a.md', which"),
        (["n/E.md", "n/e.md"], ["n/E.md > o/a.md", "n/e.md > o/A.md"], "from 'o/a.md', which"),
    ],
)
def test_a_new_name_that_not_every_system_can_hold_is_refused(
    standing: list[str], plan: list[str], reason: str
) -> None:
    assert reason in refused(standing, plan)


def test_a_twin_outside_of_the_namespace_is_not_named() -> None:
    said = refused(["users/Bob/n.md"], ["n.md"], "users/bob")
    assert said == "the scope that it is in differs only in case from another one"
    assert (
        refused(["users/bob/N.md"], ["n.md"], "users/bob") == "differs only in case from 'N.md', which exists"
    )
    assert refused([], ["n.md"], "users/con") == "", "a namespace's own names are encoded ids"


# -- secrets -----------------------------------------------------------------------------------------------


def drawn(seed: int) -> str:
    return "ghp_" + "".join(random.Random(seed).choices(string.ascii_letters, k=36))


TOKEN, OTHER = drawn(1), drawn(2)
WORD = "REDACTED-github-token"
START = "# Deploy\n\nask the vault\n"


def made(tmp_path: Path) -> Path:
    return Path(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture
def memory(root: Path) -> Memory:
    return configured(root, "refuse")


def configured(root: Path, policy: str, *allow: str) -> Memory:
    text = f'[secrets]\npolicy = "{policy}"\nallow = {list(allow)}\n'
    (root / ".mdmem" / "config.toml").write_text(text)
    memory = open_memory(root)
    if not (root / "notes" / "a.md").exists():
        memory.write("notes/a.md", START)
    return memory


def everywhere(root: Path) -> bytes:
    """Every byte of the vault: memories, trash, journal, history."""
    return b"\0".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


# Each way in which a memory can come to hold the token.
WRITES: dict[str, Callable[[Memory], object]] = {
    "write": lambda m: m.write("notes/b.md", f"key: {TOKEN}\n"),
    "overwrite": lambda m: m.write("notes/a.md", f"key: {TOKEN}\n", overwrite=True),
    "append": lambda m: m.append("notes/a.md", f"key: {TOKEN}"),
    "append to a new one": lambda m: m.append("notes/b.md", f"key: {TOKEN}"),
    "replace": lambda m: m.replace("notes/a.md", "ask", f"use {TOKEN}"),
    "replace across": lambda m: m.replace(None, "ask", TOKEN, count="all", within="notes"),
    "insert": lambda m: m.insert("notes/a.md", 1, TOKEN),
    "section": lambda m: m.section("notes/a.md", "Deploy", TOKEN),
    "set": lambda m: m.set("notes/a.md", {"source.ids": [TOKEN]}),
    "json": lambda m: m.write("notes/b.json", f'{{"key": "{TOKEN}"}}'),
    "notes": lambda m: m.notes.append("b", TOKEN),
    "working": lambda m: m.working.update(TOKEN, thread="t1"),
    "preferences": lambda m: m.preferences.set("ui", "token", TOKEN),
    "template": lambda m: m.new("note", "notes/b.md", {"title": "Key", "body": TOKEN}),
}


@cases("name", WRITES)
def test_a_secret_is_refused_whoever_writes_it_and_stands_nowhere(tmp_path: Path, name: str) -> None:
    root = made(tmp_path)
    memory = configured(root, "refuse")
    before = everywhere(root)
    with pytest.raises(Invalid) as refused:
        WRITES[name](memory)
    (finding,) = set(refused.value.findings)
    assert finding.code == "secret"
    assert "GitHub token ghp_…" in refused.value.message
    assert TOKEN[5:] not in f"{refused.value} {as_json(refused.value)}"
    assert everywhere(root) == before


@cases("name", WRITES)
def test_a_secret_is_taken_out_and_that_is_said(tmp_path: Path, name: str) -> None:
    root = made(tmp_path)
    memory = configured(root, "redact")
    applied = WRITES[name](memory)
    assert isinstance(applied, mdmem.Applied)
    (warning,) = applied.plan.warnings
    assert as_json(applied)["warnings"] == [as_json(warning)]
    document = memory.show(applied.files[0].path)
    assert document.text[slice(*warning.span)] == WORD
    assert warning.position == document.lines.position(warning.span.start)
    assert TOKEN[5:].encode() not in everywhere(root)


@cases("name", WRITES)
def test_a_secret_is_written_with_a_warning_where_the_config_says_so(tmp_path: Path, name: str) -> None:
    root = made(tmp_path)
    memory = configured(root, "warn")
    applied = WRITES[name](memory)
    assert isinstance(applied, mdmem.Applied)
    (warning,) = applied.plan.warnings
    assert warning.severity == "warning"
    assert TOKEN[5:] not in str(as_json(warning))
    assert memory.show(applied.files[0].path).text[slice(*warning.span)] == TOKEN


@cases("name", WRITES)
def test_nothing_is_looked_for_where_it_is_off(tmp_path: Path, name: str) -> None:
    root = made(tmp_path)
    memory = configured(root, "off")
    applied = WRITES[name](memory)
    assert isinstance(applied, mdmem.Applied)
    assert not applied.plan.warnings
    assert TOKEN in memory.show(applied.files[0].path).text
    assert memory.check() == []


def test_the_line_and_the_ways_to_allow_it_are_told(memory: Memory) -> None:
    with pytest.raises(Invalid) as refused:
        memory.append("notes/a.md", f"first\nkey: {TOKEN}")
    (finding,) = refused.value.findings
    assert finding.position == (5, 6)
    assert ALLOW_MARK in refused.value.hint
    assert ".mdmem/config.toml" in refused.value.hint
    memory.append("notes/a.md", f"key: {TOKEN} <!-- {ALLOW_MARK} -->")


def test_the_hash_that_a_refusal_names_allows_the_secret(memory: Memory, root: Path) -> None:
    with pytest.raises(Invalid) as refused:
        memory.append("notes/a.md", TOKEN)
    memory = configured(root, "refuse", refused.value.findings[0].rule)
    assert memory.append("notes/a.md", TOKEN).files
    with pytest.raises(Invalid):
        memory.append("notes/a.md", OTHER)


def test_every_secret_of_a_plan_is_told(memory: Memory) -> None:
    changes = tuple(
        Change(path=f"notes/{name}.md", before=None, content=token.encode())
        for name, token in (("b", TOKEN), ("c", OTHER))
    )
    with pytest.raises(Invalid) as refused:
        memory.apply(EditPlan(changes=changes))
    assert [finding.path for finding in refused.value.findings] == ["notes/b.md", "notes/c.md"]


def test_a_refused_value_is_not_quoted_by_what_a_schema_says_of_it(memory: Memory, root: Path) -> None:
    schemas = root / ".mdmem" / "schemas"
    schemas.mkdir(exist_ok=True)
    (schemas / "note.json").write_text('{"properties": {"tier": {"enum": ["hot"]}}}')
    with pytest.raises(Invalid) as refused:
        memory.write("notes/b.md", f"---\ntype: note\ntier: {TOKEN}\n---\n")
    assert TOKEN[5:] not in str(refused.value)
    with pytest.raises(Invalid) as refused:
        configured(root, "redact").write("notes/b.md", f"---\ntype: note\ntier: {TOKEN}\n---\n")
    assert WORD in str(refused.value)
    assert TOKEN[5:] not in str(refused.value)


@pytest.fixture
def leaked(root: Path) -> Memory:
    """A memory in which a secret stands already."""
    configured(root, "off").append("notes/a.md", f"key: {TOKEN}")
    return configured(root, "refuse")


def test_what_stood_there_before_is_not_looked_at(leaked: Memory) -> None:
    leaked.append("notes/a.md", "more")
    leaked.replace("notes/a.md", "key:", "the key:")
    leaked.write("notes/a.md", leaked.show("notes/a.md").text.replace("ask", "tell"), overwrite=True)
    leaked.mv("notes/a.md", "notes/c.md")
    with pytest.raises(Invalid):
        leaked.replace("notes/c.md", TOKEN, OTHER)
    with pytest.raises(Invalid):
        leaked.write("notes/b.md", TOKEN)


def test_an_edit_that_completes_a_secret_adds_it(memory: Memory) -> None:
    half = f"{TOKEN[:20]} {TOKEN[20:]}"
    memory.append("notes/a.md", half)
    with pytest.raises(Invalid):
        memory.replace("notes/a.md", half, TOKEN)
    with pytest.raises(Invalid):
        memory.replace("notes/a.md", f"{TOKEN[15:20]} {TOKEN[20:25]}", TOKEN[15:25])
    # Taking characters away can complete one, too.
    document = memory.show("notes/a.md")
    at = document.text.index(half) + 20
    change = Change(path="notes/a.md", before=document, edits=(mdmem.TextEdit(at, at + 1, ""),))
    with pytest.raises(Invalid):
        memory.apply(EditPlan(changes=(change,)))


def test_what_was_there_once_can_be_brought_back(leaked: Memory) -> None:
    before = leaked.show("notes/a.md").hash
    leaked.rm("notes/a.md")
    leaked.undo()
    assert leaked.show("notes/a.md").hash == before
    leaked.replace("notes/a.md", TOKEN, "(taken out)")
    leaked.restore("notes/a.md")
    assert leaked.show("notes/a.md").hash == before


def test_redaction_leaves_every_other_byte(root: Path) -> None:
    memory = configured(root, "redact")
    memory.write("notes/b.md", "---\r\nname: x # why\r\n---\r\nold\r\n")
    memory.replace("notes/b.md", "old", f"a {TOKEN}, b\n{OTHER} c")
    assert memory.show("notes/b.md").data == (
        f"---\r\nname: x # why\r\n---\r\na {WORD}, b\r\n{WORD} c\r\n".encode()
    )
    memory.undo()
    assert memory.show("notes/b.md").data == b"---\r\nname: x # why\r\n---\r\nold\r\n"


def test_a_plan_shows_what_would_be_written(root: Path) -> None:
    memory = configured(root, "redact")
    plan = memory.plan.append("notes/a.md", TOKEN)
    assert f"+{WORD}" in memory.prepared(plan).diff()
    assert TOKEN not in memory.prepared(plan).diff()
    assert memory.apply(plan).plan.warnings


def test_a_change_that_is_merged_stays_without_its_secret(root: Path) -> None:
    memory = configured(root, "redact")
    plan = memory.plan.replace("notes/a.md", "ask the vault", TOKEN)
    memory.replace("notes/a.md", "# Deploy", "# Deployment")
    applied = memory.apply(plan)
    assert applied.merged == ("notes/a.md",)
    assert memory.show("notes/a.md").text == f"# Deployment\n\n{WORD}\n"


def test_check_reports_the_secrets_that_stand_in_memories(leaked: Memory) -> None:
    (finding,) = leaked.check()
    assert (finding.path, finding.position.line, finding.code) == ("notes/a.md", 4, "secret")
    assert finding.severity == "warning"
    assert TOKEN[5:] not in str(as_json(finding))


URL = "https://me:hunter2xyz@x.test"
# Each way in which the name of a memory can come to hold the token.
NAMES: dict[str, Callable[[Memory], object]] = {
    "write": lambda m: m.write(f"notes/{TOKEN}.md", "x\n"),
    "folder": lambda m: m.write(f"{TOKEN}/a.md", "x\n"),
    "mv": lambda m: m.mv("notes/a.md", f"notes/{TOKEN}.md"),
    "mv of a folder": lambda m: m.mv("notes", f"{TOKEN}/"),
    "note": lambda m: m.notes.append(TOKEN, "x"),
    "thread": lambda m: m.working.update("x", thread=TOKEN),
    "escaped thread": lambda m: m.working.update("x", thread=f"a/{TOKEN}"),
    "preference": lambda m: m.preferences.set("ui", TOKEN, "x"),
    "template": lambda m: m.new("note", f"notes/{TOKEN}.md", {"title": "Key", "body": "x"}),
    "URL": lambda m: m.working.update("x", thread=URL),
}


@pytest.mark.parametrize("policy", ["refuse", "redact"])
@cases("name", NAMES)
def test_a_secret_in_a_new_name_is_refused_and_stands_nowhere(tmp_path: Path, policy: str, name: str) -> None:
    root = made(tmp_path)
    memory = configured(root, policy)
    with pytest.raises(Invalid) as refused:
        NAMES[name](memory)
    assert {finding.code for finding in refused.value.findings} == {"secret"}
    assert not any(part in f"{refused.value} {as_json(refused.value)}" for part in (TOKEN[5:], "hunter2"))
    assert not any(each in everywhere(root) for each in (TOKEN.encode(), b"hunter2"))
    assert not any(TOKEN in str(path) or "hunter2" in str(path) for path in root.rglob("*"))


def test_a_name_that_holds_a_secret_is_let_pass_moved_and_reported_as_the_config_says(root: Path) -> None:
    path = f"notes/{TOKEN}.md"
    applied = configured(root, "warn").write(path, "x\n")
    (warning,) = applied.plan.warnings
    assert TOKEN[5:] not in str(as_json(warning))
    memory = configured(root, "refuse")
    (finding,) = memory.check([path])
    assert (finding.path, finding.code, finding.severity) == (path, "secret", "warning")
    memory.append(path, "more")
    memory.mv(path, f"{TOKEN}.md")
    memory.rm(f"{TOKEN}.md")
    memory.undo()
    with pytest.raises(Invalid):
        memory.write(path, "x\n")
    configured(root, "refuse", finding.rule).write(path, "x\n")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("notes/b.json", '{"key": "\\u0067hp_%s"}'),
        ("notes/b.md", '---\nkey: "\\x67hp_%s"\n---\n'),
        ("notes/b.md", '---\nkey: "gh\\\n  p_%s"\n---\n'),
    ],
)
def test_a_secret_behind_escapes_is_refused_or_taken_out(root: Path, path: str, text: str) -> None:
    written = text % TOKEN.removeprefix("ghp_")
    with pytest.raises(Invalid):
        configured(root, "refuse").write(path, written)
    memory = configured(root, "redact")
    memory.write(path, written)
    assert memory.show(path).fields.get("key", memory.show(path).text.strip()) in (
        WORD,
        f'{{"key": "{WORD}"}}',
    )


def test_an_agent_is_not_told_how_a_secret_would_pass(memory: Memory) -> None:
    with pytest.raises(Invalid) as refused:
        memory.append("notes/a.md", TOKEN)
    told = refused.value.for_agent()
    way = (ALLOW_MARK, "[secrets]", "config.toml", refused.value.findings[0].rule)
    assert all(each in str(refused.value) for each in way)
    assert not any(each in f"{told} {as_json(told)}" for each in way)
    assert "name where it is kept" in told.hint
