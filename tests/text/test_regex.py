"""A pattern that is compiled when it is first used does what a compiled one does."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import pytest
from hypothesis import example, given, strategies as st

from mdmem.text.regex import doubtful, regex

TEXT = "one, two; THREE"


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_it_finds_what_a_compiled_one_finds(flags: int) -> None:
    late, compiled = regex(r"([a-z]+)([,;])?", flags), re.compile(r"([a-z]+)([,;])?", flags)
    for _ in range(2):  # as it is compiled, and from then on
        for found, wanted in (
            (late.match(TEXT, 5), compiled.match(TEXT, 5)),
            (late.search(TEXT, 10), compiled.search(TEXT, 10)),
            (late.fullmatch("one"), compiled.fullmatch("one")),
        ):
            assert (found and found.groups()) == (wanted and wanted.groups())
        assert [found.span() for found in late.finditer(TEXT)] == [
            found.span() for found in compiled.finditer(TEXT)
        ]
        assert late.findall(TEXT) == compiled.findall(TEXT)
        assert late.sub("x", TEXT) == compiled.sub("x", TEXT)
        assert late.split(TEXT) == compiled.split(TEXT)
        assert late.pattern == compiled.pattern


def test_nothing_is_compiled_before_it_is_used() -> None:
    unsound = regex("(")
    assert unsound.pattern == "("
    with pytest.raises(re.error):
        unsound.match("")


def test_every_pattern_of_the_package_is_sound() -> None:
    """What is wrong with one would be found out by whoever uses it first."""
    code = (
        "import importlib, pkgutil, mdmem\n"
        "from mdmem.text.regex import _Regex\n"
        "count = 0\n"
        "for found in pkgutil.walk_packages(mdmem.__path__, 'mdmem.'):\n"
        "    if found.name.endswith('__main__'): continue\n"
        "    for value in vars(importlib.import_module(found.name)).values():\n"
        "        if isinstance(value, _Regex):\n"
        "            value.match('')\n"
        "            count += 1\n"
        "print(count)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 100


@given(st.text("[]^-&|~ab\\", max_size=9))
@example("[[a]")
@example("[a--b]")
@example(r"[\[a]")
def test_what_python_warns_of_is_told_beforehand(pattern: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            re.compile(pattern)
        except re.error:
            return
    if any(issubclass(each.category, FutureWarning) for each in told):
        assert doubtful(pattern)


@pytest.mark.parametrize("pattern", ["a[b]c", r"[\[a]", "[a-z]--", "[[]"[1:], "&&|~~", "[&|~]", r"\[["])
def test_what_means_one_thing_is_not_doubtful(pattern: str) -> None:
    assert not doubtful(pattern)
