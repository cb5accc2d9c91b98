"""The MCP memory server's graph: a note for each entity, its relations as links.

Its file has a JSON object in each line: `{"type": "entity", "name", "entityType", "observations"}` or
`{"type": "relation", "from", "to", "relationType"}`. What its tool `read_graph` returns, one object with both
as lists, is read as well.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from mdmem.document.document import SUFFIXES, Document, Limits
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.errors import DocumentRefused, PathRefused, Usage
from mdmem.kind import DEFAULT_SCHEMA, KINDS
from mdmem.memory.imports.batch import Batch, made, nothing_found, read
from mdmem.vault.config import Config
from mdmem.vault.paths import encode_id

if TYPE_CHECKING:
    from mdmem.index.sync import Progress

# An entity of such a type follows no schema of ours.
_KINDS = frozenset((DEFAULT_SCHEMA, *(kind.name for kind in KINDS)))
# Names that a wikilink can hold as they are.
_PLAIN = regex(r"\w(?:[\w .,'()+@-]*[\w)])?")


class _Relation(NamedTuple):
    source: str
    kind: str
    target: str


@dataclass(slots=True)
class _Graph:
    types: dict[str, str] = field(default_factory=dict)
    observations: dict[str, list[str]] = field(default_factory=dict)
    relations: list[_Relation] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def convert(source: str, config: Config, progress: Progress | None = None) -> Batch:
    """Return the notes of a graph."""
    graph = _Graph()
    for where, entry in _iterate_entries(source, graph):
        _take_entry(graph, where, entry)
    if not graph.types:
        looked = 'looked for JSON lines with "type": "entity" and a "name", or for one object with "entities"'
        raise nothing_found("entity of the MCP memory server", source, looked, graph.left_out)
    for relation in graph.relations:
        if relation.source not in graph.types:
            graph.left_out[f"there is no entity {relation.source!r}"].append(" ".join(relation))
    _name_entities(graph)
    documents: dict[str, Document | bytes] = {}
    for number, name in enumerate(graph.paths, 1):
        try:
            documents[graph.paths[name]] = _make_note(graph, name, config.limits)
        except DocumentRefused as error:
            graph.left_out[error.message.removeprefix(f"{error.path}: ")].append(error.path)
        if progress:
            progress(number, len(graph.paths))
    return Batch(files=documents, left_out=graph.left_out)


def _iterate_entries(source: str, graph: _Graph) -> Iterator[tuple[str, Any]]:
    try:
        text = read(source).decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise Usage(problem=f"{source}: not UTF-8: byte {error.start}") from None
    whole = _parse_json(text)
    if isinstance(whole, dict) and "entities" in whole:
        for kind, name in (("entity", "entities"), ("relation", "relations")):
            for number, entry in enumerate(_as_list(whole.get(name)), 1):
                typed = {**entry, "type": kind} if isinstance(entry, dict) else entry
                yield f"{source}: {name} {number}", typed
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            entry = _parse_json(line)
            if entry is None:
                graph.left_out["this is not JSON"].append(f"{source}:{number}")
            else:
                yield f"{source}:{number}", entry


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _take_entry(graph: _Graph, where: str, entry: Any) -> None:
    known = entry if isinstance(entry, dict) else {}
    if known.get("type") == "entity" and _are_texts(known, "name"):
        name, kind = known["name"], known.get("entityType")
        graph.types.setdefault(name, kind if isinstance(kind, str) else "")
        kept = graph.observations.setdefault(name, [])
        for number, text in enumerate(_as_list(known.get("observations")), 1):
            if isinstance(text, str) and text.strip():
                kept.append(text)
            else:
                graph.left_out[f"observation {number} is not a text"].append(where)
    elif known.get("type") == "relation" and _are_texts(known, "from", "to", "relationType"):
        relation = _Relation(known["from"], known["relationType"], known["to"])
        if relation not in graph.relations:
            graph.relations.append(relation)
    else:
        graph.left_out["neither an entity nor a relation"].append(where)


def _are_texts(entry: dict[str, Any], *names: str) -> bool:
    return all(isinstance(entry.get(name), str) and entry[name].strip() for name in names)


def _name_entities(graph: _Graph) -> None:
    """Give every entity a path; names that differ only in case get a number."""
    taken: set[str] = set()
    for name in graph.types:
        try:
            stem = encode_id(name)
        except PathRefused as error:
            graph.left_out[error.reason].append(name)
            continue
        tries = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
        free = next(each for each in tries if each.casefold() not in taken)
        taken.add(free.casefold())
        graph.paths[name] = f"{free}.md"


def _make_note(graph: _Graph, name: str, limits: Limits) -> Document:
    path = graph.paths[name]
    kind = graph.types[name]
    fields: dict[str, Any] = {"title": _join_line(name)}
    if kind.strip():
        fields["entity_type" if kind.casefold() in _KINDS else "type"] = kind
    if path != f"{name}.md":
        fields["aliases"] = [name]
    fields["source"] = {"type": "mcp-memory", "ids": [name]}
    lines = [f"# {_join_line(name)}"]
    observations = [_format_item(text) for text in graph.observations[name]]
    relations = [
        _format_item(f"{_join_line(r.kind)} {_format_link(graph, r.target)}")
        for r in graph.relations
        if r.source == name
    ]
    for heading, items in (("Observations", observations), ("Relations", relations)):
        if items:
            lines += ["", f"## {heading}", "", *items]
    return made(path, fields, "\n".join(lines), limits)


def _format_item(text: str) -> str:
    """Return a list item; what follows its first line is indented, so that it stays inside."""
    first, *rest = LINE_END.split(text.strip())
    return "\n".join([f"- {first}", *(f"  {line}".rstrip() for line in rest)])


def _format_link(graph: _Graph, name: str) -> str:
    path = graph.paths.get(name)
    if path in {None, f"{name}.md"} and _PLAIN.fullmatch(name) and not name.casefold().endswith(SUFFIXES):
        return f"[[{name}]]"
    shown = re.sub(r"([\\\[\]])", r"\\\1", _join_line(name))
    return f"[{shown}]({quote(path)})" if path else _join_line(name)


def _join_line(text: str) -> str:
    return " ".join(text.split())
