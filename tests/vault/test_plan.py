"""An edit plan is a value: what it would result in, its diff and its JSON, with nothing written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.errors import BinaryContent, EditRefused, NotEncodable, TooLarge
from mdmem.text.document import Document, Limits, parse
from mdmem.text.edit import TextEdit, splice
from mdmem.vault.plan import Change, EditPlan, edit, together

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
    shape = json.loads(json.dumps(plan.as_dict()))
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
def test_the_json_of_a_change_says_what_it_does(text: str, edits: list[tuple[int, int, str]]) -> None:
    """Whoever applies the edits of the JSON to the text with the hash `base` gets the same bytes."""
    before: Document = parse("a.md", text.encode())
    change = Change(path="a.md", before=before, edits=tuple(TextEdit(*each) for each in edits))
    try:
        after = change.after(LIMITS)
    except EditRefused:
        return
    assert after
    written = change.as_dict().get("edits", [])
    assert splice(text, [TextEdit(**each) for each in written]).encode() == after.data
