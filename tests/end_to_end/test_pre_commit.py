"""The hooks that this repository offers to pre-commit, run by the real one in a fresh clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import mdmem
from tests.git.conftest import SETTINGS

CHECKOUT = Path(__file__).parents[2]
HOOKS = CHECKOUT / ".pre-commit-hooks.yaml"


class Clone(NamedTuple):
    """A clone of somebody's repository, with a vault in it."""

    root: Path
    cache: Path

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MDMEM_", "GIT_"))}
        bin_ = os.path.dirname(sys.executable)
        environ = (
            own | SETTINGS | {"PRE_COMMIT_HOME": str(self.cache), "PATH": f"{bin_}{os.pathsep}{own['PATH']}"}
        )
        return subprocess.run(words, cwd=self.root, env=environ, capture_output=True, text=True, check=check)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.run("git", "add", "--all")

    def hooks(self, *words: str) -> tuple[int, str]:
        ended = self.run(sys.executable, "-m", "pre_commit", "run", *words, check=False)
        return ended.returncode, ended.stdout + ended.stderr


def cloned(tmp_path: Path, config: str) -> Clone:
    origin, clone = (Clone(tmp_path / name, tmp_path / "cache") for name in ("origin", "clone"))
    origin.root.mkdir()
    origin.run("git", "init", "--quiet")
    mdmem.init(origin.root / "memories")
    origin.write("memories/notes/db.md", "---\ntags: [a]\n---\n# Database\n")
    origin.write("README.md", "# Not a memory [[nowhere]]\n")
    origin.write(".pre-commit-config.yaml", config)
    origin.run("git", "commit", "--quiet", "--message", "m")
    origin.run("git", "clone", "--quiet", str(origin.root), str(clone.root))
    return clone


def test_the_hooks_are_what_pre_commit_takes(tmp_path: Path) -> None:
    clone = cloned(tmp_path, "repos: []\n")
    clone.run(sys.executable, "-m", "pre_commit", "validate-manifest", str(HOOKS))
    hooks = {hook["id"]: hook for hook in yaml.safe_load(HOOKS.read_text())}
    assert hooks.keys() == {"mdmem-check", "mdmem-links"}
    assert {hook["language"] for hook in hooks.values()} == {"python"}


def test_the_hooks_find_what_is_wrong_in_a_fresh_clone(tmp_path: Path) -> None:
    """With the mdmem of this environment, so that nothing is fetched."""
    hooks = [hook | {"language": "system"} for hook in yaml.safe_load(HOOKS.read_text())]
    clone = cloned(tmp_path, yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    code, told = clone.hooks("--all-files")
    assert code == 0, told
    clone.write("memories/notes/bad.md", "---\ntags: {a: 5}\n---\n")
    clone.write("memories/notes/lost.md", "See [[nowhere]].\n")
    clone.write("docs/a b.md", "---\ntags: {a: 5}\n---\n[[nowhere]]\n")
    code, told = clone.hooks("mdmem-check")
    assert code == 1, told
    assert "notes/bad.md:2:7: " in told
    assert "1 file skipped" in told
    assert "nowhere" not in told
    assert "docs/a b.md:" not in told
    code, told = clone.hooks("mdmem-links")
    assert code == 1, told
    assert "notes/lost.md:1:" in told
    assert "notes/bad.md" in told


TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


# docs/git.md: Both hooks run `mdmem check --strict`: warnings … hold a commit up as errors do.
@pytest.mark.soak
@pytest.mark.parametrize(
    ("path", "text", "line", "failing"),
    [
        ("notes/token.md", f"# Access\n\nThe token is {TOKEN}.\n", 3, {"mdmem-check", "mdmem-links"}),
        ("token.json", f'{{\n  "token": "{TOKEN}"\n}}\n', 2, {"mdmem-check", "mdmem-links"}),
        ("notes/lost.md", "# Lost\n\nSee [[nowhere]].\n", 3, {"mdmem-links"}),
        ("notes/lost.md", "# Lost\n\nSee [it](../gone.md).\n", 3, {"mdmem-links"}),
        ("notes/merged.md", "a\n<<<<<<< o\nb\n=======\nc\n>>>>>>> t\n", 2, {"mdmem-check", "mdmem-links"}),
        ("notes/sound.md", "See [[db]].\n", 0, set()),
    ],
)
def test_the_hooks_fail_in_a_fresh_clone_and_name_the_line(
    tmp_path: Path, path: str, text: str, line: int, failing: set[str]
) -> None:
    hooks = [hook | {"language": "system"} for hook in yaml.safe_load(HOOKS.read_text())]
    clone = cloned(tmp_path, yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    clone.write(f"memories/{path}", text)
    for hook in ("mdmem-check", "mdmem-links"):
        code, told = clone.hooks(hook)
        assert code == int(hook in failing), told
        assert (f"{path}:{line}:" in told) is (hook in failing)
        assert TOKEN not in told


@pytest.mark.soak
def test_a_commit_is_held_up_by_a_hook_and_the_hook_goes_without_a_trace(tmp_path: Path) -> None:
    hooks = [hook | {"language": "system"} for hook in yaml.safe_load(HOOKS.read_text())]
    clone = cloned(tmp_path, yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    before = sorted(os.listdir(clone.root / ".git/hooks"))
    clone.run(sys.executable, "-m", "pre_commit", "install")
    clone.write("memories/notes/bad.md", "---\ntags: {a: 5}\n---\n")
    ended = clone.run("git", "commit", "--message", "m", check=False)
    assert ended.returncode == 1
    assert "notes/bad.md:2:7: " in ended.stdout + ended.stderr
    clone.write("memories/notes/bad.md", "---\ntags: [b]\n---\n")
    clone.run("git", "commit", "--message", "m")
    clone.run(sys.executable, "-m", "pre_commit", "uninstall")
    assert sorted(os.listdir(clone.root / ".git/hooks")) == before
    assert clone.run("git", "status", "--porcelain").stdout == ""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_pre_commit_installs_the_hooks_itself(tmp_path: Path) -> None:
    """As users name it: a repository and a revision, of which pre-commit makes an environment of its own."""
    copy = Clone(tmp_path / "copy", tmp_path / "cache")
    left_out = shutil.ignore_patterns(".*", "tests", "bench", "dist", "memories", "__pycache__")
    shutil.copytree(CHECKOUT, copy.root, ignore=left_out)
    copy.run("git", "init", "--quiet")
    copy.write(".pre-commit-hooks.yaml", HOOKS.read_text())
    copy.run("git", "commit", "--quiet", "--message", "m")
    revision = copy.run("git", "rev-parse", "HEAD").stdout.strip()
    named = {"repo": str(copy.root), "rev": revision, "hooks": [{"id": "mdmem-check"}, {"id": "mdmem-links"}]}
    clone = cloned(tmp_path, yaml.safe_dump({"repos": [named]}))
    code, told = clone.hooks("--all-files")
    assert code == 0, told
    clone.write("memories/notes/bad.md", "---\ntags: {a: 5}\n---\n")
    code, told = clone.hooks()
    assert code == 1, told
    assert told.count("notes/bad.md:2:7: ") == 2
