"""Draw the rooms of the code, and how many modules of each import which others.

bench/rooms.py            draws docs/rooms.svg
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

PICTURE = Path(__file__).parents[1] / "docs" / "rooms.svg"
ROOMS = {
    "cli": "the command line",
    "web": "the review page",
    "editor": "the language server",
    "serve": "MCP, and adapters for agents",
    "facade": "Memory, and the questions",
    "hosts": "the files of coding tools",
    "review": "memories in git, by fact",
    "conversations": "logs, prompts, capture, results",
    "memory": "kinds, verbs, inbox",
    "index": "search, links, cited code",
    "git": "the git program",
    "vault": "files, plans, schemas, stores",
    "document": "one memory as text",
}
"""Each room with its subject, the uppermost first."""
_NAME, _CELL, _TOP, _WIDTH = 360, 34, 100, 820


def count_imports() -> Counter[tuple[str, str]]:
    """Count the modules of each room that import any of another one, types included."""
    graph = grimp.build_graph("mdmem")
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        room = module.removeprefix("mdmem.").partition(".")[0]
        others = {
            other.removeprefix("mdmem.").partition(".")[0]
            for other in graph.find_modules_directly_imported_by(module)
        }
        found.update((room, other) for other in others - {room} if {room, other} <= ROOMS.keys())
    return found


def draw_rooms() -> str:
    """Return the picture: a row for each room, and in it how many of its modules import each other room."""
    found = count_imports()
    rooms = [room for room in ROOMS if (Path(__file__).parents[1] / "mdmem" / room).is_dir()]
    height = _TOP + _CELL * len(rooms) + 10
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" role="img">',
        "<title>The rooms, and how many modules of each import modules of the rooms below it</title>",
        "<style>text { font: 14px sans-serif; fill: #24292f } .quiet { fill: #57606a }",
        ".box { fill: #f8f8f8; stroke: #d0d7de } .cell { fill: #dbe9f9 } .up { fill: #f3c6c6 }",
        "@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .quiet { fill: #9198a1 }",
        ".box { fill: #161b22; stroke: #30363d } .cell { fill: #1f3b5c } .up { fill: #6b2b2b } }</style>",
    ]
    for place, room in enumerate(rooms):
        x, y = _NAME + _CELL * place, _TOP + _CELL * place
        parts.append(f'<text transform="translate({x + 22} {_TOP - 8}) rotate(-55)">{room}</text>')
        parts.append(f'<rect class="box" x="1" y="{y}" width="{_NAME - 10}" height="{_CELL - 4}" rx="4"/>')
        parts.append(f'<text x="12" y="{y + 20}">{room}</text>')
        parts.append(f'<text class="quiet" x="128" y="{y + 20}">{escape(ROOMS[room])}</text>')
        for column, other in enumerate(rooms):
            if count := found[room, other]:
                side, kind, size = _NAME + _CELL * column, "cell" if column > place else "up", _CELL - 4
                parts.append(
                    f'<rect class="{kind}" x="{side}" y="{y}" width="{size}" height="{size}" rx="4"/>'
                )
                middle = side + size // 2
                parts.append(f'<text x="{middle}" y="{y + 20}" text-anchor="middle">{count}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw_rooms(), encoding="utf-8")
