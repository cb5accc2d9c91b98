"""Forms of YAML that people rarely write: an edit is exact or refused by name, never wrong, never a crash."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings, strategies as st

from mdmem.errors import DocumentRefused, EditRefused, FieldNotFound, MdmemError
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import splice
from mdmem.text.field import set_field, unset_field
from mdmem.text.tree import same

FRAGMENTS = [
    *("? a\n: b\n", "? c\n", "? - x\n: y\n", "d: &x 1\n", "e: *x\n", "f: &y\n  g: 1\n"),
    *("h: &z\n- i\n- &w j\n", "k: *y\n", "l: [*z, &v m, n: o]\n", "&k p: q\n", "*k : r\n", "s: !!str 5\n"),
    *("t: !tag\n  u: 1\n", "v: plain\n  over\n\n  lines # c\n", "w:\n  below # c\n", 'x: "double\n  over"\n'),
    *("y: |2\n    z\n\n\n", "z: >+\n  z\n\n", "aa:   \n", "- stray\n", "bb: {a, b: , 'c':1, ? d, e}\n"),
    *("cc: [\n  a, # c1, d\n  b\n  # c2\n]\n", "dd: {\n  a: 1, # c1\n  b: 2, # c2\n}\n"),
    *("ee: # c\n\n    # c\n  - - 1\n    - 2\n  -\n    ff: 1\n  - &q\n    gg: 1\n", "hh: |  # c\n"),
    *("ii: ''\n", "jj: x\u2028y\n", "kk: |\n  \u00a0\n", "\tll: 1\n", "mm: -\n", "%nn: 1\n"),
    *("# only a comment\n", "...\n", "oo: 1\r\n", "d: twice\n"),
]
KEYS = [
    *("a", "b", "c", "d", "e", "f", "f.g", "h", "h.0", "h.1", "h.2", "k", "k.g", "l", "l.0", "l.1", "l.2"),
    *("l.2.n", "l.3", "p", "s", "t", "t.u", "v", "w", "x"),
    *("y", "z", "aa", "aa.q", "bb", "bb.a", "bb.b", "bb.q"),
    *("cc", "cc.0", "cc.1", "cc.2", "dd", "dd.a", "dd.b", "dd.q", "ee", "ee.0", "ee.0.1", "ee.1", "ee.1.ff"),
    *("ee.2.gg", "ee.3", "hh", "ii", "jj", "kk", "ll", "mm", "oo", "new", "new.q"),
]
VALUES: list[Any] = [
    *("text", "a\nb\n", None, 5, [], {}, [1, "b"], ["i", "j", "k"], {"g": 2}, {"q": [{"r": []}]}),
]


def _read(document: Document) -> bool:
    try:
        return not {flaw.code for flaw in document.frontmatter.flaws} - {"duplicate-key", "unknown-tag"}
    except DocumentRefused:
        return False


@settings(max_examples=400)
@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6),
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
)
def test_an_edit_of_rare_yaml_is_exact_or_refused(fragments: list[str], key: Any, value: Any) -> None:
    document = parse_text("a.md", "---\n" + "".join(fragments) + "---\nbody\n")
    if not _read(document):
        return
    try:
        result = parse_text("a.md", splice(document.text, set_field(document, key, value)))
    except EditRefused:
        pass
    else:
        node = result.tree and result.tree.find(key.split("."))
        assert node is not None
        assert same(node.value, value)
        assert result.body == "body\n"
        assert _read(result)
    try:
        result = parse_text("a.md", splice(document.text, unset_field(document, key)))
    except (EditRefused, FieldNotFound):
        return
    others = {name: part for name, part in document.fields.items() if name != key.split(".")[0]}
    assert same({name: part for name, part in result.fields.items() if name in others}, others)


@settings(max_examples=300)
@given(st.text("---\n\r:#-[]{},'\"&*!|>? ab\t01.", max_size=40), st.sampled_from(["a", "b", "a.b", "0"]))
def test_whatever_the_frontmatter_is_only_known_errors_are_raised(yaml: str, key: Any) -> None:
    for path, text in (("a.md", f"---\n{yaml}\n---\n"), ("a.md", yaml), ("a.json", yaml)):
        document = parse_text(path, text)
        with suppress(MdmemError):
            after = parse_text(path, splice(document.text, set_field(document, key, ["x"])))
            node = after.tree and after.tree.find(key.split("."))
            assert node is not None
            assert node.value == ["x"]
        with suppress(MdmemError):
            after = parse_text(path, splice(document.text, unset_field(document, key)))
            assert after.tree is None or after.tree.find(key.split(".")) is None
