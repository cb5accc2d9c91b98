"""The commands of notes.

The commands of working memory.

The commands of preferences.

The commands of rules.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


def test_a_note_grows_by_sections(cli: Cli, files: Files) -> None:
    assert cli.ok("notes", "append", "db", "One file.", "--title", "SQLite").out.startswith(
        "created notes/db.md  "
    )
    cli.ok("notes", "append", "notes/db.md", "--title", "Why", stdin=b"Small.\n")
    assert files.read("notes/db.md") == b"## SQLite\n\nOne file.\n\n## Why\n\nSmall.\n"


def test_notes_are_listed_with_their_titles(cli: Cli, files: Files) -> None:
    files.write("notes/a.md", b"# First\n")
    files.write("notes/deep/b.md", b"---\ntitle: Second\n---\n")
    files.write("other.md", b"# Other\n")
    assert cli.ok("notes", "list").out == "notes/a.md  First\nnotes/deep/b.md  Second\n"
    assert [note["title"] for note in cli.ok("notes", "list", "deep", "--json").objects] == ["Second"]
    assert cli("notes", "list", "none").code == 1


def test_notes_of_a_user_are_their_own(cli: Cli, files: Files) -> None:
    cli.ok("--user", "alice", "notes", "append", "a", "text", "--title", "T")
    assert list(files.everything()) == ["users/alice/notes/a.md"]
    assert cli.ok("--user", "bob", "notes", "list").out == ""


THREAD = ("--thread", "t1")


def test_a_thread_has_a_state_that_is_replaced(cli: Cli, files: Files) -> None:
    cli.ok("working", "set", "Tests red.", *THREAD)
    assert files.read("working/threads/t1.md") == b"Tests red.\n"
    cli.ok("working", "find-and-replace", "red", "green", *THREAD)
    assert cli.ok("working", "show", *THREAD).out == "Tests green.\n"
    assert cli.ok("working", "show", *THREAD, "--json").json == {"content": "Tests green."}
    cli.ok("working", "find-and-replace", "", "- next", *THREAD)
    assert cli.ok("working", "show", *THREAD).out == "Tests green.\n\n- next\n"
    cli.ok("working", "clear", *THREAD)
    assert not files.everything()


def test_what_is_not_there_is_said_and_ends_with_one(cli: Cli) -> None:
    assert cli("working", "show", *THREAD) == (1, b"", "no working memory of t1\n")
    assert cli("working", "show", *THREAD, "--json").json == {"content": ""}


def test_a_template_begins_what_is_not_there(cli: Cli, files: Files) -> None:
    files.write(".mdmem/templates/state.md", b"State of {{ name }}.\n")
    begun = cli.ok("working", "show", *THREAD, "--template", "state", "--var", "name=T1")
    assert begun.out == "State of T1.\n"
    assert files.read("working/threads/t1.md") == b"State of T1.\n"


def test_a_json_memory_is_replaced_and_checked(cli: Cli, files: Files) -> None:
    files.write(
        ".mdmem/schemas/step.json", b'{"type": "object", "properties": {"step": {"type": "integer"}}}'
    )
    owner = ("--resource-id", "r/1")
    cli.ok("working", "set", '{"step": 1, "note": "x"}', *owner, "--schema", "step")
    assert cli("working", "set", '{"step": "two"}', *owner).code == 2
    assert json.loads(cli.ok("working", "show", *owner).out)["note"] == "x"
    assert list(files.everything()) == ["working/resources/r%2F1.json"]


@pytest.mark.parametrize(
    "owner", [[], [*THREAD, "--resource-id", "r1"], ["--thread", ".."], ["--thread", ""]]
)
def test_a_working_memory_belongs_to_one_thread_or_resource(cli: Cli, files: Files, owner: list[str]) -> None:
    assert cli("working", "set", "text", *owner).code == 2
    assert not files.everything()


def test_what_expires_is_listed_and_swept(cli: Cli, files: Files) -> None:
    cli.ok("working", "set", "text", *THREAD, "--ttl", "3600")
    files.write("working/threads/old.md", b"---\nexpires: 2020-01-01T00:00:00Z\n---\nold\n")
    files.write("working/resources/r.json", b'{"a": 1}\n')
    lines = cli.ok("working", "list").out.splitlines()
    assert lines[0] == "working/threads/old.md  thread old  expired"
    assert lines[1].startswith("working/threads/t1.md  thread t1  expires 2")
    assert lines[2] == "working/resources/r.json  resource r"
    assert [info["expired"] for info in cli.ok("working", "list", "--json").objects] == [True, False, False]
    assert "-old" in cli.ok("working", "sweep", "--dry-run").out
    assert cli.ok("working", "sweep").out == "deleted working/threads/old.md\n"
    assert len(cli.ok("working", "list", "--json").objects) == 2


def test_a_stale_base_is_refused(cli: Cli, files: Files) -> None:
    cli.ok("working", "set", "one", *THREAD)
    seen = cli.ok("show", "working/threads/t1.md", "--only-hash").out.strip()
    cli.ok("working", "set", "two", *THREAD, "--base", seen)
    assert cli("working", "set", "three", *THREAD, "--base", seen).code == 2
    assert files.read("working/threads/t1.md") == b"two\n"


FADED = b"---\nvalue: old\nstrength: 0.7\nconfidence: 0.8\nupdated: 2001-01-01T00:00:00Z\n---\n"


def test_a_preference_is_set_got_confirmed_and_deleted(cli: Cli, files: Files) -> None:
    cli.ok("preferences", "set", "ui", "theme", "dark", "--why", "Said so.", "--strength", "0.5")
    assert list(files.everything()) == ["preferences/ui/theme.md"]
    assert b"Said so." in files.read("preferences/ui/theme.md")
    assert cli.ok("preferences", "show", "ui", "theme").out == "ui/theme  dark  0.50\n"
    cli.ok("preferences", "set", "ui", "theme", "dark")
    assert cli.ok("preferences", "show", "ui", "theme").out == "ui/theme  dark  0.80\n"
    cli.ok("preferences", "rm", "ui", "theme")
    assert not files.everything()
    assert cli("preferences", "rm", "ui", "theme").code == 1


def test_a_list_names_the_preferences_that_a_merge_left_unreadable(cli: Cli, files: Files) -> None:
    cli.ok("preferences", "set", "ui", "font", "mono")
    conflict = b"---\n<<<<<<< HEAD\nvalue: dark\n=======\nvalue: light\n>>>>>>> b\n---\n"
    files.write("preferences/ui/theme.md", conflict)
    listed = cli.ok("preferences", "list")
    assert listed.out == "ui/font  mono  0.70\n"
    assert "left out: preferences/ui/theme.md: `mdmem check`" in listed.errors


def test_a_project_leaves_the_user_to_the_environment_and_shared_does_not(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("--user", "ann", "preferences", "set", "ui", "theme", "dark")
    assert "theme" not in cli.ok("--project", "demo", "context").out
    monkeypatch.setenv("MDMEM_USER", "ann")
    assert "ui/theme: dark" in cli.ok("--project", "demo", "context").out
    assert "theme" not in cli.ok("--shared", "context").out


def test_nothing_of_a_user_is_said_with_the_name_that_was_given(cli: Cli) -> None:
    assert "no preferences of user annn" in cli.ok("--user", "annn", "preferences", "list").errors
    assert "no memories of user annn" in cli.ok("--user", "annn", "ls").errors
    cli.ok("--user", "ann", "notes", "append", "plan", "zebra")
    said = cli("--user", "ann", "--project", "demo", "grep", "zebra").errors
    assert "no matches of user ann in project demo" in said
    assert "no memories of resource ticket/7" in cli.ok("--resource", "ticket/7", "ls").errors


@pytest.mark.parametrize(
    ("given", "value"),
    [("5", 5), ("no", "no"), ("[a, b]", ["a", "b"]), ("a: b", "a: b"), ('"5"', "5"), ("#1", "#1")],
)
def test_a_value_is_read_as_yaml(cli: Cli, given: str, value: object) -> None:
    cli.ok("preferences", "set", "ui", "x", given)
    assert cli.ok("preferences", "show", "ui", "x", "--json").json["value"] == value


def test_what_has_faded_is_hidden_and_swept(cli: Cli, files: Files) -> None:
    files.write("preferences/ui/old.md", FADED)
    cli.ok("preferences", "set", "ui", "new", "x")
    assert "old" not in cli.ok("preferences", "list").out
    assert cli("preferences", "show", "ui", "old").code == 1
    assert cli.ok("preferences", "list", "ui", "--hidden").out.splitlines()[1].endswith("(faded)")
    assert cli.ok("preferences", "show", "ui", "old", "--hidden", "--json").json["hidden"] is True
    assert cli.ok("preferences", "sweep", "--dry-run").out
    assert cli.ok("preferences", "sweep").out == "deleted preferences/ui/old.md\n"


def test_a_preference_that_does_not_count_says_why(cli: Cli, files: Files) -> None:
    files.write("preferences/ui/old.md", b"---\nvalue: old\nexpires: 2020-01-01\n---\n")
    assert cli("preferences", "show", "ui", "old").code == 1
    assert cli.ok("preferences", "list", "--hidden").out == "ui/old  old  1.00  (expired)\n"


@pytest.mark.parametrize(
    "options",
    [
        ["--strength", "2"],
        ["--strength", "x"],
        ["--confidence", "-1"],
        ["--existing", "none"],
        ["--base", "00000000"],
    ],
)
def test_wrong_options_are_refused(cli: Cli, files: Files, options: list[str]) -> None:
    assert cli("preferences", "set", "ui", "theme", "dark", *options).code in {1, 2}
    assert not files.everything()


def test_a_stronger_preference_can_be_kept(cli: Cli) -> None:
    cli.ok("preferences", "set", "ui", "theme", "dark", "--strength", "0.9")
    ended = cli.ok(
        "preferences", "set", "ui", "theme", "light", "--strength", "0.2", "--existing", "keep-stronger"
    )
    assert ended.out.startswith("nothing to change: kept preference ui/theme")


@pytest.fixture
def ruled(files: Files) -> Files:
    files.write("rules/style.md", b"---\npriority: 5\n---\n# Style\n\nShort words.\n")
    files.write("rules/python.md", b"---\nglobs: ['*.py', 'src/**']\n---\n# Python\n\nType everything.\n")
    files.write("rules/off.md", b"---\nenabled: false\n---\n# Off\n\nNever mind.\n")
    files.write("users/alice/rules/mine.md", b"# Mine\n\nNo emoji.\n")
    return files


@pytest.mark.usefixtures("ruled")
def test_rules_are_listed_by_importance(cli: Cli) -> None:
    lines = cli.ok("rules", "list").out.splitlines()
    assert lines == ["   5  global   style  Style", "   0  global   python  Python  *.py, src/**"]
    assert "(disabled)" in cli.ok("rules", "list", "--disabled").out
    cli.ok("supersede", "rules/off.md", "rules/style.md")
    assert "off  Off  (disabled)  (superseded)\n" in cli.ok("rules", "list", "--disabled").out
    rules = cli.ok("--user", "alice", "rules", "list", "--json").objects
    assert [(rule["name"], rule["scope"]) for rule in rules] == [
        ("style", "global"),
        ("python", "global"),
        ("mine", "user"),
    ]


@pytest.mark.usefixtures("ruled")
def test_rules_are_chosen_by_the_file_that_they_are_about(cli: Cli) -> None:
    assert "python" in cli.ok("rules", "list", "--for", "src/app.py").out
    assert "python" not in cli.ok("rules", "list", "--for", "README.txt").out


@pytest.mark.usefixtures("ruled")
def test_the_text_is_what_a_model_is_given(cli: Cli) -> None:
    text = cli.ok("rules", "text", "--for", "a.py").out
    assert text == "# Style\n\nShort words.\n\n# Python\n\nType everything.\n"
    assert cli.ok("rules", "text", "--for", "a.py", "--json").json == {"text": text.rstrip("\n")}
    assert "rules left out" in cli.ok("rules", "text", "--max-chars", "30").out
    assert cli("rules", "text", "--max-chars", "-1").code == 2


def test_no_rules_are_no_error(cli: Cli) -> None:
    assert cli.ok("rules", "list").out == ""
    assert cli.ok("rules", "text") == (0, b"", "no rules\n")


def test_a_rule_is_added_and_told(cli: Cli) -> None:
    added = cli.ok("rules", "new", "style", "Type everything.", "--glob", "*.py", "--priority", "2")
    assert added.out.startswith("created rules/style.md  ")
    assert cli.ok("rules", "list", "--for", "a.py").out == "   2  global   style  *.py\n"
    assert cli.ok("rules", "text").out == "# style\n\nApplies to: *.py\n\nType everything.\n"
    assert cli("rules", "new", "style", "Another.").code == 2
    cli.ok("rules", "new", "plain", stdin=b"Be short.\n")
    assert cli.ok("rules", "text", "--for", "a.md").out == "# plain\n\nBe short.\n"


@pytest.mark.parametrize("file", ["app.py", "./app.py", "../src/app.py", "src/app.py", "src/new.py"])
def test_a_file_is_named_from_the_current_folder_or_the_workspace(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    files.write("rules/python.md", b"---\nglobs: ['src/**']\n---\n\nAlways.\n")
    files.write("../src/app.py", b"pass\n")
    monkeypatch.chdir("src")
    assert "python" in cli.ok("rules", "list", "--for", file).out
    assert "Always." in cli.ok("rules", "text", "--for", file).out
    assert "Always." in cli.ok("context", "--for", file).out
    assert cli("rules", "list", "--for", "other.py").errors == "no rules for other.py\n"


def test_a_rule_is_made_from_its_template(cli: Cli, files: Files) -> None:
    assert cli.ok("new", "rule", "style").out.startswith("created rules/style.md  ")
    assert b"type: rule\n" in files.read("rules/style.md")
    assert cli.ok("check").out == ""


def test_what_is_remembered_goes_where_its_kind_is(cli: Cli, files: Files) -> None:
    assert cli.ok("remember", "Tests are green.").out.startswith("created notes/daily/")
    cli.ok("remember", "One file.", "--name", "db", "--title", "SQLite")
    assert files.read("notes/db.md") == b"## SQLite\n\nOne file.\n"
    cli.ok("remember", "Use SQLite", "--kind", "project", "--name", "Decisions")
    assert b"- Use SQLite" in files.read("AGENTS.md")
    cli.ok("remember", "12", "--kind", "preference", "--name", "ui/size", "--why", "Said so.")
    assert cli.ok("preferences", "show", "ui", "size", "--json").json["value"] == 12
    cli.ok("remember", "--kind", "working", "--name", "t1", "--ttl", "60", stdin=b"Half done.\n")
    assert cli.ok("working", "show", *THREAD).out == "Half done.\n"
    cli.ok("remember", '{"a": 1}', "--json-value", "--kind", "working", "--resource-id", "r1")
    assert cli.ok("working", "show", "--resource-id", "r1", "--json").json == {"content": '{\n  "a": 1\n}'}
    ended = cli("remember", "x", "--kind", "idea")
    assert ended.code == 2
    assert "a kind is one of note" in ended.errors
