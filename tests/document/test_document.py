"""A document keeps its bytes, says what is wrong with it and where, and stays readable."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import event, given, settings, strategies as st

from mdmem.document.document import Document, Limits, parse, parse_text
from mdmem.errors import (
    BinaryContent,
    DocumentRefused,
    NotEncodable,
    NotUtf8,
    TooLarge,
    TooManyParts,
    TooNested,
)
from tests.speed import examples, soak_most
from tests.tables import cases

DATA = Path(__file__).parents[1] / "data" / "documents"


def markdown(text: str, **limits: int) -> Document:
    return parse("notes/a.md", text.encode(), Limits(**limits))


# -------------------------------------------------------------------------------------------------- bytes


@given(
    st.one_of(st.binary(max_size=60), st.text(max_size=40).map(str.encode)),
    st.sampled_from(["a.md", "a.json"]),
)
@settings(max_examples=examples(800))
def test_any_bytes_are_kept_or_refused(data: bytes, path: str) -> None:
    try:
        document = parse(path, data)
    except DocumentRefused as refusal:
        event(refusal.code)
        return
    assert document.data == data
    assert document.text.encode() == data
    assert document.hash == hashlib.sha256(data).hexdigest()
    assert document.text[: document.body_span.start] + document.body == document.text
    for finding in document.findings:
        assert finding.path == path
        assert 0 <= finding.span.start <= finding.span.end <= len(document.text)
        assert finding.position == document.lines.position(finding.span.start)


@given(st.text(max_size=40).filter(lambda text: "\0" not in text))
def test_text_and_its_bytes_make_the_same_document(text: str) -> None:
    document = parse_text("a.md", text)
    assert (document.text, document.data) == (text, text.encode())
    assert parse("a.md", document.data).text == text


@cases(
    "data, offset, byte, line",
    [
        *((b"\xff", 0, 0xFF, 1), (b"a\n\xff", 2, 0xFF, 2), (b"a\r\nb\rc\n\xe9t\xe9", 7, 0xE9, 4)),
        *(("é\né".encode() + b"\xc3", 5, 0xC3, 2), (b"ok\xed\xa0\x80", 2, 0xED, 1)),
        *((b"\xc0\xaf", 0, 0xC0, 1), ("a\u2028".encode() + b"\x80", 4, 0x80, 1)),
        (b"\xff\xfea\x00", 0, 0xFF, 1),
    ],
)
def test_bytes_that_are_not_utf8_are_refused_with_the_first_of_them(
    data: bytes, offset: int, byte: int, line: int
) -> None:
    with pytest.raises(NotUtf8) as caught:
        parse("a.md", data)
    refusal = caught.value
    assert (refusal.offset, refusal.byte, refusal.line) == (offset, byte, line)


def test_a_nul_byte_is_binary_content() -> None:
    with pytest.raises(BinaryContent) as caught:
        parse("a.md", "é\n\0".encode())
    assert caught.value.offset == 3


def test_a_file_may_be_as_large_as_the_limit_in_bytes() -> None:
    limits = Limits(max_bytes=4)
    assert parse("a.md", "éé".encode(), limits).text == "éé"
    with pytest.raises(TooLarge) as caught:
        parse("a.md", "ééa".encode(), limits)
    assert (caught.value.size, caught.value.limit) == (5, 4)


@pytest.mark.parametrize(("text", "offset"), [("\ud800", 0), ("a😀\udfff", 2)])
def test_text_with_a_lone_surrogate_cannot_become_a_memory(text: str, offset: int) -> None:
    with pytest.raises(NotEncodable) as caught:
        parse_text("a.md", text)
    assert caught.value.offset == offset


# -------------------------------------------------------------------------------------------- frontmatter


def test_the_size_of_frontmatter_is_limited_in_bytes() -> None:
    block = "---\na: éé\n---\n"
    assert len(block.encode()) == 16
    document = markdown(f"{block}a long body, which does not count", max_frontmatter_bytes=16)
    assert document.fields == {"a": "éé"}
    with pytest.raises(TooLarge) as caught:
        _ = markdown(block, max_frontmatter_bytes=15).frontmatter
    assert (caught.value.size, caught.value.limit, caught.value.what) == (16, 15, "the frontmatter")


def test_frontmatter_that_is_too_large_is_not_even_parsed() -> None:
    block = "---\na: " + "[" * 100 + "\n---\n"
    with pytest.raises(TooLarge):
        _ = markdown(block, max_frontmatter_bytes=50).frontmatter


@pytest.mark.parametrize(
    ("text", "line", "limit"),
    [
        ("---\nb: 1\na: [[[[1]]]]\n---\n", 3, 3),
        ("---\na: &x\n  - *x\n---\n", 3, 3),
        ("---\na: {b: {c: {d: 1}}}\n---\n", 2, 3),
    ],
)
def test_frontmatter_nested_too_deeply_is_refused_with_its_line(text: str, line: int, limit: int) -> None:
    with pytest.raises(TooNested) as caught:
        _ = markdown(text, max_depth=limit).fields
    assert (caught.value.path, caught.value.line, caught.value.limit) == ("notes/a.md", line, limit)


def test_too_many_values_are_refused_with_their_line() -> None:
    with pytest.raises(TooNested) as caught:
        _ = markdown("---\na: 1\nb: 2\nc: 3\n---\n", max_values=6).findings
    assert (caught.value.line, caught.value.limit) == (4, 6)


def test_json_nested_too_deeply_is_refused_with_its_line() -> None:
    document = parse("a.json", b'{"a":\n [\n [1]]}', Limits(max_depth=2))
    with pytest.raises(TooNested) as caught:
        _ = document.tree
    assert (caught.value.line, caught.value.limit) == (3, 2)


# ---------------------------------------------------------------------------------------------- documents


def case(path: Path) -> tuple[Document, dict[str, object]]:
    return parse(path.name, path.read_bytes()), json.loads(
        path.with_name(f"{path.name}.expected").read_text("utf-8")
    )


@cases("path", sorted(p for p in DATA.iterdir() if p.suffix != ".expected"), ids=lambda p: p.name)
def test_documents_are_read_as_expected(path: Path) -> None:
    """`X.expected` beside the document says what is found in it; findings are `line:column code`."""
    document, expected = case(path)
    found = {
        "fields": document.fields,
        "body": document.body[:40],
        "headings": [f"{h.line}: {'#' * h.level} {h.title}" for h in document.headings],
        "blocks": [f"{b.line}: {b.id}" for b in document.blocks],
        "findings": [f"{f.position.line}:{f.position.column} {f.code}" for f in document.findings],
    }
    assert found == expected
    assert document.text.encode() == path.read_bytes()


def test_a_finding_says_where_it_is_and_what_would_be_accepted() -> None:
    (finding,) = markdown("---\na: 1\n\nbody").findings
    assert (
        str(finding)
        == "notes/a.md:1:1: frontmatter-unclosed the frontmatter that begins here is never closed"
    )
    assert finding.hint == "add a line of `---`"


def test_findings_behind_a_byte_order_mark_and_other_characters_have_their_columns() -> None:
    (finding,) = markdown("\ufeff---\n😀: 1\n'😀': 2\n---\n").findings
    assert (finding.code, finding.position) == ("duplicate-key", (3, 1))
    (finding,) = parse("a.json", '\ufeff{"😀": 1, "😀": 2}'.encode()).findings
    assert (finding.code, finding.position) == ("duplicate-key", (1, 11))


def test_a_finding_is_the_same_one_when_lines_move() -> None:
    before, after = (markdown(f"{lead}---\na: 1\na: 2\n---\n") for lead in ("", "\ufeff"))
    assert [f.rule for f in before.findings] == [f.rule for f in after.findings] == ["a"]


def test_block_ids_that_stand_twice_are_findings_at_the_second() -> None:
    document = markdown("one ^x\ntwo ^y\nthree ^x\n")
    assert [(f.code, f.position) for f in document.findings] == [("duplicate-block-id", (3, 8))]


CONFLICT = "<<<<<<< ours\n- o\n=======\n- t\n>>>>>>> theirs\n"


@cases(
    "text, lines",
    [
        (CONFLICT, [(1, 5)]),
        ("\ufeff" + CONFLICT, [(1, 5)]),
        ("# A\r\n" + CONFLICT.replace("\n", "\r\n"), [(2, 6)]),
        ("# A\r" + CONFLICT.replace("\n", "\r"), [(2, 6)]),
        (f"{CONFLICT}between\n{CONFLICT}", [(1, 5), (7, 11)]),
        (CONFLICT.replace("=======", "||||||| base\n- b\n======="), [(1, 7)]),
        (CONFLICT.replace("<" * 7, "<" * 9).replace("=" * 7, "=" * 9).replace(">" * 7, ">" * 9), [(1, 5)]),
        ("<<<<<<< a whole file\n---\na: 1\n---\n=======\n---\na: 2\n---\n>>>>>>> theirs", [(1, 9)]),
        (f"```\nan example that is open\n```\n{CONFLICT}", [(4, 8)]),
        (CONFLICT.replace("- o", "```\no\n```").replace("- t", "```\nt"), [(1, 8)]),
        (f"<<<<<<< begun twice\n{CONFLICT}", [(2, 6)]),
        (f"```\n{CONFLICT}```\n", []),
        (f"~~~\n{CONFLICT}", []),
        ("`<<<<<<<`, `=======` and `>>>>>>>` are git's markers.\n", []),
        ("`code\n<<<<<<< goes on` here\n=======\n>>>>>>> quoted\n", []),
        ("A title\n=======\n", []),
        ("<<<<<<< ours\n>>>>>>> theirs\n=======\n", []),
        ("=======\n<<<<<<< ours\n>>>>>>> theirs\n", []),
        (CONFLICT.replace("<" * 7, "<" * 8), []),
        (CONFLICT.replace("<<<<<<< ours", "<<<<<<<ours"), []),
        (CONFLICT.replace("\n=======", "\n  ======="), []),
        (f"  {CONFLICT}", []),
    ],
)
def test_the_conflicts_that_a_merge_left_are_errors(text: str, lines: list[tuple[int, int]]) -> None:
    document = markdown(text)
    found = [finding for finding in document.findings if finding.code == "conflict-markers"]
    assert [tuple(map(document.lines.number, finding.span)) for finding in found] == lines
    for finding, (first, last) in zip(found, lines, strict=True):
        assert (finding.severity, finding.position.line) == ("error", first)
        assert finding.message == f"a merge left a conflict in lines {first} to {last}"
        assert "markers" in finding.hint


def test_a_conflict_in_code_is_found_where_it_is_asked_for() -> None:
    document = markdown(f"```\n{CONFLICT}```\n")
    (span,) = document.conflicts(in_code=True)
    assert document.text[slice(*span)] == CONFLICT.rstrip("\n")


def test_json_says_that_a_merge_left_a_conflict() -> None:
    document = parse("a.json", b'{\n<<<<<<< o\n"a": 2\n=======\n"a": 3\n>>>>>>> t\n}\n')
    assert [(finding.code, finding.position.line) for finding in document.findings] == [
        ("invalid-json", 2),
        ("conflict-markers", 2),
    ]


@given(
    st.lists(st.sampled_from(["<<<<<<< a", "=======", "|||||||", ">>>>>>> b", "```", "`", "x"]), max_size=12)
)
def test_conflicts_are_apart_in_order_and_have_each_marker_once(lines: list[str]) -> None:
    document, reached = markdown("\n".join(lines)), 0
    for start, end in document.conflicts(in_code=True):
        own = document.text[start:end].split("\n")
        assert start >= reached
        assert (own[0], own[-1]) == ("<<<<<<< a", ">>>>>>> b")
        assert "=======" in own[1:-1]
        assert "<<<<<<< a" not in own[1:]
        reached = end
    assert {*document.conflicts()} <= {*document.conflicts(in_code=True)}


# --------------------------------------------------------------------------------------------------- json


def test_a_json_memory_is_all_body_and_has_no_headings() -> None:
    document = parse("working/a.json", b'\xef\xbb\xbf{"a": "# no heading", "b": [1]}\n')
    assert document.is_json
    assert document.fields == {"a": "# no heading", "b": [1]}
    assert document.body == '{"a": "# no heading", "b": [1]}\n'
    assert not document.frontmatter.present
    assert (document.headings, document.blocks, document.fences, document.sections) == ((), (), (), ())


@pytest.mark.parametrize(("text", "value"), [("[1]", [1]), ('"x"', "x"), ("null", None)])
def test_json_that_is_no_object_has_a_tree_and_no_fields(text: str, value: object) -> None:
    document = parse("a.json", text.encode())
    assert document.tree is not None
    assert document.tree.value == value
    assert document.fields == {}


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"{", b"---\na: 1\n---\n"])
def test_json_that_cannot_be_read_is_a_finding(data: bytes) -> None:
    document = parse("a.json", data)
    assert document.tree is None
    assert document.fields == {}
    assert [f.code for f in document.findings] == ["invalid-json"]


# ------------------------------------------------------------------------------------------------ sections


def test_offsets_and_lines_of_headings_count_the_frontmatter() -> None:
    text = "\ufeff---\r\na: 1\r\n---\r\n# One 😀\r\ntext\r\n## Two\r\n"
    document = markdown(text)
    assert [(h.line, text[slice(*h.title_span)]) for h in document.headings] == [(4, "One 😀"), (6, "Two")]
    assert [s.path for s in document.sections] == [("One 😀",), ("One 😀", "Two")]
    assert text[slice(*document.sections[0].span)] == "# One 😀\r\ntext\r\n## Two\r\n"
    assert text[slice(*document.sections[0].own)] == "text\r\n"


def test_what_looks_like_a_heading_in_the_frontmatter_is_none() -> None:
    assert [h.title for h in markdown("---\n# comment\na: 1\n---\n# Title\n").headings] == ["Title"]


def test_a_memory_of_frontmatter_alone_has_an_empty_body() -> None:
    document = markdown("---\na: 1\n---")
    assert (document.body, document.headings, document.fields) == ("", (), {"a": 1})


def test_an_empty_memory_is_one() -> None:
    document = markdown("")
    assert (document.body, document.fields, document.findings, document.tree) == ("", {}, (), None)


# -------------------------------------------------------------------------------------------------- parts

# A unit of which a text has too many, and what of a document then refuses it.
TOO_MANY = {
    "headings": ("# a\n", "sections"),
    "underlined": ("a\n=\n", "headings"),
    "block ids": ("a ^b\n\n", "blocks"),
    "fences": ("```\n```\n", "fences"),
    "definitions": ("[a]: b\n\n", "headings"),
    "quoted lines": ("> a\n", "headings"),
    "paragraphs": ("a\n\n", "headings"),
    "wikilinks": ("[[a]]", "links"),
    "links": ("[a](b.md) ", "links"),
    "headings beside links": ("[a](b.md) ", "headings"),
    "nothing but brackets": ("[a](", "links"),
    "HTML": ("<a ", "links"),
    "backticks": ("` `` ", "links"),
    "tags": (" #a", "tags"),
    "no tags": ("a#a", "tags"),
    "code": ("`a.py#L1` ", "citations"),
    "bare citations": ("a.py:1 ", "citations"),
    "no citations": (":1", "citations"),
    "URLs": ("https://a.org ", "urls"),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("unit", "part"), soak_most(TOO_MANY.values(), quick=(*range(8), 10, 11, 12)), ids=TOO_MANY
)
def test_a_text_of_megabytes_with_too_many_parts_is_refused_at_its_limit(unit: str, part: str) -> None:
    """Without one, each takes up to a gigabyte, and tens of seconds."""
    text = unit * min(4_000_000 // len(unit), 810_000)  # a few more than the largest limit
    with pytest.raises(TooManyParts) as caught:
        getattr(markdown(text), part)
    assert caught.value.path == "notes/a.md"
    assert caught.value.limit in {100_000, 300_000, 400_000, 800_000}
    assert markdown(text).text == text


@cases(
    "unit, part",
    [TOO_MANY[name] for name in ("headings", "wikilinks", "links", "tags", "code", "bare citations", "URLs")],
)
def test_as_many_parts_as_the_limit_says_may_be_there(unit: str, part: str) -> None:
    assert len(getattr(markdown(unit * 5, max_parts=5), part)) == 5
    with pytest.raises(TooManyParts):
        getattr(markdown(unit * 6, max_parts=5), part)


def test_json_has_as_many_values_as_the_limit_says() -> None:
    text = b'{"a": [1, {"b": 2}]}'
    assert parse("a.json", text, Limits(max_parts=5)).fields == {"a": [1, {"b": 2}]}
    with pytest.raises(TooManyParts) as caught:
        _ = parse("a.json", text, Limits(max_parts=4)).fields
    assert caught.value.message == "a.json: there are more than 4 values"
