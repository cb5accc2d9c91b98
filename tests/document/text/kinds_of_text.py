"""Texts of many kinds, as tools print and people write them: drawn with a seed, or read from the checkout."""

from __future__ import annotations

import base64
import difflib
import json
import random
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from tests.foreign import BUNDLE

if TYPE_CHECKING:
    from collections.abc import Callable

CODE = Path(__file__).parents[3] / "mdmem" / "document" / "edit.py"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIGNS = "!@#$%^&*()[]{};:'\"<>,./?\\|`~-_=+"
WORDS = re.findall(
    r"\w+",
    """
    the of and to in is that for it was on are as with they at be this from have or by one had not but
    what all were we when there can an your which their said if do will each about how up out them then
    she many some so these would other into has more her two like him see time could no make than first
    been its who now people my made over did down only way find use may water long little very after
    words called just where most know cache token index session merge branch commit vault memory server
    client request response database schema
    """,
)
NAMES = (
    "main",
    "config",
    "user_id",
    "parseTokens",
    "HttpClient",
    "index.ts",
    "README.md",
    "src",
    "test_merge",
)

# Lines of each kind; what stands in ⟨⟩ is drawn by the method of `Writer` that is called so.
LINES = {
    "hex dump": "⟨hex4⟩⟨hex4⟩: ⟨hex4⟩ ⟨hex4⟩ ⟨hex4⟩ ⟨hex4⟩ ⟨hex4⟩ ⟨hex4⟩  ..⟨word⟩...⟨digit⟩..",
    "hashes": "⟨hex32⟩⟨hex32⟩  ⟨path⟩",
    "commits": "⟨hex4⟩⟨hex4⟩⟨digit⟩ ⟨words⟩",
    "UUIDs": "⟨uuid⟩",
    "random letters": "⟨letters⟩",
    "random capitals": "⟨capitals⟩",
    "random identifiers": "⟨identifier⟩",
    "random tokens": "⟨token⟩",
    "escapes of terminals": "\x1b[⟨two⟩m⟨words⟩\x1b[0m: \x1b[1;4m⟨number⟩\x1b[0m",
    "escapes of URLs": "%⟨HEX2⟩%⟨HEX2⟩%⟨HEX2⟩%⟨HEX2⟩%20⟨word⟩%3D%⟨HEX2⟩%⟨HEX2⟩",
    "quoted printable": "⟨word⟩=⟨HEX2⟩=⟨HEX2⟩⟨word⟩=⟨HEX2⟩=20=⟨HEX2⟩",
    "ls -l": "-rw-r--r-- ⟨digit⟩ root root ⟨wide⟩ Nov ⟨two⟩ ⟨clock⟩ ⟨path⟩",
    "ls": "⟨word⟩.md  ⟨name⟩  ⟨word⟩-⟨word⟩.py  ⟨word⟩_⟨two⟩.txt",
    "ps": "root  ⟨wide⟩  0.⟨digit⟩  ⟨digit⟩.⟨digit⟩ ⟨wide⟩ ⟨wide⟩ ?    Ssl  ⟨clock⟩  0:00 /usr/bin/⟨word⟩",
    "addresses": "https://⟨word⟩.example.org/⟨path⟩?id=⟨number⟩&t=⟨hex4⟩⟨hex4⟩#⟨word⟩",
    "IP addresses": "⟨byte⟩.⟨byte⟩.⟨byte⟩.⟨byte⟩:⟨number⟩ ⟨hex4⟩:⟨hex4⟩::⟨hex4⟩:⟨hex4⟩:⟨hex4⟩",
    "MAC addresses": "⟨hex2⟩:⟨hex2⟩:⟨hex2⟩:⟨hex2⟩:⟨hex2⟩:⟨hex2⟩",
    "e-mails": "⟨word⟩.⟨word⟩@⟨word⟩.example.com",
    "paths": "⟨path⟩",
    "JSON lines": '{"ts": "⟨time⟩", "level": "info", "id": "⟨hex32⟩", "msg": "⟨words⟩", "took": ⟨number⟩}',
    "YAML": "- name: ⟨name⟩\n  size: ⟨number⟩\n  tags: [⟨word⟩, ⟨word⟩]",
    "TOML": '[⟨word⟩.⟨word⟩]\n⟨name⟩ = ["⟨word⟩>=⟨digit⟩.⟨two⟩,<⟨digit⟩", "⟨path⟩"]',
    "XML": '<row id="⟨number⟩"><name>⟨words⟩</name><n>⟨number⟩</n></row>',
    "HTML": '<li class="nav-item ⟨word⟩"><a href="/⟨path⟩">⟨words⟩</a></li>',
    "CSS": ".⟨word⟩-⟨word⟩{margin:⟨two⟩px auto;color:#⟨hex4⟩⟨hex2⟩}",
    "SVG": "M⟨float⟩,⟨float⟩L⟨float⟩ ⟨float⟩C⟨float⟩,⟨float⟩ ⟨float⟩,⟨float⟩Z",
    "stack trace of Python": '  File "/lib/⟨path⟩.py", line ⟨number⟩, in ⟨name⟩\n    raise Error("⟨words⟩")',
    "stack trace of Java": "\tat com.example.⟨word⟩.⟨name⟩.run(Main.java:⟨number⟩)",
    "log": "⟨time⟩ INFO [⟨word⟩-⟨two⟩] ⟨words⟩ id=⟨hex4⟩⟨hex4⟩ took=⟨number⟩ms",
    "access log": '10.⟨byte⟩.0.⟨byte⟩ - - [28/Nov/2026:⟨clock⟩:11] "GET /⟨path⟩ HTTP/1.1" 200 ⟨number⟩ "-"',
    "tests": "tests/⟨path⟩.py::test_⟨word⟩_⟨word⟩_⟨word⟩_⟨word⟩ PASSED [ ⟨two⟩%]",
    "progress": "######              ⟨two⟩% ⟨number⟩/⟨number⟩ [00:⟨two⟩<00:09, ⟨float⟩it/s]",
    "lock file": '"⟨word⟩@^⟨digit⟩.⟨two⟩.⟨digit⟩":\n  integrity sha512-⟨token⟩⟨token⟩==',
    "CSV": "⟨number⟩,2026-11-⟨two⟩,⟨words⟩,⟨float⟩,⟨digit⟩",
    "TSV of numbers": "⟨number⟩\t⟨number⟩\t⟨number⟩\t⟨number⟩\t⟨number⟩",
    "numbers": "⟨number⟩ ⟨number⟩ ⟨number⟩ ⟨number⟩ ⟨number⟩ ⟨number⟩",
    "floats": "[⟨float⟩, -⟨float⟩, ⟨float⟩e-05, ⟨float⟩]",
    "digits": "⟨digit⟩ ⟨digit⟩ ⟨digit⟩ ⟨digit⟩ ⟨digit⟩",
    "long numbers": "⟨number⟩⟨number⟩⟨number⟩⟨number⟩⟨number⟩⟨number⟩",
    "table": "| ⟨word⟩ | ⟨wide⟩ | ⟨words⟩         | x |",
    "rules of tables": "|------|:------------|----------------:|",
    "box drawing": "├────────┼──────────────────────┤\n│ ⟨word⟩   │ ⟨words⟩     │",
    "tree": "│   │   ├── ⟨name⟩\n│   └── ⟨word⟩",
    "blanks": "                                 ⟨word⟩",
    "indented code": "        if ⟨word⟩ == ⟨digit⟩:\n            return\n",
    "empty lines": "⟨word⟩\n\n\n",
    "rules": "----------------------------------------\n====\n******************",
    "signs": "⟨signs⟩",
    "formulas": "$\\frac{⟨letter⟩_⟨digit⟩}{\\sqrt{⟨letter⟩^2+⟨two⟩}} \\leq \\sum_{i=0}^{n} ⟨letter⟩_i$",
    "regular expressions": "^(?:[A-Za-z0-9_-]{⟨two⟩,}|\\d+\\.\\d*)(?=\\s|$)|(?<!⟨word⟩)\\b[^\\s:/?#]+",
    "minified code": "function ⟨letter⟩(⟨letter⟩,⟨letter⟩){return ⟨letter⟩.⟨word⟩?⟨letter⟩[⟨two⟩]:!⟨digit⟩};",
    "assembler": "  ⟨hex4⟩⟨hex2⟩:\t⟨hex2⟩ ⟨hex2⟩ ⟨hex2⟩ ⟨hex2⟩ \tmov    %r⟨letter⟩x,0x⟨hex2⟩(%rsp)",
    "SQL": "INSERT INTO ⟨word⟩ (id, name, at) VALUES (⟨number⟩, '⟨words⟩', '⟨time⟩');",
    "shell": "$ git log --oneline -n ⟨two⟩ ⟨word⟩..⟨word⟩ -- ⟨path⟩ | grep -v '⟨word⟩' > /tmp/⟨word⟩.txt",
    "environment": "⟨Word⟩_⟨Word⟩=/usr/⟨path⟩",
    "snake case": "⟨word⟩_⟨word⟩_⟨word⟩_⟨word⟩",
    "dates": "⟨time⟩",
    "code of C": "int ⟨word⟩_⟨word⟩(struct ⟨word⟩ *⟨letter⟩) {\n\treturn ⟨letter⟩->⟨word⟩ & 0x⟨hex2⟩;\n}",
    "code of JavaScript": "const ⟨name⟩ = (⟨word⟩, ⟨letter⟩) => ⟨word⟩.⟨word⟩(⟨letter⟩) || '⟨words⟩';",
    "prose and code": "⟨words⟩ ⟨words⟩: `⟨name⟩(⟨word⟩=⟨number⟩)`, ⟨words⟩ [⟨word⟩](⟨path⟩).",
}
PROSE = {
    "English": ("readmes", "obsidian", "hugo"),
    "notes with code": ("mkdocs", "docusaurus"),
    "German": ("languages/de",),
    "French": ("languages/fr",),
    "Spanish": ("languages/es",),
    "Greek": ("languages/el",),
    "Russian": ("languages/ru",),
    "Turkish": ("languages/tr",),
    "Chinese": ("languages/zh",),
    "Japanese": ("languages/ja",),
    "Korean": ("languages/ko",),
    "from right to left": ("languages/rtl",),
    "other languages": ("languages/others",),
    "blocks of code": ("shapes/code",),
}


class Writer:
    """Draws what stands in the lines of `LINES`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self, name: str) -> str:
        """Draw what a name stands for."""
        draw = self.random
        if name.lower().startswith("hex"):
            digits = draw.randbytes(int(name[3:]) // 2).hex()
            return digits.upper() if name.startswith("HEX") else digits
        drawn: dict[str, Callable[[], str]] = {
            "word": lambda: draw.choice(WORDS),
            "Word": lambda: draw.choice(WORDS).upper(),
            "words": lambda: " ".join(draw.choices(WORDS, k=draw.randint(2, 8))),
            "name": lambda: draw.choice(NAMES),
            "path": lambda: "/".join(draw.choices([*NAMES, *WORDS], k=draw.randint(2, 6))),
            "letter": lambda: draw.choice(LETTERS),
            "letters": lambda: "".join(draw.choices(LETTERS, k=30)),
            "capitals": lambda: "".join(draw.choices(LETTERS.upper(), k=30)),
            "identifier": lambda: "".join(draw.choices(f"{LETTERS}0123456789", k=26)),
            "token": lambda: base64.urlsafe_b64encode(draw.randbytes(30)).decode(),
            "signs": lambda: "".join(draw.choices(SIGNS, k=40)),
            "digit": lambda: str(draw.randrange(10)),
            "two": lambda: f"{draw.randrange(10, 60)}",
            "byte": lambda: str(draw.randrange(256)),
            "number": lambda: str(draw.randrange(10 ** draw.randint(1, 9))),
            "wide": lambda: f"{draw.randrange(10**5):>7}",
            "float": lambda: f"{draw.random() * 500:.{draw.randint(1, 9)}f}",
            "clock": lambda: f"{draw.randrange(24):02}:{draw.randrange(60):02}",
            "time": lambda: (
                f"2026-11-{draw.randrange(10, 29)}T11:{draw.randrange(60):02}:52.{draw.randrange(999):03}Z"
            ),
            "uuid": lambda: str(uuid.UUID(bytes=draw.randbytes(16))),
        }
        return drawn[name]()

    def lines(self, line: str, count: int = 40) -> str:
        """Write lines of one kind."""
        return "\n".join(re.sub("⟨(\\w+)⟩", lambda name: self.draw(name[1]), line) for _ in range(count))


def texts(seed: int = 0) -> dict[str, str]:
    """Write or read a text of each kind, most of some thousand characters."""
    writer = Writer(seed)
    draw = writer.random
    prose, code = writer.lines("⟨words⟩ ⟨words⟩").splitlines(), CODE.read_text(encoding="utf-8").splitlines()
    data = {
        f"{word} {number}": [draw.random(), word, {"id": draw.randrange(10**6), "on": True}]
        for number, word in enumerate(prose)
    }
    return {
        "base64": base64.b64encode(draw.randbytes(3000)).decode(),
        "base64 in lines": base64.encodebytes(draw.randbytes(3000)).decode(),
        "base64 of prose": base64.b64encode("\n".join(prose).encode()).decode(),
        "base64 of JSON": base64.b64encode(json.dumps(data, indent=2).encode()).decode(),
        "base32": base64.b32encode(draw.randbytes(2000)).decode(),
        "hex": draw.randbytes(2000).hex(),
        "escapes of bytes": "".join(f"\\x{each:02x}" for each in draw.randbytes(700)),
        "escapes of JSON": json.dumps("".join(chr(draw.randrange(0x400, 0x9000)) for _ in range(500))),
        "diff of prose": _diff(draw, prose),
        "diff of code": _diff(draw, code),
        "JSON, minified": json.dumps(data, separators=(",", ":")),
        "JSON, indented": json.dumps(data, indent=2),
        "code of Python": "\n".join(code),
        "capitals": "\n".join(prose).upper(),
        "titles": "\n".join(prose).title(),
        "camel case": re.sub("[ \n]", "", "\n".join(prose).title()),
        "emoji": " ".join(
            chr(draw.randrange(0x1F300, 0x1F650)) + draw.choice(["", "\ufe0f"]) for _ in range(400)
        ),
        **{kind: writer.lines(line) for kind, line in LINES.items()},
        **{kind: _read(folders) for kind, folders in PROSE.items()},
    }


def _diff(draw: random.Random, old: list[str]) -> str:
    new = [draw.choice([line, line, line, line, f"{line} {draw.choice(WORDS)}"]) for line in old]
    return "\n".join(difflib.unified_diff(old, new, "a/notes/db.md", "b/notes/db.md", lineterm=""))


def _read(folders: tuple[str, ...]) -> str:
    files = [path for folder in folders for path in sorted((BUNDLE / folder).rglob("*.md"))]
    return "\n".join(path.read_text(encoding="utf-8", errors="ignore") for path in files)[:60_000]
