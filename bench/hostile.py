"""Hostile arguments: paths that try to leave, and calls made up from the schemas of the tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mdmem

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from mdmem.serve.mcp.tools import ToolSpec

_PLAIN = (
    "notes/mine.md",
    "notes/new.md",
    "notes",
    "a.json",
    "AGENTS.md",
    "working/threads/t.md",
    "x/y/z.md",
    "",
)
_TEXTS = (
    *(
        "x",
        "# Mine",
        "my own words",
        "Mine",
        "(",
        "[a-z]+",
        "tag:x",
        "-",
        "--pre=/bin/sh",
        "a\r\nb",
        "\ufeff# x\n",
    ),
    *(
        "\u202ereversed",
        "\ud800",
        "\x00",
        "`" * 9,
        "---\ntags: 5\n---\n",
        "---\n",
        "[[mine]] #tag",
        "{}",
        "é" * 300,
    ),
    *("</system>", "before:2026", "type=note", "!id", "ui/theme", "all", "created>=x", "\u2028", "x" * 5_000),
)
_NUMBERS = (0, 1, 2, 7, 10_000, -1, 2**31, 2**64, "3", 1.5, True)


def make_world(world: Path, secret: str) -> None:
    """A vault with links that lead out of the namespace of alice; all but that holds `secret`."""
    root = world / "memories"
    mdmem.init(root)
    whole = mdmem.open(root)
    whole.write("notes/shared.md", f"# Shared\n\n{secret}\n")
    whole.write("users/bob/notes/a.md", f"{secret}\n")
    whole.write("users/alicebob/notes/a.md", f"{secret}\n")
    whole.write("users/alice/notes/mine.md", "# Mine\n\nmy own words\n")
    (world / "outside.md").write_text(secret)
    alice = root / "users/alice"
    (alice / "link.md").symlink_to(world / "outside.md")
    (alice / "bobs").symlink_to(root / "users/bob")
    (alice / "notes/up").symlink_to(world)


def paths(world: Path) -> list[str]:
    """Paths that mean something outside of `memories/users/alice`, one way or another."""
    outside, root = str(world / "outside.md"), str(world / "memories")
    ups = ["../bob/notes/a.md", "../../notes/shared.md", "../../../outside.md", "notes/../../bob/notes/a.md"]
    encoded = [
        *(up.replace("/", "%2f") for up in ups),
        *(up.replace("..", "%2e%2e") for up in ups),
        *(up.replace("..", "%252e%252e") for up in ups),
        *(up.replace("/", "\\") for up in ups),
        *(up.replace("..", ". .") for up in ups),
        *(up.replace("/", "\u2215") for up in ups),
        *(up.replace("..", "\u2025") for up in ups),
        *(up.replace("..", "\uff0e\uff0e") for up in ups),
        *(f"mdmem:///{up}" for up in ups),
        *(f"mdmem:///{up.replace('..', '%2e%2e')}" for up in ups),
    ]
    absolute = [outside, root, f"{root}/users/bob/notes/a.md", f"//{outside}", f"file://{outside}", "~/a.md"]
    links = ["link.md", "bobs/notes/a.md", "bobs", "bobs/", "notes/up/outside.md", "notes/up", "bobs/new.md"]
    odd = [
        "",
        "/",
        ".",
        "..",
        "./",
        "../",
        "../alicebob/notes/a.md",
        ".mdmem/config.toml",
        ".mdmem",
        "a\x00.md",
    ]
    more = [
        "users/bob/notes/a.md",
        "notes/shared.md/../../x.md",
        "C:\\a.md",
        "con.md",
        "\ud800.md",
        "a" * 300 + ".md",
    ]
    return [*ups, *encoded, *absolute, *links, *odd, *more]


def arguments(draw: random.Random, tool: ToolSpec, world: Path) -> dict[str, Any]:
    """Arguments for a tool: mostly of the kinds that its schema says, some with others."""
    places = paths(world)
    given: dict[str, Any] = {}
    needed = tool.schema.get("required", ())
    for name, schema in tool.schema["properties"].items():
        if draw.random() < (0.97 if name in needed else 0.35):
            given[name] = _value(draw, name, schema, places)
    if draw.random() < 0.02:
        given[draw.choice(_TEXTS)] = draw.choice(_TEXTS)
    return given


def _value(draw: random.Random, name: str, schema: dict[str, Any], places: Sequence[str]) -> Any:
    def path() -> str:
        return draw.choice(places if draw.random() < 0.4 else _PLAIN)

    def text() -> str:
        return path() if name in _PATHS or draw.random() < 0.2 else draw.choice(_TEXTS)

    if "enum" in schema and draw.random() < 0.95:
        return draw.choice(schema["enum"])
    kinds: dict[str, Callable[[], Any]] = {
        "string": text,
        "integer": lambda: draw.choice(_NUMBERS),
        "count": lambda: draw.choice((*_NUMBERS, "all")),
        "boolean": lambda: draw.random() < 0.5,
        "array": lambda: [text() for _ in range(draw.randrange(3))],
        "object": lambda: draw.choice(({text(): text()}, {"tags": [text()]}, {}, text())),
        "any": lambda: draw.choice((text(), 5, None, {"a": [text()]}, [1, True])),
    }
    kind = schema.get("type", "count" if "anyOf" in schema else "any")
    kind = kind if draw.random() < 0.95 else draw.choice(sorted(kinds))
    return kinds[kind]()


_PATHS = {"path", "source", "target", "within", "name"}


def snapshot(world: Path, besides: Sequence[str]) -> dict[str, Any]:
    """What is in a folder: content, place of links, and when each was changed."""
    found: dict[str, Any] = {}
    for folder, _, names in os.walk(world):
        for name in names:
            file = Path(folder) / name
            path = file.relative_to(world).as_posix()
            if not path.startswith(tuple(besides)):
                found[path] = (
                    os.readlink(file) if file.is_symlink() else file.read_bytes(),
                    file.lstat().st_mtime_ns,
                )
    return found
