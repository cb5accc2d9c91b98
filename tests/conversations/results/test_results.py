"""Outputs of tools: kept and given back byte for byte, by namespace and session, within bounds."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.conversations.results import database
from mdmem.conversations.results.results import Recoverable
from mdmem.errors import NamedNotFound, StorageFailed, Usage
from mdmem.facade.memory import Memory
from mdmem.vault.paths import Scope
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.conversations.results.database import ResultReference
    from mdmem.conversations.results.results import ToolResults

LOG = "".join(f"step {number} of src/app.py: ok\n" for number in range(1_000))
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DAY = 86_400


def configured(root: Path, text: str) -> ToolResults:
    (root / ".mdmem/config.toml").write_text(f"[results]\n{text}\n")
    return Memory(str(root)).results


def file_of(root: Path) -> Path:
    (path,) = root.glob(f".mdmem/local/results/*/{database.NAME}")
    return path


def age(root: Path, days: float, table: str = "outputs") -> None:
    """Make everything that is kept so many days older."""
    with sqlite3.connect(file_of(root)) as connection:
        connection.execute(f"UPDATE {table} SET used = used - ?", (days * DAY,))
    connection.close()


# -- the short form -----------------------------------------------------------------------------------------


def test_short_content_is_unchanged_and_nothing_is_kept(results: ToolResults, vault_root: Path) -> None:
    done = results.compress("Bash", "x" * 2_999)
    assert (done.summary, done.ratio, done.references) == ("x" * 2_999, 1.0, ())
    assert not done.recoverable
    assert not results.can_recover(done.hash)
    assert not (vault_root / ".mdmem/local").exists()


def test_long_content_is_shorter_and_can_be_recovered(results: ToolResults) -> None:
    done = results.compress("Bash", LOG, session="s")
    assert len(done.summary) < len(LOG)
    assert done.ratio == len(done.summary) / len(LOG)
    assert (done.original_length, done.tool, done.recoverable) == (len(LOG), "Bash", True)
    assert done.hash == hashlib.sha256(LOG.encode()).hexdigest()
    assert f"mdmem results recover {done.hash[:16]} --lines 16-985" in done.rest
    assert [(each.type, each.value) for each in done.references] == [("file_path", "src/app.py")]
    assert results.recover(done.hash) == LOG.encode()
    assert results.can_recover(done.hash)


def test_the_config_says_from_which_length_on(vault_root: Path) -> None:
    results = configured(vault_root, "min_length = 10")
    assert not results.compress("Bash", "x" * 9).recoverable
    assert results.compress("Bash", "x" * 10).recoverable


@pytest.mark.parametrize("lines", ["16-18", (16, 18), [16, 18]])
def test_some_lines_can_be_recovered(results: ToolResults, lines: str) -> None:
    done = results.compress("Bash", LOG)
    assert results.recover(done.hash, lines) == "".join(LOG.splitlines(keepends=True)[15:18]).encode()


def test_lines_end_as_everywhere(results: ToolResults) -> None:
    data = b"one\r\ntwo\rthree\x0bstill\nlast" + b"\xff" * 3_000
    hash_ = results.compress("Bash", data).hash
    assert [results.recover(hash_, str(number)) for number in (1, 2, 3)] == [
        b"one\r\n",
        b"two\r",
        b"three\x0bstill\n",
    ]
    assert results.recover(hash_, "3-99") == data[9:]
    with pytest.raises(Usage, match="the last one is 4"):
        results.recover(hash_, "5")


@cases("lines", ["0", "0-3", "3-2", "x", "", "1-", "-1", "9" * 30, (1,), (1, 2, 3), (0, 1), (2, 1)])
def test_what_are_no_lines_is_refused(results: ToolResults, lines: str) -> None:
    hash_ = results.compress("Bash", LOG).hash
    with pytest.raises(Usage):
        results.recover(hash_, lines)


def test_a_secret_is_taken_out_of_the_short_form_and_stays_in_the_original(results: ToolResults) -> None:
    for text in (f"{TOKEN}\n{LOG}", f"short {TOKEN}"):
        done = results.compress("Bash", text)
        assert TOKEN not in str(done)
        assert "GitHub token" in done.warnings[0]
        assert results.recover(done.hash) == text.encode()
        assert TOKEN not in str(results.references())


def test_bytes_that_are_no_text_are_shown_as_such_and_kept_as_they_are(results: ToolResults) -> None:
    for data in (b"\xff\xfe" * 2_000, b"short \xff", LOG.encode() + b"\x80"):
        done = results.compress("Bash", data)
        assert "\ufffd" in done.summary
        assert "no UTF-8" in done.warnings[0]
        assert results.recover(done.hash) == data


def test_half_a_character_is_kept(results: ToolResults) -> None:
    done = results.compress("Bash", "\ud800" * 3_000)
    assert done.summary.isprintable()
    assert results.recover(done.hash) == ("\ud800" * 3_000).encode("utf-8", "surrogatepass")


PIECES = st.sampled_from(
    [
        b"\r",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xed\xa0\x80",
        "\U0001f600".encode(),
        "e\u0301".encode(),
        b"\x00",
        b"error\n",
        b"src/a.py:3: x\n",
        b"\xf0\x9f\x98",
        b"<html><p>",
        TOKEN.encode(),
        b"word " * 30,
        b"class A:\n",
        b"\x1b[31m",
    ]
)
OUTPUTS = st.one_of(
    st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=80).map(b"".join),
    st.lists(
        st.one_of(PIECES.map(lambda p: p.decode("utf-8", "replace")), st.text(max_size=20)), max_size=80
    ).map("".join),
)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tool=st.sampled_from(["Read", "Grep", "Glob", "Bash", "WebFetch", "Other"]), output=OUTPUTS)
def test_every_output_comes_back_byte_for_byte_and_none_becomes_longer(
    vault_root: Path, tool: str, output: str | bytes
) -> None:
    config = vault_root / ".mdmem/config.toml"
    if not config.read_text():
        config.write_text("[results]\nmin_length = 0\n")
    results = Memory(str(vault_root)).results
    done = results.compress(tool, output)
    data = output.encode("utf-8", "surrogatepass") if isinstance(output, str) else output
    text = output if isinstance(output, str) else output.decode("utf-8", "replace")
    assert results.recover(done.hash) == data
    assert len(done.summary) <= len(text) == done.original_length
    done.summary.encode()
    assert not re.search(rf"(?<![\w-]){TOKEN}(?![\w-])", done.summary)


# -- hashes -------------------------------------------------------------------------------------------------


def test_the_beginning_of_a_hash_is_enough(results: ToolResults) -> None:
    hash_ = results.compress("Bash", LOG).hash
    assert results.recover(hash_[:8]) == results.recover(hash_.upper()) == LOG.encode()
    assert results.can_recover(hash_[:8]).hash == hash_


def test_a_beginning_that_several_have_is_refused(results: ToolResults, vault_root: Path) -> None:
    first = results.compress("Bash", LOG).hash
    results.compress("Bash", LOG + "more")
    with sqlite3.connect(file_of(vault_root)) as connection:
        connection.execute("UPDATE outputs SET hash = ? WHERE hash != ?", (first[:12] + "0" * 52, first))
    connection.close()
    with pytest.raises(Usage, match="2 results begin with"):
        results.recover(first[:8])
    with pytest.raises(Usage, match="2 results begin with"):
        results.can_recover(first[:12])
    assert results.recover(first) == LOG.encode()


@cases("hash_", ["../../x", "", "0123456", "g" * 64, "0" * 65, "%", "'; --", "\0" * 8, "\ud800" * 8])
def test_what_is_no_hash_is_refused(results: ToolResults, hash_: str) -> None:
    with pytest.raises(Usage):
        results.recover(hash_)
    with pytest.raises(Usage):
        results.can_recover(hash_)


def test_what_was_never_kept_is_not_found(results: ToolResults) -> None:
    for _ in range(2):
        with pytest.raises(NamedNotFound, match="no result '0000000000'"):
            results.recover("0" * 10)
        assert results.can_recover("0" * 10) == Recoverable(hash="0" * 10, recoverable=False)
        results.compress("Bash", LOG)


def test_bytes_that_are_not_what_was_stored_are_never_given(results: ToolResults, vault_root: Path) -> None:
    hash_ = results.compress("Bash", LOG).hash
    with sqlite3.connect(file_of(vault_root)) as connection:
        connection.execute("UPDATE outputs SET content = ?", (b"other",))
    connection.close()
    with pytest.raises(StorageFailed, match="not those that were stored"):
        results.recover(hash_)
    assert not results.can_recover(hash_)


# -- namespaces and sessions --------------------------------------------------------------------------------


def test_a_namespace_is_a_wall(vault_root: Path) -> None:
    """Another one with the same bytes cannot tell that they are there; the owner of the vault neither."""
    alice = Memory(str(vault_root), Scope(user="alice")).results
    hash_ = alice.compress("Bash", LOG, session="s").hash
    for scope in (Scope(user="bob"), Scope(), Scope(user="alice", project="p"), Scope(user="alice2")):
        other = Memory(str(vault_root), scope).results
        assert not other.can_recover(hash_[:8])
        with pytest.raises(NamedNotFound) as found:
            other.recover(hash_)
        assert "swept" not in str(found.value)
        assert [*other.list(), *other.references(), *other.lookup("src/app.py")] == []
        assert (other.stats().total, other.stats().outputs, other.stats().bytes) == (0, 0, 0)
        with pytest.raises(NamedNotFound):
            other.mark("src/app.py")
        assert other.sweep(0).outputs == 0
    assert alice.recover(hash_) == LOG.encode()
    bob = Memory(str(vault_root), Scope(user="bob")).results
    assert bob.compress("Bash", LOG).recoverable
    assert bob.sweep(0).outputs == 1
    assert alice.recover(hash_) == LOG.encode()
    assert not bob.can_recover(hash_)
    assert bob.can_recover(hash_).gone


def test_a_session_sees_what_it_has_stored_alone(results: ToolResults) -> None:
    hash_ = results.compress("Bash", LOG, session="a").hash
    with pytest.raises(NamedNotFound):
        results.recover(hash_, session="b")
    assert not results.can_recover(hash_, session="b")
    assert [*results.list(session="b"), *results.references(session="b")] == []
    results.compress("Read", LOG, session="b")
    assert results.recover(hash_, session="b") == LOG.encode()
    assert [(each.tool, each.session) for each in results.list()] == [("Bash", "a"), ("Read", "b")]
    assert [each.tool for each in results.list(session="b")] == ["Read"]
    assert results.stats().bytes == len(LOG)
    results.sweep(0)
    assert not results.can_recover(hash_, session="c").gone
    assert results.can_recover(hash_, session="b").gone


@pytest.mark.parametrize("name", ["\ud800", "x" * 1_001])
def test_what_cannot_be_a_session_is_refused(results: ToolResults, name: str) -> None:
    with pytest.raises(Usage):
        results.compress("Bash", LOG, session=name)
    with pytest.raises(Usage):
        results.list(session=name)


@pytest.mark.parametrize(
    "tool", ["\x1b[31mBash\n\n", "'; DROP TABLE outputs; --", "../../x", "x" * 10**6, "\ud800", "%s{}"]
)
def test_a_hostile_name_of_a_tool_is_a_name(results: ToolResults, tool: str) -> None:
    done = results.compress(tool, LOG)
    assert done.tool.isprintable()
    assert len(done.tool) <= 100
    assert [each.hash for each in results.list(tool=tool)] == [done.hash]
    assert results.recover(done.hash) == LOG.encode()


# -- references ---------------------------------------------------------------------------------------------


def values(found: Iterable[ResultReference]) -> list[str]:
    return [each.value for each in found]


def test_register_and_list_by_type_in_order(results: ToolResults) -> None:
    results.compress("Bash", "src/b.py https://b.org def two(x)\n" + LOG.replace("app", "z"))
    results.compress("Read", "src/a.py https://a.org def one(x)\n" + LOG.replace("app", "y"))
    assert values(results.references("file_path")) == ["src/b.py", "src/z.py", "src/a.py", "src/y.py"]
    assert values(results.references("url")) == ["https://b.org", "https://a.org"]
    assert values(results.references("function", tool="Read")) == ["one"]
    with pytest.raises(Usage, match="file_path, url"):
        results.references("nonsense")


def test_what_is_registered_twice_counts_twice(results: ToolResults) -> None:
    results.compress("Bash", LOG, session="a")
    results.compress("Bash", LOG + "more", session="b")
    (one,) = results.references("file_path")
    assert (one.value, one.count, one.context) == ("src/app.py", 2, "step 0 of src/app.py: ok")
    assert one.created <= one.used
    assert results.references(session="a")[0].count == 1


def test_list_recent_gives_those_used_last(results: ToolResults) -> None:
    for name in "abc":
        results.compress("Bash", LOG.replace("app", name))
    assert values(results.references(limit=2)) == ["src/c.py", "src/b.py"]
    assert values(results.mark("src/a.py")) == ["src/a.py"]
    assert values(results.references(limit=2)) == ["src/a.py", "src/c.py"]
    assert values(results.references(limit=0)) == []
    with pytest.raises(Usage):
        results.references(limit=-1)


def test_mark_counts_a_use_and_lookup_finds_by_the_end_of_a_path(results: ToolResults) -> None:
    results.compress("Bash", LOG)
    assert results.mark("src/app.py", "file_path")[0].count == 2
    assert values(results.lookup("app.py")) == ["src/app.py"]
    assert results.lookup("pp.py") == results.lookup("%") == results.lookup("\ud800") == []
    assert results.lookup("src/app.py", "url") == []
    with pytest.raises(NamedNotFound) as error:
        results.mark("app.py")
    assert error.value.near == ("src/app.py",)


def test_stats_count_what_there_is(results: ToolResults, vault_root: Path) -> None:
    results.compress("Bash", "https://a.org\n" + LOG)
    results.compress("Bash", LOG)
    stats = results.stats()
    assert (stats.total, stats.by_type, stats.added) == (2, {"file_path": 1, "url": 1}, 2)
    assert values(stats.most_used) == ["src/app.py", "https://a.org"]
    assert (stats.outputs, stats.bytes) == (2, 2 * len(LOG) + 14)
    with sqlite3.connect(file_of(vault_root)) as connection:
        connection.execute("UPDATE named SET created = created - 3601 WHERE type = 'url'")
    connection.close()
    assert results.stats().added == 1


def test_no_more_references_are_kept_than_may_be_the_oldest_unused_go_first(vault_root: Path) -> None:
    results = configured(vault_root, "max_references = 3")
    for name in "abc":
        results.compress("Bash", LOG.replace("app", name))
    results.mark("src/a.py")
    results.compress("Bash", LOG.replace("app", "d"))
    assert values(results.references()) == ["src/a.py", "src/c.py", "src/d.py"]


# -- sweeping -----------------------------------------------------------------------------------------------


def test_cleanup_removes_what_nobody_used_for_so_long_and_says_when(
    results: ToolResults, vault_root: Path
) -> None:
    old = results.compress("Bash", LOG).hash
    age(vault_root, 3)
    age(vault_root, 3, "named")
    new = results.compress("Bash", LOG.replace("app", "new")).hash
    would = results.sweep(2, dry_run=True)
    assert results.sweep(2, dry_run=True) == would
    swept = results.sweep(2)
    assert swept == would
    assert (swept.outputs, swept.references) == (1, 1)
    assert results.can_recover(new)
    found = results.can_recover(old[:8])
    assert (found.recoverable, found.hash, found.gone[:2]) == (False, old, "20")
    with pytest.raises(NamedNotFound, match=f"swept at {found.gone}"):
        results.recover(old)
    assert results.compress("Bash", LOG).recoverable
    assert results.can_recover(old) == Recoverable(hash=old, recoverable=True)


def test_what_is_too_old_goes_when_something_is_stored(vault_root: Path) -> None:
    results = configured(vault_root, "max_days = 5")
    old = results.compress("Bash", LOG).hash
    age(vault_root, 6)
    results.compress("Bash", LOG + "new")
    assert results.can_recover(old).gone
    assert len(results.list()) == 1


def test_max_size_the_oldest_unused_goes_first(vault_root: Path) -> None:
    results = configured(vault_root, f"max_bytes = {3 * len(LOG)}")
    hashes = [results.compress("Bash", LOG.replace("app", name)).hash for name in ("app", "bpp", "cpp")]
    results.recover(hashes[0])
    hashes.append(results.compress("Bash", LOG.replace("app", "dpp")).hash)
    assert [bool(results.can_recover(each)) for each in hashes] == [True, False, True, True]
    assert results.can_recover(hashes[1]).gone


def test_what_is_larger_than_all_that_may_be_kept_is_compressed_and_not_kept(vault_root: Path) -> None:
    results = configured(vault_root, "max_bytes = 5000")
    done = results.compress("Bash", LOG)
    assert len(done.summary) < len(LOG)
    assert not done.recoverable
    assert "5,000 may be kept" in done.rest
    assert not results.can_recover(done.hash)
    assert values(results.references()) == ["src/app.py"]


@pytest.mark.parametrize("days", [-1, float("nan")])
def test_no_age_is_refused(results: ToolResults, days: float) -> None:
    with pytest.raises(Usage):
        results.sweep(days)


def test_asking_makes_nothing(results: ToolResults, vault_root: Path) -> None:
    assert [*results.list(), *results.references(), *results.lookup("x")] == []
    assert results.stats().total == results.sweep().outputs == 0
    assert not results.can_recover("0" * 8)
    assert [path.name for path in vault_root.rglob("*")] == [".mdmem", "config.toml"]


# -- the database -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a?b#c%20d", "über ' \" &", "x\udcff"])
def test_a_vault_may_be_called_anything(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    (root / ".mdmem").mkdir(parents=True)
    (root / ".mdmem/config.toml").touch()
    results = Memory(str(root)).results
    assert results.recover(results.compress("Bash", LOG).hash) == LOG.encode()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_nobody_else_can_read_it(results: ToolResults, vault_root: Path) -> None:
    results.compress("Bash", LOG)
    for path in file_of(vault_root).parent.glob(f"{database.NAME}*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["text", "middle", "cut"])
def test_a_database_that_cannot_be_used_is_put_aside_with_a_word(vault_root: Path, damage: str) -> None:
    memory = Memory(str(vault_root))
    hash_ = memory.results.compress("Bash", LOG * 20).hash
    file = file_of(vault_root)
    data = file.read_bytes()
    match damage:
        case "text":
            file.write_bytes(b"no database " * 1_000)
        case "middle":
            file.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
        case "cut":
            file.write_bytes(data[: len(data) // 2])
    assert not memory.results.can_recover(hash_)
    assert memory.results.references() == []
    done = memory.results.compress("Bash", LOG)
    assert memory.results.recover(done.hash) == LOG.encode()
    assert "put aside" in " ".join(memory.service.remarks)
    assert os.path.lexists(file.with_name(f"{database.NAME}.damaged"))


def test_what_sqlite_does_not_understand_puts_no_database_aside(vault_root: Path) -> None:
    results = Memory(str(vault_root)).results
    done = results.compress("Bash", LOG)
    file, notes = file_of(vault_root), list[str]()
    kept = database.ResultDatabase(str(file.parent), notes)
    for ask in (kept.read, kept.write):
        with pytest.raises(StorageFailed, match="no such function"):
            ask(lambda connection: connection.execute("SELECT no_such_function()"))
    assert notes == []
    assert not file.with_name(f"{database.NAME}.damaged").exists()
    assert results.recover(done.hash) == LOG.encode()


def test_a_second_database_that_is_put_aside_replaces_no_other(vault_root: Path) -> None:
    for text in (b"first", b"second"):
        Memory(str(vault_root)).results.compress("Bash", LOG)
        file_of(vault_root).write_bytes(text * 1_000)
        Memory(str(vault_root)).results.compress("Bash", LOG)
    for name, text in (("damaged", b"first"), ("damaged-2", b"second")):
        assert file_of(vault_root).with_name(f"{database.NAME}.{name}").read_bytes().startswith(text)


def test_a_database_of_a_later_version_stays_as_it_is(vault_root: Path) -> None:
    results = Memory(str(vault_root)).results
    results.compress("Bash", LOG)
    with sqlite3.connect(file_of(vault_root)) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    before = file_of(vault_root).read_bytes()
    done = results.compress("Bash", LOG * 2)
    assert not done.recoverable
    assert "a later version of mdmem" in done.rest
    with pytest.raises(StorageFailed, match="a later version"):
        results.recover(done.hash)
    assert file_of(vault_root).read_bytes() == before


def test_a_file_that_came_with_the_vault_is_never_opened(vault_root: Path) -> None:
    """Wherever it stands, what was made here stands elsewhere; a link is not followed."""
    local = vault_root / ".mdmem/local"
    (local / "results").mkdir(parents=True)
    outside = vault_root.parent / "outside.sqlite"
    outside.write_bytes(b"theirs")
    for path in (local / "results.sqlite", local / "results/results.sqlite", local / "results/x"):
        path.symlink_to(outside)
    results = Memory(str(vault_root)).results
    assert results.compress("Bash", LOG).recoverable
    assert outside.read_bytes() == b"theirs"
    assert not file_of(vault_root).is_symlink()


def test_a_link_in_the_place_of_its_folder_is_refused_and_the_short_form_is_given(vault_root: Path) -> None:
    (vault_root / ".mdmem/local").mkdir()
    outside = vault_root.parent / "outside"
    outside.mkdir()
    (vault_root / ".mdmem/local/results").symlink_to(outside)
    done = Memory(str(vault_root)).results.compress("Bash", LOG)
    assert not done.recoverable
    assert "not kept" in done.rest
    assert list(outside.iterdir()) == []


def test_what_is_deleted_is_made_again(results: ToolResults, vault_root: Path) -> None:
    hash_ = results.compress("Bash", LOG).hash
    file_of(vault_root).unlink()
    assert not results.can_recover(hash_)
    assert results.compress("Bash", LOG).recoverable
    assert results.recover(hash_) == LOG.encode()


def test_process_tool_result_registers_what_it_names_under_its_tool(results: ToolResults) -> None:
    text = 'Traceback:\n  File "/srv/app.py", line 7, in main\n' + LOG + "ValueError: https://docs.org/x\n"
    done = results.compress("Bash", text, session="s")
    assert "ValueError" in done.summary
    kept = {(each.type, each.value) for each in results.references(session="s", tool="Bash")}
    assert kept == {(each.type, each.value) for each in done.references}
    assert ("function", "main") in kept
    assert ("line_range", "/srv/app.py#L7") in kept
    assert results.references(tool="Read") == []


# -- what a host does itself ------------------------------------------------------------------------------


def test_the_config_says_how_long_a_short_form_is(vault_root: Path) -> None:
    sizes = []
    for most in (0, 400, 2_000):
        done = configured(vault_root, f"max_summary = {most}").compress("Bash", LOG)
        assert done.recoverable
        sizes.append(len(done.summary))
    assert sizes == sorted(sizes)
    assert sizes[0] < 400
    assert sizes[1] <= 600 < sizes[2] <= 2_400


def test_a_reference_of_a_host_counts_as_one_that_was_found(results: ToolResults) -> None:
    (made,) = results.register("file_path", "src/a.py", context="def  a():", session="s", tool="Read")
    assert (made.type, made.value, made.context, made.count) == ("file_path", "src/a.py", "def a():", 1)
    (again,) = results.register("file_path", "src/a.py", session="s", tool="Read")
    assert (again.count, again.context) == (2, "def a():")
    (alone,) = results.register("url", "https://example.com")
    assert results.references(session="s") == [again]
    assert {each.value for each in results.references()} == {"src/a.py", alone.value}
    assert results.lookup("a.py", session="s") == [again]


@cases(
    "kind, value",
    [
        ("file", "a.py"),
        ("url", " "),
        ("url", "x" * 501),
        ("url", "https://x/ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"),
    ],
)
def test_a_reference_that_cannot_be_kept_is_refused(results: ToolResults, kind: str, value: str) -> None:
    with pytest.raises(Usage):
        results.register(kind, value)
    assert results.references() == []
