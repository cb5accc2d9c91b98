"""Links, citations, tags and URLs: cases as files, places, markdown-it-py as the oracle, hostile texts."""

from __future__ import annotations

import json
import random
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyromark
import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.document import Document, parse_text
from mdmem.document.markdown import link as links_of
from mdmem.document.markdown.blocks import scan as outline
from mdmem.document.markdown.inline import Citation, Inline, Link, scan
from mdmem.document.text.lines import Lines
from tests import speed
from tests.document.markdown import foreign_texts
from tests.speed import examples, soak_most
from tests.tables import cases

BENCH = Path(__file__).parents[3] / "bench"
sys.path.append(str(BENCH))

import oracle  # noqa: E402 - the same comparison is published as a measurement

if TYPE_CHECKING:
    from mdmem.diagnostic import Span

DATA = Path(__file__).parents[2] / "data" / "inline"


def document(text: str) -> Document:
    return parse_text("a.md", text)


def found(text: str) -> Inline:
    return scan(text, outline(text), Lines(text))


def links(text: str) -> list[tuple[str, str, str, str]]:
    return [(link.kind, link.target, link.anchor, link.alias) for link in document(text).links]


def written(text: str, span: Span) -> str:
    return text[slice(*span)]


# ------------------------------------------------------------------------------------------ cases as files


def described(text: str) -> dict[str, list[str]]:
    whole = document(text)
    everything = {
        "links": [described_link(link) for link in whole.links],
        "citations": [described_citation(citation) for citation in whole.citations],
        "tags": [f"{tag.line}: {tag.name}" for tag in whole.tags],
        "urls": [f"{url.line}: {url.url}" for url in whole.urls],
    }
    return {name: items for name, items in everything.items() if items}


def described_link(link: Link) -> str:
    kind = f"{'!' if link.embed else ''}{link.kind}"
    anchor, alias = f" # {link.anchor}" if link.anchor else "", f" | {link.alias}" if link.alias else ""
    return f"{link.line}: {kind} {link.target}{anchor}{alias}"


def described_citation(citation: Citation) -> str:
    where = f"{citation.first}-{citation.last}" if citation.first else citation.symbol
    in_link, pin = " (link)" if citation.in_link else "", f" {citation.pin}" if citation.pin else ""
    return f"{citation.line}: {citation.path}{f' @ {where}' if where else ''}{in_link}{pin}"


@cases("path", sorted(DATA.glob("*.md")), ids=lambda path: path.stem)
def test_files_hold_what_is_expected(path: Path) -> None:
    assert described(path.read_bytes().decode()) == json.loads(
        path.with_suffix(".expected").read_text("utf-8")
    )


@cases("path", sorted(DATA.glob("*.md")), ids=lambda path: path.stem)
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_files_hold_the_same_whatever_ends_their_lines(path: Path, end: str) -> None:
    text = path.read_bytes().decode()
    assert described(text.replace("\n", end)) == described(text)


@cases("path", sorted(DATA.glob("*.md")), ids=lambda path: path.stem)
def test_places_in_files_are_those_of_what_was_found(path: Path) -> None:
    text = path.read_bytes().decode()
    check_places(text, document(text))


def test_a_json_memory_holds_none_of_it() -> None:
    whole = parse_text("a.json", '{"a": "[[x]] #tag https://example.com `src/app.py`"}')
    assert (whole.links, whole.citations, whole.tags, whole.urls) == ((), (), (), ())


# ------------------------------------------------------------------------------------------------- places


def check_places(text: str, whole: Document | Inline) -> None:
    """Every span is of what it says, and nothing overlaps that must not."""
    lines = Lines(text)
    for link in whole.links:
        check_link(text, link)
        assert link.line == lines.number(link.span.start)
    for citation in whole.citations:
        check_citation(text, citation)
        assert citation.line == lines.number(citation.span.start)
    for tag in whole.tags:
        assert written(text, tag.span) == tag.name
        assert tag.line == lines.number(tag.span.start)
    for url in whole.urls:
        assert links_of.unescaped(written(text, url.span)) in (url.url, links_of.unescaped(url.url))
        assert url.line == lines.number(url.span.start)
    for items in (whole.links, whole.citations, whole.tags, whole.urls):
        assert [item.span for item in items] == sorted(item.span for item in items)
    check_apart(whole.links)


def check_link(text: str, link: Link) -> None:
    target = written(text, link.target_span)
    anchor = written(text, link.anchor_span)
    if links_of.WIKILINK.fullmatch(written(text, link.span)):
        assert (target, anchor, written(text, link.alias_span)) == (link.target, link.anchor, link.alias)
    else:
        assert links_of.destination(text, link.target_span).target == link.target
        assert links_of.percent_decoded(links_of.unescaped(anchor)) == link.anchor
        if ">" not in text:  # the marks of a quote may stand amid the lines of a link's text
            assert " ".join(written(text, link.alias_span).split()) == " ".join(link.alias.split())
    if link.anchor:
        assert text[link.target_span.end : link.anchor_span.start].strip() == "#"
    assert link.target_span.end <= link.anchor_span.start
    inside = (
        [link.alias_span]
        if link.kind == "reference"
        else [link.target_span, link.anchor_span, link.alias_span]
    )
    assert all(link.span.start <= start <= end <= link.span.end for start, end in inside)


def check_citation(text: str, citation: Citation) -> None:
    start, stop = citation.span.start, citation.locator_span.start
    path = text[start:stop]
    assert citation.path == (links_of.percent_decoded(links_of.unescaped(path)) if citation.in_link else path)
    assert citation.locator_span.end == citation.span.end
    locator = written(text, citation.locator_span)
    assert (locator[:1] in "#:") if locator else not (citation.first or citation.symbol)
    if citation.first:
        assert citation.last is not None
        assert 1 <= citation.first <= citation.last
        assert str(citation.first) in locator
    pin = written(text, citation.pin_span)
    assert pin == (f"<!-- pin {citation.pin} -->" if citation.pin else "")


def check_apart(found_links: tuple[Link, ...]) -> None:
    """Links overlap only where an image or a wikilink stands in the text of a link."""
    open_: list[Link] = []
    for link in found_links:
        while open_ and open_[-1].span.end <= link.span.start:
            open_.pop()
        if open_:
            outer = open_[-1]
            if outer.span.start == link.span.start:  # `[[1]](path)`
                assert (outer.kind, link.kind, outer.span.end) == (
                    "wikilink",
                    "markdown",
                    link.alias_span.end + 1,
                )
                open_[-1] = link
                continue
            assert link.embed or link.kind == "wikilink"
            assert outer.alias_span.start <= link.span.start < link.span.end <= outer.alias_span.end
        open_.append(link)


def test_every_part_of_a_wikilink_has_its_place() -> None:
    text = "see ![[ ns/name # Some heading | an alias ]]."
    (link,) = found(text).links
    assert written(text, link.span) == "![[ ns/name # Some heading | an alias ]]"
    assert written(text, link.target_span) == link.target == "ns/name"
    assert written(text, link.anchor_span) == link.anchor == "Some heading"
    assert written(text, link.alias_span) == link.alias == "an alias"
    assert link.embed


def test_every_part_of_a_markdown_link_has_its_place() -> None:
    text = 'see [the *text*](<my%20notes/a&amp;b.md#A\\#b> "Title").'
    (link,) = found(text).links
    assert written(text, link.span) == text[4:-1]
    assert written(text, link.target_span) == "my%20notes/a&amp;b.md"
    assert (link.target, link.anchor, link.alias) == ("my notes/a&b.md", "A#b", "the *text*")
    assert written(text, link.anchor_span) == "A\\#b"
    assert written(text, link.alias_span) == "the *text*"


def test_a_reference_tells_the_place_of_its_target_in_the_definition() -> None:
    text = "[text][ref]\n\n[ref]: <a b.md#c>\n"
    use, definition = found(text).links
    assert (use.kind, definition.kind) == ("reference", "definition")
    assert written(text, use.span) == "[text][ref]"
    assert written(text, definition.span) == "[ref]: <a b.md#c>"
    assert use.target_span == definition.target_span
    assert use.anchor_span == definition.anchor_span
    assert written(text, use.target_span) == "a b.md"


@pytest.mark.parametrize("text", ["[[t]]", "[t](t)", "[t][t]\n\n[t]: t"])
def test_parts_that_are_missing_have_empty_places_where_they_would_stand(text: str) -> None:
    for link in found(text).links:
        assert link.anchor_span == (link.target_span.end, link.target_span.end)


@cases(
    "text, behind",
    [
        ("`src/app.py#L1` x", "`src/app.py#L1`"),
        ("``src/app.py`` x", "``src/app.py``"),
        ("[x](src/app.py#L1 'T') x", "[x](src/app.py#L1 'T')"),
        ("see src/app.py:3, x", "see src/app.py:3"),
        ("[x][y] x\n\n[y]: src/app.py#L1\n", "[x][y]"),
    ],
)
def test_a_pin_would_be_put_right_behind_what_cites(text: str, behind: str) -> None:
    (citation,) = found(text).citations
    assert citation.pin_span == (len(behind), len(behind))
    pinned = f"{behind}<!-- pin 0123456789abcdef -->{text[len(behind) :]}"
    (again,) = found(pinned).citations
    assert (again.pin, again.path, again.first) == ("0123456789abcdef", citation.path, citation.first)
    assert again.span.start - len(pinned) == citation.span.start - len(text) or again.span == citation.span


def test_a_fragment_may_have_columns_and_lines_in_any_order() -> None:
    (citation,) = found("`a.py#L23,5-L10,2`").citations
    assert (citation.first, citation.last) == (10, 23)


# -------------------------------------------------------------------------------------------- no links


@cases(
    "text, expected",
    [
        ("[text]([[doc]])", [("wikilink", "doc")]),
        ("![text]([[p.png|x]])", [("wikilink", "p.png")]),
        ("[see [[doc]] here](doc.md)", [("markdown", "doc.md"), ("wikilink", "doc")]),
        ("[see [[a]] [[b]]](c.md)", [("markdown", "c.md"), ("wikilink", "a"), ("wikilink", "b")]),
        ("[[a]](b.md)", [("wikilink", "a"), ("markdown", "b.md")]),
        ("[[a]]([[b]])", [("wikilink", "a"), ("wikilink", "b")]),
        ("![[a]](b.md)", [("wikilink", "a")]),
        ("[x [[a]]](https://example.org)", [("wikilink", "a")]),
    ],
)
def test_a_link_may_hold_wikilinks_or_have_one_for_its_destination(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert [(link.kind, link.target) for link in document(text).links] == expected


def test_tags_and_imports_are_links() -> None:
    text = """<p><a href="n/a.md#x"><img alt='x' src='p.png?raw=true'></a></p>

Text <a class="b" href="b%20c.md">x</a> <img src=d.png> <a href="https://e.org">e</a> <a id="x">y</a>

<!-- <a href="none.md"> --> `<a href="none.md">` &lt;a href="none.md">

See @n/t.md, @./u.md. (@../v.markdown) a@b.md @~/w.md @/x.md `@code.md` @README @a/b.mdx/c [@in.md](z.md)

@top.md
- @item.json
"""
    every = [
        (link.kind, link.target, link.anchor) for link in document(text).links if link.kind != "markdown"
    ]
    assert every == [
        *(("html", "n/a.md", "x"), ("html", "p.png", ""), ("html", "b c.md", ""), ("html", "d.png", "")),
        *(("import", path, "") for path in ("n/t.md", "./u.md", "../v.markdown", "top.md", "item.json")),
    ]
    assert [link.target for link in document(text).links if link.embed] == ["p.png", "d.png"]


@cases(
    "text, targets",
    [
        ("$[[a]]$ $$[[b]]$$ [[c]]", ["c"]),
        ("$x$ [[a]] $y$ [[b]]", ["a", "b"]),
        ("[[$a]] [[b$]] [[$c$]]", ["$a", "b$", "$c$"]),
        ("$5 [[a]] $6 [[b]]", ["a", "b"]),
        ("US$5 [[a]] 6$.", ["a"]),
        ("\\$[[a]]\\$ `$`[[b]]`$` <a x='$'>[[c]]$", ["a", "b", "c"]),
        ("$[[a]]\n\n[[b]]$ $$[[c]]\n\n[[d]]$$", ["a", "b", "c", "d"]),
        ("$$\n[[a]]\n\n[[b]]\n$$\n[[c]]", ["c"]),
        ("- $$\n  [[a]]\n  $$\n- [[b]]", ["b"]),
        ("|a|b|\n|-|-|\n|$1 [[a]]|2$|", ["a"]),
        ("\\begin{a}[[a]]\\begin{b}[[b]]\\end{b}[[c]]\\end{a}[[d]] \\begin{x}[[e]]", ["d", "e"]),
        ("{{< a '[[a]]' >}} {{% b [[b]] %}} {% c [[c]] %} {{embed [[d]]}} {{< e [[e]]", ["d", "e"]),
        ("[x]({{a}}/b.md) [x](<{% a %}>) ![x](${a}/b.png) [y]({a}.md)", ["{a}.md"]),
        ("---\nup: $[[a]]$\n---\n", []),
    ],
)
def test_formulas_and_shortcodes_hold_no_links(text: str, targets: list[str]) -> None:
    assert [link.target for link in document(text).links] == targets


@pytest.mark.parametrize(
    "inside", ["[[x]]", "[x](y.md)", "![x](y.png)", "<https://example.com>", "#tag", "a.py:3"]
)
@cases(
    "around",
    [
        *("```\n{}\n```", "~~~ x\n{}\n", "    {}", "``a {} b``", "<!-- {} -->", "<div>\n{}\n</div>"),
        "x <!-- {} --> y",
    ],
)
def test_code_and_html_hold_nothing(inside: str, around: str) -> None:
    assert found(around.format(inside)) == Inline()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_code_span_goes_on_over_the_end_of_a_line_but_not_of_a_paragraph(end: str) -> None:
    assert found(f"a `b{end}[[c]]` d").links == ()
    assert [link.target for link in found(f"a `b{end}{end}[[c]]` d").links] == ["c"]


def test_the_text_of_a_link_cites_and_tags_nothing() -> None:
    everything = found("[`src/app.py` a.py:3 #tag https://example.com/a](b.md)")
    assert len(everything.links) == 1
    assert everything[1:] == ((), (), ())


# --------------------------------------------------------------------------------------------- frontmatter


def test_links_in_the_frontmatter_have_exact_places() -> None:
    text = "---\nup: \"[[a#b|c]]\"\nsee: ['[d](e%20f.md)', x]\n---\n[[body]]\n"
    first, second, body = document(text).links
    assert (first.kind, second.kind, body.kind) == ("field", "field", "wikilink")
    assert written(text, first.span) == "[[a#b|c]]"
    assert written(text, second.target_span) == "e%20f.md"
    assert second.target == "e f.md"


def test_a_wikilink_without_quotes_is_a_link_though_yaml_takes_it_for_a_list() -> None:
    text = "---\nup: [[a b#c|d]]\nsee:\n- [[e]]\nboth: [[[f]], [[g]]]\n---\n"
    assert [(link.kind, written(text, link.span)) for link in document(text).links] == [
        ("field", f"[[{each}]]") for each in ("a b#c|d", "e", "f", "g")
    ]


@cases("value", ['"[[a]]\\n [[b\\u0041]]"', "'it''s [[a]] [[it''s]] [x](''.md)'"])
def test_what_has_no_escapes_in_a_value_that_has_some_is_a_link(value: str) -> None:
    assert [link.target for link in document(f"---\nkey: {value}\n---\n").links] == ["a"]


@cases("value", ['"[[a\\n]]"', "'[[it''s]]'", "[[1]]", "[[a, b]]", "[[a], b]", "&x [[a]]", "1 # [[a]]"])
def test_values_whose_places_are_not_those_of_their_text_hold_no_links(value: str) -> None:
    assert document(f"---\nkey: {value}\n---\n").links == ()


@cases(
    "value, names",
    [
        ("[a, 'b', \"c\"]", ["a", "b", "c"]),
        ("\n  - a\n  - '#b'\n  - two words", ["a", "b", "two words"]),
        ("a, b c,d", ["a", "b", "c", "d"]),
        ("", []),
        ("[]", []),
        ("3", ["3"]),
        ("{a: b}", []),
    ],
)
def test_tags_in_the_frontmatter_are_a_list_or_a_text(value: str, names: list[str]) -> None:
    text = f"---\ntags: {value}\n---\n#body\n"
    whole = document(text)
    assert [tag.name for tag in whole.tags] == [*names, "body"]
    check_places(text, whole)


# ------------------------------------------------------------------------------------------------ any text

PIECES = [
    *(
        *("[", "]", "(", ")", "[[", "]]", "](", "][", "![", "|", "\\|", "`", "``", "```\n", "~~~\n", "<"),
        *(">", "<!--", "-->"),
    ),
    *(
        *("#", "#tag", ":", ":3", "#L3", "#L3-L9", "a.py", "src/", "b.md", "^id", "%20", "&amp;", "\\"),
        *("\n", "\n\n", "\r\n"),
    ),
    *(
        *("> ", "- ", "# ", "---\n", "|-|-|\n", "[a]: ", "[a]", "https://", "example.com", "www.", " "),
        *("    ", "é", "日", "\t"),
    ),
    *(
        *("tags: ", '"', "'", "<!-- pin 0123456789abcdef -->", "<b x='", "mailto:", "\ufeff", "\x0b"),
        *("\u2028", "*"),
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30))
@settings(max_examples=examples(500))
def test_places_are_those_of_what_was_found_in_any_pieces(pieces: list[str]) -> None:
    text = "".join(pieces)
    check_places(text, document(text))


@given(st.lists(st.sampled_from(PIECES), max_size=20))
@settings(max_examples=examples(300))
def test_places_in_the_frontmatter_are_those_of_what_was_found(pieces: list[str]) -> None:
    value = "".join(pieces).replace("\n", " ").replace("\r", " ")
    text = f'---\na: {value}\nb: "{value}"\nc: |\n  {value}\ntags: {value}\n---\n'
    check_places(text, document(text))


@given(st.lists(st.sampled_from(PIECES), max_size=20))
@settings(max_examples=examples(500))
def test_definitions_are_those_of_the_parser_and_lead_where_it_says(pieces: list[str]) -> None:
    text = "".join(pieces).replace("\r", "").replace("\x0b", " ") + "\n\n[a]: /x 'y'\n"
    found = {definition.span.start: definition for definition in outline(text).definitions}
    data = text.encode()
    for label, one in pyromark.reference_definitions(text, options=pyromark.Options.ENABLE_TABLES).items():
        start = len(data[: one["span"]["start"]].decode())
        if not label.startswith("^"):
            destination = written(text, found[start].destination)
            destination = destination[1:-1] if destination.startswith("<") else destination
            assert links_of.unescaped(destination) == one["dest"]


@given(st.text(max_size=60))
@settings(max_examples=examples(300))
def test_no_text_is_too_strange(text: str) -> None:
    check_places(text, found(text))


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["```\n{}\n```\n", "`{}`"]))
@settings(max_examples=examples(500))
def test_nothing_begins_in_code(pieces: list[str], around: str) -> None:
    inside = "".join(pieces).replace("`", "")
    inside = inside if around[3] == "\n" else " ".join(inside.split())
    text = around.format(inside)
    if inside.strip():
        everything = found(text)
        assert (everything.links, everything.tags, everything.urls) == ((), (), ())


# ------------------------------------------------------------------------------------------------ oracle

ORACLE_PIECES = [
    *(
        *("[", "]", "(", ")", "[a]", "[b]", "](", "][", "![", "[[", "]]", "`", "``", "<", ">", "<b>"),
        *("</b>", "<!--", "-->"),
    ),
    *(
        *("http://x.y", "<http://x.y>", "\\", "\n", "\n> ", "\n- ", "\n\n", "\n\n[a]: ", "[b]: <x y>\n"),
        *("[a]: /u\n", " ", "a"),
    ),
    *(
        *("b.md", "c#d", '"t"', "'t'", "(t)", "|", "\n|-|-|\n", "| a | b |\n", "&amp;", "%20", "*", "#"),
        *("```\n", "    ", "!"),
    ),
]


def disagreements(texts: list[str]) -> tuple[int, int]:
    """How many things were found by one side only, and how many the oracle found."""
    apart = whole = 0
    for text in texts:
        theirs, ours = oracle.in_oracle(text), oracle.in_mdmem(text)
        apart += ((theirs - ours) + (ours - theirs)).total()
        whole += theirs.total()
    return apart, whole


# Known differences to markdown-it-py: it knows no formulas, and no footnotes, `[^1]` refers to a definition
# there; and here a label whose definition is written with more or fewer letters, as SS for ẞ, refers to none.
KNOWN = str.maketrans({"$": "", "^": "", "ẞ": "SS"})


@pytest.mark.parametrize("more", soak_most([0, 1_000]))
def test_foreign_texts_hold_what_the_oracle_finds(more: int) -> None:
    # Nor does it find a link in so many brackets, the innermost of which are a wikilink.
    every = [text.translate(KNOWN) for _, text in foreign_texts.texts(more) if "[" * 50 not in text]
    apart, whole = disagreements(every)
    assert whole > 500
    assert apart == 0


def test_the_projects_own_texts_hold_what_the_oracle_finds() -> None:
    root = BENCH.parent
    texts = [path.read_bytes().decode() for path in (*root.glob("*.md"), *root.glob("bench/*.md"))]
    assert disagreements(texts)[0] == 0


@pytest.mark.parametrize("seed", soak_most(range(4)))
def test_tricky_texts_hold_what_the_oracle_finds_but_for_few(seed: int) -> None:
    """Of 280,000 such texts 0.4 % had a difference, most in what follows a definition (see test_blocks)."""
    chance = random.Random(seed)
    texts = ["".join(chance.choices(ORACLE_PIECES, k=chance.randint(3, 18))) + "\n" for _ in range(1000)]
    different = [text for text in texts if oracle.in_oracle(text) != oracle.in_mdmem(text)]
    assert len(different) <= 10


# ---------------------------------------------------------------------------------------- hostile texts

HOSTILE = [
    *(
        *("[", "[[", "![", "[[[", "[a", "]", "](", "][", "[](", "[a](", "[a](b", "[a](<", '[a](b "'),
        *("[a](b (", "((", "[[a|"),
    ),
    *(
        *("`", "``a", "` `` ", "<", "<a ", "<a b='", "<!--", "<?", "<![CDATA[", "<!A", "<a:", "\\", "\\["),
        *("#", "# ", "#/"),
    ),
    *(
        *("[a]: ", "[a]:\n", "[a]: b\n'", "[a]\n", "|", "|-|\n", "a|b\n", "> [a\n", "- [a\n", "^", "^a\n"),
        *("&#", "[a](&#", "%"),
    ),
    *(
        *("http://", "http://a)", "http://&a;", "www.", "a/", "a.", "a:1", "a/b:1", "#L1", "a#L1-", "`a/"),
        *("***", "___", "\r["),
    ),
]


FEWER = 1 if speed.is_all else 2


@cases(
    "before, unit", [*product(["[a]: /x\n\n"], HOSTILE[::FEWER]), *product([""], HOSTILE[FEWER - 1 :: FEWER])]
)
def test_work_grows_with_the_length_of_a_hostile_text_and_no_faster(before: str, unit: str) -> None:
    """Where it grew with the square, these would take minutes."""
    text = before + unit * (50_000 // FEWER // len(unit)) + "]"
    everything = found(text)
    assert len(everything.links) <= len(text) / 4
