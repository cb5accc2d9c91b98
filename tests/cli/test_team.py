"""`mdmem store`: vaults in a database, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

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
    assert cli("--vault", first, "store", "sweep").out == "removed changes: 0, versions: 0 (0 bytes)\n"
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


def test_a_password_on_a_command_line_is_refused_and_not_repeated(cli: Cli) -> None:
    for arguments in (("store", "init"), ("ls",)):
        url = "postgresql://ann:secret@db.example/memories?vault=team"
        refused = cli("--vault", url, *arguments)
        assert (refused.code, "secret" in refused.errors + refused.out) == (2, False)
