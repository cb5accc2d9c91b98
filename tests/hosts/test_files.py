"""What hosts read by themselves, case by case: the cases are data. Imports and braces are found in text."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.hosts import files
from mdmem.hosts.files import SourceFiles, find_imports, find_read_by_host
from tests.speed import examples
from tests.tables import cases

DATA = Path(__file__).parents[1] / "data" / "instructions"
CASES: list[dict[str, Any]] = [
    {"host": file.stem, **case}
    for file in sorted(DATA.glob("*.toml"))
    for case in tomllib.loads(file.read_text("utf-8"))["case"]
]


def place(top: Path, name: str) -> Path:
    for mark, folder in (("~/", "home"), ("../", "up"), ("", "up/repo")):
        if name.startswith(mark):
            return top / folder / name.removeprefix(mark)
    raise AssertionError(name)


def grow(top: Path, case: dict[str, Any]) -> Path:
    """Make the tree of a case; where that is, without links."""
    top = Path(os.path.realpath(top))
    for folder in ("home", "up/repo"):
        (top / folder).mkdir(parents=True, exist_ok=True)
    if case.get("git", True):
        (top / "up/repo/.git").mkdir()
    for name, text in case.get("tree", {}).items():
        file = place(top, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = text.replace("<top>", str(top)) if isinstance(text, str) else text["repeat"] * text["times"]
        file.write_bytes(content.encode())
    for name, target in case.get("links", {}).items():
        link = place(top, name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place(top, target))
    return top


def find(top: Path, host: str, folder: str = "", home: str = "home") -> frozenset[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(top / home))
        return find_read_by_host(host, folder, SourceFiles(str(top / "up/repo")))


def test_there_are_cases_of_both_hosts() -> None:
    assert len(CASES) >= 30
    assert {case["host"] for case in CASES} > {"claude", "codex", "copilot-cli", "cursor", "vscode"}
    assert all(case["says"] for case in CASES)


@cases("case", CASES, ids=[f"{case['host']}: {case['name']}" for case in CASES])
def test_a_host_reads_what_its_contract_says(case: dict[str, Any], tmp_path: Path) -> None:
    top = grow(tmp_path, case)
    expected = {os.path.realpath(place(top, name)) for name in case["whole"]}
    assert find(top, case["host"], case.get("folder", "")) == expected


@pytest.mark.parametrize("host", ["claude", "codex"])
@pytest.mark.parametrize("folder", ["..", "/", "src/../..", "../repository"])
def test_nothing_is_found_for_a_host_outside_of_the_workspace(host: str, folder: str, tmp_path: Path) -> None:
    top = grow(tmp_path, {"tree": {"AGENTS.md": "a\n"}})
    assert find(top, host, folder) == frozenset()


@pytest.mark.parametrize("host", ["copilot-cli", "codex"])
@pytest.mark.parametrize("folder", ["a" * 5000, "a/" * 900 + "b", "a\nb", "\ud800"])
def test_no_name_of_a_folder_makes_it_fail(host: str, folder: str, tmp_path: Path) -> None:
    top = grow(tmp_path, {"tree": {"AGENTS.md": "a\n"}})
    assert find(top, host, folder) == {str(top / "up/repo/AGENTS.md")}


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_a_fifo_is_not_waited_for(host: str, tmp_path: Path) -> None:
    top = grow(tmp_path, {})
    os.mkfifo(top / "up/repo/AGENTS.md")
    assert find(top, host) == frozenset()


def test_rules_in_folders_of_any_depth_end_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper than Python 3.11 lets `os.walk` call itself; removed again, as little else can remove it."""
    rules = tmp_path / ".claude/rules"
    rules.mkdir(parents=True)
    (rules / "a.md").write_text("Rule.")
    monkeypatch.chdir(rules)
    for _ in range(1_500):
        os.mkdir("d")
        os.chdir("d")
    read = find_read_by_host("claude", str(tmp_path), SourceFiles(str(tmp_path)))
    for _ in range(1_500):
        os.chdir("..")
        os.rmdir("d")
    assert read == {str(rules / "a.md")}


def test_what_is_hidden_is_neither_read_nor_followed(tmp_path: Path) -> None:
    top = grow(tmp_path, {"tree": {"CLAUDE.md": "@a.md @b.md\n", "a.md": "@c.md\n", "b.md": "", "c.md": ""}})
    source = SourceFiles(str(top / "up/repo"), lambda real: real.endswith("a.md"))
    found = find_read_by_host("claude", "", source)
    assert found == {str(top / "up/repo" / name) for name in ("CLAUDE.md", "b.md")}


def test_folders_that_hold_themselves_and_links_in_a_circle_are_listed_once(tmp_path: Path) -> None:
    rules = grow(tmp_path, {"tree": {".claude/rules/a.md": "a\n"}}) / "up/repo/.claude/rules"
    (rules / "again").symlink_to(rules)
    (rules / "b.md").symlink_to("b.md")
    source = SourceFiles(str(rules.parents[1]))
    assert source.list_below(str(rules), ".md") == [str(rules / "a.md"), str(rules / "b.md")]
    assert source.read(str(rules), "b.md") is None
    (rules.parent / "circle").symlink_to("circle")
    assert source.list_below(str(rules.parent / "circle"), ".md") == []


NAMES = st.sampled_from(
    [
        *("AGENTS.md", "AGENTS.override.md", "src/AGENTS.md", "CLAUDE.md", "CLAUDE.local.md"),
        *(".claude/CLAUDE.md", "src/CLAUDE.md", ".claude/rules/a.md", "docs/a.md", "../CLAUDE.md"),
    ]
)
PIECES = st.sampled_from(
    [
        *("---\n", "paths:\n  - **/*.{py,md}\n", "- x\n", "@AGENTS.md\n", "@docs/a.md "),
        *("@~/.claude/CLAUDE.md\n", "@../CLAUDE.md\n", "@/dev\n", "@\\ \n", "@a\x00b\n", "```\n", "`"),
        *("<!--", "-->\n", "\r\n", "\ufeff", "text é 😀\n", "[" * 9_000),
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=60))


@settings(max_examples=examples(60))
@given(
    tree=st.dictionaries(NAMES, TEXTS, max_size=10),
    host=st.sampled_from(["claude", "codex"]),
    folder=st.sampled_from(["", "src", "src/x"]),
)
def test_no_tree_of_text_files_makes_it_fail(
    tree: dict[str, str], host: str, folder: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sound = {name: text.encode("utf-8", "replace").decode() for name, text in tree.items()}
    top = grow(tmp_path_factory.mktemp("tree"), {"tree": sound})
    found = find(top, host, folder)
    assert found <= {str(place(top, name)) for name in tree}
    assert find(top, host, folder) == found


@settings(max_examples=examples(60))
@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_codex_reads_whole_what_its_budget_leaves_from_the_top_down(
    sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = {f"{'d/' * depth}AGENTS.md": "é" * size * 2048 + "x" for depth, size in enumerate(sizes)}
    top = grow(tmp_path_factory.mktemp("budget"), {"tree": tree})
    bytes_to = [sum(4096 * size + 1 for size in sizes[: number + 1]) for number in range(len(sizes))]
    whole = [name for name, count in zip(tree, bytes_to, strict=True) if count <= 32 * 1024]
    found = find(top, "codex", "d/" * (len(sizes) - 1))
    assert found == {str(place(top, name)) for name in whole}


@cases(
    "text, expected",
    [
        ("@a.md", ["a.md"]),
        ("see @docs/a.md, and\n- @~/b.md\n> @/c.md", ["docs/a.md,", "~/b.md", "/c.md"]),
        ("@b.md\n@a.md\n@b.md\n", ["b.md", "a.md"]),
        ("@a\\ b.md c", ["a b.md"]),
        ("me@a.md (@b.md) x@", []),
        ("`@a.md` and ``@b.md `@c.md` ``", []),
        ("a ` b @a.md", ["a.md"]),
        ("```\n@a.md\n```\n@b.md", ["b.md"]),
        ("~~~\n@a.md\nnever closed", []),
        ("- item\n  ```\n  @a.md\n  ```\n", []),
        ("| `@a.md` | @b.md |\n", ["b.md"]),
        ("# @a.md\n", ["a.md"]),
        ("<details>\n@a.md\n</details>\n", ["a.md"]),
        ("@\n@ a", []),
    ],
)
def test_an_import_begins_with_an_at_sign_outside_of_code(text: str, expected: list[str]) -> None:
    assert find_imports(text) == expected


@given(
    st.lists(st.sampled_from(["@a.md", "`", "```", "\n", " ", "<!--", "-->", "x", "> ", "- "])).map("".join)
)
def test_an_import_stands_in_the_text_once(text: str) -> None:
    found = find_imports(text)
    assert all(f"@{target}" in text for target in found)
    assert len(set(found)) == len(found)


@cases(
    "text, expected",
    [
        ("a\n<!-- @b -->\n@c\n", ["c"]),
        ("<!--\n\n@b\n\n-->\n@c", ["c"]),
        ("a <!-- @b -->\n", ["b"]),
        ("<!-- a --> @b\n<!-- @c -->\n", ["b"]),
        ("<!-- @a --> b\n", ["a"]),
        ("    <!-- @a -->\n", ["a"]),
        ("```\n<!--\n```\n@a\n-->\n", ["a"]),
        ("<!-- @a never closed\n", ["a"]),
        ("a\r\n<!-- @b -->\r\n@c\r\n", ["c"]),
    ],
)
def test_an_import_in_a_comment_on_lines_of_its_own_is_none(text: str, expected: list[str]) -> None:
    assert find_imports(text) == expected


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("a", ["a"]),
        ("{a,b}.{c,d}", ["a.c", "a.d", "b.c", "b.d"]),
        ("{a}", ["a"]),
        ("{a", ["{a"]),
        ("a{}", ["a"]),
    ],
)
def test_braces_stand_for_each_of_their_choices(glob: str, expected: list[str]) -> None:
    assert files.expand_braces([glob]) == expected


def test_a_thousand_patterns_are_the_most() -> None:
    assert len(files.expand_braces(["{a,b}" * 3, *["c"] * 992]) or ()) == 1000
    assert files.expand_braces(["{a,b}" * 3, *["c"] * 993]) is None
    assert files.expand_braces(["{a,b}" * 500]) is None
    assert files.expand_braces(["x" * 5_000_000]) is None
