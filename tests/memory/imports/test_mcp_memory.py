"""The MCP memory server's graph becomes notes: facts can be read, and relations are links that lead there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import mdmem
from mdmem.document.document import Document
from mdmem.errors import NamedNotFound, Usage
from mdmem.facade.memory import Memory
from mdmem.memory.imports.mcp_memory import convert
from mdmem.vault.config import Config
from tests.speed import examples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


def entity(name: str, kind: str = "person", *observations: Any) -> dict[str, Any]:
    return {"type": "entity", "name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, kind: str, target: str) -> dict[str, Any]:
    return {"type": "relation", "from": source, "to": target, "relationType": kind}


def write(source: Path, *entries: dict[str, Any]) -> str:
    source.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    return str(source)


def left_out(applied: object) -> list[str]:
    assert isinstance(applied, mdmem.Applied)
    return list(applied.plan.left_out)


def test_an_entity_is_a_note_with_its_observations_and_relations(memory: Memory, source: Path) -> None:
    write(
        source,
        entity("John_Smith", "person", "Speaks fluent Spanish", "Graduated in 2019\nin Madrid"),
        entity("Anthropic", "organization"),
        relation("John_Smith", "works_at", "Anthropic"),
    )
    applied = memory.import_("mcp-memory", str(source))
    assert not left_out(applied)
    assert memory.show("notes/John_Smith.md").text == (
        "---\ntitle: John_Smith\ntype: person\nsource: {type: mcp-memory, ids: [John_Smith]}\n---\n\n"
        "# John_Smith\n\n## Observations\n\n- Speaks fluent Spanish\n- Graduated in 2019\n  in Madrid\n\n"
        "## Relations\n\n- works_at [[Anthropic]]\n"
    )
    (backlink,) = memory.references.backlinks("notes/Anthropic.md")
    assert backlink.path == "notes/John_Smith.md"
    assert memory.check() == []


NAMES = [
    *("John Smith", "a/b", "C#", "x|y", "[[odd]]", ".hidden", "readme.md", "naïve", "日本", "con", "50%"),
    *("A", "a"),
]


def test_a_relation_leads_to_the_entity_whatever_its_name(memory: Memory, source: Path) -> None:
    relations = [relation("Start", "knows", name) for name in NAMES]
    write(source, *map(entity, NAMES), entity("Start"), *relations)
    applied = memory.import_("mcp-memory", str(source), to="graph")
    assert not left_out(applied)
    links = memory.references.list(paths=["graph/Start.md"])
    assert [[place.state for place in link.places] for link in links] == [["ok"]] * len(NAMES)
    assert sorted(memory.show(link.target).fields["source"]["ids"] for link in links) == sorted(
        [name] for name in NAMES
    )
    # The name of one is itself a link to what is not there.
    assert {finding.path for finding in memory.check()} == {"graph/[[odd]].md"}


@pytest.mark.parametrize("names", [["Ann", "ann", "ANN"], ["ann", "ANN", "Ann"]])
def test_names_that_differ_only_in_case_get_files_that_differ_in_more(
    memory: Memory, source: Path, names: list[str]
) -> None:
    write(source, *map(entity, names))
    memory.import_("mcp-memory", str(source))
    first, second, third = names
    assert {memory.show(each.path).fields["title"]: each.path for each in memory.ls("notes")} == {
        first: f"notes/{first}.md",
        second: f"notes/{second}-2.md",
        third: f"notes/{third}-3.md",
    }


def test_the_types_of_this_system_are_not_taken_for_ours(memory: Memory, source: Path) -> None:
    write(source, entity("Dark", "preference"), entity("Site", "Project"))
    assert not left_out(memory.import_("mcp-memory", str(source)))
    assert memory.show("notes/Dark.md").fields["entity_type"] == "preference"
    assert "type" not in memory.show("notes/Site.md").fields


def test_an_import_is_one_change_and_the_same_again_is_none(memory: Memory, source: Path) -> None:
    write(source, entity("A"), entity("B"))
    before = [listed.path for listed in memory.ls()]
    applied = memory.import_("mcp-memory", str(source))
    assert len(applied.files) == 2
    again = memory.import_("mcp-memory", str(source))
    assert not again.files
    assert "2 stand there already" in again.plan.message
    memory.undo(applied.id)
    assert [listed.path for listed in memory.ls()] == before


def test_nothing_is_overwritten(memory: Memory, source: Path) -> None:
    memory.write("notes/A.md", "mine\n")
    write(source, entity("A"), entity("B"))
    applied = memory.import_("mcp-memory", str(source))
    assert memory.show("notes/A.md").text == "mine\n"
    assert [file.path for file in applied.files] == ["notes/B.md"]
    assert left_out(applied) == [
        "notes/A.md: another file stands there; move it, or import --to another folder"
    ]


def test_what_cannot_be_read_is_named_by_its_line(memory: Memory, source: Path) -> None:
    lines = [json.dumps(entity("A", "person", "one", 2, " ")), "{", "", "[]", '{"type": "entity"}']
    lines += [json.dumps(relation("Nobody", "knows", "A"))]
    source.write_text("\n".join(lines))
    applied = memory.import_("mcp-memory", str(source))
    assert left_out(applied) == [
        f"{source}:1: observation 2 is not a text",
        f"{source}:1: observation 3 is not a text",
        f"{source}:2: this is not JSON",
        f"{source}:4: neither an entity nor a relation",
        f"{source}:5: neither an entity nor a relation",
        "Nobody knows A: there is no entity 'Nobody'",
    ]
    assert "- one\n" in memory.show("notes/A.md").text


def test_the_graph_as_one_object_is_read_too(memory: Memory, source: Path) -> None:
    graph = {"entities": [entity("A"), entity("B")], "relations": [relation("A", "knows", "B")]}
    source.write_text(json.dumps(graph))
    memory.import_("mcp-memory", str(source))
    assert "- knows [[B]]" in memory.show("notes/A.md").text


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_what_is_no_text_is_refused(memory: Memory, source: Path, content: bytes | None) -> None:
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(Usage) as refused:
        memory.import_("mcp-memory", str(source))
    assert str(source) in refused.value.message


@pytest.mark.parametrize("content", [b"", b"{}", b"no graph\n"])
def test_an_import_of_nothing_is_no_match_and_says_what_was_looked_for(
    memory: Memory, source: Path, content: bytes
) -> None:
    source.write_bytes(content)
    with pytest.raises(NamedNotFound, match="no entity of the MCP memory server in") as missing:
        memory.import_("mcp-memory", str(source))
    assert missing.value.exit_code == 1
    assert str(source) in missing.value.message
    assert 'looked for JSON lines with "type": "entity"' in missing.value.hint
    assert ("this is not JSON" in missing.value.hint) == (content == b"no graph\n")


def test_of_a_graph_what_holds_a_secret_is_left_out(memory: Memory, source: Path) -> None:
    write(source, entity("A"), entity("B", "key", "AKIA" + "QWERTYUIOPASDF23"))
    applied = memory.import_("mcp-memory", str(source))
    assert left_out(applied) == ["notes/B.md:11: it holds a secret"]
    assert [file.path for file in applied.files] == ["notes/A.md"]


TEXT = st.text(min_size=1, max_size=20)


@given(st.lists(st.tuples(TEXT, TEXT, st.lists(TEXT, max_size=3)), min_size=1, max_size=5))
@settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_any_graph_gives_valid_notes_or_says_what_it_leaves_out(
    tmp_path: Path, entities: list[tuple[str, str, list[str]]]
) -> None:
    source = tmp_path / "any.jsonl"
    write(source, *(entity(name, kind, *texts) for name, kind, texts in entities))
    try:
        batch = convert(str(source), Config())
    except NamedNotFound:
        assert all(not name.strip() for name, _, _ in entities)
        return
    documents = [each for each in batch.files.values() if isinstance(each, Document)]
    paths = [document.path.casefold() for document in documents]
    assert len(set(paths)) == len(paths)
    assert len({name for name, _, _ in entities}) <= len(paths) + sum(map(len, batch.left_out.values()))
    for document in documents:
        assert document.findings == ()
        assert document.fields["source"]["type"] == "mcp-memory"
