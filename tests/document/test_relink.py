"""Rewriting the target or the anchor of a link: it keeps its style, and nothing else changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings, strategies as st

from mdmem.document.document import Document, parse_text
from mdmem.document.edit import TextEdit, splice
from mdmem.document.relink import destination, is_wikilink, reanchor, repath, retarget
from mdmem.errors import EditRefused
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.document.markdown.inline import Link

# Every way to write a link to `old dir/old.md` with the anchor `Part one`, among other things.
STYLES = {
    "wikilink": "See [[old dir/old#Part one|the alias]] and [[other]].\n",
    "wikilink with suffix": "[[old dir/old.md#Part one]]\n",
    "embed": "- ![[old dir/old#Part one]]\n",
    "table": "|a|b|\n|-|-|\n|[[old dir/old#Part one\\|alias]] | [x](old%20dir/old.md#Part%20one)|\n",
    "markdown": "A [text](old%20dir/old.md#Part%20one 'a title'), and more (here).\n",
    "angles": "A [text](<old dir/old.md#Part one> 'a title')\n",
    "escapes": "A [text](old&#32;dir/old.md#Part%20one)\n",
    "image": "![alt [x]](old%20dir/old.md#Part%20one)\n",
    "query": "![p](old%20dir/old.md?raw=true#Part%20one)\n",
    "html": 'Text <a class="x" href="old%20dir/old.md#Part%20one">t</a>\n',
    "a block of html": "<p>\n<img alt='x' src='old%20dir/old.md?x=1#Part%20one'></p>\n",
    "definition": "[text][ref] and [ref]\n\n[ref]: old%20dir/old.md#Part%20one 'Title'\n",
    "definition in angles": "[ref][]\n\n> [ref]: <old dir/old.md#Part one>\n",
    "heading": "# On [[old dir/old#Part one]]\n",
    "over lines": "[a\nb](\nold%20dir/old.md#Part%20one\n'title')\r\n",
    "field in double quotes": '---\nup: "[[old dir/old#Part one|x]]"\n---\nBody\n',
    "field in single quotes": "---\nup: '[[old dir/old#Part one|x]]'\n---\n",
    "plain field": "---\nup: see [[old dir/old#Part one]] # why\nlist: [x, y]\n---\n",
    "markdown in a field": '---\nlist:\n  - "[t](old%20dir/old.md#Part%20one)"\n---\n',
    "block scalar": "---\nup: |\n  [[old dir/old#Part one]]\n---\n",
}


def old_links(document: Document) -> list[Link]:
    return [link for link in document.links if link.target.startswith("old dir/old")]


def rewritten(text: str, edit_of: Callable[[Link, str], TextEdit]) -> Document:
    document = parse_text("a.md", text)
    links = old_links(document)
    assert links, text
    edits = {edit_of(link, text) for link in links}
    return parse_text("a.md", splice(text, edits))


def outside(text: str, links: list[Link], part: str) -> str:
    """A text without what is written in one part of the links."""
    spans = {link.target_span if part == "target" else link.anchor_span for link in links}
    return splice(text, {TextEdit(start, end, "") for start, end in spans})


def assert_only_changed(text: str, edit_of: Callable[[Link, str], TextEdit], part: str, new: str) -> Document:
    """Make the edits; each link must say `new` in that part, and all else be as before."""
    before = parse_text("a.md", text)
    after = rewritten(text, edit_of)
    assert len(after.links) == len(before.links)
    changed = []
    for old, link in zip(before.links, after.links, strict=True):
        says = {"target": old.target, "anchor": old.anchor} | (
            {part: new} if old in old_links(before) else {}
        )
        assert (link.kind, link.embed, link.line, link.alias) == (old.kind, old.embed, old.line, old.alias)
        assert {"target": link.target, "anchor": link.anchor} == says
        changed += [link] if old in old_links(before) else []
    assert outside(after.text, changed, part) == outside(text, old_links(before), part)
    return after


@cases("style", STYLES)
@pytest.mark.parametrize("new", ["new", "../new folder/n.md", "/a/b/c.md", "old dir/deep/x.md", "./ä/ö.md"])
def test_a_link_gets_another_target_and_keeps_all_else(style: str, new: str) -> None:
    assert_only_changed(STYLES[style], lambda link, text: retarget(link, text, new), "target", new)


@cases("style", STYLES)
@pytest.mark.parametrize("new", ["Part two", "part-two", "^block-1", "A#B", "Ä"])
def test_a_link_gets_another_anchor_and_keeps_all_else(style: str, new: str) -> None:
    assert_only_changed(STYLES[style], lambda link, text: reanchor(link, text, new), "anchor", new)


@cases(
    "before, new, after",
    [
        ("[t](old.md)", "a b.md", "[t](a%20b.md)"),
        ("[t](<old.md>)", "a b.md", "[t](<a b.md>)"),
        ("[t](<a%20b/old.md>)", "a c/x y.md", "[t](<a c/x y.md>)"),
        ("[t](<a b/old.md>)", "a b/x (1).md", "[t](<a b/x (1).md>)"),
        ("[t](<old.md>)", "a<b>.md", "[t](<a%3Cb%3E.md>)"),
        ("[t](old.md)", "a(1).md", "[t](a(1).md)"),
        ("[t](old.md)", "a(1.md", "[t](a%281.md)"),
        ("[t](old.md)", "a)1(.md", "[t](a%291%28.md)"),
        ("[t](o%28ld.md)", "a(1).md", "[t](a(1).md)"),
        (r"[t](o\(ld\).md)", "a(1.md", "[t](a%281.md)"),
        ("[t](a(b/c)d.md)", "x/c)d.md", "[t](x/c%29d.md)"),
        ("[t](old.md)", "50%20off.md", "[t](50%2520off.md)"),
        ("[t](old.md)", "C#.md", "[t](C%23.md)"),
        ("[t](old.md)", "Day 1: start.md", "[t](Day%201:%20start.md)"),
        ("[t](old.md)", "Design: x.md", "[t](Design%3A%20x.md)"),
        ("[t](<old.md>)", "a0:b:c/d.md", "[t](<a0%3Ab:c/d.md>)"),
        ("<img src='old.md'>", "A0:.md", "<img src='A0%3A.md'>"),
        ("[t](old.md)", "x/A0:.md", "[t](x/A0:.md)"),
        ("[t](old.md)", "note:10", "[t](note%3A10)"),
        ("[t](old.md)", "a?b.md", "[t](a%3Fb.md)"),
        ("[t](old.md)", "a&amp;b.md", "[t](a%26amp;b.md)"),
        ("[t](old.md)", "R & D.md", "[t](R%20&%20D.md)"),
        ("[t](old.md)", "a`b[[c]].md", "[t](a%60b%5B%5Bc%5D%5D.md)"),
        ("[t](old.md)", "é/ü.md", "[t](é/ü.md)"),
        ("[t](%C3%A9/old.md)", "é/ü.md", "[t](%C3%A9/ü.md)"),
        ("[t](é/old.md)", "é/ü x.md", "[t](é/ü%20x.md)"),
        ("[t](old&#46;md)", "n/old.md", "[t](n/old&#46;md)"),
        ("[t](a%2Db/old.md)", "../a-b/new.md", "[t](../a%2Db/new.md)"),
        ("[t](old.md)", "a\u2003b.md", "[t](a%E2%80%83b.md)"),
        ("[[old]]", "a b (1)", "[[a b (1)]]"),
        ("[[ old |x]]", "new", "[[ new |x]]"),
        ("| a |\n|---|\n| [t](old.md) |", "x|y.md", "| a |\n|---|\n| [t](x%7Cy.md) |"),
        ("---\nup: '[t](./old.md)'\n---\n", "./it's.md", "---\nup: '[t](./it%27s.md)'\n---\n"),
        ('---\nup: "[[old]]"\n---\n', "it's", '---\nup: "[[it\'s]]"\n---\n'),
    ],
)
def test_what_a_destination_cannot_hold_is_percent_encoded(before: str, new: str, after: str) -> None:
    link = parse_text("a.md", before).links[0]
    text = splice(before, [retarget(link, before, new)])
    assert text == after
    assert parse_text("a.md", after).links[0].target == new


@cases("new", ["a#b", "a|b", "a]]b", "[a", "a`b", " a", "a\nb", ""])
def test_a_wikilink_refuses_what_it_cannot_hold(new: str) -> None:
    text = "line\n[[old]]\n"
    link = parse_text("a.md", text).links[0]
    with pytest.raises(EditRefused) as caught:
        retarget(link, text, new)
    assert "line 2" in caught.value.message
    assert "[text](path)" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("---\nup: '[[old#x]]'\n---\n", "it's"),
        ('---\nup: "[[old#x]]"\n---\n', 'say "hi"'),
        ("---\nup: see [[old#x]]\n---\n", "Design: the index"),
    ],
)
def test_a_field_refuses_what_would_need_escapes(text: str, anchor: str) -> None:
    link = parse_text("a.md", text).links[0]
    with pytest.raises(EditRefused, match="other quotes"):
        reanchor(link, text, anchor)


def test_links_in_fields_are_told_apart_by_their_brackets() -> None:
    text = '---\na: "[[x]]"\nb: "![[x]]"\nc: "[t](./x.md)"\n---\n'
    assert [is_wikilink(link, text) for link in parse_text("a.md", text).links] == [True, True, False]


@cases(
    "before, new, after",
    [
        ("`src/a.py#L2`", "src/b c.py", "`src/b c.py#L2`"),
        ("See src/a.py:2-3.", "lib/b.py", "See lib/b.py:2-3."),
        ("[t](../src/a.py#L2 'T')", "../src/b (c.py", "[t](../src/b%20%28c.py#L2 'T')"),
        ("[t](../src/a.py?plain=1#L2)", "../b.py", "[t](../b.py?plain=1#L2)"),
        ("[t](<../src/a.py#L2>)", "../src/b c.py", "[t](<../src/b c.py#L2>)"),
        ("[t](../my%20src/a.py)", "../my src/b c.py", "[t](../my%20src/b%20c.py)"),
        ("[t][r]\n\n[r]: <../src/a.py#work>\n", "../b<c.py", "[t][r]\n\n[r]: <../b%3Cc.py#work>\n"),
        (
            "`src/a.py#L2` <!-- pin 0123456789abcdef -->",
            "b.py",
            "`b.py#L2` <!-- pin 0123456789abcdef -->",
        ),
    ],
)
def test_a_citation_gets_another_path_and_keeps_its_style(before: str, new: str, after: str) -> None:
    citation = parse_text("a.md", before).citations[0]
    assert splice(before, [repath(citation, before, new)]) == after


# What a file name may hold: `mdmem.vault.paths.check_memory`.
name = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\"),
    min_size=1,
    max_size=8,
).filter(lambda part: not part.startswith("."))
target = st.builds(
    lambda ups, parts: "/".join([".."] * ups + parts) + ".md",
    st.integers(0, 2),
    st.lists(
        st.one_of(name, st.sampled_from(["a b", "(", "%20", "#", "old dir", "&lt;", "'"])),
        min_size=1,
        max_size=3,
    ),
)


@given(st.sampled_from(sorted(STYLES)), target)
@settings(max_examples=examples(300))
def test_any_target_is_read_back_or_refused(style: str, new: str) -> None:
    assume(new == new.strip())
    try:
        assert_only_changed(STYLES[style], lambda link, text: retarget(link, text, new), "target", new)
    except EditRefused:
        assert set(new) & set("#|[]`'\":")


@given(st.sampled_from(sorted(STYLES)), target)
@settings(max_examples=examples(300))
def test_back_again_is_as_before(style: str, new: str) -> None:
    text = STYLES[style].replace("&#32;", "%20")
    before = parse_text("a.md", text)
    try:
        there = rewritten(text, lambda link, text: retarget(link, text, f"old dir/{new}"))
    except EditRefused:
        return
    pairs = zip(before.links, there.links, strict=True)
    edits = {retarget(link, there.text, old.target) for old, link in pairs if old.target != link.target}
    assert splice(there.text, edits) == text


@given(
    st.text(max_size=20),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20),
    st.booleans(),
)
@settings(max_examples=examples(200))
def test_any_old_writing_gives_a_destination(old: str, new: str, in_angles: bool) -> None:
    written = destination(old if "/" not in new else "", new, in_angles=in_angles)
    assert new.count("/") == written.count("/")


def test_an_import_says_what_has_no_blanks() -> None:
    text = "@notes/t.md\n"
    (link,) = parse_text("a.md", text).links
    assert splice(text, [retarget(link, text, "b/t-2.md")]) == "@b/t-2.md\n"
    with pytest.raises(EditRefused, match=r"cannot say 'b c\.md'"):
        retarget(link, text, "b c.md")
