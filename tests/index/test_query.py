"""The query language: what each form means, that nothing is refused, and that nothing is cut in silence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.index import query as language
from mdmem.index.query import Filters, Query, Term, parse

HOSTILE = st.one_of(
    st.text(max_size=200),
    st.text(st.sampled_from('ab "“”«»「」*-+()[]{}:^~/\\&|!?.\0\n\t水数据\ud800'), max_size=200),
    st.lists(
        st.sampled_from(
            [
                *("tag:", "type:a", 'path:"', "before:2026", "after:", "-", "--", '"', "-tag:x", "a*", "*"),
                *("OR", "AND (", "the"),
            ]
        ),
        max_size=30,
    ).map(" ".join),
)


def test_words_are_ranked_by_without_those_that_hold_a_sentence_together() -> None:
    query = parse("What is the design of caches?")
    assert (query.words, query.common) == (("design", "cach"), ("what", "is", "the", "of"))


def test_only_such_words_are_taken_after_all() -> None:
    query = parse("to be or not to be")
    assert (query.words, query.common) == (("to", "be", "or", "not"), ())


def test_of_such_words_beside_others_the_first_few_count_but_no_letter_alone() -> None:
    assert parse("a cache that isn't mine").common == ("that", "isn")
    assert len(parse(" ".join(language.stop_words()) + " cache").common) == language.MOST_COMMON


def test_a_phrase_is_demanded_and_its_words_are_ranked_by() -> None:
    query = parse('"the design" cache')
    assert query.phrases == (Term(runs=(("the", "design"),)),)
    assert query.words == ("design", "cach")


def test_loosened_a_phrase_is_words_and_that_is_said() -> None:
    query = parse('"the design" cache -old').loosened()
    assert (query.words, query.phrases, len(query.without)) == (("design", "cach"), (), 1)
    assert query.notes == (
        "no memory has what stands in quotation marks: its words were searched one by one",
    )


@pytest.mark.parametrize("text", ['"the design"', '"the design" of the', '"the design" tag:a', "the design"])
def test_a_phrase_alone_is_not_loosened(text: str) -> None:
    assert parse(text).loosened() == parse(text)


@pytest.mark.parametrize("text", ["“one file”", "„one file“", "«one file»", "「one file」"])
def test_quotation_marks_of_other_languages_are_as_good(text: str) -> None:
    assert parse(text).phrases == (Term(runs=(("one", "file"),)),)


def test_a_mark_without_a_partner_is_said_and_the_words_are_kept() -> None:
    query = parse('5" disk')
    assert query.words == ("5", "disk")
    assert query.notes == ("a quotation mark has no partner: the words behind it were searched one by one",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-old", Query(without=((Term(runs=(("old",),)),),))),
        ('-"old way"', Query(without=((Term(runs=(("old", "way"),)),),))),
        ("-parseConfig", Query(without=((Term(runs=(("parseconfig",), ("pars", "config"))),),))),
        ("--force", Query(words=("forc",))),
        ("c - b", Query(words=("c", "b"))),
        ("well-known", Query(words=("well", "known"))),
        ("conf*", Query(prefixes=(Term(runs=(("conf",),), is_prefix=True),))),
        ("水", Query(prefixes=(Term(runs=(("水",),), is_prefix=True),))),
        ("tag:Idea", Query(filters=Filters(tags=("idea",)))),
        ("TAG:#idea", Query(filters=Filters(tags=("idea",)))),
        ('tag:"two words"', Query(filters=Filters(tags=("two words",)))),
        ("type:decision type:note", Query(filters=Filters(types=("decision", "note")))),
        ("path:/notes/db", Query(filters=Filters(paths=("notes/db",)))),
        ("-type:note", Query(excluded=Filters(types=("note",)))),
        ("after:2026-02", Query(after=20260201)),
        ("before:2026-02-03", Query(before=20260203)),
        ("before:2026 before:2025", Query(before=20250101)),
        ("-after:2026", Query(before=20260101)),
        ("tag:", Query(words=("tag",))),
        ("http://a.org", Query(words=("http", "org"))),
        ("", Query()),
        ("...", Query()),
    ],
)
def test_each_form_means_what_it_says(text: str, expected: Query) -> None:
    found = parse(text)
    for name in (name for name in Query._fields if name not in {"notes", "said", "name"}):
        assert getattr(found, name) == getattr(expected, name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Where is the "red car" tag:a -blue c - b?', "Where is the red car c - b?"),
        ('"red car" tag:a', ""),
        ("veh* -blue path:notes/ ... after:2026", ""),
    ],
)
def test_what_is_said_are_words_and_phrases_and_not_filters(text: str, said: str) -> None:
    assert parse(text).said == said


def test_a_path_that_is_longer_than_the_index_can_look_for_is_left_out_and_said() -> None:
    assert parse(f"path:{'a' * 900} cache").notes == ()
    query = parse(f"path:{'a' * 901} cache")
    assert query.words == ("cach",)
    assert "was left out: it is longer than 900 bytes" in query.notes[0]


def test_a_date_that_is_none_is_left_out_and_said() -> None:
    query = parse("before:yesterday cache")
    assert query.before == 0
    assert query.words == ("cach",)
    assert query.notes == ("before:yesterday was left out: a date is 2026, 2026-01 or 2026-01-31",)


@pytest.mark.parametrize(
    ("text", "day"),
    [("2026", 20260101), ("2026-05", 20260501), ("2026-13", 0), ("x", 0), ("\uff12\uff10\uff12\uff16", 0)],
)
def test_a_date_is_its_first_day(text: str, day: int) -> None:
    assert language.day(text) == day


def test_ten_thousand_words_are_cut_and_that_is_said() -> None:
    query = parse(" ".join(f"word{number}x" for number in range(10_000)))
    assert len(query.words) == language.MOST_WORDS
    assert [note.split(" of ")[0] for note in query.notes] == [
        "only the first 10,000 characters",
        "only the first 64",
    ]


def test_many_phrases_prefixes_and_filters_are_cut_and_that_is_said() -> None:
    query = parse(" ".join(f'"a{n} b" c{n}* -d{n} tag:e{n}' for n in range(30)))
    assert len(query.phrases) == len(query.prefixes) == len(query.without) == language.MOST_TERMS
    assert len(query.filters.tags) == language.MOST_TERMS
    assert sum("only the first 16 of 30" in note for note in query.notes) == 4


@given(HOSTILE)
@settings(deadline=None, max_examples=500)
def test_no_text_is_refused(text: str) -> None:
    query = parse(text)
    assert len(query.words) <= language.MOST_WORDS
    assert query.is_empty or query.is_ranked or query != Query(notes=query.notes)


@pytest.mark.parametrize("text", ["“" * 20_000, '"' * 20_000, "tag:" * 5_000, "-" * 20_000, "a" * 2_000_000])
def test_a_long_text_is_read_in_one_go(text: str) -> None:
    assert len(parse(text).words) <= language.MOST_WORDS
