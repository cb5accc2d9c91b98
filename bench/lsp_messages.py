"""Messages for the language server by chance: out of order, cancelled, malformed, lying about the disk."""

from __future__ import annotations

import copy
import json
import random
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import mdmem

sys.path.append(str(Path(__file__).parents[1]))

from tests.editor.lsp.client import Client, uri
from tests.index.test_sync import rows_of

_SECONDS = 60.0
_ROUND = 250  # messages, behind which a plain question must be answered rightly
_RECENT = 5  # questions that may be cancelled
_STEMS = ("a", "b", "c", "in/a", "in/d", "Ä 😀")
_LINES = (
    *(
        "# One",
        "## Two",
        "text ^f1",
        "---",
        "title: T",
        "id: x1",
        "tags: [t]",
        "type: note",
        "[[a]] [[b#Two]]",
    ),
    *(
        "😀 [[in/a#^f1|x]]",
        "[x](in/d.md)",
        "![[p.png]]",
        "`../src/app.py#L1-L2`",
        "#t",
        "```",
        "[[",
        "](",
        "\u2028",
    ),
    *("derived_from: '[[b]]'", "superseded_by: a.md", "<!-- mdmem: silence dangling-link -->", "", "", "\r"),
)
_ODD_TEXTS = (
    "\0",
    "\ud800",
    "a\udfff\n[[b]]",
    "\ufeff# B\n",
    "---\na: &a [*a]\n---\n",
    "x" * 20_000,
    "[[" * 500,
    "",
)
_ODD_URIS = (
    "",
    "file://",
    "file:///",
    "file:///%00",
    "file://elsewhere/a.md",
    "file:///nowhere/at/all.md",
    "untitled:Untitled-1",
    "https://example.com/a.md",
    "file:///a/%ff%fe.md",
    "file:///%ud800",
    "\ud800",
    "//[",
    "no uri",
)
_ODD_VALUES: tuple[Any, ...] = (None, True, -1, 2**31, 2**64, 1.5, "", "x", "\0", [], {}, [[]], {"a": None})
_NUMBERS = (0, 0, 1, 1, 2, 3, 5, 40, 10_000, 2**31 - 1, 2**31, -1, -(2**40))
_NEW_NAMES = ("new", "a", "", "../../out", "x/y", "\0", "\ud800", "a" * 300, "[[b]]", "#", ".mdmem/config")
_ASKED = (
    *("completion", "definition", "references", "hover", "documentLink", "documentSymbol", "codeAction"),
    *("prepareRename", "rename", "willSaveWaitUntil", "formatting", "foldingRange", "semanticTokens/full"),
)
_PLAIN, _THERE = "plain.md", "plainly-there.md"
_PLAIN_TEXT = "# Plain\n\n😀 [[plainly-there]]\n"


class Met(NamedTuple):
    """What came of it: how many messages, questions that are owed an answer, refusals; and what was wrong."""

    sent: int
    asked: int
    refused: int
    wrong: list[str]


def play(folder: Path, count: int, seed: int) -> Met:
    """Send so many messages to a server in a new vault in `folder`, and look at what is left of both."""
    root = folder / "memories"
    mdmem.init(root)
    (root / _PLAIN).write_text(_PLAIN_TEXT)
    (root / _THERE).write_text("# There\n")
    wrong: list[str] = []
    with Client(cwd=folder) as client:
        early = client.start("textDocument/hover", {})[1]
        client.initialize(folder)
        wait([early], _SECONDS)
        game = _Game(root, client, random.Random(seed))
        for number in range(count):
            game.step()
            if number % _ROUND == 0 or number == count - 1:
                wrong += game.look()
        wrong += game.settle()
    if client.process.returncode:
        wrong.append(f"it ended with {client.process.returncode}")
    if client.errors:
        wrong.append(f"it wrote {client.errors!r}")
    wrong += _compare_indexes(root, folder / "again")
    refused = sum(future.exception() is not None for future in game.owed.values() if future.done())
    return Met(count, len(game.owed), refused, wrong)


def _compare_indexes(root: Path, other: Path) -> list[str]:
    """Compare the index that is there, made current, with one made from nothing."""
    shutil.copytree(root, other, ignore=shutil.ignore_patterns("local"))
    known, made = (mdmem.open(each) for each in (root, other))
    for memory in (known, made):
        memory.sync()
    there, fresh = rows_of(known.index), rows_of(made.index)
    return [f"the index differs in {part}" for part in fresh if fresh[part] != there[part]]


class _Game:
    """A client that keeps to nothing, and other programs that write what it has open."""

    def __init__(self, root: Path, client: Client, chance: random.Random) -> None:
        self._root, self._client, self._chance = root, client, chance
        self._versions: dict[str, int] = {}
        self._number = 0
        self.owed: dict[str, Future[Any]] = {}
        kinds: tuple[tuple[Callable[[], None], int], ...] = (
            (self._open, 12),
            (self._change, 30),
            (self._save, 8),
            (self._close, 5),
            (self._write, 4),
            (self._ask, 14),
            (self._cancel, 6),
            (self._tell, 4),
            (self._break, 14),
        )
        self._kinds, self._weights = zip(*kinds, strict=True)

    def step(self) -> None:
        self._chance.choices(self._kinds, self._weights)[0]()

    # -- what is made up -----------------------------------------------------------------------------------

    def _text(self) -> str:
        chance = self._chance
        if chance.random() < 0.08:
            return chance.choice(_ODD_TEXTS)
        end = chance.choice(("\n", "\n", "\r\n", "\r"))
        return end.join(chance.choices(_LINES, k=chance.randint(0, 12))) + chance.choice((end, ""))

    def _file(self) -> Path:
        return self._root / f"{self._chance.choice(_STEMS)}.md"

    def _uri(self) -> str:
        return self._chance.choice(_ODD_URIS) if self._chance.random() < 0.08 else uri(self._file())

    def _position(self) -> dict[str, int]:
        return {"line": self._chance.choice(_NUMBERS), "character": self._chance.choice(_NUMBERS)}

    def _version(self, named: str) -> int:
        """The next version; or any other one."""
        known = self._versions.get(named, 0) + 1
        version = known if self._chance.random() < 0.9 else self._chance.choice(_NUMBERS)
        self._versions[named] = max(known, version)
        return version

    # -- what is sent --------------------------------------------------------------------------------------

    def _notify(self, method: str, params: Any) -> None:
        self._client.notify(method, params)

    def _open(self) -> None:
        file = self._file()
        text = self._text()
        with suppress(OSError, ValueError):
            text = file.read_bytes().decode() if self._chance.random() < 0.5 else text
        named = uri(file) if self._chance.random() < 0.92 else self._uri()
        self._versions[named] = self._chance.choice((1, 1, 1, 0, 7))
        document = {"uri": named, "languageId": "markdown", "version": self._versions[named], "text": text}
        self._notify("textDocument/didOpen", {"textDocument": document})

    def _change(self) -> None:
        named = self._uri()
        changes: list[Any] = [{"text": self._text()} for _ in range(self._chance.choice((1, 1, 1, 0, 2)))]
        if changes and self._chance.random() < 0.05:
            changes[-1]["range"] = {"start": self._position(), "end": self._position()}
        document = {"uri": named, "version": self._version(named)}
        self._notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def _save(self) -> None:
        """Say that something was saved, which seldom is so."""
        self._notify("textDocument/didSave", {"textDocument": {"uri": self._uri()}})

    def _close(self) -> None:
        self._notify("textDocument/didClose", {"textDocument": {"uri": self._uri()}})

    def _write(self) -> None:
        """Let another program write, or take away, a file."""
        file = self._file()
        with suppress(OSError):
            if self._chance.random() < 0.2:
                file.unlink()
            else:
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(self._text().encode("utf-8", "surrogatepass"))

    def _made(self) -> tuple[str, Any]:
        """A question as the protocol has it."""
        chance = self._chance
        method = chance.choice((*_ASKED, "symbol", "willRenameFiles", "executeCommand"))
        if method == "symbol":
            return "workspace/symbol", {"query": self._text()[:20]}
        if method == "willRenameFiles":
            files = [{"oldUri": self._uri(), "newUri": self._uri()} for _ in range(chance.randint(0, 2))]
            return "workspace/willRenameFiles", {"files": files}
        if method == "executeCommand":
            given = [chance.choice(_ODD_VALUES) for _ in range(chance.randint(0, 4))]
            command = chance.choice(("mdmem.applyEdit", "no.such.command"))
            return "workspace/executeCommand", {"command": command, "arguments": given}
        place = self._position()
        params = {
            "textDocument": {"uri": self._uri()},
            "position": place,
            "range": {"start": place, "end": self._position()},
            "context": {"includeDeclaration": True, "diagnostics": []},
            "newName": chance.choice(_NEW_NAMES),
            "reason": 1,
            "options": {"tabSize": 4, "insertSpaces": True},
        }
        return f"textDocument/{method}", params

    def _ask(self) -> None:
        self._send_owed(*self._made())

    def _send_owed(self, method: str, params: Any) -> None:
        number, future = self._client.start(method, params)
        self.owed[json.dumps(number)] = future

    def _cancel(self) -> None:
        recent = [json.loads(number) for number in [*self.owed][-_RECENT:]]
        given = self._chance.choice([*recent, *recent, *_ODD_VALUES, 10**9])
        self._notify("$/cancelRequest", {"id": given})

    def _tell(self) -> None:
        """Tell what comes out of order, or what nobody has asked for."""
        chance = self._chance
        folders = {"added": [{"uri": self._uri(), "name": "x"}], "removed": []}
        method, params = chance.choice(
            (
                ("initialized", {}),
                ("workspace/didChangeWorkspaceFolders", {"event": folders}),
                ("workspace/didChangeWatchedFiles", {"changes": [{"uri": self._uri(), "type": 2}]}),
                ("workspace/didChangeConfiguration", {"settings": chance.choice(_ODD_VALUES)}),
                ("textDocument/willSave", {"textDocument": {"uri": self._uri()}, "reason": 1}),
                ("notebookDocument/didOpen", {"notebookDocument": {}, "cellTextDocuments": []}),
                ("$/setTrace", {"value": "verbose"}),
                ("$/progress", {"token": 1, "value": None}),
                ("no/such/thing", chance.choice(_ODD_VALUES)),
            )
        )
        self._notify(method, params)

    def _break(self) -> None:
        """Send what is no message, or one with something wrong in it."""
        chance = self._chance
        self._number += 1
        method, params = self._made()
        number: Any = f"broken {self._number}"
        message: Any = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        way = chance.randrange(8)
        if way <= 2:
            message["params"] = _damaged(chance, params)
            self.owed[json.dumps(number)] = self._client.expect(number)
        elif way == 3:
            del message["id"]
            if chance.random() < 0.7:
                message["params"] = _damaged(chance, params)
                name = chance.choice(("didOpen", "didChange", "didSave", "didClose"))
                message["method"] = f"textDocument/{name}"
        elif way == 4:
            message[chance.choice(("jsonrpc", "id", "method"))] = chance.choice(_ODD_VALUES)
        elif way == 5:
            del message[chance.choice(("jsonrpc", "method"))]
        elif way == 6:
            message = chance.choice(
                (
                    *_ODD_VALUES,
                    [message],
                    {"jsonrpc": "2.0", "id": number, "result": None},
                    {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
                    {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": {"capabilities": {}}},
                )
            )
        else:
            body = json.dumps(message).encode()
            cut = body[: chance.randrange(len(body))]
            self._client.send_raw(chance.choice((cut, cut + b"\xff", b"{", b"nonsense", b"\x00" * 5)))
            return
        self._client.send(message)

    # -- what must be so -----------------------------------------------------------------------------------

    def look(self) -> list[str]:
        """Ask a plain question, and say what is wrong with the answer."""
        client, file = self._client, self._root / _PLAIN
        client.open(file, _PLAIN_TEXT)
        start, end = _PLAIN_TEXT.index("plainly") - 9, _PLAIN_TEXT.index("]]") - 9
        found = client.ask("definition", file, {"line": 2, "character": start + 3})
        wrong = []
        # In units of UTF-16 the emoji counts twice.
        if [each["targetUri"] for each in found or ()] != [uri(self._root / _THERE)]:
            wrong.append(f"behind {len(self.owed)} questions, a definition was {found}")
        links = client.ask("documentLink", file)
        places = [each["range"] for each in links or ()]
        line = {"start": {"line": 2, "character": start + 1}, "end": {"line": 2, "character": end + 1}}
        if places != [line]:
            wrong.append(f"behind {len(self.owed)} questions, links were {links}")
        client.shut(file)
        return wrong

    def settle(self) -> list[str]:
        """Wait for all answers, and say which did not come, or came twice."""
        waiting = wait(self.owed.values(), _SECONDS).not_done
        wrong = [f"{len(waiting)} questions were not answered"] if waiting else []
        twice = [number for number in self.owed if self._client.answered[number] > 1]
        return [*wrong, *(f"{number} was answered more than once" for number in twice)]


def _damaged(chance: random.Random, params: Any) -> Any:
    """Parameters with one thing in them taken away, or of another kind."""
    if chance.random() < 0.1:
        return chance.choice(_ODD_VALUES)
    damaged = copy.deepcopy(params)
    place = damaged
    while True:
        name = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[name]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.6:
            place = inner
        elif chance.random() < 0.4:
            del place[name]
            return damaged
        else:
            place[name] = chance.choice(_ODD_VALUES)
            return damaged
