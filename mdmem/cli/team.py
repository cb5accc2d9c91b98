"""The command `store`: vaults in a database, which servers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmem.cli import options, render
from mdmem.cli.main import group

if TYPE_CHECKING:
    from mdmem.cli.main import Target


@group("store", hidden=True)
def store_command() -> None:
    """Make vaults in PostgreSQL, which several machines share."""


@store_command.command(
    "init", epilog="Example: mdmem store init 'postgresql://db.example/memories?vault=team'"
)
@click.argument("url", required=False)
@click.option("--servers", default="mdmem", metavar="ROLE", help="Print what to grant to this role.")
@options.json_option
@click.pass_obj
def store_init(target: Target, url: str | None, servers: str) -> None:
    """Make a vault in a database, and the tables where it has none.

    URL is postgresql://USER@HOST:PORT/DATABASE?vault=NAME; without it, --vault or MDMEM_VAULT names the
    vault. Passwords come from ~/.pgpass or PGPASSWORD. Tables need a user who may make them: where they are
    new, it prints what to grant to the role of the servers, which needs no more.
    """
    from mdmem.errors import Usage
    from mdmem.facade.memory import init_store, list_grants

    named = url or target.binding[0]
    if not named:
        raise Usage(problem="no vault is named", remedy="give postgresql://HOST/DATABASE?vault=NAME")
    is_new = init_store(named)
    grants = list_grants(servers) if is_new else ()
    if render.is_set("as_json"):
        render.print_json({"vault": named, "tables": is_new, "grants": grants})
        return
    print(f"made the vault {named}")
    if grants:
        render.print_remarks(["the tables are new: grant the role of the servers what follows"])
        print("\n".join(grants))
