"""Taking back what a change did to facts, in a text that has changed since."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document.document import Document, parse_text
from mdmem.document.merging.comparison import compare
from mdmem.document.merging.reverting import TakenBack, take_back
from tests import speed
from tests.speed import examples
from tests.tables import cases


def document(text: str) -> Document:
    return parse_text("a.md", text)


def reversed_(before: str, after: str, now: str) -> TakenBack:
    old, new = document(before), document(after)
    return take_back(old, new, document(now), compare(old, new).facts)


def text(before: str, after: str, now: str) -> str:
    done = reversed_(before, after, now)
    assert done.refused == ()
    return done.text


HEAD, ROW = "\ufeff---\nx: 1\n---\n", "| a |\n|---|\n"
LIST = "# T\n\n- one is first\n- two is second\n- three is third\n\n## S\n\nA paragraph here.\n"


# ------------------------------------------------------------------------------------ what was added goes


@cases(
    "before, after, now, wanted",
    [
        ("- a\n", "- a\n- b\n", "- z\n- a\n- b\n- c\n", "- z\n- a\n- c\n"),
        ("- a\n", "- a\n- b\n", "- a\n- b\n\n# New\n\n- c\n", "- a\n\n# New\n\n- c\n"),
        ("a\n\nc\n", "a\n\nb\n\nc\n", "a\n\nb\n\nc\n\nd\n", "a\n\nc\n\nd\n"),
        ("a\n", "a\n\nb\n", "a\n\nb\n", "a\n"),
        ("a", "a\n\nb", "a\n\nb", "a"),
        ("a\r\n", "a\r\n\r\nb\r\n", "z\r\n\r\na\r\n\r\nb\r\n", "z\r\n\r\na\r\n"),
        ("", "- a\n", "- a\n- b\n", "- b\n"),
        ("- a\n", "- a\n  - b\n  - c\n", "- a\n  - b\n  - d\n  - c\n", "- a\n  - d\n"),
        ("a\n", "a\n\n# H\n\nb\n", "a\n\n# H\n\nb\n", "a\n"),
        (f"{HEAD}- a\n", f"{HEAD}- a\n- b\n", f"{HEAD}- b\n- c\n", f"{HEAD}- c\n"),
        (f"{ROW}| 1 |\n", f"{ROW}| 1 |\n| 2 |\n", f"{ROW}| 2 |\n| 3 |\n", f"{ROW}| 3 |\n"),
        ("- a\n\n# H\n\nb\n", "- a\n- c\n\n# H\n\nb\n", "- a\n- c\n\n\n# H\n\nb\n", "- a\n\n\n# H\n\nb\n"),
        ("- a\n\n# H\n", "- a\n- c\n\n# H\n", "- a\n- c\n\n\n# I\n\n# H\n", "- a\n\n\n# I\n\n# H\n"),
        (
            "1. a\n2. b\n",
            "1. a\n   - c\n2. b\n",
            "1. a\n   - d\n   - c\n   1. b\n",
            "1. a\n   - d\n   1. b\n",
        ),
    ],
)
def test_what_was_added_goes(before: str, after: str, now: str, wanted: str) -> None:
    assert text(before, after, now) == wanted


def test_a_heading_stays_while_others_stand_under_it() -> None:
    done = reversed_("a\n", "a\n\n# H\n\nb is here\n", "a\n\n# H\n\nb is here\n\nc is new\n")
    assert done.text == "a\n\n# H\n\nc is new\n"
    assert done.skipped == ("'# H' stays, as other facts are under it now",)


def test_an_item_cannot_go_before_what_is_in_it() -> None:
    done = reversed_("- a\n", "- a\n- b\n", "- a\n- b\n  - since then\n")
    assert done.refused == ("'b': others stand in it now: 'since then'",)
    assert done.text == "- a\n- b\n  - since then\n"


# -------------------------------------------------------------------------------- what was removed comes back


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        ("- one\n- three\n", "- one\n- two\n- three\n"),
        ("- zero\n- one\n- four\n", "- zero\n- one\n- two\n- four\n"),
        ("- new\n- three\n", "- new\n- two\n- three\n"),
        ("- one\r\n- three", "- one\r\n- two\r\n- three"),
    ],
)
def test_what_was_removed_comes_back_beside_its_neighbours(now: str, wanted: str) -> None:
    assert text("- one\n- two\n- three\n", "- one\n- three\n", now) == wanted


def test_what_was_removed_comes_back_under_its_heading() -> None:
    after = LIST.replace("- two is second\n", "")
    now = "# T\n\n- zero\n\n## S\n\nA paragraph here.\n"
    assert text(LIST, after, now) == "# T\n\n- two is second\n- zero\n\n## S\n\nA paragraph here.\n"
    renamed = after.replace("# T\n", "# Title\n", 1)
    assert "# Title\n\n- one is first\n- two is second\n" in text(LIST, after, renamed)


def test_in_a_section_that_is_empty_now_one_blank_line_parts_it_from_the_heading() -> None:
    before, after = "# A\n\nx\n\n# B\n\n- one\n- two\n", "# A\n\nx\n\n# B\n\n- two\n"
    assert text(before, after, "# A\n\nx\n\n# B\n\n") == "# A\n\nx\n\n# B\n\n- one\n"


def test_a_heading_that_is_gone_is_made_again() -> None:
    after = LIST.replace("A paragraph here.\n", "")
    now = "# T\n\n- one is first\n\n## Z\n\nOther.\n"
    wanted = "# T\n\n- one is first\n\n## S\n\nA paragraph here.\n\n## Z\n\nOther.\n"
    assert text(LIST, after, now) == wanted


def test_a_removed_section_comes_back_whole() -> None:
    assert text(LIST, "# T\n", "# T\n\n- new\n").count("\n- ") == 4
    assert text(LIST, "", "") == LIST
    assert text(LIST, "", "# Other\n\nb\n").startswith("# Other\n\nb\n\n# T\n\n- one")


def test_an_item_in_an_item_that_is_gone_is_refused() -> None:
    done = reversed_("- a\n  - b\n  - c\n", "- a\n  - c\n", "- z\n")
    assert done.refused == ("'b': it stood in 'a', which is gone",)


# ----------------------------------------------------------------------------------- what was reworded


def test_what_was_reworded_says_again_what_it_said() -> None:
    after = LIST.replace("two is second", "two is the *second* one")
    now = after.replace("one is first", "one was first") + "\nMore.\n"
    wanted = LIST.replace("one is first", "one was first") + "\nMore.\n"
    assert text(LIST, after, now) == wanted


def test_a_marker_that_has_changed_since_stays() -> None:
    assert text("1. one is a\n", "1. one is b\n", "1. zero\n2. one is b\n") == "1. zero\n2. one is a\n"


def test_what_has_changed_since_is_told() -> None:
    after = LIST.replace("two is second", "two is the second one")
    done = reversed_(LIST, after, after.replace("second one", "second fact"))
    reason = "it has changed since, or is gone: now it reads 'two is the second fact'"
    assert done.refused == (f"'two is the second one': {reason}",)


def test_what_was_reworded_and_is_gone_need_not_be_taken_back() -> None:
    after = LIST.replace("two is second", "two is the second one")
    done = reversed_(LIST, after, "# T\n")
    reason = "which took the place of 'two is second', was removed already"
    assert (done.refused, done.skipped) == ((), (f"'two is the second one', {reason}",))


# ------------------------------------------------------------------------------------------ what was moved

APART = "# A\n\n- a is one\n- b is two\n\n# B\n\n- c is three\n"
MOVED = "# A\n\n- b is two\n\n# B\n\n- c is three\n- a is one\n"


def test_what_was_moved_goes_back() -> None:
    assert text(APART, MOVED, MOVED + "- d\n") == APART + "- d\n"


def test_an_item_moves_back_with_what_is_in_it_now() -> None:
    now = MOVED.replace("- a is one\n", "- a is one\n  - since then\n")
    assert text(APART, MOVED, now) == APART.replace("- a is one\n", "- a is one\n  - since then\n")


def test_what_was_moved_again_is_told() -> None:
    now = "# A\n\n- b is two\n\n# B\n\n- c is three\n\n# C\n\n- a is one\n"
    assert "moved since" in reversed_(APART, MOVED, now).refused[0]


@cases(
    "before, after, back, wanted",
    [
        # Two passed others: behind the nearest one that did not.
        ("a b c d e f", "a d e b c f", "c", "a c d e b f"),
        ("a b c d e f", "a d e b c f", "b", "a b d e c f"),
        ("a b c d e f", "a d e c b f", "b c", "a b c d e f"),
        ("a b -x c d e f", "a d e b -x c f", "c", "a c d e b -x f"),
        ("a b c d e", "c d e b", "a", "a c d e b"),
        # Its neighbour left for another section, with what is in it.
        ("a b -x c d e # f", "a d e # f b -x", "c", "a c d e # f b -x"),
        # What is in a fact that moved is still its neighbour.
        ("a b -x -y c d e # f", "a c d e # f b -x", "y", "a c d e # f b -x -y"),
        ("a b -x -y c d e f", "a d e b -x c f", "y", "a d e b -x -y c f"),
    ],
)
def test_what_comes_back_stands_by_neighbours_that_did_not_move(
    before: str, after: str, back: str, wanted: str
) -> None:
    old, new = document(notation(before)), document(notation(after))
    meant = {f"{each} is here" for each in back.split()}
    chosen = [each for each in compare(old, new).facts if each.fact.said in meant]
    assert len(chosen) == len(meant)
    assert take_back(old, new, new, chosen).text == notation(wanted)


def notation(words: str) -> str:
    """Return a memory with an item for each word, in the item before it after `-`; `#` is a heading."""
    made = {"#": "\n# Heading\n\n"}
    return "".join(
        made.get(word) or f"{'  ' * word.startswith('-')}- {word.lstrip('-')} is here\n"
        for word in words.split()
    )


def test_what_was_reworded_below_another_item_goes_back_into_its_own() -> None:
    before, after = "- one is first\n  - two is second\n", "- one is first\n- zero\n  - two was second\n"
    (reworded,) = (each for each in compare(document(before), document(after)).facts if each.before)
    done = take_back(document(before), document(after), document(after), [reworded])
    assert (done.text, done.refused) == (f"{before}- zero\n", ())


def test_what_only_came_under_another_heading_follows_it() -> None:
    before = "# A\n\nx y z\n\nu v w\n"
    after = "# A\n\nx y z\n\n## B\n\nu v w\n"
    assert text(before, after, after + "\nlater\n") == before + "\nlater\n"
    assert text(before, after, "# A\n\nx y z\n\nnew\n\n## B\n\nu v w\n") == "# A\n\nx y z\n\nnew\n\nu v w\n"
    assert text(after, before, before) == after


# ---------------------------------------------------------------------------------- what needs no taking back


def test_what_was_taken_back_already_is_told() -> None:
    for before, after in ((LIST, LIST.replace("- two is second\n", "")), (LIST, LIST + "\nNew here.\n")):
        done = reversed_(before, after, before)
        assert (done.text, done.refused, len(done.skipped)) == (before, (), 1)


def test_of_several_equal_facts_the_one_under_the_same_heading_is_meant() -> None:
    now = "# A\n\n- x\n\n# B\n\n- x\n"
    assert text("# A\n\n# B\n", "# A\n\n- x\n\n# B\n", now) == "# A\n\n# B\n\n- x\n"


def test_what_would_be_read_otherwise_is_refused() -> None:
    done = reversed_("| a |\n|---|\n| 1 |\n| 2 |\n", "| a |\n|---|\n| 1 |\n", "Text.\n")
    assert len(done.refused) == 1
    assert done.text == "Text.\n"
    done = reversed_("# A\n\na\n\n## B\n", "# A\n\na\n", "# A\n\na\n\nb is since then\n")
    assert done.text == "# A\n\na\n\nb is since then\n\n## B\n"


def test_code_and_quotes_are_facts_like_others() -> None:
    before = "# A\n\n```\nx\n\ny\n```\n\n> q\n> r\n\nend\n"
    after = "# A\n\nend\n"
    assert text(before, after, "# A\n\nend\n\nmore\n") == before + "\nmore\n"


# --------------------------------------------------------------------------------------------- whatever it is

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
]


def words(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 6)))


def block(chance: random.Random) -> list[str]:
    kind = chance.random()
    if kind < 0.5:
        items = []
        for _ in range(chance.randint(1, 4)):
            items.append(f"- {words(chance)}" + (f" ^id{chance.randint(1, 9)}" * (chance.random() < 0.1)))
            items += [f"  - {words(chance)}"] * (chance.random() < 0.25)
        return items
    if kind < 0.7:
        return [words(chance)] * 1 + [words(chance)] * (chance.random() < 0.3)
    if kind < 0.9:
        return [f"{'#' * chance.randint(1, 3)} {words(chance)}"]
    rows = [f"| {words(chance)} | {words(chance)} |" for _ in range(chance.randint(1, 3))]
    return chance.choice([["| a | b |", "|---|---|", *rows], ["```", words(chance), "", "```"], ["> q"]])


def changed(chance: random.Random, blocks: list[list[str]]) -> list[list[str]]:
    made = [list(each) for each in blocks]
    for _ in range(chance.randint(1, 3)):
        kind = chance.random()
        at = chance.randrange(len(made)) if made else 0
        if not made or kind < 0.25:
            made.insert(at, block(chance))
        elif kind < 0.45:
            made.pop(at)
        elif kind < 0.6:
            made[at].insert(chance.randint(0, len(made[at])), f"- {words(chance)}")
        elif kind < 0.75:
            made[at].pop() if len(made[at]) > 1 else made.pop(at)
        elif kind < 0.9:
            made[at][-1] += f" {chance.choice(WORDS)}"
        else:
            made.insert(chance.randint(0, len(made) - 1), made.pop(at))
    return made


@settings(max_examples=examples(150))
@example(seed=65536, newline="\n", ends=False)  # an item that goes along into a list whose items left it
@example(seed=468280, newline="\n", ends=False)  # a heading comes back whose title another one has as well
@given(st.integers(0, 10**9), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_every_line_that_comes_or_goes_is_of_the_change(seed: int, newline: str, ends: bool) -> None:
    chance = random.Random(seed)
    first = [block(chance) for _ in range(chance.randint(0, 6))]
    second = changed(chance, first)
    third = changed(chance, second) if chance.random() < 0.7 else second
    before, after, now = (
        document((newline * 2).join(map(newline.join, blocks)) + newline * (ends and bool(blocks)))
        for blocks in (first, second, third)
    )
    found = compare(before, after).facts
    done = take_back(before, after, now, found)
    if done.refused:
        assert done.text == now.text
        return
    stand, stood = lines(done.text), lines(now.text)
    assert (stand - stood).keys() <= lines(before.text).keys(), "what comes was there before"
    assert (stood - stand).keys() <= lines(after.text).keys(), "what goes was there after the change"


@settings(max_examples=150 if speed.is_all else 15)
@given(st.integers(0, 10**9), st.booleans())
def test_one_of_several_changes_is_taken_back_alone(seed: int, later: bool) -> None:
    """Only lines of this fact come and go, and headings that it stood under come."""
    chance = random.Random(seed)
    first = [block(chance) for _ in range(chance.randint(1, 6))]
    second = changed(chance, first)
    third = changed(chance, second) if later else second
    before, after, now = (
        document("\n\n".join(map("\n".join, blocks)) + "\n") for blocks in (first, second, third)
    )
    for change in compare(before, after).facts:
        done = take_back(before, after, now, [change])
        come = {line for line in lines(done.text) - lines(now.text) if not line.startswith("#")}
        was, then = (
            set(lines("\n".join(each.text.split("\n")[fact.line - 1 : fact.last]))) if fact else set()
            for each, fact in ((before, change.before), (after, change.after))
        )
        assert come <= was
        assert set(lines(now.text) - lines(done.text)) <= then
        assert not done.refused or done.text == now.text


def test_a_fact_leaves_a_heading_that_came_above_it_and_the_heading_stays() -> None:
    before, after = document("- one is first\n"), document("# New\n\n- one was first\n")
    reworded = [each for each in compare(before, after).facts if each.kind == "reworded"]
    assert take_back(before, after, after, reworded).text == "- one is first\n\n# New\n"


def test_a_fact_that_was_added_goes_from_where_it_was_moved_to() -> None:
    now = "# A\n\n- a\n\n# B\n\n- the new fact here\n- b\n"
    added = "# A\n\n- a\n- the new fact here\n\n# B\n\n- b\n"
    assert text("# A\n\n- a\n\n# B\n\n- b\n", added, now) == "# A\n\n- a\n\n# B\n\n- b\n"


def lines(text: str) -> Counter[str]:
    """How often each line stands that is not blank; it may have to be indented otherwise."""
    return Counter(line.strip() for line in text.splitlines() if line.strip())


@cases("tags", ["[a, b]", "[a, a]", "\n  - a\n  - b"])
def test_a_list_that_was_added_is_taken_back_however_it_is_written(tags: str) -> None:
    before = parse_text("a.md", "- one\n")
    after = parse_text("a.md", f"---\ntags: {tags}\ntitle: T\n---\n- one\n")
    added = {each.key: each for each in compare(before, after).fields}
    assert take_back(before, after, after, [added["tags",]]).text == "---\ntitle: T\n---\n- one\n"
    assert take_back(before, after, after, [*added.values()]).text == "- one\n"
