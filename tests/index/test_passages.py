"""Texts and queries are taken apart in the same way: whatever is written is found as it is written.

Memories are cut into passages that leave nothing out and stand where they say.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.document import Document, Limits, parse_text
from mdmem.document.synced_block import digest_block
from mdmem.index import passages
from mdmem.index.passages import LONG, MOST, Passage, cut, indexed
from tests import speed
from tests.speed import examples
from tests.tables import cases

TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from('aAbZ_ \n"*-数据库カナ한글ไทย์ที่éÅﬁ\u0301'),
        st.just(" "),
    ),
    max_size=60,
)


def words_in(text: str) -> list[str]:
    return passages.analyzer().analyze(passages.written_out(text))


@cases(
    "written, asked",
    [
        ("the café", "cafe"),
        ("the cafe", "CAFÉ"),
        ("the cafe\u0301", "café"),
        ("running tests", "run test"),
        ("parse_config", "parse config"),
        ("parseConfig", "parse_config"),
        ("parseConfig", "parse config"),
        ("parseConfig", "parseconfig"),
        ("class HTTPServer:", "http server"),
        ("HTTPServer", "httpserver"),
        ("SQLite", "sqlite"),
        ("our GitHub account", "git hub"),
        ("我们使用SQLite数据库", "sqlite"),
        ("我们使用SQLite数据库", "数据库"),
        ("東京都に住む", "京都"),
        ("데이터베이스를", "데이터베이스"),
        ("ﬁle ＡＢＣ", "file abc"),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
        ("https://example.org/a/b?c=d", "example.org"),
    ],
)
def test_words_are_found_by_each_other(written: str, asked: str) -> None:
    assert set(passages.words_of(asked)) <= set(words_in(written))


@cases("written, asked", [("category", "cat"), ("deadbeefDEAD", "beef"), ("abc", "ab"), ("数据", "据数")])
def test_words_that_only_look_alike_are_not(written: str, asked: str) -> None:
    assert not set(passages.words_of(asked)) <= set(words_in(written))


@given(TEXTS)
@settings(max_examples=examples(300))
def test_every_text_is_found_by_itself(text: str) -> None:
    assert set(passages.words_of(text)) <= set(words_in(text))


@given(TEXTS)
def test_a_phrase_has_runs_of_words_that_follow_each_other_in_its_text(text: str) -> None:
    found = words_in(text)
    for runs in passages.runs_of(text):
        assert any(_follow(list(run), found) for run in runs)


def _follow(run: list[str], found: list[str]) -> bool:
    return any(found[at : at + len(run)] == run for at in range(len(found)))


@cases(
    "asked, found",
    [
        ("conf", "config"),
        ("configurat", "configuration"),
        ("happ", "happiness"),
        ("Caf", "café"),
        ("relation", "relational"),
    ],
)
def test_a_beginning_finds_the_stems_of_words_that_begin_so(asked: str, found: str) -> None:
    first, *stems = passages.beginnings(asked)
    (stem,) = words_in(found)
    assert stem.startswith(first) or stem in stems


@cases("text", ["", "*", "two words", "a-b", "\0"])
def test_what_is_not_one_word_is_no_beginning(text: str) -> None:
    assert passages.beginnings(text) == []


def test_a_plain_text_stays_as_it_is() -> None:
    for text in ("Plain ASCII, with API and IDs.", "é"):
        assert passages.written_out(text) == text


MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(
            ["", " ", "# One", "## Two", "text", "- item", "```", "Setext", "===", "\t", "---", "title: x"]
        ),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
        st.integers(1, 40).map(lambda count: "some words " * count),
    ),
    max_size=30,
)


def cut_of(text: str, path: str = "notes/a.md") -> list[Passage]:
    return list(cut(parse_text(path, text)))


def written(document: Document, passage: Passage) -> str:
    return document.text[slice(*passage.span)]


def test_a_paragraph_is_a_passage_with_the_headings_above_it() -> None:
    found = cut_of("# Top\n\nOne.\n\n## Deep\n\nTwo.\nStill two.\n\nThree.\n")
    assert [(p.line, p.lines, p.heading, p.text) for p in found] == [
        (1, 3, ("Top",), "# Top\n\nOne."),
        (5, 4, ("Top", "Deep"), "## Deep\n\nTwo.\nStill two."),
        (10, 1, ("Top", "Deep"), "Three."),
    ]


def test_a_heading_with_nothing_under_it_counts_to_what_follows() -> None:
    found = cut_of("# Top\n\n## Deep\n\nText.\n\n## Last\n")
    assert [(p.line, p.heading, p.text) for p in found] == [
        (1, ("Top", "Deep"), "# Top\n\n## Deep\n\nText."),
        (7, ("Top", "Last"), "## Last"),
    ]


def test_a_long_list_is_cut_between_its_lines() -> None:
    text = "".join(f"- item number {number} of a list that goes on\n" for number in range(60))
    found = cut_of(text)
    assert len(found) > 1
    assert "\n".join(p.text.rstrip("\n") for p in found) == text.rstrip("\n")
    assert all(len(p.text) <= LONG for p in found)
    assert [p.line for p in found[1:]] == [p.line + p.lines for p in found[:-1]]


def test_a_line_is_cut_only_where_it_is_very_long() -> None:
    assert len(cut_of("word " * (MOST // 5 - 1))) == 1
    found = cut_of("word " * MOST)
    assert len(found) > 1
    assert {p.line for p in found} == {1}
    assert all(len(p.text) <= MOST for p in found)


@pytest.mark.timeout(30)
def test_a_line_of_megabytes_is_cut_in_one_go() -> None:
    """A look at the rest of the line for each piece of it would take minutes."""
    count = 8_000_000 if speed.is_all else 3_000_000
    text = "ab " * count
    found = list(cut(parse_text("a.md", text, Limits(max_bytes=len(text)))))
    assert max(len(passage.text) for passage in found) <= MOST
    assert sum(passage.text.count("ab") for passage in found) == count


def test_an_escape_that_a_cut_parts_is_no_text() -> None:
    found = cut_of('["' + r"\u0041" * 2_000 + '"]', "a.json")
    assert len(found) > 1
    assert set("".join(passage.text for passage in found)) <= set('["A] u041')


def test_what_the_fields_say_is_a_passage_and_bookkeeping_is_none() -> None:
    text = "---\ntitle: T\nid: x1\ntags: [t]\nvalue: dark\nnested: {deep: [one, 2]}\n---\nBody.\n"
    found = cut_of(text)
    assert [(p.text, p.line, p.lines) for p in found] == [("dark\none\n2", 2, 5), ("Body.", 8, 1)]


def test_the_day_of_a_memory_is_found_by_its_month() -> None:
    memory = indexed(parse_text("notes/a.md", "---\ncreated: 2026-05-08\n---\nBody.\n"))
    assert memory.passages[0].text == "Body.\n2026-05-08 8 May 2026"
    assert memory.day == 20260508


def test_escapes_of_json_are_no_part_of_words() -> None:
    (found,) = cut_of('{"a": "one\\ntwo", "b": "caf\\u00e9 \\ud83d\\ude00"}', "notes/a.json")
    assert "one two" in found.text
    assert "café" in found.text


def test_what_a_sync_wrote_from_rules_is_no_passage_of_its_own() -> None:
    digests = digest_block("") + "." + digest_block("## Locks\n\nA rule.\n")
    block = f"<!-- mdmem:begin {digests} from rules/ -->\n## Locks\n\nA rule.\n<!-- mdmem:end -->\n"
    text = f"# P\n\nBefore.\n\n{block}\n## More\n\nBehind.\n"
    kept = indexed(parse_text("AGENTS.md", text))
    assert kept.headings == ("P", "More")
    assert "rule" not in kept.text
    assert [part.text for part in kept.passages] == ["# P\n\nBefore.", "## More\n\nBehind."]
    assert [part.line for part in kept.passages] == [1, 11]
    assert len(indexed(parse_text("AGENTS.md", block)).passages) == 1
    assert "by hand" in indexed(parse_text("AGENTS.md", text.replace("A rule", "By hand"))).text.casefold()
    assert "rule" in indexed(parse_text("AGENTS.md", f"{block}{block}")).text, "which is which, nobody knows"


def test_an_empty_memory_has_one_empty_passage() -> None:
    for text in ("", "\n\n", "---\ntitle: x\n---\n"):
        assert [p.text for p in cut_of(text)] == [""]


def test_what_is_kept_of_a_memory_is_what_it_says() -> None:
    text = (
        "---\ntitle: Choice\ntags: [a/b]\naliases: [Pick]\ntype: Decision\nconfidence: 0.5\n"
        "date: 2026-01-02\n---\n# Head\n\nBody #more.\n"
    )
    memory = indexed(parse_text("notes/2025-db.md", text), modified=0)
    assert memory.title == "Choice\n2025-db"
    assert memory.headings == ("Head",)
    assert memory.tags == ("a/b", "more")
    assert memory.aliases == ("Pick",)
    assert (memory.type, memory.day, memory.confidence) == ("Decision", 20260102, 0.5)


def test_a_memory_without_fields_has_the_day_of_its_file_and_full_confidence() -> None:
    memory = indexed(parse_text("notes/a.md", "# Head\n"), modified=86_400 * 365)
    assert (memory.title, memory.day, memory.confidence) == ("Head\na", 19710101, 1.0)
    for value in ("true", "2", "-1", "high", ".nan"):
        assert indexed(parse_text("notes/a.md", f"---\nconfidence: {value}\n---\n")).confidence == 1.0


@given(MARKDOWN, st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=examples(400))
def test_passages_hold_every_character_that_is_not_blank_in_order(lines: list[str], end: str) -> None:
    document = parse_text("notes/a.md", end.join(lines))
    body = [p for p in cut(document) if p.span.start >= document.body_span.start]
    kept = "".join(written(document, p) for p in body)
    assert "".join(kept.split()) == "".join(document.body.split())
    assert all(one.span.end <= other.span.start for one, other in pairwise(body))


@given(MARKDOWN, st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=examples(400))
def test_a_passage_stands_in_the_lines_that_it_says(lines: list[str], end: str) -> None:
    document = parse_text("notes/a.md", end.join(lines))
    for passage in cut(document):
        if passage.span.start < passage.span.end and passage.span.start >= document.body_span.start:
            first = document.lines.span(passage.line).start
            last = document.lines.span(passage.line + passage.lines - 1).end
            assert first <= passage.span.start < passage.span.end <= last


@cases(
    "text, expected",
    [
        ("C# and F#, c#", ["C#", "F#", "c#"]),
        ("C++, C++17, g++ and notepad++", ["C++", "C++", "g++", "notepad++"]),
        ("an A+; C#8; 用C++写", ["A+", "C#", "C++"]),
        (".NET (`.env`), ~/.bashrc", [".NET", ".env", ".bashrc"]),
        ("v1.2.3 on 3.11, Python3.12", ["1.2.3", "3.11", "3.12"]),
        ("2.0-rc.1 and 1.2.x", ["2.0-rc.1", "2.0-rc.1", "1.2.x", "1.2.x"]),
        ("R&D at AT&T", ["R&D", "AT&T"]),
        ("✅ 👍 🇩🇪", ["✅", "👍", "🇩🇪"]),
        ("## A # of x, a+b, file.md e.g. &amp; x&lt; end. ../up ... 1+2", []),
    ],
)
def test_words_with_signs_are_found_where_they_stand(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end, _ in passages.signed_words(text)] == expected


@cases(
    "written, asked",
    [
        ("Learn C#.", "c#"),
        ("(C++)", "C++"),
        ("**.NET** 8", ".net"),
        ("v1.2.3", "1.2.3"),
        ("1.2.3-beta", "1.2.3"),
        ("👍🏽", "👍"),
        ("👩‍💻", "💻"),
        ("❤️", "❤"),
    ],
)
def test_a_word_with_signs_is_a_word_of_its_own_beside_its_parts(written: str, asked: str) -> None:
    indexed = passages.analyzed(passages.written_out(written))
    assert passages.signs_of(asked)
    assert indexed >= {*passages.signs_of(asked)}
    assert indexed >= {*passages.words_of(written)}
    assert passages.runs_of(asked) == [[(passages.signs_of(asked)[0],)]]


@cases("written, asked", [("C++", "C#"), ("C", "C#"), ("the net", ".NET"), ("1 2 3", "1.2.3"), ("😀", "😁")])
def test_other_signs_are_other_words(written: str, asked: str) -> None:
    assert passages.analyzed(passages.written_out(written)).isdisjoint(passages.signs_of(asked))


@pytest.mark.parametrize("word", ["c#", "c++", ".net", "1.2.3-rc.1", "r&d", "👩‍💻", "🇩🇪"])
def test_a_word_with_signs_can_be_shown_as_it_is_written(word: str) -> None:
    assert passages.spelled(passages.signs_of(word)[0]) == word
    assert passages.is_signed(passages.signs_of(word)[0])


def test_a_word_of_a_million_letters_is_none_and_takes_no_time() -> None:
    assert passages.analyzed("y" * 1_000_000, "short") == {"short"}
