"""Which symbols a source file defines, and what is said of one that cannot be parsed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mdmem.index.code.symbols import Symbol, symbols
from tests.tables import cases

DATA = Path(__file__).parents[2] / "data" / "symbols"
PYTHON = b'''\
import os
LIMIT: int = 10
a, (b, *rest) = 1, (2, 3)

@first
@second(
    1,
)
def run():
    inner = 1
    def nested(): ...
    return inner

class Box(Base):
    """Text."""
    size = 1
    kind: str

    @property
    def width(self):
        return 1

    @width.setter
    def width(self, value):
        pass

    class Lid:
        async def close(self): ...

if os.name == "nt":
    def sep(): return 1
else:
    def sep(): return 2
try:
    import x
except ImportError:
    x = None
with open("f") as f:
    y = 1
for _ in ():
    z = 1
while False:
    w = 1
match 1:
    case 1:
        m = 1
obj.attribute = 1
index[0] = 1
'''


def listed(path: str, text: bytes | str) -> list[tuple[str, str, int, int]]:
    found = symbols(path, text.encode() if isinstance(text, str) else text)
    assert found.problem == ""
    return [(symbol.name, symbol.kind, symbol.first, symbol.last) for symbol in found.found]


def test_python_definitions_of_the_module_and_of_classes_are_found_with_their_decorators() -> None:
    assert listed("a.py", PYTHON) == [
        ("LIMIT", "variable", 2, 2),
        ("a", "variable", 3, 3),
        ("b", "variable", 3, 3),
        ("rest", "variable", 3, 3),
        ("run", "function", 5, 12),
        ("Box", "class", 14, 28),
        ("Box.size", "variable", 16, 16),
        ("Box.kind", "variable", 17, 17),
        ("Box.width", "function", 19, 21),
        ("Box.width", "function", 23, 25),
        ("Box.Lid", "class", 27, 28),
        ("Box.Lid.close", "function", 28, 28),
        ("sep", "function", 31, 31),
        ("sep", "function", 33, 33),
        ("x", "variable", 37, 37),
        ("y", "variable", 39, 39),
        ("z", "variable", 41, 41),
        ("w", "variable", 43, 43),
        ("m", "variable", 46, 46),
    ]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
def test_a_type_statement_defines_its_name() -> None:
    assert listed("a.py", "type X = int\n") == [("X", "variable", 1, 1)]


def test_a_name_has_all_its_definitions_and_may_be_written_as_in_other_languages() -> None:
    found = symbols("a.py", PYTHON)
    assert [symbol.first for symbol in found.named("Box.width")] == [19, 23]
    assert found.named("Box::Lid::close") == found.named("Box.Lid.close()")
    assert found.named("nested") == ()
    assert found.named("width") == ()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts(end: str) -> None:
    text = f"x = 1{end}\fy = 2{end}def f():{end}    pass{end}"
    assert listed("a.py", text) == [("x", "variable", 1, 1), ("y", "variable", 2, 2), ("f", "function", 3, 4)]


def test_python_in_another_encoding_is_read_as_it_declares() -> None:
    assert listed("a.py", b"# coding: latin-1\nx = '\xe9'\n") == [("x", "variable", 2, 2)]


@cases(
    "text, problem",
    [
        (b"def f(:\n", "it is not valid Python here"),
        (b"print 'two'\n", "it is not valid Python here"),
        (b"x = '\xe9'\n", "it is not valid Python here"),
        (b"x = 1\0\n", "it"),
        (b"x = " + b"(" * 5000 + b")" * 5000, "it"),
        (b"x = " + b"-" * 50_000 + b"1", "it cannot be parsed"),
        (b"#" * 1_000_001, "it has more than 1,000,000 bytes"),
    ],
)
def test_what_cannot_be_parsed_says_why(text: bytes, problem: str) -> None:
    found = symbols("a.py", text)
    assert found.found == ()
    assert found.problem.startswith(problem)


def test_an_invalid_escape_is_no_warning() -> None:
    assert listed("a.py", 'x = "\\d"\n') == [("x", "variable", 1, 1)]


@given(st.text(max_size=60) | st.text("defclas =:()\n \tx1@.,[]*", max_size=60))
def test_any_text_gives_symbols_inside_it_or_a_problem(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    lines = len(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
    for symbol in symbols("a.py", data).found:
        assert 1 <= symbol.first <= symbol.last <= lines


# ------------------------------------------------------------------------------------------ other languages


@cases("path", ["README", "a.zig", "a.md", "a.", "dir.d/file"])
def test_a_file_of_no_known_language_is_not_parsed(path: str) -> None:
    found = symbols(path, b"fn x() {}")
    assert found.found == ()
    assert found.problem.startswith("there is no parser")


def test_without_the_extra_other_languages_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.index.code.symbols import _make_parser

    _make_parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    found = symbols("a.go", b"package p\nfunc F() {}\n")
    assert found.found == ()
    assert found.problem == "its language needs an extra: pip install '.[symbols]' in a clone of mdmem"


def test_python_needs_no_grammar() -> None:
    code = (
        "import sys; from mdmem.index.code.symbols import symbols; symbols('a.py', b'x = 1');"
        "print([m for m in sys.modules if 'tree_sitter' in m or m.endswith('grammars')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# What is defined in the files of tests/data/symbols: name, first letter of the kind, lines.
LANGUAGES = {
    "javascript.js": """
        A c 1-4
        A.x v 2-2
        A.run f 3-3
        main f 5-6
        f f 7-9
        g v 9-9
    """,
    "typescript.ts": """
        A c 1-5
        A.x v 3-3
        A.run f 4-4
        I c 6-6
        I.a v 6-6
        I.m f 6-6
        T1 c 7-7
        E c 8-8
        N c 9-11
        N.inside f 10-10
        f f 12-12
    """,
    "script.tsx": """
        View f 1-1
    """,
    "go.go": """
        S c 2-4
        A c 6-6
        B c 7-7
        S.M f 9-9
        G.N f 10-10
        F f 11-11
        v1 v 13-13
        v2 v 14-14
        v3 v 14-14
        C v 16-16
    """,
    "rust.rs": """
        P c 1-2
        P.new f 5-8
        m c 10-10
        m.C v 10-10
        mac f 11-11
        Tr c 12-12
        Tr.sig f 12-12
    """,
    "Java.java": """
        A c 1-8
        A.x v 3-3
        A.y v 3-3
        A.run f 4-5
        A.A f 6-6
        A.E c 7-7
        A.E.P v 7-7
        I c 9-9
        I.m f 9-9
        I.K v 9-9
    """,
    "c.c": """
        MAX v 1-1
        point_t c 2-2
        point c 2-2
        point.x v 2-2
        f f 3-3
        name f 4-8
        count v 9-9
        on v 11-11
    """,
    "cpp.hpp": """
        ns.K c 2-4
        ns.K.m f 3-3
        most f 6-7
        ns.K.m f 8-8
        alias c 9-9
    """,
}


@cases("name", LANGUAGES)
def test_definitions_of_other_languages(name: str) -> None:
    pytest.importorskip("tree_sitter")
    found = listed(name, (DATA / name).read_bytes())
    assert [f"{symbol} {kind[0]} {first}-{last}" for symbol, kind, first, last in found] == [
        line.strip() for line in LANGUAGES[name].strip().splitlines()
    ]


def test_a_broken_file_gives_what_can_be_read_and_says_that_there_may_be_more() -> None:
    pytest.importorskip("tree_sitter")
    found = symbols("a.go", b"package p\nfunc F() {}\nfunc G( {\n")
    assert found.named("F") == (Symbol("F", "function", 2, 2),)
    assert found.problem == "it could be parsed in part only"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts_for_a_grammar_too(end: str) -> None:
    pytest.importorskip("tree_sitter")
    text = f"package p{end}{end}func F() {{{end}}}{end}var x = 1{end}"
    assert listed("a.go", text) == [("F", "function", 3, 4), ("x", "variable", 5, 5)]


@given(st.sampled_from(sorted(LANGUAGES)), st.data())
def test_a_damaged_file_never_fails(name: str, data: st.DataObject) -> None:
    pytest.importorskip("tree_sitter")
    text = (DATA / name).read_bytes()
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.binary(max_size=4)) + text[at + data.draw(st.integers(0, 9)) :]
    lines = damaged.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
    for symbol in symbols(name, damaged).found:
        assert 1 <= symbol.first <= symbol.last <= lines
        assert symbol.name
