"""SQLite files: what is made, what is left as it is, and what an error says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mdmem.errors import IndexDamaged, StorageFailed
from mdmem.vault.sqlite import Schema, connected, open_connection

SCHEMA = Schema("keep things", "CREATE TABLE things (name TEXT);", 3, ("synchronous = OFF",), 1.0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "things.sqlite")


def set_version(path: str, version: int) -> None:
    with closing(open_connection(path, SCHEMA)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")


def test_a_new_file_has_the_schema_and_an_old_one_stays(path: str) -> None:
    for names in ([], ["a"]):
        with connected(path, SCHEMA) as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (0,)
            assert [name for (name,) in connection.execute("SELECT name FROM things")] == names
            connection.execute("INSERT INTO things VALUES ('a')")


def test_an_earlier_version_is_damage_and_so_are_tables_without_one_in_what_can_be_made_again(
    path: str,
) -> None:
    for version, is_derived in ((2, False), (-1, False), (0, True)):
        Path(path).unlink(missing_ok=True)
        set_version(path, version)
        with pytest.raises(IndexDamaged, match=f"its version is {version}, not 3"):
            open_connection(path, SCHEMA._replace(is_derived=is_derived))


def test_a_later_version_is_refused_and_stays_as_it_is(path: str) -> None:
    set_version(path, 4)
    before = Path(path).read_bytes()
    with pytest.raises(StorageFailed, match=r"cannot keep things: a later version .* \(4, not 3\)"):
        open_connection(path, SCHEMA)
    assert Path(path).read_bytes() == before


def test_what_is_no_database_is_damage(path: str) -> None:
    Path(path).write_bytes(b"no database " * 1_000)
    with pytest.raises(IndexDamaged, match="not a database"):
        open_connection(path, SCHEMA)


@pytest.mark.parametrize(("is_derived", "error"), [(True, IndexDamaged), (False, StorageFailed)])
def test_a_table_that_is_missing_is_damage_of_what_can_be_made_again(
    path: str, is_derived: bool, error: type[Exception]
) -> None:
    with (
        pytest.raises(error, match="no such table"),
        connected(path, SCHEMA._replace(is_derived=is_derived)) as c,
    ):
        c.execute("SELECT * FROM others")


def test_an_error_of_the_system_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="unable to open"):
        open_connection(str(tmp_path / "nowhere" / "things.sqlite"), SCHEMA)


def test_what_the_caller_raises_is_not_translated(path: str) -> None:
    with pytest.raises(KeyError), connected(path, SCHEMA):
        raise KeyError
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM things").fetchone() == (0,)
