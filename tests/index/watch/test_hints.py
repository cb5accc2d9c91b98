"""Hints: what counts, how paths are told, and when they are ready."""

from __future__ import annotations

import math
import os
import unicodedata

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.errors import PathRefused
from mdmem.index.watch.hints import LONGEST_SECONDS, QUIET_SECONDS, GatheredHints, Notice, counts, entry_of
from mdmem.vault.paths import check_memory
from tests.speed import examples


@pytest.mark.parametrize(
    "path", ["a.md", "notes/a.md", ".mdmem", ".mdmem/config.toml", ".mdmem/schemas/a.json"]
)
def test_memories_and_settings_count(path: str) -> None:
    assert counts(path)


@pytest.mark.parametrize(
    "path",
    [
        *(".git/a.md", "notes/.a.md", ".mdmem/local", ".mdmem/local/index/a.md", ".mdmem/.git/a"),
        "notes/.mdmem/a.md",
    ],
)
def test_what_is_hidden_or_the_index_itself_does_not_count(path: str) -> None:
    assert not counts(path)


def test_an_entry_is_named_from_the_vault() -> None:
    assert entry_of("", "notes") == "notes"
    assert entry_of("notes", "a.md") == "notes/a.md"


def test_a_file_that_cannot_be_a_memory_is_no_hint() -> None:
    gathered = GatheredHints()
    gathered.file("notes/a.txt")
    assert not gathered


def test_the_log_of_a_session_is_a_hint_for_who_asks_for_logs() -> None:
    for is_wanted in (False, True):
        gathered = GatheredHints(logs=is_wanted)
        gathered.file("sessions/t.jsonl")
        assert gathered.hints().paths == ({"sessions/t.jsonl"} if is_wanted else set())


def test_paths_under_a_folder_that_is_hinted_at_are_left_out() -> None:
    gathered = GatheredHints()
    for path in ("a/b/c.md", "a/bc.md", "ab/c.md"):
        gathered.file(path)
    gathered.folder("a/b")
    assert gathered.hints().paths == {"a/b", "a/bc.md", "ab/c.md"}


def test_a_look_at_everything_needs_no_paths() -> None:
    gathered = GatheredHints()
    gathered.file("a.md")
    gathered.all(Notice("x", "y"))
    gathered.all(Notice("x", "y"))
    assert gathered.hints().everything
    assert not gathered.hints().paths
    assert gathered.hints().notices == (Notice("x", "y"),)


def test_the_vault_itself_is_everything() -> None:
    gathered = GatheredHints()
    gathered.folder("")
    assert gathered.hints().everything


def test_a_name_that_is_not_utf_8_is_told_by_its_folder() -> None:
    gathered = GatheredHints()
    gathered.file(os.fsdecode(b"notes/\xff/a\xfe.md"))
    assert gathered.hints().paths == {"notes"}


def test_hints_are_ready_when_it_is_quiet_or_has_been_long() -> None:
    gathered = GatheredHints()
    assert gathered.ready == -math.inf
    gathered.file("a.md")
    first = gathered.ready
    gathered.file("b.md")
    assert first <= gathered.ready
    gathered._last += 10
    assert gathered.ready <= first - QUIET_SECONDS + LONGEST_SECONDS
    gathered.all_now()
    assert gathered.ready == -math.inf


@settings(max_examples=examples(300))
@given(st.lists(st.text(min_size=1).filter(lambda name: "/" not in name), min_size=1, max_size=4))
@example(["cafe\u0301"])
def test_every_name_leads_to_a_hint_that_a_vault_can_follow(names: list[str]) -> None:
    """Whatever a file is called, its hint is a path in normal form at or above it."""
    path = "/".join(names) + ".md"
    gathered = GatheredHints()
    gathered.file(path)
    hints = gathered.hints()
    if hints.everything or hints.settings:
        return
    (told,) = hints.paths
    normal = unicodedata.normalize("NFC", path)
    assert normal == told or normal.startswith(told + "/")
    told.encode()
    try:
        accepted = check_memory(path)
    except PathRefused:
        return
    assert told == accepted
