"""Edits change exactly what they say, and refuse what would be a guess; what is nearest is named."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from mdmem.document.document import Document, parse, parse_text
from mdmem.document.edit import (
    TextEdit,
    append,
    between,
    delete_lines,
    fitted,
    insert,
    inverse,
    nearest,
    ordered,
    prepend,
    replace,
    splice,
)
from mdmem.document.text.diff import hunks
from mdmem.document.text.lines import Lines, whole_lines
from mdmem.errors import EditRefused, MdmemError, NearLine, PatternInvalid, TextAmbiguous, TextNotFound
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = (Path(__file__).parents[1] / "data" / "edit" / "lines.md").read_text()


def done(document: Document, edits: list[TextEdit]) -> str:
    return splice(document.text, edits)


def replaced(text: str, old: str, new: str, **options: Any) -> str:
    document = parse_text("n.md", text)
    return done(document, replace(document, old, new, **options))


# -------------------------------------------------------------------------------- splice, ordered, inverse


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[TextEdit]]:
    """A text, and edits of it that neither overlap nor stand at the same place, in any order."""
    text = draw(st.text(max_size=30))
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    spans = list(dict.fromkeys(zip(places[::2], places[1::2], strict=False)))
    edits = [TextEdit(start, end, draw(st.text(max_size=4))) for start, end in spans]
    return text, draw(st.permutations(edits))


@given(edited())
# README: **Files are the truth**, and no byte changes unasked. …
def test_only_the_spans_of_the_edits_change(case: tuple[str, list[TextEdit]]) -> None:
    text, edits = case
    result = splice(text, edits)
    reached = at = 0
    for edit in sorted(edits):
        kept = text[reached : edit.start]
        assert result[at : at + len(kept) + len(edit.new)] == kept + edit.new
        at += len(kept) + len(edit.new)
        reached = edit.end
    assert result[at:] == text[reached:]


@given(edited())
@example(("abcd", [TextEdit(0, 2, ""), TextEdit(2, 4, "")]))
@example(("ab", [TextEdit(1, 1, ""), TextEdit(1, 2, "")]))
def test_an_edit_and_its_inverse_give_the_original(case: tuple[str, list[TextEdit]]) -> None:
    text, edits = case
    result = splice(text, edits)
    back = inverse(text, edits)
    assert splice(result, back) == text
    assert splice(text, inverse(result, back)) == result


@cases(
    "edits, reason",
    [
        *(([(0, 3), (2, 4)], "overlap"), ([(0, 5), (1, 2)], "overlap"), ([(1, 3), (1, 4)], "overlap")),
        *(([(1, 3), (2, 2)], "overlap"), ([(1, 3), (1, 3)], "overlap"), ([(2, 2), (2, 2)], "same place")),
        *(([(-1, 2)], "outside"), ([(4, 6)], "outside"), ([(3, 2)], "overlap")),
    ],
)
def test_edits_that_could_be_read_in_two_ways_are_refused(edits: list[tuple[int, int]], reason: str) -> None:
    made = [TextEdit(start, end, "x") for start, end in edits]
    for some in (made, made[::-1]):
        with pytest.raises(EditRefused, match=reason) as caught:
            ordered(some, 5, "n.md")
        assert caught.value.path == "n.md"
        with pytest.raises(EditRefused):
            splice("abcde", some)


def test_edits_may_touch() -> None:
    edits = [TextEdit(3, 3, "|"), TextEdit(1, 3, "X"), TextEdit(3, 5, "Y")]
    assert splice("abcde", edits) == "aX|Y"


# ------------------------------------------------------------------------------------------------- replace


def test_a_text_that_stands_once_is_replaced() -> None:
    assert replaced("---\na: old\n---\nnew\n", "old", "new") == "---\na: new\n---\nnew\n"


def test_a_replacement_is_literal() -> None:
    assert replaced("a.c (x) $1", ".c (x)", r"\1 \g<0>") == r"a\1 \g<0> $1"


@pytest.mark.parametrize(("count", "after"), [(3, "x b x b x"), ("all", "x b x b x")])
def test_as_many_as_expected_are_replaced(count: object, after: str) -> None:
    assert replaced("a b a b a", "a", "x", count=count) == after


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("regex", [False, True])
# README: **Nothing is stale, cut or guessed in silence** …
def test_another_number_is_refused_with_every_line(count: int, regex: bool) -> None:
    with pytest.raises(TextAmbiguous) as caught:
        replaced("a\n\na a\n", "a", "x", count=count, regex=regex)
    error = caught.value
    assert (error.expected, error.lines, error.overlapping) == (count, (1, 3, 3), False)
    assert "3 times, in lines 1, 3, 3" in str(error)


def test_one_where_two_were_expected_is_refused() -> None:
    with pytest.raises(TextAmbiguous, match=r"occurs once, in line 2; expected 2"):
        replaced("b\na\n", "a", "x", count=2)


@pytest.mark.parametrize("count", [1, 2, "all"])
def test_occurrences_that_overlap_are_refused(count: object) -> None:
    with pytest.raises(TextAmbiguous) as caught:
        replaced("b\naaa\n", "aa", "x", count=count)
    assert (caught.value.lines, caught.value.overlapping) == ((2, 2), True)
    assert "overlap" in caught.value.hint


@pytest.mark.parametrize("regex", [False, True])
def test_the_empty_text_cannot_be_replaced(regex: bool) -> None:
    with pytest.raises(EditRefused, match="empty"):
        replaced("abc", "", "x", regex=regex)


@given(
    text=st.text(st.sampled_from("ab \n😀"), max_size=30),
    old=st.text(st.sampled_from("ab \n😀"), min_size=1, max_size=3),
    new=st.text(st.sampled_from("xy\n"), max_size=3),
)
@settings(max_examples=examples(300))
def test_replacing_all_is_what_python_replaces(text: str, old: str, new: str) -> None:
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    overlap = any(after - before < len(old) for before, after in pairwise(places))
    if not places:
        with pytest.raises(TextNotFound):
            replaced(text, old, new, count="all")
    elif overlap:
        with pytest.raises(TextAmbiguous) as caught:
            replaced(text, old, new, count="all")
        assert len(caught.value.lines) == len(places)
    else:
        assert replaced(text, old, new, count="all") == text.replace(old, new)
        assert replaced(text, re.escape(old), new, count="all", regex=True) == text.replace(old, new)


@cases(
    "text, old, differs, line",
    [
        ("a\nb\n", "a\r\nb", "line ends", 1),
        ("x\na", "a\n", "a trailing newline", 2),
        ("x\nsome  text here\n", "some text", "whitespace", 2),
        ("x\nsome\ntext\n", "some text", "whitespace", 2),
        ("x\nSome Text\n", "some text", "case", 2),
        ("x\nSome\tText\n", "some text", "whitespace and case", 2),
        ("x\nthe quick brown fox\n", "the quick browm fox", "similar words", 2),
    ],
)
def test_what_is_not_there_is_answered_with_the_nearest_line(
    text: str, old: str, differs: str, line: int
) -> None:
    with pytest.raises(TextNotFound) as caught:
        replaced(text, old, "new")
    assert [(near.differs, near.line) for near in caught.value.near] == [(differs, line)]
    assert f"({differs})" in caught.value.hint


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("regex", [False, True])
def test_new_text_takes_the_line_ends_of_the_document(newline: str, regex: bool) -> None:
    assert replaced(f"a{newline}b{newline}", "a", "x\ny", regex=regex) == (f"x{newline}y{newline}b{newline}")


@pytest.mark.parametrize("regex", [False, True])
def test_where_lines_end_differently_new_text_is_verbatim(regex: bool) -> None:
    assert replaced("a\r\nb\n", "a", "x\ny", regex=regex) == "x\ny\r\nb\n"
    assert replaced("a\r\nb\r\n", "a", "x\r\ny\n", regex=False) == "x\r\ny\n\r\nb\r\n"


# --------------------------------------------------------------------------------------------------- regex


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@cases(
    "old, new, after",
    [
        (r"^- (\w+)$", r"* \1", "# T\n* one\n* two\nend - one"),
        (r"(?P<mark>[-#]) ", r"<\g<mark>>", "<#>T\n<->one\n<->two\nend <->one"),
        (r"one$", "1", "# T\n- 1\n- two\nend - 1"),
        (r"^.*two.*$\n", "", "# T\n- one\nend - one"),
        (r"(one)\n(- two)", r"\2\n- \1", "# T\n- - two\n- one\nend - one"),
        (r"one(x)?", r"1\1", "# T\n- 1\n- two\nend - 1"),
        (r"\Z(?<=e)|T", "", "# \n- one\n- two\nend - one"),
    ],
)
def test_a_pattern_sees_lines_however_they_end(old: str, new: str, after: str, newline: str) -> None:
    text = "# T\n- one\n- two\nend - one".replace("\n", newline)
    if r"\Z" in old:
        with pytest.raises(EditRefused, match="empty"):
            replaced(text, old, new, regex=True)
        return
    assert replaced(text, old, new, count="all", regex=True) == after.replace("\n", newline)


def test_a_match_keeps_its_own_line_ends_where_they_differ_in_the_document() -> None:
    text = "a\r\nb\nc\nd\n"
    assert replaced(text, r"(a)\n(b)", r"\2\n\1", regex=True) == "b\r\na\nc\nd\n"
    assert replaced(text, r"(c)\n(d)", r"\2\n\1", regex=True) == "a\r\nb\nd\nc\n"
    assert replaced(text, r"a\nb\nc", "x", regex=True) == "x\nd\n"
    assert replaced(text, r"(a\nb)\nc", r"\1", regex=True) == "a\r\nb\nd\n"


@cases(
    "text, old, new, after",
    [
        ("x\r\na\r\nb\r\n", "a\nb", "c\nd", "x\r\nc\r\nd\r\n"),
        ("x\ra\rb\r", "a\nb\n", "c\n", "x\rc\r"),
        ("a\r\nb\nc\rd", "a\nb\nc\nd", "1\n2\n3\n4\n5", "1\r\n2\n3\r4\r5"),
        ("a\r\nb\nc", "\nb", "\nB", "a\r\nB\nc"),
        ("a\r\nb\nc", "b\nc", "", "a\r\n"),
        ("\ufeffa\r\nb", "a\nb", "c", "\ufeffc"),
        ("a\r\nb\n", "a\r\nb", "x\ny", "x\ny\n"),
    ],
)
def test_a_line_feed_in_the_literal_text_is_whatever_ends_lines_there(
    text: str, old: str, new: str, after: str
) -> None:
    assert replaced(text, old, new, regex=False) == after


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@cases(
    "old, after",
    [
        ("^alpha", "X b\nc"),
        ("^a", "Xlpha b\nc"),
        (r"\Aalpha", "X b\nc"),
        (r"b\nc", "alpha X"),
        ("c$", "alpha b\nX"),
    ],
)
def test_a_pattern_does_not_see_a_byte_order_mark(old: str, after: str, newline: str) -> None:
    text, after = ("\ufeff" + each.replace("\n", newline) for each in ("alpha b\nc", after))
    assert replaced(text, old, "X", regex=True) == after


@given(
    lines=st.lists(st.sampled_from(["", "a", "b", "ab"]), max_size=8),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    old=st.sampled_from(["a$", "^a", "^ab?$", "b\n", "[ab]+", "\n\n", r"\s+"]),
)
def test_a_pattern_changes_what_it_would_change_among_plain_newlines(
    lines: list[str], newline: str, old: str
) -> None:
    plain = "\n".join(lines)
    try:
        after = replaced(plain.replace("\n", newline), old, "x", count="all", regex=True)
    except TextNotFound:
        assert not re.search(old, plain, re.MULTILINE)
        return
    assert after == re.sub(old, "x", plain, flags=re.MULTILINE).replace("\n", newline)


@cases(
    "old, new, named",
    [
        *(("(", "x", "("), ("a{9999999999999999999}", "x", "a{9999999999999999999}")),
        *(("(" * 5000 + ")" * 5000, "x", "("), ("a", r"\1", r"\1"), ("a", r"\g<no>", r"\g<no>")),
        *(("a", r"\q", r"\q"), ("a" * 10_001, "x", "a" * 60 + "…")),
    ],
)
def test_a_bad_pattern_or_replacement_is_named(old: str, new: str, named: str) -> None:
    with pytest.raises(PatternInvalid) as caught:
        replaced("a\n", old, new, regex=True)
    assert caught.value.pattern.startswith(named)
    assert caught.value.reason


@pytest.mark.parametrize("old", ["^", "x*", "(?=a)", "b|"])
def test_a_pattern_that_matches_nothing_at_all_is_refused(old: str) -> None:
    with pytest.raises(EditRefused, match="the pattern matches the empty text"):
        replaced("ab\n", old, "x", count="all", regex=True)


def test_a_pattern_that_is_not_there_is_told_of_where_only_the_case_differs() -> None:
    with pytest.raises(TextNotFound, match=r"line 2: 'A' \(case\)") as caught:
        replaced("b\nA\n", "^a$", "x", regex=True)
    assert caught.value.near == (NearLine(2, "A", "case"),)
    with pytest.raises(TextNotFound, match="no line matches the pattern") as caught:
        replaced("b\nA\n", "^c$", "x", regex=True)
    assert caught.value.near == ()


# --------------------------------------------------------------------- insert, append, prepend, delete_lines

VERBS: dict[str, Callable[..., list[TextEdit]]] = {
    "insert": insert,
    "append": append,
    "prepend": prepend,
    "delete": delete_lines,
}


def parts(case: str) -> dict[str, str]:
    found = dict(re.findall(r"^%% ([^\n]*)\n(.*?)(?=^%% |\Z)", case, re.MULTILINE | re.DOTALL))
    for key in [key for key in found if key.endswith(" (no final newline)")]:
        found[key.removesuffix(" (no final newline)")] = found.pop(key).removesuffix("\n")
    return found


@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["", "bom"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@cases(
    "case",
    [
        pytest.param(case, id=title)
        for title, case in re.findall(
            r"^%% case ([^\n]*)\n(.*?)(?=^%% case |\Z)", CASES, re.MULTILINE | re.DOTALL
        )
    ],
)
def test_lines(case: str, newline: str, bom: str) -> None:
    found = parts(case)
    document = parse_text("n.md", bom + found["document"].replace("\n", newline))
    call = next(key for key in found if key.partition(" ")[0] in VERBS)
    verb, *numbers = call.split()
    text = [found[call]] if verb != "delete" else []
    if "refused" in found:
        with pytest.raises(MdmemError) as caught:
            VERBS[verb](document, *map(int, numbers), *text)
        assert f"{caught.value}\n" == f"n.md: {found['refused']}"
        return
    after = done(document, VERBS[verb](document, *map(int, numbers), *text))
    assert after == bom + found["result"].replace("\n", newline if newline in document.text else "\n")


@pytest.mark.parametrize("text", ["", "\ufeff"])
def test_an_empty_document_gets_its_first_lines(text: str) -> None:
    document = parse_text("n.md", text)
    for edits in (append(document, "a\nb"), prepend(document, "a\nb\n"), insert(document, 0, "a\nb")):
        assert done(document, edits) == f"{text}a\nb\n"


@pytest.mark.parametrize("action", [append, prepend])
def test_json_is_no_lines(action: Callable[[Document, str], list[TextEdit]]) -> None:
    with pytest.raises(EditRefused, match="JSON text") as caught:
        action(parse("n.json", b"{}\n"), "x")
    assert "mdmem set" in caught.value.hint


def test_lines_of_json_can_be_named() -> None:
    """What comes of it is checked before it is written, as every change is."""
    document = parse_text("n.json", '\ufeff{\n  "a": 1\n}\n')
    assert done(document, insert(document, 1, '  "b": 2,')) == '\ufeff{\n  "b": 2,\n  "a": 1\n}\n'
    assert done(document, delete_lines(document, 2, 2)) == "\ufeff{\n}\n"


@pytest.mark.parametrize(("new", "after"), [("x\ny", "a\r\nb\nx\ny\n"), ("x\r\ny\r\n", "a\r\nb\nx\r\ny\r\n")])
def test_lines_added_where_lines_end_differently_are_verbatim(new: str, after: str) -> None:
    document = parse_text("n.md", "a\r\nb\n")
    assert done(document, append(document, new)) == after


DOCUMENTS = st.tuples(
    st.sampled_from(["", "---\na: 1\n---\n", "\ufeff", "\ufeff---\n---\n"]),
    st.lists(st.sampled_from(["", "a", "b c", "# d", "---"]), max_size=6).map("\n".join),
    st.sampled_from(["", "\n"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
).map(lambda t: "".join(t[:3]).replace("\n", t[3]))


@given(
    text=DOCUMENTS,
    new=st.lists(st.sampled_from(["", "x", "y z"]), min_size=1, max_size=3),
    at=st.integers(0, 9),
)
@settings(max_examples=examples(200))
def test_inserted_lines_stand_where_they_should_and_all_others_stay(
    text: str, new: list[str], at: int
) -> None:
    document = parse_text("n.md", text)
    assume(new != [""])
    before = [document.lines.content(n) for n in range(1, len(document.lines) + 1)]
    head = document.lines.number(document.frontmatter.span.end - 1) if document.frontmatter.present else 0
    at = min(max(at, head), len(before))
    bom = "\ufeff" if text.startswith("\ufeff") and not head else ""
    plain = [line.removeprefix(bom) for line in before] if text != "\ufeff" else []
    for edits, place in (
        (insert(document, at, "\n".join(new)), min(at, len(plain))),
        (append(document, "\n".join(new)), len(plain)),
        (prepend(document, "\n".join(new)), head),
    ):
        after = parse_text("n.md", done(document, edits))
        lines = [after.lines.content(n) for n in range(1, len(after.lines) + 1)]
        added = new if new[-1] else new[:-1]
        assert lines[0].startswith(bom)
        lines[0] = lines[0].removeprefix(bom)
        assert lines == plain[:place] + added + plain[place:]
        assert after.lines.uniform == document.lines.uniform


@given(text=DOCUMENTS, first=st.integers(1, 9), count=st.integers(0, 4))
@settings(max_examples=examples(200))
def test_deleted_lines_are_gone_and_all_others_stay(text: str, first: int, count: int) -> None:
    document = parse_text("n.md", text)
    assume(len(document.lines))
    first = (first - 1) % len(document.lines) + 1
    last = min(first + count, len(document.lines))
    kept = [
        text[slice(*document.lines.span(n))]
        for n in range(1, len(document.lines) + 1)
        if not first <= n <= last
    ]
    bom = "\ufeff" if first == 1 and text.startswith("\ufeff") else ""
    try:
        after = done(document, delete_lines(document, first, last))
    except EditRefused:
        assert document.frontmatter.present
        return
    assert after == bom + "".join(kept)


# ------------------------------------------------------------------------------------------------- between

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d\r", "\n", "e"]), max_size=12).map("".join)


@given(before=TEXTS, after=TEXTS)
def test_the_edits_between_two_texts_turn_one_into_the_other(before: str, after: str) -> None:
    edits = between(before, after)
    assert splice(before, edits) == after
    old_lines, new_lines = whole_lines(before), whole_lines(after)
    assert len(edits) == len(hunks(old_lines, new_lines))
    starts = {0, *(Lines(before).span(n).end for n in range(1, len(Lines(before)) + 1))}
    for edit in edits:
        assert {edit.start, edit.end} <= starts
        old = before[edit.start : edit.end]
        gone = {old[slice(*Lines(old).span(n))] for n in range(1, len(Lines(old)) + 1)}
        added = {edit.new[slice(*Lines(edit.new).span(n))] for n in range(1, len(Lines(edit.new)) + 1)}
        assert not gone & added


@given(TEXTS)
@settings(max_examples=examples(50))
def test_between_equal_texts_there_is_nothing(text: str) -> None:
    assert between(text, text) == []


def test_texts_of_many_equal_lines_are_compared_quickly() -> None:
    """Comparing every pair of these lines would take minutes."""
    before = "x\n" + "},\n" * 60_000 + "y\n"
    after = "X\n" + "},\n" * 59_999 + "Y\n"
    assert splice(before, between(before, after)) == after


# -------------------------------------------------------------------------------------------------- fitted


@cases(
    "text, new, expected",
    [
        *(("a\n", "x\ny", "x\ny"), ("a\r\n", "x\ny", "x\r\ny"), ("a\r", "x\ny", "x\ry")),
        *(("a\r\nb\n", "x\ny", "x\ny"), ("a\r\n", "x\r\ny\n", "x\r\ny\n"), ("a\n", "x\r\ny", "x\r\ny")),
        ("", "x\ny", "x\ny"),
    ],
)
def test_plain_newlines_take_the_documents_one_line_end(text: str, new: str, expected: str) -> None:
    assert fitted(parse_text("n.md", text), new) == expected


@pytest.mark.parametrize("regex", [False, True])
def test_very_many_replacements_are_one_edit_that_does_the_same(regex: bool) -> None:
    document = parse_text("a.md", "before " + "x," * 10_001 + "after")
    [edit] = replace(document, "x", "yy", count="all", regex=regex)
    assert splice(document.text, [edit]) == document.text.replace("x", "yy")
    assert (edit.start, edit.end) == (7, 7 + 2 * 10_001 - 1)
    assert len(replace(parse_text("a.md", "x," * 10_000), "x", "yy", count="all", regex=regex)) == 10_000
    with pytest.raises(TextAmbiguous) as caught:
        replace(document, "x", "yy", regex=regex)
    assert len(caught.value.lines) == 10_001
    assert "occurs 10001 times, in lines 1, 1, " in caught.value.message
    assert "1 and 9981 more; expected 1" in caught.value.message


def near(text: str, old: str) -> list[tuple[int, str]]:
    return [(found.line, found.differs) for found in nearest(parse_text("n.md", text), old)]


@cases(
    "text, old, expected",
    [
        ("a\r\nb\r\n", "a\nb\n", [(1, "line ends")]),
        ("x\ra\rb", "a\r\nb", [(2, "line ends")]),
        ("x\na b", "a b\n", [(2, "a trailing newline")]),
        ("x\na b", "\na b\n\n", [(2, "a trailing newline")]),
        ("x\nA\n", "a\n", [(2, "case")]),
        ("a\r\nb", "a\nb\n", [(1, "a trailing newline")]),
        ("x\n\n  a   b\nc\n", "a b", [(3, "whitespace")]),
        ("x\na\nb\n", "a b", [(2, "whitespace")]),
        ("x\na\u00a0b\n", "a b", [(2, "whitespace")]),
        ("x\na b\n", "a\n    b\n\n", [(2, "whitespace")]),
        ("STRASSE und Weg\n", "straße und weg", [(1, "case")]),
        ("x\nA\nB\n", "a\nb", [(2, "case")]),
        ("A  b\n", "a B", [(1, "whitespace and case")]),
        ("The cache is kept for an hour.\n", "the cashe is kept for one hour", [(1, "similar words")]),
        ("one\n", "something else entirely", []),
        ("", "a", []),
        ("a\n", " \t", []),
        ("a\n", "\n\n\n", []),
    ],
)
def test_the_smallest_slip_is_named(text: str, old: str, expected: list[tuple[int, str]]) -> None:
    assert near(text, old) == expected


def test_whitespace_is_a_smaller_slip_than_case() -> None:
    assert near("A B\na  b\n", "a b") == [(2, "whitespace")]


def test_a_line_is_given_as_it_stands() -> None:
    (found,) = nearest(parse_text("n.md", "x\r\n  Some\tText \r\n"), "some text")
    assert found == NearLine(line=2, text="  Some\tText ", differs="whitespace and case")


def test_at_most_three_lines_and_each_once() -> None:
    assert near("A a A\n" * 5, "a A a") == [(1, "case"), (2, "case"), (3, "case")]
    text = "".join(f"item number {word}\n" for word in ("one", "two", "three", "four"))
    assert len(near(text, "item number onne")) == 3


def test_the_most_similar_line_is_first() -> None:
    text = "the fast brown fox runs\nnothing\nthe quick brown fox jumps\nthe quick fox jumps\n"
    found = near(text, "the quick brown fax jumps\nand more")
    assert [line for line, _ in found] == [3, 4, 1]


def test_similar_lines_are_found_by_the_first_line_that_says_something() -> None:
    assert near("x\nthe quick fox\n", "\n  \nthe quick fix\nzzz") == [(2, "similar words")]


@cases(
    "text, old",
    [
        ("".join(f"the quick brown fox {n} jumps over a dog\n" for n in range(20_000)), "the quack fox over"),
        (("ab cd ef gh ij " * 13 + "\n") * 6_000, "ab cd ef gh ji " * 400),
        ("ab" * 500_000, "ba" * 500_000 + "c"),
        (("ab" * 50 + "ba" * 50 + "\n") * 5_000, "ba" * 50 + "ab" * 50 + "c"),
        ("a " * 200_000, "A b " * 10_000),
        ("\n" * 200_000, "\n" * 100_000 + "a"),
    ],
    ids=["similar lines", "long lines", "one line", "periodic lines", "words", "newlines"],
)
def test_large_texts_are_no_burden(text: str, old: str) -> None:
    """What compares every pair of letters would take minutes for each of these."""
    document = parse_text("n.md", text)
    assert len(nearest(document, old)) <= 3


@given(
    text=st.text(st.sampled_from("aAbB \t\r\n"), max_size=40),
    old=st.text(st.sampled_from("aAbB \t\r\n"), min_size=1, max_size=8),
)
@settings(max_examples=examples(200))
def test_every_line_named_is_there_and_differs_in_what_is_said(text: str, old: str) -> None:
    document = parse_text("n.md", text)
    folds: dict[str, Callable[[str], str]] = {
        "line ends": lambda t: t.replace("\r\n", "\n").replace("\r", "\n"),
        "a trailing newline": lambda t: t.replace("\r\n", "\n").replace("\r", "\n").strip("\n"),
        "whitespace": lambda t: " ".join(t.split()),
        "case": lambda t: t.replace("\r\n", "\n").replace("\r", "\n").casefold(),
        "whitespace and case": lambda t: " ".join(t.casefold().split()),
        "similar words": lambda _: "",
    }
    found = nearest(document, old)
    assert len({each.line for each in found}) == len(found) <= 3
    assert found == nearest(document, old)
    for each in found:
        assert each.text == document.lines.content(each.line)
        fold = folds[each.differs]
        assert fold(old) in fold(text[document.lines.span(each.line).start :])
