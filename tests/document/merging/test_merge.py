"""A merge keeps what both sides made of a base, or says where it cannot."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document.document import Limits, parse_text
from mdmem.document.merging.merge import Markers, MergeConflict, Merged, merge, merge_parts
from mdmem.document.relink import MOST_COMPARED
from mdmem.document.text.diff import Versions
from mdmem.errors import TooManyParts
from tests.speed import examples, soak_most
from tests.tables import cases

CASES = sorted((Path(__file__).parents[2] / "data" / "merge").iterdir())
Sides = tuple[str, str, str]


def merged(base: str, ours: str, theirs: str, path: str = "note.md") -> Merged:
    return merge(*(parse_text(path, text) for text in (base, ours, theirs)))


# ---------------------------------------------------------------------------------------------- cases


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@cases("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, newline: str) -> None:
    parts = dict(re.findall(r"^%% (\w+)\n(.*?)(?=^%% |\Z)", case.read_text(), re.MULTILINE | re.DOTALL))
    base, ours, theirs = (parts[name].replace("\n", newline) for name in ("base", "ours", "theirs"))
    result = merged(base, ours, theirs, case.name)
    if "merged" in parts:
        assert result == Merged(text=parts["merged"].replace("\n", newline))
    else:
        found = "".join(f"{c.kind} {c.where} {c.line}\n" for c in result.conflicts)
        assert (result.text, found) == (None, parts["conflicts"])


def test_a_conflict_carries_the_three_texts() -> None:
    result = merged("# A\n- a\n- b\n", "# A\n- o\n- b\n", "# A\n- t\n- b\n")
    texts = {"base": "- a\n", "ours": "- o\n", "theirs": "- t\n"}
    what = "the item 't': changed by both sides"
    conflict = MergeConflict(kind="lines", where="A", line=2, what=what, **texts)
    assert result == Merged(text=None, conflicts=(conflict,))


def test_a_removed_section_is_reported_with_what_is_left_of_it() -> None:
    (conflict,) = merged("# A\n\n# B\n- b\n", "# A\n\n# B\n- c\n", "# A\n").conflicts
    assert (conflict.kind, conflict.where, conflict.line) == ("section", "B", 1)
    assert (conflict.ours, conflict.theirs) == ("\n# B\n- c\n", "")


@pytest.mark.parametrize("below", ["", "\nText.\n", "\nText.\n\n## Next\n\nMore.\n"])
def test_a_heading_that_each_side_named_otherwise_is_a_conflict_and_not_two_sections(below: str) -> None:
    base, ours, theirs = (f"# A\n\n## {title}\n{below}" for title in ("Old", "Mine", "Yours"))
    assert [found.kind for found in merged(base, ours, theirs).conflicts] == ["section"]
    assert merged(base, ours, ours).text == ours


def test_a_conflict_names_the_heading_and_the_line_far_below_what_is_alike() -> None:
    base, ours, theirs = ("# A\n" + "b\n" * 50 + f"- {each}\n" + "c\n" * 50 for each in "bot")
    (conflict,) = merged(base, ours, theirs).conflicts
    assert (conflict.where, conflict.line, conflict.theirs) == ("A", 52, "- t\n")


def test_a_text_without_headings_is_not_parsed_for_them() -> None:
    few = Limits(max_parts=1)
    base, ours, theirs = (parse_text("n.md", "a\n\n" * 9 + f"{each}\n", few) for each in "bot")
    with pytest.raises(TooManyParts):
        _ = base.headings
    (conflict,) = merge(base, ours, theirs).conflicts
    assert (conflict.where, conflict.line) == ("", 19)


@cases(
    "base, ours, theirs, expected",
    [
        ("a", "a\no", "a\nt", "a\nt\no"),
        ("a", "a\no\n", "a\nt", "a\nt\no\n"),
        ("a\n", "a\no", "a\nt\n", "a\nt\no"),
        ("a\r\nb", "a\r\nb\r\no\r\n", "a\r\nb\r\nt\r\n", "a\r\nb\r\nt\r\no\r\n"),
        ("a", "a\r\no", "a\r\nt", "a\r\nt\r\no"),
        ("", "o", "t\n", "t\n\no"),
        ("a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n"),
        ("---\na: 1\n---", "---\na: 1\n---\nbody", "---\na: 1\nb: 2\n---", "---\na: 1\nb: 2\n---\nbody"),
    ],
)
def test_a_missing_final_newline_is_no_change_of_the_last_line(
    base: str, ours: str, theirs: str, expected: str
) -> None:
    assert merged(base, ours, theirs).text == expected


def test_line_ends_stay_as_each_side_has_them() -> None:
    assert merged("a\r\nb\nc\n", "a\r\nb\nc\no\r\n", "A\r\nb\nc\n").text == "A\r\nb\nc\no\r\n"


def test_characters_that_only_python_takes_for_line_ends_end_none() -> None:
    base = "a\x0cb\u2028c\n\nd\x85e\n"
    assert merged(base, base.replace("a", "o"), base.replace("e", "t")).text == "o\x0cb\u2028c\n\nd\x85t\n"


def test_a_byte_order_mark_is_merged_as_well() -> None:
    assert (
        merged("\ufeff---\na: 1\n---\n", "---\na: 1\n---\n", "\ufeff---\na: 2\n---\n").text
        == "---\na: 2\n---\n"
    )
    assert merged("\ufeffa\nb\nc\n", "\ufeffa\nb\nC\n", "\ufeffA\nb\nc\n").text == "\ufeffA\nb\nC\n"
    assert merged("a\nb\nc\n", "\ufeffa\nb\nC\n", "A\nb\nc\n").text == "\ufeffA\nb\nC\n"
    assert merged('{"a": 1}', '{"a": 1, "b": 2}', '\ufeff{"a": 3}', "a.json").text == '\ufeff{"a": 3, "b": 2}'


def test_an_append_does_not_fall_into_the_section_that_the_other_side_put_there() -> None:
    text = merged("# A\n- a\n", "# A\n- a\n- ours\n", "# A\n- a\n\n# B\n- b\n").text
    assert text == "# A\n- a\n- ours\n\n# B\n- b\n"
    assert merged("# A\n- a\n", "# A\n- a\n\n# B\n- b\n", "# A\n- a\n- theirs\n").text == (
        "# A\n- a\n- theirs\n\n# B\n- b\n"
    )


def test_a_blank_line_that_one_side_put_before_a_heading_of_both_stays() -> None:
    result = merged("body\n---\n---", "body\n\n# A\n---\n---", "body\n# A\n---\n---")
    assert result == Merged(text="body\n\n# A\n---\n---")


def test_one_section_that_both_added_with_other_blank_lines_before_it_is_written_once() -> None:
    result = merged("# A\n", "# A\n\n## B\n- b\n", "# A\n## B\n- b\n")
    assert result == Merged(text="# A\n\n## B\n- b\n")


def test_of_two_insertions_the_one_goes_first_that_would_be_another_thing_behind_the_other() -> None:
    """Behind the item, the indented line would be a part of it, and no code."""
    assert merged("", "- a\n", "    text\n").text == "    text\n\n- a\n"
    assert merged("", "    text\n", "- a\n").text == "    text\n\n- a\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("a\nb\nc\n", "b\nc\na\n", "b\na\nc\n"),
        ("a\nb\nc\n", "b\nc\na\n", "b\nc\n"),
    ],
)
def test_lines_that_one_side_moved_and_the_other_changed_conflict(base: str, ours: str, theirs: str) -> None:
    for sides in (ours, theirs), (theirs, ours):
        assert merged(base, *sides).conflicts


@cases(
    "head",
    [
        '+++\ntitle = "A"\ndate = 2024-01-31\n+++\n',
        '{"title": "A",\n "x": 1}\n',
        "---\ntitle: A: b\nx: 1\n---\n",
    ],
)
def test_frontmatter_that_is_not_read_as_a_whole_merges_with_a_change_of_the_body(head: str) -> None:
    base = f"{head}\n# H\n\none\n\ntwo\n"
    changed, body = head.replace("A", "B"), base.replace("two", "three")
    assert merged(base, base.replace(head, changed), body).text == body.replace(head, changed)
    assert merged(base, base.replace(head, changed), base.replace(head, head.replace("A", "C"))).conflicts


def test_a_merge_that_is_not_right_says_why() -> None:
    for sides in ("- one\n", "  c: 1\n- two\n"), ("  c: 1\n- two\n", "- one\n"):
        result = merged("", *sides)
        (conflict,) = result.conflicts
        assert result.text is None
        assert conflict.reason.endswith("as something else than either side")


def test_sections_of_one_name_are_told_apart_by_their_order() -> None:
    base = "# A\n## Notes\n- a\n# B\n## Notes\n- b\n"
    ours, theirs = base.replace("- a", "- ours"), base.replace("# B\n", "# B2\n")
    assert merged(base, ours, theirs).text == "# A\n## Notes\n- ours\n# B2\n## Notes\n- b\n"


# ----------------------------------------------------------------------------------------- properties

LINES = [
    *(
        *("- a\n", "- b\n", "- c\n", "text\n", "\n", "\n", "# A\n", "# B\n", "## A\n", "Title\n", "===\n"),
        "```\n",
    ),
    *(
        *("- a\r\n", "\r\n", "text\r", "---\n", "a: 1\n", "a: 2 # x\n", "b: [x, y]\n", "b: [x, z]\n"),
        *("b:\n", "  - x\n"),
    ),
    *(
        *("  - y # y\n", "  c: 1\n", "  d: |\n", "    text\n", "# note\n", "e: *a\n", "f: &a 1\n", "? g\n"),
        *("{h: 1}\n", "<!--\n", "- o ^x\n", "- p ^x\n", "  q ^y\n"),
    ),
]
NOTES = st.lists(st.sampled_from(LINES), max_size=14)
FIELDS = st.lists(
    st.sampled_from([line for line in LINES if ":" in line or "- " in line or "# n" in line]), max_size=6
)


@st.composite
def notes(draw: st.DrawFn) -> list[str]:
    lines = draw(NOTES)
    return ["---\n", *draw(FIELDS), "---\n", *lines] if draw(st.booleans()) else lines


@st.composite
def edited(draw: st.DrawFn, lines: list[str]) -> list[str]:
    result = list(lines)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(result)))
        result[at : at + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(LINES), max_size=3))
    return result


@st.composite
def sides(draw: st.DrawFn) -> Sides:
    base = draw(notes())
    texts = ["".join(lines) for lines in (base, draw(edited(base)), draw(edited(base)))]
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    texts = [mark + text for text in texts]
    texts = [text[:-1] if draw(st.booleans()) and draw(st.booleans()) else text for text in texts]
    return texts[0], texts[1], texts[2]


# Nothing is put in an order that neither side wrote where a key could come to follow the dashes.
@example(("---\n---\n# A\n===\n", "---\ntext\n===\n", "---\n# A\na: 1\n===\n"))
@example(("---\n---\n", "---\n---\n# B\n---\n", "---\n# B\n===\n"))
@example(("- o ^x\n", "- a\n", "  q ^y\n```\n"))
# What one side moves and the other makes another kind is moved.
@example(("text\r", "# A\ntext\r", "```\ntext\r"))
# What each side moved to another place is in neither.
@example(("- a\n# note\n\ntext\n- o ^x\n", "- a\n\ntext\n- o ^x\n", "- a\ntext\n- o ^x\n"))
@example(("- a\n# note\n\ntext\n  q ^y\n", "- a\n\ntext\n  q ^y\n", "- a\ntext\n  q ^y\n"))
# An empty line that keeps two texts apart is no half of the line end above it.
@example(("", "text\r", "  c: 1\ntext\r"))
@example(("\n", "text\n- o ^x\n\n", "- a\n\n- a\ntext\r- o ^x\n"))
@settings(max_examples=examples(250))
@given(sides())
def test_any_documents_merge_or_conflict_alike_both_ways(three: Sides) -> None:
    base, ours, theirs = three
    result, other = merged(base, ours, theirs), merged(base, theirs, ours)
    assert (result.text is None) == bool(result.conflicts)
    assert bool(result.conflicts) == bool(other.conflicts)
    last = max(1, len(parse_text("note.md", theirs).lines))
    for conflict in result.conflicts:
        assert 1 <= conflict.line <= last
        assert len({conflict.base, conflict.ours, conflict.theirs}) > 1


@given(sides(), st.sampled_from(["note.md", "note.json"]))
def test_a_side_that_changed_nothing_gives_way(three: Sides, path: str) -> None:
    base, changed, _ = three
    assert merged(base, base, changed, path).text == changed
    assert merged(base, changed, base, path).text == changed
    assert merged(base, changed, changed, path).text == changed


@settings(max_examples=examples(150))
@given(sides())
def test_every_line_that_a_side_added_is_in_a_clean_merge_of_bodies(three: Sides) -> None:
    base, ours, theirs = (f"body\n{text}" for text in three)
    result = merged(base, ours, theirs)
    if result.text is not None:
        kept = split(result.text)
        assert (split(ours) | split(theirs)) - split(base) <= kept
        # An empty line may have to keep a paragraph from becoming a heading.
        assert kept <= split(base) | split(ours) | split(theirs) | {""}


def test_an_item_that_became_a_paragraph_of_the_same_lines_is_kept_whoever_made_it_one() -> None:
    base, changed = "[a]: b\n\n2) ^id1\n2) c\n", "[a]: b\n2) ^id1\n2) c\n"
    for sides in ((base, changed), (changed, base)):
        versions = Versions(*(parse_text("note.md", text) for text in (base, *sides)))
        assert merge_parts(versions).text == changed


FACTS = [f"- {n} ^i{n}\n" if n % 4 == 0 else f"line {n}\n" for n in range(9)]


@st.composite
def moved(draw: st.DrawFn) -> list[str]:
    lines = list(FACTS)
    for _ in range(draw(st.integers(1, 2))):
        lines.insert(draw(st.integers(0, 8)), lines.pop(draw(st.integers(0, 8))))
    return lines


@settings(max_examples=examples(200))
@given(moved(), moved(), st.sets(st.sampled_from(FACTS), max_size=2))
def test_what_was_moved_stands_once_and_what_was_removed_is_gone(
    ours: list[str], theirs: list[str], gone: set[str]
) -> None:
    result = merged("".join(FACTS), "".join(line for line in ours if line not in gone), "".join(theirs))
    if result.text is not None:
        lines = [line for line in result.text.splitlines(keepends=True) if line.strip()]
        assert sorted(lines) == sorted(set(FACTS) - gone)


def split(text: str) -> set[str]:
    """The lines of a text; what stands in an item may have to be indented otherwise."""
    return {line.strip() for line in re.split(r"\r\n|\n|\r", text)}


@settings(max_examples=examples(150))
@given(sides())
def test_sound_frontmatter_stays_sound(three: Sides) -> None:
    documents = [parse_text("note.md", text) for text in three]
    result = merge(*documents)
    if result.text is not None and not any(document.frontmatter.flaws for document in documents):
        after = parse_text("note.md", result.text)
        assert not after.frontmatter.flaws
        assert set(after.fields) <= {key for document in documents for key in document.fields}


@given(st.data())
def test_far_apart_edits_are_both_made(data: st.DataObject) -> None:
    size = data.draw(st.integers(8, 40))
    base = [f"line {n}\n\n" if n % 7 else f"# heading {n}\n\n" for n in range(size)]
    cut = data.draw(st.integers(3, size - 3))
    first, second = data.draw(change("ours", 0, cut - 1)), data.draw(change("theirs", cut, size))
    both = list(base)
    ours, theirs = list(base), list(base)
    for lines, changes in (both, (second, first)), (ours, (first,)), (theirs, (second,)):
        for start, end, new in changes:
            lines[start:end] = new
    assert merged("".join(base), "".join(ours), "".join(theirs)).text == "".join(both)


@st.composite
def change(draw: st.DrawFn, name: str, low: int, high: int, end: str = "\n\n") -> tuple[int, int, list[str]]:
    start = draw(st.integers(low, high))
    stop = draw(st.integers(start, high))
    return start, stop, [f"{name} {n}{end}" for n in range(draw(st.integers(0, 4)))]


@settings(max_examples=examples(60))
@given(st.data())
def test_what_git_merges_by_lines_is_merged_equally(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = [f"line {n}\n" for n in range(data.draw(st.integers(0, 12)))]
    sides = {"ours": list(base), "theirs": list(base), "base": base}
    for name in ("ours", "theirs"):
        for start, end, new in (data.draw(change(name, 0, len(base), "\n")) for _ in range(2)):
            sides[name][start:end] = new
    texts = {name: "".join(lines) for name, lines in sides.items()}
    folder = tmp_path_factory.mktemp("git")
    for name, text in texts.items():
        (folder / name).write_text(text, newline="")
    command = ["git", "merge-file", "--stdout", "ours", "base", "theirs"]
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    git = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=alone, check=False)
    result = merged(texts["base"], texts["ours"], texts["theirs"])
    if git.returncode == 0:
        assert result.text == git.stdout


MARKERS = Markers(size=11)
MARKER = re.compile(r"(?:<{11} ours|={11}|>{11} theirs)\Z")


@settings(max_examples=examples(250))
@given(sides(), st.booleans())
def test_what_a_side_added_is_in_the_text_or_between_markers(three: Sides, with_base: bool) -> None:
    documents = [parse_text("note.md", text) for text in three]
    plain = merge(*documents)
    result = merge(*documents, markers=MARKERS._replace(shows_base=with_base))
    assert bool(plain.conflicts) == bool(result.conflicts)
    if not plain.conflicts:
        assert result == plain
    elif result.text is not None:
        lines = re.split(r"\r\n|\n|\r", result.text)
        marks = [line[0] for line in lines if MARKER.match(line)]
        assert marks
        assert marks == ["<", "=", ">"] * (len(marks) // 3)
        # Of a list in brackets, the items are what is added.
        words = set(re.findall(r"\w+", result.text))
        base, ours, theirs = (set(re.findall(r"\w+", text)) for text in three)
        assert (ours | theirs) - base <= words


def test_only_what_conflicts_stands_between_markers() -> None:
    base = "---\na: 1\nb: 1\n---\n# A\n- a\n- b\n"
    ours = "---\na: 2\nb: 1\nc: 1\n---\n# A\n- o\n- b\n- end\n"
    theirs = "---\na: 3\nb: 2\n---\n# A\n- t\n- b\n"
    three = (parse_text("note.md", text) for text in (base, ours, theirs))
    assert merge(*three, markers=Markers()).text == (
        "---\n<<<<<<< ours\na: 2\n=======\na: 3\n>>>>>>> theirs\nb: 2\nc: 1\n---\n# A\n"
        "<<<<<<< ours\n- o\n=======\n- t\n>>>>>>> theirs\n- b\n- end\n"
    )


def test_json_has_no_place_for_markers() -> None:
    three = (parse_text("a.json", f'{{"a": {n}}}') for n in (1, 2, 3))
    result = merge(*three, markers=Markers())
    assert (result.text, len(result.conflicts)) == (None, 1)


# -------------------------------------------------------------------------------------- large and odd


def test_a_large_note_with_few_changes() -> None:
    count = examples(6000)
    base = [f"- {n}\n" if n % 3 else "\n" for n in range(count)]
    ours, theirs, both = list(base), list(base), list(base)
    for number in range(10, count, 500):
        ours[number] = both[number] = f"- ours {number}\n"
        theirs[number + 100] = both[number + 100] = f"- theirs {number}\n"
    assert merged("".join(base), "".join(ours), "".join(theirs)).text == "".join(both)


def test_many_equal_lines() -> None:
    base = ["x\n"] * 5000
    ours, theirs = [*base[:100], "ours\n", *base[100:]], [*base[:4000], "theirs\n", *base[4000:]]
    expected_lines = [*base[:100], "ours\n", *base[100:4000], "theirs\n", *base[4000:]]
    assert merged("".join(base), "".join(ours), "".join(theirs)).text == "".join(expected_lines)
    odd = ["x\n", "y\n"] * 3000
    assert merged("".join(base), "".join(odd), "".join(theirs)).conflicts


@pytest.mark.parametrize("most", soak_most([1 << 14, MOST_COMPARED]))
def test_what_is_too_large_to_be_compared_is_merged_by_lines(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """What stands in it may be anything: nothing of it is parsed, and conflicts stay."""
    monkeypatch.setattr("mdmem.document.merging.merge.MOST_COMPARED", most)
    base = "- see [[a]] ^x\n- b\n" + "c\n" * (most // 2)
    ours, theirs = base.replace("[[a]]", "[[o]]"), base.replace("see", "look at")
    assert len(merged(base, ours, theirs).conflicts) == 1
    assert merged(base, f"o\n{base}", f"{base}t\n").text == f"o\n{base}t\n"
    assert merged(base, f"{base}- o\n", f"{base}- t\n").text == f"{base}- t\n- o\n"
    assert merged(base, f"{base}  o\n", f"{base}- t\n").conflicts, "what continues stays behind its line"
    assert merged(f"{base}d\ne\n", f"{base}e\nd\n", f"{base}e\nd\nt\n").conflicts
