"""Paths in tools: each form that the command line reads, in each tool, with the same errors."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from tests.serve.mcp.conftest import Tools
from tests.speed import is_all
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Files

TIME = re.compile(rb"valid_to: .*")
Z = "notes/deep/z.md"
FORMS = {
    "its path": Z,
    "as git names it": f"memories/{Z}",
    "absolute": f"{{root}}/{Z}",
    "from the root": f"./{Z}",
    "without its suffix": "notes/deep/z",
    "its name": "z",
    "its name and suffix": "z.md",
    "a link": "[[z]]",
    "a longer link": "[[deep/z#Z|the last]]",
    "a link to two": "[[twin]]",
    "the name of two": "twin",
    "a folder": "notes/deep",
    "a folder with a slash": "memories/notes/deep/",
    "a new one": "memories/notes/new.md",
    "a new folder": "memories/far/new.md",
    "nothing": "nope",
    "a link to nothing": "[[nope]]",
    "outside": "/etc/passwd.md",
    "above": "../x.md",
    "another file of the workspace": "src/app.md",
}
# A call of each tool, and the command that does the same.
TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "show": ("show", {"path": "P"}, ["show", "P"]),
    "search": ("search", {"query": "word", "within": "P"}, ["search", "word", "--in", "P"]),
    "grep": ("grep", {"pattern": "word", "within": "P"}, ["grep", "word", "--in", "P"]),
    "ls": ("ls", {"within": "P"}, ["ls", "P"]),
    "backlinks": ("ls", {"target": "P"}, ["refs", "P"]),
    "write": (
        "write",
        {"path": "P", "content": "x\n", "overwrite": True},
        ["write", "P", "x\n", "--overwrite"],
    ),
    "supersede": (
        "write",
        {"path": "n.md", "content": "x\n", "supersedes": "P"},
        ["write", "n.md", "x\n", "--supersedes", "P"],
    ),
    "fields": ("write", {"path": "P", "fields": {"a": 1}}, ["set", "P", "a=1"]),
    "replace": ("replace", {"path": "P", "old": "word", "new": "x"}, ["replace", "P", "word", "x"]),
    "section": ("section", {"path": "P", "heading": "Z", "text": "x"}, ["section", "P", "Z", "x"]),
    "append": ("section", {"path": "P", "text": "x", "where": "append"}, ["append", "P", "x"]),
    "mv": ("mv", {"source": "P", "target": "memories/moved.md"}, ["mv", "P", "memories/moved.md"]),
    "mv to": ("mv", {"source": "top.md", "target": "P"}, ["mv", "top.md", "P"]),
    "rm": ("rm", {"path": "P"}, ["rm", "P"]),
    "rm all": ("rm", {"path": "P", "recursive": True}, ["rm", "-r", "P"]),
}


EXACT = {
    *("its path", "as git names it", "absolute", "from the root", "without its suffix"),
    *("a link", "a longer link"),
}
NAME = {"its name"}
FOUND = {*EXACT, *NAME, "its name and suffix", "a link to two"}
FOLDERS = {"a folder", "a folder with a slash"}
NEW = {"a new one", "a new folder", "another file of the workspace", "its name and suffix"}
# The forms that each tool takes; it refuses the others.
TAKEN = {
    "show": FOUND,
    **dict.fromkeys(("search", "grep", "ls"), FOUND | FOLDERS),
    "backlinks": {*FORMS},
    **dict.fromkeys(("supersede", "fields", "replace", "section", "rm"), EXACT | NAME),
    "write": EXACT | NEW,
    "append": EXACT | NAME | NEW,
    **dict.fromkeys(("mv", "rm all"), EXACT | NAME | FOLDERS),
    "mv to": NEW | FOLDERS,
}

QUICK = ("show", "write", "mv", "rm all")


def refill(files: Files) -> None:
    """Leave four memories and nothing else."""
    for each in files.root.iterdir():
        if each.is_dir() and each.name != ".mdmem":
            shutil.rmtree(each)
        elif each.is_file():
            each.unlink()
    for path in (Z, "notes/twin.md", "rules/twin.md", "top.md"):
        files.write(path, b"# Z\n\nword\n")


def fill_in(given: Any, path: str) -> Any:
    return path if given == "P" else given


@cases("tool", TOOLS if is_all else QUICK)
def test_every_form_of_a_path_is_read_as_on_the_command_line(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    name, given, command = TOOLS[tool]
    monkeypatch.chdir(files.root)
    taken = set[str]()
    for form, typed in FORMS.items():
        path, ends = typed.format(root=files.root), []
        for is_tool in (True, False):
            refill(files)
            if is_tool:
                tools = Tools(mdmem.open(str(files.root)))
                answer = tools.box.call(name, {key: fill_in(each, path) for key, each in given.items()})
                told = answer.data.get("error", {})
            else:
                ended = cli(command[0], "--json", *(fill_in(each, path) for each in command[1:]))
                told = next((each["error"] for each in ended.objects if "error" in each), {})
            message = str(told.get("message")).replace(str(files.root), "the memory")
            texts = {path: TIME.sub(b"", data) for path, data in files.everything().items()}
            ends.append((told.get("code"), message, texts))
        assert ends[0] == ends[1], form
        taken |= set() if ends[0][0] else {form}
    assert taken == TAKEN[tool]


def test_a_path_that_begins_with_the_folder_of_the_vault_makes_no_second_one(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Tools(mdmem.open(str(files.root)))
    for typed, path in (
        ("memories/x.md", "x.md"),
        ("memories/far/new/x.md", "far/new/x.md"),
        ("./memories/w.md", "w.md"),
        ("./memories/far/new/w.md", "far/new/w.md"),
        ("./v.md", "v.md"),
        (f"{files.root}/y.md", "y.md"),
        ("notes/x.md", "notes/x.md"),
    ):
        answer = tools("write", path=typed, content="x\n")
        assert [file["path"] for file in answer.data["files"]] == [path]
        assert f"created {path}" in answer.texts[0]
    monkeypatch.chdir(files.root.parent)
    alice = mdmem.open(str(files.root), mdmem.Scope(user="alice"))
    refused = Tools(alice).error("write", path="memories/users/bob/x.md", content="x\n")
    assert refused["code"] == "path-refused"
    assert cli("--user", "alice", "write", "memories/users/bob/x.md", "x").code == 2
    made = Tools(alice)("write", path="memories/users/alice/x.md", content="x\n")
    assert made.data["files"][0]["path"] == "x.md"
    assert tools("show", path="./memories/w.md").data["path"] == "w.md"
    new = {"x.md", "far/new/x.md", "w.md", "far/new/w.md", "v.md", "y.md", "notes/x.md", "users/alice/x.md"}
    assert {*files.everything()} == new


def test_a_path_that_a_tool_names_means_the_same_in_a_vault_named_like_a_folder_of_it(
    tmp_path: Path,
) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "notes").root)
    shutil.rmtree(tmp_path / "notes/notes", ignore_errors=True)
    tools = Tools(memory)
    for path in ("notes/db.md", "db.md"):
        tools("write", path=path, content=f"{path}\n")
    for path in ("notes/db.md", "db.md"):
        assert tools("show", path=path).data["text"] == f"{path}\n"
    tools("write", path="db.md", content="x\n", overwrite=True)
    assert tools("show", path="notes/db.md").data["text"] == "notes/db.md\n"


@cases(
    "name, path",
    [
        ("z", "notes/z.md"),
        ("deep/z.md", "notes/deep/z.md"),
        ("notes/z.md", "notes/z.md"),
        ("memories/notes/z.md", "notes/z.md"),
        ("{root}/notes/deep/z.md", "notes/deep/z.md"),
        ("./notes/z.md", "notes/z.md"),
        ("./memories/notes/z.md", "notes/z.md"),
        ("[[deep/z]]", "notes/deep/z.md"),
        ("memories/new", "notes/new.md"),
        ("a/b", "notes/a/b.md"),
    ],
)
def test_a_note_is_remembered_under_any_form_of_its_name(files: Files, name: str, path: str) -> None:
    refill(files)
    tools = Tools(mdmem.open(str(files.root)))
    answer = tools("remember", kind="note", name=name.format(root=files.root), value="hello")
    assert [file["path"] for file in answer.data["files"]] == [path]
    refused = tools.error("remember", kind="note", name="[[top]]", value="hello")
    assert (refused["code"], refused["message"]) == ("path-refused", "'[[top]]': it is not in notes/")
