"""Imports are found in text, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from mdmem.agents.claude import imports, without_comments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@a.md", ["a.md"]),
        ("see @docs/a.md, and\n- @~/b.md\n> @/c.md", ["docs/a.md,", "~/b.md", "/c.md"]),
        ("@a\\ b.md c", ["a b.md"]),
        ("me@a.md (@b.md) x@", []),
        ("`@a.md` and ``@b.md `@c.md` ``", []),
        ("a ` b @a.md", ["a.md"]),
        ("```\n@a.md\n```\n@b.md", ["b.md"]),
        ("~~~\n@a.md\nnever closed", []),
        ("- item\n  ```\n  @a.md\n  ```\n", []),
        ("| `@a.md` | @b.md |\n", ["b.md"]),
        ("# @a.md\n", ["a.md"]),
        ("<details>\n@a.md\n</details>\n", ["a.md"]),
        ("@\n@ a", []),
    ],
)
def test_an_import_begins_with_an_at_sign_outside_of_code(text: str, expected: list[str]) -> None:
    assert [one.target for one in imports(text)] == expected


@given(
    st.lists(st.sampled_from(["@a.md", "`", "```", "\n", " ", "<!--", "-->", "x", "> ", "- "])).map("".join)
)
def test_an_import_stands_where_it_says(text: str) -> None:
    for one in imports(text):
        assert text.startswith(f"@{one.target}", one.at)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n<!-- b -->\nc\n", "a\nc\n"),
        ("<!--\n\nb\n\n-->\nc", "c"),
        ("a <!-- b -->\n", "a <!-- b -->\n"),
        ("<!-- a --> b\n<!-- c -->\n", "<!-- a --> b\n"),
        ("    <!-- a -->\n", "    <!-- a -->\n"),
        ("```\n<!-- a -->\n```\n", "```\n<!-- a -->\n```\n"),
        ("<!-- never closed\n", "<!-- never closed\n"),
        ("a\r\n<!-- b -->\r\nc\r\n", "a\r\nc\r\n"),
    ],
)
def test_a_comment_on_lines_of_its_own_is_dropped(text: str, expected: str) -> None:
    assert without_comments(text) == expected
