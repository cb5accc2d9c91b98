"""The observer: each step when it is due, one process at a time, every error told."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.conversations.observe.observer import ObservedSession
from mdmem.errors import LockTimeout, Usage
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem import Memory

LONG = "They weighed file formats, locks and indexes for a while, and decided on part {0} of it. " * 12


@pytest.fixture
def root(vault_root: Path) -> Path:
    return vault_root


def opened(root: Path, **settings: object) -> Memory:
    told = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
    (root / ".mdmem" / "config.toml").write_text(f"[observation]\n{told}\n", encoding="utf-8")
    return mdmem.open(root)


def say(memory: Memory, count: int, key: str = "t", start: int = 0) -> None:
    roles = ("user", "assistant")
    said = [{"role": roles[at % 2], "content": LONG.format(at)} for at in range(start, start + count)]
    memory.sessions.extend(key, said)


def only(told: Any) -> ObservedSession:
    (each,) = told
    assert isinstance(each, ObservedSession)
    return each


def model(*_: object) -> str:
    return "They decided on parts of it."


def test_all_that_is_due_is_done_in_one_go(root: Path) -> None:
    memory = opened(root, observation_tokens=5, meta_at=2)
    say(memory, 150)
    told = only(memory.observe("t", generator=model))
    assert (told.problems, told.is_busy, told.compacted) == ((), False, 0)
    assert memory.observations.due("t", model) == ()
    assert {each.generation for each in memory.observations.reflections("t")} >= {1, 2}
    made = [*memory.observations.list("t"), *memory.observations.reflections("t")]
    assert sorted(told.made) == sorted(each.path for each in made)
    assert [str(each) for each in memory.check()] == []


def test_reflecting_on_one_reflection_ends(root: Path) -> None:
    memory = opened(root, observation_tokens=1, meta_at=1)
    say(memory, 10)
    memory.observations.observe("t")
    memory.observations.reflect("t", generator=model)
    assert "reflect-meta" not in memory.observations.due("t", model)
    assert only(memory.observe("t", generator=model)).problems == ()
    say(memory, 10, start=10)
    only(memory.observe("t", generator=model))
    assert [each.generation for each in memory.observations.reflections("t")] == [1, 1, 2]


def test_without_a_model_nothing_is_reflected_on(root: Path) -> None:
    memory = opened(root, observation_tokens=1, meta_at=1)
    say(memory, 30)
    assert only(memory.observe("t")).problems == ()
    assert memory.observations.reflections("t") == []


def test_one_session_or_all_of_them(root: Path) -> None:
    memory = opened(root)
    for key in ("a", "b"):
        say(memory, 10, key)
    memory.sessions.add("short", "user", "Hi.")
    memory.sessions.alias("c", "a")
    assert [each.session for each in memory.observe(all=True)] == ["a", "b"]
    assert memory.observe(all=True) == []
    for wrong in ({}, {"session": "a", "all": True}):
        with pytest.raises(Usage):
            memory.observe(**wrong)  # type: ignore[arg-type]


def test_an_unknown_session_is_empty(root: Path) -> None:
    memory = opened(root)
    assert only(memory.observe("none")) == ObservedSession(session="none")
    assert list(root.rglob("*.md")) == []


def test_who_comes_second_leaves_it_to_the_first(root: Path) -> None:
    memory = opened(root)
    say(memory, 10)
    with memory.observations.held("t", 0):
        assert only(memory.observe("t")) == ObservedSession(session="t", is_busy=True)
        with pytest.raises(LockTimeout), memory.observations.held("t", 0):
            pass
        say(memory, 10, "other")
        assert only(memory.observe("other")).made
    assert only(memory.observe("t")).made


def test_what_comes_while_somebody_observes_is_not_forgotten(root: Path) -> None:
    """Who is told that another one is at it need not come again."""
    memory = opened(root)
    say(memory, 10)
    busy: list[ObservedSession] = []

    def model(*_: object) -> str:
        if not busy:
            other = mdmem.open(root)
            say(other, 20, start=10)
            busy.extend(other.observe("t"))
        return "They decided."

    only(memory.observe("t", generator=model))
    assert busy[0].is_busy
    assert memory.observations.due("t") == ()
    spans = [(each.first, each.last) for each in memory.observations.list("t")]
    numbers = [message.seq for message in memory.sessions.history("t")]
    assert all(sum(first <= number <= last for first, last in spans) == 1 for number in numbers)


def test_no_lock_is_held_while_a_model_thinks(root: Path) -> None:
    memory = opened(root)
    say(memory, 10)

    def model(*_: object) -> str:
        other = mdmem.open(root)
        other.sessions.add("t", "user", "Meanwhile.")
        other.write("notes/meanwhile.md", "Written.\n")
        return "They decided."

    assert only(memory.observe("t", generator=model)).problems == ()
    assert memory.show("notes/meanwhile.md").text == "Written.\n"


def test_a_step_that_fails_is_told_once_and_holds_up_no_other(root: Path) -> None:
    memory = opened(root, observation_tokens=5)
    say(memory, 10)
    memory.observations.observe("t")
    say(memory, 10, start=10)
    schema = root / ".mdmem/schemas/observation.json"
    schema.parent.mkdir()
    schema.write_text('{"required": ["generation"]}', encoding="utf-8")  # which reflections have
    memory = mdmem.open(root)
    told = only(memory.observe("t", generator=model))
    assert len(told.problems) == 1
    assert told.problems[0].startswith("observe: ")
    assert [each.rpartition("/")[2][:10] for each in told.made] == ["reflection"]
    schema.unlink()
    assert len(only(mdmem.open(root).observe("t", generator=model)).made) == 2


def test_a_broken_log_is_a_problem_of_its_own(root: Path) -> None:
    memory = opened(root)
    say(memory, 10)
    (root / "sessions/broken.jsonl").write_text('{"not": "a log"}\n')
    assert only(memory.observe("broken")).problems
    assert [each.session for each in memory.observe(all=True)] == ["t"]


# -- in a prompt ------------------------------------------------------------------------------------------


def test_a_session_that_was_observed_is_also_compacted(root: Path) -> None:
    memory = opened(root, compact=True, observation_tokens=10**6)
    compacted = 0
    for start in range(0, 120, 10):
        say(memory, 10, start=start)
        compacted += only(memory.observe("t")).compacted
    with memory.sessions.logs.reading("t") as conversation:
        leaves = [conversation.summary(each.seq) for each in conversation.state.context]
        uncovered = list(conversation.uncovered_back())
    assert compacted == len(leaves) > 0
    assert 32 <= len(uncovered) < 60
    # Nothing went away, and what each stands for opens again.
    assert leaves[0]
    opened_again = memory.sessions.expand("t", [leaves[0].seq], budget=10**6)
    assert [message.seq for message in opened_again.messages] == list(
        range(leaves[0].first, leaves[0].last + 1)
    )
    assert memory.sessions.check("t") == []
    spans = [(each.first, each.last) for each in memory.observations.list("t")]
    numbers = [message.seq for message in memory.sessions.history("t")]
    assert all(sum(first <= number <= last for first, last in spans) == 1 for number in numbers)


def test_why_a_model_compacted_nothing_is_told(root: Path) -> None:
    memory = opened(root, compact=True)
    say(memory, 60)

    def model(*_: object) -> str:
        raise TimeoutError("it took too long")

    done = only(memory.observe("t", generator=model))
    assert done.compacted > 0
    assert done.problems == ("compact: it took too long",)


def test_nothing_stands_for_messages_where_the_config_does_not_say_so(root: Path) -> None:
    memory = opened(root)
    say(memory, 100)
    assert only(memory.observe("t")).compacted == 0
    (root / ".mdmem/config.toml").write_text(
        '[observation]\ncompact = true\n[sessions]\nstateless = ["t"]\n', encoding="utf-8"
    )
    memory = mdmem.open(root)
    say(memory, 100, start=100)
    assert only(memory.observe("t")).compacted == 0


def test_a_call_and_its_answer_are_not_parted(root: Path) -> None:
    memory = opened(root, compact=True)
    call = {"role": "assistant", "content": LONG, "tool_calls": [{"id": "c", "function": {"name": "Read"}}]}
    say(memory, 9)
    memory.sessions.add_message("t", call)
    only(memory.observe("t"))
    answer = memory.sessions.add_message("t", {"role": "tool", "tool_call_id": "c", "content": LONG})
    assert answer
    say(memory, 60, start=9)
    only(memory.observe("t"))
    with memory.sessions.logs.reading("t") as conversation:
        covered = [(each.first, each.last) for each in conversation.state.context]
    assert covered
    assert all((first <= 10 <= last) == (first <= answer <= last) for first, last in covered)


# -- by itself --------------------------------------------------------------------------------------------


def test_a_watch_tells_what_it_does_as_sessions_grow(root: Path) -> None:
    memory = opened(root)
    say(memory, 10)
    watch = iter(memory.observe(all=True, watch=True))
    assert only(islice(watch, 1)).session == "t"
    say(mdmem.open(root), 10, "later")
    assert only(islice(watch, 1)).session == "later"
    alone = iter(memory.observe("t", watch=True))
    say(mdmem.open(root), 10, "t", start=10)
    assert only(islice(alone, 1)).session == "t"


def test_a_process_that_is_started_observes_and_nobody_waits(root: Path) -> None:
    memory = opened(root, enabled=True)
    assert not memory.service.start_background("none")
    scoped = mdmem.open(root, mdmem.Scope(user="alice", project="demo"))
    for each in (memory, scoped):
        say(each, 10, "-t 1")
        each.sessions.allow_capture(off=True)
        assert not each.service.start_background("-t 1")  # a config comes with the files, and can only ask
        each.sessions.allow_capture()
        assert each.service.start_background("-t 1")
        until(lambda each=each: not each.observations.due("-t 1"))  # type: ignore[misc]
        assert not each.service.start_background("-t 1")
        assert len(each.observations.list("-t 1")) == 1


def test_nothing_beside_the_program_is_run(root: Path, tmp_path: Path) -> None:
    """Not even from the folder in which a stranger's repository has a module of the same name."""
    memory = opened(root, enabled=True)
    memory.sessions.allow_capture()
    say(memory, 10)
    mark = tmp_path / "mark"
    (tmp_path / "mdmem").mkdir()
    (tmp_path / "mdmem/__init__.py").write_text(f"open({str(mark)!r}, 'w')\n")
    (tmp_path / "mdmem/__main__.py").touch()
    code = "import sys, mdmem; mdmem.open(sys.argv[1]).service.start_background('t')"
    subprocess.run([sys.executable, "-P", "-c", code, str(root)], cwd=tmp_path, check=True)
    until(lambda: memory.observations.list("t"))
    assert not mark.exists()
