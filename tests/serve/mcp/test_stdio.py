"""Standard input and output: nothing but the protocol, and no lock that outlives a client."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.cli.main import main
from mdmem.serve.mcp.tools import TOOLS
from mdmem.vault.journal import STAGING
from tests.git.conftest import VaultTree, set_up
from tests.serve.mcp.conftest import command, serve_here
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mdmem.facade.memory import Memory

START: list[dict[str, Any]] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "a test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
]


UNANSWERED = -1  # a call that the SDK cannot read


def lines_of(*messages: dict[str, Any], client: str = "a test") -> bytes:
    """The first messages of a client of that name, and then these."""
    told = copy.deepcopy((*START, *messages))
    told[0]["params"]["clientInfo"]["name"] = client
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in told)


def call(number: int, name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def exchange(
    root: Path,
    *messages: dict[str, Any],
    options: tuple[str, ...] = (),
    scope: tuple[str, ...] = (),
    client: str = "a test",
) -> dict[int, dict[str, Any]]:
    """What a server answers, by the number of the request; each line that it prints is of the protocol."""
    talking = partial(talk, messages=messages, client=client)
    return {each["id"]: each for each in serve_here(root, talking, *options, scope=scope)}


def talk(to: IO[bytes], answers: IO[bytes], messages: Sequence[dict[str, Any]], client: str) -> list[Any]:
    """Ask, shut the input once all is answered, and return what was printed."""
    awaited = {message["id"] for message in (*START, *messages) if "id" in message} - {UNANSWERED}
    found = []
    to.write(lines_of(*messages, client=client))
    to.flush()
    while awaited:
        found.append(json.loads(answers.readline()))
        awaited.discard(found[-1].get("id"))
    to.close()
    return [*found, *map(json.loads, answers)]


def test_nothing_but_the_protocol_is_on_standard_output_and_half_a_character_ends_nothing(
    vault_root: Path,
) -> None:
    (vault_root / "broken.md").write_bytes(b"\xff")
    asked = [call(1, "grep", pattern="x"), call(2, "search", query="x"), call(3, "show")]
    asked += [call(UNANSWERED, "show", path="\ud800.md"), {"id": 4, "method": "tools/list"}]
    pipe = subprocess.PIPE
    with subprocess.Popen(command(vault_root), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        answers = {each.get("id"): each for each in talk(process.stdin, process.stdout, asked, "a test")}
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 0
    assert answers.keys() - {UNANSWERED, None} == {0, 1, 2, 3, 4}
    assert answers[3]["result"]["isError"] is True


def test_read_only_is_what_the_host_says(vault_root: Path) -> None:
    answers = exchange(
        vault_root,
        {"id": 1, "method": "tools/list"},
        call(2, "write", path="a.md", content="x"),
        options=("--read-only",),
    )
    tools = answers[1]["result"]["tools"]
    assert {tool["name"] for tool in tools} == {tool.name for tool in TOOLS if not tool.changes}
    assert all(tool["annotations"] == {"readOnlyHint": True, "openWorldHint": False} for tool in tools)
    assert answers[2]["result"]["isError"] is True
    assert not (vault_root / "a.md").exists()


def test_tools_say_what_they_may_do(vault_root: Path) -> None:
    tools = exchange(vault_root, {"id": 1, "method": "tools/list"})[1]["result"]["tools"]
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    changing = {"readOnlyHint": False, "openWorldHint": False}
    assert hints["show"] == {"readOnlyHint": True, "openWorldHint": False}
    assert hints["mv"] == {**changing, "destructiveHint": False, "idempotentHint": False}
    assert hints["write"] == {**changing, "destructiveHint": True, "idempotentHint": True}
    told = {"name", "title", "description", "inputSchema", "annotations"}
    assert all(tool.keys() == told for tool in tools)


def test_a_client_that_goes_away_in_a_call_leaves_no_lock(vault_root: Path, memory: Memory) -> None:
    calls = [
        call(number, "section", path="notes/a.md", text=f"- {number}", where="append")
        for number in range(1, 41)
    ]
    process = subprocess.Popen(command(vault_root), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines_of(*calls))
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.close()
    process.wait(60)
    memory.append("notes/a.md", "after")
    lines = memory.show("notes/a.md").text.splitlines()
    assert lines[-1] == "after"
    assert len(set(lines)) == len(lines)


def test_a_server_that_is_killed_in_a_call_leaves_no_lock_and_nothing_half_done(
    vault_root: Path, memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program finds what was written a moment ago, before and after."""
    (vault_root / "notes").mkdir()
    for number in range(400):
        (vault_root / f"notes/{number}.md").write_text("one\n" * 50)

    def found(word: str) -> str:
        main(["--vault", str(vault_root), "search", word])
        return capsys.readouterr().out.partition(":")[0]

    with subprocess.Popen(command(vault_root), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(lines_of(call(1, "search", query="x")))
        process.stdin.flush()
        for word in ("zqone", "zqtwo", "zqthree"):
            (vault_root / f"{word}.md").write_text(f"{word}\n")
            assert found(word) == f"{word}.md"
        process.stdin.write(lines_of(call(2, "mv", source="notes", target="old")))
        process.stdin.flush()
        staging = vault_root / STAGING
        until(lambda: (vault_root / "old").exists() or (staging.exists() and os.listdir(staging)))
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    memory.append("after.md", "x")
    found_in = {each.path.partition("/")[0] for each in memory.ls() if "/" in each.path}
    assert found_in in ({"notes"}, {"old"})
    assert len(memory.ls()) == 404
    (vault_root / "late.md").write_text("zqlate\n")
    assert found("zqlate") == "late.md"


@cases(
    "client, actor",
    [
        ("claude-code", "claude-code"),
        ("x\n\nMdmem-Agent: ada\r\nMdmem-Id: 1", "x Mdmem-Agent: ada Mdmem-Id: 1"),
        ("x\u2028\u0085Mdmem-Agent: ada\x1b[2J", "x<U+2028><U+0085>Mdmem-Agent: ada<U+001B>[2J"),
        ("edoc\u202eada", "edoc<U+202E>ada"),
        ("n" * 10_000, "n" * 99 + "…"),
        ("\u202e" * 10_000, ("<U+202E>" * 13)[:99] + "…"),
        (" \n", ""),
    ],
)
def test_the_name_of_a_client_is_one_line_and_forges_no_trailer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, actor: str
) -> None:
    set_up(monkeypatch)
    tree = VaultTree(tmp_path)
    exchange(tree.root / "memories", call(1, "write", path="a.md", content="x\n"), client=client)
    memory = tree.open()
    assert [entry.actor for entry in memory.history()] == [actor]
    message = memory.git.commit().message
    names = [line.partition(":")[0] for line in message.splitlines()[2:]]
    assert names == ["Mdmem-Op", "Mdmem-Id", *(["Mdmem-Agent"] if actor else [])]
    (fact,) = memory.git.blame("a.md")
    assert (fact.agent, fact.sure) == (actor, True)


def test_an_actor_that_is_given_is_the_one_who_makes_the_changes(vault_root: Path) -> None:
    given = call(1, "write", path="a.md", content="x\n")
    exchange(vault_root, given, scope=("--actor", "reviewer"), client="claude-code")
    assert [entry.actor for entry in mdmem.open(vault_root).history()] == ["reviewer"]
