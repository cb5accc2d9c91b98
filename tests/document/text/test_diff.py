"""Versions versions of a thing, and the order of what stands in them.

Diffs are true, and git applies them.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.text.diff import (
    Versions,
    complete,
    hunks,
    merged_order,
    placed,
    regions,
    shared,
    unified,
    words,
)
from mdmem.document.text.lines import Lines
from tests.programs import needs
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

KEYS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@cases(
    "versions, agreed",
    [("aaa", "a"), ("aba", "b"), ("aab", "b"), ("abb", "b"), ("abc", None)],
)
def test_what_at_most_one_side_changed_or_both_did_equally_is_agreed(
    versions: str, agreed: str | None
) -> None:
    assert Versions(*versions).agreed() == (agreed and (agreed,))


def test_that_both_agree_on_nothing_is_an_agreement() -> None:
    assert Versions("a", None, None).agreed() == (None,)


def test_each_is_taken_alone_or_with_its_partner() -> None:
    numbers = Versions(1, 2, 3)
    assert numbers.map(str) == Versions("1", "2", "3")
    assert numbers.paired(Versions("a", "b", "c"), lambda number, text: text * number) == Versions(
        "a", "bb", "ccc"
    )


def test_three_are_complete_when_none_is_missing() -> None:
    assert complete(Versions(0, "", ())) == (0, "", ())
    assert complete(Versions(1, None, 1)) is None


@cases(
    "base, ours, theirs, order",
    [
        *(("ab", "axb", "ayb", "ayxb"), ("ab", "abx", "yab", "yabx"), ("abc", "cab", "abyc", "caby")),
        *(("abc", "cab", "abc", "cab"), ("abc", "cab", "acb", None), ("abc", "a", "c", "ca")),
    ],
)
def test_a_side_that_moved_keys_gives_the_order(base: str, ours: str, theirs: str, order: str | None) -> None:
    found = merged_order(Versions(list(base), list(ours), list(theirs)))
    assert (found and "".join(found)) == order


@settings(max_examples=examples(200))
@given(KEYS, KEYS, KEYS)
def test_every_key_of_both_sides_is_there_once(base: list[str], ours: list[str], theirs: list[str]) -> None:
    order = merged_order(Versions(base, ours, theirs))
    if order is not None:
        assert sorted(order) == sorted({*ours, *theirs})
    assert sorted(placed(theirs, ours)) == sorted({*ours, *theirs})
    assert [key for key in placed(theirs, ours) if key in theirs] == theirs


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "x y", "\x0c\u2028", "# H"]), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = [line + draw(ENDS) for line in draw(LINES)]
    return "".join([*lines, draw(st.sampled_from(["", "last", "last\r"]))])


@given(before=texts(), after=texts(), head=texts(), tail=texts())
def test_what_two_texts_share_is_whole_lines_of_both(before: str, after: str, head: str, tail: str) -> None:
    before, after = head + before + tail, head + after + tail
    first, last = shared(before, after)
    assert before[:first] == after[:first]
    assert before[len(before) - last :] == after[len(after) - last :]
    assert first + last <= min(len(before), len(after))
    for text in (before, after):
        starts = {0, *Lines(text).starts, len(text)}
        assert {first, len(text) - last} <= starts
    lines = Lines(head)
    assert first >= (lines.starts[-1] if len(lines) > 1 else 0)


HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)\n((?:[ +-].*\n)*)", re.MULTILINE)


@given(
    before=texts(), after=texts(), above=st.integers(0, 9), below=st.integers(0, 9), context=st.integers(0, 3)
)
def test_each_hunk_stands_where_it_says_and_names_the_heading_above(
    before: str, after: str, above: int, below: int, context: int
) -> None:
    """Git would look for its lines elsewhere as well."""
    frame = "# Top\n" + "above\n" * above + "{}\n" + "below\n" * below
    before, after = frame.format(before), frame.format(after)
    found = HUNK.findall(unified(before, after, "note.md", context=context))
    assert bool(found) == (before != after)
    for old_at, old_count, new_at, new_count, title, shown in found:
        lines = shown.split("\n")[:-1]
        for text, at, count, mark in ((before, old_at, old_count, "-"), (after, new_at, new_count, "+")):
            start = int(at) - (count != "0")
            expected = text.split("\n")[start : start + int(count or 1)]
            assert [line[1:] for line in lines if line[0] in (" ", mark)] == expected
        headings = [
            line for line in before.split("\n")[: int(old_at) - (old_count != "0")] if line[:2] == "# "
        ]
        assert title == (f" {headings[-1].rstrip()}" if headings else "")


def apply(folder: Path, diff: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    clean = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    clean["GIT_CEILING_DIRECTORIES"] = str(folder.parent)
    return subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *options, "-"],
        cwd=folder,
        input=diff.encode(),
        capture_output=True,
        env=clean,
        check=False,
    )


def applied(folder: Path, before: str | None, diff: str, path: str, *options: str) -> str | None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    if before is not None:
        file.write_bytes(before.encode())
    done = apply(folder, diff, *options)
    assert done.returncode == 0, (done.stderr, diff)
    return file.read_bytes().decode() if file.exists() else None


CASES = {
    "lf": ("a\nb\nc\n", "a\nB\nc\n"),
    "crlf": ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\nd\r\n"),
    "mixed": ("a\r\nb\nc\r\n", "a\r\nb\nc\r\nd\n"),
    "final newline added": ("a\nb", "a\nb\n"),
    "final newline removed": ("a\r\nb\r\n", "a\r\nb"),
    "both without final newline": ("a\nb", "c\nb"),
    "line ends only": ("a\r\nb\r\n", "a\nb\n"),
    "lone carriage returns": ("a\rb\rc", "a\rB\rc"),
    "created": (None, "a\nb\n"),
    "created without final newline": (None, "a\r\nb"),
    "created empty": (None, ""),
    "deleted": ("a\nb\n", None),
    "deleted without final newline": ("a", None),
    "deleted empty": ("", None),
    "filled": ("", "a\n"),
    "emptied": ("a\n", ""),
    "byte-order mark": ("\ufeffa\nb\n", "a\nb\n"),
    "other separators": ("a\x0cb\u2028c\x85d\n", "a\x0cb\u2028c\x85e\n"),
    "far apart": ("".join(f"{n}\n" for n in range(60)), "".join(f"{n}\n" for n in range(1, 59))),
}


@cases("before, after", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("path", ["note.md", 'my folder/ö "quoted".md', "data.json"])
def test_git_applies_and_reverts_it(tmp_path: Path, before: str | None, after: str | None, path: str) -> None:
    diff = unified(before, after, path)
    assert diff
    assert applied(tmp_path, before, diff, path) == after
    assert applied(tmp_path, after, diff, path, "--reverse") == before


@cases("before, after", [case for case in CASES.values() if case[0]])
def test_the_program_patch_applies_it_too(tmp_path: Path, before: str, after: str | None) -> None:
    needs("patch")
    (tmp_path / "note.md").write_bytes(before.encode())
    diff = unified(before, after, "note.md").encode()
    subprocess.run(
        ["patch", "-p1", "--binary", "--silent"], cwd=tmp_path, input=diff, capture_output=True, check=True
    )
    file = tmp_path / "note.md"
    assert (file.read_bytes().decode() if file.exists() else "") == (after or "")


@settings(max_examples=examples(60))
@given(before=texts(), after=texts(), context=st.integers(1, 3))
def test_git_applies_any_diff(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str, context: int
) -> None:
    diff = unified(before, after, "note.md", context=context)
    assert (diff == "") == (before == after)
    if diff:
        folder = tmp_path_factory.mktemp("apply")
        assert applied(folder, before, diff, "note.md") == after


def test_without_context_it_is_what_git_prints() -> None:
    """Compared as text: git itself loses the last line end when it applies its own diff of this."""
    assert unified("b\nb", "a\nb\n", "note.md", context=0) == (
        "--- a/note.md\n+++ b/note.md\n@@ -0,0 +1 @@\n+a\n@@ -2 +2,0 @@\n-b\n\\ No newline at end of file\n"
    )


def test_it_reads_as_git_prints_it() -> None:
    before = "# Title\n\n" + "".join(f"{n}\n" for n in range(8)) + "last"
    after = before.replace("7\n", "seven\n")
    assert unified(before, after, "notes/a.md") == (
        "--- a/notes/a.md\n+++ b/notes/a.md\n@@ -7,5 +7,5 @@ # Title\n 4\n 5\n 6\n-7\n+seven\n last\n"
        "\\ No newline at end of file\n"
    )


def test_nothing_differs() -> None:
    assert unified("a\n", "a\n", "a.md") == ""
    assert unified("a\n", "a\n", "a.md", new_path="a.md") == ""
    assert unified(None, None, "a.md") == ""


def test_git_takes_a_rename(tmp_path: Path) -> None:
    (tmp_path / "old name.md").write_bytes(b"a\nb\n")
    assert apply(tmp_path, unified("a\nb\n", "a\nb\n", "old name.md", new_path="new.md")).returncode == 0
    assert (tmp_path / "new.md").read_bytes() == b"a\nb\n"
    assert apply(tmp_path, unified("a\nb\n", "a\nc\n", "new.md", new_path="newer.md")).returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["newer.md"]
    assert (tmp_path / "newer.md").read_bytes() == b"a\nc\n"


MANY = st.lists(st.sampled_from("aaabcdefgh\n"), max_size=30)


@given(before=MANY, after=MANY)
def test_hunks_turn_one_into_the_other(before: list[str], after: list[str]) -> None:
    made: list[str] = []
    reached = 0
    for hunk in hunks(before, after):
        assert hunk.start >= reached + (1 if made or reached else 0) or hunk.start == reached == 0
        made += before[reached : hunk.start] + after[hunk.new_start : hunk.new_end]
        assert len(made) == hunk.new_end
        reached = hunk.end
    assert made + before[reached:] == after


def test_few_changes_in_many_lines_are_found_one_by_one() -> None:
    before = [f"- {n}\n" if n % 3 else "\n" for n in range(5000)]
    after = before.copy()
    for number in range(10, 5000, 500):
        after[number] = "- changed\n"
    assert [(hunk.start, hunk.end) for hunk in hunks(before, after)] == [
        (n, n + 1) for n in range(10, 5000, 500)
    ]


@pytest.mark.parametrize(
    "after", [["a"] * 4000, ["a", "b"] * 3000, ["b", "b", "a"] * 2000], ids=["fewer", "mixed", "odd"]
)
def test_repeated_lines_do_not_explode(after: list[str]) -> None:
    """It ends within the time limit of the whole suite, with a diff that is true."""
    before = ["a"] * 5000
    found = hunks(before, after)
    made = [line for hunk in found for line in after[hunk.new_start : hunk.new_end]]
    kept = len(before) - sum(hunk.end - hunk.start for hunk in found)
    assert len(made) + kept == len(after)


@given(base=MANY, ours=MANY, theirs=MANY)
def test_regions_hold_every_change_of_both_sides(base: list[str], ours: list[str], theirs: list[str]) -> None:
    made_ours: list[str] = []
    made_theirs: list[str] = []
    reached = 0
    for region in regions(base, ours, theirs):
        kept = base[reached : region.base.start]
        made_ours += kept + ours[region.ours]
        made_theirs += kept + theirs[region.theirs]
        assert (len(made_ours), len(made_theirs)) == (region.ours.stop, region.theirs.stop)
        reached = region.base.stop
    assert made_ours + base[reached:] == ours
    assert made_theirs + base[reached:] == theirs


# -------------------------------------------------------------------------------------------------- words


@given(st.text("ab \n.漢", max_size=30), st.text("ab \n.漢", max_size=30))
def test_words_that_are_marked_turn_one_text_into_the_other(before: str, after: str) -> None:
    found = words(before, after)
    assert "".join(word.text for word in found if word.mark != "+") == before
    assert "".join(word.text for word in found if word.mark != "-") == after
    assert all(word.text for word in found)


def test_words_not_letters_are_marked() -> None:
    assert words("We use SQLite here.", "We use Postgres here.") == [
        ("", "We use "),
        ("-", "SQLite"),
        ("+", "Postgres"),
        ("", " here."),
    ]


def test_a_blank_between_changed_words_is_no_word() -> None:
    assert words("a b c d", "a x y d") == [("", "a "), ("-", "b c"), ("+", "x y"), ("", " d")]
