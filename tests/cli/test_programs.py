"""The programs that the user's environment names: the pager, and the editor."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from tests import speed
from tests.cli.screen import on_screen
from tests.programs import needs
from tests.speed import soak_most

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

pytestmark = pytest.mark.usefixtures("files")
LINES = b"".join(b"line %d\n" % number for number in range(40))
CAPITALS = {"PAGER": "tr a-z A-Z"}


# -- the pager --------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_pager_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGER", "LESS", "VISUAL", "EDITOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def long(files: Files) -> Files:
    files.write("long.md", LINES)
    return files


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize(
    "arguments",
    soak_most(
        [["show", "long.md"], ["append", "--help"], ["grep", "line"], ["grep", "line", "--json"]],
        quick=(0, 1),
    ),
)
def test_what_is_more_than_a_screen_is_paged(arguments: list[str]) -> None:
    seen = on_screen(*arguments, env=CAPITALS)
    assert seen.code == 0
    assert seen.text == seen.text.upper() != ""


@pytest.mark.usefixtures("long")
def test_less_does_not_wait_with_what_fits_on_one_screen() -> None:
    needs("less")
    seen = on_screen("show", "long.md", rows=50)
    assert (seen.code, "line 39" in seen.text) == (0, True)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize(
    ("options", "env"),
    soak_most(
        [(["--no-pager"], CAPITALS), ([], {**CAPITALS, "TERM": "dumb"}), ([], {"PAGER": "cat"})], quick=(0, 1)
    ),
)
def test_without_a_pager_all_is_printed_as_it_is(options: list[str], env: dict[str, str]) -> None:
    seen = on_screen(*options, "show", "long.md", env=env)
    assert (seen.code, seen.text.endswith(LINES.decode())) == (0, True)


@pytest.mark.usefixtures("long")
def test_nothing_is_paged_into_a_pipe(cli: Cli) -> None:
    assert cli("show", "long.md", env=CAPITALS).data == LINES


@pytest.mark.usefixtures("long")
def test_a_terminal_without_a_size_has_no_reader(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "tr a-z A-Z")
    monkeypatch.setenv("TERM", "xterm")
    code, seen = cli.on_terminal("show", "long.md")
    assert (code, seen.endswith("line 39\n")) == (0, True)


@pytest.mark.usefixtures("long")
def test_without_the_pager_all_is_printed() -> None:
    seen = on_screen("show", "long.md", env={"PAGER": "no-such-pager -x"})
    assert (seen.code, seen.text.endswith(LINES.decode())) == (0, True)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("pager", soak_most(["false", "head -n 1", "sed 2q"], quick=(0, 1)))
def test_a_pager_that_ends_early_leaves_no_traceback(pager: str) -> None:
    seen = on_screen("show", "long.md", env={"PAGER": pager})
    assert "Traceback" not in seen.text
    assert "Exception" not in seen.text
    assert seen.code == 0


def test_a_large_memory_is_cut_short_by_a_reader_who_has_seen_enough(files: Files) -> None:
    files.write("huge.md", LINES * 2000)
    seen = on_screen("show", "huge.md", env={"PAGER": "head -n 3"})
    assert (seen.code, seen.text.count("\n")) == (0, 3)


@pytest.mark.usefixtures("long")
def test_an_error_is_seen_behind_the_pager() -> None:
    seen = on_screen("backlinks", "nowhere.md", env={"PAGER": "tail -n 0"})
    assert (seen.code, "mdmem: nowhere.md: no such memory" in seen.text) == (1, True)


def test_the_exit_code_is_that_of_the_command(files: Files) -> None:
    for number in range(20):
        files.write(f"bad{number}.md", b"---\ntags: {a: 7}\n---\n")
    assert on_screen("check", env={"PAGER": "false"}).code == 1


@pytest.mark.usefixtures("long")
def test_controls_of_memories_are_shown_in_the_pager_and_our_colours_pass(files: Files) -> None:
    files.write("bad.md", b"\x1b[31mline \x1b]0;title\x07\n")
    seen = on_screen("grep", "line", env={"PAGER": "cat -v"})
    assert "^[[35mbad.md^[[0m" in seen.text
    assert "<U+001B>[31m" in seen.text
    assert " <U+001B>]0;title<U+0007>" in seen.text


@pytest.mark.usefixtures("long")
def test_no_color_is_heeded() -> None:
    for pager in ("cat", "cat -v") if speed.is_all else ("cat -v",):
        text = on_screen("grep", "line", env={"PAGER": pager, "NO_COLOR": "1"}).text
        assert "[35m" not in text
        assert "[35m" in on_screen("grep", "line", env={"PAGER": pager, "NO_COLOR": ""}).text


@pytest.mark.usefixtures("long")
def test_less_is_the_pager_where_nothing_else_is_said() -> None:
    needs("less")
    seen = on_screen("show", "long.md", typed=[(":", " "), ("line 1", "q")])
    assert (seen.code, "line 39" in seen.text, "Traceback" in seen.text) == (0, False, False)


def test_an_interrupt_is_for_the_pager_and_the_program_waits_for_it(files: Files) -> None:
    needs("less")
    files.write("huge.md", LINES * 5000)
    # Less takes the first key behind an interrupt for its end.
    seen = on_screen("show", "huge.md", typed=[(":", "\x03"), ("\x07", "q"), (":", "q")])
    assert (seen.code, "Traceback" in seen.text) == (130, False)


def test_what_goes_on_is_not_held_back(files: Files) -> None:
    ended = Event()

    def write() -> None:
        number = 0
        while not ended.wait(0.1):
            number += 1
            files.write(f"new{number}.md", b"x\n")

    writer = Thread(target=write)
    writer.start()
    try:
        seen = on_screen("watch", env=CAPITALS, typed=[("created  new", "\x03")], rows=1000)
    finally:
        ended.set()
        writer.join()
    assert (seen.code, "created  new" in seen.text) == (130, True)


@pytest.mark.usefixtures("long")
def test_a_folder_of_the_path_that_is_relative_holds_no_pager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = tmp_path / "work" / "less"
    stranger.write_text("#!/bin/sh\necho stranger\n")
    stranger.chmod(0o755)
    monkeypatch.setenv("PATH", ".::relative")
    seen = on_screen("show", "long.md")
    assert "stranger" not in seen.text
    assert "line 39" in seen.text


# -- the editor -------------------------------------------------------------------------------------------


NOTE = b"---\ntitle: T\n---\n# A\n\none\n"


@pytest.fixture
def drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which copies for the editor are made."""
    folder = tmp_path / "drafts"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def note(files: Files, drafts: Path, monkeypatch: pytest.MonkeyPatch) -> Files:  # noqa: ARG001 - is used
    files.write("notes/a.md", NOTE)
    monkeypatch.setenv("TERM", "xterm")
    return files


def left(drafts: Path) -> list[bytes]:
    return [file.read_bytes() for file in drafts.rglob("*") if file.is_file()]


def editor(folder: Path, script: str) -> str:
    """The path of an editor that runs a script of the shell on the file, which is $1."""
    path = folder / "an editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"'{path}'"


@pytest.mark.parametrize(
    "env",
    [
        {"EDITOR": "sed -i s/one/two/"},
        {"VISUAL": "sed -i s/one/two/", "EDITOR": "false"},
        {"VISUAL": "", "EDITOR": "sed -i 's/one/two/'"},
    ],
)
def test_the_editor_of_the_user_changes_a_memory(
    cli: Cli, note: Files, drafts: Path, env: dict[str, str]
) -> None:
    ended = cli("edit", "notes/a.md", env=env)
    assert ended.code == 0, ended.errors
    assert ended.out.startswith("changed notes/a.md  ")
    assert note.read("notes/a.md") == NOTE.replace(b"one", b"two")
    assert left(drafts) == []


def test_a_new_memory_is_made(cli: Cli, note: Files, tmp_path: Path) -> None:
    env = {"EDITOR": editor(tmp_path, 'test ! -s "$1" && echo "# New" > "$1"')}
    assert cli("edit", "notes/new.md", env=env).out.startswith("created notes/new.md  ")
    assert note.read("notes/new.md") == b"# New\n"


def test_the_copy_is_private_outside_of_the_vault_and_has_the_suffix_of_the_memory(
    cli: Cli, note: Files, tmp_path: Path
) -> None:
    script = f'pwd > {tmp_path}/told; echo "$1" >> {tmp_path}/told; stat -c %a "$1" >> {tmp_path}/told'
    env = {"EDITOR": editor(tmp_path, script)}
    assert cli("edit", "notes/a.md", env=env).code == 0
    where, file, mode = (tmp_path / "told").read_text().splitlines()
    assert where == os.getcwd()
    assert Path(file).suffix == ".md"
    assert not file.startswith(str(note.root))
    assert mode == "600"
    assert not Path(file).exists()


@pytest.mark.parametrize(
    "name", ["$(touch ran).md", "`touch ran`.md", "; touch ran;.md", "-c touch.md", "\u202e.json"]
)
def test_a_name_of_a_memory_is_no_part_of_what_runs(cli: Cli, note: Files, tmp_path: Path, name: str) -> None:
    note.write(name, b"1\n")
    env = {"EDITOR": editor(tmp_path, 'echo 3 > "$1"')}
    assert cli("edit", f"./{note.root.name}/{name}", env=env).code == 0
    assert note.read(name) == b"3\n"
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.parametrize("env", [{"EDITOR": "true"}, {"EDITOR": "touch"}])
@pytest.mark.parametrize("path", ["notes/a.md", "notes/new.md", "notes/open.md"])
def test_a_text_that_is_not_changed_changes_nothing(
    cli: Cli, note: Files, drafts: Path, env: dict[str, str], path: str
) -> None:
    note.write("notes/open.md", b"no end of line")
    before = note.everything()
    ended = cli("edit", path, env=env)
    assert (ended.code, "nothing to change" in ended.out + ended.errors) == (0, True)
    assert note.everything() == before
    assert left(drafts) == []


def test_that_an_editor_ends_the_last_line_is_no_change(cli: Cli, note: Files, tmp_path: Path) -> None:
    note.write("notes/open.md", b"no end of line")
    env = {"EDITOR": editor(tmp_path, 'echo >> "$1"')}
    assert "nothing to change" in cli("edit", "notes/open.md", env=env).out
    assert note.read("notes/open.md") == b"no end of line"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "Editing failed"),
        ('rm "$1"', "No such file"),
    ],
)
def test_an_editor_that_fails_changes_nothing(
    cli: Cli, note: Files, drafts: Path, tmp_path: Path, script: str, reason: str
) -> None:
    ended = cli("edit", "notes/a.md", env={"EDITOR": editor(tmp_path, script)})
    assert (ended.code, reason in ended.errors, "kept" in ended.errors) == (2, True, False)
    assert note.read("notes/a.md") == NOTE
    assert left(drafts) == []


def test_without_a_terminal_no_editor_is_chosen_for_the_user(cli: Cli, note: Files, drafts: Path) -> None:
    ended = cli("edit", "notes/a.md", "--json")
    assert (ended.code, ended.json["error"]["code"]) == (2, "usage")
    assert "set EDITOR" in ended.json["error"]["hint"]
    assert left(drafts) == []
    assert note.read("notes/a.md") == NOTE


def test_there_is_no_such_editor(cli: Cli, note: Files, drafts: Path) -> None:
    ended = cli("edit", "notes/a.md", "--json", env={"EDITOR": "no-such-editor"})
    assert (ended.code, ended.json["error"]["code"]) == (2, "editor-failed")
    assert left(drafts) == []
    assert note.read("notes/a.md") == NOTE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntags: {a: 7}\n---\n", "schema-type"),
        ("token ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5", "looks like a secret"),
        ("\\377", "not UTF-8"),
    ],
)
def test_a_text_that_is_refused_is_kept(
    cli: Cli, note: Files, drafts: Path, tmp_path: Path, text: str, said: str
) -> None:
    env = {"EDITOR": editor(tmp_path, f"printf -- '{text}' > \"$1\"")}
    ended = cli("edit", "notes/a.md", env=env)
    assert (ended.code, said in ended.errors, "your text is kept in" in ended.errors) == (2, True, True)
    assert note.read("notes/a.md") == NOTE
    assert len(left(drafts)) == 1


def test_what_others_changed_meanwhile_is_merged(cli: Cli, note: Files, tmp_path: Path) -> None:
    other = note.root / "notes/a.md"
    env = {"EDITOR": editor(tmp_path, f'echo theirs >> {other}; sed -i s/T/Mine/ "$1"')}
    ended = cli("edit", "notes/a.md", env=env)
    assert "(merged with a change made meanwhile)" in ended.out
    assert note.read("notes/a.md") == NOTE.replace(b"T", b"Mine") + b"theirs\n"


def test_what_cannot_be_merged_is_told_and_kept(cli: Cli, note: Files, drafts: Path, tmp_path: Path) -> None:
    other = note.root / "notes/a.md"
    env = {"EDITOR": editor(tmp_path, f'sed -i s/one/theirs/ {other}; sed -i s/one/mine/ "$1"')}
    ended = cli("edit", "notes/a.md", env=env)
    assert (ended.code, "+theirs" in ended.errors) == (2, True)
    assert note.read("notes/a.md") == NOTE.replace(b"one", b"theirs")
    assert left(drafts) == [NOTE.replace(b"one", b"mine")]


def test_a_memory_that_is_made_meanwhile_is_not_overwritten(
    cli: Cli, note: Files, drafts: Path, tmp_path: Path
) -> None:
    other = note.root / "notes/new.md"
    env = {"EDITOR": editor(tmp_path, f'echo theirs > {other}; echo mine > "$1"')}
    assert cli("edit", "notes/new.md", env=env).code == 2
    assert (note.read("notes/new.md"), left(drafts)) == (b"theirs\n", [b"mine\n"])


def test_a_dry_run_prints_the_diff_and_keeps_the_text(cli: Cli, note: Files, drafts: Path) -> None:
    ended = cli("edit", "notes/a.md", "--dry-run", env={"EDITOR": "sed -i s/one/two/"})
    assert (ended.code, "-one\n+two\n" in ended.out) == (0, True)
    assert note.read("notes/a.md") == NOTE
    assert left(drafts) == [NOTE.replace(b"one", b"two")]


@pytest.mark.usefixtures("note")
def test_no_room_for_a_copy_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", "/nowhere")
        ended = cli("edit", "notes/a.md", env={"EDITOR": "true"})
    told = "mdmem: the editor: [Errno 2] No such file or directory: '/nowhere"
    assert (ended.code, ended.errors.startswith(told)) == (2, True)


@pytest.mark.parametrize("path", ["../x.md", "notes", "con.md", "notes/A.md"])
def test_a_path_that_cannot_be_is_refused_before_the_editor_begins(
    cli: Cli, note: Files, tmp_path: Path, path: str
) -> None:
    env = {"EDITOR": editor(tmp_path, f"touch {tmp_path}/began")}
    assert cli("edit", path, env=env).code in {1, 2}
    assert not (tmp_path / "began").exists()
    assert note.read("notes/a.md") == NOTE


def test_on_a_terminal_a_refused_text_is_edited_again(note: Files, drafts: Path, tmp_path: Path) -> None:
    script = (
        'grep -q tags "$1" && sed -i s/tags:.*/title:\\ Again/ "$1" || sed -i "s/title.*/tags: {a: 7}/" "$1"'
    )
    seen = on_screen(
        "edit", "notes/a.md", env={"EDITOR": editor(tmp_path, script)}, typed=[("[Y/n]: ", "\n")]
    )
    assert (seen.code, "schema-type" in seen.text) == (0, True)
    assert note.read("notes/a.md") == NOTE.replace(b"T", b"Again")
    assert left(drafts) == []


def test_on_a_terminal_a_conflict_that_was_seen_is_overwritten(cli: Cli, note: Files, tmp_path: Path) -> None:
    other = note.root / "notes/a.md"
    script = f'grep -q theirs {other} && sed -i "s/mine/mine and theirs/" "$1" && exit'
    env = {"EDITOR": editor(tmp_path, f'{script}; sed -i s/one/theirs/ {other}; sed -i s/one/mine/ "$1"')}
    seen = on_screen("edit", "notes/a.md", env=env, typed=[("[Y/n]: ", "y\n")])
    assert (seen.code, "+theirs" in seen.text) == (0, True)
    assert note.read("notes/a.md") == NOTE.replace(b"one", b"mine and theirs")
    cli.ok("undo")
    assert note.read("notes/a.md") == NOTE.replace(b"one", b"theirs")


@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\x04", 130)])
def test_on_a_terminal_leaving_keeps_the_text(
    note: Files, drafts: Path, tmp_path: Path, answer: str, code: int
) -> None:
    env = {"EDITOR": editor(tmp_path, 'sed -i "s/title.*/tags: {a: 7}/" "$1"')}
    seen = on_screen("edit", "notes/a.md", env=env, typed=[("[Y/n]: ", answer)])
    assert (seen.code, "your text is kept in" in seen.text, "Traceback" in seen.text) == (code, True, False)
    assert note.read("notes/a.md") == NOTE
    assert len(left(drafts)) == 1


def test_an_interrupt_is_for_the_editor(note: Files, tmp_path: Path) -> None:
    script = "trap 'echo two > \"$1\"; exit 0' INT; echo ready; while :; do sleep 0.01; done"
    seen = on_screen(
        "edit", "notes/a.md", env={"EDITOR": editor(tmp_path, script)}, typed=[("ready", "\x03")]
    )
    assert (seen.code, "Traceback" in seen.text) == (0, False)
    assert note.read("notes/a.md") == b"two\n"


def test_the_life_of_working_memory_begins_anew(cli: Cli, note: Files) -> None:
    cli.ok("working", "set", "State: one.", "--thread", "t", "--ttl", "3600")
    before = note.read("working/threads/t.md")
    cli(
        "edit",
        "working/threads/t.md",
        env={"EDITOR": "sed -i -e s/one/two/ -e s/expires:.*Z/expires:\\ 2000-01-01T00:00:00Z/"},
    )
    assert b"State: two." in note.read("working/threads/t.md") != before
