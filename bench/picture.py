"""Draw the README's picture, which shows in 20 seconds what an agent and a person do with a memory.

bench/picture.py            draws it

Each line is printed by the real hook, the real server or `mdmem`; `agent.py` stands for the agent. Of an
answer of the server the first line is shown. The day and the commit are the same in each drawing. Where the
system asks for less motion, the picture is its last frame.
"""

from __future__ import annotations

import io
import re
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from examples import CHECKOUT, Place
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURE = CHECKOUT / "docs" / "terminal.svg"
SECONDS = 20
WIDTH = 88
STAND_IN = "No agent is run: a script stands for it. Hook, server and review are the real ones."
QUESTION = "When do the backups run?"
CALLS = (
    ("replace", "path=notes/backup.md", "old=at noon", "new=at midnight"),
    ("section", "path=notes/backup.md", "where=append", "text=- A restore takes an hour."),
)
# What differs from run to run, and what the picture shows for it.
_FIXED = (
    (r"\b\d{4}-\d\d-\d\d\b", "2026-11-30"),
    (r"(?<=\[main )[0-9a-f]{8}", "5eed1e55"),
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
# As rich's own, without the font that it would fetch from elsewhere, and with lines that appear in turn.
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
@media (prefers-reduced-motion: no-preference) {{
MOTION
}}
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


class Step(NamedTuple):
    """Lines that appear together, and how many seconds pass until the next ones do."""

    text: Text
    seconds: float


class ColouredPlace(Place):
    """A place whose terminal has colours."""

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a terminal that shows colours."""
        return {name: value for name, value in super().environ.items() if name != "NO_COLOR"} | {
            "TERM": "xterm"
        }

    def ask_agent(self, *words: str) -> str:
        """Let the script that stands for an agent do something, and return what it is given."""
        return self.run(shlex.join(("python", str(CHECKOUT / "bench/agent.py"), *words)))


def play_story() -> Iterator[Step]:
    """Yield what happens: an agent is given a memory, uses and corrects it, and a person rejects a fact."""
    with tempfile.TemporaryDirectory() as home:
        place = ColouredPlace(Path(home))
        for command in (
            "git init --quiet && mdmem init && mdmem install claude-code --yes",
            "mkdir deploy && echo 'OnCalendar=00:00' > deploy/backup.timer",
            "mdmem remember 'Backups run at noon: see deploy/backup.timer.' --name backup --title Backup",
            "mdmem git commit --message Begin",
        ):
            place.run(command)
        yield Step(Text(STAND_IN, "italic"), 1)
        yield _head("A person asks, and a hook gives the agent what memory says")
        yield _typed("ada> ", QUESTION, 1)
        yield _printed(place.ask_agent("UserPromptSubmit", QUESTION), 2.6)
        yield _head("The agent uses it, and corrects it through the MCP server")
        yield _typed("agent$ ", "cat deploy/backup.timer", 0.6)
        yield _printed(place.run("cat deploy/backup.timer"), 1.2)
        for name, *arguments in CALLS:
            yield _typed("agent> ", f"{name} {' '.join(map(_quote, arguments))}", 0.7)
            yield _printed(place.ask_agent(name, *arguments).partition("\n")[0], 0.7)
        yield _head("A person accepts one fact with the key a, and rejects the other with x")
        yield _typed("ada$ ", "mdmem git review", 0.6)
        for question in re.split(r"(?<=\?\] [axc]\n)", place.run("mdmem git review", keys="axc")):
            yield _printed(question, 1.2)
        yield _typed("ada$ ", "cat memories/notes/backup.md", 0.6)
        yield _printed(place.run("cat memories/notes/backup.md"), 0)


def _head(text: str) -> Step:
    return Step(Text(f"\n# {text}", "bold blue"), 0.5)


def _typed(prompt: str, text: str, seconds: float) -> Step:
    return Step(Text.assemble((prompt, "bold green"), (text, "bold")), seconds)


def _printed(text: str, seconds: float) -> Step:
    for pattern, shown in _FIXED:
        text = re.sub(pattern, shown, text)
    return Step(Text.from_ansi(text.removesuffix("\n")), seconds)


def _quote(argument: str) -> str:
    name, _, value = argument.partition("=")
    return f'{name}="{value}"' if " " in value else argument


def draw_picture() -> str:
    """Return the picture, as SVG: all lines, and when each of them appears."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    motion, line, begins = list[str](), 0, 0.0
    for step in play_story():
        console.print(step.text)
        until = line + len(step.text.wrap(console, WIDTH))
        if begins:
            motion += _appear(range(line, until), begins)
        line, begins = until, begins + step.seconds
    assert begins < SECONDS, f"the story takes {begins} seconds"
    drawn = console.export_svg(title="mdmem", theme=_THEME, code_format=_FORMAT, unique_id="terminal")
    return drawn.replace("MOTION", "\n".join(motion))


def _appear(lines: range, begins: float) -> Iterator[str]:
    """Yield the style that hides lines until their time, in each round of the picture."""
    chosen = ", ".join(f'[clip-path="url(#terminal-line-{line})"]' for line in lines)
    name, percent = f"at-{lines.start}", begins / SECONDS * 100
    yield f"{chosen} {{ animation: {name} {SECONDS}s step-end infinite; }}"
    yield f"@keyframes {name} {{ 0% {{ opacity: 0; }} {percent:.1f}% {{ opacity: 1; }} }}"


if __name__ == "__main__":
    PICTURE.write_text(draw_picture(), encoding="utf-8")
