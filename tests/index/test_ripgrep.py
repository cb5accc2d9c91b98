"""The program ripgrep: finding it, its version, and explaining its failures."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from mdmem.errors import PatternInvalid, ProgramFailed, Usage
from mdmem.index import ripgrep
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLD = """#!/bin/sh
if [ "$1" = --version ]; then echo "ripgrep 0.10.0"; exit 0; fi
echo "error: Found argument '--json' which wasn't expected, or isn't valid in this context" >&2
exit 2
"""


def script(folder: Path, text: str) -> str:
    path = folder / "rg"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An interpreter with nothing beside it, and a PATH of one empty folder."""
    (tmp_path / "python").mkdir()
    (tmp_path / "path").mkdir()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "python3"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_the_program_beside_the_interpreter_comes_before_the_one_on_path(elsewhere: Path) -> None:
    on_path = script(elsewhere / "path", OLD)
    assert ripgrep.program() == on_path

    beside = script(elsewhere / "python", OLD)
    assert ripgrep.program() == beside


def test_a_file_that_cannot_be_run_is_not_the_program(elsewhere: Path) -> None:
    os.chmod(script(elsewhere / "python", OLD), 0o644)
    with pytest.raises(ProgramFailed) as caught:
        ripgrep.program()
    assert caught.value.code == "ripgrep-missing"
    assert "pip install" in caught.value.hint


def test_an_interpreter_that_does_not_know_its_place_does_not_make_the_current_folder_count(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(elsewhere, OLD)
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(ProgramFailed) as caught:
        ripgrep.program()
    assert caught.value.code == "ripgrep-missing"


@pytest.mark.usefixtures("elsewhere")
def test_an_empty_path_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ProgramFailed) as caught:
        ripgrep.program()
    assert caught.value.code == "ripgrep-missing"


def test_the_installed_program_is_new_enough() -> None:
    assert ripgrep.version(ripgrep.program()) >= ripgrep.MINIMUM


def test_a_program_that_gives_no_version_has_none(tmp_path: Path) -> None:
    assert ripgrep.version(script(tmp_path, "#!/bin/sh\necho hello\n")) == ()


def test_a_program_that_cannot_be_started_is_a_failure_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed) as caught:
        ripgrep.version(str(tmp_path / "rg"))
    assert (caught.value.code, caught.value.program) == ("ripgrep-failed", str(tmp_path / "rg"))
    assert "No such file" in caught.value.reason


def test_a_command_that_is_too_long_is_wrong_usage() -> None:
    with pytest.raises(Usage):
        ripgrep.Process([ripgrep.program(), "--", "x" * 10_000_000])


def test_leaving_the_block_ends_the_process_and_waits_for_it(tmp_path: Path) -> None:
    with ripgrep.Process([script(tmp_path, "#!/bin/sh\necho begun\nexec sleep 1000\n")]) as process:
        assert next(process.lines()) == b"begun\n"
    with pytest.raises(ChildProcessError):
        os.waitpid(process._process.pid, os.WNOHANG)


def test_complaints_without_end_do_not_block(tmp_path: Path) -> None:
    noisy = "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x >&2\necho done\n"
    with ripgrep.Process([script(tmp_path, noisy)]) as process:
        assert list(process.lines()) == [b"done\n"]
        assert len(process.errors()) == 1 << 20


def test_an_old_program_that_does_not_know_an_option_is_too_old(tmp_path: Path) -> None:
    program = script(tmp_path, OLD)
    with ripgrep.Process([program, "--json"]) as process:
        error = ripgrep.failure(program, process.errors(), "x")
    assert isinstance(error, ProgramFailed)
    assert error.code == "ripgrep-too-old"
    assert error.message == f"{program}: ripgrep 0.10.0 is too old"


def test_a_failure_that_nothing_explains_is_told_as_it_is() -> None:
    program = ripgrep.program()
    error = ripgrep.failure(program, "rg: the disk is on fire\nand so is the fan\n", "x")
    assert isinstance(error, ProgramFailed)
    assert (error.code, error.reason) == ("ripgrep-failed", "the disk is on fire")
    silent = ripgrep.failure(program, "", "x")
    assert isinstance(silent, ProgramFailed)
    assert silent.reason == "it ended without a word"


@cases(
    "pattern, reason",
    [
        ("(", "unclosed group"),
        ("[", "unclosed character class"),
        ("[z-a]", "invalid character class range, the start must be <= the end"),
        ("(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
        (r"\1", "backreferences are not supported"),
        (r"a\nb", r'the literal "\n" is not allowed in a regex'),
        ("error: x(", "unclosed group"),
        ("error parsing glob 'x': y(", "unclosed group"),
        ("x{1000}{1000}{1000}", "compiled regex exceeds size limit of 104857600"),
    ],
)
def test_a_bad_pattern_is_explained_by_the_line_that_says_why(pattern: str, reason: str) -> None:
    program = ripgrep.program()
    with ripgrep.Process([program, "--", pattern, os.devnull]) as process:
        error = ripgrep.failure(program, process.errors(), pattern)
    assert isinstance(error, PatternInvalid)
    assert (error.pattern, error.reason) == (pattern, reason)


def test_what_could_not_be_read_is_listed_and_what_vanished_is_not() -> None:
    errors = (
        "rg: ./n/new\nline: x.md: Permission denied (os error 13)\n"
        "rg: ./gone.md: No such file or directory (os error 2)\n"
        "rg: ./b.md: Input/output error (os error 5)\n"
        "rg: something else\n"
    )
    assert ripgrep.unread(errors) == [
        ("", "something else"),
        ("./b.md", "Input/output error"),
        ("./n/new\nline: x.md", "Permission denied"),
    ]
    assert ripgrep.unread("") == []


@cases("line", [b"", b"{", b"[]", b"null", b"\xff", b'{"type":"match"}', b"7"])
def test_a_line_that_is_no_message_has_no_kind(line: bytes) -> None:
    assert ripgrep.message(line) == ("", {})
    assert list(ripgrep.matching_lines(line)) == []


def matching(lines: dict[str, str], *spans: tuple[int, int]) -> list[ripgrep.Line]:
    submatches = [{"match": {"text": ""}, "start": start, "end": end} for start, end in spans]
    data = {"path": {"text": "a.md"}, "lines": lines, "line_number": 7, "submatches": submatches}
    printed = json.dumps({"type": "match", "data": data}, separators=(",", ":")).encode()
    assert ripgrep.is_match(printed)
    found = list(ripgrep.matching_lines(printed))
    assert ripgrep.count_lines(printed) == len(found)
    return found


def test_spans_are_code_points_whatever_the_bytes() -> None:
    assert matching({"text": "é→x\r\n"}, (5, 6)) == [(7, 0, "é→x", ((2, 3),))]
    assert matching({"bytes": "YQ3/DWEK"}, (0, 1), (4, 5)) == [(7, 0, "a", ((0, 1),)), (7, 2, "a", ((0, 1),))]
    assert matching({"bytes": "w6n/eAo="}, (3, 4)) == [(7, 0, "é\ufffdx", ((2, 3),))]


def test_lone_carriage_returns_part_a_line() -> None:
    """A match belongs to the line that it begins in, and ends with it."""
    lines = {"text": "ab\rcd\r\ref\r\n"}
    assert matching(lines, (3, 4), (8, 9)) == [(7, 1, "cd", ((0, 1),)), (7, 3, "ef", ((1, 2),))]
    assert matching(lines, (1, 4)) == [(7, 0, "ab", ((1, 2),))]
    assert matching(lines, (6, 6)) == [(7, 2, "", ((0, 0),))]


def test_a_line_that_matched_without_saying_where_is_not_lost() -> None:
    assert matching({"text": "abc\n"}) == [(7, 0, "abc", ((0, 0),))]
    assert matching({"text": r"a\r"}, (0, 1)) == [(7, 0, r"a\r", ((0, 1),))]
    assert matching({"text": "abc\r\n"}, (4, 5)) == [(7, 0, "abc", ((3, 3),))]


def test_what_it_is_given_is_searched_and_what_goes_wrong_in_making_that_is_raised() -> None:
    command = [ripgrep.program(), "--no-config", "--fixed-strings", "b", "-"]
    with ripgrep.Process(
        command, given=(b"%s\n" % each for each in (b"a", b"b" * (1 << 17), b"ab"))
    ) as process:
        assert [len(line) for line in process.lines()] == [(1 << 17) + 1, 3]
        assert process.ended() == 0

    def failing() -> Iterator[bytes]:
        yield b"b\n"
        raise LookupError

    with ripgrep.Process(command, given=failing()) as process:
        assert list(process.lines()) == [b"b\n"]
        with pytest.raises(LookupError):
            process.ended()


def test_what_it_is_given_may_go_on_when_it_has_ended() -> None:
    endless = iter(lambda: b"b\n" * 10_000, b"")
    with ripgrep.Process([ripgrep.program(), "--no-config", "("], given=endless) as process:
        assert list(process.lines()) == []
        assert process.ended() == 2
    with ripgrep.Process([ripgrep.program(), "--no-config", "b", "-"], given=endless) as process:
        assert next(process.lines()) == b"b\n"
