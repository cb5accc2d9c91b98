"""The commands that make things, and what they are made from.

The command that imports: what it did, what it left out, and how to take it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mdmem
from tests.cli.screen import on_screen

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Files


# ----------------------------------------------------------------------------------------------------- init


def test_init_makes_a_vault_and_says_what_is_in_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    monkeypatch.chdir(folder)
    dry = cli.ok("init", "--dry-run")
    assert dry.out.startswith(f"would make the vault {folder}/memories\n")
    assert not list(folder.iterdir())
    made = cli.ok("init")
    assert made.out == dry.out.replace("would make", "made")
    assert (folder / "memories/.mdmem/config.toml").is_file()
    assert cli.ok("ls").out == ""


def test_init_names_an_ignore_file_that_it_changes(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new"
    (folder / "memories").mkdir(parents=True)
    (folder / "memories/.gitignore").write_text("mine\n/working/\n")
    monkeypatch.chdir(folder)
    dry = cli.ok("init", "--dry-run")
    assert dry.out.endswith("\n    .gitignore (lines added: 9)\n    .mdmem/config.toml\n")
    assert cli.ok("init").out == dry.out.replace("would make", "made")
    (folder / "docs").mkdir()
    (folder / "docs/.gitignore").symlink_to("../memories/.gitignore")
    told = cli.ok("init", "docs").errors
    assert told.startswith(".gitignore is no regular file: put one there, with the lines\n    /working/\n")


def test_init_makes_the_vault_that_the_options_and_the_environment_name(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.ok("--vault", "one", "init").out.startswith(f"made the vault {tmp_path}/one\n")
    monkeypatch.setenv("MDMEM_VAULT", str(tmp_path / "two"))
    made = cli.ok("init")
    assert made.out.startswith(f"made the vault {tmp_path}/two\n")
    assert not made.errors  # the next command finds it
    assert mdmem.init(dry_run=True, folder="three").is_found is False
    assert cli.ok("ls").code == 0
    refused = cli("--vault", "two", "init", "four")
    assert refused.code == 2
    assert "four is not two, which --vault or MDMEM_VAULT names" in refused.errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two", "work"]
    assert cli.ok("--vault", "./two", "init", "two").out.endswith("two is a vault already\n")


def test_a_vault_that_is_not_found_from_here_says_how_to_name_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    monkeypatch.chdir(folder)
    said = "it is not found from here: name it with `--vault docs`, or MDMEM_VAULT\n"
    assert cli.ok("init", "docs", "--dry-run").errors == said
    assert cli.ok("init", "docs").errors == said
    lost = cli("ls")
    assert lost.code == 2
    assert lost.errors.endswith("\nthere is a vault below: name it with `--vault docs`, or MDMEM_VAULT\n")
    assert cli.ok("--vault", "docs", "ls")
    assert cli.ok("init", "memories").errors == ""


@pytest.mark.parametrize(
    ("inside", "arguments", "word"),
    [
        ("memories", ["init"], "it is inside the vault"),
        ("memories/notes/deep", ["init"], "it is inside the vault"),
        ("memories/.mdmem", ["init", "."], "it is inside the vault"),
        (".", ["init", "memories/notes"], "it is inside the vault"),
        (".", ["init", "."], "is in it"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_no_vault_is_made_inside_another(
    cli: Cli,
    files: Files,
    monkeypatch: pytest.MonkeyPatch,
    inside: str,
    arguments: list[str],
    word: str,
    options: list[str],
) -> None:
    files.write("notes/deep/a.md", b"x\n")
    monkeypatch.chdir(inside)
    before = {path: path.read_bytes() for path in files.root.parent.rglob("*") if path.is_file()}
    ended = cli(*arguments, *options)
    assert (ended.code, ended.out) == (2, "")
    assert word in ended.errors
    assert "use" in ended.errors
    assert {p: p.read_bytes() for p in files.root.parent.rglob("*") if p.is_file()} == before


def test_init_below_the_root_of_a_repository_asks_first(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code/.git").mkdir(parents=True)
    (tmp_path / "code/src").mkdir()
    monkeypatch.chdir(tmp_path / "code/src")
    refused = cli("init")
    assert refused.code == 2
    assert refused.errors == (
        f"mdmem: nothing was made: this is below the root of the repository {tmp_path}/code\n"
        "`mdmem init ../memories` makes a vault at the root, `mdmem init --here` makes one here\n"
    )
    assert cli("init", "--json").code == 2
    assert "note: this is below the root" in cli.ok("init", "--dry-run").errors
    assert [*(tmp_path / "code/src").iterdir()] == []
    assert cli.ok("init", "--here").out.startswith(f"made the vault {tmp_path}/code/src/memories\n")
    assert cli.ok("init", "../memories").out.startswith(f"made the vault {tmp_path}/code/memories\n")


def test_init_where_a_vault_is_found_already_asks_first(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job/code/.git").mkdir(parents=True)
    (tmp_path / "job/deep").mkdir()
    mdmem.init(tmp_path / "job/memories")
    monkeypatch.chdir(tmp_path / "job/deep")
    refused = cli("init")
    assert refused.code == 2
    assert refused.errors == (
        f"mdmem: nothing was made: the vault {tmp_path}/job/memories is found from here already\n"
        "`mdmem status` says what is in it; `mdmem init --here` makes one here all the same\n"
    )
    cli.ok("init", "--here")
    assert cli.ok("init").out.endswith("memories is a vault already\n")
    # The root of another repository is a place for another vault.
    monkeypatch.chdir(tmp_path / "job/code")
    assert cli.ok("init").out.startswith(f"made the vault {tmp_path}/job/code/memories\n")


@pytest.mark.parametrize(("key", "is_made"), [("y", True), ("n", False)])
def test_init_on_a_terminal_asks(
    key: str, is_made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code/.git").mkdir(parents=True)
    (tmp_path / "code/src").mkdir()
    monkeypatch.chdir(tmp_path / "code/src")
    seen = on_screen("init", typed=[("[y/N]", f"{key}\n")])
    assert "this is below the root of the repository" in seen.text
    assert seen.code == (0 if is_made else 1)
    assert (tmp_path / "code/src/memories/.mdmem").exists() == is_made


def test_init_in_a_folder_says_what_is_passed_over_there(cli: Cli, tmp_path: Path) -> None:
    for name in ("a.mdx", "deep/b.mdx", "deep/c.txt", "d.MD", "e.md", "f.png", ".hidden/g.txt"):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text("text\n")
    note = "note: 4 files passed over: 2 .mdx, 1 .MD, 1 .txt; a memory ends in .md or .json: "
    assert cli.ok("init", str(tmp_path / "site"), "--dry-run").errors.startswith(note)
    assert cli.ok("init", str(tmp_path / "site")).errors.startswith(note)
    assert "passed over" not in cli.ok("init", str(tmp_path / "new")).errors


def test_init_says_once_which_folders_have_a_meaning_now(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own/working").mkdir(parents=True)
    (tmp_path / "own/working/list.md").write_text("- x\n", "utf-8")
    said = "note: folders with a meaning: working/ (working memory, which git leaves out): rename what means "
    assert said in cli.ok("init", str(tmp_path / "own"), "--dry-run").errors
    assert said in cli.ok("init", str(tmp_path / "own")).errors
    assert "a meaning" not in cli.ok("init", str(tmp_path / "own")).errors
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/a.mdx").write_text("text\n")
    ended = cli.ok("init", str(tmp_path / "deep"), "--json", "--dry-run")
    assert (ended.json["passed_over"], ended.errors) == ({".mdx": 1}, "")


def test_init_names_the_fields_that_say_what_counts_from_now_on(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/a.md").write_text("---\nexpires: 2020-01-01\n---\nTea.\n", "utf-8")
    said = (
        "note: fields with a meaning: expires (counts until then; 1 note): rename what means something else\n"
    )
    assert said in cli.ok("init", str(tmp_path / "own")).errors


def test_init_says_how_a_folder_in_the_way_is_renamed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Notes/a.md", "Users/ann/b.md", "Else/c.md"):
        (tmp_path / "own" / name).parent.mkdir(parents=True)
        (tmp_path / "own" / name).write_text("# A\n", "utf-8")
    monkeypatch.chdir(tmp_path / "own")
    said = (
        "note: Notes/ differs only in case from notes/, to which nothing can be written now: `mdmem mv Notes "
    )
    assert said in cli.ok("init", ".", "--dry-run").errors
    made = cli.ok("init", ".").errors
    assert said in made
    assert "`mdmem mv Users users`" in made
    assert "Else" not in made
    refused = cli("remember", "We meet on Mondays.")
    assert "`mdmem mv Notes notes` renames what exists" in refused.errors
    scoped = cli("--user", "ann", "notes", "append", "plan", "x").errors
    assert "users/ differs only in case from another folder" in scoped
    assert "without a scope, rename that to users" in scoped
    cli.ok("mv", "Notes", "notes")
    cli.ok("mv", "Users", "users")
    cli.ok("remember", "We meet on Mondays.")
    assert "b.md" in cli.ok("--user", "ann", "ls").out


def test_init_beside_notes_of_a_tool_asks_first(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t/.obsidian").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "t")
    refused = cli("init")
    assert refused.code == 2
    assert "this folder holds notes of Obsidian" in refused.errors
    assert "`mdmem init .` makes a vault of them where they are" in refused.errors
    cli.ok("init", "--here")
    assert f"or delete {tmp_path}/t/memories, which holds no memory" in cli("init", ".").errors
    cli.ok("write", "notes/a.md", "x")
    assert "or move it elsewhere" in cli("init", ".").errors


def test_init_says_which_of_two_project_memories_is_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (".git", "memories"):
        (tmp_path / name).mkdir()
    (tmp_path / "memories/AGENTS.md").write_text("# Own\n")
    assert cli.ok("init", "--dry-run").errors == ""
    (tmp_path / "AGENTS.md").write_text("# Root\n")
    word = "AGENTS.md is that of the folder; to have ../AGENTS.md instead, move it away, and take the # from"
    assert cli.ok("init", "--dry-run").errors.startswith(word)
    assert cli.ok("init").errors.startswith(word)
    assert cli.ok("show", "AGENTS.md").out == "# Own\n"


def test_init_in_a_repository_mounts_its_project_memory(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    made = cli.ok("init", "docs/memory", "--json").json
    assert made["root"] == f"{tmp_path}/docs/memory"
    assert '"AGENTS.md" = "../../AGENTS.md"' in made["files"][".mdmem/config.toml"]
    cli.ok("--vault", "docs/memory", "project", "append", "Decisions", "Use SQLite")
    assert "Use SQLite" in (tmp_path / "AGENTS.md").read_text()


def test_init_never_overwrites_a_vault(cli: Cli, files: Files) -> None:
    files.write(".mdmem/config.toml", b"# mine\n")
    assert cli.ok("init") == cli.ok("init", "--dry-run") == cli.ok("init", "memories")
    assert cli.ok("init").out == f"{files.root} is a vault already\n"
    assert cli.ok("init", "--json").json == {"message": f"{files.root} is a vault already"}
    assert files.read(".mdmem/config.toml") == b"# mine\n"


# ---------------------------------------------------------------------------------------------- new


def test_new_makes_a_memory_that_fits_its_schema(cli: Cli, files: Files) -> None:
    assert (
        "Use SQLite" in cli.ok("new", "decision", "notes/a.md", "--var", "title=Use SQLite", "--dry-run").out
    )
    assert not files.everything()
    cli.ok("new", "decision", "notes/a.md", "--var", "title=Use SQLite")
    assert b"# Use SQLite" in files.read("notes/a.md")
    assert cli.ok("check").out == ""
    assert cli("new", "decision", "notes/a.md", "--var", "title=Again").code == 2


def test_a_rendered_template_is_printed_and_nothing_is_written(cli: Cli, files: Files) -> None:
    assert "# Idea" in cli.ok("new", "note", "--print", "--var", "title=Idea").out
    assert not files.everything()
    assert "Missing argument 'PATH'" in cli("new", "note", "--var", "title=Idea").errors


def test_a_variable_may_have_an_equals_sign(cli: Cli, files: Files) -> None:
    files.write(".mdmem/templates/t.md", b"{{ name }}\n")
    assert cli.ok("new", "t", "--print", "--var", "name=x=y").out == "x=y\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--var", "novalue"], "'novalue' is not KEY=VALUE"),
        (["--var", "=x"], "'=x' is not KEY=VALUE"),
        ([], "name"),
    ],
)
def test_wrong_variables_are_refused(cli: Cli, files: Files, options: list[str], message: str) -> None:
    files.write(".mdmem/templates/t.md", b"{{ name }}\n")
    ended = cli("new", "t", "notes/a.md", *options)
    assert ended.code == 2
    assert message in ended.errors
    assert not files.everything()


def test_what_a_template_makes_is_validated_first(cli: Cli, files: Files) -> None:
    files.write(".mdmem/templates/t.md", b"---\ntags: {a: 5}\n---\n")
    ended = cli("new", "t", "notes/a.md", "--json")
    assert (ended.code, ended.json["error"]["code"]) == (2, "invalid")
    assert ended.json["error"]["findings"][0]["line"] == 2
    assert not files.everything()


# ------------------------------------------------------------------------------------------------- templates


def test_templates_are_listed_and_shown(cli: Cli, files: Files) -> None:
    files.write(".mdmem/templates/mine.md", b"{# My own. #}\n{{ title }} {{ tags | default('none') }}\n")
    listed = {entry["name"]: entry for entry in cli.ok("template", "list", "--json").objects}
    assert listed["mine"] == {"name": "mine", "builtin": False, "description": "My own."}
    assert listed["note"]["builtin"]
    assert "mine             own       My own.\n" in cli.ok("template", "list").out
    shown = cli.ok("template", "show", "mine")
    assert shown.data == files.read(".mdmem/templates/mine.md")
    assert "title: required\n" in shown.errors
    shape = cli.ok("template", "show", "mine", "--json").json
    assert [v["name"] for v in shape["variables"] if v["required"]] == ["title"]
    missing = cli("template", "show", "min")
    assert missing.code == 1
    assert "mine" in missing.errors


# --------------------------------------------------------------------------------------------------- schemas


def test_schemas_are_listed_shown_and_checked(cli: Cli, files: Files) -> None:
    files.write(".mdmem/schemas/decision.json", b'{"title": "A decision", "required": ["status"]}')
    listed = {entry["name"]: entry for entry in cli.ok("schema", "list", "--json").objects}
    assert listed["decision"] == {"name": "decision", "builtin": False, "title": "A decision"}
    assert listed["note"]["builtin"]
    assert "decision         own       A decision\n" in cli.ok("schema", "list").out
    assert cli.ok("schema", "show", "decision").json == {"title": "A decision", "required": ["status"]}
    assert cli("schema", "show", "none").code == 1
    assert cli.ok("schema", "check").out == ""


def test_a_broken_schema_is_told_where_it_is_broken(cli: Cli, files: Files) -> None:
    files.write(".mdmem/schemas/bad.json", b'{\n  "type": "nothing"\n}')
    ended = cli("schema", "check")
    assert ended.code == 1
    assert ended.out.startswith(".mdmem/schemas/bad.json:2:")
    (finding,) = cli("schema", "check", "--json").objects
    assert finding["line"] == 2
    assert cli("schema", "check", "--format", "github").out.startswith(
        "::error file=memories/.mdmem/schemas/bad.json,line=2"
    )


def test_a_memory_must_fit_a_schema_of_the_vault(cli: Cli, files: Files) -> None:
    files.write(".mdmem/schemas/decision.json", b'{"required": ["status"]}')
    ended = cli("write", "a.md", "---\ntype: decision\n---\n")
    assert ended.code == 2
    assert "status" in ended.errors
    cli.ok("write", "a.md", "---\ntype: decision\nstatus: open\n---\n")
    assert cli("unset", "a.md", "status").code == 2


GRAPH = (
    b'{"type":"entity","name":"Ada","entityType":"person","observations":["Wrote the first program"]}\n{\n'
)


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "memory.jsonl").write_bytes(GRAPH)
    return str(tmp_path / "memory.jsonl")


def test_an_import_is_printed_and_undone_by_its_id(cli: Cli, files: Files, source: str) -> None:
    before = files.everything()
    ended = cli("import", "mcp-memory", source, "--json")
    assert ended.code == 1
    assert [file["path"] for file in ended.json["files"]] == ["notes/Ada.md"]
    assert ended.json["left_out"] == [f"{source}:2: this is not JSON"]
    assert b"- Wrote the first program\n" in files.read("notes/Ada.md")
    assert "nothing to change: import 0 from mcp-memory, 1 stand there already" in (
        cli("import", "mcp-memory", source).out
    )
    cli.ok("undo", ended.json["id"])
    assert files.everything() == before


def test_a_dry_run_prints_the_diff_and_the_table_and_writes_nothing(
    cli: Cli, files: Files, source: str
) -> None:
    before = files.everything()
    table = f"        1  new memories\n        1  left out: this is not JSON\n           {source}:2\n"
    ended = cli("import", "mcp-memory", source, "--to", "graph", "--dry-run")
    assert (ended.code, ended.errors) == (1, "")
    assert "+++ b/graph/Ada.md" in ended.out
    assert ended.out.endswith(table)
    assert files.everything() == before
    assert cli("import", "mcp-memory", source, "--to", "graph").out.endswith(table)


def test_the_table_of_an_import_names_some_of_what_is_left_out(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "from/.git").mkdir(parents=True)
    (tmp_path / "from/a.md").write_text("---\ntags: {a: b}\n---\n![[p.png]]\n")
    (tmp_path / "from/p.png").write_bytes(b"\x89PNG\0")
    assert cli.ok("import", "obsidian", str(tmp_path / "from")).out.splitlines()[2:] == [
        "        1  new memories",
        "        1  new attachments",
        "        1  passed over: hidden",
        "           .git/",
    ]
    for number in range(5):
        (tmp_path / f"from/{number}.md").symlink_to("a.md")
    ended = cli("import", "obsidian", str(tmp_path / "from"))
    assert ended.code == 1
    assert ended.out.splitlines()[1:] == [
        "        2  stand there already",
        "        5  left out: it is a link",
        *(f"           {number}.md" for number in range(3)),
        "           and 2 more (-v names them)",
        "        1  passed over: hidden",
        "           .git/",
    ]
    assert "           4.md" in cli("import", "obsidian", str(tmp_path / "from"), "-v").out


@pytest.mark.parametrize("way", ["--dry-run", "", "--json", "-v"])
def test_the_first_ambiguous_links_of_an_import_are_named_and_how_many_more(
    cli: Cli, tmp_path: Path, way: str
) -> None:
    root = tmp_path / "obsidian"
    for folder in ("a", "b"):
        (root / folder).mkdir(parents=True)
        (root / folder / "X.md").write_text("# X\n")
    (root / "Home.md").write_text("[[X]]\n" * 13)
    ended = cli.ok("import", "obsidian", str(root), *filter(None, [way]))
    shown = ended.errors.count("ambiguous-link it may also mean notes/b/X.md")
    if way == "--json":
        assert [found["line"] for found in ended.json["warnings"]] == list(range(1, 14))
    else:
        assert shown == (13 if way == "-v" else 10)
        assert ("and 3 more ambiguous links (-v names them)" in ended.errors) == (way != "-v")


def test_an_unknown_format_is_wrong_usage(cli: Cli, source: str) -> None:
    ended = cli("import", "evernote", source)
    assert ended.code == 2
    assert "mcp-memory" in ended.errors


def test_a_source_that_is_not_there_is_wrong_usage(cli: Cli) -> None:
    ended = cli("import", "basic-memory", "nowhere")
    assert ended.code == 2
    assert "nowhere: there is no such folder" in ended.errors
