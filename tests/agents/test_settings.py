"""Settings files: what is put in comes out again byte for byte, whatever the file looks like."""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings

from mdmem.agents import settings, settings_formats
from mdmem.agents.settings import Receipt
from mdmem.agents.settings_formats import Addition, JsonSettings, TomlSettings, added
from mdmem.errors import EditRefused
from tests.agents import settings_texts

SERVER = {"command": "mdmem", "args": ["--vault", "/v/ü", "mcp"]}
GROUP = {"matcher": "Edit", "hooks": [{"type": "command", "command": "mdmem hook post-edit", "timeout": 10}]}
HOOKS = [Addition(("hooks", event), GROUP, each=True) for event in ("PostToolUse", "Stop", "PostToolUse")]
JSON = [Addition(("mcpServers", "mdmem"), SERVER), *HOOKS[:2]]
TOML = [Addition(("mcp_servers", "mdmem"), SERVER), *HOOKS[:2]]


def value_of(name: str, text: str) -> Any:
    return (TomlSettings if name.endswith(".toml") else JsonSettings)(name, text).value


def round_trip(name: str, text: str, additions: list[Addition], edited: str = "") -> tuple[str, str, str]:
    """The text with additions, and what taking them out leaves with a receipt and without one.

    `edited` is put in front of it in between.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(text.encode())
        change = settings.install(str(path), additions, None)
        assert change
        assert change.after is not None
        assert change.receipt
        settings.write([change])
        full = path.read_bytes().decode()
        assert full == change.after
        results = []
        for receipt in (change.receipt, None):
            path.write_bytes((edited + full).encode())
            back = settings.uninstall(str(path), receipt)
            assert back
            settings.write([back])
            results.append(path.read_bytes().decode())
            assert os.listdir(folder) == [name]
        return full, *results  # type: ignore[return-value]


@hypothesis_settings(max_examples=20)
@given(settings_texts.jsonc())
def test_json_comes_back_byte_for_byte(text: str) -> None:
    full, back, without_receipt = round_trip("settings.json", text, JSON)
    assert value_of("x.json", full) == added(value_of("x.json", text), JSON)
    assert back == text
    assert settings._pruned(value_of("x.json", without_receipt)) == settings._pruned(value_of("x.json", text))
    assert sorted(remarks(without_receipt)) == sorted(remarks(text))


def remarks(text: str) -> list[str]:
    found = re.findall(r'"(?:[^"\\]|\\.)*"|(//[^\r\n]*|/\*.*?\*/)', text, re.DOTALL)
    return [remark for remark in found if remark]


@hypothesis_settings(max_examples=40)
@given(settings_texts.jsonc())
def test_json_that_was_edited_in_between_keeps_that_edit(text: str) -> None:
    if not text.startswith("\ufeff"):
        _, back, _ = round_trip("settings.json", text, JSON, edited="// mine\n")
        assert settings._pruned(value_of("x.json", back)) == settings._pruned(value_of("x.json", text))
        assert back.startswith("// mine\n")


@hypothesis_settings(max_examples=40)
@given(settings_texts.toml())
# README: Settings in TOML are spliced …
def test_toml_comes_back_byte_for_byte(text: str) -> None:
    full, back, without_receipt = round_trip("config.toml", text, TOML)
    assert full.startswith(text)
    assert value_of("x.toml", full) == added(tomllib.loads(text.removeprefix("\ufeff")), TOML)
    assert back == text
    assert settings._pruned(value_of("x.toml", without_receipt)) == settings._pruned(value_of("x.toml", text))


@hypothesis_settings(max_examples=40)
@given(settings_texts.toml())
def test_toml_that_was_edited_in_between_keeps_that_edit(text: str) -> None:
    if not text.startswith("\ufeff"):
        _, back, _ = round_trip("config.toml", text, TOML, edited="# mine\n")
        assert back == f"# mine\n{text}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "mcpServers": {\n    "mdmem": 1\n  }\n}\n'),
        ("{}", '{\n  "mcpServers": {\n    "mdmem": 1\n  }\n}'),
        ('{"a": 1}\r\n', '{"a": 1, "mcpServers": {"mdmem": 1}}\r\n'),
        ('{\n\t"a": 1 // one\n}', '{\n\t"a": 1, // one\n\t"mcpServers": {\n\t\t"mdmem": 1\n\t}\n}'),
        (
            '{\n  "mcpServers": {\n    "x": 2,\n  },\n}',
            '{\n  "mcpServers": {\n    "x": 2,\n    "mdmem": 1,\n  },\n}',
        ),
        ('{\n  "mcpServers": {}\n}', '{\n  "mcpServers": {\n    "mdmem": 1\n  }\n}'),
    ],
)
def test_an_entry_is_written_as_its_neighbours_are(text: str, expected: str) -> None:
    steps = settings_formats.JsonSettings("x.json", text).added([Addition(("mcpServers", "mdmem"), 1)])
    for at, new in steps:
        text = text[:at] + new + text[at:]
    assert text == expected


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "[1]", "its value is not an object"),
        ("a.json", '{"a": 1', "line 1"),
        ("a.json", '{"mcpServers": []}', "not an object"),
        ("a.json", '{"hooks": {"Stop": 1}}', "there already"),
        ("a.json", '{"mcpServers": {"mdmem": {"command": "another"}}}', "there already, with another value"),
        ("a.json", '{"a": /* no end', "line 1"),
        ("a.toml", "a = ", "not TOML"),
        ("a.toml", "mcp_servers = {}", "cannot be added to"),
        ("a.toml", '[mcp_servers.mdmem]\ncommand = "another"', "there already, with another value"),
    ],
)
def test_what_cannot_be_added_to_is_refused_and_stays(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(EditRefused) as refused:
        settings.install(str(path), TOML if name.endswith("toml") else JSON, None)
    assert says in str(refused.value)
    assert str(path) in str(refused.value)
    assert path.read_text() == text


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(EditRefused) as refused:
        settings.install(str(path), JSON, None)
    assert "not UTF-8 at byte 7" in str(refused.value)


def test_what_stands_already_is_not_put_in_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    first = settings.install(str(path), JSON, None)
    assert first
    settings.write([first])
    assert settings.install(str(path), JSON, first.receipt) is None
    assert settings.install(str(path), JSON, None) is None


def test_another_vault_takes_the_place_of_the_first_and_all_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "a.json"
    first = settings.install(str(path), JSON, None)
    assert first
    settings.write([first])
    other = [Addition(("mcpServers", "mdmem"), {"command": "mdmem", "args": ["mcp"]})]
    second = settings.install(str(path), other, first.receipt)
    assert second
    settings.write([second])
    assert json.loads(path.read_text()) == {"mcpServers": {"mdmem": {"command": "mdmem", "args": ["mcp"]}}}
    back = settings.uninstall(str(path), second.receipt)
    assert back
    settings.write([back])
    assert not list(tmp_path.iterdir())


def test_a_file_that_changes_in_between_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    change = settings.install(str(path), JSON, None)
    assert change
    path.write_text('{"new": 1}')
    with pytest.raises(EditRefused) as refused:
        settings.write([change])
    assert "changed meanwhile" in str(refused.value)
    assert path.read_text() == '{"new": 1}'


def test_when_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    one, two = tmp_path / "new" / "a.json", tmp_path / "b.json"
    two.write_text("{}")
    changes = [settings.install(str(path), JSON, None) for path in (one, two)]
    two.write_text("{ }")
    with pytest.raises(EditRefused):
        settings.write([change for change in changes if change])
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    path.chmod(0o600)
    change = settings.install(str(path), JSON, None)
    assert change
    settings.write([change])
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_somebody_made_stays_when_it_is_empty_then(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    change = settings.install(str(path), JSON, None)
    assert change
    settings.write([change])
    back = settings.uninstall(str(path), change.receipt)
    assert back
    settings.write([back])
    assert path.read_text() == "{}"


def test_a_file_that_was_made_stays_when_somebody_has_added_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    change = settings.install(str(path), JSON, None)
    assert change
    settings.write([change])
    path.write_text(path.read_text().replace("{", '{\n  "mine": 1,', 1))
    back = settings.uninstall(str(path), change.receipt)
    assert back
    settings.write([back])
    assert json.loads(path.read_text()) == {"mine": 1}


def test_a_group_that_holds_hooks_of_others_as_well_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    shared = {**GROUP, "hooks": [*GROUP["hooks"], {"type": "command", "command": "lint"}]}
    path.write_text(json.dumps({"hooks": {"PostToolUse": [shared, GROUP]}}))
    change = settings.uninstall(str(path), None)
    assert change
    settings.write([change])
    assert json.loads(path.read_text()) == {"hooks": {"PostToolUse": [shared]}}


def test_nothing_is_taken_out_of_a_file_without_our_entries(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert settings.uninstall(str(path), None) is None
    path.write_text('{"mcpServers": {"git": {}}, "hooks": {"Stop": [{"hooks": [{"command": "say mdmem"}]}]}}')
    assert settings.uninstall(str(path), Receipt()) is None


@pytest.mark.parametrize(
    "text",
    ['{"a": ' + '\\"' * 100_000, "{" + "/*/" * 100_000, '"' * 200_001],
    ids=["quotes", "comments", "strings"],
)
def test_settings_that_never_end_are_refused_soon(text: str) -> None:
    """What is never closed was looked for to the end, once for each beginning."""
    with pytest.raises(EditRefused):
        settings_formats.JsonSettings("settings.json", text)
