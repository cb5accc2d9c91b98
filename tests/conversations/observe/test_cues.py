"""The table of cues, and what a vault adds to it."""

from __future__ import annotations

import json
import subprocess
import sys

from hypothesis import example, given, settings, strategies as st

from mdmem.conversations.observe.cues import LONGEST, builtin_cues, extended_cues
from mdmem.conversations.observe.extract import extract
from tests import speed
from tests.speed import examples
from tests.tables import cases


def problem_with(text: str) -> str:
    cues, finding = extended_cues(text)
    assert cues is builtin_cues()
    assert finding is not None
    return finding.message


def test_a_vault_adds_cues_and_keys() -> None:
    cues, finding = extended_cues('[fact]\ncues = ["our house"]\n[keys]\n"ui/font" = ["ligatures"]')
    assert finding is None
    (found,) = extract("Our house has three floors.", cues=cues)
    assert found.kind == "fact"
    (found,) = extract("I prefer ligatures in code.", cues=cues)
    assert (found.category, found.key) == ("ui", "font")
    assert extract("Our house has three floors.") == []


def test_a_cue_of_a_vault_may_name_the_lists_that_are_built_in() -> None:
    cues, finding = extended_cues('[decision]\ncues = ["the vote was to <verb> <things>"]')
    assert finding is None
    (found,) = extract("The vote was to keep SQLite.", cues=cues)
    assert found.why == "cue: The vote was to keep SQLite"
    assert extract("The vote was to keep the old one.", cues=cues) == []
    assert extract("The vote was to tea tomorrow.", cues=cues) == []


def test_the_key_of_a_vault_comes_before_a_built_in_one() -> None:
    cues, _ = extended_cues('[keys]\n"ui/night" = ["dark mode"]\n"ui/theme" = ["sepia"]')
    (found,) = extract("I prefer dark mode.", cues=cues)
    assert found.key == "night"


def test_an_empty_table_changes_nothing() -> None:
    cues, finding = extended_cues('[keys]\n"ui/theme" = []')
    assert finding is None
    assert [each.kind for each in extract("Never push to main.", cues=cues)] == ["constraint"]


@cases(
    "text, message",
    [
        ("[fact", "it is not TOML"),
        ("x = " + "9" * 5_000, "it is not TOML"),
        ("x = " + "[" * 5_000, "nested too deeply"),
        ("[wishes]\ncues = []", "wishes"),
        ("fact = 1", "/fact"),
        ("[fact]\nwords = []", "/fact"),
        ('[fact]\ncues = ["fine", 1]', "/fact/cues/1"),
        ('[fact]\ncues = [" "]', "/fact/cues/0"),
        (f'[fact]\ncues = ["{"x" * (LONGEST + 1)}"]', "/fact/cues/0"),
        ('[fact]\ncues = ["a ... b ... c"]', "/fact/cues/0"),
        ('[fact]\ncues = ["a <things> b ... c"]', "/fact/cues/0"),
        ('[keys]\n"../ui" = ["x"]', "/keys"),
        ('[keys]\n"ui/theme" = ["a ... b"]', "/keys/ui/theme/0"),
        ('[keys]\n"ui/theme" = ["<things>"]', "/keys/ui/theme/0"),
    ],
)
def test_a_broken_table_is_named_with_its_place(text: str, message: str) -> None:
    assert message in problem_with(text)


def test_the_place_of_broken_toml_is_named() -> None:
    _, finding = extended_cues('[fact]\ncues = ["a"]\nx = ?')
    assert finding is not None
    assert finding.position == (3, 5)


def test_a_message_shows_what_a_stranger_wrote_in_one_bounded_line() -> None:
    assert len(problem_with(f'["{"a" * 9_000}"]')) < 400
    assert "\u202e" not in problem_with('["\\u202e\\n"]')


@settings(max_examples=examples(100))
@given(st.text(max_size=200))
@example("[[[")
def test_whatever_stands_in_a_table_it_is_read_or_named(text: str) -> None:
    cues, finding = extended_cues(text)
    assert (cues is builtin_cues()) == (finding is not None)


def test_a_hostile_table_makes_no_text_take_long() -> None:
    """Where a process may take 30 seconds of a processor."""
    words = json.dumps([f"a ... {'b ' * 20}{number}" for number in range(1_000 if speed.is_all else 200)])
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n"
        "from mdmem.conversations.observe.extract import extract\n"
        "from mdmem.conversations.observe.cues import extended_cues\n"
        "cues, finding = extended_cues(sys.stdin.read())\n"
        "assert finding is None\n"
        "extract('a b ' * 500_000, cues=cues)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], input=f"[fact]\ncues = {words}", text=True, check=False
    )
    assert ran.returncode == 0
