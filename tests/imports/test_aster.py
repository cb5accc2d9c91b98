"""Aster's working memory and preferences come in together, each to its place; what cannot is named."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import mdmem
from mdmem.errors import Invalid, Usage
from mdmem.imports.aster import convert
from mdmem.memory.memory import Memory, open as open_memory
from mdmem.text.document import DEFAULT_LIMITS

if TYPE_CHECKING:
    from pathlib import Path

LATER = "2999-01-01T00:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> str:
    return mdmem.init(tmp_path / "memories").root


@pytest.fixture
def memory(root: str) -> Memory:
    return open_memory(root)


@pytest.fixture
def alice(root: str) -> Memory:
    return open_memory(root, mdmem.Scope(user="alice"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "aster").mkdir()
    return tmp_path / "aster"


def preference(**changed: Any) -> dict[str, Any]:
    return {
        "ID": "pref-alice-17",
        "UserID": "alice",
        "Category": "ui",
        "Key": "theme",
        "Value": "dark",
        "Strength": 0.6,
        "Confidence": 0.8,
        "CreatedAt": "2024-01-01T08:00:00.123456789+08:00",
        "UpdatedAt": "2024-01-21T20:30:00.5+08:00",
        "AccessCount": 0,
        "Metadata": None,
        **changed,
    }


def state(content: Any = "Tests are green.", **meta: Any) -> dict[str, Any]:
    given = {"thread_id": "t1", "created_at": "2024-01-01T08:00:00Z", "updated_at": "2024-02-01T08:00:00Z"}
    return {"meta": {**given, **meta}, "content": content}


def write(source: Path, files: dict[str, Any]) -> str:
    for path, value in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(value if isinstance(value, str) else json.dumps(value))
    return str(source)


def left_out(applied: object) -> list[str]:
    assert isinstance(applied, mdmem.Applied)
    return list(applied.plan.left_out)


def test_preferences_and_working_memory_are_one_change_which_undo_takes_back(
    memory: Memory, source: Path
) -> None:
    write(
        source,
        {
            "prefs/alice.json": "\ufeff" + json.dumps([preference()]),
            "working_memory/threads/t1.json": state(expires_at=LATER),
            "working_memory/resources/r1.json": state(thread_id="", resource_id="r1"),
        },
    )
    before = [listed.path for listed in memory.ls()]
    told: list[tuple[str, int, int]] = []
    memory.progress = lambda *each: told.append(each)
    applied = memory.import_("aster", str(source))
    assert not left_out(applied)
    assert told == [("importing", number, 3) for number in (1, 2, 3)]
    assert memory.show("users/alice/preferences/ui/theme.md").text == (
        "---\ntype: preference\ncategory: ui\nkey: theme\nvalue: dark\nstrength: 0.6\nconfidence: 0.8\n"
        "created: 2024-01-01T08:00:00.123456789+08:00\nupdated: 2024-01-21T20:30:00.5+08:00\n"
        "source: {type: aster, ids: [pref-alice-17]}\n---\n"
    )
    assert memory.show("working/threads/t1.md").text == (
        f"---\nthread: t1\ncreated: 2024-01-01T08:00:00Z\nexpires: {LATER}\n"
        "source: {type: aster, updated: 2024-02-01T08:00:00Z}\n---\n\nTests are green.\n"
    )
    assert memory.working.get(resource="r1") == "Tests are green."
    assert memory.check() == []
    assert not memory.import_("aster", str(source)).files
    memory.undo(applied.id)
    assert [listed.path for listed in memory.ls()] == before


def test_a_preference_has_the_times_and_the_strength_that_it_had(alice: Memory, source: Path) -> None:
    write(source, {"alice.json": [preference(), preference(Key="font", UpdatedAt="0001-01-01T00:00:00Z")]})
    alice.import_("aster", str(source))
    found = alice.preferences.get("ui", "theme", hidden=True)
    assert (found.value, found.stored_strength, found.confidence) == ("dark", 0.6, 0.8)
    assert found.updated == datetime(2024, 1, 21, 12, 30, 0, 500_000, UTC)
    assert alice.preferences.get("ui", "font", hidden=True).updated == found.created


def test_names_of_fields_may_be_in_snake_case_and_what_has_no_field_is_metadata(
    alice: Memory, source: Path
) -> None:
    entry = {
        "category": "a/b",
        "key": "日",
        "value": {"n": [1, None]},
        "updated_at": "2024-01-31",
        "Pinned": 1,
    }
    write(source, {"alice.json": [{**entry, "metadata": {"from": "chat"}, "access_count": 3}]})
    applied = alice.import_("aster", str(source))
    assert left_out(applied) == ["alice.json: how often 1 of its entries were read, which is not a memory"]
    fields = alice.show("preferences/a%2Fb/日.md").fields
    assert fields["metadata"] == {"Pinned": 1, "from": "chat"}
    assert alice.preferences.get("a/b", "日", hidden=True).value == {"n": [1, None]}


OF_TWO = {
    "alice.json": [preference()],
    "bob.json": [preference(UserID="", Value="light")],
    "carol.json": "null",
}


def test_preferences_of_several_users_go_to_each(memory: Memory, source: Path) -> None:
    applied = memory.import_("aster", write(source, OF_TWO))
    assert not left_out(applied)
    assert [file.path for file in applied.files] == [
        f"users/{name}/preferences/ui/theme.md" for name in ("alice", "bob")
    ]


def test_of_several_users_only_the_one_who_is_bound_gets_any(alice: Memory, source: Path) -> None:
    applied = alice.import_("aster", write(source, OF_TWO))
    assert [file.path for file in applied.files] == ["preferences/ui/theme.md"]
    assert alice.show("preferences/ui/theme.md").fields["value"] == "dark"
    (reason,) = left_out(applied)
    assert reason.startswith("1 memories of the user 'bob': they are not for users/alice")


def test_the_only_user_of_a_source_may_be_called_otherwise_here(
    alice: Memory, memory: Memory, source: Path
) -> None:
    write(source, OF_TWO)
    assert not left_out(alice.import_("aster", str(source / "bob.json")))
    assert alice.show("preferences/ui/theme.md").fields["value"] == "light"
    memory.import_("aster", str(source / "bob.json"), to="users/dora")
    assert memory.show("users/dora/preferences/ui/theme.md").fields["value"] == "light"


def test_nothing_is_overwritten(alice: Memory, source: Path) -> None:
    alice.preferences.set("ui", "theme", "light")
    alice.working.update({"mine": 1}, thread="t1")
    before = [alice.show(listed.path).data for listed in alice.ls()]
    write(source, {"alice.json": [preference()], "threads/t1.json": state()})
    applied = alice.import_("aster", str(source))
    assert not applied.files
    assert [reason.partition(": ")[0] for reason in left_out(applied)] == [
        "working/threads/t1.md",
        "preferences/ui/theme.md",
    ]
    assert "working/threads/t1.json stands there for the same id" in left_out(applied)[0]
    assert [alice.show(listed.path).data for listed in alice.ls()] == before


def test_a_json_object_stays_one_and_can_be_merged_into(memory: Memory, source: Path) -> None:
    content = '{\n  "step": 1,\n  "done": [1.10]\n}'
    given = state(content, expires_at=LATER, created_at="0001-01-01T00:00:00Z", tags={"a": 1})
    write(source, {"threads/t1.json": {**given, "version": 2}})
    applied = memory.import_("aster", str(source))
    unkept = "version, updated_at, tags"
    assert left_out(applied) == [f"threads/t1.json: a JSON object has no place for {unkept}"]
    text = memory.show("working/threads/t1.json").text
    assert text == f'{{\n  "step": 1,\n  "done": [1.10],\n  "expires": "{LATER}"\n}}\n'
    memory.working.merge({"step": 2}, thread="t1")


@pytest.mark.parametrize(
    "content",
    [
        "[1, 2]",
        "12",
        '{"expires": "2001-01-01"}',
        '{"a": 1',
        '{"a": 1, "a": 2}',
        "---\nfield: no\n---\n\nText",
        "\n  indented\r\n\r\n",
        '{"a":' * 40 + "1" + "}" * 40,
    ],
)
def test_any_other_content_stays_the_text_that_it_is(memory: Memory, source: Path, content: str) -> None:
    write(source, {"threads/t1.json": state(content)})
    assert not left_out(memory.import_("aster", str(source)))
    document = memory.show("working/threads/t1.md")
    assert document.body.removeprefix("\n").removesuffix("\n") == content.removesuffix("\n")
    assert memory.working.list()[0].expired is False


def test_what_has_expired_is_there_and_counts_as_absent(memory: Memory, source: Path) -> None:
    write(source, {"threads/t1.json": state(expires_at="2020-01-01T00:00:00.123456789+08:00")})
    assert memory.import_("aster", str(source)).files
    assert memory.working.get(thread="t1") == ""
    assert [info.expired for info in memory.working.list()] == [True]


@pytest.mark.parametrize(
    ("path", "meta", "where"),
    [
        ("threads/x.json", {"thread_id": "a/b"}, "working/threads/a%2Fb.md"),
        ("threads/x.json", {"thread_id": "", "resource_id": "r"}, "working/threads/r.md"),
        ("threads/x.json", {"thread_id": None}, "working/threads/x.md"),
        ("threads/a/resources/x.json", {"resource_id": "r"}, "working/resources/r.md"),
        ("x.json", {}, "working/threads/t1.md"),
        ("x.json", {"thread_id": "", "resource_id": "r"}, "working/resources/r.md"),
    ],
)
def test_the_folder_and_the_ids_say_whose_it_is(
    memory: Memory, source: Path, path: str, meta: dict[str, Any], where: str
) -> None:
    write(source, {path: state(**meta)})
    assert [file.path for file in memory.import_("aster", str(source)).files] == [where]


def test_what_is_said_of_a_text_stays_with_it(memory: Memory, source: Path) -> None:
    write(source, {"threads/t1.json": {**state(resource_id="r", tags=["a"]), "version": 2}})
    assert not left_out(memory.import_("aster", str(source)))
    fields = memory.show("working/threads/t1.md").fields
    assert (fields["thread"], fields["resource"]) == ("t1", "r")
    assert fields["metadata"] == {"version": 2, "tags": ["a"]}


def test_names_that_differ_only_in_case_do_not_stop_the_rest(alice: Memory, source: Path) -> None:
    names = [("ui", "theme"), ("ui", "Theme"), ("UI", "font")]
    write(source, {"alice.json": [preference(Category=category, Key=key) for category, key in names]})
    applied = alice.import_("aster", str(source))
    assert [file.path for file in applied.files] == ["preferences/ui/theme.md"]
    assert left_out(applied) == [
        "preferences/ui/Theme.md: differs only in case from preferences/ui/theme.md",
        "preferences/UI/font.md: differs only in case from preferences/ui",
    ]


def test_of_two_with_one_name_the_newer_is_taken(memory: Memory, source: Path) -> None:
    newer = preference(Value="light", UpdatedAt="2024-01-21T12:30:01Z")
    write(
        source,
        {
            "alice.json": [newer, preference(), newer],
            "threads/t1.json": state("old"),
            "backup/threads/t1.json": state('{"new": 1}', updated_at="2024-03-01T08:00:00Z"),
        },
    )
    applied = memory.import_("aster", str(source))
    assert [reason for reason in left_out(applied) if "same name" in reason] == [
        "alice.json: entry 2 (ui/theme): alice.json: entry 1 (ui/theme) has the same name, and is newer",
        "threads/t1.json: backup/threads/t1.json has the same name, and is newer",
    ]
    assert memory.show("users/alice/preferences/ui/theme.md").fields["value"] == "light"
    assert [info.path for info in memory.working.list()] == ["working/threads/t1.json"]


def test_what_cannot_be_taken_is_named_with_its_reason_and_the_rest_is_taken(
    alice: Memory, source: Path
) -> None:
    entries = [
        preference(),
        3,
        preference(Category=3),
        {"Category": "ui", "Key": "none"},
        preference(Key=".."),
        preference(Key="deep", Value=json.loads("[" * 900 + "]" * 900)),
        preference(Key="sure", Confidence=True),
        preference(Key="when", UpdatedAt="yesterday"),
    ]
    write(
        source,
        {
            "alice.json": entries,
            "threads/gone.json": state("", created_at="0001-01-01T00:00:00Z"),
            "threads/deep.json": state(deep=json.loads("[" * 900 + "]" * 900)),
            "threads/odd.json": state(["a"]),
            "threads/half.json": '{"meta": {"thr',
            "threads/id.json": state(thread_id=".."),
            "nobody.json": state(resource_id="r"),
            "numbers.json": [1, 2, 3],
            "package.json": {"name": "other"},
            "nan.json": '[{"Category": "ui", "Key": "n", "Value": NaN}]',
            "readme.md": "# Aster\n",
        },
    )
    applied = alice.import_("aster", str(source))
    assert [file.path for file in applied.files] == ["preferences/ui/theme.md"]
    reasons = [reason.split(": ") for reason in left_out(applied)]
    assert [(where, reason[:24]) for where, reason, *_ in reasons] == [
        ("alice.json", "entry 2"),
        ("alice.json", "entry 3"),
        ("alice.json", "entry 4"),
        ("alice.json", "entry 5"),
        ("alice.json", "entry 6"),
        ("nan.json", "this is not JSON"),
        ("nobody.json", "in no folder `threads` o"),
        ("numbers.json", "neither working memory n"),
        ("package.json", "neither working memory n"),
        ("readme.md", "neither a note, nor proj"),
        ("threads/deep.json", "nested too deeply"),
        ("threads/gone.json", "its content is empty"),
        ("threads/half.json", "this is not JSON"),
        ("threads/id.json", "'..'"),
        ("threads/odd.json", "its content is not text"),
        ("preferences/ui/sure.md", "line 7"),
        ("preferences/ui/when.md", "line 9"),
    ]


def test_a_user_whom_no_folder_can_be_named_after_is_left_out(memory: Memory, source: Path) -> None:
    write(source, {"x.json": [preference(UserID="..")], "threads/t1.json": state()})
    applied = memory.import_("aster", str(source))
    assert [file.path for file in applied.files] == ["working/threads/t1.md"]
    assert "'..'" in left_out(applied)[0]


@pytest.mark.parametrize(
    "content", ["", '{"meta": {}}', "[", "[" * 100_000, '"text"', "[1]", '[{"Key": "a"}]', None]
)
def test_where_nothing_of_aster_is_it_is_refused(memory: Memory, source: Path, content: str | None) -> None:
    if content is not None:
        write(source, {"x.json": content})
    for name in ("", "x.json"):
        with pytest.raises(Usage) as refused:
            memory.import_("aster", str(source / name))
        assert str(source) in refused.value.message


def test_a_link_in_the_source_is_not_followed(memory: Memory, source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps([preference()]))
    write(source, {"threads/t1.json": state()})
    os.symlink(tmp_path / "secret.json", source / "alice.json")
    applied = memory.import_("aster", str(source))
    assert left_out(applied) == ["alice.json: a link"]


def test_a_secret_in_it_refuses_the_import(memory: Memory, source: Path) -> None:
    write(source, {"alice.json": [preference()], "threads/t1.json": state("AKIA" + "QWERTYUIOPASDF23")})
    with pytest.raises(Invalid):
        memory.import_("aster", str(source))
    assert not [listed for listed in memory.ls() if listed.path.startswith("users")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=10)
ENTRIES = st.builds(
    lambda category, key, value: {"Category": category, "Key": key, "Value": value}, TEXTS, TEXTS, JSON
)


NAMED = st.lists(ENTRIES, min_size=1, max_size=4, unique_by=lambda entry: (entry["Category"], entry["Key"]))


@given(NAMED, st.text(min_size=1), TEXTS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_everything_is_taken_as_it_is_or_named(
    tmp_path: Path, entries: list[dict[str, Any]], content: str, thread: str
) -> None:
    source = tmp_path / "any"
    write(source, {"u.json": entries, "threads/t.json": state(content, thread_id=thread)})
    batch = convert(str(source), DEFAULT_LIMITS)
    kept = {
        (document.fields["category"], document.fields["key"]): document.fields["value"]
        for document in batch.of_users.get("u", ())
    }
    for number, entry in enumerate(entries, 1):
        reasons = [reason for reason in batch.left_out if reason.startswith(f"u.json: entry {number}:")]
        assert reasons or kept[entry["Category"], entry["Key"]] == entry["Value"]
    assert batch.documents or any("threads/t.json" in reason for reason in batch.left_out)
    for document in batch.documents:
        assert document.findings == ()
        assert content.strip() in document.text


# -- Markdown ---------------------------------------------------------------------------------------------

NOTE = "\ufeff## 2024-01-01 08:00:00\r\n\r\nSQLite: one file.  \r\n"
TREE = {
    "memories/db.md": NOTE,
    "memories/deep/er/x.md": "# X\n",
    "memories/users/alice/own.md": "mine\n",
    "memories/users/bob/projects/demo/resources/issue/1/n.md": "his\n",
    "memories/projects/demo/plan.md": "plan\n",
    "memories/memories/twice.md": "again\n",
    "workspaces/demo/AGENTS.md": "# \u9879\u76ee\n\n- 2024-01-01 08:00: [ui] dark\n",
    ".aster/rules.md": "# Rules\n\nBe short.\n",
    "agent.md": "# Agent\n",
    "AGENTS.md": "# Top\n",
}
TAKEN = {
    "memories/db.md": "notes/db.md",
    "memories/deep/er/x.md": "notes/deep/er/x.md",
    "memories/users/alice/own.md": "users/alice/notes/own.md",
    "memories/users/bob/projects/demo/resources/issue/1/n.md": (
        "users/bob/projects/demo/resources/issue/1/notes/n.md"
    ),
    "memories/projects/demo/plan.md": "projects/demo/notes/plan.md",
    "memories/memories/twice.md": "notes/memories/twice.md",
    "workspaces/demo/AGENTS.md": "projects/demo/AGENTS.md",
    ".aster/rules.md": "rules/aster.md",
    "AGENTS.md": "AGENTS.md",
}


def put(source: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(text.encode())
    return str(source)


def test_notes_project_memory_and_rules_go_where_their_kind_is_byte_for_byte(
    memory: Memory, source: Path
) -> None:
    applied = memory.import_("aster", put(source, TREE))

    assert left_out(applied) == []
    assert {path: memory.show(TAKEN[path]).text for path in TAKEN} == {path: TREE[path] for path in TAKEN}
    assert memory.show("notes/agent.md").text == "---\ntier: pinned\n---\n\n# Agent\n"
    assert len(applied.files) == len(TREE)
    assert [(rule.name, rule.title, rule.priority) for rule in memory.rules.list()] == [("aster", "Rules", 0)]
    mine = open_memory(memory.vault.root, mdmem.Scope(project="demo"))
    assert mine.project.load().text == TREE["workspaces/demo/AGENTS.md"]

    again = memory.import_("aster", str(source))
    assert (again.files, left_out(again)) == ((), [])
    assert again.plan.message == f"import 0 from aster, {len(TREE)} stand there already"


@pytest.mark.parametrize(
    ("part", "paths"),
    [
        ("memories", {"notes/db.md", "users/alice/notes/own.md"}),
        ("memories/db.md", {"notes/db.md"}),
        ("workspaces", {"projects/demo/AGENTS.md"}),
        ("workspaces/demo/AGENTS.md", {"projects/demo/AGENTS.md"}),
        (".aster", {"rules/aster.md"}),
    ],
)
def test_a_part_of_the_tree_is_known_by_its_name(
    memory: Memory, source: Path, part: str, paths: set[str]
) -> None:
    put(source, TREE)

    assert paths <= {file.path for file in memory.import_("aster", str(source / part)).files}


def test_what_is_foreign_in_the_tree_is_left_out(memory: Memory, source: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret\n")
    files = {
        "memories/a.md": "a\n",
        "memories/b.txt": "b\n",
        "memories/.hidden/c.md": "c\n",
        "memories/bad?.md": "d\n",
        "memories/users/../e.md": "e\n",
        "workspaces/AGENTS.md": "f\n",
        "workspaces/demo/deep/AGENTS.md": "g\n",
        "src/notes.md": "h\n",
    }
    put(source, files)
    (source / "memories/link.md").symlink_to(secret)
    (source / "memories/users/linked").symlink_to(tmp_path)
    (source / "memories/binary.md").write_bytes(b"a\0b")
    memory.write("notes/e.md", "mine\n")

    applied = memory.import_("aster", str(source))

    assert [file.path for file in applied.files] == ["notes/a.md"]
    assert sorted(reason.partition(":")[0] for reason in left_out(applied)) == [
        *("'notes/bad?.md'", "memories/b.txt", "memories/binary.md", "memories/link.md", "notes/e.md"),
        *("src/notes.md", "workspaces/AGENTS.md", "workspaces/demo/deep/AGENTS.md"),
    ]
    assert memory.show("notes/e.md").text == "mine\n"
