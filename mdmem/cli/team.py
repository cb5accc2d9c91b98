"""The command `store`: vaults in a database, which servers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import mdmem
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
    from mdmem.facade.memory import init_store, list_grants

    named = _name_url(target, url)
    is_new = init_store(named)
    grants = list_grants(servers) if is_new else ()
    if render.is_set("as_json"):
        render.print_json({"vault": named, "tables": is_new, "grants": grants})
        return
    print(f"made the vault {named}")
    if grants:
        render.print_remarks(["the tables are new: grant the role of the servers what follows"])
        print("\n".join(grants))


@store_command.command(
    "sweep", epilog="Example: MDMEM_VAULT='postgresql://db.example/memories?vault=team' mdmem store sweep"
)
@click.argument("url", required=False)
@options.dry_run_option
@options.json_option
@click.pass_obj
def store_sweep(target: Target, url: str | None) -> None:
    """Remove versions and changes that are older or more than the config allows.

    `[trash]` says how many days and bytes are kept. Without it everything stays, as changes remove nothing.
    It needs the user who owns the tables.
    """
    from mdmem.facade.memory import sweep_store

    is_dry = render.is_set("dry_run")
    swept = sweep_store(_name_url(target, url), dry_run=is_dry)
    if render.is_set("as_json"):
        render.print_json({"applied": not is_dry, **mdmem.as_json(swept)})
        return
    does = "would remove" if is_dry else "removed"
    print(f"{does} changes: {swept.entries:,}, versions: {swept.versions:,} ({swept.bytes:,} bytes)")


def _name_url(target: Target, url: str | None) -> str:
    from mdmem.errors import Usage

    named = url or target.binding[0]
    if not named:
        raise Usage(problem="no vault is named", remedy="give postgresql://HOST/DATABASE?vault=NAME")
    return named
