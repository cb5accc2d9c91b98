"""Renaming headings, block ids, ids and tags: what named the old one names the new one, in its own style."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from mdmem.document import anchor
from mdmem.document.document import Document, parse_text
from mdmem.errors import (
    EditRefused,
    FieldNotFound,
    MdmemError,
    NamedNotFound,
    SectionAmbiguous,
    SectionNotFound,
)
from mdmem.index.links.rename import rename_block, rename_heading, rename_id, rename_tag
from tests.tables import cases

if TYPE_CHECKING:
    from tests.index.links.conftest import Notes

# The old and the new title, the memory, and a text that links to it before and after.
HEADINGS: dict[str, tuple[str, str, str, str, str]] = {
    "title and slug": (
        *("Old part", "New (part)", "# Top\n\n## Old part\n"),
        "[[n#Old part]] [[n#old-part|x]] [t](n.md#Old%20part) [[n#OLD PART]] [t](n.md#oldpart)",
        "[[n#New (part)]] [[n#new-part|x]] [t](n.md#New%20(part)) [[n#New (part)]] [t](n.md#new-part)",
    ),
    "nested": (
        *("Old", "New", "# Old\n\n## Sub\n\n# Else\n\n## Sub\n"),
        "[[n#Old#Sub]] [[n#Else#Sub]] [[n#Sub]] [[n#old#sub]] [[n#Old]]",
        "[[n#New#Sub]] [[n#Else#Sub]] [[n#Sub]] [[n#new#sub]] [[n#New]]",
    ),
    "other headings whose number changes": (
        *("A > Old", "New", "# A\n\n## Old\n\n# B\n\n## Old\n"),
        "[t](n.md#old) [t](n.md#old-1) [[n#B#Old]]",
        "[t](n.md#new) [t](n.md#old) [[n#B#Old]]",
    ),
    "a title that others have": (
        *("A > Old", "New", "# A\n\n## Old\n\n# B\n\n## New\n"),
        "[[n#Old]] [t](n.md#old) [[n#New]] [t](n.md#new) [[n#B#New]]",
        "[[n#A#New]] [t](n.md#new) [[n#B#New]] [t](n.md#new-1) [[n#B#New]]",
    ),
    "setext": ("Old part", "New", "Old\npart\n===\n\ntext\n", "[[n#Old part]]", "[[n#New]]"),
    "closing marks": ("Old", "New", "## Old ##\n", "[[n#Old]]", "[[n#New]]"),
    "what a wikilink cannot say": (
        *("Old", "C# | [a](b.md) `x`", "# Old\n"),
        "[[n#Old]] [t](n.md#old) [t](n.md#Old)",
        "[[n#C a x]] [t](n.md#c--a-x) [t](n.md#C%23%20%7C%20a%20x)",
    ),
    "letters of other scripts": (
        "Old",
        "Größe 大",
        "# Old\n",
        "[[n#Old]] [t](n.md#old)",
        "[[n#Größe 大]] [t](n.md#größe-大)",
    ),
    "definitions and fields": (
        *("Old", "New", "# Old\n"),
        "---\nup: '[[n#Old]]'\n---\n[a][r] [r]\n\n[r]: n.md#old 'T'\n",
        "---\nup: '[[n#New]]'\n---\n[a][r] [r]\n\n[r]: n.md#new 'T'\n",
    ),
    "what is none of it": (
        *("Old", "New", "# Old\n\nText ^Old\n"),
        "[[n]] [[n#^Old]] [[n#Gone]] [[m#Old]] [t](https://x.org#old) `[[n#Old]]`",
        "[[n]] [[n#^Old]] [[n#Gone]] [[m#Old]] [t](https://x.org#old) `[[n#Old]]`",
    ),
}


@cases("case", HEADINGS)
def test_anchors_follow_a_heading_in_their_own_style(notes: type[Notes], case: str) -> None:
    old, new, text, before, after = HEADINGS[case]
    vault = notes({"n.md": text, "m.md": before, "x/n.md.md": "# Old\n"})
    plan = rename_heading(vault.known, "n.md", old, new)
    renamed = vault.after(plan)
    assert renamed.texts["m.md"] == after
    title = old.rpartition(" > ")[2]
    assert renamed.texts["n.md"] == text.replace(title, new, 1) or "\n" in text[: text.index("=")]
    assert not plan.left_out


def test_links_of_the_memory_itself_follow_too(notes: type[Notes]) -> None:
    vault = notes(
        {"n.md": "# Old [[#Old]]\n\n[[#Old [[#Old]]]] [x](#old-old) [[n#^b]]\n", "m.md": "[[#old-old]]"}
    )
    plan = rename_heading(vault.known, "n.md", "Old [[#Old]]", "New")
    assert vault.after(plan).texts["n.md"].startswith("# New\n")
    vault = notes({"n.md": "# A\n\n[[#A]] [x](#a) [[n#A]] [[#B]]\n\n# B\n", "m.md": "[[#A]]\n\n# A\n"})
    plan = rename_heading(vault.known, "n.md", "A", "C")
    assert vault.after(plan).texts == {
        "n.md": "# C\n\n[[#C]] [x](#c) [[n#C]] [[#B]]\n\n# B\n",
        "m.md": "[[#A]]\n\n# A\n",
    }


def test_a_setext_heading_of_several_lines_becomes_one_line(notes: type[Notes]) -> None:
    vault = notes({"n.md": "> q\n\nOld\r\n  part\r\n---\r\ntext\r\n"})
    plan = rename_heading(vault.known, "n.md", "Old part", "New")
    assert vault.after(plan).texts["n.md"] == "> q\n\nNew\r\n---\r\ntext\r\n"


def test_an_ambiguous_anchor_or_link_is_left_and_reported(notes: type[Notes]) -> None:
    text = "# A\n\n## Old\n\n# B\n\n## Old\n"
    vault = notes({"n.md": text, "m.md": "x\n[[n#Old]]"})
    plan = rename_heading(vault.known, "n.md", "A > Old", "New")
    assert vault.after(plan).texts["m.md"] == "x\n[[n#Old]]"
    assert plan.left_out == ("m.md:2: #Old stays as it is, as it could mean several",)
    vault = notes({"a/n.md": "# Old\n", "b/n.md": "# Old\n", "m.md": "[[n#Old]]"})
    plan = rename_heading(vault.known, "a/n.md", "Old", "New")
    assert vault.after(plan).texts["m.md"] == "[[n#Old]]"
    assert plan.left_out == ("m.md:1: #Old stays as it is, as it could mean several",)


@cases("new", ["", "  ", "a\nb", "a #", "New", "Title ^id"])
def test_a_title_that_cannot_be_one_is_refused(notes: type[Notes], new: str) -> None:
    vault = notes({"n.md": "# Top\n\n## Old\n\n## New\n"})
    with pytest.raises(EditRefused):
        rename_heading(vault.known, "n.md", "Old", new)


def test_a_heading_keeps_its_block_id(notes: type[Notes]) -> None:
    vault = notes({"n.md": "# Old ^id\n"})
    with pytest.raises(EditRefused, match=r"keep its \^id"):
        rename_heading(vault.known, "n.md", "Old ^id", "New")
    assert (
        vault.after(rename_heading(vault.known, "n.md", "Old ^id", "New ^id")).texts["n.md"] == "# New ^id\n"
    )


def test_a_heading_that_is_not_there_or_not_alone_is_refused(notes: type[Notes]) -> None:
    vault = notes({"n.md": "# A\n\n# A\n"})
    with pytest.raises(SectionNotFound):
        rename_heading(vault.known, "n.md", "B", "C")
    with pytest.raises(SectionAmbiguous):
        rename_heading(vault.known, "n.md", "A", "C")


titles = st.text(st.sampled_from("abAB 1-_#|*`é字.()"), min_size=1, max_size=8).map(
    lambda text: " ".join(text.split())
)
levels = st.integers(1, 3)


@given(st.lists(st.tuples(levels, titles), min_size=1, max_size=6), titles, st.data())
def test_every_sure_anchor_names_the_same_heading_after_any_rename(
    notes: type[Notes], given_headings: list[tuple[int, str]], new: str, data: st.DataObject
) -> None:
    text = "".join(f"{'#' * level} {title}\n\n" for level, title in given_headings)
    document = parse_text("n.md", text)
    headings = anchor.headings(document.sections)
    ways = [way for h in headings for way in (h.slug, h.path[-1], "#".join(h.path))]
    links = [f"[[n#{way}]]\n" for way in ways if not set(way) & set("|`")] + [
        f"[t](n.md#{h.slug})\n" for h in headings
    ]
    vault = notes({"n.md": text, "m.md": "".join(links)})
    number = data.draw(st.integers(0, len(headings) - 1))
    try:
        plan = rename_heading(vault.known, "n.md", " > ".join(headings[number].path), new)
    except MdmemError:
        return
    renamed = vault.after(plan)
    after = anchor.headings(renamed.documents["n.md"].sections)
    pairs = zip(vault.documents["m.md"].links, renamed.documents["m.md"].links, strict=True)
    for old, link in pairs:
        was = anchor.match(headings, old.anchor)
        if was and not was.ambiguous:
            found = anchor.match(after, link.anchor)
            assert found is not None
            assert found.indexes == was.indexes


# ------------------------------------------------------------------------------------------------ blocks


def test_a_block_id_is_renamed_with_its_links(notes: type[Notes]) -> None:
    vault = notes(
        {
            "n.md": "# A ^b\n\nFact. ^old-1\n\n[[#^old-1]]\n",
            "m.md": "[[n#^old-1|x]] ![[n#^OLD-1]] [t](n.md#^old-1) [t](n.md#%5Eold-1) [[o#^old-1]]",
            "o.md": "Other. ^old-1\n",
        }
    )
    plan = rename_block(vault.known, "n.md", "old-1", "^new")
    assert vault.after(plan).texts == {
        "n.md": "# A ^b\n\nFact. ^new\n\n[[#^new]]\n",
        "m.md": "[[n#^new|x]] ![[n#^new]] [t](n.md#^new) [t](n.md#^new) [[o#^old-1]]",
        "o.md": "Other. ^old-1\n",
    }
    assert plan.message == "rename ^old-1 of n.md to ^new"


@cases("old, new", [("a", "b"), ("a", "B"), ("a", "x y"), ("a", ""), ("a", "ä"), ("c", "d")])
def test_a_block_id_that_cannot_be_is_refused(notes: type[Notes], old: str, new: str) -> None:
    vault = notes({"n.md": "1 ^a\n2 ^b\n3 ^c\n4 ^c\n"})
    with pytest.raises(EditRefused):
        rename_block(vault.known, "n.md", old, new)


def test_a_block_id_that_is_not_there_is_refused(notes: type[Notes]) -> None:
    with pytest.raises(NamedNotFound, match="there is: a"):
        rename_block(notes({"n.md": "1 ^a\n"}).known, "n.md", "x", "y")


# --------------------------------------------------------------------------------------------------- ids


@cases(
    "id_, new, before, after",
    [
        ("a-1", "b 2", "{}: a-1\n", "{}: b 2\n"),
        ("a-1", "b-2", "{}: [x, a-1, 'a-1', \"a-1\"] # a-1\n", "{}: [x, b-2, 'b-2', \"b-2\"] # a-1\n"),
        ("7", "8", "{}: 7\n", '{}: "8"\n'),
        ("a-1", "null", "{}:\n  - a-1\n", '{}:\n  - "null"\n'),
    ],
)
def test_an_id_is_renamed_with_the_lineage_that_names_it(
    notes: type[Notes], id_: str, new: str, before: str, after: str
) -> None:
    for field in ("superseded_by", "derived_from"):
        vault = notes({"n.md": f"---\nid: {id_}\n---\n", "m.md": f"---\n{before.format(field)}---\n"})
        renamed = vault.after(rename_id(vault.known, "n.md", new))
        assert renamed.texts["m.md"] == f"---\n{after.format(field)}---\n"


def test_a_heading_is_renamed_with_the_lineage_that_names_it(notes: type[Notes]) -> None:
    vault = notes({"n.md": "# Old\n", "m.md": "---\nderived_from: n.md#Old\n---\n"})

    renamed = vault.after(rename_heading(vault.known, "n.md", "Old", "New: it"))

    assert renamed.texts["m.md"] == '---\nderived_from: "n.md#New: it"\n---\n'


def test_an_id_is_renamed_with_the_wikilinks_that_use_it(notes: type[Notes]) -> None:
    vault = notes(
        {
            "n.md": "---\nid: old # mine\n---\n[[old#A]] [[n]]\n# A\n",
            "m.md": "[[old]] [[old#A|x]] ![[old]] [t](old) [[n]] [[./old]]",
            "old.md": "[[old]]",
        }
    )
    plan = rename_id(vault.known, "n.md", "new-1")
    assert vault.after(plan).texts == {
        "n.md": "---\nid: new-1 # mine\n---\n[[new-1#A]] [[n]]\n# A\n",
        "m.md": "[[new-1]] [[new-1#A|x]] ![[new-1]] [t](old) [[n]] [[./old]]",
        "old.md": "[[new-1]]",
    }
    assert not plan.left_out


def test_an_id_does_not_capture_links_to_others(notes: type[Notes]) -> None:
    vault = notes({"n.md": "---\nid: old\n---\n", "a/new.md": "", "m.md": "[[new]] [[a/new]] [[old]]"})
    assert vault.after(rename_id(vault.known, "n.md", "new")).texts["m.md"] == "[[a/new]] [[a/new]] [[new]]"


def test_an_id_that_two_memories_have_is_left_and_reported(notes: type[Notes]) -> None:
    vault = notes({"a.md": "---\nid: i\n---\n", "b.md": "---\nid: i\n---\n", "m.md": "[[i]]"})
    plan = rename_id(vault.known, "a.md", "j")
    assert vault.after(plan).texts["m.md"] == "[[i]]"
    assert len(plan.left_out) == 1


@cases("new", ["", "a|b", "a#b", "[a]", " a", "./a", "/a", "a\nb", "taken"])
def test_an_id_that_cannot_be_is_refused(notes: type[Notes], new: str) -> None:
    vault = notes({"n.md": "---\nid: old\n---\n", "o.md": "---\nid: taken\n---\n"})
    with pytest.raises(EditRefused):
        rename_id(vault.known, "n.md", new)


def test_a_memory_without_an_id_has_none_to_rename(notes: type[Notes]) -> None:
    with pytest.raises(FieldNotFound):
        rename_id(notes({"n.md": "---\ntitle: x\n---\n"}).known, "n.md", "new")


def test_a_json_memory_has_an_id_too(notes: type[Notes]) -> None:
    vault = notes({"n.json": '{"id": "old",  "x": 1}', "m.md": "[[old]]"})
    assert vault.after(rename_id(vault.known, "n.json", "new")).texts == {
        "n.json": '{"id": "new",  "x": 1}',
        "m.md": "[[new]]",
    }


# -------------------------------------------------------------------------------------------------- tags


def documents(**texts: str) -> list[Document]:
    return [parse_text(f"{name}.md", text) for name, text in texts.items()]


def test_a_tag_is_renamed_in_fields_and_body_with_those_under_it(notes: type[Notes]) -> None:
    vault = notes(
        {
            "a.md": "---\ntags: [old, 'old/sub', older]\n---\n#old, #Old/Sub #older `#old`\n",
            "b.md": "---\ntags: x old, y\n---\n",
            "c.md": "#other",
        }
    )
    plan = rename_tag(
        [vault.documents[path] for path in ("a.md", "b.md", "c.md")], "#old", "new/er", ["old", "other"]
    )
    assert vault.after(plan).texts == {
        "a.md": "---\ntags: [new/er, 'new/er/sub', older]\n---\n#new/er, #new/er/Sub #older `#old`\n",
        "b.md": "---\ntags: x new/er, y\n---\n",
        "c.md": "#other",
    }
    assert plan.message == "rename the tag #old to #new/er"


@cases(
    "text",
    [
        '+++\ntitle = "old"\ntags = ["x", "old", \'old/a\']\n+++\n',
        '{"title": "old", "tags": ["old", "x"]}\n',
        "---\ntitle: old: x\ntags: [old]\n---\n",
    ],
)
def test_a_tag_is_renamed_where_the_frontmatter_cannot_be_edited(notes: type[Notes], text: str) -> None:
    vault = notes({"a.md": text})
    before, _, behind = text.partition("tags")
    after = vault.after(rename_tag(vault.documents.values(), "old", "new", ["old"])).texts["a.md"]
    assert after == f"{before}tags{behind.replace('old', 'new')}"


def test_a_tag_may_change_its_case(notes: type[Notes]) -> None:
    vault = notes({"a.md": "#old #OLD/x"})
    plan = rename_tag(vault.documents.values(), "old", "Old", ["old", "OLD/x"])
    assert vault.after(plan).texts["a.md"] == "#Old #Old/x"


@cases("new", ["", "a b", "12", "a,b", "a#b", "/a/", "a/", "."])
def test_a_name_that_cannot_be_a_tag_is_refused(new: str) -> None:
    with pytest.raises(EditRefused, match="cannot be a tag"):
        rename_tag(documents(a="Text #old.\n"), "old", new, ["old"])


@cases("new", ["no: x", "a, b", "[x]"])
def test_a_name_that_the_frontmatter_would_read_otherwise_is_refused(new: str) -> None:
    with pytest.raises(EditRefused, match="cannot be a tag"):
        rename_tag(documents(a="---\ntags: [old]\n---\n"), "old", new, ["old"])


@pytest.mark.parametrize("tags", [["old", "New"], ["old/x", "new/x"]])
def test_a_tag_that_is_there_is_not_made_of_another(tags: list[str]) -> None:
    with pytest.raises(EditRefused, match="there is a tag"):
        rename_tag(documents(a=f"#{tags[0]}"), "old", "new", tags)


def test_a_tag_that_is_not_there_is_refused() -> None:
    with pytest.raises(NamedNotFound):
        rename_tag(documents(a="#older"), "old", "new", ["older"])


tag_names = st.text(st.sampled_from("ab1_-/é"), min_size=1, max_size=6)


@given(st.lists(tag_names, min_size=1, max_size=6), tag_names)
def test_after_any_rename_the_tags_are_the_wanted_ones(names: list[str], new: str) -> None:
    text = f"---\ntags: [{', '.join(map(repr, names))}]\n---\n" + " ".join(f"#{name}" for name in names)
    document = parse_text("a.md", text)
    old = names[0]
    before = [tag.name for tag in document.tags]
    try:
        plan = rename_tag([document], old, new, before)
    except MdmemError:
        return
    after = plan.changes[0].after(document.limits)
    assert after is not None
    assert len(after.tags) == len(before)
    changed = [(tag.name, name) for tag, name in zip(after.tags, before, strict=True) if tag.name != name]
    assert all(now.startswith(new) and was.casefold().startswith(old.casefold()) for now, was in changed)


@cases(
    "old, line",
    [
        ("setup-1", 3),
        ("L1", 1),
        ("L3", 3),
        ("Use x and y", 5),
        ("Start", 7),
        ("Start {#go}", 7),
    ],
)
def test_a_heading_is_named_by_its_slug_its_line_or_what_is_shown_of_it(
    notes: type[Notes], old: str, line: int
) -> None:
    text = "## setup\n\n## setup\n\n## Use `x` and *y*\n\n## Start {#go}\n"
    vault = notes({"a.md": text, "b.md": "[g](a.md#go) [s](a.md#setup-1)"})
    renamed = vault.after(rename_heading(vault.known, "a.md", old, "New"))
    changed = [
        n
        for n, (was, now) in enumerate(
            zip(text.splitlines(), renamed.texts["a.md"].splitlines(), strict=True), 1
        )
        if was != now
    ]
    assert changed == [line]
    assert "(a.md#go)" in renamed.texts["b.md"]
    assert ("{#go}" in renamed.texts["a.md"]) is True


def test_equal_headings_are_told_apart_by_their_slugs_or_lines(notes: type[Notes]) -> None:
    with pytest.raises(SectionAmbiguous) as caught:
        rename_heading(notes({"a.md": "## setup\n\n## setup\n"}).known, "a.md", "## setup", "New")
    assert caught.value.own == ("L1", "L3")
