"""A block is found by its marks, and known to be edited by their digests."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from mdmem.document.synced_block import (
    BrokenMarks,
    digest_block,
    find_block,
    has_marks,
    with_one_block,
    without_block,
)
from mdmem.document.text.diff import Versions

END = "<!-- mdmem:end -->\n"


def block(inner: str, newline: str = "\n") -> str:
    digests = f"{digest_block('')}.{digest_block(inner)}"
    return f"<!-- mdmem:begin {digests} from rules/ -->\n{inner}{END}".replace("\n", newline)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_a_block_is_found_with_what_is_in_it(newline: str) -> None:
    text = f"# A{newline}" + block("- rule\n", newline) + f"behind{newline}"
    found = find_block(text)
    assert found is not None
    assert text[slice(*found.inner)] == f"- rule{newline}"
    assert without_block(text) == f"# A{newline}behind{newline}"
    assert not found.is_edited(text)


@given(inner=st.text().filter(lambda text: not has_marks(f"\n{text}")))
def test_only_a_changed_inside_is_edited(inner: str) -> None:
    text = block(f"{inner}\n")
    found = find_block(text)
    assert found is not None
    assert not found.is_edited(text)
    changed = text[: found.inner.end] + "by hand\n" + text[found.inner.end :]
    again = find_block(changed)
    assert again is not None
    assert again.is_edited(changed)


@pytest.mark.parametrize("text", [END, block("a\n") * 2, block("a\n").replace(END, ""), END + block("a\n")])
def test_marks_that_make_no_block_are_broken(text: str) -> None:
    with pytest.raises(BrokenMarks):
        find_block(text)
    assert without_block(text) == text


def test_a_mark_inside_of_a_line_is_none() -> None:
    text = f"See `{END.strip()}` and `<!-- mdmem:begin 00000000.00000000 -->`.\n"
    assert (find_block(text), has_marks(text)) == (None, False)


PROSE = st.text().filter(lambda text: not has_marks(f"\n{text}")).map(lambda text: f"{text}\n")


@given(base=PROSE, ours=PROSE, theirs=PROSE, has_base=st.booleans())
def test_of_two_blocks_theirs_stands_in_every_version_and_what_is_around_it_stays(
    base: str, ours: str, theirs: str, has_base: bool
) -> None:
    texts = Versions(base + block("a\n") * has_base, ours + block("b\n") + "end\n", theirs + block("c\n"))
    for before, after in zip(texts, with_one_block(texts), strict=True):
        found = find_block(after)
        assert found is not None
        assert after[slice(*found.span)] == block("c\n")
        assert without_block(after).rstrip("\r\n") == without_block(before).rstrip("\r\n")


@pytest.mark.parametrize(
    "texts",
    [
        Versions(block("a\n"), block("b\n"), block("a\n")),
        Versions(block("a\n"), block("b\n"), ""),
        Versions(block("a\n"), block("b\n"), block("c\n") + END),
        Versions(block("a\n"), block("b\n"), block("c\n").replace("c\n", "by hand\n")),
    ],
    ids=["one side", "removed", "broken", "edited"],
)
def test_versions_stay_where_two_blocks_were_not_both_made_by_a_sync(texts: Versions[str]) -> None:
    assert with_one_block(texts) == texts
