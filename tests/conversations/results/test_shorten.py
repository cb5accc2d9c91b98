"""Short forms: which lines of an output they have, and that they are never longer nor cut anything in two."""

from __future__ import annotations

import re

from hypothesis import given, settings, strategies as st

from mdmem.conversations.results.shorten import MOST, redacted, shortened
from mdmem.document.text.lines import whole_lines
from tests import speed
from tests.speed import examples
from tests.tables import cases

TOOLS = ("Read", "Grep", "Glob", "Bash", "WebFetch", "Write", "mcp__files__read", "")
GAP = re.compile(r"\[([\d,]+) lines? left out: (\d+)-(\d+)\]")
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PIECES = st.sampled_from(
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001d518",
        "e\u0301",
        "\r",
        "\r\n",
        "\n",
        "\u2028",
        "\x00",
        "ERROR: no",
        "def f(x):",
        "src/a.py:3: hit",
        "word ",
        "漢字",
        "\ufffd",
        "x" * 300,
        "\u202e",
        "failed",
        TOKEN,
        "-----BEGIN PRIVATE KEY-----\n" + "A" * 64,
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=150).map("".join)


def numbered(count: int, line: str = "line {}") -> str:
    return "".join(line.format(number) + "\n" for number in range(1, count + 1))


@cases("tool", TOOLS)
def test_a_long_output_becomes_shorter(tool: str) -> None:
    for text in (numbered(1_000), "x" * 3_000, numbered(31, "y" * 98), "漢" * 5_000, "\n" * 4_000):
        short = shortened(tool, text).text
        assert len(short) < len(text)
        assert len(short) <= MOST


@cases("tool", TOOLS)
def test_what_is_left_out_is_counted_and_the_rest_is_whole_lines(tool: str) -> None:
    text = numbered(1_000)
    short = shortened(tool, text)
    lines = text.splitlines()
    shown = [line for line in short.text.splitlines() if line in lines]
    left_out = sum(int(count.replace(",", "")) for count, _, _ in GAP.findall(short.text))
    assert len(shown) + left_out == 1_000
    assert [(int(first), int(last)) for _, first, last in GAP.findall(short.text)] == list(short.gaps)
    assert shown[0] == "line 1"
    assert shown[-1] == "line 1000"


@settings(max_examples=examples(100))
@given(st.sampled_from(TOOLS), TEXTS)
def test_no_short_form_is_longer_than_its_text_nor_cuts_a_character(tool: str, text: str) -> None:
    short = shortened(tool, text)
    assert len(short.text) <= len(text)
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert "\u200d\U0001f469" not in short.text.replace(family, "")
    if not short.secrets:  # of which an accent may be a part
        assert not re.search("(?<!e)\u0301", short.text) or re.search("(?<!e)\u0301", text)
    lines = len(whole_lines(text))
    assert all(1 <= first <= last <= lines for first, last in short.gaps)


def test_the_beginning_of_one_that_failed_the_lines_around_the_error_and_the_end_stay() -> None:
    lines = [f"step {number}" for number in range(1, 1_001)]
    lines[499] = "ValueError: bad"
    short = shortened("Bash", "\n".join(lines)).text
    for shown in ("step 1", "step 498", "step 499", "ValueError: bad", "step 501", "step 502", "step 1000"):
        assert f"{shown}\n" in f"{short}\n"
    assert "step 300\n" not in short


@cases(
    "tool, is_kept",
    [
        *((name, True) for name in ("Bash", "shell", "pytest", "make", "Task", "WebFetch", "read_logs", "")),
        *(
            (name, True)
            for name in ("mcp__ci__get_job_logs", "mcp__read_file__run", "functions.exec_command")
        ),
        *((name, False) for name in ("Read", "view", "Grep", "Glob", "read_file", "grep_search")),
        *((name, False) for name in ("mcp__files__read", "mcp__files__read_text_file", "functions.read")),
    ],
)
def test_an_error_is_kept_but_of_a_tool_that_reads_or_searches_files(tool: str, is_kept: bool) -> None:
    lines = numbered(5_000).replace("line 2500\n", "ERROR: boom\n")
    short = shortened(tool, lines).text
    assert ("\nline 2499\nERROR: boom\nline 2501\n" in short) == is_kept
    assert len(short) <= MOST


def test_of_a_program_without_errors_the_beginning_and_the_end_stay() -> None:
    text = numbered(999, "step {}: 0 errors, no error, failed: 0")
    assert shortened("Bash", text).gaps == ((16, 984),)


def test_of_many_errors_the_first_and_the_last_are_shown() -> None:
    short = shortened("Bash", numbered(5_000, "error {}")).text
    assert "error 1\n" in short
    assert short.endswith("error 5000")
    assert len(short) <= MOST


def test_of_a_file_the_first_and_last_twenty_lines_and_the_definitions_between_stay() -> None:
    body = ["    pass"] * 400
    body[100] = "def found(x):"
    body[200] = "   201→class Other(Base):"
    body[300] = "the class of 1999 was large"
    short = shortened("Read", "\n".join(body)).text
    assert "def found(x):" in short
    assert "class Other(Base):" in short
    assert "1999" not in short
    assert short.splitlines()[:20] == body[:20]
    assert short.splitlines()[-20:] == body[-20:]


def test_a_file_of_definitions_alone_keeps_some_from_everywhere() -> None:
    short = shortened("Read", numbered(2_000, "def function_{}(): pass")).text
    shown = [int(number) for number in re.findall(r"function_(\d+)", short)]
    assert len(shown) > 60
    assert any(900 < number < 1_100 for number in shown)


def test_hits_are_counted_by_file_and_files_by_folder() -> None:
    hits = [f"src/{name}.py:{number}: hit" for name in "abc" for number in range(1, 101)]
    short = shortened("Grep", "\n".join(hits)).text
    assert short.startswith("src/a.py:1: hit\n")
    assert "src/c.py:100: hit\n" in short
    assert "[hits by file: 300 in 3]" in short
    assert re.search(r"^ +100  src/b\.py$", short, re.MULTILINE)
    files = [f"src/{folder}/file_{number}.py" for folder in "ab" for number in range(150)]
    assert "[files by folder: 300 in 2]" in shortened("Glob", "\n".join(files)).text


def test_hits_in_many_files_are_all_counted() -> None:
    short = shortened("Grep", "\n".join(f"src/{number}.py:1: hit" for number in range(1_000))).text
    listed = [int(count) for count in re.findall(r"^ +(\d+)  ", short, re.MULTILINE)]
    assert sum(listed) == 1_000
    assert "more" in short.splitlines()[-1]


@cases("tool", TOOLS)
def test_one_line_of_fifty_megabytes_becomes_its_beginning_and_its_end(tool: str) -> None:
    line = "begin" + "x" * (50_000_000 if speed.is_all else 5_000_000) + "end"
    short = shortened(tool, line).text
    assert short.startswith("begin")
    assert "end" in short.splitlines()[0]
    assert "characters left out" in short
    assert len(short) <= MOST


@cases("tool", TOOLS)
def test_no_secret_is_shown(tool: str) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(
        ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA" + "Ab1/" * 5] * 80
    )
    for text in (
        f"{TOKEN}\n" + numbered(1_000),
        "z" * 230 + f" {TOKEN} " + "z" * 5_000,  # which would be cut in its middle
        numbered(500)
        + f"{key}\n-----END PRIVATE KEY-----\n"
        + numbered(3),  # of which the end alone is shown
        f"https://user:pa55word@example.org/{'x' * 4_000}",
        f"\x1b[1;31m{TOKEN}\x1b[0m\n" + numbered(1_000),
    ):
        short = shortened(tool, text)
        assert not re.search("ghp_|MIIE|pa55word", short.text)
        assert short.secrets
        assert len(short.text) < len(text)


def test_a_secret_is_replaced_by_something_no_longer() -> None:
    text = "https://u:qz7@example.org"
    assert redacted(text).text == "https://u:***@example.org"
    assert redacted(text).secrets == ("URL password",)
