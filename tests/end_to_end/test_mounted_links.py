"""Links in a mounted memory, and to one, mean what they mean where its file stands on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mdmem

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
