"""What a hit shows as matched is what the query found, in whatever spelling the line has it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.index.matching import Matcher
from mdmem.index.query import parse


def matched(query: str, line: str) -> list[str]:
    return [line[start:end] for start, end in Matcher(parse(query), {}).spans(line)]


@pytest.mark.parametrize(
    ("query", "line", "found"),
    [
        ("database", "Databases, and a database.", ["Databases", "database"]),
        ("cafe", "Le café, le cafe\u0301.", ["café", "cafe\u0301"]),
        ("http server", "An HTTPServer serves.", ["HTTPServer"]),
        ("parse config", "parse_config(x)", ["parse", "config"]),
        ("conf*", "A config is conformant, unlike the reconf.", ["config", "conformant"]),
        ("configurat*", "Its configuration", ["configuration"]),
        ('"the file"', "the best file", ["the", "file"]),
        ("数据库", "我们使用数据库。", ["数据库"]),
        ("水", "水道と水", ["水", "水"]),
        ("the file", "the best file", ["file"]),
        ("nothing", "the best file", []),
        ("-file", "the best file", []),
    ],
)
def test_words_of_the_query_are_found_in_a_line(query: str, line: str, found: list[str]) -> None:
    assert matched(query, line) == found


def test_a_line_is_worth_its_different_words() -> None:
    matcher = Matcher(parse("rare common"), {"rare": 5.0, "common": 0.5})
    assert matcher.worth("rare rare") == 5.0
    assert matcher.worth("common and rare") == 5.5
    assert matcher.worth("neither") == 0


@pytest.mark.parametrize(
    "query", ["database café", "conf* the", "数据库 file", '"the file"', "HTTPServer", "水"]
)
@given(
    st.lists(
        st.sampled_from(["Databases", "café", "cafe\u0301", "a_config", "数据库", "HTTPServer", "水", "é"])
    )
)
def test_a_line_is_worth_something_where_something_of_it_matches(query: str, line: list[str]) -> None:
    matcher = Matcher(parse(query), {"databas": 0.5, "cafe": 2.0})
    text = " ".join(line)
    assert bool(matcher.worth(text)) == bool(matcher.spans(text))


def test_more_words_than_are_kept_are_matched_all_the_same() -> None:
    for start in range(0, 40_000, 4_000):
        line = " ".join(f"word{number}" for number in range(start, start + 4_000))
        assert Matcher(parse("word7 word39999 databases"), {}).worth(f"{line} Database") == 1.0 + (
            start in {0, 36_000}
        )


@given(st.text(max_size=80), st.text(max_size=80))
@settings(deadline=None, max_examples=300)
def test_spans_are_in_the_line_in_order_and_apart(query: str, line: str) -> None:
    spans = Matcher(parse(query), {}).spans(line)
    ends = [place for span in spans for place in span]
    assert ends == sorted(set(ends))
    assert all(0 <= place <= len(line) for place in ends)


def test_what_a_text_holds_is_a_share_of_what_is_looked_for() -> None:
    matcher = Matcher(parse("databases cafe port"), {"databas": 3.0, "cafe": 1.0, "port": 4.0})
    assert matcher.held("The database\nof the café") == (0.5, 2)
    assert matcher.held("nothing") == (0.0, 0)
    assert Matcher(parse(""), {}).held("a port") == (0.0, 0)
