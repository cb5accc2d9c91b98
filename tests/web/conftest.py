"""A vault in a repository that agents have changed, and the page of it: in this process, or served."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from mdmem.web.server import PageApp
from tests.git.conftest import VaultTree, set_up

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mdmem.facade.memory import Memory

TOKEN = "the-token-of-the-page"
HERE = "http://127.0.0.1:7"


class Page:
    """The page of some memories in this process; each request is one of a client that has the token."""

    def __init__(self, memory: Memory | None) -> None:
        self.app = PageApp(memory, TOKEN)  # type: ignore[arg-type]  # none is there to be asked

    def send(self, method: str, path: str, **given: Any) -> httpx2.Response:
        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(self.app)
            async with httpx2.AsyncClient(transport=transport, base_url=HERE) as client:
                headers = given.pop("headers", {"authorization": f"Bearer {TOKEN}"})
                return await client.request(method, path, headers=headers, **given)

        return anyio.run(ask)

    def get(self, name: str, /, status: int = 200, **query: Any) -> Any:
        answer = self.send("GET", f"/api/{name}", params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, name: str, /, status: int = 200, **body: Any) -> Any:
        answer = self.send("POST", f"/api/{name}", content=json.dumps(body))
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VaultTree:
    """Three memories in the last commit; an agent has changed one, made one and removed one."""
    set_up(monkeypatch)
    monkeypatch.chdir(tmp_path)
    tree = VaultTree(tmp_path / "work")
    tree.note("notes/a.md", "# A\n\n- one\n- two\n\nSee [[b]].\n")
    tree.note("notes/b.md", "# B\n\n- bee\n")
    tree.note("notes/gone.md", "# Gone\n")
    tree.commit()
    agent = tree.open("claude")
    agent.replace("notes/a.md", "- two", "- two now\n- three")
    agent.write("notes/new.md", "# New\n")
    agent.rm("notes/gone.md")
    return tree


@pytest.fixture
def page(tree: VaultTree) -> Page:
    return Page(tree.open("ada"))


class Served:
    """A page that a program serves."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process, self.address = process, process.stdout.readline().strip()
        self.url, _, self.token = self.address.partition("/#")
        self.port = int(self.url.rpartition(":")[2])
        headers = {"authorization": f"Bearer {self.token}"}
        self.warned = ""
        self.client = httpx2.Client(base_url=self.url, headers=headers, timeout=60)


@contextmanager
def serving(root: Path, *options: str, **environment: str) -> Iterator[Served]:
    """Serve the page of a vault; at the end it ends by a signal, and has said nothing more."""
    command = [sys.executable, "-m", "mdmem", "--vault", str(root), "web", *options]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env={**os.environ, **environment}, **pipes)  # type: ignore[call-overload]
    served = Served(process)
    try:
        yield served
    finally:
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        served.client.close()
    assert (out, error) == ("", served.warned)
