"""The README: each of its claims has a test that shows it.

A test that shows a claim quotes how the sentence begins, in a comment: `# README: Delete the index …`.
What only a fresh checkout can show is shown by `.ci/run`, which quotes it as well. Its examples are run with
those of the pages; see `test_examples.py`.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text()
TESTS = CHECKOUT / "tests"
MOST_LINES = 150
# Sentences that claim nothing that a test could show: they compare with others, or say where to look.
NO_CLAIMS = (
    *("![", "**More than a `CLAUDE.md` and ripgrep.**", "mdmem is not released yet:", "[Connect a host]"),
    *("It is measured:", "It is tested on Linux;"),
)


def prose() -> Iterator[str]:
    """The sentences of the README, without code and headings."""
    text = re.sub(r"(?ms)^(````?)\w*$.*?^\1$|^#+ .*?$", "", README)
    for line in text.splitlines():
        yield from re.split(r"(?<=[.!?:])\s+(?=[A-Z`*(])", line.strip().removeprefix("- "))


@cache
def quoted() -> dict[str, str]:
    """What comments of tests quote of the README, and in which file."""
    found = {}
    for file in (CHECKOUT / ".ci/run", *sorted(TESTS.rglob("*.py"))):
        for quote in re.findall(r"(?m)^ *# README: (.*?)(?: ?…)?$", file.read_text()):
            found[quote] = file.name
    return found


def test_it_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) <= MOST_LINES


# README: mdmem keeps what an agent knows in plain Markdown and JSON files …
# README: It adds what a growing pile of them lacks: …
# README: In a repository of yours, three commands make a vault …
def test_every_claim_is_shown_by_a_test() -> None:
    claims = [each for each in prose() if each and not each.startswith(NO_CLAIMS)]
    assert len(claims) > 10
    assert [each for each in claims if not any(map(each.startswith, quoted()))] == []


def test_what_tests_quote_stands_in_the_readme() -> None:
    sentences = list(prose())
    assert [quote for quote in quoted() if not any(each.startswith(quote) for each in sentences)] == []


# README: It needs Python 3.11 or newer, and git.
def test_the_version_of_python_is_the_one_that_is_asked_for() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"


def test_the_files_that_it_points_at_are_there() -> None:
    named = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert {"docs/index.md", "CHANGELOG.md", "LICENSE", "bench/README.md"} <= set(named)
    assert [name for name in named if not (CHECKOUT / name).is_file()] == []
