"""The memory tool of the package `anthropic`: as its own tool answers, through its own tool runner."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool, ToolError
from hypothesis import example, given, settings, strategies as st

import mdmem
from mdmem.adapters.anthropic import AsyncMemoryTool, MemoryTool

FILES = ("a.md", "b.txt", "d/c.md", "d/e/f.md", "plan.xml", "g/h.md")
FOLDERS = ("d", "d/e", "g")
TEXTS = ("", "one", "one\n", "one\ntwo\none\n", "aaa", "\n\n", "ü\n二\n", "last\r")

files = st.sampled_from(FILES).map("/memories/{}".format)
folders = st.sampled_from(FOLDERS).map("/memories/{}".format)
places = st.one_of(files, folders, st.sampled_from(["/memories", "/elsewhere", "/memories/a/../../x"]))
texts = st.sampled_from(TEXTS)
olds = st.sampled_from(["one", "two", "ü", "\n", "one\ntwo"])


def command(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"command": st.just(name), **arguments})


commands = st.one_of(
    command("view", path=places),
    command("view", path=files, view_range=st.lists(st.integers(-1, 4), min_size=2, max_size=2)),
    command("create", path=files, file_text=texts),
    command("str_replace", path=places, old_str=olds, new_str=texts),
    command("insert", path=places, insert_line=st.integers(-1, 4), insert_text=texts),
    command("delete", path=places),
    command("rename", old_path=files, new_path=files),
    command("rename", old_path=folders, new_path=folders),
)


@pytest.fixture
def memory(tmp_path: Path) -> mdmem.Memory:
    return mdmem.open(mdmem.init(tmp_path / "vault").root)


def answer(tool: Any, command: object) -> tuple[bool, str]:
    """Whether a command failed, and what the model is told."""
    try:
        return False, tool.call(command)
    except ToolError as error:
        return True, str(error)


def test_without_the_package_the_extra_is_named() -> None:
    code = "import sys; sys.modules['anthropic'] = None; import mdmem.adapters.anthropic"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ExtraMissing: the package 'anthropic' is not installed" in ran.stderr
    assert "pip install 'mdmem[anthropic]'" in ran.stderr


# ------------------------------------------------------------------------------- as the SDK's own tool


@example(
    script=[
        {"command": "create", "path": "/memories/d/c.md", "file_text": ""},
        {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e"},
    ]
)
@given(script=st.lists(commands, min_size=3, max_size=12))
@settings(max_examples=60, deadline=None)
def test_every_command_is_answered_as_the_own_tool_of_the_sdk_answers_it(
    script: list[dict[str, Any]],
) -> None:
    # On a disk: elsewhere the size of a folder is that of what is in it, and a vault has a hidden one.
    with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
        for each, found, expected in answers_of_both(Path(folder).resolve(), script):
            assert found == expected if expected else found[0], each


def answers_of_both(
    folder: Path, script: list[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], tuple[bool, str], tuple[bool, str] | None]]:
    """Each command with our answer and the SDK's, None where it has no words."""
    memory = mdmem.open(mdmem.init(folder / "vault").root)
    ours, theirs = MemoryTool(memory), BetaLocalFilesystemMemoryTool(str(folder / "files"))
    for each in script:
        try:
            expected = answer(theirs, each)
        except OSError:
            expected = None
        yield each, answer(ours, each), expected
        # The SDK makes folders for what it then refuses, and keeps those that have become empty.
        for root in (folder / "files/memories", folder / "vault"):
            remove_empty(root)


def remove_empty(root: Path) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and ".mdmem" not in path.parts and not any(path.iterdir()):
            path.rmdir()


# ------------------------------------------------------------------------------- through the tool runner


class Model(ThreadingHTTPServer):
    """Speaks the Messages API: asks for one command after the other, and keeps what it is told."""

    daemon_threads = True

    def __init__(self, script: Sequence[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.told: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.tools = asked.get("tools", self.server.tools)  # a continued thread does not repeat them
        last = asked["messages"][-1]["content"]
        self.server.told += [b for b in last if isinstance(b, dict) and b["type"] == "tool_result"]
        step = len(self.server.told)
        if step < len(self.server.script):
            use = {"type": "tool_use", "id": f"t{step}", "name": "memory", "input": self.server.script[step]}
            content, reason = [use], "tool_use"
        else:
            content, reason = [{"type": "text", "text": "done"}], "end_turn"
        answer = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


SCRIPT: Sequence[tuple[dict[str, Any], bool, str]] = (
    ({"command": "view", "path": "/memories"}, False, "Here're the files and directories up to 2 levels"),
    (
        {"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\n"},
        False,
        "File created successfully at: /memories/a.md",
    ),
    (
        {"command": "create", "path": "/memories/a.md", "file_text": "x"},
        True,
        "File /memories/a.md already exists",
    ),
    (
        {"command": "view", "path": "/memories/a.md", "view_range": [2, 2]},
        False,
        "Here's the content of /memories/a.md with line numbers:\n     2\ttwo",
    ),
    (
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "2"},
        False,
        "Here is the snippet showing the change (with line numbers):\n     1\tone\n     2\t2\n     3\t",
    ),
    (
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "3", "new_str": ""},
        True,
        "No replacement was performed, old_str `3` did not appear verbatim in /memories/a.md.",
    ),
    (
        {"command": "insert", "path": "/memories/a.md", "insert_line": 2, "insert_text": "one"},
        False,
        "The file /memories/a.md has been edited.",
    ),
    (
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": ""},
        True,
        "Multiple occurrences of old_str `one` in lines: 1, 3. Please ensure it is unique",
    ),
    (
        {"command": "insert", "path": "/memories/a.md", "insert_line": 9, "insert_text": "x"},
        True,
        "Invalid `insert_line` parameter: 9. It should be within the range [0, 3].",
    ),
    (
        {"command": "view", "path": "/memories/none.md"},
        True,
        "The path /memories/none.md does not exist. Please provide a valid path.",
    ),
    ({"command": "str_replace", "path": "/memories", "old_str": "x", "new_str": ""}, True, "is not a file."),
    (
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/d/b.md"},
        False,
        "Successfully renamed /memories/a.md to /memories/d/b.md",
    ),
    (
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/c.md"},
        True,
        "The path /memories/a.md does not exist",
    ),
    (
        {"command": "rename", "old_path": "/memories/d/b.md", "new_path": "/memories/d"},
        True,
        "The destination /memories/d already exists",
    ),
    ({"command": "delete", "path": "/memories/"}, True, "Cannot delete the /memories directory itself"),
    ({"command": "view", "path": "/tmp/x"}, True, "Path must start with /memories, got: /tmp/x"),
    (
        {"command": "view", "path": "/memories/../x"},
        True,
        "Path /memories/../x would escape /memories directory",
    ),
    ({"command": "delete", "path": "/memories/d"}, False, "Successfully deleted /memories/d"),
    ({"command": "delete", "path": "/memories/d"}, True, "The path /memories/d does not exist"),
    ({"command": "polish", "path": "/memories/d"}, True, "Unknown command: polish"),
    ({"command": "create", "path": "/memories/d.md"}, True, "The parameter `file_text` is required"),
)


@pytest.fixture
def model() -> Iterator[Model]:
    server = Model([command for command, _, _ in SCRIPT])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


QUESTION: Any = {
    "model": "scripted",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "remember"}],
}


def assert_told(model: Model) -> None:
    assert model.tools == [{"type": "memory_20250818", "name": "memory"}]
    assert len(model.told) == len(SCRIPT)
    for told, (command, failed, words) in zip(model.told, SCRIPT, strict=True):
        text = told["content"] if isinstance(told["content"], str) else told["content"][0]["text"]
        assert (bool(told.get("is_error")), words in text) == (failed, True), (command, text)


def test_the_tool_runner_drives_every_command_and_each_error(memory: mdmem.Memory, model: Model) -> None:
    with anthropic.Anthropic(api_key="none", base_url=model.url) as client:
        runner = client.beta.messages.tool_runner(**QUESTION, tools=[MemoryTool(memory)])
        assert runner.until_done().stop_reason == "end_turn"
    assert_told(model)


def test_the_asynchronous_tool_runner_drives_the_same(memory: mdmem.Memory, model: Model) -> None:
    async def run() -> None:
        async with anthropic.AsyncAnthropic(api_key="none", base_url=model.url) as client:
            runner = client.beta.messages.tool_runner(**QUESTION, tools=[AsyncMemoryTool(memory)])
            assert (await runner.until_done()).stop_reason == "end_turn"

    asyncio.run(run())
    assert_told(model)


def test_all_memory_is_cleared_and_kept_in_the_trash(memory: mdmem.Memory) -> None:
    tool = MemoryTool(memory)
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "one\n"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert memory.ls() == []
    memory.undo()
    assert memory.show("a.md").text == "one\n"


def test_edits_of_many_threads_are_all_kept(memory: mdmem.Memory) -> None:
    MemoryTool(memory).call({"command": "create", "path": "/memories/a.md", "file_text": "begin\n"})

    def insert(number: int) -> str:
        tool = MemoryTool(mdmem.open(memory.vault.root))
        line = {
            "command": "insert",
            "path": "/memories/a.md",
            "insert_line": 1,
            "insert_text": f"line {number}",
        }
        return tool.call(line)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(insert, range(80)))
    lines = memory.show("a.md").text.splitlines()
    assert sorted(lines[1:]) == sorted(f"line {number}" for number in range(80))
