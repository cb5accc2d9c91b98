"""The database: what it takes in and gives back, whoever else uses it, and what a broken file does.

The rows of a memory: the keys that it is found by, and the scalars of its fields.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document.document import parse, parse_text
from mdmem.errors import IndexDamaged, StorageFailed
from mdmem.index import database as module
from mdmem.index.database import (
    VERSION,
    Database,
    DocumentRow,
    Record,
    Seen,
    alias_key,
    key_of,
    keys_of,
    record,
    stem_keys,
    tag_key,
)
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator


SEEN = Seen(1, 2, 3, 4)
RICH = (
    "---\nid: x\naliases: [one]\ntags: [t]\n---\n# H\n[[b]] `src/a.py#L1` <https://example.org> #u\ntext ^b\n"
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "database.sqlite")


@pytest.fixture
def database(path: str) -> Iterator[Database]:
    database = Database(path)
    yield database
    database.close()


def entry(path: str, text: str = RICH) -> DocumentRow:
    return DocumentRow(
        path, SEEN, racy=False, hash=f"hash of {text}", problem="", record=record(parse_text(path, text), 0)
    )


def put(database: Database, *entries: DocumentRow) -> None:
    with database.writing():
        database.replace(entries)


def dump(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table that belongs to documents, with paths in the place of numbers."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for part in (*module._PARTS, "documents"):
        number = "id" if part == "documents" else "document"
        rows = database.rows(f"SELECT d.path, x.* FROM {part} AS x JOIN documents AS d ON d.id = x.{number}")
        found[part] = sorted(((path, *row) for path, _, *row in rows), key=repr)
    return found


def indexes(database: Database) -> set[str]:
    return {name for (name,) in database.rows("SELECT name FROM sqlite_master WHERE type = 'index'")}


# ------------------------------------------------------------------------------------------------- opening


def test_a_new_one_is_empty_and_an_old_one_is_as_it_was(path: str) -> None:
    first = Database(path)
    assert first.known() == {}
    assert first.rows("PRAGMA user_version") == [(VERSION,)]
    assert first.rows("PRAGMA journal_mode") == [("wal",)]
    put(first, entry("a.md"))
    first.set_value("key", 7)
    before = dump(first)
    first.close()
    second = Database(path)
    assert dump(second) == before
    assert second.value("key") == 7
    assert second.value("other") is None
    second.close()


@pytest.mark.parametrize("version", [VERSION - 1, -3])
def test_an_earlier_version_is_damage_and_stays_as_it_is(path: str, version: int) -> None:
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(IndexDamaged, match=re.escape(str(version))):
        Database(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
    connection.close()


@pytest.mark.parametrize("content", [b"not a database, but long enough to look like one " * 40, b"\0" * 4096])
def test_what_is_no_database_is_damage(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    with pytest.raises(IndexDamaged) as caught:
        Database(path)
    assert caught.value.path == path


def test_an_empty_file_is_a_new_database(path: str) -> None:
    Path(path).touch()
    database = Database(path)
    put(database, entry("a.md"))
    assert list(database.known()) == ["a.md"]
    database.close()


def test_a_folder_in_its_place_is_refused_by_the_system(path: str) -> None:
    Path(path).mkdir()
    with pytest.raises(StorageFailed, match="use the index"):
        Database(path)


@cache
def filled() -> bytes:
    """The bytes of a database that holds something in every table."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"{folder}/database.sqlite")
        put(database, *(entry(f"notes/{n}.md", RICH * 9) for n in range(20)))
        database.close()
        return Path(folder, "database.sqlite").read_bytes()


@given(st.data())
@settings(max_examples=examples(60))
def test_a_torn_or_garbled_file_is_damage_or_does_no_harm(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "database.sqlite"
    content = bytearray(filled())
    if data.draw(st.booleans(), "torn"):
        del content[data.draw(st.integers(0, len(content)), "at") :]
    else:
        for _ in range(data.draw(st.integers(1, 5), "pages")):
            at = data.draw(st.integers(0, len(content) // 4096 - 1), "page") * 4096
            content[at : at + 4096] = (data.draw(st.binary(min_size=1, max_size=8)) * 4096)[:4096]
    path.write_bytes(content)
    try:
        database = Database(str(path))
    except (IndexDamaged, StorageFailed):
        return
    try:
        dump(database)
        put(database, entry("notes/1.md"), entry("new.md"))
        with database.writing():
            database.forget(["notes/2.md"])
        assert "new.md" in database.known()
        assert "notes/2.md" not in database.known()
    except IndexDamaged:
        pass
    finally:
        database.close()


def test_a_file_that_another_process_has_replaced_is_noticed(path: str, database: Database) -> None:
    told = [database.replaced]
    os.unlink(path)
    told.append(database.replaced)
    other = Database(path)
    told += [database.replaced, other.replaced]
    other.close()
    assert told == [False, True, True, False]


def test_what_a_query_means_wrongly_is_damage(database: Database) -> None:
    with pytest.raises(IndexDamaged, match="no such table"):
        database.rows("SELECT * FROM nowhere")


# ------------------------------------------------------------------------------------------------- writing


def test_replacing_a_document_leaves_the_others_and_nothing_of_the_old_one(database: Database) -> None:
    put(database, entry("a.md"), entry("b.md"), entry("c.md"))
    before = dump(database)
    put(database, entry("b.md", "bare\n"))
    after = dump(database)
    for part, rows in before.items():
        kept = [row for row in rows if row[0] != "b.md"]
        assert [row for row in after[part] if row[0] != "b.md"] == kept
    assert {part for part, rows in after.items() for row in rows if row[0] == "b.md"} == {
        "documents",
        "names",
    }
    put(database, entry("b.md"))
    assert dump(database) == before


def test_a_file_with_a_problem_has_no_rows_but_its_own(database: Database) -> None:
    put(database, entry("a.md"))
    put(database, DocumentRow("a.md", SEEN, racy=True, hash="", problem="a symbolic link", record=None))
    found = dump(database)
    assert [part for part, rows in found.items() if rows] == ["documents"]
    assert found["documents"] == [("a.md", "a.md", *SEEN, 1, "", "a symbolic link", "", "", "", 0, "", "")]


def test_what_is_forgotten_is_gone_and_what_is_not_there_is_no_error(database: Database) -> None:
    put(database, entry("a.md"))
    with database.writing():
        database.forget(["a.md", "never.md"])
    assert not any(dump(database).values())
    for part in module._PARTS:
        assert database.rows(f"SELECT count(*) FROM {part}") == [(0,)]


def test_what_a_file_looks_like_can_change_alone(database: Database) -> None:
    put(database, entry("a.md"))
    parts = {part: rows for part, rows in dump(database).items() if part != "documents"}
    with database.writing():
        database.see("a.md", Seen(9, 8, 7, 6), racy=True)
    assert database.known() == {"a.md": (9, 8, 7, 6)}
    assert database.rows("SELECT racy FROM documents") == [(1,)]
    assert {part: rows for part, rows in dump(database).items() if part != "documents"} == parts


def test_what_fails_half_way_has_not_happened(database: Database) -> None:
    put(database, entry("a.md"))
    before = dump(database)
    with contextlib.suppress(KeyError), database.writing():
        database.forget(["a.md"])
        database.set_value("key", 1)
        raise KeyError
    assert dump(database) == before
    assert database.value("key") is None
    put(database, entry("b.md"))


# ------------------------------------------------------------------------------------------- the first fill


def test_a_first_fill_leaves_all_indexes(database: Database) -> None:
    before = indexes(database)
    with database.filling():
        assert indexes(database) < before
        put(database, *(entry(f"{n}.md") for n in range(10)))
    assert indexes(database) == before
    with pytest.raises(KeyError), database.filling():
        raise KeyError
    assert indexes(database) == before


FILLER = """
import os, signal, sys
from mdmem.index.database import Database
with Database(sys.argv[1]).filling():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_fill_that_is_killed_leaves_indexes_to_whoever_opens_it_next(path: str) -> None:
    database = Database(path)
    wanted = indexes(database)
    database.close()
    ended = subprocess.run([sys.executable, "-c", FILLER, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    database = Database(path)
    assert indexes(database) == wanted
    database.close()


# ---------------------------------------------------------------------------------------------------- moves


def moves(database: Database) -> dict[str, str]:
    return dict(database.rows("SELECT old, new FROM moves"))


def note(database: Database, **moved: str) -> None:
    with database.writing():
        database.note_moves(moved)


def test_a_chain_of_moves_leads_to_its_end(database: Database) -> None:
    note(database, a="b")
    note(database, b="c", x="y")
    assert moves(database) == {"a": "c", "b": "c", "x": "y"}
    note(database, c="d", y="z")
    assert moves(database) == {"a": "d", "b": "d", "c": "d", "x": "z", "y": "z"}


def test_a_path_to_which_a_memory_moves_is_none_that_it_has_left(database: Database) -> None:
    note(database, a="b")
    note(database, b="a")
    assert moves(database) == {"b": "a"}
    note(database, c="b")
    assert moves(database) == {"c": "b"}


# ----------------------------------------------------------------------------------- several at the same time


def test_two_connections_see_each_other_and_know_that_something_changed(
    path: str, database: Database
) -> None:
    other = Database(path)
    seen = other.changes()
    put(database, entry("a.md"))
    assert other.changes() != seen
    assert list(other.known()) == ["a.md"]
    seen = database.changes()
    put(database, entry("b.md"))
    assert database.changes() == seen
    other.close()


WRITER = """
import sys
from mdmem.index.database import Database
database = Database(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(60):
    with database.writing():
        value = database.value("count") or 0
        database.set_value("count", value + 1)
database.close()
"""


def test_processes_that_write_at_once_wait_for_each_other(path: str) -> None:
    Database(path).close()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("go\n")
        assert writer.returncode == 0
    database = Database(path)
    assert database.value("count") == 180
    database.close()


def test_what_no_file_can_say_is_found_nowhere(database: Database) -> None:
    """An argument on a command line that is not UTF-8 holds half of a character."""
    put(database, entry("a.md"))
    assert database.rows("SELECT path FROM documents WHERE path = ?", ("\udcff",)) == []
    assert database.rows("SELECT path FROM documents WHERE path >= ? AND title = ?", ("", "x\ud800")) == []


DAY = 86_400.0
SURROGATE = "\ud800"
CAFE, CAFE_NFD = "Caf\u00e9", "Cafe\u0301"


def of(text: str, path: str = "notes/a.md", modified: float = 0) -> Record:
    return record(parse_text(path, text), modified)


def of_json(value: object, path: str = "a.json") -> Record:
    return record(parse(path, json.dumps(value).encode()), 0)


# --------------------------------------------------------------------------------------------------- keys


@cases(
    "target, key",
    [
        ("", ""),
        ("db", "db"),
        ("notes/DB.md", "db"),
        ("../x/db.md", "db"),
        ("db.json", "db.json"),
        ("db.md.md", "db.md"),
        ("folder/", "folder"),
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


@cases("aliases", ["One", ["One"], ["One", ["nested"], {"a": 1}, ""], '"One"'])
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


@cases(
    "number, kept",
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


@cases("digits", ["9" * 5_000, "0x" + "f" * 5_000, "0o" + "7" * 6_000, "1e999", "-.inf"])
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


def test_a_memory_has_a_key_for_each_way_to_say_its_path() -> None:
    assert stem_keys("n/A.md") == ("a",)
    assert stem_keys("n/a.json") == ("a.json",)
    assert stem_keys("n/a.mdx") == ("a", "a.mdx")
    assert stem_keys("a.markdown") == ("a", "a.markdown")
    assert stem_keys("a.mdx.md") == ("a.mdx",)
    assert keys_of("n/a.mdx", {"id": "x.md", "aliases": ["y"]}) == ["a", "a.mdx", "x", "y"]
