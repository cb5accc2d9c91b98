"""What each tool reads, case by case: the cases are data, each with the sentence of the contract it shows."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.agents.files import Places
from mdmem.agents.tools import TOOLS, resolve
from mdmem.errors import Usage

DATA = Path(__file__).parents[1] / "data" / "instructions"
CASES: list[dict[str, Any]] = [
    case for file in sorted(DATA.glob("*.toml")) for case in tomllib.loads(file.read_text("utf-8"))["case"]
]


def places(top: Path) -> Places:
    for folder in ("home", "managed", "up/repo"):
        (top / folder).mkdir(parents=True, exist_ok=True)
    return Places(
        workspace=str(top / "up/repo"), home=str(top / "home"), managed=str(top / "managed"), top=str(top)
    )


def named(top: Path, text: str) -> str:
    """A text of a case, with the folders of this run."""
    project = re.sub("[^A-Za-z0-9]", "-", str(top / "up/repo"))
    return text.replace("<top>", str(top)).replace("<project>", project)


def place(top: Path, name: str) -> Path:
    for mark, folder in (("~/", "home"), ("<managed>/", "managed"), ("../", "up"), ("", "up/repo")):
        if name.startswith(mark):
            return top / folder / named(top, name.removeprefix(mark))
    raise AssertionError(name)


def grow(top: Path, case: dict[str, Any]) -> Places:
    """Make the tree of a case."""
    made = places(top)
    if case.get("git", True):
        (top / "up/repo/.git").mkdir()
    for name, text in case.get("tree", {}).items():
        file = place(top, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = named(top, text) if isinstance(text, str) else text["repeat"] * text["times"]
        file.write_bytes(content.encode())
    for name, target in case.get("links", {}).items():
        link = place(top, name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place(top, target))
    return made


def test_there_are_at_least_forty_cases_and_each_tool_has_some() -> None:
    assert len(CASES) >= 40
    assert {case["tool"] for case in CASES} == TOOLS.keys()
    assert len({case["name"] for case in CASES}) == len(CASES)
    assert all(case["says"] for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=[f"{case['tool']}: {case['name']}" for case in CASES])
# README: `mdmem project resolve --for src/app.py --tool codex` lists …
def test_a_tool_reads_what_its_contract_says(case: dict[str, Any], tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    resolved = resolve(case["for"], case["tool"], grow(top, case))
    managed = str(top / "managed")
    expected = [named(top, row.replace("<managed>", managed)) for row in case["files"]]
    rows = [
        " | ".join(filter(None, (found.path, found.reason, str(found.bytes_kept), found.limit)))
        for found in resolved.files
    ]
    any_size = [
        re.sub(r"\| \d+", "| *", row) if "| *" in want else row
        for row, want in zip(rows, expected, strict=False)
    ]
    assert any_size + rows[len(expected) :] == expected
    left_out = [f"{found.path} | {found.reason}" for found in resolved.left_out]
    assert left_out == [named(top, row) for row in case.get("left_out", [])]
    findings = [f"{f.code} {f.path}:{f.position.line}" for f in resolved.findings]
    assert findings == case.get("findings", [])
    if "text" in case:
        assert resolved.text == case["text"]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['tool']}: {case['name']}" for case in CASES])
def test_what_is_kept_is_the_text_and_no_more_than_the_file(case: dict[str, Any], tmp_path: Path) -> None:
    for tool in TOOLS:
        top = tmp_path / tool
        top.mkdir()
        for found in resolve(case["for"], tool, grow(top, case)).files:
            assert len(found.text.encode()) <= found.bytes_kept <= found.bytes
            assert found.tool == tool


def test_an_unknown_tool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Usage) as refused:
        resolve("a.py", "emacs", places(tmp_path))
    assert "codex" in refused.value.hint


@pytest.mark.parametrize("file", ["../a.py", "/etc/passwd", ".", "", "a\0b", "src/../../x", "\ud800.py"])
def test_a_file_outside_of_the_workspace_is_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(Usage):
        resolve(file, "codex", places(tmp_path))


def test_an_absolute_path_in_the_workspace_is_a_file_of_it(tmp_path: Path) -> None:
    made = places(tmp_path)
    assert resolve(f"{made.workspace}/src/a.py", "codex", made).file == "src/a.py"


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    made = places(tmp_path)
    os.mkfifo(os.path.join(made.workspace, "AGENTS.md"))
    assert resolve("a.py", "codex", made).files == ()


def test_a_folder_of_rules_that_holds_itself_is_read_once(tmp_path: Path) -> None:
    made = places(tmp_path)
    rules = Path(made.workspace, ".cursor/rules")
    rules.mkdir(parents=True)
    (rules / "a.mdc").write_text("---\nalwaysApply: true\n---\na\n")
    (rules / "again").symlink_to(rules)
    assert [found.path for found in resolve("a.py", "cursor", made).files] == [".cursor/rules/a.mdc"]


def test_links_that_lead_in_a_circle_are_told(tmp_path: Path) -> None:
    made = places(tmp_path)
    rules = Path(made.workspace, ".cursor/rules")
    rules.mkdir(parents=True)
    (rules / "a.mdc").symlink_to("a.mdc")
    Path(made.workspace, ".claude").mkdir()
    Path(made.workspace, ".claude/rules").symlink_to("rules")
    assert [(f.code, f.path) for f in resolve("a.py", "cursor", made).findings] == [
        ("unreadable", ".cursor/rules/a.mdc")
    ]
    assert [(f.code, f.path) for f in resolve("a.py", "claude", made).findings] == [
        ("unreadable", ".claude/rules")
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"caf\xe9.mdc", "caf\\xe9.mdc"), (b"a\x1b[31m.mdc", "a\\x1b[31m.mdc"), (b"\xc3\xa9.mdc", "é.mdc")],
)
def test_every_name_can_be_printed(name: bytes, shown: str, tmp_path: Path) -> None:
    made = places(tmp_path)
    rules = os.path.join(made.workspace, ".cursor/rules").encode()
    os.makedirs(rules)
    with open(os.path.join(rules, name), "wb") as file:
        file.write(b"---\nalwaysApply: true\n---\na\n")
    resolved = resolve(os.fsdecode(b"\xff.py"), "cursor", made)
    assert resolved.file == "\\xff.py"
    assert [found.path for found in resolved.files] == [f".cursor/rules/{shown}"]
    assert resolved.text == "a"


@pytest.mark.parametrize("file", ["a" * 5000, "a/" * 900 + "b", "a\nb/c.py"])
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_no_name_of_a_file_makes_it_fail(file: str, tool: str, tmp_path: Path) -> None:
    made = places(tmp_path)
    Path(made.workspace, "CLAUDE.md").write_text("root\n")
    resolved = resolve(file, tool, made)
    assert [found.path for found in resolved.files] == (
        ["CLAUDE.md"] if tool.startswith(("claude", "copilot")) else []
    )


NAMES = st.sampled_from(
    [
        *("AGENTS.md", "AGENTS.override.md", "src/AGENTS.md", "CLAUDE.md", "CLAUDE.local.md"),
        *(".claude/CLAUDE.md", "src/CLAUDE.md", "GEMINI.md", "src/GEMINI.md", ".cursorrules"),
        *(".cursor/rules/a.mdc", ".cursor/rules/b.md", ".claude/rules/a.md", "docs/a.md", "../CLAUDE.md"),
        *(".github/copilot-instructions.md", ".github/instructions/a.instructions.md"),
        *("<managed>/CLAUDE.md", "~/.codex/AGENTS.md", "~/.codex/config.toml", "~/.gemini/settings.json"),
        *("~/.claude/settings.json", "~/.claude/CLAUDE.md", "~/.claude/rules/a.md"),
    ]
)
PIECES = st.sampled_from(
    [
        *("---\n", "globs: *.py\n", "globs: ['a', {b: [}\n", "paths:\n  - **/*.{py,md}\n", "paths: '[a'\n"),
        *("applyTo: '**'\n", "alwaysApply: true\n", "- x\n", "{a,{b,c}}", "@AGENTS.md\n", "@docs/a.md "),
        *("@~/.claude/CLAUDE.md\n", "@../CLAUDE.md\n", "@/\n", "@\\ \n", "@a\x00b\n", "```\n", "`", "<!--"),
        *("-->\n", "\r\n", "\ufeff", "text é 😀\n", '{"context": {"fileName": [1, "AGENTS.md"]}}'),
        *('{"claudeMdExcludes": ["**/src/*", 3]}', "project_doc_max_bytes = 40\n"),
        "project_doc_fallback_filenames = ['x', 3]\n",
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=60))
TREES = st.dictionaries(NAMES, TEXTS, max_size=10)


@settings(max_examples=60)
@given(
    tree=TREES, tool=st.sampled_from(sorted(TOOLS)), file=st.sampled_from(["a.py", "src/a.py", "src/x/b.md"])
)
def test_no_tree_of_text_files_makes_it_fail(
    tree: dict[str, str], tool: str, file: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = tmp_path_factory.mktemp("tree")
    made = grow(top, {"tree": {n: t.encode("utf-8", "replace").decode() for n, t in tree.items()}})
    resolved = resolve(file, tool, made)
    for found in resolved.files:
        assert len(found.text.encode()) <= found.bytes_kept <= found.bytes
    assert len({found.path for found in resolved.files}) == len(resolved.files)
    assert resolve(file, tool, made) == resolved


@settings(max_examples=60)
@given(sizes=st.lists(st.integers(0, 90), min_size=1, max_size=4), most=st.integers(0, 200))
def test_codex_never_keeps_more_than_its_budget_and_cuts_the_deepest_first(
    sizes: list[int], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = tmp_path_factory.mktemp("budget")
    tree = {f"{'d/' * depth}AGENTS.md": "é" * size + "x" for depth, size in enumerate(sizes)}
    made = grow(top, {"tree": {**tree, "~/.codex/config.toml": f"project_doc_max_bytes = {most}\n"}})
    files = resolve(f"{'d/' * (len(sizes) - 1)}a.py", "codex", made).files
    assert [found.bytes for found in files] == [2 * size + 1 for size in sizes]
    assert sum(found.bytes_kept for found in files) == min(most, sum(found.bytes for found in files))
    assert all(len(found.text.encode()) <= found.bytes_kept for found in files)
    cut = [found.bytes_kept < found.bytes for found in files]
    assert cut == sorted(cut)
    assert all(bool(found.limit) == is_cut for found, is_cut in zip(files, cut, strict=True))
