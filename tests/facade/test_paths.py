"""Which memory an argument names: as the shell reads it, else as the namespace does, and never a guess."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused
from mdmem.facade.paths import (
    NEW,
    READ,
    READ_ANY,
    READ_FOLDER,
    WRITE,
    WRITE_ANY,
    PathReader,
    Role,
)
from tests.programs import needs
from tests.speed import examples, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from tests.cli.conftest import Cli, Files


PATHS = ["notes/db.md", "notes/deep/x.md", "rules/db.md", "top.md", "users/alice/notes/db.md"]


@pytest.fixture
def tree(files: Files) -> Files:
    for path in PATHS:
        files.write(path, f"{path}\n".encode())
    return files


@pytest.fixture
def memory(tree: Files) -> Memory:
    return mdmem.open(str(tree.root))


def reader(memory: Memory) -> PathReader:
    return PathReader(memory, lambda _: None)


def enter(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)


# ---------------------------------------------------------------------------------------- the current folder


@cases(
    "address", ["file://[x", "file://", "file://host/db.md", "file:///a%00b.md", "file:///%ff.md", "file:///"]
)
def test_an_address_that_names_no_file_here_is_refused(memory: Memory, address: str) -> None:
    with pytest.raises(MdmemError):
        memory.show(reader(memory).resolve(address, READ))


@pytest.mark.parametrize("form", ["{}#L3", "{}#a%20heading"])
def test_an_address_may_name_a_place_in_its_file(memory: Memory, tree: Files, form: str) -> None:
    address = form.format((tree.root / "notes/db.md").as_uri())
    assert reader(memory).resolve(address, READ) == "notes/db.md"
    assert reader(memory).resolve(address.replace("file://", "FILE://localhost"), READ) == "notes/db.md"


@pytest.mark.parametrize("role", [READ, WRITE, READ_ANY, WRITE_ANY, NEW])
@cases(
    "folder, typed, path",
    [
        ("memories/notes", "db.md", "notes/db.md"),
        ("memories/notes", "./db.md", "notes/db.md"),
        ("memories/notes", "../top.md", "top.md"),
        ("memories/notes", "deep/x.md", "notes/deep/x.md"),
        ("memories/notes", "notes/db.md", "notes/db.md"),
        ("memories/notes", "memories/notes/db.md", "notes/db.md"),
        ("memories/notes/deep", "../../rules/db.md", "rules/db.md"),
        ("memories", "notes/db.md", "notes/db.md"),
        ("", "notes/db.md", "notes/db.md"),
        ("", "memories/notes/db.md", "notes/db.md"),
        ("", "./memories/notes/../top.md", "top.md"),
        ("src", "../memories/notes/db.md", "notes/db.md"),
        ("src", "memories/notes/db.md", "notes/db.md"),
        ("src", "notes/db.md", "notes/db.md"),
    ],
)
def test_a_path_is_that_of_the_shell_else_that_of_the_namespace(
    memory: Memory,
    tree: Files,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    typed: str,
    path: str,
    role: Role,
) -> None:
    enter(monkeypatch, tree.root.parent / folder)
    assert reader(memory).resolve(typed, role) == path
    assert reader(memory).resolve(os.path.abspath(tree.root / path), role) == path
    assert reader(memory).resolve((tree.root / path).as_uri(), role) == path


@pytest.mark.parametrize(
    ("folder", "typed", "path"),
    [
        ("memories/notes", ".", "notes"),
        ("memories/notes", "..", ""),
        ("memories/notes", "../..", ""),
        ("memories/notes", "../rules/", "rules"),
        ("memories/notes", "deep", "notes/deep"),
        ("memories/notes", "rules", "rules"),
        ("", ".", ""),
        ("", "memories", ""),
        ("", "memories/notes", "notes"),
        ("", "", ""),
        ("", "/", "/"),
        ("src", "..", ""),
    ],
)
def test_a_folder_is_one_of_the_shell_and_one_around_the_vault_is_all_of_it(
    memory: Memory, tree: Files, monkeypatch: pytest.MonkeyPatch, folder: str, typed: str, path: str
) -> None:
    enter(monkeypatch, tree.root.parent / folder)
    assert reader(memory).resolve(typed, READ_FOLDER) == path


@pytest.mark.parametrize(
    "typed",
    ["..", "../x.md", "/etc/passwd", "file:///etc/passwd", "src/../../x.md", "/tmp/../x.md", "./x.md"],
)
def test_a_place_outside_of_the_vault_is_refused(memory: Memory, typed: str) -> None:
    """The same place without a dot in it is a path of the namespace."""
    for role in (READ, WRITE, NEW, READ_FOLDER):
        with pytest.raises(PathRefused) as raised:
            reader(memory).resolve(typed, role)
        assert "not below" in raised.value.message


def test_the_current_folder_may_be_entered_by_a_link(
    memory: Memory, tree: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for target, typed, path in (
        (tree.root, "notes/db.md", "notes/db.md"),
        (tree.root / "notes", "db.md", "notes/db.md"),
        (tree.root.parent, "memories/top.md", "top.md"),
    ):
        link = tmp_path / f"link-to-{target.name}"
        link.symlink_to(target)
        assert reader(memory).resolve(f"{link}/{typed}", WRITE) == path
        monkeypatch.chdir(link)
        assert reader(memory).resolve(typed, WRITE) == path


def test_a_link_that_came_with_the_files_does_not_decide_where_is_written(
    memory: Memory, tree: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.root / "notes/link").symlink_to("../rules")
    (tree.root.parent / "docs").symlink_to("memories/rules")
    monkeypatch.chdir(tree.root / "notes")
    assert reader(memory).resolve("./link/new.md", NEW) == "notes/link/new.md"
    monkeypatch.chdir(tree.root.parent)
    assert reader(memory).resolve("docs/db.md", NEW) == "docs/db.md"
    with pytest.raises(PathRefused):
        reader(memory).resolve("./docs/db.md", NEW)


def test_a_mounted_file_is_named_by_its_place(cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tree.root.parent
    (work / "guide.md").write_text("# Guide\n")
    with (tree.root / ".mdmem/config.toml").open("a") as config:
        config.write('\n"docs/guide.md" = "../guide.md"\n')
    enter(monkeypatch, work / "src")
    assert cli.ok("show", "../guide.md").out == "# Guide\n"
    assert cli.ok("append", "../guide.md", "more").out.startswith("changed docs/guide.md")
    assert cli("show", "../other.md").code == 2


@pytest.mark.parametrize("role", [READ, WRITE, READ_ANY, WRITE_ANY, NEW])
@cases(
    "folder, typed, is_hidden",
    [
        ("memories", "./AGENTS.md", True),
        ("memories/docs", "../AGENTS.md", True),
        ("memories/docs", "guide.md", True),
        ("", "memories/AGENTS.md", True),
        ("", "{root}/AGENTS.md", True),
        ("memories", "AGENTS.md", False),
        ("memories", "../AGENTS.md", False),
        ("memories", "docs/guide.md", False),
        ("", "AGENTS.md", False),
    ],
)
def test_a_file_that_a_mount_hides_is_not_taken_for_the_mounted_one(
    tree: Files, monkeypatch: pytest.MonkeyPatch, folder: str, typed: str, is_hidden: bool, role: Role
) -> None:
    for name in ("AGENTS.md", "docs/guide.md"):
        tree.write(name, b"# Hidden\n")
        (tree.root.parent / name.rpartition("/")[2]).write_text("# Mounted\n")
    tree.write(
        ".mdmem/config.toml",
        b'[mounts]\n"AGENTS.md" = "../AGENTS.md"\n"docs/guide.md" = "../guide.md"\n',
    )
    memory = mdmem.open(str(tree.root))
    enter(monkeypatch, tree.root.parent / folder)
    typed = typed.format(root=tree.root)
    if not is_hidden:
        assert reader(memory).resolve(typed, role) in {"AGENTS.md", "docs/guide.md"}
        return
    with pytest.raises(PathRefused, match="a mount of the same path hides this file") as caught:
        reader(memory).resolve(typed, role)
    assert os.path.abspath(caught.value.hint.rpartition(" ")[2]) in {
        str(tree.root.parent / name) for name in ("AGENTS.md", "guide.md")
    }


def test_the_current_folder_may_be_gone(memory: Memory, tree: Files, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with contextlib.chdir(gone):
        gone.rmdir()
        assert reader(memory).resolve("notes/db.md", WRITE) == "notes/db.md"
        with pytest.raises(PathRefused):
            reader(memory).resolve("./db.md", WRITE)
    assert tree.root.exists()


@pytest.mark.parametrize(
    "typed", ["a\0b.md", "\udcff.md", "\ud800", "x/" * 50_000 + "y.md", "../" * 20_000, "-", "~"]
)
def test_no_text_is_too_much(memory: Memory, typed: str) -> None:
    tracemalloc.start()
    try:
        for role in (READ, WRITE, NEW, READ_FOLDER, WRITE_ANY):
            with contextlib.suppress(PathRefused, MemoryNotFound):
                assert ".." not in reader(memory).resolve(typed, role).split("/")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------------------------------- two readings


def test_where_both_name_something_a_read_says_which_and_a_write_refuses(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write("db.md", b"at the top\n")
    monkeypatch.chdir(tree.root / "notes")
    shown = cli.ok("show", "db.md")
    assert shown.out == "notes/db.md\n"
    assert shown.errors.startswith("note: db.md is taken as notes/db.md: it may mean notes/db.md or db.md")
    before = tree.everything()
    for command in (["rm"], ["append"], ["set"], ["replace"], ["write"], ["mv"]):
        rest = {"append": ["x"], "set": ["a=1"], "replace": ["a", "b"], "write": ["x"], "mv": ["../y.md"]}
        refused = cli(*command, "db.md", *rest.get(command[0], []))
        assert refused.code == 2, command
        assert "use ./db.md or ../db.md" in refused.errors
    assert tree.everything() == before
    assert cli.ok("show", "../db.md").errors.startswith("db.md ")
    assert cli.ok("append", "./db.md", "more").out.startswith("changed notes/db.md")


def test_a_name_that_could_stand_here_is_not_guessed_to_be_elsewhere(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree.root / "notes")
    assert cli.ok("show", "top.md").out == "top.md\n"
    for arguments in (["rm", "top.md"], ["append", "top.md", "x"], ["write", "top.md", "x", "--overwrite"]):
        refused = cli(*arguments)
        assert (refused.code, "use ./top.md or ../top.md" in refused.errors) == (2, True)
        assert "may mean notes/top.md (not there) or top.md" in refused.errors
    # Below a folder that is not here, it can only be another one.
    assert cli.ok("append", "rules/db.md", "x").out.startswith("changed rules/db.md")


@pytest.mark.parametrize(
    ("folder", "typed", "path"),
    [
        ("memories/notes", "new.md", "notes/new.md"),
        ("memories/notes", "rules/new.md", "rules/new.md"),
        ("memories/notes", "deep/new.md", "notes/deep/new.md"),
        ("memories/notes", "far/new.md", "notes/far/new.md"),
        ("", "memories/notes/new.md", "notes/new.md"),
        ("", "notes/new.md", "notes/new.md"),
        ("src", "far/new.md", "far/new.md"),
    ],
)
def test_a_new_memory_is_made_where_the_shell_says(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch, folder: str, typed: str, path: str
) -> None:
    enter(monkeypatch, tree.root.parent / folder)
    assert cli.ok("write", typed, "text").out.startswith(f"created {path}  ")
    assert (tree.root / path).is_file()


def test_a_bound_scope_sees_its_own_paths_only(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write("users/bob/secret.md", b"bob's\n")
    monkeypatch.chdir(tree.root / "users/alice/notes")
    alice = ("--user", "alice")
    assert cli.ok(*alice, "show", "db.md").out == "users/alice/notes/db.md\n"
    assert cli.ok(*alice, "ls", "..").out == "notes/db.md\n"
    there = [cli(*alice, "show", "../../bob/secret.md"), cli(*alice, "ls", "../../bob")]
    absent = [cli(*alice, "show", "../../eve/secret.md"), cli(*alice, "ls", "../../eve")]
    assert [ended.code for ended in (*there, *absent)] == [2] * 4
    said = [(ended.out, ended.errors.replace("bob", "eve")) for ended in there]
    assert said == [(ended.out, ended.errors) for ended in absent]
    monkeypatch.chdir(tree.root / "users/bob")
    assert cli(*alice, "show", "secret.md").code == 1
    assert cli("--shared", "show", "./secret.md").code == 2
    monkeypatch.chdir(tree.root.parent)
    assert cli.ok(*alice, "show", "memories/users/alice/notes/db.md").out == "users/alice/notes/db.md\n"
    assert cli(*alice, "show", "memories/users/bob/secret.md").code == 1


def test_what_is_shared_is_named_by_its_layer_anywhere(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tree.root, tree.root / "notes", tree.root / "users/alice/notes"):
        monkeypatch.chdir(folder)
        assert cli.ok("--user", "alice", "show", "shared:notes/db.md").out == "notes/db.md\n"


# ------------------------------------------------------------------------------------------ shorter than is


def test_a_read_takes_a_name_without_its_suffix_and_the_only_one_of_a_name(cli: Cli, tree: Files) -> None:
    assert cli.ok("show", "notes/db").out == "notes/db.md\n"
    elsewhere = cli.ok("show", "x")
    assert elsewhere.out == "notes/deep/x.md\n"
    assert elsewhere.errors.startswith("note: x is taken as notes/deep/x.md\n")
    for folder in ("notes", "notes/", ".", "memories/notes/deep"):
        assert f"this is a folder\nlist it with `mdmem ls {folder}`" in cli("show", folder).errors
    nearest = cli("show", "notes/dv")
    assert nearest.code == 1
    assert "notes/dv.md: no such memory\nnearest names: notes/db.md" in nearest.errors
    several = cli("show", "db")
    assert several.code == 1
    assert "notes/db.md, rules/db.md, users/alice/notes/db.md" in several.errors
    tree.write("notes/db.json", b"{}\n")
    both = cli.ok("show", "notes/db")
    assert both.out == "notes/db.md\n"
    assert "note: notes/db is taken as notes/db.md" in both.errors


@cases(
    "command",
    [["mv", "Attachments", "moved"], ["rm", "-r", "Attachments"], ["search", "how", "--in", "Attachments"]],
)
def test_a_folder_without_memories_is_meant_before_a_note_of_its_name_elsewhere(
    cli: Cli, tree: Files, command: list[str]
) -> None:
    tree.write("Attachments/p.png", b"p")
    tree.write("help/Attachments.md", b"# How\n")
    told = cli(*command)
    assert "is taken as" not in told.errors
    assert "help/Attachments.md" not in told.out
    assert tree.read("help/Attachments.md") == b"# How\n"


CHANGES = [
    *(["rm"], ["set", "a=1"], ["unset", "a"], ["mv", "y.md"], ["append", "m"], ["prepend", "m"]),
    *(["section", "X", "m"], ["insert", "4", "m"], ["delete-lines", "4"], ["replace", "once", "twice"]),
    *(["restore"], ["confirm"], ["edit"]),
]


@cases("command", CHANGES)
def test_a_change_takes_the_only_memory_of_a_name_in_another_folder_and_says_so(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    verb, *rest = command
    monkeypatch.setenv("EDITOR", "sh -c 'echo more >> \"$0\"'")
    (tree.root / "y.md").unlink(missing_ok=True)
    cli.ok("write", "notes/deep/x.md", f"---\na: 0\n---\n# X\n\nonce\n{verb}\n", "--overwrite")
    before = tree.everything()
    changed = cli.ok(verb, "x", *rest)
    assert "note: x is taken as notes/deep/x.md\n" in changed.errors
    assert "notes/deep/x.md" in changed.out
    after = tree.everything()
    assert after != before
    assert {path for path in before if before[path] != after.get(path)} == {"notes/deep/x.md"}


@cases("command", CHANGES)
def test_a_change_refuses_a_name_of_two_and_one_of_none(cli: Cli, tree: Files, command: list[str]) -> None:
    tree.write("rules/x.md", b"# X\n")
    before = tree.everything()
    verb, *rest = command
    for typed, named in (("x", "nearest names: notes/deep/x.md, rules/x.md"), ("nope", "no")):
        refused = cli(verb, typed, *rest)
        assert refused.code in {1, 2}
        assert named in refused.errors
    assert tree.everything() == before


def test_what_was_deleted_is_not_taken_for_one_that_is_there(cli: Cli, tree: Files) -> None:
    cli.ok("write", "rules/x.md", "deleted\n")
    cli.ok("rm", "rules/x.md")
    refused = cli("restore", "x")
    assert refused.code == 1
    assert "nearest names: notes/deep/x.md, rules/x.md" in refused.errors
    (tree.root / "notes/deep/x.md").unlink()
    assert cli.ok("restore", "x").out.startswith("created rules/x.md")


def test_a_name_is_not_looked_for_outside_of_the_namespace(cli: Cli, tree: Files) -> None:
    before = tree.everything()
    refused = cli("--user", "alice", "append", "x", "more")
    assert (refused.code, "deep" in refused.errors) == (2, False)
    assert tree.everything() == before
    assert cli.ok("--user", "alice", "append", "db", "more").out.startswith("changed notes/db.md")


@pytest.mark.parametrize("command", [["write", "m"], ["write", "m", "--overwrite"]])
def test_what_makes_a_memory_does_not_look_for_its_name_elsewhere(
    cli: Cli, tree: Files, command: list[str]
) -> None:
    before = tree.everything()
    verb, *rest = command
    refused = cli(verb, "x", *rest)
    assert (refused.code, "nearest names: notes/deep/x.md" in refused.errors) == (1, True)
    assert tree.everything() == before


@pytest.mark.parametrize("command", [["rm"], ["set", "a=1"], ["restore"], ["unset", "a"], ["mv", "y.md"]])
def test_a_write_refuses_what_stands_in_another_folder_than_it_says_and_names_it(
    cli: Cli, tree: Files, command: list[str]
) -> None:
    before = tree.everything()
    verb, *rest = command
    for typed in ("x.md", "deep/x"):
        refused = cli(verb, typed, *rest)
        assert refused.code == 1
        assert "notes/deep/x.md" in refused.errors
    assert tree.everything() == before


@pytest.mark.parametrize("command", [["append", "m"], ["rm"], ["set", "a=1"], ["mv", "y.md"]])
def test_a_write_takes_the_one_memory_of_a_name_without_its_suffix(
    cli: Cli, tree: Files, command: list[str]
) -> None:
    verb, *rest = command
    tree.write("notes/deep/x.json", b"{}\n")
    before = tree.everything()
    refused = cli(verb, "notes/deep/x", *rest)
    assert refused.code == 1
    assert "nearest names: notes/deep/x.md, notes/deep/x.json" in refused.errors
    assert tree.everything() == before
    (tree.root / "notes/deep/x.json").unlink()
    cli.ok(verb, "notes/deep/x", *rest)
    assert tree.everything() != before


# ----------------------------------------------------------------------------------------------------- moving


@pytest.mark.parametrize(
    ("folder", "source", "target", "expected"),
    [
        ("", "notes/db.md", "notes/deep", ("notes/db.md", "notes/deep/")),
        ("", "notes/db.md", "far/", ("notes/db.md", "far/")),
        ("", "notes", "rules", ("notes", "rules/")),
        ("", "notes", "far", ("notes", "far")),
        ("", "memories/notes/db.md", "memories", ("notes/db.md", "/")),
        ("memories/notes", "db.md", "..", ("notes/db.md", "/")),
        ("memories/notes", "deep/x.md", ".", ("notes/deep/x.md", "notes/")),
        ("memories/notes", "deep/x.md", "y.md", ("notes/deep/x.md", "notes/y.md")),
        ("memories/notes", "db.md", "../rules/", ("notes/db.md", "rules/")),
        ("memories/notes", "db.md", "/", ("notes/db.md", "/")),
    ],
)
def test_what_is_moved_and_where_to(
    memory: Memory,
    tree: Files,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    source: str,
    target: str,
    expected: tuple[str, str],
) -> None:
    enter(monkeypatch, tree.root.parent / folder)
    assert reader(memory).resolve_move(source, target) == expected


# ------------------------------------------------------------------------------------------------- completion


COMPLETED: list[tuple[str, str, list[str]]] = [
    ("", "show no", ["notes/db.md", "notes/deep/x.md"]),
    ("", "show mem", [f"memories/{path}" for path in PATHS]),
    ("", "show ./memories/r", ["./memories/rules/db.md"]),
    ("", "show top", ["top.md"]),
    ("", "ls no", ["notes/db.md", "notes/deep/x.md", "notes", "notes/deep"]),
    ("", "graph --in memories/ru", ["memories/rules"]),
    ("", "check notes/de", ["notes/deep/x.md", "notes/deep"]),
    ("", "graph --in ru", ["rules"]),
    ("", "grep --in ru", ["rules/db.md", "rules"]),
    ("memories/notes", "show d", ["db.md", "deep/x.md"]),
    ("memories/notes", "show ../r", ["../rules/db.md"]),
    ("memories/notes", "show ./", ["./db.md", "./deep/x.md"]),
    ("memories/notes", "show rules/", ["rules/db.md"]),
    ("memories/notes", "graph --in d", ["deep"]),
    ("src", "show ../memories/t", ["../memories/top.md"]),
    ("src", "show rul", ["rules/db.md"]),
    ("memories/users/alice/notes", "--user alice show ", ["db.md"]),
    ("", "--user alice show ", ["notes/db.md"]),
    ("memories/users/alice", "--shared show users", []),
]


@cases("folder, line, answers", COMPLETED)
def test_either_form_is_completed_and_what_is_given_works(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch, folder: str, line: str, answers: list[str]
) -> None:
    enter(monkeypatch, tree.root.parent / folder)
    words = ["mdmem", *line.split(" ")]
    given = {"COMP_WORDS": shlex.join(words[:-1]) + f" {words[-1]}", "COMP_CWORD": str(len(words) - 1)}
    ended = cli(env={"_MDMEM_COMPLETE": "bash_complete", **given})
    assert [each.partition(",")[2] for each in ended.out.splitlines() if each] == answers
    memory = mdmem.open(str(tree.root), mdmem.Scope(user="alice" if "alice" in words else None))
    for answer in answers:
        role = READ_FOLDER if "graph" in words else READ_ANY
        assert memory.exists(reader(memory).resolve(answer, role._replace(writes=True)))


@pytest.mark.parametrize(("folder", "line", "answers"), soak_most(COMPLETED, quick=(2, 13)))
def test_bash_completes_either_form(
    cli: Cli, tree: Files, monkeypatch: pytest.MonkeyPatch, folder: str, line: str, answers: list[str]
) -> None:
    needs("bash")
    enter(monkeypatch, tree.root.parent / folder)
    words = ["mdmem", *line.split(" ")]
    script = cli.ok("completion", "bash").out
    script += f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _mdmem_completion mdmem\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"'
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
    )
    assert ended.stderr == ""
    assert ended.stdout.split() == answers


def test_an_absolute_path_is_completed(memory: Memory, tree: Files) -> None:
    assert reader(memory).complete(f"{tree.root}/no", READ) == [
        f"{tree.root}/notes/db.md",
        f"{tree.root}/notes/deep/x.md",
    ]


@pytest.mark.parametrize(
    ("folder", "completed"), [("", "memories/-x.md"), ("memories", "./-x.md"), ("memories/notes", None)]
)
def test_a_name_with_a_dash_is_completed_to_what_is_no_option(
    memory: Memory, tree: Files, monkeypatch: pytest.MonkeyPatch, folder: str, completed: str | None
) -> None:
    (tree.root / "-x.md").write_text("x\n")
    enter(monkeypatch, tree.root.parent / folder)
    found = reader(memory).complete("", READ)
    assert not [form for form in found if form.startswith("-")]
    assert (completed in found) == (completed is not None)
    if completed:
        assert reader(memory).resolve(completed, READ) == "-x.md"
        assert reader(memory).complete("-", READ) == ["-x.md"]


# ------------------------------------------------------------------------------------------------ everything

NAMES = st.sampled_from(["a.md", "b.md"])
FOLDERS = st.lists(st.sampled_from(["memories", "notes", "x"]), max_size=2)
TREE = st.sets(
    st.tuples(FOLDERS.map("/".join), NAMES).map(lambda parts: "/".join(filter(None, parts))), max_size=8
)
TYPED = st.lists(
    st.sampled_from(["memories", "notes", "x", ".", "..", "a.md", "b.md"]), min_size=1, max_size=4
).map("/".join)


@settings(max_examples=examples(75))
@given(
    TREE,
    st.sampled_from(["", "src", "memories", "memories/notes", "memories/notes/x", "memories/memories"]),
    TYPED,
)
def test_a_path_is_what_os_path_says(paths: set[str], folder: str, typed: str) -> None:
    """Of every tree, current folder and text: the oracle looks at real files by `os.path` alone."""
    with tempfile.TemporaryDirectory() as made:
        work = os.path.realpath(made)
        root = mdmem.init(f"{work}/memories").root
        for path in paths:
            os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
            Path(root, path).write_text("x\n")
        os.makedirs(f"{work}/{folder}", exist_ok=True)
        with contextlib.chdir(f"{work}/{folder}"):
            places = [os.path.abspath(typed)]
            is_place = bool({".", ".."} & set(typed.split("/")))
            if not is_place:
                places += [os.path.join(root, typed), os.path.join(work, typed)]
            inside = [place for place in dict.fromkeys(places) if place.startswith(f"{root}/")]
            there = [os.path.relpath(place, root) for place in inside if os.path.isfile(place)]
            is_far = (
                bool(there)
                and places[0] in inside
                and not os.path.isfile(places[0])
                and os.path.isdir(os.path.dirname(places[0]))
            )
            memory = mdmem.open(root)
            if is_place and not inside and places[0] not in {root, work}:
                with pytest.raises(PathRefused):
                    reader(memory).resolve(typed, WRITE)
            elif not there:
                if typed.endswith(".md"):
                    with contextlib.suppress(MemoryNotFound):
                        assert not os.path.isfile(os.path.join(root, reader(memory).resolve(typed, WRITE)))
            elif len(there) > 1 or is_far:
                with pytest.raises(PathRefused) as ambiguous:
                    reader(memory).resolve(typed, WRITE)
                assert ambiguous.value.code == "path-ambiguous"
                assert reader(memory).resolve(typed, READ) == there[0]
            else:
                assert reader(memory).resolve(typed, WRITE) == reader(memory).resolve(typed, READ) == there[0]


# ------------------------------------------------------------------------------- the name of a memory to make

FORMS = {
    "z": "notes/z.md",
    "z.md": "notes/z.md",
    "notes/z": "notes/z.md",
    "notes/z.md": "notes/z.md",
    "memories/notes/z": "notes/z.md",
    "memories/notes/z.md": "notes/z.md",
    "{root}/notes/z.md": "notes/z.md",
    "[[z]]": "notes/z.md",
    "![[notes/z#Z|the last]]": "notes/z.md",
    "memories/notes/far/new.md": "notes/far/new.md",
    "memories/new": "notes/new.md",
    "deep/new": "notes/deep/new.md",
    "{root}/top.md": "it is not in notes/",
    "[[top]]": "it is not in notes/",
    "[[nope]]": "no such memory",
    "/etc/passwd.md": "it is not below",
}
# The commands that take the name of a note, with what they say of one that is there.
NAMING = {
    "remember": (["remember", "word", "--name", "NAME"], ""),
    "notes append": (["notes", "append", "NAME", "word"], ""),
    "sessions keep": (["sessions", "keep", "t1", "--to", "NAME"], "already exists"),
    "inbox propose": (["inbox", "propose", "notes.append", '{"name": "NAME", "content": "word"}'], ""),
}


@cases("folder", ["", "memories", "memories/notes", "src"])
def test_a_command_makes_a_note_under_any_form_of_its_name_and_names_it(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    cli.ok("sessions", "append", "t1", "user", "hello")
    enter(monkeypatch, files.root.parent / folder)
    there = {"notes/z.md": b"# Z\n", "top.md": b"# Top\n", **files.everything()}
    here = {"./z.md": "notes/z.md", "../top.md": "it is not in notes/"} if folder == "memories/notes" else {}
    for command, (arguments, refusal) in NAMING.items():
        for typed, path in {**FORMS, **here}.items():
            for made in files.everything().keys() - there:
                (files.root / made).unlink()
            for each, data in there.items():
                files.write(each, data)
            name = typed.format(root=files.root)
            ended = cli(*(each.replace("NAME", name) for each in arguments))
            what = f"{command} {typed}: {ended.out}{ended.errors}"
            changed = [each for each, data in files.everything().items() if there.get(each) != data]
            expected = f"{path}: {refusal}" if refusal and path in there else path
            if not expected.endswith(".md"):
                assert ended.code, what
                assert not changed, what
                assert expected in ended.errors, what
            elif command == "inbox propose":
                assert len(changed) == 1, what
                assert f'"{expected.removesuffix(".md")}' in files.read(*changed).decode(), what
            else:
                assert changed == [expected], what
                assert f" {expected} " in ended.out, what
