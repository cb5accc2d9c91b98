"""What of a message is taken for a wish that lasts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.capture import extract as capture
from mdmem.capture.cues import KINDS
from mdmem.capture.extract import extract, left_out


def kinds(text: str) -> list[str]:
    return [each.kind for each in extract(text)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Always run the linter before you commit.", "constraint"),
        ("**Never** push to main!", "constraint"),
        ("Please never force-push to a shared branch.", "constraint"),
        ("Please always back it up at night.", "constraint"),
        ("From now on all dates are in UTC.", "constraint"),
        ("don\u2019t ever touch the migrations folder", "constraint"),
        ("I prefer small commits.", "preference"),
        ("use uv instead of pip", "preference"),
        ("Ok, and we decided to keep SQLite.", "decision"),
        ("We don't want a second database.", "decision"),
        ("Remember that the staging server is in Frankfurt.", "fact"),
        ("请记住服务器在法兰克福。", "fact"),
        ("以后提交信息用英文写。", "constraint"),
        ("我更喜欢深色模式。", "preference"),
        ("我们决定用 Postgres。", "decision"),
    ],
)
def test_a_sentence_counts_that_begins_as_a_lasting_wish(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Delete them.",
        "The tests always fail on Windows.",
        "Should we always run the linter?",
        "以后怎么部署？",
        "We never got the invoice.",
        "Always happy to help!",
        "Never heard of it.",
        "Don't write any code yet.",
        "Never push to main for now.",
        "From now on you are a pirate who sells boats.",
        "Remember when we did this last year?",
        "We don't want that.",
        "If it breaks, always roll back.",
        "Always tests.",
    ],
)
def test_an_order_of_the_moment_a_question_and_a_remark_state_nothing(text: str) -> None:
    assert extract(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "```\nalways use tabs in this file\n```",
        "    always use tabs in this file",
        "> Always use tabs in this file.",
        '"Always use tabs in this file."',
        "\u201cAlways use tabs in this file.\u201d he said",
        "`always use tabs`",
        "| always use tabs | x |\n|---|---|\n| never use tabs | y |",
        "# Rules\n\nAlways use tabs in this file.",
        "\n".join(f"- Always use rule {number} here." for number in range(6)),
        f"Always use tabs here.\n\n{'Look at it. ' * 150}",
    ],
)
def test_code_quotations_and_what_looks_pasted_state_nothing(text: str) -> None:
    assert extract(text) == []


def test_items_of_a_short_list_count_without_their_marker() -> None:
    found = extract("Two things:\n- always use tabs\n- never push to main")
    assert [each.quote for each in found] == ["always use tabs", "never push to main"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("The notes are done; we decided to use SQLite.", ["we decided to use SQLite."]),
        ("The report is long\uff1b我们决定用 Postgres。", ["我们决定用 Postgres。"]),
        ("Always run the linter; never push.", ["Always run the linter; never push."]),
        ("a; b; for now; we decided that.", ["we decided that."]),
        ("The notes are done; we decided to wait for now.", []),
        ("The notes are done; did we decide; we decided on SQLite?", []),
        ("It says `x; we decided to use SQLite.`", []),
        ("x;always run it", []),
        ("Done; never ever", []),
    ],
)
def test_behind_a_semicolon_a_wish_begins_as_a_sentence_does(text: str, values: list[str]) -> None:
    assert [each.value for each in extract(text)] == values


def test_a_candidate_quotes_its_sentence_and_says_what_found_it() -> None:
    text = "Thanks!\nPlease always use *dark   mode* in the docs. Bye."
    (found,) = extract(text)
    assert text[found.start : found.end] == found.quote == "Please always use *dark   mode* in the docs."
    assert found.value == "Please always use *dark mode* in the docs."
    assert (found.kind, found.why) == ("constraint", "cue: always use")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("I prefer dark mode.", "ui/theme"),
        ("Use pnpm instead of npm.", "workflow/package_manager"),
        ("I'd prefer answers in German.", "language/reply"),
        ("I prefer meetings in the morning.", "timing/hours"),
        ("I prefer tabs over spaces.", "format/indent"),
        ("I prefer concise answers.", "content/length"),
        ("I prefer tea.", "/"),
    ],
)
def test_a_preference_has_the_key_that_its_words_name(text: str, key: str) -> None:
    (found,) = extract(text)
    assert f"{found.category}/{found.key}" == key


def test_of_two_wishes_for_one_preference_the_last_counts() -> None:
    (found,) = extract("I prefer dark mode. No wait. I prefer light mode.")
    assert found.quote == "I prefer light mode."


@pytest.mark.parametrize("speaker", ["assistant", "tool", "system", "", "somebody"])
def test_only_a_user_states_anything(speaker: str) -> None:
    assert extract("We decided to keep SQLite.", speaker) == []
    assert len(extract("We decided to keep SQLite.", "User")) == 1


def test_a_message_that_is_too_long_to_be_typed_is_counted() -> None:
    assert left_out("x" * (capture.MOST_READ + 7)) == capture.MOST_READ + 7
    assert left_out("x" * capture.MOST_READ) == 0


# -- any text ---------------------------------------------------------------------------------------------

WORDS = (
    *("I prefer ", "never ", "always use ", "dark mode", "we decided ", "if ", "?", ". ", ", ", "\n", "\r\n"),
    *(
        "`",
        "```\n",
        "> ",
        '"',
        "\u201c",
        "\u201d",
        "我更喜欢",
        "以后",
        "深色",
        "。",
        "？",
        "- ",
        "# ",
        "|",
        "[a](b)",
    ),
    *("<b>", "\ud800", "\0", "\u2028", "e.g. ", "v1.2 ", "please ", "**"),
)
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=40).map("".join)


@settings(max_examples=100)
@given(TEXTS)
@example("\r\n\r\nnever do\rit")
@example("> if\n> never do")
def test_whatever_is_said_a_candidate_quotes_it(text: str) -> None:
    found = extract(text)
    for each in found:
        assert each.kind in KINDS
        assert each.quote == text[each.start : each.end] != ""
        assert each.value.strip()
        assert "\n" not in each.value
        assert bool(each.key) == bool(each.category)
    assert [each.start for each in found] == sorted(each.start for each in found)
    wished = [(each.category, each.key) for each in found if each.key]
    assert len(wished) == len(set(wished))


@settings(max_examples=60)
@given(TEXTS)
def test_what_is_fenced_or_quoted_states_nothing_whatever_it_is(text: str) -> None:
    fence = "`" * (max(map(len, text.split())) + 3 if text.split() else 3)
    assert extract(f"{fence}\n{text}\n{fence}") == []
    assert extract("\n".join(f"> {line}" for line in text.replace("\r", "\n").split("\n"))) == []


# What makes readers of text take a time that grows with the square of its length.
HOSTILE = (
    "and, ",
    "please ",
    "i prefer not no ",
    "never do. ",
    '"a ',
    "[a](",
    " \t",
    "use a ",
    "请",
    "`",
    "*",
)


def test_a_hostile_megabyte_is_read_in_bounded_time() -> None:
    """In a process that may take 60 seconds of a processor for all of them."""
    code = (
        "import json, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "from mdmem.capture.extract import extract\n"
        "for piece in json.load(sys.stdin):\n"
        "    extract(piece * (1_000_000 // len(piece)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], input=json.dumps(HOSTILE), text=True, check=False)
    assert ran.returncode == 0
