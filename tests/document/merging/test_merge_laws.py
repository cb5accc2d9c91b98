"""What holds of every merge, whatever was changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings, strategies as st

from mdmem.document.document import parse_text
from mdmem.document.merging.merge import Merged, merge_parts
from mdmem.document.text.diff import Versions
from tests.speed import examples

WORDS = st.lists(
    st.sampled_from(
        [
            "apples",
            "pears",
            "plums",
            "are",
            "grow",
            "red",
            "blue",
            "[[note]]",
            "[^1]",
            "**b**",
            "`code`",
            "é",
            "漢字",
            "^id1",
        ]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


def _prefixed(first: str, others: str, lines: Sequence[str]) -> list[str]:
    return [(first if number == 0 else others if line else "") + line for number, line in enumerate(lines)]


PARAGRAPH = st.lists(WORDS, min_size=1, max_size=3)
QUOTE = PARAGRAPH.map(lambda lines: [f"> {line}" for line in lines])
FENCE = st.tuples(st.sampled_from(["```", "~~~", "```sh"]), PARAGRAPH, st.booleans()).map(
    lambda parts: [parts[0], *parts[1], *([parts[0][:3]] if parts[2] else [])]
)
COMMENT = st.tuples(PARAGRAPH, st.booleans()).map(
    lambda parts: ["<!--", *parts[0], *(["-->"] if parts[1] else [])]
)
DEFINITION = st.tuples(st.sampled_from(["[^1]", "[^2]", "[a]", "[A]"]), WORDS).map(
    lambda parts: [": ".join(parts)]
)
ROW = st.lists(WORDS, min_size=2, max_size=2).map(lambda cells: f"| {' | '.join(cells)} |")
TABLE = st.tuples(ROW, st.lists(ROW, max_size=3)).map(lambda parts: [parts[0], "| --- | --- |", *parts[1]])
PLAIN = PARAGRAPH | QUOTE | FENCE | COMMENT | DEFINITION | TABLE | st.just(["---"])


def _items(blocks: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    markers = st.sampled_from([("- ", "  "), ("- ", "\t"), ("* ", "  "), ("1. ", "   "), ("2) ", "\t")])
    item = st.tuples(WORDS, st.lists(blocks, max_size=2), st.sampled_from([[], [""]]))

    def lines(parts: tuple[tuple[str, str], list[tuple[str, list[list[str]], list[str]]]]) -> list[str]:
        (marker, indentation), items = parts
        made: list[str] = []
        for words, below, gap in items:
            made += [marker + words]
            for block in below:
                made += [*gap, *_prefixed(indentation, indentation, block)]
        return made

    return st.tuples(markers, st.lists(item, min_size=1, max_size=4)).map(lines)


LIST = st.recursive(PARAGRAPH | QUOTE | TABLE | FENCE, _items, max_leaves=4)
HEADING = st.tuples(st.sampled_from(["#", "##", "###"]), WORDS).map(lambda parts: [" ".join(parts)])
BLOCKS = st.lists(
    st.tuples(st.one_of(HEADING, _items(LIST), PLAIN), st.sampled_from([[], [""], ["", ""]])), max_size=8
)
BODY = BLOCKS.map(lambda blocks: [line for block, gap in blocks for line in [*block, *gap]])
FRONT = st.sampled_from(
    [[], ["---", "title: a", "tags: [b, c]", "---", ""], ["---", "tags:", "  - b", "---"]]
)
NOTE = st.tuples(FRONT, BODY).map(lambda parts: [*parts[0], *parts[1]])


@st.composite
def edited(draw: st.DrawFn, lines: list[str]) -> list[str]:
    """Lines after some edits: lines reworded, removed, indented, moved or put in, blocks put in."""
    lines = list(lines)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines)))
        until = draw(st.integers(at, min(len(lines), at + 4)))
        change = draw(st.sampled_from(["put", "reword", "remove", "indent", "move", "front"]))
        if change == "put":
            lines[at:at] = draw(HEADING | LIST | _items(LIST) | PLAIN | st.just([""]))
        elif change == "reword":
            lines[at:until] = [f"{line} {draw(WORDS)}" if line else line for line in lines[at:until]]
        elif change == "remove":
            del lines[at:until]
        elif change == "indent":
            lines[at:until] = _prefixed("  ", "  ", lines[at:until])
        elif change == "move":
            moved = lines[at:until]
            del lines[at:until]
            to = draw(st.integers(0, len(lines)))
            lines[to:to] = moved
        elif lines[:1] == ["---"]:
            lines.insert(1, f"{draw(st.sampled_from(['one', 'two']))}: {draw(st.sampled_from('xy'))}")
    return lines


@st.composite
def versions(draw: st.DrawFn) -> tuple[str, str, str]:
    """A base and two edits of it, with one kind of line ends, each with a final one or without."""
    base = draw(NOTE)
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    sides = (base, draw(edited(base)), draw(edited(base)))
    texts = [newline.join(lines) + draw(st.sampled_from([newline, newline, ""])) for lines in sides]
    return texts[0], texts[1], texts[2]


def merged(base: str, ours: str, theirs: str) -> Merged:
    # All the shortcuts that a merge of equal versions takes are off.
    return merge_parts(Versions(*(parse_text("note.md", text) for text in (base, ours, theirs))))


@settings(max_examples=examples(100))
@given(texts=versions())
def test_whatever_was_changed(texts: tuple[str, str, str]) -> None:
    base, ours, theirs = texts
    what_only_one_side_changed_is_kept_byte_for_byte(base, ours)
    what_both_sides_changed_alike_is_there_once(base, ours)
    one = merged(base, ours, theirs).text
    swapped_sides_come_to_the_same_verdict_and_the_same_lines(one, merged(base, theirs, ours).text)
    if one is not None:
        no_line_that_a_side_added_is_lost_and_none_comes_that_nobody_wrote(one, base, ours, theirs)


def what_only_one_side_changed_is_kept_byte_for_byte(base: str, ours: str) -> None:
    assert merged(base, ours, base).text == ours
    assert merged(base, base, ours).text == ours


def what_both_sides_changed_alike_is_there_once(base: str, ours: str) -> None:
    text = merged(base, ours, ours).text
    assert text is not None
    assert text.splitlines() == ours.splitlines()


def swapped_sides_come_to_the_same_verdict_and_the_same_lines(one: str | None, other: str | None) -> None:
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        # Of two indentations of the same words, theirs is taken.
        lines, swapped = (Counter(map(str.strip, text.splitlines())) for text in (one, other))
        del lines[""], swapped[""]
        assert lines == swapped


def no_line_that_a_side_added_is_lost_and_none_comes_that_nobody_wrote(text: str, *texts: str) -> None:
    base, ours, theirs = (Counter(_words(line) for line in each.splitlines()) for each in texts)
    lines = Counter(_words(line) for line in text.splitlines())
    for added in (ours - base, theirs - base):
        assert not +(added - lines) - Counter([""])
    assert not lines.keys() - base.keys() - ours.keys() - theirs.keys() - {""}


def _words(line: str) -> str:
    """A line without what another place asks for: indentation, bullet or number."""
    words = line.strip().split(" ")
    return " ".join(words[1:] if words[0] in {"-", "*"} or words[0][:-1].isdigit() else words)
