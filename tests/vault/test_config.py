"""The config: defaults that its text documents truly, and errors that name what is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mdmem.errors import ConfigInvalid
from mdmem.text.document import Limits
from mdmem.vault.config import (
    CONFIG_PATH,
    DEFAULT_TEXT,
    MAX_BYTES,
    POLICIES,
    SECRET_POLICIES,
    Config,
    Trash,
    parse,
)
from mdmem.vault.vault import Vault

TABLES = ("limits", "trash", "working", "preferences", "secrets")


def test_nothing_means_the_defaults() -> None:
    assert parse("") == Config()
    assert parse(DEFAULT_TEXT) == parse(f"{DEFAULT_TEXT}\n") == Config()


def test_the_commented_defaults_are_the_defaults() -> None:
    text = re.sub(r"(?m)^# (\w+ = )", r"\1", DEFAULT_TEXT)
    assert text != DEFAULT_TEXT
    assert parse(text) == Config()
    documented = re.findall(r"(?m)^(\w+) = ", text)
    assert sorted(documented) == sorted(name for table in TABLES for name in getattr(Config(), table)._fields)


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
# README: `[secrets] policy` in the config is …
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


@pytest.mark.parametrize(
    ("text", "named"),
    [
        *((f"[{table}]\nunknown_key = 1", f"[{table}] 'unknown_key'") for table in TABLES),
        *(
            (f"[{table}]\n{name} = {value}", f"[{table}] {name}")
            for table in TABLES
            for name in getattr(Config(), table)._fields
            for value in ("[3]", "true", "1.5", "-1" if name != "policy" else "1", "1979-05-27")
        ),
        *((f"{table} = 3", table) for table in TABLES),
        ('[preferences]\npolicy = "newest"', "keep-latest, keep-stronger, merge"),
        ('[secrets]\npolicy = "merge"', "refuse, redact, warn, off"),
        ("mount = {}", "'mount'"),
        ("[mounts]\na = 3", "[mounts]"),
        ("[mounts]\nAGENTS.md = '../AGENTS.md'", "[mounts]"),
        ("mounts = 3", "[mounts]"),
        ("limits = [", "end of document"),
        ("\n\n[limits]\nmax_bytes = x", "line 4"),
        ("[trash]\nmax_days = 1\nmax_days = 2", "not TOML"),
    ],
)
def test_an_error_names_the_file_and_the_key(text: str, named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse(text)
    assert refused.value.path == CONFIG_PATH
    assert named in refused.value.reason


def test_an_unknown_key_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse("[trash]\ndays = 3")
    assert refused.value.hint == "known: max_bytes, max_days"


def test_a_number_that_no_clock_can_hold_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="max_days"):
        parse(f"[trash]\nmax_days = 1{'0' * 400}")


@pytest.mark.parametrize("name", Limits._fields)
def test_a_config_cannot_take_the_limits_away(name: str) -> None:
    with pytest.raises(ConfigInvalid, match=rf"\[limits\] {name} is at most [0-9,]+, not 1,000,000,000"):
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


LINES = st.sampled_from(
    [
        *DEFAULT_TEXT.splitlines(),
        *(
            "max_bytes = 1",
            "max_bytes = -1",
            "policy = 'merge'",
            "limits = 1",
            '"a.md" = "b.md"',
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
