"""The merge driver: a memory is merged as one, anything else by lines, and no side is ever lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from mdmem.errors import MdmemError, PathRefused, Usage
from mdmem.review.merge_driver import MergedFile, merge_files
from mdmem.vault.folder import init
from tests.speed import examples
from tests.tables import cases

PATH = "memories/notes/a.md"
VALID = "---\ntags: [a, b]\n---\n# A\n"


class Driver:
    """Three files as git gives them, and what becomes of the second."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def run(self, base: str, ours: str, theirs: str, path: str = PATH, size: int = 7) -> MergedFile:
        for name, text in (("b", base), ("o", ours), ("t", theirs)):
            self.tree.write(name, text.encode("utf-8", "surrogateescape"))
        return merge_files("b", "o", "t", path, size)

    @property
    def result(self) -> str:
        return Path(self.tree.root, "o").read_bytes().decode("utf-8", "surrogateescape")


@pytest.fixture
def driver(tree: Any, monkeypatch: pytest.MonkeyPatch) -> Driver:
    init(tree.root / "memories")
    monkeypatch.chdir(tree.root)
    return Driver(tree)


def test_a_memory_is_merged_by_what_stands_in_it(driver: Driver) -> None:
    merged = driver.run(VALID, VALID.replace("b]", "b, o]"), VALID.replace("b]", "b, t]") + "- t\n")
    assert merged == MergedFile(PATH, 0)
    assert driver.result == "---\ntags: [a, b, t, o]\n---\n# A\n- t\n"
    assert sorted(os.listdir(driver.tree.root)) == [".git", "b", "memories", "o", "t"]


def test_a_conflict_is_marked_around_what_conflicts(driver: Driver) -> None:
    merged = driver.run("# A\n- a\n- b\n", "# A\n- o\n- b\n- e\n", "# A\n- t\n- b\n", size=9)
    assert merged == MergedFile(PATH, 1, ("line 2: the item 't': changed by both sides",))
    assert driver.result == "# A\n<<<<<<<<< ours\n- o\n=========\n- t\n>>>>>>>>> theirs\n- b\n- e\n"


_MOVES = [  # each side moves a text to another place, or one moves it and the other takes it away
    (
        "Kept in one file.\n\n- Fast.\n\n- Small.\n- Plain.\n",
        "- Fast.\n\n- Small.\n- Plain.\n\nKept in one file.\n",
        "- Fast.\n\nKept in one file.\n\n- Small.\n- Plain.\n",
    ),
    (
        "\n- Kept in one file.\n\n## Read\n\n## Write\n",
        "\n## Read\n\n## Write\n\n- Kept in one file.\n",
        "\n## Read\n\n- Kept in one file.\n\n## Write\n",
    ),
    (
        "One.\n\n- Two.\n\n- Three.\n\nFour.\n\n## Write\n\nKept in one file.\n",
        "One.\n\n- Two.\n\n- Three.\n\nKept in one file.\n\nFour.\n\n## Write\n",
        "- Two.\n\nOne.\n\n- Three.\n\nFour.\n\n## Write\n",
    ),
]


@cases("base, ours, theirs", _MOVES)
def test_what_both_move_stands_once_and_what_one_takes_away_does_not_come_back(
    driver: Driver, base: str, ours: str, theirs: str
) -> None:
    assert driver.run(base, ours, theirs).conflicts > 0
    assert driver.result.count("<<<<<<< ours") > 0


def test_each_field_and_each_place_of_the_text_that_conflicts_is_named(driver: Driver) -> None:
    base = "---\nstatus: a\nup: a\n---\n# A\n- a\n"
    merged = driver.run(base, base.replace(" a\n", " o\n"), base.replace(" a\n", " t\n"))
    assert merged.notes == (
        "line 2: the field 'status': changed by both sides",
        "line 3: the field 'up': changed by both sides",
        "line 6: the item 't': changed by both sides",
    )


def test_the_text_before_is_shown_where_the_settings_ask_for_it(driver: Driver) -> None:
    driver.tree.git("config", "merge.conflictStyle", "zdiff3")
    driver.run("- a\n", "- o\n", "- t\n")
    assert driver.result == "<<<<<<< ours\n- o\n||||||| base\n- a\n=======\n- t\n>>>>>>> theirs\n"


def test_lines_that_look_like_markers_of_any_size_stay_lines(driver: Driver) -> None:
    signs = "".join(f"{sign * size}\n" for size in range(6, 20) for sign in "<|=>")
    around = "# A\n\n```\n{}" + signs + "```\n"
    base, ours, theirs = (around.format(text) for text in ("- a\n", "- o\n", "- t\n"))
    assert driver.run(base, ours, theirs).conflicts == 1
    assert driver.result.endswith(signs + "```\n")
    assert "<<<<<<< ours\n- o\n=======\n- t\n>>>>>>> theirs\n" in driver.result


@pytest.mark.parametrize("path", [PATH, "a.txt"])
def test_a_marker_says_any_name(driver: Driver, path: str) -> None:
    for name, text in (("b", "- a\n"), ("o", "- o\n"), ("t", "- t\n")):
        driver.tree.write(name, text)
    merge_files("b", "o", "t", path, labels=("1a2b", "HEAD", "-\udcff \u4e2d"))
    assert driver.result == "<<<<<<< HEAD\n- o\n=======\n- t\n>>>>>>> -\udcff \u4e2d\n"


@pytest.mark.parametrize("path", ["src/a.txt", "memories/.mdmem/schemas/note.json", ".github/a.md"])
def test_what_is_no_memory_is_merged_by_lines(driver: Driver, path: str) -> None:
    merged = driver.run("a\n", "a\no\n", "a\nt\n", path)
    assert merged.conflicts == 1
    assert driver.result == "a\n<<<<<<< ours\no\n=======\nt\n>>>>>>> theirs\n"
    assert driver.run("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", path).conflicts == 0
    assert driver.result == "A\nb\nC\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ("\udcff\n- o\n", "\udcff\n- t\n", "UTF-8"),
        ("a\0\n- o\n", "a\0\n- t\n", "NUL"),
        (f"---\na: {'[' * 99}{']' * 99}\n---\n- o\n", "- t\n", ""),
        ("x" * (1 << 22) + "\n- o\n", "x" * (1 << 22) + "\n- t\n", "limit"),
        ("---\na: 1\na: 2\n---\n- o\n", "---\na: 1\na: 3\n---\n- t\n", ""),
    ],
    ids=["not UTF-8", "binary", "deep", "large", "broken"],
)
def test_what_cannot_be_read_keeps_both_sides(driver: Driver, ours: str, theirs: str, told: str) -> None:
    merged = driver.run("a\n", ours, theirs)
    assert merged.conflicts == 1
    assert told in " ".join(merged.notes)
    lines = driver.result.split("\n")
    assert lines[0].startswith("<" * 7) or "<<<<<<< ours" in lines
    assert {"- o", "- t", "=======", ">>>>>>> theirs"} <= set(lines)


def test_json_that_conflicts_is_marked_by_lines(driver: Driver) -> None:
    merged = driver.run('{\n"a": 1\n}\n', '{\n"a": 2\n}\n', '{\n"a": 3\n}\n', "memories/data/a.json")
    assert merged.conflicts == 1
    assert driver.result == '{\n<<<<<<< ours\n"a": 2\n=======\n"a": 3\n>>>>>>> theirs\n}\n'


def test_json_that_git_would_merge_into_nonsense_is_a_conflict(driver: Driver) -> None:
    """By lines nothing touches; by key, both sides changed the same value."""
    base = '{"a": {\n"x": 1,\n"y": 1,\n"z": 1\n}}\n'
    ours, theirs = base.replace('"x": 1', '"x": 2'), '{"a": {\n"x": 1,\n"y": 1,\n"z": 1\n}.0}\n'
    driver.run(base, ours, theirs, "memories/data/a.json")
    assert "<<<<<<< ours" in driver.result or driver.result.endswith(".0}\n")
    ours, theirs = base.replace('{"a": {', '{"a": [{').replace("}}", "}]}"), base.replace('"y": 1', '"y": 2')
    assert driver.run(base, ours, theirs, "memories/data/a.json").conflicts
    assert {'"y": 2,', "=======", '{"a": [{'} <= set(driver.result.split("\n"))


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "told"),
    [
        ("- a\n", "- a\n- o ^x\n", "- t ^x\n- a\n", "line 1: the item 't': changed by both sides"),
        (
            "# A\n- one gone\n- b\n\n# B\n",
            "# A\n- b\n\n# B\n",
            "# A\n- b\n\n# B\n- one gone\n",
            "the item 'one gone': removed by ours, changed by theirs",
        ),
        (
            "w0\nw1\nw2\nw3\nw4\n",
            "w0\nw1\nw2\nw4\nw3\n",
            "w0\nw1\nw2\nw4\nw3\nn0 n1\n",
            "the paragraph 'w0': changed by both sides",
        ),
        ("", "- one\n", "  c: 1\n- two\n", "as something else than either side"),
    ],
    ids=["an id twice", "removed and moved", "moved by both", "read otherwise"],
)
def test_what_cannot_be_merged_aright_is_a_conflict_that_says_why(
    driver: Driver, base: str, ours: str, theirs: str, told: str
) -> None:
    merged = driver.run(base, ours, theirs)
    assert merged.conflicts
    assert told in " ".join(merged.notes)
    words = set(re.findall(r"\w+", driver.result))
    assert set(re.findall(r"\w+", ours + theirs)) <= words


def test_a_schema_that_only_the_merge_breaks_is_kept(driver: Driver) -> None:
    (driver.tree.root / "memories/.mdmem/schemas").mkdir(exist_ok=True)
    driver.tree.write("memories/.mdmem/schemas/note.json", '{"properties": {"tags": {"maxItems": 3}}}')
    ours, theirs = VALID.replace("b]", "b, o]"), VALID.replace("b]", "b, t]")
    merged = driver.run(VALID, ours, theirs)
    assert merged.conflicts == 1
    assert "not valid" in merged.notes[0]
    # What both sides were already is not laid to the merge.
    long = VALID.replace("b]", "b, c, d]")
    assert driver.run(long, long + "- o\n", long + "- t\n") == MergedFile(PATH, 0)


def test_a_config_that_cannot_be_read_stops_no_merge(driver: Driver) -> None:
    driver.tree.write("memories/.mdmem/config.toml", "<<<<<<< ours\n")
    merged = driver.run(VALID, VALID + "- o\n", VALID + "- t\n")
    assert merged.conflicts == 0
    assert "schema" in merged.notes[0]
    assert driver.result == VALID + "- t\n- o\n"


def test_a_mounted_memory_keeps_its_schema(driver: Driver) -> None:
    schema = '{"properties": {"tags": {"maxItems": 3}}}'
    driver.tree.write("memories/.mdmem/schemas/project.json", schema)
    driver.tree.write("AGENTS.md", VALID)
    ours, theirs = VALID.replace("b]", "b, o]"), VALID.replace("b]", "b, t]")
    merged = driver.run(VALID, ours, theirs, "AGENTS.md")
    assert merged.conflicts == 1
    assert "schema project" in merged.notes[0]


def test_only_ours_is_written_and_no_link_is_followed(driver: Driver) -> None:
    driver.tree.write("victim", "mine\n")
    driver.run("a\n", "a\no\n", "a\nt\n")
    (driver.tree.root / "o").unlink()
    (driver.tree.root / "o").symlink_to("victim")
    with pytest.raises(PathRefused):
        merge_files("b", "o", "t", PATH)
    assert (driver.tree.root / "victim").read_text() == "mine\n"
    os.mkfifo(driver.tree.root / "pipe")
    with pytest.raises(MdmemError):
        merge_files("b", "pipe", "t", PATH)
    with pytest.raises(MdmemError):
        merge_files("b", "nothing", "t", PATH)


def test_a_marker_has_a_size_that_makes_sense(driver: Driver) -> None:
    with pytest.raises(Usage):
        driver.run("a\n", "o\n", "t\n", size=0)
    driver.run("a\n", "o\n", "t\n", size=10**9)
    assert len(driver.result) < 10_000


@pytest.mark.parametrize("path", ["/etc/x.md", "a//b.md", "\n.md", "~/x.md", "memories/x\\y.md"])
def test_a_strange_path_is_only_a_name(driver: Driver, path: str) -> None:
    assert driver.run("# A\n", "# A\n- o\n", "# A\n- t\n", path).conflicts == 0
    assert driver.result == "# A\n- t\n- o\n"


def test_a_path_that_leads_outside_is_no_memory(driver: Driver) -> None:
    assert driver.run("# A\n", "# A\n- o\n", "# A\n- t\n", "../../x.md").conflicts == 1


LINES = ["- a b\n", "- c ^x\n", "- d ^x\n", "text e\n", "\n", "# F\n", "## G\n", "---\n", "h: 1\n", "h: 2\n"]
LINES += [
    "tags: [i, j]\n",
    "tags: [i, k]\n",
    "```\n",
    "see [[l]]\n",
    "see [[m]]\n",
    "<<<<<<< ours\n",
    "=======\n",
]
TEXTS = st.lists(st.sampled_from(LINES), max_size=9).map("".join)


@example("", "---\n", "- a b\n")
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS, TEXTS)
def test_what_a_side_wrote_is_in_the_result(driver: Driver, base: str, ours: str, theirs: str) -> None:
    merged = driver.run(base, ours, theirs)
    before, mine, yours, after = (
        set(re.findall(r"\w+", text)) for text in (base, ours, theirs, driver.result)
    )
    assert (mine | yours) - before <= after
    if merged.conflicts:
        assert {"<<<<<<< ours", "=======", ">>>>>>> theirs"} <= set(driver.result.split("\n"))
    elif ours != base != theirs != ours:
        assert not (before - mine) & after - yours
        assert not (before - yours) & after - mine


def test_what_is_large_and_hostile_has_an_end(driver: Driver) -> None:
    base = "- [[a]] ^x\n" * 100_000
    ours, theirs = "- [[b]] ^x\n" * 100_000, "- [[c]] ^y\n" * 100_000
    assert driver.run(base, ours, theirs).conflicts
    assert driver.run(base, base + ours, theirs + base).conflicts >= 0


def test_the_program_says_what_it_did(driver: Driver) -> None:
    driver.run("- a\n", "- a\n", "- a\n")
    for ours, status, said in (("- a\n- o\n", 0, b"merged\n"), ("- o\n", 1, b"conflict\n")):
        driver.tree.write("o", ours)
        driver.tree.write("t", "- a\n- t\n" if status == 0 else "- t\n")
        words = [sys.executable, "-m", "mdmem", "git", "merge-driver", "--", "b", "o", "t", "7", PATH]
        ended = subprocess.run(words, cwd=driver.tree.root, capture_output=True, check=False)
        assert (ended.returncode, ended.stdout) == (status, said)
    assert Path(driver.tree.root, "b").read_text() == "- a\n"
