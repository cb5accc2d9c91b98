"""The words that are known: those of the program, and those that a vault adds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.capture import lexicon
from mdmem.capture.extract import extract
from mdmem.capture.lexicon import LANGUAGES, MOST_BYTES, MOST_PHRASES, PATH, builtin, extended, tokens

EXAMPLES = int(os.environ.get("MDMEM_TEST_EXAMPLES", "200")) // 2
FOLDER = Path(lexicon.__file__).parent


def broken(text: str) -> str:
    """What is wrong with a lexicon, and that the built-in one is used in its place."""
    words, problem = extended(text)
    assert words is builtin()
    assert problem is not None
    assert (problem.path, problem.code, problem.severity) == (PATH, "lexicon", "warning")
    assert "\n" not in problem.message
    return problem.message


def test_a_vault_adds_words_tags_and_keys() -> None:
    words, problem = extended(
        """
        [style]
        cues = ["pirate speech"]
        [[constraint.pairs]]
        first = ["thou"]
        then = ["shalt not"]
        reach = 2
        [[keys]]
        category = "ui"
        key = "density"
        [keys.values]
        compact = ["tight rows"]
        [tags]
        sailing = ["ship", "mast"]
        """
    )
    assert problem is None
    found = extract("Pirate speech!\n\nThou shalt not touch the mast.\n\nI prefer tight rows.", lexicon=words)
    assert [(each.kind, each.key, each.value) for each in found] == [
        ("style", "", "Pirate speech!"),
        ("constraint", "", "Thou shalt not touch the mast."),
        ("preference", "density", "compact"),
    ]
    assert found[1].tags == ("sailing",)
    assert extract("I prefer dark mode.", lexicon=words) == extract("I prefer dark mode.")


def test_words_of_a_vault_are_of_every_language() -> None:
    words, _ = extended('[style]\ncues = ["海盗话"]')
    assert [each.kind for each in extract("说海盗话！", language="en", lexicon=words)] == ["style"]


def test_an_empty_lexicon_changes_nothing() -> None:
    words, problem = extended("")
    assert problem is None
    assert words == builtin()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[style", "it is no TOML"),
        ("a = 1\na = 2", "it is no TOML"),
        ("x = " + "9" * 5_000, "it is no TOML"),
        ("x = " + "[" * 5_000, "nested too deep"),
        ("[wishes]", "[wishes]: there is no such table"),
        ("style = 1", "style: it is not a table"),
        ("[style]\nwords = []", "[style] words: there is no such list"),
        ("[style]\ncues = 1", "[style] cues: it is not a list of phrases"),
        ('[style]\ncues = ["fine", 1]', "[style] cues, entry 2: a phrase has 1 to 10 words"),
        ('[style]\ncues = ["?!"]', "entry 1: a phrase has 1 to 10 words"),
        (f'[style]\ncues = ["{"x" * 61}"]', "60 characters at most"),
        ("[style]\npairs = 1", "[[style.pairs]]: it is not a list of tables"),
        ('[[style.pairs]]\nfirst = ["a"]', "[[style.pairs]] 1: it has the lists first and then"),
        ('[[style.pairs]]\nfirst = ["a"]\nthen = ["b"]\nreach = 31', "reach is a number from 1 to 30"),
        ('[[style.pairs]]\nfirst = ["a"]\nthen = ["b"]\nreach = true', "reach is a number"),
        ("[keys]\na = 1", "[[keys]]: it is not a list of tables"),
        ("keys = [1]", "[[keys]] 1: it is not a table"),
        ('[[keys]]\nkey = "a"', "it has category, key, values"),
        ('[[keys]]\ncategory = "../a"\nkey = "b"\n[keys.values]', "category: a name has small letters"),
        ('[[keys]]\ncategory = "a"\nkey = "b"\nvalues = 1', "values: it is not a table"),
        ('[tags]\n"#A b" = ["c"]', "a name has small letters"),
        ("[words]\ncues = []", "[words] cues: there is no such list"),
        (f'[style]\ncues = ["{"a " * 11}"]', "1 to 10 words"),
        ('[[keys]]\ncategory = "a"\nkey = "b"\nvalues = {"c\\u202e" = []}', "a value is one line"),
        ("\n".join(f'tags.t{number} = ["a"]' for number in range(3)), "'a' tells more than 2 things"),
    ],
)
def test_a_broken_lexicon_is_named_with_its_place(text: str, message: str) -> None:
    assert message in broken(text)


def test_the_line_of_broken_toml_is_named() -> None:
    _, problem = extended('[style]\ncues = ["a"]\ncues = ?')
    assert problem is not None
    assert problem.position.line == 3


def test_a_lexicon_of_a_vault_is_bounded_in_size_and_number() -> None:
    assert f"not at most {MOST_BYTES:,}" in broken("#" * (MOST_BYTES + 1))
    many = ", ".join(f'"w{number}"' for number in range(MOST_PHRASES + 1))
    assert "more than 2,000 phrases" in broken(f"[style]\ncues = [{many}]")


def test_a_message_shows_what_a_stranger_wrote_in_one_bounded_line() -> None:
    assert len(broken(f'["{"a" * 9_000}"]')) < 400
    assert "<U+202E>" in broken('["\\u202e\\n"]')


@settings(max_examples=EXAMPLES)
@given(
    st.recursive(
        st.text(max_size=8) | st.integers(),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    st.sampled_from(("style", "words", "keys", "tags", "other")),
    st.sampled_from(("cues", "pairs", "first", "values", "idle")),
)
def test_whatever_a_lexicon_holds_it_is_read_or_named(value: object, table: str, name: str) -> None:
    written = repr(value).replace("'", '"')
    words, problem = extended(f"[{table}]\n{name} = {written}")
    assert (words is builtin()) == (problem is not None)


@settings(max_examples=EXAMPLES)
@given(st.text(max_size=200))
@example("[[[")
def test_whatever_stands_in_a_lexicon_it_is_read_or_named(text: str) -> None:
    words, problem = extended(text)
    assert (words is builtin()) == (problem is not None)


def test_a_hostile_lexicon_makes_no_text_take_long() -> None:
    """Phrases within phrases, each telling all that it may, where a process may take 30 seconds."""
    tags = {f"t{number}": ["a " * length for length in range(1, 11)] for number in range(2)}
    words = "\n".join(f"tags.{name} = {json.dumps(listed)}" for name, listed in tags.items())
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n"
        "from mdmem.capture.extract import extract\n"
        "from mdmem.capture.lexicon import extended\n"
        "words, problem = extended(sys.stdin.read())\n"
        "assert problem is None\n"
        "extract('a ' * 500_000, lexicon=words)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], input=words, text=True, check=False)
    assert ran.returncode == 0


# -- what comes with the program --------------------------------------------------------------------------


def phrases(value: object) -> list[str]:
    """All phrases below a value of a lexicon."""
    if isinstance(value, dict):
        return [each for inner in value.values() for each in phrases(inner)]
    if isinstance(value, list):
        return [each for inner in value for each in ([inner] if isinstance(inner, str) else phrases(inner))]
    return []


@pytest.mark.parametrize("language", LANGUAGES)
def test_built_in_words_are_words_and_no_patterns(language: str) -> None:
    found = phrases(tomllib.loads((FOLDER / f"{language}.toml").read_text("utf-8")))
    assert len(found) > 500
    for phrase in found:
        assert not set(phrase) & set("\\^$*+?[](){}|"), phrase
        assert phrase == phrase.lower() == phrase.strip()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_list_names_a_phrase_twice(language: str) -> None:
    def walk(value: object, place: str) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, f"{place}.{name}")
        elif isinstance(value, list):
            texts = [each for each in value if isinstance(each, str)]
            twice = sorted({each for each in texts if texts.count(each) > 1})
            assert twice == [], place
            for inner in value:
                walk(inner, place)

    walk(tomllib.loads((FOLDER / f"{language}.toml").read_text("utf-8")), language)


def test_words_are_small_with_plain_apostrophes_and_han_one_by_one() -> None:
    text = "DON\u2019T use Über-pip 不要 v1.2 _x_"
    found = tokens(text, 0, len(text))
    assert [each.word for each in found] == ["don't", "use", "über", "pip", "不", "要", "v1", "2", "_x_"]
    assert all(text[each.start : each.end].casefold().replace("\u2019", "'") == each.word for each in found)
