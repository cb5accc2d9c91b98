"""Where it goes what people state: preferences, bullets, rules and proposals, each message counted once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

import mdmem
from mdmem.conversations.observe.candidate import Candidate
from mdmem.conversations.observe.capture import Capture
from mdmem.conversations.observe.statement import name_for
from mdmem.document.source import normal, said_in
from mdmem.errors import NamedNotFound, Usage
from tests.speed import examples, soak_most

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem import Applied, Memory
    from mdmem.conversations.observe.capture import Captured

EXAMPLES = examples(100)
MESSAGES = examples(60)
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ANY: Any = None


@pytest.fixture
def memory(vault_root: Path) -> Memory:
    return configured(vault_root, '[capture]\npolicy = "apply"\n')


def configured(root: Path, text: str) -> Memory:
    (root / ".mdmem/config.toml").write_text(text, encoding="utf-8")
    return mdmem.open(root)


def stated(kind: str, value: str, category: str = "", key: str = "", confidence: float = 0.8) -> Candidate:
    return Candidate(
        kind=kind,
        category=category,
        key=key,
        value=value,
        quote=value,
        start=0,
        end=len(value),
        confidence=confidence,
        why="said",
    )


def theme(value: str, confidence: float = 0.8) -> Candidate:
    return stated("preference", value, "ui", "theme", confidence)


def keep(memory: Memory, candidate: Candidate, seq: int = 1, policy: str | None = None) -> str:
    (item,) = memory.capture.keep(candidate, f"sessions/t#{seq}", policy=policy).items
    return item.outcome


def kept(memory: Memory, candidates: list[Candidate], seq: int) -> list[str]:
    return [keep(memory, each, seq) for each in candidates]


def later(memory: Memory, days: float) -> Capture[Applied]:
    """Capture as it is so many days from now."""
    clock = lambda: datetime.now(UTC) + timedelta(days=days)  # noqa: E731
    return Capture(
        memory.vault, memory.vault.transact, memory._find_verb, memory.sessions, moves=True, clock=clock
    )


def state(root: Path) -> dict[str, bytes]:
    every = [p for p in root.rglob("*.md") if p.is_file() and ".mdmem" not in p.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in every}


@pytest.mark.parametrize("policy", ["inbox", "apply"])
def test_a_decision_has_the_day_in_utc_on_which_it_was_said(memory: Memory, policy: str) -> None:
    days = {"2024-05-06T23:30:00-02:00": "2024-05-07", "2023-01-02T03:04:05": "2023-01-02"}
    for number, said in enumerate(days):
        message = {"role": "user", "content": f"We decided to use SQLite {number}.", "created_at": said}
        memory.sessions.add_message("t", message)
    memory.sessions.add("t", "user", "We decided to use Redis.")
    captured = memory.capture.run("t", policy=policy)
    for item in captured.items if policy == "inbox" else ():
        memory.inbox.accept(item.path)
    bullets = memory.show("notes/decisions.md").text.splitlines()
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert [line[2:12] for line in bullets if line.startswith("- ")] == [*days.values(), today]


# -- wishes -------------------------------------------------------------------------------------------------


def test_a_repeated_wish_strengthens_and_the_same_message_does_not(memory: Memory) -> None:
    assert keep(memory, theme("dark"), 1) == "kept"
    first = memory.preferences.get("ui", "theme")
    assert (first.value, first.stored_strength, first.confidence) == ("dark", 0.7, 0.8)
    assert keep(memory, theme("dark"), 1) == "known"
    assert memory.preferences.get("ui", "theme") == first
    assert keep(memory, theme("Dark.", 0.9), 2) == "strengthened"
    second = memory.preferences.get("ui", "theme")
    assert (second.value, second.stored_strength, second.confidence) == ("dark", 0.8, 0.9)
    source = memory.show(second.path).fields["source"]
    assert source == {"type": "conversation", "ids": ["sessions/t#1", "sessions/t#2"]}
    for seq in range(3, 20):
        keep(memory, theme("dark"), seq)
    assert memory.preferences.get("ui", "theme").stored_strength == 1
    assert memory.check() == []


@pytest.mark.parametrize("policy", ["keep-latest", "keep-stronger"])
def test_light_mode_after_dark_mode_replaces_it(vault_root: Path, policy: str) -> None:
    memory = configured(vault_root, f'[capture]\npolicy = "apply"\n[preferences]\npolicy = "{policy}"\n')
    keep(memory, theme("dark"), 1)
    assert keep(memory, theme("light"), 2) == "kept"
    assert memory.preferences.get("ui", "theme").value == "light"
    assert keep(memory, theme("dark"), 1) == "known", "what was said before is not said again"
    assert memory.preferences.get("ui", "theme").value == "light"
    assert len(memory.preferences.list()) == 1


def test_what_is_stronger_stays_where_the_config_says_so_and_the_wish_is_proposed(vault_root: Path) -> None:
    memory = configured(vault_root, '[capture]\npolicy = "apply"\n[preferences]\npolicy = "keep-stronger"\n')
    memory.preferences.set("ui", "theme", "dark", strength=1.0)
    assert keep(memory, theme("light"), 1) == "proposed"
    assert memory.preferences.get("ui", "theme").value == "dark"
    (proposal,) = memory.inbox.list()
    memory.inbox.accept(proposal.id)
    assert memory.preferences.get("ui", "theme").value == "light"
    assert keep(memory, theme("light"), 1) == "known"


def test_a_wish_without_a_key_is_found_again_by_what_it_says(memory: Memory) -> None:
    assert keep(memory, stated("preference", "short sentences", "format"), 1) == "kept"
    assert keep(memory, stated("preference", "Short sentences.", "format"), 2) == "strengthened"
    assert keep(memory, stated("preference", "short sentences", "content"), 3) == "kept", (
        "of another category"
    )
    assert [each.category for each in memory.preferences.list()] == ["content", "format"]
    memory.mv("preferences/format/short-sentences.md", "preferences/format/length.md")
    assert keep(memory, stated("preference", "short sentences", "format"), 4) == "strengthened"
    assert keep(memory, stated("preference", "long sentences"), 5) == "kept"
    assert [each.category for each in memory.preferences.list()] == ["content", "format", "general"]


# -- decisions and facts ------------------------------------------------------------------------------------


def test_a_decision_becomes_a_dated_bullet_once_with_every_source(memory: Memory) -> None:
    assert keep(memory, stated("decision", "Use SQLite for the index"), 1) == "kept"
    assert keep(memory, stated("decision", "Use SQLite for the index"), 1) == "known"
    assert keep(memory, stated("decision", "use SQLite for the index."), 2) == "strengthened"
    assert keep(memory, stated("decision", "Use Postgres for the index"), 3) == "kept"
    assert keep(memory, stated("fact", "Use SQLite for the index"), 4) == "kept"
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    assert memory.show("notes/decisions.md").text == (
        f"- {day}: Use SQLite for the index (sessions/t#1 sessions/t#2)\n"
        f"- {day}: Use Postgres for the index (sessions/t#3)\n"
    )
    assert memory.show("notes/facts.md").text == f"- {day}: Use SQLite for the index (sessions/t#4)\n"


def test_what_people_wrote_in_the_note_stays(memory: Memory) -> None:
    mine = "# Decisions\n\nBy hand.\n\n- Use one file.\n\n  Because.\n"
    memory.write("notes/decisions.md", mine)
    assert keep(memory, stated("decision", "use one file"), 1) == "strengthened"
    keep(memory, stated("decision", "test first"), 2)
    text = memory.show("notes/decisions.md").text
    assert text.startswith("# Decisions\n\nBy hand.\n\n- Use one file. (sessions/t#1)\n\n  Because.\n- ")
    for change in memory.history()[:2]:
        memory.undo(change.id)
    assert memory.show("notes/decisions.md").text == mine


@pytest.mark.parametrize("category", [".", "..", "a" * 2_000])
def test_a_preference_that_no_file_can_carry_is_refused_with_the_reason(
    memory: Memory, category: str
) -> None:
    (item,) = memory.capture.keep(stated("preference", "x", category, "y"), "sessions/t#1").items
    assert item.outcome == "refused"
    assert item.reason


def test_a_captured_preference_does_not_take_the_reason_of_the_old_value(memory: Memory) -> None:
    memory.preferences.set("ui", "theme", "dark", why="He works at night.")
    keep(memory, stated("preference", "light", "ui", "theme"), 1)
    found = memory.preferences.get("ui", "theme")
    assert (found.value, found.why) == ("light", "")


def test_nothing_is_written_where_it_would_be_swallowed(memory: Memory) -> None:
    memory.write("notes/decisions.md", "```\nopen\n")
    (item,) = memory.capture.keep(stated("decision", "x y z"), "sessions/t#1").items
    assert item.outcome == "refused"
    assert "never closed" in item.reason
    assert memory.show("notes/decisions.md").text == "```\nopen\n"


def test_what_was_said_becomes_no_link_tag_or_html(memory: Memory) -> None:
    said = "See [[db]] and #ops, <b>soon</b> \u202e # x `"
    keep(memory, stated("decision", said), 1)
    keep(memory, stated("constraint", said), 1)
    for path in ("notes/decisions.md", memory.rules.list(disabled=True)[0].path):
        document = memory.show(path)
        assert (document.links, document.tags, document.headings) == ((), (), ())
        assert "<U+202E>" in document.text
    assert keep(memory, stated("decision", said), 2) == "strengthened"
    assert keep(memory, stated("constraint", said), 2) == "strengthened"


# -- constraints --------------------------------------------------------------------------------------------


def test_a_constraint_becomes_a_rule_that_is_not_enabled(memory: Memory) -> None:
    assert keep(memory, stated("constraint", "Never push to main"), 1) == "kept"
    assert memory.rules.list() == []
    (rule,) = memory.rules.list(disabled=True)
    assert (rule.text, rule.path) == ("Never push to main", "rules/never-push-to-main.md")
    assert keep(memory, stated("constraint", "never push to main!"), 1) == "known"
    assert keep(memory, stated("constraint", "never push to main!"), 2) == "strengthened"
    assert memory.show(rule.path).fields["source"]["ids"] == ["sessions/t#1", "sessions/t#2"]
    assert keep(memory, stated("constraint", "push to main"), 3) == "kept"
    memory.set(rule.path, {"enabled": True})
    assert keep(memory, stated("constraint", "never push to main"), 4) == "strengthened"
    assert [each.enabled for each in memory.rules.list()] == [True], "what a person decided stays"
    assert [each for each in memory.check() if each.severity == "error"] == []


def test_a_statement_without_words_and_one_of_another_kind_are_not_kept(
    memory: Memory, vault_root: Path
) -> None:
    assert keep(memory, stated("fact", " "), 1) == "not kept"
    assert keep(memory, stated("feeling", "it is nice"), 1) == "not kept"
    assert state(vault_root) == {}


# -- the inbox ----------------------------------------------------------------------------------------------


def test_with_the_inbox_everything_new_is_proposed_and_accepted_by_people(vault_root: Path) -> None:
    memory = configured(vault_root, '[capture]\npolicy = "inbox"\n')
    candidates = [theme("dark"), stated("decision", "Use SQLite"), stated("constraint", "Never push")]
    assert kept(memory, candidates, 1) == ["proposed"] * 3
    assert {path.partition("/")[0] for path in state(vault_root)} == {"inbox"}
    assert kept(memory, candidates, 1) == ["known"] * 3
    assert kept(memory, candidates, 2) == ["strengthened"] * 3
    waiting = memory.inbox.list()
    assert [each.sources for each in waiting] == [("sessions/t#1", "sessions/t#2")] * 3
    assert all(each.author == "capture" and "stated" in each.reason for each in waiting)
    for each in waiting:
        memory.inbox.accept(each.id)
    assert memory.preferences.get("ui", "theme").value == "dark"
    assert "Use SQLite (sessions/t#1 sessions/t#2)" in memory.show("notes/decisions.md").text
    assert [each.enabled for each in memory.rules.list(disabled=True)] == [False]
    assert kept(memory, candidates, 2) == ["known"] * 3
    assert memory.inbox.list(all=True) == []
    assert kept(memory, candidates, 3) == ["strengthened"] * 3
    assert [each for each in memory.check() if each.severity == "error"] == []


def test_what_was_rejected_is_not_proposed_again_however_it_is_written(vault_root: Path) -> None:
    memory = configured(vault_root, '[capture]\npolicy = "inbox"\n')
    for kind in ("decision", "preference", "constraint"):
        keep(memory, stated(kind, "Use the SQLite index"), 1)
    for each in memory.inbox.list():
        memory.inbox.reject(each.id)
    before = state(vault_root)
    for kind in ("decision", "preference", "constraint"):
        assert keep(memory, stated(kind, "use the SQLite  index!"), 2) == "rejected"
        assert keep(memory, stated(kind, "use the SQLite  index!"), 3, "apply") == "rejected"
    assert state(vault_root) == before


def test_beyond_the_limit_proposals_are_counted_and_not_made(vault_root: Path) -> None:
    memory = configured(vault_root, '[capture]\npolicy = "inbox"\nmax_open = 2\n')
    facts = [stated("fact", f"fact {n} is so") for n in range(5)]
    assert kept(memory, facts, 1) == ["proposed"] * 2 + ["left out"] * 3
    assert len(memory.inbox.list()) == 2
    done = memory.capture.keep(facts[4], "sessions/t#1")
    assert done.left_out == 1
    assert "1 not proposed" in done.told


def test_what_lapsed_is_proposed_anew_when_it_is_said_again(vault_root: Path) -> None:
    memory = configured(vault_root, '[capture]\npolicy = "inbox"\n')
    keep(memory, theme("dark"), 1)
    future = later(memory, 31)
    (item,) = future.keep(theme("dark"), "sessions/t#2").items
    assert item.outcome == "strengthened"
    (waiting,) = memory.inbox.list()
    assert waiting.expires is not None
    assert waiting.expires > datetime.now(UTC) + timedelta(days=60)


@pytest.mark.parametrize("policy", [None, "off"])
def test_where_it_is_off_nothing_happens_and_it_says_so(vault_root: Path, policy: str | None) -> None:
    memory = configured(vault_root, "")
    memory.sessions.add("t", "user", "I prefer dark mode.")
    log = (vault_root / "sessions/t.jsonl").read_bytes()
    answers = [
        memory.capture.keep(theme("dark"), "sessions/t#1", policy=policy),
        memory.capture.run("t", policy=policy),
        memory.capture.from_message("t", 1, policy=policy),
        memory.capture.from_event("decision_made", {"title": "x"}, policy=policy),
    ]
    assert all((each.policy, each.items) == ("off", ()) and "is off" in each.told for each in answers)
    assert state(vault_root) == {}
    assert (vault_root / "sessions/t.jsonl").read_bytes() == log


# -- what can go wrong --------------------------------------------------------------------------------------


def test_what_is_unknown_is_refused_with_what_is_known(memory: Memory) -> None:
    with pytest.raises(Usage, match="off, inbox, apply"):
        memory.capture.run("t", policy="all")
    with pytest.raises(Usage, match="decision_made"):
        memory.capture.from_event("decision", {})
    with pytest.raises(AttributeError):
        memory.capture.keep(ANY, "sessions/t#1")
    with pytest.raises(Usage, match="a source is like"):
        memory.capture.keep(theme("dark"), "a b")
    assert memory.capture.run("none").items == ()
    assert memory.capture.from_message("none", 3).items == ()
    memory.sessions.add("t", "user", "hello")
    with pytest.raises(NamedNotFound):
        memory.capture.from_message("t", 3)


@pytest.mark.parametrize("policy", ["inbox", "apply"])
def test_a_secret_is_taken_out_with_a_warning(memory: Memory, vault_root: Path, policy: str) -> None:
    for kind in ("decision", "constraint", "preference"):
        said = stated(kind, f"use {TOKEN} here")
        (item,) = memory.capture.keep(said, "sessions/t#1", policy=policy).items
        assert item.outcome in {"kept", "proposed"}, item
        assert "secret" in {each.code for each in item.change.plan.warnings}
    text = b"".join(state(vault_root).values())
    assert TOKEN.encode() not in text
    assert TOKEN.encode() not in " ".join(state(vault_root)).encode()
    assert text.count(b"REDACTED-github-token") >= 3


def test_a_plan_writes_nothing_and_moves_nothing(memory: Memory, vault_root: Path) -> None:
    memory.sessions.add("t", "user", "I prefer dark mode.")
    log = (vault_root / "sessions/t.jsonl").read_bytes()
    (item,) = memory.plan.capture.keep(theme("dark"), "sessions/t#1").items
    assert "+value: dark" in memory.prepared(item.change).diff()
    memory.plan.capture.run("t")
    assert state(vault_root) == {}
    assert (vault_root / "sessions/t.jsonl").read_bytes() == log


# -- the same in other words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"), [("dark", " DARK. "), ("使用中文。", "使用中文"), ("Ｕｓｅ  tabs", "use tabs !")]
)
def test_texts_are_the_same_once_case_blanks_and_the_final_sign_are_folded(one: str, other: str) -> None:
    assert normal(one) == normal(other)
    assert name_for(one) == name_for(other)


@settings(max_examples=EXAMPLES)
@given(text=st.text(max_size=200), other=st.text(max_size=200))
@example(text="write it in C++", other="write it in C#")
@example(text="a b", other="a-b")
def test_what_says_something_else_has_another_name(text: str, other: str) -> None:
    assert normal(text) == normal(f" {text}  ")
    assert (name_for(text) == name_for(other)) == (normal(text) == normal(other))


_ROOTS: list[Path] = []


@settings(max_examples=EXAMPLES)
@given(
    kind=st.sampled_from(["preference", "constraint", "decision", "fact"]),
    value=st.text(max_size=120),
    category=st.text(max_size=8),
    key=st.text(max_size=8),
    policy=st.sampled_from(["inbox", "apply"]),
)
def test_whatever_is_stated_is_kept_once_and_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, kind: str, value: str, category: str, key: str, policy: str
) -> None:
    if not _ROOTS:
        _ROOTS.append(tmp_path_factory.mktemp("any") / "memories")
        (_ROOTS[0] / ".mdmem").mkdir(parents=True)
        (_ROOTS[0] / ".mdmem/config.toml").write_text("[capture]\nmax_open = 100000\n")
    memory = mdmem.open(_ROOTS[0], mdmem.Scope(user="u"))
    if len(memory.inbox.list(all=True)) > 50:
        shutil.rmtree(_ROOTS[0] / "users")  # each is compared with all that wait
    said = stated(kind, value, category, key)
    (first,) = memory.capture.keep(said, "sessions/t#1", policy=policy).items
    (second,) = memory.capture.keep(said, "sessions/t#1", policy=policy).items
    if first.outcome in {"kept", "proposed", "known", "strengthened"}:
        assert second.outcome == "known", (first, second)
        assert memory.check([first.path]) == [] or all(
            each.severity == "warning" for each in memory.check([first.path])
        )
    else:
        assert second.outcome == first.outcome


def test_a_broken_lexicon_is_named_and_the_built_in_one_is_used(memory: Memory, vault_root: Path) -> None:
    said(memory, WISH)
    own = vault_root / ".mdmem/lexicon.toml"
    own.write_text("[nothing\n", encoding="utf-8")
    (finding,) = memory.check()
    assert (finding.path, finding.code, finding.severity) == (".mdmem/lexicon.toml", "lexicon", "warning")
    done = memory.capture.run("t")
    assert outcomes(done) == ["kept"]
    assert ".mdmem/lexicon.toml:1" in done.told
    own.write_text("x" * 100_000, encoding="utf-8")
    assert [each.code for each in memory.check()] == ["lexicon"]
    own.unlink()
    own.symlink_to("/dev/zero")
    assert [each.code for each in memory.check()] == ["lexicon"]
    own.unlink()
    assert memory.check() == []


# -- conversations ------------------------------------------------------------------------------------------

PROCESS = """
import sys
import mdmem
memory = mdmem.open(sys.argv[1])
sys.stdin.read(1)
memory.capture.run("t")
"""


def said(memory: Memory, *texts: str, role: str = "user") -> None:
    for text in texts:
        memory.sessions.add("t", role, text)


def outcomes(done: Captured) -> list[str]:
    return [each.outcome for each in done.items]


WISH = "I prefer dark mode."


def test_what_was_taken_out_of_a_note_in_between_is_kept_again(memory: Memory) -> None:
    memory.sessions.extend("t", [{"role": "user", "content": "We decided to use SQLite."}] * 2)
    first, second = (memory.capture.from_message("t", seq, policy="apply") for seq in (1, 2))
    assert (*outcomes(first), *outcomes(second)) == ("kept", "strengthened")
    memory.write("notes/decisions.md", "- 2026-01-01: Use Redis.\n", overwrite=True)
    assert outcomes(memory.capture.from_message("t", 2, policy="apply")) == ["kept"]


def test_a_session_is_read_on_from_where_it_was_left(memory: Memory) -> None:
    said(memory, WISH)
    assert outcomes(memory.capture.run("t")) == ["kept"]
    assert outcomes(memory.capture.run("t")) == []
    said(memory, WISH)
    assert outcomes(memory.capture.run("t")) == ["strengthened"]
    said(memory, "I prefer light mode.")
    assert outcomes(mdmem.open(memory.root).capture.run("t")) == ["kept"]
    assert memory.preferences.get("ui", "theme").value == "I prefer light mode."
    assert outcomes(memory.capture.from_message("t", 1)) == ["known"]
    assert memory.sessions.check() == []


def test_identical_messages_are_stored_once(memory: Memory) -> None:
    said(memory, *["We decided to use SQLite for the index."] * 3)
    assert outcomes(memory.capture.run("t")) == ["kept", "strengthened", "strengthened"]
    assert memory.show("notes/decisions.md").text.count("SQLite") == 1


def test_what_tools_say_is_no_wish(memory: Memory) -> None:
    memory.sessions.add("t", "tool", WISH)
    memory.sessions.add("t", "user", [{"type": "tool_result", "tool_use_id": "a", "content": WISH}])
    memory.sessions.add_message("t", {"role": "user", "tool_call_id": "a", "content": WISH})
    call = {"id": "a", "type": "function", "function": {"name": "say", "arguments": WISH}}
    memory.sessions.add_message("t", {"role": "assistant", "content": None, "tool_calls": [call]})
    assert outcomes(memory.capture.run("t")) == []
    memory.sessions.add("t", "user", [{"type": "text", "text": WISH}])
    assert outcomes(memory.capture.run("t")) == ["kept"]


def test_a_session_made_again_is_read_from_its_start(memory: Memory) -> None:
    said(memory, "Hello.", WISH)
    memory.capture.run("t")
    memory.sessions.delete("t")
    said(memory, "We decided to use SQLite for the index.")
    assert outcomes(memory.capture.run("t")) == ["kept"]


def test_of_a_message_that_is_too_long_it_says_how_much_was_not_read(memory: Memory) -> None:
    said(memory, WISH + " Nothing." * 20_000)
    done = memory.capture.run("t")
    assert outcomes(done) == []
    assert done.unread > 100_000
    assert f"{done.unread:,} characters" in done.told
    assert memory.capture.from_message("t", 1).unread == done.unread


def test_a_model_reads_what_is_too_long_for_rules(memory: Memory) -> None:
    said(memory, WISH + " Nothing." * 1_000)
    answer = json.dumps({"candidates": [{"message": 1, "kind": "preference", "quote": WISH}]})
    done = memory.capture.run("t", generator=lambda *_: answer)
    assert (outcomes(done), done.unread) == (["kept"], 0)


def test_an_alias_is_the_session_that_it_names(memory: Memory) -> None:
    said(memory, WISH)
    memory.sessions.alias("me", "t")
    (item,) = memory.capture.run("me").items
    assert item.source == "sessions/t#1"
    assert outcomes(memory.capture.run("t")) == []


@pytest.mark.soak
def test_processes_that_read_one_session_count_each_message_once(memory: Memory, vault_root: Path) -> None:
    said(memory, *[WISH, "We decided to use SQLite for the index."] * 2)
    command = [sys.executable, "-c", PROCESS, str(vault_root)]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(4)]
    for each in running:
        assert each.stdin
        each.stdin.write(b"x")
        each.stdin.flush()
    for each in running:
        each.communicate()
        assert each.returncode == 0
    found = memory.preferences.get("ui", "theme")
    assert found.stored_strength == 0.8
    text = memory.show("notes/decisions.md").text
    assert text.count("SQLite") == 1
    assert text.endswith("(sessions/t#2 sessions/t#4)\n")


def test_a_run_ends_at_the_first_message_that_was_left_out_and_the_next_one_begins_there(
    vault_root: Path,
) -> None:
    memory = configured(vault_root, '[capture]\npolicy = "inbox"\nmax_open = 2\n')
    said(memory, *(f"We decided to use the tool{n} for the part{n}." for n in range(4)), "Thanks.")
    asked: list[str] = []
    done = memory.capture.run("t")
    assert (outcomes(done), done.through, done.left_out) == (["proposed", "proposed", "left out"], 2, 1)
    assert "1 not proposed" in done.told
    again = memory.capture.run("t", generator=naming(asked=asked))
    assert (again.items, again.through, asked) == ((), 2, []), "a model is not asked again and again"
    assert "max_open" in again.told
    assert memory.capture.due("t")
    for each in memory.inbox.list():
        memory.inbox.accept(each.id)
    assert (outcomes(memory.capture.run("t")), memory.capture.due("t")) == (["proposed"] * 2, False)
    assert {each.sources for each in memory.inbox.list()} == {(f"sessions/t#{seq}",) for seq in (3, 4)}


SPEAKER = """
import sys
import mdmem
root, me, count, policy, mode = sys.argv[1:]
memory = mdmem.open(root)
sys.stdin.read(1)
for number in range(int(me), int(count), 3):
    key = "t" if mode == "one" else f"t{me}"
    part = number // 2  # each is said twice, by two of them
    memory.sessions.add(key, "user", f"We decided to use the tool{part} for the part{part}.")
    memory.capture.run(key, policy=policy)
"""


@pytest.mark.parametrize(
    ("policy", "mode"), soak_most(product(["inbox", "apply"], ["one", "each"]), quick=(2,))
)
def test_three_processes_that_say_and_capture_lose_and_double_nothing(
    vault_root: Path, policy: str, mode: str
) -> None:
    memory = configured(vault_root, "[capture]\nmax_open = 100000\n")
    command = [sys.executable, "-c", SPEAKER, str(vault_root)]
    running = [
        subprocess.Popen([*command, str(me), str(MESSAGES), policy, mode], stdin=subprocess.PIPE)
        for me in range(3)
    ]
    for each in running:
        assert each.stdin
        each.stdin.write(b"x")
        each.stdin.flush()
    for each in running:
        each.communicate()
        assert each.returncode == 0
    stated_by = Counter[str]()
    statements = Counter[str]()
    if policy == "inbox":
        for proposal in memory.inbox.list():
            stated_by.update(proposal.sources)
            statements[normal(proposal.arguments["text"])] += 1
    else:
        for line in memory.show("notes/decisions.md").text.splitlines():
            stated_by.update(said_in(line)[1])
            statements[normal(line)] += 1
    keys = [each.key for each in memory.sessions.list()]
    everything = {f"sessions/{key}#{each.seq}" for key in keys for each in memory.sessions.history(key)}
    assert len(everything) == MESSAGES
    assert stated_by == dict.fromkeys(everything, 1)
    assert (len(statements), {*statements.values()}) == ((MESSAGES + 1) // 2, {1})


@pytest.mark.parametrize(
    ("kind", "data", "outcome"),
    [
        ("decision_made", {"title": "Use SQLite for the index"}, "kept"),
        ("preference_expressed", {"title": "I prefer dark mode."}, "kept"),
        ("task_completed", {"title": "Closed the file in the reader"}, "kept"),
    ],
)
def test_the_same_event_counts_once(memory: Memory, kind: str, data: dict[str, str], outcome: str) -> None:
    assert outcome in outcomes(memory.capture.from_event(kind, data))
    again = memory.capture.from_event(kind, data)
    assert {*outcomes(again)} == {"known"}


# -- with a model -----------------------------------------------------------------------------------------


def naming(*quotes: str, asked: list[str]) -> Any:
    """A model that names some quotes as facts, and keeps what it was asked."""

    def a_model(prompt: str, *_: object) -> str:
        asked.append(prompt)
        found = [{"message": 1, "kind": "fact", "quote": quote} for quote in quotes]
        return json.dumps({"candidates": found})

    return a_model


def test_a_model_may_add_what_it_quotes_from_a_user_and_nothing_else(memory: Memory) -> None:
    asked: list[str] = []
    memory.sessions.add("t", "user", "I prefer the dark theme. The spare key lies under the mat.")
    memory.sessions.add("t", "assistant", "The spare key lies in the shed.")
    memory.sessions.add("t", "tool", "The spare key lies in the car.")
    model = naming("The spare key lies under the mat.", "The key is lost.", asked=asked)
    done = memory.capture.run("t", generator=model)
    assert [(each.candidate.kind, each.source) for each in done.items] == [
        ("preference", "sessions/t#1"),
        ("fact", "sessions/t#1"),
    ]
    assert done.told == ""
    assert len(asked) == 1
    assert "under the mat" in memory.show("notes/facts.md").text
    again = memory.capture.from_message("t", 1, generator=model)
    assert [each.outcome for each in again.items] == ["known", "known"]


def test_a_model_is_asked_about_several_messages_at_once(memory: Memory) -> None:
    asked: list[str] = []

    def model(prompt: str, *_: object) -> str:
        asked.append(prompt)
        found = [{"message": 2, "kind": "fact", "quote": "The spare key lies in the car."}]
        return json.dumps({"candidates": found})

    for text in ("Hello.", "The spare key lies in the car.", "I prefer tabs."):
        memory.sessions.add("t", "user", text)
        memory.sessions.add("t", "assistant", "The spare key lies in the car.")
    done = memory.capture.run("t", generator=model)
    assert len(asked) == 1
    assert [(each.candidate.kind, each.source) for each in done.items] == [
        ("fact", "sessions/t#3"),
        ("preference", "sessions/t#5"),
    ]


def test_a_model_that_fails_is_told_and_asked_no_more(memory: Memory) -> None:
    asked: list[str] = []

    def broken(prompt: str, *_: object) -> str:
        asked.append(prompt)
        raise RuntimeError("no credit is left")

    for text in ("I prefer the dark theme.", "We decided to use SQLite.", "I prefer tabs."):
        memory.sessions.add("t", "user", text)
    done = memory.capture.run("t", generator=broken)
    assert "without the model: no credit is left" in done.told
    assert len(asked) == 1
    assert len(done.items) == 3


def test_what_a_person_changed_meanwhile_is_what_counts(memory: Memory) -> None:
    assert keep(memory, stated("constraint", "Never push to main."), 1) == "kept"
    assert keep(memory, stated("preference", "Dark mode."), 1) == "kept"
    (rule,) = memory.rules.list(disabled=True)
    (wish,) = memory.preferences.list()
    memory.replace(rule.path, "main", "prod")
    file = os.path.join(memory.root, wish.path)
    with open(file, encoding="utf-8") as opened:
        text = opened.read()
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(text.replace("Dark", "Dusk"))
    assert keep(memory, stated("constraint", "Never push to prod."), 2) == "strengthened"
    assert keep(memory, stated("preference", "Dusk mode."), 2) == "strengthened"
    memory.rm(rule.path)
    assert keep(memory, stated("constraint", "Never push to prod."), 3) == "kept"
