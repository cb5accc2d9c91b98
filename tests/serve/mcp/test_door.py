"""The door: what it does with clients that hold a connection and send no request."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn import Server

from mdmem.serve.mcp import door
from tests.serve.mcp.conftest import SECONDS
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nabc"
REFUSED = POST.replace(b"POST / ", b"POST /none ")  # is answered before its body is read


class Served:
    """A small server in a thread: its port, and what lets it answer."""

    def __init__(self, port: int, *, answers: bool) -> None:
        self.port = port
        self.may_answer = threading.Event()
        if answers:
            self.may_answer.set()

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        await anyio.to_thread.run_sync(self.may_answer.wait)
        return PlainTextResponse(b"<" + body + b">")

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def wait_for_deadline(self) -> None:
        """Wait until a connection that is made now has had its time."""
        with self.connect() as silent:
            assert read_to_end(silent) == b""


@contextmanager
def serving(most: int = 8, keep_alive: int = 30, *, answers: bool = True) -> Iterator[Served]:
    with door.listen(0) as listening:
        served = Served(listening.getsockname()[1], answers=answers)
        app = Starlette(routes=[Route("/", served.answer, methods=["GET", "POST"])])
        server = Server(door.configure(app, most=most, keep_alive=keep_alive))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield served
        finally:
            server.should_exit = True
            served.may_answer.set()
            thread.join(SECONDS)


def read_to_end(connection: socket.socket) -> bytes:
    data = b""
    with suppress(ConnectionResetError):  # something that was sent was never read
        while part := connection.recv(1 << 16):
            data += part
    return data


def read_answer(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b">"):
        data += connection.recv(1 << 16)
    return data


@cases(
    "sent",
    [b"", b"\r\n", b"GET / HT", b"GET / HTTP/1.1\r\nhost: localhost\r\n", POST, REFUSED, WHOLE + WHOLE[:9]],
)
def test_a_connection_without_a_whole_request_ends(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(door, "_REQUEST_SECONDS", 0.1)
    with serving(keep_alive=1) as served, served.connect() as connection:
        connection.sendall(sent)
        read_to_end(connection)  # the server closes it


def test_who_sends_a_little_now_and_then_gets_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_REQUEST_SECONDS", 0.3)
    with serving() as served, served.connect() as connection:
        connection.sendall(WHOLE[:-2])
        connection.settimeout(0.02)
        is_open = True
        with suppress(ConnectionError):
            while is_open:
                connection.sendall(b"a: b\r\n")
                with suppress(TimeoutError):
                    assert connection.recv(1) == b""  # no answer that says the head is too long
                    is_open = False


def test_silent_clients_give_way_to_one_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_REQUEST_SECONDS", 1.0)
    with serving(most=5) as served, ExitStack() as stack:
        silent = [stack.enter_context(served.connect()) for _ in range(6)]
        with served.connect() as connection:
            connection.sendall(WHOLE)
            assert connection.recv(12) == b"HTTP/1.1 503"
        for each in silent:
            assert read_to_end(each) == b""
        with served.connect() as connection:
            connection.sendall(WHOLE)
            assert b" 200 " in read_answer(connection)


def test_an_answer_and_the_pause_behind_it_may_take_longer_than_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "_REQUEST_SECONDS", 0.2)
    with serving(answers=False) as served, served.connect() as connection:
        connection.sendall(POST + b"defghi")
        served.wait_for_deadline()
        served.may_answer.set()
        assert b"<abcdefghi>" in read_answer(connection)
        served.wait_for_deadline()
        connection.sendall(WHOLE)
        assert b" 200 " in read_answer(connection)
