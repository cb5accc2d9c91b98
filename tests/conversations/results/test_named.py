"""What an output names: as in memories, and what tools print besides."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from mdmem.conversations.results.named import FILE, LINES, MOST, TYPES, URL, defines, named
from mdmem.index.links import references
from tests.speed import examples
from tests.tables import cases


def found(text: str) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for each in named(text).references:
        kinds.setdefault(each.type, []).append(each.value)
    return kinds


def test_the_types_are_called_as_those_of_memories() -> None:
    assert set(TYPES) <= set(references.TYPES)
    assert (FILE, LINES, URL) == (references.FILE, references.LINES, references.URL)


@cases(
    "text, paths",
    [
        ("read /usr/local/lib/a.py.", ["/usr/local/lib/a.py"]),
        ('open "/etc/hosts", then', ["/etc/hosts"]),
        ("in src/app.py and ./lib/b.rs; ../c.ts: (d.go)", ["src/app.py", "./lib/b.rs", "../c.ts", "d.go"]),
        ("~/notes.md /usr/bin/python3", ["~/notes.md", "/usr/bin/python3"]),
        (r"C:\Users\me\a.txt, D:/x/y.py", [r"C:\Users\me\a.txt", "D:/x/y.py"]),
        ("/dev/null /proc/1/maps /sys/x.y", []),
        ("and/or 12/30 v1.2 e.g. 3.14 a.b", []),
        ("\x1b[35msrc/a.py\x1b[m\x1b[36m:\x1b[m3", ["src/a.py"]),
        ("`src/a.py`, 'b/c.js'!", ["src/a.py", "b/c.js"]),
        ('File "/a b/c.py", line 3, in run', ["/a b/c.py"]),
    ],
)
def test_paths(text: str, paths: list[str]) -> None:
    assert found(text).get(FILE, []) == paths


@cases(
    "text, places",
    [
        ("src/app.py:12:5: error", ["src/app.py#L12"]),
        ("src/app.py:10-20, x", ["src/app.py#L10-L20"]),
        ("see (lib/c.go#L4-L9).", ["lib/c.go#L4-L9"]),
        ('File "/a/c.py", line 3, in run', ["/a/c.py#L3"]),
    ],
)
def test_lines_of_files(text: str, places: list[str]) -> None:
    assert found(text)[LINES] == places


def test_urls_without_the_punctuation_behind_them() -> None:
    text = "See https://example.org/a_(b)?c=d, (http://x.org/y). or www.z.org! and ftp://f.org"
    urls = ["https://example.org/a_(b)?c=d", "http://x.org/y", "www.z.org", "ftp://f.org"]
    assert sorted(found(text)[URL]) == sorted(urls)
    assert FILE not in found(text)


@cases(
    "text, kind, name",
    [
        ("def hello():", "function", "hello"),
        ("    async def run(self) -> None:", "function", "run"),
        ("func (s *Server) Listen(port int) {", "function", "Listen"),
        ("export default function main() {", "function", "main"),
        ("pub(crate) fn go<T>(x: T) {", "function", "go"),
        ("src/a.py:3:def in_grep(x):", "function", "in_grep"),
        ("    12→def in_read(x):", "function", "in_read"),
        ("it calls def inside(x) there", "function", "inside"),
        ('File "a.py", line 3, in traced', "function", "traced"),
        ("class Foo(Bar):", "class", "Foo"),
        ("class Ruby", "class", "Ruby"),
        ("public abstract class J extends K {", "class", "J"),
        ("type User struct {", "class", "User"),
        ("interface Shape {", "class", "Shape"),
        ("impl<T> Vec {", "class", "Vec"),
        ("const limit = 3;", "variable", "limit"),
        ("MAX_SIZE: int = 3", "variable", "MAX_SIZE"),
    ],
)
def test_definitions(text: str, kind: str, name: str) -> None:
    assert found(text)[kind] == [name]


@cases(
    "text",
    [
        "the class of 1999 and a class is good; a function for this, class in session",
        "class of problems:",
        "first class\nfunction call (see below)",
        "A == B, x = 3",
    ],
)
def test_prose_defines_nothing(text: str) -> None:
    assert not {"class", "function", "variable"} & found(text).keys()


def test_each_is_told_once_with_the_line_in_which_it_stands_first() -> None:
    (one,) = named("first\nsee src/a.py here\nand src/a.py there\n").references
    assert one == (FILE, "src/a.py", "see src/a.py here")


def test_more_than_there_may_be_are_counted() -> None:
    many = named("\n".join(f"src/{number}.py" for number in range(MOST + 50)))
    assert len(many.references) == MOST
    assert many.left_out == 50


def test_of_a_long_output_the_beginning_and_the_end_are_looked_at_and_the_rest_is_counted() -> None:
    text = "src/first.py " + "x " * 100_000 + "src/middle.py " + "x " * 100_000 + "src/last.py"
    long = named(text)
    assert [each.value for each in long.references] == ["src/first.py", "src/last.py"]
    assert long.unread == len(text) - 16_000


def test_no_secret_is_named() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = f"https://me:s3cretpw@example.org/x and https://x.org/?t={token} src/a.py:1 {token}"
    assert "s3cretpw" not in str(named(text))
    assert token not in str(named(text))


@cases(
    "piece",
    [
        ":1",
        "/a",
        "a.",
        "#L1",
        "def ",
        'File "',
        "C:\\",
        "http://",
        "http://a(",
        "a/",
        "class A ",
        "1:",
        "public ",
        "(((((",
        "www.",
        "%2e",
        "\\",
        "~/",
        "../",
        "func(",
        "const ",
        "a=",
        "type T ",
        "impl<",
        "1→",
    ],
)
def test_hostile_text_is_read_once(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert len(named(text).references) <= MOST
    defines(text)


@settings(max_examples=examples(200))
@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    for each in named(text).references:
        assert each.type in TYPES
        assert each.value
        assert "\n" not in each.context
