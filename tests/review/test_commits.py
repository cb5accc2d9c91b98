"""Which memories a commit takes, what its message says, and when one is made by itself."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.errors import GitFailed, GitRefused, MemoryNotFound, PathRefused, Usage
from mdmem.review.commits import Commits
from mdmem.serve.adapters.hooks import answer
from tests.git.conftest import VaultTree, set_up
from tests.serve.mcp.conftest import command
from tests.serve.mcp.test_stdio import lines_of
from tests.speed import soak_most
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mdmem.facade.memory import Memory
    from mdmem.review.commits import Committed


class Project(VaultTree):
    """A repository with a vault in it, whose memories mdmem commits."""

    def config(self, old: str, new: str) -> None:
        file = self.root / "memories/.mdmem/config.toml"
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        self.memory = self.open()

    def committed(self, message: str = "", memory: Memory | None = None, **given: Any) -> Committed:
        return Commits((memory or self.memory).vault).commit(message, **given)

    def forget(self) -> None:
        """Leave no history of the vault, as in a clone."""
        shutil.rmtree(self.root / "memories/.mdmem/local")

    def trailers(self, key: str, commit: str = "HEAD") -> list[str]:
        return self.git("log", "-1", f"--format=%(trailers:key={key},valueonly)", commit).split("\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    set_up(monkeypatch)
    return Project(tmp_path / "project")


def paths(done: Committed) -> list[tuple[str, str]]:
    return [(each.path, each.kind) for each in done.files]


# ---------------------------------------------------------------------------------- what goes into one


def test_memories_and_mounted_files_are_committed_and_nothing_else(project: Project) -> None:
    project.write("src/a.py", "a\n")
    project.git("add", "src/a.py")
    project.write("AGENTS.md", "# A\n")
    project.memory.append("notes/db.md", "One.")
    project.memory.append("working/threads/t.md", "State.")
    project.write("memories/notes/.hidden.md", "a\n")
    project.write("memories/notes/image.png", "a\n")
    done = project.committed()
    assert paths(done) == [("AGENTS.md", "added"), ("notes/db.md", "added")]
    assert (done.branch, done.ignored, done.left_out) == ("main", 1, ())
    assert done.commit == project.git("rev-parse", "HEAD")
    assert project.git("ls-tree", "-r", "--name-only", "HEAD").split() == [
        "AGENTS.md",
        *("memories/.gitignore", "memories/.mdmem/config.toml"),
        "memories/notes/db.md",
    ]
    assert project.git("diff", "--cached", "--name-only") == "src/a.py"
    project.memory.rm("notes/db.md")
    assert paths(project.committed()) == [("notes/db.md", "removed")]
    assert paths(project.committed()) == []


def other_paths(done: Committed) -> list[tuple[str, str]]:
    return [(each.path, each.kind) for each in done.attachments]


def test_a_picture_that_mdmem_moved_is_committed_at_both_places(project: Project) -> None:
    project.note("notes/trip/a.md", "![](map.png)\n")
    project.write("memories/notes/trip/map.png", "a\n")
    project.write("memories/notes/trip/new.png", "b\n")
    project.write("memories/notes/staged.png", "c\n")
    project.git("add", "memories/notes/trip/map.png")
    project.git("commit", "-q", "-m", "map")
    project.git("add", "memories/notes/staged.png")
    project.committed()
    project.memory.mv("notes/trip", "notes/tour")

    for only in ([], ["notes/tour/a.md"]):
        done = project.committed(dry_run=True, only=only)
        assert other_paths(done) == [("notes/tour/map.png", "added"), ("notes/trip/map.png", "removed")]

    (note,) = project.committed().notes
    assert "notes/tour/new.png" in note
    assert "map.png" not in note
    assert project.git("status", "--porcelain").split("\n") == [
        "A  memories/notes/staged.png",
        "?? memories/notes/tour/new.png",
    ]
    subprocess.run(shlex.split(note.split("`")[1]), check=True)
    assert "A  memories/notes/tour/new.png" in project.git("status", "--porcelain")

    project.memory.undo()
    done = project.committed()
    assert ("notes/trip/map.png", "added") in other_paths(done)
    assert ("notes/tour/map.png", "removed") in other_paths(done)


def test_a_picture_that_moves_alone_is_a_commit_with_its_own_words(project: Project) -> None:
    project.write("memories/notes/map.png", "a\n")
    project.git("add", "memories/notes/map.png")
    project.git("commit", "-q", "-m", "map")
    project.committed()
    project.memory.mv("notes/map.png", "notes/plan.png")
    project.write("memories/notes/plan.png", "b\n")
    done = project.committed()
    assert other_paths(done) == [("notes/map.png", "removed"), ("notes/plan.png", "added")]
    assert done.message.startswith("Move notes/map.png to notes/plan.png\n")
    assert project.trailers("Mdmem-Id") == [project.memory.history()[0].id]
    project.write("memories/notes/plan.png", "c\n")
    assert project.committed().commit is None


def test_a_user_is_told_of_no_file_of_another(project: Project) -> None:
    project.write("memories/users/bob/notes/map.png", "a\n")
    project.write("memories/users/alice/notes/map.png", "a\n")
    project.write("memories/users/alice/.hidden/map.png", "a\n")
    alice = project.open(user="alice")
    (note,) = project.committed(memory=alice).notes
    assert note.count("map.png") == 2
    assert "bob" not in note


def test_a_secret_that_another_program_wrote_is_told_once(project: Project) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    project.note("notes/api.md", f"# Api\n\n- {secret}\n")
    done = project.committed(only=["notes/api.md"])
    assert done.commit
    assert done.notes[0].startswith("notes/api.md:3:3: secret this looks like a secret: GitHub token ghp_…")
    assert secret not in str(done)
    project.note("notes/api.md", f"# Api\n\n- one\n- {secret}\n")
    assert project.committed(only=["notes/api.md"]).notes == ()
    project.note("notes/api.md", f"# Api\n\n- one\n- {secret}\n- ghp_{'Z9y8X7w6V5u4' * 3}\n")
    assert len(project.committed(only=["notes/api.md"]).notes) == 1


def test_a_review_leaves_settings_out_and_says_so(project: Project) -> None:
    project.committed()
    project.write("memories/.mdmem/schemas/recipe.json", "{}\n")
    project.note("notes/a.md", "# A\n")
    rows = {each.path: [row.row for row in each.rows] for each in project.memory.git.review()}
    done = project.committed(accepted=rows)
    assert (paths(done), done.settings) == ([("notes/a.md", "added")], ())
    why = "a setting of the vault, which a review does not commit: `mdmem git commit` does"
    assert done.left_out == (f".mdmem/schemas/recipe.json: {why}",)


def test_the_settings_of_the_vault_go_along(project: Project) -> None:
    project.write("memories/.mdmem/schemas/recipe.json", "{}\n")
    project.write("memories/.mdmem/local/mine", "a\n")
    project.git("add", "--force", "memories/.mdmem/local/mine")
    project.write("memories/.mdmem/templates/large.md", b"x" * 5_000_000)
    project.memory.append("notes/a.md", "One.")
    assert project.committed(only=["notes/a.md"]).settings == ()
    done = project.committed()
    assert [tuple(each) for each in done.settings] == [
        *((".gitignore", "added"), (".mdmem/config.toml", "added"), (".mdmem/schemas/recipe.json", "added")),
    ]
    assert done.files == ()
    assert done.message == "Change the settings of the vault"
    assert [line.partition(":")[0] for line in done.left_out] == [".mdmem/templates/large.md"]
    assert project.git("diff", "--cached", "--name-only") == "memories/.mdmem/local/mine"
    project.write("memories/.mdmem/schemas/recipe.json", "{} \n")
    alice = project.open(user="alice")
    alice.append("notes/a.md", "One.")
    assert project.committed(memory=alice).settings == ()  # they belong to the whole vault
    assert mdmem.as_json(project.committed())["settings"] == [
        {"path": ".mdmem/schemas/recipe.json", "kind": "changed"}
    ]


def test_changes_that_are_committed_as_they_are_made_take_the_settings_along(project: Project) -> None:
    project.config('# commit = "off"', 'commit = "auto"')
    project.memory.git.allow("commit")
    project.memory.append("notes/a.md", "One.")
    assert "memories/.mdmem/config.toml" in project.git("ls-tree", "-r", "--name-only", "HEAD").split()


@pytest.mark.parametrize("only", ["notes/a.md", "notes/b.md"])
@pytest.mark.parametrize("how", ["mdmem", "by hand"])
def test_a_rename_is_committed_under_both_names(project: Project, only: str, how: str) -> None:
    project.memory.append("notes/a.md", "The database is one file.\n\nIt is backed up at night.")
    project.memory.append("notes/other.md", "Nothing like it.")
    project.committed()
    if how == "mdmem":
        project.memory.mv("notes/a.md", "notes/b.md")
    else:
        (project.root / "memories/notes/a.md").rename(project.root / "memories/notes/b.md")
    project.memory.rm("notes/other.md")
    done = project.committed(only=[only])
    assert paths(done) == [("notes/a.md", "removed"), ("notes/b.md", "added")]
    assert project.git("diff", "--name-status", "-M", "HEAD~1", "HEAD").split() == [
        *("R100", "memories/notes/a.md", "memories/notes/b.md")
    ]


def test_an_absent_memory_is_refused_before_anything_is_committed(project: Project) -> None:
    project.memory.append("notes/a.md", "One.")
    with pytest.raises(MemoryNotFound):
        project.committed(only=["notes/a.md", "notes/absent.md"])
    assert project.git("rev-list", "--all") == ""


def taken_back(project: Project) -> None:
    hook = project.root / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ngit update-ref HEAD HEAD~1\n")
    hook.chmod(0o755)


def cut(project: Project) -> None:
    (project.root / ".git/index").write_bytes(b"DIRC")


def garbled(project: Project) -> None:
    (project.root / ".git/refs/heads/main").write_text("nothing\n")


def locked(project: Project) -> None:
    (project.root / ".git/refs/heads/main.lock").touch()


def without_objects(project: Project) -> None:
    for folder in (project.root / ".git/objects").iterdir():
        if len(folder.name) == 2:
            shutil.rmtree(folder)


@pytest.mark.parametrize("break_", [taken_back, cut, garbled, locked, without_objects])
def test_where_git_is_broken_no_commit_is_an_error(
    project: Project, break_: Callable[[Project], None]
) -> None:
    project.memory.append("notes/a.md", "One.")
    project.committed()
    project.memory.append("notes/a.md", "Two.")
    break_(project)
    with pytest.raises(GitFailed):
        project.committed(hooks=True)


def test_nothing_changed_is_no_commit(project: Project) -> None:
    project.committed()
    done = project.committed()
    assert (done.commit, done.files, done.settings, done.message) == (None, (), (), "")
    assert project.git("rev-list", "--count", "--all") == "1"


def test_a_file_whose_name_cannot_be_a_memory_stops_no_commit(project: Project) -> None:
    project.write("memories/a\tb.md", "not to be named")
    project.write("memories/b.md", "text")
    assert ("b.md", "added") in paths(project.memory.git.commit())


@pytest.mark.parametrize("name", [".gitignore", "memories/notes/.gitattributes"])
def test_a_git_that_waits_for_a_pipe_is_ended(
    project: Project, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.memory.append("notes/b.md", "text")
    project.committed()
    project.write("memories/notes/b.md", "more\n")  # of the same size: git looks into it
    os.utime(project.root / "memories/notes/b.md", (1, 1))
    os.mkfifo(project.root / name)
    monkeypatch.setattr("mdmem.git.program._SILENT_SECONDS", 0.5)
    with pytest.raises(GitFailed, match=r"printed nothing for 0\.5 s"):
        project.memory.git.commit(dry_run=True)


def test_a_dry_run_says_what_would_be_committed(project: Project) -> None:
    project.memory.append("notes/db.md", "One.")
    told = project.committed(dry_run=True)
    assert told.commit is None
    done = project.committed()
    assert (told.files, told.message) == (done.files, done.message)
    assert mdmem.as_json(done)["files"] == [{"path": "notes/db.md", "kind": "added"}]


def test_only_some_memories_or_folders(project: Project) -> None:
    for path in ("notes/a.md", "notes/sub/b.md", "rules/c.md", "notes.md"):
        project.memory.append(path, f"What is in {path.title()} alone.")
    assert paths(project.committed(only=["notes/sub"])) == [("notes/sub/b.md", "added")]
    assert paths(project.committed(only=["notes/a.md", "notes/"])) == [("notes/a.md", "added")]
    with pytest.raises(MemoryNotFound):
        project.committed(only=["notes/absent.md"])
    with pytest.raises(PathRefused):
        project.committed(only=["../outside.md"])
    project.memory.rm("notes/a.md")
    assert paths(project.committed(only=["notes/a.md"])) == [("notes/a.md", "removed")]


def test_a_namespace_is_a_wall(project: Project) -> None:
    alice, bob = project.open(user="alice"), project.open(user="bob")
    alice.append("notes/a.md", "One.")
    bob.append("notes/b.md", "One.")
    project.write("AGENTS.md", "# A\n")
    done = project.committed(memory=alice)
    assert paths(done) == [("notes/a.md", "added")]
    assert "bob" not in str(done)
    assert paths(project.committed(memory=project.open(shared=True))) == [("AGENTS.md", "added")]
    assert paths(project.committed()) == [("users/bob/notes/b.md", "added")]


def test_what_is_staged_otherwise_is_left_out_with_the_reason(project: Project) -> None:
    project.memory.append("notes/a.md", "One.")
    project.memory.append("notes/b.md", "One.")
    project.git("add", "memories/notes/a.md")
    project.memory.append("notes/a.md", "Two.")
    done = project.committed()
    assert paths(done) == [("notes/b.md", "added")]
    assert [line.partition(":")[0] for line in done.left_out] == ["notes/a.md"]
    assert project.git("show", ":memories/notes/a.md") == "One."


def test_repositories_inside_of_the_vault_are_left_alone(project: Project) -> None:
    project.memory.append("notes/inner/a.md", "One.")
    subprocess.run(["git", "init", "-q"], cwd=project.root / "memories/notes/inner", check=True)
    project.write("sub/X.md", "x\n")
    subprocess.run(["git", "init", "-q"], cwd=project.root / "sub", check=True)
    project.config("[mounts]\n", '[mounts]\n"x.md" = "../sub/X.md"\n')
    done = project.committed()
    assert done.files == ()
    assert [line.partition(":")[0] for line in done.left_out] == ["x.md", "notes/inner"]
    assert project.committed(only=["notes/inner/a.md"]).left_out == done.left_out[1:]
    notes = {said.note for said in project.memory.git.blame("notes/inner/a.md")}
    assert notes == {"in another repository, or in none"}


def test_a_vault_that_is_the_top_of_its_repository(project: Project) -> None:
    root = project.root / "vault"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    mdmem.init(root)
    memory = mdmem.open(root)
    memory.append("notes/a.md", "One.")
    assert paths(project.committed(memory=memory)) == [("notes/a.md", "added")]
    project.memory.append("notes/b.md", "One.")
    assert paths(project.committed()) == [("notes/b.md", "added")]


def test_a_vault_in_no_repository_says_so(tmp_path: Path) -> None:
    mdmem.init(tmp_path / "memories")
    with pytest.raises(GitFailed, match="not in a work tree"):
        Commits(mdmem.open(tmp_path / "memories").vault).commit()


def test_names_of_another_spelling_are_committed(project: Project) -> None:
    project.write("memories/notes/u\u0308.md", "a\n")  # as macOS writes it
    assert paths(project.committed()) == [("notes/ü.md", "added")]
    project.write("memories/notes/u\u0308.md", "b\n")
    assert paths(project.committed(only=["notes/ü.md"])) == [("notes/ü.md", "changed")]


def test_a_detached_head_is_told_of(project: Project) -> None:
    project.memory.append("notes/a.md", "One.")
    project.committed()
    project.git("checkout", "-q", "--detach")
    project.memory.append("notes/a.md", "Two.")
    done = project.committed()
    assert done.branch == ""
    assert "git branch NAME" in done.notes[0]


# ---------------------------------------------------------------------------------- what its message says


def test_the_trailers_name_what_led_from_the_head_to_now(project: Project) -> None:
    claude = project.open("claude")
    first = claude.append("notes/a.md", "One.")
    project.committed()
    assert project.trailers("Mdmem-Op") == ["append to notes/a.md"]
    assert project.trailers("Mdmem-Id") == [first.id]
    assert project.trailers("Mdmem-Agent") == ["claude"]
    second = claude.append("notes/a.md", "Two.")
    third = project.memory.set("notes/a.md", {"title": "A"})
    done = project.committed("My words.\n\nAnd more.")
    assert done.message.startswith("My words.\n\nAnd more.\n\nMdmem-Op: append")
    assert project.trailers("Mdmem-Id") == [second.id, third.id]
    assert project.trailers("Mdmem-Agent") == ["claude"]
    assert project.git("log", "-1", "--format=%B") == done.message


def test_the_default_message_says_what_was_done(project: Project) -> None:
    project.memory.append("notes/a.md", "One.")
    assert project.committed(dry_run=True).message.splitlines()[0] == "Append to notes/a.md"
    project.memory.set("notes/a.md", {"title": "A"})
    told = project.committed().message.splitlines()
    assert told[:4] == ["Add notes/a.md", "", "- append to notes/a.md", "- set fields of notes/a.md"]
    project.write("memories/notes/b.md", "direct\n")
    project.write("memories/notes/c.md", "direct\n")
    project.write("memories/notes/a.md", "direct\n")
    assert project.committed().message == "Change 3 memories"
    assert project.trailers("Mdmem-Id") == [""]


def test_a_direct_edit_has_no_operation_and_hides_none(project: Project) -> None:
    project.memory.append("notes/a.md", "One.")
    project.committed()
    second = project.memory.append("notes/a.md", "Two.")
    project.write("memories/notes/a.md", "One.\nTwo.\nBy hand.\n")
    third = project.memory.append("notes/a.md", "Three.")
    project.committed()
    assert project.trailers("Mdmem-Id") == [second.id, third.id]
    assert project.trailers("Mdmem-Op")[2:] == ["edit notes/a.md directly"]
    project.write("memories/notes/a.md", "By hand.\n")
    project.committed()
    assert project.trailers("Mdmem-Id") == [""]
    fourth = project.memory.append("notes/a.md", "Four.")
    project.committed()
    assert project.trailers("Mdmem-Id") == [fourth.id]
    project.memory.append("notes/a.md", "Five.")
    project.write("memories/notes/b.md", "By hand.\n")
    project.committed()
    assert project.trailers("Mdmem-Op") == ["append to notes/a.md", "edit notes/b.md directly"]
    assert [said.agent for said in project.memory.git.blame("notes/b.md")] == [""]


def test_a_change_of_two_memories_explains_both_in_turn(project: Project) -> None:
    project.memory.append("notes/a.md", "See [[b]].")
    project.memory.append("notes/b.md", "B.")
    project.committed()
    moved = project.memory.mv("notes/b.md", "notes/c.md")
    for path in ("notes/a.md", "notes/b.md", "notes/c.md"):
        project.committed(only=[path])
        assert project.trailers("Mdmem-Id") == [moved.id]


def test_a_memory_whose_link_was_rewritten_is_of_who_moved_its_target_as_well(project: Project) -> None:
    project.memory.append("notes/people.md", "Ada, see [[servers]].")
    project.memory.append("notes/servers.md", "One.")
    project.committed()
    project.open("claude").mv("notes/servers.md", "notes/hosts.md")
    project.open("codex").append("notes/people.md", "- Bob.")
    project.open("codex").append("notes/other.md", "Other.")
    project.committed()
    assert project.trailers("Mdmem-Also") == ["notes/people.md"]
    *_, linked = [said for said in project.memory.git.blame("notes/people.md") if "Ada" in said.text]
    assert (linked.text, linked.agent, linked.sure) == ("Ada, see [[hosts]].", "claude", True)
    assert linked.operations == ("move notes/servers.md to notes/hosts.md",)
    project.forget()
    *_, linked = [said for said in project.memory.git.blame("notes/people.md") if "Ada" in said.text]
    assert (linked.agent, linked.sure) == ("claude, codex", False)
    assert linked.operations == ("move notes/servers.md to notes/hosts.md", "append to notes/people.md")
    assert {(said.agent, said.sure) for said in project.memory.git.blame("notes/other.md")} == {
        ("codex", True)
    }


def test_of_many_memories_that_an_operation_does_not_name_it_says_how_many(project: Project) -> None:
    project.memory.append("notes/b.md", "B.")
    for number in range(21):
        project.write(f"memories/notes/l{number}.md", "See [[b]].\n")
    project.committed()
    project.open("claude").mv("notes/b.md", "notes/c.md")
    project.open("codex").append("notes/l1.md", "More.")
    project.committed()
    assert project.trailers("Mdmem-Also") == ["21 memories"]
    project.forget()
    assert not any(said.sure for said in project.memory.git.blame("notes/l1.md"))


def test_what_git_converts_is_explained_by_what_was_not_committed_yet(project: Project) -> None:
    """With `eol=crlf` git has other bytes than the file, and the history cannot say which those were."""
    project.write(".gitattributes", "*.md text eol=crlf\n")
    project.write("memories/notes/a.md", "One.\r\n")
    first = project.memory.append("notes/a.md", "Two.")
    project.committed()
    assert project.trailers("Mdmem-Id") == [first.id]
    second = project.memory.append("notes/a.md", "Three.")
    project.committed()
    assert project.trailers("Mdmem-Id") == [second.id]


def test_what_is_said_of_an_operation_stays_in_its_line(project: Project) -> None:
    evil = project.open("x\nMdmem-Agent: claude\u2028Mdmem-Id: 1")
    evil.append("notes/a.md", "One.")
    done = project.committed(session="t1\n\nSigned-off-by: x")
    assert project.trailers("Mdmem-Agent") == ["x Mdmem-Agent: claude<U+2028>Mdmem-Id: 1"]
    assert project.trailers("Mdmem-Session") == ["t1 Signed-off-by: x"]
    assert project.trailers("Signed-off-by") == [""]
    assert "Mdmem-Session" not in project.committed("again", dry_run=True).message
    assert done.commit


def test_trailers_of_a_message_stay_trailers(project: Project) -> None:
    done = project.memory.append("notes/a.md", "One.")
    project.committed("Subject\n\nSigned-off-by: A <a@example.org>")
    assert project.trailers("Signed-off-by") == ["A <a@example.org>"]
    assert project.trailers("Mdmem-Id") == [done.id]


def test_many_operations_are_counted(project: Project) -> None:
    for number in range(205):
        project.write(f"memories/notes/{number}.md", "a\n")
    project.memory.replace(None, "a", "b", count="all")
    for number in range(205):
        project.memory.append("notes/1.md", str(number))
    done = project.committed()
    assert len(done.files) == 205
    assert done.message.count("Mdmem-Id: ") == 200


# ----------------------------------------------------------------------------------------- by itself


def test_it_is_asked_for_and_allowed_or_it_says_why_not(project: Project) -> None:
    project.config('# commit = "off"', 'commit = "auto"')
    commits = Commits(project.memory.vault)
    project.write("memories/notes/a.md", "One.")
    assert "mdmem git allow commit" in commits.by_itself()
    assert project.git("rev-list", "--all") == ""
    assert commits.allow("commit") == ""
    assert commits.by_itself() == ""
    assert project.git("rev-list", "--count", "HEAD") == "1"
    project.write("src/a.py", "a\n")
    project.git("add", "src/a.py")
    project.write("memories/notes/a.md", "Two.")
    word = commits.by_itself()
    assert "has other files" in word
    assert "src" not in word
    assert "has other files" in project.memory.git.allow("commit")
    assert project.memory.git.allow("hooks") == ""
    assert project.memory.git.allow("commit", off=True) == ""
    project.memory.git.allow("commit")
    project.git("rm", "-q", "--cached", "src/a.py")
    commits.allow("commit", off=True)
    assert "not allowed" in commits.by_itself()
    assert project.git("rev-list", "--count", "HEAD") == "1"


def test_a_namespace_commits_by_itself_where_the_vault_has_mounts(project: Project) -> None:
    project.write("AGENTS.md", "# A\n")
    project.config('# commit = "off"', 'commit = "auto"')
    project.committed()
    alice = project.open(user="alice")
    alice.append("notes/a.md", "One.")
    commits = Commits(alice.vault)
    commits.allow("commit")
    assert commits.by_itself(["notes/a.md", "notes/never.md"]) == ""
    assert project.git("log", "-1", "--name-only", "--format=") == "memories/users/alice/notes/a.md"


def test_a_copy_of_the_vault_is_not_allowed_what_it_was(project: Project, tmp_path: Path) -> None:
    project.config('# commit = "off"', 'commit = "auto"')
    project.memory.append("notes/a.md", "One.")
    Commits(project.memory.vault).allow("commit")
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-R", project.root, copy], check=True)
    assert "not allowed" in Commits(mdmem.open(copy / "memories").vault).by_itself()


def test_hooks_of_the_repository_run_once_allowed(project: Project) -> None:
    hook = project.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho ran > ran\n")
    hook.chmod(0o755)
    project.memory.append("notes/a.md", "One.")
    with pytest.raises(GitRefused, match="hook pre-commit"):
        project.committed()
    project.committed(hooks=True)
    assert (project.root / "ran").read_text() == "ran\n"
    (project.root / "ran").unlink()
    Commits(project.memory.vault).allow("hooks")
    project.memory.append("notes/a.md", "Two.")
    project.committed()
    assert (project.root / "ran").exists()


def test_only_commit_and_hooks_can_be_allowed(project: Project) -> None:
    with pytest.raises(Usage, match="`commit` or `hooks`"):
        Commits(project.memory.vault).allow("everything")


def test_auto_commits_each_change_as_it_is_made(project: Project) -> None:
    project.config('# commit = "off"', 'commit = "auto"')
    Commits(project.memory.vault).allow("commit")
    memory = project.open("claude")
    memory.append("notes/a.md", "One.")
    assert project.trailers("Mdmem-Agent") == ["claude"]
    project.write("memories/notes/direct.md", "By hand.\n")
    memory.notes.append("b", "Two.")
    memory.mv("notes/a.md", "notes/c.md")
    memory.working.update("State.", thread="t1")
    assert project.git("rev-list", "--count", "HEAD") == "3"
    assert project.git("status", "--porcelain").split("\n")[-1] == "?? memories/notes/direct.md"
    memory.plan.append("notes/a.md", "Only a plan.")
    memory.apply(memory.plan.append("notes/c.md", "Three."))
    memory.git.revert("notes/c.md:Three")
    assert project.git("rev-list", "--count", "HEAD") == "5"
    assert memory.service.remarks == []
    assert memory.service.commit_left() == ""
    assert project.git("log", "-1", "--format=%s") == "Add notes/direct.md"


def test_a_change_stands_where_its_commit_fails_and_it_is_said(project: Project) -> None:
    project.config('# commit = "off"', 'commit = "auto"')
    memory = project.open()
    memory.append("notes/a.md", "One.")
    assert memory.show("notes/a.md").text == "One.\n"
    assert "mdmem git allow commit" in memory.service.remarks[0]
    assert "not allowed" in str(memory.service.commit_refused)
    Commits(memory.vault).allow("commit")
    hook = project.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    again = project.open()
    again.append("notes/a.md", "Two.")
    assert "hook pre-commit" in again.service.remarks[0]
    assert project.git("rev-list", "--all") == ""
    assert project.git("status", "--porcelain") == "?? memories/"


def test_batch_commits_what_is_left_at_the_end(project: Project) -> None:
    project.config('# commit = "off"', 'commit = "batch"')
    memory = project.open()
    memory.append("notes/a.md", "One.")
    memory.append("notes/b.md", "Two.")
    assert project.git("rev-list", "--all") == ""
    Commits(memory.vault).allow("commit")
    assert memory.service.commit_left() == ""
    assert project.git("rev-list", "--count", "HEAD") == "1"
    off = project.root / "memories/.mdmem/config.toml"
    off.write_text("")
    project.write("memories/notes/a.md", "More.\n")
    assert project.open().service.commit_left() == ""
    assert project.git("rev-list", "--count", "HEAD") == "1"


def test_a_session_that_stops_leaves_nothing_uncommitted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.git.commit._LOCK_SECONDS", 0.3)
    project.config('# commit = "off"', 'commit = "batch"')
    memory = project.open()
    memory.append("notes/a.md", "One.")
    given = {"session_id": "s", "stop_hook_active": False}
    told = answer(memory, "session-start", given)
    assert isinstance(told, dict)
    assert "mdmem git allow commit" in told["systemMessage"]
    assert answer(memory, "stop", given) is None  # it was said when the session began
    assert project.git("rev-list", "--all") == ""
    memory.git.allow("commit")
    assert answer(memory, "stop", given) is None
    assert project.git("log", "--format=%s") == "Append to notes/a.md"
    memory.append("notes/a.md", "Two.")
    (project.root / ".git/index.lock").symlink_to("nowhere")
    told = answer(memory, "stop", given)
    assert isinstance(told, dict)
    assert "index.lock" in told["systemMessage"]


# --------------------------------------------------------------------------------- several, and killed


PROGRAM = """
import sys, mdmem
from mdmem.review.commits import Commits
from tests.git.conftest import SETTINGS
from tests.waiting import until
memory = mdmem.open(sys.argv[1])
for number in range(int(sys.argv[3])):
    memory.append(f"notes/{sys.argv[2]}-{number}.md", "One.")
    Commits(memory.vault).commit(only=[f"notes/{sys.argv[2]}-{number}.md"])
"""


def started(project: Project, name: str, count: int) -> subprocess.Popen[bytes]:
    arguments = [str(project.root / "memories"), name, str(count)]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments])


@pytest.mark.parametrize(("names", "count"), soak_most([("ab", 2), ("abc", 4)]))
def test_several_processes_at_once_commit_each_change_once(project: Project, names: str, count: int) -> None:
    processes = [started(project, name, count) for name in names]
    assert {process.wait() for process in processes} == {0}
    every = len(names) * count
    assert project.git("rev-list", "--count", "HEAD") == str(every)
    for commit in project.git("rev-list", "HEAD").split():
        assert len(project.trailers("Mdmem-Id", commit)) == 1
        assert len(project.git("show", "--name-only", "--format=", commit).split()) == 1
    assert len(project.git("ls-files", "memories/notes").split()) == every
    assert project.git("fsck", "--strict", "--no-dangling") == ""


def test_one_that_is_killed_leaves_no_lock_and_loses_nothing(project: Project) -> None:
    """Git goes on alone, and takes its lock away; ours goes with its process."""
    hook = project.root / "hooks/pre-commit"
    hook.parent.mkdir()
    go, there = project.root / "go", project.root / "there"
    hook.write_text(f"#!/bin/sh\ntouch {there}\nwhile [ ! -e {go} ]; do sleep 0.02; done\n")
    hook.chmod(0o755)
    project.git("config", "core.hooksPath", str(hook.parent))
    Commits(project.memory.vault).allow("hooks")
    project.write("src/a.py", "a\n")
    project.git("add", "src/a.py")
    process = started(project, "a", 1)
    until(there.exists)
    process.kill()
    process.wait()
    go.touch()
    until(lambda: not os.path.lexists(project.root / ".git/index.lock"))
    assert paths(project.committed(only=["notes"])) == []  # git has made the commit
    assert project.git("show", "--name-only", "--format=", "HEAD") == "memories/notes/a-0.md"
    assert project.git("status", "--porcelain", "src", "memories/notes") == "A  src/a.py"


@pytest.mark.parametrize(
    ("number", "options"),
    soak_most(
        [(signal.SIGTERM, ()), (signal.SIGTERM, ("--http", "0")), (signal.SIGINT, ()), (signal.SIGHUP, ())]
    ),
)
def test_a_server_that_is_told_to_end_commits_what_it_leaves(
    project: Project, number: signal.Signals, options: tuple[str, ...]
) -> None:
    project.config('# commit = "off"', 'commit = "batch"')
    project.memory.git.allow("commit")
    handler = signal.signal(number, signal.SIG_DFL)  # a shell or `nohup` may have it ignored
    with served(project, *options) as process:
        signal.signal(number, handler)
        project.memory.append("notes/a.md", "One.")
        process.send_signal(number)
        assert process.wait(30) == -number
    assert project.git("log", "--format=%s") == "Append to notes/a.md"


@pytest.mark.soak  # besides a server that ends by itself, above
def test_what_a_killed_server_leaves_is_in_the_next_batch(project: Project) -> None:
    project.config('# commit = "off"', 'commit = "batch"')
    project.memory.git.allow("commit")
    with served(project) as process:
        project.memory.append("notes/a.md", "One.")
        process.kill()
    assert project.git("rev-list", "--all") == ""
    with served(project) as process:
        project.memory.append("notes/b.md", "Two.")
        process.terminate()
    assert project.git("show", "--name-only", "--format=", "HEAD").split() == [
        *("memories/.gitignore", "memories/.mdmem/config.toml"),
        *("memories/notes/a.md", "memories/notes/b.md"),
    ]
    assert len(project.trailers("Mdmem-Id")) == 2


@contextmanager
def served(project: Project, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server of the project that has answered once."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command(project.root / "memories", *options), stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        if options:
            assert process.stderr
            assert b"serving at" in process.stderr.readline()
        else:
            assert process.stdin
            assert process.stdout
            process.stdin.write(lines_of({"id": 1, "method": "tools/list"}))
            process.stdin.flush()
            assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == [0, 1]
        yield process
