"""Start-up: `mdmem --version`, beside a click program of 12 commands that do nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from machine import environment, installed
from table import Row, ratio_row
from timing import paired, program

if TYPE_CHECKING:
    from setting import Setting

_MOST = 1.5
_PAIRS = 40
_COMMANDS = 12

_APP = """\
import click


@click.group()
@click.version_option("1.0", "--version")
def app():
    pass
"""
_COMMAND = """

@app.command("command-{0}")
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command_{0}(path, as_json):
    pass
"""


def measure(setting: Setting) -> list[Row]:
    environ = environment()
    ours = program([installed("mdmem"), "--version"], environ)
    theirs = program([sys.executable, write_app(setting.path("click")), "--version"], environ)
    pairs = paired(ours, theirs, setting.count(_PAIRS))
    return [ratio_row("`mdmem --version`, whole process", "click, 12 commands", pairs, _MOST)]


def write_app(folder: str) -> str:
    """The click program: a script that imports its module, as an installed program is; the script's path."""
    os.makedirs(folder)
    with open(os.path.join(folder, "noop.py"), "w", encoding="utf-8") as module:
        module.write(_APP + "".join(map(_COMMAND.format, range(_COMMANDS))))
    script = os.path.join(folder, "script.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write("import sys\nfrom noop import app\n\nsys.exit(app())\n")
    return script
