"""The commands that show memories from another side: diff, stats, today."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


# ----------------------------------------------------------------------------------------------------- diff


def test_diff_prints_the_last_change_and_ends_with_0(cli: Cli, files: Files) -> None:
    cli.ok("write", "a.md", "one\n")
    cli.ok("append", "a.md", "two")
    shown = cli.ok("diff", "a.md")
    assert shown.out == "--- a/a.md\n+++ b/a.md\n@@ -1 +1,2 @@\n one\n+two\n"
    files.write("a.md", b"one\n")
    assert cli.ok("diff", "a.md").out == ""


def test_diff_takes_what_history_prints(cli: Cli) -> None:
    cli.ok("write", "a.md", "one\n")
    cli.ok("append", "a.md", "two")
    cli.ok("append", "a.md", "three")
    *_, change, files = [line.split() for line in cli.ok("history", "a.md", "--limit", "2").out.splitlines()]
    by_change, by_hash = (cli.ok("diff", "a.md", "--against", each).out for each in (change[0], files[1]))
    assert by_change == by_hash
    assert "+two\n+three\n" in by_hash
    shown = cli.ok("diff", "a.md", "--against", files[1], "--json").json
    assert shown == {"path": "a.md", "against": files[1], "diff": by_hash}


def test_diff_says_what_it_does_not_know(cli: Cli, files: Files) -> None:
    files.write("a.md", b"one\n")
    ended = cli("diff", "a.md")
    assert (ended.code, ended.out) == (1, "")
    assert "no change of a.md" in ended.errors
    assert cli("diff", "none.md").code == 1
    assert cli("diff", "a.md", "--against", "xyz").code == 1


# ---------------------------------------------------------------------------------------------------- today


def test_today_makes_the_log_from_the_template_and_adds_to_it(cli: Cli, files: Files) -> None:
    assert cli.ok("today", "Fixed", "the login.").out.startswith("created notes/daily/")
    assert cli.ok("today", "-", stdin=b"- one\n- two\n").out.startswith("changed notes/daily/")
    ((path, data),) = files.everything().items()
    day = path.removeprefix("notes/daily/").removesuffix(".md")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    # What is said within a minute has one heading.
    text = re.sub(r"(?<=login\.\n\n)## TIME\n\n", "", re.sub(r"\d\d:\d\d\n", "TIME\n", data.decode()))
    assert text == (
        f"---\ntype: daily\ntitle: {day}\ncreated: {day}\n---\n\n# {day}\n\n"
        "## Done\n\n## Learned\n\n## Next\n\n"
        "## TIME\n\nFixed the login.\n\n- one\n- two\n"
    )
    shown = cli.ok("today")
    assert shown.data == data
    assert shown.errors.startswith(f"{path}  ")
    assert cli.ok("today", "--json").json["path"] == path
    assert cli.ok("check").out == ""


def test_today_without_a_log_says_how_to_begin_one(cli: Cli, files: Files) -> None:
    ended = cli("today")
    assert (ended.code, ended.out) == (1, "")
    assert "begin it with `mdmem today TEXT`" in ended.errors
    assert files.everything() == {}


def test_today_is_the_date_of_the_time_zone(cli: Cli, files: Files) -> None:
    for zone in ("UTC-14", "UTC+12"):  # in POSIX the sign says how far UTC is ahead
        cli.program("today", "x", env={"TZ": zone})
    assert len(files.everything()) == 2
    for path, data in files.everything().items():
        assert f"created: {path[-13:-3]}\n".encode() in data


def test_the_template_of_the_vault_makes_the_log(cli: Cli, files: Files) -> None:
    files.write(".mdmem/templates/daily.md", b"# Log of {{ date }}\n")
    cli.ok("today", "text")
    (data,) = files.everything().values()
    assert re.fullmatch(rb"# Log of [-\d]{10}\n\n## \d\d:\d\d\n\ntext\n", data)


@pytest.mark.parametrize(
    "template", [b"{% if %}", b"{{ missing }}", b"```\nopen\n", b"---\ntags: {a: 7}\n---\n"]
)
def test_a_template_that_makes_no_log_is_refused(cli: Cli, files: Files, template: bytes) -> None:
    files.write(".mdmem/templates/daily.md", template)
    assert cli("today", "text").code == 2
    assert files.everything() == {}


def test_today_dry_run_writes_nothing(cli: Cli, files: Files) -> None:
    assert "+text\n" in cli.ok("today", "text", "--dry-run").out
    assert files.everything() == {}


def test_a_log_is_that_of_its_namespace(cli: Cli, files: Files) -> None:
    cli.ok("--user", "alice", "today", "hers")
    assert next(iter(files.everything())).startswith("users/alice/notes/daily/")
    assert cli("--user", "bob", "today").code == 1


# ---------------------------------------------------------------------------------------------------- stats


def test_stats_are_a_table(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", b"---\ncreated: 2024-01-31\n---\n")
    files.write("notes/a.md", b"---\ncreated: 2024-02-01\n---\n" + b"word " * 20)
    files.write("notes/deep/b.md", b"---\ncreated: 2024-02-29\n---\n" + b"word " * 60)
    files.write("notes/bad.md", b"\xff")
    ended = cli.ok("stats")
    assert ended.out == (
        "3 memories, 484 bytes, about 130 tokens\n\n"
        "folder  memories  bytes  tokens\n"
        "notes          2    456     114\n"
        ".              1     28      16\n\n"
        "month    memories  bytes  tokens\n"
        "2024-01         1     28      16\n"
        "2024-02         2    456     114\n"
    )
    assert ended.errors == "1 file cannot be read: see `mdmem check`\n"


def test_stats_of_many_months_say_how_many_are_left_out(cli: Cli, files: Files) -> None:
    for month in range(1, 13):
        for year in (2021, 2022, 2023):
            files.write(f"{year}-{month:02}-01.md", b"x\n")
    ended = cli.ok("stats")
    assert ended.out.count("\n2") == 24
    assert ended.errors == "12 earlier months left out: see --json\n"
    assert len(cli.ok("stats", "--json").json["months"]) == 36


def test_stats_of_nothing_are_zero(cli: Cli) -> None:
    assert cli.ok("stats").out == "0 memories, 0 bytes, about 0 tokens\n"


def test_status_names_three_problems_of_the_setup_and_counts_the_others(cli: Cli, files: Files) -> None:
    files.write(".mdmem/config.toml", b'[mounts]\n"AGENTS.md" = "../AGENTS.md"\n[git]\ncommit = "auto"\n')
    files.write("notes/bad.md", b"\xff\xfe")
    told = cli.ok("status")
    assert told.out.splitlines()[-1].startswith(" " * 17)
    assert told.errors == "setup: and 1 more, with --json\n"
    assert len(cli.ok("status", "--json").json["setup"]) == 4


def test_the_status_tells_ambiguous_links_from_broken_ones(cli: Cli, files: Files) -> None:
    files.write("notes/a/twin.md", b"")
    files.write("notes/b/twin.md", b"")
    files.write("notes/c.md", b"[[twin]] [[gone]] [[gone too]]\n")
    out = cli("status").out
    assert "\nbroken links     2        mdmem check\n" in out
    assert "\nambiguous links  1        mdmem refs --state ambiguous\n" in out
    assert [each["target"] for each in cli("refs", "--state", "ambiguous", "--json").objects]
    files.write("notes/c.md", b"[[gone]]\n")
    assert "ambiguous" not in cli("status").out
