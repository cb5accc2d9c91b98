"""Project memory: entries that change nothing but themselves, in files that people wrote."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

import mdmem
from mdmem.document.document import parse, parse_text
from mdmem.document.edit import splice
from mdmem.errors import (
    BinaryContent,
    EditRefused,
    MemoryNotFound,
    NotEncodable,
    SectionAmbiguous,
    SectionNotFound,
    Usage,
)
from mdmem.kind import PROJECT, kind_at
from mdmem.memory.project import Project
from mdmem.vault.vault import Vault
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem.vault.plan import EditPlan
    from mdmem.vault.transaction import Applied


def clock() -> datetime:
    return datetime(2024, 1, 31, 23, 59, tzinfo=UTC)


@pytest.fixture
def project(vault_root: Path) -> Project[Applied]:
    vault = Vault(str(vault_root))
    return Project(vault, vault.transact, clock=clock)


def agents(vault_root: Path, text: str | None = None) -> str:
    file = vault_root / "AGENTS.md"
    if text is not None:
        file.write_bytes(text.encode())
    return file.read_bytes().decode()


# -------------------------------------------------------------------------------------------- appending


@cases(
    "before, after",
    [
        ("## D\n\n- a\n", "## D\n\n- a\n- new\n"),
        ("## D\n\n- a", "## D\n\n- a\n- new"),
        ("## D\n\n* a\n* b\n\n## E\n", "## D\n\n* a\n* b\n* new\n\n## E\n"),
        ("## D\n  + a\n    - deep\n## E\n", "## D\n  + a\n    - deep\n  + new\n## E\n"),
        ("## D\n-\ta\n", "## D\n-\ta\n-\tnew\n"),
        ("## D\n\n- a\n\n- b\n\n\n## E\n", "## D\n\n- a\n\n- b\n\n- new\n\n\n## E\n"),
        ("## D\n\nText.  \n\n## E\n", "## D\n\nText.  \n\n- new\n\n## E\n"),
        ("## D\n\n- a\n\nText.\n", "## D\n\n- a\n\nText.\n\n- new\n"),
        ("## D\n\n1. a\n2. b\n", "## D\n\n1. a\n2. b\n- new\n"),
        ("## D\n\n## E\n", "## D\n\n- new\n\n## E\n"),
        ("## D\n## E\n", "## D\n\n- new\n\n## E\n"),
        ("## D", "## D\n\n- new\n"),
        ("## D\n", "## D\n\n- new\n"),
        ("## D\n\n", "## D\n\n- new\n\n"),
        (
            "\ufeff---\r\nx: 1\r\n---\r\n## D\r\n\r\n- a\r\n",
            "\ufeff---\r\nx: 1\r\n---\r\n## D\r\n\r\n- a\r\n- new\r\n",
        ),
        ("## D\n- a  \n", "## D\n- a  \n- new\n"),
        ("## D\n\n- a\n\n### Sub\n\n- s\n", "## D\n\n- a\n- new\n\n### Sub\n\n- s\n"),
        ("## D\n```\ncode\n```\nTitle\n===\n", "## D\n```\ncode\n```\n\n- new\n\nTitle\n===\n"),
        ("D\n---\n- a\n", "D\n---\n- a\n- new\n"),
        ("## D ##\n\n- a\n  lazy\nlazier\n", "## D ##\n\n- a\n  lazy\nlazier\n- new\n"),
        ("## D\n\n<!--\n- kept for later\n-->\n", "## D\n\n<!--\n- kept for later\n-->\n\n- new\n"),
        ("# T\n", "# T\n\n## D\n\n- new\n"),
        ("# T\n\n\n", "# T\n\n## D\n\n- new\n"),
        ("# T", "# T\n\n## D\n\n- new\n"),
        ("", "## D\n\n- new\n"),
        ("---\nx: 1\n---\n", "---\nx: 1\n---\n\n## D\n\n- new\n"),
        ("---\nx: 1\n---\n\n", "---\nx: 1\n---\n\n## D\n\n- new\n"),
    ],
)
def test_an_entry_joins_what_stands_there(
    vault_root: Path, project: Project[Applied], before: str, after: str
) -> None:
    agents(vault_root, before)
    project.append("D", "new")
    assert agents(vault_root) == after
    assert project.append("D", "new").files == ()
    assert agents(vault_root) == after


def test_a_missing_file_is_made_from_the_project_template(
    vault_root: Path, project: Project[Applied]
) -> None:
    with pytest.raises(MemoryNotFound):
        project.load()
    project.append("Decisions", "Use SQLite")
    assert (
        agents(vault_root)
        == "# Project memory\n\n## Commands\n\n## Conventions\n\n## Decisions\n\n- Use SQLite\n"
    )
    assert project.load().headings[0].title == "Project memory"


def test_a_template_of_the_vault_makes_the_file_where_there_is_one(
    vault_root: Path, project: Project[Applied]
) -> None:
    (vault_root / ".mdmem" / "templates").mkdir()
    (vault_root / ".mdmem" / "templates" / "project.md").write_text("# {{ title }}\n\nOurs.\n")
    project.append("Decisions", "Use SQLite")
    assert agents(vault_root) == "# Project memory\n\nOurs.\n\n## Decisions\n\n- Use SQLite\n"


def test_several_lines_stay_in_their_bullet(vault_root: Path, project: Project[Applied]) -> None:
    agents(vault_root, "## D\n\n*   a\n\n## E\n")
    project.append("D", "# Use SQLite\r\n\r\n## because\n```sh\nrun\n---\n\nE\n===\n")
    assert agents(vault_root) == (
        "## D\n\n*   a\n*   # Use SQLite\n\n    ## because\n    ```sh\n    run\n"
        "    ---\n\n    E\n    ===\n\n## E\n"
    )
    assert project.append("D", "# Use SQLite\n\n## because\n```sh\nrun\n---\n\nE\n===").files == ()


def test_a_bullet_that_is_given_as_one_is_not_doubled(vault_root: Path, project: Project[Applied]) -> None:
    agents(vault_root, "## D\n\n* a\n")
    project.append("D", "- b")
    assert agents(vault_root) == "## D\n\n* a\n* b\n"


@pytest.mark.parametrize("name", ["Agents.md", "agents.md"])
def test_a_file_that_differs_only_in_case_is_the_project_memory(
    vault_root: Path, project: Project[Applied], name: str
) -> None:
    other = vault_root / name
    other.write_text("# P\n\n## Decisions\n\n- one\n")
    project.append("Decisions", "two")
    assert other.read_text() == "# P\n\n## Decisions\n\n- one\n- two\n"
    assert project.load().path == name
    assert kind_at(name) is kind_at(f"users/al/{name}") is PROJECT
    assert kind_at(f"notes/{name}") is not PROJECT
    (vault_root / "AGENTS.md").write_text("# Q\n")
    assert project.load().path == "AGENTS.md"


@pytest.mark.parametrize("marks", ["---", "- -", "***", "+", "_ _ _"])
def test_an_entry_of_marks_alone_is_text(vault_root: Path, project: Project[Applied], marks: str) -> None:
    project.append("D", marks)
    assert agents(vault_root).endswith(f"## D\n\n- \\{marks}\n")
    assert project.append("D", marks).files == ()


def test_a_date_may_stand_before_it_and_does_not_make_it_another_entry(
    vault_root: Path, project: Project[Applied]
) -> None:
    agents(vault_root, "## D\n\n- 2023-05-01: old\n")
    assert project.append("D", "old", date=True).files == ()
    assert project.append("D", "old").files == ()
    project.append("D", "new", date=True)
    assert agents(vault_root) == "## D\n\n- 2023-05-01: old\n- 2024-01-31: new\n"


def test_sections_are_found_by_path_marks_and_any_case(vault_root: Path, project: Project[Applied]) -> None:
    agents(vault_root, "# A\n\n## Log\n\n# B\n\n## Log\n\n## 决策\n\n## DECISIONS\n\n### Log\n")
    for section, line in (("B > Log", 7), ("b > log", 7), ("### log", 13), ("决策", 9), ("Decisions", 11)):
        plan = Project(Vault(str(vault_root)), lambda build: build(), clock=clock).append(section, "x")
        (edit,) = plan.changes[0].edits
        assert plan.changes[0].before is not None
        assert plan.changes[0].before.lines.number(edit.start - 1) in {line, line + 1}
    for section in ("Log", "log"):
        with pytest.raises(SectionAmbiguous) as caught:
            project.append(section, "x")
        assert caught.value.lines == (3, 7, 13)
    with pytest.raises(SectionNotFound):
        project.append("B > Nothing", "x")


def test_a_new_section_has_the_level_that_its_marks_say(vault_root: Path, project: Project[Applied]) -> None:
    agents(vault_root, "# T\n")
    project.append("### Small", "x")
    project.append("### Small", "y")
    project.append("A title\n# with # marks #", "z")
    project.append("A title\n# with # marks #", "z")
    assert agents(vault_root) == "# T\n\n### Small\n\n- x\n- y\n\n## A title # with # marks \\#\n\n- z\n"


def test_what_cannot_stand_there_is_refused(vault_root: Path, project: Project[Applied]) -> None:
    for section, entry in (("D", " \n"), ("D", ""), (" ", "x"), ("##", "x")):
        with pytest.raises(Usage):
            project.append(section, entry)
    for text, section in (("## D\n\n```\nopen\n", "D"), ("## D\n\n<!-- open\n", "D"), ("```\nopen\n", "New")):
        agents(vault_root, text)
        with pytest.raises(EditRefused, match="closed"):
            project.append(section, "x")
        assert agents(vault_root) == text
    agents(vault_root, "# T\n")
    with pytest.raises(NotEncodable):
        project.append("D", "\ud800")
    with pytest.raises(BinaryContent):
        project.append("D", "\0")


def test_the_file_of_a_repository_can_be_mounted(vault_root: Path) -> None:
    (vault_root.parent / "AGENTS.md").write_text("# Ours\n\n## D\n\n- a\n")
    (vault_root / ".mdmem" / "config.toml").write_text('[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
    vault = Vault(str(vault_root))
    Project(vault, vault.transact, clock=clock).append("D", "b")
    assert (vault_root.parent / "AGENTS.md").read_text() == "# Ours\n\n## D\n\n- a\n- b\n"
    assert not (vault_root / "AGENTS.md").exists()


LINES = st.sampled_from(
    ["", "", "# A", "## D", "### D2", "D", "---", "===", "- a", "* b", "  - c", "    code", "+ e", "1. one",
     "> q", "```", "~~~", "<div>", "<!-- x -->", "<!--", "-->", "text", "  more", "\t- t", "-", "- - -",
     "- [ ] x", "| a | b |", "[a]: b"]
)  # fmt: skip
DOCUMENTS = st.builds(
    lambda lines, newline, end: newline.join(lines) + newline * end,
    st.lists(LINES, max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 2),
)
ENTRIES = st.one_of(
    st.lists(LINES, min_size=1, max_size=5).map("\n".join),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30),
).filter(lambda entry: entry.strip(" \t\r\n"))


@pytest.fixture(scope="module")
def scratch() -> Iterator[tuple[Path, Project[EditPlan]]]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".mdmem").mkdir()
        yield Path(folder) / "AGENTS.md", Project(Vault(folder), lambda build: build(), clock=clock)


def planned(file: Path, plan: EditPlan) -> str:
    """The text of the file after a plan that only has edits."""
    text = file.read_bytes().decode()
    return splice(text, plan.changes[0].edits) if plan.changes else text


@given(DOCUMENTS, st.sampled_from(["D", "d", "New"]), ENTRIES)
@example("## D\n\n- a\n", "D", "x\n\n\n      deep\n\ty")
@example("## D\n-\n", "D", "x")
@example("---\n---", "New", "x")
@settings(max_examples=examples(200))
def test_no_entry_breaks_the_structure_of_any_file(
    scratch: tuple[Path, Project[EditPlan]], text: str, section: str, entry: str
) -> None:
    file, project = scratch
    file.write_bytes(text.encode())
    before = parse("AGENTS.md", text.encode())
    try:
        plan = project.append(section, entry)
    except (EditRefused, SectionAmbiguous):
        return
    result = planned(file, plan)
    after = parse_text("AGENTS.md", result)
    titles = [heading.title for heading in before.headings]
    made = [h.title for h in after.headings]
    assert made in (titles, [*titles, section])
    assert after.frontmatter.inner == before.frontmatter.inner
    for edit in plan.changes[0].edits if plan.changes else ():
        assert not text[edit.start : edit.end].strip()
    file.write_bytes(result.encode())
    assert project.append(section, entry).changes == ()


@given(DOCUMENTS, ENTRIES)
@settings(max_examples=examples(75))
def test_another_parser_of_markdown_sees_the_same_headings(
    scratch: tuple[Path, Project[EditPlan]], text: str, entry: str
) -> None:
    file, project = scratch
    file.write_bytes(text.encode())
    if parse("AGENTS.md", text.encode()).frontmatter.present:
        return
    try:
        result = planned(file, project.append("D", entry))
    except (EditRefused, SectionAmbiguous):
        return
    added = len(top_headings(result)) - len(top_headings(text))
    assert added == (0 if any(h.lower() == "d" for h in top_headings(text)) else 1)


def top_headings(text: str) -> list[str]:
    tokens = MarkdownIt("commonmark").parse(text)
    return [tokens[n + 1].content for n, t in enumerate(tokens) if t.type == "heading_open" and t.level == 0]


# --------------------------------------------------------------------------------- steps and parameters


def test_a_step_is_replaced_where_it_stands(vault_root: Path, project: Project[Applied]) -> None:
    project.step("build", "running")
    project.step("test", "waiting", "for\n the build")
    before = agents(vault_root)
    assert before.endswith("## Workflow\n\n- [build] running\n- [test] waiting: for the build\n")
    assert project.step("build", "running").files == ()
    project.step("build", "done", "in 3 s")
    assert agents(vault_root) == before.replace("[build] running", "[build] done: in 3 s")


def test_only_the_bytes_of_a_step_change(vault_root: Path, project: Project[Applied]) -> None:
    text = (
        "# T\r\n\r\n## 工作流状态\r\n\r\nIntro.\r\n\r\n*  [a] open: long\r\n   text\r\n"
        "   - a note below\r\n\r\n   more\r\n* [ab] open\r\n\r\n```\r\n- [a] example\r\n```\r\n"
    )
    agents(vault_root, text)
    project.step("a", "done", section="工作流状态")
    assert agents(vault_root) == text.replace("[a] open: long\r\n   text\r\n", "[a] done\r\n")


def test_steps_that_cannot_be_told_apart_are_refused(vault_root: Path, project: Project[Applied]) -> None:
    agents(vault_root, "## Workflow\n- [a] x\n- [a] y\n")
    with pytest.raises(EditRefused, match="lines 2, 3"):
        project.step("a", "done")
    for name, status in (("", "done"), ("a", " "), ("a]", "done"), ("[a", "done")):
        with pytest.raises(Usage):
            project.step(name, status)


def test_parameters_are_replaced_by_name_and_new_ones_added(
    vault_root: Path, project: Project[Applied]
) -> None:
    agents(
        vault_root,
        "## Parameters\n\n* model: old\n  - why\n* **Top K**:3\n* `seed`\uff1a7\n* *empty:*\n\n## End\n",
    )
    done = project.params(
        {"model": "gpt\n4", "Top K": 5, "seed": None, "new": {"a": [True]}, "empty": 0.5, "x": ""}
    )
    assert agents(vault_root) == (
        "## Parameters\n\n* model: gpt 4\n  - why\n* **Top K**: 5\n* `seed`\uff1anull\n* *empty:* 0.5\n"
        '* new: {"a": [true]}\n* x:\n\n## End\n'
    )
    assert len(done.files) == 1
    again = project.params({"model": "gpt 4", "Top K": 5, "new": {"a": [True]}, "x": ""})
    assert again.files == ()
    assert project.params({}).files == ()


def test_parameters_that_cannot_be_written_are_refused(vault_root: Path, project: Project[Applied]) -> None:
    for values in ({"": 1}, {"a:b": 1}, {"a": {1}}, {"a": float("nan")}):
        with pytest.raises(Usage):
            project.params(values)
    agents(vault_root, "## Parameters\n- a: 1\n- a: 2\n")
    with pytest.raises(EditRefused, match="lines 2, 3"):
        project.params({"a": 3})
    project.params({"b": 1}, section="Settings")
    assert agents(vault_root) == "## Parameters\n- a: 1\n- a: 2\n\n## Settings\n\n- b: 1\n"


# ---------------------------------------------------------------------------------------------- summary


def test_the_summary_is_what_was_decided(vault_root: Path, project: Project[Applied]) -> None:
    agents(
        vault_root,
        "# T\n\nIntro.\n\n## User preferences\n\n- short\n\n### Decisions\n\n- deep\n\n## Workflow\n\n- x\n\n"
        "## 关键选择 [protected]\n\n- SQLite\n\n## Choices\n\n",
    )
    assert project.summary() == (
        "## User preferences\n\n- short\n\n### Decisions\n\n- deep\n\n## 关键选择 [protected]\n\n- SQLite"
    )


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("---\ntitle: x\n---\n# T\n\n<!-- note -->\n\nFirst\nparagraph.\n\nSecond.\n", "First\nparagraph."),
        ("Before.\r\nAll.\r\n\r\n# T\r\n", "Before.\nAll."),
        ("# T\n\n## Decisions\n", ""),
        ("", ""),
    ],
)
def test_without_decisions_it_is_the_first_paragraph(
    vault_root: Path, project: Project[Applied], text: str, summary: str
) -> None:
    agents(vault_root, text)
    assert project.summary() == summary


def test_an_entry_and_the_summary_stay_out_of_the_block_that_is_synced(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.project.append("Decisions", "Use SQLite.")
    memory.rules.add("commits", "A commit has one purpose.")
    memory.project.sync(["agents"])
    memory.project.append("Decisions", "Use uv.")
    assert memory.project.summary() == "## Decisions\n\n- Use SQLite.\n- Use uv."
    assert not memory.project.sync(["agents"], check=True).differences


def test_a_bounded_summary_says_what_is_left_out(vault_root: Path, project: Project[Applied]) -> None:
    agents(vault_root, "## Decisions\n\n" + "".join(f"- entry {n}\n" for n in range(100)))
    whole = project.summary()
    for most in (0, 50, *range(100, 130), len(whole) - 1):
        text = project.summary(most)
        kept, _, note = text.rpartition("[")
        assert note.endswith(f"of {len(whole)} characters left out: see AGENTS.md]")
        assert len(text) <= most or not kept
        assert whole.startswith(kept.rstrip())
        assert int(note.split()[0]) == len(whole) - len(kept.rstrip())
    assert project.summary(len(whole)) == whole
    with pytest.raises(Usage):
        project.summary(-1)
