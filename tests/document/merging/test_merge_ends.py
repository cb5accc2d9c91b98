"""What is added at the end of a list, a table, a quote or a note goes where its author put it.

Each case is merged with its sides swapped as well, with other line ends, and without a final line end.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from mdmem.document.document import parse_text
from mdmem.document.merging.conflict import Markers
from mdmem.document.merging.merge import Merged, merge
from tests.tables import cases

Sides = tuple[str, str, str]


class Marked(NamedTuple):
    """Lines that a conflict holds of each side, and lines that stand outside of every conflict."""

    ours: str
    theirs: str
    outside: str = ""


def merged(sides: Sides, newline: str = "\n", *, ends: bool = True, markers: Markers | None = None) -> Merged:
    written = (text.replace("\n", newline) for text in sides)
    texts = (text if ends else text.removesuffix(newline) for text in written)
    return merge(*(parse_text("note.md", text) for text in texts), markers=markers)


def swapped(sides: Sides) -> Sides:
    base, ours, theirs = sides
    return base, theirs, ours


# ---------------------------------------------------------------------------------------------- clean

LIST = "# A\n\n- Deploys go through Ann.\n"
ROLLBACKS = "- Rollbacks go through Bob.\n"
TABLE = "# A\n\n| who | what |\n| --- | --- |\n| Ann | deploys |\n"
NUMBERED = "1. one thing\n2. two things\n3. three things\n"
NESTED = "- fruit\n\t- apples are red\n\t- plums are blue\n- roots\n"
SECTIONS = "# A\n\n## Old name\n\nSome words.\n\n## Next\n\nOther words.\n"
CODE = "# A\n\n```sh\nmake all\nmake test\n```\n"

# The base, ours, theirs, and what both come to; with the sides swapped it is the same.
CLEAN: dict[str, tuple[str, str, str, str]] = {
    "continuation line": (
        LIST,
        LIST + "  Never on Fridays.\n",
        LIST + ROLLBACKS,
        LIST + "  Never on Fridays.\n" + ROLLBACKS,
    ),
    "lazy continuation line": (
        LIST,
        LIST + "Never on Fridays.\n",
        LIST + ROLLBACKS,
        LIST + "Never on Fridays.\n" + ROLLBACKS,
    ),
    "continuation line, item in the middle": (
        LIST + "- Last.\n",
        LIST + "  Never on Fridays.\n- Last.\n",
        LIST + ROLLBACKS + "- Last.\n",
        LIST + "  Never on Fridays.\n" + ROLLBACKS + "- Last.\n",
    ),
    "child item": (
        LIST,
        LIST + "  - Never on Fridays.\n",
        LIST + ROLLBACKS,
        LIST + "  - Never on Fridays.\n" + ROLLBACKS,
    ),
    "child item, item in the middle": (
        LIST + "- Last.\n",
        LIST + "  - Never on Fridays.\n- Last.\n",
        LIST + ROLLBACKS + "- Last.\n",
        LIST + "  - Never on Fridays.\n" + ROLLBACKS + "- Last.\n",
    ),
    "child item by a tab": (
        LIST,
        LIST + "\t- Never on Fridays.\n",
        LIST + ROLLBACKS,
        LIST + "\t- Never on Fridays.\n" + ROLLBACKS,
    ),
    "grandchild and child": (
        LIST + "  - Daily.\n",
        LIST + "  - Daily.\n    - At noon.\n",
        LIST + "  - Daily.\n  - By hand.\n",
        LIST + "  - Daily.\n    - At noon.\n  - By hand.\n",
    ),
    "grandchild and item": (
        LIST + "  - Daily.\n",
        LIST + "  - Daily.\n    - At noon.\n",
        LIST + "  - Daily.\n" + ROLLBACKS,
        LIST + "  - Daily.\n    - At noon.\n" + ROLLBACKS,
    ),
    "child item and paragraph below": (
        LIST,
        LIST + "  - Never on Fridays.\n",
        LIST + "\nSo it is.\n",
        LIST + "  - Never on Fridays.\n\nSo it is.\n",
    ),
    "item and paragraph below": (LIST, LIST + ROLLBACKS, LIST + "\nSo.\n", LIST + ROLLBACKS + "\nSo.\n"),
    "item and section below": (
        LIST,
        LIST + ROLLBACKS,
        LIST + "\n## B\n\nSo.\n",
        LIST + ROLLBACKS + "\n## B\n\nSo.\n",
    ),
    "line of a quote in an item": (
        LIST + "  > Ask first.\n",
        LIST + "  > Ask first.\n  > Ask twice.\n",
        LIST + "  > Ask first.\n" + ROLLBACKS,
        LIST + "  > Ask first.\n  > Ask twice.\n" + ROLLBACKS,
    ),
    "line of a quote and paragraph": (
        "> One.\n",
        "> One.\n> Two.\n",
        "> One.\n\nSo.\n",
        "> One.\n> Two.\n\nSo.\n",
    ),
    "line of a quote and list": (
        "> One.\n",
        "> One.\n> Two.\n",
        "> One.\n\n- so\n",
        "> One.\n> Two.\n\n- so\n",
    ),
    "line of a paragraph and list": ("One.\n", "One.\nTwo.\n", "One.\n\n- so\n", "One.\nTwo.\n\n- so\n"),
    "row and paragraph": (
        TABLE,
        TABLE + "| Bob | rollbacks |\n",
        TABLE + "\nSo.\n",
        TABLE + "| Bob | rollbacks |\n\nSo.\n",
    ),
    "row and list": (
        TABLE,
        TABLE + "| Bob | rollbacks |\n",
        TABLE + "\n- so\n",
        TABLE + "| Bob | rollbacks |\n\n- so\n",
    ),
    "row and another table": (
        TABLE,
        TABLE + "| Bob | rollbacks |\n",
        TABLE + "\n| where |\n| --- |\n| Rome |\n",
        TABLE + "| Bob | rollbacks |\n\n| where |\n| --- |\n| Rome |\n",
    ),
    "row and reworded row": (
        TABLE,
        TABLE + "| Bob | rollbacks |\n",
        TABLE.replace("deploys", "all deploys"),
        TABLE.replace("deploys", "all deploys") + "| Bob | rollbacks |\n",
    ),
    "row and renamed column": (
        TABLE,
        TABLE + "| Bob | rollbacks |\n",
        TABLE.replace("what", "does what"),
        TABLE.replace("what", "does what") + "| Bob | rollbacks |\n",
    ),
    "row of a table in an item": (
        "- so\n\n  | a |\n  | --- |\n  | 1 |\n",
        "- so\n\n  | a |\n  | --- |\n  | 1 |\n  | 2 |\n",
        "- so\n\n  | a |\n  | --- |\n  | 1 |\n- last\n",
        "- so\n\n  | a |\n  | --- |\n  | 1 |\n  | 2 |\n- last\n",
    ),
    "line of code and paragraph": (
        CODE,
        CODE.replace("test\n", "test\nmake demo\n"),
        CODE + "\nSo.\n",
        CODE.replace("test\n", "test\nmake demo\n") + "\nSo.\n",
    ),
    "line of code at both ends": (
        CODE,
        CODE.replace("make all", "cd x\nmake all"),
        CODE.replace("test\n", "test\nmake demo\n"),
        CODE.replace("make all", "cd x\nmake all").replace("test\n", "test\nmake demo\n"),
    ),
    "line of a comment and paragraph": (
        "One.\n\n<!--\nhidden\n-->\n",
        "One.\n\n<!--\nhidden\nmore\n-->\n",
        "One.\n\n<!--\nhidden\n-->\n\nSo.\n",
        "One.\n\n<!--\nhidden\nmore\n-->\n\nSo.\n",
    ),
    "footnotes of two names": (
        "One[^1] thing.\n\nOther thing.\n\n[^1]: a\n",
        "One[^1] thing[^2].\n\nOther thing.\n\n[^1]: a\n[^2]: b\n",
        "One[^1] thing.\n\nOther things.\n\n[^1]: a\n",
        "One[^1] thing[^2].\n\nOther things.\n\n[^1]: a\n[^2]: b\n",
    ),
    "heading renamed, paragraph right below": (
        SECTIONS,
        SECTIONS.replace("Old", "New"),
        SECTIONS.replace("Some", "First.\n\nSome"),
        SECTIONS.replace("Old", "New").replace("Some", "First.\n\nSome"),
    ),
    "heading renamed, list right below": (
        SECTIONS,
        SECTIONS.replace("Old", "New"),
        SECTIONS.replace("Some", "- first\n\nSome"),
        SECTIONS.replace("Old", "New").replace("Some", "- first\n\nSome"),
    ),
    "heading renamed, item on top": (
        "## Old name\n- one\n- two\n",
        "## New name\n- one\n- two\n",
        "## Old name\n- zero\n- one\n- two\n",
        "## New name\n- zero\n- one\n- two\n",
    ),
    "heading renamed, the text below reworded": (
        SECTIONS,
        SECTIONS.replace("Old", "New"),
        SECTIONS.replace("Some", "More"),
        SECTIONS.replace("Old", "New").replace("Some", "More"),
    ),
    "item reworded, child added": (
        LIST,
        LIST.replace("Ann", "Anna"),
        LIST + "  - Never on Fridays.\n",
        LIST.replace("Ann", "Anna") + "  - Never on Fridays.\n",
    ),
    "item reworded, child reworded": (
        LIST + "  - Daily.\n",
        LIST.replace("Ann", "Anna") + "  - Daily.\n",
        LIST + "  - Weekly, or daily.\n",
        LIST.replace("Ann", "Anna") + "  - Weekly, or daily.\n",
    ),
    "item reworded, child removed": (
        LIST + "  - Daily.\n  - By hand.\n",
        LIST.replace("Ann", "Anna") + "  - Daily.\n  - By hand.\n",
        LIST + "  - By hand.\n",
        LIST.replace("Ann", "Anna") + "  - By hand.\n",
    ),
    "items that touch reworded": (
        "- one thing\n- two things\n",
        "- one small thing\n- two things\n",
        "- one thing\n- two small things\n",
        "- one small thing\n- two small things\n",
    ),
    "renumbered and reworded": (
        NUMBERED,
        "1. zero things\n2. one thing\n3. two things\n4. three things\n",
        NUMBERED.replace("two", "two small"),
        "1. zero things\n2. one thing\n3. two small things\n4. three things\n",
    ),
    "children by tabs reworded": (
        NESTED,
        NESTED.replace("red", "green"),
        NESTED.replace("blue", "yellow"),
        NESTED.replace("red", "green").replace("blue", "yellow"),
    ),
    "child by tabs and its child": (
        NESTED,
        NESTED.replace("blue\n", "blue\n\t\t- in summer\n"),
        NESTED.replace("blue\n", "blue\n\t- pears are green\n"),
        NESTED.replace("blue\n", "blue\n\t\t- in summer\n\t- pears are green\n"),
    ),
    "child by tabs removed, another reworded": (
        NESTED,
        NESTED.replace("\t- apples are red\n", ""),
        NESTED.replace("blue", "yellow"),
        NESTED.replace("\t- apples are red\n", "").replace("blue", "yellow"),
    ),
    "child by tabs and item behind": (
        NESTED,
        NESTED + "\t- carrots are red\n",
        NESTED + "- leaves\n",
        NESTED + "\t- carrots are red\n- leaves\n",
    ),
    "list by tabs below a heading": (
        "# A\n\n\t- none\n\n## B\n- fruit\n\t- apples\n",
        "# A\n\n\t- none\n\n## B\n- fruit\n\t- apples\n\t\t- red\n",
        "# A\n\n\t- none\n\n## B\n- fruit\n\t- apples\n\t- plums\n",
        "# A\n\n\t- none\n\n## B\n- fruit\n\t- apples\n\t\t- red\n\t- plums\n",
    ),
    "section moved, item added to it": (
        "# A\n\n## B\n\n- b\n\n## C\n\n- c\n\n## D\n\n- d\n",
        "# A\n\n## C\n\n- c\n\n## D\n\n- d\n\n## B\n\n- b\n",
        "# A\n\n## B\n\n- b\n- more of b\n\n## C\n\n- c\n\n## D\n\n- d\n",
        "# A\n\n## C\n\n- c\n\n## D\n\n- d\n\n## B\n\n- b\n- more of b\n",
    ),
    "item moved, child added to it": (
        "- one is red\n- two is blue\n- three is green\n- four is grey\n",
        "- two is blue\n- three is green\n- four is grey\n- one is red\n",
        "- one is red\n  - dark red\n- two is blue\n- three is green\n- four is grey\n",
        "- two is blue\n- three is green\n- four is grey\n- one is red\n  - dark red\n",
    ),
    "item made a child, reworded": (
        "- fruit\n- apples are red\n- roots\n",
        "- fruit\n  - apples are red\n- roots\n",
        "- fruit\n- apples are dark red\n- roots\n",
        "- fruit\n  - apples are dark red\n- roots\n",
    ),
    "the same item by both": (LIST, LIST + ROLLBACKS, LIST + ROLLBACKS, LIST + ROLLBACKS),
    "the same item by both, and a child of one": (
        LIST,
        LIST + ROLLBACKS,
        LIST + ROLLBACKS + "  - At once.\n",
        LIST + ROLLBACKS + "  - At once.\n",
    ),
    "the same footnote by both": (
        "One.\n\nTwo.\n",
        "One[^1].\n\nTwo.\n\n[^1]: so\n",
        "One.\n\nTwo[^1].\n\n[^1]: so\n",
        "One[^1].\n\nTwo[^1].\n\n[^1]: so\n",
    ),
    # What git merges cleanly stays, also where a side's text is not finished.
    "fence left open, line added below": (
        "Above.\n\nCode.\n\n- one thing\n- two things\n",
        "Above.\n\n```\nCode.\n\n- one thing\n- two things\n",
        "Above.\n\nCode.\n\n- one thing\n- two things\n- three things\n",
        "Above.\n\n```\nCode.\n\n- one thing\n- two things\n- three things\n",
    ),
}

# As above, where both added at one place: theirs first.
BOTH: dict[str, tuple[str, str, str, str]] = {
    "items": (LIST, LIST + "- Ours.\n", LIST + ROLLBACKS, LIST + ROLLBACKS + "- Ours.\n"),
    "children": (
        LIST,
        LIST + "  - Ours.\n",
        LIST + "  - Theirs.\n",
        LIST + "  - Theirs.\n  - Ours.\n",
    ),
    "rows": (TABLE, TABLE + "| o | o |\n", TABLE + "| t | t |\n", TABLE + "| t | t |\n| o | o |\n"),
    "paragraphs": ("One.\n", "One.\n\nOurs.\n", "One.\n\nTheirs.\n", "One.\n\nTheirs.\n\nOurs.\n"),
    "items with children": (
        LIST,
        LIST + "- Ours.\n  - of ours\n",
        LIST + "- Theirs.\n  - of theirs\n",
        LIST + "- Theirs.\n  - of theirs\n- Ours.\n  - of ours\n",
    ),
    "items with lines": (
        LIST,
        LIST + "- Ours.\n  More of ours.\n",
        LIST + "- Theirs.\n  More of theirs.\n",
        LIST + "- Theirs.\n  More of theirs.\n- Ours.\n  More of ours.\n",
    ),
}


def clean_and_mirrored() -> list[object]:
    cases: list[object] = []
    for name, (*sides, expected) in CLEAN.items():
        base, ours, theirs = sides
        cases.append(pytest.param((base, ours, theirs), expected, id=name))
        cases.append(pytest.param((base, theirs, ours), expected, id=f"{name}, mirrored"))
    cases += [
        pytest.param((b, o, t), expected, id=f"both: {name}") for name, (b, o, t, expected) in BOTH.items()
    ]
    return cases


@pytest.mark.parametrize("ends", [True, False], ids=["", "no final line end"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@cases("sides, expected", clean_and_mirrored())
def test_both_changes_are_kept(sides: Sides, expected: str, newline: str, ends: bool) -> None:
    expected = expected.replace("\n", newline)
    text = merged(sides, newline, ends=ends).text
    assert text == (expected if ends else expected.removesuffix(newline))


# ---------------------------------------------------------------------------------------------- conflicts

SWAPPED = "# A\n\n| what | who |\n| --- | --- |\n| deploys | Ann |\n"
WIDER = "# A\n\n| who | when | what |\n| --- | --- | --- |\n| Ann | Mondays | deploys |\n"
ROW = "| Bob | rollbacks |\n"
AROUND = "# Top\n\nAbove.\n\n{}\n## Below\n\nBelow.\n"
THREE = "- one thing\n- two things\n- three things\n"

CONFLICTS: dict[str, tuple[str, str, str, Marked]] = {
    "columns swapped, row added": (TABLE, SWAPPED, TABLE + ROW, Marked("| deploys | Ann |\n", ROW)),
    "column inserted, row added": (TABLE, WIDER, TABLE + ROW, Marked("| Ann | Mondays | deploys |\n", ROW)),
    "column inserted, row reworded": (
        TABLE,
        WIDER,
        TABLE.replace("deploys", "all deploys"),
        Marked("| Ann | Mondays | deploys |\n", "| Ann | all deploys |\n"),
    ),
    "table made a list, row added": (TABLE, LIST, TABLE + ROW, Marked("", ROW)),
    "table removed, row added": (TABLE + "\nSo.\n", "# A\n\nSo.\n", TABLE + ROW + "\nSo.\n", Marked("", ROW)),
    "list rewritten, item added": (
        THREE,
        "1. uno\n2. due\n",
        THREE + "- four things\n",
        Marked("", "- four things\n"),
    ),
    "list removed, item added": (
        f"Above.\n\n{THREE}\nBelow.\n",
        "Above.\n\nBelow.\n",
        f"Above.\n\n{THREE}- four things\n\nBelow.\n",
        Marked("", "- four things\n"),
    ),
    "item removed, child added": (
        THREE,
        THREE.replace("- two things\n", ""),
        THREE.replace("two things\n", "two things\n  - both red\n"),
        Marked("", "  - both red\n", "- one thing\n- three things\n"),
    ),
    "item removed, line added": (
        THREE,
        THREE.replace("- two things\n", ""),
        THREE.replace("two things\n", "two things\n  both red\n"),
        Marked("", "  both red\n", "- one thing\n- three things\n"),
    ),
    "item removed, reworded": (
        THREE,
        THREE.replace("- two things\n", ""),
        THREE.replace("two things\n", "two small things\n"),
        Marked("", "- two small things\n", "- one thing\n- three things\n"),
    ),
    "section removed, item added": (
        f"{LIST}\n## B\n\n- b\n",
        LIST,
        f"{LIST}\n## B\n\n- b\n- more\n",
        Marked("", "- more\n", "- Deploys go through Ann.\n"),
    ),
    "quote removed, line added": (
        "Above.\n\n> One.\n> Two.\n\nBelow.\n",
        "Above.\n\nBelow.\n",
        "Above.\n\n> One.\n> Two.\n> Three.\n\nBelow.\n",
        Marked("", "> Three.\n", "Above.\nBelow.\n"),
    ),
    "footnote defined twice": (
        "One.\n\nTwo.\n",
        "One[^1].\n\nTwo.\n\n[^1]: of ours\n",
        "One.\n\nTwo[^1].\n\n[^1]: of theirs\n",
        Marked("[^1]: of ours\n", "[^1]: of theirs\n", "One[^1].\nTwo[^1].\n"),
    ),
    "label defined twice": (
        "One.\n\nTwo.\n",
        "[One][a].\n\nTwo.\n\n[a]: https://ours.example\n",
        "One.\n\n[Two][a].\n\n[a]: https://theirs.example\n",
        Marked("[a]: https://ours.example\n", "[a]: https://theirs.example\n", "[One][a].\n[Two][a].\n"),
    ),
    "label of two spellings defined twice": (
        "One.\n\nTwo.\n",
        "[One][a b].\n\nTwo.\n\n[a b]: https://ours.example\n",
        "One.\n\n[Two][A B].\n\n[A B]: https://theirs.example\n",
        Marked("[a b]: https://ours.example\n", "[A B]: https://theirs.example\n"),
    ),
    "id given twice": (
        "- one ^a\n",
        "- one ^a\n- of ours ^b\n",
        "- of theirs ^b\n- one ^a\n",
        Marked("- of ours ^b\n", "- of theirs ^b\n", "- one ^a\n"),
    ),
    "item reworded twice": (
        THREE,
        THREE.replace("two", "two red"),
        THREE.replace("two", "two blue"),
        Marked("- two red things\n", "- two blue things\n", "- one thing\n- three things\n"),
    ),
    "child by tabs reworded twice": (
        NESTED,
        NESTED.replace("red", "green"),
        NESTED.replace("red", "yellow"),
        Marked("\t- apples are green\n", "\t- apples are yellow\n", "- fruit\n\t- plums are blue\n- roots\n"),
    ),
    "row reworded twice": (
        TABLE + ROW,
        TABLE.replace("deploys", "all deploys") + ROW,
        TABLE.replace("deploys", "no deploys") + ROW,
        Marked("| Ann | all deploys |\n", "| Ann | no deploys |\n", ROW),
    ),
    "heading renamed twice": (
        SECTIONS,
        SECTIONS.replace("Old", "Our"),
        SECTIONS.replace("Old", "Their"),
        Marked("## Our name\n", "## Their name\n", "Other words.\n"),
    ),
    "conflict far from other changes": (
        AROUND.format(THREE),
        AROUND.format(THREE.replace("two", "two red")).replace("Above", "Far above"),
        AROUND.format(THREE.replace("two", "two blue")).replace("Below.", "Far below."),
        Marked(
            "- two red things\n",
            "- two blue things\n",
            "Far above.\n- one thing\n- three things\nFar below.\n",
        ),
    ),
    "conflict of a table far from other changes": (
        AROUND.format(TABLE),
        AROUND.format(WIDER).replace("Above", "Far above"),
        AROUND.format(TABLE + ROW).replace("Below.", "Far below."),
        Marked("| Ann | Mondays | deploys |\n", ROW, "Far above.\n## Below\nFar below.\n"),
    ),
    "two conflicts": (
        AROUND.format(THREE),
        AROUND.format(THREE.replace("one", "one red")).replace("Below.", "Far below."),
        AROUND.format(THREE.replace("one", "one blue")).replace("Below.", "Right below."),
        Marked(
            "- one red thing\nFar below.\n",
            "- one blue thing\nRight below.\n",
            "Above.\n- two things\n- three things\n## Below\n",
        ),
    ),
    "lines of a quote, added by both": (
        "> One.\n",
        "> One.\n> Ours.\n",
        "> One.\n> Theirs.\n",
        Marked("> Ours.\n", "> Theirs.\n", "> One.\n"),
    ),
}


def lines_of(text: str) -> tuple[list[str], list[str], list[str]]:
    """The lines outside of conflicts, and those of ours and of theirs in them."""
    places: tuple[list[str], list[str], list[str]] = ([], [], [])
    place = 0
    for line in text.splitlines():
        if line.startswith("<<<<<<< "):
            place = 1
        elif line == "=======" and place:
            place = 2
        elif line.startswith(">>>>>>> "):
            place = 0
        else:
            places[place].append(line)
    return places


@pytest.mark.parametrize("ends", [True, False], ids=["", "no final line end"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mirrored", [False, True], ids=["", "mirrored"])
@cases("name", CONFLICTS)
def test_what_cannot_both_be_kept_is_a_conflict_around_it(
    name: str, mirrored: bool, newline: str, ends: bool
) -> None:
    base, ours, theirs, expected = CONFLICTS[name]
    sides, held = (base, ours, theirs), (expected.ours, expected.theirs)
    if mirrored:
        sides, held = swapped(sides), held[::-1]
    assert merged(sides, newline, ends=ends).text is None
    text = merged(sides, newline, ends=ends, markers=Markers()).text
    assert text is not None
    outside, *between = lines_of(text)
    for lines, wanted in zip((outside, *between), (expected.outside, *held), strict=True):
        missing = [line for line in wanted.splitlines() if line not in lines]
        assert not missing, text
    # Whoever takes one side of every conflict has all lines of that side that the other did not change.
    for lines, side, other in zip(between, sides[1:], sides[:0:-1], strict=True):
        changed = {*base.splitlines()} - {*other.splitlines()}
        assert {*side.splitlines()} - changed - {*outside, *lines} == set(), text


# ---------------------------------------------------------------------------------------------- either

# Right as the text, and acceptable as a conflict.
EITHER: dict[str, tuple[str, str, str, str]] = {
    "bullets changed, item added": (
        THREE,
        THREE.replace("- ", "* "),
        THREE + "- four things\n",
        THREE.replace("- ", "* ") + "* four things\n",
    ),
    "item reworded, line added": (
        LIST,
        LIST.replace("Ann", "Anna"),
        LIST + "  Never on Fridays.\n",
        LIST.replace("Ann", "Anna") + "  Never on Fridays.\n",
    ),
    "made a child, child added": (
        "- fruit\n- apples\n- roots\n",
        "- fruit\n  - apples\n- roots\n",
        "- fruit\n- apples\n  - red ones\n- roots\n",
        "- fruit\n  - apples\n    - red ones\n- roots\n",
    ),
    "lines of a paragraph, far apart": (
        "One.\nTwo.\nThree.\nFour.\n",
        "One!\nTwo.\nThree.\nFour.\n",
        "One.\nTwo.\nThree.\nFour!\n",
        "One!\nTwo.\nThree.\nFour!\n",
    ),
}


@pytest.mark.parametrize("mirrored", [False, True], ids=["", "mirrored"])
@cases("name", EITHER)
def test_a_clean_text_is_the_right_one(name: str, mirrored: bool) -> None:
    base, ours, theirs, expected = EITHER[name]
    sides = (base, ours, theirs)
    assert merged(swapped(sides) if mirrored else sides).text in {None, expected}
