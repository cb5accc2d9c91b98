"""Running the program: in this process, in one of its own, and on a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import mdmem
from mdmem.cli.main import _prepare_streams, main
from tests.terminals import read_terminal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Ended(NamedTuple):
    """How a command ended: its exit code, and what it printed."""

    code: int
    data: bytes
    errors: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def json(self) -> Any:
        """The one object that it printed."""
        (printed,) = self.objects
        return printed

    @property
    def objects(self) -> list[Any]:
        """What it printed with --json, an object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Cli:
    """Runs commands. A call runs one in this process; nothing else looks at what it prints meanwhile."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capture = capture
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ended:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capture.readouterr()
        with self._monkeypatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            code = main(arguments)
        data, errors = self._capture.readouterr()
        return Ended(code, data, errors.decode())

    def ok(self, *arguments: str, stdin: bytes = b"") -> Ended:
        """As a call, of a command that must succeed."""
        ended = self(*arguments, stdin=stdin)
        assert ended.code == 0, ended.errors
        return ended

    def program(
        self, *arguments: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> Ended:
        """Run the real program, with `env` added to the environment."""
        ended = subprocess.run(
            [sys.executable, "-m", "mdmem", *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
            env=os.environ | (env or {}),
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr.decode())

    def on_terminal(self, *arguments: str, question: str = "", answer: str = "") -> tuple[int, str]:
        """Run a command here on a terminal and answer one question; its code, and what was to be seen."""
        ours, theirs = pty.openpty()

        def watch() -> bytes:
            seen, awaited = b"", question.encode()
            for part in read_terminal(ours):
                seen += part
                if awaited and awaited in seen:
                    os.write(ours, answer.encode())
                    awaited = b""
            return seen

        with ThreadPoolExecutor(1) as thread, self._monkeypatch.context() as patch:
            person = thread.submit(watch)
            with open(theirs, encoding="utf-8") as stdin, open(os.dup(theirs), "w", encoding="utf-8") as out:
                for name, stream in (("stdin", stdin), ("stdout", out), ("stderr", out)):
                    patch.setattr(sys, name, stream)
                _prepare_streams()
                code = main(arguments)
                for shown in (sys.stdout, sys.stderr):
                    shown.detach()  # type: ignore[union-attr]
            seen = person.result()
        os.close(ours)
        return code, seen.decode().replace("\r\n", "\n")


class Files:
    """The files of a vault, but for what mdmem keeps for itself."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def everything(self) -> dict[str, bytes]:
        files = (f for f in sorted(self.root.rglob("*")) if f.is_file() and ".mdmem" not in f.parts)
        return {f.relative_to(self.root).as_posix(): f.read_bytes() for f in files if f.name != ".gitignore"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """The files of a new vault `memories`, in a folder that is the current one."""
    for name in [name for name in os.environ if name.startswith("MDMEM_")]:
        monkeypatch.delenv(name)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    mdmem.init("memories")
    return Files(work / "memories")


@pytest.fixture
def cli(
    files: Files,  # noqa: ARG001 - commands are run where there is a vault
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:
    return Cli(capfdbinary, monkeypatch)
