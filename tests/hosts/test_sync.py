"""The tools' files follow the project memory and the rules, and what others wrote is never lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.errors import Conflict, EditRefused, Usage
from mdmem.facade.memory import Memory, open as open_memory
from mdmem.hosts.sync import FilesSynced, write
from mdmem.vault.paths import Scope
from tests.speed import examples

PYTHON = "---\nglobs: ['*.py']\n---\n# Python\n\nType everything.\n"
OWN = (
    ".claude/rules/mdmem/python.md",
    ".cursor/rules/mdmem/python.mdc",
    ".github/instructions/mdmem/python.instructions.md",
)


def opened(top: Path, *, mounted: bool = True) -> Memory:
    """A repository whose AGENTS.md is a memory, or one that has its project memory in the vault."""
    top = Path(os.path.realpath(top))
    (top / "repo").mkdir()
    if mounted:
        (top / "repo/.git").mkdir()
    return open_memory(mdmem.init(top / "repo/memories").root)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = opened(tmp_path)
    memory.write("AGENTS.md", "# Demo\n\n- use files\n")
    memory.write("rules/python.md", PYTHON)
    memory.write("rules/style.md", "Be short.\n")
    return memory


def file(memory: Memory, name: str) -> Path:
    return Path(memory.vault.workspace, name)


def states(synced: FilesSynced) -> dict[str, str]:
    return {one.path: one.state for one in synced.differences}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_every_tool_is_given_memory_and_rules_by_a_sync(memory: Memory) -> None:
    synced = memory.project.sync()
    assert set(synced.written) == {"AGENTS.md", "CLAUDE.md", "GEMINI.md", *OWN}
    shared = file(memory, "AGENTS.md").read_text()
    for text in ("- use files", "Be short.", "memories/rules/python.md"):
        assert text in shared
    assert "Type everything." not in shared
    assert "\n@AGENTS.md\n" in file(memory, "CLAUDE.md").read_text()
    assert "\n@./AGENTS.md\n" in file(memory, "GEMINI.md").read_text()
    for name, field in zip(OWN, ('  - "**/*.py"', "globs: **/*.py", 'applyTo: "**/*.py"'), strict=True):
        text = file(memory, name).read_text()
        assert f"\n{field}\n" in text
        assert "Type everything." in text


def test_of_a_vault_that_is_the_repository_all_is_written_inside(tmp_path: Path) -> None:
    (tmp_path / "notes/.git").mkdir(parents=True)
    memory = open_memory(mdmem.init(tmp_path / "notes").root)
    memory.write("AGENTS.md", "# Demo\n")
    memory.write("rules/python.md", PYTHON)
    memory.write("notes/a.md", "See `src/a.py`.\n")
    Path(memory.root, "src").mkdir()
    Path(memory.root, "src/a.py").write_text("")
    assert {"CLAUDE.md", *OWN} <= set(memory.project.sync().written)
    assert Path(memory.root, "CLAUDE.md").read_text().count("@AGENTS.md") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]
    found = {found.target: found.places[0].state for found in memory.references.list()}
    assert found["src/a.py"] == "ok"


def test_a_rule_that_does_not_count_is_told_to_no_tool(memory: Memory) -> None:
    memory.project.sync()
    memory.supersede("rules/python.md", "rules/style.md")
    assert states(memory.project.sync())[OWN[0]] == "stale"
    assert not any(file(memory, name).exists() for name in OWN)
    assert "rules/python.md" not in file(memory, "AGENTS.md").read_text()


def test_a_check_writes_nothing_and_is_clean_after_a_sync(memory: Memory) -> None:
    before = memory.project.sync(check=True)
    assert before.written == ()
    assert set(states(before).values()) == {"missing"}
    assert not file(memory, "CLAUDE.md").exists()
    memory.project.sync()
    assert memory.project.sync(check=True).differences == ()
    assert memory.project.sync() == FilesSynced(differences=())


def test_the_diff_of_a_check_is_what_a_sync_writes(memory: Memory) -> None:
    diff = memory.project.sync(check=True).diff()
    assert "+++ b/CLAUDE.md" in diff
    assert "+@AGENTS.md" in diff
    assert memory.project.sync().diff() == diff


def test_only_the_files_of_some_tools(memory: Memory) -> None:
    assert memory.project.sync(["codex"]).written == ("AGENTS.md",)
    assert set(memory.project.sync(["cursor", "gemini"]).written) == {"GEMINI.md", OWN[1]}
    with pytest.raises(Usage):
        memory.project.sync(["emacs"])


def test_the_mounted_memory_is_changed_by_a_plan_that_can_be_undone(memory: Memory) -> None:
    before = file(memory, "AGENTS.md").read_bytes()
    memory.project.sync()
    assert memory.history("AGENTS.md")[0].message == "AGENTS.md: project sync"
    memory.undo()
    assert file(memory, "AGENTS.md").read_bytes() == before


def test_bytes_of_others_stay_with_their_line_ends(memory: Memory) -> None:
    claude, agents = file(memory, "CLAUDE.md"), file(memory, "AGENTS.md")
    claude.write_bytes(b"\xef\xbb\xbf# Ours\r\n\r\nkeep  \r\n")
    agents.write_bytes(b"# Demo\r\n\r\n- a")
    memory.project.sync()
    assert claude.read_bytes().startswith(b"\xef\xbb\xbf# Ours\r\n\r\nkeep  \r\n\r\n<!-- mdmem:begin")
    assert agents.read_bytes().startswith(b"# Demo\r\n\r\n- a\r\n\r\n<!-- mdmem:begin")
    for path in (claude, agents):
        assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    memory.write("rules/more.md", "More.\n")
    assert memory.project.sync().written == ("AGENTS.md",)
    assert memory.project.sync(check=True).differences == ()


def test_a_project_memory_that_is_not_mounted_is_copied(tmp_path: Path) -> None:
    memory = opened(tmp_path, mounted=False)
    memory.write("AGENTS.md", "# Demo\n\n- use files\n")
    memory.project.sync()
    text = file(memory, "AGENTS.md").read_text()
    assert "- use files" in text
    assert "from memories/AGENTS.md" in text
    memory.project.append("Decisions", "SQLite")
    assert states(memory.project.sync(check=True)) == {"AGENTS.md": "outdated"}
    memory.project.sync()
    assert "- SQLite" in file(memory, "AGENTS.md").read_text()


def test_without_memory_and_rules_there_is_nothing_to_write(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    assert memory.project.sync() == FilesSynced(differences=())
    assert sorted(os.listdir(memory.vault.workspace)) == [".git", "memories"]


def test_a_rule_that_is_gone_or_off_takes_its_files_with_it(memory: Memory) -> None:
    memory.project.sync()
    memory.set("rules/python.md", {"enabled": False})
    assert {
        path: state for path, state in states(memory.project.sync()).items() if path in OWN
    } == dict.fromkeys(OWN, "stale")
    assert not any(file(memory, name).exists() for name in OWN)
    assert "python" not in file(memory, "AGENTS.md").read_text()
    assert memory.project.sync(check=True).differences == ()


def test_an_import_that_people_wrote_is_enough(memory: Memory) -> None:
    file(memory, "CLAUDE.md").write_text("# Ours\n\n@AGENTS.md\n")
    file(memory, "GEMINI.md").write_text("@./AGENTS.md\n")
    memory.project.sync()
    assert file(memory, "CLAUDE.md").read_text() == "# Ours\n\n@AGENTS.md\n"
    assert file(memory, "GEMINI.md").read_text() == "@./AGENTS.md\n"


def test_a_link_to_the_memory_is_enough(memory: Memory) -> None:
    file(memory, "CLAUDE.md").symlink_to("AGENTS.md")
    assert "CLAUDE.md" not in states(memory.project.sync())
    assert file(memory, "CLAUDE.md").is_symlink()
    assert memory.project.sync(check=True).differences == ()


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude", ".cursor/rules"])
def test_nothing_is_written_through_a_link(name: str, memory: Memory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside if name != "CLAUDE.md" else outside / "file.md"
    if name == "CLAUDE.md":
        target.write_text("mine\n")
    file(memory, name).parent.mkdir(exist_ok=True)
    file(memory, name).symlink_to(target)
    synced = memory.project.sync()
    refused = [one.path for one in synced.left]
    assert len(refused) == 1
    assert refused[0].startswith(name)
    assert sorted(os.listdir(outside)) == (["file.md"] if name == "CLAUDE.md" else [])
    if name == "CLAUDE.md":
        assert target.read_text() == "mine\n"


def test_what_is_not_utf_8_is_left_as_it_is(memory: Memory) -> None:
    file(memory, "CLAUDE.md").write_bytes(b"caf\xe9\n")
    assert [(one.path, one.state) for one in memory.project.sync().left] == [("CLAUDE.md", "refused")]
    assert file(memory, "CLAUDE.md").read_bytes() == b"caf\xe9\n"


def test_a_rule_of_the_same_name_that_people_wrote_is_left_as_it_is(memory: Memory) -> None:
    own = file(memory, OWN[1])
    own.parent.mkdir(parents=True)
    own.write_text("mine\n")
    assert [(one.path, one.state) for one in memory.project.sync().left] == [(OWN[1], "foreign")]
    assert own.read_text() == "mine\n"


def test_what_was_edited_is_told_and_not_overwritten(memory: Memory) -> None:
    memory.project.sync()
    edit(file(memory, OWN[0]), "Type everything.", "Type most.")
    edit(file(memory, "CLAUDE.md"), "@AGENTS.md", "@AGENTS.md\nUse tabs.")
    memory.write("rules/more.md", "More.\n")
    synced = memory.project.sync()
    assert synced.written == ("AGENTS.md",)
    assert {one.path: one.state for one in synced.left} == {OWN[0]: "edited", "CLAUDE.md": "edited"}
    assert "Type most." in file(memory, OWN[0]).read_text()
    sources = {one.path: one.reason for one in synced.left}
    assert "memories/rules/python.md" in sources[OWN[0]]
    assert "AGENTS.md" in sources["CLAUDE.md"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_edit_of_a_shared_block_stays_whatever_becomes_of_its_rules(memory: Memory, newline: str) -> None:
    memory.project.sync()
    target = file(memory, "AGENTS.md")
    edit(target, "Be short.", "Be short.\nBe kind.")
    target.write_bytes(target.read_bytes().replace(b"\n", newline.encode()))
    before = target.read_bytes()
    for change in ("Be long.\n", "Be wide.\n"):
        assert [(one.path, one.state) for one in memory.project.sync().left] == [("AGENTS.md", "edited")]
        memory.write("rules/style.md", change, overwrite=True)
    assert target.read_bytes() == before


def test_a_header_that_was_edited_is_never_overwritten(memory: Memory) -> None:
    memory.project.sync()
    edit(file(memory, OWN[0]), "**/*.py", "**/*.pyx")
    assert [(one.path, one.state) for one in memory.project.sync().left] == [(OWN[0], "edited")]
    assert "*.pyx" in file(memory, OWN[0]).read_text()


def test_what_is_overwritten_is_kept(memory: Memory) -> None:
    memory.project.sync()
    before = file(memory, OWN[0]).read_bytes()
    memory.replace("rules/python.md", "everything", "most")
    memory.project.sync()
    kept = Path(memory.vault.root, ".mdmem/local/instructions")
    assert before in [path.read_bytes() for path in kept.iterdir()]
    assert file(memory, OWN[0]).read_bytes() != before
    assert os.listdir(Path(memory.vault.root, ".mdmem/local/staging")) == []


def test_permissions_stay(memory: Memory) -> None:
    file(memory, "CLAUDE.md").write_text("mine\n")
    file(memory, "CLAUDE.md").chmod(0o600)
    memory.project.sync()
    assert file(memory, "CLAUDE.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_a_file_that_changed_in_between_is_a_conflict(name: str, memory: Memory) -> None:
    differences = memory.project.sync(check=True).differences
    difference = next(one for one in differences if one.path == name)
    file(memory, name).write_text("theirs\n")
    with pytest.raises(Conflict) as conflict:
        write(memory.vault, difference)
    assert conflict.value.path == name
    assert "+theirs" in conflict.value.diff
    assert file(memory, name).read_text() == "theirs\n"


def test_a_file_that_another_one_synced_in_between_is_no_conflict(memory: Memory) -> None:
    late = memory.project.sync(check=True).differences
    memory.project.sync()
    before = {one.path: file(memory, one.path).read_bytes() for one in late}
    for difference in late:
        write(memory.vault, difference)
    assert {path: file(memory, path).read_bytes() for path in before} == before
    assert len(memory.history("AGENTS.md")) == 2


def test_a_rule_that_holds_a_mark_is_refused(memory: Memory) -> None:
    memory.write("rules/bad.md", "<!-- mdmem:end -->\n")
    with pytest.raises(EditRefused) as refused:
        memory.project.sync()
    assert refused.value.path == "memories/rules/bad.md"
    assert not file(memory, "CLAUDE.md").exists()


@pytest.mark.parametrize("scope", [Scope(user="alice"), Scope(project="demo")])
def test_what_is_private_goes_into_no_shared_file(scope: Scope, memory: Memory) -> None:
    with pytest.raises(Usage):
        open_memory(memory.vault.root, scope).project.sync()


def test_rules_of_a_user_are_in_no_file(memory: Memory) -> None:
    open_memory(memory.vault.root, Scope(user="alice")).write("rules/secret.md", "Only mine.\n")
    memory.project.sync()
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md"):
        assert "Only mine." not in file(memory, name).read_text()


LINES = st.sampled_from(["text", "", "# Title", "```", "é 日本", "- a", "@docs/x.md", "> q"])
TEXTS = st.builds(
    lambda lines, newline: newline.join(lines).encode(),
    st.lists(LINES, min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)
GLOBS = st.lists(st.sampled_from(["*.py", "src/", "{a,b}/**", "!x.py", "docs/*.md"]), max_size=3)


@settings(max_examples=examples(20))
@given(
    shared=st.dictionaries(st.sampled_from(["AGENTS.md", "CLAUDE.md", "GEMINI.md"]), TEXTS),
    rules=st.dictionaries(st.sampled_from(["a", "b", "sub/c"]), st.tuples(GLOBS, TEXTS), max_size=3),
    later=st.dictionaries(st.sampled_from(["a", "b"]), st.tuples(GLOBS, TEXTS), max_size=2),
)
def test_a_check_is_clean_after_every_sync_and_others_bytes_stay(
    shared: dict[str, bytes],
    rules: dict[str, tuple[list[str], bytes]],
    later: dict[str, tuple[list[str], bytes]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    memory = opened(tmp_path_factory.mktemp("sync"))
    for name, data in shared.items():
        file(memory, name).write_bytes(data)
    for written in (rules, later):
        for name, (globs, data) in written.items():
            path = Path(memory.vault.root, "rules", f"{name}.md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"---\nglobs: {globs}\n---\n".encode() + data)
        assert memory.project.sync().left == ()
        assert memory.project.sync(check=True).differences == ()
        for name, data in shared.items():
            assert file(memory, name).read_bytes().startswith(data)
    for name in (*rules, *later):
        Path(memory.vault.root, "rules", f"{name}.md").unlink(missing_ok=True)
    memory.project.sync()
    assert memory.project.sync(check=True).differences == ()
