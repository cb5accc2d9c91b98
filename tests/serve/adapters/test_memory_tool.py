"""The memory tool: names, the wall, the documentation's words, and what the SDK's tool gets wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem.errors import ToolRefused
from mdmem.serve.adapters.memory_tool import Tool


@pytest.fixture
def tool(memory: mdmem.Memory) -> Tool:
    return Tool(memory)


def refused(tool: Tool, **command: Any) -> str:
    with pytest.raises(ToolRefused) as caught:
        tool.call(command)
    return caught.value.words


def put(memory: mdmem.Memory, path: str, data: bytes) -> Path:
    file = Path(memory.vault.root, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


# ------------------------------------------------------------------------------- what the SDK gets wrong


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories//", "/memories/."])
def test_the_whole_memory_is_never_deleted_or_renamed(memory: mdmem.Memory, tool: Tool, path: str) -> None:
    put(memory, "a.md", b"one\n")
    assert refused(tool, command="delete", path=path) == "Cannot delete the /memories directory itself"
    renamed = refused(tool, command="rename", old_path=path, new_path="/memories/b")
    assert renamed == "Cannot rename the /memories directory itself"
    assert memory.show("a.md").text == "one\n"


def test_a_path_that_only_begins_like_the_folder_is_outside(memory: mdmem.Memory, tool: Tool) -> None:
    words = refused(tool, command="create", path="/memoriesfoo.md", file_text="x")
    assert words == "Path must start with /memories, got: /memoriesfoo.md"
    assert memory.ls() == []


def test_line_ends_form_feeds_and_separators_stay(memory: mdmem.Memory, tool: Tool) -> None:
    file = put(memory, "a.md", "one\r\ntwo\x0c\u2028three\r\n".encode())
    tool.str_replace("/memories/a.md", "one", "1")
    tool.insert("/memories/a.md", 1, "new")
    assert file.read_bytes() == "1\r\nnew\r\ntwo\x0c\u2028three\r\n".encode()


def test_no_path_of_the_machine_reaches_the_model(memory: mdmem.Memory, tool: Tool, tmp_path: Path) -> None:
    put(memory, "a.md", b"one\n")
    put(memory, "bytes.md", b"\xff\xfe")
    Path(memory.vault.root, "link.md").symlink_to(tmp_path / "elsewhere")
    commands: list[dict[str, Any]] = [
        {"command": "create", "path": "/memories/a.md/b.md", "file_text": "x"},
        {"command": "view", "path": "/memories/a.md/b.md"},
        {"command": "view", "path": "/memories/bytes.md"},
        {"command": "view", "path": "/memories/link.md"},
        {"command": "delete", "path": "/memories/link.md"},
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories"},
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/a.md/b.md"},
    ]
    for command in commands:
        assert str(tmp_path) not in refused(tool, **command)


def test_an_empty_or_overlapping_text_is_refused(memory: mdmem.Memory, tool: Tool) -> None:
    file = put(memory, "a.md", b"aaa\n")
    words = refused(tool, command="str_replace", path="/memories/a.md", old_str="aa", new_str="b")
    assert words.startswith(
        "No replacement was performed. Multiple occurrences of old_str `aa` in lines: 1, 1."
    )
    assert "empty" in refused(tool, command="str_replace", path="/memories/a.md", old_str="", new_str="b")
    assert file.read_bytes() == b"aaa\n"


def test_a_missing_replacement_deletes(memory: mdmem.Memory, tool: Tool) -> None:
    file = put(memory, "a.md", b"one two\n")
    tool.call({"command": "str_replace", "path": "/memories/a.md", "old_str": " two"})
    assert file.read_bytes() == b"one\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"command": "polish"}, "Unknown command: polish."),
        ({"command": None}, "Unknown command: None."),
        ({"command": ["view"]}, "Unknown command"),
        ({"command": "view"}, "The parameter `path` is required for the command `view`."),
        ({"command": "view", "path": 3}, "The parameter `path` of the command `view` has the wrong type."),
        (
            {"command": "insert", "path": "/memories/a.md", "insert_line": True, "insert_text": "x"},
            "The parameter `insert_line`",
        ),
    ],
)
def test_what_is_no_command_is_refused(tool: Tool, command: dict[str, Any], words: str) -> None:
    assert refused(tool, **command).startswith(words)


# ------------------------------------------------------------------------------------- the vault behind it


def test_a_schema_holds_and_its_findings_name_the_path_of_the_model(memory: mdmem.Memory, tool: Tool) -> None:
    words = refused(tool, command="create", path="/memories/x.json", file_text="{")
    assert "/memories/x.json:1:2" in words
    assert not Path(memory.vault.root, "x.json").exists()


@pytest.mark.parametrize("name", ["plan.txt", "data.xml", "run.sh"])
def test_a_text_of_another_suffix_is_kept_as_markdown_under_the_name_that_the_model_knows(
    memory: mdmem.Memory, tool: Tool, name: str
) -> None:
    path = f"/memories/{name}"
    tool.create(path, "one\n")
    assert [each.path for each in memory.ls()] == [f"{name}.md"]
    assert tool.view("/memories").endswith(f"4B\t{path}")
    assert tool.view(path).endswith("     1\tone\n     2\t")
    assert refused(tool, command="create", path=path, file_text="") == f"File {path} already exists"
    tool.rename(path, "/memories/b.md")
    tool.rename("/memories/b.md", path)
    tool.delete(path)
    assert memory.ls() == []


def test_links_follow_a_rename(memory: mdmem.Memory, tool: Tool) -> None:
    put(memory, "a.md", b"See [[b]].\n")
    put(memory, "b.md", b"B.\n")
    tool.rename("/memories/b.md", "/memories/d/c.md")
    assert memory.show("a.md").text == "See [[c]].\n"


def test_the_namespace_is_a_wall(memory: mdmem.Memory) -> None:
    bob = mdmem.open(memory.vault.root, mdmem.Scope(user="bob"))
    bob.write("secret.md", "s\n")
    alice = Tool(mdmem.open(memory.vault.root, mdmem.Scope(user="alice")))
    for path in (
        "/memories/../bob/secret.md",
        "/memories/%2e%2e/bob/secret.md",
        "/memories/..\\bob\\secret.md",
    ):
        words = refused(alice, command="view", path=path)
        assert words == f"Path {path} would escape /memories directory"
    assert "does not exist" in refused(alice, command="view", path="/memories/users/bob/secret.md")
    alice.create("/memories/mine.md", "m\n")
    assert Path(memory.vault.root, "users/alice/mine.md").read_text() == "m\n"
    assert alice.clear() == "All memory cleared"
    assert bob.show("secret.md").text == "s\n"


def test_a_change_is_in_the_history(memory: mdmem.Memory, tool: Tool) -> None:
    tool.create("/memories/a.md", "one\n")
    tool.str_replace("/memories/a.md", "one", "two")
    memory.undo()
    assert memory.show("a.md").text == "one\n"


def test_a_long_listing_says_how_many_it_leaves_out(memory: mdmem.Memory, tool: Tool) -> None:
    for number in range(1_004):
        put(memory, f"{number}.md", b"")
    lines = tool.view("/memories").splitlines()
    assert len(lines) == 2 + 1_000 + 1
    assert lines[-1] == "(4 more are left out: view one of the directories)"


def test_what_only_the_program_can_do_the_user_is_to_be_told(memory: mdmem.Memory) -> None:
    schemas = Path(memory.vault.root) / ".mdmem/schemas"
    schemas.mkdir()
    (schemas / "memory.json").write_text('{"type": "nonsense"}')
    told = refused(Tool(memory), command="create", path="/memories/a.md", file_text="---\na: 1\n---\n")
    assert "`mdmem schema check` (tell the user to run it)" in told


def test_a_refused_secret_is_not_repeated_nor_how_it_would_pass(tool: Tool) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    for path, text in (("/memories/a.md", secret), (f"/memories/{secret}.md", "x")):
        words = refused(tool, command="create", path=path, file_text=text)
        assert "looks like" in words
        assert not any(way in words for way in ("allow", "config.toml", secret))
