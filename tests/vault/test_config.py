"""The config: defaults that its text documents truly, and errors that name what is wrong."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from mdmem.document.document import Limits, parse_text
from mdmem.errors import ConfigInvalid
from mdmem.kind import KINDS
from mdmem.vault.config import (
    CONFIG_PATH,
    DEFAULT_TEXT,
    MAX_BYTES,
    POLICIES,
    SECRET_POLICIES,
    Config,
    ConfigChange,
    Trash,
    parse,
    schema,
)
from mdmem.vault.vault import Vault
from tests.tables import cases

TABLES = tuple(name for name in Config._fields if name not in {"kinds", "mounts", "unknown"})


def wrong(table: str, name: str) -> list[str]:
    """Values that a key cannot have."""
    default = getattr(getattr(Config(), table), name)
    not_it = {bool: ["1"], int: ["true", "-1"], str: ["true", "1"], tuple: ["true", "-1"]}[type(default)]
    # What is less than 0 is the default there.
    return ["[3]", "1.5", "1979-05-27", *(v for v in not_it if (table, v) != ("observation", "-1"))]


def test_nothing_means_the_defaults() -> None:
    assert parse("") == Config()
    assert parse(DEFAULT_TEXT) == parse(f"{DEFAULT_TEXT}\n") == Config()


def test_a_new_config_has_the_keys_that_people_change_with_their_defaults() -> None:
    text = re.sub(r"(?m)^# (\w+ = )", r"\1", DEFAULT_TEXT)
    assert text != DEFAULT_TEXT
    assert parse(text) == Config()
    tables = re.findall(r"(?m)^\[(\w+)\]\n(?:(\w+) = )?", text)
    assert [".".join(filter(None, table)) for table in tables] == [
        *("files.suffixes", "secrets.allow", "check.guests", "sessions.capture", "git.commit"),
        "mounts",
    ]
    assert "mdmem help config.md" in text


def test_a_value_that_is_given_counts() -> None:
    config = parse(
        '[limits]\nmax_bytes = 10\n[trash]\nmax_days = 0\n[mounts]\n"AGENTS.md" = "../AGENTS.md"\n'
    )
    assert config.limits == Limits(max_bytes=10)
    assert config.trash == Trash(max_days=0)
    assert config.mounts == {"AGENTS.md": "../AGENTS.md"}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_accepted(policy: str) -> None:
    assert parse(f'preferences.policy = "{policy}"').preferences.policy == policy


@pytest.mark.parametrize("policy", SECRET_POLICIES)
def test_every_policy_for_secrets_is_accepted(policy: str) -> None:
    assert parse(f'secrets.policy = "{policy}"').secrets.policy == policy


def test_secrets_are_allowed_by_their_hash() -> None:
    digest = "0123456789abcdef"
    assert parse(f'secrets.allow = ["{digest}", "{digest * 4}"]').secrets.allow == (digest, digest * 4)


@pytest.mark.parametrize("entry", ["hunter2-hunter2-hunter2", "0123456789abcde", "ABCDEF0123456789", ""])
def test_what_is_no_hash_is_not_quoted(entry: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse(f'secrets.allow = ["{entry}"]')
    assert "[secrets] allow" in refused.value.reason
    assert not entry or entry not in str(refused.value)


@cases(
    "text, named",
    [
        *(
            (f"[{table}]\n{name} = {value}", f"[{table}] {name}")
            for table in TABLES
            for name in getattr(Config(), table)._fields
            for value in wrong(table, name)
        ),
        *((f"{table} = 3", table) for table in TABLES),
        ('[preferences]\npolicy = "newest"', "keep-latest, keep-stronger, merge"),
        ('[secrets]\npolicy = "merge"', "refuse, redact, warn, off"),
        ("[mounts]\na = 3", "[mounts]"),
        ("[mounts]\nAGENTS.md = '../AGENTS.md'", "[mounts]"),
        ("mounts = 3", "[mounts]"),
        ("limits = [", "end of document"),
        ("\n\n[limits]\nmax_bytes = x", "line 4"),
        ("[trash]\nmax_days = 1\nmax_days = 2", "not TOML"),
        ("[trash]\n<<<<<<< HEAD\nmax_days = 1\n=======\nmax_days = 2\n>>>>>>> b\n", "a conflict from line 2"),
    ],
)
def test_an_error_names_the_file_and_the_key(text: str, named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse(text)
    assert refused.value.path == CONFIG_PATH
    assert named in refused.value.reason


@cases(
    "text, place",
    [
        ("\n\n[limits]\nmax_bytes = x", (4, 13)),
        ("[trash]\nmax_days = 1\nmax_days = 2", (3, 13)),
        ("limits = [", (1, 11)),
        ("[trash]\n<<<<<<< HEAD\nmax_days = 1\n", (2, 1)),
        ("\n[trash]\nmax_days = 'x'\n", (3, None)),
    ],
)
def test_an_error_says_where_it_is(text: str, place: tuple[int, int | None]) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse(text)
    assert (refused.value.line, refused.value.column) == place


def kind(name: str = "dish", folder: str = "dishes") -> str:
    return f"[kinds.{json.dumps(name)}]\nfolder = {json.dumps(folder)}\n"


def test_a_vault_declares_kinds_beside_the_built_in_ones() -> None:
    *built_in, dish, tool = parse(kind() + 'template = "plate"\n' + kind("tool", "文書")).kinds
    assert tuple(built_in) == KINDS
    assert dish[:5] == ("dish", "dishes", "memory", "plate", "Dishes")
    assert (tool.name, tool.folder, tool.template, tool.is_remembered) == ("tool", "文書", "", True)


@cases(
    "text, named",
    [
        ("kinds = 3", "[kinds] has a table for each kind"),
        ("kinds.dish = 3", "kinds.dish is a table"),
        ("[kinds.dish]\nfolder = 3", "[kinds.dish] folder is a string, not 3"),
        ("[kinds.dish]", "folder is the name of one folder, not ''"),
        *((kind(folder=folder), "folder is the name of one folder") for folder in ("a/b", "a/", "a.md")),
        (kind(folder="../up"), "no part . or .."),
        (kind(folder="/etc"), "relative to the vault"),
        (kind(folder="a\\b"), "not by a backslash"),
        (kind(folder=".hidden"), "hidden files and folders"),
        (kind(folder="%2e%2e"), "an escape stands for"),
        (kind(folder="CON"), "the name of a device"),
        *(
            (kind(folder=folder), "belongs to something else")
            for folder in ("notes", "Notes", "users", "RESOURCES", "pinned", "project", "Found")
        ),
        *((kind(name), "something else of this name") for name in ("note", "rules", "found", "memory")),
        *((kind(name), "cannot name a kind") for name in ("", "Dish", "a b", "../a", "9", "a" * 65)),
        (kind() + kind("tool", "Dishes"), "[kinds.tool] folder 'Dishes' belongs to something else"),
        (kind() + kind("dishes", "more"), "[kinds.dishes] there is something else of this name"),
        ("".join(kind(f"k{n}", f"f{n}") for n in range(101)), "100 at most"),
    ],
)
def test_a_kind_that_would_not_be_one_of_its_own_is_refused(text: str, named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse(text)
    assert named in refused.value.reason


@cases(
    "text, line, named, hint",
    [
        *((f"[{t}]\nkey_of_later = 1", 2, f"[{t}] 'key_of_later'", "known: ") for t in TABLES),
        ("[trash]\nmax_bytes = 1\nmax_day = 3", 3, "[trash] 'max_day'", "nearest names: max_days"),
        ("\n[trasch]\nmax_days = 1", 2, "'trasch'", "nearest names: trash"),
        ("[trash]\nmax_days = 1\n\n[later]\na = 1\n\n", 4, "'later'", "nearest names: tiers"),
        ("mount = {}", 1, "'mount'", "nearest names: mounts"),
        (kind() + "share = 3", 3, "[kinds.dish] 'share'", "known: folder, schema, template"),
    ],
)
def test_what_a_later_version_may_know_is_passed_over_with_a_warning(
    text: str, line: int, named: str, hint: str
) -> None:
    [found] = parse(text).unknown
    assert (found.path, found.position.line, found.severity) == (CONFIG_PATH, line, "warning")
    assert found.message == f"{named} is unknown: it is passed over"
    assert found.hint.startswith(hint)


def test_the_keys_beside_an_unknown_one_count() -> None:
    config = parse("later = 1\n[trash]\nmax_day = 2\nmax_days = 3\n[more]\na = 1")
    assert config == Config(trash=Trash(max_days=3), unknown=config.unknown)
    assert len(config.unknown) == 3


@cases("line", ["k{} = 1", "[k{}]", '"{}\\u001b[31m" = 1'])
def test_of_thousands_of_unknown_names_some_are_named(line: str) -> None:
    """To look for the line of each in the whole text took minutes."""
    found = parse("\n".join(line.format(number) for number in range(20_000)))
    assert found == Config(unknown=found.unknown)
    messages = [each.message for each in found.unknown]
    assert len(messages) == 21
    assert messages[-1] == "more of it is unknown: it is passed over"
    assert "\x1b" not in "".join(messages)


def test_a_vault_warns_once_of_what_is_unknown(vault_root: Path) -> None:
    (vault_root / CONFIG_PATH).write_text("[trash]\nmax_day = 3\n")
    vault = Vault(str(vault_root))
    assert vault.config.trash == Trash()
    _ = vault.config
    [note] = vault.notes
    assert note.startswith(f"{CONFIG_PATH}:2: [trash] 'max_day' is unknown: it is passed over (nearest")


def test_a_vault_that_is_open_takes_a_changed_config(vault_root: Path) -> None:
    vault, path = Vault(str(vault_root)), vault_root / CONFIG_PATH
    (vault_root / ".mdmem/schemas").mkdir()
    thread = parse_text("working/threads/a.md", "")
    for days in (3, 4, 5):
        path.write_text(f"[trash]\nmax_days = {days}\n[working]\nschema = 'w{days}'\n")
        (vault_root / f".mdmem/schemas/w{days}.json").write_text("{}")
        assert vault.config.trash == vault.disk.trash.policy == Trash(max_days=days)
        assert vault.schemas.choose(thread) == f"w{days}"
    path.write_text("[trash")
    for _ in "ab":
        with pytest.raises(ConfigInvalid):
            _ = vault.config
    path.unlink()
    assert vault.config == Config()


def test_a_number_that_no_clock_can_hold_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="max_days"):
        parse(f"[trash]\nmax_days = 1{'0' * 400}")


@cases("name", Limits._fields)
def test_a_config_cannot_take_the_limits_away(name: str) -> None:
    with pytest.raises(ConfigInvalid, match=rf"\[limits\] {name} .* at most [0-9,]+, not 1000000000"):
        parse(f"[limits]\n{name} = 1_000_000_000")


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 3 << 30])
def test_a_config_that_is_too_large_is_not_read(vault_root: Path, size: int) -> None:
    os.truncate(vault_root / CONFIG_PATH, size)
    with pytest.raises(ConfigInvalid, match="more than 262,144 bytes"):
        _ = Vault(str(vault_root)).config


def test_a_key_of_thousands_of_dots_is_not_read() -> None:
    with pytest.raises(ConfigInvalid, match="more than 2,000 dots"):
        parse("a" + ".a" * 100_000 + " = 1")


def test_a_config_nested_without_end_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="TOML"):
        parse("a = " + "[" * 20_000)


@cases(
    "text, line",
    [
        ("[trash]\nmax_days = -1", 2),
        ("\r\n[trash] # days\r\n'max_days' = -1\r\n", 3),
        ("# max_days = 1\ntrash.max_days = -1", 2),
        ("\ntrash = {max_days = -1}", 2),
        ("[git]\n[trash]\nmax_bytes = 1\n max_days = -1", 4),
        ("\n[[trash]]", 2),
        ('[kinds.a]\nfolder = "as"\n[kinds.b]\nfolder = "x/y"', 4),
        ("[sessions]\nstateless = [\n'a',\n1]", 2),
    ],
)
def test_an_error_names_the_line(text: str, line: int) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse(text)
    assert refused.value.reason.startswith(f"line {line}: ")


def test_a_line_that_is_not_certain_is_not_named() -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse("[working]\nschema = '''\nttl_seconds = 1'''\nttl_seconds = -1")
    assert refused.value.reason.startswith("[working] ttl_seconds")


@cases(
    "text, found",
    [
        ('[git]\ncommit = "now"', "one of off, batch, auto, not 'now'"),
        ("[trash]\nmax_days = -1", "a whole number, 0 or more, of 64 bits, not -1"),
        ("[limits]\nmax_depth = 101", "a whole number, 0 or more, at most 100, not 101"),
        ("[sessions]\nignored = [1]", "a list of strings, not [1]"),
        (f"[limits]\nmax_depth = 0x{'f' * 5_000}", "not a number of thousands of digits"),
        (f"[git]\ncommit = '{'a' * 100_000}'", "characters left out"),
    ],
)
def test_an_error_names_what_was_found_and_what_is_accepted(text: str, found: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse(text)
    assert found in refused.value.reason
    assert len(refused.value.reason) < 200


# -- the published schema ---------------------------------------------------------------------------------


def test_the_published_schema_says_what_the_table_says() -> None:
    """`make docs/config.schema.json` writes it."""
    published = Path(__file__).parents[2] / "docs/config.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == json.loads(json.dumps(schema()))
    Draft202012Validator.check_schema(schema())


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 100, 101, 2**26, 2**26 + 1]),
    st.sampled_from(["", "off", "auto", "merge", "redact", "hooks", "0123456789abcdef"]),
    st.text("az09/\n", max_size=20),
    st.lists(st.sampled_from(["0123456789abcdef", "0123456789abcdef0", "a", "", "\n"]), max_size=2),
    st.just([1]),
)


@given(st.sampled_from([(t, k) for t in TABLES for k in getattr(Config(), t)._fields]), VALUES)
def test_the_schema_accepts_what_is_accepted_and_nothing_else(key: tuple[str, str], value: object) -> None:
    table, name = key
    text = f"[{table}]\n{name} = {json.dumps(value)}"
    is_valid = Draft202012Validator(schema()).is_valid({table: {name: value}})
    try:
        config = parse(text)
    except ConfigInvalid:
        assert not is_valid, text
    else:
        assert is_valid, text
        assert getattr(getattr(config, table), name) == (tuple(value) if isinstance(value, list) else value)


@cases(
    "config",
    [{"x": 1}, {"trash": 1}, {"trash": {"x": 1}}, {"mounts": {"a.md": 1}}, {"kinds": {"Dish": {}}}],
)
def test_the_schema_refuses_what_is_unknown(config: dict[str, object]) -> None:
    assert not Draft202012Validator(schema()).is_valid(config)


LINES = st.sampled_from(
    [
        *DEFAULT_TEXT.splitlines(),
        *(
            *("max_bytes = 1", "max_bytes = -1", "policy = 'merge'", "limits = 1", '"a.md" = "b.md"'),
            "[[limits]]",
        ),
        *("[limits.max_bytes]", "mounts.a = 1", "= 1", "max_days = inf", "ttl_seconds = 1_000"),
    ]
)


@given(st.lists(LINES | st.text(max_size=6), max_size=12).map("\n".join))
def test_any_text_is_a_config_or_refused(text: str) -> None:
    try:
        config = parse(text)
    except ConfigInvalid:
        return
    assert config.preferences.policy in POLICIES
    assert config.limits.max_bytes >= 0


def test_a_config_names_which_suffixes_of_markdown_are_memories_too() -> None:
    assert Config().suffixes == (".md", ".json")
    assert parse('files.suffixes = [".mdx"]').suffixes == (".md", ".json", ".mdx")
    assert parse('files.suffixes = [".mdx", ".markdown"]').suffixes[2:] == (".mdx", ".markdown")
    for wrong in ('[".txt"]', '[".md"]', '["mdx"]', '[".mdx", 1]', '".mdx"'):
        with pytest.raises(ConfigInvalid) as refused:
            parse(f"[files]\nsuffixes = {wrong}\n")
        named = 'line 2: [files] suffixes is a list of none, some or all of ".mdx", ".markdown", ".mdc", not '
        assert refused.value.reason.startswith(named)


@cases(
    "text, added",
    [
        ("", '\n[check]\nguests = ["a/**"]\n'),
        ("[check]\n# guests = []   # globs\n", '[check]\nguests = ["a/**"]   # globs\n'),
        ('[check]\nguests = ["b"] # x\n[git]\n', '[check]\nguests = ["b", "a/**"] # x\n[git]\n'),
        ("[check]\n", '[check]\nguests = ["a/**"]\n'),
        ("[check] # told\nsilenced = []\n", '[check] # told\nguests = ["a/**"]\nsilenced = []\n'),
        ("[git]\n# guests = []\n", '[git]\n# guests = []\n\n[check]\nguests = ["a/**"]\n'),
        ('[check]\nguests = ["a/**"]\n', '[check]\nguests = ["a/**"]\n'),
        ('check = {guests = ["b"]}\n', None),
        ('[check]\nguests = [\n  "b",\n]\n', None),
        ('[check]\nguests = ["]"]\n', '[check]\nguests = ["]", "a/**"]\n'),
    ],
)
def test_a_guest_is_added_to_a_config_and_nothing_else_changes(text: str, added: str | None) -> None:
    guest = ConfigChange((("check.guests", "a/**"),))
    if added is None:
        with pytest.raises(ConfigInvalid, match=r"a/\*\*"):
            guest.change(text)
    else:
        assert guest.change(text) == added
        assert guest.change(added) == added
        taken = ConfigChange(loses=guest.gains).change(added)
        assert parse(taken).check.guests == tuple(each for each in parse(text).check.guests if each != "a/**")


def test_the_config_of_a_new_vault_takes_a_guest_in_its_line() -> None:
    added = ConfigChange((("check.guests", "a/**"),)).change(DEFAULT_TEXT)
    changed = [(a, b) for a, b in zip(DEFAULT_TEXT.split("\n"), added.split("\n"), strict=True) if a != b]
    assert changed == [(changed[0][0], changed[0][0].replace("# guests = []", 'guests = ["a/**"]', 1))]
