"""Sessions of the OpenAI Agents SDK: as its own `SQLiteSession` answers, and through its own `Runner`."""

from __future__ import annotations

import asyncio
import importlib
import json
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.memory import Session, SessionSettings, SQLiteSession
from openai import AsyncOpenAI

import mdmem
from mdmem.errors import ExtraMissing, Usage
from mdmem.serve.adapters.openai_agents import VaultSession
from tests.machine import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

set_tracing_disabled(True)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "agents"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "mdmem.serve.adapters.openai_agents")
    with pytest.raises(ExtraMissing, match="the package 'openai-agents' is not installed") as caught:
        importlib.import_module("mdmem.serve.adapters.openai_agents")
    assert "pip install '.[openai-agents]'" in str(caught.value)


def items(chance: random.Random, number: int) -> list[Any]:
    """Items of every form that the SDK keeps; some have the same id, and some no role."""
    call = f"call_{number}"
    forms: list[Any] = [
        {"role": "user", "content": f"text {number}"},
        {"role": "user", "content": [{"type": "input_text", "text": "ü\u2028"}, {"type": "input_image"}]},
        {
            "id": "__fake_id__",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": f"answer {number}", "annotations": []}],
        },
        {"type": "function_call", "call_id": call, "name": "look", "arguments": '{"a": 1}', "id": call},
        {"type": "function_call_output", "call_id": call, "output": ""},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "…"},
        {"type": "item_reference", "id": "msg_1"},
    ]
    return chance.choices(forms, k=chance.randint(0, 4))


def test_500_random_calls_are_answered_as_by_the_session_of_the_sdk(
    memory: mdmem.Memory, tmp_path: Path
) -> None:
    chance = random.Random(20260504)

    async def both() -> None:
        ours, theirs = VaultSession("t:1", memory), SQLiteSession("t:1", tmp_path / "theirs.db")
        names = ["add_items"] * 8 + ["get_items"] * 6 + ["pop_item"] * 5 + ["clear_session"]
        for number in range(500):
            name = chance.choice(names)
            given: list[Any] = []
            if name == "add_items":
                given = [items(chance, number)]
            elif name == "get_items":
                given = [chance.choice([None, None, 0, 1, 3, 100, -1])]
            answers = [await getattr(each, name)(*given) for each in (ours, theirs)]
            assert answers[0] == answers[1], (number, name, given)
        assert await ours.get_items() == await theirs.get_items()
        theirs.close()

    asyncio.run(both())


def test_items_come_back_with_their_fields_in_order(memory: mdmem.Memory) -> None:
    given = {"type": "function_call_output", "output": "x", "call_id": "c", "extra": {"z": 1, "a": [None]}}

    async def there_and_back() -> Any:
        session = VaultSession("t", memory)
        await session.add_items([cast("Any", given)])
        return (await session.get_items())[0]

    assert json.dumps(asyncio.run(there_and_back())) == json.dumps(given)
    assert memory.sessions.history("t")[0].role == "tool"


def test_it_is_a_session_as_the_sdk_has_it_with_its_limit(memory: mdmem.Memory) -> None:
    async def limited() -> tuple[Any, Any]:
        session = VaultSession("t", memory, SessionSettings(limit=2))
        assert isinstance(session, Session)
        await session.add_items([cast("Any", {"role": "user", "content": text}) for text in "abc"])
        return await session.get_items(), await session.get_items(3)

    two, three = asyncio.run(limited())
    assert ([each["content"] for each in two], len(three)) == (["b", "c"], 3)


def test_what_is_no_item_is_refused_and_none_of_its_list_is_kept(memory: mdmem.Memory) -> None:
    session = VaultSession("t", memory)
    wrong = cast("Any", [{"role": "user", "content": "a"}, {"content": "b"}])
    with pytest.raises(Usage):
        asyncio.run(session.add_items(wrong))
    assert asyncio.run(session.get_items()) == []


async def add_each(root: str, name: str, count: int) -> None:
    session = VaultSession("t", mdmem.open(root))
    for number in range(count):
        await session.add_items([cast("Any", {"role": "user", "content": f"{name} {number}"})])


def keeps_all(memory: mdmem.Memory, count: int) -> None:
    """All that two have added there is kept, of each in its order."""
    kept = [cast("Any", item)["content"] for item in asyncio.run(VaultSession("t", memory).get_items())]
    assert len(kept) == 2 * count
    for name in ("a", "b"):
        assert [text for text in kept if text.startswith(name)] == [f"{name} {n}" for n in range(count)]


def test_two_threads_keep_40_of_40_items(memory: mdmem.Memory) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: asyncio.run(add_each(memory.root, name, 20)), ("a", "b")))
    keeps_all(memory, 20)


@pytest.mark.soak
def test_two_processes_keep_400_of_400_items(memory: mdmem.Memory) -> None:
    program = (
        "import asyncio, sys; from tests.serve.adapters.test_openai_agents import add_each; "
        "asyncio.run(add_each(sys.argv[1], sys.argv[2], 200))"
    )
    commands = [[sys.executable, "-c", program, memory.root, name] for name in ("a", "b")]
    running = [subprocess.Popen(each, cwd=CHECKOUT) for each in commands]
    assert [process.wait(90) for process in running] == [0, 0]
    keeps_all(memory, 200)


class ChatModel(ThreadingHTTPServer):
    """Speaks chat completions: calls a tool in its second turn, and keeps what it is asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ChatHandler)
        self.asked: list[list[Any]] = []

    def reply(self, messages: list[Any]) -> dict[str, Any]:
        self.asked.append(messages)
        if messages[-1]["role"] == "user" and "look" in messages[-1]["content"]:
            call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"role": "assistant", "content": f"answer {len(self.asked)}"}


class ChatHandler(BaseHTTPRequestHandler):
    server: ChatModel

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = self.server.reply(asked["messages"])
        reason = "tool_calls" if "tool_calls" in message else "stop"
        answer = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "local",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@function_tool
def look() -> str:
    """Look."""
    return "seen"


def test_a_runner_holds_three_turns_each_with_what_was_said_before(
    memory: mdmem.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.get_platform", lambda: "Unknown")  # it reads what system this is
    model = ChatModel()
    thread = threading.Thread(target=model.serve_forever)
    thread.start()

    async def turns() -> list[str]:
        url = f"http://127.0.0.1:{model.server_address[1]}/v1"
        async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            agent = Agent(
                name="a", model=OpenAIChatCompletionsModel("local", openai_client=client), tools=[look]
            )
            said = []
            for text in ("hello", "look there", "and then?"):
                session = VaultSession("t", mdmem.open(memory.vault.root))  # as after a restart
                said.append((await Runner.run(agent, text, session=session)).final_output)
            return said

    try:
        assert asyncio.run(turns()) == ["answer 1", "answer 3", "answer 4"]
    finally:
        model.shutdown()
        thread.join()
        model.server_close()
    roles = [message["role"] for message in model.asked[-1]]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert model.asked[-1][4]["content"] == "seen"
    assert [message.role for message in memory.sessions.history("t")] == [*roles, "assistant"]
