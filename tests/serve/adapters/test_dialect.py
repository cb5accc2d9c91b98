"""What hosts say and read, in recorded JSON: one agent, one answer, whoever's settings hold the command."""

from __future__ import annotations

import json
import os
import time
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem.errors import TemplateFailed
from mdmem.facade.memory import find_vault
from mdmem.serve.adapters.dialect import is_shell, list_edited, translate
from mdmem.serve.adapters.hooks import answer
from tests.tables import cases

# What each host says of a session that begins and of an edit, by its documentation of 2026-11-29.
SAID: dict[str, dict[str, Any]] = {
    "claude-code": {"session_id": "s", "permission_mode": "default", "transcript_path": "/t.jsonl"},
    "codex": {"session_id": "s", "turn_id": "1", "model": "gpt"},
    "copilot-cli": {"sessionId": "s", "timestamp": 1_704_614_400_000},
    "cursor": {"conversation_id": "s", "generation_id": "g", "cursor_version": "2.4"},
    "gemini-cli": {"session_id": "s", "timestamp": "2026-11-29T09:00:00Z", "hook_event_name": "AfterTool"},
    "vscode": {"sessionId": "s", "hookEventName": "PostToolUse", "timestamp": "2026-11-29T09:00:00Z"},
}
EDITS: dict[str, dict[str, Any]] = {
    "claude-code": {"tool_name": "Edit", "tool_input": {"file_path": "memories/notes/a.md"}},
    "codex": {
        "tool_name": "apply_patch",
        "tool_input": {"command": "*** Update File: memories/notes/a.md\n"},
    },
    "copilot-cli": {"toolName": "edit", "toolArgs": json.dumps({"path": "memories/notes/a.md"})},
    "cursor": {"tool_name": "Write", "tool_input": {"file_path": "memories/notes/a.md"}},
    "gemini-cli": {"tool_name": "replace", "tool_input": {"file_path": "memories/notes/a.md"}},
    "vscode": {"tool_name": "replace_string_in_file", "tool_input": {"filePath": "memories/notes/a.md"}},
}
SHELLS: dict[str, dict[str, Any]] = {
    "claude-code": {"tool_name": "Bash", "tool_input": {"command": "make"}},
    "codex": {"tool_name": "Bash", "tool_input": {"command": "make"}},
    "copilot-cli": {"toolName": "bash", "toolArgs": json.dumps({"command": "make"})},
    "cursor": {"tool_name": "Shell", "tool_input": {"command": "make"}},
    "gemini-cli": {"tool_name": "run_shell_command", "tool_input": {"command": "make"}},
    "vscode": {"tool_name": "run_in_terminal", "tool_input": {"command": "make"}},
}
FILES = ("claude-code", "copilot-cli", "cursor")


@pytest.fixture
def memory(tmp_path: Path) -> mdmem.Memory:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/a.md", "# Billing\n\nInvoices are rendered by the worker at night.\n")
    memory.preferences.set("ui", "theme", "dark")
    memory.sync()
    return memory


def say(memory: mdmem.Memory, host: str, **more: Any) -> dict[str, Any]:
    folder = {"workspace_roots": [memory.workspace]} if host == "cursor" else {"cwd": memory.workspace}
    return {**SAID[host], **folder, **more}


def text_of(told: Any) -> str:
    """What reaches the model, in the form that any of the hosts reads."""
    if not isinstance(told, dict):
        return ""
    keys = ("additional_context", "additionalContext")
    found = [told.get(key) for key in keys] + [told.get("hookSpecificOutput", {}).get("additionalContext")]
    return next((each for each in found if each), "")


@pytest.mark.parametrize(("host", "named"), [*product(SAID, FILES)])
def test_what_is_said_tells_which_host_asks(
    memory: mdmem.Memory, monkeypatch: pytest.MonkeyPatch, host: str, named: str
) -> None:
    """Claude Code says nothing that others do not: the command names it, and never the environment."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/elsewhere")
    told = translate(say(memory, host, **EDITS[host]), named)
    assert told["host"] == (named if host == "claude-code" else host)
    assert (told["session_id"], told["cwd"]) == ("s", memory.workspace)
    assert list(list_edited(told)) == [f"{memory.workspace}/memories/notes/a.md"]


@pytest.mark.parametrize("host", SAID)
def test_every_host_is_given_the_memory_and_what_an_edit_breaks(memory: mdmem.Memory, host: str) -> None:
    assert "dark" in text_of(answer(memory, "session-start", say(memory, host), host))
    given = say(memory, host, **EDITS[host])
    Path(memory.root, "notes/a.md").write_text("See [[nothing]].\n")
    assert "dangling" in text_of(answer(memory, "post-edit", given, host))
    Path(memory.root, "notes/a.md").write_text("---\ntags: {a: 5}\n---\n")
    told = answer(memory, "post-edit", given, host)
    assert isinstance(told, dict)
    is_blocked = host in {"claude-code", "codex"}
    assert "schema-type" in (told["reason"] if is_blocked else text_of(told))
    assert ("decision" in told) == is_blocked


@pytest.mark.parametrize("host", SAID)
def test_every_host_is_told_what_its_first_command_broke(memory: mdmem.Memory, host: str) -> None:
    answer(memory, "session-start", say(memory, host), host)
    answer(memory, "user-prompt", say(memory, host, prompt="Go on."), host)
    Path(memory.root, "notes/a.md").write_text("See [[nothing]].\n")
    given = say(memory, host, **SHELLS[host])
    assert "dangling" in text_of(answer(memory, "post-edit", given, host))
    assert answer(memory, "post-edit", given, host) is None


@pytest.mark.parametrize("host", SAID)
def test_only_hosts_that_hand_it_on_are_told_something_with_a_prompt(memory: mdmem.Memory, host: str) -> None:
    is_deaf = host in {"copilot-cli", "cursor", "vscode"}
    given = say(memory, host, prompt="How are invoices rendered at night?")
    assert ("Invoices" in text_of(answer(memory, "user-prompt", given, host))) != is_deaf
    started = text_of(answer(memory, "session-start", say(memory, host), host))
    assert ("ask mdmem's tool `search`" in started) == is_deaf


@pytest.mark.parametrize("host", SAID)
def test_a_stop_asks_in_the_form_of_the_host(memory: mdmem.Memory, host: str) -> None:
    memory.working.update("State: red.", thread="other")
    answer(memory, "post-edit", say(memory, host, **EDITS[host]), host)
    told = answer(memory, "stop", say(memory, host, stop_hook_active=False), host)
    assert isinstance(told, dict)
    if host == "cursor":
        assert "mdmem working set" in told["followup_message"]
        return
    assert told["decision"] == ("deny" if host == "gemini-cli" else "block")
    assert "mdmem working set" in told["reason"]


@pytest.mark.parametrize(("host", "files"), [*product(SAID, permutations(FILES, 2))])
def test_an_event_is_answered_once_a_session_whichever_settings_name_it(
    memory: mdmem.Memory, host: str, files: tuple[str, str]
) -> None:
    given = say(memory, host)
    told = [text_of(answer(memory, "session-start", given, named)) for named in (*files, *files)]
    assert [bool(each) for each in told] == [True, False, True, False]
    keys = {"session_id", "sessionId", "conversation_id"} & given.keys()
    other = {**given, **dict.fromkeys(keys, "t")}
    assert text_of(answer(memory, "session-start", other, files[1]))
    assert text_of(answer(memory, "session-start", other, files[1], "/a/vault")) == ""


@pytest.mark.parametrize("wrong", ["uninstalled", "failing"])
def test_an_event_is_answered_for_other_settings_where_the_first_ones_ask_no_more_or_fail(
    memory: mdmem.Memory, wrong: str
) -> None:
    first, other, _ = FILES

    def ask(named: str) -> bool:
        return bool(text_of(answer(memory, "session-start", say(memory, "claude-code"), named)))

    assert (ask(first), ask(other)) == (True, False)
    if wrong == "uninstalled":
        (claim,) = Path(memory.state_folder("sessions")).glob("session-start=*")
        os.utime(claim, (time.time() - 31,) * 2)
    else:
        template = Path(memory.root, ".mdmem/templates/context.md")
        template.parent.mkdir(exist_ok=True)
        template.write_text("{{ broken", encoding="utf-8")
        with pytest.raises(TemplateFailed):
            ask(first)
        template.unlink()
    assert (ask(other), ask(first), ask(other)) == (True, False, True)


@cases(
    "tool, given",
    [
        ("read_file", {"filePath": "/a.md"}),
        ("Read", {"file_path": "/a.md"}),
        ("view", {"path": "/a.md"}),
        ("mcp__mdmem__write", {"path": "/a.md"}),
        ("mdmem-write", {"path": "/a.md"}),
        ("Edit", {"file_path": 5}),
        ("Edit", {"file_path": "a\0b"}),
        ("Edit", ["/a.md"]),
        ("Bash", {"command": "*** Update File: /a.md"}),
        ("str_replace_editor", {"command": "view", "path": "/a.md"}),
    ],
)
def test_what_changes_no_file_is_no_edit(tool: str, given: Any) -> None:
    """A host without matchers asks behind each tool."""
    assert list(list_edited({"tool_name": tool, "tool_input": given})) == []


def test_an_edit_of_many_files_names_each() -> None:
    given = {"replacements": [{"filePath": "/a.md"}, {"filePath": "/b.md"}, {"filePath": "/a.md"}]}
    told = {"tool_name": "multi_replace_string_in_file", "tool_input": given}
    assert list(list_edited(told)) == ["/a.md", "/b.md"]
    told = {"tool_name": "editFiles", "tool_input": {"files": ["/c.md"]}}
    assert list(list_edited(told)) == ["/c.md"]


@cases(
    "named, path",
    [
        ("file:///w/a.md", "/w/a.md"),
        ("file://localhost/w/a.md", "/w/a.md"),
        ("file:///w/b%20c%23d.md", "/w/b c#d.md"),
        ("file:///w/%C3%A9.md", "/w/é.md"),
        ("b%20c.md", "/w/b%20c.md"),
        ("a b#c.md", "/w/a b#c.md"),
        ("file:a.md", "/w/file:a.md"),
    ],
)
def test_a_file_may_be_named_by_its_address(named: str, path: str) -> None:
    """As the tools of VS Code let a model name it; what is no address is a path as it is written."""
    told = {"tool_name": "create_file", "tool_input": {"filePath": named}, "cwd": "/w"}
    assert list(list_edited(told)) == [path]
    assert not list(list_edited({**told, "tool_input": {"filePath": "file:///w/a%00.md"}}))


PATCH = "*** Begin Patch\n*** Update File: a.md\r\n*** Move to: b c.md\n*** End Patch"


@cases("given", [PATCH, json.dumps({"patch": PATCH}), {"input": PATCH}, {"command": ["apply_patch", PATCH]}])
def test_a_patch_names_its_files_however_a_host_hands_it_on(given: Any) -> None:
    told = translate({"toolName": "apply_patch", "toolArgs": given, "cwd": "/w"})
    assert list(list_edited(told)) == ["/w/a.md", "/w/b c.md"]


@cases("tool", ["runInTerminal", "runTerminalCommand", "run_terminal_cmd", "local_shell", "PowerShell"])
def test_a_tool_that_runs_a_command_may_have_changed_anything(tool: str) -> None:
    assert is_shell({"tool_name": tool})
    assert not is_shell({"tool_name": f"{tool}Output"})


KEYS = ("cwd", "workspace_roots", "toolArgs", "tool_name", "sessionId", "session_id", "hookEventName")


@cases("key, value", list(product(KEYS, [None, 5, "x", [], {}, [[]], "{", "\ud800"])))
def test_no_value_of_a_host_makes_it_fail(memory: mdmem.Memory, key: str, value: Any) -> None:
    for event in ("session-start", "user-prompt", "post-edit", "stop", "pre-compact"):
        answer(memory, event, {key: value}, "claude-code")


def test_the_vault_is_found_from_the_folder_that_the_host_names(memory: mdmem.Memory, tmp_path: Path) -> None:
    deep = tmp_path / "src/deep"
    deep.mkdir(parents=True)
    other = mdmem.init(tmp_path / "docs/mem").root
    assert find_vault(["/", str(deep)]) == memory.root
    assert find_vault([str(deep)], "docs/mem") == other
    assert find_vault([str(deep)], "docs/none") is None
    assert find_vault(["/"]) is None
