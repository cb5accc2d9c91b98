"""`mdmem store`: vaults in a database, from the command line."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import mdmem
from mdmem.vault.connection import make_tables, read_address
from mdmem.vault.local_store import LocalStore
from mdmem.vault.postgres import PostgresStore
from mdmem.vault.postgres_upkeep import check
from tests.vault.test_transfer import make_vault, state_of

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.vault.postgres_server import Server


def test_a_vault_is_made_and_used_by_its_url(cli: Cli, server: Server) -> None:
    first, second = (server.url(uuid4().hex) for _ in "ab")
    assert cli("store", "init", first).code == 0
    made = cli("--vault", second, "store", "init", "--json", "--servers", "servers").json
    assert made == {"vault": second, "tables": False, "grants": []}
    again = cli("store", "init", first)
    assert (again.code, "is a vault already" in again.errors) == (2, True)
    assert cli("store", "init").code == 2

    assert cli("--vault", first, "write", "notes/a.md", "# Heron").code == 0
    assert cli("--vault", first, "append", "notes/a.md", "blue").code == 0
    swept = {"entries": 0, "versions": 0, "bytes": 0}
    assert cli("store", "sweep", first, "--dry-run", "--json").json == {"applied": False, **swept}
    assert cli("--vault", first, "store", "sweep").out == "removed entries: 0, versions: 0, bytes: 0\n"
    assert "notes/a.md" in cli("search", "heron", env={"MDMEM_VAULT": first}).out
    assert cli("--vault", second, "search", "heron").code == 1
    assert cli("--vault", first, "status").out.splitlines()[0].split()[1] == first
    refused = cli("--vault", first, "git", "log")
    assert (refused.code, "needs a vault in a folder" in refused.errors) == (2, True)
    assert cli("--vault", first, "install", "claude-code", "--dry-run").code == 2


def test_new_tables_come_with_what_to_grant(cli: Cli, server: Server) -> None:
    database = f"d{uuid4().hex}"
    server.ask(f"CREATE DATABASE {database}")
    url = server.url("team").replace("/postgres?", f"/{database}?")
    made = cli("store", "init", url, "--servers", "servers")
    assert made.code == 0
    assert "GRANT SELECT, UPDATE ON mdmem.head TO servers;" in made.out.splitlines()
    assert "embedding" not in made.out
    more = cli("store", "init", url, "--servers", "servers", "--dims", "3")
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON mdmem.embedding TO servers;" in more.out.splitlines()
    assert cli("store", "init", url, "--dims", "3").code == 2
    other = cli("store", "init", url.replace("vault=team", "vault=other"), "--dims", "4")
    assert (other.code, "have 3 numbers, and not 4" in other.errors) == (2, True)
    assert cli("store", "init", url.replace("vault=team", "vault=other"), "--dims", "3").code == 0


def test_a_password_on_a_command_line_is_refused_and_not_repeated(cli: Cli) -> None:
    for arguments in (("store", "init"), ("ls",)):
        url = "postgresql://ann:secret@db.example/memories?vault=team"
        refused = cli("--vault", url, *arguments)
        assert (refused.code, "secret" in refused.errors + refused.out) == (2, False)


# -- moving a vault ---------------------------------------------------------------------------------------


@pytest.fixture
def url(server: Server) -> str:
    found = server.url(uuid4().hex)
    make_tables(read_address(found))
    return found


def test_store_copy_moves_a_vault_there_and_back(cli: Cli, url: str, tmp_path: Path) -> None:
    root, back = tmp_path / "memories", tmp_path / "back"
    before = state_of(make_vault(root))
    would = cli("store", "copy", str(root), url, "--dry-run")
    assert would.out.startswith("would copy files: 9, logs: 3, versions: ")
    assert cli("store", "copy", str(root), url).out == would.out.replace("would copy", "copied")
    assert cli("--vault", url, "store", "check").code == 0
    copied = cli("store", "copy", url, str(back), "--json").json
    assert (copied["applied"], copied["files"], copied["left_out"]) == (True, 9, [])
    assert state_of(LocalStore(str(back))) == before
    again = cli("store", "copy", url, str(back))
    assert again.out == "copied files: 0, logs: 0, versions: 0, changes: 0, bytes: 0\n"
    (root / "notes/link.md").symlink_to("a.md")
    told = cli("store", "copy", str(root), url)
    assert (told.code, "notes/link.md: left out" in told.errors) == (1, True)
    (root / "notes/more.md").write_text("more")
    refused = cli("store", "copy", str(root), url)
    assert (refused.code, "changes of its own" in refused.errors) == (2, True)
    assert cli("store", "copy", str(tmp_path / "nothing"), url).code == 2


def test_store_copy_that_is_killed_goes_on(server: Server, tmp_path: Path) -> None:
    copy_and_kill(server, tmp_path, kills=3)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_store_copy_that_is_killed_fifty_times_goes_on(server: Server, tmp_path: Path) -> None:
    copy_and_kill(server, tmp_path, kills=50)


def copy_and_kill(server: Server, folder: Path, kills: int) -> None:
    """Copy to a database and back, killed at random; a copy that came to its end begins again elsewhere."""
    source = make_vault(folder / "memories")
    memory = mdmem.open(source.root)
    for number in range(kills * 10):
        memory.write(f"notes/n{number}.md", f"# {number}\n\n{'words ' * number}\n")
        memory.append(f"notes/n{number // 2}.md", "more")
    before, random, left = state_of(source), Random(0), kills
    seconds: dict[bool, float] = {}
    for number in itertools.count():
        database, back = server.url(uuid4().hex), str(folder / f"back{number}")
        make_tables(read_address(database))
        for names in ((source.root, database), (database, back)):
            is_back, begun = names[0] == database, time.monotonic()
            while left and number and run_copy(*names, random.uniform(0.3, 1) * seconds[is_back]) is None:
                left -= 1
            assert run_copy(*names) == 0
            seconds.setdefault(is_back, time.monotonic() - begun)
        store = PostgresStore(database)
        assert state_of(store) == state_of(LocalStore(back)) == before
        assert check(store) == []
        assert [*Path(back, ".mdmem/local/incoming").iterdir()] == []
        store.close()
        if not left:
            return


def run_copy(source: str, target: str, kill_after: float | None = None) -> int | None:
    """Run the command; return its exit code, None where it was killed."""
    command = [sys.executable, "-m", "mdmem", "store", "copy", source, target]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            return process.wait(kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
            return None


# -- upkeep -----------------------------------------------------------------------------------------------


def test_store_put_says_what_it_gives_a_vault(cli: Cli, url: str, tmp_path: Path) -> None:
    root = tmp_path / "memories"
    assert cli("init", str(root)).code == 0
    for options in (("--dry-run",), ()):
        put = cli("--vault", url, "store", "put", str(root), *options)
        assert (put.out, "nothing was changed" in put.errors) == (
            "created .mdmem/config.toml\n",
            bool(options),
        )
    assert cli("--vault", url, "store", "put", str(root), "--json").json == {"applied": True, "files": []}
    (root / ".mdmem/config.toml").write_text("[limits]\nmax_bytes = 'many'\n")
    assert cli("--vault", url, "store", "put", str(root)).code == 2


def test_store_check_names_what_is_damaged(cli: Cli, url: str, server: Server) -> None:
    assert cli("--vault", url, "write", "notes/a.md", "# Heron").code == 0
    assert (cli("store", "check", url).code, cli("store", "check", url).out) == (0, "")
    name = read_address(url).vault
    server.ask(f"UPDATE mdmem.content SET data = 'other' WHERE vault = '{name}'")
    (finding,) = cli("store", "check", url, "--json").objects
    assert (finding["path"], finding["code"]) == ("notes/a.md", "content-damaged")
    assert cli("store", "check", url).code == 1


def test_store_erase_asks_and_says_what_is_left(cli: Cli, url: str) -> None:
    for path in ("notes/a.md", "notes/b.md"):
        assert cli("--vault", url, "write", path, "# Heron").code == 0
    assert cli("--vault", url, "append", "notes/a.md", "blue").code == 0
    refused = cli("--vault", url, "store", "erase", "notes/a.md")
    assert (refused.code, "nobody can be asked" in refused.errors) == (2, True)
    would = cli("--vault", url, "store", "erase", "notes/a.md", "--dry-run")
    assert would.out == "would erase files: 1, logs: 0, versions: 1, changes: 2\n"
    assert cli("--vault", url, "show", "notes/a.md").code == 0
    erased = cli("--vault", url, "store", "erase", "notes/a.md", "--yes")
    assert erased.out == would.out.replace("would erase", "erased")
    assert "notes/b.md: it held the same bytes" in erased.errors
    assert cli("--vault", url, "show", "notes/a.md").code == 1
    assert cli("--vault", url, "store", "erase", "notes/a.md", "--yes").code == 1
