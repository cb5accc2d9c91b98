"""Our own patterns, compiled when they are first used, do what compiled ones do; those of others end."""

from __future__ import annotations

import contextlib
import inspect
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
import regex as third_party
from hypothesis import given, settings, strategies as st

from mdmem.document.text.regex import Allowance, foreign, regex
from mdmem.errors import PatternInvalid, PatternTooSlow
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    import regex as engine

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
    with pytest.raises((re.error, third_party.error)):  # of whichever compiles here
        unsound.match("")


def test_the_engine_of_older_pythons_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text, flags = "Ab: [x\\]y]\nab\n", re.MULTILINE | re.IGNORECASE | re.ASCII
    written = r"^(?:[^\[\]\\\n]++|\\.)++$|\[(?:[^\]\\]++|\\.)*+\]"
    ours = [found.span() for found in re.finditer(written, text, flags)]
    monkeypatch.setattr("mdmem.document.text.regex._IS_SOUND", False)
    assert [found.span() for found in regex(written, flags).finditer(text)] == ours == [(4, 10), (11, 13)]


def sound_patterns(but: tuple[str, ...]) -> int:
    import importlib
    import pkgutil

    import mdmem
    from mdmem.document.text.regex import _Regex

    count = 0
    for found in pkgutil.walk_packages(mdmem.__path__, "mdmem."):
        if found.name.endswith("__main__") or found.name.startswith(but):
            continue
        for value in vars(importlib.import_module(found.name)).values():
            if isinstance(value, _Regex):
                value.match(value.pattern[:0])
                count += 1
    return count


def test_every_pattern_of_the_package_is_sound() -> None:
    """What is wrong with one would be found out by whoever uses it first."""
    assert sound_patterns(tuple(f"mdmem.{name}." for name in ("adapters", "cli", "lsp", "mcp"))) > 100


@pytest.mark.soak
def test_every_pattern_of_what_imports_much_is_sound() -> None:
    code = f"{inspect.getsource(sound_patterns)}\nprint(sound_patterns(()))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 100


HOSTILE = "a" * 60 + "b"


@cases("pattern", ["(a|aa)+$", "(a|a)*c", "(?:a?){60}a{60}$", "(.*)*\\1x$", "((a|b)*)*c\\b"])
def test_a_pattern_of_others_ends(pattern: str) -> None:
    with contextlib.suppress(PatternTooSlow):
        assert not Allowance(0.2).matches(foreign(pattern), HOSTILE)


def test_a_pattern_that_takes_too_long_is_stopped_and_named() -> None:
    with pytest.raises(PatternTooSlow) as caught:
        Allowance(0.2).matches(foreign("(a|aa)+$"), HOSTILE)
    assert (caught.value.pattern, caught.value.seconds) == ("(a|aa)+$", 0.2)


def test_texts_share_the_time_that_a_pattern_may_take() -> None:
    allowance, slow = Allowance(0.5), foreign("(?:a|a)*$")
    looked = 0

    def look() -> None:
        nonlocal looked
        while looked < 1_000:
            allowance.matches(slow, "a" * 17 + "b")
            looked += 1

    with pytest.raises(PatternTooSlow):
        look()
    assert looked > 0


def test_other_threads_run_while_a_pattern_is_looked_for() -> None:
    running = threading.Event()

    def look() -> None:
        running.set()
        with pytest.raises(PatternTooSlow):
            Allowance(0.3).matches(foreign("(a|aa)+$"), HOSTILE)

    thread = threading.Thread(target=look)
    thread.start()
    running.wait(10)
    turns = 0
    while thread.is_alive():
        thread.join(0.005)
        turns += 1
    assert turns > 12, "less than 8, where others wait for each try"


@cases(
    "pattern", ["(", "a" * 10_001, "(" * 3_000 + ")" * 3_000, "a{99999999999}", "(?(9)a)", "\\N{no}", "(?Lz"]
)
def test_a_pattern_that_cannot_be_compiled_is_refused(pattern: str) -> None:
    with pytest.raises(PatternInvalid):
        foreign(pattern)


@given(st.text("ab()[]{}|*+?^$\\.,123:=!<>P#-&~ieLRVx"))
@settings(max_examples=examples(500))
def test_any_text_is_a_pattern_or_is_refused(text: str) -> None:
    assert Allowance(1).matches(foreign(re.escape(text)), f"before {text} behind")
    try:
        found = Allowance(1).matches(foreign(text), "ab\n")
    except (PatternInvalid, PatternTooSlow) as error:
        assert text[:10] in error.pattern  # noqa: PT017 - either is right
    else:
        assert found in {True, False}


@pytest.mark.timeout(30)
@cases("pattern", ["a" * 15 + "b", "[a][a][a][a]b", "[^b].[^b].[^b].b", ".......[c]", ".$", "^a"])
def test_a_pattern_that_repeats_nothing_needs_no_limit(pattern: str) -> None:
    for text in ("a" * 4_000_000, "ab" * 2_000_000):
        compiled = foreign(pattern, lines=True)
        assert limits(compiled, text) == [None]
        assert len(compiled.findall(text)) <= 1


@cases("pattern", ["a+", "(a)", "a|b", "a{9}", "a?", "a*", r"\X", "(?:a){e<=1}", "a" * 17])
def test_any_other_pattern_has_a_limit(pattern: str) -> None:
    assert all(limits(foreign(pattern), "a"))


def limits(pattern: engine.Pattern[str], text: str, stopped: int = 0) -> list[float | None]:
    """The seconds that each try is given, of which the first ones are stopped."""
    given: list[float | None] = []

    def match(*, timeout: float | None, concurrent: bool | None) -> None:
        given.append(timeout)
        assert concurrent is None or timeout is not None
        if len(given) <= stopped:
            raise TimeoutError

    Allowance().run(pattern, text, match)
    return given


def test_a_match_that_other_threads_took_the_time_of_is_tried_again_three_times() -> None:
    """What is stopped at once has taken no time of its own."""
    first, *again, more = limits(foreign("a+"), "a" * 100_000, stopped=4)
    assert again == [first] * 3
    assert more is not None
    assert first is not None
    assert more > first


def test_a_match_that_is_stopped_whatever_time_it_is_given_is_refused() -> None:
    with pytest.raises(PatternTooSlow):
        limits(foreign("a+"), "a", stopped=1_000)
