"""A model of the library fastembed is used where its folder is there, and fetched by nobody."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from mdmem.errors import ProgramFailed
from mdmem.index.embedder import FastEmbedder, configured_embedder, embed_safely

pytest.importorskip("fastembed")
tokenizers = pytest.importorskip("tokenizers")

NAME = "sentence-transformers/all-MiniLM-L6-v2"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "car", "boat", "tea"]
DIMS = 4


def field(number: int, value: bytes | int) -> bytes:
    """Encode a field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def tensor_type(name: str, kind: int, sizes: int) -> bytes:
    shape = b"".join(field(1, field(2, f"{name}{n}".encode())) for n in range(sizes))
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + field(2, shape)))


def write_model(path: Path) -> None:
    """Write a model in the format ONNX that looks up a row of a table for each token."""
    rows = [float(column == row % DIMS) + 0.1 for row in range(len(WORDS)) for column in range(DIMS)]
    table = struct.pack(f"<{len(rows)}f", *rows)
    initializer = field(1, len(WORDS)) + field(1, DIMS) + field(2, 1) + field(8, b"table") + field(9, table)
    node = field(1, b"table") + field(1, b"input_ids") + field(2, b"last_hidden_state") + field(4, b"Gather")
    inputs = [tensor_type(name, 7, 2) for name in ("input_ids", "attention_mask", "token_type_ids")]
    graph = (
        field(1, node) + field(2, b"g") + field(5, initializer) + b"".join(field(11, one) for one in inputs)
    )
    graph += field(12, tensor_type("last_hidden_state", 1, 3))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 13)))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model, as the library keeps one that was fetched."""
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    folder = tmp_path / "models--qdrant--all-MiniLM-L6-v2-onnx/snapshots/1"
    folder.mkdir(parents=True)
    (folder.parents[1] / "refs").mkdir()
    (folder.parents[1] / "refs/main").write_text("1")
    write_model(folder / "model.onnx")
    model = tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    settings = {"model_max_length": 64, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "special_tokens_map.json").write_text(json.dumps({"unk_token": "[UNK]"}))
    return tmp_path


def test_a_model_that_is_there_makes_vectors(cache: Path) -> None:  # noqa: ARG001 - where it is
    embedder = configured_embedder(f"fastembed:{NAME}")
    assert isinstance(embedder, FastEmbedder)
    assert embedder.dims == DIMS
    car, tea = embed_safely(embedder, ["car car", "tea"], seconds=60)
    assert car == pytest.approx(embed_safely(embedder, ["car"], seconds=60, is_query=True)[0])
    assert car != pytest.approx(tea)


def test_a_model_that_is_not_there_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    embedder = FastEmbedder(NAME)
    with pytest.raises(ProgramFailed, match="fastembed:"):
        embed_safely(embedder, ["car"], seconds=60)
    assert embedder.size == "0.09 GB"
    with pytest.raises(ProgramFailed, match="knows no such model"):
        FastEmbedder("no/such").size  # noqa: B018 - it is asked for
