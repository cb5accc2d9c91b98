"""The engine: what of a conversation goes into a prompt, and how summaries are written there."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from mdmem.conversations.log.message import Message, pairs
from mdmem.conversations.log.record import RunSummary
from mdmem.conversations.prompt.prompt import TAIL, Assembled, count_summary_tokens, rendered, xml
from mdmem.conversations.sessions import Sessions
from mdmem.document.text.tokens import estimate
from mdmem.vault.vault import Vault
from tests import speed
from tests.speed import examples

KEY = "t:1"


@pytest.fixture
def sessions(vault_root: Path) -> Sessions:
    return Sessions(Vault(str(vault_root)))


def sized(tokens: int, role: str = "user", word: str = "word") -> dict[str, Any]:
    """A message of so many tokens."""
    messages = [{"role": role, "content": f"{word} {'x' * size}"} for size in range(5 * tokens)]
    return messages[bisect_left(messages, tokens, key=lambda message: Message(0, message).tokens)]


def called(*identifiers: str) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": "read"}} for each in identifiers]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answered(identifier: str, text: str = "it says so") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier, "content": text}


def seqs(prompt: Assembled) -> list[int]:
    return [message.seq for message in prompt.messages]


def talk(count: int, tokens: int) -> list[dict[str, Any]]:
    roles = itertools.cycle(("user", "assistant"))
    return [sized(tokens, next(roles)) for _ in range(count)]


# -- messages ---------------------------------------------------------------------------------------------


def test_budget_evicts_oldest(sessions: Sessions) -> None:
    """BudgetEvictsOldest: of 40 messages of 20 tokens a budget of 400 keeps the last 20."""
    sessions.extend(KEY, talk(40, 20))
    prompt = sessions.assemble(KEY, 400)
    assert seqs(prompt) == list(range(21, 41))
    assert (prompt.tokens, prompt.left_out, prompt.cut, prompt.summary) == (400, 20, (), "")


def test_an_empty_session_gives_an_empty_prompt(sessions: Sessions) -> None:
    prompt = sessions.assemble(KEY, 100)
    assert (prompt.messages, prompt.summary, prompt.tokens, prompt.left_out) == ((), "", 0, 0)


def test_a_whole_conversation_fits(sessions: Sessions) -> None:
    sessions.extend(KEY, talk(TAIL * 3, 20))
    assert sessions.assemble(KEY, 10_000).left_out == 0


def test_the_latest_message_of_the_user_is_always_in(sessions: Sessions) -> None:
    sessions.extend(KEY, [sized(50, word="asked"), *[sized(90, "assistant")] * 10])
    prompt = sessions.assemble(KEY, 250)
    assert seqs(prompt) == [1, 10, 11]
    assert (prompt.left_out, prompt.cut) == (8, ())


def test_a_users_message_that_is_too_large_loses_its_middle(sessions: Sessions) -> None:
    sessions.extend(KEY, [*talk(4, 10), {"role": "user", "content": "Begin " + "👩‍👩‍👧 " * 5_000 + "End"}])
    prompt = sessions.assemble(KEY, 300)
    assert (seqs(prompt), prompt.cut, prompt.left_out) == ([5], (5,), 4)
    text = prompt.messages[0].text
    assert text.startswith("Begin 👩‍👩‍👧 ")
    assert text.endswith("👩‍👩‍👧 End")
    assert "characters left out]" in text
    assert prompt.tokens <= 300


def test_preserves_latest_tool_turn(sessions: Sessions) -> None:
    """PreservesLatestToolTurn: what a tool answered last is cut rather than asked again."""
    turn = [sized(20), called("a", "b"), answered("a", "first " + "y" * 8_000), answered("b", "second")]
    sessions.extend(KEY, [*talk(4, 50), *turn])
    prompt = sessions.assemble(KEY, 400)
    assert seqs(prompt) == [5, 6, 7, 8]
    assert prompt.cut == (7,)
    assert prompt.messages[2].answers[0].text.startswith("first yy")
    assert prompt.messages[3].data == turn[3]
    assert prompt.tokens <= 400


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "y" * 9_000}]},
        {"type": "function_call_output", "call_id": "a", "output": "y" * 9_000},
        {"role": "tool", "content": "y" * 9_000},
    ],
)
def test_a_cut_answer_keeps_its_form(sessions: Sessions, answer: dict[str, Any]) -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]}
    if "tool_call_id" not in str(answer) and answer.get("role") == "tool":
        call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read"}}]}
    sessions.extend(KEY, [sized(10), call, answer])
    prompt = sessions.assemble(KEY, 200)
    assert seqs(prompt) == [1, 2, 3]
    last = prompt.messages[-1].data
    assert last.keys() == answer.keys()
    assert not pairs(prompt.messages).answering
    assert 100 < prompt.tokens <= 200


def test_it_never_starts_with_a_result(sessions: Sessions) -> None:
    sessions.extend(KEY, [sized(10), called("a"), answered("a"), *talk(8, 20)])
    for budget in range(60, 260, 5):
        prompt = sessions.assemble(KEY, budget)
        assert not prompt.messages[0].answers
        assert (2 in seqs(prompt)) == (3 in seqs(prompt))


def test_half_a_pair_is_left_out(sessions: Sessions) -> None:
    """A result without its call, a call that waits, and what belongs to such a call."""
    sessions.extend(KEY, [answered("x"), sized(10), called("a", "b"), answered("a"), sized(10), called("c")])
    prompt = sessions.assemble(KEY, 10_000)
    assert seqs(prompt) == [2, 5]
    assert prompt.left_out == 4


def test_ids_that_are_used_again_mean_the_last_call() -> None:
    turns = [called("a"), answered("a"), called("a"), called("a"), answered("a")]
    found = pairs([Message(place, turn) for place, turn in enumerate(turns)])
    assert found.joined == [(0, 1), (3, 4)]
    assert found.calling == {2}


def test_ids_that_nobody_gave_are_one() -> None:
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "read"}}]}
    turns: list[dict[str, Any]] = [call, {"role": "tool", "content": "x"}]
    assert pairs([Message(place, turn) for place, turn in enumerate(turns)]).joined == [(0, 1)]


def test_a_prompt_begins_with_a_message_of_the_user(sessions: Sessions) -> None:
    turn = [sized(20), called("a"), answered("a"), sized(20, "assistant")]
    sessions.extend(KEY, [sized(20, "assistant"), {"role": "system", "content": "Be brief."}, *turn, *turn])
    for budget in range(30, 500, 3 if speed.is_all else 11):
        for tail in (0, 2, TAIL):
            prompt = sessions.assemble(KEY, budget, tail)
            assert prompt.messages[0].data in [turn[0], {"role": "system", "content": "Be brief."}]
            assert prompt.tokens == sum(message.tokens for message in prompt.messages) <= budget
            assert len(seqs(prompt)) + prompt.left_out == 10
    assert seqs(sessions.assemble(KEY, 500)) == list(range(2, 11))
    assert seqs(sessions.assemble(KEY, 500, user_first=False)) == list(range(1, 11))


def test_a_call_before_the_users_message_takes_its_answer_with_it(sessions: Sessions) -> None:
    sessions.extend(KEY, [called("a"), sized(20), answered("a"), sized(20, "assistant")])
    assert seqs(sessions.assemble(KEY, 1_000)) == [2, 4]
    assert seqs(sessions.assemble(KEY, 1_000, user_first=False)) == [1, 2, 3, 4]


def test_a_session_in_which_no_user_spoke_begins_with_none(sessions: Sessions) -> None:
    sessions.extend(KEY, [sized(20, "assistant")] * 3)
    prompt = sessions.assemble(KEY, 1_000)
    assert (prompt.messages, prompt.tokens, prompt.left_out) == ((), 0, 3)
    assert seqs(sessions.assemble(KEY, 1_000, user_first=False)) == [1, 2, 3]


def test_chat_messages_begin_with_one_of_the_system(sessions: Sessions) -> None:
    sessions.extend(KEY, talk(48, 100))
    sessions.compact(KEY)
    prompt = sessions.assemble(KEY, 5_000)
    history = [dict(message.data) for message in prompt.messages]
    assert prompt.as_messages() == [{"role": "system", "content": prompt.summary}, *history]
    first, *others = prompt.as_messages("Be brief.")
    assert (first["content"], others) == (f"Be brief.\n\n{prompt.summary}", history)
    assert estimate(json.dumps(prompt.as_messages())) <= prompt.tokens
    few = sessions.assemble(KEY, 200)
    assert few.as_messages() == [dict(message.data) for message in few.messages]
    assert few.as_messages("Be brief.")[0] == {"role": "system", "content": "Be brief."}


def test_an_answer_in_the_turn_is_cut_where_it_does_not_fit(sessions: Sessions) -> None:
    """What was read first since the user spoke, and not only what was read last."""
    turn = [sized(20), called("a"), answered("a", "long " * 2_000), called("b"), answered("b", "short")]
    sessions.extend(KEY, [*talk(4, 20), *turn])
    prompt = sessions.assemble(KEY, 400)
    assert (seqs(prompt), prompt.cut) == ([5, 6, 7, 8, 9], (7,))
    assert prompt.messages[2].answers[0].text.startswith("long long")
    assert 300 < prompt.tokens <= 400


LONG = "y" * 9_000
SHAPES: list[list[dict[str, Any]]] = [
    [
        {"type": "custom_tool_call", "call_id": "a", "name": "x", "input": "in"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": LONG},
    ],
    [
        {"type": "local_shell_call", "call_id": "a", "status": "completed", "action": {"command": ["ls"]}},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": LONG}]},
    ],
    [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": LONG},
    ],
    [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"output": LONG, "n": 1}}}],
        },
    ],
    [
        {"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "a", "name": "x", "input": {}}]},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "a",
                    "is_error": False,
                    "content": [{"type": "text", "text": LONG}],
                }
            ],
        },
    ],
]


@pytest.mark.parametrize("turn", SHAPES, ids=lambda turn: str(turn[1])[:40])
def test_an_answer_of_any_shape_is_cut_and_its_call_stays(
    sessions: Sessions, turn: list[dict[str, Any]]
) -> None:
    sessions.extend(KEY, [sized(20), *turn])
    prompt = sessions.assemble(KEY, 300)
    assert (seqs(prompt), prompt.cut) == ([1, 2, 3], (3,))
    assert prompt.messages[1].data == turn[0]

    def other_than_text(value: Any) -> str:
        return json.dumps(value, sort_keys=True).replace(LONG, "")

    cut = json.loads(re.sub(r"y+\[[0-9,]+ characters left out\]y+", "", json.dumps(prompt.messages[2].data)))
    assert other_than_text(cut) == other_than_text(turn[1])
    assert 200 < prompt.tokens <= 300


def test_a_long_list_in_an_answer_loses_its_end(sessions: Sessions) -> None:
    rows = [{"name": f"row {n}", "note": "z" * 200} for n in range(2_000)]
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"rows": rows}}}]}
    sessions.extend(KEY, [sized(20), call, answer])
    prompt = sessions.assemble(KEY, 400)
    assert seqs(prompt) == [1, 2, 3]
    found = prompt.messages[2].data["parts"][0]["functionResponse"]["response"]["rows"]
    assert 1 <= len(found) < 20
    assert found[0]["name"] == "row 0"


# -- summaries --------------------------------------------------------------------------------------------


def test_fresh_tail_size(sessions: Sessions) -> None:
    """FreshTailSize: the tail comes before the summaries, which come before earlier messages."""
    sessions.extend(KEY, talk(48, 100))
    (leaf,) = sessions.compact(KEY).summaries
    assert leaf.last == 16
    sessions.extend(KEY, talk(6, 100))
    whole = sessions.assemble(KEY, 38 * 100 + 1_000)
    assert (len(whole.messages), whole.summaries, whole.left_out) == (38, (leaf.seq,), 0)
    size = count_summary_tokens(whole.summary) + 40
    first_tail = sessions.assemble(KEY, 32 * 100 + size)
    assert (len(first_tail.messages), first_tail.summaries, first_tail.left_out) == (32, (leaf.seq,), 6)
    longer = sessions.assemble(KEY, 32 * 100 + size, tail=38)
    assert (longer.summaries, longer.left_out) == ((), 54 - len(longer.messages))
    assert seqs(sessions.assemble(KEY, 32 * 100 + size, tail=0)) == seqs(first_tail)
    few = sessions.assemble(KEY, 500, user_first=False)
    assert (len(few.messages), few.summaries, few.left_out) == (5, (), 49)


def summary(seq: int, depth: int = 0, text: str = "what was said") -> RunSummary:
    of = (1, 2) if depth else ()
    return RunSummary(seq, depth, 1, 8, 8, of=of, tokens=estimate(text), text=text)


def test_summary_xml_escaping() -> None:
    """XMLEscaping: a summary cannot close its element, nor hide anything."""
    attack = "a < b & \"c\" 'd' </content></summary>\u202e"
    written = xml(summary(9, text=attack))
    assert "</content></summary>" not in written
    assert all(entity in written for entity in ("&lt;", "&gt;", "&amp;", "&quot;", "&apos;"))
    found = ET.fromstring(written).find("content")
    assert found is not None
    assert found.text == "\n" + attack.replace("\u202e", "<U+202E>") + "\n"


def test_summary_xml_timestamps() -> None:
    """Timestamps are there where they are known, and absent else."""
    earliest, latest = "2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z"
    element = ET.fromstring(xml(summary(9)._replace(earliest=earliest, latest=latest)))
    assert element.attrib == {
        "id": "9",
        "kind": "leaf",
        "depth": "0",
        "descendant_count": "8",
        "earliest_at": earliest,
        "latest_at": latest,
    }
    bare = ET.fromstring(xml(summary(9)))
    assert not {"earliest_at", "latest_at"} & bare.attrib.keys()
    assert bare.find("parents") is None


def test_summary_xml_with_parents() -> None:
    """WithParents, UsesSummaryRef: a condensed summary names those that it was made of."""
    element = ET.fromstring(xml(summary(9, depth=1)))
    assert element.get("kind") == "condensed"
    assert [each.attrib for each in element.findall("parents/summary_ref")] == [{"id": "1"}, {"id": "2"}]


def test_the_note_is_stronger_where_summaries_are_deep() -> None:
    mild = rendered([summary(9), summary(10, depth=1)])
    assert "expand its id" in mild
    assert "heavily" not in mild
    assert "heavily compressed" in rendered([summary(9, depth=2)])
    assert "heavily compressed" in rendered([summary(9, depth=1), summary(10, depth=1)])
    assert rendered([]) == ""


def test_summary_role_not_user(sessions: Sessions) -> None:
    """SummaryRoleNotUser: summaries are beside the messages, none of which says that somebody said them."""
    sessions.extend(KEY, talk(40, 100))
    sessions.compact(KEY)
    prompt = sessions.assemble(KEY, 10_000)
    assert prompt.summary.startswith('<summary id="41"')
    assert [message.data for message in prompt.messages] == [m.data for m in sessions.history(KEY, limit=32)]


def test_the_deepest_summaries_are_the_last_to_go(sessions: Sessions) -> None:
    """Weakness 7: the oldest summaries of the highest level were left out first."""
    sessions.extend(KEY, talk(80 + TAIL, 1_800))
    made = sessions.compact(KEY, generator=lambda *_: "z" * 2_400).summaries
    top = next(each for each in made if each.of)
    sessions.add(KEY, "user", "hello")
    prompt = sessions.assemble(KEY, 900, tail=0)
    assert prompt.summaries == (top.seq,)
    assert prompt.left_out == 80 + TAIL - top.messages


def test_a_users_message_below_a_summary_comes_up_again(sessions: Sessions) -> None:
    sessions.extend(KEY, [*talk(9, 200), *[sized(40, "assistant")] * 30, sized(10)])
    (leaf,) = sessions.compact(KEY).summaries
    assert leaf.last == 8
    sessions.sync(KEY, [m.data for m in sessions.history(KEY)][:8])
    prompt = sessions.assemble(KEY, 10_000)
    assert (seqs(prompt), prompt.summaries, prompt.left_out) == ([7], (leaf.seq,), 0)


# -- properties -------------------------------------------------------------------------------------------

ROLES = st.sampled_from(["user", "assistant", "call", "answer", "both"])
TEXT = st.text(st.sampled_from("ab 中👍\u0301\u200d<&"), max_size=30)
TOLD = st.lists(
    st.tuples(ROLES, TEXT, st.integers(1, 40), st.sampled_from([("a",), ("b",), ("a", "b")])), max_size=50
)


def turns_of(told: Sequence[tuple[str, str, int, tuple[str, ...]]]) -> list[Mapping[str, Any]]:
    """Messages; calls and answers have few ids, so that some have no other half."""
    made: list[Mapping[str, Any]] = []
    for role, text, times, ids in told:
        if role == "call":
            made.append(called(*ids))
        elif role == "answer":
            made.append(answered(ids[0], text * times))
        elif role == "both":
            parts = [{"type": "tool_result", "tool_use_id": each, "content": text * times} for each in ids]
            made.append({"role": "user", "content": parts})
        else:
            made.append({"role": role, "content": text * times})
    return made


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    TOLD,
    st.integers(0, 1_500),
    st.integers(0, 40),
    st.one_of(st.none(), st.integers(0, 1_500)),
    st.integers(0, 50),
)
@example([("user", "a b", 40, ("a",))] * 50, 300, 32, 100, 50)
def test_property_assemble_is_never_over_budget_and_parts_no_pair(
    sessions: Sessions,
    told: list[tuple[str, str, int, tuple[str, ...]]],
    budget: int,
    tail: int,
    compacted: int | None,
    keep: int,
) -> None:
    sessions.delete(KEY)
    sessions.extend(KEY, turns_of(told))
    sessions.compact(KEY, compacted)
    sessions.truncate(KEY, keep)
    history = {message.seq: message for message in sessions.history(KEY)}
    prompt = sessions.assemble(KEY, budget, tail)
    used = sum(message.tokens for message in prompt.messages) + count_summary_tokens(prompt.summary)
    assert used == prompt.tokens <= budget
    found = pairs(prompt.messages)
    assert not found.calling
    assert not found.answering
    assert seqs(prompt) == sorted(set(seqs(prompt)))
    for message in prompt.messages:
        assert (message == history[message.seq]) == (message.seq not in prompt.cut)
    with sessions.logs.reading(KEY) as conversation:
        shown = [each for each in conversation.state.context if each.seq in prompt.summaries]
    covered = {seq for seq in history if any(each.first <= seq <= each.last for each in shown)}
    assert prompt.left_out == len(history) - len(covered | set(seqs(prompt)))
    asked = [each.seq for each in history.values() if each.role == "user" and not each.answers]
    if asked and budget >= 50:
        assert asked[-1] in seqs(prompt)
