"""Kinds: everything that lists them reads one table, and a vault's own are treated as the built-in ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem.errors import AlreadyExists, ConfigInvalid, Invalid, TemplateFailed, Usage
from mdmem.facade.memory import Memory
from mdmem.kind import KINDS, kind_at
from mdmem.vault.paths import Scope

DISH = '[kinds.dish]\nfolder = "dishes"\nschema = "dish"\ntemplate = "dish"\n'
SCHEMA = '{"$ref": "memory", "required": ["serves"], "properties": {"serves": {"type": "integer"}}}'
TEMPLATE = "---\ntype: dish\nserves: {{ serves }}\n---\n\n# {{ title|default('Untitled')|heading }}\n"
PANCAKES = "---\ntype: dish\nserves: 4\n---\n\n# Pancakes\n"


def vault(folder: Path, config: str = DISH, **files: str) -> Memory:
    """A vault with this config and these files below `.mdmem`, each with its folder before `__`."""
    root = Path(mdmem.init(folder / "memories").root)
    (root / ".mdmem/config.toml").write_text(config, encoding="utf-8")
    for name, text in {"schemas__dish.json": SCHEMA, "templates__dish.md": TEMPLATE, **files}.items():
        path = root / ".mdmem" / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return mdmem.open(root)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return vault(tmp_path)


# ---------------------------------------------------------------------------------------------- the table


def test_each_kind_has_what_the_table_says(memory: Memory) -> None:
    schemas = {info.name for info in memory.vault.schemas.names() if info.builtin}
    templates = {info.name for info in memory.vault.templates.names() if info.builtin}
    assert {kind.schema for kind in KINDS} <= schemas
    assert {kind.template for kind in KINDS} <= templates | {""}
    assert all(bool(kind.title) == (kind.share > 0) for kind in KINDS)
    assert len({kind.name for kind in KINDS} | {kind.part for kind in KINDS}) == 2 * len(KINDS) - 2


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("notes/deep/a.md", "note"),
        ("AGENTS.md", "project"),
        ("users/notes/rules/a.md", "rule"),
        ("projects/p/resources/rules/notes/preferences/ui/a.md", "preference"),
        ("users/alice/working/threads/t.md", "working"),
        ("archive/notes/a.md", "note"),
        ("dishes/a.md", None),
        ("a.md", None),
    ],
)
def test_a_path_is_the_place_of_the_first_kind_below_its_namespace(path: str, name: str | None) -> None:
    assert (kind.name if (kind := kind_at(path)) else None) == name


# ------------------------------------------------------------------------------------------ of a vault's own


def test_what_stands_in_the_folder_of_a_kind_follows_its_schema(memory: Memory) -> None:
    with pytest.raises(Invalid, match="serves"):
        memory.write("dishes/a.md", "# A\n")
    memory.write("dishes/a.md", "---\nserves: 2\n---\n# A\n")
    memory.write("notes/a.md", "# A\n")
    with pytest.raises(Invalid, match="serves"):
        memory.set("notes/a.md", {"type": "dish"})


def test_a_type_follows_the_schema_of_the_kind_of_its_name(tmp_path: Path) -> None:
    config = '[kinds.meal]\nfolder = "meals"\nschema = "dish"\n'
    with pytest.raises(Invalid, match="serves"):
        vault(tmp_path, config).write("a.md", "---\ntype: meal\n---\n")


def test_a_type_in_the_folder_of_another_kind_is_a_warning(memory: Memory) -> None:
    plan = memory.plan.new("dish", "notes/a.md", {"serves": 1})
    assert [(each.code, "place of a note" in each.message) for each in plan.warnings] == [
        ("type-misplaced", True)
    ]
    assert "place of a dish" in memory.plan.new("note", "dishes/a.md", {"title": "x"}).warnings[0].message


@pytest.mark.parametrize("name", ["pancakes", "dishes/pancakes", "dishes/pancakes.md"])
def test_a_name_is_that_of_a_memory_in_the_folder_of_the_kind(memory: Memory, name: str) -> None:
    memory.new("dish", name, {"serves": 4, "title": "Pancakes"})
    assert memory.show("dishes/pancakes.md").text == PANCAKES
    with pytest.raises(AlreadyExists):
        memory.new("dish", "pancakes", {"serves": 4})


def test_a_built_in_kind_is_made_by_its_name_too(memory: Memory) -> None:
    assert memory.plan.new("note", "deep/db", {"title": "DB"}).paths == ("notes/deep/db.md",)
    assert memory.plan.new("note", "db.md", {"title": "DB"}).paths == ("db.md",)
    assert memory.plan.new("preference", "ui/theme", {"value": 1}).paths == ("preferences/ui/theme.md",)


def test_a_kind_may_have_a_template_of_another_name_and_form(tmp_path: Path) -> None:
    config = '[kinds.tool]\nfolder = "tools"\ntemplate = "tool-form.json"\n'
    memory = vault(tmp_path, config, **{"templates__tool-form.json": '{"n": {{ n }}}\n'})
    memory.new("tool", "hammer", {"n": 1})
    assert memory.show("tools/hammer.json").fields == {"n": 1}


def test_a_text_becomes_a_section_and_an_object_a_new_memory(memory: Memory) -> None:
    memory.remember("dish", "pancakes", {"serves": 4, "title": "Pancakes"})
    memory.remember("dish", "pancakes", "Flip once.", title="Steps")
    assert memory.show("dishes/pancakes.md").text == f"{PANCAKES}\n## Steps\n\nFlip once.\n"
    with pytest.raises(Invalid, match="serves"):
        memory.remember("dish", "waffles", "Hot iron.")
    with pytest.raises(TemplateFailed, match="serves"):
        memory.remember("dish", "waffles", {})


@pytest.mark.parametrize(
    ("kind", "value", "options", "told"),
    [
        ("idea", "x", {}, "nothing is remembered as 'idea'"),
        ("rule", "x", {}, "nothing is remembered as 'rule'"),
        ("dish", 5, {}, "value is a text here"),
        ("dish", "x", {"why": "so"}, "why is for preference, not for dish"),
        ("dish", "x", {"base": "12345678"}, "a dish entry is added whatever else"),
        ("note", {"title": "x"}, {}, "value is a text here"),
        ("working", "x", {"resource": "r"}, "of a thread or of a resource"),
    ],
)
def test_what_a_kind_does_not_take_is_refused(
    memory: Memory, kind: str, value: Any, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(Usage, match=told):
        memory.remember(kind, "a", value, **options)
    assert memory.ls() == []


def test_a_context_has_a_part_of_the_kind_from_every_layer_without_what_has_expired(tmp_path: Path) -> None:
    memory = vault(tmp_path)
    memory.new("dish", "pancakes", {"serves": 4})
    memory.write("dishes/old.md", "---\nserves: 1\nexpires: 2020-01-01\n---\nOld.\n")
    memory.write("notes/pin.md", "---\ntier: pinned\n---\nKey.\n")
    memory.set("dishes/pancakes.md", {"tier": "pinned"})
    memory.write("rules/a.md", "Be kind.\n")
    found = memory.context(estimated=True)
    assert [(part.name, part.title) for part in found.parts] == [
        ("rules", "Rules"),
        ("dishes", "Dishes"),
        ("pinned", "Pinned"),
    ]
    assert [part.places for part in found.parts[1:]] == [("dishes/pancakes.md#L7",), ("notes/pin.md#L4",)]
    bound = mdmem.open(memory.vault.root, Scope(user="alice"))
    bound.remember("dish", "waffles", {"serves": 1})
    places = {part.name: part.places for part in bound.context(estimated=True).parts}
    assert places["dishes"] == ("shared:dishes/pancakes.md#L7", "dishes/waffles.md#L6")


def test_a_context_reads_no_more_of_a_kind_than_fifty_and_says_so(memory: Memory) -> None:
    folder = Path(memory.vault.root, "dishes")
    folder.mkdir()
    for number in range(53):
        (folder / f"{number}.md").write_text("---\nserves: 1\n---\nx\n", encoding="utf-8")
    found = memory.context(estimated=True)
    assert [len(part.places) for part in found.parts] == [50]
    assert [each.line for each in found.left_out] == [
        "dishes: dishes/, 3 older ones were not looked at: search for them"
    ]


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (DISH.replace('schema = "dish"', 'schema = "meal"'), "schema: there is no schema 'meal'"),
        (DISH.replace('schema = "dish"', ""), "there is a schema 'dish' as well"),
        (DISH.replace('template = "dish"', 'template = "meal"'), "template: there is no template 'meal'"),
        (DISH.replace('template = "dish"', ""), "there is a template 'dish' as well"),
        ('[kinds.daily]\nfolder = "days"\ntemplate = "dish"', "there is a template 'daily' as well"),
    ],
)
def test_the_name_of_a_schema_or_template_that_is_not_that_of_the_kind_is_refused(
    tmp_path: Path, config: str, told: str
) -> None:
    memory = vault(tmp_path, config)
    assert [told in finding.message for finding in memory.doctor().findings] == [True]
    with pytest.raises(ConfigInvalid, match=told):
        memory.new("dish", "a", {"serves": 1})
