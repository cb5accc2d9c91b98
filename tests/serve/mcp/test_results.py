"""Results through the tools: the session that is bound reads what tools printed in it, nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mdmem.document.text.tokens import estimate
from tests.serve.mcp.conftest import Tools

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory

LOG = "".join(f"step {number} of src/app.py\n" for number in range(5_000))


@pytest.fixture
def bound(memory: Memory) -> Tools:
    return Tools(memory, thread="t")


def test_a_result_is_read_page_by_page(memory: Memory, bound: Tools) -> None:
    hash_ = memory.results.compress("Bash", LOG, session="t").hash
    read, line = [], 1
    while line:
        answer = bound("show", path=f"result:{hash_[:12]}", line=line)
        assert sum(map(estimate, answer.texts)) < 6_200
        read.append(answer.data["text"])
        line = answer.data.get("next", {}).get("line", 0)
    assert "".join(read) == LOG
    answer = bound("show", path=f"result:{hash_}", line=10, limit=2)
    assert answer.data["text"] == "step 9 of src/app.py\nstep 10 of src/app.py\n"
    assert answer.data["left_out"] == 5_000 - 11
    assert "the last one is 5000" in bound.error("show", path=f"result:{hash_}", line=5_001)["message"]


def test_a_long_line_is_read_in_pieces(memory: Memory, bound: Tools) -> None:
    text = "".join(f"{number}," for number in range(20_000))
    hash_ = memory.results.compress("Bash", text, session="t").hash
    read, following = [], {"line": 1}
    while following:
        answer = bound("show", path=f"result:{hash_}", **following)
        read.append(answer.data["text"])
        following = answer.data.get("next", {})
    assert "".join(read) == text


def test_a_result_of_another_session_is_not_found_like_one_of_nobody(memory: Memory, bound: Tools) -> None:
    hash_ = memory.results.compress("Bash", LOG, session="other").hash
    told = [bound.error("show", path=f"result:{each}") for each in (hash_, "0" * 64)]
    assert [each["code"] for each in told] == ["result-not-found"] * 2
    assert told[0]["message"].replace(hash_, "") == told[1]["message"].replace("0" * 64, "")
    assert told[0]["hint"] == told[1]["hint"]
    memory.results.sweep(0)
    assert "swept" not in bound.error("show", path=f"result:{hash_}")["message"]


def test_no_result_is_shown_where_no_session_is_bound(memory: Memory, tools: Tools) -> None:
    hash_ = memory.results.compress("Bash", LOG, session="t").hash
    assert tools.error("show", path=f"result:{hash_}")["code"] == "usage"


@pytest.mark.parametrize("path", ["result:", "result:../../x", "result:%", "result:\u0000"])
def test_what_is_no_hash_is_refused(bound: Tools, path: str) -> None:
    assert bound.error("show", path=path)["code"] in {"usage", "path-refused"}
