"""Patterns and schemas of strangers, through the program and the server: each call ends, others go on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem.cli.main import main
from mdmem.document.text.regex import Allowance
from tests.serve.mcp.conftest import command
from tests.serve.mcp.test_stdio import call, lines_of
from tests.speed import is_all

# It doubles with each character; the server and each command gets a second of processor time for it.
PATTERN = "(a|aa)+$"
TEXT = "a" * 60 + "?"
LONGEST = 60  # seconds until a test takes something for hanging


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not is_all:  # less is allowed in this process, and it is used up sooner
        monkeypatch.setattr("mdmem.vault.schema.meter.MOST_SECONDS", 0.2)
        monkeypatch.setattr("mdmem.vault.schema.meter.MOST_STEPS", 30_000)
        monkeypatch.setattr(Allowance.__init__, "__defaults__", (0.2,))
    root = Path(mdmem.init(tmp_path / "memories").root)
    mdmem.open(root).write("notes/a.md", f"---\ntype: own\nk: {TEXT}\n---\n{TEXT}\n")
    return root


def program(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> tuple[int, str]:
    code = main(["--vault", str(root), *arguments])
    return code, "".join(capsys.readouterr())


@pytest.mark.parametrize("where", [["--in", "notes"], ["notes/a.md"]], ids=" ".join)
def test_a_replacement_by_a_pattern_that_never_ends_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str], where: list[str]
) -> None:
    before = (root / "notes/a.md").read_bytes()
    code, told = program(capsys, root, "replace", "--regex", "--all", *where, PATTERN, "x")
    assert (code, "was stopped" in told, PATTERN in told) == (2, True, True), told
    assert (root / "notes/a.md").read_bytes() == before


# A pattern; 22 levels of a reference twice.
SCHEMAS: dict[str, Any] = {
    "pattern": {"properties": {"k": {"pattern": PATTERN}}},
    "doubled": {"$ref": "#/$defs/d0"}
    | {
        "$defs": {
            **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(22)},
            "d22": {"type": "object"},
        }
    },
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_write_that_a_schema_makes_endless_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str], schema: str
) -> None:
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/own.json").write_text(json.dumps(SCHEMAS[schema]))
    fields = f"---\ntype: own\nk: {TEXT}\n---\nnew\n"
    code, told = program(capsys, root, "write", "notes/b.md", fields)
    assert code == 2, told
    assert "schema own" in told
    assert "Traceback" not in told
    assert not (root / "notes/b.md").exists()


class Server:
    """A server on standard input and output."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(command(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send(lines_of())
        self.answer(0)

    def send(self, lines: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(lines)
        self.process.stdin.flush()

    def ask(self, message: dict[str, Any]) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def answer(self, *numbers: int) -> dict[str, Any]:
        """The next answer to one of these requests."""
        assert self.process.stdout
        for line in self.process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") in numbers:
                return answer
        raise EOFError

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(LONGEST)
        self.process.stdout.close()


SLOW = call(1, "replace", path="notes/a.md", old=PATTERN, new="x", regex=True)


def test_the_server_answers_others_while_a_pattern_runs_and_then_says_that_it_was_stopped(root: Path) -> None:
    server = Server(root)
    server.ask(SLOW)
    others = 0
    while True:
        server.ask(call(2 + others, "ls"))
        answer = server.answer(1, 2 + others)
        if answer["id"] == 1:
            break
        others += 1
    (told, _) = answer["result"]["content"]
    assert (answer["result"]["isError"], PATTERN in told["text"]) == (True, True)
    assert "was stopped after" in told["text"]
    assert others > 10
    server.close()
    assert server.process.returncode == 0


@pytest.mark.soak
def test_a_server_ends_with_its_input_while_a_pattern_runs(root: Path) -> None:
    server = Server(root)
    server.ask(SLOW)
    server.ask(call(2, "ls"))
    server.answer(2)
    server.close()
    assert server.process.returncode == 0


@pytest.mark.soak
def test_a_call_whose_pattern_runs_can_be_cancelled(root: Path) -> None:
    server = Server(root)
    server.ask(SLOW)
    server.ask({"method": "notifications/cancelled", "params": {"requestId": 1}})
    server.ask(call(2, "ls"))
    assert "result" in server.answer(2)
    server.close()
    assert server.process.returncode == 0
