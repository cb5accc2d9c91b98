"""What hooks keep by themselves: only where the config asks for it, and the user has allowed it."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.cli.main import main
from mdmem.vault.mark import config_folder
from tests import speed
from tests.speed import soak_most
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem import Memory

SAID = ["We decided to use SQLite for the index.", "Thanks.", "The spare key lies under the mat."]
LONG = "".join(f"line {number} of what the tool has printed\n" for number in range(200))
KEYS = {False: "claude-code:5e1f", True: "codex:5e1f"}

both = pytest.mark.parametrize("codex", [False, True])
neither = pytest.mark.parametrize(
    ("policy", "is_allowed"), [("off", True), ("inbox", False), ("apply", False), ("off", False)]
)


def opened(root: Path, policy: str, *, is_allowed: bool = True) -> Memory:
    (root / ".mdmem/config.toml").write_text(f'[capture]\npolicy = "{policy}"\n', encoding="utf-8")
    memory = mdmem.open(root)
    memory.sessions.allow_capture(off=not is_allowed)
    return memory


def run(*arguments: str, given: bytes = b"") -> tuple[str, str]:
    """What the program prints, in this process, and what it notes on standard error. It never fails."""
    kept = [io.BytesIO(data) for data in (given, b"", b"")]
    streams = [io.TextIOWrapper(each, encoding="utf-8") for each in kept]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        for name in ("signal", "alarm"):
            patch.setattr(signal, name, lambda *_: None)  # the alarm is that of the test
        assert main(arguments) == 0
    return kept[1].getvalue().decode(), kept[2].getvalue().decode()


def hook(memory: Memory, event: str, given: dict[str, Any], *, codex: bool = False) -> str:
    """Run a hook as a host does; what it notes on standard error."""
    told = {"session_id": "5e1f", "cwd": memory.workspace, **given}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CLAUDE_PROJECT_DIR", raising=False)
        if not codex:
            patch.setenv("CLAUDE_PROJECT_DIR", memory.workspace)
        out, errors = run("--vault", memory.root, "hook", event, given=json.dumps(told).encode())
    assert out == ""
    return errors


def say(memory: Memory, key: str) -> None:
    memory.sessions.extend(key, [{"role": "user", "content": text} for text in SAID])


def has_started(memory: Memory) -> bool:
    """Whether a hook has ever started a process in the background."""
    return os.path.isdir(os.path.join(memory.root, ".mdmem/local/background"))


# -- what is stated -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "codex"), soak_most(product(["stop", "pre-compact"], [False, True]), quick=(0, 3))
)
def test_a_hook_captures_what_is_stated_into_the_inbox(vault_root: Path, event: str, *, codex: bool) -> None:
    memory = opened(vault_root, "inbox")
    say(memory, KEYS[codex])
    assert hook(memory, event, {}, codex=codex) == ""
    until(lambda: not memory.capture.due(KEYS[codex]))
    (found,) = memory.inbox.list()
    assert "SQLite" in found.arguments["text"]
    assert memory.observations.list(KEYS[codex]) == [], "which the config does not ask for"


def test_a_hook_captures_at_once_where_the_policy_says_so_and_what_is_said_later(vault_root: Path) -> None:
    memory = opened(vault_root, "apply")
    for number in (1, 2):
        say(memory, KEYS[False])
        hook(memory, "stop", {})
        until(lambda: not memory.capture.due(KEYS[False]))
        (line,) = memory.show("notes/decisions.md").text.splitlines()
        assert line.count("sessions/") == number


def test_a_hook_captures_from_the_transcript_that_the_host_names(vault_root: Path) -> None:
    memory = opened(vault_root, "inbox")
    config = vault_root / ".mdmem/config.toml"
    config.write_text(f'{config.read_text()}[sessions]\ncapture = "hooks"\n[observation]\nenabled = true\n')
    transcript = vault_root.parent / "5e1f.jsonl"
    said = (*SAID, "Look at the parser. " * 500)
    lines = [{"type": "user", "message": {"role": "user", "content": text}} for text in said]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    hook(memory, "stop", {"transcript_path": str(transcript)})
    memory = mdmem.open(vault_root)
    until(lambda: memory.inbox.list() and memory.observations.list(KEYS[False]))
    assert [each.sources for each in memory.inbox.list()] == [("sessions/claude-code%3A5e1f#1",)]


@both
@neither
def test_no_hook_captures_without_consent_or_without_a_policy(
    vault_root: Path, policy: str, *, is_allowed: bool, codex: bool
) -> None:
    memory = opened(vault_root, policy, is_allowed=is_allowed)
    say(memory, KEYS[codex])
    for event in ("stop", "pre-compact"):
        hook(memory, event, {}, codex=codex)
    assert not has_started(memory)
    # Nor does the process itself, whoever starts it.
    hook(memory, "background", {"session_key": KEYS[codex]}, codex=codex)
    assert memory.inbox.list() == []
    assert not memory.exists("notes/decisions.md")


def test_a_session_begins_with_a_word_where_the_config_asks_in_vain(vault_root: Path) -> None:
    memory = opened(vault_root, "inbox", is_allowed=False)
    assert memory.service.capture_refused
    assert "[capture] policy" in memory.service.capture_refused.message
    assert "allow-capture" in str(memory.service.capture_refused)
    memory.sessions.allow_capture()
    assert memory.service.capture_refused is None


def test_the_process_captures_what_comes_while_it_works_and_is_alone(vault_root: Path) -> None:
    memory = opened(vault_root, "apply")
    count = 12 if speed.is_all else 4
    for number in range(count):
        memory.sessions.add("t", "user", f"We decided to use the tool{number}.")
        memory.service.start_background("t")
    until(lambda: not memory.capture.due("t"))
    assert len(memory.show("notes/decisions.md").text.splitlines()) == count


@pytest.mark.parametrize("given", [{}, {"session_key": 5}, {"session_key": "none"}])
def test_the_process_does_nothing_for_no_session(vault_root: Path, given: dict[str, Any]) -> None:
    memory = opened(vault_root, "apply")
    assert "Traceback" not in hook(memory, "background", given)
    assert memory.ls() == []


# -- with a model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_named", [True, False])
def test_a_hook_asks_a_model_only_where_the_config_of_the_user_names_one(
    vault_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_named: bool
) -> None:
    quotes = [(3, SAID[2]), (3, "The spare key lies under the bed.")]
    found = [{"message": number, "kind": "fact", "quote": quote} for number, quote in quotes]
    answer, mark = tmp_path / "answer.json", tmp_path / "asked"
    answer.write_text(json.dumps({"candidates": found}))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if is_named:
        os.makedirs(config_folder())
        script = f"cat >> {shlex.quote(str(mark))}; cat {shlex.quote(str(answer))}"
        with open(config_folder("config.toml"), "w", encoding="utf-8") as file:
            file.write(f"model = {json.dumps(f'/bin/sh -c {shlex.quote(script)}')}\n")
    memory = opened(vault_root, "inbox")
    say(memory, KEYS[False])
    hook(memory, "stop", {})
    until(lambda: not memory.capture.due(KEYS[False]))
    stated = [each.arguments["text"] for each in memory.inbox.list()]
    assert mark.exists() == is_named
    assert any("under the mat" in text for text in stated) == is_named
    assert not any("under the bed" in text for text in stated), "which no message says"


# -- outputs of tools ---------------------------------------------------------------------------------------

ANSWERS = {
    "Bash": {"stdout": LONG, "stderr": "", "interrupted": False, "isImage": False},
    "Read": {"type": "text", "file": {"filePath": "/x.py", "content": LONG, "numLines": 200}},
    "Grep": {"mode": "content", "filenames": [], "numFiles": 0, "content": LONG},
    "Glob": {"filenames": LONG.splitlines(), "durationMs": 1, "numFiles": 200},
    "WebFetch": {"bytes": 9, "code": 200, "result": LONG, "url": "https://example.org"},
    "Task": {"status": "completed", "content": [{"type": "text", "text": LONG}]},
    "mcp__other__ask": [{"type": "text", "text": LONG}, {"type": "image", "data": "A" * 5_000}],
    "shell": LONG,
}


@both
@pytest.mark.parametrize("tool", ANSWERS)
def test_a_hook_captures_a_long_output_of_a_tool_and_every_byte_comes_back(
    vault_root: Path, tool: str, *, codex: bool
) -> None:
    memory = opened(vault_root, "inbox")
    given = {"tool_name": tool, "tool_input": {}, "tool_response": ANSWERS[tool]}
    assert hook(memory, "post-tool", given, codex=codex) == ""
    (found,) = memory.results.list()
    assert (found.tool, found.session) == (tool, KEYS[codex])
    assert memory.results.recover(found.hash).decode().strip() == LONG.strip()


def test_of_an_output_in_no_known_form_a_hook_captures_the_json(vault_root: Path) -> None:
    memory = opened(vault_root, "inbox")
    answer = {"rows": [[number] * 10 for number in range(200)]}
    hook(memory, "post-tool", {"tool_name": "mcp__db__ask", "tool_response": answer})
    (found,) = memory.results.list()
    assert json.loads(memory.results.recover(found.hash)) == answer


@pytest.mark.parametrize(
    "given",
    [
        {"tool_name": "Bash", "tool_response": "short"},
        {"tool_name": "mcp__mdmem__show", "tool_response": LONG},
        {"tool_name": "Bash", "tool_response": LONG, "session_id": ""},
        {"tool_name": "Bash", "tool_response": LONG, "session_id": "heartbeat"},
        {"tool_name": 5, "tool_response": LONG},
        {"tool_name": "Bash"},
        {},
    ],
)
def test_no_hook_captures_what_is_short_or_our_own_or_ignored(
    vault_root: Path, given: dict[str, Any]
) -> None:
    memory = opened(vault_root, "inbox")
    config = vault_root / ".mdmem/config.toml"
    config.write_text(f'{config.read_text()}[sessions]\nignored = ["**:heartbeat"]\n')
    assert "Traceback" not in hook(memory, "post-tool", given)
    assert memory.results.list() == []


@both
@neither
def test_no_hook_captures_an_output_without_consent_or_without_a_policy(
    vault_root: Path, policy: str, *, is_allowed: bool, codex: bool
) -> None:
    memory = opened(vault_root, policy, is_allowed=is_allowed)
    hook(memory, "post-tool", {"tool_name": "Bash", "tool_response": ANSWERS["Bash"]}, codex=codex)
    assert memory.results.list() == []


# -- what is installed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "is_there"), [("off", False), ("inbox", True), ("apply", True)])
@pytest.mark.parametrize(("host", "file"), [("claude-code", ".claude/settings.json"), ("codex", ".codex")])
def test_install_puts_in_the_hook_that_captures_outputs_where_the_config_asks(
    vault_root: Path, monkeypatch: pytest.MonkeyPatch, host: str, file: str, policy: str, *, is_there: bool
) -> None:
    opened(vault_root, policy)
    subprocess.run(["git", "init", "-q", str(vault_root.parent)], check=True)
    monkeypatch.chdir(vault_root.parent)
    out, _ = run("--vault", str(vault_root), "install", host, "--dry-run")
    assert file in out
    assert ("hook post-tool" in out) == is_there
