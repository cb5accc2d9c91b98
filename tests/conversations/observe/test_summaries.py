"""Session summaries: what a session came to, as a memory that grows and that people may edit."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.conversations.observe.summaries import Summaries
from mdmem.errors import AlreadyExists, MemoryNotFound, SessionConflict, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem import Memory

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
TALK = [
    ("user", "Which database do we take for Atlas, Postgres or SQLite?"),
    ("assistant", "We decided to use SQLite for Atlas. It is one file."),
    ("user", "Good. We need to write the backup job in src/backup.py."),
    ("assistant", "I will follow up on Monday. See [[db]] and #ops, <b>soon</b>."),
]
DECIDED = "assistant decided: We decided to use SQLite for Atlas. (#2)"


@pytest.fixture
def memory(vault_root: Path) -> Memory:
    return mdmem.open(vault_root)


def talk(memory: Memory, key: str = "t:1", start: int = 0, end: int | None = None) -> None:
    for role, content in TALK[start:end]:
        memory.sessions.add(key, role, content)


def test_a_session_is_summarized_into_a_memory_that_passes_every_check(memory: Memory) -> None:
    talk(memory)
    memory.summaries.summarize("t:1")
    found = memory.summaries.get("t:1")
    assert found is not None
    assert (found.path, found.key, found.through, found.messages) == ("sessions/t%3A1.md", "t:1", 4, 4)
    assert found.decisions == (DECIDED,)
    assert found.action_items == ("open: I will follow up on Monday. (#4)",)
    assert "SQLite" in found.topics
    assert found.key_points
    assert [each for each in memory.check() if each.severity == "error"] == []
    # Nothing that was said becomes a link, a tag or HTML.
    document = memory.show(found.path)
    assert (document.links, document.tags) == ((), ())
    assert memory.summaries.list() == [found]


def test_only_what_came_after_is_added_and_what_people_wrote_stays(memory: Memory) -> None:
    talk(memory, end=2)
    memory.summaries.summarize("t:1")
    mine = "- We use SQLite, says Ann.\n- Written by hand."
    assert "Action items" not in memory.summaries.text("t:1")
    memory.section("sessions/t%3A1.md", "Decisions", mine)
    with pytest.raises(Usage, match="nothing was said"):
        memory.summaries.summarize("t:1")
    talk(memory, start=2)
    memory.summaries.summarize("t:1")
    found = memory.summaries.get("t:1")
    assert found is not None
    assert found.decisions == ("We use SQLite, says Ann.", "Written by hand.")
    assert (found.through, found.messages) == (4, 4)
    assert "backup job" in memory.summaries.text("t:1")


@pytest.mark.parametrize(
    "model", [None, lambda *_: answer(key_points=["SQLite", "One file."], action_items=["SQLite"])]
)
def test_nothing_is_said_twice_and_no_heading_is_empty(memory: Memory, model: Any) -> None:
    for start in range(4):
        talk(memory, start=start, end=start + 1)
        memory.sessions.add("t:1", "user", "Please write the backup job.")
        memory.summaries.summarize("t:1", model)
    text = memory.summaries.text("t:1")
    lines = [re.sub(r" \(#[0-9]+\)|^- ", "", line) for line in text.split("\n") if line]
    assert len(lines) == len(set(lines)), text
    assert re.search(r"(?m)^##[^\n]*\n+(##|\Z)", text) is None


def test_a_name_says_who_asked(memory: Memory) -> None:
    memory.sessions.extend(
        "t:1", [{"role": "user", "name": "Alice", "content": "Please write the backup job."}]
    )
    memory.summaries.summarize("t:1")
    assert "Alice asked: Please write the backup job." in memory.summaries.text("t:1")


def test_messages_in_which_nothing_happened_make_a_summary_that_says_nothing(memory: Memory) -> None:
    memory.sessions.add("t:1", "user", "continue")
    memory.summaries.summarize("t:1")
    assert memory.summaries.text("t:1") == "# t:1"
    assert not memory.summaries.due("t:1")


def test_a_session_made_again_is_summarized_from_its_start(memory: Memory) -> None:
    talk(memory)
    memory.summaries.summarize("t:1")
    memory.sessions.delete("t:1")
    talk(memory, end=2)
    memory.summaries.summarize("t:1")
    found = memory.summaries.get("t:1")
    assert found is not None
    assert (found.through, found.messages) == (2, 2)


def test_a_summary_is_due_after_so_many_messages(memory: Memory, vault_root: Path) -> None:
    (vault_root / ".mdmem/config.toml").write_text("[sessions]\nsummary_every = 3\n", encoding="utf-8")
    memory = mdmem.open(vault_root)
    talk(memory, end=2)
    assert not memory.summaries.due("t:1")
    talk(memory, start=2, end=3)
    assert memory.summaries.due("t:1")
    memory.summaries.summarize("t:1")
    assert not memory.summaries.due("t:1")
    assert not memory.summaries.due("none")


def answer(**changed: Any) -> str:
    shape = {
        "summary": "They chose.",
        "topics": ["db"],
        "key_points": ["One file."],
        "decisions": ["SQLite"],
    }
    return json.dumps({**shape, **changed})


@pytest.mark.parametrize(
    ("said", "by", "decisions"),
    [
        (f"Here it is:\n{answer()}\nDone.", "model", ("SQLite",)),
        (f"```json\n{answer()}\n```", "model", ("SQLite",)),
        (answer(decisions=["SQLite", " "]), "model", ("SQLite",)),
        (answer(decisions="SQLite"), "rules", (DECIDED,)),
        (answer(decisions=[1, "SQLite"]), "rules", (DECIDED,)),
        (answer(summary=" "), "rules", (DECIDED,)),
        ("no JSON", "rules", (DECIDED,)),
        ("[1]", "rules", (DECIDED,)),
        ("", "rules", (DECIDED,)),
    ],
)
def test_a_models_answer_counts_where_it_is_sound(
    memory: Memory, said: str, by: str, decisions: tuple[str, ...]
) -> None:
    def model(_prompt: str, _tokens: int, _temperature: float, _seconds: float) -> str:
        return said

    talk(memory)
    memory.summaries.summarize("t:1", model)
    found = memory.summaries.get("t:1")
    assert found is not None
    assert found.decisions == decisions
    assert memory.show(found.path).fields["by"] == by


def test_a_model_that_fails_leaves_it_to_the_rules(memory: Memory) -> None:
    def model(_prompt: str, _tokens: int, _temperature: float, _seconds: float) -> str:
        raise OSError("no network")

    talk(memory, end=2)
    memory.summaries.summarize("t:1", model)
    fields = memory.show("sessions/t%3A1.md").fields
    assert (fields["by"], fields["problem"]) == ("rules", "no network")
    talk(memory, start=2)
    memory.summaries.summarize("t:1", lambda *_: answer())
    assert memory.show("sessions/t%3A1.md").fields["problem"] is None
    assert [each for each in memory.check() if each.severity == "error"] == []


def test_what_of_a_models_answer_is_too_long_is_cut_at_a_sentence_and_counted(memory: Memory) -> None:
    long = "They chose SQLite. " * 200
    talk(memory)
    memory.summaries.summarize("t:1", lambda *_: answer(summary=long, decisions=[long]))
    (decision,) = [each.decisions[0] for each in memory.summaries.list()]
    for told in (memory.summaries.text("t:1").partition("## Key")[0], decision):
        assert re.search(r"SQLite\. \\?\[[0-9],?[0-9]{3} characters left out\]", told)


def test_nothing_hidden_and_no_secret_in_a_models_answer_is_kept(memory: Memory) -> None:
    talk(memory)
    said = answer(summary="They chose\u202e it.", decisions=[f"Use {TOKEN}"])
    memory.summaries.summarize("t:1", lambda *_: said)
    text = memory.show("sessions/t%3A1.md").text
    assert "U+202E" in text
    assert "REDACTED-github-token" in text
    assert "\u202e" not in text
    assert "ghp_" not in text


def test_who_comes_second_is_told(memory: Memory) -> None:
    def model(_prompt: str, _tokens: int, _temperature: float, _seconds: float) -> str:
        memory.write("sessions/t%3A1.md", "# By another program\n")
        return answer()

    talk(memory)
    with pytest.raises(SessionConflict):
        memory.summaries.summarize("t:1", model)
    assert memory.show("sessions/t%3A1.md").text == "# By another program\n"


def test_a_section_that_somebody_removed_is_made_again(memory: Memory) -> None:
    talk(memory, end=1)
    memory.write("sessions/t%3A1.md", "---\nsession: t:1\n---\n\n# Mine\n")
    talk(memory, start=1)
    memory.summaries.summarize("t:1")
    text = memory.summaries.text("t:1")
    assert text.startswith("# Mine\n")
    assert "## Decisions\n\n- assistant decided: We decided" in text


def test_a_summary_is_removed_and_comes_back(memory: Memory) -> None:
    talk(memory)
    memory.summaries.summarize("t:1")
    memory.summaries.delete("t:1")
    assert memory.summaries.get("t:1") is None
    assert memory.summaries.text("t:1") == ""
    with pytest.raises(MemoryNotFound):
        memory.summaries.delete("t:1")
    memory.undo()
    assert memory.summaries.get("t:1") is not None
    assert len(memory.sessions.history("t:1")) == 4


def test_a_conversation_is_kept_as_a_note(memory: Memory) -> None:
    talk(memory)
    memory.summaries.keep("t:1", "talks/atlas")
    note = memory.notes.read("talks/atlas")
    assert note.fields["source"] == {"type": "session", "ids": ["t:1#1", "t:1#4"]}
    assert "> Which database do we take" in note.text
    with pytest.raises(AlreadyExists):
        memory.summaries.keep("t:1", "talks/atlas")
    with pytest.raises(Usage, match="too short"):
        memory.summaries.keep("t:1", "other", min_tokens=10_000)
    with pytest.raises(Usage, match="nothing was said in 'none'"):
        memory.summaries.keep("none")
    memory.summaries.keep("t:1")
    assert memory.exists("notes/t%3A1.md")


def test_an_alias_has_the_summary_of_what_it_names(memory: Memory) -> None:
    talk(memory)
    memory.sessions.alias("me", "t:1")
    memory.summaries.summarize("me")
    assert memory.summaries.get("me") == memory.summaries.get("t:1")


def test_its_verbs_check_their_arguments(memory: Memory) -> None:
    assert isinstance(memory.summaries, Summaries)
    with pytest.raises(TypeError):
        memory.summaries.summarize(3)  # type: ignore[arg-type]
