"""An edit plan is a value: what it would result in, its diff and its JSON, with nothing written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.diagnostic import as_json
from mdmem.errors import BinaryContent, EditRefused, NotEncodable, PathRefused, TooLarge
from mdmem.text.document import Document, Limits, parse
from mdmem.text.edit import TextEdit, splice
from mdmem.vault.plan import Change, EditPlan, NewNames, edit, together

LIMITS = Limits()
A = parse("a.md", b"\xef\xbb\xbfone\r\ntwo\r\n")
B = parse("b.md", b"one\n")


def test_edits_keep_every_byte_around_them() -> None:
    change = Change(path="a.md", before=A, edits=(TextEdit(1, 4, "ONE"),))
    after = change.after(LIMITS)
    assert after
    assert after.data == b"\xef\xbb\xbfONE\r\ntwo\r\n"
    assert change.base == A.hash


@pytest.mark.parametrize(
    ("change", "data"),
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
    assert (shape["message"], shape["actor"]) == ("four", "ann")
    assert shape["changes"] == [
        {
            "path": "b.md",
            "base": B.hash,
            "edits": [{"start": 0, "end": 1, "new": "O"}, {"start": 3, "end": 4, "new": "!"}],
        },
        {"path": "c.md", "base": None, "content": "caf\xe9"},
        {"path": "d.md", "base": B.hash, "delete": True},
        {"path": "e.md", "base": B.hash, "move_to": "f.md"},
    ]


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
@settings(max_examples=400)
# README: Every change is an edit plan: for each file the hash …
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


@pytest.mark.parametrize(
    ("standing", "plan"),
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


@pytest.mark.parametrize(
    ("standing", "plan", "reason"),
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
    assert said == "differs only in case from another name, which exists"
    assert (
        refused(["users/bob/N.md"], ["n.md"], "users/bob") == "differs only in case from 'N.md', which exists"
    )
    assert refused([], ["n.md"], "users/con") == "", "a namespace's own names are encoded ids"
