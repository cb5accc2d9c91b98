"""The engine: what is summarised and when, what a summary stands for, and how a log follows a host's list."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from mdmem.conversations.log.message import Message, pairs
from mdmem.conversations.log.record import LogRecord, RunSummary
from mdmem.conversations.prompt.engine import (
    CONDENSED_TOKENS,
    MOST_DISCARDED,
    needs_compaction,
    pick_neighbours,
)
from mdmem.conversations.prompt.prompt import TAIL, count_summary_tokens, rendered
from mdmem.conversations.prompt.summarise import EXTRACT
from mdmem.conversations.sessions import Sessions
from mdmem.document.text.tokens import estimate
from mdmem.errors import NamedNotFound, SessionConflict, Usage
from mdmem.vault.vault import Vault
from tests.speed import examples

EXAMPLES = examples(100)
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY = "t:1"


@pytest.fixture
def sessions(vault_root: Path) -> Sessions:
    return Sessions(Vault(str(vault_root)))


def sized(tokens: int, role: str = "user", word: str = "word") -> dict[str, Any]:
    """A message of so many tokens."""
    base = {"role": role, "content": f"{word} "}
    return {**base, "content": f"{word} " + "x" * 4 * (tokens - Message(0, base).tokens)}


def add(sessions: Sessions, count: int, tokens: int) -> None:
    turns = itertools.cycle(("user", "assistant"))
    sessions.extend(KEY, [sized(tokens, next(turns), f"m{number}") for number in range(1, count + 1)])


def called(identifier: str) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    call = {"id": identifier, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answered(identifier: str, text: str = "it says so") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier, "content": text}


def data(messages: Sequence[Message]) -> list[Mapping[str, Any]]:
    return [message.data for message in messages]


def summaries_of(sessions: Sessions) -> list[RunSummary]:
    with sessions.logs.reading(KEY) as conversation:
        return list(conversation.state.context)


def stand_in(sessions: Sessions, *sizes: int, each: int = 2) -> None:
    """Messages, and leaves of these sizes that stand for `each` of them."""
    for number, tokens in enumerate(sizes):
        seqs = sessions.extend(KEY, [sized(30, "user"), *[sized(30, "assistant")] * (each - 1)])
        text = f"leaf{number} ".ljust(tokens * 4, "y")
        first, last = seqs[0], seqs[-1]
        assert first is not None
        assert last is not None
        leaf = RunSummary(0, 0, first, last, each, tokens=tokens, source_tokens=30 * each, text=text)

        def build(now: Any, leaf: RunSummary = leaf) -> tuple[LogRecord, None]:
            return LogRecord(seq=0, summary=leaf._replace(seq=now.state.seq + 1)), None

        sessions.logs.commit(KEY, build)


def says(text: str) -> Any:
    """A model that always says the same."""
    return lambda _prompt, _most, _temperature, _seconds: text


# -- leaves -----------------------------------------------------------------------------------------------


def test_needs_compaction() -> None:
    """NeedsCompaction: 8,000 of 10,000 tokens are too many, 5,000 are not."""
    assert needs_compaction(8_000, 10_000)
    assert not needs_compaction(5_000, 10_000)


def test_a_context_under_its_budget_is_left_alone(sessions: Sessions) -> None:
    add(sessions, 50, 100)
    assert not sessions.compact(KEY, budget=10_000).summaries
    add(sessions, 30, 100)
    assert sessions.compact(KEY, budget=10_000).summaries


def test_compact_leaf(sessions: Sessions) -> None:
    """CompactLeaf: of 40 messages of 100 tokens the 8 outside the tail become one leaf."""
    add(sessions, 40, 100)
    done = sessions.compact(KEY)
    (leaf,) = done.summaries
    assert (leaf.depth, leaf.first, leaf.last, leaf.messages, leaf.of) == (0, 1, 8, 8, ())
    assert (leaf.source_tokens, leaf.by, leaf.tokens) == (800, EXTRACT, estimate(leaf.text))
    assert leaf.tokens <= 280
    assert leaf.seq == 41
    assert done.tokens == 3_200 + count_summary_tokens(rendered([leaf]))
    assert done.stuck == ()
    history = sessions.history(KEY)
    assert [message.seq for message in history] == list(range(1, 41))
    assert (leaf.earliest, leaf.latest) == (history[0].created_at, history[7].created_at)


def test_no_candidate(sessions: Sessions) -> None:
    """NoCandidate: nothing outside the tail, too little outside it, and no session at all."""
    assert sessions.compact(KEY).tokens == 0
    add(sessions, TAIL, 100)
    assert not sessions.compact(KEY).summaries
    add(sessions, 7, 100)
    assert not sessions.compact(KEY).summaries
    sessions.add(KEY, "user", "one more")
    assert len(sessions.compact(KEY).summaries) == 1


def test_a_leaf_that_would_not_be_shorter_is_not_made(sessions: Sessions) -> None:
    add(sessions, 40, 10)
    assert not sessions.compact(KEY).summaries


def test_force_bypasses_fresh_tail(sessions: Sessions) -> None:
    """ForceBypassesFreshTail: over its budget, what is in the tail is summarised as well."""
    add(sessions, 20, 500)
    assert not sessions.compact(KEY).summaries
    done = sessions.compact(KEY, budget=5_000)
    assert done.tokens <= 5_000
    assert {message.seq for message in sessions.assemble(KEY, 5_000).messages} >= {19, 20}


def test_accumulates_up_to_leaf_chunk_tokens(sessions: Sessions) -> None:
    """AccumulatesUpToLeafChunkTokens: a leaf ends with the message that reaches 20,000 tokens."""
    add(sessions, 60, 3_000)
    first, second, *_ = sessions.compact(KEY).summaries
    assert (first.first, first.last, first.source_tokens) == (1, 7, 21_000)
    assert second.first == 8


def test_one_huge_message_is_a_leaf_alone(sessions: Sessions) -> None:
    """Weakness 1: fewer than 8 messages that reached the tokens were never summarised."""
    sessions.extend(KEY, [sized(30_000), *[sized(50, "assistant"), sized(50)] * (TAIL // 2)])
    (leaf,) = sessions.compact(KEY).summaries
    assert (leaf.first, leaf.last, leaf.messages) == (1, 1, 1)
    assert leaf.tokens <= 1_200


def test_pairs_are_never_split_by_a_leaf(sessions: Sessions) -> None:
    """Weakness 7: a leaf ends behind an answer, or before its call where that is in the tail."""
    turn = [sized(40), called("c"), answered("c", "x" * 400), sized(40, "assistant")]
    sessions.extend(KEY, turn * 14)
    for budget in (None, 1_500, 700, 0):
        for made in sessions.compact(KEY, budget).summaries:
            inside = [m for m in sessions.history(KEY) if made.first <= m.seq <= made.last]
            assert not pairs(inside).answering
            assert not pairs(inside).calling


def test_a_call_that_waits_for_its_answer_is_not_summarised(sessions: Sessions) -> None:
    sessions.extend(KEY, [sized(300), sized(300, "assistant"), sized(300), called("c")])
    sessions.compact(KEY, budget=100)
    sessions.add_message(KEY, answered("c"))
    kept = sessions.assemble(KEY, 1_000).messages
    assert [message.seq for message in kept][:2] == [3, 4]


def test_the_latest_message_of_the_user_is_never_summarised(sessions: Sessions) -> None:
    """Weakness 2: a forced leaf swallowed the turn that was going on."""
    sessions.extend(KEY, [sized(600), sized(600, "assistant")] * 3 + [sized(600, word="now")])
    work = [[called(f"c{n}"), answered(f"c{n}", "y" * 2_000)] for n in range(9)]
    sessions.extend(KEY, list(itertools.chain(*work)))
    done = sessions.compact(KEY, budget=2_500)
    assert done.tokens <= 2_500
    prompt = sessions.assemble(KEY, 2_500)
    assert [message.seq for message in prompt.messages if message.role == "user"] == [7]
    assert prompt.messages[-1].answers
    assert prompt.left_out == 0


# -- condensing -------------------------------------------------------------------------------------------


def leaves(*sizes: int, depth: int = 0) -> list[RunSummary]:
    return [RunSummary(n + 100, depth, n, n, 1, tokens=size) for n, size in enumerate(sizes, 1)]


def test_min_tokens() -> None:
    """MinTokens: four neighbours of fewer than 2,000 tokens are not condensed."""
    assert not pick_neighbours([leaves(499, 499, 499, 499)])


def test_passes_min_tokens() -> None:
    """PassesMinTokens: of 2,000 they are; and the oldest four that have them."""
    assert sum((500, 500, 500, 500)) == CONDENSED_TOKENS
    assert len(pick_neighbours([leaves(500, 500, 500, 500)])) == 4
    found = pick_neighbours([leaves(1, 1, 1, 500, 600, 700, 800)])
    assert [each.tokens for each in found] == [500, 600, 700, 800]


def test_breaks_on_message(sessions: Sessions) -> None:
    """BreaksOnMessage: summaries between which there is a message are no neighbours."""
    assert not pick_neighbours([leaves(900, 900), leaves(900, 900)])
    stand_in(sessions, 900, 900)
    sessions.add(KEY, "user", "between")
    stand_in(sessions, 900, 900)
    assert not sessions.compact(KEY).summaries


def test_non_consecutive_depths() -> None:
    """NonConsecutiveDepths: neighbours are of one depth, and the least one is first."""
    mixed = [*leaves(900, 900), *leaves(900, depth=1), *leaves(900, 900)]
    assert not pick_neighbours([mixed])
    deep = leaves(900, 900, 900, 900, depth=2)
    assert pick_neighbours([deep, [*leaves(900, depth=1), *leaves(900, 900, 900, 900)]])[0].depth == 0
    assert pick_neighbours([deep])[0].depth == 2


def test_a_single_summary_is_never_condensed_alone(sessions: Sessions) -> None:
    """Weakness 7."""
    stand_in(sessions, 2_500)
    done = sessions.compact(KEY, budget=100)
    assert not done.summaries
    assert done.stuck == (3,)


def test_returns_before_condensed(sessions: Sessions) -> None:
    """ReturnsBeforeCondensed: what can be a leaf is one before anything of the next depth is made."""
    add(sessions, 4 * 8 + TAIL, 2_600)
    made = sessions.compact(KEY, generator=says("z" * 2_400)).summaries
    depths = [each.depth for each in made]
    assert depths == sorted(depths)
    condensed = made[-1]
    assert condensed.depth == 1
    assert condensed.of == tuple(each.seq for each in made[:4])
    assert (condensed.first, condensed.last) == (made[0].first, made[3].last)
    assert condensed.messages == sum(each.messages for each in made[:4])
    assert condensed.source_tokens == sum(each.source_tokens for each in made[:4])


def test_summary_prefix_pressure(sessions: Sessions) -> None:
    """SummaryPrefixPressure: 40 summaries of 1,000 tokens become as few as fit."""
    stand_in(sessions, *[1_000] * 40)
    sessions.add(KEY, "user", "and now?")
    done = sessions.compact(KEY, budget=8_000)
    assert done.tokens <= 8_000
    assert done.stuck == ()
    prompt = sessions.assemble(KEY, 8_000)
    assert prompt.left_out == 0
    assert prompt.messages[-1].text == "and now?"
    assert sessions.compact(KEY, budget=8_000).summaries == ()


@pytest.mark.parametrize("budget", [6_000, 2_000, 600])
def test_a_budget_is_reached_or_what_is_too_large_is_named(sessions: Sessions, budget: int) -> None:
    """Weakness 2: "until under" was not."""
    stand_in(sessions, 700, 300, 700)
    sessions.add(KEY, "user", "between")
    stand_in(sessions, 800, 20)
    sessions.extend(KEY, [sized(400, "assistant"), sized(40), called("c"), answered("c")])
    done = sessions.compact(KEY, budget)
    assert done.tokens <= budget
    sessions.add_message(KEY, sized(budget + 100))
    over = sessions.compact(KEY, budget)
    with sessions.logs.reading(KEY) as conversation:
        (last,) = (message.seq for message in itertools.islice(conversation.messages_back(), 1))
    assert over.tokens > budget
    assert last in over.stuck


def test_until_under_iteration_cap(sessions: Sessions) -> None:
    """UntilUnderIterationCap: it ends where every summary comes to nothing."""
    add(sessions, 40, 100)

    def meanwhile(_prompt: str, _most: int, _temperature: float, _seconds: float) -> str:
        sessions.truncate(KEY, sessions.list()[0].messages - 1)
        return "never"

    done = sessions.compact(KEY, 500, meanwhile)
    assert done.discarded == MOST_DISCARDED
    assert not done.summaries
    assert not summaries_of(sessions)
    assert done.stuck == tuple(message.seq for message in sessions.history(KEY))


def test_problems_of_a_model_are_told(sessions: Sessions) -> None:
    add(sessions, 40, 100)
    done = sessions.compact(KEY, generator=says(""))
    assert done.problems == ("the answer was blank",)
    assert done.summaries[0].by == EXTRACT


def test_a_model_that_fails_is_asked_once(sessions: Sessions) -> None:
    """One that hangs would hang again at each of a hundred summaries."""
    asked = []

    def fails(prompt: str, _most: int, _temperature: float, _seconds: float) -> str:
        asked.append(prompt)
        raise TimeoutError("no answer")

    add(sessions, 200, 400)
    done = sessions.compact(KEY, 20_000, generator=fails)
    assert len(done.summaries) > 1
    assert {each.by for each in done.summaries} == {EXTRACT}
    assert (len(asked), done.problems) == (1, ("no answer",))


def test_a_secret_in_a_summary_is_taken_out(sessions: Sessions) -> None:
    add(sessions, 40, 100)
    (leaf,) = sessions.compact(KEY, generator=says(f"the token is {SECRET}")).summaries
    assert SECRET not in leaf.text


@pytest.mark.parametrize("setting", ['ignored = ["t:*"]', 'stateless = ["t:*"]'])
def test_ignored_and_stateless_sessions_are_not_compacted(vault_root: Path, setting: str) -> None:
    (vault_root / ".mdmem" / "config.toml").write_text(f"[sessions]\n{setting}\n")
    sessions = Sessions(Vault(str(vault_root)))
    add(sessions, 80, 100)
    assert not sessions.compact(KEY, budget=100).summaries
    assert len(sessions.history(KEY)) == (80 if "stateless" in setting else 0)


def test_arguments_that_mean_nothing_are_refused(sessions: Sessions) -> None:
    for wrong in (
        lambda: sessions.compact(KEY, budget=-1),
        lambda: sessions.assemble(KEY, -1),
        lambda: sessions.assemble(KEY, 10, tail=-1),
        lambda: sessions.expand(KEY, [1], budget=-1),
        lambda: sessions.expand(KEY, [1], depth=-1),
    ):
        with pytest.raises(Usage):
            wrong()


# -- races ------------------------------------------------------------------------------------------------


def test_races_the_model_thinks_without_the_lock(sessions: Sessions) -> None:
    add(sessions, 40, 100)

    def meanwhile(_prompt: str, _most: int, _temperature: float, _seconds: float) -> str:
        sessions.add(KEY, "user", "while it thought")
        return "short"

    (leaf,) = sessions.compact(KEY, generator=meanwhile).summaries
    assert leaf.seq == 42
    assert sessions.history(KEY, limit=1)[0].text == "while it thought"


@pytest.mark.parametrize("change", ["truncate", "clear", "delete", "set_history", "amend"])
def test_races_does_not_orphan(sessions: Sessions, change: str) -> None:
    """DoesNotOrphan: where the run changed meanwhile, no line of the log has a summary of it."""
    add(sessions, 40, 100)
    turns = [dict(message.data) for message in sessions.history(KEY)]
    changes: dict[str, Callable[[], Any]] = {
        "truncate": lambda: sessions.truncate(KEY, 39),
        "clear": lambda: sessions.clear(KEY),
        "delete": lambda: (sessions.delete(KEY), sessions.extend(KEY, turns)),
        "set_history": lambda: sessions.set_history(KEY, turns),
        "amend": lambda: sessions.sync(KEY, [turns[0] | {"model": "m"}, *turns[1:]]),
    }
    told: list[str] = []

    def meanwhile(_prompt: str, _most: int, _temperature: float, _seconds: float) -> str:
        if not told:
            changes[change]()
        told.append(change)
        return "old news" if len(told) == 1 else "news"

    done = sessions.compact(KEY, generator=meanwhile)
    assert done.discarded == 1
    with sessions.logs.reading(KEY) as conversation:
        written = [record.summary.text for record in conversation.records() if record.summary]
    assert written == [each.text for each in done.summaries]
    assert "old news" not in written


def test_races_a_cleared_session_shows_no_summary(sessions: Sessions) -> None:
    """ClearConversation, and weakness 6: an edit left stale summaries in the context."""
    add(sessions, 40, 100)
    (leaf,) = sessions.compact(KEY).summaries
    sessions.clear(KEY)
    prompt = sessions.assemble(KEY, 10_000)
    assert (prompt.summary, prompt.messages, prompt.left_out) == ("", (), 0)
    assert len(sessions.expand(KEY, [leaf.seq]).messages) == 8


# -- up and down ------------------------------------------------------------------------------------------


def deep(sessions: Sessions) -> tuple[RunSummary, RunSummary]:
    """A session of which the first 80 messages are two levels deep; its first leaf and what is over it."""
    add(sessions, 80 + TAIL, 1_800)
    made = sessions.compact(KEY, generator=says("z" * 2_400)).summaries
    return made[0], next(each for each in made if made[0].seq in each.of)


def test_a_summary_is_expanded_level_by_level(sessions: Sessions) -> None:
    """Weakness 4: summaries could not be expanded."""
    leaf, top = deep(sessions)
    assert sessions.expand(KEY, [top.seq], depth=0).summaries == (top,)
    level = sessions.expand(KEY, [top.seq], depth=1)
    assert [each.seq for each in level.summaries] == list(top.of)
    assert (level.messages, level.left_out) == ((), 0)
    below = sessions.expand(KEY, [top.seq], budget=200_000)
    assert [message.seq for message in below.messages] == list(range(top.first, top.last + 1))
    assert below.left_out == 0
    assert [each.seq for each in sessions.above(KEY, 1)] == [leaf.seq, top.seq]
    assert [each.seq for each in sessions.above(KEY, leaf.seq)] == [top.seq]
    assert not sessions.above(KEY, top.seq)
    assert sessions.above(KEY, 1)[0].text == "z" * 2_400


def test_expanding_stays_within_its_budget(sessions: Sessions) -> None:
    _, top = deep(sessions)
    some = sessions.expand(KEY, [top.seq])
    assert [message.seq for message in some.messages] == [1, 2]
    assert some.tokens <= 4_000
    assert some.left_out == top.messages - 2
    small = sessions.expand(KEY, [3], budget=100)
    assert (small.cut, small.left_out) == ((3,), 0)
    assert small.tokens <= 100
    assert sessions.expand(KEY, [3], budget=0).left_out == 1


def test_tools_answers_are_expanded_whole(sessions: Sessions) -> None:
    """Weakness of the seed's expand: what a tool gave was left out."""
    sessions.extend(KEY, [called("c"), answered("c", "the answer")])
    found = sessions.expand(KEY, [2])
    assert found.messages[0].data["content"] == "the answer"


def test_a_number_of_nothing_is_not_found(sessions: Sessions) -> None:
    add(sessions, 40, 100)
    for ask in (lambda: sessions.expand(KEY, [99]), lambda: sessions.above(KEY, 99)):
        with pytest.raises(NamedNotFound, match="t:1#99"):
            ask()


def test_a_message_dropped_before_has_no_summary_above_it(sessions: Sessions) -> None:
    add(sessions, 41, 100)
    turns = [dict(message.data) for message in sessions.history(KEY)]
    sessions.sync(KEY, turns[1:3])
    sessions.extend(KEY, turns[3:])
    (leaf,) = sessions.compact(KEY, budget=2_000).summaries[:1]
    assert leaf.last > 41
    assert not sessions.above(KEY, 1)
    assert 1 not in [message.seq for message in sessions.expand(KEY, [leaf.seq], budget=100_000).messages]


# -- the list of a host -----------------------------------------------------------------------------------

TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
    {"role": "assistant", "content": "four"},
]


def test_bootstrap_idempotent(sessions: Sessions) -> None:
    """Bootstrap Idempotent: the same list again changes nothing."""
    first = sessions.sync(KEY, TURNS)
    assert (first.kept, first.dropped, first.added, first.seq) == (0, 0, 4, 4)
    (before,) = sessions.list()
    assert sessions.sync(KEY, TURNS, expected=4).kept == 4
    assert sessions.list() == [before]


def test_bootstrap_delta(sessions: Sessions) -> None:
    """Bootstrap Delta, DeltaPreservesOrder: only what is new is added, in order, in one line."""
    sessions.sync(KEY, TURNS[:2])
    done = sessions.sync(KEY, TURNS, expected=2)
    assert (done.kept, done.dropped, done.added, done.seq) == (2, 0, 2, 4)
    assert data(sessions.history(KEY)) == TURNS
    with sessions.logs.reading(KEY) as conversation:
        assert [len(record.messages) for record in conversation.records()] == [2, 2]


def test_bootstrap_duplicate_content(sessions: Sessions) -> None:
    """Bootstrap DuplicateContent, AnchorWithDuplicateContent: messages that say the same are several."""
    same = {"role": "user", "content": "again"}
    sessions.sync(KEY, [same, same])
    assert sessions.sync(KEY, [same, same, same]).added == 1
    sessions.sync(KEY, [same, same, same, TURNS[1], same])
    assert data(sessions.history(KEY)) == [same, same, same, TURNS[1], same]


def test_bootstrap_history_edit_first_message_changed(sessions: Sessions) -> None:
    """Bootstrap HistoryEditFirstMessageChanged: then nothing of the log stays in the history."""
    add(sessions, 40, 100)
    sessions.compact(KEY)
    done = sessions.sync(KEY, [{"role": "user", "content": "other"}, *TURNS[1:]])
    assert (done.kept, done.dropped, done.added) == (0, 40, 4)
    assert not summaries_of(sessions)
    assert sessions.message(KEY, 1).text.startswith("m1 ")


def test_an_edit_keeps_what_was_before_it_and_its_summaries(sessions: Sessions) -> None:
    add(sessions, 60, 100)
    sessions.compact(KEY)
    kept = summaries_of(sessions)
    turns = data(sessions.history(KEY))
    done = sessions.sync(KEY, [*turns[:50], TURNS[0]])
    assert (done.kept, done.dropped, done.added) == (50, 10, 1)
    assert summaries_of(sessions) == kept
    done = sessions.sync(KEY, turns[:4])
    assert (done.kept, done.dropped, done.added, done.seq) == (4, 47, 0, 4)
    assert not summaries_of(sessions)
    assert sessions.sync(KEY, []).seq == 0


def test_bootstrap_tool_parts_are_searchable(sessions: Sessions) -> None:
    """ToolParts: the text of a message has the names, arguments and answers of tools."""
    parts = [
        {"type": "text", "text": "look"},
        {"type": "tool_use", "id": "u1", "name": "grep", "input": {"pattern": "needle"}},
    ]
    back = [{"type": "tool_result", "tool_use_id": "u1", "content": [{"type": "text", "text": "hay"}]}]
    turns: list[dict[str, Any]] = [{"role": "assistant", "content": parts}, {"role": "user", "content": back}]
    sessions.sync(KEY, turns)
    sessions.sync(KEY, turns)
    asked, got = sessions.history(KEY)
    assert asked.text == 'look\n[tool_use: grep, args: {"pattern":"needle"}]'
    assert got.text == "[tool_result for u1: hay]"


def test_repaired_fields_drop_no_summaries(sessions: Sessions) -> None:
    """Missing reasoning, model and time are filled in, what is there stays, and summaries stand."""
    add(sessions, 40, 100)
    sessions.compact(KEY)
    turns = [dict(message.data) for message in sessions.history(KEY)]
    fields: dict[str, Any] = {
        "reasoning_content": "hm",
        "model_name": "m",
        "created_at": "2026-01-02T03:04:05Z",
    }
    turns[1] |= fields
    done = sessions.sync(KEY, turns, expected=40)
    assert (done.kept, done.dropped, done.added, done.amended, done.seq) == (40, 0, 0, 1, 40)
    assert len(summaries_of(sessions)) == 1
    assert sessions.history(KEY)[1].data == turns[1]
    assert sessions.message(KEY, 2).reasoning == "hm"
    assert sessions.sync(KEY, [{**turn, "model_name": ""} for turn in turns]).kept == 40
    turns[1]["model_name"] = "other"
    assert sessions.sync(KEY, turns).dropped == 39


def test_amended_fields_outlive_a_drop(sessions: Sessions) -> None:
    sessions.extend(KEY, TURNS)
    sessions.sync(KEY, [TURNS[0] | {"model": "m"}, *TURNS[1:]])
    sessions.truncate(KEY, 1)
    for _ in range(2):
        assert sessions.message(KEY, 1).data["model"] == "m"
        sessions.vacuum(KEY)


def test_true_is_not_one(sessions: Sessions) -> None:
    sessions.sync(KEY, [{"role": "user", "content": "a", "flag": True}])
    assert sessions.sync(KEY, [{"role": "user", "content": "a", "flag": 1}]).dropped == 1


def test_races_sync_refuses_what_went_on_past_what_the_host_knew(sessions: Sessions) -> None:
    done = sessions.sync(KEY, TURNS)
    sessions.add(KEY, "user", "from elsewhere")
    with pytest.raises(SessionConflict, match="went on to message 5"):
        sessions.sync(KEY, TURNS, expected=done.seq)
    assert len(sessions.history(KEY)) == 5
    assert sessions.sync(KEY, TURNS).dropped == 1


def test_races_what_the_engine_wrote_is_no_conflict(sessions: Sessions) -> None:
    add(sessions, 40, 100)
    turns = data(sessions.history(KEY))
    sessions.compact(KEY)
    assert sessions.sync(KEY, turns, expected=40).kept == 40


def test_races_a_redacted_or_transient_message_makes_sync_drop_nothing(sessions: Sessions) -> None:
    thought = {"role": "assistant", "content": "", "reasoning_content": "hm"}
    turns = [TURNS[0], thought, {"role": "assistant", "content": f"key {SECRET}"}, TURNS[2]]
    assert sessions.sync(KEY, turns).added == 3
    done = sessions.sync(KEY, [*turns, TURNS[3]])
    assert (done.kept, done.dropped, done.added) == (3, 0, 1)
    assert SECRET not in sessions.history(KEY)[1].text


def test_races_a_secret_from_before_it_was_redacted_makes_sync_drop_nothing(vault_root: Path) -> None:
    config = vault_root / ".mdmem" / "config.toml"
    config.write_text('[sessions]\nsecrets = "keep"\n')
    turns = [{"role": "user", "content": f"key {SECRET}"}]
    Sessions(Vault(str(vault_root))).sync(KEY, turns)
    config.write_text("")
    done = Sessions(Vault(str(vault_root))).sync(KEY, turns)
    assert (done.kept, done.dropped) == (1, 0)


# -- properties -------------------------------------------------------------------------------------------

ROLES = st.sampled_from(["user", "assistant", "call", "answer"])
TOLD = st.lists(st.tuples(ROLES, st.integers(5, 400), st.sampled_from("ab")), max_size=60)


def turns_of(told: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
    """Messages; calls and answers have few ids, so that some have no other half."""
    made: list[dict[str, Any]] = []
    for number, (role, tokens, identifier) in enumerate(told):
        text = f"w{number} ".ljust(tokens * 4, "x")
        if role == "call":
            made.append(called(identifier))
        elif role == "answer":
            made.append(answered(identifier, text))
        else:
            made.append({"role": role, "content": text})
    return made


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    TOLD, st.lists(st.one_of(st.none(), st.integers(0, 4_000)), min_size=1, max_size=3), st.integers(0, 60)
)
@example([("user", 200, "a")] * 50, [None, 500], 5)
def test_property_expand_gives_equal_messages_at_any_depth(
    sessions: Sessions, told: list[tuple[str, int, str]], budgets: list[int | None], keep: int
) -> None:
    """Also after truncate and vacuum."""
    sessions.delete(KEY)
    sessions.extend(KEY, turns_of(told))
    for budget in budgets:
        done = sessions.compact(KEY, budget)
        assert budget is None or done.tokens <= budget or done.stuck
    with sessions.logs.reading(KEY) as conversation:
        history = list(conversation.messages())
        every = [record.summary for record in conversation.records() if record.summary]

    def check() -> None:
        for summary in every:
            below = sessions.expand(KEY, [summary.seq], budget=1_000_000)
            said = [each for each in history if summary.first <= each.seq <= summary.last]
            assert list(below.messages) == said
            assert (below.left_out, len(said)) == (0, summary.messages)
            numbers = {each.seq for each in said}
            for first, last in pairs(history).joined:
                assert (history[first].seq in numbers) == (history[last].seq in numbers)

    check()
    sessions.truncate(KEY, keep)
    check()
    sessions.vacuum(KEY)
    check()
    sessions.vacuum(KEY)
    for message in history:
        assert sessions.message(KEY, message.seq) == message


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TOLD, TOLD, st.integers(0, 60))
def test_property_sync_makes_the_log_equal_to_any_list(
    sessions: Sessions,
    told: list[tuple[str, int, str]],
    other: list[tuple[str, int, str]],
    common: int,
) -> None:
    sessions.delete(KEY)
    first, second = turns_of(told), turns_of(other)
    sessions.sync(KEY, first)
    both = [*first[:common], *second]
    done = sessions.sync(KEY, both)
    assert data(sessions.history(KEY)) == both
    assert done.kept + done.added == len(both)
    assert sessions.sync(KEY, both, expected=done.seq).added == 0
