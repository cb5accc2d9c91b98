"""HTTP: on this machine alone, and only for who has the token and comes from here."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx2
import pytest

import mdmem
from mdmem.errors import Usage
from mdmem.serve.mcp.http import TOKEN as VARIABLE, token_of
from tests.serve.mcp.conftest import TOKEN, on_http
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


class Guarded(NamedTuple):
    """A server on HTTP that has made its token."""

    url: str
    token: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    root = tmp_path_factory.mktemp("served") / "memories"
    mdmem.init(root)
    with on_http(root, token=None) as server:
        assert server.process.stderr is not None
        made = re.fullmatch(r"mdmem: token (\S{43})\n", server.process.stderr.readline())
        assert made
        yield Guarded(server.url, made[1])
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == -signal.SIGTERM


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(limits=httpx2.Limits(max_keepalive_connections=0)) as client:
        yield client


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPTED = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@cases(
    "headers, status",
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic TOKEN"}, 401),
        ({"authorization": "TOKEN"}, 401),
        ({"authorization": "Bearer TOKENx"}, 401),
        ({"authorization": "Bearer é"}, 401),
        ({"authorization": "Bearer TOKEN", "host": "evil.example"}, 421),
        ({"authorization": "Bearer TOKEN", "host": "127.0.0.1"}, 421),
        ({"authorization": "Bearer TOKEN", "host": "127.0.0.1:1.evil.example"}, 421),
        ({"authorization": "Bearer TOKEN", "origin": "http://evil.example"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "null"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "https://localhost"}, 403),
    ],
)
def test_who_has_no_token_or_comes_from_elsewhere_is_refused(
    served: Guarded, http: httpx2.Client, headers: dict[str, str], status: int
) -> None:
    told = {name: value.replace("TOKEN", served.token) for name, value in {**ACCEPTED, **headers}.items()}
    given = [(name.encode(), value.encode()) for name, value in told.items()]
    for method in ("POST", "GET", "DELETE", "OPTIONS"):
        answer = http.request(method, served.url, headers=given, content=json.dumps(PING))
        assert answer.status_code == status


def test_its_own_origin_may_pass_with_the_token_that_was_made_and_printed(
    served: Guarded, http: httpx2.Client
) -> None:
    origin = served.url.removesuffix("/mcp")
    headers = {**ACCEPTED, "authorization": f"Bearer {served.token}", "origin": origin}
    answer = http.post(served.url, headers=headers, json={**PING, "method": "server/discover"})
    assert answer.status_code not in {401, 403, 421}


@pytest.mark.skipif(sys.platform != "linux", reason="the table of sockets is a file there")
def test_it_is_served_on_this_machine_alone(served: Guarded) -> None:
    port = int(served.url.rpartition(":")[2].partition("/")[0])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert {row[1] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"} == {
        f"0100007F:{port:04X}"
    }
    assert f"{port:04X}" not in Path("/proc/net/tcp6").read_text()


def test_a_request_whose_head_has_no_end_is_refused(served: Guarded) -> None:
    port = int(served.url.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET /mcp HTTP/1.1\r\n" + b"a: %b\r\n" % (b"b" * 1000) * 40)
        assert connection.recv(12) == b"HTTP/1.1 400"


@pytest.mark.timeout(60)
def test_more_connections_than_it_serves_are_refused_until_some_end(
    served: Guarded, http: httpx2.Client
) -> None:
    port = int(served.url.rpartition(":")[2].partition("/")[0])
    with contextlib.ExitStack() as stack:
        for _ in range(140):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert http.get(served.url, timeout=20).status_code == 503
    until(lambda: http.get(served.url).status_code == 401)


@pytest.mark.parametrize("token", ["", "short", "with a blank in it, long", "längst genug ist dieses"])
def test_a_token_that_can_be_guessed_or_sent_by_nobody_is_refused(token: str) -> None:
    with pytest.raises(Usage, match=VARIABLE):
        token_of({VARIABLE: token})


def test_every_token_that_is_made_is_another_one() -> None:
    assert token_of({}) != token_of({})
    assert token_of({VARIABLE: TOKEN}) == (TOKEN, False)
