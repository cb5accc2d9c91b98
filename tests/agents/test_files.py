"""The header of a rule is read, whether it is YAML or only looks like it."""

from __future__ import annotations

import time

import pytest

from mdmem.agents import files
from mdmem.text.globs import globs_of


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("globs: *.py, *.ts", ("*.py", "*.ts")),
        ("globs: '*.py'", ("*.py",)),
        ("globs: src/{a,b}.py,c.py", ("src/{a,b}.py", "c.py")),
        ("globs: [a.py, b.py]", ("a.py", "b.py")),
        ('globs:\n- *.py\n- "b.py"', ("*.py", "b.py")),
        ("globs:", ()),
        ("globs: 3", ()),
        ("globs:\n  a: b", ()),
        ("other: *.py", ()),
    ],
)
def test_globs_are_a_list_or_a_text_with_commas(written: str, expected: tuple[str, ...]) -> None:
    fields, body = files.read_header(f"---\n{written}\nalwaysApply: false\n---\nbody\n")
    assert globs_of(fields.get("globs")) == expected
    assert body == "body\n"


def test_without_a_header_all_is_body() -> None:
    assert files.read_header("text\n") == ({}, "text\n")
    assert files.read_header("---\nnever closed\n") == ({}, "---\nnever closed\n")


def test_a_field_that_no_yaml_reader_takes_leaves_the_others_readable() -> None:
    fields, _ = files.read_header("---\ndescription: a: b\nglobs: *.py\nalwaysApply: true\n---\n")
    assert fields == {"description": "a: b", "globs": "*.py", "alwaysApply": True}


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("a", ["a"]),
        ("{a,b}.{c,d}", ["a.c", "a.d", "b.c", "b.d"]),
        ("x{a,{b,c}}", ["xa", "xb", "xa", "xc"]),
        ("{a}", ["a"]),
        ("{a", ["{a"]),
        ("a{}", ["a"]),
    ],
)
def test_braces_stand_for_each_of_their_choices(glob: str, expected: list[str]) -> None:
    assert list(files.braces(glob)) == expected


@pytest.mark.parametrize(
    ("glob", "path", "anchored", "fits"),
    [
        ("*.py", "src/a.py", False, True),
        ("*.py", "src/a.py", True, False),
        ("*.py", "a.py", True, True),
        ("**/*.py", "a.py", True, True),
        ("**", "src/a.py", True, True),
        ("./src/*.py", "src/a.py", False, True),
        ("src/**/*.{ts,tsx}", "src/a/b.tsx", False, True),
        ("!a.py", "b.py", False, False),
        ("[a", "a", False, False),
        ("", "a", False, False),
    ],
)
def test_a_glob_fits_as_the_tool_reads_it(glob: str, path: str, anchored: bool, fits: bool) -> None:
    assert (files.matching([glob], path, anchored=anchored) == glob) is fits


def test_a_thousand_patterns_are_the_most() -> None:
    assert len(files.patterns(["{a,b}" * 3, *["c"] * 992]) or ()) == 1000
    assert files.patterns(["{a,b}" * 3, *["c"] * 993]) is None
    assert files.patterns(["{a,b}" * 500]) is None
    assert files.patterns(["x" * 5_000_000]) is None
    assert files.malformed(["ok", "{a,b}" * 500]) == ["ok", "{a,b}" * 500]


def test_very_many_commas_are_parted_in_no_endless_search() -> None:
    began = time.process_time()
    assert len(globs_of("a," * 60_000)) == 60_000
    assert time.process_time() - began < 1
