"""The command of ranked search: what it prints, what it says was left out, and that no words break it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

DB = b"""---
created: 2026-01-05
type: decision
tags: [storage]
---
# Database

## Why

Other engines need a server.
SQLite keeps everything in one file.
It is fast enough.

## Backups

Copied every night.
"""
OTHER = b"---\ncreated: 2025-03-04\ntype: note\n---\n# Lunch\n\nWe keep a file of menus.\n"


@pytest.fixture
def vault(files: Files) -> Files:
    files.write("notes/db.md", DB)
    files.write("other/lunch.md", OTHER)
    return files


@pytest.mark.usefixtures("vault")
def test_a_hit_has_its_place_heading_date_and_best_lines(cli: Cli) -> None:
    ended = cli.ok("search", "sqlite", "file", "--limit", "1", "-C", "1")
    assert ended.out == (
        "notes/db.md:11  [Database > Why]  2026-01-05\n"
        "10-Other engines need a server.\n"
        "11:SQLite keeps everything in one file.\n"
        "12-It is fast enough.\n"
    )
    assert ended.errors == "1 more fit: raise --limit, or narrow with --in, --type or --tag\n"


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        (["file"], {"notes/db.md", "other/lunch.md"}),
        (["file", "--in", "notes"], {"notes/db.md"}),
        (["file", "--type", "note"], {"other/lunch.md"}),
        (["file", "--type", "note", "--type", "decision"], {"notes/db.md", "other/lunch.md"}),
        (["file", "--tag", "storage"], {"notes/db.md"}),
        (["file", "--since", "2026"], {"notes/db.md"}),
        (["file", "--before", "2026-01"], {"other/lunch.md"}),
        (['"one file"'], {"notes/db.md"}),
        (["file -sqlite"], {"other/lunch.md"}),
        (["file", "--", "-sqlite"], {"other/lunch.md"}),
        (["file type:note"], {"other/lunch.md"}),
        (["nothing of that"], set()),
    ],
)
def test_a_search_looks_where_and_for_what_it_is_told(
    cli: Cli, arguments: list[str], paths: set[str]
) -> None:
    ended = cli("search", "--json", *arguments)
    assert {hit["path"] for hit in ended.json["hits"]} == paths
    assert ended.code == (0 if paths else 1)


@pytest.mark.usefixtures("vault")
def test_passages_are_ranked_each_for_itself(cli: Cli) -> None:
    words = ["every", "night", "everything"]
    assert [hit["path"] for hit in cli.ok("search", *words, "--json").json["hits"]] == ["notes/db.md"]
    hits = cli.ok("search", *words, "--json", "--passages").json["hits"]
    assert {tuple(hit["heading"]) for hit in hits} == {("Database", "Why"), ("Database", "Backups")}


@pytest.mark.usefixtures("vault")
def test_a_score_is_explained_on_request(cli: Cli) -> None:
    plain = cli.ok("search", "sqlite", "--json").json["hits"][0]
    assert "parts" not in plain
    explained = cli.ok("search", "sqlite", "--json", "--explain").json["hits"][0]
    assert explained["parts"]
    assert sum(part["value"] for part in explained["parts"]) == pytest.approx(explained["score"], rel=0.01)
    assert re.search(r"^ +\d+\.\d{3}  \w+", cli.ok("search", "sqlite", "--explain").out, re.MULTILINE)


@pytest.mark.usefixtures("vault")
# README: `--budget 1500` prints whole passages …
def test_a_budget_leaves_out_whole_passages_and_says_how_much(cli: Cli) -> None:
    whole = cli.ok("search", "file")
    assert whole.errors == ""
    cut = cli.ok("search", "file", "--budget", "30")
    assert cut.out
    assert cut.out in whole.out
    assert len(cut.out) < len(whole.out)
    assert re.fullmatch(r"1 more fit, about \d+ tokens of it beyond the budget: raise --budget\n", cut.errors)
    assert cli.ok("search", "file", "--budget", "30", "--json").json["left_out_tokens"] > 0


@pytest.mark.usefixtures("vault")
def test_what_is_not_used_of_a_query_is_said(cli: Cli) -> None:
    ended = cli("search", "the of")
    assert ended.code in {0, 1}
    ended = cli("search", "-")
    assert (ended.code, ended.out) == (1, "")
    assert ended.errors.startswith("note: ")


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    "arguments",
    [["--since", "soon", "file"], ["--limit", "0", "file"], ["--in", "..", "file"], []],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, arguments: list[str]) -> None:
    ended = cli("search", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.errors


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    "words", ['"', "(", "a AND OR", "tag:", "\udcff", "*", "x" * 20_000, "^~\\", "date:[1 TO"]
)
def test_no_words_are_a_syntax_error(cli: Cli, words: str) -> None:
    ended = cli("search", words)
    assert ended.code in {0, 1}
    assert "Traceback" not in ended.errors


def test_a_search_is_current_whoever_writes(cli: Cli, vault: Files) -> None:
    assert cli("search", "walrus").code == 1
    vault.write("new.md", b"A walrus.\n")
    assert cli.ok("search", "walrus").out.startswith("new.md:1  ")
    vault.write("new.md", b"A seal.\n")
    assert cli("search", "walrus").code == 1
