"""The commands about agents and their hosts: install, uninstall, tool, hook, project."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.main import Target, command, group
from mdmem.errors import MdmemError, ToolRefused, Usage, VaultNotFound

if TYPE_CHECKING:
    from mdmem import Setup
    from mdmem.facade.memory import Memory
    from mdmem.review.merge_setup import MergeSetup
    from mdmem.serve.adapters.memory_tool import Tool


class NearChoice(click.Choice[str]):
    """A choice of words; its error names the nearest word."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the error, with the choice that was probably meant."""
        from difflib import get_close_matches

        near = get_close_matches(str(value).lower(), self.choices, 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        return super().get_invalid_choice_message(value, ctx) + meant


_HOSTS = (
    *("claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode"),
    *("vscode", "windsurf", "zed"),
)


_project_option = click.option(
    "--local/--global",
    "project",
    default=True,
    help="Write the settings of this project (default), or your own, for every project.",
)
_host_argument = click.argument("host", type=NearChoice(_HOSTS))


@command("install", epilog="Example: mdmem install claude-code --dry-run")
@_host_argument
@_project_option
@options.setup_options
@click.pass_obj
def install_command(target: Target, host: str, *, project: bool) -> int:
    """Connect an agent: Claude Code, Codex, Cursor, VS Code, ….

    This puts the MCP server into the settings of the host, and hooks for Claude Code, Codex, Copilot CLI,
    Cursor and Gemini CLI. It shows the diff and asks; everything else in those files stays as it is, to the
    byte. It says what is left for you to do. A file that is not plain JSON, as it has comments, is not
    changed: what belongs into it is printed, and the exit code is 1. Settings of a project name the program
    `mdmem`: where it is not on the PATH, this asks, and with --yes nothing is written and the exit code is 1.
    The server and the hooks see what --vault, --user, --project and --resource before `install` name; without
    a user, project or resource what everyone shares, as with --shared. Their changes are made by --actor;
    without it, by what the host calls itself.
    """
    from mdmem.facade.instructions import install

    program = "mdmem" if project else own_program()
    setup = install(target.open(), host, program, project=project)
    if project and not render.is_set("dry_run") and not _has_program():
        return 1
    return _set_up(setup)


def _has_program() -> bool:
    """Return whether the name `mdmem` starts this program; if not, ask whether settings may name it."""
    from shutil import which

    if which("mdmem"):
        return True
    missing = "mdmem: settings of a project name `mdmem`, which is not on the PATH here"
    remedy = "install it with `uv tool install` or `pipx install`, or put its folder on the PATH"
    render.print_remarks([missing, remedy])
    is_asked = sys.stdin.isatty() and not (render.is_set("yes") or render.is_set("as_json"))
    return is_asked and click.confirm("Go on?", err=True)


@command("uninstall", epilog="Example: mdmem uninstall claude-code --dry-run")
@_host_argument
@_project_option
@options.setup_options
@click.pass_obj
def uninstall_command(target: Target, host: str, *, project: bool) -> int:
    """Remove from the settings of an agent's host what `install` wrote.

    It shows the diff and asks. A file is restored to the byte; where it has changed since, only the entries
    themselves are removed. For a file that is not plain JSON, it says what to remove by hand, and the exit
    code is 1.
    """
    from mdmem.facade.instructions import uninstall

    try:
        root = target.open().root
    except VaultNotFound:
        root = ""  # it may be gone already
    return _set_up(uninstall(host, root, project=project))


def _set_up(setup: Setup) -> int:
    """Carry a setup out; say what is left to be done by hand, and return 1 then."""
    render.print_remarks(f"mdmem: {path}: {words}" for path, words in setup.by_hand)
    if setup.changes or render.is_set("as_json") or not setup.by_hand:
        carry_out(setup)
    return int(bool(setup.by_hand))


def own_program() -> str:
    """Return the command that starts this program: its name where the shell finds it."""
    from shutil import which

    beside = os.path.join(os.path.dirname(sys.executable), "mdmem")
    return beside if which("mdmem") is None and os.path.exists(beside) else "mdmem"


def carry_out(setup: Setup | MergeSetup) -> int:
    """Show what a setup changes, ask, and write it."""
    as_json, dry_run = render.is_set("as_json"), render.is_set("dry_run")
    if setup.changes and not as_json:
        print(setup.diff(), end="")
    render.print_remarks(f"mdmem: {note}" for note in setup.notes())
    wanted = bool(setup.changes) and not dry_run
    if wanted and not render.is_set("yes"):
        if as_json or not sys.stdin.isatty():
            raise Usage(problem="nothing was written: nobody can be asked here", remedy="say --yes")
        wanted = click.confirm("Write this?", err=True)
    if wanted or not (setup.changes or dry_run):
        setup.apply()
        if (steps := getattr(setup, "steps", "")) and not as_json:
            print(f"left to do: {steps}")
    if as_json:
        files = [change.path for change in setup.changes]
        render.print_json({"applied": wanted, "files": files, "diff": setup.diff()})
    elif not setup.changes:
        print("nothing to do")
    return 0


@command("tool", hidden=True, epilog="""Example: mdmem tool '{"command": "view", "path": "/memories"}'""")
@click.argument("given", metavar="[COMMAND]", default="-")
@click.pass_obj
def tool_command(target: Target, given: str) -> int:
    """Do what a memory tool is told: view, create, str_replace, insert, delete, rename.

    COMMAND is JSON as a model gives it; without it, each line of standard input is one. Each line of the
    output is an answer: {"content": "…", "is_error": false}. The folder /memories is the namespace.
    """
    from mdmem.serve.adapters.memory_tool import Tool

    tool, failed = Tool(target.open()), False
    for line in sys.stdin.buffer if given == "-" else [given]:
        if line.strip():
            answer = _answer_tool(tool, line)
            failed = failed or answer["is_error"]
            print(json.dumps(answer, ensure_ascii=False), flush=True)
    return int(failed)


def _answer_tool(tool: Tool, line: bytes | str) -> dict[str, Any]:
    try:
        return {"content": tool.call(options.read_object(line, "The command")), "is_error": False}
    except (ToolRefused, click.UsageError) as error:
        words = error.words if isinstance(error, ToolRefused) else error.message
        return {"content": words, "is_error": True}


_ASKED = "MDMEM_ASKED"  # set in the programs that mdmem asks
_MOST_SECONDS = 8  # hosts wait a little longer for what `mdmem install` puts in


def _answer_hook(target: Target, event: str, host: str) -> None:
    text = sys.stdin.buffer.read()
    given = options.read_object(text, "standard input") if text.strip() else {}
    from mdmem.facade.memory import find_vault
    from mdmem.serve.adapters.dialect import list_folders
    from mdmem.serve.adapters.hooks import answer, describe_failure

    # A host starts it in any folder; an agent that has gone elsewhere still belongs to its project.
    folders = [*list_folders(given), os.environ.get("CLAUDE_PROJECT_DIR", "")]
    named, scope, actor = target.binding
    try:
        memory = mdmem.open(find_vault(filter(None, folders), named or "") or named, scope, actor=actor)
        _print_answer(answer(memory, event, given, host, named or ""))
    except VaultNotFound:
        raise
    except MdmemError as error:
        _print_answer(describe_failure(error, event, given, host))
        raise


def _print_answer(told: dict[str, Any] | str | None) -> None:
    if told is not None:
        print(told if isinstance(told, str) else json.dumps(told, ensure_ascii=False))


def _out_of_time(_signal: int, _frame: object) -> None:
    raise TimeoutError(f"no answer within {_MOST_SECONDS} s")


@command("hook", hidden=True, epilog="""Example: mdmem hook user-prompt <<< '{"prompt": "which database"}'""")
@click.argument("event", metavar="EVENT")
@click.option("--host", default="", metavar="NAME", help="Name a host, such as codex.")
@click.pass_obj
def hook_command(target: Target, event: str, host: str) -> None:
    """Answer a hook of a host, such as Claude Code.

    EVENT is session-start, user-prompt, post-edit, post-tool, pre-compact or stop; hooks start background
    themselves. The hook reads a JSON object of the host from standard input, and prints an answer in the form
    that the host reads. --host names the host that the settings are for; another one that reads the same
    settings is known by its object. For session-start, `{}` is enough: the answer holds the text of `mdmem
    context`, without what the host reads itself. For user-prompt, it holds passages with at least two words
    of `prompt`.

    The vault is found from the folder that the host names as `cwd`; there, a relative --vault is looked for,
    and above. A hook never fails a turn of the agent: whatever goes wrong is a note on standard error. It
    prints nothing without a vault, where nothing fits, and inside of a program that mdmem asks.
    """
    if os.environ.get(_ASKED):
        return  # else each question would become a session, which raises the next question
    try:
        if event != "background":  # for which no host waits
            signal.signal(signal.SIGALRM, _out_of_time)
            signal.alarm(_MOST_SECONDS)
        _answer_hook(target, event, host)
    except VaultNotFound:
        pass
    except (MdmemError, click.UsageError) as error:
        print(f"mdmem hook: {error}", file=sys.stderr)
    except BrokenPipeError:
        raise  # the host has read enough
    except Exception as error:  # noqa: BLE001 - a bug of ours must not stop the agent either
        print(f"mdmem hook: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        signal.alarm(0)


_WRITTEN = ("agents", "claude", "codex", "copilot", "cursor", "gemini")


@group("project")
def project_command() -> None:
    """Keep project memory: the AGENTS.md of the namespace; in a repository, the one at its root."""


@project_command.command("summary", epilog="Example: mdmem project summary --max-chars 2000")
@options.number_option("--max-chars", help="Print at most N characters.")
@options.read_command
def project_summary(memory: Memory, max_chars: int | None) -> int:
    """Print the preferences and decisions of the project memory."""
    summary = memory.project.summary(max_chars)
    render.print_text("summary", summary)
    return 0 if summary else render.say_nothing("preferences and decisions in project memory", is_asked=False)


@project_command.command("append", epilog="Example: mdmem project append Decisions 'Use SQLite' --date")
@click.argument("section")
@options.text_argument("entry")
@click.option("--date", is_flag=True, help="Write today's date before it.")
@options.verb_command("project.append")
def project_append() -> None:
    """Add a bullet to a section, which is made if it is not there."""


_MOST_NAMED = 3


@project_command.command("sync", epilog="Example: mdmem project sync --dry-run")
@click.option(
    "--host",
    "tools",
    multiple=True,
    type=NearChoice(_WRITTEN),
    help="Name a host, such as codex.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 when something differs.")
@options.dry_run_option
@options.read_command
def project_sync(memory: Memory, tools: tuple[str, ...], check: bool) -> int:
    """Write the project memory and the rules into the files of coding tools, inside marked blocks.

    With --host, which can be repeated, it writes only the files of these tools.

    `undo` takes back changes of memories alone: to put other files back, use git, or delete their blocks.
    """
    dry_run = check or render.is_set("dry_run")
    synced = memory.project.sync(tools, check=dry_run)
    is_quiet = render.is_set("as_json") or render.is_set("dry_run")
    if render.is_set("as_json"):
        render.print_json({"applied": not dry_run, **mdmem.as_json(synced)})
    elif render.is_set("dry_run"):
        print(synced.diff(), end="")
    elif not synced.differences:
        print("nothing to change")
    for one in synced.differences:
        done = "created" if one.before is None else "deleted" if one.after is None else "changed"
        state = done if one.path in synced.written else one.state
        if not is_quiet or not one.is_fixed:
            to = sys.stderr if is_quiet else sys.stdout
            print(f"{state} {one.path}{f': {one.reason}' if one.reason else ''}", file=to)
    if synced.outside and not is_quiet:
        left = len(synced.outside) - _MOST_NAMED
        named = ", ".join(synced.outside[:_MOST_NAMED]) + (f" and {left:,} more" if left > 0 else "")
        how = "to put back what was there, use git, or delete the marked blocks"
        render.print_remarks([f"undo does not touch {named}: {how}"])
    return int(bool(synced.left) and (check or not render.is_set("dry_run")))
