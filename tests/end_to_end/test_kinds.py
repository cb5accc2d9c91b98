"""A kind that a vault declares is made, checked, listed, remembered and shown like the built-in ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mdmem.kind import KINDS
from tests.end_to_end.shell import run_program
from tests.facade.test_kinds import PANCAKES, vault
from tests.serve.mcp.conftest import on_stdio, run


def mdmem(root: str, *arguments: str, code: int = 0) -> str:
    done = run_program(["--vault", root, *arguments], "", Path.cwd(), os.environ)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_vault_has_dishes_from_the_command_line_and_over_mcp(tmp_path: Path) -> None:
    root = vault(tmp_path).vault.root

    mdmem(root, "new", "dish", "pancakes", "--var", "serves=4", "--var", "title=Pancakes")
    assert mdmem(root, "show", "dishes/pancakes.md").startswith(PANCAKES)
    assert "missing variable: serves" in mdmem(root, "new", "dish", "waffles", code=2)
    assert "serves" in mdmem(root, "write", "dishes/waffles.md", "# Waffles", code=2)
    (tmp_path / "memories/dishes/broken.md").write_text("# Broken\n", encoding="utf-8")
    assert "dishes/broken.md" in mdmem(root, "check", code=1)

    async def remembered() -> tuple[Any, ...]:
        async with on_stdio(tmp_path / "memories", "--structured") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            given = {"kind": "dish", "name": "waffles", "value": {"serves": 2, "title": "Waffles"}}
            made = await client.call_tool("remember", given)
            refused = await client.call_tool("remember", {"kind": "idea", "name": "a", "value": "b"})
            return tools["remember"], made, refused

    tool, made, refused = run(remembered)
    built_in = sorted(kind.name for kind in KINDS if kind.is_remembered)
    assert tool.input_schema["properties"]["kind"]["enum"] == [*built_in, "dish"]
    assert "dish: a text adds a section" in tool.description
    assert not made.is_error
    assert "dish" in refused.structured_content["error"]["hint"]

    (tmp_path / "memories/dishes/broken.md").unlink()
    assert mdmem(root, "check") == ""
    listed = map(json.loads, mdmem(root, "ls", "--where", "type=dish", "--json").splitlines())
    assert [each["path"] for each in listed] == ["dishes/pancakes.md", "dishes/waffles.md"]
    parts = json.loads(mdmem(root, "context", "--json"))["parts"]
    assert [(part["title"], part["places"]) for part in parts] == [
        ("Dishes", ["dishes/pancakes.md#L6", "dishes/waffles.md#L6"])
    ]
