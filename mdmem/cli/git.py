"""The commands of git: the history of memories, by fact."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from itertools import chain, groupby
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli import options, render
from mdmem.cli.main import Target, group
from mdmem.errors import MemoryNotFound, NamedNotFound, VaultNotFound, plural
from mdmem.facade.paths import PAST, PAST_ANY, PAST_OTHER, PAST_WRITE

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.review.blame import SaidFact
    from mdmem.review.commits import Committed
    from mdmem.review.decisions import Reviewed, ReviewedRow
    from mdmem.review.review import MemoryChange, MemoryChanges
    from mdmem.review.tracked import MemoryCommit

_LETTERS = {"added": "A", "changed": "M", "removed": "D", "renamed": "R"}
_SIGNS = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "moved": (">", "cyan"),
    "reordered": ("reordered ", "cyan"),
    "changed": ("~", "yellow"),
    "reworded": ("~", "yellow"),
    "repointed": ("@", "yellow"),
}
_MARKED = {"-": ("[-", "-]", "red"), "+": ("{+", "+}", "green")}
_LONGEST_PARENT = 60  # characters that name the item around a fact
_MOST_FILES = 20  # of a commit that are named without --verbose; and lines of a new memory
_MOST_SECONDS = 30  # that git waits for one file


@group("git")
def git_command() -> None:
    """Review memory in git: who changed which fact, when, and why.

    The vault has a history of its own, which needs no repository: `mdmem history`, `mdmem undo` and
    `mdmem restore`.
    """


@git_command.command("log", epilog="Example: mdmem git log notes/db.md --oneline --limit 5")
@click.argument("target", required=False)
@options.limit_option()
@click.option("--oneline", is_flag=True, help="Print only commit, day and subject, a line each.")
@options.verbose_option
@options.read_command
def git_log(memory: Memory, target: str | None, limit: int | None, oneline: bool) -> int:
    """List the commits that touched memories, newest first; the exit code is 1 when none touched TARGET.

    TARGET is a memory, which is followed through renames. MEMORY#HEADING or MEMORY#^id lists only the commits
    that changed this section, or the fact with this block id.
    """
    path, anchor = _split_target(target or "", "#")
    found = memory.git.log(
        options.read_paths(memory).resolve(path, PAST) if path else None, anchor[1:], limit=limit
    )
    for number, commit in enumerate(found):
        if render.is_set("as_json"):
            render.print_json(commit)
        elif oneline:
            render.print_coloured(commit.commit[: render.SHORT], "yellow")
            print(f"  {commit.date[:10]}  {_describe_subject(commit)}")
        else:
            sys.stdout.write("\n" if number else "")
            _print_commit(commit)
    return 0 if found else render.say_nothing("commits", is_asked=target is not None)


def _describe_subject(commit: MemoryCommit) -> str:
    return commit.subject or "(message not shown: the commit also changes other memories)"


def _split_target(text: str, signs: str) -> tuple[str, str]:
    """Split a text in a memory and what it names there, from one of the signs on."""
    found = re.fullmatch(rf"(?s)(.+?\.(?:mdx?|markdown|json))([{signs}].+)", text)
    return (found[1], found[2]) if found else (text, "")


def _print_commit(commit: MemoryCommit) -> None:
    render.print_coloured(commit.commit[: render.SHORT], "yellow")
    print(f"  {commit.date}  {_name_author(commit)}")
    print(f"    {_describe_subject(commit)}")
    for operation in commit.operations:
        print(f"    operation: {operation}")
    lines = [
        f"{_LETTERS[touched.status]} {f'{touched.old} -> ' if touched.old else ''}{touched.path}"
        for touched in commit.memories
    ]
    render.print_some(lines, _MOST_FILES, "    ")


def _name_author(said: MemoryCommit | SaidFact, mark: str = "") -> str:
    return f"{said.agent}{mark} ({said.author})" if said.agent else said.author


@git_command.command("diff", epilog="Example: mdmem git diff HEAD notes/db.md")
@options.path_argument("given", PAST_OTHER, nargs=-1, metavar="[REVISIONS] [PATH]…")
@options.in_option("paths", role=PAST_ANY, metavar="PATH")
@click.option("--exit-code", is_flag=True, help="Exit with 1 when anything differs.")
@options.read_command
def git_diff(memory: Memory, given: tuple[str, ...], paths: tuple[str, ...], exit_code: bool) -> int:
    """Show what differs in memories, by fact and field: what was added, removed, moved or reworded.

    REVISIONS is A..B for two commits, A...B for what B has changed since their common ancestor, or A for a
    commit and the files as they are now. Without it, the last commit is compared with the files. PATHs are
    memories and folders. A `?` marks a guess: the two texts are similar.
    """
    found = _compare_states(memory, given, paths)
    render.print_found(found, _print_comparison, "differences")
    _print_ignored(0 if found else found.ignored)
    return int(bool(found) and exit_code)


def _print_ignored(count: int) -> None:
    """Say how many memories git ignores, where nothing else was found."""
    render.print_remarks([f"{plural(count, 'memory')} ignored by git"] if count else [])


def _print_comparison(found: list[MemoryChange]) -> None:
    for number, (path, changes) in enumerate(groupby(found, lambda change: change.path)):
        sys.stdout.write("\n" if number else "")
        _print_changes(path, list(changes))


def _compare_states(memory: Memory, given: tuple[str, ...], paths: tuple[str, ...]) -> MemoryChanges:
    """Compare; the first argument is a revision if there is such a one, else a path."""
    revisions, rest = (given[0], given[1:]) if given else ("", ())
    try:
        found = memory.git.diff(revisions, (*rest, *paths) or None)
    except NamedNotFound:
        if not (
            revisions.endswith(memory.suffixes) or options.read_paths(memory).can_name(revisions, PAST_ANY)
        ):
            raise
        return memory.git.diff("", (*given, *paths))
    except MemoryNotFound as error:
        if len(given) != 2 or error.path != given[1]:  # noqa: PLR2004 - two revisions
            raise
        raise error.but(remedy=f"two revisions are `mdmem git diff {given[0]}..{given[1]}`") from None
    if revisions and options.read_paths(memory).can_name(revisions, PAST_ANY):
        render.print_remarks([f"note: {revisions} is taken as a revision; for the folder: --in {revisions}"])
    return found


def _print_changes(path: str, changes: list[MemoryChange]) -> None:
    """Print what differs in one memory, the facts below the headings that they stand under."""
    render.print_coloured(path, "magenta")
    if changes[0].change.startswith("memory"):
        first, *changes = changes
        became = first.change.removeprefix("memory-")
        came = f" from {first.old_path}{'' if first.sure else ' ?'}" if first.old_path else ""
        said = f"  ({first.note})" if first.note else ""
        render.print_coloured(f"  {became}{came}{said}", _SIGNS.get(became, ("", "cyan"))[1])
    print()
    heading: tuple[str, ...] = ()
    for change in changes:
        if change.kind and change.kind != "heading" and change.heading != heading:
            heading = change.heading
            render.print_coloured(f"  # {' > '.join(heading)}".rstrip() + "\n", "cyan")
        print_change(change)
        if change.kind == "heading" and change.after:
            heading = (*change.heading, change.after.lstrip("#").strip())


def print_change(change: MemoryChange) -> None:
    """Print what became of one fact or field."""
    if change.note:
        print(f"  ({change.note})")
        return
    became = change.change.rpartition("-")[2]
    sign, colour = _SIGNS[became]
    render.print_coloured(f"  {sign} ", colour)
    if not change.kind:
        print(f"{change.key or '(value)'}: ", end="")
    if colour == "yellow":
        _print_words(change)
    else:
        render.print_coloured(_indent_lines(change.words[0].text if change.words else ""), colour)
    told = [_name_old_place(change)] * change.moved + ["?"] * (not change.sure)
    print(f"  ({' '.join(told)})" if told else "")


def print_reviewed(memories: Sequence[Reviewed]) -> None:
    """Print all rows of a review."""
    for each in memories:
        for row in each.rows:
            print_row(each, row)


def print_row(memory: Reviewed, row: ReviewedRow) -> None:
    """Print a row of a review, below its memory and its headings, with who made it."""
    render.print_coloured(f"{memory.path}", "magenta")
    print(f"  {memory.kind}{f' from {memory.old_path}' if memory.old_path else ''}")
    if row.heading:
        render.print_coloured(f"  # {' > '.join(row.heading)}\n", "cyan")
    if row.note or not row.change.startswith("memory"):
        print_change(row)
    elif row.change != "memory-renamed":
        lines = (row.before or row.after or "").removesuffix("\n").split("\n")
        sign, colour = _SIGNS[row.change.removeprefix("memory-")]
        for line in lines[:_MOST_FILES]:
            render.print_coloured(f"  {sign} {line}\n", colour)
        if (left := len(lines) - _MOST_FILES) > 0:
            print(f"  and {left:,} more lines")
    if row.by:
        print(f"  (by {row.by}, {row.date[:10]})")
    print()


def _name_old_place(change: MemoryChange) -> str:
    """Say from where a fact has moved, or into which item."""
    is_under = f"now under '{shorten(change.parent, _LONGEST_PARENT, placeholder=' …')}'"
    if not change.old_path and change.old_heading == change.heading:
        return is_under if change.parent else "from another place"
    came = f"from {change.old_path or ' > '.join(change.old_heading) or 'elsewhere'}"
    return f"{came}, {is_under}" if change.parent else came


def _print_words(change: MemoryChange) -> None:
    for word in change.words:
        opening, closing, colour = _MARKED[word.mark] if word.mark else ("", "", None)
        render.print_coloured(opening + _indent_lines(word.text) + closing, colour)


def _indent_lines(text: str) -> str:
    return text.replace("\n", "\n    ")


@git_command.command("blame", epilog="Example: mdmem git blame notes/db.md")
@options.path_argument()
@options.verbose_option
@options.read_command
def git_blame(memory: Memory, path: str) -> None:
    """Show who last changed each fact of a memory: commit, day, agent and author, line, words.

    The agent comes from the history of the vault, else from the commit. A `?` behind it marks a guess: the
    commit also holds a direct edit of the memory, or operations of other agents. With -v, the operations are
    printed, too.
    """
    render.print_found(memory.git.blame(path), _print_blame, f"facts in {path}")


def _print_blame(found: Sequence[SaidFact]) -> None:
    names = [_name_maker(said) for said in found]
    widest = max(map(len, names), default=0)
    digits = max((len(str(said.line)) for said in found), default=0)
    above = len(f"{'':{render.SHORT}}  {'':10}  {'':{widest}}  {'':{digits}}  ")
    for said, name in zip(found, names, strict=True):
        render.print_coloured(said.commit[: render.SHORT] if said.commit else "-" * render.SHORT, "yellow")
        print(f"  {said.date[:10] or '-':10}  {name:{widest}}", end="")
        render.print_coloured(f"  {said.line:{digits}}  ", "green")
        print(said.text.replace("\n", "\n" + " " * above))
    told = {(said.commit, _name_maker(said)): said.date for said in found if said.operations}
    for (commit, name), date in told.items() if render.is_set("verbose") else ():
        render.print_coloured(f"\n{(commit or '-' * render.SHORT)[: render.SHORT]}", "yellow")
        print(f"  {date[:10] or '-':10}  {name}")
        same = [said.operations for said in found if (said.commit, _name_maker(said)) == (commit, name)]
        for operation in chain.from_iterable(dict.fromkeys(same)):
            print(f"    {operation}")


def _name_maker(said: SaidFact) -> str:
    """Name who made a fact; of one that is not committed, also say so."""
    if said.commit:
        return _name_author(said, "" if said.sure else "?")
    return f"{said.agent}{'' if said.sure else '?'}, {said.note}" if said.agent else said.note


@git_command.command("install", epilog="Example: mdmem git install --dry-run")
@options.setup_options
@click.pass_obj
def git_install(target: Target) -> int:
    """Set up git to merge memories with `mdmem git merge-driver`, and to show headings in its diffs.

    It shows the diff and asks first. It writes a block in the .gitattributes of the repository, for the
    memories of the vault and its mounts, and a driver in the config of git. Where mdmem is not found, or does
    not answer, that driver merges lines, as git does without it.
    """
    from mdmem.cli.agents import carry_out, own_program

    return carry_out(target.open().git.install(own_program()))


@git_command.command("uninstall", epilog="Example: mdmem git uninstall --dry-run")
@options.setup_options
@click.pass_obj
def git_uninstall(target: Target) -> int:
    """Remove from the repository what `mdmem git install` added, to the byte.

    It shows the diff and asks first. Without a vault it looks in the repository around the current folder.
    """
    from mdmem.cli.agents import carry_out

    try:
        setup = target.open().git.uninstall()
    except VaultNotFound:
        from mdmem.review.merge_setup import uninstall

        setup = uninstall(os.getcwd(), is_vault=False)
    return carry_out(setup)


@git_command.command(
    "merge-driver", hidden=True, epilog="Example: mdmem git merge-driver base.md ours.md theirs.md 7 a.md"
)
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.argument("size", type=click.IntRange(1))
@click.argument("path")
@click.argument("labels", nargs=3, default=("base", "ours", "theirs"), metavar="[LABELS]")
@options.json_option
def git_merge_driver(base: str, ours: str, theirs: str, size: int, path: str, labels: Any) -> int:
    """Merge two versions of a memory with a common base; git runs this after `mdmem git install`.

    BASE, OURS and THEIRS are files that hold the versions of PATH, and the result takes the place of OURS. It
    prints `merged`, or `conflict` and exits with 1: then both sides stand between markers of SIZE characters.
    LABELS are the names of the three versions in the markers. Frontmatter is merged by key, lists as sets,
    facts by their ^id, links by what they name, and what both sides appended is kept. What would not be valid
    is a conflict.
    """
    from mdmem import merge_files

    # Nobody waits for ever: git's own merge follows where this one has not answered.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_MOST_SECONDS)
    merged = merge_files(base, ours, theirs, path, size, labels)
    render.print_remarks(f"mdmem: {path}: {note}" for note in merged.notes)
    render.print_found(merged, lambda _: print("conflict" if merged.conflicts else "merged"))
    return int(merged.conflicts > 0)


@git_command.command("commit", epilog="Example: mdmem git commit -m 'What we decided' --only notes")
@click.option("--message", "-m", default="", metavar="TEXT", help="Write this message; else what was done.")
@options.path_option("--only", role=PAST_ANY, multiple=True, metavar="PATH", help="Commit only this memory.")
@options.session_option
@click.option("--hooks", is_flag=True, help="Run the programs that the repository itself names.")
@click.option("-a", "--all", "same", is_flag=True, help="Change nothing: this is the default.")
@options.dry_run_option
@options.verbose_option
@options.read_command
def git_commit(memory: Memory, same: bool, **given: Any) -> int:  # noqa: ARG001 - it is so anyway
    """Commit memories that have changed, and mounted files; whatever else is staged stays staged.

    The settings of the vault go along, but not with --only: its .gitignore, and its config, schemas and
    templates in .mdmem. So a clone is a vault. A memory that was renamed is committed under both names. A
    picture, or another file that is no memory, goes along where mdmem moved, made or deleted it; those that
    are new to git are named.

    The message ends in trailers that name what was done and by whom, from the vault's own history. Your own
    hooks and signing apply. Programs that the repository itself names, such as its hooks, run only with
    --hooks, or after `mdmem git allow hooks`. The exit code is 1 when there is nothing to commit.
    """
    done = memory.git.commit(**given, dry_run=render.is_set("dry_run"))
    is_empty = not (done.files or done.settings or done.attachments)
    if render.is_set("as_json"):
        render.print_json(done)
        print_left_out(done)
    else:
        print_committed(done)
    return int(is_empty)


def print_committed(done: Committed) -> None:
    """Print a commit, or with --dry-run what would go into one, and what is not in it."""
    is_empty = not (done.files or done.settings or done.attachments)
    if not is_empty:
        _print_commit_made(done)
    print_left_out(done)
    if is_empty:
        render.print_remarks(["nothing to commit"])
        _print_ignored(done.ignored)


def print_left_out(done: Committed) -> None:
    """Print what is not in a commit, and what should be known about it."""
    render.print_remarks(f"left out: {line}" for line in done.left_out)
    render.print_remarks(f"note: {line}" for line in done.notes)


def _print_commit_made(done: Committed) -> None:
    subject, *rest = done.message.split("\n")
    render.print_coloured(
        f"[{done.branch or 'detached head'} {(done.commit or 'would be')[: render.SHORT]}]", "yellow"
    )
    print(f" {subject}")
    if done.commit is None:
        print("\n".join(rest))
    files = (*done.settings, *done.files, *done.attachments)
    lines = [f"{_LETTERS[file.kind]} {file.path}" for file in files]
    render.print_some(lines, _MOST_FILES, " ")
    if done.ignored:
        print(f" {plural(done.ignored, 'memory')} ignored by git")


@git_command.command("revert", epilog="Example: mdmem git revert 'notes/db.md:One file' --dry-run")
@click.argument("what", metavar="FACT|COMMIT")
@options.path_argument("paths", role=PAST_ANY, nargs=-1, metavar="[-- PATH...]")
@click.option("--keep", multiple=True, metavar="FACT", help="Keep this memory as it is.")
@options.change_options
@options.memory_command
def git_revert(memory: Memory, what: str, paths: tuple[str, ...], keep: tuple[str, ...]) -> None:
    """Revert the last change of a fact, or what a commit did to memories; later changes stay.

    FACT is `MEMORY#^id`, `MEMORY#Heading` for a section, `MEMORY:some of its words`, `MEMORY:7` for what is
    in line 7, `MEMORY:key` for a field, or `MEMORY`. What was added is removed, what was removed is put back
    in its place, and what was reworded gets its old words. COMMIT is reverted whole, or only in the memories
    and folders after `--`. What cannot be reverted by itself, such as a fact that has changed since, is
    refused with the reason; with --keep the rest is reverted. Nothing is committed, and `mdmem undo` takes
    the revert back.
    """
    what, *kept = (_resolve_target(memory, each) for each in (what, *keep))
    options.make_change(memory, lambda m: m.git.revert(what, paths, keep=kept))


def _resolve_target(memory: Memory, what: str) -> str:
    path, fact = _split_target(what, "#:")
    return (
        options.read_paths(memory).resolve(path, PAST_WRITE) + fact
        if fact or path.endswith(memory.suffixes)
        else what
    )


@git_command.command("allow", epilog="Example: mdmem git allow hooks")
@click.argument("what", type=click.Choice(["commit", "hooks"]))
@click.option("--off", is_flag=True, help="Turn it off.")
@options.read_command
def git_allow(memory: Memory, what: str, off: bool) -> None:
    """Allow the vault to commit by itself as its config says, or the hooks of its repository to run.

    This holds for you, on this machine; a copy of the vault has to be allowed again. mdmem commits by itself
    only in a repository that has nothing but memories, and says so about any other.
    """
    word = memory.git.allow(what, off=off)
    if render.is_set("as_json"):
        render.print_json({"what": what, "allowed": not off})
    render.print_remarks([word] if word else [])
