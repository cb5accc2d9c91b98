"""What the documents say stands somewhere, stands there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = ("AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md")
# What a recipe adds.
NEW = {"schemas/recipe.json", "templates/recipe.md", "tests/memory/test_recipe.py"}


def quoted(document: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", (CHECKOUT / document).read_text())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_and_module_that_is_named_is_there(document: str) -> None:
    paths = [each for each in quoted(document) if re.fullmatch(r"(?:mdmem|tests|docs|bench)/[\w./]*", each)]
    modules = [each for each in quoted(document) if re.fullmatch(r"mdmem(?:\.[a-z_]+)+", each)]
    assert paths or modules
    assert [each for each in paths if each not in NEW and not (CHECKOUT / each).exists()] == []
    for module in modules:
        importlib.import_module(module)


def test_the_classes_of_the_walks_are_in_the_modules_beside_them() -> None:
    text = (CHECKOUT / "docs/architecture.md").read_text()
    pairs = re.findall(r"`([A-Z]\w+)(?:\.(\w+))?` \(`(mdmem[\w.]+)`", text)
    assert len(pairs) > 8
    for name, method, module in pairs:
        found = getattr(importlib.import_module(module), name)
        assert not method or hasattr(found, method), (name, method)
