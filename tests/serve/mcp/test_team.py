"""A server for a team: who is let in, whose memories a token gives, how many calls, and what is told."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import mdmem
from mdmem.facade.memory import init_store
from mdmem.serve.mcp.access import make_token
from mdmem.serve.mcp.answer import Bound
from mdmem.serve.mcp.tools import TOOLS, Toolbox
from mdmem.vault.local_store import LocalStore
from tests.serve.mcp.conftest import SECONDS, run
from tests.speed import examples
from tests.tables import cases
from tests.vault.postgres_server import served
from tests.waiting import until

sys.path.append(str(Path(__file__).parents[3] / "bench"))

import hostile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli
    from tests.vault.postgres_server import Server

SCOPES = {
    "ann": mdmem.Scope(user="ann"),
    "bob": mdmem.Scope(user="bob"),
    "again": mdmem.Scope(user="ann"),
    "all": mdmem.Scope(shared=True),
    "demo": mdmem.Scope(user="ann", project="demo"),
}
ACCEPTED = {"accept": "application/json, text/event-stream"}


class TeamServer(NamedTuple):
    """A server of a team: where it is, where its status is, its tokens by name, and its process."""

    url: str
    status: str
    tokens: dict[str, str]
    access: Path
    vault: str
    process: subprocess.Popen[str]

    def post(self, who: str, **more: Any) -> httpx2.Response:
        """Send a request of a ping, or another one."""
        headers = {
            "authorization": f"Bearer {self.tokens.get(who, who)}",
            **ACCEPTED,
            **more.pop("headers", {}),
        }
        body = {"jsonrpc": "2.0", "id": 1, **more.pop("body", {"method": "ping"})}
        return httpx2.post(self.url, headers=headers, json=body, timeout=SECONDS, **more)

    def call(self, who: str, tool: str, **given: Any) -> httpx2.Response:
        """Call a tool."""
        return self.post(who, body={"method": "tools/call", "params": {"name": tool, "arguments": given}})

    def ask(self, path: str, **more: Any) -> httpx2.Response:
        """Ask for the status."""
        return httpx2.get(f"{self.status}/{path}", timeout=SECONDS, **more)


@contextmanager
def serve(vault: str, folder: Path, *options: str) -> Iterator[TeamServer]:
    tokens, lines = {}, ""
    for name, scope in SCOPES.items():
        tokens[name], more = make_token(f"{name}'s agent", scope)
        lines += more
    tokens["reader"], more = make_token("reader", SCOPES["ann"], read_only=True)
    access = folder / f"access-{uuid4().hex}.toml"
    access.write_text(lines + more)
    given = ("--http", "0", "--access", str(access), "--status", "0", *options)
    process = subprocess.Popen(
        [sys.executable, "-m", "mdmem", "--vault", vault, "mcp", *given],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        url, status = (process.stderr.readline().split()[-1] for _ in range(2))
        yield TeamServer(url, status, tokens, access, vault, process)
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One version for all: what differs between them is none of the server's."""
    with served(18) as found:
        yield found


@pytest.fixture(scope="module", params=["folder", "database"])
def team(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    folder = tmp_path_factory.mktemp("team")
    if request.param == "folder":
        vault = str(mdmem.init(folder / "memories").root)
    else:
        vault = request.getfixturevalue("server").url(uuid4().hex)
        init_store(vault)
    with serve(vault, folder) as found:
        yield found


def test_each_token_gives_its_own_memories_under_its_own_name(team: TeamServer) -> None:
    for who in ("ann", "bob", "all"):
        text = f"the word of {who}"
        assert "created" in team.call(who, "write", path=f"notes/{who}.md", content=text).text
    for who in ("ann", "bob", "reader"):
        found = team.call(who, "search", query="word").text
        own = {"reader": "ann"}.get(who, who)
        assert f"the word of {own}" in found
        assert found.count("the word of") == 1
    assert "the word of" in team.call("demo", "search", query="word").text
    assert "no such" in team.call("bob", "show", path="notes/ann.md").text
    assert team.call("bob", "show", path="shared:notes/all.md").text.count("the word of all") == 1
    assert "changed" in team.call("again", "section", path="notes/ann.md", text="x", where="append").text
    changed = {entry.actor for entry in mdmem.open(team.vault).history()}
    assert changed >= {f"{who}'s agent" for who in ("ann", "bob", "all", "again")}


def test_a_token_that_only_reads_is_offered_and_granted_no_change(team: TeamServer) -> None:
    offered = team.post("reader", body={"method": "tools/list"}).text
    assert '"search"' in offered
    assert '"write"' not in offered
    assert '"write"' in team.post("ann", body={"method": "tools/list"}).text
    assert "bound read-only" in team.call("reader", "write", path="notes/x.md", content="x").text


def test_who_has_no_good_token_is_told_nothing_more_than_that(team: TeamServer) -> None:
    over, lines = make_token("over", SCOPES["ann"], expires="2020-01-01")
    twice, more = make_token("twice", SCOPES["ann"])
    before = team.access.read_text()
    team.access.write_text(before + lines + more + more)
    until(lambda: team.post("ann").status_code == 200)
    good = team.tokens["ann"]
    answers = [
        team.post(token, headers=headers)
        for token, headers in [
            *(
                (token, {})
                for token in ("unknown", over, twice, "x" * 300, "x" * 15_000, good[:-1], f"{good}x")
            ),
            (good, {"authorization": ""}),
            (good, {"authorization": f"Basic {good}"}),
            (good, {"authorization": good}),
            (good, {"authorization": "Bearer"}),
        ]
    ]
    doubled = [("authorization", f"Bearer {each}") for each in (good, "unknown")]
    answers += [
        httpx2.post(team.url, headers=[*headers, *ACCEPTED.items()], json={})
        for headers in (doubled, [*reversed(doubled)], [doubled[0], doubled[0]], [])
    ]
    told = {(each.status_code, each.text, each.headers["www-authenticate"]) for each in answers}
    assert len(told) == 1
    assert told.pop()[0] == 401
    team.access.write_text(before)


def test_a_token_that_is_taken_from_the_file_is_dead_within_two_seconds(team: TeamServer) -> None:
    token, lines = make_token("late", SCOPES["bob"])
    before = team.access.read_text()
    team.access.write_text(before + lines)
    until(lambda: team.post(token).status_code == 200)
    team.access.write_text(before)
    removed = time.monotonic()
    until(lambda: team.post(token).status_code == 401)
    assert time.monotonic() - removed < 2
    team.access.unlink()
    until(lambda: team.post("ann").status_code == 401)
    assert team.ask("ready").status_code == 503
    team.access.write_text(before)
    until(lambda: team.post("ann").status_code == 200)


@cases(
    "headers, status", [({"host": "evil.example"}, 421), ({"origin": "http://evil.example"}, 403), ({}, 200)]
)
def test_requests_come_by_its_own_name(team: TeamServer, headers: dict[str, str], status: int) -> None:
    assert team.post("ann", headers=headers).status_code == status


def test_only_requests_that_stand_alone_are_answered(team: TeamServer) -> None:
    headers = {"authorization": f"Bearer {team.tokens['ann']}", **ACCEPTED}
    for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
        assert httpx2.request(method, team.url, headers=headers).status_code == 405
    assert httpx2.get(team.url.replace("/mcp", "/live")).status_code == 404
    # A name of a session that a client makes up names none: what it has changed is nobody else's to undo.
    named = {"mcp-session-id": "mine"}
    write = {"name": "write", "arguments": {"path": f"notes/{uuid4()}.md", "content": "x"}}
    assert "created" in team.post("ann", headers=named, body={"method": "tools/call", "params": write}).text
    undo = {"method": "tools/call", "params": {"name": "undo", "arguments": {}}}
    assert 'isError":true' in team.post("ann", headers=named, body=undo).text


def test_it_ends_at_a_signal_and_lets_requests_finish(tmp_path: Path) -> None:
    vault = str(mdmem.init(tmp_path / "memories").root)
    with serve(vault, tmp_path) as team, ThreadPoolExecutor(1) as threads:
        assert team.call("bob", "ls").status_code == 200
        with LocalStore(vault).writing():
            asked = threads.submit(team.call, "ann", "write", path="n/a.md", content="x")
            assert team.call("bob", "ls").status_code == 200  # and so the write is at work
            team.process.terminate()
        assert "created" in asked.result().text
        assert team.process.wait(SECONDS) == -signal.SIGTERM


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_speaks_both_protocols_to_it(team: TeamServer, mode: str) -> None:
    async def work() -> None:
        headers = {"Authorization": f"Bearer {team.tokens['demo']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http,
            Client(streamable_http_client(team.url, http_client=http), mode=mode) as client,
        ):
            assert {tool.name for tool in (await client.list_tools()).tools} == {tool.name for tool in TOOLS}
            path = f"notes/{mode}.md"
            assert not (await client.call_tool("write", {"path": path, "content": "a heron"})).is_error
            assert "a heron" in str((await client.call_tool("show", {"path": path})).content)
            (content,) = (await client.read_resource(f"mdmem:///{path}")).contents
            assert "a heron" in str(content)
            assert "a heron" in str((await client.get_prompt("recall", {"about": "heron"})).messages)

    run(work)


def test_the_fifth_call_of_a_token_waits_five_seconds_and_others_go_on(tmp_path: Path) -> None:
    vault = str(mdmem.init(tmp_path / "memories").root)
    with serve(vault, tmp_path) as team, ThreadPoolExecutor(5) as threads:
        assert team.call("bob", "ls").status_code == 200
        with LocalStore(vault).writing():  # nobody else changes anything meanwhile
            asked = [
                threads.submit(team.call, "ann", "write", path=f"n/{n}.md", content="x") for n in range(5)
            ]
            assert team.call("bob", "ls").status_code == 200
            until(lambda: any(each.done() for each in asked))
            assert team.call("bob", "ls").status_code == 200
        answers = [each.result() for each in asked]
        (late,) = (each for each in answers if each.status_code != 200)
        assert (late.status_code, late.headers["retry-after"]) == (429, "1")
        assert sum("created" in each.text for each in answers) == 4


def test_its_status_names_no_user_and_no_path(team: TeamServer) -> None:
    team.call("ann", "show", path="notes/nowhere.md")
    team.call("ann", "no-such-tool")
    assert team.ask("live").status_code == 200
    until(lambda: team.ask("ready").status_code == 200)
    told = team.ask("metrics").text
    assert re.fullmatch(r'(mdmem_[a-z_]+(\{tool="[a-z]+"\})? [\d.e+-]+\n)+', told)
    counted = dict(line.rsplit(" ", 1) for line in told.splitlines())
    assert float(counted['mdmem_calls_total{tool="show"}']) >= 1
    assert float(counted['mdmem_errors_total{tool="show"}']) >= 1
    assert float(counted['mdmem_call_seconds_total{tool="show"}']) > 0
    assert counted["mdmem_not_known_total"] == "0"
    if team.vault.startswith("postgresql:"):
        assert float(counted["mdmem_connections"]) >= 1
        assert float(counted["mdmem_pulls_total"]) >= 1
        assert float(counted["mdmem_pull_seconds_total"]) > 0
    assert team.ask("metrics", headers={"host": "evil.example"}).status_code == 400


@cases(
    "options",
    [
        ("--http", "0.0.0.0:0"),
        ("--http", "0.0.0.0:0", "--access", "FILE"),
        ("--http", "0.0.0.0:0", "--public-url", "https://m.example"),
        ("--http", "[::]:0"),
        ("--http", "[::1]:0"),
        ("--http", "db.example:0"),
        ("--http", "0.0.0.0:0", "--access", "FILE", "--public-url", "http://m.example"),
        ("--http", "0", "--access", "FILE", "--public-url", "m.example"),
        ("--http", "0", "--access", "FILE", "--public-url", "https://["),
        ("--http", "0", "--access", "/no/such/file"),
        ("--http", "0", "--access", ""),
        ("--http", "0", "--access", "FILE", "--thread", "t"),
        ("--http", "0", "--public-url", "https://m.example"),
        ("--http", "0", "--status", "0"),
        ("--http", "99999", "--access", "FILE"),
        ("--http", "99999"),
        ("--http", "x:y"),
        ("--http", "", "--access", "FILE"),
        ("--access", "FILE"),
    ],
)
def test_what_a_team_cannot_be_served_by_is_refused(
    cli: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "access").write_text(make_token("x", SCOPES["ann"])[1])
    given = [str(tmp_path / "access") if each == "FILE" else each for each in options]
    mdmem.init(tmp_path / "memories")
    refused = cli("--vault", str(tmp_path / "memories"), "mcp", *given)
    assert (refused.code, "Traceback" in refused.errors) == (2, False)


def test_a_team_of_which_a_token_cannot_be_read_is_not_served(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "access").write_text("[[token]]\n")
    mdmem.init(tmp_path / "memories")
    given = ("mcp", "--http", "0", "--access", str(tmp_path / "access"))
    refused = cli("--vault", str(tmp_path / "memories"), *given)
    assert (refused.code, "[[token]] 1 is not let in" in refused.errors) == (2, True)
    scoped = cli("--vault", str(tmp_path / "memories"), "--user", "ann", *given)
    assert (scoped.code, "--access" in scoped.errors) == (2, True)


@pytest.mark.skipif(not socket.has_ipv6, reason="it has none")
@pytest.mark.parametrize("host", ["[::1]", "localhost"])
def test_it_is_named_as_it_listens_without_a_public_url(tmp_path: Path, host: str) -> None:
    vault = str(mdmem.init(tmp_path / "memories").root)
    try:
        socket.create_server(
            (host.strip("[]"), 0), family=socket.AF_INET6 if "[" in host else socket.AF_INET
        ).close()
    except OSError:
        pytest.skip("this machine has no such address")
    with serve(vault, tmp_path, "--http", f"{host}:0") as team:
        assert team.url.startswith(f"http://{host}:")
        assert team.post("ann").status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="all of 127/8 is this machine there")
def test_it_is_named_by_its_public_url(tmp_path: Path) -> None:
    vault = str(mdmem.init(tmp_path / "memories").root)
    options = ("--http", "127.0.0.2:0", "--public-url", "https://memory.example/")
    with serve(vault, tmp_path, *options) as team:
        assert team.url == "https://memory.example/mcp"
        # Of this process alone: others may listen there, too.
        own: set[str] = set()
        for each in Path(f"/proc/{team.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed in between
                own.add(os.readlink(each))
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        listening = [row for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
        (port,) = (int(row[1][9:], 16) for row in listening if row[1].startswith("0200007F:"))
        direct = team._replace(url=f"http://127.0.0.2:{port}/mcp")
        for host, origin, status in (
            ("memory.example", "https://memory.example", 200),
            ("memory.example:443", "https://memory.example:443", 200),
            ("memory.example", "http://memory.example", 403),
            ("memory.example:80", "https://memory.example", 421),
            (f"127.0.0.2:{port}", "https://memory.example", 421),
        ):
            assert direct.post("ann", headers={"host": host, "origin": origin}).status_code == status


class RemoteTools:
    """The tools of a scope as clients of a team use them; `said` is what only the operator reads."""

    def __init__(self, vault: str, scope: mdmem.Scope = SCOPES["ann"]) -> None:
        self.said: list[str] = []
        memory = mdmem.open(vault)
        self.root = memory.root
        self.box = Toolbox(Bound(memory=memory.of_scope(scope), say=self.said.append))

    def call(self, tool: str, **given: Any) -> str:
        answer = self.box.call(tool, given)
        return f"{answer.texts}{answer.data}"


@pytest.fixture
def url(server: Server) -> str:
    url = server.url(uuid4().hex)
    init_store(url)
    return url


def test_no_answer_names_a_folder_or_the_database(url: str, tmp_path: Path, server: Server) -> None:
    tools = RemoteTools(url)
    hidden = [tools.root, os.path.dirname(tools.root), str(server.folder), "postgresql", os.environ["HOME"]]
    mdmem.open(url).write("users/ann/notes/mine.md", "# Mine\n\nmy own words\n")
    draw = random.Random(7)

    def ask(of: RemoteTools) -> None:
        tool = draw.choice(TOOLS)
        given = hostile.arguments(draw, tool, tmp_path)
        answer = of.box.call(tool.name, given)
        told = f"{answer.texts}{answer.data}"
        assert not any(each in told for each in hidden if each not in str(given)), (tool.name, given, told)

    for _ in range(examples(300)):
        ask(tools)
    Path(tools.root, "users/ann/notes/mine.md").write_text("by hand")
    for _ in range(examples(60)):
        ask(tools)
    server.stop()
    try:
        for _ in range(examples(60)):
            fresh = RemoteTools(url)  # others wait ten seconds for a connection
            ask(fresh)
            tools.said += fresh.said
        assert "the memory cannot be reached now" in RemoteTools(url).call("ls")
        assert "database-failed" in RemoteTools(url).call("write", path="notes/b.md", content="x")
    finally:
        server.begin()
    assert any(word in each for each in tools.said for word in hidden)


def test_a_config_of_the_host_that_cannot_be_read_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "mdmem").mkdir()
    (tmp_path / "mdmem" / "config.toml").write_text("embedder = ")
    tools = RemoteTools(str(mdmem.init(tmp_path / "memories").root))
    answer = tools.call("search", query="heron")
    assert "[meaning: words alone]" in answer
    assert str(tmp_path) not in answer


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_a_citation_of_what_is_elsewhere_answers_as_one_of_nothing(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    places = [tmp_path / "a" / "memories", tmp_path / "b" / "memories"]
    vaults = [str(mdmem.init(each).root) for each in places]
    if kind == "database":
        server = request.getfixturevalue("server")
        vaults = [server.url(uuid4().hex) for _ in vaults]
        for vault in vaults:
            init_store(vault)
    others = mdmem.open(vaults[1])
    others.write("notes/there.md", "secret\n" * 9)
    mdmem.open(vaults[0]).write("users/bob/notes/there.md", "secret\n" * 9)
    tools = RemoteTools(vaults[0])
    beside = os.path.relpath(others.root, os.path.dirname(tools.root))

    def tell(target: str) -> str:
        """Everything that the tools say of a memory that cites it, as if it were about nothing."""
        path = "notes/citing.md"
        text = f"See {target}#L1-L3, [it]({target}) and `{target}:2`.\n"
        tools.call("write", path=path, content="", overwrite=True)
        told = [tools.call("write", path=path, content=text, overwrite=True)]
        told += [
            tools.call("ls", stale=True),
            tools.call("ls", target=target),
            tools.call("show", path=target),
        ]
        told += [tools.call("ls", within=path, target=f"{target}#L1"), tools.call("grep", pattern="secret")]
        whole = re.sub(r"\d{8}T\d+-[0-9a-f]{4}|\b[0-9a-f]{12}\b", "", "\n".join(told))
        return whole.replace(target, "IT").replace(target.lstrip("/"), "IT")

    for is_there in (
        "/etc/passwd",
        f"{others.root}/notes/there.md",
        f"{beside}/notes/there.md",
        f"../{beside}/notes/there.md",
        f"{tools.root}/users/bob/notes/there.md",
        "memories/users/bob/notes/there.md",
        "../../bob/notes/there.md",
        "users/bob/notes/there.md",
    ):
        assert "secret" not in tell(is_there)
        folder, name = os.path.split(is_there)
        assert tell(is_there) == tell(f"{folder}/{name[::-1] if '.' not in name else 'where.md'}"), is_there
