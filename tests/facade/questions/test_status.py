"""The status: numbers that others give as well, and no error whatever is wrong."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.diagnostic import as_json

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Memories in a repository, with something of each kind that waits for somebody."""
    git(tmp_path, "init", "-q")
    (tmp_path / "app.py").write_text("first = 1\nsecond = 2\n")
    (tmp_path / "AGENTS.md").write_text("# Demo\n")
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/a.md", "[[gone]] [b](b.md) [x](none.md)\n\nSee `app.py#L1`.\n")
    memory.write("notes/b.md", "See `app.py#L2`.\n")
    memory.write("users/ann/notes/c.md", "[[gone]]\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "all")
    memory.inbox.propose("append", {"path": "notes/b.md", "text": "More."})
    return memory


def test_it_counts_what_waits(memory: Memory, tmp_path: Path) -> None:
    found = memory.status()
    assert (found.root, found.scope, found.memories) == (memory.root, "all of it", len(memory.ls()))
    assert (found.uncommitted, found.proposals, found.stale, found.broken) == (1, 1, 0, 3)
    assert found.setup == ("no agent is set up: `mdmem install claude-code`",)
    (tmp_path / "app.py").write_text("other = 1\nsecond = 2\n")
    memory.append("notes/a.md", "more")
    (tmp_path / "memories/notes/b.md").touch()  # written, and as it was
    memory.write("notes/new.md", "new\n")
    found = memory.status()
    assert (found.uncommitted, found.stale, found.broken) == (3, 1, 3)
    assert found.stale == sum(len(each.places) for each in memory.references.stale())
    assert found.uncommitted == len({each.path for each in memory.git.diff()})
    memory.mv("notes/a.md", "notes/moved.md")  # one memory, in git two files
    assert memory.status().uncommitted == 3


def test_memories_that_git_could_not_merge_are_told(memory: Memory, tmp_path: Path) -> None:
    git(tmp_path, "checkout", "-qb", "other")
    for side in ("theirs", "ours"):
        memory.write("notes/b.md", f"{side}\n", overwrite=True)
        git(tmp_path, "commit", "-qam", side)
        if side == "theirs":
            git(tmp_path, "checkout", "-qb", "own", "HEAD~1")
    with pytest.raises(subprocess.CalledProcessError):
        git(tmp_path, "merge", "other")
    assert (
        memory.status().setup[0] == "1 memory has merge conflicts: `git status` and `mdmem check` say where"
    )
    ann = mdmem.open(memory.root, mdmem.Scope(user="ann"))
    assert not any("merge" in each for each in ann.status().setup)


def test_memories_that_git_ignores_are_told_without_those_that_mdmem_keeps_out(
    memory: Memory, tmp_path: Path
) -> None:
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "more")
    memory.working.update("Goal: x", thread="t1")
    assert len(memory.status().setup) == 1
    (tmp_path / ".gitignore").write_text("*.md\n")
    memory.write("notes/new.md", "new\n")
    found = memory.status()
    file = f"{memory.root}/notes/new.md"
    assert (
        found.setup[0] == f"git ignores 1 memory: notes/new.md; `git check-ignore -v {file}` names the rule"
    )
    assert found.uncommitted == 0
    assert not any(
        "ignores" in each for each in mdmem.open(memory.root, mdmem.Scope(user="a")).status().setup
    )


def test_a_scope_is_told_of_its_own_only(memory: Memory) -> None:
    ann = mdmem.open(memory.root, mdmem.Scope(user="ann", resource_type="db", resource_id="x")).status()
    assert (ann.scope, ann.memories) == ("user ann, resource db/x", 0)
    ann = mdmem.open(memory.root, mdmem.Scope(user="ann")).status()
    assert (ann.memories, ann.uncommitted, ann.proposals, ann.broken) == (1, 0, 0, 1)
    assert mdmem.open(memory.root, mdmem.Scope(shared=True)).status().scope == "shared"


def test_it_counts_files_that_are_no_memories_by_their_names(vault_root: Path) -> None:
    for name in ("a.mdx", "b.mdx", "c.txt"):
        (vault_root / name).write_text("text\n")
    assert mdmem.open(vault_root).status().passed_over == {".mdx": 2, ".txt": 1}


def test_without_a_repository_nothing_is_uncommitted_nor_committed(vault_root: Path) -> None:
    found = mdmem.open(vault_root).status()
    assert (found.memories, found.uncommitted, found.stale, found.broken) == (0, None, 0, 0)


def test_settings_that_are_a_pipe_are_not_waited_for(memory: Memory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".mcp.json")
    assert any("no agent" in each for each in memory.status().setup)


def test_what_is_wrong_with_the_setup_is_told(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").unlink()
    config = tmp_path / "memories/.mdmem/config.toml"
    config.write_text('[mounts]\n"AGENTS.md" = "../AGENTS.md"\n[git]\ncommit = "auto"\n')
    (tmp_path / "memories/notes/bad.md").write_bytes(b"\xff\xfe")
    told = "\n".join(mdmem.open(memory.root).status().setup)
    for part in ("`mdmem git allow commit`", "1 file cannot be read"):
        assert part in told
    assert "no AGENTS.md yet: `mdmem append AGENTS.md TEXT` makes it" in told
    (tmp_path / "memories/AGENTS.md").write_text("# Hidden\n")
    assert any("AGENTS.md: a file of the vault is hidden" in each for each in memory.status().setup)
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"mdmem": {}}}')
    assert not any("no agent" in each for each in memory.status().setup)


def test_a_current_folder_that_is_gone_is_no_error(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert memory.status().setup == ("no agent is set up: `mdmem install claude-code`",)


def test_a_config_that_cannot_be_used_is_told_and_no_error(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "memories/.mdmem/config.toml").write_text("nonsense = [")
    found = mdmem.open(memory.root).status()
    assert found.memories is None
    assert "config" in found.setup[0]
    assert as_json(found)["setup"] == list(found.setup)


PICTURES = ("memories/notes/img.png", "memories/p/one/twice.png", "memories/p/two/twice.png")


def test_pages_that_nobody_has_written_are_not_broken_links(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / "n.md").write_text(
        "---\nup: '[[Up]]'\n---\n[[Nope]] [[n#none]] [x](gone/x.md) [[n]]\n", "utf-8"
    )
    memory = mdmem.open(mdmem.init(tmp_path).root)
    told = [each.severity for each in memory.check() if each.code == "dangling-link"]
    found = memory.status()
    assert (found.broken, found.unwritten) == (told.count("warning"), told.count("note")) == (2, 2)


# Links of each kind that can be broken, and of each that only seems to be.
LINKED = {
    "notes/a.md": "[r][x] [r2][x] [y][] [[gone]] [[gone]]\n\n[x]: gone.md\n[y]: b.md\n",
    "notes/b.md": (
        "# H\n\n# H\n\nline ^blk\n\n[[#H]] [[a#Nope]] [[a#^no]] [[b#^blk]] [i](img.png) [i](none.png)"
        " [m](../AGENTS.md) [m](../../AGENTS.md#nope) [q](../../src/app.py) [w](../../src/no.py)\n"
    ),
    "notes/pictures.md": "![[img.png]] ![[twice.png]] ![[one/twice.png]] ![[no.png]]\n",
    "notes/c.md": "[[twin]] [[twin/]] [[A]] `src/no.py#L3`\n",
    "notes/d.md": "---\nderived_from: [notes/nope.md, notes/a.md]\n---\n\n[old](old.md)\n",
    "notes/one/twin.md": "[c](../c.md) [c](c.md)\n",
    "notes/two/twin.md": "[[one/twin]] [[two/one/twin]]\n",
    "notes/old.md": "A memory that moves.\n",
    "users/ann/notes/u.md": "[[gone]] [[a]] [x](../../../notes/a.md)\n",
    "users/ann/notes/v.md": "[[u]] [[u#none]]\n",
    "projects/p/notes/u.md": "[[gone]] [[a]] [[u]]\n",
    "AGENTS.md": "# Demo\n\n[d](docs/x.md) [n](memories/notes/a.md) [g](memories/notes/no.md) [[b]] [[no]]\n",
}


@pytest.mark.parametrize("silenced", ["[]", '["ambiguous-link"]', '["dangling-link", "ambiguous-link"]'])
def test_as_many_links_are_broken_as_a_check_finds(tmp_path: Path, silenced: str) -> None:
    git(tmp_path, "init", "-q")
    for name in ("AGENTS.md", "docs/x.md", "src/app.py", *PICTURES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    root = tmp_path / "memories"
    memory = mdmem.open(mdmem.init(root).root)
    for path, text in LINKED.items():
        memory.write(path, text, overwrite=True)
    memory.sync()
    (root / "notes/moved").mkdir()
    (root / "notes/old.md").rename(root / "notes/moved/old.md")
    (root / ".mdmem/config.toml").write_text(
        f'[mounts]\n"AGENTS.md" = "../AGENTS.md"\n[check]\nsilenced = {silenced}\n'
    )
    counts = {}
    for scope in ({}, {"user": "ann"}, {"project": "p"}, {"shared": True}):
        inside = mdmem.open(root, mdmem.Scope(**scope))
        codes = [each.code for each in inside.check()]
        found = inside.status()
        counts[str(scope)] = found.broken
        wrong = (codes.count("dangling-link"), codes.count("ambiguous-link"))
        assert (found.broken, found.ambiguous) == wrong, scope
    assert all(counts.values()) is ("dangling-link" not in silenced)
