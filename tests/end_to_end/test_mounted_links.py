"""Links in a mounted memory, and to one, mean what they mean where its file stands on disk."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

import mdmem
from tests.editor.lsp.client import Client, uri
from tests.editor.lsp.editor import Editor

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory

DB = "# Db\n\n## Keys\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose `AGENTS.md` is mounted."""
    (tmp_path / ".git").mkdir()
    mdmem.init(tmp_path / "memories")
    (tmp_path / "memories/notes").mkdir()
    (tmp_path / "memories/notes/db.md").write_text(DB)
    return tmp_path


def opened(root: Path, agents: str) -> Memory:
    (root / "AGENTS.md").write_text(agents)
    return mdmem.open(root / "memories")


LINKS = [
    ("[a](memories/notes/db.md)", "[a](memories/notes/database.md)"),
    ("[a](./memories/notes/db.md)", "[a](./memories/notes/database.md)"),
    ("[a](memories/notes/db.md#keys)", "[a](memories/notes/database.md#keys)"),
    ("[a](memories/notes/db)", "[a](memories/notes/database)"),
    ("[a](memories/%6eotes/d%62.md)", "[a](memories/%6eotes/database.md)"),
    ("[a][b]\n\n[b]: memories/notes/db.md", "[a][b]\n\n[b]: memories/notes/database.md"),
    ("[a](notes/db.md)", "[a](notes/database.md)"),
    ("[[notes/db]]", "[[notes/database]]"),
]


@pytest.mark.parametrize(("before", "after"), LINKS)
def test_a_link_in_a_mounted_memory_is_found_and_follows_its_target(
    root: Path, before: str, after: str
) -> None:
    memory = opened(root, f"{before}\n")
    assert not [found for found in memory.check() if "link" in found.code]
    assert [link.path for link in memory.references.backlinks("notes/db.md")][:1] == ["AGENTS.md"]
    memory.mv("notes/db.md", "notes/database.md")
    assert not [found for found in memory.check() if "link" in found.code]
    assert (root / "AGENTS.md").read_text() == f"{after}\n"


@pytest.mark.parametrize("link", ["memories/notes/db.md", "notes/db.md"])
def test_a_link_to_a_memory_that_was_deleted_dangles(root: Path, link: str) -> None:
    memory = opened(root, f"[a]({link})\n")
    memory.rm("notes/db.md")
    assert [found.code for found in memory.check()] == ["dangling-link"]


def test_a_link_that_is_right_in_both_readings_means_what_it_means_on_disk(root: Path) -> None:
    (root / "memories/memories/notes").mkdir(parents=True)
    (root / "memories/memories/notes/db.md").write_text(DB)
    memory = opened(root, "[a](memories/notes/db.md)\n")
    assert memory.references.backlinks("notes/db.md")
    assert not memory.references.backlinks("memories/notes/db.md")


def test_a_move_to_where_a_link_leads_on_disk_does_not_change_what_the_link_means(root: Path) -> None:
    (root / "memories/memories/notes").mkdir(parents=True)
    (root / "memories/memories/notes/api.md").write_text(DB)
    memory = opened(root, "[a](memories/notes/api.md)\n")
    memory.mv("notes/db.md", "notes/api.md")
    assert [link.path for link in memory.references.backlinks("memories/notes/api.md")] == ["AGENTS.md"]
    assert (root / "AGENTS.md").read_text() == "[a](memories/memories/notes/api.md)\n"


@pytest.mark.parametrize("mounted", ["AGENTS.md", "rules/project.md"])
def test_a_link_to_a_mounted_file_means_the_memory_and_stays_right_on_disk(root: Path, mounted: str) -> None:
    config = root / "memories/.mdmem/config.toml"
    config.write_text(config.read_text().replace('"AGENTS.md" =', f'"{mounted}" ='))
    (root / "memories/notes/db.md").write_text("[a](../../AGENTS.md#rules)\n")
    memory = opened(root, "# A\n\n## Rules\n")
    assert not memory.check()
    assert [link.path for link in memory.references.backlinks(mounted)] == ["notes/db.md"]
    memory.rename_heading(mounted, "Rules", "Laws")
    memory.mv("notes/db.md", "db.md")
    assert [link.path for link in memory.references.backlinks(mounted)] == ["db.md"]
    assert (root / "memories/db.md").read_text() == "[a](../AGENTS.md#laws)\n"


@pytest.mark.parametrize(
    ("agents", "after"),
    [
        ("[a](memories/notes/db.md#keys)", "[a](memories/notes/database.md#keys)"),
        ("[a](notes/db.md)", "[a](notes/database.md)"),
        ("[a][b]\n\n[b]: ./memories/notes/db", "[a][b]\n\n[b]: ./memories/notes/database"),
    ],
)
def test_doctor_mends_a_link_whose_target_another_program_moved(root: Path, agents: str, after: str) -> None:
    memory = opened(root, f"{agents}\n")
    memory.sync()
    (root / "memories/notes/db.md").rename(root / "memories/notes/database.md")
    (found,) = memory.check()
    assert "it has moved to notes/database.md: `mdmem doctor --fix`" in found.hint
    memory.doctor(fix=True)
    assert (root / "AGENTS.md").read_text() == f"{after}\n"
    assert not memory.check()


def test_a_link_to_the_mounted_file_still_leads_there_on_disk_after_a_move(root: Path) -> None:
    (root / "memories/notes/db.md").write_text("[a](../../AGENTS.md#rules)\n")
    memory = opened(root, "# A\n\n## Rules\n")
    for old, new, link in (
        ("notes/db.md", "notes/deep/db.md", "../../../AGENTS.md#rules"),
        ("notes/deep/db.md", "db.md", "../AGENTS.md#rules"),
    ):
        memory.mv(old, new)
        assert (root / "memories" / new).read_text() == f"[a]({link})\n"


def test_doctor_mends_a_link_to_the_mounted_file_in_a_memory_that_another_program_moved(root: Path) -> None:
    (root / "memories/notes/db.md").write_text("[a](../../AGENTS.md#rules)\n\n[b](api.md)\n")
    (root / "memories/notes/api.md").write_text("# Api\n")
    memory = opened(root, "# A\n\n## Rules\n")
    memory.sync()
    (root / "memories/notes/deep").mkdir()
    (root / "memories/notes/db.md").rename(root / "memories/notes/deep/db.md")
    memory.doctor(fix=True)
    text = (root / "memories/notes/deep/db.md").read_text()
    assert text == "[a](../../../AGENTS.md#rules)\n\n[b](../api.md)\n"
    assert not memory.check()


@pytest.mark.soak
def test_a_server_of_editors_follows_and_renames_links_from_where_the_file_stands(root: Path) -> None:
    text = "# A\n\n## Rules\n\n[a](memories/notes/db.md#keys) [b](#rules)\n"
    agents, note = root / "AGENTS.md", root / "memories/notes/db.md"
    agents.write_text(text)
    note.write_text(f"{DB}\n[a](../../AGENTS.md#rules)\n")
    with Client(cwd=root) as client:
        client.initialize(root)
        editor = Editor(client)
        editor.open(agents)
        assert client.codes(agents, []) is not None
        (goal,) = editor.ask("definition", agents, text.index("db.md"))
        assert goal["targetUri"] == uri(note)
        assert goal["targetRange"]["start"]["line"] == 2
        (goal,) = editor.ask("definition", note, editor.text(note).index("AGENTS"))
        assert goal["targetUri"] == uri(agents)
        asked = {"context": {"includeDeclaration": False}}
        places = editor.ask("references", note, DB.index("Keys"), **asked)
        assert {place["uri"] for place in places} == {uri(agents)}
        editor.apply(editor.ask("rename", note, DB.index("Keys"), newName="Names"))
        editor.apply(editor.ask("rename", agents, text.index("Rules"), newName="Laws"))
        old, new = note, root / "memories/database.md"
        moved = {"files": [{"oldUri": uri(old), "newUri": uri(new)}]}
        editor.apply(client.request("workspace/willRenameFiles", moved))
        assert editor.text(agents) == "# A\n\n## Laws\n\n[a](memories/database.md#names) [b](#laws)\n"
        assert editor.text(old) == "# Db\n\n## Names\n\n[a](../AGENTS.md#laws)\n"


def test_in_the_past_links_lead_from_where_the_files_stood(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    text = "# A\n\n## Rules\n\n[a](memories/notes/db.md#keys)\n"
    memory.write("AGENTS.md", text, overwrite=True)
    memory.write("notes/db.md", f"{DB}\n[a](../../AGENTS.md#rules)\n")
    git("add", "-A")
    git("commit", "-qm", "then")
    memory.rm("notes/db.md")
    memory.write("AGENTS.md", "# Now\n", overwrite=True)
    assert memory.show("AGENTS.md", as_of="HEAD").text == text
    past = memory.past("HEAD")
    assert not past.check()
    assert [link.path for link in past.references.backlinks("notes/db.md")] == ["AGENTS.md"]
    assert [link.path for link in past.references.backlinks("AGENTS.md")] == ["notes/db.md"]
