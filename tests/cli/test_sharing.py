"""Sharing on the command line and by the tools of agents: what is typed, and what another user gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.serve.mcp.answer import Bound
from mdmem.serve.mcp.tools import Toolbox

if TYPE_CHECKING:
    from mdmem.serve.mcp.answer import Answer
    from tests.cli.conftest import Cli, Files

BOB, ALICE = ("--user", "bob"), ("--user", "alice")
NOTE = "# Database\n\nSQLite is one file.\n"


@pytest.fixture
def shared(cli: Cli, files: Files) -> Cli:
    """The program, in a vault where alice shares a note with bob, and has another one."""
    files.write(".mdmem/config.toml", b"[sharing]\nenabled = true\n")
    cli.ok(*ALICE, "write", "notes/db.md", NOTE)
    cli.ok(*ALICE, "write", "notes/secret.md", "SQLite and a zebra.\n")
    cli.ok(*ALICE, "share", "notes/db.md", "bob", "read", "--until", "2999-01-31")
    return cli


def test_from_reads_what_a_user_shares_and_nothing_else(shared: Cli) -> None:
    assert shared.ok(*BOB, "show", "--from", "alice", "notes/db.md").out.endswith(NOTE)
    assert shared.ok(*BOB, "show", "from-alice:notes/db.md", "--section", "Database").out.startswith("# Data")
    for scope in ((), ("--in", "notes")):
        hits = shared.ok(*BOB, "grep", "SQLite", "--from", "alice", *scope, "--json").objects
        assert {hit["path"] for hit in hits} == {"from-alice:notes/db.md"}
        found = shared.ok(*BOB, "search", "sqlite", "--from", "alice", *scope, "--json")
        assert [hit["path"] for hit in found.objects] == ["from-alice:notes/db.md"]
    for arguments in (("ls",), ("ls", "notes"), ("ls", "notes/db.md"), ("ls", "--where", "access.read=bob")):
        listed = shared.ok(*BOB, *arguments, "--from", "alice").out
        assert listed == "from-alice:notes/db.md\n", arguments
    assert (
        shared.ok(*BOB, "grep", "-c", "SQLite", "notes", "--from", "alice").out
        == "from-alice:notes/db.md:1\n"
    )
    for arguments in (
        ("show", "notes/secret.md"),
        ("ls", "notes/secret.md"),
        ("grep", "x", "notes/secret.md"),
    ):
        done, none = (
            shared(*BOB, *(each.replace("secret", name) for each in arguments), "--from", "alice")
            for name in ("secret", "sacret")
        )
        assert done.code
        assert done.errors == none.errors.replace("sacret", "secret")
    assert shared(*BOB, "ls", "--from", "carol").out == ""
    assert shared(*BOB, "ls").out == ""


def test_access_says_who_may_use_a_memory_and_what_others_share(shared: Cli) -> None:
    done = shared.ok(*ALICE, "access", "notes/db.md")
    assert (done.out, done.errors) == ("read   bob\n", "until 2999-01-31\n")
    assert shared.ok(*ALICE, "access", "notes/db.md", "--json").json["users"] == {"bob": "read"}
    assert shared.ok(*BOB, "access").out == "read   from-alice:notes/db.md\n"
    assert shared.ok(*BOB, "access", "--json").json["until"] == "2999-01-31"
    assert shared(*ALICE, "access").code == 0
    shared.ok(*ALICE, "unshare", "notes/db.md", "bob")
    assert shared(*BOB, "access").out == ""


def test_what_is_shared_is_changed_by_no_command(shared: Cli) -> None:
    for arguments in (
        ("append", "from-alice:notes/db.md", "x"),
        ("write", "from-alice:notes/new.md", "x"),
        ("rm", "from-alice:notes/db.md"),
        ("mv", "from-alice:notes/db.md", "mine.md"),
        ("mv", "notes/own.md", "from-alice:notes/own.md"),
        ("set", "from-alice:notes/db.md", "a=1"),
        ("share", "from-alice:notes/db.md", "carol", "read"),
        ("restore", "from-alice:notes/db.md"),
    ):
        done = shared(*BOB, *arguments)
        assert done.code, arguments
    assert "changed in Python alone" in shared(*BOB, "append", "from-alice:notes/db.md", "x").errors


def test_without_a_user_or_the_config_nothing_is_shared(shared: Cli, files: Files) -> None:
    assert "bind one to the scope" in shared("ls", "--from", "alice").errors
    assert "bind one to the scope" in shared("--shared", *BOB, "access").errors
    files.write(".mdmem/config.toml", b"")
    done = shared(*BOB, "show", "--from", "alice", "notes/db.md")
    assert done.errors == (
        "mdmem: sharing is off in this vault\nwrite `enabled = true` below [sharing] in .mdmem/config.toml\n"
    )
    shared.ok(*ALICE, "unshare", "notes/db.md")


@pytest.mark.usefixtures("shared")
def test_an_agent_reads_what_is_shared_where_it_names_it(files: Files) -> None:
    memory = mdmem.open(files.root, mdmem.Scope(user="bob"))
    box = Toolbox(Bound(memory=memory))

    def call(name: str, **given: object) -> Answer:
        return box.call(name, given)

    document = memory.show("from-alice:notes/db.md")
    assert call("show", path="from-alice:notes/db.md").data["hash"] == document.hash[:12]
    (listed,) = call("ls", within="from-alice:").data["memories"]
    assert (listed["path"], listed["hash"]) == ("from-alice:notes/db.md", document.hash[:12])
    for tool, asked in (("grep", {"pattern": "SQLite"}), ("search", {"query": "sqlite"})):
        (hit,) = call(tool, within="from-alice:notes", **asked).data["hits"]
        assert (hit["path"], hit["hash"]) == ("from-alice:notes/db.md", document.hash[:12])
        assert call(tool, **asked).data["hits"] == []
    assert call("context", query="sqlite").data["parts"] == []
    for path in ("from-alice:notes/secret.md", "from-carol:notes/db.md", "from-alice:notes/nope.md"):
        told = call("show", path=path).data["error"]
        assert (told["code"], told["message"]) == ("memory-not-found", f"{path}: no such memory")
    for name, given in (
        ("write", {"path": "from-alice:notes/db.md", "content": "x", "overwrite": True}),
        ("section", {"path": "from-alice:notes/db.md", "text": "x", "where": "append"}),
        ("replace", {"path": "from-alice:notes/db.md", "old": "one", "new": "two"}),
        ("rm", {"path": "from-alice:notes/db.md"}),
        ("mv", {"source": "from-alice:notes/db.md", "target": "notes/mine.md"}),
    ):
        assert call(name, **given).data["error"]["code"] in {"path-refused", "memory-not-found"}
    assert memory.uses.of("notes/db.md").times == 0
