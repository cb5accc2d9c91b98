"""The commands of observations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

LONG = "We decided on SQLite, and weighed it for a while against all the others. " * 60


def test_what_is_due_is_observed_and_printed(cli: Cli) -> None:
    cli.ok("sessions", "add", "t:1", "user", LONG)
    (line,) = cli.ok("observe", "--session", "t:1").out.splitlines()
    path = line.removeprefix("created ")
    assert path.startswith("observations/t%3A1/")
    assert cli.ok("observe", "--all", "--json").objects == []
    assert cli.ok("observations", "list", "t:1").out.startswith(
        f"{path}  observation of #1 to #1, by extract\n"
    )
    assert "We decided on SQLite" in cli.ok("observations", "expand", path).out
    assert [each["path"] for each in cli.ok("observations", "list", "t:1", "--json").objects] == [path]
    assert cli("observe").code == cli("observe", "--all", "--session", "t:1").code == 2


def test_observations_are_made_listed_and_removed(cli: Cli) -> None:
    reflect = ("observations", "reflect", "t", "--model", "head -c 40")
    assert cli(*reflect).code == 1
    assert "only a model makes a reflection" in cli("observations", "reflect", "t").errors
    for text in ("We take SQLite.", "It is one file."):
        cli.ok("sessions", "add", "t", "user", text)
        Memory("memories").observations.observe("t")
    assert cli.ok("observations", "list", "t", "--recent", "1").out.count("observation of") == 1
    assert "reflection 1 of #1 to #3" in cli.ok(*reflect).out
    assert "reflection 2" in cli.ok(*reflect, "--meta").out
    assert "--- a/observations" in cli.ok("observations", "delete", "--session", "t", "--dry-run").out
    cli.ok("observations", "delete", "--session", "t")
    assert cli.ok("observations", "list", "t", "--json").objects == []
    cli.ok("undo")
    assert len(cli.ok("observations", "list", "t", "--json").objects) == 2
    assert cli("observations", "delete").code == 2
    assert cli("observations", "delete", "t/none-1-1").code == 1


def test_what_goes_wrong_is_told_and_is_the_exit_code(cli: Cli) -> None:
    cli.ok("sessions", "add", "t", "user", LONG)
    assert cli("observe", "--session", "..").code == 1
    assert "no session can have the key" in cli("observe", "--session", "..").errors
