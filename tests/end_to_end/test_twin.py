"""Twins: the same verbs on a vault in a folder and on one in a database, with equal answers and bytes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

import mdmem
from mdmem.facade.memini import StoredMemory
from mdmem.facade.memory import Memory, init_store
from mdmem.vault.paths import Namespace
from mdmem.vault.postgres import PostgresStore
from tests.speed import soak_most

if TYPE_CHECKING:
    from tests.vault.postgres_server import Server

NAMES = ("a.md", "n/b.md", "n/c.md", "n/b.md/d.md", "N/b.md", "\xe9.md", "e\u0301.md", "data.json", "../x.md")
WORDS = ("heron", "stork", "crane", "ibis")
STEPS = 30
# What differs between two runs of the same verbs: ids, times, and hashes of what holds them.
_VARYING = re.compile(
    r"\d{8}T\d+-[0-9a-f]{4}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*(?:Z|\+00:00)?"
    r"|mtime_ns=\d+|\w+_at=\d+|modified=[\d.]+|datetime\(2[\d, ]+"
    r"|\b[0-9a-f]{8}\b|\b[0-9a-f]{32}\b|\b[0-9a-f]{64}\b"
)
Verb = Callable[[Memory, random.Random], Any]


def path(chance: random.Random) -> str:
    return chance.choice(NAMES)


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=3))


def stored(chance: random.Random) -> StoredMemory:
    memory = StoredMemory(id=chance.choice(WORDS), namespace=chance.choice(WORDS), content=text(chance))
    # Given: a time of now is written shorter where it is a whole second.
    moment = 1_700_000_000_000 + chance.randrange(1_000_000)
    return replace(memory, created_at=moment, updated_at=moment)


VERBS: dict[str, Verb] = {
    "write": lambda m, c: m.write(path(c), f"# {text(c)}\n\n- {text(c)}\n", overwrite=c.random() < 0.5),
    "append": lambda m, c: m.append(path(c), text(c)),
    "prepend": lambda m, c: m.prepend(path(c), text(c)),
    "replace": lambda m, c: m.replace(path(c), c.choice(WORDS), c.choice(WORDS), count=1),
    "insert": lambda m, c: m.insert(path(c), 1, text(c)),
    "set": lambda m, c: m.set(path(c), {"title": text(c), "tags": [c.choice(WORDS)]}),
    "unset": lambda m, c: m.unset(path(c), ["title"]),
    "mv": lambda m, c: m.mv(path(c), path(c)),
    "move folder": lambda m, c: m.mv("n", c.choice(["o", "p/q"])),
    "move back": lambda m, c: m.mv(c.choice(["o", "p/q"]), "n"),
    "rm": lambda m, c: m.rm(path(c)),
    "undo": lambda m, _: m.undo(),
    "undo more": lambda m, _: m.undo(count=2),
    "redo": lambda m, _: m.redo(),
    "restore": lambda m, c: m.restore(path(c)),
    "section": lambda m, c: m.section(path(c), text(c), text(c)),
    "note": lambda m, c: m.notes.append(c.choice(WORDS), text(c), title=text(c)),
    "working": lambda m, c: m.working.update(text(c), thread=c.choice(WORDS)),
    "preference": lambda m, c: m.preferences.set("ui", c.choice(WORDS), text(c)),
    "get preference": lambda m, c: m.preferences.get("ui", c.choice(WORDS)),
    "project": lambda m, c: m.project.append("Decisions", text(c)),
    "rule": lambda m, c: m.rules.add(c.choice(WORDS), text(c), globs=["*.py"]),
    "rules": lambda m, _: m.rules.list(),
    "say": lambda m, c: m.sessions.add(c.choice(WORDS), "user", text(c)),
    "conversation": lambda m, c: [each.text for each in m.sessions.history(c.choice(WORDS))],
    "delete session": lambda m, c: m.sessions.delete(c.choice(WORDS)),
    "restore session": lambda m, c: m.sessions.restore(c.choice(WORDS)),
    "vacuum": lambda m, c: m.sessions.vacuum(c.choice(WORDS)),
    "sessions": lambda m, _: [each.key for each in m.sessions.list()],
    "find said": lambda m, c: len(m.sessions.search(c.choice(WORDS)).hits),
    "store": lambda m, c: m.store.upsert(stored(c)),
    "stored": lambda m, c: m.store.get(c.choice(WORDS), c.choice(WORDS)),
    "delete stored": lambda m, c: m.store.delete(c.choice(WORDS), c.choice(WORDS)),
    "store's list": lambda m, c: m.store.list(c.choice(WORDS)),
    "search": lambda m, c: [(hit.path, hit.text) for hit in m.search(c.choice(WORDS)).hits],
    "grep": lambda m, c: [(hit.path, hit.line) for hit in m.grep(c.choice(WORDS))],
    "ls": lambda m, _: [(each.path, each.size) for each in m.ls()],
    "show": lambda m, c: m.show(path(c)),
    "history": lambda m, _: [[(f.path, f.did) for f in entry.files] for entry in m.history()],
    "check": lambda m, _: m.check(),
    "backlinks": lambda m, c: m.references.backlinks(path(c)),
    "context": lambda m, c: m.context(c.choice(WORDS)).text,
    "remember": lambda m, c: m.inbox.propose("append", {"path": path(c), "text": text(c)}),
    "inbox": lambda m, _: m.inbox.list(),
    "accept": lambda m, _: [m.inbox.accept(each.id) for each in m.inbox.list()[:1]],
    "link": lambda m, c: m.append(path(c), f"see [[{path(c).removesuffix('.md')}]]"),
    "status": lambda m, _: m.status().memories,
}


def answer(memory: Memory, verb: Verb, chance: random.Random) -> str:
    """What a verb says, or refuses, without what differs from run to run."""
    try:
        said = repr(verb(memory, chance))
    except mdmem.MdmemError as error:
        said = f"{type(error).__name__}: {error}"
    said = said.replace(memory.root, "ROOT").replace(memory.name, "ROOT")
    return _VARYING.sub("…", said)


def held(memory: Memory) -> dict[str, str]:
    memory.vault.recover()
    store = memory.vault.store
    paths = [found.path for found in store.walk(Namespace(""))]
    found = {each: store.read(each, 1 << 20) for each in paths}
    return {each: _VARYING.sub("…", content.data.decode()) for each, content in found.items() if content}


@pytest.mark.parametrize("seed", soak_most(range(60), quick=(0, 1, 2)))
def test_twins_answer_alike(tmp_path: Path, server: Server, seed: int) -> None:
    """Every verb is asked of one of two servers of the database, in turn."""
    name = uuid4().hex
    init_store(server.url(name))
    stores = [PostgresStore(server.url(name)), PostgresStore(server.url(name, application_name="other"))]
    scope = mdmem.Scope(user="ann") if seed % 2 else mdmem.Scope()
    folder = Memory(mdmem.init(tmp_path / "memories").root, scope)
    twins = [Memory(store, scope) for store in stores]
    chance = random.Random(seed)
    for number in range(STEPS):
        verb = chance.choice(sorted(VERBS))
        ask = partial(answer, verb=VERBS[verb])
        seeds = chance.random()
        expected = ask(folder, chance=random.Random(seeds))
        said = ask(twins[number % 2], chance=random.Random(seeds))
        assert (seed, number, verb, said) == (seed, number, verb, expected)
    assert held(twins[0]) == held(twins[1]) == held(folder)
    for memory in (folder, *twins):
        memory.index.close()
    for store in stores:
        store.close()
