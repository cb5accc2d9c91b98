"""The commands of preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

FADED = b"---\nvalue: old\nstrength: 0.7\nconfidence: 0.8\nupdated: 2001-01-01T00:00:00Z\n---\n"


def test_a_preference_is_set_got_confirmed_and_deleted(cli: Cli, files: Files) -> None:
    cli.ok("preferences", "set", "ui", "theme", "dark", "--why", "Said so.", "--strength", "0.5")
    assert list(files.everything()) == ["preferences/ui/theme.md"]
    assert b"Said so." in files.read("preferences/ui/theme.md")
    assert cli.ok("preferences", "get", "ui", "theme").out == "ui/theme\tdark\t0.50\n"
    cli.ok("preferences", "set", "ui", "theme", "dark")
    assert cli.ok("preferences", "get", "ui", "theme").out == "ui/theme\tdark\t0.80\n"
    cli.ok("preferences", "delete", "ui", "theme")
    assert not files.everything()
    assert cli("preferences", "delete", "ui", "theme").code == 1


@pytest.mark.parametrize(
    ("given", "value"),
    [("5", 5), ("no", "no"), ("[a, b]", ["a", "b"]), ("a: b", "a: b"), ('"5"', "5"), ("#1", "#1")],
)
def test_a_value_is_read_as_yaml(cli: Cli, given: str, value: object) -> None:
    cli.ok("preferences", "set", "ui", "x", given)
    (found,) = cli.ok("preferences", "get", "ui", "x", "--json").json
    assert found["value"] == value


def test_what_has_faded_is_hidden_and_swept(cli: Cli, files: Files) -> None:
    files.write("preferences/ui/old.md", FADED)
    cli.ok("preferences", "set", "ui", "new", "x")
    assert "old" not in cli.ok("preferences", "list").out
    assert cli("preferences", "get", "ui", "old").code == 1
    assert cli.ok("preferences", "list", "ui", "--hidden").out.splitlines()[1].endswith("(faded)")
    assert cli.ok("preferences", "get", "ui", "old", "--hidden", "--json").json[0]["hidden"] is True
    assert cli.ok("preferences", "sweep", "--dry-run").out
    assert cli.ok("preferences", "sweep").out == "deleted preferences/ui/old.md\n"


def test_preferences_are_ranked_and_counted(cli: Cli) -> None:
    for key, strength in (("a", "0.3"), ("b", "0.9"), ("c", "0.6")):
        cli.ok("preferences", "set", "ui", key, "x", "--strength", strength)
    assert [p["key"] for p in cli.ok("preferences", "top", "2", "--json").json] == ["b", "c"]
    stats = cli.ok("preferences", "stats")
    assert "total: 3\n" in stats.out
    assert "by_category: ui 3\n" in stats.out
    assert cli.ok("preferences", "stats", "--json").json["mean_strength"] == 0.6


@pytest.mark.parametrize(
    "options",
    [
        ["--strength", "2"],
        ["--strength", "x"],
        ["--confidence", "-1"],
        ["--policy", "none"],
        ["--base", "00000000"],
    ],
)
def test_wrong_options_are_refused(cli: Cli, files: Files, options: list[str]) -> None:
    assert cli("preferences", "set", "ui", "theme", "dark", *options).code in {1, 2}
    assert not files.everything()


def test_a_stronger_preference_can_be_kept(cli: Cli) -> None:
    cli.ok("preferences", "set", "ui", "theme", "dark", "--strength", "0.9")
    ended = cli.ok(
        "preferences", "set", "ui", "theme", "light", "--strength", "0.2", "--policy", "keep-stronger"
    )
    assert ended.out.startswith("nothing to change: kept preference ui/theme")
