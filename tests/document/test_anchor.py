"""Anchors: slugs as GitHub makes them, and which heading or block an anchor means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.anchor import find, headings, keys, loose, match, plain, slug
from mdmem.document.document import parse_text
from tests.speed import examples
from tests.tables import cases

NOTE = """# Guide

## Setup

### Install

## Use

### Install

### API & CLI: v1.2

## C# notes

## `parse_config` and [links](https://example.org)

One fact. ^fact-1
Another. ^Fact-1
"""


def lines_of(anchor: str, text: str = NOTE) -> tuple[str, tuple[int, ...]] | None:
    place = find(parse_text("a.md", text), anchor)
    return (place.rule, place.lines) if place else None


@cases(
    "text, expected",
    [
        ("Setup", "setup"),
        ("A - B", "a---b"),
        ("API & CLI: v1.2", "api--cli-v12"),
        ("snake_case_name", "snake_case_name"),
        ("I ♥ unicode", "i--unicode"),
        ("😄-😄 unicode emoji", "--unicode-emoji"),
        ("Привет non-latin 你好", "привет-non-latin-你好"),
        ("en\u2013dash and a\u2019postrophe", "endash-and-apostrophe"),
        ("a\u203fb \uff3fc", "a\u203fb-\uff3fc"),
        ("x² ½ Ⅳ ٣ Ⓐ", "x--ⅳ-٣-ⓐ"),
        ("tab\tnot\u00a0a\u2003space", "tabnotaspace"),
        (" a ", "-a-"),
        ("e\u0301", "e\u0301"),
        ("", ""),
    ],
)
def test_slug_keeps_what_github_keeps(text: str, expected: str) -> None:
    assert slug(text) == expected


def slugs(titles: list[str]) -> list[str]:
    return [unique for unique, _ in keys(titles)]


def test_slugs_are_numbered_and_numbers_that_are_taken_are_passed_over() -> None:
    titles = ["echo", "echo", "echo 1", "echo-1", "echo", "foxtrot-1", "foxtrot", "foxtrot"]
    expected = ["echo", "echo-1", "echo-1-1", "echo-1-2", "echo-2", "foxtrot-1", "foxtrot", "foxtrot-2"]
    assert slugs(titles) == expected


@cases(
    "title, shown",
    [
        ("plain", "plain"),
        ("`a_b` and **bold** and _em_", "a_b and bold and em"),
        ("[text](https://x.org/a_(b)) ![alt](pic.png)", "text "),
        ("[text][label] &amp; \\*stars\\*", "[text][label] & *stars*"),
        ("snake_case and __init__", "snake_case and init"),
        ("`` a ` b `` and `a**b`", "a ` b and a**b"),
        ('<a name="x"></a>Title', "Title"),
        ("[[note|text]]", "[[note|text]]"),
        ("2 * 3 < 4", "2 * 3 < 4"),
    ],
)
def test_plain_shows_a_title_as_a_renderer_does(title: str, shown: str) -> None:
    assert plain(title) == shown


def test_slugs_are_those_of_the_text_that_is_shown() -> None:
    assert slugs(["`parse_config`, [guide](x.md)", "_Note_"]) == ["parse_config-guide", "note"]


@pytest.mark.parametrize("style", ["api--cli-v12", "api-cli-v12", "api-&-cli:-v1.2", "API & CLI: v1.2"])
def test_anchors_of_every_editor_name_the_heading(style: str) -> None:
    found = lines_of(style)
    assert found is not None
    assert found[1] == (11,)


@cases(
    "anchor, expected",
    [
        ("Setup", ("title", (3,))),
        ("setup", ("slug", (3,))),
        ("SETUP", ("loose", (3,))),
        ("Install", ("title", (5, 9))),
        ("install-1", ("slug", (9,))),
        ("Use#Install", ("title", (9,))),
        ("Guide#Use#Install", ("title", (9,))),
        ("Guide#Install", ("title", (5, 9))),
        ("use#install", ("slug", (9,))),
        ("USE#INSTALL!", ("loose", (9,))),
        ("Use#Setup", None),
        ("C# notes", ("title", (13,))),
        ("C notes", ("loose", (13,))),
        ("parse_config and links", ("title", (15,))),
        ("`parse_config` and [links](https://example.org)", ("title", (15,))),
        ("^fact-1", ("block", (17,))),
        ("^FACT-1", ("block", (17, 18))),
        ("^none", None),
        ("nothing", None),
        ("", None),
        ("#", None),
        ("!!", None),
    ],
)
def test_an_anchor_is_found_by_title_then_slug_then_loosely(
    anchor: str, expected: tuple[str, tuple[int, ...]] | None
) -> None:
    assert lines_of(anchor) == expected


def test_the_first_of_several_is_taken_and_it_says_so() -> None:
    place = find(parse_text("a.md", NOTE), "Install")
    assert place is not None
    assert (place.line, place.ambiguous) == (5, True)
    assert NOTE[slice(*place.span)] == "### Install\n\n"


def test_a_block_is_the_line_that_carries_the_id() -> None:
    place = find(parse_text("a.md", NOTE), "^fact-1")
    assert place is not None
    assert not place.ambiguous
    assert NOTE[slice(*place.span)] == "One fact. ^fact-1\n"


def test_a_title_goes_before_a_slug_and_a_slug_before_a_loose_match() -> None:
    text = "# setup-guide\n# Setup guide\n# Setup, guide!\n"
    assert lines_of("setup-guide", text) == ("title", (1,))
    assert lines_of("setup-guide-1", text) == ("slug", (2,))
    assert lines_of("Setup Guide", text) == ("loose", (1, 2, 3))


def test_a_heading_without_letters_is_never_found_loosely() -> None:
    assert lines_of("?", "# !\n") is None
    assert lines_of("!", "# !\n") == ("title", (1,))


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=12))
@settings(max_examples=examples(200))
def test_slugs_are_unique_and_have_no_blanks(titles: list[str]) -> None:
    unique = slugs(titles)
    assert len(set(unique)) == len(titles)
    assert not any(character.isspace() for made in unique for character in made)


title = st.text(st.sampled_from("aAbBé字 -_#*`[]()&!<>\\1²"), min_size=1, max_size=20).map(
    lambda text: " ".join(text.split())
)


@given(st.lists(title, min_size=1, max_size=8))
def test_every_slug_names_its_own_heading_unless_another_has_it_for_a_title(titles: list[str]) -> None:
    document = parse_text("a.md", "".join(f"## {each}\n\n" for each in titles))
    known = headings(document.sections)
    for index, heading in enumerate(known):
        if not heading.slug:
            continue
        found = match(known, heading.slug)
        assert found is not None
        assert found.rule == "title" or found.indexes == (index,)


@given(st.text(st.sampled_from("`_*[]()<>!&\\a \n"), max_size=200))
def test_a_slug_is_its_own_slug_and_a_loose_key_its_own_key(text: str) -> None:
    assert slug(slug(text)) == slug(text)
    assert loose(loose(text)) == loose(text)
    assert not loose(text) or loose(text).isalnum()


@cases("bad", ["`" * 100_000, "[" * 100_000, "![" * 50_000, "_a" * 50_000, "<a" * 50_000])
def test_hostile_titles_do_not_hang(bad: str) -> None:
    assert len(slugs([bad, bad])) == 2


PLACES = """---
title: "{#none}"
---
# Setup {#start}

Text. {: #para .wide }

<a name="old"></a> <div
  class='>' id=plain> <Tab value="x" id={"tab"}>

> ## A *quote*
>
> - ### A list ###

    ## Deeper

<h2 align="center">Of HTML</h2>

Term
**Other**
: what it is

```
## Code
<a name="code">
```
`{#span}` <!-- <a id="comment"> --> {/* #mdx */} \\`<b id="shown">\\`
"""


@cases(
    "anchor, line",
    [
        ("start", 4),
        ("para", 6),
        ("old", 8),
        ("OLD", 8),
        ("plain", 8),
        ("tab", 9),
        ("a-quote", 11),
        ("A quote", 11),
        ("a-list", 13),
        ("deeper", 15),
        ("of-html", 17),
        ("term", 19),
        ("other", 19),
        ("mdx", 27),
        ("shown", 27),
        ("top", 1),
        ("L3", 3),
        ("L3-L9", 3),
        ("3", 3),
        ("a-list:~:text=x", 13),
        (":~:text=x", 1),
        ("none", None),
        ("code", None),
        ("span", None),
        ("comment", None),
        ("L999", None),
        ("nothing", None),
    ],
)
def test_an_anchor_may_name_what_is_no_heading_of_a_section(anchor: str, line: int | None) -> None:
    found = find(parse_text("a.md", PLACES), anchor)
    assert (found.line if found else None) == line
    if found:
        assert find(parse_text("a.md", PLACES.replace("\n", "\r\n")), anchor) is not None
