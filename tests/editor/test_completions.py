"""What is offered while somebody types, and that choosing it writes what it says.

In a case, `|` is where somebody types, and `⟦…⟧` in what is expected is what was written.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.document.document import DEFAULT_LIMITS, parse_text
from mdmem.index.links.resolve import resolve_link
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.editor.completions import Completion, Completions
    from mdmem.editor.editing import Editing

MEMORIES = {
    "notes/database.md": "---\nid: db-1\naliases: [storage engine]\ntitle: The database\n---\n"
    "# Choice\n\n## Why\n\nfact ^f1\n\nno id\n\n## Other\n\n### Why\n",
    "notes/deploy.md": "# Deploy\n\n#infra #infra/ci\n",
    "x/twin.md": "# Twin one\n",
    "y/twin.md": "# Twin two\n",
    "a b/c (d).md": "# Odd\n",
}


@pytest.fixture(scope="module")
def editing(tmp_path_factory: pytest.TempPathFactory) -> Editing:
    root = tmp_path_factory.mktemp("vault") / "memories"
    mdmem.init(root)
    for path, text in MEMORIES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / ".mdmem/schemas").mkdir(parents=True, exist_ok=True)
    (root / ".mdmem/schemas/bug.json").write_text(
        '{"type": "object", "required": ["state"], "properties": {"state": {"enum": ["open", "closed"],'
        ' "description": "Where it *stands*."}, "deep": {"$ref": "#/$defs/deep"}, "loop": {"$ref": "#"}},'
        ' "$defs": {"deep": {"type": "object", "properties": {"sure": {"type": "boolean"}}}}}'
    )
    return mdmem.open(root).editing()


def typed(editing: Editing, case: str, path: str = "notes/mine.md") -> tuple[str, Completions]:
    offset = case.index("|")
    text = case[:offset] + case[offset + 1 :]
    editing.open(path, text)
    return text, editing.completions(path, offset)


def chosen(text: str, item: Completion) -> str:
    start, end, new = item.edit
    return text[:start] + new + text[end:]


CASES = {
    "a name": ("[[dat|", "[[database]]"),
    "a name that is closed already": ("[[dat|]] and", "[[database]] and"),
    "amid a name": ("[[dat|xyz]] and", "[[database]] and"),
    "an anchor stays": ("[[dat|#Why]]", "[[database#Why]]"),
    "an embed": ("![[dat|", "![[database]]"),
    "after an emoji": ("😀 [[dat|", "😀 [[database]]"),
    "an alias": ("[[storage|", "[[database]]"),
    "a title": ("[[The data|", "[[database]]"),
    "an id": ("[[db-1|", "[[database]]"),
    "a path": ("[[notes/dep|", "[[deploy]]"),
    "an ambiguous name": ("[[x/tw|", "[[x/twin]]"),
    "a heading": ("[[database#Cho|", "[[database#Choice]]"),
    "a heading that is closed": ("[[database#Cho|]]", "[[database#Choice]]"),
    "a heading of two": ("[[database#Oth|er#W]]", "[[database#Other]]"),
    "its own heading": ("# Here\n\n[[#He|]]", "# Here\n\n[[#Here]]"),
    "a block": ("[[database#^f|", "[[database#^f1]]"),
    "its own block": ("one ^b1\n\n[[^b|]]", "one ^b1\n\n[[#^b1]]"),
    "a destination": ("[x](data|", "[x](database.md)"),
    "a destination that is closed": ("[x](data|)", "[x](database.md)"),
    "a destination with a title": ("[x](data| 'T')", "[x](database.md 'T')"),
    "a destination elsewhere": ("[x](odd|)", "[x](../a%20b/c%20(d).md)"),
    "a destination in angles": ("[x](<odd|>)", "[x](<../a b/c (d).md>)"),
    "a rooted destination": ("[x](/notes/data|)", "[x](/notes/database.md)"),
    "a slug": ("[x](database.md#cho|)", "[x](database.md#choice)"),
    "a tag": ("see #inf|", "see #infra"),
    "a link in a field": ("---\nsee: '[[dat|'\n---\n", "---\nsee: '[[database]]'\n---\n"),
    "lineage": ("---\nderived_from: dat|\n---\n", "---\nderived_from: database\n---\n"),
    "a key": ("---\ntype: bug\nsta|\n---\n", "---\ntype: bug\nstate: \n---\n"),
    "a value": ("---\ntype: bug\nstate: cl|\n---\n", "---\ntype: bug\nstate: closed\n---\n"),
    "a key below": ("---\ntype: bug\ndeep:\n  su|\n---\n", "---\ntype: bug\ndeep:\n  sure: \n---\n"),
    "a boolean": ("---\ntype: bug\ndeep:\n  sure: t|\n---\n", "---\ntype: bug\ndeep:\n  sure: true\n---\n"),
    "a type": ("---\ntype: bu|\n---\n", "---\ntype: bug\n---\n"),
    "a tag of a list": ("---\ntags: [a, infr|\n---\n", "---\ntags: [a, infra\n---\n"),
    "a tag of a block list": ("---\ntags:\n  - infr|\n---\n", "---\ntags:\n  - infra\n---\n"),
    "in code": ("`[[dat|` x", None),
    "in a fence": ("```\n[[dat|\n```", None),
    "escaped": ("\\[[dat|", None),
    "a closed link": ("[[database]] dat|", None),
    "the mark of a heading": ("##|", None),
    "text": ("dat|", None),
}


@cases("case", CASES)
def test_what_is_chosen_is_written(editing: Editing, case: str) -> None:
    given_, expected = CASES[case]
    text, found = typed(editing, given_)
    assert (chosen(text, found.items[0]) if found.items else None) == expected


@cases(
    "form, here, beside, below",
    [
        ("shortest", "sub/n/mine.md", "db", "deep"),
        ("absolute", "sub/n/mine.md", "n/db", "n/in/deep"),
        ("relative", "sub/n/mine.md", "db", "in/deep"),
        ("relative", "sub/o/mine.md", "../n/db", "../n/in/deep"),
        ("absolute", "elsewhere.md", "db", "deep"),
    ],
)
def test_a_new_wikilink_has_the_form_that_obsidian_is_set_to(
    tmp_path: Path, form: str, here: str, beside: str, below: str
) -> None:
    mdmem.init(tmp_path)
    settings_of = {"sub/.obsidian/app.json": f'{{\n  "newLinkFormat": "{form}"\n}}'}
    for path, text in {"sub/n/db.md": "", "sub/n/in/deep.md": "", **settings_of}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    editing = mdmem.open(tmp_path).editing()
    for name, expected in (("db", beside), ("deep", below)):
        _, found = typed(editing, f"[[{name}|", here)
        assert found.items[0].edit.new == f"{expected}]]"


def test_an_alias_that_stands_there_stays(editing: Editing) -> None:
    editing.open("notes/mine.md", "| [[dat\\|x]] |")
    (first, *_) = editing.completions("notes/mine.md", 7).items
    assert chosen("| [[dat\\|x]] |", first) == "| [[database\\|x]] |"
    editing.open("notes/mine.md", "[[dat|x]]")
    (first, *_) = editing.completions("notes/mine.md", 5).items
    assert chosen("[[dat|x]]", first) == "[[database|x]]"


def test_a_heading_that_stands_twice_is_named_by_the_one_above(editing: Editing) -> None:
    _, found = typed(editing, "[[database#why|")
    assert [item.edit.new for item in found.items] == ["why]]", "Other#Why]]"]


def test_a_block_without_an_id_gets_one_when_it_is_chosen(editing: Editing) -> None:
    text, found = typed(editing, "[[database#^no|")
    (item,) = (each for each in found.items if each.plan)
    assert item.plan
    (change,) = item.plan.changes
    after = change.after(DEFAULT_LIMITS)
    assert after
    link = parse_text("notes/mine.md", chosen(text, item)).links[0]
    assert [block.id for block in after.blocks if f"^{block.id}" == link.anchor]
    assert "no id ^" in after.text


@pytest.mark.skipif(sys.platform == "win32", reason="no file has such a name there")
def test_a_name_that_begins_like_a_url_is_offered_as_a_path(tmp_path: Path) -> None:
    mdmem.init(tmp_path / "memories")
    (tmp_path / "memories/Design: draft.md").write_text("# Draft\n")
    editing = mdmem.open(tmp_path / "memories").editing()
    text, found = typed(editing, "[x](Dra|", "mine.md")
    (link,) = parse_text("mine.md", chosen(text, found.items[0])).links
    assert link.target == "./Design: draft.md"


def test_what_is_left_out_is_counted(editing: Editing) -> None:
    editing.open("notes/mine.md", "[[")
    found = editing.completions("notes/mine.md", 2, 2)
    assert (len(found.items), found.left_out) == (2, 3)


def test_what_is_there_already_is_not_offered_again(editing: Editing) -> None:
    _, found = typed(editing, "---\ntitle: x\n|\n---\n")
    labels = [item.label for item in found.items]
    assert "tags" in labels
    assert "title" not in labels


def test_a_field_is_explained_and_nothing_of_it_means_anything(editing: Editing) -> None:
    text = "---\ntype: bug\nstate: open\n---\n"
    editing.open("notes/mine.md", text)
    hover = editing.hover("notes/mine.md", text.index("state") + 2)
    assert hover
    assert hover.text == "Where it \\*stands\\*. One of `open`, `closed`. It has to be there."


PIECES = (
    "[[",
    "]]",
    "[x](",
    ")",
    "#",
    "^",
    "|",
    "\\|",
    "dat",
    "notes/",
    "`",
    "```\n",
    "\n",
    "\r\n",
    "---\n",
    "tags: ",
    "- ",
    "😀",
    "<",
    ">",
    "type: ",
    " ",
    "\t",
    "\u2028",
    "[[#",
    "![[",
)


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.integers(0, 60))
def test_any_text_is_answered_at_any_offset(editing: Editing, pieces: list[str], offset: int) -> None:
    text = "".join(pieces)
    editing.open("notes/mine.md", text)
    found = editing.completions("notes/mine.md", offset)
    for item in found.items:
        assert 0 <= item.edit.start <= min(offset, len(text)) <= item.edit.end <= len(text)
        assert item.label.isprintable()


@settings(max_examples=examples(100))
@given(st.integers(0, 1 << 32))
def test_a_chosen_memory_is_the_one_that_the_link_means(editing: Editing, seed: int) -> None:
    chance = random.Random(seed)
    path = chance.choice(("mine.md", "notes/mine.md", "x/y/mine.md"))
    begin, end = chance.choice(
        (("[[", ""), ("[[", "]]"), ("![[", "|x]]"), ("[t](", ")"), ("[t](<", ">)"), ("[t](/", ""))
    )
    word = chance.choice(("", "t", "tw", "da", "notes", "odd", "e"))
    text = chance.choice(("", "😀 ", "- ", "> ")) + begin + word
    editing.open(path, text + end)
    for item in editing.completions(path, len(text)).items:
        document = parse_text(path, chosen(text + end, item))
        (link,) = document.links
        meant = resolve_link(editing.around(), link, path)
        assert (meant.path, meant.ambiguous) == (item.detail, False)
    editing.close(path)
