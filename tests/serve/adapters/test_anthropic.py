"""The memory tool of the package `anthropic`: as its own tool answers, through its own tool runner."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool, ToolError
from hypothesis import example, given, settings, strategies as st

import mdmem
from mdmem.errors import ExtraMissing
from mdmem.serve.adapters.anthropic import AsyncMemoryTool, MemoryTool
from mdmem.serve.adapters.memory_tool import _format_size
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


LISTED = re.compile(r"^([\d.]+[BKMG])\t/memories(.*)", re.MULTILINE)


def answer(tool: Any, command: object, root: Path) -> tuple[bool, str]:
    """Whether a command failed, and what the model is told; the sizes of folders are those of that root."""

    def checked(listed: re.Match[str]) -> str:
        folder = root / listed[2].strip("/")
        if not folder.is_dir():
            return listed[0]
        assert listed[1] == _format_size(folder.stat().st_size)
        return listed[2]

    try:
        return False, LISTED.sub(checked, tool.call(command))
    except ToolError as error:
        return True, str(error)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "anthropic"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "mdmem.serve.adapters.anthropic")
    with pytest.raises(ExtraMissing, match="the package 'anthropic' is not installed") as caught:
        importlib.import_module("mdmem.serve.adapters.anthropic")
    assert "pip install '.[anthropic]'" in str(caught.value)


# ------------------------------------------------------------------------------- as the SDK's own tool


@example(
    script=[
        {"command": "create", "path": "/memories/d/c.md", "file_text": ""},
        {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e"},
    ]
)
@given(script=st.lists(commands, min_size=3, max_size=12))
@settings(max_examples=examples(30), deadline=None)
def test_every_command_is_answered_as_the_own_tool_of_the_sdk_answers_it(
    script: list[dict[str, Any]],
) -> None:
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
            expected = answer(theirs, each, folder / "files/memories")
        except OSError:
            expected = None
        yield each, answer(ours, each, folder / "vault"), expected
        # The SDK makes folders for what it then refuses, and keeps those that have become empty.
        for root in (folder / "files/memories", folder / "vault"):
            remove_empty(root)


def remove_empty(root: Path) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and ".mdmem" not in path.parts and not any(path.iterdir()):
            path.rmdir()


# ----------------------------------------------------------- each difference, as docs/memory-tool.md tells it


def view(path: str = "", lines: list[Any] | None = None) -> dict[str, Any]:
    return {"command": "view", "path": f"/memories{path}", "view_range": lines}


def create(path: str, text: str = "x\n") -> dict[str, Any]:
    return {"command": "create", "path": f"/memories{path}", "file_text": text}


def swap(path: str, old: str, new: str | None) -> dict[str, Any]:
    return {"command": "str_replace", "path": f"/memories{path}", "old_str": old, "new_str": new}


def insert(path: str, line: Any, text: str = "x") -> dict[str, Any]:
    return {"command": "insert", "path": f"/memories{path}", "insert_line": line, "insert_text": text}


def delete(path: str) -> dict[str, Any]:
    return {"command": "delete", "path": f"/memories{path}"}


def rename(old: str, new: str) -> dict[str, Any]:
    return {"command": "rename", "old_path": f"/memories{old}", "new_path": f"/memories{new}"}


A = {"a.md": "one\ntwo\nthree\n"}
D = {"d/a.md": "a\n"}
CRLF = {"a.md": "one\r\ntwo\r\n"}
OTHERS = [{"command": "view", "path": path} for path in ("/etc", "memories/a.md", "", "/memorie", "/")]
NOT_PORTABLE = ("con.md", "a?.md", "a:b.md", " a.md")
TREE = {"a/b/c/d.md": "", "a/b/x.md": "x" * 8, "a/y.md": "x" * 1023, "z.md": "x" * 1024, "Z.md": "x" * 1536}
# Each row of the tables: what there is at first (a link begins with `->`), and what is done.
CASES: dict[str, tuple[dict[str, str], list[dict[str, Any]]]] = {
    "`.` and `..` inside": (
        {"sub/b.md": "b\n", "c.md": "c\n"},
        [
            *(view("/sub/.."), view("/sub/../sub/./b.md"), create("/sub/../new.md"), view("/none/../c.md")),
            *(view("/../memories/c.md"), view("/c.md/../c.md"), delete("/sub/.."), rename("/sub/..", "/z")),
            *(swap("/sub/../c.md", "c", "d"), rename("/sub/../c.md", "/sub/./../sub/c.md")),
        ],
    ),
    "`..` out of `/memories`": (
        A,
        [
            *(view("/.."), view("/../../etc/passwd"), create("/sub/../../x.md"), view("/../memories-2")),
            *(view("/a.md/../../a.md"), rename("/a.md", "/../a.md"), delete("/..")),
        ],
    ),
    "double and final slashes": (
        A,
        [view(path) for path in ("/./a.md", "//a.md", "/a.md/", "/", "/.", "//")],
    ),
    "another folder": (A, OTHERS),
    "`/memoriesfoo.md`": ({}, [create("foo.md")]),
    "`%2e%2e`, `..\\`": (
        {},
        [create(path) for path in ("/%2e%2e/x.md", "/sub/%2e%2e/x.md", "/sub\\..\\x.md", "/..\\x.md")],
    ),
    "hidden files and folders": ({".h.md": "h"}, [create("/.x.md"), create("/.git/x.md"), view("/.h.md")]),
    "control characters, long names": (
        {},
        [create("/a\nb.md"), create("/\0.md"), create(f"/{'x' * 300}.md")],
    ),
    "names that are not portable": ({}, [create(f"/{name}") for name in NOT_PORTABLE]),
    "names that differ only in case": (A, [create("/A.md"), rename("/a.md", "/A.md")]),
    "Unicode spelling": ({}, [create("/ü.md"), view("/u\u0308.md")]),
    "symbolic links": (
        {**A, "l.md": "->a.md", "out.md": "->/etc/hostname"},
        [view("/l.md"), view("/out.md"), view(), delete("/l.md"), swap("/l.md", "one", "1")],
    ),
    "a listing": (
        {**TREE, ".h.md": "", "a-b.md": "", "a b/c.md": "", "ü/日本.md": "日本\n"},
        [view(), view("/a"), view("/a/b"), view("/a/b/c"), view("/ü")],
    ),
    "an empty folder": (D, [delete("/d/a.md"), view()]),
    "more than 1,000 entries": ({f"{number}.md": "" for number in range(1_001)}, [view()]),
    "a missing file or folder": (
        {},
        [
            each
            for path in ("/n.md", "/n", "/n/m.md")
            for each in (
                view(path),
                swap(path, "a", "b"),
                insert(path, 0),
                delete(path),
                rename(path, "/m.md"),
            )
        ],
    ),
    "a file where a folder should be, viewed": (
        D,
        [view("/d/a.md/b.md"), swap("/d/a.md/b.md", "a", "b"), insert("/d/a.md/b.md", 0)],
    ),
    "a file where a folder should be, written": (
        D,
        [create("/d/a.md/b.md"), rename("/d/a.md", "/d/a.md/x.md")],
    ),
    "a folder into itself": (D, [rename("/d", "/d/e")]),
    "commands on a folder": (
        D,
        [
            *(swap("/d", "a", "b"), insert("/d", 0), create("/d"), rename("/d/a.md", "/d"), view("/d/")),
            *(swap("", "a", "b"), insert("", 0), rename("/d", "/e"), delete("/e")),
        ],
    ),
    "the folder itself": (A, [delete(""), delete("/"), rename("", "/x"), rename("/a.md", "")]),
    "`create` and `rename` over a file": (
        {**A, "b.md": "b\n"},
        [create("/a.md"), rename("/a.md", "/b.md"), rename("/a.md", "/a.md"), rename("/a.md", "/./a.md")],
    ),
    "`rename` makes folders": ({**A, **D}, [rename("/a.md", "/n/e/w.md"), rename("/d", "/e/f")]),
    "links between memories": ({"a.md": "[b](b.md)\n", "b.md": "b\n"}, [rename("/b.md", "/c.md")]),
    "names such as `plan.txt`": ({}, [create("/plan.txt"), view("/plan.txt"), view()]),
    "names without a known ending": ({}, [create("/plan"), view("/plan"), view()]),
    "`view_range`": (
        A,
        [
            view("/a.md", lines)
            for lines in (
                [1, 2],
                [2, -1],
                [3, 2],
                [0, 1],
                [-5, 2],
                [9, 12],
                [1, 99],
                [1],
                [],
                [1, 2, 3],
                [2, -2],
            )
        ],
    ),
    "numbers written as texts": (A, [insert("/a.md", "1"), view("/a.md", ["1", "2"]), insert("/a.md", 2.0)]),
    "no final newline": ({"a.md": "one"}, [view("/a.md"), insert("/a.md", 1), insert("/a.md", 0, "y\n\n")]),
    "an empty file": (
        {"a.md": "", "b.md": ""},
        [view("/a.md"), insert("/b.md", 1), insert("/a.md", 0), view("/a.md")],
    ),
    "lines for `insert`": (
        A,
        [
            *(insert("/a.md", -1), insert("/a.md", 4), insert("/a.md", 3), insert("/a.md", 0)),
            *(insert("/a.md", 1, ""), insert("/a.md", 1, "a\nb\n\n"), view("/a.md")),
        ],
    ),
    "`insert` at line 0 before frontmatter": (
        {"a.md": "---\ntitle: A\n---\none\n"},
        [insert("/a.md", 0), insert("/a.md", 3), view("/a.md")],
    ),
    "`str_replace` of none or several": (
        {"a.md": "one\ntwo\none one\n"},
        [
            *(swap("/a.md", "one", "x"), swap("/a.md", "zzz", "x"), swap("/a.md", "two", "2")),
            *(swap("/a.md", "2", ""), swap("/a.md", "one\n\none", "q"), swap("/a.md", "q", "q")),
        ],
    ),
    "tabs, form feeds, separators": (
        {"a.md": "a\tb\x0cc\u2028d\re\n"},
        [view("/a.md"), swap("/a.md", "b", "B"), insert("/a.md", 1, "q"), view("/a.md")],
    ),
    "a byte-order mark": (
        {"a.md": "\ufeffone\n"},
        [view("/a.md"), swap("/a.md", "one", "1"), swap("/a.md", "\ufeff", "")],
    ),
    "CRLF in the file, viewed": (CRLF, [view("/a.md"), swap("/a.md", "one", "1")]),
    "CRLF in the file, edited": (CRLF, [insert("/a.md", 1), swap("/a.md", "two\r\n", "2\n3\n")]),
    "occurrences that overlap": ({"a.md": "aaa\n"}, [swap("/a.md", "aa", "b")]),
    "an empty `old_str`": (A, [swap("/a.md", "", "b")]),
    "no `new_str`": (A, [swap("/a.md", "one", None)]),
    "bytes that are not UTF-8": (
        {"a.md": "\udcff"},
        [view("/a.md"), swap("/a.md", "a", "b"), delete("/a.md")],
    ),
    "a lone surrogate": ({}, [create("/a.md", "\ud800")]),
    "a NUL byte": ({}, [create("/a.md", "a\0b\n")]),
    "more than 4 MiB": ({}, [create("/a.md", "x" * (4 * 1024 * 1024 + 1))]),
    "999,999 lines": ({"a.md": "\n" * 999_998}, [view("/a.md", [999_998, -1])]),
    "1,000,000 lines": ({"a.md": "\n" * 999_999}, [view("/a.md", [1, 2])]),
    "JSON and frontmatter that are not valid": (
        {},
        [create("/b.json", "{"), create("/f.md", "---\n: [\n---\n")],
    ),
    "a secret": ({}, [create("/s.md", "ghp_uT3kVb9QzX1mJ7cLrW5nYh2SdG8fPa4EoKiM\n")]),
    "an unknown command or argument type": (
        A,
        [{"command": "polish"}, {}, {"command": "view"}, view("", ["x", 1])],
    ),
    "an argument that nobody knows": (A, [view("/a.md") | {"more": 1}]),
}


def table() -> dict[str, str]:
    """Each row of the tables of docs/memory-tool.md with its verdict."""
    text = (Path(__file__).parents[3] / "docs/memory-tool.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[3] for row in rows if row[0] != "case"}


MODES = {
    "modes under an open umask": (0o000, {0o600}, {0o700}),
    "modes under another umask": (0o022, {0o644}, {0o755}),
}


def test_the_tables_have_a_row_for_each_case_and_no_other() -> None:
    assert table().keys() == CASES.keys() | MODES.keys()


@cases("name", CASES)
def test_a_row_of_the_tables_is_true(name: str, tmp_path: Path) -> None:
    start, commands = CASES[name]
    folder = tmp_path.resolve()
    vault, files = folder / "vault", folder / "files/memories"
    ours, theirs = (
        MemoryTool(mdmem.open(mdmem.init(vault).root)),
        BetaLocalFilesystemMemoryTool(str(files.parent)),
    )
    for root in (vault, files):
        for path, text in start.items():
            place(root / path, text)
    is_same = True
    for command in commands:
        told = answer(ours, command, vault)  # which raises nothing else
        assert str(folder) not in told[1]
        try:
            is_same &= told == answer(theirs, command, files)
        except (OSError, ValueError, TypeError, AttributeError, NotImplementedError):
            is_same = False
    is_same &= everything(vault) == everything(files)
    assert table()[name].startswith("same" if is_same else "wanted: "), name


def place(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith("->"):
        file.symlink_to(text.removeprefix("->"))
    else:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))


def everything(root: Path) -> dict[str, bytes]:
    """The files that a tool keeps there, without what makes a folder a vault."""
    found = {path.relative_to(root): path for path in root.rglob("*") if path.is_file()}
    own = (".mdmem", ".gitignore")
    return {str(name): path.read_bytes() for name, path in found.items() if name.parts[0] not in own}


@pytest.mark.parametrize("name", MODES)
def test_nobody_else_may_write_or_under_an_open_umask_read(name: str, tmp_path: Path) -> None:
    umask, of_files, of_folders = MODES[name]
    script = [create("/d/a.md", "one"), insert("/d/a.md", 1, "two")]
    # Ours asks for the umask as it is imported; of the SDK's class it has nothing that makes files.
    program = (
        f"import json, os, sys; os.umask({umask}); import mdmem;"
        "from mdmem.serve.adapters.memory_tool import Tool;"
        "tool = Tool(mdmem.open(mdmem.init(sys.argv[1]).root));"
        "[tool.call(each) for each in json.loads(sys.argv[2])]"
    )
    given = [str(tmp_path / "vault"), json.dumps(script)]
    subprocess.run([sys.executable, "-c", program, *given], check=True)
    before = os.umask(umask)
    try:
        theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
        assert not any(answer(theirs, each, tmp_path / "files")[0] for each in script)
    finally:
        os.umask(before)
    assert modes(tmp_path / "files/memories") == ({0o600}, {0o700})
    assert modes(tmp_path / "vault") == (of_files, of_folders)
    is_same = (of_files, of_folders) == ({0o600}, {0o700})
    assert table()[name].startswith("same" if is_same else "wanted: ")


def modes(root: Path) -> tuple[set[int], set[int]]:
    found = [root, *root.rglob("*")]
    return tuple(
        {path.stat().st_mode & 0o777 for path in found if path.is_dir() == kind} for kind in (False, True)
    )  # type: ignore[return-value]  # two of them


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
