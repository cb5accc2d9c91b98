"""A client on HTTP that dies in the middle: no lock stays, nothing is torn, and the server goes on."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

import mdmem
from mdmem.vault.journal import STAGING
from tests.serve.mcp.conftest import SECONDS, TOKEN, Served, on_http, run
from tests.serve.mcp.test_clients import to_http
from tests.speed import soak_most
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mdmem.facade.memory import Memory

WORKER = Path(__file__).with_name("client_worker.py")
MODES = ("auto", "legacy")
READING, CHANGING = (soak_most(MODES, quick=(number,)) for number in range(2))


@pytest.fixture(scope="module")
def vault_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served") / "memories"
    mdmem.init(root)
    (root / "notes").mkdir()
    return root


@pytest.fixture(scope="module")
def served(vault_root: Path) -> Iterator[Served]:
    with on_http(vault_root, "--structured") as server:
        yield server
        assert server.process.poll() is None
        server.process.terminate()
        assert server.process.stderr is not None
        # What the SDK says of its own is no matter of ours.
        assert os.path.join("mdmem", "mcp") not in server.process.stderr.read()


@contextmanager
def clients(served: Served, modes: Iterable[str], *given: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Clients in processes of their own, which are gone at the end."""
    with ExitStack() as stack:
        processes = []
        for mode in modes:
            arguments = [sys.executable, str(WORKER), served.url, TOKEN, mode, *given]
            process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
            processes.append(stack.enter_context(process))
            stack.callback(process.kill)
        yield processes


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    assert process.wait(SECONDS) == -signal.SIGKILL


def until_it_says(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    while (line := process.stdout.readline().strip()) != word:
        assert line, f"it ended before it said {word!r}"


def serves(served: Served, memory: Memory) -> None:
    """The server answers another client, and its locks are free for it and for this process."""

    async def work() -> None:
        async with to_http(served.url) as another:
            given = {"path": "notes/after.md", "content": "after it\n", "overwrite": True}
            result = await another.call_tool("write", given)
            assert not result.is_error, result.content
            result = await another.call_tool("search", {"query": "after"})
            (hit,) = result.structured_content["hits"]
            assert hit["path"] == "notes/after.md"

    run(work)
    assert memory.append("notes/after.md", "more").files
    assert memory.doctor().findings == ()


@pytest.mark.parametrize("mode", READING)
def test_a_client_killed_while_it_reads(served: Served, memory: Memory, vault_root: Path, mode: str) -> None:
    """Files come until there is progress to tell of: what the server sees come, it reads by itself."""
    numbers, said = iter(range(5_000)), bytearray()

    def has_progress(out: IO[str]) -> bool:
        for number in islice(numbers, 10):
            (vault_root / f"notes/read-{mode}-{number}.md").write_text(f"needle{mode}\n" * 30)
        with suppress(BlockingIOError):
            said.extend(os.read(out.fileno(), 1 << 16))
        return b"progress" in said

    with clients(served, [mode], "search", json.dumps({"query": f"needle{mode}"})) as (process,):
        until_it_says(process, "connected")
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        until(partial(has_progress, process.stdout))
        kill(process)
    serves(served, memory)
    written = len([*vault_root.glob(f"notes/read-{mode}-*")])
    assert memory.search(f"needle{mode}", limit=5).left_out == written - 5


@pytest.mark.parametrize("mode", CHANGING)
def test_a_client_killed_while_it_changes(
    served: Served, memory: Memory, vault_root: Path, mode: str
) -> None:
    """The change that has begun is done whole: every link leads to where the memory went."""
    (vault_root / f"notes/old-{mode}.md").write_text("# Old\n")
    links = [vault_root / f"notes/{mode}-{number}.md" for number in range(200)]
    for each in links:
        each.write_text(f"see [[old-{mode}]]\n")
    staging, moved = vault_root / STAGING, vault_root / f"notes/new-{mode}.md"
    given = {"source": f"notes/old-{mode}.md", "target": f"notes/new-{mode}.md"}
    with clients(served, [mode], "mv", json.dumps(given)) as (process,):
        until_it_says(process, "connected")
        until(lambda: moved.exists() or (staging.exists() and os.listdir(staging)))
        kill(process)
    until(lambda: moved.exists() and not os.listdir(staging))
    assert {each.read_text() for each in links} == {f"see [[new-{mode}]]\n"}
    assert not (vault_root / f"notes/old-{mode}.md").exists()
    serves(served, memory)


BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
HEAD = f"""\
POST /mcp HTTP/1.1
Host: {{host}}
Authorization: Bearer {TOKEN}
Content-Type: application/json
Accept: application/json, text/event-stream
Content-Length: {len(BODY)}

"""


def test_clients_that_disconnect_in_the_head_in_the_body_and_before_the_answer(
    served: Served, memory: Memory
) -> None:
    host = served.url.split("/")[2]
    name, _, port = host.partition(":")
    head = HEAD.format(host=host).replace("\n", "\r\n").encode()
    for sent in (head[:40], head + BODY.encode()[:20], head + BODY.encode()):
        for is_reset in (False, True):
            with socket.create_connection((name, int(port))) as connection:
                if is_reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(sent)
    serves(served, memory)
    assert memory.show("notes/after.md").text == "after it\nmore\n"
