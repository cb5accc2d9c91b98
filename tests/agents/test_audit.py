"""The comparison of tools says what differs, what is cut or dead, and what it costs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mdmem.agents import audit as audits
from mdmem.agents.audit import Advice, Audit, audit
from mdmem.agents.files import Places
from mdmem.agents.tools import TOOLS
from mdmem.text import tokens

LONG = "One paragraph that is long enough not to be the same by chance, whoever wrote it."


def audited(tmp_path: Path, tree: dict[str, str]) -> Audit:
    top = Path(os.path.realpath(tmp_path))
    for folder in ("home", "managed", "repo"):
        (top / folder).mkdir(exist_ok=True)
    for name, text in tree.items():
        file = top / ("home" if name.startswith("~/") else "repo") / name.removeprefix("~/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    places = Places(
        workspace=str(top / "repo"), home=str(top / "home"), managed=str(top / "managed"), top=str(top)
    )
    return audit(places, Advice())


def found(result: Audit, code: str) -> list[tuple[str, str]]:
    return [(finding.path, finding.message) for finding in result.findings if finding.code == code]


def test_an_empty_workspace_costs_nothing_and_has_no_findings(tmp_path: Path) -> None:
    result = audited(tmp_path, {})
    assert result.findings == ()
    assert {(cost.tool, cost.tokens, cost.files) for cost in result.costs} == {(tool, 0, 0) for tool in TOOLS}


def test_a_file_that_only_some_tools_read_is_named_with_those_that_do_not(tmp_path: Path) -> None:
    result = audited(tmp_path, {"AGENTS.md": "agents\n", "CLAUDE.md": "claude\n"})
    assert found(result, "seen-by-some") == [
        ("AGENTS.md", "read by codex, cursor, copilot, agents; not by claude, gemini"),
        ("CLAUDE.md", "read by claude; not by codex, cursor, copilot, gemini, agents"),
    ]


def test_a_copy_counts_as_read(tmp_path: Path) -> None:
    result = audited(tmp_path, {"AGENTS.md": "same\n", "CLAUDE.md": "same\n", "GEMINI.md": "same\n"})
    assert found(result, "seen-by-some") == []


def test_what_the_user_has_for_one_tool_is_nobody_elses_business(tmp_path: Path) -> None:
    assert audited(tmp_path, {"~/.codex/AGENTS.md": "mine\n", "CLAUDE.local.md": "mine\n"}).findings == ()


def test_a_nested_file_is_looked_at_through_a_file_of_its_folder(tmp_path: Path) -> None:
    result = audited(tmp_path, {"src/GEMINI.md": "nested\n", "src/a.py": ""})
    assert found(result, "seen-by-some") == [
        ("src/GEMINI.md", "read by gemini; not by codex, claude, cursor, copilot, agents")
    ]
    costs = {cost.tool: cost for cost in result.costs}
    assert (costs["gemini"].file, costs["gemini"].tokens) == ("src/a.py", tokens.estimate("nested"))
    assert costs["codex"].tokens == 0


def test_what_is_cut_is_told_with_the_limit(tmp_path: Path) -> None:
    result = audited(tmp_path, {"AGENTS.md": "x" * 40_000})
    assert found(result, "instructions-cut") == [
        ("AGENTS.md", "codex keeps 32,768 of 40,000 bytes: 32,768 bytes in all"),
        ("AGENTS.md", "copilot-code-review keeps 4,000 of 40,000 bytes: 4,000 characters a file"),
    ]


def test_a_file_that_is_skipped_for_its_size_is_told(tmp_path: Path) -> None:
    result = audited(tmp_path, {"CLAUDE.md": "x\n" * 2_100_000})
    assert ("CLAUDE.md", "claude keeps 0 of 4,200,000 bytes: 4 MiB") in found(result, "instructions-cut")


def test_a_glob_that_fits_no_file_is_dead(tmp_path: Path) -> None:
    rules = {
        ".cursor/rules/a.mdc": "---\nglobs: *.rb, *.py\n---\na\n",
        ".claude/rules/b.md": "---\npaths: ['lib/**']\n---\nb\n",
        ".github/instructions/c.instructions.md": "---\napplyTo: '*.py'\n---\nc\n",
        "web/.cursor/rules/d.mdc": "---\nglobs: src/*.ts, lib/*.ts\n---\nd\n",
    }
    result = audited(tmp_path, {**rules, "src/a.py": "", "web/src/a.ts": ""})
    assert found(result, "glob-dead") == [
        (".claude/rules/b.md", "no file of the workspace fits 'lib/**'"),
        (".cursor/rules/a.mdc", "no file of the workspace fits '*.rb'"),
        (".github/instructions/c.instructions.md", "no file of the workspace fits '*.py'"),
        ("web/.cursor/rules/d.mdc", "no file of the workspace fits 'lib/*.ts'"),
    ]


def test_imports_that_fail_and_links_that_leave_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/AGENTS.md").symlink_to("/etc/hostname")
    result = audited(tmp_path, {"CLAUDE.md": "@docs/gone.md\n", "src/CLAUDE.md": "x\n"})
    assert [(f.code, f.path) for f in result.findings if f.code != "seen-by-some"] == [
        ("link-leaves", "AGENTS.md"),
        ("import-fails", "CLAUDE.md"),
    ]


def test_paragraphs_that_a_tool_reads_twice_are_told_with_their_cost(tmp_path: Path) -> None:
    result = audited(
        tmp_path,
        {"AGENTS.md": f"# A\n\n{LONG}\n", ".github/copilot-instructions.md": f"{LONG}\r\n\r\nmore\n"},
    )
    twice = [finding for finding in result.findings if finding.code == "instructions-twice"]
    assert [finding.path for finding in twice] == ["AGENTS.md"]
    assert ".github/copilot-instructions.md" in twice[0].message
    assert f"{tokens.estimate(LONG)} tokens" in twice[0].hint


def test_a_file_with_more_lines_than_a_tool_advises_is_long(tmp_path: Path) -> None:
    (tmp_path / "short").mkdir()
    short = audited(tmp_path / "short", {"CLAUDE.md": "x\n" * 199})
    assert found(short, "instructions-long") == []
    result = audited(tmp_path, {"CLAUDE.md": "x\n" * 200})
    assert found(result, "instructions-long") == [
        ("CLAUDE.md", "200 lines; claude follows less than 200 best")
    ]


def test_what_git_ignores_brings_no_rule_to_life(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    tree = {".gitignore": "out/\n", "out/a.rb": "", ".cursor/rules/a.mdc": "---\nglobs: *.rb\n---\na\n"}
    assert found(audited(tmp_path, tree), "glob-dead")


def test_without_git_what_programs_make_is_passed_over(tmp_path: Path) -> None:
    tree = {"node_modules/x/AGENTS.md": "x\n", "a/b.py": ""}
    assert audited(tmp_path, tree).findings == ()
    assert audits._files(str(tmp_path / "repo")) == ["a/b.py"]


def test_the_cost_is_that_of_the_dearest_file(tmp_path: Path) -> None:
    tree = {
        "AGENTS.md": "root\n",
        ".cursor/rules/py.mdc": f"---\nglobs: *.py\n---\n{LONG}\n",
        "a.md": "",
        "b.py": "",
    }
    cost = next(cost for cost in audited(tmp_path, tree).costs if cost.tool == "cursor")
    assert (cost.file, cost.files, cost.tokens) == ("b.py", 2, tokens.estimate(f"{LONG}\n\nroot"))


@pytest.mark.parametrize("name", ["AGENTS.md", ".cursor/rules/a.mdc", ".claude/rules/a.md"])
def test_no_bytes_of_a_file_make_it_fail(name: str, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    file = tmp_path / "repo" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"---\nglobs: \xff*\n---\n\x00\xfe@\xff\n```\n" * 3)
    assert len(audited(tmp_path, {}).costs) == len(TOOLS)


def test_a_long_run_of_blanks_parts_paragraphs_in_no_endless_search() -> None:
    assert len(audits._PARAGRAPHS.split("a" + " " * 400_000 + "\n  \nb" + " \t" * 200_000)) == 2
