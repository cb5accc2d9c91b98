"""Draw the README's picture of a terminal from what commands print.

bench/picture.py            draws it, where it shows something else than the one that is there
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from examples import UNSTABLE, WIDTH, Place
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "terminal.svg"
COMMANDS = (
    'mdmem remember "Deploys run from main, at noon." --name deploys --title Deploys',
    'mdmem append notes/team.md "Before lunch: see [[deploys]]."',
    'mdmem search "when do deploys run"',
    "mdmem mv notes/deploys.md notes/releases.md",
    "mdmem undo",
)
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


class ColouredPlace(Place):
    """A place whose terminal has colours."""

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a terminal that shows colours."""
        return {name: value for name, value in super().environ.items() if name != "NO_COLOR"} | {
            "TERM": "xterm"
        }


def draw_terminal() -> str:
    """Return the picture, as SVG: the commands, run one after another in a new vault, and what they print."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as home:
        place = ColouredPlace(Path(home))
        place.run("mdmem init")
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi(place.run(command)))
    return console.export_svg(title="mdmem", theme=_THEME, code_format=_FORMAT, unique_id="terminal")


def drop_unstable(text: str) -> str:
    """Return what a picture shows without what differs from run to run."""
    for pattern, kind in UNSTABLE:
        text = pattern.sub(kind, text)
    return text


if __name__ == "__main__":
    drawn = draw_terminal()
    if not PICTURE.exists() or drop_unstable(drawn) != drop_unstable(PICTURE.read_text(encoding="utf-8")):
        PICTURE.write_text(drawn, encoding="utf-8")
