"""The target of a command line: what is read without click is what click reads."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from mdmem.cli.app import app
from mdmem.cli.target import ENVIRONMENT, Plain, Target, plain

WORDS = (
    "--vault",
    "--user",
    "--project",
    "--resource",
    "--actor",
    "--shared",
    "hook",
    "stop",
    "a b",
    "",
    "-",
)
OTHERS = ("--", "--help", "-h", "--vault=v", "--vau", "--version", "--json", "-x", "ü", "\udcff")


def read_by_click(arguments: list[str]) -> Plain:
    with app.make_context("mdmem", arguments.copy()) as context:
        return Plain(Target(**context.params), (*context._protected_args, *context.args))


@given(
    st.lists(st.sampled_from(WORDS) | st.sampled_from(OTHERS), max_size=8),
    st.dictionaries(
        st.sampled_from(sorted(ENVIRONMENT.values())), st.sampled_from(("", "e", "f g")), max_size=4
    ),
)
@example(["--vault", "/v", "--user", "al", "--shared", "hook", "post-edit"], {})
@example(["--user", "--shared", "hook", "stop"], {"MDMEM_USER": "e", "MDMEM_ACTOR": "f g"})
def test_what_is_plain_means_what_click_says(arguments: list[str], environment: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ENVIRONMENT.values():
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        found = plain(arguments)
        if found is not None:
            assert found == read_by_click(arguments)


def test_what_install_writes_is_plain() -> None:
    options = ["--vault", "/v", "--user", "al", "--project", "p", "--resource", "ticket/7", "--shared"]
    found = plain([*options, "hook", "post-edit"])
    assert found
    assert found.target[:5] == ("/v", "al", "p", "ticket/7", True)
    assert found.command == ("hook", "post-edit")


@pytest.mark.parametrize(
    "arguments", [[], ["--vault"], ["--vault=v", "ls"], ["-h"], ["--", "ls"], ["--json", "ls"]]
)
def test_anything_else_is_left_to_click(arguments: list[str]) -> None:
    assert plain(arguments) is None
