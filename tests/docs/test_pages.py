"""What the documents say stands somewhere, stands there."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml

from mdmem.cli.main import app
from tests.tables import cases

CHECKOUT = Path(__file__).parents[2]
sys.path.append(str(CHECKOUT / "bench"))

import examples  # noqa: E402 - it is where programs that measure are
import rooms  # noqa: E402 - as above

DOCUMENTS = ("AGENTS.md", "docs/contributing.md")
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
    text = (CHECKOUT / "docs/contributing.md").read_text()
    pairs = re.findall(r"`([A-Z]\w+)(?:\.(\w+))?` \(`(mdmem[\w.]+)`", text)
    assert len(pairs) > 8
    for name, method, module in pairs:
        found = getattr(importlib.import_module(module), name)
        assert not method or hasattr(found, method), (name, method)


def test_the_picture_of_the_rooms_is_drawn_from_the_imports() -> None:
    assert rooms.PICTURE.read_text() == rooms.draw_rooms()
    assert all(
        order.index(room) < order.index(other)
        for order in [[*rooms.ROOMS]]
        for room, other in rooms.count_imports()
        if (room, other) != ("facade", "editor")
    )


def test_every_picture_has_a_text_in_its_place_and_asks_no_other_host() -> None:
    for page in (CHECKOUT / "docs").glob("*.md"):
        for text, name in re.findall(r"!\[(.*?)\]\(([^)]+)\)", page.read_text()):
            picture = CHECKOUT / "docs" / name
            assert text, (page.name, name)
            assert picture.is_file(), (page.name, name)
            if picture.suffix == ".svg":
                assert not re.search(r"https?://(?!www\.w3\.org/)", picture.read_text())


def test_the_table_of_dependencies_is_complete() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = [each for given in project["optional-dependencies"].values() for each in given]
    wanted = {re.split(r"[<>=\[]", each)[0] for each in [*project["dependencies"], *extras]}
    text = (CHECKOUT / "docs/contributing.md").read_text().partition("## What it depends on")[2]
    named = " ".join(re.findall(r"^\| ([^|]+)", text, re.MULTILINE))
    missing = [name for name in wanted if not re.search(rf"\b{name}\b", named)]
    assert [name for name in missing if not name.startswith("tree-sitter-")] == []


# ------------------------------------------------------------- docs/git.md, with its forms in docs/formats.md

GIT = "".join((CHECKOUT / f"docs/{name}.md").read_text() for name in ("git", "formats"))


class Reviewed(NamedTuple):
    """A repository with a vault, in which two commits made a memory."""

    place: examples.Place

    @property
    def root(self) -> Path:
        return self.place.folder

    def run(self, script: str, **settings: str) -> str:
        """What a script prints."""
        exported = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())
        printed = self.place.run(f"{exported}set -e\n{script}" if exported else script)
        assert self.place.code == 0, (script, printed)
        return printed

    def state(self) -> dict[str, bytes]:
        files = [*self.root.glob("*"), self.root / ".gitattributes", self.root / ".git/config"]
        return {str(file): file.read_bytes() for file in files if file.is_file()}


@pytest.fixture
def reviewed(tmp_path: Path) -> Reviewed:
    made = Reviewed(examples.Place(tmp_path / "ada"))
    made.run("git init --quiet")
    made.run("mdmem init")
    made.run('mdmem notes append db "The database is one file. @everyone" --title Decision')
    made.run("git add --all && git commit --quiet --message one")
    made.run('mdmem replace notes/db.md "one file" "a single file"')
    made.run('mdmem notes append db "- <b>x</b>" --title More')
    made.run("git add --all && git commit --quiet --message two")
    return made


def shown(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GIT, re.MULTILINE | re.DOTALL)


def test_what_only_looks_leaves_no_trace(reviewed: Reviewed) -> None:
    before = reviewed.state()
    for line in (
        "git diff HEAD~1..HEAD",
        "git log notes/db.md",
        "git blame -v notes/db.md",
        "git install --dry-run",
    ):
        assert f"mdmem {line.split()[0]} {line.split()[1]}" in GIT
        assert reviewed.run(f"mdmem {line}")
    assert reviewed.state() == before


def unknown(line: str) -> str:
    """What a command line names that is not there; empty where all of it is."""
    context = click.Context(app, info_name="mdmem")
    words = re.split(r"\s+", line)[1:]
    while words:
        word = words.pop(0).partition("=")[0]
        if word.startswith("-"):
            known = {
                name: each for each in context.command.params for name in each.opts + each.secondary_opts
            }
            if word not in {*known, "--help", "--json", "-h"}:
                return f"{context.command_path} {word}"
            if isinstance(option := known.get(word), click.Option) and not option.is_flag and words:
                words.pop(0)
        elif isinstance(context.command, click.Group):
            found = context.command.get_command(context, word)
            if found is None:
                return "" if word.isupper() or word == "…" else f"{context.command_path} {word}"
            context = click.Context(found, info_name=word, parent=context)
    return ""


@cases("page", sorted((CHECKOUT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_command_and_option_that_a_page_names_is_there(page: Path) -> None:
    """Also in its prose, and in blocks that are not run."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(mdmem [^`\n]+)`", prose)
    for language, text in blocks:
        if language == "sh":
            named += re.findall(r"^(mdmem .+?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert [each for line in named if (each := unknown(line))] == []


def test_the_hooks_of_the_page_are_those_of_the_repository() -> None:
    config = yaml.safe_load(shown("yaml")[0])
    offered = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in config["repos"][0]["hooks"]] == [hook["id"] for hook in offered]


def workflow() -> Any:
    # YAML 1.1 reads the key as true.
    return yaml.safe_load(shown("yaml")[1].replace("\non:", '\n"on":'))


def test_the_workflow_gives_nobody_else_a_token() -> None:
    """What reads the pull request may write nothing; what may write reads nothing of it but the text."""
    found = workflow()
    assert found["on"].keys() == {"pull_request"}
    assert found["permissions"] == {}
    for job in found["jobs"].values():
        used = [step.get("uses", "") for step in job["steps"]]
        reads = any(each.startswith("actions/checkout") for each in used)
        writes = [name for name, value in job["permissions"].items() if value == "write"]
        assert not (reads and writes)
        for step in job["steps"]:
            # What is put into a script by its place in the text could end it.
            assert "${{" not in step.get("run", "")
            assert ("GH_TOKEN" in step.get("env", {})) <= (not reads)
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False


def test_the_workflow_shows_facts_and_renders_nothing(reviewed: Reviewed, tmp_path: Path) -> None:
    steps = {step.get("name"): step for step in workflow()["jobs"]["diff"]["steps"]}
    base, head = reviewed.run("git rev-parse HEAD~1 HEAD").split()
    summary = tmp_path / "summary"
    reviewed.run(steps["diff"]["run"], BASE=base, HEAD=head, GITHUB_STEP_SUMMARY=str(summary))
    title, blank, *lines = summary.read_text().splitlines()
    assert (title, blank) == ("What this changes in the memories:", "")
    assert any("single" in line for line in lines)
    assert any("@everyone" in line for line in lines)
    assert all(line.startswith("    ") for line in lines)
    assert (reviewed.root / "body.md").read_text() == summary.read_text()
    reviewed.run(steps["check"]["run"])
