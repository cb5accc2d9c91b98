"""No command passes a control or a character that cannot be seen from a memory, or a name, to a terminal."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import mdmem
from mdmem.cli.main import app
from tests import speed

WORKER = Path(__file__).with_name("terminal_worker.py")
ESCAPE, CSI, BIDI, ZERO = "\x1b]0;title\x07\x1b[8m", "\x9b8m", "\u202e", "\u200b"
BAD = f"{ESCAPE}{CSI}{BIDI}{ZERO}\x08\r!"
NAME = f"evil{BIDI}{ZERO}"
NOTE = f"notes/{NAME}.md"
PROPOSED = f"p{BIDI}"
# What the program itself may say to a terminal: colours, and how far it is.
OWN = re.compile(r"\x1b\[(?:3[12356]|0)m|\r\n|\r(?:[a-z]+[ ,][^\x00-\x1f]*)?\x1b\[K")
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")

TEXT = f"""---
title: "T {json.dumps(BAD)[1:-1]}"
tags: ["tag{BIDI}x"]
id: "id{BIDI}"
---

# Heading {BAD[:-3]}

A needle {BAD[:-3]}, [[nowhere{BIDI}]], `gone{BIDI}.py:3`, [[{NAME}]] and https://a.example/{BIDI} #tag{BIDI}y
"""

PRINTED = f"{BAD} src/{NAME}.py:3 {BAD} https://a.example/{BIDI}\n" * 100

# Every command that prints, with what makes it print text of memories, names, or arguments.
COMMANDS: dict[str, list[list[str]]] = {
    "sessions append": [["t", "user", f"said{BAD}"], ["t", "user", f"more{BAD}"]],
    **{f"sessions {name}": [["t"]] for name in ("history", "check", "compact")},
    "sessions list": [[]],
    "sessions allow-capture": [["--off"]],
    "sessions assemble": [["t", "1000"]],
    "sessions expand": [["t", "1"]],
    **{f"sessions {name}": [["said", "t"], [f"none{BAD}", "t"]] for name in ("grep", "search")},
    **{f"sessions {name}": [["t"]] for name in ("summarize", "keep")},
    "sessions summaries": [[]],
    "sessions capture": [["t", "--policy", "inbox", "--dry-run"], ["t", "--policy", BAD]],
    "inbox propose": [
        ["write", '{"path": "notes/x.md", "content": "\\u202e"}', "--reason", BAD],
        [BAD, "{}"],
    ],
    "inbox list": [[]],
    "git install": [["--dry-run"]],
    "git log": [[], [NOTE], [BAD]],
    "git diff": [[], [BAD], ["--in", NOTE]],
    "git blame": [[NOTE], [BAD]],
    "git review": [[], [NOTE], [BAD]],
    "git commit": [["--dry-run"], ["--only", BAD]],
    "git revert": [[f"{NOTE}:{BIDI}"], ["HEAD", "--dry-run"], [BAD]],
    "git allow": [["commit"], ["hooks"]],
    "git merge-driver": [[BAD, BAD, BAD, "7", BAD]],
    "git uninstall": [["--dry-run"]],
    "inbox show": [[PROPOSED], [f"none{BAD}"]],
    "inbox accept": [[PROPOSED, "--dry-run"], [f"none{BAD}"]],
    "inbox reject": [[PROPOSED, "--dry-run"]],
    "inbox sweep": [["--dry-run"]],
    "sessions observe": [["t"], ["--all"], [BAD]],
    **{f"sessions {name}": [["t"]] for name in ("reflect", "observations")},
    "sessions observed": [[f"t/0-1-1{BAD}"], ["t/0-1-1"]],
    "sessions delete-observations": [["--session", "t"], [f"t/0-1-1{BAD}"]],
    "sessions import": [["openai-messages", f"/nowhere{BAD}"]],
    **{f"sessions {name}": [["t"]] for name in ("clear", "vacuum", "rm", "restore")},
    "results compress": [["../printed", "--tool", BAD, "--session", BAD], [BAD, "--tool", BAD]],
    **{f"results {name}": [[]] for name in ("list", "references")},
    "results recover": [[hashlib.sha256(PRINTED.encode()).hexdigest()], [BAD]],
    "results sweep": [["--max-age", "0"]],
    "append": [[NOTE, "x", "--dry-run"], [NOTE, "x", "--base", "0" * 8], ["notes/pic\x1b[31m.md", "x"]],
    "backlinks": [[NOTE]],
    "check": [[], ["--format", "github"], ["--json"], [f"nowhere{BAD}"]],
    "completion": [["bash"], [BAD]],
    "confirm": [[NOTE, "--source", BAD, "--dry-run"]],
    "why": [[NOTE]],
    "past": [["2999-01-01"], [BAD]],
    "revoke": [[BAD]],
    "prune": [["--dry-run"]],
    "duplicates": [[], [NOTE]],
    "consolidate": [["--dry-run"], ["--strategy", BAD]],
    "merge": [[NOTE, f"nowhere{BAD}.md", "--into", NOTE]],
    "quality": [[]],
    "access": [[], [NOTE]],
    "share": [[NOTE, BAD, "read"], [NOTE, "bob", BAD]],
    "unshare": [[NOTE, BAD]],
    "store init": [[BAD]],
    "store sweep": [[]],
    "store copy": [[BAD, f"{BAD}-copy"]],
    "store put": [[BAD]],
    "store check": [[]],
    "store erase": [[BAD, "--yes"]],
    "token new": [["--name", BAD], ["--name", BAD, "--expires", BAD]],
    "report": [[], ["--since", BAD]],
    **{name: [[NOTE, f"nowhere{BAD}.md"], [NOTE, NOTE, "--at", BAD]] for name in ("contradict", "supersede")},
    "reinstate": [[NOTE, "--dry-run"]],
    "context": [["needle", "--thread", "t"]],
    "delete-lines": [[NOTE, "1", "--dry-run"], [NOTE, BAD]],
    "diff": [[NOTE], [NOTE, "--json"]],
    "doctor": [[]],
    "edit": [[NOTE, "--json"], [f"a{BAD}.md"]],
    "graph": [[], ["--format", "mermaid"]],
    "grep": [["needle"], ["needle", "-C", "5", "--json"], ["(" + BAD, "--regex"]],
    "help": [[], ["json"], [BAD]],
    "history": [[], ["--json"]],
    "hook": [["session-start"], [BAD]],
    "import": [["obsidian", f"/nowhere{BAD}"]],
    "index": [["--rebuild"]],
    "init": [["../more", "--dry-run"]],
    "insert": [[NOTE, "0", "x", "--dry-run"]],
    "install": [[BAD]],
    "ls": [[], ["--where", "title"], ["--json"], ["--long"], ["--tree"], [BAD]],
    "lsp": [[f"--no{BAD}"]],
    "mcp": [["--budget", BAD]],
    "mv": [[NOTE, "notes/good.md", "--dry-run"], [f"a{BAD}.md", "b.md"]],
    "new": [["note", NOTE, "--var", "title=x"], [BAD, "x.md"], ["own", "--print"], [BAD, "--print"]],
    "notes append": [[NAME, BAD, "--dry-run"]],
    "notes list": [[]],
    "preferences rm": [["ui", BAD]],
    "preferences show": [["ui", "theme"]],
    "preferences list": [[]],
    "preferences set": [["ui", "theme", BAD, "--dry-run"]],
    "preferences sweep": [["--dry-run"]],
    "prepend": [[NOTE, BAD, "--dry-run"]],
    "project append": [["Decisions", f"- {BIDI}", "--dry-run"]],
    "project summary": [[]],
    "project sync": [["--dry-run"]],
    "refs": [[], ["--json"], [f"gone{BIDI}.py"], ["--stats"]],
    "replace": [
        [NOTE, "needle", BAD, "--dry-run"],
        [NOTE, BAD, "x"],
        ["--in", "notes", "--all", "needle", "pin"],
    ],
    "remember": [[BAD, "--dry-run"], [BAD, "--kind", BAD], [BAD, "--name", NAME, "--dry-run"]],
    "restore": [[NOTE]],
    "rm": [[NOTE, "--dry-run"]],
    "rules new": [["style", BAD, "--glob", BIDI, "--dry-run"], [f"rule{BIDI}", "x"]],
    "rules list": [[]],
    "rules text": [[]],
    "schema check": [[]],
    "schema list": [[]],
    "schema show": [["own"], [BAD]],
    "search": [["needle"], ["needle", "--explain", "--json"]],
    "section": [[NOTE, BAD, "text"], [NOTE, "Heading", BAD, "--append", "--dry-run"]],
    "set": [[NOTE, f"title={BAD}", "--dry-run"], [NOTE, BAD]],
    "show": [[NOTE], [NOTE, "--number"], [NOTE, "--json"], [f"notes/evi{BAD}.md"]],
    "stats": [[]],
    "status": [[], ["--json"]],
    "tags": [[]],
    "template list": [[]],
    "template show": [["own"]],
    "today": [[BAD, "--dry-run"], [BAD, "--dry-run", "--json"]],
    "tool": [[json.dumps({"command": "view", "path": f"/memories/{NOTE}"})]],
    "redo": [["--dry-run"], ["--limit", BAD]],
    "undo": [["--dry-run"], [BAD]],
    "uninstall": [["zed", "--dry-run"]],
    "unset": [[NOTE, "title", "--dry-run"], [NOTE, BAD]],
    "watch": [["--poll-seconds", BAD]],
    "web": [[f"--no{BAD}"]],
    "working clear": [["--thread", "t", "--dry-run"]],
    "working find-and-replace": [["state", BAD, "--thread", "t", "--dry-run"]],
    "working show": [["--thread", "t"]],
    "working list": [[]],
    "working sweep": [["--dry-run"]],
    "working set": [[BAD, "--thread", "t", "--dry-run"]],
    "write": [[NOTE, BAD, "--overwrite", "--dry-run"]],
}


# One at least of each way to print something; each run is a process.
QUICK = {
    *("show", "grep", "search", "ls", "check", "refs", "graph", "diff", "git log", "context", "rules text"),
    *("sessions append", "sessions history", "inbox show", "preferences list", "mv", "replace", "status"),
    *("template show", "schema show", "today"),
}
QUICK_CLOSED = {"show", "grep", "ls", "check", "append", "doctor"}


def leaves(group: click.Group = app, prefix: str = "") -> set[str]:
    found, context = set(), click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found |= leaves(command, f"{prefix}{name} ") if isinstance(command, click.Group) else {prefix + name}
    return found


def on_terminal(root: Path, commands: list[list[str]], *way: str) -> list[tuple[int, str]]:
    command = [sys.executable, str(WORKER), *way]
    given = json.dumps(commands)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MDMEM_")}
    ended = subprocess.run(
        command, input=given, cwd=root, env=env, capture_output=True, text=True, timeout=100, check=True
    )
    found: list[tuple[int, str]] = json.loads(ended.stdout)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A vault of a stranger, who put controls wherever a text or a name can hold them."""
    root = tmp_path / "memories"
    mdmem.init(root)
    (root / ".mdmem/templates").mkdir()
    (root / ".mdmem/templates/own.md").write_bytes(f"{{# own {BAD} #}}\n# Own {BAD}\n".encode())
    (root / ".mdmem/schemas").mkdir()
    schema = {"title": f"Own {BAD}", "type": "object", "propertees": BAD}
    (root / ".mdmem/schemas/own.json").write_text(json.dumps(schema, ensure_ascii=False))
    for path, text in {
        NOTE: TEXT,
        f"notes/{ESCAPE.replace('/', '')}{CSI}.md": "a name that is none\n",
        f"notes/other{BIDI}.md": f"[[{NAME}]] links {BAD}\n",
        "AGENTS.md": f"# Project\n\n## Decisions\n\n- a decision {BAD[:-3]}\n",
        f"rules/rule{BIDI}.md": f"---\nglobs: ['*{BIDI}']\n---\n\n# Rule {BAD}\n\nAlways {BAD}\n",
        "preferences/ui/theme.md": f"---\nvalue: dark{BIDI}\nstrength: 0.9\n---\n\nbecause {BAD}\n",
        f"inbox/{PROPOSED}.md": (
            f"---\ntype: proposal\nreason: because{BIDI}{ZERO}\n---\n\n```json\n"
            f'{{"verb": "append", "arguments": {{"path": "notes/x{BIDI}.md", "text": "{BIDI}"}}}}\n```\n'
        ),
        "working/threads/t.md": f"state {BAD}\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    (tmp_path / "printed").write_bytes(PRINTED.encode())
    memory = mdmem.open(root, actor=f"somebody{BAD}")
    memory.append(NOTE, "one more")
    for words in (
        ("init",),
        ("add", "."),
        ("commit", "--message", f"said {BAD}\n\nMdmem-Agent: agent{BIDI}"),
    ):
        who = ("-c", f"user.name=A {BIDI}", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)
    (root / NOTE).write_bytes(TEXT.encode() + f"\nNot yet committed {BIDI}.\n".encode())
    return root


def test_every_command_shows_what_it_prints(root: Path) -> None:
    assert leaves() == COMMANDS.keys()
    chosen = COMMANDS if speed.is_all else QUICK
    commands = [[*name.split(), *rest] for name, runs in COMMANDS.items() for rest in runs if name in chosen]
    ends = on_terminal(root, commands)
    for command, (code, seen) in zip(commands, ends, strict=True):
        assert code in {0, 1, 2, 130}, (command, seen)  # 130: a question that nobody answers
        assert "Traceback" not in seen, (command, seen)
        left = FORBIDDEN.findall(OWN.sub("", seen).replace("^D\x08\x08", ""))
        assert not left, (command, left, seen)
    assert sum("<U+202E>" in seen for _, seen in ends) > len(ends) * 0.4


def test_no_command_complains_of_a_reader_that_is_gone(root: Path) -> None:
    chosen = COMMANDS if speed.is_all else QUICK_CLOSED
    commands = [[*name.split(), *runs[0]] for name, runs in COMMANDS.items() if name in chosen]
    for command, (code, seen) in zip(commands, on_terminal(root, commands, "closed"), strict=True):
        assert code in {0, 1, 2}, (command, seen)
        assert "Traceback" not in seen, (command, seen)
        assert "Broken pipe" not in seen, (command, seen)
        assert "Exception ignored" not in seen, (command, seen)


def test_the_exact_bytes_are_there_in_a_pipe(root: Path) -> None:
    data = (root / NOTE).read_bytes()
    ((_, shown),) = on_terminal(root, [["show", NOTE]])
    assert "A needle <U+001B>]0;title<U+0007><U+001B>[8m<U+009B>8m<U+202E><U+200B>" in shown
    piped: Any = subprocess.run(
        [sys.executable, "-m", "mdmem", "show", NOTE],
        cwd=root,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert piped.stdout == data


def test_only_the_output_layer_writes_to_a_stream() -> None:
    """What goes around the streams goes around what shows it."""
    folder = Path(mdmem.__file__).parent / "cli"
    for file in folder.glob("*.py"):
        around = re.findall(
            r"(?:stdout|stderr)\.buffer|os\.write|__stdout__|echo_via_pager", file.read_text()
        )
        # Two functions there print bytes to what is no terminal, and to a pager what was made visible.
        assert around == (["echo_via_pager", "stdout.buffer"] if file.name == "render.py" else []), file


@pytest.mark.parametrize("closed", speed.soak_most(["<&-", ">&-", "2>&-", "<&- >&- 2>&-"], quick=(3,)))
def test_a_closed_stream_is_an_empty_one(root: Path, closed: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m mdmem append notes/new.md text {closed}"
    assert subprocess.run(["sh", "-c", command], cwd=root, check=False, timeout=60).returncode == 0
    assert (root / "notes/new.md").read_text() == "text\n"
