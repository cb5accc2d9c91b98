"""The server: memories only for who has the token and comes from the page, and no answer without a bound."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from mdmem.cli.main import main
from mdmem.web import server
from tests.tables import cases
from tests.waiting import until
from tests.web.conftest import HERE, TOKEN, Page, serving

if TYPE_CHECKING:
    from tests.git.conftest import VaultTree

GIVEN = {"authorization": f"Bearer {TOKEN}"}


@cases(
    "headers, status",
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": TOKEN}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": "Bearer é"}, 401),
        ({"cookie": f"token={TOKEN}"}, 401),
        ({**GIVEN, "host": "evil.example"}, 421),
        ({**GIVEN, "host": "evil.example:7"}, 421),
        ({**GIVEN, "host": "127.0.0.1.evil.example"}, 421),
        ({**GIVEN, "host": "127.0.0.1:7.evil.example"}, 421),
        ({**GIVEN, "host": "127.0.0.1:"}, 421),
        ({**GIVEN, "host": "127.0.0.2:7"}, 421),
        ({**GIVEN, "host": "[::1]:7"}, 421),
        ({**GIVEN, "host": "LOCALHOST:7"}, 421),
        ({**GIVEN, "host": ""}, 421),
        ({**GIVEN, "origin": "http://evil.example"}, 403),
        ({**GIVEN, "origin": "null"}, 403),
        ({**GIVEN, "origin": ""}, 403),
        ({**GIVEN, "origin": "http://127.0.0.1:8"}, 403),
        ({**GIVEN, "origin": "http://localhost:7"}, 403),
        ({**GIVEN, "origin": "https://127.0.0.1:7"}, 403),
        ({**GIVEN, "origin": f"{HERE} http://evil.example"}, 403),
        ({**GIVEN, "host": "localhost:9", "origin": HERE}, 403),
    ],
)
def test_who_has_no_token_or_comes_from_elsewhere_is_refused_before_a_memory_is_asked(
    headers: dict[str, str], status: int
) -> None:
    page = Page(None)
    told = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:7", **headers}.items()]
    asked = [("GET", "/api/review"), ("POST", "/api/commit"), ("OPTIONS", "/api/x"), ("GET", "/api/")]
    for method, path in asked:
        assert page.send(method, path, headers=told, content=b"{}").status_code == status


@pytest.mark.parametrize(
    "twice", [("authorization", f"Bearer {TOKEN}"), ("host", HERE[7:]), ("origin", HERE)]
)
def test_a_header_that_comes_twice_is_refused(twice: tuple[str, str]) -> None:
    given = [*{"host": HERE[7:], "origin": HERE, **GIVEN}.items(), twice]
    assert Page(None).send("GET", "/api/review", headers=given).status_code in {401, 403, 421}


def test_a_page_under_a_forwarded_port_is_the_page(page: Page) -> None:
    for host in ("127.0.0.1:7", "127.0.0.1:9999", "localhost", "localhost:80"):
        headers = {**GIVEN, "host": host, "origin": f"http://{host}"}
        assert page.send("GET", "/api/review", headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "X"])
def test_a_method_does_what_it_is_for_and_nothing_else(method: str) -> None:
    page = Page(None)
    assert page.send(method, "/").status_code == (200 if method in {"GET", "HEAD"} else 405)
    if method not in {"GET", "POST"}:
        for name in ("review", "memory", "reject", "undo", "commit", "changes"):
            assert page.send(method, f"/api/{name}").status_code == 404
    assert page.send("GET", "/api/reject", params={"path": "a.md"}).status_code == 404
    assert page.send("POST", "/api/review", content=b"{}").status_code == 404


def test_the_files_of_the_page_need_no_token_and_every_answer_is_safe(page: Page) -> None:
    for path, status in {"/": 200, "/app.css": 200, "/app.js": 200, "/api/review": 401, "/x": 404}.items():
        answer = page.send("GET", path, headers={})
        assert answer.status_code == status
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        assert not re.search("unsafe|https?:|[*]|data:", policy)
        assert "access-control-allow-origin" not in answer.headers
        assert "set-cookie" not in answer.headers
    for path in ("/../answers.py", "/%2e%2e/answers.py", "/app.js/..%2f..%2fserver.py", "//etc/passwd"):
        assert page.send("GET", path, headers={}).status_code == 404


@cases(
    "body, status",
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b'{"path": "notes/a.md"}', 400),
        (b'{"path": "notes/a.md", "rows": ["x"], "more": 1}', 400),
        (b'{"path": "notes/a.md", "rows": "x"}', 400),
        (b'{"path": "notes/a.md", "rows": [1]}', 400),
        (b'{"path": null, "rows": []}', 400),
        (b'{"path": "\\ud800", "rows": []}', 400),
        (b'{"path": "../a.md", "rows": []}', 400),
        (b'{"path": "none.md", "rows": []}', 404),
        (b"[" * 200_000, 400),
        (b'{"path": "' + b"x" * 5_000_000 + b'"}', 413),
    ],
)
def test_a_body_that_means_nothing_is_refused_with_a_reason(page: Page, body: bytes, status: int) -> None:
    answer = page.send("POST", "/api/reject", content=body)
    assert answer.status_code == status
    assert answer.json()["error"].keys() == {"code", "message", "hint"}


def test_a_client_that_sends_its_request_slowly_is_refused(
    tree: VaultTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_BODY_SECONDS", 0.05)
    sent: list[Any] = []
    body = threading.Event()

    async def receive() -> Any:
        import anyio

        body.set()
        await anyio.sleep_forever()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", GIVEN["authorization"].encode())]
    scope = {"type": "http", "method": "POST", "path": "/api/undo", "query_string": b"", "headers": headers}

    async def ask() -> None:
        await Page(tree.memory).app(scope, receive, send)

    import anyio

    anyio.run(ask)
    assert body.is_set()
    assert sent[0]["status"] == 400
    assert "did not end" in json.loads(sent[1]["body"])["error"]["message"]


def test_a_served_page_is_on_this_machine_alone_with_a_token_and_a_port_of_its_own(tree: VaultTree) -> None:
    root = tree.root / "memories"
    with serving(root) as one, serving(root) as other:
        assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/#\S{43}", one.address)
        assert (one.port, one.token) != (other.port, other.token)
        assert one.token != other.token
        assert one.client.get("/api/review").json()["rows"] == 4
        assert httpx2.get(f"{one.url}/api/review").status_code == 401
        assert (
            one.client.get("/api/review", headers={"authorization": f"Bearer {other.token}"}).status_code
            == 401
        )
        if sys.platform == "linux":
            rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            listening = {row[1] for row in rows if row[1].endswith(f":{one.port:04X}") and row[3] == "0A"}
            assert listening == {f"0100007F:{one.port:04X}"}


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_its_packages_the_command_names_the_extra(
    tree: VaultTree, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["--vault", str(tree.root / "memories"), "web"]) == 2
    assert "web" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_a_served_page_holds_out_against_clients_that_say_too_much_or_nothing(tree: VaultTree) -> None:
    with serving(tree.root / "memories") as served, contextlib.ExitStack() as stack:
        place = ("127.0.0.1", served.port)
        with socket.create_connection(place, timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n" + b"a: %b\r\n" % (b"b" * 1000) * 40)
            assert connection.recv(12) == b"HTTP/1.1 400"
        for _ in range(140):
            stack.enter_context(socket.create_connection(place))
        assert httpx2.get(served.url, timeout=20).status_code == 503
        stack.close()
        until(lambda: httpx2.get(served.url).status_code == 200)
        served.warned = "WARNING:  Invalid HTTP request received.\nWARNING:  Exceeded concurrency limit.\n"


def test_what_others_write_is_told_to_whoever_waits_and_the_end_waits_for_nobody(tree: VaultTree) -> None:
    told: list[int] = []
    with serving(tree.root / "memories") as served:

        def ask(since: int) -> int:
            number: int = served.client.get("/api/changes", params={"since": since}).json()["number"]
            return number

        assert ask(-1) == 0
        number = ask(0)  # the watch has begun
        assert number > 0
        waiting = threading.Thread(target=lambda: told.append(ask(number)))
        waiting.start()
        tree.note("notes/b.md", "# B\n\n- by an editor\n")
        waiting.join(20)
        assert told[0] > number

        def wait_for_end() -> None:
            with contextlib.suppress(httpx2.TransportError):  # it may end before it has accepted this
                ask(told[0] + 1)

        left = threading.Thread(target=wait_for_end)
        left.start()
    left.join(10)
    assert not left.is_alive()
    assert served.process.returncode == 0


def test_open_shows_a_file_of_ones_own_that_leads_to_the_page(tree: VaultTree, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nfile="${{1#file://}}"\n(ls -ln "$file"; cat "$file") > {seen}.p; mv {seen}.p {seen}'
    )
    browser.chmod(0o755)
    with serving(tree.root / "memories", "--open", BROWSER=f"{browser} %s") as served:
        until(seen.exists)
        told = seen.read_text()
        assert told.startswith("-rw------- 1 ")
        assert f"url={served.address}" in told
        file = re.search(r"\S+/mdmem-\S+\.html", told)
        assert file
        assert stat.S_IMODE(os.stat(file[0]).st_mode) == 0o600
    assert not os.path.exists(file[0])
