"""The commands of working memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

THREAD = ("--thread", "t1")


def test_a_thread_has_a_state_that_is_replaced(cli: Cli, files: Files) -> None:
    cli.ok("working", "update", "Tests red.", *THREAD)
    assert files.read("working/threads/t1.md") == b"Tests red.\n"
    cli.ok("working", "find-and-replace", "red", "green", *THREAD)
    assert cli.ok("working", "get", *THREAD).out == "Tests green.\n"
    assert cli.ok("working", "get", *THREAD, "--json").json == {"content": "Tests green."}
    cli.ok("working", "find-and-replace", "", "- next", *THREAD)
    assert cli.ok("working", "get", *THREAD).out == "Tests green.\n\n- next\n"
    cli.ok("working", "clear", *THREAD)
    assert not files.everything()


def test_what_is_not_there_prints_nothing_and_ends_with_one(cli: Cli) -> None:
    assert cli("working", "get", *THREAD) == (1, b"", "")
    assert cli("working", "get", *THREAD, "--json").json == {"content": ""}


def test_a_template_begins_what_is_not_there(cli: Cli, files: Files) -> None:
    files.write(".mdmem/templates/state.md", b"State of {{ name }}.\n")
    begun = cli.ok("working", "get", *THREAD, "--template", "state", "--var", "name=T1")
    assert begun.out == "State of T1.\n"
    assert files.read("working/threads/t1.md") == b"State of T1.\n"


def test_a_json_memory_is_merged_and_checked(cli: Cli, files: Files) -> None:
    files.write(
        ".mdmem/schemas/step.json", b'{"type": "object", "properties": {"step": {"type": "integer"}}}'
    )
    owner = ("--resource", "r/1")
    cli.ok("working", "update", '{"step": 1, "note": "x"}', *owner, "--schema", "step")
    cli.ok("working", "merge", '{"step": 2, "note": null}', *owner)
    content = json.loads(cli.ok("working", "get", *owner).out)
    assert content["step"] == 2
    assert "note" not in content
    assert cli("working", "merge", '{"step": "two"}', *owner).code == 2
    assert list(files.everything()) == ["working/resources/r%2F1.json"]


@pytest.mark.parametrize("patch", ["{", "nothing", "[" * 100_000])
def test_a_patch_that_is_not_json_is_refused(cli: Cli, patch: str) -> None:
    ended = cli("working", "merge", patch, *THREAD)
    assert ended.code == 2
    assert "mdmem: the patch is not JSON" in ended.errors


@pytest.mark.parametrize("owner", [[], [*THREAD, "--resource", "r1"], ["--thread", ".."], ["--thread", ""]])
def test_a_working_memory_belongs_to_one_thread_or_resource(cli: Cli, files: Files, owner: list[str]) -> None:
    assert cli("working", "update", "text", *owner).code == 2
    assert not files.everything()


def test_what_expires_is_listed_and_swept(cli: Cli, files: Files) -> None:
    cli.ok("working", "update", "text", *THREAD, "--ttl", "3600")
    files.write("working/threads/old.md", b"---\nexpires: 2020-01-01T00:00:00Z\n---\nold\n")
    files.write("working/resources/r.json", b'{"a": 1}\n')
    lines = cli.ok("working", "list").out.splitlines()
    assert lines[0] == "thread\told\tworking/threads/old.md\texpired"
    assert lines[1].startswith("thread\tt1\tworking/threads/t1.md\texpires 2")
    assert lines[2] == "resource\tr\tworking/resources/r.json"
    assert [info["expired"] for info in cli.ok("working", "list", "--json").json] == [True, False, False]
    assert "-old" in cli.ok("working", "sweep", "--dry-run").out
    assert cli.ok("working", "sweep").out == "deleted working/threads/old.md\n"
    assert len(cli.ok("working", "list", "--json").json) == 2


def test_a_stale_base_is_refused(cli: Cli, files: Files) -> None:
    cli.ok("working", "update", "one", *THREAD)
    seen = cli.ok("show", "working/threads/t1.md", "--hash").out.strip()
    cli.ok("working", "update", "two", *THREAD, "--base", seen)
    assert cli("working", "update", "three", *THREAD, "--base", seen).code == 2
    assert files.read("working/threads/t1.md") == b"two\n"
