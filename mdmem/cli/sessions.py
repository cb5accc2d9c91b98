"""The commands of sessions: conversations, kept as logs."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.findings import print_findings, strict_option
from mdmem.cli.main import group
from mdmem.cli.serve import end_program
from mdmem.facade.paths import NEW_NOTE

if TYPE_CHECKING:
    from mdmem import Program, RunSummary, SessionHits
    from mdmem.conversations.observe.capture import Captured
    from mdmem.conversations.observe.observations import Observation
    from mdmem.conversations.observe.observer import ObservedSession, WaitingSession
    from mdmem.facade.memory import Memory


@group("sessions")
def sessions_command() -> None:
    """Keep conversations by key, as logs that several programs may write at once."""


@sessions_command.command("append", epilog="Example: mdmem sessions append t1 user 'Which database?'")
@click.argument("key")
@click.argument("role")
@options.text_argument("content")
@options.read_command
def sessions_append(memory: Memory, key: str, role: str, content: str) -> None:
    """Append a message to a session, and print its number."""
    seq = memory.sessions.add(key, role, content)
    render.print_found({"seq": seq}, lambda _: print("not kept" if seq is None else seq))


@sessions_command.command("history", epilog="Example: mdmem sessions history t1 --limit 20")
@options.thread_argument()
@options.limit_option()
@click.option("--after", default="0", metavar="SEQ", help="Take only messages after this: 12, or KEY#12.")
@options.read_command
def sessions_history(memory: Memory, key: str, **given: Any) -> int:
    """Print the messages of a session, with --limit the last ones; the exit code is 1 when there are none."""
    found = memory.sessions.history(key, **given)
    return render.print_found(found, render.print_messages, f"messages of {key}", is_asked=True)


@sessions_command.command("assemble", hidden=True, epilog="Example: mdmem sessions assemble t1 8000")
@options.thread_argument()
@click.argument("budget", type=click.IntRange(0), metavar="TOKENS")
@options.number_option("--tail", default=32, help="Take N messages before any summary.")
@click.option(
    "--user-first/--any-first",
    default=True,
    help="Leave out messages before the first one of the user.  [default: yes]",
)
@options.read_command
def sessions_assemble(memory: Memory, key: str, budget: int, tail: int, user_first: bool) -> int:
    """Print the messages of a session that fit a prompt: summaries, and the newest messages."""
    found = memory.sessions.assemble(key, budget, tail, user_first=user_first)
    if render.is_set("as_json"):
        render.print_json(found)
    else:
        if found.summary:
            print(found.summary, end="\n\n")
        render.print_messages(found.messages)
        render.print_left_out(found.left_out)
    is_there = found.summary or found.messages or found.left_out
    return 0 if is_there else render.say_nothing(f"messages of {key}", is_asked=True)


@sessions_command.command("compact", epilog="Example: mdmem sessions compact t1 --budget 8000")
@options.thread_argument()
@options.budget_option()
@options.model_option
@options.read_command
def sessions_compact(memory: Memory, key: str, budget: int | None, generator: Program | None) -> int:
    """Replace the oldest messages by summaries, made of their own sentences without a model.

    `expand` gives the messages back.
    """
    if not memory.sessions.exists(key):
        return render.say_nothing(f"session {key}", is_asked=True)
    return render.print_found(memory.sessions.compact(key, budget, generator), _print_compacted)


def _print_compacted(done: Any) -> None:
    _print_summaries(done.summaries)
    problems = dict.fromkeys(done.problems)
    render.print_remarks(f"without the model: {problem}" for problem in problems)
    stuck = f", over the budget with {', '.join(f'#{seq}' for seq in done.stuck)}" if done.stuck else ""
    render.print_remarks([f"{done.tokens:,} tokens{stuck}"])


@sessions_command.command("expand", epilog="Example: mdmem sessions expand t1 41 --depth 1")
@options.thread_argument()
@click.argument("ids", nargs=-1, required=True, metavar="SEQ…")
@options.budget_option(4_000)
@options.number_option("--depth", help="Go N levels down; else to the messages.")
@options.read_command
def sessions_expand(memory: Memory, key: str, ids: Sequence[str], budget: int, depth: int | None) -> None:
    """Print what summaries stand for, and messages, by their numbers."""
    render.print_found(memory.sessions.expand(key, ids, budget, depth), _print_expanded)


def _print_expanded(found: Any) -> None:
    _print_summaries(found.summaries)
    render.print_messages(found.messages)
    render.print_left_out(found.left_out)


@sessions_command.command("list", epilog="Example: mdmem sessions list")
@options.read_command
def sessions_list(memory: Memory) -> int:
    """List the sessions: messages, when the last one was said, key, title."""
    found = memory.sessions.list()
    code = render.print_list(found, _format_session, "sessions")
    if not render.is_set("as_json"):
        render.print_remarks(each.problem for each in found if each.problem)
    return code


def _format_session(session: Any) -> str:
    leads = f"  → {session.alias_of}" if session.alias_of else ""
    title = f"  {session.title}" if session.title else ""
    return f"{session.messages:7,}  {session.updated}  {session.key}{leads}{title}"


def finding_options(command: Any) -> Any:
    """Declare the options of a search in sessions."""
    declared: list[Any] = [
        options.thread_argument(required=False),
        options.all_option(),
        click.option("--role", help="Find only what user, assistant, tool or another says."),
        click.option(
            "--last",
            metavar="SPAN",
            help="Find only what is no older: 2h, 3d, 1w or 1m (months).",
        ),
        options.since_option(),
        options.before_option(),
        options.choice_option(
            "--part", "scope", choices="both message summary", help="Look only in messages, or in summaries."
        ),
        click.option("--dropped", is_flag=True, help="Find also what is no longer in the history."),
        options.limit_option(default=20),
        options.read_command,
    ]
    for option in reversed(declared):
        command = option(command)
    return command


@sessions_command.command("grep", epilog="Example: mdmem sessions grep 'which database' t1 --last 1w")
@click.argument("pattern")
@options.regex_option
@options.case_option
@finding_options
def sessions_grep(memory: Memory, **given: Any) -> int:
    """Find the messages and summaries of a session that contain a text, the newest first."""
    return _print_hits(memory.sessions.grep(**given))


@sessions_command.command("search", epilog="Example: mdmem sessions search 'which database' t1")
@click.argument("query")
@finding_options
def sessions_search(memory: Memory, **given: Any) -> int:
    """Find the messages and summaries of a session, or of all, that fit a query best."""
    return _print_hits(memory.sessions.search(**given), is_most=True)


def _print_hits(found: SessionHits, *, is_most: bool = False) -> int:
    last = len(found.hits) - 1
    for number, hit in enumerate(found.hits):
        if render.is_set("as_json"):
            render.print_json({**mdmem.as_json(hit), "left_out": found.left_out if number == last else 0})
            continue
        depth = "" if hit.depth is None else f" {hit.depth}"
        render.print_head(f"{hit.key}#{hit.seq}  {hit.role}{depth}  {hit.time}")
        print(hit.snippet, end="\n\n")
    more = [f"{'at most ' * is_most}{found.left_out:,} more"] if found.left_out else []
    render.print_remarks((*found.notes, *more))
    return 0 if found.hits else render.say_nothing("matches", is_asked=True)


@sessions_command.command("import", epilog="Example: mdmem sessions import chat.json")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--format", metavar="NAME", help="Use this form.")
@click.option("--key", help="Name the session of a single file; by default as the file or its name says.")
@click.option("--rename", is_flag=True, help="Add .migrated to the names of imported files.")
@options.read_command
def sessions_import(memory: Memory, paths: Sequence[str], **given: Any) -> int:
    """Import conversations of other programs; one that was imported before gets its new messages.

    The notes that such a program keeps, as Claude Code does, are imported by `mdmem import`.

    The format of each file is recognised; with --format, only files of that format are taken.

    \b
    picoclaw             its folder of sessions: both NAME.json, and NAME.jsonl with NAME.meta.json
    claude-code-session  a transcript, or the folder ~/.claude/projects/REPOSITORY
    codex-session        a rollout, or the folder ~/.codex/sessions
    gemini-cli-session   a session, or a folder ~/.gemini/tmp/PROJECT/chats
    opencode-session     what `opencode export` writes
    openai-messages      messages of chat completions, as a JSON list or as JSON lines

    What is left out is named on standard error, with the reason; the exit code is 1 then.
    """  # noqa: D301 - as in mdmem.cli.make
    done = memory.sessions.import_(*paths, **given)
    if render.is_set("as_json"):
        render.print_json(done)
    else:
        named = given["format"] or paths[0]
        render.print_list(done.sessions, lambda each: _format_import(each, named), "new messages")
        render.print_remarks(done.left_out)
    return 1 if done.left_out else 0


def _format_import(done: Any, named: str) -> str:
    return f"{done.messages:7,}  {done.key}{f'  ({done.format})' * (done.format != named)}"


@sessions_command.command("allow-capture", epilog="Example: mdmem sessions allow-capture")
@click.option("--off", is_flag=True, help="Turn it off.")
@options.read_command
def sessions_allow_capture(memory: Memory, off: bool) -> None:
    """Let hooks keep, observe and capture conversations in this vault, where its config asks for it.

    This holds for you, on this machine; a copy of the vault has to be allowed again.
    """
    memory.sessions.allow_capture(off=off)
    did = "no longer allowed here" if off else "allowed here: hooks do what .mdmem/config.toml asks for"
    _print_done({"allowed": not off}, "allow it", did)


@sessions_command.command("clear", epilog="Example: mdmem sessions clear t1")
@options.thread_argument()
@options.dry_run_option
@options.read_command
def sessions_clear(memory: Memory, key: str) -> int:
    """Empty the history and the context of a session; the log keeps all of it."""
    if not memory.sessions.exists(key):
        return render.say_nothing(f"session {key}", is_asked=True)
    messages = memory.sessions.clear(key, dry_run=render.is_set("dry_run"))
    did = "done: `mdmem sessions grep` and `search` still find it all with --dropped"
    _print_done({"key": key}, f"clear {messages:,} messages of {key}", did)
    return 0


@sessions_command.command("rm", epilog="Example: mdmem sessions rm t1")
@options.thread_argument()
@options.dry_run_option
@options.read_command
def sessions_rm(memory: Memory, key: str) -> int:
    """Move a session to the archive, from where `restore` brings it back; 1 when there is none."""
    was_there = memory.sessions.delete(key, dry_run=render.is_set("dry_run"))
    done = f"done: `mdmem sessions restore {shlex.quote(key)}` brings it back"
    _print_done({"key": key, "deleted": was_there}, f"delete {key}" if was_there else "", done)
    return 0 if was_there else render.say_nothing(f"session {key}", is_asked=True)


@sessions_command.command("restore", epilog="Example: mdmem sessions restore t2")
@click.argument("key")
@options.number_option("--older", default=0, help="Pass over N that were removed later.")
@options.dry_run_option
@options.read_command
def sessions_restore(memory: Memory, key: str, older: int) -> None:
    """Bring back the session of this key that was removed last."""
    memory.sessions.restore(key, older=older, dry_run=render.is_set("dry_run"))
    _print_done({"key": key}, f"restore {key}")


@sessions_command.command("vacuum", epilog="Example: mdmem sessions vacuum t1")
@options.thread_argument()
@click.option("--purge", is_flag=True, help="Remove it from the archive, too; nothing brings that back.")
@options.yes_option
@options.dry_run_option
@options.read_command
def sessions_vacuum(memory: Memory, key: str, purge: bool) -> int:
    """Rewrite a log without what is no longer in the history; the archive keeps the old log.

    On a terminal, you are asked before --purge; elsewhere it needs --yes.
    """
    dry_run = render.is_set("dry_run")
    if not memory.sessions.exists(key, archived=purge):
        return render.say_nothing(f"session {key}", is_asked=True)
    if purge and not dry_run and not options.is_purge_confirmed(f"what the archive has of {key}", "--purge"):
        return 1
    written = memory.sessions.vacuum(key, purge=purge, dry_run=dry_run)
    rewrite = f"rewrite the log of {key}" if written else f"leave the log of {key} as it is"
    _print_done({"key": key, "written": written}, f"{rewrite}{', and purge the archive of it' * purge}")
    return 0


@sessions_command.command("check", epilog="Example: mdmem sessions check t1")
@options.thread_argument(required=False)
@options.fix_option
@strict_option
@options.read_command
def sessions_check(memory: Memory, key: str | None, fix: bool, strict: bool) -> int:
    """Report what is wrong in the log of a session, or of all; the exit code is 1 for an error.

    --fix rewrites damaged logs; the archive keeps the old ones.
    """
    return print_findings(memory.sessions.check(key, fix=fix), strict=strict)


@sessions_command.command("summarize", epilog="Example: mdmem sessions summarize t1")
@options.thread_argument()
@options.model_option
@options.verb_command("summaries.summarize")
def sessions_summarize() -> None:
    """Write what was said since the last time into the memory of a session, by rules without a model.

    With --dry-run no model is asked: the diff is what rules give.
    """


@sessions_command.command("keep", epilog="Example: mdmem sessions keep t1 --to talks/database")
@options.thread_argument()
@options.path_option("--to", role=NEW_NOTE, metavar="NOTE", help="Write to this path.")
@options.number_option("--min-tokens", default=0, help="Refuse a shorter conversation.")
@options.verb_command("summaries.keep")
def sessions_keep() -> None:
    """Write a conversation as a note, which is named after the session without --to."""


@sessions_command.command("summaries", epilog="Example: mdmem sessions summaries")
@options.read_command
def sessions_summaries(memory: Memory) -> int:
    """List the summaries of sessions."""
    found = memory.summaries.list()
    return render.print_list(
        found, lambda each: f"{each.path}  {each.messages:,} messages, up to #{each.through}", "summaries"
    )


@sessions_command.command("observe", epilog="Example: mdmem sessions observe t1")
@options.thread_argument("session", metavar="[KEY]", required=False)
@options.all_option()
@click.option("--watch", is_flag=True, help="Go on, as they grow, until it is stopped.")
@click.option("--now", is_flag=True, help="Observe what is new, however little it is.")
@options.model_option
@options.read_command
def sessions_observe(memory: Memory, watch: bool, **given: Any) -> int:
    """Write observations: what was asked, decided and left open in sessions since the last time.

    One is due after 1,000 tokens of messages, or as many as [observation] of the config says; --now does not
    wait for that. A model, where one is set, also reflects on the observations. Each memory that is made is
    printed. A session that another process observes is left to that process. The exit code is 1 when anything
    went wrong.
    """
    key = given["session"]
    if key is not None and not watch and not memory.sessions.exists(key):
        return render.say_nothing(f"session {key}", is_asked=True)
    if watch:
        render.stop_paging()
        signal.signal(signal.SIGTERM, end_program)
    code, done = 0, set()
    for each in memory.observe(watch=watch, **given):
        code = 1 if each.problems else code
        done |= {each.session} if each.made or each.is_busy or each.problems else set()
        render.print_found(each, _print_observed)
        sys.stdout.flush()
    waiting = [] if code else memory.observations.waiting(key)
    if given["all"] and not (waiting or done or code):
        return render.say_nothing("sessions", is_asked=False)
    _print_waiting([each for each in waiting if each.session not in done], is_all=given["all"])
    return code


def _print_waiting(waiting: Sequence[WaitingSession], *, is_all: bool) -> None:
    """Say in which sessions too little is new to be observed, what that waits for, and how not to wait."""
    for each in waiting[: render.MANY]:
        of = f"{each.session}: " if is_all else ""
        count = f"{each.tokens:,} of {each.needed:,} tokens of messages"
        state = f"not yet: {count}" if each.tokens else "nothing new was said"
        render.print_remarks([f"{of}{state}"])
    more = len(waiting) - render.MANY
    render.print_remarks([f"and {more:,} more sessions"] if more > 0 else [])
    new = [each.session for each in waiting if each.tokens]
    if new:
        name = "--all" if is_all else shlex.quote(new[0])
        number = "`[observation] message_tokens` in .mdmem/config.toml says how many it takes"
        render.print_remarks([f"`mdmem sessions observe {name} --now` does not wait; {number}"])


def _print_observed(each: ObservedSession) -> None:
    for path in each.made:
        print(f"created {path}")
    if each.compacted:
        print(f"{each.compacted:,} stand for their messages in a prompt of {each.session}")
    busy = ["another process observes it"] if each.is_busy else []
    render.print_remarks(f"{each.session}: {problem}" for problem in (*busy, *each.problems))


@sessions_command.command("reflect", epilog="Example: mdmem sessions reflect t1")
@options.thread_argument("session", metavar="KEY")
@click.option("--meta", is_flag=True, help="Reflect on reflections instead of observations.")
@options.model_option
@options.read_command
def sessions_reflect(memory: Memory, session: str, meta: bool, generator: Program | None) -> int:
    """Let a model sum up observations that no reflection covers; the exit code is 1 when there are none."""
    made = memory.observations.reflect(session, meta=meta, generator=generator)
    what = f"observations of {session} to reflect on"
    return render.print_found([made] if made else [], _print_observations, what, is_asked=True)


@sessions_command.command("observations", epilog="Example: mdmem sessions observations t1 --limit 5")
@options.thread_argument("session", metavar="KEY")
@options.limit_option()
@options.read_command
def sessions_observations(memory: Memory, session: str, limit: int | None) -> int:
    """Print the observations of a session, the oldest first, with --limit the newest ones."""
    found = memory.observations.list(session, limit)
    return render.print_found(found, _print_observations, f"observations of {session}", is_asked=True)


@sessions_command.command("observed", epilog="Example: mdmem sessions observed t1/0123abcd-1-14")
@click.argument("id_", metavar="ID")
@options.budget_option(4_000)
@options.read_command
def sessions_observed(memory: Memory, id_: str, budget: int) -> None:
    """Print the messages that an observation is about, also those that left the history."""
    render.print_found(memory.observations.expand(id_, budget), _print_expanded)


@sessions_command.command(
    "delete-observations", hidden=True, epilog="Example: mdmem sessions delete-observations --session t1"
)
@click.argument("ids", metavar="ID…", nargs=-1)
@options.session_option
@options.verb_command("observations.delete")
def sessions_delete_observations() -> None:
    """Remove observations and reflections; the messages stay, and are not observed again."""


def _print_observations(found: Sequence[Observation]) -> None:
    for each in found:
        kind = f"reflection {each.generation}" if each.generation else "observation"
        render.print_head(f"{each.path}  {kind} of #{each.first} to #{each.last}, by {each.by}")
        print(each.text or each.problem, end="\n\n")


@sessions_command.command("capture", epilog="Example: mdmem sessions capture t3 --policy inbox")
@options.thread_argument()
@click.option("--policy", help="Use off, inbox or apply, instead of [capture] policy of the config.")
@options.model_option
@options.dry_run_option
@options.json_option
@options.memory_command
def sessions_capture(memory: Memory, **given: Any) -> int:
    """Capture what was said in a session since the last time; the exit code is 1 when there is nothing."""
    if not memory.sessions.exists(given["key"]):
        return render.say_nothing(f"session {given['key']}", is_asked=True)
    done = (memory.plan if render.is_set("dry_run") else memory).capture.run(**given)
    if render.is_set("dry_run"):
        items = (replace(item, change=item.change and memory.prepared(item.change)) for item in done.items)
        done = replace(done, items=tuple(items))
    render.print_found(done, _print_captured)
    render.print_notes(memory)
    what = f"statements in {given['key']} since the last time"
    if done.items or done.told:
        return int(not done.items)
    return render.say_nothing(what, is_asked=True)


def _print_captured(done: Captured) -> None:
    for item in done.items:
        what = f"{item.candidate.kind}: {item.candidate.value}"
        print("  ".join(filter(None, (item.outcome, item.path, item.source, what, item.reason))))
        if render.is_set("dry_run") and item.change is not None:
            render.print_diff(item.change)
    render.print_remarks([done.told] if done.told else [])


def _print_summaries(summaries: Sequence[RunSummary]) -> None:
    for each in summaries:
        run = f"{each.messages:,} messages, #{each.first} to #{each.last}"
        render.print_head(f"#{each.seq}  summary of {run}, by {each.by}")
        print(each.text, end="\n\n")


def _print_done(done: dict[str, Any], would: str, did: str = "done") -> None:
    """Print what a change did, or with --dry-run would do; people see that nothing went wrong."""
    dry_run = render.is_set("dry_run")
    if render.is_set("as_json"):
        render.print_json({"applied": not dry_run, **done})
    elif would:
        render.print_remarks([f"would {would}" if dry_run else did])
