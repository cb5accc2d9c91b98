"""Preferences: what a new value does to an old one, and how strengths fade."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.diagnostic import as_json
from mdmem.document.tree import same
from mdmem.errors import (
    Conflict,
    EditRefused,
    FieldNotFound,
    Invalid,
    LimitReached,
    MemoryNotFound,
    NamedNotFound,
    PathRefused,
    Usage,
)
from mdmem.facade.memory import open as open_memory
from mdmem.memory.preferences import Preferences
from mdmem.vault.vault import Vault
from tests import speed
from tests.memory.forking import run_at_once
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem.vault.plan import EditPlan
    from mdmem.vault.transaction import Applied

START = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)


def ask_nothing(_moment: datetime) -> dict[str, Any]:
    """Fail where the index is asked about a preference that nothing speaks against."""
    raise AssertionError


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += timedelta(days=days)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def preferences(vault_root: Path, clock: Clock) -> Preferences[Applied]:
    vault = Vault(str(vault_root))
    return Preferences(vault, vault.transact, ask_nothing, clock=clock)


@pytest.fixture
def plans(vault_root: Path, clock: Clock) -> Preferences[EditPlan]:
    return Preferences(Vault(str(vault_root)), lambda build: build(), ask_nothing, clock=clock)


def theme(vault_root: Path, text: str | None = None) -> str:
    file = vault_root / "preferences" / "ui" / "theme.md"
    if text is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return file.read_bytes().decode()


# ------------------------------------------------------------------------------------------------ setting


def test_a_new_preference_is_a_file_of_its_own(vault_root: Path, preferences: Preferences[Applied]) -> None:
    done = preferences.set("ui", "theme", "dark", why="Easier on the eyes.")
    assert [file.path for file in done.files] == ["preferences/ui/theme.md"]
    assert theme(vault_root) == (
        "---\ntype: preference\ncategory: ui\nkey: theme\nvalue: dark\nstrength: 0.7\nconfidence: 0.8\n"
        "created: 2024-01-31T12:30:00Z\nupdated: 2024-01-31T12:30:00Z\n---\n\nEasier on the eyes.\n"
    )
    found = preferences.get("ui", "theme")
    assert (found.name, found.value, found.why) == ("ui/theme", "dark", "Easier on the eyes.")
    assert (found.strength, found.confidence, found.created, found.updated) == (0.7, 0.8, START, START)
    assert as_json(found)["updated"] == "2024-01-31T12:30:00Z"
    assert json.dumps(as_json(found))


def test_a_changed_value_keeps_every_byte_that_people_wrote(
    vault_root: Path, preferences: Preferences[Applied], clock: Clock
) -> None:
    written = (
        "\ufeff---\r\n# mine\r\nvalue:   'light'   # since May\r\ntags: [a,b]\r\n"
        'updated: "2024-01-30T00:00:00Z"\r\n'
        "---\r\n\r\nBecause.\r\n\r\n- more\r\n"
    )
    theme(vault_root, written)
    clock.pass_days(1)
    preferences.set("ui", "theme", "dark", why="Because.\n\n- more")
    assert theme(vault_root) == written.replace("'light'", "'dark'").replace(
        '2024-01-30T00:00:00Z"\r\n', '2024-02-01T12:30:00Z"\r\nstrength: 0.7\r\nconfidence: 0.8\r\n'
    )


def test_a_reason_replaces_the_body_and_nothing_else(
    vault_root: Path, preferences: Preferences[Applied]
) -> None:
    theme(vault_root, "---\nvalue: dark\n---\n\n\nOld reason,\nin two lines.\n\n\n")
    preferences.set("ui", "theme", "dark", why="New\nreason.\n")
    assert theme(vault_root).partition("---\n\n")[2] == "New\nreason.\n"
    preferences.set("ui", "theme", "dark", why="")
    assert preferences.get("ui", "theme").why == ""
    theme(vault_root, "---\nvalue: dark\n---\n")
    preferences.set("ui", "theme", "dark", why="Why.")
    assert theme(vault_root).endswith("---\n\nWhy.\n")


def test_a_reason_goes_with_the_value_that_it_was_for(
    vault_root: Path, preferences: Preferences[Applied]
) -> None:
    preferences.set("ui", "theme", "dark", why="He works at night.")
    preferences.set("ui", "theme", "dark", strength=0.9)
    assert preferences.get("ui", "theme").why == "He works at night."
    done = preferences.set("ui", "theme", "light")
    assert preferences.get("ui", "theme").why == ""
    assert theme(vault_root).endswith("updated: 2024-01-31T12:30:00Z\n---\n")
    assert done.plan.message == "set preference ui/theme, remove the old reason"
    done = preferences.set("ui", "theme", "dark")
    assert done.plan.message == "set preference ui/theme"
    preferences.set("ui", "theme", "light", why="It is summer.")
    assert preferences.get("ui", "theme").why == "It is summer."


@pytest.mark.parametrize(
    ("policy", "old", "new", "given", "left"),
    [
        ("keep-latest", ["a"], ["a", "b"], None, ""),
        ("keep-stronger", "dark", "light", None, ""),
        ("keep-stronger", "dark", "light", "New.", "New."),
        ("merge", ["a"], ["b"], None, "Old."),
        ("merge", ["a"], ["b"], "New.", "New."),
        ("merge", {"a": 1}, {"b": 2}, None, "Old."),
        ("merge", {"a": 1}, {"a": 2}, None, ""),
        ("merge", "dark", "light", None, ""),
    ],
)
def test_a_reason_stays_where_its_value_is_part_of_what_results(
    preferences: Preferences[Applied], policy: str, old: object, new: object, given: str | None, left: str
) -> None:
    preferences.set("ui", "theme", old, why="Old.")
    preferences.set("ui", "theme", new, why=given, strength=0.8, policy=policy)
    assert preferences.get("ui", "theme").why == left


@pytest.mark.parametrize("policy", ["merge", "keep-stronger"])
def test_a_value_that_stays_keeps_its_reason(preferences: Preferences[Applied], policy: str) -> None:
    preferences.set("ui", "theme", "dark", why="Old.")
    for why in (None, "New."):
        preferences.set("ui", "theme", "light", why=why, strength=0.1, policy=policy)
        found = preferences.get("ui", "theme")
        assert (found.value, found.why) == ("dark", "Old.")


def test_a_file_that_is_all_body_gets_its_value_above(
    vault_root: Path, preferences: Preferences[Applied]
) -> None:
    theme(vault_root, "I like it dark.\n")
    preferences.set("ui", "theme", "dark")
    assert theme(vault_root).endswith("---\n\nI like it dark.\n")
    assert preferences.get("ui", "theme").value == "dark"


def test_the_same_value_again_grows_stronger_and_surer(
    preferences: Preferences[Applied], clock: Clock
) -> None:
    preferences.set("ui", "theme", "dark", strength=0.5, confidence=0.9)
    clock.pass_days(10)
    for policy, expected in (("keep-latest", 0.55), ("keep-stronger", 0.65), ("merge", 0.75)):
        preferences.set("ui", "theme", "dark", strength=0.3, confidence=0.5, policy=policy)
        found = preferences.get("ui", "theme")
        assert (found.stored_strength, found.confidence, found.updated) == (expected, 0.9, clock.now)
    for _ in range(5):
        preferences.set("ui", "theme", "dark")
    assert preferences.get("ui", "theme").strength == 1.0


def test_what_was_given_more_strongly_counts_when_a_value_is_repeated(
    preferences: Preferences[Applied],
) -> None:
    preferences.set("ui", "theme", "dark", strength=0.2)
    preferences.set("ui", "theme", "dark", strength=0.6)
    assert preferences.get("ui", "theme").strength == 0.7


@pytest.mark.parametrize(("first", "second"), [(1, True), (1, 1.0), ("1", 1), ([1], [True]), ({}, [])])
def test_values_of_other_types_are_other_values(
    preferences: Preferences[Applied], first: object, second: object
) -> None:
    preferences.set("ui", "size", first)
    preferences.set("ui", "size", second)
    found = preferences.get("ui", "size")
    assert same(found.value, second)
    assert found.strength == 0.7


# ----------------------------------------------------------------------------------------------- policies


def test_keep_latest_is_the_default_and_replaces_a_stronger_value(
    preferences: Preferences[Applied], clock: Clock
) -> None:
    preferences.set("ui", "theme", "dark", strength=1, confidence=1)
    clock.pass_days(1)
    preferences.set("ui", "theme", "light", strength=0.2, confidence=0.3)
    found = preferences.get("ui", "theme")
    assert (found.value, found.strength, found.confidence) == ("light", 0.2, 0.3)
    assert (found.created, found.updated) == (START, clock.now)


def test_keep_stronger_takes_only_what_is_stronger(
    vault_root: Path, preferences: Preferences[Applied]
) -> None:
    preferences.set("ui", "theme", "dark")
    before = theme(vault_root)
    for strength in (0.6, 0.7):
        refused = preferences.set("ui", "theme", "light", strength=strength, policy="keep-stronger")
        assert refused.files == ()
        said = f"kept preference ui/theme: 'dark' has the strength 0.7, 'light' no more than {strength}"
        assert said in refused.plan.message
        assert theme(vault_root) == before
    preferences.set("ui", "theme", "light", strength=0.71, policy="keep-stronger")
    assert preferences.get("ui", "theme").value == "light"


def test_keep_stronger_compares_with_what_is_left_of_the_old_strength(
    preferences: Preferences[Applied], clock: Clock
) -> None:
    preferences.set("ui", "theme", "dark", strength=0.8)
    clock.pass_days(50)
    preferences.set("ui", "theme", "light", strength=0.5, policy="keep-stronger")
    assert preferences.get("ui", "theme").value == "light"


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        (["a", 1], [1, True, "b", "b"], ["a", 1, True, "b"]),
        ({"a": 1, "b": {"x": 1}}, {"b": {"y": 2}, "c": 3}, {"a": 1, "b": {"y": 2}, "c": 3}),
        ("dark", "light", "light"),
        (["a"], "light", "light"),
    ],
)
def test_merge_unites_values_and_takes_the_means(
    preferences: Preferences[Applied], old: object, new: object, merged: object
) -> None:
    preferences.set("ui", "theme", old, strength=0.6, confidence=1)
    preferences.set("ui", "theme", new, strength=0.6, confidence=0.5, policy="merge")
    found = preferences.get("ui", "theme")
    assert (found.value, found.strength, found.confidence) == (merged, 0.6, 0.75)


def test_merge_keeps_the_stronger_of_two_single_values(preferences: Preferences[Applied]) -> None:
    preferences.set("ui", "theme", "dark", strength=0.8)
    preferences.set("ui", "theme", "light", strength=0.6, policy="merge")
    found = preferences.get("ui", "theme")
    assert (found.value, found.strength) == ("dark", 0.7)


def test_the_config_names_the_policy(vault_root: Path, clock: Clock) -> None:
    (vault_root / ".mdmem" / "config.toml").write_text('[preferences]\npolicy = "keep-stronger"\n')
    vault = Vault(str(vault_root))
    kind: Preferences[Applied] = Preferences(vault, vault.transact, ask_nothing, clock=clock)
    kind.set("ui", "theme", "dark")
    kind.set("ui", "theme", "light", strength=0.1)
    assert kind.get("ui", "theme").value == "dark"


# ---------------------------------------------------------------------------------------------- refusals


def test_impossible_arguments_are_refused_before_anything_is_written(
    vault_root: Path, preferences: Preferences[Applied]
) -> None:
    for wrong in ({"strength": 1.1}, {"strength": -0.1}, {"confidence": float("nan")}, {"policy": "newest"}):
        arguments: dict[str, Any] = dict(wrong)
        with pytest.raises(Usage):
            preferences.set("ui", "theme", "dark", **arguments)
    for value in ({1: "a"}, {"a"}, b"x", ("a",)):
        with pytest.raises(Usage):
            preferences.set("ui", "theme", value)
    with pytest.raises(Usage):
        preferences.top(-1)
    for name in ("", ".", ".."):
        with pytest.raises(PathRefused):
            preferences.set(name, "theme", "dark")
    assert not (vault_root / "preferences").exists()


def test_a_base_refuses_what_somebody_else_changed(
    vault_root: Path, preferences: Preferences[Applied]
) -> None:
    seen = preferences.set("ui", "theme", "dark").files[0].after
    assert seen is not None
    preferences.set("ui", "theme", "light", base=seen[:8])
    with pytest.raises(Conflict) as caught:
        preferences.set("ui", "theme", "blue", base=seen)
    assert "-value: dark" in caught.value.diff
    assert "value: light" in theme(vault_root)
    with pytest.raises(MemoryNotFound):
        preferences.set("ui", "font", "mono", base=seen)


def test_a_new_preference_beyond_the_limit_is_refused_but_old_ones_change(
    vault_root: Path, clock: Clock
) -> None:
    (vault_root / ".mdmem" / "config.toml").write_text("[preferences]\nmax_per_user = 2\n")
    vault = Vault(str(vault_root))
    kind: Preferences[Applied] = Preferences(vault, vault.transact, ask_nothing, clock=clock)
    kind.set("ui", "theme", "dark", strength=0.1)
    kind.set("ui", "font", "mono")
    clock.pass_days(5)
    with pytest.raises(LimitReached, match="sweep") as caught:
        kind.set("ui", "size", 12)
    assert caught.value.limit == 2
    kind.set("ui", "font", "serif")
    kind.sweep()
    kind.set("ui", "size", 12)
    assert [p.key for p in kind.list()] == ["font", "size"]


def test_a_preference_whose_fields_cannot_be_read_is_not_overwritten(
    vault_root: Path, preferences: Preferences[Applied]
) -> None:
    theme(vault_root, "---\nvalue: [dark\n---\n")
    with pytest.raises(EditRefused):
        preferences.set("ui", "theme", "light")
    with pytest.raises(FieldNotFound):
        preferences.get("ui", "theme")
    assert theme(vault_root) == "---\nvalue: [dark\n---\n"


def test_a_schema_of_the_vault_is_kept(vault_root: Path, preferences: Preferences[Applied]) -> None:
    (vault_root / ".mdmem" / "schemas").mkdir()
    schema = {"properties": {"value": {"enum": ["dark", "light"]}}}
    (vault_root / ".mdmem" / "schemas" / "preference.json").write_text(json.dumps(schema))
    with pytest.raises(Invalid):
        preferences.set("ui", "theme", "blue")
    preferences.set("ui", "theme", "dark")


# ----------------------------------------------------------------------------------------------- reading


def test_strength_fades_when_it_is_read_and_never_in_the_file(
    vault_root: Path, preferences: Preferences[Applied], clock: Clock
) -> None:
    preferences.set("ui", "theme", "dark", strength=0.6)
    before = theme(vault_root)
    clock.pass_days(10)
    for _ in range(5):
        found = preferences.get("ui", "theme")
        assert (found.strength, found.stored_strength, found.hidden) == (0.54, 0.6, False)
    clock.pass_days(-20)
    assert preferences.get("ui", "theme").strength == 0.6
    assert theme(vault_root) == before


def test_what_has_faded_is_hidden_until_it_is_asked_for_or_said_again(
    preferences: Preferences[Applied], clock: Clock
) -> None:
    preferences.set("ui", "theme", "dark", strength=0.5)
    clock.pass_days(80)
    assert preferences.get("ui", "theme").strength == 0.1
    clock.pass_days(1)
    with pytest.raises(NamedNotFound):
        preferences.get("ui", "theme")
    assert preferences.list() == []
    assert preferences.get("ui", "theme", hidden=True).hidden
    assert [p.strength for p in preferences.list(hidden=True)] == [0.095]
    preferences.set("ui", "theme", "dark", strength=0.05)
    assert preferences.get("ui", "theme").strength == 0.195


def test_a_file_written_by_hand_counts_fully_and_does_not_fade_without_a_time(
    vault_root: Path, preferences: Preferences[Applied], clock: Clock
) -> None:
    theme(vault_root, "---\nvalue: dark\n---\n")
    clock.pass_days(400)
    found = preferences.get("ui", "theme")
    assert (found.strength, found.confidence, found.updated) == (1.0, 1.0, None)
    theme(vault_root, "---\nvalue: dark\ncreated: 2025-02-24\nstrength: high\n---\n")
    assert preferences.get("ui", "theme").strength == pytest.approx(0.9, abs=0.01)


def test_list_top_and_stats(preferences: Preferences[Applied], clock: Clock) -> None:
    assert as_json(preferences.stats()) == {
        "total": 0,
        "hidden": 0,
        "by_category": {},
        "mean_strength": 0.0,
        "bands": {"strong": 0, "medium": 0, "weak": 0},
    }
    preferences.set("ui", "theme", "dark", strength=0.7)
    preferences.set("format", "indent", 4, strength=0.1)
    clock.pass_days(1)
    preferences.set("ui", "font", "mono", strength=0.4)
    preferences.set("code", "style", "short", strength=0.693)
    preferences.set("code", "tests", None, strength=0.2)
    assert [p.name for p in preferences.list()] == ["code/style", "code/tests", "ui/font", "ui/theme"]
    assert [p.name for p in preferences.list("ui")] == ["ui/font", "ui/theme"]
    assert preferences.list("u") == []
    assert [p.name for p in preferences.top(3)] == ["code/style", "ui/theme", "ui/font"]
    stats = preferences.stats()
    assert (stats.total, stats.hidden, stats.by_category) == (5, 1, {"code": 2, "ui": 2})
    assert stats.mean_strength == pytest.approx(0.4965)
    assert as_json(stats.bands) == {"strong": 0, "medium": 3, "weak": 1}


def test_unreadable_files_hide_nothing_else(vault_root: Path, preferences: Preferences[Applied]) -> None:
    preferences.set("ui", "theme", "dark")
    folder = vault_root / "preferences" / "ui"
    (folder / "latin.md").write_bytes(b"---\nvalue: caf\xe9\n---\n")
    (folder / "broken.md").write_text("---\nvalue: [a\n---\n")
    (folder / "empty.md").write_text("")
    (folder / "deeper").mkdir()
    (folder / "deeper" / "x.md").write_text("---\nvalue: 1\n---\n")
    (vault_root / "preferences" / "loose.md").write_text("---\nvalue: 1\n---\n")
    assert [p.name for p in preferences.list()] == ["ui/theme"]
    assert preferences.stats().total == 1


def test_an_absent_preference_names_the_nearest(preferences: Preferences[Applied]) -> None:
    preferences.set("ui", "theme", "dark")
    with pytest.raises(NamedNotFound) as caught:
        preferences.get("ui", "them")
    assert caught.value.near == ("ui/theme",)


# ---------------------------------------------------------------------------------------------- deleting


def test_delete_and_sweep_are_plans_first(
    vault_root: Path, preferences: Preferences[Applied], plans: Preferences[EditPlan], clock: Clock
) -> None:
    preferences.set("ui", "theme", "dark", strength=0.1)
    preferences.set("ui", "font", "mono")
    clock.pass_days(1)
    proposed = plans.sweep()
    assert proposed.paths == ("preferences/ui/theme.md",)
    assert "-value: dark" in proposed.diff()
    assert theme(vault_root)
    assert [file.after for file in preferences.sweep().files] == [None]
    assert preferences.sweep().files == ()
    preferences.delete("ui", "font")
    with pytest.raises(NamedNotFound):
        preferences.delete("ui", "font")
    assert preferences.list(hidden=True) == []


# ------------------------------------------------------------------------------- many names, many writers


@pytest.fixture(scope="module")
def scratch() -> Iterator[Preferences[EditPlan]]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".mdmem").mkdir()
        yield Preferences(Vault(folder), lambda build: build(), ask_nothing, clock=lambda: START)


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=6,
)


@given(NAMES.filter(lambda name: name not in {".", ".."}), VALUES)
@settings(max_examples=examples(80))
def test_any_name_and_any_value_come_back(scratch: Preferences[EditPlan], name: str, value: object) -> None:
    from mdmem.document.document import parse
    from mdmem.memory.preferences import read_preference

    (change,) = scratch.set(name, name, value).changes
    assert change.content is not None
    found = read_preference(parse(change.path, change.content), START)
    assert (found.category, found.key) == (name, name)
    assert same(found.value, value)


def set_words(root: Path, me: int) -> None:
    vault = Vault(str(root))
    kind: Preferences[Applied] = Preferences(vault, vault.transact, ask_nothing)
    for number in range(5):
        kind.set("ui", "words", [f"{me}-{number}"], strength=0.5, policy="merge")


def test_processes_that_set_at_once_lose_no_word(vault_root: Path) -> None:
    count = 3 if speed.is_all else 2
    assert set(run_at_once(*(partial(set_words, vault_root, n) for n in range(count)))) == {0}
    vault = Vault(str(vault_root))
    kind: Preferences[Applied] = Preferences(vault, vault.transact, ask_nothing)
    assert sorted(kind.get("ui", "words").value) == [f"{who}-{n}" for who in range(count) for n in range(5)]


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"expires": "2020-01-01"}, "expired"),
        ({"valid_to": "2020-01-01"}, "over"),
        ({"superseded_by": "preferences/ui/font.md"}, "superseded"),
    ],
)
def test_a_preference_that_does_not_count_is_hidden_until_it_is_set_again(
    vault_root: Path, fields: dict[str, str], state: str
) -> None:
    memory = open_memory(vault_root)
    memory.preferences.set("ui", "font", "mono")
    memory.preferences.set("ui", "theme", "dark", strength=1, why="It was night.")
    memory.set("preferences/ui/theme.md", fields)
    with pytest.raises(NamedNotFound):
        memory.preferences.get("ui", "theme")
    assert [each.name for each in memory.preferences.list()] == ["ui/font"]
    assert memory.preferences.stats().hidden == 1
    assert memory.preferences.get("ui", "theme", hidden=True).state == state
    assert memory.plan.preferences.sweep().changes == (), "it has not faded"
    memory.preferences.set("ui", "theme", "dark")
    again = memory.preferences.get("ui", "theme")
    assert (again.value, again.strength, again.why, again.state) == ("dark", 0.7, "", "live")
