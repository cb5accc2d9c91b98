"""Sources: a bullet names them behind what it says, and says the same with and without them."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from mdmem.document.source import said_in, with_sources
from tests.speed import examples


@settings(max_examples=examples(200))
@given(
    text=st.text(max_size=300).map(str.strip).filter(lambda each: any(map(str.isalnum, each))),
    sources=st.lists(st.from_regex(r"[a-z]+/[^\s()]+", fullmatch=True), max_size=4),
)
def test_a_bullet_keeps_what_it_says_whatever_its_sources(text: str, sources: list[str]) -> None:
    said, known = said_in(text)
    more = with_sources(text, sources)
    assert said_in(more)[1][: len(known)] == known
    assert {*sources} <= {*said_in(more)[1]}
    assert with_sources(more, sources) == more
    assert said_in(more)[0].rstrip() == said.rstrip()
