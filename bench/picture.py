"""Draw the README's picture of a terminal from what commands print: `bench/picture.py [FILE]`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "terminal.svg"
COMMANDS = (
    'mdmem remember "Deploys run from main, at noon" --to deploys',
    'mdmem search "when do we deploy"',
    "mdmem mv notes/deploys.md notes/releases.md",
    "mdmem undo",
)
_WIDTH = 76  # columns
_THEME = TerminalTheme(
    (248, 248, 248),
    (36, 41, 47),
    [
        (36, 41, 47),
        (179, 29, 40),
        (17, 99, 41),
        (149, 56, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (87, 96, 106),
    ],
)
# As rich's own, without the font that it would fetch from elsewhere.
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw_terminal() -> str:
    """Return the picture, as SVG: the commands, run one after another in a new vault, and what they print."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MDMEM_")},
            "CLICOLOR_FORCE": "1",
            "XDG_STATE_HOME": folder,
            "XDG_CACHE_HOME": folder,
            "TERM": "xterm",
        }
        program = f'mdmem() {{ "{sys.executable}" -m mdmem "$@"; }}\n'
        for command in ("mdmem init", *COMMANDS):
            ended = subprocess.run(
                ["/bin/sh", "-c", program + command],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
            )
            if command in COMMANDS:
                console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
                console.print(Text.from_ansi(ended.stdout))
    return console.export_svg(title="mdmem", theme=_THEME, code_format=_FORMAT, unique_id="terminal")


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PICTURE).write_text(draw_terminal(), encoding="utf-8")
