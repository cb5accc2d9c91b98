"""Making a vault writes its config and what git leaves out, and never over what is there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mdmem.errors import AlreadyExists, StorageFailed
from mdmem.vault import config
from mdmem.vault.init import init
from mdmem.vault.vault import Vault


def files_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_vault_has_a_config_and_leaves_working_memory_out_of_git(tmp_path: Path) -> None:
    made = init(tmp_path / "memories")
    assert made.root == str(tmp_path / "memories")
    assert files_below(tmp_path / "memories") == {
        ".gitignore": "working/\n",
        ".mdmem/config.toml": config.DEFAULT_TEXT,
    }
    assert made.files == files_below(tmp_path / "memories")
    assert json.loads(json.dumps(made.as_dict())) == {"root": made.root, "files": made.files}
    assert Vault(made.root).config == config.Config()
    assert list(Vault(made.root).walk()) == []


@pytest.mark.parametrize("folder", ["memories", "docs/agent/memories"])
def test_in_a_repository_its_project_memory_is_mounted(tmp_path: Path, folder: str) -> None:
    (tmp_path / ".git").mkdir()
    root = tmp_path / folder
    vault = Vault(init(root).root)
    up = "/".join([".."] * len(Path(folder).parts))
    assert vault.config.mounts == {"AGENTS.md": f"{up}/AGENTS.md"}
    assert vault.mounts == {"AGENTS.md": ("AGENTS.md",)}
    assert not (tmp_path / "AGENTS.md").exists()


def test_a_worktree_is_a_repository_too(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert "AGENTS.md" in Vault(init(tmp_path / "memories").root).mounts


def test_a_dry_run_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    planned = init(tmp_path / "memories", dry_run=True)
    assert not (tmp_path / "memories").exists()
    assert init(tmp_path / "memories") == planned


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    (tmp_path / "a.md").write_bytes(b"a\r\n")
    made = init(tmp_path)
    assert list(made.files) == [".mdmem/config.toml"]
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert Vault(made.root).read("a.md").data == b"a\r\n"


def test_a_vault_is_not_made_twice(tmp_path: Path) -> None:
    init(tmp_path)
    (tmp_path / ".mdmem/config.toml").write_text("[trash]\nmax_days = 1\n")
    for dry_run in (True, False):
        with pytest.raises(AlreadyExists) as refused:
            init(tmp_path, dry_run=dry_run)
        assert refused.value.path == str(tmp_path / ".mdmem/config.toml")
    assert Vault(str(tmp_path)).config.trash.max_days == 1


def test_a_relative_folder_and_a_link_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    assert init("link").root == str(tmp_path / "real")
    assert init().root == str(tmp_path / "memories")


def test_where_no_vault_can_be_made_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed) as refused:
        init(tmp_path / "file" / "memories")
    assert refused.value.path == str(tmp_path / "file" / "memories")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "memories"
    elsewhere.mkdir()
    root.mkdir()
    os.symlink(elsewhere, root / ".mdmem")
    with pytest.raises(StorageFailed):
        init(root)
    assert list(elsewhere.iterdir()) == []
