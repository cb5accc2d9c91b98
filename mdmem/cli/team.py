"""The commands for a team: `store`, vaults in a database, and `token`, who may use a server."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.findings import print_findings
from mdmem.cli.main import Target, group
from mdmem.errors import ExtraMissing, Usage
from mdmem.facade import memory as vaults


@group("store", hidden=True)
def store_command() -> None:
    """Make vaults in PostgreSQL, which several machines share."""


@store_command.command(
    "init", epilog="Example: mdmem store init 'postgresql://db.example/memories?vault=team'"
)
@click.argument("url", required=False)
@click.option("--servers", default="mdmem", metavar="ROLE", help="Print what to grant to this role.")
@click.option(
    "--dims", type=click.IntRange(0, 16_000), default=0, help="Keep vectors of N numbers.", metavar="N"
)
@options.json_option
@click.pass_obj
def store_init(target: Target, url: str | None, servers: str, dims: int) -> None:
    """Make a vault in a database, and the tables where it has none.

    URL is postgresql://USER@HOST:PORT/DATABASE?vault=NAME; without it, --vault or MDMEM_VAULT names the
    vault. Passwords come from ~/.pgpass or PGPASSWORD. Tables need a user who may make them: where they are
    new, it prints what to grant to the role of the servers, which needs no more.
    """
    named = _name_url(target, url)
    is_new = vaults.init_store(named, dims=dims)
    grants = vaults.list_grants(servers, vectors=dims > 0) if is_new else ()
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
    swept = vaults.sweep_store(_name_url(target, url), dry_run=render.is_set("dry_run"))
    _print_done("remove", "removed", swept)


@store_command.command(
    "copy", epilog="Example: mdmem store copy memories 'postgresql://db.example/memories?vault=team'"
)
@click.argument("source", metavar="FROM")
@click.argument("copy", metavar="TO")
@options.dry_run_option
@options.json_option
def store_copy(source: str, copy: str) -> int:
    """Copy a vault with its times, logs, history and versions: FROM and TO are folders or URLs.

    TO is a folder that is empty or not there, or an empty vault that `store init` made. A copy that was
    killed goes on when you repeat the command. Nothing is written over: where TO holds what FROM does not, it
    is refused. Nobody should change either vault meanwhile. The exit code is 1 where files are left out.
    """
    copied = vaults.copy_store(source, copy, dry_run=render.is_set("dry_run"))
    remarks = [f"{path}: left out: no vault in a database may have it" for path in copied.left_out]
    remarks += copied.notes
    remarks += [f"{path}: now a file; take it out of [mounts], which hide it" for path in copied.mounted]
    _print_done("copy", "copied", copied, remarks)
    return int(bool(copied.left_out or copied.notes))


@store_command.command(
    "put",
    epilog="Example: MDMEM_VAULT='postgresql://db.example/memories?vault=team' mdmem store put memories",
)
@click.argument("folder")
@options.dry_run_option
@options.json_option
@click.pass_obj
def store_put(target: Target, folder: str) -> None:
    """Give a vault the config, schemas and templates of the vault in FOLDER, once they are checked.

    Those that FOLDER lacks are removed.
    """
    is_dry = render.is_set("dry_run")
    changed = vaults.put_store(_name_url(target, None), folder, dry_run=is_dry)
    if render.is_set("as_json"):
        render.print_json({"applied": not is_dry, "files": changed})
        return
    for file in changed:
        print(f"{file.did} {file.path}")
    render.print_remarks(["nothing was changed"] if is_dry or not changed else [])


@store_command.command(
    "check", epilog="Example: mdmem store check 'postgresql://db.example/memories?vault=team'"
)
@click.argument("url", required=False)
@options.json_option
@click.pass_obj
def store_check(target: Target, url: str | None) -> int:
    """Report what is damaged in a database, and correct this machine's copy of it.

    It reads every version. The exit code is 1 for what it finds.
    """
    return print_findings(vaults.check_store(_name_url(target, url)))


@store_command.command(
    "erase",
    epilog="Example: MDMEM_VAULT='postgresql://db.example/memories?vault=team' mdmem store erase notes/a.md",
)
@click.argument("path")
@options.yes_option
@options.dry_run_option
@options.json_option
@click.pass_obj
def store_erase(target: Target, path: str) -> int:
    """Remove for good a memory, a session (sessions/KEY.jsonl) or a folder, with all versions of it.

    PATH is that of the whole vault. What the history, logs and counts of use say of it goes, too; each
    machine drops its indexes and past states when it asks next. Other memories that quote it stay. It needs
    the user who owns the tables. On a terminal, you are asked; elsewhere it needs --yes.
    """
    is_dry = render.is_set("dry_run")
    if not is_dry and not options.is_purge_confirmed(f"all that there is and was of {path}"):
        return 1
    erased = vaults.erase_store(_name_url(target, None), path, dry_run=is_dry)
    remarks = [f"{other}: it held the same bytes: erase it as well" for other in erased.named]
    _print_done("erase", "erased", erased, remarks)
    return 0


def _print_done(do: str, done: str, result: object, remarks: Sequence[str] = ()) -> None:
    is_dry, shape = render.is_set("dry_run"), mdmem.as_json(result)
    if render.is_set("as_json"):
        render.print_json({"applied": not is_dry, **shape})
        return
    counts = ", ".join(f"{name}: {count:,}" for name, count in shape.items() if isinstance(count, int))
    print(f"{f'would {do}' if is_dry else done} {counts}")
    render.print_remarks(remarks)


def _name_url(target: Target, url: str | None) -> str:
    named = url or target.binding[0]
    if not named:
        raise Usage(problem="no vault is named", remedy="give postgresql://HOST/DATABASE?vault=NAME")
    return named


@group("token", hidden=True)
def token_command() -> None:
    """Make tokens, which tell a server what memories a client may use."""


@token_command.command("new", epilog="Example: mdmem token new --name 'ann, laptop' --expires 2027-06-30")
@click.option("--name", required=True, metavar="NAME", help="Use this name in the history.")
@click.option("--read-only", is_flag=True, help="Let it change nothing.")
@click.option("--expires", default="", metavar="DATE", help="Refuse it from this day or time on.")
@options.json_option
@click.pass_obj
def token_new(target: Target, name: str, read_only: bool, expires: str) -> None:
    """Print a new token, and the lines that let it in, for the file of `mdmem mcp --access FILE`.

    It gives the memories of --user, --project and --resource, else those of --shared. The file holds a hash
    of it: keep the token now. To take it back, remove its lines.
    """
    if find_spec("mcp") is None:
        raise ExtraMissing(extra="mcp", package="mcp")
    from mdmem.serve.mcp.access import make_token

    scope = mdmem.Scope(shared=True) if target.scope.is_owner else target.scope
    token, lines = make_token(name, scope, read_only=read_only, expires=expires)
    render.print_found({"token": token, "lines": lines}, lambda _: print(f"{token}\n\n{lines}", end=""))
