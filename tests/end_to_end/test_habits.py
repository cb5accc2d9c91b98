"""What people type who know ripgrep, git, ls and sqlite-utils, and what happens: a table, run row by row.

A row is a command line as it is typed in a shell, its exit code, and patterns that are looked for (each line
by itself) in what it prints. A line with a pipe or a redirection is run by a shell, and any other in this
process.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

import mdmem
from mdmem.cli.main import main
from mdmem.facade.memory import open as open_memory
from tests.end_to_end.shell import copy_folder, run_in_shell
from tests.git.conftest import SETTINGS
from tests.programs import needs
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path


class Habit(NamedTuple):
    """What is typed, in which folder of the repository, and what comes of it."""

    typed: str
    code: int = 0
    out: str = ""
    """Is found in what it prints."""
    error: str = ""
    """Is found on standard error; without one, nothing is asked of it."""
    silent: str = ""
    """Is not found in what it prints."""
    folder: str = "."


# ------------------------------------------------------------------------------------------------- paths

PATHS = [
    Habit("mdmem show notes/db.md", out=r"^# Database"),
    Habit("mdmem show memories/notes/db.md", out=r"^# Database"),
    Habit("mdmem show ./memories/notes/db.md", out=r"^# Database"),
    Habit("mdmem show db.md", out=r"^# Database", folder="memories/notes"),
    Habit("mdmem show ../rules/python.md", out=r"^# Python", folder="memories/notes"),
    Habit("mdmem show memories/notes/db.md", out=r"^# Database", folder="src"),
    Habit('mdmem show "$PWD"/memories/notes/db.md | cat', out=r"^# Database"),
    Habit("mdmem show notes/db", out=r"^# Database"),
    Habit("mdmem show db", out=r"^# Database", error="taken as notes/db.md"),
    Habit("mdmem show notes/db.md notes/old.md", out=r"^# Old"),
    Habit("mdmem show nope.md notes notes/old.md | cat", out=r"^# Old", error=r"^mdmem: nope\.md: no such"),
    Habit(
        "mdmem show nope.md notes/db.md notes", code=2, out=r"^# Database", error="^mdmem: 'notes': this is"
    ),
    Habit("mdmem show memories/notes/*.md | cat", out=r"^# Old"),
    Habit("mdmem ls .", out=r"^notes/db\.md$", silent="rules", folder="memories/notes"),
    Habit("mdmem ls ..", out=r"^rules/python\.md$", folder="memories/notes"),
    Habit("mdmem --vault . ls", out=r"^notes/db\.md$"),
    Habit("mdmem append db.md more", out=r"^changed notes/db\.md", folder="memories/notes"),
    Habit(
        "mdmem append AGENTS.md more",
        code=2,
        error=r"use \./AGENTS\.md or \.\./AGENTS\.md",
        folder="memories/notes",
    ),
    Habit("mdmem replace --in . --all SQLite DuckDB", out="DuckDB", folder="memories/notes"),
    Habit(
        "mdmem replace --in . e E",
        code=2,
        error=r"'e' occurs \d+ times, in \d+ memories: [\s\S]*replace them all with --all",
        folder="memories/notes",
    ),
    Habit("mdmem replace --in nots SQLite DuckDB", code=1, error=r"^mdmem: nots: no such folder$"),
    Habit("mdmem mv notes/old.md notes/decisions", out=r"^moved notes/old\.md → notes/decisions/old\.md$"),
    Habit("mdmem mv notes/db.md base.md", out=r"^moved notes/db\.md → base\.md, 1 link rewritten$"),
    Habit("mdmem mv notes/db.md base.md | cat", out=r"^changed notes/old\.md  [0-9a-f]{8}$"),
    Habit(
        "for n in $(seq 12); do echo [[notes/old]] > memories/$n.md; done; mdmem mv notes/old.md notes/x.md",
        out=r"^moved notes/old\.md → notes/x\.md, 12 links rewritten\nchanged 12 memories \(-v names each\)$",
    ),
    Habit(
        "mkdir memories/p; touch memories/p/i.png; for n in $(seq 12); do echo '[a](1.md)' > memories/p/$n.md"
        "; done; mdmem mv p q && mdmem undo && mdmem redo && mdmem undo",
        out=r"^changed 12 memories, and 1 attachment \(-v names each\)$",
        silent="2[0-9] memories",
    ),
    Habit(
        "mdmem mv notes/*.md rules archive/ | cat",
        out=r"^moved rules/python\.md → archive/rules/python",
        folder="memories",
    ),
    Habit("mdmem mv notes/db.md notes/old.md notes/decisions && mdmem check", silent="db'"),
    Habit("mdmem mv notes/db.md notes/old.md nowhere", code=2, error="say nowhere/"),
    Habit("mdmem mv notes/db.md", code=2, error="give SOURCE"),
    Habit(
        "mkdir memories/p; for n in $(seq 11); do echo x > memories/p/$n.png; done; mdmem mv p q",
        out="^changed 11 attachments ",
    ),
    Habit("mdmem show /etc/passwd", code=2, error="not below"),
    Habit("mdmem show ../db.md", folder="memories/notes/decisions", out=r"^# Database"),
    Habit("mdmem show ../../etc/passwd", code=2, silent="root"),
    Habit('mdmem show "$PWD/memories/notes/db.md" | head -1', out=r"^# Database$"),
    Habit("mdmem rm 'notes/*.md'", code=1, error=r"^`mdmem ls --glob 'notes/\*\.md'` lists"),
    Habit(
        "mdmem show page.mdx", code=1, error=r"^name \.mdx in `\[files\] suffixes` of \.mdmem/config\.toml$"
    ),
    Habit("mdmem ls a.markdown", code=1, error=r"^name \.markdown in `\[files\] suffixes`"),
    Habit(
        "mdmem rm one.md two.md; mdmem undo",
        folder="memories/notes/decisions",
        code=2,
        error="^mdmem: the current folder is gone\n`cd` to another folder, or name the vault by its absolute",
    ),
]

# ---------------------------------------------------------------------------------------------- removing

REMOVING = [
    Habit("mdmem rm notes/old.md", out=r"^deleted notes/old\.md"),
    Habit("mdmem rm notes/nothing.md", code=1, error="no such memory"),
    Habit(
        "mkdir memories/pics; touch memories/pics/p.png; mdmem rm -r pics",
        code=2,
        error="^mdmem: pics holds no memory\ndelete other files with your system's `rm`$",
    ),
    Habit(
        "touch memories/notes/p.png; mdmem rm notes/p.png",
        code=2,
        error="^mdmem: notes/p.png holds no memory$",
    ),
    Habit("mdmem rm notes/db.md", out=r"^deleted", error=r"^note: notes/old\.md:3 links to it$"),
    Habit("mdmem rm notes/db.md --dry-run", error=r"^note: notes/old\.md:3 links to it$"),
    Habit(
        "mdmem rm notes/db.md --json | jq -c .dangling",
        out=r'^\[\{"path":"notes/old.md","line":3,"leads_to":""\}\]$',
    ),
    Habit(
        "mdmem append other/db.md '# Other'; mdmem rm notes/db.md",
        error=r"^note: notes/old\.md:3 may have meant it, and leads to other/db\.md now$",
    ),
    Habit("mdmem mv notes/db.md x.md --json | jq .links_rewritten", out="^1$"),
    Habit("mdmem rm -r notes 2>&1", silent="links to"),
    Habit("mdmem rm notes/old.md notes/db.md", out=r"^deleted notes/db\.md"),
    Habit("mdmem rm notes", code=2, error="-r"),
    Habit(
        "echo '[d](decisions/)' > memories/notes/x.md; mdmem mv notes/decisions log; mdmem show notes/x.md",
        out=r"^\[d\]\(\.\./log/\)$",
    ),
    Habit(
        "touch memories/notes/p.png memories/notes/decisions/q.png; mdmem rm -r notes",
        out=r"^deleted notes/db\.md",
        error="^left out: notes: 2 files that are no memories$",
    ),
    Habit("mdmem rm -r notes", out=r"^deleted notes/decisions/two\.md"),
    Habit("mdmem rm --dry-run notes/old.md", out=r"^-# Old$"),
    Habit(
        "mdmem rm notes/old.md && mdmem undo | cat", out=r"^created notes/old\.md", error="undo .*: delete"
    ),
    Habit("mdmem rm -rf notes && mdmem undo -v && mdmem redo | cat", out="^deleted notes/db", error="redo"),
    Habit(
        "mdmem append notes/db.md x && mdmem rm notes/old.md && mdmem undo -n 2", out=r"^created notes/old"
    ),
    Habit(
        "mdmem append notes/db.md xyz && mdmem rm notes/old.md && mdmem undo && mdmem undo"
        " && mdmem show notes/db.md && mdmem show notes/old.md",
        out="^# Old$",
        silent="xyz",
    ),
    Habit(
        "mdmem undo -n 2 && mdmem redo && mdmem append notes/db.md x && mdmem redo", code=1, error="no undo"
    ),
    Habit("mdmem undo nothing", code=1, error="no change 'nothing'"),
    Habit("mdmem undo -n 0", code=2, error="0 is not in the range"),
    Habit("mdmem rm notes/decisions", code=2, error="a folder with 2 memories"),
    Habit("mdmem rm -r notes/decisions", out=r"^deleted notes/decisions/two\.md"),
    Habit("mdmem rm memories/notes/*.md | cat", out=r"^deleted notes/old\.md"),
    Habit("mdmem rm notes/old.md notes/nothing.md", code=1, error="no such memory", silent="deleted"),
]

# ----------------------------------------------------------------------------------------------- finding

FINDING = [
    Habit("mdmem remember 'Walruses rest.' && mdmem grep walrus", out=r"^notes/daily/.*Walruses rest\.$"),
    Habit("echo Walrus | mdmem remember --name zoo && mdmem grep walrus", out=r"^notes/zoo\.md:1:Walrus$"),
    Habit("mdmem remember dark --kind preference", code=2, error="category/key"),
    Habit("mdmem rules new short 'Be short.' && mdmem rules text", out="^Be short.$"),
    Habit(
        "mdmem rules new short 'Be short.' && mdmem supersede rules/python.md rules/short.md"
        " && mdmem --user ada rules text && mdmem --user ada context && mdmem rules list",
        out="Be short",
        silent="Type everything|^ +0  global   python",
    ),
    Habit("mdmem rules new python 'Be short.'", code=2, error="rules/python.md"),
    Habit("mdmem new rule short", out=r"^created rules/short\.md"),
    Habit("mdmem new rule db", out=r"^created rules/db\.md"),
    Habit("mdmem new rule db", out=r"^created rules/db\.md", folder="memories/notes"),
    Habit("mdmem new rule old/db && mdmem new note old/db --var title=x", out=r"^created notes/old/db\.md"),
    Habit("mdmem new note memories/notes/new --var title=x", out=r"^created notes/new\.md"),
    Habit("mdmem new note ./new --var title=x", out=r"^created notes/new\.md", folder="memories/notes"),
    Habit("mdmem new note notes/new --var title=x", out=r"^created notes/new\.md", folder="memories/notes"),
    Habit(
        "mdmem new note db --var title=x",
        code=2,
        error=r"notes/db\.md: already exists\n.*another path",
    ),
    Habit(
        "mdmem new decision notes/db.md --var title=x",
        code=2,
        error="another path, or edit",
    ),
    Habit("mdmem new decision db --var title=x", code=2, error=r"^try db\.md"),
    Habit(
        "mdmem new decision 'notes/My decision' --var title=x", code=2, error=r"^try notes/My decision\.md"
    ),
    Habit("mdmem grep sqlite", out=r"^notes/db\.md:3:SQLite: one file\.$"),
    Habit("mdmem grep nothing-like-this", code=1, error="^no matches$", silent="."),
    Habit("mdmem grep -q nothing-like-this 2>&1", code=1, silent="."),
    Habit("mdmem refs --stale", error="^no stale citations$", silent="."),
    Habit("mdmem refs --kind url", code=1, error="^no references$", silent="."),
    Habit("mdmem ls --glob '*.txt'", code=1, error="^no memories$", silent="."),
    Habit("mdmem ls --where 'severity>'", code=2, error="nothing is given to compare with"),
    Habit("mdmem --json ls notes", code=2, error="not here: it stands behind the command: `mdmem ls --json`"),
    Habit("mdmem sessions --json list", code=2, error="behind the command: `mdmem sessions list --json`"),
    Habit("mdmem --jsno ls", code=2, error="No such option '--jsno'"),
    Habit(
        "echo '[x](no.pdf) `no.py`' > memories/notes/x.md; mdmem check notes/x.md",
        out=r"^notes/x\.md:1:5: dangling-link no\.pdf: there is no such file",
        silent=r"no\.py",
    ),
    Habit("mdmem --by ls", code=2, error="No such option '--by'"),
    Habit("mdmem ls --where titel=x", code=1, error="'titel'; nearest names: title"),
    Habit("mdmem results list --json", error="^no outputs$", silent="."),
    Habit("mdmem results list --tool Bash", code=1, error="^no outputs$", silent="."),
    *(
        Habit(f"seq 5000 | sed 's/^2500$/ERROR: boom/' | mdmem results compress --tool {tool}", out=out)
        for tool, out in (("pytest", "^ERROR: boom$"), ("mcp__x__y", "^ERROR: boom$"), ("Read", "left out"))
    ),
    Habit("mdmem working show --thread t9", code=1, error="^no working memory of t9$", silent="."),
    Habit("mdmem preferences list", error="^no preferences$", silent="."),
    Habit("mdmem preferences list ui", code=1, error="^no preferences of ui$", silent="."),
    Habit("mdmem sessions list", error="^no sessions$", silent="."),
    Habit("mdmem sessions summaries", error="^no summaries$", silent="."),
    Habit("mdmem rules list --for other.txt", code=1, error=r"^no rules for other\.txt$", silent="."),
    Habit("mdmem search sqlite", out=r"^notes/db\.md:3:"),
    Habit(
        "mdmem contradict notes/db.md notes/old.md && mdmem search one file; mdmem why notes/db.md",
        out=r"^notes/db\.md  contradicted$",
        error=r"notes/db\.md \(contradicted\)",
    ),
    Habit("mdmem grep -i SQLITE", out=r"^notes/db\.md:3:"),
    Habit("mdmem grep -s sqlite", out=r"^notes/decisions/one\.md:", silent="db.md"),
    Habit("mdmem grep -rn sqlite .", out=r"^notes/db\.md:3:"),
    Habit("mdmem grep -l sqlite", out=r"^notes/db\.md$"),
    Habit("mdmem grep -c sqlite", out=r"^notes/db\.md:1$"),
    Habit("mdmem grep -o sqlite", out=r"^notes/db\.md:3:SQLite$"),
    Habit("mdmem grep -A 2 Database", out=r"^notes/db\.md-3-SQLite"),
    Habit("mdmem grep -B2 SQLite", out=r"^notes/db\.md-1-# Database"),
    Habit("mdmem grep -C1 SQLite", out=r"^notes/db\.md-4-$"),
    Habit("mdmem grep -w sql", code=1, silent="."),
    Habit("mdmem grep -F 'one.file'", code=1, silent="."),
    Habit("mdmem grep -E 'one.file'", out=r"^notes/db\.md:3:"),
    Habit("mdmem grep -g '*.md' -t decision sqlite", out="one.md", silent="db.md"),
    Habit("mdmem grep -t md sqlite", out=r"^notes/db\.md:3:"),
    Habit("mdmem grep sqlite notes/db.md AGENTS.md", out=r"^notes/db\.md:3:", silent="one.md"),
    Habit("mdmem grep sqlite memories/notes/decisions", out="one.md", silent="db.md"),
    Habit("mdmem grep -e -x", code=1, silent="."),
    Habit("mdmem grep -e 'one file.' -e 'type every'", out=r"^rules/python\.md:6:"),
    Habit("mdmem grep -E -e ^Use -e ^Type", out=r"^notes/db\.md:7:Use it"),
    Habit("mdmem grep 'sqlite|database'", code=1, error="-E takes it as a regular expression"),
    Habit("mdmem grep -F 'sqlite|database' 2>&1", code=1, out="^no matches$", silent="note"),
    Habit("mdmem grep --vimgrep sqlite", code=2, error="--json"),
    Habit("mdmem grep -v sqlite", code=2, error=r"grep -v"),
    Habit("mdmem grep -q sqlite && echo found | cat", out="^found$"),
    Habit("mdmem grep sqlite | cut -d: -f1 | sort -u", out=r"^notes/db\.md$"),
    Habit("mdmem grep sqlite | wc -l", out=r"^ *2$"),
    Habit("mdmem grep sqlite nowhere", code=2, error="nowhere: no such folder or memory"),
    Habit("mdmem grep sqlite", out=r"^notes/db\.md:3:", folder="src"),
    Habit("mdmem search nothing-like-this", code=1, silent="."),
    Habit("mdmem search sqlite --in nots", code=1, error="^mdmem: nots: no such folder or memory$"),
    Habit("mdmem mv --what tag storge x", code=1, error="^there is: #storage$"),
    Habit("mdmem append notes/db more", out=r"^changed notes/db\.md"),
    Habit("mdmem search -n 1 sqlite | grep -c :", out="^1$", error="1 more"),
    Habit("mdmem search -l sqlite", code=2, error="`mdmem grep -l` lists"),
    Habit("mdmem backlinks '#storage'", code=1, error="^`mdmem refs '#storage'` lists"),
    Habit("mdmem backlinks img.png", code=1, error=r"^`mdmem refs img\.png` lists"),
    Habit("echo > src/new.py; mdmem backlinks src/new.py", code=1, error="^`mdmem refs src/new.py` lists"),
]

# ----------------------------------------------------------------------------------------------- listing

LISTING = [
    Habit("mdmem ls", out=r"^notes/db\.md$"),
    Habit("mdmem ls notes", out=r"^notes/db\.md$", silent="AGENTS"),
    Habit("mdmem ls | head -1", out=r"^AGENTS\.md$"),
    Habit("mdmem ls | wc -l", out="^ *6$"),
    Habit("mdmem ls --glob 'two.*'", out=r"^notes/decisions/two\.md$", silent="one"),
    Habit("mdmem ls --where type=decision", out=r"^notes/decisions/one\.md$", silent="two"),
    Habit("mdmem ls nothing", code=1, error="^mdmem: nothing: no such folder or memory$"),
    Habit("mdmem ls notes/db.md", out=r"^notes/db\.md$", silent="old"),
    Habit("mdmem ls notes/db", out=r"^notes/db\.md$", silent="old"),
    Habit("mdmem ls memories/notes/*.md | cat", out=r"^notes/old\.md$", silent="two"),
    Habit("mdmem ls rules notes/decisions", out=r"^notes/decisions/two\.md$", silent="db"),
    Habit("mdmem ls rules notes/decisions --where 'title=one'", out=r"one\.md$", silent="two"),
    Habit(
        "mdmem ls rules notes/nothing.md",
        code=1,
        error=r"notes/nothing\.md: no such folder or memory",
        silent=".",
    ),
    Habit("mdmem ls -1R notes", out=r"^notes/decisions/one\.md$"),
    Habit("mdmem ls -lt", out=r"^\d+  20\d\d-\d\d-\d\d  decision  notes/decisions/one\.md  One$"),
    Habit("mdmem append notes/old.md x && mdmem ls -t | head -1", out=r"^20.* \d\d:\d\d  notes/old\.md$"),
    Habit("mdmem ls -t --type decision notes", out=r"^20.*  notes/decisions/one\.md$", silent="old"),
    Habit("mdmem ls -t --sort title", code=2, error="exclude each other"),
    Habit("mdmem ls --type nothing", code=1, error="no memories", silent="."),
    Habit("mdmem ls --where 'modified>=2001' --sort -modified", out=r"^notes/db\.md$"),
    Habit(
        "mdmem ls --where 'modified>=2026-13'", code=2, error="2026-13 is not a date\na date is 2026, 2026-01"
    ),
    Habit("mdmem ls --where 'created=2026-1'", code=1, error="no memory has a field 'created'"),
    Habit("mdmem ls --where 'title!=2026-13' notes/db.md", out=r"^notes/db\.md$"),
    Habit("mdmem ls --sort -date", out=r"^notes/db\.md$"),
    Habit("mdmem ls -l", out=r"^\d+  20\d\d-\d\d-\d\d  decision  notes/decisions/one\.md  One$"),
    Habit("mdmem ls -l notes/decisions --json | head -1", out=r'"type": "decision", "title": "One"\}$'),
    Habit("mdmem ls --tree", out=r"^(?:└──|`--) rules/$"),
    Habit("mdmem ls --tree notes", out=r"^notes$", silent="AGENTS"),
    Habit("mdmem ls 'notes/*.md'", code=1, error=r"^`mdmem ls --glob 'notes/\*\.md'` lists"),
    Habit("mdmem ls --vault memories", code=2, error="stands before the command: `mdmem --vault DIR ls`$"),
    Habit("mdmem sessions list --shared", code=2, error="`mdmem --shared sessions list`$"),
    Habit("mdmem stats", out=r"^6 memories, \d+ bytes, about \d+ tokens$"),
    Habit("mdmem stats --json | cat", out=r'^\{"memories": 6, '),
]

# ----------------------------------------------------------------------------------------------- showing

SHOWING = [
    Habit("mdmem show notes/db.md | head -1", out=r"^# Database$"),
    Habit("mdmem history", out="write notes/db.md"),
    Habit("mdmem refs --fix", out="^nothing to change$"),
    Habit("mdmem set notes/db.md up='[[old]]'; mdmem backlinks notes/old.md", out=r"^notes/db\.md:2"),
    Habit("mdmem set notes/db.md zip=01234 && mdmem show notes/db.md", out='^zip: "01234"$'),
    Habit("mdmem history -n 1 | wc -l", out="^ *2$"),
    Habit("mdmem history --limit 1", out="write rules/python.md", error="older changes left out"),
    Habit("mdmem show -n notes/db.md", out=r"^ +3\tSQLite: one file\.$"),
    Habit("mdmem show notes/db.md --section Decision", out="^Use it", silent="SQLite"),
    Habit("mdmem backlinks notes/db.md", out=r"^notes/old\.md:3"),
    Habit("mdmem append notes/db.md more && mdmem undo && mdmem show notes/db.md", silent="more"),
    Habit("echo more | mdmem append notes/db.md && mdmem show notes/db.md", out="^more$"),
    Habit("mdmem replace notes/db.md file database --dry-run", out=r"^\+SQLite: one database"),
    Habit("mdmem replace notes/db.md missing x", code=1, error="does not occur"),
    Habit("mdmem section rules/python.md Pyton x", code=1, error="headings, the nearest first: Python"),
    Habit("mdmem write a.md new && rm memories/a.md && mdmem restore a.md && mdmem show a.md", out="^new"),
    Habit(
        "mdmem append a.md one; mdmem append a.md two; mdmem undo; rm memories/a.md;"
        " mdmem restore a.md && mdmem show a.md",
        out="^one$",
        silent="two",
    ),
    Habit(
        "mdmem restore nope.md",
        code=1,
        error=r"no kept version of nope\.md\nmdmem has not changed it: look for it in git or in a backup$",
    ),
    Habit(
        "mdmem set notes/db.md 'tags=[a, b'", error="^note: tags is a text: what was given for it is no YAML$"
    ),
    Habit("mdmem set notes/db.md 'tags=[a, b]' up='[[old]]'", silent="note:"),
    Habit(
        "mdmem set notes/db.md 'tags=- a\n- b'",
        error=r"^note: tags is a text: YAML is read in one line, as in",
    ),
    Habit("mdmem set notes/db.md 'description=One line:\nand another'", silent="note:"),
    Habit("mdmem show t1#1", code=1, error="^`mdmem show 'sessions/t1#1'` shows a message of a session$"),
    Habit(
        "id=$(mdmem history --json | head -1 | cut -d'\"' -f4); mdmem undo ${id%???}",
        out=r"^deleted rules/python\.md$",
    ),
    Habit(
        "id=$(mdmem history --json | head -1 | cut -d'\"' -f4);"
        " mdmem diff rules/python.md --against ${id%???}",
        out=r"^\+# Python$",
    ),
    Habit("mdmem undo 2", code=1, error="^mdmem: no change '2'$"),
    Habit("mdmem undo 20", code=1, error="^mdmem: no change '20'$"),
    Habit(
        "mdmem --user ada remember 3.10 --kind preference --name python/version; mdmem --user ada context",
        out=r"^- python/version: 3\.10 ",
    ),
    Habit("mdmem replace notes one two", code=2, error=r"^list it with `mdmem ls notes`$"),
    Habit("mdmem template show nope", code=1, error="^there is: note, context, daily, decision"),
    Habit("mdmem schema show prefrence", code=1, error="^there is: preference, memory, note, "),
    Habit(
        "printf '# A\\n## B\\n## B\\n' > memories/a.md; mdmem section a.md B x",
        code=2,
        error="^no heading path tells them apart: change the text under one of them with `replace`$",
    ),
    Habit("mdmem --no-pager show notes/db.md", out=r"^# Database$"),
    Habit("PAGER=false mdmem show notes/db.md | cat", out=r"^# Database$"),
    Habit("mdmem diff", code=2, error="`mdmem git diff`"),
    Habit("EDITOR=true mdmem edit db | cat", out=r"edit notes/db\.md$", error="db is taken as notes/db.md"),
    Habit("mdmem append db more", out=r"^changed notes/db\.md", error="db is taken as notes/db.md"),
    Habit("mdmem write db more", code=1, error=r"nearest names: notes/db\.md"),
    Habit("mdmem edit nothing", code=2, error=r"try nothing\.md"),
    Habit("mdmem append notes/x.MD x", code=2, error=r"^try notes/x\.md$"),
    Habit("mdmem append 'notes/end .' x", code=2, error=r"^try notes/end\.md$"),
    Habit("mdmem backlinks rules/python.md", code=1, error="no links to rules/python.md", silent="."),
    Habit("mdmem sessions history t1", code=1, error="no messages of t1", silent="."),
    Habit("mdmem sessions grep sqlite", code=2, error="^name a session, or ask for all$"),
    Habit("mdmem sessions append t1 user Hi && mdmem show 'sessions/t1#1'", out=r"^#1  user  20.*\nHi$"),
    Habit(
        "mdmem sessions append t1 user Hi && mdmem show 'sessions/t1#1' --json | jq -c [.seq]", out=r"^\[1\]$"
    ),
    Habit("mdmem show 'sessions/t1#1'", code=1, error="^mdmem: no message 't1#1'$"),
    Habit("mdmem show 'sessions/t1#1' --only-hash", code=2, error="printed whole"),
    Habit("mdmem sessions import claude-code nowhere", code=2, error="^nearest names: claude-code-session$"),
    Habit("mdmem working show", code=2, error="one of the two: a thread or a resource id$"),
    Habit("mdmem inbox list", error="^no proposals$", silent="."),
    Habit("mdmem diff notes/db.md", out=r"^\+SQLite: one file\.$"),
    Habit("mdmem append notes/db.md more && mdmem diff notes/db.md", out=r"^\+more$", silent=r"^\+SQLite"),
    Habit("mdmem diff notes/db.md --against 00000000", code=1, error="there is: "),
    Habit("mdmem today", code=1, error="begin it with `mdmem today TEXT`"),
    Habit("mdmem today did it && mdmem today", out=r"^## \d\d:\d\d$"),
    Habit("EDITOR='sed -i s/one/1/' mdmem edit notes/db.md && mdmem show notes/db.md", out="SQLite: 1 file"),
    Habit("EDITOR=true mdmem edit notes/db.md | cat", out="^nothing to change"),
    Habit("EDITOR=false mdmem edit notes/db.md; true", error="false: Editing failed"),
]

# -------------------------------------------------------------------------------------------------- help

HELP = [
    Habit("mdmem --version", out=rf"^mdmem {re.escape(mdmem.__version__)}$"),
    Habit("mdmem --help", out=r"^Usage: mdmem"),
    Habit("mdmem -h", out=r"^Usage: mdmem"),
    Habit("mdmem show -h", out=r"^Usage: mdmem show"),
    Habit("mdmem -V", out=rf"^mdmem {re.escape(mdmem.__version__)}$"),
    Habit("mdmem help", out="^Every day:$"),
    Habit("mdmem help find", out="^Find and read:$"),
    Habit("mdmem help dangling-link", out="^dangling-link: "),
    Habit("mdmem help search", out="^Usage: mdmem search"),
    Habit("mdmem help inbox accept", out="^Usage: mdmem inbox accept"),
    Habit("mdmem help query", out='^ +"some words"'),
    Habit("mdmem help nothing", code=2, error="No help on 'nothing'"),
    Habit("mdmem", code=2, error="^Usage: mdmem"),
    Habit("mdmem serch sqlite", code=2, error="Did you mean 'search'"),
    Habit("mdmem cat notes/db.md", code=2, error="Did you mean 'show'"),
    Habit("mdmem version", code=2, error="Did you mean '--version'"),
    Habit(
        'echo "max = = 1" >> memories/.mdmem/config.toml; mdmem ls',
        code=2,
        error=r"^correct it there: a line is \[table\]",
    ),
    Habit("mdmem status", out=r"^memories +6 +mdmem ls -t$"),
    Habit("touch memories/a.mdx; mdmem status", out="^passed over +1 +mdmem check$"),
    Habit("mdmem status | wc -l", out=r"^ *(?:[1-9]|10)$"),
    Habit("mdmem status --json | jq '[.uncommitted, .broken]' -c", out=r"^\[6,1\]$"),
    Habit("git add -A; git commit -qm x; mdmem append notes/db.md x; mdmem status", out="^not committed +1 "),
    Habit("mdmem stauts", code=2, error="Did you mean 'stats' or 'status'"),
    Habit("mdmem show notes", code=2, error="`mdmem ls notes`"),
    Habit("mdmem notes ad db", code=2, error="No such command 'ad'", silent="."),
    Habit("mdmem ls --jsn", code=2, error="--json"),
]

# -------------------------------------------------------------------------------------------------- json

JSON = [
    Habit("mdmem ls --json", out=r'^\{"path": "notes/db\.md", "size": \d+, "modified": "20.*Z"\}$'),
    Habit("mdmem ls --json | jq -r .path", out=r"^notes/db\.md$"),
    Habit("mdmem ls --json | jq -s length", out=r"^6$"),
    Habit("mdmem search sqlite --json | jq -r .path", out=r"^notes/db\.md$"),
    Habit("mdmem grep sqlite --json | jq .line", out=r"^3$"),
    Habit("mdmem show notes/db.md --json | jq -r .text", out=r"^# Database$"),
    Habit("mdmem tags --json", out=r'^\{"name": "a", "memories": 1\}$'),
    Habit("mdmem append notes/db.md more --json", out=r'^\{"applied": true, "id": "'),
    Habit("mdmem append notes/db.md more --json --dry-run", out=r'^\{"applied": false, "id": ""'),
    Habit("mdmem rm notes/old.md --json | jq -r '.files[].path'", out=r"^notes/old\.md$"),
    Habit("mdmem show nothing.md --json", code=1, out=r'^\{"error": \{"code": "memory-not-found"'),
]

# --------------------------------------------------------------------------------------------------- git

GIT = [
    Habit(
        "git add -A && git commit -qm all && mdmem append notes/db.md x && mdmem git diff", out="^notes/db"
    ),
    Habit(
        "echo 1 > memories/a.md; git add -A; git commit -qm 1; git checkout -qb x; echo 2 > memories/a.md"
        "; git commit -qam 2; git checkout -qb y HEAD~; echo 3 > memories/a.md; git commit -qam 3"
        "; git merge -q x; mdmem status",
        out="^setup +1 memory has merge conflicts: `git status` and `mdmem check` say where$",
    ),
    Habit("mdmem git status", code=2, error="`git status`"),
    Habit("mdmem git log", error="^no commits$", silent="."),
    Habit("mdmem git log notes/db.md", code=1, error="^no commits$", silent="."),
    Habit("mdmem git log --oneline -3", code=2, error="use -n N"),
    Habit(
        "for n in $(seq 25); do echo $n > memories/$n.md; done; git add -A; git commit -qm m; mdmem git log",
        out=r"^    and 11 more \(-v names them\)$",
    ),
    Habit("mdmem git diff nothing", code=1, error="no revision 'nothing'"),
    Habit("mdmem git diff -- notes/db.md", out=r"^notes/db\.md  added$", silent="old"),
    Habit("mdmem git diff db.md ../rules", out=r"^rules/python\.md", silent="old", folder="memories/notes"),
    Habit("mdmem git commit; mdmem git commit", code=1, error="^nothing to commit$"),
    Habit(
        "mdmem git commit; echo '*.md' > .gitignore; echo x > memories/x.md; mdmem git commit",
        code=1,
        error="^1 memory ignored by git$",
    ),
    Habit(
        "mdmem git commit; echo '*.md' > .gitignore; echo x > memories/x.md; mdmem git diff",
        error="^1 memory ignored by git$",
    ),
    Habit(
        "mdmem git commit; echo '*.md' > .gitignore; echo x > memories/x.md; mdmem git diff notes 2>&1",
        silent="ignored",
    ),
    Habit("mdmem git diff --stat", code=2, error="jq -r .path"),
    Habit(
        "mdmem git commit; MDMEM_ACTOR=bot mdmem append notes/db.md x; mdmem git commit; mdmem git blame db",
        out=r"  bot \(A\)",
    ),
    Habit("mdmem --actor bot install cursor --dry-run", out=r'^\+ +"bot",$'),
    Habit(
        "mdmem git commit -am 'all of it' && mdmem git log --oneline", out=r"^[0-9a-f]{8}  20.* all of it$"
    ),
    Habit("mdmem git commit && git branch rules && mdmem git diff rules", error="taken as a revision"),
    Habit("mdmem git commit | cat && mdmem git diff HEAD notes", silent="^notes"),
    Habit(
        "mdmem git commit | cat && mdmem git diff HEAD HEAD", code=1, error=r"`mdmem git diff HEAD\.\.HEAD`$"
    ),
]

# ---------------------------------------------------------------------------------------------- checking

CHECKING = [
    Habit("mdmem check", out=r"^notes/decisions/two\.md:3:7: dangling-link there is no memory 'gone'"),
    Habit(
        "mkdir memories/.mdmem/templates; echo '{% if %}' > memories/.mdmem/templates/daily.md"
        "; mdmem remember important",
        code=2,
        error=r"^correct it in \.mdmem/templates$",
    ),
    Habit("mdmem check | wc -l", out="^ *1$"),
    Habit("mdmem check --no-links", silent="."),
    Habit("mdmem check --strict", code=1, error="^1 warning in 1 file; `mdmem help dangling-link` explains"),
    Habit("mdmem check notes/db.md", silent="."),
    Habit("mdmem check notes/decisions", out="dangling-link"),
    Habit("mdmem check --format github", out="^::warning file=memories/notes/decisions/two.md,line=3,"),
    Habit("mdmem check --json | jq -r .severity", out="^warning$"),
    Habit("mdmem check nothing", error="^note: 1 file skipped, as no memory here: nothing$"),
    Habit("mdmem doctor", out=r"^memories: 6$", error="^dangling-link: make it, or remove the link$"),
    Habit("mdmem doctor --json | jq .facts.memories", out="^6$"),
    Habit("mdmem lint", code=2, error="Did you mean 'check'"),
]

# --------------------------------------------------------------------------------- one flag, one meaning

FLAGS = [
    Habit("mdmem 2>&1 | grep -c '^  [a-z]'", out="^28$"),
    Habit("mdmem --help | wc -l | xargs -I{} test {} -le 45 && echo fits", out="^fits$"),
    Habit("mdmem --help --all | grep -c supersede", out="^1$"),
    Habit("mdmem help --all", out="^  supersede ", silent="^  insert "),
    Habit("mdmem --all ls", code=2, error="--help --all"),
    Habit(
        "mdmem append n.md x; rm memories/n.md; mdmem undo", error="`mdmem undo -n 2` undoes one more, too$"
    ),
    Habit(
        r"printf '\377 [[db]]' > memories/bad.md; mdmem mv notes/db.md notes/store.md",
        error="^left out: the links of 1 file that cannot be read",
    ),
    Habit(
        "mdmem write notes/a.md '[d](db.md) [[db]]'; mdmem mv notes/db.md notes/DB.md; cat memories/notes/a*",
        out=r"^\[d\]\(DB\.md\) \[\[DB\]\]$",
    ),
    Habit("mdmem trash", code=2, error="Did you mean 'restore'"),
    Habit("mdmem update notes/db.md a=b", code=2, error="Did you mean 'set'"),
    Habit("mdmem sessions log t1 user hi", code=2, error="Did you mean 'append'"),
    Habit("mdmem sessions show t1", code=2, error="Did you mean 'history'"),
    Habit("mdmem results show 0123", code=2, error="Did you mean 'recover'"),
    Habit("mdmem inbox merge 1", code=2, error="Did you mean 'accept'"),
    Habit("mdmem ls --tag db", code=2, error="--where tags=NAME$"),
    Habit("mdmem supersede a --by b", code=2, error="`mdmem supersede OLD BY`$"),
    Habit("mdmem project sync --yes", code=2, error="nothing is asked"),
    Habit("mdmem sessions capture nowhere", code=1, error="^no session nowhere$", silent="."),
    Habit("mdmem sessions observe nowhere", code=1, error="^no session nowhere$", silent="."),
    Habit("mdmem section --help", out="and subsections .default."),
    Habit("mdmem observe t1", code=2, error="Did you mean 'sessions observe'"),
    Habit("mdmem summaries list", code=2, error="'sessions summaries'"),
    Habit("mdmem capture run t1", code=2, error="'sessions capture'"),
    Habit("mdmem new rule style --var title='Code style' && mdmem show rules/style.md", out="^# Code style$"),
    Habit(
        "mdmem new rule style --var titel=x",
        code=2,
        error="rule.md: it has no variable 'titel'\nnearest names: title$",
    ),
    Habit(
        "mkdir O && echo '[[db]] [[nope]]' > O/Home.md && echo '# db' > O/db.md && echo > 'O/a?.md'"
        " && mdmem import obsidian O --to notes/o --dry-run",
        out=r"^\+\+\+ b/notes/o/db\.md$",
        error=r"^warning: notes/o/Home\.md:1:3: ambiguous-link it may also mean notes/db\.md$",
    ),
    Habit("mdmem new rule style --var today=2020-01-01", out=r"^created rules/style\.md"),
    Habit(
        "mdmem working show --thread t1 --template working --var gaol=x",
        code=2,
        error="no variable 'gaol'",
    ),
    Habit("mdmem insert notes/db.md 0 First", out=r"^changed notes/db\.md"),
    Habit(
        "mdmem prepend notes/db.md First && mdmem delete-lines notes/db.md 1", out=r"^changed notes/db\.md"
    ),
    Habit("mdmem index | cat", out="6 memories"),
    Habit("mdmem show notes/db.md --only-hash | wc -c", out="^ *65$"),
    Habit("mdmem show notes/db.md --as-of 2999-01-01", out="^# Database"),
    Habit(
        "git add -A && git -c user.name=a -c user.email=a@example.org commit -qm x"
        " && mdmem write notes/db.md Later --overwrite && mdmem show notes/db.md --as-of HEAD",
        out="^# Database",
    ),
    Habit("mdmem show notes/db.md --heading Decision", code=2, error="No such option"),
    Habit("mdmem mv --what tag storage store", out=r"^changed notes/old\.md"),
    Habit("mdmem mv --what heading notes/db.md Decision Choice", out=r"^changed notes/old\.md"),
    Habit("mdmem mv --what tag storage", code=2, error="give OLD NEW with --what tag"),
    Habit("mdmem section notes/db.md Decision '## Context' --insert-before", out=r"^changed notes/db\.md"),
    Habit("mdmem refs --kind note", out=r"decisions/two\.md"),
    Habit("mdmem grep --count sqlite", code=2, error="use -c"),
    Habit("mdmem search sqlite --limit 1 | grep -c :", out="^1$", error="1 more"),
    Habit("mdmem replace --in notes --glob 'o*.md' Old New --all --dry-run", out=r"^\+# New$"),
    Habit("mdmem sessions append t1 user Hello && mdmem sessions history t1 -n 1 | cat", out="Hello"),
    Habit(
        "mdmem sessions append t1 user Hello && mdmem sessions history t1 --after 1",
        code=1,
        error="^no messages",
    ),
    Habit("mdmem sessions grep Hello", code=2, error="--all|all"),
    Habit(
        "mdmem preferences set ui theme dark --existing keep-latest", out=r"^created preferences/ui/theme\.md"
    ),
    Habit(
        "mdmem preferences set ui theme dark --why Night."
        " && mdmem remember light --kind preference --name ui/theme && mdmem context",
        out="^- ui/theme: light  ",
        silent="light.*Night",
    ),
]

# -------------------------------------------------------------------------------------------------------

AREAS = {
    "paths": PATHS,
    "removing": REMOVING,
    "finding": FINDING,
    "listing": LISTING,
    "showing": SHOWING,
    "help": HELP,
    "json": JSON,
    "git": GIT,
    "checking": CHECKING,
    "flags": FLAGS,
}
ALL = [pytest.param(habit, id=f"{area}: {habit.typed}") for area, habits in AREAS.items() for habit in habits]
SHELL = re.compile(r"[|<>;&]|\$\(")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a vault of a few memories, and one with something wrong in it."""
    folder = tmp_path_factory.mktemp("prepared") / "repository"
    command = ["git", "init", "--quiet", "--template=", str(folder)]
    subprocess.run(command, env=os.environ | SETTINGS, check=True)
    memory = open_memory(mdmem.init(folder / "memories").root)
    memory.write("AGENTS.md", "# Demo\n\n## Decisions\n\n- Use files\n")
    memory.write("notes/db.md", "# Database\n\nSQLite: one file.\n\n## Decision\n\nUse it.\n")
    memory.write("notes/old.md", "# Old\n\nSee [[db#Decision]]. #storage\n")
    memory.write("notes/decisions/one.md", "---\ntype: decision\ntags: [a]\n---\n# One\n\nWe use sqlite.\n")
    memory.write("notes/decisions/two.md", "# Two\n\nSee [[gone]].\n")
    memory.write("rules/python.md", "---\nglobs: ['src/**']\n---\n# Python\n\nType everything.\n")
    (folder / "src").mkdir()
    (folder / "src/app.py").write_text("import os\n")
    return folder


@pytest.mark.timeout(600)
@cases("habit", ALL)
def test_what_is_typed_does_what_is_expected(
    habit: Habit,
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if "jq " in habit.typed:
        needs("jq")
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    copy_folder(prepared, tmp_path / "repository")
    monkeypatch.chdir(tmp_path / "repository" / habit.folder)
    if SHELL.search(habit.typed):
        ended = run_in_shell(habit.typed)
        code, out, error = ended.returncode, ended.stdout, ended.stderr
    else:
        capfd.readouterr()
        program, *arguments = shlex.split(habit.typed)
        assert program == "mdmem"
        code = main(arguments)
        out, error = capfd.readouterr()
    assert code == habit.code, error
    assert re.search(habit.out, out, re.MULTILINE), out
    assert re.search(habit.error, error, re.MULTILINE), error
    assert not (habit.silent and re.search(habit.silent, out, re.MULTILINE)), out
    assert "Traceback" not in error


def test_the_table_has_sixty_habits_each_once() -> None:
    typed = [(habit.typed, habit.folder) for habits in AREAS.values() for habit in habits]
    assert len(typed) == len(set(typed)) >= 60
