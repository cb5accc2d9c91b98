"""Schemas: which one a memory follows, every violation with its place, and what is wrong with a schema."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from itertools import islice, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator

from mdmem.document.document import Document, parse_text
from mdmem.document.text.regex import MOST_SECONDS, Allowance
from mdmem.errors import DocumentRefused, NamedNotFound, PatternInvalid
from mdmem.vault.builtin import builtin_folder
from mdmem.vault.schema import SchemaInfo, Schemas, formats, meter, validator, violation
from mdmem.vault.schema.catalog import Catalog
from mdmem.vault.schema.lint import inspect
from mdmem.vault.schema.meter import Meter, Unchecked
from mdmem.vault.schema.schemas import _is_certain
from tests import speed
from tests.speed import examples, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from mdmem.diagnostic import Diagnostic

DATA = Path(__file__).parents[2] / "data" / "schema"
BUILTIN = sorted(file.removesuffix(".json") for file in os.listdir(builtin_folder("schemas")))


def memory(text: str, path: str = "notes/a.md") -> Document:
    return parse_text(path, text)


def with_fields(fields: Any, body: str = "") -> Document:
    return memory(f"---\n{fields}\n---\n{body}")


def findings(schema: Any, document: Any, **others: Any) -> list[Diagnostic]:
    """What a schema named `own` finds in a document, as (line, column, code)."""
    own = {"own": json.dumps(schema), **{name: json.dumps(each) for name, each in others.items()}}
    return Schemas({**own, "note": own["own"]}).check(document)


def a(rule: Any) -> Any:
    """A schema whose field `a` follows this."""
    return {"properties": {"a": rule}}


def places(found: Any) -> list[tuple[int, int, str]]:
    return [(each.position.line, each.position.column, each.code) for each in found]


def lint(schema: Any, **others: Any) -> list[Diagnostic]:
    texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in others.items()}
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return Schemas({"own": text, **texts}).lint()


# ------------------------------------------------------------------------------------------------ built-in


@cases("name", BUILTIN)
def test_the_built_in_schemas_have_no_findings(name: str) -> None:
    assert inspect(Catalog({}), name) == []


def test_a_built_in_schema_that_an_own_one_breaks_is_found() -> None:
    found = Schemas({"memory": "{}"}).lint()
    assert ("schemas/preference.json", "schema-ref") in {(each.path, each.code) for each in found}


def test_the_built_in_schemas_are_listed_with_their_titles() -> None:
    names = Schemas({}).names()
    assert [info.name for info in names] == BUILTIN
    assert all(info.builtin and info.title for info in names)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 10**20)
    | st.floats()
    | st.sampled_from(["", "a", "open", "2024-01-31", "2024-01-31T12:30Z", "2024-02-30", "1:2"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ids", "type", "x"]), inner),
    max_leaves=4,
)
NAMED = sorted(
    {
        "own",
        *(
            field
            for name in BUILTIN
            for field in Schemas({}).fields(parse_text(f"{name}/a.md", f"---\ntype: {name}\n---\n"))
        ),
    }
)


@given(st.sampled_from(BUILTIN), st.dictionaries(st.sampled_from(NAMED), VALUES, max_size=4) | VALUES)
@settings(max_examples=examples(300), deadline=None)
def test_what_is_certainly_sound_by_a_built_in_schema_has_no_error(name: str, value: Any) -> None:
    """And of its examples, jsonschema has to judge none."""
    catalog = Catalog({})
    errors = validator.find_errors(validator.make_validator(catalog, name), value, Meter())
    assert not (_is_certain(catalog, name, name, value) and next(errors, None))
    given_there: Any = catalog.parsed(name)
    assert all(_is_certain(catalog, name, name, each) for each in given_there["examples"])


@cases("name", BUILTIN)
def test_every_built_in_field_is_described_and_its_examples_are_valid(name: str) -> None:
    schemas = Schemas({})
    schema = json.loads(schemas.show(name))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"mdmem:{name}"
    assert schema["description"]
    needed = {"value": 1} if name == "preference" else {}
    for field, rules in schema.get("properties", {}).items():
        assert rules["description"], field
        assert rules["examples"], field
        for example in rules["examples"] if field != "$schema" else []:
            text = json.dumps({**needed, field: example, "$schema": name})
            assert schemas.check(memory(text, "a.json")) == [], field
    for example in schema["examples"]:
        assert schemas.check(memory(json.dumps({**example, "$schema": name}), "a.json")) == []


@cases(
    "text",
    [
        *("", "# Just a heading\n", "\ufefftext", "---\n---\nbody"),
        *("---\ntags:\naliases:\ntitle:\ncreated:\n---\n", "---\ntags: one, two\naliases: other\n---\n"),
        "---\nid: 20240105\ncssclasses: [wide]\nanything: {at: all}\n---\n",
        "---\ncreated: 2024-01-05\nexpires: 2024-01-05 10:00\nvalid_to: 2024-01-05T10:00:00.5+02:00\n---\n",
        "---\nsource: https://example.com/\n---\n",
        "---\nsource: {type: conversation, ids: [a, 2]}\nderived_from: [a, b]\nsuperseded_by: c\n---\n",
    ],
)
def test_what_people_wrote_for_other_tools_is_valid(text: str) -> None:
    assert Schemas({}).check(memory(text)) == []


def test_a_rule_as_another_editor_writes_it_is_valid() -> None:
    text = (
        "---\ndescription:\nglobs: src/**/*.py, tests/**\nalwaysApply: false\npriority: 3\nenabled: no\n---\n"
    )
    found = Schemas({}).check(memory(text, "rules/python.md"))
    assert [(each.code, each.rule) for each in found] == [("schema-type", "rule:/enabled:type")]
    assert Schemas({}).check(memory(text.replace("enabled: no", "enabled: false"), "rules/python.md")) == []


def test_a_preference_needs_a_value_of_any_kind() -> None:
    schemas = Schemas({})
    for value in ("dark", "[1, {a: b}]", "null", "false"):
        assert schemas.check(memory(f"---\nvalue: {value}\n---\n", "preferences/ui/theme.md")) == []
    (found,) = schemas.check(memory("because\n", "preferences/ui/theme.md"))
    assert (found.code, found.span, found.rule) == ("schema-required", (0, 0), "preference:/value:required")
    assert found.message == "`value` is missing (schema preference)"
    assert found.hint == 'add `value`: What is preferred: any value, for example "dark"'


@pytest.mark.parametrize("text", ["[1, 2]", '"state"', "null", '{"tags": 5, "source": 1}'])
def test_the_json_state_of_a_thread_is_the_applications_own(text: str) -> None:
    assert Schemas({}).check(memory(text, "working/threads/t1.json")) == []


# ----------------------------------------------------------------------------------------------- choosing


@cases(
    "path, name",
    [
        ("a.md", "memory"),
        ("notes/a.md", "note"),
        ("notes/deep/rules/a.md", "note"),
        ("users/alice/preferences/ui/theme.md", "preference"),
        ("users/notes/rules/a.md", "rule"),
        ("projects/rules/a.md", "memory"),
        ("users/u/projects/p/resources/t/notes/working/threads/t1.json", "working"),
        ("archive/notes/a.md", "note"),
        ("AGENTS.md", "project"),
        ("projects/p/AGENTS.md", "project"),
        ("mynotes/a.md", "memory"),
        ("notes", "memory"),
    ],
)
def test_the_place_chooses_the_schema(path: str, name: str) -> None:
    assert Schemas({}).choose(Document(path=path, data=b"", text="")) == name


@cases(
    "written, name",
    [
        ("rule", "rule"),
        ("rule.json", "rule"),
        ("mdmem:rule", "rule"),
        ("../.mdmem/schemas/rule.json", "rule"),
        ("./rule", "rule"),
        ("https://example.com/rule.json", "note"),
        ("rule.yaml", "note"),
        ("https://example.com/d.json", "decision"),
        ("rule#/properties/globs", "note"),
    ],
)
def test_the_field_schema_chooses_before_the_place(written: Any, name: str) -> None:
    schemas = Schemas({"decision": '{"$id": "https://example.com/d.json"}'})
    assert schemas.choose(with_fields(f'$schema: "{written}"')) == name


def test_the_type_chooses_where_a_schema_has_its_name() -> None:
    schemas = Schemas({"decision": "{}"})
    assert schemas.choose(with_fields("type: decision")) == "decision"
    assert schemas.choose(with_fields("type: soup")) == "note"
    assert schemas.choose(with_fields("type: [decision]")) == "note"
    assert schemas.choose(with_fields("type: decision\n$schema: rule")) == "rule"


def test_an_unknown_schema_is_a_warning_with_near_names() -> None:
    (found,) = Schemas({"decision": "{}"}).check(with_fields("$schema: decison"))
    assert (found.code, found.severity, found.position) == ("schema-unknown", "warning", (2, 10))
    assert found.message == "`$schema` names no schema of the vault: decison; checked as note"
    assert found.hint == "nearest names: decision"


@pytest.mark.parametrize("foreign", ["http://json-schema.org/draft-07/schema#", "https://example.com/x.json"])
def test_a_foreign_schema_is_a_warning_and_nothing_is_fetched(
    foreign: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", None)
    (found,) = Schemas({}).check(memory(json.dumps({"$schema": foreign}), "notes/a.json"))
    assert (found.code, found.severity) == ("schema-unknown", "warning")
    assert "nothing is fetched" in found.hint


@cases(
    "path, text, is_data",
    [
        ("data/a.json", '{"tags": {"a": 1}, "created": 5, "id": []}', True),
        ("data/a.json", '{"$schema": "https://example.com/x.json", "tags": {}}', True),
        ("data/a.json", '{"$schema": "./node_modules/x/schema.json", "tags": {}}', True),
        ("data/a.json", "[1, 2]", True),
        ("data/a.json", '{"$schema": 1}', True),
        ("data/a.json", '{"$schema": "../.mdmem/schemas/note.json"}', False),
        ("data/a.json", '{"$schema": "mdmem:memory"}', False),
        ("data/a.json", '{"$schema": "memry"}', False),
        ("data/a.json", '{"$schema": "https://example.com/own"}', False),
        ("notes/a.json", "{}", False),
        ("users/u/working/threads/a.json", "{}", False),
        ("data/a.md", "---\ntags: {}\n---\n", False),
    ],
)
def test_json_that_follows_no_schema_of_the_vault_is_data(path: str, text: str, is_data: bool) -> None:
    schemas = Schemas({"own": '{"$id": "https://example.com/own"}'})
    assert schemas.is_data(memory(text, path)) is is_data
    if is_data:
        assert schemas.check(memory(text, path)) == []


@cases(
    "value",
    [
        *("{{date}}", "'{{date}}'", '"{{ title }}"', "{{date:YYYY-MM-DD}}", "{{date}}T{{time}}"),
        *("<% date %>", '<% now("YYYY") %>'),
    ],
)
def test_a_placeholder_of_a_template_counts_as_absent(value: str) -> None:
    assert Schemas({}).check(memory(f"---\ncreated: {value}\ntags: [{value}]\n---\n")) == []


# ------------------------------------------------------------------------------------- own over built-in


def test_the_vaults_own_schema_stands_over_the_built_in_one() -> None:
    own = '{"title": "Ours", "required": ["title"]}'
    schemas = Schemas({"note": own, "extra": "not JSON"})
    assert SchemaInfo("note", builtin=False, title="Ours") in schemas.names()
    assert SchemaInfo("extra", builtin=False, title="") in schemas.names()
    assert schemas.show("note") == schemas.show("mdmem:note") == own
    assert places(schemas.check(memory("text"))) == [(1, 1, "schema-required")]


def test_a_built_in_schema_refers_to_the_vaults_own() -> None:
    schemas = Schemas({"memory": '{"required": ["owner"]}'})
    assert [each.rule for each in schemas.check(memory("text"))] == ["note:/owner:required"]


def test_what_is_absent_is_refused_with_all_names_the_nearest_first() -> None:
    with pytest.raises(NamedNotFound) as refused:
        Schemas({}).show("prefrence")
    assert (refused.value.kind, refused.value.near[0]) == ("schema", "preference")
    assert sorted(refused.value.near) == sorted(info.name for info in Schemas({}).names())


def test_constructing_reads_no_schema() -> None:
    class Untouched(dict[str, str]):
        def __getitem__(self, key: str) -> str:
            raise AssertionError(key)

    assert isinstance(Schemas(Untouched(decision="{}")), Schemas)


def test_an_own_schema_that_builds_on_the_built_in_one() -> None:
    schemas = Schemas({"decision": (DATA / "decision.json").read_text()})
    assert schemas.lint() == []
    assert schemas.check(memory((DATA / "decision-good.md").read_text(), "d.md")) == []
    found = schemas.check(memory((DATA / "decision-bad.md").read_text(), "d.md"))
    assert [(*each.position, each.rule, each.message, each.hint) for each in found] == [
        (
            2,
            1,
            "decision:/status:required",
            "`status` is missing (schema decision)",
            "add `status`: How far it is",
        ),
        (
            3,
            18,
            "decision:/tags/1:type",
            "`tags.1` must be a string or empty, not a list of 1 (schema decision)",
            "accepted: a string or empty",
        ),
        (
            4,
            1,
            "decision:/statsu:unevaluatedProperties",
            "`statsu` is not a field of this schema (schema decision)",
            "did you mean `status`? otherwise remove it",
        ),
        (
            7,
            5,
            "decision:/deciders/1:pattern",
            '`deciders.1` must be a string that matches ^@[a-z]+$, not "Bob" (schema decision)',
            'accepted: a string that matches ^@[a-z]+$, for example "@ada"',
        ),
        (
            9,
            1,
            "decision:/x-body/Decision:x-body",
            "the body has no section `Decision` (schema decision)",
            "add a heading `## Decision`",
        ),
    ]


# ------------------------------------------------------------------------------------ keywords and places


@cases(
    "schema, fields, expected, says",
    [
        (a({"type": "integer"}), "a: x", "2:4 type", 'an integer, not "x"'),
        (a({"type": ["integer", "null"]}), "a: .inf", "2:4 type", "integer or empty"),
        (a({"type": "number"}), "a: .nan", "2:4 type", "not nan"),
        (a({"enum": [1, "b"]}), "a: c", "2:4 enum", 'one of 1, "b", not "c"'),
        (a({"const": True}), "a: c", "2:4 const", "be true, not"),
        (a({"const": ["b"]}), "a: [c]", "2:4 const", 'be ["b"], not ["c"]'),
        (a({"enum": [{"b": 1}]}), "a: {b: 2}", "2:4 enum", 'be {"b": 1}, not {"b": 2}'),
        (a({"minimum": 2}), "a: 1", "2:4 minimum", "at least 2"),
        (a({"maximum": 2, "minimum": 0}), "a: 3", "2:4 maximum", "at most 2"),
        (a({"exclusiveMinimum": 2}), "a: 2", "2:4 exclusiveMinimum", "more than 2"),
        (a({"exclusiveMaximum": 2}), "a: 2", "2:4 exclusiveMaximum", "less than 2"),
        (a({"multipleOf": 0.1}), "a: 0.35", "2:4 multipleOf", "multiple of 0.1"),
        (a({"minLength": 3}), "a: xy", "2:4 minLength", "at least 3 characters"),
        (a({"maxLength": 1}), "a: xy", "2:4 maxLength", "at most 1 characters"),
        (a({"pattern": "^[a-z]+$"}), 'a: "ab\\n"', "2:4 pattern", "^[a-z]+$"),
        (a({"format": "email"}), "a: xy", "2:4 format", "an e-mail address"),
        (a({"minItems": 2}), "a: [1]", "2:4 minItems", "a list of at least 2 items"),
        (a({"maxItems": 0}), "a: [1]", "2:4 maxItems", "not a list of 1"),
        (a({"uniqueItems": True}), "a: [1, 1]", "2:4 uniqueItems", "repeated"),
        (a({"contains": {"const": 2}}), "a: [1]", "2:4 contains", "fits"),
        (
            a({"contains": {"const": 1}, "maxContains": 1}),
            "a: [1, 1]",
            "2:4 maxContains",
            "at most 1 items that fit",
        ),
        (a({"prefixItems": [True], "items": False}), "a: [1, 2]", "2:4 items", "at most 1 items"),
        (a({"items": {"type": "string"}}), "a:\n- x\n- 1", "4:3 type", "`a.1`"),
        (a({"prefixItems": [{"const": 1}]}), "a: [2]", "2:5 const", "`a.0`"),
        (a({"unevaluatedItems": False}), "a: [2]", "2:4 unevaluatedItems", "no more"),
        ({"required": ["b"]}, "a: 1", "2:1 required", "`b` is missing"),
        (a({"required": ["b.c"]}), "x: 1\na:\n  y: 1", "4:3 required", "`a.b\\.c` is missing"),
        ({"dependentRequired": {"a": ["b"]}}, "a: 1", "2:1 dependentRequired", "`b` is missing"),
        ({"dependentSchemas": {"a": {"required": ["c"]}}}, "a: 1", "2:1 required", "`c` is missing"),
        (
            {"properties": {"b": True}, "additionalProperties": False},
            'b: 1\n"a": 1',
            "3:1 additionalProperties",
            "`a` is not a field",
        ),
        ({"additionalProperties": {"type": "string"}}, "a: 1", "2:4 type", "`a` must be a string"),
        ({"unevaluatedProperties": {"type": "string"}}, "a: 1", "2:4 type", "`a` must be a string"),
        (
            {"allOf": [{"properties": {"b": True}}], "unevaluatedProperties": False},
            "b: 1\na: 1",
            "3:1 unevaluatedProperties",
            "`a` is not a field",
        ),
        ({"propertyNames": {"maxLength": 1}}, "b: 1\nabc: 1", "3:1 propertyNames", "the key `abc` must be"),
        ({"patternProperties": {"^x": {"type": "null"}}}, "xa: 1", "2:5 type", "must be empty, not 1"),
        ({"properties": {"a": False}}, "b: 1\na: 1", "3:1 false", "`a` is not allowed"),
        ({"minProperties": 2}, "a: 1", "2:1 minProperties", "the frontmatter must be a mapping"),
        ({"maxProperties": 0}, "a: 1", "2:1 maxProperties", "at most 0 fields"),
        (a({"not": {"const": 1}}), "a: 1", "2:4 not", "rules this value out"),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, "a: 1", "2:1 required", "`b`"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"required": ["b"]}}}, "a: 1", "2:1 required", "`b`"),
        ({"type": "array"}, "a: 1", "2:1 type", "the frontmatter must be a list"),
        ({"x-body": {"sections": ["A"]}}, "a: 1", "4:1 body", "no section `A`"),
        (a({"properties": {"b": {"type": "null"}}}), "a: {b: &x 1}", "2:8 type", "a.b"),
        ({"properties": {"b": {"items": {"const": 0}}}}, "a: &x [1]\nb: *x", "3:4 const", "`b.0`"),
    ],
)
def test_a_violation_stands_where_it_is_written(schema: Any, fields: Any, expected: Any, says: Any) -> None:
    (found,) = findings(schema, with_fields(fields, "text"))
    assert f"{found.position.line}:{found.position.column} {found.code}" == expected.replace(" ", " schema-")
    assert says in found.message
    assert found.message.endswith(" (schema note)")
    assert found.hint
    assert found.severity == "error"
    assert found.rule.startswith("note:")


def test_a_decimal_multiple_is_one_as_it_is_written() -> None:
    assert findings(a({"multipleOf": 0.1}), with_fields("a: 0.3")) == []
    assert findings(a({"multipleOf": 3}), with_fields(f"a: 0x{'f' * 4000}")) == []


@pytest.mark.parametrize("value", ["[1, true]", "[0, false]", "[[1], [true]]", "[{x: 1}, {x: true}]"])
def test_a_boolean_repeats_no_number(value: str) -> None:
    assert findings(a({"uniqueItems": True}), with_fields(f"a: {value}")) == []


def test_every_violation_is_told_in_the_order_of_the_text() -> None:
    schema = {
        "properties": {"a": {"type": "null", "minLength": 9}, "b": {"const": 1}},
        "required": ["c", "d"],
    }
    found = findings(schema, with_fields("b: 2\na: x"))
    assert places(found) == [
        (2, 1, "schema-required"),
        (2, 1, "schema-required"),
        (2, 4, "schema-const"),
        (3, 4, "schema-minLength"),
        (3, 4, "schema-type"),
    ]
    assert [each.rule for each in found[:2]] == ["note:/c:required", "note:/d:required"]


def test_the_same_violation_by_two_ways_is_told_once() -> None:
    schema = {"allOf": [{"required": ["a"]}, {"required": ["a"]}]}
    assert places(findings(schema, memory("text"))) == [(1, 1, "schema-required")]


def test_the_rule_of_a_finding_stays_when_the_lines_around_it_move() -> None:
    schema = {"properties": {"a/b": {"items": {"type": "string"}}}}
    before = findings(schema, with_fields("a/b: [1]"))
    after = findings(schema, with_fields("more: x\na/b:\n  - 2", "body"))
    assert [each.rule for each in before] == [each.rule for each in after] == ["note:/a~1b/0:type"]


def test_what_is_missing_without_frontmatter_stands_where_the_body_begins() -> None:
    assert places(findings({"required": ["a"]}, memory("\ufefftext"))) == [(1, 2, "schema-required")]
    assert places(findings({"required": ["a"]}, memory("---\n---\ntext"))) == [(1, 1, "schema-required")]


def test_what_cannot_be_read_is_not_told_again_by_the_schema() -> None:
    assert places(findings({"required": ["a"]}, memory("---\na: [\n---\n"))) == [(3, 1, "invalid-yaml")]
    assert places(findings({"required": ["a"]}, memory("{", "notes/a.json"))) == [(1, 2, "invalid-json")]


# ------------------------------------------------------------------------------------------- alternatives


@cases(
    "alternatives, value, expected, says",
    [
        (
            [{"type": "string"}, {"type": "array"}],
            "5",
            "schema-type",
            "`a` must be a string or a list, not 5",
        ),
        (
            [{"type": "string"}, {"items": {"type": "string"}, "type": "array"}],
            "[1]",
            "schema-type",
            "`a.0` must",
        ),
        ([{"format": "date"}, {"format": "date-time"}], "soon", "schema-format", "or a date with a time"),
        ([{"enum": ["x"]}, {"pattern": "^[0-9]$"}], "y", "schema-anyOf", 'be "x" or a string that matches'),
        (
            [
                {"properties": {"kind": {"const": "p"}}},
                {"properties": {"kind": {"const": "q"}, "n": {"type": "integer"}}, "required": ["m"]},
            ],
            "{kind: q, n: x}",
            "schema-type",
            "`a.n` must be an integer",
        ),
        (
            [{"anyOf": [{"type": "null"}, {"type": "boolean"}]}, {"type": "array"}],
            "5",
            "schema-type",
            "empty or true",
        ),
        ([False, {"type": "null"}], "5", "schema-false", "`a` is not allowed"),
    ],
)
def test_of_alternatives_the_one_that_was_meant_is_told(
    alternatives: Any, value: Any, expected: Any, says: Any
) -> None:
    for keyword in ("anyOf", "oneOf"):
        found = findings(a({keyword: alternatives}), with_fields(f"a: {value}"))
        codes = [each.code.replace("oneOf", "anyOf") for each in found]
        assert expected in codes
        assert any(says in each.message for each in found)
        assert not any("given schemas" in each.message for each in found)


def test_more_than_one_alternative_is_told_as_such() -> None:
    (found,) = findings(a({"oneOf": [{"minimum": 0}, {"minimum": 1}]}), with_fields("a: 5"))
    assert found.code == "schema-oneOf"
    assert "several fit" in found.message


# ------------------------------------------------------------------------------------------------ x-body


def test_sections_are_found_whatever_their_case_and_level() -> None:
    schema = {"x-body": {"sections": ["Open  questions", "Why"]}}
    assert findings(schema, with_fields("a: 1", "### open questions ###\n\nWHY\n===\n")) == []
    assert (
        findings(schema, memory("# Open questions\n```\n# Why\n```\n"))[0].rule == "note:/x-body/Why:x-body"
    )


def test_the_body_is_bounded_in_bytes() -> None:
    schema = {"x-body": {"maxBytes": 4}}
    assert findings(schema, with_fields("a: 1", "éé")) == []
    (found,) = findings(schema, with_fields("a: 1", "ééx"))
    assert found.message == "the body has 5 bytes; the most is 4 (schema note)"
    assert (found.code, found.position) == ("schema-body", (4, 1))


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "base.json"}]},
        {"$ref": "mdmem:base"},
        {"if": True, "then": {"$ref": "./base.json#/$defs/part"}},
        {"anyOf": [{"$ref": "base"}]},
    ],
)
def test_the_body_is_checked_however_the_keyword_is_reached(schema: Any) -> None:
    wanted = {"x-body": {"sections": ["Why"]}}
    found = findings(schema, memory("text"), base={**wanted, "$defs": {"part": wanted}})
    assert places(found) == [(1, 1, "schema-body")]


def test_the_body_keyword_says_nothing_about_json() -> None:
    assert findings({"x-body": {"sections": ["Why"]}}, memory("{}", "notes/a.json")) == []


def test_a_schema_of_a_string_is_about_the_body() -> None:
    schema = {"type": "string", "maxLength": 3, "x-body": {"sections": ["A"]}}
    found = findings(schema, with_fields("any: 1", "text"))
    assert places(found) == [(4, 1, "schema-body"), (4, 1, "schema-maxLength")]
    assert found[1].message.startswith("the body must be a string of at most 3 characters")
    assert findings({"type": "string", "maxLength": 4}, with_fields("any: 1", "text")) == []


# ---------------------------------------------------------------------------------------------- JSON


def test_a_json_memory_is_checked_whole() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    (found,) = findings(schema, memory('{"a": [1,\n "x"]}', "notes/a.json"))
    assert (*found.position, found.code) == (2, 2, "schema-type")
    (found,) = findings(schema, memory("[]", "notes/a.json"))
    assert found.message == "the value must be a mapping, not a list of 0 (schema note)"


def test_bookkeeping_keys_are_taken_out_before_the_schema_looks() -> None:
    closed = {"properties": {"a": True}, "additionalProperties": False}
    text = '{"$schema": "own", "expires": "2025-01-01", "a": 1}'
    assert findings(closed, memory(text, "x.json")) == []
    assert findings(closed, with_fields("$schema: own\na: 1")) == []
    assert places(findings(closed, with_fields("expires: 2025-01-01"))) == [
        (2, 1, "schema-additionalProperties")
    ]


def test_bookkeeping_that_is_taken_out_must_still_be_right() -> None:
    closed = {"additionalProperties": False}
    (found,) = findings(closed, memory('{"expires": "soon"}', "notes/x.json"))
    assert (found.code, found.rule, found.position) == ("schema-format", "note:/expires:format", (1, 13))


@pytest.mark.parametrize(
    "schema",
    [{"properties": {"expires": {"const": "never"}}}, {"allOf": [{"$ref": "base"}]}, {"$ref": "base"}],
)
def test_bookkeeping_that_the_schema_declares_is_checked_by_it(schema: Any) -> None:
    base = {"properties": {"expires": {"const": "never"}}}
    assert findings(schema, memory('{"expires": "never"}', "notes/x.json"), base=base) == []
    found = findings(schema, memory('{"expires": "2025-01-01"}', "notes/x.json"), base=base)
    assert places(found) == [(1, 13, "schema-const")]


# ------------------------------------------------------------------------------------------- unevaluated


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
@cases(
    "rest",
    [
        {"patternProperties": {"^(a|aa)+$": True}},
        {"$ref": "base"},
        {"allOf": [{"anyOf": [{"$ref": "mdmem:base.json#/$defs/x"}]}]},
        {"$ref": "between"},
        {"if": True, "then": {"dependentSchemas": {"a": {"$ref": "./base"}}}},
        {"$ref": "#/properties/k/$defs/y", "$defs": {"y": {"patternProperties": {}}}},
    ],
)
def test_unevaluated_keywords_are_refused_by_name_where_a_pattern_can_be_reached(
    keyword: str, rest: Any
) -> None:
    """jsonschema's own run patterns by `re`, which cannot be stopped."""
    base = {"$defs": {"x": {"patternProperties": {"^(a|aa)+$": True}}}, "$ref": "#/$defs/x"}
    schema = {"properties": {"k": {keyword: False, **rest}}}
    (found,) = lint(schema, base=base, between={"allOf": [{"$ref": "base"}]})
    assert (found.code, f"`{keyword}` cannot be used" in found.message) == ("schema-unevaluated", True)
    assert "`patternProperties`" in found.message


def test_each_key_that_no_schema_describes_is_told_with_its_place() -> None:
    schema = {
        "$ref": "base",
        "allOf": [{"if": {"required": ["a"]}, "then": {"properties": {"b": True}}}],
        "unevaluatedProperties": False,
    }
    base = {"properties": {"a": {"properties": {"c": True}, "unevaluatedProperties": {"type": "null"}}}}
    found = findings(schema, with_fields("a: {c: 1, d: 2}\nb: 1\nc: 1\nd: 1"), base=base)
    closed = "schema-unevaluatedProperties"
    assert places(found) == [(2, 14, "schema-type"), (4, 1, closed), (5, 1, closed)]


# ------------------------------------------------------------------------------------------ broken schemas

BROKEN = [
    ("{", "invalid-json"),
    ("[]", "schema-invalid"),
    ({"type": "text"}, "schema-invalid"),
    ({"properties": 5}, "schema-invalid"),
    ({"required": [1]}, "schema-invalid"),
    ({"$ref": "nowhere"}, "schema-ref"),
    ({"$ref": "https://example.com/schema.json"}, "schema-ref"),
    ({"$ref": "http://[bad"}, "schema-ref"),
    ({"$ref": "memory#/$defs/nothing"}, "schema-ref"),
    ({"$ref": "#nothing"}, "schema-ref"),
    ({"$ref": "#/title", "title": "x"}, "schema-ref"),
    (a({"$ref": "file:///etc/passwd"}), "schema-ref"),
    (a({"pattern": "["}), "schema-pattern"),
    (a({"pattern": "a" * 10_001}), "schema-pattern"),
    ({"patternProperties": {"(?<x>a": True}}, "schema-pattern"),
    ({"x-body": ["Why"]}, "schema-invalid"),
    ({"allOf": [{"x-body": {"sections": "Why"}}]}, "schema-invalid"),
    ({"x-body": {"sections": [" "]}}, "schema-invalid"),
    ({"x-body": {"maxBytes": True}}, "schema-invalid"),
    ({"x-body": {"headings": []}}, "schema-invalid"),
    ({"$schema": "http://json-schema.org/draft-07/schema#"}, "schema-dialect"),
    ({"items": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}, "schema-dialect"),
    ({"items": {"$id": "http://[bad"}}, "schema-dialect"),
    ({"items": {"$id": "inner"}}, "schema-dialect"),
    ({"$ref": "#/minimum/x", "minimum": 1}, "schema-ref"),
    ({"unevaluatedProperties": False, "patternProperties": {"^a": True}}, "schema-unevaluated"),
    ({"unevaluatedItems": False, "items": {"patternProperties": {}}}, "schema-unevaluated"),
    ({"unevaluatedProperties": False, "$dynamicRef": "#"}, "schema-unevaluated"),
    ({"$ref": "#"}, "schema-endless"),
    ('{"a": ' * 200 + "1" + "}" * 200, "too-nested"),
    ("[" * 100_000, "too-nested"),
    ('{"title": "\0"}', "binary"),
    ('{"title": "a", "title": "b"}', "duplicate-key"),
]


@cases("schema, code", BROKEN)
def test_what_is_wrong_with_a_schema_is_told_and_the_memory_is_not_checked_by_it(
    schema: Any, code: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", None)
    found = lint(schema)
    assert {each.code for each in found} == {code}
    assert {each.path for each in found} == {".mdmem/schemas/own.json"}
    assert {each.severity for each in found} == {"error"}
    text = schema if isinstance(schema, str) else json.dumps(schema)
    (broken,) = Schemas({"own": text}).check(with_fields("$schema: own\nexpires: x"))
    assert (broken.code, broken.severity) == ("schema-broken", "error")
    assert ".mdmem/schemas/own.json:" in broken.message


def test_a_fault_of_a_schema_stands_where_it_is_written() -> None:
    text = '{\n "properties": {\n  "a": {"$ref": "nowhere"},\n  "b": {"type": 5}\n }\n}'
    assert places(lint(text)) == [(4, 17, "schema-invalid")]
    (found,) = lint(text.replace("5", '"null"'))
    assert (*found.position, found.code) == (3, 17, "schema-ref")
    assert "memory, note, observation, own" in found.hint


def test_an_unknown_format_is_a_warning_and_the_schema_is_used() -> None:
    schema = a({"format": "colour", "type": "string"})
    (found,) = lint(schema)
    assert (found.code, found.severity) == ("schema-format-unknown", "warning")
    assert places(findings(schema, with_fields("a: 1"))) == [(2, 4, "schema-type")]


def test_a_schema_that_refers_to_a_broken_one_is_broken_too() -> None:
    found = findings({"$ref": "base"}, memory("text"), base={"type": "text"})
    assert places(found) == [(1, 1, "schema-broken")]
    assert "`$ref` leads nowhere: base (.mdmem/schemas/note.json:1)" in found[0].message


@pytest.mark.parametrize("broken", ["{", '{"properties": 5}', '{"$defs": {}}'])
def test_a_broken_schema_over_a_built_in_one_breaks_what_refers_to_it(broken: Any) -> None:
    for document in (memory("text"), memory('{"expires": 1}', "working/threads/a.json")):
        codes = {each.code for each in Schemas({"memory": broken}).check(document)}
        assert codes <= {"schema-broken"}
    assert Schemas({"memory": broken}).check(memory("{}", "working/threads/a.json"))


def test_a_recursive_schema_is_fine() -> None:
    schema = {"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert lint(schema) == []
    assert findings(schema, with_fields("child: {child: {n: 1}}")) == []
    assert places(findings(schema, with_fields("child: {child: {n: x}}"))) == [(2, 20, "schema-type")]


def test_schemas_may_refer_to_each_other_in_a_circle() -> None:
    own, base = (a({"$ref": "base"}), {"properties": {"b": {"$ref": "own"}, "c": {"type": "null"}}})
    assert lint(own, base=base) == []
    assert places(findings(own, with_fields("a: {b: {a: {c: 1}}}"), base=base)) == [(2, 16, "schema-type")]


def test_an_id_of_its_own_does_not_hinder_references_by_name() -> None:
    base = {"$id": "https://example.com/base.json", "$defs": {"x": {"type": "null"}}}
    own = {"$id": "https://example.com/own", "properties": {"a": {"$ref": "base.json#/$defs/x"}}}
    absolute = a({"$ref": "https://example.com/base.json#/$defs/x"})
    for schema in (own, absolute):
        assert lint(schema, base=base) == []
        assert places(findings(schema, with_fields("a: 1"), base=base)) == [(2, 4, "schema-type")]


def test_the_metaschema_is_at_hand_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    schema = a({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert lint(schema) == []
    assert [each.code for each in findings(schema, with_fields("a: {minLength: x}"))] == ["schema-type"]


@cases(
    "reference, value, expected",
    [
        ("schema", {"type": "string", "properties": {"a": {"minimum": 3}}}, []),
        ("schema", {"properties": {"a": {"minimum": "x"}}}, ["schema-type"]),
        ("schema", {"$defs": {"a": {"type": "text"}}}, ["schema-anyOf"]),
        ("meta/validation", {"minLength": "x"}, ["schema-type"]),
        ("meta/applicator", {"not": {"items": 5}}, ["schema-type"]),
        ("meta/core", {"minLength": "x"}, []),
    ],
)
def test_a_value_is_checked_by_the_metaschema_at_the_top(
    reference: str, value: dict[str, Any], expected: list[str]
) -> None:
    schema = {"$ref": f"https://json-schema.org/draft/2020-12/{reference}"}
    assert lint(schema) == []
    found = Schemas({"own": json.dumps(schema)}).check(memory(json.dumps(value), "a.json"), "own")
    assert [each.code for each in found] == expected


def test_an_unknown_keyword_is_a_warning_and_the_schema_is_used() -> None:
    schema = a({"type": "string", "maxlength": 3, "x-mine": 1, "$comment": "", "nullable": True})
    first, second = lint(schema)
    assert (first.code, first.severity) == ("schema-keyword", "warning")
    assert first.hint == "did you mean `maxLength`?"
    assert "`nullable`" in second.message
    assert places(findings(schema, with_fields("a: 1"))) == [(2, 4, "schema-type")]
    (found,) = lint('{\n "propertis": {}\n}')
    assert (found.position, found.hint) == ((2, 15), "did you mean `properties`?")
    assert len(lint({f"key{number}": 1 for number in range(3000)})) == 50


def test_a_schema_that_goes_round_in_a_circle_for_a_value_is_a_finding() -> None:
    loop = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}}
    assert findings(loop, with_fields("b: 1")) == []
    assert places(findings(loop, with_fields("a: 1"))) == [(2, 1, "schema-unchecked")]


def test_a_schema_that_is_true_or_false() -> None:
    assert findings(True, with_fields("a: 1")) == []  # noqa: FBT003 - the schema
    assert places(findings(False, with_fields("a: 1"))) == [(2, 1, "schema-false")]  # noqa: FBT003 - the schema


# ------------------------------------------------------------------------------------------- odd values


def test_a_very_large_number_is_not_written_out() -> None:
    (found,) = findings(a({"type": "string"}), with_fields(f"a: {'9' * 3000}"))
    assert "not a very large number" in found.message


def test_a_schema_with_a_number_without_bound_is_a_finding() -> None:
    own = Schemas({"note": '{"properties": {"a": {"multipleOf": 1e999}}}'})
    assert [each.code for each in own.check(with_fields("a: 1"))] == ["schema-broken"]


def test_control_characters_are_escaped_in_messages() -> None:
    schema = {"properties": {"a": {"enum": ["b"]}}, "additionalProperties": False}
    found = findings(schema, memory('{"a": "\\ud800\\u0007", "\\u2028": 1}', "notes/a.json"))
    assert all(each.message.isprintable() for each in found)
    assert any('\\x07"' in each.message for each in found)
    assert any("`\\u2028`" in each.message for each in found)
    assert Schemas({}).check(memory('{"$schema": "\\u0007"}', "a.json"))[-1].message.isprintable()


def test_lone_surrogates_are_escaped() -> None:
    assert violation.show("\ud800é") == '"\\ud800é"'
    assert violation.show("x" * 100) == f'"{"x" * 60}…"'


@cases(
    "value, shown",
    [
        (".nan", "nan"),
        ("-.inf", "-inf"),
        ("~", "empty"),
        ("0o7", "7"),
        ("!!str 5", '"5"'),
        ("{1: 2}", '{"1": 2}'),
        ("[[], [[]]]", "[[], [[]]]"),
        ("1e400", "inf"),
        ("!!binary aGk=", '"aGk="'),
    ],
)
def test_values_that_json_does_not_have_are_found_like_others(value: str, shown: str) -> None:
    schema = a(
        {
            "multipleOf": 0.5,
            "minimum": 1,
            "enum": [1, {"x": [1]}],
            "uniqueItems": True,
            "format": "date",
            "pattern": "^a$",
        }
    )
    found = [each for each in findings(schema, with_fields(f"a: {value}")) if each.code == "schema-enum"]
    accepted = '1, {"x": [1]}'
    assert [each.message for each in found] == [f"`a` must be one of {accepted}, not {shown} (schema note)"]


# ------------------------------------------------------------------------------------ formats and patterns


@cases(
    "name, good, bad",
    [
        (
            "date",
            ["2024-02-29"],
            ["2023-02-29", "2024-2-1", "20240201", "2024-02-01T10:00", "٢٠٢٤-01-01", ""],
        ),
        (
            "date-time",
            ["2024-01-31T12:30:00Z", "2024-01-31t12:30:60.25+02:00"],
            ["2024-01-31", "2024-13-01T10:00"],
        ),
        ("date-time", ["2024-01-31 12:30", "2024-01-31T12:30:00"], ["2024-01-31T25:00:00Z"]),
        ("date-time", [], ["2024-01-31T12:30:00 Z", "2024-01-31T12:30:00+2"]),
        ("time", ["12:30", "12:30:00Z", "23:59:60"], ["24:00", "1:00", "12:30:00.", "12:30\n"]),
        ("duration", ["P1D", "PT5M", "P3W", "P1Y2M3DT4H5M6S"], ["P", "PT", "1D", "P1W2D", "P1H"]),
        ("email", ["a.b+c@example.com"], ["a@", "@b", "a b@c.d", "a@b@c", "é@example.com", "a@-b.c"]),
        ("hostname", ["example.com", "a-b.c"], ["-a.b", "a..b", "a_b", "a" * 64, ".".join(["a" * 60] * 5)]),
        ("ipv4", ["192.0.2.1"], ["192.0.2", "192.0.2.256", "192.0.2.01"]),
        ("ipv6", ["2001:db8::1", "::"], ["2001:db8", "fe80::1%eth0", ":::"]),
        (
            "uri",
            ["https://example.com/a?b#c", "urn:x:y"],
            ["example.com", "https://é.com", "http://[a", "a:%zz"],
        ),
        ("uri-reference", ["../a", "#x", ""], ["a b", "a\\b"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000", "g" * 36]),
        ("regex", ["^a+$", "(a+)+", "(?<n>a)"], ["[", "(", "a" * 10_001, "(" * 5_000]),
    ],
)
def test_a_format_accepts_what_it_names(name: str, good: Any, bad: Any) -> None:
    accepts = formats.FORMATS[name].accepts
    assert [each for each in good if not accepts(each)] == []
    assert [each for each in bad if accepts(each)] == []


def test_each_format_names_an_example_that_it_accepts() -> None:
    for each in formats.FORMATS.values():
        _, such_as, example = each.means.partition(" such as ")
        assert not such_as or each.accepts(example)


@given(st.sampled_from(sorted(formats.FORMATS)), st.text())
@settings(max_examples=examples(1000))
def test_no_text_upsets_a_format(name: str, text: str) -> None:
    assert formats.FORMATS[name].accepts(text) in (True, False)


def matches(pattern: str, text: str) -> bool:
    return Allowance().matches(formats.expression(pattern), text)


def test_the_end_in_a_pattern_is_the_end_of_the_text() -> None:
    assert matches("^a$", "a")
    assert not matches("^a$", "a\n")
    assert matches("^[$]\\$$", "$$")


@given(st.text(alphabet="ab()[]{}|*+?^$\\.,123:=!<>P#-"))
@settings(max_examples=examples(1000))
def test_any_text_as_a_pattern_has_a_fault_or_can_be_used(text: str) -> None:
    with contextlib.suppress(PatternInvalid):
        assert matches(text, "ab") in {True, False}


# --------------------------------------------------------------------------------------------- properties

YAML = st.recursive(
    st.sampled_from(
        ["x", "1", "-2.5", ".nan", "true", "~", '"\\ud83d"', "2024-01-05", "''", "*a", "&a b", "!!int x"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
        | st.lists(st.tuples(st.sampled_from(["type", "ids", "a", "1"]), inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=6,
)
FIELDS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("$schema", "id", "type", "tags", "created", "expires", "source", "confidence", "value"),
                *("globs", "status"),
            ]
        ),
        YAML,
    ),
    max_size=5,
)
STRICT = Schemas({"decision": (DATA / "decision.json").read_text(), "true": "true"})


def checked(path: str, text: str) -> list[Diagnostic]:
    try:
        found = STRICT.check(parse_text(path, text))
    except DocumentRefused:
        return []
    for each in found:
        assert 0 <= each.span.start <= each.span.end <= len(text)
        each.message.encode()
        each.hint.encode()
    spans = [each.span for each in found]
    assert spans == sorted(spans)
    return found


PATHS = st.sampled_from(["notes/a", "preferences/a/b", "working/threads/a", "rules/a", "AGENTS", "a"])


@given(PATHS, st.text())
@settings(max_examples=examples(300))
def test_no_text_upsets_the_check(path: str, text: str) -> None:
    texts = {f"{path}.md": [text, f"---\n{text}\n---\n{text}"], f"{path}.json": [text]}
    for name, contents in texts.items():
        assert all(found.path == name for content in contents for found in checked(name, content))


@given(PATHS, FIELDS)
@settings(max_examples=examples(100))
def test_no_fields_upset_the_check(path: str, pairs: Any) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in pairs)
    found = checked(f"{path}.md", f"---\n{text}---\n")
    again = checked(f"{path}.md", f"---\n# moved\n{text}---\nmore\n")
    if not any(each.code.startswith("invalid") for each in found):
        assert sorted((e.code, e.rule) for e in found) == sorted((e.code, e.rule) for e in again)
    checked(f"{path}.md", f"---\n$schema: decision\n{text}---\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tags", "expires", "$schema", "type", "source", "a"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(PATHS, JSON)
@settings(max_examples=examples(200))
def test_no_json_upsets_the_check(path: str, value: Any) -> None:
    assert all(found.path == f"{path}.json" for found in checked(f"{path}.json", json.dumps(value)))


SCHEMAS = st.recursive(
    st.booleans()
    | st.sampled_from(
        [{"type": "string"}, {"const": 1}, {"format": "date"}, {"$ref": "#"}, {"$ref": "memory"}, {}]
    ),
    lambda inner: (
        st.dictionaries(
            st.sampled_from(
                ["items", "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties"]
            ),
            inner,
            max_size=2,
        )
        | st.dictionaries(
            st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)
        )
        | st.dictionaries(
            st.sampled_from(["properties", "$defs"]), st.dictionaries(st.sampled_from("ab"), inner)
        )
    ),
    max_leaves=8,
)


@given(SCHEMAS, JSON)
@settings(max_examples=examples(150))
def test_no_schema_upsets_the_check(schema: Any, value: Any) -> None:
    schemas = Schemas({"own": json.dumps(schema), "a": json.dumps(value)})
    document = parse_text("a.json", json.dumps({"$schema": "own", "a": value, "b": [value]}))
    assert all(each.message for name in ("own", "a") for each in inspect(schemas._catalog, name))
    assert all(each.message for each in schemas.check(document))


# ------------------------------------------------------------------------- what jsonschema says by itself

_ONES = st.recursive(
    st.sampled_from(
        [
            *(
                {"type": name}
                for name in ("string", "integer", "number", "boolean", "array", "object", "null")
            ),
            *({"const": True}, {"enum": ["a", 0, None]}, {"pattern": "^a"}, {"minLength": 2}, {"minimum": 1}),
            *({"uniqueItems": True}, {"required": ["a"]}, {"multipleOf": 2}, {"minProperties": 1}, True, {}),
            *({"$ref": "#/$defs/x"}, {"dependentRequired": {"a": ["b"]}}, {"maxItems": 1}),
        ]
    ),
    lambda inner: st.dictionaries(
        st.sampled_from(
            [
                *("items", "contains", "additionalProperties", "not", "if", "then", "else", "propertyNames"),
                *("unevaluatedItems", "unevaluatedProperties"),
            ]
        ),
        inner | st.just(False),  # noqa: FBT003 - the schema
        max_size=2,
    ).flatmap(
        lambda one: st.tuples(
            st.just(one),
            st.dictionaries(
                st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"]),
                st.lists(inner, min_size=1, max_size=2),
                max_size=1,
            ),
            st.dictionaries(
                st.sampled_from(["properties", "patternProperties", "dependentSchemas"]),
                st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
                max_size=2,
            ),
        ).map(lambda parts: {**parts[0], **parts[1], **parts[2]})
    ),
    max_leaves=10,
)
_VALUES = st.recursive(
    st.sampled_from(["a", "ab", "", 0, 1, 2.0, 4, True, False, None]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(_ONES.filter(lambda one: one is not True), _ONES, _VALUES)
@settings(max_examples=150 if speed.is_all else 20)
def test_a_value_is_accepted_where_jsonschema_by_itself_accepts_it(own: Any, other: Any, value: Any) -> None:
    schema = {**own, "$defs": {"x": other}}
    catalog = Catalog({"own": json.dumps(schema)})
    try:
        found = list(validator.find_errors(validator.make_validator(catalog, "own"), value, Meter()))
    except Unchecked:
        return  # it refers to itself without end, at which the other one ends with whatever it meets
    assert (found == []) == Draft202012Validator(schema).is_valid(value)


# ------------------------------------------------------------------------------------------------- bounds

HOSTILE = {
    "doubled": {
        "allOf": [{"$ref": "#/$defs/d0"}],
        "$defs": {
            **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)},
            "d40": {"type": "object"},
        },
    },
    "any of": {
        "$ref": "#/$defs/d0",
        "$defs": {
            **{f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)},
            "d40": {"not": {}},
        },
    },
    "one of": {
        "$ref": "#/$defs/d0",
        "$defs": {
            **{f"d{n}": {"oneOf": [{"$ref": f"#/$defs/d{n + 1}"}, False]} for n in range(30)},
            "d30": {"oneOf": [{"$ref": "#/$defs/e0"}] * 2},
            **{f"e{n}": {"not": {"allOf": [{"$ref": f"#/$defs/e{n + 1}"}] * 2}} for n in range(30)},
            "e30": {},
        },
    },
    "unevaluated": {
        "unevaluatedProperties": False,
        "$ref": "#/$defs/d0",
        "$defs": {
            **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)},
            "d40": {"properties": {"k": True}},
        },
    },
    "unevaluated, by two ways": {
        "unevaluatedProperties": False,
        "$ref": "#/$defs/d0",
        "$defs": {
            **{
                f"d{n}": {"dependentSchemas": {key: {"$ref": f"#/$defs/d{n + 1}"} for key in "ki"}}
                for n in range(40)
            },
            "d40": {},
        },
    },
    "unevaluated, by conditions": {
        "unevaluatedProperties": False,
        "oneOf": [True, {"$ref": "#/$defs/d0"}],
        "$defs": {
            **{
                f"d{n}": {"if": True, "then": {"$ref": f"#/$defs/d{n + 1}"}, "$ref": f"#/$defs/d{n + 1}"}
                for n in range(40)
            },
            "d40": {},
        },
    },
    "unevaluated inside": {
        "unevaluatedProperties": False,
        "$ref": "#/$defs/d0",
        "$defs": {
            **{f"d{n}": {"unevaluatedProperties": {}, "$ref": f"#/$defs/d{n + 1}"} for n in range(40)},
            "d40": {},
        },
    },
    "round": {
        "unevaluatedItems": False,
        "properties": {"k": {"unevaluatedItems": False, "$ref": "#/$defs/x"}},
    }
    | {"$defs": {"x": {"unevaluatedItems": False, "$ref": "#/$defs/x"}}},
    "pattern": {"properties": {"k": {"pattern": "^(a|aa)+$"}}},
    "name": {"patternProperties": {"^(a|aa)+$": True}},
    "name, too": {"patternProperties": {"^(a|aa)+$": True}, "unevaluatedProperties": False},
    "of names": {"propertyNames": {"pattern": "^(a|aa)+$"}},
    "dynamic": {
        "$dynamicAnchor": "meta",
        "$ref": "https://json-schema.org/draft/2020-12/schema",
        "patternProperties": {"^(a|aa)+$": True},
    },
    "dynamic, round": {
        "$dynamicAnchor": "meta",
        "properties": {"k": {"$dynamicRef": "#meta"}},
        "$dynamicRef": "#meta",
    },
}
_CAUGHT = with_fields("i: 1\nk: " + "a" * 80 + "b\n" + "a" * 80 + "b: 1")


_FEWER = 1 if speed.is_all else 20


@pytest.fixture
def _little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of what may be done for one memory, or less."""
    monkeypatch.setattr(meter, "MOST_STEPS", meter.MOST_STEPS // 10 // _FEWER)
    monkeypatch.setattr(meter, "MOST_SECONDS", 0.1)


@pytest.mark.usefixtures("_little_work")
@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_a_schema_that_makes_endless_work_is_stopped_and_named(schema: Any) -> None:
    """Each takes hours or memory without end by jsonschema alone, or runs into the end of Python's stack."""
    schemas = Schemas({"own": json.dumps(schema), "note": '{"$ref": "own"}'})
    found = {each.code: each for each in schemas.check(_CAUGHT) if each.severity == "error"}
    (bound,) = (found[code] for code in ("schema-unchecked", "schema-broken") if code in found)
    assert "schema note" in bound.message
    assert any(
        word in bound.message
        for word in (
            f"{meter.MOST_STEPS:,} steps",
            "0.1 s of",
            "without end",
            "`unevaluatedProperties` cannot be used",
        )
    )


@pytest.mark.parametrize("seconds", soak_most([0.2, MOST_SECONDS]))
def test_a_pattern_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(meter, "MOST_SECONDS", seconds)
    (found,) = findings({"properties": {"k": {"pattern": "^(a|aa)+$"}}}, _CAUGHT)
    wanted = f"the pattern '^(a|aa)+$' was stopped after {seconds:g} s of processor time"
    assert wanted in found.message


@cases(
    "target",
    [{}, {"type": 5}, {"pattern": "["}, {"$ref": "http://example.com/x"}, {"$schema": "http://example.com/"}],
)
def test_a_reference_leads_to_a_schema_only_where_a_keyword_puts_one(target: Any) -> None:
    for place in ("foo", "const", "default"):
        schema = {"properties": {"k": {"$ref": f"#/{place}"}}, place: target}
        assert [each.code for each in lint(schema) if each.severity == "error"] == ["schema-ref"]
        assert places(findings(schema, with_fields("k: 1"))) == [(2, 1, "schema-broken")]


def test_a_schema_is_broken_by_what_one_that_it_refers_to_refers_to() -> None:
    base = {"$defs": {"foo": {"$ref": "file:///etc/passwd"}}}
    (found,) = findings({"$ref": "base#/$defs/foo"}, with_fields("k: 1"), base=base)
    assert found.code == "schema-broken"


def test_a_reference_to_another_dialect_is_refused() -> None:
    """jsonschema would go on with its plain validator of that dialect, which has no bound."""
    for uri in ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"):
        assert [each.code for each in lint({"$ref": uri})] in (["schema-dialect"], ["schema-ref"])


_NUMBERS = list(range(40_000 // _FEWER))
_OBJECTS = [{f"k{m}": m for m in range(100)} for _ in range(400 // _FEWER)]
# Each takes a minute or more where only the keywords that are looked at are counted.
LARGE: dict[str, tuple[Any, Any]] = {
    "schemas without a keyword": ({"items": {"allOf": [{}] * 1_000}}, _NUMBERS),
    "schemas that are true": ({"items": {"allOf": [True] * 9_000}}, _NUMBERS),
    "keywords that nobody knows": ({"items": {f"x{n}": 1 for n in range(9_000)}}, _NUMBERS),
    "items that are compared": (
        {"items": {"enum": [[-n] for n in range(1, 5_000)]}},
        [[n] for n in _NUMBERS],
    ),
    "names that are missing": ({"items": {"required": [f"q{n}" for n in range(5_000)]}}, _OBJECTS),
    "errors of the same items": ({"allOf": [{"not": {"title": "x"}}] * 3_000}, _NUMBERS),
    "items that no schema describes": ({"unevaluatedItems": {"type": "integer"}}, _NUMBERS),
    "long texts in errors": (
        {"allOf": [{"items": {"minLength": 10**9}}] * 5_000},
        ["a" * (3_000_000 // _FEWER)],
    ),
    "items that are counted": ({"allOf": [{"contains": True, "minContains": 10**9}] * 3_000}, _NUMBERS),
    "patterns to compile": ({"items": {"format": "regex"}}, [f"[a-z]({n}|b)+" for n in _NUMBERS]),
    "patterns that are slow": ({"items": {"pattern": "^(a|aa)+$"}}, ["a" * 12 + "b"] * len(_NUMBERS)),
    "many patterns": (
        {"items": {"allOf": [{"pattern": f"^1+{n}?$"} for n in range(400)]}},
        ["11"] * len(_NUMBERS),
    ),
    "anchors": (
        {"$defs": {str(n): {"$anchor": f"a{n}"} for n in range(1_000)}}
        | {"$dynamicAnchor": "x", "items": {"allOf": [{"$dynamicRef": "#x"}] * 50}},
        _NUMBERS,
    ),
    "a schema that is retrieved": ({"items": {"allOf": [{"$ref": "./x/own.json#a"}] * 50}}, _NUMBERS),
}
_OWN = {"$defs": {str(n): {"$anchor": "a" if n == 500 else f"b{n}"} for n in range(1_000)}}


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("_little_work")
@pytest.mark.parametrize(("schema", "value"), LARGE.values(), ids=LARGE)
def test_what_grows_with_the_schema_and_the_memory_is_stopped_and_named(schema: Any, value: Any) -> None:
    document = memory(json.dumps(value), "notes/a.json")
    *_, last = sorted(
        Schemas({"note": json.dumps(schema), "own": json.dumps(_OWN)}).check(document),
        key=lambda found: " steps" in found.message,
    )
    assert last.code in {"schema-unchecked", "schema-broken"}
    assert f"it takes more than {meter.MOST_STEPS:,} steps" in last.message


@pytest.mark.timeout(60)
def test_numbers_that_have_the_same_hash_are_compared_in_little_time() -> None:
    """A set of them takes the square of the time."""
    same = [n * (2**61 - 1) for n in range(examples(30_000))]
    for value, codes in (
        (same, []),
        ([*same, float(2**61 - 1)], []),
        ([*same, same[7]], ["schema-uniqueItems"]),
    ):
        document = memory(json.dumps(value), "notes/a.json")
        assert [each.code for each in findings({"uniqueItems": True}, document)] == codes


@pytest.mark.timeout(60)
def test_names_that_are_almost_alike_are_compared_in_little_time() -> None:
    names = [
        "".join(part) for part in islice(permutations("abcdefghijklmnopqrstuvwxyz012345"), examples(1_200))
    ]
    schema = {"properties": dict.fromkeys(names[:100], True), "additionalProperties": False}
    found = findings(schema, with_fields("\n".join(f"{name[::-1]}: 1" for name in names[100:])))
    assert found[-1].code in {"schema-additionalProperties", "schema-unchecked"}


_LONG = memory(json.dumps([{"a": n} for n in _NUMBERS]), "notes/a.json")


@cases(
    "schema",
    [
        {"uniqueItems": True},
        {"items": {"type": "string"}},
        {"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        {"contains": {"const": "x"}, "minContains": 2},
        {"enum": [[n] for n in range(5_000)]},
        {"prefixItems": [True], "items": False},
        {"$defs": {"x": {"not": {}}}, "allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]},
    ],
    ids=lambda schema: str(schema)[:40],
)
@pytest.mark.timeout(60)
def test_a_long_list_takes_no_time_without_end(schema: Any) -> None:
    assert len(findings(schema, _LONG)) <= 1_002


def test_of_very_many_violations_the_first_are_told_and_how_many_are_left_out() -> None:
    wanted = {"x-body": {"sections": [f"S{n}" for n in range(10_000)]}}
    found = findings(wanted, with_fields("a: 1"))
    assert len(found) == 1_001
    (more,) = [each for each in found if each.code == "schema-more"]
    assert "9,000 more" in more.message


def test_a_long_key_and_many_names_are_told_shortly() -> None:
    schema = {"properties": {f"name{n}": True for n in range(3_000 // _FEWER)}, "additionalProperties": False}
    count = 100 // _FEWER
    found = findings(schema, with_fields("\n".join(f"{'k' * 500}{n}: 1" for n in range(count))))
    assert len(found) == count
    assert all(len(each.hint) < 1_000 for each in found)


@pytest.mark.usefixtures("_little_work")
def test_a_schema_that_many_ways_lead_to_is_looked_at_once() -> None:
    # 2 to the power of 16 ways.
    own = {f"s{n}": json.dumps({"allOf": [{"$ref": f"s{n + 1}"}, {"$ref": f"s{n + 1}"}]}) for n in range(16)}
    (found,) = {each.code for each in Schemas({**own, "s16": '{"type": "object"}'}).lint()}
    assert found == "schema-endless"


# ------------------------------------------------------------------------------------------------ start-up


def test_a_schema_is_compiled_once() -> None:
    schemas = Schemas({"note": '{"not": {}}'})
    schemas.check(with_fields("a: 1"))
    (first,) = schemas._validators.values()
    schemas.check(with_fields("b: 1"))
    assert schemas._validator_of("note") is first
