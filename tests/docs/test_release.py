"""What a release is made of: one address of the repository, one version, a README that links there."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import mdmem

CHECKOUT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
ADDRESS = PYPROJECT["project"]["urls"]["Repository"]
MANIFEST = json.loads((CHECKOUT / "editors/vscode/package.json").read_text())
# What has the address, and is changed where it is a placeholder: docs/contributing.md names the same four.
PLACES = ("README.md", "SECURITY.md", "editors/vscode/package.json", "pyproject.toml")
RELEASE = (
    (CHECKOUT / "docs/contributing.md")
    .read_text()
    .partition("\n## Make a release\n")[2]
    .partition("\n## ")[0]
)


def test_there_is_one_address() -> None:
    assert PYPROJECT["project"]["urls"].keys() == {"Repository"}
    assert MANIFEST["repository"]["url"] == ADDRESS
    for place in PLACES:
        text = (CHECKOUT / place).read_text()
        assert ADDRESS in text
        assert len(re.findall(re.escape(ADDRESS), text)) == text.count(ADDRESS.split("/")[2]), place
        assert f"`{place}`" in RELEASE


def test_the_address_stands_nowhere_else() -> None:
    found = subprocess.run(
        ["git", "grep", "--files-with-matches", "--fixed-strings", ADDRESS.split("/")[2]],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {*found.stdout.split()} == {*PLACES, "docs/contributing.md"}


def test_the_links_of_the_readme_lead_to_the_repository_wherever_it_is_shown() -> None:
    text = (CHECKOUT / "README.md").read_text()
    for each in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 10
    assert [each for each in targets if not each.startswith("https://")] == []
    assert f"]({ADDRESS}/raw/main/docs/terminal.svg)" in text
    assert f"]({ADDRESS}/blob/main/SECURITY.md)" in text


def test_there_is_one_version() -> None:
    assert MANIFEST["version"] == mdmem.__version__
    assert f"## [{mdmem.__version__}" in (CHECKOUT / "CHANGELOG.md").read_text()
