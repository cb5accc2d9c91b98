"""A block is written in its place, and no byte outside of it changes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from mdmem.document.synced_block import has_marks, without_block
from mdmem.document.text.lines import with_newline
from mdmem.hosts.generated import Difference, RuleText, Wanted, compare, list_wanted, portable

ONE = Wanted("CLAUDE.md", "@AGENTS.md", "AGENTS.md")
TWO = Wanted("CLAUDE.md", "@AGENTS.md\n\nmore", "AGENTS.md")
HEAD = '---\npaths:\n  - "src/**"\n---\n'
RULE = Wanted(
    ".claude/rules/mdmem/a.md",
    "# A\n\nText.",
    "memories/rules/a.md",
    HEAD,
)

LINES = st.sampled_from(
    ["text", "", "# Title", "```", "<!-- note -->", "---", "@x.md", "é 日本", "  - a", "\ufeff"]
)
TEXTS = st.builds(
    lambda lines, newline, end: newline.join(lines) + end * newline,
    st.lists(LINES, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(0, 3),
) | st.text(max_size=40).filter(lambda text: not has_marks(text))


def after(text: str | None, one: Wanted | None) -> str | None:
    difference = compare("CLAUDE.md", text, one)
    return difference.after if difference else text


@given(text=TEXTS)
def test_what_stands_around_a_block_stays_whatever_becomes_of_it(text: str) -> None:
    first = after(text, ONE)
    assert first is not None
    assert first.startswith(text)
    assert compare("CLAUDE.md", first, ONE) is None
    extended = f"{first}behind\n"
    second = after(extended, TWO)
    assert second is not None
    assert compare("CLAUDE.md", second, TWO) is None
    assert without_block(second) == without_block(extended)
    assert after(second, None) == without_block(extended)


@given(text=TEXTS, inner=st.text(max_size=60).filter(lambda t: not has_marks(t)))
def test_any_text_can_stand_in_a_block(text: str, inner: str) -> None:
    one = Wanted("AGENTS.md", inner, "memories/rules/")
    first = after(text, one)
    assert compare("AGENTS.md", first, one) is None
    assert after(first, ONE) != first


def test_a_missing_file_is_made_of_its_block() -> None:
    text = after(None, ONE)
    assert text is not None
    assert text.splitlines()[1:] == ["@AGENTS.md", "<!-- mdmem:end -->"]
    assert text.startswith("<!-- mdmem:begin ")


@pytest.mark.parametrize(
    ("text", "gap"),
    [("", ""), ("a", "\n\n"), ("a\n", "\n"), ("a\n\n", ""), ("a\r\n", "\r\n"), ("a\r\n\r\n", "")],
)
def test_one_blank_line_parts_a_new_block_from_the_text(text: str, gap: str) -> None:
    result = after(text, ONE)
    assert result is not None
    assert result.startswith(f"{text}{gap}<!-- mdmem:begin")


def test_other_line_ends_are_no_difference_and_no_edit() -> None:
    text = after("a\n", ONE)
    assert text is not None
    crlf = with_newline(text, "\r\n")
    assert compare("CLAUDE.md", crlf, ONE) is None
    changed = after(crlf, TWO)
    assert changed is not None
    assert "\n" not in changed.replace("\r\n", "")


@pytest.mark.parametrize("wanted", [ONE, TWO])
def test_an_edited_block_is_left_as_it_is(wanted: Wanted) -> None:
    text = after("a\n", ONE)
    assert text is not None
    difference = compare("CLAUDE.md", text.replace("@AGENTS.md", "@AGENTS.md\nUse tabs."), wanted)
    assert difference is not None
    assert (difference.state, difference.is_fixed) == ("edited", False)
    assert "take the change into AGENTS.md, and delete the block" in difference.reason


def test_a_block_that_somebody_brought_up_to_date_by_hand_is_no_edit() -> None:
    text = after(None, ONE)
    assert text is not None
    difference = compare("CLAUDE.md", text.replace("@AGENTS.md\n", "@AGENTS.md\n\nmore\n"), TWO)
    assert difference is not None
    assert (difference.state, difference.after) == ("outdated", after(None, TWO))


def test_a_file_with_an_edited_header_is_left_as_it_is() -> None:
    text = after(None, RULE)
    assert text is not None
    difference = compare(RULE.path, text.replace("src/**", "lib/**"), RULE)
    assert difference is not None
    assert (difference.state, difference.is_fixed) == ("edited", False)
    assert RULE.source in difference.reason


def test_a_header_follows_the_globs_of_its_rule() -> None:
    other = RULE._replace(header=HEAD.replace("src", "lib"))
    text = after(None, RULE)
    assert text is not None
    assert after(f"{text}mine\n", other) == f"{after(None, other)}mine\n"


@pytest.mark.parametrize("tail", ["", "\n\n", "mine\n"])
def test_of_a_rule_that_is_gone_only_what_others_wrote_remains(tail: str) -> None:
    text = f"{after(None, RULE)}{tail}"
    difference = compare(RULE.path, text, None)
    assert difference is not None
    assert (difference.state, difference.after) == ("stale", tail if tail.strip() else None)


@pytest.mark.parametrize(("old", "new"), [("Text.", "Mine."), ("src/**", "mine/**")])
def test_what_was_edited_does_not_go_with_its_rule(old: str, new: str) -> None:
    text = after(None, RULE)
    assert text is not None
    difference = compare(RULE.path, text.replace(old, new), None)
    assert difference is not None
    assert (difference.state, difference.is_fixed) == ("edited", False)


def test_a_file_of_somebody_else_is_left_as_it_is() -> None:
    difference = compare(RULE.path, "mine\n", RULE)
    assert difference == Difference(
        path=RULE.path,
        state="foreign",
        reason="a file of somebody else's stands there: move it away",
        before="mine\n",
        after="mine\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        "<!-- mdmem:end -->\n",
        "<!-- mdmem:end",
        "<!-- mdmem:begin 00000000.00000000 -->\ntext\n",
        "<!-- mdmem:end -->\n<!-- mdmem:begin 00000000.00000000 -->\n",
        "<!-- mdmem:begin by hand -->\n<!-- mdmem:end -->\n",
        "<!-- mdmem:begin 00000000.00000000 -->\n<!-- mdmem:end -->\n" * 2,
    ],
)
def test_broken_marks_are_refused(text: str) -> None:
    for one in (ONE, RULE, None):
        difference = compare("CLAUDE.md", text, one)
        assert difference is not None
        assert (difference.state, difference.is_fixed) == ("refused", False)


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.py", "**/*.py"),
        ("/*.py", "*.py"),
        ("src/**", "src/**"),
        ("/src/*.py", "src/*.py"),
        ("docs/", "**/docs/**"),
        ("a/docs/", "a/docs/**"),
        ("**", "**"),
    ],
)
def test_a_glob_of_a_rule_means_the_same_to_a_tool(glob: str, expected: str) -> None:
    assert portable(glob) == expected


def test_each_tool_gets_a_rule_in_its_own_form() -> None:
    rule = RuleText("a", "A: b", ("*.{py,pyi}", "!x.py", "src/"), "# A: b\n\nText.", "memories/rules/a.md")
    files = {one.path: one for one in list_wanted(("claude", "cursor", "copilot"), [rule], "memory", "")}
    assert files.keys() == {
        "AGENTS.md",
        "CLAUDE.md",
        ".claude/rules/mdmem/a.md",
        ".cursor/rules/mdmem/a.mdc",
        ".github/instructions/mdmem/a.instructions.md",
    }
    heads = {path: one.header for path, one in files.items()}
    globs = ("**/*.py", "**/*.pyi", "**/src/**")
    paths = "".join(f'  - "{glob}"\n' for glob in globs)
    assert heads[".claude/rules/mdmem/a.md"] == f"---\npaths:\n{paths}---\n"
    assert f'description: "A: b"\nglobs: {",".join(globs)}\n' in heads[".cursor/rules/mdmem/a.mdc"]
    assert f'applyTo: "{",".join(globs)}"' in heads[".github/instructions/mdmem/a.instructions.md"]
    assert "memories/rules/a.md" in files["AGENTS.md"].inner
    assert "Text." not in files["AGENTS.md"].inner
