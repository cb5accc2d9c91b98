"""Clients that keep to nothing: the server lives, answers each question once, and keeps its index right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.append(str(Path(__file__).parents[3] / "bench"))

import lsp_messages

from tests import speed
from tests.editor.lsp.client import uri

if TYPE_CHECKING:
    from tests.editor.lsp.conftest import Desk

MESSAGES = 5_000 if speed.is_all else 500
SEED = 26


def test_fuzz_a_server_outlives_what_no_client_should_send(tmp_path: Path) -> None:
    met = lsp_messages.play(tmp_path, MESSAGES, SEED)
    assert met.wrong == []
    # What was sent is of both kinds: what can be answered, and what cannot.
    assert met.asked > met.refused > met.asked // 10


@pytest.mark.parametrize("number", [{}, {"id": None}, {"id": {}}, {"id": [1]}])
def test_fuzz_a_question_whose_id_is_none_ends_nothing(desk: Desk, number: dict[str, object]) -> None:
    """What is told on standard error is looked at when the server ends."""
    file = desk.write("a.md", "[[a]]\n")
    desk.editor.open(file)
    place = {"line": 0, "character": 3}
    params = {"textDocument": {"uri": uri(file)}, "position": place, "newName": "\0"}
    desk.client.send({"jsonrpc": "2.0", "method": "textDocument/rename", "params": params, **number})
    assert len(desk.editor.ask("documentLink", file)) == 1
