"""The folder of a vault: where one is found and made, and the files of the workspace that it mounts.

A mount shows one file of the workspace, and nothing else of the workspace can be reached by it. Making a
vault writes its config and what git leaves out, and never over what is there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mdmem.diagnostic import as_json
from mdmem.document.edit import append
from mdmem.errors import (
    AlreadyExists,
    ConfigInvalid,
    MemoryNotFound,
    PathRefused,
    StorageFailed,
    Usage,
    VaultNotFound,
)
from mdmem.kind import KINDS, MEANINGS, NAMESPACES
from mdmem.vault import config
from mdmem.vault.config import CONFIG_PATH, Config
from mdmem.vault.folder import find, find_git_root, init, resolve, workspace_of
from mdmem.vault.plan import Change, EditPlan, edit
from mdmem.vault.vault import Vault
from tests.tables import cases


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a vault in `memories`, beside a folder that is none of its business."""
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / "docs").mkdir()
    (work / "memories/.mdmem").mkdir(parents=True)
    (work / "AGENTS.md").write_bytes(b"# Project\r\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_bytes(b"secret\n")
    return work


def mounted(work: Path, target: str = "../AGENTS.md", path: str = "AGENTS.md", namespace: str = "") -> Vault:
    (work / "memories" / CONFIG_PATH).write_text(f"[mounts]\n{path!r} = {target!r}\n")
    return Vault(str(work / "memories"), namespace)


def grow(vault: Vault, path: str = "AGENTS.md", text: str = "more") -> None:
    document = vault.read(path)
    vault.apply(edit(document, append(document, text), "grow"))


# ------------------------------------------------------------------------------------------------- workspace


def test_the_workspace_is_the_repository_or_the_parent(tmp_path: Path) -> None:
    root = tmp_path / "a/b/memories"
    root.mkdir(parents=True)
    if workspace_of(str(tmp_path)) == str(tmp_path.parent):
        assert workspace_of(str(root)) == str(tmp_path / "a/b")
    (tmp_path / "a/.git").write_text("gitdir: elsewhere\n")
    assert workspace_of(str(root)) == str(tmp_path / "a")
    assert find_git_root(str(root)) == find_git_root(str(tmp_path / "a")) == str(tmp_path / "a")
    (root / ".git").mkdir()
    assert find_git_root(str(root)) == str(root)
    assert workspace_of(str(root)) == str(tmp_path / "a")


def test_a_vault_that_is_the_repository_is_its_own_workspace(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / ".git").mkdir(parents=True)
    made = init(root)
    if not find_git_root(str(tmp_path)):
        assert workspace_of(made.root) == made.root
        assert '"AGENTS.md"' not in made.files[CONFIG_PATH]


# ------------------------------------------------------------------------------------------------------ find


def test_the_error_names_vaults_one_folder_down_and_opens_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MDMEM_VAULT", raising=False)
    for name in ("b", "a b", "c/deep", *(f"v{number}" for number in range(9))):
        init(tmp_path / name)
    with pytest.raises(VaultNotFound) as refused:
        find()
    assert refused.value.near == ("a b", "b", "v0", "v1", "v2")
    assert "`--vault 'a b'` or `--vault b`" in refused.value.hint
    with pytest.raises(VaultNotFound) as refused:
        find("c")
    assert refused.value.near == ("c/deep",)


def test_the_error_about_a_folder_of_a_vault_names_the_vault(tmp_path: Path) -> None:
    """A vault that is named is looked for in its place alone, and the message says no more."""
    root = init(tmp_path / "memories").root
    inner = Path(root, "users/ann")
    inner.mkdir(parents=True)
    with pytest.raises(VaultNotFound, match=f"^no vault found at {re.escape(str(inner))}\n") as refused:
        find(inner)
    assert refused.value.hint.startswith(f"name the vault around it, `--vault {root}`; --user")
    with pytest.raises(VaultNotFound) as refused:
        find(tmp_path / "beside")
    assert refused.value.around == ""


# --------------------------------------------------------------------------------------------------- resolve


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("../AGENTS.md", ("AGENTS.md",)),
        ("../docs/AGENTS.md", ("docs", "Agents.md")),
        ("../docs/../AGENTS.md", ("AGENTS.md",)),
        ("../docs/missing/a.md", ("docs", "missing", "a.md")),
        ("../docs/a.json", ("docs", "a.json")),
        ("../inside.md", ("docs", "real.md")),
    ],
)
def test_a_file_of_the_workspace_can_be_mounted(work: Path, target: str, parts: tuple[str, ...]) -> None:
    (work / "docs/real.md").write_text("real")
    (work / "docs/Agents.md").write_text("differs in case")
    (work / "inside.md").symlink_to("docs/real.md")
    config = Config(mounts={"AGENTS.md": target})
    assert resolve(config, str(work / "memories"), str(work)) == {"AGENTS.md": parts}


HIDDEN = (".bashrc", ".ssh/authorized_keys", ".vscode/settings.json", "docs/.a.md", "..data/a.md")


@pytest.fixture
def linked(work: Path) -> Path:
    (work / "link.md").symlink_to("../outside/secret.md")
    (work / "folder").symlink_to("../outside")
    (work / "into-vault.md").symlink_to("memories/a.md")
    (work / "git-link").symlink_to(".git")
    (work / "hidden-link.md").symlink_to(".bashrc")
    return work


@cases(
    "path, target, reason",
    [
        ("a.md", "../../outside/secret.md", "leaves the workspace"),
        ("a.md", "/etc/passwd", "leaves the workspace"),
        ("a.md", "../link.md", "leaves the workspace"),
        ("a.md", "../folder/secret.md", "leaves the workspace"),
        ("a.md", "..", "leaves the workspace"),
        ("a.md", "../..", "leaves the workspace"),
        ("a.md", "../AGENTS.md\0", "leaves the workspace"),
        ("a.md", "notes/a.md", "lies in the vault"),
        ("a.md", ".", "lies in the vault"),
        ("a.md", "", "lies in the vault"),
        ("a.md", "../into-vault.md", "lies in the vault"),
        ("a.md", ".mdmem/config.toml", "lies in the vault"),
        ("a.md", "../.git/config", "git's own folder"),
        ("a.md", "../git-link/config", "git's own folder"),
        *(("a.md", f"../{hidden}", "hidden") for hidden in HIDDEN),
        ("a.md", "../hidden-link.md", "hidden"),
        ("a.md", "../Makefile", ".md or .json"),
        ("a.md", "../docs", ".md or .json"),
        ("../a.md", "../AGENTS.md", "no part . or .."),
        ("/a.md", "../AGENTS.md", "relative to the vault"),
        (".mdmem/a.md", "../AGENTS.md", "hidden"),
        ("a.txt", "../AGENTS.md", ".md or .json"),
    ],
)
def test_what_must_not_be_mounted_is_refused(linked: Path, path: str, target: str, reason: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        resolve(Config(mounts={path: target}), str(linked / "memories"), str(linked))
    assert refused.value.path == CONFIG_PATH
    assert refused.value.reason.startswith("[mounts] ")
    assert reason in refused.value.reason
    assert path in refused.value.reason


def test_one_file_is_mounted_once(work: Path) -> None:
    (work / "same.md").symlink_to("AGENTS.md")
    for other in ("../AGENTS.md", "../docs/../AGENTS.md", "../same.md"):
        with pytest.raises(ConfigInvalid, match="mounted twice"):
            resolve(Config(mounts={"a.md": "../AGENTS.md", "b.md": other}), str(work / "memories"), str(work))


def test_two_spellings_of_one_path_are_one_mount_too_many(work: Path) -> None:
    mounts = {"\xe9.md": "../AGENTS.md", "e\u0301.md": "../docs/b.md"}
    with pytest.raises(ConfigInvalid, match="twice"):
        resolve(Config(mounts=mounts), str(work / "memories"), str(work))


# ------------------------------------------------------------------------------------------------- in a vault


def test_an_edit_changes_the_file_that_is_mounted(work: Path) -> None:
    vault = mounted(work)
    (work / "AGENTS.md").chmod(0o640)
    assert vault.read("AGENTS.md").data == b"# Project\r\n"
    grow(vault)
    assert (work / "AGENTS.md").read_bytes() == b"# Project\r\nmore\r\n"
    assert (work / "AGENTS.md").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(work)) == [".git", "AGENTS.md", "docs", "memories"]
    assert [found.path for found in vault.walk()] == ["AGENTS.md"]
    (entry,) = vault.history()
    assert vault.content(entry.files[0].before or "") == b"# Project\r\n"


def test_a_mount_inside_a_namespace_is_seen_from_there_only(work: Path) -> None:
    mounted(work, path="projects/demo/AGENTS.md")
    demo, other = (Vault(str(work / "memories"), f"projects/{name}") for name in ("demo", "other"))
    grow(demo)
    assert (work / "AGENTS.md").read_bytes() == b"# Project\r\nmore\r\n"
    assert [found.path for found in demo.walk()] == ["AGENTS.md"]
    assert list(other.walk()) == []
    with pytest.raises(MemoryNotFound):
        other.read("AGENTS.md")


def test_a_missing_file_can_be_mounted_and_made(work: Path) -> None:
    vault = mounted(work, "../docs/new/b.md", "b.md")
    assert list(vault.walk()) == []
    assert not vault.exists("b.md")
    with pytest.raises(MemoryNotFound):
        vault.read("b.md")
    vault.apply(EditPlan(changes=(Change(path="b.md", before=None, content=b"made\n"),)))
    assert (work / "docs/new/b.md").read_bytes() == b"made\n"
    assert not (work / "memories/b.md").exists()
    vault.apply(EditPlan(changes=(Change(path="b.md", before=vault.read("b.md"), delete=True),)))
    assert (work / "docs").is_dir(), "the folders of the workspace are not ours to remove"
    assert not (work / "docs/new/b.md").exists()


def test_a_mounted_file_can_be_moved_into_the_vault(work: Path) -> None:
    vault = mounted(work)
    vault.apply(
        EditPlan(changes=(Change(path="AGENTS.md", before=vault.read("AGENTS.md"), move_to="n/a.md"),))
    )
    assert (work / "memories/n/a.md").read_bytes() == b"# Project\r\n"
    assert not (work / "AGENTS.md").exists()


def test_a_link_that_takes_the_place_of_a_mounted_file_is_not_followed(work: Path, tmp_path: Path) -> None:
    vault = mounted(work)
    assert vault.exists("AGENTS.md")
    (work / "AGENTS.md").unlink()
    (work / "AGENTS.md").symlink_to(tmp_path / "outside/secret.md")
    with pytest.raises(PathRefused):
        vault.read("AGENTS.md")
    with pytest.raises(PathRefused):
        vault.apply(EditPlan(changes=(Change(path="AGENTS.md", before=None, content=b"x"),)))
    assert (tmp_path / "outside/secret.md").read_bytes() == b"secret\n"


def test_a_bad_mount_is_refused_before_anything_is_read(work: Path) -> None:
    vault = mounted(work, "../../outside/secret.md")
    for action in (lambda: vault.read("AGENTS.md"), lambda: list(vault.walk()), lambda: vault.place("a.md")):
        with pytest.raises(ConfigInvalid, match="leaves the workspace"):
            action()


def test_no_vault_mounts_thousands_of_files(work: Path) -> None:
    mounts = {f"{number}.md": f"../docs/{number}.md" for number in range(101)}
    with pytest.raises(ConfigInvalid, match="101 files, not at most 100"):
        resolve(Config(mounts=mounts), str(work / "memories"), str(work))


# ------------------------------------------------------------------------------------- on another file system

BESIDE = """
import hashlib, os, subprocess, sys
from pathlib import Path
from mdmem.diagnostic import as_json
from mdmem.errors import Invalid, MdmemError
from mdmem.document.edit import append
from mdmem.diagnostic import as_json
from mdmem.vault.mark import signed
from mdmem.vault.plan import Change, EditPlan, edit, together
from mdmem.vault.store import Entry, FileChange
from mdmem.vault.vault import Vault

work = Path(sys.argv[1])
other = work / "other"
subprocess.run(["mount", "-t", "tmpfs", "none", str(other)], check=True)
root = work / "memories"
assert other.stat().st_dev != root.stat().st_dev
(other / "AGENTS.md").write_bytes(b"one\\n")
(other / "AGENTS.md").chmod(0o640)
vault = Vault(str(root))
digest = lambda data: hashlib.sha256(data).hexdigest()
staging = root / ".mdmem/local/staging"


def clean():
    assert os.listdir(other) == ["AGENTS.md"], os.listdir(other)
    assert os.listdir(staging) == [], os.listdir(staging)


def grown(text):
    document = vault.read("AGENTS.md")
    return edit(document, append(document, text), "grow")


def new(path, data=b"new\\n"):
    return EditPlan(changes=(Change(path=path, before=None, content=data),))

"""


def on_another_file_system(work: Path, program: str) -> None:
    """Run a program where `other` of the workspace is a file system of its own, seen by this process only."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        pytest.skip("mounting needs root on Linux")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount")
    (work / "other").mkdir()
    mounted(work, "../other/AGENTS.md")
    command = ["unshare", "-m", sys.executable, "-c", BESIDE + textwrap.dedent(program), str(work)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_elsewhere_a_change_is_exchanged_beside_its_file(work: Path) -> None:
    on_another_file_system(
        work,
        """
        vault.apply(grown("two"))
        assert (other / "AGENTS.md").read_bytes() == b"one\\ntwo\\n"
        assert (other / "AGENTS.md").stat().st_mode & 0o777 == 0o640
        clean()
        assert vault.content(digest(b"one\\n")) == b"one\\n"
        vault.apply(together([grown("three"), new("notes/a.md")], "both"))
        assert (other / "AGENTS.md").read_bytes() == b"one\\ntwo\\nthree\\n"
        assert (root / "notes/a.md").read_bytes() == b"new\\n"
        clean()
        """,
    )


def test_elsewhere_a_memory_is_made_moved_and_deleted(work: Path) -> None:
    on_another_file_system(
        work,
        """
        move = Change(path="AGENTS.md", before=vault.read("AGENTS.md"), move_to="notes/b.md")
        vault.apply(EditPlan(changes=(move,)))
        assert os.listdir(other) == [] and (root / "notes/b.md").read_bytes() == b"one\\n"
        assert (root / "notes/b.md").stat().st_mode & 0o777 == 0o640
        vault.apply(new("AGENTS.md", b"again\\n"))
        assert (other / "AGENTS.md").read_bytes() == b"again\\n"
        clean()
        again = vault.read("AGENTS.md")
        vault.apply(EditPlan(changes=(Change(path="AGENTS.md", before=again, delete=True),)))
        assert os.listdir(other) == [] and os.listdir(staging) == []
        assert vault.content(digest(b"again\\n")) == b"again\\n"
        """,
    )


def test_elsewhere_a_failed_transaction_is_rolled_back(work: Path) -> None:
    """The second file of the transaction cannot be made: where its folder should be there is a file."""
    on_another_file_system(
        work,
        """
        vault.apply(new("notes/a.md"))
        blocked = new("notes/a.md/b.md")
        for plans in ([grown("two"), blocked], [new("b.md"), grown("two"), blocked]):
            try:
                vault.apply(together(plans, "both"))
                raise SystemExit("it was applied")
            except MdmemError as error:
                assert "not a folder" in str(error), error
            assert (other / "AGENTS.md").read_bytes() == b"one\\n"
            clean()
        assert sorted(os.listdir(root / "notes")) == ["a.md"]
        """,
    )


def test_elsewhere_a_crash_is_undone_or_finished(work: Path) -> None:
    on_another_file_system(
        work,
        """
        vault.apply(grown("warm up"))
        before = (other / "AGENTS.md").read_bytes()
        after = before + b"two\\n"
        changes = (
            FileChange(path="AGENTS.md", before=digest(before), after=digest(after)),
            FileChange(path="notes/new.md", before=None, after=digest(b"new\\n")),
        )
        for kind, swapped, expected in (
            ("many", False, before), ("many", True, before), ("done", True, after),
        ):
            entry = Entry(id="x", time="2024-01-01T00:00:00.000Z", actor="", message="", files=changes)
            (staging / f"x.{kind}").write_bytes(signed(as_json(entry)))
            (other / "AGENTS.md").write_bytes(after if swapped else before)
            (other / ".mdmem-x.0").write_bytes(before if swapped else after)
            (root / "notes").mkdir(exist_ok=True)
            (root / "notes/new.md").write_bytes(b"new\\n")
            assert vault.recover() == 1
            assert (other / "AGENTS.md").read_bytes() == expected
            assert (root / "notes/new.md").exists() == (expected == after)
            clean()
        assert vault.content(digest(before)) == before
        """,
    )


def files_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


IGNORED = """\
/working/
/resources/*/*/working/
/projects/*/working/
/projects/*/resources/*/*/working/
/users/*/working/
/users/*/resources/*/*/working/
/users/*/projects/*/working/
/users/*/projects/*/resources/*/*/working/
**/sessions/*.jsonl
**/sessions/.archive/
"""


@cases(
    "path, is_ignored",
    [
        ("working/threads/t.md", True),
        ("users/ada/projects/demo/working/threads/t.md", True),
        ("resources/service/api/working/threads/t.md", True),
        ("users/ada/sessions/t.jsonl", True),
        ("notes/working/a.md", False),
        ("users/ada/notes/working/a.md", False),
        ("users/ada/projects/demo/notes/working/a.md", False),
        ("users/ada/sessions/t.md", False),
    ],
)
def test_git_leaves_out_working_memory_and_no_folder_of_the_same_name(
    tmp_path: Path, path: str, is_ignored: bool
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    init(tmp_path / "memories")
    command = ["git", "-C", str(tmp_path), "check-ignore", "-q", f"memories/{path}"]
    assert (subprocess.run(command, check=False).returncode == 0) is is_ignored


def test_a_vault_has_a_config_and_leaves_working_memory_and_sessions_out_of_git(tmp_path: Path) -> None:
    made = init(tmp_path / "memories")
    assert made.root == str(tmp_path / "memories")
    assert files_below(tmp_path / "memories") == {
        ".gitignore": IGNORED,
        ".mdmem/config.toml": config.DEFAULT_TEXT,
    }
    assert made.files == files_below(tmp_path / "memories")
    assert json.loads(json.dumps(as_json(made))) == {
        "root": made.root,
        "files": made.files,
        "ignored": [],
        "unignored": [],
        "passed_over": {},
        "meanings": {},
        "fields": {},
        "misnamed": {},
        "unmounted": "",
        "is_found": False,
        "above": "",
        "repository": "",
    }
    assert Vault(made.root).config == config.Config()
    assert list(Vault(made.root).walk()) == []


@pytest.mark.parametrize("folder", ["memories", "docs/agent/memories"])
def test_in_a_repository_its_project_memory_is_mounted(tmp_path: Path, folder: str) -> None:
    (tmp_path / ".git").mkdir()
    root = tmp_path / folder
    vault = Vault(init(root).root)
    up = "/".join([".."] * len(Path(folder).parts))
    assert vault.config.mounts == {"AGENTS.md": f"{up}/AGENTS.md"}
    assert vault.disk.mounts == {"AGENTS.md": ("AGENTS.md",)}
    assert not (tmp_path / "AGENTS.md").exists()


@pytest.mark.parametrize("is_in_both", [False, True])
def test_a_project_memory_of_the_folder_is_not_hidden_by_a_mount(tmp_path: Path, is_in_both: bool) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/AGENTS.md").write_text("# Own\n")
    if is_in_both:
        (tmp_path / "AGENTS.md").write_text("# Root\n")
    made = init(tmp_path / "kb")
    assert made.unmounted == ("../AGENTS.md" if is_in_both else "")
    vault = Vault(made.root)
    assert (vault.config.mounts, [file.path for file in vault.walk()]) == ({}, ["AGENTS.md"])
    assert vault.read("AGENTS.md").text == "# Own\n"
    file = tmp_path / "kb/.mdmem/config.toml"
    file.write_text(file.read_text().replace('\n# "AGENTS.md"', '\n"AGENTS.md"'))
    assert Vault(made.root).config.mounts == {"AGENTS.md": "../AGENTS.md"}


@pytest.mark.parametrize(("link", "file"), [("AGENTS.md", "kb/AGENTS.md"), ("kb/AGENTS.md", "AGENTS.md")])
def test_a_project_memory_of_which_one_name_is_a_link_is_a_memory(
    tmp_path: Path, link: str, file: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "kb").mkdir()
    (tmp_path / file).write_text("# One\n")
    (tmp_path / link).symlink_to(tmp_path / file)
    made = init(tmp_path / "kb")
    assert (made.unmounted, Vault(made.root).read("AGENTS.md").text) == ("", "# One\n")


def test_a_worktree_is_a_repository_too(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert "AGENTS.md" in Vault(init(tmp_path / "memories").root).disk.mounts


def test_a_dry_run_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    planned = init(tmp_path / "memories", dry_run=True)
    assert not (tmp_path / "memories").exists()
    assert init(tmp_path / "memories") == planned


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text(f"mine\n{IGNORED}")
    (tmp_path / "a.md").write_bytes(b"a\r\n")
    made = init(tmp_path)
    assert list(made.files) == [".mdmem/config.toml"]
    assert (tmp_path / ".gitignore").read_text() == f"mine\n{IGNORED}"
    assert Vault(made.root).read("a.md").data == b"a\r\n"


@cases(
    "before, between",
    [
        (b"", b""),
        (b"# mine\n.obsidian/workspace.json\n", b""),
        (b"mine", b"\n"),
        (b"mine\r\n", b""),
        (b"mine\r\nlast", b"\r\n"),
        (b"caf\xe9\n", b""),
    ],
)
def test_an_ignore_file_that_is_there_gets_the_lines_that_it_lacks(
    tmp_path: Path, before: bytes, between: bytes
) -> None:
    file = tmp_path / ".gitignore"
    file.write_bytes(before)
    file.chmod(0o600)
    planned = init(tmp_path, dry_run=True)
    assert (file.read_bytes(), planned.ignored) == (before, tuple(IGNORED.splitlines()))
    assert init(tmp_path) == planned
    end = "\r\n" if b"\r" in before else "\n"
    assert file.read_bytes() == before + between + IGNORED.replace("\n", end).encode()
    assert file.stat().st_mode & 0o777 == 0o600
    (tmp_path / ".mdmem/config.toml").unlink()
    assert init(tmp_path).ignored == ()


def test_lines_of_ours_and_wider_ones_are_not_added_again(tmp_path: Path) -> None:
    before = b"working/\r\n**/sessions/*.jsonl  \r\n!working/\r\n"
    (tmp_path / ".gitignore").write_bytes(before)
    assert init(tmp_path).ignored == ("**/sessions/.archive/",)
    assert (tmp_path / ".gitignore").read_bytes() == before + b"**/sessions/.archive/\r\n"


@pytest.mark.parametrize("kind", ["link", "dangling", "folder"])
def test_an_ignore_file_that_is_no_file_is_left_and_its_lines_are_told(tmp_path: Path, kind: str) -> None:
    root, file = tmp_path / "memories", tmp_path / "memories/.gitignore"
    root.mkdir()
    (tmp_path / "target").write_text("mine\n")
    if kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("../target" if kind == "link" else "../none")
    made = init(root)
    assert (made.ignored, made.unignored) == ((), tuple(IGNORED.splitlines()))
    assert ((tmp_path / "target").read_text(), (tmp_path / "none").exists()) == ("mine\n", False)


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


def test_where_the_current_folder_is_gone_a_vault_has_to_be_named(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MDMEM_VAULT", raising=False)
    (work / "memories" / CONFIG_PATH).touch()
    gone = work / "memories/notes"
    gone.mkdir()
    with contextlib.chdir(gone):
        gone.rmdir()
        for call in (find, init, lambda: find("memories"), lambda: init(tmp_path / "new")):
            with pytest.raises(Usage, match="the current folder is gone\n`cd` to another"):
                call()
        assert find(work / "memories") == str(work / "memories")
    assert not (tmp_path / "new").exists()


def test_a_file_is_made_no_vault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine\n")
    for dry_run in (True, False):
        with pytest.raises(PathRefused, match="a file stands there"):
            init(tmp_path / "file", dry_run=dry_run)
    assert (tmp_path / "file").read_text() == "mine\n"


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


def test_folders_that_get_a_meaning_are_named(tmp_path: Path) -> None:
    for path in (
        "working/list.md",
        "rules/games/chess.md",
        "deep/rules/a.md",
        "notes/a.md",
        "sessions/x.jsonl",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("", "utf-8")
    (tmp_path / "users").mkdir()
    for is_tried in (True, False):
        made = init(tmp_path, dry_run=is_tried)
        assert list(made.meanings) == ["rules", "working", "sessions"]


def test_fields_that_say_what_counts_are_counted(tmp_path: Path) -> None:
    for name, head in {
        "a.md": "expires: 2020-01-01\ntags: [x]",
        "deep/b.md": "expires: 2030-01-01\nsuperseded_by: '[[a]]'",
        "c.md": "expires:",
        "d.md": "expires: [",
        "e.md": "title: tier",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"---\n{head}\n---\n\nexpires: 2020-01-01\n", "utf-8")
    (tmp_path / "f.md").write_bytes(b"---\nexpires: 2020-01-01\n---\n\xff\n")
    (tmp_path / "g.md").symlink_to(tmp_path / "a.md")
    for is_tried in (True, False):
        assert init(tmp_path, dry_run=is_tried).fields == {"expires": 2, "superseded_by": 1}


def test_each_folder_with_a_meaning_has_one_to_tell() -> None:
    folders = {kind.folder for kind in KINDS} | NAMESPACES.keys()
    assert MEANINGS.keys() == folders - {"", "notes"}
