"""Settings files: what is put in comes out again byte for byte, whatever the file looks like."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings

from mdmem.errors import EditRefused
from mdmem.hosts import settings
from mdmem.hosts.settings import Addition
from tests.hosts import settings_texts
from tests.speed import examples

SERVER = {"command": "mdmem", "args": ["--vault", "/v/ü\x7f", "mcp"]}
GROUP = {"matcher": "Edit", "hooks": [{"type": "command", "command": "mdmem hook post-edit", "timeout": 10}]}
HOOKS = [Addition(("hooks", event), GROUP, is_item=True) for event in ("PostToolUse", "Stop")]
JSON = [Addition(("mcpServers", "mdmem"), SERVER), *HOOKS]
TOML = [Addition(("mcp_servers", "mdmem"), SERVER), *HOOKS]


@pytest.fixture(autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


def install(path: Path, additions: list[Addition]) -> None:
    settings.write([settings.install(str(path), additions)])


def uninstall(path: Path) -> None:
    settings.write([settings.uninstall(str(path))])


def values_of(path: Path) -> Any:
    text = path.read_text("utf-8-sig")
    return (tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)) if text.strip() else {}


def with_ours(values: dict[str, Any], additions: list[Addition]) -> dict[str, Any]:
    (servers, name), server, _ = additions[0]
    values = {**values, servers: {**values.get(servers, {}), name: server}}
    hooks = dict(values.get("hooks", {}))
    for (_, event), group, _ in additions[1:]:
        hooks[event] = [*hooks.get(event, []), group]
    return {**values, "hooks": hooks}


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Settings without empty servers and hooks, which may go with ours."""
    values = dict(values)
    if "hooks" in values:
        values["hooks"] = {event: groups for event, groups in values["hooks"].items() if groups}
    return {
        name: value
        for name, value in values.items()
        if value or name not in {"mcpServers", "mcp_servers", "hooks"}
    }


def is_kept(text: str, whole: str) -> bool:
    """Whether each character of a text stands in another one, in order."""
    rest = iter(whole)
    return all(character in rest for character in text)


def write(folder: str, name: str, text: str) -> Path:
    path = Path(folder, name)
    path.write_bytes(text.encode())
    return path


@hypothesis_settings(max_examples=examples(30))
@given(settings_texts.plain_json())
def test_json_comes_back_byte_for_byte(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "settings.json", text)
        before = values_of(path)
        install(path, JSON)
        assert values_of(path) == with_ours(before, JSON)
        uninstall(path)
        assert path.read_bytes() == text.encode()
        assert os.listdir(folder) == ["settings.json"]


@hypothesis_settings(max_examples=examples(40))
@given(settings_texts.plain_json())
def test_json_that_was_edited_in_between_loses_our_entries_alone(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "settings.json", text)
        before = values_of(path)
        install(path, JSON)
        edited = path.read_bytes() + b"\n"
        path.write_bytes(edited)
        uninstall(path)
        assert without_empty(values_of(path)) == without_empty(before)
        assert is_kept(path.read_bytes().decode(), edited.decode())


@hypothesis_settings(max_examples=examples(40))
@given(settings_texts.toml())
def test_toml_comes_back_byte_for_byte(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "config.toml", text)
        before = values_of(path)
        install(path, TOML)
        assert path.read_bytes().decode().startswith(text)
        assert values_of(path) == with_ours(before, TOML)
        uninstall(path)
        assert path.read_bytes() == text.encode()


@hypothesis_settings(max_examples=examples(60))
@given(settings_texts.toml())
def test_toml_that_was_edited_in_between_loses_our_entries_alone_or_is_left(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "config.toml", text)
        before = values_of(path)
        install(path, TOML)
        edited = path.read_bytes() + b"# mine\n"
        path.write_bytes(edited)
        try:
            uninstall(path)
        except EditRefused:  # which says to take them out by hand
            assert path.read_bytes() == edited
            return
        assert without_empty(values_of(path)) == without_empty(before)
        assert is_kept(path.read_bytes().decode(), edited.decode())


def test_toml_as_people_write_it_loses_our_entries_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    text = '# mine\nmodel = "x"  # best\n\n[mcp_servers.git]\ncommand = "git"\n\n[tui]\nbell = true\n'
    path.write_text(text)
    install(path, TOML)
    path.write_text(path.read_text().replace('"x"', '"y"'))
    uninstall(path)
    assert path.read_text().rstrip("\n") == text.replace('"x"', '"y"').rstrip("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "mcpServers": {\n    "mdmem": 1\n  }\n}\n'),
        ("{}", '{\n  "mcpServers": {\n    "mdmem": 1\n  }\n}'),
        ('{"a": 1}\r\n', '{"a": 1, "mcpServers": {"mdmem": 1}}\r\n'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"mcpServers": {\n\t\t"mdmem": 1\n\t}\n}'),
        ('{\n  "mcpServers": {}\n}', '{\n  "mcpServers": {\n    "mdmem": 1\n  }\n}'),
    ],
)
def test_an_entry_is_written_as_its_neighbours_are(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode())
    change = settings.install(str(path), [Addition(("mcpServers", "mdmem"), 1)])
    assert change.after == expected


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "[1]", "its value is not an object"),
        ("a.json", "null", "its value is not an object"),
        ("a.json", '{"mcpServers": []}', "'mcpServers' is a list"),
        ("a.json", '{"mcpServers": 5}', "'mcpServers' is a single value"),
        ("a.json", '{"hooks": {"Stop": 1}}', "there already"),
        ("a.json", '{"mcpServers": {"mdmem": {"command": "another"}}}', "there already, with another value"),
        ("a.json", '{"mcpServers": {}, "mcpServers": {}}', "stands 2 times"),
        ("a.json", '{"a": ' + "[" * 100 + "]" * 100 + "}", "nested too deeply"),
        ("a.toml", "a = ", "not TOML"),
        ("a.toml", "a." * 50_000 + "b = 1", "not TOML"),
        ("a.toml", f"a = '{'x' * 300_000}'", "more than 262,144 characters"),
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
        settings.install(str(path), TOML if name.endswith("toml") else JSON)
    assert says in str(refused.value)
    assert str(path) in str(refused.value)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // mine\n  "mcpServers": {}\n}',
        '{"mcpServers": {}, /* mine */ "a": 1}',
        '{"mcpServers": {},}',
        '{"a": 1',
        '{"a": ' + '\\"' * 100_000,
        "{" + "/*/" * 100_000,
        '"' * 200_001,
    ],
    ids=["line comment", "comment", "trailing comma", "mistake", "quotes", "comments", "strings"],
)
def test_what_is_not_plain_json_is_left_and_what_belongs_into_it_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    change = settings.install(str(path), JSON)
    assert "not plain JSON" in change.by_hand
    words, _, belongs = change.by_hand.partition("\n")
    assert "add this by hand" in words
    assert json.loads(belongs) == with_ours({}, JSON)
    settings.write([change])
    assert path.read_text() == text


def test_what_is_not_plain_json_keeps_our_entries_and_their_lines_are_said(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    install(path, JSON)
    path.write_text(f"// mine\n{path.read_text()}")
    before = path.read_text()
    change = settings.uninstall(str(path))
    assert "take mdmem out by hand, it is named in line 4, 5, " in change.by_hand
    settings.write([change])
    assert path.read_text() == before
    path.write_text("// of others\n{}")
    assert settings.uninstall(str(path)).after == "// of others\n{}"


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(EditRefused) as refused:
        settings.install(str(path), JSON)
    assert "not UTF-8 at byte 7" in str(refused.value)


@pytest.mark.parametrize("name", ["a.json", "a.toml"])
def test_what_stands_already_is_not_put_in_again(tmp_path: Path, name: str) -> None:
    path, additions = tmp_path / name, TOML if name.endswith("toml") else JSON
    install(path, additions)
    for gap in ("", "\n"):
        path.write_text(gap + path.read_text())
        change = settings.install(str(path), additions)
        assert change.before == change.after


def test_another_vault_takes_the_place_of_the_first_and_all_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    path = tmp_path / "deep" / "down" / "a.json"
    install(path, JSON)
    other = [Addition(("mcpServers", "mdmem"), {"command": "mdmem", "args": ["mcp"]})]
    install(path, other)
    assert json.loads(path.read_text()) == {"mcpServers": {"mdmem": {"command": "mdmem", "args": ["mcp"]}}}
    uninstall(path)
    assert os.listdir(tmp_path) == ["mine"]


def test_another_vault_takes_the_place_of_the_first_where_nothing_is_known_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    group = {"hooks": [{"type": "command", "command": "mdmem --vault /old hook stop"}]}
    server = {"command": "/bin/mdmem", "args": ["--vault", "/old", "mcp"]}
    path.write_text(json.dumps({"mcpServers": {"mdmem": server}, "hooks": {"Stop": [group]}}))
    install(path, JSON)
    assert json.loads(path.read_text()) == with_ours({}, JSON)


def test_a_file_that_changes_in_between_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    change = settings.install(str(path), JSON)
    path.write_text('{"new": 1}')
    with pytest.raises(EditRefused) as refused:
        settings.write([change])
    assert "changed meanwhile" in str(refused.value)
    assert path.read_text() == '{"new": 1}'


def test_when_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    one, two = tmp_path / "new" / "a.json", tmp_path / "b.json"
    two.write_text("{}")
    changes = [settings.install(str(path), JSON) for path in (one, two)]
    two.write_text("{ }")
    with pytest.raises(EditRefused):
        settings.write(changes)
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    path.chmod(0o600)
    install(path, JSON)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["{}", "", " \n", '{"mcpServers": {}}'])
def test_a_file_that_somebody_made_stays_when_it_is_empty_then(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    install(path, JSON)
    uninstall(path)
    assert path.read_text() == text


def test_a_file_that_was_made_stays_when_somebody_has_added_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    install(path, JSON)
    path.write_text(path.read_text().replace("{", '{\n  "mine": 1,', 1))
    uninstall(path)
    assert json.loads(path.read_text()) == {"mine": 1}


@pytest.mark.parametrize("name", ["a.json", "a.toml"])
def test_a_file_of_our_entries_alone_goes_where_nothing_is_known_of_install(
    tmp_path: Path, name: str
) -> None:
    path, other = tmp_path / name, tmp_path / "clone" / name
    install(path, TOML if name.endswith("toml") else [*JSON, Addition(("version",), 1)])
    other.parent.mkdir()
    path.rename(other)
    uninstall(other)
    assert not other.exists()


def test_a_group_that_holds_hooks_of_others_as_well_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    shared = {**GROUP, "hooks": [*GROUP["hooks"], {"type": "command", "command": "lint"}]}
    path.write_text(json.dumps({"hooks": {"PostToolUse": [shared, GROUP]}}))
    uninstall(path)
    assert json.loads(path.read_text()) == {"hooks": {"PostToolUse": [shared]}}


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"git": {}}, "hooks": {"Stop": [{"hooks": [{"command": "say mdmem"}]}]}}',
        '{"hooks": {"Stop": [{"hooks": 5}, {"hooks": "mdmem hook stop"}, 5]}}',
        '{"hooks": ["mdmem"], "mcpServers": "mdmem"}',
    ],
)
def test_nothing_is_taken_out_of_a_file_without_our_entries(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    assert settings.uninstall(str(path)).after is None
    path.write_text(text)
    assert settings.uninstall(str(path)).after == text
