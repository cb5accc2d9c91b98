"""A client of the language server, as an editor is one, of a real process over its standard streams."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import Future
from pathlib import Path
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SECONDS = 30.0
UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"
CAPABILITIES: dict[str, Any] = {
    "workspace": {
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
        "fileOperations": {"willRename": True},
    },
    "textDocument": {
        "synchronization": {"willSave": True, "willSaveWaitUntil": True, "didSave": True},
        "rename": {"prepareSupport": True},
        "publishDiagnostics": {"relatedInformation": True},
        "definition": {"linkSupport": True},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    },
}


class Refused(Exception):
    """The server has answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Client:
    """A running server, and what it has said so far."""

    def __init__(
        self, *arguments: str, cwd: str | Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - until the client is closed
        self._written = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mdmem", *arguments, "lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=cwd,
            env=env,
        )
        self.handlers: dict[str, Callable[[Any], Any]] = {}
        self._numbers = itertools.count(1)
        self._waiting: dict[str, Future[Any]] = {}
        self.answered: Counter[str] = Counter()
        self.told: dict[str, list[Any]] = defaultdict(list)
        self.diagnostics: dict[str, list[Any]] = defaultdict(list)
        self._came = Condition()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def errors(self) -> str:
        """What the server has written to standard error."""
        if self._errors.closed:
            return self._written
        descriptor = self._errors.fileno()  # which the server writes through, from where it stands
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> int:
        if self.process.poll() is None:
            try:
                self.request("shutdown", None)
                self.notify("exit", None)
                self.process.wait(SECONDS)
            finally:
                self.process.kill()
        self.process.wait(SECONDS)
        self._thread.join(SECONDS)
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        self._written = self.errors
        self._errors.close()
        return self.process.returncode

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream
        while header := stream.readline():
            length = int(header.partition(b":")[2])
            while stream.readline().strip():
                pass
            self._take(json.loads(stream.read(length)))
        with self._came:
            for future in self._waiting.values():
                future.cancel()
            self._came.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            with self._came:
                self.told[message["method"]].append(message["params"])
                if message["method"] == "textDocument/publishDiagnostics":
                    self.diagnostics[message["params"]["uri"]].append(message["params"])
                self._came.notify_all()
            if "id" in message:
                handle = self.handlers.get(message["method"])
                answer = handle(message["params"]) if handle else None
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            return
        number = json.dumps(message.get("id"))
        self.answered[number] += 1
        future = self._waiting.pop(number, None)
        if future and "error" in message:
            future.set_exception(Refused(message["error"]))
        elif future:
            future.set_result(message.get("result"))

    def send(self, message: Any) -> None:
        self.send_raw(json.dumps(message).encode())

    def send_raw(self, body: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def expect(self, number: Any) -> Future[Any]:
        """The answer to a question with this id, once it has come."""
        future = self._waiting[json.dumps(number)] = Future[Any]()
        return future

    def start(self, method: str, params: Any) -> tuple[int, Future[Any]]:
        number = next(self._numbers)
        future = self.expect(number)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number, future

    def request(self, method: str, params: Any) -> Any:
        return self.start(method, params)[1].result(SECONDS)

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, folder: Path, encodings: list[str] | None = None, **more: Any) -> dict[str, Any]:
        capabilities = {**CAPABILITIES, "general": {"positionEncodings": encodings or [UTF16]}}
        folders = [{"uri": uri(folder), "name": folder.name}]
        given = {"processId": os.getpid(), "rootUri": uri(folder), "capabilities": capabilities}
        result: dict[str, Any] = self.request("initialize", {**given, "workspaceFolders": folders, **more})
        self.notify("initialized", {})
        return result

    # -- documents ----------------------------------------------------------------------------------------

    def open(self, file: Path, text: str | None = None, version: int = 1) -> str:
        text = file.read_bytes().decode() if text is None else text
        document = {"uri": uri(file), "languageId": "markdown", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri(file)

    def change(self, file: Path, text: str, version: int) -> None:
        named = {"uri": uri(file), "version": version}
        self.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": text}]})

    def save(self, file: Path) -> None:
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri(file)}})

    def shut(self, file: Path) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri(file)}})

    def ask(self, name: str, file: Path, position: dict[str, int] | None = None, **more: Any) -> Any:
        params: dict[str, Any] = {"textDocument": {"uri": uri(file)}, **more}
        if position is not None:
            params["position"] = position
        return self.request(f"textDocument/{name}", params)

    def wait(self, is_so: Any) -> Any:
        """Wait until something is so, by what the server tells."""
        with self._came:
            assert self._came.wait_for(is_so, SECONDS), self.diagnostics
            return is_so()

    def found(self, file: Path, version: int | None = None) -> list[Any]:
        """What is wrong with a document, once that is told, of this version or a newer one."""

        def newest() -> Any:
            told = self.diagnostics[uri(file)]
            return (
                told[-1:] if told and (version is None or (told[-1].get("version") or 0) >= version) else None
            )

        found: list[Any] = self.wait(newest)[0]["diagnostics"]
        return found

    def codes(self, file: Path, wanted: list[str]) -> list[Any]:
        """Wait until these are the codes of what is wrong with a document that is open."""

        def are_told() -> Any:
            told = [each for each in self.diagnostics[uri(file)] if "version" in each]
            found = told[-1]["diagnostics"] if told else []
            return [found] if told and sorted(each["code"] for each in found) == sorted(wanted) else None

        found: list[Any] = self.wait(are_told)[0]
        return found


def uri(file: str | Path) -> str:
    return f"file://{quote(os.fsencode(file))}"
