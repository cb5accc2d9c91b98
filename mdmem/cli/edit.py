"""The commands that change any memory, and those that go back: history, restore, undo."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.main import Target, command
from mdmem.errors import AlreadyExists, Conflict, Invalid, MdmemError, MemoryNotFound, Usage, plural
from mdmem.facade.paths import GROW, NEW, PAST_ANY, PAST_WRITE_ANY, WRITE, WRITE_ANY, WRITE_FOLDER

if TYPE_CHECKING:
    from mdmem import Applied, Document, EditPlan
    from mdmem.facade.memory import Memory


_BLOCK = re.compile(r"(?:- .*|[\w.-]+:(?: .*)?|[|>][-+]?)\n")  # a list, a mapping or a text of YAML
# The arguments of `mv`, without an option and with each of them.
_MOVED = {
    None: "SOURCE… TARGET",
    "heading": "FILE OLD NEW",
    "block": "FILE OLD NEW",
    "id": "FILE NEW",
    "tag": "OLD NEW",
}


@command("write", epilog="Example: mdmem write notes/storage.md '# Storage' --dry-run")
@options.path_argument(role=NEW)
@options.text_argument("content")
@options.base_option
@click.option("--overwrite", is_flag=True, help="Replace what is there without --base.")
@options.path_option("--supersedes", role=WRITE, help="Let it take the place of PATH, as supersede does.")
@options.verb_command("write")
def write_command() -> None:
    """Write a whole memory.

    One that is there is replaced only with --base or --overwrite.
    """


_AGAIN = "edit it again? what you save then replaces what is there"


@command("edit", epilog="Example: mdmem edit notes/db.md")
@options.path_argument(role=GROW)
@options.yes_option
@options.dry_run_option
@options.json_option
@options.memory_command
def edit_command(memory: Memory, path: str) -> int:
    """Change a memory in your editor, or write a new one.

    The editor is VISUAL, else EDITOR, else vim, nano or vi; without a terminal, one has to be named. It gets
    a copy outside of the vault. When it ends, the text is checked as in any change, and merged with what has
    changed in the memory meanwhile. Text that is refused is kept, and the file with it is named. An editor
    that returns at once needs its option to wait, as in EDITOR='code --wait'.
    """
    from mdmem.cli.editor import edit_data, keep_data

    before = memory.show(path) if memory.exists(path) else None
    with contextlib.suppress(Invalid):  # what an empty memory lacks is about to be written
        memory.prepared(memory.plan.write(path, before.text if before else "", base=before))
    first = before.data if before else b""
    data, is_written = first, False
    try:
        while (data := edit_data(path, data)) != first:
            try:
                is_written = _write_edited(memory, path, before, data)
            except MdmemError as error:
                if isinstance(error, AlreadyExists) or not options.may_ask():
                    raise
                render.print_error(error, as_json=False)
                if not click.confirm(_AGAIN, default=True):
                    return error.exit_code
                if isinstance(error, Conflict | MemoryNotFound):  # the error says what is there now
                    before = memory.show(path) if memory.exists(path) else None
            else:
                return 0
    finally:
        if data != first and not is_written:
            keep_data(path, data)
    if before:
        options.make_change(memory, lambda m: m.edit(path, lambda _: []))
    else:
        render.print_remarks([f"nothing to change: {path} would be empty"])
    return 0


def _write_edited(memory: Memory, path: str, before: Document | None, data: bytes) -> bool:
    """Write an edited text, and print what that did; tell whether it is written."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Usage(problem=f"the text is not UTF-8 (byte {error.start})") from None
    memory.progress = render.show_progress()
    if render.is_set("dry_run"):
        options.make_change(memory, lambda m: m.write(path, text, base=before))
        return False
    applied = memory.write(path, text, base=before)
    if before and any(file.before != before.hash for file in applied.files):
        applied = dataclasses.replace(applied, merged=(path,))
    render.print_applied(applied)
    render.print_notes(memory)
    return True


@command("append", epilog="Example: mdmem append notes/db.md '- one more'")
@options.path_argument(role=GROW)
@options.text_argument()
@options.base_option
@options.verb_command("append")
def append_command() -> None:
    """Add lines at the end of a memory, or make it of them."""


@command("prepend", hidden=True, epilog="Example: mdmem prepend notes/db.md 'Read this first.'")
@options.path_argument(role=WRITE)
@options.text_argument()
@options.base_option
@options.verb_command("prepend")
def prepend_command() -> None:
    """Add lines at the beginning of a memory, after its frontmatter."""


@command("insert", hidden=True, epilog="Example: mdmem insert notes/db.md 4 'A line after line 4.'")
@options.path_argument(role=WRITE)
@click.argument("line", type=int)
@options.text_argument()
@options.base_option
@options.verb_command("insert")
def insert_command() -> None:
    """Insert lines after line LINE; 0 is before the first."""


@command("delete-lines", hidden=True, epilog="Example: mdmem delete-lines notes/db.md 4 6")
@options.path_argument(role=WRITE)
@click.argument("first", type=int)
@click.argument("last", type=int, required=False)
@options.base_option
@options.change_command
def delete_lines_command(path: str, first: int, last: int | None, base: str | None) -> options.Verb:
    """Delete the lines FIRST to LAST, or line FIRST alone."""
    return lambda m: m.delete_lines(path, first, first if last is None else last, base=base)


@command("set", epilog="Example: mdmem set notes/db.md tags='[db, decision]' title=Database")
@options.path_argument(role=WRITE)
@click.argument("assignments", nargs=-1, required=True, metavar="KEY=VALUE…", callback=options.read_pairs)
@click.option("--json-value", is_flag=True, help="Read VALUE as JSON.")
@options.base_option
@options.change_command
def set_command(path: str, assignments: dict[str, str], json_value: bool, base: str | None) -> options.Verb:
    """Set fields of the frontmatter, or of a JSON memory. KEY may be dotted: source.type=user.

    VALUE is read as YAML in one line. What a number would change, such as 007, +49 and 3.10, is a text, and
    so are a [[link]] and several lines.
    """
    read = options.read_json if json_value else mdmem.read_value
    fields = {key: read(value) for key, value in assignments.items()}
    for key, value in assignments.items():
        if fields[key] == value and (reason := _explain_text(value)):
            render.print_remarks([f"note: {key} is a text: {reason}"])
    return lambda m: m.set(path, fields, base=base)


def _explain_text(value: str) -> str:
    """Explain why a value that looks like more is a text; empty for one that does not."""
    if value.startswith(("[", "{", '"')) and not value.startswith("[["):
        return "what was given for it is no YAML"
    return "YAML is read in one line, as in [a, b]" if _BLOCK.match(value) else ""


@command("unset", epilog="Example: mdmem unset notes/db.md source.ids")
@options.path_argument(role=WRITE)
@click.argument("key")
@options.base_option
@options.verb_command("unset")
def unset_command() -> None:
    """Remove a field of the frontmatter, or of a JSON memory."""


@command("section", epilog="Example: mdmem section AGENTS.md 'Design > Index' '- one file' --append")
@options.path_argument(role=WRITE)
@click.argument("heading")
@options.text_argument()
@click.option(
    "--replace",
    "where",
    flag_value="replace",
    default="replace",
    help="Replace its text and subsections (default).",
)
@click.option("--append", "where", flag_value="append", help="Add to the end of its text.")
@click.option("--insert-before", "where", flag_value="before", help="Insert before it.")
@click.option("--insert-after", "where", flag_value="after", help="Insert after it and its subsections.")
@click.option("--keep-subsections", is_flag=True, help="Keep its subsections, with --replace.")
@options.base_option
@options.verb_command("section")
def section_command() -> None:
    """Change a section, found by its heading or heading path."""


@command("mv", epilog="Example: mdmem mv notes/db.md notes/storage/")
@options.path_argument("arguments", nargs=-1, required=True, metavar="SOURCE… TARGET")
@click.option("--what", type=click.Choice([*filter(None, _MOVED)]), help="Rename this, not a memory.")
@options.base_option
@options.change_options
@click.pass_obj
def mv_command(target: Target, /, arguments: tuple[str, ...], what: str | None, base: str | None) -> None:
    """Move or rename; every link to what is moved follows.

    Memories, attachments and folders can be moved, all of them or none. A TARGET that is a folder, or ends in
    /, is moved into. With --what, something is renamed where it stands, and in all links that name it:

    \b
    --what heading FILE OLD NEW   a heading
    --what block FILE OLD NEW     a block id
    --what id FILE NEW            the id of a memory
    --what tag OLD NEW            a tag and its subtags
    """  # noqa: D301 - as in mdmem.cli.make
    expected = _MOVED[what]
    if len(arguments) < 2 or (what and len(arguments) != len(expected.split())):  # noqa: PLR2004 - a pair
        raise click.UsageError(f"give {expected}{f' with --what {what}' if what else ''}")
    if what is not None and base is not None:
        raise click.UsageError("--base is for moving: a rename may change many memories")
    memory = options.open_memory(target)
    if what is None:
        pairs = [options.read_paths(memory).resolve_move(source, arguments[-1]) for source in arguments[:-1]]
        source, folder = pairs[0]
        is_folder = folder.endswith("/") and not source.endswith(memory.suffixes)
        is_new = is_folder and not os.path.isdir(os.path.join(memory.folder, folder))
        options.make_change(memory, lambda m: m.mv([old for old, _ in pairs], folder, base=base))
        if is_new and not render.is_set("dry_run"):
            render.print_remarks([f"note: the folder {folder} was not there, and was made"])
        return
    if what != "tag":
        arguments = (options.read_paths(memory).resolve(arguments[0], WRITE), *arguments[1:])
    options.make_change(memory, lambda m: getattr(m, f"rename_{what}")(*arguments))


@command("rm", epilog="Example: mdmem rm -r notes/decisions notes/old.md")
@options.path_argument(role=WRITE_ANY, nargs=-1, required=True, metavar="PATH…")
@click.option("--recursive", "-r", is_flag=True, help="Delete folders, too, with every memory in them.")
@click.option("--cascade", is_flag=True, help="Delete what derives from nothing else, too.")
@options.base_option
@options.force_option
@options.change_options
@options.memory_command
def rm_command(memory: Memory, **given: Any) -> int:
    """Delete memories, which undo and restore bring back.

    All of them are deleted or none. A folder needs -r. On a terminal, you are asked about more than 10
    memories, and with --cascade always.
    """
    if not render.is_set("dry_run") and options.may_ask():
        plan = memory.plan.rm(**given)
        if given["cascade"]:
            render.print_list(plan.paths, str, "memories")
        is_asked = given["cascade"] or len(plan.changes) > render.MANY
        if is_asked and not options.is_confirmed(plan, "delete"):
            return 1
    options.make_change(memory, lambda m: m.rm(**given))
    return 0


@command("replace", epilog="Example: mdmem replace --in notes --glob '*.md' --all MySQL SQLite --dry-run")
@click.argument("arguments", nargs=-1, required=True, metavar="[PATH] OLD NEW")
@options.number_option("--count", least=1, help="Require N occurrences of OLD (1).")
@options.all_option("every")
@options.regex_option
@options.in_option(role=WRITE_FOLDER, metavar="FOLDER")
@options.globs_option
@options.yes_option
@options.base_option
@options.change_options
@options.memory_command
def replace_command(
    memory: Memory, arguments: tuple[str, ...], count: int | None, every: bool, **given: Any
) -> int:
    r"""Replace text in a memory, or in many, all of them or none.

    It is replaced in the memory PATH; with --in or --glob in many. OLD must occur exactly once, in all of
    them together, unless --count or --all says otherwise. With --regex, NEW may name groups of OLD, as in
    `\1`.
    """
    across = given["within"] is not None or bool(given["globs"])
    if len(arguments) != (2 if across else 3):
        raise click.UsageError("give OLD and NEW with --in or --glob, else PATH, OLD and NEW")
    if count and every:
        raise click.UsageError("--count and --all exclude each other")
    if across and given["base"]:
        raise click.UsageError("--base is about one memory: give its PATH instead")
    old, new = arguments[-2:]
    given["count"] = "all" if every else count or 1
    if not across:
        del given["globs"], given["within"]
        path = options.read_paths(memory).resolve(arguments[0], WRITE)
        options.make_change(memory, lambda m: m.replace(path, old, new, **given))
        return 0
    given["within"] = given["within"] or ""
    plan = memory.prepared(memory.plan.replace(None, old, new, **given))
    render.print_remarks([plan.message])
    if render.is_set("dry_run"):
        render.print_diff(plan)
        return 0
    asks, is_short = options.may_ask(), len(plan.changes) <= render.MANY
    is_shown = (asks or is_short or render.is_set("verbose")) and not render.is_set("as_json")
    if is_shown:
        render.print_diff(plan)
    if asks and not options.is_confirmed(plan, "change"):
        return 1
    render.print_applied(memory.apply(plan), is_warned=is_shown)
    return 0


@command("history", epilog="Example: mdmem history notes/db.md --limit 5")
@options.path_argument(role=PAST_ANY, nargs=-1, metavar="[PATH]…")
@options.limit_option(default=20)
@options.verbose_option
@options.read_command
def history_command(memory: Memory, path: tuple[str, ...], limit: int) -> int:
    """List the changes made through mdmem, newest first.

    Each has the hashes that restore takes. With PATHs, it lists only changes to these memories and below
    these folders; the exit code is 1 when there are none.
    """
    entries = memory.history(path)
    older = len(entries) - limit
    if older > 0:
        render.print_remarks([f"{plural(older, 'older change')} left out: raise --limit"])
    if not entries:
        return render.say_nothing(
            " of ".join(filter(None, ("changes", ", ".join(path)))), is_asked=bool(path)
        )
    if render.is_set("as_json"):
        render.print_json(entries[:limit])
        return 0
    for entry in entries[:limit]:
        print(f"{entry.id}  {entry.time}  {entry.actor or '-'}  {entry.message}")
        render.print_some([_format_change(file) for file in entry.files], render.MANY, "    ")
    return 0


def _format_change(file: Any) -> str:
    before, after = ((digest or "absent")[: render.SHORT] for digest in (file.before, file.after))
    return f"{file.path}  {before} → {after}"


@command("restore", epilog="Example: mdmem restore notes/db.md --hash 3f2a9c01")
@options.path_argument(role=PAST_WRITE_ANY, nargs=-1, required=True, metavar="PATH…")
@click.option("--hash", metavar="HASH", help="Restore the content with this hash; else the one before.")
@options.verb_command("restore")
def restore_command() -> None:
    """Bring back what memories held before their last change, or an older content of one.

    Of a folder, it brings back all that another program deleted below it.
    """


@command("undo", epilog="Example: mdmem undo -n 2 --dry-run")
@click.argument("change", required=False)
@options.limit_option(default=1)
@options.change_command
def undo_command(change: str | None, limit: int) -> options.Verb:
    """Take back your last change; again, the one before.

    Yours is what --actor has changed. A change is taken back in all its memories at once. Standard error
    names it, and the newer changes by others, which stay; redo puts it back. -n 3 takes back the last three,
    and redo -n 3 puts them back. With CHANGE, an id that history lists, that one is taken back, whoever made
    it; what has changed since stays, where the two can be merged.
    """
    return lambda m: _name_steps(m.undo(change, count=limit), limit, "" if change else "undo")


@command("redo", epilog="Example: mdmem redo")
@options.limit_option(default=1)
@options.change_command
def redo_command(limit: int) -> options.Verb:
    """Put back what your last undo took; again, what the one before it took.

    That ends when something else is changed. Standard error names the change.
    """
    return lambda m: _name_steps(m.redo(count=limit), limit, "redo")


def _name_steps(done: Applied | EditPlan, count: int, command: str) -> Applied | EditPlan:
    """Print which changes `command` took back or put back, and why there are fewer than were asked for."""
    plan = done if isinstance(done, mdmem.EditPlan) else done.plan
    steps = plan.steps or (plan,)
    made = [f"{step.message}{f', made {step.made_at}' if step.made_at else ''}" for step in steps]
    further = f"`mdmem {command} -n {count + 1}` {command}es one more, too"
    is_gone = bool(command) and not (plan.changes or plan.attachments)
    render.print_remarks(
        [
            *(f"note: {line}" for line in render.limit_lines(made, render.MANY)),
            *([f"note: {len(steps):,} of {count:,}: there are no more"] if len(steps) < count else []),
            *([f"note: it was {command}ne by another program already: {further}"] if is_gone else []),
            *([f"note: {plan.newer}"] if plan.newer else []),
        ]
    )
    return done


@command("share", hidden=True, epilog="Example: mdmem share users/alice/notes/db.md bob read")
@options.path_argument(role=WRITE)
@click.argument("user")
@click.argument("level", metavar="read|write|full")
@click.option("--until", metavar="WHEN", help="End all grants of the memory at this day or time.")
@options.verb_command("share")
def share_command() -> None:
    """Let USER, or everyone, use a memory; its field `access` says so, and `mdmem show --from` finds it."""


@command("unshare", hidden=True, epilog="Example: mdmem unshare users/alice/notes/db.md bob")
@options.path_argument(role=WRITE)
@click.argument("user", required=False)
@options.verb_command("unshare")
def unshare_command() -> None:
    """Take back the access of USER to a memory; without USER, that of all others."""
