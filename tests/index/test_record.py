"""The rows of a memory: the keys that it is found by, and the scalars of its fields."""

from __future__ import annotations

import json
import sqlite3
import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from mdmem.index.record import Record, alias_key, key_of, keys_of, record, tag_key
from mdmem.text.document import parse, parse_text

DAY = 86_400.0
SURROGATE = "\ud800"
CAFE, CAFE_NFD = "Caf\u00e9", "Cafe\u0301"


def of(text: str, path: str = "notes/a.md", modified: float = 0) -> Record:
    return record(parse_text(path, text), modified)


def of_json(value: object, path: str = "a.json") -> Record:
    return record(parse(path, json.dumps(value).encode()), 0)


# --------------------------------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("", ""),
        ("db", "db"),
        ("notes/DB.md", "db"),
        ("../x/db.md", "db"),
        ("db.json", "db.json"),
        ("db.md.md", "db.md"),
        ("folder/", ""),
        ("Straße", "strasse"),
        (CAFE, "caf\u00e9"),
        (CAFE_NFD, "caf\u00e9"),
        ("ＤＢ", "ｄｂ"),
    ],
)
def test_a_target_is_found_by_its_last_part_in_one_spelling(target: str, key: str) -> None:
    assert key_of(target) == key


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1))
def test_the_spellings_of_a_name_have_one_key(name: str) -> None:
    nfc, nfd = unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)
    assert key_of(f"notes/{nfc}.md") == key_of(f"../{nfd}.md")
    assert alias_key(nfc) == alias_key(nfd)


def test_a_memory_is_called_by_its_file_its_id_and_its_aliases() -> None:
    names = of(f"---\nid: Case-1\naliases: [The DB, {CAFE_NFD}, the db, 7, null]\n---\n", "notes/Db.md").names
    assert names == [
        ("stem", "db"),
        ("id", "Case-1"),
        ("alias", "the db"),
        ("alias", "caf\u00e9"),
        ("alias", "7"),
    ]


@pytest.mark.parametrize("aliases", ["One", ["One"], ["One", ["nested"], {"a": 1}, ""], '"One"'])
def test_an_alias_may_be_a_text_or_a_list_and_what_is_none_is_left_out(aliases: object) -> None:
    text = f"---\naliases: {aliases if isinstance(aliases, str) else json.dumps(aliases)}\n---\n"
    assert [key for kind, key in of(text).names if kind == "alias"] == ["one"]


def test_an_id_that_is_no_text_names_nothing() -> None:
    assert of("---\nid: [a, b]\n---\n").names == [("stem", "a")]
    assert of("---\nid: {a: b}\n---\n").summary.ident == ""
    assert of("---\nid: 12\n---\n").summary.ident == "12"


def test_every_name_of_a_memory_has_the_key_of_a_link_to_it() -> None:
    fields = {"id": "people/Ann", "aliases": ["The Boss/Ann B", "A"]}
    assert keys_of("deep/x.md.md", fields) == ["x.md", "ann", "ann b", "a"]


def test_links_have_the_key_of_their_target() -> None:
    rows = of("[[Deep/B.md#One|x]] ![[img.png]] [y](../C.md#z)\n").links
    assert [(row[4], row[5], row[6], row[7], row[8], row[9]) for row in rows] == [
        ("wikilink", False, "Deep/B.md", "b", "One", "x"),
        ("wikilink", True, "img.png", "img.png", "", ""),
        ("markdown", False, "../C.md", "c", "z", "y"),
    ]


def test_tags_that_differ_in_case_have_one_key() -> None:
    assert [row[3:] for row in of("---\ntags: [Work]\n---\n#work and #WORK/Deep\n").tags] == [
        ("Work", "work"),
        ("work", "work"),
        ("WORK/Deep", "work/deep"),
    ]
    assert tag_key("Straße") == tag_key("STRASSE")


# --------------------------------------------------------------------------------------------------- fields


def test_fields_are_their_scalars_by_dotted_keys_in_order() -> None:
    text = (
        "---\na: 1\nsource: {type: chat, ids: [x, 2, 3.5]}\nb: [{c: true}, {c: false}]\nd: null\ne: no\n---\n"
    )
    assert of(text).fields == [
        (0, "a", 1),
        (1, "source.type", "chat"),
        (2, "source.ids", "x"),
        (3, "source.ids", 2),
        (4, "source.ids", 3.5),
        (5, "b.c", "true"),
        (6, "b.c", "false"),
        (7, "d", None),
        (8, "e", "no"),
    ]


def test_a_json_memory_has_its_members_as_fields() -> None:
    assert of_json({"step": 1, "deep": {"x": [1, {"y": "z"}]}}).fields == [
        (0, "step", 1),
        (1, "deep.x", 1),
        (2, "deep.x.y", "z"),
    ]
    assert of_json([1, 2]).fields == []


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        (2**63 - 1, 2**63 - 1),
        (-(2**63) + 1, -(2**63) + 1),
        (2**63, str(2**63)),
        (-(2**64), str(-(2**64))),
        (10**400, str(10**400)),
    ],
)
def test_a_number_that_sqlite_cannot_hold_is_kept_as_text(number: int, kept: object) -> None:
    assert of_json({"n": number}).fields == [(0, "n", kept)]


@pytest.mark.parametrize("digits", ["9" * 5_000, "0x" + "f" * 5_000, "0o" + "7" * 6_000, "1e999", "-.inf"])
def test_a_number_of_thousands_of_digits_does_no_harm(digits: str) -> None:
    made = of(f"---\ntitle: T\nn: {digits}\nid: {digits}\naliases: [{digits}]\n---\n")
    assert sqlite3.connect(":memory:").execute("SELECT ?", (made.fields[1][2],)).fetchone()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(st.characters()), VALUES, max_size=4))
@example(
    {"title": SURROGATE, "aliases": [f"x{SURROGATE}"], "tags": [SURROGATE], "id": SURROGATE, SURROGATE: 1}
)
def test_whatever_json_says_sqlite_can_hold(value: dict[str, object]) -> None:
    made = of_json(value)
    connection = sqlite3.connect(":memory:")
    rows = [made.summary, *made.names, *made.fields, *made.tags, *made.sections]
    for row in rows:
        marks = ", ".join("?" * len(row))
        held = connection.execute(f"SELECT {marks}", row).fetchone()
        assert held == tuple(row)
    connection.close()


# -------------------------------------------------------------------------------------------------- summary


def test_a_title_is_the_field_or_the_first_heading() -> None:
    assert of("---\ntitle: T\ntype: decision\n---\n# H\n").summary[:2] == ("T", "decision")
    assert of("text\n\n## First\n# Second\n").summary.title == "First"
    assert of("text\n").summary.title == ""


def test_a_memory_that_tells_its_day_is_dated_and_its_file_does_not_count() -> None:
    told = of("---\ncreated: 2024-02-03\n---\n", modified=5 * DAY).summary
    assert (told.day, told.dated) == ("2024-02-03", True)
    named = of("text\n", "journal/2023-04-05.md", 5 * DAY).summary
    assert (named.day, named.dated) == ("2023-04-05", True)
    undated = of("text\n", modified=5 * DAY).summary
    assert (undated.day, undated.dated) == ("1970-01-06", False)


def test_sections_and_blocks_say_where_they_are() -> None:
    made = of("# One Two\ntext ^fact\n## Three\n# One Two\n- x ^b-2\n")
    assert made.sections == [
        (0, 1, 1, "One Two", "one-two", "onetwo"),
        (1, 3, 2, "One Two\nThree", "three", "three"),
        (2, 4, 1, "One Two", "one-two-1", "onetwo"),
    ]
    assert made.blocks == [(0, "fact", 2), (1, "b-2", 5)]


def test_citations_and_urls_are_rows_and_nothing_is_seen_yet() -> None:
    made = of("See `src/a.py#L3-L4` and <https://example.org/x>.\n")
    assert made.citations == [(0, 1, 5, 19, "src/a.py", 3, 4, "", "", False, "")]
    assert [row[3] for row in made.urls] == ["https://example.org/x"]
