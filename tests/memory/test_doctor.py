"""The doctor: what it tells of a vault, what it finds wrong, and that nothing wrong stops it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mdmem.memory.doctor import Health
from mdmem.memory.memory import Memory
from mdmem.vault import lock
from mdmem.vault.init import init
from mdmem.vault.scope import Scope

STAGING = ".mdmem/local/staging"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A vault in a repository, whose project memory is mounted."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("# Project\n")
    return Path(init(tmp_path / "memories").root)


@pytest.fixture
def staging(root: Path) -> Path:
    (root / STAGING).mkdir(parents=True)
    (root / ".mdmem/local/trash").mkdir()
    return root / STAGING


def health(root: Path) -> Health:
    return Memory(str(root)).doctor()


def findings(root: Path) -> list[tuple[str, str, str]]:
    return [(f.path, f.code, f.severity) for f in health(root).findings]


def test_a_sound_vault_has_facts_and_no_findings(root: Path) -> None:
    memory = Memory(str(root))
    memory.write("a.md", "one")
    memory.write("a.md", "two", overwrite=True)
    found = memory.doctor()
    assert found.findings == ()
    assert found.facts["vault"] == str(root)
    assert found.facts["workspace"] == str(root.parent)
    assert found.facts["memories"] == 2
    assert found.facts["recovered"] == 0
    assert found.facts["kept versions"] == 1
    assert str(found.facts["ripgrep"]).split()[0].endswith("rg")
    assert found.as_dict() == {"facts": found.facts, "findings": []}


def test_a_scope_counts_its_own_memories(root: Path) -> None:
    Memory(str(root), Scope(user="alice")).write("a.md", "one")
    assert Memory(str(root), Scope(user="alice")).doctor().facts["memories"] == 1
    assert Memory(str(root), Scope(user="bob")).doctor().facts["memories"] == 0


def test_looking_changes_nothing_but_what_can_be_deleted(root: Path) -> None:
    before = sorted(root.rglob("*"))
    health(root)
    local = root / ".mdmem/local"
    assert sorted(p for p in root.rglob("*") if not p.is_relative_to(local)) == before
    assert {p.name for p in local.iterdir()} == {".gitignore", "index", "staging", "trash"}
    assert not list((local / "staging").iterdir())
    assert not list((local / "trash").iterdir())


# ------------------------------------------------------------------------------------------ what a crash left


def test_what_a_crash_left_is_put_right_first(root: Path, staging: Path) -> None:
    (staging / "20240131T120000000000-aaaa.one").write_text("{")  # torn: nothing had happened yet
    (staging / "20240131T120000000000-aaaa.0").write_text("new content")
    found = health(root)
    assert found.facts["recovered"] == 1
    assert found.findings == ()
    assert not os.listdir(staging)
    assert found.facts["kept versions"] == 1


def test_what_nothing_will_finish_is_a_leftover(root: Path) -> None:
    (root.parent / ".mdmem-20240131T120000000000-aaaa.0").write_text("staged beside the mounted file")
    (root.parent / ".mdmem.toml").write_text("somebody else's")
    assert findings(root) == [("../.mdmem-20240131T120000000000-aaaa.0", "leftover", "error")]


def test_what_another_process_is_writing_is_no_leftover(root: Path, staging: Path) -> None:
    change = "20240131T120000000000-aaaa"
    with lock.held(str(root / ".mdmem/local/lock"), 1):
        (staging / f"{change}.one").write_text("{}")
        (staging / f"{change}.0").write_text("new content")
        (root.parent / f".mdmem-{change}.0").write_text("new content")
        assert findings(root) == []
        assert sorted(os.listdir(staging)) == [f"{change}.0", f"{change}.one"]


# ----------------------------------------------------------------------------------------------------- mounts


def test_a_mounted_file_that_is_not_there_is_a_warning(root: Path) -> None:
    (root.parent / "AGENTS.md").unlink()
    assert findings(root) == [("AGENTS.md", "mount-missing", "warning")]


def test_a_file_that_a_mount_hides_is_an_error(root: Path) -> None:
    (root / "AGENTS.md").write_text("nobody sees this")
    assert findings(root) == [("AGENTS.md", "mount-shadows", "error")]


def test_a_mount_that_leaves_the_workspace_is_an_error_of_the_config(root: Path) -> None:
    (root / ".mdmem/config.toml").write_text('[mounts]\n"a.md" = "/etc/passwd"\n')
    assert findings(root) == [(".mdmem/config.toml", "config-invalid", "error")]


# ---------------------------------------------------------------------------------------- config and schemas


@pytest.mark.parametrize(
    "config", ["[limits", "[limits]\nmax_bytes = -1\n", "[unknown]\n", "a = 1\n", "\xff", "[mounts]\na = 1\n"]
)
def test_a_broken_config_is_one_finding_and_the_rest_is_still_looked_at(root: Path, config: str) -> None:
    (root / ".mdmem/config.toml").write_bytes(config.encode("latin-1"))
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/bad.json").write_text("{")
    found = health(root)
    assert [f.path for f in found.findings] == [".mdmem/config.toml", ".mdmem/schemas/bad.json"]
    assert found.findings[0].code == "config-invalid"
    assert "ripgrep" in found.facts


def test_broken_schemas_are_found(root: Path) -> None:
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/type.json").write_text('{"type": "nothing"}')
    (root / ".mdmem/schemas/ref.json").write_text('{"$ref": "missing"}')
    (root / ".mdmem/schemas/good.json").write_text('{"$ref": "note"}')
    assert {path for path, _, severity in findings(root) if severity == "error"} == {
        ".mdmem/schemas/type.json",
        ".mdmem/schemas/ref.json",
    }


# -------------------------------------------------------------------------------------- names and programs


def test_files_that_cannot_be_memories_are_warnings(root: Path) -> None:
    (root / "link.md").symlink_to("AGENTS.md")
    (root / "notes").mkdir()
    (root / "notes/tab\there.md").touch()
    assert findings(root) == [
        ("link.md", "not-a-memory", "warning"),
        ("notes/tab\\x09here.md", "not-a-memory", "warning"),
    ]


def test_a_missing_ripgrep_is_found_and_named(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = health(root)
    assert [(f.path, f.code) for f in found.findings] == [("rg", "ripgrep-missing")]
    assert "pip install" in found.findings[0].hint
    assert "ripgrep" not in found.facts


def test_a_ripgrep_that_cannot_be_run_is_found(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/rg"
    program.parent.mkdir()
    program.write_text("no program")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    assert [f.code for f in health(root).findings] == ["ripgrep-failed"]


def test_everything_wrong_at_once_is_told_at_once(root: Path) -> None:
    (root.parent / ".mdmem-x.0").touch()
    (root / "AGENTS.md").touch()
    (root / "link.md").symlink_to("AGENTS.md")
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/bad.json").write_text("{")
    assert {code for _, code, _ in findings(root)} == {
        "leftover",
        "mount-shadows",
        "not-a-memory",
        "invalid-json",
    }
