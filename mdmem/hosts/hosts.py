"""The hosts that mdmem can be installed into: where their settings files are, and what goes into them.

Looked up in their documentation in November 2026; each host is one row.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from mdmem.document.text.diff import unified
from mdmem.document.text.regex import regex
from mdmem.document.tree import KeyPath
from mdmem.errors import ExtraMissing, Usage
from mdmem.hosts import settings
from mdmem.hosts.settings import HOOKS, NAME, VERSION, Addition, SettingsChange
from mdmem.vault.files import open_regular
from mdmem.vault.folder import find_git_root, workspace_of

_CALLED = ("session-start", "user-prompt", "post-edit", "stop")
EVENTS: Mapping[str, str] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt",
    "PostToolUse": "post-edit",
    "PreCompact": "pre-compact",
    "Stop": "stop",
}
"""The events of Claude Code and Codex, and what `mdmem hook` calls them."""
_GUARD = "command -v {} >/dev/null 2>&1 || exit 0"
_OPTIONS = {"--shared": 1, **dict.fromkeys(("--vault", "--user", "--project", "--resource", "--actor"), 2)}
_MARK = regex(r"\$\{(?:CLAUDE_PROJECT_DIR:-\.|workspaceFolder)\}")
_TIMEOUT_SECONDS = 10
_MOST_SETTINGS = 4 * 1024 * 1024  # characters of a file that are looked through for our name


class Files(NamedTuple):
    """Where a host keeps its settings, for a user or in a project.

    Attributes:
        hooks: the file with the hooks; empty for a host without.
        folder: what stands for the project's folder in `servers`; empty where nothing does.
        finds_vault: whether its programs start in the folder of the session, and find a vault above that.
    """

    servers: str
    hooks: str = ""
    folder: str = ""
    finds_vault: bool = False


class Host(NamedTuple):
    """A program that runs agents.

    Attributes:
        key: under which its MCP servers stand.
        project: the files of a project, relative to its folder; None where the host reads none.
        entry: what an entry there has beside command and arguments.
        edits: the names of its tools that may change files, as its hooks match them.
        outputs: the names of its tools with long outputs; empty where they are not kept.
        events: its events for which it takes what a hook says, and what `mdmem hook` calls them.
        handler: what a hook has beside its command; `timeout` in its own unit.
        is_flat: whether hooks stand in the list of an event themselves, in a file with a version.
        joins: whether the command of a server and its arguments are one list.
        steps: what is left for a person to do, in words.
    """

    key: str
    user: Callable[[], Files]
    project: Files | None
    entry: Mapping[str, Any] = {}
    edits: str = ""
    outputs: str = ""
    events: Mapping[str, str] = EVENTS
    handler: Mapping[str, Any] = {"type": "command", "timeout": _TIMEOUT_SECONDS}
    command: str = "command"
    is_flat: bool = False
    joins: bool = False
    steps: str = ""


def _user_files(variable: str, folder: str, servers: str, hooks: str = "") -> Files:
    """Return files below a folder of the user, or below the one that an environment variable names."""
    above = os.environ.get(variable) or os.path.expanduser(folder)
    return Files(os.path.join(above, servers), hooks and os.path.join(above, hooks))


def _vscode_path() -> str:
    from platformdirs import user_config_dir  # noqa: PLC0415 - only VS Code's folder differs between systems

    return os.path.join(user_config_dir("Code", appauthor=False, roaming=True), "User", "mcp.json")


HOSTS: Mapping[str, Host] = {
    "claude-code": Host(
        "mcpServers",
        lambda: _user_files("CLAUDE_CONFIG_DIR", "~", ".claude.json")._replace(
            hooks=_user_files("CLAUDE_CONFIG_DIR", "~/.claude", "settings.json").servers
        ),
        Files(".mcp.json", ".claude/settings.json", "${CLAUDE_PROJECT_DIR:-.}"),
        entry={"type": "stdio"},
        edits="Bash|Edit|MultiEdit|Write",
        outputs="Agent|Bash|Glob|Grep|Read|Task|WebFetch|WebSearch|mcp__.*",
        steps="start Claude Code again in this project, and approve the server mdmem when it asks",
    ),
    "codex": Host(
        "mcp_servers",
        lambda: _user_files("CODEX_HOME", "~/.codex", "config.toml", "hooks.json"),
        Files(".codex/config.toml", ".codex/hooks.json", finds_vault=True),
        edits="apply_patch|Bash",
        outputs="Bash|mcp__.*",
        steps="start Codex again, trust the project when it asks, then trust each hook of mdmem in /hooks",
    ),
    "copilot-cli": Host(
        "mcpServers",
        lambda: _user_files("COPILOT_HOME", "~/.copilot", "mcp-config.json", "hooks/mdmem.json"),
        Files(".github/mcp.json", ".github/hooks/mdmem.json", finds_vault=True),
        entry={"type": "local", "tools": ["*"]},
        edits="apply_patch|bash|create|edit|str_replace_editor",
        events={"sessionStart": "session-start", "postToolUse": "post-edit", "agentStop": "stop"},
        handler={"type": "command", "timeoutSec": _TIMEOUT_SECONDS},
        command="bash",
        is_flat=True,
        steps="start Copilot CLI again in this project, and trust the folder when it asks",
    ),
    "cursor": Host(
        "mcpServers",
        lambda: _user_files("", "~/.cursor", "mcp.json", "hooks.json"),
        Files(".cursor/mcp.json", ".cursor/hooks.json", "${workspaceFolder}"),
        edits="Delete|Shell|Write",
        events={"sessionStart": "session-start", "postToolUse": "post-edit", "stop": "stop"},
        handler={"timeout": _TIMEOUT_SECONDS},
        is_flat=True,
        steps="open the project again in Cursor, and turn the server mdmem on in Settings > MCP",
    ),
    "gemini-cli": Host(
        "mcpServers",
        lambda: _user_files("", "~/.gemini", "settings.json", "settings.json"),
        Files(".gemini/settings.json", ".gemini/settings.json", finds_vault=True),
        edits="replace|run_shell_command|write_file",
        events=dict(zip(("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent"), _CALLED, strict=True)),
        handler={"type": "command", "timeout": _TIMEOUT_SECONDS * 1000},
        steps="start Gemini CLI again in this project, and trust the folder when it asks",
    ),
    "opencode": Host(
        "mcp",
        lambda: _user_files("XDG_CONFIG_HOME", "~/.config", "opencode/opencode.json"),
        Files("opencode.json", finds_vault=True),
        entry={"type": "local"},
        joins=True,
        steps="start OpenCode again, and run `opencode mcp list`; it runs no commands as hooks, so the agent"
        " has to ask the server for what memory says",
    ),
    "vscode": Host(
        "servers",
        lambda: Files(_vscode_path()),
        Files(".vscode/mcp.json", folder="${workspaceFolder}"),
        entry={"type": "stdio"},
        steps="start the server mdmem in .vscode/mcp.json, and trust it when VS Code asks; it runs the hooks"
        " that `mdmem install claude-code` or `mdmem install copilot-cli` writes",
    ),
    "windsurf": Host("mcpServers", lambda: _user_files("", "~/.codeium/windsurf", "mcp_config.json"), None),
    "zed": Host(
        "context_servers",
        lambda: _user_files("XDG_CONFIG_HOME", "~/.config", "zed/settings.json"),
        Files(".zed/settings.json", finds_vault=True),
    ),
}


class ServerBinding(NamedTuple):
    """What an entry is bound to.

    Attributes:
        options: further options of the program, which bind the scope.
        project: the absolute path of the project's folder; None for a user's settings.
        keeps_outputs: whether a hook behind each tool keeps its output.
    """

    program: str
    vault: str
    options: tuple[str, ...] = ()
    project: str | None = None
    keeps_outputs: bool = False


def _list_additions(name: str, binding: ServerBinding, files: Files) -> dict[str, list[Addition]]:
    host = HOSTS[name]
    words = [*_vault_option(binding, files, files.folder), *binding.options, "mcp"]
    joined = [binding.program, *words]
    command = {"command": joined} if host.joins else {"command": joined[0], "args": words}
    additions = {files.servers: [Addition((host.key, NAME), {**host.entry, **command})]}
    if files.hooks:
        additions.setdefault(files.hooks, []).extend(_list_hooks(name, binding))
    return additions


def _list_hooks(name: str, binding: ServerBinding) -> list[Addition]:
    """List the hooks of a host; each command is the same in every version, as some hosts ask to trust it."""
    host = HOSTS[name]
    additions = [Addition(VERSION, 1)] if host.is_flat else []
    # The hook finds the vault from the folder that the host names. Where nobody has mdmem, nothing fails.
    program = shlex.quote(binding.program)
    words = shlex.join([*_vault_option(binding, Files("", finds_vault=True), ""), *binding.options, "hook"])
    outputs = [("PostToolUse", "post-tool")] if binding.keeps_outputs and host.outputs else []
    for event, called in (*host.events.items(), *outputs):
        command = f"{_GUARD.format(program)}; {program} {words} {called} --host {name}"
        matcher = {"post-edit": host.edits, "post-tool": host.outputs}.get(called)
        group: dict[str, Any] = {"matcher": matcher} if matcher else {}
        handler = {**host.handler, host.command: command}
        group |= handler if host.is_flat else {"hooks": [handler]}
        additions.append(Addition((HOOKS, event), group, is_item=True))
    return additions


def _vault_option(binding: ServerBinding, files: Files, folder: str) -> list[str]:
    inside = None if binding.project is None else os.path.relpath(binding.vault, binding.project)
    if inside is None or inside.split(os.sep)[0] == os.pardir:
        return ["--vault", binding.vault]
    if files.finds_vault and inside in {"memories", os.curdir}:
        return []
    return ["--vault", os.path.join(folder, inside)]


class Setup(NamedTuple):
    """What a command does to the settings files of a host, also those that need no change.

    `steps` says what is left for a person to do then.
    """

    files: tuple[SettingsChange, ...]
    steps: str = ""

    @property
    def changes(self) -> tuple[SettingsChange, ...]:
        """The files that change."""
        return tuple(file for file in self.files if file.before != file.after)

    @property
    def by_hand(self) -> tuple[tuple[str, str], ...]:
        """The files that people have to change, and what they have to do."""
        return tuple((file.path, file.by_hand) for file in self.files if file.by_hand)

    def diff(self) -> str:
        """Return the changes as one unified diff."""
        return "".join(unified(file.before, file.after, _shown_path(file.path)) for file in self.changes)

    def notes(self) -> list[str]:
        """Name the files that are reached by a link."""
        return [
            f"{file.path} is reached by a link: {target} is what is written"
            for file in self.changes
            if (target := os.path.realpath(file.path)) != os.path.abspath(file.path)
        ]

    def apply(self) -> None:
        """Write the files; as `settings.write`."""
        settings.write(self.files)


def _shown_path(path: str) -> str:
    near = os.path.relpath(path)
    return path.lstrip(os.sep) if near.startswith(os.pardir) else near


def install(name: str, binding: ServerBinding) -> Setup:
    """Compute what puts mdmem into a host."""
    if find_spec("mcp") is None:
        raise ExtraMissing(extra="mcp", package="mcp")
    files = _locate_files(name, binding.project)
    if files.hooks and files.servers.endswith(".toml") and not os.path.lexists(files.hooks):
        # Codex warns where a folder has hooks in both forms: they go beside the servers.
        files = files._replace(hooks=files.servers)
    additions = _list_additions(name, binding, files).items()
    changes = tuple(settings.install(path, listed, binding.project) for path, listed in additions)
    return Setup(changes, HOSTS[name].steps)


def find_project(root: str) -> str:
    """Find the folder of the project that the current folder is in, for local settings.

    It is the root of the git repository. Without one, it is the workspace of the vault where that holds the
    current folder, else the current folder. `root` is the vault's folder, empty when that is gone.

    Raises:
        Usage: it is the home folder, which is no project, or the current folder is gone.
    """
    remedy = "`cd` into a project, such as a git repository, or say --global"
    try:
        here = os.path.realpath(os.curdir, strict=True)
    except OSError as error:
        raise Usage(problem=f"cannot find the current folder: {error.strerror}", remedy=remedy) from None
    workspace = workspace_of(root) if root else here
    around = workspace if os.path.commonpath((workspace, here)) == workspace else here
    project = find_git_root(here) or around
    if project == _home_folder():
        raise Usage(problem=f"local settings would go into your home folder, {project}", remedy=remedy)
    return project


def _home_folder() -> str:
    return os.path.realpath(os.path.expanduser("~"))


def find_installed(root: str) -> list[str]:
    """Return the hosts with settings that name mdmem.

    Looks at those of the user, of the project around the current folder, and of the vault's workspace.
    """
    projects = {workspace_of(root)} - {_home_folder()}
    with contextlib.suppress(Usage):
        projects.add(find_project(root))
    found = []
    for name, host in HOSTS.items():
        folders = (None, *projects) if host.project else (None,)
        paths = (path for folder in folders for path in _locate_files(name, folder)[:2] if path)
        if any(map(_names_program, paths)):
            found.append(name)
    return found


def find_commands(name: str, root: str) -> Iterator[tuple[str, str, str | list[str]]]:
    """Find what the settings of a host start, in the project around the current folder and of the user.

    Yields:
        The file; the event, or `server`; and the command of a hook, or the words of one of a server. The
        command is empty where it is not what `install` writes: settings may be a stranger's.

    Raises:
        Usage: there is no such host.
    """
    if name not in HOSTS:
        raise Usage(problem=f"there is no host {name!r}", remedy=f"say {', '.join(HOSTS)}")
    project = find_project(root)
    for folder in (project, None) if HOSTS[name].project else (None,):
        for path in filter(None, dict.fromkeys(_locate_files(name, folder)[:2])):
            for keys, entry in settings.find_entries(path, folder):
                for event, command in _list_commands(keys, entry, project):
                    is_ours = _is_installed(name, command, is_own=folder is None)
                    yield path, event, command if is_ours else ""


def _list_commands(keys: KeyPath, entry: Any, project: str) -> Iterator[tuple[str, str | list[str]]]:
    if keys[0] == HOOKS:
        for handler in entry.get(HOOKS) or [entry]:
            yield str(keys[1]), str(handler.get("command") or handler.get("bash"))
        return
    command = entry.get("command")
    words = command if isinstance(command, list) else [command, *entry.get("args", ())]
    yield "server", [_MARK.sub(lambda _: project, str(word)) for word in words]


def _is_installed(name: str, command: str | list[str], *, is_own: bool) -> bool:
    """Return whether a command starts only what `install` writes for a host; in a project, mdmem by its name.

    So it serves or answers a hook, whatever its options are, and is no other command of mdmem.
    """
    guard, _, rest = command.partition("; ") if isinstance(command, str) else ("", "", "")
    try:
        words = shlex.split(rest) if isinstance(command, str) else command
    except ValueError:
        return False
    is_named = words[:1] == [NAME] or (is_own and os.path.basename("".join(words[:1])) == NAME)
    end = 1
    while words[end : end + 1] and words[end] in _OPTIONS:
        end += _OPTIONS[words[end]]
    if isinstance(command, list):
        return is_named and words[end:] == ["mcp"]
    events = {*HOSTS[name].events.values(), "post-tool"}
    is_hook = any(words[end:] == ["hook", event, "--host", name] for event in events)
    is_guarded = is_named and guard == _GUARD.format(shlex.quote(words[0]))
    return is_guarded and is_hook and shlex.join(words) == rest


def _names_program(path: str) -> bool:
    try:
        with open(open_regular(os.path.realpath(path)), encoding="utf-8", errors="replace") as file:
            return NAME in file.read(_MOST_SETTINGS)
    except OSError:
        return False


def uninstall(name: str, project: str | None) -> Setup:
    """Compute what takes mdmem out of a host; as `install`."""
    files = _locate_files(name, project)
    return Setup(tuple(settings.uninstall(path, project) for path in dict.fromkeys(files[:2]) if path))


def _locate_files(name: str, project: str | None) -> Files:
    host = HOSTS[name]
    if project is None:
        return host.user()
    if host.project is None:
        raise Usage(problem=f"{name} reads no settings in a project", remedy="say --global")
    servers, hooks = (name and os.path.join(project, name) for name in host.project[:2])
    return host.project._replace(servers=servers, hooks=hooks)
