"""`mdmem install` and `mdmem uninstall`: settings of hosts, shown, asked for, and taken back to the byte.

`mdmem tool`: commands of a model in, answers out, both JSON.

The commands of project memory.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

import mdmem
from mdmem.hosts.hosts import HOSTS
from tests.speed import soak_most

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli, Files


DATA = Path(__file__).parents[1] / "data"
SCOPES = [
    (host, scope)
    for host in HOSTS
    for scope in ("--global", "--local")
    if (host, scope) != ("windsurf", "--local")
]
COMMAND = re.compile(r'"command -v (?:[^"\\\\]|\\\\.)*"')
HAS = "command -v mdmem >/dev/null 2>&1 || exit 0;"
JSON_TEXT = '\ufeff{\r\n\t"other": [1,   2],\r\n\t"mine": true\r\n}'
TOML_TEXT = "# mine\r\nmodel = 'x' # kept\r\n\r\n[table]\r\na.b = 1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, and a project with a vault, in which commands run."""
    for name in [
        *(n for n in os.environ if n.startswith(("MDMEM_", "XDG_"))),
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
    ]:
        monkeypatch.delenv(name, raising=False)
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    (project / ".git").mkdir(parents=True)
    mdmem.init(project / "memories")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "mdmem").write_text("#!/bin/sh\n")
    (programs / "mdmem").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    return home


def everything(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below, as it is; the vault and our own state aside."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "memories" not in path.parts and ".local" not in path.parts
    }


def written(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix in {".json", ".toml"})


@pytest.mark.parametrize(("host", "scope"), SCOPES)
# README: **[How to leave](docs/leaving.md)**: …
# README: `mdmem uninstall claude-code` restores the settings to the byte …
def test_install_and_uninstall_leave_everything_as_it_was(
    cli: Cli, home: Path, host: str, scope: str
) -> None:
    root = home.parent
    before = everything(root)
    said = cli.ok("install", host, scope, "--yes").out
    assert "+++ " in said
    made = [path for path in written(root) if "memories" not in path.parts]
    assert made
    cli.ok("uninstall", host, scope, "--yes")
    assert everything(root) == before
    # Again, with files of somebody else in those places.
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((TOML_TEXT if path.suffix == ".toml" else JSON_TEXT).encode())
    before = everything(root)
    cli.ok("install", host, scope, "--yes")
    assert everything(root).keys() == before.keys()
    assert all(
        everything(root)[name] != before[name] for name in before if before[name] and "bin/" not in name
    )
    cli.ok("uninstall", host, scope, "--yes")
    assert everything(root) == before


@pytest.mark.parametrize(("host", "scope"), SCOPES)
def test_uninstall_takes_the_entries_out_where_nothing_is_known_of_install(
    cli: Cli, home: Path, host: str, scope: str
) -> None:
    cli.ok("install", host, scope, "--yes")
    shutil.rmtree(home / ".local")
    cli.ok("uninstall", host, scope, "--yes")
    for path in written(home.parent):
        assert "mdmem" not in path.read_text() or "memories" in path.parts
    assert cli.ok("uninstall", host, scope, "--yes").out == "nothing to do\n"


def test_a_file_with_comments_is_left_and_what_belongs_into_it_is_printed(cli: Cli, home: Path) -> None:
    path = home.parent / "project/.claude/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  // mine\n  "model": "x"\n}\n')
    before = path.read_bytes()
    for options in (["--yes"], ["--yes"], ["--yes", "--json"], ["--dry-run"]):
        ended = cli("install", "claude-code", *options)
        assert ended.code == 1
        assert f"{path}: not changed, since it is not plain JSON: it has comments" in ended.errors
        assert set(json.loads(ended.errors[ended.errors.index("{") :])["hooks"]) >= {"Stop", "SessionStart"}
        assert path.read_bytes() == before
    # The other file is written.
    assert "mdmem" in servers(home.parent / "project/.mcp.json", "mcpServers")["command"]
    path.write_text(
        f"// mine\n{json.dumps({'hooks': {'Stop': [{'hooks': [{'command': 'mdmem hook stop'}]}]}})}"
    )
    ended = cli("uninstall", "claude-code", "--yes")
    assert (ended.code, "take mdmem out by hand, it is named in line 2" in ended.errors) == (1, True)
    assert not (home.parent / "project/.mcp.json").exists()
    path.write_bytes(before)
    ended = cli.ok("uninstall", "claude-code", "--yes")
    assert (ended.out, ended.errors) == ("nothing to do\n", "")


def test_codex_without_the_extra_that_edits_its_settings_is_told_the_block(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tomlkit", None)
        ended = cli("--actor", 'a \x7f"ü', "install", "codex", "--yes")
    assert (ended.code, ended.out) == (1, "")
    assert "pip install '.[codex]' in a clone of mdmem" in ended.errors
    block = tomllib.loads(ended.errors[ended.errors.index("[mcp_servers.mdmem]") :])
    assert not everything(home)
    cli.ok("--actor", 'a \x7f"ü', "install", "codex", "--yes")
    assert tomllib.loads((home.parent / "project/.codex/config.toml").read_text()) == block


def servers(path: Path, key: str) -> Any:
    return json.loads(path.read_text())[key]["mdmem"]


def test_a_project_names_its_vault_by_what_the_host_puts_in(cli: Cli, home: Path) -> None:
    project = home.parent / "project"
    for host in ("claude-code", "cursor", "vscode", "zed", "codex"):
        cli.ok("--user", "alice", "install", host, "--yes")
    options = ["--user", "alice", "mcp"]
    claude = {
        "type": "stdio",
        "command": "mdmem",
        "args": ["--vault", "${CLAUDE_PROJECT_DIR:-.}/memories", *options],
    }
    assert servers(project / ".mcp.json", "mcpServers") == claude
    cursor = {"command": "mdmem", "args": ["--vault", "${workspaceFolder}/memories", *options]}
    assert servers(project / ".cursor/mcp.json", "mcpServers") == cursor
    assert servers(project / ".vscode/mcp.json", "servers") == {"type": "stdio", **cursor}
    zed = {"command": "mdmem", "args": options}
    assert servers(project / ".zed/settings.json", "context_servers") == zed
    codex = tomllib.loads((project / ".codex/config.toml").read_text())
    assert codex["mcp_servers"]["mdmem"] == {"command": "mdmem", "args": options}


@pytest.mark.parametrize("is_named_by_environment", [False, True])
def test_settings_go_into_the_repository_around_the_current_folder(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, is_named_by_environment: bool
) -> None:
    """The vault is elsewhere, in a folder that holds the repository, as the home folder does."""
    app, vault = home / "code/app", str(home / "notes")
    mdmem.init(vault)
    (app / ".git").mkdir(parents=True)
    (app / "src").mkdir()
    monkeypatch.chdir(app / "src")
    named = [] if is_named_by_environment else ["--vault", vault]
    if is_named_by_environment:
        monkeypatch.setenv("MDMEM_VAULT", vault)
    before = everything(home)
    assert "no agent is set up" in cli.ok(*named, "status").out
    for host in ("claude-code", "codex", "cursor"):
        cli.ok(*named, "install", host, "--yes")
    assert servers(app / ".mcp.json", "mcpServers")["args"] == ["--vault", vault, "--shared", "mcp"]
    assert servers(app / ".cursor/mcp.json", "mcpServers")["args"] == ["--vault", vault, "--shared", "mcp"]
    hooks = json.loads((app / ".claude/settings.json").read_text())["hooks"]
    command = f"{HAS} mdmem --vault {vault} --shared hook stop --host"
    assert hooks["Stop"][0]["hooks"][0]["command"] == f"{command} claude-code"
    codex = tomllib.loads((app / ".codex/config.toml").read_text())
    assert codex["mcp_servers"]["mdmem"]["args"] == ["--vault", vault, "--shared", "mcp"]
    assert codex["hooks"]["Stop"][0]["hooks"][0]["command"] == f"{command} codex"
    assert sorted(path.name for path in home.iterdir()) == [".local", "code", "notes"]
    assert "no agent is set up" not in cli.ok(*named, "status").out
    for host in ("claude-code", "codex", "cursor"):
        cli.ok(*named, "uninstall", host, "--yes")
    assert everything(app) == {name[9:]: data for name, data in before.items() if "code/app/" in name}


def test_a_repository_inside_of_the_workspace_is_a_project_of_its_own(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = home.parent / "project"
    library = project / "vendor/library"
    library.mkdir(parents=True)
    (library / ".git").write_text("gitdir: elsewhere\n")
    monkeypatch.chdir(library)
    cli.ok("install", "claude-code", "--yes")
    given = servers(library / ".mcp.json", "mcpServers")["args"]
    assert given == ["--vault", str(project / "memories"), "--shared", "mcp"]
    assert not (project / ".mcp.json").exists()


def test_a_repository_that_is_the_vault_is_the_project(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mdmem.init(home / "notes")
    (home / "notes/.git").mkdir()
    monkeypatch.chdir(home / "notes")
    cli.ok("install", "claude-code", "--yes")
    given = servers(home / "notes/.mcp.json", "mcpServers")["args"]
    assert given == ["--vault", "${CLAUDE_PROJECT_DIR:-.}/.", "--shared", "mcp"]
    assert not (home / ".mcp.json").exists()


def test_without_a_repository_the_workspace_of_the_vault_is_the_project(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mdmem.init(home / "plain/memories")
    (home / "plain/src").mkdir()
    monkeypatch.chdir(home / "plain/src")
    cli.ok("install", "cursor", "--yes")
    given = servers(home / "plain/.cursor/mcp.json", "mcpServers")["args"]
    assert given == ["--vault", "${workspaceFolder}/memories", "--shared", "mcp"]
    cli.ok("uninstall", "cursor", "--yes")
    assert not (home / "plain/.cursor").exists()


@pytest.mark.parametrize("folder", [".", "notes", "code"])
@pytest.mark.parametrize("is_repository", [False, True])
def test_the_home_folder_is_no_project(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, folder: str, is_repository: bool
) -> None:
    """Also where it is a repository, as that of dotfiles."""
    mdmem.init(home / "notes")
    (home / "code").mkdir()
    if is_repository:
        (home / ".git").mkdir()
    monkeypatch.chdir(home / folder)
    before = everything(home)
    for verb in ("install", "uninstall"):
        for options in ([], ["--local"]):
            ended = cli("--vault", str(home / "notes"), verb, "claude-code", "--yes", *options)
            assert ended.code == 2
            assert f"would go into your home folder, {home}" in ended.errors
            assert "`cd` into a project, such as a git repository, or say --global" in ended.errors
    assert everything(home) == before
    cli.ok("--vault", str(home / "notes"), "install", "claude-code", "--global", "--yes")
    assert "no agent is set up" not in cli.ok("--vault", str(home / "notes"), "status").out


def test_settings_of_a_project_in_the_home_folder_are_no_agent(cli: Cli, home: Path) -> None:
    """No host reads them in a project."""
    mdmem.init(home / "notes")
    (home / ".mcp.json").write_text('{"mcpServers": {"mdmem": {}}}')
    assert "no agent is set up" in cli.ok("--vault", str(home / "notes"), "status").out


@pytest.mark.parametrize(
    ("given", "meant"),
    [("claude", "claude-code"), ("Claude-Code", "claude-code"), ("vs-code", "vscode"), ("curser", "cursor")],
)
def test_an_unknown_host_names_the_nearest(cli: Cli, given: str, meant: str) -> None:
    for verb in ("install", "uninstall"):
        ended = cli(verb, given)
        assert (ended.code, f"Did you mean {meant!r}?" in ended.errors) == (2, True)
    ended = cli("project", "sync", "--host", "claude-code")
    assert (ended.code, "Did you mean 'claude'?" in ended.errors) == (2, True)
    assert "Did you mean" not in cli("install", "notepad").errors


def test_the_hooks_of_claude_code_run_as_they_are_written(cli: Cli, home: Path) -> None:
    project = home.parent / "project"
    cli.ok("install", "claude-code", "--yes")
    hooks = json.loads((project / ".claude/settings.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop"}
    assert hooks["PostToolUse"][0]["matcher"] == "Bash|Edit|MultiEdit|Write"
    (project / "memories/notes").mkdir()
    (project / "memories/notes/a.md").write_text("---\ntags: {a: 5}\n---\n")
    command = hooks["PostToolUse"][0]["hooks"][0]["command"]
    assert command == f"{HAS} mdmem --shared hook post-edit --host claude-code"
    given = {
        "cwd": str(project),
        "tool_name": "Write",
        "tool_input": {"file_path": str(project / "memories/notes/a.md")},
    }
    ended = subprocess.run(
        ["sh", "-c", command.replace("; mdmem", f"; {shlex.quote(sys.executable)} -m mdmem", 1)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env=os.environ,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "notes/a.md:2: schema-type" in json.loads(ended.stdout)["reason"]


def test_a_session_that_begins_without_its_memory_tells_the_user_why(cli: Cli, home: Path) -> None:
    project = home.parent / "project"
    with open(project / "memories/.mdmem/config.toml", "a") as config:
        config.write("[search\n")
    given = json.dumps({"cwd": str(project), "session_id": "s1"}).encode()
    told = cli("hook", "session-start", "--host", "claude-code", stdin=given)
    assert told.code == 0
    assert ".mdmem/config.toml: not TOML" in json.loads(told.out)["systemMessage"]
    asked = cli("hook", "user-prompt", "--host", "claude-code", stdin=given)
    assert (asked.code, asked.out) == (0, "")


def test_an_actor_goes_into_the_server_and_the_hooks(cli: Cli, home: Path) -> None:
    project = home.parent / "project"
    cli.ok("--actor", "the reviewer", "install", "claude-code", "--yes")
    options = servers(project / ".mcp.json", "mcpServers")["args"][2:]
    assert options == ["--shared", "--actor", "the reviewer", "mcp"]
    for groups in json.loads((project / ".claude/settings.json").read_text())["hooks"].values():
        assert " --shared --actor 'the reviewer' hook " in groups[0]["hooks"][0]["command"]
    cli.ok("install", "claude-code", "--yes")  # it takes the place of that one
    assert "actor" not in (project / ".mcp.json").read_text()
    assert "actor" not in (project / ".claude/settings.json").read_text()


def test_codex_gets_its_hooks_where_it_has_some(cli: Cli, home: Path) -> None:
    folder = home / ".codex"
    folder.mkdir()
    cli.ok("install", "codex", "--global", "--yes")
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["hooks"]["PostToolUse"][0]["matcher"] == "apply_patch|Bash"
    vault = str(home.parent / "project/memories")
    command = f"{HAS} mdmem --vault {vault} --shared hook stop --host codex"
    assert config["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": command, "timeout": 10}]}]
    cli.ok("uninstall", "codex", "--global", "--yes")
    assert not folder.exists()  # nothing is in it any more
    folder.mkdir()
    (folder / "hooks.json").write_text('{"hooks": {}}')
    cli.ok("install", "codex", "--global", "--yes")
    assert "hooks" not in tomllib.loads((folder / "config.toml").read_text())
    assert set(json.loads((folder / "hooks.json").read_text())["hooks"]) == set(config["hooks"])
    cli.ok("uninstall", "codex", "--global", "--yes")
    assert (folder / "hooks.json").read_text() == '{"hooks": {}}'
    assert not (folder / "config.toml").exists()


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "windsurf"])
def test_settings_of_a_project_name_nothing_of_this_machine(cli: Cli, home: Path, host: str) -> None:
    cli.ok("install", host, "--yes")
    made = [path for path in written(home.parent / "project") if "memories" not in path.parts]
    text = "".join(path.read_text() for path in made)
    assert "mdmem" in text
    assert str(home.parent) not in text
    assert sys.prefix not in text


def test_without_the_program_on_the_path_settings_of_a_project_are_not_written(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    before = everything(home.parent)
    ended = cli("install", "claude-code", "--yes")
    assert (ended.code, ended.out) == (1, "")
    assert "`mdmem`, which is not on the PATH here" in ended.errors
    assert everything(home.parent) == before
    cli.ok("install", "claude-code", "--dry-run")


@pytest.mark.usefixtures("home")
def test_install_says_what_is_left_to_do(cli: Cli) -> None:
    assert "trust each hook of mdmem in /hooks" in cli.ok("install", "codex", "--yes").out
    assert "approve the server mdmem" in cli.ok("install", "claude-code", "--yes").out
    assert "left to do" not in cli.ok("uninstall", "codex", "--yes").out
    assert "left to do" not in cli.ok("install", "codex", "--dry-run").out


@pytest.mark.parametrize(
    "host", [name for name, host in HOSTS.items() if host.project and host.project.hooks]
)
def test_a_teammate_without_the_program_sees_no_failing_hook(cli: Cli, home: Path, host: str) -> None:
    cli.ok("install", host, "--yes")
    commands = [
        each for path in written(home.parent / "project") for each in COMMAND.findall(path.read_text())
    ]
    assert len(commands) >= 3
    for command in commands:
        ended = subprocess.run(
            ["/bin/sh", "-c", json.loads(command)],
            capture_output=True,
            check=False,
            env={"PATH": str(home)},
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


SCHEMAS = {file.stem: json.loads(file.read_text()) for file in (DATA / "hosts").glob("*.json")}


@pytest.mark.parametrize("keeps_outputs", [False, True])
@pytest.mark.parametrize("host", SCHEMAS)
def test_settings_are_sound_by_the_schema_of_their_host(
    cli: Cli, home: Path, host: str, keeps_outputs: bool
) -> None:
    project = home.parent / "project"
    if keeps_outputs:
        (project / "memories/.mdmem/config.toml").write_text('[capture]\npolicy = "inbox"\n')
    cli.ok("install", host, "--yes")
    made = [path for path in written(project) if "memories" not in path.parts]
    assert made
    for path in made:
        Draft202012Validator(SCHEMAS[host]).validate(json.loads(path.read_text()))


HOOKED = [name for name, host in HOSTS.items() if host.project and host.project.hooks]


@pytest.mark.parametrize("host", soak_most(HOOKED, quick=(0, 1)))
# README: `mdmem doctor --host claude-code` says whether it is connected, and what it gets. …
def test_the_doctor_runs_what_the_settings_of_a_host_say(cli: Cli, home: Path, host: str) -> None:
    (home.parent / "bin/mdmem").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mdmem "$@"\n')
    ended = cli("doctor", "--host", host)
    assert (ended.code, f"nothing of mdmem is in the settings of {host}" in ended.errors + ended.out) == (
        1,
        True,
    )
    cli.ok("preferences", "set", "ui", "theme", "dark")
    cli.ok("install", host, "--yes")
    lines = [
        line for line in cli.ok("doctor", "--host", host).out.splitlines() if line.startswith(f"{host} ")
    ]
    assert len(lines) == 1 + len(HOSTS[host].events)
    assert any("start: about " in line.lower() for line in lines)
    assert f"{host} server: starts" in lines


def test_the_doctor_tells_settings_of_the_project_and_of_the_user_apart(cli: Cli, home: Path) -> None:
    (home.parent / "bin/mdmem").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mdmem "$@"\n')
    cli.ok("install", "claude-code", "--yes")
    cli.ok("install", "claude-code", "--global", "--yes")
    found = cli.ok("doctor", "--host", "claude-code").out
    assert found.count("claude-code SessionStart: ") == 1
    assert f"claude-code SessionStart of {home / '.claude/settings.json'}: " in found
    assert found.count("claude-code server") == 2

    (home.parent / "project/memories/.mdmem/config.toml").write_text("[")
    ended = cli("doctor", "--host", "claude-code")
    assert (ended.code, "claude-code server: fails" in ended.out, "starts" in ended.out) == (1, True, False)


def test_the_doctor_runs_nothing_that_install_does_not_write(cli: Cli, home: Path) -> None:
    """Settings may be a stranger's."""
    cli.ok("install", "claude-code", "--yes")
    folder, mark = home.parent / "project", home / "mark"
    for file in (folder / ".claude/settings.json", folder / ".mcp.json"):
        text = file.read_text()
        for new in (f"touch {mark}; mdmem", f"$(touch {mark}) mdmem", f"{folder}/mdmem"):
            file.write_text(text.replace("; mdmem", f"; {new}").replace('"mdmem",', f'"{new}",'))
            ended = cli("doctor", "--host", "claude-code")
            assert (ended.code, "not what `install` writes" in ended.out + ended.errors) == (1, True)
        file.write_text(text)
    assert not mark.exists()
    assert cli("doctor", "--host", "notepad").code == 2


@pytest.mark.parametrize(
    "words",
    [
        "rm --yes notes/kept.md",
        "--shared rm --yes notes/kept.md",
        "write notes/kept.md gone",
        "undo --actor",
        "project sync --host",
        "uninstall claude-code --yes",
        "hook background --host",
    ],
)
def test_the_doctor_runs_no_other_command_of_mdmem(cli: Cli, home: Path, words: str) -> None:
    """Neither before the words that `install` writes nor in their place."""
    (home.parent / "bin/mdmem").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mdmem "$@"\n')
    cli.ok("write", "notes/kept.md", "kept\n")
    cli.ok("install", "claude-code", "--yes")
    folder = home.parent / "project"
    server = json.loads((folder / ".mcp.json").read_text())
    server["mcpServers"]["mdmem"]["args"] = [*words.split(), "mcp"]
    (folder / ".mcp.json").write_text(json.dumps(server))
    hooks = (folder / ".claude/settings.json").read_text()
    (folder / ".claude/settings.json").write_text(hooks.replace("--shared hook", f"{words} hook"))
    before = everything(folder / "memories/notes"), cli.ok("history", "--json").out
    ended = cli("doctor", "--host", "claude-code")
    refused = 1 + len(HOSTS["claude-code"].events)
    assert (ended.out + ended.errors).count("not what `install` writes") == refused
    assert (everything(folder / "memories/notes"), cli.ok("history", "--json").out) == before
    assert (folder / ".mcp.json").exists()


def test_nothing_is_written_without_a_yes(cli: Cli, home: Path) -> None:
    before = everything(home.parent)
    ended = cli("install", "cursor")
    assert ended.code == 2
    assert "+++ " in ended.out
    assert "say --yes" in ended.errors
    assert everything(home.parent) == before
    shown = cli.ok("install", "cursor", "--dry-run").out
    assert shown.startswith("--- /dev/null\n+++ b/.cursor/mcp.json\n")
    assert everything(home.parent) == before
    ended = cli("install", "cursor", "--json")
    assert ended.code == 2
    assert everything(home.parent) == before


def test_json_says_what_was_written(cli: Cli, home: Path) -> None:
    told = cli.ok("install", "cursor", "--json", "--yes").json
    assert told["applied"] is True
    folder = home.parent / "project/.cursor"
    assert told["files"] == [str(folder / "mcp.json"), str(folder / "hooks.json")]
    assert "+++ b/.cursor/mcp.json" in told["diff"]
    told = cli.ok("install", "cursor", "--json", "--yes").json
    assert told == {"applied": False, "files": [], "diff": ""}


def test_on_a_terminal_it_asks(cli: Cli, home: Path) -> None:
    place = home.parent / "project/.cursor/mcp.json"
    code, seen = cli.on_terminal("install", "cursor", question="Write this?", answer="n\n")
    assert code == 0
    assert "+++ b/.cursor/mcp.json" in seen
    assert not place.exists()
    cli.on_terminal("install", "cursor", question="Write this?", answer="y\n")
    assert place.exists()


def test_a_link_is_followed_and_named(cli: Cli, home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}")
    link = home / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    ended = cli.ok("install", "cursor", "--global", "--yes")
    assert f"{link} is reached by a link: {real} is what is written" in ended.errors
    assert link.is_symlink()
    assert "mdmem" in real.read_text()
    cli.ok("uninstall", "cursor", "--global", "--yes")
    assert (link.is_symlink(), real.read_text()) == (True, "{}")


def test_a_link_of_a_project_is_not_followed(cli: Cli, home: Path) -> None:
    """The project may be a stranger's: what it links to would be written in his place."""
    project = home.parent / "project"
    (home / "dotfiles").mkdir()
    (home / "dotfiles/settings.json").write_text("{}")
    for name, target in ((".claude", "dotfiles"), (".mcp.json", "dotfiles/settings.json")):
        (project / name).symlink_to(home / target)
        before = everything(home.parent)
        for verb in ("install", "uninstall"):
            ended = cli(verb, "claude-code", "--local", "--yes")
            assert (ended.code, "symbolic link" in ended.errors) == (2, True)
        assert everything(home.parent) == before
        (project / name).unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_link_to_somebody_elses_file_is_not_followed(cli: Cli, home: Path) -> None:
    theirs = home.parent / "theirs.json"
    theirs.write_text("{}")
    os.chown(theirs, 65534, 65534)
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").symlink_to(theirs)
    ended = cli("install", "cursor", "--global", "--yes")
    assert (ended.code, "which belongs to another user" in ended.errors) == (2, True)
    assert theirs.read_text() == "{}"


def test_what_install_overwrites_is_kept(cli: Cli, home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text('{"mine": 1}')
    cli.ok("install", "cursor", "--global", "--yes")
    kept = home / ".local/state/mdmem/kept"
    assert b'{"mine": 1}' in [path.read_bytes() for path in kept.iterdir()]


def test_another_entry_of_our_name_is_refused(cli: Cli, home: Path) -> None:
    text = '{"mcpServers": {"mdmem": {"command": "another"}}}'
    (home.parent / "project/.mcp.json").write_text(text)
    before = everything(home.parent)
    ended = cli("install", "claude-code", "--yes")
    assert ended.code == 2
    assert "mcpServers.mdmem is there already, with another value" in ended.errors
    assert everything(home.parent) == before


def test_a_host_without_project_settings_says_so(cli: Cli, home: Path) -> None:
    before = everything(home.parent)
    for verb in ("install", "uninstall"):
        for where in ([], ["--local"]):
            ended = cli(verb, "windsurf", *where, "--yes")
            assert ended.code == 2
            assert ended.errors == "mdmem: windsurf reads no settings in a project\nsay --global\n"
    assert everything(home.parent) == before
    cli.ok("install", "windsurf", "--global", "--yes")
    assert (home / ".codeium/windsurf/mcp_config.json").exists()


def test_both_scopes_at_once_are_refused(cli: Cli, home: Path) -> None:
    assert cli("install", "cursor", "--global", "--local").code == 2
    assert not list(home.iterdir())


def test_a_vault_that_is_gone_does_not_keep_its_entries(cli: Cli, home: Path) -> None:
    project = home.parent / "project"
    cli.ok("install", "cursor", "--yes")
    shutil.rmtree(project / "memories")
    cli.ok("uninstall", "cursor", "--yes")
    assert sorted(path.name for path in project.iterdir()) == [".git"]


@pytest.mark.parametrize("options", [["--yes"], ["--dry-run"]])
def test_without_the_extra_that_the_server_needs_nothing_is_installed(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    ended = cli("install", "cursor", *options)
    assert (ended.code, ended.out) == (2, "")
    assert "pip install '.[mcp]'" in ended.errors
    assert not everything(home)


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_one_command_is_an_argument(cli: Cli, files: Files) -> None:
    files.write("notes/db.md", "ü\n".encode())
    ended = cli.ok("tool", '{"command": "view", "path": "/memories/notes/db.md"}')
    text = "Here's the content of /memories/notes/db.md with line numbers:\n     1\tü\n     2\t"
    assert lines(ended.data) == [{"content": text, "is_error": False}]


def test_each_line_is_a_command_and_a_failed_one_ends_nothing(cli: Cli, files: Files) -> None:
    commands = [
        {"command": "create", "path": "/memories/a.md", "file_text": "one\n"},
        {"command": "create", "path": "/memories/a.md", "file_text": "two\n"},
        {"command": "delete", "path": "/memories/a.md"},
    ]
    given = b"nonsense\n[]\n\n" + b"\n".join(json.dumps(command).encode() for command in commands)
    ended = cli("tool", stdin=given)
    assert ended.code == 1
    assert [each["is_error"] for each in lines(ended.data)] == [True, True, False, True, False]
    assert lines(ended.data)[3]["content"] == "File /memories/a.md already exists"
    assert lines(ended.data)[1]["content"] == "The command is not a JSON object"
    assert not files.everything()


def test_the_namespace_is_what_the_model_sees(cli: Cli, files: Files) -> None:
    files.write("users/alice/a.md", b"one\n")
    ended = cli.ok("--user", "alice", "tool", '{"command": "view", "path": "/memories"}')
    assert lines(ended.data)[0]["content"].endswith("4B\t/memories/a.md")


TEXT = b"# Demo\r\n\r\nWhat it is.\r\n\r\n## Decisions\r\n\r\n- Use SQLite\r\n"


def test_a_bullet_is_written_in_place(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", TEXT)
    cli.ok("project", "append", "Decisions", "- Use click")
    assert files.read("AGENTS.md") == TEXT + b"- Use click\r\n"


def test_a_date_is_written_when_asked(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", TEXT)
    cli.ok("project", "append", "Decisions", "--date", stdin=b"From standard input\n")
    assert files.read("AGENTS.md").decode().splitlines()[-1].endswith(": From standard input")


def test_the_summary_is_what_was_decided(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", TEXT)
    assert cli.ok("project", "summary").out == "## Decisions\r\n\r\n- Use SQLite\n"
    assert "Decisions" in cli.ok("project", "summary", "--json").json["summary"]
    assert "left out" in cli.ok("project", "summary", "--max-chars", "5").out
    assert cli("project", "summary", "--max-chars", "-1").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["append", "Decisions", " "],
        ["append", " ", "entry"],
        ["step", "[x]", "done"],
        ["step", "x", " "],
        ["params", "novalue"],
        ["params", "a:b=c"],
        ["append", "None > Such", "entry"],
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, files: Files, arguments: list[str]) -> None:
    files.write("AGENTS.md", TEXT)
    assert cli("project", *arguments).code in {1, 2}
    assert files.read("AGENTS.md") == TEXT


def test_a_project_has_its_own(cli: Cli, files: Files) -> None:
    cli.ok("--project", "demo", "project", "append", "Decisions", "Use SQLite")
    assert list(files.everything()) == ["projects/demo/AGENTS.md"]
