"""What of a message is taken for a wish that lasts."""

from __future__ import annotations

import json
import subprocess
import sys

from hypothesis import example, given, settings, strategies as st

from mdmem.conversations.observe import extract as capture
from mdmem.conversations.observe.cues import KINDS
from mdmem.conversations.observe.extract import extract, left_out
from tests.speed import examples
from tests.tables import cases


def kinds(text: str) -> list[str]:
    return [each.kind for each in extract(text)]


@cases(
    "text, kind",
    [
        ("Always run the linter before you commit.", "constraint"),
        ("**Never** push to main!", "constraint"),
        ("Please never force-push to a shared branch.", "constraint"),
        ("Please always back the vault up at night.", "constraint"),
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


@cases(
    "text, kind",
    [
        ("Use bun, not node.", "preference"),
        ("Log with structlog, not print.", "preference"),
        ("I'd rather have explicit types than inference.", "preference"),
        ("Please dont hardcode URLs", "constraint"),
        ("Don't edit anything under third_party/.", "constraint"),
        ("Don't merge pull requests without a review.", "constraint"),
        ("You must not store passwords in plain text.", "constraint"),
        ("Reply in French from now on.", "constraint"),
        ("From now on, run the formatter first.", "constraint"),
        ("Run make lint before committing.", "constraint"),
        ("Whenever you add a dependency, update the lock file.", "constraint"),
        ("All endpoints must return JSON.", "constraint"),
        ("Every public function needs a docstring.", "constraint"),
        ("No emojis in commit messages.", "constraint"),
        ("In this project, commit messages are in English.", "constraint"),
        ("We settled on Kafka for the event bus.", "decision"),
        ("We've moved to trunk-based development.", "decision"),
        ("This repo uses pnpm workspaces.", "fact"),
        ("Our CI runs on Buildkite.", "fact"),
        ("The staging server is at staging.internal.", "fact"),
        ("My time zone is Europe/Berlin.", "fact"),
        ("不要直接推送到 main 分支。", "constraint"),
        ("每个函数都要有文档注释。", "constraint"),
        ("代码注释用英文写。", "constraint"),
        ("我们用 pnpm，不用 npm。", "fact"),
        ("Antworte bitte immer auf Deutsch.", "constraint"),
        ("Wir haben uns für Postgres entschieden.", "decision"),
        ("コメントは日本語で書いてください。", "constraint"),
    ],
)
def test_an_order_or_a_rule_counts_that_says_what_it_is_about(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


@cases(
    "text",
    [
        "From now on the page stays broken.",
        "From now on I get a timeout on every request.",
        "We don't want those.",
        "We decided against it.",
        "I prefer the first version.",
        "I'd prefer the one on the left.",
        "I don't like the way it looks.",
        "Use line 12 instead of line 10.",
        "Use the other function instead of this one.",
        "Please never do this again.",
        "Don't touch it.",
        "Don't change that file.",
        "Don't make any changes, just explain.",
        "Do not push, wait for me.",
        "Our build is broken again.",
        "Every time I run it I get an error.",
        "All tests must pass before we continue with step 3.",
        "Run the tests in this folder.",
        "Let's go with option 2.",
        "Button should be fixed now.",
        "Test cases should cover:",
        "From now on the list should have two rows, right?",
        "不要改这个文件。",
        "不要改颜色了。",
        "从现在开始一直报错。",
        "我更喜欢刚才那个版本。",
        "所有测试都挂了。",
        "以后再说。",
        "每个接口都要写测试吗",
        "これを使わないでください。",
    ],
)
def test_what_is_about_a_word_of_the_moment_or_fails_states_nothing(text: str) -> None:
    assert extract(text) == []


@cases(
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


@cases(
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
        "<caveat>Read on.\nNever use tabs in code.</caveat>",
        "[02/20/26 17:41] make\nNever use tabs in code.",
        "107| x = 1\nNever use tabs in code.",
        "\u2502 Never use tabs in code.",
        "Act as a poet. Never use rhymes in verses.",
    ],
)
def test_code_quotations_and_what_looks_pasted_state_nothing(text: str) -> None:
    assert extract(text) == []


def test_items_of_a_short_list_count_without_their_marker() -> None:
    found = extract("Two things:\n- always use tabs\n- never push to main")
    assert [each.quote for each in found] == ["always use tabs", "never push to main"]


@cases(
    "text, values",
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


@cases(
    "text, key",
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


@cases("speaker", ["assistant", "tool", "system", "", "somebody"])
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


@settings(max_examples=examples(100))
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


@settings(max_examples=examples(60))
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
        "from mdmem.conversations.observe.extract import extract\n"
        "for piece in json.load(sys.stdin):\n"
        "    extract(piece * (1_000_000 // len(piece)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], input=json.dumps(HOSTILE), text=True, check=False)
    assert ran.returncode == 0
