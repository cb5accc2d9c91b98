"""A text that is shown, changed and taken back is exact in all that nobody has changed."""

from __future__ import annotations

from hypothesis import given, strategies as st

from mdmem import visible
from mdmem.document.text.lines import whole_lines, with_newline
from mdmem.facade.shown import ShownText, exact_name
from tests.tables import cases

TEXTS = st.text(alphabet="ab \n\r\t\u202e\u200b\ufeff#<U+202E>", max_size=40)


@given(exact=TEXTS)
def test_what_nobody_changes_is_exact(exact: str) -> None:
    shown = ShownText(exact)
    assert shown.text == visible(exact.removeprefix("\ufeff"))
    assert shown.take_back(shown.text) == exact
    assert shown.take_back(shown.text.replace("\n", "\r\n")) == exact


@given(exact=TEXTS, at=st.integers(0, 20), line=st.text(alphabet="xy", max_size=3))
def test_lines_that_stay_keep_their_bytes(exact: str, at: int, line: str) -> None:
    shown = ShownText(exact)
    lines = whole_lines(shown.text)
    before, after = "".join(lines[:at]), "".join(lines[at:])
    taken = shown.take_back(f"{before}{line}\n{after}")
    assert visible(taken.removeprefix("\ufeff")) == visible(f"{before}{line}\n{after}")
    kept = exact.removeprefix("\ufeff")
    assert (
        with_newline(taken, "\n")
        .removeprefix("\ufeff")
        .startswith(with_newline("".join(whole_lines(kept)[: max(0, at - 1)]), "\n"))
    )


@cases(
    "exact, changed, taken",
    [
        ("a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"),
        ("a\rb", "a\nb\nc", "a\rb\rc"),
        ("\ufeffa\n", "b\n", "\ufeffb\n"),
        ("a\u202eb\n", "a<U+202E>bc\n", "a\u202ebc\n"),
        ("a\u202eb\n", "c\n", "c\n"),
        ("say <U+202E>\n", "say <U+202E>!\n", "say <U+202E>!\n"),
        ("a\n", "a <U+202E>\n", "a <U+202E>\n"),
        ("\r0\n", "\n\n0\n", "\r\n\n0\n"),
        ("a\rb\n\nc", "a\n\nc", "a\r\n\nc"),
        ("a\r\nb", "a <U+0061><U+000A>\nb", "a <U+0061><U+000A>\r\nb"),
        ("", "a\n", "a\n"),
        ("a\n", "", ""),
    ],
)
def test_a_changed_line_ends_as_the_others_and_keeps_what_was_spelled_out(
    exact: str, changed: str, taken: str
) -> None:
    assert ShownText(exact).take_back(changed) == taken


def test_places_are_found_in_what_is_shown() -> None:
    exact = "\ufeffab\r\nc\u202ed [[e]]\n"
    shown = ShownText(exact)
    assert shown.text[shown.find_shown(exact.index("[[")) :] == "[[e]]\n"
    assert shown.find_shown(len(exact)) == len(shown.text)
    assert shown.find_shown(0) == 0


def test_a_name_is_what_was_spelled_out() -> None:
    assert exact_name("a<U+202E>b<U+1F600>") == "a\u202eb\U0001f600"
    assert exact_name("a<U+20>b<U+FFFFFF>") == "a<U+20>b<U+FFFFFF>"
