"""The target of a command line: what is read without click is what click reads.

Arguments that begin with a dash: list items and frontmatter are texts, everything else is an option.

The program as a whole: which vault, whose memory, exit codes, errors, and what becomes of its output.

Completion: the scripts for the shells, and what they ask the program.
"""

from __future__ import annotations

import errno
import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import pytest

import mdmem
from mdmem.cli.main import _OLDER_NAMES, app
from mdmem.facade.memory import Memory
from tests.programs import needs
from tests.speed import soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


@pytest.mark.parametrize(
    "text",
    [
        *("- one more", "-\tone", "---\ntype: note\n---\n\n# T\n", "---", "--- a", "- help me -h --help"),
        *("- a=b", "-- ", "* starred", "-"),
    ],
)
def test_a_text_may_begin_with_a_dash(cli: Cli, files: Files, text: str) -> None:
    cli.ok("write", "a.md", text, "--json", stdin=b"-")
    assert files.read("a.md").decode() == text
    cli.ok("write", "--overwrite", "--", "a.md", text, stdin=b"-")
    assert files.read("a.md").decode() == text


def test_several_arguments_may(cli: Cli, files: Files) -> None:
    files.write("a.md", b"- [ ] todo\n")
    cli.ok("replace", "a.md", "- [ ] todo", "- [x] todo")
    assert files.read("a.md") == b"- [x] todo\n"
    assert cli.ok("grep", "- [x]").code == 0
    cli.ok("notes", "append", "n", "- one", "--title", "- T")
    assert files.read("notes/n.md") == b"## - T\n\n- one\n"


@pytest.mark.parametrize("word", ["--dry-rnu", "-x", "--dry-rnu=a b", "-xyz", "--"])
def test_what_may_be_an_option_is_one(cli: Cli, files: Files, word: str) -> None:
    ended = cli("append", word, "a.md", stdin=b"text")
    assert (ended.code == 2) == (word != "--")
    assert list(files.everything()) == ([] if ended.code else ["a.md"])


def test_an_option_keeps_a_value_with_blanks(cli: Cli, files: Files) -> None:
    cli.ok("notes", "append", "n", "text", "--title=A title = this")
    assert files.read("notes/n.md") == b"## A title = this\n\ntext\n"


BROKEN = "\udcff"  # how the byte 0xff of an argument arrives


# ------------------------------------------------------------------------------------------------- the vault


@pytest.mark.parametrize("folder", [".", "src/deep", "memories", "memories/notes"])
def test_the_vault_is_found_from_any_folder_below(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    files.write("notes/db.md", b"x\n")
    Path("src/deep").mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert cli.ok("ls").out == "notes/db.md\n"


def test_a_vault_can_be_named_by_option_and_by_environment(
    cli: Cli, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.md", b"x\n")
    for name in ("b", "c"):
        mdmem.init(tmp_path / name)
        (tmp_path / name / f"{name}.md").touch()
    assert cli.ok("--vault", str(tmp_path / "b"), "ls").out == "b.md\n"
    monkeypatch.setenv("MDMEM_VAULT", str(tmp_path / "c"))
    assert cli.ok("ls").out == "c.md\n"
    assert cli.ok("--vault", "memories", "ls").out == "a.md\n"


@pytest.mark.parametrize("arguments", [["ls"], ["--vault", "nowhere", "ls"], ["--vault", BROKEN, "ls"]])
def test_without_a_vault_a_command_says_how_to_make_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MDMEM_VAULT", raising=False)
    ended = cli(*arguments)
    assert ended.code == 2
    assert ended.errors.startswith("mdmem: no vault found at ")
    assert "mdmem init" in ended.errors


# ------------------------------------------------------------------------------------------------- the scope


@pytest.mark.parametrize(
    ("options", "namespace"),
    [
        ([], ""),
        (["--user", "alice"], "users/alice/"),
        (["--project", "demo"], "projects/demo/"),
        (["--user", "alice", "--project", "demo"], "users/alice/projects/demo/"),
        (["--user", "alice", "--project", "demo", "--shared"], "projects/demo/"),
        (["--user", "alice", "--shared"], ""),
        (["--resource", "ticket/7"], "resources/ticket/7/"),
        (["--resource", "file/src/app.py"], "resources/file/src%2Fapp.py/"),
        (["--project", "demo", "--resource", "ticket/7"], "projects/demo/resources/ticket/7/"),
        (["--user", "a/../b"], "users/a%2F..%2Fb/"),
    ],
)
def test_the_scope_says_where_a_memory_is(cli: Cli, files: Files, options: list[str], namespace: str) -> None:
    cli.ok(*options, "write", "notes/x.md", "text")
    assert list(files.everything()) == [f"{namespace}notes/x.md"]
    assert cli.ok(*options, "ls").out == "notes/x.md\n"


def test_the_scope_can_come_from_the_environment(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDMEM_USER", "alice")
    monkeypatch.setenv("MDMEM_PROJECT", "demo")
    monkeypatch.setenv("MDMEM_ACTOR", "robot")
    cli.ok("write", "a.md", "text")
    cli.ok("--user", "bob", "--actor", "person", "write", "b.md", "text")
    assert list(files.everything()) == ["users/alice/projects/demo/a.md", "users/bob/projects/demo/b.md"]
    assert cli.ok("history", "--json").objects[0]["actor"] == "robot"
    assert cli.ok("--user", "bob", "history", "--json").objects[0]["actor"] == "person"


@pytest.mark.parametrize("resource", ["ticket", "ticket/", "/7", "/"])
def test_a_resource_has_a_type_and_an_id(cli: Cli, resource: str) -> None:
    ended = cli("--resource", resource, "ls")
    assert (ended.code, ended.out) == (2, "")
    assert "--resource is TYPE/ID" in ended.errors


@pytest.mark.parametrize("user", ["..", ".", "", BROKEN])
def test_a_user_that_can_have_no_folder_is_refused(cli: Cli, files: Files, user: str) -> None:
    assert cli("--user", user, "write", "x.md", "text").code == 2
    assert not files.everything()


# -------------------------------------------------------------------------------------- exit codes and errors


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ls"], 0),
        (["--version"], 0),
        (["--help"], 0),
        (["grep", "file"], 0),
        (["grep", "nowhere"], 1),
        (["show", "missing.md"], 1),
        (["replace", "notes/db.md", "nowhere", "x"], 1),
        (["write", "notes/db.md", "again"], 2),
        (["show", "../outside.md"], 2),
        (["ls", "--bad"], 2),
        (["bad"], 2),
        ([], 2),
        (["notes"], 2),
    ],
)
def test_exit_codes(cli: Cli, files: Files, arguments: list[str], code: int) -> None:
    files.write("notes/db.md", b"one file\n")
    assert cli(*arguments).code == code


def test_a_bug_has_its_own_code_and_shows_where_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("boom")

    monkeypatch.setattr(Memory, "ls", fail)
    ended = cli("ls")
    assert (ended.code, ended.out) == (3, "")
    assert "Traceback" in ended.errors
    assert "RuntimeError: boom" in ended.errors
    assert "mdmem: this is a bug in mdmem" in ended.errors


def test_a_system_error_that_nobody_expected_is_a_bug_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Memory, "ls", fail)
    ended = cli("ls")
    assert ended.code == 3
    assert "PermissionError" in ended.errors


def test_a_lack_of_file_descriptors_is_no_bug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Memory, "ls", fail)
    ended = cli("ls")
    assert ended.code == 2
    assert ended.errors == "mdmem: the system has run out of something: [Errno 24] Too many open files\n"


def test_an_interrupt_ends_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "ls", interrupt)
    assert cli("ls") == (130, b"", "")


def test_an_interrupt_of_the_real_program_leaves_nothing_behind(files: Files) -> None:
    command = [sys.executable, "-m", "mdmem", "write", "notes/new.md"]
    ours, theirs = os.openpty()  # on a terminal it says when it waits for input
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith(b"reading content from standard input")
            process.send_signal(signal.SIGINT)
            _, complaint = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(ours)
    assert (process.returncode, complaint) == (130, b"")
    assert not files.everything()


def test_an_error_goes_to_standard_error(cli: Cli, files: Files) -> None:
    files.write("notes/database.md", b"x\n")
    ended = cli("show", "notes/databse.md")
    assert (ended.code, ended.out) == (1, "")
    assert ended.errors == "mdmem: notes/databse.md: no such memory\nnearest names: notes/database.md\n"


def test_with_json_an_error_is_an_object_too(cli: Cli, files: Files) -> None:
    files.write("notes/database.md", b"x\n")
    ended = cli("show", "notes/databse.md", "--json")
    assert ended.json["error"]["code"] == "memory-not-found"
    assert ended.json["error"]["near"] == ["notes/database.md"]
    assert ended.errors.startswith("mdmem: notes/databse.md: no such memory\n")
    real = cli.program("show", "notes/databse.md", "--json")
    assert real == ended


def test_json_behind_two_dashes_is_an_argument(cli: Cli) -> None:
    ended = cli("show", "--", "--json")
    assert (ended.code, ended.out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "--bad"], "No such option '--bad'."),
        (["grep"], "Missing argument 'PATTERN'."),
        (["grep", "x", "--limit", "0"], "Invalid value for '--limit'"),
        (["unknown"], "No such command 'unknown'."),
        (["set", "a.md", "novalue"], "'novalue' is not KEY=VALUE"),
    ],
)
def test_wrong_usage_is_an_error_like_any_other(cli: Cli, arguments: list[str], message: str) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.errors.startswith("Usage: mdmem ")
    assert f"mdmem: {message}" in ended.errors
    assert "--help`" in ended.errors
    ended = cli(*arguments, "--json")
    assert ended.code == 2
    assert ended.json["error"]["code"] == "usage"
    assert ended.json["error"]["message"].startswith(message)


def test_without_a_command_the_help_is_shown(cli: Cli) -> None:
    assert "Keep an agent's memory" in cli().errors
    assert "grows by sections" in cli("notes").errors


# ------------------------------------------------------------------------------- what no encoding can carry


@cases(
    "arguments",
    [
        ["show", BROKEN + ".md"],
        ["ls", BROKEN],
        ["write", "new.md", BROKEN],
        ["append", "a.md", BROKEN],
        ["append", "new.md", BROKEN],
        ["replace", "a.md", "text", BROKEN],
        ["replace", "a.md", BROKEN, "text"],
        ["replace", "--in", "", BROKEN, "text"],
        ["section", "a.md", BROKEN, "text"],
        ["section", "a.md", "Title", BROKEN],
        ["set", "a.md", f"key={BROKEN}"],
        ["set", "a.md", f"{BROKEN}=value"],
        ["set", "a.md", 'key="\\ud800"', "--json-value"],
        ["unset", "a.md", BROKEN],
        ["mv", "a.md", BROKEN + ".md"],
        ["restore", "a.md", "--hash", BROKEN * 8],
        ["undo", BROKEN],
        ["grep", BROKEN],
        ["new", BROKEN, "x.md"],
        ["new", "note", "x.md", "--var", f"title={BROKEN}"],
        ["template", "show", BROKEN],
        ["schema", "show", BROKEN],
        ["notes", "append", BROKEN, "text"],
        ["notes", "append", "n", BROKEN],
        ["notes", "append", "n", "text", "--title", BROKEN],
        ["working", "set", BROKEN, "--thread", "t"],
        ["working", "set", "text", "--thread", BROKEN],
        ["working", "merge", '{"a": "\\ud800"}', "--resource", "r"],
        ["preferences", "set", "ui", "theme", BROKEN],
        ["preferences", "set", BROKEN, "theme", "dark"],
        ["preferences", "show", "ui", BROKEN],
        ["project", "append", BROKEN, "text"],
        ["project", "append", "Decisions", BROKEN],
        ["project", "params", f"a={BROKEN}"],
    ],
)
def test_what_is_not_utf8_is_refused_and_never_a_bug(cli: Cli, files: Files, arguments: list[str]) -> None:
    files.write("a.md", b"# Title\n\ntext\n")
    ended = cli(*arguments)
    assert ended.code in {1, 2}
    assert "Traceback" not in ended.errors
    assert "mdmem: " in ended.errors
    assert files.everything() == {"a.md": b"# Title\n\ntext\n"}


def test_a_byte_that_is_not_utf8_in_a_real_argument_is_refused(cli: Cli, files: Files) -> None:
    ended = cli.program("append", "a.md", b"\xff")
    assert ended.code == 2
    assert ended.errors.startswith("mdmem: a.md: the new text has a lone surrogate")
    assert not files.everything()


# What is installed as editable is found by a file that Python 3.11 reads in the locale's encoding.
in_ascii = pytest.mark.skipif(not mdmem.__file__.isascii(), reason="the checkout's path is not ASCII")


@in_ascii
@pytest.mark.parametrize("env", [{"LANG": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "C"}])
def test_the_locale_does_not_matter(cli: Cli, files: Files, env: dict[str, str]) -> None:
    files.write("notes/größe.md", "# Café\n\n数据库 🙂\n".encode())
    found = cli.program("grep", "🙂", "--json", env={"LC_ALL": ""} | env)
    assert "notes/größe.md" in found.out
    assert '"heading": ["Café"]' in found.out
    assert "数据库 🙂" in found.out


@in_ascii
def test_the_output_is_utf8_even_where_python_is_told_not_to(cli: Cli, files: Files) -> None:
    files.write("notes/a.md", "# Café\n\n数据库 🙂\n".encode())
    env = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    assert cli.program("show", "notes/a.md", env=env).out == "# Café\n\n数据库 🙂\n"
    assert "# Café" in cli.program("grep", ".", "--regex", "--heading", env=env).out


# ------------------------------------------------------------------------------------------------ the output


def test_a_reader_that_has_seen_enough_is_no_error(files: Files) -> None:
    files.write("big.md", b"a word\n" * 40_000)
    for number in range(2000):
        files.write(f"notes/{'long' * 25}-{number}.md", b"word\n")  # more names than any pipe holds
    for arguments in (["ls"], ["grep", "word"], ["show", "big.md"]):
        command = [sys.executable, "-m", "mdmem", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline()
            process.stdout.close()
            complaint = process.stderr.read()
            assert b"Traceback" not in complaint
            assert b"Exception" not in complaint
            assert process.wait(60) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_told(files: Files) -> None:
    files.write("big.md", b"a word\n" * 40_000)
    for command in (["ls"], ["show", "big.md"]):
        with open("/dev/full", "wb") as full:
            ended = subprocess.run(
                [sys.executable, "-m", "mdmem", *command], stdout=full, stderr=subprocess.PIPE, check=False
            )
        assert ended.returncode == 2
        assert ended.stderr.decode().splitlines()[-1].startswith("mdmem: cannot write the output: ")
        assert b"Traceback" not in ended.stderr


def test_there_are_colours_on_a_terminal_only(cli: Cli, files: Files) -> None:
    files.write("notes/db.md", b"one file\n")
    for command in (["grep", "file"], ["replace", "notes/db.md", "one", "1", "--dry-run"]):
        code, seen = cli.on_terminal(*command)
        assert code == 0
        assert "\x1b[" in seen
        assert "\x1b" not in cli.ok(*command).out


@pytest.mark.parametrize("env", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_a_text_of_which_only_a_part_is_written_is_told(
    files: Files, tmp_path: Path, env: dict[str, str]
) -> None:
    files.write("big.md", b"a word\n" * 40_000)
    limit = 4000
    with (tmp_path / "out").open("wb") as out:
        ended = subprocess.run(
            [sys.executable, "-B", "-m", "mdmem", "show", "big.md"],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
            env=os.environ | env,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
    assert (ended.returncode, (tmp_path / "out").stat().st_size) == (2, limit)
    assert "mdmem: cannot write the output: File too large" in ended.stderr.decode()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("arguments", "streams"),
    soak_most(
        [
            (arguments, streams)
            for arguments in ("show a.md", "show nope.md --json", "bad", "grep x --json")
            for streams in (">/dev/full", "2>/dev/full", ">/dev/full 2>/dev/full")
        ],
        quick=(0, 5, 7, 10),
    ),
)
def test_no_full_stream_is_called_a_bug(files: Files, streams: str, arguments: str) -> None:
    files.write("a.md", b"x\n")
    command = f"{shlex.quote(sys.executable)} -m mdmem {arguments} {streams}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    quiet = streams == "2>/dev/full" and arguments.startswith("grep")  # it has nothing to say there
    assert ended.returncode == (0 if quiet else 2)
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell_without_a_vault(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.chdir(tmp_path)
    script = cli.ok("completion", shell).out
    assert f"_MDMEM_COMPLETE={shell}_complete" in script
    assert cli("completion", "tcsh").code == 2


def test_bash_takes_the_script(cli: Cli, files: Files) -> None:
    needs("bash")
    files.write("notes/db.md", b"x\n")
    script = cli.ok("completion", "bash").out
    words = 'COMP_WORDS=(mdmem show no); COMP_CWORD=2; _mdmem_completion mdmem; echo "${COMPREPLY[@]}"'
    beside = os.path.dirname(sys.executable)
    ended = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p mdmem\n{words}"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{beside}:{os.environ['PATH']}"},
    )
    assert ended.stderr == ""
    assert ended.stdout == "complete -o nosort -F _mdmem_completion mdmem\nnotes/db.md\n"


def complete(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What bash is told when the last word of `line` is to be completed."""
    words = line.split(" ")
    monkeypatch.setenv("_MDMEM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    ended = cli()
    assert ended.code == 0
    assert ended.errors == ""
    return [answer.partition(",")[2] for answer in ended.out.splitlines() if answer]


@cases(
    "line, answers",
    [
        ("mdmem show no", ["notes/db.md", "notes/deep/x.md"]),
        ("mdmem show notes/de", ["notes/deep/x.md"]),
        ("mdmem show x", []),
        ("mdmem append a", ["a.md"]),
        ("mdmem mv notes/db", ["notes/db.md"]),
        ("mdmem --user alice show ", ["mine.md"]),
        ("mdmem --resource broken show ", []),
        ("mdmem appe", ["append"]),
        ("mdmem notes a", ["append"]),
        ("mdmem show --only", ["--only-hash"]),
        ("mdmem check --format ", ["text", "json", "github", "sarif"]),
    ],
)
def test_words_are_completed(
    cli: Cli, files: Files, monkeypatch: pytest.MonkeyPatch, line: str, answers: list[str]
) -> None:
    for path in ("a.md", "notes/db.md", "notes/deep/x.md", "users/alice/mine.md"):
        files.write(path, b"x\n")
    assert complete(cli, monkeypatch, line) == answers


def test_outside_a_vault_there_are_no_paths(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MDMEM_VAULT", raising=False)
    assert complete(cli, monkeypatch, "mdmem show ") == []


def test_the_real_program_completes(cli: Cli, files: Files) -> None:
    files.write("notes/größe.md", b"x\n")
    env = {"_MDMEM_COMPLETE": "zsh_complete", "COMP_WORDS": "mdmem show no", "COMP_CWORD": "2"}
    assert "notes/größe.md" in cli.program(env=env).out


@pytest.mark.parametrize(("older", "name"), _OLDER_NAMES.items())
def test_a_command_keeps_the_name_that_it_had_before(older: str, name: str) -> None:
    group_name, command_name = older.split()
    context = click.Context(app, info_name="mdmem")
    group = app.get_command(context, group_name)
    assert isinstance(group, click.Group)
    assert group.get_command(context, command_name) is group.get_command(context, name)
    assert command_name not in group.list_commands(context)


def test_a_name_from_before_does_the_same(cli: Cli) -> None:
    cli.ok("working", "update", "Tests red.", "--thread", "t1")
    assert cli.ok("working", "get", "--thread", "t1").out == "Tests red.\n"
    assert cli.ok("sessions", "add", "t1", "user", "Hello").out == "1\n"
    cli.ok("rules", "add", "short", "Be short.")
    assert "Be short." in cli.ok("rules", "text").out
    cli.ok("preferences", "set", "ui", "theme", "dark")
    cli.ok("preferences", "delete", "ui", "theme")
    assert cli("preferences", "get", "ui", "theme").code == 1
