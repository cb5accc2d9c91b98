"""What the extension for VS Code declares, and what docs/editors.md says of it; `make editors` runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.editors.installed import read_settings

CHECKOUT = Path(__file__).parents[2]
EXTENSION = CHECKOUT / "editors/vscode"
PAGE = (CHECKOUT / "docs/editors.md").read_text()
MOST_LINES = 1200


def read_manifest() -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text())
    return manifest


def test_it_is_small() -> None:
    sources = [*EXTENSION.glob("src/*.ts"), *EXTENSION.glob("test/*.ts")]
    assert sum(len(file.read_text().splitlines()) for file in sources) <= MOST_LINES


def test_it_is_active_with_a_vault_alone() -> None:
    assert read_manifest()["activationEvents"] == ["workspaceContains:**/.mdmem/config.toml"]


def test_no_workspace_says_which_program_is_started() -> None:
    manifest = read_manifest()
    settings = manifest["contributes"]["configuration"]["properties"]
    assert {name: each["scope"] for name, each in settings.items()} == {"mdmem.path": "machine"}
    assert manifest["capabilities"]["untrustedWorkspaces"]["supported"] == "limited"


def test_the_packages_that_it_is_built_from_are_pinned_without_an_address() -> None:
    manifest, text = read_manifest(), (EXTENSION / "package-lock.json").read_text()
    lock = json.loads(text)
    assert "dependencies" not in manifest
    assert lock["packages"][""]["devDependencies"] == manifest["devDependencies"]
    assert all(re.fullmatch(r"[\d.]+", version) for version in manifest["devDependencies"].values())
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert [name for name, each in packages.items() if "resolved" in each or "integrity" not in each] == []


@pytest.mark.parametrize("page", ["docs/editors.md", "editors/vscode/README.md"])
def test_the_commands_and_settings_that_are_named_are_declared(page: str) -> None:
    text, contributes = (CHECKOUT / page).read_text(), read_manifest()["contributes"]
    titles = {each["title"].rstrip("…") for each in contributes["commands"]}
    assert [title for title in titles if f"*{title}*" not in text] == []
    assert set(re.findall(r"`(mdmem\.[a-z]+)`", text)) == {*contributes["configuration"]["properties"]}


@pytest.mark.parametrize(("editor", "language"), [("Neovim", "lua"), ("Emacs", "elisp"), ("Helix", "toml")])
def test_the_page_has_the_settings_that_make_editors_loads(editor: str, language: str) -> None:
    section = PAGE.partition(f"\n## {editor}\n")[2].partition("\n## ")[0]
    assert "mdmem" in read_settings(editor, language)
    assert "What it lacks: " in section
    assert "What it lacks: " in PAGE.partition("\n## VS Code\n")[2].partition("\n## ")[0]
