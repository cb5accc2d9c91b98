"""The commands that change any memory, and those that go back: history, restore, undo."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli.main import command
from mdmem.cli.options import (
    Verb,
    base_option,
    change_command,
    dry_run_option,
    is_confirmed,
    json_option,
    make_change,
    may_ask,
    opened,
    path_argument,
    path_option,
    read_command,
    read_pairs,
    read_value,
    text_argument,
    verbose_option,
    yes_option,
)
from mdmem.cli.paths import NEW, PAST, PAST_WRITE, WRITE, WRITE_ANY, WRITE_FOLDER, moved, named, resolved
from mdmem.cli.render import (
    MANY,
    print_applied,
    print_diff,
    print_error,
    print_json,
    print_notes,
    show_status,
)
from mdmem.errors import AlreadyExists, Conflict, Invalid, MdmemError, MemoryNotFound

if TYPE_CHECKING:
    from mdmem import Applied, Document, EditPlan
    from mdmem.cli.main import Target
    from mdmem.cli.programs import Draft
    from mdmem.memory.memory import Memory


# What `mv` is given, without an option and with each of them.
_MOVED = {
    None: "SOURCE… TARGET",
    "heading": "FILE OLD NEW",
    "block": "FILE OLD NEW",
    "id": "FILE NEW",
    "tag": "OLD NEW",
}


@command("write", epilog="Example: mdmem write notes/storage.md '# Storage' --dry-run")
@path_argument(role=NEW)
@text_argument("content", may_be_empty=True)
@base_option
@click.option("--overwrite", is_flag=True, help="Replace what is there without naming its hash.")
@change_command
def write_command(**given: Any) -> Verb:
    """Write a whole memory. One that is there is replaced only with --base or --overwrite."""
    return lambda m: m.write(**given)


@command("edit", epilog="Example: mdmem edit notes/db.md")
@path_argument(role=NEW)
@yes_option
@dry_run_option
@json_option
@click.pass_obj
def edit_command(target: Target, /, path: str, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Change a memory, or write a new one, in your editor: VISUAL, else EDITOR, else vi.

    The editor gets a copy outside of the vault. When it ends, the text is checked as in any change, and
    merged with what has changed in the memory meanwhile. Text that is refused is kept, and the file with it
    is named. An editor that returns at once needs its option to wait, as in EDITOR='code --wait'.
    """
    from mdmem.cli.programs import Draft

    memory = target.open()
    path = resolved(memory, {"path": path})["path"]
    before = memory.show(path) if memory.exists(path) else None
    _refuse_beforehand(memory, path, before)
    with Draft(path, before.data if before else b"") as draft:
        while True:
            try:
                _write_draft(memory, path, before, draft, dry_run=dry_run, as_json=as_json)
            except MdmemError as error:
                if not draft.is_changed or isinstance(error, AlreadyExists) or not may_ask(yes=yes):
                    raise
                print_error(error, as_json=False)
                if not click.confirm(_AGAIN, default=True):
                    return error.exit_code
                if isinstance(error, Conflict | MemoryNotFound):  # it was just said what is there now
                    before = memory.show(path) if memory.exists(path) else None
            else:
                return 0


_AGAIN = "edit it again? what you save then takes the place of what is there"


def _refuse_beforehand(memory: Memory, path: str, before: Document | None) -> None:
    """Refuse what no text could become, before any time goes into one."""
    with contextlib.suppress(Invalid):  # what an empty memory lacks is about to be written
        memory.prepared(memory.plan.write(path, before.text if before else "", base=before))


def _write_draft(
    memory: Memory, path: str, before: Document | None, draft: Draft, *, dry_run: bool, as_json: bool
) -> None:
    text = draft.edit()
    memory.progress = show_status()
    if not draft.is_changed:
        if before:
            make_change(memory, lambda m: m.edit(path, lambda _: []), dry_run=dry_run, as_json=as_json)
        else:
            print(f"nothing to change: {path} would be empty", file=sys.stderr)
        return
    if dry_run:
        make_change(memory, lambda m: m.write(path, text, base=before), dry_run=True, as_json=as_json)
        return
    applied = memory.write(path, text, base=before)
    draft.is_done = True
    if before and any(file.before != before.hash for file in applied.files):
        applied = dataclasses.replace(applied, merged=(path,))
    print_applied(applied, as_json=as_json)
    print_notes(memory)


@command("append", epilog="Example: mdmem append notes/db.md '- one more'")
@path_argument(role=NEW)
@text_argument()
@base_option
@change_command
def append_command(**given: Any) -> Verb:
    """Add lines at the end of a memory, which is made if it is not there."""
    return lambda m: m.append(**given)


@command("prepend", epilog="Example: mdmem prepend notes/db.md 'Read this first.'")
@path_argument(role=WRITE)
@text_argument()
@base_option
@change_command
def prepend_command(**given: Any) -> Verb:
    """Add lines at the beginning of a memory, after its frontmatter."""
    return lambda m: m.prepend(**given)


@command("insert", epilog="Example: mdmem insert notes/db.md 4 'A line after line 4.'")
@path_argument(role=WRITE)
@click.argument("line", type=int)
@text_argument()
@base_option
@change_command
def insert_command(**given: Any) -> Verb:
    """Insert lines after line LINE; 0 is before the first."""
    return lambda m: m.insert(**given)


@command("delete-lines", epilog="Example: mdmem delete-lines notes/db.md 4 6")
@path_argument(role=WRITE)
@click.argument("first", type=int)
@click.argument("last", type=int, required=False)
@base_option
@change_command
def delete_lines_command(path: str, first: int, last: int | None, base: str | None) -> Verb:
    """Delete the lines FIRST to LAST, or line FIRST alone."""
    return lambda m: m.delete_lines(path, first, first if last is None else last, base=base)


@command("set", epilog="Example: mdmem set notes/db.md tags='[db, decision]' title=Database")
@path_argument(role=WRITE)
@click.argument("assignments", nargs=-1, required=True, metavar="KEY=VALUE…")
@click.option("--json-value", is_flag=True, help="Read VALUE as JSON; otherwise it is read as YAML.")
@base_option
@change_command
def set_command(path: str, assignments: tuple[str, ...], json_value: bool, base: str | None) -> Verb:
    """Set fields of the frontmatter, or of a JSON memory. KEY may be dotted: source.type=user."""
    fields = read_pairs(assignments, "KEY=VALUE", _json if json_value else read_value)
    return lambda m: m.set(path, fields, base=base)


def _json(key: str, value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"the value of {key} is not JSON: {error}") from None


@command("unset", epilog="Example: mdmem unset notes/db.md source.ids")
@path_argument(role=WRITE)
@click.argument("key")
@base_option
@change_command
def unset_command(**given: Any) -> Verb:
    """Remove a field of the frontmatter, or of a JSON memory."""
    return lambda m: m.unset(**given)


@command("section", epilog="Example: mdmem section AGENTS.md 'Design > Index' '- one file' --append")
@path_argument(role=WRITE)
@click.argument("heading")
@text_argument(may_be_empty=True)
@click.option(
    "--replace", "where", flag_value="replace", default="replace", help="Replace its text (the default)."
)
@click.option("--append", "where", flag_value="append", help="Add to the end of its text.")
@click.option("--before", "where", flag_value="before", help="Insert before it.")
@click.option("--after", "where", flag_value="after", help="Insert after it and its subsections.")
@click.option("--keep-subsections", is_flag=True, help="With --replace: leave its subsections.")
@base_option
@change_command
def section_command(**given: Any) -> Verb:
    """Change a section, found by its heading or heading path."""
    return lambda m: m.section(**given)


@command("mv", epilog="Example: mdmem mv notes/db.md notes/storage/")
@path_argument("arguments", nargs=-1, required=True, metavar="SOURCE… TARGET")
@click.option("--heading", "what", flag_value="heading", help="Rename a heading: FILE OLD NEW.")
@click.option("--block", "what", flag_value="block", help="Rename a block id: FILE OLD NEW.")
@click.option("--id", "what", flag_value="id", help="Give a memory another id: FILE NEW.")
@click.option("--tag", "what", flag_value="tag", help="Rename a tag, and those below it: OLD NEW.")
@base_option
@verbose_option
@dry_run_option
@json_option
@click.pass_obj
def mv_command(
    target: Target, /, arguments: tuple[str, ...], what: str | None, base: str | None, **how: bool
) -> None:
    """Move memories and folders of memories, all of them or none; every link to them follows.

    A TARGET that is a folder, or ends in /, is moved into. With an option, something is renamed where it
    stands, and in all links that name it.
    """
    expected = _MOVED[what]
    if len(arguments) < 2 or (what and len(arguments) != len(expected.split())):  # noqa: PLR2004 - a pair
        raise click.UsageError(f"give {expected}{f' with --{what}' if what else ''}")
    if what is not None and base is not None:
        raise click.UsageError("--base is for moving: a rename may change many memories")
    memory = opened(target)
    if what is None:
        pairs = [moved(memory, source, arguments[-1]) for source in arguments[:-1]]
        make_change(memory, lambda m: m.mv([old for old, _ in pairs], pairs[0][1], base=base), **how)
        return
    if what != "tag":
        arguments = (named(memory, arguments[0], WRITE), *arguments[1:])
    make_change(memory, lambda m: getattr(m, f"rename_{what}")(*arguments), **how)


@command("rm", epilog="Example: mdmem rm -r notes/decisions notes/old.md")
@path_argument(role=WRITE_ANY, nargs=-1, required=True, metavar="PATH…")
@click.option("--recursive", "-r", is_flag=True, help="Also folders, with every memory in them.")
@base_option
@click.option("--yes", "-f", is_flag=True, help="Do not ask on a terminal.")
@verbose_option
@dry_run_option
@json_option
@click.pass_obj
def rm_command(
    target: Target,
    /,
    path: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Delete memories, all of them or none; restore or undo brings them back.

    A folder needs -r. On a terminal, more than 10 memories are asked about.
    """
    memory = opened(target)
    options |= resolved(memory, {"path": path})
    if not dry_run and may_ask(yes=yes):
        plan = memory.plan.rm(**options)
        if len(plan.changes) > MANY and not is_confirmed(plan, "delete"):
            return 1
    make_change(memory, lambda m: m.rm(**options), dry_run=dry_run, as_json=as_json, verbose=verbose)
    return 0


@command("replace", epilog="Example: mdmem replace --in notes --glob '*.md' MySQL SQLite --dry-run")
@click.argument("arguments", nargs=-1, required=True, metavar="[PATH] OLD NEW")
@click.option("--count", type=click.IntRange(1), help="How often OLD must occur (1).")
@click.option("--all", "every", is_flag=True, help="Replace every occurrence.")
@click.option("--regex", is_flag=True, help="OLD is a regular expression; NEW may name its groups, \\1.")
@path_option("--in", "within", role=WRITE_FOLDER, metavar="FOLDER", help="In all memories below this folder.")
@click.option("--glob", "globs", multiple=True, help="In all memories that fit.")
@yes_option
@verbose_option
@dry_run_option
@base_option
@json_option
@click.pass_obj
def replace_command(
    target: Target,
    /,
    arguments: tuple[str, ...],
    count: int | None,
    every: bool,
    within: str | None,
    globs: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Replace text in the memory PATH; with --in or --glob, in many at once, all of them or none.

    OLD must occur exactly once, unless --count or --all says otherwise.
    """
    across = within is not None or bool(globs)
    if len(arguments) != (2 if across else 3):
        raise click.UsageError("give OLD and NEW with --in or --glob, else PATH, OLD and NEW")
    if count and every:
        raise click.UsageError("--count and --all exclude each other")
    if across and (count or options["base"]):
        raise click.UsageError("--count and --base are about one memory: give its PATH instead")
    old, new = arguments[-2:]
    options["count"] = "all" if every else count or 1
    memory = opened(target)
    path = None if across else named(memory, arguments[0], WRITE)
    within = resolved(memory, {"within": within})["within"]
    if not across and not dry_run:
        print_applied(memory.replace(path, old, new, **options), as_json=as_json)
        return 0
    plan = memory.prepared(memory.plan.replace(path, old, new, within=within or "", globs=globs, **options))
    asks = may_ask(yes=yes) and not dry_run
    if dry_run or (not as_json and (asks or verbose or len(plan.changes) <= MANY)):
        print_diff(plan.diff(), plan, as_json=as_json)
    if dry_run:
        return 0
    if asks and not is_confirmed(plan, "change"):
        return 1
    print_applied(memory.apply(plan), as_json=as_json, verbose=verbose)
    return 0


_SHORT = 12  # digits of a hash that tell versions apart


@command("history", epilog="Example: mdmem history notes/db.md --limit 5")
@path_argument(role=PAST, nargs=-1, metavar="[PATH]…")
@click.option(
    *("--limit", "-n"),
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="At most so many changes.",
)
@verbose_option
@read_command
def history_command(memory: Memory, path: tuple[str, ...], limit: int, verbose: bool, as_json: bool) -> None:
    """List the changes made through mdmem, newest first, with the hashes that restore takes.

    With PATH, those to one of these memories.
    """
    entries = memory.history(path)
    older = len(entries) - limit
    if older > 0:
        changes = "change" if older == 1 else "changes"
        print(f"{older} older {changes} left out: raise --limit", file=sys.stderr)
    if as_json:
        print_json(entries[:limit])
        return
    for entry in entries[:limit]:
        print(f"{entry.id}  {entry.time}  {entry.actor or '-'}  {entry.message}")
        most = len(entry.files) if verbose else MANY
        for file in entry.files[:most]:
            before, after = (digest[:_SHORT] if digest else "absent" for digest in (file.before, file.after))
            print(f"    {file.path}  {before} → {after}")
        if len(entry.files) > most:
            print(f"    and {len(entry.files) - most:,} more (-v names them)")


@command("restore", epilog="Example: mdmem restore notes/db.md --hash 3f2a9c01")
@path_argument(role=PAST_WRITE, nargs=-1, required=True, metavar="PATH…")
@click.option("--hash", metavar="HASH", help="The content with this hash; else what it held before.")
@change_command
def restore_command(**given: Any) -> Verb:
    """Bring back what memories held before their last change, or an older content of one."""
    return lambda m: m.restore(**given)


@command("undo", epilog="Example: mdmem undo --dry-run")
@click.argument("change", required=False)
@change_command
def undo_command(**given: Any) -> Verb:
    """Take back the last change, or the one with this id, in all its memories at once.

    Which one that was is printed on standard error. An undo is a change as well: a second one takes back the
    first. What was changed earlier is taken back by its id, which `mdmem history` lists.
    """
    return lambda m: _told(m.undo(**given))


def _told(done: Applied | EditPlan) -> Applied | EditPlan:
    """What an undo did, or would do, once it is said which change that takes back."""
    message = (done if isinstance(done, mdmem.EditPlan) else done.plan).message
    print(f"note: {message}", file=sys.stderr)
    if message.count("undo ") > 1:
        print("note: that was an undo itself; `mdmem history` lists earlier changes", file=sys.stderr)
    return done
