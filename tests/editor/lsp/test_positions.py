"""Positions: in every encoding they name the code point that an editor means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st
from lsprotocol import types

from mdmem.document.text.lines import Lines
from mdmem.editor.lsp.positions import TextPositions, choose_encoding

UTF8, UTF16, UTF32 = (
    types.PositionEncodingKind.Utf8,
    types.PositionEncodingKind.Utf16,
    types.PositionEncodingKind.Utf32,
)
ENCODINGS = {UTF8: "utf-8", UTF16: "utf-16-le", UTF32: "utf-32-le"}
UNITS = {UTF8: 1, UTF16: 2, UTF32: 4}
TEXTS = st.text(st.sampled_from("aé日😀\u2028\x0c\ufeff\r\n"), max_size=30)


def units(text: str, encoding: types.PositionEncodingKind) -> int:
    return len(text.encode(ENCODINGS[encoding])) // UNITS[encoding]


def split(text: str) -> list[str]:
    """The lines of a text as an editor has them: one more than there are line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@given(TEXTS, st.integers(0, 30), st.sampled_from(list(ENCODINGS)))
def test_an_offset_and_its_position_name_the_same_place(
    text: str, offset: int, encoding: types.PositionEncodingKind
) -> None:
    offset = min(offset, len(text))
    if text[offset - 1 : offset + 1] == "\r\n":  # no editor has a place there
        offset -= 1
    positions = TextPositions(Lines(text), encoding, is_open=True)
    position = positions.position(offset)
    before = split(text[:offset])
    assert (position.line, position.character) == (len(before) - 1, units(before[-1], encoding))
    assert positions.offset(position) == offset


@given(TEXTS, st.integers(0, 40), st.integers(0, 40), st.sampled_from(list(ENCODINGS)))
def test_a_position_beyond_is_clamped_and_never_amid_a_character(
    text: str, line: int, character: int, encoding: types.PositionEncodingKind
) -> None:
    positions = TextPositions(Lines(text), encoding, is_open=True)
    offset = positions.offset(types.Position(line, character))
    found = positions.position(offset)
    last = len(split(text)) - 1
    assert found.line == min(line, last)
    if line <= last:
        content = split(text)[line]
        fitting = [n for n in range(len(content) + 1) if units(content[:n], encoding) <= character]
        assert found.character == units(content[: max(fitting)], encoding)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, UTF16),
        ([], UTF16),
        (["utf-8", "utf-16"], UTF8),
        (["utf-7", "utf-32"], UTF32),
        (["utf-7"], UTF16),
    ],
)
def test_the_first_encoding_that_is_known_is_chosen(
    offered: list[str] | None, chosen: types.PositionEncodingKind
) -> None:
    assert choose_encoding(offered) == chosen


@given(TEXTS, st.integers(0, 30), st.sampled_from(list(ENCODINGS)))
def test_a_mark_at_the_beginning_counts_only_where_the_editor_has_it(
    text: str, offset: int, encoding: types.PositionEncodingKind
) -> None:
    offset = min(offset, len(text))
    marked = TextPositions(Lines(f"\ufeff{text}"), encoding, is_open=False)
    shown = TextPositions(Lines(text), encoding, is_open=True)
    assert marked.position(offset + 1) == shown.position(offset)
    assert marked.offset(shown.position(offset)) == shown.offset(shown.position(offset)) + 1
    assert marked.position(0) == types.Position(0, 0)
    kept = TextPositions(Lines(f"\ufeff{text}"), encoding, is_open=True)
    assert kept.offset(types.Position(0, 0)) == 0


@given(st.lists(st.sampled_from(["a", "\ud83d", "\ude00"]), max_size=6).map("".join))
def test_half_a_character_has_a_place(text: str) -> None:
    """As an editor counts it that has given it to us: two halves that meet are one character."""
    text = json.loads(json.dumps(text))
    for encoding in ENCODINGS:
        positions = TextPositions(Lines(text), encoding, is_open=True)
        for offset in range(len(text) + 1):
            assert positions.offset(positions.position(offset)) == offset


def test_a_range_that_ends_before_it_begins_is_empty() -> None:
    positions = TextPositions(Lines("abc"), UTF16, is_open=True)
    assert positions.span(types.Range(types.Position(0, 2), types.Position(0, 1))) == (2, 2)
