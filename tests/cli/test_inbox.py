"""The commands of the inbox and of capture: what they print, and with which exit code they end."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

DARK = json.dumps({"category": "ui", "key": "theme", "value": "dark"})
NOW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def proposed(cli: Cli, value: str) -> str:
    given = json.dumps({"category": "ui", "key": "theme", "value": value})
    ran = cli.ok(
        "inbox", "propose", "preferences.set", given, "--reason", "said so", "--source", "sessions/t#1"
    )
    return str(ran.out.split("inbox/")[1].split(".md")[0])


def test_a_proposal_is_listed_shown_accepted_and_undone(cli: Cli) -> None:
    assert cli.ok("inbox", "list").errors == "no proposals\n"
    name = proposed(cli, "dark")
    assert cli.ok("inbox", "list").out == f"{name}  open  preferences.set ui theme  said so\n"
    shown = cli.ok("inbox", "show", name)
    by_its_beginning = cli.ok("inbox", "show", name[:8])
    # What an acceptance would write holds the time of now.
    assert NOW.sub("", by_its_beginning.out) == NOW.sub("", shown.out)
    assert shown.errors.split()[1] == cli.ok("inbox", "show", name, "--json").json["hash"][:8]
    assert "said in sessions/t#1\n" in shown.out
    assert "+value: dark\n" in shown.out
    digest = shown.errors.split()[1]
    assert "+value: dark" in cli.ok("inbox", "accept", name, "--dry-run").out
    assert cli("inbox", "accept", name, "--base", "0" * 8).code == 2
    ran = cli.ok("inbox", "accept", name, "--base", digest)
    assert "created preferences/ui/theme.md" in ran.out
    assert f"deleted inbox/{name}.md" in ran.out
    assert cli("inbox", "accept", name).code == 1
    cli.ok("undo")
    assert cli.ok("inbox", "list").out.startswith(name)


def test_a_rule_that_is_accepted_and_is_off_says_so_and_how_to_turn_it_on(cli: Cli) -> None:
    off = '{"path": "rules/a b.md", "content": "---\\nenabled: false\\n---\\nTabs.\\n"}'
    name = cli.ok("inbox", "propose", "write", off, "--json").json["files"][0]["path"]
    for options in (["--dry-run"], []):
        told = cli.ok("inbox", "accept", name.removeprefix("inbox/").removesuffix(".md"), *options).errors
        assert "this rule is off" in told
        assert "turn it on with `mdmem set 'rules/a b.md' enabled=true`" in told
    assert not cli.ok("rules", "list").out
    cli.ok("set", "rules/a b.md", "enabled=true")
    assert "a b" in cli.ok("rules", "list").out


def test_several_are_accepted_each_by_itself_and_what_fails_is_named(cli: Cli) -> None:
    first, second = proposed(cli, "dark"), proposed(cli, "light")
    ran = cli("inbox", "accept", first, "nobody", second)
    assert ran.code == 1
    assert "no proposal 'nobody'" in ran.errors
    assert cli.ok("preferences", "show", "ui", "theme", "--json").json["value"] == "light"
    assert cli("inbox", "accept", first, second, "--base", "0" * 8).code == 2
    third = proposed(cli, "pink")
    told = cli("inbox", "reject", third, "nobody", "--json").objects
    assert told[0]["change"]["files"][0]["path"] == f"inbox/{third}.md"
    assert told[1]["error"]["code"] == "name-not-found"
    assert cli.ok("inbox", "list").errors == "no proposals\n"
    assert "rejected" in cli.ok("inbox", "list", "--all").out
    again = cli.ok("inbox", "propose", "preferences.set", DARK.replace("dark", "Pink"))
    assert "was rejected" in again.out
    assert "nothing to change" in cli.ok("inbox", "sweep").out
    dry = cli.ok("inbox", "reject", proposed(cli, "blue"), "--dry-run", "--json").objects
    assert "+status: rejected" in dry[0]["change"]["diff"]


def test_what_cannot_be_accepted_says_why_and_ends_with_one(cli: Cli) -> None:
    cli.ok("write", "inbox/odd.md", "---\ntype: proposal\n---\nno fence\n")
    shown = cli("inbox", "show", "odd")
    assert shown.code == 1
    assert "cannot be accepted: line 4: it has no fence of JSON" in shown.out
    assert cli("inbox", "show", "odd", "--json").json["problem"]
    assert "no fence" in cli.ok("inbox", "list").out
    assert "no fence" in cli("check").out
    assert cli("inbox", "propose", "append", "[").code == 2
    assert cli("inbox", "propose", "append", "[1]").code == 2
    assert cli("inbox", "propose", "append", "[" * 100_000).code == 2
    assert "a verb is one of" in cli("inbox", "propose", "mv", "{}").errors
